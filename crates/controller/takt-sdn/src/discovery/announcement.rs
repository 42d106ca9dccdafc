//! Submessages that the interceptor writes: disposals, incompatible announcements, GAPs and
//! fragments.

use takt_wire::builder::{DataEmit, DataFragEmit, MessageBuilder};
use takt_wire::cursor::Endianness;
use takt_wire::discovery::{ENCAPSULATION_LEN, PID_TAKT_REFUSAL, key_payload, put_refusal};
use takt_wire::inline_qos::{InlineQosBuilder, STATUS_INFO_DISPOSED, STATUS_INFO_UNREGISTERED};
use takt_wire::message::{HEADER_LEN, Header};
use takt_wire::parameter::{
    FLAG_MUST_UNDERSTAND, PID_LATENCY_BUDGET, PID_OWNERSHIP, ParameterList, ParameterListBuilder,
};
use takt_wire::qos::Ownership;
use takt_wire::{
    Duration, EntityId, Full, Gap, Guid, GuidPrefix, Heartbeat, Payload, ProtocolVersion, SequenceNumber,
    SequenceNumberSet, VendorId,
};

/// Fragment size of announcements that the interceptor itself fragments.
const FRAGMENT_LEN: u16 = 1024;

/// Maximum length of an announcement in a single DATA.
const DATA_LEN_MAX: usize = 1300;

/// Builds submessages without the RTPS header. They must fit into `len` octets.
fn submessages(len: usize, write: impl FnOnce(&mut MessageBuilder<'_>) -> Result<(), Full>) -> Vec<u8> {
    let header = Header { version: ProtocolVersion::V2_5, vendor: VendorId::TAKT, prefix: GuidPrefix::UNKNOWN };
    let mut buffer = vec![0; HEADER_LEN + len];
    let mut builder = MessageBuilder::new(&mut buffer, &header).expect("the buffer has space for the header");
    write(&mut builder).expect("the buffer has space for the submessages");
    let end = builder.len();
    buffer.truncate(end);
    buffer.split_off(HEADER_LEN)
}

/// Returns the SEDP reader that corresponds to an SEDP writer.
pub(super) fn reader_of(writer: EntityId) -> EntityId {
    if writer == EntityId::SEDP_PUB_WRITER { EntityId::SEDP_PUB_READER } else { EntityId::SEDP_SUB_READER }
}

/// Builds a DATA, or DATA_FRAGs for a long announcement or one that arrived in fragments. Each is
/// sent in a message of its own.
pub(super) fn data(writer: EntityId, number: i64, payload: &[u8], fragment_len: Option<u16>) -> Vec<Vec<u8>> {
    let (reader, sn) = (reader_of(writer), SequenceNumber(number));
    if fragment_len.is_none() && payload.len() <= DATA_LEN_MAX {
        let emit = DataEmit { reader, writer, sn, inline_qos: None, payload: Payload::Data(payload) };
        return vec![submessages(payload.len() + 64, |builder| builder.data(&emit))];
    }
    let fragment_size = fragment_len.unwrap_or(FRAGMENT_LEN).clamp(256, FRAGMENT_LEN);
    let sample_size = u32::try_from(payload.len()).expect("the length of announcements is limited");
    let pieces = payload.chunks(usize::from(fragment_size)).zip(1..);
    let fragments = pieces.map(|(payload, fragment_starting_num)| {
        let emit = DataFragEmit {
            reader,
            writer,
            sn,
            fragment_starting_num,
            fragment_size,
            sample_size,
            inline_qos: None,
            key: false,
            payload,
            fragments_in_submessage: 1,
        };
        submessages(payload.len() + 64, |builder| builder.data_frag(&emit))
    });
    fragments.collect()
}

/// Builds a DATA that disposes of an endpoint and unregisters it (RTPS 2.5 §8.5.4). The key is in
/// the payload and in the inline QoS, since vendors read either of them.
pub(super) fn disposal(writer: EntityId, number: i64, endpoint: Guid) -> Vec<u8> {
    let mut inline = InlineQosBuilder::<64>::new();
    inline.key_hash(endpoint.to_bytes()).expect("the buffer has space");
    inline.status_info(STATUS_INFO_DISPOSED | STATUS_INFO_UNREGISTERED).expect("the buffer has space");
    let inline_qos = Some(inline.finish().expect("the buffer has space"));
    let key = key_payload(endpoint);
    let sn = SequenceNumber(number);
    let emit = DataEmit { reader: reader_of(writer), writer, sn, inline_qos, payload: Payload::Key(&key) };
    submessages(256, |builder| builder.data(&emit))
}

/// Builds a GAP for one sequence number.
pub(super) fn gap(writer: EntityId, number: i64) -> Vec<u8> {
    gaps(writer, &[(number, SequenceNumberSet::new(SequenceNumber(number.saturating_add(1))))])
}

/// Builds GAPs, each of an interval and a set.
pub(super) fn gaps(writer: EntityId, gaps: &[(i64, SequenceNumberSet)]) -> Vec<u8> {
    submessages(gaps.len() * 128, |builder| {
        for (start, gap_list) in gaps {
            let gap_start = SequenceNumber(*start);
            builder.gap(&Gap { reader: reader_of(writer), writer, gap_start, gap_list: *gap_list })?;
        }
        Ok(())
    })
}

/// Builds a HEARTBEAT that requests an ACKNACK.
pub(super) fn heartbeat(writer: EntityId, first: i64, last: i64, count: i32) -> Vec<u8> {
    let heartbeat = Heartbeat {
        reader: reader_of(writer),
        writer,
        first_sn: SequenceNumber(first),
        last_sn: SequenceNumber(last),
        count,
        is_final: false,
        liveliness: false,
        group: None,
    };
    submessages(64, |builder| builder.heartbeat(&heartbeat))
}

/// Modifies the announcement of an endpoint so that no endpoint is compatible with it. OWNERSHIP
/// gets the other kind, and it must be equal at both ends (DDS 1.4 §2.2.3.9). A writer also gets an
/// infinite LATENCY_BUDGET, which only a reader with an infinite one accepts (DDS 1.4 §2.2.3.8).
/// All other parameters stay. `reason` is for participants of Takt. Returns `None` if the payload
/// is not a parameter list, which cannot happen for an announcement that was parsed before.
pub(super) fn incompatible(
    payload: &[u8],
    ownership: Ownership,
    is_writer: bool,
    reason: Option<&str>,
) -> Option<Vec<u8>> {
    let (encapsulation, list) = payload.split_at_checked(ENCAPSULATION_LEN)?;
    let endianness = Endianness::from_flags(encapsulation[1]);
    let (list, _) = ParameterList::parse(list, endianness).ok()?;
    let mut changed = ParameterListBuilder::after(encapsulation.to_vec(), endianness);
    for parameter in list {
        if [PID_OWNERSHIP, PID_TAKT_REFUSAL].contains(&parameter.pid)
            || (is_writer && parameter.pid == PID_LATENCY_BUDGET)
        {
            continue;
        }
        let flag = if parameter.must_understand { FLAG_MUST_UNDERSTAND } else { 0 };
        changed.put(parameter.pid | flag, |value| value.bytes(parameter.value));
    }
    let other = if ownership == Ownership::Shared { 1 } else { 0 };
    changed.put(PID_OWNERSHIP, |value| value.u32(other));
    if is_writer {
        changed.put(PID_LATENCY_BUDGET, |value| value.duration(Duration::INFINITE));
    }
    if let Some(reason) = reason {
        put_refusal(&mut changed, reason);
    }
    Some(changed.finish())
}
