//! Network stack in user space for one address at a frame port: ARP, IGMP, IPv4 and UDP.
//!
//! | module | contents |
//! |---|---|
//! | `wire` | conversion between frames and their contents |
//! | `neighbors` | hardware addresses, with resolution and aging |
//! | `groups` | membership in the multicast group |
//! | `frames` | waiting frames |
//! | `reassembly` | fragmented packets |
//! | `flows` | flows and ports |
//! | `transport` | implementation of [`Transport`](takt_transport::Transport) |
//!
//! The address must have no other users. The stack answers ARP requests for it, and echo requests.
//! It counts and drops everything else that is not for its ports, without a reply.

mod flows;
mod frames;
mod groups;
mod neighbors;
mod reassembly;
mod transport;
mod wire;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;
use std::time::{Duration, Instant};

use takt_packet::{ArpOperation, ArpPacket, EthernetHeader, IgmpMessage, MacAddress, VlanTag};
use takt_transport::ethernet::FramePort;
use takt_transport::urgency_buffer::{self, UrgencyBuffer, Wanted};
use takt_transport::{Interface, Locators, RxMeta, Scan, TransportError, TransportStats};
use takt_wire::Locator;

use crate::config::UdpStackConfig;
use flows::{FlowHeader, Flows};
use frames::WaitingFrames;
use groups::Membership;
use neighbors::Neighbors;
use reassembly::Reassembly;
use wire::{Datagram, End, FrameContent, Refused};

/// Maximum number of datagrams that wait for hardware addresses, in total and for one neighbor.
const WAITING_MAX: usize = 64;
const WAITING_PER_NEIGHBOR: usize = 16;

/// Maximum time that a datagram waits.
const WAITING_TIME: Duration = Duration::from_secs(3);

/// Maximum number of replies that wait for the loaned frame to be free.
const REPLIES_MAX: usize = 16;

/// Interval between two checks of timers.
const TIMER_PERIOD: Duration = Duration::from_millis(20);

/// Maximum number of frames that one call examines, including those for other receivers.
const FRAMES_PER_CALL: usize = UrgencyBuffer::SLOTS;

/// Maximum length of a datagram, which arrives in fragments.
const DATAGRAM_MAX: usize = 65_507;

/// Destination of IGMP queries (RFC 1112 §4).
const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);

/// Counters of the stack except those of datagrams. Cumulative since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackCounters {
    /// Frames of other protocols, VLANs or addresses.
    pub not_addressed: u64,
    /// Frames with inconsistent lengths or a damaged header.
    pub malformed: u64,
    /// Datagrams with a wrong checksum.
    pub damaged: u64,
    /// Datagrams to ports that are not open.
    pub port_closed: u64,
    /// Received fragments.
    pub fragments_in: u64,
    /// Packets whose fragments did not all arrive in time, or were inconsistent.
    pub dropped_packets: u64,
    /// Frames of another host that claims this address.
    pub conflicts: u64,
    /// Sent ARP requests, including the initial announcements.
    pub requests_out: u64,
    /// Sent ARP and echo replies, and membership reports.
    pub replies_out: u64,
    /// Replies that were dropped for lack of room.
    pub replies_lost: u64,
    /// Datagrams that waited for a hardware address.
    pub waited: u64,
    /// Waiting datagrams that were lost, for lack of room or of a reply.
    pub unresolved: u64,
}

/// UDP over IPv4 at a frame port, for one participant. See the [crate](crate).
///
/// The port has to deliver frames of all kinds, not only RTPS on Ethernet.
#[derive(Debug)]
pub struct UdpStack<P: FramePort> {
    port: P,
    own: (MacAddress, Ipv4Addr),
    prefix_len: u8,
    gateway: Option<Ipv4Addr>,
    tag: Option<VlanTag>,
    vlan: Option<u16>,
    multicast: Option<Multicast>,
    multicast_ttl: u8,
    flows: Flows,
    neighbors: Neighbors,
    reassembly: Reassembly,
    /// Received datagrams, sorted by urgency.
    urgency_buffer: UrgencyBuffer,
    /// Datagrams that wait for hardware addresses.
    waiting: WaitingFrames,
    /// Complete frames, to be sent when no frame is loaned.
    replies: WaitingFrames,
    /// A resolved address allows some waiting datagrams to be sent.
    has_resolved: bool,
    loaned: bool,
    headers_len: usize,
    max_message_len: usize,
    opened: Instant,
    /// Time since opening, as of the last read of the clock.
    now: Duration,
    timers_handled_at: Duration,
    /// Time of the next announcement of the own address.
    announce: Option<Duration>,
    calls: u32,
    interfaces: Vec<Interface>,
    locators: Locators,
    stats: TransportStats,
    counters: StackCounters,
}

