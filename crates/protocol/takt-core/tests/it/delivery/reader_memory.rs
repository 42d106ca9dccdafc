//! Readers whose memory is full.

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::EntityId;
use takt_wire::builder::DataFragEmit;
use takt_wire::discovery::PublicationData;
use takt_wire::inline_qos::InlineQosBuilder;
use takt_wire::qos::*;

/// Creates a writer with ample memory, and a reader with little.
fn pair(reader_memory: usize, reliable: bool, history: History) -> (Network, WriterHandle, ReaderHandle) {
    let mut network = Network::new(1, 900);
    let mut small = config(1, 1500);
    small.limits.endpoint_memory_bytes = reader_memory;
    network.join_with(small);
    let reliability = if reliable { crate::network::reliable() } else { best_effort() };
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader =
        network.reader(1, reader_spec("T", false, DataReaderQos { reliability, history, ..Default::default() }));
    network.await_match((0, writer), (1, reader));
    (network, writer, reader)
}

/// Returns the numbers of all samples of the reader.
fn seen(network: &mut Network, reader: ReaderHandle) -> Vec<i64> {
    let (now, mut cursor, mut seen) = (network.now, ReadCursor::default(), Vec::new());
    while let Some(sample) = network.nodes[1].read_next(now, reader, Selector::READ, &mut cursor).expect("it exists") {
        seen.push(sample.info.sequence_number.0);
    }
    network.nodes[1].end_read(now, reader).expect("it exists");
    seen
}

#[test]
fn keep_last_keeps_the_newest_samples_that_memory_holds() {
    for reliable in [true, false] {
        // Samples in one datagram each, and in fragments.
        for (len, memory) in [(1_000, 8_000), (20_000, 170_000)] {
            let (mut network, writer, reader) = pair(memory, reliable, History::KeepLast(100));
            for number in 1..=20 {
                network.write(0, writer, &payload(number, len)).expect("write accepted");
                network.run(100);
            }
            let seen = seen(&mut network, reader);
            let oldest = 21 - seen.len() as i64;
            assert!(seen.len() >= 5 && seen.iter().copied().eq(oldest..=20), "reliable {reliable}, {len}: {seen:?}");
            let status = network.nodes[1].sample_rejected_status(reader).expect("it exists");
            assert_eq!(status.total_count, 0, "reliable {reliable}, {len}");
        }
    }
}

#[test]
fn keep_last_of_one_replaces_a_sample_that_takes_most_of_the_memory() {
    let (mut network, writer, reader) = pair(30_000, true, History::KeepLast(1));
    for number in 1..=3 {
        network.write(0, writer, &payload(number, 20_000)).expect("write accepted");
        network.run(100);
        assert_eq!(seen(&mut network, reader), [i64::from(number)]);
    }
}

#[test]
fn fragmented_sample_without_memory_is_rejected_once_and_arrives_later() {
    let (mut network, writer, reader) = pair(50_000, true, History::KeepAll);
    for number in 1..=3 {
        network.write(0, writer, &payload(number, 20_000)).expect("write accepted");
    }
    network.run(2_000);
    assert_eq!(seen(&mut network, reader), [1, 2]);
    let status = network.nodes[1].sample_rejected_status(reader).expect("it exists");
    assert_eq!((status.total_count, status.last_reason), (1, Some(SampleRejectedReason::MemoryLimit)));
    network.take(1, reader).expect("the first");
    let now = network.now;
    network.nodes[1].end_read(now, reader).expect("it exists");
    network.run(2_000);
    assert_eq!(seen(&mut network, reader), [2, 3]);
}

#[test]
fn sample_larger_than_all_memory_is_given_up_and_the_next_one_arrives() {
    for reliable in [true, false] {
        for history in [History::KeepAll, History::KeepLast(3)] {
            let (mut network, writer, reader) = pair(10_000, reliable, history);
            for len in [1_000, 20_000, 2_000] {
                network.write(0, writer, &payload(len as u32, len)).expect("write accepted");
                network.run(500);
            }
            assert_eq!(seen(&mut network, reader), [1, 3], "reliable: {reliable}");
            let status = network.nodes[1].sample_rejected_status(reader).expect("it exists");
            assert_eq!((status.total_count, status.last_reason), (1, Some(SampleRejectedReason::MemoryLimit)));
            let lost = network.nodes[1].sample_lost_status(reader).expect("it exists");
            assert_eq!(lost.total_count, 1, "reliable: {reliable}");
        }
    }
}

