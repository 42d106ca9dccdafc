//! Tests of protected messages between participants, with faults on the way.

use super::*;
use takt_wire::{AckNack, DataEmit, DataFragEmit, Heartbeat, Payload, SequenceNumber, SequenceNumberSet};

fn acknack(reader: EntityId, writer: EntityId) -> AckNack {
    AckNack { reader, writer, reader_sn_state: SequenceNumberSet::new(SequenceNumber(1)), count: 1, is_final: true }
}

fn heartbeat(writer: EntityId, reader: EntityId) -> Heartbeat {
    Heartbeat {
        reader,
        writer,
        first_sn: SequenceNumber(1),
        last_sn: SequenceNumber(1),
        count: 1,
        is_final: false,
        liveliness: false,
        group: None,
    }
}

/// Returns INFO_DST if there is a destination, then INFO_TS, DATA and HEARTBEAT of the writer.
pub(super) fn data_message(node: &Node, destination: GuidPrefix, reader: EntityId, payload: &[u8]) -> Vec<u8> {
    message_of(node, WRITER, destination, reader, payload)
}

fn message_of(node: &Node, writer: EntityId, destination: GuidPrefix, reader: EntityId, payload: &[u8]) -> Vec<u8> {
    node.message(|builder| {
        if destination != GuidPrefix::UNKNOWN {
            builder.info_destination(destination).expect("room");
        }
        builder.info_timestamp(Some(Timestamp::ZERO)).expect("room");
        let payload = Payload::Data(payload);
        builder.data(&DataEmit { reader, writer, sn: SequenceNumber(1), inline_qos: None, payload }).expect("room");
        builder.heartbeat(&heartbeat(writer, reader)).expect("room");
    })
}

/// Returns participants with a matched writer and reader.
fn matched(rule: &DomainRule) -> World {
    let mut world = World::pair(rule);
    world.make_endpoints();
    world.match_endpoints();
    for index in [0, 1] {
        let counters = *world.nodes[index].plugin.counters();
        assert_eq!(counters.key_messages_refused, 0, "{}", world.log_of(index));
    }
    world
}

fn contains(octets: &[u8], marker: &[u8]) -> bool {
    octets.windows(marker.len()).any(|window| window == marker)
}

/// Returns the payload of the DATA in a message without other protection.
fn payload_of(message: &[u8]) -> Vec<u8> {
    let view = MessageView::parse(message).expect("a message");
    let mut submessages = view.submessages();
    while let Some(envelope) = submessages.next_envelope() {
        if let Ok(Submessage::Data(data)) = envelope.expect("whole").open() {
            return data.payload.bytes().expect("a payload").to_vec();
        }
    }
    panic!("no DATA");
}

#[test]
fn messages_round_trip_for_all_kinds_of_protection() {
    let marker = b"plaintext-marker";
    let kinds = ProtectionKind::NAMES.map(|(kind, _)| kind);
    for rtps in kinds {
        for metadata in kinds {
            for data in [BasicProtectionKind::None, BasicProtectionKind::Sign, BasicProtectionKind::Encrypt] {
                let name = format!("{rtps:?} {metadata:?} {data:?}");
                let mut world = matched(&rule(rtps, metadata, data));
                let [writer, reader] = [0, 1].map(|index| world.nodes[index].prefix());
                let unknown = (GuidPrefix::UNKNOWN, EntityId::UNKNOWN);
                for (destination, id) in [unknown, (reader, READER), (reader, EntityId::UNKNOWN)] {
                    let plain = data_message(&world.nodes[0], destination, id, marker);
                    let sealed = world.nodes[0].seal(&plain).expect("sealed");
                    let hides = rtps.is_encrypted() || metadata.is_encrypted() || data == BasicProtectionKind::Encrypt;
                    assert_eq!(contains(&sealed, marker), !hides, "{name}");
                    let plugin = &world.nodes[0].plugin;
                    let (overhead, each) = (plugin.message_overhead(), plugin.submessage_overhead());
                    let len_max = plain.len() + overhead + 2 * each + plugin.payload_overhead(WRITER);
                    assert!(sealed.len() <= len_max, "{name}");
                    let senders = if metadata.is_protected() { vec![WRITER; 2] } else { Vec::new() };
                    assert_eq!(world.nodes[1].open(&sealed), Some((plain, senders)), "{name}");
                }
                let reply = world.nodes[1].message(|builder| {
                    builder.info_destination(writer).expect("room");
                    builder.acknack(&acknack(READER, WRITER)).expect("room");
                });
                let sealed = world.nodes[1].seal(&reply).expect("sealed");
                let senders = if metadata.is_protected() { vec![READER] } else { Vec::new() };
                assert_eq!(world.nodes[0].open(&sealed), Some((reply, senders)), "{name}");
            }
        }
    }
}

