//! Tests of the driver with transports in memory.

use std::sync::{Arc, Mutex};

use takt_core::{Config, FlowTag};
use takt_transport::{Capabilities, Commit, FlowSpec, Locators, Receive, RxFrame, Scan, Status, TransportError};
use takt_wire::GuidPrefix;

use super::transmit::{FlushSet, Outgoing};
use super::*;
use crate::Error;
use crate::runtime::poll::Ready;

/// Committed datagrams: bytes, flow and destinations.
type Sent = Arc<Mutex<Vec<(Vec<u8>, FlowId, Vec<Locator>)>>>;

/// Transport that serves one kind of locator and records what is sent.
struct Fake {
    kind: i32,
    locators: Locators,
    frame: Vec<u8>,
    sent: Sent,
    next_flow: u16,
    refuses_flows: bool,
    open_flows: Arc<Mutex<Vec<FlowId>>>,
}

impl Fake {
    fn new(kind: i32, frame_len: usize) -> (Self, Sent) {
        let sent = Sent::default();
        let fake = Self {
            kind,
            locators: Locators::default(),
            frame: vec![0; frame_len],
            sent: Arc::clone(&sent),
            next_flow: 1,
            refuses_flows: false,
            open_flows: Arc::default(),
        };
        (fake, sent)
    }
}

impl Transport for Fake {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "fake", max_message_len: self.frame.len(), scans_memory: false }
    }

    fn status(&self) -> Status<'_> {
        Status::new(&self.locators, TransportStats::default())
    }

    fn reach(&self, locator: &Locator) -> Reach {
        Reach::from(locator.kind == self.kind)
    }

    fn open_flow(&mut self, _: &FlowSpec) -> std::result::Result<(FlowId, Vec<Locator>), TransportError> {
        if self.refuses_flows {
            return Err(TransportError::new("open flow", "fake", std::io::ErrorKind::Other.into()));
        }
        let flow = FlowId(self.next_flow);
        self.next_flow += 1;
        self.open_flows.lock().expect("no panic").push(flow);
        Ok((flow, vec![Locator { kind: self.kind, port: u32::from(flow.0), address: [0; 16] }]))
    }

    fn close_flow(&mut self, flow: FlowId) -> std::result::Result<(), TransportError> {
        self.open_flows.lock().expect("no panic").retain(|open| *open != flow);
        Ok(())
    }

    fn loan(&mut self) -> std::result::Result<&mut [u8], TransportError> {
        Ok(&mut self.frame)
    }

    fn commit(&mut self, datagram: Commit<'_>) -> std::result::Result<(), TransportError> {
        let len = datagram.assemble(&mut self.frame)?;
        let Commit { flow, destinations, .. } = datagram;
        self.sent.lock().expect("no panic").push((self.frame[..len].to_vec(), flow, destinations.to_vec()));
        Ok(())
    }

    fn flush(&mut self) -> std::result::Result<(), TransportError> {
        Ok(())
    }

    fn recv(&mut self, _: Receive) -> std::result::Result<Option<RxFrame<'_>>, TransportError> {
        Err(TransportError::new("receive", "fake", std::io::ErrorKind::Other.into()))
    }
}

fn locator(kind: i32, port: u32) -> Locator {
    Locator { kind, port, address: [7; 16] }
}

fn driver(transports: Vec<Box<dyn Transport>>, peers: Vec<Locator>) -> Driver {
    let mut config = Config::new(0, GuidPrefix([1; 12]));
    config.initial_peers = peers;
    let core = Participant::new(config, clock::now()).expect("a sound configuration");
    Driver::new(core, transports, Roles::all())
}

const ROOM: usize = 1500;

