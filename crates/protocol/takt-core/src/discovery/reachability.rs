//! Permitted destinations of the participant, and the largest packet on each path.
//!
//! An announced locator is accepted only if it is plausible: an address of this host, of an
//! attached network, the source of the announcement, or a configured one. All others are refused
//! and counted, so that a forged announcement cannot direct traffic to a third party. Locators of
//! endpoints must moreover be at the validated address of their participant (`super::validation`).
//!
//! A hardware address is always on the attached Ethernet, so any is plausible on an Ethernet
//! interface. A participant that has validated an IP address on an attached network may announce
//! any hardware address, because it answers ARP for the IP address anyway.
//!
//! A participant that announces itself over a connection is answered over that connection,
//! regardless of its locators. Behind address translation its own addresses are unreachable, and a
//! participant that does not listen has none.

use super::local_peers::is_memory;
use crate::config::{Interface, Locators};
use crate::path::Path;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use takt_wire::Locator;

/// INTEROP(Fast DDS 2.9): its receive buffer takes datagrams of up to 65,500 bytes.
pub(super) const MAX_MESSAGE: usize = 65_000;
/// MTU where the path is unknown: the minimum of Ethernet.
const DEFAULT_MTU: usize = 1500;
const LOOPBACK_MTU: usize = 65_536;
/// Octets after the Ethernet header that do not belong to the message.
const ETHERNET_OVERHEAD: usize = 8;
/// Smallest MTU that is accepted from an interface: every host receives packets of this size
/// (RFC 1122 §3.3.2).
const MTU_MIN: usize = 576;

#[derive(Debug)]
pub(crate) struct Reachability {
    interfaces: Vec<Interface>,
    peers: Vec<IpAddr>,
    /// Own hardware addresses, on interfaces reached without IP.
    macs: Vec<[u8; 6]>,
    has_udp: bool,
    has_tcp: bool,
    udp_message_max: usize,
    /// Octets that protection adds to each message.
    overhead: usize,
}

/// Address of a locator without its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Ip(IpAddr),
    Mac([u8; 6]),
}

impl Host {
    pub(super) fn of(locator: &Locator) -> Option<Self> {
        locator.ip().map(Self::Ip).or_else(|| locator.mac().map(Self::Mac))
    }
}

/// Plausible kinds of paths, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PathKind {
    Loopback,
    OwnAddress,
    Attached,
    Answer,
}

fn is_in_network(address: IpAddr, network: IpAddr, prefix_len: u8) -> bool {
    let (a, b, bits) = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(u32::from(a)) << 96, u128::from(u32::from(b)) << 96, 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (u128::from(a), u128::from(b), 128),
        _ => return false,
    };
    let len = u32::from(prefix_len).min(bits);
    len == 0 || (a ^ b) >> (128 - len) == 0
}

impl Reachability {
    pub(crate) fn new(interfaces: Vec<Interface>, peers: &[Locator]) -> Self {
        let mut reachability = Self {
            interfaces,
            peers: Vec::new(),
            macs: Vec::new(),
            has_udp: true,
            has_tcp: false,
            udp_message_max: MAX_MESSAGE,
            overhead: 0,
        };
        reachability.set_peers(peers);
        reachability
    }

    /// Sets whether transports reach UDP and TCP locators.
    pub(crate) fn with_transports(self, has_udp: bool, has_tcp: bool) -> Self {
        Self { has_udp, has_tcp, ..self }
    }

    /// Sets the longest message that all UDP transports carry.
    pub(crate) fn with_udp_messages_of(self, len_max: usize) -> Self {
        Self { udp_message_max: len_max.clamp(MTU_MIN - 48, MAX_MESSAGE), ..self }
    }

    /// Sets the octets that protection adds to each message.
    pub(crate) fn with_overhead(self, overhead: usize) -> Self {
        Self { overhead, ..self }
    }

