//! Messages and submessages as views over a datagram (RTPS 2.5 §8.3, §9.4).
//!
//! [`MessageView::parse`] checks the header; [`MessageView::submessages`] then walks the
//! submessages, each checked when it is reached. Nothing is copied but fixed-size values, nothing
//! is allocated, and the walk takes at most one step for each four octets of the datagram.
//!
//! A submessage that breaks a rule is an error of its own, and the walk goes on behind it; only
//! when the length in its header cannot be true does the walk end, because then nobody knows
//! where the next one begins.

mod control;
mod data;
mod info;

pub use control::{AckNack, Gap, GroupInfo, Heartbeat, HeartbeatFrag, NackFrag};
pub use data::{Data, DataFrag, Payload};
pub use info::{Checksum, HeaderExtension, InfoReply, InfoSource, Locators};

pub(crate) use data::{DATA_FRAG_TO_INLINE_QOS, DATA_TO_INLINE_QOS};
pub(crate) use info::FLAG_TIMESTAMP_INVALIDATE;

use core::ops::Range;

use crate::cursor::{Cursor, Endianness};
use crate::error::Malformed;
use crate::guid::GuidPrefix;
use crate::time::Timestamp;
use crate::version::{ProtocolVersion, VendorId};

/// The first octets of every message.
pub(crate) const MAGIC: [u8; 4] = *b"RTPS";

/// Octets of the header of a message.
pub const HEADER_LEN: usize = 20;

/// Octets of the header of a submessage.
pub const SUBMESSAGE_HEADER_LEN: usize = 4;

/// Numbers of submessages (RTPS 2.5 §9.4.5.1.1, DDS-SEC 1.1 §7.3.6.2).
#[allow(missing_docs, reason = "the names are the specification's")]
pub mod id {
    pub const HEADER_EXTENSION: u8 = 0x00;
    pub const PAD: u8 = 0x01;
    pub const ACKNACK: u8 = 0x06;
    pub const HEARTBEAT: u8 = 0x07;
    pub const GAP: u8 = 0x08;
    pub const INFO_TS: u8 = 0x09;
    pub const INFO_SRC: u8 = 0x0c;
    pub const INFO_REPLY_IP4: u8 = 0x0d;
    pub const INFO_DST: u8 = 0x0e;
    pub const INFO_REPLY: u8 = 0x0f;
    pub const NACK_FRAG: u8 = 0x12;
    pub const HEARTBEAT_FRAG: u8 = 0x13;
    pub const DATA: u8 = 0x15;
    pub const DATA_FRAG: u8 = 0x16;
    pub const SEC_BODY: u8 = 0x30;
    pub const SEC_PREFIX: u8 = 0x31;
    pub const SEC_POSTFIX: u8 = 0x32;
    pub const SRTPS_PREFIX: u8 = 0x33;
    pub const SRTPS_POSTFIX: u8 = 0x34;
}

/// The header of a message: who sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The version it is written in.
    pub version: ProtocolVersion,
    /// Who made the sender.
    pub vendor: VendorId,
    /// The sending participant.
    pub prefix: GuidPrefix,
}

/// A datagram whose header has been checked.
#[derive(Clone, Copy, Debug)]
pub struct MessageView<'a> {
    header: Header,
    submessages: Cursor<'a>,
}

