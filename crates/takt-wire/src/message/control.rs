//! The submessages of the reliable protocol: HEARTBEAT, ACKNACK, GAP and their relatives for
//! fragments (RTPS 2.5 §8.3.8, §9.4.5).

use super::Envelope;
use crate::cursor::Cursor;
use crate::error::Malformed;
use crate::guid::EntityId;
use crate::sequence::{FragmentNumberSet, SequenceNumber, SequenceNumberSet};

/// What a writer has (RTPS 2.5 §8.3.8.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    /// For whom; unknown means all matched readers.
    pub reader: EntityId,
    /// Whose changes.
    pub writer: EntityId,
    /// The first change that can still be had.
    pub first_sn: SequenceNumber,
    /// The last change; one less than `first_sn` if there is none.
    pub last_sn: SequenceNumber,
    /// Grows with every heartbeat of the writer; wraps.
    pub count: i32,
    /// No answer is needed.
    pub is_final: bool,
    /// The writer's liveliness is asserted by hand.
    pub liveliness: bool,
    /// Where the writer stands among those of its publisher, if that has PRESENTATION scope GROUP.
    pub group: Option<GroupInfo>,
}

/// What a HEARTBEAT says of the writer's group (RTPS 2.5 §8.3.8.6, §8.7.5). All writers of a publisher count their changes
/// together: these are *group sequence numbers*.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupInfo {
    /// The last number that any writer of the group has given out. This writer has none up to here beyond `last_gsn`.
    pub current_gsn: SequenceNumber,
    /// That of the change `first_sn`.
    pub first_gsn: SequenceNumber,
    /// That of the change `last_sn`.
    pub last_gsn: SequenceNumber,
    /// A digest of the entity ids of the writers in the group; zero if it is empty.
    pub writer_set: [u8; 4],
    /// The same for DDS Security.
    pub secure_writer_set: [u8; 4],
}

impl GroupInfo {
    /// Octets on the wire.
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
            return Err(at.malformed("HEARTBEAT ends before it begins"));
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

/// Which fragments of a change a writer has (RTPS 2.5 §8.3.8.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeartbeatFrag {
    /// For whom; unknown means all matched readers.
    pub reader: EntityId,
    /// Whose change.
    pub writer: EntityId,
    /// Which change.
    pub sn: SequenceNumber,
    /// All fragments up to this one can be had; they are counted from 1.
    pub last_fragment_num: u32,
    /// Grows with every such submessage of the writer; wraps.
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

/// What a reader has and what it misses (RTPS 2.5 §8.3.8.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckNack {
    /// Who has and misses.
    pub reader: EntityId,
    /// Whose changes.
    pub writer: EntityId,
    /// The reader has everything before the base and misses what is in the set.
    pub reader_sn_state: SequenceNumberSet,
    /// Grows with every such submessage of the reader; wraps.
    pub count: i32,
    /// No answer is needed.
    pub is_final: bool,
}

impl AckNack {
    pub(crate) const FLAG_FINAL: u8 = 0x02;

    /// Reads the submessage.
    ///
    /// INTEROP(eProsima, RTI, RTI Micro, CoreDX): an empty set with base 0 is what these send
    /// before they have heard a heartbeat. It says the same as an empty set with base 1, and that
    /// is what it becomes here.
    pub(super) fn parse(envelope: Envelope<'_>) -> Result<Self, Malformed> {
        let mut body = envelope.body;
        let reader = EntityId(body.array()?);
        let writer = EntityId(body.array()?);
        let at = body;
        let mut state = SequenceNumberSet::parse(&mut body, 0)?;
        if state.base() == SequenceNumber::ZERO {
            if state.num_bits() != 0 {
                return Err(at.malformed("ACKNACK asks for change 0"));
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

/// Which fragments of a change a reader misses (RTPS 2.5 §8.3.8.12).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NackFrag {
    /// Who misses them.
    pub reader: EntityId,
    /// Whose change.
    pub writer: EntityId,
    /// Which change.
    pub sn: SequenceNumber,
    /// Which fragments.
    pub fragments: FragmentNumberSet,
    /// Grows with every such submessage of the reader; wraps.
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

/// Which changes are of no interest to the reader (RTPS 2.5 §8.3.8.4): those from `gap_start` up to the one before
/// the base of `gap_list`, and those in `gap_list`. The first may be any number of changes: an
/// interval, never to be walked element by element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// For whom; unknown means all matched readers.
    pub reader: EntityId,
    /// Whose changes.
    pub writer: EntityId,
    /// The first of them.
    pub gap_start: SequenceNumber,
    /// The others.
    pub gap_list: SequenceNumberSet,
}

impl Gap {
    const FLAG_GROUP_INFO: u8 = 0x02;
    const FLAG_FILTERED_COUNT: u8 = 0x04;

    /// Reads the submessage. If the base of the list lies before the start, there is no interval,
    /// and the start becomes the base.
    pub(super) fn parse(envelope: Envelope<'_>) -> Result<Self, Malformed> {
        let mut body = envelope.body;
        let reader = EntityId(body.array()?);
        let writer = EntityId(body.array()?);
        let start = SequenceNumber::parse_valid(&mut body)?;
        let gap_list = SequenceNumberSet::parse(&mut body, 1)?;
        if envelope.flag(Self::FLAG_GROUP_INFO) {
            // The first and the last group sequence number.
            body.skip(2 * 8)?;
        }
        if envelope.flag(Self::FLAG_FILTERED_COUNT) {
            body.skip(4)?;
        }
        Ok(Self { reader, writer, gap_start: start.min(gap_list.base()), gap_list })
    }
}

/// Reads the number of a fragment.
pub(super) fn parse_fragment_number(body: &mut Cursor<'_>) -> Result<u32, Malformed> {
    let at = body.malformed("fragment number is zero");
    match body.u32()? {
        0 => Err(at),
        number => Ok(number),
    }
}
