//! `takt ls` and `takt doctor` report what keeps participants from communicating: two hosts as
//! network namespaces, with one obstacle each.

use crate::process::Takt;
use serde_json::{Value, json};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use takt_testkit::{not_run, require};

/// Two network namespaces and the veth pair between them: 10.80.0.1 at `takta` and 10.80.0.2 at
/// `taktb`. Dropping the value removes them.
struct Hosts([String; 2]);

impl Hosts {
    /// Creates the namespaces. Without the privilege it reports the test as not run and returns
    /// `None`.
    fn new() -> Option<Self> {
        require::network_namespaces().map_err(not_run).ok()?;
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let own = Self(["a", "b"].map(|side| format!("takt-network-{}-{number}{side}", std::process::id())));
        let [a, b] = &own.0;
        assert!(run(&format!("ip netns add {a}")));
        assert!(run(&format!("ip netns add {b}")));
        assert!(run(&format!("ip link add takta netns {a} type veth peer name taktb netns {b}")));
        for (side, interface) in ["takta", "taktb"].iter().enumerate() {
            own.set(side, &format!("ip address add 10.80.0.{}/24 dev {interface}", side + 1));
            own.set(side, "ip link set lo up");
            own.set(side, &format!("ip link set {interface} up"));
        }
        // A query of one interface makes its link operational at once. Otherwise the end that came
        // up first drops its frames for up to a second.
        for (side, interface) in ["takta", "taktb"].iter().enumerate() {
            own.set(side, &format!("ip link show dev {interface}"));
        }
        Some(own)
    }

    /// Runs a command on a host and asserts that it succeeds.
    fn set(&self, side: usize, line: &str) {
        assert!(run(&format!("ip netns exec {} {line}", self.0[side])), "{line}");
    }

    /// Drops matching input of a host.
    fn drop_input(&self, side: usize, what: &str) {
        self.set(side, "nft add table inet takt");
        self.set(side, "nft add chain inet takt input { type filter hook input priority 0 ; }");
        self.set(side, &format!("nft add rule inet takt input {what} drop"));
    }

    fn start(&self, side: usize, line: &str) -> Takt {
        Takt::start_by(&format!("ip netns exec {}", self.0[side]), line)
    }

    /// Starts a reader of Square.
    fn reader(&self, side: usize, options: &str) -> Takt {
        let reader = self.start(side, &format!("sub Square --type ShapeType {options}"));
        reader.await_complaint("takt: reading Square");
        reader
    }

    /// Returns the output of `takt ls` on the first host.
    fn list(&self, options: &str) -> Value {
        self.start(0, &format!("ls --json {options}")).json()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.0 {
            run(&format!("ip netns delete {name}"));
        }
    }
}

fn run(line: &str) -> bool {
    let mut words = line.split_whitespace();
    Command::new(words.next().unwrap()).args(words).output().is_ok_and(|output| output.status.success())
}

/// Returns the findings that begin with this text.
fn findings<'v>(all: &'v Value, beginning: &str) -> Vec<&'v str> {
    let texts = all.as_array().unwrap().iter().filter_map(|finding| finding["what"].as_str());
    texts.filter(|what| what.starts_with(beginning)).collect()
}

macro_rules! hosts {
    () => {
        match Hosts::new() {
            Some(hosts) => hosts,
            None => return,
        }
    };
}

#[test]
fn participants_that_find_each_other_are_listed_without_a_finding() {
    let hosts = hosts!();
    let _reader = hosts.reader(1, "");
    let catalogue = hosts.list("--wait 3");
    assert_eq!(catalogue["findings"], serde_json::json!([]), "{catalogue}");
    assert_eq!(catalogue["participants"][0]["answers"], Value::Bool(true), "{catalogue}");
}

