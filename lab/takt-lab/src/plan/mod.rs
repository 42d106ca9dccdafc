//! Plan of a lab: namespaces, interfaces, OpenFlow ports and disciplines derived from a file.
//! Nothing here changes the machine.

use std::collections::{BTreeMap, BTreeSet};

use takt_ovsdb::open_vswitch::FailMode;

use crate::error::{Error, Result};
use crate::file::{self, Address, End, LabFile, Link, Mac, Offload, SWITCHES, SwitchKind};

/// Octets that the kernel charges for a frame of 1,514 octets or less in a discipline: `truesize`
/// of its buffer.
const FRAME_MEMORY: u64 = 2304;

/// Maximum octets in all queues. The send buffer of Open vSwitch is twice as large, and the kernel
/// has 31 bits for it.
const QUEUE_MEMORY_MAX: u64 = 1_000_000_000;

/// Interface of a host or of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name of the host, or [`SWITCHES`].
    pub node: String,
    /// Name within its namespace.
    pub name: String,
    /// Hardware address.
    pub mac: [u8; 6],
    /// Addresses; a port of a switch has none.
    pub addresses: Vec<Address>,
    /// Switch and port number, for a port of a switch. With Open vSwitch it is the OpenFlow port.
    pub port: Option<(String, u32)>,
    /// Rate of sent frames, bit/s; `None`: the interface has no classes.
    pub rate: Option<u64>,
}

/// Link between two interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkPlan {
    /// Interfaces of both ends.
    pub ends: [Interface; 2],
    /// MTU in octets.
    pub mtu: u32,
    /// Number of queues of each end; `None`: one.
    pub queues: Option<u32>,
    /// Offloads that stay enabled at the ends.
    pub offloads: Vec<Offload>,
    /// Whether the link closes a ring of switches. Such a link is down until the switches have
    /// their controllers: Ethernet switches without controllers would circulate frames.
    pub closes_ring: bool,
}

/// Bridge of Open vSwitch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// Name of the switch.
    pub name: String,
    /// OpenFlow datapath identifier.
    pub datapath_id: u64,
    /// Controller, if any.
    pub controller: Option<String>,
    /// Behavior without a controller.
    pub fail_mode: FailMode,
}

/// Plan of a lab; see the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Links, in the order of the file.
    pub links: Vec<LinkPlan>,
    /// Switches of Open vSwitch.
    pub bridges: Vec<Bridge>,
    /// Names of switches that are bridges of the kernel.
    pub kernel_bridges: Vec<String>,
}

/// Static neighbor entry: a host's interface, and an address of another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbor<'a> {
    /// Interface that has the entry.
    pub of: &'a Interface,
    /// Interface of the neighbor.
    pub interface: &'a Interface,
    /// Address of the neighbor.
    pub address: Address,
}

impl Plan {
    /// Derives the plan of a file.
    ///
    /// # Errors
    /// The file does not describe a valid network, or switches without a controller form a ring.
    /// Two switches have the same datapath identifier, or two interfaces the same hardware address.
    /// The queues hold more than the send buffer of a socket.
    pub fn new(file: &LabFile) -> Result<Self> {
        file.check()?;
        let (kernel, open): (Vec<_>, Vec<_>) =
            file.switches.iter().zip(1..).partition(|((_, of), _)| of.kind == SwitchKind::Bridge);
        let kernel_bridges = kernel.into_iter().map(|((name, _), _)| name.clone()).collect();
        let bridges: Vec<_> = open.into_iter().map(|((name, of), number)| bridge(name, of, number)).collect();
        for (number, one) in bridges.iter().enumerate() {
            if let Some(other) = bridges[..number].iter().find(|other| other.datapath_id == one.datapath_id) {
                let what =
                    format!("switches {} and {} have the same datapath_id {}", other.name, one.name, one.datapath_id);
                return Err(Error::File(what));
            }
        }
        let mut ports = BTreeMap::new();
        let mut groups = Groups::default();
        let mut links = Vec::new();
        for (number, link) in (1_u16..).zip(&file.links) {
            let closes_ring = match &link.ends {
                [End::Switch(one), End::Switch(other)] => !groups.join(one, other),
                _ => false,
            };
            let ends = [0, 1].map(|side| interface(file, link, number, side, &mut ports));
            let (queues, offloads) = (link.queues, link.offloads.clone());
            links.push(LinkPlan { ends, mtu: link.mtu, queues, offloads, closes_ring });
        }
        let plan = Self { links, bridges, kernel_bridges };
        plan.check_rings()?;
        plan.check_macs()?;
        plan.check_queues(file)?;
        Ok(plan)
    }

