//! Interpreter submessages: INFO_TS, INFO_DST, INFO_SRC, INFO_REPLY and the header extension
//! (RTPS 2.5 §8.3.8.8 to §8.3.8.11, §8.3.7).

use core::net::Ipv4Addr;

use super::Envelope;
use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::guid::GuidPrefix;
use crate::locator::Locator;
use crate::parameter::ParameterList;
use crate::time::Timestamp;
use crate::version::{ProtocolVersion, VendorId};

pub(crate) const FLAG_TIMESTAMP_INVALIDATE: u8 = 0x02;

/// Parses INFO_TS (RTPS 2.5 §8.3.8.11). The invalid timestamp means the same as the flag
/// "invalidate". The infinite timestamp is malformed, since it is no source timestamp.
pub(super) fn parse_timestamp(envelope: Envelope<'_>) -> Result<Option<Timestamp>, Malformed> {
    if envelope.flag(FLAG_TIMESTAMP_INVALIDATE) {
        return Ok(None);
    }
    let mut body = envelope.body;
    let timestamp = Timestamp::parse(&mut body)?;
    if timestamp.is_infinite() {
        return Err(envelope.body.malformed("source timestamp is infinite"));
    }
    Ok(Some(timestamp).filter(|timestamp| !timestamp.is_invalid()))
}

/// Parses INFO_DST (RTPS 2.5 §8.3.8.8).
pub(super) fn parse_destination(envelope: Envelope<'_>) -> Result<GuidPrefix, Malformed> {
    let mut body = envelope.body;
    body.array().map(GuidPrefix)
}

/// INFO_SRC: the source of the submessages that follow, in place of the sender of the message
/// (RTPS 2.5 §8.3.8.10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InfoSource {
    /// RTPS version of the submessages that follow.
    pub version: ProtocolVersion,
    /// Vendor of the source.
    pub vendor: VendorId,
    /// Prefix of the source participant.
    pub prefix: GuidPrefix,
}

impl InfoSource {
    pub(super) fn parse(envelope: Envelope<'_>) -> Result<Self, Malformed> {
        let mut body = envelope.body;
        body.skip(4)?;
        let [major, minor] = body.array()?;
        Ok(Self {
            version: ProtocolVersion { major, minor },
            vendor: VendorId(body.array()?),
            prefix: GuidPrefix(body.array()?),
        })
    }
}

/// INFO_REPLY: the destination of replies to the submessages that follow, in place of the sender of
/// the datagram (RTPS 2.5 §8.3.8.9).
#[derive(Clone, Copy, Debug)]
pub struct InfoReply<'a> {
    /// Unicast locators.
    pub unicast: Locators<'a>,
    /// Multicast locators, if present.
    pub multicast: Option<Locators<'a>>,
}

impl<'a> InfoReply<'a> {
    const FLAG_MULTICAST: u8 = 0x02;

    pub(super) fn parse(envelope: Envelope<'a>) -> Result<Self, Malformed> {
        let mut body = envelope.body;
        let unicast = Locators::parse(&mut body)?;
        let multicast = match envelope.flag(Self::FLAG_MULTICAST) {
            true => Some(Locators::parse(&mut body)?),
            false => None,
        };
        Ok(Self { unicast, multicast })
    }

    /// Parses INFO_REPLY_IP4, which has one IPv4 address of each kind.
    pub(super) fn parse_ip4(envelope: Envelope<'a>) -> Result<Self, Malformed> {
        let mut body = envelope.body;
        let unicast = Locators::parse_ip4(&mut body)?;
        let multicast = match envelope.flag(Self::FLAG_MULTICAST) {
            true => Some(Locators::parse_ip4(&mut body)?),
            false => None,
        };
        Ok(Self { unicast, multicast })
    }
}

/// Locator list in a submessage. Parsing has checked that the submessage holds all of them.
#[derive(Clone, Copy, Debug)]
pub struct Locators<'a> {
    cursor: Cursor<'a>,
    is_ip4: bool,
}

