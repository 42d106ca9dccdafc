//! Security attributes of participants and endpoints, and their masks in discovery
//! (DDS-SEC 1.1 §7.2.7, §7.2.8, §9.4.2).
//!
//! Two entities match only if their masks are equal. A mask without its valid bit matches every
//! mask. PIDs 0x1005 (participants) and 0x1004 (endpoints) carry two masks, that of the attributes
//! and that of the plugin, each with its valid bit.

use takt_wire::{Cursor, Endianness, EntityId};

use crate::cdr::CdrWriter;
use crate::documents::{DomainRule, ProtectionKind, TopicRule};
use crate::error::{ErrorKind, Result, SecurityError};
use crate::keys::TransformKind;

/// Bit of a mask that declares its other bits valid.
pub const VALID: u32 = 1 << 31;

/// Names of the bits of a mask.
type Names = &'static [(u32, &'static str)];

const PARTICIPANT: Names =
    &[(1 << 0, "is_rtps_protected"), (1 << 1, "is_discovery_protected"), (1 << 2, "is_liveliness_protected")];
const PARTICIPANT_PLUGIN: Names = &[
    (1 << 0, "is_rtps_encrypted"),
    (1 << 1, "is_discovery_encrypted"),
    (1 << 2, "is_liveliness_encrypted"),
    (1 << 3, "is_rtps_origin_authenticated"),
    (1 << 4, "is_discovery_origin_authenticated"),
    (1 << 5, "is_liveliness_origin_authenticated"),
];
const ENDPOINT: Names = &[
    (1 << 0, "is_read_protected"),
    (1 << 1, "is_write_protected"),
    (1 << 2, "is_discovery_protected"),
    (1 << 3, "is_submessage_protected"),
    (1 << 4, "is_payload_protected"),
    (1 << 5, "is_key_protected"),
    (1 << 6, "is_liveliness_protected"),
];
const ENDPOINT_PLUGIN: Names = &[
    (1 << 0, "is_submessage_encrypted"),
    (1 << 1, "is_payload_encrypted"),
    (1 << 2, "is_submessage_origin_authenticated"),
];

/// Both masks of an entity, as announced in discovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecurityInfo {
    /// Attributes defined by the specification.
    pub attributes: u32,
    /// Attributes defined by the plugins.
    pub plugin_attributes: u32,
}

impl SecurityInfo {
    /// Reads the value of a parameter.
    ///
    /// # Errors
    /// The value has fewer than eight octets.
    pub fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(Self { attributes: cursor.u32()?, plugin_attributes: cursor.u32()? })
    }

    /// Writes the value of a parameter.
    pub fn to_octets(self, endianness: Endianness) -> Vec<u8> {
        let mut writer = CdrWriter::new(endianness);
        writer.u32(self.attributes);
        writer.u32(self.plugin_attributes);
        writer.into_octets()
    }

    /// Checks that two participants apply the same protection. `None` stands for a participant that
    /// announced no masks.
    ///
    /// # Errors
    /// The masks differ; the reason names each differing bit and the side that sets it.
    pub fn check_participants(self, remote: Option<Self>) -> Result<()> {
        let found = self.differences(remote.unwrap_or_default(), [PARTICIPANT, PARTICIPANT_PLUGIN], SIDES);
        refuse("participant", found)
    }

    /// Checks that two endpoints apply the same protection. `None` stands for an endpoint that
    /// announced no masks.
    ///
    /// # Errors
    /// The masks differ; the reason names each differing bit and the side that sets it.
    pub fn check_endpoints(self, remote: Option<Self>) -> Result<()> {
        refuse("endpoint", self.differences(remote.unwrap_or_default(), [ENDPOINT, ENDPOINT_PLUGIN], SIDES))
    }

    /// Describes the mask bits that only one of two participants sets; `None` if the masks are
    /// compatible.
    pub fn differences_of_participants(self, other: Self, sides: [&str; 2]) -> Option<String> {
        let sides = sides.map(|side| format!("side of {side}"));
        self.differences(other, [PARTICIPANT, PARTICIPANT_PLUGIN], [&sides[0], &sides[1]])
    }

    /// Describes the mask bits that only one of two endpoints sets; `None` if the masks are
    /// compatible.
    pub fn differences_of_endpoints(self, other: Self, sides: [&str; 2]) -> Option<String> {
        let sides = sides.map(|side| format!("side of {side}"));
        self.differences(other, [ENDPOINT, ENDPOINT_PLUGIN], [&sides[0], &sides[1]])
    }

    fn differences(self, other: Self, names: [Names; 2], sides: [&str; 2]) -> Option<String> {
        let mut found = Vec::new();
        let masks = [(self.attributes, other.attributes), (self.plugin_attributes, other.plugin_attributes)];
        for ((own, other), names) in masks.into_iter().zip(names) {
            if own & other & VALID == 0 {
                continue;
            }
            for bit in (0..31).map(|bit| 1 << bit).filter(|bit| (own ^ other) & bit != 0) {
                let name = names.iter().find(|(known, _)| *known == bit);
                let name = name.map_or_else(|| format!("bit {bit:#x}"), |(_, name)| (*name).to_owned());
                found.push(format!("{name} on the {} only", sides[usize::from(own & bit == 0)]));
            }
        }
        (!found.is_empty()).then(|| found.join(", "))
    }
}

