//! Samples that arrive by several ways: from their writer, and from services that keep them (RTPS 2.5 §8.7.9; DDS 1.4
//! §2.2.3.4).
//!
//! A reader of TRANSIENT or PERSISTENT writers remembers how far it has come with each original writer, and drops what is
//! not above that: each sample is shown once and none after a later one of its writer. Of more than [`ORIGINS_MAX`]
//! original writers the one that was silent for longest is forgotten; what is repeated of it then shows again.
//! Looking one up is O(log n); nothing is allocated after the first such writer was matched.

use crate::cache::{ChangeKind, ReaderCache, Stored};
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
}

/// What a reader does with a sample, by where it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Novelty {
    New,
    /// The last one of its writer once more.
    Last,
    /// It was shown before, or a later one was.
    Old,
}

#[derive(Debug)]
pub(super) struct Origins {
    /// By writer.
    known: Vec<Origin>,
    clock: u64,
}

impl Origins {
    pub(super) fn new() -> Self {
        Self { known: Vec::with_capacity(ORIGINS_MAX), clock: 0 }
    }

    fn find(&self, writer: Guid) -> Result<usize, usize> {
        self.known.binary_search_by_key(&writer, |origin| origin.writer)
    }

    pub(super) fn novelty(&self, sample: SampleIdentity) -> Novelty {
        match self.find(sample.writer).map(|at| self.known[at].upto) {
            Ok(upto) if sample.sn < upto => Novelty::Old,
            Ok(upto) if sample.sn == upto => Novelty::Last,
            _ => Novelty::New,
        }
    }

    /// The sample is shown.
    pub(super) fn shown(&mut self, sample: SampleIdentity) {
        self.clock += 1;
        let mut place = match self.find(sample.writer) {
            Ok(at) => {
                let origin = &mut self.known[at];
                (origin.upto, origin.used) = (origin.upto.max(sample.sn), self.clock);
                return;
            }
            Err(place) => place,
        };
        if self.known.len() == ORIGINS_MAX
            && let Some(idle) = (0..self.known.len()).min_by_key(|at| self.known[*at].used)
        {
            self.known.remove(idle);
            place -= usize::from(idle < place);
        }
        self.known.insert(place, Origin { writer: sample.writer, upto: sample.sn, used: self.clock });
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
