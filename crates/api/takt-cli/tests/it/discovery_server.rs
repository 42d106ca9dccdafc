//! `takt discovery-server`: two servers as processes, participants that know only the servers, and
//! `kill -9`. Multicast is off.

use crate::process::Takt;
use serde_json::Value;
use std::time::Duration;
use takt::qos::{DataReaderQos, DataWriterQos, History, PublisherQos, Reliability, SubscriberQos, TopicQos};
use takt::{DataReader, DataWriter, DdsType, DomainParticipant, Runtime};
use takt_testkit::waiting::until;

const SERVERS: [&str; 2] = ["127.0.0.1:17501", "127.0.0.1:17502"];
const DOMAIN: u32 = 190;

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "Number")]
struct Number {
    number: u32,
}

fn server(own: usize) -> Takt {
    let (listen, other) = (SERVERS[own], SERVERS[1 - own]);
    let server = Takt::start(&format!("discovery-server --domain {DOMAIN} --listen {listen} --other {other} --json"));
    let listening = server.event("listening");
    assert_eq!(listening["addresses"], serde_json::json!([listen]));
    server
}

fn client() -> DomainParticipant {
    let builder = DomainParticipant::builder(DOMAIN).interfaces(["lo"]).peers([""; 0]).discovery_servers(SERVERS);
    builder.runtime(Runtime::Shared).lease_duration(Duration::from_secs(4)).build().expect("participant")
}

fn writer(participant: &DomainParticipant, topic: &str) -> DataWriter<Number> {
    let topic = participant.create_topic::<Number>(topic, TopicQos::default()).expect("topic");
    let qos = DataWriterQos { reliability: Reliability::RELIABLE, history: History::KeepAll, ..Default::default() };
    participant
        .create_publisher(PublisherQos::default())
        .expect("publisher")
        .create_datawriter(&topic, qos)
        .expect("endpoint")
}

fn reader(participant: &DomainParticipant, topic: &str) -> DataReader<Number> {
    let topic = participant.create_topic::<Number>(topic, TopicQos::default()).expect("topic");
    let qos = DataReaderQos { reliability: Reliability::RELIABLE, history: History::KeepAll, ..Default::default() };
    participant
        .create_subscriber(SubscriberQos::default())
        .expect("subscriber")
        .create_datareader(&topic, qos)
        .expect("endpoint")
}

/// Asserts that a sample of this topic reaches the other participant.
fn assert_talk(from: &DomainParticipant, to: &DomainParticipant, topic: &str) {
    let (writer, reader) = (writer(from, topic), reader(to, topic));
    until(topic, || {
        !writer.matched_subscriptions().expect("open").is_empty()
            && !reader.matched_publications().expect("open").is_empty()
    });
    writer.write(&Number { number: 7 }).expect("open");
    until(topic, || reader.take(1).expect("open").iter().any(|sample| sample.data == Some(Number { number: 7 })));
}

#[test]
fn two_servers_replace_each_other_after_a_kill_and_restart() {
    let first = server(0);
    let second = server(1);
    let (one, two) = (client(), client());
    assert_talk(&one, &two, "A");
    // Dropping a process kills it (SIGKILL).
    drop(first);
    assert_talk(&two, &one, "B");
    let three = client();
    assert_talk(&three, &one, "C");
    let first = server(0);
    drop(second);
    let four = client();
    assert_talk(&four, &two, "D");
    assert_talk(&three, &four, "E");
    drop(first);
    assert_talk(&four, &three, "F");
}

#[test]
fn tools_discover_all_clients_of_a_server() {
    let server = Takt::start("discovery-server --domain 191 --listen 127.0.0.1:17503");
    assert_eq!(server.line().as_deref(), Some("listening domain 191 at 127.0.0.1:17503"));
    let builder = DomainParticipant::builder(191).interfaces(["lo"]).peers([""; 0]).name("camera");
    let camera = builder.discovery_servers(["127.0.0.1:17503"]).build().expect("participant");
    let _image = writer(&camera, "Image");
    until("the server", || !camera.discovered_participants().expect("open").is_empty());
    let seen = || -> Value { Takt::start("ls --interface lo --domain 191 --server 127.0.0.1:17503 --json").json() };
    until("takt ls", || {
        let catalogue = seen();
        catalogue["topics"].as_array().expect("a list").iter().any(|topic| topic["name"] == "Image")
    });
}

#[test]
fn address_in_use_is_an_error() {
    let server = Takt::start("discovery-server --domain 192 --listen 127.0.0.1:17504");
    assert!(server.line().is_some());
    let (error_text, code) = Takt::start("discovery-server --domain 192 --listen 127.0.0.1:17504").error_text();
    assert_eq!(code, Some(1));
    assert!(error_text.contains("17504"), "{error_text}");
}

#[test]
fn log_names_participants_with_addresses_and_silent_servers() {
    let line = "discovery-server --domain 193 --listen 127.0.0.1:17505 --other 127.0.0.1:17506 --json";
    let server = Takt::start(line);
    server.event("listening");
    let builder = DomainParticipant::builder(193).interfaces(["lo"]).peers([""; 0]).name("camera");
    let camera = builder.discovery_servers(["127.0.0.1:17505"]).build().expect("participant");
    // The order is not defined, since the server waits 3 s for the other server.
    let event = || -> Value { serde_json::from_str(&server.line().expect("it runs")).expect("JSON") };
    let (first, second) = (event(), event());
    let (discovered, silent) = if first["ev"] == "discovered" { (first, second) } else { (second, first) };
    assert_eq!((&discovered["ev"], &discovered["name"]), (&"discovered".into(), &"camera".into()));
    let address = discovered["addresses"][0].as_str().expect("it listens");
    assert!(address.starts_with("udp/127.0.0.1:"), "{address}");
    assert_eq!((&silent["ev"], &silent["server"]), (&"silent".into(), &"udp/127.0.0.1:17506".into()));
    drop(camera);
    assert_eq!(server.event("lost")["name"], "camera");
}
