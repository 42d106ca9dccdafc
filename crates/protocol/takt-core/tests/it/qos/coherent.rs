//! Coherent sets of one writer: presented as a whole or not at all
//! (DDS 1.4 §2.2.3.6, RTPS 2.5 §8.7.6).

use crate::network::*;
use crate::qos::content_filter::{Factory, multiples_of};
use takt_core::*;
use takt_wire::qos::*;

/// Returns PRESENTATION with coherent access.
pub fn coherent(access_scope: AccessScope) -> Presentation {
    Presentation { access_scope, coherent_access: true, ordered_access: false }
}

struct Pair {
    network: Network,
    publisher: PublisherHandle,
    subscriber: SubscriberHandle,
    writer: WriterHandle,
    reader: ReaderHandle,
}

fn pair(seed: u64, writer: DataWriterQos, reader: DataReaderQos) -> Pair {
    let mut network = Network::new(2, seed);
    let offered = coherent(AccessScope::Topic);
    let publisher = network.nodes[0].create_publisher(offered).expect("write accepted");
    let mut spec = writer_spec("T", true, writer);
    (spec.group, spec.publisher.presentation) = (Some(publisher), offered);
    let writer = network.writer(0, spec);
    let (subscriber, reader) = create_reader(&mut network, reader, offered);
    network.await_match((0, writer), (1, reader));
    network.run(500);
    Pair { network, publisher, subscriber, writer, reader }
}

/// Creates a reader of a subscriber of its own.
fn create_reader(
    network: &mut Network,
    qos: DataReaderQos,
    requested: Presentation,
) -> (SubscriberHandle, ReaderHandle) {
    let subscriber = network.nodes[1].create_subscriber(requested).expect("write accepted");
    let mut spec = reader_spec("T", true, qos);
    (spec.group, spec.subscriber.presentation) = (Some(subscriber), requested);
    (subscriber, network.reader(1, spec))
}

impl Pair {
    fn begin(&mut self) {
        self.network.nodes[0].begin_coherent_changes(self.publisher).expect("it exists");
    }

    fn end(&mut self) {
        let now = self.network.now;
        self.network.nodes[0].end_coherent_changes(now, self.publisher).expect("it has begun");
    }

    fn write(&mut self, keys: &[u8]) {
        for &key in keys {
            let bytes = payload(u32::from(key), 20);
            self.network.write_key(0, self.writer, ChangeKind::Alive, hash(key), &bytes).expect("write accepted");
        }
    }

    fn set(&mut self, keys: &[u8]) {
        self.begin();
        self.write(keys);
        self.end();
    }

    /// Returns the keys of the visible samples, in order, without taking them.
    fn seen(&mut self) -> Vec<u8> {
        let (mut cursor, mut keys) = (ReadCursor::default(), Vec::new());
        let node = &mut self.network.nodes[1];
        while let Some(found) =
            node.read_next(self.network.now, self.reader, Selector::READ, &mut cursor).expect("lives")
        {
            keys.push(found.info.instance_handle.0[0]);
        }
        keys
    }

    fn take(&mut self) -> Vec<u8> {
        let taken = self.network.take_all(1, self.reader);
        let now = self.network.now;
        self.network.nodes[1].end_read(now, self.reader).expect("it exists");
        taken.iter().map(|(info, _)| info.instance_handle.0[0]).collect()
    }

    fn dropped(&self) -> u64 {
        self.network.nodes[1].counters().dropped_coherent_sets
    }

    fn lost(&mut self) -> u64 {
        self.network.nodes[1].sample_lost_status(self.reader).expect("it exists").total_count
    }
}

#[test]
fn set_becomes_visible_at_its_end() {
    let mut t = pair(700, keep_all_writer(), keep_all_reader());
    t.begin();
    t.write(&[1, 2, 1]);
    t.network.run(1_000);
    assert_eq!(t.seen(), [], "it has not ended");
    t.write(&[3]);
    t.end();
    t.network.run(10);
    assert_eq!(t.take(), [1, 2, 1, 3]);
    t.write(&[4]);
    t.network.run(10);
    assert_eq!(t.take(), [4], "changes outside of a set are visible at once");
    assert_eq!((t.dropped(), t.lost()), (0, 0));
}

