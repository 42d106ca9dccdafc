//! Entity lifecycle: deletion in any state, calls from wrong threads, and invalid calls.

use crate::support::*;
use std::time::Duration;
use takt::qos::*;
use takt::*;

#[test]
fn dropping_the_last_handle_announces_that_the_participant_leaves() {
    for runtime in RUNTIMES {
        let pair = Pair::<Shape>::new(runtime, DataWriterQos::default(), DataReaderQos::default());
        let Pair { publisher, subscriber, writer, reader } = pair;
        let second = writer.clone();
        drop(writer);
        wait_until(&[&publisher, &subscriber], "one pass", || true);
        assert_eq!(second.matched_subscriptions().expect("a handle is left"), [reader.guid()]);
        drop(second);
        wait_until(&[&publisher, &subscriber], "unmatch", || reader.matched_publications().expect("open").is_empty());
        drop(publisher);
        let known = || subscriber.discovered_participants().expect("open").len();
        wait_until(&[&subscriber], "farewell", || known() == 0);
    }
}

#[test]
fn entities_keep_their_participant_open() {
    for runtime in RUNTIMES {
        let domain = domain();
        let subscriber = on_loopback(domain, runtime).build().expect("participant");
        let reader = create_reader::<Shape>(&subscriber, "Topic", reliable_reader(History::KeepAll));
        let publisher = on_loopback(domain, runtime).build().expect("participant");
        let writer = create_writer::<Shape>(&publisher, "Topic", reliable_writer(History::KeepAll));
        wait_until(&[&publisher, &subscriber], "match", || !writer.matched_subscriptions().expect("open").is_empty());
        drop(publisher);
        writer.write(&Shape::new("RED", 1)).expect("the writer keeps its participant");
        let mut samples = Vec::new();
        wait_until(&[&subscriber], "sample", || {
            samples.extend(reader.take(1).expect("open"));
            !samples.is_empty()
        });
        assert_eq!(samples[0].data, Some(Shape::new("RED", 1)), "{runtime:?}");
    }
}

#[test]
fn calls_on_a_closed_participant_return_already_deleted() {
    for runtime in RUNTIMES {
        let pair = Pair::<Shape>::new(runtime, DataWriterQos::default(), DataReaderQos::default());
        let condition = pair.reader.read_condition(Selector::READ);
        pair.subscriber.close().expect("open");
        assert!(matches!(pair.subscriber.close(), Err(Error::AlreadyDeleted)));
        assert!(matches!(pair.reader.take(1), Err(Error::AlreadyDeleted)));
        assert!(matches!(pair.reader.close(), Err(Error::AlreadyDeleted)));
        assert!(!condition.trigger_value().expect("no error"), "{runtime:?}");
        let known = || pair.publisher.discovered_participants().expect("open").len();
        wait_until(&[&pair.publisher], "farewell", || known() == 0);
        assert_eq!(pair.writer.matched_subscriptions().expect("open"), []);
    }
}

#[test]
fn entity_is_closed_once_for_all_its_handles() {
    for runtime in RUNTIMES {
        let pair = Pair::<Shape>::new(runtime, DataWriterQos::default(), DataReaderQos::default());
        let second = pair.writer.clone();
        pair.writer.close().expect("open");
        assert!(matches!(second.write(&Shape::default()), Err(Error::AlreadyDeleted)), "{runtime:?}");
        assert!(matches!(second.close(), Err(Error::AlreadyDeleted)));
        pair.wait_until("unmatch", || pair.reader.matched_publications().expect("open").is_empty());
    }
}

#[test]
fn silent_participant_is_lost_when_its_lease_expires() {
    for runtime in RUNTIMES {
        let domain = domain();
        let watching = on_loopback(domain, runtime).build().expect("participant");
        let lease = Duration::from_millis(300);
        let silent = on_loopback(domain, Runtime::Inline).lease_duration(lease).build().expect("participant");
        let reader = create_reader::<Shape>(&watching, "Topic", reliable_reader(History::KeepAll));
        let writer = create_writer::<Shape>(&silent, "Topic", reliable_writer(History::KeepAll));
        wait_until(&[&watching, &silent], "match", || {
            !reader.matched_publications().expect("open").is_empty()
                && !writer.matched_subscriptions().expect("open").is_empty()
        });
        writer.write(&Shape::new("RED", 1)).expect("room");
        // If the test is preempted for longer than the lease, the participant may have been lost
        // before, too.
        let before = watching.diagnostics().counters().expect("open").leases_expired;
        wait_until(&[&watching], "loss", || reader.matched_publications().expect("open").is_empty());
        assert_eq!(watching.diagnostics().counters().expect("open").leases_expired, before + 1, "{runtime:?}");
        let samples = reader.take(usize::MAX).expect("open");
        let last = samples.last().expect("a state change of the instance");
        assert_eq!(last.info.instance_state, InstanceState::NotAliveNoWriters);
    }
}