/// Group of which this host is a member.
#[derive(Debug)]
struct Multicast {
    group: Ipv4Addr,
    ports: [u16; 2],
    membership: Membership,
}

/// Location of a received datagram.
#[derive(Debug)]
enum Location {
    Frame(Range<usize>),
    Reassembled(usize, usize, Range<usize>),
    Buffered(urgency_buffer::Slot),
}

/// UDP transport over a DPDK port.
#[cfg(feature = "dpdk")]
pub type DpdkTransport = UdpStack<crate::DpdkPort>;

#[cfg(feature = "dpdk")]
impl DpdkTransport {
    /// Opens a port, and UDP over it.
    ///
    /// # Errors
    /// Those of [`DpdkPort::open`](crate::DpdkPort::open) and [`UdpStack::new`].
    pub fn open(port: &crate::DpdkConfig, config: &UdpStackConfig) -> Result<Self, TransportError> {
        let mut port = crate::DpdkPort::open(port)?;
        port.interface_mut().addresses = vec![(config.address.into(), config.prefix_len)];
        Self::new(config, port)
    }
}

impl<P: FramePort> UdpStack<P> {
    /// Takes the port, joins the group and announces the address. Allocates; later, only opening
    /// and closing flows does.
    ///
    /// # Errors
    /// The address, group, tag or participant index is invalid, or the port reports an error.
    pub fn new(config: &UdpStackConfig, mut port: P) -> Result<Self, TransportError> {
        let failed = |op: &'static str, why: io::Error| TransportError::new(op, config.address, why);
        let impossible = |why| failed("use address", io::Error::new(io::ErrorKind::InvalidInput, why));
        let ports = check(config).map_err(impossible)?;
        let tag_len = if config.vlan.is_some() { 4 } else { 0 };
        let headers_len = wire::headers_len(config.vlan.is_some());
        let max_message_len =
            (port.mtu() + EthernetHeader::LEN + tag_len).saturating_sub(headers_len).min(DATAGRAM_MAX);
        let frame_len = headers_len + max_message_len;
        let own = (port.mac(), config.address);
        let mut multicast = None;
        if config.multicast {
            for group in [config.multicast_group, ALL_HOSTS] {
                let group = MacAddress::of_group(group.into()).expect("the address is a multicast group");
                port.join(group).map_err(|e| failed("join a group at", e))?;
            }
            let membership = Membership::new(config.multicast_group, own.0, Duration::ZERO);
            multicast = Some(Multicast { group: config.multicast_group, ports: ports.multicast, membership });
        }
        let interface = Interface {
            addresses: vec![(config.address.into(), config.prefix_len)],
            multicast: config.multicast,
            ..port.interface().clone()
        };
        let mut stack = Self {
            own,
            prefix_len: config.prefix_len,
            gateway: config.gateway,
            tag: config.vlan,
            vlan: config.vlan.map(|tag| tag.vid).filter(|vid| *vid != 0),
            locators: ports.locators(config),
            multicast,
            multicast_ttl: config.multicast_ttl,
            flows: Flows::new(ports.unicast[0], ports.unicast[1]),
            neighbors: Neighbors::new(&config.neighbors),
            reassembly: Reassembly::new(),
            urgency_buffer: UrgencyBuffer::default(),
            waiting: WaitingFrames::new(WAITING_MAX, WAITING_PER_NEIGHBOR, frame_len),
            replies: WaitingFrames::new(REPLIES_MAX, REPLIES_MAX, frame_len),
            has_resolved: false,
            loaned: false,
            headers_len,
            max_message_len,
            opened: Instant::now(),
            now: Duration::ZERO,
            timers_handled_at: Duration::ZERO,
            announce: Some(Duration::ZERO),
            calls: 0,
            interfaces: vec![interface],
            stats: TransportStats::default(),
            counters: StackCounters::default(),
            port,
        };
        stack.handle_timers();
        stack.send_waiting();
        Ok(stack)
    }

    /// Returns the port.
    pub fn port(&self) -> &P {
        &self.port
    }

    /// Returns the port for maintenance.
    pub fn port_mut(&mut self) -> &mut P {
        &mut self.port
    }

