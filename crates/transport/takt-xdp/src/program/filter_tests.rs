//! Tests of the decisions of the filter, run by the kernel without an interface. Requires root.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use takt_packet::{ArpOperation, ArpPacket, DatagramAddresses, DatagramHeader, EthernetHeader, VlanTag};
use takt_testkit::{not_run, require};

use super::*;
use crate::syscall;

const PASS: u32 = 2;
const REDIRECT: u32 = 4;
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
const HERE_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const PORT: u16 = 7411;
const RULES: Rules = Rules { rtps_only: true, frame_len_max: 1792 };

/// Filter with one participant, which listens at one port of all forms and owns the queue of the
/// test runs.
struct LoadedFilter {
    switchboard: Switchboard,
    program: Program,
    table: Table,
    socket: OwnedFd,
}

impl LoadedFilter {
    /// Returns `None` without root or AF_XDP; the test is then reported as not run.
    fn new(rules: Rules) -> Option<Self> {
        require::root().and_then(|()| require::af_xdp()).map_err(not_run).ok()?;
        let filter = Switchboard::new().and_then(|switchboard| {
            let (program, table, socket) = (switchboard.program(false)?, Table::new(rules)?, syscall::xdp_socket()?);
            Ok::<_, io::Error>(Self { switchboard, program, table, socket })
        });
        let filter = filter.expect("root has the permission");
        for key in [Key::udp(HERE, PORT, 0), Key::udp(HERE_V6, PORT, 0), Key::ethernet(MAC, PORT, 0)] {
            filter.table.open(key).expect("the table has a free entry");
        }
        filter.switchboard.connect(0, &filter.table, filter.socket.as_fd()).expect("the queue table has a free entry");
        Some(filter)
    }

    fn decide(&self, frame: &[u8]) -> u32 {
        self.program.decide(frame).expect("the program can be run")
    }
}

fn ethernet(tag: Option<VlanTag>, ether_type: EtherType) -> EthernetHeader {
    EthernetHeader { destination: MAC, source: MacAddress([2, 0, 0, 0, 0, 1]), tag, ether_type }
}

fn in_vlan(vid: u16) -> Option<VlanTag> {
    Some(VlanTag { pcp: 5, dei: false, vid })
}

/// Makes a frame that carries `payload` by UDP to a port of an address.
fn frame(to: IpAddr, port: u16, tag: Option<VlanTag>, payload: &[u8]) -> Vec<u8> {
    let source = match to {
        IpAddr::V4(_) => SocketAddr::from(([192, 0, 2, 1], 7413)),
        IpAddr::V6(_) => SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, 1], 7413)),
    };
    let addresses = DatagramAddresses::new(source, SocketAddr::new(to, port)).expect("of one version");
    let header = DatagramHeader { addresses, traffic_class: 0, hop_limit: 64 };
    let ethernet = ethernet(tag, addresses.ether_type());
    let ip = ethernet.header_len();
    let mut bytes = vec![0; ip + header.header_len()];
    bytes.extend(payload);
    ethernet.emit(&mut bytes).expect("the buffer is large enough");
    header.emit(&mut bytes[ip..]).expect("the buffer is large enough");
    bytes
}

/// Makes a frame of the layer-2 transport.
fn frame_of_takt(to: MacAddress, port: u16, tag: Option<VlanTag>, payload: &[u8]) -> Vec<u8> {
    let header = EthernetHeader { destination: to, ..ethernet(tag, EtherType::TAKT) };
    let mut bytes = vec![0; header.header_len() + 8];
    header.emit(&mut bytes).expect("the buffer is large enough");
    let [len, port] = [payload.len() as u16, port].map(u16::to_be_bytes);
    let at = header.header_len();
    bytes[at..].copy_from_slice(&[1, 0, len[0], len[1], port[0], port[1], 0x1d, 0xf5]);
    bytes.extend(payload);
    bytes
}

#[test]
fn only_rtps_to_own_ports_is_redirected() {
    let Some(filter) = LoadedFilter::new(RULES) else { return };
    let decide = |frame: &[u8]| filter.decide(frame);
    let ours = frame(HERE, PORT, None, b"RTPS and so on");
    assert_eq!(decide(&ours), REDIRECT);
    assert_eq!(decide(&frame(HERE, PORT, None, b"RTPS")), REDIRECT);
    assert_eq!(decide(&frame(HERE, PORT, None, b"RTPX and so on")), PASS, "something else");
    assert_eq!(decide(&frame(HERE, PORT, None, b"RTP")), PASS, "too short for RTPS");
    assert_eq!(decide(&frame(HERE, PORT + 1, None, b"RTPS")), PASS, "another port");
    assert_eq!(decide(&frame(HERE, PORT.swap_bytes(), None, b"RTPS")), PASS, "the port's octets swapped");
    assert_eq!(decide(&frame([192, 0, 2, 3].into(), PORT, None, b"RTPS")), PASS, "another host");
    assert_eq!(decide(&frame([239, 255, 0, 1].into(), PORT, None, b"RTPS")), PASS, "a group");
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
    unfragmented[20] = 0x40;
    assert_eq!(decide(&unfragmented), REDIRECT, "must not be fragmented");
}

