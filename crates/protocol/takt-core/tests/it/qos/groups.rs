//! Group presentation: coherent sets and order of several writers of one publisher
//! (DDS 1.4 §2.2.3.6, RTPS 2.5 §8.7.5, §8.7.6).

use crate::network::*;
use takt_core::*;
use takt_wire::qos::*;

pub(crate) fn group(coherent_access: bool, ordered_access: bool) -> Presentation {
    Presentation { access_scope: AccessScope::Group, coherent_access, ordered_access }
}

pub(crate) const COHERENT: (bool, bool) = (true, false);
pub(crate) const ORDERED: (bool, bool) = (false, true);
pub(crate) const BOTH: (bool, bool) = (true, true);

/// Samples that a writer sends before the first is acknowledged.
const SEND_WINDOW: usize = 512;

pub(crate) struct World {
    pub(crate) network: Network,
    publisher: PublisherHandle,
    pub(crate) subscriber: SubscriberHandle,
    pub(crate) writers: Vec<WriterHandle>,
    pub(crate) readers: Vec<ReaderHandle>,
    written: u32,
}

/// Creates a publisher with a writer for each topic, and a subscriber with a reader for each.
pub(crate) fn world(seed: u64, topics: &[&str], (coherent, ordered): (bool, bool), reader: &DataReaderQos) -> World {
    let presentation = group(coherent, ordered);
    let mut network = Network::new(2, seed);
    let publisher = network.nodes[0].create_publisher(presentation).expect("write accepted");
    let subscriber = network.nodes[1].create_subscriber(presentation).expect("write accepted");
    let (mut writers, mut readers) = (Vec::new(), Vec::new());
    for topic in topics {
        let mut spec = writer_spec(topic, false, keep_all_writer());
        (spec.group, spec.publisher.presentation) = (Some(publisher), presentation);
        writers.push(network.writer(0, spec));
        let mut spec = reader_spec(topic, false, reader.clone());
        (spec.group, spec.subscriber.presentation) = (Some(subscriber), presentation);
        readers.push(network.reader(1, spec));
        let (writer, reader) = (writers[writers.len() - 1], readers[readers.len() - 1]);
        network.await_match((0, writer), (1, reader));
    }
    network.run(500);
    World { network, publisher, subscriber, writers, readers, written: 0 }
}

impl World {
    /// Writes ascending numbers with the given writers, in this order.
    pub(crate) fn write(&mut self, writers: &[usize]) {
        for &writer in writers {
            self.written += 1;
            let bytes = payload(self.written, 12);
            self.network.write(0, self.writers[writer], &bytes).expect("write accepted");
        }
    }

    pub(crate) fn begin(&mut self) {
        self.network.nodes[0].begin_coherent_changes(self.publisher).expect("it exists");
    }

    pub(crate) fn end(&mut self) {
        let now = self.network.now;
        self.network.nodes[0].end_coherent_changes(now, self.publisher).expect("it has begun");
    }

    fn begin_access(&mut self) {
        self.network.nodes[1].begin_access(self.subscriber).expect("it exists");
    }

    fn end_access(&mut self) {
        let now = self.network.now;
        self.network.nodes[1].end_access(now, self.subscriber).expect("it has begun");
    }

    fn take_one(&mut self, reader: ReaderHandle) -> Option<u32> {
        let (_, bytes) = self.network.take(1, reader)?;
        Some(u32::from_le_bytes(bytes[4..8].try_into().expect("a number")))
    }

    /// Takes all samples of one reader; access must be open.
    fn take(&mut self, reader: usize) -> Vec<u32> {
        let reader = self.readers[reader];
        std::iter::from_fn(|| self.take_one(reader)).collect()
    }

    /// Takes all samples of all readers, one reader after another.
    pub(crate) fn take_all(&mut self) -> Vec<Vec<u32>> {
        self.begin_access();
        let taken = (0..self.readers.len()).map(|reader| self.take(reader)).collect();
        self.end_access();
        taken
    }

    /// Takes one sample from each reader that the subscriber lists, in that order.
    fn take_in_order(&mut self) -> Vec<u32> {
        self.begin_access();
        let readers = self.network.nodes[1].readers_with(self.subscriber, &Selector::READ).expect("access is open");
        let taken = readers.into_iter().map(|reader| self.take_one(reader).expect("as announced")).collect();
        self.end_access();
        taken
    }

