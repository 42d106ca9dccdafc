//! Entity tree: selection of listeners (DDS 1.4 §2.2.4.2.3), enabling (DDS 1.4 §2.2.2.1.1.7),
//! changes of QoS, and lookup, ignoring and deletion of entities.

use crate::support::*;
use std::sync::{Arc, Mutex};
use takt::qos::*;
use takt::status::*;
use takt::*;

type Log = Arc<Mutex<Vec<String>>>;

/// Listener that logs its name and each call.
struct Scribe {
    name: &'static str,
    log: Log,
    /// Calls `notify_datareaders`, which passes samples to the readers' listeners.
    forwards: bool,
}

impl Scribe {
    fn new(name: &'static str, log: &Log) -> Box<Self> {
        Box::new(Self { name, log: Arc::clone(log), forwards: false })
    }

    fn note(&self, what: &str) {
        self.log.lock().expect("no panic").push(format!("{}: {what}", self.name));
    }
}

impl DataReaderListener<Shape> for Scribe {
    fn on_data_available(&mut self, reader: &DataReader<Shape>) {
        self.note(&format!("{} samples", reader.take(usize::MAX).expect("open").len()));
    }

    fn on_subscription_matched(&mut self, _: &DataReader<Shape>, _: MatchedStatus) {
        self.note("subscription matched");
    }
}

impl SubscriberListener for Scribe {
    fn on_data_on_readers(&mut self, subscriber: &Subscriber) {
        self.note("data on readers");
        if self.forwards {
            subscriber.notify_datareaders().expect("open");
        }
    }

    fn on_data_available(&mut self, reader: &AnyDataReader) {
        let reader = reader.downcast::<Shape>().expect("all readers are of shapes");
        self.note(&format!("{} samples", reader.take(usize::MAX).expect("open").len()));
    }

    fn on_subscription_matched(&mut self, _: &AnyDataReader, status: MatchedStatus) {
        self.note(&format!("subscription matched {}", status.current_count));
    }
}

impl PublisherListener for Scribe {
    fn on_publication_matched(&mut self, writer: &AnyDataWriter, status: MatchedStatus) {
        self.note(&format!("{} publication matched {}", writer.topic_name(), status.current_count));
    }
}

impl TopicListener for Scribe {
    fn on_inconsistent_topic(&mut self, topic: &AnyTopic, status: InconsistentTopicStatus) {
        self.note(&format!("{} inconsistent {}", topic.name(), status.total_count));
    }
}

impl DomainParticipantListener for Scribe {}

fn pair(runtime: Runtime) -> Pair<Shape> {
    Pair::new(runtime, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll))
}

/// Writes a sample and waits for the expected line of the log.
fn assert_log(pair: &Pair<Shape>, log: &Log, expected: &str) {
    log.lock().expect("no panic").clear();
    pair.writer.write(&Shape::new("RED", 1)).expect("room");
    pair.wait_until(expected, || log.lock().expect("no panic").iter().any(|line| line == expected));
}

#[test]
fn status_is_delivered_to_the_nearest_listener_whose_mask_contains_it() {
    for runtime in RUNTIMES {
        let (pair, log) = (pair(runtime), Log::default());
        let subscriber = pair.reader.subscriber();
        pair.subscriber.set_listener(Scribe::new("participant", &log)).expect("open");
        assert_log(&pair, &log, "participant: 1 samples");
        subscriber.set_listener(Scribe::new("subscriber", &log)).expect("open");
        assert_log(&pair, &log, "subscriber: 1 samples");
        let mask = StatusMask::SUBSCRIPTION_MATCHED;
        pair.reader.set_listener_with_mask(Scribe::new("reader", &log), mask).expect("open");
        assert_log(&pair, &log, "subscriber: 1 samples");
        pair.reader.set_listener(Scribe::new("reader", &log)).expect("open");
        assert_log(&pair, &log, "reader: 1 samples");
        pair.reader.clear_listener().expect("open");
        subscriber.clear_listener().expect("open");
        assert_log(&pair, &log, "participant: 1 samples");
        pair.subscriber.clear_listener().expect("open");
        assert_eq!(Arc::strong_count(&log), 1, "all listeners were dropped");
    }
}

