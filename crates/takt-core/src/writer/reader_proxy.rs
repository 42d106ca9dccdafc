//! What a writer knows of one matched reader (RTPS 2.5 §8.4.7.5 and §8.4.9.2).

use super::burst::{Burst, NARROW_LEN};
use super::filters::ProxyFilter;
use super::heartbeat::Questions;
use super::history::Change;
use super::path_probe::Reached;
use super::stragglers::Silence;
use crate::bits::Window;
use crate::channel::Hearing;
use crate::count::{Age, LastCount};
use crate::time::Instant;
use takt_wire::{FragmentNumberSet, Guid, Locator, SequenceNumber, SequenceNumberSet};

/// Samples whose missing fragments are remembered at once.
const FRAGMENT_REQUESTS: usize = 8;

/// The longest packet of any Ethernet in use. Only loopback takes longer ones.
const JUMBO_LEN_MAX: usize = 16_384;

/// How to reach an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) locator: Locator,
    /// Largest RTPS message in bytes that travels in one packet.
    pub(crate) max_message: usize,
}

impl Path {
    /// Whether payloads can be lent along it: it leads into the memory of this host.
    pub(crate) fn lends(&self) -> bool {
        borrows(&self.locator)
    }
}

impl Path {
    /// Whether a network may lie on it that takes shorter packets than this side: jumbo frames, not the memory of this host, nor a
    /// stream.
    pub(super) fn may_be_narrower(&self) -> bool {
        let is_datagram = matches!(self.locator.kind, Locator::KIND_UDP_V4 | Locator::KIND_UDP_V6);
        is_datagram && (NARROW_LEN + 1..=JUMBO_LEN_MAX).contains(&self.max_message)
    }
}

/// Whether payloads can be lent to whoever is there.
pub(super) fn borrows(locator: &Locator) -> bool {
    locator.kind == Locator::KIND_TAKT_SHM
}

#[derive(Debug)]
pub(crate) struct ReaderProxy {
    pub(crate) guid: Guid,
    pub(crate) reliable: bool,
    /// PUBLICATION_MATCHED counts it.
    pub(crate) is_counted: bool,
    pub(crate) path: Path,
    /// Which multicast groups lead to it.
    pub(crate) hearing: Hearing,
    /// Changes below were sent, at least in part, before the match and are not for this reader.
    pub(crate) first_relevant: SequenceNumber,
    /// Changes from here on are sent to it as they are written; older ones only on request.
    pub(crate) live_from: SequenceNumber,
    /// The send window is measured from here on at the earliest: what it fetches of before does not close the window.
    pub(crate) pace_from: SequenceNumber,
    /// It does not keep pace with the other readers: new changes are not sent to it, it fetches them from the history.
    pub(crate) is_behind: bool,
    pub(super) silence: Silence,
    /// What the path was taken to carry before longer datagrams were found not to arrive.
    narrow_from: Option<usize>,
    /// Of a best-effort reader, that its path carries long datagrams.
    pub(super) reached: Reached,
    /// What it wants, if its writer knows.
    pub(crate) filter: Option<ProxyFilter>,
    /// Changes from here on are not for it either: it hears them from another writer.
    pub(crate) relevant_below: SequenceNumber,
    /// Everything up to here is acknowledged.
    pub(crate) acked: SequenceNumber,
    pub(crate) requested: Window,
    fragment_requests: [Option<(SequenceNumber, FragmentNumberSet)>; FRAGMENT_REQUESTS],
    /// The change that is being repaired, if it is fragmented, and its next fragment.
    repairing: (SequenceNumber, u32),
    /// History still to be sent unasked to a best-effort reader.
    pub(crate) push_next: Option<SequenceNumber>,
    pub(crate) heartbeat_due: bool,
    /// What the timer asks it.
    pub(super) questions: Questions,
    pub(super) burst: Burst,
    /// Whether a repair job is queued.
    pub(crate) queued: bool,
    /// An acknowledgement showed that it has seen a heartbeat; a pre-emptive one does not.
    pub(crate) has_seen_heartbeat: bool,
    last_acknack: LastCount,
    last_nack_frag: LastCount,
}

