//! Endpoints whose deletion was missed.
//!
//! A SEDP writer keeps what it said last of each endpoint that exists (RTPS 2.5 §8.5.4.2), and of one that does not until all
//! participants that it knows have heard so. One that it has taken for dead meanwhile, though that one has not noticed, is not
//! among them: later it is told that these numbers are irrelevant, and would believe in the endpoint for good.
//!
//! So after a gap [`Participant::review`] matches the SEDP writer again, which makes it send its history. If the history leaves out an
//! endpoint, the review reads it a second time. Endpoints that neither reading announces are unmatched; the others stay as they are. One
//! reading is not enough: a change may replace an announcement during it, and arrive after it.

use super::{SEDP_PUBLICATIONS, SEDP_PUBLICATIONS_SECURE, SEDP_SUBSCRIPTIONS, SEDP_SUBSCRIPTIONS_SECURE};
use crate::participant::Participant;
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet};
use takt_wire::{EntityId, Guid, GuidPrefix};

/// The writers that announce writers, and those that announce readers.
pub(super) const PUBLICATIONS: [EntityId; 2] = [EntityId::SEDP_PUB_WRITER, EntityId::SEDP_PUB_SECURE_WRITER];
pub(super) const SUBSCRIPTIONS: [EntityId; 2] = [EntityId::SEDP_SUB_WRITER, EntityId::SEDP_SUB_SECURE_WRITER];

/// By SEDP writer, what is doubtful since it was asked to begin again.
#[derive(Debug, Default)]
pub(crate) struct Reviews(BTreeMap<Guid, Review>);

#[derive(Debug)]
struct Review {
    /// The endpoints that it has not mentioned. No more than there are endpoints.
    doubtful: BTreeSet<Guid>,
    is_second: bool,
}

impl Reviews {
    /// An endpoint was announced by one of these kinds of writers.
    pub(super) fn confirm(&mut self, writers: [EntityId; 2], endpoint: Guid) {
        for entity_id in writers {
            if let Some(review) = self.0.get_mut(&Guid { prefix: endpoint.prefix, entity_id }) {
                review.doubtful.remove(&endpoint);
            }
        }
    }

    /// A participant has gone.
    pub(super) fn forget(&mut self, prefix: GuidPrefix) {
        for entity_id in PUBLICATIONS.into_iter().chain(SUBSCRIPTIONS) {
            self.0.remove(&Guid { prefix, entity_id });
        }
    }
}

impl Participant {
    /// Something came from a builtin writer: begins a review if something will never come, and ends one when all has come.
    /// Looks at each endpoint of the participant.
    pub(crate) fn review(&mut self, now: Instant, writer: Guid) {
        let reader = match writer.entity_id {
            EntityId::SEDP_PUB_WRITER => SEDP_PUBLICATIONS,
            EntityId::SEDP_SUB_WRITER => SEDP_SUBSCRIPTIONS,
            EntityId::SEDP_PUB_SECURE_WRITER => SEDP_PUBLICATIONS_SECURE,
            EntityId::SEDP_SUB_SECURE_WRITER => SEDP_SUBSCRIPTIONS_SECURE,
            _ => return,
        };
        let Some(&(_, index)) = self.sources.get(&writer).and_then(|listeners| listeners.first()) else { return };
        let Some(local) = self.readers.get_mut(reader) else { return };
        let Some(proxy) = local.proxies.get_mut(index) else { return };
        if core::mem::take(&mut proxy.has_hole) {
            let doubtful = self.endpoints_of(writer);
            self.ctx.work.steps(doubtful.len());
            if !doubtful.is_empty() {
                self.reviews.0.insert(writer, Review { doubtful, is_second: false });
                self.match_anew(now, reader, index, writer);
            }
        } else if proxy.has_history()
            && let Some(Review { doubtful, is_second }) = self.reviews.0.remove(&writer)
        {
            self.ctx.work.steps(doubtful.len());
            if !doubtful.is_empty() && !is_second {
                self.reviews.0.insert(writer, Review { doubtful, is_second: true });
                return self.match_anew(now, reader, index, writer);
            }
            for guid in doubtful {
                match reader {
                    SEDP_PUBLICATIONS | SEDP_PUBLICATIONS_SECURE => self.lose_publication(now, guid),
                    _ => self.lose_subscription(now, guid),
                }
            }
        }
    }

    /// What the participant of a SEDP writer has, as far as that writer announces it.
    fn endpoints_of(&self, writer: Guid) -> BTreeSet<Guid> {
        let first = Guid { prefix: writer.prefix, entity_id: Guid::from_bytes([0; 16]).entity_id };
        let is_of = |guid: &&Guid| guid.prefix == writer.prefix;
        let is_secure = !matches!(writer.entity_id, EntityId::SEDP_PUB_WRITER | EntityId::SEDP_SUB_WRITER);
        let announces = |topic_name: &str| self.protects_discovery(topic_name) == is_secure;
        if PUBLICATIONS.contains(&writer.entity_id) {
            let those = self.publications.range(first..).take_while(|(guid, _)| is_of(guid));
            those.filter(|(_, data)| announces(&data.topic_name)).map(|(guid, _)| *guid).collect()
        } else {
            let those = self.subscriptions.range(first..).take_while(|(guid, _)| is_of(guid));
            those.filter(|(_, data)| announces(&data.topic_name)).map(|(guid, _)| *guid).collect()
        }
    }

    /// Takes all of a writer's history as if it had just been matched.
    fn match_anew(&mut self, now: Instant, reader: u32, index: u32, writer: Guid) {
        let Some(&remote) = self.remote_by_prefix.get(&writer.prefix) else { return };
        if let Some(local) = self.readers.get_mut(reader) {
            local.detach(now, &mut self.ctx, index);
        }
        self.sources.remove(&writer);
        self.add_builtin_writer(now, reader, writer, remote);
    }
}
