//! Tests of core participants with these plugins: delivered samples, refusals, and content visible
//! to an eavesdropper.

use takt_core::{Event, Participant, RefusalReason};
use takt_security::documents::{BasicProtectionKind, DomainRule, DomainSet, Effect, Grant, ProtectionKind, TopicRule};
use takt_wire::message::{MessageView, id};
use takt_wire::{EntityId, GuidPrefix};

use crate::identities::{Identity, grant, issuers, rule, topic};
use crate::network::{Datagram, Network, address, config, payload, reader_spec, writer_spec};

const WORD: &[u8] = b"confidential-0123";
const TOPIC: &str = "SecretTopicName";
const KINDS: [ProtectionKind; 5] = [
    ProtectionKind::None,
    ProtectionKind::Sign,
    ProtectionKind::Encrypt,
    ProtectionKind::SignWithOriginAuthentication,
    ProtectionKind::EncryptWithOriginAuthentication,
];

/// Exchanges 20 samples, some of them fragmented, between two nodes; returns the number that arrive
/// in order.
fn exchange(rule: &DomainRule) -> (Network, u32) {
    let mut network = Network::new();
    for name in ["talker", "listener"] {
        Identity::new(name).join(&mut network, rule);
    }
    let writer = network.writer(0, writer_spec(TOPIC));
    let reader = network.reader(1, reader_spec(TOPIC));
    if !network.match_within(20_000, (0, writer), (1, reader)) {
        return (network, 0);
    }
    let mut arrived = 0;
    for number in 0..20 {
        let len = if number % 4 == 3 { 5_000 } else { 60 };
        let sample = payload(number, WORD, len);
        network.write(0, writer, &sample);
        let has_come = network.run_until(5_000, |network| {
            network.take(1, reader).is_some_and(|taken| {
                assert!(taken == sample, "{number}: {:?}", &taken[..taken.len().min(32)]);
                true
            })
        });
        arrived += u32::from(has_come);
    }
    (network, arrived)
}

#[test]
fn samples_arrive_under_every_governance() {
    for rtps in KINDS {
        for metadata in KINDS {
            for data in [BasicProtectionKind::None, BasicProtectionKind::Sign, BasicProtectionKind::Encrypt] {
                let (network, arrived) = exchange(&rule(rtps, ProtectionKind::Encrypt, topic(metadata, data, true)));
                let counters = network.nodes.iter().map(|node| *node.counters()).collect::<Vec<_>>();
                assert_eq!(arrived, 20, "rtps {rtps:?}, metadata {metadata:?}, data {data:?}: {counters:#?}");
                let hides = [rtps, metadata, data.widened()].into_iter().any(ProtectionKind::is_encrypted);
                assert_eq!(network.shows(0, WORD), !hides, "rtps {rtps:?}, metadata {metadata:?}, data {data:?}");
                assert!(!network.shows(0, TOPIC.as_bytes()), "discovery is encrypted");
            }
        }
    }
}

#[test]
fn discovery_is_encrypted_as_the_governance_requires() {
    for discovery in KINDS {
        for is_protected in [false, true] {
            let rule = rule(
                ProtectionKind::None,
                discovery,
                topic(ProtectionKind::Encrypt, BasicProtectionKind::None, is_protected),
            );
            let (network, arrived) = exchange(&rule);
            assert_eq!(arrived, 20, "{discovery:?}, {is_protected}");
            let hides = is_protected && discovery.is_encrypted();
            assert_eq!(network.shows(0, TOPIC.as_bytes()), !hides, "{discovery:?}, {is_protected}");
        }
    }
}

fn encrypting() -> DomainRule {
    rule(
        ProtectionKind::Encrypt,
        ProtectionKind::Encrypt,
        topic(ProtectionKind::Encrypt, BasicProtectionKind::Encrypt, true),
    )
}

/// Reports whether a datagram has a submessage of this kind.
fn has_submessage(datagram: &Datagram, kind: u8) -> bool {
    let mut submessages = MessageView::parse(&datagram.octets).expect("a message").submessages();
    std::iter::from_fn(|| submessages.next_envelope()).any(|envelope| envelope.expect("a submessage").id() == kind)
}

