//! Limits: they hold, and state is removed together with its cause.

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::discovery::PublicationData;
use takt_wire::qos::*;

#[test]
fn contradicting_policies_are_refused() {
    let mut network = Network::new(1, 90);
    let mut qos = keep_all_writer();
    qos.history = History::KeepLast(10);
    qos.resource_limits.max_samples_per_instance = Some(5);
    let refused = network.nodes[0].create_writer(network.now, writer_spec("T", false, qos.clone()));
    assert!(matches!(refused, Err(Error::InconsistentPolicy { .. })));
    qos.resource_limits.max_samples_per_instance = None;
    let mut greedy = qos.clone();
    greedy.resource_limits.max_samples = Some(900_000_000);
    let refused = network.nodes[0].create_writer(network.now, writer_spec("T", false, greedy));
    assert_eq!(refused, Err(Error::OutOfResources { limit: "max_samples", value: 1 << 20 }));
    let refused = network.nodes[0].create_writer(network.now, writer_spec("", false, qos.clone()));
    assert!(matches!(refused, Err(Error::BadParameter { .. })));
    let refused = network.nodes[0].create_writer(network.now, writer_spec(&"n".repeat(256), false, qos));
    assert!(matches!(refused, Err(Error::BadParameter { .. })));
}

#[test]
fn max_instances_is_never_exceeded() {
    let mut network = Network::new(2, 91);
    let mut qos = keep_all_writer();
    qos.resource_limits.max_instances = Some(3);
    let writer = network.writer(0, writer_spec("T", true, qos));
    let reader = network.reader(1, reader_spec("T", true, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    for key in 0..3 {
        network.write_key(0, writer, ChangeKind::Alive, hash(key), &payload(0, 20)).expect("write accepted");
    }
    let refused = network.write_key(0, writer, ChangeKind::Alive, hash(9), &payload(0, 20));
    assert_eq!(refused, Err(WriteError::Refused(Error::OutOfResources { limit: "max_instances", value: 3 })));
}

#[test]
fn state_is_released_after_a_thousand_joins_and_leaves() {
    let mut network = Network::new(2, 92);
    network.run(2_000);
    for _ in 0..1_000 {
        let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
        let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
        network.await_match((0, writer), (1, reader));
        network.write(0, writer, &payload(1, 20)).expect("write accepted");
        network.run_until(1_000, |n| n.take(1, reader).is_some());
        network.nodes[0].delete_writer(network.now, writer).expect("the writer exists");
        network.nodes[1].delete_reader(network.now, reader).expect("the reader exists");
    }
    network.run(2_000);
    assert_eq!(network.nodes[1].discovered_publications().count(), 0);
    assert_eq!(network.nodes[0].discovered_subscriptions().count(), 0);
    assert_eq!(network.nodes[0].counters().refused_remote_entities, 0);
}

#[test]
fn oldest_unvalidated_participant_is_replaced_by_a_new_one() {
    let mut network = Network::new(2, 93);
    network.run(1_000);
    let limit = Limits::default().max_unvalidated_participants;
    let now = network.now;
    let node = &mut network.nodes[0];
    let knows =
        |node: &Participant, prefix| node.discovered_participants().iter().any(|data| data.guid.prefix == prefix);
    let fake = |number: usize| {
        let mut puppet = Puppet::new(7);
        puppet.prefix.0[4..6].copy_from_slice(&(number as u16 + 1).to_be_bytes());
        puppet
    };
    for number in 0..1_000 {
        fake(number).announce_itself(node, now);
    }
    let new_participant = Puppet::new(200);
    new_participant.announce_itself(node, now);
    for number in 1_000..1_000 + limit - 1 {
        fake(number).announce_itself(node, now);
        assert!(knows(node, new_participant.prefix), "it has not had the time to answer");
    }
    assert_eq!(node.discovered_participants().len(), 1 + limit);
    fake(2_000).announce_itself(node, now);
    assert!(!knows(node, new_participant.prefix));
    assert!(knows(node, prefix(1)), "participants that answered stay");
}

#[test]
fn participants_of_one_address_are_limited() {
    let mut network = Network::new(1, 83);
    let now = network.now;
    let node = &mut network.nodes[0];
    let limit = Limits::default().max_participants_per_address;
    for number in 0..limit + 10 {
        let mut puppet = Puppet::new(7);
        puppet.prefix.0[4..6].copy_from_slice(&(number as u16 + 1).to_be_bytes());
        puppet.join(node, now);
    }
    assert_eq!(node.counters().participants_validated, limit as u64);
    assert_eq!(node.counters().refused_remote_entities, 10);
    Puppet::new(8).join(node, now);
    assert_eq!(node.counters().participants_validated, limit as u64 + 1);
}

#[test]
fn participant_beyond_the_limit_of_its_address_is_challenged_again_when_another_one_leaves() {
    let mut config = config(0, 1500);
    config.limits.max_participants_per_address = 1;
    let mut network = Network::new(0, 84);
    network.join_with(config);
    let mut now = network.now;
    let node = &mut network.nodes[0];
    let [mut first, mut second] = [1, 2].map(|number| {
        let mut puppet = Puppet::new(7);
        puppet.prefix.0[4] = number;
        puppet
    });
    first.join(node, now);
    second.join(node, now);
    assert_eq!((node.counters().participants_validated, node.counters().refused_remote_entities), (1, 1));
    first.leave(node, now);
    run_alone(node, &mut now, 1_000);
    second.join(node, now);
    assert_eq!(node.counters().participants_validated, 2);
}

#[test]
fn idle_participants_are_replaced_and_matched_ones_stay() {
    let mut config = config(0, 1500);
    config.limits.max_participants = 8;
    let mut network = Network::new(0, 85);
    network.join_with(config);
    let reader = network.reader(0, reader_spec("T", false, keep_all_reader()));
    let mut now = network.now;
    let node = &mut network.nodes[0];
    let knows = |node: &Participant, of| node.discovered_participants().iter().any(|data| data.guid.prefix == of);
    let mut puppets: Vec<_> = (10..18).map(Puppet::new).collect();
    for puppet in &mut puppets {
        puppet.lease = takt_wire::Duration::from_secs(80_000);
        puppet.join(node, now);
    }
    let publication = puppets[0].publication(1, true);
    puppets[0].publish(node, now, &publication);
    assert_eq!(node.matched_publications(reader).expect("it exists").len(), 1);
    Puppet::new(30).join(node, now);
    assert!(!knows(node, prefix(30)), "none has been silent for long");
    run_alone(node, &mut now, 59_000);
    puppets[1].announce_itself(node, now);
    run_alone(node, &mut now, 2_000);
    for number in 30..36 {
        Puppet::new(number).join(node, now);
        assert!(knows(node, prefix(number)), "{number}");
    }
    Puppet::new(36).join(node, now);
    assert!(!knows(node, prefix(36)), "of those left one is matched, the others have been heard of");
    assert!(knows(node, prefix(10)) && knows(node, prefix(11)));
    assert_eq!(node.counters().participants_displaced, 6);
}

#[test]
fn announcement_that_grows_beyond_the_limit_is_ignored() {
    let mut config = config(0, 1500);
    config.limits.max_discovery_bytes_per_participant = 50_000;
    let mut network = Network::new(0, 84);
    network.join_with(config);
    let now = network.now;
    let node = &mut network.nodes[0];
    let mut puppet = Puppet::new(7);
    puppet.join(node, now);
    for (len, known) in [(10_000, 10_000), (40_000, 10_000), (100, 100)] {
        let announcement =
            takt_wire::discovery::ParticipantData { user_data: UserData(vec![1; len]), ..puppet.announcement() };
        let payload = announcement.to_bytes();
        puppet.say(node, now, |message| {
            let data = data(takt_wire::EntityId::SPDP_WRITER, 1, takt_wire::Payload::Data(&payload));
            message.data(&data).expect("it fits");
        });
        assert_eq!(node.discovered_participants()[0].user_data.0.len(), known);
    }
}

#[test]
fn infinite_lease_ends_after_a_day_of_silence() {
    let mut network = Network::new(1, 94);
    let mut now = network.now;
    let node = &mut network.nodes[0];
    let mut puppet = Puppet::new(9);
    puppet.lease = takt_wire::Duration::INFINITE;
    puppet.join(node, now);
    run_alone(node, &mut now, 86_000_000);
    assert_eq!(node.discovered_participants().len(), 1);
    run_alone(node, &mut now, 500_000);
    assert_eq!(node.discovered_participants().len(), 0);
}

#[test]
fn endpoints_can_be_created_and_deleted_without_limit() {
    for nodes in [1, 2] {
        let mut network = Network::new(nodes, 95);
        network.run(1_000);
        for round in 0..5_000 {
            let now = network.now;
            let spec = || writer_spec(&format!("T{round}"), false, keep_all_writer());
            let writer = network.nodes[0].create_writer(now, small(spec())).expect("the writer is valid");
            network.nodes[0].delete_writer(now, writer).expect("the writer exists");
            network.run(1);
        }
        assert_eq!(network.nodes[0].counters().refused_local_announcements, 0);
        network.join();
        let known = |n: &Network, node: usize| n.nodes[node].discovered_publications().count();
        network.writer(0, small(writer_spec("last", false, keep_all_writer())));
        assert!(network.run_until(5_000, |n| (1..=nodes).all(|node| known(n, node) == 1)));
    }
}

/// Returns the writer specification with little memory, so that creation is fast.
fn small(mut spec: WriterSpec) -> WriterSpec {
    spec.qos.resource_limits.max_samples = Some(1);
    spec.qos.resource_limits.max_samples_per_instance = Some(1);
    spec.max_serialized_len = Some(16);
    spec
}

#[test]
fn instances_can_be_created_and_removed_without_limit() {
    for durability in [Durability::Volatile, Durability::TransientLocal] {
        let mut network = Network::new(2, 96);
        let mut qos = keep_all_writer();
        qos.durability = durability;
        qos.resource_limits.max_instances = Some(4);
        qos.resource_limits.max_samples = Some(16);
        let writer = network.writer(0, writer_spec("T", true, qos));
        let reader = network.reader(1, reader_spec("T", true, keep_all_reader()));
        network.await_match((0, writer), (1, reader));
        for key in 0..200 {
            for kind in [ChangeKind::Alive, ChangeKind::DisposedUnregistered] {
                network.write_key(0, writer, kind, hash(key), &payload(u32::from(key), 20)).expect("write accepted");
            }
            let all = network.run_until(1_000, |n| n.nodes[0].is_acknowledged(writer, None).expect("writer exists"));
            assert!(all);
            network.take_all(1, reader);
        }
    }
}

#[test]
fn change_without_a_payload_is_delivered() {
    let mut network = Network::new(2, 97);
    let writer = network.writer(0, writer_spec("T", true, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", true, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(1, 20)).expect("write accepted");
    network.write_key(0, writer, ChangeKind::Disposed, hash(1), &[]).expect("write accepted");
    network.run(100);
    let taken: Vec<_> = network.take_all(1, reader).iter().map(|(info, _)| info.valid_data).collect();
    assert_eq!(taken, [true, false]);
}

#[test]
fn serializer_that_claims_more_than_its_buffer_is_refused() {
    let mut network = Network::new(2, 98);
    let writer = network.writer(0, writer_spec("T", false, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", false, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    let change = NewChange {
        kind: ChangeKind::Alive,
        key_hash: [0; 16],
        source_timestamp: None,
        destinations: &[],
        payload_len: 10,
    };
    let now = network.now;
    assert_eq!(network.nodes[0].write(now, writer, &change, |_| Some(11)), Err(WriteError::Serialize));
}

#[test]
fn too_small_frames_and_interfaces_cause_no_endless_retries() {
    let mut network = Network::with_mtu(2, 99, 0);
    let writer = network.writer(0, writer_spec("T", true, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", true, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    for number in 0..10 {
        network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(number, 5_000)).expect("write accepted");
    }
    for len in 0..548 {
        assert_eq!(network.nodes[0].poll_transmit(network.now, &mut vec![0; len]), None);
    }
    let mut frame = vec![0; 548];
    while let Some(transmit) = network.nodes[0].poll_transmit(network.now, &mut frame) {
        assert!(transmit.len <= 548);
    }
    network.run(1_000);
    assert_eq!(network.take_all(1, reader).len(), 10, "the rest was repaired");
}

#[test]
fn reader_removes_an_instance_without_samples_and_writers() {
    let mut network = Network::new(2, 80);
    let reader = network.reader(1, reader_spec("T", true, keep_all_reader()));
    let known = |n: &mut Network, key: u8| {
        n.nodes[1].key_of(reader, InstanceHandle(hash(key))).expect("the reader exists").is_some()
    };
    let writer = network.writer(0, writer_spec("T", true, keep_all_writer()));
    network.await_match((0, writer), (1, reader));
    for (key, kind) in [(1, ChangeKind::Disposed), (2, ChangeKind::DisposedUnregistered), (3, ChangeKind::Unregistered)]
    {
        network
            .write_key(0, writer, ChangeKind::Alive, hash(key), &payload(u32::from(key), 20))
            .expect("write accepted");
        network.write_key(0, writer, kind, hash(key), &payload(u32::from(key), 20)).expect("write accepted");
    }
    network.write_key(0, writer, ChangeKind::Alive, hash(4), &payload(4, 20)).expect("write accepted");
    network.run(100);
    assert!((1..=4).all(|key| known(&mut network, key)), "nothing was taken");
    assert_eq!(network.take_all(1, reader).len(), 7);
    let now = network.now;
    network.nodes[1].end_read(now, reader).expect("the reader exists");
    assert_eq!([1, 2, 3, 4].map(|key| known(&mut network, key)), [true, false, false, true]);
    network.nodes[0].delete_writer(now, writer).expect("the writer exists");
    network.run(100);
    assert_eq!([1, 4].map(|key| known(&mut network, key)), [false, true], "losing the last writer is a state change");
    assert_eq!(network.take_all(1, reader).len(), 1);
    network.nodes[1].end_read(now, reader).expect("the reader exists");
    assert!(!known(&mut network, 4));
}

#[test]
fn instances_of_rejected_samples_are_removed() {
    let mut network = Network::new(1, 81);
    let now = network.now;
    let mut qos = keep_all_reader();
    qos.resource_limits.max_samples = Some(1);
    qos.resource_limits.max_instances = Some(8);
    let reader = network.reader(0, reader_spec("T", true, qos));
    let node = &mut network.nodes[0];
    let mut announce = |number: usize, stays: bool| {
        let mut puppet = Puppet::new(9 + number);
        puppet.join(node, now);
        let writer = takt_wire::EntityId::user_writer(1, true);
        let publication = PublicationData { guid: puppet.guid(writer), ..puppet.publication(1, true) };
        puppet.publish(node, now, &publication);
        let heartbeat = puppet.heartbeat(writer, 1, 1);
        let bytes = payload(number as u32, 20);
        puppet.say(node, now, |message| {
            message.heartbeat(&heartbeat).expect("it fits");
            message.data(&data(writer, 1, takt_wire::Payload::Data(&bytes))).expect("it fits");
        });
        if !stays {
            puppet.leave(node, now);
        }
    };
    announce(0, true);
    (1..30).for_each(|number| announce(number, false));
    announce(30, true);
    let taken: Vec<_> = network.take_all(0, reader).iter().map(|(info, _)| info.instance_handle.0).collect();
    assert_eq!(taken, [hash(0), hash(30)]);
}

#[test]
fn remote_announcements_take_at_most_the_allowed_memory() {
    let mut config = config(0, 1500);
    config.limits.max_discovery_bytes_per_participant = 100_000;
    config.limits.max_discovery_bytes = 250_000;
    let mut network = Network::new(0, 82);
    network.join_with(config);
    let now = network.now;
    let node = &mut network.nodes[0];
    let mut puppets: Vec<_> = (9..13).map(Puppet::new).collect();
    for round in 0..3_u8 {
        for (number, puppet) in puppets.iter_mut().enumerate() {
            *puppet = Puppet::new(9 + 10 * usize::from(round) + number);
            puppet.join(node, now);
            for key in (1..=20).chain(1..=20) {
                let mut publication = puppet.publication(key, true);
                publication.qos.user_data.0 = vec![round; 10_000];
                puppet.publish(node, now, &publication);
            }
        }
        let of =
            |puppet: &Puppet| node.discovered_publications().filter(|data| data.guid.prefix == puppet.prefix).count();
        let known: Vec<_> = puppets.iter().map(of).collect();
        assert!(known[0] > 5 && known[0] < 10 && known[0] == known[1], "{known:?} of 20 with 10 kB each");
        assert!(known[2] < known[0] && known[3] <= known[2], "{known:?}: there is a limit for all together");
        puppets.iter().for_each(|puppet| puppet.leave(node, now));
        assert_eq!(node.discovered_publications().count(), 0);
    }
}
