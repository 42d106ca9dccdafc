//! Tests of transports selected by name: fallback, and routing of topics, between two hosts.

use std::time::{Duration, Instant};

use takt::qos::{
    DataReaderQos, DataWriterQos, History, PropertyEntry, PublisherQos, Reliability, SubscriberQos, TopicQos,
};
use takt::{DataReader, DataWriter, DdsType, DomainParticipant, DomainParticipantBuilder, Runtime, TRANSPORT_PROPERTY};

use crate::lifetime::permissions::keep_only;
use crate::network::{Host, wire};

const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Blob {
    number: u32,
    octets: Vec<u8>,
}

/// Builds a participant on a host, driven by the shared runtime.
fn participant(
    host: &Host,
    choose: impl FnOnce(DomainParticipantBuilder) -> DomainParticipantBuilder + Send,
) -> DomainParticipant {
    takt_xdp::register();
    let build = || choose(DomainParticipant::builder(0).runtime(Runtime::Shared).shared_memory(false)).build();
    host.run(build).expect("a participant")
}

fn reliable() -> Reliability {
    Reliability { max_blocking_time: takt::Duration::from_secs(30), ..Reliability::RELIABLE }
}

fn writer(host: &Host, participant: &DomainParticipant, topic: &str, transport: Option<&str>) -> DataWriter<Blob> {
    let mut qos = DataWriterQos { history: History::KeepAll, reliability: reliable(), ..DataWriterQos::default() };
    qos.property.entries.extend(transport.map(|value| PropertyEntry::local(TRANSPORT_PROPERTY, value)));
    host.run(|| {
        let topic = participant.create_topic::<Blob>(topic, TopicQos::default())?;
        participant.create_publisher(PublisherQos::default())?.create_datawriter(&topic, qos)
    })
    .expect("a writer")
}

fn reader(host: &Host, participant: &DomainParticipant, topic: &str, transport: Option<&str>) -> DataReader<Blob> {
    let mut qos = DataReaderQos { history: History::KeepAll, reliability: reliable(), ..DataReaderQos::default() };
    qos.property.entries.extend(transport.map(|value| PropertyEntry::local(TRANSPORT_PROPERTY, value)));
    host.run(|| {
        let topic = participant.create_topic::<Blob>(topic, TopicQos::default())?;
        participant.create_subscriber(SubscriberQos::default())?.create_datareader(&topic, qos)
    })
    .expect("a reader")
}

fn wait(what: &str, mut condition: impl FnMut() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < TIMEOUT, "the wait timed out: {what}");
        std::thread::yield_now();
    }
}

/// Waits until writer and reader match.
fn matched(writer: &DataWriter<Blob>, reader: &DataReader<Blob>) {
    wait("match", || {
        let matched = (writer.publication_matched_status(), reader.subscription_matched_status());
        matched.0.expect("open").current_count == 1 && matched.1.expect("open").current_count == 1
    });
}

/// Writes some samples, one of them large, and waits until they are received and acknowledged.
fn exchange(writer: &DataWriter<Blob>, reader: &DataReader<Blob>) {
    let blob = |number: u32| Blob { number, octets: vec![number as u8; if number == 50 { 100_000 } else { 100 }] };
    for number in 0..SAMPLES {
        writer.write(&blob(number)).expect("the writer accepts the sample");
    }
    let mut expected = 0;
    wait(&format!("samples of {}", writer.topic().name()), || {
        for sample in reader.take(usize::MAX).expect("open") {
            assert_eq!(sample.data, Some(blob(expected)));
            expected += 1;
        }
        expected == SAMPLES
    });
    writer.wait_for_acknowledgments(Duration::from_secs(60)).expect("the reader acknowledges");
}

const SAMPLES: u32 = 100;
/// Minimum number of datagrams for these samples; the large one takes some 70 more.
const DATAGRAMS_MIN: u64 = 100;
/// Maximum number of discovery announcements and heartbeats during the exchange, after matching.
const DISCOVERY_DATAGRAMS_MAX: u64 = 40;

/// Returns the datagrams that each transport has sent and received.
fn transport_counts(participant: &DomainParticipant) -> Vec<(&'static str, u64, u64)> {
    let all = participant.diagnostics().transport_stats().expect("open");
    all.iter().map(|traffic| (traffic.name, traffic.stats.datagrams_out, traffic.stats.datagrams_in)).collect()
}