/// Names of the two sides in the errors of [`SecurityInfo::check_participants`].
const SIDES: [&str; 2] = ["local side", "remote side"];

fn refuse(what: &str, differences: Option<String>) -> Result<()> {
    let Some(differences) = differences else { return Ok(()) };
    let reason = format!("security attributes of the {what} differ: {differences}");
    Err(SecurityError::new(ErrorKind::Document, reason))
}

impl From<takt_wire::discovery::SecurityInfo> for SecurityInfo {
    fn from(info: takt_wire::discovery::SecurityInfo) -> Self {
        Self { attributes: info.attributes, plugin_attributes: info.plugin_attributes }
    }
}

impl From<SecurityInfo> for takt_wire::discovery::SecurityInfo {
    fn from(info: SecurityInfo) -> Self {
        Self { attributes: info.attributes, plugin_attributes: info.plugin_attributes }
    }
}

/// Protection attributes of a participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParticipantAttributes {
    /// Whether unauthenticated participants may match endpoints of unprotected topics.
    pub allows_unauthenticated: bool,
    /// Whether joining the domain requires a grant.
    pub is_access_protected: bool,
    /// Protection of whole messages.
    pub rtps: ProtectionKind,
    /// Protection of secure discovery.
    pub discovery: ProtectionKind,
    /// Protection of secure liveliness.
    pub liveliness: ProtectionKind,
}

impl ParticipantAttributes {
    /// Returns the attributes that a governance rule specifies.
    pub const fn of(rule: &DomainRule) -> Self {
        Self {
            allows_unauthenticated: rule.allow_unauthenticated_participants,
            is_access_protected: rule.enable_join_access_control,
            rtps: rule.rtps_protection_kind,
            discovery: rule.discovery_protection_kind,
            liveliness: rule.liveliness_protection_kind,
        }
    }

    /// Returns the masks.
    pub fn info(&self) -> SecurityInfo {
        let kinds = [self.rtps, self.discovery, self.liveliness];
        let bits = |has: fn(ProtectionKind) -> bool| {
            kinds.iter().enumerate().filter(|(_, kind)| has(**kind)).map(|(index, _)| 1 << index).sum::<u32>()
        };
        let plugin = bits(ProtectionKind::is_encrypted) | bits(ProtectionKind::has_origin_authentication) << 3;
        SecurityInfo { attributes: VALID | bits(ProtectionKind::is_protected), plugin_attributes: VALID | plugin }
    }
}

/// Protection attributes of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointAttributes {
    /// Whether readers require a grant.
    pub is_read_protected: bool,
    /// Whether writers require a grant.
    pub is_write_protected: bool,
    /// Whether secure discovery announces the endpoint.
    pub is_discovery_protected: bool,
    /// Whether secure messages assert the liveliness of the endpoint.
    pub is_liveliness_protected: bool,
    /// Protection of submessages.
    pub submessage: ProtectionKind,
    /// Protection of payloads.
    pub payload: ProtectionKind,
}

