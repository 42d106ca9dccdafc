//! RTPS messages and submessages as views of a datagram (RTPS 2.5 §8.3, §9.4).
//!
//! [`MessageView::parse`] checks the header. [`MessageView::submessages`] then iterates over the
//! submessages and checks each one when it is reached. Only values of fixed size are copied,
//! nothing is allocated, and the iteration takes at most one step for each four octets of the
//! datagram.
//!
//! A malformed submessage yields an error of its own, and the iteration continues after it. If the
//! length in a submessage header is invalid, the iteration ends, because the start of the next
//! submessage is unknown.

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

/// First octets of every message.
pub(crate) const MAGIC: [u8; 4] = *b"RTPS";

/// Length of the message header in octets.
pub const HEADER_LEN: usize = 20;

/// Length of a submessage header in octets.
pub const SUBMESSAGE_HEADER_LEN: usize = 4;

/// Submessage ids (RTPS 2.5 §9.4.5.1.1, DDS-SEC 1.1 §7.3.6.2).
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

/// Message header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// RTPS version of the message.
    pub version: ProtocolVersion,
    /// Vendor of the sender.
    pub vendor: VendorId,
    /// Prefix of the sending participant.
    pub prefix: GuidPrefix,
}

/// Datagram whose header has been checked.
#[derive(Clone, Copy, Debug)]
pub struct MessageView<'a> {
    header: Header,
    submessages: Cursor<'a>,
}

impl<'a> MessageView<'a> {
    /// Checks the header (RTPS 2.5 §8.3.6.3): 20 octets, `RTPS`, major version 2. A message may
    /// consist of the header alone.
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

    /// Returns the header.
    pub const fn header(&self) -> Header {
        self.header
    }

    /// Returns the message with other submessages: those decoded from its protected ones.
    pub const fn with_submessages<'b>(&self, octets: &'b [u8]) -> MessageView<'b> {
        MessageView { header: self.header, submessages: Cursor::with_base(octets, Endianness::Big, HEADER_LEN) }
    }

    /// Returns the octets of an [`Envelope::range`], or of a range that spans several submessages.
    pub fn octets(&self, range: Range<usize>) -> Option<&'a [u8]> {
        let (start, end) = (range.start.checked_sub(HEADER_LEN)?, range.end.checked_sub(HEADER_LEN)?);
        self.submessages.rest().get(start..end)
    }

    /// Returns the length of header and submessages in octets.
    #[allow(clippy::len_without_is_empty, reason = "a message has a header")]
    pub const fn len(&self) -> usize {
        HEADER_LEN + self.submessages.remaining()
    }

    /// Returns an iterator over the submessages.
    pub const fn submessages(&self) -> Submessages<'a> {
        Submessages { cursor: self.submessages }
    }
}

/// Parsed submessage.
///
/// Entity ids are not validated. The receiver checks that they name an endpoint of the right kind.
#[derive(Clone, Copy, Debug)]
pub enum Submessage<'a> {
    /// A change.
    Data(Data<'a>),
    /// Fragments of a change.
    DataFrag(DataFrag<'a>),
    /// Changes that a writer has available.
    Heartbeat(Heartbeat),
    /// Fragments of a change that a writer has available.
    HeartbeatFrag(HeartbeatFrag),
    /// Changes that a reader has received and requests.
    AckNack(AckNack),
    /// Fragments of a change that a reader requests.
    NackFrag(NackFrag),
    /// Changes that are irrelevant for the reader.
    Gap(Gap),
    /// Source timestamp of the submessages that follow; `None` if there is none.
    InfoTimestamp(Option<Timestamp>),
    /// Destination participant of the submessages that follow; unknown addresses all participants.
    InfoDestination(GuidPrefix),
    /// Source of the submessages that follow.
    InfoSource(InfoSource),
    /// Destination of replies.
    InfoReply(InfoReply<'a>),
    /// Padding without content.
    Pad,
    /// Additions to the message header.
    HeaderExtension(HeaderExtension),
    /// Submessage that the specification or this crate does not define; receivers skip it.
    Unknown {
        /// Submessage id; 0x80 and above are specific to the vendor of the sender.
        id: u8,
    },
}

/// Iterator over the submessages of a message. Each item is a submessage or an error.
#[derive(Clone, Debug)]
pub struct Submessages<'a> {
    /// Position of the next submessage header; empty at the end of the iteration.
    cursor: Cursor<'a>,
}

/// Submessage whose header has been read: its id and length are known, its content is not parsed
/// yet.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    id: u8,
    flags: u8,
    /// True if only the message header precedes the submessage.
    is_first: bool,
    /// Octets after the submessage header, in the byte order of the submessage.
    body: Cursor<'a>,
}

impl<'a> Envelope<'a> {
    fn flag(&self, mask: u8) -> bool {
        self.flags & mask != 0
    }

    /// Parses a DATA, the most frequent submessage; `None` for another submessage.
    #[inline]
    pub fn data(&self) -> Option<Result<Data<'a>, Malformed>> {
        (self.id == id::DATA).then(|| Data::parse(*self))
    }

    /// Parses an INFO_TS, which precedes most DATA; `None` for another submessage.
    #[inline]
    pub fn timestamp(&self) -> Option<Result<Option<Timestamp>, Malformed>> {
        (self.id == id::INFO_TS).then(|| info::parse_timestamp(*self))
    }

    /// Returns the submessage id (RTPS 2.5 §9.4.5.1.1).
    pub const fn id(&self) -> u8 {
        self.id
    }

    /// Returns the range of the submessage in the datagram, the four octets of its header included.
    pub const fn range(&self) -> Range<usize> {
        let start = self.body.offset() - SUBMESSAGE_HEADER_LEN;
        start..self.body.offset() + self.body.remaining()
    }

    /// Returns the byte order of integers.
    pub const fn endianness(&self) -> Endianness {
        self.body.endianness()
    }

    /// Parses a submessage of any kind.
    pub fn open(self) -> Result<Submessage<'a>, Malformed> {
        parse(self)
    }
}

impl<'a> Submessages<'a> {
    /// Iterates over the submessages in `octets`, which have no message header.
    pub const fn of(octets: &'a [u8]) -> Self {
        Self { cursor: Cursor::new(octets, Endianness::Big) }
    }

    /// Returns the next submessage, unparsed. `None` at the end of the message and after an error.
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

    /// Reads the next submessage header (RTPS 2.5 §9.4.5.1).
    ///
    /// A length of zero means "up to the end of the message", except for the two kinds that can be
    /// empty. All other submessages end at a multiple of four octets, unless they end the message.
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
            return Err(at.malformed("submessage length is not a multiple of four"));
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
