//! In-memory network of `takt-core` participants connected by the interceptor, with loss.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

use takt_core::{Config as ParticipantConfig, Instant, Interface, Participant, ReaderHandle, Received, WriterHandle};
use takt_openflow::channel::Instant as SwitchInstant;
use takt_packet::MacAddress;
use takt_sdn::PortRef;
use takt_sdn::discovery::{Config, Decision, Event, Interceptor, Pair};
use takt_sdn::frame::{Frame, UdpFrame};
use takt_wire::qos::{DataReaderQos, DataWriterQos, History, Reliability, ReliabilityKind};
use takt_wire::{GuidPrefix, Locator, Timestamp};

use crate::endpoints::{reader_spec, writer_spec};

pub const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
pub const SECOND: u64 = 1_000_000_000;

/// USER_DATA of a writer with a contract.
pub const OFFER: &str = "rt.minsep=5ms;rt.maxsize=1400";
/// USER_DATA of a reader with a contract.
pub const REQUEST: &str = "rt.e2e=1ms";

pub struct Network {
    pub now: u64,
    pub nodes: Vec<Participant>,
    pub interceptor: Interceptor,
    pub events: Vec<Event>,
    /// Percentage of lost datagrams, before the interceptor and after it.
    pub loss: u64,
    /// Frames that arrived at the interceptor, by node.
    pub seen: Vec<(usize, Vec<u8>)>,
    /// Whether pairs are released as soon as they are found.
    pub releases_all: bool,
    wire: VecDeque<(usize, Vec<u8>)>,
    dice: u64,
    mtu: usize,
}

pub fn port(node: usize) -> PortRef {
    PortRef::new(1, node as u32 + 1)
}

pub fn address(node: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, node as u8 + 1], 7411))
}

pub fn mac(node: usize) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, node as u8 + 1])
}

pub fn prefix(node: usize) -> GuidPrefix {
    GuidPrefix([1, 0x7a, 0, 0, 0, 0, 0, 0, 0, 0, 1, node as u8 + 1])
}

impl Network {
    pub fn new(nodes: usize, seed: u64, config: Config) -> Self {
        let mut network = Self {
            now: SECOND,
            nodes: Vec::new(),
            interceptor: Interceptor::new(config),
            events: Vec::new(),
            loss: 0,
            seen: Vec::new(),
            releases_all: false,
            wire: VecDeque::new(),
            dice: seed | 1,
            mtu: 1500,
        };
        for _ in 0..nodes {
            network.join();
        }
        network
    }

    pub fn join(&mut self) {
        let node = self.nodes.len();
        let mut config = ParticipantConfig::new(0, prefix(node));
        let own = Locator::from(address(node));
        let addresses = vec![(address(node).ip(), 24)];
        config.interfaces = vec![Interface { name: "sim0".into(), addresses, mtu: self.mtu, loopback: false }];
        config.locators.metatraffic_unicast = vec![own];
        config.locators.default_unicast = vec![own];
        config.initial_peers = vec![Locator::udp_v4(GROUP, 7400)];
        let mut participant = Participant::new(config, Instant(self.now)).expect("the configuration is valid");
        participant.set_wall_clock(Instant(self.now), Timestamp::from_nanos(1_700_000_000 * SECOND as i64));
        self.nodes.push(participant);
    }

    fn is_lost(&mut self) -> bool {
        self.dice ^= self.dice >> 12;
        self.dice ^= self.dice << 25;
        self.dice ^= self.dice >> 27;
        self.dice.wrapping_mul(0x2545_f491_4f6c_dd1d) % 100 < self.loss
    }

    pub fn run(&mut self, millis: u64) {
        self.run_until(millis, |_| false);
    }

    /// Runs until `done` returns true or the time has passed, and reports the last result of
    /// `done`.
    pub fn run_until(&mut self, millis: u64, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + millis * 1_000_000;
        loop {
            self.transmit();
            self.collect();
            if done(self) {
                return true;
            }
            if self.deliver() {
                continue;
            }
            let timers = self.nodes.iter().filter_map(Participant::poll_timeout).map(|at| at.0);
            let next = timers.chain(self.interceptor.poll_timeout().map(|at| at.0)).min().unwrap_or(end);
            if next > end {
                self.now = end;
                return done(self);
            }
            self.now = self.now.max(next);
            for node in &mut self.nodes {
                node.handle_timeout(Instant(self.now));
            }
            self.interceptor.handle_timeout(SwitchInstant(self.now));
        }
    }

    fn transmit(&mut self) {
        let mut buffer = vec![0; 65_507];
        for index in 0..self.nodes.len() {
            while let Some(transmit) = self.nodes[index].poll_transmit_gathering(Instant(self.now), &mut buffer) {
                let len = transmit.len + transmit.payload.len();
                let payload = transmit.payload.to_vec();
                let (start, destinations) = (transmit.len, transmit.destinations.to_vec());
                buffer[start..len].copy_from_slice(&payload);
                for to in destinations.iter().filter_map(Locator::socket_addr) {
                    let frame = udp(index, to, &buffer[..len]);
                    self.send(index, frame);
                }
            }
        }
    }

