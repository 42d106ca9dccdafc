//! Holding of received changes that are not presented yet: coherent sets that have not ended, and
//! changes in the order of a publisher (RTPS 2.5 §8.7.5, §8.7.6).
//!
//! A reader that requests coherent access, or whose subscriber preserves the order of a publisher,
//! has a [`Holding`] for each writer that offers it. The next change of a writer enters at one end,
//! in the writer's order. Changes that may be presented leave at the other end: here for single
//! writers, in `participant/groups.rs` for those of a group.
//!
//! A *part* is the contribution of one writer to a set. It is complete if all numbers from its
//! first change to its end have arrived. Otherwise its changes are dropped and counted as lost.
//! Held changes are acknowledged, and do not belong to the history: RESOURCE_LIMITS bounds both
//! separately.
//!
//! INTEROP(zzdds 0.2): a writer that offers the scope GROUP and omits group sequence numbers, or
//! the group sets of its coherent sets, never ends a group set. From the first such change on its
//! sets are presented as with the scope TOPIC. A writer whose HEARTBEATs lack group information is
//! requested to send one when others wait for it. Changes that it has not written by then are later
//! than those waiting to be presented. [`crate::Participant::cautions`] reports both.

use super::writer_proxy::Arrival;
use super::{Reader, deadline};
use crate::cache::{NoRoom, Stored};
use crate::context::Context;
use crate::event::Event;
use crate::presentation::{MissingGroupInfo, SetPosition};
use crate::status::SampleRejectedReason;
use crate::time::Instant;
use takt_wire::message::Heartbeat;
use takt_wire::{Guid, SequenceNumber};

/// Maximum number of doublings of the wait; see [`Reader::request_heartbeat`].
const REQUEST_DOUBLINGS_MAX: u32 = 7;

/// Held changes of one writer.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    /// Publisher, if the writer's changes wait for those of its other writers.
    pub(crate) publisher: Option<Guid>,
    first: Option<Stored>,
    last: Option<Stored>,
    /// Number of complete parts among them.
    closed: usize,
    open: Option<Part>,
    /// Changes are presented as soon as the history has room.
    pub(crate) waits: bool,
    /// Group sequence number up to which all changes of the writer have arrived, or will not
    /// arrive.
    pub(crate) frontier: SequenceNumber,
    /// Last group set that the writer has ended, and the group sequence number of its end.
    pub(crate) ended: (SequenceNumber, SequenceNumber),
    /// Group information of a heartbeat, to be applied once all announced changes have arrived: the
    /// last change, and the group sequence number up to which the writer has no later one.
    pending_info: Option<(SequenceNumber, SequenceNumber)>,
    /// Others wait for this writer. Its heartbeat is requested until it arrives.
    pub(crate) requests_heartbeat: bool,
    /// The next acknowledgment requests a heartbeat.
    pub(crate) is_due: bool,
    /// Group sequence number for which others wait, and the one for which an acknowledgment has
    /// requested a heartbeat.
    wanted: SequenceNumber,
    requested: Option<SequenceNumber>,
    /// Number of requests since an answer last let others continue.
    requests_sent: u32,
    /// Changes after `frontier` are missing.
    has_gap: bool,
    /// Range of group sets with missing changes.
    pub(crate) broken: Option<Range>,
}

/// Range of group sets, by the numbers of their first changes; both ends are excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) after: SequenceNumber,
    pub(crate) before: SequenceNumber,
}

impl Range {
    pub(crate) fn contains(&self, set: SequenceNumber) -> bool {
        self.after < set && set < self.before
    }

    /// Returns the union of both ranges, including the sets between them.
    pub(crate) fn join(self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        Self { after: self.after.min(other.after), before: self.before.max(other.before) }
    }
}

/// Part of a coherent set that has arrived so far.
#[derive(Debug)]
struct Part {
    set: SequenceNumber,
    group_set: SequenceNumber,
    /// Number of the next change.
    next: SequenceNumber,
    /// No change is missing, and there was room for all.
    intact: bool,
    count: usize,
    /// Last held change before the part.
    previous: Option<Stored>,
}

impl Holding {
    pub(crate) fn new(publisher: Option<Guid>) -> Self {
        Self { publisher, ..Self::default() }
    }

    /// Returns the change that is presented next.
    pub(crate) fn front(&self) -> Option<Stored> {
        self.first
    }

