//! Ethernet hardware addresses, and the mapping of multicast groups to them.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

/// Hardware address of Ethernet, in wire order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Broadcast address.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Returns the hardware address of a multicast group: derived from the lower 23 bits for IPv4
    /// (RFC 1112 §6.4), from the lower 32 for IPv6 (RFC 2464 §7). Several groups thus share one
    /// address. `None` for an address that is no group.
    pub const fn of_group(group: IpAddr) -> Option<Self> {
        if !group.is_multicast() {
            return None;
        }
        Some(match group {
            IpAddr::V4(group) => {
                let [_, b, c, d] = group.octets();
                Self([0x01, 0x00, 0x5e, b & 0x7f, c, d])
            }
            IpAddr::V6(group) => {
                let [.., a, b, c, d] = group.octets();
                Self([0x33, 0x33, a, b, c, d])
            }
        })
    }

    /// Reports whether this is a group address, including broadcast.
    pub const fn is_group(&self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl FromStr for MacAddress {
    type Err = NotAMacAddress;

    /// Parses six hexadecimal octets separated by colons: `02:00:0a:00:00:01`.
    fn from_str(text: &str) -> Result<Self, NotAMacAddress> {
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts.next().filter(|part| matches!(part.len(), 1 | 2) && !part.starts_with('+'));
            *octet = part.and_then(|part| u8::from_str_radix(part, 16).ok()).ok_or(NotAMacAddress)?; // tidy-allow(dropped-cause): there is only one error.
        }
        parts.next().map_or(Ok(Self(octets)), |_| Err(NotAMacAddress))
    }
}

/// Parse error of a hardware address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAMacAddress;

impl fmt::Display for NotAMacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a hardware address has six octets, as in 02:00:0a:00:00:01")
    }
}

impl core::error::Error for NotAMacAddress {}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::net::{Ipv4Addr, Ipv6Addr};
    use std::string::ToString;

    use super::*;

    #[test]
    fn groups_map_to_hardware_addresses() {
        let of = |ip: IpAddr| MacAddress::of_group(ip).map(|mac| mac.0);
        assert_eq!(of(Ipv4Addr::new(239, 255, 0, 1).into()), Some([0x01, 0x00, 0x5e, 0x7f, 0, 1]));
        assert_eq!(of(Ipv4Addr::new(224, 127, 2, 3).into()), Some([0x01, 0x00, 0x5e, 0x7f, 2, 3]));
        let v6 = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 1);
        assert_eq!(of(v6.into()), Some([0x33, 0x33, 0xef, 0xff, 0, 1]));
        assert_eq!(of(Ipv4Addr::new(192, 0, 2, 1).into()), None);
        assert_eq!(of(Ipv6Addr::LOCALHOST.into()), None);
    }

    #[test]
    fn lowest_bit_of_the_first_octet_marks_a_group() {
        assert!(MacAddress::BROADCAST.is_group());
        assert!(MacAddress([0x33, 0x33, 0, 0, 0, 1]).is_group());
        let one = MacAddress([0x02, 0xab, 0, 0, 0, 0x0f]);
        assert!(!one.is_group());
        assert_eq!(one.to_string(), "02:ab:00:00:00:0f");
    }

    #[test]
    fn address_round_trips_through_text_and_other_text_fails() {
        let one = MacAddress([0x02, 0xab, 0, 0, 0, 0x0f]);
        assert_eq!((one.to_string().parse(), "2:AB:0:0:0:f".parse()), (Ok(one), Ok(one)));
        for wrong in
            ["", "02:ab:00:00:00", "02:ab:00:00:00:0f:00", "02:ab:00:00:00:100", "02:ab:00:00:00:+f", "02:ab:00:00::0f"]
        {
            assert_eq!(wrong.parse::<MacAddress>(), Err(NotAMacAddress), "{wrong}");
        }
    }
}
