//! Network interfaces that a transport uses.

use std::net::IpAddr;

/// Network interface with the addresses in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Name in the operating system: `"eth0"`.
    pub name: String,
    /// Index (`ifindex`) that the kernel assigned.
    pub index: u32,
    /// Addresses, each with the length of its network prefix in bits.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Maximum size of an IP packet, in bytes.
    pub mtu: usize,
    /// The interface is the loopback interface.
    pub loopback: bool,
    /// The interface sends and receives multicast.
    pub multicast: bool,
}

/// Returns the address that a datagram to or from `ip` most likely uses: `ip` itself if it is
/// loopback (which every address of a machine reaches), else that of [`address_towards`].
pub(crate) fn nearest(addresses: &[(IpAddr, u8)], ip: IpAddr) -> Option<IpAddr> {
    if ip.is_loopback() { Some(ip) } else { address_towards(addresses, ip) }
}

/// Returns the first of these addresses in the network of `ip`, else the first one of its family.
/// Each address has the length of its network prefix in bits.
pub fn address_towards(addresses: &[(IpAddr, u8)], ip: IpAddr) -> Option<IpAddr> {
    let same_family = |a: &&(IpAddr, u8)| a.0.is_ipv4() == ip.is_ipv4();
    let near = addresses.iter().find(|(a, len)| same_network(*a, ip, *len));
    let near = near.or_else(|| addresses.iter().find(same_family));
    near.map(|(a, _)| *a)
}

fn same_network(a: IpAddr, b: IpAddr, prefix_len: u8) -> bool {
    let (a, b, bits) = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits().into(), b.to_bits().into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    let host_bits: u32 = bits - u32::from(prefix_len).min(bits);
    let difference: u128 = a ^ b;
    difference.checked_shr(host_bits).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_address_prefers_loopback_then_network_then_family() {
        let ip = |text: &str| -> IpAddr { text.parse().expect("a valid address") };
        let own = [(ip("192.0.2.2"), 24), (ip("198.51.100.2"), 24), (ip("fd00::2"), 64), (ip("fd01::2"), 64)];
        let near = |to| nearest(&own, ip(to));
        assert_eq!(near("198.51.100.9"), Some(ip("198.51.100.2")));
        assert_eq!(near("203.0.113.1"), Some(ip("192.0.2.2")));
        assert_eq!(near("fd01::9"), Some(ip("fd01::2")));
        assert_eq!(near("2001:db8::1"), Some(ip("fd00::2")));
        assert_eq!(near("127.0.0.1"), Some(ip("127.0.0.1")));
        assert_eq!(nearest(&own[..2], ip("fd01::9")), None);
        assert_eq!(nearest(&[(ip("0.0.0.0"), 0)], ip("1.2.3.4")), Some(ip("0.0.0.0")));
    }
}
