//! Tests of certificates, permissions and revocation lists that are replaced while participants
//! run.

use super::*;
use crate::error::Result;
use crate::plugin::settings::Documents;
use crate::token::Token;

const LATER: IssuedValidity = IssuedValidity { not_after: NOW + 800 * DAY, ..VALID };

impl World {
    /// Renews the documents of a participant.
    fn renew(&mut self, index: usize, settings: &Settings) -> Result<()> {
        let now = self.now;
        let plugin = &mut self.nodes[index].plugin;
        plugin.renewer().offer(settings, wall_seconds(now))?;
        plugin.handle_timeout(now);
        while plugin.renewal_due().is_some_and(|due| due <= now.at) {
            plugin.handle_timeout(now);
        }
        self.run();
        Ok(())
    }

    /// Returns the session of a participant with the other one.
    fn session(&self, index: usize) -> &remotes::Session {
        self.nodes[index].plugin.remotes[&self.nodes[1 - index].prefix()].session().expect("a session")
    }

    fn volatile_key(&self, index: usize) -> Vec<u8> {
        self.session(index).volatile.material().to_octets()
    }

    fn expelled(&self) -> usize {
        self.events.iter().filter(|(_, event)| matches!(event, SecurityEvent::Expelled { .. })).count()
    }
}

/// Returns the name of a participant of a pair of Alice and Bob.
fn name_of(world: &World, index: usize) -> &'static str {
    if world.nodes[index].plugin.own_subject().to_string().contains("Alice") { "Alice" } else { "Bob" }
}

fn pair_of_short(seconds: i64) -> World {
    let short = IssuedValidity { not_after: NOW + seconds, ..VALID };
    World::pair_of(["Alice", "Bob"].map(|name| Node::new(settings_by(&issuers()[0], name, &encrypting(), short))))
}

fn later(world: &World, index: usize) -> Settings {
    settings_by(&issuers()[0], name_of(world, index), &encrypting(), LATER)
}

#[test]
fn session_continues_with_the_renewed_certificate() {
    let mut world = pair_of_short(1_000);
    world.make_endpoints();
    world.match_endpoints();
    let (keys, pairs) = ([0, 1].map(|index| world.volatile_key(index)), world.nodes[1].plugin.pairs.clone());
    for index in [0, 1] {
        let renewed = later(&world, index);
        world.renew(index, &renewed).expect("it may");
        assert_eq!(world.session(1 - index).certificate.not_after(), LATER.not_after);
    }
    let changed = |by: usize, of: usize| (by, SecurityEvent::PermissionsChanged(world.nodes[of].prefix()));
    for expected in [changed(0, 0), changed(1, 0), changed(1, 1), changed(0, 1)] {
        assert!(world.events.contains(&expected), "{expected:?}: {:?}", world.events);
    }
    assert_eq!(world.events.len(), 4, "nothing else happened");
    assert_eq!([0, 1].map(|index| world.volatile_key(index)), keys);
    assert_eq!(world.nodes[1].plugin.pairs, pairs);
    world.skip(5_000);
    assert_eq!(world.expelled(), 0, "the former certificates have ended: {:?}", world.events);
    assert!(world.log_of(1).contains("uses another certificate"));
}

#[test]
fn handshakes_use_the_renewed_certificate() {
    let mut world = World::new(["Alice", "Bob"].map(|name| Node::new(settings(name, &encrypting()))).into());
    world.nodes.sort_by_key(Node::prefix);
    world.discover_all();
    // A handshake is pending: its first messages are lost.
    while world.nodes[0].plugin.poll_message(world.now).is_some() {}
    let renewed = later(&world, 0);
    world.renew(0, &renewed).expect("it may");
    world.advance(15);
    assert_eq!(world.session(1).certificate.not_after(), LATER.not_after);
    assert_eq!(world.volatile_key(0), world.volatile_key(1));
}

