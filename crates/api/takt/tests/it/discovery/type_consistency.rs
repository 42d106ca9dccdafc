//! TYPE_CONSISTENCY_ENFORCEMENT: different types of one name match if the reader's type is
//! assignable from the writer's, and samples then have the correct values.

use crate::support::*;
use takt::dynamic::DynamicTypeSupport;
use takt::qos::*;
use takt::*;

/// Types of one name, as in programs of different versions.
macro_rules! versions {
    ($($name:ident as $of:literal ($extensibility:literal) { $($(($($attribute:tt)*))? $member:ident: $type:ty),* $(,)? })*) => {$(
        #[derive(DdsType, Clone, Debug, Default, PartialEq)]
        #[dds(name = $of, extensibility = $extensibility)]
        struct $name {
            $($(#[dds($($attribute)*)])? $member: $type,)*
        }
    )*};
}

versions! {
    Old as "Pose" ("appendable") { (key) id: u32, x: f64 }
    New as "Pose" ("appendable") { (key) id: u32, x: f64, y: f64, (default = "map".to_owned()) frame: String }
    Other as "Pose" ("appendable") { (key) id: u32, x: f32 }
    OldPart as "Part" ("appendable") { a: i32 }
    NewPart as "Part" ("appendable") { a: i32, (default = 7) b: i32 }
    OldWhole as "Whole" ("appendable") { parts: Vec<OldPart>, last: u16 }
    NewWhole as "Whole" ("appendable") { parts: Vec<NewPart>, last: u16 }
    OldMutable as "Mutable" ("mutable") { (id = 1) a: i32, (id = 2) b: String }
    NewMutable as "Mutable" ("mutable") { (id = 3, default = 9) c: u8, (id = 2) b: String, (id = 1) a: i32 }
}

fn writer_in(representation: DataRepresentation) -> DataWriterQos {
    let qos = reliable_writer(History::KeepAll);
    DataWriterQos { durability: Durability::TransientLocal, data_representation: representation, ..qos }
}

fn reader_with(type_consistency: TypeConsistency) -> DataReaderQos {
    let qos = reliable_reader(History::KeepAll);
    DataReaderQos { durability: Durability::TransientLocal, type_consistency, ..qos }
}

/// Returns the sample that a reader of another type receives.
fn exchanged<W: TypeSupport, R: TypeSupport>(runtime: Runtime, representation: DataRepresentation, value: &W) -> R {
    let domain = domain();
    let publisher = on_loopback(domain, runtime).build().expect("participant");
    let subscriber = on_loopback(domain, runtime).build().expect("participant");
    let writer = create_writer::<W>(&publisher, "Topic", writer_in(representation));
    let reader = create_reader::<R>(&subscriber, "Topic", reader_with(TypeConsistency::default()));
    writer.write(value).expect("room");
    let mut samples = Vec::new();
    wait_until(&[&publisher, &subscriber], "the sample", || {
        samples.extend(reader.take(1).expect("open"));
        !samples.is_empty()
    });
    assert_eq!(publisher.diagnostics().refusals().expect("open"), []);
    samples.remove(0).data.expect("a value")
}

/// Returns the reason for which writer and reader do not match, as reported by each participant.
fn refused<W: TypeSupport, R: TypeSupport>(runtime: Runtime, type_consistency: TypeConsistency) -> [String; 2] {
    let domain = domain();
    let publisher = on_loopback(domain, runtime).build().expect("participant");
    let subscriber = on_loopback(domain, runtime).build().expect("participant");
    let writer = create_writer::<W>(&publisher, "Topic", writer_in(DataRepresentation::xcdr2()));
    let reader = create_reader::<R>(&subscriber, "Topic", reader_with(type_consistency));
    wait_until(&[&publisher, &subscriber], "refusals", || {
        writer.inconsistent_topic_status().expect("open").total_count == 1
            && reader.inconsistent_topic_status().expect("open").total_count == 1
    });
    assert_eq!(writer.matched_subscriptions().expect("open"), []);
    assert_eq!(reader.matched_publications().expect("open"), []);
    [&publisher, &subscriber].map(|participant| {
        let refusals = participant.diagnostics().refusals().expect("open");
        assert_eq!(refusals.len(), 1);
        match &refusals[0].reason {
            RefusalReason::TypesDiffer { reason } => reason.clone(),
            other => panic!("{other:?}"),
        }
    })
}

#[test]
fn missing_members_of_evolved_types_get_default_values() {
    let old = Old { id: 3, x: 1.5 };
    let new = New { id: 3, x: 1.5, y: -2.5, frame: "base".to_owned() };
    for runtime in RUNTIMES {
        for representation in [DataRepresentation::xcdr1(), DataRepresentation::xcdr2()] {
            let wider: New = exchanged(runtime, representation.clone(), &old);
            assert_eq!(wider, New { id: 3, x: 1.5, y: 0.0, frame: "map".to_owned() });
            let narrower: Old = exchanged(runtime, representation, &new);
            assert_eq!(narrower, old);
        }
    }
}

#[test]
fn nested_types_evolve_as_well() {
    let old = OldWhole { parts: vec![OldPart { a: 1 }, OldPart { a: 2 }], last: 3 };
    let new = NewWhole { parts: vec![NewPart { a: 1, b: 7 }, NewPart { a: 2, b: 7 }], last: 3 };
    let wider: NewWhole = exchanged(Runtime::Shared, DataRepresentation::xcdr2(), &old);
    assert_eq!(wider, new);
    let narrower: OldWhole = exchanged(Runtime::Shared, DataRepresentation::xcdr2(), &new);
    assert_eq!(narrower, old);
    let old = OldMutable { a: 1, b: "two".to_owned() };
    for representation in [DataRepresentation::xcdr1(), DataRepresentation::xcdr2()] {
        let wider: NewMutable = exchanged(Runtime::Shared, representation, &old);
        assert_eq!(wider, NewMutable { a: 1, b: "two".to_owned(), c: 9 });
    }
}

#[test]
fn unassignable_types_are_an_inconsistent_topic_and_the_member_is_named() {
    for runtime in RUNTIMES {
        for reason in refused::<Other, Old>(runtime, TypeConsistency::default()) {
            assert_eq!(reason, "member 'x': double for the reader, float from the writer", "{runtime:?}");
        }
    }
}

#[test]
fn disallowed_type_coercion_requires_equal_types() {
    let same = TypeConsistency::of(TypeConsistencyKind::DisallowTypeCoercion);
    for reason in refused::<New, Old>(Runtime::Shared, same) {
        assert_eq!(reason, "the reader's type lacks the member 'y'");
    }
    for reason in refused::<Old, New>(Runtime::Shared, same) {
        assert_eq!(reason, "the writer's type lacks the member 'y'");
    }
    let writer = writer_in(DataRepresentation::xcdr2());
    let pair = Pair::<Old>::new(Runtime::Shared, writer, reader_with(same));
    assert_eq!(pair.subscriber.diagnostics().refusals().expect("open"), []);
}

#[test]
fn prevented_type_widening_is_refused() {
    let narrow = TypeConsistency { prevent_type_widening: true, ..TypeConsistency::default() };
    for reason in refused::<New, Old>(Runtime::Shared, narrow) {
        assert_eq!(reason, "the reader's type lacks the member 'y'");
    }
}

#[test]
fn endpoint_without_type_information_matches_by_name_unless_validation_is_forced() {
    for force_type_validation in [false, true] {
        let domain = domain();
        let publisher = on_loopback(domain, Runtime::Shared).build().expect("participant");
        let subscriber = on_loopback(domain, Runtime::Shared).build().expect("participant");
        let writer = create_writer::<Old>(&publisher, "Topic", writer_in(DataRepresentation::xcdr1()));
        let opaque = DynamicTypeSupport::opaque("Pose", true);
        let group = subscriber.create_subscriber(SubscriberQos::default()).expect("subscriber");
        let policy = TypeConsistency { force_type_validation, ..TypeConsistency::default() };
        let reader = group.create_dynamic_datareader("Topic", &opaque, reader_with(policy)).expect("reader");
        let mut refusals = Vec::new();
        wait_until(&[], "match or refusals", || {
            refusals =
                [&publisher, &subscriber].into_iter().flat_map(|p| p.diagnostics().refusals().expect("open")).collect();
            !writer.matched_subscriptions().expect("open").is_empty() || refusals.len() == 2
        });
        let texts: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), if force_type_validation { 2 } else { 0 }, "{texts:?}");
        let reason = "their types differ: force_type_validation is set, but the reader announces no type";
        assert!(texts.iter().all(|text| text.ends_with(reason)), "{texts:?}");
        drop(reader);
    }
}

