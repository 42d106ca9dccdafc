//! Seed datagrams: one of each submessage, discovery data, and captures of real peers.

use std::net::Ipv4Addr;

use takt_wire::builder::{DataEmit, DataFragEmit, MessageBuilder};
use takt_wire::discovery::{
    ContentFilterProperty, ParticipantData, ParticipantMessageData, PublicationData, SubscriptionData,
    builtin_endpoints,
};
use takt_wire::inline_qos::{InlineQosBuilder, SampleIdentity};
use takt_wire::message::{AckNack, Gap, Header, Heartbeat, HeartbeatFrag, MessageView, NackFrag, Payload, Submessage};
use takt_wire::qos::{EntityName, Partition, Property, PropertyEntry, UserData};
use takt_wire::{
    Endianness, EntityId, FragmentNumberSet, Guid, GuidPrefix, Locator, ProtocolVersion, SequenceNumber,
    SequenceNumberSet, Timestamp, VendorId,
};

pub const ORDERS: [Endianness; 2] = [Endianness::Big, Endianness::Little];
pub const PREFIX: GuidPrefix = GuidPrefix([1, 0x7a, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
pub const READER: EntityId = EntityId::user_reader(1, true);
pub const WRITER: EntityId = EntityId::user_writer(2, true);
const HEADER: Header = Header { version: ProtocolVersion::V2_5, vendor: VendorId::TAKT, prefix: PREFIX };

/// Returns a message with these octets after its header.
pub fn message(submessages: &[u8]) -> Vec<u8> {
    [&b"RTPS\x02\x05\x01\x7a"[..], &PREFIX.0, submessages].concat()
}

/// Returns a little endian submessage. `flags` do not include the E flag.
pub fn submessage(id: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len()).expect("tests write short ones");
    [&[id, flags | 1][..], &len.to_le_bytes(), body].concat()
}

/// Returns a message that `write` fills.
pub fn build(endianness: Endianness, write: impl FnOnce(&mut MessageBuilder<'_>)) -> Vec<u8> {
    let mut frame = vec![0; 4096];
    let mut builder = MessageBuilder::new(&mut frame, &HEADER).expect("fits").with_endianness(endianness);
    write(&mut builder);
    builder.bytes().to_vec()
}

/// Returns the well-formed submessages of a datagram.
pub fn usable(datagram: &[u8]) -> Vec<Submessage<'_>> {
    let view = MessageView::parse(datagram).expect("the header is valid");
    view.submessages().filter_map(Result::ok).collect()
}

/// Returns a message for each kind of submessage, in one byte order.
pub fn submessages(endianness: Endianness) -> Vec<Vec<u8>> {
    let mut set = SequenceNumberSet::new(SequenceNumber(5));
    assert!(set.insert(SequenceNumber(7)) && set.insert(SequenceNumber(200)));
    let mut fragments = FragmentNumberSet::new(2);
    assert!(fragments.insert(3) && fragments.insert(70));
    let sn = SequenceNumber(9);
    let (reader, writer) = (READER, WRITER);
    let guid = Guid::new(PREFIX, READER);
    let mut inline = InlineQosBuilder::<128>::with_endianness(endianness);
    inline.key_hash([5; 16]).expect("fits");
    inline.status_info(3).expect("fits");
    inline.directed_write(guid).expect("fits");
    inline.related_sample_identity(SampleIdentity { writer: guid, sn }).expect("fits");
    let inline_qos = Some(inline.finish().expect("fits"));
    let payload = Payload::Data(&[0, 1, 0, 0, 1, 2, 3, 4]);
    let heartbeat = Heartbeat {
        reader,
        writer,
        first_sn: SequenceNumber(2),
        last_sn: sn,
        count: 1,
        is_final: false,
        liveliness: false,
        group: None,
    };
    let data_frag = DataFragEmit {
        reader,
        writer,
        sn,
        fragment_starting_num: 2,
        fragment_size: 8,
        sample_size: 30,
        inline_qos,
        key: false,
        payload: &[1; 16],
        fragments_in_submessage: 2,
    };
    type Write<'w> = Box<dyn FnOnce(&mut MessageBuilder<'_>) -> Result<(), takt_wire::Full> + 'w>;
    let all: Vec<Write<'_>> = vec![
        Box::new(|b| b.info_timestamp(Some(Timestamp::from_nanos(1)))),
        Box::new(|b| b.info_timestamp(None)),
        Box::new(|b| b.info_destination(PREFIX)),
        Box::new(|b| b.heartbeat(&heartbeat)),
        Box::new(|b| b.heartbeat_frag(&HeartbeatFrag { reader, writer, sn, last_fragment_num: 4, count: 1 })),
        Box::new(|b| b.acknack(&AckNack { reader, writer, reader_sn_state: set, count: 1, is_final: true })),
        Box::new(|b| b.nack_frag(&NackFrag { reader, writer, sn, fragments, count: 1 })),
        Box::new(|b| b.gap(&Gap { reader, writer, gap_start: SequenceNumber(1), gap_list: set })),
        Box::new(|b| b.data(&DataEmit { reader, writer, sn, inline_qos, payload })),
        Box::new(|b| b.data_frag(&data_frag)),
        Box::new(|b| b.pad(8)),
    ];
    let mut messages: Vec<Vec<u8>> =
        all.into_iter().map(|write| build(endianness, |builder| write(builder).expect("fits"))).collect();
    // Kinds that the builder does not write, little endian only.
    let locators = [&[1, 0, 0, 0][..], &locator(7411).to_bytes(Endianness::Little)].concat();
    messages.push(message(&submessage(0x0f, 2, &[&locators[..], &locators].concat())));
    messages.push(message(&submessage(0x0d, 2, &[7; 16])));
    messages.push(message(&submessage(0x0c, 0, &[7; 20])));
    messages.push(message(&submessage(0x00, 0x7e, &[7; 44])));
    messages.push(message(&submessage(0x80, 0, &[7; 12])));
    messages
}