    /// Reports whether the first held change, a member of a set, belongs to a complete part.
    pub(crate) fn front_is_closed(&self) -> bool {
        self.closed > 0
    }

    /// Removes the first held change; `after` becomes the first.
    fn remove_front(&mut self, front: Stored, after: Option<Stored>) {
        self.first = after;
        if after.is_none() {
            self.last = None;
        }
        if let Some(part) = self.open.as_mut().filter(|part| part.previous == Some(front)) {
            part.previous = None;
        }
    }

    /// Stops waiting for the group, because a change has no group sequence number, or is in a set
    /// without a group set.
    fn leave_group_order(&mut self) {
        self.publisher = None;
    }

    /// Records that the first change to arrive is not the writer's first one.
    pub(crate) fn begin_late(&mut self, start: SequenceNumber) {
        self.has_gap |= start > SequenceNumber::FIRST;
    }

    /// Advances to the next change with a group sequence number. Changes missing before it may
    /// belong to any set that the writer had not ended; before the first change of a set, to an
    /// earlier one. A set without its first change is not intact.
    fn advance(&mut self, position: &SetPosition) {
        let begins = position.is_member() && position.group_set.is_valid();
        self.end_gap(if begins { position.group_set } else { position.gsn });
        self.advance_frontier(position.gsn);
    }

    /// Ends a gap after `frontier`: the missing changes were made before this group sequence
    /// number.
    fn end_gap(&mut self, before: SequenceNumber) {
        if core::mem::take(&mut self.has_gap) {
            let range = Range { after: self.ended.1, before };
            self.broken = Some(range.join(self.broken));
        }
    }

    /// Records that all changes up to this group sequence number have arrived, or will not arrive.
    fn advance_frontier(&mut self, gsn: SequenceNumber) {
        if gsn > self.frontier {
            self.frontier = gsn;
            self.requests_sent = 0;
        }
    }

    /// Takes whether the acknowledgment being sent requests a heartbeat.
    pub(super) fn take_request(&mut self) -> bool {
        let is_due = core::mem::take(&mut self.is_due);
        if is_due {
            self.requested = Some(self.wanted);
        }
        is_due
    }

    /// Handles a heartbeat with group information, or one that answers a request by its arrival.
    /// `expected` is the next change to arrive.
    fn record_heartbeat(&mut self, last_sn: SequenceNumber, gsn: Option<SequenceNumber>, expected: SequenceNumber) {
        let Some(gsn) = gsn.or(self.requested) else { return };
        (self.requests_heartbeat, self.is_due, self.requested) = (false, false, None);
        self.pending_info = Some((last_sn, gsn));
        self.apply_pending_info(expected);
    }

    fn apply_pending_info(&mut self, expected: SequenceNumber) {
        if let Some((last_sn, gsn)) = self.pending_info.take_if(|(last_sn, _)| *last_sn < expected) {
            // Changes missing after the last announced one may belong to later sets.
            let gap_continues = self.has_gap && last_sn.next() < expected;
            self.end_gap(gsn.next());
            self.has_gap |= gap_continues;
            self.advance_frontier(gsn);
        }
    }
}

/// Presentation of a reader's samples together with those of the subscriber's other readers.
#[derive(Debug, Default)]
pub(crate) struct GroupPresentation {
    /// Number of held changes of all writers.
    pub(crate) held: usize,
    /// The samples share one order with those of the other readers.
    pub(crate) shares_order: bool,
    /// No held change may be presented, because the application is reading.
    pub(crate) is_frozen: bool,
    /// The most changes are held, and none of them can be presented.
    pub(crate) needs_relief: bool,
}

impl Reader {
    /// As [`Reader::deliver`], for a writer with held changes.
    pub(super) fn deliver_held(&mut self, ctx: &mut Context, index: u32, now: Instant) {
        let Some(start) = self.proxies.get(index).and_then(|proxy| proxy.expected) else { return };
        let mut expected = start;
        let mut refused = None;
        while let Some(proxy) = self.proxies.get_mut(index).filter(|proxy| !proxy.blocked) {
            match proxy.arrival(expected) {
                Arrival::Missing => break,
                Arrival::Irrelevant => self.record_missing(ctx, index),
                Arrival::Waiting(stored) => {
                    if let Err(reason) = self.hold_next(ctx, index, now, stored) {
                        refused = Some(reason);
                    }
                }
            }
            let Some(proxy) = self.proxies.get_mut(index) else { return };
            if refused.is_some() {
                proxy.blocked = true;
                break;
            }
            proxy.set_arrival(expected, Arrival::Missing);
            expected = expected.next();
            proxy.expected = Some(expected);
        }
        ctx.work.steps((expected.0 - start.0) as usize);
        if let Some(proxy) = self.proxies.get_mut(index) {
            proxy.fragments.drop_below(expected, &mut self.cache.pool, &mut self.reassembly);
            if let Some(holding) = &mut proxy.holding {
                holding.apply_pending_info(expected);
                ctx.groups_changed |= holding.publisher.is_some();
            }
        }
        if let Some(reason) = refused {
            self.room.any_blocked = true;
            self.room.blocked_at = self.cache.releases();
            self.count_rejection(ctx, reason);
        }
        self.present_independent(ctx, index, now);
        self.note_history(now, ctx, index);
    }

