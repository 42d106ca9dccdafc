//! Sleeping until a descriptor is readable, and waking such a sleep from elsewhere.

use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use takt_core::Instant;
use takt_transport::TransportError;
use takt_transport::readiness::{self, NAMED_MAX, Standing};

use super::os::{Event, Flag, Linux, Os};
use crate::Result;

/// A sleep shorter than this found something that was there before.
const MOMENT: Duration = Duration::from_micros(5);

/// Which descriptors are readable, by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready(i64);

impl Ready {
    /// Any of them may be.
    pub(crate) const ALL: Self = Self(-1);

    /// A bit for each, the first one's is the lowest.
    fn of(bits: u64) -> Self {
        Self(bits.cast_signed())
    }

    /// Without so many at the beginning. What is beyond the last bit is like that, so that all stay all.
    pub(crate) fn behind(self, count: usize) -> Self {
        Self(self.0 >> count.min(63))
    }

    /// Those of these that are in a mask.
    pub(crate) fn among(self, mask: u64) -> Self {
        Self(self.0 & mask.cast_signed())
    }

    pub(crate) fn is_any(self) -> bool {
        self.0 != 0
    }

    /// Whether any of so many at the beginning is.
    pub(crate) fn is_any_of(self, count: usize) -> bool {
        self.0 & !(-1_i64).checked_shl(count as u32).unwrap_or(0) != 0
    }
}

/// Sleeps on the same descriptors after which the kernel is given the list to keep: some system calls, once.
const SLEEPS_UNTIL_KEPT: u32 = 8;

/// Says of descriptors that they are what they were, though their numbers may be used again: no two are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edition(u64);

impl Edition {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What a sleep is on.
#[derive(Debug, Default, PartialEq, Eq)]
struct List {
    descriptors: Vec<RawFd>,
    editions: Vec<Edition>,
}

/// Descriptors to wait for. Keeps its memory, so that filling it again does not allocate.
#[derive(Debug, Default)]
pub(crate) struct PollSet {
    list: List,
    /// That of the last sleep, and how often it was the same.
    last: List,
    sleeps: u32,
    /// The last list, where the kernel keeps it.
    standing: Option<Standing>,
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
        self.list.editions.clear();
    }

    pub(crate) fn add(&mut self, descriptor: RawFd) {
        self.list.descriptors.push(descriptor);
    }

    /// Some of the descriptors are of this edition.
    pub(crate) fn add_edition(&mut self, edition: Edition) {
        self.list.editions.push(edition);
    }

