//! Network interfaces of this host as discovery uses them, and those whose addresses are not
//! sufficient.

use super::{is, texts};
use crate::finding::Finding;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use takt_bench::machine::interface_ipv4;
use takt_config::Settings;
use takt_transport::udp::Ipv6Alone;

/// Network interface with its addresses, as the kernel reports it.
pub(super) struct Interface {
    pub(super) name: String,
    is_up: bool,
    pub(super) is_loopback: bool,
    pub(super) has_multicast: bool,
    mtu: Option<u32>,
    pub(super) address: Option<Ipv4Addr>,
    /// Link-local and global addresses with port 0. The scope ID is the index of the interface.
    ipv6: Vec<SocketAddrV6>,
}

impl Interface {
    fn addresses(&self) -> Vec<IpAddr> {
        let ipv6 = self.ipv6.iter().map(|one| IpAddr::V6(*one.ip()));
        self.address.map(IpAddr::V4).into_iter().chain(ipv6).collect()
    }

    /// Reports whether the interface has an address of a protocol that is enabled.
    pub(super) fn is_usable(&self, settings: &Settings) -> bool {
        self.address.is_some() || (is_ipv6_on(settings) && !self.ipv6.is_empty())
    }

    /// Returns the source address of discovery multicast: IPv4 if there is one, otherwise IPv6 if
    /// it is enabled.
    pub(super) fn source(&self, settings: &Settings) -> Option<SocketAddr> {
        let ipv6 = || self.ipv6.first().filter(|_| is_ipv6_on(settings)).copied();
        self.address.map(|address| (address, 0).into()).or_else(|| ipv6().map(SocketAddr::V6))
    }
}

fn is_ipv6_on(settings: &Settings) -> bool {
    is(settings, "network.ipv6") == Some(true)
}

fn interfaces() -> Vec<Interface> {
    let ipv6 = fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let ipv6: Vec<(&str, SocketAddrV6)> = ipv6.lines().filter_map(ipv6_address).collect();
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut all: Vec<Interface> = entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let text = |file: &str| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
            let flags = u32::from_str_radix(text("flags").trim().trim_start_matches("0x"), 16).unwrap_or(0);
            Interface {
                is_up: flags & 0x1 != 0,
                is_loopback: flags & 0x8 != 0,
                has_multicast: flags & 0x1000 != 0,
                mtu: text("mtu").trim().parse().ok(), // tidy-allow(dropped-cause): an interface that has gone has none
                address: interface_ipv4(&name),
                ipv6: ipv6.iter().filter(|(of, _)| *of == name).map(|(_, address)| *address).collect(),
                name,
            }
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Returns the names of the interfaces in the network namespace of this thread, sorted. Unlike
/// sysfs, procfs shows the namespace of its reader.
pub fn interface_names() -> Vec<String> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    // Two lines of headings.
    let lines = text.lines().skip(2);
    let mut names: Vec<String> = lines.filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect();
    names.sort();
    names
}

/// Parses a line of `/proc/net/if_inet6`: address, index, prefix length, scope and flags in
/// hexadecimal, and the interface.
///
/// Returns `None` for a tentative address: duplicate address detection (RFC 4862, section 5.4) has
/// not finished.
fn ipv6_address(line: &str) -> Option<(&str, SocketAddrV6)> {
    const TENTATIVE: u32 = 0x40;
    let words: Vec<&str> = line.split_whitespace().collect();
    let [address, index, _, _, flags, name] = words[..] else { return None };
    let number = |digits| u32::from_str_radix(digits, 16).ok(); // tidy-allow(dropped-cause): no address
    let address = u128::from_str_radix(address, 16).ok()?; // tidy-allow(dropped-cause): no address
    let is_in_use = number(flags)? & TENTATIVE == 0;
    is_in_use.then_some((name, SocketAddrV6::new(Ipv6Addr::from(address), 0, 0, number(index)?)))
}

