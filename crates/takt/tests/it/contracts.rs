//! DEADLINE, manual LIVELINESS and OWNERSHIP as an application sees them (DDS 1.4 §2.2.3.7, §2.2.3.9, §2.2.3.11).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::*;
use takt::qos::*;
use takt::status::{DeadlineMissedStatus, LivelinessLostStatus};
use takt::*;

const PERIOD: takt::Duration = takt::Duration::from_millis(100);

#[derive(Default)]
struct Told {
    offered: AtomicU64,
    requested: AtomicU64,
    lost: AtomicU64,
}

struct Watcher(Arc<Told>);

impl DataReaderListener<Shape> for Watcher {
    fn on_requested_deadline_missed(&mut self, _: &DataReader<Shape>, status: DeadlineMissedStatus) {
        assert!(status.last_instance.is_some());
        self.0.requested.store(status.total_count, Ordering::SeqCst);
    }
}

impl DataWriterListener<Shape> for Watcher {
    fn on_offered_deadline_missed(&mut self, _: &DataWriter<Shape>, status: DeadlineMissedStatus) {
        assert!(status.last_instance.is_some());
        self.0.offered.store(status.total_count, Ordering::SeqCst);
    }

    fn on_liveliness_lost(&mut self, _: &DataWriter<Shape>, status: LivelinessLostStatus) {
        self.0.lost.store(u64::from(status.total_count), Ordering::SeqCst);
    }
}

#[test]
fn a_writer_and_a_reader_are_told_of_missed_deadlines() {
    for runtime in RUNTIMES {
        let deadline = Deadline { period: PERIOD };
        let writer = DataWriterQos { deadline, ..reliable_writer(History::KeepAll) };
        let reader = DataReaderQos { deadline, ..reliable_reader(History::KeepAll) };
        let pair = Pair::<Shape>::new(runtime, writer, reader);
        let told = Arc::new(Told::default());
        pair.reader.set_listener(Box::new(Watcher(Arc::clone(&told)))).expect("open");
        pair.writer.set_listener(Box::new(Watcher(Arc::clone(&told)))).expect("open");
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        pair.wait_until("missed deadlines", || {
            told.offered.load(Ordering::SeqCst) >= 3 && told.requested.load(Ordering::SeqCst) >= 3
        });
        pair.writer.dispose(&Shape::new("RED", 1)).expect("room");
        assert_eq!(told.lost.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_writer_is_told_that_it_was_not_asserted() {
    for runtime in RUNTIMES {
        let liveliness = Liveliness { kind: LivelinessKind::ManualByTopic, lease_duration: PERIOD };
        let writer = DataWriterQos { liveliness, ..reliable_writer(History::KeepAll) };
        let pair = Pair::<Shape>::new(runtime, writer, reliable_reader(History::KeepAll));
        let told = Arc::new(Told::default());
        pair.writer.set_listener(Box::new(Watcher(Arc::clone(&told)))).expect("open");
        pair.wait_until("the end of the lease", || told.lost.load(Ordering::SeqCst) == 1);
        pair.writer.assert_liveliness().expect("open");
        pair.wait_until("the end of the next", || told.lost.load(Ordering::SeqCst) == 2);
        assert_eq!(pair.writer.liveliness_lost_status().expect("open").total_count_change, 0, "it was told");
    }
}

#[test]
fn the_stronger_writer_is_heard_until_it_is_closed() {
    for runtime in RUNTIMES {
        let owned = |strength| DataWriterQos {
            ownership: Ownership::Exclusive,
            ownership_strength: OwnershipStrength(strength),
            ..reliable_writer(History::KeepAll)
        };
        let reader = DataReaderQos { ownership: Ownership::Exclusive, ..reliable_reader(History::KeepAll) };
        let pair = Pair::<Shape>::new(runtime, owned(10), reader);
        let weak = create_writer::<Shape>(&pair.publisher, "Topic", owned(1));
        let matched = || pair.reader.matched_publications().expect("open").len();
        pair.wait_until("both writers", || matched() == 2 && !weak.matched_subscriptions().expect("open").is_empty());
        let numbers = |samples: Vec<Sample<Shape>>| -> Vec<_> {
            samples.into_iter().filter_map(|sample| sample.data).map(|shape| shape.x).collect()
        };
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        assert_eq!(numbers(pair.take(1)), [1]);
        weak.write(&Shape::new("RED", 2)).expect("room");
        weak.write(&Shape::new("BLUE", 3)).expect("room");
        assert_eq!(numbers(pair.take(1)), [3], "{runtime:?}: nobody else writes BLUE");
        pair.writer.close().expect("open");
        pair.wait_until("the owner to go", || matched() == 1);
        weak.write(&Shape::new("RED", 4)).expect("room");
        pair.wait_until("the other one", || {
            let samples = pair.reader.take(usize::MAX).expect("open");
            samples.iter().any(|sample| sample.data.as_ref().is_some_and(|shape| shape.x == 4))
        });
    }
}
