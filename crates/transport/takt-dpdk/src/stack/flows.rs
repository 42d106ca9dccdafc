//! Flows and ports of the stack.

use takt_transport::urgency_buffer::urgency;
use takt_transport::{FlowId, FlowSpec};

/// First port for flows (RFC 6335 §6).
const EPHEMERAL: u16 = 49_152;

/// Header fields of outgoing datagrams of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FlowHeader {
    pub(super) port: u16,
    /// Differentiated services code point, 0 to 63: the TRANSPORT_PRIORITY itself.
    pub(super) dscp: u8,
}

#[derive(Debug, Clone, Copy)]
struct Flow {
    header: FlowHeader,
    own_port: bool,
    /// Number of users: opened and not yet closed.
    users: u32,
}

impl Flow {
    fn urgency(&self) -> i32 {
        urgency(&FlowSpec { own_port: self.own_port, transport_priority: self.header.dscp.into() })
    }
}

/// All flows, the default one first.
#[derive(Debug)]
pub(super) struct Flows {
    flows: Vec<Option<Flow>>,
    /// Open unicast ports, sorted.
    ports: Vec<(u16, FlowId)>,
}

impl Flows {
    pub(super) fn new(metatraffic: u16, user: u16) -> Self {
        let default = Flow { header: FlowHeader { port: user, dscp: 0 }, own_port: false, users: 1 };
        let mut ports = vec![(metatraffic, FlowId::DEFAULT), (user, FlowId::DEFAULT)];
        ports.sort_unstable();
        Self { flows: vec![Some(default)], ports }
    }

    /// Opens a flow, and returns its port if it has its own. `None` if no ports are left.
    pub(super) fn open(&mut self, spec: &FlowSpec) -> Option<(FlowId, Option<u16>)> {
        let dscp = spec.transport_priority.clamp(0, 63) as u8;
        if !spec.own_port {
            let same = |flow: &Option<Flow>| flow.is_some_and(|flow| !flow.own_port && flow.header.dscp == dscp);
            if let Some(at) = self.flows.iter().position(same) {
                if let Some(flow) = &mut self.flows[at] {
                    flow.users += 1;
                }
                return Some((FlowId(at as u16), None));
            }
        }
        let free = self.flows.iter().position(Option::is_none).unwrap_or(self.flows.len());
        let id = FlowId(u16::try_from(free).ok()?); // tidy-allow(dropped-cause): there are never so many flows.
        let mut port = self.flows.first()?.as_ref()?.header.port;
        if spec.own_port {
            let mut at = self.ports.partition_point(|entry| entry.0 < EPHEMERAL);
            port = EPHEMERAL;
            while self.ports.get(at).is_some_and(|entry| entry.0 == port) {
                (at, port) = (at + 1, port.checked_add(1)?);
            }
            self.ports.insert(at, (port, id));
        }
        let flow = Flow { header: FlowHeader { port, dscp }, own_port: spec.own_port, users: 1 };
        if free == self.flows.len() {
            self.flows.push(None);
        }
        self.flows[free] = Some(flow);
        Some((id, spec.own_port.then_some(port)))
    }

    /// Removes one user of a flow; returns false if there is no such flow.
    pub(super) fn close(&mut self, id: FlowId) -> bool {
        if id == FlowId::DEFAULT {
            return true;
        }
        let Some(slot) = self.flows.get_mut(usize::from(id.0)) else {
            return false;
        };
        let Some(flow) = slot else {
            return false;
        };
        flow.users -= 1;
        if flow.users == 0 {
            *slot = None;
            self.ports.retain(|entry| entry.1 != id);
        }
        true
    }

    pub(super) fn header(&self, id: FlowId) -> Option<FlowHeader> {
        self.flows.get(usize::from(id.0))?.as_ref().map(|flow| flow.header)
    }

    /// Returns the urgency of datagrams that arrive for a flow; see [`urgency`].
    pub(super) fn urgency(&self, id: FlowId) -> i32 {
        self.flows.get(usize::from(id.0)).and_then(Option::as_ref).map_or(0, Flow::urgency)
    }

    /// Returns the highest urgency that can arrive.
    pub(super) fn most_urgent(&self) -> i32 {
        self.flows.iter().flatten().map(Flow::urgency).max().unwrap_or(0)
    }

    /// Returns the flow of a port.
    pub(super) fn flow_of(&self, port: u16) -> Option<FlowId> {
        let at = self.ports.binary_search_by_key(&port, |entry| entry.0).ok()?; // tidy-allow(dropped-cause): no flow has this port.
        Some(self.ports[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: FlowSpec = FlowSpec { own_port: true, transport_priority: 46 };

    #[test]
    fn ports_run_out_and_become_free_again() {
        let mut flows = Flows::new(7410, 7411);
        let opened: Vec<_> = std::iter::from_fn(|| flows.open(&OWN)).collect();
        assert_eq!(opened.len(), 16_384);
        let (id, port) = opened[77];
        assert_eq!(flows.flow_of(port.expect("its own")), Some(id));
        assert!(flows.close(id) && !flows.close(id));
        assert_eq!((flows.header(id), flows.flow_of(port.expect("its own"))), (None, None));
        assert_eq!(flows.open(&OWN), Some((id, port)));
        assert_eq!(flows.header(id), port.map(|port| FlowHeader { port, dscp: 46 }));
    }

    #[test]
    fn flows_of_one_priority_are_shared() {
        let mut flows = Flows::new(7410, 7411);
        let open = |flows: &mut Flows, transport_priority| {
            flows.open(&FlowSpec { own_port: false, transport_priority }).expect("room").0
        };
        assert_eq!((open(&mut flows, 0), open(&mut flows, -5)), (FlowId::DEFAULT, FlowId::DEFAULT));
        let (a, b, c) = (open(&mut flows, 63), open(&mut flows, 1_000), open(&mut flows, 8));
        assert!(a == b && a != c);
        assert_eq!(flows.header(a), Some(FlowHeader { port: 7411, dscp: 63 }));
        assert!(flows.close(a) && flows.close(a) && !flows.close(a));
        assert_eq!((flows.flow_of(7410), flows.flow_of(7411)), (Some(FlowId::DEFAULT), Some(FlowId::DEFAULT)));
        assert!(flows.close(FlowId::DEFAULT) && flows.header(FlowId::DEFAULT).is_some());
    }
}
