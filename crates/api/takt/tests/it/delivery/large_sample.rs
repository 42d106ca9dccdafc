//! Samples of many fragments.

use crate::support::*;
use takt::qos::*;
use takt::*;

const LEN: usize = 4 << 20;

#[test]
fn sample_of_four_megabytes_arrives_complete() {
    for runtime in RUNTIMES {
        let pair = Pair::<Blob>::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        for number in 0..3 {
            let blob = Blob::new(number, LEN);
            pair.writer.write(&blob).expect("room");
            let sample = pair.take(1).remove(0);
            assert!(sample.data == Some(blob), "{runtime:?}: blob {number} differs");
        }
        let counters = pair.subscriber.diagnostics().counters().expect("open");
        assert_eq!(counters.rejected_fragments, 0, "{runtime:?}");
    }
}

#[test]
fn sample_larger_than_the_writers_memory_is_rejected() {
    for shared_memory in [false, true] {
        let limits = Limits { endpoint_memory_bytes: 1 << 20, ..Limits::default() };
        let domain = domain();
        let publisher = on_loopback(domain, Runtime::Shared).shared_memory(shared_memory).limits(limits);
        let publisher = publisher.build().expect("participant");
        let subscriber = on_loopback(domain, Runtime::Shared).build().expect("participant");
        let writer = reliable_writer(History::KeepAll);
        let pair = Pair::<Blob>::between(publisher, subscriber, writer, reliable_reader(History::KeepAll));
        let error = pair.writer.write(&Blob::new(1, LEN)).expect_err("too large").to_string();
        assert_eq!(
            error,
            "out of resources: sample of 4,194,316 B exceeds endpoint_memory_bytes (1,048,576 B) of the writer of \"Topic\"; \
             raise Limits::endpoint_memory_bytes at both ends"
        );
        pair.writer.write(&Blob::new(2, 1000)).expect("room");
        assert_eq!(pair.take(1)[0].data, Some(Blob::new(2, 1000)));
    }
}
