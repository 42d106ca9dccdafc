//! A network as a TOML file: classes, hosts, switches, links (docs/lab.md).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;

use crate::error::{Error, Result};

/// The name that the namespace of the switches has among those of the hosts.
pub const SWITCHES: &str = "switches";

/// Octets of a host's or a lab's name.
const NAME_LEN_MAX: usize = 32;
/// Octets of a switch's name: its interfaces are called NAME-PORT, and have 15 octets.
const SWITCH_LEN_MAX: usize = 10;
/// Octets of an interface's name (IFNAMSIZ without the NUL).
const INTERFACE_LEN_MAX: usize = 15;
/// HTB has eight priorities.
const CLASSES_MAX: usize = 8;
/// Numbers below are lengths (IEEE 802.3).
const ETHER_TYPE_MIN: u16 = 0x600;
const IP: [u16; 2] = [0x0800, 0x86dd];
/// Hosts, and links.
const HOSTS_MAX: usize = 100;
const LINKS_MAX: usize = 500;
const SWITCHES_MAX: usize = 50;
/// Rates of a link, bit/s: HTB counts octets per second in 32 bits.
const RATE_MIN: u64 = 64_000;
const RATE_MAX: u64 = 32_000_000_000;

/// A network.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabFile {
    /// The lab's name; that of the file if it has none.
    #[serde(default)]
    pub name: String,
    /// Classes of links with a rate, from the first to be served to the last. The last one takes all that no other does.
    #[serde(default)]
    pub classes: Vec<Class>,
    /// `false`: ports of switches get no classes. Another program makes them, such as `takt sdn queues apply`.
    #[serde(default = "yes")]
    pub switch_classes: bool,
    /// Hosts; of each the interfaces with their addresses.
    #[serde(default)]
    pub hosts: BTreeMap<String, BTreeMap<String, Vec<Address>>>,
    /// Switches.
    #[serde(default)]
    pub switches: BTreeMap<String, Switch>,
    /// The SCHED_FIFO priority of ovs-vswitchd; without one it shares the processors with everything else.
    #[serde(default)]
    pub switch_priority: Option<u8>,
    /// Links.
    #[serde(default)]
    pub links: Vec<Link>,
}

/// A class of strict priority.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// DSCPs of its frames; the last class has none.
    #[serde(default)]
    pub dscp: Vec<u8>,
    /// EtherTypes of its frames, for protocols that have no DSCP, such as 0x0806 of ARP.
    #[serde(default)]
    pub ether_types: Vec<u16>,
    /// Frames that wait in it at most, at each end of a link.
    pub frames: u32,
}

/// An address with the length of its network's prefix, such as `10.7.0.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// The bits of its prefix.
    pub prefix_len: u8,
}

/// A switch: a bridge of Open vSwitch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// The OpenFlow controller as Open vSwitch names it, such as `tcp:127.0.0.1:6653` in the namespace of the switches.
    pub controller: Option<String>,
    /// Without a controller; `secure` by default if one is given, else `standalone`.
    pub fail_mode: Option<FailMode>,
    /// The OpenFlow datapath identifier; the place of the switch in alphabetical order, from 1, by default.
    pub datapath_id: Option<u64>,
}

/// A switch without a controller does this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailMode {
    /// It forwards as an Ethernet switch.
    Standalone,
    /// It drops everything.
    Secure,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// `HOST:INTERFACE` or `SWITCH`.
    pub ends: [End; 2],
    /// Its rate in each direction; without one it is as fast as the machine and has no classes.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// Its MTU in octets.
    #[serde(default = "ethernet_mtu")]
    pub mtu: u32,
}

fn yes() -> bool {
    true
}

fn ethernet_mtu() -> u32 {
    1500
}

/// An end of a link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub enum End {
    /// An interface of a host.
    Host {
        /// The host.
        host: String,
        /// The interface.
        interface: String,
    },
    /// A switch, at its next port: the n-th link of the file that names a switch is at its OpenFlow port n.
    Switch(String),
}

/// Bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Rate(pub u64);

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let wrong = || format!("{text:?} is no address with a prefix length, such as 10.7.0.1/24");
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
    /// Whether another address is in the same network.
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
        let wrong = || format!("{text:?} is no rate: a whole number and one of kbit/s, Mbit/s, Gbit/s is expected");
        let end = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, unit) = (&text[..end], text[end..].trim());
        let factor = units.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
        let rate = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)); // tidy-allow(dropped-cause): the text is named
        rate.map(Self).ok_or_else(wrong)
    }
}

impl FromStr for LabFile {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let file: Self = toml::from_str(text).map_err(|why| Error::File(why.to_string()))?;
        file.check()?;
        Ok(file)
    }
}

impl LabFile {
    /// Reads a file. Without a `name` in it, the lab is called as the file without its extension.
    ///
    /// # Errors
    /// The file cannot be read, or describes no network; the text names the file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::os(format!("read {}", path.display())))?;
        let named = |error: Error| Error::File(format!("{}: {error}", path.display()));
        let mut file: Self = toml::from_str(&text).map_err(|why| named(Error::File(why.to_string())))?;
        if file.name.is_empty() {
            file.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        file.check().map_err(named)?;
        Ok(file)
    }

