//! Proxy of a matched reader at a writer (RTPS 2.5 §8.4.7.5, §8.4.9.2).

use super::burst::Burst;
use super::filters::ProxyFilter;
use super::heartbeat::HeartbeatRetries;
use super::history::Change;
use super::path_probe::PathState;
use super::slow_readers::Silence;
use crate::count::{Age, LastCount};
use crate::multicast_group::MulticastReachability;
use crate::path::{NARROW_LEN, Path};
use crate::sequence_window::SequenceWindow;
use crate::time::Instant;
use takt_wire::{FragmentNumberSet, Guid, SequenceNumber, SequenceNumberSet};

/// Maximum number of samples for which a proxy records the requested fragments at once.
const FRAGMENT_REQUESTS_MAX: usize = 8;

#[derive(Debug)]
pub(crate) struct ReaderProxy {
    pub(crate) guid: Guid,
    pub(crate) reliable: bool,
    /// The status PUBLICATION_MATCHED counts the reader.
    pub(crate) is_counted: bool,
    pub(crate) path: Path,
    /// Multicast groups that reach the reader.
    pub(crate) reachability: MulticastReachability,
    /// First change that is relevant to the reader. Earlier ones were sent, at least in part,
    /// before the match.
    pub(crate) first_relevant: SequenceNumber,
    /// First change that is sent to the reader when it is written. Relevant changes before it are
    /// history: a reliable reader requests them, to a best-effort reader they are pushed.
    pub(crate) live_from: SequenceNumber,
    /// First change that counts for the send window. The reader may still request earlier ones, but
    /// the window does not wait for their acknowledgment.
    pub(crate) pace_from: SequenceNumber,
    /// The reader does not keep pace with the others. New changes are not sent to it; it requests
    /// them from the history.
    pub(crate) is_excluded: bool,
    pub(super) silence: Silence,
    /// `path.max_message` before the path was narrowed, because longer datagrams were lost.
    narrow_from: Option<usize>,
    /// Path MTU probe result of a best-effort reader.
    pub(super) path_state: PathState,
    /// Content filter of the reader, if its writer applies one.
    pub(crate) filter: Option<ProxyFilter>,
    /// First change that is no longer relevant, because the reader receives it from another writer.
    pub(crate) relevant_below: SequenceNumber,
    /// Change up to which the reader has acknowledged all changes.
    pub(crate) acked: SequenceNumber,
    /// Changes that the reader requests and that were not sent since.
    pub(crate) requested: SequenceWindow,
    /// Fragments that the reader requests, by change.
    fragment_requests: [Option<(SequenceNumber, FragmentNumberSet)>; FRAGMENT_REQUESTS_MAX],
    /// Fragmented change being repaired and its next fragment; change zero if there is none.
    repair_position: (SequenceNumber, u32),
    /// Next change of the history to be pushed to a best-effort reader.
    pub(crate) push_next: Option<SequenceNumber>,
    pub(crate) heartbeat_due: bool,
    /// State of the heartbeats that the timer sends to the reader.
    pub(super) heartbeat_retries: HeartbeatRetries,
    /// Flow control of the repairs.
    pub(super) burst: Burst,
    /// A repair job is queued.
    pub(crate) queued: bool,
    /// An ACKNACK showed that the reader has received a heartbeat; a pre-emptive ACKNACK does not.
    pub(crate) has_seen_heartbeat: bool,
    last_acknack: LastCount,
    last_nack_frag: LastCount,
}

impl ReaderProxy {
    /// Creates a proxy. Changes up to `sent` were sent to other readers, at least in part.
    pub(crate) fn new(guid: Guid, reliable: bool, path: Path, sent: SequenceNumber, wants_history: bool) -> Self {
        let live_from = sent.next();
        let first_relevant = if wants_history { SequenceNumber::FIRST } else { live_from };
        Self {
            guid,
            reliable,
            is_counted: false,
            path,
            reachability: MulticastReachability::default(),
            first_relevant,
            live_from,
            pace_from: live_from,
            is_excluded: false,
            silence: Silence::default(),
            narrow_from: None,
            path_state: PathState::default(),
            filter: None,
            relevant_below: SequenceNumber::MAX,
            acked: first_relevant.prev(),
            requested: SequenceWindow::EMPTY,
            fragment_requests: [None; FRAGMENT_REQUESTS_MAX],
            repair_position: (SequenceNumber::ZERO, 1),
            push_next: (wants_history && !reliable && sent >= SequenceNumber::FIRST).then_some(SequenceNumber::FIRST),
            heartbeat_due: reliable,
            heartbeat_retries: HeartbeatRetries::default(),
            burst: Burst::new(),
            queued: false,
            has_seen_heartbeat: false,
            last_acknack: LastCount::default(),
            last_nack_frag: LastCount::default(),
        }
    }

