//! Handling of packets that switches send to the controller (PACKET_IN).

use std::net::{IpAddr, Ipv6Addr};

use takt_openflow::channel::Instant;
use takt_openflow::oxm::VLAN_PRESENT;
use takt_openflow::packet::PacketIn;

use super::{Controller, Event};
use crate::PortRef;
use crate::devices::{Claim, HostId, Sighting, Vlan};
use crate::forwarding::next_hops;
use crate::frame::membership::{Statement, statements};
use crate::frame::{Frame, IpPacket, LLDP, Network};
use crate::topology::Role;

const ICMPV6: u8 = 58;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;

/// Returns the VLAN of a frame in the form that OpenFlow matches.
fn vlan_of(frame: &Frame<'_>) -> Vlan {
    frame.tags().first().map_or(0, |tag| VLAN_PRESENT | tag.vid)
}

/// A neighbor solicitation or advertisement (RFC 4861 §4.3, §4.4).
pub(super) struct Neighbor {
    is_solicitation: bool,
    target: Ipv6Addr,
}

pub(super) fn neighbor_of(packet: &IpPacket<'_>) -> Option<Neighbor> {
    // A hop limit of 255 proves that no router forwarded the packet.
    if packet.protocol() != ICMPV6 || packet.fragment().is_some() || packet.hop_limit() != 255 {
        return None;
    }
    let message: &[u8; 24] = packet.payload().first_chunk()?;
    let is_solicitation = match message[0] {
        SOLICITATION => true,
        ADVERTISEMENT => false,
        _ => return None,
    };
    let target = Ipv6Addr::from(*message[8..].as_array::<16>()?);
    Some(Neighbor { is_solicitation, target })
}

impl Controller {
    pub(super) fn handle_packet(&mut self, now: Instant, dpid: u64, packet: &PacketIn) {
        self.counters.packets += 1;
        let Some(port) = packet.in_port() else {
            self.counters.malformed += 1;
            return;
        };
        let at = PortRef::new(dpid, port.0);
        let frame = match Frame::parse(&packet.data) {
            Ok(frame) if packet.data.len() == usize::from(packet.total_len) => frame,
            _ => {
                self.counters.malformed += 1;
                return;
            }
        };
        if frame.ether_type() == LLDP && frame.destination() == crate::frame::lldp::NEAREST_BRIDGE {
            return self.topology.handle_lldp(now, at, &frame);
        }
        match self.topology.role(at) {
            Role::Down | Role::Probing => self.counters.ignored += 1,
            Role::Link(_) => self.forward(at, &frame),
            Role::Edge => self.handle_edge(now, at, &frame),
        }
    }

    /// Records the port of a host from a frame. Reports whether the frame may be processed further.
    pub(super) fn observe(&mut self, now: Instant, at: PortRef, host: HostId) -> bool {
        let topology = &self.topology;
        let is_up = |at| topology.role(at) != Role::Down;
        match self.devices.observe(now, at, host, is_up) {
            Sighting::Known => true,
            Sighting::New => {
                self.push(Event::HostFound { host, at });
                true
            }
            Sighting::Moved { from } => {
                self.drop_rules_of(host);
                let addresses = self.devices.get(host).map(|host| host.addresses.clone()).unwrap_or_default();
                addresses.into_iter().for_each(|address| self.attach(now, at, host, address));
                self.push(Event::HostMoved { host, from, to: at });
                true
            }
            Sighting::Spoofed { at: owner } => {
                self.counters.spoofed += 1;
                self.push(Event::Spoofed { host, owner, at });
                false
            }
            Sighting::NotAHost | Sighting::Full => {
                self.counters.refused += 1;
                false
            }
        }
    }

    /// Handles a frame from a host.
    fn handle_edge(&mut self, now: Instant, at: PortRef, frame: &Frame<'_>) {
        let vlan = vlan_of(frame);
        let host = HostId { vlan, mac: frame.source() };
        if !self.observe(now, at, host) {
            return;
        }
        match frame.network() {
            Ok(Network::Arp(packet)) => {
                let (mac, address) = packet.sender;
                let is_own = mac == frame.source();
                if !is_own || !self.claim(now, at, host, address.into()) {
                    self.counters.spoofed += u64::from(!is_own);
                    return;
                }
                self.forward_to_owner(at, frame, packet.target.1.into());
            }
            Ok(Network::Ip(packet)) => match neighbor_of(&packet) {
                Some(Neighbor { is_solicitation, target }) => {
                    // An advertisement names the owner of the target, a solicitation the owner of
                    // the source.
                    let claimed = if is_solicitation { packet.source() } else { IpAddr::V6(target) };
                    if self.claim(now, at, host, claimed) {
                        self.forward_to_owner(at, frame, target.into());
                    }
                }
                None if statements(&packet).is_some() => self.handle_membership(now, at, frame, &packet),
                None if self.is_discovery(&packet) => self.intercept(now, at, frame),
                None => self.forward_rule(now, at, host, frame),
            },
            _ => self.forward_rule(now, at, host, frame),
        }
    }

