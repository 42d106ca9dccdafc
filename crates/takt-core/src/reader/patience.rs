//! When a reader may ask a writer again for what it misses (RTPS 2.5 §8.4.12.2).
//!
//! A request or its answer may be lost, so it is repeated; but an answer that is still under way must not be asked for
//! twice. So a reader waits for twice as long as repairs lately took to come, and from the third request in vain on ever
//! longer.

use crate::time::Instant;
use core::time::Duration;
use takt_wire::SequenceNumber;

/// Before it is known how long repairs take.
const FIRST: Duration = Duration::from_millis(4);
/// The longest wait, in least waits.
const LONGEST: u32 = 32;
/// Requests for the same samples without any repair; then the writer has to speak first.
const REPEATS: u32 = 6;
/// What the writer says after its repairs ends the wait after this part of it, about half of the time that they took.
const ENDED_BY_WRITER: u32 = 4;

/// The last request.
#[derive(Clone, Copy, Debug)]
struct Request {
    at: Instant,
    /// What was expected then, and the last sample that was announced: what lies between was asked for where it was missing.
    base: SequenceNumber,
    last: SequenceNumber,
    /// How often the same was asked for in vain.
    repeats: u32,
    /// Something has come since.
    answered: bool,
    /// The writer has said since that it has sent what it wanted to send.
    ended: bool,
}

#[derive(Debug)]
pub(crate) struct Patience {
    last: Option<Request>,
    /// Nothing was heard of the last request, or the last repair, for so long: ask again.
    wait: Duration,
    least: Duration,
    last_repair: Instant,
}

impl Patience {
    pub(crate) const fn new() -> Self {
        Self { last: None, wait: Duration::ZERO, least: Duration::ZERO, last_repair: Instant(0) }
    }

    /// What is missing from `base` up to `last` is asked for.
    pub(crate) fn asked(&mut self, now: Instant, (base, last): (SequenceNumber, SequenceNumber), least: Duration) {
        self.least = least;
        self.wait = if self.wait.is_zero() { least.max(FIRST) } else { self.wait };
        let in_vain = self.last.filter(|former| former.base == base && !former.answered);
        let repeats = in_vain.map_or(0, |last| (last.repeats + 1).min(REPEATS));
        self.last = Some(Request { at: now, base, last, repeats, answered: false, ended: false });
    }

    /// Something that was missing has arrived.
    pub(crate) fn repaired(&mut self, now: Instant) {
        self.last_repair = now;
        let Some(last) = self.last.as_mut().filter(|last| !last.answered) else { return };
        last.answered = true;
        // Who asked more than once does not know which request was answered. One may be lost, more are rather early.
        self.wait = match last.repeats {
            0 => now.since(last.at) * 2,
            1 | 2 => self.wait,
            _ => self.wait * 2,
        };
        self.wait = self.wait.clamp(self.least, self.least * LONGEST);
        last.repeats = 0;
    }

    fn wait(&self, last: &Request) -> Duration {
        (self.wait * 2_u32.pow(last.repeats.saturating_sub(2))).min(self.least * LONGEST)
    }

    /// The writer has sent what it wanted to send.
    pub(crate) fn ended(&mut self) {
        if let Some(last) = &mut self.last {
            last.ended = true;
        }
    }

    /// When what is missing from `base` on may be asked for again. What the last request asked for may be under way, also where the
    /// first samples of it have come.
    pub(crate) fn due(&self, base: SequenceNumber) -> Option<Instant> {
        let last = self.last.filter(|last| last.base <= base && base <= last.last)?;
        if last.ended {
            return Some(last.at.after((self.wait(&last) / ENDED_BY_WRITER).max(self.least)));
        }
        Some(last.at.max(self.last_repair).after(self.wait(&last)))
    }

    /// When to ask again for what was just asked for, though nothing is heard of the writer.
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
    fn the_wait_is_twice_what_repairs_take() {
        let mut patience = Patience::new();
        assert_eq!(patience.due(BASE), None, "nothing was asked for");
        patience.asked(at(100), (BASE, BASE.next()), LEAST);
        assert_eq!(patience.due(BASE), Some(at(104)));
        assert_eq!(patience.due(BASE.next()), Some(at(104)), "it was asked for too, and may be under way");
        assert_eq!(patience.due(BASE.next().next()), None, "other samples may be asked for at once");
        patience.repaired(at(103));
        assert_eq!(patience.due(BASE), Some(at(109)), "while repairs come nothing is asked for");
        patience.ended();
        assert_eq!(patience.due(BASE), Some(Instant(101_500_000)), "the writer has sent all that it wanted to");
    }

    #[test]
    fn requests_become_rarer_and_end_when_nothing_comes() {
        let mut patience = Patience::new();
        let mut now = at(0);
        let mut waits = alloc::vec::Vec::new();
        patience.asked(now, (BASE, BASE), LEAST);
        while let Some(due) = patience.retry() {
            waits.push(due.since(now).as_millis());
            now = due;
            patience.asked(now, (BASE, BASE), LEAST);
        }
        assert_eq!(waits, [4, 4, 4, 8, 16, 32]);
        patience.repaired(now);
        patience.asked(now, (BASE, BASE), LEAST);
        assert!(patience.retry().is_some(), "once something has come, there is hope");
    }
}