#[test]
fn keyed_keep_last_of_one_replaces_a_read_sample_that_takes_most_of_the_memory() {
    let mut network = Network::new(1, 901);
    let mut small = config(1, 1500);
    small.limits.endpoint_memory_bytes = 30_000;
    network.join_with(small);
    let writer = network.writer(0, writer_spec("T", true, keep_all_writer()));
    let qos = DataReaderQos { reliability: reliable(), history: History::KeepLast(1), ..Default::default() };
    let reader = network.reader(1, reader_spec("T", true, qos));
    network.await_match((0, writer), (1, reader));
    for number in 1..=3 {
        let mut bytes = payload(number, 20_000);
        bytes[4] = 7;
        network.write_key(0, writer, ChangeKind::Alive, hash(7), &bytes).expect("write accepted");
        network.run(1_000);
        assert_eq!(seen(&mut network, reader), [i64::from(number)]);
    }
    assert_eq!(network.nodes[1].sample_rejected_status(reader).expect("it exists").total_count, 0);
}

const LARGE: usize = 6_000;

/// Key extractor: the key of a large sample is its last octet.
struct LastByte;

impl KeyExtractor for LastByte {
    fn key_hash(&mut self, payload: &[u8], _key_only: bool) -> Option<KeyHash> {
        payload.get(LARGE - 1).map(|key| hash(*key))
    }

    fn serialize_key(&mut self, payload: &[u8], _key_only: bool, key: &mut Vec<u8>) -> bool {
        key.extend(payload.get(LARGE - 1));
        true
    }
}

/// KEEP_LAST 1 reader with memory for one large sample, and a writer of another vendor with one
/// instance.
struct OneInstance {
    node: Participant,
    reader: ReaderHandle,
    puppet: Puppet,
    now: Instant,
}

impl OneInstance {
    const WRITER: EntityId = EntityId::user_writer(1, true);

    fn new(key: Box<dyn KeyExtractor>) -> Self {
        let now = Instant(1_000_000_000);
        let mut small = config(0, 1500);
        small.limits.endpoint_memory_bytes = 8_000;
        let mut node = Participant::new(small, now).expect("the configuration is valid");
        let qos = DataReaderQos { reliability: reliable(), history: History::KeepLast(1), ..Default::default() };
        let spec = ReaderSpec { key: Some(key), ..reader_spec("T", true, qos) };
        let reader = node.create_reader(now, spec).expect("the reader is valid");
        let mut puppet = Puppet::new(9);
        puppet.join(&mut node, now);
        let publication = PublicationData { guid: puppet.guid(Self::WRITER), ..puppet.publication(1, true) };
        puppet.publish(&mut node, now, &publication);
        Self { node, reader, puppet, now }
    }

    /// Sends fragments of a sample of the instance 7, of 1,000 octets each, by their numbers.
    fn fragments(&mut self, sn: i64, numbers: &[u32], announced: Option<KeyHash>) {
        let heartbeat = self.puppet.heartbeat(Self::WRITER, 1, sn);
        let mut inline = InlineQosBuilder::<64>::new();
        announced.into_iter().for_each(|announced| inline.key_hash(announced).expect("it fits"));
        let inline = inline.finish().expect("it fits");
        for number in numbers {
            let bytes = [7; 1_000];
            let piece = fragment(Self::WRITER, sn, *number, LARGE as u32, &bytes);
            let piece = DataFragEmit { inline_qos: announced.map(|_| inline), ..piece };
            self.puppet.say(&mut self.node, self.now, |message| {
                message.heartbeat(&heartbeat).expect("it fits");
                message.data_frag(&piece).expect("it fits");
            });
        }
    }

