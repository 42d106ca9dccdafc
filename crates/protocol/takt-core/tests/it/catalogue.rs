//! Catalogue of malformed input: every class that has publicly broken a DDS implementation and
//! reaches this crate.
//!
//! Each entry is one datagram, named after the report, with the counter that it increments. The
//! bytes are also the seeds of `lab/fuzz/`.

use crate::puppet::*;
use takt_core::*;
use takt_wire::discovery::{ParticipantData, key_payload};
use takt_wire::inline_qos::InlineQosBuilder;
use takt_wire::message::Payload;
use takt_wire::parameter::ParameterListBuilder;
use takt_wire::parameter::pid::*;
use takt_wire::qos::Partition;
use takt_wire::{DataEmit, Endianness, EntityId, Guid, Locator, SequenceNumber};

/// Counter that a datagram increments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// Not an RTPS message.
    Message,
    /// Number of malformed submessages.
    Submessages(u64),
    /// Unknown submessages, skipped.
    Unknown(u64),
    /// Discovery data that cannot be used.
    Discovery,
    /// Remote locator that may not be sent to, so the participant is not reachable.
    Locator,
    /// Remote entity without room or without a path.
    Entity,
    /// Sample of an unmatched writer.
    Unmatched,
    /// Sample whose key cannot be decoded.
    Key,
    /// Sample far beyond the next one.
    OutOfWindow,
    /// Acknowledgment of samples that were never sent.
    Stale,
    /// No counter: the datagram is valid, or has no content.
    Nothing,
}

pub struct Case {
    pub name: &'static str,
    pub trace: Trace,
    pub datagram: Vec<u8>,
}

/// Entity IDs of the senders of the cases.
pub const WRITER: EntityId = EntityId::user_writer(1, false);
pub const READER: EntityId = EntityId::user_reader(1, false);
/// Addressed local writer, created after a reader.
pub const VICTIM: EntityId = EntityId::user_writer(2, false);

/// Returns a submessage, little-endian unless its flags state otherwise.
fn raw(id: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    raw_with_len(id, flags, body.len() as u16, body)
}

/// Returns a submessage with a wrong length.
fn raw_with_len(id: u8, flags: u8, len: u16, body: &[u8]) -> Vec<u8> {
    let len = if flags & 1 == 1 { len.to_le_bytes() } else { len.to_be_bytes() };
    [&[id, flags, len[0], len[1]], body].concat()
}

fn sn(number: i64) -> [u8; 8] {
    let (high, low) = ((number >> 32) as i32, number as u32);
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&high.to_le_bytes());
    bytes[4..].copy_from_slice(&low.to_le_bytes());
    bytes
}

/// Returns the entity IDs of reader and writer, with which most submessages begin.
fn ids(reader: EntityId, writer: EntityId) -> [u8; 8] {
    let (r, w) = (reader.0, writer.0);
    [r[0], r[1], r[2], r[3], w[0], w[1], w[2], w[3]]
}

/// Returns a DATA with the given flags, octetsToInlineQos and bytes after the fixed part.
fn raw_data(flags: u8, to_inline_qos: u16, rest: &[u8]) -> Vec<u8> {
    let offset = to_inline_qos.to_le_bytes();
    raw(0x15, flags, &[&[0, 0], &offset[..], &ids(EntityId::UNKNOWN, WRITER), &sn(1), rest].concat())
}

struct Frag {
    flags: u8,
    to_inline_qos: u16,
    first: u32,
    count: u16,
    size: u16,
    sample_size: u32,
}

const FRAG: Frag = Frag { flags: 1, to_inline_qos: 28, first: 1, count: 1, size: 1_000, sample_size: 3_000 };

/// Returns a DATA_FRAG with the given fields.
fn raw_frag(frag: &Frag, rest: &[u8]) -> Vec<u8> {
    let body = [
        &[0, 0],
        &frag.to_inline_qos.to_le_bytes()[..],
        &ids(EntityId::UNKNOWN, WRITER),
        &sn(1),
        &frag.first.to_le_bytes(),
        &frag.count.to_le_bytes(),
        &frag.size.to_le_bytes(),
        &frag.sample_size.to_le_bytes(),
        rest,
    ];
    raw(0x16, frag.flags, &body.concat())
}

