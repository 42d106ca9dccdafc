//! DEADLINE (DDS 1.4 §2.2.3.7): missed periods are reported at writer and reader.

use crate::network::*;
use takt_core::*;
use takt_wire::qos::*;
use takt_wire::{Duration, Timestamp};

fn deadline(ms: u64) -> Deadline {
    Deadline { period: Duration::from_millis(ms) }
}

fn pair(network: &mut Network, writer_ms: u64, reader_ms: u64) -> (WriterHandle, ReaderHandle) {
    let writer_qos = DataWriterQos { deadline: deadline(writer_ms), ..keep_all_writer() };
    let reader_qos = DataReaderQos { deadline: deadline(reader_ms), ..keep_all_reader() };
    let writer = network.writer(0, writer_spec("T", true, writer_qos));
    let reader = network.reader(1, reader_spec("T", true, reader_qos));
    network.await_match((0, writer), (1, reader));
    (writer, reader)
}

fn missed(network: &mut Network, writer: WriterHandle, reader: ReaderHandle) -> (u64, u64) {
    let offered = network.nodes[0].offered_deadline_missed_status(writer).expect("the writer exists");
    let requested = network.nodes[1].requested_deadline_missed_status(reader).expect("the reader exists");
    (offered.total_count, requested.total_count)
}

#[test]
fn deadline_is_not_missed_before_the_first_sample_or_while_instances_are_updated() {
    let mut network = Network::new(2, 200);
    let (writer, reader) = pair(&mut network, 100, 100);
    network.run(1_000);
    for round in 0..50 {
        for key in [1, 2] {
            network
                .write_key(0, writer, ChangeKind::Alive, hash(key), &payload(u32::from(key), 20))
                .expect("write accepted");
        }
        network.run(if round % 2 == 0 { 95 } else { 20 });
        network.take_all(1, reader);
    }
    assert_eq!(missed(&mut network, writer, reader), (0, 0));
    assert!(!network.events(0).contains(&Event::OfferedDeadlineMissed(writer)), "and no status is reported");
    assert!(!network.events(1).contains(&Event::RequestedDeadlineMissed(reader)));
}

#[test]
fn missed_period_is_reported_with_its_instance() {
    let mut network = Network::new(2, 201);
    let (writer, reader) = pair(&mut network, 100, 200);
    for key in [1, 2] {
        network
            .write_key(0, writer, ChangeKind::Alive, hash(key), &payload(u32::from(key), 20))
            .expect("write accepted");
    }
    network.run(50);
    network.write_key(0, writer, ChangeKind::Alive, hash(2), &payload(2, 20)).expect("write accepted");
    network.run(60);
    let offered = network.nodes[0].offered_deadline_missed_status(writer).expect("the writer exists");
    assert_eq!((offered.total_count, offered.last_instance), (1, Some(InstanceHandle(hash(1)))));
    assert!(network.events(0).contains(&Event::OfferedDeadlineMissed(writer)));
    assert!(!network.events(1).contains(&Event::RequestedDeadlineMissed(reader)), "its period is twice as long");
    network.run(930);
    // Instance 1 was silent for 1,040 ms, instance 2 for 990 ms.
    assert_eq!(missed(&mut network, writer, reader), (19, 9));
    assert!(network.events(1).contains(&Event::RequestedDeadlineMissed(reader)));
}

#[test]
fn instance_that_is_not_alive_misses_no_deadline() {
    let mut network = Network::new(2, 202);
    let (writer, reader) = pair(&mut network, 100, 100);
    for kind in [ChangeKind::Disposed, ChangeKind::Unregistered, ChangeKind::DisposedUnregistered] {
        network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(1, 20)).expect("write accepted");
        network.write_key(0, writer, kind, hash(1), &[]).expect("write accepted");
        network.run(1_000);
        assert_eq!(missed(&mut network, writer, reader), (0, 0), "{kind:?}");
    }
    network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(1, 20)).expect("write accepted");
    network.nodes[0].delete_writer(network.now, writer).expect("the writer exists");
    network.run(1_000);
    let requested = network.nodes[1].requested_deadline_missed_status(reader).expect("the reader exists");
    assert_eq!(requested.total_count, 0, "its writer has gone");
}

