//! `DiscoveredWriterData` and `DiscoveredReaderData`: what a participant announces about its
//! endpoints (RTPS 2.5 §8.5.4.4).

use alloc::string::String;
use alloc::vec::Vec;

use super::limits::{self, keep_locator, parse_name};
use super::{begin_list, parse_list, skip_unknown};
use crate::cursor::{Cursor, Endianness};
use crate::error::Malformed;
use crate::guid::{EntityId, Guid};
use crate::locator::Locator;
use crate::parameter::*;
use crate::qos::{
    DataReaderQos, DataRepresentation, DataWriterQos, DurabilityService, GroupData, History,
    Lifespan, Liveliness, Ownership, OwnershipStrength, Partition, Presentation, ResourceLimits,
    TimeBasedFilter, TopicData, TransportPriority, TypeConsistency, UserData, WirePolicy,
};
use crate::qos::{Deadline, DestinationOrder, Durability, LatencyBudget, Reliability};

/// What a participant announces about a writer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PublicationData {
    /// The writer.
    pub guid: Guid,
    /// Its participant.
    pub participant: Guid,
    /// Its publisher.
    pub group_entity_id: EntityId,
    /// Its topic.
    pub topic_name: String,
    /// The name of its type.
    pub type_name: String,
    /// Where it listens, if not where its participant does.
    pub unicast: Vec<Locator>,
    /// The groups where it listens, if not those of its participant.
    pub multicast: Vec<Locator>,
    /// Its policies.
    pub qos: DataWriterQos,
    /// Its publisher's PRESENTATION.
    pub presentation: Presentation,
    /// Its publisher's PARTITION.
    pub partition: Partition,
    /// Its topic's TOPIC_DATA.
    pub topic_data: TopicData,
    /// Its publisher's GROUP_DATA.
    pub group_data: GroupData,
    /// Octets of its longest sample.
    pub max_sample_serialized: Option<u32>,
    /// Its type's `TypeInformation`, serialized.
    pub type_information: Option<Vec<u8>>,
}

/// What a participant announces about a reader.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SubscriptionData {
    /// The reader.
    pub guid: Guid,
    /// Its participant.
    pub participant: Guid,
    /// Its subscriber.
    pub group_entity_id: EntityId,
    /// Its topic.
    pub topic_name: String,
    /// The name of its type.
    pub type_name: String,
    /// Where it listens, if not where its participant does.
    pub unicast: Vec<Locator>,
    /// The groups where it listens, if not those of its participant.
    pub multicast: Vec<Locator>,
    /// Its policies.
    pub qos: DataReaderQos,
    /// Its subscriber's PRESENTATION.
    pub presentation: Presentation,
    /// Its subscriber's PARTITION.
    pub partition: Partition,
    /// Its topic's TOPIC_DATA.
    pub topic_data: TopicData,
    /// Its subscriber's GROUP_DATA.
    pub group_data: GroupData,
    /// Its type's `TypeInformation`, serialized.
    pub type_information: Option<Vec<u8>>,
    /// Does it want QoS in every DATA?
    pub expects_inline_qos: bool,
    /// The filter that writers may apply for it.
    pub content_filter: Option<ContentFilterProperty>,
}

/// `ContentFilterProperty_t`: a reader's filter, in its own words (RTPS 2.5 §9.6.3.2).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContentFilterProperty {
    /// The name of the filtered topic.
    pub content_filtered_topic_name: String,
    /// The name of the topic that is filtered.
    pub related_topic_name: String,
    /// The language of the expression; `DDSSQL` is the one DDS defines.
    pub filter_class_name: String,
    /// The expression; empty means that nothing is filtered.
    pub filter_expression: String,
    /// What `%0`, `%1`, ... stand for.
    pub expression_parameters: Vec<String>,
}

