//! Timing plans at run time: priorities and bounds of topics, and execution time statistics of
//! jobs.

use std::time::Duration;

use crate::support::*;
use takt::qos::*;
use takt::real_time::{JobKind, Priority};
use takt::*;

/// Returns a plan of the topic "Planned" on the executors "from" and "to".
fn plan(bound_ns: u64) -> TimingPlan {
    let timing = |writer, reader| TopicTiming {
        writer: Priority::new(writer),
        reader: Priority::new(reader),
        limit: None,
        bound: Some(Duration::from_nanos(bound_ns)),
    };
    let mut plan = TimingPlan::new("system.toml", ["from", "to", "other"]);
    plan.add("from", "Planned", timing(40, 40)).expect("room");
    plan.add("to", "Planned", timing(31, 32)).expect("room");
    plan
}

fn write_one(publisher: &DomainParticipant, subscriber: &DomainParticipant, qos: DataReaderQos) -> DataReader<Shape> {
    let topic = publisher.create_topic::<Shape>("Planned", TopicQos::default()).expect("topic");
    let writer = publisher.create_publisher(PublisherQos::default()).expect("publisher");
    let writer = writer.create_datawriter(&topic, reliable_writer(History::KeepAll)).expect("writer");
    let topic = subscriber.create_topic::<Shape>("Planned", TopicQos::default()).expect("topic");
    let reader = subscriber.create_subscriber(SubscriberQos::default()).expect("subscriber");
    let reader = reader.create_datareader(&topic, qos).expect("reader");
    let both = [publisher, subscriber];
    wait_until(&both, "match", || writer.matched_subscriptions().expect("open").len() == 1);
    writer.write(&Shape::new("RED", 1)).expect("room");
    wait_until(&both, "the sample", || !reader.take(1).expect("open").is_empty());
    reader
}

/// Returns the number of jobs of a kind and priority; `None` if there is no such class.
fn jobs(participant: &DomainParticipant, kind: JobKind, priority: i32) -> Option<u64> {
    let classes = participant.job_classes().expect("open");
    let class = classes.iter().find(|class| (class.kind, class.priority.get()) == (kind, priority));
    class.map(|class| class.durations.count())
}

#[test]
fn endpoints_use_the_plans_priorities_for_their_executor() {
    for runtime in RUNTIMES {
        let domain = domain();
        let build = |name| on_loopback(domain, runtime).shared_memory(false).name(name).timing_plan(plan(1)).build();
        let (from, to) = (build("from").expect("it is there"), build("to").expect("it is there"));
        let reader = write_one(&from, &to, reliable_reader(History::KeepAll));
        assert!(jobs(&to, JobKind::Receive, 32) >= Some(1), "{runtime:?}: by a port of its own");
        assert!(jobs(&from, JobKind::Transmit, 40).is_some() && jobs(&from, JobKind::Transmit, 31).is_none());
        let status = reader.latency_exceeded_status().expect("open").expect("it has a bound");
        assert_eq!((status.bound, status.limit), (Some(Duration::from_nanos(1)), None));
        assert_eq!((status.above_bound_count, status.total_count, status.ages.count()), (1, 0, 1), "no job is so fast");
    }
}

#[test]
fn explicit_settings_override_the_plan() {
    let domain = domain();
    let from = on_loopback(domain, Runtime::Inline).name("from").build().expect("participant");
    let to = on_loopback(domain, Runtime::Inline)
        .name("to")
        .timing_plan(plan(600_000_000_000))
        .build()
        .expect("it is there");
    let mut qos = reliable_reader(History::KeepAll);
    qos.property.set(PRIORITY_PROPERTY, "5", false);
    qos.property.set("rt.e2e_ns", "1", false);
    let reader = write_one(&from, &to, qos);
    assert_eq!(jobs(&to, JobKind::Callback, 32), None);
    assert!(jobs(&to, JobKind::Callback, 5).is_some());
    let status = reader.latency_exceeded_status().expect("open").expect("it has both");
    let expected = (Some(Duration::from_secs(600)), Some(Duration::from_nanos(1)));
    assert_eq!((status.bound, status.limit), expected);
    assert_eq!((status.above_bound_count, status.total_count), (0, 1), "ten minutes mean that the machine stalls");
}

#[test]
fn plan_without_the_executor_or_topic_is_rejected() {
    let domain = domain();
    let build = |name| on_loopback(domain, Runtime::Inline).name(name).timing_plan(plan(1)).build();
    let message = build("stranger").map(drop).expect_err("not in the plan").to_string();
    assert!(
        message.contains("system.toml: unknown executor \"stranger\"; known executors: from, other, to"),
        "{message}"
    );

    let other = build("other").expect("it is there");
    let topic = other.create_topic::<Shape>("Planned", TopicQos::default()).expect("topic");
    let subscriber = other.create_subscriber(SubscriberQos::default()).expect("subscriber");
    let message =
        subscriber.create_datareader(&topic, reliable_reader(History::KeepAll)).map(drop).expect_err("elsewhere");
    assert!(
        message.to_string().contains("no flow of topic \"Planned\" has a stage on the executor \"other\""),
        "{message}"
    );
    let mut qos = reliable_reader(History::KeepAll);
    qos.property.set(PRIORITY_PROPERTY, "0", false);
    let stated = subscriber.create_datareader(&topic, qos).expect("its priority is stated");
    assert_eq!(stated.latency_exceeded_status().expect("open"), None);
}

