//! Event count on a futex: threads sleep until state has changed, without a lock.
//!
//! Under `Runtime::Shared` it is used by a `write` that waits for space and by
//! `wait_for_acknowledgments`. A waiting thread owns nothing, so no priority inversion is possible.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use takt_core::Instant;

use super::os::{Linux, Os, Word};

/// Counter of events. A waiter takes a ticket, checks its condition, and waits for a later event.
pub(crate) struct EventCount<O: Os = Linux> {
    count: O::Word,
    waiters: O::Word,
}

/// Value of the counter when the ticket was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

impl EventCount {
    pub(crate) fn new() -> Self {
        Self::with_os()
    }
}

impl<O: Os> EventCount<O> {
    /// Creates an event count on any implementation of [`Os`].
    pub(crate) fn with_os() -> Self {
        Self { count: O::Word::new(0), waiters: O::Word::new(0) }
    }

    /// Returns a ticket. Take it before checking the condition, so that no event in between is
    /// missed.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.count.load(Ordering::SeqCst))
    }

    /// Signals an event. Makes no system call if no thread waits.
    pub(crate) fn notify(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) > 0 {
            self.count.wake_all();
        }
    }

    /// Sleeps until an event after the ticket, or until `deadline`; `None` waits indefinitely. May
    /// wake spuriously: check the condition again.
    pub(crate) fn wait(&self, ticket: Ticket, now: Instant, deadline: Option<Instant>) {
        let timeout = deadline.map(|deadline| Duration::from_nanos(deadline.0.saturating_sub(now.0)));
        self.waiters.fetch_add(1, Ordering::SeqCst);
        self.count.wait(ticket.0, timeout);
        self.waiters.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<O: Os> fmt::Debug for EventCount<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventCount").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn event_after_the_ticket_ends_the_wait() {
        let events = EventCount::new();
        let ready = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                ready.store(true, Ordering::SeqCst);
                events.notify();
            });
            loop {
                let ticket = events.ticket();
                if ready.load(Ordering::SeqCst) {
                    break;
                }
                events.wait(ticket, Instant(0), None);
            }
        });
        assert!(ready.load(Ordering::SeqCst));
    }

    #[test]
    fn event_between_ticket_and_wait_is_not_missed() {
        let events = EventCount::new();
        let ticket = events.ticket();
        events.notify();
        events.wait(ticket, Instant(0), None);
        assert_ne!(events.ticket().0, ticket.0);
    }

    #[test]
    fn deadline_ends_the_wait() {
        let events = EventCount::new();
        let started = std::time::Instant::now();
        events.wait(events.ticket(), Instant(0), Some(Instant(2_000_000)));
        assert!(started.elapsed().as_nanos() >= 2_000_000 || events.ticket().0 == 0);
        assert_eq!(events.waiters.load(Ordering::SeqCst), 0);
    }
}