#[test]
fn matches_follow_the_renewed_permissions() {
    let mut world = World::pair(&encrypting());
    world.make_endpoints();
    let writer = world.nodes[0].writer_data(TOPIC);
    let now = world.now;
    assert_eq!(world.nodes[1].plugin.check_remote_writer(now, READER, &writer), Ok(()));
    let mut renewed = later(&world, 0);
    let nothing = Grant { default: Effect::Deny, rules: Vec::new(), ..grant(name_of(&world, 0)) };
    renewed.permissions = signed_permissions(nothing);
    let error = world.renew(0, &renewed).expect_err("it may not join the domain");
    assert!(error.to_string().contains("no allow_rule for domain 0"), "{error}");

    let mut open = encrypting();
    open.enable_join_access_control = false;
    let mut world = World::pair(&open);
    world.make_endpoints();
    let mut renewed = settings_by(&issuers()[0], name_of(&world, 0), &open, LATER);
    renewed.permissions = signed_permissions(Grant { default: Effect::Deny, ..grant(name_of(&world, 0)) });
    world.renew(0, &renewed).expect("it may join");
    let writer = world.nodes[0].writer_data(TOPIC);
    let reason = world.nodes[1].plugin.check_remote_writer(now, READER, &writer).expect_err("it may not write");
    assert!(reason.contains("rt/chatter"), "{reason}");
    let reason = world.nodes[0].plugin.admit_writer(now, &writer).expect_err("nor by its own decision");
    assert!(reason.contains("rt/chatter"), "{reason}");
}

#[test]
fn renewal_after_expiry_authenticates_again() {
    let mut world = pair_of_short(100);
    world.skip(120);
    assert_eq!(world.expelled(), 4, "both, by both: {:?}", world.events);
    world.events.clear();
    for index in [0, 1] {
        let renewed = later(&world, index);
        world.renew(index, &renewed).expect("it may");
    }
    world.advance(90);
    let authenticated = world.events.iter().filter(|(_, event)| matches!(event, SecurityEvent::Authenticated(_)));
    assert!(authenticated.count() >= 2, "{:?}", world.events);
    assert_eq!(world.volatile_key(0), world.volatile_key(1));
    world.skip(5_000);
    assert_eq!(world.expelled(), 0, "{:?}", world.events);
}

#[test]
fn participant_with_expired_documents_begins_and_answers_no_handshake() {
    let [short, long] = [100, 1_000_000].map(|seconds| IssuedValidity { not_after: NOW + seconds, ..VALID });
    let rule = encrypting();
    let node = |name, validity| Node::new(settings_by(&issuers()[0], name, &rule, validity));
    let mut world = World::pair_of([node("Alice", short), node("Bob", long)]);
    let alice = usize::from(name_of(&world, 0) != "Alice");
    world.skip(120);
    assert_eq!(world.expelled(), 2, "by both: {:?}", world.events);
    world.events.clear();
    world.loses = Box::new(move |from, _| {
        assert_ne!(from, alice, "it sends handshake messages");
        false
    });
    let renewed = later(&world, 1 - alice);
    world.renew(1 - alice, &renewed).expect("it may");
    world.advance(30);
    let authenticated = world.events.iter().any(|(_, event)| matches!(event, SecurityEvent::Authenticated(_)));
    assert!(!authenticated, "{:?}", world.events);

    world.loses = Box::new(|_, _| false);
    let renewed = later(&world, alice);
    world.renew(alice, &renewed).expect("it may");
    world.advance(60);
    assert_eq!(world.volatile_key(0), world.volatile_key(1));
}

