//! In-memory network: participants, a virtual clock, and seeded loss, duplication and reordering.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use takt_core::*;
use takt_wire::qos::*;
use takt_wire::{GuidPrefix, Locator, Timestamp};

pub const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

/// Destination port of user data to the group.
pub const USER_PORT: u32 = 7401;

/// Pseudorandom generator xorshift64*: small, and sufficient for tests.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % sides
    }

    pub fn percent(&mut self, chance: u64) -> bool {
        self.roll(100) < chance
    }
}

/// Faults in percent of the datagrams.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    pub loss: u64,
    pub duplication: u64,
    pub reordering: u64,
}

#[derive(Clone)]
struct Datagram {
    from: Locator,
    to: Locator,
    bytes: Vec<u8>,
}

pub struct Network {
    pub now: Instant,
    pub nodes: Vec<Participant>,
    /// Listening address of each node.
    pub addresses: Vec<Locator>,
    /// Further listening addresses of nodes.
    pub further: Vec<(usize, Locator)>,
    pub faults: Faults,
    /// Nodes that neither send nor receive.
    pub cut: Vec<usize>,
    /// Nodes that receive, but whose datagrams are all lost.
    pub muted: Vec<usize>,
    /// Nodes that do not receive the group of user data.
    pub deaf: Vec<usize>,
    /// Nodes whose processes do not run; datagrams wait in their sockets.
    held_up: BTreeMap<usize, Vec<Datagram>>,
    /// Nodes without a running process whose timers do not run either.
    stopped: Vec<usize>,
    /// Number of datagrams by destination.
    pub sent_to: BTreeMap<Locator, usize>,
    /// Number of datagrams by flow.
    pub sent_by: BTreeMap<FlowTag, usize>,
    pub delivered: u64,
    /// Number of further datagrams that are carried before all others are lost; `None`: no loss.
    pub keep: Option<usize>,
    /// Longest datagram that the network carries; longer ones are lost. `None`: any.
    pub path_len_max: Option<usize>,
    /// Longest multicast datagram that the network carries. `None`: any.
    pub group_len_max: Option<usize>,
    /// Meter that is read before and after each datagram that the first node builds.
    pub meter: fn() -> u64,
    /// Sum of the meter's increments.
    pub metered: u64,
    /// Length of the longest datagram sent.
    pub longest: usize,
    dice: Dice,
    wire: VecDeque<Datagram>,
    mtu: usize,
    events: BTreeMap<usize, Vec<Event>>,
}

pub fn address(node: usize) -> Locator {
    Locator::udp_v4(Ipv4Addr::new(10, 0, 0, node as u8 + 1), 7411)
}

pub fn prefix(node: usize) -> GuidPrefix {
    GuidPrefix([1, 0x7a, 0, 0, 0, 0, 0, 0, 0, 0, 1, node as u8 + 1])
}

pub fn config(node: usize, mtu: usize) -> Config {
    let mut config = Config::new(0, prefix(node));
    let address = address(node);
    let ip = address.ip().expect("the address is IPv4");
    config.interfaces = vec![Interface { name: "sim0".into(), addresses: vec![(ip, 24)], mtu, loopback: false }];
    config.locators.metatraffic_unicast = vec![address];
    config.locators.default_unicast = vec![address];
    config.initial_peers = vec![Locator::udp_v4(GROUP, 7400)];
    config
}

impl Network {
    pub fn new(nodes: usize, seed: u64) -> Self {
        Self::with_mtu(nodes, seed, 1500)
    }

    pub fn with_mtu(nodes: usize, seed: u64, mtu: usize) -> Self {
        let mut network = Self {
            now: Instant(1_000_000_000),
            nodes: Vec::new(),
            addresses: Vec::new(),
            further: Vec::new(),
            faults: Faults::default(),
            cut: Vec::new(),
            muted: Vec::new(),
            deaf: Vec::new(),
            held_up: BTreeMap::new(),
            stopped: Vec::new(),
            sent_to: BTreeMap::new(),
            sent_by: BTreeMap::new(),
            delivered: 0,
            keep: None,
            path_len_max: None,
            group_len_max: None,
            meter: || 0,
            metered: 0,
            longest: 0,
            dice: Dice(seed | 1),
            wire: VecDeque::new(),
            mtu,
            events: BTreeMap::new(),
        };
        for _ in 0..nodes {
            network.join();
        }
        network
    }