    /// As [`Self::take_in_order`], after each datagram of the next seconds.
    fn take_after_each_datagram(&mut self) -> Vec<u32> {
        let mut taken = Vec::new();
        let end = Instant(self.network.now.0 + 3_000_000_000);
        while self.network.now < end {
            let delivered = self.network.delivered;
            self.network.run_until(100, |network| network.delivered > delivered);
            taken.extend(self.take_in_order());
        }
        taken
    }

    /// Returns how many acknowledgments are sent in that time.
    fn acknacks_of_three_seconds(&mut self) -> u64 {
        let sent = |network: &Network| network.nodes[1].counters().acknacks_sent;
        let before = sent(&self.network);
        self.network.run_until(3_000, |network| sent(network) > before + 1_000);
        sent(&self.network) - before
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.network.nodes[1].counters().dropped_coherent_sets
    }
}

#[test]
fn set_of_several_writers_becomes_visible_at_once() {
    let mut t = world(720, &["A", "B", "C"], COHERENT, &keep_all_reader());
    t.begin();
    t.write(&[0, 1, 0, 1]);
    t.network.run(1_000);
    assert_eq!(t.take_all(), [vec![], vec![], vec![]], "it has not ended");
    t.write(&[2]);
    t.end();
    t.network.run(20);
    assert_eq!(t.take_all(), [vec![1, 3], vec![2, 4], vec![5]]);
    t.write(&[1]);
    t.network.run(20);
    assert_eq!(t.take_all(), [vec![], vec![6], vec![]]);
    assert_eq!(t.dropped(), 0);
}

#[test]
fn set_is_not_presented_while_one_writer_is_unreachable() {
    let mut t = world(721, &["A", "B"], COHERENT, &keep_all_reader());
    t.begin();
    t.write(&[0]);
    t.network.run(5);
    t.network.cut = vec![1];
    t.write(&[1]);
    t.network.run(5);
    t.network.cut = vec![];
    t.write(&[0]);
    t.end();
    assert_eq!(t.take_all(), [vec![], vec![]]);
    t.network.run(2_000);
    assert_eq!(t.take_all(), [vec![1, 3], vec![2]], "what was lost has come");
    assert_eq!(t.dropped(), 0);
}

#[test]
fn sets_are_complete_at_all_readers_under_loss() {
    let mut t = world(722, &["A", "B", "C"], BOTH, &keep_all_reader());
    t.network.faults = Faults { loss: 15, duplication: 10, reordering: 20 };
    let mut seen = 0;
    for _ in 0..30 {
        t.begin();
        t.write(&[0, 1, 2, 1, 0, 2, 1]);
        t.end();
        t.network.run_until(40, |_| false);
        let taken = t.take_in_order();
        assert_eq!(taken.len() % 7, 0, "{taken:?}");
        let expected: Vec<u32> = (seen + 1..=seen + taken.len() as u32).collect();
        assert_eq!(taken, expected);
        seen += taken.len() as u32;
    }
    t.network.faults = Faults::default();
    t.network.run(10_000);
    let rest = t.take_in_order();
    assert_eq!(seen as usize + rest.len(), 210);
    assert_eq!(t.dropped(), 0);
}

#[test]
fn readers_of_a_subscriber_present_changes_in_the_order_of_writing() {
    let mut t = world(723, &["A", "B", "C"], ORDERED, &keep_all_reader());
    t.network.faults = Faults { loss: 20, duplication: 10, reordering: 30 };
    let (mut seen, mut dice) = (Vec::new(), Dice(5));
    for _ in 0..100 {
        let writer = dice.roll(3) as usize;
        t.write(&[writer]);
        if dice.percent(30) {
            t.network.run_until(dice.roll(40), |_| false);
            seen.extend(t.take_in_order());
        }
    }
    t.network.faults = Faults::default();
    t.network.run(10_000);
    seen.extend(t.take_in_order());
    assert_eq!(seen, (1..=100).collect::<Vec<u32>>());
}

