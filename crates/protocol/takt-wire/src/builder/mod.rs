//! Message builder: serializes RTPS submessages into a frame of the caller (RTPS 2.5 §8.3, §9.4).
//!
//! The builder does not allocate. A submessage that exceeds the remaining space leaves the frame
//! unchanged and returns [`Full`]. The caller then sends the frame and continues in the next one.

use crate::cursor::{Emitter, Endianness, padding};
use crate::error::Full;
use crate::guid::{EntityId, GuidPrefix};
use crate::message::{
    AckNack, Data, DataFrag, Gap, GroupInfo, Header, Heartbeat, HeartbeatFrag, InfoSource, MAGIC, NackFrag, Payload, id,
};
use crate::message::{DATA_FRAG_TO_INLINE_QOS, DATA_TO_INLINE_QOS, FLAG_TIMESTAMP_INVALIDATE};
use crate::sequence::{FragmentNumberSet, SequenceNumber, SequenceNumberSet};
use crate::time::Timestamp;

pub use crate::message::{HEADER_LEN, SUBMESSAGE_HEADER_LEN};

/// Length of INFO_TS with a timestamp, in octets.
pub const INFO_TIMESTAMP_LEN: usize = SUBMESSAGE_HEADER_LEN + 8;
/// Length of INFO_DST, in octets.
pub const INFO_DESTINATION_LEN: usize = SUBMESSAGE_HEADER_LEN + 12;
/// Length of HEARTBEAT without group information, in octets.
pub const HEARTBEAT_LEN: usize = SUBMESSAGE_HEADER_LEN + 28;
/// Length of HEARTBEAT_FRAG, in octets.
pub const HEARTBEAT_FRAG_LEN: usize = SUBMESSAGE_HEADER_LEN + 24;
/// Length of the longest ACKNACK, in octets.
pub const ACKNACK_LEN_MAX: usize = SUBMESSAGE_HEADER_LEN + 24 + 32;
/// Length of the longest NACK_FRAG, in octets.
pub const NACK_FRAG_LEN_MAX: usize = SUBMESSAGE_HEADER_LEN + 28 + 32;
/// Length of the longest GAP, in octets.
pub const GAP_LEN_MAX: usize = SUBMESSAGE_HEADER_LEN + 28 + 32;

/// Returns the length of an ACKNACK with this set, in octets.
pub const fn acknack_len(state: &SequenceNumberSet) -> usize {
    SUBMESSAGE_HEADER_LEN + 12 + state.encoded_len()
}

/// Returns the length of a NACK_FRAG with this set, in octets.
pub const fn nack_frag_len(fragments: &FragmentNumberSet) -> usize {
    SUBMESSAGE_HEADER_LEN + 20 + fragments.encoded_len()
}

/// Returns the length of a GAP with this set, in octets.
pub const fn gap_len(gap_list: &SequenceNumberSet) -> usize {
    SUBMESSAGE_HEADER_LEN + 16 + gap_list.encoded_len()
}

/// Returns the length of a DATA without its payload and the payload's padding to a multiple of
/// four, in octets. `inline_qos_len` is zero if there is no inline QoS.
pub const fn data_overhead(inline_qos_len: usize) -> usize {
    SUBMESSAGE_HEADER_LEN + 20 + inline_qos_len
}

/// Returns the length of a DATA_FRAG without its payload and the payload's padding to a multiple of
/// four, in octets. `inline_qos_len` is zero if there is no inline QoS.
pub const fn data_frag_overhead(inline_qos_len: usize) -> usize {
    SUBMESSAGE_HEADER_LEN + 32 + inline_qos_len
}

/// Fields of a DATA to serialize.
#[derive(Clone, Copy, Debug)]
pub struct DataEmit<'a> {
    /// Destination reader; unknown addresses all matched readers.
    pub reader: EntityId,
    /// Writer of the change.
    pub writer: EntityId,
    /// Sequence number of the change.
    pub sn: SequenceNumber,
    /// Encoded parameter list, sentinel included, in the byte order of the message.
    pub inline_qos: Option<&'a [u8]>,
    /// Serialized data or key, encapsulation header included. The builder pads it with zeros.
    pub payload: Payload<'a>,
}

