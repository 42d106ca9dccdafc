//! Unicast peers: hosts and participants that are looked for by name.
//!
//! | form | meaning |
//! |---|---|
//! | `HOST` | the first ten participants there, by their well-known ports (RTPS 2.5 §9.6.2.3) |
//! | `HOST#4`, `HOST#0-29` | those with these participant indices |
//! | `HOST:7410` | whoever has this port |
//! | `tcp/HOST:7410` | whoever listens at this port of TCP |
//!
//! `HOST` is an IPv4 address, an IPv6 address (in brackets before a port), or a name that the machine's resolver knows. A
//! name is resolved once, when it is given; all its addresses of the families in use are taken.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;

use takt_wire::Locator;
use takt_wire::ports::PortMapping;

use crate::{Error, Result};

/// Participants that are looked for on a peer's host: those with the first well-known ports. Others find us by our
/// announcements to them, or by multicast.
const PEER_PARTICIPANTS: RangeInclusive<u16> = 0..=9;

/// The last participant index that has well-known ports.
const LAST_INDEX: u16 = 119;

/// How a peer of TCP begins.
const TCP: &str = "tcp/";

/// A peer as it is written.
#[derive(Debug, PartialEq, Eq)]
struct Peer<'a> {
    host: &'a str,
    at: At,
}

#[derive(Debug, PartialEq, Eq)]
enum At {
    TcpPort(u16),
    Port(u16),
    Indices(RangeInclusive<u16>),
}

/// Where the discovery of a peer may listen.
///
/// # Errors
/// [`Error::BadParameter`] for what has none of the forms, and for a name that cannot be resolved.
pub(super) fn locate(peer: &str, domain_id: u32, ipv6: bool) -> Result<Vec<Locator>> {
    let (parsed, addresses) = find(peer, ipv6)?;
    if let At::TcpPort(port) = parsed.at {
        return Ok(addresses.iter().map(|address| tcp(*address, port)).collect());
    }
    let mapping = PortMapping::default();
    let ports: Vec<u16> = match parsed.at {
        At::TcpPort(port) | At::Port(port) => vec![port],
        At::Indices(indices) => {
            indices.filter_map(|index| mapping.discovery_unicast(domain_id, index.into())).collect()
        }
    };
    let at = |address: &IpAddr| {
        let address = *address;
        ports.iter().map(move |port| Locator::from(SocketAddr::new(address, *port)))
    };
    Ok(addresses.iter().flat_map(at).collect())
}

/// Whether a peer is to be reached by TCP.
pub(super) fn is_tcp(peer: &str) -> bool {
    peer.trim().starts_with(TCP)
}

/// Where to connect to for a peer of TCP that is given by name, and the name.
pub(super) fn tcp_names(peer: &str, ipv6: bool) -> Result<Vec<(SocketAddr, String)>> {
    let (parsed, addresses) = find(peer, ipv6)?;
    let At::TcpPort(port) = parsed.at else { return Ok(Vec::new()) };
    if parsed.host.parse::<IpAddr>().is_ok() {
        return Ok(Vec::new());
    }
    Ok(addresses.into_iter().map(|address| (SocketAddr::new(address, port), parsed.host.to_owned())).collect())
}

fn tcp(address: IpAddr, port: u16) -> Locator {
    let kind = if address.is_ipv4() { Locator::KIND_TCP_V4 } else { Locator::KIND_TCP_V6 };
    Locator { kind, ..Locator::from(SocketAddr::new(address, port)) }
}

fn find(peer: &str, ipv6: bool) -> Result<(Peer<'_>, Vec<IpAddr>)> {
    let wrong = |why: &str| Error::BadParameter { what: format!("peer {peer:?}: {why}") };
    let forms = "neither HOST, HOST:PORT, HOST#INDEX, HOST#FIRST-LAST nor tcp/HOST:PORT";
    let parsed = parse(peer).ok_or_else(|| wrong(forms))?;
    let addresses = resolve(parsed.host, ipv6).map_err(|error| wrong(&format!("cannot be resolved: {error}")))?;
    if addresses.is_empty() {
        return Err(wrong("has no address of the families in use"));
    }
    Ok((parsed, addresses))
}

