//! Tests of the stack frame by frame, except datagrams: ARP, IGMP, echo, fragments, tags, and
//! refusals.

use std::net::Ipv4Addr;

use takt_dpdk::{UdpStack, UdpStackConfig};
use takt_packet::{
    ArpOperation, ArpPacket, EtherType, EthernetFrame, EthernetHeader, IGMP, IgmpMessage, Ipv4Header, Ipv4Packet,
    MacAddress, Sum, UDP, UdpDatagram, UdpHeader, VlanTag,
};
use takt_testkit::memory::allocations;
use takt_transport::{Commit, FlowId, FlowSpec, Receive, Scan, Transport};
use takt_wire::Locator;

use super::memory::{Memory, MemoryPort, mac};

const OWN: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

type Stack = UdpStack<MemoryPort>;

/// Makes a stack, and a bare port that has received its initial frames.
fn stack(config: UdpStackConfig) -> (Stack, MemoryPort) {
    let memory = Memory::default();
    let (port, peer) = (memory.port(), memory.port());
    (UdpStack::new(&config, port).expect("the address is valid"), peer)
}

fn config() -> UdpStackConfig {
    UdpStackConfig::new(0, OWN, 24)
}

fn send(stack: &mut Stack, bytes: &[u8], to: Ipv4Addr) {
    stack.loan().expect("a frame is loaned")[..bytes.len()].copy_from_slice(bytes);
    stack
        .commit(Commit::new(bytes.len(), FlowId::DEFAULT, &[Locator::udp_v4(to, 7411)]))
        .expect("the frame is accepted");
    stack.flush().expect("flush succeeds");
}

fn recv(stack: &mut Stack) -> Option<Vec<u8>> {
    stack.recv(Receive::Any(Scan::All)).expect("receive succeeds").map(|frame| frame.to_vec())
}

fn arp(operation: ArpOperation, sender: (MacAddress, Ipv4Addr), target: (MacAddress, Ipv4Addr)) -> Vec<u8> {
    let mut frame = vec![0; 60];
    let destination = if operation == ArpOperation::Request { MacAddress::BROADCAST } else { target.0 };
    let header = EthernetHeader { destination, source: sender.0, tag: None, ether_type: EtherType::ARP };
    let at = header.emit(&mut frame).expect("the buffer is large enough");
    ArpPacket { operation, sender, target }.emit(&mut frame[at..]).expect("the buffer is large enough");
    frame
}

fn arp_in(frame: &[u8]) -> Option<ArpPacket> {
    let ethernet = EthernetFrame::parse(frame).expect("a frame");
    (ethernet.header().ether_type == EtherType::ARP).then(|| ArpPacket::parse(ethernet.payload()).expect("ARP"))
}

fn igmp_in(frame: &[u8]) -> Option<IgmpMessage> {
    let ethernet = EthernetFrame::parse(frame).expect("a frame");
    let packet = Ipv4Packet::parse(ethernet.payload()).ok().filter(|packet| packet.protocol() == IGMP)?;
    assert!((packet.ttl(), packet.has_options(), packet.header_is_intact()) == (1, true, true));
    Some(IgmpMessage::parse(packet.payload()).expect("IGMP"))
}

/// Makes an IPv4 packet in a frame of the peer.
fn packet(to: (MacAddress, Ipv4Addr), protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 14 + 20 + payload.len()];
    let header = EthernetHeader { destination: to.0, source: mac(2), tag: None, ether_type: EtherType::IPV4 };
    header.emit(&mut frame).expect("the buffer is large enough");
    let payload_len = payload.len() as u16;
    let header = Ipv4Header { source: PEER, destination: to.1, protocol, ttl: 64, traffic_class: 0, payload_len };
    header.emit(&mut frame[14..]).expect("the buffer is large enough");
    frame[34..].copy_from_slice(payload);
    frame
}

fn datagram(to: Ipv4Addr, port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; UdpHeader::LEN + bytes.len()];
    datagram[UdpHeader::LEN..].copy_from_slice(bytes);
    let header = UdpHeader { source_port: 7411, destination_port: port };
    header.emit(&mut datagram, |len| Sum::pseudo_v4(PEER, to, UDP, len)).expect("the buffer is large enough");
    datagram
}

#[test]
fn address_and_group_are_announced_at_the_start_and_the_group_left_at_the_end() {
    let (stack, mut peer) = stack(config());
    let announced = arp_in(&peer.take().expect("the first word")).expect("ARP");
    assert_eq!((announced.sender, announced.target.1), ((mac(1), OWN), OWN));
    let report = IgmpMessage::ReportV3 { group: GROUP, is_change: true };
    assert_eq!(igmp_in(&peer.take().expect("the second word")), Some(report));
    assert_eq!(peer.take(), None);
    drop(stack);
    assert_eq!(igmp_in(&peer.take().expect("farewell")), Some(IgmpMessage::LeaveV3(GROUP)));
}

