//! Leader/followers: a thread that waits under `Runtime::Shared` receives datagrams itself, in
//! place of the receiving thread.
//!
//! Without a leader, a datagram wakes the receiving thread, which wakes the waiting thread: two
//! context switches. A waiting thread therefore becomes the *leader*. It sleeps on the
//! participants' descriptors, as the receiving thread does. The kernel wakes only one of them: the
//! leader if it sleeps, else the receiving thread
//! ([`Standing`](takt_transport::readiness::Standing)). The leader takes the lock, receives, and
//! finds its condition true. Timers and listener calls remain with the receiving thread.
//!
//! Invariant: a leader that was woken *owes* a poll. Before it sleeps elsewhere or returns, it has
//! either found the descriptors unreadable and the transports empty, or made the receiving thread
//! poll all of them.
//!
//! A participant has at most one leader. It has none if its executor orders jobs by priority: with
//! an [`Executor`](crate::Executor), with thread settings for the receiving thread, or with receive
//! ports for urgent flows. A thread less urgent than the receiving thread does not lead.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use takt_core::Instant;

use super::clock;
use super::engine::Engine;
use super::os::{Linux, Os, Urgency, Word};
use super::poll::{PollSet, Ready, Waker};
use super::thread_cell::ThreadToken;
use crate::Result;

/// Maximum number of passes over one participant between two sleeps. The receiving thread handles
/// the rest.
const PASSES_MAX: u32 = 32;

/// Maximum number of participants that one thread leads.
const LED_MAX: usize = 64;

/// Leader slot of a participant.
pub(crate) struct Leadership<O: Os = Linux> {
    /// Minimum urgency of a leader. No thread leads before it is set.
    least: OnceLock<Urgency>,
    taken: O::Word,
}

impl Leadership {
    pub(crate) fn new() -> Self {
        Self::on()
    }

    /// Admits leaders that are at least as urgent as the calling thread.
    pub(crate) fn open(&self) {
        self.least.get_or_init(Urgency::of_this_thread);
    }

    fn is_open_for(&self, urgency: Urgency) -> bool {
        self.least.get().is_some_and(|least| urgency >= *least)
    }
}

impl<O: Os> Leadership<O> {
    /// Creates a slot on any implementation of [`Os`].
    pub(crate) fn on() -> Self {
        Self { least: OnceLock::new(), taken: O::Word::new(0) }
    }

    /// Claims the slot if it is free.
    pub(crate) fn take(&self) -> bool {
        self.taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::Release);
    }
}

/// State that a waiting thread keeps between sleeps.
#[derive(Debug, Default)]
pub(crate) struct Leading {
    set: PollSet,
    /// List to sleep on while the thread leads no participant, so that `set` remains registered in
    /// the kernel.
    apart: PollSet,
    /// Index of the first descriptor of each participant in the last sleep, followed by the end of
    /// the last participant's.
    places: Vec<usize>,
    /// Thread to which `urgency` belongs.
    thread: Option<ThreadToken>,
    urgency: Option<Urgency>,
    /// Participants led in the last sleep, as indexes of engines.
    led: Places,
    /// Participants among `led` whose transports may hold more data.
    owing: Places,
    /// A descriptor has woken only this thread, and has not been found unreadable since.
    owes_poll: bool,
}

/// Set of engine indexes, as a bit mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Places(u64);

impl Places {
    fn has(self, place: usize) -> bool {
        self.0 >> place & 1 != 0
    }

    fn insert(&mut self, place: usize) {
        self.0 |= 1 << place;
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Leading {
    /// Sleeps until the waker is signaled, a datagram is received for one of the engines, or the
    /// deadline passes. May return early. Leads the engines that have no leader. The engines must
    /// not change before [`settle`](Self::settle).
    pub(crate) fn sleep(
        &mut self,
        engines: &[Arc<Engine>],
        waker: &Waker,
        now: Instant,
        deadline: Option<Instant>,
    ) -> Result<()> {
        self.settle(engines)?;
        let leader = Leader::of(engines, self.urgency(engines));
        self.led = leader.places;
        if self.led.is_empty() {
            self.apart.clear();
            return waker.sleep(&mut self.apart, now, deadline);
        }
        self.set.clear();
        self.places.clear();
        for (place, engine) in engines.iter().enumerate() {
            self.places.push(self.set.len());
            if self.led.has(place) {
                engine.prepare_lead(&mut self.set)?;
            }
        }
        self.places.push(self.set.len());
        waker.sleep(&mut self.set, now, deadline)?;
        self.receive(engines, waker)
    }

    /// Receives the datagrams that ended the sleep.
    fn receive(&mut self, engines: &[Arc<Engine>], waker: &Waker) -> Result<()> {
        let ready = self.set.ready_after_sleep();
        self.owes_poll = ready.among(self.set.exclusive()).is_any();
        let is_new = self.set.take_is_new();
        for ((place, engine), bounds) in engines.iter().enumerate().zip(self.places.windows(2)) {
            if !self.led.has(place) {
                continue;
            }
            if is_new {
                engine.begin_leader_list()?;
            }
            let mut ready = ready.behind(bounds[0]);
            if !ready.is_any_of(bounds[1] - bounds[0]) {
                continue;
            }
            self.owing.insert(place);
            for _ in 0..PASSES_MAX {
                if !engine.lead(ready, clock::now())? {
                    self.owing.0 &= !(1 << place);
                    break;
                }
                if waker.is_signalled() {
                    break;
                }
                ready = Ready::ALL;
            }
        }
        Ok(())
    }

    /// Makes the receiving threads poll what this thread owes. Call it before doing anything but
    /// waiting for the same engines.
    pub(crate) fn settle(&mut self, engines: &[Arc<Engine>]) -> Result<()> {
        if std::mem::take(&mut self.owes_poll) && self.set.is_any_exclusive_ready() {
            self.owing = self.led;
        }
        let owing = std::mem::take(&mut self.owing);
        if owing.is_empty() {
            return Ok(());
        }
        let owed = engines.iter().enumerate().filter(|(place, _)| owing.has(*place));
        // Notify all of them before returning the first error.
        owed.map(|(_, engine)| engine.leave_behind()).fold(Ok(()), Result::and)
    }

    /// Returns the urgency of the calling thread, if any engine admits leaders. It is determined
    /// once per thread, by up to three system calls.
    fn urgency(&mut self, engines: &[Arc<Engine>]) -> Option<Urgency> {
        if engines.iter().all(|engine| engine.leadership.least.get().is_none()) {
            return None;
        }
        let thread = ThreadToken::current();
        if self.thread != Some(thread) {
            (self.thread, self.urgency) = (Some(thread), Some(Urgency::of_this_thread()));
        }
        self.urgency
    }
}

/// Guard during which the calling thread leads some of the engines.
struct Leader<'a> {
    engines: &'a [Arc<Engine>],
    places: Places,
}

impl<'a> Leader<'a> {
    fn of(engines: &'a [Arc<Engine>], urgency: Option<Urgency>) -> Self {
        let mut places = Places::default();
        let Some(urgency) = urgency else { return Self { engines, places } };
        for (place, engine) in engines.iter().enumerate().take(LED_MAX) {
            if engine.leadership.is_open_for(urgency) && engine.leadership.take() {
                places.insert(place);
            }
        }
        Self { engines, places }
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let led = self.engines.iter().enumerate().filter(|(place, _)| self.places.has(*place));
        led.for_each(|(_, engine)| engine.leadership.give_back());
    }
}
