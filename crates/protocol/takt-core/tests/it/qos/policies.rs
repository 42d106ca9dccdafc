//! Changes of policies while the entity is enabled, and immutable policies (DDS 1.4 §2.2.3).

use crate::network::*;
use takt_core::*;
use takt_wire::Duration;
use takt_wire::qos::*;

/// Creates a matched writer at node 0 and reader at node 1.
fn pair(seed: u64) -> (Network, WriterHandle, ReaderHandle) {
    let mut network = Network::new(2, seed);
    let writer = network.writer(0, writer_spec("T", true, keep_all_writer()));
    let reader = network.reader(1, reader_spec("T", true, keep_all_reader()));
    network.await_match((0, writer), (1, reader));
    (network, writer, reader)
}

fn deadline(ms: u64) -> Deadline {
    Deadline { period: Duration::from_millis(ms) }
}

fn partition(name: &str) -> Partition {
    Partition { names: vec![name.into()] }
}

fn is_matched(network: &mut Network, reader: ReaderHandle) -> bool {
    !network.nodes[1].matched_publications(reader).expect("the reader exists").is_empty()
}

#[test]
fn changed_user_data_are_announced_and_keep_the_match() {
    let (mut network, writer, reader) = pair(300);
    network.nodes[0].writer_guid(writer).expect("it exists");
    let qos = DataWriterQos { user_data: UserData(vec![1, 2, 3]), ..keep_all_writer() };
    network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(1, 20)).expect("write accepted");
    network.nodes[1].subscription_matched_status(reader).expect("it exists");
    let now = network.now;
    network.nodes[0].set_writer_qos(now, writer, qos).expect("USER_DATA may change");
    network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(2, 20)).expect("write accepted");
    let seen = network.run_until(1_000, |network| {
        network.nodes[1].discovered_publications().any(|data| data.qos.user_data.0 == [1, 2, 3])
    });
    assert!(seen);
    network.run(100);
    let status = network.nodes[1].subscription_matched_status(reader).expect("it exists");
    assert_eq!((status.total_count_change, status.current_count), (0, 1));
    assert_eq!(network.take_all(1, reader).len(), 2, "each sample once");
}

#[test]
fn changed_partition_ends_the_match_and_restores_it() {
    let (mut network, writer, reader) = pair(301);
    let now = network.now;
    let apart = PublisherQos { partition: partition("elsewhere"), ..PublisherQos::default() };
    network.nodes[0].set_publisher_qos(now, writer, &apart).expect("PARTITION may change");
    assert!(network.run_until(1_000, |network| !is_matched(network, reader)));
    assert_eq!(network.nodes[0].matched_subscriptions(writer).expect("it exists"), []);
    let now = network.now;
    let follows = SubscriberQos { partition: partition("else*"), ..SubscriberQos::default() };
    network.nodes[1].set_subscriber_qos(now, reader, &follows).expect("PARTITION may change");
    network.await_match((0, writer), (1, reader));
    network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(7, 20)).expect("write accepted");
    network.run(100);
    assert_eq!(network.take_all(1, reader).len(), 1);
}

#[test]
fn match_ends_when_the_deadline_exceeds_the_requested_one() {
    let mut network = Network::new(2, 302);
    let offered = DataWriterQos { deadline: deadline(50), ..keep_all_writer() };
    let requested = DataReaderQos { deadline: deadline(100), ..keep_all_reader() };
    let writer = network.writer(0, writer_spec("T", true, offered.clone()));
    let reader = network.reader(1, reader_spec("T", true, requested));
    network.await_match((0, writer), (1, reader));
    let now = network.now;
    let longer = DataWriterQos { deadline: deadline(200), ..offered };
    network.nodes[0].set_writer_qos(now, writer, longer).expect("DEADLINE may change");
    assert!(network.run_until(1_000, |network| !is_matched(network, reader)));
    let status = network.nodes[1].requested_incompatible_qos_status(reader).expect("it exists");
    assert_eq!(status.last_policy.map(|policy| policy.name()), Some("DEADLINE"));
    let status = network.nodes[0].offered_incompatible_qos_status(writer).expect("it exists");
    assert_eq!(status.total_count, 1);
}

