//! Model of the operating system with a scheduler controlled by the tests (shuttle). Concurrent
//! code runs in many interleavings, and small cases in all of them. A thread that is never woken is
//! a deadlock, which fails the test.
//!
//! The tested code is the production code, on [`Model`] instead of [`Linux`](super::os::Linux).
//! Atomics are sequentially consistent here; ThreadSanitizer checks memory orderings.

mod leading;
mod shutdown;
mod tests;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shuttle::sync::atomic::{AtomicBool, AtomicU32};
use shuttle::sync::{Condvar, Mutex};

use super::os::{Event, Flag, Os, Word};
use super::poll::PollSet;

/// Number of random interleavings.
const RANDOM: usize = 3_000;
/// Maximum number of interleavings in exhaustive tests.
const ALL: usize = 50_000;

/// Runs `test` in many interleavings.
fn in_any_order(test: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(test, RANDOM);
    shuttle::check_pct(test, RANDOM, 3);
}

/// Runs a small `test` in all interleavings, but at most [`ALL`].
fn in_every_order(test: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_dfs(test, Some(ALL));
    in_any_order(test);
}

/// Operating system of one process, whose kernel is a lock and a queue.
#[derive(Debug)]
struct Model;

impl Os for Model {
    type Word = ModelWord;
    type Flag = ModelFlag;
    type Event = ModelEvent;

    fn thread_id() -> u32 {
        let id = usize::from(shuttle::current::me());
        u32::try_from(id).expect("tests have few threads") + 1
    }
}

/// Kernel state of a futex.
#[derive(Default)]
struct Sleepers {
    /// Number of times that all sleepers were woken.
    wakes: u64,
    /// Threads that wait for ownership, in order.
    owners_to_be: VecDeque<u32>,
}

struct ModelWord {
    value: AtomicU32,
    kernel: Mutex<Sleepers>,
    changed: Condvar,
}

impl ModelWord {
    fn kernel(&self) -> shuttle::sync::MutexGuard<'_, Sleepers> {
        self.kernel.lock().expect("no thread panics inside")
    }
}

impl Word for ModelWord {
    const WAITERS: u32 = 1 << 31;

    fn new(value: u32) -> Self {
        Self { value: AtomicU32::new(value), kernel: Mutex::default(), changed: Condvar::new() }
    }

    fn load(&self, order: Ordering) -> u32 {
        self.value.load(order)
    }

    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.value.fetch_add(value, order)
    }

    fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
        self.value.fetch_sub(value, order)
    }

    fn compare_exchange(&self, current: u32, new: u32, success: Ordering, failure: Ordering) -> Result<u32, u32> {
        self.value.compare_exchange(current, new, success, failure)
    }

    /// Accepts no timeout: a thread that is not woken sleeps forever.
    fn wait(&self, value: u32, timeout: Option<Duration>) {
        assert_eq!(timeout, None, "nothing here is to depend on time");
        let mut kernel = self.kernel();
        if self.value.load(Ordering::SeqCst) != value {
            return;
        }
        let before = kernel.wakes;
        while kernel.wakes == before {
            kernel = self.changed.wait(kernel).expect("no thread panics inside");
        }
    }

    fn wake_all(&self) {
        self.kernel().wakes += 1;
        self.changed.notify_all();
    }

    fn lock_pi(&self) -> io::Result<()> {
        let me = Model::thread_id();
        let mut kernel = self.kernel();
        loop {
            let word = self.value.load(Ordering::SeqCst);
            let (new, is_free) = if word == 0 { (me, true) } else { (word | Self::WAITERS, false) };
            if self.value.compare_exchange(word, new, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                if is_free {
                    return Ok(());
                }
                break;
            }
        }
        kernel.owners_to_be.push_back(me);
        while self.value.load(Ordering::SeqCst) & !Self::WAITERS != me {
            kernel = self.changed.wait(kernel).expect("no thread panics inside");
        }
        Ok(())
    }

    fn unlock_pi(&self) -> io::Result<()> {
        let mut kernel = self.kernel();
        if self.value.load(Ordering::SeqCst) & !Self::WAITERS != Model::thread_id() {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        let next = kernel.owners_to_be.pop_front().map_or(0, |next| next | Self::WAITERS);
        self.value.store(next, Ordering::SeqCst);
        self.changed.notify_all();
        Ok(())
    }
}

#[derive(Default)]
struct ModelFlag(AtomicBool);

impl Flag for ModelFlag {
    fn load(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn store(&self, value: bool) {
        self.0.store(value, Ordering::SeqCst);
    }
}

struct ModelEvent {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Event for ModelEvent {
    fn new() -> io::Result<Self> {
        Ok(Self { is_set: Mutex::new(false), changed: Condvar::new() })
    }

    fn set(&self) -> io::Result<()> {
        *self.is_set.lock().expect("no thread panics inside") = true;
        self.changed.notify_all();
        Ok(())
    }

    fn reset(&self) -> io::Result<()> {
        *self.is_set.lock().expect("no thread panics inside") = false;
        Ok(())
    }

    fn wait(&self, _: &mut PollSet, timeout: Option<Duration>) -> io::Result<(bool, u64)> {
        assert_eq!(timeout, None, "nothing here is to depend on time");
        let mut is_set = self.is_set.lock().expect("no thread panics inside");
        while !*is_set {
            is_set = self.changed.wait(is_set).expect("no thread panics inside");
        }
        Ok((true, 0))
    }
}
