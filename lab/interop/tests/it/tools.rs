//! The `takt` command with other vendors: it learns types from them, and they learn types from it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use takt_interop::network::{Host, Network};
use takt_interop::peer::{Batch, Durability, Endpoint, Kind, Options, Peer, Representation};
use takt_interop::programs::{Program, cyclonedds_tool, takt};
use takt_testkit::directory::Directory;
use takt_testkit::{not_run, require, waiting};

use crate::scene::{hosts, possible, start};

/// Runs `takt` to completion on a host.
fn run(host: &Host, words: &[&str]) -> Option<Output> {
    let mut command = host.command(&possible(takt())?);
    let output = command.args(words).args(["--interface", host.interface()]).output();
    Some(output.expect("the program starts"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns a network with a peer on one host and the other one free for `takt`.
fn scene(peer: Program) -> Option<(Network, Peer)> {
    let network = hosts()?;
    let peer = start(peer, &network.right, Default::default())?;
    Some((network, peer))
}

/// INTEROP(CycloneDDS 0.10.2): refuses XCDR1 for appendable types.
fn endpoint(id: &str, topic: &str) -> Endpoint {
    let durability = Durability::TransientLocal;
    let representation = Representation::Xcdr2;
    Endpoint { appendable: true, representation, durability, ..Endpoint::new(id, topic, Kind::NameKey) }
}

#[test]
fn echo_learns_the_type_of_a_foreign_writer() {
    for program in [Program::Cyclone10, Program::Cyclone11, Program::FastDds3] {
        let Some((network, mut peer)) = scene(program) else { return };
        peer.writer(&endpoint("w", "T")).expect("created");
        peer.write("w", &Batch { first: 40, key: 1, keys: 2, ..Batch::new(4, 3) }).expect("told");
        let words = ["echo", "T", "--json", "--count", "4", "--timeout", "30"];
        let Some(output) = run(&network.left, &words) else { return };
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{program}: {errors}");
        let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 4, "{program}: {out}");
        for (line, seq) in lines.iter().zip(40..) {
            let data = &line["data"];
            assert_eq!(line["type"], "interop::NameKeyAppendable", "{program}: {line}");
            assert_eq!((&data["seq"], &data["id"]), (&Value::from(seq), &Value::from(1 + (seq - 40) % 2)), "{line}");
            assert!(data["name"].as_str().is_some_and(|name| name.starts_with("instance-")), "{line}");
            assert_eq!(data["payload"].as_array().map(Vec::len), Some(3), "{program}: {line}");
        }
        let Some(output) = run(&network.left, &["type", "T"]) else { return };
        let idl = text(&output.stdout);
        assert!(idl.contains("@appendable struct NameKeyAppendable") && idl.contains("@key string name;"), "{idl}");
    }
}

#[test]
fn pub_learns_the_type_of_a_foreign_reader() {
    for program in [Program::Cyclone10, Program::Cyclone11, Program::FastDds3] {
        let Some((network, mut peer)) = scene(program) else { return };
        peer.reader(&endpoint("r", "T")).expect("created");
        let value = r#"{"name":"instance-007","id":7,"seq":9,"stamp_ns":-1,"payload":[1,2,3]}"#;
        let words = ["pub", "T", value, "--json", "--timeout", "30"];
        let Some(output) = run(&network.left, &words) else { return };
        assert!(output.status.success(), "{program}: {}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((&report["written"], &report["acknowledged"]), (&1.into(), &true.into()), "{report}");
        let sample = peer.sample("r").expect("it arrives");
        assert!(sample.valid, "{program}: {sample:?}");
        assert_eq!((sample.key, sample.seq, sample.len), (Some(7), 9, 3), "{program}: {sample:?}");
    }
}

/// INTEROP(Fast DDS 2.9.1): announces no type information unless the application requests it, so
/// that its types cannot be learned. Version 3 announces it by default.
#[test]
fn missing_type_information_of_fast_dds_is_reported() {
    let Some((network, mut peer)) = scene(Program::FastDds2) else { return };
    let writer = Endpoint { representation: Representation::Xcdr1, ..endpoint("w", "T") };
    peer.writer(&writer).expect("created");
    peer.write("w", &Batch { key: 1, ..Batch::new(1, 3) }).expect("told");
    let Some(output) = run(&network.left, &["echo", "T", "--timeout", "30"]) else { return };
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{errors}");
    assert!(errors.contains("announces only the name of its type, interop::NameKeyAppendable"), "{errors}");
    assert!(errors.contains("--raw"), "{errors}");
    let words = ["echo", "T", "--raw", "--json", "--count", "1", "--timeout", "30"];
    let Some(output) = run(&network.left, &words) else { return };
    let sample: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let name = "instance-01".bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert!(sample["payload"].as_str().is_some_and(|payload| payload.contains(&name)), "{sample}");
}

/// The IDL file of the peer programs provides the type that a peer does not announce.
#[test]
fn idl_file_provides_the_type_that_a_peer_does_not_announce() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/interop.idl");
    let idl = ["--idl", file, "--type", "interop::NameKeyAppendable", "--timeout", "30", "--json"];
    let peers = [(Program::FastDds2, Representation::Xcdr1), (Program::Cyclone10, Representation::Xcdr2)];
    for (program, representation) in peers {
        let endpoint = |id, topic| Endpoint { representation, ..endpoint(id, topic) };
        let Some((network, mut peer)) = scene(program) else { return };
        peer.writer(&endpoint("w", "T")).expect("created");
        peer.write("w", &Batch { first: 40, key: 1, ..Batch::new(2, 3) }).expect("told");
        let words = [&["echo", "T", "--count", "2"][..], &idl].concat();
        let Some(output) = run(&network.left, &words) else { return };
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{program}: {errors}");
        for (line, seq) in out.lines().zip([40, 41]) {
            let line: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!((&line["data"]["seq"], &line["data"]["id"]), (&seq.into(), &1.into()), "{program}: {line}");
        }
        peer.reader(&endpoint("r", "U")).expect("created");
        let value = r#"{"name":"instance-007","id":7,"seq":9,"stamp_ns":-1,"payload":[1,2,3]}"#;
        let words = [&["pub", "U", value][..], &idl].concat();
        let Some(output) = run(&network.left, &words) else { return };
        assert!(output.status.success(), "{program}: {}", text(&output.stderr));
        let sample = peer.sample("r").expect("it arrives");
        assert_eq!((sample.key, sample.seq, sample.len), (Some(7), 9, 3), "{program}: {sample:?}");
    }
}

/// A process that is killed on drop.
pub struct Background(pub Child);

impl Drop for Background {
    fn drop(&mut self) {
        for result in [self.0.kill(), self.0.wait().map(drop)] {
            // The process may have exited already.
            drop(result);
        }
    }
}

/// The command-line tool of CycloneDDS 11 learns a type from Takt and reads samples with it.
#[test]
fn cyclonedds_tool_learns_a_type_from_takt() {
    let Some(network) = hosts() else { return };
    let (Some(takt), Some(tool)) = (possible(takt()), possible(cyclonedds_tool())) else { return };
    let mut publisher = network.left.command(&takt);
    publisher.args(["pub", "Square", r#"{"color":"RED","x":21}"#, "--type", "ShapeType", "--no-wait", "--count", "0"]);
    publisher.args(["--rate", "10", "--interface", network.left.interface()]).stderr(Stdio::null());
    let _publisher = Background(publisher.spawn().expect("the program starts"));
    let mut subscriber = network.right.command(&tool);
    subscriber.args(["subscribe", "Square"]).env("PYTHONUNBUFFERED", "1").stdout(Stdio::piped()).stdin(Stdio::null());
    let mut subscriber = Background(subscriber.spawn().expect("the program starts"));
    let output = BufReader::new(subscriber.0.stdout.take().expect("stdout was piped above"));
    let sample = output.lines().map_while(Result::ok).find(|line| line.contains("ShapeType("));
    let sample = sample.expect("the tool prints a sample before it ends");
    assert!(sample.contains("color='RED'") && sample.contains("x=21"), "{sample}");
}

/// Unmodified programs of other vendors join a secured domain with the configuration that `takt
/// security export` prints.
#[test]
fn exported_configuration_secures_programs_of_other_vendors() {
    let Some(network) = hosts() else { return };
    let Some(takt) = possible(takt()) else { return };
    let directory = Directory::new("exported");
    let print = |words: &str| {
        let made = Command::new(&takt).current_dir(directory.path()).arg("security").args(words.split(' ')).output();
        let made = made.expect("the program starts");
        assert!(made.status.success(), "{words}: {}", text(&made.stderr));
        made.stdout
    };
    print("init keys");
    for name in ["left", "right"] {
        print(&format!("participant keys {name} --publish * --subscribe *"));
    }
    // The readers of ddsperf are in partitions.
    print("grant keys right --publish * --subscribe * --partition *");
    for vendor in ["cyclonedds", "fastdds"] {
        let configuration = print(&format!("export keys/enclaves/right --for {vendor}"));
        std::fs::write(directory.path().join(vendor), configuration).expect("a file");
    }
    // Secured participants announce their endpoints to other secured participants.
    let is_seen = |topic: &str, enclave: &str| {
        let mut command = network.left.command(&takt);
        command.env("TAKT_SECURITY", enclave).args(["ls", "--json", "--interface", network.left.interface()]);
        text(&command.output().expect("the program starts").stdout).contains(topic)
    };
    let enclave = directory.text("keys/enclaves/left");

    let profiles = directory.text("fastdds");
    let set = |command: &mut Command| {
        command.env("FASTRTPS_DEFAULT_PROFILES_FILE", &profiles);
    };
    let Some(mut peer) = possible(Peer::start_prepared(Program::FastDds2, &network.right, Options::default(), set))
    else {
        return;
    };
    peer.writer(&endpoint("w", "Exported")).expect("created");
    waiting::until("the writer of Fast DDS is seen", || is_seen("Exported", &enclave));
    assert!(!is_seen("Exported", ""), "without security nothing is seen");
    drop(peer);

    let ddsperf = Path::new("/usr/bin/ddsperf");
    if let Err(why) = require::program("ddsperf") {
        return not_run(why);
    }
    let mut command = network.right.command(ddsperf);
    let interface = network.right.interface();
    let general = format!("<General><Interfaces><NetworkInterface name=\"{interface}\"/></Interfaces></General>");
    let own = format!("<CycloneDDS><Domain>{general}</Domain></CycloneDDS>,file://{}", directory.text("cyclonedds"));
    command.env("CYCLONEDDS_URI", own).args(["pub", "1Hz"]).stdout(Stdio::null());
    let _running = Background(command.spawn().expect("the program starts"));
    waiting::until("the writer of CycloneDDS is seen", || is_seen("DDSPerf", &enclave));
}
