//! Samples of a reliable writer that arrive before its first HEARTBEAT (RTPS 2.5 §8.4.12.2).

use crate::network::*;
use crate::puppet::*;
use takt_core::*;
use takt_wire::EntityId;
use takt_wire::message::{Heartbeat, Payload};
use takt_wire::qos::*;

/// Participant with a reliable reader, matched with a writer of another vendor that has sent
/// nothing yet.
struct Matched {
    node: Participant,
    reader: ReaderHandle,
    now: Instant,
    puppet: Puppet,
}

const WRITER: EntityId = EntityId::user_writer(1, false);

impl Matched {
    fn new(qos: DataReaderQos) -> Self {
        Self::with(qos, Puppet::new(9), Durability::Volatile)
    }

    fn with(qos: DataReaderQos, mut puppet: Puppet, durability: Durability) -> Self {
        let now = Instant(1_000_000_000);
        let mut node = Participant::new(config(0, 1500), now).expect("the configuration is valid");
        let reader = node.create_reader(now, reader_spec("T", false, qos)).expect("the reader is valid");
        puppet.join(&mut node, now);
        let mut data = puppet.publication(1, true);
        data.qos.durability = durability;
        puppet.publish(&mut node, now, &data);
        Self { node, reader, now, puppet }
    }

    fn send(&mut self, numbers: impl IntoIterator<Item = i64>) {
        for sn in numbers {
            let bytes = payload(sn as u32, 20);
            let message = |message: &mut takt_wire::builder::MessageBuilder<'_>| {
                message.data(&data(WRITER, sn, Payload::Data(&bytes))).expect("it fits");
            };
            self.puppet.say(&mut self.node, self.now, message);
        }
    }

    fn heartbeat(&mut self, first: i64, last: i64) {
        let heartbeat = self.puppet.heartbeat(WRITER, first, last);
        self.puppet.say(&mut self.node, self.now, |message| message.heartbeat(&heartbeat).expect("it fits"));
    }

    fn taken(&mut self) -> Vec<i64> {
        let mut taken = Vec::new();
        let mut cursor = ReadCursor::default();
        while let Some(sample) =
            self.node.read_next(self.now, self.reader, Selector::TAKE, &mut cursor).expect("it exists")
        {
            taken.push(sample.info.sequence_number.0);
        }
        taken
    }

    fn lost(&mut self) -> u64 {
        self.node.sample_lost_status(self.reader).expect("it exists").total_count
    }
}

#[test]
fn early_samples_are_delivered_after_the_first_heartbeat() {
    for order in [[1, 2], [2, 1]] {
        let mut t = Matched::new(keep_all_reader());
        t.send(order);
        t.send(order);
        assert_eq!(t.taken(), [], "an earlier one may be on its way");
        // KEEP_LAST 1: the writer has replaced the first sample.
        t.heartbeat(2, 2);
        assert_eq!((t.taken(), t.lost()), (vec![1, 2], 0));
        assert_eq!(t.node.counters().duplicate_samples, 2);
        t.send([3]);
        assert_eq!(t.taken(), [3]);
    }
}

#[test]
fn samples_missing_after_early_ones_count_as_lost() {
    let mut t = Matched::new(keep_all_reader());
    t.send([1, 3]);
    t.heartbeat(5, 5);
    assert_eq!((t.taken(), t.lost()), (vec![1, 3], 2));
    t.send([5]);
    assert_eq!((t.taken(), t.lost()), (vec![5], 2));
}

#[test]
fn sample_missing_between_early_ones_delays_delivery_if_the_writer_has_it() {
    let mut t = Matched::new(keep_all_reader());
    t.send([1, 3]);
    t.heartbeat(1, 3);
    assert_eq!(t.taken(), [1]);
    t.send([2]);
    assert_eq!((t.taken(), t.lost()), (vec![2, 3], 0));
}

#[test]
fn early_samples_beyond_one_window_are_repaired() {
    let mut t = Matched::new(keep_all_reader());
    t.send(1..=600);
    assert_eq!(t.node.counters().out_of_window, 88);
    t.heartbeat(1, 600);
    assert!(t.taken().into_iter().eq(1..=512));
    t.send(513..=600);
    assert!(t.taken().into_iter().eq(513..=600));
    assert_eq!(t.lost(), 0);
}

#[test]
fn early_samples_far_below_the_announced_range_are_delivered_and_the_rest_is_lost() {
    let mut t = Matched::new(keep_all_reader());
    t.send([10, 11]);
    t.heartbeat(2_000, 2_000);
    assert_eq!((t.taken(), t.lost()), (vec![10, 11], 1_988));
    t.send([2_000]);
    assert_eq!(t.taken(), [2_000]);
}

#[test]
fn early_samples_are_dropped_with_their_writer() {
    let mut qos = keep_all_reader();
    qos.resource_limits.max_samples = Some(4);
    let mut t = Matched::new(qos);
    for round in 0..20 {
        t.send(1..=200);
        t.puppet.leave(&mut t.node, t.now);
        t.puppet = Puppet::new(10 + round);
        t.puppet.join(&mut t.node, t.now);
        t.puppet.publish(&mut t.node, t.now, &t.puppet.publication(1, true));
    }
    t.send([1]);
    t.heartbeat(1, 1);
    assert_eq!(t.taken(), [1]);
    assert_eq!(t.node.counters().rejected_samples, 0);
}

#[test]
fn history_is_not_complete_after_an_initial_heartbeat() {
    let durability = Durability::TransientLocal;
    let mut matched = Matched::with(DataReaderQos { durability, ..keep_all_reader() }, Puppet::of_ours(9), durability);
    let has_history = |matched: &mut Matched| matched.node.has_history(matched.reader).expect("it exists");
    let initial = Heartbeat { is_final: true, ..matched.puppet.heartbeat(WRITER, 1, 0) };
    matched.puppet.say(&mut matched.node, matched.now, |message| message.heartbeat(&initial).expect("it fits"));
    assert!(!has_history(&mut matched), "an initial heartbeat states the first sample, not the history");
    matched.send(1..=2);
    assert!(!has_history(&mut matched));
    matched.heartbeat(1, 3);
    assert!(!has_history(&mut matched));
    matched.send([3]);
    assert!(has_history(&mut matched));
    assert_eq!(matched.taken(), [1, 2, 3]);
}