#[test]
fn writer_without_readers_reports_missed_deadlines() {
    let mut network = Network::new(1, 203);
    let qos = DataWriterQos { deadline: deadline(10), ..keep_all_writer() };
    let writer = network.writer(0, writer_spec("T", false, qos));
    network.write(0, writer, &payload(1, 20)).expect("write accepted");
    network.run(105);
    let status = network.nodes[0].offered_deadline_missed_status(writer).expect("the writer exists");
    assert_eq!(status.total_count, 10);
}

#[test]
fn writer_keeps_watching_silent_instances_when_its_deadline_changes() {
    for (before_ms, after_ms) in [(300, 100), (100, 300)] {
        let mut network = Network::new(2, 206);
        let (writer, reader) = pair(&mut network, before_ms, 10_000);
        for key in [1, 2] {
            network.write_key(0, writer, ChangeKind::Alive, hash(key), &payload(0, 20)).expect("write accepted");
        }
        network.run(50);
        assert_eq!(missed(&mut network, writer, reader).0, 0);
        let now = network.now;
        let qos = DataWriterQos { deadline: deadline(after_ms), ..keep_all_writer() };
        network.nodes[0].set_writer_qos(now, writer, qos).expect("DEADLINE may change");
        network.run(3_000);
        let offered = missed(&mut network, writer, reader).0;
        // The timer is at most one period late.
        let expected = 2 * 3_050 / after_ms;
        assert!((expected - 4..=expected).contains(&offered), "{offered} of {expected}");
    }
}

#[test]
fn instance_that_was_silent_for_longer_than_a_new_deadline_has_missed_it_once() {
    let mut network = Network::new(2, 207);
    let (writer, reader) = pair(&mut network, 10_000, 20_000);
    network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(0, 20)).expect("write accepted");
    network.run(5_000);
    let now = network.now;
    let qos = DataWriterQos { deadline: deadline(1_000), ..keep_all_writer() };
    network.nodes[0].set_writer_qos(now, writer, qos).expect("DEADLINE may change");
    network.run(500);
    assert_eq!(missed(&mut network, writer, reader).0, 1);
}

#[test]
fn reader_keeps_watching_silent_instances_when_its_deadline_changes() {
    for (before, after, expected) in [(200, 400, 12..=12), (200, 100, 49..=50), (i64::MAX, 400, 12..=12)] {
        let mut network = Network::new(2, 209);
        let period = if before == i64::MAX { Duration::INFINITE } else { Duration::from_millis(before as u64) };
        let writer_qos = DataWriterQos { deadline: deadline(50), ..keep_all_writer() };
        let reader_qos = DataReaderQos { deadline: Deadline { period }, ..keep_all_reader() };
        let writer = network.writer(0, writer_spec("T", true, writer_qos));
        let reader = network.reader(1, reader_spec("T", true, reader_qos.clone()));
        network.await_match((0, writer), (1, reader));
        network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(1, 20)).expect("write accepted");
        network.run(50);
        let now = network.now;
        let qos = DataReaderQos { deadline: deadline(after), ..reader_qos };
        network.nodes[1].set_reader_qos(now, reader, qos).expect("DEADLINE may change");
        network.run(5_000);
        let status = network.nodes[1].requested_deadline_missed_status(reader).expect("the reader exists");
        assert!(expected.contains(&status.total_count), "{before} ms, then {after} ms: {status:?}");
    }
}

#[test]
fn writer_watches_instances_once_its_deadline_becomes_finite() {
    for (has_reader, keyed) in [(true, true), (false, true), (true, false), (false, false)] {
        let mut network = Network::new(2, 210);
        let writer = network.writer(0, writer_spec("T", keyed, keep_all_writer()));
        if has_reader {
            let reader = network.reader(1, reader_spec("T", keyed, keep_all_reader()));
            network.await_match((0, writer), (1, reader));
        }
        let key = |number: u8| if keyed { hash(number) } else { [0; 16] };
        let write = |network: &mut Network, kind, number| {
            let bytes = if kind == ChangeKind::Alive { payload(1, 20) } else { vec![] };
            network.write_key(0, writer, kind, key(number), &bytes).expect("write accepted");
        };
        write(&mut network, ChangeKind::Alive, 1);
        if keyed {
            write(&mut network, ChangeKind::Alive, 2);
            write(&mut network, ChangeKind::Disposed, 2);
        }
        network.run(5_000);
        let alter = |network: &mut Network, deadline| {
            let qos = DataWriterQos { deadline, ..keep_all_writer() };
            let now = network.now;
            network.nodes[0].set_writer_qos(now, writer, qos).expect("DEADLINE may change");
        };
        let missed = |network: &mut Network| {
            network.nodes[0].offered_deadline_missed_status(writer).expect("the writer exists").total_count
        };
        alter(&mut network, deadline(100));
        network.run(99);
        assert_eq!(missed(&mut network), 0, "the first period began with the change");
        network.run(406);
        assert_eq!(missed(&mut network), 5, "{has_reader} {keyed}: the disposed instance misses nothing");
        alter(&mut network, Deadline { period: Duration::INFINITE });
        network.run(1_000);
        assert_eq!(missed(&mut network), 5, "an infinite period is never missed");
        alter(&mut network, deadline(200));
        network.run(1_005);
        assert_eq!(missed(&mut network), 10);
    }
}

