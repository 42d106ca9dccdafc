//! Counting of a writer's matches (PUBLICATION_MATCHED, DDS 1.4 §2.2.4.1), delayed until the
//! reader's participant knows the writer.
//!
//! Data and discovery may use different transports, such as shared memory and UDP, so a sample can
//! overtake the announcement of its writer. A reader drops a sample of an unknown writer, and a
//! best-effort reader never gets it again. A match is therefore counted once the reader's
//! participant has acknowledged the SEDP announcement of the writer, or the reader has acknowledged
//! the writer itself. The writer sends data to the reader from the match on.
//!
//! A match is counted at once with a reader of this participant, with static endpoints, and with a
//! participant that has no reader of SEDP publications. A match without any confirmation is counted
//! after [`CONFIRMATION_TIME`].
//!
//! Limit: if the type information of both sides differs, the remote participant may request the
//! type definition before it matches. It then acknowledges the announcement before the match
//! exists.
//!
//! Bounds: one entry for each match of the last [`CONFIRMATION_TIME`].

use super::SEDP_PUBLICATIONS_SECURE;
use crate::context::Context;
use crate::discovery::{Call, Discovery};
use crate::endpoints::Endpoints;
use crate::time::Instant;
use crate::timer::{TimerId, TimerKind};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;
use takt_wire::{EntityId, Guid, GuidPrefix, SequenceNumber};

/// Time after which a match is counted although nothing has confirmed that the reader knows the
/// writer.
const CONFIRMATION_TIME: Duration = Duration::from_secs(1);

/// Matches that are not counted yet: reader, writer, and the end of the wait.
#[derive(Debug)]
pub(crate) struct Unconfirmed {
    waiting: BTreeMap<(Guid, EntityId), Instant>,
    timer: TimerId,
}

impl Unconfirmed {
    pub(crate) fn new(ctx: &mut Context) -> Self {
        Self { waiting: BTreeMap::new(), timer: ctx.timers.register(TimerKind::ConfirmMatches) }
    }

    /// Returns the number of matches that are not counted yet.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    fn of(&self, prefix: GuidPrefix) -> impl Iterator<Item = (Guid, EntityId)> {
        let from = (Guid { prefix, entity_id: EntityId::UNKNOWN }, EntityId::UNKNOWN);
        let those = self.waiting.range(from..).take_while(move |((reader, _), _)| reader.prefix == prefix);
        those.map(|(pair, _)| *pair)
    }
}

impl Discovery {
    /// Counts a new match, now or once the reader's participant knows the writer.
    pub(super) fn count_match_once_known(&mut self, call: &mut Call<'_>, index: u32, reader: Guid) {
        let Some(writer) = call.endpoints.writers.get_mut(index) else { return };
        let (writer_id, announced, topic_name) = (writer.entity_id, writer.announced, writer.data.topic_name.clone());
        if self.is_announcement_known(call.ctx, call.endpoints, reader.prefix, &topic_name, announced) {
            if let Some(writer) = call.endpoints.writers.get_mut(index) {
                writer.count_match(call.ctx, reader);
            }
            return;
        }
        let until = call.now.after(CONFIRMATION_TIME);
        self.unconfirmed.waiting.insert((reader, writer_id), until);
        call.ctx.timers.arm_by(self.unconfirmed.timer, until);
    }

    /// Reports whether a participant has acknowledged the announcement of a writer, or will never
    /// acknowledge one.
    fn is_announcement_known(
        &self,
        ctx: &Context,
        endpoints: &Endpoints,
        prefix: GuidPrefix,
        topic_name: &str,
        announced: SequenceNumber,
    ) -> bool {
        if prefix == ctx.header.prefix || self.static_endpoints.is_some() {
            return true;
        }
        let sedp = ctx.sedp_of_publications(topic_name);
        let entity_id = match sedp {
            SEDP_PUBLICATIONS_SECURE => EntityId::SEDP_PUB_SECURE_READER,
            _ => EntityId::SEDP_PUB_READER,
        };
        let reader = Guid { prefix, entity_id };
        let Some(sedp) = endpoints.writers.get(sedp) else { return true };
        let proxy = sedp.proxy_index(reader).and_then(|index| sedp.proxies.get(index));
        proxy.is_none_or(|proxy| proxy.acked >= announced)
    }

    /// Counts the matches that an acknowledgment from the reader confirms.
    pub(crate) fn confirm_matches(
        &mut self,
        ctx: &mut Context,
        endpoints: &mut Endpoints,
        reader: Guid,
        writer: EntityId,
    ) {
        if self.unconfirmed.waiting.is_empty() {
            return;
        }
        if matches!(writer, EntityId::SEDP_PUB_WRITER | EntityId::SEDP_PUB_SECURE_WRITER) {
            let pairs: Vec<_> = self.unconfirmed.of(reader.prefix).collect();
            for (reader, writer) in pairs {
                ctx.work.steps(1);
                let found = endpoints.writer_ids.get(&writer).and_then(|&index| endpoints.writers.get(index));
                let is_known = found.is_none_or(|writer| {
                    self.is_announcement_known(ctx, endpoints, reader.prefix, &writer.data.topic_name, writer.announced)
                });
                if is_known {
                    self.confirm_match(ctx, endpoints, reader, writer);
                }
            }
        } else if self.unconfirmed.waiting.contains_key(&(reader, writer)) {
            self.confirm_match(ctx, endpoints, reader, writer);
        }
    }

    fn confirm_match(&mut self, ctx: &mut Context, endpoints: &mut Endpoints, reader: Guid, writer: EntityId) {
        self.unconfirmed.waiting.remove(&(reader, writer));
        let index = endpoints.writer_ids.get(&writer).copied();
        if let Some(writer) = index.and_then(|index| endpoints.writers.get_mut(index)) {
            writer.count_match(ctx, reader);
        }
    }

    /// Counts the matches that have waited for [`CONFIRMATION_TIME`].
    pub(crate) fn handle_confirmation_timeout(&mut self, call: &mut Call<'_>) {
        call.ctx.work.steps(self.unconfirmed.len());
        let waiting = &self.unconfirmed.waiting;
        let late: Vec<_> = waiting.iter().filter(|(_, until)| **until <= call.now).map(|(pair, _)| *pair).collect();
        for (reader, writer) in late {
            self.confirm_match(call.ctx, call.endpoints, reader, writer);
        }
        if let Some(next) = self.unconfirmed.waiting.values().min() {
            call.ctx.timers.arm(self.unconfirmed.timer, *next);
        }
    }
}
