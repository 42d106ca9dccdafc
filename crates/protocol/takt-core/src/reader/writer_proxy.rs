//! Proxy of a matched writer at a reader (RTPS 2.5 §8.4.10.4, §8.4.12.2): arrived samples, missing
//! samples, and requests.

use super::fragments::Fragments;
use super::holding::Holding;
use super::leaps::Leap;
use super::liveliness::WriterLease;
use super::retry_timer::RetryTimer;
use crate::cache::Stored;
use crate::config::REORDER_WINDOW;
use crate::count::LastCount;
use crate::path::Path;
use crate::presentation::MissingGroupInfo;
use crate::time::Instant;
use crate::timer::TimerId;
use alloc::boxed::Box;
use alloc::vec;
use takt_wire::{Duration, EntityId, Guid, SequenceNumber, SequenceNumberSet};

/// Highest accepted sample number: no number could follow the next one.
pub(crate) const LAST_SAMPLE: SequenceNumber = SequenceNumber(i64::MAX - 1);

/// State of one sample number within the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    Missing,
    /// The sample will never arrive, or is irrelevant to this reader.
    Irrelevant,
    Waiting(Stored),
}

const MISSING: u32 = u32::MAX;
const IRRELEVANT: u32 = u32::MAX - 1;

#[derive(Debug)]
pub(crate) struct WriterProxy {
    pub(crate) guid: Guid,
    pub(crate) reliable: bool,
    /// Path of acknowledgments.
    pub(crate) path: Path,
    /// The history is irrelevant: the reader is volatile, and the writer, of another vendor, does
    /// not state that.
    pub(crate) skips_history: bool,
    /// OWNERSHIP_STRENGTH of the writer.
    pub(crate) strength: i32,
    /// LIFESPAN of samples that state none.
    pub(crate) lifespan: Duration,
    /// The writer is of this vendor, so its directed heartbeats state the relevant samples.
    pub(crate) directed_heartbeats: bool,
    /// Delivery begins with a directed heartbeat, which states the relevant samples: a volatile
    /// reader of such a writer. Earlier messages are for other readers. The writer may not know
    /// this reader yet, and would not repair their samples for it.
    pub(crate) needs_directed_heartbeat: bool,
    /// INTEROP(Fast DDS 2.9.1): answers a pre-emptive ACKNACK with a heartbeat only if its base is
    /// 0; any other base restarts its heartbeat period of 3 s.
    pub(crate) preemptive_acknack_base_zero: bool,
    /// Next sample to deliver; unknown until the first heartbeat of a reliable writer.
    pub(crate) expected: Option<SequenceNumber>,
    /// Last sample that the writer had at its first heartbeat; `None` once it was delivered.
    pub(crate) history_end: Option<SequenceNumber>,
    /// A sample after `history_end` will never arrive.
    pub(crate) has_hole: bool,
    /// Lowest and highest sample that arrived while `expected` was unknown. They wait in the
    /// window, which contains both.
    pub(crate) early: Option<(SequenceNumber, SequenceNumber)>,
    /// Highest sample that the writer is known to have.
    pub(crate) announced: SequenceNumber,
    /// Highest sample that has arrived, or whose predecessors have begun to.
    pub(super) highest: SequenceNumber,
    /// Last leap of delivery, until a sample after it is delivered.
    pub(super) leap: Option<Leap>,
    /// Highest number within the window that a GAP has named.
    pub(super) marked: SequenceNumber,
    /// Best effort: first sample of which anything has arrived. Earlier ones are not owed.
    pub(super) first_received: Option<SequenceNumber>,
    /// Best effort: last numbers that a GAP has named, the end excluded.
    excused: (SequenceNumber, SequenceNumber),
    arrivals: Box<[u32]>,
    /// Number of samples that wait for earlier ones.
    pub(crate) waiting: usize,
    pub(crate) fragments: Fragments,
    pub(crate) last_heartbeat: LastCount,
    pub(crate) timer: TimerId,
    pub(crate) lease: WriterLease,
    /// Number of requests for the writer's first heartbeat.
    pub(crate) preemptive_acknacks: u32,
    pub(crate) retry_timer: RetryTimer,
    /// Whether an acknowledgment is queued.
    pub(crate) queued: bool,
    /// Delivery waits for room in the history.
    pub(crate) blocked: bool,
    /// Last sample that was refused, whole or in fragments.
    pub(crate) refused: Option<SequenceNumber>,
    /// Received changes that are not presented yet, if PRESENTATION requires holding.
    pub(crate) holding: Option<Box<Holding>>,
    /// Group information that the writer omits although the reader needs it.
    pub(crate) missing_group_info: Option<MissingGroupInfo>,
    /// The writer belongs to a durability service.
    pub(crate) is_service: bool,
    /// The reader requests the writer's history from before the match.
    pub(crate) is_late_joiner: bool,
    /// Earlier samples of the writer may be available from a service.
    pub(crate) may_lack_history: bool,
    /// Delivery waits for the history of services.
    pub(crate) awaits_services: bool,
    /// With explicit acknowledgments: samples below were taken by the application.
    pub(crate) taken: Option<SequenceNumber>,
    /// With explicit acknowledgments: first arrived sample that cannot be kept. It is never
    /// acknowledged.
    pub(crate) first_unstored: Option<SequenceNumber>,
    /// With explicit acknowledgments: samples below are acknowledged.
    pub(crate) acknowledged: Option<SequenceNumber>,
}

