//! Fast path of delivery: data of a topic without keys, for which there is room.

use super::lists::Entry;
use super::{Incoming, NONE, ReaderCache};
use crate::cache::sample::{ChangeKind, InstanceHandle, InstanceState};
use crate::lifespan::Expiry;
use crate::presentation::SetPosition;
use crate::time::Clocks;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{Guid, SequenceNumber, Timestamp};

/// Sample of a topic without keys and without further metadata than writer and timestamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainSample<'a> {
    pub(crate) writer: Guid,
    pub(crate) sn: SequenceNumber,
    pub(crate) source_timestamp: Timestamp,
    /// OWNERSHIP_STRENGTH of the writer.
    pub(crate) strength: i32,
    pub(crate) payload: &'a [u8],
}

impl ReaderCache {
    /// Stores and delivers a sample, as `store` and `deliver` would, if that evicts nothing and
    /// changes no state. Returns false otherwise, without any change.
    pub(crate) fn deliver_plain(&mut self, plain: &PlainSample<'_>, clocks: Clocks) -> bool {
        if self.policies.may_delay_or_drop() || self.free == NONE || self.data_count >= self.limits.max_samples {
            return false;
        }
        let Some(&instance) = self.by_handle.get(&InstanceHandle::NIL) else { return false };
        let state = &mut self.instances[instance as usize];
        let (count, limit) = match self.limits.depth {
            Some(depth) => (state.data_count, depth),
            None => (state.count, self.limits.max_samples_per_instance),
        };
        let changes = state.state != InstanceState::Alive || !state.is_written_by(&plain.writer);
        if count >= limit || changes || state.delayed != NONE {
            return false;
        }
        let Some(payload) = self.pool.allocate_without_coalescing(plain.payload.len()) else { return false };
        state.last_delivery = Some(clocks.at);
        self.pool.bytes_mut(payload).copy_from_slice(plain.payload);
        let PlainSample { writer, sn, source_timestamp, strength, .. } = *plain;
        let index = self.free;
        let Entry { incoming, next, .. } = &mut self.entries[index as usize];
        self.free = *next;
        *incoming = Incoming {
            writer,
            sn,
            origin: SampleIdentity { writer, sn },
            kind: ChangeKind::Alive,
            key_hash: InstanceHandle::NIL.0,
            announced_hash: None,
            hash_is_computed: true,
            source_timestamp,
            payload,
            strength,
            writer_is_alive: true,
            expiry: Expiry::NEVER,
            position: SetPosition::default(),
        };
        self.append(index, instance, clocks.wall);
        true
    }
}
