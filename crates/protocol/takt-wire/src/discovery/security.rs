//! Discovery data of DDS Security: tokens of participants, and security attributes of participants
//! and endpoints (DDS-SEC 1.1 §7.4.1).
//!
//! Tokens stay serialized in their byte order: this crate does not parse them.

use alloc::vec::Vec;

use crate::cursor::{Cursor, Endianness};
use crate::error::Malformed;
use crate::parameter::{Parameter, ParameterListBuilder};

/// Serialized identity or permissions token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodedToken {
    /// Byte order of `octets`.
    pub endianness: Endianness,
    /// Value of the parameter.
    pub octets: Vec<u8>,
}

impl EncodedToken {
    pub(super) fn of(parameter: &Parameter<'_>) -> Self {
        Self { endianness: parameter.cursor().endianness(), octets: parameter.value.to_vec() }
    }

    /// Adds the token to a list of the same byte order. A list of the other byte order is left
    /// unchanged.
    pub(super) fn put(&self, pid: u16, endianness: Endianness, list: &mut ParameterListBuilder) {
        if self.endianness == endianness {
            list.put(pid, |value| value.bytes(&self.octets));
        }
    }
}

/// Security attribute masks of a participant or endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecurityInfo {
    /// Attributes that the specification defines.
    pub attributes: u32,
    /// Attributes that the plugins define.
    pub plugin_attributes: u32,
}

impl SecurityInfo {
    /// Reads the value of a parameter.
    ///
    /// # Errors
    /// Fails if the value has fewer than eight octets.
    pub fn parse(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self { attributes: cursor.u32()?, plugin_attributes: cursor.u32()? })
    }

    pub(super) fn put(self, pid: u16, list: &mut ParameterListBuilder) {
        list.put(pid, |value| {
            value.u32(self.attributes);
            value.u32(self.plugin_attributes);
        });
    }
}
