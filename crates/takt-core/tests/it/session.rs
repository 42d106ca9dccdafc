//! A hostile session as a script of bytes: what fuzzing writes, and what the replayed corpus holds.
//!
//! A participant with readers and writers of several kinds meets a peer that it is matched with, strangers, and an
//! application. The script says who does what next. Every byte string is a script; whatever it says, the
//! participant must neither panic nor go on for ever, and must say nothing itself that is malformed.

use crate::network::*;
use crate::outbound::drain;
use crate::puppet::*;
use std::sync::LazyLock;
use takt_core::*;
use takt_wire::message::*;
use takt_wire::qos::*;
use takt_wire::type_lookup::{
    Addressee, ContinuationPoint, EquivalenceId, Question, RequestId, TypeRequest, TypesEmitter, UnionForm,
    dependencies_reply,
};
use takt_wire::{EntityId, FragmentNumberSet, GuidPrefix, MessageBuilder, SequenceNumber, SequenceNumberSet};

/// Steps of a script that are played; the rest is ignored.
const MAX_STEPS: usize = 400;
/// Memory in bytes of a session at most, all endpoints and the harness included.
pub const MEMORY_BYTES: usize = 24 << 20;
/// Datagrams of the participant that are kept, to be turned against it.
const MAX_OWN: usize = 64;

/// Reads a script; at its end everything is zero.
pub struct Script<'a>(pub &'a [u8]);

impl<'a> Script<'a> {
    pub fn u8(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, self.0), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.u8(), self.u8()])
    }

    pub fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// Small numbers mostly, and those where arithmetic ends.
    fn number(&mut self) -> i64 {
        let small = i64::from(self.u8());
        match small {
            0..=199 => small,
            200..=209 => i64::MAX - (small - 200),
            210..=219 => i64::from(u32::MAX) + small - 215,
            220..=229 => i64::from(i32::MAX) + small - 225,
            230..=239 => 512 + small - 235,
            240..=249 => -(small - 240),
            _ => i64::from(self.u16()),
        }
    }
}

/// The participant under attack, its endpoints, and the peer that it is matched with.
pub struct Session {
    pub node: Participant,
    pub now: Instant,
    pub readers: Vec<ReaderHandle>,
    pub writers: Vec<WriterHandle>,
    pub peer: Puppet,
    /// Requests for types that wait for an answer.
    pub asked: Vec<TypeRequestId>,
    own: Vec<Vec<u8>>,
    frame: Vec<u8>,
}

/// The peer's endpoints: those it has in the exchange, and one more of each kind.
pub const PEER_WRITERS: [EntityId; 2] = [EntityId::user_writer(1, true), EntityId::user_writer(3, false)];
pub const PEER_READERS: [EntityId; 2] = [EntityId::user_reader(2, false), EntityId::user_reader(4, true)];

/// The peer of the exchange announces itself and its endpoints.
pub fn peer_joins(peer: &mut Puppet, node: &mut Participant, now: Instant) {
    peer.join(node, now);
    for (entity_id, topic) in PEER_WRITERS.into_iter().zip(["K", "T"]) {
        let mut publication = peer.publication(1, true);
        publication.guid.entity_id = entity_id;
        publication.topic_name = topic.into();
        peer.publish(node, now, &publication);
    }
    for (entity_id, topic) in PEER_READERS.into_iter().zip(["T", "K"]) {
        let mut subscription = peer.subscription(1, true);
        subscription.guid.entity_id = entity_id;
        subscription.topic_name = topic.into();
        peer.subscribe(node, now, &subscription);
    }
}

/// Plays a script to its end, and then waits until everybody has been forgotten.
pub fn play(script: &[u8]) {
    let mut session = Session::begin();
    let mut script = Script(script);
    for _ in 0..MAX_STEPS {
        if script.0.is_empty() {
            break;
        }
        session.step(&mut script);
    }
    session.end();
}

