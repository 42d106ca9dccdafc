//! Network in memory. Datagrams arrive as soon as they are sent, those of urgent flows first, and
//! those of one flow in order. All ends are on one host, so that participants can exchange samples
//! through shared memory. Ports distinguish them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use takt_schedule::{Priority, PriorityQueue};
use takt_transport::urgency_buffer::urgency;
use takt_transport::{
    Capabilities, Commit, FlowId, FlowSpec, Interface, Locators, Reach, Receive, RxFrame, RxMeta, Status, Transport,
    TransportError, TransportStats,
};
use takt_wire::Locator;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DISCOVERY: u16 = 7410;

/// Ports of the first end: for discovery, for user data, then one for each urgent flow.
const FIRST_PORT: u16 = 10_000;
const PORTS_PER_END: u16 = 100;
const USER: u16 = 1;
const FIRST_OWN: u16 = 2;

/// Maximum length of a datagram in octets.
pub(super) const ROOM: usize = 1400;

type Result<T> = std::result::Result<T, TransportError>;

/// End of one participant.
struct Node {
    arrived: PriorityQueue<(Vec<u8>, RxMeta)>,
    /// Priorities of the urgent flows, by port from [`FIRST_OWN`] on.
    urgencies: Vec<i32>,
    /// The end loans no frames for sending.
    is_broken: bool,
}

/// Network with all its ends.
#[derive(Clone, Default)]
pub(super) struct Network(Arc<Mutex<Vec<Node>>>);

impl Network {
    /// Adds an end and returns its transport.
    pub(super) fn join(&self) -> Box<dyn Transport> {
        let mut nodes = self.0.lock().expect("no panic");
        let node = Node { arrived: PriorityQueue::new(), urgencies: Vec::new(), is_broken: false };
        nodes.push(node);
        let first_port = FIRST_PORT + (nodes.len() as u16 - 1) * PORTS_PER_END;
        let interface = Interface {
            name: "net0".into(),
            index: 1,
            addresses: vec![(IpAddr::V4(HOST), 8)],
            mtu: 1500,
            loopback: false,
            multicast: true,
        };
        let locators = Locators {
            metatraffic_unicast: vec![Locator::udp_v4(HOST, first_port)],
            metatraffic_multicast: vec![Locator::udp_v4(GROUP, DISCOVERY)],
            default_unicast: vec![Locator::udp_v4(HOST, first_port + USER)],
            default_multicast: Vec::new(),
        };
        let end = End {
            network: self.clone(),
            at: nodes.len() - 1,
            first_port,
            interface: [interface],
            locators,
            frame: vec![0; ROOM],
            received: Vec::new(),
        };
        Box::new(end)
    }

    /// Makes the end loan no more frames.
    pub(super) fn break_end(&self, at: usize) {
        self.0.lock().expect("no panic")[at].is_broken = true;
    }
}

struct End {
    network: Network,
    at: usize,
    first_port: u16,
    interface: [Interface; 1],
    locators: Locators,
    frame: Vec<u8>,
    received: Vec<u8>,
}

impl End {
    fn take(&mut self, wanted: impl FnOnce(&mut Node) -> Option<(Vec<u8>, RxMeta)>) -> Option<RxFrame<'_>> {
        let (bytes, meta) = wanted(&mut self.network.0.lock().expect("no panic")[self.at])?;
        self.received = bytes;
        Some(RxFrame::new(&self.received, meta))
    }
}

impl Transport for End {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "memory", max_message_len: ROOM, scans_memory: false }
    }

    /// Has a descriptor on which no thread ever sleeps.
    fn status(&self) -> Status<'_> {
        let status = Status::new(&self.locators, TransportStats::default());
        Status { interfaces: &self.interface, descriptors: &[0], ..status }
    }

    fn reach(&self, locator: &Locator) -> Reach {
        Reach::from(locator.kind == Locator::KIND_UDP_V4)
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>)> {
        if !spec.own_port {
            return Ok((FlowId::DEFAULT, Vec::new()));
        }
        let urgencies = &mut self.network.0.lock().expect("no panic")[self.at].urgencies;
        urgencies.push(urgency(spec));
        let flow = urgencies.len() as u16;
        assert!(flow <= PORTS_PER_END - FIRST_OWN, "an end has ports for so many flows");
        Ok((FlowId(flow), vec![Locator::udp_v4(HOST, self.first_port + FIRST_OWN + flow - 1)]))
    }

    fn close_flow(&mut self, _: FlowId) -> Result<()> {
        Ok(())
    }

    fn loan(&mut self) -> Result<&mut [u8]> {
        if self.network.0.lock().expect("no panic")[self.at].is_broken {
            return Err(TransportError::new("loan", "a frame", std::io::ErrorKind::OutOfMemory.into()));
        }
        Ok(&mut self.frame)
    }

    fn commit(&mut self, datagram: Commit<'_>) -> Result<()> {
        let len = datagram.assemble(&mut self.frame)?;
        let source = self.locators.default_unicast[0];
        let mut nodes = self.network.0.lock().expect("no panic");
        for destination in datagram.destinations {
            let multicast = destination.is_multicast();
            let port = (destination.port as u16).saturating_sub(FIRST_PORT);
            let (to, offset) = (usize::from(port / PORTS_PER_END), port % PORTS_PER_END);
            for (at, node) in nodes.iter_mut().enumerate().filter(|(at, _)| *at != self.at) {
                if !multicast && at != to {
                    continue;
                }
                let own = offset.checked_sub(FIRST_OWN).filter(|_| !multicast);
                let urgency = own.map_or(0, |own| node.urgencies[usize::from(own)]);
                let flow = own.map_or(0, |own| own + 1);
                let meta = RxMeta { source, local: *destination, flow: FlowId(flow), multicast };
                node.arrived.push(Priority::new(urgency), (self.frame[..len].to_vec(), meta));
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>> {
        Ok(self.take(|node| match request {
            Receive::Urgent { above } if node.arrived.first_priority() <= Some(Priority::new(above)) => None,
            Receive::Any(_) | Receive::Urgent { .. } => Some(node.arrived.pop()?.1),
            Receive::NotUrgent(_) => node.arrived.remove(Priority::NORMAL, |_| true),
        }))
    }
}
