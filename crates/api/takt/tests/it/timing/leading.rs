//! Leader/followers: threads that wait under `Runtime::Shared` receive datagrams themselves, while
//! listeners, timers and other waiting threads work as usual.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread::{ThreadId, current};

use crate::support::*;
use takt::qos::*;
use takt::real_time::ThreadSettings;
use takt::*;
use takt_testkit::waiting::{OnDrop, join, receive, until};

const LONG: takt::Duration = takt::Duration::from_secs(60);
const SHORT: takt::Duration = takt::Duration::from_millis(5);

/// More waits than it takes until the descriptors are registered in the kernel.
const WAITS: i32 = 50;

/// Creates a pair whose subscriber is reached by shared memory, or by UDP only.
fn pair(shared_memory: bool) -> Pair<Shape> {
    let domain = domain();
    let participant =
        || on_loopback(domain, Runtime::Shared).shared_memory(shared_memory).build().expect("participant");
    let (publisher, subscriber) = (participant(), participant());
    Pair::between(publisher, subscriber, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll))
}

/// Returns a wait set for the samples of a reader.
fn wait_set(reader: &DataReader<Shape>) -> WaitSet {
    let waitset = WaitSet::new().expect("descriptors");
    waitset.attach(reader.read_condition(Selector::READ)).expect("attached");
    waitset
}

/// Waits for this sample and takes it.
fn take_next(waitset: &WaitSet, reader: &DataReader<Shape>, x: i32) {
    assert!(waitset.wait_any(LONG).expect("a wait"), "sample {x}");
    assert_eq!(reader.take(1).expect("open")[0].data, Some(Shape::new("RED", x)));
}

/// Waker that records the threads that wake it: those that receive the data for which the task
/// waits.
#[derive(Default)]
struct ThreadRecorder(Mutex<HashSet<ThreadId>>);

impl Wake for ThreadRecorder {
    fn wake(self: Arc<Self>) {
        self.0.lock().expect("no panic").insert(current().id());
    }
}

/// Returns the threads that receive while this thread waits for samples of another one. Stops early
/// when this thread has received one.
fn receiving_threads(pair: &Pair<Shape>, samples: i32) -> HashSet<ThreadId> {
    let (waitset, recorder) = (wait_set(&pair.reader), Arc::new(ThreadRecorder::default()));
    let waker = Waker::from(Arc::clone(&recorder));
    let mut stream = pair.reader.stream();
    let threads = || recorder.0.lock().expect("no panic").clone();
    let (sender, receiver) = sync_channel::<i32>(0);
    std::thread::scope(|scope| {
        scope.spawn(|| receiver.into_iter().for_each(|x| pair.writer.write(&Shape::new("RED", x)).expect("room")));
        for x in 0..samples {
            assert!(pin!(stream.next()).poll(&mut Context::from_waker(&waker)).is_pending());
            sender.send(x).expect("the thread takes it");
            take_next(&waitset, &pair.reader, x);
            if threads().contains(&current().id()) {
                break;
            }
        }
        drop(sender);
    });
    threads()
}

/// More samples than it takes until one arrives while the waiting thread sleeps.
const MANY: i32 = 10_000;

#[test]
fn waiting_thread_receives_datagrams_itself() {
    for shared_memory in [false, true] {
        let threads = receiving_threads(&pair(shared_memory), MANY);
        assert!(threads.contains(&current().id()), "shared memory: {shared_memory}");
    }
}

#[test]
fn receiving_thread_with_settings_admits_no_leader() {
    let domain = domain();
    let settings =
        ThreadSettings { timer_slack: Some(std::time::Duration::from_nanos(1)), ..ThreadSettings::default() };
    let publisher = on_loopback(domain, Runtime::Shared).build().expect("participant");
    let subscriber = on_loopback(domain, Runtime::Shared).thread_settings(settings).build().expect("participant");
    let qos = (reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    let threads = receiving_threads(&Pair::between(publisher, subscriber, qos.0, qos.1), WAITS);
    assert!(threads.len() == 1 && !threads.contains(&current().id()), "{threads:?}");
}

#[test]
fn receiving_thread_calls_listeners_while_another_thread_waits() {
    for shared_memory in [false, true] {
        let pair = pair(shared_memory);
        let qos = (reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        let (writer, reader) = connect::<Shape>(&pair.publisher, &pair.subscriber, "Heard", qos.0, qos.1);
        let (sender, receiver) = channel();
        listen(&reader, move |reader| {
            let name = current().name().map(str::to_owned);
            for sample in reader.take(usize::MAX).expect("open") {
                sender.send((name.clone(), sample.data.expect("data").x)).expect("the test waits");
            }
        });
        let waitset = wait_set(&pair.reader);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| (0..WAITS).for_each(|x| take_next(&waitset, &pair.reader, x)));
            // If the listener calls are wrong, closing the participant ends the waiting thread.
            let _ending = OnDrop(|| drop(pair.subscriber.close()));
            for x in 0..WAITS {
                writer.write(&Shape::new("RED", x)).expect("room");
                assert_eq!(receive("a call", &receiver), (Some("takt-rx".to_owned()), x));
                pair.writer.write(&Shape::new("RED", x)).expect("room");
            }
            until("all samples are taken", || waiter.is_finished());
        });
    }
}

