//! Poll sets, which sleep until a descriptor is readable, and wakers that end such a sleep.

use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use takt_core::Instant;
use takt_transport::TransportError;
use takt_transport::readiness::{self, DESCRIPTORS_MAX, WaitSet};

use super::os::{Event, Flag, Linux, Os};
use crate::Result;

/// A sleep shorter than this found a descriptor that was already readable.
const MOMENT: Duration = Duration::from_micros(5);

/// Set of readable descriptors, as a bit mask of their indexes in the poll set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready(i64);

impl Ready {
    /// Any descriptor may be readable.
    pub(crate) const ALL: Self = Self(-1);

    /// Converts a bit mask; the lowest bit stands for the first descriptor.
    fn of(bits: u64) -> Self {
        Self(bits.cast_signed())
    }

    /// Returns the set without the first `count` descriptors. Sign extension keeps
    /// [`ALL`](Self::ALL) unchanged.
    pub(crate) fn without_first(self, count: usize) -> Self {
        Self(self.0 >> count.min(63))
    }

    /// Returns the descriptors that are also in `mask`.
    pub(crate) fn intersection(self, mask: u64) -> Self {
        Self(self.0 & mask.cast_signed())
    }

    pub(crate) fn is_any(self) -> bool {
        self.0 != 0
    }

    /// Reports whether any of the first `count` descriptors is readable.
    pub(crate) fn is_any_of(self, count: usize) -> bool {
        self.0 & !(-1_i64).checked_shl(count as u32).unwrap_or(0) != 0
    }
}

/// Number of sleeps on the same descriptors after which the list is registered in the kernel, which
/// takes some system calls once.
const SLEEPS_UNTIL_REGISTERED: u32 = 8;

/// Unique identity of a list of descriptors. It detects that descriptor numbers were reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListGeneration(u64);

impl ListGeneration {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Descriptors to sleep on, with the generations of their lists.
#[derive(Debug, Default, PartialEq, Eq)]
struct List {
    descriptors: Vec<RawFd>,
    generations: Vec<ListGeneration>,
}

/// Descriptors to wait for. Refilling it reuses its memory and does not allocate.
#[derive(Debug, Default)]
pub(crate) struct PollSet {
    list: List,
    /// List of the last sleep. `sleeps` counts the consecutive sleeps on it.
    last: List,
    sleeps: u32,
    /// Registration of the last list in the kernel.
    registration: Option<WaitSet>,
    /// See [`take_is_new`](Self::take_is_new).
    is_new: bool,
    /// See [`is_busy`](Self::is_busy).
    busy: bool,
    /// See [`ready`](Self::ready).
    ready: Option<Ready>,
}

impl PollSet {
    pub(crate) fn clear(&mut self) {
        self.list.descriptors.clear();
        self.list.generations.clear();
    }

    pub(crate) fn add(&mut self, descriptor: RawFd) {
        self.list.descriptors.push(descriptor);
    }

    /// Adds the generation of the list that some of the descriptors belong to.
    pub(crate) fn add_generation(&mut self, generation: ListGeneration) {
        self.list.generations.push(generation);
    }

    /// Sleeps until a descriptor is readable or the timeout expires. Returns a bit mask of the
    /// readable ones.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<u64> {
        if self.list != self.last {
            std::mem::swap(&mut self.list, &mut self.last);
            (self.sleeps, self.registration) = (0, None);
        }
        if self.sleeps < SLEEPS_UNTIL_REGISTERED {
            let is_long = self.last.descriptors.len() > DESCRIPTORS_MAX;
            self.sleeps = if is_long { SLEEPS_UNTIL_REGISTERED } else { self.sleeps + 1 };
            if self.sleeps == SLEEPS_UNTIL_REGISTERED {
                // tidy-allow(dropped-cause): without it each sleep passes the list to the kernel.
                self.registration = WaitSet::new(&self.last.descriptors).ok();
                self.is_new = true;
            }
        }
        match &self.registration {
            Some(registration) => registration.wait(timeout),
            None => readiness::wait_each(&self.last.descriptors, timeout),
        }
    }

    /// Reports whether the list was registered in the kernel since the last call. The lists of
    /// other threads are older then.
    pub(crate) fn take_is_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    /// Returns a bit mask of the descriptors whose events wake a single thread.
    pub(crate) fn exclusive(&self) -> u64 {
        self.registration.as_ref().map_or(0, WaitSet::exclusive)
    }

