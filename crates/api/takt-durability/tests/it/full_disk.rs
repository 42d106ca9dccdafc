//! Tests with a full disk: no committed sample is lost, stored samples are served, and the service
//! continues when there is space.
//!
//! The disk is a tmpfs of 4 MiB in a mount namespace, which requires root.

use crate::support::*;
use std::process::Command;
use std::time::{Duration, Instant};
use takt::qos::*;
use takt::{DataReader, DataWriter, DdsType, DomainParticipant};
use takt_durability::{Options, Service};
use takt_testkit::{not_run, require};

/// Environment variable that marks the process inside the mount namespace.
const INSIDE: &str = "TAKT_TEST_FULL_DISK";

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Page {
    number: u32,
    bytes: Vec<u8>,
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().expect("it can be run");
    assert!(status.success(), "{program} {arguments:?}");
}

fn pages(participant: &DomainParticipant) -> DataWriter<Page> {
    let topic = participant.create_topic("Pages", TopicQos::default()).expect("topic");
    let publisher = participant.create_publisher(PublisherQos::default()).expect("publisher");
    publisher.create_datawriter(&topic, writer_qos(Durability::Persistent, keep_all())).expect("writer")
}

fn reader_of_pages(participant: &DomainParticipant) -> DataReader<Page> {
    let topic = participant.create_topic("Pages", TopicQos::default()).expect("topic");
    let qos = DataReaderQos {
        durability: Durability::Persistent,
        history: History::KeepAll,
        reliability: Reliability::RELIABLE,
        ..DataReaderQos::default()
    };
    let subscriber = participant.create_subscriber(SubscriberQos::default()).expect("subscriber");
    subscriber.create_datareader(&topic, qos).expect("reader")
}

/// Runs the service until the condition holds.
fn step_until(service: &mut Service, notes: &mut Vec<String>, what: &str, mut is_so: impl FnMut(&[String]) -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_so(notes) {
        assert!(Instant::now() < deadline, "{what}: {notes:?}");
        service.step().expect("a full disk is no failure");
        notes.extend(service.take_notes());
    }
}

#[test]
fn full_disk_makes_persistent_topics_full_until_there_is_space_again() {
    in_a_mount_namespace(
        "full_disk::full_disk_makes_persistent_topics_full_until_there_is_space_again",
        fill_and_recover,
    );
}

#[test]
fn topic_discovered_while_the_disk_is_full_ends_and_the_service_continues() {
    in_a_mount_namespace(
        "full_disk::topic_discovered_while_the_disk_is_full_ends_and_the_service_continues",
        receive_and_end,
    );
}

/// Runs a test in a separate process with its own mount namespace.
fn in_a_mount_namespace(name: &str, test: fn()) {
    if std::env::var_os(INSIDE).is_some() {
        return test();
    }
    if let Err(reason) = require::mount_namespaces() {
        return not_run(reason);
    }
    let program = std::env::current_exe().expect("this program");
    let mut inside = Command::new("unshare");
    inside.arg("--mount").arg(program).args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
    let ended = inside.output().expect("it can be run");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()));
}

/// Creates and removes a writer of a stored topic without changes while the disk is full.
fn receive_and_end() {
    let (domain, directory) = (domain(), Directory::new("durability"));
    run("mount", &["-t", "tmpfs", "-o", "size=4m", "none", &directory.path().display().to_string()]);
    // A topic without writers and samples ends after the lease.
    let options = Options { lease_duration: Duration::from_secs(10), ..options(domain, Some(&directory)) };
    let numbers = |participant: &DomainParticipant| {
        crate::support::writer(participant, writer_qos(Durability::Persistent, keep_all()))
    };
    let (publisher, mut notes) = (participant(domain), Vec::new());
    let writer = numbers(&publisher);
    let mut service = Service::new(options.clone()).expect("a service");
    let has_reader = |topic: &'static str| {
        move |notes: &[String]| notes.iter().any(|note| note.starts_with(&format!("{topic}: discovered")))
    };
    step_until(&mut service, &mut notes, "the topic", has_reader("Numbers"));
    service.step().expect("there is space");
    drop((service, writer));
    notes.clear();
    let mut service = Service::new(options).expect("a service");
    assert_eq!(service.totals().topics, 1, "it is in the store");
    let pages = pages(&publisher);
    step_until(&mut service, &mut notes, "full", |notes| {
        let is_full = notes.iter().any(|note| note.contains("no space left on the disk"));
        if !is_full && pages.durability_services().is_ok_and(|services| !services.is_empty()) {
            pages.write(&Page { number: 0, bytes: vec![7; 2_000] }).expect("room");
        }
        is_full
    });
    assert!(!notes.iter().any(|note| note.starts_with("Numbers: no longer served")), "{notes:?}");
    let writer = numbers(&publisher);
    step_until(&mut service, &mut notes, "the topic", has_reader("Numbers"));
    drop(writer);
    let has_ended = |notes: &[String]| notes.iter().any(|note| note.starts_with("Numbers: no longer served"));
    step_until(&mut service, &mut notes, "its end", has_ended);
    let quiet = Instant::now() + Duration::from_millis(300);
    step_until(&mut service, &mut notes, "the service goes on", |_| Instant::now() > quiet);
}

