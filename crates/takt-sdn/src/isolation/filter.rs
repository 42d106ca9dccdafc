//! What switches let pass and drop: filters between networks, and between participants.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use takt_openflow::oxm::{Masked, Oxm};

use super::{Decision, Isolation, Labels, Side};
use crate::frame::IpPacket;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const UDP: u8 = 17;

/// Addresses with a common prefix.
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
    /// The network of an address. `None` if the prefix is longer than the address.
    pub fn new(address: IpAddr, prefix_len: u8) -> Option<Self> {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        if prefix_len > longest {
            return None;
        }
        let network = Self { address, prefix_len };
        let kept = bits(address) & network.mask();
        let address = match address {
            // The upper 32 bits.
            IpAddr::V4(_) => IpAddr::V4(((kept >> 96) as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(kept.into()),
        };
        Some(Self { address, prefix_len })
    }

    /// One address.
    pub fn host(address: IpAddr) -> Self {
        Self { address, prefix_len: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// All groups of this version of IP.
    fn groups(is_ipv4: bool) -> Self {
        let (address, prefix_len) =
            if is_ipv4 { (IpAddr::from([224, 0, 0, 0]), 4) } else { (IpAddr::from([0xff00, 0, 0, 0, 0, 0, 0, 0]), 8) };
        Self { address, prefix_len }
    }

    /// All addresses of this version of IP.
    fn all(is_ipv4: bool) -> Self {
        let address = if is_ipv4 { IpAddr::from([0; 4]) } else { IpAddr::from([0_u16; 8]) };
        Self { address, prefix_len: 0 }
    }

    fn mask(&self) -> u128 {
        u128::MAX.checked_shl(128 - u32::from(self.prefix_len)).unwrap_or(0)
    }

    /// Whether an address is one of it.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && bits(address) & self.mask() == bits(self.address)
    }

    /// The field of a match; none for all addresses. One address has no mask, since switches give it back without.
    fn field(&self, is_source: bool) -> Option<Oxm> {
        if self.prefix_len == 0 {
            return None;
        }
        Some(match self.address {
            IpAddr::V4(address) => {
                // The upper 32 bits.
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

/// Frames of IP in one direction, and what becomes of them. Of several that match, the one with the highest rank counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Filter {
    /// Among the filters of a policy.
    pub rank: u16,
    /// Where they come from.
    pub from: Network,
    /// Where they go.
    pub to: Network,
    /// The UDP port where they go; any frames without one.
    pub port: Option<u16>,
    /// Whether they pass.
    pub is_allowed: bool,
}

impl Filter {
    /// Whether a packet is meant.
    pub fn matches(&self, packet: &IpPacket<'_>) -> bool {
        let is_to = |port| packet.udp().is_some_and(|datagram| datagram.destination_port() == port);
        self.is_between(packet.source(), packet.destination()) && self.port.is_none_or(is_to)
    }

    /// Whether packets between two addresses are meant, in this direction.
    pub fn is_between(&self, from: IpAddr, to: IpAddr) -> bool {
        self.from.contains(from) && self.to.contains(to)
    }

    /// The fields that a switch matches.
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

/// Whether a frame passes by these filters, of which the first ranks lowest. What none is about passes.
pub fn passes(filters: &[Filter], packet: &IpPacket<'_>) -> bool {
    filters.iter().rev().find(|filter| filter.matches(packet)).is_none_or(|filter| filter.is_allowed)
}

/// Whether a UDP datagram to an address and port passes by these filters.
pub fn passes_to(filters: &[Filter], from: IpAddr, to: SocketAddr) -> bool {
    let is_meant =
        |filter: &&Filter| filter.is_between(from, to.ip()) && filter.port.is_none_or(|port| port == to.port());
    filters.iter().rev().find(is_meant).is_none_or(|filter| filter.is_allowed)
}

/// The rank of what holds without a rule.
const DEFAULT: u16 = 0;
/// The rank of the last rule.
const RULES: u16 = 1;
/// The rank of participants, above [`super::RULES_MAX`] rules.
pub(crate) const PARTICIPANTS: u16 = 2000;
/// The rank of groups that a label may not reach, above everything else.
const GROUPS: u16 = 2001;

impl Isolation {
    /// The filters that follow from the file alone: those between the networks of labels, and the default.
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
        for (place, label) in self.labels.iter().enumerate() {
            // A switch cannot say which members of a group get a frame.
            if !self.is_unrestricted(&Labels::from([place])) {
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
            Side::Label(place) => self.labels.get(place).map(|label| label.networks.clone()).unwrap_or_default(),
        }
    }
}
