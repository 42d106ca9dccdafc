//! Tests against Open vSwitch in a network namespace of the test.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use takt_ovsdb::open_vswitch::{Bridge, FailMode, Qos, Queue};
use takt_ovsdb::{Error, OpenVSwitch};
use takt_testkit::network::veth_pair;
use takt_testkit::open_vswitch::OpenVSwitch as Processes;
use takt_testkit::{not_run, require};

const TIMEOUT: Duration = Duration::from_secs(30);

fn connect(socket: &Path) -> OpenVSwitch {
    let begin = Instant::now();
    loop {
        match OpenVSwitch::unix(socket, TIMEOUT) {
            Ok(database) => return database,
            Err(Error::Io { .. }) if begin.elapsed() < TIMEOUT => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn bridge(name: &str) -> Bridge {
    Bridge {
        name: name.to_owned(),
        datapath_type: "netdev".to_owned(),
        fail_mode: FailMode::Secure,
        protocols: vec!["OpenFlow13".to_owned(), "OpenFlow15".to_owned()],
        datapath_id: Some(0x1234),
    }
}

fn bridges_and_ports(processes: &Processes, database: &mut OpenVSwitch) {
    database.add_bridge(&bridge("s1")).expect("a new bridge");
    database.add_port("s1", "eth0", Some(7), None).expect("a new port");
    database.wait_until_applied().expect("ovs-vswitchd runs");
    let ports = ["eth0", "s1"].map(str::to_owned).to_vec();
    assert_eq!(database.bridges().expect("a list"), BTreeMap::from([("s1".to_owned(), ports)]));
    let interfaces = database.interfaces().expect("a list");
    let eth0 = interfaces.iter().find(|interface| interface.name == "eth0").expect("the port is listed");
    assert_eq!((eth0.ofport, eth0.error.as_str()), (Some(7), ""));
    assert_eq!(processes.vsctl(&["get", "bridge", "s1", "datapath_id"]), "0000000000001234");
    assert_eq!(processes.vsctl(&["get", "bridge", "s1", "fail_mode"]), "secure");
    assert_eq!(processes.vsctl(&["get", "bridge", "s1", "protocols"]), "[OpenFlow13, OpenFlow15]");
    database.set_fail_mode("s1", FailMode::Standalone).expect("the bridge exists");
    assert_eq!(processes.vsctl(&["get", "bridge", "s1", "fail_mode"]), "standalone");
    database.add_port("s1", "nothing0", None, None).expect("the database accepts the value");
    database.wait_until_applied().expect("ovs-vswitchd runs");
    let interfaces = database.interfaces().expect("a list");
    let nothing = interfaces.iter().find(|interface| interface.name == "nothing0").expect("the port is listed");
    assert!(nothing.ofport.is_none() && nothing.error.contains("No such device"), "{nothing:?}");
    database.remove_port("nothing0").expect("the port exists");
}

fn errors_name_the_operation(database: &mut OpenVSwitch) {
    let Err(Error::Transaction(failure)) = database.add_bridge(&bridge("s1")) else { panic!("it was accepted") };
    assert_eq!((failure.operation, failure.error.as_str()), (None, "constraint violation"));
    let mut wrong = bridge("s2");
    wrong.protocols = vec!["OpenFlow99".to_owned()];
    let Err(Error::Transaction(failure)) = database.add_bridge(&wrong) else { panic!("it was accepted") };
    assert_eq!((failure.operation, failure.name.as_str()), (Some(2), "insert Bridge"), "{failure}");
    let error = database.add_port("s9", "eth0", None, None).expect_err("the bridge does not exist");
    assert!(error.to_string().contains("a row \"s9\" in the table Bridge"), "{error}");
}

fn controllers(database: &mut OpenVSwitch) {
    let targets = ["tcp:127.0.0.1:6653", "tcp:127.0.0.1:6654"];
    database.set_controllers("s1", &targets, Duration::from_secs(1)).expect("the bridge exists");
    let mut found: Vec<_> = database.controllers("s1").expect("a list").into_iter().map(|one| one.target).collect();
    found.sort();
    assert_eq!(found, targets);
    assert!(database.controllers("s1").expect("a list").iter().all(|controller| !controller.is_connected));
    database.set_controllers("s1", &[], Duration::from_secs(1)).expect("the bridge exists");
    assert_eq!(database.controllers("s1").expect("a list"), []);
}

fn queues(processes: &Processes, database: &mut OpenVSwitch) {
    let queue = |priority| Queue { min_rate: Some(12_000), max_rate: Some(1_000_000), priority: Some(priority) };
    let qos = Qos::Htb { max_rate: 1_000_000, queues: BTreeMap::from([(0, queue(1)), (1, queue(0))]) };
    database.set_qos("eth0", &qos).expect("the port exists");
    database.wait_until_applied().expect("ovs-vswitchd runs");
    assert_eq!(processes.vsctl(&["--columns=type", "--bare", "list", "qos"]), "linux-htb");
    let kinds = || {
        let output = Command::new("tc").args(["qdisc", "show", "dev", "eth0"]).output().expect("iproute2 is installed");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    assert!(kinds().contains("qdisc htb 1: root"), "{}", kinds());
    database.set_qos("eth0", &Qos::Noop).expect("the port exists");
    assert_eq!(processes.vsctl(&["--columns=type", "--bare", "list", "qos"]), "linux-noop");
    assert_eq!(processes.vsctl(&["--columns=_uuid", "--bare", "list", "queue"]), "", "rows of queues do not stay");
    database.clear_qos("eth0").expect("the port exists");
    assert_eq!(processes.vsctl(&["--columns=_uuid", "--bare", "list", "qos"]), "");
}

fn ports_and_owners(database: &mut OpenVSwitch) {
    let ports = database.bridge_ports().expect("a list");
    let eth0 = ports.iter().find(|port| port.interface == "eth0").expect("the port is listed");
    assert_eq!((eth0.bridge.as_str(), eth0.datapath_id, eth0.ofport), ("s1", Some(0x1234), Some(7)));
    assert!(!eth0.is_virtual && ports.iter().any(|port| port.interface == "s1" && port.is_virtual), "{ports:?}");
    assert_eq!(database.qos("eth0").expect("the port exists"), None);
    let queue = Queue { min_rate: Some(12_000), max_rate: Some(1_000_000), priority: Some(3) };
    let htb = Qos::Htb { max_rate: 1_000_000, queues: BTreeMap::from([(0, queue), (5, Queue::default())]) };
    for qos in [htb, Qos::Noop] {
        database.set_owned_qos("eth0", &qos, "test").expect("the port exists");
        let found = database.qos("eth0").expect("the port exists").expect("the port has QoS");
        assert_eq!((found.qos.as_ref(), found.owner.as_deref()), (Some(&qos), Some("test")));
        database.set_qos("eth0", &qos).expect("the port exists");
        let found = database.qos("eth0").expect("the port exists").expect("the port has QoS");
        assert_eq!((found.qos, found.owner), (Some(qos), None));
    }
    database.clear_qos("eth0").expect("the port exists");
    let error = database.qos("eth9").expect_err("the port does not exist");
    assert!(error.to_string().contains("\"eth9\" in the table Port"), "{error}");
}

/// Checks that an existing queueing discipline remains if the port has a linux-noop row before Open
/// vSwitch takes the interface.
fn foreign_discipline(database: &mut OpenVSwitch) {
    let tc = |line: &str| {
        let output = Command::new("tc").args(line.split(' ')).output().expect("iproute2 is installed");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    for (qos, remains) in [(Some(&Qos::Noop), true), (None, false)] {
        database.remove_port("eth0").expect("the port exists");
        database.wait_until_applied().expect("ovs-vswitchd runs");
        tc("qdisc replace dev eth0 root handle 7: pfifo limit 9");
        database.add_port("s1", "eth0", None, qos).expect("the bridge exists");
        database.wait_until_applied().expect("ovs-vswitchd runs");
        let text = tc("qdisc show dev eth0");
        assert_eq!(text.contains("qdisc pfifo 7: root"), remains, "{qos:?}: {text}");
    }
}

#[test]
fn open_vswitch_applies_the_database() {
    if let Err(why) = require::open_vswitch().and_then(|()| require::program("tc")) {
        return not_run(why);
    }
    let Some([host, _peer]) = veth_pair(1) else { return };
    let _inside = host.enter();
    let processes = Processes::start();
    let mut database = connect(&processes.database());
    database.initialize().expect("the server answers");
    bridges_and_ports(&processes, &mut database);
    errors_name_the_operation(&mut database);
    controllers(&mut database);
    queues(&processes, &mut database);
    ports_and_owners(&mut database);
    foreign_discipline(&mut database);
    database.remove_bridge("s1").expect("the bridge exists");
    assert_eq!(database.bridges().expect("a list"), BTreeMap::new());
}
