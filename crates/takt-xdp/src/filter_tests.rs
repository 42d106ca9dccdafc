//! The filter decides about frames, run by the kernel without an interface. Takes root.

use std::net::Ipv6Addr;
use std::os::fd::AsFd;

use takt_packet::{
    ArpOperation, ArpPacket, EtherType, EthernetHeader, Ipv4Header, Ipv6Header, MacAddress, Sum, UDP, UdpHeader,
    VlanTag,
};

use super::*;
use crate::syscall;

const PASS: u32 = 2;
const REDIRECT: u32 = 4;
const HERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const PORT: u16 = 7411;

/// A filter with one port and one socket; `None`, and why, without the permission.
fn filter(rtps_only: bool) -> Option<(Filter, std::os::fd::OwnedFd)> {
    let loaded = Filter::load(Rules { rtps_only, frame_len_max: 1792, several_parts: false });
    let (filter, socket) = match (loaded, syscall::xdp_socket()) {
        (Ok(filter), Ok(socket)) => (filter, socket),
        (Err(why), _) | (_, Err(why)) if why.kind() == io::ErrorKind::PermissionDenied => {
            eprintln!("not tested: {why}");
            return None;
        }
        (loaded, socket) => panic!("{loaded:?}, {socket:?}"),
    };
    filter.open(HERE, PORT).expect("there is room for a port");
    filter.connect(0, socket.as_fd()).expect("there is room for a queue");
    Some((filter, socket))
}

/// A frame that carries `payload` to a port of an address.
fn frame(to: Ipv4Addr, port: u16, tag: Option<VlanTag>, payload: &[u8]) -> Vec<u8> {
    let source = Ipv4Addr::new(192, 0, 2, 1);
    let ethernet = EthernetHeader {
        destination: MacAddress([2, 0, 0, 0, 0, 2]),
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        tag,
        ether_type: EtherType::IPV4,
    };
    let ip = ethernet.header_len();
    let mut bytes = vec![0; ip + 28 + payload.len()];
    bytes[ip + 28..].copy_from_slice(payload);
    ethernet.emit(&mut bytes).expect("it fits");
    let payload_len = 8 + payload.len() as u16;
    let header = Ipv4Header { source, destination: to, protocol: UDP, ttl: 64, traffic_class: 0, payload_len };
    header.emit(&mut bytes[ip..]).expect("it fits");
    let udp = UdpHeader { source_port: 7413, destination_port: port };
    udp.emit(&mut bytes[ip + 20..], |len| Sum::pseudo_v4(source, to, UDP, len)).expect("it fits");
    bytes
}

#[test]
fn rtps_to_our_ports_is_taken_and_nothing_else() {
    let Some((filter, _socket)) = filter(true) else { return };
    let decide = |frame: &[u8]| filter.program.decide(frame).expect("it can be run");
    let ours = frame(HERE, PORT, None, b"RTPS and so on");
    assert_eq!(decide(&ours), REDIRECT);
    assert_eq!(decide(&frame(HERE, PORT, None, b"RTPS")), REDIRECT);
    assert_eq!(decide(&frame(HERE, PORT, None, b"RTPX and so on")), PASS, "something else");
    assert_eq!(decide(&frame(HERE, PORT, None, b"RTP")), PASS, "too short for RTPS");
    assert_eq!(decide(&frame(HERE, PORT + 1, None, b"RTPS")), PASS, "another port");
    assert_eq!(decide(&frame(HERE, PORT.swap_bytes(), None, b"RTPS")), PASS, "the port's octets swapped");
    assert_eq!(decide(&frame(Ipv4Addr::new(192, 0, 2, 3), PORT, None, b"RTPS")), PASS, "another host");
    assert_eq!(decide(&frame(Ipv4Addr::new(239, 255, 0, 1), PORT, None, b"RTPS")), PASS, "a group");
    assert_eq!(decide(&frame(HERE, PORT, Some(VlanTag::default()), b"RTPS")), PASS, "a tagged frame");
    for (at, value, what) in [
        (14, 0x46, "options"),
        (14, 0x65, "version 6 in a frame of version 4"),
        (20, 0x20, "the first fragment"),
        (20, 0x1f, "a later fragment"),
        (21, 0x01, "the second fragment"),
        (23, 6, "TCP"),
        (13, 0x06, "ARP"),
    ] {
        let mut other = ours.clone();
        other[at] = value;
        assert_eq!(decide(&other), PASS, "{what}");
    }
    let mut unfragmented = ours.clone();
    unfragmented[20] = 0;
    assert_eq!(decide(&unfragmented), REDIRECT, "may be fragmented, but is not");
}

