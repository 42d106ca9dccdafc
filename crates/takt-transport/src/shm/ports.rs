//! Flows and ports of a participant. A port is a number in a record; the kernel knows nothing of them.

use std::io;

use crate::{FlowId, FlowSpec, TransportError};

/// Where discovery traffic arrives.
pub(super) const METATRAFFIC: u32 = 1;
/// Where user data arrives that is not for a flow of its own.
pub(super) const USER: u32 = 2;
/// In the port that a record goes to: a piece lies behind the datagram, which brings along what that says.
pub(super) const LENDS: u32 = 1 << 31;
/// In a port: what goes there is urgent, and passes others on its way.
const URGENT: u32 = 1 << 30;
/// The first port of a flow.
const FIRST_OWN: u32 = 16;

/// Which ring of a lane a datagram takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Band {
    Common,
    Urgent,
}

impl Band {
    /// That of what goes to a port.
    pub(super) fn of(port: u32) -> Self {
        if port & URGENT == 0 { Self::Common } else { Self::Urgent }
    }
}

#[derive(Debug)]
struct Flow {
    port: Option<u32>,
    /// How often it was opened and not yet closed.
    users: usize,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    port: u32,
    flow: FlowId,
    urgency: i32,
}

/// All flows but [`FlowId::DEFAULT`], which is always open.
#[derive(Debug)]
pub(super) struct Ports {
    flows: Vec<Option<Flow>>,
    /// Open ports of flows, ascending, and how urgent what comes there is.
    open: Vec<Open>,
    /// No port is used twice, so that what was sent to a closed one is nobody's.
    next_port: u32,
}

impl Default for Ports {
    fn default() -> Self {
        let default = Flow { port: None, users: 1 };
        Self { flows: vec![Some(default)], open: Vec::new(), next_port: FIRST_OWN }
    }
}

impl Ports {
    /// Opens a flow; also says its port, if it has one of its own. All flows without one and without urgency are the default
    /// flow. Urgency changes nothing for those that send: the memory is as fast for all.
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
                Some(next).filter(|next| *next < URGENT).ok_or_else(|| exhausted("all ports were used"))?;
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

    /// The port that a flow sends from.
    pub(super) fn source(&self, id: FlowId) -> Result<u32, TransportError> {
        match self.flows.get(usize::from(id.0)) {
            Some(Some(flow)) => Ok(flow.port.unwrap_or(USER)),
            _ => Err(unknown("commit to", id)),
        }
    }

    /// The flow that a datagram to this port is for; `None` if the port is not open.
    pub(super) fn flow(&self, port: u32) -> Option<FlowId> {
        if port == USER || port == METATRAFFIC {
            return Some(FlowId::DEFAULT);
        }
        self.find(port).map(|open| open.flow)
    }

    /// How urgent what comes to this port is; what is for nobody need not wait either.
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