#[test]
fn sets_stay_complete_under_loss_duplication_and_reordering() {
    let mut t = pair(701, keep_all_writer(), keep_all_reader());
    t.network.faults = Faults { loss: 20, duplication: 10, reordering: 30 };
    let mut seen = Vec::new();
    for set in 0..40_u8 {
        t.set(&[set, 100 + set, set]);
        t.write(&[200]);
        t.network.run_until(30, |_| false);
        seen.extend(t.take());
        let open = seen.len() % 4;
        assert!(open == 0 || open == 3, "{seen:?}");
    }
    t.network.faults = Faults::default();
    t.network.run(5_000);
    seen.extend(t.take());
    let expected: Vec<u8> = (0..40).flat_map(|set| [set, 100 + set, set, 200]).collect();
    assert_eq!(seen, expected);
    assert_eq!(t.dropped(), 0);
}

#[test]
fn nested_set_ends_with_the_outermost_call() {
    let mut t = pair(702, keep_all_writer(), keep_all_reader());
    t.begin();
    t.set(&[1]);
    t.write(&[2]);
    t.network.run(100);
    assert_eq!(t.seen(), []);
    t.end();
    t.network.run(10);
    assert_eq!(t.take(), [1, 2]);
    let now = t.network.now;
    let refused = t.network.nodes[0].end_coherent_changes(now, t.publisher);
    assert!(matches!(refused, Err(Error::PreconditionNotMet { .. })), "{refused:?}");
    t.set(&[]);
    t.write(&[3]);
    t.network.run(10);
    assert_eq!(t.take(), [3], "a set of nothing is nothing");
}

#[test]
fn set_is_dropped_when_a_change_is_lost() {
    // The writer keeps one sample of an instance, so lost samples cannot be repaired.
    let mut writer = keep_all_writer();
    writer.history = History::KeepLast(1);
    let mut t = pair(703, writer, keep_all_reader());
    t.begin();
    t.write(&[1]);
    t.network.cut = vec![1];
    t.write(&[2]);
    t.network.run(5);
    t.network.cut = vec![];
    t.write(&[2, 3]);
    t.end();
    t.network.run(2_000);
    assert_eq!(t.take(), [], "the first change of instance 2 never arrived");
    assert_eq!((t.dropped(), t.lost()), (1, 3));
    t.set(&[4, 5]);
    t.network.run(100);
    assert_eq!(t.take(), [4, 5], "the next set has nothing to do with it");
}

#[test]
fn best_effort_reader_presents_only_complete_sets() {
    let mut writer = keep_all_writer();
    writer.reliability = best_effort();
    let mut reader = keep_all_reader();
    reader.reliability = best_effort();
    let mut t = pair(704, writer, reader);
    t.network.faults.loss = 10;
    let mut complete = 0;
    for set in 0..50 {
        t.begin();
        for key in 0..4 {
            t.write(&[key]);
            t.network.run(1);
        }
        t.end();
        t.network.run(1);
        let seen = t.take();
        assert!(seen.len().is_multiple_of(4), "set {set}: {seen:?}");
        complete += seen.len() / 4;
    }
    assert!((1..50).contains(&complete), "{complete}");
    assert_eq!(t.dropped() as usize + complete, 50, "at least its end shows");
}

#[test]
fn open_set_is_dropped_when_its_writer_is_deleted() {
    let mut t = pair(705, keep_all_writer(), keep_all_reader());
    t.set(&[1, 2]);
    t.begin();
    t.write(&[3, 4]);
    t.network.run(100);
    let now = t.network.now;
    t.network.nodes[0].delete_writer(now, t.writer).expect("it exists");
    t.network.run(1_000);
    let infos = t.network.take_all(1, t.reader);
    let keys: Vec<_> =
        infos.iter().filter(|(info, _)| info.valid_data).map(|(info, _)| info.instance_handle.0[0]).collect();
    assert_eq!(keys, [1, 2]);
    assert_eq!((t.dropped(), t.lost()), (1, 2));
}

