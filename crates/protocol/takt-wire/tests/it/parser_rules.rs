//! Parser rules that reject malformed input, one test each, and the tolerances that
//! interoperability requires. Many of the inputs once crashed a DDS implementation.

use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};
use takt_wire::message::{MessageView, Payload, Submessage};
use takt_wire::parameter::*;
use takt_wire::{Endianness, SequenceNumber, Timestamp};

use crate::corpus::{discovery, message, submessage, usable};

const DATA: u8 = 0x15;
const DATA_FRAG: u8 = 0x16;
const HEARTBEAT: u8 = 0x07;
const HEARTBEAT_FRAG: u8 = 0x13;
const ACKNACK: u8 = 0x06;
const NACK_FRAG: u8 = 0x12;
const GAP: u8 = 0x08;
const INFO_TS: u8 = 0x09;
const PAD: u8 = 0x01;

/// Reader and writer ids.
const ENDS: [u8; 8] = [0, 0, 1, 7, 0, 0, 2, 2];
const SENTINEL: [u8; 4] = [1, 0, 0, 0];

fn number(number: i64) -> [u8; 8] {
    let bytes = number.to_be_bytes();
    let mut octets = [bytes[3], bytes[2], bytes[1], bytes[0], 0, 0, 0, 0];
    octets[4..].copy_from_slice(&[bytes[7], bytes[6], bytes[5], bytes[4]]);
    octets
}

/// Returns the error of the first submessage. The second submessage, which is valid, must still be
/// read.
fn what(first: &[u8]) -> &'static str {
    let bytes = message(&[first, &submessage(PAD, 0, &[])].concat());
    let mut items = MessageView::parse(&bytes).expect("the header is valid").submessages();
    let error = items.next().expect("there is one").expect_err("it is malformed");
    assert!(matches!(items.next(), Some(Ok(Submessage::Pad))), "the walk goes on");
    assert!(items.next().is_none());
    error.what
}

/// Returns the error of a submessage whose length is invalid. The iteration ends there.
fn what_ends_the_walk(submessages: &[u8]) -> &'static str {
    let bytes = message(submessages);
    let mut items = MessageView::parse(&bytes).expect("the header is valid").submessages();
    let error = loop {
        match items.next().expect("there is an error") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(items.next().is_none());
    error.what
}

fn accepted(id: u8, flags: u8, body: &[u8]) {
    let bytes = message(&submessage(id, flags, body));
    let items: Vec<_> = MessageView::parse(&bytes).expect("the header is valid").submessages().collect();
    assert!(matches!(items[..], [Ok(_)]), "{items:?}");
}

// Framing

#[test]
fn length_zero_reaches_to_the_end_of_the_message() {
    let heartbeat = [&ENDS[..], &number(1), &number(2), &[9, 0, 0, 0]].concat();
    let bytes = message(&[&[HEARTBEAT, 1, 0, 0][..], &heartbeat].concat());
    assert!(matches!(usable(&bytes)[..], [Submessage::Heartbeat(it)] if it.count == 9));
}

#[test]
fn length_zero_of_pad_and_info_ts_is_zero() {
    let bytes = message(&[PAD, 1, 0, 0, INFO_TS, 3, 0, 0, PAD, 1, 0, 0]);
    assert_eq!(usable(&bytes).len(), 3);
    assert_eq!(what(&[INFO_TS, 1, 0, 0]), "input is truncated");
}

#[test]
fn submessage_longer_than_the_message_ends_the_iteration() {
    let reason = "submessage is longer than the message";
    assert_eq!(what_ends_the_walk(&[PAD, 1, 5, 0, 0, 0, 0, 0]), reason);
    assert_eq!(what_ends_the_walk(&[PAD, 1, 0xff, 0xff]), reason);
    assert_eq!(what_ends_the_walk(&[PAD, 0, 0, 4]), reason, "big endian");
}

