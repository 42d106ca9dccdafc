//! Run-time policies between Takt and each peer, in both directions: LIFESPAN, DEADLINE, OWNERSHIP
//! with LIVELINESS, and content filters. tshark checks the frames that Takt sent.

use std::time::{Duration, Instant};

use takt_interop::event::{Event, Sample};
use takt_interop::peer::{Batch, Durability, Endpoint, Kind, Peer};
use takt_interop::programs::Program;

use crate::scene::{Recorded, start};

const TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of writes of a sample that a reader may miss, or that may expire in transit.
const ATTEMPTS: u64 = 40;
const SHORT_TIMEOUT: Duration = Duration::from_millis(500);
/// INTEROP(Fast DDS 2.9.1): treats a key hash of sixteen zeros as a missing key hash, so the tests
/// do not use instance 0.
const KEY: u32 = 1;
const SIZE: usize = 100;

fn endpoint(id: &str) -> Endpoint {
    Endpoint::new(id, "T", Kind::Key)
}

fn batch(first: u64, count: u64) -> Batch {
    Batch { first, key: KEY, ..Batch::new(count, SIZE) }
}

/// Writes a batch and waits for its end. With a period, this includes the time after the last
/// sample.
fn write(peer: &mut Peer, id: &str, batch: &Batch) {
    peer.write(id, batch).expect("running");
    peer.written(id, TIMEOUT).expect("there is room");
}

fn numbers(samples: &[Sample]) -> Vec<u64> {
    samples.iter().filter(|sample| sample.valid).map(|sample| sample.seq).collect()
}

/// Returns the pairs of Takt and each other product, in both directions.
fn pairs() -> Vec<(Program, Program)> {
    let forth = Program::FOREIGN.map(|peer| (Program::Takt, peer));
    let back = Program::FOREIGN.map(|peer| (peer, Program::Takt));
    forth.into_iter().chain(back).collect()
}

/// Writes single samples from `first` on until the reader has one.
///
/// INTEROP(CycloneDDS 0.10.2, 11.0.1): reports a match a fraction of a millisecond before it
/// delivers samples.
fn write_until_received(writer: &mut Peer, reader: &mut Peer, first: u64) {
    for attempt in 0..ATTEMPTS {
        write(writer, "w", &batch(first + attempt, 1));
        if reader.sample_within("r", SHORT_TIMEOUT).is_ok() {
            return;
        }
    }
    panic!("none of {ATTEMPTS} samples arrived");
}

/// Samples older than their lifespan reach neither a late joiner nor a reader that takes late.
#[test]
fn samples_expire_at_the_writer_and_at_the_reader() {
    const LIFESPAN_MS: u32 = 300;
    /// Time until the earlier samples have expired.
    const PAUSE_US: u64 = 2 * 1000 * LIFESPAN_MS as u64;
    const BEFORE: u64 = 0;
    const UNREAD: u64 = 1_000;
    const FRESH: u64 = 2_000;
    for (publisher, subscriber) in pairs() {
        // INTEROP(Fast DDS 2.9.1, 3.2.2): its readers apply their own LIFESPAN, not that of the
        // writer.
        let expires_at_reader = !matches!(subscriber, Program::FastDds2 | Program::FastDds3);
        let Some(mut recorded) = Recorded::new(publisher, subscriber) else { return };
        let (left, right) = (&mut recorded.scene.left, &mut recorded.scene.right);
        let durability = Durability::TransientLocal;
        left.writer(&Endpoint { durability, lifespan_ms: LIFESPAN_MS, ..endpoint("w") }).expect("created");
        write(left, "w", &batch(BEFORE, 3));
        write(left, "w", &Batch { period_us: PAUSE_US, ..batch(BEFORE + 3, 1) });
        right.reader(&Endpoint { durability, on_demand: true, ..endpoint("r") }).expect("created");
        left.matched("w", 1).expect("matched");
        right.matched("r", 1).expect("matched");
        if expires_at_reader {
            write(left, "w", &batch(UNREAD, 3));
            write(left, "w", &Batch { period_us: PAUSE_US, ..batch(UNREAD + 3, 1) });
        }
        let mut received = Vec::new();
        for attempt in 0..ATTEMPTS {
            write(left, "w", &batch(FRESH + attempt, 1));
            // INTEROP(Fast DDS 2.9.1, 3.2.2): a sample may expire in its writer before a heartbeat
            // has requested acknowledgments, which happens every 3 s. No heartbeat follows then,
            // and the writer waits for the acknowledgment for ever.
            if !matches!(publisher, Program::FastDds2 | Program::FastDds3) {
                left.acknowledged("w", TIMEOUT).expect("what has expired is not waited for");
            }
            let deadline = Instant::now() + SHORT_TIMEOUT;
            while received.is_empty() && Instant::now() < deadline {
                received = numbers(&right.take("r").expect("taken"));
            }
            if !received.is_empty() {
                break;
            }
        }
        assert!(!received.is_empty(), "{publisher} -> {subscriber}: nothing of {ATTEMPTS} fresh samples");
        assert!(received.iter().all(|number| *number >= FRESH), "{publisher} -> {subscriber}: {received:?}");
        recorded.end();
    }
}