#[test]
fn builtin_endpoints_wait_until_the_participant_acknowledges_the_keys() {
    let mut network = Network::new();
    for name in ["talker", "listener"] {
        Identity::new(name).join(&mut network, &encrypting());
    }
    let writer = network.writer(0, writer_spec(TOPIC));
    let reader = network.reader(1, reader_spec(TOPIC));
    // A key token is longer than heartbeats and acknowledgments of the volatile endpoints.
    let is_token = |datagram: &Datagram| datagram.octets.len() > 250 && has_submessage(datagram, id::SEC_PREFIX);
    network.fault = Some(Box::new(move |datagram: &mut Datagram| datagram.from != address(0) || !is_token(datagram)));
    network.run(2_000);
    assert!(network.nodes.iter().all(|node| node.counters().participants_authenticated == 1));
    let of_first = |datagram: &&Datagram| datagram.from == address(0);
    assert!(network.sent.iter().filter(of_first).any(is_token), "tokens are repeated");
    let sealed = network.sent.iter().filter(of_first).filter(|datagram| has_submessage(datagram, id::SRTPS_PREFIX));
    assert_eq!(sealed.count(), 0, "messages that the other participant cannot open");
    network.fault = None;
    assert!(network.match_within(20_000, (0, writer), (1, reader)));
}

#[test]
fn all_samples_arrive_despite_loss_and_duplication() {
    let mut network = Network::new();
    for name in ["talker", "listener"] {
        Identity::new(name).join(&mut network, &encrypting());
    }
    let mut random = takt_testkit::Random(7);
    network.fault = Some(Box::new(move |_: &mut Datagram| !random.one_in(4)));
    let writer = network.writer(0, writer_spec(TOPIC));
    let reader = network.reader(1, reader_spec(TOPIC));
    assert!(network.match_within(120_000, (0, writer), (1, reader)));
    for number in 0..50 {
        network.write(0, writer, &payload(number, WORD, 3_000));
    }
    for number in 0..50 {
        let mut taken = None;
        network.run_until(20_000, |network| {
            taken = network.take(1, reader);
            taken.is_some()
        });
        assert!(taken.is_some_and(|taken| taken == payload(number, WORD, 3_000)), "{number}");
    }
}

/// Regression: initial messages of five readers, with eight receiver-specific MACs each, filled the
/// datagram.
#[test]
fn heartbeat_fits_after_initial_messages_with_origin_authentication() {
    let topic = topic(ProtectionKind::SignWithOriginAuthentication, BasicProtectionKind::Encrypt, true);
    let rule = rule(ProtectionKind::EncryptWithOriginAuthentication, ProtectionKind::Encrypt, topic);
    let mut network = Network::new();
    for name in ["talker", "one", "two", "three", "four", "five", "six"] {
        Identity::new(name).join(&mut network, &rule);
    }
    let writer = network.writer(0, writer_spec(TOPIC));
    let sample = payload(1, WORD, 60);
    network.write(0, writer, &sample);
    let readers: Vec<_> = (1..7).map(|node| network.reader(node, reader_spec(TOPIC))).collect();
    for (node, reader) in (1..7).zip(&readers) {
        assert!(network.match_within(20_000, (0, writer), (node, *reader)), "{node}");
    }
    let has_all = network.run_until(20_000, |network| {
        network.nodes[0].matched_subscriptions(writer).expect("the writer exists").len() == readers.len()
    });
    assert!(has_all, "the writer has all readers");
    network.write(0, writer, &sample);
    for (node, reader) in (1..7).zip(readers) {
        assert!(network.run_until(5_000, |network| network.take(node, reader) == Some(sample.clone())), "{node}");
    }
}

/// Regression: a submessage has a receiver-specific MAC for each of 100 readers, which exceeds a
/// packet.
#[test]
fn writer_with_a_hundred_readers_delivers_with_origin_authentication() {
    let topic = topic(ProtectionKind::EncryptWithOriginAuthentication, BasicProtectionKind::Encrypt, true);
    let rule = rule(ProtectionKind::EncryptWithOriginAuthentication, ProtectionKind::Encrypt, topic);
    let mut network = Network::new();
    for name in ["talker", "listener"] {
        Identity::new(name).join(&mut network, &rule);
    }
    let writer = network.writer(0, writer_spec(TOPIC));
    let readers: Vec<_> = (0..100).map(|_| network.reader(1, reader_spec(TOPIC))).collect();
    let has_all = network.run_until(20_000, |network| {
        network.nodes[0].matched_subscriptions(writer).expect("the writer exists").len() == readers.len()
    });
    assert!(has_all, "the writer has all readers");
    for (number, len) in [(1, 60), (2, 5_000)] {
        let sample = payload(number, WORD, len);
        network.write(0, writer, &sample);
        for (at, reader) in readers.iter().enumerate() {
            let arrives = network.run_until(5_000, |network| network.take(1, *reader) == Some(sample.clone()));
            assert!(arrives, "sample {number}, reader {at}: {:#?}", network.nodes[0].counters());
        }
    }
    assert_eq!(network.nodes[0].counters().heartbeats_without_room, 0);
}

