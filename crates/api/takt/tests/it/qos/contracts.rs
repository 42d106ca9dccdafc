//! DEADLINE, E2E_LATENCY, manual LIVELINESS and OWNERSHIP through the public API (DDS 1.4 §2.2.3.7,
//! §2.2.3.9, §2.2.3.11).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::*;
use takt::qos::*;
use takt::status::{DeadlineMissedStatus, LatencyExceededStatus, LivelinessLostStatus};
use takt::*;

const PERIOD: takt::Duration = takt::Duration::from_millis(100);

#[derive(Default)]
struct ReportedCounts {
    offered: AtomicU64,
    requested: AtomicU64,
    lost: AtomicU64,
}

struct Watcher(Arc<ReportedCounts>);

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
fn missed_deadline_is_reported_to_writer_and_reader() {
    for runtime in RUNTIMES {
        let deadline = Deadline { period: PERIOD };
        let writer = DataWriterQos { deadline, ..reliable_writer(History::KeepAll) };
        let reader = DataReaderQos { deadline, ..reliable_reader(History::KeepAll) };
        let pair = Pair::<Shape>::new(runtime, writer, reader);
        let reported = Arc::new(ReportedCounts::default());
        pair.reader.set_listener(Box::new(Watcher(Arc::clone(&reported)))).expect("open");
        pair.writer.set_listener(Box::new(Watcher(Arc::clone(&reported)))).expect("open");
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        pair.wait_until("missed deadlines", || {
            reported.offered.load(Ordering::SeqCst) >= 3 && reported.requested.load(Ordering::SeqCst) >= 3
        });
        pair.writer.dispose(&Shape::new("RED", 1)).expect("room");
        assert_eq!(reported.lost.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn expired_liveliness_is_reported_to_the_writer() {
    for runtime in RUNTIMES {
        let liveliness = Liveliness { kind: LivelinessKind::ManualByTopic, lease_duration: PERIOD };
        let writer = DataWriterQos { liveliness, ..reliable_writer(History::KeepAll) };
        let pair = Pair::<Shape>::new(runtime, writer, reliable_reader(History::KeepAll));
        let reported = Arc::new(ReportedCounts::default());
        pair.writer.set_listener(Box::new(Watcher(Arc::clone(&reported)))).expect("open");
        pair.wait_until("the end of the lease", || reported.lost.load(Ordering::SeqCst) == 1);
        pair.writer.assert_liveliness().expect("open");
        pair.wait_until("the end of the next", || reported.lost.load(Ordering::SeqCst) == 2);
        assert_eq!(pair.writer.liveliness_lost_status().expect("open").total_count_change, 0, "it was notified");
    }
}

#[test]
fn strongest_writer_owns_the_instance_until_it_is_closed() {
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
        assert_eq!(numbers(pair.take(1)), [3], "{runtime:?}: no other writer writes BLUE");
        pair.writer.close().expect("open");
        pair.wait_until("the owner to go", || matched() == 1);
        weak.write(&Shape::new("RED", 4)).expect("room");
        pair.wait_until("the other one", || {
            let samples = pair.reader.take(usize::MAX).expect("open");
            samples.iter().any(|sample| sample.data.as_ref().is_some_and(|shape| shape.x == 4))
        });
    }
}

/// Listener that records latency statuses.
struct Ages(Arc<Mutex<Vec<LatencyExceededStatus>>>);

impl DataReaderListener<Shape> for Ages {
    fn on_latency_exceeded(&mut self, _: &DataReader<Shape>, status: LatencyExceededStatus) {
        self.0.lock().expect("no panic").push(status);
    }
}

#[test]
fn exceeded_latency_is_reported_to_the_listener() {
    for runtime in RUNTIMES {
        let domain = domain();
        let build = || on_loopback(domain, runtime).build().expect("participant");
        let (from, to) = (build(), build());
        let topic = from.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
        let publisher = from.create_publisher(PublisherQos::default()).expect("publisher");
        let writer = publisher.create_datawriter(&topic, reliable_writer(History::KeepAll)).expect("writer");
        let topic = to.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
        let subscriber = to.create_subscriber(SubscriberQos::default()).expect("subscriber");
        let mut qos = reliable_reader(History::KeepAll);
        // Ten minutes, so that only a suspended machine exceeds it.
        qos.property.set("rt.e2e_ns", "600000000000", false);
        let reader = subscriber.create_datareader(&topic, qos).expect("reader");
        let reported = Arc::default();
        reader.set_listener(Box::new(Ages(Arc::clone(&reported)))).expect("open");
        let both = [&from, &to];
        wait_until(&both, "match", || writer.matched_subscriptions().expect("open").len() == 1);
        writer.write(&Shape::new("RED", 1)).expect("room");
        wait_until(&both, "the sample", || reader.take(1).expect("open").len() == 1);
        let status = reader.latency_exceeded_status().expect("open").expect("it has a limit");
        assert_eq!((status.total_count, status.ages.count()), (0, 1));
        assert!(reported.lock().expect("no panic").is_empty());

        let mut qos = reliable_reader(History::KeepAll);
        qos.property.set("rt.e2e_ns", "1", false);
        let hurried = subscriber.create_datareader(&topic, qos).expect("reader");
        let reported = Arc::default();
        hurried.set_listener(Box::new(Ages(Arc::clone(&reported)))).expect("open");
        wait_until(&both, "match", || writer.matched_subscriptions().expect("open").len() == 2);
        writer.write(&Shape::new("RED", 2)).expect("room");
        wait_until(&both, "the status", || !reported.lock().expect("no panic").is_empty());
        let status = reported.lock().expect("no panic")[0].clone();
        assert_eq!(
            (status.limit, status.total_count, status.total_count_change),
            (Some(Duration::from_nanos(1)), 1, 1),
            "no thread is so fast"
        );
        let last_ns = status.last.as_nanos();
        assert!(last_ns > 1 && u128::from(status.ages.max_ns()) == last_ns);
    }
}

#[test]
fn write_blocks_only_until_the_minimum_separation_ends() {
    for runtime in RUNTIMES {
        // Far longer than all separations together. A write that waits for another timer, or for
        // this timeout, takes most of it.
        let timeout = std::time::Duration::from_secs(30);
        let reliability = Reliability { max_blocking_time: timeout.into(), ..Reliability::BEST_EFFORT };
        let mut qos = DataWriterQos { reliability, ..DataWriterQos::default() };
        let minimum_separation = Some(takt::Duration::from_millis(5));
        Contract { minimum_separation, ..Contract::default() }.put_into_writer(&mut qos);
        let pair = Pair::<Shape>::new(runtime, qos, DataReaderQos::default());
        let begin = std::time::Instant::now();
        for x in 0..40 {
            pair.writer.write(&Shape::new("RED", x)).expect("the separation ends");
        }
        assert!(begin.elapsed() < timeout, "{runtime:?}: writes waited for {:?}", begin.elapsed());
    }
}