#[test]
fn message_is_opened_by_exactly_its_receivers() {
    let origin = ProtectionKind::SignWithOriginAuthentication;
    for (rtps, metadata) in [(origin, ProtectionKind::None), (ProtectionKind::None, origin), (origin, origin)] {
        let rule = rule(rtps, metadata, BasicProtectionKind::None);
        let names: Vec<String> = (0..12).map(|index| format!("Participant {index}")).collect();
        let mut world = World::new(names.iter().map(|name| Node::new(settings(name, &rule))).collect());
        for other in 1..names.len() {
            world.discover(0, other);
            world.discover(other, 0);
        }
        world.run();
        let (now, writer) = (world.now, Guid::new(world.nodes[0].prefix(), WRITER));
        let data = world.nodes[0].writer_data(TOPIC);
        world.nodes[0].plugin.admit_writer(now, &data).expect("admitted");
        let few = (world.nodes[0].plugin.message_overhead(), world.nodes[0].plugin.submessage_overhead());
        for other in 1..names.len() {
            let reader = world.nodes[other].reader_data(TOPIC);
            world.nodes[other].plugin.admit_reader(now, &reader).expect("admitted");
            world.nodes[0].plugin.pair_matched(WRITER, reader.guid);
            world.nodes[other].plugin.pair_matched(READER, writer);
        }
        world.run();
        let plain = data_message(&world.nodes[0], GuidPrefix::UNKNOWN, EntityId::UNKNOWN, b"1234");
        let sealed = world.nodes[0].seal(&plain).expect("sealed");
        let (message, each) = (world.nodes[0].plugin.message_overhead(), world.nodes[0].plugin.submessage_overhead());
        assert!(
            (message, each) >= few && sealed.len() <= plain.len() + message + 2 * each,
            "{} {message} {each}",
            sealed.len()
        );
        for index in 0..names.len() {
            assert_eq!(world.nodes[index].open(&sealed).map(|(opened, _)| opened), Some(plain.clone()), "{index}");
        }
        let destination = world.nodes[1].prefix();
        let plain = data_message(&world.nodes[0], destination, READER, b"1234");
        let sealed = world.nodes[0].seal(&plain).expect("sealed");
        for index in 0..names.len() {
            let opened = world.nodes[index].open(&sealed).map(|(opened, _)| opened);
            assert_eq!(opened, (index == 1).then(|| plain.clone()), "{index}");
        }
        assert!(world.nodes[2].plugin.counters().receiver_codes > 0);
    }
}

#[test]
fn message_that_one_reader_opens_is_open_to_its_whole_participant() {
    let origin = ProtectionKind::EncryptWithOriginAuthentication;
    let mut world = matched(&rule(ProtectionKind::None, origin, BasicProtectionKind::None));
    let (now, other) = (world.now, EntityId::user_reader(77, false));
    let mut data = world.nodes[1].reader_data(TOPIC);
    data.guid.entity_id = other;
    let writer = Guid::new(world.nodes[0].prefix(), WRITER);
    world.nodes[1].plugin.admit_reader(now, &data).expect("admitted");
    world.nodes[0].plugin.pair_matched(WRITER, data.guid);
    world.nodes[1].plugin.pair_matched(other, writer);
    world.run();
    for reader in [READER, other, EntityId::UNKNOWN] {
        let plain = data_message(&world.nodes[0], data.guid.prefix, reader, b"1234");
        let sealed = world.nodes[0].seal(&plain).expect("sealed");
        assert_eq!(world.nodes[1].open(&sealed), Some((plain, vec![WRITER; 2])), "{reader}");
    }
}

