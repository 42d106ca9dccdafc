//! `takt sdn run --isolation` between bridges of Open vSwitch: endpoints that the policy separates
//! do not match, and no datagram passes between their hosts.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use takt_lab::Lab;
use takt_lab::file::SWITCHES;
use takt_testkit::lab_text::{LabText, lab_name};
use takt_testkit::waiting::{until, until_some};
use takt_testkit::{not_run, require};

use crate::process::Takt;
use crate::sdn_site::{self, packets, start, up};

fn three_hosts() -> LabText {
    let text = LabText::controlled(&["s1", "s2"]).host("red", "10.9.2.1/24", "s1").link("s1", "s2");
    text.host("black", "10.9.2.2/24", "s2").host("white", "10.9.2.3/24", "s2")
}

const RED: Ipv4Addr = Ipv4Addr::new(10, 9, 2, 1);
const BLACK: Ipv4Addr = Ipv4Addr::new(10, 9, 2, 2);

const POLICY: &str = r#"
    [[label]]
    name = "red"
    addresses = ["10.9.2.1/32"]
    [[label]]
    name = "black"
    addresses = ["10.9.2.2/32"]
    [[rule]]
    between = ["red", "black"]
    decision = "deny"
"#;
const PORT: u16 = 9000;

fn socket(lab: &Lab, host: &str) -> UdpSocket {
    let socket = sdn_site::socket(lab, host, PORT);
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    socket
}

/// Sends until a datagram arrives and returns the address of its sender.
fn first_sender(to: &UdpSocket, address: Ipv4Addr, senders: &[&UdpSocket]) -> Ipv4Addr {
    let mut buffer = [0; 16];
    until_some(&format!("something arrives at {address}"), || {
        for sender in senders {
            sender.send_to(b"hello", (address, PORT)).unwrap();
        }
        let (_, from) = to.recv_from(&mut buffer).ok()?;
        let std::net::IpAddr::V4(from) = from.ip() else { panic!("IPv4 alone is used") };
        Some(from)
    })
}

/// Returns the number of packets that entries of the policy dropped in a switch.
fn dropped(lab: &Lab, switch: &str) -> u64 {
    let entries = sdn_site::entries(lab, switch);
    entries.lines().filter(|line| line.contains("cookie=0x544b07") && line.contains("actions=drop")).map(packets).sum()
}

fn with_policy(directory: &Path, text: &str) -> PathBuf {
    std::fs::create_dir_all(directory).unwrap();
    let path = directory.join("isolation.toml");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn hosts_that_the_policy_separates_exchange_nothing_and_others_do() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let directory = std::env::temp_dir().join(lab_name("cli-sdn-isolate"));
    let policy = with_policy(&directory, POLICY);
    let lab = up("cli-sdn-isolate", &three_hosts());
    let control = format!("--control {}", directory.join("control.sock").display());
    let options = format!("--isolation {} {control}", policy.display());
    let controller = start(&lab, SWITCHES, &format!("sdn run --listen 127.0.0.1:6653 {options}"));
    controller.expect_line(&["is up with", "is up with", "flooding uses 1 links"]);
    let [red, black, white] = ["red", "black", "white"].map(|host| socket(&lab, host));
    assert_eq!(first_sender(&white, Ipv4Addr::new(10, 9, 2, 3), &[&red]), RED, "red reaches white");
    // The red host sends first each time, over the same link.
    assert_ne!(first_sender(&black, BLACK, &[&red, &white]), RED, "red does not reach black");
    let mut buffer = [0; 16];
    while let Ok((_, from)) = black.recv_from(&mut buffer) {
        assert_ne!(from.ip(), RED);
    }
    until("the switch drops it", || {
        red.send_to(b"hello", (BLACK, PORT)).unwrap();
        dropped(&lab, "s1") > 0
    });
    let shared = "--type ShapeType --transport udp --interface eth0 --domain 8";
    let _reader = start(&lab, "black", &format!("sub Square {shared}"));
    let other = start(&lab, "white", &format!("sub Square {shared} --count 5"));
    let _writer =
        start(&lab, "red", &format!(r#"pub Square {{"color":"RED","x":10}} {shared} --rate 20 --count 1000"#));
    controller.expect_line(&["is denied: isolation: line"]);
    assert!(other.finish().1.success(), "white gets the samples");
    let status = Takt::start(&format!("sdn status {control} --json")).json();
    assert_eq!(status["isolation"]["denied_pairs"], json!(1), "{status}");
    let (text, _) = Takt::start(&format!("sdn status {control}")).finish();
    assert!(text.contains("isolation      default allow, 2 labels, 1 rules; 1 pairs denied"), "{text}");
    controller.terminate();
    lab.remove().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn policy_with_an_error_is_refused_with_file_and_line() {
    let directory = std::env::temp_dir().join(format!("takt-cli-sdn-policy-{}", std::process::id()));
    let policy = with_policy(&directory, &POLICY.replace("\"red\", \"black\"", "\"red\", \"blue\""));
    let (error_text, code) =
        Takt::start(&format!("sdn run --listen 127.0.0.1:0 --isolation {}", policy.display())).error_text();
    assert_eq!(code, Some(2), "{error_text}");
    assert!(error_text.contains("isolation.toml: line 9: between: there is no label \"blue\""), "{error_text}");
    std::fs::remove_dir_all(&directory).unwrap();
}