    /// As [`Reader::deliver_best_effort`], for a writer with held changes.
    pub(super) fn hold_best_effort(&mut self, ctx: &mut Context, index: u32, now: Instant, stored: Option<Stored>) {
        if stored.is_none() {
            self.record_missing(ctx, index);
        }
        if let Some(stored) = stored
            && let Err(reason) = self.hold_next(ctx, index, now, stored)
        {
            self.cache.discard(stored);
            self.record_missing(ctx, index);
            self.count_rejection(ctx, reason);
        }
        ctx.groups_changed |= self.presentation.shares_order || self.group.is_some();
        self.present_independent(ctx, index, now);
    }

    /// Records that a change will not arrive.
    pub(super) fn record_missing(&mut self, ctx: &mut Context, index: u32) {
        let Some(holding) = self.proxies.get_mut(index).and_then(|proxy| proxy.holding.as_mut()) else { return };
        holding.has_gap = true;
        if holding.open.is_some() {
            self.break_part(ctx, index);
        }
    }

    /// Holds the next change of a writer. `Err` if there is no room at present.
    pub(super) fn hold_next(
        &mut self,
        ctx: &mut Context,
        index: u32,
        now: Instant,
        stored: Stored,
    ) -> Result<(), SampleRejectedReason> {
        let (position, sn) = self.cache.position_of(stored);
        let Some(holding) = self.proxies.get_mut(index).and_then(|proxy| proxy.holding.as_mut()) else { return Ok(()) };
        let is_member = position.is_member() && self.data.presentation.coherent_access;
        let names_its_group = position.gsn.is_valid() && (position.group_set.is_valid() || !is_member);
        if holding.publisher.is_some() && !names_its_group {
            holding.leave_group_order();
            self.record_missing_group_info(ctx, index, MissingGroupInfo::Numbers);
        }
        let Some(holding) = self.proxies.get_mut(index).and_then(|proxy| proxy.holding.as_mut()) else { return Ok(()) };
        if holding.open.as_ref().is_some_and(|part| position.ends || part.set != position.set) {
            self.close_part(ctx, index);
        }
        let Some(holding) = self.proxies.get_mut(index).and_then(|proxy| proxy.holding.as_mut()) else { return Ok(()) };
        if is_member {
            let (set, group_set, behind) = (position.set, position.group_set, holding.last);
            let open = || Part { set, group_set, next: set, intact: true, count: 0, previous: behind };
            let part = holding.open.get_or_insert_with(open);
            part.intact &= sn == part.next;
            if part.intact && !position.absorbed && self.presentation.held >= self.cache.max_samples() {
                // If the application has nothing to take that would free room, the part is dropped.
                part.intact = part.count < self.presentation.held && !self.cache.is_empty();
                if part.intact {
                    return Err(SampleRejectedReason::SamplesLimit);
                }
            }
            part.next = sn.next();
        } else if !position.ends && !position.absorbed {
            if holding.publisher.is_none() && holding.first.is_none() {
                return self.present(ctx, index, stored, now);
            }
            if self.presentation.held >= self.cache.max_samples() {
                self.presentation.needs_relief |= self.cache.is_empty();
                return Err(SampleRejectedReason::SamplesLimit);
            }
        }
        if position.gsn.is_valid() {
            holding.advance(&position);
            if position.ends {
                holding.ended = (position.group_set, position.gsn);
            }
        }
        let is_broken = is_member && holding.open.as_ref().is_some_and(|part| !part.intact);
        if is_broken {
            self.break_part(ctx, index);
        }
        if position.ends || position.absorbed || is_broken {
            self.cache.discard(stored);
            self.count_lost(ctx, u64::from(is_broken && !position.absorbed));
            return Ok(());
        }
        self.append_held(index, stored, is_member);
        Ok(())
    }

