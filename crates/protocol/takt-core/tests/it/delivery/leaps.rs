//! Leaps: a GAP, HEARTBEAT or count far beyond the writer's samples does not prevent the delivery
//! of later samples.

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::builder::MessageBuilder;
use takt_wire::message::{AckNack, Gap, Heartbeat, NackFrag, Payload, Submessage};
use takt_wire::qos::{Durability, History};
use takt_wire::{EntityId, FragmentNumberSet, Guid, SequenceNumber, SequenceNumberSet};

const FAR: i64 = 1 << 40;
/// Number of samples that arrive before the forgery.
const BEFORE: u32 = 10;

/// Writer and reader of two participants, whose addresses a forger uses.
struct Pair {
    network: Network,
    writer: WriterHandle,
    reader: ReaderHandle,
    written: u32,
}

impl Pair {
    fn new() -> Self {
        Self::with(keep_all_writer(), keep_all_reader())
    }

    fn with(writer: takt_wire::qos::DataWriterQos, reader: takt_wire::qos::DataReaderQos) -> Self {
        let mut network = Network::new(2, 77);
        let writer = network.writer(0, writer_spec("T", false, writer));
        let reader = network.reader(1, reader_spec("T", false, reader));
        network.await_match((0, writer), (1, reader));
        let mut pair = Self { network, writer, reader, written: 0 };
        pair.write(BEFORE);
        pair
    }

    /// Writes the next samples, one every 10 ms.
    fn write(&mut self, samples: u32) {
        for _ in 0..samples {
            self.written += 1;
            self.network.write(0, self.writer, &payload(self.written, 20)).expect("write accepted");
            self.network.run(10);
        }
    }

    fn writer_guid(&mut self) -> Guid {
        self.network.nodes[0].writer_guid(self.writer).expect("the writer exists")
    }

    fn reader_guid(&mut self) -> Guid {
        self.network.nodes[1].reader_guid(self.reader).expect("the reader exists")
    }

