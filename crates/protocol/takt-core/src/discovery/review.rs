//! Review of remote endpoints whose deletion was missed.
//!
//! A SEDP writer keeps the last announcement of each existing endpoint (RTPS 2.5 §8.5.4.2). It
//! keeps the disposal of a deleted one until all participants that it knows have acknowledged it.
//! If it considered this participant dead meanwhile, and this participant did not notice, it sends
//! only a GAP for these numbers later. The deleted endpoint would then stay known forever.
//!
//! After a gap, [`Discovery::review`] therefore matches the SEDP writer again, which makes it
//! resend its history. If the history lacks an endpoint, it is read a second time. Endpoints that
//! are missing in both readings are unmatched; the others keep their state. One reading does not
//! suffice, because a change may replace an announcement during it and arrive after it.

use super::{SEDP_PUBLICATIONS, SEDP_PUBLICATIONS_SECURE, SEDP_SUBSCRIPTIONS, SEDP_SUBSCRIPTIONS_SECURE};
use crate::context::Context;
use crate::discovery::{Call, Discovery};
use alloc::collections::{BTreeMap, BTreeSet};
use takt_wire::{EntityId, Guid, GuidPrefix};

/// SEDP writers that announce writers.
pub(super) const PUBLICATIONS: [EntityId; 2] = [EntityId::SEDP_PUB_WRITER, EntityId::SEDP_PUB_SECURE_WRITER];
/// SEDP writers that announce readers.
pub(super) const SUBSCRIPTIONS: [EntityId; 2] = [EntityId::SEDP_SUB_WRITER, EntityId::SEDP_SUB_SECURE_WRITER];

/// Endpoints in doubt, by the SEDP writer whose history was requested again.
#[derive(Debug, Default)]
pub(crate) struct Reviews(BTreeMap<Guid, Review>);

#[derive(Debug)]
struct Review {
    /// Endpoints that the history has not contained so far. Bounded by the number of endpoints.
    unconfirmed: BTreeSet<Guid>,
    is_second: bool,
}

impl Reviews {
    /// Confirms an endpoint that one of these writers announced.
    pub(super) fn confirm(&mut self, writers: [EntityId; 2], endpoint: Guid) {
        for entity_id in writers {
            if let Some(review) = self.0.get_mut(&Guid { prefix: endpoint.prefix, entity_id }) {
                review.unconfirmed.remove(&endpoint);
            }
        }
    }

    /// Ends the reviews of a departed participant.
    pub(super) fn remove(&mut self, prefix: GuidPrefix) {
        for entity_id in PUBLICATIONS.into_iter().chain(SUBSCRIPTIONS) {
            self.0.remove(&Guid { prefix, entity_id });
        }
    }
}

impl Discovery {
    /// Handles samples of a builtin writer: starts a review if samples will never arrive, and ends
    /// one when the whole history has arrived. Visits each endpoint of the participant.
    pub(crate) fn review(&mut self, call: &mut Call<'_>, writer: Guid) {
        let reader = match writer.entity_id {
            EntityId::SEDP_PUB_WRITER => SEDP_PUBLICATIONS,
            EntityId::SEDP_SUB_WRITER => SEDP_SUBSCRIPTIONS,
            EntityId::SEDP_PUB_SECURE_WRITER => SEDP_PUBLICATIONS_SECURE,
            EntityId::SEDP_SUB_SECURE_WRITER => SEDP_SUBSCRIPTIONS_SECURE,
            _ => return,
        };
        let Some(&(_, index)) = call.endpoints.sources.get(&writer).and_then(|listeners| listeners.first()) else {
            return;
        };
        let Some(local) = call.endpoints.readers.get_mut(reader) else { return };
        let Some(proxy) = local.proxies.get_mut(index) else { return };
        if core::mem::take(&mut proxy.has_hole) {
            let unconfirmed = self.endpoints_of(call.ctx, writer);
            call.ctx.work.steps(unconfirmed.len());
            if !unconfirmed.is_empty() {
                self.reviews.0.insert(writer, Review { unconfirmed, is_second: false });
                self.rematch_writer(call, reader, index, writer);
            }
        } else if proxy.has_history()
            && let Some(Review { unconfirmed, is_second }) = self.reviews.0.remove(&writer)
        {
            call.ctx.work.steps(unconfirmed.len());
            if !unconfirmed.is_empty() && !is_second {
                self.reviews.0.insert(writer, Review { unconfirmed, is_second: true });
                return self.rematch_writer(call, reader, index, writer);
            }
            for guid in unconfirmed {
                match reader {
                    SEDP_PUBLICATIONS | SEDP_PUBLICATIONS_SECURE => self.handle_deleted_publication(call, guid),
                    _ => self.handle_deleted_subscription(call, guid),
                }
            }
        }
    }

    /// Returns the endpoints of a participant that this SEDP writer announces.
    fn endpoints_of(&self, ctx: &Context, writer: Guid) -> BTreeSet<Guid> {
        let first = Guid { prefix: writer.prefix, entity_id: Guid::from_bytes([0; 16]).entity_id };
        let is_of = |guid: &&Guid| guid.prefix == writer.prefix;
        let is_secure = !matches!(writer.entity_id, EntityId::SEDP_PUB_WRITER | EntityId::SEDP_SUB_WRITER);
        let announces = |topic_name: &str| ctx.protects_discovery(topic_name) == is_secure;
        if PUBLICATIONS.contains(&writer.entity_id) {
            let those = self.publications.range(first..).take_while(|(guid, _)| is_of(guid));
            those.filter(|(_, data)| announces(&data.topic_name)).map(|(guid, _)| *guid).collect()
        } else {
            let those = self.subscriptions.range(first..).take_while(|(guid, _)| is_of(guid));
            those.filter(|(_, data)| announces(&data.topic_name)).map(|(guid, _)| *guid).collect()
        }
    }

    /// Matches a writer again, to receive its whole history.
    fn rematch_writer(&mut self, call: &mut Call<'_>, reader: u32, index: u32, writer: Guid) {
        let Some(&remote) = self.remote_by_prefix.get(&writer.prefix) else { return };
        if let Some(local) = call.endpoints.readers.get_mut(reader) {
            local.detach(call.now, call.ctx, index);
        }
        call.endpoints.sources.remove(&writer);
        self.add_builtin_writer(call, reader, writer, remote);
    }
}