#[test]
fn other_protocols_pass() {
    let Some((filter, _socket)) = filter(false) else { return };
    let decide = |frame: &[u8]| filter.program.decide(frame).expect("it can be run");
    let ethernet = |ether_type| EthernetHeader {
        destination: MacAddress::BROADCAST,
        source: MacAddress::default(),
        tag: None,
        ether_type,
    };
    let mut bytes = [0; 80];
    ethernet(EtherType::ARP).emit(&mut bytes).expect("it fits");
    let who = (MacAddress::default(), HERE);
    ArpPacket { operation: ArpOperation::Request, sender: who, target: who }.emit(&mut bytes[14..]).expect("it fits");
    assert_eq!(decide(&bytes), PASS);
    ethernet(EtherType::IPV6).emit(&mut bytes).expect("it fits");
    let (source, destination) = (Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
    Ipv6Header { source, destination, next_header: UDP, hop_limit: 1, traffic_class: 0, payload_len: 26 }
        .emit(&mut bytes[14..])
        .expect("it fits");
    assert_eq!(decide(&bytes), PASS);
}

#[test]
fn every_cut_passes() {
    for rtps_only in [true, false] {
        let Some((filter, _socket)) = filter(rtps_only) else { return };
        let whole = frame(HERE, PORT, None, b"RTPS and so on");
        for len in 14..=whole.len() {
            let taken = len >= if rtps_only { 46 } else { 42 };
            let decision = filter.program.decide(&whole[..len]).expect("it can be run");
            assert_eq!(decision, if taken { REDIRECT } else { PASS }, "{len} octets");
        }
    }
}

#[test]
fn anything_to_our_ports_is_taken_when_asked_for() {
    let Some((filter, _socket)) = filter(false) else { return };
    let decide = |frame: &[u8]| filter.program.decide(frame).expect("it can be run");
    assert_eq!(decide(&frame(HERE, PORT, None, b"?")), REDIRECT);
    assert_eq!(decide(&frame(HERE, PORT, None, b"")), REDIRECT);
    assert_eq!(decide(&frame(HERE, 53, None, b"?")), PASS);
}

#[test]
fn what_a_frame_of_the_umem_cannot_hold_passes() {
    let Some((filter, _socket)) = filter(true) else { return };
    for (len, decision) in [(1792, REDIRECT), (1793, PASS), (3000, PASS)] {
        let mut payload = vec![0; len - 42];
        payload[..4].copy_from_slice(b"RTPS");
        let frame = frame(HERE, PORT, None, &payload);
        assert_eq!(filter.program.decide(&frame).expect("it can be run"), decision, "{len} octets");
    }
}

#[test]
fn ports_are_opened_and_closed() {
    let Some((filter, _socket)) = filter(true) else { return };
    let decide = |port| filter.program.decide(&frame(HERE, port, None, b"RTPS")).expect("it can be run");
    for port in [1, 255, 256, 65_535] {
        assert_eq!(decide(port), PASS);
        filter.open(HERE, port).expect("there is room");
        assert_eq!(decide(port), REDIRECT);
        filter.close(HERE, port).expect("it was open");
        assert_eq!(decide(port), PASS);
        assert!(filter.close(HERE, port).is_err(), "it was not open any more");
    }
    assert_eq!(decide(PORT), REDIRECT);
    let open = (2000..3024).filter(|port| filter.open(HERE, *port).is_ok()).count();
    assert_eq!(open as u32, PORTS_MAX - 1, "one was open already");
}

#[test]
fn without_a_socket_for_the_queue_everything_passes() {
    match Filter::load(Rules { rtps_only: true, frame_len_max: 1792, several_parts: true }) {
        Ok(filter) => {
            filter.open(HERE, PORT).expect("there is room for a port");
            let frame = frame(HERE, PORT, None, b"RTPS");
            assert_eq!(filter.program.decide(&frame).expect("it can be run"), PASS);
        }
        Err(why) => {
            assert_eq!(why.kind(), io::ErrorKind::PermissionDenied, "{why}");
            eprintln!("not tested: {why}");
        }
    }
}