/// Regression: challenges were repeated every 320 ms until the handshake ended.
#[test]
fn participant_with_validated_address_is_not_challenged_again() {
    let mut network = Network::new();
    Identity::new("member").join(&mut network, &encrypting());
    Identity { issuer: &issuers()[2], ..Identity::new("stranger") }.join(&mut network, &encrypting());
    network.run(2_000);
    let before = network.sent.len();
    network.run(10_000);
    let is_handshake =
        |datagram: &Datagram| datagram.octets.windows(4).any(|octets| octets == EntityId::STATELESS_MESSAGE_WRITER.0);
    let (handshakes, others): (Vec<_>, Vec<_>) = network.sent[before..].iter().partition(|one| is_handshake(one));
    // Each second has an AuthRequest of both, a Request of three fragments, and an announcement.
    let counts = (handshakes.len(), others.len());
    assert!((10..=50).contains(&counts.0) && counts.1 <= 10, "{counts:?} datagrams in 10 s");
}

/// The handshake may end before or after the address validation (DDS-SEC 1.1 §8.8). In both orders
/// builtin endpoints are matched once, and send no heartbeat once everything is acknowledged.
#[test]
fn authenticated_participants_send_no_heartbeats_when_all_is_acknowledged() {
    for seed in 1..6 {
        let mut network = Network::new();
        for name in ["one", "two", "three", "four"] {
            Identity::new(name).join(&mut network, &encrypting());
        }
        let mut random = takt_testkit::Random(seed);
        network.fault = Some(Box::new(move |_: &mut Datagram| !random.one_in(3)));
        let has_all =
            |network: &mut Network| network.nodes.iter().all(|node| node.counters().participants_validated == 3);
        assert!(network.run_until(60_000, has_all), "seed {seed}");
        network.fault = None;
        network.run(5_000);
        let heartbeats =
            |network: &Network| network.nodes.iter().map(|node| node.counters().heartbeats_sent).sum::<u64>();
        let before = heartbeats(&network);
        network.run(5_000);
        assert_eq!(heartbeats(&network), before, "seed {seed}");
    }
}

#[test]
fn participant_of_another_authority_is_refused_with_a_reason() {
    let mut network = Network::new();
    Identity::new("talker").join(&mut network, &encrypting());
    Identity { issuer: &issuers()[2], ..Identity::new("stranger") }.join(&mut network, &encrypting());
    let writer = network.writer(0, writer_spec(TOPIC));
    let reader = network.reader(1, reader_spec(TOPIC));
    assert!(!network.match_within(90_000, (0, writer), (1, reader)));
    assert!(network.events(0).iter().any(|event| matches!(event, Event::ParticipantRefused(_))));
    // The side that waits for an answer knows only that none has arrived.
    let reasons: Vec<_> =
        network.nodes.iter().flat_map(Participant::refused_participants).map(|(_, reason)| reason).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains("certificate of \"CN=")), "{reasons:?}");
}

#[test]
fn reader_without_a_grant_is_refused_with_a_reason() {
    let mut network = Network::new();
    Identity::new("talker").join(&mut network, &encrypting());
    let silent = Grant { default: Effect::Deny, ..grant("listener") };
    let rules = takt_security::documents::Rule {
        line: 0,
        effect: Effect::Allow,
        domains: DomainSet(vec![(0, 0)]),
        publish: Vec::new(),
        subscribe: vec![takt_security::documents::Criteria { topics: vec!["Other*".to_owned()], ..Default::default() }],
        relay: Vec::new(),
    };
    let identity = Identity { grant: Grant { rules: vec![rules], ..silent }, ..Identity::new("listener") };
    let node = identity.join(&mut network, &encrypting());
    let created = network.nodes[node].create_reader(network.now, reader_spec(TOPIC));
    let error = created.expect_err("its permissions do not allow it").to_string();
    assert!(error.contains("not allowed by security") && error.contains(TOPIC), "{error}");
    network.reader(node, reader_spec("OtherTopic"));
}