/// A dropped change may make an instance alive again. From then on data are expected of it.
#[test]
fn instance_revived_by_a_dropped_sample_misses_its_deadlines() {
    let by_source = DestinationOrder::BySourceTimestamp;
    // An expired sample revives a disposed instance; an overtaken sample revives an instance
    // without writers.
    for (destination_order, lifespan_s, ending) in [
        (DestinationOrder::ByReceptionTimestamp, Some(1), ChangeKind::Disposed),
        (by_source, Some(1), ChangeKind::Unregistered),
        (by_source, None, ChangeKind::Unregistered),
    ] {
        let mut network = Network::new(3, 211);
        let reader_qos = DataReaderQos { deadline: deadline(100), destination_order, ..keep_all_reader() };
        let reader = network.reader(1, reader_spec("T", true, reader_qos));
        let duration = lifespan_s.map_or(Duration::INFINITE, Duration::from_secs);
        let writers = [0, 2].map(|node| {
            let lifespan = if node == 2 { Lifespan { duration } } else { Lifespan::default() };
            let qos = DataWriterQos { deadline: deadline(100), destination_order, lifespan, ..keep_all_writer() };
            network.writer(node, writer_spec("T", true, qos))
        });
        network.await_match((0, writers[0]), (1, reader));
        network.await_match((2, writers[1]), (1, reader));
        network.write_key(0, writers[0], ChangeKind::Alive, hash(1), &payload(1, 20)).expect("write accepted");
        network.write_key(0, writers[0], ending, hash(1), &[]).expect("write accepted");
        network.run(1_000);
        let missed = |network: &mut Network| {
            let status = network.nodes[1].requested_deadline_missed_status(reader);
            status.expect("the reader exists").total_count
        };
        assert_eq!(missed(&mut network), 0, "an instance that is not alive misses nothing");
        let before = Timestamp::from_nanos(network.wall().to_nanos() - 2_000_000_000);
        let (alive, bytes) = (ChangeKind::Alive, payload(1, 20));
        network.write_stamped(2, writers[1], alive, hash(1), Some(before), &bytes).expect("write accepted");
        network.run(450);
        let taken = network.take_all(1, reader);
        let data = taken.iter().filter(|(info, _)| info.valid_data).count();
        assert_eq!((data, taken[0].0.instance_state), (1, InstanceState::Alive), "the second sample is dropped");
        assert_eq!(missed(&mut network), 4, "{destination_order:?}, lifespan {lifespan_s:?} s");
    }
}

#[test]
fn dropped_samples_do_not_meet_the_deadline_of_a_living_instance() {
    let mut network = Network::new(2, 212);
    let lifespan = Lifespan { duration: Duration::from_secs(1) };
    let writer_qos = DataWriterQos { deadline: deadline(100), lifespan, ..keep_all_writer() };
    let reader_qos = DataReaderQos { deadline: deadline(100), ..keep_all_reader() };
    let writer = network.writer(0, writer_spec("T", true, writer_qos));
    let reader = network.reader(1, reader_spec("T", true, reader_qos));
    network.await_match((0, writer), (1, reader));
    network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(1, 20)).expect("write accepted");
    for _ in 0..9 {
        network.run(50);
        let before = Timestamp::from_nanos(network.wall().to_nanos() - 2_000_000_000);
        let (alive, bytes) = (ChangeKind::Alive, payload(1, 20));
        network.write_stamped(0, writer, alive, hash(1), Some(before), &bytes).expect("write accepted");
    }
    assert_eq!(missed(&mut network, writer, reader), (0, 4));
}