#[test]
fn executor_statistics_cover_its_participants_and_jobs() {
    let domain = domain();
    let executor = Executor::builder("to").start().expect("a thread");
    let from = on_loopback(domain, Runtime::Shared).name("from").build().expect("participant");
    let build =
        || on_loopback(domain, Runtime::Shared).shared_memory(false).executor(&executor).timing_plan(plan(1)).build();
    let (to, other) = (build().expect("it is there"), build().expect("it is there"));
    let job = executor.on_event(Priority::new(-7), "a \"loop\"", || {}).expect("room");
    job.trigger();
    write_one(&from, &to, reliable_reader(History::KeepAll));
    wait_until(&[], "a run", || job.statistics().durations.count() == 1);
    let text = |write: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| {
        let mut out = Vec::new();
        write(&mut out).expect("memory");
        String::from_utf8(out).expect("text")
    };
    let all = text(&|out| executor.write_job_statistics(out));
    assert!(all.starts_with("{\"executor\": \"to\", \"participants\": 2, \"version\": \""), "{all}");
    assert!(all.contains("{\"kind\": \"receive\", \"priority\": 32, \"count\": "), "{all}");
    assert!(all.contains("\"name\": \"a \\\"loop\\\"\", \"priority\": -7, \"count\": 1, "), "{all}");
    assert_eq!(all.matches("{\"kind\": \"timers\"").count(), 1, "of both participants together: {all}");
    let own = text(&|out| other.write_job_statistics(out));
    assert!(own.starts_with("{\"executor\": \"to\"") && !own.contains("\"priority\": 32"), "{own}");
    other.close().expect("open");
    assert!(other.write_job_statistics(Vec::new()).is_err());
}

#[test]
fn listener_on_another_executor_uses_its_priority_there() {
    let domain = domain();
    let from = on_loopback(domain, Runtime::Shared).name("from").build().expect("participant");
    let mut plan = TimingPlan::new("system.toml", ["to", "aside"]);
    let timing = |priority| TopicTiming {
        writer: Priority::new(priority),
        reader: Priority::new(priority),
        limit: None,
        bound: None,
    };
    plan.add("to", "Planned", timing(32)).expect("room");
    plan.add("aside", "Planned", timing(-5)).expect("room");
    let to = on_loopback(domain, Runtime::Shared).shared_memory(false).name("to").timing_plan(plan).build();
    let to = to.expect("it is there");
    let reader = write_one(&from, &to, reliable_reader(History::KeepAll));
    assert_eq!(reader.latency_exceeded_status().expect("open"), None, "neither limit nor bound");
    struct Taking;
    impl DataReaderListener<Shape> for Taking {
        fn on_data_available(&mut self, reader: &DataReader<Shape>) {
            reader.take(usize::MAX).expect("open");
        }
    }
    let other = Executor::builder("aside").start().expect("a thread");
    reader.set_listener(Box::new(Taking)).expect("open");
    reader.run_listener_on(Some(&other)).expect("room");
    let topic = from.create_topic::<Shape>("Planned", TopicQos::default()).expect("topic");
    let writer = from.create_publisher(PublisherQos::default()).expect("publisher");
    let writer = writer.create_datawriter(&topic, reliable_writer(History::KeepAll)).expect("writer");
    wait_until(&[], "match", || writer.matched_subscriptions().expect("open").len() == 1);
    writer.write(&Shape::new("RED", 2)).expect("room");
    wait_until(&[], "a call there", || {
        let mut statistics = Vec::new();
        other.write_job_statistics(&mut statistics).expect("memory");
        String::from_utf8(statistics).expect("text").contains("\"name\": \"Planned\", \"priority\": -5, ")
    });
}

#[test]
fn set_qos_before_enable_keeps_priority_and_bound_of_the_reader() {
    let domain = domain();
    let from = on_loopback(domain, Runtime::Shared).name("from").build().expect("participant");
    let to = on_loopback(domain, Runtime::Shared).shared_memory(false).name("to").timing_plan(plan(1)).build();
    let to = to.expect("it is there");
    let entity_factory = EntityFactory { autoenable_created_entities: false };
    let subscriber =
        to.create_subscriber(SubscriberQos { entity_factory, ..SubscriberQos::default() }).expect("subscriber");
    let topic = to.create_topic::<Shape>("Planned", TopicQos::default()).expect("topic");
    let reader = subscriber.create_datareader(&topic, DataReaderQos::default()).expect("reader");
    reader.set_qos(reliable_reader(History::KeepAll)).expect("it is not enabled");
    reader.enable().expect("its subscriber is");
    let topic = from.create_topic::<Shape>("Planned", TopicQos::default()).expect("topic");
    let writer = from.create_publisher(PublisherQos::default()).expect("publisher");
    let writer = writer.create_datawriter(&topic, reliable_writer(History::KeepAll)).expect("writer");
    wait_until(&[], "match", || writer.matched_subscriptions().expect("open").len() == 1);
    writer.write(&Shape::new("RED", 1)).expect("room");
    wait_until(&[], "the sample", || !reader.take(1).expect("open").is_empty());
    let status = reader.latency_exceeded_status().expect("open").expect("it has a bound");
    assert_eq!((status.bound, status.above_bound_count), (Some(Duration::from_nanos(1)), 1));
    wait_until(&[], "an acknowledgment", || jobs(&to, JobKind::Transmit, 32) >= Some(1));
}
