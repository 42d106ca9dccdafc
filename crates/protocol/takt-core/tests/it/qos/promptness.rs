//! Detection times of DEADLINE, LIVELINESS and OWNERSHIP (DDS 1.4 §2.2.3.7, §2.2.3.9.2, §2.2.3.11).
//!
//! Simulated time permits exact assertions. No event may be reported for writers that are on time.

use crate::network::*;
use takt_core::*;
use takt_wire::Duration;
use takt_wire::qos::*;

const MS: u64 = 1_000_000;
const PERIOD_MS: u64 = 300;
const LEASE_MS: u64 = 1_000;
/// Time between two samples of a writer.
const PACE_MS: u64 = 50;
const HOUR_MS: u64 = 3_600_000;

/// Writers at node 0 (weak) and node 1 (strong), and a reader at node 2.
struct Contest {
    network: Network,
    writers: [WriterHandle; 2],
    reader: ReaderHandle,
}

impl Contest {
    fn new(seed: u64, period_ms: Option<u64>, kind: LivelinessKind) -> Self {
        let mut network = Network::new(3, seed);
        let deadline = Deadline { period: period_ms.map_or(Duration::INFINITE, Duration::from_millis) };
        let liveliness = Liveliness { kind, lease_duration: Duration::from_millis(LEASE_MS) };
        let writers = [0, 1].map(|node| {
            let qos = DataWriterQos {
                ownership: Ownership::Exclusive,
                ownership_strength: OwnershipStrength(node as i32),
                deadline,
                liveliness,
                ..keep_all_writer()
            };
            network.writer(node, writer_spec("T", true, qos))
        });
        let ownership = Ownership::Exclusive;
        let qos = DataReaderQos { ownership, deadline, liveliness, ..keep_all_reader() };
        let reader = network.reader(2, reader_spec("T", true, qos));
        network.await_match((0, writers[0]), (2, reader));
        network.await_match((1, writers[1]), (2, reader));
        Self { network, writers, reader }
    }

    fn write(&mut self, node: usize) {
        let writer = self.writers[node];
        self.network.write_key(node, writer, ChangeKind::Alive, hash(1), &payload(1, 20)).expect("write accepted");
    }

    /// Both write for some time. Returns how many samples of the weak one the reader gets.
    fn run(&mut self, ms: u64) -> usize {
        let weak = self.network.nodes[0].writer_guid(self.writers[0]).expect("the writer exists");
        let mut of_weak = 0;
        for _ in 0..ms / PACE_MS {
            self.write(1);
            self.write(0);
            self.network.run(PACE_MS);
            let taken = self.network.take_all(2, self.reader);
            of_weak += taken.iter().filter(|(info, _)| info.publication == weak).count();
        }
        of_weak
    }

    /// Stops all writes. Returns how long after the last sample the event is reported to the
    /// reader.
    fn silence_until(&mut self, event: Event) -> u64 {
        self.network.events(2);
        let begin = self.network.now;
        let reported = self.network.run_until(10_000, |network| network.events(2).contains(&event));
        assert!(reported, "{event:?}");
        (self.network.now.0 - begin.0).div_ceil(MS)
    }
}

#[test]
fn missed_deadline_is_reported_within_the_period_and_a_millisecond() {
    let mut contest = Contest::new(400, Some(PERIOD_MS), LivelinessKind::Automatic);
    contest.run(1_000);
    contest.write(1);
    let event = Event::RequestedDeadlineMissed(contest.reader);
    let delay_ms = contest.silence_until(event);
    assert!((PERIOD_MS..=PERIOD_MS + 1).contains(&delay_ms), "{delay_ms} ms");
}

#[test]
fn silent_writer_is_not_alive_within_its_lease_and_a_millisecond() {
    let mut contest = Contest::new(401, None, LivelinessKind::ManualByTopic);
    contest.run(1_000);
    contest.write(0);
    contest.write(1);
    let event = Event::LivelinessChanged(contest.reader);
    let delay_ms = contest.silence_until(event);
    assert!((LEASE_MS..=LEASE_MS + 1).contains(&delay_ms), "{delay_ms} ms");
}

#[test]
fn writers_of_a_dead_participant_are_not_alive_within_their_lease_and_a_millisecond() {
    let mut contest = Contest::new(402, None, LivelinessKind::Automatic);
    contest.run(1_000);
    contest.network.cut = vec![1];
    let event = Event::LivelinessChanged(contest.reader);
    let delay_ms = contest.silence_until(event);
    assert!(delay_ms <= LEASE_MS + 1, "{delay_ms} ms");
}

/// By a missed deadline, and by an expired lease: the samples of the next writer are delivered.
#[test]
fn next_writer_owns_the_instance_within_the_period_and_a_millisecond() {
    for (period_ms, wait_ms) in [(Some(PERIOD_MS), PERIOD_MS), (None, LEASE_MS)] {
        let mut contest = Contest::new(403, period_ms, LivelinessKind::ManualByTopic);
        assert!(contest.run(1_000) <= 1, "the stronger writer owns the instance with its first sample");
        contest.write(1);
        let begin = contest.network.now;
        // One sample per millisecond shows from when the samples are delivered.
        let first = (1..=2_000).find(|_| {
            contest.write(0);
            contest.network.run(1);
            !contest
                .network
                .take_all(2, contest.reader)
                .iter()
                .all(|(info, _)| Ok(info.publication) == contest.network.nodes[1].writer_guid(contest.writers[1]))
        });
        let delay_ms = (contest.network.now.0 - begin.0).div_ceil(MS);
        assert!(first.is_some() && (wait_ms..=wait_ms + 2).contains(&delay_ms), "{delay_ms} ms of {wait_ms} ms");
    }
}

/// One datagram in twenty is lost, and repaired well within the period.
#[test]
fn no_deadline_or_lease_is_missed_while_all_writers_write() {
    for kind in [LivelinessKind::Automatic, LivelinessKind::ManualByTopic] {
        let mut contest = Contest::new(404, Some(2 * PERIOD_MS), kind);
        contest.run(1_000);
        contest.network.faults.loss = 5;
        let of_weak = contest.run(HOUR_MS);
        let node = &mut contest.network.nodes[2];
        let deadline = node.requested_deadline_missed_status(contest.reader).expect("the reader exists");
        let liveliness = node.liveliness_changed_status(contest.reader).expect("the reader exists");
        assert_eq!((deadline.total_count, liveliness.alive_count, of_weak), (0, 2, 0), "{kind:?}");
        assert_eq!((liveliness.not_alive_count, liveliness.not_alive_count_change), (0, 0), "{kind:?}");
        for at in [0, 1] {
            let writer = contest.writers[at];
            let node = &mut contest.network.nodes[at];
            let missed = node.offered_deadline_missed_status(writer).expect("the writer exists");
            let lost = node.liveliness_lost_status(writer).expect("the writer exists");
            assert_eq!((missed.total_count, lost.total_count), (0, 0), "{kind:?}");
        }
    }
}