/// Returns a set of sequence numbers with the given number of bits.
fn raw_set(base: i64, num_bits: u32, words: &[u32]) -> Vec<u8> {
    let mut bytes = sn(base).to_vec();
    bytes.extend_from_slice(&num_bits.to_le_bytes());
    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes
}

fn raw_heartbeat(first: i64, last: i64, count: i32) -> Vec<u8> {
    raw(0x07, 1, &[&ids(EntityId::UNKNOWN, WRITER)[..], &sn(first), &sn(last), &count.to_le_bytes()].concat())
}

fn raw_gap(start: i64, list: &[u8]) -> Vec<u8> {
    raw(0x08, 1, &[&ids(EntityId::UNKNOWN, WRITER)[..], &sn(start), list].concat())
}

/// Returns an encapsulated parameter list written by `write`.
fn list(write: impl FnOnce(&mut ParameterListBuilder)) -> Vec<u8> {
    let mut list = ParameterListBuilder::after(vec![0, 3, 0, 0], Endianness::Little);
    write(&mut list);
    list.finish()
}

/// Returns the announcement of an unknown participant, with one more parameter in front.
fn announcement(unknown: &Puppet, pid: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = list(|list| list.put(pid, |writer| writer.bytes(value)));
    bytes.truncate(bytes.len() - 4);
    bytes.extend_from_slice(&unknown.announcement().to_bytes()[4..]);
    bytes
}

/// Returns the peer's announcement of a writer, with one more parameter in front.
fn endpoint(peer: &Puppet, pid: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = list(|list| list.put(pid, |writer| writer.bytes(value)));
    bytes.truncate(bytes.len() - 4);
    bytes.extend_from_slice(&peer.publication(9, true).to_bytes()[4..]);
    bytes
}

/// Returns length and bytes of a string that claims to be longer than it is.
fn text(claimed: u32, bytes: &[u8]) -> Vec<u8> {
    [&claimed.to_le_bytes(), bytes].concat()
}

/// Numbers of the peer that `Stage` is matched with, and of an unknown participant.
pub const PEER: usize = 1;
pub const STRANGER: usize = 2;

/// Returns all cases.
pub fn cases() -> Vec<Case> {
    let (peer, unknown) = (Puppet::of_ours(PEER), Puppet::of_ours(STRANGER));
    let mut cases = Vec::new();
    framing(&peer, &mut cases);
    data(&peer, &mut cases);
    sequence_numbers_and_payloads(&peer, &mut cases);
    fragments(&peer, &mut cases);
    control(&peer, &mut cases);
    participants(&peer, &unknown, &mut cases);
    endpoints(&peer, &mut cases);
    filters_and_assertions(&peer, &mut cases);
    cases
}

fn put(cases: &mut Vec<Case>, name: &'static str, trace: Trace, from: &Puppet, submessages: &[Vec<u8>]) {
    let mut datagram = from.datagram(|_| {});
    submessages.iter().for_each(|submessage| datagram.extend_from_slice(submessage));
    cases.push(Case { name, trace, datagram });
}

fn framing(peer: &Puppet, cases: &mut Vec<Case>) {
    let ping = raw_heartbeat(1, 0, 100);
    put(cases, "cyclonedds-2402-header-alone", Trace::Nothing, peer, &[]);
    put(
        cases,
        "cve-2021-38445-submessage-longer-than-message",
        Trace::Submessages(1),
        peer,
        &[raw_with_len(7, 1, 400, &ping[4..])],
    );
    put(
        cases,
        "int2dds-388-three-bytes-behind-the-last-submessage",
        Trace::Submessages(1),
        peer,
        &[ping.clone(), vec![7, 1, 0]],
    );
    put(
        cases,
        "int2dds-388-length-not-a-multiple-of-four",
        Trace::Submessages(1),
        peer,
        &[raw(7, 1, &ping[4..31]), ping.clone()],
    );
    put(
        cases,
        "cve-2026-45098-secure-body-beyond-the-end",
        Trace::Unknown(5),
        peer,
        &[
            raw(0x30, 1, &[0xff; 20]),
            raw(0x31, 1, &[0; 24]),
            raw(0x32, 1, &[0xff; 8]),
            raw(0x33, 1, &[0; 24]),
            raw(0x34, 1, &[0xff; 24]),
        ],
    );
    put(
        cases,
        "rustdds-404-info-reply",
        Trace::Submessages(1),
        peer,
        &[raw(0x0f, 3, &0x1000_0000_u32.to_le_bytes()), ping],
    );
    let mut not_rtps = peer.datagram(|_| {});
    not_rtps[0] = b'X';
    cases.push(Case { name: "not-rtps", trace: Trace::Message, datagram: not_rtps });
    cases.push(Case {
        name: "header-cut-short",
        trace: Trace::Message,
        datagram: peer.datagram(|_| {})[..19].to_vec(),
    });
}