    /// Returns the number of the reader's sample, without taking it.
    fn seen(&mut self) -> Option<i64> {
        let sample = self.node.read_next(self.now, self.reader, Selector::READ, &mut ReadCursor::default());
        let sn = sample.expect("the reader exists").map(|sample| sample.info.sequence_number.0);
        self.node.end_read(self.now, self.reader).expect("the reader exists");
        sn
    }

    fn rejected(&mut self) -> (u64, Option<SampleRejectedReason>) {
        let status = self.node.sample_rejected_status(self.reader).expect("the reader exists");
        (status.total_count, status.last_reason)
    }
}

#[test]
fn first_fragment_names_the_instance_of_a_large_sample_that_replaces_the_last_one() {
    let mut t = OneInstance::new(Box::new(FirstByte));
    t.fragments(1, &[1, 2, 3, 4, 5, 6], None);
    assert_eq!(t.seen(), Some(1));
    t.fragments(2, &[4, 5, 6, 1, 2, 3], None);
    assert_eq!(t.seen(), None, "the first fragment had the sample before replaced");
    t.fragments(2, &[4, 5, 6], None);
    assert_eq!((t.seen(), t.rejected()), (Some(2), (0, None)), "earlier ones were sent again");
}

#[test]
fn announced_key_hash_names_the_instance_of_a_large_sample_that_replaces_the_last_one() {
    let mut t = OneInstance::new(Box::new(LastByte));
    for sn in 1..=3 {
        t.fragments(sn, &[2, 1, 3, 4, 5, 6], Some(hash(7)));
        assert_eq!(t.seen(), Some(sn));
    }
    assert_eq!(t.rejected(), (0, None));
    t.fragments(4, &[1, 2, 3, 4, 5, 6], Some(hash(8)));
    assert_eq!(
        (t.seen(), t.rejected()),
        (Some(3), (1, Some(SampleRejectedReason::MemoryLimit))),
        "of another instance"
    );
}

/// docs/reference/limits.md lists the remedies.
#[test]
fn large_sample_of_unknown_instance_waits_until_the_last_one_is_taken() {
    let mut t = OneInstance::new(Box::new(LastByte));
    t.fragments(1, &[1, 2, 3, 4, 5, 6], None);
    for _ in 0..3 {
        t.fragments(2, &[1, 2, 3, 4, 5, 6], None);
        assert_eq!((t.seen(), t.rejected()), (Some(1), (1, Some(SampleRejectedReason::MemoryLimit))));
    }
    let taken =
        t.node.read_next(t.now, t.reader, Selector::TAKE, &mut ReadCursor::default()).expect("the reader exists");
    assert!(taken.is_some());
    t.node.end_read(t.now, t.reader).expect("the reader exists");
    t.fragments(2, &[1, 2, 3, 4, 5, 6], None);
    assert_eq!(t.seen(), Some(2));
}

/// The memory of a replaced sample is too short for its successor; free neighbors make up for it.
#[test]
fn keep_last_reader_keeps_the_newest_of_each_instance_while_samples_grow() {
    for reliable in [true, false] {
        let mut network = Network::new(1, 902);
        let mut small = config(1, 1500);
        small.limits.endpoint_memory_bytes = 82 * 1_280;
        network.join_with(small);
        let writer = network.writer(0, writer_spec("T", true, keep_all_writer()));
        let reliability = if reliable { crate::network::reliable() } else { best_effort() };
        let qos = DataReaderQos { reliability, history: History::KeepLast(1), ..Default::default() };
        let reader = network.reader(1, reader_spec("T", true, qos));
        network.await_match((0, writer), (1, reader));
        for (round, len) in (0..).zip([600, 800, 1_000, 1_200]) {
            for key in 0..80 {
                let mut bytes = payload(0, len);
                bytes[4] = key;
                network.write_key(0, writer, ChangeKind::Alive, hash(key), &bytes).expect("write accepted");
                network.run(10);
            }
            let newest: Vec<i64> = (1..=80).map(|number| round * 80 + number).collect();
            assert_eq!(seen(&mut network, reader), newest, "reliable {reliable}, {len} octets");
        }
        assert_eq!(network.nodes[1].sample_rejected_status(reader).expect("it exists").total_count, 0);
    }
}