    /// Reports whether one of these descriptors is readable now, or if the kernel returns an error.
    pub(crate) fn is_any_exclusive_ready(&self) -> bool {
        let Some(registration) = &self.registration else { return false };
        registration.wait(Some(Duration::ZERO)).map_or(true, |ready| ready & registration.exclusive() != 0)
    }

    /// Returns the descriptors that were readable at the end of the last sleep; none if there was
    /// no sleep because the waker was already signaled.
    pub(crate) fn ready_after_sleep(&self) -> Ready {
        self.ready.unwrap_or(Ready(0))
    }

    /// Returns the number of descriptors, which is the index of the next one.
    pub(crate) fn len(&self) -> usize {
        self.list.descriptors.len()
    }

    /// Returns the descriptors that were readable at the end of the last sleep.
    pub(crate) fn ready(&self) -> Ready {
        self.ready.unwrap_or(Ready::ALL)
    }

    /// Reports whether the last sleep ended at once because a descriptor was already readable.
    /// Polling before the next sleep then saves system calls; otherwise sleeping at once does.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    /// Records the duration of a sleep.
    pub(crate) fn record_sleep(&mut self, duration: Duration) {
        self.busy = duration < MOMENT;
    }
}

/// Waker of one thread that sleeps on descriptors. Waking costs a system call only while the thread
/// sleeps.
pub(crate) struct Waker<O: Os = Linux> {
    event: O::Event,
    signaled: O::Flag,
    sleeping: O::Flag,
}

impl Waker {
    pub(crate) fn new() -> Result<Self> {
        Self::with_os()
    }
}

impl<O: Os> Waker<O> {
    /// Creates a waker on any implementation of [`Os`].
    pub(crate) fn with_os() -> Result<Self> {
        let event = O::Event::new().map_err(|source| TransportError::new("eventfd", "wake-up", source))?;
        Ok(Self { event, signaled: O::Flag::default(), sleeping: O::Flag::default() })
    }

    /// Ends the current sleep, or the next one.
    pub(crate) fn wake(&self) {
        self.signaled.store(true);
        if self.sleeping.load() {
            let woken = self.event.set();
            debug_assert!(woken.is_ok(), "an open eventfd takes a write of 8 bytes");
        }
    }

    pub(crate) fn is_signaled(&self) -> bool {
        self.signaled.load()
    }

    /// Clears the signal. Call it before checking the condition that is waited for.
    pub(crate) fn reset(&self) {
        // A load is cheaper than a store, and usually there is no signal.
        if self.signaled.load() {
            self.signaled.store(false);
        }
    }

    /// Sleeps until a descriptor of the set is readable, this waker is woken, or `deadline` passes;
    /// `None` waits indefinitely. Returns at once if already signaled, and may return early. Only
    /// one thread may sleep at a time.
    pub(crate) fn sleep(&self, set: &mut PollSet, now: Instant, deadline: Option<Instant>) -> Result<()> {
        let timeout = deadline.map(|deadline| Duration::from_nanos(deadline.0.saturating_sub(now.0)));
        set.ready = None;
        self.sleeping.store(true);
        let result = if self.is_signaled() { None } else { Some(self.event.wait(set, timeout)) };
        self.sleeping.store(false);
        let Some(result) = result else { return Ok(()) };
        let (is_set, ready) = result.map_err(|source| TransportError::new("poll", "descriptors", source))?;
        set.ready = Some(Ready::of(ready));
        // Only a sleep that saw the event resets it. A late event ends the next sleep at once,
        // without effect.
        if is_set {
            self.event.reset().map_err(|source| TransportError::new("read", "wake-up", source))?;
        }
        Ok(())
    }
}