fn data(peer: &Puppet, cases: &mut Vec<Case>) {
    let one = Trace::Submessages(1);
    let big_endian = [&[0, 0, 0, 16][..], &ids(EntityId::UNKNOWN, WRITER), &[0, 0, 0, 0, 0, 0, 0, 1]].concat();
    put(
        cases,
        "cyclonedds-1555-length-zero-big-endian-inline-qos",
        one,
        peer,
        &[raw_with_len(0x15, 2, 0, &big_endian)],
    );
    put(cases, "cve-2023-42459-16784-inline-qos-offset-zero", one, peer, &[raw_data(0x17, 0, &[0; 4])]);
    put(
        cases,
        "cve-2024-28231-shorter-than-its-inline-qos",
        one,
        peer,
        &[raw_data(7, 16, &[0x70, 0, 0x10, 0, 1, 2, 3, 4])],
    );
    put(
        cases,
        "rustdds-277-fixed-part-cut-short",
        one,
        peer,
        &[raw(0x15, 5, &[0, 0, 16, 0, 0, 0, 1, 7, 0, 0, 1, 3, 0, 0, 0, 0])],
    );
    put(cases, "rustdds-278-inline-qos-offset-beyond-the-end", one, peer, &[raw_data(7, 50, &[0; 8])]);
    put(cases, "rustdds-279-inline-qos-offset-far-beyond-the-end", one, peer, &[raw_data(7, 0xfffc, &[0; 8])]);
    put(cases, "opendds-4009-inline-qos-without-sentinel", one, peer, &[raw_data(7, 16, &[0x71, 0, 4, 0, 0, 0, 0, 1])]);
    put(
        cases,
        "int2dds-388-negative-parameter-length",
        one,
        peer,
        &[raw_data(7, 16, &[0x71, 0, 0xfc, 0xff, 0, 0, 0, 1])],
    );
}

fn sequence_numbers_and_payloads(peer: &Puppet, cases: &mut Vec<Case>) {
    let one = Trace::Submessages(1);
    put(
        cases,
        "cve-2023-39949-sequence-number-zero",
        one,
        peer,
        &[{
            let mut data = raw_data(5, 16, &[0, 1, 0, 0]);
            data[16..24].copy_from_slice(&sn(0));
            data
        }],
    );
    put(
        cases,
        "sequence-number-negative",
        one,
        peer,
        &[{
            let mut data = raw_data(5, 16, &[0, 1, 0, 0]);
            data[16..24].copy_from_slice(&sn(-1));
            data
        }],
    );
    put(cases, "sample-and-key-at-once", one, peer, &[raw_data(0x0d, 16, &[0, 1, 0, 0, 1, 2, 3, 4])]);
    put(cases, "payload-without-encapsulation", one, peer, &[raw_data(5, 16, &[])]);
    put(
        cases,
        "key-hash-cut-short",
        one,
        peer,
        &[raw_data(7, 16, &[0x70, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 0, 0, 0, 1, 0, 0])],
    );
    put(
        cases,
        "cve-2025-62603-stateless-message",
        Trace::Unmatched,
        peer,
        &[{
            let mut data = raw_data(5, 16, &[&[0, 1, 0, 0][..], &u32::MAX.to_le_bytes()].concat());
            data[12..16].copy_from_slice(&[0, 2, 1, 0xc3]);
            data
        }],
    );
    put(
        cases,
        "sequence-number-far-ahead",
        Trace::OutOfWindow,
        peer,
        &[{
            let mut data = raw_data(5, 16, &[0, 1, 0, 0]);
            data[16..24].copy_from_slice(&sn(i64::MAX));
            data
        }],
    );
}