#[test]
fn expiry_is_checked_at_the_beginning_of_its_second() {
    let mut world = pair_of_short(100);
    let now = Clocks { wall: Timestamp { seconds: world.now.wall.seconds + 10, fraction: 1 << 31 }, ..clocks(11) };
    for node in &mut world.nodes {
        node.plugin.handle_timeout(now);
        node.plugin.set_check_due();
    }
    let due = world.nodes.iter().filter_map(|node| node.plugin.poll_timeout()).min().expect("a check");
    assert_eq!(due, now.at.after(std::time::Duration::from_secs(10)), "that of the wall clock");
    let late = Clocks { wall: Timestamp { seconds: (NOW + 98) as u32, fraction: 1 << 31 }, ..clocks(99) };
    for node in &mut world.nodes {
        node.plugin.handle_timeout(late);
    }
    let due = world.nodes.iter().filter_map(|node| node.plugin.poll_timeout()).min().expect("a check");
    assert_eq!(due, late.at.after(std::time::Duration::from_millis(1_500)));
}

#[test]
fn renewal_without_acceptance_in_time_authenticates_again() {
    let mut world = pair_of_short(1_000);
    world.skip(900);
    let before = world.volatile_key(0);
    let renewed = later(&world, 0);
    world.loses = Box::new(|_, message| message.channel == SecurityChannel::Volatile);
    world.renew(0, &renewed).expect("it may");
    world.loses = Box::new(|_, _| false);
    world.advance(4);
    assert_eq!(world.volatile_key(0), before, "there is time");
    world.advance(15);
    assert_ne!(world.volatile_key(0), before);
    assert_eq!(world.volatile_key(0), world.volatile_key(1));
    assert_eq!(world.session(1).certificate.not_after(), LATER.not_after);
    assert_eq!(world.expelled(), 0);
}

#[test]
fn invalid_documents_leave_the_previous_ones_in_use() {
    let mut world = World::pair(&encrypting());
    let own = later(&world, 0);
    let other = settings_by(&issuers()[0], "Carol", &encrypting(), LATER);
    let foreign = settings_by(&issuers()[2], name_of(&world, 0), &encrypting(), LATER);
    let mut signing = encrypting();
    signing.liveliness_protection_kind = ProtectionKind::Encrypt;
    let cases = [
        (
            Settings {
                identity_certificate: other.identity_certificate,
                private_key: other.private_key,
                ..own.clone()
            },
            "Carol",
        ),
        (
            Settings {
                identity_certificate: foreign.identity_certificate,
                private_key: foreign.private_key,
                ..own.clone()
            },
            "unable to get",
        ),
        (Settings { governance: signed_governance(&signing), ..own.clone() }, "cannot change: restart"),
        (Settings { permissions: Vec::new(), ..own }, "permissions"),
    ];
    for (case, expected) in cases {
        let error = world.renew(0, &case).expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected}: {error}");
        assert_eq!(world.events, []);
        assert_eq!(world.session(1).certificate.not_after(), VALID.not_after);
    }
}