    /// Sends one datagram to node `to`, with the prefix and address of the other node.
    fn forge(&mut self, to: usize, build: impl FnOnce(&mut MessageBuilder<'_>)) {
        let mut forger = Puppet::new(1 - to);
        let sender = if to == 1 { self.writer_guid() } else { self.reader_guid() };
        forger.prefix = sender.prefix;
        let now = self.network.now;
        forger.say(&mut self.network.nodes[to], now, build);
    }

    fn heartbeat(&mut self, first: i64, last: i64, count: i32) -> Heartbeat {
        Heartbeat {
            reader: self.reader_guid().entity_id,
            writer: self.writer_guid().entity_id,
            first_sn: SequenceNumber(first),
            last_sn: SequenceNumber(last),
            count,
            is_final: true,
            liveliness: false,
            group: None,
        }
    }

    fn gap(&mut self, start: i64, base: i64, more: &[i64]) -> Gap {
        let mut gap_list = SequenceNumberSet::new(SequenceNumber(base));
        for sn in more {
            gap_list.insert(SequenceNumber(*sn));
        }
        let (reader, writer) = (EntityId::UNKNOWN, self.writer_guid().entity_id);
        Gap { reader, writer, gap_start: SequenceNumber(start), gap_list }
    }

    /// Checks that all written samples have arrived, once each, in order.
    fn has_all(&mut self, case: &str) {
        self.network.run(3_000);
        let taken: Vec<_> = self.network.take_all(1, self.reader).into_iter().map(|(_, bytes)| bytes).collect();
        let expected: Vec<_> = (1..=self.written).map(|number| payload(number, 20)).collect();
        let count = taken.len();
        assert!(taken == expected, "{case}: {count} of {} samples", self.written);
    }
}

#[test]
fn samples_arrive_once_and_in_order_after_a_forged_gap_of_unwritten_numbers() {
    let gaps: [(&str, i64, i64, &[i64]); 5] = [
        ("all numbers", 1, FAR, &[]),
        ("without an end", 11, i64::MAX, &[]),
        ("the next ones", 11, 40, &[]),
        ("some of the next ones", 15, 20, &[22, 25, 200]),
        ("past the window", 11, 700, &[720]),
    ];
    for (case, start, base, more) in gaps {
        let mut pair = Pair::new();
        let gap = pair.gap(start, base, more);
        pair.forge(1, |message| message.gap(&gap).expect("it fits"));
        pair.write(100);
        pair.has_all(case);
        assert!(pair.network.nodes[1].counters().contradicted_gaps > 0, "{case}");
    }
}

#[test]
fn samples_arrive_once_and_in_order_after_a_forged_heartbeat_of_unwritten_numbers() {
    for (first, last, count) in
        [(FAR, FAR, 1_000), (FAR, FAR - 1, i32::MAX), (1, FAR, 1_000), (i64::MAX, i64::MAX, 1_000)]
    {
        let mut pair = Pair::new();
        let heartbeat = pair.heartbeat(first, last, count);
        pair.forge(1, |message| message.heartbeat(&heartbeat).expect("it fits"));
        pair.write(100);
        pair.has_all(&format!("{first} {last} {count}"));
    }
}

#[test]
fn samples_arrive_once_and_in_order_after_several_forgeries() {
    let mut pair = Pair::new();
    for _ in 0..3 {
        let (gap, heartbeat) = (pair.gap(1, FAR, &[FAR + 7]), pair.heartbeat(2 * FAR, 2 * FAR, i32::MAX - 1));
        let ahead = data(pair.writer_guid().entity_id, 2 * FAR + 5, Payload::Data(&[0; 20]));
        pair.forge(1, |message| {
            message.gap(&gap).expect("it fits");
            message.heartbeat(&heartbeat).expect("it fits");
            message.data(&ahead).expect("it fits");
        });
        pair.write(100);
    }
    pair.has_all("all at once");
}

#[test]
fn lost_samples_are_requested_after_a_heartbeat_with_a_forged_count() {
    for count in [i32::MAX, i32::MAX - 100] {
        let mut pair = Pair::new();
        let heartbeat = pair.heartbeat(1, 10, count);
        pair.forge(1, |message| message.heartbeat(&heartbeat).expect("it fits"));
        pair.network.cut = vec![1];
        pair.write(20);
        pair.network.cut = vec![];
        pair.has_all(&format!("{count}"));
    }
}

#[test]
fn missing_fragments_are_sent_after_a_request_with_a_forged_count() {
    let mut pair = Pair::new();
    let nack = NackFrag {
        reader: pair.reader_guid().entity_id,
        writer: pair.writer_guid().entity_id,
        sn: SequenceNumber(i64::from(BEFORE) + 1),
        fragments: FragmentNumberSet::new(1),
        count: i32::MAX,
    };
    // Only the first fragment of the next sample arrives.
    pair.network.keep = Some(1);
    pair.network.write(0, pair.writer, &payload(11, 20_000)).expect("write accepted");
    pair.network.run_until(10, |network| network.keep == Some(0));
    pair.forge(0, |message| message.nack_frag(&nack).expect("it fits"));
    pair.network.keep = None;
    pair.network.run(3_000);
    let taken = pair.network.take_all(1, pair.reader);
    assert_eq!(taken.last().map(|(_, bytes)| bytes.len()), Some(20_000));
    let sent = pair.network.nodes[0].counters();
    assert!(sent.repairs_sent < 60, "the fragments that arrived are not sent again forever: {}", sent.repairs_sent);
}

#[test]
fn forged_acknowledgments_of_unwritten_samples_acknowledge_nothing() {
    let mut writer_qos = keep_all_writer();
    writer_qos.resource_limits.max_samples = Some(8);
    let mut pair = Pair::with(writer_qos, keep_all_reader());
    pair.network.cut = vec![1];
    let (reader, writer) = (pair.reader_guid().entity_id, pair.writer_guid().entity_id);
    for number in 1..=8 {
        pair.network.write(0, pair.writer, &payload(BEFORE + number, 20)).expect("write accepted");
    }
    pair.network.run(10);
    let stale = pair.network.nodes[0].counters().stale_acknowledgments;
    for base in [20, FAR, i64::MAX] {
        let acknack = AckNack {
            reader,
            writer,
            reader_sn_state: SequenceNumberSet::new(SequenceNumber(base)),
            count: 1_000_000,
            is_final: true,
        };
        let sn = SequenceNumber(base);
        let nack = NackFrag { reader, writer, sn, fragments: FragmentNumberSet::new(1), count: i32::MAX };
        pair.forge(0, |message| {
            message.acknack(&acknack).expect("it fits");
            message.nack_frag(&nack).expect("it fits");
        });
    }
    assert_eq!(pair.network.nodes[0].is_acknowledged(pair.writer, None), Ok(false));
    assert!(pair.network.write(0, pair.writer, &payload(19, 20)).is_err(), "nothing has made room");
    assert_eq!(pair.network.nodes[0].counters().stale_acknowledgments - stale, 6);
    pair.network.cut = vec![];
    pair.written += 8;
    pair.network.run(1_000);
    pair.write(20);
    pair.has_all("acknowledgments");
}

#[test]
fn delivery_restarts_when_the_first_heartbeat_was_forged() {
    for of_ours in [false, true] {
        for durability in [Durability::Volatile, Durability::TransientLocal] {
            let case = format!("of ours: {of_ours}, {durability:?}");
            let now = Instant(1_000_000_000);
            let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
            let mut qos = keep_all_reader();
            (qos.durability, qos.history) = (durability, History::KeepAll);
            let reader = node.create_reader(now, reader_spec("T", false, qos)).expect("the reader is valid");
            let reader_id = node.reader_guid(reader).expect("the reader exists").entity_id;
            let mut puppet = if of_ours { Puppet::of_ours(9) } else { Puppet::new(9) };
            puppet.join(&mut node, now);
            let mut publication = puppet.publication(1, true);
            publication.qos.durability = durability;
            puppet.publish(&mut node, now, &publication);
            let writer = publication.guid.entity_id;
            let forged = Heartbeat { reader: reader_id, ..puppet.heartbeat(writer, FAR, FAR) };
            puppet.say(&mut node, now, |message| message.heartbeat(&forged).expect("it fits"));
            outgoing(&mut node, now);
            // The writer sends a heartbeat to all its readers, gets a request, and answers this
            // one.
            let to_all = puppet.heartbeat(writer, 1, 0);
            puppet.say(&mut node, now, |message| message.heartbeat(&to_all).expect("it fits"));
            let requests = |submessage: &Submessage<'_>| {
                matches!(submessage, Submessage::AckNack(nack)
                    if nack.writer == writer && nack.reader_sn_state.base() <= SequenceNumber(1))
            };
            assert!(count(&outgoing(&mut node, now), requests) > 0, "{case}");
            let own = Heartbeat { reader: reader_id, ..puppet.heartbeat(writer, 1, 0) };
            puppet.say(&mut node, now, |message| {
                message.heartbeat(&own).expect("it fits");
                for sn in 1..=3 {
                    message.data(&data(writer, sn, Payload::Data(&payload(sn as u32, 20)))).expect("it fits");
                }
            });
            let (mut taken, mut cursor) = (Vec::new(), ReadCursor::default());
            while let Some(sample) = node.read_next(now, reader, Selector::TAKE, &mut cursor).expect("it exists") {
                taken.push(sample.info.sequence_number.0);
            }
            assert_eq!(taken, [1, 2, 3], "{case}");
        }
    }
}