#[test]
fn types_of_endpoints_of_one_participant_are_compared() {
    for runtime in RUNTIMES {
        let participant = on_loopback(domain(), runtime).build().expect("participant");
        let writer = create_writer::<Old>(&participant, "Topic", writer_in(DataRepresentation::xcdr2()));
        let topic = participant.create_topic::<New>("Topic", TopicQos::default()).expect("a type of the same name");
        let group = participant.create_subscriber(SubscriberQos::default()).expect("subscriber");
        let reader = group.create_datareader(&topic, reader_with(TypeConsistency::default())).expect("reader");
        writer.write(&Old { id: 1, x: 2.0 }).expect("room");
        let mut samples = Vec::new();
        wait_until(&[&participant], "the sample", || {
            samples.extend(reader.take(1).expect("open"));
            !samples.is_empty()
        });
        let value = samples.remove(0).data.expect("a value");
        assert_eq!(value, New { id: 1, x: 2.0, y: 0.0, frame: "map".to_owned() });
    }
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "Bytes")]
struct Octets {
    bytes: Vec<u8>,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "Bytes")]
struct Uint8s {
    bytes: Vec<takt::xtypes::Uint8>,
}

#[test]
fn octets_and_uint8s_match_with_a_caution_naming_the_member() {
    let domain = domain();
    let [from, to] = [(); 2].map(|()| on_loopback(domain, Runtime::Shared).build().expect("participant"));
    let (writer, reader) = connect_types::<Octets, Uint8s>(&from, &to);
    for participant in [&from, &to] {
        wait_until(&[&from, &to], "a caution", || participant.diagnostics().cautions().expect("open").len() == 1);
        let caution = participant.diagnostics().cautions().expect("open").remove(0);
        assert_eq!((caution.writer(), caution.reader()), (writer.guid(), reader.guid()));
        assert_eq!(caution.what, "member 'bytes[]': uint8 for the reader, octet from the writer");
        assert_eq!(participant.diagnostics().refusals().expect("open"), []);
    }
}

