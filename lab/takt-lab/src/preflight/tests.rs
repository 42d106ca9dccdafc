//! Tests of preflight checks: each defect, introduced in a running lab, fails its check with cause
//! and remedy.

use takt_netlink::strict_priority;
use takt_netlink::traffic::{Discipline, ROOT};
use takt_testkit::{not_run, require};

use super::*;
use crate::buffers::RaisedBufferSizes;
use crate::file::{Class, LabFile};
use crate::lab::Lab;
use crate::plan::Interface;
use crate::wiring::{add_classes, at, set_offload};

const NETWORK: &str = r#"
    [[classes]]
    name = "urgent"
    dscp = [46]
    frames = 64
    [[classes]]
    name = "other"
    frames = 256
    [hosts.left]
    eth0 = ["10.7.0.1/24"]
    [hosts.right]
    eth0 = ["10.7.0.2/24"]
    [switches.s1]
    [[links]]
    ends = ["left:eth0", "s1"]
    [[links]]
    ends = ["s1", "right:eth0"]
    rate = "20 Mbit/s"
"#;

/// Returns a running lab without a defect. Without root or Open vSwitch the test is reported as not
/// run.
fn lab(test: &str) -> Option<Lab> {
    let programs = || ["ovsdb-server", "ovs-vswitchd", "ovsdb-tool"].into_iter().try_for_each(require::program);
    if let Err(why) = require::root().and_then(|()| require::network_namespaces()).and_then(|()| programs()) {
        not_run(why);
        return None;
    }
    let text = format!("name = \"trap-{test}-{}\"\n{NETWORK}", std::process::id());
    let file: LabFile = text.parse().expect("success");
    Some(Lab::up(&file).unwrap_or_else(|why| panic!("{why}")))
}

/// Asserts that the check of this name failed and its text contains all these words.
fn assert_failed(checks: &[Check], name: &str, words: &[&str]) {
    let check = checks.iter().find(|check| check.name == name).expect("it exists");
    assert_eq!(check.outcome, Outcome::Failed, "{checks:?}");
    for word in words {
        assert!(check.detail.contains(word), "{word}: {}", check.detail);
    }
}

/// Repeats the checks of datagrams.
fn sent(lab: &Lab) -> Vec<Check> {
    datagrams(&lab.namespaces, lab.plan(), &lab.file().classes).expect("the kernel answers")
}

/// Returns the rate-limited port.
fn port(lab: &Lab) -> &Interface {
    &lab.plan().links[1].ends[0]
}

#[test]
fn checksum_offload_of_a_host_is_found_by_datagrams() {
    let Some(lab) = lab("checksum") else { return };
    let left = &lab.plan().links[0].ends[0];
    set_offload(&lab.namespaces, left, true).expect("as root");
    let checks = sent(&lab);
    assert_failed(&checks, CHECKSUM, &["from left arrived at right with a wrong UDP checksum", "tx off"]);
    let classes = checks.iter().find(|check| check.name == CLASSES).expect("it exists");
    assert_eq!(classes.outcome, Outcome::NotMeasured);
    set_offload(&lab.namespaces, left, false).expect("as root");
    assert!(sent(&lab).iter().all(|check| check.outcome == Outcome::Passed));
}

#[test]
fn filters_of_other_marks_are_found_by_datagrams() {
    let Some(lab) = lab("classes") else { return };
    let other = Class { dscp: vec![10], ..lab.file().classes[0].clone() };
    let classes = [other, lab.file().classes[1].clone()];
    at(&lab.namespaces, port(&lab), |netlink, index| {
        netlink.remove_discipline(index, ROOT)?;
        add_classes(netlink, index, 20_000_000, &classes)
    })
    .expect("as root");
    assert_failed(&sent(&lab), CLASSES, &["port s1-2", "none through class urgent", "recreate the lab"]);
}

