//! Locators: transport addresses of endpoints (RTPS 2.5 §9.3.2).

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::cursor::{Cursor, Endianness};
use crate::error::Malformed;

/// Transport address.
///
/// An IPv4 address occupies the last four octets of `address`, after twelve zeros.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locator {
    /// Kind of transport: one of the `KIND_` constants, or a vendor's own.
    pub kind: i32,
    /// Port; at most 65,535 if the transport is UDP, or TCP over IPv6.
    pub port: u32,
    /// Address in wire order.
    pub address: [u8; 16],
}

impl Locator {
    /// Invalid locator.
    pub const KIND_INVALID: i32 = -1;
    /// UDP over IPv4.
    pub const KIND_UDP_V4: i32 = 1;
    /// UDP over IPv6.
    pub const KIND_UDP_V6: i32 = 2;
    /// TCP over IPv4; the number is eProsima's.
    pub const KIND_TCP_V4: i32 = 4;
    /// TCP over IPv6; the number is eProsima's.
    pub const KIND_TCP_V6: i32 = 8;
    /// Shared memory of eProsima and RTI, which use the same number.
    pub const KIND_SHM: i32 = 0x0100_0000;
    /// Ethernet frames without IP; the number is eProsima's.
    pub const KIND_ETHERNET: i32 = 0x0200_0000;
    /// Shared memory of Takt: `Tak` and a one. No other implementation is known to use this number;
    /// eProsima and RTI use 0x0100_0000 for theirs, CycloneDDS 0.10 uses 16.
    pub const KIND_TAKT_SHM: i32 = 0x5461_6b01;
    /// Ethernet frames without IP, of Takt: `Tak` and a two. The MAC address occupies the last six
    /// octets, after ten zeros.
    pub const KIND_TAKT_ETHERNET: i32 = 0x5461_6b02;

    /// Invalid locator (`LOCATOR_INVALID`).
    pub const INVALID: Self = Self { kind: Self::KIND_INVALID, port: 0, address: [0; 16] };

    /// Length on the wire in octets.
    pub const LEN: usize = 24;

