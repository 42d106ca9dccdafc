//! Tests of frames over AF_PACKET: refused frames, other traffic, tags, sizes, and a full ring.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use takt_packet::{EtherType, EthernetFrame, EthernetHeader, MacAddress, TaktHeader, VlanTag};
use takt_transport::ethernet::{EthernetCounters, FramePort, PacketConfig, PacketPort};
use takt_transport::{FlowId, FlowSpec, Receive, Scan, Transport, readiness};

use super::network::{Host, Network};
use super::packet_conforms::open_on;
use super::{receive, send, user_locator};

const TIMEOUT: Duration = Duration::from_secs(20);

fn raw(host: &Host, vlan: Option<u16>) -> PacketPort {
    host.run(|| PacketPort::open(&PacketConfig { vlan, ..PacketConfig::new("eth0") })).expect("root has the permission")
}

/// Makes a frame to a port of `destination`.
fn frame(source: MacAddress, destination: MacAddress, port: u16) -> Vec<u8> {
    let mut bytes = vec![7; 100];
    let header = EthernetHeader { destination, source, tag: None, ether_type: EtherType::TAKT };
    let at = header.emit(&mut bytes).expect("the buffer is large enough");
    TaktHeader { destination_port: port, source_port: 1 }.emit(&mut bytes[at..]).expect("the buffer is large enough");
    bytes
}

fn send_raw(port: &mut PacketPort, frame: &[u8]) {
    port.loan()[..frame.len()].copy_from_slice(frame);
    assert!(port.send(frame.len()));
    port.flush().expect("the interface is up");
}

fn with(frame: &[u8], at: usize, octets: &[u8]) -> Vec<u8> {
    let mut changed = frame.to_vec();
    changed[at..at + octets.len()].copy_from_slice(octets);
    changed
}

#[test]
fn invalid_frames_are_counted_and_valid_ones_arrive() {
    let Some(network) = Network::new() else { return };
    let (here, there) = (network.host(true), network.host(true));
    let mut raw = raw(&here, None);
    let mut transport = open_on(&there, &PacketConfig::new("eth0"), 0);
    let (to, port) = user_locator(&transport).mac_and_port().expect("a locator of Ethernet");
    let good = frame(raw.mac(), MacAddress(to), port);
    let bad = [
        with(&good, 14, &[0]),
        with(&good, 14, &[2]),
        with(&good, 15, &[1]),
        with(&good, 16, &[0, 79]),
        with(&good, 16, &[255, 255]),
        with(&good, 20, &[0, 0]),
    ];
    for bad in &bad {
        send_raw(&mut raw, bad);
    }
    // Truncated before the end of the port, frames are refused by the filter, later by their
    // length.
    for len in 14..100 {
        send_raw(&mut raw, &good[..len]);
    }
    // To another host, a group that was not joined, a port that is not open, and of another
    // EtherType.
    send_raw(&mut raw, &with(&good, 5, &[99]));
    send_raw(&mut raw, &with(&good, 0, &[1, 0, 0x5e, 1, 2, 3]));
    send_raw(&mut raw, &with(&good, 18, &[0, 9]));
    send_raw(&mut raw, &with(&good, 12, &[0x88, 0xb6]));
    send_raw(&mut raw, &good);
    let (bytes, meta) = receive(&mut transport);
    assert_eq!((bytes, meta.source.mac()), (good[22..].to_vec(), Some(raw.mac().0)));
    let malformed = (bad.len() + 80) as u64;
    assert_eq!(transport.counters(), EthernetCounters { malformed, not_addressed: 1, ..EthernetCounters::default() });
    assert!(transport.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_none());
}

#[test]
fn other_traffic_of_the_interface_is_unaffected() {
    let Some(network) = Network::new() else { return };
    let (here, there) = (network.host(false), network.host(false));
    let [udp, other] = [&here, &there].map(|host| host.run(|| UdpSocket::bind("0.0.0.0:7411")).expect("a port"));
    other.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    for vlan in [None, Some(7)] {
        let config = PacketConfig { vlan, ..PacketConfig::new("eth0") };
        let (a, mut b) = (open_on(&here, &config, 0), open_on(&there, &config, 0));
        let mut buffer = [0; 2000];
        for _ in 0..100 {
            udp.send_to(&[5; 1400], "10.77.0.2:7411").expect("a route exists");
            assert_eq!(other.recv(&mut buffer).expect("the datagram arrives"), 1400);
        }
        assert!(b.recv(Receive::Any(Scan::All)).expect("receive succeeds").is_none());
        assert_eq!((b.counters(), a.counters()), (EthernetCounters::default(), EthernetCounters::default()));
    }
}

