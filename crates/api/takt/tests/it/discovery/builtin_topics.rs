//! Builtin topics: remote participants, topics, writers and readers, read by ordinary readers.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::support::*;
use takt::builtin::*;
use takt::qos::*;
use takt::*;

/// Creates the participant with the builtin readers, and a remote one.
fn two_participants(runtime: Runtime) -> (DomainParticipant, DomainParticipant) {
    let domain = domain();
    let watching = on_loopback(domain, runtime).build().expect("participant");
    let qos = DomainParticipantQos { user_data: UserData(b"hello".to_vec()), ..DomainParticipantQos::default() };
    let other = on_loopback(domain, runtime).qos(qos).name("other").build().expect("participant");
    (watching, other)
}

fn builtin<T: BuiltinTopicData>(participant: &DomainParticipant) -> DataReader<T> {
    participant.builtin_subscriber().lookup_datareader().expect("open")
}

/// Takes the next sample of a builtin reader.
fn next<T: BuiltinTopicData>(participants: &[&DomainParticipant], reader: &DataReader<T>, what: &str) -> Sample<T> {
    let mut found = None;
    wait_until(participants, what, || {
        found = reader.take(1).expect("open").pop();
        found.is_some()
    });
    found.expect("waited for it")
}

#[test]
fn participant_is_alive_and_then_disposed_when_it_leaves() {
    for runtime in RUNTIMES {
        let (watching, other) = two_participants(runtime);
        let participants = builtin::<ParticipantBuiltinTopicData>(&watching);
        let guid = other.guid();
        let sample = next(&[&watching, &other], &participants, "discovery");
        let expected = ParticipantBuiltinTopicData {
            key: guid.into(),
            user_data: UserData(b"hello".to_vec()),
            entity_name: EntityName("other".into()),
        };
        assert_eq!(sample.data, Some(expected), "{runtime:?}");
        assert_eq!(sample.info.instance_handle, InstanceHandle::from(guid));
        assert_eq!(sample.info.publication.prefix, guid.prefix);
        assert_eq!((sample.info.view_state, sample.info.instance_state), (ViewState::New, InstanceState::Alive));
        assert_eq!(participants.lookup_instance(&sample.data.expect("data")).expect("a key"), guid.into());
        drop(other);
        let sample = next(&[&watching], &participants, "farewell");
        assert!(!sample.info.valid_data && sample.data.is_none());
        assert_eq!(sample.info.instance_state, InstanceState::NotAliveDisposed, "{runtime:?}");
        assert_eq!(sample.key.expect("the key").key.guid(), guid);
    }
}

#[test]
fn expired_participant_leaves_instances_without_writers() {
    for runtime in RUNTIMES {
        let domain = domain();
        let watching = on_loopback(domain, runtime).build().expect("participant");
        let lease = std::time::Duration::from_millis(300);
        let silent = on_loopback(domain, Runtime::Inline).lease_duration(lease).build().expect("participant");
        let writer = create_writer::<Shape>(&silent, "Topic", DataWriterQos::default());
        let participants = builtin::<ParticipantBuiltinTopicData>(&watching);
        let topics = builtin::<TopicBuiltinTopicData>(&watching);
        let publications = builtin::<PublicationBuiltinTopicData>(&watching);
        let both = [&watching, &silent];
        assert_eq!(next(&both, &publications, "writer").info.instance_handle, writer.guid().into());
        assert_eq!(next(&both, &participants, "participant").info.instance_handle, silent.guid().into());
        let topic = next(&both, &topics, "topic").info.instance_handle;
        let gone = InstanceState::NotAliveNoWriters;
        let sample = next(&[&watching], &participants, "loss");
        assert_eq!((sample.info.instance_handle, sample.info.instance_state), (silent.guid().into(), gone));
        let sample = next(&[&watching], &publications, "loss of the writer");
        assert_eq!((sample.info.instance_handle, sample.info.instance_state), (writer.guid().into(), gone));
        let sample = next(&[&watching], &topics, "loss of the topic");
        assert_eq!((sample.info.instance_handle, sample.info.instance_state), (topic, gone), "{runtime:?}");
    }
}

