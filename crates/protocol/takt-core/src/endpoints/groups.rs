//! Group presentation at a subscriber: ordered changes and coherent sets of all writers of a
//! publisher (RTPS 2.5 §8.7.5, §8.7.6; DDS 1.4 §2.2.3.6).
//!
//! A [`Group`] is one publisher as seen by one subscriber: the publisher's writers that are matched
//! with the subscriber's readers. Their received changes wait in
//! [`Holding`]s and are presented in the order of group sequence numbers. A
//! change is presented as soon as no earlier one can arrive: all writers have sent something later,
//! or reported that they have nothing. A set is presented when all writers have ended it or passed
//! its end, and nothing of it is missing.
//!
//! A late-matched reader also gets the sets of its history (DDS 1.4 §2.2.3.4). Sets that were
//! presented before are resolved again from the changes held by members that joined later.
//!
//! Only reliable writers that are alive delay others. If the held changes reach a reader's
//! `max_samples`, and the application has nothing to take, the held changes of the affected
//! publishers are presented without waiting, at all readers. Sets that have not ended are dropped.

use crate::cache::NoRoom;
use crate::context::Context;
use crate::presentation::{MissingGroupInfo, SetPosition};
use crate::reader::{Holding, Range, Reader};
use crate::slots::{ReaderHandle, Slots};
use crate::time::Instant;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use takt_wire::qos::Presentation;
use takt_wire::{Guid, SequenceNumber};

/// Maximum number of sets that one call presents or drops; each of them visits all members.
const SETS_PER_CALL: usize = 2;

/// Number of visits of each member for a set.
const VISITS_PER_SET: usize = 10;

/// Publisher as seen by one subscriber.
#[derive(Debug, Default)]
pub(super) struct Group {
    members: Vec<Member>,
    /// Group sequence numbers of the next held change of each member, the lowest first.
    heads: BinaryHeap<Reverse<(SequenceNumber, u32)>>,
    /// Range of sets with missing changes.
    broken: Option<Range>,
    /// Last set that was presented or dropped.
    resolved: SequenceNumber,
    /// Last set that was not presented completely. Late-matched readers get no history up to this
    /// set, because the other readers lack it.
    last_incomplete: SequenceNumber,
}

/// Matched pair of a writer and a reader.
#[derive(Debug)]
struct Member {
    reader: ReaderHandle,
    proxy: u32,
    writer: Guid,
    /// End of the last set that the writer has ended.
    ended: SequenceNumber,
    /// Last set that was resolved before the member joined. Held changes of sets up to that one are
    /// history.
    history_end: SequenceNumber,
}

impl Member {
    fn reader<'a>(&self, readers: &'a Slots<Reader>) -> Option<&'a Reader> {
        readers.get(self.reader.index).filter(|reader| reader.handle == self.reader)
    }

    /// Returns the held changes of the writer, and whether others wait for it; `None` if the writer
    /// is no longer matched.
    fn holding<'a>(&self, readers: &'a Slots<Reader>) -> Option<(&'a Holding, bool)> {
        let proxy = self.reader(readers)?.proxies.get(self.proxy).filter(|proxy| proxy.guid == self.writer)?;
        Some((proxy.holding.as_deref()?, proxy.reliable && proxy.lease.alive))
    }

    /// Reports whether the writer omits the given information about its publisher.
    fn lacks(&self, missing: MissingGroupInfo, readers: &Slots<Reader>) -> bool {
        let proxy = self.reader(readers).and_then(|reader| reader.proxies.get(self.proxy));
        proxy.is_some_and(|proxy| proxy.guid == self.writer && proxy.missing_group_info == Some(missing))
    }

    /// Reports whether its reader needs relief, and a held change of the writer can be released.
    fn can_relieve(&self, readers: &Slots<Reader>) -> bool {
        self.reader(readers).is_some_and(|reader| reader.presentation.needs_relief)
            && self.holding(readers).is_some_and(|(holding, _)| holding.front().is_some())
    }

    /// Returns the position of the next held change.
    fn front(&self, readers: &Slots<Reader>) -> Option<SetPosition> {
        let (holding, _) = self.holding(readers)?;
        let (position, _) = self.reader(readers)?.cache.position_of(holding.front()?);
        Some(position)
    }

    /// Reports whether sets of its history are held, or are still to arrive.
    fn has_history(&self, readers: &Slots<Reader>) -> bool {
        let is_expected = self
            .holding(readers)
            .is_some_and(|(holding, is_waited_for)| is_waited_for && holding.frontier < self.history_end);
        is_expected
            || self
                .front(readers)
                .is_some_and(|position| position.is_member() && position.group_set <= self.history_end)
    }
}

/// Decision about a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Wait,
    Present,
    Drop,
}

