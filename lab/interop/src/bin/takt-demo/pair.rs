//! Samples that one subscriber received from one publisher.

use takt_interop::content;
use takt_interop::event::Event;

use crate::exchange::{SIZE, WARM_UP};

/// Samples of one pair.
pub struct Pair {
    pub name: &'static str,
    /// Number of samples that were duplicated, out of order, or different from the written ones.
    pub wrong: u64,
    /// Next expected sequence number.
    next: u64,
    latencies_ns: Vec<i64>,
}

impl Pair {
    pub fn new(name: &'static str) -> Self {
        Self { name, wrong: 0, next: 0, latencies_ns: Vec::new() }
    }

    /// Evaluates the events that the subscriber reported.
    pub fn take(&mut self, events: Vec<Event>) {
        for event in events {
            let Event::Sample(sample) = event else { continue };
            if !sample.valid || sample.seq >= WARM_UP {
                continue;
            }
            let expected = content::expected_hash(SIZE, 0, sample.seq);
            let genuine = sample.len == SIZE && sample.hash == format!("{expected:016x}");
            self.wrong += u64::from(!genuine || sample.seq < self.next);
            self.next = sample.seq + 1;
            self.latencies_ns.push(sample.received_ns - sample.stamp_ns);
        }
    }

    /// Returns the number of received samples.
    pub fn received(&self) -> u64 {
        self.latencies_ns.len() as u64
    }

    pub fn is_complete(&self, count: u64) -> bool {
        self.received() == count && self.wrong == 0
    }

    /// Returns minimum, median, 99th percentile and maximum; zeros without samples.
    pub fn latencies_us(&mut self) -> [i64; 4] {
        self.latencies_ns.sort_unstable();
        let all = &self.latencies_ns;
        let at = |permille: usize| all.get((all.len() * permille / 1000).min(all.len().saturating_sub(1)));
        [0, 500, 990, 1000].map(|permille| at(permille).copied().unwrap_or(0) / 1000)
    }
}
