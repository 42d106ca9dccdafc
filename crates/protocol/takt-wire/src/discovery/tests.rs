//! Tests of discovery data: round trips, and missing, excessive or unknown parameters.

use alloc::string::String;
use alloc::vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use super::*;
use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::locator::Locator;
use crate::parameter::*;
use crate::qos::{
    AccessScope, DataRepresentation, Deadline, Durability, DurabilityService, EntityName, GroupData, History,
    LivelinessKind, Ownership, OwnershipStrength, Partition, Presentation, Property, PropertyEntry, Reliability,
    ResourceLimits, TopicData, TypeConsistency, TypeConsistencyKind, UserData,
};
use crate::time::Duration;
use crate::version::{ProtocolVersion, VendorId};

const ORDERS: [Endianness; 2] = [Endianness::Big, Endianness::Little];
const PREFIX: GuidPrefix = GuidPrefix([1, 0x7a, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
const WRITER: Guid = Guid::new(PREFIX, EntityId::user_writer(1, true));
const READER: Guid = Guid::new(PREFIX, EntityId::user_reader(2, true));

fn udp(port: u16) -> Locator {
    Locator::udp_v4(Ipv4Addr::LOCALHOST, port)
}

fn participant() -> ParticipantData {
    ParticipantData {
        guid: Guid::new(PREFIX, EntityId::PARTICIPANT),
        protocol_version: ProtocolVersion::V2_5,
        vendor_id: VendorId::TAKT,
        domain_id: Some(7),
        domain_tag: Some(String::from("tag")),
        metatraffic_unicast: vec![udp(7410), Locator::udp_v6(Ipv6Addr::LOCALHOST, 7410)],
        metatraffic_multicast: vec![Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7400)],
        default_unicast: vec![udp(7411)],
        default_multicast: vec![Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7401)],
        lease_duration: Duration::from_secs(10),
        available_builtin_endpoints: builtin_endpoints::STANDARD,
        builtin_endpoint_qos: 1,
        manual_liveliness_count: 3,
        expects_inline_qos: true,
        user_data: UserData(vec![1, 2, 3]),
        entity_name: EntityName(String::from("robot")),
        properties: Property::from_iter([PropertyEntry::propagated("name", "value")]),
        identity_token: None,
        permissions_token: None,
        security_info: Some(SecurityInfo { attributes: 0x8000_0001, plugin_attributes: 0x8000_0002 }),
    }
}

#[test]
fn tokens_round_trip_only_in_their_own_byte_order() {
    for endianness in ORDERS {
        let token = |octets: &[u8]| Some(EncodedToken { endianness, octets: octets.to_vec() });
        let (identity_token, permissions_token) = (token(b"identity"), token(b"permissions!"));
        let data = ParticipantData { identity_token, permissions_token, ..participant() };
        for order in ORDERS {
            let parsed = ParticipantData::parse(&data.to_bytes_with(order)).expect("it is valid");
            assert_eq!(parsed, if order == endianness { data.clone() } else { participant() });
        }
    }
}

fn publication() -> PublicationData {
    let mut data = PublicationData {
        guid: WRITER,
        participant: WRITER.participant(),
        group_entity_id: EntityId::user_publisher(9),
        topic_name: String::from("Square"),
        type_name: String::from("ShapeType"),
        unicast: vec![udp(7500)],
        multicast: vec![Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 9), 7500)],
        presentation: Presentation { access_scope: AccessScope::Topic, coherent_access: true, ordered_access: true },
        partition: Partition { names: vec![String::from("p1"), String::from("q*")] },
        topic_data: TopicData(vec![4]),
        group_data: GroupData(vec![5, 6]),
        max_sample_serialized: Some(1000),
        type_information: Some(vec![1, 2, 3, 4]),
        ..PublicationData::default()
    };
    let qos = &mut data.qos;
    qos.durability = Durability::Transient;
    qos.durability_service = DurabilityService { history: History::KeepAll, ..DurabilityService::default() };
    qos.deadline = Deadline { period: Duration::from_secs(1) };
    qos.latency_budget.duration = Duration::from_millis(2);
    qos.liveliness.kind = LivelinessKind::ManualByTopic;
    qos.reliability = Reliability::BEST_EFFORT;
    qos.destination_order = crate::qos::DestinationOrder::BySourceTimestamp;
    qos.history = History::KeepLast(5);
    qos.resource_limits = ResourceLimits { max_samples: Some(9), ..ResourceLimits::default() };
    qos.transport_priority.0 = 3;
    qos.lifespan.duration = Duration::from_secs(4);
    qos.user_data = UserData(vec![7]);
    qos.ownership = Ownership::Exclusive;
    qos.ownership_strength = OwnershipStrength(11);
    qos.data_representation = DataRepresentation::xcdr2();
    qos.property = Property::from_iter([PropertyEntry::propagated("takt.name", "value")]);
    qos.data_tag = crate::qos::DataTag { tags: vec![crate::qos::Tag::new("class", "secret")] };
    qos.entity_name = EntityName(String::from("camera"));
    data
}

