//! Announcement data of writers and readers: `DiscoveredWriterData` and `DiscoveredReaderData`
//! (RTPS 2.5 §8.5.4.4).

use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;

use super::content_filter::ContentFilterProperty;
use super::host_stages::{HostStages, PID_TAKT_HOST_STAGES};
use super::limits::{keep_locator, parse_name};
use super::refusal::{self, PID_TAKT_REFUSAL, put_refusal};
use super::security::SecurityInfo;
use super::{begin_list, parse_list, skip_unknown};
use crate::cursor::Endianness;
use crate::error::Malformed;
use crate::guid::{EntityId, Guid};
use crate::locator::Locator;
use crate::parameter::*;
use crate::qos::{
    DataReaderQos, DataRepresentation, DataWriterQos, GroupData, Partition, Policy, PolicySet, Presentation, TopicData,
    WirePolicy,
};

/// Topic name and type name, which every announcement must contain.
#[derive(Default)]
struct Names {
    topic_name: Option<String>,
    type_name: Option<String>,
}

impl Names {
    /// Stores the parameter if it is one of the two names; otherwise returns `false`.
    fn accept(&mut self, parameter: &Parameter<'_>) -> Result<bool, Malformed> {
        let name = match parameter.pid {
            PID_TOPIC_NAME => &mut self.topic_name,
            PID_TYPE_NAME => &mut self.type_name,
            _ => return Ok(false),
        };
        *name = Some(parse_name(&mut parameter.cursor())?);
        Ok(true)
    }

    /// Returns the topic name and the type name.
    fn complete(self) -> Result<(String, String), Malformed> {
        // An absent parameter has no offset.
        let missing = |what| Malformed { offset: 0, what };
        let topic_name = self.topic_name.ok_or(missing("endpoint data without a topic name"))?;
        Ok((topic_name, self.type_name.ok_or(missing("endpoint data without a type name"))?))
    }
}

