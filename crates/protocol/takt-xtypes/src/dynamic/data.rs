//! DynamicData: value of a type that is known only at run time (XTypes 1.3 §7.5.2.11), as an enum.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::WString;

/// Value of a dynamic type. The names of members, literals and flags are shared with the type.
#[derive(Clone, Debug, PartialEq)]
pub enum DynamicData {
    /// `boolean`.
    Bool(bool),
    /// `octet`, `uint8`.
    U8(u8),
    /// `int8`.
    I8(i8),
    /// `short`.
    I16(i16),
    /// `unsigned short`.
    U16(u16),
    /// `long`.
    I32(i32),
    /// `unsigned long`.
    U32(u32),
    /// `long long`.
    I64(i64),
    /// `unsigned long long`.
    U64(u64),
    /// `float`.
    F32(f32),
    /// `double`.
    F64(f64),
    /// `char`: one byte of an 8-bit character set.
    Char8(u8),
    /// `wchar`: one UTF-16 code unit.
    Char16(u16),
    /// `string`.
    String(String),
    /// `wstring`.
    WString(WString),
    /// Literal of an enumeration.
    Enum {
        /// Name of the literal.
        name: Arc<str>,
        /// Value of the literal.
        value: i32,
    },
    /// Value of a bitmask.
    Bitmask {
        /// Flags as a number; bits without a name are kept.
        value: u64,
        /// Names of the flags that are set.
        flags: Vec<Arc<str>>,
    },
    /// Sequence or array of `octet` or `uint8`.
    Bytes(Vec<u8>),
    /// Any other sequence or array. An array with several dimensions is flattened, the last index
    /// fastest.
    Sequence(Vec<DynamicData>),
    /// Map: pairs of key and value in the order in which they are encoded.
    Map(Vec<(DynamicData, DynamicData)>),
    /// Structure: names and values of its members in the order of declaration, those of the base
    /// type first.
    Struct(Vec<(Arc<str>, DynamicData)>),
    /// Value of a union.
    Union {
        /// Value of the discriminator.
        discriminator: Box<DynamicData>,
        /// Name and value of the member that the discriminator selects; `None` if it selects none.
        member: Option<(Arc<str>, Box<DynamicData>)>,
    },
    /// Absent optional member.
    Absent,
}

impl DynamicData {
    /// Returns the value of a member of a structure, or of the selected member of a union, by name.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Struct(members) => members.iter().find(|(key, _)| &**key == name).map(|(_, value)| value),
            Self::Union { member: Some((key, value)), .. } if &**key == name => Some(value),
            _ => None,
        }
    }

    /// Returns an integer, boolean, character, literal or bitmask as a number; `None` for any other
    /// value.
    #[must_use]
    pub fn as_integer(&self) -> Option<i128> {
        Some(match self {
            Self::Bool(value) => i128::from(*value),
            Self::U8(value) | Self::Char8(value) => i128::from(*value),
            Self::I8(value) => i128::from(*value),
            Self::I16(value) => i128::from(*value),
            Self::U16(value) | Self::Char16(value) => i128::from(*value),
            Self::I32(value) | Self::Enum { value, .. } => i128::from(*value),
            Self::U32(value) => i128::from(*value),
            Self::I64(value) => i128::from(*value),
            Self::U64(value) | Self::Bitmask { value, .. } => i128::from(*value),
            _ => return None,
        })
    }
}