#[test]
fn reader_that_joins_within_a_set_presents_the_next_one() {
    let mut t = pair(706, keep_all_writer(), keep_all_reader());
    t.begin();
    t.write(&[1]);
    t.network.run(10);
    let (_, late) = create_reader(&mut t.network, keep_all_reader(), coherent(AccessScope::Instance));
    t.network.run(1_000);
    t.write(&[2]);
    t.end();
    t.set(&[3, 4]);
    t.network.run(1_000);
    assert_eq!(t.take(), [1, 2, 3, 4], "a reader present from the start receives both");
    t.reader = late;
    assert_eq!(t.take(), [3, 4]);
    assert_eq!(t.dropped(), 1);
}

#[test]
fn late_joiner_gets_the_history_in_complete_sets() {
    let mut writer = keep_all_writer();
    writer.durability = Durability::TransientLocal;
    let mut t = pair(707, writer, keep_all_reader());
    t.set(&[1, 2]);
    t.write(&[9]);
    t.set(&[3]);
    t.begin();
    t.write(&[4, 5]);
    t.network.run(100);
    let mut reader = keep_all_reader();
    reader.durability = Durability::TransientLocal;
    (_, t.reader) = create_reader(&mut t.network, reader, coherent(AccessScope::Topic));
    t.network.run(2_000);
    assert_eq!(t.take(), [1, 2, 9, 3]);
    t.end();
    t.network.run(100);
    assert_eq!(t.take(), [4, 5]);
}

#[test]
fn set_waits_for_room_and_is_dropped_when_it_can_never_fit() {
    let mut reader = keep_all_reader();
    reader.resource_limits.max_samples = Some(4);
    let mut t = pair(708, keep_all_writer(), reader);
    t.set(&[1, 2, 3]);
    t.set(&[4, 5]);
    t.network.run(1_000);
    assert_eq!(t.seen(), [1, 2, 3], "there is room for one more, not for two");
    assert_eq!(t.take(), [1, 2, 3, 4, 5], "there is room as soon as one is taken");
    t.set(&[1, 2, 3, 4, 5]);
    t.set(&[6]);
    t.network.run(1_000);
    assert_eq!(t.take(), [6], "five never fit");
    assert_eq!((t.dropped(), t.lost()), (1, 5));
}

#[test]
fn broken_set_does_not_affect_an_earlier_one_that_waits_for_room() {
    // The writer keeps one sample of an instance, so lost samples cannot be repaired.
    let mut writer = keep_all_writer();
    writer.history = History::KeepLast(1);
    let mut reader = keep_all_reader();
    reader.resource_limits.max_samples = Some(4);
    let mut t = pair(711, writer, reader);
    t.set(&[1, 2, 3]);
    t.set(&[4, 5]);
    t.network.run(1_000);
    assert_eq!(t.seen(), [1, 2, 3], "there is room for one more, not for two");
    t.begin();
    t.write(&[6]);
    for key in [7, 8] {
        t.network.cut = vec![1];
        t.write(&[key]);
        t.network.run(5);
        t.network.cut = vec![];
        t.write(&[key]);
        t.network.run(2_000);
    }
    t.end();
    t.network.run(2_000);
    assert_eq!(t.dropped(), 1);
    assert_eq!(t.take(), [1, 2, 3, 4, 5]);
    t.set(&[9, 10]);
    t.network.run(100);
    assert_eq!(t.take(), [9, 10]);
}

#[test]
fn set_is_dropped_when_keep_last_cannot_hold_its_changes_of_an_instance() {
    let mut reader = keep_all_reader();
    reader.history = History::KeepLast(1);
    let mut t = pair(709, keep_all_writer(), reader);
    t.set(&[1, 2]);
    t.set(&[3, 3]);
    t.set(&[1, 4]);
    t.network.run(1_000);
    assert_eq!(t.take(), [2, 1, 4], "the newest of each instance; 3 twice is dropped");
    assert_eq!((t.dropped(), t.lost()), (1, 2));
}

