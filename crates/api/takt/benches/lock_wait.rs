//! Benchmark of lock contention under `Runtime::Shared`: how long an urgent job waits for the lock
//! of its participant while other threads call `write` and `take`.
//!
//! `cargo bench -p takt --bench lock_wait -- 10` measures each row for 10 s. The executor runs with
//! SCHED_FIFO on the last processor if the user may set this (root); the calling threads have
//! default scheduling. One urgent sample arrives each millisecond by shared memory.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use takt::qos::*;
use takt::real_time::{Histogram, JobClass, JobKind, Scheduling, ThreadSettings};
use takt::{DataReader, DataReaderListener, DataWriter, DdsType, DomainParticipant, Executor, PRIORITY_PROPERTY};

const DOMAIN: u32 = 117;
const URGENT: i32 = 46;
const PERIOD: Duration = Duration::from_millis(1);

#[derive(DdsType, Clone, Debug, Default)]
struct Blob {
    bytes: Vec<u8>,
}

struct Counting;

impl DataReaderListener<Blob> for Counting {
    fn on_data_available(&mut self, reader: &DataReader<Blob>) {
        reader.take(usize::MAX).unwrap();
    }
}

fn participant() -> takt::DomainParticipantBuilder {
    DomainParticipant::builder(DOMAIN).interfaces(["lo"]).multicast(false).peers(["127.0.0.1"])
}

fn writer(from: &DomainParticipant, topic: &str) -> DataWriter<Blob> {
    let topic = from.create_topic::<Blob>(topic, TopicQos::default()).unwrap();
    let qos = DataWriterQos { reliability: Reliability::BEST_EFFORT, ..DataWriterQos::default() };
    from.create_publisher(PublisherQos::default()).unwrap().create_datawriter(&topic, qos).unwrap()
}

fn reader(of: &DomainParticipant, topic: &str, priority: i32) -> DataReader<Blob> {
    let topic = of.create_topic::<Blob>(topic, TopicQos::default()).unwrap();
    let property = Property::from_iter([PropertyEntry::local(PRIORITY_PROPERTY, priority.to_string())]);
    let qos = DataReaderQos { property, ..DataReaderQos::default() };
    of.create_subscriber(SubscriberQos::default()).unwrap().create_datareader(&topic, qos).unwrap()
}

/// Starts an executor with real-time priority if permitted, else with default scheduling.
fn executor() -> Executor {
    let cpu = thread::available_parallelism().unwrap().get() - 1;
    let settings =
        ThreadSettings { scheduling: Some(Scheduling::Fifo(80)), cpus: vec![cpu], ..ThreadSettings::default() };
    Executor::builder("lock-wait").thread_settings(settings).start().unwrap_or_else(|error| {
        println!("without real-time priority: {error}");
        Executor::builder("lock-wait").start().unwrap()
    })
}

/// Merges the urgent job classes of these kinds.
fn urgent(classes: &[JobClass], kinds: &[JobKind]) -> Histogram {
    let mut all = Histogram::new();
    let meant = |class: &&JobClass| class.priority.get() == URGENT && kinds.contains(&class.kind);
    classes.iter().filter(meant).for_each(|class| all.merge(&class.durations));
    all
}

fn microseconds(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1000.0)
}

/// Measures with `threads` threads that write samples of `octets` octets, and prints a row.
fn measure(threads: usize, octets: usize, length: Duration) {
    let executor = executor();
    let (shared, peer) = (participant().executor(&executor).build().unwrap(), participant().build().unwrap());
    let control = reader(&shared, "control", URGENT);
    control.set_listener(Box::new(Counting)).unwrap();
    let (to_control, from_bulk) = (writer(&peer, "control"), reader(&peer, "bulk", 0));
    from_bulk.set_listener(Box::new(Counting)).unwrap();
    let (bulk, polled) = (writer(&shared, "bulk"), reader(&shared, "polled", 0));
    to_control.wait_for_readers(1, Duration::from_secs(10)).unwrap();
    bulk.wait_for_readers(1, Duration::from_secs(10)).unwrap();
    let (is_over, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let sample = Blob { bytes: vec![1; octets] };
                while !is_over.load(Ordering::Relaxed) {
                    bulk.write(&sample).unwrap();
                    polled.take(usize::MAX).unwrap();
                    calls.fetch_add(2, Ordering::Relaxed);
                }
            });
        }
        let sample = Blob { bytes: vec![0; 64] };
        for _ in 0..length.as_millis() / PERIOD.as_millis() {
            to_control.write(&sample).unwrap();
            // tidy-allow(sleep): the period of the samples
            thread::sleep(PERIOD);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let classes = shared.job_classes().unwrap();
    let jobs = urgent(&classes, &[JobKind::Receive, JobKind::Callback]);
    let waits = urgent(&classes, &[JobKind::LockWait]);
    let hold_ns =
        classes.iter().filter(|class| class.kind == JobKind::LockHold).map(|class| class.durations.max_ns()).max();
    let share = 100.0 * waits.count() as f64 / jobs.count().max(1) as f64;
    let calls_a_second = calls.into_inner() / length.as_secs().max(1);
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| microseconds(waits.quantile_ns(share)));
    let [longest, hold] = [waits.max_ns(), hold_ns.unwrap_or(0)].map(microseconds);
    println!(
        "| {threads} | {octets} | {calls_a_second} | {} | {share:.1} % | {p50} | {p99} | {p999} | {longest} | {hold} |",
        jobs.count()
    );
}

fn main() {
    let seconds = std::env::args().filter_map(|word| word.parse().ok()).next_back().unwrap_or(5);
    println!(
        "| threads | octets | calls a second | urgent jobs | that waited | wait p50 (us) | p99 | p99.9 | longest | longest hold |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for octets in [64, 100_000] {
        for threads in [0, 1, 2, 4] {
            measure(threads, octets, Duration::from_secs(seconds));
        }
    }
}
