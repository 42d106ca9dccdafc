//! Original writers of samples that arrive from several sources: from their writer, and from
//! durability services (RTPS 2.5 §8.7.9; DDS 1.4 §2.2.3.4).
//!
//! A reader of TRANSIENT or PERSISTENT writers records its position at each original writer, and
//! drops samples that are not above it. Each sample is presented once, and none after a later one
//! of its writer. Of more than [`ORIGINS_MAX`] original writers the one silent for longest is
//! removed; its repeated samples are presented again. A look-up is O(log n). Nothing is allocated
//! after the first such writer was matched.
//!
//! PID_ORIGINAL_WRITER_INFO counts if its writer is announced as that of a service. This claim can
//! be forged, so a service is not trusted about a reliable writer that is itself matched: samples
//! that the writer has not announced wait until it does, or is unmatched. No service can therefore
//! make the reader drop future samples of a matched writer.
//!
//! DEVIATION(RTPS 2.5 §8.7.9): the parameter of other writers is ignored, as is that of services of
//! other vendors.

use super::Reader;
use crate::cache::{ChangeKind, ReaderCache, Stored};
use crate::context::Context;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{Guid, SequenceNumber};

/// Maximum number of original writers that one reader records.
pub(crate) const ORIGINS_MAX: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Origin {
    writer: Guid,
    upto: SequenceNumber,
    /// Time of its last sample, counted in samples.
    last_used: u64,
    /// Last sample that the writer has announced, if it is itself matched and reliable.
    announced: Option<SequenceNumber>,
}

/// Relation of a sample to earlier ones of its original writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freshness {
    New,
    /// Repetition of the last sample.
    Last,
    /// The sample or a later one was presented before.
    Old,
    /// The original writer is matched and has not announced the sample.
    Ahead,
}

#[derive(Debug)]
pub(super) struct Origins {
    /// Sorted by writer.
    known: Vec<Origin>,
    clock: u64,
    /// A service's sample waits for its matched original writer.
    pub(super) any_awaits_writer: bool,
}

impl Origins {
    pub(super) fn new() -> Self {
        Self { known: Vec::with_capacity(ORIGINS_MAX), clock: 0, any_awaits_writer: false }
    }

    fn find(&self, writer: Guid) -> Result<usize, usize> {
        self.known.binary_search_by_key(&writer, |origin| origin.writer)
    }

    pub(super) fn freshness(&self, sample: SampleIdentity) -> Freshness {
        match self.find(sample.writer).map(|at| &self.known[at]) {
            Ok(origin) if sample.sn < origin.upto => Freshness::Old,
            Ok(origin) if sample.sn == origin.upto => Freshness::Last,
            Ok(origin) if origin.announced.is_some_and(|announced| sample.sn > announced) => Freshness::Ahead,
            _ => Freshness::New,
        }
    }

    /// Records the first announcement of a matched reliable writer. Later samples were only claimed
    /// by services.
    pub(super) fn record_first_announced(&mut self, writer: Guid, last: SequenceNumber) {
        let at = self.entry(writer);
        let origin = &mut self.known[at];
        (origin.upto, origin.announced) = (origin.upto.min(last), Some(last));
    }

    /// Records that a matched reliable writer has samples up to this one.
    pub(super) fn record_announced(&mut self, writer: Guid, last: SequenceNumber) {
        if let Ok(at) = self.find(writer)
            && let Some(announced) = &mut self.known[at].announced
        {
            *announced = last;
        }
    }

    /// Records that a writer is no longer matched.
    pub(super) fn record_unmatched(&mut self, writer: Guid) {
        if let Ok(at) = self.find(writer) {
            self.known[at].announced = None;
        }
    }

    /// Records a presented sample.
    pub(super) fn record_delivered(&mut self, sample: SampleIdentity) {
        let at = self.entry(sample.writer);
        let origin = &mut self.known[at];
        origin.upto = origin.upto.max(sample.sn);
    }

    /// Returns the entry of a writer, and marks it as used. Entries of matched writers are replaced
    /// last.
    fn entry(&mut self, writer: Guid) -> usize {
        self.clock += 1;
        let mut index = match self.find(writer) {
            Ok(at) => {
                self.known[at].last_used = self.clock;
                return at;
            }
            Err(index) => index,
        };
        let rank = |origin: &Origin| (origin.announced.is_some(), origin.last_used);
        if self.known.len() == ORIGINS_MAX
            && let Some(idle) = (0..self.known.len()).min_by_key(|at| rank(&self.known[*at]))
        {
            self.known.remove(idle);
            index -= usize::from(idle < index);
        }
        let origin = Origin { writer, upto: SequenceNumber::ZERO, last_used: self.clock, announced: None };
        self.known.insert(index, origin);
        index
    }
}

