//! Tests with captured datagrams of CycloneDDS and Fast DDS.

use takt_wire::compat::{PolicyId, check, partitions_match};
use takt_wire::discovery::{ParticipantData, ParticipantMessageData, PublicationData, SubscriptionData};
use takt_wire::inline_qos::{InlineQos, STATUS_INFO_DISPOSED, STATUS_INFO_UNREGISTERED};
use takt_wire::message::{MessageView, Payload, Submessage};
use takt_wire::qos::{Durability, Ownership, OwnershipStrength, Reliability};
use takt_wire::{Data, Duration, EntityId, Guid, ProtocolVersion, SequenceNumber, VendorId};

use crate::corpus::{cyclone, fast_dds, usable};

/// Returns the DATA of one writer in a datagram.
fn data_of(datagram: &[u8], writer: EntityId) -> Vec<Data<'_>> {
    usable(datagram)
        .into_iter()
        .filter_map(|submessage| match submessage {
            Submessage::Data(data) if data.writer == writer => Some(data),
            _ => None,
        })
        .collect()
}

fn payload<'a>(data: &Data<'a>) -> &'a [u8] {
    data.payload.bytes().expect("DATA has a payload")
}

#[test]
fn captures_contain_no_malformed_submessage() {
    for datagram in cyclone().iter().chain(&fast_dds()) {
        let view = MessageView::parse(datagram).expect("the header is valid");
        assert!(view.submessages().count() > 1);
        for submessage in view.submessages() {
            assert!(submessage.is_ok(), "{submessage:?}");
        }
    }
}

#[test]
fn participant_of_cyclone_is_parsed() {
    let datagram = &cyclone()[0];
    let header = MessageView::parse(datagram).expect("the header is valid").header();
    assert_eq!((header.version, header.vendor), (ProtocolVersion::V2_1, VendorId::CYCLONE));
    let data = data_of(datagram, EntityId::SPDP_WRITER)[0];
    let participant = ParticipantData::parse(payload(&data)).expect("well formed");
    assert_eq!(participant.guid, Guid::new(header.prefix, EntityId::PARTICIPANT));
    assert_eq!(participant.vendor_id, VendorId::CYCLONE);
    assert_eq!(participant.domain_id, Some(0));
    assert_eq!(participant.lease_duration, Duration::from_secs(10));
    assert_eq!(participant.metatraffic_unicast[0].to_string(), "udp/127.0.0.1:52866");
    assert_eq!(participant.metatraffic_multicast[0].to_string(), "udp/239.255.0.1:7400");
    assert_eq!(participant.properties.get("__ProcessName"), Some("ddsperf"));
    assert!(participant.user_data.0.starts_with(b"DDSPerf:"));
    assert_eq!(participant.available_builtin_endpoints & 0xc3f, 0xc3f);
}

#[test]
fn endpoints_of_cyclone_are_parsed() {
    let captures = cyclone();
    let publications: Vec<PublicationData> = captures
        .iter()
        .flat_map(|datagram| data_of(datagram, EntityId::SEDP_PUB_WRITER))
        .map(|data| PublicationData::parse(payload(&data)).expect("well formed"))
        .collect();
    let subscriptions: Vec<SubscriptionData> = captures
        .iter()
        .flat_map(|datagram| data_of(datagram, EntityId::SEDP_SUB_WRITER))
        .map(|data| SubscriptionData::parse(payload(&data)).expect("well formed"))
        .collect();
    let topic = "DDSPerfRDataKS";
    let writer = publications.iter().find(|data| data.topic_name == topic).expect("is announced");
    assert_eq!(writer.type_name, "KeyedSeq");
    assert!(writer.qos.reliability.is_reliable() && writer.guid.entity_id.is_writer());
    assert_eq!(writer.guid.prefix, writer.participant.prefix);
    for reader in &subscriptions {
        assert!(reader.guid.entity_id.is_reader());
        let writer = publications.iter().find(|data| data.topic_name == reader.topic_name);
        if let Some(writer) = writer {
            assert_eq!(check(writer, reader), [], "{}", reader.topic_name);
            // A participant reads one topic in a partition that is named after that participant.
            let is_same = writer.partition == reader.partition;
            assert_eq!(partitions_match(&writer.partition, &reader.partition), is_same);
        }
    }
    assert!(!subscriptions.is_empty());
}

