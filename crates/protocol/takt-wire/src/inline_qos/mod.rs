//! Inline QoS of DATA submessages (RTPS 2.5 §8.7, §9.6.4).
//!
//! [`InlineQos`] holds the parameters that a reader needs, [`InlineQosBuilder`] writes them.
//! Neither allocates.

use crate::cursor::{Cursor, Endianness};
use crate::error::{Full, Malformed};
use crate::guid::Guid;
use crate::parameter::*;
use crate::sequence::SequenceNumber;
use crate::time::Duration;

/// Status info: the instance was disposed.
pub const STATUS_INFO_DISPOSED: u32 = 1;
/// Status info: the writer unregistered the instance.
pub const STATUS_INFO_UNREGISTERED: u32 = 2;
/// Status info: the writer's filter for the reader rejected the change.
pub const STATUS_INFO_FILTERED: u32 = 4;

/// Identity of a change: its writer and its sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleIdentity {
    /// Writer of the change.
    pub writer: Guid,
    /// Sequence number of the change.
    pub sn: SequenceNumber,
}

impl SampleIdentity {
    fn parse(value: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self { writer: Guid::from_bytes(value.array()?), sn: SequenceNumber::parse(value)? })
    }
}

/// Readers that a change is directed to; none means all readers.
#[derive(Clone, Copy, Debug, Default)]
pub struct DirectedWrite<'a> {
    list: Option<ParameterList<'a>>,
}

impl<'a> DirectedWrite<'a> {
    /// Reports whether the change is for all readers.
    pub const fn is_empty(&self) -> bool {
        self.list.is_none()
    }

    /// Reports whether the change is for `reader`.
    pub fn includes(&self, reader: Guid) -> bool {
        self.is_empty() || self.iter().any(|guid| guid == reader)
    }

    /// Returns the readers: at most one for each 16 octets of the datagram.
    pub fn iter(&self) -> impl Iterator<Item = Guid> + use<'a> {
        self.list.into_iter().flatten().filter(|parameter| parameter.pid == PID_DIRECTED_WRITE).flat_map(|parameter| {
            let (guids, _) = guids_of(&parameter).as_chunks::<16>();
            guids.iter().map(|bytes| Guid::from_bytes(*bytes))
        })
    }
}

/// Returns the GUIDs in a `PID_DIRECTED_WRITE`.
///
/// The parameter holds one GUID and is repeated, or it holds a sequence. Implementations use both.
/// The length distinguishes them: a sequence has four octets more than a multiple of 16.
fn guids_of<'a>(parameter: &Parameter<'a>) -> &'a [u8] {
    let value = parameter.value;
    if value.len() % 16 == 4 { &value[4..] } else { value }
}

/// Inline QoS parameters that a reader needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct InlineQos<'a> {
    /// Hash of the key.
    pub key_hash: Option<[u8; 16]>,
    /// Change of the instance's state: the `STATUS_INFO_` bits.
    pub status_info: Option<u32>,
    /// Readers that the change is directed to.
    pub directed_write: DirectedWrite<'a>,
    /// Identity of the change at its original writer, if a service relays it.
    pub original_writer: Option<SampleIdentity>,
    /// Identity of the request that this change replies to.
    pub related_sample_identity: Option<SampleIdentity>,
    /// First change of the coherent set that this change belongs to. A number that is not the first
    /// of an open set, or unknown, ends the previous set.
    pub coherent_set: Option<SequenceNumber>,
    /// First change of the coherent set of the whole publisher, as a group sequence number.
    pub group_coherent_set: Option<SequenceNumber>,
    /// Group sequence number of the change, which counts all changes of the publisher.
    pub group_seq_num: Option<SequenceNumber>,
    /// LIFESPAN of the writer, if it sends its policies inline.
    pub lifespan: Option<Duration>,
    /// OWNERSHIP_STRENGTH of the writer, if it sends its policies inline.
    pub ownership_strength: Option<i32>,
    /// True if an unknown parameter must be understood. The change must not be used.
    pub must_understand_unknown: bool,
}