#[test]
fn participant_behind_a_firewall_is_named_with_the_address_that_does_not_answer() {
    let hosts = hosts!();
    hosts.drop_input(1, "ip daddr 10.80.0.2 udp dport 7400-7900");
    let _reader = hosts.reader(1, "");
    let catalogue = hosts.list("--wait 5");
    let found = findings(&catalogue["findings"], "\"takt sub\" (");
    assert_eq!(found.len(), 1, "{catalogue}");
    assert!(found[0].contains(") announces itself but does not answer at udp/10.80.0.2:7410"), "{catalogue}");
    assert_eq!(catalogue["participants"][0]["answers"], Value::Bool(false), "{catalogue}");
    let (text, _) = hosts.start(0, "ls --wait 5").finish();
    assert!(text.contains("DOES NOT ANSWER") && text.contains("permit UDP ports 7400 and above"), "{text}");
}

#[test]
fn multicast_that_does_not_return_is_a_finding_of_ls_and_doctor() {
    let hosts = hosts!();
    hosts.drop_input(0, "ip daddr 224.0.0.0/4");
    let beginning = "a multicast datagram to 239.255.0.1:7400 through takta does not return to this host";
    let catalogue = hosts.list("--wait 0.5");
    assert_eq!(findings(&catalogue["findings"], beginning).len(), 1, "{catalogue}");
    let (text, status) = hosts.start(0, "doctor --json --wait 0.5").finish();
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((findings(&found, beginning).len(), status.code()), (1, Some(1)), "{text}");
}

#[test]
fn interface_without_multicast_is_named_with_the_command_that_enables_it() {
    let hosts = hosts!();
    hosts.set(0, "ip link set takta multicast off");
    let (text, _) = hosts.start(0, "doctor --wait 0.5").finish();
    assert!(
        text.contains("takta does not carry multicast") && text.contains("$ ip link set takta multicast on"),
        "{text}"
    );
}

#[test]
fn peers_and_servers_that_do_not_answer_are_named() {
    let hosts = hosts!();
    let catalogue = hosts.list("--wait 0.5 --peer 10.80.0.2 --server 10.80.0.2:7400");
    assert_eq!(findings(&catalogue["findings"], "peer 10.80.0.2 does not answer").len(), 1, "{catalogue}");
    let server = "discovery server 10.80.0.2:7400 does not answer";
    assert_eq!(findings(&catalogue["findings"], server).len(), 1, "{catalogue}");
    let _reader = hosts.reader(1, "");
    let catalogue = hosts.list("--wait 3 --peer 10.80.0.2");
    assert_eq!(findings(&catalogue["findings"], "peer").len(), 0, "{catalogue}");
}

#[test]
fn participants_of_another_domain_are_named_if_this_one_is_empty() {
    let hosts = hosts!();
    let _reader = hosts.reader(1, "--domain 3");
    let catalogue = hosts.list("--wait 0.5");
    let found = findings(&catalogue["findings"], "domain 3 has 1 participant, such as \"takt sub\"");
    assert_eq!(found.len(), 1, "{catalogue}");
}

#[test]
fn participants_that_use_only_loopback_are_named() {
    let hosts = hosts!();
    let _reader = hosts.reader(0, "--interface lo --peer 127.0.0.1");
    let catalogue = hosts.list("--wait 1");
    let found = findings(&catalogue["findings"], "1 participant only on loopback: \"takt sub\"");
    assert_eq!(found.len(), 1, "{catalogue}");
}

#[test]
fn interface_with_only_ipv6_addresses_is_named_if_ipv6_is_off() {
    let hosts = hosts!();
    hosts.set(0, "ip address del 10.80.0.1/24 dev takta");
    hosts.set(0, "ip address add fd00:80::1/64 dev takta nodad");
    let beginning = "takta has only IPv6 addresses, and IPv6 is off";
    let catalogue = hosts.list("--wait 0.5");
    assert_eq!(findings(&catalogue["findings"], beginning).len(), 1, "{catalogue}");
    assert_eq!(catalogue["participants"], json!([]), "the checks list no participant of their own: {catalogue}");
}