#[test]
fn trailing_octets_shorter_than_a_header_end_the_iteration() {
    for len in 1..4 {
        let bytes = [&[PAD, 1, 0, 0][..], &[PAD, 1, 0][..len]].concat();
        assert_eq!(what_ends_the_walk(&bytes), "input is truncated");
    }
}

#[test]
fn only_the_last_submessage_may_have_an_unaligned_end() {
    let reason = "submessage length is not a multiple of four";
    assert_eq!(what_ends_the_walk(&[PAD, 1, 2, 0, 0, 0, PAD, 1, 0, 0]), reason);
    accepted(PAD, 0, &[0, 0]);
}

#[test]
fn unknown_submessages_are_skipped() {
    let bytes = message(&[0x80, 1, 4, 0, 1, 2, 3, 4, 0x34, 1, 0, 0]);
    let seen = usable(&bytes);
    assert!(matches!(seen[..], [Submessage::Unknown { id: 0x80 }, Submessage::Unknown { id: 0x34 }]));
}

#[test]
fn message_may_consist_of_its_header_alone() {
    assert!(usable(&message(&[])).is_empty());
}

#[test]
fn header_extension_is_rejected_unless_it_is_first() {
    let extension = submessage(0, 0, &[]);
    assert_eq!(usable(&message(&extension)).len(), 1);
    let late = [&submessage(PAD, 0, &[])[..], &extension].concat();
    let bytes = message(&late);
    let last = MessageView::parse(&bytes).expect("the header is valid").submessages().last();
    assert!(matches!(last, Some(Err(error)) if error.what == "header extension is not the first submessage"));
}

// Sequence numbers and sets

#[test]
fn heartbeat_begins_at_one_or_later() {
    for first in [0, -1, i64::MIN] {
        let body = [&ENDS[..], &number(first), &number(5), &[1, 0, 0, 0]].concat();
        assert_eq!(what(&submessage(HEARTBEAT, 0, &body)), "sequence number is not positive");
    }
}

#[test]
fn heartbeat_ends_at_most_one_before_it_begins() {
    let body = |first, last| [&ENDS[..], &number(first), &number(last), &[1, 0, 0, 0]].concat();
    accepted(HEARTBEAT, 0, &body(1, 0));
    accepted(HEARTBEAT, 0, &body(7, 6));
    accepted(HEARTBEAT, 0, &body(i64::MAX, i64::MAX));
    accepted(HEARTBEAT, 0, &body(1, i64::MAX));
    for (first, last) in [(7, 5), (1, -1), (i64::MAX, 1), (1, i64::MIN)] {
        let reason = what(&submessage(HEARTBEAT, 0, &body(first, last)));
        assert_eq!(reason, "HEARTBEAT lastSN is below firstSN - 1");
    }
}

#[test]
fn heartbeat_with_group_info_needs_all_of_it() {
    let body = [&ENDS[..], &number(1), &number(5), &[1, 0, 0, 0], &[0; 28]].concat();
    assert_eq!(what(&submessage(HEARTBEAT, 0x08, &body)), "input is truncated");
}

fn acknack(base: i64, num_bits: u32, words: usize) -> Vec<u8> {
    let bitmap = vec![0xff; 4 * words];
    let set = [&number(base)[..], &num_bits.to_le_bytes(), &bitmap].concat();
    [&ENDS[..], &set, &[1, 0, 0, 0]].concat()
}

#[test]
fn sets_have_at_most_256_bits() {
    accepted(ACKNACK, 0, &acknack(1, 256, 8));
    let wide = "set spans more than 256 numbers";
    assert_eq!(what(&submessage(ACKNACK, 0, &acknack(1, 257, 9))), wide);
    assert_eq!(what(&submessage(ACKNACK, 0, &acknack(1, u32::MAX, 8))), wide);
    let gap = [&ENDS[..], &number(1), &number(2), &[0xff; 4], &[0xff; 64]].concat();
    assert_eq!(what(&submessage(GAP, 0, &gap)), wide);
    let nack = [&ENDS[..], &number(1), &[1, 0, 0, 0, 1, 1, 0, 0], &[0xff; 40]].concat();
    assert_eq!(what(&submessage(NACK_FRAG, 0, &nack)), wide);
}