    /// Returns the counters of the stack.
    pub fn counters(&self) -> StackCounters {
        StackCounters { dropped_packets: self.reassembly.dropped(), ..self.counters }
    }

    /// Reads the clock, and handles timers if their interval has elapsed.
    fn update_clock(&mut self) {
        self.now = self.opened.elapsed();
        if self.now.saturating_sub(self.timers_handled_at) >= TIMER_PERIOD {
            self.handle_timers();
        }
    }

    /// Handles due timers.
    fn handle_timers(&mut self) {
        self.timers_handled_at = self.now;
        if self.announce.is_some_and(|due| due <= self.now) {
            // Twice, in case the first one is lost.
            self.announce = (self.announce == Some(Duration::ZERO)).then_some(self.now + Duration::from_secs(1));
            self.send_arp_request(MacAddress::BROADCAST, self.own.1);
        }
        let now = self.now;
        if let Some(report) = self.multicast.as_mut().and_then(|multicast| multicast.membership.poll(now)) {
            let (own, tag) = (self.own, self.tag);
            self.queue_reply(|frame| wire::igmp(frame, own, tag, report));
        }
        if !self.waiting.is_empty() {
            self.retry_requests();
        }
        self.reassembly.expire(now);
    }

    /// Repeats ARP requests for waiting datagrams, and drops those that have waited too long.
    fn retry_requests(&mut self) {
        let mut requests = [None; WAITING_MAX];
        let mut count = 0;
        let Self { waiting, neighbors, counters, stats, now, .. } = self;
        waiting.remove_if(|frame| {
            let Some(to) = frame.to else { return true };
            if now.saturating_sub(frame.since) >= WAITING_TIME {
                counters.unresolved += 1;
                stats.send_errors.host_unreachable += 1;
                return true;
            }
            if neighbors.lookup(to, *now).must_request && count < WAITING_MAX {
                requests[count] = Some(to);
                count += 1;
            }
            false
        });
        requests.into_iter().flatten().for_each(|to| self.send_arp_request(MacAddress::BROADCAST, to));
    }

    /// Sends an ARP request for an address: to all hosts, or to the presumed owner.
    fn send_arp_request(&mut self, to: MacAddress, of: Ipv4Addr) {
        let (own, tag) = (self.own, self.tag);
        if self.replies.push(None, self.now, |frame| wire::arp(frame, to, tag, wire::arp_request(own, of))) {
            self.counters.requests_out += 1;
        } else {
            self.counters.replies_lost += 1;
        }
    }

    /// Queues a reply frame.
    fn queue_reply(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) {
        if self.replies.push(None, self.now, write) {
            self.counters.replies_out += 1;
        } else {
            self.counters.replies_lost += 1;
        }
    }

    /// Sends waiting frames that can be sent, unless a frame is loaned.
    fn send_waiting(&mut self) {
        if self.loaned || (self.replies.is_empty() && !self.has_resolved) {
            return;
        }
        self.has_resolved = false;
        let Self { port, replies, waiting, neighbors, stats, headers_len, has_resolved, .. } = self;
        let mut send = |bytes: &[u8], to: Option<MacAddress>| {
            let frame = port.loan();
            frame[..bytes.len()].copy_from_slice(bytes);
            if let Some(to) = to {
                frame[..6].copy_from_slice(&to.0);
            }
            port.send(bytes.len())
        };
        replies.remove_if(|frame| send(frame.bytes(), None));
        waiting.remove_if(|frame| {
            let mac = frame.to.and_then(|to| neighbors.known(to));
            // If the port has no free frame, this frame and those behind it are retried at the next
            // call.
            if mac.is_none() || *has_resolved || !send(frame.bytes(), mac) {
                *has_resolved |= mac.is_some();
                return false;
            }
            stats.datagrams_out += 1;
            stats.bytes_out += (frame.bytes().len() - *headers_len) as u64;
            true
        });
        if self.port.flush().is_err() {
            self.stats.send_errors.other += 1;
        }
    }

