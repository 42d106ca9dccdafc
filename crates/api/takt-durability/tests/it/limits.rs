//! Tests of limits: excess samples and topics are refused, reported and counted.

use crate::support::*;
use std::time::{Duration, Instant};
use takt::qos::*;
use takt_durability::{Options, Service};
use takt_testkit::waiting::until_ok;

#[test]
fn samples_without_room_are_not_acknowledged_and_stored_ones_stay() {
    let (domain, directory) = (domain(), Directory::new("durability"));
    // A Number has 8 octets, 12 with its encapsulation header.
    let options = Options { disk_bytes_max: 12 * 50, ..options(domain, Some(&directory)) };
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Persistent, keep_all()));
    let mut service = Service::new(options.clone()).expect("a service");
    let mut notes = Vec::new();
    let mut written = 0;
    let deadline = Instant::now() + TIMEOUT;
    while service.totals().full == 0 {
        assert!(Instant::now() < deadline, "it never was full");
        service.step().expect("the store takes what fits");
        notes.extend(service.take_notes());
        if service.totals().topics == 1 && written < 100 {
            write(&writer, written..written + 1);
            written += 1;
        }
    }
    let quiet = Instant::now() + Duration::from_millis(500);
    while Instant::now() < quiet {
        service.step().expect("nothing more is received");
    }
    notes.extend(service.take_notes());
    assert_eq!(service.totals().samples, 50);
    let full = notes.iter().filter(|note| note.contains("full (disk)")).count();
    assert_eq!(full, 1, "reported once: {notes:?}");
    let upto = writer.durable_upto().expect("open").expect("the service is there");
    assert!(upto.0 <= 50, "{upto:?}");
}

#[test]
fn excluded_and_excess_topics_are_ignored() {
    let domain = domain();
    let publisher = participant(domain);
    let _writer = writer(&publisher, writer_qos(Durability::Transient, keep_all()));
    for (options, is_stored) in [
        (Options { topics: vec!["Letters".to_owned()], ..options(domain, None) }, false),
        (Options { topics_max: 0, ..options(domain, None) }, false),
        (Options { topics: vec!["Num*".to_owned()], ..options(domain, None) }, true),
    ] {
        let has_limit = options.topics_max == 0;
        let mut service = Service::new(options).expect("a service");
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until {
            service.step().expect("nothing is stored");
        }
        assert_eq!(service.totals().topics == 1, is_stored);
        assert_eq!(service.take_notes().iter().any(|note| note.contains("refused, topic limit 0")), has_limit);
    }
}

#[test]
fn persistent_topics_are_ignored_without_a_store() {
    let domain = domain();
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Persistent, keep_all()));
    let mut service = Service::new(options(domain, None)).expect("a service");
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        service.step().expect("nothing is stored");
    }
    assert_eq!(service.totals().topics, 0);
    assert_eq!(writer.durable_upto().expect("open"), None, "no peer tells it so");
}

/// Returns a writer of another topic.
fn writer_of(participant: &takt::DomainParticipant, topic: &str, durability: Durability) -> takt::DataWriter<Number> {
    let topic = participant.create_topic(topic, TopicQos::default()).expect("topic");
    let publisher = participant.create_publisher(PublisherQos::default()).expect("publisher");
    publisher.create_datawriter(&topic, writer_qos(durability, keep_all())).expect("writer")
}

#[test]
fn topic_without_writers_and_samples_ends_and_another_can_begin() {
    for durability in [Durability::Transient, Durability::Persistent] {
        let (domain, directory) = (domain(), Directory::new("durability"));
        let options = Options { topics_max: 1, ..options(domain, Some(&directory)) };
        let mut service = Service::new(options.clone()).expect("a service");
        let mut notes = Vec::new();
        let mut step_until = |service: &mut Service, what: &str, is_so: &dyn Fn(&Service, &[String]) -> bool| {
            let deadline = Instant::now() + TIMEOUT;
            while !is_so(service, &notes) {
                assert!(Instant::now() < deadline, "{what}: {:?} {notes:?}", service.totals());
                service.step().expect("the store takes what fits");
                notes.extend(service.take_notes());
            }
        };
        let publisher = participant(domain);
        let first = writer_of(&publisher, "First", durability);
        step_until(&mut service, "first", &|service, _| service.totals().topics == 1);
        let second = writer_of(&publisher, "Second", durability);
        step_until(&mut service, "refused", &|service, _| service.totals().refused_topics == 1);
        drop(second);
        step_until(&mut service, "an unannounced topic is not refused", &|service, _| {
            service.totals().refused_topics == 0
        });
        let _second = writer_of(&publisher, "Second", durability);
        step_until(&mut service, "refused", &|service, _| service.totals().refused_topics == 1);
        drop(first);
        step_until(&mut service, "room", &|_, notes| notes.iter().any(|note| note.starts_with("Second: discovered")));
        drop(service);
        let service = Service::new(options).expect("a service");
        assert_eq!(
            service.totals().topics,
            usize::from(durability == Durability::Persistent),
            "the first is not on disk"
        );
    }
}

#[test]
fn two_services_without_samples_end_a_topic() {
    let domain = domain();
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Transient, keep_all()));
    let services = [Running::start(options(domain, None)), Running::start(options(domain, None))];
    until("both", || writer.durability_services().expect("open").len() == 2);
    until("both serve", || {
        publisher.discovered_publications().expect("open").iter().filter(|data| data.topic_name == "Numbers").count()
            == 2
    });
    drop(writer);
    let is_there = |data: &takt::SubscriptionData| data.topic_name == "Numbers";
    until("an end", || !publisher.discovered_subscriptions().expect("open").iter().any(is_there));
    for service in services {
        assert_eq!(service.stop().topics, 0);
    }
}