    /// Returns the longest message that fits into `len` octets after protection.
    pub(super) fn message_max(&self, len: usize) -> usize {
        len.min(MAX_MESSAGE).saturating_sub(self.overhead)
    }

    /// Sets the locators of this participant.
    pub(crate) fn with_own(mut self, own: &Locators) -> Self {
        self.set_own(own);
        self
    }

    /// Replaces the locators of this participant.
    pub(crate) fn set_own(&mut self, own: &Locators) {
        let unicast = own.metatraffic_unicast.iter().chain(&own.default_unicast);
        self.macs = unicast.filter_map(Locator::mac).collect();
        self.macs.dedup();
    }

    /// Sets the configured peers.
    pub(crate) fn set_peers(&mut self, peers: &[Locator]) {
        self.peers = peers.iter().filter_map(Locator::ip).filter(|ip| !ip.is_multicast()).collect();
        self.peers.sort_unstable();
        self.peers.dedup();
    }

    pub(crate) fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Replaces the interfaces.
    pub(crate) fn set_interfaces(&mut self, interfaces: Vec<Interface>) {
        self.interfaces = interfaces;
    }

    /// Returns the path to the best of the announced locators. `source` is the source of the
    /// announcement. Adds the number of implausible locators to `refused`.
    pub(crate) fn choose(&self, announced: &[Locator], source: Locator, refused: &mut u64) -> Option<Path> {
        if source.is_tcp() {
            return Some(Path { locator: source, max_message: self.message_max(MAX_MESSAGE) });
        }
        self.choose_announced(announced, source, refused)
    }

    fn choose_announced(&self, announced: &[Locator], source: Locator, refused: &mut u64) -> Option<Path> {
        let mut best: Option<(PathKind, Path)> = None;
        for locator in announced.iter().filter(|locator| !is_memory(locator)) {
            match self.path(*locator, source) {
                Some((kind, path)) if best.is_none_or(|(known, _)| kind < known) => best = Some((kind, path)),
                Some(_) => {}
                None => *refused += 1,
            }
        }
        best.map(|(_, path)| path)
    }

    /// As [`Self::choose`], for an introduction by a trusted server: any address is plausible and
    /// has to be validated. An address that never leaves a host belongs to the server's host.
    pub(crate) fn choose_introduced(&self, announced: &[Locator], server: Locator, refused: &mut u64) -> Option<Path> {
        self.choose_announced(announced, server, refused).or_else(|| {
            let elsewhere = announced.iter().filter(|locator| !locator.ip().is_some_and(|ip| ip.is_loopback()));
            elsewhere
                .filter_map(|locator| self.path(*locator, *locator))
                .min_by_key(|(kind, _)| *kind)
                .map(|(_, path)| path)
        })
    }

    fn path(&self, locator: Locator, source: Locator) -> Option<(PathKind, Path)> {
        if locator.kind == Locator::KIND_TAKT_ETHERNET {
            return self.ethernet_path(locator, source);
        }
        let ip = locator.ip()?;
        let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
        if ip.is_unspecified() || ip.is_multicast() || is_broadcast || locator.port == 0 || locator.port > 65_535 {
            return None;
        }
        let is_tcp = locator.is_tcp();
        if if is_tcp { !self.has_tcp } else { !self.has_udp } {
            return None;
        }
        let from = source.ip();
        let from_here = from.is_some_and(|from| from.is_loopback() || self.is_own(from));
        let (kind, mtu) = if ip.is_loopback() {
            if !from_here || !self.interfaces.iter().any(|interface| interface.loopback) {
                return None;
            }
            (PathKind::Loopback, LOOPBACK_MTU)
        } else if self.is_own(ip) {
            (PathKind::OwnAddress, LOOPBACK_MTU)
        } else if let Some(interface) = self.attached(ip) {
            (PathKind::Attached, interface.mtu)
        } else if from == Some(ip) || self.peers.contains(&ip) {
            (PathKind::Answer, self.mtu_min())
        } else {
            return None;
        };
        let headers = if ip.is_ipv4() { 28 } else { 48 };
        let packet = (mtu.max(MTU_MIN) - headers).min(self.udp_message_max);
        Some((kind, Path { locator, max_message: self.message_max(if is_tcp { MAX_MESSAGE } else { packet }) }))
    }

