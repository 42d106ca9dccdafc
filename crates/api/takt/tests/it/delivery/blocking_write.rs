//! Blocking writes: a reliable writer with a full history waits for its readers
//! (DDS 1.4 §2.2.2.4.2.11).

use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::*;
use takt::qos::*;
use takt::*;
use takt_testkit::waiting::join;

const ROOM: u32 = 4;

fn small_history(max_blocking_time: takt::Duration) -> DataWriterQos {
    DataWriterQos {
        reliability: Reliability { max_blocking_time, ..Reliability::RELIABLE },
        history: History::KeepAll,
        resource_limits: ResourceLimits { max_samples: Some(ROOM), ..ResourceLimits::default() },
        ..DataWriterQos::default()
    }
}

/// Creates a pair with an inline subscriber, so that nothing is acknowledged until it is driven.
fn pair(runtime: Runtime, max_blocking_time: takt::Duration) -> Pair<Shape> {
    let domain = domain();
    let publisher = on_loopback(domain, runtime).build().expect("participant");
    let subscriber = on_loopback(domain, Runtime::Inline).build().expect("participant");
    Pair::between(publisher, subscriber, small_history(max_blocking_time), reliable_reader(History::KeepAll))
}

#[test]
fn write_times_out_with_full_history_and_loses_nothing() {
    for runtime in RUNTIMES {
        let pair = pair(runtime, takt::Duration::from_millis(20));
        let mut accepted = 0;
        let error = loop {
            match pair.writer.write(&Shape::new("RED", accepted)) {
                Ok(()) => accepted += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Timeout { .. }), "{runtime:?}: {error}");
        let text = error.to_string();
        let room =
            format!("timeout: no room in the history of the writer of \"Topic\" (max_samples {ROOM}) for 20 ms; ");
        assert!(text.starts_with(&room), "{text}");
        let unacknowledged = format!("1 reader has not acknowledged: {} of ", pair.reader.guid());
        assert!(text.contains(&unacknowledged), "{text}");
        let error = pair.writer.wait_for_acknowledgments(takt::Duration::ZERO).expect_err("none").to_string();
        assert!(error.starts_with(&format!("timeout: topic \"Topic\": {unacknowledged}")), "{error}");
        assert_eq!(accepted, ROOM as i32, "{runtime:?}");
        pair.take(ROOM as usize);
        pair.wait_until("acknowledgment", || pair.writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok());
        pair.writer.write(&Shape::new("RED", accepted)).expect("room again");
        assert_eq!(pair.take(1)[0].data, Some(Shape::new("RED", accepted)), "{runtime:?}");
    }
}

#[test]
fn blocked_write_continues_when_readers_acknowledge() {
    for runtime in RUNTIMES {
        let pair = pair(runtime, takt::Duration::from_secs(60));
        let Pair { subscriber, reader, publisher, writer } = pair;
        // The subscriber belongs to this thread; the writer moves to another one. An inline writer
        // must be created there.
        let domain = publisher.domain_id();
        if runtime == Runtime::Inline {
            drop((publisher, writer));
            writes_while_driven(domain, &subscriber, &reader, None);
        } else {
            writes_while_driven(domain, &subscriber, &reader, Some(writer));
        }
    }
}

const SAMPLES: i32 = 200;

fn writes_while_driven(
    domain: u32,
    subscriber: &DomainParticipant,
    reader: &DataReader<Shape>,
    writer: Option<DataWriter<Shape>>,
) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut own = None;
            let writer = writer.unwrap_or_else(|| {
                let publisher = on_loopback(domain, Runtime::Inline).build().expect("participant");
                let writer = create_writer(&publisher, "Topic", small_history(takt::Duration::from_secs(60)));
                wait_until(&[&publisher], "match", || !writer.matched_subscriptions().expect("open").is_empty());
                own = Some(publisher);
                writer
            });
            for x in 0..SAMPLES {
                writer.write(&Shape::new("RED", x)).expect("room in time");
            }
            writer.wait_for_acknowledgments(takt::Duration::from_secs(60)).expect("acknowledged in time");
            done.store(true, Ordering::SeqCst);
        });
        let mut received = Vec::new();
        wait_until(&[subscriber], "samples", || {
            received.extend(reader.take(usize::MAX).expect("open").into_iter().filter_map(|sample| sample.data));
            done.load(Ordering::SeqCst)
        });
        let expected: Vec<_> = (0..SAMPLES).map(|x| Shape::new("RED", x)).collect();
        assert_eq!(received, expected);
    });
}

#[test]
fn wait_for_acknowledgments_returns_when_all_are_acknowledged() {
    for runtime in RUNTIMES {
        let pair = pair(runtime, takt::Duration::from_millis(20));
        pair.writer.wait_for_acknowledgments(takt::Duration::ZERO).expect("nothing to wait for");
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        let result = pair.writer.wait_for_acknowledgments(takt::Duration::from_millis(10));
        assert!(matches!(result, Err(Error::Timeout { .. })), "{runtime:?}: {result:?}");
        pair.take(1);
        pair.wait_until("acknowledgment", || pair.writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok());
    }
}

#[test]
fn close_ends_a_blocked_write() {
    let pair = pair(Runtime::Shared, takt::Duration::INFINITE);
    for x in 0..ROOM as i32 {
        pair.writer.write(&Shape::new("RED", x)).expect("room");
    }
    let writer = pair.writer.clone();
    let waiting = std::thread::spawn(move || writer.write(&Shape::new("RED", -1)));
    pair.publisher.close().expect("open");
    let result = join("the writer is closed", waiting);
    assert!(matches!(result, Err(Error::AlreadyDeleted)), "{result:?}");
}