#[test]
fn participant_opens_its_own_messages_and_refuses_forged_ones() {
    for origin in [false, true] {
        let kind = if origin { ProtectionKind::EncryptWithOriginAuthentication } else { ProtectionKind::Encrypt };
        let mut world = matched(&rule(kind, kind, BasicProtectionKind::Sign));
        let own = world.nodes[0].prefix();
        for destination in [GuidPrefix::UNKNOWN, own] {
            let plain = data_message(&world.nodes[0], destination, READER, b"1234");
            let sealed = world.nodes[0].seal(&plain).expect("sealed");
            assert_eq!(world.nodes[0].open(&sealed), Some((plain, vec![WRITER; 2])), "{kind:?}");
        }
        // The other participant has the key, too; only the receiver-specific code of the first one
        // prevents forging.
        let remote = Guid::new(own, WRITER);
        let keys = world.nodes[1].plugin.pairs[&(READER, remote)].clone();
        let mut forger = crate::transform::Sealer::new(keys[0].clone()).expect("a sealer");
        let plain = data_message(&world.nodes[0], GuidPrefix::UNKNOWN, READER, b"fake");
        let mut frame = [&[0; 64][..], &plain[32..60], &[0; 64]].concat();
        let forged = forger.seal_submessage(&mut frame, 64..92, crate::transform::Receivers::All).expect("sealed");
        let opened = world.nodes[0].plugin.open_submessages(own, &frame[forged], &mut [0; 256]).is_some();
        assert_eq!(opened, !origin);
    }
}

#[test]
fn every_changed_bit_is_detected() {
    for rtps in [ProtectionKind::None, ProtectionKind::Sign] {
        let rule = rule(rtps, ProtectionKind::Encrypt, BasicProtectionKind::None);
        // A replay window would refuse the undamaged part when it is repeated.
        let nodes =
            ["Alice", "Bob"].map(|name| Node::new(Settings { has_replay_windows: false, ..settings(name, &rule) }));
        let mut world = World::pair_of(nodes);
        world.make_endpoints();
        world.match_endpoints();
        let plain = data_message(&world.nodes[0], GuidPrefix::UNKNOWN, EntityId::UNKNOWN, b"1234");
        let sealed = world.nodes[0].seal(&plain).expect("sealed");
        // Without message protection the header and INFO_TS are plain.
        let from = if rtps.is_protected() { 20 } else { 32 };
        for bit in from * 8..sealed.len() * 8 {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let opened = world.nodes[1].open(&damaged);
            let is_noticed = opened.is_none_or(|(opened, senders)| opened != plain || senders.len() < 2);
            assert!(is_noticed, "{rtps:?} octet {} bit {}", bit / 8, bit % 8);
        }
        assert_eq!(world.nodes[1].open(&sealed), Some((plain, vec![WRITER; 2])));
        let counters = world.nodes[1].plugin.counters();
        assert!(counters.not_authentic > 0 && counters.malformed > 0 && counters.unknown_keys > 0, "{counters:?}");
    }
}

#[test]
fn replayed_message_is_refused_unless_its_vendor_uses_random_counters() {
    let rule = rule(ProtectionKind::None, ProtectionKind::Sign, BasicProtectionKind::None);
    for (vendor, has_windows) in [(VendorId::TAKT, true), (VendorId::EPROSIMA, true), (VendorId::TAKT, false)] {
        let nodes = ["Alice", "Bob"]
            .map(|name| Node::of_vendor(Settings { has_replay_windows: has_windows, ..settings(name, &rule) }, vendor));
        let mut world = World::pair_of(nodes);
        world.make_endpoints();
        world.match_endpoints();
        let plain = data_message(&world.nodes[0], GuidPrefix::UNKNOWN, EntityId::UNKNOWN, b"1234");
        let sealed = world.nodes[0].seal(&plain).expect("sealed");
        assert!(world.nodes[1].open(&sealed).is_some());
        let refuses = vendor == VendorId::TAKT && has_windows;
        assert_eq!(world.nodes[1].open(&sealed).is_none(), refuses, "{vendor:?} {has_windows}");
        assert_eq!(world.nodes[1].plugin.counters().replayed, u64::from(refuses));
        // A repeated token does not reset the replay window.
        world.match_endpoints();
        assert_eq!(world.nodes[1].open(&sealed).is_none(), refuses, "{vendor:?} {has_windows}");
    }
}

