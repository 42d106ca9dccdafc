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

/// Defines the sample that describes an endpoint, and its conversion from the announcement.
macro_rules! endpoint_sample {
    ($(#[$meta:meta])* $sample:ident from $data:ident of $endpoint:literal; $($policy:ident: $type:ty,)+) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the other fields are the policies of their names")]
        pub struct $sample {
            #[doc = concat!("Key of the ", $endpoint, ".")]
            pub key: BuiltinTopicKey,
            #[doc = concat!("Key of the ", $endpoint, "'s participant.")]
            pub participant_key: BuiltinTopicKey,
            #[doc = concat!("Name of the ", $endpoint, "'s topic.")]
            pub topic_name: String,
            /// Name of the topic's type.
            pub type_name: String,
            $(pub $policy: $type,)+
            pub presentation: Presentation,
            pub partition: Partition,
            pub topic_data: TopicData,
            pub group_data: GroupData,
            #[doc = concat!("Data representations of the ", $endpoint, " (added by XTypes 1.3).")]
            pub representation: DataRepresentation,
        }

        impl From<$data> for $sample {
            fn from(data: $data) -> Self {
                Self {
                    key: data.guid.into(),
                    // Announcements may omit the participant key; the GUID contains it.
                    participant_key: data.guid.participant().into(),
                    topic_name: data.topic_name,
                    type_name: data.type_name,
                    $($policy: data.qos.$policy,)+
                    presentation: data.presentation,
                    partition: data.partition,
                    topic_data: data.topic_data,
                    group_data: data.group_data,
                    representation: data.qos.data_representation,
                }
            }
        }
    };
}

endpoint_sample! {
    /// Sample of `DCPSPublication`: describes a remote writer.
    PublicationBuiltinTopicData from PublicationData of "writer";
    durability: Durability,
    durability_service: DurabilityService,
    deadline: Deadline,
    latency_budget: LatencyBudget,
    liveliness: Liveliness,
    reliability: Reliability,
    lifespan: Lifespan,
    user_data: UserData,
    ownership: Ownership,
    ownership_strength: OwnershipStrength,
    destination_order: DestinationOrder,
}

endpoint_sample! {
    /// Sample of `DCPSSubscription`: describes a remote reader.
    SubscriptionBuiltinTopicData from SubscriptionData of "reader";
    durability: Durability,
    deadline: Deadline,
    latency_budget: LatencyBudget,
    liveliness: Liveliness,
    reliability: Reliability,
    ownership: Ownership,
    destination_order: DestinationOrder,
    user_data: UserData,
    time_based_filter: TimeBasedFilter,
}

impl From<ParticipantData> for ParticipantBuiltinTopicData {
    fn from(data: ParticipantData) -> Self {
        Self { key: data.guid.into(), user_data: data.user_data, entity_name: data.entity_name }
    }
}

impl TopicBuiltinTopicData {
    /// Returns the topic of an endpoint, taken from the endpoint's announcement.
    fn parse(payload: &[u8]) -> Option<Self> {
        let endpoint = PublicationData::parse_key(payload).ok()?;
        if endpoint.entity_id.is_writer() {
            let data = PublicationData::parse(payload).ok()?;
            Some(Self::of_endpoint(data.topic_name, data.type_name, data.topic_data, &data.qos))
        } else {
            let data = SubscriptionData::parse(payload).ok()?;
            Some(Self::of_endpoint(data.topic_name, data.type_name, data.topic_data, &data.qos))
        }
    }

    /// Returns the topic of an endpoint. A policy that the endpoint lacks has its default.
    fn of_endpoint(name: String, type_name: String, topic_data: TopicData, qos: &impl PolicySet) -> Self {
        fn policy<P: Policy + Default>(qos: &impl PolicySet) -> P {
            qos.policy().cloned().unwrap_or_default()
        }
        Self {
            key: BuiltinTopicKey::default(),
            name,
            type_name,
            durability: policy(qos),
            durability_service: policy(qos),
            deadline: policy(qos),
            latency_budget: policy(qos),
            liveliness: policy(qos),
            reliability: policy(qos),
            transport_priority: policy(qos),
            lifespan: policy(qos),
            destination_order: policy(qos),
            history: policy(qos),
            resource_limits: policy(qos),
            ownership: policy(qos),
            topic_data,
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
