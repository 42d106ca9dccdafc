//! Leader and followers: a thread that waits under `Runtime::Shared` receives itself, in place of the receiving thread.
//!
//! What arrives while a thread waits would wake the receiving thread, which would wake the waiting one: two changes of threads. So a
//! waiting thread *leads*: it sleeps on the participants' descriptors beside the receiving thread, and the kernel wakes one of them
//! alone, the leader if it sleeps, else the receiving thread ([`Standing`](takt_transport::readiness::Standing)). The leader takes the
//! lock, receives, and sees its condition true. Timers and calls of listeners stay with the receiving thread.
//!
//! Invariant: a leader that was woken *owes* a look. Before it sleeps elsewhere or returns, it has found the descriptors unreadable and the
//! transports empty, or it has told the receiving thread to look at them all.
//!
//! One thread leads a participant at a time. None does where the executor decides what is urgent: with an [`Executor`](crate::Executor), with
//! settings for the receiving thread, with ports of urgent flows; and none with less urgency than the receiving thread.

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

/// Passes over one participant between two sleeps. What is left is for the receiving thread.
const PASSES_MAX: u32 = 32;

/// Participants that one thread leads at once.
const LED_MAX: usize = 64;

/// The place of the thread that leads a participant.
pub(crate) struct Leadership<O: Os = Linux> {
    /// What a leader must at least have; none leads before it is set.
    least: OnceLock<Urgency>,
    taken: O::Word,
}

impl Leadership {
    pub(crate) fn new() -> Self {
        Self::on()
    }

    /// Threads that are as urgent as the calling one may lead from now on.
    pub(crate) fn open(&self) {
        self.least.get_or_init(Urgency::of_this_thread);
    }

    fn is_open_for(&self, urgency: Urgency) -> bool {
        self.least.get().is_some_and(|least| urgency >= *least)
    }
}

impl<O: Os> Leadership<O> {
    /// One of an operating system of the caller's choice.
    pub(crate) fn on() -> Self {
        Self { least: OnceLock::new(), taken: O::Word::new(0) }
    }

    /// Takes the place, if it is free.
    pub(crate) fn take(&self) -> bool {
        self.taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::Release);
    }
}

/// What a thread that waits keeps from one sleep to the next.
#[derive(Debug, Default)]
pub(crate) struct Leading {
    set: PollSet,
    /// What it sleeps on while it leads nothing, so that `set` stays as the kernel has it.
    apart: PollSet,
    /// Where the descriptors of each participant begin among those that were slept on last, and where those of the last one end.
    places: Vec<usize>,
    /// Whose urgency it is that follows.
    thread: Option<ThreadToken>,
    urgency: Option<Urgency>,
    /// Participants that it led in the last sleep, by their places among the engines.
    led: Places,
    /// Of these, those that may have more in their transports.
    owing: Places,
    /// A descriptor has woken this thread alone, and was not found unreadable since.
    owes_look: bool,
}

/// Some of the engines, a bit for each.
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
    /// Sleeps until the waker is signalled, something was received for one of the engines, or the deadline has come. May return early.
    /// Leads those of the engines that have no leader. Always with the same engines, until [`settle`](Self::settle).
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

    /// Receives what has ended the sleep.
    fn receive(&mut self, engines: &[Arc<Engine>], waker: &Waker) -> Result<()> {
        let ready = self.set.ready_after_sleep();
        self.owes_look = ready.among(self.set.exclusive()).is_any();
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

    /// Before anything else is done than to wait with the same engines: has the receiving threads look at what this thread owes.
    pub(crate) fn settle(&mut self, engines: &[Arc<Engine>]) -> Result<()> {
        if std::mem::take(&mut self.owes_look) && self.set.is_any_exclusive_ready() {
            self.owing = self.led;
        }
        let owing = std::mem::take(&mut self.owing);
        if owing.is_empty() {
            return Ok(());
        }
        let owed = engines.iter().enumerate().filter(|(place, _)| owing.has(*place));
        // The first refusal is told, once all others know.
        owed.map(|(_, engine)| engine.leave_behind()).fold(Ok(()), Result::and)
    }

    /// The calling thread's, if it may matter. Asked for once for each thread: two system calls.
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

/// The calling thread leads some of the engines as long as this lives.
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
