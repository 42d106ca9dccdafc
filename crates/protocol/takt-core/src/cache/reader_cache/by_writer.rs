//! Index of instances by writer, so that an unmatched writer requires no visit of other instances.
//!
//! Used by builtin readers, which hold the endpoints of all participants and may allocate. Other
//! readers visit each instance.

use super::{Incoming, NONE, ReaderCache};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use takt_wire::Guid;

/// Writers and the instances that they write.
pub(super) type ByWriter = BTreeSet<(Guid, u32)>;

impl ReaderCache {
    /// Enables the index. To be called while the cache is empty.
    pub(crate) fn index_writers(&mut self) {
        self.by_writer = Some(ByWriter::new());
    }

    /// Updates the index after a change of a writer.
    pub(super) fn index_writer_of(&mut self, incoming: &Incoming) {
        if self.by_writer.is_some()
            && let Some(instance) = self.find_instance(incoming)
        {
            self.index_writer(incoming.writer, instance);
        }
    }

    /// Updates the index entry of a writer at an instance.
    pub(super) fn index_writer(&mut self, writer: Guid, instance: u32) {
        let Some(index) = &mut self.by_writer else { return };
        let it = &self.instances[instance as usize];
        let is_delayed = it.delayed != NONE && self.entries[it.delayed as usize].incoming.writer == writer;
        let is_owner = it.owner.is_some_and(|(owner, _)| owner == writer);
        let has_alias = it.aliases.iter().any(|alias| alias.writer == Some(writer));
        if is_delayed || is_owner || has_alias || it.is_written_by(&writer) {
            index.insert((writer, instance));
        } else {
            index.remove(&(writer, instance));
        }
    }

    /// Removes an instance from the index before it is removed.
    pub(super) fn unindex(&mut self, instance: u32) {
        let Some(index) = &mut self.by_writer else { return };
        let it = &self.instances[instance as usize];
        let by_alias = it.aliases.iter().filter_map(|alias| alias.writer);
        for writer in it.writers().chain(by_alias).chain(it.owner.map(|(owner, _)| owner)) {
            index.remove(&(writer, instance));
        }
    }

    /// Takes the instances of the unmatched writers; `None` without an index.
    pub(super) fn take_instances_of(&mut self, unmatched: &RangeInclusive<Guid>) -> Option<Vec<u32>> {
        let index = self.by_writer.as_mut()?;
        let range = (*unmatched.start(), 0)..=(*unmatched.end(), u32::MAX);
        let pairs: Vec<_> = index.range(range).copied().collect();
        let mut instances = Vec::with_capacity(pairs.len());
        for pair in pairs {
            index.remove(&pair);
            instances.push(pair.1);
        }
        instances.sort_unstable();
        instances.dedup();
        Some(instances)
    }
}
