//! Lets threads sleep until something has changed, without a lock: an event count on a futex.
//!
//! Used under `Runtime::Shared` by a `write` that waits for room and by `wait_for_acknowledgments`. Waiting
//! owns nothing, so there is no priority to invert.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use takt_core::Instant;

/// Counts events. Waiters take a ticket, look at the state they care about, and wait for a later event.
#[derive(Debug, Default)]
pub(crate) struct EventCount {
    count: AtomicU32,
    waiters: AtomicU32,
}

/// The count at the moment it was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket(u32);

impl EventCount {
    /// Take it before looking at the state, so that no event in between is missed.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.count.load(Ordering::SeqCst))
    }

    /// Something changed. Costs no system call while nobody waits.
    pub(crate) fn notify(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) == 0 {
            return;
        }
        let flags = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the futex word is a live, aligned `u32`; the kernel only reads its address.
        let woken = unsafe { libc::syscall(libc::SYS_futex, self.count.as_ptr(), flags, i32::MAX) };
        debug_assert!(woken >= 0, "waking a valid futex cannot fail");
    }

    /// Sleeps until an event after the ticket, or until `remaining` nanoseconds have passed (`None`: for ever).
    /// May also return for no reason: look at the state again.
    pub(crate) fn wait(&self, ticket: Ticket, now: Instant, deadline: Option<Instant>) {
        let timeout = deadline.map(|deadline| timespec(deadline.0.saturating_sub(now.0)));
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        let flags = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        self.waiters.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the futex word is a live, aligned `u32` and `timeout` is null or a live timespec. Whatever
        // the result (woken, changed, timed out, interrupted), the caller looks at the state again.
        unsafe { libc::syscall(libc::SYS_futex, self.count.as_ptr(), flags, ticket.0, timeout) };
        self.waiters.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A span of nanoseconds as the kernel wants it.
pub(crate) fn timespec(nanos: u64) -> libc::timespec {
    let seconds = libc::time_t::try_from(nanos / 1_000_000_000).unwrap_or(libc::time_t::MAX);
    libc::timespec { tv_sec: seconds, tv_nsec: (nanos % 1_000_000_000) as libc::c_long }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn an_event_after_the_ticket_ends_the_wait() {
        let events = EventCount::default();
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
    fn an_event_before_the_wait_is_not_slept_through() {
        let events = EventCount::default();
        let ticket = events.ticket();
        events.notify();
        events.wait(ticket, Instant(0), None);
        assert_ne!(events.ticket().0, ticket.0);
    }

    #[test]
    fn a_deadline_ends_the_wait() {
        let events = EventCount::default();
        let started = std::time::Instant::now();
        events.wait(events.ticket(), Instant(0), Some(Instant(2_000_000)));
        assert!(started.elapsed().as_nanos() >= 2_000_000 || events.ticket().0 == 0);
        assert_eq!(events.waiters.load(Ordering::SeqCst), 0);
    }
}