impl WriterProxy {
    pub(crate) fn new(guid: Guid, reliable: bool, path: Path, timer: TimerId, lease: WriterLease) -> Self {
        Self {
            guid,
            reliable,
            path,
            skips_history: false,
            strength: 0,
            lifespan: Duration::INFINITE,
            directed_heartbeats: false,
            needs_directed_heartbeat: false,
            preemptive_acknack_base_zero: false,
            expected: if reliable { None } else { Some(SequenceNumber::FIRST) },
            history_end: None,
            has_hole: false,
            early: None,
            announced: SequenceNumber::ZERO,
            highest: SequenceNumber::ZERO,
            leap: None,
            first_received: None,
            excused: (SequenceNumber::ZERO, SequenceNumber::ZERO),
            marked: SequenceNumber::ZERO,
            waiting: 0,
            arrivals: if reliable { vec![MISSING; REORDER_WINDOW as usize].into() } else { Box::default() },
            fragments: Fragments::new(reliable),
            last_heartbeat: LastCount::default(),
            timer,
            lease,
            preemptive_acknacks: 0,
            retry_timer: RetryTimer::new(),
            queued: false,
            blocked: false,
            refused: None,
            holding: None,
            missing_group_info: None,
            is_service: false,
            is_late_joiner: false,
            may_lack_history: false,
            awaits_services: false,
            taken: None,
            first_unstored: None,
            acknowledged: None,
        }
    }

    /// Reports whether all samples have been delivered that the writer had at its first heartbeat.
    /// A best-effort writer promises none.
    pub(crate) fn has_history(&self) -> bool {
        !self.reliable || (self.expected.is_some() && self.history_end.is_none())
    }

    /// Reports whether the order of presentation, or the completeness of the history, depends on
    /// the samples that the writer has. A Takt writer announces them in due course.
    pub(crate) fn waits_for_announcement(&self) -> bool {
        self.directed_heartbeats && (self.is_late_joiner || self.is_service)
    }

    fn window_index(&self, sn: SequenceNumber) -> usize {
        // The window is a power of two, and its numbers are above zero.
        (sn.0 & (REORDER_WINDOW - 1)) as usize
    }

    /// Reports whether the sample can be kept: at or above the expected one, and within the window.
    pub(crate) fn in_window(&self, sn: SequenceNumber) -> bool {
        self.expected.is_some_and(|expected| sn >= expected && sn.0 - expected.0 < REORDER_WINDOW && sn <= LAST_SAMPLE)
    }

    /// Reports whether a sample that arrives while `expected` is unknown can be kept until that is
    /// known, and records it.
    pub(crate) fn accept_early(&mut self, sn: SequenceNumber) -> bool {
        let (lowest, highest) = self.early.map_or((sn, sn), |(lowest, highest)| (lowest.min(sn), highest.max(sn)));
        let fits = highest.0 - lowest.0 < REORDER_WINDOW && sn >= SequenceNumber::FIRST && sn <= LAST_SAMPLE;
        if fits {
            self.early = Some((lowest, highest));
        }
        fits
    }