#[test]
fn forged_sample_of_a_writer_does_not_block_it() {
    use takt::relay::*;
    let (domain, directory) = (domain(), Directory::new("durability"));
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Persistent, keep_all()));
    let origin = SampleIdentity { writer: writer.guid(), sn: takt::SequenceNumber(1 << 40) };
    let forger = participant(domain);
    let topic = RelayTopic {
        name: "Numbers".to_owned(),
        type_name: <Number as takt::TypeSupport>::TYPE_NAME.to_owned(),
        has_key: true,
        ..RelayTopic::default()
    };
    let forging = forger
        .create_relay_writer(&topic, &writer_qos(Durability::Persistent, keep_all()), &PublisherQos::default())
        .expect("a writer that claims to belong to a service");
    let payload = [0, 1, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0];
    let change = RelayedChange {
        kind: ChangeKind::Alive,
        instance: takt::InstanceHandle([9; 16]),
        origin,
        source_timestamp: takt::Timestamp::from_nanos(1_000_000_000),
        payload: &payload,
    };
    assert!(forging.write(&change).expect("open"));
    forging.enable().expect("open");
    let service = Running::start(options(domain, Some(&directory)));
    until("the forger's match", || !forging.as_any().matched_subscriptions().expect("open").is_empty());
    write(&writer, 0..50);
    await_durability(&writer);
    let totals = service.stop();
    assert_eq!((totals.samples, totals.unconfirmed), (50, 1), "{totals:?}");
    // The same holds after a restart.
    let service = Running::start(options(domain, Some(&directory)));
    write(&writer, 50..60);
    await_durability(&writer);
    assert_eq!(service.stop().samples, 60);
}

#[test]
fn idle_service_commits_and_notes_nothing() {
    let (domain, directory) = (domain(), Directory::new("durability"));
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Persistent, keep_all()));
    write(&writer, 0..20);
    let mut service = Service::new(options(domain, Some(&directory))).expect("a service");
    until("a service that serves", || {
        service.step().expect("the store takes what fits");
        service.totals().served == 1 && writer.durable_upto().expect("open").is_some_and(|sn| sn.0 == 20)
    });
    assert!(service.totals().commits >= 1, "{:?}", service.totals());
    let (totals, notes) = (service.totals(), service.take_notes());
    assert!(notes.iter().any(|note| note.contains("served, 20 changes")), "{notes:?}");
    // The service looks for new writers every 100 ms.
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        service.step().expect("nothing is stored");
    }
    assert_eq!((service.totals(), service.take_notes()), (totals, Vec::new()));
}

#[test]
fn changes_without_room_at_the_serving_writer_are_counted_and_others_served() {
    let domain = domain();
    let options = Options { memory_bytes_max: 8 * 1024, ..options(domain, None) };
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Transient, keep_all()));
    let service = Running::start(options);
    // A Number has 8 octets, 12 with its encapsulation header.
    write(&writer, 0..600);
    await_durability(&writer);
    drop((writer, publisher));
    let subscriber = participant(domain);
    let reader = reader(&subscriber, Durability::Transient);
    let samples = take(&reader, 100);
    let totals = service.stop();
    assert_eq!(totals.samples, 600, "{totals:?}");
    assert!(totals.unserved > 0, "{totals:?}");
    assert_eq!(samples.len() as u64, 600 - totals.unserved, "{totals:?}");
}

#[test]
fn changes_without_room_are_served_once_and_in_order_when_there_is_room() {
    let domain = domain();
    let options = Options { memory_bytes_max: 8 * 1024, ..options(domain, None) };
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Transient, keep_all()));
    let mut service = Service::new(options).expect("a service");
    // A Number has 8 octets, 12 with its encapsulation header.
    write(&writer, 0..600);
    until("a full writer", || {
        service.step().expect("nothing is stored");
        service.totals().samples == 600 && service.totals().unserved > 0
    });
    // The remaining samples fit into the serving writer.
    for key in 0..6 {
        let disposed = Number { key, value: 0 };
        writer.dispose(&disposed).expect("room");
        writer.unregister_instance(&disposed).expect("room");
    }
    until("all that was written", || {
        service.step().expect("nothing is stored");
        writer.wait_for_durability(takt::Duration::ZERO).is_ok()
    });
    drop((writer, publisher));
    let expected: Vec<u32> = (0..600).filter(|value| value % 7 == 6).collect();
    until_ok("room", || {
        service.step().expect("nothing is stored");
        let totals = service.totals();
        let is_all_served = (totals.samples, totals.unserved) == (expected.len(), 0);
        is_all_served.then_some(()).ok_or(totals)
    });
    let subscriber = participant(domain);
    let reader = reader(&subscriber, Durability::Transient);
    assert_eq!(values(&take(&reader, expected.len())), expected);
}

#[test]
fn restored_topic_without_writers_and_samples_is_not_served() {
    let (domain, directory) = (domain(), Directory::new("durability"));
    let publisher = participant(domain);
    let writer = writer(&publisher, writer_qos(Durability::Persistent, keep_all()));
    let mut service = Service::new(options(domain, Some(&directory))).expect("a service");
    until("the topic on disk", || {
        service.step().expect("the store takes what fits");
        service.totals().commits > 0
    });
    drop((service, writer, publisher));
    let mut service = Service::new(options(domain, Some(&directory))).expect("a service");
    assert_eq!(service.totals().topics, 1);
    let mut served = 0;
    until("the end of the topic", || {
        service.step().expect("the store takes what fits");
        served = served.max(service.totals().served);
        service.totals().topics == 0
    });
    assert_eq!(served, 0);
}
