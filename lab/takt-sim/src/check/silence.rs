//! Checks at rest: participants send only announcements, assertions, and replies.
//!
//! A writer probes periodically which readers receive the multicast group of user data, and all
//! readers reply. A participant that has been idle for long must not probe, since each probe causes
//! as many datagrams as there are participants.

use takt_wire::GuidPrefix;

use super::{Checker, Rule};
use crate::clock::{Nanos, SECOND};

/// Duration of the observation at the end of the world.
pub const SILENCE: Nanos = SECOND;

/// Maximum number of datagrams of a participant in that time, apart from assertions and replies to
/// probes.
const DATAGRAMS_MAX: u64 = 8;

/// Maximum time from the last new sample to the last probe of multicast reception: two rounds of
/// 0.75 s, and the pause of 2 s between them.
const LAST_PROBE: Nanos = 4 * SECOND;

/// Time after which an idle participant probes again.
const REPROBE_INTERVAL: Nanos = 64 * SECOND;

/// Datagrams of a process in the last second.
#[derive(Clone, Copy, Debug)]
pub struct LastSecond {
    /// Index of the process in the scenario.
    pub process: usize,
    /// GUID prefix of its participant.
    pub prefix: GuidPrefix,
    /// Number of datagrams.
    pub sent: u64,
    /// Number of probes of multicast reception among them.
    pub probes: u64,
    /// Maximum number of datagrams for liveliness: its own assertions and the replies to those of
    /// others.
    pub assertions: u64,
}

impl Checker {
    /// Runs the check at the end of the world, after `drain_time` without writes and faults.
    pub fn check_idle_traffic(&mut self, end: Nanos, drain_time: Nanos, last: &[LastSecond]) {
        let begin = end - SILENCE;
        let probes: u64 = last.iter().map(|one| one.probes).sum();
        // An ignored or refused participant requests acknowledgments that do not arrive.
        let is_answered =
            |one: &&LastSecond| !self.is_ignored_in_part(one.prefix) && !self.is_refused_in_part(one.prefix);
        let answered = last.iter().filter(is_answered).copied().collect::<Vec<_>>();
        for one in answered {
            let allowed = DATAGRAMS_MAX + one.assertions + probes;
            if one.sent > allowed && !self.is_at_work(one.prefix, begin) {
                let text = format!("process {} sent {} datagrams in the last second", one.process, one.sent);
                self.report(end, Rule::IdleTraffic, text);
            }
            if one.probes > 0 && drain_time < REPROBE_INTERVAL && !self.is_at_work(one.prefix, begin - LAST_PROBE) {
                let text = format!("process {} asked who hears it, and has nothing to say", one.process);
                self.report(end, Rule::IdleTraffic, text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(drain_time: Nanos, sent: [u64; 2], probes: u64) -> Option<String> {
        let one = |process: usize, sent, probes| {
            let prefix = GuidPrefix([process as u8; 12]);
            LastSecond { process, prefix, sent, probes, assertions: 0 }
        };
        let mut checker = Checker::default();
        checker.check_idle_traffic(100 * SECOND, drain_time, &[one(0, sent[0], probes), one(1, sent[1], 0)]);
        checker.violation().map(|violation| violation.text.clone())
    }

    #[test]
    fn announcements_are_allowed_and_other_datagrams_are_not() {
        assert_eq!(broken(10 * SECOND, [8, 3], 0), None);
        assert!(broken(10 * SECOND, [3, 9], 0).is_some_and(|text| text.contains("process 1 sent 9")));
    }

    #[test]
    fn idle_participant_probes_at_most_once_a_minute() {
        assert!(broken(10 * SECOND, [3, 3], 1).is_some_and(|text| text.contains("process 0 asked")));
        assert_eq!(broken(65 * SECOND, [8, 9], 1), None, "which is answered");
        assert!(broken(65 * SECOND, [8, 10], 1).is_some());
    }
}