#[test]
fn ipv6_is_redirected_without_extension_headers() {
    let Some(filter) = LoadedFilter::new(RULES) else { return };
    let ours = frame(HERE_V6, PORT, None, b"RTPS and so on");
    assert_eq!(filter.decide(&ours), REDIRECT);
    assert_eq!(filter.decide(&frame(HERE_V6, PORT + 1, None, b"RTPS")), PASS, "another port");
    assert_eq!(filter.decide(&frame(HERE_V6, PORT, None, b"RTPX")), PASS, "something else");
    for (at, value, what) in [
        (14, 0x45, "version 4 in a frame of version 6"),
        (20, 0, "hop-by-hop options"),
        (20, 44, "a fragment"),
        (20, 6, "TCP"),
        (38, 1, "another host, by the first octet"),
        (53, 1, "another host, by the last octet"),
    ] {
        let mut other = ours.clone();
        other[at] = value;
        assert_eq!(filter.decide(&other), PASS, "{what}");
    }
    // The IPv4 address with twelve zero octets before it.
    let mapped = Ipv4Addr::new(192, 0, 2, 2).to_bits();
    assert_eq!(filter.decide(&frame(Ipv6Addr::from_bits(mapped.into()).into(), PORT, None, b"RTPS")), PASS);
}

#[test]
fn layer_2_frame_is_redirected_by_address_and_port() {
    let Some(filter) = LoadedFilter::new(RULES) else { return };
    let ours = frame_of_takt(MAC, PORT, None, b"RTPS and so on");
    assert_eq!(filter.decide(&ours), REDIRECT);
    assert_eq!(filter.decide(&frame_of_takt(MAC, PORT + 1, None, b"RTPS")), PASS, "another port");
    assert_eq!(filter.decide(&frame_of_takt(MAC, PORT, None, b"RTPX")), PASS, "something else");
    let group = MacAddress([1, 0, 0x5e, 0x7f, 0, 1]);
    assert_eq!(filter.decide(&frame_of_takt(group, PORT, None, b"RTPS")), PASS, "a group");
    for at in 0..6 {
        let mut other = ours.clone();
        other[at] ^= 1;
        assert_eq!(filter.decide(&other), PASS, "another station, by octet {at}");
    }
    let mut other = ours.clone();
    other[14] = 2;
    assert_eq!(filter.decide(&other), PASS, "another version");
}

#[test]
fn tag_must_have_the_configured_vlan() {
    for own in [0, 0x0abc] {
        let Some(filter) = LoadedFilter::new(RULES) else { return };
        for key in [Key::udp(HERE, 1, own), Key::udp(HERE_V6, 1, own), Key::ethernet(MAC, 1, own)] {
            filter.table.open(key).expect("the table has a free entry");
        }
        let of_all_forms = |tag| {
            [
                frame(HERE, 1, tag, b"RTPS and"),
                frame(HERE_V6, 1, tag, b"RTPS and"),
                frame_of_takt(MAC, 1, tag, b"RTPS and"),
            ]
        };
        let untagged = if own == 0 { REDIRECT } else { PASS };
        assert_eq!(of_all_forms(None).map(|frame| filter.decide(&frame)), [untagged; 3]);
        assert_eq!(of_all_forms(in_vlan(0)).map(|frame| filter.decide(&frame)), [untagged; 3], "a priority alone");
        assert_eq!(of_all_forms(in_vlan(own)).map(|frame| filter.decide(&frame)), [REDIRECT; 3]);
        assert_eq!(of_all_forms(in_vlan(0x0abd)).map(|frame| filter.decide(&frame)), [PASS; 3], "another VLAN");
        assert_eq!(of_all_forms(in_vlan(0x0bc)).map(|frame| filter.decide(&frame)), [PASS; 3], "another VLAN");
    }
    // Two tags are not accepted.
    let Some(filter) = LoadedFilter::new(RULES) else { return };
    let mut twice = frame(HERE, PORT, in_vlan(0), b"RTPS");
    assert_eq!(filter.decide(&twice), REDIRECT);
    twice.splice(12..12, [0x81, 0, 0, 0]);
    assert_eq!(filter.decide(&twice), PASS);
}

#[test]
fn other_protocols_pass() {
    let Some(filter) = LoadedFilter::new(Rules { rtps_only: false, ..RULES }) else { return };
    let mut bytes = [0; 80];
    ethernet(None, EtherType::ARP).emit(&mut bytes).expect("the buffer is large enough");
    let ends = [1, 2].map(|n| (MacAddress::default(), Ipv4Addr::new(192, 0, 2, n)));
    let arp = ArpPacket { operation: ArpOperation::Request, sender: ends[0], target: ends[1] };
    arp.emit(&mut bytes[14..]).expect("the buffer is large enough");
    assert_eq!(filter.decide(&bytes), PASS);
    assert_eq!(filter.decide(&[0xff; 64]), PASS);
}

