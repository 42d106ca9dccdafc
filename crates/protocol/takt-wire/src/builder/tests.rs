//! Tests of the message builder: round trips in both byte orders, lengths, and frames that are too
//! short.

use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::guid::GuidPrefix;
use crate::inline_qos::{InlineQos, InlineQosBuilder, STATUS_INFO_DISPOSED};
use crate::message::{MessageView, Submessage};
use crate::version::{ProtocolVersion, VendorId};

const HEADER: Header = Header { version: ProtocolVersion::V2_5, vendor: VendorId::TAKT, prefix: GuidPrefix([7; 12]) };
const READER: EntityId = EntityId::user_reader(1, true);
const WRITER: EntityId = EntityId::user_writer(2, true);
const ORDERS: [Endianness; 2] = [Endianness::Big, Endianness::Little];

fn set(base: i64, numbers: &[i64]) -> SequenceNumberSet {
    let mut set = SequenceNumberSet::new(SequenceNumber(base));
    numbers.iter().for_each(|number| assert!(set.insert(SequenceNumber(*number))));
    set
}

fn heartbeat() -> Heartbeat {
    Heartbeat {
        reader: READER,
        writer: WRITER,
        first_sn: SequenceNumber(1),
        last_sn: SequenceNumber(i64::MAX),
        count: -5,
        is_final: true,
        liveliness: false,
        group: None,
    }
}

/// Writes one submessage of each kind. Returns the octets and the length after each submessage.
fn everything(endianness: Endianness) -> (Vec<u8>, Vec<usize>) {
    let mut fragments = FragmentNumberSet::new(9);
    assert!(fragments.insert(70));
    let mut inline = InlineQosBuilder::<32>::with_endianness(endianness);
    inline.status_info(STATUS_INFO_DISPOSED).expect("fits");
    let inline = inline.finish().expect("fits");

    let mut frame = [0xee; 1000];
    let mut lens = Vec::new();
    let mut builder = MessageBuilder::new(&mut frame, &HEADER).expect("fits").with_endianness(endianness);
    let mut step = |builder: &MessageBuilder<'_>| lens.push(builder.len());
    step(&builder);
    builder.info_timestamp(Some(Timestamp::from_nanos(1_500_000_000))).expect("fits");
    step(&builder);
    builder.info_timestamp(None).expect("fits");
    step(&builder);
    builder.info_destination(GuidPrefix([8; 12])).expect("fits");
    step(&builder);
    builder.heartbeat(&heartbeat()).expect("fits");
    step(&builder);
    let frag =
        HeartbeatFrag { reader: READER, writer: WRITER, sn: SequenceNumber(1 << 40), last_fragment_num: 12, count: 3 };
    builder.heartbeat_frag(&frag).expect("fits");
    step(&builder);
    let acknack =
        AckNack { reader: READER, writer: WRITER, reader_sn_state: set(5, &[5, 100]), count: 1, is_final: false };
    builder.acknack(&acknack).expect("fits");
    step(&builder);
    let nack = NackFrag { reader: READER, writer: WRITER, sn: SequenceNumber(3), fragments, count: 2 };
    builder.nack_frag(&nack).expect("fits");
    step(&builder);
    let gap = Gap { reader: READER, writer: WRITER, gap_start: SequenceNumber(1), gap_list: set(4, &[]) };
    builder.gap(&gap).expect("fits");
    step(&builder);
    let data = DataEmit {
        reader: READER,
        writer: WRITER,
        sn: SequenceNumber(4),
        inline_qos: Some(inline),
        payload: Payload::Key(&[0, 1, 0, 0, 1]),
    };
    builder.data(&data).expect("fits");
    step(&builder);
    let frag = DataFragEmit {
        reader: READER,
        writer: WRITER,
        sn: SequenceNumber(5),
        fragment_starting_num: 2,
        fragment_size: 8,
        sample_size: 23,
        inline_qos: Some(inline),
        key: false,
        payload: &[3; 15],
        fragments_in_submessage: 2,
    };
    builder.data_frag(&frag).expect("fits");
    step(&builder);
    builder.pad(6).expect("fits");
    step(&builder);
    assert_eq!(builder.submessage_count(), 11);
    (builder.bytes().to_vec(), lens)
}