/// Fields of a DATA_FRAG to serialize.
#[derive(Clone, Copy, Debug)]
pub struct DataFragEmit<'a> {
    /// Destination reader; unknown addresses all matched readers.
    pub reader: EntityId,
    /// Writer of the change.
    pub writer: EntityId,
    /// Sequence number of the change.
    pub sn: SequenceNumber,
    /// Number of the first fragment, counted from 1.
    pub fragment_starting_num: u32,
    /// Length of each fragment except the last of the sample, in octets.
    pub fragment_size: u16,
    /// Length of the whole sample, encapsulation header included, in octets.
    pub sample_size: u32,
    /// Encoded parameter list, sentinel included, in the byte order of the message.
    pub inline_qos: Option<&'a [u8]>,
    /// True if the fragmented payload is a serialized key.
    pub key: bool,
    /// Octets of the fragments, and no others.
    pub payload: &'a [u8],
    /// Number of fragments in `payload`.
    pub fragments_in_submessage: u16,
}

/// Message under construction.
#[derive(Debug)]
pub struct MessageBuilder<'a> {
    frame: &'a mut [u8],
    len: usize,
    submessage_count: usize,
    endianness: Endianness,
    /// True if no submessage may follow: the last one has no length of its own, or its payload
    /// follows the message.
    is_closed: bool,
    /// Octets to keep free for each submessage of an endpoint.
    reserve: usize,
    /// Octets kept free so far.
    reserved: usize,
}

impl<'a> MessageBuilder<'a> {
    /// Starts a message. Submessages are little endian.
    pub fn new(frame: &'a mut [u8], header: &Header) -> Result<Self, Full> {
        let Some(start) = frame.get_mut(..HEADER_LEN) else {
            return Err(Full);
        };
        let mut emitter = Emitter::new(start, Endianness::Big);
        emitter.bytes(&MAGIC);
        emitter.bytes(&[header.version.major, header.version.minor]);
        emitter.bytes(&header.vendor.0);
        emitter.bytes(&header.prefix.0);
        Ok(Self {
            frame,
            len: HEADER_LEN,
            submessage_count: 0,
            endianness: Endianness::Little,
            is_closed: false,
            reserve: 0,
            reserved: 0,
        })
    }

    /// Keeps this many octets of the frame free for each submessage of an endpoint. Protection of
    /// the submessage needs them later.
    #[must_use]
    pub fn with_reserve(mut self, octets: usize) -> Self {
        self.reserve = octets;
        self
    }

    /// Sets the byte order of the submessages that follow.
    #[must_use]
    pub fn with_endianness(mut self, endianness: Endianness) -> Self {
        self.endianness = endianness;
        self
    }

    /// Returns the number of octets written so far, the header included.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of octets that are left.
    pub const fn remaining(&self) -> usize {
        if self.is_closed { 0 } else { self.frame.len() - self.len - self.reserved }
    }

    /// Returns the number of submessages written so far.
    pub const fn submessage_count(&self) -> usize {
        self.submessage_count
    }

    /// Reports whether the message consists of the header alone.
    pub const fn is_empty(&self) -> bool {
        self.submessage_count == 0
    }

    /// Returns the octets written so far.
    pub fn bytes(&self) -> &[u8] {
        &self.frame[..self.len]
    }

    /// Appends INFO_TS: the source timestamp of the submessages that follow, or its absence.
    pub fn info_timestamp(&mut self, timestamp: Option<Timestamp>) -> Result<(), Full> {
        let Some(timestamp) = timestamp else {
            return self.submessage(id::INFO_TS, FLAG_TIMESTAMP_INVALIDATE, 0).map(|_| ());
        };
        let mut body = self.submessage(id::INFO_TS, 0, 8)?;
        body.u32(timestamp.seconds);
        body.u32(timestamp.fraction);
        Ok(())
    }

    /// Appends INFO_DST: the destination participant of the submessages that follow.
    pub fn info_destination(&mut self, prefix: GuidPrefix) -> Result<(), Full> {
        self.submessage(id::INFO_DST, 0, 12)?.bytes(&prefix.0);
        Ok(())
    }

    /// Appends INFO_SRC: the source participant of the submessages that follow.
    pub fn info_source(&mut self, source: &InfoSource) -> Result<(), Full> {
        let mut body = self.submessage(id::INFO_SRC, 0, 20)?;
        body.u32(0);
        body.bytes(&[source.version.major, source.version.minor]);
        body.bytes(&source.vendor.0);
        body.bytes(&source.prefix.0);
        Ok(())
    }