#[test]
fn changes_of_two_writers_of_one_topic_are_in_order() {
    let mut t = world(724, &["A", "B"], ORDERED, &keep_all_reader());
    let mut spec = writer_spec("A", false, keep_all_writer());
    (spec.group, spec.publisher.presentation) = (Some(t.publisher), group(false, true));
    t.writers.push(t.network.writer(0, spec));
    t.network.run(2_000);
    t.network.faults.reordering = 50;
    t.write(&[0, 2, 1, 2, 0, 2, 0]);
    t.network.run(2_000);
    t.begin_access();
    assert_eq!([t.take(0), t.take(1)], [vec![1, 2, 4, 5, 6, 7], vec![3]]);
    t.end_access();
}

#[test]
fn readers_with_group_scope_are_read_only_while_access_is_open() {
    let mut t = world(725, &["A"], BOTH, &keep_all_reader());
    t.write(&[0]);
    t.network.run(20);
    let (now, reader) = (t.network.now, t.readers[0]);
    let mut cursor = ReadCursor::default();
    let refused = t.network.nodes[1].read_next(now, reader, Selector::READ, &mut cursor).map(|found| found.is_some());
    assert!(matches!(refused, Err(Error::PreconditionNotMet { .. })), "{refused:?}");
    let refused = t.network.nodes[1].readers_with(t.subscriber, &Selector::READ);
    assert!(matches!(refused, Err(Error::PreconditionNotMet { .. })), "{refused:?}");
    t.begin_access();
    t.begin_access();
    t.end_access();
    assert_eq!(t.take(0), [1], "calls are counted");
    t.end_access();
    let refused = t.network.nodes[1].end_access(now, t.subscriber);
    assert!(matches!(refused, Err(Error::PreconditionNotMet { .. })), "{refused:?}");
    assert_eq!(t.network.nodes[1].samples_per_read_max(reader), Ok(1), "the next one may be another reader's");
}

#[test]
fn samples_stay_consistent_during_access() {
    let mut t = world(726, &["A", "B"], COHERENT, &keep_all_reader());
    for _ in 0..2 {
        t.begin();
        t.write(&[0, 1]);
        t.end();
        t.network.run(20);
        t.begin_access();
    }
    // The second set arrived while access was open.
    assert_eq!([t.take(0), t.take(1)], [vec![1], vec![2]]);
    t.end_access();
    assert_eq!([t.take(0), t.take(1)], [vec![], vec![]], "it still is");
    t.end_access();
    assert_eq!(t.take_all(), [vec![3], vec![4]]);
}

#[test]
fn group_set_is_dropped_when_one_writer_is_deleted_within_it() {
    let mut t = world(727, &["A", "B"], COHERENT, &keep_all_reader());
    t.begin();
    t.write(&[0, 1]);
    t.network.run(20);
    let now = t.network.now;
    t.network.nodes[0].delete_writer(now, t.writers[1]).expect("it exists");
    t.network.run(20);
    t.write(&[0]);
    t.end();
    t.network.run(2_000);
    assert_eq!(t.take_all()[0], [], "the other half is gone");
    assert_eq!(t.dropped(), 2, "both halves");
    t.begin();
    t.write(&[0]);
    t.end();
    t.network.run(100);
    assert_eq!(t.take_all()[0], [4]);
}

#[test]
fn group_set_waits_until_all_readers_have_room() {
    let mut reader = keep_all_reader();
    reader.resource_limits.max_samples = Some(2);
    let mut t = world(728, &["A", "B"], COHERENT, &reader);
    for _ in 0..2 {
        t.begin();
        t.write(&[0, 1, 1]);
        t.end();
    }
    t.network.run(1_000);
    t.begin_access();
    assert_eq!(t.take(0), [1]);
    t.end_access();
    t.network.run(100);
    t.begin_access();
    assert_eq!(
        [t.take(0), t.take(1)],
        [vec![], vec![2, 3]],
        "one reader has room for the second set, the other has not"
    );
    t.end_access();
    assert_eq!(t.take_all(), [vec![4], vec![5, 6]]);
    t.begin();
    t.write(&[0, 1, 1, 1]);
    t.end();
    t.begin();
    t.write(&[0]);
    t.end();
    t.network.run(1_000);
    assert_eq!(t.take_all(), [vec![11], vec![]], "three in one reader never fit");
    assert_eq!(t.dropped(), 2, "parts of one set");
}