    pub fn join(&mut self) -> usize {
        let node = self.nodes.len();
        self.join_with(config(node, self.mtu))
    }

    pub fn join_with(&mut self, config: Config) -> usize {
        let mut participant = Participant::new(config, self.now).expect("the configuration is valid");
        participant.set_wall_clock(self.now, self.wall());
        self.nodes.push(participant);
        self.addresses.push(address(self.addresses.len()));
        self.nodes.len() - 1
    }

    /// Returns the wall clock of all nodes, unless one was set otherwise.
    pub fn wall(&self) -> Timestamp {
        Timestamp::from_nanos(1_700_000_000_000_000_000 + self.now.0 as i64)
    }

    /// Sends pending datagrams, delivers those in transit, and advances the clock to the next timer
    /// when nothing is left to do. Returns false if the time is up before `done` holds.
    pub fn run_until(&mut self, limit_ms: u64, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = Instant(self.now.0 + limit_ms * 1_000_000);
        loop {
            self.transmit();
            if done(self) {
                return true;
            }
            if self.deliver() {
                continue;
            }
            let runs = |(index, node): (usize, &Participant)| match self.stopped.contains(&index) {
                true => None,
                false => node.poll_timeout(),
            };
            let next = self.nodes.iter().enumerate().filter_map(runs).min().unwrap_or(end);
            if next > end {
                self.now = end;
                return done(self);
            }
            self.now = self.now.max(next);
            for (index, node) in self.nodes.iter_mut().enumerate() {
                if !self.stopped.contains(&index) {
                    node.handle_timeout(self.now);
                }
            }
        }
    }

    /// Changes the address of a node's interface.
    pub fn readdress(&mut self, node: usize, to: Locator) {
        self.addresses[node] = to;
        let ip = to.ip().expect("the address is IPv4");
        let interface = Interface { name: "sim0".into(), addresses: vec![(ip, 24)], mtu: self.mtu, loopback: false };
        let locators = Locators { metatraffic_unicast: vec![to], default_unicast: vec![to], ..Locators::default() };
        assert!(self.nodes[node].handle_interfaces(self.now, vec![interface], locators));
    }

    pub fn run(&mut self, ms: u64) {
        self.run_until(ms, |_| false);
    }

    fn transmit(&mut self) {
        let mut frame = vec![0; 65_507];
        for (index, node) in self.nodes.iter_mut().enumerate() {
            if self.stopped.contains(&index) {
                continue;
            }
            loop {
                let before = (self.meter)();
                let transmit = node.poll_transmit_gathering(self.now, &mut frame);
                self.metered += if index == 0 { (self.meter)() - before } else { 0 };
                let Some(transmit) = transmit else { break };
                let len = transmit.len + transmit.payload.len();
                *self.sent_by.entry(transmit.flow).or_default() += 1;
                frame[transmit.len..len].copy_from_slice(transmit.payload);
                self.longest = self.longest.max(len);
                let destinations = transmit.destinations.to_vec();
                for to in destinations {
                    *self.sent_to.entry(to).or_default() += 1;
                    let is_cut = self.cut.contains(&index) || self.muted.contains(&index);
                    if is_cut || self.dice.percent(self.faults.loss) || self.keep == Some(0) {
                        continue;
                    }
                    let group_len_max = self.group_len_max.filter(|_| to.is_multicast());
                    if [self.path_len_max, group_len_max].into_iter().flatten().any(|max| len > max) {
                        continue;
                    }
                    self.keep = self.keep.map(|keep| keep - 1);
                    let copies = 1 + usize::from(self.dice.percent(self.faults.duplication));
                    for _ in 0..copies {
                        let datagram = Datagram { from: self.addresses[index], to, bytes: frame[..len].to_vec() };
                        let position = if self.dice.percent(self.faults.reordering) && !self.wire.is_empty() {
                            self.dice.roll(self.wire.len() as u64) as usize
                        } else {
                            self.wire.len()
                        };
                        self.wire.insert(position, datagram);
                    }
                }
            }
        }
    }