/// Returns the datagrams carried by the named transport since `before`, in both directions.
fn count_since(before: &[(&'static str, u64, u64)], participant: &DomainParticipant, name: &str) -> u64 {
    let now = transport_counts(participant);
    let index = now.iter().position(|(other, ..)| *other == name).expect("the transport is open");
    now[index].1 - before[index].1 + now[index].2 - before[index].2
}

#[test]
fn topics_use_the_transports_of_their_rule_and_discovery_another() {
    let Some([here, there]) = &wire(1) else { return };
    let rules = |builder: DomainParticipantBuilder| {
        builder
            .discovery_transports(["udp"])
            .topic_transports("Fast*", "xdp:eth0")
            .topic_transports("Raw*", "packet:eth0")
    };
    let [one, other] = [participant(here, rules), participant(there, rules)];
    assert_eq!(transport_counts(&one).iter().map(|(name, ..)| *name).collect::<Vec<_>>(), ["udp", "xdp", "packet"]);
    for (topic, by) in [("FastLidar", "xdp"), ("RawLidar", "packet"), ("Log", "udp")] {
        let (writer, reader) = (writer(here, &one, topic, None), reader(there, &other, topic, None));
        matched(&writer, &reader);
        let before = [transport_counts(&one), transport_counts(&other)];
        // UDP opens connected sockets for frequent destinations, in the namespace of the sending
        // thread.
        here.run(|| exchange(&writer, &reader));
        for (participant, before) in [&one, &other].into_iter().zip(&before) {
            for name in ["udp", "xdp", "packet"] {
                let count = count_since(before, participant, name);
                match (name == by, name) {
                    (true, _) => assert!(count >= DATAGRAMS_MIN, "{topic} by {name}: {count}"),
                    (false, "udp") => assert!(count < DISCOVERY_DATAGRAMS_MAX, "{topic} by {name}: {count}"),
                    (false, _) => assert_eq!(count, 0, "{topic} by {name}"),
                }
            }
        }
        let announced = other.discovered_publications().expect("open");
        let announced = announced.iter().find(|data| data.guid == writer.guid()).expect("the endpoint is announced");
        assert_eq!(announced.unicast.is_empty(), by == "udp", "{:?}", announced.unicast);
    }
}

#[test]
fn endpoint_property_overrides_the_rules() {
    let Some([here, there]) = &wire(1) else { return };
    let extra = |builder: DomainParticipantBuilder| {
        builder
            .user_data_transports(["udp"])
            .topic_transports("T", "udp")
            .extra_transports(["xdp:eth0", "packet:nowhere0"])
    };
    let [one, other] = [participant(here, extra), participant(there, extra)];
    let (writer, reader) = (writer(here, &one, "T", Some("packet|xdp")), reader(there, &other, "T", Some("xdp:eth0")));
    matched(&writer, &reader);
    let before = [transport_counts(&one), transport_counts(&other)];
    exchange(&writer, &reader);
    for (participant, before) in [&one, &other].into_iter().zip(&before) {
        let (by_xdp, by_udp) = (count_since(before, participant, "xdp"), count_since(before, participant, "udp"));
        assert!(by_xdp >= DATAGRAMS_MIN && by_udp < DISCOVERY_DATAGRAMS_MAX, "{by_xdp} {by_udp}");
        assert!(participant.diagnostics().transport_report().to_string().contains("  packet:nowhere0: refused, "));
    }
}

#[test]
fn user_data_uses_ethernet_while_discovery_uses_udp() {
    let Some([here, there]) = &wire(1) else { return };
    let choose = |builder: DomainParticipantBuilder| builder.user_data_transports(["packet:eth0"]);
    let [one, other] = [participant(here, choose), participant(there, choose)];
    let (writer, reader) = (writer(here, &one, "T", None), reader(there, &other, "T", None));
    matched(&writer, &reader);
    let before = transport_counts(&one);
    exchange(&writer, &reader);
    let (by_frames, by_udp) = (count_since(&before, &one, "packet"), count_since(&before, &one, "udp"));
    assert!(by_frames >= DATAGRAMS_MIN && by_udp < DISCOVERY_DATAGRAMS_MAX, "{by_frames} {by_udp}");
}

#[test]
fn discovery_and_user_data_use_ethernet_without_udp() {
    let Some([here, there]) = &wire(1) else { return };
    let choose = |builder: DomainParticipantBuilder| {
        builder.user_data_transports(["packet:eth0"]).discovery_transports(["packet:eth0"])
    };
    let [one, other] = [participant(here, choose), participant(there, choose)];
    let (writer, reader) = (writer(here, &one, "T", None), reader(there, &other, "T", None));
    matched(&writer, &reader);
    exchange(&writer, &reader);
    assert_eq!(transport_counts(&one).iter().map(|(name, ..)| *name).collect::<Vec<_>>(), ["packet"]);
}

#[test]
fn fallback_from_af_xdp_names_the_missing_capability() {
    let Some([here, _there]) = &wire(1) else { return };
    takt_xdp::register();
    let participant = here.run(|| {
        keep_only(&[]);
        DomainParticipant::builder(0).user_data_transports(["xdp:eth0|packet:eth0", "udp:eth0"]).build()
    });
    let participant = participant.expect("UDP takes nothing");
    let report = participant.diagnostics().transport_report().to_string();
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!((lines[0], lines[3]), ("user data", "  udp:eth0: open"), "{report}");
    assert!(lines[1].starts_with("  xdp:eth0: refused, ") && lines[1].contains("CAP_"), "{report}");
    assert!(lines[2].starts_with("  packet:eth0: refused, "), "{report}");
    let warnings: Vec<String> = participant.diagnostics().warnings().iter().map(ToString::to_string).collect();
    assert!(
        warnings.iter().any(|warning| warning.contains("user data by udp:eth0; other transports were refused")),
        "{warnings:?}"
    );
}