#[test]
fn sets_need_the_bits_they_announce() {
    let short = acknack(1, 256, 7);
    assert_eq!(what(&submessage(ACKNACK, 0, &short[..short.len() - 4])), "input is truncated");
}

#[test]
fn sets_of_all_ones_are_malformed() {
    for id in [ACKNACK, GAP, NACK_FRAG] {
        let reason = what(&submessage(id, 0, &[0xff; 64]));
        assert!(!reason.is_empty());
    }
}

#[test]
fn sets_end_at_the_last_number() {
    let past = "sequence number set exceeds the largest number";
    assert_eq!(what(&submessage(ACKNACK, 0, &acknack(i64::MAX, 1, 1))), past);
    accepted(ACKNACK, 0, &acknack(i64::MAX, 0, 0));
    accepted(ACKNACK, 0, &acknack(i64::MAX - 256, 256, 8));
    let fragments = [&ENDS[..], &number(1), &[0xff; 4], &[1, 0, 0, 0], &[0; 8]].concat();
    let past = "fragment number set exceeds the largest number";
    assert_eq!(what(&submessage(NACK_FRAG, 0, &fragments)), past);
}

#[test]
fn acknack_with_base_zero_and_no_bits_acknowledges_nothing() {
    let bytes = message(&submessage(ACKNACK, 0, &acknack(0, 0, 0)));
    let seen = usable(&bytes);
    let [Submessage::AckNack(acknack)] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(acknack.reader_sn_state.base(), SequenceNumber::FIRST);
    assert!(acknack.reader_sn_state.is_empty());
}

#[test]
fn acknack_cannot_request_change_zero() {
    let reason = what(&submessage(ACKNACK, 0, &acknack(0, 1, 1)));
    assert_eq!(reason, "ACKNACK requests change 0");
    let reason = what(&submessage(ACKNACK, 0, &acknack(-1, 0, 0)));
    assert_eq!(reason, "base of a sequence number set is too low");
}

fn gap(start: i64, base: i64) -> Vec<u8> {
    [&ENDS[..], &number(start), &number(base), &[1, 0, 0, 0, 0, 0, 0, 0x80]].concat()
}

#[test]
fn gap_starts_at_one_or_later() {
    for start in [0, -1, i64::MIN] {
        assert_eq!(what(&submessage(GAP, 0, &gap(start, 5))), "sequence number is not positive");
    }
    for base in [0, -5] {
        let reason = what(&submessage(GAP, 0, &gap(1, base)));
        assert_eq!(reason, "base of a sequence number set is too low");
    }
}

#[test]
fn gap_whose_base_lies_before_its_start_has_no_interval() {
    let bytes = message(&submessage(GAP, 0, &gap(9, 4)));
    let seen = usable(&bytes);
    let [Submessage::Gap(gap)] = seen[..] else { panic!("{seen:?}") };
    assert_eq!(gap.gap_start, SequenceNumber(4));
    assert!(gap.gap_list.iter().eq([SequenceNumber(4)]));
}

#[test]
fn gap_may_be_huge_because_it_is_an_interval() {
    let bytes = message(&submessage(GAP, 0, &gap(1, i64::MAX - 1)));
    let seen = usable(&bytes);
    assert!(matches!(seen[..], [Submessage::Gap(gap)] if gap.gap_list.base().0 == i64::MAX - 1));
}