    /// Delivers one datagram, a microsecond later.
    fn deliver(&mut self) -> bool {
        let Some(datagram) = self.wire.pop_front() else { return false };
        self.now = Instant(self.now.0 + 1_000);
        self.delivered += 1;
        let multicast = datagram.to.is_multicast();
        let received = Received { source: datagram.from, multicast };
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let own = self.addresses[index];
            let loops = datagram.to.port == USER_PORT;
            let listens = (multicast && (loops || own != datagram.from))
                || datagram.to == own
                || self.further.contains(&(index, datagram.to));
            let is_dropped = multicast && datagram.to.port == USER_PORT && self.deaf.contains(&index);
            if listens && !is_dropped && !self.cut.contains(&index) {
                match self.held_up.get_mut(&index) {
                    Some(waiting) => waiting.push(datagram.clone()),
                    None => node.handle_datagram(self.now, received, &datagram.bytes),
                }
            }
            while let Some(event) = node.poll_event() {
                self.events.entry(index).or_default().push(event);
            }
        }
        true
    }

    /// Suspends a node's process until [`Self::resume`]. Its timers are still handled.
    pub fn hold_up(&mut self, node: usize) {
        self.held_up.insert(node, Vec::new());
    }

    /// Stops a node's process and its timers until [`Self::resume`].
    pub fn stop(&mut self, node: usize) {
        self.hold_up(node);
        self.stopped.push(node);
    }

    /// Resumes a node's process, which reads its sockets one after the other: that of the groups
    /// first, or its own. A stopped process handles its timers before that.
    pub fn resume(&mut self, node: usize, groups_first: bool) {
        let waiting = self.held_up.remove(&node).expect("it was held up");
        if self.stopped.contains(&node) {
            self.stopped.retain(|stopped| *stopped != node);
            self.nodes[node].handle_timeout(self.now);
        }
        let (groups, own): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|datagram| datagram.to.is_multicast());
        let (first, second) = if groups_first { (groups, own) } else { (own, groups) };
        for datagram in first.into_iter().chain(second) {
            let received = Received { source: datagram.from, multicast: datagram.to.is_multicast() };
            self.nodes[node].handle_datagram(self.now, received, &datagram.bytes);
        }
    }

    /// Returns the events of a node since the last call.
    pub fn events(&mut self, node: usize) -> Vec<Event> {
        let mut events = self.events.remove(&node).unwrap_or_default();
        while let Some(event) = self.nodes[node].poll_event() {
            events.push(event);
        }
        events
    }

    pub fn writer(&mut self, node: usize, spec: WriterSpec) -> WriterHandle {
        self.nodes[node].create_writer(self.now, spec).expect("the writer is valid")
    }

    pub fn reader(&mut self, node: usize, spec: ReaderSpec) -> ReaderHandle {
        self.nodes[node].create_reader(self.now, spec).expect("the reader is valid")
    }

    /// Waits until the writer is matched with the reader, and both have the expected number of
    /// matches.
    pub fn await_match(&mut self, writer: (usize, WriterHandle), reader: (usize, ReaderHandle)) {
        let matched = self.run_until(10_000, |network| {
            let readers = network.nodes[writer.0].matched_subscriptions(writer.1).expect("the writer exists");
            let writers = network.nodes[reader.0].matched_publications(reader.1).expect("the reader exists");
            !readers.is_empty() && !writers.is_empty()
        });
        assert!(matched, "writer and reader find each other");
    }

    pub fn write(&mut self, node: usize, writer: WriterHandle, payload: &[u8]) -> Result<(), WriteError> {
        self.write_key(node, writer, ChangeKind::Alive, [0; 16], payload)
    }

    pub fn write_key(
        &mut self,
        node: usize,
        writer: WriterHandle,
        kind: ChangeKind,
        key_hash: KeyHash,
        payload: &[u8],
    ) -> Result<(), WriteError> {
        self.write_stamped(node, writer, kind, key_hash, None, payload)
    }

    /// Writes a sample with a source timestamp.
    pub fn write_stamped(
        &mut self,
        node: usize,
        writer: WriterHandle,
        kind: ChangeKind,
        key_hash: KeyHash,
        source_timestamp: Option<Timestamp>,
        payload: &[u8],
    ) -> Result<(), WriteError> {
        let change = NewChange { kind, key_hash, source_timestamp, destinations: &[], payload_len: payload.len() };
        let result = self.nodes[node].write(self.now, writer, &change, |slot| {
            slot.copy_from_slice(payload);
            Some(payload.len())
        });
        result.map(|_| ())
    }

    pub fn take(&mut self, node: usize, reader: ReaderHandle) -> Option<(SampleInfo, Vec<u8>)> {
        let sample = self.nodes[node].read_next(self.now, reader, Selector::TAKE, &mut ReadCursor::default());
        sample.expect("the reader exists").map(|sample| (sample.info, sample.payload.to_vec()))
    }

    pub fn take_all(&mut self, node: usize, reader: ReaderHandle) -> Vec<(SampleInfo, Vec<u8>)> {
        std::iter::from_fn(|| self.take(node, reader)).collect()
    }
}

