//! Instance of a reader's history: its state, its writers and its owner
//! (DDS 1.4 §2.2.2.5.1.3, §2.2.3.9.2).

use super::aliases::Alias;
use super::order::SourceOrder;
use super::{Incoming, NONE};
use crate::cache::sample::{ChangeKind, InstanceHandle, InstanceState, ViewState};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use takt_wire::Guid;

/// Maximum number of writers that are recorded of an instance with a key. Once these have
/// unregistered it, the instance has no writers until another one writes.
const WRITERS_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Instance {
    pub(super) handle: InstanceHandle,
    /// Serialized key, if the type has one and it could be decoded.
    pub(super) key: Box<[u8]>,
    /// Aliases, at most `ALIASES_MAX`, oldest first.
    pub(super) aliases: Vec<Alias>,
    pub(super) state: InstanceState,
    pub(super) view: ViewState,
    /// First pass that saw the instance since it became alive. For this pass it stays new
    /// (DDS 1.4 §2.2.2.5.1.4).
    pub(super) new_in_pass: u64,
    /// Last pass that returned a sample of the instance, and how many it had returned before.
    pub(super) returned_in: (u64, u32),
    pub(super) disposed_generation: u32,
    pub(super) no_writers_generation: u32,
    /// Writers of the instance, sorted; at most [`WRITERS_MAX`] of an instance with a key.
    writers: Vec<Guid>,
    /// OWNERSHIP EXCLUSIVE: the owner and its strength.
    pub(super) owner: Option<(Guid, i32)>,
    /// DESTINATION_ORDER BY_SOURCE_TIMESTAMP: the latest change of the instance.
    pub(super) latest: Option<SourceOrder>,
    /// TIME_BASED_FILTER: the time of the last presented sample, and the waiting sample.
    pub(super) last_delivery: Option<Instant>,
    pub(super) delayed: u32,
    pub(super) oldest: u32,
    pub(super) newest: u32,
    /// Samples in the list; `data_count` of them carry data.
    pub(super) count: usize,
    pub(super) data_count: usize,
    /// Number of samples with reserved room.
    pub(super) reserved: usize,
    /// Entry without data, if there is one: an instance keeps only its latest state change.
    pub(super) state_entry: u32,
}

impl Instance {
    /// Creates an instance without writers that was not seen yet.
    pub(super) fn new(handle: InstanceHandle, key: Box<[u8]>) -> Self {
        Self {
            handle,
            key,
            aliases: Vec::new(),
            state: InstanceState::Alive,
            view: ViewState::New,
            new_in_pass: 0,
            returned_in: (0, 0),
            disposed_generation: 0,
            no_writers_generation: 0,
            writers: Vec::new(),
            owner: None,
            latest: None,
            last_delivery: None,
            delayed: NONE,
            oldest: NONE,
            newest: NONE,
            count: 0,
            data_count: 0,
            reserved: 0,
            state_entry: NONE,
        }
    }

    /// Returns the view state in a pass; zero is a pass that has not begun.
    pub(super) fn view_in(&self, pass: u64) -> ViewState {
        if pass != 0 && self.new_in_pass == pass { ViewState::New } else { self.view }
    }

    /// Adds a writer.
    pub(super) fn join(&mut self, writer: Guid) {
        if let Err(at) = self.writers.binary_search(&writer)
            && (self.writers.len() < WRITERS_MAX || self.handle == InstanceHandle::default())
        {
            self.writers.insert(at, writer);
        }
    }

    /// Adds the writer of a change, if that writer is alive.
    pub(super) fn note_writer(&mut self, incoming: &Incoming) {
        if incoming.writer_is_alive {
            self.join(incoming.writer);
        }
    }

    /// Removes a writer.
    fn remove_writer(&mut self, writer: Guid) {
        if let Ok(at) = self.writers.binary_search(&writer) {
            self.writers.remove(at);
        }
    }

    /// Reports whether a writer is known to write the instance.
    pub(super) fn is_written_by(&self, writer: &Guid) -> bool {
        self.writers.binary_search(writer).is_ok()
    }

    pub(super) fn writers(&self) -> impl Iterator<Item = Guid> {
        self.writers.iter().copied()
    }

    pub(super) fn has_writers(&self) -> bool {
        !self.writers.is_empty()
    }

    /// Removes unmatched writers. Returns the first of them that wrote the instance.
    pub(super) fn remove_writers(&mut self, unmatched: &RangeInclusive<Guid>) -> Option<Guid> {
        let start = self.writers.partition_point(|writer| writer < unmatched.start());
        let end = self.writers.partition_point(|writer| writer <= unmatched.end());
        self.writers.drain(start..end).next()
    }

    /// Clears the instance for removal.
    pub(super) fn clear(&mut self) {
        (self.key, self.writers, self.aliases) = (Box::default(), Vec::new(), Vec::new());
    }

