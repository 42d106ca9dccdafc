//! Recent farewells and process ends, so that an older announcement that arrives later does not
//! rediscover the participant.
//!
//! Announcements and farewells arrive by several paths (multicast, and unicast to each address),
//! which do not preserve the order. The specification does not cover this (RTPS 2.5 §8.5.3 leaves
//! SPDP best effort). Without this table, a departed participant would reappear for as long as its
//! lease.

use crate::time::Instant;
use alloc::collections::VecDeque;
use core::time::Duration;
use takt_wire::{GuidPrefix, SequenceNumber};

/// Maximum number of farewells that are stored; the oldest is replaced.
const DEPARTED_MAX: usize = 64;
/// Time for which a farewell is stored. It is limited because a forged farewell must not
/// exclude its victim for longer.
const RETENTION_TIME: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Farewell {
    prefix: GuidPrefix,
    sn: SequenceNumber,
    at: Instant,
}

/// Farewells of the last seconds.
#[derive(Debug)]
pub(crate) struct Departed(VecDeque<Farewell>);

impl Departed {
    pub(crate) fn new() -> Self {
        Self(VecDeque::with_capacity(DEPARTED_MAX))
    }

    /// Records a farewell with its sequence number.
    pub(super) fn note(&mut self, now: Instant, prefix: GuidPrefix, sn: SequenceNumber) {
        let known = self.0.iter().position(|farewell| farewell.prefix == prefix);
        if let Some(at) = known {
            self.0.remove(at);
        } else if self.0.len() == DEPARTED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Farewell { prefix, sn, at: now });
    }

    /// Reports whether an announcement is older than its participant's farewell. Takes at most
    /// [`DEPARTED_MAX`] steps.
    pub(super) fn precedes_farewell(&self, now: Instant, prefix: GuidPrefix, sn: SequenceNumber) -> bool {
        let recent = self.0.iter().rev().take_while(|farewell| now.since(farewell.at) < RETENTION_TIME);
        recent.into_iter().any(|farewell| farewell.prefix == prefix && sn <= farewell.sn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(n: u8) -> GuidPrefix {
        GuidPrefix([n; 12])
    }

    #[test]
    fn announcement_older_than_the_farewell_is_stale_until_the_retention_time_ends() {
        let mut departed = Departed::new();
        let (sn, now) = (SequenceNumber(2), Instant(5));
        departed.note(now, prefix(1), sn);
        assert!(departed.precedes_farewell(now, prefix(1), SequenceNumber(1)));
        assert!(departed.precedes_farewell(now, prefix(1), sn));
        assert!(!departed.precedes_farewell(now, prefix(1), sn.next()), "it has come back");
        assert!(!departed.precedes_farewell(now, prefix(2), sn), "somebody else");
        assert!(!departed.precedes_farewell(now.after(RETENTION_TIME), prefix(1), sn), "forgotten");
    }

    #[test]
    fn newest_farewells_are_stored_when_the_table_is_full() {
        let mut departed = Departed::new();
        for n in 0..=DEPARTED_MAX as u8 {
            departed.note(Instant(0), prefix(n), SequenceNumber(2));
            departed.note(Instant(0), prefix(n), SequenceNumber(2));
        }
        assert_eq!(departed.0.len(), DEPARTED_MAX);
        assert!(!departed.precedes_farewell(Instant(0), prefix(0), SequenceNumber(1)));
        assert!(departed.precedes_farewell(Instant(0), prefix(1), SequenceNumber(1)));
    }
}
