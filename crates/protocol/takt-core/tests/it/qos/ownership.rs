//! OWNERSHIP EXCLUSIVE (DDS 1.4 §2.2.3.9.2): a reader presents only the changes of the strongest
//! alive writer of each instance.

use crate::network::*;
use takt_core::*;
use takt_wire::Duration;
use takt_wire::qos::*;

/// Writers at node 0 (strength 1) and node 1 (strength 2), and a reader at node 2.
struct Contest {
    network: Network,
    weak: WriterHandle,
    strong: WriterHandle,
    reader: ReaderHandle,
}

impl Contest {
    fn new(seed: u64, strengths: [i32; 2], reader_deadline_ms: Option<u64>) -> Self {
        let mut network = Network::new(3, seed);
        let period = reader_deadline_ms.map_or(Duration::INFINITE, Duration::from_millis);
        let qos = |strength| DataWriterQos {
            ownership: Ownership::Exclusive,
            ownership_strength: OwnershipStrength(strength),
            deadline: Deadline { period },
            liveliness: Liveliness {
                kind: LivelinessKind::ManualByTopic,
                lease_duration: Duration::from_millis(1_000),
            },
            ..keep_all_writer()
        };
        let weak = network.writer(0, writer_spec("T", true, qos(strengths[0])));
        let strong = network.writer(1, writer_spec("T", true, qos(strengths[1])));
        let ownership = Ownership::Exclusive;
        let reader_qos = DataReaderQos { ownership, deadline: Deadline { period }, ..keep_all_reader() };
        let reader = network.reader(2, reader_spec("T", true, reader_qos));
        network.await_match((0, weak), (2, reader));
        network.await_match((1, strong), (2, reader));
        Self { network, weak, strong, reader }
    }

    /// Writes at node 0 or 1; returns how many samples the reader gets from it.
    fn write(&mut self, node: usize, key: u8, kind: ChangeKind) -> usize {
        let writer = if node == 0 { self.weak } else { self.strong };
        let bytes = if kind == ChangeKind::Alive { payload(u32::from(key), 20) } else { vec![] };
        self.network.write_key(node, writer, kind, hash(key), &bytes).expect("write accepted");
        self.network.run(20);
        self.network.take_all(2, self.reader).len()
    }
}

const ALIVE: ChangeKind = ChangeKind::Alive;

#[test]
fn stronger_writer_takes_over_an_instance_and_keeps_it() {
    let mut contest = Contest::new(210, [1, 2], None);
    assert_eq!(contest.write(0, 1, ALIVE), 1, "no other writer has written it");
    assert_eq!(contest.write(1, 1, ALIVE), 1);
    assert_eq!(contest.write(0, 1, ALIVE), 0);
    assert_eq!(contest.write(0, 1, ChangeKind::Disposed), 0, "nor may it dispose it");
    assert_eq!(contest.write(0, 2, ALIVE), 1, "another instance is another matter");
    assert_eq!(contest.write(1, 1, ALIVE), 1);
    assert_eq!(contest.network.nodes[2].counters().outranked_samples, 2);
}

#[test]
fn lower_guid_owns_the_instance_when_strengths_are_equal() {
    let mut contest = Contest::new(211, [7, 7], None);
    assert_eq!(contest.write(1, 1, ALIVE), 1);
    assert_eq!(contest.write(0, 1, ALIVE), 1, "node 0 has the lower GUID");
    assert_eq!(contest.write(1, 1, ALIVE), 0);
}

#[test]
fn ownership_changes_when_the_owner_unregisters_is_deleted_or_not_alive() {
    let mut contest = Contest::new(212, [1, 2], None);
    contest.write(1, 1, ALIVE);
    contest.write(1, 1, ChangeKind::Unregistered);
    assert_eq!(contest.write(0, 1, ALIVE), 1);
    assert_eq!(contest.write(1, 1, ALIVE), 1);

    contest.network.run(1_100);
    contest.network.take_all(2, contest.reader);
    assert_eq!(contest.write(0, 1, ALIVE), 1, "the lease of the owner is over");
    assert_eq!(contest.write(1, 1, ALIVE), 1, "it came back");

    contest.network.nodes[1].delete_writer(contest.network.now, contest.strong).expect("the writer exists");
    contest.network.run(100);
    contest.network.take_all(2, contest.reader);
    assert_eq!(contest.write(0, 1, ALIVE), 1);
}

#[test]
fn ownership_changes_when_the_owner_misses_its_deadline_until_it_writes_again() {
    let mut contest = Contest::new(213, [1, 2], Some(300));
    contest.write(1, 1, ALIVE);
    contest.network.run(200);
    assert_eq!(contest.write(0, 1, ALIVE), 0, "there is time yet");
    contest.network.run(100);
    assert_eq!(contest.write(0, 1, ALIVE), 1);
    assert_eq!(contest.write(1, 1, ALIVE), 1);
    assert_eq!(contest.write(0, 1, ALIVE), 0);
}

#[test]
fn instance_has_writers_while_a_weaker_writer_is_left() {
    let mut contest = Contest::new(214, [1, 2], None);
    contest.write(0, 1, ALIVE);
    contest.write(1, 1, ALIVE);
    assert_eq!(contest.write(0, 1, ALIVE), 0);
    assert_eq!(contest.write(1, 1, ChangeKind::Unregistered), 0, "no state change: there is another writer");
    assert_eq!(contest.write(0, 1, ChangeKind::Unregistered), 1, "now there is none");
}

#[test]
fn repair_of_an_owner_that_is_not_alive_does_not_regain_ownership() {
    let mut contest = Contest::new(215, [1, 2], None);
    assert_eq!(contest.write(1, 1, ALIVE), 1);
    contest.network.muted.push(2);
    contest.network.keep = Some(0);
    contest.write(1, 1, ALIVE);
    contest.network.keep = None;
    assert_eq!(contest.write(1, 1, ALIVE), 0, "an earlier sample is missing");
    contest.network.run(1_100);
    contest.network.take_all(2, contest.reader);
    assert_eq!(contest.write(0, 1, ALIVE), 1, "the lease of the owner is over");
    contest.network.muted.clear();
    contest.network.run(500);
    assert_eq!(contest.network.take_all(2, contest.reader).len(), 0, "the weaker writer owns the instance now");
    assert_eq!(contest.network.nodes[2].counters().outranked_samples, 2);
    assert_eq!(contest.write(0, 1, ALIVE), 1);
    assert_eq!(contest.write(1, 1, ALIVE), 1, "the stronger writer is alive again");
    assert_eq!(contest.write(0, 1, ALIVE), 0);
}