#[test]
fn numbers_of_changes_are_positive() {
    for sn in [0, -1, i64::MIN] {
        let reason = "sequence number is not positive";
        assert_eq!(what(&submessage(DATA, 0, &data(16, sn, &[]))), reason);
        assert_eq!(what(&submessage(DATA_FRAG, 0, &frag(sn, 1, 1, 4, 4, &[0; 4]))), reason);
        let heartbeat = [&ENDS[..], &number(sn), &[1, 0, 0, 0, 1, 0, 0, 0]].concat();
        assert_eq!(what(&submessage(HEARTBEAT_FRAG, 0, &heartbeat)), reason);
        let nack = [&ENDS[..], &number(sn), &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]].concat();
        assert_eq!(what(&submessage(NACK_FRAG, 0, &nack)), reason);
    }
}

#[test]
fn fragments_are_counted_from_one() {
    let heartbeat = [&ENDS[..], &number(1), &[0, 0, 0, 0, 1, 0, 0, 0]].concat();
    assert_eq!(what(&submessage(HEARTBEAT_FRAG, 0, &heartbeat)), "fragment number is zero");
    let nack = [&ENDS[..], &number(1), &[0; 12]].concat();
    let reason = what(&submessage(NACK_FRAG, 0, &nack));
    assert_eq!(reason, "base of a fragment number set is zero");
}

// DATA

/// Returns the body of a DATA.
fn data(octets_to_inline_qos: u16, sn: i64, rest: &[u8]) -> Vec<u8> {
    [&[0, 0][..], &octets_to_inline_qos.to_le_bytes(), &ENDS, &number(sn), rest].concat()
}

const Q: u8 = 0x02;
const D: u8 = 0x04;
const K: u8 = 0x08;
const N: u8 = 0x10;

#[test]
fn data_is_not_both_sample_and_key() {
    let reason = what(&submessage(DATA, D | K, &data(16, 1, &[0; 8])));
    assert_eq!(reason, "DATA carries both a sample and a key");
}

#[test]
fn data_in_an_unknown_encoding_is_refused() {
    let reason = "payload is not in a standard encoding";
    assert_eq!(what(&submessage(DATA, D | N, &data(16, 1, &[0; 8]))), reason);
    assert_eq!(what(&submessage(DATA_FRAG, 0x08, &frag(1, 1, 1, 4, 4, &[0; 4]))), reason);
}

#[test]
fn octets_to_inline_qos_stays_within_the_submessage() {
    let with = |octets| what(&submessage(DATA, D, &data(octets, 1, &[0; 8])));
    assert_eq!(with(18), "octetsToInlineQos is not a multiple of four");
    let own_fields = "octetsToInlineQos points into the submessage's own fields";
    assert_eq!(with(0), own_fields);
    assert_eq!(with(12), own_fields);
    assert_eq!(with(28), "octetsToInlineQos points beyond the submessage");
    assert_eq!(with(0xfffc), "octetsToInlineQos points beyond the submessage");
    accepted(DATA, D, &data(20, 1, &[0; 8]));
    let with = |octets| {
        let mut body = frag(1, 1, 1, 4, 4, &[0; 4]);
        body[2..4].copy_from_slice(&u16::to_le_bytes(octets));
        what(&submessage(DATA_FRAG, 0, &body))
    };
    assert_eq!(with(16), own_fields, "what is enough for DATA");
    assert_eq!(with(36), "octetsToInlineQos points beyond the submessage");
}

#[test]
fn inline_qos_ends_in_a_sentinel() {
    let no_sentinel = [0x71, 0, 4, 0, 0, 0, 0, 1];
    let reason = "parameter list has no sentinel";
    assert_eq!(what(&submessage(DATA, Q, &data(16, 1, &no_sentinel))), reason);
    assert_eq!(what(&submessage(DATA, Q, &data(16, 1, &[]))), reason);
    let longer_than_the_rest = [0x71, 0, 0xfc, 0xff, 0, 0, 0, 1];
    let reason = what(&submessage(DATA, Q | D, &data(16, 1, &longer_than_the_rest)));
    assert_eq!(reason, "input is truncated");
    accepted(DATA, Q, &data(16, 1, &SENTINEL));
}