    /// Returns the locator of a UDP port of an IPv4 address.
    pub const fn udp_v4(address: Ipv4Addr, port: u16) -> Self {
        let [a, b, c, d] = address.octets();
        let address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d];
        Self { kind: Self::KIND_UDP_V4, port: port as u32, address }
    }

    /// Returns the locator of a UDP port of an IPv6 address.
    pub const fn udp_v6(address: Ipv6Addr, port: u16) -> Self {
        Self { kind: Self::KIND_UDP_V6, port: port as u32, address: address.octets() }
    }

    /// Returns the locator of a port of a MAC address, which may be a group address.
    pub const fn takt_ethernet(mac: [u8; 6], port: u16) -> Self {
        let [a, b, c, d, e, f] = mac;
        let address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d, e, f];
        Self { kind: Self::KIND_TAKT_ETHERNET, port: port as u32, address }
    }

    /// Returns the MAC address if the transport is Takt's on Ethernet.
    pub const fn mac(&self) -> Option<[u8; 6]> {
        let [.., a, b, c, d, e, f] = self.address;
        if self.kind == Self::KIND_TAKT_ETHERNET { Some([a, b, c, d, e, f]) } else { None }
    }

    /// Returns the MAC address and port. `None` unless the transport is Takt's on Ethernet, the
    /// port is valid (1 to 65,535), and the address is not all zeros.
    pub fn mac_and_port(&self) -> Option<([u8; 6], u16)> {
        let mac = self.mac().filter(|mac| *mac != [0; 6])?;
        let port = u16::try_from(self.port).ok().filter(|port| *port != 0)?;
        Some((mac, port))
    }

    /// Returns the IP address if the transport is UDP or TCP.
    pub const fn ip(&self) -> Option<IpAddr> {
        match self.kind {
            Self::KIND_UDP_V4 | Self::KIND_TCP_V4 => {
                let [.., a, b, c, d] = self.address;
                Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
            }
            Self::KIND_UDP_V6 | Self::KIND_TCP_V6 => Some(IpAddr::V6(Ipv6Addr::from_octets(self.address))),
            _ => None,
        }
    }

    /// Returns the address and port if the transport is UDP and the port is valid (1 to 65,535).
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        if !matches!(self.kind, Self::KIND_UDP_V4 | Self::KIND_UDP_V6) {
            return None;
        }
        let port = u16::try_from(self.port).ok().filter(|port| *port != 0)?;
        self.ip().map(|ip| SocketAddr::new(ip, port))
    }

    /// Reports whether the transport is TCP.
    pub const fn is_tcp(&self) -> bool {
        matches!(self.kind, Self::KIND_TCP_V4 | Self::KIND_TCP_V6)
    }

    /// Reports whether the address is a multicast group.
    pub fn is_multicast(&self) -> bool {
        match self.mac() {
            Some([first, ..]) => first & 1 == 1,
            None => self.ip().is_some_and(|ip| ip.is_multicast()),
        }
    }

    /// Returns the locator of the same IPv4 group, restricted to the local interface with this
    /// address.
    ///
    /// The address of the interface precedes that of the group, where the wire format has zeros.
    /// Such a locator is for the local transport only and must not be announced.
    #[must_use]
    pub const fn by_interface(self, interface: Ipv4Addr) -> Self {
        let mut address = self.address;
        let [a, b, c, d] = interface.octets();
        (address[8], address[9], address[10], address[11]) = (a, b, c, d);
        Self { address, ..self }
    }

    /// Returns the interface set by [`by_interface`](Self::by_interface); `None` for all
    /// interfaces.
    pub const fn interface(&self) -> Option<Ipv4Addr> {
        let [_, _, _, _, _, _, _, _, a, b, c, d, ..] = self.address;
        let interface = Ipv4Addr::new(a, b, c, d);
        if self.kind != Self::KIND_UDP_V4 || interface.is_unspecified() { None } else { Some(interface) }
    }

    /// Reports whether a message could be sent to the locator.
    ///
    /// It is false for the invalid kind, for a port that UDP does not have, for the unspecified IP
    /// address, and for the same cases on Ethernet. It is true for unknown kinds of transport.
    pub fn is_usable(&self) -> bool {
        match self.kind {
            Self::KIND_INVALID => false,
            Self::KIND_UDP_V4 | Self::KIND_UDP_V6 => {
                self.socket_addr().is_some_and(|address| !address.ip().is_unspecified())
            }
            Self::KIND_TAKT_ETHERNET => self.mac_and_port().is_some(),
            _ => true,
        }
    }

    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self { kind: cursor.i32()?, port: cursor.u32()?, address: cursor.array()? })
    }

    /// Returns the octets of the wire format.
    pub fn to_bytes(&self, endianness: Endianness) -> [u8; Self::LEN] {
        let (kind, port) = match endianness {
            Endianness::Big => (self.kind.to_be_bytes(), self.port.to_be_bytes()),
            Endianness::Little => (self.kind.to_le_bytes(), self.port.to_le_bytes()),
        };
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&kind);
        bytes[4..8].copy_from_slice(&port);
        bytes[8..].copy_from_slice(&self.address);
        bytes
    }
}

impl Default for Locator {
    fn default() -> Self {
        Self::INVALID
    }
}

impl From<SocketAddr> for Locator {
    /// Returns the UDP locator of a socket address. The scope id is dropped.
    fn from(address: SocketAddr) -> Self {
        match address.ip() {
            IpAddr::V4(ip) => Self::udp_v4(ip, address.port()),
            IpAddr::V6(ip) => Self::udp_v6(ip, address.port()),
        }
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.kind {
            Self::KIND_INVALID => return f.write_str("invalid"),
            Self::KIND_UDP_V4 | Self::KIND_UDP_V6 => "udp",
            Self::KIND_TCP_V4 | Self::KIND_TCP_V6 => "tcp",
            Self::KIND_SHM => "shm",
            Self::KIND_ETHERNET => "eth",
            Self::KIND_TAKT_SHM => "takt-shm",
            Self::KIND_TAKT_ETHERNET => {
                let [.., a, b, c, d, e, g] = self.address;
                let port = self.port;
                return write!(f, "takt-eth/{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}/{port}");
            }
            other => return write!(f, "kind {other}, port {}", self.port),
        };
        match self.ip() {
            Some(IpAddr::V4(ip)) => write!(f, "{transport}/{ip}:{}", self.port),
            Some(IpAddr::V6(ip)) => write!(f, "{transport}/[{ip}]:{}", self.port),
            None => write!(f, "{transport}/{}", self.port),
        }
    }
}

