//! Selection of the interfaces and addresses that a UDP transport uses.

use std::ffi::CString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;

use super::address::Family;
use super::config::{InterfaceSelection, UdpConfig};
use super::syscall::{self, InterfaceAddress};
use crate::{Interface, TransportError, Warning};

/// Returns the selected interfaces, each with its selected addresses.
pub(crate) fn select(config: &UdpConfig) -> Result<Vec<Interface>, TransportError> {
    let present = present(config.ipv4, config.ipv6)
        .map_err(|e| TransportError::new("list network interfaces", "of this machine", e))?;
    let chosen = match &config.interfaces {
        InterfaceSelection::All => not_loopback(present),
        InterfaceSelection::Named(names) => named(present, names)?,
    };
    if chosen.is_empty() {
        let why = match (config.ipv4, config.ipv6) {
            (true, false) => "no interface is up with an IPv4 address, and IPv6 is off (TAKT_IPV6=1 enables it)",
            _ => "no interface is up with an address of the selected protocols",
        };
        let why = io::Error::new(io::ErrorKind::AddrNotAvailable, why);
        return Err(TransportError::new("find", "a network interface", why));
    }
    Ok(chosen)
}

/// Addresses of an interface without IPv4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ipv6Alone {
    /// At least one address that routers forward.
    Routable,
    /// Link-local addresses alone.
    LinkLocal,
}

/// Classifies the addresses of each interface except loopback: `Some` for interfaces without IPv4,
/// in the same order. Link-local addresses count only if no interface has another address, because
/// ports of bridges and containers have no more.
#[must_use]
pub fn ipv6_alone(addresses: &[Vec<IpAddr>]) -> Vec<Option<Ipv6Alone>> {
    let is_link_local = |address: &IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let has_other = addresses.iter().flatten().any(|address| !is_link_local(address));
    let of = |own: &Vec<IpAddr>| match own.as_slice() {
        [] => None,
        own if own.iter().any(IpAddr::is_ipv4) => None,
        own if !own.iter().all(is_link_local) => Some(Ipv6Alone::Routable),
        _ => (!has_other).then_some(Ipv6Alone::LinkLocal),
    };
    addresses.iter().map(of).collect()
}

