//! Allocation test of the data plane: 100,000 writes and takes, and 2,000 batches, counted by the
//! global allocator, must not allocate.
//!
//! A separate test binary, since the allocator is global and other tests allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use takt::qos::*;
use takt::*;

static COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Thread id of the test harness if it is not the test's own thread. It allocates when it reports a
/// long-running test after a minute.
static HARNESS: AtomicI32 = AtomicI32::new(0);
/// Backtrace of the first allocation, for the failure message.
static FIRST: OnceLock<Backtrace> = OnceLock::new();

struct Counting;

// SAFETY: every call is forwarded to the system allocator unchanged; counting accesses no memory of
// its blocks.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's obligations are those of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}

fn count() {
    // SAFETY: no pointers.
    let is_harness = || unsafe { libc::gettid() } == HARNESS.load(Ordering::Relaxed);
    if COUNTING.load(Ordering::Relaxed) && !is_harness() && ALLOCATIONS.fetch_add(1, Ordering::Relaxed) == 0 {
        // Capturing the backtrace allocates, which must not count as the first allocation.
        let _ = FIRST.set(Backtrace::force_capture());
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Domain without other participants, since discovering one allocates and is not part of this test.
const DOMAIN: u32 = 232;
const SAMPLES: u32 = 100_000;
const WARM_UP: u32 = 2_000;
const TIMEOUT: Duration = Duration::from_secs(120);

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Reading {
    #[dds(key)]
    sensor: String,
    number: u32,
    values: Vec<f64>,
}

/// A single sequence of octets, so that an application can write its serialized form directly.
#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(extensibility = "final")]
struct Octets {
    bytes: Vec<u8>,
}

/// Length of loaned payloads in octets.
const LOAN_LEN: usize = 100_000;

/// Writes and takes `samples` loans in lockstep. Returns the number that was actually loaned.
fn exchange_loans(
    participants: [&DomainParticipant; 2],
    writer: &DataWriter<Octets>,
    reader: &DataReader<Octets>,
    samples: u32,
) -> u32 {
    let mut loaned = 0;
    for number in 0..samples {
        let mut loan = writer.loan(4 + LOAN_LEN).expect("open");
        loan[..4].copy_from_slice(&(LOAN_LEN as u32).to_le_bytes());
        loan[4..8].copy_from_slice(&number.to_le_bytes());
        writer.write_loaned(loan).expect("room");
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(sample) = reader.take_loaned().expect("open") {
                let mut found = [0; 4];
                assert_eq!((sample.read_at(4, &mut found), u32::from_le_bytes(found)), (4, number));
                loaned += u32::from(sample.is_loaned());
                break;
            }
            assert!(Instant::now() < deadline, "sample {number} did not arrive");
            drive(participants);
        }
    }
    loaned
}

fn allocations_of_loans(runtime: Runtime, history: History) -> u64 {
    let join = || {
        let builder = DomainParticipant::builder(DOMAIN).interfaces(["lo"]).peers(["127.0.0.1"]);
        builder.runtime(runtime).shared_memory(true).build().expect("participant")
    };
    let (left, right) = (join(), join());
    let topic = left.create_topic::<Octets>("Octets", TopicQos::default()).expect("topic");
    let publisher = left.create_publisher(PublisherQos::default()).expect("publisher");
    let qos = DataWriterQos { reliability: reliable(), history, ..DataWriterQos::default() };
    let writer = publisher.create_datawriter(&topic, qos).expect("writer");
    let topic = right.create_topic::<Octets>("Octets", TopicQos::default()).expect("topic");
    let subscriber = right.create_subscriber(SubscriberQos::default()).expect("subscriber");
    let qos = DataReaderQos { reliability: reliable(), history, ..DataReaderQos::default() };
    let reader = subscriber.create_datareader(&topic, qos).expect("reader");
    reader.borrow_samples(true).expect("open");
    let deadline = Instant::now() + TIMEOUT;
    while !writer.loan(4).expect("open").is_shared() {
        assert!(Instant::now() < deadline, "no ring");
        drive([&left, &right]);
    }
    assert_eq!(exchange_loans([&left, &right], &writer, &reader, WARM_UP), WARM_UP);
    ALLOCATIONS.store(0, Ordering::SeqCst);
    COUNTING.store(true, Ordering::SeqCst);
    let loaned = exchange_loans([&left, &right], &writer, &reader, SAMPLES);
    COUNTING.store(false, Ordering::SeqCst);
    assert_eq!(loaned, SAMPLES);
    ALLOCATIONS.load(Ordering::SeqCst)
}

fn reliable() -> Reliability {
    Reliability { max_blocking_time: takt::Duration::from_secs(60), ..Reliability::RELIABLE }
}

/// Writes and takes `samples` samples in lockstep. The participants are driven by this thread or
/// their own.
fn exchange(
    participants: [&DomainParticipant; 2],
    writer: &DataWriter<Reading>,
    reader: &DataReader<Reading>,
    [sample, received]: [&mut Reading; 2],
    samples: u32,
) -> u32 {
    let mut taken = 0;
    for number in 0..samples {
        sample.number = number;
        writer.write(sample).expect("room");
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if reader.take_next_sample(received).expect("open").is_some() {
                assert_eq!(received, sample);
                taken += 1;
                break;
            }
            assert!(Instant::now() < deadline, "sample {number} did not arrive");
            drive(participants);
        }
    }
    taken
}