#[test]
fn payload_has_an_encapsulation_header() {
    let reason = "payload is shorter than its encapsulation header";
    assert_eq!(what(&submessage(DATA, D, &data(16, 1, &[]))), reason);
    assert_eq!(what(&submessage(DATA, K, &data(16, 1, &[]))), reason);
    assert_eq!(what(&submessage(DATA, Q | D, &data(16, 1, &SENTINEL))), reason);
    let last_with_three = message(&submessage(DATA, D, &data(16, 1, &[0; 3])));
    let item = MessageView::parse(&last_with_three).expect("the header is valid").submessages().next();
    assert!(matches!(item, Some(Err(error)) if error.what == reason));
    accepted(DATA, D, &data(16, 1, &[0; 4]));
}

#[test]
fn data_shorter_than_its_own_fields_is_malformed() {
    for len in [0, 4, 8, 12, 16] {
        let body = &data(16, 1, &[])[..len];
        let bytes = message(&submessage(DATA, D, body));
        let mut items = MessageView::parse(&bytes).expect("the header is valid").submessages();
        assert!(matches!(items.next(), Some(Err(_))), "{len}");
    }
}

#[test]
fn endpoints_of_the_wrong_kind_are_not_malformed() {
    let mut body = data(16, 1, &[0; 4]);
    body[4..12].copy_from_slice(&[0xff; 8]);
    let bytes = message(&submessage(DATA, D, &body));
    assert!(matches!(usable(&bytes)[..], [Submessage::Data(data)] if data.payload == Payload::Data(&[0; 4])));
}

// DATA_FRAG

/// Returns the body of a DATA_FRAG.
fn frag(sn: i64, first: u32, count: u16, size: u16, sample: u32, rest: &[u8]) -> Vec<u8> {
    [
        &[0, 0, 28, 0][..],
        &ENDS,
        &number(sn),
        &first.to_le_bytes(),
        &count.to_le_bytes(),
        &size.to_le_bytes(),
        &sample.to_le_bytes(),
        rest,
    ]
    .concat()
}

fn what_frag(first: u32, count: u16, size: u16, sample: u32, rest: &[u8]) -> &'static str {
    what(&submessage(DATA_FRAG, 0, &frag(1, first, count, size, sample, rest)))
}

#[test]
fn fragments_have_a_number_a_size_and_a_count() {
    assert_eq!(what_frag(0, 1, 4, 8, &[0; 4]), "fragment number is zero");
    assert_eq!(what_frag(1, 0, 4, 8, &[0; 4]), "DATA_FRAG without a fragment");
    assert_eq!(what_frag(1, 1, 0, 8, &[0; 4]), "DATA_FRAG without a fragment");
}

#[test]
fn fragments_lie_within_their_sample() {
    let beyond_end = "fragment lies beyond the end of its sample";
    assert_eq!(what_frag(3, 1, 4, 8, &[0; 4]), beyond_end);
    assert_eq!(what_frag(2, 2, 4, 8, &[0; 8]), beyond_end);
    assert_eq!(what_frag(u32::MAX, u16::MAX, u16::MAX, u32::MAX, &[0; 8]), beyond_end);
    let short = "payload is shorter than its encapsulation header";
    assert_eq!(what_frag(1, 1, 4, 0, &[0; 4]), short);
    accepted(DATA_FRAG, 0, &frag(1, 2, 1, 4, 8, &[0; 4]));
    accepted(DATA_FRAG, 0, &frag(1, 1, 1, 4, u32::MAX, &[0; 4]));
}

#[test]
fn payload_covers_the_fragments_it_claims() {
    let short = "DATA_FRAG is shorter than its fragments";
    assert_eq!(what_frag(1, 8, 65_504, 8 * 65_504, &[0; 4]), short);
    assert_eq!(what_frag(1, 1, 8, 16, &[0; 4]), short);
    assert_eq!(what_frag(2, 1, 50_002, 50_003, &[]), short, "nothing after its own fields");
    assert_eq!(what_frag(2, 1, 8, 16, &[0; 4]), short, "the last one, but not short by right");
}