/// Removes all addresses of both hosts except an IPv6 link-local address.
fn leave_link_local_alone(hosts: &Hosts) {
    for (side, interface) in ["takta", "taktb"].iter().enumerate() {
        hosts.set(side, &format!("ip address flush dev {interface}"));
        hosts.set(side, &format!("ip address add fe80::{}/64 dev {interface} nodad", side + 1));
    }
}

#[test]
fn interface_with_only_a_link_local_address_is_a_finding_if_ipv6_is_off() {
    let hosts = hosts!();
    leave_link_local_alone(&hosts);
    let (text, status) = hosts.start(0, "doctor --wait 0.5").finish();
    assert_eq!(status.code(), Some(1), "{text}");
    let lines = [
        "takta has only a link-local IPv6 address, and IPv6 is off",
        "participants of this host discover each other over loopback; those of other hosts are not discovered",
        "ip address add ADDRESS/LENGTH dev takta, or DHCP; TAKT_IPV6=1 on all hosts reaches those of the same link",
    ];
    assert!(lines.iter().all(|line| text.contains(line)), "{text}");
    let warning = "takta has link-local IPv6 addresses only, and IPv6 is off: other hosts are not discovered";
    assert!(text.contains(warning), "the library says so, too: {text}");
    let _reader = hosts.reader(0, "");
    let catalogue = hosts.list("--wait 2");
    assert_eq!(findings(&catalogue["findings"], lines[0]).len(), 1, "{catalogue}");
    assert_eq!(catalogue["participants"][0]["answers"], Value::Bool(true), "by loopback: {catalogue}");
}

#[test]
fn hosts_with_only_link_local_addresses_find_each_other_if_ipv6_is_on() {
    let hosts = hosts!();
    leave_link_local_alone(&hosts);
    let start = |side: usize, line| Takt::start_by(&format!("ip netns exec {} env TAKT_IPV6=1", hosts.0[side]), line);
    let hint = "takta has only a link-local IPv6 address";
    let alone = start(0, "ls --json --wait 0.5").json();
    assert_eq!(findings(&alone["findings"], hint).len(), 1, "{alone}");
    assert_eq!(findings(&alone["findings"], "a multicast datagram to").len(), 0, "multicast comes back: {alone}");
    let reader = start(1, "sub Square --type ShapeType");
    reader.await_complaint("takt: reading Square");
    let catalogue = start(0, "ls --json --wait 3").json();
    assert_eq!(catalogue["findings"], json!([]), "no findings: {catalogue}");
    assert_eq!(catalogue["participants"][0]["answers"], Value::Bool(true), "{catalogue}");
    let (text, _) = start(0, "doctor --json --wait 0.5").finish();
    let found: Value = serde_json::from_str(&text).unwrap();
    let matters = |one: &&Value| one["what"].as_str().is_some_and(|what| what.starts_with(hint));
    assert_eq!(found.as_array().unwrap().iter().find(matters).unwrap()["matters"], Value::Bool(false), "{text}");
}

#[test]
fn link_local_address_next_to_an_interface_with_ipv4_is_no_finding() {
    let hosts = hosts!();
    hosts.set(0, "ip link add takt2 type veth peer name takt3");
    hosts.set(0, "ip link set takt2 up");
    hosts.set(0, "ip link set takt3 up");
    hosts.set(0, "ip address add fe80::7/64 dev takt2 nodad");
    let catalogue = hosts.list("--wait 0.5");
    assert_eq!(findings(&catalogue["findings"], "takt2 has").len(), 0, "{catalogue}");
}

#[test]
fn misspelled_topic_is_reported_with_the_similar_topic() {
    let hosts = hosts!();
    let _reader = hosts.reader(1, "");
    let (text, code) = hosts.start(0, "echo Sqare --timeout 4").error_text();
    assert_eq!(code, Some(3), "{text}");
    let expected = "topic Sqare has no writer or reader; did you mean Square (0 writers, 1 reader)?";
    assert!(text.contains(expected), "{text}");
}