    /// Removes from the window a sample that arrived early and lies outside, once `expected` is
    /// known.
    pub(crate) fn take_misplaced(&mut self) -> Option<Stored> {
        let (lowest, highest) = self.early?;
        for number in lowest.0..=highest.0 {
            let sn = SequenceNumber(number);
            if !self.in_window(sn) {
                let arrival = self.arrival(sn);
                self.set_arrival(sn, Arrival::Missing);
                if let Arrival::Waiting(stored) = arrival {
                    self.early = Some((sn, highest));
                    return Some(stored);
                }
            }
        }
        self.early = None;
        None
    }

    /// Reports whether no sample with this number or a later one has arrived before. A part of it
    /// may have.
    pub(crate) fn is_newest(&self, sn: SequenceNumber) -> bool {
        if self.reliable { sn > self.highest } else { self.expected.is_none_or(|expected| sn >= expected) }
    }

    /// Best effort: records that the numbers from `start` to before `end` will not arrive, and are
    /// not lost. Numbers adjacent to the last GAP extend it; otherwise they replace it.
    pub(super) fn excuse(&mut self, start: SequenceNumber, end: SequenceNumber) {
        let (from, to) = self.excused;
        let is_adjacent = start <= to && end >= from;
        self.excused = if is_adjacent { (from.min(start), to.max(end)) } else { (start, end) };
    }

    /// Best effort: returns how many numbers from `start` on the last GAP has named, when `sn` has
    /// arrived. The GAP is cleared if it began before.
    pub(super) fn excused_before(&mut self, start: SequenceNumber, sn: SequenceNumber) -> i64 {
        let (from, to) = self.excused;
        if from <= sn {
            self.excused = (SequenceNumber::ZERO, SequenceNumber::ZERO);
        }
        (to.min(sn).0 - from.max(start).0).max(0)
    }

    /// Records that the writer has samples up to this one.
    pub(crate) fn announce(&mut self, last: SequenceNumber) {
        self.announced = self.announced.max(last.min(LAST_SAMPLE));
    }

    /// Records the announcement of the writer's own heartbeat, which also corrects forged or stale
    /// values.
    pub(crate) fn announce_by_heartbeat(&mut self, last: SequenceNumber) {
        self.announced = self.highest.max(last.min(LAST_SAMPLE));
    }

    /// Records that all samples up to this one were sent, because it has arrived.
    pub(crate) fn arrived(&mut self, sn: SequenceNumber) {
        self.highest = self.highest.max(sn);
        self.announce(sn);
    }

    /// Resumes delivery at `from`, or begins with the next HEARTBEAT. The window is cleared.
    pub(super) fn return_to(&mut self, from: Option<SequenceNumber>) {
        self.arrivals.fill(MISSING);
        let highest = from.map_or(SequenceNumber::ZERO, SequenceNumber::prev);
        (self.highest, self.announced, self.marked) = (highest, highest, highest);
        (self.expected, self.leap, self.refused, self.blocked) = (from, None, None, false);
        (self.acknowledged, self.taken) = (self.acknowledged.min(from), self.taken.min(from));
        self.first_unstored = self.first_unstored.filter(|first| from.is_some_and(|from| *first < from));
        if from.is_none() {
            (self.history_end, self.early, self.preemptive_acknacks) = (None, None, 0);
        }
    }