#[test]
fn last_fragment_of_a_sample_may_be_short() {
    let bytes = message(&submessage(DATA_FRAG, 0, &frag(1, 2, 1, 50_002, 50_003, &[7; 4])));
    let seen = usable(&bytes);
    let [Submessage::DataFrag(frag)] = seen[..] else { panic!("{seen:?}") };
    assert_eq!((frag.payload, frag.payload_offset()), (&[7][..], 50_002));
}

// INFO_TS

fn timestamp(seconds: u32, fraction: u32) -> Vec<u8> {
    submessage(INFO_TS, 0, &[seconds.to_le_bytes(), fraction.to_le_bytes()].concat())
}

#[test]
fn timestamp_may_be_invalid_but_not_infinite() {
    let invalid = message(&timestamp(u32::MAX, u32::MAX));
    assert!(matches!(usable(&invalid)[..], [Submessage::InfoTimestamp(None)]));
    let infinite = "source timestamp is infinite";
    assert_eq!(what(&timestamp(u32::MAX, u32::MAX - 1)), infinite);
    assert_eq!(what(&timestamp(0x7fff_ffff, u32::MAX)), infinite, "as it was before RTPS 2.3");
    let good = message(&timestamp(7, 0));
    let expected = Timestamp { seconds: 7, fraction: 0 };
    assert!(matches!(usable(&good)[..], [Submessage::InfoTimestamp(Some(it))] if it == expected));
}

// INFO_REPLY

#[test]
fn locator_count_is_bounded_by_the_submessage() {
    let reason = "sequence is longer than its input";
    assert_eq!(what(&submessage(0x0f, 0, &[0xff; 28])), reason);
    assert_eq!(what(&submessage(0x0f, 0, &[[2, 0, 0, 0].as_slice(), &[0; 24]].concat())), reason);
    assert_eq!(what(&submessage(0x0f, 2, &[0, 0, 0, 0])), "input is truncated", "M without a list");
    accepted(0x0f, 2, &[0; 8]);
}

// Discovery data

/// Returns the discovery payload of one kind with one more parameter at the start.
fn with_parameter(kind: usize, pid: u16, octets: &[u8]) -> Vec<u8> {
    let good = &discovery(Endianness::Little)[kind];
    let len = u16::try_from(octets.len()).expect("short");
    let parameter = [&pid.to_le_bytes()[..], &len.to_le_bytes(), octets].concat();
    [&good[..4], &parameter, &good[4..]].concat()
}

#[test]
fn counts_in_discovery_are_bounded_by_the_parameter() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for pid in [PID_USER_DATA, PID_PROPERTY_LIST, PID_ENTITY_NAME, PID_DOMAIN_TAG] {
        assert!(ParticipantData::parse(&with_parameter(0, pid, &huge)).is_err(), "{pid:#06x}");
    }
    for pid in [
        PID_TOPIC_NAME,
        PID_TYPE_NAME,
        PID_USER_DATA,
        PID_TOPIC_DATA,
        PID_GROUP_DATA,
        PID_PARTITION,
        PID_DATA_REPRESENTATION,
    ] {
        assert!(PublicationData::parse(&with_parameter(1, pid, &huge)).is_err(), "{pid:#06x}");
        assert!(SubscriptionData::parse(&with_parameter(2, pid, &huge)).is_err(), "{pid:#06x}");
    }
    let filter = with_parameter(2, PID_CONTENT_FILTER_PROPERTY, &huge);
    assert!(SubscriptionData::parse(&filter).is_err());
}

