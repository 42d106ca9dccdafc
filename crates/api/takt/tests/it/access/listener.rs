//! Listeners: when they are called, on which thread, and what they may do.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::*;
use takt::qos::*;
use takt::status::{IncompatibleQosStatus, MatchedStatus};
use takt::*;

/// Listener that answers each sample on another topic, and so writes and takes inside the call.
struct Echo {
    answers: DataWriter<Shape>,
    sample: Shape,
}

impl DataReaderListener<Shape> for Echo {
    fn on_data_available(&mut self, reader: &DataReader<Shape>) {
        while let Some(info) = reader.take_next_sample(&mut self.sample).expect("open") {
            if info.valid_data {
                self.answers.write(&self.sample).expect("room");
            }
        }
    }
}

#[test]
fn listener_may_write_and_take() {
    for runtime in RUNTIMES {
        let qos = (reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        let pair = Pair::<Shape>::new(runtime, qos.0.clone(), qos.1.clone());
        let answers = create_writer::<Shape>(&pair.subscriber, "Answers", qos.0);
        let answered = create_reader::<Shape>(&pair.publisher, "Answers", qos.1);
        pair.wait_until("match of answers", || !answers.matched_subscriptions().expect("open").is_empty());
        pair.reader.set_listener(Box::new(Echo { answers, sample: Shape::default() })).expect("open");
        for x in 0..50 {
            pair.writer.write(&Shape::new("RED", x)).expect("room");
        }
        let mut received = Vec::new();
        pair.wait_until("answers", || {
            received.extend(answered.take(usize::MAX).expect("open"));
            received.len() == 50
        });
        for (x, sample) in (0..).zip(received) {
            assert_eq!(sample.data, Some(Shape::new("RED", x)), "{runtime:?}");
        }
    }
}

#[derive(Default)]
struct Observed {
    matched: AtomicU32,
    data: AtomicU32,
    incompatible: AtomicU32,
    threads: Mutex<Vec<Option<String>>>,
}

struct Watcher(Arc<Observed>);

impl Watcher {
    fn note_thread(&self) {
        self.0.threads.lock().expect("no panic").push(std::thread::current().name().map(str::to_owned));
    }
}

impl DataReaderListener<Shape> for Watcher {
    fn on_data_available(&mut self, _: &DataReader<Shape>) {
        self.0.data.fetch_add(1, Ordering::SeqCst);
        self.note_thread();
    }

    fn on_subscription_matched(&mut self, _: &DataReader<Shape>, status: MatchedStatus) {
        self.0.matched.store(status.current_count, Ordering::SeqCst);
        self.note_thread();
    }
}

impl DataWriterListener<Shape> for Watcher {
    fn on_publication_matched(&mut self, _: &DataWriter<Shape>, status: MatchedStatus) {
        self.0.matched.store(status.total_count, Ordering::SeqCst);
        self.note_thread();
    }

    fn on_offered_incompatible_qos(&mut self, _: &DataWriter<Shape>, status: IncompatibleQosStatus) {
        self.0.incompatible.store(status.total_count, Ordering::SeqCst);
    }
}

#[test]
fn listener_set_late_is_called_for_earlier_changes() {
    for runtime in RUNTIMES {
        let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        pair.wait_until("data", || pair.reader.status_changes().intersects(StatusMask::DATA_AVAILABLE));
        let seen = Arc::new(Observed::default());
        pair.reader.set_listener(Box::new(Watcher(Arc::clone(&seen)))).expect("open");
        pair.wait_until("calls", || seen.data.load(Ordering::SeqCst) > 0 && seen.matched.load(Ordering::SeqCst) == 1);
        let here = std::thread::current().name().map(str::to_owned);
        let expected = if runtime == Runtime::Shared { Some("takt-rx".to_owned()) } else { here };
        assert!(seen.threads.lock().expect("no panic").iter().all(|name| *name == expected), "{runtime:?}");
        assert!(!pair.reader.status_changes().intersects(StatusMask::DATA_AVAILABLE), "the listener was called");
    }
}

#[test]
fn cleared_listener_is_dropped_and_no_longer_called() {
    for runtime in RUNTIMES {
        let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        let seen = Arc::new(Observed::default());
        pair.reader.set_listener(Box::new(Watcher(Arc::clone(&seen)))).expect("open");
        pair.wait_until("match told", || seen.matched.load(Ordering::SeqCst) == 1);
        pair.reader.clear_listener().expect("open");
        pair.wait_until("drop", || Arc::strong_count(&seen) == 1);
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        pair.take(1);
        assert_eq!(seen.data.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn writer_listener_reports_matched_and_incompatible_readers() {
    for runtime in RUNTIMES {
        let writer = DataWriterQos { reliability: Reliability::BEST_EFFORT, ..DataWriterQos::default() };
        let pair = Pair::<Shape>::new(runtime, writer, DataReaderQos::default());
        let seen = Arc::new(Observed::default());
        pair.writer.set_listener(Box::new(Watcher(Arc::clone(&seen)))).expect("open");
        pair.wait_until("match told", || seen.matched.load(Ordering::SeqCst) == 1);
        let demanding = create_reader::<Shape>(&pair.subscriber, "Topic", reliable_reader(History::KeepAll));
        pair.wait_until("refusal told", || seen.incompatible.load(Ordering::SeqCst) == 1);
        assert_eq!(demanding.matched_publications().expect("open"), []);
    }
}

/// Listener that waits for data that its own thread would have to receive.
struct WaitingListener(Arc<Mutex<Option<Result<bool>>>>);

impl DataReaderListener<Shape> for WaitingListener {
    fn on_data_available(&mut self, reader: &DataReader<Shape>) {
        reader.take(usize::MAX).expect("open");
        let waitset = WaitSet::new().expect("descriptors");
        waitset.attach(reader.read_condition(Selector::READ)).expect("attached");
        assert!(!waitset.wait_any(takt::Duration::ZERO).expect("reading is allowed"));
        *self.0.lock().expect("no panic") = Some(waitset.wait_any(takt::Duration::INFINITE));
    }
}

#[test]
fn listener_cannot_wait_for_its_own_thread() {
    let qos = (reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    let pair = Pair::<Shape>::new(Runtime::Shared, qos.0, qos.1);
    let result = Arc::new(Mutex::new(None));
    pair.reader.set_listener(Box::new(WaitingListener(Arc::clone(&result)))).expect("open");
    pair.writer.write(&Shape::new("RED", 1)).expect("room");
    pair.wait_until("refusal", || result.lock().expect("no panic").is_some());
    let result = result.lock().expect("no panic").take();
    assert!(matches!(result, Some(Err(Error::IllegalOperation { .. }))), "{result:?}");
}

/// Listener that deletes its reader.
struct SelfDeleting {
    reader: Option<DataReader<Shape>>,
    calls: Arc<AtomicUsize>,
}

impl DataReaderListener<Shape> for SelfDeleting {
    fn on_data_available(&mut self, reader: &DataReader<Shape>) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        reader.close().expect("open");
        self.reader = None;
    }
}

#[test]
fn listener_may_delete_its_reader() {
    for runtime in RUNTIMES {
        let pair = Pair::<Shape>::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
        let calls = Arc::new(AtomicUsize::new(0));
        let listener = SelfDeleting { reader: Some(pair.reader.clone()), calls: Arc::clone(&calls) };
        pair.reader.set_listener(Box::new(listener)).expect("open");
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        pair.wait_until("end", || matches!(pair.reader.take(1), Err(Error::AlreadyDeleted)));
        pair.wait_until("the listener's drop", || Arc::strong_count(&calls) == 1);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        pair.wait_until("unmatch", || pair.writer.matched_subscriptions().expect("open").is_empty());
    }
}

struct ParticipantRecorder(Arc<Mutex<Vec<(Guid, bool)>>>);

impl PublisherListener for ParticipantRecorder {}

impl SubscriberListener for ParticipantRecorder {}

impl TopicListener for ParticipantRecorder {}

impl DomainParticipantListener for ParticipantRecorder {
    fn on_participant_discovered(&mut self, participant: Guid) {
        self.0.lock().expect("no panic").push((participant, true));
    }

    fn on_participant_lost(&mut self, participant: Guid) {
        self.0.lock().expect("no panic").push((participant, false));
    }
}

#[test]
fn participant_listener_reports_discovered_and_lost_participants() {
    for runtime in RUNTIMES {
        let domain = domain();
        let watching = on_loopback(domain, runtime).build().expect("participant");
        let seen = Arc::new(Mutex::new(Vec::new()));
        watching.set_listener(Box::new(ParticipantRecorder(Arc::clone(&seen)))).expect("open");
        let other = on_loopback(domain, runtime).build().expect("participant");
        let guid = other.guid();
        let length = || seen.lock().expect("no panic").len();
        wait_until(&[&watching, &other], "discovery", || length() == 1);
        drop(other);
        wait_until(&[&watching], "farewell", || length() == 2);
        assert_eq!(*seen.lock().expect("no panic"), [(guid, true), (guid, false)], "{runtime:?}");
    }
}
