//! What discovery carries for DDS Security: tokens of participants, and masks of participants and
//! endpoints (DDS-SEC 1.1 §7.4.1).
//!
//! A token is kept as it came, with its byte order: this crate does not look into it.

use alloc::vec::Vec;

use crate::cursor::{Cursor, Endianness};
use crate::error::Malformed;
use crate::parameter::{Parameter, ParameterListBuilder};

/// An identity or permissions token, serialized.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodedToken {
    /// The byte order of `octets`.
    pub endianness: Endianness,
    /// The value of the parameter.
    pub octets: Vec<u8>,
}

impl EncodedToken {
    pub(super) fn of(parameter: &Parameter<'_>) -> Self {
        Self { endianness: parameter.cursor().endianness(), octets: parameter.value.to_vec() }
    }

    /// Adds the token to a list of its own byte order; a list of the other one goes without it.
    pub(super) fn put(&self, pid: u16, endianness: Endianness, list: &mut ParameterListBuilder) {
        if self.endianness == endianness {
            list.put(pid, |value| value.bytes(&self.octets));
        }
    }
}

/// Both masks of a participant or of an endpoint: what its owner protects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecurityInfo {
    /// Attributes that the specification defines.
    pub attributes: u32,
    /// Attributes of the plugins.
    pub plugin_attributes: u32,
}

impl SecurityInfo {
    /// Reads the value of a parameter.
    ///
    /// # Errors
    /// It has fewer than eight octets.
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
