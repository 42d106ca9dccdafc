//! Forwarding of everything that is not DDS: as plain Ethernet does, in the lowest class.
//!
//! Floods follow a [spanning tree](spanning_tree) over the links. Unicast follows shortest paths, by rules that expire when they are not used.
//! A rule in the first table of the switch at the edge lets a host send; frames of others come to the controller, at a rate that
//! meters limit. [`rules`] builds them.

pub mod membership;
pub mod rules;
mod tree;

use std::collections::BTreeSet;

pub use self::tree::{Link, next_hops, spanning_tree};

/// Packets to the controller that a switch may send, per second, by cause.
#[derive(Clone, Debug)]
pub struct Rates {
    /// LLDP from ports that lead to switches.
    pub lldp_of_links: u32,
    /// LLDP from all other ports together.
    pub lldp_of_others: u32,
    /// ARP, neighbour discovery, IGMP and MLD.
    pub learning: u32,
    /// Frames without a rule.
    pub miss: u32,
    /// DDS discovery.
    pub discovery: u32,
}

/// How to forward.
#[derive(Clone, Debug)]
pub struct Config {
    /// Seconds without a packet after which a rule for a host expires.
    pub idle_seconds: u16,
    /// Rules for hosts in one switch at most. Beyond it, frames go by the controller, at the rate of [`Rates::miss`].
    pub rules: usize,
    /// Whether fragments of UDP are dropped at the edge. No rule on UDP ports matches them, so that discovery could pass by.
    pub drop_udp_fragments: bool,
    /// Whether frames of IP without admission lose their DSCP, so that they are in the lowest class.
    pub clear_dscp: bool,
    /// The domains whose port of multicast discovery (RTPS 2.5 §9.6.2: 7400 + 250 * domain) goes to the controller.
    pub domains: BTreeSet<u16>,
    /// Meters.
    pub rates: Rates,
    /// Multicast by membership.
    pub membership: membership::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            idle_seconds: 10,
            rules: 2048,
            drop_udp_fragments: true,
            clear_dscp: false,
            domains: (0..10).collect(),
            membership: membership::Config::default(),
            rates: Rates { lldp_of_links: 1000, lldp_of_others: 200, learning: 500, miss: 1000, discovery: 2000 },
        }
    }
}

impl Config {
    /// The UDP ports of multicast discovery of the domains.
    pub fn discovery_ports(&self) -> BTreeSet<u16> {
        self.domains.iter().filter_map(|domain| domain.checked_mul(250)?.checked_add(7400)).collect()
    }
}