#[test]
fn reader_without_coherent_access_presents_changes_on_arrival() {
    let mut t = pair(710, keep_all_writer(), keep_all_reader());
    (_, t.reader) = create_reader(&mut t.network, keep_all_reader(), Presentation::default());
    t.network.run(1_000);
    t.begin();
    t.write(&[1, 2]);
    t.network.run(10);
    assert_eq!(t.take(), [1, 2]);
    t.end();
    t.network.run(100);
    assert_eq!(t.take(), [], "the end of a set is not a sample");
    t.write(&[3]);
    t.network.run(10);
    assert_eq!(t.take(), [3]);
}

#[test]
fn disposal_is_a_member_of_its_set() {
    let mut t = pair(711, keep_all_writer(), keep_all_reader());
    t.write(&[1]);
    t.begin();
    t.write(&[2]);
    t.network.write_key(0, t.writer, ChangeKind::Disposed, hash(1), &[0, 1, 0, 0, 1, 0, 0, 0]).expect("write accepted");
    t.network.run(100);
    let (info, _) = t.network.take(1, t.reader).expect("what was written before");
    assert_eq!(info.instance_state, InstanceState::Alive, "the disposal is not to be seen yet");
    t.end();
    t.network.run(100);
    let infos: Vec<_> =
        t.network.take_all(1, t.reader).iter().map(|(info, _)| (info.valid_data, info.instance_state)).collect();
    assert_eq!(infos, [(true, InstanceState::Alive), (false, InstanceState::NotAliveDisposed)]);
}

#[test]
fn directed_write_is_refused_within_a_set() {
    let mut t = pair(712, keep_all_writer(), keep_all_reader());
    let guid = t.network.nodes[1].reader_guid(t.reader).expect("it exists");
    t.begin();
    let change = NewChange {
        kind: ChangeKind::Alive,
        key_hash: hash(1),
        source_timestamp: None,
        destinations: &[guid],
        payload_len: 8,
    };
    let now = t.network.now;
    let refused = t.network.nodes[0].write(now, t.writer, &change, |slot| Some(slot.len()));
    assert!(matches!(refused, Err(WriteError::Refused(Error::PreconditionNotMet { .. }))), "{refused:?}");
}

#[test]
fn fragmented_samples_are_members_of_sets() {
    let mut t = pair(713, keep_all_writer(), keep_all_reader());
    t.begin();
    let large = payload(7, 9_000);
    t.network.write_key(0, t.writer, ChangeKind::Alive, hash(7), &large).expect("write accepted");
    t.write(&[8]);
    t.network.run(100);
    assert_eq!(t.seen(), []);
    assert!(t.network.longest <= 1472, "the set parameters fit the packet too: {}", t.network.longest);
    t.end();
    t.network.run(100);
    assert_eq!(t.take(), [7, 8]);
}

#[test]
fn ordered_access_with_instance_scope_takes_instance_by_instance() {
    for (scope, expected) in [(AccessScope::Instance, [1, 1, 1, 2, 2, 3]), (AccessScope::Topic, [2, 1, 3, 1, 2, 1])] {
        let mut network = Network::new(2, 714);
        let presentation = Presentation { access_scope: scope, coherent_access: false, ordered_access: true };
        let mut spec = writer_spec("T", true, keep_all_writer());
        spec.publisher.presentation = presentation;
        let writer = network.writer(0, spec);
        let mut spec = reader_spec("T", true, keep_all_reader());
        spec.subscriber.presentation = presentation;
        let reader = network.reader(1, spec);
        network.await_match((0, writer), (1, reader));
        for key in [2, 1, 3, 1, 2, 1] {
            network
                .write_key(0, writer, ChangeKind::Alive, hash(key), &payload(u32::from(key), 8))
                .expect("write accepted");
        }
        network.run(100);
        let (mut cursor, mut seen) = (ReadCursor::default(), Vec::new());
        let now = network.now;
        while let Some(found) = network.nodes[1].read_next(now, reader, Selector::TAKE, &mut cursor).expect("lives") {
            seen.push(found.info.instance_handle.0[0]);
        }
        assert_eq!(seen, expected, "{scope:?}");
    }
}

