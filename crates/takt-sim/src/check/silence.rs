//! When all has been said, nobody sends anything but announcements, assertions, and answers.
//!
//! Who writes asks now and then who hears the multicast group of user data, and all who listen answer. So nobody may ask who has
//! long had nothing to say: each question is as many datagrams as there are participants.

use takt_wire::GuidPrefix;

use super::{Checker, Rule};
use crate::clock::{Nanos, SECOND};

/// How long it is listened, at the very end.
pub const SILENCE: Nanos = SECOND;

/// Datagrams that a participant may build in that time, apart from assertions and answers to questions.
const DATAGRAMS_MAX: u64 = 8;

/// From the last new sample to the last question, who heard it, at most: two rounds of 0.75 s, and the rest of 2 s between them.
const LAST_QUESTION: Nanos = 4 * SECOND;

/// Who sends nothing asks again after this time.
const RENEWAL: Nanos = 64 * SECOND;

/// What a process sent in the last second.
#[derive(Clone, Copy, Debug)]
pub struct LastSecond {
    /// Its place in the scenario.
    pub process: usize,
    /// Of its participant.
    pub prefix: GuidPrefix,
    /// Datagrams.
    pub sent: u64,
    /// Questions among them, who hears the group of user data.
    pub asked: u64,
    /// Datagrams that show that writers live, its own and the answers to those of others, at most.
    pub assertions: u64,
}

impl Checker {
    /// The world ends; nothing was written, and nothing went wrong, for so long.
    pub fn must_be_silent(&mut self, end: Nanos, rest: Nanos, last: &[LastSecond]) {
        let begin = end - SILENCE;
        let questions: u64 = last.iter().map(|one| one.asked).sum();
        // Whoever is ignored or refused asks for acknowledgements that do not come.
        let is_answered =
            |one: &&LastSecond| !self.is_ignored_in_part(one.prefix) && !self.is_refused_in_part(one.prefix);
        let answered = last.iter().filter(is_answered).copied().collect::<Vec<_>>();
        for one in answered {
            let allowed = DATAGRAMS_MAX + one.assertions + questions;
            if one.sent > allowed && !self.is_at_work(one.prefix, begin) {
                let text = format!("process {} sent {} datagrams in the last second", one.process, one.sent);
                self.report(end, Rule::Silence, text);
            }
            if one.asked > 0 && rest < RENEWAL && !self.is_at_work(one.prefix, begin - LAST_QUESTION) {
                let text = format!("process {} asked who hears it, and has nothing to say", one.process);
                self.report(end, Rule::Silence, text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(rest: Nanos, sent: [u64; 2], asked: u64) -> Option<String> {
        let one = |process: usize, sent, asked| {
            let prefix = GuidPrefix([process as u8; 12]);
            LastSecond { process, prefix, sent, asked, assertions: 0 }
        };
        let mut checker = Checker::default();
        checker.must_be_silent(100 * SECOND, rest, &[one(0, sent[0], asked), one(1, sent[1], 0)]);
        checker.violation().map(|violation| violation.text.clone())
    }

    #[test]
    fn announcements_are_allowed_and_chatter_is_not() {
        assert_eq!(broken(10 * SECOND, [8, 3], 0), None);
        assert!(broken(10 * SECOND, [3, 9], 0).is_some_and(|text| text.contains("process 1 sent 9")));
    }

    #[test]
    fn who_has_nothing_to_say_asks_nobody_but_once_in_a_minute() {
        assert!(broken(10 * SECOND, [3, 3], 1).is_some_and(|text| text.contains("process 0 asked")));
        assert_eq!(broken(65 * SECOND, [8, 9], 1), None, "which is answered");
        assert!(broken(65 * SECOND, [8, 10], 1).is_some());
    }
}