impl ReaderProxy {
    /// Everything up to `sent` has been sent to others, at least in part.
    pub(crate) fn new(guid: Guid, reliable: bool, path: Path, sent: SequenceNumber, wants_history: bool) -> Self {
        let live_from = sent.next();
        let first_relevant = if wants_history { SequenceNumber::FIRST } else { live_from };
        Self {
            guid,
            reliable,
            is_counted: false,
            path,
            hearing: Hearing::default(),
            first_relevant,
            live_from,
            pace_from: live_from,
            is_behind: false,
            silence: Silence::default(),
            narrow_from: None,
            reached: Reached::default(),
            filter: None,
            relevant_below: SequenceNumber::MAX,
            acked: first_relevant.prev(),
            requested: Window::EMPTY,
            fragment_requests: [None; FRAGMENT_REQUESTS],
            repairing: (SequenceNumber::ZERO, 1),
            push_next: (wants_history && !reliable && sent >= SequenceNumber::FIRST).then_some(SequenceNumber::FIRST),
            heartbeat_due: reliable,
            questions: Questions::default(),
            burst: Burst::new(),
            queued: false,
            has_seen_heartbeat: false,
            last_acknack: LastCount::default(),
            last_nack_frag: LastCount::default(),
        }
    }

    /// It is to acknowledge everything up to `last`, and has not.
    pub(super) fn lags(&self, last: SequenceNumber) -> bool {
        self.reliable && self.acked < last
    }

    /// Whether it follows the writer at that number.
    pub(super) fn follows(&self, sn: SequenceNumber) -> bool {
        sn >= self.first_relevant && sn < self.relevant_below
    }

    pub(crate) fn is_relevant(&self, change: &Change) -> bool {
        self.follows(change.sn) && change.directed.allows(self.guid) && !self.rejects(change)
    }

    /// Whether its filter rejects a change.
    pub(crate) fn rejects(&self, change: &Change) -> bool {
        self.filter.is_some_and(|filter| filter.rejects(change))
    }

    /// Up to where the reader keeps pace with new changes. A late joiner that is still fetching history
    /// does not hold up the others.
    pub(crate) fn acked_live(&self) -> SequenceNumber {
        self.acked.max(self.live_from.prev())
    }

    /// Up to where the send window is open as far as it is concerned; `None` if the window does not depend on it.
    pub(crate) fn pace(&self) -> Option<SequenceNumber> {
        let keeps_pace = self.reliable && !self.is_behind && !self.silence.is_silent;
        keeps_pace.then(|| self.acked.max(self.pace_from.prev()))
    }

    /// What is repaired for it is history: it has not yet all that was written before its match, or fell behind.
    pub(crate) fn catches_up(&self) -> bool {
        self.is_behind || self.push_next.is_some() || self.acked < self.live_from.prev()
    }

    /// Up to where the writer need not keep changes for it.
    pub(crate) fn needs_above(&self) -> SequenceNumber {
        if !self.reliable {
            let pending = self.requested.lowest().unwrap_or(SequenceNumber::MAX);
            return pending.min(self.push_next.unwrap_or(SequenceNumber::MAX)).prev();
        }
        if self.silence.is_silent { SequenceNumber::MAX } else { self.acked_live() }
    }

    /// Takes an acknowledgement; false if it is stale. `unsent` is the first change not yet sent,
    /// `fragments` tells of how many fragments a change consists.
    pub(crate) fn acknowledge(
        &mut self,
        now: Instant,
        state: &SequenceNumberSet,
        count: i32,
        unsent: SequenceNumber,
        fragments: impl Fn(SequenceNumber) -> u32,
    ) -> bool {
        let age = self.last_acknack.judge(now, count);
        if age == Age::Repeated || state.base() > unsent {
            return false;
        }
        self.last_acknack.note(now, count);
        self.questions.note_answer();
        if age == Age::Restarted {
            self.last_nack_frag = LastCount::default();
        }
        let acked = state.base().prev();
        if acked < self.acked {
            self.questions.answered();
            self.begin_anew(acked);
        }
        self.has_seen_heartbeat |= state.base() > SequenceNumber::FIRST || !state.is_empty();
        self.burst.answer(now);
        self.burst.asks(state.iter(), fragments);
        if acked > self.acked {
            self.questions.answered();
            self.acked = acked;
            for request in &mut self.fragment_requests {
                request.take_if(|(sn, _)| *sn <= acked);
            }
        }
        let lowest = self.requested.lowest();
        self.requested = Window::from_set(state);
        self.requested.clear_from(unsent);
        if self.requested.lowest() != lowest {
            self.begin_repair(SequenceNumber::ZERO, 1);
        }
        true
    }

