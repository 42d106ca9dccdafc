//! Flows of a layer-2 transport: source port and priority of sent datagrams, and the open ports.

use std::io;

use super::ports::Taken;
use crate::urgency_buffer::urgency;
use crate::{FlowId, FlowSpec, TransportError};

/// Header fields of an outgoing datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FlowHeader {
    pub(super) port: u16,
    /// Priority code point, 0 to 7: the upper three of the six bits of TRANSPORT_PRIORITY, as in
    /// the UDP transport.
    pub(super) pcp: u8,
}

/// Clamps to 0 to 63, as the UDP transport does.
fn clamped(transport_priority: i32) -> u8 {
    transport_priority.clamp(0, 63) as u8
}

#[derive(Debug)]
struct Flow {
    own: Option<Taken>,
    priority: u8,
    port: u16,
    /// Number of users: opened and not yet closed.
    users: usize,
}

impl Flow {
    fn urgency(&self) -> i32 {
        urgency(&FlowSpec { own_port: self.own.is_some(), transport_priority: self.priority.into() })
    }
}

/// All flows; the first is [`FlowId::DEFAULT`].
#[derive(Debug)]
pub(super) struct Flows {
    flows: Vec<Option<Flow>>,
    /// Own ports of flows, ascending.
    open: Vec<(u16, FlowId)>,
    user_port: u16,
}

impl Flows {
    /// Makes the set with the default flow, which sends from `user_port`.
    pub(super) fn new(user_port: u16) -> Self {
        let default = Flow { own: None, priority: 0, port: user_port, users: 1 };
        Self { flows: vec![Some(default)], open: Vec::new(), user_port }
    }

    /// Opens the flow of this priority without its own port.
    pub(super) fn share(&mut self, transport_priority: i32) -> Result<FlowId, TransportError> {
        let priority = clamped(transport_priority);
        for (at, flow) in (0..).zip(&mut self.flows) {
            if let Some(flow) = flow.as_mut().filter(|flow| flow.own.is_none() && flow.priority == priority) {
                flow.users += 1;
                return Ok(FlowId(at));
            }
        }
        self.add(Flow { own: None, priority, port: self.user_port, users: 1 })
    }

    /// Opens a flow with its own port.
    pub(super) fn open(&mut self, transport_priority: i32, own: Taken) -> Result<FlowId, TransportError> {
        let port = own.number();
        let id = self.add(Flow { own: Some(own), priority: clamped(transport_priority), port, users: 1 })?;
        let at = self.open.partition_point(|(open, _)| *open < port);
        self.open.insert(at, (port, id));
        Ok(id)
    }

    fn add(&mut self, flow: Flow) -> Result<FlowId, TransportError> {
        let free = self.flows.iter().position(Option::is_none).unwrap_or(self.flows.len());
        let Ok(id) = u16::try_from(free) else {
            return Err(TransportError::new("open", "a flow", io::Error::other("all 65536 flows are open")));
        };
        if free == self.flows.len() {
            self.flows.push(None);
        }
        self.flows[free] = Some(flow);
        Ok(FlowId(id))
    }

    /// Removes one user. Returns the flow's own port, if that was the last user.
    pub(super) fn close(&mut self, id: FlowId) -> Result<Option<Taken>, TransportError> {
        if id == FlowId::DEFAULT {
            return Ok(None);
        }
        let Some(slot @ Some(_)) = self.flows.get_mut(usize::from(id.0)) else { return Err(unknown("close", id)) };
        let flow = slot.as_mut().expect("matched");
        flow.users -= 1;
        if flow.users > 0 {
            return Ok(None);
        }
        self.open.retain(|(_, open)| *open != id);
        Ok(slot.take().and_then(|flow| flow.own))
    }

    /// Returns the header fields for datagrams of a flow.
    pub(super) fn header(&self, id: FlowId) -> Result<FlowHeader, TransportError> {
        match self.flows.get(usize::from(id.0)) {
            Some(Some(flow)) => Ok(FlowHeader { port: flow.port, pcp: flow.priority >> 3 }),
            _ => Err(unknown("commit to", id)),
        }
    }

    /// Returns the urgency of datagrams that arrive for a flow; see [`urgency`].
    pub(super) fn urgency(&self, id: FlowId) -> i32 {
        self.flows.get(usize::from(id.0)).and_then(Option::as_ref).map_or(0, Flow::urgency)
    }

    /// Returns the highest urgency that can arrive.
    pub(super) fn most_urgent(&self) -> i32 {
        self.flows.iter().flatten().map(Flow::urgency).max().unwrap_or(0)
    }

    /// Returns the flow with this own port.
    pub(super) fn at(&self, port: u16) -> Option<FlowId> {
        let at = self.open.binary_search_by_key(&port, |(open, _)| *open).ok()?; // tidy-allow(dropped-cause): not open.
        Some(self.open[at].1)
    }
}

fn unknown(op: &'static str, id: FlowId) -> TransportError {
    TransportError::new(op, format_args!("flow {}", id.0), io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_map_to_code_points_as_in_udp() {
        let mut flows = Flows::new(7411);
        let of = [i32::MIN, -1, 0, 7, 8, 46, 63, i32::MAX].map(|priority| {
            let flow = flows.share(priority).expect("a flow");
            flows.header(flow).expect("the flow is open").pcp
        });
        assert_eq!(of, [0, 0, 0, 0, 1, 5, 7, 7]);
    }

    #[test]
    fn flows_of_one_priority_are_shared() {
        let mut flows = Flows::new(7411);
        let spec = crate::FlowSpec::default();
        assert_eq!(flows.share(spec.transport_priority).expect("the flow is open"), FlowId::DEFAULT);
        let urgent = flows.share(46).expect("a flow");
        assert_eq!(flows.share(46).expect("a flow"), urgent);
        assert_eq!(flows.header(urgent).expect("the flow is open"), FlowHeader { port: 7411, pcp: 5 });
        assert!(flows.close(urgent).is_ok() && flows.header(urgent).is_ok());
        assert!(flows.close(urgent).is_ok() && flows.header(urgent).is_err() && flows.close(urgent).is_err());
    }
}
