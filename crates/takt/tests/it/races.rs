//! Entities that are created, used and deleted by several threads at once, in no order: nothing hangs, nothing panics, and
//! whoever is left hears of who went.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use crate::support::*;
use takt::qos::*;
use takt::*;

/// The deleted and the closed are what these tests are about; anything else is a bug.
fn unless_deleted<R>(result: Result<R>) -> Option<R> {
    match result {
        Ok(value) => Some(value),
        Err(Error::AlreadyDeleted) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Counts its calls and its end.
struct Counting {
    calls: Arc<AtomicUsize>,
    living: Arc<AtomicUsize>,
}

impl Counting {
    fn new(calls: &Arc<AtomicUsize>, living: &Arc<AtomicUsize>) -> Box<Self> {
        living.fetch_add(1, Ordering::SeqCst);
        Box::new(Self { calls: Arc::clone(calls), living: Arc::clone(living) })
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.living.fetch_sub(1, Ordering::SeqCst);
    }
}

impl DataReaderListener<Shape> for Counting {
    fn on_data_available(&mut self, reader: &DataReader<Shape>) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        unless_deleted(reader.take(usize::MAX));
    }
}

#[test]
fn closing_races_with_everything_that_uses_a_reader() {
    for round in 0..40 {
        let pair = Pair::<Shape>::new(
            Runtime::Shared,
            reliable_writer(History::KeepLast(4)),
            reliable_reader(History::KeepLast(4)),
        );
        let (calls, living) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for x in 0.. {
                    if is_over.load(Ordering::SeqCst)
                        || unless_deleted(pair.writer.write(&Shape::new("RED", x))).is_none()
                    {
                        break;
                    }
                }
            });
            scope.spawn(|| {
                let waitset = WaitSet::new().expect("descriptors");
                waitset.attach(pair.reader.read_condition(Selector::READ)).expect("attached");
                while unless_deleted(waitset.wait_any(takt::Duration::INFINITE)).is_some() {
                    unless_deleted(pair.reader.take(2));
                }
            });
            scope.spawn(|| {
                let mut stream = pair.reader.stream();
                let mut cx = Context::from_waker(Waker::noop());
                loop {
                    match std::pin::pin!(stream.next()).poll(&mut cx) {
                        Poll::Ready(None) => break,
                        Poll::Ready(Some(sample)) => drop(unless_deleted(sample)),
                        Poll::Pending => std::thread::yield_now(),
                    }
                }
            });
            scope.spawn(|| {
                while unless_deleted(pair.reader.set_listener(Counting::new(&calls, &living))).is_some()
                    && unless_deleted(pair.reader.clear_listener()).is_some()
                {}
            });
            pair.wait_until("calls", || calls.load(Ordering::SeqCst) > 2);
            match round % 3 {
                0 => pair.reader.close(),
                1 => pair.subscriber.close(),
                _ => pair.publisher.close().and_then(|()| pair.reader.close()),
            }
            .expect("open");
            is_over.store(true, Ordering::SeqCst);
        });
        pair.wait_until("the listeners' end", || living.load(Ordering::SeqCst) == 0);
        if round % 3 != 2 {
            pair.wait_until("unmatch", || pair.writer.matched_subscriptions().expect("open").is_empty());
        }
    }
}

#[test]
fn endpoints_come_and_go_on_several_threads() {
    let domain = domain();
    let one = on_loopback(domain, Runtime::Shared).build().expect("participant");
    let other = on_loopback(domain, Runtime::Shared).build().expect("participant");
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (one, other) = if thread == 0 { (&one, &other) } else { (&other, &one) };
            scope.spawn(move || {
                for x in 0..60 {
                    let reader = create_reader::<Shape>(one, "Topic", reliable_reader(History::KeepAll));
                    let writer = create_writer::<Shape>(other, "Topic", reliable_writer(History::KeepLast(1)));
                    let stream = reader.stream();
                    writer.write(&Shape::new("RED", x)).expect("room");
                    match x % 4 {
                        0 => drop((writer, reader, stream)),
                        1 => drop((stream, reader, writer)),
                        2 => writer.close().expect("open"),
                        _ => reader.close().expect("open"),
                    }
                }
            });
        }
    });
    for participant in [&one, &other] {
        wait_until(&[], "all have gone", || {
            participant.discovered_publications().expect("open").is_empty()
                && participant.discovered_subscriptions().expect("open").is_empty()
        });
    }
}

#[test]
fn participants_end_while_others_use_them() {
    let domain = domain();
    let stays = on_loopback(domain, Runtime::Shared).build().expect("participant");
    let writer = create_writer::<Shape>(&stays, "Topic", reliable_writer(History::KeepLast(1)));
    for round in 0..20 {
        let leaves = on_loopback(domain, Runtime::Shared).build().expect("participant");
        let reader = create_reader::<Shape>(&leaves, "Topic", reliable_reader(History::KeepAll));
        std::thread::scope(|scope| {
            scope.spawn(|| while unless_deleted(reader.take(8)).is_some() {});
            scope.spawn(|| while unless_deleted(leaves.discovered_publications()).is_some() {});
            scope.spawn(|| {
                while let Some(reader) = unless_deleted(
                    leaves.builtin_subscriber().lookup_datareader::<takt::builtin::ParticipantBuiltinTopicData>(),
                ) {
                    unless_deleted(reader.take(8));
                }
            });
            wait_until(&[], "match", || !writer.matched_subscriptions().expect("open").is_empty());
            writer.write(&Shape::new("RED", round)).expect("room");
            leaves.close().expect("open");
        });
        drop(leaves);
        wait_until(&[], "farewell", || stays.discovered_participants().expect("open").is_empty());
    }
}
