//! DynamicData: a value of a type known at run time (XTypes 1.3 §7.5.2.11), as a plain enum.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::WString;

/// A value. Names are shared with the type.
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
    /// A literal of an enumeration.
    Enum {
        /// Its name.
        name: Arc<str>,
        /// Its number.
        value: i32,
    },
    /// A bitmask.
    Bitmask {
        /// The flags as a number; bits without a name are kept.
        value: u64,
        /// The names of those that are set.
        flags: Vec<Arc<str>>,
    },
    /// A sequence or array of `octet` or `uint8`.
    Bytes(Vec<u8>),
    /// Any other sequence, or array; of an array with several dimensions all elements, the last index fastest.
    Sequence(Vec<DynamicData>),
    /// A map: pairs of key and value in the order in which they are encoded.
    Map(Vec<(DynamicData, DynamicData)>),
    /// A structure: its members by name, those of its base first, in order of declaration.
    Struct(Vec<(Arc<str>, DynamicData)>),
    /// A union.
    Union {
        /// Which case it is.
        discriminator: Box<DynamicData>,
        /// The member of that case, if it has one.
        member: Option<(Arc<str>, Box<DynamicData>)>,
    },
    /// An optional member that is not there.
    Absent,
}

impl DynamicData {
    /// The member of a structure, or of a union's present case, by name.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Struct(members) => members.iter().find(|(key, _)| &**key == name).map(|(_, value)| value),
            Self::Union { member: Some((key, value)), .. } if &**key == name => Some(value),
            _ => None,
        }
    }

    /// An integer, boolean, character, literal or bitmask as a number.
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
