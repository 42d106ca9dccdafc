//! TIME_BASED_FILTER (DDS 1.4 §2.2.3.12): at most one sample of an instance per minimum separation.
//! A reliable reader also presents the last sample, after the separation.

use crate::network::*;
use takt_core::*;
use takt_wire::Duration;
use takt_wire::qos::*;

const MS: u64 = 1_000_000;

/// Returns the QoS of a reader with this minimum separation.
fn filtered(ms: u64, reliability: Reliability) -> DataReaderQos {
    let time_based_filter = TimeBasedFilter { minimum_separation: Duration::from_millis(ms) };
    DataReaderQos { time_based_filter, reliability, ..keep_all_reader() }
}

/// Creates a matched pair: a writer at node 0 and a reader at node 1.
fn pair(network: &mut Network, reader_qos: DataReaderQos) -> (WriterHandle, ReaderHandle) {
    let writer_qos = DataWriterQos { durability: Durability::TransientLocal, ..keep_all_writer() };
    let writer = network.writer(0, writer_spec("T", true, writer_qos));
    let reader = network.reader(1, reader_spec("T", true, reader_qos));
    network.await_match((0, writer), (1, reader));
    network.run(100);
    (writer, reader)
}

/// Offset of the key in a payload.
const KEY: usize = 4;
/// Offset of the sample's number in a payload.
const NUMBER: usize = 8;

/// Writes a sample of the instance `key` at node 0.
fn write(network: &mut Network, writer: WriterHandle, key: u8, number: u8) {
    let mut bytes = payload(u32::from(key), 20);
    bytes[NUMBER] = number;
    network.write_key(0, writer, ChangeKind::Alive, hash(key), &bytes).expect("write accepted");
}

/// Runs the network for `ms` milliseconds and takes each sample as soon as it is presented. Returns
/// key, number and time of each, in milliseconds since `begin`.
fn take_for(network: &mut Network, reader: ReaderHandle, begin: Instant, ms: u64) -> Vec<(u8, u8, u64)> {
    let mut seen = Vec::new();
    network.run_until(ms, |network| {
        let at = (network.now.0 - begin.0) / MS;
        seen.extend(network.take_all(1, reader).iter().map(|(_, bytes)| (bytes[KEY], bytes[NUMBER], at)));
        false
    });
    seen
}

#[test]
fn one_of_ten_samples_within_a_separation_is_presented() {
    for reliability in [reliable(), best_effort()] {
        let mut network = Network::new(2, 340);
        let (writer, reader) = pair(&mut network, filtered(1_000, reliability));
        let (begin, mut seen) = (network.now, Vec::new());
        for number in 0..100 {
            for key in [1, 2] {
                write(&mut network, writer, key, number);
            }
            seen.extend(take_for(&mut network, reader, begin, 100));
        }
        for key in [1, 2] {
            let of_key: Vec<_> = seen.iter().filter(|(found, _, _)| *found == key).collect();
            assert!((10..=11).contains(&of_key.len()), "{of_key:?}");
            for pair in of_key.windows(2) {
                assert!(pair[1].2 - pair[0].2 >= 999, "{pair:?}");
                assert!((9..=11).contains(&(pair[1].1 - pair[0].1)), "{pair:?}");
            }
        }
    }
}

#[test]
fn last_sample_of_a_burst_is_presented_after_the_separation() {
    let mut network = Network::new(2, 341);
    let (writer, reader) = pair(&mut network, filtered(500, reliable()));
    let begin = network.now;
    for number in 1..=5 {
        write(&mut network, writer, 1, number);
    }
    let seen = take_for(&mut network, reader, begin, 2_000);
    assert_eq!(seen, [(1, 1, 0), (1, 5, 500)]);
}

#[test]
fn best_effort_reader_drops_samples_within_the_separation() {
    let mut network = Network::new(2, 342);
    let (writer, reader) = pair(&mut network, filtered(500, best_effort()));
    let begin = network.now;
    write(&mut network, writer, 1, 1);
    write(&mut network, writer, 1, 2);
    assert_eq!(take_for(&mut network, reader, begin, 2_000), [(1, 1, 0)]);
    write(&mut network, writer, 1, 3);
    assert_eq!(take_for(&mut network, reader, begin, 100), [(1, 3, 2_000)]);
}

#[test]
fn limits_count_only_presented_samples_and_waiting_ones_block_none() {
    let mut network = Network::new(2, 343);
    let resource_limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    let (writer, reader) = pair(&mut network, DataReaderQos { resource_limits, ..filtered(500, reliable()) });
    for number in 1..=100 {
        write(&mut network, writer, 1, number);
    }
    network.run(100);
    assert_eq!(network.nodes[0].is_acknowledged(writer, None), Ok(true));
    network.run(1_000);
    assert_eq!(network.nodes[1].counters().rejected_samples, 0);
    let numbers = |network: &mut Network| -> Vec<_> {
        network.take_all(1, reader).iter().map(|(_, bytes)| bytes[NUMBER]).collect()
    };
    assert_eq!(numbers(&mut network), [1], "the last sample waits for room");
    network.run(20);
    assert_eq!(numbers(&mut network), [100]);
}