/// Key extractor of the test type: the byte after the encapsulation header.
pub struct FirstByte;

impl KeyExtractor for FirstByte {
    fn key_hash(&mut self, payload: &[u8], _key_only: bool) -> Option<KeyHash> {
        let mut hash = [0; 16];
        hash[0] = *payload.get(4)?;
        Some(hash)
    }

    fn serialize_key(&mut self, payload: &[u8], _key_only: bool, key: &mut Vec<u8>) -> bool {
        key.extend_from_slice(&payload[..5.min(payload.len())]);
        payload.len() > 4
    }
}

pub fn hash(key: u8) -> KeyHash {
    let mut hash = [0; 16];
    hash[0] = key;
    hash
}

pub fn reliable() -> Reliability {
    Reliability { kind: ReliabilityKind::Reliable, max_blocking_time: takt_wire::Duration::ZERO }
}

pub fn best_effort() -> Reliability {
    Reliability { kind: ReliabilityKind::BestEffort, max_blocking_time: takt_wire::Duration::ZERO }
}

pub fn writer_spec(topic: &str, keyed: bool, qos: DataWriterQos) -> WriterSpec {
    WriterSpec {
        topic_name: topic.into(),
        type_name: "Test".into(),
        keyed,
        qos,
        publisher: PublisherQos::default(),
        group: None,
        topic_data: TopicData::default(),
        type_information: None,
        max_serialized_len: None,
        flows: WriterFlows::default(),
        unicast: Vec::new(),
        filters: None,
    }
}

pub fn reader_spec(topic: &str, keyed: bool, qos: DataReaderQos) -> ReaderSpec {
    ReaderSpec {
        topic_name: topic.into(),
        type_name: "Test".into(),
        key: keyed.then(|| Box::new(FirstByte) as Box<dyn KeyExtractor>),
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

pub fn keep_all_writer() -> DataWriterQos {
    DataWriterQos { reliability: reliable(), history: History::KeepAll, ..DataWriterQos::default() }
}

pub fn keep_all_reader() -> DataReaderQos {
    DataReaderQos { reliability: reliable(), history: History::KeepAll, ..DataReaderQos::default() }
}

/// Returns a payload of `len` bytes that contains its number.
pub fn payload(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![0, 1, 0, 0];
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend((8..len).map(|i| (i as u32).wrapping_mul(31).wrapping_add(number) as u8));
    bytes
}
