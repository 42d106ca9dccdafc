//! Kinds and flags of types, members and identifiers (XTypes 1.3 §7.3.4 and Annex B).

use crate::bitmask;

/// Equivalence kinds.
pub(crate) const EK_MINIMAL: u8 = 0xf1;
pub(crate) const EK_COMPLETE: u8 = 0xf2;
pub(crate) const EK_BOTH: u8 = 0xf3;

/// Type kinds.
pub(crate) const TK_NONE: u8 = 0x00;
pub(crate) const TK_BOOLEAN: u8 = 0x01;
pub(crate) const TK_BYTE: u8 = 0x02;
pub(crate) const TK_INT16: u8 = 0x03;
pub(crate) const TK_INT32: u8 = 0x04;
pub(crate) const TK_INT64: u8 = 0x05;
pub(crate) const TK_UINT16: u8 = 0x06;
pub(crate) const TK_UINT32: u8 = 0x07;
pub(crate) const TK_UINT64: u8 = 0x08;
pub(crate) const TK_FLOAT32: u8 = 0x09;
pub(crate) const TK_FLOAT64: u8 = 0x0a;
pub(crate) const TK_FLOAT128: u8 = 0x0b;
pub(crate) const TK_INT8: u8 = 0x0c;
pub(crate) const TK_UINT8: u8 = 0x0d;
pub(crate) const TK_CHAR8: u8 = 0x10;
pub(crate) const TK_CHAR16: u8 = 0x11;
pub(crate) const TK_STRING8: u8 = 0x20;
pub(crate) const TK_ALIAS: u8 = 0x30;
pub(crate) const TK_ENUM: u8 = 0x40;
pub(crate) const TK_BITMASK: u8 = 0x41;
pub(crate) const TK_ANNOTATION: u8 = 0x50;
pub(crate) const TK_STRUCTURE: u8 = 0x51;
pub(crate) const TK_UNION: u8 = 0x52;
pub(crate) const TK_BITSET: u8 = 0x53;
pub(crate) const TK_SEQUENCE: u8 = 0x60;
pub(crate) const TK_ARRAY: u8 = 0x61;
pub(crate) const TK_MAP: u8 = 0x62;

/// Kinds of identifiers that fully describe the type.
pub(crate) const TI_STRING8_SMALL: u8 = 0x70;
pub(crate) const TI_STRING8_LARGE: u8 = 0x71;
pub(crate) const TI_STRING16_SMALL: u8 = 0x72;
pub(crate) const TI_STRING16_LARGE: u8 = 0x73;
pub(crate) const TI_PLAIN_SEQUENCE_SMALL: u8 = 0x80;
pub(crate) const TI_PLAIN_SEQUENCE_LARGE: u8 = 0x81;
pub(crate) const TI_PLAIN_ARRAY_SMALL: u8 = 0x90;
pub(crate) const TI_PLAIN_ARRAY_LARGE: u8 = 0x91;
pub(crate) const TI_PLAIN_MAP_SMALL: u8 = 0xa0;
pub(crate) const TI_PLAIN_MAP_LARGE: u8 = 0xa1;
pub(crate) const TI_STRONGLY_CONNECTED_COMPONENT: u8 = 0xb0;

bitmask! {
    /// Flags of a member, an element or a literal.
    pub(crate) struct MemberFlag: u16 {
        /// With the next flag: treatment of values that the reader cannot represent. Alone: discard
        /// the sample.
        const TRY_CONSTRUCT1 = 0;
        /// Alone: use the default.
        const TRY_CONSTRUCT2 = 1;
        /// `@external`.
        const IS_EXTERNAL = 2;
        /// `@optional`.
        const IS_OPTIONAL = 3;
        /// `@must_understand`.
        const IS_MUST_UNDERSTAND = 4;
        /// `@key`.
        const IS_KEY = 5;
        /// Default case of a union, default literal of an enumeration.
        const IS_DEFAULT = 6;
    }
}

bitmask! {
    /// Flags of a type.
    pub(crate) struct TypeFlag: u16 {
        /// `@final`.
        const IS_FINAL = 0;
        /// `@appendable`.
        const IS_APPENDABLE = 1;
        /// `@mutable`.
        const IS_MUTABLE = 2;
        /// `@nested`.
        const IS_NESTED = 3;
        /// `@autoid(HASH)`.
        const IS_AUTOID_HASH = 4;
    }
}

impl MemberFlag {
    /// Adds `flag` if `condition` holds.
    #[must_use]
    pub(crate) fn with(self, flag: Self, condition: bool) -> Self {
        if condition { self | flag } else { self }
    }
}

impl TypeFlag {
    /// Adds `flag` if `condition` holds.
    #[must_use]
    pub(crate) fn with(self, flag: Self, condition: bool) -> Self {
        if condition { self | flag } else { self }
    }
}