impl<O: Os> fmt::Debug for Waker<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waker").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_before_the_sleep_is_not_lost() {
        let waker = Waker::new().expect("eventfd");
        waker.wake();
        waker.sleep(&mut PollSet::default(), Instant(0), None).expect("poll");
        assert!(waker.is_signaled());
        waker.reset();
        assert!(!waker.is_signaled());
    }

    #[test]
    fn ready_set_is_indexed_by_position() {
        let ready = Ready::of(0b1000);
        assert!(!ready.is_any_of(3) && ready.is_any_of(4) && ready.is_any_of(64) && !ready.is_any_of(0));
        assert!(ready.without_first(3).is_any_of(1) && !ready.without_first(4).is_any_of(64));
        assert!(Ready::ALL.without_first(70).is_any_of(1) && !Ready::ALL.is_any_of(0));
        assert!(Ready::of(1 << 63).without_first(63).is_any_of(1));
    }

    #[test]
    fn sleep_reports_the_readable_descriptors() {
        let waker = Waker::new().expect("eventfd");
        let [quiet, loud] = [(); 2].map(|()| takt_transport::readiness::Waker::new().expect("eventfd"));
        loud.wake().expect("woken");
        let mut set = PollSet::default();
        [&quiet, &loud].into_iter().for_each(|event| set.add(std::os::fd::AsRawFd::as_raw_fd(event)));
        waker.sleep(&mut set, Instant(0), None).expect("poll");
        assert!(!set.ready().is_any_of(1) && set.ready().without_first(1).is_any_of(1));
        set.clear();
        waker.wake();
        waker.sleep(&mut set, Instant(0), None).expect("poll");
        assert_eq!(set.ready(), Ready::ALL, "nobody looked");
    }

    #[test]
    fn descriptor_with_a_reused_number_is_waited_for() {
        let waker = Waker::new().expect("eventfd");
        let event = || takt_transport::readiness::Waker::new().expect("eventfd");
        let mut set = PollSet::default();
        let sleep = |set: &mut PollSet, event: &takt_transport::readiness::Waker, generation, nanos| {
            set.clear();
            set.add_generation(generation);
            set.add(std::os::fd::AsRawFd::as_raw_fd(event));
            waker.sleep(set, Instant(0), Some(Instant(nanos))).expect("poll");
            set.ready().is_any_of(1)
        };
        let (first, generation) = (event(), ListGeneration::new());
        assert!((0..2 * SLEEPS_UNTIL_REGISTERED).all(|_| !sleep(&mut set, &first, generation, 1_000)));
        first.wake().expect("woken");
        assert!(sleep(&mut set, &first, generation, 60_000_000_000));
        drop(first);
        let second = event();
        second.wake().expect("woken");
        assert!(sleep(&mut set, &second, ListGeneration::new(), 60_000_000_000));
    }

    #[test]
    fn more_descriptors_than_mask_bits_are_waited_for() {
        let waker = Waker::new().expect("eventfd");
        let event = || takt_transport::readiness::Waker::new().expect("eventfd");
        for count in [62, 63, 64, 65, 150] {
            let events: Vec<_> = (0..count).map(|_| event()).collect();
            let mut set = PollSet::default();
            let mut sleep = |nanos| {
                set.clear();
                events.iter().for_each(|event| set.add(std::os::fd::AsRawFd::as_raw_fd(event)));
                waker.sleep(&mut set, Instant(0), Some(Instant(nanos))).expect("epoll");
                set.ready()
            };
            assert!(!sleep(1).is_any_of(count), "{count}");
            // Wake after the sleep has begun: the event is consumed and does not end later sleeps.
            Flag::store(&waker.sleeping, true);
            waker.wake();
            waker.reset();
            sleep(60_000_000_000);
            let started = std::time::Instant::now();
            sleep(3_000_000);
            assert!(started.elapsed() >= Duration::from_millis(3), "{count}");
            for last in [count - 1, 7] {
                events[last].wake().expect("woken");
                let ready = sleep(60_000_000_000);
                assert!(ready.without_first(last).is_any_of(1) && !ready.is_any_of(last.min(7)), "{count}: {last}");
                assert!(events[last].reset().expect("reset"));
            }
        }
    }

    #[test]
    fn wake_from_another_thread_ends_the_sleep() {
        let waker = Waker::new().expect("eventfd");
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake());
            let mut set = PollSet::default();
            while !waker.is_signaled() {
                set.clear();
                waker.sleep(&mut set, Instant(0), None).expect("poll");
            }
        });
        assert!(waker.is_signaled());
    }

    #[test]
    fn late_wake_does_not_end_later_sleeps() {
        let waker = Waker::new().expect("eventfd");
        Flag::store(&waker.sleeping, true);
        waker.wake();
        waker.reset();
        waker.sleep(&mut PollSet::default(), Instant(0), None).expect("poll");
        let started = std::time::Instant::now();
        waker.sleep(&mut PollSet::default(), Instant(0), Some(Instant(3_000_000))).expect("poll");
        assert!(started.elapsed() >= Duration::from_millis(3), "the first sleep consumed the event");
    }
}