    /// Updates the state of the instance. Returns false if the change has no effect.
    pub(super) fn update(&mut self, incoming: &Incoming) -> bool {
        match incoming.kind {
            ChangeKind::Alive => {
                self.note_writer(incoming);
                let has_writers = self.has_writers();
                match self.state {
                    InstanceState::NotAliveDisposed => {
                        self.disposed_generation += 1;
                        self.view = ViewState::New;
                    }
                    InstanceState::NotAliveNoWriters if has_writers => {
                        self.no_writers_generation += 1;
                        self.view = ViewState::New;
                    }
                    InstanceState::Alive | InstanceState::NotAliveNoWriters => {}
                }
                self.state = if has_writers { InstanceState::Alive } else { InstanceState::NotAliveNoWriters };
                true
            }
            ChangeKind::Disposed => {
                self.note_writer(incoming);
                core::mem::replace(&mut self.state, InstanceState::NotAliveDisposed) != InstanceState::NotAliveDisposed
            }
            ChangeKind::Unregistered => {
                self.remove_writer(incoming.writer);
                self.lose_writers()
            }
            ChangeKind::DisposedUnregistered => {
                self.remove_writer(incoming.writer);
                core::mem::replace(&mut self.state, InstanceState::NotAliveDisposed) != InstanceState::NotAliveDisposed
            }
        }
    }

    /// Applies OWNERSHIP EXCLUSIVE (DDS 1.4 §2.2.3.9.2): reports whether the change is from the
    /// owner, or from a writer that becomes the owner. A writer becomes the owner if it is
    /// stronger, or equally strong with a lower GUID, on which all readers agree. Others are
    /// recorded as writers. A change of a writer that is not alive counts only while the instance
    /// has no owner.
    pub(super) fn is_owned_by(&mut self, incoming: &Incoming) -> bool {
        let unregisters = matches!(incoming.kind, ChangeKind::Unregistered | ChangeKind::DisposedUnregistered);
        let outranks = |(owner, strength): (Guid, i32)| {
            owner == incoming.writer
                || incoming.strength > strength
                || (incoming.strength == strength && incoming.writer < owner)
        };
        if !incoming.writer_is_alive && self.owner.is_none() {
            return true;
        }
        if incoming.writer_is_alive && self.owner.is_none_or(outranks) {
            self.owner = (!unregisters).then_some((incoming.writer, incoming.strength));
            return true;
        }
        if unregisters {
            self.remove_writer(incoming.writer);
        } else {
            self.note_writer(incoming);
        }
        false
    }

    pub(super) fn release_owner_if(&mut self, is_gone: impl Fn(&Guid) -> bool) {
        if self.owner.is_some_and(|(owner, _)| is_gone(&owner)) {
            self.owner = None;
        }
    }

    /// Updates the state after a writer was removed. Returns true if it was the last one of an
    /// alive instance.
    pub(super) fn lose_writers(&mut self) -> bool {
        if self.writers.is_empty() && self.state == InstanceState::Alive {
            self.state = InstanceState::NotAliveNoWriters;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_wire::{EntityId, GuidPrefix};

    fn writer(participant: u8, number: u8) -> Guid {
        Guid::new(GuidPrefix([participant; 12]), EntityId([0, 0, number, 2]))
    }

    #[test]
    fn instance_with_a_key_records_a_limited_number_of_writers() {
        for (handle, recorded) in [(InstanceHandle([7; 16]), WRITERS_MAX), (InstanceHandle::default(), 200)] {
            let mut instance = Instance::new(handle, Box::default());
            (0..200).for_each(|number| instance.join(writer(1, number)));
            assert_eq!((0..200).filter(|number| instance.is_written_by(&writer(1, *number))).count(), recorded);
        }
    }

    #[test]
    fn writers_of_one_participant_are_removed_together_and_others_stay() {
        let mut instance = Instance::new(InstanceHandle([7; 16]), Box::default());
        for (participant, number) in [(2, 9), (1, 3), (3, 1), (2, 1), (2, 9)] {
            instance.join(writer(participant, number));
        }
        let all = writer(2, 0)..=Guid::new(GuidPrefix([2; 12]), EntityId([u8::MAX; 4]));
        assert_eq!(instance.remove_writers(&all), Some(writer(2, 1)));
        assert_eq!(instance.remove_writers(&all), None);
        let remaining = [(1, 3), (2, 1), (2, 9), (3, 1)]
            .map(|(participant, number)| instance.is_written_by(&writer(participant, number)));
        assert_eq!(remaining, [true, false, false, true]);
        instance.remove_writers(&(writer(1, 3)..=writer(1, 3)));
        assert!(instance.has_writers() && !instance.is_written_by(&writer(1, 3)));
    }
}
