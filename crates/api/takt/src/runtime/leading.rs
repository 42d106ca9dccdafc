//! Leader/followers: a thread that waits under `Runtime::Shared` receives datagrams itself, in
//! place of the receiving thread.
//!
//! Without a leader, a datagram wakes the receiving thread, which wakes the waiting thread: two
//! context switches. A waiting thread therefore becomes the *leader*. It sleeps on the
//! participants' descriptors, as the receiving thread does. The kernel wakes only one of them: the
//! leader if it sleeps, else the receiving thread
//! ([`WaitSet`](takt_transport::readiness::WaitSet)). The leader takes the lock, receives, and
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
    urgency_min: OnceLock<Urgency>,
    taken: O::Word,
}

impl Leadership {
    pub(crate) fn new() -> Self {
        Self::with_os()
    }

    /// Admits leaders that are at least as urgent as the calling thread.
    pub(crate) fn open(&self) {
        self.urgency_min.get_or_init(Urgency::of_this_thread);
    }

    fn is_open_for(&self, urgency: Urgency) -> bool {
        self.urgency_min.get().is_some_and(|minimum| urgency >= *minimum)
    }
}

impl<O: Os> Leadership<O> {
    /// Creates a slot on any implementation of [`Os`].
    pub(crate) fn with_os() -> Self {
        Self { urgency_min: OnceLock::new(), taken: O::Word::new(0) }
    }

    /// Claims the slot if it is free.
    pub(crate) fn take(&self) -> bool {
        self.taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn release(&self) {
        self.taken.fetch_sub(1, Ordering::Release);
    }
}

/// State that a waiting thread keeps between sleeps.
#[derive(Debug, Default)]
pub(crate) struct LeaderState {
    set: PollSet,
    /// List to sleep on while the thread leads no participant, so that `set` remains registered in
    /// the kernel.
    idle_set: PollSet,
    /// Index of the first descriptor of each participant in the last sleep, followed by the end of
    /// the last participant's.
    first_descriptors: Vec<usize>,
    /// Thread to which `urgency` belongs.
    thread: Option<ThreadToken>,
    urgency: Option<Urgency>,
    /// Participants led in the last sleep, as indexes of engines.
    led: EngineSet,
    /// Participants among `led` whose transports may hold more data.
    unpolled: EngineSet,
    /// A descriptor has woken only this thread, and has not been found unreadable since.
    owes_poll: bool,
}

/// Set of engine indexes, as a bit mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct EngineSet(u64);

impl EngineSet {
    fn has(self, index: usize) -> bool {
        self.0 >> index & 1 != 0
    }

    fn insert(&mut self, index: usize) {
        self.0 |= 1 << index;
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl LeaderState {
    /// Sleeps until the waker is signaled, a datagram is received for one of the engines, or the
    /// deadline passes. May return early. Leads the engines that have no leader. The engines must
    /// not change before [`hand_over`](Self::hand_over).
    pub(crate) fn sleep(
        &mut self,
        engines: &[Arc<Engine>],
        waker: &Waker,
        now: Instant,
        deadline: Option<Instant>,
    ) -> Result<()> {
        self.hand_over(engines)?;
        let leader = Leader::acquire(engines, self.urgency(engines));
        self.led = leader.engine_set;
        if self.led.is_empty() {
            self.idle_set.clear();
            return waker.sleep(&mut self.idle_set, now, deadline);
        }
        self.set.clear();
        self.first_descriptors.clear();
        for (index, engine) in engines.iter().enumerate() {
            self.first_descriptors.push(self.set.len());
            if self.led.has(index) {
                engine.prepare_lead(&mut self.set)?;
            }
        }
        self.first_descriptors.push(self.set.len());
        waker.sleep(&mut self.set, now, deadline)?;
        self.receive(engines, waker)
    }

    /// Receives the datagrams that ended the sleep.
    fn receive(&mut self, engines: &[Arc<Engine>], waker: &Waker) -> Result<()> {
        let ready = self.set.ready_after_sleep();
        self.owes_poll = ready.intersection(self.set.exclusive()).is_any();
        let is_new = self.set.take_is_new();
        for ((index, engine), bounds) in engines.iter().enumerate().zip(self.first_descriptors.windows(2)) {
            if !self.led.has(index) {
                continue;
            }
            if is_new {
                engine.begin_leader_list()?;
            }
            let mut ready = ready.without_first(bounds[0]);
            if !ready.is_any_of(bounds[1] - bounds[0]) {
                continue;
            }
            self.unpolled.insert(index);
            for _ in 0..PASSES_MAX {
                if !engine.lead(ready, clock::now())? {
                    self.unpolled.0 &= !(1 << index);
                    break;
                }
                if waker.is_signaled() {
                    break;
                }
                ready = Ready::ALL;
            }
        }
        Ok(())
    }

    /// Makes the receiving threads poll in place of this thread, if it owes a poll. Call it before
    /// doing anything but waiting for the same engines.
    pub(crate) fn hand_over(&mut self, engines: &[Arc<Engine>]) -> Result<()> {
        if std::mem::take(&mut self.owes_poll) && self.set.is_any_exclusive_ready() {
            self.unpolled = self.led;
        }
        let unpolled = std::mem::take(&mut self.unpolled);
        if unpolled.is_empty() {
            return Ok(());
        }
        let to_poll = engines.iter().enumerate().filter(|(index, _)| unpolled.has(*index));
        // Notify all of them before returning the first error.
        to_poll.map(|(_, engine)| engine.request_poll()).fold(Ok(()), Result::and)
    }

    /// Returns the urgency of the calling thread, if any engine admits leaders. It is determined
    /// once per thread, by up to three system calls.
    fn urgency(&mut self, engines: &[Arc<Engine>]) -> Option<Urgency> {
        if engines.iter().all(|engine| engine.leadership.urgency_min.get().is_none()) {
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
    engine_set: EngineSet,
}

impl<'a> Leader<'a> {
    fn acquire(engines: &'a [Arc<Engine>], urgency: Option<Urgency>) -> Self {
        let mut engine_set = EngineSet::default();
        let Some(urgency) = urgency else { return Self { engines, engine_set } };
        for (index, engine) in engines.iter().enumerate().take(LED_MAX) {
            if engine.leadership.is_open_for(urgency) && engine.leadership.take() {
                engine_set.insert(index);
            }
        }
        Self { engines, engine_set }
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let led = self.engines.iter().enumerate().filter(|(index, _)| self.engine_set.has(*index));
        led.for_each(|(_, engine)| engine.leadership.release());
    }
}