#[test]
fn changed_deadline_is_monitored_from_then_on() {
    let (mut network, writer, reader) = pair(303);
    network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(1, 20)).expect("write accepted");
    network.run(100);
    let now = network.now;
    let qos = DataReaderQos { deadline: deadline(1_000), ..keep_all_reader() };
    network.nodes[1].set_reader_qos(now, reader, qos).expect("DEADLINE may change");
    assert!(network.run_until(1_000, |network| !is_matched(network, reader)), "the writer offers none");
    let now = network.now;
    let qos = DataWriterQos { deadline: deadline(40), ..keep_all_writer() };
    network.nodes[0].set_writer_qos(now, writer, qos).expect("DEADLINE may change");
    network.await_match((0, writer), (1, reader));
    network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(2, 20)).expect("write accepted");
    network.run(100);
    let status = network.nodes[0].offered_deadline_missed_status(writer).expect("it exists");
    assert_eq!(status.total_count, 2, "two periods of 40 ms have passed");
    network.run(950);
    let status = network.nodes[1].requested_deadline_missed_status(reader).expect("it exists");
    assert_eq!(status.total_count, 1, "one period of 1 s has passed");
}

#[test]
fn changed_topic_and_group_data_are_announced() {
    let (mut network, writer, reader) = pair(308);
    let now = network.now;
    let (topic, group) = (TopicData(vec![1, 2]), GroupData(vec![3]));
    let node = &mut network.nodes[0];
    node.set_writer_topic_data(now, writer, &topic).expect("TOPIC_DATA may change");
    let publisher = PublisherQos { group_data: group.clone(), ..PublisherQos::default() };
    node.set_publisher_qos(now, writer, &publisher).expect("GROUP_DATA may change");
    let node = &mut network.nodes[1];
    node.set_reader_topic_data(now, reader, &topic).expect("TOPIC_DATA may change");
    let subscriber = SubscriberQos { group_data: group.clone(), ..SubscriberQos::default() };
    node.set_subscriber_qos(now, reader, &subscriber).expect("GROUP_DATA may change");
    assert!(network.run_until(1_000, |network| {
        let mut publications = network.nodes[1].discovered_publications();
        let mut subscriptions = network.nodes[0].discovered_subscriptions();
        publications.any(|data| (&data.topic_data, &data.group_data) == (&topic, &group))
            && subscriptions.any(|data| (&data.topic_data, &data.group_data) == (&topic, &group))
    }));
    assert!(is_matched(&mut network, reader), "no endpoint matches by it");
}

#[test]
fn changed_ownership_strength_changes_the_owner() {
    let mut network = Network::new(3, 304);
    let qos = |strength| DataWriterQos {
        ownership: Ownership::Exclusive,
        ownership_strength: OwnershipStrength(strength),
        ..keep_all_writer()
    };
    let first = network.writer(0, writer_spec("T", true, qos(5)));
    let second = network.writer(1, writer_spec("T", true, qos(3)));
    let reader = DataReaderQos { ownership: Ownership::Exclusive, ..keep_all_reader() };
    let reader = network.reader(2, reader_spec("T", true, reader));
    network.await_match((0, first), (2, reader));
    network.await_match((1, second), (2, reader));
    let write = |network: &mut Network, node, writer| {
        network.write_key(node, writer, ChangeKind::Alive, hash(1), &payload(1, 20)).expect("write accepted");
        network.run(50);
        network.take_all(2, reader).len()
    };
    assert_eq!(write(&mut network, 0, first), 1);
    assert_eq!(write(&mut network, 1, second), 0);
    let now = network.now;
    network.nodes[0].set_writer_qos(now, first, qos(1)).expect("OWNERSHIP_STRENGTH may change");
    network.run(50);
    assert_eq!(write(&mut network, 1, second), 1, "the owner is the weaker one now");
    assert_eq!(write(&mut network, 0, first), 0);
}

#[test]
fn immutable_policy_is_refused_by_name() {
    let (mut network, writer, reader) = pair(305);
    let now = network.now;
    let refusal = |result: Result<(), Error>| match result {
        Err(Error::ImmutablePolicy(name)) => name,
        other => panic!("{other:?}"),
    };
    let tag = DataTag { tags: vec![Tag::new("name", "value")] };
    let node = &mut network.nodes[0];
    let base = keep_all_writer;
    for (qos, name) in [
        (DataWriterQos { durability: Durability::TransientLocal, ..base() }, "DURABILITY"),
        (DataWriterQos { history: History::KeepLast(3), ..base() }, "HISTORY"),
        (DataWriterQos { reliability: best_effort(), ..base() }, "RELIABILITY"),
        (DataWriterQos { ownership: Ownership::Exclusive, ..base() }, "OWNERSHIP"),
        (DataWriterQos { destination_order: DestinationOrder::BySourceTimestamp, ..base() }, "DESTINATIONORDER"),
        (DataWriterQos { data_representation: DataRepresentation::xcdr2(), ..base() }, "DATAREPRESENTATION"),
        (DataWriterQos { data_tag: tag.clone(), ..base() }, "DATA_TAG"),
        (DataWriterQos { entity_name: EntityName("other".into()), ..base() }, "ENTITY_NAME"),
    ] {
        assert_eq!(refusal(node.set_writer_qos(now, writer, qos)), name);
    }
    let ordered = Presentation { ordered_access: true, ..Presentation::default() };
    let publisher = PublisherQos { presentation: ordered, ..PublisherQos::default() };
    assert_eq!(refusal(node.set_publisher_qos(now, writer, &publisher)), "PRESENTATION");
    let node = &mut network.nodes[1];
    let limits = ResourceLimits { max_samples: Some(7), ..ResourceLimits::default() };
    for (qos, name) in [
        (DataReaderQos { resource_limits: limits, ..keep_all_reader() }, "RESOURCELIMITS"),
        (DataReaderQos { reliability: best_effort(), ..keep_all_reader() }, "RELIABILITY"),
        (DataReaderQos { data_tag: tag, ..keep_all_reader() }, "DATA_TAG"),
        (DataReaderQos { entity_name: EntityName("other".into()), ..keep_all_reader() }, "ENTITY_NAME"),
    ] {
        assert_eq!(refusal(node.set_reader_qos(now, reader, qos)), name);
    }
    let subscriber = SubscriberQos { presentation: ordered, ..SubscriberQos::default() };
    assert_eq!(refusal(node.set_subscriber_qos(now, reader, &subscriber)), "PRESENTATION");
    let contradiction = DataReaderQos { history: History::KeepLast(0), ..keep_all_reader() };
    assert!(matches!(node.set_reader_qos(now, reader, contradiction), Err(Error::InconsistentPolicy { .. })));
}