fn parse(peer: &str) -> Option<Peer<'_>> {
    let every = At::Indices(PEER_PARTICIPANTS);
    let peer = peer.trim();
    if let Some(listener) = peer.strip_prefix(TCP) {
        let (host, port) = listener.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port != 0)?;
        return Some(Peer { host: host_of(host)?, at: At::TcpPort(port) });
    }
    if peer.parse::<IpAddr>().is_ok() {
        return Some(Peer { host: peer, at: every });
    }
    if let Some((host, indices)) = peer.split_once('#') {
        let (first, last) = indices.split_once('-').unwrap_or((indices, indices));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        return (first <= last && last <= LAST_INDEX)
            .then_some(Peer { host: host_of(host)?, at: At::Indices(first..=last) });
    }
    match peer.rsplit_once(':') {
        Some((host, port)) => Some(Peer { host: host_of(host)?, at: At::Port(port.parse().ok().filter(|p| *p != 0)?) }),
        None => Some(Peer { host: host_of(peer)?, at: every }),
    }
}

/// What stands for a host, without the brackets of an IPv6 address.
fn host_of(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let host = inner.unwrap_or(text);
    let is_bare_v6 = inner.is_none() && host.contains(':') && host.parse::<IpAddr>().is_err();
    (!host.is_empty() && !is_bare_v6 && !host.contains(char::is_whitespace)).then_some(host)
}

fn resolve(host: &str, ipv6: bool) -> std::io::Result<Vec<IpAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![address]);
    }
    let mut addresses: Vec<IpAddr> = (host, 0).to_socket_addrs()?.map(|address| address.ip()).collect();
    addresses.retain(|address| ipv6 || address.is_ipv4());
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(peer: &str) -> Vec<String> {
        locate(peer, 1, false).expect("well-formed").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_peer_without_port_has_the_well_known_ones() {
        let all = texts("192.0.2.9");
        assert_eq!(all.len(), 10);
        assert_eq!(all[..2], ["udp/192.0.2.9:7660", "udp/192.0.2.9:7662"]);
        assert_eq!(texts("2001:db8::1")[0], "udp/[2001:db8::1]:7660");
    }

    #[test]
    fn a_peer_with_port_or_indices_has_these() {
        assert_eq!(texts("192.0.2.9:7000"), ["udp/192.0.2.9:7000"]);
        assert_eq!(texts("[2001:db8::1]:7410"), ["udp/[2001:db8::1]:7410"]);
        assert_eq!(texts("192.0.2.9#2"), ["udp/192.0.2.9:7664"]);
        assert_eq!(texts("192.0.2.9#118-119"), ["udp/192.0.2.9:7896", "udp/192.0.2.9:7898"]);
        assert_eq!(texts("2001:db8::1#0"), ["udp/[2001:db8::1]:7660"]);
    }

    #[test]
    fn a_peer_of_tcp_has_a_port() {
        assert_eq!(texts("tcp/192.0.2.9:7400"), ["tcp/192.0.2.9:7400"]);
        assert_eq!(texts("tcp/[2001:db8::1]:7400"), ["tcp/[2001:db8::1]:7400"]);
        assert!(is_tcp(" tcp/localhost:1") && !is_tcp("localhost:1"));
        let name = ("127.0.0.1:7400".parse().expect("an address"), "localhost".to_owned());
        assert_eq!(tcp_names("tcp/localhost:7400", false).expect("well-formed"), [name]);
        assert_eq!(tcp_names("tcp/127.0.0.1:7400", false).expect("well-formed"), []);
    }

    #[test]
    fn a_name_is_resolved() {
        assert_eq!(texts("localhost:7412"), ["udp/127.0.0.1:7412"]);
        assert_eq!(texts("localhost#0-1").len(), 2);
    }

    #[test]
    fn anything_else_is_an_error_that_names_it() {
        for wrong in [
            "",
            "host name",
            "a:b",
            "192.0.2.9:0",
            "192.0.2.9#3-2",
            "192.0.2.9#120",
            "192.0.2.9:70000",
            "[::1",
            "tcp/192.0.2.9",
            "tcp/192.0.2.9:0",
            "tcp/192.0.2.9#1",
            "no-such-host.invalid",
        ] {
            let error = locate(wrong, 0, false).expect_err(wrong).to_string();
            assert!(error.contains(&format!("{wrong:?}")), "{error}");
        }
    }
}
