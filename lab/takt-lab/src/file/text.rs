//! Text forms of addresses, ends of links, rates and hardware addresses.

use std::fmt;
use std::net::IpAddr;

use super::{Address, End, Mac, Rate};

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let wrong = || format!("{text:?} is not an address with a prefix length, such as 10.7.0.1/24");
        let (ip, len) = text.split_once('/').ok_or_else(wrong)?;
        let ip: IpAddr = ip.parse().map_err(|_| wrong())?;
        let prefix_len: u8 = len.parse().map_err(|_| wrong())?;
        let longest = if ip.is_ipv4() { 32 } else { 128 };
        if prefix_len == 0 || prefix_len > longest || ip.is_multicast() || ip.is_unspecified() {
            return Err(wrong());
        }
        Ok(Self { ip, prefix_len })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix_len)
    }
}

impl Address {
    /// Reports whether another address is in the same network.
    pub fn shares_network(self, other: Self) -> bool {
        let prefix = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => u128::from(u32::from(ip)) >> (32 - u32::from(self.prefix_len)),
            IpAddr::V6(ip) => u128::from(ip) >> (128 - u32::from(self.prefix_len)),
        };
        self.ip.is_ipv4() == other.ip.is_ipv4()
            && self.prefix_len == other.prefix_len
            && prefix(self.ip) == prefix(other.ip)
    }
}

impl TryFrom<String> for End {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        Ok(match text.split_once(':') {
            Some((host, interface)) => Self::Host { host: host.to_owned(), interface: interface.to_owned() },
            None => Self::Switch(text),
        })
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { host, interface } => write!(f, "{host}:{interface}"),
            Self::Switch(name) => f.write_str(name),
        }
    }
}

impl TryFrom<String> for Rate {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let units = [("kbit/s", 1000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];
        let wrong = || format!("{text:?} is not a rate: expected a whole number with kbit/s, Mbit/s or Gbit/s");
        let end = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, unit) = (&text[..end], text[end..].trim());
        let factor = units.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
        let rate = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)); // tidy-allow(dropped-cause): the text is named
        rate.map(Self).ok_or_else(wrong)
    }
}

impl TryFrom<String> for Mac {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let wrong = || format!("{text:?} is not a unicast MAC address, such as 02:00:00:00:00:01");
        let octet = |part: &str| u8::from_str_radix(part, 16).ok().filter(|_| part.len() == 2); // tidy-allow(dropped-cause): the text is named
        let octets: Option<Vec<u8>> = text.split(':').map(octet).collect();
        let mac: [u8; 6] = octets.and_then(|octets| octets.try_into().ok()).ok_or_else(wrong)?; // tidy-allow(dropped-cause): as above
        // The lowest bit of the first octet marks group addresses.
        if mac[0] & 1 == 1 || mac == [0; 6] {
            return Err(wrong());
        }
        Ok(Self(mac))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}
