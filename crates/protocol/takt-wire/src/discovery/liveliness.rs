//! Liveliness messages of writers (RTPS 2.5 §8.4.13, §9.6.3.1).

use alloc::vec::Vec;

use super::{CDR_BE, CDR_LE, decapsulate, encapsulate};
use crate::cursor::Endianness;
use crate::error::Malformed;
use crate::guid::GuidPrefix;

/// `ParticipantMessageData`: one participant's assertion of liveliness. Its key is `prefix` and
/// `kind`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParticipantMessageData<'a> {
    /// Participant that asserts liveliness.
    pub prefix: GuidPrefix,
    /// Kind of the asserted writers: one of the `KIND_` constants, or a vendor's own.
    pub kind: [u8; 4],
    /// Data of the message; empty in assertions of liveliness.
    pub data: &'a [u8],
}

impl<'a> ParticipantMessageData<'a> {
    /// Writers whose LIVELINESS is AUTOMATIC.
    pub const KIND_AUTOMATIC: [u8; 4] = [0, 0, 0, 1];
    /// Writers whose LIVELINESS is MANUAL_BY_PARTICIPANT.
    pub const KIND_MANUAL_BY_PARTICIPANT: [u8; 4] = [0, 0, 0, 2];

    /// Parses a payload. Unlike the other discovery data, it is plain CDR.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let (identifier, mut cursor) = decapsulate(payload)?;
        if !matches!(identifier, CDR_BE | CDR_LE) {
            return Err(Malformed { offset: 0, what: "participant message is not plain CDR" });
        }
        let prefix = GuidPrefix(cursor.array()?);
        let kind = cursor.array()?;
        let len = cursor.count(1)?;
        Ok(Self { prefix, kind, data: cursor.bytes(len)? })
    }

    /// Returns the payload in little endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes_with(Endianness::Little)
    }

    /// Returns the payload in this byte order.
    pub fn to_bytes_with(&self, endianness: Endianness) -> Vec<u8> {
        let mut payload = encapsulate(CDR_BE, endianness);
        payload.extend_from_slice(&self.prefix.0);
        payload.extend_from_slice(&self.kind);
        let len = u32::try_from(self.data.len()).unwrap_or(u32::MAX);
        payload.extend_from_slice(&match endianness {
            Endianness::Big => len.to_be_bytes(),
            Endianness::Little => len.to_le_bytes(),
        });
        payload.extend_from_slice(self.data);
        payload
    }
}
