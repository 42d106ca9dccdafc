//! Protection of a writer's messages (DDS-SEC 1.1 §9.5.3).

use crate::context::Context;
use crate::security::Protection;
use takt_wire::{EntityId, GuidPrefix};

#[derive(Debug)]
pub(crate) struct WriterSecurity {
    pub(crate) protection: Protection,
    /// Octets that the protection adds to each payload.
    pub(super) payload_overhead: usize,
    /// Octets of the protection of a submessage, as of when fragment sizes were chosen. They grow
    /// with the receivers whose authentication codes the submessage carries.
    pub(super) planned_reserve: usize,
    /// Only receiver of all its messages, which name it: the writer's key is shared with that
    /// participant alone.
    pub(crate) addressee: Option<GuidPrefix>,
    /// Payloads may stay in memory shared with their readers, because they are not protected.
    pub(super) may_loan: bool,
}

impl WriterSecurity {
    pub(super) fn new(ctx: &Context) -> Self {
        Self {
            protection: Protection::default(),
            payload_overhead: 0,
            planned_reserve: 0,
            addressee: None,
            may_loan: ctx.security.is_none(),
        }
    }

    /// Adopts the protection of a writer. Returns the octets that it reserves in each message.
    pub(super) fn protect(&mut self, protection: Protection, writer: EntityId, ctx: &Context) -> usize {
        self.protection = protection;
        self.payload_overhead = ctx.payload_overhead(writer);
        self.planned_reserve = self.reserve(ctx);
        self.planned_reserve
    }
}
