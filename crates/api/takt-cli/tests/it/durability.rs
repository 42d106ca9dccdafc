//! `takt durability`: the service ends by SIGKILL or SIGTERM at random moments while a writer
//! streams.
//!
//! Every sample that was reported as durable comes back from the store, in order and once
//! (DDS 1.4 §2.2.3.4). The writer either ends before the service restarts, or continues writing to
//! the restarted service.

use crate::process::Takt;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};
use takt::qos::*;
use takt::{DataWriter, DdsType, DomainParticipant};
use takt_testkit::Random;
use takt_testkit::directory::Directory;
use takt_testkit::domain::domain;
use takt_testkit::waiting::{join, until};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Rounds of a short run, and of `make test-long`.
const ROUNDS: u32 = 5;
const ROUNDS_LONG: u32 = 100;

/// Maximum number of samples that the service has not stored yet.
const UNSTORED_MAX: u32 = 16;

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Count {
    value: u32,
    bytes: Vec<u8>,
}

fn participant(domain: u32) -> DomainParticipant {
    let builder = DomainParticipant::builder(domain).interfaces(["lo"]).peers(["127.0.0.1"]);
    builder.lease_duration(Duration::from_secs(2)).build().expect("participant")
}

fn service(domain: u32, store: &Path) -> Takt {
    let store = store.display();
    let line = format!(
        "durability --domain {domain} --interface lo --peer 127.0.0.1 --store {store} --settle 0.2 --lease 0.5 --max-samples 262144"
    );
    Takt::start(&line)
}

fn writer(participant: &DomainParticipant) -> DataWriter<Count> {
    let qos = DataWriterQos {
        durability: Durability::Persistent,
        durability_service: DurabilityService { history: History::KeepAll, ..DurabilityService::default() },
        history: History::KeepLast(4000),
        reliability: Reliability::RELIABLE,
        ..DataWriterQos::default()
    };
    let topic = participant.create_topic("Counts", TopicQos::default()).expect("topic");
    participant
        .create_publisher(PublisherQos::default())
        .and_then(|p| p.create_datawriter(&topic, qos))
        .expect("writer")
}

/// Returns the samples that a late joiner receives. It waits until all of `expected` has arrived
/// and shortly for more, or until nothing arrives.
fn late_joiner(domain: u32, expected: &[Range<u32>]) -> Vec<u32> {
    let participant = participant(domain);
    let qos = DataReaderQos {
        durability: Durability::Persistent,
        history: History::KeepAll,
        resource_limits: ResourceLimits { max_samples: Some(1 << 18), ..ResourceLimits::default() },
        reliability: Reliability::RELIABLE,
        ..DataReaderQos::default()
    };
    let topic = participant.create_topic::<Count>("Counts", TopicQos::default()).expect("topic");
    let subscriber = participant.create_subscriber(SubscriberQos::default()).expect("subscriber");
    let reader = subscriber.create_datareader(&topic, qos).expect("reader");
    let mut missing: BTreeSet<u32> = expected.iter().cloned().flatten().collect();
    let mut values = Vec::new();
    let mut deadline = Instant::now() + TIMEOUT;
    let mut is_complete = false;
    while Instant::now() < deadline {
        for sample in reader.take(usize::MAX).expect("open") {
            let value = sample.data.expect("nothing is disposed of").value;
            missing.remove(&value);
            values.push(value);
        }
        if !is_complete && missing.is_empty() {
            is_complete = true;
            deadline = Instant::now() + Duration::from_millis(500);
        }
        std::thread::yield_now();
    }
    values
}

fn rounds() -> u32 {
    if takt_testkit::is_full_length() { ROUNDS_LONG } else { ROUNDS }
}

/// How a service ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// SIGKILL.
    Killed,
    /// SIGTERM, while the writer continues writing.
    Terminated,
}

/// Returns a random pause of less than 256 ms.
fn pause(random: &mut Random) -> Duration {
    Duration::from_millis(random.next() & 0xff)
}