pub fn locator(port: u16) -> Locator {
    Locator::udp_v4(Ipv4Addr::LOCALHOST, port)
}

/// Returns the payloads of discovery, in one byte order.
pub fn discovery(endianness: Endianness) -> Vec<Vec<u8>> {
    let participant = ParticipantData {
        guid: Guid::new(PREFIX, EntityId::PARTICIPANT),
        domain_id: Some(1),
        domain_tag: Some(String::from("tag")),
        metatraffic_unicast: vec![locator(7410)],
        default_unicast: vec![locator(7411)],
        available_builtin_endpoints: builtin_endpoints::STANDARD,
        user_data: UserData(vec![1, 2, 3]),
        entity_name: EntityName(String::from("name")),
        properties: Property::from_iter([PropertyEntry::propagated("n", "v")]),
        ..ParticipantData::default()
    };
    let publication = PublicationData {
        guid: Guid::new(PREFIX, WRITER),
        topic_name: String::from("Square"),
        type_name: String::from("ShapeType"),
        unicast: vec![locator(7500)],
        partition: Partition { names: vec![String::from("p1"), String::from("p2")] },
        type_information: Some(vec![1; 16]),
        ..PublicationData::default()
    };
    let subscription = SubscriptionData {
        guid: Guid::new(PREFIX, READER),
        topic_name: String::from("Square"),
        type_name: String::from("ShapeType"),
        content_filter: Some(ContentFilterProperty {
            filter_expression: String::from("x > %0"),
            expression_parameters: vec![String::from("1")],
            ..ContentFilterProperty::default()
        }),
        ..SubscriptionData::default()
    };
    let liveliness =
        ParticipantMessageData { prefix: PREFIX, kind: ParticipantMessageData::KIND_AUTOMATIC, data: &[1, 2, 3, 4] };
    vec![
        participant.to_bytes_with(endianness),
        publication.to_bytes_with(endianness),
        subscription.to_bytes_with(endianness),
        liveliness.to_bytes_with(endianness),
        takt_wire::discovery::key_payload(publication.guid),
    ]
}

/// Parses datagrams in hexadecimal, one per paragraph. Lines with `#` are comments.
pub fn from_hex(text: &str) -> Vec<Vec<u8>> {
    text.split("\n\n")
        .map(|paragraph| {
            let digits: Vec<u8> = paragraph
                .lines()
                .filter(|line| !line.starts_with('#'))
                .flat_map(str::chars)
                .filter_map(|digit| digit.to_digit(16))
                .map(|digit| u8::try_from(digit).expect("below 16"))
                .collect();
            digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
        })
        .filter(|datagram: &Vec<u8>| !datagram.is_empty())
        .collect()
}

pub fn cyclone() -> Vec<Vec<u8>> {
    from_hex(include_str!("captures/cyclone-0.10.2.hex"))
}

pub fn fast_dds() -> Vec<Vec<u8>> {
    from_hex(include_str!("captures/fastdds-2.9.1.hex"))
}

/// Returns all datagrams of this module.
pub fn datagrams() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = ORDERS.into_iter().flat_map(submessages).collect();
    for endianness in ORDERS {
        for payload in discovery(endianness) {
            all.push(build(endianness, |builder| {
                let data = DataEmit {
                    reader: EntityId::UNKNOWN,
                    writer: EntityId::SPDP_WRITER,
                    sn: SequenceNumber(1),
                    inline_qos: None,
                    payload: Payload::Data(&payload),
                };
                builder.data(&data).expect("fits");
            }));
        }
    }
    all.extend(cyclone());
    all.extend(fast_dds());
    all
}
