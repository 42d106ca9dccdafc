//! Handshake between an application and its daemon: one request and one reply, as lines of text, on
//! a Unix socket in the abstract namespace.
//!
//! ```text
//! takt-daemon 1 join                    takt-daemon 1 welcome
//! domain 0                              inbox 016b61540200000...
//! shm 016b61540200000...                metatraffic-unicast 01000000f21c...
//! prefix 011e0000...                    interface eth0 2 1500 0 1 192.0.2.1/24
//! ```
//!
//! A request ends with an empty line; a reply ends with the connection. The socket belongs to the
//! network namespace. Both ends query the kernel for the user of the peer (`SO_PEERCRED`).

use std::fmt::Write as _;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::SocketAddr;

use takt_wire::{Endianness, GuidPrefix, Locator};

use crate::{Interface, Locators};

/// First words of each request and reply.
const VERSION: &str = "takt-daemon 1";
/// Maximum length of a request or reply, in octets.
pub(super) const TEXT_LEN_MAX: usize = 64 << 10;
/// Name of a daemon without a configured name.
const DEFAULT_NAME: &str = "default";

/// Returns the socket address of a daemon of this user in this network namespace.
pub(super) fn address(name: Option<&str>, user: u32) -> io::Result<SocketAddr> {
    let name = name.unwrap_or(DEFAULT_NAME);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
        let why = format!("invalid daemon name {name:?}: expected 1 to 64 letters, digits, '-', '_' and '.'");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    SocketAddr::from_abstract_name(format!("takt-daemon/{user}/{name}"))
}

/// Request of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Request to join a domain.
    Join {
        domain: u32,
        /// Shared memory locator of the application.
        shm: Locator,
        /// GUID prefix of the participant, if it had a daemon before.
        prefix: Option<GuidPrefix>,
    },
    /// Request for the status of the daemon.
    Status,
}

/// Reply of a daemon to an application that joins, sent again when interfaces change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Welcome {
    /// Locator where the daemon receives frames.
    pub(super) inbox: Option<Locator>,
    pub(super) locators: Locators,
    pub(super) interfaces: Vec<Interface>,
}

impl Request {
    pub(super) fn to_text(&self) -> String {
        match self {
            Self::Status => format!("{VERSION} status\n\n"),
            Self::Join { domain, shm, prefix } => {
                let mut text = format!("{VERSION} join\ndomain {domain}\nshm {}\n", hex_of(shm));
                if let Some(prefix) = prefix {
                    text += &format!("prefix {}\n", hex(&prefix.0));
                }
                text + "\n"
            }
        }
    }

    /// Parses a request. The error describes the defect in words.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let what = lines.next().and_then(|line| line.strip_prefix(VERSION)).map(str::trim);
        match what {
            Some("status") => Ok(Self::Status),
            Some("join") => {
                let (mut domain, mut shm, mut prefix) = (None, None, None);
                for (key, value) in lines.filter_map(|line| line.split_once(' ')) {
                    match key {
                        "domain" => domain = value.parse().ok(),
                        "shm" => shm = locator(value),
                        "prefix" => prefix = bytes(value).map(GuidPrefix),
                        // Key of a later version.
                        _ => {}
                    }
                }
                let missing = |what: &str| format!("the request has no {what}");
                let domain = domain.ok_or_else(|| missing("domain"))?;
                Ok(Self::Join { domain, shm: shm.ok_or_else(|| missing("shm"))?, prefix })
            }
            _ => Err(format!("the request is not {VERSION}")),
        }
    }
}

impl Welcome {
    pub(super) fn to_text(&self) -> String {
        let mut text = format!("{VERSION} welcome\n");
        if let Some(inbox) = &self.inbox {
            text += &format!("inbox {}\n", hex_of(inbox));
        }
        for (key, list) in self.lists() {
            for locator in list {
                text += &format!("{key} {}\n", hex_of(locator));
            }
        }
        for it in &self.interfaces {
            let addresses: Vec<String> = it.addresses.iter().map(|(ip, len)| format!("{ip}/{len}")).collect();
            let (loopback, multicast) = (u8::from(it.loopback), u8::from(it.multicast));
            let Interface { name, index, mtu, .. } = it;
            text += &format!("interface {name} {index} {mtu} {loopback} {multicast} {}\n", addresses.join(","));
        }
        text
    }