#[test]
fn submessages_round_trip_in_both_byte_orders() {
    for endianness in ORDERS {
        let (bytes, _) = everything(endianness);
        let view = MessageView::parse(&bytes).expect("the header is valid");
        assert_eq!(view.header(), HEADER);
        let mut seen = view.submessages().map(|item| item.expect("all are valid"));
        let mut next = || seen.next().expect("there is one more");
        assert!(matches!(next(), Submessage::InfoTimestamp(Some(t)) if t.to_nanos() == 1_500_000_000));
        assert!(matches!(next(), Submessage::InfoTimestamp(None)));
        assert!(matches!(next(), Submessage::InfoDestination(GuidPrefix([8, ..]))));
        assert!(matches!(next(), Submessage::Heartbeat(it) if it == heartbeat()));
        assert!(matches!(next(), Submessage::HeartbeatFrag(it)
            if it.sn == SequenceNumber(1 << 40) && it.last_fragment_num == 12 && it.count == 3));
        assert!(matches!(next(), Submessage::AckNack(it)
            if it.reader_sn_state == set(5, &[5, 100]) && it.count == 1 && !it.is_final));
        assert!(matches!(next(), Submessage::NackFrag(it)
            if it.sn == SequenceNumber(3) && it.fragments.iter().eq([70]) && it.count == 2));
        assert!(matches!(next(), Submessage::Gap(it)
            if it.gap_start == SequenceNumber(1) && it.gap_list == set(4, &[])));
        let Submessage::Data(data) = next() else { panic!("DATA was written") };
        assert_eq!((data.reader, data.writer, data.sn), (READER, WRITER, SequenceNumber(4)));
        assert_eq!(data.payload, Payload::Key(&[0, 1, 0, 0, 1, 0, 0, 0]), "padded with zeros");
        let qos = InlineQos::parse(data.inline_qos.expect("was written")).expect("is good");
        assert_eq!(qos.status_info, Some(STATUS_INFO_DISPOSED));
        let Submessage::DataFrag(frag) = next() else { panic!("DATA_FRAG was written") };
        assert_eq!((frag.sn, frag.sample_size, frag.fragment_size), (SequenceNumber(5), 23, 8));
        assert_eq!((frag.fragment_starting_num, frag.fragments_in_submessage), (2, 2));
        assert_eq!((frag.payload, frag.key), (&[3; 15][..], false));
        assert!(frag.inline_qos.is_some());
        assert!(matches!(next(), Submessage::Pad));
        assert!(seen.next().is_none());
    }
}

#[test]
fn length_functions_equal_written_lengths() {
    let (_, lens) = everything(Endianness::Little);
    let steps: Vec<usize> = lens.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(lens[0], HEADER_LEN);
    assert_eq!(
        steps,
        [
            INFO_TIMESTAMP_LEN,
            SUBMESSAGE_HEADER_LEN,
            INFO_DESTINATION_LEN,
            HEARTBEAT_LEN,
            HEARTBEAT_FRAG_LEN,
            acknack_len(&set(5, &[5, 100])),
            SUBMESSAGE_HEADER_LEN + 20 + 8 + 8,
            gap_len(&set(4, &[])),
            data_overhead(12) + 8,
            data_frag_overhead(12) + 16,
            SUBMESSAGE_HEADER_LEN + 8,
        ]
    );
    assert_eq!(acknack_len(&set(1, &[256])), ACKNACK_LEN_MAX);
    assert_eq!(gap_len(&set(1, &[256])), GAP_LEN_MAX);
    let mut fragments = FragmentNumberSet::new(1);
    assert!(fragments.insert(256));
    assert_eq!(nack_frag_len(&fragments), NACK_FRAG_LEN_MAX);
}

#[test]
fn submessage_that_exceeds_the_frame_leaves_it_unchanged() {
    let emit = DataEmit {
        reader: READER,
        writer: WRITER,
        sn: SequenceNumber(1),
        inline_qos: None,
        payload: Payload::Data(&[1; 5]),
    };
    let needed = HEADER_LEN + data_overhead(0) + 8;
    for len in 0..needed {
        let mut frame = vec![0xee; len];
        let Ok(mut builder) = MessageBuilder::new(&mut frame, &HEADER) else {
            assert!(len < HEADER_LEN);
            continue;
        };
        assert_eq!(builder.data(&emit), Err(Full));
        assert!(builder.is_empty());
        assert_eq!(builder.len(), HEADER_LEN);
        assert_eq!(builder.remaining(), len - HEADER_LEN);
        assert!(frame[HEADER_LEN..].iter().all(|octet| *octet == 0xee), "{len}");
    }
    let mut frame = vec![0xee; needed];
    let mut builder = MessageBuilder::new(&mut frame, &HEADER).expect("fits");
    assert_eq!(builder.data(&emit), Ok(()));
    assert_eq!((builder.len(), builder.remaining()), (needed, 0));
    assert_eq!(builder.info_timestamp(None), Err(Full));
}