#[test]
fn set_is_complete_when_a_filter_rejects_some_of_its_changes() {
    let mut network = Network::new(2, 715);
    let presentation = coherent(AccessScope::Topic);
    let publisher = network.nodes[0].create_publisher(presentation).expect("write accepted");
    let mut spec = writer_spec("T", true, keep_all_writer());
    (spec.group, spec.publisher.presentation) = (Some(publisher), presentation);
    spec.filters = Some(std::sync::Arc::new(Factory));
    let writer = network.writer(0, spec);
    let subscriber = network.nodes[1].create_subscriber(presentation).expect("write accepted");
    let mut spec = reader_spec("T", true, keep_all_reader());
    (spec.group, spec.subscriber.presentation) = (Some(subscriber), presentation);
    spec.content_filter = multiples_of(2);
    let reader = network.reader(1, spec);
    network.await_match((0, writer), (1, reader));
    let mut t = Pair { network, publisher, subscriber, writer, reader };
    t.set(&[1, 2, 3, 4, 5]);
    t.set(&[7, 9]);
    t.set(&[6]);
    t.network.run(1_000);
    assert_eq!(t.take(), [2, 4, 6]);
    assert_eq!(t.dropped(), 0);
}

#[test]
fn set_is_not_presented_in_part_while_instances_are_taken() {
    let mut network = Network::new(2, 716);
    let presentation = Presentation { ordered_access: true, ..coherent(AccessScope::Instance) };
    let publisher = network.nodes[0].create_publisher(presentation).expect("write accepted");
    let mut spec = writer_spec("T", true, keep_all_writer());
    (spec.group, spec.publisher.presentation) = (Some(publisher), presentation);
    let writer = network.writer(0, spec);
    let mut qos = keep_all_reader();
    qos.resource_limits.max_samples = Some(4);
    let (subscriber, reader) = create_reader(&mut network, qos, presentation);
    network.await_match((0, writer), (1, reader));
    network.run(500);
    let mut t = Pair { network, publisher, subscriber, writer, reader };
    t.set(&[2, 2, 4]);
    t.set(&[1, 3, 5]);
    t.network.run(1_000);
    let (mut cursor, mut seen) = (ReadCursor::default(), Vec::new());
    let now = t.network.now;
    while let Some(found) = t.network.nodes[1].read_next(now, reader, Selector::TAKE, &mut cursor).expect("it exists") {
        seen.push(found.info.instance_handle.0[0]);
    }
    assert_eq!(seen, [2, 2, 4], "there was room for the second set when the pass had come to instance 2");
    assert_eq!(t.take(), [1, 3, 5]);
}

/// With scope TOPIC as well, no sample becomes visible while access is open.
#[test]
fn set_that_ends_during_access_is_presented_afterwards() {
    let mut t = pair(718, keep_all_writer(), keep_all_reader());
    t.set(&[1, 2]);
    t.network.run(10);
    let subscriber = t.subscriber;
    let node = &mut t.network.nodes[1];
    node.begin_access(subscriber).expect("it exists");
    node.begin_access(subscriber).expect("it exists");
    t.set(&[3, 4]);
    t.network.run(1_000);
    assert_eq!(t.take(), [1, 2]);
    let now = t.network.now;
    t.network.nodes[1].end_access(now, subscriber).expect("it has begun");
    t.network.run(10);
    assert_eq!(t.seen(), [], "calls are counted");
    let now = t.network.now;
    t.network.nodes[1].end_access(now, subscriber).expect("it has begun");
    assert_eq!(t.take(), [3, 4]);
}

