//! Announcement data of a participant: `SPDPdiscoveredParticipantData` (RTPS 2.5 §8.5.3.2).

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

/// Bits of `BuiltinEndpointSet_t`, the builtin endpoints of a participant (RTPS 2.5 §9.3.2,
/// XTypes 1.3 §7.6.3.3, DDS-SEC 1.1 §7.4.1.4).
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

    /// Builtin endpoints of every participant: SPDP, SEDP for publications and subscriptions, and
    /// liveliness messages, in both directions.
    pub const STANDARD: u32 = PARTICIPANT_ANNOUNCER
        | PARTICIPANT_DETECTOR
        | PUBLICATIONS_ANNOUNCER
        | PUBLICATIONS_DETECTOR
        | SUBSCRIPTIONS_ANNOUNCER
        | SUBSCRIPTIONS_DETECTOR
        | PARTICIPANT_MESSAGE_DATA_WRITER
        | PARTICIPANT_MESSAGE_DATA_READER;

    /// Additional builtin endpoints of a participant with DDS Security: both channels of its
    /// plugins, and secure discovery and liveliness, in both directions.
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

/// Property that holds the host name of a participant.
pub const HOST_PROPERTY: &str = "__Hostname";
/// Property that holds the process id of a participant.
pub const PROCESS_PROPERTY: &str = "__Pid";

/// PID of the domain tag without the must-understand flag, as in [`Parameter`].
const DOMAIN_TAG: u16 = PID_DOMAIN_TAG & !FLAG_MUST_UNDERSTAND;

/// Announced data of a participant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParticipantData {
    /// GUID of the participant.
    pub guid: Guid,
    /// RTPS version of the messages that the participant sends.
    pub protocol_version: ProtocolVersion,
    /// Vendor of the implementation.
    pub vendor_id: VendorId,
    /// Domain of the participant. If absent, it is the domain of the port that received the
    /// announcement.
    pub domain_id: Option<u32>,
    /// Domain tag. An empty tag is read as `None`, which means the same.
    pub domain_tag: Option<String>,
    /// Unicast locators of the builtin endpoints.
    pub metatraffic_unicast: Vec<Locator>,
    /// Multicast locators of the builtin endpoints.
    pub metatraffic_multicast: Vec<Locator>,
    /// Unicast locators of endpoints that announce no locators.
    pub default_unicast: Vec<Locator>,
    /// Multicast locators of endpoints that announce no locators.
    pub default_multicast: Vec<Locator>,
    /// Lease duration of this announcement; 100 s by default.
    pub lease_duration: Duration,
    /// Builtin endpoints as bits of [`builtin_endpoints`].
    pub available_builtin_endpoints: u32,
    /// Additional QoS of the builtin endpoints. Bit 0 marks a best-effort reader of liveliness
    /// messages.
    pub builtin_endpoint_qos: u32,
    /// Number of assertions of writers that are MANUAL_BY_PARTICIPANT.
    pub manual_liveliness_count: u32,
    /// True if the readers request inline QoS in every DATA.
    pub expects_inline_qos: bool,
    /// USER_DATA.
    pub user_data: UserData,
    /// Name of the participant; empty if it has none.
    pub entity_name: EntityName,
    /// Properties that the participant announces.
    pub properties: Property,
    /// Identity token, if the participant can authenticate (PID 0x1001).
    pub identity_token: Option<EncodedToken>,
    /// Permissions token, if the participant can authenticate (PID 0x1002).
    pub permissions_token: Option<EncodedToken>,
    /// Security attributes, if the participant can authenticate (PID 0x1005).
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
    /// Lease duration of a participant that announces none.
    pub const DEFAULT_LEASE_DURATION: Duration = Duration::from_secs(100);

    /// Returns the host name of the participant, if announced.
    ///
    /// INTEROP(CycloneDDS 11): the property `__Hostname`, which Takt announces too.
    /// INTEROP(Fast DDS 2.9.1): the property `fastdds.physical_data.host`.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.any_property(&[HOST_PROPERTY, "fastdds.physical_data.host"])
    }

    /// Returns the id or name of the participant's process, if announced.
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

    /// Returns the participant as text: `"camera" (host robot1, process 4711)`, as far as it
    /// announces these. Control characters of a terminal are removed.
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

    /// Parses an announcement, encapsulation header included.
    pub fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        Self::from_list(parse_list(payload)?)
    }

    /// Parses a parameter list without encapsulation header, as handshakes contain it
    /// (DDS-SEC 1.1 §9.3.2.5.2).
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_list(octets: &[u8], endianness: Endianness) -> Result<Self, Malformed> {
        let (list, _) = ParameterList::parse(octets, endianness)?;
        Self::from_list(list)
    }

    fn from_list(list: ParameterList<'_>) -> Result<Self, Malformed> {
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

    /// Returns the announcement in little endian, encapsulation header included.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes_with(Endianness::Little)
    }

    /// Returns the announcement in this byte order. Tokens of the other byte order are left out.
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
        self.properties.put_unless(&Property::default(), &mut list);
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

    /// Returns the GUID in a key-only payload; see [`super::parse_key`].
    pub fn parse_key(payload: &[u8]) -> Result<Guid, Malformed> {
        super::parse_key(payload)
    }

    /// Returns the key-only payload of a participant; see [`super::key_payload`].
    pub fn key_payload(guid: Guid) -> Vec<u8> {
        super::key_payload(guid)
    }
}
