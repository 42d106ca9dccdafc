//! Tests of message parsing with known octets from the diagrams of the specification.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::*;
use crate::guid::EntityId;
use crate::locator::Locator;
use crate::parameter::PID_STATUS_INFO;
use crate::sequence::SequenceNumber;

const HEADER: [u8; 20] = [b'R', b'T', b'P', b'S', 2, 5, 0x01, 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

fn message(submessages: &[u8]) -> Vec<u8> {
    [&HEADER, submessages].concat()
}

/// Parses a message with a single submessage and returns that submessage.
macro_rules! only {
    ($octets:expr, $kind:path) => {
        only!($octets, $kind(it) => it)
    };
    ($octets:expr, $pattern:pat => $value:expr) => {{
        let mut submessages = MessageView::parse($octets).expect("the header is valid").submessages();
        let submessage = submessages.next().expect("there is one").expect("it is valid");
        assert!(submessages.next().is_none(), "there is only one");
        match submessage {
            $pattern => $value,
            other => panic!("unexpected {other:?}"),
        }
    }};
}

#[test]
fn message_header_is_parsed() {
    let bytes = message(&[]);
    let view = MessageView::parse(&bytes).expect("the header is valid");
    assert_eq!(
        view.header(),
        Header {
            version: ProtocolVersion::V2_5,
            vendor: VendorId::CYCLONE,
            prefix: GuidPrefix([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
        }
    );
    assert!(view.submessages().next().is_none(), "a message may end after its header");
}

#[test]
fn malformed_message_header_is_rejected() {
    let what = |bytes: &[u8]| MessageView::parse(bytes).expect_err("malformed").what;
    for len in 0..20 {
        assert_eq!(what(&HEADER[..len]), "input is truncated");
    }
    let mut bytes = HEADER;
    bytes[3] = b'X';
    assert_eq!(what(&bytes), "not an RTPS message");
    for major in [0, 1, 3, 255] {
        let mut bytes = HEADER;
        bytes[4] = major;
        assert_eq!(what(&bytes), "major protocol version is not 2");
    }
}

#[test]
fn data_is_parsed_in_little_endian() {
    let bytes = message(&[
        0x15, 0x07, 0x24, 0x00, // DATA, E Q D, 36 octets
        0x00, 0x00, 0x10, 0x00, // extra flags, octetsToInlineQos 16
        0x00, 0x00, 0x04, 0xc7, // reader
        0x00, 0x00, 0x04, 0xc2, // writer
        0x00, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, // 5
        0x71, 0x00, 0x04, 0x00, 0, 0, 0, 1, // PID_STATUS_INFO
        0x01, 0x00, 0x00, 0x00, // PID_SENTINEL
        0x00, 0x01, 0x00, 0x00, // CDR_LE
    ]);
    let data = only!(&bytes, Submessage::Data);
    assert_eq!(data.reader, EntityId::SEDP_SUB_READER);
    assert_eq!(data.writer, EntityId::SEDP_SUB_WRITER);
    assert_eq!(data.sn, SequenceNumber(5));
    assert_eq!(data.payload, Payload::Data(&[0, 1, 0, 0]));
    let list = data.inline_qos.expect("Q is set");
    assert_eq!(list.find(PID_STATUS_INFO).map(|p| p.value), Some(&[0, 0, 0, 1][..]));
}

#[test]
fn data_with_key_is_parsed_in_big_endian() {
    let bytes = message(&[
        0x15, 0x08, 0x00, 0x1c, // DATA, K, 28 octets
        0x00, 0x00, 0x00, 0x10, // extra flags, octetsToInlineQos 16
        0x00, 0x00, 0x00, 0x00, // reader unknown
        0x00, 0x00, 0x01, 0x02, // writer
        0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, // 2^32 + 2
        0x00, 0x00, 0x00, 0x00, 1, 2, 3, 4, // CDR_BE
    ]);
    let data = only!(&bytes, Submessage::Data);
    assert_eq!(data.reader, EntityId::UNKNOWN);
    assert_eq!(data.sn, SequenceNumber((1 << 32) + 2));
    assert_eq!(data.payload, Payload::Key(&[0, 0, 0, 0, 1, 2, 3, 4]));
    assert_eq!(data.payload.bytes().map(<[u8]>::len), Some(8));
    assert!(data.inline_qos.is_none());
}

#[test]
fn data_may_have_neither_sample_nor_key() {
    let bytes = message(&[0x15, 0x01, 0x14, 0x00, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0, 0, 0]);
    let data = only!(&bytes, Submessage::Data);
    assert_eq!(data.payload, Payload::None);
    assert_eq!(data.payload.bytes(), None);
}

#[test]
fn data_of_a_later_version_may_have_more_fixed_fields() {
    let bytes = message(&[
        0x15, 0x05, 0x20, 0x00, // DATA, E D, 32 octets
        0x00, 0x00, 0x18, 0x00, // octetsToInlineQos 24: eight octets of a later version
        0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0, 0, 0, //
        9, 9, 9, 9, 9, 9, 9, 9, //
        0x00, 0x01, 0x00, 0x00,
    ]);
    assert_eq!(only!(&bytes, Submessage::Data).payload, Payload::Data(&[0, 1, 0, 0]));
}

#[test]
fn data_frag_is_parsed() {
    let bytes = message(&[
        0x16, 0x05, 0x28, 0x00, // DATA_FRAG, E K, 40 octets
        0x00, 0x00, 0x1c, 0x00, // extra flags, octetsToInlineQos 28
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, // reader, writer
        0x00, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, // 7
        0x02, 0x00, 0x00, 0x00, // first fragment 2
        0x02, 0x00, 0x04, 0x00, // two fragments of four octets
        0x0a, 0x00, 0x00, 0x00, // ten octets in all
        1, 2, 3, 4, 5, 6, 0, 0, // fragments 2 and 3, and padding
    ]);
    let frag = only!(&bytes, Submessage::DataFrag);
    assert_eq!((frag.fragment_starting_num, frag.fragments_in_submessage), (2, 2));
    assert_eq!((frag.fragment_size, frag.sample_size), (4, 10));
    assert_eq!(frag.payload, [1, 2, 3, 4, 5, 6], "the last fragment is short, padding is cut");
    assert_eq!(frag.payload_offset(), 4);
    assert!(frag.key && frag.inline_qos.is_none());
}

#[test]
fn heartbeat_is_parsed() {
    let body = [
        0x00, 0x00, 0x04, 0xc7, 0x00, 0x00, 0x04, 0xc2, // reader, writer
        0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, // first 3
        0x00, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x00, // last 9
        0xff, 0xff, 0xff, 0xff, // count -1
    ];
    let bytes = message(&[&[0x07, 0x07, 0x1c, 0x00][..], &body].concat());
    let heartbeat = only!(&bytes, Submessage::Heartbeat);
    assert_eq!((heartbeat.first_sn, heartbeat.last_sn), (SequenceNumber(3), SequenceNumber(9)));
    assert_eq!(heartbeat.count, -1);
    assert!(heartbeat.is_final && heartbeat.liveliness);

    let with_group = message(&[&[0x07, 0x09, 0x3c, 0x00][..], &body, &[7; 32]].concat());
    let heartbeat = only!(&with_group, Submessage::Heartbeat);
    assert!(!heartbeat.is_final && !heartbeat.liveliness);
    assert_eq!(heartbeat.count, -1, "group information follows the count");
}

#[test]
fn heartbeat_frag_is_parsed() {
    let bytes = message(&[
        0x13, 0x01, 0x18, 0x00, 0, 0, 0, 0, 0, 0, 1, 2, // HEARTBEAT_FRAG, E, 24 octets
        0, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0,
    ]);
    let heartbeat = only!(&bytes, Submessage::HeartbeatFrag);
    assert_eq!(heartbeat.sn, SequenceNumber(7));
    assert_eq!((heartbeat.last_fragment_num, heartbeat.count), (3, 4));
}

#[test]
fn acknack_is_parsed() {
    let bytes = message(&[
        0x06, 0x02, 0x00, 0x1c, // ACKNACK, F, 28 octets, big endian
        0x00, 0x00, 0x04, 0xc7, 0x00, 0x00, 0x04, 0xc2, // reader, writer
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05, // base 5
        0x00, 0x00, 0x00, 0x03, 0xa0, 0x00, 0x00, 0x00, // three bits: 5 and 7
        0x00, 0x00, 0x00, 0x01, // count
    ]);
    let acknack = only!(&bytes, Submessage::AckNack);
    assert!(acknack.is_final);
    assert_eq!(acknack.reader_sn_state.base(), SequenceNumber(5));
    let missing = acknack.reader_sn_state.iter();
    assert!(missing.eq([SequenceNumber(5), SequenceNumber(7)]));
    assert_eq!(acknack.count, 1);
}

#[test]
fn nack_frag_is_parsed() {
    let bytes = message(&[
        0x12, 0x01, 0x20, 0x00, 0, 0, 1, 7, 0, 0, 1, 2, // NACK_FRAG, E, 32 octets
        0, 0, 0, 0, 7, 0, 0, 0, // sn 7
        2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0x40, // base 2, two bits: 3
        9, 0, 0, 0, // count
    ]);
    let nack = only!(&bytes, Submessage::NackFrag);
    assert_eq!(nack.sn, SequenceNumber(7));
    assert!(nack.fragments.iter().eq([3]));
    assert_eq!(nack.count, 9);
}

#[test]
fn gap_is_parsed() {
    let body = [
        0, 0, 0, 0, 0, 0, 1, 2, // reader, writer
        0, 0, 0, 0, 2, 0, 0, 0, // start 2
        0, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0x40, // base 4, two bits: 5
    ];
    let bytes = message(&[&[0x08, 0x01, 0x20, 0x00][..], &body].concat());
    let gap = only!(&bytes, Submessage::Gap);
    assert_eq!(gap.gap_start, SequenceNumber(2));
    assert_eq!(gap.gap_list.base(), SequenceNumber(4));
    assert!(gap.gap_list.iter().eq([SequenceNumber(5)]));

    let with_group = message(&[&[0x08, 0x07, 0x34, 0x00][..], &body, &[7; 20]].concat());
    assert_eq!(only!(&with_group, Submessage::Gap), gap);
    let cut = message(&[&[0x08, 0x07, 0x30, 0x00][..], &body, &[7; 16]].concat());
    let error = MessageView::parse(&cut).expect("the header is valid").submessages().next();
    assert!(matches!(error, Some(Err(_))), "the filtered count is not there");
}

#[test]
fn info_submessages_are_parsed() {
    let timestamp = message(&[0x09, 0x01, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0x80]);
    let seen = only!(&timestamp, Submessage::InfoTimestamp);
    assert_eq!(seen.map(Timestamp::to_nanos), Some(1_500_000_000));

    let prefix = [9; 12];
    let destination = message(&[&[0x0e, 0x01, 12, 0][..], &prefix].concat());
    assert_eq!(only!(&destination, Submessage::InfoDestination), GuidPrefix(prefix));

    let source = message(&[&[0x0c, 0x01, 20, 0, 0, 0, 0, 0, 2, 1, 1, 0x0f][..], &prefix].concat());
    let source = only!(&source, Submessage::InfoSource);
    assert_eq!(source.version, ProtocolVersion::V2_1);
    assert_eq!((source.vendor, source.prefix), (VendorId::EPROSIMA, GuidPrefix(prefix)));
}

#[test]
fn info_reply_is_parsed() {
    let one = Locator::udp_v4(Ipv4Addr::new(10, 0, 0, 1), 7411);
    let group = Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7401);
    let lists =
        [&[1, 0, 0, 0][..], &one.to_bytes(Endianness::Little), &[1, 0, 0, 0], &group.to_bytes(Endianness::Little)]
            .concat();
    let bytes = message(&[&[0x0f, 0x03, 56, 0][..], &lists].concat());
    let reply = only!(&bytes, Submessage::InfoReply);
    assert!(reply.unicast.eq([one]));
    assert!(reply.multicast.expect("M is set").eq([group]));

    let ip4 = message(&[0x0d, 0x01, 8, 0, 1, 0, 0, 10, 0xf3, 0x1c, 0, 0]);
    let reply = only!(&ip4, Submessage::InfoReply);
    assert!(reply.unicast.eq([one]));
    assert!(reply.multicast.is_none());
}

#[test]
fn header_extension_is_parsed() {
    let bytes = message(&[
        0x00, 0x3f, 28, 0, // E, length, timestamp, both extensions, CRC-32C
        0x34, 0, 0, 0, // message length
        1, 0, 0, 0, 0, 0, 0, 0x80, // send timestamp
        1, 2, 3, 4, // u extension
        1, 2, 3, 4, 5, 6, 7, 8, // w extension
        0xca, 0xfe, 0xba, 0xbe, // checksum
    ]);
    let extension = only!(&bytes, Submessage::HeaderExtension);
    assert_eq!(extension.message_length, Some(0x34));
    assert_eq!(extension.send_timestamp.map(Timestamp::to_nanos), Some(1_500_000_000));
    assert_eq!(extension.u_extension, Some([1, 2, 3, 4]));
    assert_eq!(extension.w_extension, Some([1, 2, 3, 4, 5, 6, 7, 8]));
    assert_eq!(extension.checksum, Some(Checksum::Crc32c([0xca, 0xfe, 0xba, 0xbe])));

    let empty = message(&[0x00, 0x01, 0, 0]);
    let extension = only!(&empty, Submessage::HeaderExtension);
    assert_eq!((extension.message_length, extension.checksum), (None, None));

    let parameters = message(&[0x00, 0x81, 8, 0, 0x34, 0x12, 0, 0, 1, 0, 0, 0]);
    assert!(only!(&parameters, Submessage::HeaderExtension).checksum.is_none());
    let must_understand = message(&[0x00, 0x81, 8, 0, 0x34, 0x52, 0, 0, 1, 0, 0, 0]);
    let next = MessageView::parse(&must_understand).expect("the header is valid").submessages().next();
    assert!(matches!(next, Some(Err(_))));
}

#[test]
fn iteration_continues_after_unknown_submessages() {
    let bytes = message(&[
        0x01, 0x01, 0, 0, // PAD of length zero is empty
        0x80, 0x01, 4, 0, 1, 2, 3, 4, // a vendor's own
        0x01, 0x01, 4, 0, 0, 0, 0, 0, // PAD with content
        0x30, 0x00, 0, 4, 1, 2, 3, 4, // secure body, big endian
        0x09, 0x03, 0, 0, // INFO_TS, no timestamp
    ]);
    let seen: Vec<_> = MessageView::parse(&bytes)
        .expect("the header is valid")
        .submessages()
        .map(|item| match item.expect("all are valid") {
            Submessage::Pad => "pad",
            Submessage::Unknown { id: 0x80 } => "vendor",
            Submessage::Unknown { id: 0x30 } => "secure",
            Submessage::InfoTimestamp(None) => "no timestamp",
            other => panic!("unexpected {other:?}"),
        })
        .collect();
    assert_eq!(seen, ["pad", "vendor", "pad", "secure", "no timestamp"]);
}