    fn check(&self) -> Result<()> {
        check_name("lab", &self.name, NAME_LEN_MAX)?;
        for (what, number, most) in [
            ("classes", self.classes.len(), CLASSES_MAX),
            ("hosts", self.hosts.len(), HOSTS_MAX),
            ("switches", self.switches.len(), SWITCHES_MAX),
            ("links", self.links.len(), LINKS_MAX),
        ] {
            if number > most {
                return Err(Error::File(format!("{number} {what}; a lab has {most} at most")));
            }
        }
        for (host, interfaces) in &self.hosts {
            check_name("host", host, NAME_LEN_MAX)?;
            if host == SWITCHES || self.switches.contains_key(host) {
                return Err(Error::File(format!("host {host} has the name of a switch, or of their namespace")));
            }
            for interface in interfaces.keys() {
                check_name("interface", interface, INTERFACE_LEN_MAX)?;
            }
        }
        self.switches.keys().try_for_each(|switch| check_name("switch", switch, SWITCH_LEN_MAX))?;
        if let Some(priority) = self.switch_priority.filter(|priority| !(1..=99).contains(priority)) {
            return Err(Error::File(format!("switch_priority is {priority}; SCHED_FIFO has 1 to 99")));
        }
        self.check_classes()?;
        self.check_links()
    }

    fn check_classes(&self) -> Result<()> {
        let (mut seen, mut sorted) = (BTreeSet::new(), BTreeSet::new());
        let count = self.classes.len();
        for (place, class) in self.classes.iter().enumerate() {
            let wrong = |what: String| Err(Error::File(format!("class {:?}: {what}", class.name)));
            if class.frames == 0 || class.frames > 1_000_000 {
                return wrong(format!("{} frames; 1 to 1,000,000 are expected", class.frames));
            }
            if class.dscp.is_empty() != (place + 1 == count) {
                return wrong("every class but the last has DSCPs, the last takes the rest".to_owned());
            }
            if let Some(dscp) = class.dscp.iter().find(|dscp| **dscp > 63 || !seen.insert(**dscp)) {
                return wrong(format!("DSCP {dscp} is above 63, or belongs to two classes"));
            }
            let is_other = |ether_type: &u16| *ether_type >= ETHER_TYPE_MIN && !IP.contains(ether_type);
            if let Some(wanted) = class.ether_types.iter().find(|wanted| !is_other(wanted) || !sorted.insert(**wanted))
            {
                return wrong(format!("EtherType {wanted:#06x} is none, is that of IP, or belongs to two classes"));
            }
            if place + 1 == count && !class.ether_types.is_empty() {
                return wrong("the last class has no ether_types, since it takes the rest".to_owned());
            }
        }
        match self.links.iter().find(|link| link.rate.is_some()) {
            Some(link) if count == 0 => {
                let [one, other] = &link.ends;
                Err(Error::File(format!("link {one} to {other} has a rate, and the file has no [[classes]]")))
            }
            _ => Ok(()),
        }
    }

    fn check_links(&self) -> Result<()> {
        let mut linked = BTreeSet::new();
        for link in &self.links {
            let [one, other] = &link.ends;
            let wrong = |what: &str| Err(Error::File(format!("link {one} to {other}: {what}")));
            for end in &link.ends {
                let is_there = match end {
                    End::Host { host, interface } => {
                        self.hosts.get(host).is_some_and(|interfaces| interfaces.contains_key(interface))
                    }
                    End::Switch(name) => self.switches.contains_key(name),
                };
                if !is_there {
                    return wrong(&format!("there is no {end} among [hosts] and [switches]"));
                }
                if matches!(end, End::Host { .. }) && !linked.insert(end.clone()) {
                    return wrong(&format!("{end} has two links"));
                }
            }
            if one == other {
                return wrong("both ends are at the same switch");
            }
            if link.rate.is_some_and(|rate| !(RATE_MIN..=RATE_MAX).contains(&rate.0)) {
                return wrong("a rate is from 64 kbit/s to 32 Gbit/s");
            }
            if !(576..=9000).contains(&link.mtu) {
                return wrong("an MTU is from 576 to 9000 octets");
            }
        }
        for (host, interfaces) in &self.hosts {
            for interface in interfaces.keys() {
                let end = End::Host { host: host.clone(), interface: interface.clone() };
                if !linked.contains(&end) {
                    return Err(Error::File(format!("interface {end} has no link")));
                }
            }
        }
        Ok(())
    }
}

/// A name goes into those of namespaces, files and interfaces.
fn check_name(what: &str, name: &str, len_max: usize) -> Result<()> {
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name.len() > len_max || name.starts_with('-') || !name.chars().all(is_fit) {
        let expected = format!("1 to {len_max} of a-z, 0-9, _ and - are expected, with no - first");
        return Err(Error::File(format!("{what} {name:?}: {expected}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
