//! Filters of the isolation policy in switches, between networks and between participants.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use takt_openflow::oxm::{Masked, Oxm};

use super::{Decision, Isolation, Labels, Side};
use crate::frame::IpPacket;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const UDP: u8 = 17;

/// An IP network: addresses with a common prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    address: IpAddr,
    prefix_len: u8,
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    }
}

impl Network {
    /// Returns the network of an address. `None` if the prefix is longer than the address.
    pub fn new(address: IpAddr, prefix_len: u8) -> Option<Self> {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        if prefix_len > longest {
            return None;
        }
        let network = Self { address, prefix_len };
        let masked = bits(address) & network.mask();
        let address = match address {
            // The upper 32 bits hold an IPv4 address.
            IpAddr::V4(_) => IpAddr::V4(((masked >> 96) as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(masked.into()),
        };
        Some(Self { address, prefix_len })
    }

    /// Returns the network of a single address.
    pub fn host(address: IpAddr) -> Self {
        Self { address, prefix_len: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Returns the network of all multicast groups of an IP version.
    fn groups(is_ipv4: bool) -> Self {
        let (address, prefix_len) =
            if is_ipv4 { (IpAddr::from([224, 0, 0, 0]), 4) } else { (IpAddr::from([0xff00, 0, 0, 0, 0, 0, 0, 0]), 8) };
        Self { address, prefix_len }
    }

    /// Returns the network of all addresses of an IP version.
    fn all(is_ipv4: bool) -> Self {
        let address = if is_ipv4 { IpAddr::from([0; 4]) } else { IpAddr::from([0_u16; 8]) };
        Self { address, prefix_len: 0 }
    }

    fn mask(&self) -> u128 {
        u128::MAX.checked_shl(128 - u32::from(self.prefix_len)).unwrap_or(0)
    }

    /// Reports whether the network contains an address.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && bits(address) & self.mask() == bits(self.address)
    }

    /// Returns the match field; `None` for all addresses. A single address has no mask, since
    /// switches report it without one.
    fn field(&self, is_source: bool) -> Option<Oxm> {
        if self.prefix_len == 0 {
            return None;
        }
        Some(match self.address {
            IpAddr::V4(address) => {
                // The upper 32 bits hold an IPv4 mask.
                let mask = Ipv4Addr::from((self.mask() >> 96) as u32);
                let field = if self.prefix_len == 32 { address.into() } else { Masked::new(address, mask) };
                if is_source { Oxm::Ipv4Src(field) } else { Oxm::Ipv4Dst(field) }
            }
            IpAddr::V6(address) => {
                let mask = Ipv6Addr::from(self.mask());
                let field = if self.prefix_len == 128 { address.into() } else { Masked::new(address, mask) };
                if is_source { Oxm::Ipv6Src(field) } else { Oxm::Ipv6Dst(field) }
            }
        })
    }
}

/// A filter for IP frames in one direction. Among several that match, the one with the highest rank
/// decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Filter {
    /// Rank among the filters of a policy.
    pub rank: u16,
    /// Network of the sources.
    pub from: Network,
    /// Network of the destinations.
    pub to: Network,
    /// Destination UDP port; `None` matches all frames.
    pub port: Option<u16>,
    /// Whether matching frames pass.
    pub is_allowed: bool,
}

impl Filter {
    /// Reports whether the filter matches a packet.
    pub fn matches(&self, packet: &IpPacket<'_>) -> bool {
        let is_to = |port| packet.udp().is_some_and(|datagram| datagram.destination_port() == port);
        self.is_between(packet.source(), packet.destination()) && self.port.is_none_or(is_to)
    }

    /// Reports whether the filter applies to packets between two addresses, in this direction.
    pub fn is_between(&self, from: IpAddr, to: IpAddr) -> bool {
        self.from.contains(from) && self.to.contains(to)
    }

    /// Returns the match fields of a switch.
    pub fn fields(&self) -> Vec<Oxm> {
        let ether_type = if self.from.address.is_ipv4() { IPV4 } else { IPV6 };
        let mut fields = vec![Oxm::EthType(ether_type)];
        fields.extend(self.from.field(true));
        fields.extend(self.to.field(false));
        if let Some(port) = self.port {
            fields.extend([Oxm::IpProto(UDP), Oxm::UdpDst(port)]);
        }
        fields
    }
}

/// Reports whether these filters, in ascending rank, let a packet pass. A packet without a matching
/// filter passes.
pub fn passes(filters: &[Filter], packet: &IpPacket<'_>) -> bool {
    filters.iter().rev().find(|filter| filter.matches(packet)).is_none_or(|filter| filter.is_allowed)
}

/// Reports whether these filters let a UDP datagram to an address and port pass.
pub fn passes_to(filters: &[Filter], from: IpAddr, to: SocketAddr) -> bool {
    let matches =
        |filter: &&Filter| filter.is_between(from, to.ip()) && filter.port.is_none_or(|port| port == to.port());
    filters.iter().rev().find(matches).is_none_or(|filter| filter.is_allowed)
}

/// Rank of the default.
const DEFAULT: u16 = 0;
/// Rank of the last rule.
const RULES: u16 = 1;
/// Rank of filters between participants, above [`super::RULES_MAX`] rules.
pub(crate) const PARTICIPANTS: u16 = 2000;
/// Rank of denied groups, above all others.
const GROUPS: u16 = 2001;

impl Isolation {
    /// Returns the filters that depend only on the file: those between the networks of labels, and
    /// the default.
    pub fn filters(&self) -> Vec<Filter> {
        let mut filters = Vec::new();
        if self.is_open() {
            return filters;
        }
        if self.default == Decision::Deny {
            for is_ipv4 in [true, false] {
                let all = Network::all(is_ipv4);
                filters.push(Filter { rank: DEFAULT, from: all, to: all, port: None, is_allowed: false });
            }
        }
        for (rule, rank) in self.rules.iter().rev().zip(RULES..) {
            let is_allowed = rule.decision == Decision::Allow;
            let [ones, others] = rule.between.map(|side| self.networks(side));
            for (one, other) in ones.iter().flat_map(|one| others.iter().map(move |other| (*one, *other))) {
                if one.address.is_ipv4() == other.address.is_ipv4() {
                    let of = |from, to| Filter { rank, from, to, port: None, is_allowed };
                    filters.extend([of(one, other), of(other, one)]);
                }
            }
        }
        for (index, label) in self.labels.iter().enumerate() {
            // A switch cannot select the members of a group that get a frame.
            if !self.is_unrestricted(&Labels::from([index])) {
                let to = |from: &Network| Network::groups(from.address.is_ipv4());
                let of = |from| Filter { rank: GROUPS, from, to: to(&from), port: None, is_allowed: false };
                filters.extend(label.networks.iter().copied().map(of));
            }
        }
        filters.sort_unstable();
        filters.dedup();
        filters
    }

    fn networks(&self, side: Side) -> Vec<Network> {
        match side {
            Side::Any => [true, false].map(Network::all).to_vec(),
            Side::Label(index) => self.labels.get(index).map(|label| label.networks.clone()).unwrap_or_default(),
        }
    }
}
