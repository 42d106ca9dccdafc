//! GUIDs of entities: prefix and entity id (RTPS 2.5 §8.2.4, §9.3.1).
//!
//! Both parts are octets as on the wire; they have no byte order.

use core::fmt;

/// GUID prefix, which all entities of one participant share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GuidPrefix(pub [u8; 12]);

impl Ord for GuidPrefix {
    /// Compares the octets as one integer, since every received datagram looks up its sender.
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        Guid::new(*self, EntityId::UNKNOWN).cmp(&Guid::new(*other, EntityId::UNKNOWN))
    }
}

impl PartialOrd for GuidPrefix {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl GuidPrefix {
    /// All octets zero: no participant.
    pub const UNKNOWN: Self = Self([0; 12]);
}

impl fmt::Display for GuidPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if index == 4 || index == 8 {
                f.write_str(".")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for GuidPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Id of an entity within its participant: three octets of key and one of kind (RTPS 2.5 §9.3.1.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntityId(pub [u8; 4]);

/// Values of the kind octet of an [`EntityId`]. The two top bits are the origin of the entity (00
/// the application, 11 the specification, 01 a vendor). The other bits are the kind.
mod kind {
    pub const WRITER_WITH_KEY: u8 = 0x02;
    pub const WRITER_NO_KEY: u8 = 0x03;
    pub const READER_NO_KEY: u8 = 0x04;
    pub const READER_WITH_KEY: u8 = 0x07;
    pub const WRITER_GROUP: u8 = 0x08;
    pub const READER_GROUP: u8 = 0x09;
    pub const ORIGIN_MASK: u8 = 0xc0;
    pub const BUILTIN: u8 = 0xc0;
}

impl EntityId {
    /// All octets zero: any entity, in a submessage.
    pub const UNKNOWN: Self = Self([0; 4]);
    /// The participant.
    pub const PARTICIPANT: Self = Self([0x00, 0x00, 0x01, 0xc1]);
    /// Writer of participant announcements (SPDP).
    pub const SPDP_WRITER: Self = Self([0x00, 0x01, 0x00, 0xc2]);
    /// Reader of participant announcements (SPDP).
    pub const SPDP_READER: Self = Self([0x00, 0x01, 0x00, 0xc7]);
    /// Writer of topic data (SEDP).
    pub const SEDP_TOPIC_WRITER: Self = Self([0x00, 0x00, 0x02, 0xc2]);
    /// Reader of topic data (SEDP).
    pub const SEDP_TOPIC_READER: Self = Self([0x00, 0x00, 0x02, 0xc7]);
    /// Writer of publication data (SEDP).
    pub const SEDP_PUB_WRITER: Self = Self([0x00, 0x00, 0x03, 0xc2]);
    /// Reader of publication data (SEDP).
    pub const SEDP_PUB_READER: Self = Self([0x00, 0x00, 0x03, 0xc7]);
    /// Writer of subscription data (SEDP).
    pub const SEDP_SUB_WRITER: Self = Self([0x00, 0x00, 0x04, 0xc2]);
    /// Reader of subscription data (SEDP).
    pub const SEDP_SUB_READER: Self = Self([0x00, 0x00, 0x04, 0xc7]);
    /// Writer of liveliness assertions (RTPS 2.5 §8.4.13).
    pub const P2P_MESSAGE_WRITER: Self = Self([0x00, 0x02, 0x00, 0xc2]);
    /// Reader of liveliness assertions.
    pub const P2P_MESSAGE_READER: Self = Self([0x00, 0x02, 0x00, 0xc7]);
    /// Writer of type look-up requests (XTypes 1.3 §7.6.3.3).
    pub const TYPE_LOOKUP_REQUEST_WRITER: Self = Self([0x00, 0x03, 0x00, 0xc3]);
    /// Reader of type look-up requests.
    pub const TYPE_LOOKUP_REQUEST_READER: Self = Self([0x00, 0x03, 0x00, 0xc4]);
    /// Writer of type look-up replies.
    pub const TYPE_LOOKUP_REPLY_WRITER: Self = Self([0x00, 0x03, 0x01, 0xc3]);
    /// Reader of type look-up replies.
    pub const TYPE_LOOKUP_REPLY_READER: Self = Self([0x00, 0x03, 0x01, 0xc4]);

    /// Writer of handshake messages (DDS-SEC 1.1 §7.4.3).
    pub const STATELESS_MESSAGE_WRITER: Self = Self([0x00, 0x02, 0x01, 0xc3]);
    /// Reader of handshake messages.
    pub const STATELESS_MESSAGE_READER: Self = Self([0x00, 0x02, 0x01, 0xc4]);
    /// Writer of key tokens (DDS-SEC 1.1 §7.4.4).
    pub const VOLATILE_MESSAGE_WRITER: Self = Self([0xff, 0x02, 0x02, 0xc3]);
    /// Reader of key tokens.
    pub const VOLATILE_MESSAGE_READER: Self = Self([0xff, 0x02, 0x02, 0xc4]);
    /// Writer of protected publication data (DDS-SEC 1.1 §7.4.5).
    pub const SEDP_PUB_SECURE_WRITER: Self = Self([0xff, 0x00, 0x03, 0xc2]);
    /// Reader of protected publication data.
    pub const SEDP_PUB_SECURE_READER: Self = Self([0xff, 0x00, 0x03, 0xc7]);
    /// Writer of protected subscription data.
    pub const SEDP_SUB_SECURE_WRITER: Self = Self([0xff, 0x00, 0x04, 0xc2]);
    /// Reader of protected subscription data.
    pub const SEDP_SUB_SECURE_READER: Self = Self([0xff, 0x00, 0x04, 0xc7]);
    /// Writer of protected liveliness assertions.
    pub const P2P_MESSAGE_SECURE_WRITER: Self = Self([0xff, 0x02, 0x00, 0xc2]);
    /// Reader of protected liveliness assertions.
    pub const P2P_MESSAGE_SECURE_READER: Self = Self([0xff, 0x02, 0x00, 0xc7]);
    /// Writer of protected participant announcements.
    pub const SPDP_SECURE_WRITER: Self = Self([0xff, 0x01, 0x01, 0xc2]);
    /// Reader of protected participant announcements.
    pub const SPDP_SECURE_READER: Self = Self([0xff, 0x01, 0x01, 0xc7]);

    /// Returns the id of an application's writer. Only the lower 24 bits of `key` are used.
    pub const fn user_writer(key: u32, keyed: bool) -> Self {
        let kind = if keyed { kind::WRITER_WITH_KEY } else { kind::WRITER_NO_KEY };
        Self::with_key(key, kind)
    }

    /// Returns the id of an application's reader. Only the lower 24 bits of `key` are used.
    pub const fn user_reader(key: u32, keyed: bool) -> Self {
        let kind = if keyed { kind::READER_WITH_KEY } else { kind::READER_NO_KEY };
        Self::with_key(key, kind)
    }

    /// Returns the id of an application's publisher. Only the lower 24 bits of `key` are used.
    pub const fn user_publisher(key: u32) -> Self {
        Self::with_key(key, kind::WRITER_GROUP)
    }

    /// Returns the id of an application's subscriber. Only the lower 24 bits of `key` are used.
    pub const fn user_subscriber(key: u32) -> Self {
        Self::with_key(key, kind::READER_GROUP)
    }

    const fn with_key(key: u32, kind: u8) -> Self {
        let [_, a, b, c] = key.to_be_bytes();
        Self([a, b, c, kind])
    }

    /// Returns the kind octet.
    pub const fn kind(self) -> u8 {
        self.0[3]
    }

    /// Reports whether the specification defines the entity.
    pub const fn is_builtin(self) -> bool {
        self.kind() & kind::ORIGIN_MASK == kind::BUILTIN
    }

    /// Reports whether the entity is a writer, of any origin.
    pub const fn is_writer(self) -> bool {
        matches!(self.kind() & !kind::ORIGIN_MASK, kind::WRITER_WITH_KEY | kind::WRITER_NO_KEY)
    }

    /// Reports whether the entity is a reader, of any origin.
    pub const fn is_reader(self) -> bool {
        matches!(self.kind() & !kind::ORIGIN_MASK, kind::READER_WITH_KEY | kind::READER_NO_KEY)
    }

    /// Reports whether the entity is an endpoint of a topic with a key.
    pub const fn has_key(self) -> bool {
        matches!(self.kind() & !kind::ORIGIN_MASK, kind::WRITER_WITH_KEY | kind::READER_WITH_KEY)
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl fmt::Debug for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Globally unique id of an entity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Guid {
    /// Prefix of the participant.
    pub prefix: GuidPrefix,
    /// Id of the entity within the participant.
    pub entity_id: EntityId,
}

impl Ord for Guid {
    /// Compares the octets as one integer, since every submessage looks up its writer.
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        u128::from_be_bytes(self.to_bytes()).cmp(&u128::from_be_bytes(other.to_bytes()))
    }
}

impl PartialOrd for Guid {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Guid {
    /// All octets zero: no entity.
    pub const UNKNOWN: Self = Self::new(GuidPrefix::UNKNOWN, EntityId::UNKNOWN);

    /// Returns the GUID of `entity_id` in the participant `prefix`.
    pub const fn new(prefix: GuidPrefix, entity_id: EntityId) -> Self {
        Self { prefix, entity_id }
    }

    /// Returns the GUID of the participant that the entity belongs to.
    pub const fn participant(self) -> Self {
        Self::new(self.prefix, EntityId::PARTICIPANT)
    }

    /// Returns the 16 octets of the wire format.
    pub const fn to_bytes(self) -> [u8; 16] {
        let p = self.prefix.0;
        let e = self.entity_id.0;
        [p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], e[0], e[1], e[2], e[3]]
    }

    /// Returns the GUID with these 16 octets of the wire format.
    pub const fn from_bytes(b: [u8; 16]) -> Self {
        Self {
            prefix: GuidPrefix([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11]]),
            entity_id: EntityId([b[12], b[13], b[14], b[15]]),
        }
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.prefix, self.entity_id)
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn guid_round_trips_through_octets() {
        let mut bytes = [0; 16];
        for (value, byte) in (1..).zip(&mut bytes) {
            *byte = value;
        }
        let guid = Guid::from_bytes(bytes);
        assert_eq!(guid.to_bytes(), bytes);
        assert_eq!(guid.to_string(), "01020304.05060708.090a0b0c:0d0e0f10");
    }

    #[test]
    fn application_entities_have_the_specified_kinds() {
        let writer = EntityId::user_writer(0x0012_3456, true);
        assert_eq!(writer.0, [0x12, 0x34, 0x56, 0x02]);
        assert!(writer.is_writer() && writer.has_key() && !writer.is_reader());
        let reader = EntityId::user_reader(0xff00_0001, false);
        assert_eq!(reader.0, [0x00, 0x00, 0x01, 0x04], "the key has 24 bits");
        assert!(reader.is_reader() && !reader.has_key() && !reader.is_builtin());
        assert_eq!(EntityId::user_writer(1, false).kind(), 0x03);
        assert_eq!(EntityId::user_reader(1, true).kind(), 0x07);
        assert!(!EntityId::user_publisher(1).is_writer());
        assert!(!EntityId::user_subscriber(1).is_reader());
    }

    #[test]
    fn builtin_entities_have_the_specified_kinds() {
        assert!(EntityId::SPDP_WRITER.is_builtin() && EntityId::SPDP_WRITER.is_writer());
        assert!(EntityId::SEDP_SUB_READER.is_reader() && EntityId::SEDP_SUB_READER.has_key());
        assert!(EntityId::TYPE_LOOKUP_REQUEST_WRITER.is_writer());
        assert!(EntityId::TYPE_LOOKUP_REPLY_READER.is_reader());
        assert!(!EntityId::TYPE_LOOKUP_REPLY_READER.has_key());
        assert!(EntityId::PARTICIPANT.is_builtin());
        assert!(!EntityId::PARTICIPANT.is_writer() && !EntityId::PARTICIPANT.is_reader());
    }
}