fn unusual_writer() -> DataWriterQos {
    DataWriterQos {
        durability: Durability::TransientLocal,
        durability_service: DurabilityService { history: History::KeepLast(3), ..DurabilityService::default() },
        deadline: Deadline { period: takt::Duration::from_millis(70) },
        latency_budget: LatencyBudget { duration: takt::Duration::from_millis(3) },
        liveliness: Liveliness { kind: LivelinessKind::ManualByTopic, lease_duration: takt::Duration::from_secs(9) },
        reliability: reliable(),
        destination_order: DestinationOrder::BySourceTimestamp,
        history: History::KeepLast(5),
        resource_limits: ResourceLimits { max_samples: Some(50), ..ResourceLimits::default() },
        transport_priority: TransportPriority(4),
        lifespan: Lifespan { duration: takt::Duration::from_secs(8) },
        user_data: UserData(vec![1, 2, 3]),
        ownership: Ownership::Exclusive,
        ownership_strength: OwnershipStrength(6),
        ..DataWriterQos::default()
    }
}

#[test]
fn publication_data_contain_policies_of_writer_topic_and_publisher() {
    for runtime in RUNTIMES {
        let (watching, other) = two_participants(runtime);
        let qos = TopicQos { topic_data: TopicData(b"topic".to_vec()), ..TopicQos::default() };
        let topic = other.create_topic::<Shape>("Square", qos).expect("topic");
        let group = PublisherQos {
            partition: Partition { names: vec!["east".into(), "west".into()] },
            group_data: GroupData(b"group".to_vec()),
            presentation: Presentation { access_scope: AccessScope::Topic, ..Presentation::default() },
            ..PublisherQos::default()
        };
        let publisher = other.create_publisher(group.clone()).expect("publisher");
        let qos = unusual_writer();
        let writer = publisher.create_datawriter(&topic, qos.clone()).expect("writer");
        let publications = builtin::<PublicationBuiltinTopicData>(&watching);
        let data = next(&[&watching, &other], &publications, "writer").data.expect("data");
        let expected = PublicationBuiltinTopicData {
            key: writer.guid().into(),
            participant_key: other.guid().into(),
            topic_name: "Square".into(),
            type_name: "Shape".into(),
            durability: qos.durability,
            durability_service: qos.durability_service,
            deadline: qos.deadline,
            latency_budget: qos.latency_budget,
            liveliness: qos.liveliness,
            reliability: qos.reliability,
            lifespan: qos.lifespan,
            user_data: qos.user_data.clone(),
            ownership: qos.ownership,
            ownership_strength: qos.ownership_strength,
            destination_order: qos.destination_order,
            presentation: group.presentation,
            partition: group.partition,
            topic_data: TopicData(b"topic".to_vec()),
            group_data: group.group_data,
            representation: qos.data_representation.clone(),
        };
        assert_eq!(data, expected, "{runtime:?}");
        // A reader created late starts with the known entities.
        let topics = builtin::<TopicBuiltinTopicData>(&watching);
        let data = topics.read(8).expect("open").pop().and_then(|sample| sample.data).expect("the topic");
        assert_eq!((&*data.name, &*data.type_name), ("Square", "Shape"));
        assert_eq!((data.durability, data.durability_service), (qos.durability, qos.durability_service));
        assert_eq!((data.history, data.resource_limits), (qos.history, qos.resource_limits));
        assert_eq!((data.transport_priority, data.topic_data), (qos.transport_priority, TopicData(b"topic".to_vec())));
        writer.close().expect("open");
        let gone = next(&[&watching, &other], &publications, "deletion");
        assert_eq!(gone.info.instance_state, InstanceState::NotAliveDisposed);
        assert_eq!(gone.key.expect("the key").key.guid(), writer.guid());
    }
}

#[test]
fn subscription_data_contain_policies_of_the_reader() {
    for runtime in RUNTIMES {
        let (watching, other) = two_participants(runtime);
        let qos = DataReaderQos {
            user_data: UserData(vec![9]),
            time_based_filter: TimeBasedFilter { minimum_separation: takt::Duration::from_millis(5) },
            deadline: Deadline { period: takt::Duration::from_millis(80) },
            ..reliable_reader(History::KeepAll)
        };
        let reader = create_reader::<Shape>(&other, "Circle", qos.clone());
        let subscriptions = builtin::<SubscriptionBuiltinTopicData>(&watching);
        let data = next(&[&watching, &other], &subscriptions, "reader").data.expect("data");
        let expected = SubscriptionBuiltinTopicData {
            key: reader.guid().into(),
            participant_key: other.guid().into(),
            topic_name: "Circle".into(),
            type_name: "Shape".into(),
            deadline: qos.deadline,
            reliability: qos.reliability,
            user_data: qos.user_data.clone(),
            time_based_filter: qos.time_based_filter,
            representation: qos.data_representation.clone(),
            ..SubscriptionBuiltinTopicData::default()
        };
        assert_eq!(data, expected, "{runtime:?}");
        drop(other);
        drop(reader);
        let gone = next(&[&watching], &subscriptions, "farewell");
        assert_eq!(gone.info.instance_state, InstanceState::NotAliveDisposed);
    }
}