#[test]
fn participants_with_different_governances_do_not_match() {
    let mut network = Network::new();
    Identity::new("talker").join(&mut network, &encrypting());
    let signing = rule(
        ProtectionKind::Sign,
        ProtectionKind::Encrypt,
        topic(ProtectionKind::Encrypt, BasicProtectionKind::Encrypt, true),
    );
    Identity::new("listener").join(&mut network, &signing);
    let writer = network.writer(0, writer_spec(TOPIC));
    let reader = network.reader(1, reader_spec(TOPIC));
    assert!(!network.match_within(30_000, (0, writer), (1, reader)));
    let (_, reason) = network.nodes[0].refused_participants().next().expect("one is refused");
    assert!(reason.contains("is_rtps_encrypted on the local side only"), "{reason}");
}

#[test]
fn endpoints_with_different_topic_rules_do_not_match_and_report_a_reason() {
    let mut network = Network::new();
    let with = |data| rule(ProtectionKind::None, ProtectionKind::Encrypt, topic(ProtectionKind::Encrypt, data, true));
    Identity::new("talker").join(&mut network, &with(BasicProtectionKind::Encrypt));
    Identity::new("listener").join(&mut network, &with(BasicProtectionKind::None));
    let writer = network.writer(0, writer_spec(TOPIC));
    let reader = network.reader(1, reader_spec(TOPIC));
    assert!(!network.match_within(30_000, (0, writer), (1, reader)));
    let refusal = network.nodes[0].refusals().next().expect("one is refused").clone();
    assert!(
        matches!(&refusal.reason, RefusalReason::Security { reason } if reason.contains("is_payload_protected on the local side only")),
        "{refusal}"
    );
}

#[test]
fn participant_without_security_is_refused_or_allowed_by_the_governance() {
    for is_open in [false, true] {
        let mut network = Network::new();
        let bare = topic(ProtectionKind::None, BasicProtectionKind::None, false);
        let bare = TopicRule { enable_read_access_control: false, enable_write_access_control: false, ..bare };
        let rule = DomainRule {
            allow_unauthenticated_participants: is_open,
            ..rule(ProtectionKind::None, ProtectionKind::None, bare)
        };
        Identity::new("talker").join(&mut network, &rule);
        let config = config(1, GuidPrefix([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]));
        let plain = Participant::new(config, network.now).expect("the configuration is valid");
        network.join(plain);
        let writer = network.writer(0, writer_spec(TOPIC));
        let reader = network.reader(1, reader_spec(TOPIC));
        assert_eq!(network.match_within(30_000, (0, writer), (1, reader)), is_open);
    }
}

#[test]
fn every_flipped_bit_of_a_protected_sample_is_refused() {
    let mut network = Network::new();
    for name in ["talker", "listener"] {
        Identity::new(name).join(&mut network, &encrypting());
    }
    let writer = network.writer(0, writer_spec(TOPIC));
    let reader = network.reader(1, reader_spec(TOPIC));
    assert!(network.match_within(20_000, (0, writer), (1, reader)));
    network.run(1_000);
    network.fault = Some(Box::new(|_: &mut Datagram| false));
    let from = network.sent.len();
    network.write(0, writer, &payload(1, WORD, 60));
    network.run(1);
    let sample = network.sent[from..].iter().max_by_key(|datagram| datagram.octets.len()).expect("it was sent").clone();
    network.fault = None;
    for bit in 0..8 * sample.octets.len() {
        let mut damaged = sample.clone();
        damaged.octets[bit / 8] ^= 1 << (bit % 8);
        network.inject(damaged);
        network.run_until(0, |_| false);
        assert_eq!(network.take(1, reader), None, "bit {bit}");
    }
    network.inject(sample.clone());
    network.run(10);
    assert!(network.take(1, reader).is_some(), "the one that is whole arrives");
    network.inject(sample);
    network.run(10);
    assert_eq!(network.take(1, reader), None, "once");
}