#[test]
fn set_waits_until_each_of_its_instances_has_room() {
    let mut reader = keep_all_reader();
    reader.resource_limits.max_samples_per_instance = Some(2);
    let mut t = pair(719, keep_all_writer(), reader);
    t.set(&[1, 1]);
    t.network.run(100);
    for key in 2..20 {
        t.set(&[key, 1]);
        t.network.run(100);
    }
    assert_eq!(t.seen(), [1, 1], "there is no room for another of instance 1");
    let taken = t.take();
    assert_eq!(taken.len(), 38, "there is as soon as one is taken");
    assert!(taken[2..].chunks(2).zip(2..20).all(|(set, key)| set == [key, 1]), "{taken:?}");
    t.set(&[3, 1, 1, 1]);
    t.set(&[4]);
    t.network.run(1_000);
    assert_eq!((t.take(), t.dropped()), (vec![4], 1), "three of an instance never fit");
}

#[test]
fn set_uses_the_room_that_keep_last_frees() {
    let mut reader = keep_all_reader();
    reader.history = History::KeepLast(1);
    reader.resource_limits.max_samples = Some(2);
    let mut t = pair(760, keep_all_writer(), reader);
    t.set(&[1, 2]);
    t.set(&[2, 1]);
    t.network.run(100);
    assert_eq!(t.seen(), [2, 1], "the second set displaces the first one");
    t.set(&[1, 3]);
    t.network.run(100);
    assert_eq!(t.seen(), [2, 1], "there is room for 1, not for 3 in addition to 2");
    assert_eq!((t.take(), t.dropped()), (vec![2, 1, 3], 0), "there is as soon as 2 is taken");
}

/// Creates a writer with one sample per instance whose sets were not read yet, and its publisher.
fn publish_sets(network: &mut Network, max_samples: Option<u32>, sets: u32) -> (PublisherHandle, WriterHandle) {
    let offered = coherent(AccessScope::Topic);
    let publisher = network.nodes[0].create_publisher(offered).expect("write accepted");
    let mut qos = keep_all_writer();
    (qos.history, qos.durability) = (History::KeepLast(1), Durability::TransientLocal);
    qos.resource_limits.max_samples = max_samples;
    let mut spec = writer_spec("T", true, qos);
    (spec.group, spec.publisher.presentation) = (Some(publisher), offered);
    let writer = network.writer(0, spec);
    for set in 0..sets {
        write_set(network, publisher, writer, set);
    }
    (publisher, writer)
}

fn write_set(network: &mut Network, publisher: PublisherHandle, writer: WriterHandle, number: u32) {
    network.nodes[0].begin_coherent_changes(publisher).expect("it exists");
    network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(number, 20)).expect("write accepted");
    let now = network.now;
    network.nodes[0].end_coherent_changes(now, publisher).expect("it has begun");
}

fn durable_reader() -> DataReaderQos {
    DataReaderQos { durability: Durability::TransientLocal, ..keep_all_reader() }
}

#[test]
fn late_joiner_gets_the_newest_set_however_many_were_written_without_a_reader() {
    for (max_samples, sets) in [(Some(1), 2), (Some(1), 3), (Some(1), 50), (None, 4_200)] {
        let mut network = Network::new(2, 720);
        let (publisher, writer) = publish_sets(&mut network, max_samples, sets);
        for extra in 0..3 {
            let (_, reader) = create_reader(&mut network, durable_reader(), coherent(AccessScope::Topic));
            network.await_match((0, writer), (1, reader));
            network.run(500);
            let taken: Vec<_> = network.take_all(1, reader).into_iter().map(|(_, bytes)| bytes).collect();
            assert_eq!(taken, [payload(sets - 1 + extra, 20)], "{max_samples:?}, {sets} sets, late joiner {extra}");
            write_set(&mut network, publisher, writer, sets + extra);
            network.run(100);
            assert_eq!(network.take_all(1, reader).len(), 1, "and live the set after it");
        }
    }
}

