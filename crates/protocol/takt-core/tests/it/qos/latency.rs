//! Latency monitoring: ages of samples against the reader's E2E_LATENCY.

use core::time::Duration;

use takt_core::*;
use takt_wire::Timestamp;
use takt_wire::qos::*;

use crate::network::*;

/// Returns the policies of a reader that requires samples within a millisecond, of either
/// reliability.
fn demanding(reliability: Reliability) -> DataReaderQos {
    let mut qos = DataReaderQos { reliability, durability: Durability::TransientLocal, ..keep_all_reader() };
    qos.property.set("rt.e2e_ns", "1000000", false);
    qos
}

/// Writes a sample that is already `micros` microseconds old.
fn write_aged(network: &mut Network, writer: WriterHandle, micros: i64) {
    let stamp = Timestamp::from_nanos(network.wall().to_nanos() - micros * 1000);
    let hash = KeyHash::default();
    network.write_stamped(0, writer, ChangeKind::Alive, hash, Some(stamp), &payload(1, 100)).expect("room");
}

fn status(network: &mut Network, reader: ReaderHandle) -> LatencyExceededStatus {
    network.nodes[1].latency_exceeded_status(reader).expect("lives").expect("it has a limit")
}

#[test]
fn samples_older_than_the_limit_are_counted_and_reported() {
    for reliability in [reliable(), best_effort()] {
        let mut network = Network::new(2, 1);
        let qos = DataWriterQos { durability: Durability::TransientLocal, ..keep_all_writer() };
        let writer = network.writer(0, writer_spec("Topic", false, qos));
        write_aged(&mut network, writer, 50_000);
        network.run(100);
        let reader = network.reader(1, reader_spec("Topic", false, demanding(reliability)));
        network.await_match((0, writer), (1, reader));
        network.run(500);
        assert_eq!(status(&mut network, reader).ages.count(), 0, "what was written before is history");
        network.events(1);

        // This network has no delay, so a sample arrives at the age with which it is written.
        for micros in [0, 900, 2_000, -5_000] {
            write_aged(&mut network, writer, micros);
            network.run(0);
        }
        network.run(10);
        let events = network.events(1);
        assert_eq!(events.iter().filter(|event| **event == Event::LatencyExceeded(reader)).count(), 1, "{events:?}");
        let first = status(&mut network, reader);
        assert_eq!((first.limit, first.total_count, first.total_count_change), (Some(Duration::from_millis(1)), 1, 1));
        let last_ns = u64::try_from(first.last.as_nanos()).expect("short");
        assert!((2_000_000..2_100_000).contains(&last_ns), "{last_ns}");
        assert_eq!((first.ages.count(), first.ages.min_ns(), first.ages.max_ns()), (4, 0, last_ns));
        assert_eq!(status(&mut network, reader).total_count_change, 0, "it was read");
    }
}

#[test]
fn reader_without_a_limit_has_no_latency_status() {
    let mut network = Network::new(1, 1);
    let reader = network.reader(0, reader_spec("Topic", false, keep_all_reader()));
    assert_eq!(network.nodes[0].latency_exceeded_status(reader).expect("lives"), None);
}