#[test]
fn unmatched_writer_does_not_delay_the_group() {
    let mut t = world(729, &["A", "B"], BOTH, &keep_all_reader());
    let mut spec = writer_spec("elsewhere", false, keep_all_writer());
    (spec.group, spec.publisher.presentation) = (Some(t.publisher), group(true, true));
    t.writers.push(t.network.writer(0, spec));
    t.network.run(1_000);
    t.begin();
    t.write(&[0, 2, 1]);
    t.end();
    t.write(&[2, 0]);
    t.network.run(100);
    assert_eq!(t.take_in_order(), [1, 3, 5]);
    assert_eq!(t.dropped(), 0);
}

/// Adds a reader of a topic to the world's subscriber.
pub(crate) fn add_reader(t: &mut World, topic: &str, qos: DataReaderQos, presentation: Presentation) -> ReaderHandle {
    let mut spec = reader_spec(topic, false, qos);
    (spec.group, spec.subscriber.presentation) = (Some(t.subscriber), presentation);
    let reader = t.network.reader(1, spec);
    t.readers.push(reader);
    reader
}

/// Found by the simulation, seed 40180.
#[test]
fn writer_created_after_the_last_change_does_not_delay_the_group() {
    let (mut t, presentation) = (world(736, &[], ORDERED, &keep_all_reader()), group(false, true));
    let durability = Durability::TransientLocal;
    add_writer(&mut t, "A", DataWriterQos { durability, ..keep_all_writer() }, presentation);
    t.write(&[0, 0, 0]);
    add_writer(&mut t, "B", keep_all_writer(), presentation);
    add_reader(&mut t, "A", DataReaderQos { durability, ..keep_all_reader() }, presentation);
    add_reader(&mut t, "B", keep_all_reader(), presentation);
    t.network.run(5_000);
    assert_eq!(t.take_in_order(), [1, 2, 3]);
}

/// Found by the simulation, seed 51319.
#[test]
fn initial_heartbeat_of_a_late_reader_has_the_group_sequence_number() {
    let (mut t, presentation) = (world(737, &["A"], ORDERED, &keep_all_reader()), group(false, true));
    add_writer(&mut t, "B", keep_all_writer(), presentation);
    add_reader(&mut t, "B", keep_all_reader(), presentation);
    for _ in 0..200 {
        t.write(&[0, 1]);
        t.network.run(1);
    }
    t.network.run(1_000);
    assert_eq!(t.network.nodes[1].cautions().count(), 0);
    assert!(t.take_in_order().is_sorted());
}

#[test]
fn late_subscriber_presents_only_complete_sets() {
    let mut t = world(730, &["A", "B"], COHERENT, &keep_all_reader());
    t.begin();
    t.write(&[0, 1]);
    t.network.run(20);
    let presentation = group(true, false);
    let late = t.network.nodes[1].create_subscriber(presentation).expect("write accepted");
    let readers: Vec<_> = ["A", "B"]
        .into_iter()
        .map(|topic| {
            let mut spec = reader_spec(topic, false, keep_all_reader());
            (spec.group, spec.subscriber.presentation) = (Some(late), presentation);
            t.network.reader(1, spec)
        })
        .collect();
    t.network.run(1_000);
    t.write(&[1]);
    t.end();
    t.begin();
    t.write(&[0, 1]);
    t.end();
    t.network.run(1_000);
    assert_eq!(t.take_all(), [vec![1, 4], vec![2, 3, 5]]);
    (t.subscriber, t.readers) = (late, readers);
    assert_eq!(t.take_all(), [vec![4], vec![5]]);
}

#[test]
fn heartbeat_is_requested_when_group_information_was_lost() {
    let mut t = world(731, &["A", "B"], ORDERED, &keep_all_reader());
    t.write(&[0, 0]);
    // Both changes are in one datagram; the other writer's group information about them is lost.
    t.network.keep = Some(1);
    t.network.run(1);
    t.network.keep = None;
    assert_eq!(t.take_all(), [vec![1], vec![]], "nothing precedes the first; the other writer may precede the second");
    t.network.run(1_000);
    assert_eq!(t.take_all(), [vec![2], vec![]]);
}

