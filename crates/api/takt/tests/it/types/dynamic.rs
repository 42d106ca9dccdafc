//! Types learned from the network, and endpoints of types that are known only at run time.

use crate::support::*;
use takt::dynamic::{DynamicTypeSupport, TypeUnavailable, reader_policies_for, writer_policies_for};
use takt::qos::*;
use takt::xtypes::dynamic::{DynamicData, JsonValue};
use takt::*;

/// A type that consists of other types and contains itself.
#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "zoo::Animal")]
struct Animal {
    #[dds(key)]
    name: String,
    kind: Kind,
    legs: Vec<Leg>,
    young: Vec<Young>,
}

#[derive(DdsType, Clone, Copy, Debug, Default, PartialEq)]
#[dds(name = "zoo::Kind")]
enum Kind {
    #[default]
    Mammal,
    Bird,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(nested, name = "zoo::Leg", extensibility = "final")]
struct Leg {
    length_m: f64,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(nested, name = "zoo::Young")]
struct Young {
    name: String,
    young: Vec<Young>,
}

fn animal(name: &str) -> Animal {
    let young = Young { name: "chick".to_owned(), young: vec![Young::default()] };
    Animal { name: name.to_owned(), kind: Kind::Bird, legs: vec![Leg { length_m: 0.25 }; 2], young: vec![young] }
}

const TIMEOUT: Duration = Duration::from_secs(60);

/// The server has its own thread; the learning calls drive the other participant.
fn participants(runtime: Runtime) -> [DomainParticipant; 2] {
    let domain = domain();
    [Runtime::Shared, runtime].map(|runtime| on_loopback(domain, runtime).build().expect("participant"))
}

#[test]
fn learned_type_reads_and_writes_like_a_derived_one() {
    for runtime in RUNTIMES {
        let [server, learner] = participants(runtime);
        let qos = DataWriterQos { durability: Durability::TransientLocal, ..reliable_writer(History::KeepAll) };
        let writer = create_writer::<Animal>(&server, "Zoo", qos);
        writer.write(&animal("owl")).expect("room");
        let type_ = learner.learn_type("Zoo", TIMEOUT).expect("the type is learned");
        assert_eq!((type_.type_name(), type_.has_key()), ("zoo::Animal", true));
        let dynamic = type_.dynamic_type().expect("it is known");
        let idl = dynamic.to_idl();
        assert!(["module zoo", "struct Young", "enum Kind", "@key"].iter().all(|word| idl.contains(word)), "{idl}");

        let publication = learner.discovered_publications().expect("open").remove(0);
        let policies = reader_policies_for(&publication);
        let subscriber = learner.create_subscriber(policies.subscriber).expect("subscriber");
        let reader = subscriber.create_dynamic_datareader("Zoo", &type_, policies.reader).expect("reader");
        let mut samples = Vec::new();
        wait_until(&[&learner], "the late joiner's sample", || {
            samples.extend(reader.take(10).expect("open"));
            !samples.is_empty()
        });
        let value = samples.remove(0).value.expect("decoded").expect("well-formed");
        assert_eq!(value.member("name"), Some(&DynamicData::String("owl".to_owned())));
        let JsonValue::Object(members) = dynamic.to_json(&value) else { panic!("a structure is an object") };
        assert_eq!(members[1], ("kind".to_owned(), JsonValue::String("Bird".to_owned())));

        writer.dispose(&animal("owl")).expect("room");
        wait_until(&[&learner], "the end of the instance", || {
            samples.extend(reader.take(10).expect("open"));
            !samples.is_empty()
        });
        assert_eq!(samples[0].info.instance_state, InstanceState::NotAliveDisposed);
        let key = samples[0].value.as_ref().expect("the key is known").as_ref().expect("well-formed");
        assert_eq!(key.member("name"), Some(&DynamicData::String("owl".to_owned())));
    }
}