    /// Returns the next wanted datagram among the waiting and the arriving ones.
    fn receive_wanted(&mut self, scan: Scan, wanted: Wanted) -> Result<Option<(Location, RxMeta)>, TransportError> {
        self.urgency_buffer.release();
        for _ in 0..FRAMES_PER_CALL {
            if !self.urgency_buffer.has_room()
                || !self.port.recv(scan).map_err(|e| TransportError::new("receive at", self.own.1, e))?
            {
                break;
            }
            let Some((location, meta)) = self.handle() else { continue };
            let urgency = self.flows.urgency(meta.flow);
            if self.urgency_buffer.is_wanted(urgency, wanted) {
                return Ok(Some((location, meta)));
            }
            let Self { port, reassembly, urgency_buffer: buffer, .. } = self;
            let datagram = match location {
                Location::Reassembled(at, len, range) => &reassembly.payload(at, len)[range],
                Location::Frame(range) => &port.received()[range],
                Location::Buffered(_) => unreachable!("the frame is from the port"),
            };
            self.counters.malformed += u64::from(!buffer.push(urgency, meta, datagram));
        }
        Ok(self.urgency_buffer.pop(wanted).map(|(slot, meta)| (Location::Buffered(slot), meta)))
    }

    /// Returns the octets of a datagram.
    fn bytes(&self, location: Location) -> &[u8] {
        match location {
            Location::Frame(range) => &self.port.received()[range],
            Location::Reassembled(at, len, range) => &self.reassembly.payload(at, len)[range],
            Location::Buffered(slot) => self.urgency_buffer.bytes(&slot),
        }
    }

    /// Handles the current frame of the port, and returns its datagram if it is for this
    /// participant.
    fn handle(&mut self) -> Option<(Location, RxMeta)> {
        let (location, datagram) = match wire::parse(self.port.received(), self.vlan) {
            Ok(FrameContent::Datagram(datagram)) => (Location::Frame(datagram.payload.clone()), datagram),
            Ok(FrameContent::Fragment(fragment)) => {
                self.counters.fragments_in += 1;
                if !is_ours(fragment.destination(), self.own.1, self.multicast.as_ref())
                    || fragment.protocol() != takt_packet::UDP
                {
                    self.counters.not_addressed += 1;
                    return None;
                }
                let (source, destination) = (fragment.source(), fragment.destination());
                let (at, len) = self.reassembly.add(&fragment, self.now)?;
                match wire::datagram(self.reassembly.payload(at, len), source, destination) {
                    Ok(datagram) => (Location::Reassembled(at, len, datagram.payload.clone()), datagram),
                    Err(why) => return self.count_refused(why),
                }
            }
            Ok(FrameContent::Arp(packet)) => return self.handle_arp(packet),
            Ok(FrameContent::Igmp(message)) => return self.handle_igmp(message),
            Ok(FrameContent::EchoRequest(to)) if to == self.own.1 => return self.reply_to_echo(),
            Ok(FrameContent::EchoRequest(_)) => return self.count_refused(Refused::NotAddressed),
            Err(why) => return self.count_refused(why),
        };
        let meta = self.meta(&datagram)?;
        self.stats.datagrams_in += 1;
        self.stats.bytes_in += datagram.payload.len() as u64;
        Some((location, meta))
    }

    fn count_refused<T>(&mut self, why: Refused) -> Option<T> {
        *match why {
            Refused::NotAddressed => &mut self.counters.not_addressed,
            Refused::Malformed => &mut self.counters.malformed,
            Refused::Damaged => &mut self.counters.damaged,
        } += 1;
        None
    }

    /// Returns the metadata of a datagram, if it is for an open port.
    fn meta(&mut self, datagram: &Datagram) -> Option<RxMeta> {
        let (ip, port) = (*datagram.to.ip(), datagram.to.port());
        if !is_ours(ip, self.own.1, self.multicast.as_ref()) {
            return self.count_refused(Refused::NotAddressed);
        }
        let multicast = ip.is_multicast();
        let flow = match &self.multicast {
            Some(group) if multicast => group.ports.contains(&port).then_some(takt_transport::FlowId::DEFAULT),
            _ => self.flows.flow_of(port),
        };
        let Some(flow) = flow else {
            self.counters.port_closed += 1;
            return None;
        };
        let source = Locator::udp_v4(*datagram.from.ip(), datagram.from.port());
        Some(RxMeta { source, local: Locator::udp_v4(ip, port), flow, multicast })
    }

