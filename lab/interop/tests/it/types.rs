//! Different types of the same name, between CycloneDDS and Takt on loopback. Assignable types are
//! exchanged, others are refused with the reason.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use takt::qos::*;
use takt::{DataReader, DataWriter, DdsType, DomainParticipant, Runtime, TypeSupport};
use takt_interop::programs::{cyclonedds_python, takt};

use crate::scene::possible;

/// Maximum time that a test waits for a condition.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "interop::Part")]
struct OldPart {
    a: i32,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "interop::Part")]
struct NewPart {
    a: i32,
    #[dds(default = 7)]
    b: i32,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "interop::Pose")]
struct Old {
    #[dds(key)]
    id: u32,
    x: f64,
    parts: Vec<OldPart>,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "interop::Pose")]
struct New {
    #[dds(key)]
    id: u32,
    x: f64,
    parts: Vec<NewPart>,
    y: f64,
    #[dds(default = "map".to_owned())]
    frame: String,
}

fn old() -> Old {
    Old { id: 3, x: 1.5, parts: vec![OldPart { a: 10 }, OldPart { a: 20 }] }
}

fn new() -> New {
    let parts = vec![NewPart { a: 10, b: 11 }, NewPart { a: 20, b: 21 }];
    New { id: 3, x: 1.5, parts, y: -2.5, frame: "base".to_owned() }
}

/// A process of `peers/typed.py`, which exits at the end of its standard input.
struct Cyclone {
    process: Child,
    _stdin: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Cyclone {
    /// Starts the process. `None` if this machine has no CycloneDDS for Python.
    fn start(domain: u32, role: &str, version: &str) -> Option<Self> {
        let uri = concat!(
            "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name=\"lo\" multicast=\"false\"/></Interfaces>",
            "<AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>",
            "<Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery></Domain></CycloneDDS>",
        );
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join("typed.py");
        let mut command = Command::new(possible(cyclonedds_python())?);
        command.arg(script).args([&domain.to_string(), role, version]).env("CYCLONEDDS_URI", uri);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let stdin = process.stdin.take().expect("piped above");
        let lines = BufReader::new(process.stdout.take().expect("piped above"));
        let mut cyclone = Self { process, _stdin: stdin, lines };
        assert_eq!(cyclone.line(), json!({ "ready": version }));
        Some(cyclone)
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("it can be read");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
    }
}

impl Drop for Cyclone {
    fn drop(&mut self) {
        // The process may have exited already.
        let (killed, ended) = (self.process.kill(), self.process.wait());
        drop((killed, ended));
    }
}

/// Returns a domain id for each test of this process.
fn domain(test: u32) -> u32 {
    140 + std::process::id() % 8 * 10 + test
}

fn participant(domain: u32) -> DomainParticipant {
    let builder = DomainParticipant::builder(domain).interfaces(["lo"]).peers(["127.0.0.1"]);
    builder.runtime(Runtime::Shared).build().expect("participant")
}

fn writer<T: TypeSupport>(participant: &DomainParticipant) -> DataWriter<T> {
    let topic = participant.create_topic::<T>("Topic", TopicQos::default()).expect("topic");
    let publisher = participant.create_publisher(PublisherQos::default()).expect("publisher");
    let qos = DataWriterQos {
        durability: Durability::TransientLocal,
        data_representation: DataRepresentation::xcdr2(),
        ..DataWriterQos::default()
    };
    publisher.create_datawriter(&topic, qos).expect("writer")
}

fn reader<T: TypeSupport>(participant: &DomainParticipant) -> DataReader<T> {
    let topic = participant.create_topic::<T>("Topic", TopicQos::default()).expect("topic");
    let subscriber = participant.create_subscriber(SubscriberQos::default()).expect("subscriber");
    let qos = DataReaderQos { reliability: Reliability::RELIABLE, ..DataReaderQos::default() };
    subscriber.create_datareader(&topic, qos).expect("reader")
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out while waiting for {what}");
        std::thread::yield_now();
    }
}

/// Returns the sample that a Takt reader receives from a CycloneDDS writer.
fn received<T: TypeSupport>(domain: u32, version: &str) -> Option<T> {
    let _cyclone = Cyclone::start(domain, "writer", version)?;
    let participant = participant(domain);
    let reader = reader::<T>(&participant);
    let mut samples = Vec::new();
    wait_until("a sample of CycloneDDS", || {
        samples.extend(reader.take(1).expect("open"));
        !samples.is_empty()
    });
    samples.remove(0).data
}

/// Returns the sample that a CycloneDDS reader receives from a Takt writer.
fn sent<T: TypeSupport>(domain: u32, version: &str, sample: &T) -> Option<Value> {
    let mut cyclone = Cyclone::start(domain, "reader", version)?;
    let participant = participant(domain);
    let writer = writer::<T>(&participant);
    writer.write(sample).expect("room");
    Some(cyclone.line())
}

#[test]
fn takt_reads_evolved_cyclonedds_types() {
    let Some(narrower) = received::<Old>(domain(0), "new") else { return };
    assert_eq!(narrower, old());
    let wider: New = received(domain(1), "old").expect("a value");
    let parts = vec![NewPart { a: 10, b: 7 }, NewPart { a: 20, b: 7 }];
    assert_eq!(wider, New { id: 3, x: 1.5, parts, y: 0.0, frame: "map".to_owned() });
}

#[test]
fn cyclonedds_reads_evolved_takt_types() {
    let Some(narrower) = sent(domain(2), "old", &new()) else { return };
    assert_eq!(narrower, json!({ "id": 3, "x": 1.5, "parts": [{ "a": 10 }, { "a": 20 }] }));
    let wider = sent(domain(3), "new", &old()).expect("a value");
    assert_eq!((&wider["x"], &wider["parts"][1]["a"], &wider["y"]), (&json!(1.5), &json!(20), &json!(0.0)));
}

#[test]
fn incompatible_types_are_refused_with_the_member_and_takt_ls_reports_it() {
    let why = "their types differ: member 'x': float for the reader, double from the writer";
    let Some(_cyclone) = Cyclone::start(domain(4), "reader", "other") else { return };
    let publisher = participant(domain(4));
    let writer = writer::<Old>(&publisher);
    wait_until("a refusal", || writer.inconsistent_topic_status().expect("open").total_count > 0);
    let refusal = publisher.diagnostics().refusals().expect("open").remove(0).to_string();
    assert!(refusal.ends_with(why), "{refusal}");
    let Some(program) = possible(takt()) else { return };
    let mut ls = Command::new(program);
    ls.args(["ls", "--domain", &domain(4).to_string(), "--interface", "lo", "--peer", "127.0.0.1", "--wait", "5"]);
    let output = ls.output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(&format!("no match: {why}")), "{text}");

    let why = "their types differ: member 'x': double for the reader, float from the writer";
    let Some(_cyclone) = Cyclone::start(domain(5), "writer", "other") else { return };
    let subscriber = participant(domain(5));
    let reader = reader::<Old>(&subscriber);
    wait_until("a refusal", || !subscriber.diagnostics().refusals().expect("open").is_empty());
    let refusal = subscriber.diagnostics().refusals().expect("open").remove(0).to_string();
    assert!(refusal.ends_with(why), "{refusal}");
    assert_eq!(reader.matched_publications().expect("open"), []);
}