    /// Appends HEARTBEAT.
    pub fn heartbeat(&mut self, heartbeat: &Heartbeat) -> Result<(), Full> {
        let flags = flag(heartbeat.is_final, Heartbeat::FLAG_FINAL)
            | flag(heartbeat.liveliness, Heartbeat::FLAG_LIVELINESS)
            | flag(heartbeat.group.is_some(), Heartbeat::FLAG_GROUP_INFO);
        let group_len = if heartbeat.group.is_some() { GroupInfo::LEN } else { 0 };
        let mut body = self.submessage(id::HEARTBEAT, flags, HEARTBEAT_LEN - SUBMESSAGE_HEADER_LEN + group_len)?;
        body.bytes(&heartbeat.reader.0);
        body.bytes(&heartbeat.writer.0);
        heartbeat.first_sn.emit(&mut body);
        heartbeat.last_sn.emit(&mut body);
        body.i32(heartbeat.count);
        if let Some(group) = &heartbeat.group {
            for gsn in [group.current_gsn, group.first_gsn, group.last_gsn] {
                gsn.emit(&mut body);
            }
            body.bytes(&group.writer_set);
            body.bytes(&group.secure_writer_set);
        }
        Ok(())
    }

    /// Appends HEARTBEAT_FRAG.
    pub fn heartbeat_frag(&mut self, heartbeat: &HeartbeatFrag) -> Result<(), Full> {
        let len = HEARTBEAT_FRAG_LEN - SUBMESSAGE_HEADER_LEN;
        let mut body = self.submessage(id::HEARTBEAT_FRAG, 0, len)?;
        body.bytes(&heartbeat.reader.0);
        body.bytes(&heartbeat.writer.0);
        heartbeat.sn.emit(&mut body);
        body.u32(heartbeat.last_fragment_num);
        body.i32(heartbeat.count);
        Ok(())
    }

    /// Appends ACKNACK.
    pub fn acknack(&mut self, acknack: &AckNack) -> Result<(), Full> {
        let len = acknack_len(&acknack.reader_sn_state) - SUBMESSAGE_HEADER_LEN;
        let flags = flag(acknack.is_final, AckNack::FLAG_FINAL);
        let mut body = self.submessage(id::ACKNACK, flags, len)?;
        body.bytes(&acknack.reader.0);
        body.bytes(&acknack.writer.0);
        acknack.reader_sn_state.emit(&mut body);
        body.i32(acknack.count);
        Ok(())
    }

    /// Appends NACK_FRAG.
    pub fn nack_frag(&mut self, nack: &NackFrag) -> Result<(), Full> {
        let len = nack_frag_len(&nack.fragments) - SUBMESSAGE_HEADER_LEN;
        let mut body = self.submessage(id::NACK_FRAG, 0, len)?;
        body.bytes(&nack.reader.0);
        body.bytes(&nack.writer.0);
        nack.sn.emit(&mut body);
        nack.fragments.emit(&mut body);
        body.i32(nack.count);
        Ok(())
    }

    /// Appends GAP.
    pub fn gap(&mut self, gap: &Gap) -> Result<(), Full> {
        let len = gap_len(&gap.gap_list) - SUBMESSAGE_HEADER_LEN;
        let mut body = self.submessage(id::GAP, 0, len)?;
        body.bytes(&gap.reader.0);
        body.bytes(&gap.writer.0);
        gap.gap_start.emit(&mut body);
        gap.gap_list.emit(&mut body);
        Ok(())
    }

    /// Appends DATA. If its length exceeds the 16 bits of the length field, it ends the message.
    #[inline]
    pub fn data(&mut self, data: &DataEmit<'_>) -> Result<(), Full> {
        let payload = data.payload.bytes().unwrap_or_default();
        let inline_qos = data.inline_qos.unwrap_or_default();
        let len = data_overhead(inline_qos.len()) - SUBMESSAGE_HEADER_LEN + padded(payload.len());
        let flags = flag(data.inline_qos.is_some(), Data::FLAG_INLINE_QOS)
            | match data.payload {
                Payload::None => 0,
                Payload::Data(_) => Data::FLAG_DATA,
                Payload::Key(_) => Data::FLAG_KEY,
            };
        // One array of fixed size, since most messages consist of it: extraFlags,
        // octetsToInlineQos, reader, writer, sequence number.
        let ((high, low), order) = (data.sn.halves(), self.endianness);
        let mut fixed = [0; data_overhead(0) - SUBMESSAGE_HEADER_LEN];
        fixed[2..4].copy_from_slice(&order.octets16(DATA_TO_INLINE_QOS));
        fixed[4..8].copy_from_slice(&data.reader.0);
        fixed[8..12].copy_from_slice(&data.writer.0);
        fixed[12..16].copy_from_slice(&order.octets32(high));
        fixed[16..20].copy_from_slice(&order.octets32(low));
        let mut body = self.submessage(id::DATA, flags, len)?;
        body.bytes(&fixed);
        if !inline_qos.is_empty() {
            body.bytes(inline_qos);
        }
        body.bytes(payload);
        body.fill();
        Ok(())
    }

