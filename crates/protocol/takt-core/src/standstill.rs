//! Detection of standstills: times in which the participant did not run.
//!
//! The process was stopped, its thread had no processor, or its application did not drive the
//! participant.
//!
//! Datagrams that arrive during a standstill wait in sockets or are lost there. Silence during that
//! time proves nothing, so leases do not run (DDS 1.4 §2.2.3.11 and RTPS 2.5 §8.5.3.2 refer to the
//! time in which a participant is *not heard*). A timer that is handled late reveals a standstill.
//!
//! The loss of a participant is detected after its lease plus the standstills in that time. Only
//! the last [`STANDSTILLS_MAX`] standstills count, so leases also end in a participant that is
//! always late.

use crate::time::Instant;
use core::time::Duration;

/// Minimum delay of a timer that counts as a standstill. The same time is granted after each
/// standstill to read waiting datagrams. Without it, the lease that was due first would end at
/// once.
const STANDSTILL_MIN: Duration = Duration::from_millis(100);

/// Number of standstills that are recorded.
const STANDSTILLS_MAX: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Standstill {
    ended: Instant,
    length: Duration,
}

/// Latest standstills of a participant.
#[derive(Debug, Default)]
pub(crate) struct Standstills {
    /// Ring buffer of standstills.
    recent: [Standstill; STANDSTILLS_MAX],
    next: usize,
    /// Time at which timers were last handled.
    last_handled: Instant,
}

impl Standstills {
    /// Records that timers are handled at `now`, the earliest of which was due at `due`.
    pub(crate) fn timers_handled(&mut self, now: Instant, due: Option<Instant>) {
        let length = due.map_or(Duration::ZERO, |due| now.since(due.max(self.last_handled)));
        self.last_handled = now;
        if length >= STANDSTILL_MIN {
            self.recent[self.next] = Standstill { ended: now, length };
            self.next = (self.next + 1) % STANDSTILLS_MAX;
        }
    }

    /// Returns how much of the silence since `moment` does not count: the standstills since then,
    /// plus [`STANDSTILL_MIN`] after each to read waiting datagrams.
    pub(crate) fn excused_since(&self, moment: Instant) -> Duration {
        let after = self.recent.iter().filter(|standstill| standstill.ended > moment);
        after.map(|standstill| standstill.length.min(standstill.ended.since(moment)) + STANDSTILL_MIN).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    #[test]
    fn standstill_lasts_from_the_due_time_or_the_last_handling_plus_a_margin() {
        let mut standstills = Standstills::default();
        standstills.timers_handled(at(1_000), Some(at(1_000)));
        standstills.timers_handled(at(1_099), Some(at(1_000)));
        assert_eq!(standstills.excused_since(at(0)), Duration::ZERO);
        standstills.timers_handled(at(6_100), Some(at(1_100)));
        // The remaining due timers are handled at once.
        standstills.timers_handled(at(6_101), Some(at(1_100)));
        assert_eq!(standstills.excused_since(at(1_000)), Duration::from_millis(5_100));
        assert_eq!(standstills.excused_since(at(4_100)), Duration::from_millis(2_100));
        assert_eq!(standstills.excused_since(at(6_100)), Duration::ZERO);
    }

    #[test]
    fn last_eight_standstills_count() {
        let mut standstills = Standstills::default();
        for second in 1..=20 {
            standstills.timers_handled(at(1_000 * second), Some(at(1_000 * second - 500)));
        }
        assert_eq!(standstills.excused_since(at(0)), Duration::from_millis(4_800));
    }
}