impl<'a> InlineQos<'a> {
    /// Parses the needed parameters and skips the others.
    pub fn parse(list: ParameterList<'a>) -> Result<Self, Malformed> {
        let mut qos = Self::default();
        for parameter in list {
            let mut value = parameter.cursor();
            match parameter.pid {
                PID_KEY_HASH => qos.key_hash = Some(value.array()?),
                // An octet array, not an integer: equal in both byte orders.
                PID_STATUS_INFO => qos.status_info = Some(u32::from_be_bytes(value.array()?)),
                PID_DIRECTED_WRITE => {
                    if guids_of(&parameter).len() < 16 {
                        return Err(parameter.malformed("directed write without a reader"));
                    }
                    qos.directed_write = DirectedWrite { list: Some(list) };
                }
                PID_ORIGINAL_WRITER_INFO => {
                    qos.original_writer = Some(SampleIdentity::parse(&mut value)?);
                }
                PID_RELATED_SAMPLE_IDENTITY => {
                    qos.related_sample_identity = Some(SampleIdentity::parse(&mut value)?);
                }
                PID_COHERENT_SET => qos.coherent_set = Some(SequenceNumber::parse(&mut value)?),
                PID_GROUP_COHERENT_SET => {
                    qos.group_coherent_set = Some(SequenceNumber::parse(&mut value)?);
                }
                PID_GROUP_SEQ_NUM => qos.group_seq_num = Some(SequenceNumber::parse(&mut value)?),
                PID_LIFESPAN => qos.lifespan = Some(Duration::parse(&mut value)?),
                PID_OWNERSHIP_STRENGTH => qos.ownership_strength = Some(value.i32()?),
                _ => qos.must_understand_unknown |= parameter.must_understand,
            }
        }
        Ok(qos)
    }

    /// Merges two lists about one change; values of `self` take precedence. The result has no
    /// directed readers.
    #[must_use]
    pub fn or(&self, other: &InlineQos<'_>) -> InlineQos<'static> {
        InlineQos {
            key_hash: self.key_hash.or(other.key_hash),
            status_info: self.status_info.or(other.status_info),
            directed_write: DirectedWrite::default(),
            original_writer: self.original_writer.or(other.original_writer),
            related_sample_identity: self.related_sample_identity.or(other.related_sample_identity),
            coherent_set: self.coherent_set.or(other.coherent_set),
            group_coherent_set: self.group_coherent_set.or(other.group_coherent_set),
            group_seq_num: self.group_seq_num.or(other.group_seq_num),
            lifespan: self.lifespan.or(other.lifespan),
            ownership_strength: self.ownership_strength.or(other.ownership_strength),
            must_understand_unknown: self.must_understand_unknown || other.must_understand_unknown,
        }
    }

    /// Reports whether the change is for `reader` or for all readers.
    pub fn is_for(&self, reader: Guid) -> bool {
        self.directed_write.includes(reader)
    }
}

/// Builder of inline QoS in a buffer of `N` octets.
///
/// Most changes need a key hash (20 octets), status info (8) and the sentinel (4).
#[derive(Clone, Debug)]
pub struct InlineQosBuilder<const N: usize> {
    bytes: [u8; N],
    len: usize,
    endianness: Endianness,
}

impl<const N: usize> Default for InlineQosBuilder<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Length of a parameter's header and of the sentinel, in octets.
const PARAMETER_HEADER_LEN: usize = 4;

impl<const N: usize> InlineQosBuilder<N> {
    /// Returns an empty list in little endian.
    pub const fn new() -> Self {
        Self::with_endianness(Endianness::Little)
    }

    /// Returns an empty list in the byte order of the enclosing message.
    pub const fn with_endianness(endianness: Endianness) -> Self {
        Self { bytes: [0; N], len: 0, endianness }
    }

    /// Reports whether the list has no parameters.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends the change of the instance's state: the `STATUS_INFO_` bits.
    pub fn status_info(&mut self, flags: u32) -> Result<(), Full> {
        self.put(PID_STATUS_INFO, [&flags.to_be_bytes(), &[]])
    }

    /// Appends the hash of the key.
    pub fn key_hash(&mut self, hash: [u8; 16]) -> Result<(), Full> {
        self.put(PID_KEY_HASH, [&hash, &[]])
    }

