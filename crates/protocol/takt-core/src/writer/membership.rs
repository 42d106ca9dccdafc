//! Membership of a writer in its publisher: coherent sets and group sequence numbers
//! (RTPS 2.5 §8.7.5, §8.7.6).
//!
//! DEVIATION(RTPS 2.5 §8.7.6): the writers of a publisher are not listed: PID_WRITER_GROUP_INFO is
//! not sent, and the digests in heartbeats are zero. A reader learns the writers of a publisher by
//! discovery, and the end of a set from the end marker that each of them sends.

use super::window::Cursor;
use super::{Write, Writer, WriterHistory};
use crate::context::Context;
use crate::presentation::{SetPosition, is_of_group, uses_positions};
use crate::time::Instant;
use takt_wire::SequenceNumber;
use takt_wire::message::GroupInfo;

/// State of the publisher that its writer needs, if its PRESENTATION requires any.
#[derive(Debug)]
pub(super) struct Membership {
    is_of_group: bool,
    /// First change of the open coherent set; zero if there is none.
    set: SequenceNumber,
    /// Last group sequence number that any writer of the publisher has assigned.
    gsn: SequenceNumber,
    /// The readers have not been notified of `gsn`.
    has_unsent_gsn: bool,
}

impl Membership {
    /// Returns the group information of a heartbeat; see [`Writer::group_info`].
    pub(super) fn group_info(
        &self,
        history: &WriterHistory,
        first_sn: SequenceNumber,
        last_sn: SequenceNumber,
    ) -> Option<GroupInfo> {
        if !self.is_of_group {
            return None;
        }
        let following = history.at_or_after(last_sn.next());
        let current_gsn = following.map_or(self.gsn, |change| change.position.gsn.prev());
        let first = history.at_or_after(first_sn).filter(|change| change.sn <= last_sn);
        let last = history.get(last_sn);
        Some(GroupInfo {
            current_gsn,
            // An empty range if there is no change.
            first_gsn: first.map_or(current_gsn.next(), |change| change.position.gsn),
            last_gsn: last.map_or(current_gsn, |change| change.position.gsn),
            writer_set: [0; 4],
            secure_writer_set: [0; 4],
        })
    }
}

impl Writer {
    /// Joins the publisher when the writer is enabled; returns false if its PRESENTATION requires
    /// no state.
    pub(crate) fn join(&mut self) -> bool {
        let presentation = self.data.presentation;
        if self.group.is_some() && uses_positions(&presentation) {
            let (set, gsn) = (SequenceNumber::ZERO, SequenceNumber::ZERO);
            let is_of_group = is_of_group(&presentation);
            self.history.reserve_ends();
            self.route.more = super::route::HEADROOM_FOR_POSITION;
            self.membership = Some(Membership { is_of_group, set, gsn, has_unsent_gsn: false });
        }
        self.membership.is_some()
    }

    /// Leaves the deleted publisher.
    pub(crate) fn leave(&mut self) {
        (self.group, self.membership) = (None, None);
    }

    /// Returns the publisher that tracks the writer's changes.
    pub(crate) fn publisher(&self) -> Option<u32> {
        self.group.filter(|_| self.membership.is_some())
    }

    /// Returns the position of the change about to be written.
    pub(super) fn position_of(&self, write: &Write) -> SetPosition {
        match &self.membership {
            Some(membership) if write.in_set => {
                let set = if membership.set.is_valid() { membership.set } else { self.history.last_sn().next() };
                SetPosition { set, ..write.position }
            }
            _ => write.position,
        }
    }

    /// Records the position of a written change.
    pub(super) fn commit_position(&mut self, position: &SetPosition) {
        if let Some(membership) = &mut self.membership {
            membership.set = position.set;
            membership.gsn = membership.gsn.max(position.gsn);
        }
    }

    /// Updates the last group sequence number of the publisher. `notify` is set if readers that
    /// keep the publisher's order wait for it.
    pub(crate) fn advance_gsn(&mut self, gsn: SequenceNumber, notify: bool, ctx: &mut Context) {
        let is_reliable = self.route.reliable;
        let Some(membership) = &mut self.membership else { return };
        membership.gsn = membership.gsn.max(gsn);
        if notify && is_reliable {
            membership.has_unsent_gsn = true;
            self.queue_heartbeat(ctx);
        }
    }

    /// Takes whether a heartbeat to all readers is due because the publisher's group sequence
    /// number has advanced.
    pub(super) fn take_unsent_gsn(&mut self) -> bool {
        self.membership.as_mut().is_some_and(|membership| core::mem::take(&mut membership.has_unsent_gsn))
    }

    /// Returns the group information of a heartbeat that ends at `last_sn`; later changes do not
    /// count.
    pub(super) fn group_info(&self, first_sn: SequenceNumber, last_sn: SequenceNumber) -> Option<GroupInfo> {
        self.membership.as_ref()?.group_info(&self.history, first_sn, last_sn)
    }

    /// Ends the publisher's coherent set with an empty change. A writer of a group sends it even
    /// without changes in the set.
    pub(crate) fn end_set(&mut self, now: Instant, ctx: &mut Context, end: SetPosition) {
        let Some(membership) = &mut self.membership else { return };
        let set = core::mem::take(&mut membership.set);
        membership.gsn = membership.gsn.max(end.gsn);
        if !set.is_valid() && !membership.is_of_group {
            return;
        }
        if self.proxies.len() == 0 && !self.keeps_history {
            self.skip_number();
            return;
        }
        let sn = self.history.append_end(SetPosition { set, ..end }, self.stamps.written);
        if self.proxies.len() == 0 {
            self.skip_sending();
            if self.history.is_set_gone(sn) {
                self.history.remove(sn);
            }
        }
        self.queue_data(ctx);
        if self.route.reliable {
            self.schedule_heartbeat(now, ctx);
        }
    }

    /// Skips the sequence numbers up to this one, if they are not assigned yet.
    pub(crate) fn skip_to(&mut self, sn: SequenceNumber) {
        let last = self.history.last_sn();
        if sn <= last {
            return;
        }
        self.history.begin_after(sn);
        if self.window.cursor.sn > last {
            self.window.cursor = Cursor::at(sn.next());
        }
        if self.window.start == last {
            self.window.start = sn;
        }
        if self.history.acknowledged_upto == last {
            self.history.acknowledged_upto = sn;
        }
        for (_, proxy) in self.proxies.iter_mut().filter(|(_, proxy)| proxy.acked == last) {
            proxy.acked = sn;
        }
    }

    /// Skips a sequence number.
    pub(super) fn skip_number(&mut self) -> SequenceNumber {
        let sn = self.history.skip();
        self.skip_sending();
        sn
    }
}
