//! Tests that a problem of one topic or sample affects no other topic and does not end the service.

use crate::support::*;
use std::time::Instant;
use takt::qos::*;
use takt::{DataWriter, DdsType, DomainParticipant};
use takt_durability::{Options, Service};

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Page {
    bytes: Vec<u8>,
}

fn pages(participant: &DomainParticipant) -> DataWriter<Page> {
    let topic = participant.create_topic("Pages", TopicQos::default()).expect("topic");
    let publisher = participant.create_publisher(PublisherQos::default()).expect("publisher");
    publisher.create_datawriter(&topic, writer_qos(Durability::Persistent, keep_all())).expect("writer")
}

/// Runs the service until the condition holds, and returns its notes.
fn step_until(service: &mut Service, what: &str, mut condition: impl FnMut(&Service) -> bool) -> Vec<String> {
    let (deadline, mut notes) = (Instant::now() + TIMEOUT, Vec::new());
    while !condition(service) {
        assert!(Instant::now() < deadline, "{what}: {:?} {notes:?}", service.totals());
        service.step().expect("one topic ends no service");
        notes.extend(service.take_notes());
    }
    notes
}

fn notes_containing<'a>(notes: &'a [String], what: &str) -> Vec<&'a String> {
    notes.iter().filter(|note| note.contains(what)).collect()
}

#[test]
fn stored_sample_beyond_the_memory_limit_is_reported_once_and_others_are_served() {
    let (domain, directory) = (domain(), Directory::new("durability"));
    let publisher = participant(domain);
    let (pages, numbers) = (pages(&publisher), writer(&publisher, writer_qos(Durability::Persistent, keep_all())));
    let service = Running::start(options(domain, Some(&directory)));
    for len in [10, 20_000, 30_000, 10] {
        pages.write(&Page { bytes: vec![7; len] }).expect("room");
    }
    write(&numbers, 0..20);
    pages.wait_for_durability(TIMEOUT).expect("a service keeps it");
    await_durability(&numbers);
    assert_eq!(service.stop().samples, 24);
    drop((pages, numbers, publisher));
    // The serving writer has twice as much memory.
    let small = Options { memory_bytes_max: 8 << 10, ..options(domain, Some(&directory)) };
    let mut service = Service::new(small).expect("a service");
    let notes = step_until(&mut service, "both topics", |service| service.totals().served == 2);
    let refusals = notes_containing(&notes, "not served");
    assert_eq!(refusals.len(), 1, "{notes:?}");
    assert!(refusals[0].starts_with("Pages: ") && refusals[0].contains("is limited to 16384"), "{notes:?}");
    let totals = service.totals();
    assert_eq!((totals.samples, totals.unserved), (24, 2), "{totals:?}");
    let subscriber = participant(domain);
    let reader = reader(&subscriber, Durability::Persistent);
    let mut got = Vec::new();
    step_until(&mut service, "the other topic", |_| {
        got.extend(values(&reader.take(usize::MAX).expect("open")));
        got.len() == 20
    });
    assert!(got.into_iter().eq(0..20));
    drop(service);
    let mut service = Service::new(options(domain, Some(&directory))).expect("a service");
    step_until(&mut service, "both topics", |service| service.totals().served == 2);
    assert_eq!(service.totals().unserved, 0, "with more memory all is served");
}

#[test]
fn restart_with_fewer_instances_serves_as_many_as_the_limit() {
    let (domain, directory) = (domain(), Directory::new("durability"));
    let publisher = participant(domain);
    let numbers = writer(&publisher, writer_qos(Durability::Persistent, keep_all()));
    let service = Running::start(options(domain, Some(&directory)));
    write(&numbers, 0..7);
    await_durability(&numbers);
    service.stop();
    drop((numbers, publisher));
    let few = Options { samples_max: 3, ..options(domain, Some(&directory)) };
    let mut service = Service::new(few).expect("a service");
    let notes = step_until(&mut service, "the topic", |service| service.totals().served == 1);
    assert_eq!((service.totals().samples, service.totals().unserved), (7, 4));
    assert!(notes_containing(&notes, "Numbers: stored but not served").len() == 1, "{notes:?}");
}