    fn lists(&self) -> [(&'static str, &Vec<Locator>); 4] {
        let Locators { metatraffic_unicast, metatraffic_multicast, default_unicast, default_multicast } =
            &self.locators;
        [
            ("metatraffic-unicast", metatraffic_unicast),
            ("metatraffic-multicast", metatraffic_multicast),
            ("default-unicast", default_unicast),
            ("default-multicast", default_multicast),
        ]
    }

    /// Parses a reply. The error is the daemon's reason for a refusal, or describes the defect in
    /// words.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        if let Some(why) = first.strip_prefix("refused ") {
            return Err(why.to_owned());
        }
        if first.strip_prefix(VERSION).map(str::trim) != Some("welcome") {
            return Err(format!("the reply is not {VERSION}"));
        }
        let mut welcome = Self::default();
        for (key, value) in rest.lines().filter_map(|line| line.split_once(' ')) {
            let wrong = || format!("the reply has an invalid {key}: {value:?}");
            let Locators { metatraffic_unicast, metatraffic_multicast, default_unicast, default_multicast } =
                &mut welcome.locators;
            let list = match key {
                "inbox" => {
                    welcome.inbox = Some(locator(value).ok_or_else(wrong)?);
                    continue;
                }
                "interface" => {
                    welcome.interfaces.push(interface(value).ok_or_else(wrong)?);
                    continue;
                }
                "metatraffic-unicast" => metatraffic_unicast,
                "metatraffic-multicast" => metatraffic_multicast,
                "default-unicast" => default_unicast,
                "default-multicast" => default_multicast,
                _ => continue,
            };
            list.push(locator(value).ok_or_else(wrong)?);
        }
        Ok(welcome)
    }
}

/// Makes the reply that refuses a request.
pub(super) fn refusal(why: &str) -> String {
    format!("refused {}\n", why.replace('\n', " "))
}

fn interface(text: &str) -> Option<Interface> {
    let mut words = text.split(' ');
    let (name, index, mtu) = (words.next()?.to_owned(), words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let (loopback, multicast) = (words.next()? == "1", words.next()? == "1");
    let addresses = words.next()?.split(',').filter(|address| !address.is_empty());
    let addresses = addresses.map(|address| {
        let (ip, len) = address.split_once('/')?;
        Some((ip.parse().ok()?, len.parse().ok()?))
    });
    Some(Interface { name, index, addresses: addresses.collect::<Option<_>>()?, mtu, loopback, multicast })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let written = write!(text, "{byte:02x}");
        debug_assert!(written.is_ok(), "writing to a String cannot fail");
        text
    })
}

fn hex_of(locator: &Locator) -> String {
    hex(&locator.to_bytes(Endianness::Little))
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut all = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (at, byte) in all.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(all)
}

fn locator(text: &str) -> Option<Locator> {
    bytes::<24>(text).map(|bytes| super::frame::locator(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn requests_round_trip_and_malformed_ones_report_why() {
        let shm = Locator { kind: Locator::KIND_TAKT_SHM, port: 2, address: [0xa5; 16] };
        for prefix in [None, Some(GuidPrefix([7; 12]))] {
            let request = Request::Join { domain: 12, shm, prefix };
            assert_eq!(Request::parse(&request.to_text()), Ok(request));
        }
        assert_eq!(Request::parse(&Request::Status.to_text()), Ok(Request::Status));
        for (wrong, why) in [
            ("GET / HTTP/1.1\n\n", "the request is not"),
            ("takt-daemon 2 join\n\n", "the request is not"),
            ("takt-daemon 1 join\ndomain 1\nshm 00\n\n", "no shm"),
            ("takt-daemon 1 join\ndomain x\n\n", "no domain"),
        ] {
            let error = Request::parse(wrong).expect_err(wrong);
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn welcome_round_trips_and_refusal_is_an_error() {
        let udp = |host, port| Locator::udp_v4(Ipv4Addr::new(192, 0, 2, host), port);
        let interface = Interface {
            name: "eth0".into(),
            index: 2,
            addresses: vec![(Ipv4Addr::new(192, 0, 2, 1).into(), 24), ("fe80::1".parse().expect("valid"), 64)],
            mtu: 1500,
            loopback: false,
            multicast: true,
        };
        let welcome = Welcome {
            inbox: Some(udp(9, 2)),
            locators: Locators {
                metatraffic_unicast: vec![udp(1, 7410), udp(2, 7410)],
                metatraffic_multicast: vec![udp(3, 7400)],
                default_unicast: vec![udp(1, 7411)],
                default_multicast: vec![udp(3, 7401)],
            },
            interfaces: vec![interface.clone(), Interface { addresses: Vec::new(), ..interface }],
        };
        assert_eq!(Welcome::parse(&welcome.to_text()), Ok(welcome));
        assert_eq!(Welcome::parse(&refusal("domain 5\nis not served")), Err("domain 5 is not served".to_owned()));
        assert!(Welcome::parse("takt-daemon 1 welcome\ninbox zz\n").is_err() && Welcome::parse("").is_err());
    }

    #[test]
    fn daemon_names_are_restricted_to_plain_words() {
        assert!(address(None, 0).is_ok() && address(Some("robot-1"), 1000).is_ok());
        for wrong in ["", "a b", "a/b", &"x".repeat(65)] {
            assert!(address(Some(wrong), 0).is_err(), "{wrong:?}");
        }
    }
}
