//! Member headers of mutable and optional members: XCDR1 parameters and XCDR2 EMHEADERs
//! (XTypes 1.3 §7.4.1.2, §7.4.3.4.2).

use crate::encoder::Content;
use crate::member::Member;
use crate::{DecodeError, DecodeErrorKind, Decoder, EncodeError, Encoder, Extent, Representation, Sink};

/// Largest member id of a short parameter.
const PID_SHORT_MAX: u32 = 0x3f00;
/// PID of an extended parameter: the next 8 bytes hold id and length.
const PID_EXTENDED: u16 = 0x3f01;
/// PID of the last parameter of a list.
const PID_LIST_END: u16 = 0x3f02;
/// PID of a parameter that is skipped.
const PID_IGNORE: u16 = 0x3f03;
const PID_MASK: u16 = 0x3fff;
const FLAG_IMPL_EXTENSION: u16 = 0x8000;
const FLAG_MUST_UNDERSTAND: u16 = 0x4000;
const EXTENDED_LEN: u16 = 8;
const LONG_FLAG_IMPL_EXTENSION: u32 = 1 << 31;
const LONG_FLAG_MUST_UNDERSTAND: u32 = 1 << 30;
const EM_FLAG_MUST_UNDERSTAND: u32 = 1 << 31;
const ID_MASK: u32 = 0x0fff_ffff;
/// Replacement for implementation-specific ids. No member can have this id.
const FOREIGN_ID: u32 = 1 << 31;
/// Length code of a member whose length is in a NEXTINT.
const LC_NEXTINT: u8 = 4;

/// Received member header.
pub(crate) struct Header {
    pub id: u32,
    pub must_understand: bool,
    pub len: usize,
}

/// Writes a member of a mutable type.
#[inline]
pub(crate) fn write<S: Sink>(
    e: &mut Encoder<S>,
    member: Member,
    length_code: u8,
    content: &impl Content,
) -> Result<(), EncodeError> {
    match e.representation() {
        Representation::Xcdr1 => {
            let len = e.measure(content)?;
            // INTEROP(RTI Connext 7.3): requires the length padded to a multiple of 4 (as in XTypes
            // 1.1); all other implementations accept that.
            write_parameter(e, member, len.saturating_add(3) & !3)?;
            e.with_origin(len, content)?;
            e.align(4)
        }
        Representation::Xcdr2 => {
            let flag = if member.must_understand { EM_FLAG_MUST_UNDERSTAND } else { 0 };
            e.write_u32(flag | u32::from(length_code) << 28 | member.id)?;
            if length_code == LC_NEXTINT { e.delimited(content) } else { content.encode(e) }
        }
    }
}

/// Writes an optional member of a final or appendable type in XCDR1: a parameter of length 0 if the
/// value is absent.
#[inline]
pub(crate) fn write_optional<S: Sink>(
    e: &mut Encoder<S>,
    member: Member,
    content: Option<&impl Content>,
) -> Result<(), EncodeError> {
    let Some(content) = content else {
        return write_parameter(e, member, 0);
    };
    let len = e.measure(content)?;
    write_parameter(e, member, len)?;
    e.with_origin(len, content)
}

/// Writes the header of an XCDR1 parameter, short if possible.
fn write_parameter<S: Sink>(e: &mut Encoder<S>, member: Member, len: usize) -> Result<(), EncodeError> {
    e.align(4)?;
    if let Ok(short) = u16::try_from(len)
        && member.id <= PID_SHORT_MAX
    {
        let flag = if member.must_understand { FLAG_MUST_UNDERSTAND } else { 0 };
        e.write_u16(flag | member.id as u16)?;
        return e.write_u16(short);
    }
    e.write_u16(FLAG_MUST_UNDERSTAND | PID_EXTENDED)?;
    e.write_u16(EXTENDED_LEN)?;
    let flag = if member.must_understand { LONG_FLAG_MUST_UNDERSTAND } else { 0 };
    e.write_u32(flag | member.id)?;
    e.write_len(len)
}