#[test]
fn topic_instance_is_alive_while_an_endpoint_uses_it() {
    for runtime in RUNTIMES {
        let (watching, other) = two_participants(runtime);
        let both = [&watching, &other];
        let topics = builtin::<TopicBuiltinTopicData>(&watching);
        let reader = create_reader::<Shape>(&other, "Square", DataReaderQos::default());
        let first = next(&both, &topics, "topic");
        assert_eq!(first.data.expect("data").durability, Durability::Volatile, "the reader's");
        let writer = create_writer::<Shape>(&other, "Square", unusual_writer());
        let second = next(&both, &topics, "the writer's policies");
        assert_eq!(second.info.instance_handle, first.info.instance_handle);
        assert_eq!(second.data.expect("data").durability, Durability::TransientLocal, "the writer's");
        let third = create_writer::<Shape>(&other, "Square", DataWriterQos::default());
        drop(writer);
        drop(reader);
        let known = || watching.discovered_publications().expect("open").len();
        wait_until(&both, "one endpoint is left", || {
            known() == 1 && watching.discovered_subscriptions().expect("open").is_empty()
        });
        assert_eq!(topics.take(8).expect("open"), [], "{runtime:?}: still there");
        drop(third);
        let last = next(&both, &topics, "deletion");
        assert_eq!(last.info.instance_state, InstanceState::NotAliveDisposed);
        assert_eq!(last.info.instance_handle, first.info.instance_handle);
    }
}

#[test]
fn local_entities_and_homonymous_topics_do_not_appear_in_builtin_topics() {
    for runtime in RUNTIMES {
        let (watching, other) = two_participants(runtime);
        let publications = builtin::<PublicationBuiltinTopicData>(&watching);
        let own = create_writer::<Shape>(&watching, "Square", DataWriterQos::default());
        // Topic of an application with the name of a builtin topic.
        let odd = create_writer::<Shape>(&other, "DCPSPublication", DataWriterQos::default());
        let sample = next(&[&watching, &other], &publications, "writer");
        assert_eq!(sample.info.instance_handle, odd.guid().into(), "{runtime:?}");
        assert_eq!(publications.take(8).expect("open"), []);
        assert_eq!(publications.matched_publications().expect("open"), []);
        assert_eq!(odd.matched_subscriptions().expect("open"), []);
        assert_eq!(own.matched_subscriptions().expect("open"), []);
        assert_eq!(other.discovered_subscriptions().expect("open"), [], "the builtin reader is not announced");
        let refused = watching.create_topic::<Shape>("DCPSPublication", TopicQos::default());
        assert!(matches!(refused, Err(Error::PreconditionNotMet { .. })), "{refused:?}");
    }
}

#[test]
fn builtin_reader_is_shared_while_a_handle_exists() {
    for runtime in RUNTIMES {
        let (watching, other) = two_participants(runtime);
        let first = builtin::<ParticipantBuiltinTopicData>(&watching);
        next(&[&watching, &other], &first, "discovery");
        let second = builtin::<ParticipantBuiltinTopicData>(&watching);
        assert_eq!(second.take(8).expect("open"), [], "{runtime:?}: taken by the first");
        drop((first, second));
        let third = builtin::<ParticipantBuiltinTopicData>(&watching);
        assert_eq!(third.take(8).expect("open").len(), 1, "a new one starts from the beginning");
        third.close().expect("open");
        assert!(matches!(third.take(8), Err(Error::AlreadyDeleted)));
        let fourth = builtin::<ParticipantBuiltinTopicData>(&watching);
        assert_eq!(fourth.take(8).expect("open").len(), 1);
        watching.close().expect("open");
        let result = watching.builtin_subscriber().lookup_datareader::<ParticipantBuiltinTopicData>();
        assert!(matches!(result, Err(Error::AlreadyDeleted)), "{result:?}");
    }
}

struct Collect(Arc<Mutex<Vec<Sample<PublicationBuiltinTopicData>>>>);

impl DataReaderListener<PublicationBuiltinTopicData> for Collect {
    fn on_data_available(&mut self, reader: &DataReader<PublicationBuiltinTopicData>) {
        self.0.lock().expect("no panic").extend(reader.take(usize::MAX).expect("open"));
    }
}