#[test]
fn vlan_tag_contains_the_priority() {
    let Some(network) = Network::new() else { return };
    let (here, there) = (network.host(true), network.host(true));
    let config = PacketConfig { vlan: Some(42), ..PacketConfig::new("eth0") };
    let mut transport = open_on(&here, &config, 0);
    let mut tagged = raw(&there, Some(42));
    let mut plain = raw(&there, None);
    for port in [&mut tagged, &mut plain] {
        port.listen_at(9000).expect("the port can be opened");
    }
    let to = takt_wire::Locator::takt_ethernet(tagged.mac().0, 9000);
    for (transport_priority, pcp) in [(0, 0), (46, 5), (63, 7)] {
        let spec = FlowSpec { own_port: true, transport_priority };
        let (flow, own) = transport.open_flow(&spec).expect("a port is free");
        send(&mut transport, b"urgent", flow, &[to]);
        while !tagged.recv(Scan::All).expect("receive succeeds") {
            assert!(readiness::wait(tagged.descriptors(), Some(TIMEOUT)).expect("wait succeeds"), "nothing arrives");
        }
        let frame = EthernetFrame::parse(tagged.received()).expect("a frame");
        assert_eq!(frame.header().tag, Some(VlanTag { pcp, dei: false, vid: 42 }));
        assert_eq!(frame.payload()[6..8], (own[0].port as u16).to_be_bytes(), "from its own port");
    }
    assert!(!plain.recv(Scan::All).expect("receive succeeds"), "other VLANs do not receive it");
}

#[test]
fn large_mtu_allows_large_messages() {
    let Some(network) = Network::of_mtu(9000) else { return };
    let (here, there) = (network.host(true), network.host(true));
    let config = PacketConfig::new("eth0");
    let (mut a, mut b) = (open_on(&here, &config, 0), open_on(&there, &config, 0));
    assert_eq!(a.capabilities().max_message_len, 8992);
    for len in [1, 1493, 8991, 8992] {
        let message: Vec<u8> = (0..len).map(|at: u32| at as u8).collect();
        send(&mut a, &message, FlowId::DEFAULT, &[user_locator(&b)]);
        assert_eq!(receive(&mut b).0, message);
    }
}

#[test]
fn frames_dropped_at_a_full_ring_are_counted() {
    let Some(network) = Network::new() else { return };
    let (here, there) = (network.host(true), network.host(true));
    let config = PacketConfig { rx_frames: 64, ..PacketConfig::new("eth0") };
    let (mut a, mut b) = (open_on(&here, &config, 0), open_on(&there, &config, 0));
    let to = user_locator(&b);
    for n in 0..200_u8 {
        send(&mut a, &[n; 20], FlowId::DEFAULT, &[to]);
    }
    let since = Instant::now();
    while b.status().stats.kernel_drops < 136 {
        assert!(since.elapsed() < TIMEOUT, "{:?}", b.status().stats);
    }
    for n in 0..64 {
        assert_eq!(receive(&mut b).0, [n; 20]);
    }
    send(&mut a, b"again", FlowId::DEFAULT, &[to]);
    assert_eq!(receive(&mut b).0, b"again");
    assert_eq!((b.status().stats.kernel_drops, a.status().stats.send_errors.total()), (136, 0));
    assert_eq!(a.port().stats().in_place_out, 201, "the datagram is written in place");
}

#[test]
fn invalid_configuration_is_an_error() {
    let Some(network) = Network::new() else { return };
    let host = network.host(true);
    let why = |config: PacketConfig| host.run(|| PacketPort::open(&config)).expect_err("refused").to_string();
    let good = PacketConfig::new("eth0");
    for (config, what) in [
        (PacketConfig { interface: "eth7".into(), ..good.clone() }, "eth7"),
        (PacketConfig { interface: "lo".into(), ..good.clone() }, "not an Ethernet interface"),
        (PacketConfig { interface: "a name that is too long".into(), ..good.clone() }, "a name"),
        (PacketConfig { rx_frames: 65, ..good.clone() }, "a power of two"),
        (PacketConfig { tx_frames: 65_536, ..good.clone() }, "a power of two"),
        (PacketConfig { vlan: Some(4095), ..good.clone() }, "4,094"),
    ] {
        let why = why(config);
        assert!(why.contains(what), "{why}");
    }
}