#[test]
fn inline_participant_rejects_calls_from_other_threads() {
    let pair = Pair::<Shape>::new(Runtime::Inline, DataWriterQos::default(), DataReaderQos::default());
    std::thread::scope(|scope| {
        let other_thread = scope.spawn(|| (pair.writer.write(&Shape::default()), pair.reader.take(1).map(drop)));
        let (written, taken) = other_thread.join().expect("no panic");
        assert!(matches!(written, Err(Error::IllegalOperation { .. })), "{written:?}");
        assert!(matches!(taken, Err(Error::IllegalOperation { .. })), "{taken:?}");
    });
    pair.writer.write(&Shape::new("RED", 1)).expect("still works here");
    pair.take(1);
}

#[test]
fn inline_participant_dropped_on_another_thread_announces_that_it_leaves() {
    let pair = Pair::<Shape>::new(Runtime::Inline, DataWriterQos::default(), DataReaderQos::default());
    let Pair { publisher, subscriber, writer, reader } = pair;
    std::thread::spawn(move || drop((publisher, writer))).join().expect("no panic");
    wait_until(&[&subscriber], "farewell", || subscriber.discovered_participants().expect("open").is_empty());
    assert_eq!(reader.matched_publications().expect("open"), []);
}

#[test]
fn spin_once_fails_on_a_shared_participant() {
    let participant = on_loopback(domain(), Runtime::Shared).build().expect("participant");
    let result = participant.spin_once(Duration::ZERO);
    assert!(matches!(result, Err(Error::IllegalOperation { .. })), "{result:?}");
}

#[test]
fn closure_inside_a_call_cannot_call_the_participant() {
    for runtime in RUNTIMES {
        let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        let mut result = None;
        pair.wait_until("a payload", || {
            let visited = pair.reader.take_payloads(1, |_, _| result = Some(pair.reader.take(1)));
            visited.expect("open") == 1
        });
        assert!(matches!(result, Some(Err(Error::IllegalOperation { .. }))), "{runtime:?}: {result:?}");
        pair.writer.write(&Shape::new("RED", 2)).expect("room");
        assert_eq!(pair.take(1)[0].data, Some(Shape::new("RED", 2)));
    }
}

#[test]
fn topic_name_cannot_have_two_types() {
    let participant = on_loopback(domain(), Runtime::Shared).build().expect("participant");
    let shapes = participant.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
    let result = participant.create_topic::<Blob>("Topic", TopicQos::default());
    assert!(matches!(result, Err(Error::PreconditionNotMet { .. })), "{result:?}");
    let again = participant.create_topic::<Shape>("Topic", TopicQos::default()).expect("same type");
    drop((shapes, again));
    participant.create_topic::<Blob>("Topic", TopicQos::default()).expect("the name is free again");
}

#[test]
fn contradictory_policies_are_rejected() {
    let participant = on_loopback(domain(), Runtime::Shared).build().expect("participant");
    let topic = participant.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
    let publisher = participant.create_publisher(PublisherQos::default()).expect("publisher");
    let qos = DataWriterQos {
        history: History::KeepLast(10),
        resource_limits: ResourceLimits { max_samples: Some(5), ..ResourceLimits::default() },
        ..DataWriterQos::default()
    };
    let result = publisher.create_datawriter(&topic, qos);
    assert!(matches!(result, Err(Error::InconsistentPolicy { .. })), "{result:?}");
}

#[test]
fn topic_of_another_participant_is_rejected() {
    let (one, other) = (
        on_loopback(domain(), Runtime::Shared).build().expect("participant"),
        on_loopback(domain(), Runtime::Shared).build().expect("participant"),
    );
    let topic = one.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
    let publisher = other.create_publisher(PublisherQos::default()).expect("publisher");
    let result = publisher.create_datawriter(&topic, DataWriterQos::default());
    assert!(matches!(result, Err(Error::BadParameter { .. })), "{result:?}");
}

#[test]
fn unknown_interface_error_names_the_interface() {
    let result = DomainParticipant::builder(domain()).interfaces(["no-such-nic"]).build();
    let error = result.expect_err("no such interface").to_string();
    assert!(error.contains("no-such-nic"), "{error}");
}
