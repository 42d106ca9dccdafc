//! Fragmentation: large samples travel in packets of the path's size, and lost fragments are
//! repaired.

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::builder::DataFragEmit;
use takt_wire::discovery::PublicationData;
use takt_wire::inline_qos::InlineQosBuilder;
use takt_wire::message::Gap;
use takt_wire::qos::{DataReaderQos, DataWriterQos, Durability};
use takt_wire::{EntityId, SequenceNumber, SequenceNumberSet};

fn large(network: &mut Network, count: u32, len: usize) {
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    let (mut written, mut taken) = (0, 0);
    let all = network.run_until(600_000, |network| {
        while written < count && network.write(0, writer, &payload(written, len)).is_ok() {
            written += 1;
        }
        while let Some((_, bytes)) = network.take(1, reader) {
            assert!(bytes == payload(taken, len), "sample {taken} comes next, whole");
            taken += 1;
        }
        taken == count
    });
    assert!(all, "{taken} of {written} written samples arrived");
}

#[test]
fn no_datagram_exceeds_the_mtu() {
    for mtu in [576, 1500, 9000] {
        let mut network = Network::with_mtu(2, 60, mtu);
        large(&mut network, 5, 100_000);
        assert!(network.longest <= mtu - 28, "{} > {mtu} - 28", network.longest);
        assert!(network.longest > mtu - 200, "packets are filled");
    }
}

#[test]
fn samples_of_every_size_around_the_fragment_size_arrive() {
    let mut network = Network::new(2, 61);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    for len in (1300..1500).chain(2600..2760).step_by(4) {
        network.write(0, writer, &payload(len as u32, len)).expect("write accepted");
        assert!(
            network.run_until(1_000, |n| n.take(1, reader).is_some_and(|(_, bytes)| bytes == payload(len as u32, len)))
        );
    }
}

#[test]
fn large_samples_survive_loss() {
    for (seed, loss) in [(62, 1), (63, 10), (64, 30)] {
        let mut network = Network::new(2, seed);
        network.faults = Faults { loss, duplication: loss / 2, reordering: loss };
        large(&mut network, 10, 200_000);
    }
}

#[test]
fn four_megabytes_arrive() {
    let mut network = Network::new(2, 65);
    network.faults.loss = 2;
    large(&mut network, 2, 4 << 20);
}

#[test]
fn best_effort_large_samples_arrive_completely_or_not_at_all() {
    let mut network = Network::new(2, 66);
    let mut writer_qos = keep_all_writer();
    writer_qos.reliability = best_effort();
    let mut reader_qos = keep_all_reader();
    reader_qos.reliability = best_effort();
    let writer = network.writer(0, writer_spec("T", false, writer_qos));
    let reader = network.reader(1, reader_spec("T", false, reader_qos));
    network.await_match((0, writer), (1, reader));
    network.faults = Faults { loss: 1, duplication: 1, reordering: 1 };
    let mut complete = 0;
    for number in 0..200 {
        network.write(0, writer, &payload(number, 20_000)).expect("best effort never blocks");
        network.run(1);
        for (_, bytes) in network.take_all(1, reader) {
            let number = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
            assert!(bytes == payload(number, 20_000));
            complete += 1;
        }
    }
    assert!((100..200).contains(&complete), "{complete}");
}

#[test]
fn reader_on_a_path_with_a_smaller_mtu_gets_smaller_fragments() {
    let mut network = Network::with_mtu(2, 67, 9000);
    let mut qos = keep_all_writer();
    qos.durability = takt_wire::qos::Durability::TransientLocal;
    let writer = network.writer(0, writer_spec("T", false, qos));
    let mut reader_qos = keep_all_reader();
    reader_qos.durability = takt_wire::qos::Durability::TransientLocal;
    let reader = network.reader(1, reader_spec("T", false, reader_qos));
    network.await_match((0, writer), (1, reader));
    network.write(0, writer, &payload(1, 50_000)).expect("write accepted");
    assert!(network.run_until(1_000, |n| n.take(1, reader).is_some()));
    assert!(network.longest > 8_000);
}

#[test]
fn payload_beyond_the_memory_is_refused_with_the_limit() {
    let mut network = Network::new(0, 68);
    let mut first = config(0, 1500);
    first.limits.endpoint_memory_bytes = 1 << 20;
    network.join_with(first);
    network.join();
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    let refused = network.write(0, writer, &payload(1, (1 << 20) + 1));
    assert!(matches!(refused, Err(WriteError::Refused(Error::OutOfResources { limit: "endpoint_memory_bytes", .. }))));
}