/// Returns a warning if all interfaces except loopback have only IPv6 addresses while IPv6 is
/// disabled.
pub(super) fn ipv6_off(config: &UdpConfig, chosen: &[Interface]) -> Option<Warning> {
    let is_open = config.ipv4 && !config.ipv6 && config.interfaces == InterfaceSelection::All;
    if !is_open || chosen.iter().any(|interface| !interface.loopback) {
        return None;
    }
    // A kernel without IPv6 has no such interfaces.
    let present = present(false, true).ok()?; // tidy-allow(dropped-cause): no IPv6
    let others: Vec<Interface> = present.into_iter().filter(|interface| !interface.loopback).collect();
    let addresses = |interface: &Interface| interface.addresses.iter().map(|(address, _)| *address).collect();
    let kinds = ipv6_alone(&others.iter().map(addresses).collect::<Vec<_>>());
    let names = |kind| {
        let of_kind = others.iter().zip(&kinds).filter(|(_, own)| **own == Some(kind));
        of_kind.map(|(interface, _)| interface.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let (routable, link_local) = (names(Ipv6Alone::Routable), names(Ipv6Alone::LinkLocal));
    match (routable.as_str(), link_local.as_str()) {
        ("", "") => None,
        ("", names) => Some(Warning {
            what: format!(
                "{names} has link-local IPv6 addresses only, and IPv6 is off: other hosts are not discovered"
            ),
            remedy: "give it an IPv4 address (ip address add, DHCP), or enable IPv6 on all hosts of the link: \
                     DomainParticipantBuilder::ipv6(true), or TAKT_IPV6=1"
                .into(),
        }),
        (names, _) => Some(Warning {
            what: format!("{names} has IPv6 addresses only, and IPv6 is off: participants there are not discovered"),
            remedy: "enable IPv6: DomainParticipantBuilder::ipv6(true), or TAKT_IPV6=1".into(),
        }),
    }
}

/// Returns the selected interfaces that exist now; there may be none.
pub(super) fn select_present(config: &UdpConfig) -> io::Result<Vec<Interface>> {
    let present = present(config.ipv4, config.ipv6)?;
    Ok(match &config.interfaces {
        InterfaceSelection::All => not_loopback(present),
        InterfaceSelection::Named(names) => {
            let mut chosen = Vec::new();
            names.iter().filter_map(|name| find(&present, name)).for_each(|found| add_selected(&mut chosen, found));
            chosen
        }
    })
}

/// Returns all interfaces that are up, with their addresses of these families.
fn present(ipv4: bool, ipv6: bool) -> io::Result<Vec<Interface>> {
    let any = syscall::udp_socket(if ipv4 { Family::V4 } else { Family::V6 })?;
    let mut interfaces: Vec<Interface> = Vec::new();
    for entry in syscall::interface_addresses()? {
        let wanted = match entry.address {
            IpAddr::V4(_) => ipv4,
            IpAddr::V6(_) => ipv6,
        };
        if !wanted || entry.flags & libc::IFF_UP as u32 == 0 {
            continue;
        }
        let address = (entry.address, entry.prefix_len);
        match interfaces.iter_mut().find(|i| i.name == entry.name) {
            Some(interface) => interface.addresses.push(address),
            None => interfaces.push(describe(&any, entry)?),
        }
    }
    for interface in &mut interfaces {
        drop_link_local(&mut interface.addresses);
    }
    Ok(interfaces)
}

fn describe(any: &impl AsFd, entry: InterfaceAddress) -> io::Result<Interface> {
    let name = CString::new(entry.name.as_str())?;
    let loopback = entry.flags & libc::IFF_LOOPBACK as u32 != 0;
    Ok(Interface {
        index: syscall::interface_index(&name)?,
        mtu: syscall::interface_mtu(any.as_fd(), &name)?,
        name: entry.name,
        addresses: vec![(entry.address, entry.prefix_len)],
        loopback,
        // Loopback lacks the flag, and yet Linux delivers multicast through it to sockets that
        // joined by its index.
        multicast: loopback || entry.flags & libc::IFF_MULTICAST as u32 != 0,
    })
}

/// Removes link-local IPv6 addresses if there are others. They are meaningless without their
/// interface, which a locator cannot state.
fn drop_link_local(addresses: &mut Vec<(IpAddr, u8)>) {
    let link_local = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    if addresses.iter().any(|(ip, _)| ip.is_ipv6() && !link_local(ip)) {
        addresses.retain(|(ip, _)| !link_local(ip));
    }
}

fn not_loopback(mut present: Vec<Interface>) -> Vec<Interface> {
    if present.iter().any(|i| !i.loopback) {
        present.retain(|i| !i.loopback);
    }
    present
}

fn named(present: Vec<Interface>, names: &[String]) -> Result<Vec<Interface>, TransportError> {
    let mut chosen: Vec<Interface> = Vec::new();
    for name in names {
        let found = find(&present, name).ok_or_else(|| {
            let there: Vec<&str> = present.iter().map(|i| i.name.as_str()).collect();
            let why = format!("not up with an address; available: {}", there.join(", "));
            let why = io::Error::new(io::ErrorKind::NotFound, why);
            TransportError::new("use network interface", name, why)
        })?;
        add_selected(&mut chosen, found);
    }
    Ok(chosen)
}

fn add_selected(chosen: &mut Vec<Interface>, mut found: Interface) {
    match chosen.iter_mut().find(|i| i.index == found.index) {
        Some(known) => {
            found.addresses.retain(|a| !known.addresses.contains(a));
            known.addresses.append(&mut found.addresses);
        }
        None => chosen.push(found),
    }
}

fn find(present: &[Interface], name: &str) -> Option<Interface> {
    if let Some(interface) = present.iter().find(|i| i.name == name) {
        return Some(interface.clone());
    }
    let ip: IpAddr = name.parse().ok()?;
    present.iter().find_map(|interface| {
        let address = *interface.addresses.iter().find(|(a, _)| *a == ip)?;
        Some(Interface { addresses: vec![address], ..interface.clone() })
    })
}

/// Addresses to bind unicast sockets to. If the configuration names interfaces, and these have
/// exactly one address of a family, sockets are bound to it, so that no datagram arrives by another
/// interface. Otherwise, they are bound to the unspecified address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BindAddresses {
    pub(super) v4: Ipv4Addr,
    pub(super) v6: Ipv6Addr,
}

impl BindAddresses {
    pub(super) fn new(selection: &InterfaceSelection, chosen: &[Interface]) -> Self {
        let mut bind = Self { v4: Ipv4Addr::UNSPECIFIED, v6: Ipv6Addr::UNSPECIFIED };
        if *selection == InterfaceSelection::All {
            return bind;
        }
        if let [one] = addresses_v4(chosen).collect::<Vec<_>>()[..] {
            bind.v4 = one;
        }
        if let [one] = addresses_v6(chosen).collect::<Vec<_>>()[..]
            && !one.is_unicast_link_local()
        {
            bind.v6 = one;
        }
        bind
    }
}

/// Returns all IPv4 addresses of the interfaces.
pub(super) fn addresses_v4(interfaces: &[Interface]) -> impl Iterator<Item = Ipv4Addr> {
    interfaces.iter().flat_map(|i| &i.addresses).filter_map(|a| match a.0 {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    })
}

/// Returns all IPv6 addresses of the interfaces.
pub(super) fn addresses_v6(interfaces: &[Interface]) -> impl Iterator<Item = Ipv6Addr> {
    interfaces.iter().flat_map(|i| &i.addresses).filter_map(|a| match a.0 {
        IpAddr::V6(ip) => Some(ip),
        IpAddr::V4(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(names: &[&str]) -> UdpConfig {
        UdpConfig {
            interfaces: InterfaceSelection::Named(names.iter().map(|n| n.to_string()).collect()),
            ..UdpConfig::new(0)
        }
    }

    #[test]
    fn loopback_is_selected_by_name_and_by_address() {
        for name in ["lo", "127.0.0.1"] {
            let chosen = select(&config(&[name])).expect("lo exists");
            let [lo] = &chosen[..] else { panic!("{chosen:?}") };
            assert_eq!(lo.name, "lo");
            assert!(lo.loopback && lo.multicast && lo.index > 0 && lo.mtu >= 1500);
            assert!(lo.addresses.contains(&(Ipv4Addr::LOCALHOST.into(), 8)));
        }
    }

    #[test]
    fn address_selects_itself_alone_and_once() {
        let chosen = select(&config(&["127.0.0.1", "127.0.0.1"])).expect("lo exists");
        assert_eq!(chosen.len(), 1);
        assert_eq!(chosen[0].addresses, [(Ipv4Addr::LOCALHOST.into(), 8)]);
        let bind = BindAddresses::new(&config(&["127.0.0.1"]).interfaces, &chosen);
        assert_eq!(bind.v4, Ipv4Addr::LOCALHOST);
        assert_eq!(BindAddresses::new(&InterfaceSelection::All, &chosen).v4, Ipv4Addr::UNSPECIFIED);
    }

    #[test]
    fn unknown_interface_is_an_error_that_lists_the_existing_ones() {
        let error = select(&config(&["nosuch0"])).expect_err("no such interface");
        let text = error.to_string();
        assert!(text.contains("nosuch0") && text.contains("lo"), "{text}");
    }

    #[test]
    fn link_local_addresses_count_as_ipv6_alone_only_where_no_interface_has_another_address() {
        let address = |text: &str| -> IpAddr { text.parse().expect("a valid address") };
        let [ipv4, link_local, routable] = ["192.0.2.1", "fe80::1", "fd00::1"].map(address);
        let (none, both) = (vec![], vec![link_local, routable]);
        for (addresses, expected) in [
            (
                vec![none.clone(), vec![link_local], vec![link_local]],
                [None, Some(Ipv6Alone::LinkLocal), Some(Ipv6Alone::LinkLocal)],
            ),
            (vec![vec![ipv4], vec![link_local], vec![routable]], [None, None, Some(Ipv6Alone::Routable)]),
            (vec![vec![link_local], both, none], [None, Some(Ipv6Alone::Routable), None]),
            (vec![vec![ipv4, routable], vec![link_local], vec![ipv4]], [None, None, None]),
        ] {
            assert_eq!(ipv6_alone(&addresses), expected, "{addresses:?}");
        }
    }

    #[test]
    fn link_local_addresses_are_the_last_resort() {
        let link_local: (IpAddr, u8) = ("fe80::1".parse().expect("a valid address"), 64);
        let global: (IpAddr, u8) = ("fd00::1".parse().expect("a valid address"), 64);
        let mut only = vec![link_local];
        drop_link_local(&mut only);
        assert_eq!(only, [link_local]);
        let mut both = vec![link_local, global];
        drop_link_local(&mut both);
        assert_eq!(both, [global]);
    }
}