    /// It has less than it had acknowledged: it lost sight of the writer for longer than its lease, and found it again. What
    /// it asks for anew does not hold up the others, as it does not for a late joiner.
    fn begin_anew(&mut self, acked: SequenceNumber) {
        self.live_from = self.acked_live().next();
        self.pace_from = self.pace_from.max(self.live_from);
        self.acked = acked.max(self.first_relevant.prev());
        self.has_seen_heartbeat = false;
    }

    /// Whether it has ever acknowledged anything, or asked for something.
    pub(crate) fn has_answered(&self) -> bool {
        self.last_acknack.is_known()
    }

    /// A builtin reader that has answered no question: it is asked seldom in the end.
    pub(super) fn rests(&self) -> bool {
        self.guid.entity_id.is_builtin() && !self.questions.has_answered
    }

    /// Takes a request for fragments; false if it is stale.
    pub(crate) fn request_fragments(
        &mut self,
        now: Instant,
        sn: SequenceNumber,
        fragments: &FragmentNumberSet,
        count: i32,
    ) -> bool {
        if self.last_nack_frag.judge(now, count) == Age::Repeated || sn <= self.acked {
            return false;
        }
        self.last_nack_frag.note(now, count);
        let same = self.fragment_requests.iter().position(|request| request.is_some_and(|(known, _)| known == sn));
        let free = || self.fragment_requests.iter().position(Option::is_none);
        self.burst.asks_fragments(sn, fragments.iter());
        // Without a place the request is forgotten; the reader repeats it.
        if let Some(place) = same.or_else(free) {
            self.fragment_requests[place] = Some((sn, *fragments));
        }
        true
    }

    /// The requested fragments of the oldest such change.
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

    /// Something is to be sent to it. What was asked for before it can have heard of the last repairs is forgotten.
    ///
    /// Says whether the path turned out to be narrower than this side of it, and is taken to be so from now on.
    pub(super) fn begin_repairs(&mut self, now: Instant) -> bool {
        if self.reliable && !self.burst.begin(now) {
            self.forget_requests();
            self.heartbeat_due = false;
        }
        let is_narrow = self.path.may_be_narrower() && self.burst.loses_long_datagrams();
        if is_narrow {
            self.narrow();
        }
        is_narrow
    }

    /// Long datagrams do not reach it.
    pub(super) fn narrow(&mut self) {
        self.narrow_from = Some(self.path.max_message);
        self.path.max_message = NARROW_LEN;
        self.begin_repair(SequenceNumber::ZERO, 1);
    }

    /// The reader is reached by a path. Says whether that is news. What was found out about the former one holds if it is the same.
    pub(super) fn redirect(&mut self, path: Path) -> bool {
        let announced = Path { max_message: self.narrow_from.unwrap_or(self.path.max_message), ..self.path };
        if announced == path {
            return false;
        }
        (self.path, self.narrow_from, self.reached) = (path, None, Reached::default());
        true
    }

    /// Repairs of so many bytes left. What is too much for one burst is forgotten: the reader will be asked again.
    pub(super) fn repairs_left(&mut self, bytes: usize) {
        let waiting = !self.requested.is_empty() || self.fragment_requests.iter().any(Option::is_some);
        // A best-effort reader would not ask again.
        if self.burst.leaves(bytes) && waiting && self.reliable {
            self.forget_requests();
            self.heartbeat_due = true;
        }
    }

    fn forget_requests(&mut self) {
        self.requested = Window::EMPTY;
        self.fragment_requests = [None; FRAGMENT_REQUESTS];
        self.begin_repair(SequenceNumber::ZERO, 1);
    }

    /// The fragment of a change that is next to be sent again. Another change begins with its first.
    pub(crate) fn repair_fragment(&self, sn: SequenceNumber) -> u32 {
        if self.repairing.0 == sn { self.repairing.1 } else { 1 }
    }

    /// The repair of a change goes on with this fragment.
    pub(crate) fn begin_repair(&mut self, sn: SequenceNumber, fragment: u32) {
        self.repairing = (sn, fragment);
    }

    pub(crate) fn has_work(&self) -> bool {
        self.heartbeat_due
            || self.push_next.is_some()
            || !self.requested.is_empty()
            || self.fragment_requests.iter().any(Option::is_some)
    }
}