#[test]
fn end_of_an_instance_is_not_delayed_by_the_separation() {
    let mut network = Network::new(2, 344);
    let (writer, reader) = pair(&mut network, filtered(500, reliable()));
    let presented = |network: &mut Network| -> Vec<_> {
        network.run(50);
        let taken = network.take_all(1, reader);
        taken.iter().map(|(info, bytes)| info.valid_data.then(|| bytes[NUMBER])).collect()
    };
    write(&mut network, writer, 1, 1);
    write(&mut network, writer, 1, 2);
    network.write_key(0, writer, ChangeKind::Unregistered, hash(1), &[]).expect("write accepted");
    assert_eq!(
        presented(&mut network),
        [Some(1), Some(2), None],
        "the delayed sample is presented before the instance has no writers"
    );
    write(&mut network, writer, 1, 3);
    assert_eq!(presented(&mut network), [Some(3)], "a separation begins with the first sample of the new generation");
    write(&mut network, writer, 1, 4);
    network.write_key(0, writer, ChangeKind::Disposed, hash(1), &[]).expect("write accepted");
    assert_eq!(presented(&mut network), [None]);
    write(&mut network, writer, 1, 5);
    write(&mut network, writer, 1, 6);
    assert_eq!(presented(&mut network), [Some(5)]);
    network.nodes[0].delete_writer(network.now, writer).expect("the writer exists");
    assert_eq!(presented(&mut network), [Some(6), None]);
}

#[test]
fn delayed_sample_meets_the_deadline() {
    let mut network = Network::new(2, 345);
    let deadline = Deadline { period: Duration::from_millis(500) };
    let writer_qos = DataWriterQos { deadline, ..keep_all_writer() };
    let writer = network.writer(0, writer_spec("T", true, writer_qos));
    let reader_qos = DataReaderQos { deadline, ..filtered(500, best_effort()) };
    let reader = network.reader(1, reader_spec("T", true, reader_qos));
    network.await_match((0, writer), (1, reader));
    for _ in 0..10 {
        write(&mut network, writer, 1, 1);
        network.run(490);
    }
    let missed = network.nodes[1].requested_deadline_missed_status(reader).expect("the reader exists");
    assert_eq!(missed.total_count, 0);
}

#[test]
fn minimum_separation_longer_than_the_deadline_is_refused() {
    let mut network = Network::new(1, 346);
    let deadline = |ms| Deadline { period: Duration::from_millis(ms) };
    let spec = |ms| reader_spec("T", true, DataReaderQos { deadline: deadline(ms), ..filtered(500, reliable()) });
    let refused = network.nodes[0].create_reader(network.now, spec(499));
    assert!(matches!(refused, Err(Error::InconsistentPolicy { .. })), "{refused:?}");
    let reader = network.reader(0, spec(500));
    let changed = DataReaderQos { deadline: deadline(499), ..filtered(500, reliable()) };
    let refused = network.nodes[0].set_reader_qos(network.now, reader, changed);
    assert!(matches!(refused, Err(Error::InconsistentPolicy { .. })), "{refused:?}");
}

#[test]
fn minimum_separation_can_be_changed() {
    let mut network = Network::new(2, 347);
    let (writer, reader) = pair(&mut network, keep_all_reader());
    network.nodes[1]
        .set_reader_qos(network.now, reader, filtered(500, reliable()))
        .expect("TIME_BASED_FILTER is mutable");
    let begin = network.now;
    for number in 1..=5 {
        write(&mut network, writer, 1, number);
    }
    assert_eq!(take_for(&mut network, reader, begin, 100), [(1, 1, 0)]);
    network.nodes[1].set_reader_qos(network.now, reader, keep_all_reader()).expect("TIME_BASED_FILTER is mutable");
    write(&mut network, writer, 1, 6);
    assert_eq!(
        take_for(&mut network, reader, begin, 2_000),
        [(1, 6, 100)],
        "the delayed sample is older and is dropped"
    );
}

#[test]
fn delayed_sample_is_notified_when_it_is_presented() {
    let mut network = Network::new(2, 348);
    let (writer, reader) = pair(&mut network, filtered(1_000, reliable()));
    let has_data_available = |network: &mut Network| network.events(1).contains(&Event::DataAvailable(reader));
    for number in 1..=2 {
        write(&mut network, writer, 1, number);
        network.run(10);
    }
    assert!(has_data_available(&mut network));
    assert_eq!(network.take_all(1, reader).len(), 1, "the second sample waits");
    network.run(970);
    assert!(!has_data_available(&mut network));
    network.run(30);
    assert!(has_data_available(&mut network));
    assert_eq!(network.take_all(1, reader).len(), 1);
}

#[test]
fn changes_of_another_writer_keep_the_delayed_sample() {
    let mut network = Network::new(3, 349);
    let (writer, reader) = pair(&mut network, filtered(500, reliable()));
    let other = network.writer(2, writer_spec("T", true, keep_all_writer()));
    network.await_match((2, other), (1, reader));
    network.run(100);
    network.write_key(2, other, ChangeKind::Alive, hash(1), &payload(1, 20)).expect("write accepted");
    network.run(10);
    write(&mut network, writer, 1, 2);
    network.run(10);
    network.take_all(1, reader);
    network.write_key(2, other, ChangeKind::Unregistered, hash(1), &[]).expect("write accepted");
    network.run(10);
    assert_eq!(network.take_all(1, reader).len(), 0, "the delayed sample still waits");
    network.run(500);
    let taken = network.take_all(1, reader);
    assert_eq!(taken.iter().map(|(_, bytes)| bytes[NUMBER]).collect::<Vec<_>>(), [2]);
}
