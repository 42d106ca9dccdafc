//! `SPDPdiscoveredParticipantData`: what a participant announces about itself (RTPS 2.5 §8.5.3.2).

use alloc::string::String;
use alloc::vec::Vec;

use super::limits::{keep_locator, parse_name};
use super::security::{EncodedToken, SecurityInfo};
use super::{begin_list, parse_list, skip_unknown};
use crate::cursor::Endianness;
use crate::error::Malformed;
use crate::guid::Guid;
use crate::locator::Locator;
use crate::parameter::*;
use crate::qos::{EntityName, Property, UserData, WirePolicy};
use crate::time::Duration;
use crate::version::{ProtocolVersion, VendorId};

/// The bits of `BuiltinEndpointSet_t` (RTPS 2.5 §9.3.2, XTypes 1.3 §7.6.3.3, DDS-SEC 1.1 §7.4.1.4): which builtin endpoints a participant has.
#[allow(missing_docs, reason = "the names are the specification's")]
pub mod builtin_endpoints {
    pub const PARTICIPANT_ANNOUNCER: u32 = 1 << 0;
    pub const PARTICIPANT_DETECTOR: u32 = 1 << 1;
    pub const PUBLICATIONS_ANNOUNCER: u32 = 1 << 2;
    pub const PUBLICATIONS_DETECTOR: u32 = 1 << 3;
    pub const SUBSCRIPTIONS_ANNOUNCER: u32 = 1 << 4;
    pub const SUBSCRIPTIONS_DETECTOR: u32 = 1 << 5;
    pub const PARTICIPANT_MESSAGE_DATA_WRITER: u32 = 1 << 10;
    pub const PARTICIPANT_MESSAGE_DATA_READER: u32 = 1 << 11;
    pub const TYPE_LOOKUP_REQUEST_WRITER: u32 = 1 << 12;
    pub const TYPE_LOOKUP_REQUEST_READER: u32 = 1 << 13;
    pub const TYPE_LOOKUP_REPLY_WRITER: u32 = 1 << 14;
    pub const TYPE_LOOKUP_REPLY_READER: u32 = 1 << 15;
    pub const PUBLICATIONS_SECURE_ANNOUNCER: u32 = 1 << 16;
    pub const PUBLICATIONS_SECURE_DETECTOR: u32 = 1 << 17;
    pub const SUBSCRIPTIONS_SECURE_ANNOUNCER: u32 = 1 << 18;
    pub const SUBSCRIPTIONS_SECURE_DETECTOR: u32 = 1 << 19;
    pub const PARTICIPANT_MESSAGE_SECURE_WRITER: u32 = 1 << 20;
    pub const PARTICIPANT_MESSAGE_SECURE_READER: u32 = 1 << 21;
    pub const STATELESS_MESSAGE_WRITER: u32 = 1 << 22;
    pub const STATELESS_MESSAGE_READER: u32 = 1 << 23;
    pub const VOLATILE_MESSAGE_WRITER: u32 = 1 << 24;
    pub const VOLATILE_MESSAGE_READER: u32 = 1 << 25;
    pub const PARTICIPANT_SECURE_ANNOUNCER: u32 = 1 << 26;
    pub const PARTICIPANT_SECURE_DETECTOR: u32 = 1 << 27;
    pub const TOPICS_ANNOUNCER: u32 = 1 << 28;
    pub const TOPICS_DETECTOR: u32 = 1 << 29;

    /// What every participant has: SPDP, SEDP for publications and subscriptions, and liveliness
    /// messages, both ways.
    pub const STANDARD: u32 = PARTICIPANT_ANNOUNCER
        | PARTICIPANT_DETECTOR
        | PUBLICATIONS_ANNOUNCER
        | PUBLICATIONS_DETECTOR
        | SUBSCRIPTIONS_ANNOUNCER
        | SUBSCRIPTIONS_DETECTOR
        | PARTICIPANT_MESSAGE_DATA_WRITER
        | PARTICIPANT_MESSAGE_DATA_READER;

