//! Announcement data of a reader: `DiscoveredReaderData` (RTPS 2.5 §8.5.4.4).

use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;

use super::content_filter::ContentFilterProperty;
use super::endpoint::{Endpoint, EndpointEmit};
use super::host_stages::HostStages;
use super::security::SecurityInfo;
use super::{begin_list, parse_list, skip_unknown};
use crate::cursor::Endianness;
use crate::error::Malformed;
use crate::guid::{EntityId, Guid};
use crate::locator::Locator;
use crate::parameter::{PID_CONTENT_FILTER_PROPERTY, PID_EXPECTS_INLINE_QOS};
use crate::qos::{DataReaderQos, DataRepresentation, GroupData, Partition, Policy, PolicySet, Presentation, TopicData};

/// Announced data of a reader.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SubscriptionData {
    /// GUID of the reader.
    pub guid: Guid,
    /// GUID of its participant.
    pub participant: Guid,
    /// Entity id of its subscriber.
    pub group_entity_id: EntityId,
    /// Name of its topic.
    pub topic_name: String,
    /// Name of its type.
    pub type_name: String,
    /// Unicast locators, if they differ from those of the participant.
    pub unicast: Vec<Locator>,
    /// Multicast locators, if they differ from those of the participant.
    pub multicast: Vec<Locator>,
    /// QoS policies of the reader.
    pub qos: DataReaderQos,
    /// PRESENTATION of the subscriber.
    pub presentation: Presentation,
    /// PARTITION of the subscriber.
    pub partition: Partition,
    /// TOPIC_DATA of the topic.
    pub topic_data: TopicData,
    /// GROUP_DATA of the subscriber.
    pub group_data: GroupData,
    /// Serialized `TypeInformation` of the type.
    pub type_information: Option<Vec<u8>>,
    /// Reason why the network's controller refuses the endpoint to the receiver of this
    /// announcement. It is not authenticated: any sender of announcements can set it.
    pub refusal: Option<String>,
    /// Latency that its host adds to samples, if the timing analysis knows it.
    pub host_stages: Option<HostStages>,
    /// Security attributes, if the participant can authenticate (PID 0x1004).
    pub security_info: Option<SecurityInfo>,
    /// True if the reader requests inline QoS in every DATA.
    pub expects_inline_qos: bool,
    /// Content filter that writers may apply for the reader.
    pub content_filter: Option<ContentFilterProperty>,
}

impl SubscriptionData {
    /// Returns a policy of the reader, or the PRESENTATION of its subscriber.
    pub fn policy<P: Policy>(&self) -> Option<&P> {
        self.qos.policy().or_else(|| (&self.presentation as &dyn Any).downcast_ref())
    }

    /// Parses an announcement, encapsulation header included.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let mut common = Endpoint::default();
        // An absent parameter means XCDR1 alone, which is the empty list.
        let mut qos = DataReaderQos { data_representation: DataRepresentation::default(), ..DataReaderQos::default() };
        let mut expects_inline_qos = false;
        let mut content_filter = None;
        for parameter in parse_list(payload)? {
            if common.accept(&parameter)? || qos.accept(&parameter)? {
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
            refusal: common.refusal,
            host_stages: common.host_stages,
            security_info: common.security_info,
            expects_inline_qos,
            content_filter,
        })
    }

    /// Returns the announcement in little endian, encapsulation header included.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes_with(Endianness::Little)
    }

    /// Returns the announcement in this byte order.
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
            refusal: self.refusal.as_deref(),
            host_stages: self.host_stages.as_ref(),
            security_info: self.security_info,
        }
        .put(&mut list);
        if self.expects_inline_qos {
            list.put(PID_EXPECTS_INLINE_QOS, |value| value.bool(true));
        }
        if let Some(filter) = &self.content_filter {
            list.put(PID_CONTENT_FILTER_PROPERTY, |value| filter.emit(value));
        }
        self.qos.put(&mut list);
        list.finish()
    }

    /// Returns the GUID in a key-only payload; see [`super::parse_key`].
    pub fn parse_key(payload: &[u8]) -> Result<Guid, Malformed> {
        super::parse_key(payload)
    }

    /// Returns the key-only payload of a reader; see [`super::key_payload`].
    pub fn key_payload(guid: Guid) -> Vec<u8> {
        super::key_payload(guid)
    }
}