#[test]
fn datagram_reaches_each_destination_by_the_first_transport_that_serves_it() {
    let (udp, udp_sent) = Fake::new(Locator::KIND_UDP_V4, ROOM);
    let (shm, shm_sent) = Fake::new(Locator::KIND_SHM, ROOM);
    let (second_shm, unused) = Fake::new(Locator::KIND_SHM, ROOM);
    let destinations = [
        locator(Locator::KIND_UDP_V4, 1),
        locator(Locator::KIND_SHM, 2),
        locator(Locator::KIND_ETHERNET, 3),
        locator(Locator::KIND_UDP_V4, 4),
    ];
    let mut all: Vec<Box<dyn Transport>> = vec![Box::new(udp), Box::new(shm), Box::new(second_shm)];
    let flows = [FlowId(3), FlowId(4), FlowId(5)];
    let expect = |flow, destinations: &[Locator]| vec![(b"hello".to_vec(), flow, destinations.to_vec())];
    // The last octets of the datagram may be in a separate payload.
    for (frame_owner, payload) in (0..3).flat_map(|frame_owner| [(frame_owner, &b""[..]), (frame_owner, b"lo")]) {
        let len = 5 - payload.len();
        all[frame_owner].loan().expect("a frame")[..len].copy_from_slice(&b"hello"[..len]);
        let outgoing = Outgoing {
            len,
            is_fragment: false,
            payload,
            flows: &flows,
            transports: TransportSet::ALL,
            destinations: &destinations,
            loan: None,
        };
        let mut counters = DriverCounters::default();
        let mut to_flush = FlushSet::default();
        assert_eq!(outgoing.route(&mut all, frame_owner, &mut Vec::new(), &mut to_flush, &mut counters), frame_owner);
        assert_eq!([0, 1, 2].map(|index| to_flush.has(index)), [true, true, false], "the participant to flush");
        all[0].loan().expect("a frame")[..5].fill(0);
        all[1].loan().expect("a frame")[..5].fill(0);
        let take = |sent: &Sent| std::mem::take(&mut *sent.lock().expect("no panic"));
        assert_eq!(take(&udp_sent), expect(FlowId(3), &[destinations[0], destinations[3]]), "loaned by {frame_owner}");
        assert_eq!(take(&shm_sent), expect(FlowId(4), &[destinations[1]]), "loaned by {frame_owner}");
        assert!(unused.lock().expect("no panic").is_empty());
        assert_eq!(counters, DriverCounters { unserved_destinations: 1, ..DriverCounters::default() });
    }
}

#[test]
fn only_transport_of_a_datagram_provides_the_next_frame() {
    let (udp, _) = Fake::new(Locator::KIND_UDP_V4, ROOM);
    let (shm, _) = Fake::new(Locator::KIND_SHM, ROOM);
    let mut both: Vec<Box<dyn Transport>> = vec![Box::new(udp), Box::new(shm)];
    let (to_udp, to_shm) = (locator(Locator::KIND_UDP_V4, 1), locator(Locator::KIND_SHM, 2));
    let mut route = |frame_owner, destinations: &[Locator]| {
        let outgoing = Outgoing {
            len: 5,
            is_fragment: false,
            payload: &[],
            flows: &[FlowId::DEFAULT; 2],
            transports: TransportSet::ALL,
            destinations,
            loan: None,
        };
        let (mut to_flush, mut counters) = (FlushSet::default(), DriverCounters::default());
        let next = outgoing.route(&mut both, frame_owner, &mut Vec::new(), &mut to_flush, &mut counters);
        assert_eq!(
            [to_flush.has(0), to_flush.has(1)],
            [destinations.contains(&to_udp), destinations.contains(&to_shm)]
        );
        next
    };
    assert_eq!((route(0, &[to_shm]), route(1, &[to_shm, to_shm]), route(1, &[to_udp])), (1, 1, 0));
    assert_eq!((route(0, &[to_shm, to_udp]), route(1, &[to_shm, to_udp])), (0, 1));
}

#[test]
fn datagram_too_large_for_one_transport_is_counted_and_reaches_the_others() {
    let (udp, udp_sent) = Fake::new(Locator::KIND_UDP_V4, ROOM);
    let (shm, shm_sent) = Fake::new(Locator::KIND_SHM, 16);
    let destinations = [locator(Locator::KIND_SHM, 2), locator(Locator::KIND_UDP_V4, 1)];
    let mut both: Vec<Box<dyn Transport>> = vec![Box::new(udp), Box::new(shm)];
    let outgoing = Outgoing {
        len: 100,
        is_fragment: false,
        payload: &[],
        flows: &[FlowId::DEFAULT; 2],
        transports: TransportSet::ALL,
        destinations: &destinations,
        loan: None,
    };
    let mut counters = DriverCounters::default();
    outgoing.route(&mut both, 0, &mut Vec::new(), &mut FlushSet::default(), &mut counters);
    assert_eq!(udp_sent.lock().expect("no panic").len(), 1);
    assert!(shm_sent.lock().expect("no panic").is_empty());
    assert_eq!(counters.send_failures, 1);
}