/// Creates a writer and a reader whose types have one name, and waits until they match.
fn connect_types<W: TypeSupport, R: TypeSupport>(
    from: &DomainParticipant,
    to: &DomainParticipant,
) -> (DataWriter<W>, DataReader<R>) {
    let writer = create_writer::<W>(from, "Topic", writer_in(DataRepresentation::xcdr2()));
    let reader = create_reader::<R>(to, "Topic", reader_with(TypeConsistency::default()));
    writer.wait_for_readers(1, takt::Duration::from_secs(60)).expect("a match");
    (writer, reader)
}

#[derive(DdsType, Clone, Copy, Debug, Default, PartialEq)]
#[dds(name = "Mode")]
enum AppendableMode {
    #[default]
    Idle,
}

#[derive(DdsType, Clone, Copy, Debug, Default, PartialEq)]
#[dds(name = "Mode", extensibility = "final")]
enum FinalMode {
    #[default]
    Idle,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "State")]
struct OfAppendable {
    mode: AppendableMode,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "State")]
struct OfFinal {
    mode: FinalMode,
}

#[test]
fn enums_of_different_extensibility_are_refused_and_the_member_is_named() {
    for reason in refused::<OfAppendable, OfFinal>(Runtime::Shared, TypeConsistency::default()) {
        assert_eq!(reason, "member 'mode': final enum for the reader, appendable from the writer");
    }
}
