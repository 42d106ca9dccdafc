//! Simulated network of core participants in memory: a virtual clock, a switch that may lose
//! datagrams, and a record of all datagrams.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use takt_core::{
    ChangeKind, Config, Event, Instant, Interface, NewChange, Participant, ReadCursor, ReaderHandle, ReaderSpec,
    Received, Selector, WriterHandle, WriterSpec,
};
use takt_wire::qos::{
    DataReaderQos, DataWriterQos, History, PublisherQos, Reliability, ReliabilityKind, SubscriberQos, TopicData,
};
use takt_wire::{GuidPrefix, Locator, Timestamp};

/// First second of the virtual clock, since 1970.
pub const START: i64 = 1_800_000_000;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
const MILLISECOND: u64 = 1_000_000;

/// Maximum number of datagrams of a node at one moment.
const AT_ONCE_MAX: usize = 10_000;

#[derive(Clone, Debug)]
pub struct Datagram {
    pub from: Locator,
    pub to: Locator,
    pub octets: Vec<u8>,
}

/// Fault injector: may change a datagram, and returns whether it is delivered.
pub type Fault = Box<dyn FnMut(&mut Datagram) -> bool>;

pub struct Network {
    pub now: Instant,
    pub nodes: Vec<Participant>,
    /// All datagrams that were sent.
    pub sent: Vec<Datagram>,
    /// Fault injector, if there is one.
    pub fault: Option<Fault>,
    wire: VecDeque<Datagram>,
}

pub fn address(node: usize) -> Locator {
    Locator::udp_v4(Ipv4Addr::new(10, 0, 0, u8::try_from(node + 1).expect("a small network")), 7411)
}

pub fn config(node: usize, prefix: GuidPrefix) -> Config {
    let mut config = Config::new(0, prefix);
    let address = address(node);
    let ip = address.ip().expect("the address is IPv4");
    config.interfaces =
        vec![Interface { name: "sim0".to_owned(), addresses: vec![(ip, 24)], mtu: 1_500, loopback: false }];
    config.locators.metatraffic_unicast = vec![address];
    config.locators.default_unicast = vec![address];
    config.initial_peers = vec![Locator::udp_v4(GROUP, 7400)];
    config
}

impl Network {
    pub fn new() -> Self {
        Self {
            now: Instant(1_000 * MILLISECOND),
            nodes: Vec::new(),
            sent: Vec::new(),
            fault: None,
            wire: VecDeque::new(),
        }
    }

    /// Returns the time of all wall clocks.
    pub fn wall(&self) -> Timestamp {
        Timestamp::from_nanos(START * 1_000_000_000 + i64::try_from(self.now.0).expect("a short run"))
    }

    pub fn join(&mut self, mut node: Participant) -> usize {
        node.set_wall_clock(self.now, self.wall());
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Runs the network until `done` holds or the limit has passed; returns whether `done` held.
    pub fn run_until(&mut self, limit_ms: u64, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = Instant(self.now.0 + limit_ms * MILLISECOND);
        loop {
            self.transmit();
            if done(self) {
                return true;
            }
            if self.deliver() {
                continue;
            }
            let next = self.nodes.iter().filter_map(Participant::poll_timeout).min().unwrap_or(end);
            if next > end {
                self.now = end;
                return done(self);
            }
            self.now = self.now.max(next);
            for node in &mut self.nodes {
                node.handle_timeout(self.now);
            }
        }
    }

    pub fn run(&mut self, ms: u64) {
        self.run_until(ms, |_| false);
    }

    fn transmit(&mut self) {
        let mut frame = vec![0; 65_507];
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let sent_before = self.sent.len();
            while let Some(transmit) = node.poll_transmit_gathering(self.now, &mut frame) {
                assert!(self.sent.len() - sent_before < AT_ONCE_MAX, "node {index} sends without end");
                assert!(transmit.payload.is_empty(), "protected messages are sent from one place");
                let len = transmit.len;
                let destinations: Vec<_> = transmit.destinations.to_vec();
                for to in destinations {
                    let mut datagram = Datagram { from: address(index), to, octets: frame[..len].to_vec() };
                    self.sent.push(datagram.clone());
                    if self.fault.as_mut().is_none_or(|fault| fault(&mut datagram)) {
                        self.wire.push_back(datagram);
                    }
                }
            }
        }
    }

