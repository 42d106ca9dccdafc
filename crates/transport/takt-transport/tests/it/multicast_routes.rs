//! Tests of the interfaces that send and receive multicast. Each test has its own network
//! namespace, which requires root.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use takt_testkit::network::{enter_new_namespace, ip};
use takt_testkit::waiting::until_some;
use takt_testkit::{not_run, require};
use takt_transport::udp::{InterfaceSelection, UdpConfig, UdpTransport};
use takt_transport::{FlowId, Transport};
use takt_wire::Locator;

use super::{drain, drain_until, open, receive, send, user_locator};

/// Moves this thread to a new network namespace, which disappears with it. Returns false if the
/// test cannot run, which is reported.
fn enter_namespace() -> bool {
    if let Err(why) = require::network_namespaces() {
        not_run(why);
        return false;
    }
    enter_new_namespace();
    true
}

fn config(interfaces: &[&str], ipv6: bool) -> UdpConfig {
    let names = interfaces.iter().map(|name| name.to_string()).collect();
    UdpConfig { interfaces: InterfaceSelection::Named(names), ipv4: !ipv6, ipv6, ..UdpConfig::new(0) }
}

#[test]
fn ipv6_multicast_through_loopback_needs_a_route() {
    if !enter_namespace() {
        return;
    }
    ip("link set lo up");
    let without = open(&config(&["lo"], true));
    assert!(without.status().locators.metatraffic_multicast.is_empty());
    let [warning] = without.status().warnings else { panic!("{:?}", without.status().warnings) };
    let remedy = warning.remedy.split_once("as root: ip ").expect("a command").1;
    // As a user enters it: options before the object are not possible in a batch.
    let status = Command::new("ip").args(remedy.split(' ')).status();
    assert!(status.expect("iproute2 is installed").success(), "ip {remedy}");
    let mut a = open(&config(&["lo"], true));
    let mut b = open(&config(&["lo"], true));
    assert_eq!(a.status().warnings, []);
    let group = a.status().locators.metatraffic_multicast[0];
    assert_eq!(group.to_string(), "udp/[ff02::ffff:efff:1]:7400");
    send(&mut a, b"to all", FlowId::DEFAULT, &[group]);
    for t in [&mut a, &mut b] {
        let (bytes, meta) = receive(t);
        assert_eq!((&bytes[..], meta.local, meta.multicast), (&b"to all"[..], group, true));
    }
    // Unicast to the same port is no multicast.
    let unicast = Locator { port: group.port, ..user_locator(&b) };
    send(&mut a, b"to one", FlowId::DEFAULT, &[unicast]);
    let received = until_some("the datagram arrives", || {
        let received = [drain(&mut a), drain(&mut b)].concat();
        (!received.is_empty()).then_some(received)
    });
    assert_eq!(received.len(), 1);
    assert_eq!((received[0].1.local, received[0].1.multicast), (unicast, false));
}

#[test]
fn missing_route_is_counted_without_effect_on_other_destinations() {
    if !enter_namespace() {
        return;
    }
    ip("link set lo up");
    let mut config = config(&[], false);
    config.interfaces = InterfaceSelection::All;
    let (mut a, mut b) = (open(&config), open(&config));
    assert_eq!(a.status().interfaces[0].name, "lo", "for lack of another interface");
    let (here, away) = (user_locator(&b), Locator::udp_v4([192, 0, 2, 1].into(), 7411));
    send(&mut a, b"x", FlowId::DEFAULT, &[away, here, away, here]);
    send(&mut a, b"x", FlowId::DEFAULT, &[away]);
    assert_eq!(drain_until(2, &mut b).len(), 2);
    let stats = a.status().stats;
    assert_eq!(stats.send_errors.network_unreachable, 3);
    assert_eq!((stats.send_errors.total(), stats.datagrams_out), (3, 2));
}

/// Two links between two hosts: a datagram to the group is sent by both, from the address of each;
/// a participant with one selected link receives that one.
#[test]
fn multicast_leaves_and_enters_by_every_chosen_interface() {
    for ipv6 in [false, true] {
        if !enter_namespace() {
            return;
        }
        two_links(ipv6);
    }
}

fn two_links(ipv6: bool) {
    let net = |link: u8, host: u8| match ipv6 {
        false => format!("10.{link}.0.{host}/24"),
        true => format!("fd0{link}::{host}/64 nodad"),
    };
    let (tid_sender, tid_receiver) = mpsc::channel();
    let (start_sender, start_receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let far_side = scope.spawn(move || {
            assert!(enter_namespace(), "the step succeeded before");
            // SAFETY: no pointers.
            tid_sender.send(unsafe { libc::gettid() }).expect("the near side waits");
            start_receiver.recv_timeout(Duration::from_secs(60)).expect("the near side has made the links");
            for link in 1..=2 {
                ip(&format!("address add {} dev b{link}", net(link, 2)));
                ip(&format!("link set b{link} up"));
            }
            listen(open(&config(&["b1", "b2"], ipv6)), open(&config(&["b2"], ipv6)))
        });
        let tid = tid_receiver.recv_timeout(Duration::from_secs(60)).expect("the far side has a thread id");
        for link in 1..=2 {
            ip(&format!("link add a{link} type veth peer name b{link} netns {tid}"));
            ip(&format!("address add {} dev a{link}", net(link, 1)));
            ip(&format!("link set a{link} up"));
        }
        start_sender.send(()).expect("the far side waits");
        let mut near = open(&config(&["a1", "a2"], ipv6));
        let group = near.status().locators.metatraffic_multicast[0];
        // The links need time to come up.
        let mut sent = 0;
        while !far_side.is_finished() {
            send(&mut near, b"to all", FlowId::DEFAULT, &[group]);
            sent += 1;
            std::thread::yield_now();
        }
        let stats = near.status().stats;
        assert_eq!(stats.datagrams_out + stats.send_errors.total(), 2 * sent, "{stats:?}");
        let (both, one) = far_side.join().expect("the far side received the datagram");
        let address = |link| net(link, 1).split('/').next().expect("an address").to_string();
        assert_eq!(both, BTreeSet::from([address(1), address(2)]));
        assert_eq!(one, BTreeSet::from([address(2)]));
    });
}

/// Returns the sources received by `both` and by `one`, once each has received all expected ones.
fn listen(mut both: UdpTransport, mut one: UdpTransport) -> (BTreeSet<String>, BTreeSet<String>) {
    let group = both.status().locators.metatraffic_multicast[0];
    let receive_source = |t: &mut UdpTransport, sources: &mut BTreeSet<String>| {
        for (bytes, meta) in drain(t) {
            assert_eq!((&bytes[..], meta.local, meta.multicast), (&b"to all"[..], group, true));
            sources.insert(meta.source.ip().expect("a UDP source").to_string());
        }
    };
    let (mut sources_of_both, mut sources_of_one) = (BTreeSet::new(), BTreeSet::new());
    let since = Instant::now();
    while sources_of_both.len() < 2 || sources_of_one.is_empty() {
        assert!(since.elapsed() < Duration::from_secs(20), "{sources_of_both:?} {sources_of_one:?}");
        receive_source(&mut both, &mut sources_of_both);
        receive_source(&mut one, &mut sources_of_one);
        std::thread::yield_now();
    }
    (sources_of_both, sources_of_one)
}
