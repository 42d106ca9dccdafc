//! Lab file: a network as TOML, with classes, hosts, switches and links (docs/guide/lab.md).

mod check;
mod text;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use takt_netlink::strict_priority;

use crate::error::{Error, Result};

/// Node name of the namespace of the switches; the other nodes are hosts.
pub const SWITCHES: &str = "switches";

/// Network description.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabFile {
    /// Name of the lab; by default that of the file.
    #[serde(default)]
    pub name: String,
    /// Classes of rate-limited links, from the first to be served to the last. The last one
    /// contains all frames without another class.
    #[serde(default)]
    pub classes: Vec<Class>,
    /// Whether ports of switches have classes. If `false`, another program creates them, such as
    /// `takt sdn queues apply`.
    #[serde(default = "yes")]
    pub switch_classes: bool,
    /// Hosts; for each, its interfaces with their addresses.
    #[serde(default)]
    pub hosts: BTreeMap<String, BTreeMap<String, Vec<Address>>>,
    /// Switches.
    #[serde(default)]
    pub switches: BTreeMap<String, Switch>,
    /// Whether each host has static neighbor entries for all others that share a link or switches
    /// and a network with it, so that it never resolves their addresses.
    #[serde(default, alias = "static_neighbours")]
    pub static_neighbors: bool,
    /// SCHED_FIFO priority of ovs-vswitchd; by default it has none.
    #[serde(default)]
    pub switch_priority: Option<u8>,
    /// Links.
    #[serde(default)]
    pub links: Vec<Link>,
}

/// Class with strict priority.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Name of the class.
    pub name: String,
    /// DSCPs of its frames; the last class has none.
    #[serde(default)]
    pub dscp: Vec<u8>,
    /// EtherTypes of its frames, for protocols without DSCP, such as 0x0806 for ARP.
    #[serde(default)]
    pub ether_types: Vec<u16>,
    /// Whether the class takes frames that a socket (SO_PRIORITY) or a packet filter of the sending
    /// host marks with its number: `544b:N` for the N-th class.
    #[serde(default)]
    pub by_priority: bool,
    /// Maximum number of frames in its queue, at each end of a link.
    pub frames: u32,
    /// Frame that is dropped when the queue is full.
    #[serde(default)]
    pub drop_from: DropFrom,
    /// Maximum rate of the class; by default that of the link.
    #[serde(default)]
    pub ceiling: Option<Rate>,
}

/// Frame that a full queue drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropFrom {
    /// Oldest frame.
    #[default]
    Head,
    /// Arriving frame; its sender gets ENOBUFS.
    Tail,
}

impl Class {
    /// Returns the class as passed to the kernel.
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

    /// Reports whether filters of the interface sort frames into the class.
    pub fn has_filters(&self) -> bool {
        !self.dscp.is_empty() || !self.ether_types.is_empty()
    }
}

/// IP address with the prefix length of its network, such as `10.7.0.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Address {
    /// IP address.
    pub ip: IpAddr,
    /// Prefix length in bits.
    pub prefix_len: u8,
}

/// Switch settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Implementation of the switch.
    #[serde(default)]
    pub kind: SwitchKind,
    /// OpenFlow controller as Open vSwitch names it, such as `tcp:127.0.0.1:6653` in the namespace
    /// of the switches.
    pub controller: Option<String>,
    /// Behavior without a controller; by default `secure` if a controller is given, otherwise
    /// `standalone`.
    pub fail_mode: Option<FailMode>,
    /// OpenFlow datapath identifier; by default the position of the switch in alphabetical order,
    /// from 1.
    pub datapath_id: Option<u64>,
}

/// Implementation of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchKind {
    /// Bridge of Open vSwitch with its datapath in user space.
    #[default]
    OpenVswitch,
    /// Bridge of the kernel: an Ethernet switch that floods multicast, without OpenFlow.
    Bridge,
}

/// Behavior of a switch without a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailMode {
    /// Forwards as an Ethernet switch.
    Standalone,
    /// Drops all frames.
    Secure,
}

/// Link settings.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Ends: `HOST:INTERFACE` or `SWITCH`.
    pub ends: [End; 2],
    /// Rate in each direction; without one the link is not limited and has no classes.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// The only end with the rate and the classes; both by default.
    #[serde(default)]
    pub rate_at: Option<End>,
    /// MTU in octets.
    #[serde(default = "ethernet_mtu")]
    pub mtu: u32,
    /// Number of transmit queues of each end, and of receive queues; frames sent by a queue arrive
    /// by the queue of the same number. One by default.
    #[serde(default)]
    pub queues: Option<u32>,
    /// Hardware addresses of the ends, in their order; by default the lab assigns them.
    #[serde(default)]
    pub macs: Option<[Mac; 2]>,
    /// Offloads that stay enabled at the interfaces; none by default.
    #[serde(default)]
    pub offloads: Vec<Offload>,
}

/// Work that the stack leaves to an interface. A veth does none of it: it forwards frames
/// unchanged, marked as not yet processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Offload {
    /// Computation of TCP and UDP checksums.
    Checksum,
    /// Segmentation of TCP streams and of UDP GSO datagrams to frames of the MTU.
    Segmentation,
}

/// Hardware address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Mac(pub [u8; 6]);

fn yes() -> bool {
    true
}

fn ethernet_mtu() -> u32 {
    1500
}

/// End of a link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub enum End {
    /// Interface of a host.
    Host {
        /// Name of the host.
        host: String,
        /// Name of the interface.
        interface: String,
    },
    /// Switch, at its next port: the n-th link of the file that names a switch is at its OpenFlow
    /// port n.
    Switch(String),
}

/// Rate in bits per second.
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
    /// Reads a file. Without a `name` in it, the lab has the name of the file without its
    /// extension.
    ///
    /// # Errors
    /// The file cannot be read, or does not describe a valid network; the text names the file.
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