impl Session {
    /// Small enough that a script can reach them.
    pub fn limits() -> Limits {
        Limits {
            endpoint_memory_bytes: 1 << 18,
            reassembly_bytes: 1 << 16,
            default_max_samples: 64,
            default_max_instances: 32,
            max_unvalidated_participants: 8,
            max_participants: 16,
            max_endpoints_per_participant: 32,
            ..Limits::default()
        }
    }

    pub fn begin() -> Self {
        let now = Instant(1_000_000_000);
        let mut config = config(0, 1500);
        config.limits = Self::limits();
        let mut node = Participant::new(config, now).expect("the configuration is good");
        let reader = |node: &mut Participant, topic, keyed, reliable, history| {
            let reliability = if reliable { crate::network::reliable() } else { best_effort() };
            let qos = DataReaderQos { reliability, history, ..DataReaderQos::default() };
            node.create_reader(now, reader_spec(topic, keyed, qos)).expect("the reader is good")
        };
        let writer = |node: &mut Participant, topic, keyed, durability, history| {
            let qos = DataWriterQos { durability, history, ..keep_all_writer() };
            node.create_writer(now, writer_spec(topic, keyed, qos)).expect("the writer is good")
        };
        // The first two as in the exchange.
        let keyed = reader(&mut node, "K", true, true, History::KeepLast(1));
        let unkeyed = writer(&mut node, "T", false, Durability::Volatile, History::KeepAll);
        let readers = vec![
            keyed,
            reader(&mut node, "T", false, true, History::KeepAll),
            reader(&mut node, "T", false, false, History::KeepLast(2)),
        ];
        let writers = vec![unkeyed, writer(&mut node, "K", true, Durability::TransientLocal, History::KeepLast(1))];
        for number in 0..3 {
            let object = [&[60, 0, 0, 0][..], &[number; 60]].concat().into();
            let dependencies = [type_id(number + 1), type_id(0)].into();
            let offered = OfferedType { id: type_id(number), object, dependencies, minimal: None };
            node.offer_type(offered).expect("there is room");
        }
        let mut peer = Puppet::new(1);
        peer.serves_types = true;
        peer_joins(&mut peer, &mut node, now);
        peer.acknowledge_writers(&mut node, now, 2);
        let (asked, own, frame) = (Vec::new(), Vec::new(), vec![0; 65_507]);
        let mut session = Self { node, now, readers, writers, peer, asked, own, frame };
        session.drain();
        let matched = session.node.matched_subscriptions(session.writers[0]).expect("the writer lives");
        assert!(matched.iter().any(|guid| guid.prefix == session.peer.prefix), "the peer is matched");
        session
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let step = script.u8();
        match step % 8 {
            0 => {
                let len = usize::from(script.u16());
                let bytes = script.bytes(len).to_vec();
                self.hear(script, &bytes);
            }
            1 => {
                let bytes = edited(script, &EXCHANGE);
                self.hear(script, &bytes);
            }
            2 => {
                let own = std::mem::take(&mut self.own);
                let mut bytes = edited(script, &own);
                self.own = own;
                if script.u8() & 1 == 0 && bytes.len() >= 20 {
                    bytes[8..20].copy_from_slice(&self.peer.prefix.0);
                }
                self.hear(script, &bytes);
            }
            3 => {
                let mut frame = std::mem::take(&mut self.frame);
                let mut builder = MessageBuilder::new(&mut frame, &self.peer.header()).expect("the header fits");
                for _ in 0..=script.u8() % 8 {
                    forge(script, &mut builder, self.node.guid().prefix);
                }
                let len = builder.len();
                self.hear(script, &frame[..len]);
                self.frame = frame;
            }
            4 => {
                let millis = u64::from(script.u16());
                self.wait(millis * 1_000_000);
            }
            5 => self.application(script),
            6 => self.peer_discovery(script),
            _ if step & 8 != 0 => self.type_lookup(script),
            _ => self.drain(),
        }
    }

