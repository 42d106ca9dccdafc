//! Announcement parameters that writers and readers share.

use alloc::string::String;
use alloc::vec::Vec;

use super::host_stages::{HostStages, PID_TAKT_HOST_STAGES};
use super::limits::{keep_locator, parse_name};
use super::refusal::{self, PID_TAKT_REFUSAL, put_refusal};
use super::security::SecurityInfo;
use crate::error::Malformed;
use crate::guid::{EntityId, Guid};
use crate::locator::Locator;
use crate::parameter::*;
use crate::qos::{GroupData, Partition, Presentation, TopicData, WirePolicy};

/// Parameters that the announcements of writers and readers share.
#[derive(Default)]
pub(super) struct Endpoint {
    pub(super) guid: Guid,
    pub(super) participant: Guid,
    pub(super) group_entity_id: EntityId,
    pub(super) topic_name: Option<String>,
    pub(super) type_name: Option<String>,
    pub(super) unicast: Vec<Locator>,
    pub(super) multicast: Vec<Locator>,
    pub(super) presentation: Presentation,
    pub(super) partition: Partition,
    pub(super) topic_data: TopicData,
    pub(super) group_data: GroupData,
    pub(super) type_information: Option<Vec<u8>>,
    pub(super) refusal: Option<String>,
    pub(super) host_stages: Option<HostStages>,
    pub(super) security_info: Option<SecurityInfo>,
}

impl Endpoint {
    /// Stores the parameter if it is one of these; otherwise returns `false`.
    pub(super) fn accept(&mut self, parameter: &Parameter<'_>) -> Result<bool, Malformed> {
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
            PID_TAKT_REFUSAL => self.refusal = refusal::parse(parameter),
            PID_TAKT_HOST_STAGES => self.host_stages = HostStages::parse(parameter)?,
            PID_ENDPOINT_SECURITY_INFO => self.security_info = Some(SecurityInfo::parse(&mut value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks that the required parameters are present and derives the implied values.
    pub(super) fn complete(mut self) -> Result<(Self, String, String), Malformed> {
        let missing = |what| Malformed { offset: 0, what };
        if self.guid == Guid::UNKNOWN {
            return Err(missing("endpoint data without a GUID"));
        }
        if self.participant == Guid::UNKNOWN {
            self.participant = self.guid.participant();
        }
        let topic = self.topic_name.take().ok_or(missing("endpoint data without a topic name"))?;
        let type_name = self.type_name.take().ok_or(missing("endpoint data without a type name"))?;
        Ok((self, topic, type_name))
    }
}

/// Parameters at the start of the announcements of writers and readers.
pub(super) struct EndpointEmit<'a> {
    pub(super) guid: Guid,
    pub(super) participant: Guid,
    pub(super) group_entity_id: EntityId,
    pub(super) topic_name: &'a str,
    pub(super) type_name: &'a str,
    pub(super) unicast: &'a [Locator],
    pub(super) multicast: &'a [Locator],
    pub(super) presentation: &'a Presentation,
    pub(super) partition: &'a Partition,
    pub(super) topic_data: &'a TopicData,
    pub(super) group_data: &'a GroupData,
    pub(super) type_information: Option<&'a Vec<u8>>,
    pub(super) refusal: Option<&'a str>,
    pub(super) host_stages: Option<&'a HostStages>,
    pub(super) security_info: Option<SecurityInfo>,
}

impl EndpointEmit<'_> {
    pub(super) fn put(&self, list: &mut ParameterListBuilder) {
        list.put(PID_ENDPOINT_GUID, |value| value.guid(self.guid));
        list.put(PID_PARTICIPANT_GUID, |value| value.guid(self.participant));
        if self.group_entity_id != EntityId::UNKNOWN {
            list.put(PID_GROUP_ENTITYID, |value| value.bytes(&self.group_entity_id.0));
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
        if let Some(reason) = self.refusal {
            put_refusal(list, reason);
        }
        if let Some(stages) = self.host_stages {
            stages.put(list);
        }
        if let Some(info) = self.security_info {
            info.put(PID_ENDPOINT_SECURITY_INFO, list);
        }
    }
}
