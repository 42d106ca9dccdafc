//! Asynchronous receive and write with a minimal executor: wakeups, cancellation, closing.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use crate::support::*;
use takt::qos::*;
use takt::*;

/// Waker that unparks the polling thread and counts its wakeups.
struct Unpark {
    thread: std::thread::Thread,
    wakes: AtomicUsize,
}

impl Unpark {
    fn here() -> Arc<Self> {
        Arc::new(Self { thread: std::thread::current(), wakes: AtomicUsize::new(0) })
    }

    fn wakes(&self) -> usize {
        self.wakes.load(Ordering::SeqCst)
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// Polls a future only when it is woken, so that a lost wakeup fails the test.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Unpark::here());
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "nothing has woken this task");
        std::thread::park_timeout(left);
    }
}

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>, waker: &Arc<Unpark>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(waker))))
}

fn shared_pair<T: TypeSupport>() -> Pair<T> {
    Pair::new(Runtime::Shared, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll))
}

fn x_of(sample: Sample<Shape>) -> i32 {
    sample.data.expect("data").x
}

#[test]
fn async_receive_yields_every_sample_once_in_order() {
    const COUNT: i32 = 20_000;
    let pair = shared_pair::<Shape>();
    let mut samples = pair.reader.stream();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for x in 0..COUNT {
                pair.writer.write(&Shape::new("RED", x)).expect("room in time");
                if x % 64 == 0 {
                    // Empties the reader, so that the next sample must wake it.
                    pair.writer.wait_for_acknowledgments(takt::Duration::from_secs(30)).expect("acknowledged");
                }
            }
        });
        for x in 0..COUNT {
            let sample = block_on(samples.next()).expect("the stream has not ended").expect("a sample");
            assert_eq!(x_of(sample), x);
        }
    });
}

#[test]
fn ping_pong_wakes_both_participants_each_time() {
    let pair = shared_pair::<Shape>();
    let answers = create_writer::<Shape>(&pair.subscriber, "Answers", reliable_writer(History::KeepAll));
    let answered = create_reader::<Shape>(&pair.publisher, "Answers", reliable_reader(History::KeepAll));
    pair.wait_until("match of answers", || {
        !answers.matched_subscriptions().expect("open").is_empty()
            && !answered.matched_publications().expect("open").is_empty()
    });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            block_on(async {
                for _ in 0..2000 {
                    let sample = pair.reader.recv().await.expect("open");
                    answers.write_async(&sample.data.expect("data")).await.expect("room");
                }
            });
        });
        block_on(async {
            for x in 0..2000 {
                pair.writer.write_async(&Shape::new("RED", x)).await.expect("room");
                assert_eq!(x_of(answered.recv().await.expect("open")), x);
            }
        });
    });
}

#[test]
fn canceled_receive_loses_no_sample_and_leaves_no_waker() {
    let pair = shared_pair::<Shape>();
    let waker = Unpark::here();
    for x in 0..200 {
        {
            let mut canceled = pin!(pair.reader.recv());
            assert!(poll_once(canceled.as_mut(), &waker).is_pending());
        }
        assert_eq!(Arc::strong_count(&waker), 1, "the reader has forgotten the waker");
        let mut waits = pin!(pair.reader.recv());
        assert!(poll_once(waits.as_mut(), &waker).is_pending());
        pair.writer.write(&Shape::new("RED", x)).expect("room");
        pair.wait_until("wake-up", || waker.wakes() as i32 > x);
        if x % 2 == 0 {
            // Canceled after the wakeup but before the sample was taken.
            assert_eq!(x_of(block_on(pair.reader.recv()).expect("open")), x);
        } else {
            assert_eq!(x_of(block_on(waits).expect("open")), x);
        }
    }
}

#[test]
fn replaced_waker_is_not_woken() {
    let pair = shared_pair::<Shape>();
    let (first, second) = (Unpark::here(), Unpark::here());
    let mut waits = pin!(pair.reader.recv());
    assert!(poll_once(waits.as_mut(), &first).is_pending());
    assert!(poll_once(waits.as_mut(), &second).is_pending());
    assert_eq!(Arc::strong_count(&first), 1);
    pair.writer.write(&Shape::new("RED", 1)).expect("room");
    pair.wait_until("wake-up", || second.wakes() > 0);
    assert_eq!(first.wakes(), 0);
}

