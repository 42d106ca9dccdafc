//! Flows and ports of a participant. A port is a number in a record; the kernel does not know it.

use std::io;

use crate::{FlowId, FlowSpec, TransportError};

/// Port of discovery traffic.
pub(super) const METATRAFFIC: u32 = 1;
/// Port of user data for flows without their own port.
pub(super) const USER: u32 = 2;
/// Flag in the destination port of a record: the piece of a loan follows the datagram.
pub(super) const HAS_LOAN: u32 = 1 << 31;
/// Flag in a port: datagrams to it are urgent and overtake others.
const URGENT: u32 = 1 << 30;
/// First port of a flow.
const FIRST_OWN: u32 = 16;

/// Ring of a connection that carries a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Band {
    NotUrgent,
    Urgent,
}

impl Band {
    /// Returns the band of datagrams to a port.
    pub(super) fn of(port: u32) -> Self {
        if port & URGENT == 0 { Self::NotUrgent } else { Self::Urgent }
    }
}

#[derive(Debug)]
struct Flow {
    port: Option<u32>,
    /// Number of users: opened and not yet closed.
    users: usize,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    port: u32,
    flow: FlowId,
    urgency: i32,
}

/// All flows except [`FlowId::DEFAULT`], which is always open.
#[derive(Debug)]
pub(super) struct Ports {
    flows: Vec<Option<Flow>>,
    /// Open ports of flows, ascending, with the urgency of their datagrams.
    open: Vec<Open>,
    /// Next port. Ports are not reused, so that datagrams to a closed port are dropped.
    next_port: u32,
}

impl Default for Ports {
    fn default() -> Self {
        let default = Flow { port: None, users: 1 };
        Self { flows: vec![Some(default)], open: Vec::new(), next_port: FIRST_OWN }
    }
}

impl Ports {
    /// Opens a flow, and returns its port if it has its own. All flows without a port and without
    /// urgency are the default flow. Urgency does not change sending, since memory is equally fast
    /// for all.
    pub(super) fn open(&mut self, spec: &FlowSpec) -> Result<(FlowId, Option<u32>), TransportError> {
        if !spec.own_port {
            if spec.transport_priority <= 0 {
                return Ok((FlowId::DEFAULT, None));
            }
            let urgent = self.flows.iter_mut().skip(1).zip(1..).find_map(|(flow, at)| match flow {
                Some(flow) if flow.port.is_none() => Some((flow, at)),
                _ => None,
            });
            if let Some((flow, at)) = urgent {
                flow.users += 1;
                return Ok((FlowId(at), None));
            }
        }
        let free = self.flows.iter().position(Option::is_none).unwrap_or(self.flows.len());
        let exhausted = |what| TransportError::new("open", "a flow", io::Error::other(what));
        let id = FlowId(u16::try_from(free).map_err(|_| exhausted("all 65536 flows are open"))?);
        let urgency = spec.transport_priority;
        let band = if urgency > 0 { URGENT } else { 0 };
        let port = spec.own_port.then_some(self.next_port | band);
        if let Some(port) = port {
            let next = self.next_port + 1;
            self.next_port =
                Some(next).filter(|next| *next < URGENT).ok_or_else(|| exhausted("all flow ids are used up"))?;
            let at = self.open.partition_point(|open| open.port < port);
            self.open.insert(at, Open { port, flow: id, urgency });
        }
        if free == self.flows.len() {
            self.flows.push(None);
        }
        self.flows[free] = Some(Flow { port, users: 1 });
        Ok((id, port))
    }

    pub(super) fn close(&mut self, id: FlowId) -> Result<(), TransportError> {
        if id == FlowId::DEFAULT {
            return Ok(());
        }
        let slot = self.flows.get_mut(usize::from(id.0));
        let Some(slot @ Some(_)) = slot else { return Err(unknown("close", id)) };
        let flow = slot.as_mut().expect("matched");
        flow.users -= 1;
        if flow.users == 0 {
            *slot = None;
            self.open.retain(|open| open.flow != id);
        }
        Ok(())
    }

    /// Returns the source port of a flow.
    pub(super) fn source(&self, id: FlowId) -> Result<u32, TransportError> {
        match self.flows.get(usize::from(id.0)) {
            Some(Some(flow)) => Ok(flow.port.unwrap_or(USER)),
            _ => Err(unknown("commit to", id)),
        }
    }

    /// Returns the flow of datagrams to this port; `None` if the port is not open.
    pub(super) fn flow(&self, port: u32) -> Option<FlowId> {
        if port == USER || port == METATRAFFIC {
            return Some(FlowId::DEFAULT);
        }
        self.find(port).map(|open| open.flow)
    }

    /// Returns the urgency of datagrams to this port. Datagrams to a closed port are the most
    /// urgent, so that they are dropped at once.
    pub(super) fn urgency(&self, port: u32) -> i32 {
        self.find(port).map_or(i32::MAX, |open| open.urgency)
    }

    fn find(&self, port: u32) -> Option<Open> {
        let at = self.open.binary_search_by_key(&port, |open| open.port).ok()?;
        Some(self.open[at])
    }
}

fn unknown(op: &'static str, id: FlowId) -> TransportError {
    TransportError::new(op, format_args!("flow {}", id.0), io::ErrorKind::NotFound.into())
}
