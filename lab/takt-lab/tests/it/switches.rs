//! Tests of several switches, rings, controllers, restarts and several labs.

use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use takt_lab::file::SWITCHES;
use takt_lab::namespace::Namespace;
use takt_lab::{Error, Lab, Outcome, Status};
use takt_testkit::{not_run, require};

use crate::support::{file, name, one_switch, up};

const LIMIT: Duration = Duration::from_secs(30);

const RING: &str = r#"
    [[classes]]
    name = "all"
    frames = 64
    [hosts.left]
    eth0 = ["10.7.0.1/24"]
    [hosts.right]
    eth0 = ["10.7.0.2/24"]
    [switches]
    s1 = { controller = "tcp:127.0.0.1:6653" }
    s2 = { controller = "tcp:127.0.0.1:6653", datapath_id = 0xabc }
    s3 = { fail_mode = "secure" }
    [[links]]
    ends = ["left:eth0", "s1"]
    [[links]]
    ends = ["s1", "s2"]
    rate = "10 Mbit/s"
    [[links]]
    ends = ["s2", "s3"]
    [[links]]
    ends = ["s3", "s1"]
    rate = "10 Mbit/s"
    [[links]]
    ends = ["s2", "right:eth0"]
"#;

/// Returns a bound socket of a host.
fn socket(namespace: &Namespace, address: &str, limit: Duration) -> UdpSocket {
    let socket = namespace.run(|| UdpSocket::bind((address, 7000))).expect("root").expect("the port is free");
    socket.set_read_timeout(Some(limit)).expect("a timeout");
    socket
}

#[test]
fn two_switch_example_passes_every_check() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let text = include_str!("../../../../examples/lab/two-switches.toml");
    let lab = up("example", text);
    assert!(lab.checks().iter().all(|check| check.outcome == Outcome::Passed), "{:?}", lab.checks());
    let bridges = lab.database().expect("it answers").bridges().expect("a list");
    assert_eq!(bridges["west"], ["west", "west-1", "west-2"]);
    let found = lab.database().expect("it answers").interfaces().expect("a list");
    let port =
        |name: &str| found.iter().find(|interface| interface.name == name).and_then(|interface| interface.ofport);
    assert_eq!([port("west-1"), port("west-2"), port("east-2")], [Some(1), Some(2), Some(2)]);
}

#[test]
fn ring_has_its_controllers_and_secure_switches_forward_nothing_by_themselves() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let mut lab = up("ring", RING);
    let passed = lab.checks().iter().filter(|check| check.outcome == Outcome::Passed).count();
    assert_eq!(passed, lab.checks().len(), "{:?}", lab.checks());
    assert!(!lab.wait_for_controllers(Duration::ZERO).expect("it answers"), "none runs");
    let namespace = lab.namespace(SWITCHES).expect("it exists").clone();
    let listener = namespace.run(|| TcpListener::bind("127.0.0.1:6653")).expect("root").expect("the port is free");
    // Both switches with a controller connect; the third has none.
    let channels = [(); 2].map(|()| listener.accept().expect("a switch connects").0);
    drop(channels);
    let [left, right] = ["left", "right"].map(|host| lab.namespace(host).expect("a host").clone());
    let receiver = socket(&right, "10.7.0.2", Duration::from_millis(300));
    let sender = socket(&left, "10.7.0.1", LIMIT);
    sender.send_to(b"none", "10.7.0.2:7000").expect("there is a route");
    let kind = receiver.recv(&mut [0; 8]).expect_err("no flow entry forwards it").kind();
    assert!(matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{kind}");
    assert_eq!(lab.plan().bridges[1].datapath_id, 0xabc);
}

#[test]
fn secure_switch_without_a_controller_forwards_nothing() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let lab = up("secure", &one_switch().replace("[switches.s1]", "[switches.s1]\nfail_mode = \"secure\""));
    assert!(lab.checks().iter().all(|check| check.outcome == Outcome::Passed), "{:?}", lab.checks());
    let [left, right] = ["left", "right"].map(|host| lab.namespace(host).expect("a host").clone());
    let receiver = socket(&right, "10.7.0.2", Duration::from_millis(300));
    let sender = socket(&left, "10.7.0.1", LIMIT);
    sender.send_to(b"none", "10.7.0.2:7000").expect("there is a route");
    assert!(receiver.recv(&mut [0; 8]).is_err(), "the flow entry of the checks is gone");
}

#[test]
fn links_go_down_and_up_and_switches_restart() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let mut lab = up("links-down", &one_switch());
    let [left, right] = ["left", "right"].map(|host| lab.namespace(host).expect("a host").clone());
    let receiver = socket(&right, "10.7.0.2", Duration::from_millis(50));
    let sender = socket(&left, "10.7.0.1", LIMIT);
    let arrives = |attempts: usize| {
        (0..attempts).any(|_| {
            // While the sender's own link is down there is no route.
            drop(sender.send_to(b"x", "10.7.0.2:7000"));
            receiver.recv(&mut [0; 8]).is_ok()
        })
    };
    assert!(arrives(200));
    lab.set_link(1, false).expect("as root");
    assert!(!arrives(4));
    lab.set_link(1, true).expect("as root");
    assert!(arrives(200));
    let before = lab.database().expect("it answers").interfaces().expect("a list").len();
    lab.restart_switches().expect("it starts");
    assert!(arrives(200));
    assert_eq!(lab.database().expect("it answers").interfaces().expect("a list").len(), before);
    assert!(lab.check().expect("the kernel answers").iter().all(|check| check.outcome == Outcome::Passed));
    assert!(lab.set_link(9, true).is_err());
}

#[test]
fn labs_with_equal_addresses_are_isolated_from_each_other() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let labs = ["one", "other"].map(|test| up(test, &one_switch()));
    let [one, other] = labs.each_ref().map(|lab| lab.namespace("right").expect("a host"));
    let receivers =
        [(one, LIMIT), (other, Duration::from_millis(300))].map(|(host, limit)| socket(host, "10.7.0.2", limit));
    let sender = socket(labs[0].namespace("left").expect("a host"), "10.7.0.1", LIMIT);
    sender.send_to(b"one", "10.7.0.2:7000").expect("there is a route");
    assert_eq!(receivers[0].recv(&mut [0; 8]).expect("it arrives"), 3);
    assert!(receivers[1].recv(&mut [0; 8]).is_err(), "it is another network");
    let names = Status::names();
    assert!(["one", "other"].iter().all(|test| names.contains(&name(test))), "{names:?}");
}

#[test]
fn drop_removes_a_lab_and_second_lab_of_its_name_is_refused() {
    if let Err(why) = require::open_vswitch() {
        return not_run(why);
    }
    let lab = up("drop", &one_switch());
    let error = Lab::up(&file("drop", &one_switch())).expect_err("one exists");
    assert!(matches!(&error, Error::LabExists(found) if *found == name("drop")), "{error}");
    let status = Status::read(&name("drop")).expect("it is up");
    assert!(status.is_complete && status.nodes.iter().all(|node| node.exists), "{status:?}");
    let switches = status.nodes.iter().find(|node| node.name == SWITCHES).expect("it exists");
    assert_eq!(switches.processes.len(), 2, "{status:?}");
    assert!(matches!(lab.namespace("nobody"), Err(Error::NoHost { .. })));
    drop(lab);
    assert!(matches!(Status::read(&name("drop")), Err(Error::LabNotFound(_))));
    assert!(matches!(Lab::down(&name("drop")), Err(Error::LabNotFound(_))));
}