    /// Sends a datagram as if it came from a node.
    pub fn inject(&mut self, datagram: Datagram) {
        self.wire.push_back(datagram);
    }

    /// Delivers one datagram after a microsecond.
    fn deliver(&mut self) -> bool {
        let Some(datagram) = self.wire.pop_front() else { return false };
        self.now = Instant(self.now.0 + 1_000);
        let multicast = datagram.to.is_multicast();
        let received = Received { source: datagram.from, multicast };
        for (index, node) in self.nodes.iter_mut().enumerate() {
            if datagram.to == address(index) || (multicast && address(index) != datagram.from) {
                node.handle_datagram(self.now, received, &datagram.octets);
            }
        }
        true
    }

    pub fn events(&mut self, node: usize) -> Vec<Event> {
        std::iter::from_fn(|| self.nodes[node].poll_event()).collect()
    }

    pub fn writer(&mut self, node: usize, spec: WriterSpec) -> WriterHandle {
        self.nodes[node].create_writer(self.now, spec).expect("the writer is allowed")
    }

    pub fn reader(&mut self, node: usize, spec: ReaderSpec) -> ReaderHandle {
        self.nodes[node].create_reader(self.now, spec).expect("the reader is allowed")
    }

    /// Runs until writer and reader are matched; returns whether they are.
    pub fn match_within(&mut self, ms: u64, writer: (usize, WriterHandle), reader: (usize, ReaderHandle)) -> bool {
        self.run_until(ms, |network| {
            let readers = network.nodes[writer.0].matched_subscriptions(writer.1).expect("the writer exists");
            let writers = network.nodes[reader.0].matched_publications(reader.1).expect("the reader exists");
            !readers.is_empty() && !writers.is_empty()
        })
    }

    pub fn write(&mut self, node: usize, writer: WriterHandle, payload: &[u8]) {
        let change = NewChange {
            kind: ChangeKind::Alive,
            key_hash: [0; 16],
            source_timestamp: None,
            destinations: &[],
            payload_len: payload.len(),
        };
        let written = self.nodes[node].write(self.now, writer, &change, |slot| {
            slot[..payload.len()].copy_from_slice(payload);
            Some(payload.len())
        });
        written.expect("write accepted");
    }

    pub fn take(&mut self, node: usize, reader: ReaderHandle) -> Option<Vec<u8>> {
        let sample = self.nodes[node].read_next(self.now, reader, Selector::TAKE, &mut ReadCursor::default());
        sample.expect("the reader exists").map(|sample| sample.payload.to_vec())
    }

    /// Reports whether any datagram sent since index `from` contains these octets.
    pub fn shows(&self, from: usize, octets: &[u8]) -> bool {
        self.sent[from..].iter().any(|datagram| datagram.octets.windows(octets.len()).any(|part| part == octets))
    }
}

fn reliable() -> Reliability {
    Reliability { kind: ReliabilityKind::Reliable, max_blocking_time: takt_wire::Duration::ZERO }
}

pub fn writer_spec(topic: &str) -> WriterSpec {
    let qos = DataWriterQos { reliability: reliable(), history: History::KeepAll, ..DataWriterQos::default() };
    WriterSpec {
        topic_name: topic.to_owned(),
        type_name: "Test".to_owned(),
        keyed: false,
        qos,
        publisher: PublisherQos::default(),
        group: None,
        topic_data: TopicData::default(),
        type_information: None,
        max_serialized_len: None,
        flows: takt_core::WriterFlows::default(),
        unicast: Vec::new(),
        filters: None,
    }
}

pub fn reader_spec(topic: &str) -> ReaderSpec {
    let qos = DataReaderQos { reliability: reliable(), history: History::KeepAll, ..DataReaderQos::default() };
    ReaderSpec {
        topic_name: topic.to_owned(),
        type_name: "Test".to_owned(),
        key: None,
        qos,
        subscriber: SubscriberQos::default(),
        group: None,
        topic_data: TopicData::default(),
        type_information: None,
        max_serialized_len: None,
        unicast: Vec::new(),
        content_filter: None,
    }
}

/// Returns a payload of `len` octets that contains its number, and a word by which tests find it.
pub fn payload(number: u32, word: &[u8], len: usize) -> Vec<u8> {
    let mut octets = vec![0, 1, 0, 0];
    octets.extend_from_slice(&number.to_le_bytes());
    octets.extend_from_slice(word);
    octets.resize(len.max(octets.len()), 0x5a);
    octets
}
