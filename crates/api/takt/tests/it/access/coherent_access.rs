//! Coherent sets and ordered access through the public API (DDS 1.4 §2.2.3.6,
//! §2.2.2.4.1, §2.2.2.5.2).

use std::collections::BTreeMap;

use crate::support::*;
use takt::qos::*;
use takt::*;

const COLORS: [&str; 4] = ["BLUE", "GREEN", "RED", "YELLOW"];
const TOPICS: [&str; 3] = ["Circle", "Square", "Triangle"];

struct World {
    participants: [DomainParticipant; 2],
    publisher: Publisher,
    subscriber: Subscriber,
    writers: Vec<DataWriter<Shape>>,
    readers: Vec<DataReader<Shape>>,
}

fn world(runtime: Runtime, presentation: Presentation, topics: &[&str]) -> World {
    let domain = domain();
    let participants = [(); 2].map(|()| on_loopback(domain, runtime).build().expect("participant"));
    let publisher_qos = PublisherQos { presentation, ..PublisherQos::default() };
    let publisher = participants[0].create_publisher(publisher_qos).expect("publisher");
    let subscriber_qos = SubscriberQos { presentation, ..SubscriberQos::default() };
    let subscriber = participants[1].create_subscriber(subscriber_qos).expect("subscriber");
    let (mut writers, mut readers) = (Vec::new(), Vec::new());
    for name in topics {
        let topic = participants[0].create_topic::<Shape>(name, TopicQos::default()).expect("topic");
        writers.push(publisher.create_datawriter(&topic, reliable_writer(History::KeepAll)).expect("writer"));
        let topic = participants[1].create_topic::<Shape>(name, TopicQos::default()).expect("topic");
        readers.push(subscriber.create_datareader(&topic, reliable_reader(History::KeepAll)).expect("reader"));
    }
    let world = World { participants, publisher, subscriber, writers, readers };
    world.wait_until("matches", || {
        let has_reader = |writer: &DataWriter<Shape>| writer.matched_subscriptions().expect("open").len() == 1;
        let has_writer = |reader: &DataReader<Shape>| reader.matched_publications().expect("open").len() == 1;
        world.writers.iter().all(has_reader) && world.readers.iter().all(has_writer)
    });
    world
}

impl World {
    fn wait_until(&self, what: &str, condition: impl FnMut() -> bool) {
        wait_until(&[&self.participants[0], &self.participants[1]], what, condition);
    }

    /// Takes the samples of all readers during one access.
    fn take(&self) -> Vec<Vec<Shape>> {
        self.subscriber.begin_access().expect("open");
        let take = |reader: &DataReader<Shape>| reader.take(usize::MAX).expect("access is open");
        let taken = self.readers.iter().map(take).map(|samples| data(samples).collect()).collect();
        self.subscriber.end_access().expect("it was begun");
        taken
    }
}

fn data(samples: Vec<Sample<Shape>>) -> impl Iterator<Item = Shape> {
    samples.into_iter().filter_map(|sample| sample.data)
}

/// Writes three changes of four instances in three topics as one coherent set.
fn write_set(world: &World, round: i32) {
    world.publisher.begin_coherent_changes().expect("open");
    for x in 0..3 {
        for writer in &world.writers {
            for color in COLORS {
                writer.write(&Shape::new(color, round * 3 + x)).expect("room");
            }
        }
    }
}

#[test]
fn coherent_set_of_thirty_six_changes_becomes_visible_at_once() {
    let presentation = Presentation { access_scope: AccessScope::Group, coherent_access: true, ordered_access: false };
    for runtime in RUNTIMES {
        let world = world(runtime, presentation, &TOPICS);
        for round in 0..5 {
            write_set(&world, round);
            // All samples have arrived, but none is visible.
            let acknowledged = || world.writers.iter().all(is_acknowledged);
            world.wait_until("acknowledgments", acknowledged);
            assert!(world.take().iter().all(Vec::is_empty), "{runtime:?}");
            world.publisher.end_coherent_changes().expect("it was begun");
            let mut taken = Vec::new();
            world.wait_until("the set", || {
                taken = world.take();
                !taken.iter().all(Vec::is_empty)
            });
            for topic in &taken {
                assert_eq!(topic.len(), 12, "{runtime:?}: {taken:?}");
                let mut of_color = BTreeMap::<_, Vec<_>>::new();
                topic.iter().for_each(|shape| of_color.entry(shape.color.as_str()).or_default().push(shape.x));
                assert!(of_color.values().all(|xs| *xs == [0, 1, 2].map(|x| round * 3 + x)), "{of_color:?}");
            }
        }
    }
}