    /// Handles an ARP packet, and answers requests for the own address.
    fn handle_arp<T>(&mut self, packet: ArpPacket) -> Option<T> {
        let (mac, ip) = packet.sender;
        if mac.is_group() {
            return self.count_refused(Refused::Malformed);
        }
        if ip == self.own.1 {
            // Some devices return the own announcement.
            self.counters.conflicts += u64::from(mac != self.own.0);
            return None;
        }
        let is_for_us = packet.target.1 == self.own.1;
        // A host that does not know its own address yet sends from the unspecified one
        // (RFC 5227 §1.1).
        if !ip.is_unspecified() && !ip.is_multicast() && self.is_on_link(ip) {
            self.neighbors.record(ip, mac, is_for_us, self.now);
            self.has_resolved |= !self.waiting.is_empty();
        }
        if is_for_us && packet.operation == ArpOperation::Request {
            let reply = ArpPacket { operation: ArpOperation::Reply, sender: self.own, target: (mac, ip) };
            let tag = self.tag;
            self.queue_reply(|frame| wire::arp(frame, mac, tag, reply));
        }
        None
    }

    fn handle_igmp<T>(&mut self, message: IgmpMessage) -> Option<T> {
        let now = self.now;
        if let Some(multicast) = &mut self.multicast {
            multicast.membership.handle(message, now);
        }
        None
    }

    fn reply_to_echo<T>(&mut self) -> Option<T> {
        let Self { port, replies, own, now, counters, .. } = self;
        let request = port.received();
        let has_room = replies.push(None, *now, |frame| wire::echo_reply(frame, request, own.0));
        *if has_room { &mut counters.replies_out } else { &mut counters.replies_lost } += 1;
        None
    }

    /// Reports whether the address is in the own network.
    fn is_on_link(&self, ip: Ipv4Addr) -> bool {
        (self.own.1.to_bits() ^ ip.to_bits()).leading_zeros() >= u32::from(self.prefix_len)
    }

    /// Returns the neighbor that leads to an address: the host itself, or the router.
    fn next_hop(&self, ip: Ipv4Addr) -> Option<Ipv4Addr> {
        if self.is_on_link(ip) { Some(ip) } else { self.gateway }
    }

    /// Returns the address and port of a locator, if it can be sent to.
    fn address(&self, to: &Locator) -> Option<SocketAddrV4> {
        if to.kind != Locator::KIND_UDP_V4 {
            return None;
        }
        let [.., a, b, c, d] = to.address;
        let ip = Ipv4Addr::new(a, b, c, d);
        let port = u16::try_from(to.port).ok().filter(|port| *port != 0)?; // tidy-allow(dropped-cause): no such port.
        let is_possible = match ip.is_multicast() {
            true => self.multicast.is_some(),
            false => {
                let is_none = ip.is_unspecified() || ip.is_loopback() || ip.is_broadcast();
                !is_none && self.next_hop(ip).is_some()
            }
        };
        is_possible.then_some(SocketAddrV4::new(ip, port))
    }

    /// Queues the loaned datagram for all destinations.
    fn distribute(&mut self, len: usize, header: FlowHeader, destinations: &[Locator]) {
        // The last destination gets the frame itself, after the copies for the others.
        let mut last: Option<End> = None;
        for to in destinations {
            let Some(address) = self.address(to) else {
                self.stats.send_errors.unserved += 1;
                continue;
            };
            let ip = *address.ip();
            let resolved = match MacAddress::of_group(ip.into()) {
                Some(group) => Ok(group),
                None if ip == self.own.1 => Ok(self.own.0),
                None => self.resolve(self.next_hop(ip).unwrap_or(ip)),
            };
            match resolved {
                Ok(mac) => {
                    if let Some(before) = last.replace(End { mac, address }) {
                        self.send(len, header, before, true);
                    }
                }
                Err(hop) => self.queue_for_resolution(len, header, hop, End { mac: MacAddress::default(), address }),
            }
        }
        if let Some(to) = last {
            self.send(len, header, to, false);
        }
    }

    /// Returns the hardware address of a neighbor for which no datagram waits, requesting it if
    /// necessary; else the neighbor to wait for.
    fn resolve(&mut self, hop: Ipv4Addr) -> Result<MacAddress, Ipv4Addr> {
        let found = self.neighbors.lookup(hop, self.now);
        if found.must_request {
            self.send_arp_request(found.mac.unwrap_or(MacAddress::BROADCAST), hop);
        }
        let is_first = self.waiting.is_empty() || !self.waiting.has_frame_to(hop);
        found.mac.filter(|_| is_first).ok_or(hop)
    }

