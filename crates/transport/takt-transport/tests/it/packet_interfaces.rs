//! Tests of AF_PACKET with interfaces that go down, come back, and are deleted and created again;
//! and with killed processes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use takt_transport::ethernet::PacketConfig;
use takt_transport::{Control, FlowId, Receive, Scan, Transport, TransportEvent, readiness};
use takt_wire::Locator;

use super::network::{Host, Network, ip};
use super::packet_conforms::{Packet, open_on};
use super::{send, user_locator};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Sends until a datagram arrives, because links need time to come up. Returns its source.
fn reaches(a: &mut Packet, b: &mut Packet) -> Option<Locator> {
    let since = Instant::now();
    while since.elapsed() < TIMEOUT {
        send(a, b"there?", FlowId::DEFAULT, &[user_locator(b)]);
        if let Some(frame) = b.recv(Receive::Any(Scan::All)).expect("receive succeeds") {
            assert_eq!(frame[..], *b"there?");
            return Some(frame.meta.source);
        }
    }
    None
}

/// Polls until the transport reports a change, and refreshes it.
fn refresh_until(transport: &mut Packet) {
    let since = Instant::now();
    while transport.poll_event() != Some(TransportEvent::InterfacesChanged) {
        assert!(since.elapsed() < TIMEOUT, "no event arrives");
        while transport.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
    }
    transport.control(Control::Refresh).expect("the interface can be looked at");
}

/// Creates a wire between two interfaces of a host, `x0` and `x1`.
fn create_veth_pair(host: &Host, last: u8) {
    host.run(|| {
        ip(&format!(
            "link add x0 address 02:00:00:01:00:{last:02x} type veth peer name x1 address 02:00:00:02:00:{last:02x}
             link set x0 up
             link set x1 up"
        ));
    });
}

#[test]
fn interface_continues_after_it_was_down() {
    let Some(network) = Network::new() else { return };
    let host = network.host(true);
    create_veth_pair(&host, 1);
    let [mut a, mut b] = ["x0", "x1"].map(|name| open_on(&host, &PacketConfig::new(name), 0));
    assert_eq!(reaches(&mut a, &mut b), Some(user_locator(&a)));
    host.run(|| ip("link set x0 down"));
    refresh_until(&mut a);
    let before = a.status().stats;
    for _ in 0..10 {
        send(&mut a, b"lost", FlowId::DEFAULT, &[user_locator(&b)]);
    }
    assert_eq!(a.status().stats.send_errors.network_unreachable - before.send_errors.network_unreachable, 10);
    // No descriptor stays readable.
    while a.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_some() {}
    assert!(!readiness::wait(a.status().descriptors, Some(Duration::ZERO)).expect("wait succeeds"));
    host.run(|| ip("link set x0 up"));
    // Refused datagrams do not arrive later.
    assert_eq!(reaches(&mut a, &mut b), Some(user_locator(&a)));
    assert_eq!(reaches(&mut b, &mut a), Some(user_locator(&b)));
}

#[test]
fn recreated_interface_is_followed() {
    let Some(network) = Network::new() else { return };
    let host = network.host(true);
    create_veth_pair(&host, 1);
    let [mut a, mut b] = ["x0", "x1"].map(|name| open_on(&host, &PacketConfig::new(name), 0));
    assert!(reaches(&mut a, &mut b).is_some());
    let before = [user_locator(&a), user_locator(&b)];
    host.run(|| ip("link del x0"));
    for transport in [&mut a, &mut b] {
        refresh_until(transport);
        send(transport, b"lost", FlowId::DEFAULT, &[before[0], before[1]]);
        assert!(transport.status().stats.send_errors.network_unreachable > 0);
    }
    create_veth_pair(&host, 2);
    for transport in [&mut a, &mut b] {
        while user_locator(transport).mac().is_none_or(|mac| mac[5] != 2) {
            refresh_until(transport);
        }
    }
    assert_eq!(user_locator(&a).port, before[0].port, "the ports are unchanged");
    assert_eq!(reaches(&mut a, &mut b), Some(user_locator(&a)));
    assert_eq!(reaches(&mut b, &mut a), Some(user_locator(&b)));
    // The group memberships are restored.
    let group = a.status().locators.metatraffic_multicast[0];
    assert!(group_memberships(&host, "x1").contains("01:00:5e:7f:00:01"), "{}", group_memberships(&host, "x1"));
    send(&mut a, b"all", FlowId::DEFAULT, &[group]);
    assert_eq!(super::receive(&mut a).0, b"all");
}

/// Returns the groups that an interface of a host accepts.
fn group_memberships(host: &Host, interface: &str) -> String {
    let shown = host.run(|| Command::new("ip").args(["maddress", "show", "dev", interface]).output());
    String::from_utf8(shown.expect("iproute2 is installed").stdout).expect("text")
}

/// Environment variable that marks a copy of this program as a victim to be killed.
const VICTIM: &str = "TAKT_PACKET_VICTIM";

/// Role of the copy: it opens a transport, reports this, and waits to be killed. Does nothing
/// without the variable.
#[test]
#[ignore = "role: started by other tests"]
fn victim() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let port = takt_transport::ethernet::PacketPort::open(&PacketConfig::new("x0")).expect("root has the permission");
    let config = takt_transport::ethernet::EthernetConfig::new(0);
    let transport = takt_transport::ethernet::EthernetTransport::open(port, &config).expect("an index is free");
    println!("\nvictim: {:?}", transport.participant_index());
    loop {
        std::thread::park();
    }
}

fn victim_on(host: &Host) -> (Child, String) {
    let mut child = host.run(|| {
        Command::new(std::env::current_exe().expect("the path of this program is known"))
            .args(["--ignored", "--exact", "packet_interfaces::victim", "--nocapture"])
            .env(VICTIM, "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this program can be started")
    });
    let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let mut lines = stdout.lines().map_while(Result::ok);
    let line = lines.find_map(|line| line.strip_prefix("victim: ").map(str::to_owned));
    (child, line.expect("the child reports its result"))
}

#[test]
fn killed_process_leaves_nothing() {
    let Some(network) = Network::new() else { return };
    let host = network.host(true);
    create_veth_pair(&host, 1);
    for round in 0..10 {
        let (mut child, index) = victim_on(&host);
        assert_eq!(index, "Some(0)", "round {round}");
        assert!(group_memberships(&host, "x0").contains("01:00:5e:7f:00:01"));
        child.kill().expect("the endpoint exists");
        child.wait().expect("the process ends");
        assert!(!group_memberships(&host, "x0").contains("01:00:5e:7f:00:01"), "round {round}");
    }
}
