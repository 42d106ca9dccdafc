//! A writer among the others of its publisher: coherent sets and group sequence numbers (RTPS 2.5 §8.7.5, §8.7.6).
//!
//! DEVIATION(RTPS 2.5 §8.7.6): which writers the publisher has is not said: PID_WRITER_GROUP_INFO is not sent, and the digests
//! in heartbeats are zero. A reader learns the writers of a publisher by discovery, and that a set is over from its end,
//! which comes from each of them.

use super::{Write, Writer, WriterHistory};
use crate::context::Context;
use crate::presentation::{Place, is_of_group, matters};
use crate::time::Instant;
use takt_wire::SequenceNumber;
use takt_wire::message::GroupInfo;

/// What a writer must know of its publisher, if that has a PRESENTATION that matters.
#[derive(Debug)]
pub(super) struct Membership {
    is_of_group: bool,
    /// The first change of the open coherent set; zero if there is none.
    set: SequenceNumber,
    /// The last group sequence number that any writer of the publisher has given out.
    gsn: SequenceNumber,
    /// The readers have not been told of that.
    has_news: bool,
}

impl Membership {
    /// See [`Writer::group_info`].
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
        let current_gsn = following.map_or(self.gsn, |change| change.place.gsn.prev());
        let first = history.at_or_after(first_sn).filter(|change| change.sn <= last_sn);
        let last = history.get(last_sn);
        Some(GroupInfo {
            current_gsn,
            // An empty range, if there is none.
            first_gsn: first.map_or(current_gsn.next(), |change| change.place.gsn),
            last_gsn: last.map_or(current_gsn, |change| change.place.gsn),
            writer_set: [0; 4],
            secure_writer_set: [0; 4],
        })
    }
}

impl Writer {
    /// Is enabled as one of its publisher's writers; false if that makes no difference.
    pub(crate) fn join(&mut self) -> bool {
        let presentation = self.data.presentation;
        if self.group.is_some() && matters(&presentation) {
            let (set, gsn) = (SequenceNumber::ZERO, SequenceNumber::ZERO);
            let is_of_group = is_of_group(&presentation);
            self.history.reserve_ends();
            self.route.more = super::route::HEADROOM_FOR_PLACE;
            self.membership = Some(Membership { is_of_group, set, gsn, has_news: false });
        }
        self.membership.is_some()
    }

    /// Its publisher is no more.
    pub(crate) fn leave(&mut self) {
        (self.group, self.membership) = (None, None);
    }

    /// The publisher that keeps account of its changes.
    pub(crate) fn publisher(&self) -> Option<u32> {
        self.group.filter(|_| self.membership.is_some())
    }

    /// The place of the change that is about to be written.
    pub(super) fn place_of(&self, write: &Write) -> Place {
        match &self.membership {
            Some(membership) if write.in_set => {
                let set = if membership.set.is_valid() { membership.set } else { self.history.last_sn().next() };
                Place { set, ..write.place }
            }
            _ => write.place,
        }
    }

    /// The change was written.
    pub(super) fn placed(&mut self, place: &Place) {
        if let Some(membership) = &mut self.membership {
            membership.set = place.set;
            membership.gsn = membership.gsn.max(place.gsn);
        }
    }

    /// The publisher has counted up to `gsn`. `tell`: readers that keep the order of the publisher's changes wait for that.
    pub(crate) fn hear_of_group(&mut self, gsn: SequenceNumber, tell: bool, ctx: &mut Context) {
        let is_reliable = self.route.reliable;
        let Some(membership) = &mut self.membership else { return };
        membership.gsn = membership.gsn.max(gsn);
        if tell && is_reliable {
            membership.has_news = true;
            self.queue_heartbeat(ctx);
        }
    }

    /// Whether a heartbeat is due to all readers since the publisher has counted on.
    pub(super) fn take_group_news(&mut self) -> bool {
        self.membership.as_mut().is_some_and(|membership| core::mem::take(&mut membership.has_news))
    }

    /// What a heartbeat that ends at `last_sn` says of the group. What comes after that number does not count.
    pub(super) fn group_info(&self, first_sn: SequenceNumber, last_sn: SequenceNumber) -> Option<GroupInfo> {
        self.membership.as_ref()?.group_info(&self.history, first_sn, last_sn)
    }

    /// The publisher's coherent changes have ended: tells the readers by a change without content. A writer of a group does so
    /// even if it made none.
    pub(crate) fn end_set(&mut self, now: Instant, ctx: &mut Context, end: Place) {
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
        let sn = self.history.append_end(Place { set, ..end }, self.source_timestamp);
        if self.proxies.len() == 0 {
            self.skip_sending();
            if self.history.is_set_gone(sn) {
                self.history.remove(sn);
            }
        }
        self.queue_data(ctx);
        if self.route.reliable {
            self.ask_soon(now, ctx);
        }
    }

    /// Gives out the numbers up to this one to nobody, if they are not given out yet.
    pub(crate) fn skip_to(&mut self, sn: SequenceNumber) {
        let last = self.history.last_sn();
        if sn <= last {
            return;
        }
        self.history.begin_after(sn);
        if self.cursor.sn > last {
            self.cursor = super::Cursor { sn: sn.next(), fragment: 1 };
        }
        if self.window_start == last {
            self.window_start = sn;
        }
        if self.history.settled == last {
            self.history.settled = sn;
        }
        for (_, proxy) in self.proxies.iter_mut().filter(|(_, proxy)| proxy.acked == last) {
            proxy.acked = sn;
        }
    }

    /// Gives out a number to nobody.
    pub(super) fn skip_number(&mut self) -> SequenceNumber {
        let sn = self.history.skip();
        self.skip_sending();
        sn
    }
}