    /// Reports whether the reader is reliable and has not acknowledged all changes up to `last`.
    pub(super) fn lags(&self, last: SequenceNumber) -> bool {
        self.reliable && self.acked < last
    }

    /// Reports whether the change is in the range of changes that are relevant to the reader.
    pub(super) fn covers(&self, sn: SequenceNumber) -> bool {
        sn >= self.first_relevant && sn < self.relevant_below
    }

    /// Reports whether the reader receives the change: it is in the range, directed to the reader
    /// or to all, and not rejected by the filter.
    pub(crate) fn is_relevant(&self, change: &Change) -> bool {
        self.covers(change.sn) && change.directed.allows(self.guid) && !self.rejects(change)
    }

    /// Reports whether the reader's filter rejects a change.
    pub(crate) fn rejects(&self, change: &Change) -> bool {
        self.filter.is_some_and(|filter| filter.rejects(change))
    }

    /// Returns the change up to which the reader has acknowledged all live changes. History that it
    /// still requests does not count, so that a late joiner does not delay the other readers.
    pub(crate) fn acked_live(&self) -> SequenceNumber {
        self.acked.max(self.live_from.prev())
    }

    /// Returns the change up to which the send window is open for this reader; `None` if the window
    /// does not depend on it.
    pub(crate) fn pace(&self) -> Option<SequenceNumber> {
        let keeps_pace = self.reliable && !self.is_excluded && !self.silence.is_silent;
        keeps_pace.then(|| self.acked.max(self.pace_from.prev()))
    }

    /// Reports whether the repairs of this reader are history: it lacks changes from before its
    /// match, or is excluded.
    pub(crate) fn catches_up(&self) -> bool {
        self.is_excluded || self.push_next.is_some() || self.acked < self.live_from.prev()
    }

    /// Returns the change up to which the writer need not keep changes for the reader.
    pub(crate) fn needs_above(&self) -> SequenceNumber {
        if !self.reliable {
            let pending = self.requested.lowest().unwrap_or(SequenceNumber::MAX);
            return pending.min(self.push_next.unwrap_or(SequenceNumber::MAX)).prev();
        }
        if self.silence.is_silent { SequenceNumber::MAX } else { self.acked_live() }
    }

    /// Handles an ACKNACK with this set and count. Returns false if it is stale, or acknowledges
    /// changes that were not sent. `unsent` is the first change not yet sent, `fragments` returns
    /// the number of fragments of a change.
    pub(crate) fn acknowledge(
        &mut self,
        now: Instant,
        state: &SequenceNumberSet,
        count: i32,
        unsent: SequenceNumber,
        fragments: impl Fn(SequenceNumber) -> u32,
    ) -> bool {
        let age = self.last_acknack.classify(now, count);
        if age == Age::Repeated || state.base() > unsent {
            return false;
        }
        self.last_acknack.note(now, count);
        self.heartbeat_retries.record_answer();
        if age == Age::Restarted {
            self.last_nack_frag = LastCount::default();
        }
        let acked = state.base().prev();
        if acked < self.acked {
            self.heartbeat_retries.acknowledged();
            self.restart(acked);
        }
        self.has_seen_heartbeat |= state.base() > SequenceNumber::FIRST || !state.is_empty();
        self.burst.answer(now);
        self.burst.evaluate_request(state.iter(), fragments);
        if acked > self.acked {
            self.heartbeat_retries.acknowledged();
            self.acked = acked;
            for request in &mut self.fragment_requests {
                request.take_if(|(sn, _)| *sn <= acked);
            }
        }
        let lowest = self.requested.lowest();
        self.requested = SequenceWindow::from_set(state);
        self.requested.clear_from(unsent);
        if self.requested.lowest() != lowest {
            self.reset_repair();
        }
        true
    }

    /// Handles an acknowledgment of fewer changes than before: the reader lost the writer for
    /// longer than its lease and rediscovered it. Like a late joiner, it does not delay the other
    /// readers.
    fn restart(&mut self, acked: SequenceNumber) {
        self.live_from = self.acked_live().next();
        self.pace_from = self.pace_from.max(self.live_from);
        self.acked = acked.max(self.first_relevant.prev());
        self.has_seen_heartbeat = false;
    }

    /// Reports whether the reader has ever acknowledged or requested a change.
    pub(crate) fn has_answered(&self) -> bool {
        self.last_acknack.is_known()
    }

