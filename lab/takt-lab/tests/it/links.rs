//! Tests that hosts reach each other through switches, and that every preflight check passes.

use std::net::UdpSocket;
use std::time::Duration;

use takt_lab::Outcome;
use takt_testkit::{not_run, require};

use crate::support::{one_switch, up};

#[test]
fn hosts_at_a_switch_reach_each_other_and_all_checks_pass() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let lab = up("links", &one_switch());
    assert_eq!(lab.checks().len(), 6, "{:?}", lab.checks());
    assert!(lab.checks().iter().all(|check| check.outcome == Outcome::Passed), "{:?}", lab.checks());
    let socket = |host: &str| {
        let namespace = lab.namespace(host).expect("a host of the file");
        let socket = namespace.run(|| UdpSocket::bind("0.0.0.0:7000")).expect("root").expect("the port is free");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        socket
    };
    let (left, right) = (socket("left"), socket("right"));
    let mut buffer = [0; 2000];
    left.send_to(&[7; 1400], "10.7.0.2:7000").expect("there is a route");
    let (len, from) = right.recv_from(&mut buffer).expect("it arrives");
    assert_eq!((len, from.to_string().as_str()), (1400, "10.7.0.1:7000"));
    right.send_to(&[8; 8], from).expect("there is a route");
    assert_eq!(left.recv_from(&mut buffer).expect("it arrives").0, 8);
    lab.remove().expect("success");
}

/// Two hosts at one link.
const WIRE: &str = r#"
    [[classes]]
    name = "all"
    frames = 100
    [hosts.left]
    eth0 = ["10.7.0.1/24"]
    [hosts.right]
    eth0 = ["10.7.0.2/24"]
    [[links]]
    ends = ["left:eth0", "right:eth0"]
    rate = "100 Mbit/s"
"#;

#[test]
fn hosts_at_one_link_reach_each_other_without_a_switch() {
    if let Err(why) = require::root().and_then(|()| require::network_namespaces()) {
        return not_run(why);
    }
    let lab = up("wire", WIRE);
    let of = |outcome| {
        lab.checks().iter().filter(|check| check.outcome == outcome).map(|check| check.name).collect::<Vec<_>>()
    };
    assert_eq!(of(Outcome::Passed), ["checksum", "discipline", "head-drop"], "{:?}", lab.checks());
    assert_eq!(of(Outcome::NotMeasured), ["classes", "send-buffer", "receive-buffer"]);
    let socket = |host: &str| {
        let namespace = lab.namespace(host).expect("a host of the file");
        namespace.run(|| UdpSocket::bind("0.0.0.0:7000")).expect("root").expect("the port is free")
    };
    let (left, right) = (socket("left"), socket("right"));
    right.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    left.send_to(&[7; 10], "10.7.0.2:7000").expect("there is a route");
    assert_eq!(right.recv(&mut [0; 100]).expect("it arrives"), 10);
}