impl EndpointAttributes {
    /// Returns the attributes that a governance rule specifies.
    pub const fn of(rule: &TopicRule) -> Self {
        Self {
            is_read_protected: rule.enable_read_access_control,
            is_write_protected: rule.enable_write_access_control,
            is_discovery_protected: rule.enable_discovery_protection,
            is_liveliness_protected: rule.enable_liveliness_protection,
            submessage: rule.metadata_protection_kind,
            payload: rule.data_protection_kind.widened(),
        }
    }

    /// Returns the attributes of a builtin endpoint of DDS Security; `None` for other endpoints.
    pub fn of_builtin(entity_id: EntityId, participant: &ParticipantAttributes) -> Option<Self> {
        let submessage = match entity_id.0 {
            // Secure discovery of publications, subscriptions and participants.
            [0xff, 0x00, 0x03 | 0x04, 0xc2 | 0xc7] | [0xff, 0x01, 0x01, 0xc2 | 0xc7] => participant.discovery,
            [0xff, 0x02, 0x00, 0xc2 | 0xc7] => participant.liveliness,
            // The volatile endpoints are encrypted regardless of the governance.
            [0xff, 0x02, 0x02, 0xc3 | 0xc4] => ProtectionKind::Encrypt,
            // The stateless endpoints are never protected.
            [0x00, 0x02, 0x01, 0xc3 | 0xc4] => ProtectionKind::None,
            _ => return None,
        };
        Some(Self { submessage, ..Self::default() })
    }

    /// Returns the masks.
    pub fn info(&self) -> SecurityInfo {
        let bits =
            |flags: &[bool]| flags.iter().enumerate().map(|(index, flag)| u32::from(*flag) << index).sum::<u32>();
        let attributes = bits(&[
            self.is_read_protected,
            self.is_write_protected,
            self.is_discovery_protected,
            self.submessage.is_protected(),
            self.payload.is_protected(),
            self.payload.is_encrypted(),
            self.is_liveliness_protected,
        ]);
        let plugin = bits(&[
            self.submessage.is_encrypted(),
            self.payload.is_encrypted(),
            self.submessage.has_origin_authentication(),
        ]);
        SecurityInfo { attributes: VALID | attributes, plugin_attributes: VALID | plugin }
    }
}

