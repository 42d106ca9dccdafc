//! Submessages DATA and DATA_FRAG (RTPS 2.5 §8.3.8.2, §8.3.8.3).

use super::Envelope;
use super::control::parse_fragment_number;
use crate::cursor::Cursor;
use crate::discovery::ENCAPSULATION_LEN;
use crate::error::Malformed;
use crate::guid::EntityId;
use crate::parameter::ParameterList;
use crate::sequence::SequenceNumber;

/// Payload of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload<'a> {
    /// No payload: the inline QoS describes the change.
    None,
    /// Serialized sample, encapsulation header included.
    Data(&'a [u8]),
    /// Serialized key, encapsulation header included.
    Key(&'a [u8]),
}

impl<'a> Payload<'a> {
    /// Returns the octets, if there are any.
    pub const fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::None => None,
            Self::Data(bytes) | Self::Key(bytes) => Some(bytes),
        }
    }

    /// Replaces the octets and keeps the kind, for example after decryption. `None` stays `None`.
    #[must_use]
    pub const fn replaced<'b>(&self, bytes: &'b [u8]) -> Payload<'b> {
        match self {
            Self::None => Payload::None,
            Self::Data(_) => Payload::Data(bytes),
            Self::Key(_) => Payload::Key(bytes),
        }
    }
}

/// DATA: a change (RTPS 2.5 §8.3.8.2).
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// Destination reader; unknown addresses all matched readers.
    pub reader: EntityId,
    /// Writer of the change.
    pub writer: EntityId,
    /// Sequence number of the change.
    pub sn: SequenceNumber,
    /// Inline QoS of the change.
    pub inline_qos: Option<ParameterList<'a>>,
    /// Payload. It includes the submessage's padding to a multiple of four octets.
    pub payload: Payload<'a>,
}

/// Octets from the end of octetsToInlineQos to the inline QoS in a DATA.
pub(crate) const DATA_TO_INLINE_QOS: u16 = 16;
/// Octets from the end of octetsToInlineQos to the inline QoS in a DATA_FRAG.
pub(crate) const DATA_FRAG_TO_INLINE_QOS: u16 = 28;

impl<'a> Data<'a> {
    pub(crate) const FLAG_INLINE_QOS: u8 = 0x02;
    pub(crate) const FLAG_DATA: u8 = 0x04;
    pub(crate) const FLAG_KEY: u8 = 0x08;
    const FLAG_NON_STANDARD: u8 = 0x10;

    #[inline]
    pub(super) fn parse(envelope: Envelope<'a>) -> Result<Self, Malformed> {
        let at = envelope.body;
        let has_data = envelope.flag(Self::FLAG_DATA);
        let has_key = envelope.flag(Self::FLAG_KEY);
        if has_data && has_key {
            return Err(at.malformed("DATA carries both a sample and a key"));
        }
        if envelope.flag(Self::FLAG_NON_STANDARD) {
            return Err(at.malformed("payload is not in a standard encoding"));
        }
        let mut rest = envelope.body;
        let order = rest.endianness();
        let [_, _, to_inline_qos @ ..]: [u8; 4] = rest.array()?;
        let reader = EntityId(rest.array()?);
        let writer = EntityId(rest.array()?);
        let sn = SequenceNumber::from_halves(order.u32(rest.array()?), order.u32(rest.array()?));
        // Fast path: inline QoS or payload nearly always follow immediately.
        if order.u16(to_inline_qos) != DATA_TO_INLINE_QOS {
            let mut body = envelope.body;
            rest = after_fixed_part(&mut body, DATA_TO_INLINE_QOS)?;
        }
        if !sn.is_valid() {
            return Err(at.malformed("sequence number is not positive"));
        }
        let inline_qos = match envelope.flag(Self::FLAG_INLINE_QOS) {
            true => Some(ParameterList::parse_from(&mut rest)?),
            false => None,
        };
        let payload = rest.rest();
        if (has_data || has_key) && payload.len() < ENCAPSULATION_LEN {
            return Err(rest.malformed("payload is shorter than its encapsulation header"));
        }
        let payload = match (has_data, has_key) {
            (true, _) => Payload::Data(payload),
            (_, true) => Payload::Key(payload),
            _ => Payload::None,
        };
        Ok(Self { reader, writer, sn, inline_qos, payload })
    }
}