/// Returns a farewell in the name of a node.
fn forged_farewell(network: &Network, of: usize, to: usize) -> Datagram {
    let guid = network.nodes[of].guid();
    let header = takt_wire::message::Header {
        version: takt_wire::ProtocolVersion::V2_5,
        vendor: takt_wire::VendorId::TAKT,
        prefix: guid.prefix,
    };
    let mut frame = [0; 512];
    let mut builder = takt_wire::MessageBuilder::new(&mut frame, &header).expect("fits");
    let mut inline = takt_wire::inline_qos::InlineQosBuilder::<32>::new();
    inline.status_info(3).expect("fits");
    let key = takt_wire::discovery::ParticipantData::key_payload(guid);
    builder
        .data(&takt_wire::builder::DataEmit {
            reader: takt_wire::EntityId::SPDP_READER,
            writer: takt_wire::EntityId::SPDP_WRITER,
            sn: takt_wire::SequenceNumber(1_000),
            inline_qos: Some(inline.finish().expect("fits")),
            payload: takt_wire::message::Payload::Key(&key),
        })
        .expect("fits");
    Datagram { from: address(of), to: address(to), octets: builder.bytes().to_vec() }
}

/// Regression: of two messages that waited for octets of a participant with an unvalidated address,
/// only the Request was sent. The replier refused it, because it knew the challenge of an earlier
/// handshake.
#[test]
fn delayed_auth_request_is_sent_before_the_request() {
    let mut network = Network::new();
    for name in ["talker", "listener"] {
        Identity::new(name).join(&mut network, &encrypting());
    }
    let prefixes = [0, 1].map(|node| network.nodes[node].guid().prefix);
    let (initiator, replier) = if prefixes[0] < prefixes[1] { (0, 1) } else { (1, 0) };
    let lost = move |datagram: &Datagram| {
        let names_writer = |octets: &[u8]| octets == EntityId::STATELESS_MESSAGE_WRITER.0;
        datagram.from == address(replier) && datagram.octets.windows(4).any(names_writer)
    };
    network.fault = Some(Box::new(move |datagram: &mut Datagram| !lost(datagram)));
    network.run(2_000);
    // The replier awaits the Final of a handshake that the initiator forgets.
    let forged = forged_farewell(&network, replier, initiator);
    network.inject(forged);
    network.run(10);
    network.fault = None;
    assert!(network.run_until(20_000, |network| {
        network.nodes[initiator].is_authenticated(prefixes[replier])
            && network.nodes[replier].is_authenticated(prefixes[initiator])
    }));
    let log: Vec<String> =
        std::iter::from_fn(|| network.nodes[replier].poll_security_log()).map(|it| it.text).collect();
    assert!(!log.iter().any(|text| text.contains("not the one announced")), "{log:?}");
}

/// Regression: a forged announcement by which a participant was discovered stayed in effect after
/// the participant was authenticated. This one announces no builtin endpoints.
#[test]
fn handshake_replaces_a_forged_announcement() {
    let mut network = Network::new();
    for name in ["talker", "listener"] {
        Identity::new(name).join(&mut network, &encrypting());
    }
    let writer = network.writer(0, writer_spec(TOPIC));
    let reader = network.reader(1, reader_spec(TOPIC));
    network.fault = Some(Box::new(|datagram: &mut Datagram| {
        // PID_BUILTIN_ENDPOINT_SET, which becomes PID_PAD.
        let found = datagram.octets.windows(4).position(|octets| *octets == [0x58, 0, 4, 0]);
        if let Some(at) = found {
            datagram.octets[at] = 0;
        }
        true
    }));
    let prefixes = [0, 1].map(|node| network.nodes[node].guid().prefix);
    assert!(network.run_until(20_000, |network| {
        network.nodes[0].is_authenticated(prefixes[1]) && network.nodes[1].is_authenticated(prefixes[0])
    }));
    assert!(network.match_within(1_000, (0, writer), (1, reader)));
}

/// Regression: a participant that was first heard of by a forged announcement, without a valid
/// identity, was never authenticated. Its own announcement changed nothing.
#[test]
fn own_announcement_follows_a_forged_one_without_an_identity() {
    let mut network = Network::new();
    for name in ["talker", "listener"] {
        Identity::new(name).join(&mut network, &encrypting());
    }
    network.fault = Some(Box::new(|datagram: &mut Datagram| {
        let class = b"DDS:Auth:PKI-DH:1.0";
        if let Some(at) = datagram.octets.windows(class.len()).position(|octets| octets == class) {
            datagram.octets[at] = b'X';
        }
        true
    }));
    network.run(2_000);
    let prefixes = [0, 1].map(|node| network.nodes[node].guid().prefix);
    for node in [0, 1] {
        let log: Vec<String> =
            std::iter::from_fn(|| network.nodes[node].poll_security_log()).map(|it| it.text).collect();
        assert!(log.iter().any(|text| text.contains("its identity has the class \"XDS:Auth")), "{log:?}");
    }
    network.fault = None;
    assert!(network.run_until(20_000, |network| {
        network.nodes[0].is_authenticated(prefixes[1]) && network.nodes[1].is_authenticated(prefixes[0])
    }));
}