    /// What a participant with DDS Security has besides: both channels of its plugins, and secure
    /// discovery and liveliness, both ways.
    pub const SECURE: u32 = PUBLICATIONS_SECURE_ANNOUNCER
        | PUBLICATIONS_SECURE_DETECTOR
        | SUBSCRIPTIONS_SECURE_ANNOUNCER
        | SUBSCRIPTIONS_SECURE_DETECTOR
        | PARTICIPANT_MESSAGE_SECURE_WRITER
        | PARTICIPANT_MESSAGE_SECURE_READER
        | STATELESS_MESSAGE_WRITER
        | STATELESS_MESSAGE_READER
        | VOLATILE_MESSAGE_WRITER
        | VOLATILE_MESSAGE_READER
        | PARTICIPANT_SECURE_ANNOUNCER
        | PARTICIPANT_SECURE_DETECTOR;
}

/// The property by which a participant announces the host that it runs on.
pub const HOST_PROPERTY: &str = "__Hostname";
/// The property by which a participant announces the number of its process.
pub const PROCESS_PROPERTY: &str = "__Pid";

/// The id of the domain tag as [`Parameter`] shows it.
const DOMAIN_TAG: u16 = PID_DOMAIN_TAG & !FLAG_MUST_UNDERSTAND;

/// What a participant announces about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParticipantData {
    /// The participant.
    pub guid: Guid,
    /// The version of RTPS it writes.
    pub protocol_version: ProtocolVersion,
    /// Who made it.
    pub vendor_id: VendorId,
    /// Its domain; if it does not say, the domain whose ports it was heard on.
    pub domain_id: Option<u32>,
    /// Its domain tag; the empty one is read as none, which means the same.
    pub domain_tag: Option<String>,
    /// Where its builtin endpoints listen.
    pub metatraffic_unicast: Vec<Locator>,
    /// The groups where its builtin endpoints listen.
    pub metatraffic_multicast: Vec<Locator>,
    /// Where its endpoints listen that announce no locators of their own.
    pub default_unicast: Vec<Locator>,
    /// The groups where its endpoints listen that announce no locators of their own.
    pub default_multicast: Vec<Locator>,
    /// How long this announcement is good for; 100 s by default.
    pub lease_duration: Duration,
    /// Its builtin endpoints, as [`builtin_endpoints`].
    pub available_builtin_endpoints: u32,
    /// Additional QoS of its builtin endpoints; bit 0 says that its reader of liveliness messages
    /// is best effort.
    pub builtin_endpoint_qos: u32,
    /// Counts assertions of writers that are MANUAL_BY_PARTICIPANT.
    pub manual_liveliness_count: u32,
    /// Do its readers want QoS in every DATA?
    pub expects_inline_qos: bool,
    /// USER_DATA.
    pub user_data: UserData,
    /// The participant's name, empty if it has none.
    pub entity_name: EntityName,
    /// The properties it tells.
    pub properties: Property,
    /// Who it is, if it can authenticate (PID 0x1001).
    pub identity_token: Option<EncodedToken>,
    /// What it may do, if it can authenticate (PID 0x1002).
    pub permissions_token: Option<EncodedToken>,
    /// What it protects, if it can authenticate (PID 0x1005).
    pub security_info: Option<SecurityInfo>,
}

impl Default for ParticipantData {
    fn default() -> Self {
        Self {
            guid: Guid::UNKNOWN,
            protocol_version: ProtocolVersion::V2_5,
            vendor_id: VendorId::TAKT,
            domain_id: None,
            domain_tag: None,
            metatraffic_unicast: Vec::new(),
            metatraffic_multicast: Vec::new(),
            default_unicast: Vec::new(),
            default_multicast: Vec::new(),
            lease_duration: Self::DEFAULT_LEASE_DURATION,
            available_builtin_endpoints: 0,
            builtin_endpoint_qos: 0,
            manual_liveliness_count: 0,
            expects_inline_qos: false,
            user_data: UserData::default(),
            entity_name: EntityName::default(),
            properties: Property::default(),
            identity_token: None,
            permissions_token: None,
            security_info: None,
        }
    }
}

