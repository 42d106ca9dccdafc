//! QoS policies of each kind of entity, with the defaults of DDS 1.4 §2.2.3.

use super::{
    DataRepresentation, DataTag, Deadline, DestinationOrder, Durability, DurabilityService, EntityFactory, EntityName,
    GroupData, History, LatencyBudget, Lifespan, Liveliness, Ownership, OwnershipStrength, Partition, Presentation,
    Property, ReaderDataLifecycle, Reliability, ResourceLimits, TimeBasedFilter, TopicData, TransportPriority,
    TypeConsistency, UserData, WriterDataLifecycle,
};

/// QoS policies of a participant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "each field is the policy of its name")]
pub struct DomainParticipantQos {
    pub user_data: UserData,
    pub entity_factory: EntityFactory,
    pub property: Property,
    pub entity_name: EntityName,
}

/// QoS policies of a publisher.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "each field is the policy of its name")]
pub struct PublisherQos {
    pub presentation: Presentation,
    pub partition: Partition,
    pub group_data: GroupData,
    pub entity_factory: EntityFactory,
}

/// QoS policies of a subscriber.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "each field is the policy of its name")]
pub struct SubscriberQos {
    pub presentation: Presentation,
    pub partition: Partition,
    pub group_data: GroupData,
    pub entity_factory: EntityFactory,
}

/// QoS policies of a topic, which its endpoints may copy.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each field is the policy of its name")]
pub struct TopicQos {
    pub topic_data: TopicData,
    pub durability: Durability,
    pub durability_service: DurabilityService,
    pub deadline: Deadline,
    pub latency_budget: LatencyBudget,
    pub liveliness: Liveliness,
    pub reliability: Reliability,
    pub destination_order: DestinationOrder,
    pub history: History,
    pub resource_limits: ResourceLimits,
    pub transport_priority: TransportPriority,
    pub lifespan: Lifespan,
    pub ownership: Ownership,
    pub data_representation: DataRepresentation,
}

impl Default for TopicQos {
    fn default() -> Self {
        Self {
            topic_data: TopicData::default(),
            durability: Durability::default(),
            durability_service: DurabilityService::default(),
            deadline: Deadline::default(),
            latency_budget: LatencyBudget::default(),
            liveliness: Liveliness::default(),
            reliability: Reliability::BEST_EFFORT,
            destination_order: DestinationOrder::default(),
            history: History::default(),
            resource_limits: ResourceLimits::default(),
            transport_priority: TransportPriority::default(),
            lifespan: Lifespan::default(),
            ownership: Ownership::default(),
            data_representation: DataRepresentation::default(),
        }
    }
}

/// QoS policies of a writer. The default offers XCDR1.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each field is the policy of its name")]
pub struct DataWriterQos {
    pub durability: Durability,
    pub durability_service: DurabilityService,
    pub deadline: Deadline,
    pub latency_budget: LatencyBudget,
    pub liveliness: Liveliness,
    pub reliability: Reliability,
    pub destination_order: DestinationOrder,
    pub history: History,
    pub resource_limits: ResourceLimits,
    pub transport_priority: TransportPriority,
    pub lifespan: Lifespan,
    pub user_data: UserData,
    pub ownership: Ownership,
    pub ownership_strength: OwnershipStrength,
    pub writer_data_lifecycle: WriterDataLifecycle,
    pub data_representation: DataRepresentation,
    pub property: Property,
    pub data_tag: DataTag,
    pub entity_name: EntityName,
}

impl Default for DataWriterQos {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            durability_service: DurabilityService::default(),
            deadline: Deadline::default(),
            latency_budget: LatencyBudget::default(),
            liveliness: Liveliness::default(),
            reliability: Reliability::RELIABLE,
            destination_order: DestinationOrder::default(),
            history: History::default(),
            resource_limits: ResourceLimits::default(),
            transport_priority: TransportPriority::default(),
            lifespan: Lifespan::default(),
            user_data: UserData::default(),
            ownership: Ownership::default(),
            ownership_strength: OwnershipStrength::default(),
            writer_data_lifecycle: WriterDataLifecycle::default(),
            data_representation: DataRepresentation::xcdr1(),
            property: Property::default(),
            data_tag: DataTag::default(),
            entity_name: EntityName::default(),
        }
    }
}

/// QoS policies of a reader. The default accepts XCDR1 and XCDR2.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each field is the policy of its name")]
pub struct DataReaderQos {
    pub durability: Durability,
    pub deadline: Deadline,
    pub latency_budget: LatencyBudget,
    pub liveliness: Liveliness,
    pub reliability: Reliability,
    pub destination_order: DestinationOrder,
    pub history: History,
    pub resource_limits: ResourceLimits,
    pub user_data: UserData,
    pub ownership: Ownership,
    pub time_based_filter: TimeBasedFilter,
    pub reader_data_lifecycle: ReaderDataLifecycle,
    pub data_representation: DataRepresentation,
    pub type_consistency: TypeConsistency,
    pub property: Property,
    pub data_tag: DataTag,
    pub entity_name: EntityName,
}

impl Default for DataReaderQos {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            deadline: Deadline::default(),
            latency_budget: LatencyBudget::default(),
            liveliness: Liveliness::default(),
            reliability: Reliability::BEST_EFFORT,
            destination_order: DestinationOrder::default(),
            history: History::default(),
            resource_limits: ResourceLimits::default(),
            user_data: UserData::default(),
            ownership: Ownership::default(),
            time_based_filter: TimeBasedFilter::default(),
            reader_data_lifecycle: ReaderDataLifecycle::default(),
            data_representation: DataRepresentation::any_xcdr(),
            type_consistency: TypeConsistency::default(),
            property: Property::default(),
            data_tag: DataTag::default(),
            entity_name: EntityName::default(),
        }
    }
}

impl DataWriterQos {
    /// Copies the policies of the topic (`copy_from_topic_qos`); the other policies stay unchanged.
    pub fn copy_from_topic(&mut self, topic: &TopicQos) {
        self.durability = topic.durability;
        self.durability_service = topic.durability_service;
        self.deadline = topic.deadline;
        self.latency_budget = topic.latency_budget;
        self.liveliness = topic.liveliness;
        self.reliability = topic.reliability;
        self.destination_order = topic.destination_order;
        self.history = topic.history;
        self.resource_limits = topic.resource_limits;
        self.transport_priority = topic.transport_priority;
        self.lifespan = topic.lifespan;
        self.ownership = topic.ownership;
        self.data_representation = topic.data_representation.clone();
    }
}

impl DataReaderQos {
    /// Copies the policies of the topic (`copy_from_topic_qos`); the other policies stay unchanged.
    /// DATA_REPRESENTATION is not copied: a reader keeps its own list of accepted encodings.
    pub fn copy_from_topic(&mut self, topic: &TopicQos) {
        self.durability = topic.durability;
        self.deadline = topic.deadline;
        self.latency_budget = topic.latency_budget;
        self.liveliness = topic.liveliness;
        self.reliability = topic.reliability;
        self.destination_order = topic.destination_order;
        self.history = topic.history;
        self.resource_limits = topic.resource_limits;
        self.ownership = topic.ownership;
    }
}