#[test]
fn suspended_publications_are_sent_together() {
    let (mut network, writer, reader) = pair(306);
    network.nodes[0].suspend_writer(writer, true).expect("it exists");
    for number in 0..5 {
        network.write_key(0, writer, ChangeKind::Alive, hash(1), &payload(number, 20)).expect("write accepted");
    }
    network.run(500);
    assert_eq!(network.take_all(1, reader).len(), 0);
    network.nodes[0].suspend_writer(writer, false).expect("it exists");
    network.run(50);
    assert_eq!(network.take_all(1, reader).len(), 5);
}

#[test]
fn changed_user_data_of_a_participant_are_announced() {
    let (mut network, _, _) = pair(307);
    let qos = DomainParticipantQos { user_data: UserData(vec![9]), ..DomainParticipantQos::default() };
    network.nodes[0].set_qos(&qos);
    let seen = network.run_until(1_000, |network| {
        network.nodes[1].discovered_participants().iter().any(|data| data.user_data.0 == [9])
    });
    assert!(seen);
}

#[test]
fn waiting_samples_are_sent_in_the_partition_of_their_write() {
    for is_reliable in [true, false] {
        let mut network = Network::new(4, 409);
        let in_partitions = |names: &[&str]| Partition { names: names.iter().map(|name| (*name).into()).collect() };
        let mut spec = writer_spec("T", false, keep_all_writer());
        spec.publisher.partition = in_partitions(&["A", "C"]);
        let writer = network.writer(0, spec);
        let readers: Vec<_> = [(1, "A"), (2, "B"), (3, "C")]
            .into_iter()
            .map(|(node, name)| {
                let mut spec = reader_spec("T", false, keep_all_reader());
                spec.qos.reliability = if is_reliable { reliable() } else { best_effort() };
                spec.subscriber.partition = in_partitions(&[name]);
                network.reader(node, spec)
            })
            .collect();
        network.await_match((0, writer), (1, readers[0]));
        network.await_match((0, writer), (3, readers[2]));
        network.run(500);
        network.nodes[0].suspend_writer(writer, true).expect("it exists");
        network.write(0, writer, &payload(1, 20)).expect("write accepted");
        network.write(0, writer, &payload(2, 20)).expect("write accepted");
        let elsewhere = PublisherQos { partition: in_partitions(&["B", "C"]), ..PublisherQos::default() };
        let now = network.now;
        network.nodes[0].set_publisher_qos(now, writer, &elsewhere).expect("PARTITION may change");
        network.nodes[0].suspend_writer(writer, false).expect("it exists");
        network.await_match((0, writer), (2, readers[1]));
        network.run(500);
        network.write(0, writer, &payload(3, 20)).expect("write accepted");
        network.run(500);
        let mut taken = |node: usize| -> Vec<_> {
            let samples = network.take_all(node, readers[node - 1]);
            samples.into_iter().filter(|(info, _)| info.valid_data).map(|(_, bytes)| bytes[4]).collect()
        };
        assert_eq!(taken(2), [3], "reliable: {is_reliable}: what was written elsewhere is not for it");
        assert_eq!(taken(3), [1, 2, 3], "reliable: {is_reliable}: it was matched all the time");
        assert_eq!(taken(1), [], "reliable: {is_reliable}: nothing had been sent when its match ended");
    }
}