    /// Handles a membership report. It is sent only to routers, since a host that sees the report
    /// of another host may suppress its own.
    fn handle_membership(&mut self, now: Instant, at: PortRef, frame: &Frame<'_>, packet: &IpPacket<'_>) {
        let statements = statements(packet).unwrap_or_default();
        if statements.contains(&Statement::Query) {
            self.flood(at, frame);
        } else {
            for router in self.membership.routers().collect::<Vec<_>>() {
                self.send_to(at, router, frame);
            }
        }
        if vlan_of(frame) != 0 {
            return;
        }
        let changes = statements.into_iter().filter(|statement| self.membership.handle(now, at, *statement));
        if changes.count() > 0 {
            self.want_groups();
        }
    }

    /// Forwards a frame of a host, which may send by rules from now on.
    fn forward_rule(&mut self, now: Instant, at: PortRef, host: HostId, frame: &Frame<'_>) {
        self.want_source(now, at, host);
        self.forward(at, frame);
    }

    /// Records that a host claims an address. Reports whether the frame with the claim may be
    /// forwarded.
    pub(super) fn claim(&mut self, now: Instant, at: PortRef, host: HostId, address: IpAddr) -> bool {
        let is_new = self.devices.by_address(host.vlan, address) != Some(host);
        let topology = &self.topology;
        match self.devices.claim(now, host, address, |at| topology.role(at) != Role::Down) {
            Claim::Accepted => {
                self.attach(now, at, host, address);
                if is_new && self.devices.by_address(host.vlan, address) == Some(host) {
                    self.push(Event::AddressFound { host, address });
                }
                true
            }
            Claim::Full => true,
            Claim::Conflict { owner } => {
                self.counters.spoofed += 1;
                self.push(Event::AddressConflict { owner, claimed_by: host, at, address });
                false
            }
        }
    }

    /// Attaches participants with an address to the port of its owner. A host that claims it in
    /// another VLAN does not affect them.
    fn attach(&mut self, now: Instant, at: PortRef, host: HostId, address: IpAddr) {
        if self.discovery.port_of(address) == Some(at) {
            return;
        }
        let topology = &self.topology;
        if self.devices.owner(now, address, |at| topology.role(at) != Role::Down) == Some(host) {
            self.discovery.attach_host(now, address, at);
        }
    }

    /// Sends an address request to the host that has the address, and any other frame to its
    /// destination.
    fn forward_to_owner(&mut self, at: PortRef, frame: &Frame<'_>, address: IpAddr) {
        let owner = self.devices.by_address(vlan_of(frame), address).filter(|_| frame.destination().is_group());
        match owner.and_then(|owner| self.devices.get(owner)).map(|host| host.at) {
            Some(to) => {
                self.counters.directed += 1;
                self.send_to(at, to, frame);
            }
            None => self.forward(at, frame),
        }
    }

    /// Sends a frame to its destination, and installs rules for subsequent frames.
    pub(super) fn forward(&mut self, at: PortRef, frame: &Frame<'_>) {
        if self.is_isolated(frame) {
            self.counters.isolated += 1;
            return;
        }
        let destination = HostId { vlan: vlan_of(frame), mac: frame.destination() };
        if destination.mac.is_group() {
            return self.flood(at, frame);
        }
        let Some(to) = self.devices.get(destination).map(|host| host.at) else { return self.flood(at, frame) };
        if self.route(at.dpid, destination) {
            self.send_to(at, to, frame);
        } else {
            self.counters.unreachable += 1;
        }
    }

    /// Installs rules from a switch to a host. Reports whether there is a path.
    fn route(&mut self, dpid: u64, host: HostId) -> bool {
        let links = self.links();
        let mut dpid = dpid;
        // A path passes each switch once.
        for _ in 0..=self.switches.len() {
            let Some(port) = self.next_hop_port(&links, dpid, host) else { return false };
            self.want_route(dpid, host, port);
            match self.topology.role(PortRef::new(dpid, port)) {
                Role::Link(peer) => dpid = peer.dpid,
                _ => return true,
            }
        }
        false
    }

    fn send_to(&mut self, from: PortRef, to: PortRef, frame: &Frame<'_>) {
        if from != to {
            self.counters.forwarded += 1;
            self.send_packet(to.dpid, &[to.port], frame);
        }
    }

    /// Sends a frame out of every edge that needs it except the one where it arrived, at all
    /// switches that links reach. The frame passes no link, so no spanning tree is needed.
    fn flood(&mut self, from: PortRef, frame: &Frame<'_>) {
        self.counters.flooded += 1;
        let reached = next_hops(&self.links(), from.dpid, |_| true);
        let is_reached = |dpid: u64| dpid == from.dpid || reached.contains_key(&dpid);
        let receivers = if vlan_of(frame) == 0 { self.membership.receivers(frame.destination()) } else { None };
        let is_receiver = |edge: &PortRef| receivers.as_ref().is_none_or(|receivers| receivers.contains(edge));
        let is_chosen = |edge: &PortRef| *edge != from && is_reached(edge.dpid) && is_receiver(edge);
        let edges = self.topology.edges().filter(|edge| is_chosen(edge) && self.topology.is_connected(edge.dpid));
        let edges: Vec<PortRef> = edges.collect();
        for ports in edges.chunk_by(|a, b| a.dpid == b.dpid) {
            let numbers: Vec<u32> = ports.iter().map(|port| port.port).collect();
            self.send_packet(ports[0].dpid, &numbers, frame);
        }
    }
}
