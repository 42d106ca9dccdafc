//! DESTINATION_ORDER BY_SOURCE_TIMESTAMP (DDS 1.4 §2.2.3.17): the last value of an instance with
//! several writers is the one written last, regardless of the arrival.

use crate::network::*;
use takt_core::*;
use takt_wire::Timestamp;
use takt_wire::qos::*;

const ALIVE: ChangeKind = ChangeKind::Alive;
const BY_SOURCE: DestinationOrder = DestinationOrder::BySourceTimestamp;

/// Writers at nodes 0 and 1, and a reader at node 2.
struct Scene {
    network: Network,
    writers: [WriterHandle; 2],
    reader: ReaderHandle,
}

impl Scene {
    fn new(seed: u64, order: DestinationOrder, history: History) -> Self {
        let mut network = Network::new(3, seed);
        let writer_qos = || DataWriterQos { destination_order: BY_SOURCE, ..keep_all_writer() };
        let writers = [0, 1].map(|node| network.writer(node, writer_spec("T", true, writer_qos())));
        let qos = DataReaderQos { destination_order: order, history, ..keep_all_reader() };
        let reader = network.reader(2, reader_spec("T", true, qos));
        network.await_match((0, writers[0]), (2, reader));
        network.await_match((1, writers[1]), (2, reader));
        network.run(200);
        Self { network, writers, reader }
    }

    fn at(&self, ms: i64) -> Timestamp {
        Timestamp::from_nanos(1_700_000_000_000_000_000 + ms * 1_000_000)
    }

    /// Writes a change of instance 1 at a node, with a source timestamp of `ms` milliseconds.
    fn write(&mut self, node: usize, kind: ChangeKind, ms: i64, number: u32) -> Result<(), WriteError> {
        let mut bytes = payload(1, 20);
        bytes[8] = number as u8;
        let bytes = if kind == ALIVE { bytes } else { vec![] };
        let stamp = self.at(ms);
        let result = self.network.write_stamped(node, self.writers[node], kind, hash(1), Some(stamp), &bytes);
        self.network.run(20);
        result
    }

    /// Takes all samples and returns their numbers; none stands for a state change.
    fn take(&mut self) -> Vec<Option<u8>> {
        let taken = self.network.take_all(2, self.reader);
        taken.into_iter().map(|(info, bytes)| info.valid_data.then(|| bytes[8])).collect()
    }

    fn outdated(&self) -> u64 {
        self.network.nodes[2].counters().outdated_samples
    }
}

#[test]
fn earlier_sample_is_not_presented_after_a_later_one() {
    let mut scene = Scene::new(320, BY_SOURCE, History::KeepLast(1));
    scene.write(0, ALIVE, 1_000, 1).expect("write accepted");
    scene.write(1, ALIVE, 3_000, 2).expect("write accepted");
    scene.write(0, ALIVE, 2_000, 3).expect("write accepted");
    assert_eq!(scene.take(), [Some(2)]);
    assert_eq!(scene.outdated(), 1);
    scene.write(0, ALIVE, 2_500, 4).expect("write accepted");
    assert_eq!(scene.take(), [], "also when the later one has been taken");
    scene.write(0, ALIVE, 3_001, 5).expect("write accepted");
    assert_eq!(scene.take(), [Some(5)]);
}

#[test]
fn last_arrival_is_the_last_value_by_reception_timestamp() {
    let mut scene = Scene::new(321, DestinationOrder::ByReceptionTimestamp, History::KeepLast(1));
    scene.write(1, ALIVE, 3_000, 2).expect("write accepted");
    scene.write(0, ALIVE, 2_000, 3).expect("write accepted");
    assert_eq!(scene.take(), [Some(3)]);
    assert_eq!(scene.outdated(), 0);
}

#[test]
fn lower_guid_wins_at_every_reader_when_timestamps_are_equal() {
    for first in [0, 1] {
        let mut scene = Scene::new(322, BY_SOURCE, History::KeepAll);
        scene.write(first, ALIVE, 1_000, first as u32).expect("write accepted");
        scene.write(1 - first, ALIVE, 1_000, 1 - first as u32).expect("write accepted");
        assert_eq!(scene.take().last(), Some(&Some(0)), "node 0 has the lower GUID");
    }
    let mut scene = Scene::new(323, BY_SOURCE, History::KeepAll);
    for number in 1..=3 {
        scene.write(0, ALIVE, 1_000, number).expect("write accepted");
    }
    assert_eq!(scene.take(), [Some(1), Some(2), Some(3)], "one writer's are in its order");
}