    fn ethernet_path(&self, locator: Locator, source: Locator) -> Option<(PathKind, Path)> {
        let (mac, _) = locator.mac_and_port().filter(|_| !locator.is_multicast() && !self.macs.is_empty())?;
        let kind = match self.macs.contains(&mac) {
            true if !self.is_on_this_host(&source) => return None,
            true => PathKind::OwnAddress,
            false => PathKind::Attached,
        };
        // Interfaces without addresses carry no IP.
        let mtu = self.interfaces.iter().filter(|interface| interface.addresses.is_empty()).map(|i| i.mtu).min();
        let packet = mtu.unwrap_or(DEFAULT_MTU).max(MTU_MIN) - ETHERNET_OVERHEAD;
        Some((kind, Path { locator, max_message: self.message_max(packet) }))
    }

    /// Reports whether a receiver at `validated` may direct data to `other`: it is on the same
    /// host, or configured.
    pub(crate) fn is_validated_by(&self, validated: &Locator, other: &Locator) -> bool {
        let both_here = self.is_on_this_host(validated) && self.is_on_this_host(other);
        let same = Host::of(validated).is_some_and(|host| Host::of(other) == Some(host));
        let is_on_link = || validated.ip().is_some_and(|ip| self.attached(ip).is_some());
        same || both_here
            || other.mac().is_some_and(|mac| !self.macs.contains(&mac) && is_on_link())
            || other.ip().is_some_and(|ip| self.peers.contains(&ip))
    }

    /// Returns the first IPv4 address of each interface, and the largest message in one packet
    /// there.
    pub(super) fn interface_addresses_v4(&self) -> impl Iterator<Item = (Ipv4Addr, usize)> {
        self.interfaces.iter().filter_map(|interface| {
            let address = interface.addresses.iter().find_map(|(ip, _)| match ip {
                IpAddr::V4(address) => Some(*address),
                IpAddr::V6(_) => None,
            })?;
            let mtu = if interface.loopback { LOOPBACK_MTU } else { interface.mtu };
            Some((address, self.message_max((mtu.max(MTU_MIN) - 28).min(self.udp_message_max))))
        })
    }

    /// Reports whether `locator` is on the network of the interface with the address `exit`. The
    /// network of the loopback interface contains only participants with a validated address of
    /// this host.
    pub(super) fn is_on_interface(&self, exit: IpAddr, locator: &Locator, validated: &Locator) -> bool {
        let Some(ip) = locator.ip() else { return false };
        let mut networks = self.addresses().filter(|(interface, ..)| interface.addresses.iter().any(|at| at.0 == exit));
        networks.any(|(interface, network, len)| {
            is_in_network(ip, network, len) && (!interface.loopback || self.is_on_this_host(validated))
        })
    }

    /// Reports whether a locator is on this host.
    pub(crate) fn is_on_this_host(&self, locator: &Locator) -> bool {
        match Host::of(locator) {
            Some(Host::Ip(ip)) => ip.is_loopback() || self.is_own(ip),
            Some(Host::Mac(mac)) => self.macs.contains(&mac),
            None => false,
        }
    }

    fn is_own(&self, ip: IpAddr) -> bool {
        self.addresses().any(|(_, address, _)| address == ip)
    }

    fn attached(&self, ip: IpAddr) -> Option<&Interface> {
        self.addresses()
            .find(|(interface, network, len)| !interface.loopback && is_in_network(ip, *network, *len))
            .map(|(interface, _, _)| interface)
    }

