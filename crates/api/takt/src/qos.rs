//! QoS of entities and their policies (DDS 1.4 §2.2.3), and the timing contract of an endpoint.

pub use takt_wire::compat::{Incompatibility, PolicyId};
pub use takt_wire::qos::{
    AccessScope, Contract, DataReaderQos, DataRepresentation, DataTag, DataWriterQos, Deadline, DestinationOrder,
    DomainParticipantQos, Durability, DurabilityService, EarlyWrite, EntityFactory, EntityName, GroupData, History,
    LatencyBudget, Lifespan, Liveliness, LivelinessKind, Overrun, Ownership, OwnershipStrength, POLICIES, Partition,
    Policy, PolicyInfo, PolicySet, Presentation, Property, PropertyEntry, PublisherQos, ReaderDataLifecycle,
    Reliability, ReliabilityKind, ResourceLimits, SubscriberQos, Tag, TimeBasedFilter, TopicData, TopicQos,
    TransportPriority, TypeConsistency, TypeConsistencyKind, UserData, WriterDataLifecycle,
};
