//! Remote entities that the application ignores (DDS 1.4 §2.2.2.2.1). They are treated as
//! nonexistent for the lifetime of the participant.

use super::Departure;
use crate::discovery::{Call, Discovery};
use crate::error::Error;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::{Guid, GuidPrefix};

/// Maximum number of participants, topics and endpoints that can be ignored, in total.
const IGNORED_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub(crate) struct Ignored {
    participants: BTreeSet<GuidPrefix>,
    topics: BTreeSet<String>,
    endpoints: BTreeSet<Guid>,
}

impl Ignored {
    pub(super) fn has_participant(&self, prefix: GuidPrefix) -> bool {
        self.participants.contains(&prefix)
    }

    pub(super) fn has_writer(&self, data: &PublicationData) -> bool {
        self.endpoints.contains(&data.guid) || self.topics.contains(&data.topic_name)
    }

    pub(super) fn has_reader(&self, data: &SubscriptionData) -> bool {
        self.endpoints.contains(&data.guid) || self.topics.contains(&data.topic_name)
    }

    fn check_room(&self) -> Result<(), Error> {
        if self.participants.len() + self.topics.len() + self.endpoints.len() < IGNORED_MAX {
            return Ok(());
        }
        Err(Error::OutOfResources { limit: "ignored entities", value: IGNORED_MAX as u64 })
    }
}

impl Discovery {
    /// Ignores a participant and all its entities, now and if it returns with the same GUID.
    pub(crate) fn ignore_participant(&mut self, call: &mut Call<'_>, participant: GuidPrefix) -> Result<(), Error> {
        self.ignored.check_room()?;
        self.ignored.participants.insert(participant);
        self.remove_participant(call, participant, Departure::Deleted);
        Ok(())
    }

    /// Ignores all remote writers and readers of a topic.
    pub(crate) fn ignore_topic(&mut self, call: &mut Call<'_>, topic_name: &str) -> Result<(), Error> {
        self.ignored.check_room()?;
        self.ignored.topics.insert(topic_name.into());
        let writers = self.publications.values().filter(|data| data.topic_name == topic_name);
        let readers = self.subscriptions.values().filter(|data| data.topic_name == topic_name);
        let (writers, readers): (Vec<_>, Vec<_>) =
            (writers.map(|data| data.guid).collect(), readers.map(|data| data.guid).collect());
        writers.into_iter().for_each(|guid| self.drop_publication(call, guid));
        readers.into_iter().for_each(|guid| self.drop_subscription(call, guid));
        Ok(())
    }

    /// Ignores a remote writer.
    pub(crate) fn ignore_publication(&mut self, call: &mut Call<'_>, writer: Guid) -> Result<(), Error> {
        self.ignored.check_room()?;
        self.ignored.endpoints.insert(writer);
        self.drop_publication(call, writer);
        Ok(())
    }

    /// Ignores a remote reader.
    pub(crate) fn ignore_subscription(&mut self, call: &mut Call<'_>, reader: Guid) -> Result<(), Error> {
        self.ignored.check_room()?;
        self.ignored.endpoints.insert(reader);
        self.drop_subscription(call, reader);
        Ok(())
    }

    fn drop_publication(&mut self, call: &mut Call<'_>, guid: Guid) {
        if let Some(data) = self.remove_publication(call, guid) {
            self.builtin_topics.withdraw_publication(call, &data, Departure::Deleted);
        }
    }

    fn drop_subscription(&mut self, call: &mut Call<'_>, guid: Guid) {
        if let Some(data) = self.remove_subscription(call.ctx, call.endpoints, guid) {
            self.builtin_topics.withdraw_subscription(call, &data, Departure::Deleted);
        }
    }
}