impl<'a> MessageView<'a> {
    /// Checks the header (RTPS 2.5 §8.3.6.3): 20 octets, `RTPS`, major version 2. A message may
    /// end there.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(datagram, Endianness::Big);
        if cursor.array()? != MAGIC {
            return Err(Malformed { offset: 0, what: "not an RTPS message" });
        }
        let [major, minor] = cursor.array()?;
        if major != ProtocolVersion::V2_5.major {
            return Err(Malformed { offset: 4, what: "major protocol version is not 2" });
        }
        let header = Header {
            version: ProtocolVersion { major, minor },
            vendor: VendorId(cursor.array()?),
            prefix: GuidPrefix(cursor.array()?),
        };
        Ok(Self { header, submessages: cursor })
    }

    /// The header.
    pub const fn header(&self) -> Header {
        self.header
    }

    /// The message with other submessages: those that its protected ones hold.
    pub const fn with_submessages<'b>(&self, octets: &'b [u8]) -> MessageView<'b> {
        MessageView { header: self.header, submessages: Cursor::with_base(octets, Endianness::Big, HEADER_LEN) }
    }

    /// The octets that an [`Envelope::range`] of it names, or those from one to another.
    pub fn octets(&self, range: Range<usize>) -> Option<&'a [u8]> {
        let (start, end) = (range.start.checked_sub(HEADER_LEN)?, range.end.checked_sub(HEADER_LEN)?);
        self.submessages.rest().get(start..end)
    }

    /// Octets of header and submessages.
    #[allow(clippy::len_without_is_empty, reason = "a message has a header")]
    pub const fn len(&self) -> usize {
        HEADER_LEN + self.submessages.remaining()
    }

    /// The submessages in order.
    pub const fn submessages(&self) -> Submessages<'a> {
        Submessages { cursor: self.submessages }
    }
}

/// A submessage.
///
/// Entity ids are as they came: whether they name an endpoint, and one of the right kind, is for
/// the receiver to see.
#[derive(Clone, Copy, Debug)]
pub enum Submessage<'a> {
    /// A change.
    Data(Data<'a>),
    /// A part of a change.
    DataFrag(DataFrag<'a>),
    /// What a writer has.
    Heartbeat(Heartbeat),
    /// Which fragments of a change a writer has.
    HeartbeatFrag(HeartbeatFrag),
    /// What a reader has and what it misses.
    AckNack(AckNack),
    /// Which fragments of a change a reader misses.
    NackFrag(NackFrag),
    /// Which changes are of no interest to the reader.
    Gap(Gap),
    /// The source timestamp of what follows; `None` if there is none.
    InfoTimestamp(Option<Timestamp>),
    /// To which participant what follows is addressed; unknown means to all.
    InfoDestination(GuidPrefix),
    /// From whom what follows comes.
    InfoSource(InfoSource),
    /// Where answers go.
    InfoReply(InfoReply<'a>),
    /// Nothing.
    Pad,
    /// Additions to the header of the message.
    HeaderExtension(HeaderExtension),
    /// A submessage that the specification, or this crate, does not know; to be skipped.
    Unknown {
        /// Its number; 0x80 and above are the sender's vendor's own.
        id: u8,
    },
}

/// The submessages of a message; each item is one of them, or why it cannot be used.
#[derive(Clone, Debug)]
pub struct Submessages<'a> {
    /// At the header of the next one; empty when the walk is over.
    cursor: Cursor<'a>,
}

/// A submessage of which the header was read: what it is and how long, not yet what it says.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    id: u8,
    flags: u8,
    /// Nothing but the header of the message is before it.
    is_first: bool,
    /// The octets behind the header, in the submessage's byte order.
    body: Cursor<'a>,
}

impl<'a> Envelope<'a> {
    fn flag(&self, mask: u8) -> bool {
        self.flags & mask != 0
    }

    /// Reads a DATA, the one that most messages consist of; `None` if it is another submessage.
    #[inline]
    pub fn data(&self) -> Option<Result<Data<'a>, Malformed>> {
        (self.id == id::DATA).then(|| Data::parse(*self))
    }

    /// Reads an INFO_TS, which precedes most DATA; `None` if it is another submessage.
    #[inline]
    pub fn timestamp(&self) -> Option<Result<Option<Timestamp>, Malformed>> {
        (self.id == id::INFO_TS).then(|| info::parse_timestamp(*self))
    }

    /// Its number (RTPS 2.5 §9.4.5.1.1).
    pub const fn id(&self) -> u8 {
        self.id
    }

    /// Its octets in the datagram, the four of its header included.
    pub const fn range(&self) -> Range<usize> {
        let start = self.body.offset() - SUBMESSAGE_HEADER_LEN;
        start..self.body.offset() + self.body.remaining()
    }

    /// The byte order of its integers.
    pub const fn endianness(&self) -> Endianness {
        self.body.endianness()
    }

    /// Reads it, whatever it is.
    pub fn open(self) -> Result<Submessage<'a>, Malformed> {
        parse(self)
    }
}

