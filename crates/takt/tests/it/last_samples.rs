//! What a writer wrote before it, its participant or its process ended arrives, also best effort: discovery and user data arrive by
//! sockets and transports of their own, which keep no order among one another.

use crate::support::*;
use takt::qos::*;
use takt::*;

const SAMPLES: u32 = 40;

fn best_effort_writer() -> DataWriterQos {
    DataWriterQos { reliability: Reliability::BEST_EFFORT, ..DataWriterQos::default() }
}

/// The numbers of what a reader gets that is not driven before the writer has written all, and is gone.
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
fn best_effort_samples_arrive_before_the_farewell_of_their_participant() {
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