    fn addresses(&self) -> impl Iterator<Item = (&Interface, IpAddr, u8)> {
        self.interfaces
            .iter()
            .flat_map(|interface| interface.addresses.iter().map(move |(ip, len)| (interface, *ip, *len)))
    }

    fn mtu_min(&self) -> usize {
        let attached = self.interfaces.iter().filter(|interface| !interface.loopback);
        attached.map(|interface| interface.mtu).min().unwrap_or(DEFAULT_MTU).min(DEFAULT_MTU)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn reachability() -> Reachability {
        let interface = |name: &str, address: Ipv4Addr, len, mtu, loopback| Interface {
            name: name.into(),
            addresses: vec![(address.into(), len)],
            mtu,
            loopback,
        };
        let interfaces = vec![
            interface("lo", Ipv4Addr::LOCALHOST, 8, 65_536, true),
            interface("eth0", Ipv4Addr::new(10, 0, 0, 1), 24, 1500, false),
        ];
        Reachability::new(interfaces, &[Locator::udp_v4(Ipv4Addr::new(10, 9, 9, 9), 7410)])
    }

    fn choose(announced: &[Locator], source: Locator) -> (Option<Path>, u64) {
        let mut refused = 0;
        (reachability().choose(announced, source, &mut refused), refused)
    }

    #[test]
    fn nearest_path_is_chosen_among_several() {
        let loopback = Locator::udp_v4(Ipv4Addr::LOCALHOST, 7411);
        let own = Locator::udp_v4(Ipv4Addr::new(10, 0, 0, 1), 7411);
        let (path, refused) = choose(&[own, loopback], own);
        assert_eq!((path.map(|p| (p.locator, p.max_message)), refused), (Some((loopback, MAX_MESSAGE)), 0));
        let far = Locator::udp_v4(Ipv4Addr::new(10, 0, 0, 7), 7411);
        let (path, refused) = choose(&[loopback, far], far);
        assert_eq!((path.map(|p| (p.locator, p.max_message)), refused), (Some((far, 1472)), 1));
    }

    #[test]
    fn third_party_address_is_refused_unless_it_is_the_source_or_configured() {
        let victim = Locator::udp_v4(Ipv4Addr::new(192, 0, 2, 1), 53);
        let attacker = Locator::udp_v4(Ipv4Addr::new(10, 0, 0, 66), 7411);
        assert_eq!(choose(&[victim], attacker), (None, 1));
        assert_eq!(choose(&[victim], victim).0.map(|p| p.locator), Some(victim));
        let peer = Locator::udp_v4(Ipv4Addr::new(10, 9, 9, 9), 4711);
        assert_eq!(choose(&[peer], attacker).0.map(|p| p.locator), Some(peer));
    }

    #[test]
    fn message_is_limited_to_what_the_udp_transports_carry() {
        let own = Locator::udp_v4(Ipv4Addr::new(10, 0, 0, 1), 7411);
        let best = |len_max| reachability().with_udp_messages_of(len_max).choose(&[own], own, &mut 0);
        assert_eq!(best(1472).map(|path| path.max_message), Some(1472));
        assert_eq!(
            best(usize::MAX).map(|path| path.max_message),
            Some(65_536 - 28).map(|len: usize| len.min(MAX_MESSAGE))
        );
    }

    #[test]
    fn announcement_over_a_connection_is_answered_over_it() {
        let inside = Locator::udp_v4(Ipv4Addr::new(192, 168, 1, 7), 7411);
        let outside = Locator::udp_v4(Ipv4Addr::new(192, 0, 2, 1), 1);
        let connection = Locator { kind: Locator::KIND_TCP_V4, port: 65_536, ..outside };
        for announced in [&[inside][..], &[]] {
            let (path, refused) = choose(announced, connection);
            assert_eq!((path.map(|p| (p.locator, p.max_message)), refused), (Some((connection, MAX_MESSAGE)), 0));
        }
        // A participant introduced by a server is not behind the server's connection.
        let path = reachability().choose_introduced(&[outside], connection, &mut 0);
        assert_eq!(path.map(|p| p.locator), Some(outside));
        // Locator kinds without a transport are refused.
        let listener = Locator { port: 7411, ..connection };
        assert_eq!(choose(&[listener], outside), (None, 1));
        let path = reachability().with_transports(false, true).choose(&[outside, listener], outside, &mut 0);
        assert_eq!(path.map(|p| (p.locator, p.max_message)), Some((listener, MAX_MESSAGE)));
    }

    fn mac(last: u8) -> Locator {
        Locator::takt_ethernet([2, 0, 0, 0, 0, last], 7411)
    }

    /// Returns reachability with an interface without IP addresses, on which this participant
    /// listens.
    fn on_ethernet() -> Reachability {
        let without_ip = Interface { name: "eth1".into(), addresses: Vec::new(), mtu: 1400, loopback: false };
        let interfaces = [reachability().interfaces, vec![without_ip]].concat();
        let own = Locators { default_unicast: vec![mac(1)], ..Locators::default() };
        Reachability::new(interfaces, &[]).with_own(&own)
    }

    #[test]
    fn hardware_address_is_accepted_only_with_an_ethernet_interface() {
        let choose = |announced, source| {
            let mut refused = 0;
            let path = on_ethernet().choose(&[announced], source, &mut refused);
            (path.map(|p| (p.locator, p.max_message)), refused)
        };
        assert_eq!(choose(mac(2), mac(2)), (Some((mac(2), 1392)), 0));
        assert_eq!(choose(mac(1), mac(1)), (Some((mac(1), 1392)), 0), "ourselves");
        assert_eq!(choose(mac(1), mac(2)), (None, 1), "another participant with our GUID");
        let group = Locator::takt_ethernet([1, 0, 0x5e, 0x7f, 0, 1], 7400);
        for nowhere in [group, Locator { port: 0, ..mac(2) }, Locator::takt_ethernet([0; 6], 1)] {
            assert_eq!(choose(nowhere, mac(2)), (None, 1), "{nowhere}");
        }
        assert_eq!(self::choose(&[mac(2)], mac(2)), (None, 1), "without an interface for it");
    }

    #[test]
    fn hardware_address_is_accepted_from_a_host_on_an_attached_network() {
        let reachability = on_ethernet();
        let at = |ip: [u8; 4]| Locator::udp_v4(ip.into(), 7411);
        let (near, far) = (at([10, 0, 0, 2]), at([192, 0, 2, 2]));
        assert!(reachability.is_validated_by(&near, &mac(2)) && !reachability.is_validated_by(&far, &mac(2)));
        assert!(reachability.is_validated_by(&mac(2), &mac(2)) && !reachability.is_validated_by(&mac(3), &mac(2)));
        assert!(!reachability.is_validated_by(&near, &mac(1)), "ours is not its");
        assert!(reachability.is_validated_by(&at([10, 0, 0, 1]), &mac(1)) && reachability.is_on_this_host(&mac(1)));
        assert!(!reachability.is_validated_by(&mac(2), &near));
        let memory = Locator { kind: Locator::KIND_TAKT_SHM, ..mac(1) };
        assert!(!reachability.is_validated_by(&memory, &memory), "shared memory validates no address");
    }

    #[test]
    fn invalid_addresses_are_refused() {
        let source = Locator::udp_v4(Ipv4Addr::new(10, 0, 0, 2), 1);
        for announced in [
            Locator::udp_v4(Ipv4Addr::UNSPECIFIED, 7411),
            Locator::udp_v4(Ipv4Addr::BROADCAST, 7411),
            Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7411),
            Locator::udp_v4(Ipv4Addr::new(10, 0, 0, 2), 0),
            Locator { port: 70_000, ..source },
            Locator::INVALID,
        ] {
            assert_eq!(choose(&[announced], source), (None, 1), "{announced:?}");
        }
    }
}