#[test]
fn streams_of_one_reader_share_its_samples() {
    const COUNT: usize = 3000;
    let pair = shared_pair::<Shape>();
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut stream = pair.reader.stream();
                while let Some(sample) = block_on(stream.next()) {
                    let mut all = all.lock().expect("no panic");
                    all.push(x_of(sample.expect("a sample")));
                    if all.len() == COUNT {
                        pair.reader.close().expect("open");
                    }
                }
            });
        }
        for x in 0..COUNT as i32 {
            pair.writer.write(&Shape::new("RED", x)).expect("room");
        }
    });
    let mut all = all.into_inner().expect("no panic");
    all.sort_unstable();
    assert_eq!(all, (0..COUNT as i32).collect::<Vec<_>>());
}

#[test]
fn close_from_another_thread_ends_pending_futures() {
    let domain = domain();
    for round in 0..50 {
        let participant = on_loopback(domain, Runtime::Shared).build().expect("participant");
        let reader = create_reader::<Shape>(&participant, "Topic", DataReaderQos::default());
        let mut stream = reader.stream();
        std::thread::scope(|scope| {
            scope.spawn(|| if round % 2 == 0 { reader.close() } else { participant.close() }.expect("open"));
            assert!(block_on(stream.next()).is_none());
        });
        assert!(block_on(stream.next()).is_none(), "it stays ended");
        assert!(matches!(block_on(reader.recv()), Err(Error::AlreadyDeleted)));
    }
}

/// Waker that drops a reader, as the end of a task may.
struct Owner(Mutex<Option<DataReader<Shape>>>);

impl Wake for Owner {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().expect("no panic").take());
    }
}

#[test]
fn woken_task_may_delete_entities() {
    let pair = shared_pair::<Shape>();
    let doomed = create_reader::<Shape>(&pair.subscriber, "Topic", reliable_reader(History::KeepAll));
    let matches = || pair.writer.matched_subscriptions().expect("open").len();
    pair.wait_until("second match", || matches() == 2);
    let mut waits = pin!(pair.reader.recv());
    let waker = Waker::from(Arc::new(Owner(Mutex::new(Some(doomed)))));
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    pair.writer.write(&Shape::new("RED", 1)).expect("room");
    pair.wait_until("the reader's end", || matches() == 1);
    assert_eq!(x_of(block_on(waits).expect("open")), 1);
}

#[test]
fn write_async_waits_for_space() {
    let limits = ResourceLimits { max_samples: Some(4), ..ResourceLimits::default() };
    let writer = DataWriterQos { resource_limits: limits, ..reliable_writer(History::KeepAll) };
    let reader = DataReaderQos { resource_limits: limits, ..reliable_reader(History::KeepAll) };
    let pair = Pair::<Shape>::new(Runtime::Shared, writer, reader);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            block_on(async {
                for x in 0..500 {
                    pair.writer.write_async(&Shape::new("RED", x)).await.expect("open");
                }
            });
        });
        let waker = Unpark::here();
        for x in 0..500 {
            assert_eq!(x_of(block_on(pair.reader.recv()).expect("open")), x);
        }
        assert!(poll_once(pin!(pair.reader.recv()), &waker).is_pending(), "none twice");
    });
}

#[test]
fn write_async_ends_when_the_writer_is_closed() {
    let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    let writer = DataWriterQos { resource_limits: limits, ..reliable_writer(History::KeepAll) };
    let reader = DataReaderQos { resource_limits: limits, ..reliable_reader(History::KeepAll) };
    let pair = Pair::<Shape>::new(Runtime::Shared, writer, reader);
    std::thread::scope(|scope| {
        let closes = scope.spawn(|| {
            block_on(async {
                loop {
                    match pair.writer.write_async(&Shape::new("RED", 1)).await {
                        Ok(()) => {}
                        result => break result,
                    }
                }
            })
        });
        pair.wait_until("a sample", || pair.reader.status_changes().intersects(StatusMask::DATA_AVAILABLE));
        pair.writer.close().expect("open");
        let result = closes.join().expect("no panic");
        assert!(matches!(result, Err(Error::AlreadyDeleted)), "{result:?}");
    });
}

#[test]
fn inline_participant_wakes_tasks_when_driven() {
    let pair =
        Pair::<Shape>::new(Runtime::Inline, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    let waker = Unpark::here();
    for x in 0..50 {
        let mut waits = pin!(pair.reader.recv());
        assert!(poll_once(waits.as_mut(), &waker).is_pending());
        pair.writer.write(&Shape::new("RED", x)).expect("room");
        pair.wait_until("wake-up", || waker.wakes() as i32 > x);
        let Poll::Ready(sample) = poll_once(waits, &waker) else { panic!("it was woken") };
        assert_eq!(x_of(sample.expect("open")), x);
    }
    std::thread::scope(|scope| {
        let other_thread = scope.spawn(|| block_on(pair.reader.recv()));
        let result = other_thread.join().expect("no panic");
        assert!(matches!(result, Err(Error::IllegalOperation { .. })), "{result:?}");
    });
}