/// Adds a writer of a topic to the world's publisher.
pub(crate) fn add_writer(t: &mut World, topic: &str, qos: DataWriterQos, presentation: Presentation) -> WriterHandle {
    let mut spec = writer_spec(topic, false, qos);
    (spec.group, spec.publisher.presentation) = (Some(t.publisher), presentation);
    let writer = t.network.writer(0, spec);
    t.writers.push(writer);
    writer
}

#[test]
fn heartbeat_does_not_cover_later_changes() {
    // The writer's own next change has the next group sequence number. A late reader knows the
    // numbers from a heartbeat.
    let mut t = world(732, &["A"], ORDERED, &keep_all_reader());
    let other = add_writer(&mut t, "B", keep_all_writer(), group(false, true));
    t.write(&[0, 1]);
    t.network.run(500);
    let mut spec = reader_spec("B", false, keep_all_reader());
    (spec.group, spec.subscriber.presentation) = (Some(t.subscriber), group(false, true));
    let reader = t.network.reader(1, spec);
    t.readers.push(reader);
    t.network.await_match((0, other), (1, reader));
    t.network.run(500);
    assert_eq!(t.take_in_order(), [1]);
    t.write(&[1]);
    t.network.keep = Some(0);
    t.network.run_until(0, |_| true);
    t.network.keep = None;
    t.write(&[0]);
    assert_eq!(t.take_after_each_datagram(), [3, 4], "number 3 was lost and arrived after number 4");
}

#[test]
fn full_reader_affects_only_publishers_whose_changes_it_holds() {
    let presentation = group(false, true);
    let mut t = world(733, &["B"], ORDERED, &keep_all_reader());
    let mut spec = reader_spec("A", false, keep_all_reader());
    (spec.group, spec.subscriber.presentation) = (Some(t.subscriber), presentation);
    spec.qos.resource_limits.max_samples = Some(2);
    let full = t.network.reader(1, spec);
    t.readers.push(full);
    add_writer(&mut t, "B", keep_all_writer(), presentation);
    let orderly = add_writer(&mut t, "A", keep_all_writer(), presentation);
    let node = t.network.join();
    let publisher = t.network.nodes[node].create_publisher(presentation).expect("write accepted");
    let others = [(); 2].map(|()| {
        let mut spec = writer_spec("A", false, keep_all_writer());
        (spec.group, spec.publisher.presentation) = (Some(publisher), presentation);
        t.network.writer(node, spec)
    });
    t.network.await_match((0, orderly), (1, full));
    t.network.run(2_000);

    // The changes of the second writer of each publisher are lost at first.
    t.network.keep = Some(0);
    t.write(&[1]);
    t.network.write(node, others[1], &payload(11, 12)).expect("write accepted");
    t.network.run_until(0, |_| true);
    t.network.keep = None;
    t.write(&[0]);
    for number in [12, 13, 14] {
        t.network.write(node, others[0], &payload(number, 12)).expect("write accepted");
    }
    let (orderly, mut rest): (Vec<u32>, Vec<u32>) = t.take_after_each_datagram().into_iter().partition(|n| *n < 10);
    assert_eq!(orderly, [1, 2], "nothing of this publisher waits at the full reader");
    rest.sort_unstable();
    assert_eq!(rest, [11, 12, 13, 14], "there is no room for the first before others are removed");
}

#[test]
fn heartbeat_requests_become_rarer_when_they_bring_no_information() {
    // The first writer has an unsent change, because its publications are suspended. Its heartbeats
    // therefore do not contain the information that the other writer's change waits for.
    let mut t = world(734, &["A", "B"], ORDERED, &keep_all_reader());
    let node = t.network.join();
    let muted = t.network.reader(node, reader_spec("A", false, keep_all_reader()));
    t.network.await_match((0, t.writers[0]), (node, muted));
    t.network.run(500);
    t.network.cut = vec![node];
    t.write(&[0; SEND_WINDOW]);
    t.network.run(1);
    t.network.nodes[0].suspend_writer(t.writers[0], true).expect("it exists");
    t.write(&[0, 1]);
    let acknacks = t.acknacks_of_three_seconds();
    // One acknowledgment for each heartbeat, every 100 ms, and one request every 128 ms; more at
    // the beginning.
    assert!((30..=120).contains(&acknacks), "{acknacks} in 3 s");
    assert_eq!(t.take_in_order(), (1..=SEND_WINDOW as u32).collect::<Vec<_>>(), "the rest waits");
    t.network.cut = vec![];
    t.network.nodes[0].suspend_writer(t.writers[0], false).expect("it exists");
    t.network.run(1_000);
    assert_eq!(t.take_in_order(), [SEND_WINDOW as u32 + 1, SEND_WINDOW as u32 + 2]);
}