#[test]
fn buffers_of_a_switch_that_started_with_the_defaults_are_too_small() {
    let Some(mut lab) = lab("buffers") else { return };
    // No other lab can raise the settings meanwhile.
    let unchanged = RaisedBufferSizes::new(0, 0).expect("as root");
    let default = std::fs::read_to_string("/proc/sys/net/core/wmem_default").expect("proc is mounted");
    let default = default.trim();
    if default.parse::<u64>().expect("a number") > lab.plan().queue_memory(lab.file()) {
        return not_run(format!("net.core.wmem_default of this machine, {default}, exceeds all queues"));
    }
    let plan = lab.plan().clone();
    lab.switches.as_mut().expect("it is up").restart(&plan).expect("it starts");
    unchanged.restore().expect("as root");
    let checks = lab.check().expect("the kernel answers");
    assert_failed(
        &checks,
        SEND_BUFFER,
        &[&format!("through one socket of {default} octets"), "raise net.core.wmem_default", "reduce the frames"],
    );
    assert_failed(&checks, RECEIVE_BUFFER, &["port s1-1 has a receive buffer of", "raise net.core.rmem_default"]);
}

#[test]
fn queue_that_drops_from_the_tail_is_found() {
    let Some(lab) = lab("tail") else { return };
    at(&lab.namespaces, port(&lab), |netlink, index| {
        netlink.remove_discipline(index, strict_priority::class(1))?;
        netlink.add_leaf(index, 1, Discipline::Pfifo { frames: 256 })
    })
    .expect("as root");
    let checks = lab.check().expect("the kernel answers");
    assert_failed(&checks, HEAD_DROP, &["class other of s1-2", "pfifo", "ENOBUFS", "use pfifo_head_drop"]);
}

#[test]
fn restart_removes_the_discipline_of_a_port_without_qos_row() {
    let Some(mut lab) = lab("restart") else { return };
    let port = port(&lab).clone();
    let classes = lab.file().classes.clone();
    lab.switches.as_mut().expect("it is up").clear_qos(&port.name).expect("it answers");
    at(&lab.namespaces, &port, |netlink, index| {
        // Open vSwitch may have removed the discipline with the row.
        drop(netlink.remove_discipline(index, ROOT));
        add_classes(netlink, index, 20_000_000, &classes)
    })
    .expect("as root");
    lab.restart_switches().expect("it starts");
    let checks = lab.check().expect("the kernel answers");
    assert_failed(&checks, DISCIPLINE, &["s1-2 of switches has lost its HTB", "without a QoS row", "linux-noop"]);
}

#[test]
fn queues_beyond_the_send_buffer_are_found() {
    let Some(lab) = lab("queues") else { return };
    let pid = lab.switches.as_ref().map(|switches| switches.pid());
    let checks = sockets(&lab.namespaces, lab.plan(), pid, u64::from(u32::MAX)).expect("the kernel answers");
    assert_failed(&checks, SEND_BUFFER, &["all queues hold 4294967295"]);
}

#[test]
fn port_that_left_its_bridge_or_does_not_forward_is_found() {
    if let Err(why) = require::root().and_then(|()| require::network_namespaces()) {
        return not_run(why);
    }
    let text = NETWORK.replace("[switches.s1]", "[switches.s1]\nkind = \"bridge\"");
    let text = format!("name = \"trap-bridge-{}\"\n{text}", std::process::id());
    let lab = Lab::up(&text.parse().expect("success")).unwrap_or_else(|why| panic!("{why}"));
    let of = |outcome| {
        lab.checks().iter().filter(|check| check.outcome == outcome).map(|check| check.name).collect::<Vec<_>>()
    };
    assert_eq!(of(Outcome::Passed), [CHECKSUM, CLASSES, DISCIPLINE, HEAD_DROP, BRIDGE], "{:?}", lab.checks());
    let port = port(&lab);
    at(&lab.namespaces, port, |netlink, index| netlink.set_up(index, false)).expect("as root");
    assert_failed(&lab.check().expect("the kernel answers"), BRIDGE, &["port s1-2 of the bridge s1 does not forward"]);
    at(&lab.namespaces, port, |netlink, index| netlink.set_up(index, true)).expect("as root");
    assert!(lab.check().expect("the kernel answers").iter().all(|check| check.outcome != Outcome::Failed));
    // The port is now in no bridge.
    at(&lab.namespaces, port, |netlink, index| netlink.add_bridge_port(index, 0)).expect("as root");
    assert_failed(&lab.check().expect("the kernel answers"), BRIDGE, &["s1-2 is no longer a port of the bridge s1"]);
}