    /// Copies the loaned datagram to the queue of those that wait for hardware addresses.
    fn queue_for_resolution(&mut self, len: usize, header: FlowHeader, hop: Ipv4Addr, to: End) {
        let (ends, tag, marks) = self.headers_for(header, to);
        let Self { port, waiting, now, headers_len, counters, stats, .. } = self;
        counters.waited += 1;
        let payload = &port.loan()[*headers_len..*headers_len + len];
        let has_room = waiting.push(Some(hop), *now, |frame| {
            frame.get_mut(*headers_len..*headers_len + len)?.copy_from_slice(payload);
            wire::encapsulate(frame, len, ends, tag, marks)
        });
        if !has_room {
            counters.unresolved += 1;
            stats.send_errors.host_unreachable += 1;
        }
    }

    /// Sends the loaned datagram or a copy of it.
    fn send(&mut self, len: usize, header: FlowHeader, to: End, as_copy: bool) {
        let (ends, tag, marks) = self.headers_for(header, to);
        let Some(frame_len) = wire::encapsulate(self.port.loan(), len, ends, tag, marks) else {
            self.stats.send_errors.too_large += 1;
            return;
        };
        let is_sent = if as_copy { self.port.send_copy(frame_len) } else { self.port.send(frame_len) };
        if is_sent {
            self.stats.datagrams_out += 1;
            self.stats.bytes_out += len as u64;
        } else {
            self.stats.send_errors.no_buffers += 1;
        }
    }

    /// Returns the header fields of a datagram: source and destination, tag, traffic class and TTL.
    fn headers_for(&self, header: FlowHeader, to: End) -> ([End; 2], Option<VlanTag>, [u8; 2]) {
        let from = End { mac: self.own.0, address: SocketAddrV4::new(self.own.1, header.port) };
        let pcp = header.dscp >> 3;
        let tag = self.tag.map(|tag| VlanTag { pcp: if header.dscp == 0 { tag.pcp } else { pcp }, ..tag });
        let ttl = if to.address.ip().is_multicast() { self.multicast_ttl } else { wire::TTL };
        ([from, to], tag, [header.dscp << 2, ttl])
    }
}

/// Reports whether a datagram to this address is for this participant.
fn is_ours(ip: Ipv4Addr, own: Ipv4Addr, multicast: Option<&Multicast>) -> bool {
    ip == own || multicast.is_some_and(|multicast| multicast.group == ip)
}

/// Well-known ports, metatraffic first.
struct Ports {
    unicast: [u16; 2],
    multicast: [u16; 2],
}

impl Ports {
    fn locators(&self, config: &UdpStackConfig) -> Locators {
        let at = |port| vec![Locator::udp_v4(config.address, port)];
        let group = |port| match config.multicast {
            true => vec![Locator::udp_v4(config.multicast_group, port)],
            false => Vec::new(),
        };
        Locators {
            metatraffic_unicast: at(self.unicast[0]),
            metatraffic_multicast: group(self.multicast[0]),
            default_unicast: at(self.unicast[1]),
            default_multicast: group(self.multicast[1]),
        }
    }
}

/// Checks the configuration, and derives the ports (RTPS 2.5 §9.6.2).
fn check(config: &UdpStackConfig) -> Result<Ports, &'static str> {
    let own = config.address;
    if own.is_unspecified() || own.is_multicast() || own.is_broadcast() || own.is_loopback() {
        return Err("a host cannot have this address");
    }
    if config.prefix_len > 32 {
        return Err("a prefix has at most 32 bits");
    }
    if !config.multicast_group.is_multicast() {
        return Err("the group is not a multicast address");
    }
    if config.vlan.is_some_and(|tag| tag.pcp > 7 || tag.vid > 4_094) {
        return Err("a tag has a PCP of at most 7 and a VLAN of at most 4094");
    }
    if config.participant_index > 119 {
        return Err("a participant index is at most 119");
    }
    let (domain, index, ports) = (config.domain_id, u32::from(config.participant_index), &config.ports);
    let unicast = [ports.discovery_unicast(domain, index), ports.user_unicast(domain, index)];
    let multicast = [ports.discovery_multicast(domain), ports.user_multicast(domain)];
    match (unicast, multicast) {
        ([Some(a), Some(b)], [Some(c), Some(d)]) => Ok(Ports { unicast: [a, b], multicast: [c, d] }),
        _ => Err("UDP has no ports for that domain"),
    }
}

impl<P: FramePort> Drop for UdpStack<P> {
    /// Leaves the group, without ensuring that the message arrives.
    fn drop(&mut self) {
        if let Some(multicast) = &self.multicast {
            let message = multicast.membership.leave(self.now);
            if let Some(len) = wire::igmp(self.port.loan(), self.own, self.tag, message) {
                self.port.send(len);
                drop(self.port.flush());
            }
        }
    }
}