#[test]
fn volatile_message_is_sealed_for_its_destination_and_refused_when_reflected() {
    let mut world = matched(&rule(ProtectionKind::Sign, ProtectionKind::Sign, BasicProtectionKind::None));
    let [one, two] = [0, 1].map(|index| world.nodes[index].prefix());
    let id = EntityId::VOLATILE_MESSAGE_WRITER;
    let plain = message_of(&world.nodes[0], id, two, EntityId::VOLATILE_MESSAGE_READER, b"plaintext-marker");
    let sealed = world.nodes[0].seal(&plain).expect("sealed");
    assert!(!contains(&sealed, b"plaintext-marker") && !contains(&sealed, &[SRTPS_PREFIX, 1, 20, 0]));
    assert_eq!(world.nodes[1].open(&sealed), Some((plain, vec![id; 2])));
    // Reflected to its sender in the name of the receiver.
    let plain = message_of(&world.nodes[0], id, two, EntityId::VOLATILE_MESSAGE_READER, b"plaintext-marker");
    let mut reflected = world.nodes[0].seal(&plain).expect("sealed");
    reflected[8..20].copy_from_slice(&two.0);
    assert_eq!(world.nodes[0].open(&reflected), None);
    assert_eq!(world.nodes[0].plugin.counters().reflected, 1);
    let reply = world.nodes[1].message(|builder| {
        builder.info_destination(one).expect("room");
        builder.acknack(&acknack(EntityId::VOLATILE_MESSAGE_READER, id)).expect("room");
    });
    let sealed = world.nodes[1].seal(&reply).expect("sealed");
    assert_eq!(world.nodes[0].open(&sealed), Some((reply, vec![id])));
    for destination in [GuidPrefix::UNKNOWN, GuidPrefix([7; 12])] {
        let lost = message_of(&world.nodes[0], id, destination, EntityId::VOLATILE_MESSAGE_READER, b"1234");
        assert_eq!(world.nodes[0].seal(&lost), None, "no key");
    }
}

#[test]
fn discovery_and_handshakes_stay_plain_and_mixed_messages_are_refused() {
    let mut world = matched(&rule(ProtectionKind::Encrypt, ProtectionKind::Sign, BasicProtectionKind::None));
    for id in [EntityId::SPDP_WRITER, EntityId::STATELESS_MESSAGE_WRITER] {
        let plain = message_of(&world.nodes[0], id, GuidPrefix::UNKNOWN, EntityId::UNKNOWN, b"1234");
        assert_eq!(world.nodes[0].seal(&plain), Some(plain));
    }
    for id in [EntityId::SPDP_READER, EntityId::STATELESS_MESSAGE_READER] {
        let plain = world.nodes[0].message(|builder| builder.acknack(&acknack(id, EntityId::UNKNOWN)).expect("room"));
        assert_eq!(world.nodes[0].seal(&plain), Some(plain));
    }
    let plain = message_of(&world.nodes[0], EntityId::SEDP_PUB_WRITER, GuidPrefix::UNKNOWN, EntityId::UNKNOWN, b"1234");
    let sealed = world.nodes[0].seal(&plain).expect("sealed");
    assert_eq!(sealed[20], SRTPS_PREFIX);
    assert_eq!(world.nodes[1].open(&sealed), Some((plain, Vec::new())));
    let destination = world.nodes[1].prefix();
    for (first, second) in [
        (EntityId::VOLATILE_MESSAGE_WRITER, WRITER),
        (WRITER, EntityId::VOLATILE_MESSAGE_WRITER),
        (WRITER, EntityId::SPDP_WRITER),
    ] {
        let mixed = world.nodes[0].message(|builder| {
            builder.info_destination(destination).expect("room");
            builder.heartbeat(&heartbeat(first, EntityId::UNKNOWN)).expect("room");
            builder.heartbeat(&heartbeat(second, EntityId::UNKNOWN)).expect("room");
        });
        assert_eq!(world.nodes[0].seal(&mixed), None, "{first} {second}");
    }
    assert_eq!(world.nodes[0].plugin.counters().seal_malformed, 3);
}