fn fragments(peer: &Puppet, cases: &mut Vec<Case>) {
    let one = Trace::Submessages(1);
    let bytes = vec![7; 1_000];
    put(
        cases,
        "cve-2023-50716-20140-inline-qos-offset-zero",
        one,
        peer,
        &[raw_frag(&Frag { flags: 0x17, to_inline_qos: 0, ..FRAG }, &[])],
    );
    put(cases, "cve-2025-65865-nothing-behind-the-fixed-part", one, peer, &[raw_frag(&FRAG, &[])]);
    put(
        cases,
        "cve-2026-22590-more-fragments-than-bytes",
        one,
        peer,
        &[raw_frag(&Frag { count: 8, size: 65_504, sample_size: 8 * 65_504, ..FRAG }, &[0, 1, 0, 0])],
    );
    put(
        cases,
        "cve-2025-62799-last-fragment-longer-than-the-rest",
        Trace::Nothing,
        peer,
        &[raw_frag(&Frag { first: 2, size: 50_002, sample_size: 50_003, ..FRAG }, &bytes)],
    );
    put(
        cases,
        "cyclonedds-7d7f55031-fragment-number-at-the-end",
        one,
        peer,
        &[raw_frag(&Frag { first: u32::MAX, count: 2, ..FRAG }, &bytes)],
    );
    put(cases, "fragment-number-zero", one, peer, &[raw_frag(&Frag { first: 0, ..FRAG }, &bytes)]);
    put(cases, "fragment-size-zero", one, peer, &[raw_frag(&Frag { size: 0, ..FRAG }, &bytes)]);
    put(cases, "no-fragments", one, peer, &[raw_frag(&Frag { count: 0, ..FRAG }, &bytes)]);
    put(cases, "fragment-behind-the-sample", one, peer, &[raw_frag(&Frag { first: 4, ..FRAG }, &bytes)]);
    let mut huge = Vec::new();
    for number in 1..=8_u8 {
        let mut frag = raw_frag(&Frag { sample_size: u32::MAX, size: 60, ..FRAG }, &[7; 60]);
        frag[16..24].copy_from_slice(&sn(i64::from(number)));
        huge.push(frag);
    }
    put(cases, "half-open-samples-of-four-gigabytes", Trace::Nothing, peer, &huge);
    let nack = [
        &ids(READER, VICTIM)[..],
        &sn(77),
        &1_u32.to_le_bytes(),
        &1_u32.to_le_bytes(),
        &u32::MAX.to_le_bytes(),
        &1_u32.to_le_bytes(),
    ];
    put(cases, "int2dds-388-nack-frag-of-a-change-never-sent", Trace::Stale, peer, &[raw(0x12, 1, &nack.concat())]);
    let nack = [
        &ids(READER, VICTIM)[..],
        &sn(1),
        &1_u32.to_le_bytes(),
        &257_u32.to_le_bytes(),
        &[0xff; 36],
        &1_u32.to_le_bytes(),
    ];
    put(cases, "nack-frag-of-more-than-256", one, peer, &[raw(0x12, 1, &nack.concat())]);
}

