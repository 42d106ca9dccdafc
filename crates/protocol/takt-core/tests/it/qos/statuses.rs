//! Communication statuses (DDS 1.4 §2.2.4.1): totals, and their changes since the last read.

use crate::network::*;
use takt_core::*;
use takt_wire::Duration;
use takt_wire::compat::PolicyId;
use takt_wire::qos::*;

/// Returns the totals and their changes.
fn numbers(status: MatchedStatus) -> [i64; 4] {
    let MatchedStatus { total_count, total_count_change, current_count, current_count_change, .. } = status;
    [total_count.into(), total_count_change.into(), current_count.into(), current_count_change.into()]
}

#[test]
fn matches_are_counted_when_they_begin_and_end() {
    let mut network = Network::new(3, 520);
    let writer = network.writer(0, writer_spec("T", true, keep_all_writer()));
    let readers = [1, 2].map(|node| network.reader(node, reader_spec("T", true, keep_all_reader())));
    for (node, reader) in [(1, readers[0]), (2, readers[1])] {
        network.await_match((0, writer), (node, reader));
    }
    network.run(1_000);
    let writer_status = |network: &mut Network| network.nodes[0].publication_matched_status(writer).expect("it exists");
    let reader_status =
        |network: &mut Network| network.nodes[2].subscription_matched_status(readers[1]).expect("present");
    assert_eq!(numbers(writer_status(&mut network)), [2, 2, 2, 2]);
    assert_eq!(numbers(reader_status(&mut network)), [1, 1, 1, 1]);

    let deleted = network.nodes[1].reader_guid(readers[0]).expect("it exists");
    network.nodes[1].delete_reader(network.now, readers[0]).expect("it exists");
    network.run(1_000);
    let status = writer_status(&mut network);
    assert_eq!((numbers(status), status.last_peer), ([2, 0, 1, -1], Some(deleted)));
    assert_eq!(numbers(writer_status(&mut network)), [2, 0, 1, 0], "it was read");

    network.nodes[0].delete_writer(network.now, writer).expect("it exists");
    network.run(1_000);
    assert_eq!(numbers(reader_status(&mut network)), [1, 0, 0, -1]);
}

#[test]
fn every_incompatible_policy_is_counted() {
    let mut network = Network::new(2, 521);
    let requested = DataReaderQos { durability: Durability::TransientLocal, ..keep_all_reader() };
    let reader = network.reader(1, reader_spec("T", true, requested));
    for total in 1..=2 {
        let offered = DataWriterQos { reliability: best_effort(), ..keep_all_writer() };
        let writer = network.writer(0, writer_spec("T", true, offered));
        network.run(1_000);
        let statuses = [
            (network.nodes[0].offered_incompatible_qos_status(writer), 1),
            (network.nodes[1].requested_incompatible_qos_status(reader), total),
        ];
        for (status, total) in statuses {
            let status = status.expect("it exists");
            assert_eq!((status.total_count, status.total_count_change), (total, 1));
            assert_eq!(status.count_of(PolicyId::Reliability), total);
            assert_eq!(status.count_of(PolicyId::Durability), total);
            assert_eq!(status.count_of(PolicyId::Deadline), 0);
        }
        let again = network.nodes[1].requested_incompatible_qos_status(reader).expect("it exists");
        assert_eq!((again.total_count, again.total_count_change), (total, 0));
    }
}

#[test]
fn rejected_samples_are_counted_with_the_limit() {
    use SampleRejectedReason::*;
    let limits = |samples, instances, per_instance| ResourceLimits {
        max_samples: samples,
        max_instances: instances,
        max_samples_per_instance: per_instance,
    };
    for (resource_limits, second, reason) in [
        (limits(Some(1), None, Some(1)), 2, SamplesLimit),
        (limits(None, Some(1), None), 2, InstancesLimit),
        (limits(None, None, Some(1)), 1, SamplesPerInstanceLimit),
    ] {
        let mut network = Network::new(2, 522);
        let reader = reader_spec("T", true, DataReaderQos { resource_limits, ..keep_all_reader() });
        let writer = network.writer(0, writer_spec("T", true, keep_all_writer()));
        let reader = network.reader(1, reader);
        network.await_match((0, writer), (1, reader));
        for key in [1, second] {
            let bytes = payload(u32::from(key), 20);
            network.write_key(0, writer, ChangeKind::Alive, hash(key), &bytes).expect("write accepted");
        }
        network.run(100);
        let status = network.nodes[1].sample_rejected_status(reader).expect("it exists");
        assert_eq!(status.last_reason, Some(reason));
        assert!(status.total_count > 0 && status.total_count == status.total_count_change, "{status:?}");
        let again = network.nodes[1].sample_rejected_status(reader).expect("it exists");
        assert_eq!((again.total_count, again.total_count_change), (status.total_count, 0));
        network.take(1, reader).expect("the first one");
        network.run(1_000);
        let delivered = usize::from(reason != InstancesLimit);
        assert_eq!(network.take_all(1, reader).len(), delivered, "it is sent again; an instance that is alive stays");
    }
}

#[test]
fn endpoints_of_another_type_are_counted_on_both_sides() {
    let mut network = Network::new(2, 523);
    let writer = network.writer(0, writer_spec("T", true, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", true, keep_all_reader()));
    let others = 2;
    for _ in 0..others {
        for node in 0..2 {
            let spec = WriterSpec { type_name: "Other".into(), ..writer_spec("T", true, keep_all_writer()) };
            network.writer(node, spec);
            let spec = ReaderSpec { type_name: "Other".into(), ..reader_spec("T", true, keep_all_reader()) };
            network.reader(node, spec);
        }
    }
    network.run(1_000);
    for change in [2 * others, 0] {
        let writer_status = network.nodes[0].writer_inconsistent_topic_status(writer).expect("it exists");
        let reader_status = network.nodes[1].reader_inconsistent_topic_status(reader).expect("it exists");
        for status in [writer_status, reader_status] {
            assert_eq!((status.total_count, status.total_count_change), (2 * others, change));
        }
    }
    let seen = |node: usize, topic| network.nodes[node].inconsistent_topics(topic);
    // The endpoints with other types of both nodes were compared with the local ones.
    assert!(seen(0, "T") > 2 * others && seen(1, "T") > 2 * others);
    assert_eq!((seen(0, "U"), seen(1, "U")), (0, 0));
}

#[test]
fn deleted_writer_is_not_counted_as_alive_or_not_alive() {
    for silent_ms in [0, 500] {
        let mut network = Network::new(2, 524);
        let liveliness = Liveliness { kind: LivelinessKind::ManualByTopic, lease_duration: Duration::from_millis(300) };
        let writer = network.writer(0, writer_spec("T", true, DataWriterQos { liveliness, ..keep_all_writer() }));
        let reader = network.reader(1, reader_spec("T", true, DataReaderQos { liveliness, ..keep_all_reader() }));
        network.await_match((0, writer), (1, reader));
        network.run(silent_ms);
        let counts = |network: &mut Network| {
            let status = network.nodes[1].liveliness_changed_status(reader).expect("it exists");
            let counts = (status.alive_count, status.not_alive_count);
            (counts, (status.alive_count_change, status.not_alive_count_change))
        };
        let was_alive = silent_ms == 0;
        assert_eq!(counts(&mut network).0, if was_alive { (1, 0) } else { (0, 1) });
        network.nodes[0].delete_writer(network.now, writer).expect("it exists");
        network.run(100);
        assert_eq!(counts(&mut network), ((0, 0), if was_alive { (-1, 0) } else { (0, -1) }));
    }
}