impl ContentFilterProperty {
    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let content_filtered_topic_name = parse_name(value)?;
        let related_topic_name = parse_name(value)?;
        let filter_class_name = parse_name(value)?;
        let filter_expression = String::from(value.string()?);
        value.align(4)?;
        let at = value.malformed("too many filter parameters");
        let count = value.count(5)?;
        if count > limits::FILTER_PARAMETERS_MAX {
            return Err(at);
        }
        let mut expression_parameters = Vec::with_capacity(count);
        for _ in 0..count {
            expression_parameters.push(String::from(value.string()?));
        }
        Ok(Self {
            content_filtered_topic_name,
            related_topic_name,
            filter_class_name,
            filter_expression,
            expression_parameters,
        })
    }

    fn emit(&self, value: &mut ParameterWriter<'_>) {
        value.string(&self.content_filtered_topic_name);
        value.string(&self.related_topic_name);
        value.string(&self.filter_class_name);
        value.string(&self.filter_expression);
        value.count(self.expression_parameters.len());
        for parameter in &self.expression_parameters {
            value.string(parameter);
        }
    }
}

/// What the data of writers and of readers have in common.
#[derive(Default)]
struct Endpoint {
    guid: Guid,
    participant: Guid,
    group_entity_id: EntityId,
    topic_name: Option<String>,
    type_name: Option<String>,
    unicast: Vec<Locator>,
    multicast: Vec<Locator>,
    presentation: Presentation,
    partition: Partition,
    topic_data: TopicData,
    group_data: GroupData,
    type_information: Option<Vec<u8>>,
}