impl ParticipantData {
    /// The lease of a participant that announces none.
    pub const DEFAULT_LEASE_DURATION: Duration = Duration::from_secs(100);

    /// The host that it runs on, if it announces that.
    ///
    /// INTEROP(CycloneDDS 11): the property `__Hostname`, which Takt announces too.
    /// INTEROP(Fast DDS 2.9.1): the property `fastdds.physical_data.host`.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.any_property(&[HOST_PROPERTY, "fastdds.physical_data.host"])
    }

    /// The process that it belongs to, by its number or name, if it announces that.
    ///
    /// INTEROP(CycloneDDS 11): the property `__Pid`, which Takt announces too.
    /// INTEROP(Fast DDS 2.9.1): the property `fastdds.physical_data.process`.
    #[must_use]
    pub fn process(&self) -> Option<&str> {
        self.any_property(&[PROCESS_PROPERTY, "fastdds.physical_data.process"])
    }

    fn any_property(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.properties.get(name)).filter(|value| !value.is_empty())
    }

    /// The participant for people: `"camera" (host robot1, process 4711)`, as far as it announces these. Characters that
    /// would disturb a terminal are left out.
    #[must_use]
    pub fn label(&self) -> String {
        let plain = |text: &str| -> String { text.chars().filter(|c| !c.is_control()).collect() };
        let mut label = match self.entity_name.0.as_str() {
            "" => String::from("participant without a name"),
            name => alloc::format!("\"{}\"", plain(name)),
        };
        let host = self.host().map(|host| alloc::format!("host {}", plain(host)));
        let process = self.process().map(|process| alloc::format!("process {}", plain(process)));
        let parts: Vec<String> = host.into_iter().chain(process).collect();
        if !parts.is_empty() {
            label.push_str(&alloc::format!(" ({})", parts.join(", ")));
        }
        label
    }

    /// Reads an announcement, encapsulation header included.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        let list = parse_list(payload)?;
        let mut data =
            Self { protocol_version: ProtocolVersion::V2_1, vendor_id: VendorId::UNKNOWN, ..Self::default() };
        for parameter in list {
            data.accept(&parameter)?;
        }
        if data.guid == Guid::UNKNOWN {
            return Err(Malformed { offset: 0, what: "participant data without a GUID" });
        }
        Ok(data)
    }

    fn accept(&mut self, parameter: &Parameter<'_>) -> Result<(), Malformed> {
        let mut value = parameter.cursor();
        match parameter.pid {
            PID_PARTICIPANT_GUID => self.guid = Guid::from_bytes(value.array()?),
            PID_PROTOCOL_VERSION => {
                let [major, minor] = value.array()?;
                self.protocol_version = ProtocolVersion { major, minor };
            }
            PID_VENDORID => self.vendor_id = VendorId(value.array()?),
            PID_DOMAIN_ID => self.domain_id = Some(value.u32()?),
            DOMAIN_TAG => self.domain_tag = Some(parse_name(&mut value)?).filter(|tag| !tag.is_empty()),
            PID_METATRAFFIC_UNICAST_LOCATOR => {
                keep_locator(&mut self.metatraffic_unicast, Locator::parse(&mut value)?);
            }
            PID_METATRAFFIC_MULTICAST_LOCATOR => {
                keep_locator(&mut self.metatraffic_multicast, Locator::parse(&mut value)?);
            }
            PID_DEFAULT_UNICAST_LOCATOR => {
                keep_locator(&mut self.default_unicast, Locator::parse(&mut value)?);
            }
            PID_DEFAULT_MULTICAST_LOCATOR => {
                keep_locator(&mut self.default_multicast, Locator::parse(&mut value)?);
            }
            PID_PARTICIPANT_LEASE_DURATION => self.lease_duration = Duration::parse(&mut value)?,
            PID_BUILTIN_ENDPOINT_SET => self.available_builtin_endpoints = value.u32()?,
            PID_BUILTIN_ENDPOINT_QOS => self.builtin_endpoint_qos = value.u32()?,
            PID_PARTICIPANT_MANUAL_LIVELINESS_COUNT => {
                self.manual_liveliness_count = value.u32()?;
            }
            PID_EXPECTS_INLINE_QOS => self.expects_inline_qos = value.u8()? != 0,
            PID_USER_DATA => self.user_data = UserData::parse(&mut value)?,
            PID_ENTITY_NAME => self.entity_name = EntityName::parse(&mut value)?,
            PID_PROPERTY_LIST => self.properties = Property::parse(&mut value)?,
            PID_IDENTITY_TOKEN => self.identity_token = Some(EncodedToken::of(parameter)),
            PID_PERMISSIONS_TOKEN => self.permissions_token = Some(EncodedToken::of(parameter)),
            PID_PARTICIPANT_SECURITY_INFO => self.security_info = Some(SecurityInfo::parse(&mut value)?),
            _ => skip_unknown(parameter)?,
        }
        Ok(())
    }

    /// The announcement, little endian, encapsulation header included.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes_with(Endianness::Little)
    }

    /// The announcement in a byte order of choice, without tokens that are of the other one.
    pub fn to_bytes_with(&self, endianness: Endianness) -> Vec<u8> {
        let mut list = begin_list(endianness);
        let version = [self.protocol_version.major, self.protocol_version.minor];
        list.put(PID_PROTOCOL_VERSION, |value| value.bytes(&version));
        list.put(PID_VENDORID, |value| value.bytes(&self.vendor_id.0));
        list.put(PID_PARTICIPANT_GUID, |value| value.guid(self.guid));
        list.put(PID_BUILTIN_ENDPOINT_SET, |value| value.u32(self.available_builtin_endpoints));
        list.put(PID_PARTICIPANT_LEASE_DURATION, |value| value.duration(self.lease_duration));
        if let Some(domain_id) = self.domain_id {
            list.put(PID_DOMAIN_ID, |value| value.u32(domain_id));
        }
        if let Some(tag) = self.domain_tag.as_ref().filter(|tag| !tag.is_empty()) {
            list.put(PID_DOMAIN_TAG, |value| value.string(tag));
        }
        for (pid, locators) in [
            (PID_METATRAFFIC_UNICAST_LOCATOR, &self.metatraffic_unicast),
            (PID_METATRAFFIC_MULTICAST_LOCATOR, &self.metatraffic_multicast),
            (PID_DEFAULT_UNICAST_LOCATOR, &self.default_unicast),
            (PID_DEFAULT_MULTICAST_LOCATOR, &self.default_multicast),
        ] {
            for locator in locators {
                list.put(pid, |value| value.locator(locator));
            }
        }
        if self.builtin_endpoint_qos != 0 {
            list.put(PID_BUILTIN_ENDPOINT_QOS, |value| value.u32(self.builtin_endpoint_qos));
        }
        if self.manual_liveliness_count != 0 {
            let count = self.manual_liveliness_count;
            list.put(PID_PARTICIPANT_MANUAL_LIVELINESS_COUNT, |value| value.u32(count));
        }
        if self.expects_inline_qos {
            list.put(PID_EXPECTS_INLINE_QOS, |value| value.bool(true));
        }
        self.user_data.put_unless(&UserData::default(), &mut list);
        self.entity_name.put_unless(&EntityName::default(), &mut list);
        if self.properties.propagated().next().is_some() {
            self.properties.put(&mut list);
        }
        for (pid, token) in
            [(PID_IDENTITY_TOKEN, &self.identity_token), (PID_PERMISSIONS_TOKEN, &self.permissions_token)]
        {
            if let Some(token) = token {
                token.put(pid, endianness, &mut list);
            }
        }
        if let Some(info) = self.security_info {
            info.put(PID_PARTICIPANT_SECURITY_INFO, &mut list);
        }
        list.finish()
    }

    /// The GUID that a key-only payload names; see [`super::parse_key`].
    pub fn parse_key(payload: &[u8]) -> Result<Guid, Malformed> {
        super::parse_key(payload)
    }

    /// The key-only payload of a participant; see [`super::key_payload`].
    pub fn key_payload(guid: Guid) -> Vec<u8> {
        super::key_payload(guid)
    }
}
