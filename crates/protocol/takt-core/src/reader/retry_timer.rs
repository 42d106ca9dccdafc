//! Retry timing of a reader's requests for missing samples (RTPS 2.5 §8.4.12.2).
//!
//! A request or its answer may be lost, so it is repeated; but samples in transit must not be
//! requested twice. A reader therefore waits for twice the time that repairs recently took. From
//! the third unanswered request on it waits ever longer.

use crate::time::Instant;
use core::time::Duration;
use takt_wire::SequenceNumber;

/// Wait before the repair time is known.
const INITIAL_WAIT: Duration = Duration::from_millis(4);
/// Longest wait, as a multiple of the least wait.
const WAIT_MULTIPLIER_MAX: u32 = 32;
/// Requests for the same samples without any repair. After that, the writer has to send something
/// first.
const REPEATS: u32 = 6;
/// Divisor of the wait after the writer has announced the end of its repairs, about half of the
/// time that they took.
const ENDED_BY_WRITER: u32 = 4;

/// Last request.
#[derive(Clone, Copy, Debug)]
struct Request {
    at: Instant,
    /// Next expected sample at that time, and the last announced sample. Missing samples between
    /// them were requested.
    base: SequenceNumber,
    last: SequenceNumber,
    /// Number of unanswered requests for the same samples.
    repeats: u32,
    /// A requested sample has arrived since.
    answered: bool,
    /// The writer has announced since that it has sent all requested samples.
    ended: bool,
}

#[derive(Debug)]
pub(crate) struct RetryTimer {
    last: Option<Request>,
    /// Silence after the last request or repair until the request is repeated.
    wait: Duration,
    wait_min: Duration,
    last_repair: Instant,
}

impl RetryTimer {
    pub(crate) const fn new() -> Self {
        Self { last: None, wait: Duration::ZERO, wait_min: Duration::ZERO, last_repair: Instant(0) }
    }

    /// Records a request for the samples missing from `base` up to `last`.
    pub(crate) fn request_sent(
        &mut self,
        now: Instant,
        (base, last): (SequenceNumber, SequenceNumber),
        wait_min: Duration,
    ) {
        self.wait_min = wait_min;
        self.wait = if self.wait.is_zero() { wait_min.max(INITIAL_WAIT) } else { self.wait };
        let unanswered = self.last.filter(|former| former.base == base && !former.answered);
        let repeats = unanswered.map_or(0, |last| (last.repeats + 1).min(REPEATS));
        self.last = Some(Request { at: now, base, last, repeats, answered: false, ended: false });
    }

    /// Records the arrival of a missing sample.
    pub(crate) fn repaired(&mut self, now: Instant) {
        self.last_repair = now;
        let Some(last) = self.last.as_mut().filter(|last| !last.answered) else { return };
        last.answered = true;
        // After several requests it is unknown which one was answered. One may have been lost; more
        // indicate that the wait is too short.
        self.wait = match last.repeats {
            0 => now.since(last.at) * 2,
            1 | 2 => self.wait,
            _ => self.wait * 2,
        };
        self.wait = self.wait.clamp(self.wait_min, self.wait_min * WAIT_MULTIPLIER_MAX);
        last.repeats = 0;
    }

    fn wait(&self, last: &Request) -> Duration {
        (self.wait * 2_u32.pow(last.repeats.saturating_sub(2))).min(self.wait_min * WAIT_MULTIPLIER_MAX)
    }

    /// Records that the writer has sent all requested samples.
    pub(crate) fn ended(&mut self) {
        if let Some(last) = &mut self.last {
            last.ended = true;
        }
    }

    /// Returns the time at which samples missing from `base` on may be requested again. Samples of
    /// the last request may be in transit even if its first samples have arrived.
    pub(crate) fn due(&self, base: SequenceNumber) -> Option<Instant> {
        let last = self.last.filter(|last| last.base <= base && base <= last.last)?;
        if last.ended {
            return Some(last.at.after((self.wait(&last) / ENDED_BY_WRITER).max(self.wait_min)));
        }
        Some(last.at.max(self.last_repair).after(self.wait(&last)))
    }

    /// Returns the time at which the last request is repeated although nothing was heard from the
    /// writer.
    pub(crate) fn retry(&self) -> Option<Instant> {
        let last = self.last.filter(|last| last.repeats < REPEATS)?;
        Some(last.at.after(self.wait(&last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: SequenceNumber = SequenceNumber(3);
    const LEAST: Duration = Duration::from_millis(1);

    fn at(milliseconds: u64) -> Instant {
        Instant(milliseconds * 1_000_000)
    }

    #[test]
    fn wait_is_twice_the_time_that_repairs_take() {
        let mut timer = RetryTimer::new();
        assert_eq!(timer.due(BASE), None, "no repair was requested");
        timer.request_sent(at(100), (BASE, BASE.next()), LEAST);
        assert_eq!(timer.due(BASE), Some(at(104)));
        assert_eq!(timer.due(BASE.next()), Some(at(104)), "it was requested too and may be in transit");
        assert_eq!(timer.due(BASE.next().next()), None, "other samples may be requested at once");
        timer.repaired(at(103));
        assert_eq!(timer.due(BASE), Some(at(109)), "no request while repairs arrive");
        timer.ended();
        assert_eq!(timer.due(BASE), Some(Instant(101_500_000)), "the writer has sent all that it wanted to");
    }

    #[test]
    fn requests_become_rarer_and_end_when_nothing_arrives() {
        let mut timer = RetryTimer::new();
        let mut now = at(0);
        let mut waits = alloc::vec::Vec::new();
        timer.request_sent(now, (BASE, BASE), LEAST);
        while let Some(due) = timer.retry() {
            waits.push(due.since(now).as_millis());
            now = due;
            timer.request_sent(now, (BASE, BASE), LEAST);
        }
        assert_eq!(waits, [4, 4, 4, 8, 16, 32]);
        timer.repaired(now);
        timer.request_sent(now, (BASE, BASE), LEAST);
        assert!(timer.retry().is_some(), "after the first repair, the wait restarts");
    }
}
