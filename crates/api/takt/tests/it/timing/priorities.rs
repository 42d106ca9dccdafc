//! Priorities: urgent datagrams and listeners precede others, and budget overruns are reported.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{self, *};
use takt::qos::*;
use takt::real_time::{JobKind, Priority};
use takt::*;

/// Names of the listeners in the order of their calls.
type Order = Arc<Mutex<Vec<String>>>;

/// Two participants that exchange datagrams by sockets or by shared memory.
struct Pair {
    from: DomainParticipant,
    to: DomainParticipant,
}

impl Pair {
    fn new(runtime: Runtime) -> Self {
        Self::by(false, runtime)
    }

    fn by(shared_memory: bool, runtime: Runtime) -> Self {
        let domain = domain();
        let build = |runtime| on_loopback(domain, runtime).shared_memory(shared_memory).build().expect("participant");
        Self { from: build(Runtime::Inline), to: build(runtime) }
    }

    /// Returns the number of datagrams received by shared memory.
    fn carried_by_memory(&self) -> u64 {
        let stats = self.to.diagnostics().transport_stats().expect("open");
        stats.iter().filter(|traffic| traffic.name == "shm").map(|traffic| traffic.stats.datagrams_in).sum()
    }

    /// Creates a matched writer and reader of this topic.
    fn connect(&self, topic: &str, properties: &[(&str, &str)]) -> (DataWriter<Shape>, DataReader<Shape>) {
        connect(&self.from, &self.to, topic, reliable_writer(History::KeepAll), reader_with(properties))
    }
}

/// Sets a listener that records its name, performs an action, and takes all samples.
fn listen(reader: &DataReader<Shape>, name: &'static str, order: &Order, mut act: impl FnMut() + Send + 'static) {
    let order = Arc::clone(order);
    support::listen(reader, move |reader| {
        order.lock().expect("no panic").push(name.to_owned());
        act();
        reader.take(usize::MAX).expect("open");
    });
}

fn write(writer: &DataWriter<Shape>) {
    writer.write(&Shape::new("RED", 1)).expect("room");
}

#[test]
fn urgent_listener_is_called_first_for_any_order_of_writing() {
    let pair = Pair::new(Runtime::Inline);
    let (camera, camera_reader) = pair.connect("Camera", &[]);
    let (log, log_reader) = pair.connect("Log", &[(PRIORITY_PROPERTY, "-10")]);
    let (brake, brake_reader) = pair.connect("Brake", &[(PRIORITY_PROPERTY, "46")]);
    let order = Order::default();
    listen(&log_reader, "log", &order, || {});
    listen(&camera_reader, "camera", &order, || {});
    listen(&brake_reader, "brake", &order, || {});
    for writer in [&log, &camera, &brake] {
        write(writer);
    }
    wait_until(&[&pair.to], "three calls", || order.lock().expect("no panic").len() >= 3);
    assert_eq!(*order.lock().expect("no panic"), ["brake", "camera", "log"]);
}

#[test]
fn urgent_sample_arriving_during_a_listener_precedes_less_urgent_listeners() {
    let pair = Pair::new(Runtime::Inline);
    let (brake, brake_reader) = pair.connect("Brake", &[("rt.e2e_ns", "1000000")]);
    let order = Order::default();
    listen(&brake_reader, "brake", &order, || {});
    let connected: Vec<_> = (0..5).map(|number| pair.connect(&format!("Camera{number}"), &[])).collect();
    // The writing participant also belongs to this thread, which calls the listeners here.
    struct Handle(DataWriter<Shape>);
    // SAFETY: only one thread ever uses it, as explained above.
    unsafe impl Send for Handle {}
    let brake = Handle(brake);
    let mut has_written = false;
    let (first, rest) = connected.split_first().expect("five");
    listen(&first.1, "camera", &order, move || {
        let Handle(brake) = &brake;
        if !std::mem::replace(&mut has_written, true) {
            write(brake);
        }
    });
    rest.iter().for_each(|(_, reader)| listen(reader, "camera", &order, || {}));
    connected.iter().for_each(|(writer, _)| write(writer));
    // All of them have arrived and are called one after the other.
    wait_until(&[&pair.to], "six calls", || order.lock().expect("no panic").len() >= 6);
    let order = order.lock().expect("no panic");
    let brake = order.iter().position(|name| name == "brake").expect("it was called");
    assert_eq!((brake, order.len()), (1, 6), "after the one that ran when it arrived: {order:?}");
}