#[test]
fn forged_dispose_of_an_authenticated_participant_is_ignored() {
    let mut network = Network::new();
    for name in ["talker", "listener"] {
        Identity::new(name).join(&mut network, &encrypting());
    }
    let writer = network.writer(0, writer_spec(TOPIC));
    let reader = network.reader(1, reader_spec(TOPIC));
    assert!(network.match_within(20_000, (0, writer), (1, reader)));
    let prefix = network.nodes[0].guid().prefix;
    let forged = forged_farewell(&network, 0, 1);
    network.inject(forged);
    network.run(100);
    assert!(network.nodes[1].is_authenticated(prefix), "it stays");
    assert_eq!(network.nodes[1].counters().unprotected_announcements, 1);
    network.write(0, writer, &payload(1, WORD, 60));
    assert!(network.run_until(1_000, |network| network.take(1, reader).is_some()));
    network.nodes[0].shutdown();
    assert!(network.run_until(1_000, |network| !network.nodes[1].is_authenticated(prefix)), "its own one counts");
}

/// Regression: the sequence number of a forged handshake message excluded all later messages of the
/// participant that it named. So did the messages of its former session, since the writer of a
/// session starts at 1 again.
#[test]
fn forged_sequence_number_excludes_no_handshake() {
    let mut network = Network::new();
    for name in ["talker", "listener"] {
        Identity::new(name).join(&mut network, &encrypting());
    }
    let writer = network.writer(0, writer_spec(TOPIC));
    let reader = network.reader(1, reader_spec(TOPIC));
    let names_handshake =
        |octets: &[u8]| octets.windows(4).position(|four| four == EntityId::STATELESS_MESSAGE_WRITER.0);
    // Handshakes are lost, but the participants know each other.
    network.fault = Some(Box::new(move |datagram: &mut Datagram| names_handshake(&datagram.octets).is_none()));
    network.run(2_000);
    let later = |datagram: &Datagram| {
        let mut forged = datagram.clone();
        let sn = names_handshake(&forged.octets)? + 4;
        forged.octets[sn + 4..sn + 8].copy_from_slice(&(1_u32 << 30).to_le_bytes());
        Some(forged)
    };
    let forged: Vec<Datagram> = network.sent.iter().filter_map(later).collect();
    assert!(forged.len() > 2, "{} handshake messages", forged.len());
    forged.into_iter().for_each(|datagram| network.inject(datagram));
    // The forged messages arrive, and begin no session: their fragments are incomplete.
    network.run(100);
    network.fault = None;
    assert!(network.match_within(20_000, (0, writer), (1, reader)));
}

/// Regression: recorded announcements kept a crashed participant from being lost, although they
/// came from a foreign address.
#[test]
fn announcement_from_a_foreign_address_does_not_renew_the_lease() {
    let mut network = Network::new();
    for name in ["talker", "listener"] {
        Identity::new(name).join(&mut network, &encrypting());
    }
    let writer = network.writer(0, writer_spec(TOPIC));
    let reader = network.reader(1, reader_spec(TOPIC));
    assert!(network.match_within(20_000, (0, writer), (1, reader)));
    let (prefix, from) = (network.nodes[0].guid().prefix, address(0));
    let announcement = network.sent.iter().find(|datagram| datagram.from == from && datagram.to.is_multicast());
    let foreign = Datagram { from: address(5), ..announcement.expect("it announces itself").clone() };
    network.fault = Some(Box::new(move |datagram: &mut Datagram| datagram.from != from));
    let is_lost = (0..40).any(|_| {
        network.inject(foreign.clone());
        network.run_until(10_000, |network| !network.nodes[1].is_authenticated(prefix))
    });
    assert!(is_lost, "its lease ends");
    assert!(network.nodes[1].counters().unprotected_announcements > 1, "the announcements arrive");
}
