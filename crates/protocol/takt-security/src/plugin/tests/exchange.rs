//! Tests of key tokens: early, late, weak, and of or for other entities.

use super::*;
use crate::keys::{TransformKind, key_tokens};
use crate::message::{CLASS_READER_CRYPTO_TOKENS, CLASS_WRITER_CRYPTO_TOKENS, GenericMessage, MessageIdentity};

fn data(node: &Node) -> Vec<u8> {
    protection::data_message(node, GuidPrefix::UNKNOWN, EntityId::UNKNOWN, b"1234")
}

/// Returns tokens of the second participant's writer for a reader of the first one.
fn tokens(world: &World, materials: &[KeyMaterial]) -> GenericMessage<'static> {
    let [first, second] = [0, 1].map(|index| world.nodes[index].prefix());
    GenericMessage {
        identity: MessageIdentity { source: Guid::new(second, EntityId::VOLATILE_MESSAGE_WRITER), sequence_number: 7 },
        destination_participant: participant_guid(first),
        destination_endpoint: Guid::new(first, READER),
        source_endpoint: Guid::new(second, WRITER),
        class_id: CLASS_WRITER_CRYPTO_TOKENS,
        tokens: key_tokens(&materials.iter().collect::<Vec<_>>()),
        ..GenericMessage::default()
    }
}

fn material(kind: TransformKind) -> KeyMaterial {
    KeyMaterial::generate(kind).expect("random numbers")
}

/// Returns two participants, the first of which has a reader of the topic.
fn with_reader(rule: &DomainRule) -> World {
    let mut world = World::pair(rule);
    let (now, reader) = (world.now, world.nodes[0].reader_data(TOPIC));
    world.nodes[0].plugin.admit_reader(now, &reader).expect("admitted");
    world
}

fn receive(world: &mut World, message: &GenericMessage<'_>) -> u64 {
    let (now, from) = (world.now, world.nodes[1].prefix());
    let plugin = &mut world.nodes[0].plugin;
    let before = plugin.counters().key_messages_refused;
    plugin.handle_message(now, SecurityChannel::Volatile, from, &message.to_payload());
    plugin.counters().key_messages_refused - before
}

#[test]
fn tokens_that_arrive_before_the_match_take_effect_with_it() {
    let mut world = World::pair(&encrypting());
    world.make_endpoints();
    let [writer, reader] = [(0, WRITER), (1, READER)].map(|(index, id)| Guid::new(world.nodes[index].prefix(), id));
    world.nodes[0].plugin.pair_matched(WRITER, reader);
    world.run();
    let sender = writer.prefix;
    let before = world.nodes[1].plugin.keyring.count(sender);
    let plain = data(&world.nodes[0]);
    let sealed = world.nodes[0].seal(&plain).expect("sealed");
    assert_eq!(world.nodes[1].open(&sealed), None, "not matched");
    world.nodes[1].plugin.pair_matched(READER, writer);
    assert_eq!(world.nodes[1].plugin.keyring.count(sender), before + 2, "submessages and payloads");
    assert_eq!(world.nodes[1].open(&sealed), Some((plain.clone(), vec![WRITER; 2])));
    // The match ends, and is established again without new tokens.
    world.nodes[1].plugin.pair_unmatched(READER, writer);
    assert_eq!(world.nodes[1].plugin.keyring.count(sender), before);
    let sealed = world.nodes[0].seal(&plain).expect("sealed");
    assert_eq!(world.nodes[1].open(&sealed), None, "parted");
    world.nodes[1].plugin.pair_matched(READER, writer);
    assert_eq!(world.nodes[1].open(&sealed), Some((plain, vec![WRITER; 2])));
}

#[test]
fn stored_tokens_of_unmatched_pairs_are_limited() {
    let mut world = with_reader(&encrypting());
    for key in 0..EARLY_TOKENS_MAX + 10 {
        let mut message = tokens(&world, &[material(TransformKind::Aes256Gcm)]);
        message.source_endpoint.entity_id = EntityId::user_writer(u32::try_from(key).expect("small"), false);
        assert_eq!(receive(&mut world, &message), 0);
    }
    let other = world.nodes[1].prefix();
    assert_eq!(world.nodes[0].plugin.remotes[&other].early_tokens.len(), EARLY_TOKENS_MAX);
    assert_eq!(world.nodes[0].plugin.counters().key_tokens_displaced, 10);
}

#[test]
fn tokens_of_or_for_other_endpoints_are_refused() {
    let mut world = with_reader(&encrypting());
    let good = tokens(&world, &[material(TransformKind::Aes256Gcm)]);
    assert_eq!(receive(&mut world, &good), 0);
    let unknown = GuidPrefix([9; 12]);
    let change = |change: fn(&mut GenericMessage<'static>, GuidPrefix)| {
        let mut message = good.clone();
        change(&mut message, unknown);
        message
    };
    for (name, message) in [
        ("source", change(|message, other| message.identity.source.prefix = other)),
        ("destination", change(|message, other| message.destination_participant.prefix = other)),
        ("source endpoint", change(|message, other| message.source_endpoint.prefix = other)),
        ("destination endpoint", change(|message, other| message.destination_endpoint.prefix = other)),
        ("kinds", change(|message, _| message.class_id = CLASS_READER_CRYPTO_TOKENS)),
        ("class", change(|message, _| message.class_id = "dds.sec.other")),
        ("no token", change(|message, _| message.tokens.clear())),
        ("class of the token", change(|message, _| message.tokens[0].class_id = "other".into())),
    ] {
        assert_eq!(receive(&mut world, &message), 1, "{name}");
    }
    let now = world.now;
    let plugin = &mut world.nodes[0].plugin;
    plugin.handle_message(now, SecurityChannel::Volatile, unknown, &good.to_payload());
    assert!(take_log(plugin).pop().expect("an entry").text.contains("not authenticated"));
}

