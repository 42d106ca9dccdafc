//! Matching of writers and readers, and the reported reason where they do not match.

use crate::support::*;
use takt::qos::*;
use takt::*;

#[test]
fn writer_offering_less_is_incompatible_and_the_policy_is_reported() {
    for runtime in RUNTIMES {
        let domain = domain();
        let publisher = on_loopback(domain, runtime).build().expect("participant");
        let subscriber = on_loopback(domain, runtime).build().expect("participant");
        let offer = DataWriterQos { reliability: Reliability::BEST_EFFORT, ..DataWriterQos::default() };
        let writer = create_writer::<Shape>(&publisher, "Topic", offer);
        let reader = create_reader::<Shape>(&subscriber, "Topic", reliable_reader(History::KeepAll));
        let mut offered = writer.offered_incompatible_qos_status().expect("open");
        let mut requested = reader.requested_incompatible_qos_status().expect("open");
        wait_until(&[&publisher, &subscriber], "refusals", || {
            offered = writer.offered_incompatible_qos_status().expect("open");
            requested = reader.requested_incompatible_qos_status().expect("open");
            offered.total_count == 1 && requested.total_count == 1
        });
        for (status, participant) in [(offered, &publisher), (requested, &subscriber)] {
            assert_eq!(status.last_policy.map(|policy| policy.name()), Some("RELIABILITY"), "{runtime:?}");
            let refusals = participant.diagnostics().refusals().expect("open");
            let reason = refusals[0].to_string();
            assert!(reason.contains("Topic") && reason.contains("RELIABILITY"), "{reason}");
        }
        assert_eq!(writer.matched_subscriptions().expect("open"), []);
    }
}

#[test]
fn different_type_names_are_an_inconsistent_topic() {
    for runtime in RUNTIMES {
        let domain = domain();
        let publisher = on_loopback(domain, runtime).build().expect("participant");
        let subscriber = on_loopback(domain, runtime).build().expect("participant");
        let writer = create_writer::<Shape>(&publisher, "Topic", DataWriterQos::default());
        let reader = create_reader::<Blob>(&subscriber, "Topic", DataReaderQos::default());
        wait_until(&[&publisher, &subscriber], "inconsistency", || {
            writer.inconsistent_topic_status().expect("open").total_count == 1
                && reader.inconsistent_topic_status().expect("open").total_count == 1
        });
        assert_eq!(reader.matched_publications().expect("open"), []);
    }
}

#[test]
fn different_partitions_do_not_match() {
    for runtime in RUNTIMES {
        let domain = domain();
        let publisher = on_loopback(domain, runtime).build().expect("participant");
        let subscriber = on_loopback(domain, runtime).build().expect("participant");
        let in_partition = |name: &str| Partition { names: vec![name.to_owned()] };
        let topic = publisher.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
        let qos = PublisherQos { partition: in_partition("north.*"), ..PublisherQos::default() };
        let writers = publisher.create_publisher(qos).expect("publisher");
        let writer = writers.create_datawriter(&topic, DataWriterQos::default()).expect("writer");
        let topic = subscriber.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
        let reader_in = |name: &str| {
            let qos = SubscriberQos { partition: in_partition(name), ..SubscriberQos::default() };
            let readers = subscriber.create_subscriber(qos).expect("subscriber");
            readers.create_datareader(&topic, DataReaderQos::default()).expect("reader")
        };
        let (south, north) = (reader_in("south.1"), reader_in("north.1"));
        wait_until(&[&publisher, &subscriber], "match", || {
            !north.matched_publications().expect("open").is_empty()
                && !writer.matched_subscriptions().expect("open").is_empty()
        });
        wait_until(&[&publisher, &subscriber], "refusal", || {
            !subscriber.diagnostics().refusals().expect("open").is_empty()
        });
        assert_eq!(south.matched_publications().expect("open"), [], "{runtime:?}");
        assert_eq!(writer.matched_subscriptions().expect("open"), [north.guid()]);
    }
}

#[test]
fn matched_endpoints_are_listed_by_guid_on_both_sides() {
    for runtime in RUNTIMES {
        let pair = Pair::<Shape>::new(runtime, DataWriterQos::default(), DataReaderQos::default());
        assert_eq!(pair.writer.matched_subscriptions().expect("open"), [pair.reader.guid()]);
        assert_eq!(pair.reader.matched_publications().expect("open"), [pair.writer.guid()]);
        let seen = pair.subscriber.discovered_publications().expect("open");
        assert_eq!((seen.len(), seen[0].guid, seen[0].topic_name.as_str()), (1, pair.writer.guid(), "Topic"));
        let seen = pair.publisher.discovered_participants().expect("open");
        assert_eq!((seen.len(), seen[0].guid), (1, pair.subscriber.guid()));
    }
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "Shape")]
struct UnkeyedShape {
    color: String,
    x: i32,
    y: i32,
}

#[test]
fn keyed_writer_and_unkeyed_reader_are_refused_with_name_and_role() {
    for runtime in RUNTIMES {
        let domain = domain();
        let publisher = on_loopback(domain, runtime).name("camera").build().expect("participant");
        let subscriber = on_loopback(domain, runtime).name(format!("display {}", 1)).build().expect("participant");
        let writer = create_writer::<Shape>(&publisher, "Topic", DataWriterQos::default());
        let reader = create_reader::<UnkeyedShape>(&subscriber, "Topic", DataReaderQos::default());
        wait_until(&[&publisher, &subscriber], "refusals", || {
            [&publisher, &subscriber]
                .iter()
                .all(|participant| participant.diagnostics().refusals().expect("open").len() == 1)
        });
        assert_eq!(writer.matched_subscriptions().expect("open"), []);
        assert_eq!(reader.matched_publications().expect("open"), []);
        let text = publisher.diagnostics().refusals().expect("open")[0].to_string();
        let process = std::process::id();
        assert!(text.contains(&format!("writer {} of this participant", writer.guid())), "{text}");
        assert!(text.contains(&format!("reader {} of \"display 1\" (", reader.guid())), "{text}");
        assert!(text.contains(&format!("process {process})")), "{text}");
        assert!(text.ends_with("the writer's type has a key, the reader's has none"), "{text}");
    }
}

#[test]
fn domain_id_without_ports_error_names_the_valid_range() {
    let error = on_loopback(300, Runtime::Shared).build().expect_err("no such domain").to_string();
    assert_eq!(error, "transport: join domain 300: expected a domain id from 0 to 232");
}

#[test]
fn incompatible_qos_status_shows_policies_and_counts() {
    let domain = domain();
    let participant = on_loopback(domain, Runtime::Shared).build().expect("participant");
    let offer = DataWriterQos { reliability: Reliability::BEST_EFFORT, ..DataWriterQos::default() };
    let writer = create_writer::<Shape>(&participant, "Topic", offer);
    let _reader = create_reader::<Shape>(&participant, "Topic", reliable_reader(History::KeepAll));
    let status = format!("{:?}", writer.offered_incompatible_qos_status().expect("open"));
    assert!(status.ends_with("last_policy: Some(Reliability), counts: {Reliability: 1} }"), "{status}");
}