fn subscription() -> SubscriptionData {
    let mut data = SubscriptionData {
        guid: READER,
        participant: READER.participant(),
        group_entity_id: EntityId::user_subscriber(9),
        topic_name: String::from("Square"),
        type_name: String::from("ShapeType"),
        unicast: vec![udp(7500)],
        partition: Partition { names: vec![String::new()] },
        type_information: Some(vec![1, 2, 3, 4]),
        expects_inline_qos: true,
        content_filter: Some(ContentFilterProperty {
            content_filtered_topic_name: String::from("Square_filtered"),
            related_topic_name: String::from("Square"),
            filter_class_name: String::from("DDSSQL"),
            filter_expression: String::from("color = %0"),
            expression_parameters: vec![String::from("'RED'"), String::new()],
        }),
        ..SubscriptionData::default()
    };
    let qos = &mut data.qos;
    qos.durability = Durability::TransientLocal;
    qos.reliability = Reliability::RELIABLE;
    qos.time_based_filter.minimum_separation = Duration::from_millis(10);
    qos.type_consistency = TypeConsistency::of(TypeConsistencyKind::DisallowTypeCoercion);
    qos.property = Property::from_iter([PropertyEntry::propagated("takt.name", "value")]);
    qos.data_tag = crate::qos::DataTag { tags: vec![crate::qos::Tag::new("class", "secret")] };
    qos.entity_name = EntityName(String::from("camera"));
    data
}

#[test]
fn announcements_round_trip_in_both_byte_orders() {
    for endianness in ORDERS {
        let data = participant();
        assert_eq!(ParticipantData::parse(&data.to_bytes_with(endianness)), Ok(data));
        let data = publication();
        assert_eq!(PublicationData::parse(&data.to_bytes_with(endianness)), Ok(data));
        let data = subscription();
        assert_eq!(SubscriptionData::parse(&data.to_bytes_with(endianness)), Ok(data));
    }
}

#[test]
fn default_announcements_round_trip() {
    let data = PublicationData { guid: WRITER, participant: WRITER.participant(), ..PublicationData::default() };
    assert_eq!(PublicationData::parse(&data.to_bytes()), Ok(data));
    let data = SubscriptionData { guid: READER, participant: READER.participant(), ..SubscriptionData::default() };
    assert_eq!(SubscriptionData::parse(&data.to_bytes()), Ok(data));
}

#[test]
fn every_prefix_of_an_announcement_is_malformed() {
    for endianness in ORDERS {
        let bytes = participant().to_bytes_with(endianness);
        for len in 0..bytes.len() - 2 {
            assert!(ParticipantData::parse(&bytes[..len]).is_err(), "{len}");
        }
        let bytes = publication().to_bytes_with(endianness);
        for len in 0..bytes.len() - 2 {
            assert!(PublicationData::parse(&bytes[..len]).is_err(), "{len}");
        }
        let bytes = subscription().to_bytes_with(endianness);
        for len in 0..bytes.len() - 2 {
            assert!(SubscriptionData::parse(&bytes[..len]).is_err(), "{len}");
        }
    }
}

