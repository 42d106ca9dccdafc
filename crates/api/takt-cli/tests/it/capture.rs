//! `takt capture`, and captures that participants write themselves.

use crate::process::Takt;
use serde_json::Value;
use std::process::Command;
use takt_testkit::directory::Directory;
use takt_testkit::domain::domain;
use takt_testkit::network::veth_pair;
use takt_testkit::pcapng::Pcapng;
use takt_testkit::{not_run, require};

/// Starts a writer of Square in a domain on loopback, without shared memory unless `environment`
/// says otherwise.
fn writer(domain: u32, environment: &[(&str, String)]) -> Takt {
    let line = format!("pub Square {{}} --type ShapeType --rate 100 --interface lo --peer 127.0.0.1 --domain {domain}");
    Takt::start_in(&format!("{line} --count 1000000"), environment)
}

fn echo(domain: u32, count: u32) -> String {
    format!("echo Square --interface lo --peer 127.0.0.1 --domain {domain} --count {count} --timeout 30")
}

/// Returns the port of discovery by unicast of the first participant of a domain
/// (RTPS 2.5 §9.6.2.3).
fn port(domain: u32) -> u16 {
    u16::try_from(7400 + 250 * domain + 10).expect("a port")
}

#[test]
fn interface_is_captured_until_the_count_and_decoded_by_others() {
    // On the loopback interface of the machine, packets of other tests could reach the count first.
    let Some([host, _]) = veth_pair(1) else { return };
    let _inside = host.enter();
    // Of some domains, tshark takes the ports for those of other protocols: 27910 for Quake II.
    let (directory, domain) = (Directory::new("capture-cli"), 0);
    let path = directory.text("lo.pcapng");
    let capture = Takt::start(&format!("capture {path} --interface lo --seconds 60 --count 200 --json"));
    capture.await_complaint("takt: capturing RTPS on lo");
    let publisher = writer(domain, &[("TAKT_SHARED_MEMORY", "0".to_owned())]);
    let (_, status) = Takt::start(&echo(domain, 50)).finish();
    assert!(status.success());
    let summary = capture.json();
    assert_eq!((&summary["packets"], &summary["ended_by"]), (&Value::from(200), &Value::from("count")), "{summary}");
    let interface = &summary["interfaces"][0];
    assert_eq!((&interface["name"], &interface["packets"]), (&Value::from("lo"), &Value::from(200)));
    drop(publisher);
    let file = Pcapng::read(path.as_ref());
    assert_eq!(Some(file.packets.len() as u64), summary["packets"].as_u64());
    let dropped = interface["dropped_packets"].as_u64().expect("a number");
    assert_eq!((file.interfaces[0].name.as_str(), file.interfaces[0].link), ("lo", 1));
    assert_eq!(file.interfaces[0].counts, Some((200 + dropped, dropped)));
    let is_rtps = |octets: &[u8]| octets.windows(4).any(|window| window == b"RTPS");
    assert!(file.packets.iter().all(|packet| is_rtps(&packet.octets) && packet.octets.len() == packet.original_len));
    assert_eq!(std::fs::metadata(&path).expect("it exists").len(), summary["bytes"].as_u64().expect("a number"));
    // A packet of this domain, decoded by another program.
    if let Err(why) = require::program("tshark") {
        return not_run(why);
    }
    let decoded = decode(&path, &format!("udp.port == {} && rtps", port(domain)));
    assert!(decoded.contains("RTPS"), "{decoded}");
}