fn control(peer: &Puppet, cases: &mut Vec<Case>) {
    let one = Trace::Submessages(1);
    let acknack = |set: Vec<u8>| raw(0x06, 1, &[&ids(READER, VICTIM)[..], &set, &5_i32.to_le_bytes()].concat());
    put(cases, "cve-2020-18734-acknack-of-more-than-256", one, peer, &[acknack(raw_set(1, 0x1000, &[u32::MAX; 16]))]);
    put(cases, "cve-2020-18734-gap-of-more-than-256", one, peer, &[raw_gap(1, &raw_set(2, 257, &[u32::MAX; 9]))]);
    put(cases, "rustdds-281-set-of-ones", one, peer, &[acknack(vec![0xff; 48])]);
    put(cases, "set-shorter-than-its-bits", one, peer, &[acknack(raw_set(1, 256, &[1]))]);
    put(cases, "set-beyond-the-last-number", one, peer, &[acknack(raw_set(i64::MAX, 1, &[u32::MAX]))]);
    put(cases, "acknowledgment-of-what-was-never-sent", Trace::Stale, peer, &[acknack(raw_set(1_000_000, 0, &[]))]);
    put(cases, "cve-2023-39534-gap-from-zero", one, peer, &[raw_gap(0, &raw_set(2, 0, &[]))]);
    put(cases, "cve-2023-39534-gap-from-below-zero", one, peer, &[raw_gap(-5, &raw_set(2, 0, &[]))]);
    put(
        cases,
        "cve-2023-39534-gap-that-ends-before-it-begins",
        Trace::Nothing,
        peer,
        &[raw_gap(900, &raw_set(800, 0, &[]))],
    );
    put(
        cases,
        "cve-2025-64438-gap-without-an-end",
        Trace::Nothing,
        peer,
        &[raw_gap(2, &raw_set(i64::MAX - 256, 256, &[0x8000_0001; 8]))],
    );
    put(cases, "cve-2025-65016-heartbeat-without-an-end", Trace::Nothing, peer, &[raw_heartbeat(1, i64::MAX, 100)]);
    put(cases, "cyclonedds-7d893496d-heartbeat-at-the-end", one, peer, &[raw_heartbeat(i64::MAX, i64::MIN, 100)]);
    put(cases, "heartbeat-from-zero", one, peer, &[raw_heartbeat(0, 10, 100)]);
    put(cases, "heartbeat-that-ends-before-it-begins", one, peer, &[raw_heartbeat(10, 8, 100)]);
    let flood: Vec<_> = (0..1_000).map(|count| raw_heartbeat(1, 5, 100 + count)).collect();
    put(cases, "cve-2021-38447-heartbeats-by-the-thousand", Trace::Nothing, peer, &flood);
    let frag = [&ids(EntityId::UNKNOWN, WRITER)[..], &sn(1), &0_u32.to_le_bytes(), &1_u32.to_le_bytes()];
    put(cases, "heartbeat-frag-of-fragment-zero", one, peer, &[raw(0x13, 1, &frag.concat())]);
    put(cases, "infinite-time-stamp", one, peer, &[raw(0x09, 1, &[0xff, 0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff])]);
}

fn participants(peer: &Puppet, unknown: &Puppet, cases: &mut Vec<Case>) {
    let spdp = |payload: &[u8]| {
        let mut data = raw_data(5, 16, payload);
        data[12..16].copy_from_slice(&EntityId::SPDP_WRITER.0);
        data
    };
    let mut add = |name, trace, payload: &[u8]| put(cases, name, trace, unknown, &[spdp(payload)]);
    let moved = |locator: Locator| {
        let data = ParticipantData { metatraffic_unicast: vec![locator], ..unknown.announcement() };
        let mut bytes = data.to_bytes();
        // Serialization omits an unusable locator, so it is patched in.
        let valid = Locator { port: 7, ..unknown.address }.to_bytes(Endianness::Little);
        let at = bytes.windows(24).position(|window| *window == valid);
        if let Some(at) = at {
            bytes[at..at + 24].copy_from_slice(&locator.to_bytes(Endianness::Little));
        }
        bytes
    };
    let third_party = Locator::udp_v4(std::net::Ipv4Addr::new(192, 0, 2, 1), 53);
    add("cve-2021-38425-locator-of-a-third-party", Trace::Locator, &moved(third_party));
    add("cyclonedds-1772-locator-with-port-zero", Trace::Entity, &moved(Locator { port: 0, ..unknown.address }));
    add("rustdds-286-locator-port-beyond-16-bits", Trace::Entity, &moved(Locator { port: 70_000, ..unknown.address }));
    add("cve-2023-39945-parameter-beyond-the-end", Trace::Discovery, &[0, 3, 0, 0, 0x50, 0, 0x10, 0, 1, 2, 3, 4]);
    add(
        "cve-2023-39946-property-longer-than-its-parameter",
        Trace::Discovery,
        &announcement(unknown, PID_PROPERTY_LIST, &[&1_u32.to_le_bytes()[..], &text(0x7fff_fff0, b"name")].concat()),
    );
    add(
        "cve-2023-39947-properties-by-the-billion",
        Trace::Discovery,
        &announcement(unknown, PID_PROPERTY_LIST, &[0xff; 16]),
    );
    add(
        "cve-2024-30258-identity-token-of-any-length",
        Trace::Nothing,
        &announcement(unknown, 0x1001, &[&text(4, b"abc\0")[..], &[0xff; 16]].concat()),
    );
    add("cve-2025-62599-permissions-token-of-any-length", Trace::Nothing, &announcement(unknown, 0x1002, &[0xff; 32]));
    add(
        "cve-2025-63829-lease-beyond-a-second-of-fraction",
        Trace::Nothing,
        &announcement(unknown, PID_PARTICIPANT_LEASE_DURATION, &[0xff; 8]),
    );
    add("discovery-must-understand-the-unknown", Trace::Discovery, &announcement(unknown, 0x7234, &[0; 4]));
    add("discovery-not-a-list", Trace::Discovery, &[0, 1, 0, 0, 1, 2, 3, 4]);
    add("discovery-nobody", Trace::Discovery, &[0, 3, 0, 0, 1, 0, 0, 0]);
    add("discovery-somebody-else", Trace::Discovery, &peer.announcement().to_bytes());
    let mut inline = InlineQosBuilder::<32>::new();
    inline.status_info(3).expect("it fits");
    let inline_qos = inline.finish().expect("it fits").to_vec();
    let farewell = key_payload(peer.guid(EntityId::PARTICIPANT));
    let datagram = unknown.datagram(|message| {
        let payload = Payload::Key(&farewell);
        let (reader, writer) = (EntityId::UNKNOWN, EntityId::SPDP_WRITER);
        let sn = SequenceNumber(1);
        message.data(&DataEmit { reader, writer, sn, inline_qos: Some(&inline_qos), payload }).expect("it fits");
    });
    cases.push(Case { name: "cve-2023-50257-farewell-of-somebody-else", trace: Trace::Discovery, datagram });
    let mut announcements = Vec::new();
    for number in 0..150_u8 {
        let mut member = Puppet::of_ours(STRANGER);
        member.prefix.0[0] = number;
        member.prefix.0[1] = 0xee;
        announcements.push(raw(0x0c, 1, &[&[0, 0, 0, 0, 2, 5, 1, 0x7a][..], &member.prefix.0].concat()));
        announcements.push(spdp(&member.announcement().to_bytes()));
    }
    put(cases, "cve-2026-45092-participants-by-the-hundred", Trace::Nothing, unknown, &announcements);
}