impl<'a> Locators<'a> {
    const IP4_LEN: usize = 8;

    fn parse(body: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let count = body.count(Locator::LEN)?;
        let base = body.offset();
        let bytes = body.bytes(count * Locator::LEN)?;
        Ok(Self { cursor: Cursor::with_base(bytes, body.endianness(), base), is_ip4: false })
    }

    fn parse_ip4(body: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let base = body.offset();
        let bytes = body.bytes(Self::IP4_LEN)?;
        Ok(Self { cursor: Cursor::with_base(bytes, body.endianness(), base), is_ip4: true })
    }

    fn parse_next(&mut self) -> Result<Locator, Malformed> {
        if !self.is_ip4 {
            return Locator::parse(&mut self.cursor);
        }
        let address = Ipv4Addr::from_bits(self.cursor.u32()?);
        let port = self.cursor.u32()?;
        Ok(Locator { port, ..Locator::udp_v4(address, 0) })
    }
}

impl Iterator for Locators<'_> {
    type Item = Locator;

    fn next(&mut self) -> Option<Locator> {
        // Parsing has checked the octet count, so an error can only be the end of the list.
        self.parse_next().ok()
    }
}

/// Checksum of the message, computed with its own field set to zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// CRC-32C.
    Crc32c([u8; 4]),
    /// CRC-64/XZ.
    Crc64([u8; 8]),
    /// MD5.
    Md5([u8; 16]),
}

/// HEADER_EXTENSION: additions to the message header. It is always the first submessage
/// (RTPS 2.5 §8.3.3.2, §8.3.7.3).
///
/// This crate parses the fields and verifies none of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderExtension {
    /// Length of the whole message in octets.
    pub message_length: Option<u32>,
    /// Time of sending by the sender's clock.
    pub send_timestamp: Option<Timestamp>,
    /// Reserved.
    pub u_extension: Option<[u8; 4]>,
    /// Reserved.
    pub w_extension: Option<[u8; 8]>,
    /// Checksum of the message.
    pub checksum: Option<Checksum>,
}

impl HeaderExtension {
    const FLAG_LENGTH: u8 = 0x02;
    const FLAG_TIMESTAMP: u8 = 0x04;
    const FLAG_U_EXTENSION: u8 = 0x08;
    const FLAG_W_EXTENSION: u8 = 0x10;
    const FLAGS_CHECKSUM: u8 = 0x60;
    const FLAG_PARAMETERS: u8 = 0x80;

    pub(super) fn parse(envelope: Envelope<'_>) -> Result<Self, Malformed> {
        let mut body = envelope.body;
        if !envelope.is_first {
            return Err(body.malformed("header extension is not the first submessage"));
        }
        let flag = |mask| envelope.flag(mask);
        let extension = Self {
            message_length: flag(Self::FLAG_LENGTH).then(|| body.u32()).transpose()?,
            send_timestamp: flag(Self::FLAG_TIMESTAMP).then(|| Timestamp::parse(&mut body)).transpose()?,
            u_extension: flag(Self::FLAG_U_EXTENSION).then(|| body.array()).transpose()?,
            w_extension: flag(Self::FLAG_W_EXTENSION).then(|| body.array()).transpose()?,
            checksum: match envelope.flags & Self::FLAGS_CHECKSUM {
                0x00 => None,
                0x20 => Some(Checksum::Crc32c(body.array()?)),
                0x40 => Some(Checksum::Crc64(body.array()?)),
                _ => Some(Checksum::Md5(body.array()?)),
            },
        };
        if flag(Self::FLAG_PARAMETERS) {
            let mut list = body;
            for parameter in ParameterList::parse_from(&mut list)? {
                if parameter.must_understand {
                    return Err(parameter.malformed("unknown must-understand parameter"));
                }
            }
        }
        Ok(extension)
    }
}