/// Ends the members of a mutable type in XCDR1.
pub(crate) fn write_list_end<S: Sink>(e: &mut Encoder<S>) -> Result<(), EncodeError> {
    e.align(4)?;
    e.write_u16(FLAG_MUST_UNDERSTAND | PID_LIST_END)?;
    e.write_u16(0)
}

/// Reads the header of the next member of a mutable type; `None` at the end of the members.
pub(crate) fn read(d: &mut Decoder<'_>) -> Result<Option<Header>, DecodeError> {
    match d.representation() {
        Representation::Xcdr1 => read_parameter(d),
        Representation::Xcdr2 => {
            if d.remaining() == 0 {
                return Ok(None);
            }
            read_em_header(d).map(Some)
        }
    }
}

/// Reads the header of an XCDR1 parameter; `None` at the end of the list.
pub(crate) fn read_parameter(d: &mut Decoder<'_>) -> Result<Option<Header>, DecodeError> {
    d.align(4)?;
    let first = d.read_u16()?;
    let len = d.read_u16()?;
    let pid = first & PID_MASK;
    // XTypes 1.3 §7.4.1.2: readers accept any setting of the flag on PID_EXTENDED and PID_LIST_END.
    match pid {
        PID_LIST_END if first & FLAG_IMPL_EXTENSION == 0 => Ok(None),
        PID_EXTENDED if first & FLAG_IMPL_EXTENSION == 0 => {
            if len != EXTENDED_LEN {
                return Err(d.error(DecodeErrorKind::Header));
            }
            let id = d.read_u32()?;
            let len = d.read_u32()? as usize;
            let foreign = if id & LONG_FLAG_IMPL_EXTENSION == 0 { 0 } else { FOREIGN_ID };
            let must_understand = id & LONG_FLAG_MUST_UNDERSTAND != 0;
            Ok(Some(Header { id: id & ID_MASK | foreign, must_understand, len }))
        }
        _ => {
            let foreign = first & FLAG_IMPL_EXTENSION != 0 || u32::from(pid) > PID_SHORT_MAX;
            let id = u32::from(pid) | if foreign { FOREIGN_ID } else { 0 };
            let must_understand = first & FLAG_MUST_UNDERSTAND != 0 && pid != PID_IGNORE;
            Ok(Some(Header { id, must_understand, len: usize::from(len) }))
        }
    }
}

fn read_em_header(d: &mut Decoder<'_>) -> Result<Header, DecodeError> {
    let word = d.read_u32()?;
    let len = match (word >> 28) & 7 {
        code @ 0..=3 => 1_usize << code,
        4 => d.read_u32()? as usize,
        code => {
            // The length is also the count at the start of the member, so it is not consumed.
            let count = d.peek_u32()? as usize;
            let unit = [1_usize, 4, 8][code as usize - 5];
            match count.checked_mul(unit).and_then(|len| len.checked_add(4)) {
                Some(len) => len,
                None => return Err(d.error(DecodeErrorKind::Header)),
            }
        }
    };
    Ok(Header { id: word & ID_MASK, must_understand: word & EM_FLAG_MUST_UNDERSTAND != 0, len })
}

/// Advances a worst-case position past a member of a mutable type.
pub(crate) fn extend(extent: Extent, id: u32, length_code: u8, content: impl FnOnce(Extent) -> Extent) -> Extent {
    match extent.representation() {
        Representation::Xcdr1 => extend_parameter(extent, id, |extent| content(extent).add(4, 0)),
        Representation::Xcdr2 => content(extent.add(4, if length_code == LC_NEXTINT { 8 } else { 4 })),
    }
}

/// Advances a worst-case position past an XCDR1 parameter.
pub(crate) fn extend_parameter(extent: Extent, id: u32, content: impl FnOnce(Extent) -> Extent) -> Extent {
    match content(extent.restarted()).end() {
        None => extent.unbounded(),
        Some(len) => {
            let short = id <= PID_SHORT_MAX && len <= usize::from(u16::MAX);
            extent.add(4, if short { 4 } else { 12 }).add(1, len)
        }
    }
}
