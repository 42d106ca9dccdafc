//! Open-loop pings: sent on a fixed grid of due times, independent of the answers, and the record
//! of their latencies.
//!
//! A ping carries the time when it was *due*, and every latency is counted from that. A late sender
//! is thus part of the latency, and a stall is seen by each ping that it delayed, not by one
//! (coordinated omission). The lateness of the sender is also recorded separately. All times are of
//! one clock, `CLOCK_MONOTONIC` of one machine, so the uncertainty between the two ends is 0.

use super::participant::ParticipantPlan;
use crate::payload::Blob;
use crate::sequence::SequenceTracker;
use crate::stats::Histogram;
use serde::{Deserialize, Serialize};

/// Settings of one process of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SidePlan {
    /// Participant.
    pub participant: ParticipantPlan,
    /// Core, if the measures bind the process to one.
    pub cpu: usize,
    /// `SCHED_FIFO` priority, if the measures set one.
    pub fifo: u8,
    /// Payload size of a ping, octets.
    pub size: usize,
    /// Interval between two pings, ns.
    pub period_ns: u64,
    /// Number of pings at the start that are not measured.
    pub warmup: u64,
    /// Number of measured pings.
    pub count: u64,
    /// Duration of the callback of the slow topic, ns.
    pub callback_ns: u64,
}

impl SidePlan {
    /// Returns the sequence number of the last ping.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.warmup + self.count
    }
}

/// Record of the pings of a run, at one end.
#[derive(Debug)]
pub struct Record {
    size: usize,
    measured: std::ops::RangeInclusive<u64>,
    tracker: SequenceTracker,
    latencies: Histogram,
    newest: u64,
}

impl Record {
    /// Creates an empty record.
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

    /// Records a ping, or the answer to one. Duplicates and samples that are no pings are not
    /// counted.
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

    /// Returns the number of distinct measured pings received.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.tracker.counts().received
    }

    /// Reports whether the last ping has arrived.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.newest >= *self.measured.end()
    }

    /// Returns the latencies as pairs of ns and count.
    #[must_use]
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        self.latencies.buckets()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::countermeasure::Countermeasures;
    use std::net::Ipv4Addr;

    fn record() -> Record {
        let participant = ParticipantPlan {
            domain: 0,
            peer: Ipv4Addr::LOCALHOST,
            measures: Countermeasures::default(),
            spins: false,
        };
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
    fn latency_counts_from_the_due_time_of_a_ping() {
        let mut record = record();
        // The sender stalls at 1,000 for 1,500: three pings became due meanwhile, and all of them
        // are late.
        for (sequence, due) in [(3, 1_000), (4, 1_500), (5, 2_000)] {
            record.arrived(2_600, &ping(sequence, due));
        }
        let latencies: Vec<u64> = record.buckets().iter().map(|(ns, _)| *ns).collect();
        assert_eq!(latencies, [600, 1_100, 1_600]);
        assert!(record.is_over());
    }

    #[test]
    fn warm_up_duplicates_and_foreign_samples_do_not_count() {
        let mut record = record();
        for sequence in [1, 2, 3, 3, 6] {
            record.arrived(10, &ping(sequence, 0));
        }
        record.arrived(10, &Blob::filled(65));
        assert_eq!(record.received(), 1);
        assert!(!record.is_over());
    }
}