/// Returns the interfaces that the settings select. The default is all but loopback.
pub(super) fn chosen(settings: &Settings) -> Vec<Interface> {
    let names = texts(settings, "network.interfaces");
    let is_named = |interface: &Interface| {
        let address = interface.address.map(|address| address.to_string());
        let has_ipv6 = |name: &str| interface.ipv6.iter().any(|one| one.ip().to_string() == name);
        names.iter().any(|name| *name == interface.name || Some(name) == address.as_ref() || has_ipv6(name))
    };
    let is_chosen = |interface: &Interface| match names {
        [] => interface.is_up && !interface.is_loopback,
        _ => is_named(interface),
    };
    interfaces().into_iter().filter(is_chosen).collect()
}

/// Finds interfaces on which discovery is incomplete or impossible, since they have only IPv6
/// addresses ([`takt_transport::udp::ipv6_alone`]).
pub fn ipv6_alone(settings: &Settings) -> Vec<Finding> {
    let chosen: Vec<Interface> = chosen(settings).into_iter().filter(|one| !one.is_loopback).collect();
    let is_on = is_ipv6_on(settings);
    let kinds = takt_transport::udp::ipv6_alone(&chosen.iter().map(Interface::addresses).collect::<Vec<_>>());
    let finding = |(interface, kind): (&Interface, Option<Ipv6Alone>)| {
        let name = &interface.name;
        match (is_on, kind?) {
            (false, Ipv6Alone::Routable) => Some(Finding::of_network(
                "ipv6-off",
                format!("{name} has only IPv6 addresses, and IPv6 is off"),
                "no participant is discovered through it",
                "set TAKT_IPV6=1 or network.ipv6 = true, or add an IPv4 address",
            )),
            (false, Ipv6Alone::LinkLocal) => Some(Finding::of_network(
                "ipv6-off-link-local",
                format!("{name} has only a link-local IPv6 address, and IPv6 is off"),
                "participants of this host discover each other over loopback; those of other hosts are not discovered",
                format!(
                    "ip address add ADDRESS/LENGTH dev {name}, or DHCP; TAKT_IPV6=1 on all hosts reaches those of the same link"
                ),
            )),
            (true, Ipv6Alone::LinkLocal) => Some(
                Finding::of_network(
                    "ipv6-link-local",
                    format!("{name} has only a link-local IPv6 address"),
                    "multicast discovers participants of the same link that use IPv6, but none behind a router",
                    format!("ip address add ADDRESS/LENGTH dev {name}, or DHCP, to reach other links"),
                )
                .into_hint(),
            ),
            (true, Ipv6Alone::Routable) => None,
        }
    };
    let finding = |(interface, kind): (&Interface, Option<Ipv6Alone>)| {
        Some(finding((interface, kind))?.with("interface", interface.name.as_str()))
    };
    chosen.iter().zip(kinds).filter_map(finding).collect()
}

/// Finds interfaces whose MTU is not that of Ethernet.
pub fn mtu(settings: &Settings) -> Vec<Finding> {
    let finding = |interface: Interface| {
        let mtu = interface.mtu.filter(|mtu| *mtu != 1500 && !interface.is_loopback)?;
        let name = &interface.name;
        Some(
            Finding::of_network(
                "mtu",
                format!("{name} has an MTU of {mtu}"),
                "hosts with a smaller MTU do not receive datagrams that exceed it",
                format!("ip link set {name} mtu 1500, or set the same MTU on all hosts and switches"),
            )
            .with("interface", name.as_str())
            .with("mtu_bytes", mtu)
            .into_hint(),
        )
    };
    chosen(settings).into_iter().filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_inet6_line_gives_address_scope_and_interface() {
        let line = "fe800000000000000042acfffe110002 0c 40 20 80     eth0";
        let expected: SocketAddrV6 = "[fe80::42:acff:fe11:2%12]:0".parse().expect("a valid line");
        assert_eq!(ipv6_address(line), Some(("eth0", expected)));
        assert_eq!(ipv6_address(""), None);
        assert_eq!(ipv6_address("fe80 zz 40 20 80 eth0"), None);
        assert_eq!(ipv6_address("fe800000000000000042acfffe110002 0c 40 20 c0 eth0"), None, "tentative");
    }
}