    fn check_queues(&self, file: &LabFile) -> Result<()> {
        let memory = self.queue_memory(file);
        if memory > QUEUE_MEMORY_MAX {
            return Err(Error::File(format!(
                "all queues hold {memory} octets, but Open vSwitch sends through one socket of at most {QUEUE_MEMORY_MAX}; \
                 reduce the frames of the classes, or the number of links with a rate"
            )));
        }
        Ok(())
    }

    fn check_rings(&self) -> Result<()> {
        let is_standalone = |name: &str| {
            self.bridges.iter().any(|bridge| bridge.name == name && bridge.fail_mode == FailMode::Standalone)
        };
        for link in self.links.iter().filter(|link| link.closes_ring) {
            let switches: Vec<_> = link.ends.iter().filter_map(|end| Some(end.port.as_ref()?.0.as_str())).collect();
            if link.ends.iter().any(|end| self.is_at_kernel_bridge(end)) {
                return Err(Error::File(format!(
                    "the link {} closes a ring, in which a kernel bridge circulates frames: set for both switches \
                     kind = \"open-vswitch\" and fail_mode = \"secure\"",
                    switches.join(" to ")
                )));
            }
            if switches.iter().any(|switch| is_standalone(switch)) {
                return Err(Error::File(format!(
                    "the link {} closes a ring, in which a switch with fail_mode standalone circulates frames: set for both \
                     switches fail_mode = \"secure\"",
                    switches.join(" to ")
                )));
            }
        }
        Ok(())
    }

    fn check_macs(&self) -> Result<()> {
        let mut known = BTreeMap::new();
        for end in self.links.iter().flat_map(|link| &link.ends) {
            if let Some(other) = known.insert(end.mac, end) {
                let named = |end: &Interface| format!("{} of {}", end.name, end.node);
                let (mac, one, other) = (Mac(end.mac), named(other), named(end));
                return Err(Error::File(format!("{one} and {other} have the same MAC address {mac}")));
            }
        }
        Ok(())
    }

    /// Returns the names of namespaces by node.
    pub fn namespaces(file: &LabFile) -> BTreeMap<String, String> {
        let switches = (!file.switches.is_empty()).then_some(SWITCHES);
        let nodes = file.hosts.keys().map(String::as_str).chain(switches);
        nodes.map(|node| (node.to_owned(), format!("takt.{}.{node}", file.name))).collect()
    }

    /// Iterates over all interfaces.
    pub fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.links.iter().flat_map(|link| &link.ends)
    }

    /// Iterates over the interfaces with a rate, and so with classes.
    pub fn shaped(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces().filter(|end| end.rate.is_some())
    }

    /// Iterates over the ports of switches, with their links.
    pub fn ports(&self) -> impl Iterator<Item = (&Interface, &LinkPlan)> {
        self.links.iter().flat_map(|link| link.ends.iter().filter(|end| end.port.is_some()).map(move |end| (end, link)))
    }

    /// Iterates over the ports of Open vSwitch switches, with their links.
    pub fn open_vswitch_ports(&self) -> impl Iterator<Item = (&Interface, &LinkPlan)> {
        self.ports().filter(|(end, _)| !self.is_at_kernel_bridge(end))
    }

    /// Iterates over the ports of kernel bridges, each with the name of its bridge.
    pub fn kernel_ports(&self) -> impl Iterator<Item = (&Interface, &str)> {
        let switch = |end: &Interface| end.port.as_ref().map(|(switch, _)| switch.clone());
        let bridge = move |end: &Interface| self.kernel_bridges.iter().find(|name| switch(end).as_ref() == Some(*name));
        self.interfaces().filter_map(move |end| Some((end, bridge(end)?.as_str())))
    }

    fn is_at_kernel_bridge(&self, end: &Interface) -> bool {
        end.port.as_ref().is_some_and(|(switch, _)| self.kernel_bridges.contains(switch))
    }

    /// Returns, for each interface of a host, the addresses of the other hosts that its frames
    /// reach and that share a network with it.
    pub fn neighbors(&self) -> Vec<Neighbor<'_>> {
        let links: Vec<_> = self.links.iter().collect();
        let hosts = || self.interfaces().filter(|end| end.port.is_none());
        let mut all = Vec::new();
        for of in hosts() {
            let near = reached(&links, node(of));
            for interface in hosts().filter(|one| one.node != of.node && near.contains(&node(one))) {
                let is_near = |address: &&Address| of.addresses.iter().any(|own| own.shares_network(**address));
                let addresses = interface.addresses.iter().filter(is_near);
                all.extend(addresses.map(|address| Neighbor { of, interface, address: *address }));
            }
        }
        all
    }

    /// Reports whether frames from one host to another leave by this port, while links that close
    /// rings are down.
    pub fn is_between(&self, port: &Interface, from: &Interface, to: &Interface) -> bool {
        let open = self.links.iter().filter(|link| !link.closes_ring);
        let (of_port, others): (Vec<_>, Vec<_>) = open.partition(|link| link.ends.contains(port));
        let Some(far) = of_port.first().and_then(|link| link.ends.iter().find(|end| *end != port)) else {
            return false;
        };
        reached(&others, node(port)).contains(&node(from)) && reached(&others, node(far)).contains(&node(to))
    }

    /// Reports whether links and switches forward frames from one host's interface to another's.
    pub fn reaches(&self, from: &Interface, to: &Interface) -> bool {
        let links: Vec<_> = self.links.iter().collect();
        reached(&links, node(from)).contains(&node(to))
    }

    /// Returns the maximum memory in octets of all frames in the disciplines of the switches. Open
    /// vSwitch sends them by one socket.
    pub fn queue_memory(&self, file: &LabFile) -> u64 {
        let frames: u64 = file.classes.iter().map(|class| u64::from(class.frames)).sum();
        let of_port = |link: &LinkPlan| frames * FRAME_MEMORY.max(2 * u64::from(link.mtu));
        self.open_vswitch_ports().filter(|(end, _)| end.rate.is_some()).map(|(_, link)| of_port(link)).sum()
    }
}