#[test]
fn long_fragments_except_the_last_are_not_copied() {
    let mut network = Network::with_mtu(2, 68, 65_536);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    network.run(500);
    let sample = payload(1, 200_000);
    network.write(0, writer, &sample).expect("write accepted");
    let (now, mut frame, mut in_tail) = (network.now, vec![0x5a; 65_507], Vec::new());
    let [left, right] = &mut network.nodes[..] else { panic!("there are two nodes") };
    while let Some(transmit) = left.poll_transmit_gathering(now, &mut frame) {
        let datagram = [&frame[..transmit.len], transmit.payload].concat();
        in_tail.extend((!transmit.payload.is_empty()).then_some((transmit.len, transmit.payload.len())));
        right.handle_datagram(now, Received { source: address(0), multicast: false }, &datagram);
    }
    assert_eq!(in_tail, [(68, 64_864); 3], "a header and the fragment itself, three times of four");
    assert!(network.take(1, reader).is_some_and(|(_, bytes)| bytes == sample));
    network.write(0, writer, &sample).expect("write accepted");
    while let Some(transmit) = network.nodes[0].poll_transmit(now, &mut frame) {
        assert!(transmit.payload.is_empty(), "no reader requested it");
    }
}

#[test]
fn writer_sends_shorter_datagrams_when_long_ones_never_arrive() {
    for len in [1_000, 20_000, 100_000, 1_000_000] {
        let mut network = Network::with_mtu(2, 69, 9_000);
        network.path_len_max = Some(1_472);
        let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
        let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
        network.await_match((0, writer), (1, reader));
        network.run(500);
        network.events(0);
        for number in 0..40 {
            network.write(0, writer, &payload(number, len)).expect("write accepted");
        }
        let all = network.run_until(60_000, |n| n.nodes[0].is_acknowledged(writer, None) == Ok(true));
        assert!(all, "{len} octets");
        let taken: Vec<_> = network.take_all(1, reader).into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(taken, (0..40).map(|number| payload(number, len)).collect::<Vec<_>>(), "{len} octets");
        assert_eq!(network.nodes[0].counters().narrowed_paths, 1, "{len} octets");
        assert!(network.events(0).contains(&Event::PathNarrowed(writer)), "{len} octets");
    }
}

fn best_effort_pair(network: &mut Network) -> (WriterHandle, ReaderHandle) {
    let writer = DataWriterQos { reliability: best_effort(), ..keep_all_writer() };
    let reader = DataReaderQos { reliability: best_effort(), ..keep_all_reader() };
    let writer = network.writer(0, writer_spec("T", false, writer));
    let reader = network.reader(1, reader_spec("T", false, reader));
    network.await_match((0, writer), (1, reader));
    network.events(0);
    (writer, reader)
}

/// Writes a sample every 50 ms. Returns how many of the last ten arrive.
fn write_each_50_ms(
    network: &mut Network,
    (writer, reader): (WriterHandle, ReaderHandle),
    count: u32,
    len: usize,
) -> usize {
    let mut taken = 0;
    for number in 0..count {
        network.write(0, writer, &payload(number, len)).expect("write accepted");
        network.run(50);
        let arrived = network.take_all(1, reader);
        assert!(arrived.iter().all(|(_, bytes)| *bytes == payload(number, len)));
        taken += if number + 10 >= count { arrived.len() } else { 0 };
    }
    taken
}

#[test]
fn best_effort_writer_sends_shorter_datagrams_when_long_ones_never_arrive() {
    for len in [1_460, 8_000, 20_000, 1_000_000] {
        let mut network = Network::with_mtu(2, 69, 9_000);
        network.path_len_max = Some(1_472);
        let pair = best_effort_pair(&mut network);
        assert_eq!(write_each_50_ms(&mut network, pair, 200, len), 10, "{len} octets");
        assert_eq!(network.nodes[0].counters().narrowed_paths, 1, "{len} octets");
        assert!(network.events(0).contains(&Event::PathNarrowed(pair.0)), "{len} octets");
    }
}

#[test]
fn best_effort_writer_of_short_samples_sends_no_path_probe() {
    let mut network = Network::with_mtu(2, 69, 9_000);
    network.path_len_max = Some(1_472);
    let pair = best_effort_pair(&mut network);
    network.longest = 0;
    assert_eq!(write_each_50_ms(&mut network, pair, 200, 1_000), 10);
    assert!(network.longest < 1_200 && network.nodes[0].counters().narrowed_paths == 0);
}