/// Returns the second change of a builtin writer.
fn builtin(writer: EntityId, payload: &[u8]) -> Vec<u8> {
    let mut data = raw_data(5, 16, payload);
    data[12..16].copy_from_slice(&writer.0);
    data[16..24].copy_from_slice(&sn(2));
    data
}

fn endpoints(peer: &Puppet, cases: &mut Vec<Case>) {
    let mut add =
        |name, trace, payload: &[u8]| put(cases, name, trace, peer, &[builtin(EntityId::SEDP_PUB_WRITER, payload)]);
    let count = |count: u32| count.to_le_bytes();
    add(
        "cve-2020-18735-topic-name-longer-than-its-parameter",
        Trace::Discovery,
        &endpoint(peer, PID_TOPIC_NAME, &text(0xffff, b"T\0")),
    );
    add(
        "cve-2026-49861-representations-by-the-billion",
        Trace::Discovery,
        &endpoint(peer, PID_DATA_REPRESENTATION, &[&count(0x7fff_ffff)[..], &[0; 4]].concat()),
    );
    add("cve-2026-53589-partitions-by-the-billion", Trace::Discovery, &endpoint(peer, PID_PARTITION, &[0xff; 12]));
    add(
        "cve-2026-53590-partition-without-its-end",
        Trace::Discovery,
        &endpoint(peer, PID_PARTITION, &[&count(1)[..], &text(4, b"abcd")].concat()),
    );
    add(
        "cve-2023-23932-partition-that-is-no-text",
        Trace::Discovery,
        &endpoint(peer, PID_PARTITION, &[&count(1)[..], &text(4, &[0xc3, 0x28, 0xff, 0])].concat()),
    );
    add(
        "cve-2026-49862-type-information-of-any-length",
        Trace::Nothing,
        &endpoint(peer, PID_TYPE_INFORMATION, &[0xff; 64]),
    );
    add(
        "cve-2026-49863-user-data-longer-than-its-parameter",
        Trace::Discovery,
        &endpoint(peer, PID_USER_DATA, &[0xff, 0xff, 0xff, 0x7f, 1, 2, 3, 4]),
    );
    add("locator-cut-short", Trace::Discovery, &endpoint(peer, PID_UNICAST_LOCATOR, &[1, 0, 0, 0, 0, 0, 0, 0]));
    add("history-of-an-unknown-kind", Trace::Discovery, &endpoint(peer, PID_HISTORY, &[9, 0, 0, 0, 1, 0, 0, 0]));
    let mut patterns = peer.publication(9, true);
    patterns.partition = Partition { names: vec![format!("{}b", "a*".repeat(120)); 64] };
    add("partitions-that-are-patterns", Trace::Nothing, &patterns.to_bytes());
    let mut foreign = peer.publication(9, true);
    foreign.guid = Guid { prefix: takt_wire::GuidPrefix([9; 12]), ..foreign.guid };
    add("endpoint-of-somebody-else", Trace::Discovery, &foreign.to_bytes());
    let mut of_ours = peer.publication(9, true);
    of_ours.guid.entity_id = EntityId::SEDP_PUB_WRITER;
    add("endpoint-that-is-builtin", Trace::Discovery, &of_ours.to_bytes());
}

