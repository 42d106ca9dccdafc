//! Unicast peers: hosts and participants that discovery contacts by address.
//!
//! | form | meaning |
//! |---|---|
//! | `HOST` | the first ten participants on the host, by their well-known ports (RTPS 2.5 §9.6.2.3) |
//! | `HOST#4`, `HOST#0-29` | the participants with these participant indices |
//! | `HOST:7410` | the participant that receives on this port |
//! | `tcp/HOST:7410` | the participant that listens on this TCP port |
//!
//! `HOST` is an IPv4 address, an IPv6 address (in brackets if a port follows), or a name that the
//! system's resolver knows. A name is resolved once, when it is configured. All its addresses of
//! the enabled families are used.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;

use takt_wire::Locator;
use takt_wire::ports::PortMapping;

use crate::{Error, Result};

/// Participant indices that are contacted on a peer's host: those with the first well-known ports.
/// Participants with higher indices learn of this one from its announcements or by multicast.
const PEER_PARTICIPANTS: RangeInclusive<u16> = 0..=9;

/// Highest participant index that has well-known ports.
const LAST_INDEX: u16 = 119;

/// Prefix of TCP peers.
const TCP: &str = "tcp/";

/// Parsed peer.
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

/// Returns the locators at which a peer may receive discovery data.
///
/// # Errors
/// [`Error::BadParameter`] for invalid syntax and for a name that cannot be resolved.
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

/// Reports whether a peer is reached by TCP.
pub(super) fn is_tcp(peer: &str) -> bool {
    peer.trim().starts_with(TCP)
}

/// Returns the socket addresses of a TCP peer that is given by name, each with that name. Empty for
/// other peers.
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
    let text_of = |reason: &str| format!("peer {peer:?}: {reason}");
    let invalid = |reason: &str| Error::bad_parameter(text_of(reason));
    let forms = "expected HOST, HOST:PORT, HOST#INDEX, HOST#FIRST-LAST or tcp/HOST:PORT";
    let parsed = parse(peer).ok_or_else(|| invalid(forms))?;
    let unresolved =
        |error: io::Error| Error::bad_parameter_from(text_of(&format!("cannot be resolved: {error}")), error);
    let addresses = resolve(parsed.host, ipv6).map_err(unresolved)?;
    if addresses.is_empty() {
        return Err(invalid("has no address of an enabled IP version"));
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

/// Returns the host without the brackets of an IPv6 address.
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
    fn peer_without_port_uses_well_known_ports() {
        let all = texts("192.0.2.9");
        assert_eq!(all.len(), 10);
        assert_eq!(all[..2], ["udp/192.0.2.9:7660", "udp/192.0.2.9:7662"]);
        assert_eq!(texts("2001:db8::1")[0], "udp/[2001:db8::1]:7660");
    }

    #[test]
    fn peer_with_port_or_indices_uses_these() {
        assert_eq!(texts("192.0.2.9:7000"), ["udp/192.0.2.9:7000"]);
        assert_eq!(texts("[2001:db8::1]:7410"), ["udp/[2001:db8::1]:7410"]);
        assert_eq!(texts("192.0.2.9#2"), ["udp/192.0.2.9:7664"]);
        assert_eq!(texts("192.0.2.9#118-119"), ["udp/192.0.2.9:7896", "udp/192.0.2.9:7898"]);
        assert_eq!(texts("2001:db8::1#0"), ["udp/[2001:db8::1]:7660"]);
    }

    #[test]
    fn tcp_peer_requires_a_port() {
        assert_eq!(texts("tcp/192.0.2.9:7400"), ["tcp/192.0.2.9:7400"]);
        assert_eq!(texts("tcp/[2001:db8::1]:7400"), ["tcp/[2001:db8::1]:7400"]);
        assert!(is_tcp(" tcp/localhost:1") && !is_tcp("localhost:1"));
        let name = ("127.0.0.1:7400".parse().expect("an address"), "localhost".to_owned());
        assert_eq!(tcp_names("tcp/localhost:7400", false).expect("well-formed"), [name]);
        assert_eq!(tcp_names("tcp/127.0.0.1:7400", false).expect("well-formed"), []);
    }

    #[test]
    fn host_name_is_resolved() {
        assert_eq!(texts("localhost:7412"), ["udp/127.0.0.1:7412"]);
        assert_eq!(texts("localhost#0-1").len(), 2);
    }

    #[test]
    fn invalid_peer_error_names_the_peer() {
        for invalid in [
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
            let error = locate(invalid, 0, false).expect_err(invalid).to_string();
            assert!(error.contains(&format!("{invalid:?}")), "{error}");
        }
    }
}
