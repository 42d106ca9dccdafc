//! Tests of the ports of participants (RTPS 2.5 §9.6.2.3), whose number on a host is unlimited.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use takt_transport::udp::{ParticipantIndex, UdpConfig, UdpTransport};
use takt_transport::{FlowId, Transport};

use super::{loopback, open, receive, send, user_locator};

fn ports(transport: &UdpTransport) -> (u32, u32) {
    let locators = transport.status().locators;
    (locators.metatraffic_unicast[0].port, locators.default_unicast[0].port)
}

/// Waits until a port is free. A child process of another test holds a copy of every socket of this
/// process until `exec`, so a closed port is free a little later. The kernel's list is read,
/// because a socket that probes could be copied in the same way.
fn wait_until_free(port: u16) {
    let end = Instant::now() + Duration::from_secs(20);
    let bound = format!(":{port:04X} ");
    while std::fs::read_to_string("/proc/net/udp").expect("the kernel lists the sockets").contains(&bound) {
        assert!(Instant::now() < end, "port {port} was not given back");
        // tidy-allow(sleep): interval between two checks of the condition.
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn first_free_index_is_taken() {
    let config = loopback(51);
    let base: u16 = 7400 + 250 * 51;
    let first = open(&config);
    let second = open(&config);
    let at = |offset| u32::from(base + offset);
    assert_eq!((first.participant_index(), ports(&first)), (Some(0), (at(10), at(11))));
    assert_eq!((second.participant_index(), ports(&second)), (Some(1), (at(12), at(13))));
    drop(first);
    wait_until_free(base + 10);
    wait_until_free(base + 11);
    let third = open(&config);
    assert_eq!((third.participant_index(), ports(&third)), (Some(0), (at(10), at(11))));
    let locators = third.status().locators;
    assert_eq!(locators.metatraffic_multicast[0].to_string(), format!("udp/239.255.0.1:{base}"));
    assert_eq!(locators.default_multicast[0].to_string(), format!("udp/239.255.0.1:{}", base + 1));
}

#[test]
fn both_ports_of_an_index_are_taken_or_none() {
    let config = loopback(52);
    let base = 7400 + 250 * 52;
    let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, base + 11)).expect("a free port");
    let transport = open(&config);
    assert_eq!(transport.participant_index(), Some(1));
    // The other port of index 0 was released.
    wait_until_free(base + 10);
    drop(taken);
}

#[test]
fn both_address_families_have_the_same_index() {
    let config = UdpConfig { ipv6: true, ..loopback(53) };
    let base = 7400 + 250 * 53;
    let taken = UdpSocket::bind(("::1", base + 11)).expect("a free port");
    let transport = open(&config);
    assert_eq!(transport.participant_index(), Some(1));
    let user: Vec<u32> = transport.status().locators.default_unicast.iter().map(|l| l.port).collect();
    assert_eq!(user, [u32::from(base) + 13; 2]);
    drop(taken);
}

#[test]
fn fixed_index_is_taken_or_refused() {
    let config = UdpConfig { participant_index: ParticipantIndex::Fixed(7), ..loopback(54) };
    let transport = open(&config);
    assert_eq!(transport.participant_index(), Some(7));
    let error = UdpTransport::open(&config).expect_err("the queue is in use");
    assert_eq!(error.source.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains('7'), "{error}");
}

#[test]
fn ephemeral_ports_are_announced() {
    let config = UdpConfig { participant_index: ParticipantIndex::Ephemeral, ..loopback(55) };
    let mut transport = open(&config);
    assert_eq!(transport.participant_index(), None);
    let to = user_locator(&transport);
    assert_ne!(to.port, 0);
    send(&mut transport, b"to myself", FlowId::DEFAULT, &[to]);
    assert_eq!(receive(&mut transport).0, b"to myself");
}

#[test]
fn more_participants_than_indices_fit_on_a_host() {
    let config = loopback(56);
    let mut all: Vec<UdpTransport> = (0..130).map(|_| open(&config)).collect();
    let with_index = all.iter().filter_map(UdpTransport::participant_index);
    assert!(with_index.eq(0..120));
    let distinct: BTreeSet<u32> = all.iter().flat_map(|t| [ports(t).0, ports(t).1]).collect();
    assert_eq!(distinct.len(), 260);
    // All receive the last one's multicast, and all can reply.
    let mut last = all.pop().expect("130 participants exist");
    let group = last.status().locators.metatraffic_multicast[0];
    send(&mut last, b"here I am", FlowId::DEFAULT, &[group]);
    let back = user_locator(&last);
    for (n, other) in all.iter_mut().enumerate() {
        let (bytes, meta) = receive(other);
        assert_eq!((&bytes[..], meta.source, meta.multicast), (&b"here I am"[..], back, true));
        send(other, format!("I am {n}").as_bytes(), FlowId::DEFAULT, &[meta.source]);
    }
    let answers = (0..all.len()).map(|n| format!("I am {n}").into_bytes());
    let expected: BTreeSet<Vec<u8>> = answers.chain([b"here I am".to_vec()]).collect();
    let received: BTreeSet<Vec<u8>> = (0..expected.len()).map(|_| receive(&mut last).0).collect();
    assert!(received == expected);
}

#[test]
fn domain_without_ports_is_refused_unless_it_needs_none() {
    let error = UdpTransport::open(&loopback(233)).expect_err("its ports are beyond 65535");
    assert!(error.to_string().contains("233"), "{error}");
    let config = UdpConfig { multicast: false, ..loopback(233) };
    let transport = open(&config);
    assert_eq!(transport.participant_index(), None);
    assert!(transport.status().locators.metatraffic_multicast.is_empty());
}

#[test]
fn without_multicast_no_group_is_served() {
    let mut transport = open(&UdpConfig { multicast: false, ..loopback(57) });
    let group = takt_wire::Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7400);
    assert!(!transport.reach(&group).is_served());
    send(&mut transport, b"to nobody", FlowId::DEFAULT, &[group]);
    assert_eq!(transport.status().stats.send_errors.unserved, 1);
    assert_eq!(transport.status().stats.datagrams_out, 0);
}

#[test]
fn group_with_an_interface_is_reached_through_it() {
    let mut transport = open(&loopback(59));
    let group = transport.status().locators.default_multicast[0];
    let other_interface = group.by_interface(Ipv4Addr::new(192, 0, 2, 1));
    send(&mut transport, b"by another", FlowId::DEFAULT, &[other_interface]);
    assert_eq!((transport.status().stats.send_errors.unserved, transport.status().stats.datagrams_out), (1, 0));
    send(&mut transport, b"by this one", FlowId::DEFAULT, &[group.by_interface(Ipv4Addr::LOCALHOST)]);
    let (bytes, meta) = receive(&mut transport);
    assert_eq!((&bytes[..], meta.local, meta.multicast), (&b"by this one"[..], group, true));
}

#[test]
fn unknown_interface_is_refused() {
    let mut config = loopback(58);
    config.interfaces = takt_transport::udp::InterfaceSelection::Named(vec!["no-such".into()]);
    let error = UdpTransport::open(&config).expect_err("the interface does not exist");
    assert!(error.to_string().contains("no-such"), "{error}");
}