    /// Removes and returns all waiting samples.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Stored> {
        self.waiting = 0;
        let waiting = self.arrivals.iter_mut().filter(|arrival| **arrival < IRRELEVANT);
        waiting.map(|arrival| Stored(core::mem::replace(arrival, MISSING)))
    }

    /// Returns the state of a sample within the window.
    pub(crate) fn arrival(&self, sn: SequenceNumber) -> Arrival {
        match self.arrivals[self.window_index(sn)] {
            MISSING => Arrival::Missing,
            IRRELEVANT => Arrival::Irrelevant,
            stored => Arrival::Waiting(Stored(stored)),
        }
    }

    pub(crate) fn set_arrival(&mut self, sn: SequenceNumber, arrival: Arrival) {
        let value = match arrival {
            Arrival::Missing => MISSING,
            Arrival::Irrelevant => IRRELEVANT,
            Arrival::Waiting(stored) => stored.0,
        };
        let index = self.window_index(sn);
        let before = core::mem::replace(&mut self.arrivals[index], value);
        self.waiting = self.waiting + usize::from(value < IRRELEVANT) - usize::from(before < IRRELEVANT);
    }

    /// Records the arrival of a sample or a part of it. A Takt writer directs repairs to one
    /// reader. A sample of another writer is a repair if this reader waits for it.
    pub(crate) fn repaired(&mut self, now: Instant, sn: SequenceNumber, reader: EntityId) {
        let is_repair = if self.directed_heartbeats { reader != EntityId::UNKNOWN } else { self.expected == Some(sn) };
        if is_repair {
            self.retry_timer.repaired(now);
        }
    }

    /// Reports whether a heartbeat is needed although nothing is missing; if so, the next
    /// acknowledgment requests it.
    pub(crate) fn needs_heartbeat(&mut self) -> bool {
        let Some(holding) = self.holding.as_mut().filter(|holding| holding.requests_heartbeat) else { return false };
        holding.is_due = true;
        true
    }

    /// Takes whether the acknowledgment being sent requests a heartbeat. Only those caused by the
    /// timer do, because a mere answer to a heartbeat must not cause the next one.
    pub(crate) fn take_heartbeat_request(&mut self) -> bool {
        self.holding.as_mut().is_some_and(|holding| holding.take_request())
    }

    /// Reports whether an announced sample has not arrived. While the next one has arrived and
    /// waits for something else, only samples count that an acknowledgment can request.
    pub(crate) fn misses_samples(&self) -> bool {
        let Some(expected) = self.expected else { return true };
        if self.blocked || expected > self.announced {
            return false;
        }
        !self.reliable
            || self.arrival(expected) == Arrival::Missing
            || self.requestable(expected).any(|sn| self.arrival(sn) == Arrival::Missing)
    }

    /// Returns the acknowledgment base: everything below is delivered, and stored by the
    /// application if acknowledgment is explicit.
    fn acknowledgment_base(&self, expected: SequenceNumber) -> SequenceNumber {
        self.acknowledged.map_or(expected, |acknowledged| acknowledged.min(expected))
    }

    /// Returns the announced samples from `expected` on that fit into the set of an
    /// acknowledgment.
    fn requestable(&self, expected: SequenceNumber) -> impl Iterator<Item = SequenceNumber> + use<> {
        let last = self.announced.0.min(self.acknowledgment_base(expected).0.saturating_add(255));
        (expected.0..=last).map(SequenceNumber)
    }

    /// Returns the acknowledgment: everything below its base is delivered, and stored if
    /// acknowledgment is explicit. The set contains the samples that have not even begun to arrive
    /// (RTPS 2.5 §8.3.8.1).
    pub(crate) fn state(&self) -> SequenceNumberSet {
        let Some(expected) = self.expected else {
            let base = if self.preemptive_acknack_base_zero { SequenceNumber::ZERO } else { SequenceNumber::FIRST };
            return SequenceNumberSet::new(base);
        };
        let mut set = SequenceNumberSet::new(self.acknowledgment_base(expected));
        if self.blocked {
            // There would be no room for requested samples.
            return set;
        }
        for sn in self.requestable(expected) {
            if self.arrival(sn) == Arrival::Missing && !self.fragments.contains(sn) {
                set.insert(sn);
            }
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::timer::TimerKind;
    use takt_wire::Locator;
    use takt_wire::qos::Liveliness;

    #[test]
    fn acknowledgment_state_marks_missing_samples_up_to_the_last_announced() {
        let mut ctx = Context::for_tests();
        let timer = ctx.timers.register(TimerKind::Announce);
        let lease = WriterLease::new(Instant(0), &Liveliness::default(), TimerKind::Announce, &mut ctx);
        let path = Path { locator: Locator::INVALID, max_message: 1000 };
        let mut proxy = WriterProxy::new(Guid::default(), true, path, timer, lease);
        assert!(proxy.state().is_empty());
        proxy.expected = Some(SequenceNumber(1000));
        proxy.announced = SequenceNumber(1004);
        proxy.set_arrival(SequenceNumber(1001), Arrival::Irrelevant);
        proxy.set_arrival(SequenceNumber(1003), Arrival::Waiting(Stored(7)));
        let missing: alloc::vec::Vec<_> = proxy.state().iter().map(|sn| sn.0).collect();
        assert_eq!(missing, [1000, 1002, 1004]);
        assert!(proxy.in_window(SequenceNumber(1511)) && !proxy.in_window(SequenceNumber(1512)));
    }
}