#[test]
fn urgent_sample_is_received_during_a_burst_of_other_topics() {
    for (runtime, shared_memory) in RUNTIMES.into_iter().flat_map(|runtime| [(runtime, false), (runtime, true)]) {
        let pair = Pair::by(shared_memory, runtime);
        let (camera, camera_reader) = pair.connect("Camera", &[]);
        let (brake, brake_reader) = pair.connect("Brake", &[(PRIORITY_PROPERTY, "46")]);
        let mut brakes = 0;
        for round in 0..200 {
            camera.write(&Shape::new("RED", round)).expect("room");
            if round % 10 == 0 {
                write(&brake);
            }
            brakes += brake_reader.take(usize::MAX).expect("open").len();
        }
        let mut cameras = 0;
        wait_until(&[&pair.from, &pair.to], "all samples", || {
            brakes += brake_reader.take(usize::MAX).expect("open").len();
            cameras += camera_reader.take(usize::MAX).expect("open").len();
            (brakes, cameras) == (20, 200)
        });
        assert_eq!(pair.carried_by_memory() >= 220, shared_memory);
        let classes = pair.to.job_classes().expect("open");
        let urgent = classes.iter().find(|class| class.kind == JobKind::Receive && class.priority == Priority::new(46));
        let count = urgent.expect("the reader has a class").durations.count();
        assert!(
            (1..=60).contains(&count),
            "{runtime:?}: each datagram of the urgent topic, and none of others: {count}"
        );
    }
}

#[test]
fn urgent_sample_overtakes_an_earlier_burst() {
    for shared_memory in [false, true] {
        let pair = Pair::by(shared_memory, Runtime::Inline);
        let (camera, camera_reader) = pair.connect("Camera", &[]);
        let (brake, brake_reader) = pair.connect("Brake", &[(PRIORITY_PROPERTY, "46")]);
        let order = Order::default();
        listen(&camera_reader, "camera", &order, || {});
        listen(&brake_reader, "brake", &order, || {});
        // Establishes the shared memory rings of both participants.
        write(&camera);
        wait_until(&[&pair.from, &pair.to], "the first", || !order.lock().expect("no panic").is_empty());
        order.lock().expect("no panic").clear();
        let before = pair.carried_by_memory();
        (0..200).for_each(|_| write(&camera));
        write(&brake);
        let is_called = || order.lock().expect("no panic").iter().any(|name| name == "camera");
        wait_until(&[&pair.to], "a camera's call", is_called);
        assert_eq!(order.lock().expect("no panic")[0], "brake", "by shared memory: {shared_memory}");
        assert_eq!(pair.carried_by_memory() > before, shared_memory);
    }
}

/// Occupies the thread for this duration.
fn work_for(duration: Duration) {
    let end = std::time::Instant::now() + duration;
    while std::time::Instant::now() < end {}
}

#[derive(Clone, Default)]
struct OverrunRecorder(Arc<Mutex<Vec<BudgetOverrunStatus>>>);

impl SubscriberListener for OverrunRecorder {}
impl PublisherListener for OverrunRecorder {}
impl TopicListener for OverrunRecorder {}
impl DomainParticipantListener for OverrunRecorder {
    fn on_budget_overrun(&mut self, status: BudgetOverrunStatus) {
        self.0.lock().expect("no panic").push(status);
    }
}