#[test]
fn keys_weaker_than_the_governance_requires_are_refused() {
    let origin = ProtectionKind::EncryptWithOriginAuthentication;
    for (metadata, data) in [
        (ProtectionKind::Encrypt, BasicProtectionKind::None),
        (ProtectionKind::None, BasicProtectionKind::Encrypt),
        (ProtectionKind::Encrypt, BasicProtectionKind::Encrypt),
        (origin, BasicProtectionKind::None),
    ] {
        let mut world = with_reader(&rule(ProtectionKind::None, metadata, data));
        let writer = Guid::new(world.nodes[1].prefix(), WRITER);
        world.nodes[0].plugin.pair_matched(READER, writer);
        let gcm = material(TransformKind::Aes128Gcm);
        let gcm = if metadata == origin { gcm.for_receiver().expect("random numbers") } else { gcm };
        for (kind, is_refused) in [
            (material(TransformKind::Aes256Gmac), true),
            (material(TransformKind::None), true),
            (material(TransformKind::Aes256Gcm), metadata == origin),
            (gcm, false),
        ] {
            let message = tokens(&world, std::slice::from_ref(&kind));
            assert_eq!(receive(&mut world, &message), u64::from(is_refused), "{metadata:?} {data:?} {kind:?}");
        }
    }
}

#[test]
fn new_tokens_of_a_pair_replace_the_old_ones() {
    let mut world = with_reader(&encrypting());
    let writer = Guid::new(world.nodes[1].prefix(), WRITER);
    world.nodes[0].plugin.pair_matched(READER, writer);
    let before = world.nodes[0].plugin.keyring.count(writer.prefix);
    for _ in 0..20 {
        let materials = [TransformKind::Aes256Gcm; 2].map(material);
        let message = tokens(&world, &materials);
        assert_eq!(receive(&mut world, &message), 0);
        assert_eq!(world.nodes[0].plugin.keyring.count(writer.prefix), before + 2);
    }
    world.nodes[0].plugin.endpoint_deleted(READER);
    assert_eq!(world.nodes[0].plugin.keyring.count(writer.prefix), before);
}

#[test]
fn key_of_one_endpoint_cannot_be_claimed_by_another() {
    let mut world = with_reader(&encrypting());
    let sender = world.nodes[1].prefix();
    let [one, two] = [1, 2].map(|key| EntityId::user_writer(key, false));
    for id in [one, two] {
        world.nodes[0].plugin.pair_matched(READER, Guid::new(sender, id));
    }
    let mut message = tokens(&world, &[material(TransformKind::Aes256Gcm)]);
    message.source_endpoint.entity_id = one;
    assert_eq!(receive(&mut world, &message), 0);
    message.source_endpoint.entity_id = two;
    assert_eq!(receive(&mut world, &message), 1);
}

#[test]
fn reader_of_protected_payloads_sends_tokens_and_requires_none() {
    let mut world = World::pair(&rule(ProtectionKind::None, ProtectionKind::None, BasicProtectionKind::Encrypt));
    world.make_endpoints();
    let (now, writer) = (world.now, Guid::new(world.nodes[0].prefix(), WRITER));
    world.nodes[1].plugin.pair_matched(READER, writer);
    let sent = world.nodes[1].plugin.poll_message(now).expect("tokens");
    let message = GenericMessage::parse(&sent.payload).expect("a message");
    assert_eq!((message.class_id, message.tokens.len()), (CLASS_READER_CRYPTO_TOKENS, 1));
    assert_eq!(message.destination_endpoint, writer);
    // These tokens are not used.
    let from = world.nodes[1].prefix();
    world.nodes[0].plugin.handle_message(now, SecurityChannel::Volatile, from, &sent.payload);
    assert_eq!(world.nodes[0].plugin.counters().key_messages_refused, 0);
}

#[test]
fn unsent_tokens_are_dropped_when_the_match_ends() {
    let mut world = World::pair(&encrypting());
    world.make_endpoints();
    let (now, reader) = (world.now, Guid::new(world.nodes[1].prefix(), READER));
    let plugin = &mut world.nodes[0].plugin;
    plugin.pair_matched(WRITER, reader);
    plugin.pair_unmatched(WRITER, reader);
    assert_eq!(plugin.poll_message(now), None);
    plugin.pair_matched(WRITER, reader);
    assert!(plugin.poll_message(now).is_some_and(|message| message.to == reader.prefix));
    // Unprotected endpoints need no keys.
    plugin.pair_matched(EntityId::SEDP_PUB_WRITER, Guid::new(reader.prefix, EntityId::SEDP_PUB_READER));
    assert_eq!(plugin.poll_message(now), None);
}