fn is_acknowledged(writer: &DataWriter<Shape>) -> bool {
    match writer.wait_for_acknowledgments(takt::Duration::ZERO) {
        Ok(()) => true,
        Err(Error::Timeout { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn scope_topic_forms_one_coherent_set_per_writer() {
    let presentation = Presentation { access_scope: AccessScope::Topic, coherent_access: true, ordered_access: false };
    let world = world(Runtime::Inline, presentation, &TOPICS);
    write_set(&world, 0);
    world.wait_until("acknowledgments", || world.writers.iter().all(is_acknowledged));
    let peek = |reader: &DataReader<Shape>| reader.read(usize::MAX).expect("access need not be open").len();
    assert!(world.readers.iter().all(|reader| peek(reader) == 0));
    world.publisher.end_coherent_changes().expect("it was begun");
    world.wait_until("the sets", || world.readers.iter().all(|reader| peek(reader) == 12));
    assert!(matches!(world.publisher.end_coherent_changes(), Err(Error::PreconditionNotMet { .. })));
}

#[test]
fn group_ordered_access_returns_samples_in_write_order() {
    let presentation = Presentation { access_scope: AccessScope::Group, coherent_access: false, ordered_access: true };
    for runtime in RUNTIMES {
        let world = world(runtime, presentation, &TOPICS);
        let order: Vec<usize> = (0..60).map(|x| x * x % 7 % 3).collect();
        for (x, writer) in order.iter().enumerate() {
            world.writers[*writer].write(&Shape::new("RED", x as i32)).expect("room");
        }
        assert!(matches!(world.readers[0].take(1), Err(Error::PreconditionNotMet { .. })), "access is not open");
        for _ in 0..2 {
            let next = world.readers[0].take_next_sample(&mut Shape::default());
            assert!(matches!(next, Err(Error::PreconditionNotMet { .. })), "access is not open");
        }
        let mut seen = Vec::new();
        world.wait_until("samples", || {
            world.subscriber.begin_access().expect("open");
            for named in world.subscriber.datareaders_with(&Selector::READ).expect("access is open") {
                let reader = world.readers.iter().find(|reader| reader.guid() == named.guid()).expect("one of ours");
                let samples = reader.take(usize::MAX).expect("access is open");
                assert_eq!(samples.len(), 1, "the next one may be another reader's");
                seen.extend(data(samples).map(|shape| shape.x));
            }
            world.subscriber.end_access().expect("it was begun");
            seen.len() == order.len()
        });
        assert_eq!(seen, (0..60).collect::<Vec<i32>>(), "{runtime:?}");
    }
}

#[test]
fn ordered_access_orders_by_instance_or_by_topic() {
    for (access_scope, expected) in [(AccessScope::Instance, false), (AccessScope::Topic, true)] {
        let presentation = Presentation { access_scope, coherent_access: false, ordered_access: true };
        let world = world(Runtime::Shared, presentation, &["Square"]);
        for x in 0..3 {
            for color in COLORS {
                world.writers[0].write(&Shape::new(color, x)).expect("room");
            }
        }
        world.wait_until("samples", || world.readers[0].read(usize::MAX).expect("open").len() == 12);
        let taken: Vec<Shape> = data(world.readers[0].take(usize::MAX).expect("open")).collect();
        let in_order = taken.is_sorted_by_key(|shape| shape.x);
        let by_instance = taken.chunks(3).all(|chunk| chunk.iter().all(|shape| shape.color == chunk[0].color));
        assert_eq!((in_order, by_instance), (expected, !expected), "{access_scope:?}: {taken:?}");
    }
}

#[test]
fn reader_requesting_more_presentation_than_offered_does_not_match() {
    let offered = Presentation { access_scope: AccessScope::Topic, coherent_access: true, ordered_access: false };
    let world = world(Runtime::Inline, offered, &["Square"]);
    for requested in
        [Presentation { access_scope: AccessScope::Group, ..offered }, Presentation { ordered_access: true, ..offered }]
    {
        let qos = SubscriberQos { presentation: requested, ..SubscriberQos::default() };
        let subscriber = world.participants[1].create_subscriber(qos).expect("subscriber");
        let topic = world.participants[1].create_topic::<Shape>("Square", TopicQos::default()).expect("topic");
        let reader = subscriber.create_datareader(&topic, reliable_reader(History::KeepAll)).expect("reader");
        world.wait_until("a refusal", || {
            let status = reader.requested_incompatible_qos_status().expect("open");
            status.last_policy == Some(takt::qos::PolicyId::Presentation)
        });
    }
}