/// Node of the network graph: a switch, or an interface of a host, since hosts do not forward.
type Node<'a> = (&'a str, Option<&'a str>);

fn node(end: &Interface) -> Node<'_> {
    end.port.as_ref().map_or((end.node.as_str(), Some(end.name.as_str())), |(switch, _)| (switch.as_str(), None))
}

/// Returns the nodes that these links connect with `from`.
fn reached<'a>(links: &[&'a LinkPlan], from: Node<'a>) -> BTreeSet<Node<'a>> {
    let mut nodes = BTreeSet::from([from]);
    let mut count = 0;
    while nodes.len() > count {
        count = nodes.len();
        for [one, other] in links.iter().map(|link| link.ends.each_ref().map(node)) {
            if nodes.contains(&one) || nodes.contains(&other) {
                nodes.extend([one, other]);
            }
        }
    }
    nodes
}

fn bridge(name: &str, of: &file::Switch, number: u64) -> Bridge {
    let fail_mode = match of.fail_mode {
        Some(file::FailMode::Standalone) => FailMode::Standalone,
        Some(file::FailMode::Secure) => FailMode::Secure,
        None if of.controller.is_some() => FailMode::Secure,
        None => FailMode::Standalone,
    };
    let datapath_id = of.datapath_id.unwrap_or(number);
    Bridge { name: name.to_owned(), datapath_id, controller: of.controller.clone(), fail_mode }
}

fn interface(file: &LabFile, link: &Link, number: u16, side: usize, ports: &mut BTreeMap<String, u32>) -> Interface {
    let [high, low] = number.to_be_bytes();
    let mac = |kind| link.macs.map_or([2, kind, 0, side as u8, high, low], |macs| macs[side].0);
    let end = &link.ends[side];
    let has_rate = link.rate_at.as_ref().is_none_or(|at| at == end);
    let rate = link.rate.filter(|_| has_rate).map(|rate| rate.0);
    match end {
        End::Host { host, interface } => Interface {
            node: host.clone(),
            name: interface.clone(),
            mac: mac(0),
            addresses: file.hosts[host][interface].clone(),
            port: None,
            rate,
        },
        End::Switch(switch) => {
            let port = ports.entry(switch.clone()).or_default();
            *port += 1;
            Interface {
                node: SWITCHES.to_owned(),
                name: format!("{switch}-{port}"),
                mac: mac(1),
                addresses: Vec::new(),
                port: Some((switch.clone(), *port)),
                rate,
            }
        }
    }
}

/// Disjoint sets of connected switches.
#[derive(Default)]
struct Groups(BTreeMap<String, usize>);

impl Groups {
    /// Connects two switches. Returns false if they were connected already.
    fn join(&mut self, one: &str, other: &str) -> bool {
        let next = self.0.len();
        let one = *self.0.entry(one.to_owned()).or_insert(next);
        let next = self.0.len();
        let other = *self.0.entry(other.to_owned()).or_insert(next);
        if one == other {
            return false;
        }
        self.0.values_mut().filter(|group| **group == other).for_each(|group| *group = one);
        true
    }
}

#[cfg(test)]
mod tests;
