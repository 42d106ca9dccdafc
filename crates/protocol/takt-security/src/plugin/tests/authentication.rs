//! Tests of handshakes, refusals, and the limits of both.

use super::*;
use crate::error::ErrorKind;
use takt_wire::discovery::EncodedToken;

#[test]
fn participants_authenticate_and_log_it() {
    let mut world = World::pair(&encrypting());
    let text = world.log_of(0);
    assert!(text.contains("of \"CN=Bob\" is authenticated") || text.contains("of \"CN=Alice\" is authenticated"));
    assert_eq!(world.nodes[1].plugin.counters().handshake_messages_refused, 0);
}

#[test]
fn announcement_contains_tokens_and_masks() {
    let node = Node::new(settings("Alice", &encrypting()));
    let data = ParticipantData::parse(&node.data.to_bytes()).expect("an announcement");
    assert_eq!(data.security_info, Some(node.plugin.announced().security_info));
    let token = |token: Option<EncodedToken>| {
        let token = token.expect("a token");
        let mut cursor = takt_wire::Cursor::new(&token.octets, token.endianness);
        crate::token::Token::parse(&mut cursor).expect("a token").class_id.into_owned()
    };
    assert_eq!(token(data.identity_token), "DDS:Auth:PKI-DH:1.0");
    assert_eq!(token(data.permissions_token), "DDS:Access:Permissions:1.0");
}

#[test]
fn identity_of_another_authority_is_refused_after_the_timeout() {
    let rogue = settings_by(&issuers()[2], "Mallory", &encrypting(), VALID);
    let own = Settings { identity_authority: issuers()[2].certificate_pem().expect("PEM"), ..rogue };
    let mut world = World::new(vec![Node::new(settings("Alice", &encrypting())), Node::new(own)]);
    world.discover_all();
    world.advance(70);
    let reason = world.refusal_by(0).to_owned();
    assert!(reason.contains("is refused"), "{reason}");
    let log = world.log_of(0) + &world.log_of(1);
    assert!(log.contains("unable to get local issuer certificate"), "{log}");
    let authenticated = world.events.iter().any(|(_, event)| matches!(event, SecurityEvent::Authenticated(_)));
    assert!(!authenticated, "{:?}", world.events);
}

#[test]
fn participant_without_permission_to_join_is_refused() {
    let mut denied = settings("Bob", &encrypting());
    denied.permissions = signed_permissions(grant("Carol"));
    assert!(Plugin::new(denied.clone(), NOW).expect_err("no grant").reason().contains("no grant for \"CN=Bob\""));
    // Another implementation does not check its own permissions.
    let mut open = encrypting();
    open.enable_join_access_control = false;
    denied.governance = signed_governance(&open);
    let mut world = World::new(vec![Node::new(settings("Alice", &encrypting())), Node::new(denied)]);
    world.discover_all();
    world.run();
    let reason = world.refusal_by(0);
    assert!(reason.contains("permissions have no grant for \"CN=Bob\""), "{reason}");
}

#[test]
fn refused_participant_is_unauthenticated_if_the_governance_allows_it() {
    for is_open in [false, true] {
        let mut rule = encrypting();
        rule.allow_unauthenticated_participants = is_open;
        let mut denied = settings("Bob", &rule);
        denied.permissions = signed_permissions(grant("Carol"));
        let mut open = rule.clone();
        open.enable_join_access_control = false;
        denied.governance = signed_governance(&open);
        let mut world = World::new(vec![Node::new(settings("Alice", &rule)), Node::new(denied)]);
        world.discover_all();
        world.run();
        let refused = world.events.iter().find_map(|(index, event)| match event {
            SecurityEvent::Refused { stays_open, .. } if *index == 0 => Some(*stays_open),
            _ => None,
        });
        assert_eq!(refused, Some(is_open));
    }
}

