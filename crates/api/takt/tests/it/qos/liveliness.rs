//! Liveliness of writers: assertion, and the status of readers (DDS 1.4 §2.2.3.11).

use crate::support::*;
use takt::qos::*;
use takt::*;

const LEASE: takt::Duration = takt::Duration::from_millis(200);

/// Creates a pair whose publisher has its own thread, so that only the application's assertions can
/// be missing.
fn pair(runtime: Runtime, kind: LivelinessKind) -> Pair<Shape> {
    let domain = domain();
    let liveliness = Liveliness { kind, lease_duration: LEASE };
    let publisher = on_loopback(domain, Runtime::Shared).build().expect("participant");
    let subscriber = on_loopback(domain, runtime).build().expect("participant");
    let writer = DataWriterQos { liveliness, ..reliable_writer(History::KeepAll) };
    let reader = DataReaderQos { liveliness, ..reliable_reader(History::KeepAll) };
    Pair::between(publisher, subscriber, writer, reader)
}

fn counts(reader: &DataReader<Shape>) -> (u32, u32) {
    let status = reader.liveliness_changed_status().expect("open");
    (status.alive_count, status.not_alive_count)
}

#[test]
fn unasserted_writer_is_not_alive_until_it_asserts() {
    for runtime in RUNTIMES {
        for kind in [LivelinessKind::ManualByTopic, LivelinessKind::ManualByParticipant] {
            let pair = pair(runtime, kind);
            pair.writer.write(&Shape::new("RED", 1)).expect("room");
            pair.wait_until("silence", || counts(&pair.reader) == (0, 1));
            // Asserts repeatedly, since the lease may expire again before this thread reads the
            // status.
            pair.wait_until("assertion", || {
                pair.writer.assert_liveliness().expect("open");
                counts(&pair.reader) == (1, 0)
            });
            pair.wait_until("silence again", || counts(&pair.reader) == (0, 1));
            pair.wait_until("a sample", || {
                pair.writer.write(&Shape::new("RED", 2)).expect("room");
                pair.reader.take(usize::MAX).expect("open");
                counts(&pair.reader) == (1, 0)
            });
        }
    }
}

#[test]
fn automatic_writer_is_alive_as_long_as_its_participant() {
    for runtime in RUNTIMES {
        let pair = pair(runtime, LivelinessKind::Automatic);
        let outlived = std::time::Instant::now() + std::time::Duration::from_millis(600);
        pair.wait_until("life after three leases", || {
            std::time::Instant::now() > outlived && counts(&pair.reader) == (1, 0)
        });
        let Pair { publisher, subscriber, writer, reader } = pair;
        drop((publisher, writer));
        wait_until(&[&subscriber], "the end", || counts(&reader) == (0, 0));
    }
}