#[test]
fn old_disposal_does_not_end_an_instance_written_later() {
    let mut scene = Scene::new(324, BY_SOURCE, History::KeepAll);
    scene.write(0, ALIVE, 1_000, 1).expect("write accepted");
    scene.write(1, ALIVE, 3_000, 2).expect("write accepted");
    scene.write(0, ChangeKind::Disposed, 2_000, 0).expect("write accepted");
    let taken = scene.network.take_all(2, scene.reader);
    assert_eq!(taken.len(), 2);
    assert_eq!(taken[1].0.instance_state, InstanceState::Alive);
    scene.write(1, ChangeKind::Disposed, 4_000, 0).expect("write accepted");
    assert_eq!(scene.take(), [None]);
    scene.write(0, ALIVE, 3_500, 3).expect("write accepted");
    assert_eq!(scene.take(), [], "it was disposed of later");
    scene.write(0, ChangeKind::Unregistered, 5_000, 0).expect("write accepted");
    scene.write(1, ChangeKind::Unregistered, 5_000, 0).expect("write accepted");
    assert_eq!(scene.take(), [], "and stays so");
}

#[test]
fn unregistration_takes_effect_regardless_of_its_arrival() {
    let mut scene = Scene::new(325, BY_SOURCE, History::KeepAll);
    scene.write(1, ALIVE, 3_000, 1).expect("write accepted");
    scene.write(0, ALIVE, 1_000, 2).expect("write accepted");
    scene.write(1, ChangeKind::Unregistered, 3_000, 0).expect("write accepted");
    assert_eq!(scene.take(), [Some(1)], "the other one writes it still");
    scene.write(0, ChangeKind::DisposedUnregistered, 2_000, 0).expect("write accepted");
    let taken = scene.network.take_all(2, scene.reader);
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].0.instance_state, InstanceState::NotAliveNoWriters);
    scene.write(0, ALIVE, 2_500, 3).expect("write accepted");
    assert_eq!(scene.take(), [Some(3)], "a writer writes the instance again");
}

/// DDS 1.4 §2.2.2.5.1.3: an instance that was not disposed and has an alive writer is alive, even
/// if its sample arrived late.
#[test]
fn overtaken_sample_makes_an_instance_without_writers_alive_and_new() {
    let mut scene = Scene::new(327, BY_SOURCE, History::KeepAll);
    scene.write(1, ALIVE, 3_000, 1).expect("write accepted");
    assert_eq!(scene.take(), [Some(1)]);
    scene.write(1, ChangeKind::Unregistered, 3_000, 0).expect("write accepted");
    scene.write(0, ALIVE, 1_000, 2).expect("write accepted");
    assert_eq!(scene.outdated(), 1);
    let taken = scene.network.take_all(2, scene.reader);
    let seen: Vec<_> =
        taken.iter().map(|(info, _)| (info.instance_state, info.view_state, info.generation())).collect();
    assert_eq!(seen, [(InstanceState::Alive, ViewState::New, 0)], "the unregistration waited");
    scene.write(0, ALIVE, 4_000, 3).expect("write accepted");
    let taken = scene.network.take_all(2, scene.reader);
    let seen: Vec<_> = taken.iter().map(|(info, _)| (info.valid_data, info.view_state, info.generation())).collect();
    assert_eq!(seen, [(true, ViewState::NotNew, 1)]);
}

#[test]
fn source_timestamps_of_a_writer_never_decrease() {
    let mut scene = Scene::new(326, BY_SOURCE, History::KeepAll);
    scene.write(0, ALIVE, 100_000, 1).expect("write accepted");
    let refused = scene.write(0, ALIVE, 99_999, 2);
    assert!(matches!(refused, Err(WriteError::Refused(Error::BadParameter { .. }))), "{refused:?}");
    for stamp in [Timestamp::INVALID, Timestamp::INFINITE] {
        let writer = scene.writers[0];
        let refused = scene.network.write_stamped(0, writer, ALIVE, hash(1), Some(stamp), &payload(1, 20));
        assert!(matches!(refused, Err(WriteError::Refused(Error::BadParameter { .. }))), "{refused:?}");
    }
    // The wall clock is behind the application's timestamp.
    scene.network.write_key(0, scene.writers[0], ALIVE, hash(1), &payload(1, 20)).expect("write accepted");
    scene.network.run(20);
    let taken = scene.network.take_all(2, scene.reader);
    let stamps: Vec<_> = taken.iter().map(|(info, _)| info.source_timestamp).collect();
    assert_eq!(stamps, [scene.at(100_000); 2]);
}

#[test]
fn source_timestamps_may_decrease_by_reception_timestamp() {
    let mut network = Network::new(1, 327);
    let writer = network.writer(0, writer_spec("T", true, keep_all_writer()));
    for ms in [2_000, 1_000] {
        let stamp = Some(Timestamp::from_nanos(ms * 1_000_000));
        network.write_stamped(0, writer, ALIVE, hash(1), stamp, &payload(1, 20)).expect("write accepted");
    }
}