    /// Appends one reader that the change is directed to.
    pub fn directed_write(&mut self, reader: Guid) -> Result<(), Full> {
        self.put(PID_DIRECTED_WRITE, [&reader.to_bytes(), &[]])
    }

    /// Appends the original writer. The original QoS, which may follow in the parameter, is left
    /// out.
    pub fn original_writer(&mut self, identity: SampleIdentity) -> Result<(), Full> {
        let number = self.sequence_number(identity.sn);
        self.put(PID_ORIGINAL_WRITER_INFO, [&identity.writer.to_bytes(), &number])
    }

    /// Appends the identity of the request that this change replies to.
    pub fn related_sample_identity(&mut self, identity: SampleIdentity) -> Result<(), Full> {
        let number = self.sequence_number(identity.sn);
        self.put(PID_RELATED_SAMPLE_IDENTITY, [&identity.writer.to_bytes(), &number])
    }

    /// Appends the first change of the coherent set.
    pub fn coherent_set(&mut self, first: SequenceNumber) -> Result<(), Full> {
        let number = self.sequence_number(first);
        self.put(PID_COHERENT_SET, [&number, &[]])
    }

    /// Appends the first change of the publisher's coherent set.
    pub fn group_coherent_set(&mut self, first: SequenceNumber) -> Result<(), Full> {
        let number = self.sequence_number(first);
        self.put(PID_GROUP_COHERENT_SET, [&number, &[]])
    }

    /// Appends the group sequence number of the change.
    pub fn group_seq_num(&mut self, number: SequenceNumber) -> Result<(), Full> {
        let number = self.sequence_number(number);
        self.put(PID_GROUP_SEQ_NUM, [&number, &[]])
    }

    /// Appends the digest of the entity ids of the publisher's writers.
    pub fn writer_group_info(&mut self, writer_set: [u8; 4]) -> Result<(), Full> {
        self.put(PID_WRITER_GROUP_INFO, [&writer_set, &[]])
    }

    /// Appends the sentinel and returns the list.
    pub fn finish(&mut self) -> Result<&[u8], Full> {
        let header = self.header(PID_SENTINEL, 0);
        let end = self.len + PARAMETER_HEADER_LEN;
        self.bytes.get_mut(self.len..end).ok_or(Full)?.copy_from_slice(&header);
        Ok(&self.bytes[..end])
    }

    /// Returns the length of the list in octets, sentinel included.
    pub const fn encoded_len(&self) -> usize {
        self.len + PARAMETER_HEADER_LEN
    }

    /// Appends a parameter whose value comes in two parts, of a multiple of four octets in total.
    /// Keeps room for the sentinel.
    fn put(&mut self, pid: u16, [first, second]: [&[u8]; 2]) -> Result<(), Full> {
        let value_len = first.len() + second.len();
        let end = self.len + PARAMETER_HEADER_LEN + value_len;
        if end + PARAMETER_HEADER_LEN > N {
            return Err(Full);
        }
        let header = self.header(pid, u16::try_from(value_len).map_err(|_| Full)?);
        let mut at = self.len;
        for part in [&header, first, second] {
            self.bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        self.len = end;
        Ok(())
    }

    fn header(&self, pid: u16, len: u16) -> [u8; PARAMETER_HEADER_LEN] {
        let (pid, len) = match self.endianness {
            Endianness::Big => (pid.to_be_bytes(), len.to_be_bytes()),
            Endianness::Little => (pid.to_le_bytes(), len.to_le_bytes()),
        };
        [pid[0], pid[1], len[0], len[1]]
    }

    fn sequence_number(&self, number: SequenceNumber) -> [u8; 8] {
        let (high, low) = number.halves();
        let (high, low) = match self.endianness {
            Endianness::Big => (high.to_be_bytes(), low.to_be_bytes()),
            Endianness::Little => (high.to_le_bytes(), low.to_le_bytes()),
        };
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&high);
        bytes[4..].copy_from_slice(&low);
        bytes
    }
}

#[cfg(test)]
mod tests;