#[test]
fn dynamic_writer_delivers_instances_to_a_derived_reader() {
    for runtime in RUNTIMES {
        for representation in [DataRepresentation::xcdr1(), DataRepresentation::xcdr2()] {
            let [server, learner] = participants(runtime);
            let qos = DataReaderQos { data_representation: representation, ..reliable_reader(History::KeepAll) };
            let reader = create_reader::<Animal>(&server, "Zoo", qos);
            let type_ = learner.learn_type("Zoo", TIMEOUT).expect("the type is learned");
            let subscription = learner.discovered_subscriptions().expect("open").remove(0);
            let policies = writer_policies_for(&subscription);
            let publisher = learner.create_publisher(policies.publisher).expect("publisher");
            let writer = publisher.create_dynamic_datawriter("Zoo", &type_, policies.writer).expect("writer");
            wait_until(&[&learner], "match", || {
                writer.publication_matched_status().expect("open").current_count == 1
                    && !reader.matched_publications().expect("open").is_empty()
            });
            let dynamic = type_.dynamic_type().expect("it is known");
            let json = JsonValue::Object(vec![
                ("name".to_owned(), JsonValue::String("emu".to_owned())),
                ("kind".to_owned(), JsonValue::String("Bird".to_owned())),
            ]);
            let data = dynamic.from_json(&json).expect("a value of the type");
            writer.write(&data).expect("room");
            writer.dispose(&data).expect("room");
            let mut samples = Vec::new();
            wait_until(&[&learner], "both", || {
                samples.extend(reader.take(10).expect("open"));
                samples.len() == 2
            });
            let expected = Animal { name: "emu".to_owned(), kind: Kind::Bird, ..Animal::default() };
            assert_eq!(samples[0].data, Some(expected.clone()), "{runtime:?}");
            assert_eq!(samples[1].key.as_ref().map(|key| &key.name), Some(&expected.name));
            assert_eq!(samples[0].info.instance_handle, samples[1].info.instance_handle, "one instance");
            assert_eq!(samples[1].info.instance_state, InstanceState::NotAliveDisposed);
        }
    }
}

/// Two programs know the type only from learning it; the program from which they learned it has
/// left.
#[test]
fn learned_type_in_use_is_served_to_other_participants() {
    let domain = domain();
    let [first, second, third] =
        [Runtime::Shared; 3].map(|runtime| on_loopback(domain, runtime).build().expect("participant"));
    let writer = create_writer::<Animal>(&first, "Zoo", DataWriterQos::default());
    let learned = second.learn_type("Zoo", TIMEOUT).expect("the type is learned");
    let publisher = second.create_publisher(PublisherQos::default()).expect("publisher");
    let own = publisher.create_dynamic_datawriter("Zoo", &learned, DataWriterQos::default()).expect("writer");
    first.close().expect("open");
    drop(writer);
    wait_until(&[], "the second alone", || {
        let publications = third.discovered_publications().expect("open");
        publications.len() == 1 && publications[0].guid == own.guid()
    });
    let again = third.learn_type("Zoo", TIMEOUT).expect("the type is learned from the second");
    let idl = |type_: &DynamicTypeSupport| type_.dynamic_type().expect("it is known").to_idl();
    assert_eq!(idl(&again), idl(&learned));
}

#[test]
fn derived_type_equals_the_type_learned_from_it() {
    let [server, learner] = participants(Runtime::Inline);
    let _writer = create_writer::<Animal>(&server, "Zoo", DataWriterQos::default());
    let learned = learner.learn_type("Zoo", TIMEOUT).expect("the type is learned");
    let own = DynamicTypeSupport::of::<Animal>().expect("within the limits");
    let idl = |type_: &DynamicTypeSupport| type_.dynamic_type().expect("it is known").to_idl();
    assert_eq!(idl(&learned), idl(&own));
}

#[test]
fn learning_failure_reports_its_reason() {
    let [_server, learner] = participants(Runtime::Inline);
    let error = learner.learn_type("Nothing", Duration::from_millis(100)).expect_err("no participant is there");
    assert!(
        matches!(&error, Error::TypeUnavailable(TypeUnavailable::NoEndpoint { topic_name }) if topic_name == "Nothing"),
        "{error}"
    );
}

/// A reader of an opaque type receives the payloads.
#[test]
fn opaque_reader_receives_payloads() {
    let [server, reader_side] = participants(Runtime::Inline);
    let writer = create_writer::<Shape>(&server, "Shapes", reliable_writer(History::KeepAll));
    let type_ = DynamicTypeSupport::opaque("Shape", true);
    let subscriber = reader_side.create_subscriber(SubscriberQos::default()).expect("subscriber");
    let qos = reliable_reader(History::KeepAll);
    let reader = subscriber.create_dynamic_datareader("Shapes", &type_, qos).expect("reader");
    wait_until(&[&reader_side], "match", || {
        reader.subscription_matched_status().expect("open").current_count == 1
            && !writer.matched_subscriptions().expect("open").is_empty()
    });
    let shape = Shape::new("RED", 5);
    writer.write(&shape).expect("room");
    let mut samples = Vec::new();
    wait_until(&[&reader_side], "a sample", || {
        samples.extend(reader.take(10).expect("open"));
        !samples.is_empty()
    });
    assert!(samples[0].value.is_none());
    let mut decoded = Shape::default();
    takt::xtypes::deserialize(&mut decoded, &samples[0].payload).expect("the bytes are all there");
    assert_eq!(decoded, shape);
    let publisher = reader_side.create_publisher(PublisherQos::default()).expect("publisher");
    let refused = publisher.create_dynamic_datawriter("Shapes", &type_, DataWriterQos::default());
    assert!(matches!(refused, Err(Error::IllegalOperation { .. })), "an opaque type cannot be written");
}