#[test]
fn best_effort_writer_keeps_long_datagrams_when_they_arrive() {
    let mut network = Network::with_mtu(2, 70, 9_000);
    let pair = best_effort_pair(&mut network);
    network.faults = Faults { loss: 30, ..Faults::default() };
    write_each_50_ms(&mut network, pair, 400, 8_000);
    network.longest = 0;
    write_each_50_ms(&mut network, pair, 10, 8_000);
    assert!(network.longest > 8_000 && network.nodes[0].counters().narrowed_paths == 0);
}

/// A participant that does not answer may be stopped, and its path may still carry long datagrams.
#[test]
fn datagram_length_is_kept_when_a_participant_answers_no_probe() {
    let mut network = Network::with_mtu(2, 70, 9_000);
    let pair = best_effort_pair(&mut network);
    network.hold_up(1);
    write_each_50_ms(&mut network, pair, 100, 8_000);
    network.resume(1, true);
    network.take_all(1, pair.1);
    assert_eq!(write_each_50_ms(&mut network, pair, 20, 8_000), 10);
    assert_eq!(network.nodes[0].counters().narrowed_paths, 0);
}

#[test]
fn datagram_length_is_kept_when_only_some_long_ones_are_lost() {
    let mut network = Network::with_mtu(2, 70, 9_000);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    network.faults = Faults { loss: 30, duplication: 5, reordering: 10 };
    for number in 0..40 {
        network.write(0, writer, &payload(number, 100_000)).expect("write accepted");
    }
    assert!(network.run_until(60_000, |n| n.nodes[0].is_acknowledged(writer, None) == Ok(true)));
    assert_eq!(network.take_all(1, reader).len(), 40);
    assert_eq!(network.nodes[0].counters().narrowed_paths, 0);
}

/// Key extractor of a type whose keys cannot be decoded: instances are identified by announced
/// hashes.
struct Unreadable;

impl KeyExtractor for Unreadable {
    fn key_hash(&mut self, _payload: &[u8], _key_only: bool) -> Option<KeyHash> {
        None
    }

    fn serialize_key(&mut self, _payload: &[u8], _key_only: bool, _key: &mut Vec<u8>) -> bool {
        false
    }
}

#[test]
fn inline_qos_of_any_fragment_is_applied() {
    for order in [[1, 2, 3], [3, 2, 1], [2, 1, 3]] {
        let now = Instant(1_000_000_000);
        let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
        let spec = ReaderSpec { key: Some(Box::new(Unreadable)), ..reader_spec("T", true, keep_all_reader()) };
        let reader = node.create_reader(now, spec).expect("the reader is valid");
        let mut puppet = Puppet::new(9);
        puppet.join(&mut node, now);
        let writer = EntityId::user_writer(1, true);
        let publication = PublicationData { guid: puppet.guid(writer), ..puppet.publication(1, true) };
        puppet.publish(&mut node, now, &publication);
        let heartbeat = puppet.heartbeat(writer, 1, 1);
        let mut inline = InlineQosBuilder::<64>::new();
        inline.key_hash(hash(7)).expect("it fits");
        let inline = inline.finish().expect("it fits").to_vec();
        puppet.say(&mut node, now, |message| {
            message.heartbeat(&heartbeat).expect("it fits");
            for number in order {
                let bytes = [number as u8; 100];
                let inline_qos = (number == 1).then_some(&inline[..]);
                let piece = DataFragEmit { inline_qos, ..fragment(writer, 1, number, 300, &bytes) };
                message.data_frag(&piece).expect("it fits");
            }
        });
        let sample = node.read_next(now, reader, Selector::TAKE, &mut ReadCursor::default()).expect("reader exists");
        assert_eq!(sample.map(|sample| sample.info.instance_handle), Some(InstanceHandle(hash(7))), "{order:?}");
    }
}

