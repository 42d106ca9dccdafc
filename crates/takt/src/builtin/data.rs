//! Data types of the builtin topics, with the fields of DDS 1.4 §2.2.5, and their conversion from
//! discovery data.

use takt_core::{InstanceHandle, SampleInfo};
use takt_wire::Guid;
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};

use crate::Result;
use crate::qos::*;
use crate::readable::sealed::Decode;

/// `BuiltinTopicKey_t`: identifies an entity in the domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuiltinTopicKey(pub [u8; 16]);

impl BuiltinTopicKey {
    /// Returns the GUID of a participant, writer or reader. The key of a topic is not a GUID.
    #[must_use]
    pub fn guid(self) -> Guid {
        Guid::from_bytes(self.0)
    }
}

impl From<Guid> for BuiltinTopicKey {
    fn from(guid: Guid) -> Self {
        Self(guid.to_bytes())
    }
}

impl From<BuiltinTopicKey> for InstanceHandle {
    fn from(key: BuiltinTopicKey) -> Self {
        Self(key.0)
    }
}

/// Sample of `DCPSParticipant`: describes a remote participant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParticipantBuiltinTopicData {
    /// Key of the participant.
    pub key: BuiltinTopicKey,
    /// USER_DATA of the participant.
    pub user_data: UserData,
    /// Name of the participant, empty if it has none (added by RTPS 2.5).
    pub entity_name: EntityName,
}

/// Sample of `DCPSTopic`: describes a topic. The policies are those of an endpoint that uses the
/// topic, a writer if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the other fields are the policies of their names")]
pub struct TopicBuiltinTopicData {
    /// Key of the topic. Equal names and types yield equal keys in every participant.
    pub key: BuiltinTopicKey,
    /// Name of the topic.
    pub name: String,
    /// Name of the topic's type.
    pub type_name: String,
    pub durability: Durability,
    pub durability_service: DurabilityService,
    pub deadline: Deadline,
    pub latency_budget: LatencyBudget,
    pub liveliness: Liveliness,
    pub reliability: Reliability,
    pub transport_priority: TransportPriority,
    pub lifespan: Lifespan,
    pub destination_order: DestinationOrder,
    pub history: History,
    pub resource_limits: ResourceLimits,
    pub ownership: Ownership,
    pub topic_data: TopicData,
}

/// Sample of `DCPSPublication`: describes a remote writer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the other fields are the policies of their names")]
pub struct PublicationBuiltinTopicData {
    /// Key of the writer.
    pub key: BuiltinTopicKey,
    /// Key of the writer's participant.
    pub participant_key: BuiltinTopicKey,
    /// Name of the writer's topic.
    pub topic_name: String,
    /// Name of the topic's type.
    pub type_name: String,
    pub durability: Durability,
    pub durability_service: DurabilityService,
    pub deadline: Deadline,
    pub latency_budget: LatencyBudget,
    pub liveliness: Liveliness,
    pub reliability: Reliability,
    pub lifespan: Lifespan,
    pub user_data: UserData,
    pub ownership: Ownership,
    pub ownership_strength: OwnershipStrength,
    pub destination_order: DestinationOrder,
    pub presentation: Presentation,
    pub partition: Partition,
    pub topic_data: TopicData,
    pub group_data: GroupData,
    /// Data representations that the writer offers (added by XTypes 1.3).
    pub representation: DataRepresentation,
}

/// Sample of `DCPSSubscription`: describes a remote reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the other fields are the policies of their names")]
pub struct SubscriptionBuiltinTopicData {
    /// Key of the reader.
    pub key: BuiltinTopicKey,
    /// Key of the reader's participant.
    pub participant_key: BuiltinTopicKey,
    /// Name of the reader's topic.
    pub topic_name: String,
    /// Name of the topic's type.
    pub type_name: String,
    pub durability: Durability,
    pub deadline: Deadline,
    pub latency_budget: LatencyBudget,
    pub liveliness: Liveliness,
    pub reliability: Reliability,
    pub ownership: Ownership,
    pub destination_order: DestinationOrder,
    pub user_data: UserData,
    pub time_based_filter: TimeBasedFilter,
    pub presentation: Presentation,
    pub partition: Partition,
    pub topic_data: TopicData,
    pub group_data: GroupData,
    /// Data representations that the reader accepts (added by XTypes 1.3).
    pub representation: DataRepresentation,
}

impl From<ParticipantData> for ParticipantBuiltinTopicData {
    fn from(data: ParticipantData) -> Self {
        Self { key: data.guid.into(), user_data: data.user_data, entity_name: data.entity_name }
    }
}

