//! Plain Ethernet forwarding, in the lowest class, of all traffic except DDS.
//!
//! Floods use a [spanning tree](spanning_tree) over the links. Unicast uses shortest paths, by
//! rules that expire when they are not used. A rule in the first table of the edge switch lets a
//! host send; frames of other hosts are sent to the controller, at a rate that meters limit.
//! [`rules`] builds these rules.

pub mod membership;
pub mod rules;
mod tree;

use std::collections::BTreeSet;

pub use self::tree::{Link, next_hops, spanning_tree};

/// Rates in packets per second at which a switch may send packets to the controller; the burst is
/// of the same size.
#[derive(Clone, Debug)]
pub struct Rates {
    /// LLDP from all ports that lead to switches.
    pub lldp_of_links: u32,
    /// Packets from each other port: DDS discovery, ARP, neighbor discovery, IGMP, MLD, LLDP, and
    /// frames of unknown sources.
    pub port: u32,
    /// Frames to unknown destinations, from all ports.
    pub miss: u32,
}

/// Configuration of forwarding.
#[derive(Clone, Debug)]
pub struct Config {
    /// Seconds without a packet after which a rule for a host expires.
    pub idle_seconds: u16,
    /// Maximum number of host rules in one switch. Beyond it, frames pass the controller at the
    /// rate of [`Rates::miss`].
    pub rules: usize,
    /// Whether UDP fragments are dropped at the edge. Rules on UDP ports do not match them, so
    /// discovery could bypass the controller in fragments.
    pub drop_udp_fragments: bool,
    /// Whether the DSCP of IP packets without admission is cleared, so that they are in the lowest
    /// class.
    pub clear_dscp: bool,
    /// Domains whose multicast discovery port (RTPS 2.5 §9.6.2: 7400 + 250 * domain) is redirected
    /// to the controller.
    pub domains: BTreeSet<u16>,
    /// Rates of the meters.
    pub rates: Rates,
    /// Configuration of multicast membership.
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
            rates: Rates { lldp_of_links: 1000, port: 1000, miss: 1000 },
        }
    }
}

/// The largest domain id: the ports of larger ones exceed 16 bits.
pub const DOMAIN_MAX: u16 = 232;

/// Parses domain ids: numbers and ranges separated by commas, as in `0-9,42`.
///
/// # Errors
/// The invalid part, and the expected form.
pub fn parse_domains(text: &str) -> Result<BTreeSet<u16>, String> {
    let wrong = |part: &str| {
        format!("{part:?} is neither a domain nor a range; expected numbers from 0 to {DOMAIN_MAX}, as in 0-9,42")
    };
    let number = |part: &str, whole: &str| {
        let domain = part.trim().parse::<u16>().map_err(|_| wrong(whole))?;
        if domain > DOMAIN_MAX { Err(wrong(whole)) } else { Ok(domain) }
    };
    let mut domains = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first, part)?, number(last, part)?);
        if first > last {
            return Err(wrong(part));
        }
        domains.extend(first..=last);
    }
    Ok(domains)
}

impl Config {
    /// Returns the UDP ports of multicast discovery of the domains.
    pub fn discovery_ports(&self) -> BTreeSet<u16> {
        self.domains.iter().filter_map(|domain| domain.checked_mul(250)?.checked_add(7400)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_read_from_numbers_and_ranges() {
        let read = |text| parse_domains(text).map(|domains| domains.into_iter().collect::<Vec<_>>());
        assert_eq!(read("0-2, 42"), Ok(vec![0, 1, 2, 42]));
        assert_eq!(read("0-232").map(|domains| domains.len()), Ok(233));
        for text in ["", "x", "233", "0-233", "9-0", "1,,2", "-1"] {
            let error = read(text).expect_err(text);
            assert!(error.contains("expected numbers from 0 to 232"), "{error}");
        }
    }

    #[test]
    fn every_domain_has_a_port_of_multicast_discovery() {
        let config = Config { domains: (0..=DOMAIN_MAX).collect(), ..Config::default() };
        let ports = config.discovery_ports();
        assert_eq!((ports.len(), ports.first(), ports.last()), (233, Some(&7400), Some(&65_400)));
    }
}