    /// Sleeps until one of them is readable, or the timeout is over; which are, a bit for each.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<u64> {
        if self.list != self.last {
            std::mem::swap(&mut self.list, &mut self.last);
            (self.sleeps, self.standing) = (0, None);
        }
        if self.sleeps < SLEEPS_UNTIL_KEPT {
            let is_long = self.last.descriptors.len() > NAMED_MAX;
            self.sleeps = if is_long { SLEEPS_UNTIL_KEPT } else { self.sleeps + 1 };
            if self.sleeps == SLEEPS_UNTIL_KEPT {
                // tidy-allow(dropped-cause): a kernel that refuses is told each time.
                self.standing = Standing::new(&self.last.descriptors).ok();
                self.is_new = true;
            }
        }
        match &self.standing {
            Some(standing) => standing.wait(timeout),
            None => readiness::wait_each(&self.last.descriptors, timeout),
        }
    }

    /// Whether the kernel was given the list since the last call of this: the lists of other threads are older then.
    pub(crate) fn take_is_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    /// The descriptors whose events end the sleep of one thread alone: a mask of their places.
    pub(crate) fn exclusive(&self) -> u64 {
        self.standing.as_ref().map_or(0, Standing::exclusive)
    }

    /// Whether one of those is readable now. Without an answer of the kernel it may be.
    pub(crate) fn is_any_exclusive_ready(&self) -> bool {
        let Some(standing) = &self.standing else { return false };
        standing.wait(Some(Duration::ZERO)).map_or(true, |ready| ready & standing.exclusive() != 0)
    }

    /// Which were readable at the end of the last sleep; none if there was none, since the waker was signalled before.
    pub(crate) fn ready_after_sleep(&self) -> Ready {
        self.ready.unwrap_or(Ready(0))
    }

    /// How many there are: the place of the next one.
    pub(crate) fn len(&self) -> usize {
        self.list.descriptors.len()
    }

    /// Which were readable at the end of the last sleep.
    pub(crate) fn ready(&self) -> Ready {
        self.ready.unwrap_or(Ready::ALL)
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
pub(crate) struct Waker<O: Os = Linux> {
    event: O::Event,
    signalled: O::Flag,
    sleeping: O::Flag,
}

impl Waker {
    pub(crate) fn new() -> Result<Self> {
        Self::on()
    }
}

impl<O: Os> Waker<O> {
    /// One of an operating system of the caller's choice.
    pub(crate) fn on() -> Result<Self> {
        let event = O::Event::new().map_err(|source| TransportError::new("eventfd", "wake-up", source))?;
        Ok(Self { event, signalled: O::Flag::default(), sleeping: O::Flag::default() })
    }

    /// Makes the sleeper look again, now or before it next sleeps.
    pub(crate) fn wake(&self) {
        self.signalled.store(true);
        if self.sleeping.load() {
            let woken = self.event.set();
            debug_assert!(woken.is_ok(), "an open eventfd takes a write of 8 bytes");
        }
    }

    pub(crate) fn is_signalled(&self) -> bool {
        self.signalled.load()
    }

    /// Forgets the signal; call it before looking at what is waited for.
    pub(crate) fn reset(&self) {
        // Looking is cheaper than writing, and mostly there is none.
        if self.signalled.load() {
            self.signalled.store(false);
        }
    }

    /// Sleeps until a descriptor of the set is readable, this waker is woken, or `deadline` has come (`None`: it
    /// never comes). Returns at once if already signalled, and may return early. One sleeper at a time.
    pub(crate) fn sleep(&self, set: &mut PollSet, now: Instant, deadline: Option<Instant>) -> Result<()> {
        let timeout = deadline.map(|deadline| Duration::from_nanos(deadline.0.saturating_sub(now.0)));
        set.ready = None;
        self.sleeping.store(true);
        let result = if self.is_signalled() { None } else { Some(self.event.wait(set, timeout)) };
        self.sleeping.store(false);
        let Some(result) = result else { return Ok(()) };
        let (is_set, ready) = result.map_err(|source| TransportError::new("poll", "descriptors", source))?;
        set.ready = Some(Ready::of(ready));
        // Only a sleep that saw the event resets it. A late one makes the next sleep end at once, for nothing.
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
    fn a_wake_before_the_sleep_is_not_lost() {
        let waker = Waker::new().expect("eventfd");
        waker.wake();
        waker.sleep(&mut PollSet::default(), Instant(0), None).expect("poll");
        assert!(waker.is_signalled());
        waker.reset();
        assert!(!waker.is_signalled());
    }

    #[test]
    fn who_is_ready_goes_by_place() {
        let ready = Ready::of(0b1000);
        assert!(!ready.is_any_of(3) && ready.is_any_of(4) && ready.is_any_of(64) && !ready.is_any_of(0));
        assert!(ready.behind(3).is_any_of(1) && !ready.behind(4).is_any_of(64));
        assert!(Ready::ALL.behind(70).is_any_of(1) && !Ready::ALL.is_any_of(0));
        assert!(Ready::of(1 << 63).behind(63).is_any_of(1));
    }

    #[test]
    fn a_sleep_says_which_descriptors_ended_it() {
        let waker = Waker::new().expect("eventfd");
        let [quiet, loud] = [(); 2].map(|()| takt_transport::readiness::Waker::new().expect("eventfd"));
        loud.wake().expect("woken");
        let mut set = PollSet::default();
        [&quiet, &loud].into_iter().for_each(|event| set.add(std::os::fd::AsRawFd::as_raw_fd(event)));
        waker.sleep(&mut set, Instant(0), None).expect("poll");
        assert!(!set.ready().is_any_of(1) && set.ready().behind(1).is_any_of(1));
        set.clear();
        waker.wake();
        waker.sleep(&mut set, Instant(0), None).expect("poll");
        assert_eq!(set.ready(), Ready::ALL, "nobody looked");
    }

    #[test]
    fn a_descriptor_that_takes_the_number_of_another_is_waited_for() {
        let waker = Waker::new().expect("eventfd");
        let event = || takt_transport::readiness::Waker::new().expect("eventfd");
        let mut set = PollSet::default();
        let sleep = |set: &mut PollSet, event: &takt_transport::readiness::Waker, edition, nanos| {
            set.clear();
            set.add_edition(edition);
            set.add(std::os::fd::AsRawFd::as_raw_fd(event));
            waker.sleep(set, Instant(0), Some(Instant(nanos))).expect("poll");
            set.ready().is_any_of(1)
        };
        let (first, edition) = (event(), Edition::new());
        assert!((0..2 * SLEEPS_UNTIL_KEPT).all(|_| !sleep(&mut set, &first, edition, 1_000)));
        first.wake().expect("woken");
        assert!(sleep(&mut set, &first, edition, 60_000_000_000));
        drop(first);
        let second = event();
        second.wake().expect("woken");
        assert!(sleep(&mut set, &second, Edition::new(), 60_000_000_000));
    }

    #[test]
    fn more_descriptors_than_bits_are_waited_for() {
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
            // Wakes while the sleep has begun: the event is seen, and does not end later sleeps.
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
                assert!(ready.behind(last).is_any_of(1) && !ready.is_any_of(last.min(7)), "{count}: {last}");
                assert!(events[last].reset().expect("reset"));
            }
        }
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
        Flag::store(&waker.sleeping, true);
        waker.wake();
        waker.reset();
        waker.sleep(&mut PollSet::default(), Instant(0), None).expect("poll");
        let started = std::time::Instant::now();
        waker.sleep(&mut PollSet::default(), Instant(0), Some(Instant(3_000_000))).expect("poll");
        assert!(started.elapsed() >= Duration::from_millis(3), "the first sleep consumed the event");
    }
}
