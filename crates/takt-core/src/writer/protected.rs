//! Payloads that are protected (DDS-SEC 1.1 §8.5.1.9.1): sealed once, as they are written, so that all readers, late ones
//! included, get the same octets, whole or in fragments.
//!
//! A writer of protected payloads copies what is lent, and applies no filters of readers, which would have nothing to look into.

use super::{Content, Writer};
use crate::cache::{ChangeKind, PayloadRef};
use crate::context::Context;
use crate::error::WriteError;

/// Plain octets are padded to a multiple of this.
const ALIGNMENT: usize = 4;

impl Writer {
    /// Whether the payload of such a change is protected: of those without data only if keys are.
    pub(super) fn protects(&self, kind: ChangeKind) -> bool {
        if kind == ChangeKind::Alive { self.protection.payload } else { self.protection.key }
    }

    /// What a payload takes in the history.
    pub(super) fn protected_len(&self, protects: bool, payload_len: usize, ctx: &Context) -> usize {
        match ctx.security.as_ref().filter(|_| protects && payload_len > 0) {
            None => payload_len,
            Some(security) => {
                let (front, back) = security.payload_room(self.entity_id);
                front + payload_len.next_multiple_of(ALIGNMENT) + back
            }
        }
    }

    /// Serialises a change into its room, and protects it there.
    pub(super) fn fill_protected(
        &mut self,
        room: PayloadRef,
        content: Content<'_, impl FnOnce(&mut [u8]) -> Option<usize>>,
        ctx: &mut Context,
    ) -> Result<(PayloadRef, usize), WriteError> {
        if room == PayloadRef::EMPTY {
            return Ok((room, 0));
        }
        let sealed = self.seal(room, ctx, |plain| match content {
            Content::Serialize(fill) => fill(plain),
            Content::Lent(lent) => {
                lent.copy_to(0, plain.get_mut(..lent.len())?);
                lent.is_intact().then_some(lent.len())
            }
        });
        let pool = &mut self.history.pool;
        match sealed {
            Ok(len) => Ok((pool.truncate(room, len), len)),
            Err(error) => {
                pool.release(room);
                Err(error)
            }
        }
    }

    fn seal(
        &mut self,
        room: PayloadRef,
        ctx: &mut Context,
        fill: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<usize, WriteError> {
        let Some(security) = ctx.security.as_mut() else { return Err(WriteError::Serialize) };
        let (front, back) = security.payload_room(self.entity_id);
        let octets = self.history.pool.bytes_mut(room);
        let plain_end = octets.len() - back;
        let plain = &mut octets[front..plain_end];
        let len = fill(plain).filter(|len| *len <= plain.len()).ok_or(WriteError::Serialize)?;
        let padded = len.next_multiple_of(ALIGNMENT);
        plain[len..padded].fill(0);
        match security.protect_payload(self.entity_id, octets, front..front + padded) {
            Some(sealed) => {
                let len = sealed.len();
                octets.copy_within(sealed, 0);
                Ok(len)
            }
            None => {
                ctx.counters.unprotectable_messages += 1;
                Err(WriteError::Serialize)
            }
        }
    }
}
