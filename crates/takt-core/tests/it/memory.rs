//! Readers whose memory is full.

use crate::network::*;
use takt_core::*;
use takt_wire::qos::*;

/// A writer with all the memory it wants, and a reader with little.
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

/// The numbers of all samples that the reader has.
fn seen(network: &mut Network, reader: ReaderHandle) -> Vec<i64> {
    let (now, mut cursor, mut seen) = (network.now, ReadCursor::default(), Vec::new());
    while let Some(sample) = network.nodes[1].read_next(now, reader, Selector::READ, &mut cursor).expect("it lives") {
        seen.push(sample.info.sequence_number.0);
    }
    network.nodes[1].end_read(now, reader).expect("it lives");
    seen
}

#[test]
fn keep_last_shows_the_newest_samples_that_memory_holds() {
    for reliable in [true, false] {
        // In one datagram each, and in fragments.
        for (len, memory) in [(1_000, 8_000), (20_000, 170_000)] {
            let (mut network, writer, reader) = pair(memory, reliable, History::KeepLast(100));
            for number in 1..=20 {
                network.write(0, writer, &payload(number, len)).expect("there is room");
                network.run(100);
            }
            let seen = seen(&mut network, reader);
            let oldest = 21 - seen.len() as i64;
            assert!(seen.len() >= 5 && seen.iter().copied().eq(oldest..=20), "reliable {reliable}, {len}: {seen:?}");
            let status = network.nodes[1].sample_rejected_status(reader).expect("it lives");
            assert_eq!(status.total_count, 0, "reliable {reliable}, {len}");
        }
    }
}

#[test]
fn keep_last_of_one_replaces_a_sample_that_takes_most_of_the_memory() {
    let (mut network, writer, reader) = pair(30_000, true, History::KeepLast(1));
    for number in 1..=3 {
        network.write(0, writer, &payload(number, 20_000)).expect("there is room");
        network.run(100);
        assert_eq!(seen(&mut network, reader), [i64::from(number)]);
    }
}

#[test]
fn sample_in_fragments_without_memory_is_rejected_once_and_arrives_later() {
    let (mut network, writer, reader) = pair(50_000, true, History::KeepAll);
    for number in 1..=3 {
        network.write(0, writer, &payload(number, 20_000)).expect("there is room");
    }
    network.run(2_000);
    assert_eq!(seen(&mut network, reader), [1, 2]);
    let status = network.nodes[1].sample_rejected_status(reader).expect("it lives");
    assert_eq!((status.total_count, status.last_reason), (1, Some(SampleRejectedReason::MemoryLimit)));
    network.take(1, reader).expect("the first");
    let now = network.now;
    network.nodes[1].end_read(now, reader).expect("it lives");
    network.run(2_000);
    assert_eq!(seen(&mut network, reader), [2, 3]);
}

#[test]
fn sample_larger_than_all_memory_is_given_up_and_the_next_one_arrives() {
    for reliable in [true, false] {
        for history in [History::KeepAll, History::KeepLast(3)] {
            let (mut network, writer, reader) = pair(10_000, reliable, history);
            for len in [1_000, 20_000, 2_000] {
                network.write(0, writer, &payload(len as u32, len)).expect("there is room");
                network.run(500);
            }
            assert_eq!(seen(&mut network, reader), [1, 3], "reliable: {reliable}");
            let status = network.nodes[1].sample_rejected_status(reader).expect("it lives");
            assert_eq!((status.total_count, status.last_reason), (1, Some(SampleRejectedReason::MemoryLimit)));
            let lost = network.nodes[1].sample_lost_status(reader).expect("it lives");
            assert_eq!(lost.total_count, 1, "reliable: {reliable}");
        }
    }
}