#[test]
fn participant_with_another_governance_is_refused_immediately() {
    let other = rule(ProtectionKind::Sign, ProtectionKind::Encrypt, BasicProtectionKind::Encrypt);
    let mut world = World::new(vec![Node::new(settings("Alice", &encrypting())), Node::new(settings("Bob", &other))]);
    let AdmissionState::Refused(reason) = world.discover(0, 1) else { panic!("not refused") };
    assert!(reason.contains("is_rtps_protected on the remote side only"), "{reason}");
    let AdmissionState::Refused(reason) = world.discover(1, 0) else { panic!("not refused") };
    assert!(reason.contains("is_rtps_protected on the local side only"), "{reason}");
}

#[test]
fn participant_without_identity_is_allowed_or_refused_by_the_governance() {
    for is_open in [false, true] {
        let mut rule = encrypting();
        rule.allow_unauthenticated_participants = is_open;
        let mut world = World::new(["Alice", "Bob"].map(|name| Node::new(settings(name, &rule))).into());
        let token = world.nodes[1].data.identity_token.take().expect("a token");
        let state = world.discover(0, 1);
        assert_eq!(state == AdmissionState::Open, is_open, "{state:?}");
        let other = crate::token::Token::new("DDS:Auth:PKI-DH:2.0").to_octets(Endianness::Little);
        world.nodes[1].data.identity_token = Some(EncodedToken { octets: other, ..token.clone() });
        let state = world.discover(0, 1);
        assert_eq!(state == AdmissionState::Open, is_open, "{state:?}");
        if let AdmissionState::Refused(reason) = state {
            assert!(reason.contains("class \"DDS:Auth:PKI-DH:2.0\""), "{reason}");
        }
        world.nodes[1].data.identity_token = Some(token);
        assert_eq!(world.discover(0, 1), AdmissionState::Authenticating, "it announces an identity now");
    }
}

#[test]
fn participants_beyond_the_limit_wait_for_a_handshake_slot() {
    let names = ["Alice", "Bob", "Carol", "Dave", "Eve"];
    let limited = |name: &&str| Settings { handshakes_max: 1, ..settings(name, &encrypting()) };
    let mut world = World::new(names.iter().map(|name| Node::new(limited(name))).collect());
    for remote in 1..names.len() {
        assert_eq!(world.discover(0, remote), AdmissionState::Authenticating);
        assert_eq!(world.discover(remote, 0), AdmissionState::Authenticating);
        let pending: usize = world.nodes[0].plugin.remotes.values().map(Remote::pending_count).sum();
        assert_eq!(pending, 1);
    }
    world.advance(20);
    let authenticated: Vec<_> = world
        .events
        .iter()
        .filter(|(index, event)| *index == 0 && matches!(event, SecurityEvent::Authenticated(_)))
        .collect();
    assert_eq!(authenticated.len(), names.len() - 1);
}

/// Handshakes of participants of another CA never complete. Some of the six GUIDs are lower than
/// Alice's, so that both roles occur.
#[test]
fn pending_handshakes_yield_their_slot_to_waiting_participants() {
    let foreigners = ["Mallory", "Oscar", "Trudy", "Eve", "Ivan", "Sybil"];
    let foreign = |name: &&str| Settings {
        identity_authority: issuers()[2].certificate_pem().expect("PEM"),
        ..settings_by(&issuers()[2], name, &encrypting(), VALID)
    };
    let mut nodes = vec![Node::new(Settings { handshakes_max: 1, ..settings("Alice", &encrypting()) })];
    nodes.extend(foreigners.iter().map(|name| Node::new(foreign(name))));
    nodes.push(Node::new(settings("Bob", &encrypting())));
    let mut world = World::new(nodes);
    let bob = foreigners.len() + 1;
    for remote in 1..=bob {
        world.discover(0, remote);
        world.discover(remote, 0);
    }
    world.advance(40);
    let authenticated = world
        .events
        .iter()
        .any(|(index, event)| *index == 0 && *event == SecurityEvent::Authenticated(world.nodes[bob].prefix()));
    assert!(authenticated, "{:?}", world.events);
    world.advance(200);
    let refused =
        world.events.iter().filter(|(index, event)| *index == 0 && matches!(event, SecurityEvent::Refused { .. }));
    assert_eq!(refused.count(), foreigners.len(), "each is refused in the end");
}

