//! When the participant itself did not run: its process was stopped, its thread had no processor, its application did not drive it.
//!
//! What others sent meanwhile waits in sockets, or found no room there. Their silence of that time proves nothing, so a lease does not
//! run then (DDS 1.4 §2.2.3.11 and RTPS 2.5 §8.5.3.2 speak of the time in which a participant is *not heard*). A timer that is served late
//! shows a standstill.
//!
//! A participant that has gone is found out by its lease and the standstills meanwhile. No more than the last [`KEPT`] count, so the
//! leases end in a participant that is late all the time too.

use crate::time::Instant;
use core::time::Duration;

/// A timer that is served later than this shows a standstill. After each one there is as long to read what waits: the lease that was due
/// first would end at once otherwise.
const LEAST: Duration = Duration::from_millis(100);

/// How many are remembered.
const KEPT: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Standstill {
    ended: Instant,
    length: Duration,
}

/// The last standstills of a participant.
#[derive(Debug, Default)]
pub(crate) struct Standstills {
    /// A ring.
    kept: [Standstill; KEPT],
    next: usize,
    /// When timers were served last.
    served: Instant,
}

impl Standstills {
    /// The timers are served now; the earliest was due then.
    pub(crate) fn timers_are_served(&mut self, now: Instant, due: Option<Instant>) {
        let length = due.map_or(Duration::ZERO, |due| now.since(due.max(self.served)));
        self.served = now;
        if length >= LEAST {
            self.kept[self.next] = Standstill { ended: now, length };
            self.next = (self.next + 1) % KEPT;
        }
    }

    /// How long silence since that moment does not count: the standstills since, and [`LEAST`] to read what waits after each.
    pub(crate) fn after(&self, moment: Instant) -> Duration {
        let after = self.kept.iter().filter(|standstill| standstill.ended > moment);
        after.map(|standstill| standstill.length.min(standstill.ended.since(moment)) + LEAST).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    #[test]
    fn standstill_is_the_time_from_what_was_due_or_served_last_and_a_while() {
        let mut standstills = Standstills::default();
        standstills.timers_are_served(at(1_000), Some(at(1_000)));
        standstills.timers_are_served(at(1_099), Some(at(1_000)));
        assert_eq!(standstills.after(at(0)), Duration::ZERO);
        standstills.timers_are_served(at(6_100), Some(at(1_100)));
        // The rest of what was due is served at once.
        standstills.timers_are_served(at(6_101), Some(at(1_100)));
        assert_eq!(standstills.after(at(1_000)), Duration::from_millis(5_100));
        assert_eq!(standstills.after(at(4_100)), Duration::from_millis(2_100));
        assert_eq!(standstills.after(at(6_100)), Duration::ZERO);
    }

    #[test]
    fn last_eight_standstills_count() {
        let mut standstills = Standstills::default();
        for second in 1..=20 {
            standstills.timers_are_served(at(1_000 * second), Some(at(1_000 * second - 500)));
        }
        assert_eq!(standstills.after(at(0)), Duration::from_millis(4_800));
    }
}