fn fill_and_recover() {
    let (domain, directory) = (domain(), Directory::new("durability"));
    run("mount", &["-t", "tmpfs", "-o", "size=4m", "none", &directory.path().display().to_string()]);
    let publisher = participant(domain);
    let (writer, transient) =
        (pages(&publisher), crate::support::writer(&publisher, writer_qos(Durability::Transient, keep_all())));
    let mut service = Service::new(options(domain, Some(&directory))).expect("a service");
    let mut notes = Vec::new();
    let mut number = 0;
    let mut write_pages = |count: u32| {
        for _ in 0..count {
            writer.write(&Page { number, bytes: vec![number as u8; 2_000] }).expect("room");
            number += 1;
        }
        number
    };
    write_pages(1);
    step_until(&mut service, &mut notes, "the first", |_| {
        writer.durable_upto().expect("open").is_some_and(|sn| sn.0 == 1)
    });
    step_until(&mut service, &mut notes, "full", |notes| {
        if notes.iter().all(|note| !note.contains("no space left on the disk"))
            && !writer_is_ahead(&writer, write_pages(0))
        {
            write_pages(10);
        }
        notes.iter().any(|note| note.contains("no space left on the disk"))
    });
    let safe = writer.durable_upto().expect("open").expect("the service is there").0 as u32;
    assert!(safe >= 1 && safe < write_pages(0), "{safe}");
    // TRANSIENT topics continue, and committed samples are served.
    write(&transient, 0..20);
    let subscriber = participant(domain);
    let reader = reader_of_pages(&subscriber);
    let mut got = Vec::new();
    step_until(&mut service, &mut notes, "serving", |_| {
        let samples = reader.take(usize::MAX).expect("open");
        got.extend(samples.into_iter().filter_map(|sample| sample.data).map(|page| page.number));
        got.len() >= safe as usize && transient.durable_upto().expect("open").is_some_and(|sn| sn.0 == 20)
    });
    assert!(got.iter().copied().take(safe as usize).eq(0..safe), "{got:?}");
    let quiet = Instant::now() + Duration::from_millis(1_500);
    step_until(&mut service, &mut notes, "another attempt", |_| Instant::now() > quiet);
    assert_eq!(
        notes.iter().filter(|note| note.contains("no space left on the disk")).count(),
        1,
        "reported once: {notes:?}"
    );
    assert_eq!(
        writer.durable_upto().expect("open").map(|sn| sn.0 as u32),
        Some(safe),
        "only stored changes are reported as durable"
    );

    // A service that starts on the full disk has the committed samples.
    drop(service);
    let mut service = Service::new(options(domain, Some(&directory))).expect("what is kept can be read");
    assert!(service.totals().samples >= safe as usize, "{:?}", service.totals());
    run("mount", &["-o", "remount,size=64m", &directory.path().display().to_string()]);
    let written = write_pages(5);
    step_until(&mut service, &mut notes, "space", |_| {
        writer.durable_upto().expect("open").is_some_and(|sn| sn.0 as u32 == written)
    });
    drop(service);
    drop((writer, transient, publisher));
    let service = Service::new(options(domain, Some(&directory))).expect("a service");
    assert_eq!(service.totals().samples, written as usize, "each once");
}

/// Reports whether the writer already waits for the service.
fn writer_is_ahead(writer: &DataWriter<Page>, written: u32) -> bool {
    writer.durable_upto().expect("open").is_none_or(|sn| (sn.0 as u32) + 100 < written)
}
