//! Submessages of the reliable protocol: HEARTBEAT, ACKNACK, GAP, HEARTBEAT_FRAG and NACK_FRAG
//! (RTPS 2.5 §8.3.8, §9.4.5).

use super::Envelope;
use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::guid::EntityId;
use crate::sequence::{FragmentNumberSet, SequenceNumber, SequenceNumberSet};

/// HEARTBEAT: the changes that a writer has available (RTPS 2.5 §8.3.8.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    /// Destination reader; unknown addresses all matched readers.
    pub reader: EntityId,
    /// Writer of the changes.
    pub writer: EntityId,
    /// First change that is still available.
    pub first_sn: SequenceNumber,
    /// Last change; one less than `first_sn` if there is none.
    pub last_sn: SequenceNumber,
    /// Counter that the writer increments with every heartbeat; it wraps.
    pub count: i32,
    /// True if no response is required.
    pub is_final: bool,
    /// True if the heartbeat asserts liveliness manually.
    pub liveliness: bool,
    /// Group information, if the writer's publisher has PRESENTATION scope GROUP.
    pub group: Option<GroupInfo>,
}

/// Group information of a HEARTBEAT (RTPS 2.5 §8.3.8.6, §8.7.5). All writers of a publisher share
/// one counter of changes, the *group sequence number*.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupInfo {
    /// Last number that any writer of the group has assigned. Up to this number, the writer has no
    /// changes after `last_gsn`.
    pub current_gsn: SequenceNumber,
    /// Group sequence number of the change `first_sn`.
    pub first_gsn: SequenceNumber,
    /// Group sequence number of the change `last_sn`.
    pub last_gsn: SequenceNumber,
    /// Digest of the entity ids of the writers in the group; zero if the group is empty.
    pub writer_set: [u8; 4],
    /// Digest of the writers for DDS Security.
    pub secure_writer_set: [u8; 4],
}

impl GroupInfo {
    /// Length on the wire in octets.
    pub const LEN: usize = 3 * 8 + 2 * 4;

    fn parse(body: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            current_gsn: SequenceNumber::parse(body)?,
            first_gsn: SequenceNumber::parse(body)?,
            last_gsn: SequenceNumber::parse(body)?,
            writer_set: body.array()?,
            secure_writer_set: body.array()?,
        })
    }
}

impl Heartbeat {
    pub(crate) const FLAG_FINAL: u8 = 0x02;
    pub(crate) const FLAG_LIVELINESS: u8 = 0x04;
    pub(crate) const FLAG_GROUP_INFO: u8 = 0x08;

    pub(super) fn parse(envelope: Envelope<'_>) -> Result<Self, Malformed> {
        let mut body = envelope.body;
        let reader = EntityId(body.array()?);
        let writer = EntityId(body.array()?);
        let at = body;
        let first_sn = SequenceNumber::parse_valid(&mut body)?;
        let last_sn = SequenceNumber::parse(&mut body)?;
        if last_sn < first_sn.prev() {
            return Err(at.malformed("HEARTBEAT lastSN is below firstSN - 1"));
        }
        let count = body.i32()?;
        let group = if envelope.flag(Self::FLAG_GROUP_INFO) { Some(GroupInfo::parse(&mut body)?) } else { None };
        Ok(Self {
            reader,
            writer,
            first_sn,
            last_sn,
            count,
            is_final: envelope.flag(Self::FLAG_FINAL),
            liveliness: envelope.flag(Self::FLAG_LIVELINESS),
            group,
        })
    }
}

/// HEARTBEAT_FRAG: the fragments of a change that a writer has available (RTPS 2.5 §8.3.8.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeartbeatFrag {
    /// Destination reader; unknown addresses all matched readers.
    pub reader: EntityId,
    /// Writer of the change.
    pub writer: EntityId,
    /// Sequence number of the change.
    pub sn: SequenceNumber,
    /// Last available fragment; fragments are counted from 1.
    pub last_fragment_num: u32,
    /// Counter that the writer increments with every HEARTBEAT_FRAG; it wraps.
    pub count: i32,
}

impl HeartbeatFrag {
    pub(super) fn parse(envelope: Envelope<'_>) -> Result<Self, Malformed> {
        let mut body = envelope.body;
        let reader = EntityId(body.array()?);
        let writer = EntityId(body.array()?);
        let sn = SequenceNumber::parse_valid(&mut body)?;
        let last_fragment_num = parse_fragment_number(&mut body)?;
        Ok(Self { reader, writer, sn, last_fragment_num, count: body.i32()? })
    }
}