#[test]
fn publication_has_the_specified_octets() {
    let data = PublicationData {
        guid: WRITER,
        participant: WRITER.participant(),
        topic_name: String::from("a"),
        type_name: String::from("bcd"),
        ..PublicationData::default()
    };
    let expected = [
        &[0x00, 0x03, 0x00, 0x00][..], // PL_CDR_LE
        &[0x5a, 0x00, 0x10, 0x00],     // PID_ENDPOINT_GUID
        &WRITER.to_bytes(),
        &[0x50, 0x00, 0x10, 0x00], // PID_PARTICIPANT_GUID
        &WRITER.participant().to_bytes(),
        &[0x05, 0x00, 0x08, 0x00, 2, 0, 0, 0, b'a', 0, 0, 0], // PID_TOPIC_NAME
        &[0x07, 0x00, 0x08, 0x00, 4, 0, 0, 0, b'b', b'c', b'd', 0], // PID_TYPE_NAME
        &[0x1a, 0x00, 0x0c, 0x00, 2, 0, 0, 0, 0, 0, 0, 0, 0x9a, 0x99, 0x99, 0x19],
        &[0x1d, 0x00, 0x04, 0x00, 0, 0, 0, 0],             // PID_DURABILITY
        &[0x40, 0x00, 0x08, 0x00, 0, 0, 0, 0, 1, 0, 0, 0], // PID_HISTORY
        &[0x73, 0x00, 0x08, 0x00, 1, 0, 0, 0, 0, 0, 0, 0], // PID_DATA_REPRESENTATION
        &[0x01, 0x00, 0x00, 0x00],
    ];
    assert_eq!(data.to_bytes(), expected.concat());
}

#[test]
fn absent_parameters_have_the_specified_defaults() {
    let mut list = begin_list(Endianness::Little);
    list.put(PID_ENDPOINT_GUID, |value| value.guid(READER));
    list.put(PID_TOPIC_NAME, |value| value.string("t"));
    list.put(PID_TYPE_NAME, |value| value.string("T"));
    let payload = list.finish();

    let reader = SubscriptionData::parse(&payload).expect("enough is there");
    assert_eq!(reader.participant, READER.participant());
    assert_eq!(reader.qos.reliability, Reliability::BEST_EFFORT);
    assert_eq!(reader.qos.data_representation.0, [], "which is only XCDR1");
    assert_eq!(reader.qos.type_consistency, TypeConsistency::default());

    let writer = PublicationData::parse(&payload).expect("enough is there");
    assert_eq!(writer.qos.reliability, Reliability::RELIABLE);
    assert_eq!(writer.qos.data_representation.offered(), DataRepresentation::XCDR1);

    let mut list = begin_list(Endianness::Little);
    let guid = READER.participant();
    list.put(PID_PARTICIPANT_GUID, |value| value.guid(guid));
    let data = ParticipantData::parse(&list.finish()).expect("enough is there");
    assert_eq!(data.lease_duration, Duration::from_secs(100));
    assert_eq!((data.domain_id, data.domain_tag), (None, None));
    assert_eq!(data.vendor_id, VendorId::UNKNOWN);
}

#[test]
fn announcement_without_guid_topic_or_type_is_malformed() {
    let with = |pids: &[u16]| {
        let mut list = begin_list(Endianness::Little);
        for pid in pids {
            match *pid {
                PID_ENDPOINT_GUID => list.put(PID_ENDPOINT_GUID, |value| value.guid(WRITER)),
                pid => list.put(pid, |value| value.string("x")),
            }
        }
        PublicationData::parse(&list.finish())
    };
    assert!(with(&[PID_ENDPOINT_GUID, PID_TOPIC_NAME, PID_TYPE_NAME]).is_ok());
    assert!(with(&[PID_TOPIC_NAME, PID_TYPE_NAME]).is_err());
    assert!(with(&[PID_ENDPOINT_GUID, PID_TYPE_NAME]).is_err());
    assert!(with(&[PID_ENDPOINT_GUID, PID_TOPIC_NAME]).is_err());
    assert!(ParticipantData::parse(&begin_list(Endianness::Little).finish()).is_err());
}

/// Parses a participant's announcement with one more parameter at the start.
fn with_parameter(pid: u16, octets: &[u8]) -> Result<ParticipantData, Malformed> {
    let mut list = begin_list(Endianness::Little);
    list.put(pid, |value| value.bytes(octets));
    let mut payload = list.finish();
    payload.truncate(payload.len() - 4);
    payload.extend_from_slice(&participant().to_bytes()[4..]);
    ParticipantData::parse(&payload)
}