#[test]
fn endpoint_without_admission_sends_nothing() {
    let mut world = matched(&rule(ProtectionKind::None, ProtectionKind::None, BasicProtectionKind::None));
    let plain = data_message(&world.nodes[0], GuidPrefix::UNKNOWN, EntityId::UNKNOWN, b"1234");
    assert_eq!(world.nodes[0].seal(&plain), Some(plain.clone()), "nothing is protected");
    world.nodes[0].plugin.endpoint_deleted(WRITER);
    assert_eq!(world.nodes[0].seal(&plain), None);
    assert_eq!(world.nodes[0].plugin.counters().seal_without_key, 1);
}

#[test]
fn sealing_fails_for_every_frame_length_that_is_too_small() {
    let kind = ProtectionKind::EncryptWithOriginAuthentication;
    let mut world = matched(&rule(kind, kind, BasicProtectionKind::None));
    let plain = data_message(&world.nodes[0], GuidPrefix::UNKNOWN, EntityId::UNKNOWN, b"1234");
    let len = world.nodes[0].seal(&plain).expect("sealed").len();
    for room in 0..len {
        assert_eq!(world.nodes[0].plugin.protect(&plain, &mut vec![0; room]), None, "{room}");
    }
    assert_eq!(world.nodes[0].plugin.protect(&plain, &mut vec![0; len]), Some(len));
    assert_eq!(world.nodes[0].plugin.counters().seal_without_room, len as u64);
}

#[test]
fn submessage_longer_than_16_bits_is_not_sealed() {
    for rtps in [ProtectionKind::None, ProtectionKind::Sign] {
        let metadata = if rtps.is_protected() { ProtectionKind::None } else { ProtectionKind::Sign };
        let mut world = matched(&rule(rtps, metadata, BasicProtectionKind::None));
        let mut frame = vec![0; 80_000];
        let header = Header { version: ProtocolVersion::V2_5, vendor: VendorId::TAKT, prefix: world.nodes[0].prefix() };
        let mut builder = MessageBuilder::new(&mut frame, &header).expect("room");
        let payload = vec![0; 70_000];
        let data = DataEmit {
            reader: EntityId::UNKNOWN,
            writer: WRITER,
            sn: SequenceNumber(1),
            inline_qos: None,
            payload: Payload::Data(&payload),
        };
        builder.data(&data).expect("room");
        let plain = builder.bytes().to_vec();
        assert_eq!(world.nodes[0].seal(&plain), None);
        assert_eq!(world.nodes[0].plugin.counters().seal_without_room, 1);
    }
}

#[test]
fn payload_opens_only_for_its_writer_and_only_as_a_payload() {
    let mut world = matched(&rule(ProtectionKind::None, ProtectionKind::None, BasicProtectionKind::Encrypt));
    let plain = data_message(&world.nodes[0], GuidPrefix::UNKNOWN, EntityId::UNKNOWN, b"1234");
    let sealed = payload_of(&world.nodes[0].seal(&plain).expect("sealed"));
    let writer = Guid::new(world.nodes[0].prefix(), WRITER);
    let other = Guid::new(writer.prefix, EntityId::user_writer(99, false));
    let unknown = Guid::new(GuidPrefix([3; 12]), WRITER);
    let plugin = &mut world.nodes[1].plugin;
    let mut memory = vec![0; 2 * sealed.len()];
    assert_eq!(plugin.open_payload(other, &sealed, &mut memory), None);
    assert_eq!(plugin.open_payload(unknown, &sealed, &mut memory), None);
    assert_eq!((plugin.counters().misused_keys, plugin.counters().unknown_keys), (1, 1));
    // The same octets as the body of a protected submessage.
    let len = u8::try_from(sealed.len() - 40).expect("short");
    let body = [&[0x30, 1, len, 0], &sealed[20..sealed.len() - 20]].concat();
    let forged = [&[0x31, 1, 20, 0], &sealed[..20], &body, &[0x32, 1, 20, 0], &sealed[sealed.len() - 20..]].concat();
    assert_eq!(plugin.open_submessages(writer.prefix, &forged, &mut memory), None);
    assert_eq!(plugin.counters().misused_keys, 2);
    assert_eq!(plugin.open_payload(writer, &sealed, &mut memory), Some(&b"1234"[..]));
    assert_eq!(plugin.open_payload(writer, &sealed, &mut memory), None, "under another sequence number, for example");
    assert_eq!(plugin.counters().replayed, 1);
}