impl From<PublicationData> for PublicationBuiltinTopicData {
    fn from(data: PublicationData) -> Self {
        Self {
            key: data.guid.into(),
            // Announcements may omit the participant key; the GUID contains it.
            participant_key: data.guid.participant().into(),
            topic_name: data.topic_name,
            type_name: data.type_name,
            durability: data.qos.durability,
            durability_service: data.qos.durability_service,
            deadline: data.qos.deadline,
            latency_budget: data.qos.latency_budget,
            liveliness: data.qos.liveliness,
            reliability: data.qos.reliability,
            lifespan: data.qos.lifespan,
            user_data: data.qos.user_data,
            ownership: data.qos.ownership,
            ownership_strength: data.qos.ownership_strength,
            destination_order: data.qos.destination_order,
            presentation: data.presentation,
            partition: data.partition,
            topic_data: data.topic_data,
            group_data: data.group_data,
            representation: data.qos.data_representation,
        }
    }
}

impl From<SubscriptionData> for SubscriptionBuiltinTopicData {
    fn from(data: SubscriptionData) -> Self {
        Self {
            key: data.guid.into(),
            participant_key: data.guid.participant().into(),
            topic_name: data.topic_name,
            type_name: data.type_name,
            durability: data.qos.durability,
            deadline: data.qos.deadline,
            latency_budget: data.qos.latency_budget,
            liveliness: data.qos.liveliness,
            reliability: data.qos.reliability,
            ownership: data.qos.ownership,
            destination_order: data.qos.destination_order,
            user_data: data.qos.user_data,
            time_based_filter: data.qos.time_based_filter,
            presentation: data.presentation,
            partition: data.partition,
            topic_data: data.topic_data,
            group_data: data.group_data,
            representation: data.qos.data_representation,
        }
    }
}

impl TopicBuiltinTopicData {
    /// Returns the topic of an endpoint, taken from the endpoint's announcement.
    fn parse(payload: &[u8]) -> Option<Self> {
        let endpoint = PublicationData::parse_key(payload).ok()?;
        if endpoint.entity_id.is_writer() {
            PublicationData::parse(payload).ok().map(Self::of_writer)
        } else {
            SubscriptionData::parse(payload).ok().map(Self::of_reader)
        }
    }

    fn of_writer(data: PublicationData) -> Self {
        Self {
            key: BuiltinTopicKey::default(),
            name: data.topic_name,
            type_name: data.type_name,
            durability: data.qos.durability,
            durability_service: data.qos.durability_service,
            deadline: data.qos.deadline,
            latency_budget: data.qos.latency_budget,
            liveliness: data.qos.liveliness,
            reliability: data.qos.reliability,
            transport_priority: data.qos.transport_priority,
            lifespan: data.qos.lifespan,
            destination_order: data.qos.destination_order,
            history: data.qos.history,
            resource_limits: data.qos.resource_limits,
            ownership: data.qos.ownership,
            topic_data: data.topic_data,
        }
    }

    fn of_reader(data: SubscriptionData) -> Self {
        Self {
            name: data.topic_name,
            type_name: data.type_name,
            durability: data.qos.durability,
            deadline: data.qos.deadline,
            latency_budget: data.qos.latency_budget,
            liveliness: data.qos.liveliness,
            reliability: data.qos.reliability,
            destination_order: data.qos.destination_order,
            history: data.qos.history,
            resource_limits: data.qos.resource_limits,
            ownership: data.qos.ownership,
            topic_data: data.topic_data,
            ..Self::default()
        }
    }
}

/// Implements `Decode`. The key comes from the instance handle, all other fields come from the
/// announcement.
macro_rules! decode {
    ($($type:ident, $name:literal, $parse:expr;)*) => {$(
        impl Decode for $type {
            const TYPE_NAME: &'static str = $name;

            fn decode(&mut self, info: &SampleInfo, payload: &[u8]) -> bool {
                if info.valid_data {
                    let parse: fn(&[u8]) -> Option<Self> = $parse;
                    let Some(data) = parse(payload) else { return false };
                    *self = data;
                }
                self.decode_key(info.instance_handle, &[])
            }

            fn decode_key(&mut self, instance: InstanceHandle, _: &[u8]) -> bool {
                self.key = BuiltinTopicKey(instance.0);
                true
            }

            fn instance_handle(&self) -> Result<InstanceHandle> {
                Ok(self.key.into())
            }
        }
    )*};
}

decode! {
    ParticipantBuiltinTopicData, "DDS::ParticipantBuiltinTopicData",
        |payload| ParticipantData::parse(payload).ok().map(Self::from);
    TopicBuiltinTopicData, "DDS::TopicBuiltinTopicData", Self::parse;
    PublicationBuiltinTopicData, "DDS::PublicationBuiltinTopicData",
        |payload| PublicationData::parse(payload).ok().map(Self::from);
    SubscriptionBuiltinTopicData, "DDS::SubscriptionBuiltinTopicData",
        |payload| SubscriptionData::parse(payload).ok().map(Self::from);
}
