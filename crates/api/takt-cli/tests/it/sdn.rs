//! `takt sdn run` between bridges of Open vSwitch: participants match and exchange samples through
//! the controller.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use takt_lab::file::SWITCHES;
use takt_testkit::lab_text::{LabText, network_text};
use takt_testkit::{not_run, require};

use crate::process::Takt;
use crate::sdn_site::{socket, start, up};

fn two_switches() -> LabText {
    let text = LabText::controlled(&["s1", "s2"]).host("left", "10.9.0.1/24", "s1").link("s1", "s2");
    text.host("right", "10.9.0.2/24", "s2")
}

#[test]
fn participants_match_and_exchange_samples_through_the_controller() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let lab = up("cli-sdn", &two_switches());
    let controller = start(&lab, SWITCHES, "sdn run --listen 127.0.0.1:6653");
    controller.expect_line(&[
        "listening at 127.0.0.1:6653",
        "switch 0000000000000001 is up",
        "switch 0000000000000002 is up",
    ]);
    controller.expect_line(&["flooding uses 1 links"]);
    let options = "--transport udp --interface eth0 --domain 3 --samples 300 --warmup 20 --json";
    let pong = start(&lab, "right", &format!("perf pong {options}"));
    let report = start(&lab, "left", &format!("perf ping {options}")).json();
    assert_eq!(pong.json()["samples"]["sent"], json!(320));
    assert_eq!((&report["samples"]["received"], &report["samples"]["lost"]), (&json!(300), &json!(0)));
    let found = ["10.9.0.1:", "10.9.0.2:"].map(|address| format!("found, {address}"));
    controller.expect_line(&["without a contract", "has the address", &found[0], &found[1]]);
    controller.terminate();
    let error_text = controller.error_text().0;
    assert!(error_text.contains("2 switches, 1 links, 2 hosts"), "{error_text}");
    let discovery = error_text.rsplit(", ").next().and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    assert!(discovery.is_some_and(|count| count > 0), "discovery goes by the controller: {error_text}");
    lab.remove().unwrap();
}

const CONTRACTS: &str = r#"
    [[contract]]
    topic = "Square"
    separation = "5ms"
    size = 1000
    limit = "50ms"
"#;

/// Checks the answer of a controller that has admitted the pair of the test. The control socket is
/// in the file system, so that the network namespace does not matter.
fn explain_admitted_pair(control: &str) {
    let flows = Takt::start(&format!("sdn flows {control} --json")).json();
    let flow = &flows["flows"][0];
    assert_eq!((&flow["topic"], &flow["decision"]), (&json!("Square"), &json!("admitted")), "{flows}");
    assert!(flow["bound_ns"].as_u64().is_some_and(|bound_ns| (1..=50_000_000).contains(&bound_ns)), "{flows}");
    assert_eq!(flow["hops"].as_array().map(Vec::len), Some(3), "host, s1 and s2: {flows}");
    let (text, status) = Takt::start(&format!("sdn explain Square {control}")).finish();
    assert!(status.success() && text.contains("limit       50.000 ms (contract file, line 6)"), "{text}");
    let topology = Takt::start(&format!("sdn topology {control} --json")).json();
    let count = |key: &str| topology[key].as_array().map(Vec::len);
    assert_eq!((count("switches"), count("links"), count("hosts")), (Some(2), Some(1), Some(2)), "{topology}");
    let status = Takt::start(&format!("sdn status {control} --json")).json();
    assert_eq!(status["pairs"]["admitted"], json!(1), "{status}");
    let request = "--what-if --from 10.9.0.1 --to 10.9.0.2 --separation 5ms --size 1000";
    let verdict = Takt::start(&format!("sdn admit {request} --limit 50ms {control} --json")).json();
    assert_eq!(verdict["is_admitted"], json!(true), "{verdict}");
    let refused = Takt::start(&format!("sdn admit {request} --limit 1us {control}"));
    let (text, status) = refused.finish();
    assert_eq!(status.code(), Some(1), "{text}");
    assert!(text.contains("would be refused") && text.contains("would fit   a limit of "), "{text}");
    let certificate = Takt::start(&format!("sdn export --certificate {control}")).json();
    let is_control = |flow: &&Value| flow["name"].as_str().is_some_and(|name| name.starts_with("control traffic"));
    let (control, pair): (Vec<_>, Vec<_>) = certificate["flows"].as_array().unwrap().iter().partition(is_control);
    assert_eq!(
        (pair.len(), control.len()),
        (2, 12),
        "samples and ACKNACKs; three of each of four ports: {certificate}"
    );
}