impl fmt::Debug for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn ipv4_address_occupies_the_last_four_octets() {
        let locator = Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7400);
        let bytes = locator.to_bytes(Endianness::Little);
        assert_eq!(bytes[..8], [1, 0, 0, 0, 0xe8, 0x1c, 0, 0]);
        assert_eq!(bytes[8..], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 239, 255, 0, 1]);
        assert!(locator.is_multicast());
        assert_eq!(locator.to_string(), "udp/239.255.0.1:7400");
    }

    #[test]
    fn group_locator_can_be_restricted_to_an_interface() {
        let group = Locator::udp_v4(Ipv4Addr::new(239, 255, 0, 1), 7401);
        let interface = Ipv4Addr::new(192, 0, 2, 7);
        let there = group.by_interface(interface);
        assert_eq!((group.interface(), there.interface()), (None, Some(interface)));
        assert_eq!((there.socket_addr(), there.is_multicast()), (group.socket_addr(), true));
        assert_eq!(Locator::udp_v6(Ipv6Addr::LOCALHOST, 1).interface(), None);
    }

    #[test]
    fn mac_address_occupies_the_last_six_octets() {
        let locator = Locator::takt_ethernet([0x02, 0xab, 0, 0, 0, 0x0f], 7411);
        let bytes = locator.to_bytes(Endianness::Big);
        assert_eq!(bytes[..8], [0x54, 0x61, 0x6b, 0x02, 0, 0, 0x1c, 0xf3]);
        assert_eq!(bytes[8..], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0xab, 0, 0, 0, 0x0f]);
        assert_eq!((locator.mac(), locator.ip(), locator.socket_addr()), (Some([2, 0xab, 0, 0, 0, 15]), None, None));
        assert_eq!(locator.to_string(), "takt-eth/02:ab:00:00:00:0f/7411");
        assert!(locator.is_usable() && !locator.is_multicast());
        let group = Locator::takt_ethernet([0x01, 0x00, 0x5e, 0x7f, 0, 1], 7400);
        assert!(group.is_usable() && group.is_multicast());
        assert_eq!(Locator::udp_v4(Ipv4Addr::LOCALHOST, 1).mac(), None);
    }

    #[test]
    fn mac_address_or_port_of_zero_is_unusable() {
        let locator = Locator::takt_ethernet([2, 0, 0, 0, 0, 1], 1);
        for port in [0, 65_536, u32::MAX] {
            let locator = Locator { port, ..locator };
            assert_eq!((locator.mac_and_port(), locator.is_usable()), (None, false), "port {port}");
        }
        assert!(!Locator::takt_ethernet([0; 6], 1).is_usable());
        assert_eq!(locator.mac_and_port(), Some(([2, 0, 0, 0, 0, 1], 1)));
        assert_eq!(Locator::udp_v4(Ipv4Addr::LOCALHOST, 1).mac_and_port(), None);
    }

    #[test]
    fn locator_round_trips_in_both_byte_orders() {
        let locator = Locator::from(SocketAddr::from((Ipv6Addr::LOCALHOST, 65_535)));
        for endianness in [Endianness::Big, Endianness::Little] {
            let bytes = locator.to_bytes(endianness);
            assert_eq!(Locator::parse(&mut Cursor::new(&bytes, endianness)), Ok(locator));
        }
        assert_eq!(locator.to_string(), "udp/[::1]:65535");
    }

    #[test]
    fn ports_that_udp_does_not_have_are_unusable() {
        for port in [0, 65_536, u32::MAX] {
            let locator = Locator { port, ..Locator::udp_v4(Ipv4Addr::LOCALHOST, 1) };
            assert_eq!(locator.socket_addr(), None, "port {port}");
            assert!(!locator.is_usable(), "port {port}");
        }
    }

    #[test]
    fn unspecified_and_invalid_addresses_are_unusable() {
        assert!(Locator::udp_v4(Ipv4Addr::LOCALHOST, 7411).is_usable());
        assert!(!Locator::udp_v4(Ipv4Addr::UNSPECIFIED, 7411).is_usable());
        assert!(!Locator::udp_v6(Ipv6Addr::UNSPECIFIED, 7411).is_usable());
        assert!(!Locator::INVALID.is_usable());
        let tcp = Locator { kind: Locator::KIND_TCP_V4, ..Locator::udp_v4(Ipv4Addr::LOCALHOST, 7411) };
        assert!(tcp.is_tcp() && !Locator::udp_v4(Ipv4Addr::LOCALHOST, 7411).is_tcp());
        assert_eq!((tcp.socket_addr(), tcp.to_string().as_str()), (None, "tcp/127.0.0.1:7411"));
        let shared_memory = Locator { kind: Locator::KIND_SHM, port: 7, address: [0; 16] };
        assert!(shared_memory.is_usable() && shared_memory.socket_addr().is_none());
        assert_eq!(shared_memory.to_string(), "shm/7");
        let ours = Locator { kind: Locator::KIND_TAKT_SHM, ..shared_memory };
        assert_eq!((ours.is_usable(), ours.socket_addr(), ours.to_string().as_str()), (true, None, "takt-shm/7"));
    }
}