/// A writer that stops writing misses its deadline repeatedly, and so do its readers.
#[test]
fn missed_deadline_is_reported_on_both_sides() {
    for (publisher, subscriber) in pairs() {
        let Some(mut recorded) = Recorded::new(publisher, subscriber) else { return };
        let (left, right) = (&mut recorded.scene.left, &mut recorded.scene.right);
        left.writer(&Endpoint { deadline_ms: 150, ..endpoint("w") }).expect("created");
        right.reader(&Endpoint { deadline_ms: 200, ..endpoint("r") }).expect("created");
        left.matched("w", 1).expect("matched");
        right.matched("r", 1).expect("matched");
        write_until_received(left, right, 0);
        for (peer, id) in [(left, "w"), (right, "r")] {
            let first = peer.deadline_missed(id).expect("told");
            let second = peer.deadline_missed(id).expect("told again");
            assert!(first >= 1 && second > first, "{publisher} -> {subscriber}, {id}: {first}, {second}");
        }
        recorded.end();
    }
}

/// Checks that the reader receives the stronger of two writers of an instance, and the weaker one
/// after the stronger was killed.
fn the_weaker_takes_over(publisher: Program, subscriber: Program) {
    /// First number of the stronger writer.
    const STRONG: u64 = 1_000_000;
    const PERIOD_US: u64 = 20_000;
    const MANY: u64 = 2_000;
    /// Lease duration in milliseconds, long enough for writers on a busy machine.
    const LEASE_MS: u32 = 2_500;
    let Some(mut recorded) = Recorded::new(publisher, subscriber) else { return };
    let Some(mut strong) = start(publisher, &recorded.scene.network.left, Default::default()) else { return };
    let (weak, reader) = (&mut recorded.scene.left, &mut recorded.scene.right);
    let owner = |id, strength| Endpoint { strength: Some(strength), lease_ms: LEASE_MS, ..endpoint(id) };
    reader.reader(&owner("r", 0)).expect("created");
    weak.writer(&owner("w", 3)).expect("created");
    weak.write("w", &Batch { period_us: PERIOD_US, ..batch(0, MANY) }).expect("running");
    assert!(reader.sample("r").expect("the weak one is alone").seq < STRONG);

    strong.writer(&owner("s", 7)).expect("created");
    strong.write("s", &Batch { period_us: PERIOD_US, ..batch(STRONG, MANY) }).expect("running");
    next(reader, |number| number >= STRONG);
    for _ in 0..25 {
        let number = reader.sample("r").expect("the strong one goes on").seq;
        assert!(number >= STRONG, "{publisher} -> {subscriber}: {number} of the weaker writer");
    }
    // Kills the program.
    drop(strong);
    next(reader, |number| number < STRONG);
    for _ in 0..5 {
        let number = reader.sample("r").expect("the weak one goes on").seq;
        assert!(number < STRONG, "{publisher} -> {subscriber}: {number} of a dead writer");
    }
    recorded.stop();
}

/// INTEROP(Fast DDS 2.9.1): a reader keeps an owner whose liveliness is lost, also with its own
/// writers.
#[test]
fn cyclonedds_reader_switches_to_weaker_owner_when_stronger_dies() {
    for subscriber in [Program::Cyclone10, Program::Cyclone11] {
        the_weaker_takes_over(Program::Takt, subscriber);
    }
}

#[test]
fn takt_reader_switches_to_weaker_owner_when_stronger_dies() {
    for publisher in Program::FOREIGN {
        the_weaker_takes_over(publisher, Program::Takt);
    }
}

/// Skips samples up to the first whose number is `wanted`.
fn next(reader: &mut Peer, wanted: impl Fn(u64) -> bool) {
    for _ in 0..10_000 {
        let sample = reader.sample("r").expect("samples keep coming");
        if sample.valid && wanted(sample.seq) {
            return;
        }
    }
    panic!("no sample of the other writer within 10,000");
}

/// Checks that a filtering reader receives exactly the matching samples, written before and after
/// its creation.
fn filters(publisher: Program, subscriber: Program) {
    const END: u64 = 12;
    const WRITTEN: u64 = 30;
    let Some(mut recorded) = Recorded::new(publisher, subscriber) else { return };
    let (left, right) = (&mut recorded.scene.left, &mut recorded.scene.right);
    let durability = Durability::TransientLocal;
    left.writer(&Endpoint { durability, ..endpoint("w") }).expect("created");
    write(left, "w", &Batch { keys: 3, ..batch(0, WRITTEN) });
    right.reader(&Endpoint { durability, filter_below: Some(END), ..endpoint("r") }).expect("created");
    let of = |from: u64, until: u64, key: u64| (from..until).filter(move |number| number % 3 == key).collect();
    for (first, until) in [(0, END), (3, END)] {
        if first > 0 {
            write(left, "w", &Batch { keys: 3, ..batch(first, WRITTEN) });
        }
        let mut received = [Vec::new(), Vec::new(), Vec::new()];
        for _ in first..until {
            let sample = right.sample("r").expect("what passes arrives");
            let instance = sample.key.expect("valid samples have a key") - KEY;
            received[instance as usize].push(sample.seq);
        }
        let expected: [Vec<u64>; 3] = [0, 1, 2].map(|key| of(first, until, key));
        assert_eq!(received, expected, "{publisher} -> {subscriber}");
    }
    left.acknowledged("w", TIMEOUT).expect("what does not pass is not waited for");
    let surplus: Vec<Event> = right.pending("r");
    assert!(surplus.iter().all(|event| matches!(event, Event::Matched { .. })), "{publisher}: {surplus:?}");
    recorded.end();
}

#[test]
fn takt_reader_filters_samples_of_other_vendors() {
    for publisher in Program::FOREIGN {
        filters(publisher, Program::Takt);
    }
}

/// INTEROP(CycloneDDS 0.10.2, 11.0.1): neither has content-filtered topics; a local function may
/// drop received samples.
#[test]
fn takt_writer_filters_for_fast_dds_readers() {
    for subscriber in [Program::FastDds2, Program::FastDds3] {
        filters(Program::Takt, subscriber);
    }
}
