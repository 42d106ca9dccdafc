//! Memory footprint of remote announcements, for the limits on discovery memory.
//!
//! The figures are upper estimates: the value itself, and the contents of its strings and lists.

use core::mem::size_of;
use takt_wire::discovery::{HostStage, HostStages, ParticipantData, PublicationData, SubscriptionData};
use takt_wire::qos::{DataTag, Partition, Property};
use takt_wire::{Guid, Locator};

/// Bytes that tables and the allocator add to an entry.
const ENTRY_BYTES: usize = 128;
/// Bytes of a string in a list: its header, and the smallest block of the allocator.
const TEXT_BYTES: usize = size_of::<alloc::string::String>() + 16;

/// Type of which one value is kept for each announced entity.
pub(crate) trait Footprint {
    /// Returns the size in bytes. It is constant for the lifetime of the value.
    fn footprint(&self) -> usize;
}

fn partition(partition: &Partition) -> usize {
    partition.names.iter().map(|name| TEXT_BYTES + name.len()).sum()
}

fn properties(properties: &Property) -> usize {
    properties.entries.iter().map(|entry| 2 * TEXT_BYTES + 8 + entry.name.len() + entry.value.len()).sum()
}

fn tags(tags: &DataTag) -> usize {
    tags.tags.iter().map(|tag| 2 * TEXT_BYTES + tag.name.len() + tag.value.len()).sum()
}

fn stages(stages: &HostStages) -> usize {
    stages.stages.iter().map(|stage| size_of::<HostStage>() + 16 + stage.name.len()).sum()
}

impl Footprint for ParticipantData {
    fn footprint(&self) -> usize {
        let locators =
            [&self.metatraffic_unicast, &self.metatraffic_multicast, &self.default_unicast, &self.default_multicast];
        let locators: usize = locators.iter().map(|list| list.len()).sum();
        ENTRY_BYTES
            + size_of::<Self>()
            + locators * size_of::<Locator>()
            + self.domain_tag.as_ref().map_or(0, |tag| tag.len())
            + self.user_data.0.len()
            + self.entity_name.0.len()
            + properties(&self.properties)
            + [&self.identity_token, &self.permissions_token]
                .into_iter()
                .flatten()
                .map(|it| it.octets.len())
                .sum::<usize>()
    }
}

impl Footprint for PublicationData {
    fn footprint(&self) -> usize {
        ENTRY_BYTES
            + size_of::<Guid>()
            + size_of::<Self>()
            + self.topic_name.len()
            + self.type_name.len()
            + (self.unicast.len() + self.multicast.len()) * size_of::<Locator>()
            + self.qos.user_data.0.len()
            + self.qos.entity_name.0.len()
            + properties(&self.qos.property)
            + tags(&self.qos.data_tag)
            + self.qos.data_representation.0.len() * size_of::<i16>()
            + partition(&self.partition)
            + self.topic_data.0.len()
            + self.group_data.0.len()
            + self.type_information.as_ref().map_or(0, |bytes| bytes.len())
            + self.refusal.as_ref().map_or(0, |reason| reason.len())
            + self.host_stages.as_ref().map_or(0, stages)
    }
}

impl Footprint for SubscriptionData {
    fn footprint(&self) -> usize {
        let filter = self.content_filter.as_ref().map_or(0, |filter| {
            let parameters = filter.expression_parameters.iter().map(|text| TEXT_BYTES + text.len());
            filter.content_filtered_topic_name.len()
                + filter.related_topic_name.len()
                + filter.filter_class_name.len()
                + filter.filter_expression.len()
                + parameters.sum::<usize>()
        });
        ENTRY_BYTES
            + size_of::<Guid>()
            + size_of::<Self>()
            + self.topic_name.len()
            + self.type_name.len()
            + (self.unicast.len() + self.multicast.len()) * size_of::<Locator>()
            + self.qos.user_data.0.len()
            + self.qos.entity_name.0.len()
            + properties(&self.qos.property)
            + tags(&self.qos.data_tag)
            + self.qos.data_representation.0.len() * size_of::<i16>()
            + partition(&self.partition)
            + self.topic_data.0.len()
            + self.group_data.0.len()
            + self.type_information.as_ref().map_or(0, |bytes| bytes.len())
            + self.refusal.as_ref().map_or(0, |reason| reason.len())
            + self.host_stages.as_ref().map_or(0, stages)
            + filter
    }
}