#[test]
fn truncated_frame_passes() {
    for rtps_only in [true, false] {
        let Some(filter) = LoadedFilter::new(Rules { rtps_only, ..RULES }) else { return };
        let magic = if rtps_only { 4 } else { 0 };
        for (whole, needed) in [
            (frame(HERE, PORT, None, b"RTPS and so on"), 42 + magic),
            (frame(HERE_V6, PORT, None, b"RTPS and so on"), 62 + magic),
            (frame_of_takt(MAC, PORT, None, b"RTPS and so on"), 22 + magic),
            (frame(HERE, PORT, in_vlan(0), b"RTPS and so on"), 46 + magic),
            (frame(HERE_V6, PORT, in_vlan(0), b"RTPS and so on"), 66 + magic),
            (frame_of_takt(MAC, PORT, in_vlan(0), b"RTPS and so on"), 26 + magic),
        ] {
            for len in 14..=whole.len() {
                let decision = filter.decide(&whole[..len]);
                assert_eq!(decision, if len >= needed { REDIRECT } else { PASS }, "{len} octets of {whole:x?}");
            }
        }
    }
}

#[test]
fn any_payload_to_own_ports_is_redirected_when_requested() {
    let Some(filter) = LoadedFilter::new(Rules { rtps_only: false, ..RULES }) else { return };
    assert_eq!(filter.decide(&frame(HERE, PORT, None, b"?")), REDIRECT);
    assert_eq!(filter.decide(&frame(HERE, PORT, None, b"")), REDIRECT);
    assert_eq!(filter.decide(&frame(HERE, 53, None, b"?")), PASS);
}

#[test]
fn frame_too_long_for_the_umem_passes() {
    let Some(filter) = LoadedFilter::new(RULES) else { return };
    for (len, decision) in [(1792, REDIRECT), (1793, PASS), (3000, PASS)] {
        let mut payload = vec![0; len - 42];
        payload[..4].copy_from_slice(b"RTPS");
        assert_eq!(filter.decide(&frame(HERE, PORT, None, &payload)), decision, "{len} octets");
    }
}

#[test]
fn ports_are_opened_and_closed() {
    let Some(filter) = LoadedFilter::new(RULES) else { return };
    let decide = |port| filter.decide(&frame(HERE, port, None, b"RTPS"));
    for port in [1, 255, 256, 65_535] {
        let key = Key::udp(HERE, port, 0);
        assert_eq!(decide(port), PASS);
        filter.table.open(key).expect("the table has a free entry");
        assert_eq!(decide(port), REDIRECT);
        filter.table.close(key).expect("the port was open");
        assert_eq!(decide(port), PASS);
        assert!(filter.table.close(key).is_err(), "the port was already closed");
    }
    assert_eq!(decide(PORT), REDIRECT);
    let open = (2000..3024).filter(|port| filter.table.open(Key::udp(HERE, *port, 0)).is_ok()).count();
    assert_eq!(open as u32, PORTS_MAX - 3, "three were open already");
}

#[test]
fn queue_that_changes_its_owner_follows_the_new_table() {
    let Some(filter) = LoadedFilter::new(RULES) else { return };
    let (theirs, ours) = (frame(HERE, PORT, None, b"RTPS"), frame(HERE, 1, None, b"RTPS"));
    let other = Table::new(Rules { rtps_only: false, ..RULES }).expect("memory is available");
    other.open(Key::udp(HERE, 1, 0)).expect("the table has a free entry");
    assert_eq!([&theirs, &ours].map(|frame| filter.decide(frame)), [REDIRECT, PASS]);
    // As after the end of a process: its table still exists when the next owner takes the queue.
    filter.switchboard.connect(0, &other, filter.socket.as_fd()).expect("the controller accepts the connection");
    assert_eq!([&theirs, &ours].map(|frame| filter.decide(frame)), [PASS, REDIRECT]);
    assert_eq!(filter.decide(&frame(HERE, 1, None, b"?")), REDIRECT, "by its owner's rules");
    filter.switchboard.disconnect(0);
    assert_eq!([&theirs, &ours].map(|frame| filter.decide(frame)), [PASS, PASS]);
}

#[test]
fn everything_passes_without_a_socket_at_the_queue() {
    let Some(filter) = LoadedFilter::new(RULES) else { return };
    let LoadedFilter { switchboard: _switchboard, program, table, socket } = filter;
    drop(socket);
    // The table still exists; the kernel removes a closed socket from the map.
    assert_eq!(program.decide(&frame(HERE, PORT, None, b"RTPS")).expect("the program can be run"), PASS);
    drop(table);
}
