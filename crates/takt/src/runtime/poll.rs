//! Sleeping until a descriptor is readable, and waking such a sleep from elsewhere.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use takt_core::Instant;
use takt_transport::{TransportError, readiness};

use crate::Result;

/// A sleep shorter than this found something that was there before.
const MOMENT: Duration = Duration::from_micros(5);

/// Descriptors to wait for. Keeps its memory, so that filling it again does not allocate.
#[derive(Debug, Default)]
pub(crate) struct PollSet {
    descriptors: Vec<RawFd>,
    /// See [`is_busy`](Self::is_busy).
    busy: bool,
}

impl PollSet {
    pub(crate) fn clear(&mut self) {
        self.descriptors.clear();
    }

    pub(crate) fn add(&mut self, descriptor: RawFd) {
        self.descriptors.push(descriptor);
    }

    /// Whether the last sleep was none, since something was readable already: then it saves system calls to look
    /// before sleeping again. Otherwise it saves them to sleep at once.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Says how long a sleep took.
    pub(crate) fn slept(&mut self, duration: Duration) {
        self.busy = duration < MOMENT;
    }
}

/// Lets one thread sleep on descriptors until another one wakes it. Waking costs a system call only while
/// somebody sleeps.
#[derive(Debug)]
pub(crate) struct Waker {
    event: readiness::Waker,
    signalled: AtomicBool,
    sleeping: AtomicBool,
    /// The event was made readable and not read since.
    written: AtomicBool,
}

impl Waker {
    pub(crate) fn new() -> Result<Self> {
        let event = readiness::Waker::new().map_err(|source| TransportError::new("eventfd", "wake-up", source))?;
        Ok(Self {
            event,
            signalled: AtomicBool::new(false),
            sleeping: AtomicBool::new(false),
            written: AtomicBool::new(false),
        })
    }

    /// Makes the sleeper look again, now or before it next sleeps.
    pub(crate) fn wake(&self) {
        self.signalled.store(true, Ordering::SeqCst);
        if self.sleeping.load(Ordering::SeqCst) {
            let woken = self.event.wake();
            debug_assert!(woken.is_ok(), "an open eventfd takes a write of 8 bytes");
            // After the write: a sleeper that misses it only wakes once more for nothing.
            self.written.store(true, Ordering::SeqCst);
        }
    }

    pub(crate) fn is_signalled(&self) -> bool {
        self.signalled.load(Ordering::SeqCst)
    }

    /// Forgets the signal; call it before looking at what is waited for.
    pub(crate) fn reset(&self) {
        self.signalled.store(false, Ordering::SeqCst);
    }

    /// Sleeps until a descriptor of the set is readable, this waker is woken, or `deadline` has come (`None`: it
    /// never comes). Returns at once if already signalled, and may return early. One sleeper at a time.
    pub(crate) fn sleep(&self, set: &mut PollSet, now: Instant, deadline: Option<Instant>) -> Result<()> {
        let timeout = deadline.map(|deadline| Duration::from_nanos(deadline.0.saturating_sub(now.0)));
        self.sleeping.store(true, Ordering::SeqCst);
        let result = if self.is_signalled() {
            Ok(false)
        } else {
            set.add(self.event.as_raw_fd());
            readiness::wait(&set.descriptors, timeout)
        };
        self.sleeping.store(false, Ordering::SeqCst);
        if self.written.swap(false, Ordering::SeqCst) {
            self.event.reset().map_err(|source| TransportError::new("read", "wake-up", source))?;
        }
        result.map_err(|source| TransportError::new("poll", "descriptors", source))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_before_the_sleep_is_not_lost() {
        let waker = Waker::new().expect("eventfd");
        waker.wake();
        waker.sleep(&mut PollSet::default(), Instant(0), None).expect("poll");
        assert!(waker.is_signalled());
        waker.reset();
        assert!(!waker.is_signalled());
    }

    #[test]
    fn a_wake_from_another_thread_ends_the_sleep() {
        let waker = Waker::new().expect("eventfd");
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake());
            let mut set = PollSet::default();
            while !waker.is_signalled() {
                set.clear();
                waker.sleep(&mut set, Instant(0), None).expect("poll");
            }
        });
        assert!(waker.is_signalled());
    }

    #[test]
    fn a_wake_that_came_late_does_not_end_later_sleeps() {
        let waker = Waker::new().expect("eventfd");
        waker.sleeping.store(true, Ordering::SeqCst);
        waker.wake();
        waker.reset();
        waker.sleep(&mut PollSet::default(), Instant(0), None).expect("poll");
        let started = std::time::Instant::now();
        waker.sleep(&mut PollSet::default(), Instant(0), Some(Instant(3_000_000))).expect("poll");
        assert!(started.elapsed() >= Duration::from_millis(3), "the first sleep consumed the event");
    }
}