    /// Appends DATA_FRAG. If its length exceeds the 16 bits of the length field, it ends the
    /// message.
    pub fn data_frag(&mut self, data: &DataFragEmit<'_>) -> Result<(), Full> {
        let mut body = self.data_frag_fields(data)?;
        body.bytes(data.payload);
        body.fill();
        Ok(())
    }

    /// Appends a DATA_FRAG without copying its payload, whose length is a multiple of four octets.
    ///
    /// The caller appends the payload to the message, which ends here. [`Self::len`] does not count
    /// the payload, but the frame has room for it.
    pub fn data_frag_without_payload(&mut self, data: &DataFragEmit<'_>) -> Result<(), Full> {
        debug_assert_eq!(data.payload.len() % 4, 0, "padding would have to follow, too");
        self.data_frag_fields(data)?;
        self.len -= data.payload.len();
        self.is_closed = true;
        Ok(())
    }

    /// Writes a DATA_FRAG up to the payload and leaves room for the payload.
    fn data_frag_fields(&mut self, data: &DataFragEmit<'_>) -> Result<Emitter<'_>, Full> {
        let inline_qos = data.inline_qos.unwrap_or_default();
        let overhead = data_frag_overhead(inline_qos.len()) - SUBMESSAGE_HEADER_LEN;
        let flags = flag(data.inline_qos.is_some(), DataFrag::FLAG_INLINE_QOS) | flag(data.key, DataFrag::FLAG_KEY);
        let len = overhead + padded(data.payload.len());
        let mut body = self.submessage(id::DATA_FRAG, flags, len)?;
        body.u16(0);
        body.u16(DATA_FRAG_TO_INLINE_QOS);
        body.bytes(&data.reader.0);
        body.bytes(&data.writer.0);
        data.sn.emit(&mut body);
        body.u32(data.fragment_starting_num);
        body.u16(data.fragments_in_submessage);
        body.u16(data.fragment_size);
        body.u32(data.sample_size);
        body.bytes(inline_qos);
        Ok(body)
    }

    /// Appends PAD: a header and `len` zero octets. `len` is a multiple of four.
    pub fn pad(&mut self, len: u16) -> Result<(), Full> {
        self.submessage(id::PAD, 0, padded(usize::from(len)))?.fill();
        Ok(())
    }

    /// Writes the header of a submessage and returns an emitter for its `len` octets.
    #[inline]
    fn submessage(&mut self, id: u8, flags: u8, len: usize) -> Result<Emitter<'_>, Full> {
        let reserve = if is_of_endpoint(id) { self.reserve } else { 0 };
        let taken = SUBMESSAGE_HEADER_LEN + reserve;
        if self.remaining() < taken || self.remaining() - taken < len {
            return Err(Full);
        }
        self.reserved += reserve;
        let start = self.len;
        let end = start + SUBMESSAGE_HEADER_LEN + len;
        let octets_to_next_header = u16::try_from(len).unwrap_or_else(|_| {
            self.is_closed = true;
            0
        });
        self.len = end;
        self.submessage_count += 1;
        let mut emitter = Emitter::new(&mut self.frame[start..end], self.endianness);
        emitter.bytes(&[id, flags | self.endianness.flag()]);
        emitter.u16(octets_to_next_header);
        Ok(emitter)
    }
}

/// Reports whether the submessage belongs to an endpoint. The other submessages describe the
/// message.
const fn is_of_endpoint(id: u8) -> bool {
    matches!(id, id::DATA | id::DATA_FRAG | id::HEARTBEAT | id::HEARTBEAT_FRAG | id::GAP | id::ACKNACK | id::NACK_FRAG)
}

const fn flag(is_set: bool, mask: u8) -> u8 {
    if is_set { mask } else { 0 }
}

const fn padded(len: usize) -> usize {
    len + padding(len, 4)
}

#[cfg(test)]
mod tests;