    /// Reports whether this is a builtin reader that has answered no heartbeat. After a number of
    /// them it gets heartbeats at longer intervals ([`super::heartbeat`]).
    pub(super) fn is_unresponsive_builtin(&self) -> bool {
        self.guid.entity_id.is_builtin() && !self.heartbeat_retries.has_answered
    }

    /// Handles a NACK_FRAG; returns false if it is stale.
    pub(crate) fn request_fragments(
        &mut self,
        now: Instant,
        sn: SequenceNumber,
        fragments: &FragmentNumberSet,
        count: i32,
    ) -> bool {
        if self.last_nack_frag.classify(now, count) == Age::Repeated || sn <= self.acked {
            return false;
        }
        self.last_nack_frag.note(now, count);
        let same = self.fragment_requests.iter().position(|request| request.is_some_and(|(known, _)| known == sn));
        let free = || self.fragment_requests.iter().position(Option::is_none);
        self.burst.evaluate_fragment_request(sn, fragments.iter());
        // Without a slot the request is dropped; the reader repeats it.
        if let Some(slot) = same.or_else(free) {
            self.fragment_requests[slot] = Some((sn, *fragments));
        }
        true
    }

    /// Returns the oldest change of which fragments are requested, and these fragments.
    pub(crate) fn next_fragment_request(&self) -> Option<(SequenceNumber, FragmentNumberSet)> {
        self.fragment_requests.iter().flatten().min_by_key(|(sn, _)| *sn).copied()
    }

    /// Replaces the requested fragments of a change; an empty set ends the request.
    pub(crate) fn set_fragment_request(&mut self, sn: SequenceNumber, fragments: FragmentNumberSet) {
        for request in &mut self.fragment_requests {
            if request.is_some_and(|(known, _)| known == sn) {
                *request = (!fragments.is_empty()).then_some((sn, fragments));
            }
        }
    }

    /// Begins a burst of repairs. Requests that the reader sent before it can have received the
    /// last burst are dropped.
    ///
    /// If the losses show that the path has a smaller MTU, narrows the path and returns true.
    pub(super) fn begin_burst(&mut self, now: Instant) -> bool {
        if self.reliable && !self.burst.begin(now) {
            self.clear_requests();
            self.heartbeat_due = false;
        }
        let is_narrow = self.path.may_be_narrower() && self.burst.path_is_narrow();
        if is_narrow {
            self.narrow();
        }
        is_narrow
    }

    /// Reduces the length of datagrams to the reader, because long ones do not arrive.
    pub(super) fn narrow(&mut self) {
        self.narrow_from = Some(self.path.max_message);
        self.path.max_message = NARROW_LEN;
        self.reset_repair();
    }

    /// Sets the path to the reader. Returns whether it has changed. What was found out about an
    /// unchanged path (its MTU) stays valid.
    pub(super) fn redirect(&mut self, path: Path) -> bool {
        let announced = Path { max_message: self.narrow_from.unwrap_or(self.path.max_message), ..self.path };
        if announced == path {
            return false;
        }
        (self.path, self.narrow_from, self.path_state) = (path, None, PathState::default());
        true
    }

    /// Records a datagram with repairs. At the end of a burst the remaining requests are dropped,
    /// because a heartbeat then makes the reader repeat them.
    pub(super) fn record_repairs(&mut self, bytes: usize) {
        let waiting = !self.requested.is_empty() || self.fragment_requests.iter().any(Option::is_some);
        // A best-effort reader would not repeat its requests.
        if self.burst.record_datagram(bytes) && waiting && self.reliable {
            self.clear_requests();
            self.heartbeat_due = true;
        }
    }

    fn clear_requests(&mut self) {
        self.requested = SequenceWindow::EMPTY;
        self.fragment_requests = [None; FRAGMENT_REQUESTS_MAX];
        self.reset_repair();
    }

    /// Returns the next fragment of a change to be repaired: the first one, unless the repair of
    /// this change was interrupted.
    pub(crate) fn repair_fragment(&self, sn: SequenceNumber) -> u32 {
        if self.repair_position.0 == sn { self.repair_position.1 } else { 1 }
    }

    /// Makes the repair of a change continue with this fragment.
    pub(crate) fn set_repair_position(&mut self, sn: SequenceNumber, fragment: u32) {
        self.repair_position = (sn, fragment);
    }

    /// Makes every repair begin with the first fragment.
    pub(super) fn reset_repair(&mut self) {
        self.repair_position = (SequenceNumber::ZERO, 1);
    }

    /// Reports whether a heartbeat or a repair is to be sent to the reader.
    pub(crate) fn has_work(&self) -> bool {
        self.heartbeat_due
            || self.push_next.is_some()
            || !self.requested.is_empty()
            || self.fragment_requests.iter().any(Option::is_some)
    }
}