/// Writes values from `first`. When the service has stored some and `lifetime` has passed, ends the
/// service during its work.
///
/// Returns the values that were reported as durable, and the next value. The writer ends after the
/// service, so that only the store can return its samples.
fn round(domain: u32, store: &Path, first: u32, lifetime: Duration, end: End) -> (Range<u32>, u32) {
    let service = service(domain, store);
    let publisher = participant(domain);
    let writer = writer(&publisher);
    let (mut next, mut durable) = (first, first);
    let mut killed_at = None;
    let deadline = Instant::now() + TIMEOUT;
    while killed_at.is_none_or(|at| Instant::now() < at) {
        assert!(Instant::now() < deadline, "the service keeps nothing from {first} on");
        // No sample is replaced before it is stored, and the service always has samples to store.
        if next - durable < UNSTORED_MAX {
            writer.write(&Count { value: next, bytes: vec![next as u8; 40] }).expect("old samples make room");
            next += 1;
        }
        if let Some(upto) = writer.durable_upto().expect("open") {
            // The first sample has the number 1.
            durable = durable.max(first + u32::try_from(upto.0).expect("few samples"));
            if durable > first && killed_at.is_none() {
                killed_at = Some(Instant::now() + lifetime);
            }
        }
        std::thread::yield_now();
    }
    match end {
        // Dropping the process kills it (SIGKILL).
        End::Killed => drop(service),
        End::Terminated => {
            service.terminate();
            let ending = std::thread::spawn(move || service.ending());
            until("the end of the service", || {
                writer.write(&Count { value: next, bytes: vec![next as u8; 40] }).expect("old samples make room");
                next += 1;
                // Samples that the service acknowledges while it ends are durable as well.
                if let Some(upto) = writer.durable_upto().expect("open") {
                    durable = durable.max(first + u32::try_from(upto.0).expect("few samples"));
                }
                std::thread::sleep(Duration::from_micros(500)); // tidy-allow(sleep): the workload is two samples a millisecond
                ending.is_finished()
            });
            let (output, errors, code) = join("the end of the service", ending);
            assert_eq!((output.as_str(), code), ("", Some(143)), "{errors}");
            assert!(errors.contains(" commits, "), "it says what it has: {errors}");
        }
    }
    (first..durable, next)
}

#[test]
fn samples_reported_durable_survive_kill_9_of_the_service_and_the_end_of_their_writer() {
    ends_lose_nothing("kill", End::Killed);
}

#[test]
fn samples_reported_durable_survive_sigterm_of_the_service_under_load_and_the_end_of_their_writer() {
    ends_lose_nothing("term", End::Terminated);
}

fn ends_lose_nothing(name: &str, end: End) {
    let store = Directory::new(name);
    let domain = domain();
    let mut random = Random(u64::from(std::process::id()));
    let (mut next, mut durable) = (0, Vec::new());
    for _ in 0..rounds() {
        let (of_round, then) = round(domain, store.path(), next, pause(&mut random), end);
        durable.push(of_round);
        next = then;
    }
    let _service = service(domain, store.path());
    let values = late_joiner(domain, &durable);
    let count: usize = durable.iter().map(ExactSizeIterator::len).sum();
    eprintln!("{} rounds: {next} written, {count} durable, {} came back", rounds(), values.len());
    let unique: BTreeSet<u32> = values.iter().copied().collect();
    assert_eq!(unique.len(), values.len(), "each comes once");
    for (number, range) in durable.into_iter().enumerate() {
        let lost: Vec<u32> = range.clone().filter(|value| !unique.contains(value)).collect();
        assert!(lost.is_empty(), "round {number}: durable were {range:?}, lost are {lost:?}");
        assert!(values.iter().filter(|value| range.contains(value)).is_sorted(), "round {number}: in order");
    }
}

/// The writer outlives the service. It sends its history to each restarted service, which has these
/// samples in its store already.
#[test]
fn service_restarted_under_load_keeps_and_serves_each_sample_once() {
    let store = Directory::new("again");
    let domain = domain();
    let mut random = Random(u64::from(std::process::id()));
    let publisher = participant(domain);
    let writer = writer(&publisher);
    let (mut next, mut durable) = (0, 0);
    for number in 0..rounds() {
        let service = service(domain, store.path());
        let (begin, mut ends_at) = (durable, None);
        until("a service that keeps what is written", || {
            // No sample is replaced before it is stored.
            if next - durable < UNSTORED_MAX {
                writer.write(&Count { value: next, bytes: vec![next as u8; 40] }).expect("old samples make room");
                next += 1;
            }
            if let Some(upto) = writer.durable_upto().expect("open") {
                durable = durable.max(u32::try_from(upto.0).expect("few samples"));
            }
            if durable > begin && ends_at.is_none() {
                ends_at = Some(Instant::now() + pause(&mut random));
            }
            ends_at.is_some_and(|at| Instant::now() >= at)
        });
        // Every second service is killed, the others are terminated.
        if number % 2 == 0 {
            service.terminate();
            let (_, errors, code) = service.ending();
            assert_eq!(code, Some(143), "{errors}");
        }
    }
    drop((writer, publisher));
    let _service = service(domain, store.path());
    let values = late_joiner(domain, std::slice::from_ref(&(0..durable)));
    assert!(values.iter().copied().eq(0..values.len() as u32), "each once, in order: {values:?}");
    assert!(values.len() >= durable as usize, "{} of {durable}", values.len());
}