#[test]
fn lost_messages_are_sent_again() {
    let mut world = World::new(["Alice", "Bob"].map(|name| Node::new(settings(name, &encrypting()))).into());
    let mut random = takt_testkit::Random(5);
    world.loses = Box::new(move |_, message| message.channel == SecurityChannel::Stateless && !random.one_in(3));
    world.discover_all();
    world.advance(50);
    let authenticated = world.events.iter().filter(|(_, event)| matches!(event, SecurityEvent::Authenticated(_)));
    assert_eq!(authenticated.count(), 2, "{:?}", world.events);
}

#[test]
fn timed_out_handshake_begins_again_and_is_reported_once() {
    let mut world = World::new(["Alice", "Bob"].map(|name| Node::new(settings(name, &encrypting()))).into());
    world.loses = Box::new(|_, _| true);
    world.discover_all();
    world.advance(300);
    let refused = world.events.iter().filter(|(index, _)| *index == 0).count();
    assert_eq!(refused, 1, "{:?}", world.events);
    assert!(world.refusal_by(0).contains("in time"), "{}", world.refusal_by(0));
    world.events.clear();
    world.loses = Box::new(|_, _| false);
    world.advance(130);
    let authenticated = world.events.iter().filter(|(_, event)| matches!(event, SecurityEvent::Authenticated(_)));
    assert_eq!(authenticated.count(), 2, "{:?}", world.events);
}

#[test]
fn state_of_a_participant_is_removed_when_it_leaves() {
    let mut world = World::pair(&rule(ProtectionKind::Sign, ProtectionKind::Encrypt, BasicProtectionKind::Encrypt));
    world.make_endpoints();
    world.match_endpoints();
    let prefix = world.nodes[1].prefix();
    // Keys of its participant, its reader, and the volatile endpoints.
    assert_eq!(world.nodes[0].plugin.keyring.count(prefix), 3);
    world.nodes[0].plugin.participant_lost(prefix);
    assert_eq!(world.nodes[0].plugin.keyring.count(prefix), 0);
    assert!(world.nodes[0].plugin.pairs.is_empty() && world.nodes[0].plugin.remotes.is_empty());
}

#[test]
fn inconsistent_settings_are_refused_with_a_reason() {
    let good = || settings("Alice", &encrypting());
    let refusal = |settings: Settings| Plugin::new(settings, NOW).expect_err("refused");
    let other = settings("Bob", &encrypting());
    let error = refusal(Settings { private_key: other.private_key.clone(), ..good() });
    assert!(error.reason().contains("private key does not belong"), "{error}");
    let error = refusal(Settings { identity_authority: issuers()[2].certificate_pem().expect("PEM"), ..good() });
    assert_eq!(error.kind(), ErrorKind::Certificate, "{error}");
    let error = refusal(Settings { prefix: other.prefix, ..good() });
    assert!(error.reason().contains("does not belong to the certificate"), "{error}");
    let error = refusal(Settings { domain_id: 7, ..good() });
    assert!(error.reason().contains("no domain_rule for domain 7"), "{error}");
    let governance = sign_document(&issuers()[2], "<dds/>").expect("a signature");
    let error = refusal(Settings { governance, ..good() });
    assert!(error.reason().starts_with("governance"), "{error}");
    let expired = settings_by(&issuers()[0], "Alice", &encrypting(), IssuedValidity { not_after: NOW - 1, ..VALID });
    assert!(refusal(expired).reason().contains("expired"));
    assert!(
        refusal(Settings { permissions: signed_permissions(Grant { not_after: NOW - 1, ..grant("Alice") }), ..good() })
            .reason()
            .contains("expired")
    );
    assert!(Plugin::new(good(), NOW).is_ok());
}
