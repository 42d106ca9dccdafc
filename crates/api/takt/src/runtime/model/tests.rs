//! Model tests of lock, event count, waker and tasks: mutual exclusion, and no lost wakeup.

use std::sync::atomic::Ordering;
use std::task::{Wake, Waker as TaskWaker};

use shuttle::sync::atomic::AtomicU32;
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;
use takt_core::Instant;

use super::{Model, ModelEvent, ModelWord, in_any_order, in_every_order};
use crate::runtime::event_count::EventCount;
use crate::runtime::os::{Event, Word};
use crate::runtime::pi_mutex::{LockError, PiMutex};
use crate::runtime::poll::{PollSet, Waker};
use crate::runtime::tasks::Tasks;

fn visit(mutex: &PiMutex<u32, Model>, inside: &AtomicU32) {
    let mut guard = mutex.lock().expect("this thread is not inside");
    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "one thread at a time");
    let before = *guard;
    thread::yield_now();
    *guard = before + 1;
    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
}

fn visits(threads: u32, each: u32) {
    let shared = Arc::new((PiMutex::<u32, Model>::with_os(0), AtomicU32::new(0)));
    let threads: Vec<_> = (0..threads)
        .map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || (0..each).for_each(|_| visit(&shared.0, &shared.1)))
        })
        .collect();
    let all = threads.len() as u32 * each;
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(*shared.0.lock().expect("free"), all);
}

#[test]
fn lock_is_held_by_one_thread_at_a_time() {
    in_every_order(|| visits(2, 1));
    in_any_order(|| visits(4, 2));
}

#[test]
fn relocking_is_an_error_while_others_wait() {
    in_every_order(|| {
        let mutex = Arc::new(PiMutex::<u32, Model>::with_os(0));
        let guard = mutex.lock().expect("free");
        let other = {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || *mutex.lock().expect("this thread is not inside"))
        };
        thread::yield_now();
        assert_eq!(mutex.lock().err(), Some(LockError::Reentered));
        drop(guard);
        assert_eq!(other.join().expect("no panic"), 0);
    });
}

#[test]
fn event_wakes_all_waiters() {
    fn run(waiters: u32, events: u32) {
        let shared = Arc::new((EventCount::<Model>::with_os(), AtomicU32::new(0)));
        let waiters: Vec<_> = (0..waiters)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    loop {
                        let ticket = shared.0.ticket();
                        if shared.1.load(Ordering::SeqCst) == events {
                            break;
                        }
                        shared.0.wait(ticket, Instant(0), None);
                    }
                })
            })
            .collect();
        for _ in 0..events {
            shared.1.fetch_add(1, Ordering::SeqCst);
            shared.0.notify();
        }
        waiters.into_iter().for_each(|waiter| waiter.join().expect("no panic"));
    }
    in_every_order(|| run(1, 1));
    in_any_order(|| run(3, 2));
}

#[test]
fn sleeper_sees_every_cause_of_its_wakeups() {
    fn run(wakers: u32) {
        let shared = Arc::new((Waker::<Model>::with_os().expect("a model"), AtomicU32::new(0)));
        let threads: Vec<_> = (0..wakers)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.1.fetch_add(1, Ordering::SeqCst);
                    shared.0.wake();
                })
            })
            .collect();
        loop {
            shared.0.reset();
            if shared.1.load(Ordering::SeqCst) == wakers {
                break;
            }
            shared.0.sleep(&mut PollSet::default(), Instant(0), None).expect("a model");
        }
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    }
    in_every_order(|| run(1));
    in_any_order(|| run(3));
}

/// Executor of one task: sleeps until the task is woken.
struct Executor(ModelEvent);

impl Wake for Executor {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.set().expect("a model");
    }
}

#[test]
fn tasks_are_woken_for_samples_that_arrive_after_their_poll() {
    /// Samples not taken yet, and the tasks that wait for one.
    type Shared = PiMutex<(u32, Tasks), Model>;

    fn take(shared: &Shared) {
        let executor = std::sync::Arc::new(Executor(ModelEvent::new().expect("a model")));
        let waker = TaskWaker::from(std::sync::Arc::clone(&executor));
        let mut key = None;
        loop {
            let mut state = shared.lock().expect("this thread is not inside");
            if state.0 > 0 {
                state.0 -= 1;
                return;
            }
            let former = state.1.insert(&mut key, &waker);
            drop(state);
            drop(former);
            executor.0.wait(&mut PollSet::default(), None).expect("a model");
            executor.0.reset().expect("a model");
        }
    }

    fn run(takers: u32) {
        let shared = Arc::new(Shared::with_os((0, Tasks::default())));
        let threads: Vec<_> = (0..takers)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || take(&shared))
            })
            .collect();
        for _ in 0..takers {
            let mut woken = Vec::new();
            let mut state = shared.lock().expect("this thread is not inside");
            state.0 += 1;
            state.1.drain_into(&mut woken);
            drop(state);
            woken.into_iter().for_each(TaskWaker::wake);
        }
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(shared.lock().expect("free").0, 0);
    }
    in_every_order(|| run(1));
    in_any_order(|| run(3));
}

/// Verifies the model: an event count that checks for waiters before it counts loses a wakeup.
#[test]
fn model_detects_a_lost_wakeup() {
    let broken = || {
        let shared = Arc::new((ModelWord::new(0), ModelWord::new(0), Mutex::new(false)));
        let waiter = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (count, waiters, done) = &*shared;
                let ticket = count.load(Ordering::SeqCst);
                if !*done.lock().expect("no panic") {
                    waiters.fetch_add(1, Ordering::SeqCst);
                    count.wait(ticket, None);
                }
            })
        };
        let (count, waiters, done) = &*shared;
        *done.lock().expect("no panic") = true;
        let somebody_waits = waiters.load(Ordering::SeqCst) > 0;
        count.fetch_add(1, Ordering::SeqCst);
        if somebody_waits {
            count.wake_all();
        }
        waiter.join().expect("no panic");
    };
    let found = std::panic::catch_unwind(|| in_every_order(broken));
    assert!(found.is_err(), "in one of the orders a waiter sleeps forever");
}