/// Reads the extra flags and octetsToInlineQos and returns a cursor at the position that the latter
/// selects. That position lies after the `fixed_len` octets of every such submessage, at a multiple
/// of four.
fn after_fixed_part<'a>(body: &mut Cursor<'a>, fixed_len: u16) -> Result<Cursor<'a>, Malformed> {
    body.skip(2)?;
    let at = *body;
    let octets_to_inline_qos = body.u16()?;
    if octets_to_inline_qos % 4 != 0 {
        return Err(at.malformed("octetsToInlineQos is not a multiple of four"));
    }
    if octets_to_inline_qos < fixed_len {
        return Err(at.malformed("octetsToInlineQos points into the submessage's own fields"));
    }
    let mut rest = *body;
    if rest.skip(usize::from(octets_to_inline_qos)).is_err() {
        return Err(at.malformed("octetsToInlineQos points beyond the submessage"));
    }
    Ok(rest)
}

/// DATA_FRAG: one or more consecutive fragments of a change (RTPS 2.5 §8.3.8.3).
///
/// The serialized sample (or key), encapsulation header included, is split into fragments of
/// `fragment_size` octets, numbered from 1. The last fragment may be shorter. `payload` has exactly
/// the octets of the fragments in the submessage.
#[derive(Clone, Copy, Debug)]
pub struct DataFrag<'a> {
    /// Destination reader; unknown addresses all matched readers.
    pub reader: EntityId,
    /// Writer of the change.
    pub writer: EntityId,
    /// Sequence number of the change.
    pub sn: SequenceNumber,
    /// Number of the first fragment in the submessage.
    pub fragment_starting_num: u32,
    /// Number of fragments in the submessage.
    pub fragments_in_submessage: u16,
    /// Length of each fragment except the last of the sample, in octets.
    pub fragment_size: u16,
    /// Length of the whole sample in octets.
    pub sample_size: u32,
    /// Inline QoS of the change.
    pub inline_qos: Option<ParameterList<'a>>,
    /// True if the fragmented payload is a serialized key.
    pub key: bool,
    /// Octets of the fragments, without padding.
    pub payload: &'a [u8],
    /// Octets up to the end of the submessage: `payload` and padding. Protection by DDS Security
    /// makes them longer than the fragments.
    pub rest: &'a [u8],
}

impl<'a> DataFrag<'a> {
    pub(crate) const FLAG_INLINE_QOS: u8 = 0x02;
    pub(crate) const FLAG_KEY: u8 = 0x04;
    const FLAG_NON_STANDARD: u8 = 0x08;

    /// Returns the offset of `payload` in the whole sample, in octets.
    pub const fn payload_offset(&self) -> u32 {
        // Parsing has checked that the fragments lie within the sample.
        (self.fragment_starting_num - 1) * self.fragment_size as u32
    }

    pub(super) fn parse(envelope: Envelope<'a>) -> Result<Self, Malformed> {
        let at = envelope.body;
        if envelope.flag(Self::FLAG_NON_STANDARD) {
            return Err(at.malformed("payload is not in a standard encoding"));
        }
        let mut body = envelope.body;
        let mut rest = after_fixed_part(&mut body, DATA_FRAG_TO_INLINE_QOS)?;
        let reader = EntityId(body.array()?);
        let writer = EntityId(body.array()?);
        let sn = SequenceNumber::parse_valid(&mut body)?;
        let fragment_starting_num = parse_fragment_number(&mut body)?;
        let fragments_in_submessage = body.u16()?;
        let fragment_size = body.u16()?;
        let sample_size = body.u32()?;
        let inline_qos = match envelope.flag(Self::FLAG_INLINE_QOS) {
            true => Some(ParameterList::parse_from(&mut rest)?),
            false => None,
        };
        if fragments_in_submessage == 0 || fragment_size == 0 {
            return Err(at.malformed("DATA_FRAG without a fragment"));
        }
        if sample_size < ENCAPSULATION_LEN as u32 {
            return Err(at.malformed("payload is shorter than its encapsulation header"));
        }
        // 64 bits hold the product of any fragment number and size.
        let first = u64::from(fragment_starting_num) - 1;
        let count = u64::from(fragments_in_submessage);
        let size = u64::from(fragment_size);
        let start = first * size;
        let last_start = (first + count - 1) * size;
        if last_start >= u64::from(sample_size) {
            return Err(at.malformed("fragment lies beyond the end of its sample"));
        }
        let end = u64::from(sample_size).min(last_start + size);
        let len = usize::try_from(end - start).map_err(|_| at.malformed("input is truncated"))?;
        let octets = rest.rest();
        let Some(payload) = octets.get(..len) else {
            return Err(rest.malformed("DATA_FRAG is shorter than its fragments"));
        };
        Ok(Self {
            reader,
            writer,
            sn,
            fragment_starting_num,
            fragments_in_submessage,
            fragment_size,
            sample_size,
            inline_qos,
            key: envelope.flag(Self::FLAG_KEY),
            payload,
            rest: octets,
        })
    }
}