/// As [`exchange`], in batches of 1 to 50 samples, taken into slots or visited one by one.
fn exchange_batches(
    participants: [&DomainParticipant; 2],
    writer: &DataWriter<Reading>,
    reader: &DataReader<Reading>,
    (samples, slots, shown): (&mut [Reading], &mut [Sample<Reading>], &mut Reading),
    rounds: u32,
) {
    for round in 0..rounds {
        let batch = &mut samples[..round as usize % 50 + 1];
        batch.iter_mut().for_each(|sample| sample.number = round);
        assert_eq!(writer.write_batch(&*batch).expect("room"), batch.len());
        let deadline = Instant::now() + TIMEOUT;
        let mut taken = 0;
        while taken < batch.len() {
            if round % 2 == 0 {
                let filled = reader.take_batch(slots).expect("open");
                assert!(filled.iter().all(|sample| sample.data.as_ref().is_some_and(|data| *data == batch[0])));
                taken += filled.len();
            } else {
                taken += reader.take_each(50, shown, |data, _| assert_eq!(*data, batch[0])).expect("open");
            }
            assert!(Instant::now() < deadline, "batch {round} did not arrive");
            drive(participants);
        }
    }
}

/// Drives the inline participants for one pass.
fn drive(participants: [&DomainParticipant; 2]) {
    for participant in participants {
        match participant.spin_once(Duration::ZERO) {
            Ok(_) | Err(Error::IllegalOperation { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn allocations_of_exchange(
    runtime: Runtime,
    shared_memory: bool,
    reliability: Reliability,
    history: History,
    values: usize,
    is_urgent: bool,
) -> u64 {
    let priority =
        || Property::from_iter([PropertyEntry::local(PRIORITY_PROPERTY, if is_urgent { "46" } else { "0" })]);
    let join = || {
        let builder = DomainParticipant::builder(DOMAIN).interfaces(["lo"]).peers(["127.0.0.1"]);
        builder.runtime(runtime).shared_memory(shared_memory).build().expect("participant")
    };
    let (left, right) = (join(), join());
    let topic = left.create_topic::<Reading>("Readings", TopicQos::default()).expect("topic");
    let publisher = left.create_publisher(PublisherQos::default()).expect("publisher");
    let qos = DataWriterQos { reliability, history, property: priority(), ..DataWriterQos::default() };
    let writer = publisher.create_datawriter(&topic, qos).expect("writer");
    let topic = right.create_topic::<Reading>("Readings", TopicQos::default()).expect("topic");
    let subscriber = right.create_subscriber(SubscriberQos::default()).expect("subscriber");
    let qos = DataReaderQos { reliability, history, property: priority(), ..DataReaderQos::default() };
    let reader = subscriber.create_datareader(&topic, qos).expect("reader");
    // Job statistics and the trace are recorded throughout.
    right.keep_job_trace(if is_urgent { 1000 } else { 0 }).expect("open");

    let mut sample = Reading { sensor: "north gate".to_owned(), number: 0, values: vec![1.5; values] };
    let mut received = Reading::default();
    let matched =
        || writer.matched_subscriptions().expect("open").len() + reader.matched_publications().expect("open").len();
    let deadline = Instant::now() + TIMEOUT;
    while matched() < 2 {
        assert!(Instant::now() < deadline, "not matched");
        drive([&left, &right]);
    }
    assert_eq!(exchange([&left, &right], &writer, &reader, [&mut sample, &mut received], WARM_UP), WARM_UP);

    // KEEP_LAST 1 keeps only the last sample of a batch.
    let rounds = if history == History::KeepAll { WARM_UP } else { 0 };
    let (mut samples, mut slots) = (vec![sample.clone(); 50], vec![Sample::default(); 50]);
    slots.iter_mut().for_each(|slot| slot.data = Some(sample.clone()));
    exchange_batches([&left, &right], &writer, &reader, (&mut samples, &mut slots, &mut received), rounds);

    ALLOCATIONS.store(0, Ordering::SeqCst);
    COUNTING.store(true, Ordering::SeqCst);
    let taken = exchange([&left, &right], &writer, &reader, [&mut sample, &mut received], SAMPLES);
    exchange_batches([&left, &right], &writer, &reader, (&mut samples, &mut slots, &mut received), rounds);
    COUNTING.store(false, Ordering::SeqCst);
    assert_eq!(taken, SAMPLES);
    ALLOCATIONS.load(Ordering::SeqCst)
}

/// A single test, so that nothing else runs while allocations are counted.
#[test]
fn data_plane_does_not_allocate() {
    // SAFETY: no pointers.
    let (own, first) = unsafe { (libc::gettid(), libc::getpid()) };
    HARNESS.store(if own == first { 0 } else { first }, Ordering::Relaxed);
    // Payloads of 8 KB are loaned if shared memory is enabled.
    for (runtime, shared_memory, reliability, history, values, is_urgent) in [
        (Runtime::Inline, false, reliable(), History::KeepAll, 4, false),
        (Runtime::Inline, false, reliable(), History::KeepAll, 4, true),
        (Runtime::Shared, false, reliable(), History::KeepAll, 4, true),
        (Runtime::Inline, false, Reliability::BEST_EFFORT, History::KeepLast(1), 4, true),
        (Runtime::Shared, false, reliable(), History::KeepAll, 4, false),
        (Runtime::Inline, true, reliable(), History::KeepAll, 4, false),
        (Runtime::Shared, true, reliable(), History::KeepAll, 4, false),
        (Runtime::Inline, true, reliable(), History::KeepAll, 1000, false),
        (Runtime::Shared, true, reliable(), History::KeepAll, 1000, false),
    ] {
        let allocations = allocations_of_exchange(runtime, shared_memory, reliability, history, values, is_urgent);
        let case = format!(
            "{runtime:?}, shared memory {shared_memory}, {reliability:?}, {history:?}, {values}, urgent {is_urgent}"
        );
        assert_eq!(allocations, 0, "{case}: {:?}", FIRST.get());
    }
    for (runtime, history) in [(Runtime::Inline, History::KeepLast(1)), (Runtime::Shared, History::KeepAll)] {
        let allocations = allocations_of_loans(runtime, history);
        assert_eq!(allocations, 0, "loans, {runtime:?}, {history:?}: {:?}", FIRST.get());
    }
}
