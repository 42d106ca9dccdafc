//! Last samples: everything written before the end of a writer, its participant or its process
//! arrives, also with best effort. Discovery and user data use separate sockets and transports,
//! which do not preserve a common order.

use crate::support::*;
use takt::qos::*;
use takt::*;

const SAMPLES: u32 = 40;

fn best_effort_writer() -> DataWriterQos {
    DataWriterQos { reliability: Reliability::BEST_EFFORT, ..DataWriterQos::default() }
}

/// Returns the numbers received by a reader that is driven only after the writer has written
/// everything and ended.
fn taken_after(shared_memory: bool, end: impl FnOnce(DomainParticipant, DataWriter<Blob>)) -> Vec<u32> {
    let domain = domain();
    let participant = |runtime| on_loopback(domain, runtime).shared_memory(shared_memory).build().expect("participant");
    let (publisher, subscriber) = (participant(Runtime::Inline), participant(Runtime::Inline));
    let reader_qos = DataReaderQos { history: History::KeepAll, ..DataReaderQos::default() };
    let Pair { publisher, subscriber, writer, reader } =
        Pair::<Blob>::between(publisher, subscriber, best_effort_writer(), reader_qos);
    let matched = || reader.matched_publications().expect("open").len();
    wait_until(&[&publisher, &subscriber], "the reader knows the writer", || matched() == 1);
    for number in 0..SAMPLES {
        writer.write(&Blob::new(number, 64)).expect("room");
    }
    end(publisher, writer);
    wait_until(&[&subscriber], "the writer is gone", || matched() == 0);
    reader.take(usize::MAX).expect("open").into_iter().filter_map(|sample| Some(sample.data?.number)).collect()
}

#[test]
fn best_effort_samples_arrive_before_their_participant_leaves() {
    for shared_memory in [false, true] {
        let taken = taken_after(shared_memory, |publisher, writer| {
            drop(writer);
            publisher.close().expect("open");
        });
        assert_eq!(taken, (0..SAMPLES).collect::<Vec<_>>(), "shared memory: {shared_memory}");
    }
}

#[test]
fn best_effort_samples_arrive_before_the_end_of_their_writer() {
    for shared_memory in [false, true] {
        let mut kept = None;
        let taken = taken_after(shared_memory, |publisher, writer| {
            writer.close().expect("open");
            kept = Some(publisher);
        });
        assert_eq!(taken, (0..SAMPLES).collect::<Vec<_>>(), "shared memory: {shared_memory}");
    }
}