#[test]
fn forged_renewal_changes_nothing() {
    let mut world = World::pair(&encrypting());
    let prefix = world.nodes[0].prefix();
    let volatile = world.session(0).volatile.material().clone();
    let to = participant_guid(world.nodes[1].prefix());
    let shown = Documents::read(&Settings { prefix, ..later(&world, 0) }, NOW).expect("documents").local;
    let good = crate::handshake::renewal_token(&shown, to, &volatile).expect("a token");
    let other_session = KeyMaterial::generate(crate::keys::TransformKind::Aes256Gcm).expect("a key");
    let changed = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut token = good.clone();
        let (_, value) = token.binary_properties.iter_mut().find(|(own, _)| own == name).expect("it is there");
        change(value.to_mut());
        token
    };
    let flip = |octets: &mut Vec<u8>| octets[8] ^= 1;
    let wrong = [
        changed("signature", &flip),
        changed("c.perm", &flip),
        changed("c.id", &|octets| *octets = settings("Carol", &encrypting()).identity_certificate),
        changed("c.id", &|octets| {
            *octets = settings_by(&issuers()[2], name_of(&world, 0), &encrypting(), LATER).identity_certificate
        }),
        changed("signature", &|octets| octets.clear()),
        changed("signature", &|octets| octets.resize(600, 0)),
        crate::handshake::renewal_token(&shown, to, &other_session).expect("a token"),
        crate::handshake::renewal_token(&shown, participant_guid(prefix), &volatile).expect("a token"),
        Token::new("DDS:Auth:PKI-DH:1.0+Reply"),
    ];
    let refused = world.nodes[1].plugin.counters().key_messages_refused;
    for (index, token) in wrong.iter().enumerate() {
        send_renewal_tokens(&mut world, std::slice::from_ref(token));
        assert_eq!(world.nodes[1].plugin.counters().key_messages_refused, refused + 1 + index as u64, "{index}");
        assert_eq!(world.session(1).certificate.not_after(), VALID.not_after, "{index}");
    }
    send_renewal_tokens(&mut world, &[good.clone(), good.clone()]);
    assert_eq!(world.session(1).certificate.not_after(), VALID.not_after, "two tokens");
    send_renewal_tokens(&mut world, std::slice::from_ref(&good));
    assert_eq!(world.session(1).certificate.not_after(), LATER.not_after, "the harness shows the valid one");
}

/// Sends the tokens of a renewal from the first participant.
fn send_renewal_tokens(world: &mut World, tokens: &[Token<'_>]) {
    let to = participant_guid(world.nodes[1].prefix());
    let tokens = tokens.to_vec();
    world.nodes[0].plugin.send_volatile(crate::message::CLASS_RENEWAL, None, to, tokens);
    world.run();
}

#[test]
fn participant_of_another_vendor_receives_no_renewal() {
    let nodes = [("Alice", VendorId::CYCLONE), ("Bob", VendorId::TAKT)]
        .map(|(name, vendor)| Node::of_vendor(settings(name, &encrypting()), vendor));
    let mut world = World::pair_of(nodes);
    let takt = usize::from(name_of(&world, 0) == "Alice");
    let (renewed, sent) = (later(&world, takt), world.sent_count);
    world.renew(takt, &renewed).expect("it may");
    assert_eq!(world.sent_count, sent);
    assert_eq!(world.session(1 - takt).certificate.not_after(), VALID.not_after);
}

#[test]
fn certificate_revoked_by_a_new_list_ends_the_session() {
    let mut world = World::pair(&encrypting());
    let revoked = world.session(0).certificate.pem().to_vec();
    let list = issuers()[0].revoke(&[&revoked[..]], VALID).expect("a list");
    let renewed = Settings { revocation_lists: vec![list], ..later(&world, 0) };
    // The session ends before the other participant accepts the certificate.
    world.loses = Box::new(|from, message| from == 1 && message.channel == SecurityChannel::Volatile);
    world.renew(0, &renewed).expect("it may");
    world.loses = Box::new(|_, _| false);
    world.skip(1);
    assert_eq!(world.expelled(), 1, "{:?}", world.events);
    let (by, reason) = world
        .events
        .iter()
        .find_map(|(by, event)| match event {
            SecurityEvent::Expelled { reason, .. } => Some((*by, reason.clone())),
            _ => None,
        })
        .expect("one");
    assert!(by == 0 && reason.contains("revoked"), "{by}: {reason}");
    world.advance(10);
    let expelled = &world.nodes[0].plugin.remotes[&world.nodes[1].prefix()];
    assert!(expelled.renewal.is_none(), "the certificate is not shown to it again");

    world.events.clear();
    let renewed = later(&world, 1);
    world.renew(1, &renewed).expect("it may");
    world.advance(20);
    let authenticated = world.events.iter().filter(|(_, event)| matches!(event, SecurityEvent::Authenticated(_)));
    assert_eq!(authenticated.count(), 2, "{:?}", world.events);
    assert_eq!(world.volatile_key(0), world.volatile_key(1));
}