#[test]
fn lagging_reader_gets_the_newest_set_of_a_keep_last_writer() {
    for durability in [Durability::Volatile, Durability::TransientLocal] {
        let mut writer = keep_all_writer();
        (writer.history, writer.durability) = (History::KeepLast(1), durability);
        writer.resource_limits.max_samples = Some(1);
        let mut t = pair(721, writer, keep_all_reader());
        for round in 0..20_u32 {
            t.network.cut = vec![1];
            for number in 0..5 {
                write_set(&mut t.network, t.publisher, t.writer, 10 * round + number);
                t.network.run(1);
            }
            t.network.cut = vec![];
            t.network.run(300);
            let taken: Vec<_> = t.network.take_all(1, t.reader).into_iter().map(|(_, bytes)| bytes).collect();
            assert_eq!(taken, [payload(10 * round + 4, 20)], "{durability:?}, round {round}");
        }
    }
}

#[test]
fn lagging_reader_gets_the_newest_set_when_older_ones_have_expired() {
    let mut writer = keep_all_writer();
    writer.lifespan.duration = takt_wire::Duration::from_nanos(300_000_000);
    writer.resource_limits.max_samples = Some(2);
    let mut t = pair(722, writer, keep_all_reader());
    t.network.cut = vec![1];
    for number in 0..10 {
        write_set(&mut t.network, t.publisher, t.writer, number);
        t.network.run(if number < 9 { 400 } else { 1 });
    }
    t.network.cut = vec![];
    t.network.run(250);
    let taken: Vec<_> = t.network.take_all(1, t.reader).into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(taken, [payload(9, 20)]);
}

#[test]
fn several_writers_deliver_complete_sets_under_loss_with_keep_last() {
    let mut network = Network::new(2, 723);
    let offered = coherent(AccessScope::Topic);
    let publisher = network.nodes[0].create_publisher(offered).expect("write accepted");
    let pairs: Vec<_> = ["A", "B", "C"]
        .map(|topic| {
            let mut spec =
                writer_spec(topic, true, DataWriterQos { history: History::KeepLast(1), ..keep_all_writer() });
            spec.qos.resource_limits.max_samples = Some(4);
            (spec.group, spec.publisher.presentation) = (Some(publisher), offered);
            let writer = network.writer(0, spec);
            let subscriber = network.nodes[1].create_subscriber(offered).expect("write accepted");
            let mut spec = reader_spec(topic, true, keep_all_reader());
            (spec.group, spec.subscriber.presentation) = (Some(subscriber), offered);
            let reader = network.reader(1, spec);
            network.await_match((0, writer), (1, reader));
            (writer, reader)
        })
        .into();
    network.run(500);
    network.faults = Faults { loss: 20, duplication: 10, reordering: 20 };
    for set in 0..2_000_u32 {
        network.nodes[0].begin_coherent_changes(publisher).expect("it exists");
        for (writer, _) in &pairs {
            for key in 1..=4 {
                network.write_key(0, *writer, ChangeKind::Alive, hash(key), &payload(set, 20)).expect("write accepted");
            }
        }
        let now = network.now;
        network.nodes[0].end_coherent_changes(now, publisher).expect("it has begun");
        network.run(u64::from(set % 4));
        for (_, reader) in &pairs {
            let taken = network.take_all(1, *reader);
            assert!(taken.chunks(4).all(|set| set.len() == 4 && set.iter().all(|(_, it)| *it == set[0].1)), "{set}");
        }
    }
    network.faults = Faults::default();
    network.nodes[0].begin_coherent_changes(publisher).expect("it exists");
    for (writer, _) in &pairs {
        network.write_key(0, *writer, ChangeKind::Alive, hash(1), &payload(9_999, 20)).expect("write accepted");
    }
    let now = network.now;
    network.nodes[0].end_coherent_changes(now, publisher).expect("it has begun");
    network.run(2_000);
    for (_, reader) in &pairs {
        let last = network.take_all(1, *reader).pop();
        assert_eq!(last.map(|(_, bytes)| bytes), Some(payload(9_999, 20)), "the newest set is never lost");
    }
}
