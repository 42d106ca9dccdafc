//! A sample written after a match arrives, also at a best-effort reader.

use crate::support::*;
use takt::qos::*;
use takt::*;

const LONG: takt::Duration = takt::Duration::from_secs(60);

fn best_effort_sample_arrives_after_the_match(shared_memory: bool) {
    let domain = domain();
    let participant =
        || on_loopback(domain, Runtime::Shared).shared_memory(shared_memory).build().expect("participant");
    let (from, to) = (participant(), participant());
    let qos = DataWriterQos { reliability: Reliability::BEST_EFFORT, ..DataWriterQos::default() };
    for round in 0..100 {
        let topic = format!("Topic{round}");
        let reader = create_reader::<Blob>(&to, &topic, DataReaderQos::default());
        let writer = create_writer::<Blob>(&from, &topic, qos.clone());
        writer.wait_for_readers(1, LONG).expect("a match");
        writer.write(&Blob::new(round, 64)).expect("room");
        let sample = reader.recv_timeout(LONG).unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(sample.data, Some(Blob::new(round, 64)));
        assert!(!writer.has_reliable_readers().expect("open"), "nothing acknowledges it");
    }
}

#[test]
fn best_effort_sample_arrives_after_the_match_over_shared_memory() {
    best_effort_sample_arrives_after_the_match(true);
}

#[test]
fn best_effort_sample_arrives_after_the_match_over_udp() {
    best_effort_sample_arrives_after_the_match(false);
}

#[test]
fn wait_for_readers_and_writers_return_on_match_or_time_out() {
    for runtime in RUNTIMES {
        let participant = on_loopback(domain(), runtime).build().expect("participant");
        let writer = create_writer::<Blob>(&participant, "Topic", DataWriterQos::default());
        let short = std::time::Duration::from_millis(20);
        assert!(matches!(writer.wait_for_readers(1, short), Err(Error::Timeout { .. })), "{runtime:?}");
        writer.wait_for_readers(0, short).expect("none is enough");
        let reader = create_reader::<Blob>(&participant, "Topic", DataReaderQos::default());
        writer.wait_for_readers(1, LONG).expect("a match");
        reader.wait_for_writers(1, LONG).expect("a match");
        assert!(matches!(reader.wait_for_writers(2, short), Err(Error::Timeout { .. })), "{runtime:?}");
        let reliable = create_reader::<Blob>(&participant, "Topic", reliable_reader(History::KeepAll));
        writer.wait_for_readers(2, LONG).expect("both");
        assert!(writer.has_reliable_readers().expect("open"));
        reliable.close().expect("open");
        assert!(matches!(reliable.wait_for_writers(1, short), Err(Error::AlreadyDeleted)), "{runtime:?}");
    }
}

#[test]
fn wait_for_readers_returns_when_a_reader_is_created() {
    let domain = domain();
    let (from, to) =
        (on_loopback(domain, Runtime::Shared).build().expect("participant"), on_loopback(domain, Runtime::Shared));
    let to = to.build().expect("participant");
    let writer = create_writer::<Blob>(&from, "Topic", DataWriterQos::default());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| writer.wait_for_readers(1, LONG));
        let reader = create_reader::<Blob>(&to, "Topic", DataReaderQos::default());
        reader.wait_for_writers(1, LONG).expect("a match");
        waiting.join().expect("no panic").expect("a match");
    });
}