#[test]
fn builtin_readers_support_listeners_conditions_and_streams() {
    for runtime in RUNTIMES {
        let (watching, other) = two_participants(runtime);
        let both = [&watching, &other];
        let seen = Arc::new(Mutex::new(Vec::new()));
        let publications = builtin::<PublicationBuiltinTopicData>(&watching);
        publications.set_listener(Box::new(Collect(Arc::clone(&seen)))).expect("open");

        let participants = builtin::<ParticipantBuiltinTopicData>(&watching);
        let gone = InstanceStates::NOT_ALIVE_DISPOSED | InstanceStates::NOT_ALIVE_NO_WRITERS;
        let left = participants.read_condition(Selector { instance_states: gone, ..Selector::READ });
        let waitset = WaitSet::new().expect("descriptors");
        waitset.attach(&left).expect("attached");

        let subscriptions = builtin::<SubscriptionBuiltinTopicData>(&watching);
        let mut stream = subscriptions.stream();

        let writer = create_writer::<Shape>(&other, "Square", DataWriterQos::default());
        let reader = create_reader::<Shape>(&other, "Square", DataReaderQos::default());
        wait_until(&both, "call", || !seen.lock().expect("no panic").is_empty());
        assert_eq!(seen.lock().expect("no panic")[0].info.instance_handle, writer.guid().into());
        let mut found = None;
        wait_until(&both, "a sample of the stream", || {
            let next = std::pin::pin!(stream.next());
            if let Poll::Ready(sample) = next.poll(&mut Context::from_waker(Waker::noop())) {
                found = sample;
            }
            found.is_some()
        });
        let sample = found.expect("the stream has not ended").expect("a sample");
        assert_eq!(sample.data.expect("data").key.guid(), reader.guid());
        assert!(!left.trigger_value().expect("own thread"));
        drop((writer, reader, other));
        assert!(waitset.wait_any(takt::Duration::from_secs(60)).expect("a wait"), "{runtime:?}");
    }
}

#[test]
fn matched_endpoint_data_are_available_on_both_sides() {
    for runtime in RUNTIMES {
        let writer = DataWriterQos { user_data: UserData(vec![1, 2, 3]), ..reliable_writer(History::KeepAll) };
        let pair = Pair::<Shape>::new(runtime, writer, reliable_reader(History::KeepAll));
        let data = pair.reader.matched_publication_data(pair.writer.guid()).expect("matched");
        assert_eq!((data.key.guid(), data.user_data), (pair.writer.guid(), UserData(vec![1, 2, 3])), "{runtime:?}");
        let data = pair.writer.matched_subscription_data(pair.reader.guid()).expect("matched");
        assert_eq!((data.key.guid(), data.participant_key.guid()), (pair.reader.guid(), pair.subscriber.guid()));
        let unknown = pair.writer.matched_subscription_data(pair.writer.guid());
        assert!(matches!(unknown, Err(Error::BadParameter { .. })), "{unknown:?}");
        let own = create_reader::<Shape>(&pair.publisher, "Topic", DataReaderQos::default());
        pair.wait_until("own match", || pair.writer.matched_subscriptions().expect("open").len() == 2);
        let data = pair.writer.matched_subscription_data(own.guid()).expect("one of ours");
        assert_eq!(data.participant_key.guid(), pair.publisher.guid());
    }
}

#[test]
fn disposed_instances_free_space_for_new_ones() {
    for runtime in RUNTIMES {
        let domain = domain();
        let limits = Limits { default_max_instances: 4, ..Limits::default() };
        let watching = on_loopback(domain, runtime).limits(limits).build().expect("participant");
        let other = on_loopback(domain, runtime).build().expect("participant");
        let both = [&watching, &other];
        let publications = builtin::<PublicationBuiltinTopicData>(&watching);
        let known = |count| {
            wait_until(&both, "writers", || watching.discovered_publications().expect("open").len() == count);
        };
        for _ in 0..3 {
            // Samples are never taken.
            let writers: Vec<_> =
                (0..4).map(|_| create_writer::<Shape>(&other, "Square", DataWriterQos::default())).collect();
            known(4);
            drop(writers);
            known(0);
        }
        let writers: Vec<_> =
            (0..6).map(|_| create_writer::<Shape>(&other, "Square", DataWriterQos::default())).collect();
        known(4);
        wait_until(&both, "refusal", || watching.diagnostics().counters().expect("open").refused_remote_entities == 2);
        let shown = publications.select().alive().max(8).read().expect("open");
        assert_eq!(shown.len(), 4, "{runtime:?}");
        assert!(
            shown.iter().all(|sample| writers.iter().any(|writer| sample.info.instance_handle == writer.guid().into()))
        );
        assert_eq!(publications.sample_rejected_status().expect("open").total_count, 0);
        assert!(publications.sample_lost_status().expect("open").total_count > 0);
    }
}
