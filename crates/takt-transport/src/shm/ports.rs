//! Flows and ports of a participant. A port is a number in a record; the kernel knows nothing of them.

use std::io;

use crate::{FlowId, FlowSpec, TransportError};

/// Where discovery traffic arrives.
pub(super) const METATRAFFIC: u32 = 1;
/// Where user data arrives that is not for a flow of its own.
pub(super) const USER: u32 = 2;
/// In the port that a record goes to: a piece lies behind the datagram, which brings along what that says.
pub(super) const LENDS: u32 = 1 << 31;
/// The first port of a flow.
const FIRST_OWN: u32 = 16;

#[derive(Debug)]
struct Flow {
    port: Option<u32>,
    /// How often it was opened and not yet closed.
    users: usize,
}

/// All flows but [`FlowId::DEFAULT`], which is always open.
#[derive(Debug)]
pub(super) struct Ports {
    flows: Vec<Option<Flow>>,
    /// Open ports of flows, ascending.
    open: Vec<(u32, FlowId)>,
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
    /// flow, and urgency changes nothing: the memory is as fast for all.
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
        let port = spec.own_port.then_some(self.next_port);
        if let Some(port) = port {
            self.next_port =
                port.checked_add(1).filter(|next| next & LENDS == 0).ok_or_else(|| exhausted("all ports were used"))?;
            self.open.push((port, id));
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
            self.open.retain(|(_, open)| *open != id);
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
        let at = self.open.binary_search_by_key(&port, |(open, _)| *open).ok()?;
        Some(self.open[at].1)
    }
}

fn unknown(op: &'static str, id: FlowId) -> TransportError {
    TransportError::new(op, format_args!("flow {}", id.0), io::ErrorKind::NotFound.into())
}