#[test]
fn full_reader_does_not_request_a_heartbeat_with_each_answer() {
    // Found by the simulation, seed 341: there is no room for further changes of the first writer,
    // so requests to it cannot help. Its heartbeats require an answer, because it has
    // unacknowledged changes. An answer with a request causes the next heartbeat.
    let mut reader = keep_all_reader();
    reader.resource_limits.max_samples = Some(2);
    let mut t = world(736, &["A", "B"], ORDERED, &reader);
    t.write(&[0, 0]);
    t.network.run(20);
    t.write(&[0, 0, 0]);
    t.write(&[1]);
    let acknacks = t.acknacks_of_three_seconds();
    assert!((30..=120).contains(&acknacks), "{acknacks} in 3 s");
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.extend(t.take_in_order());
        let acknacks = t.acknacks_of_three_seconds();
        assert!(acknacks <= 120, "{acknacks} in 3 s");
    }
    taken.extend(t.take_in_order());
    assert_eq!(taken, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn all_sets_that_become_due_at_once_are_presented() {
    let mut t = world(735, &["A", "B"], COHERENT, &keep_all_reader());
    t.begin();
    t.write(&[0]);
    t.network.keep = Some(0);
    t.network.run_until(0, |_| true);
    t.network.keep = None;
    t.write(&[1]);
    t.end();
    for _ in 0..9 {
        t.begin();
        t.write(&[0, 1]);
        t.end();
    }
    t.network.events(1);
    let is_available = |event: &Event| matches!(event, Event::DataAvailable(_));
    assert!(t.network.run_until(1_000, |network| network.events(1).iter().any(is_available)), "what was lost has come");
    // Nothing else arrives that could trigger the presentation of the rest, and no access is
    // closed.
    t.network.cut = vec![0, 1];
    t.network.run(1);
    let taken = t.take_all();
    assert_eq!([taken[0].len(), taken[1].len()], [10, 10]);
}

#[test]
fn reader_is_listed_once_with_all_its_samples_without_ordered_access() {
    let mut t = world(740, &["A", "B", "C"], COHERENT, &keep_all_reader());
    t.begin();
    t.write(&[0, 2, 0]);
    t.end();
    t.network.run(20);
    t.begin_access();
    let named = t.network.nodes[1].readers_with(t.subscriber, &Selector::READ).expect("access is open");
    assert_eq!(named, [t.readers[0], t.readers[2]]);
    assert_eq!(t.network.nodes[1].samples_per_read_max(t.readers[0]), Ok(usize::MAX));
    t.end_access();
}

#[test]
fn deleted_publisher_and_subscriber_report_already_deleted() {
    let mut t = world(741, &["A"], ORDERED, &keep_all_reader());
    let (now, publisher, subscriber) = (t.network.now, t.publisher, t.subscriber);
    let [sender, receiver] = &mut t.network.nodes[..] else { panic!("two nodes") };
    sender.delete_writer(now, t.writers[0]).expect("it exists");
    receiver.delete_reader(now, t.readers[0]).expect("it exists");
    sender.delete_publisher(publisher).expect("it exists");
    receiver.delete_subscriber(subscriber).expect("it exists");
    assert_eq!(sender.delete_publisher(publisher), Err(Error::AlreadyDeleted));
    assert_eq!(sender.begin_coherent_changes(publisher), Err(Error::AlreadyDeleted));
    assert_eq!(receiver.delete_subscriber(subscriber), Err(Error::AlreadyDeleted));
    assert_eq!(receiver.end_access(now, subscriber), Err(Error::AlreadyDeleted));
}