#[test]
fn data_on_readers_replaces_data_available() {
    for runtime in RUNTIMES {
        let (pair, log) = (pair(runtime), Log::default());
        let subscriber = pair.reader.subscriber();
        let condition = subscriber.status_condition().expect("open");
        pair.reader.set_listener(Scribe::new("reader", &log)).expect("open");
        let mask = StatusMask::DATA_ON_READERS;
        subscriber.set_listener_with_mask(Scribe::new("subscriber", &log), mask).expect("open");
        assert_log(&pair, &log, "subscriber: data on readers");
        let of_reader = |line: &String| line.starts_with("reader") && line.ends_with("samples");
        assert!(!log.lock().expect("no panic").iter().any(of_reader), "the listener of the reader is not called");
        assert!(!condition.trigger_value(), "the listener was called");
        assert_eq!(pair.reader.take(usize::MAX).expect("open").len(), 1);

        let forwards = Scribe { forwards: true, ..*Scribe::new("subscriber", &log) };
        subscriber.set_listener_with_mask(Box::new(forwards), mask).expect("open");
        assert_log(&pair, &log, "reader: 1 samples");
        assert!(log.lock().expect("no panic").contains(&"subscriber: data on readers".to_owned()));

        subscriber.clear_listener().expect("open");
        pair.reader.clear_listener().expect("open");
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        pair.wait_until("condition", || condition.trigger_value());
        let ready = subscriber.datareaders_with(&Selector::READ).expect("open");
        assert_eq!(ready.len(), 1);
        assert_eq!(ready[0].guid(), pair.reader.guid());
        assert_eq!(pair.reader.take(usize::MAX).expect("open").len(), 1);
        assert!(!condition.trigger_value(), "the application has read the status");
        assert_eq!(subscriber.datareaders_with(&Selector::READ).expect("open").len(), 0);
    }
}

#[test]
fn statuses_of_writers_and_topics_reach_listeners_of_higher_levels() {
    for runtime in RUNTIMES {
        let (domain, log) = (domain(), Log::default());
        let ours = on_loopback(domain, runtime).build().expect("participant");
        let theirs = on_loopback(domain, runtime).build().expect("participant");
        ours.set_listener(Scribe::new("participant", &log)).expect("open");
        let writer = create_writer::<Shape>(&ours, "T", reliable_writer(History::KeepAll));
        let _reader = create_reader::<Shape>(&theirs, "T", reliable_reader(History::KeepAll));
        let has = |line: &str| log.lock().expect("no panic").iter().any(|known| known == line);
        wait_until(&[&ours, &theirs], "match", || has("participant: T publication matched 1"));

        writer.publisher().set_listener(Scribe::new("publisher", &log)).expect("open");
        let _second = create_reader::<Shape>(&theirs, "T", reliable_reader(History::KeepAll));
        wait_until(&[&ours, &theirs], "match", || has("publisher: T publication matched 2"));

        let inconsistent = create_writer::<Shape>(&ours, "Strange", reliable_writer(History::KeepAll));
        let _reader = create_reader::<Blob>(&theirs, "Strange", reliable_reader(History::KeepAll));
        wait_until(&[&ours, &theirs], "inconsistency", || has("participant: Strange inconsistent 1"));
        inconsistent.topic().set_listener(Scribe::new("topic", &log)).expect("open");
        let _reader = create_reader::<Blob>(&theirs, "Strange", reliable_reader(History::KeepAll));
        wait_until(&[&ours, &theirs], "inconsistency", || has("topic: Strange inconsistent 2"));
        let status = inconsistent.topic().inconsistent_topic_status().expect("open");
        assert_eq!((status.total_count, status.total_count_change), (2, 0), "the listener has read it");
    }
}

