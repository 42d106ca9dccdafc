//! Concurrent creation, use and deletion of entities and executors by several threads in random
//! order: nothing hangs or panics, and the remaining participants observe every departure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use crate::support::*;
use takt::qos::*;
use takt::*;
use takt_testkit::waiting::OnDrop;

/// Ignores errors of deleted entities, which these tests provoke. Any other error is a bug.
fn unless_deleted<R>(result: Result<R>) -> Option<R> {
    match result {
        Ok(value) => Some(value),
        Err(Error::AlreadyDeleted) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Listener that counts its calls and the number of existing listeners.
struct Counting {
    calls: Arc<AtomicUsize>,
    alive: Arc<AtomicUsize>,
}

impl Counting {
    fn new(calls: &Arc<AtomicUsize>, alive: &Arc<AtomicUsize>) -> Box<Self> {
        alive.fetch_add(1, Ordering::SeqCst);
        Box::new(Self { calls: Arc::clone(calls), alive: Arc::clone(alive) })
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl DataReaderListener<Shape> for Counting {
    fn on_data_available(&mut self, reader: &DataReader<Shape>) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        unless_deleted(reader.take(usize::MAX));
    }
}

#[test]
fn close_is_safe_against_concurrent_use_of_a_reader() {
    let domain = domain();
    let join = || on_loopback(domain, Runtime::Shared).build().expect("participant");
    for round in 0..40 {
        let (writer, reader) = (reliable_writer(History::KeepLast(4)), reliable_reader(History::KeepLast(4)));
        let pair = Pair::<Shape>::between(join(), join(), writer, reader);
        let (calls, alive) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _ending = OnDrop(|| {
                is_over.store(true, Ordering::SeqCst);
                // Already closed unless a thread panicked.
                unless_deleted(pair.reader.close());
            });
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
                while unless_deleted(pair.reader.set_listener(Counting::new(&calls, &alive))).is_some()
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
        });
        pair.wait_until("the listeners' end", || alive.load(Ordering::SeqCst) == 0);
        if round % 3 != 2 {
            pair.wait_until("unmatch", || pair.writer.matched_subscriptions().expect("open").is_empty());
        }
    }
}

#[test]
fn endpoints_are_created_and_deleted_on_several_threads() {
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
fn participants_are_closed_while_other_threads_use_them() {
    let domain = domain();
    let stays = on_loopback(domain, Runtime::Shared).build().expect("participant");
    let writer = create_writer::<Shape>(&stays, "Topic", reliable_writer(History::KeepLast(1)));
    for round in 0..20 {
        let leaves = on_loopback(domain, Runtime::Shared).build().expect("participant");
        let reader = create_reader::<Shape>(&leaves, "Topic", reliable_reader(History::KeepAll));
        std::thread::scope(|scope| {
            let _ending = OnDrop(|| _ = unless_deleted(leaves.close()));
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

/// Operation that a thread of the next test repeats.
type Action<'a> = Box<dyn FnMut(usize) + Send + 'a>;

/// Creates an executor that ends with its last job, participant or handle.
fn end_an_executor(domain: u32, round: usize) {
    let brief = Executor::builder("brief").start().expect("a thread");
    if round.is_multiple_of(4) {
        let participant = on_loopback(domain, Runtime::Shared).executor(&brief).build().expect("participant");
        drop(brief);
        participant.close().expect("once");
    } else {
        let job = brief.on_event(real_time::Priority::NORMAL, "brief", || {}).expect("room");
        drop(brief);
        job.trigger();
    }
}

#[test]
fn executors_are_safe_against_concurrent_use() {
    let domain = domain();
    let own = Executor::builder("own").start().expect("a thread");
    let from = on_loopback(domain, Runtime::Shared).build().expect("participant");
    let to = on_loopback(domain, Runtime::Shared).executor(&own).build().expect("participant");
    let properties = [(PRIORITY_PROPERTY, "20"), (BUDGET_PROPERTY, "20000"), (OVERRUN_PROPERTY, "suspend")];
    let writer_qos = reliable_writer(History::KeepLast(4));
    let reader_qos = DataReaderQos { history: History::KeepLast(4), ..reader_with(&properties) };
    let (writer, reader) = connect::<Shape>(&from, &to, "Topic", writer_qos, reader_qos);
    let others = [(); 2].map(|()| Executor::builder("aside").start().expect("a thread"));
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let job = own.on_event(real_time::Priority::new(10), "job", move || {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let job = job.expect("room");
    let (calls, alive) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    reader.set_listener(Counting::new(&calls, &alive)).expect("open");
    let actions: Vec<Action<'_>> = vec![
        Box::new(|round| writer.write(&Shape::new("RED", round as i32)).expect("room")),
        Box::new(|round| {
            reader.run_listener_on([Some(&others[0]), None, Some(&others[1]), Some(&own)][round % 4]).expect("room")
        }),
        Box::new(|round| reader.run_listener_on([Some(&others[1]), Some(&others[0]), None][round % 3]).expect("room")),
        Box::new(|_| reader.set_listener(Counting::new(&calls, &alive)).expect("open")),
        Box::new(|_| reader.resume_listener().expect("open")),
        Box::new(|round| {
            job.set_budget(std::time::Duration::ZERO, round % 2 == 0).expect("a budget");
            job.trigger();
            job.resume();
        }),
        Box::new(|round| {
            // Dropped while it runs, waits, or is woken.
            let reader = reader.clone();
            let task = others[round % 2].spawn(real_time::Priority::new(round as i32 % 64), "task", async move {
                while reader.recv().await.is_ok() {}
            });
            writer.write(&Shape::new("BLUE", round as i32)).expect("room");
            drop(task.expect("room"));
        }),
        Box::new(|round| end_an_executor(domain, round)),
    ];
    std::thread::scope(|scope| {
        for mut action in actions {
            scope.spawn(move || (0..150).for_each(&mut action));
        }
    });
    job.set_budget(takt::Duration::INFINITE, false).expect("a budget");
    job.resume();
    // Nothing was lost: the executor now assigned calls the listener, and jobs run.
    for (round, executor) in [Some(&others[0]), None, Some(&own)].into_iter().enumerate() {
        reader.run_listener_on(executor).expect("room");
        reader.set_listener(Counting::new(&calls, &alive)).expect("open");
        let (called, ran) = (calls.load(Ordering::SeqCst), runs.load(Ordering::SeqCst));
        writer.write(&Shape::new("RED", round as i32)).expect("room");
        wait_until(&[], "a call", || {
            reader.resume_listener().expect("open");
            calls.load(Ordering::SeqCst) > called
        });
        job.trigger();
        wait_until(&[], "a run", || runs.load(Ordering::SeqCst) > ran);
    }
    reader.clear_listener().expect("open");
    wait_until(&[], "the listeners' end", || alive.load(Ordering::SeqCst) == 0);
    assert!(!own.has_ended() && others.iter().all(|executor| !executor.has_ended()));
}