/// Reports whether the next sample has to wait because its original writer is matched and has not
/// announced it.
pub(super) fn awaits_writer(origins: &mut Option<Box<Origins>>, sample: SampleIdentity) -> bool {
    let Some(origins) = origins else { return false };
    let awaits_writer = origins.freshness(sample) == Freshness::Ahead;
    origins.any_awaits_writer |= awaits_writer;
    awaits_writer
}

impl Reader {
    /// Handles the first HEARTBEAT of a writer, which has samples up to `last`.
    pub(super) fn begin_origin(&mut self, index: u32, last: SequenceNumber) {
        if let Some(origins) = &mut self.origins
            && let Some(proxy) = self.proxies.get(index).filter(|proxy| proxy.reliable && !proxy.is_service)
        {
            origins.record_first_announced(proxy.guid, last);
        }
    }

    /// Records announced samples of a writer. Services whose samples waited for that continue.
    pub(super) fn note_announced(&mut self, now: Instant, ctx: &mut Context, index: u32) {
        let Some(origins) = &mut self.origins else { return };
        let Some(proxy) = self.proxies.get(index).filter(|proxy| proxy.reliable && !proxy.is_service) else { return };
        origins.record_announced(proxy.guid, proxy.announced);
        self.resume_services(now, ctx);
    }

    /// Delivers the samples that waited for their original writers. At most a window of each
    /// matched service.
    pub(super) fn resume_services(&mut self, now: Instant, ctx: &mut Context) {
        if !self.origins.as_mut().is_some_and(|origins| core::mem::take(&mut origins.any_awaits_writer)) {
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

/// Discards the next sample if it or a later one was presented before. Returns whether it did.
pub(super) fn drop_if_repeated(origins: &Option<Box<Origins>>, cache: &mut ReaderCache, stored: Stored) -> bool {
    let Some(origins) = origins else { return false };
    let is_new = match origins.freshness(cache.origin_of(stored)) {
        Freshness::New => true,
        // The end of an instance is reported again: another of its writers may report it, and may
        // be the last one.
        Freshness::Last => cache.kind_of(stored) != ChangeKind::Alive,
        Freshness::Old => false,
        // Best effort: a sample that is not presented now is lost.
        Freshness::Ahead => true,
    };
    if !is_new {
        cache.drop_repeated(stored);
    }
    !is_new
}

/// Records a presented sample.
pub(super) fn record_delivered(origins: &mut Option<Box<Origins>>, sample: SampleIdentity) {
    if let Some(origins) = origins {
        origins.record_delivered(sample);
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
    fn sample_is_new_only_above_the_last_of_its_writer() {
        let mut origins = Origins::new();
        assert_eq!(origins.freshness(sample(1, 5)), Freshness::New);
        origins.record_delivered(sample(1, 5));
        let seen: Vec<_> = [4, 5, 6].map(|sn| origins.freshness(sample(1, sn))).into();
        assert_eq!(seen, [Freshness::Old, Freshness::Last, Freshness::New]);
        assert_eq!(origins.freshness(sample(2, 1)), Freshness::New);
        origins.record_delivered(sample(1, 3));
        assert_eq!(origins.freshness(sample(1, 5)), Freshness::Last, "a number does not fall");
    }

    #[test]
    fn writer_silent_for_longest_is_removed_when_the_table_is_full() {
        let mut origins = Origins::new();
        for writer in 0..ORIGINS_MAX as u16 {
            origins.record_delivered(sample(writer, 9));
        }
        origins.record_delivered(sample(0, 10));
        origins.record_delivered(sample(u16::MAX, 1));
        assert_eq!(origins.known.len(), ORIGINS_MAX);
        assert_eq!(origins.freshness(sample(0, 9)), Freshness::Old);
        assert_eq!(origins.freshness(sample(1, 9)), Freshness::New);
        assert_eq!(origins.freshness(sample(u16::MAX, 1)), Freshness::Last);
        // The new entry replaces the removed one, or one next to it.
        for writer in [1, 2, 3, 4].map(|writer| 2 * writer + 1) {
            origins = Origins::new();
            (0..ORIGINS_MAX as u16).for_each(|writer| origins.record_delivered(sample(2 * writer, 9)));
            (0..ORIGINS_MAX as u16).filter(|it| *it != 2).for_each(|it| origins.record_delivered(sample(2 * it, 10)));
            origins.record_delivered(sample(writer, 1));
            assert!(origins.known.is_sorted_by_key(|origin| origin.writer), "{writer}");
            assert_eq!(origins.freshness(sample(4, 9)), Freshness::New);
        }
    }
}
