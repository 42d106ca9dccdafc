//! Reservation of room for a coherent set, for all of its changes before the first one is presented
//! (RTPS 2.5 §8.7.6).
//!
//! Between [`ReaderCache::reserve`] and the change's delivery, or
//! [`ReaderCache::release_reservations`], nothing else may be delivered.

use super::{NONE, ReaderCache, Stored};
use crate::cache::sample::{ChangeKind, KeyExtractor};
use crate::presentation::SetPosition;
use alloc::boxed::Box;
use takt_wire::SequenceNumber;

/// Reason why a set cannot be presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// There is no room until the application takes samples.
    Temporarily,
    /// The history cannot hold the set at all.
    Permanently,
}

/// Present reservations.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    samples: usize,
    /// Number of samples that KEEP_LAST will evict for them.
    evictions: usize,
}

impl ReaderCache {
    /// Reserves entries for held changes, as many as the history may have samples.
    pub(crate) fn reserve_held(&mut self) {
        self.entries.reserve_exact(2 * self.limits.max_samples + super::PENDING_ENTRIES - self.entries.len());
    }

    /// Returns the last assigned position in order of arrival.
    pub(crate) fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Advances the order of arrival to at least this position.
    pub(crate) fn advance_arrivals(&mut self, arrivals: u64) {
        self.arrivals = self.arrivals.max(arrivals);
    }

    /// Returns `RESOURCE_LIMITS.max_samples`.
    pub(crate) fn max_samples(&self) -> usize {
        self.limits.max_samples
    }

    /// Reports whether the application has nothing to take.
    pub(crate) fn is_empty(&self) -> bool {
        self.data_count == 0
    }

    /// Returns the position and the sequence number of a pending change.
    pub(crate) fn position_of(&self, stored: Stored) -> (SetPosition, SequenceNumber) {
        let incoming = &self.entries[stored.0 as usize].incoming;
        (incoming.position, incoming.sn)
    }

    /// Marks the change as the last one of a complete part of a set.
    pub(crate) fn close(&mut self, stored: Stored) {
        self.entries[stored.0 as usize].incoming.position.closes = true;
    }

    /// Links a held change behind another.
    pub(crate) fn link(&mut self, last: Stored, next: Stored) {
        self.entries[last.0 as usize].next = next.0;
    }

    /// Returns the held change that follows.
    pub(crate) fn held_after(&self, stored: Stored) -> Option<Stored> {
        let next = self.entries[stored.0 as usize].next;
        (next != NONE).then_some(Stored(next))
    }

    /// Ends the list of held changes with this one; returns the change that followed.
    pub(crate) fn split_after(&mut self, stored: Stored) -> Option<Stored> {
        let next = core::mem::replace(&mut self.entries[stored.0 as usize].next, NONE);
        (next != NONE).then_some(Stored(next))
    }

    /// Reserves room for a list of held changes, up to the closing one. Also returns the number of
    /// visited changes.
    pub(crate) fn reserve(
        &mut self,
        first: Stored,
        mut key: Option<&mut Box<dyn KeyExtractor>>,
    ) -> (Result<(), NoRoom>, usize) {
        let (mut next, mut steps) = (Some(first), 0);
        while let Some(stored) = next {
            let incoming = self.entries[stored.0 as usize].incoming;
            steps += 1;
            if incoming.kind == ChangeKind::Alive
                && let Err(no_room) = self.reserve_one(stored, key.as_deref_mut())
            {
                return (Err(no_room), steps);
            }
            next = self.held_after(stored).filter(|_| !incoming.position.closes);
        }
        (Ok(()), steps)
    }

    fn reserve_one(&mut self, stored: Stored, key: Option<&mut Box<dyn KeyExtractor>>) -> Result<(), NoRoom> {
        let incoming = self.entries[stored.0 as usize].incoming;
        let index = match self.find_instance(&incoming) {
            Some(index) => index,
            None => match self.create_instance(&incoming, key) {
                Ok(index) => index,
                Err(_) => return Err(if self.is_empty() { NoRoom::Permanently } else { NoRoom::Temporarily }),
            },
        };
        self.entries[stored.0 as usize].instance = index;
        let instance = &mut self.instances[index as usize];
        instance.reserved += 1;
        self.reservations.samples += 1;
        let (reserved, per_instance) = (instance.reserved, self.limits.max_samples_per_instance);
        match self.limits.depth {
            Some(depth) if reserved > depth => return Err(NoRoom::Permanently),
            Some(depth) => self.reservations.evictions += usize::from(instance.data_count + reserved > depth),
            None if reserved > per_instance => return Err(NoRoom::Permanently),
            None if instance.count + reserved > per_instance => return Err(NoRoom::Temporarily),
            None => {}
        }
        if self.reservations.samples > self.limits.max_samples { Err(NoRoom::Permanently) } else { Ok(()) }
    }

    /// Checks that there is room for all reservations.
    pub(crate) fn check_reservations(&self) -> Result<(), NoRoom> {
        let Reservations { samples, evictions } = self.reservations;
        match self.data_count + samples > self.limits.max_samples + evictions {
            true if self.is_empty() => Err(NoRoom::Permanently),
            true => Err(NoRoom::Temporarily),
            false => Ok(()),
        }
    }

    /// Releases the reservations of a list of held changes.
    pub(crate) fn release_reservations(&mut self, first: Stored) {
        let mut next = Some(first);
        while let Some(stored) = next {
            let closes = self.entries[stored.0 as usize].incoming.position.closes;
            next = self.held_after(stored).filter(|_| !closes);
            self.release_reservation(stored);
        }
    }

    /// Releases the reservation of one change.
    pub(crate) fn release_reservation(&mut self, stored: Stored) {
        let index = core::mem::replace(&mut self.entries[stored.0 as usize].instance, NONE);
        if index != NONE {
            self.instances[index as usize].reserved -= 1;
            if self.instances[index as usize].reserved == 0 {
                self.remove_if_unused(index);
            }
        }
    }

    /// Ends the reservations, after all were released or before they are used.
    pub(crate) fn end_reservations(&mut self) {
        self.reservations = Reservations::default();
    }
}
