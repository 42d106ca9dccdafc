//! Samples that arrive by several ways: from their writer, and from services that keep them (RTPS 2.5 §8.7.9; DDS 1.4
//! §2.2.3.4).
//!
//! A reader of TRANSIENT or PERSISTENT writers remembers how far it has come with each original writer, and drops what is
//! not above that: each sample is shown once and none after a later one of its writer. Of more than [`ORIGINS_MAX`]
//! original writers the one that was silent for longest is forgotten; what is repeated of it then shows again.
//! Looking one up is O(log n); nothing is allocated after the first such writer was matched.
//!
//! PID_ORIGINAL_WRITER_INFO counts if its writer is announced as a service's. Anybody can announce that, so a service is not
//! believed about a reliable writer that is matched itself: what that has not announced waits until it does, or has gone. So
//! no service can make the reader drop what a matched writer goes on to write.
//!
//! DEVIATION(RTPS 2.5 §8.7.9): the parameter of other writers is ignored, and so is that of services of other vendors.

use super::Reader;
use crate::cache::{ChangeKind, ReaderCache, Stored};
use crate::context::Context;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{Guid, SequenceNumber};

/// Original writers that one reader remembers.
pub(crate) const ORIGINS_MAX: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Origin {
    writer: Guid,
    upto: SequenceNumber,
    /// When something of it came last, in samples.
    used: u64,
    /// The last sample that it has announced, if it is matched itself and reliable.
    announced: Option<SequenceNumber>,
}

/// What a reader does with a sample, by where it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Novelty {
    New,
    /// The last one of its writer once more.
    Last,
    /// It was shown before, or a later one was.
    Old,
    /// Its writer, which is matched, has not announced it.
    Ahead,
}

#[derive(Debug)]
pub(super) struct Origins {
    /// By writer.
    known: Vec<Origin>,
    clock: u64,
    /// Some service's sample is ahead of its matched writer.
    pub(super) any_ahead: bool,
}

impl Origins {
    pub(super) fn new() -> Self {
        Self { known: Vec::with_capacity(ORIGINS_MAX), clock: 0, any_ahead: false }
    }

    fn find(&self, writer: Guid) -> Result<usize, usize> {
        self.known.binary_search_by_key(&writer, |origin| origin.writer)
    }

    pub(super) fn novelty(&self, sample: SampleIdentity) -> Novelty {
        match self.find(sample.writer).map(|at| &self.known[at]) {
            Ok(origin) if sample.sn < origin.upto => Novelty::Old,
            Ok(origin) if sample.sn == origin.upto => Novelty::Last,
            Ok(origin) if origin.announced.is_some_and(|announced| sample.sn > announced) => Novelty::Ahead,
            _ => Novelty::New,
        }
    }

    /// The first that a matched reliable writer says of what it has. What services said of later samples was no more than that.
    pub(super) fn begins(&mut self, writer: Guid, last: SequenceNumber) {
        let at = self.entry(writer);
        let origin = &mut self.known[at];
        (origin.upto, origin.announced) = (origin.upto.min(last), Some(last));
    }

    /// A matched reliable writer has samples up to this one.
    pub(super) fn announces(&mut self, writer: Guid, last: SequenceNumber) {
        if let Ok(at) = self.find(writer)
            && let Some(announced) = &mut self.known[at].announced
        {
            *announced = last;
        }
    }

    /// A writer is not matched any more.
    pub(super) fn ends(&mut self, writer: Guid) {
        if let Ok(at) = self.find(writer) {
            self.known[at].announced = None;
        }
    }

    /// The sample is shown.
    pub(super) fn shown(&mut self, sample: SampleIdentity) {
        let at = self.entry(sample.writer);
        let origin = &mut self.known[at];
        origin.upto = origin.upto.max(sample.sn);
    }

    /// The place of a writer, which is used now. One that is matched gives way last.
    fn entry(&mut self, writer: Guid) -> usize {
        self.clock += 1;
        let mut place = match self.find(writer) {
            Ok(at) => {
                self.known[at].used = self.clock;
                return at;
            }
            Err(place) => place,
        };
        let rank = |origin: &Origin| (origin.announced.is_some(), origin.used);
        if self.known.len() == ORIGINS_MAX
            && let Some(idle) = (0..self.known.len()).min_by_key(|at| rank(&self.known[*at]))
        {
            self.known.remove(idle);
            place -= usize::from(idle < place);
        }
        let origin = Origin { writer, upto: SequenceNumber::ZERO, used: self.clock, announced: None };
        self.known.insert(place, origin);
        place
    }
}

/// Whether a sample that is next has to wait, since its writer is matched and has not announced it.
pub(super) fn is_ahead(origins: &mut Option<Box<Origins>>, sample: SampleIdentity) -> bool {
    let Some(origins) = origins else { return false };
    let is_ahead = origins.novelty(sample) == Novelty::Ahead;
    origins.any_ahead |= is_ahead;
    is_ahead
}