#[test]
fn strings_in_discovery_end_in_nul() {
    let no_nul = [4, 0, 0, 0, b'a', b'b', b'c', b'd'];
    for pid in [PID_TOPIC_NAME, PID_TYPE_NAME] {
        assert!(PublicationData::parse(&with_parameter(1, pid, &no_nul)).is_err());
    }
    let partition = [1, 0, 0, 0, 4, 0, 0, 0, b'a', b'b', b'c', b'd'];
    assert!(PublicationData::parse(&with_parameter(1, PID_PARTITION, &partition)).is_err());
    let property = [1, 0, 0, 0, 2, 0, 0, 0, b'a', 0, 0, 0, 9, 0, 0, 0, b'b', 0, 0, 0];
    assert!(ParticipantData::parse(&with_parameter(0, PID_PROPERTY_LIST, &property)).is_err());
}

#[test]
fn values_in_discovery_fill_their_type() {
    for pid in [
        PID_PARTICIPANT_GUID,
        PID_PROTOCOL_VERSION,
        PID_VENDORID,
        PID_DOMAIN_ID,
        PID_METATRAFFIC_UNICAST_LOCATOR,
        PID_METATRAFFIC_MULTICAST_LOCATOR,
        PID_DEFAULT_UNICAST_LOCATOR,
        PID_DEFAULT_MULTICAST_LOCATOR,
        PID_PARTICIPANT_LEASE_DURATION,
        PID_BUILTIN_ENDPOINT_SET,
        PID_BUILTIN_ENDPOINT_QOS,
        PID_PARTICIPANT_MANUAL_LIVELINESS_COUNT,
        PID_EXPECTS_INLINE_QOS,
    ] {
        assert!(ParticipantData::parse(&with_parameter(0, pid, &[])).is_err(), "{pid:#06x}");
    }
    for pid in [
        PID_ENDPOINT_GUID,
        PID_PARTICIPANT_GUID,
        PID_GROUP_GUID,
        PID_GROUP_ENTITYID,
        PID_UNICAST_LOCATOR,
        PID_MULTICAST_LOCATOR,
        PID_DURABILITY,
        PID_DEADLINE,
        PID_LATENCY_BUDGET,
        PID_LIVELINESS,
        PID_RELIABILITY,
        PID_OWNERSHIP,
        PID_DESTINATION_ORDER,
        PID_HISTORY,
        PID_RESOURCE_LIMITS,
        PID_PRESENTATION,
    ] {
        assert!(PublicationData::parse(&with_parameter(1, pid, &[])).is_err(), "{pid:#06x}");
        assert!(SubscriptionData::parse(&with_parameter(2, pid, &[])).is_err(), "{pid:#06x}");
    }
    for pid in [PID_DURABILITY_SERVICE, PID_LIFESPAN, PID_OWNERSHIP_STRENGTH, PID_TRANSPORT_PRIORITY] {
        assert!(PublicationData::parse(&with_parameter(1, pid, &[])).is_err(), "{pid:#06x}");
    }
    for pid in [PID_TIME_BASED_FILTER, PID_TYPE_CONSISTENCY_ENFORCEMENT, PID_EXPECTS_INLINE_QOS] {
        assert!(SubscriptionData::parse(&with_parameter(2, pid, &[])).is_err(), "{pid:#06x}");
    }
}

#[test]
fn durations_of_every_bit_pattern_are_read() {
    for pattern in [[0xff; 8], [0x7f; 8], [0x80; 8], [0; 8]] {
        let payload = with_parameter(0, PID_PARTICIPANT_LEASE_DURATION, &pattern);
        let lease = ParticipantData::parse(&payload).expect("well formed").lease_duration;
        assert!(lease.as_nanos().is_some());
    }
}

#[test]
fn type_information_is_kept_unchanged() {
    let octets = [0xff; 32];
    let good = &discovery(Endianness::Little)[2];
    assert!(SubscriptionData::parse(good).expect("well formed").type_information.is_none());
    let payload = with_parameter(2, PID_TYPE_INFORMATION, &octets);
    let data = SubscriptionData::parse(&payload).expect("well formed");
    assert_eq!(data.type_information.as_deref(), Some(&octets[..]));
}
