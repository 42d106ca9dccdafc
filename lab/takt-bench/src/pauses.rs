//! Periodic pauses of spinning threads, so that RT throttling does not stop them.
//!
//! A thread that spins with a real-time priority leaves no time to other threads. After most of a
//! second, the kernel gives them its core for some 50 ms, at a moment of its own choice. To avoid
//! that, the thread pauses where it disturbs no measurement: at the end of each period of
//! `CLOCK_MONOTONIC`. All processes of a host share that clock, so both ends of a link pause at the
//! same time.

use crate::error::Result;
use crate::link::{Handler, Link, Matched};
use crate::machine::monotonic_ns;
use crate::payload::Blob;
use std::io;
use std::time::Duration;
use takt::status::LatencyExceededStatus;

/// Length of a period in ns, including its pause.
const PERIOD_NS: u64 = 800_000_000;
/// Length of the pause at the end of a period, ns.
const PAUSE_NS: u64 = 100_000_000;
/// Time before and after a pause in which no round trip begins, ns.
const MARGIN_NS: u64 = 5_000_000;

/// Returns the time until the next pause, in ns; 0 within a pause.
fn until_pause(now_ns: u64) -> u64 {
    (PERIOD_NS - PAUSE_NS).saturating_sub(now_ns % PERIOD_NS)
}

/// Returns the first time from `time_ns` on at which a round trip may begin.
#[must_use]
pub fn next_start(time_ns: u64) -> u64 {
    let (start, at) = (time_ns - time_ns % PERIOD_NS, time_ns % PERIOD_NS);
    if at < MARGIN_NS {
        start + MARGIN_NS
    } else if at >= PERIOD_NS - PAUSE_NS - MARGIN_NS {
        start + PERIOD_NS + MARGIN_NS
    } else {
        time_ns
    }
}

/// Link that sleeps during the pauses.
pub struct PausingLink(pub Box<dyn Link>);

impl PausingLink {
    /// Sleeps and returns `None` during a pause; otherwise returns the part of `timeout` that ends
    /// before the next pause.
    pub(crate) fn awake(timeout: Duration) -> Option<Duration> {
        let now = monotonic_ns();
        match until_pause(now) {
            0 => {
                std::thread::sleep(Duration::from_nanos(PERIOD_NS - now % PERIOD_NS));
                None
            }
            left => Some(timeout.min(Duration::from_nanos(left))),
        }
    }
}

impl Link for PausingLink {
    fn carried_len(&self, len: usize) -> usize {
        self.0.carried_len(len)
    }

    fn write(&mut self, sample: &Blob) -> Result<bool> {
        self.0.write(sample)
    }

    fn write_batch(&mut self, samples: &[Blob]) -> Result<usize> {
        self.0.write_batch(samples)
    }

    fn receive(&mut self, sample: &mut Blob, timeout: Duration) -> Result<bool> {
        match Self::awake(timeout) {
            Some(left) => self.0.receive(sample, left),
            None => self.0.receive(sample, Duration::ZERO),
        }
    }

    fn drive(&mut self, timeout: Duration) -> Result<()> {
        match Self::awake(timeout) {
            Some(left) => self.0.drive(left),
            None => self.0.drive(Duration::ZERO),
        }
    }

    fn matched(&mut self) -> Result<Matched> {
        self.0.matched()
    }

    fn listen(&mut self, handler: Handler) -> Result<bool> {
        self.0.listen(handler)
    }

    fn flush(&mut self, timeout: Duration) -> Result<()> {
        self.0.flush(timeout)
    }

    fn make_durable(&mut self, timeout: Duration) -> Result<()> {
        self.0.make_durable(timeout)
    }

    fn write_job_statistics(&self, out: &mut dyn io::Write) -> Result<()> {
        self.0.write_job_statistics(out)
    }

    fn latency_status(&self) -> Result<Option<LatencyExceededStatus>> {
        self.0.latency_status()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_period_ends_with_a_pause() {
        assert_eq!(until_pause(PERIOD_NS), PERIOD_NS - PAUSE_NS);
        assert_eq!(until_pause(2 * PERIOD_NS - PAUSE_NS - 1), 1);
        assert_eq!(until_pause(2 * PERIOD_NS - PAUSE_NS), 0);
        assert_eq!(until_pause(2 * PERIOD_NS - 1), 0);
    }

    #[test]
    fn round_trips_begin_outside_pauses_and_their_margins() {
        let middle = PERIOD_NS / 2;
        assert_eq!(next_start(middle), middle);
        let next = PERIOD_NS + MARGIN_NS;
        for late in [PERIOD_NS - PAUSE_NS - MARGIN_NS, PERIOD_NS - PAUSE_NS, PERIOD_NS - 1, PERIOD_NS] {
            assert_eq!(next_start(late), next);
        }
        assert_eq!(next_start(PERIOD_NS - PAUSE_NS - MARGIN_NS - 1), PERIOD_NS - PAUSE_NS - MARGIN_NS - 1);
    }
}