impl Reader {
    /// The first HEARTBEAT of a writer: it has samples up to this one.
    pub(super) fn begin_origin(&mut self, index: u32, last: SequenceNumber) {
        if let Some(origins) = &mut self.origins
            && let Some(proxy) = self.proxies.get(index).filter(|proxy| proxy.reliable && !proxy.is_service)
        {
            origins.begins(proxy.guid, last);
        }
    }

    /// A writer has announced samples. Services whose samples waited for that go on.
    pub(super) fn note_announced(&mut self, now: Instant, ctx: &mut Context, index: u32) {
        let Some(origins) = &mut self.origins else { return };
        let Some(proxy) = self.proxies.get(index).filter(|proxy| proxy.reliable && !proxy.is_service) else { return };
        origins.announces(proxy.guid, proxy.announced);
        self.resume_services(now, ctx);
    }

    /// Delivers what waited for the writers that wrote it. At most a window of each matched service.
    pub(super) fn resume_services(&mut self, now: Instant, ctx: &mut Context) {
        if !self.origins.as_mut().is_some_and(|origins| core::mem::take(&mut origins.any_ahead)) {
            return;
        }
        let mut from = 0;
        while let Some(index) = self.proxies.next_index(from) {
            from = index + 1;
            ctx.work.steps(1);
            if self.proxies.get(index).is_some_and(|proxy| proxy.is_service) {
                self.deliver(ctx, index, now);
                self.notice_gap(ctx, index, now);
            }
        }
    }
}

/// Whether a sample that is next was shown before, or comes too late: then it is discarded.
pub(super) fn drops(origins: &Option<Box<Origins>>, cache: &mut ReaderCache, stored: Stored) -> bool {
    let Some(origins) = origins else { return false };
    let is_new = match origins.novelty(cache.origin_of(stored)) {
        Novelty::New => true,
        // That an instance has ended is told again: another of its writers says so, and it may be the last one.
        Novelty::Last => cache.kind_of(stored) != ChangeKind::Alive,
        Novelty::Old => false,
        // Best effort: what is not shown now is lost.
        Novelty::Ahead => true,
    };
    if !is_new {
        cache.repeat(stored);
    }
    !is_new
}

/// A sample was shown.
pub(super) fn shown(origins: &mut Option<Box<Origins>>, sample: SampleIdentity) {
    if let Some(origins) = origins {
        origins.shown(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(writer: u16, sn: i64) -> SampleIdentity {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&writer.to_be_bytes());
        SampleIdentity { writer: Guid::from_bytes(bytes), sn: SequenceNumber(sn) }
    }

    #[test]
    fn what_is_not_above_the_last_of_its_writer_is_not_new() {
        let mut origins = Origins::new();
        assert_eq!(origins.novelty(sample(1, 5)), Novelty::New);
        origins.shown(sample(1, 5));
        let seen: Vec<_> = [4, 5, 6].map(|sn| origins.novelty(sample(1, sn))).into();
        assert_eq!(seen, [Novelty::Old, Novelty::Last, Novelty::New]);
        assert_eq!(origins.novelty(sample(2, 1)), Novelty::New);
        origins.shown(sample(1, 3));
        assert_eq!(origins.novelty(sample(1, 5)), Novelty::Last, "a number does not fall");
    }

    #[test]
    fn of_too_many_the_one_silent_for_longest_is_forgotten() {
        let mut origins = Origins::new();
        for writer in 0..ORIGINS_MAX as u16 {
            origins.shown(sample(writer, 9));
        }
        origins.shown(sample(0, 10));
        origins.shown(sample(u16::MAX, 1));
        assert_eq!(origins.known.len(), ORIGINS_MAX);
        assert_eq!(origins.novelty(sample(0, 9)), Novelty::Old);
        assert_eq!(origins.novelty(sample(1, 9)), Novelty::New);
        assert_eq!(origins.novelty(sample(u16::MAX, 1)), Novelty::Last);
        // It takes the place of the one that is forgotten, or of one beside it.
        for writer in [1, 2, 3, 4].map(|writer| 2 * writer + 1) {
            origins = Origins::new();
            (0..ORIGINS_MAX as u16).for_each(|writer| origins.shown(sample(2 * writer, 9)));
            (0..ORIGINS_MAX as u16).filter(|it| *it != 2).for_each(|it| origins.shown(sample(2 * it, 10)));
            origins.shown(sample(writer, 1));
            assert!(origins.known.is_sorted_by_key(|origin| origin.writer), "{writer}");
            assert_eq!(origins.novelty(sample(4, 9)), Novelty::New);
        }
    }
}