#[test]
fn data_longer_than_its_length_field_ends_the_message() {
    let payload = vec![9; 70_000];
    let mut frame = vec![0; 80_000];
    let mut builder = MessageBuilder::new(&mut frame, &HEADER).expect("fits");
    builder.info_destination(GuidPrefix([8; 12])).expect("fits");
    let emit = DataEmit {
        reader: READER,
        writer: WRITER,
        sn: SequenceNumber(1),
        inline_qos: None,
        payload: Payload::Data(&payload),
    };
    builder.data(&emit).expect("fits");
    assert_eq!(builder.remaining(), 0);
    assert_eq!(builder.heartbeat(&heartbeat()), Err(Full), "nothing can follow");
    let bytes = builder.bytes();
    assert_eq!(bytes[HEADER_LEN + INFO_DESTINATION_LEN + 2..][..2], [0, 0]);
    let last = MessageView::parse(bytes).expect("the header is valid").submessages().last();
    let Some(Ok(Submessage::Data(data))) = last else { panic!("DATA was written") };
    assert_eq!(data.payload, Payload::Data(&payload));
}

#[test]
fn heartbeat_has_the_specified_octets() {
    let mut frame = [0; 64];
    let mut builder = MessageBuilder::new(&mut frame, &HEADER).expect("fits");
    builder.heartbeat(&heartbeat()).expect("fits");
    let expected = [
        &b"RTPS\x02\x05\x01\x7a"[..],
        &[7; 12],
        &[0x07, 0x03, 0x1c, 0x00],
        &[0x00, 0x00, 0x01, 0x07, 0x00, 0x00, 0x02, 0x02],
        &[0, 0, 0, 0, 1, 0, 0, 0],
        &[0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff],
        &[0xfb, 0xff, 0xff, 0xff],
    ];
    assert_eq!(builder.bytes(), expected.concat());
}

#[test]
fn group_information_of_a_heartbeat_round_trips() {
    for endianness in ORDERS {
        let group = GroupInfo {
            current_gsn: SequenceNumber(1 << 40),
            first_gsn: SequenceNumber(7),
            last_gsn: SequenceNumber(9),
            writer_set: [1, 2, 3, 4],
            secure_writer_set: [0; 4],
        };
        let heartbeat = Heartbeat { group: Some(group), ..heartbeat() };
        let mut frame = [0; 200];
        let mut builder = MessageBuilder::new(&mut frame, &HEADER).expect("fits").with_endianness(endianness);
        builder.heartbeat(&heartbeat).expect("fits");
        let len = builder.len();
        let message = MessageView::parse(&frame[..len]).expect("is good");
        let submessages: Vec<_> = message.submessages().collect();
        assert!(matches!(submessages[..], [Ok(Submessage::Heartbeat(found))] if found == heartbeat));
        for cut in HEADER_LEN + SUBMESSAGE_HEADER_LEN..len {
            let message = MessageView::parse(&frame[..cut]).expect("the header is whole");
            assert!(message.submessages().all(|submessage| submessage.is_err()), "{cut}");
        }
    }
}

#[test]
fn data_frag_without_payload_equals_data_frag_once_its_payload_is_appended() {
    let octets = [5; 40];
    let frag = DataFragEmit {
        reader: READER,
        writer: WRITER,
        sn: SequenceNumber(5),
        fragment_starting_num: 2,
        fragment_size: 40,
        sample_size: 90,
        inline_qos: None,
        key: false,
        payload: &octets,
        fragments_in_submessage: 1,
    };
    let (mut frame, mut other) = ([0; 200], [0; 200]);
    let mut whole = MessageBuilder::new(&mut frame, &HEADER).expect("fits");
    whole.data_frag(&frag).expect("fits");
    let mut partial = MessageBuilder::new(&mut other, &HEADER).expect("fits");
    partial.data_frag_without_payload(&frag).expect("fits");
    assert_eq!([partial.bytes(), &octets].concat(), whole.bytes());
    assert_eq!((partial.remaining(), partial.heartbeat(&heartbeat())), (0, Err(Full)), "nothing is between them");
    let mut short = [0; HEADER_LEN + data_frag_overhead(0) + 39];
    let mut builder = MessageBuilder::new(&mut short, &HEADER).expect("fits");
    assert_eq!(builder.data_frag_without_payload(&frag), Err(Full), "there is to be room for all of it");
    assert!(builder.is_empty());
}

#[test]
fn reserve_counts_only_submessages_of_endpoints() {
    let mut frame = [0; HEADER_LEN + INFO_TIMESTAMP_LEN + 2 * (HEARTBEAT_LEN + 8)];
    let mut builder = MessageBuilder::new(&mut frame, &HEADER).expect("fits").with_reserve(8);
    builder.info_timestamp(Some(Timestamp::ZERO)).expect("fits");
    builder.heartbeat(&heartbeat()).expect("fits");
    assert_eq!(builder.remaining(), HEARTBEAT_LEN + 8);
    builder.heartbeat(&heartbeat()).expect("fits");
    assert_eq!((builder.remaining(), builder.heartbeat(&heartbeat())), (0, Err(Full)));
    assert_eq!(builder.len(), HEADER_LEN + INFO_TIMESTAMP_LEN + 2 * HEARTBEAT_LEN);
}