fn filters_and_assertions(peer: &Puppet, cases: &mut Vec<Case>) {
    let mut subscription = peer.subscription(9, true);
    let mut filter = takt_wire::discovery::ContentFilterProperty {
        filter_class_name: "DDSSQL".into(),
        filter_expression: format!("{}x = 1{}", "(".repeat(5_000), ")".repeat(5_000)),
        ..Default::default()
    };
    subscription.content_filter = Some(filter.clone());
    let nested = builtin(EntityId::SEDP_SUB_WRITER, &subscription.to_bytes());
    filter.filter_expression = "x = %0".into();
    filter.expression_parameters = vec!["1".into(); 101];
    subscription.content_filter = Some(filter);
    let many = builtin(EntityId::SEDP_SUB_WRITER, &subscription.to_bytes());
    let assertion = |payload: &[u8]| {
        let mut data = raw_data(5, 16, payload);
        data[12..16].copy_from_slice(&EntityId::P2P_MESSAGE_WRITER.0);
        data
    };
    put(cases, "cve-2026-22591-filter-nested-thousands-deep", Trace::Nothing, peer, &[nested]);
    put(cases, "filter-with-too-many-parameters", Trace::Discovery, peer, &[many]);
    put(
        cases,
        "cyclonedds-1751-participant-message-as-a-list",
        Trace::Key,
        peer,
        &[assertion(&list(|list| list.put(PID_ENTITY_NAME, |value| value.string("x"))))],
    );
    put(cases, "cyclonedds-1771-participant-message-without-a-body", Trace::Key, peer, &[assertion(&[0, 1, 0, 0])]);
    put(
        cases,
        "participant-message-longer-than-it-is",
        Trace::Discovery,
        peer,
        &[assertion(&[&[0, 1, 0, 0][..], &peer.prefix.0, &[0, 0, 0, 1], &[0xff; 4]].concat())],
    );
}

/// Returns which counter a datagram changed, and by how much.
pub fn trace_of(before: &Counters, after: &Counters) -> Trace {
    let moved = |counter: fn(&Counters) -> u64| counter(after) - counter(before);
    let traces = [
        (Trace::Message, moved(|c| c.malformed_messages)),
        (Trace::Submessages(moved(|c| c.malformed_submessages)), moved(|c| c.malformed_submessages)),
        (Trace::Unknown(moved(|c| c.unknown_submessages)), moved(|c| c.unknown_submessages)),
        (Trace::Discovery, moved(|c| c.malformed_discovery)),
        (Trace::Locator, moved(|c| c.refused_locators)),
        (Trace::Entity, moved(|c| c.refused_remote_entities)),
        (Trace::Key, moved(|c| c.undecodable_keys)),
        (Trace::Unmatched, moved(|c| c.unmatched_data)),
        (Trace::OutOfWindow, moved(|c| c.out_of_window)),
        (Trace::Stale, moved(|c| c.stale_acknowledgments)),
    ];
    traces.iter().find(|(_, moved)| *moved > 0).map_or(Trace::Nothing, |(trace, _)| *trace)
}