#[test]
fn datagrams_waiting_for_an_arp_reply_are_sent_in_order() {
    let (mut stack, mut peer) = stack(config());
    while peer.take().is_some() {}
    for n in 0..20 {
        send(&mut stack, &[n; 30], PEER);
    }
    let request = arp_in(&peer.take().expect("a question")).expect("ARP");
    assert_eq!((request.operation, request.target.1), (ArpOperation::Request, PEER));
    assert_eq!(peer.take(), None, "only one ARP request is sent");
    // A loaned frame belongs to the user alone.
    stack.loan().expect("a frame is loaned")[..3].copy_from_slice(b"own");
    peer.put(&arp(ArpOperation::Reply, (mac(2), PEER), (mac(1), OWN)));
    assert_eq!(recv(&mut stack), None);
    assert_eq!(peer.take(), None, "queued frames wait for the commit of the loaned frame");
    assert_eq!(&stack.loan().expect("a frame is loaned")[..3], b"own");
    stack.commit(Commit::new(3, FlowId::DEFAULT, &[Locator::udp_v4(PEER, 7411)])).expect("the frame is accepted");
    let mut received = Vec::new();
    while let Some(frame) = peer.take() {
        let ethernet = EthernetFrame::parse(&frame).expect("a frame");
        assert_eq!((ethernet.header().destination, ethernet.header().source), (mac(2), mac(1)));
        let packet = Ipv4Packet::parse(ethernet.payload()).expect("a packet");
        received.push(UdpDatagram::parse(packet.payload()).expect("a datagram").payload()[0]);
    }
    assert_eq!(received, (0..16).collect::<Vec<u8>>(), "the queue keeps as many as it can hold");
    let counters = stack.counters();
    assert_eq!((counters.waited, counters.unresolved), (21, 5));
    assert_eq!((stack.status().stats.datagrams_out, stack.status().stats.send_errors.host_unreachable), (16, 5));
    send(&mut stack, b"at once", PEER);
    assert!(peer.take().is_some() && stack.counters().waited == 21);
}

/// A driver without a free frame: waiting datagrams are sent at the next call, in order, followed
/// by later ones.
#[test]
fn frames_refused_by_the_port_are_sent_with_the_next_call() {
    let (mut stack, mut peer) = stack(config());
    while peer.take().is_some() {}
    for n in 0..3 {
        send(&mut stack, &[n; 30], PEER);
    }
    assert!(peer.take().is_some(), "a question");
    stack.port_mut().refused = 2;
    peer.put(&arp(ArpOperation::Reply, (mac(2), PEER), (mac(1), OWN)));
    for _ in 0..2 {
        assert_eq!((recv(&mut stack), peer.take()), (None, None), "refused");
    }
    send(&mut stack, &[3; 30], PEER);
    let left = std::iter::from_fn(|| peer.take()).map(|frame| frame[frame.len() - 1]);
    assert_eq!(left.collect::<Vec<u8>>(), [0, 1, 2, 3]);
    assert_eq!(stack.status().stats.send_errors.total(), 0);
}

#[test]
fn arp_requests_are_answered_and_their_senders_recorded() {
    let (mut stack, mut peer) = stack(config());
    while peer.take().is_some() {}
    peer.put(&arp(ArpOperation::Request, (mac(2), PEER), (MacAddress::default(), OWN)));
    peer.put(&arp(ArpOperation::Request, (mac(2), PEER), (MacAddress::default(), Ipv4Addr::new(10, 77, 0, 9))));
    assert_eq!(recv(&mut stack), None);
    let received: Vec<_> = std::iter::from_fn(|| peer.take()).filter_map(|frame| arp_in(&frame)).collect();
    let replies: Vec<_> = received.iter().filter(|packet| packet.operation == ArpOperation::Reply).collect();
    assert_eq!(replies.len(), 1, "{received:?}");
    assert_eq!((replies[0].sender, replies[0].target), ((mac(1), OWN), (mac(2), PEER)));
    send(&mut stack, b"known", PEER);
    assert_eq!(stack.counters().waited, 0);
    // Another host claims the address.
    peer.put(&arp(ArpOperation::Reply, (mac(2), OWN), (mac(1), OWN)));
    assert_eq!((recv(&mut stack), stack.counters().conflicts), (None, 1));
}