#[test]
fn disabled_entities_have_no_effect_until_enabled() {
    for runtime in RUNTIMES {
        let domain = domain();
        let theirs = on_loopback(domain, runtime).build().expect("participant");
        let reader = create_reader::<Shape>(&theirs, "T", reliable_reader(History::KeepAll));
        let ours = on_loopback(domain, runtime).enabled(false).build().expect("participant");
        let topic = ours.create_topic::<Shape>("T", TopicQos::default()).expect("topic");
        let factory = EntityFactory { autoenable_created_entities: false };
        let publisher = ours.create_publisher(PublisherQos { entity_factory: factory, ..Default::default() });
        let publisher = publisher.expect("publisher");
        let writer = publisher.create_datawriter(&topic, DataWriterQos::default()).expect("writer");
        assert!(matches!(writer.enable(), Err(Error::PreconditionNotMet { .. })));
        assert!(matches!(publisher.enable(), Err(Error::PreconditionNotMet { .. })));
        assert!(matches!(writer.write(&Shape::new("RED", 1)), Err(Error::NotEnabled)));
        writer.set_qos(reliable_writer(History::KeepAll)).expect("before it is enabled anything may change");

        ours.enable().expect("open");
        wait_until(&[&ours, &theirs], "participant", || theirs.discovered_participants().expect("open").len() == 1);
        assert!(matches!(writer.write(&Shape::new("RED", 1)), Err(Error::NotEnabled)), "publisher does not enable it");
        writer.enable().expect("its publisher is enabled");
        wait_until(&[&ours, &theirs], "match", || !writer.matched_subscriptions().expect("open").is_empty());
        writer.write(&Shape::new("RED", 1)).expect("room");
        wait_until(&[&ours, &theirs], "sample", || reader.take(1).expect("open").len() == 1);
        assert!(matches!(writer.set_qos(DataWriterQos::default()), Err(Error::ImmutablePolicy { .. })));
    }
}

#[test]
fn enabling_a_participant_enables_its_entities() {
    for runtime in RUNTIMES {
        let domain = domain();
        let theirs = on_loopback(domain, runtime).build().expect("participant");
        let writer = create_writer::<Shape>(&theirs, "T", reliable_writer(History::KeepAll));
        let ours = on_loopback(domain, runtime).enabled(false).build().expect("participant");
        let reader = create_reader::<Shape>(&ours, "T", reliable_reader(History::KeepAll));
        ours.enable().expect("open");
        // Each side discovers the other at its own time.
        wait_until(&[&ours, &theirs], "match", || {
            !writer.matched_subscriptions().expect("open").is_empty()
                && reader.matched_publications().expect("open").len() == 1
        });
    }
}

#[test]
fn mutable_policies_change_at_run_time() {
    for runtime in RUNTIMES {
        let pair = pair(runtime);
        let publisher = pair.writer.publisher();
        let partition = Partition { names: vec!["apart".to_owned()] };
        publisher.set_qos(PublisherQos { partition, ..publisher.qos() }).expect("PARTITION may change");
        pair.wait_until("parting", || pair.reader.matched_publications().expect("open").is_empty());
        publisher.set_qos(PublisherQos::default()).expect("PARTITION may change");
        pair.wait_until("match", || !pair.reader.matched_publications().expect("open").is_empty());

        let user_data = UserData(b"hello".to_vec());
        let qos = DataWriterQos {
            user_data: user_data.clone(),
            transport_priority: TransportPriority(3),
            ..pair.writer.qos()
        };
        pair.writer.set_qos(qos.clone()).expect("both may change");
        assert_eq!(pair.writer.qos(), qos);
        let data = || pair.reader.matched_publication_data(pair.writer.guid()).expect("matched");
        pair.wait_until("user data", || data().user_data == user_data);
        let topic_data = TopicData(b"topic".to_vec());
        pair.writer.topic().set_qos(TopicQos { topic_data: topic_data.clone(), ..TopicQos::default() }).expect("open");
        pair.wait_until("topic data", || data().topic_data == topic_data);
        let group_data = GroupData(b"group".to_vec());
        publisher.set_qos(PublisherQos { group_data: group_data.clone(), ..PublisherQos::default() }).expect("open");
        pair.wait_until("group data", || data().group_data == group_data);
        pair.writer.write(&Shape::new("RED", 1)).expect("room");
        pair.wait_until("sample by the new flow", || pair.reader.take(1).expect("open").len() == 1);
        assert_eq!(pair.reader.subscription_matched_status().expect("open").total_count, 2, "parted once");

        let name = DomainParticipantQos { entity_name: EntityName("other".to_owned()), ..pair.publisher.qos() };
        assert!(matches!(pair.publisher.set_qos(name), Err(Error::ImmutablePolicy { .. })));
    }
}

