//! What a reader knows of one matched writer (RTPS 2.5 §8.4.10.4, §8.4.12.2): which samples have arrived,
//! which are missing, and when to ask for them.

use super::fragments::Fragments;
use super::holding::Holding;
use super::leaps::Leap;
use super::liveliness::WriterLease;
use super::patience::Patience;
use crate::cache::Stored;
use crate::count::LastCount;
use crate::presentation::GroupLack;
use crate::time::Instant;
use crate::timer::TimerId;
use crate::writer::Path;
use alloc::boxed::Box;
use alloc::vec;
use takt_wire::{Duration, EntityId, Guid, SequenceNumber, SequenceNumberSet};

/// Samples above the next expected one that are kept while that one is missing.
pub(crate) const REORDER_WINDOW: i64 = 512;
/// The highest sample that is taken: nothing could follow the one above it.
pub(crate) const LAST_SAMPLE: SequenceNumber = SequenceNumber(i64::MAX - 1);

/// State of one sample number within the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    Missing,
    /// Will never come, or is not for us.
    Irrelevant,
    Waiting(Stored),
}

const MISSING: u32 = u32::MAX;
const IRRELEVANT: u32 = u32::MAX - 1;

#[derive(Debug)]
pub(crate) struct WriterProxy {
    pub(crate) guid: Guid,
    pub(crate) reliable: bool,
    /// Where acknowledgements go.
    pub(crate) path: Path,
    /// A volatile reader of a foreign writer with history: history is not for it, and the writer does not say so.
    pub(crate) skips_history: bool,
    /// OWNERSHIP_STRENGTH.
    pub(crate) strength: i32,
    /// LIFESPAN, unless a sample says otherwise.
    pub(crate) lifespan: Duration,
    /// The writer is of this vendor, so its directed heartbeats say what is for us.
    pub(crate) directed_heartbeats: bool,
    /// A volatile reader of such a writer begins with a heartbeat of its own, which says what is for it. What it hears before is
    /// meant for others: the writer may not know of it yet, and would repeat nothing of that for it.
    pub(crate) begins_as_told: bool,
    /// INTEROP(Fast DDS 2.9.1): answers a pre-emptive ACKNACK with a heartbeat only if its base is 0; any other base
    /// makes it start its heartbeat period of 3 s anew.
    pub(crate) greets_from_zero: bool,
    /// The next sample to deliver; unknown until the first heartbeat of a reliable writer.
    pub(crate) expected: Option<SequenceNumber>,
    /// The last sample that the writer had when it was first heard of; `None` once it was delivered.
    pub(crate) history_end: Option<SequenceNumber>,
    /// Of what came after that, something will never arrive.
    pub(crate) has_hole: bool,
    /// Lowest and highest sample that came while `expected` was unknown. They lie within one window and wait in it.
    pub(crate) early: Option<(SequenceNumber, SequenceNumber)>,
    /// Highest sample that the writer is known to have.
    pub(crate) announced: SequenceNumber,
    /// Highest sample that has arrived, or those before which have begun to.
    pub(super) highest: SequenceNumber,
    /// What delivery has skipped last, until a sample behind it is delivered.
    pub(super) leap: Option<Leap>,
    /// Highest number that a GAP has named within the window.
    pub(super) marked: SequenceNumber,
    /// Best effort: the first sample of which anything has arrived. Earlier ones are not owed.
    pub(super) first_heard: Option<SequenceNumber>,
    /// Best effort: the last numbers that a GAP has named, the end not included.
    excused: (SequenceNumber, SequenceNumber),
    arrivals: Box<[u32]>,
    /// How many samples wait for earlier ones.
    pub(crate) waiting: usize,
    pub(crate) fragments: Fragments,
    pub(crate) last_heartbeat: LastCount,
    pub(crate) timer: TimerId,
    pub(crate) lease: WriterLease,
    /// Waits for the writer's first heartbeat: how often it was asked.
    pub(crate) greetings: u32,
    pub(crate) patience: Patience,
    /// Whether an acknowledgement is queued.
    pub(crate) queued: bool,
    /// Delivery waits for room in the history.
    pub(crate) blocked: bool,
    /// The last sample of which fragments, or the whole, were turned away.
    pub(crate) refused: Option<SequenceNumber>,
    /// What has arrived and is not shown yet, where PRESENTATION asks for that.
    pub(crate) holding: Option<Box<Holding>>,
    /// What the writer does not say of its publisher, and the reader is to look at.
    pub(crate) group_lack: Option<GroupLack>,
    /// It passes on what others wrote.
    pub(crate) is_service: bool,
    /// The reader wants what this writer wrote before the match.
    pub(crate) is_late_joiner: bool,
    /// What it wrote before may be had from a service.
    pub(crate) may_lack_history: bool,
    /// Delivery waits for the history of services.
    pub(crate) awaits_services: bool,
    /// With explicit acknowledgements: what is below is in the application's hands.
    pub(crate) taken: Option<SequenceNumber>,
    /// With explicit acknowledgements: the first sample that has come and cannot be kept. It is never acknowledged.
    pub(crate) unkept: Option<SequenceNumber>,
    /// With explicit acknowledgements: what is below is acknowledged.
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
            begins_as_told: false,
            greets_from_zero: false,
            expected: if reliable { None } else { Some(SequenceNumber::FIRST) },
            history_end: None,
            has_hole: false,
            early: None,
            announced: SequenceNumber::ZERO,
            highest: SequenceNumber::ZERO,
            leap: None,
            first_heard: None,
            excused: (SequenceNumber::ZERO, SequenceNumber::ZERO),
            marked: SequenceNumber::ZERO,
            waiting: 0,
            arrivals: if reliable { vec![MISSING; REORDER_WINDOW as usize].into() } else { Box::default() },
            fragments: Fragments::new(reliable),
            last_heartbeat: LastCount::default(),
            timer,
            lease,
            greetings: 0,
            patience: Patience::new(),
            queued: false,
            blocked: false,
            refused: None,
            holding: None,
            group_lack: None,
            is_service: false,
            is_late_joiner: false,
            may_lack_history: false,
            awaits_services: false,
            taken: None,
            unkept: None,
            acknowledged: None,
        }
    }

    /// Whether what the writer had when it was first heard of has been delivered. A best-effort writer promises none.
    pub(crate) fn has_history(&self) -> bool {
        !self.reliable || (self.expected.is_some() && self.history_end.is_none())
    }

    /// Whether what the writer has decides about what is shown first, and about when its history is complete; a writer of ours
    /// tells that in due course.
    pub(crate) fn waits_for_contents(&self) -> bool {
        self.directed_heartbeats && (self.is_late_joiner || self.is_service)
    }

    fn place(&self, sn: SequenceNumber) -> usize {
        // A power of two, and numbers in the window are above zero.
        (sn.0 & (REORDER_WINDOW - 1)) as usize
    }

    /// Whether the sample can be kept: at or above the expected one, and within the window.
    pub(crate) fn in_window(&self, sn: SequenceNumber) -> bool {
        self.expected.is_some_and(|expected| sn >= expected && sn.0 - expected.0 < REORDER_WINDOW && sn <= LAST_SAMPLE)
    }

    /// Whether a sample that comes while `expected` is unknown can be kept until that is known. If so it is noted.
    pub(crate) fn takes_early(&mut self, sn: SequenceNumber) -> bool {
        let (lowest, highest) = self.early.map_or((sn, sn), |(lowest, highest)| (lowest.min(sn), highest.max(sn)));
        let fits = highest.0 - lowest.0 < REORDER_WINDOW && sn >= SequenceNumber::FIRST && sn <= LAST_SAMPLE;
        if fits {
            self.early = Some((lowest, highest));
        }
        fits
    }

    /// `expected` is known: takes out of the window what came early and does not lie in it.
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

    /// Whether no sample with this number, or a later one, has come before. A part of the sample may have.
    pub(crate) fn is_newest(&self, sn: SequenceNumber) -> bool {
        if self.reliable { sn > self.highest } else { self.expected.is_none_or(|expected| sn >= expected) }
    }

    /// Best effort: the numbers from `start` on and before `end` will not come, and are not lost. Numbers that follow on those of
    /// the last GAP are added to them; otherwise that is forgotten.
    pub(super) fn excuse(&mut self, start: SequenceNumber, end: SequenceNumber) {
        let (from, to) = self.excused;
        let joins = start <= to && end >= from;
        self.excused = if joins { (from.min(start), to.max(end)) } else { (start, end) };
    }

    /// Best effort: how many numbers from `start` on the last GAP has named, where `sn` has arrived. That GAP is forgotten if it
    /// began before.
    pub(super) fn excused_before(&mut self, start: SequenceNumber, sn: SequenceNumber) -> i64 {
        let (from, to) = self.excused;
        if from <= sn {
            self.excused = (SequenceNumber::ZERO, SequenceNumber::ZERO);
        }
        (to.min(sn).0 - from.max(start).0).max(0)
    }

    /// The writer has samples up to this one.
    pub(crate) fn announce(&mut self, last: SequenceNumber) {
        self.announced = self.announced.max(last.min(LAST_SAMPLE));
    }

    /// The same, from the writer's own mouth. It ends what forged or stale data have made us wait for.
    pub(crate) fn announce_by_heartbeat(&mut self, last: SequenceNumber) {
        self.announced = self.highest.max(last.min(LAST_SAMPLE));
    }

    /// All samples up to this one were sent, for it has arrived.
    pub(crate) fn arrived(&mut self, sn: SequenceNumber) {
        self.highest = self.highest.max(sn);
        self.announce(sn);
    }

    /// Delivery goes on at `from`, or begins with the next HEARTBEAT. Nothing waits, and nothing of the window is known.
    pub(super) fn return_to(&mut self, from: Option<SequenceNumber>) {
        self.arrivals.fill(MISSING);
        let highest = from.map_or(SequenceNumber::ZERO, SequenceNumber::prev);
        (self.highest, self.announced, self.marked) = (highest, highest, highest);
        (self.expected, self.leap, self.refused, self.blocked) = (from, None, None, false);
        (self.acknowledged, self.taken) = (self.acknowledged.min(from), self.taken.min(from));
        self.unkept = self.unkept.filter(|unkept| from.is_some_and(|from| *unkept < from));
        if from.is_none() {
            (self.history_end, self.early, self.greetings) = (None, None, 0);
        }
    }

    /// Everything that waits, which is forgotten here.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Stored> {
        self.waiting = 0;
        let waiting = self.arrivals.iter_mut().filter(|arrival| **arrival < IRRELEVANT);
        waiting.map(|arrival| Stored(core::mem::replace(arrival, MISSING)))
    }

    /// State of a sample within the window.
    pub(crate) fn arrival(&self, sn: SequenceNumber) -> Arrival {
        match self.arrivals[self.place(sn)] {
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
        let place = self.place(sn);
        let before = core::mem::replace(&mut self.arrivals[place], value);
        self.waiting = self.waiting + usize::from(value < IRRELEVANT) - usize::from(before < IRRELEVANT);
    }

    /// A sample, or a part of it, has arrived. A writer of ours repairs for one reader; of another one it is a repair if it
    /// is what this reader waits for.
    pub(crate) fn repaired(&mut self, now: Instant, sn: SequenceNumber, reader: EntityId) {
        let is_repair = if self.directed_heartbeats { reader != EntityId::UNKNOWN } else { self.expected == Some(sn) };
        if is_repair {
            self.patience.repaired(now);
        }
    }

    /// Whether a heartbeat is wanted though nothing is missing; if so, the next acknowledgement asks for it.
    pub(crate) fn asks_for_news(&mut self) -> bool {
        let Some(holding) = self.holding.as_mut().filter(|holding| holding.asks) else { return false };
        holding.is_due = true;
        true
    }

    /// Whether an acknowledgement that leaves now asks for it. Only those that the timer causes do: what merely answers a
    /// heartbeat must not call for the next one.
    pub(crate) fn takes_news_request(&mut self) -> bool {
        self.holding.as_mut().is_some_and(|holding| holding.takes_request())
    }

    /// Whether a sample that the writer announced has not arrived. While the next one has arrived and waits for something else, only
    /// those count that an acknowledgement can ask for.
    pub(crate) fn misses_something(&self) -> bool {
        let Some(expected) = self.expected else { return true };
        if self.blocked || expected > self.announced {
            return false;
        }
        !self.reliable
            || self.arrival(expected) == Arrival::Missing
            || self.requestable(expected).any(|sn| self.arrival(sn) == Arrival::Missing)
    }

    /// Everything below it has been delivered, and made safe if the application wants that.
    fn acknowledgement_base(&self, expected: SequenceNumber) -> SequenceNumber {
        self.acknowledged.map_or(expected, |acknowledged| acknowledged.min(expected))
    }

    /// The announced samples from `expected` on that fit the set of an acknowledgement.
    fn requestable(&self, expected: SequenceNumber) -> impl Iterator<Item = SequenceNumber> + use<> {
        let last = self.announced.0.min(self.acknowledgement_base(expected).0.saturating_add(255));
        (expected.0..=last).map(SequenceNumber)
    }

    /// The acknowledgement: everything below the base has been delivered, and made safe if the application wants that;
    /// marked are the samples that have
    /// not even begun to arrive (RTPS 2.5 §8.3.8.1).
    pub(crate) fn state(&self) -> SequenceNumberSet {
        let Some(expected) = self.expected else {
            let base = if self.greets_from_zero { SequenceNumber::ZERO } else { SequenceNumber::FIRST };
            return SequenceNumberSet::new(base);
        };
        let mut set = SequenceNumberSet::new(self.acknowledgement_base(expected));
        if self.blocked {
            // There would be no room for what we ask for.
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
    use crate::config::Limits;
    use crate::context::{Context, Timing};
    use crate::timer::TimerKind;
    use core::time::Duration;
    use takt_wire::Locator;
    use takt_wire::qos::Liveliness;

    #[test]
    fn the_state_marks_what_is_missing_below_the_last_announced() {
        let timing = Timing {
            heartbeat_first: Duration::ZERO,
            heartbeat_period: Duration::ZERO,
            nack_delay: Duration::ZERO,
            nack_suppression: Duration::ZERO,
        };
        let mut ctx = Context::new(Limits::default(), timing);
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