#[test]
fn other_networks_are_reached_through_the_gateway() {
    let far = Ipv4Addr::new(192, 0, 2, 7);
    let (stack_without, _) = stack(config());
    assert!(!stack_without.reach(&Locator::udp_v4(far, 7411)).is_served());
    let neighbors = vec![(PEER, mac(2))];
    let (mut stack, mut peer) = stack(UdpStackConfig { gateway: Some(PEER), neighbors, ..config() });
    while peer.take().is_some() {}
    send(&mut stack, b"far", far);
    let frame = peer.take().expect("to the gateway");
    let ethernet = EthernetFrame::parse(&frame).expect("a frame");
    let packet = Ipv4Packet::parse(ethernet.payload()).expect("a packet");
    assert_eq!((ethernet.header().destination, packet.destination()), (mac(2), far));
}

#[test]
fn ping_is_answered_and_foreign_packets_are_not() {
    let (mut stack, mut peer) = stack(config());
    while peer.take().is_some() {}
    let mut ping = vec![8, 0, 0, 0, 0, 1, 0, 2];
    ping.extend((0..100).map(|n| n as u8));
    let mut sum = Sum::default();
    sum.add(&ping);
    ping[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
    let us = (mac(1), OWN);
    peer.put(&packet(us, 1, &ping));
    assert_eq!(recv(&mut stack), None);
    let frame = peer.take().expect("an answer");
    let reply = Ipv4Packet::parse(&frame[14..]).expect("a packet");
    assert_eq!((reply.source(), reply.destination(), reply.header_is_intact()), (OWN, PEER, true));
    assert_eq!((reply.payload()[0], &reply.payload()[4..]), (0, &ping[4..]));
    assert_eq!(frame[..6], mac(2).0);
    ping[20] ^= 1;
    peer.put(&packet(us, 1, &ping));
    peer.put(&packet(us, 6, &ping));
    peer.put(&packet((mac(1), PEER), UDP, &datagram(PEER, 7411, b"not ours")));
    peer.put(&packet(us, UDP, &datagram(OWN, 9, b"closed")));
    peer.put(&packet((MacAddress::of_group(GROUP.into()).expect("a group"), GROUP), UDP, &datagram(GROUP, 7411, b"")));
    let mut damaged = datagram(OWN, 7411, b"damaged");
    damaged[9] ^= 1;
    peer.put(&packet(us, UDP, &damaged));
    peer.put(&packet(us, UDP, &datagram(OWN, 7411, b"fine"))[..40]);
    assert_eq!((recv(&mut stack), peer.take()), (None, None));
    let counters = stack.counters();
    assert_eq!((counters.not_addressed, counters.port_closed, counters.damaged, counters.malformed), (2, 2, 1, 1));
}

#[test]
fn fragments_are_reassembled() {
    let (mut stack, mut peer) = stack(config());
    let bytes: Vec<u8> = (0..20_000_u32).map(|at| (at % 251) as u8).collect();
    let whole = datagram(OWN, 7411, &bytes);
    for (n, part) in whole.chunks(1480).enumerate() {
        let mut frame = packet((mac(1), OWN), UDP, part);
        let more = (n + 1) * 1480 < whole.len();
        frame[18..20].copy_from_slice(&[0x12, 0x34]);
        frame[20..22].copy_from_slice(&((n * 185) as u16 | if more { 0x2000 } else { 0 }).to_be_bytes());
        frame[24..26].fill(0);
        let mut sum = Sum::default();
        sum.add(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.checksum().to_be_bytes());
        peer.put(&frame);
    }
    assert_eq!(recv(&mut stack).as_deref(), Some(&bytes[..]));
    assert_eq!((stack.counters().fragments_in, stack.counters().dropped_packets), (14, 0));
}

#[test]
fn igmp_query_is_answered() {
    let (mut stack, mut peer) = stack(config());
    while peer.take().is_some() {}
    let mut query = [0; 8];
    let message = IgmpMessage::Query { version: 2, group: Ipv4Addr::UNSPECIFIED, max_response: 1 };
    message.emit(&mut query).expect("the buffer is large enough");
    let all = Ipv4Addr::new(224, 0, 0, 1);
    peer.put(&packet((MacAddress::of_group(all.into()).expect("a group"), all), IGMP, &query));
    let report = loop {
        assert_eq!(recv(&mut stack), None);
        if let Some(message) = peer.take().and_then(|frame| igmp_in(&frame)) {
            break message;
        }
    };
    assert_eq!(report, IgmpMessage::ReportV2(GROUP), "by the router's version");
}

#[test]
fn tag_has_the_vlan_and_the_priority() {
    let tag = VlanTag { pcp: 2, dei: false, vid: 7 };
    let (mut stack, mut peer) = stack(UdpStackConfig { vlan: Some(tag), neighbors: vec![(PEER, mac(2))], ..config() });
    while let Some(frame) = peer.take() {
        assert_eq!(EthernetFrame::parse(&frame).expect("a frame").header().tag, Some(tag));
    }
    let spec = FlowSpec { own_port: false, transport_priority: 46 };
    let (urgent, _) = stack.open_flow(&spec).expect("the flow can be opened");
    for (flow, pcp, traffic_class) in [(FlowId::DEFAULT, 2, 0), (urgent, 5, 46 << 2)] {
        stack.loan().expect("a frame is loaned")[..2].copy_from_slice(b"it");
        stack.commit(Commit::new(2, flow, &[Locator::udp_v4(PEER, 7411)])).expect("the frame is accepted");
        stack.flush().expect("flush succeeds");
        let frame = peer.take().expect("a frame");
        let ethernet = EthernetFrame::parse(&frame).expect("a frame");
        assert_eq!(ethernet.header().tag, Some(VlanTag { pcp, ..tag }));
        assert_eq!(Ipv4Packet::parse(ethernet.payload()).expect("a packet").traffic_class(), traffic_class);
    }
    peer.put(&packet((mac(1), OWN), UDP, &datagram(OWN, 7411, b"untagged")));
    assert_eq!((recv(&mut stack), stack.counters().not_addressed), (None, 1));
}

#[test]
fn invalid_configuration_is_refused() {
    let refused =
        |config: UdpStackConfig| UdpStack::new(&config, Memory::default().port()).err().map(|e| e.to_string());
    assert_eq!(refused(config()), None);
    for (config, why) in [
        (UdpStackConfig { address: GROUP, ..config() }, "a host cannot have this address"),
        (UdpStackConfig { prefix_len: 33, ..config() }, "at most 32 bits"),
        (UdpStackConfig { multicast_group: PEER, ..config() }, "the group is not a multicast address"),
        (UdpStackConfig { vlan: Some(VlanTag { pcp: 8, dei: false, vid: 1 }), ..config() }, "a PCP"),
        (UdpStackConfig { participant_index: 120, ..config() }, "at most 119"),
        (UdpStackConfig { domain_id: 4_000, ..config() }, "no ports for that domain"),
    ] {
        let error = refused(config).expect("the configuration is refused");
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn arbitrary_bytes_are_only_counted() {
    let (mut stack, mut peer) = stack(config());
    let good = [
        packet((mac(1), OWN), UDP, &datagram(OWN, 7411, b"payload")),
        arp(ArpOperation::Request, (mac(2), PEER), (MacAddress::default(), OWN)),
        packet((mac(1), OWN), 1, &[8, 0, 0xf7, 0xfc, 0, 1, 0, 2]),
    ];
    for frame in &good {
        for len in 6..=frame.len() {
            peer.put(&frame[..len]);
            drop(recv(&mut stack));
        }
        for at in 6..frame.len() {
            for bit in 0..8 {
                let mut damaged = frame.clone();
                damaged[at] ^= 1 << bit;
                peer.put(&damaged);
                drop(recv(&mut stack));
            }
        }
    }
    peer.put(&good[0]);
    let received = std::iter::from_fn(|| recv(&mut stack)).last();
    assert_eq!(received.as_deref(), Some(&b"payload"[..]));
}

#[test]
fn refusing_and_waiting_do_not_allocate() {
    let (mut stack, mut peer) = stack(config());
    for n in 0..200_u8 {
        peer.put(&packet((mac(1), OWN), UDP, &datagram(OWN, 9, &[n])));
        peer.put(&arp(ArpOperation::Request, (mac(3), Ipv4Addr::new(10, 77, 0, n)), (MacAddress::default(), PEER)));
    }
    let count = allocations(|| assert!(recv(&mut stack).is_none()));
    assert_eq!(count, 0);
    let to: Vec<Locator> = (20..50).map(|n| Locator::udp_v4(Ipv4Addr::new(10, 77, 0, n), 7411)).collect();
    let mut commit = || {
        stack.loan().expect("a frame is loaned");
        stack.commit(Commit::new(100, FlowId::DEFAULT, &to)).expect("the frame is accepted");
    };
    // The port in memory copies the ARP requests.
    commit();
    assert_eq!(allocations(commit), 0);
    assert_eq!((stack.counters().waited, stack.counters().unresolved), (60, 0));
}