/// Peers of other vendors protect the payload of each fragment, and the fragment header counts
/// plain octets.
#[test]
fn fragments_are_protected_individually() {
    for metadata in [ProtectionKind::None, ProtectionKind::Sign] {
        let mut world = matched(&rule(ProtectionKind::None, metadata, BasicProtectionKind::Encrypt));
        let sample: Vec<u8> = (0..150).collect();
        let writer = Guid::new(world.nodes[0].prefix(), WRITER);
        for (number, payload) in (1..).zip(sample.chunks(64)) {
            let fragment = DataFragEmit {
                reader: EntityId::UNKNOWN,
                writer: WRITER,
                sn: SequenceNumber(1),
                fragment_starting_num: number,
                fragment_size: 64,
                sample_size: 150,
                inline_qos: None,
                key: false,
                payload,
                fragments_in_submessage: 1,
            };
            let plain = world.nodes[0].message(|builder| builder.data_frag(&fragment).expect("room"));
            let sealed = world.nodes[0].seal(&plain).expect("sealed");
            assert!(!contains(&sealed, &payload[..16]));
            let (opened, _) = world.nodes[1].open(&sealed).expect("opened");
            let view = MessageView::parse(&opened).expect("a message");
            let data = match view.submessages().next_envelope().expect("one").expect("whole").open() {
                Ok(Submessage::DataFrag(data)) => data,
                other => panic!("{other:?}"),
            };
            assert_eq!((data.fragment_starting_num, data.fragment_size, data.sample_size), (number, 64, 150));
            assert_eq!(
                data.rest.len(),
                payload.len().next_multiple_of(4) + world.nodes[0].plugin.payload_overhead(WRITER)
            );
            let mut memory = [0; 256];
            let plain = world.nodes[1].plugin.open_payload(writer, data.rest, &mut memory).expect("opened");
            assert_eq!(plain[..payload.len()], *payload, "{number}");
        }
    }
}

#[test]
fn session_keys_are_derived_in_advance() {
    let rule = rule(ProtectionKind::Encrypt, ProtectionKind::Encrypt, BasicProtectionKind::Encrypt);
    let nodes = ["Alice", "Bob"].map(|name| Node::new(Settings { blocks_per_session: 64, ..settings(name, &rule) }));
    let mut world = World::pair_of(nodes);
    world.make_endpoints();
    world.match_endpoints();
    let mut due_count = 0;
    for _ in 0..60 {
        let plain = data_message(&world.nodes[0], GuidPrefix::UNKNOWN, EntityId::UNKNOWN, b"12345678");
        let sealed = world.nodes[0].seal(&plain).expect("sealed");
        assert_eq!(world.nodes[1].open(&sealed), Some((plain, vec![WRITER; 2])));
        let (now, plugin) = (world.now, &mut world.nodes[0].plugin);
        due_count += usize::from(plugin.is_rollover_due);
        if plugin.is_rollover_due {
            assert_eq!(plugin.poll_timeout(), Some(now.at));
            plugin.handle_timeout(now);
            assert!(!plugin.is_rollover_due);
            let endpoint = plugin.endpoints.get_mut(&WRITER).expect("it was made");
            assert!(endpoint.sealers().all(|sealer| !sealer.is_rollover_due()), "the next one is there");
        }
    }
    assert!(due_count > 3, "{due_count}");
}