/// ACKNACK: the changes that a reader has received and those that it requests (RTPS 2.5 §8.3.8.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckNack {
    /// Reader that acknowledges and requests.
    pub reader: EntityId,
    /// Writer of the changes.
    pub writer: EntityId,
    /// Acknowledges all changes before the base and requests those in the set.
    pub reader_sn_state: SequenceNumberSet,
    /// Counter that the reader increments with every ACKNACK; it wraps.
    pub count: i32,
    /// True if no response is required.
    pub is_final: bool,
}

impl AckNack {
    pub(crate) const FLAG_FINAL: u8 = 0x02;

    /// Parses the submessage.
    ///
    /// INTEROP(eProsima, RTI, RTI Micro, CoreDX): these send an empty set with base 0 before they
    /// have received a heartbeat. It means the same as an empty set with base 1, and is converted
    /// to that.
    pub(super) fn parse(envelope: Envelope<'_>) -> Result<Self, Malformed> {
        let mut body = envelope.body;
        let reader = EntityId(body.array()?);
        let writer = EntityId(body.array()?);
        let at = body;
        let mut state = SequenceNumberSet::parse(&mut body, 0)?;
        if state.base() == SequenceNumber::ZERO {
            if state.num_bits() != 0 {
                return Err(at.malformed("ACKNACK requests change 0"));
            }
            state = SequenceNumberSet::new(SequenceNumber::FIRST);
        }
        Ok(Self {
            reader,
            writer,
            reader_sn_state: state,
            count: body.i32()?,
            is_final: envelope.flag(Self::FLAG_FINAL),
        })
    }
}

/// NACK_FRAG: the fragments of a change that a reader requests (RTPS 2.5 §8.3.8.12).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NackFrag {
    /// Reader that requests the fragments.
    pub reader: EntityId,
    /// Writer of the change.
    pub writer: EntityId,
    /// Sequence number of the change.
    pub sn: SequenceNumber,
    /// Requested fragments.
    pub fragments: FragmentNumberSet,
    /// Counter that the reader increments with every NACK_FRAG; it wraps.
    pub count: i32,
}

impl NackFrag {
    pub(super) fn parse(envelope: Envelope<'_>) -> Result<Self, Malformed> {
        let mut body = envelope.body;
        let reader = EntityId(body.array()?);
        let writer = EntityId(body.array()?);
        let sn = SequenceNumber::parse_valid(&mut body)?;
        let fragments = FragmentNumberSet::parse(&mut body)?;
        Ok(Self { reader, writer, sn, fragments, count: body.i32()? })
    }
}

/// GAP: changes that are irrelevant for the reader (RTPS 2.5 §8.3.8.4).
///
/// These are the changes from `gap_start` up to the one before the base of `gap_list`, and those in
/// `gap_list`. The first part is an interval of any length. It must never be iterated element by
/// element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// Destination reader; unknown addresses all matched readers.
    pub reader: EntityId,
    /// Writer of the changes.
    pub writer: EntityId,
    /// First change of the interval.
    pub gap_start: SequenceNumber,
    /// Set of further changes.
    pub gap_list: SequenceNumberSet,
}

impl Gap {
    const FLAG_GROUP_INFO: u8 = 0x02;
    const FLAG_FILTERED_COUNT: u8 = 0x04;

    /// Parses the submessage. If the base of the list lies before the start, the interval is empty
    /// and the start becomes the base.
    pub(super) fn parse(envelope: Envelope<'_>) -> Result<Self, Malformed> {
        let mut body = envelope.body;
        let reader = EntityId(body.array()?);
        let writer = EntityId(body.array()?);
        let start = SequenceNumber::parse_valid(&mut body)?;
        let gap_list = SequenceNumberSet::parse(&mut body, 1)?;
        if envelope.flag(Self::FLAG_GROUP_INFO) {
            // First and last group sequence number.
            body.skip(2 * 8)?;
        }
        if envelope.flag(Self::FLAG_FILTERED_COUNT) {
            body.skip(4)?;
        }
        Ok(Self { reader, writer, gap_start: start.min(gap_list.base()), gap_list })
    }
}

/// Reads a fragment number.
pub(super) fn parse_fragment_number(body: &mut Cursor<'_>) -> Result<u32, Malformed> {
    let at = body.malformed("fragment number is zero");
    match body.u32()? {
        0 => Err(at),
        number => Ok(number),
    }
}