    /// Sends a frame from a node's host to the switch.
    pub fn send(&mut self, node: usize, frame: Vec<u8>) {
        if self.is_lost() {
            return;
        }
        self.seen.push((node, frame.clone()));
        let frames = match self.interceptor.handle(SwitchInstant(self.now), port(node), &frame) {
            Decision::Pass => vec![frame],
            Decision::Replace(frames) => frames,
        };
        self.wire.extend(frames.into_iter().map(|frame| (node, frame)));
    }

    fn collect(&mut self) {
        while let Some(event) = self.interceptor.poll_event() {
            if let Event::PairFound { pair, contract: Ok(_) } = &event
                && self.releases_all
            {
                self.interceptor.release(SwitchInstant(self.now), *pair).expect("the pair was found");
            }
            self.events.push(event);
        }
        while let Some(emission) = self.interceptor.poll_frame() {
            let from = emission.from.port as usize - 1;
            self.wire.push_back((from, emission.frame));
        }
    }

    fn deliver(&mut self) -> bool {
        let Some((from, bytes)) = self.wire.pop_front() else { return false };
        self.now += 1_000;
        let frame = Frame::parse(&bytes).expect("a frame");
        let (packet, datagram) = frame.udp().expect("a datagram");
        let is_right = datagram.checksum(packet.pseudo_sum(datagram.payload().len() as u16 + 8)).is_acceptable();
        assert!(is_right, "checksum of a frame of node {from}");
        let to = SocketAddr::new(packet.destination(), datagram.destination_port());
        let multicast = to.ip().is_multicast();
        let source = Locator::from(SocketAddr::new(packet.source(), datagram.source_port()));
        let mut reached: Vec<usize> = (0..self.nodes.len()).collect();
        reached.retain(|node| if multicast { *node != from } else { address(*node) == to });
        for node in reached {
            if !self.is_lost() {
                let received = Received { source, multicast };
                self.nodes[node].handle_datagram(Instant(self.now), received, datagram.payload());
            }
        }
        true
    }

    pub fn writer(&mut self, node: usize, topic: &str, user_data: &str) -> WriterHandle {
        let qos = DataWriterQos { reliability: reliable(), history: History::KeepAll, ..DataWriterQos::default() };
        let spec = writer_spec(topic, user_data, qos);
        self.nodes[node].create_writer(Instant(self.now), spec).expect("the writer can be created")
    }

    pub fn reader(&mut self, node: usize, topic: &str, user_data: &str) -> ReaderHandle {
        let qos = DataReaderQos { reliability: reliable(), history: History::KeepAll, ..DataReaderQos::default() };
        let spec = reader_spec(topic, user_data, qos);
        self.nodes[node].create_reader(Instant(self.now), spec).expect("the reader can be created")
    }

    /// Returns the numbers of readers that the writer has matched, and of writers that the reader
    /// has matched.
    pub fn matched(&mut self, writer: (usize, WriterHandle), reader: (usize, ReaderHandle)) -> (usize, usize) {
        let readers = self.nodes[writer.0].matched_subscriptions(writer.1).expect("the writer exists");
        let writers = self.nodes[reader.0].matched_publications(reader.1).expect("the reader exists");
        (readers.len(), writers.len())
    }

    pub fn pair(&mut self, writer: (usize, WriterHandle), reader: (usize, ReaderHandle)) -> Pair {
        let writer = self.nodes[writer.0].writer_guid(writer.1).expect("the writer exists");
        Pair { writer, reader: self.nodes[reader.0].reader_guid(reader.1).expect("the reader exists") }
    }

    pub fn at(&self) -> SwitchInstant {
        SwitchInstant(self.now)
    }
}

/// Builds a frame with a datagram of a node.
pub fn udp(node: usize, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let octets = if to.ip().is_multicast() { [1, 0, 0x5e, 0x7f, 0, 1] } else { mac_of(to) };
    let frame = UdpFrame {
        destination_mac: MacAddress(octets),
        source_mac: mac(node),
        tags: &[],
        source: address(node),
        destination: to,
        hop_limit: 64,
        traffic_class: 0,
        payload,
    };
    frame.build().expect("the frame is valid")
}

fn mac_of(to: SocketAddr) -> [u8; 6] {
    match to {
        SocketAddr::V4(to) => [2, 0, 0, 0, 0, to.ip().octets()[3]],
        SocketAddr::V6(_) => [2, 0, 0, 0, 0, 0],
    }
}

fn reliable() -> Reliability {
    Reliability { kind: ReliabilityKind::Reliable, max_blocking_time: takt_wire::Duration::ZERO }
}
