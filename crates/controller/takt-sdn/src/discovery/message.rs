//! Splitting of a datagram into submessages with their context, and assembly of rewritten messages
//! (RTPS 2.5 §8.3.4).

use std::ops::Range;

use takt_wire::cursor::Endianness;
use takt_wire::message::{HEADER_LEN, Header, SUBMESSAGE_HEADER_LEN};
use takt_wire::{GuidPrefix, MessageView, SequenceNumber, Submessage};

const INFO_TS: u8 = 0x09;
const INFO_SRC: u8 = 0x0c;
const INFO_DST: u8 = 0x0e;
const INFO_REPLY: u8 = 0x0f;
const PAD: u8 = 0x01;
/// Submessages of DDS Security: SEC_BODY to SRTPS_POSTFIX.
const SECURED: Range<u8> = 0x30..0x35;

/// A submessage with its context.
#[derive(Debug)]
pub(super) struct Part<'a> {
    /// Range of its octets in the datagram.
    pub(super) range: Range<usize>,
    pub(super) endianness: Endianness,
    /// Source participant.
    pub(super) source: GuidPrefix,
    /// Destination participant; unknown means all.
    pub(super) destination: GuidPrefix,
    pub(super) body: Body<'a>,
}

/// Kind of a submessage.
#[derive(Debug)]
pub(super) enum Body<'a> {
    /// INFO_DST, which each copy of a message has separately.
    Destination,
    /// Context of the following submessages, by submessage id.
    Context(u8),
    /// HeaderExtension, which no rewritten message has.
    Extension,
    /// A submessage that is parsed.
    Plain(Submessage<'a>),
    /// A submessage of DDS Security.
    Secured,
    /// Padding, or an unknown submessage.
    Other,
    /// An unreadable submessage.
    Malformed,
}

/// An RTPS datagram, split into its submessages.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) header: Header,
    pub(super) parts: Vec<Part<'a>>,
    /// Whether the datagram ends in octets that are no submessage.
    pub(super) is_cut_off: bool,
}

impl<'a> Message<'a> {
    /// Splits a datagram; `None` if it is not an RTPS message.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let view = MessageView::parse(bytes).ok()?;
        let header = view.header();
        let (mut source, mut destination) = (header.prefix, GuidPrefix::UNKNOWN);
        let mut parts = Vec::new();
        let mut is_cut_off = false;
        let mut submessages = view.submessages();
        while let Some(envelope) = submessages.next_envelope() {
            let Ok(envelope) = envelope else {
                is_cut_off = true;
                break;
            };
            let body = match envelope.open() {
                Err(_) => Body::Malformed,
                Ok(Submessage::InfoDestination(prefix)) => {
                    destination = prefix;
                    Body::Destination
                }
                Ok(Submessage::InfoSource(info)) => {
                    source = info.prefix;
                    Body::Context(INFO_SRC)
                }
                Ok(Submessage::InfoReply(_)) => Body::Context(INFO_REPLY),
                Ok(Submessage::InfoTimestamp(_)) => Body::Context(INFO_TS),
                // Its length and checksum are those of the original message.
                Ok(Submessage::HeaderExtension(_)) => Body::Extension,
                Ok(Submessage::Unknown { id }) if SECURED.contains(&id) => Body::Secured,
                Ok(Submessage::Unknown { .. } | Submessage::Pad) => Body::Other,
                Ok(plain) => Body::Plain(plain),
            };
            let (range, endianness) = (envelope.range(), envelope.endianness());
            parts.push(Part { range, endianness, source, destination, body });
        }
        Some(Self { bytes, header, parts, is_cut_off })
    }
}

/// Treatment of a submessage for one participant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// The submessage is kept.
    Keep,
    /// The submessage is replaced by these octets: one or more submessages.
    Replace(Vec<u8>),
    /// The submessage is dropped.
    Drop,
}

/// Assembles messages, none longer than the limit unless a single submessage is.
pub(super) struct Packer {
    header: [u8; HEADER_LEN],
    len_max: usize,
    destination: Option<Vec<u8>>,
    /// The last INFO_SRC, INFO_TS and INFO_REPLY, by submessage id.
    context: Vec<(u8, Vec<u8>)>,
    done: Vec<Vec<u8>>,
    open: Vec<u8>,
    /// Whether the open message has more than context.
    has_content: bool,
}

impl Packer {
    /// Starts with the header of `message`, which must have at least 20 octets.
    pub(super) fn new(message: &[u8], len_max: usize) -> Self {
        let mut header = [0; HEADER_LEN];
        header.copy_from_slice(&message[..HEADER_LEN]);
        Self {
            header,
            len_max,
            destination: None,
            context: Vec::new(),
            done: Vec::new(),
            open: header.to_vec(),
            has_content: false,
        }
    }

