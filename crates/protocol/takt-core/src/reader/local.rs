//! Local changes without a wire message: those of discovery, for readers of builtin topics
//! (DDS 1.4 §2.2.5).

use super::Reader;
use crate::cache::{ChangeKind, Incoming, KeyHash};
use crate::context::Context;
use crate::event::Event;
use crate::lifespan::Expiry;
use crate::presentation::SetPosition;
use crate::status::SampleRejectedReason;
use crate::time::Instant;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{Guid, SequenceNumber};

impl Reader {
    /// Delivers a change to the application. If there is no room, the remaining changes of departed
    /// instances are removed and counted as lost. If there are none, the change is rejected.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        ctx: &mut Context,
        writer: Guid,
        kind: ChangeKind,
        key_hash: KeyHash,
        payload: &[u8],
    ) {
        loop {
            let inserted = self.try_insert(now, ctx, writer, kind, key_hash, payload);
            ctx.work.steps(self.cache.pool.take_steps());
            let Err(reason) = inserted else {
                return self.notify_available(ctx);
            };
            if !self.cache.evict_oldest_not_alive() {
                return self.count_rejection(ctx, reason);
            }
            self.statuses.lost.add(1);
            ctx.notify(Event::SampleLost(self.handle));
        }
    }

    fn try_insert(
        &mut self,
        now: Instant,
        ctx: &Context,
        writer: Guid,
        kind: ChangeKind,
        key_hash: KeyHash,
        bytes: &[u8],
    ) -> Result<(), SampleRejectedReason> {
        let full = SampleRejectedReason::SamplesLimit;
        let payload = self.cache.pool.allocate(bytes.len()).ok_or(full)?;
        self.cache.pool.bytes_mut(payload).copy_from_slice(bytes);
        let now = ctx.clocks(now);
        let incoming = Incoming {
            writer,
            sn: SequenceNumber(0),
            origin: SampleIdentity { writer, sn: SequenceNumber(0) },
            kind,
            key_hash,
            announced_hash: None,
            hash_is_computed: true,
            source_timestamp: now.wall,
            payload,
            strength: 0,
            writer_is_alive: true,
            expiry: Expiry::NEVER,
            position: SetPosition::default(),
        };
        let Some(stored) = self.cache.store(incoming) else {
            self.cache.pool.release(payload);
            return Err(full);
        };
        self.cache.deliver(stored, now, self.key.as_mut()).map(drop).inspect_err(|_| self.cache.discard(stored))
    }
}