impl Endpoint {
    /// Takes a parameter in, or leaves it (`false`).
    fn accept(&mut self, parameter: &Parameter<'_>) -> Result<bool, Malformed> {
        let mut value = parameter.cursor();
        match parameter.pid {
            PID_ENDPOINT_GUID => self.guid = Guid::from_bytes(value.array()?),
            PID_KEY_HASH if self.guid == Guid::UNKNOWN => {
                self.guid = Guid::from_bytes(value.array()?);
            }
            PID_PARTICIPANT_GUID => self.participant = Guid::from_bytes(value.array()?),
            PID_GROUP_GUID => self.group_entity_id = Guid::from_bytes(value.array()?).entity_id,
            PID_GROUP_ENTITYID => self.group_entity_id = EntityId(value.array()?),
            PID_TOPIC_NAME => self.topic_name = Some(parse_name(&mut value)?),
            PID_TYPE_NAME => self.type_name = Some(parse_name(&mut value)?),
            PID_UNICAST_LOCATOR => keep_locator(&mut self.unicast, Locator::parse(&mut value)?),
            PID_MULTICAST_LOCATOR => keep_locator(&mut self.multicast, Locator::parse(&mut value)?),
            PID_PRESENTATION => self.presentation = Presentation::parse(&mut value)?,
            PID_PARTITION => self.partition = Partition::parse(&mut value)?,
            PID_TOPIC_DATA => self.topic_data = TopicData::parse(&mut value)?,
            PID_GROUP_DATA => self.group_data = GroupData::parse(&mut value)?,
            PID_TYPE_INFORMATION => self.type_information = Some(parameter.value.to_vec()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks that what must be there is there, and fills in what follows from it.
    fn complete(mut self) -> Result<(Self, String, String), Malformed> {
        let missing = |what| Malformed { offset: 0, what };
        if self.guid == Guid::UNKNOWN {
            return Err(missing("endpoint data without a GUID"));
        }
        if self.participant == Guid::UNKNOWN {
            self.participant = self.guid.participant();
        }
        let topic = self
            .topic_name
            .take()
            .ok_or(missing("endpoint data without a topic name"))?;
        let type_name = self
            .type_name
            .take()
            .ok_or(missing("endpoint data without a type name"))?;
        Ok((self, topic, type_name))
    }
}

/// The parameters that the data of writers and of readers begin with.
struct EndpointEmit<'a> {
    guid: Guid,
    participant: Guid,
    group_entity_id: EntityId,
    topic_name: &'a str,
    type_name: &'a str,
    unicast: &'a [Locator],
    multicast: &'a [Locator],
    presentation: &'a Presentation,
    partition: &'a Partition,
    topic_data: &'a TopicData,
    group_data: &'a GroupData,
    type_information: Option<&'a Vec<u8>>,
}

impl EndpointEmit<'_> {
    fn put(&self, list: &mut ParameterListBuilder) {
        list.put(PID_ENDPOINT_GUID, |value| value.guid(self.guid));
        list.put(PID_PARTICIPANT_GUID, |value| value.guid(self.participant));
        if self.group_entity_id != EntityId::UNKNOWN {
            list.put(PID_GROUP_ENTITYID, |value| {
                value.bytes(&self.group_entity_id.0)
            });
        }
        list.put(PID_TOPIC_NAME, |value| value.string(self.topic_name));
        list.put(PID_TYPE_NAME, |value| value.string(self.type_name));
        for locator in self.unicast {
            list.put(PID_UNICAST_LOCATOR, |value| value.locator(locator));
        }
        for locator in self.multicast {
            list.put(PID_MULTICAST_LOCATOR, |value| value.locator(locator));
        }
        self.presentation.put_unless(&Presentation::default(), list);
        self.partition.put_unless(&Partition::default(), list);
        self.topic_data.put_unless(&TopicData::default(), list);
        self.group_data.put_unless(&GroupData::default(), list);
        if let Some(information) = self.type_information {
            list.put(PID_TYPE_INFORMATION, |value| value.bytes(information));
        }
    }
}

impl PublicationData {
    /// Reads an announcement, encapsulation header included.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut common = Endpoint::default();
        // Absent from the wire means XCDR1 alone, which is the empty list.
        let mut qos = DataWriterQos {
            data_representation: DataRepresentation::default(),
            ..DataWriterQos::default()
        };
        let mut max_sample_serialized = None;
        for parameter in parse_list(payload)? {
            if common.accept(&parameter)? || accept_writer_policy(&mut qos, &parameter)? {
                continue;
            }
            match parameter.pid {
                PID_TYPE_MAX_SIZE_SERIALIZED => {
                    max_sample_serialized = Some(parameter.cursor().u32()?);
                }
                _ => skip_unknown(&parameter)?,
            }
        }
        let (common, topic_name, type_name) = common.complete()?;
        Ok(Self {
            guid: common.guid,
            participant: common.participant,
            group_entity_id: common.group_entity_id,
            topic_name,
            type_name,
            unicast: common.unicast,
            multicast: common.multicast,
            qos,
            presentation: common.presentation,
            partition: common.partition,
            topic_data: common.topic_data,
            group_data: common.group_data,
            max_sample_serialized,
            type_information: common.type_information,
        })
    }

    /// The announcement, little endian, encapsulation header included.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes_with(Endianness::Little)
    }

    /// The announcement in a byte order of choice.
    pub fn to_bytes_with(&self, endianness: Endianness) -> Vec<u8> {
        let mut list = begin_list(endianness);
        EndpointEmit {
            guid: self.guid,
            participant: self.participant,
            group_entity_id: self.group_entity_id,
            topic_name: &self.topic_name,
            type_name: &self.type_name,
            unicast: &self.unicast,
            multicast: &self.multicast,
            presentation: &self.presentation,
            partition: &self.partition,
            topic_data: &self.topic_data,
            group_data: &self.group_data,
            type_information: self.type_information.as_ref(),
        }
        .put(&mut list);
        if let Some(len) = self.max_sample_serialized {
            list.put(PID_TYPE_MAX_SIZE_SERIALIZED, |value| value.u32(len));
        }
        put_writer_policies(&self.qos, &mut list);
        list.finish()
    }

    /// The GUID that a key-only payload names; see [`super::parse_key`].
    pub fn parse_key(payload: &[u8]) -> Result<Guid, Malformed> {
        super::parse_key(payload)
    }

    /// The key-only payload of a writer; see [`super::key_payload`].
    pub fn key_payload(guid: Guid) -> Vec<u8> {
        super::key_payload(guid)
    }
}