impl Group {
    /// Adds a newly matched writer of the publisher.
    pub(super) fn join(&mut self, reader: ReaderHandle, proxy: u32, writer: Guid) {
        let (ended, history_end) = (SequenceNumber::ZERO, self.resolved);
        self.members.push(Member { reader, proxy, writer, ended, history_end });
        self.heads.reserve(self.members.len());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Presents what is due, at most [`SETS_PER_CALL`] sets. Returns false if more may be due.
    /// Visits each member a few times for each set, and each presented change.
    pub(super) fn present_due(
        &mut self,
        presentation: &Presentation,
        readers: &mut Slots<Reader>,
        ctx: &mut Context,
        now: Instant,
    ) -> bool {
        ctx.work.steps(self.members.len());
        let mut sets = 0;
        self.remove_unmatched(readers);
        let relief = self.members.iter().any(|member| member.can_relieve(readers));
        let horizon = if relief || !presentation.ordered_access { SequenceNumber::MAX } else { self.horizon(readers) };
        self.find_heads(readers);
        while let Some(&Reverse((gsn, at))) = self.heads.peek() {
            let Some(position) = self.members.get(at as usize).and_then(|member| member.front(readers)) else { break };
            if presentation.coherent_access && position.is_member() && position.group_set.is_valid() {
                if sets == SETS_PER_CALL {
                    break;
                }
                sets += 1;
                match self.decide(position.group_set, relief, readers, ctx, now) {
                    Verdict::Wait => break,
                    Verdict::Present => self.present_set(position.group_set, readers, ctx, now),
                    Verdict::Drop => {
                        self.drop_set(position.group_set, readers, ctx);
                        self.last_incomplete = self.last_incomplete.max(position.group_set);
                    }
                }
                self.resolved = self.resolved.max(position.group_set);
                self.find_heads(readers);
            } else if gsn.prev() > horizon {
                self.request_heartbeats(gsn.prev(), None, readers, ctx, now);
                break;
            } else if !self.present_next(readers, ctx, now) {
                break;
            }
        }
        let continues = relief && self.end_relief(readers, ctx, now);
        sets < SETS_PER_CALL && !continues
    }

    /// Removes writers that are no longer matched. Sets that they had not ended remain incomplete.
    /// Changes outside a group set are in no set here.
    fn remove_unmatched(&mut self, readers: &Slots<Reader>) {
        self.members.retain(|member| !member.lacks(MissingGroupInfo::Numbers, readers));
        let furthest = self.members.iter().filter_map(|member| Some(member.holding(readers)?.0.frontier)).max();
        let Self { members, broken, .. } = self;
        for member in members.iter_mut() {
            match member.holding(readers) {
                Some((holding, _)) => {
                    member.ended = holding.ended.1;
                    *broken = holding.broken.map(|range| range.join(*broken)).or(*broken);
                }
                None => {
                    let before = furthest.unwrap_or_default().next();
                    *broken = Some(Range { after: member.ended, before }.join(*broken));
                }
            }
        }
        members.retain(|member| member.holding(readers).is_some());
        let has_history = members.iter().any(|member| member.has_history(readers));
        if let Some(range) = broken.take_if(|range| !has_history && range.before <= self.resolved) {
            self.last_incomplete = self.last_incomplete.max(range.before.prev());
        }
    }

    /// Returns the group sequence number up to which no further change can arrive.
    fn horizon(&self, readers: &Slots<Reader>) -> SequenceNumber {
        let waited_for = |member: &Member| member.holding(readers).filter(|(_, is_waited_for)| *is_waited_for);
        let frontiers = self.members.iter().filter_map(|member| Some(waited_for(member)?.0.frontier));
        frontiers.min().unwrap_or(SequenceNumber::MAX)
    }

    /// Requests heartbeats from writers that have not reported since a group sequence number was
    /// assigned, to learn how far the others have come. `missing`: only from writers that omit that
    /// information.
    fn request_heartbeats(
        &self,
        gsn: SequenceNumber,
        missing: Option<MissingGroupInfo>,
        readers: &mut Slots<Reader>,
        ctx: &mut Context,
        now: Instant,
    ) {
        let furthest = self.members.iter().filter_map(|member| Some(member.holding(readers)?.0.frontier)).max();
        for member in &self.members {
            let lags =
                member.holding(readers).is_some_and(|(holding, is_waited_for)| is_waited_for && holding.frontier < gsn);
            let is_requested = lags && missing.is_none_or(|missing| member.lacks(missing, readers));
            if let Some(reader) = readers.get_mut(member.reader.index).filter(|_| is_requested) {
                reader.request_heartbeat(ctx, member.proxy, furthest.unwrap_or(gsn), now);
            }
        }
    }

    fn find_heads(&mut self, readers: &Slots<Reader>) {
        let Self { members, heads, .. } = self;
        heads.clear();
        for (at, member) in members.iter().enumerate() {
            if let Some(position) = member.front(readers) {
                heads.push(Reverse((rank(&position), at as u32)));
            }
        }
    }

    /// Presents the next change; returns false if there is no room.
    fn present_next(&mut self, readers: &mut Slots<Reader>, ctx: &mut Context, now: Instant) -> bool {
        let Some(Reverse((_, at))) = self.heads.pop() else { return false };
        let member = &self.members[at as usize];
        let Some(reader) = readers.get_mut(member.reader.index) else { return false };
        let is_presented = reader.present_front(ctx, member.proxy, now);
        if let Some(position) = member.front(readers) {
            self.heads.push(Reverse((rank(&position), at)));
        }
        is_presented
    }

    /// Decides about a set: whether it has ended, is complete, and fits.
    fn decide(
        &self,
        set: SequenceNumber,
        relief: bool,
        readers: &mut Slots<Reader>,
        ctx: &mut Context,
        now: Instant,
    ) -> Verdict {
        ctx.work.steps(VISITS_PER_SET * self.members.len());
        let holdings = || self.members.iter().filter_map(|member| member.holding(readers));
        // A writer that has ended a later set has at least announced where that one began.
        let ends = holdings().filter(|(holding, _)| holding.ended.0 >= set);
        let end = ends.map(|(holding, _)| if holding.ended.0 == set { holding.ended.1 } else { holding.ended.0 }).min();
        let Some(end) = end else { return if relief { Verdict::Drop } else { Verdict::Wait } };
        let is_broken = self.broken.is_some_and(|range| range.contains(set));
        let has_passed = |holding: &Holding| holding.ended.0 >= set || holding.frontier >= end;
        if !relief && holdings().any(|(holding, is_waited_for)| is_waited_for && !has_passed(holding)) {
            self.request_heartbeats(end, Some(MissingGroupInfo::Heartbeats), readers, ctx, now);
            return Verdict::Wait;
        }
        let mut is_complete = !is_broken && holdings().all(|(holding, _)| has_passed(holding));
        let mut parts = self.members.iter().filter(|member| is_of(member.front(readers), set));
        is_complete &= parts.all(|member| {
            let is_new = set > self.resolved || (set > self.last_incomplete && set <= member.history_end);
            is_new && member.holding(readers).is_some_and(|(holding, _)| holding.front_is_closed())
        });
        if is_complete { self.reserve(set, readers, ctx) } else { Verdict::Drop }
    }

    /// Reserves room for all changes of a set.
    fn reserve(&self, set: SequenceNumber, readers: &mut Slots<Reader>, ctx: &mut Context) -> Verdict {
        let mut result = Ok(());
        for member in &self.members {
            if result.is_ok()
                && is_of(member.front(readers), set)
                && let Some(reader) = readers.get_mut(member.reader.index)
            {
                result = reader.reserve_part(ctx, member.proxy).and_then(|()| reader.cache.check_reservations());
                if result == Err(NoRoom::Temporarily) {
                    reader.wait_for_room(member.proxy);
                }
            }
        }
        for member in &self.members {
            let has_part = is_of(member.front(readers), set);
            if let Some(reader) = readers.get_mut(member.reader.index) {
                if result.is_err() && has_part {
                    reader.release_part(member.proxy);
                }
                reader.cache.end_reservations();
            }
        }
        match result {
            Ok(()) => Verdict::Present,
            Err(NoRoom::Temporarily) => Verdict::Wait,
            Err(NoRoom::Permanently) => Verdict::Drop,
        }
    }

    /// Presents a set with reserved room, in the order of group sequence numbers.
    fn present_set(&mut self, set: SequenceNumber, readers: &mut Slots<Reader>, ctx: &mut Context, now: Instant) {
        while let Some(Reverse((_, at))) = self.heads.pop() {
            let member = &self.members[at as usize];
            if !is_of(member.front(readers), set) {
                continue;
            }
            let Some(reader) = readers.get_mut(member.reader.index) else { continue };
            if !reader.present_member(ctx, member.proxy, now)
                && let Some(position) = member.front(readers)
            {
                self.heads.push(Reverse((rank(&position), at)));
            }
        }
    }

    fn drop_set(&mut self, set: SequenceNumber, readers: &mut Slots<Reader>, ctx: &mut Context) {
        for member in &self.members {
            let has_part = is_of(member.front(readers), set);
            if let Some(reader) = readers.get_mut(member.reader.index).filter(|_| has_part) {
                ctx.counters.dropped_coherent_sets += 1;
                reader.drop_part(ctx, member.proxy);
            }
        }
    }

    /// Ends the relief of readers whose held changes were released or can be taken, and continues
    /// delivery at those that lacked room. A reader without releasable changes still needs relief.
    /// Returns whether any delivery continues.
    fn end_relief(&mut self, readers: &mut Slots<Reader>, ctx: &mut Context, now: Instant) -> bool {
        let mut continues = false;
        for member in &self.members {
            if let Some(reader) = readers.get_mut(member.reader.index).filter(|reader| reader.is_relieved()) {
                reader.presentation.needs_relief = false;
                continues |= reader.unblock(now, ctx);
            }
        }
        continues
    }
}

/// Returns the presentation order of a held change.
fn rank(position: &SetPosition) -> SequenceNumber {
    position.gsn
}

fn is_of(position: Option<SetPosition>, set: SequenceNumber) -> bool {
    position.is_some_and(|position| position.group_set == set)
}