/// Fragments of a live sample wait in the socket while a reader of the same host joins. They are as
/// small as the path to the other host requires, while repairs for the new reader are as large as
/// its own path permits.
#[test]
fn reader_with_fragments_of_another_size_gets_the_sample() {
    let mut network = Network::new(2, 71);
    let durability = Durability::TransientLocal;
    let writer = network.writer(0, writer_spec("T", false, DataWriterQos { durability, ..keep_all_writer() }));
    let readers = [0, 1].map(|node| network.reader(node, reader_spec("T", false, keep_all_reader())));
    for (node, reader) in [0, 1].into_iter().zip(readers) {
        network.await_match((0, writer), (node, reader));
    }
    network.run(200);
    let sample = payload(7, 40_000);
    // The first fragments arrive at both hosts, the others at none.
    network.keep = Some(28);
    network.write(0, writer, &sample).expect("write accepted");
    assert!(network.run_until(0, |network| network.keep == Some(0)), "they are under way");
    let late = network.reader(0, reader_spec("T", false, DataReaderQos { durability, ..keep_all_reader() }));
    network.keep = None;
    network.run(5_000);
    for (node, reader) in [(0, readers[0]), (1, readers[1]), (0, late)] {
        let taken: Vec<_> = network.take_all(node, reader).into_iter().map(|(_, bytes)| bytes).collect();
        assert!(taken == [sample.clone()], "node {node}, {reader:?}: {} samples", taken.len());
    }
}

/// Best-effort reader, and the fragments that a best-effort writer sends to it.
struct Unrepeated {
    node: Participant,
    reader: ReaderHandle,
    puppet: Puppet,
}

impl Unrepeated {
    const WRITER: EntityId = EntityId::user_writer(1, false);

    fn new() -> Self {
        let now = Instant(1_000_000_000);
        let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
        let qos = DataReaderQos { reliability: best_effort(), ..keep_all_reader() };
        let reader = node.create_reader(now, reader_spec("T", false, qos)).expect("the reader is valid");
        let mut puppet = Puppet::new(9);
        puppet.join(&mut node, now);
        let publication = puppet.publication(1, false);
        puppet.publish(&mut node, now, &publication);
        Self { node, reader, puppet }
    }

    /// Sends fragments of samples with three fragments, each given as sample and fragment number.
    fn fragments(&mut self, fragments: &[(i64, u32)]) {
        for (sn, number) in fragments {
            let bytes = [*number as u8; 100];
            self.puppet.say(&mut self.node, Instant(1_000_000_000), |message| {
                message.data_frag(&fragment(Self::WRITER, *sn, *number, 300, &bytes)).expect("it fits");
            });
        }
    }

    fn gap(&mut self, start: i64, end: i64) {
        let gap = Gap {
            reader: EntityId::UNKNOWN,
            writer: Self::WRITER,
            gap_start: SequenceNumber(start),
            gap_list: SequenceNumberSet::new(SequenceNumber(end)),
        };
        self.puppet.say(&mut self.node, Instant(1_000_000_000), |message| message.gap(&gap).expect("it fits"));
    }

    fn lost(&mut self) -> u64 {
        self.node.samples_lost_total(self.reader).expect("the reader exists")
    }

    fn taken(&mut self) -> usize {
        let mut count = 0;
        let now = Instant(1_000_000_000);
        while let Ok(Some(_)) = self.node.read_next(now, self.reader, Selector::TAKE, &mut ReadCursor::default()) {
            count += 1;
        }
        count
    }
}

#[test]
fn incomplete_best_effort_samples_are_lost_once_two_later_ones_have_begun() {
    let mut t = Unrepeated::new();
    for sn in 5..15 {
        t.fragments(&[(sn, 1), (sn, 3)]);
        assert_eq!(t.lost(), (sn - 6).max(0) as u64, "sample {sn} has begun");
    }
    assert!(t.node.poll_event().is_some());
    t.fragments(&[(5, 2)]);
    assert_eq!((t.taken(), t.lost()), (0, 8), "its other fragments are gone");
    t.fragments(&[(14, 2)]);
    assert_eq!((t.taken(), t.lost()), (1, 9), "a whole sample ends those before it");
}

#[test]
fn best_effort_samples_without_any_fragment_are_lost_with_their_neighbors() {
    let mut t = Unrepeated::new();
    t.fragments(&[(5, 1), (9, 1)]);
    assert_eq!(t.lost(), 0, "the others may be late");
    t.fragments(&[(12, 1)]);
    assert_eq!(t.lost(), 4, "nothing of 6, 7, 8 arrived");
    t.gap(10, 12);
    t.fragments(&[(13, 1)]);
    assert_eq!(t.lost(), 5, "10 and 11 are not for this reader");
}

#[test]
fn fragments_of_consecutive_best_effort_samples_may_overtake_one_another() {
    let mut t = Unrepeated::new();
    t.fragments(&[(1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (3, 1), (2, 3), (4, 1), (4, 2), (3, 2), (3, 3), (4, 3)]);
    assert_eq!((t.taken(), t.lost()), (4, 0));
}
