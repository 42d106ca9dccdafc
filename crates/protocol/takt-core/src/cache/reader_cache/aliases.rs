//! Aliases of instances: key hashes, other than the handle, that writers announce for an instance.
//!
//! The handle of an instance is the key hash that the reader computes from a payload. A change
//! without payload has PID_KEY_HASH alone. An alias maps such a hash to the instance:
//! - the key hash in XCDR1, for every writer;
//! - a hash that one writer announced with a payload of the instance, for that writer alone: a
//!   wrong hash must not affect the instances of other writers. It is removed with the writer or
//!   the instance.
//!
//! INTEROP(Fast DDS 2.9): disposes and unregisters by the key hash in XCDR1, without a payload.
//! Where keys are encrypted it announces their MD5, even if they are short.
//! INTEROP(Fast DDS 3.2.2): disposes and unregisters without a payload, by the hash of its other
//! samples. That of a string key whose length asks for padding is not the MD5 of the key
//! (RTPS 2.5 §9.6.4.8).

use super::{Incoming, ReaderCache};
use crate::cache::sample::{InstanceHandle, KeyHash};
use takt_wire::Guid;

/// Maximum number of aliases of one instance.
pub(super) const ALIASES_MAX: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Alias {
    pub(super) hash: KeyHash,
    /// Writer that announced the hash; `None`: the alias applies to every writer.
    pub(super) writer: Option<Guid>,
}

impl ReaderCache {
    /// Returns the instance of a change.
    pub(super) fn find_instance(&self, incoming: &Incoming) -> Option<u32> {
        if incoming.hash_is_computed || self.by_alias.is_empty() {
            return self.by_handle.get(&InstanceHandle(incoming.key_hash)).copied();
        }
        self.find_announced(incoming.writer, incoming.key_hash)
    }

    /// Returns the instance that a writer identifies by a hash. If the hash is the handle of one
    /// instance and the key hash in XCDR1 of another, the instance that the writer writes counts.
    fn find_announced(&self, writer: Guid, hash: KeyHash) -> Option<u32> {
        let alias = |writer| self.by_alias.get(&Alias { hash, writer }).copied();
        if let Some(announced) = alias(Some(writer)) {
            return Some(announced);
        }
        let own = self.by_handle.get(&InstanceHandle(hash)).copied();
        let in_xcdr1 = alias(None);
        let is_written = |index: &u32| self.instances[*index as usize].is_written_by(&writer);
        own.filter(is_written).or(in_xcdr1.filter(is_written)).or(own).or(in_xcdr1)
    }

    /// Returns the instance that a writer identifies by a hash, if it is known to write that
    /// instance.
    pub(crate) fn announced_instance(&self, writer: Guid, hash: KeyHash) -> Option<InstanceHandle> {
        let instance = &self.instances[self.find_announced(writer, hash)? as usize];
        instance.is_written_by(&writer).then_some(instance.handle)
    }

    /// Records the hash that a writer announced with a payload of the instance, unless it leads to
    /// the instance already.
    pub(super) fn learn_alias(&mut self, instance: u32, incoming: &Incoming) {
        let Some(hash) = incoming.announced_hash.filter(|_| incoming.hash_is_computed) else { return };
        let is_usual = hash == incoming.key_hash && self.by_alias.is_empty();
        if !is_usual && self.find_announced(incoming.writer, hash) != Some(instance) {
            self.add_alias(instance, Alias { hash, writer: Some(incoming.writer) });
        }
    }

    /// Maps an alias to this instance alone. Beyond [`ALIASES_MAX`] the oldest alias of the same
    /// writer is removed, or else the oldest of any writer.
    pub(super) fn add_alias(&mut self, instance: u32, alias: Alias) {
        if let Some(previous) = self.by_alias.insert(alias, instance) {
            self.instances[previous as usize].aliases.retain(|known| *known != alias);
            self.unlearn(alias, previous);
        }
        let aliases = &mut self.instances[instance as usize].aliases;
        if aliases.len() == ALIASES_MAX {
            let same = aliases.iter().position(|known| known.writer == alias.writer);
            let oldest = same.or_else(|| aliases.iter().position(|known| known.writer.is_some())).unwrap_or(0);
            let oldest = aliases.remove(oldest);
            self.by_alias.remove(&oldest);
            self.unlearn(oldest, instance);
        }
        self.instances[instance as usize].aliases.push(alias);
    }

    /// Removes an alias of an instance.
    fn unlearn(&mut self, alias: Alias, instance: u32) {
        if let Some(writer) = alias.writer {
            self.index_writer(writer, instance);
        }
    }

    /// Removes the aliases of an instance that the test selects.
    pub(super) fn drop_aliases(&mut self, instance: u32, is_dropped: impl Fn(&Alias) -> bool) {
        let by_alias = &mut self.by_alias;
        self.instances[instance as usize].aliases.retain(|alias| {
            let drops = is_dropped(alias);
            if drops {
                by_alias.remove(alias);
            }
            !drops
        });
    }
}