#[test]
fn announcements_reach_the_peers_of_every_transport() {
    let (udp, udp_sent) = Fake::new(Locator::KIND_UDP_V4, ROOM);
    let (shm, shm_sent) = Fake::new(Locator::KIND_SHM, ROOM);
    let peers = vec![locator(Locator::KIND_UDP_V4, 7400), locator(Locator::KIND_SHM, 1)];
    let mut driver = driver(vec![Box::new(udp), Box::new(shm)], peers);
    driver.run_timers(clock::now());
    driver.transmit(clock::now());
    for sent in [udp_sent, shm_sent] {
        let sent = sent.lock().expect("no panic");
        assert!(sent.iter().all(|(bytes, ..)| bytes.starts_with(b"RTPS")));
        assert!(!sent.is_empty());
    }
}

#[test]
fn receive_failure_of_a_transport_is_counted() {
    let (udp, _) = Fake::new(Locator::KIND_UDP_V4, ROOM);
    let mut driver = driver(vec![Box::new(udp)], Vec::new());
    assert!(!driver.receive(Scan::All, Ready::ALL));
    assert_eq!(driver.counters().receive_failures, 1);
}

#[test]
fn transport_without_descriptors_is_polled() {
    let (udp, _) = Fake::new(Locator::KIND_UDP_V4, ROOM);
    let mut driver = driver(vec![Box::new(udp)], Vec::new());
    let now = clock::now();
    let until = driver.prepare_sleep(&mut PollSet::default(), now).expect("a moment");
    assert!(until <= now.after(POLL_PERIOD));
}

#[test]
fn flow_opens_on_all_transports_or_none() {
    let (one, _) = Fake::new(Locator::KIND_UDP_V4, ROOM);
    let (mut two, _) = Fake::new(Locator::KIND_SHM, ROOM);
    two.refuses_flows = true;
    let open = Arc::clone(&one.open_flows);
    let mut driver = driver(vec![Box::new(one), Box::new(two)], Vec::new());
    let result = driver.open_flow(&FlowSpec { own_port: true, transport_priority: 0 }, TransportSet::ALL);
    assert!(matches!(result, Err(Error::Transport(_))), "{result:?}");
    assert!(open.lock().expect("no panic").is_empty(), "closed again");
}

#[test]
fn writer_with_a_priority_has_a_second_flow_without_it_for_history() {
    let (udp, _) = Fake::new(Locator::KIND_UDP_V4, ROOM);
    let open = Arc::clone(&udp.open_flows);
    let (shm, _) = Fake::new(Locator::KIND_SHM, ROOM);
    let mut driver = driver(vec![Box::new(udp), Box::new(shm)], Vec::new());
    for own_port in [false, true] {
        let urgent = FlowSpec { own_port, transport_priority: 46 };
        let (flows, _) = driver.open_writer_flows(&urgent, TransportSet::ALL).expect("flows");
        assert_eq!(flows.history, FlowTag::default());
        assert_ne!(flows.live, flows.history);
        driver.close_writer_flows(flows);
        // The first transport only; discovery uses both.
        let (flows, _) = driver.open_writer_flows(&urgent, TransportSet::default().with(0)).expect("flows");
        assert_ne!(flows.history, FlowTag::default());
        assert_ne!(flows.live, flows.history);
        driver.close_writer_flows(flows);
        let plain = FlowSpec { own_port, transport_priority: 0 };
        let (flows, _) = driver.open_writer_flows(&plain, TransportSet::ALL).expect("flows");
        assert_eq!(flows.live, flows.history);
        driver.close_writer_flows(flows);
    }
    assert!(open.lock().expect("no panic").is_empty());
    assert!(driver.flows.iter().skip(1).all(Option::is_none));
}

#[test]
fn closed_flow_tags_are_reused() {
    let (udp, _) = Fake::new(Locator::KIND_UDP_V4, ROOM);
    let open = Arc::clone(&udp.open_flows);
    let mut driver = driver(vec![Box::new(udp)], Vec::new());
    let spec = FlowSpec { own_port: true, transport_priority: 3 };
    let (first, reached_at) = driver.open_flow(&spec, TransportSet::ALL).expect("a flow");
    let (second, _) = driver.open_flow(&spec, TransportSet::ALL).expect("a flow");
    assert_ne!(first, second);
    assert_eq!(reached_at.len(), 1);
    driver.close_flow(first);
    assert_eq!(*open.lock().expect("no panic"), [FlowId(2)]);
    assert_eq!(driver.open_flow(&spec, TransportSet::ALL).expect("a flow").0, first);
    let (default, locators) = driver.open_flow(&FlowSpec::default(), TransportSet::ALL).expect("always open");
    assert_eq!((default, locators), (FlowTag::default(), Vec::new()));
}