#[test]
fn liveliness_of_cyclone_is_parsed() {
    let captures = cyclone();
    let messages: Vec<_> =
        captures.iter().flat_map(|datagram| data_of(datagram, EntityId::P2P_MESSAGE_WRITER)).collect();
    let message = ParticipantMessageData::parse(payload(&messages[0])).expect("well formed");
    assert_eq!(message.kind, ParticipantMessageData::KIND_AUTOMATIC);
}

#[test]
fn participant_of_fast_dds_is_parsed() {
    let datagram = &fast_dds()[0];
    let data = data_of(datagram, EntityId::SPDP_WRITER)[0];
    let participant = ParticipantData::parse(payload(&data)).expect("well formed");
    assert_eq!(participant.vendor_id, VendorId::EPROSIMA);
    assert_eq!(participant.protocol_version, ProtocolVersion { major: 2, minor: 3 });
    assert_eq!(participant.domain_id, None, "the version does not tell its domain");
    assert_eq!(participant.lease_duration, Duration::from_secs(20));
    assert_eq!(participant.entity_name.0, "name");
    assert_eq!(participant.properties.get("PARTICIPANT_TYPE"), Some("SIMPLE"));
    assert_eq!(participant.default_unicast[0].to_string(), "udp/127.0.0.1:8411");
}

#[test]
fn endpoints_of_fast_dds_are_parsed() {
    let captures = fast_dds();
    let reader = data_of(&captures[3], EntityId::SEDP_SUB_WRITER)[0];
    let mut reader = SubscriptionData::parse(payload(&reader)).expect("well formed");
    let writer = data_of(&captures[4], EntityId::SEDP_PUB_WRITER)[0];
    let writer = PublicationData::parse(payload(&writer)).expect("well formed");
    assert_eq!((writer.topic_name.as_str(), writer.type_name.as_str()), ("Square", "ShapeType"));
    assert_eq!(writer.qos.durability, Durability::TransientLocal);
    assert_eq!(writer.qos.reliability, Reliability::RELIABLE);
    assert_eq!(writer.qos.deadline.period, Duration::from_secs(2));
    assert_eq!(writer.qos.ownership, Ownership::Exclusive);
    assert_eq!(writer.qos.ownership_strength, OwnershipStrength(7));
    assert!(writer.qos.data_representation.0.is_empty(), "absent");
    assert_eq!(writer.max_sample_serialized, Some(20_000));
    assert_eq!(writer.partition.names, ["p*"]);
    assert_eq!(reader.partition.names, ["p1"]);
    assert!(reader.qos.type_consistency.ignore_member_names);

    assert!(partitions_match(&writer.partition, &reader.partition));
    assert_eq!(check(&writer, &reader), []);
    reader.qos.durability = Durability::Persistent;
    assert_eq!(check(&writer, &reader)[0].policy, PolicyId::Durability);
}

#[test]
fn acknack_of_fast_dds_before_the_first_heartbeat_is_parsed() {
    let captures = fast_dds();
    let acknack = usable(&captures[2]).into_iter().find_map(|submessage| match submessage {
        Submessage::AckNack(acknack) => Some(acknack),
        _ => None,
    });
    let acknack = acknack.expect("is there");
    assert_eq!(acknack.reader_sn_state.base(), SequenceNumber::FIRST);
    assert!(acknack.reader_sn_state.is_empty() && acknack.is_final);
}

#[test]
fn disposals_of_fast_dds_have_no_payload() {
    let captures = fast_dds();
    let user_writer = EntityId([0, 0, 1, 2]);
    for (index, writer, status) in [
        (6, user_writer, STATUS_INFO_DISPOSED),
        (7, EntityId::SEDP_PUB_WRITER, STATUS_INFO_DISPOSED | STATUS_INFO_UNREGISTERED),
        (8, EntityId::SPDP_WRITER, STATUS_INFO_DISPOSED | STATUS_INFO_UNREGISTERED),
    ] {
        let data = data_of(&captures[index], writer)[0];
        assert_eq!(data.payload, Payload::None);
        let qos = InlineQos::parse(data.inline_qos.expect("is there")).expect("well formed");
        assert_eq!(qos.status_info, Some(status));
        let key = Guid::from_bytes(qos.key_hash.expect("is there"));
        assert_eq!(key == Guid::UNKNOWN, index == 6, "the key of an endpoint is its GUID");
    }
}