    /// Types are asked for, by the application or by the peer, or the peer answers.
    pub fn type_lookup(&mut self, script: &mut Script<'_>) {
        let (what, count) = (script.u8(), usize::from(script.u8() % 8));
        let types: Vec<_> = (0..count).map(|_| type_id(script.u8() % 8)).collect();
        let form = if what & 8 == 0 { UnionForm::Appendable } else { UnionForm::Final };
        let point = ContinuationPoint::new(&[what >> 4, 0, 0, 0]).expect("it is short");
        let number = i64::from(script.u8());
        match what % 8 {
            0 => self.asked.extend(self.node.request_types(self.now, self.peer.prefix, &types, form).ok()),
            1 => self.asked.extend(self.node.request_type_dependencies(self.now, self.peer.prefix, &types, point).ok()),
            2 if !self.asked.is_empty() => {
                let request = self.asked.swap_remove(number as usize % self.asked.len());
                std::hint::black_box(self.node.take_type_answer(request));
                self.node.cancel_type_request(request);
            }
            2..=5 => {
                let writer = self.peer.guid(EntityId::TYPE_LOOKUP_REQUEST_WRITER);
                let addressee = Addressee::Participant(self.node.guid());
                let question =
                    if what & 1 == 0 { Question::Types(types) } else { Question::Dependencies(types, point) };
                let request = TypeRequest { id: RequestId { writer, number }, addressee, question, form };
                self.peer_says(EntityId::TYPE_LOOKUP_REQUEST_WRITER, Payload::Data(&request.to_bytes()));
            }
            _ => {
                // Requests are numbered from what the prefix ends with.
                let request = RequestId { writer: self.node.guid(), number: (0x0101 << 16) + number };
                let mut reply = TypesEmitter::new(request, form, 4_000);
                types.iter().for_each(|id| {
                    reply.push(*id, &[[4, 0, 0, 0], [what; 4]].concat(), Some(*id));
                });
                let payload = match what & 1 {
                    0 => reply.finish(),
                    _ => dependencies_reply(request, form, &types.iter().map(|id| (*id, 8)).collect::<Vec<_>>(), point),
                };
                self.peer_says(EntityId::TYPE_LOOKUP_REPLY_WRITER, Payload::Data(&payload));
            }
        }
        while self.node.poll_event().is_some() {}
    }

    /// The next sample of one of the peer's builtin writers.
    pub fn peer_says(&mut self, writer: EntityId, payload: Payload<'_>) {
        self.peer.announce(&mut self.node, self.now, writer, payload);
        while self.node.poll_event().is_some() {}
    }

    fn hear(&mut self, script: &mut Script<'_>, datagram: &[u8]) {
        let from = script.u8();
        let source = if from & 1 == 0 { self.peer.address } else { address(usize::from(from % 200)) };
        self.node.handle_datagram(self.now, Received { source, multicast: from & 2 != 0 }, datagram);
        while self.node.poll_event().is_some() {}
    }

    /// Sends what there is to send, and keeps it to be turned against the participant.
    pub fn drain(&mut self) {
        let mut number = 0;
        let own = &mut self.own;
        drain(&mut self.node, self.now, &mut self.frame, |datagram| {
            number += 1;
            if own.len() < MAX_OWN {
                own.push(datagram.to_vec());
            } else {
                own[number % MAX_OWN] = datagram.to_vec();
            }
        });
    }