#[test]
fn unknown_parameters_are_skipped_unless_they_must_be_understood() {
    assert_eq!(with_parameter(0x1234, &[1, 2, 3, 4]), Ok(participant()));
    assert_eq!(with_parameter(0x8007, &[]), Ok(participant()));
    let error = with_parameter(0x1234 | FLAG_MUST_UNDERSTAND, &[1, 2, 3, 4]).expect_err("refused");
    assert_eq!(error, Malformed { offset: 8, what: "unknown must-understand parameter" });
    let known = with_parameter(PID_ENTITY_NAME | FLAG_MUST_UNDERSTAND, &[1, 0, 0, 0, 0]);
    assert_eq!(known, Ok(participant()), "known ones may carry the flag");
}

#[test]
fn empty_domain_tag_is_none() {
    let mut list = begin_list(Endianness::Little);
    list.put(PID_PARTICIPANT_GUID, |value| value.bytes(&participant().guid.to_bytes()));
    list.put(PID_DOMAIN_TAG, |value| value.string(""));
    let read = ParticipantData::parse(&list.finish()).expect("it names a participant");
    assert_eq!(read.domain_tag, None);
    assert_eq!(ParticipantData::parse(&read.to_bytes()), Ok(read));
}

#[test]
fn unusable_locators_are_ignored() {
    for octets in [
        Locator { port: 0, ..udp(1) },
        Locator { port: 65_536, ..udp(1) },
        Locator::udp_v4(Ipv4Addr::UNSPECIFIED, 7410),
        Locator::INVALID,
        udp(7410),
    ] {
        let octets = octets.to_bytes(Endianness::Little);
        assert_eq!(with_parameter(PID_METATRAFFIC_UNICAST_LOCATOR, &octets), Ok(participant()));
    }
}

#[test]
fn at_most_eight_locators_of_a_kind_are_kept() {
    let mut data = participant();
    data.default_unicast = (1..=20).map(udp).collect();
    let seen = ParticipantData::parse(&data.to_bytes()).expect("well formed");
    assert_eq!(seen.default_unicast, data.default_unicast[..limits::LOCATORS_MAX]);
    assert_eq!(seen.metatraffic_unicast, data.metatraffic_unicast);
}

#[test]
fn names_beyond_256_octets_are_malformed() {
    let mut data = publication();
    data.topic_name = "t".repeat(256);
    assert_eq!(PublicationData::parse(&data.to_bytes()).as_ref(), Ok(&data));
    data.topic_name.push('t');
    assert!(PublicationData::parse(&data.to_bytes()).is_err());
}

#[test]
fn filter_parameters_have_a_limit() {
    let mut data = subscription();
    let with = |count| {
        Some(ContentFilterProperty {
            expression_parameters: vec![String::from("1"); count],
            ..ContentFilterProperty::default()
        })
    };
    data.content_filter = with(limits::FILTER_PARAMETERS_MAX);
    assert_eq!(SubscriptionData::parse(&data.to_bytes()).as_ref(), Ok(&data));
    data.content_filter = with(limits::FILTER_PARAMETERS_MAX + 1);
    assert!(SubscriptionData::parse(&data.to_bytes()).is_err());
}

#[test]
fn other_encodings_are_malformed() {
    for identifier in [0x00, 0x01, 0x04, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0xff] {
        let mut payload = participant().to_bytes();
        payload[1] = identifier;
        assert!(ParticipantData::parse(&payload).is_err(), "{identifier:#04x}");
    }
}

#[test]
fn octets_after_the_sentinel_are_ignored() {
    let mut payload = participant().to_bytes();
    payload.extend_from_slice(&[0xff; 7]);
    assert_eq!(ParticipantData::parse(&payload), Ok(participant()));
}

#[test]
fn group_guid_identifies_the_publisher() {
    let publisher = Guid::new(PREFIX, EntityId::user_publisher(3));
    let mut list = begin_list(Endianness::Little);
    list.put(PID_KEY_HASH, |value| value.guid(WRITER));
    list.put(PID_GROUP_GUID, |value| value.guid(publisher));
    list.put(PID_TOPIC_NAME, |value| value.string("t"));
    list.put(PID_TYPE_NAME, |value| value.string("T"));
    let data = PublicationData::parse(&list.finish()).expect("enough is there");
    assert_eq!((data.guid, data.group_entity_id), (WRITER, publisher.entity_id));
}

