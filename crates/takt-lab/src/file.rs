//! A network as a TOML file: classes, hosts, switches, links (docs/lab.md).

mod check;
mod text;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use takt_netlink::strict_priority;

use crate::error::{Error, Result};

/// The name that the namespace of the switches has among those of the hosts.
pub const SWITCHES: &str = "switches";

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
    /// Each host knows the hardware addresses of all others that share a link or switches and a network with it, and never asks for them.
    #[serde(default)]
    pub static_neighbours: bool,
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
    /// It takes frames that a socket (SO_PRIORITY) or a packet filter of the sending host marks with its number: `544b:N` for the N-th class.
    #[serde(default)]
    pub by_priority: bool,
    /// Frames that wait in it at most, at each end of a link.
    pub frames: u32,
    /// The frame that it drops when it is full.
    #[serde(default)]
    pub drop_from: DropFrom,
    /// The most that it sends; without one as much as the link.
    #[serde(default)]
    pub ceiling: Option<Rate>,
}

/// The frame that a full class drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropFrom {
    /// The one that waits longest.
    #[default]
    Head,
    /// The new one; its sender gets ENOBUFS.
    Tail,
}

impl Class {
    /// The class as the kernel is asked for it.
    pub fn of_kernel(&self) -> strict_priority::Class {
        strict_priority::Class {
            dscp: self.dscp.clone(),
            ether_types: self.ether_types.clone(),
            frames: self.frames,
            drop_from: match self.drop_from {
                DropFrom::Head => strict_priority::DropFrom::Head,
                DropFrom::Tail => strict_priority::DropFrom::Tail,
            },
            ceiling: self.ceiling.map(|ceiling| u32::try_from(ceiling.0 / 8).unwrap_or(u32::MAX)),
        }
    }

    /// Filters of the interface send frames to it.
    pub fn has_filters(&self) -> bool {
        !self.dscp.is_empty() || !self.ether_types.is_empty()
    }
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

/// A switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// The program, or the part of the kernel, that forwards.
    #[serde(default)]
    pub kind: SwitchKind,
    /// The OpenFlow controller as Open vSwitch names it, such as `tcp:127.0.0.1:6653` in the namespace of the switches.
    pub controller: Option<String>,
    /// Without a controller; `secure` by default if one is given, else `standalone`.
    pub fail_mode: Option<FailMode>,
    /// The OpenFlow datapath identifier; the place of the switch in alphabetical order, from 1, by default.
    pub datapath_id: Option<u64>,
}

/// The program, or the part of the kernel, that forwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchKind {
    /// A bridge of Open vSwitch with its datapath in user space.
    #[default]
    OpenVswitch,
    /// A bridge of the kernel: an Ethernet switch that floods multicast, without OpenFlow.
    Bridge,
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
    /// The end that alone has the rate and the classes; both by default.
    #[serde(default)]
    pub rate_at: Option<End>,
    /// Its MTU in octets.
    #[serde(default = "ethernet_mtu")]
    pub mtu: u32,
    /// Transmit queues of each end, and as many receive queues; what leaves by one arrives by the one of its number. One by default.
    #[serde(default)]
    pub queues: Option<u32>,
    /// The hardware addresses of its ends, in their order; the lab's own by default.
    #[serde(default)]
    pub macs: Option<[Mac; 2]>,
    /// The work that the stack leaves to the interfaces; none by default.
    #[serde(default)]
    pub offloads: Vec<Offload>,
}

/// Work that the stack leaves to an interface. A veth does none of it: it passes frames on as they are, and says so to the next stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Offload {
    /// Checksums of TCP and UDP.
    Checksum,
    /// Cutting of TCP streams and trains of UDP datagrams to frames of the MTU.
    Segmentation,
}

/// A hardware address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Mac(pub [u8; 6]);

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
}

#[cfg(test)]
mod tests;