#[test]
fn reliable_pair_with_a_contract_is_admitted_and_its_samples_arrive() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let directory = std::env::temp_dir().join(format!("takt-cli-sdn-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let [network, contracts] = ["network.toml", "contracts.toml"].map(|name| directory.join(name));
    std::fs::write(&network, network_text(1_000_000_000)).unwrap();
    std::fs::write(&contracts, CONTRACTS).unwrap();
    let lab = up("cli-sdn-pair", &two_switches());
    let control = format!("--control {}", directory.join("control.sock").display());
    let options = format!("--network {} --contracts {} {control}", network.display(), contracts.display());
    let controller = start(&lab, SWITCHES, &format!("sdn run --listen 127.0.0.1:6653 {options}"));
    controller.expect_line(&["flooding uses 1 links"]);
    let shared = "--type ShapeType --reliable --transport udp --interface eth0 --domain 4";
    let _reader = start(&lab, "right", &format!("sub Square {shared}"));
    let value = r#"{"color":"RED","x":10}"#;
    let publisher = start(&lab, "left", &format!("pub Square {value} {shared} --rate 50 --count 100"));
    controller.expect_line(&["found, with a contract", "is admitted: "]);
    explain_admitted_pair(&control);
    let (_, status) = publisher.finish();
    assert!(status.success(), "{status}: all samples are acknowledged");
    controller.terminate();
    lab.remove().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Sends frames from both hosts, so that the controller learns their locations.
fn greet(lab: &takt_lab::Lab) {
    let [left, right] = ["left", "right"].map(|host| socket(lab, host, 7421));
    left.send_to(b"greeting", ("10.9.0.2", 7421)).unwrap();
    right.send_to(b"greeting", ("10.9.0.1", 7421)).unwrap();
}

#[test]
fn registered_pair_is_admitted_shown_held_and_removed() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let directory = std::env::temp_dir().join(format!("takt-cli-sdn-register-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let network = directory.join("network.toml");
    std::fs::write(&network, network_text(1_000_000_000)).unwrap();
    let lab = up("cli-sdn-register", &two_switches());
    let control = format!("--control {}", directory.join("control.sock").display());
    let options = format!("--network {} {control}", network.display());
    let controller = start(&lab, SWITCHES, &format!("sdn run --listen 127.0.0.1:6653 {options}"));
    controller.expect_line(&["flooding uses 1 links"]);
    greet(&lab);
    controller.expect_line(&["has the address 10.9.0.1", "has the address 10.9.0.2"]);
    let contract = "--from 10.9.0.1 --to 10.9.0.2 --separation 5ms --size 1000 --overhead 0";
    let names = "--writer robot/camera --reader desk/screen";
    let register = |rest: &str| format!("sdn register {rest} {names} {contract} {control}");
    let (text, status) = Takt::start(&register("Camera --port 7421 --answer-port 7413 --limit 50ms")).finish();
    assert!(status.success() && text.contains("registration 1 (Camera) is admitted: "), "{text}");
    controller.expect_line(&["registration 1 (Camera) is admitted: "]);
    let (text, status) = Takt::start(&format!("sdn explain Camera {control}")).finish();
    assert!(status.success(), "{text}");
    for line in ["registered  1 by control socket: admitted", "sockets     samples at 7421, ACKNACKs at 7413"] {
        assert!(text.contains(line), "{text}");
    }
    let (text, status) = Takt::start(&register("Strict --port 7422 --limit 1us")).finish();
    assert_eq!(status.code(), Some(1), "{text}");
    assert!(text.contains("(Strict) is refused") && text.contains("would fit   a limit of "), "{text}");
    let held = Takt::start(&register("Held --port 7423 --limit 50ms --lease 5 --hold"));
    controller.expect_line(&["registration 3 (Held) is admitted: "]);
    let flows = Takt::start(&format!("sdn flows {control} --json")).json();
    let states = flows["flows"].as_array().unwrap().iter().map(|flow| flow["registration"]["state"].clone());
    assert_eq!(states.collect::<Vec<_>>(), [json!("admitted"), json!("refused"), json!("admitted")], "{flows}");
    held.terminate();
    controller.expect_line(&["registration 3 (Held) is gone"]);
    let (text, status) = Takt::start(&format!("sdn unregister 1 {control}")).finish();
    assert!(status.success() && text.contains("registration 1 (Camera) removed"), "{text}");
    let (error_text, code) = Takt::start(&format!("sdn unregister 1 {control}")).error_text();
    assert!(code == Some(1) && error_text.contains("no such registration"), "{error_text}");
    controller.terminate();
    lab.remove().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn controller_without_switches_answers_and_its_absence_is_an_error() {
    let directory = std::env::temp_dir().join(format!("takt-cli-sdn-control-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let control = format!("--control {}", directory.join("control.sock").display());
    let (error_text, code) = Takt::start(&format!("sdn status {control}")).error_text();
    assert_eq!(code, Some(3), "{error_text}");
    assert!(error_text.contains("no controller answers at ") && error_text.contains("control.sock"), "{error_text}");
    let controller = Takt::start(&format!("sdn run --listen 127.0.0.1:0 --api 127.0.0.1:0 --api-open-read {control}"));
    controller.expect_line(&["listening at 127.0.0.1:", "API and web page at http://127.0.0.1:"]);
    let (text, _) = Takt::start(&format!("sdn status {control}")).finish();
    assert!(text.contains("off: no network description"), "{text}");
    let (text, _) = Takt::start(&format!("sdn topology {control}")).finish();
    assert_eq!(text, "no switch has connected");
    let (text, _) = Takt::start(&format!("sdn flows {control}")).finish();
    assert_eq!(text, "no flow has a contract; 0 pairs match without one");
    let (error_text, code) = Takt::start(&format!("sdn explain Square {control}")).error_text();
    assert_eq!(code, Some(2), "{error_text}");
    assert!(error_text.contains("no flow has the topic or GUID \"Square\""), "{error_text}");
    let state = Takt::start(&format!("sdn export {control}")).json();
    assert_eq!(state["switches"], json!([]));
    let (error_text, code) = Takt::start(&format!("sdn run --listen 127.0.0.1:0 {control}")).error_text();
    assert_eq!(code, Some(1), "{error_text}");
    assert!(error_text.contains("another controller listens on it"), "{error_text}");
    controller.terminate();
    controller.error_text();
    assert!(!directory.join("control.sock").exists(), "it is removed with its controller");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn api_without_a_usable_token_does_not_start() {
    let token = std::env::temp_dir().join(format!("takt-cli-sdn-token-{}", std::process::id()));
    std::fs::write(&token, "0123456789abcdef0123456789abcdef").unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    let file = token.display();
    let private = token.with_extension("own");
    std::fs::copy(&token, &private).unwrap();
    std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o600)).unwrap();
    let own = private.display();
    for (options, word) in [
        ("--api 127.0.0.1:0".to_owned(), "--api requires --api-token"),
        (format!("--api 127.0.0.1:0 --api-token {file}"), "other users can read it (mode 644)"),
        ("--api 0.0.0.0:0 --api-open-read".to_owned(), "expected a loopback address"),
        (format!("--api 127.0.0.1:0 --api-open-read --api-write-token {file}"), "other users can read it (mode 644)"),
        (format!("--api 127.0.0.1:0 --api-token {own} --api-write-token {own}"), "the same token as --api-token"),
        (
            format!("--api 127.0.0.1:0 --api-open-read --api-write-token {own} --api-write-token {own}"),
            "each owner needs its own",
        ),
    ] {
        let (error_text, code) = Takt::start(&format!("sdn run --listen 127.0.0.1:0 {options}")).error_text();
        assert!(code.is_some_and(|code| code != 0) && error_text.contains(word), "{options}: {error_text}");
    }
    std::fs::remove_file(&token).unwrap();
    std::fs::remove_file(&private).unwrap();
}