/// Returns the output of tshark for the packets that match a filter.
fn decode(path: &str, filter: &str) -> String {
    let output = Command::new("tshark").args(["-r", path, "-Y", filter]).output().expect("tshark can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn shared_memory_is_captured_by_the_participant() {
    let (directory, domain) = (Directory::new("capture-shm-cli"), domain());
    let environment = [("TAKT_CAPTURE", directory.text("{pid}.pcapng"))];
    let publisher = writer(domain, &environment);
    let reader = Takt::start_in(&echo(domain, 20), &environment);
    let path = directory.text(&format!("{}.pcapng", reader.id()));
    let (_, status) = reader.finish();
    assert!(status.success());
    let sender = directory.text(&format!("{}.pcapng", publisher.id()));
    publisher.terminate();
    assert_eq!(publisher.error_text().1, Some(143));
    for path in [&path, &sender] {
        let file = Pcapng::read(path.as_ref());
        let names: Vec<&str> = file.interfaces.iter().map(|interface| interface.name.as_str()).collect();
        assert_eq!(names, ["udp", "shm"]);
        assert!(file.packets_of("shm").count() >= 20, "{path}: {} packets", file.packets_of("shm").count());
        assert!(file.interfaces.iter().all(|interface| interface.counts.is_some_and(|(_, dropped)| dropped == 0)));
    }
    if let Err(why) = require::program("tshark") {
        return not_run(why);
    }
    let decoded = decode(&path, "frame.interface_name == \"shm\" && rtps.sm.id == 0x15");
    assert!(decoded.lines().filter(|line| line.contains("DATA")).count() >= 20, "{decoded}");
}

/// AF_XDP bypasses the packet sockets of the host. Only a capture of the participant has the
/// samples.
#[test]
fn af_xdp_is_captured_by_the_participant() {
    if let Err(why) = require::network_namespaces().and_then(|()| require::af_xdp()) {
        return not_run(why);
    }
    let Some([here, there]) = veth_pair(1) else { return };
    let directory = Directory::new("capture-xdp");
    let environment = [("TAKT_CAPTURE", directory.text("{pid}.pcapng"))];
    let options = "--interface eth0 --transport xdp:eth0/mode=generic";
    let line = format!("pub Square {{}} --type ShapeType --rate 100 --count 1000000 {options}");
    let publisher = here.run(|| Takt::start_in(&line, &[]));
    let reader = there.run(|| Takt::start_in(&format!("echo Square --count 20 --timeout 30 {options}"), &environment));
    let path = directory.file(&format!("{}.pcapng", reader.id()));
    let (text, errors, code) = reader.ending();
    assert_eq!(code, Some(0), "{text}: {errors}");
    drop(publisher);
    let file = Pcapng::read(&path);
    let names: Vec<&str> = file.interfaces.iter().map(|interface| interface.name.as_str()).collect();
    assert!(names.contains(&"xdp"), "{names:?}: {errors}");
    let received = file.packets_of("xdp").filter(|packet| !packet.is_outbound);
    let samples =
        received.filter(|packet| packet.udp_payload().starts_with(b"RTPS") && packet.octets[16..20] == [10, 77, 0, 2]);
    assert!(samples.count() >= 20, "{names:?}");
}

#[test]
fn refusals_of_a_capture_name_their_reason() {
    let directory = Directory::new("capture-refused");
    let path = directory.text("refused.pcapng");
    let (text, code) = Takt::start(&format!("capture {path} --interface nowhere0")).error_text();
    assert!(code == Some(1) && text.contains("nowhere0"), "{code:?}: {text}");
    let (text, code) = Takt::start("capture - --interface lo --json").error_text();
    assert!(code == Some(2) && text.contains("standard output"), "{code:?}: {text}");
    let (text, code) = Takt::start_without_privileges(&format!("capture {path} --interface lo")).error_text();
    assert!(code == Some(1) && text.contains("run as root, or with CAP_NET_RAW and CAP_NET_ADMIN"), "{code:?}: {text}");
}

#[test]
fn limits_and_signals_end_a_capture() {
    if let Err(why) = require::root() {
        return not_run(why);
    }
    let directory = Directory::new("capture-ends");
    let path = directory.text("short.pcapng");
    let summary = Takt::start(&format!("capture {path} --interface lo --seconds 0.2 --json")).json();
    assert_eq!(summary["ended_by"], "seconds");
    let capture = Takt::start(&format!("capture {path} --interface lo"));
    capture.await_complaint("takt: capturing RTPS on lo");
    capture.terminate();
    let (text, code) = capture.error_text();
    assert!(code == Some(143) && text.contains("takt: lo: ") && text.contains("dropped by the kernel"), "{text}");
    assert_eq!(Pcapng::read(path.as_ref()).interfaces.len(), 1, "the file is complete");
}