impl ProtectionKind {
    /// Returns the transform kind that this protection needs, with 256-bit or 128-bit keys.
    pub const fn transform_kind(self, has_256_bits: bool) -> TransformKind {
        match (self.is_protected(), self.is_encrypted(), has_256_bits) {
            (false, _, _) => TransformKind::None,
            (true, false, false) => TransformKind::Aes128Gmac,
            (true, true, false) => TransformKind::Aes128Gcm,
            (true, false, true) => TransformKind::Aes256Gmac,
            (true, true, true) => TransformKind::Aes256Gcm,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn participant() -> ParticipantAttributes {
        ParticipantAttributes {
            rtps: ProtectionKind::EncryptWithOriginAuthentication,
            discovery: ProtectionKind::Encrypt,
            liveliness: ProtectionKind::SignWithOriginAuthentication,
            ..ParticipantAttributes::default()
        }
    }

    fn endpoint() -> EndpointAttributes {
        EndpointAttributes {
            is_read_protected: true,
            is_liveliness_protected: true,
            submessage: ProtectionKind::SignWithOriginAuthentication,
            payload: ProtectionKind::Encrypt,
            ..EndpointAttributes::default()
        }
    }

    #[test]
    fn masks_have_the_bits_of_the_specification_when_attributes_are_set() {
        let info = participant().info();
        assert_eq!((info.attributes, info.plugin_attributes), (0x8000_0007, 0x8000_002b));
        let info = endpoint().info();
        assert_eq!((info.attributes, info.plugin_attributes), (0x8000_0079, 0x8000_0006));
        let nothing = SecurityInfo { attributes: VALID, plugin_attributes: VALID };
        assert_eq!(ParticipantAttributes::default().info(), nothing);
        assert_eq!(EndpointAttributes::default().info(), nothing);
    }

    #[test]
    fn signed_payload_does_not_protect_keys() {
        let signed = EndpointAttributes { payload: ProtectionKind::Sign, ..EndpointAttributes::default() };
        assert_eq!(signed.info(), SecurityInfo { attributes: VALID | 1 << 4, plugin_attributes: VALID });
    }

    #[test]
    fn error_names_differing_bits_and_their_side() {
        let local = participant().info();
        let text = |remote: ParticipantAttributes| {
            local.check_participants(Some(remote.info())).expect_err("differ").to_string()
        };
        assert_eq!(
            text(ParticipantAttributes { discovery: ProtectionKind::Sign, ..participant() }),
            "security attributes of the participant differ: is_discovery_encrypted on the local side only"
        );
        let remote = EndpointAttributes { is_write_protected: true, payload: ProtectionKind::None, ..endpoint() };
        let error = endpoint().info().check_endpoints(Some(remote.info())).expect_err("differ");
        assert_eq!(
            error.reason(),
            "security attributes of the endpoint differ: is_write_protected on the remote side only, \
             is_payload_protected on the local side only, is_key_protected on the local side only, \
             is_payload_encrypted on the local side only"
        );
        let unknown = SecurityInfo { attributes: local.attributes | 1 << 20, ..local };
        assert!(local.check_participants(Some(unknown)).expect_err("differ").reason().contains("bit 0x100000"));
    }

    #[test]
    fn masks_without_valid_bit_match_every_mask() {
        let local = participant().info();
        assert_eq!(local.check_participants(Some(local)), Ok(()));
        assert_eq!(local.check_participants(None), Ok(()));
        let silent = SecurityInfo { attributes: 0x55, plugin_attributes: 0x55 };
        assert_eq!(local.check_participants(Some(silent)), Ok(()));
        let half = SecurityInfo { attributes: 0x55, ..EndpointAttributes::default().info() };
        assert!(endpoint().info().check_endpoints(Some(half)).is_err(), "the other mask is valid");
    }

    #[test]
    fn builtin_endpoints_inherit_the_protection_of_their_participant() {
        let kind = |id| EndpointAttributes::of_builtin(EntityId(id), &participant()).map(|found| found.submessage);
        for id in [[0xff, 0, 3, 0xc2], [0xff, 0, 4, 0xc7], [0xff, 1, 1, 0xc2]] {
            assert_eq!(kind(id), Some(ProtectionKind::Encrypt), "{id:02x?}");
        }
        assert_eq!(kind([0xff, 2, 0, 0xc7]), Some(ProtectionKind::SignWithOriginAuthentication));
        assert_eq!(kind([0xff, 2, 2, 0xc3]), Some(ProtectionKind::Encrypt));
        assert_eq!(kind([0, 2, 1, 0xc4]), Some(ProtectionKind::None));
        assert_eq!((kind([0, 0, 3, 0xc2]), kind([0xff, 0, 3, 0x02])), (None, None));
    }

    #[test]
    fn transform_kind_follows_the_protection_and_key_length() {
        assert_eq!(ProtectionKind::None.transform_kind(true), TransformKind::None);
        assert_eq!(ProtectionKind::Sign.transform_kind(false), TransformKind::Aes128Gmac);
        assert_eq!(ProtectionKind::SignWithOriginAuthentication.transform_kind(true), TransformKind::Aes256Gmac);
        assert_eq!(ProtectionKind::EncryptWithOriginAuthentication.transform_kind(false), TransformKind::Aes128Gcm);
        assert_eq!(ProtectionKind::Encrypt.transform_kind(true), TransformKind::Aes256Gcm);
    }

    #[test]
    fn masks_round_trip_in_both_byte_orders() {
        for endianness in [Endianness::Big, Endianness::Little] {
            let octets = endpoint().info().to_octets(endianness);
            assert_eq!(SecurityInfo::parse(&mut Cursor::new(&octets, endianness)), Ok(endpoint().info()));
            assert!(SecurityInfo::parse(&mut Cursor::new(&octets[..7], endianness)).is_err());
        }
    }
}