#[test]
fn key_payloads_round_trip() {
    for guid in [WRITER, READER, WRITER.participant()] {
        assert_eq!(parse_key(&key_payload(guid)), Ok(guid));
        assert_eq!(ParticipantData::parse_key(&ParticipantData::key_payload(guid)), Ok(guid));
    }
    for endianness in ORDERS {
        let mut list = begin_list(endianness);
        list.put(PID_KEY_HASH, |value| value.guid(WRITER));
        assert_eq!(parse_key(&list.finish()), Ok(WRITER), "a key hash is the key");
        assert_eq!(parse_key(&publication().to_bytes_with(endianness)), Ok(WRITER));
        assert_eq!(parse_key(&participant().to_bytes_with(endianness)), Ok(participant().guid));
    }
    let plain = [&[0, 1, 0, 0][..], &WRITER.to_bytes()].concat();
    assert_eq!(parse_key(&plain), Ok(WRITER));
}

#[test]
fn malformed_keys_are_rejected() {
    assert!(parse_key(&begin_list(Endianness::Little).finish()).is_err(), "an empty list");
    let payload = key_payload(WRITER);
    for len in 0..payload.len() - 2 {
        assert!(parse_key(&payload[..len]).is_err(), "{len}");
    }
    assert!(parse_key(&[0, 1, 0, 0, 1, 2, 3]).is_err(), "plain, but too short");
    assert!(parse_key(&[0, 9, 0, 0, 0, 0, 0, 0]).is_err(), "an encoding that is not for keys");
}

#[test]
fn participant_messages_round_trip() {
    let message = ParticipantMessageData {
        prefix: PREFIX,
        kind: ParticipantMessageData::KIND_MANUAL_BY_PARTICIPANT,
        data: &[1, 2, 3],
    };
    for endianness in ORDERS {
        let payload = message.to_bytes_with(endianness);
        assert_eq!(ParticipantMessageData::parse(&payload), Ok(message));
        for len in 0..payload.len() {
            assert!(ParticipantMessageData::parse(&payload[..len]).is_err(), "{len}");
        }
    }
    let expected = [&[0, 1, 0, 0][..], &PREFIX.0, &[0, 0, 0, 2], &[3, 0, 0, 0], &[1, 2, 3]].concat();
    assert_eq!(message.to_bytes(), expected);
}

/// Returns the ids of the parameters of an announcement.
fn parameter_ids(payload: &[u8]) -> Vec<u16> {
    parse_list(payload).expect("it is valid").iter().map(|parameter| parameter.pid).collect()
}

#[test]
fn parameters_of_announcements_have_a_fixed_order() {
    let writer = [
        0x005a, 0x0050, 0x0053, 0x0005, 0x0007, 0x002f, 0x0030, 0x0021, 0x0029, 0x002e, 0x002d, 0x0075, 0x0060, 0x001a,
        0x001d, 0x0040, 0x0073, 0x001e, 0x0023, 0x0027, 0x001b, 0x0025, 0x0041, 0x0049, 0x002b, 0x002c, 0x001f, 0x0006,
        0x0059, 0x1003, 0x0062,
    ];
    assert_eq!(parameter_ids(&publication().to_bytes()), writer);
    let mut data = subscription();
    data.qos.destination_order = crate::qos::DestinationOrder::BySourceTimestamp;
    data.qos.resource_limits.max_samples = Some(9);
    data.qos.latency_budget.duration = Duration::from_secs(1);
    data.qos.liveliness.lease_duration = Duration::from_secs(1);
    let reader = [
        0x005a, 0x0050, 0x0053, 0x0005, 0x0007, 0x002f, 0x0029, 0x0075, 0x0043, 0x0035, 0x001a, 0x001d, 0x0040, 0x0073,
        0x0027, 0x001b, 0x0025, 0x0041, 0x0004, 0x0074, 0x0059, 0x1003, 0x0062,
    ];
    assert_eq!(parameter_ids(&data.to_bytes()), reader);
}