    pub fn wait(&mut self, nanos: u64) {
        let end = Instant(self.now.0.saturating_add(nanos));
        for _ in 0..64 {
            let Some(due) = self.node.poll_timeout().filter(|due| *due <= end) else { break };
            self.now = self.now.max(due);
            self.node.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
        self.node.handle_timeout(self.now);
        while self.node.poll_event().is_some() {}
    }

    pub fn application(&mut self, script: &mut Script<'_>) {
        let reader = self.readers[usize::from(script.u8()) % self.readers.len()];
        let writer = self.writers[usize::from(script.u8()) % self.writers.len()];
        let what = script.u8();
        match what % 4 {
            0 => {
                let mut cursor = ReadCursor::default();
                let selector = if what & 4 == 0 { Selector::TAKE } else { Selector::READ };
                for _ in 0..what >> 3 {
                    let sample = self.node.read_next(self.now, reader, selector, &mut cursor);
                    let Some(sample) = sample.expect("the reader lives") else { break };
                    std::hint::black_box(sample.payload);
                }
            }
            1 | 2 => {
                let key = script.u8() % 40;
                let len = 8 + usize::from(script.u16()) % 8_000;
                let kind = match what >> 2 {
                    0 => ChangeKind::Disposed,
                    1 => ChangeKind::Unregistered,
                    2 => ChangeKind::DisposedUnregistered,
                    _ => ChangeKind::Alive,
                };
                let change = NewChange {
                    kind,
                    key_hash: hash(key),
                    source_timestamp: None,
                    destinations: &[],
                    payload_len: len,
                };
                let bytes = payload(u32::from(key), len);
                let result = self.node.write(self.now, writer, &change, |slot| {
                    slot.copy_from_slice(&bytes);
                    Some(len)
                });
                if let Err(error) = result {
                    assert!(!matches!(error, WriteError::Refused(Error::AlreadyDeleted)), "the writer lives");
                }
            }
            _ if what & 4 == 0 => {
                let qos = DataReaderQos { reliability: crate::network::reliable(), ..DataReaderQos::default() };
                let new = self.node.create_reader(self.now, reader_spec("T", what & 8 == 0, qos));
                let place = usize::from(what >> 4) % self.readers.len();
                let old = std::mem::replace(&mut self.readers[place], new.expect("the reader is good"));
                self.node.delete_reader(self.now, old).expect("the reader lives");
            }
            _ => {
                let new = self.node.create_writer(self.now, writer_spec("K", what & 8 == 0, keep_all_writer()));
                let place = usize::from(what >> 4) % self.writers.len();
                let old = std::mem::replace(&mut self.writers[place], new.expect("the writer is good"));
                self.node.delete_writer(self.now, old).expect("the writer lives");
            }
        }
    }

    /// The peer, or a stranger, joins, leaves, or announces an endpoint.
    pub fn peer_discovery(&mut self, script: &mut Script<'_>) {
        let (what, number) = (script.u8(), script.u8());
        let mut stranger = Puppet::new(2 + usize::from(number % 20));
        let puppet = if what & 1 == 0 { &mut self.peer } else { &mut stranger };
        let key = u32::from(script.u8() % 8);
        match what >> 1 & 7 {
            0 => puppet.join(&mut self.node, self.now),
            1 => puppet.leave(&mut self.node, self.now),
            2 | 3 => {
                let mut publication = puppet.publication(key, number & 1 == 0);
                publication.topic_name = if number & 2 == 0 { "T" } else { "K" }.into();
                puppet.publish(&mut self.node, self.now, &publication);
            }
            4 | 5 => {
                let mut subscription = puppet.subscription(key, number & 1 == 0);
                subscription.topic_name = if number & 2 == 0 { "T" } else { "K" }.into();
                puppet.subscribe(&mut self.node, self.now, &subscription);
            }
            _ => puppet.announce_itself(&mut self.node, self.now),
        }
        while self.node.poll_event().is_some() {}
    }

    fn serve_timers(&mut self) {
        for _ in 0..10_000 {
            self.node.handle_timeout(self.now);
            self.drain();
            if self.node.poll_timeout().is_none_or(|due| due > self.now) {
                break;
            }
        }
    }

    pub fn end(mut self) {
        // Each jump of the clock is a standstill, of which eight postpone the end of a lease, which is a day at most.
        for _ in 0..10 {
            self.now = Instant(self.now.0.saturating_add(86_400_000_000_000));
            self.serve_timers();
        }
        assert_eq!(self.node.discovered_participants().len(), 0, "ten days of silence end every lease");
        assert_eq!(self.node.discovered_publications().count(), 0);
        assert_eq!(self.node.discovered_subscriptions().count(), 0);
        for writer in &self.writers {
            let matched = self.node.matched_subscriptions(*writer).expect("the writer lives");
            assert!(matched.iter().all(|guid| guid.prefix == prefix(0)), "only our own readers are left");
        }
    }
}

/// A type's identifier that has nothing to do with a type.
pub fn type_id(number: u8) -> EquivalenceId {
    EquivalenceId::new(EquivalenceId::COMPLETE, [number; 14])
}

/// Damages a datagram as noise and malice do.
pub fn mutate(dice: &mut Dice, bytes: &mut Vec<u8>) {
    let at = dice.roll(bytes.len().max(1) as u64) as usize;
    match dice.roll(6) {
        0 => bytes.truncate(at),
        1 if !bytes.is_empty() => bytes[at] = dice.roll(256) as u8,
        2 if !bytes.is_empty() => bytes[at] ^= 1 << dice.roll(8),
        3 if bytes.len() >= at + 4 => bytes[at..at + 4].fill([0, 0xff, 0x7f, 0x80][dice.roll(4) as usize]),
        4 => bytes.extend((0..dice.roll(40)).map(|i| i as u8)),
        _ if bytes.len() > 24 => {
            let (from, to) = (20 + dice.roll((bytes.len() - 20) as u64) as usize, at.max(20));
            let piece = bytes[from..].to_vec();
            bytes.splice(to..to, piece.into_iter().take(64));
        }
        _ => {}
    }
}

/// One of `datagrams`, with some bytes overwritten and possibly cut or continued.
fn edited(script: &mut Script<'_>, datagrams: &[Vec<u8>]) -> Vec<u8> {
    let which = usize::from(script.u8());
    let Some(datagram) = datagrams.get(which % datagrams.len().max(1)) else { return Vec::new() };
    let mut bytes = datagram.clone();
    let how = script.u8();
    for _ in 0..how % 8 {
        let (at, value) = (usize::from(script.u16()), script.u8());
        if let Some(place) = bytes.get_mut(at) {
            *place = value;
        }
    }
    match how >> 3 & 7 {
        0 => bytes.truncate(usize::from(script.u16())),
        1 => {
            let len = usize::from(script.u8());
            bytes.extend_from_slice(script.bytes(len));
        }
        _ => {}
    }
    bytes
}

/// One of the entities that there are, or nearly.
fn entity(choice: u8, writer: bool) -> EntityId {
    match (choice % 8, writer) {
        (0 | 1, true) => PEER_WRITERS[usize::from(choice >> 3 & 1)],
        (3, true) => EntityId::SEDP_PUB_WRITER,
        (4, true) => EntityId::SEDP_SUB_WRITER,
        (5, true) => EntityId::P2P_MESSAGE_WRITER,
        (7, true) if choice & 8 == 0 => EntityId::TYPE_LOOKUP_REQUEST_WRITER,
        (7, true) if choice & 16 == 0 => EntityId::TYPE_LOOKUP_REPLY_WRITER,
        (2 | 6, true) => EntityId::user_writer(u32::from(choice >> 4), choice & 8 == 0),
        (0 | 1, false) => PEER_READERS[usize::from(choice >> 3 & 1)],
        (3, false) => EntityId::SEDP_PUB_READER,
        (4, false) => EntityId::SEDP_SUB_READER,
        (5, false) => EntityId::P2P_MESSAGE_READER,
        (7, false) if choice & 8 == 0 => EntityId::TYPE_LOOKUP_REQUEST_READER,
        (7, false) if choice & 16 == 0 => EntityId::TYPE_LOOKUP_REPLY_READER,
        (2 | 6, false) => EntityId::user_reader(u32::from(choice >> 4), choice & 8 == 0),
        _ => EntityId::UNKNOWN,
    }
}

/// One submessage with numbers of the script's choice.
fn forge(script: &mut Script<'_>, message: &mut MessageBuilder<'_>, victim: GuidPrefix) {
    let what = script.u8();
    let (writer, reader) = (entity(script.u8(), true), entity(script.u8(), false));
    let sn = SequenceNumber(script.number());
    let flag = what & 8 == 0;
    let result = match what % 8 {
        0 => {
            let (last_sn, count) = (SequenceNumber(script.number()), script.number() as i32);
            message.heartbeat(&Heartbeat {
                reader,
                writer,
                first_sn: sn,
                last_sn,
                count,
                is_final: flag,
                liveliness: !flag,
                group: None,
            })
        }
        1 => {
            let mut set = SequenceNumberSet::new(sn);
            (0..script.u8() % 16).for_each(|_| {
                set.insert(SequenceNumber(sn.0.saturating_add(i64::from(script.u8()))));
            });
            let count = script.number() as i32;
            message.acknack(&AckNack { reader, writer, reader_sn_state: set, count, is_final: flag })
        }
        2 => {
            let mut gap_list = SequenceNumberSet::new(SequenceNumber(script.number()));
            let base = gap_list.base().0;
            (0..script.u8() % 16).for_each(|_| {
                gap_list.insert(SequenceNumber(base.saturating_add(i64::from(script.u8()))));
            });
            message.gap(&Gap { reader, writer, gap_start: sn, gap_list })
        }
        3 => {
            let mut fragments = FragmentNumberSet::new(script.number() as u32);
            let base = fragments.base();
            (0..script.u8() % 16).for_each(|_| {
                fragments.insert(base.saturating_add(u32::from(script.u8())));
            });
            message.nack_frag(&NackFrag { reader, writer, sn, fragments, count: script.number() as i32 })
        }
        4 | 5 => {
            let len = 4 + usize::from(script.u8());
            let mut bytes = script.bytes(len).to_vec();
            bytes.resize(len, 0);
            let payload = if flag { Payload::Data(&bytes) } else { Payload::Key(&bytes) };
            message.data(&takt_wire::DataEmit { reader, writer, sn, inline_qos: None, payload })
        }
        6 => {
            let bytes = vec![script.u8(); 1 + usize::from(script.u8())];
            let sample_size = script.number() as u32;
            let fragment = fragment(writer, sn.0, script.number() as u32, sample_size, &bytes);
            message.data_frag(&takt_wire::DataFragEmit { reader, ..fragment })
        }
        _ => message.info_destination(if flag { victim } else { GuidPrefix([what; 12]) }),
    };
    // A frame that is full holds enough.
    let _ = result;
}

/// The datagrams of a real exchange: discovery, data whole and in fragments, repairs, farewell.
pub static EXCHANGE: LazyLock<Vec<Vec<u8>>> = LazyLock::new(exchange);

fn exchange() -> Vec<Vec<u8>> {
    let mut network = Network::new(2, 100);
    let keep_last = DataWriterQos { history: History::KeepLast(1), ..keep_all_writer() };
    let writer = network.writer(1, writer_spec("K", true, keep_last));
    let reader = network.reader(0, reader_spec("K", true, keep_all_reader()));
    let other = network.writer(0, writer_spec("T", false, keep_all_writer()));
    network.reader(1, reader_spec("T", false, keep_all_reader()));
    let mut frame = vec![0; 65_507];
    let mut datagrams = Vec::new();
    for step in 0..120_u32 {
        network.now = Instant(network.now.0 + 20_000_000);
        let now = network.now;
        if step > 20 {
            let len = if step % 10 == 0 { 5_000 } else { 50 };
            let kind = [ChangeKind::Alive, ChangeKind::Disposed, ChangeKind::Unregistered][usize::from(step % 9 == 0)];
            // Full histories are part of the exchange.
            let _ = network.write_key(1, writer, kind, hash(step as u8 % 5), &payload(step % 5, len));
            let _ = network.write(0, other, &payload(step, len));
        }
        if step == 110 {
            network.nodes[1].delete_writer(now, writer).expect("the writer lives");
        }
        if step == 115 {
            network.nodes[1].shutdown();
        }
        for node in 0..2 {
            network.nodes[node].handle_timeout(now);
            while let Some(transmit) = network.nodes[node].poll_transmit(now, &mut frame) {
                let bytes = frame[..transmit.len].to_vec();
                // Some loss, so that repairs are in the exchange too.
                if step < 20 || datagrams.len() % 5 != 0 {
                    let from = Received { source: address(node), multicast: true };
                    network.nodes[1 - node].handle_datagram(now, from, &bytes);
                }
                datagrams.push(bytes);
            }
            while network.nodes[node].poll_event().is_some() {}
        }
        while network.take(0, reader).is_some() {}
    }
    datagrams
}