impl<'a> Submessages<'a> {
    /// The submessages that `octets` consist of, without the header of a message.
    pub const fn of(octets: &'a [u8]) -> Self {
        Self { cursor: Cursor::new(octets, Endianness::Big) }
    }

    /// The next submessage, unopened. `None` at the end of the message, and behind an error.
    #[inline]
    pub fn next_envelope(&mut self) -> Option<Result<Envelope<'a>, Malformed>> {
        if self.cursor.is_empty() {
            return None;
        }
        let envelope = self.envelope();
        if envelope.is_err() {
            self.cursor = Cursor::new(&[], Endianness::Big);
        }
        Some(envelope)
    }

    /// Takes the next submessage off (RTPS 2.5 §9.4.5.1).
    ///
    /// A length of zero means "up to the end of the message", but for the two kinds that can be
    /// empty. All others end at a multiple of four octets, unless they end the message.
    #[inline]
    fn envelope(&mut self) -> Result<Envelope<'a>, Malformed> {
        let at = self.cursor;
        let is_first = at.offset() == HEADER_LEN;
        let [id, flags, a, b] = self.cursor.array()?;
        let endianness = Endianness::from_flags(flags);
        let len = endianness.u16([a, b]);
        let rest = self.cursor.remaining();
        let len = match usize::from(len) {
            0 if !matches!(id, id::PAD | id::INFO_TS) => rest,
            len => len,
        };
        if len > rest {
            return Err(at.malformed("submessage is longer than the message"));
        }
        if len % 4 != 0 && len != rest {
            return Err(at.malformed("submessage does not end at a multiple of four"));
        }
        let base = self.cursor.offset();
        let body = Cursor::with_base(self.cursor.bytes(len)?, endianness, base);
        Ok(Envelope { id, flags, is_first, body })
    }
}

impl<'a> Iterator for Submessages<'a> {
    type Item = Result<Submessage<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_envelope()?.and_then(Envelope::open))
    }
}

fn parse(envelope: Envelope<'_>) -> Result<Submessage<'_>, Malformed> {
    Ok(match envelope.id {
        id::DATA => Submessage::Data(Data::parse(envelope)?),
        id::DATA_FRAG => Submessage::DataFrag(DataFrag::parse(envelope)?),
        id::HEARTBEAT => Submessage::Heartbeat(Heartbeat::parse(envelope)?),
        id::HEARTBEAT_FRAG => Submessage::HeartbeatFrag(HeartbeatFrag::parse(envelope)?),
        id::ACKNACK => Submessage::AckNack(AckNack::parse(envelope)?),
        id::NACK_FRAG => Submessage::NackFrag(NackFrag::parse(envelope)?),
        id::GAP => Submessage::Gap(Gap::parse(envelope)?),
        id::INFO_TS => Submessage::InfoTimestamp(info::parse_timestamp(envelope)?),
        id::INFO_DST => Submessage::InfoDestination(info::parse_destination(envelope)?),
        id::INFO_SRC => Submessage::InfoSource(InfoSource::parse(envelope)?),
        id::INFO_REPLY => Submessage::InfoReply(InfoReply::parse(envelope)?),
        id::INFO_REPLY_IP4 => Submessage::InfoReply(InfoReply::parse_ip4(envelope)?),
        id::PAD => Submessage::Pad,
        id::HEADER_EXTENSION => Submessage::HeaderExtension(HeaderExtension::parse(envelope)?),
        id => Submessage::Unknown { id },
    })
}

#[cfg(test)]
mod tests;