    /// Sets the destination of subsequent content to `prefix`.
    pub(super) fn destination(&mut self, prefix: GuidPrefix) {
        let mut info = vec![INFO_DST, 1, 12, 0];
        info.extend_from_slice(&prefix.0);
        self.open.extend_from_slice(&info);
        self.destination = Some(info);
    }

    /// Adds a context submessage, such as INFO_SRC or INFO_TS.
    pub(super) fn context(&mut self, id: u8, octets: &[u8]) {
        let octets = with_length(octets);
        self.open.extend_from_slice(&octets);
        if id == INFO_SRC {
            // INFO_SRC resets the context (RTPS 2.5 §8.3.8.10).
            self.context.clear();
        }
        self.context.retain(|(other, _)| *other != id);
        self.context.push((id, octets));
    }

    /// Adds encoded submessages.
    pub(super) fn content(&mut self, octets: &[u8]) {
        if self.has_content && self.open.len() + octets.len() > self.len_max {
            self.close();
        }
        self.open.extend_from_slice(&with_length(octets));
        self.has_content = true;
    }

    fn close(&mut self) {
        let mut next = self.header.to_vec();
        for octets in self.context.iter().map(|(_, octets)| octets).chain(self.destination.as_ref()) {
            next.extend_from_slice(octets);
        }
        self.done.push(std::mem::replace(&mut self.open, next));
        self.has_content = false;
    }

    /// Returns the messages that have more than context.
    pub(super) fn finish(mut self) -> Vec<Vec<u8>> {
        if self.has_content {
            self.close();
        }
        self.done
    }
}

/// Sets the length of a submessage whose length of 0 means "up to the end of the message", so that
/// another may follow, and pads it to a multiple of four.
fn with_length(octets: &[u8]) -> Vec<u8> {
    let mut octets = octets.to_vec();
    let [id, flags, a, b, ..] = octets[..] else { return octets };
    if (a, b) == (0, 0) && !matches!(id, PAD | INFO_TS) {
        let padded = octets.len().next_multiple_of(4);
        if let Ok(len) = u16::try_from(padded - SUBMESSAGE_HEADER_LEN) {
            octets.resize(padded, 0);
            let len = if flags & 1 == 1 { len.to_le_bytes() } else { len.to_be_bytes() };
            octets[2..4].copy_from_slice(&len);
        }
    }
    octets
}

/// Modifies integers in the octets of a submessage.
pub(super) struct Patch {
    octets: Vec<u8>,
    endianness: Endianness,
}

impl Patch {
    pub(super) fn new(message: &[u8], part: &Part<'_>) -> Self {
        Self { octets: message[part.range.clone()].to_vec(), endianness: part.endianness }
    }

    /// Sets a 32-bit integer at an offset from the submessage header. The offset must lie within
    /// the parsed submessage.
    pub(super) fn u32(mut self, at: usize, value: u32) -> Self {
        let value = match self.endianness {
            Endianness::Big => value.to_be_bytes(),
            Endianness::Little => value.to_le_bytes(),
        };
        self.octets[at..at + 4].copy_from_slice(&value);
        self
    }

    /// Sets a sequence number.
    pub(super) fn number(self, at: usize, number: i64) -> Self {
        let bits = number.cast_unsigned();
        self.u32(at, (bits >> 32) as u32).u32(at + 4, bits as u32)
    }

    pub(super) fn finish(self) -> Action {
        Action::Replace(self.octets)
    }
}

/// Offsets of fields from the header of their submessage (RTPS 2.5 §9.4.5).
pub(super) mod at {
    /// DATA and DATA_FRAG: writerSN.
    pub const DATA_NUMBER: usize = 16;
    /// HEARTBEAT: firstSN.
    pub const HEARTBEAT_FIRST: usize = 12;
    /// HEARTBEAT: lastSN.
    pub const HEARTBEAT_LAST: usize = 20;
    /// HEARTBEAT: count.
    pub const HEARTBEAT_COUNT: usize = 28;
    /// HEARTBEAT_FRAG and NACK_FRAG: writerSN.
    pub const FRAGMENTS_NUMBER: usize = 12;
    /// ACKNACK: bitmapBase.
    pub const ACKNACK_BASE: usize = 12;
    /// ACKNACK: the first word of the bitmap.
    pub const ACKNACK_WORDS: usize = 24;
    /// GAP: gapStart.
    pub const GAP_START: usize = 12;
    /// GAP: bitmapBase.
    pub const GAP_BASE: usize = 20;
}

/// Returns the sequence number of a DATA or DATA_FRAG.
pub(super) fn number_of(submessage: &Submessage<'_>) -> Option<SequenceNumber> {
    match submessage {
        Submessage::Data(data) => Some(data.sn),
        Submessage::DataFrag(data) => Some(data.sn),
        _ => None,
    }
}