impl SubscriptionData {
    /// Reads an announcement, encapsulation header included.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut common = Endpoint::default();
        // Absent from the wire means XCDR1 alone, which is the empty list.
        let mut qos = DataReaderQos {
            data_representation: DataRepresentation::default(),
            ..DataReaderQos::default()
        };
        let mut expects_inline_qos = false;
        let mut content_filter = None;
        for parameter in parse_list(payload)? {
            if common.accept(&parameter)? || accept_reader_policy(&mut qos, &parameter)? {
                continue;
            }
            let mut value = parameter.cursor();
            match parameter.pid {
                PID_EXPECTS_INLINE_QOS => expects_inline_qos = value.u8()? != 0,
                PID_CONTENT_FILTER_PROPERTY => {
                    content_filter = Some(ContentFilterProperty::parse(&mut value)?);
                }
                _ => skip_unknown(&parameter)?,
            }
        }
        let (common, topic_name, type_name) = common.complete()?;
        Ok(Self {
            guid: common.guid,
            participant: common.participant,
            group_entity_id: common.group_entity_id,
            topic_name,
            type_name,
            unicast: common.unicast,
            multicast: common.multicast,
            qos,
            presentation: common.presentation,
            partition: common.partition,
            topic_data: common.topic_data,
            group_data: common.group_data,
            type_information: common.type_information,
            expects_inline_qos,
            content_filter,
        })
    }

    /// The announcement, little endian, encapsulation header included.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes_with(Endianness::Little)
    }

    /// The announcement in a byte order of choice.
    pub fn to_bytes_with(&self, endianness: Endianness) -> Vec<u8> {
        let mut list = begin_list(endianness);
        EndpointEmit {
            guid: self.guid,
            participant: self.participant,
            group_entity_id: self.group_entity_id,
            topic_name: &self.topic_name,
            type_name: &self.type_name,
            unicast: &self.unicast,
            multicast: &self.multicast,
            presentation: &self.presentation,
            partition: &self.partition,
            topic_data: &self.topic_data,
            group_data: &self.group_data,
            type_information: self.type_information.as_ref(),
        }
        .put(&mut list);
        if self.expects_inline_qos {
            list.put(PID_EXPECTS_INLINE_QOS, |value| value.bool(true));
        }
        if let Some(filter) = &self.content_filter {
            list.put(PID_CONTENT_FILTER_PROPERTY, |value| filter.emit(value));
        }
        put_reader_policies(&self.qos, &mut list);
        list.finish()
    }

    /// The GUID that a key-only payload names; see [`super::parse_key`].
    pub fn parse_key(payload: &[u8]) -> Result<Guid, Malformed> {
        super::parse_key(payload)
    }

    /// The key-only payload of a reader; see [`super::key_payload`].
    pub fn key_payload(guid: Guid) -> Vec<u8> {
        super::key_payload(guid)
    }
}

