//! Pings on a fixed grid of due times, whatever comes back, and what is recorded of them.
//!
//! A ping carries the time when it was *due*, and every latency is counted from that: if the sender itself is late, that is part of what
//! the receiver waits for, and a stall is seen by each of the pings that it delayed and not by one (coordinated omission). How late the
//! sender was is recorded apart. All times are of one clock, `CLOCK_MONOTONIC` of one machine: the uncertainty between the two ends
//! is 0.

use super::participant::ParticipantPlan;
use crate::payload::Blob;
use crate::sequence::SequenceTracker;
use crate::stats::Histogram;
use serde::{Deserialize, Serialize};

/// What one process of the experiment is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SidePlan {
    /// Its participant.
    pub participant: ParticipantPlan,
    /// Its core, if the measures bind it to one.
    pub cpu: usize,
    /// Its priority, if the measures give it one.
    pub fifo: u8,
    /// Payload of a ping, octets.
    pub size: usize,
    /// Time from one ping to the next, ns.
    pub period_ns: u64,
    /// Pings that are not measured, at first.
    pub warmup: u64,
    /// Pings that are.
    pub count: u64,
    /// What the callback of the slow topic takes, ns.
    pub callback_ns: u64,
}

impl SidePlan {
    /// Pings in all.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.warmup + self.count
    }
}

/// What came of the pings of a run, at one end.
#[derive(Debug)]
pub struct Record {
    size: usize,
    measured: std::ops::RangeInclusive<u64>,
    tracker: SequenceTracker,
    latencies: Histogram,
    newest: u64,
}

impl Record {
    /// Nothing yet.
    #[must_use]
    pub fn new(plan: &SidePlan) -> Self {
        Self {
            size: Blob::filled(plan.size).data.len(),
            measured: plan.warmup + 1..=plan.last(),
            tracker: SequenceTracker::new(),
            latencies: Histogram::new(),
            newest: 0,
        }
    }

    /// Takes a ping, or the answer to one. A second arrival of the same, and what is none, is not counted.
    pub fn arrived(&mut self, now_ns: u64, sample: &Blob) {
        let Some((sequence, due_ns)) = sample.marks().filter(|_| sample.data.len() == self.size) else { return };
        if sequence > *self.measured.end() {
            return;
        }
        self.newest = self.newest.max(sequence);
        if self.measured.contains(&sequence) && self.tracker.record(sequence) {
            self.latencies.record(now_ns.saturating_sub(due_ns));
        }
    }

    /// Different measured pings that came.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.tracker.counts().received
    }

    /// Whether the last one has come.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.newest >= *self.measured.end()
    }

    /// Latencies as pairs of ns and how often.
    #[must_use]
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        self.latencies.buckets()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::measure::Measures;
    use std::net::Ipv4Addr;

    fn record() -> Record {
        let participant =
            ParticipantPlan { domain: 0, peer: Ipv4Addr::LOCALHOST, measures: Measures::default(), spins: false };
        let plan =
            SidePlan { participant, cpu: 0, fifo: 1, size: 64, period_ns: 500, warmup: 2, count: 3, callback_ns: 0 };
        Record::new(&plan)
    }

    fn ping(sequence: u64, due_ns: u64) -> Blob {
        let mut blob = Blob::filled(64);
        blob.mark(sequence, due_ns);
        blob
    }

    #[test]
    fn latency_counts_from_when_a_ping_was_due() {
        let mut record = record();
        // The sender stalls at 1,000 for 1,500: three pings were due meanwhile, and all of them are late.
        for (sequence, due) in [(3, 1_000), (4, 1_500), (5, 2_000)] {
            record.arrived(2_600, &ping(sequence, due));
        }
        let latencies: Vec<u64> = record.buckets().iter().map(|(ns, _)| *ns).collect();
        assert_eq!(latencies, [600, 1_100, 1_600]);
        assert!(record.is_over());
    }

    #[test]
    fn warm_up_duplicates_and_strangers_do_not_count() {
        let mut record = record();
        for sequence in [1, 2, 3, 3, 6] {
            record.arrived(10, &ping(sequence, 0));
        }
        record.arrived(10, &Blob::filled(65));
        assert_eq!(record.received(), 1);
        assert!(!record.is_over());
    }
}