#[test]
fn samples_and_heartbeats_are_handled_while_the_former_leader_is_busy() {
    for shared_memory in [false, true] {
        let pair = pair(shared_memory);
        let waitset = wait_set(&pair.reader);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..WAITS).for_each(|x| pair.writer.write(&Shape::new("RED", x)).expect("room")));
            (0..WAITS).for_each(|x| take_next(&waitset, &pair.reader, x));
        });
        for x in 0..WAITS {
            pair.writer.write(&Shape::new("RED", x)).expect("room");
            take_next(&waitset, &pair.reader, x);
            // This thread drives nothing here: the receiving thread acknowledges.
            pair.writer.write(&Shape::new("RED", -x)).expect("room");
            pair.writer.wait_for_acknowledgments(LONG).expect("acknowledged");
            take_next(&waitset, &pair.reader, -x);
        }
    }
}

#[test]
fn wait_of_a_leader_times_out() {
    for shared_memory in [false, true] {
        let pair = pair(shared_memory);
        let waitset = wait_set(&pair.reader);
        for x in 0..WAITS {
            assert!(!waitset.wait_any(takt::Duration::from_millis(1)).expect("a wait"));
            assert!(matches!(pair.reader.recv_timeout(takt::Duration::from_millis(1)), Err(Error::Timeout { .. })));
            pair.writer.write(&Shape::new("RED", x)).expect("room");
            take_next(&waitset, &pair.reader, x);
        }
        assert!(!waitset.wait_any(SHORT).expect("a wait"));
    }
}

#[test]
fn two_waiting_threads_of_one_participant_receive_their_samples() {
    for shared_memory in [false, true] {
        let pair = pair(shared_memory);
        let qos = (reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        let (writer, reader) = connect::<Shape>(&pair.publisher, &pair.subscriber, "Other", qos.0, qos.1);
        std::thread::scope(|scope| {
            for reader in [&pair.reader, &reader] {
                scope.spawn(move || {
                    let waitset = wait_set(reader);
                    (0..WAITS).for_each(|x| take_next(&waitset, reader, x));
                });
            }
            for x in 0..WAITS {
                let order = if x % 2 == 0 { [&pair.writer, &writer] } else { [&writer, &pair.writer] };
                order.into_iter().for_each(|writer| writer.write(&Shape::new("RED", x)).expect("room"));
            }
        });
    }
}

#[test]
fn one_wait_set_leads_several_participants() {
    let pairs = [pair(false), pair(true), pair(false)];
    let waitset = WaitSet::new().expect("descriptors");
    for pair in &pairs {
        waitset.attach(pair.reader.read_condition(Selector::READ)).expect("attached");
    }
    for x in 0..WAITS {
        for pair in &pairs {
            pair.writer.write(&Shape::new("RED", x)).expect("room");
            take_next(&waitset, &pair.reader, x);
        }
    }
}

#[test]
fn close_ends_the_wait_of_the_leader() {
    for shared_memory in [false, true] {
        let pair = pair(shared_memory);
        let waitset = wait_set(&pair.reader);
        for x in 0..WAITS {
            pair.writer.write(&Shape::new("RED", x)).expect("room");
            take_next(&waitset, &pair.reader, x);
        }
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| waitset.wait_any(LONG));
            pair.subscriber.close().expect("open");
            until("the wait has ended", || waiter.is_finished());
            assert!(matches!(waiter.join().expect("no panic"), Err(Error::AlreadyDeleted)));
        });
    }
}

#[test]
fn participant_with_urgent_reader_admits_no_leader() {
    let pair = pair(false);
    assert!(receiving_threads(&pair, MANY).contains(&current().id()));
    let urgent = create_reader::<Shape>(&pair.subscriber, "Urgent", reader_with(&[(PRIORITY_PROPERTY, "46")]));
    let threads = receiving_threads(&pair, WAITS);
    assert!(threads.len() == 1 && !threads.contains(&current().id()), "{threads:?}");
    drop(urgent);
}

#[test]
fn separate_waits_for_each_sample_receive_every_sample() {
    for shared_memory in [false, true] {
        let pair = pair(shared_memory);
        let (sender, x_max) = (pair.writer.clone(), 20 * WAITS);
        let writing = std::thread::spawn(move || {
            (0..x_max).for_each(|x| sender.write(&Shape::new("RED", x)).expect("room"));
        });
        for x in 0..x_max {
            let sample = pair.reader.recv_timeout(LONG).expect("a sample");
            assert_eq!(sample.data, Some(Shape::new("RED", x)), "shared memory: {shared_memory}");
        }
        join("the writer", writing);
    }
}