/// Takes a writer's policy in, or leaves the parameter (`false`).
fn accept_writer_policy(
    qos: &mut DataWriterQos,
    parameter: &Parameter<'_>,
) -> Result<bool, Malformed> {
    let value = &mut parameter.cursor();
    match parameter.pid {
        Durability::PID => qos.durability = Durability::parse(value)?,
        DurabilityService::PID => qos.durability_service = DurabilityService::parse(value)?,
        Deadline::PID => qos.deadline = Deadline::parse(value)?,
        LatencyBudget::PID => qos.latency_budget = LatencyBudget::parse(value)?,
        Liveliness::PID => qos.liveliness = Liveliness::parse(value)?,
        Reliability::PID => qos.reliability = Reliability::parse(value)?,
        DestinationOrder::PID => qos.destination_order = DestinationOrder::parse(value)?,
        History::PID => qos.history = History::parse(value)?,
        ResourceLimits::PID => qos.resource_limits = ResourceLimits::parse(value)?,
        TransportPriority::PID => qos.transport_priority = TransportPriority::parse(value)?,
        Lifespan::PID => qos.lifespan = Lifespan::parse(value)?,
        UserData::PID => qos.user_data = UserData::parse(value)?,
        Ownership::PID => qos.ownership = Ownership::parse(value)?,
        OwnershipStrength::PID => qos.ownership_strength = OwnershipStrength::parse(value)?,
        DataRepresentation::PID => qos.data_representation = DataRepresentation::parse(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Adds a writer's policies: always those that peers have different defaults for, the others if
/// they are not the default.
fn put_writer_policies(qos: &DataWriterQos, list: &mut ParameterListBuilder) {
    let absent = DataWriterQos::default();
    qos.reliability.put(list);
    qos.durability.put(list);
    qos.history.put(list);
    qos.data_representation.put(list);
    qos.durability_service
        .put_unless(&absent.durability_service, list);
    qos.deadline.put_unless(&absent.deadline, list);
    qos.latency_budget.put_unless(&absent.latency_budget, list);
    qos.liveliness.put_unless(&absent.liveliness, list);
    qos.destination_order
        .put_unless(&absent.destination_order, list);
    qos.resource_limits
        .put_unless(&absent.resource_limits, list);
    qos.transport_priority
        .put_unless(&absent.transport_priority, list);
    qos.lifespan.put_unless(&absent.lifespan, list);
    qos.user_data.put_unless(&absent.user_data, list);
    qos.ownership.put_unless(&absent.ownership, list);
    qos.ownership_strength
        .put_unless(&absent.ownership_strength, list);
}

/// Takes a reader's policy in, or leaves the parameter (`false`).
fn accept_reader_policy(
    qos: &mut DataReaderQos,
    parameter: &Parameter<'_>,
) -> Result<bool, Malformed> {
    let value = &mut parameter.cursor();
    match parameter.pid {
        Durability::PID => qos.durability = Durability::parse(value)?,
        Deadline::PID => qos.deadline = Deadline::parse(value)?,
        LatencyBudget::PID => qos.latency_budget = LatencyBudget::parse(value)?,
        Liveliness::PID => qos.liveliness = Liveliness::parse(value)?,
        Reliability::PID => qos.reliability = Reliability::parse(value)?,
        DestinationOrder::PID => qos.destination_order = DestinationOrder::parse(value)?,
        History::PID => qos.history = History::parse(value)?,
        ResourceLimits::PID => qos.resource_limits = ResourceLimits::parse(value)?,
        UserData::PID => qos.user_data = UserData::parse(value)?,
        Ownership::PID => qos.ownership = Ownership::parse(value)?,
        TimeBasedFilter::PID => qos.time_based_filter = TimeBasedFilter::parse(value)?,
        DataRepresentation::PID => qos.data_representation = DataRepresentation::parse(value)?,
        TypeConsistency::PID => qos.type_consistency = TypeConsistency::parse(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Adds a reader's policies; see [`put_writer_policies`].
fn put_reader_policies(qos: &DataReaderQos, list: &mut ParameterListBuilder) {
    let absent = DataReaderQos::default();
    qos.reliability.put(list);
    qos.durability.put(list);
    qos.history.put(list);
    qos.data_representation.put(list);
    qos.deadline.put_unless(&absent.deadline, list);
    qos.latency_budget.put_unless(&absent.latency_budget, list);
    qos.liveliness.put_unless(&absent.liveliness, list);
    qos.destination_order
        .put_unless(&absent.destination_order, list);
    qos.resource_limits
        .put_unless(&absent.resource_limits, list);
    qos.user_data.put_unless(&absent.user_data, list);
    qos.ownership.put_unless(&absent.ownership, list);
    qos.time_based_filter
        .put_unless(&absent.time_based_filter, list);
    qos.type_consistency
        .put_unless(&absent.type_consistency, list);
}