#[test]
fn overrunning_listener_is_reported_and_suspended() {
    for runtime in RUNTIMES {
        let pair = Pair::new(runtime);
        let properties = [(BUDGET_PROPERTY, "1000000"), (OVERRUN_PROPERTY, "suspend")];
        let (writer, reader) = pair.connect("Slow", &properties);
        let recorder = OverrunRecorder::default();
        pair.to.set_listener(Box::new(recorder.clone())).expect("open");
        let order = Order::default();
        listen(&reader, "slow", &order, || work_for(Duration::from_millis(3)));
        write(&writer);
        let both = [&pair.from, &pair.to];
        wait_until(&both, "the overrun", || !recorder.0.lock().expect("no panic").is_empty());
        let status = recorder.0.lock().expect("no panic")[0].clone();
        assert_eq!((status.total_count, status.total_count_change), (1, 1));
        assert_eq!((status.last.kind, status.last.suspended), (JobKind::Callback, true));
        let endpoint = status.last.endpoint.as_ref().expect("a listener's");
        assert_eq!((endpoint.guid, endpoint.topic.as_str()), (reader.guid(), "Slow"));
        assert_eq!(status.last.budget, Duration::from_millis(1));
        assert!(status.last.execution_time >= Duration::from_millis(3), "{}", status.last);

        write(&writer);
        wait_until(&both, "the sample", || reader.status_changes().intersects(StatusMask::DATA_AVAILABLE));
        assert_eq!(order.lock().expect("no panic").len(), 1, "{runtime:?}: it is not called any more");
        reader.resume_listener().expect("open");
        wait_until(&both, "the next call", || order.lock().expect("no panic").len() == 2);
        wait_until(&both, "the next overrun", || {
            pair.to.diagnostics().budget_overruns().expect("open").total_count == 2
        });
    }
}

#[test]
fn class_budget_counts_overruns_without_suspending() {
    let pair = Pair::new(Runtime::Inline);
    let (writer, reader) = pair.connect("Slow", &[]);
    let budget = Duration::from_micros(500);
    pair.to.set_job_budget(JobKind::Callback, Priority::NORMAL, budget).expect("open");
    let order = Order::default();
    listen(&reader, "slow", &order, || work_for(Duration::from_millis(1)));
    for calls in 1..=3 {
        write(&writer);
        wait_until(&[&pair.to], "a call", || order.lock().expect("no panic").len() == calls);
    }
    let overruns = pair.to.diagnostics().budget_overruns().expect("open");
    assert_eq!((overruns.total_count, overruns.last.len()), (3, 3));
    assert!(overruns.last.iter().all(|overrun| !overrun.suspended && overrun.endpoint.is_some()));
}

#[test]
fn job_trace_names_the_jobs_that_ran() {
    let pair = Pair::new(Runtime::Inline);
    let (writer, reader) = pair.connect("Square", &[]);
    let order = Order::default();
    listen(&reader, "square", &order, || {});
    pair.to.keep_job_trace(100).expect("room");
    write(&writer);
    wait_until(&[&pair.to], "a call", || !order.lock().expect("no panic").is_empty());
    let mut text = Vec::new();
    pair.to.write_job_trace(&mut text).expect("memory");
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("\"cat\":\"callback\",\"name\":\"callback Square\""), "{text}");
    assert!(text.contains("\"cat\":\"receive\""), "{text}");
    pair.to.keep_job_trace(0).expect("always");
    let refused = pair.to.keep_job_trace(TRACE_JOBS_MAX + 1);
    assert!(matches!(refused, Err(Error::OutOfResources { .. })), "{refused:?}");
}

#[test]
fn invalid_priority_property_is_rejected() {
    let participant = on_loopback(domain(), Runtime::Inline).build().expect("participant");
    let topic = participant.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
    let subscriber = participant.create_subscriber(SubscriberQos::default()).expect("subscriber");
    let mut qos = reliable_reader(History::KeepAll);
    qos.property.set(PRIORITY_PROPERTY, "100", false);
    let refused = subscriber.create_datareader(&topic, qos).map(drop);
    assert!(matches!(&refused, Err(Error::BadParameter { what, .. }) if what.contains("rt.priority")), "{refused:?}");
}