    /// Records group information that the writer omits.
    fn record_missing_group_info(&mut self, ctx: &mut Context, index: u32, missing: MissingGroupInfo) {
        if let Some(proxy) = self.proxies.get_mut(index).filter(|proxy| proxy.missing_group_info != Some(missing)) {
            proxy.missing_group_info = Some(missing);
            ctx.notify(Event::PairsCautioned);
        }
    }

    /// Handles the group information of a heartbeat (RTPS 2.5 §8.3.8.6).
    pub(super) fn handle_group_info(&mut self, ctx: &mut Context, index: u32, heartbeat: &Heartbeat) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let (Some(holding), Some(expected)) = (&mut proxy.holding, proxy.expected) else { return };
        holding.record_heartbeat(heartbeat.last_sn, heartbeat.group.as_ref().map(|group| group.current_gsn), expected);
        let is_of_group = holding.publisher.is_some();
        ctx.groups_changed |= is_of_group;
        if is_of_group && heartbeat.group.is_none() {
            self.record_missing_group_info(ctx, index, MissingGroupInfo::Heartbeats);
        }
    }

    fn append_held(&mut self, index: u32, stored: Stored, is_member: bool) {
        let Some(holding) = self.proxies.get_mut(index).and_then(|proxy| proxy.holding.as_mut()) else { return };
        if let Some(part) = holding.open.as_mut().filter(|_| is_member) {
            part.count += 1;
        }
        match holding.last.replace(stored) {
            Some(last) => self.cache.link(last, stored),
            None => holding.first = Some(stored),
        }
        self.presentation.held += 1;
    }

    /// Completes the open part.
    fn close_part(&mut self, ctx: &mut Context, index: u32) {
        let Some(holding) = self.proxies.get_mut(index).and_then(|proxy| proxy.holding.as_mut()) else { return };
        let Some(part) = holding.open.take() else { return };
        if part.intact
            && let Some(last) = holding.last.filter(|_| part.count > 0)
        {
            holding.closed += 1;
            self.cache.close(last);
        } else if !part.intact {
            ctx.counters.dropped_coherent_sets += 1;
        }
    }

    /// Breaks the open part, because a change of it is missing: its received changes are dropped,
    /// and later ones will be.
    fn break_part(&mut self, ctx: &mut Context, index: u32) {
        let Some(holding) = self.proxies.get_mut(index).and_then(|proxy| proxy.holding.as_mut()) else { return };
        let Some(part) = &mut holding.open else { return };
        part.intact = false;
        let count = core::mem::take(&mut part.count);
        let mut next = match part.previous {
            Some(behind) => self.cache.split_after(behind),
            None => holding.first.take(),
        };
        holding.last = part.previous;
        if part.group_set.is_valid() {
            let range = Range { after: part.group_set.prev(), before: part.group_set.next() };
            holding.broken = Some(range.join(holding.broken));
        }
        while let Some(stored) = next {
            next = self.cache.held_after(stored);
            self.cache.discard(stored);
        }
        self.presentation.held -= count;
        self.count_lost(ctx, count as u64);
    }

    fn count_lost(&mut self, ctx: &mut Context, count: u64) {
        if count > 0 {
            self.statuses.lost.add(count);
            ctx.notify(Event::SampleLost(self.handle));
        }
    }

    /// Removes the first held change.
    fn pop_held(&mut self, index: u32) -> Option<(Stored, SetPosition)> {
        let holding = self.proxies.get_mut(index)?.holding.as_mut()?;
        let stored = holding.first?;
        holding.remove_front(stored, self.cache.held_after(stored));
        let (position, _) = self.cache.position_of(stored);
        holding.closed -= usize::from(position.closes);
        self.presentation.held -= 1;
        Some((stored, position))
    }

    /// Requests a heartbeat because others wait for this writer up to a group sequence number, and
    /// its heartbeat may have been lost. While its answers let no reader continue, the wait before
    /// the next request doubles, from `nack_suppression` up to 128 times that.
    pub(crate) fn request_heartbeat(&mut self, ctx: &mut Context, index: u32, gsn: SequenceNumber, now: Instant) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let Some(holding) = &mut proxy.holding else { return };
        holding.wanted = gsn;
        if !core::mem::replace(&mut holding.requests_heartbeat, true) {
            let wait = ctx.timing.nack_suppression * 2_u32.pow(holding.requests_sent.min(REQUEST_DOUBLINGS_MAX));
            holding.requests_sent += 1;
            ctx.timers.arm_by(proxy.timer, now.after(wait));
        }
    }

    /// Presents what is due of writers that wait for no other.
    pub(crate) fn present_all_independent(&mut self, ctx: &mut Context, now: Instant) {
        let mut from = 0;
        while let Some(index) = self.proxies.next_index(from) {
            from = index + 1;
            ctx.work.steps(1);
            self.present_independent(ctx, index, now);
        }
    }

    /// Passes a held change to the history.
    fn present(
        &mut self,
        ctx: &mut Context,
        index: u32,
        stored: Stored,
        now: Instant,
    ) -> Result<(), SampleRejectedReason> {
        ctx.work.steps(1);
        if self.presentation.shares_order {
            self.cache.advance_arrivals(ctx.arrivals);
        }
        if let Some(proxy) = self.proxies.get(index) {
            self.cache.set_writer_alive(stored, proxy.lease.alive);
        }
        let delivered = self.cache.deliver(stored, ctx.clocks(now), self.key.as_mut())?;
        if self.presentation.shares_order {
            ctx.arrivals = self.cache.arrivals();
        }
        deadline::delivered(&mut self.deadline, now, ctx, delivered);
        self.notify_available(ctx);
        self.arm_upkeep(now, ctx);
        Ok(())
    }

    /// Presents what is due of a writer that waits for no other.
    pub(crate) fn present_independent(&mut self, ctx: &mut Context, index: u32, now: Instant) {
        loop {
            let Some(holding) = self.proxies.get_mut(index).and_then(|proxy| proxy.holding.as_mut()) else { return };
            if holding.publisher.is_some() || self.presentation.is_frozen {
                return;
            }
            holding.waits = false;
            let Some(front) = holding.first else { return };
            let (position, _) = self.cache.position_of(front);
            if !position.is_member() {
                if !self.present_front(ctx, index, now) {
                    return;
                }
                continue;
            }
            if holding.closed == 0 {
                return;
            }
            match self.reserve_part(ctx, index).and_then(|()| self.cache.check_reservations()) {
                Ok(()) => self.present_part(ctx, index, now),
                Err(no_room) => {
                    self.release_part(index);
                    self.cache.end_reservations();
                    if no_room == NoRoom::Temporarily {
                        return self.wait_for_room(index);
                    }
                    self.drop_part(ctx, index);
                    ctx.counters.dropped_coherent_sets += 1;
                }
            }
        }
    }

    /// Presents the held changes of a writer once the application has freed room.
    pub(crate) fn wait_for_room(&mut self, index: u32) {
        if let Some(holding) = self.proxies.get_mut(index).and_then(|proxy| proxy.holding.as_mut()) {
            holding.waits = true;
            self.room.any_blocked = true;
            self.room.blocked_at = self.cache.releases();
        }
    }

    /// Presents the first held change; returns false if there is no room.
    pub(crate) fn present_front(&mut self, ctx: &mut Context, index: u32, now: Instant) -> bool {
        let Some(front) = self.proxies.get(index).and_then(|proxy| proxy.holding.as_ref()?.first) else { return false };
        // The link of a held change is reused when the change is delivered.
        let after = self.cache.held_after(front);
        if let Err(reason) = self.present(ctx, index, front, now) {
            self.wait_for_room(index);
            self.count_rejection(ctx, reason);
            return false;
        }
        let Some(holding) = self.proxies.get_mut(index).and_then(|proxy| proxy.holding.as_mut()) else { return false };
        holding.remove_front(front, after);
        self.presentation.held -= 1;
        true
    }

    /// Reserves room for the first part.
    pub(crate) fn reserve_part(&mut self, ctx: &mut Context, index: u32) -> Result<(), NoRoom> {
        let front = self.proxies.get(index).and_then(|proxy| proxy.holding.as_ref()?.first);
        let Some(front) = front else { return Ok(()) };
        let (result, steps) = self.cache.reserve(front, self.key.as_mut());
        ctx.work.steps(steps);
        result
    }

    /// Releases the room reserved for the first part.
    pub(crate) fn release_part(&mut self, index: u32) {
        if let Some(front) = self.proxies.get(index).and_then(|proxy| proxy.holding.as_ref()?.first) {
            self.cache.release_reservations(front);
        }
    }

    /// Presents the first part, for which room is reserved.
    fn present_part(&mut self, ctx: &mut Context, index: u32, now: Instant) {
        self.cache.end_reservations();
        while !self.present_member(ctx, index, now) {}
    }

    /// Presents the first change, a member of a set with reserved room. Returns true if it was the
    /// last one of its part.
    pub(crate) fn present_member(&mut self, ctx: &mut Context, index: u32, now: Instant) -> bool {
        let Some((stored, position)) = self.pop_held(index) else { return true };
        self.cache.release_reservation(stored);
        if let Err(reason) = self.present(ctx, index, stored, now) {
            // There was room for the change, but not for one that it released from the time-based
            // filter.
            self.cache.discard(stored);
            self.count_rejection(ctx, reason);
        }
        position.closes
    }

    /// Drops the first part, complete or not.
    pub(crate) fn drop_part(&mut self, ctx: &mut Context, index: u32) {
        let holding = self.proxies.get(index).and_then(|proxy| proxy.holding.as_ref());
        if holding.is_some_and(|holding| holding.closed == 0) {
            return self.break_part(ctx, index);
        }
        let mut count = 0;
        while let Some((stored, position)) = self.pop_held(index) {
            self.cache.discard(stored);
            count += 1;
            if position.closes {
                break;
            }
        }
        ctx.work.steps(count as usize);
        self.count_lost(ctx, count);
    }

    /// Drops all held changes of an unmatched writer, and records the group sets that are now
    /// incomplete.
    pub(super) fn drop_held(&mut self, ctx: &mut Context, holding: &mut Holding) {
        let mut count = 0;
        let mut next = holding.first.take();
        while let Some(stored) = next {
            next = self.cache.held_after(stored);
            self.cache.discard(stored);
            count += 1;
        }
        self.presentation.held -= count;
        ctx.counters.dropped_coherent_sets += u64::from(holding.open.is_some()) + holding.closed as u64;
        self.count_lost(ctx, count as u64);
    }

    /// Frees room by dropping the open part of the writer with the most held changes, if nothing
    /// else can. Changes that wait for other writers of a group are released soon anyway.
    pub(super) fn drop_an_open_part(&mut self, ctx: &mut Context) -> bool {
        let size = |proxy: &super::WriterProxy| {
            proxy.holding.as_ref().and_then(|holding| Some(holding.open.as_ref()?.count)).unwrap_or(0)
        };
        let largest = self.proxies.iter().map(|(index, proxy)| (size(proxy), index)).max();
        match largest {
            Some((count, index)) if count > 0 && self.cache.is_empty() => {
                self.break_part(ctx, index);
                true
            }
            _ => {
                self.presentation.needs_relief |= self.presentation.held > 0 && self.cache.is_empty();
                ctx.groups_changed |= self.presentation.needs_relief;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn sn(number: i64) -> SequenceNumber {
        SequenceNumber(number)
    }

    /// Seed 771574: a heartbeat announced the group sequence number 393 for the change 313. Then
    /// 313 to 315 turned out to have been replaced at once, and 316 ended the set whose only change
    /// was 315. The set was presented without it.
    #[test]
    fn gap_beyond_what_a_heartbeat_announced_breaks_later_sets() {
        let mut holding = Holding { ended: (sn(389), sn(392)), frontier: sn(392), ..Holding::default() };
        holding.record_heartbeat(sn(313), Some(sn(393)), sn(313));
        holding.has_gap = true;
        holding.apply_pending_info(sn(316));
        assert!(holding.broken.is_some_and(|range| range.contains(sn(393))), "313 may have been a set of its own");
        let end = SetPosition { group_set: sn(395), gsn: sn(397), ends: true, ..SetPosition::default() };
        holding.advance(&end);
        assert!(holding.broken.is_some_and(|range| range.contains(sn(395))));
        // Changes missing up to the announced one break no later set.
        let mut holding = Holding { ended: (sn(389), sn(392)), frontier: sn(392), ..Holding::default() };
        holding.record_heartbeat(sn(315), Some(sn(395)), sn(313));
        holding.has_gap = true;
        holding.apply_pending_info(sn(316));
        holding.advance(&SetPosition { group_set: sn(398), gsn: sn(399), ends: true, ..SetPosition::default() });
        assert!(holding.broken.is_some_and(|range| range.contains(sn(395)) && !range.contains(sn(398))));
    }
}