#[test]
fn topic_without_serving_writer_is_reported_once_and_the_service_continues() {
    let domain = domain();
    let publisher = participant(domain);
    let _writer = writer(&publisher, writer_qos(Durability::Transient, keep_all()));
    // A writer without room for a sample is refused.
    let mut service = Service::new(Options { samples_max: 0, ..options(domain, None) }).expect("a service");
    let mut steps_after = 0;
    let mut notes = Vec::new();
    let deadline = Instant::now() + TIMEOUT;
    while steps_after < 10 {
        assert!(Instant::now() < deadline, "it is never reported: {notes:?}");
        service.step().expect("one topic ends no service");
        notes.extend(service.take_notes());
        steps_after += usize::from(!notes_containing(&notes, "not served").is_empty());
    }
    let refusals = notes_containing(&notes, "not served");
    assert_eq!(refusals.len(), 1, "{notes:?}");
    assert!(refusals[0].starts_with("Numbers: ") && refusals[0].contains("RESOURCE_LIMITS"), "{notes:?}");
    assert_eq!((service.totals().topics, service.totals().served), (1, 0));
}

#[test]
fn history_of_a_writer_with_a_contract_is_served_completely_without_delay() {
    let domain = domain();
    let mut qos = writer_qos(Durability::Transient, keep_all());
    let separation = Some(takt::Duration::from_millis(20));
    Contract { minimum_separation: separation, max_sample_bytes: Some(100), ..Contract::default() }
        .put_into_writer(&mut qos);
    qos.user_data.0.extend_from_slice(b"typehash=RIHS01_00");
    let publisher = participant(domain);
    let numbers = writer(&publisher, qos);
    write(&numbers, 0..20);
    let mut service = Service::new(options(domain, None)).expect("a service");
    step_until(&mut service, "the history", |service| service.totals().served == 1);
    assert_eq!((service.totals().samples, service.totals().unserved), (20, 0));
    let find = || {
        let publications = publisher.discovered_publications().expect("open");
        publications.into_iter().find(|data| data.topic_name == "Numbers")
    };
    step_until(&mut service, "the service's writer", |_| find().is_some());
    let serving = find().expect("it is known");
    assert_eq!(Contract::of(&serving.qos.user_data, &serving.qos.property), Contract::default());
    assert!(serving.qos.user_data.0.ends_with(b"typehash=RIHS01_00"), "{:?}", serving.qos.user_data);
    drop((numbers, publisher));
    let subscriber = participant(domain);
    let reader = reader(&subscriber, Durability::Transient);
    let mut got = Vec::new();
    step_until(&mut service, "the history", |_| {
        got.extend(values(&reader.take(usize::MAX).expect("open")));
        got.len() == 20
    });
    assert!(got.into_iter().eq(0..20));
}

#[test]
fn sample_that_cannot_be_stored_is_never_acknowledged_and_blocks_only_its_writer() {
    let (domain, directory) = (domain(), Directory::new("durability"));
    let publisher = participant(domain);
    let (first, second) = (pages(&publisher), pages(&publisher));
    let small = Options { memory_bytes_max: 8 << 10, ..options(domain, Some(&directory)) };
    let mut service = Service::new(small).expect("a service");
    step_until(&mut service, "the match", |_| {
        [&first, &second].iter().all(|writer| writer.durability_services().expect("open").len() == 1)
    });
    for len in [10, 40_000, 10] {
        first.write(&Page { bytes: vec![7; len] }).expect("room");
        second.write(&Page { bytes: vec![7; 10] }).expect("room");
    }
    let notes = step_until(&mut service, "all that can be kept", |service| {
        let safe = second.durable_upto().expect("open").is_some_and(|sn| sn.0 == 3);
        safe && service.totals().samples == 5 && service.totals().blocked_writers == 1
    });
    let remarks = notes_containing(&notes, "cannot be stored");
    assert!(remarks.len() == 1 && remarks[0].starts_with("Pages: change 2 of "), "{notes:?}");
    let quiet = Instant::now() + std::time::Duration::from_millis(500);
    let notes = step_until(&mut service, "a quiet moment", |_| Instant::now() > quiet);
    assert_eq!(notes_containing(&notes, "cannot be stored").len(), 0, "{notes:?}");
    assert_eq!(first.durable_upto().expect("open").map(|sn| sn.0), Some(1));
}
