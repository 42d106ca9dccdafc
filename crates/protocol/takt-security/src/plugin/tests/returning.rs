//! Tests of participants that return, and of participants whose documents expire.

use super::*;

/// Handles a stateless message that begins another handshake, sent by the second participant after
/// it lost its state of the first.
fn restart_participant(world: &mut World) {
    let (now, first) = (world.now, world.nodes[0].prefix());
    world.nodes[1].plugin.participant_lost(first);
    let data = world.nodes[0].data.clone();
    assert_eq!(world.nodes[1].plugin.participant_discovered(now, &data), AdmissionState::Authenticating);
}

#[test]
fn returning_participant_gets_new_keys_in_either_role_repeatedly() {
    for loser in [0, 1] {
        let mut world = World::pair(&encrypting());
        for _ in 0..2 {
            world.events.clear();
            let before = volatile_key(&world, 1 - loser);
            world.skip(11);
            if loser == 0 {
                // The first participant is the initiator.
                let other = world.nodes[1].prefix();
                world.nodes[0].plugin.participant_lost(other);
                assert_eq!(world.discover(0, 1), AdmissionState::Authenticating);
            } else {
                restart_participant(&mut world);
            }
            world.advance(5);
            assert_eq!(world.events.len(), 2, "{loser}: {:?}", world.events);
            let [one, two] = [0, 1].map(|index| volatile_key(&world, index));
            assert_eq!(one, two, "{loser}");
            assert_ne!(one, before, "{loser}");
        }
    }
}

fn volatile_key(world: &World, index: usize) -> Vec<u8> {
    let other = world.nodes[1 - index].prefix();
    let session = world.nodes[index].plugin.remotes[&other].session().expect("a session");
    session.volatile.material().to_octets()
}

#[test]
fn unfinished_handshake_keeps_the_keys_and_begins_once_per_period() {
    let mut world = World::pair(&encrypting());
    world.make_endpoints();
    world.match_endpoints();
    // Any host can send the message that opens a handshake; here the answers are lost.
    restart_participant(&mut world);
    let (now, sender) = (world.now, world.nodes[1].prefix());
    let opening = world.nodes[1].plugin.poll_message(now).expect("an AuthRequest").payload;
    let victim = &mut world.nodes[0].plugin;
    victim.handle_message(now, SecurityChannel::Stateless, sender, &opening);
    assert!(victim.remotes[&sender].renewal.is_none(), "the last one has just begun");
    let now = clocks(now.at.0 / 1_000_000_000 + 11);
    victim.handle_message(now, SecurityChannel::Stateless, sender, &opening);
    assert!(victim.remotes[&sender].renewal.is_some());
    for second in 1..200 {
        let now = clocks(now.at.0 / 1_000_000_000 + second);
        while victim.poll_message(now).is_some() {}
        victim.handle_timeout(now);
    }
    assert!(victim.remotes[&sender].renewal.is_none(), "it timed out");
    assert!(victim.remotes[&sender].session().is_some());
    assert_eq!(victim.poll_event(), None, "nothing happened");
    assert_eq!(victim.pairs.keys().filter(|(local, _)| *local == WRITER).count(), 1);
}

#[test]
fn challenge_of_a_finished_handshake_begins_no_other() {
    let mut world = World::new(["Alice", "Bob"].map(|name| Node::new(settings(name, &encrypting()))).into());
    let kept = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let copy = kept.clone();
    world.loses = Box::new(move |from, message| {
        copy.borrow_mut().push((from, message.clone()));
        false
    });
    world.discover_all();
    world.run();
    world.skip(60);
    let all: Vec<_> = kept.borrow().clone();
    assert!(all.len() > 4, "AuthRequest, Request, Reply, Final, tokens");
    for (from, message) in all.into_iter().filter(|(_, message)| message.channel == SecurityChannel::Stateless) {
        world.deliver(from, message);
    }
    for node in &world.nodes {
        assert!(node.plugin.remotes.values().all(|remote| remote.renewal.is_none()));
    }
}

#[test]
fn expired_certificate_ends_the_session() {
    let short = IssuedValidity { not_after: NOW + 100, ..VALID };
    let [alice, bob] = [("Alice", VALID), ("Bob", short)]
        .map(|(name, validity)| Node::new(settings_by(&issuers()[0], name, &encrypting(), validity)));
    let expiring = bob.prefix();
    let mut world = World::pair_of([alice, bob]);
    world.skip(90);
    assert_eq!(world.events, []);
    world.skip(20);
    assert_eq!(world.events.len(), 2, "{:?}", world.events);
    for (_, event) in &world.events {
        let SecurityEvent::Expelled { participant, reason } = event else { panic!("{event:?}") };
        assert_eq!(*participant, expiring, "the other one, and itself");
        assert!(reason.contains("certificate has expired"), "{reason}");
    }
    let lasting = usize::from(world.nodes[0].prefix() == expiring);
    assert_eq!(world.nodes[lasting].plugin.keyring.count(expiring), 0);
    world.events.clear();
    world.skip(4_000);
    assert_eq!(world.events, [], "it is notified once");
}

#[test]
fn expired_grant_ends_the_session() {
    let mut ending = settings("Bob", &encrypting());
    ending.permissions = signed_permissions(Grant { not_after: NOW + 100, ..grant("Bob") });
    let expiring = ending.prefix;
    let mut world = World::pair_of([Node::new(settings("Alice", &encrypting())), Node::new(ending)]);
    // The grant is valid in its last second; the clocks start at one.
    world.skip(99);
    assert_eq!(world.events, []);
    world.skip(1);
    assert_eq!(world.events.len(), 2, "{:?}", world.events);
    for (_, event) in &world.events {
        let SecurityEvent::Expelled { participant, reason } = event else { panic!("{event:?}") };
        assert_eq!(*participant, expiring);
        assert!(reason.contains("expired at"), "{reason}");
    }
}

#[test]
fn expiry_is_noticed_after_a_step_of_the_wall_clock() {
    let mut world = World::pair(&encrypting());
    world.skip(1);
    let node = &mut world.nodes[0];
    let stepped = Clocks {
        at: Instant(world.now.at.0),
        wall: Timestamp { seconds: world.now.wall.seconds + 350 * 86_400, fraction: 0 },
    };
    let due = node.plugin.poll_timeout().expect("a time");
    assert!(due <= stepped.at.after(Duration::from_secs(60)), "{due:?}");
    let later = Clocks { at: due, ..stepped };
    for _ in 0..3 {
        node.plugin.handle_timeout(later);
    }
    let events: Vec<_> = std::iter::from_fn(|| node.plugin.poll_event()).collect();
    assert_eq!(events.len(), 2, "{events:?}");
}