#[test]
fn parents_look_up_and_delete_their_entities() {
    for runtime in RUNTIMES {
        let pair = pair(runtime);
        let publisher = pair.writer.publisher();
        let found = publisher.lookup_datawriter(pair.writer.topic_name()).expect("it has one");
        assert_eq!((found.guid(), found.type_name()), (pair.writer.guid(), "Shape"));
        assert!(found.downcast::<Shape>().is_some() && found.downcast::<Blob>().is_none());
        assert!(publisher.lookup_datawriter("none").is_none());
        let reader = pair.reader.subscriber().lookup_datareader(pair.reader.topic_name()).expect("it has one");
        assert_eq!(reader.guid(), pair.reader.guid());
        assert_eq!(pair.publisher.lookup_topic(pair.writer.topic_name()).expect("it has one").type_name(), "Shape");
        assert!(pair.publisher.lookup_topic("none").is_none());
        assert!(pair.publisher.contains_entity(pair.writer.guid().into()));
        assert!(!pair.publisher.contains_entity(pair.reader.guid().into()));

        pair.publisher.delete_contained_entities().expect("open");
        assert!(matches!(pair.writer.write(&Shape::new("RED", 1)), Err(Error::AlreadyDeleted)));
        pair.wait_until("unmatch", || pair.reader.matched_publications().expect("open").is_empty());
        assert!(!pair.publisher.contains_entity(pair.writer.guid().into()) || publisher.datawriters().len() == 1);
        pair.reader.subscriber().delete_contained_entities().expect("open");
        assert!(matches!(pair.reader.take(1), Err(Error::AlreadyDeleted)));
    }
}

#[test]
fn ignored_entities_are_not_matched() {
    for runtime in RUNTIMES {
        let pair = pair(runtime);
        pair.subscriber.ignore_publication(pair.writer.guid()).expect("open");
        assert_eq!(pair.reader.matched_publications().expect("open"), []);
        pair.publisher.ignore_participant(pair.subscriber.guid()).expect("open");
        assert_eq!(pair.writer.matched_subscriptions().expect("open"), []);
        assert_eq!(pair.publisher.discovered_participants().expect("open").len(), 0);
    }
}

#[test]
fn suspended_publications_are_held_and_historical_data_can_be_awaited() {
    for runtime in RUNTIMES {
        let domain = domain();
        let ours = on_loopback(domain, runtime).build().expect("participant");
        let theirs = on_loopback(domain, runtime).build().expect("participant");
        let durability = Durability::TransientLocal;
        let writer =
            create_writer::<Shape>(&ours, "T", DataWriterQos { durability, ..reliable_writer(History::KeepAll) });
        for x in 0..20 {
            writer.write(&Shape::new("RED", x)).expect("room");
        }
        let reader =
            create_reader::<Shape>(&theirs, "T", DataReaderQos { durability, ..reliable_reader(History::KeepAll) });
        wait_until(&[&ours, &theirs], "match", || !reader.matched_publications().expect("open").is_empty());
        if runtime == Runtime::Shared {
            reader.wait_for_historical_data(takt::Duration::from_secs(60)).expect("it comes");
            assert_eq!(reader.take(usize::MAX).expect("open").len(), 20);
        } else {
            let mut count = 0;
            wait_until(&[&ours, &theirs], "history", || {
                count += reader.take(usize::MAX).expect("open").len();
                count == 20
            });
            reader.wait_for_historical_data(takt::Duration::ZERO).expect("it has come");
        }

        writer.publisher().suspend_publications().expect("open");
        writer.write(&Shape::new("RED", 20)).expect("room");
        assert!(matches!(writer.wait_for_acknowledgments(takt::Duration::from_millis(50)), Err(Error::Timeout { .. })));
        writer.publisher().resume_publications().expect("open");
        wait_until(&[&ours, &theirs], "sample", || reader.take(1).expect("open").len() == 1);
    }
}

#[test]
fn default_qos_is_stored_and_applied() {
    let participant = on_loopback(domain(), Runtime::Shared).build().expect("participant");
    let partition = Partition { names: vec!["p".to_owned()] };
    participant.set_default_publisher_qos(PublisherQos { partition, ..PublisherQos::default() });
    let publisher = participant.create_publisher(participant.default_publisher_qos()).expect("publisher");
    assert_eq!(publisher.qos().partition.names, ["p"]);
    let topic_qos = TopicQos { history: History::KeepLast(7), ownership: Ownership::Exclusive, ..TopicQos::default() };
    participant.set_default_topic_qos(topic_qos);
    let topic = participant.create_topic::<Shape>("T", participant.default_topic_qos()).expect("topic");
    let user_data = UserData(vec![1]);
    publisher.set_default_datawriter_qos(DataWriterQos { user_data: user_data.clone(), ..DataWriterQos::default() });
    let mut qos = publisher.default_datawriter_qos();
    qos.copy_from_topic(&topic.qos());
    assert_eq!((qos.history, qos.ownership, qos.user_data), (History::KeepLast(7), Ownership::Exclusive, user_data));
}