/// Defines the announcement data of writers or of readers. Parameters that only one of the two
/// kinds has are parsed by the function `accept_own` of the type, and written by `put_own`.
macro_rules! endpoint_data {
    (
        $(#[$meta:meta])*
        $data:ident of $endpoint:literal in $group:literal with $qos:ident;
        $($(#[$field_meta:meta])* $field:ident: $type:ty,)+
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        pub struct $data {
            #[doc = concat!("GUID of the ", $endpoint, ".")]
            pub guid: Guid,
            /// GUID of its participant. If the announcement has none, it follows from `guid`.
            pub participant: Guid,
            #[doc = concat!("Entity id of its ", $group, ".")]
            pub group_entity_id: EntityId,
            /// Name of its topic.
            pub topic_name: String,
            /// Name of its type.
            pub type_name: String,
            /// Unicast locators, if they differ from those of the participant.
            pub unicast: Vec<Locator>,
            /// Multicast locators, if they differ from those of the participant.
            pub multicast: Vec<Locator>,
            #[doc = concat!("QoS policies of the ", $endpoint, ".")]
            pub qos: $qos,
            #[doc = concat!("PRESENTATION of the ", $group, ".")]
            pub presentation: Presentation,
            #[doc = concat!("PARTITION of the ", $group, ".")]
            pub partition: Partition,
            /// TOPIC_DATA of the topic.
            pub topic_data: TopicData,
            #[doc = concat!("GROUP_DATA of the ", $group, ".")]
            pub group_data: GroupData,
            /// Serialized `TypeInformation` of the type: the value of the parameter, not parsed.
            pub type_information: Option<Vec<u8>>,
            /// Reason why the OpenFlow controller of the network prevents a match with the receiver
            /// of this announcement. It is not authenticated: any sender of announcements can set
            /// it.
            pub refusal: Option<String>,
            /// Latency that the host of the endpoint adds to samples, if the timing analysis of
            /// that host has computed it.
            pub host_stages: Option<HostStages>,
            /// Security attributes, if the participant can authenticate (PID 0x1004).
            pub security_info: Option<SecurityInfo>,
            $($(#[$field_meta])* pub $field: $type,)+
        }

        impl $data {
            #[doc = concat!("Returns a policy of the ", $endpoint, ", or the PRESENTATION of its ", $group, ".")]
            pub fn policy<P: Policy>(&self) -> Option<&P> {
                self.qos.policy().or_else(|| (&self.presentation as &dyn Any).downcast_ref())
            }

            /// Parses an announcement, encapsulation header included.
            pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
                let (mut data, mut names) = (Self::default(), Names::default());
                // Without DATA_REPRESENTATION the endpoint uses XCDR1 alone: the empty list, which
                // is not the default of `qos`.
                data.qos.data_representation = DataRepresentation::default();
                for parameter in parse_list(payload)? {
                    if !names.accept(&parameter)?
                        && !data.accept(&parameter)?
                        && !data.qos.accept(&parameter)?
                        && !data.accept_own(&parameter)?
                    {
                        skip_unknown(&parameter)?;
                    }
                }
                if data.guid == Guid::UNKNOWN {
                    return Err(Malformed { offset: 0, what: "endpoint data without a GUID" });
                }
                if data.participant == Guid::UNKNOWN {
                    data.participant = data.guid.participant();
                }
                (data.topic_name, data.type_name) = names.complete()?;
                Ok(data)
            }

            /// Stores the parameter if writers and readers both have it and it is no policy in
            /// `qos`; otherwise returns `false`.
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
                    PID_UNICAST_LOCATOR => keep_locator(&mut self.unicast, Locator::parse(&mut value)?),
                    PID_MULTICAST_LOCATOR => keep_locator(&mut self.multicast, Locator::parse(&mut value)?),
                    PID_PRESENTATION => self.presentation = Presentation::parse(&mut value)?,
                    PID_PARTITION => self.partition = Partition::parse(&mut value)?,
                    PID_TOPIC_DATA => self.topic_data = TopicData::parse(&mut value)?,
                    PID_GROUP_DATA => self.group_data = GroupData::parse(&mut value)?,
                    PID_TYPE_INFORMATION => self.type_information = Some(parameter.value.to_vec()),
                    PID_TAKT_REFUSAL => self.refusal = refusal::parse(parameter),
                    PID_TAKT_HOST_STAGES => self.host_stages = HostStages::parse(parameter)?,
                    PID_ENDPOINT_SECURITY_INFO => self.security_info = Some(SecurityInfo::parse(&mut value)?),
                    _ => return Ok(false),
                }
                Ok(true)
            }

            /// Returns the announcement in little endian, encapsulation header included.
            pub fn to_bytes(&self) -> Vec<u8> {
                self.to_bytes_with(Endianness::Little)
            }

            /// Returns the announcement in this byte order, encapsulation header included.
            pub fn to_bytes_with(&self, endianness: Endianness) -> Vec<u8> {
                let mut list = begin_list(endianness);
                list.put(PID_ENDPOINT_GUID, |value| value.guid(self.guid));
                list.put(PID_PARTICIPANT_GUID, |value| value.guid(self.participant));
                if self.group_entity_id != EntityId::UNKNOWN {
                    list.put(PID_GROUP_ENTITYID, |value| value.bytes(&self.group_entity_id.0));
                }
                list.put(PID_TOPIC_NAME, |value| value.string(&self.topic_name));
                list.put(PID_TYPE_NAME, |value| value.string(&self.type_name));
                for locator in &self.unicast {
                    list.put(PID_UNICAST_LOCATOR, |value| value.locator(locator));
                }
                for locator in &self.multicast {
                    list.put(PID_MULTICAST_LOCATOR, |value| value.locator(locator));
                }
                self.presentation.put_unless(&Presentation::default(), &mut list);
                self.partition.put_unless(&Partition::default(), &mut list);
                self.topic_data.put_unless(&TopicData::default(), &mut list);
                self.group_data.put_unless(&GroupData::default(), &mut list);
                if let Some(information) = &self.type_information {
                    list.put(PID_TYPE_INFORMATION, |value| value.bytes(information));
                }
                if let Some(reason) = &self.refusal {
                    put_refusal(&mut list, reason);
                }
                if let Some(stages) = &self.host_stages {
                    stages.put(&mut list);
                }
                if let Some(info) = self.security_info {
                    info.put(PID_ENDPOINT_SECURITY_INFO, &mut list);
                }
                self.put_own(&mut list);
                self.qos.put(&mut list);
                list.finish()
            }

            /// Returns the GUID in a key-only payload; see [`super::parse_key`].
            pub fn parse_key(payload: &[u8]) -> Result<Guid, Malformed> {
                super::parse_key(payload)
            }

            #[doc = concat!("Returns the key-only payload of a ", $endpoint, "; see [`super::key_payload`].")]
            pub fn key_payload(guid: Guid) -> Vec<u8> {
                super::key_payload(guid)
            }
        }
    };
}

endpoint_data! {
    /// Announced data of a writer (`DiscoveredWriterData` of RTPS).
    PublicationData of "writer" in "publisher" with DataWriterQos;
    /// Maximum serialized length of a sample, in octets.
    max_sample_serialized: Option<u32>,
}

endpoint_data! {
    /// Announced data of a reader (`DiscoveredReaderData` of RTPS).
    SubscriptionData of "reader" in "subscriber" with DataReaderQos;
    /// True if the reader requests inline QoS in every DATA.
    expects_inline_qos: bool,
    /// Content filter that writers may apply for the reader.
    content_filter: Option<ContentFilterProperty>,
}

impl PublicationData {
    fn accept_own(&mut self, parameter: &Parameter<'_>) -> Result<bool, Malformed> {
        match parameter.pid {
            PID_TYPE_MAX_SIZE_SERIALIZED => self.max_sample_serialized = Some(parameter.cursor().u32()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn put_own(&self, list: &mut ParameterListBuilder) {
        if let Some(len) = self.max_sample_serialized {
            list.put(PID_TYPE_MAX_SIZE_SERIALIZED, |value| value.u32(len));
        }
    }
}

impl SubscriptionData {
    fn accept_own(&mut self, parameter: &Parameter<'_>) -> Result<bool, Malformed> {
        let mut value = parameter.cursor();
        match parameter.pid {
            PID_EXPECTS_INLINE_QOS => self.expects_inline_qos = value.u8()? != 0,
            PID_CONTENT_FILTER_PROPERTY => self.content_filter = Some(ContentFilterProperty::parse(&mut value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn put_own(&self, list: &mut ParameterListBuilder) {
        if self.expects_inline_qos {
            list.put(PID_EXPECTS_INLINE_QOS, |value| value.bool(true));
        }
        if let Some(filter) = &self.content_filter {
            list.put(PID_CONTENT_FILTER_PROPERTY, |value| filter.emit(value));
        }
    }
}
