//! Versioned network of switches, ports, links and hosts.
//!
//! Each change creates a new version. A [`Snapshot`] is one version; it is shared and immutable.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use takt_calculus::network::{CLASSES_MAX, Depth, Port};

use super::switch::SwitchModel;
use crate::PortRef;

/// Maximum number of switches.
pub const SWITCHES_MAX: usize = 1024;

/// Maximum number of hosts.
pub const HOSTS_MAX: usize = 65_536;

/// Maximum number of sending ports of switches and hosts together.
pub const EGRESSES_MAX: usize = 4 * HOSTS_MAX;

/// A host, identified by the MAC address of its interface as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u64);

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let octets = self.0.to_be_bytes();
        let octets: Vec<String> = octets[2..].iter().map(|octet| format!("{octet:02x}")).collect();
        write!(f, "host {}", octets.join(":"))
    }
}

/// An end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A switch, by its datapath id.
    Switch(u64),
    /// A host.
    Host(HostId),
}

/// A sending port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Egress {
    /// A port of a switch.
    Switch(PortRef),
    /// The interface of a host.
    Host(HostId),
}

impl Egress {
    /// Returns the node that has the port.
    pub const fn node(self) -> Node {
        match self {
            Self::Switch(PortRef { dpid, .. }) => Node::Switch(dpid),
            Self::Host(host) => Node::Host(host),
        }
    }
}

impl fmt::Display for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(PortRef { dpid, port }) => write!(f, "port {port} of switch {dpid:016x}"),
            Self::Host(host) => write!(f, "interface of {host}"),
        }
    }
}

/// Sending interface of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostInterface {
    /// Queues of flows with contracts, the most urgent first, served by strict priority. An
    /// interface without classes has one.
    pub queues: Vec<Depth>,
    /// Length in octets of the longest frame without a contract, without FCS.
    pub foreign_frame_len: u64,
}

/// One direction of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Receiving end.
    pub to: Node,
    /// Port that sends in the opposite direction.
    pub back: Egress,
    /// Rate of both directions in bit/s.
    pub rate_bps: u64,
    /// Propagation delay of the cable in ns.
    pub cable_ns: u64,
    /// Whether the link is up.
    pub is_up: bool,
}

/// One version of a network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    version: u64,
    switches: BTreeMap<u64, Arc<SwitchModel>>,
    hosts: BTreeMap<HostId, HostInterface>,
    links: BTreeMap<Egress, Link>,
    /// Ports of each node.
    ports: BTreeMap<Node, BTreeSet<Egress>>,
}

/// Error of a change of the network.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkError {
    /// The maximum number of the named kind is reached.
    Full(&'static str),
    /// The switch does not exist.
    NoSwitch(u64),
    /// The link does not exist.
    NoLink(Egress),
    /// The port already has a link.
    Linked(Egress),
    /// The host is already attached.
    Attached(HostId),
    /// The port is invalid.
    Invalid {
        /// The invalid port.
        port: Egress,
        /// Reason.
        what: &'static str,
    },
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(what) => write!(f, "the network has reached its maximum number of {what}"),
            Self::NoSwitch(dpid) => write!(f, "switch {dpid:016x} is not known"),
            Self::NoLink(port) => write!(f, "{port} has no link"),
            Self::Linked(port) => write!(f, "{port} has a link already"),
            Self::Attached(host) => write!(f, "{host} is attached already"),
            Self::Invalid { port, what } => write!(f, "{port}: {what}"),
        }
    }
}

impl std::error::Error for NetworkError {}

impl Snapshot {
    /// Returns the version number, which grows with each version.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Returns the model of a switch.
    pub fn switch(&self, dpid: u64) -> Option<&SwitchModel> {
        self.switches.get(&dpid).map(AsRef::as_ref)
    }

    /// Iterates over the switches.
    pub fn switches(&self) -> impl Iterator<Item = (u64, &SwitchModel)> {
        self.switches.iter().map(|(dpid, model)| (*dpid, model.as_ref()))
    }

    /// Iterates over the hosts.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> {
        self.hosts.keys().copied()
    }

    /// Returns the link of a sending port.
    pub fn link(&self, port: Egress) -> Option<&Link> {
        self.links.get(&port)
    }

    /// Iterates over the ports of a node whose links are up, with the receiving ends.
    pub fn neighbors(&self, node: Node) -> impl Iterator<Item = (Egress, Node)> {
        let ports = self.ports.get(&node).into_iter().flatten();
        ports.filter_map(|port| Some((*port, self.links.get(port).filter(|link| link.is_up)?.to)))
    }

    /// Returns the port for the analysis: its queues, that of control traffic last, and the delay
    /// until the next queue or the receiving host.
    pub fn port(&self, port: Egress) -> Option<Port> {
        let link = self.links.get(&port)?;
        let (queues, foreign_frame_len) = match port {
            Egress::Switch(PortRef { dpid, .. }) => {
                let model = self.switches.get(&dpid)?;
                (model.queues.iter().chain(&model.control).map(|queue| queue.depth).collect(), model.foreign_frame_len)
            }
            Egress::Host(host) => {
                let interface = self.hosts.get(&host)?;
                (interface.queues.clone(), interface.foreign_frame_len)
            }
        };
        let (forwarding_ns_min, forwarding_ns) = match link.to {
            Node::Switch(dpid) => {
                self.switches.get(&dpid).map(|model| (model.forwarding_ns_min, model.forwarding_ns))?
            }
            Node::Host(_) => (0, 0),
        };
        Some(Port {
            name: port.to_string(),
            rate_bps: link.rate_bps,
            foreign_frame_len,
            classes: queues,
            delay_ns: forwarding_ns.saturating_add(link.cable_ns),
            delay_ns_min: forwarding_ns_min.saturating_add(link.cable_ns),
        })
    }
}

/// A network whose snapshots are versions.
#[derive(Debug, Clone, Default)]
pub struct Network {
    now: Arc<Snapshot>,
}

impl Network {
    /// Returns the present version.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.now)
    }

    fn change(&mut self, change: impl FnOnce(&mut Snapshot)) {
        let now = Arc::make_mut(&mut self.now);
        change(now);
        now.version += 1;
    }

    /// Replaces this network by another one and reports whether they differ. The version numbers
    /// continue.
    pub fn replace(&mut self, next: Self) -> bool {
        let mut next = Arc::unwrap_or_clone(next.now);
        next.version = self.now.version;
        if next == *self.now {
            return false;
        }
        next.version += 1;
        self.now = Arc::new(next);
        true
    }

    /// Adds a switch.
    ///
    /// # Errors
    /// There are already [`SWITCHES_MAX`] switches.
    pub fn add_switch(&mut self, dpid: u64, model: Arc<SwitchModel>) -> Result<(), NetworkError> {
        if self.now.switches.len() >= SWITCHES_MAX && !self.now.switches.contains_key(&dpid) {
            return Err(NetworkError::Full("switches"));
        }
        self.change(|now| drop(now.switches.insert(dpid, model)));
        Ok(())
    }

    /// Links two ports of switches.
    ///
    /// # Errors
    /// A switch is unknown, or a port has a link or is invalid.
    pub fn link(&mut self, ends: [(u64, u32); 2], rate_bps: u64, cable_ns: u64) -> Result<(), NetworkError> {
        if let Some((dpid, _)) = ends.iter().find(|(dpid, _)| !self.now.switches.contains_key(dpid)) {
            return Err(NetworkError::NoSwitch(*dpid));
        }
        let [a, b] = ends.map(|(dpid, port)| Egress::Switch(PortRef::new(dpid, port)));
        self.join(a, b, rate_bps, cable_ns)
    }

    /// Attaches a host to a port of a switch.
    ///
    /// # Errors
    /// The switch is unknown, the port has a link, the host is already attached, or its interface
    /// is invalid.
    pub fn attach(
        &mut self,
        host: HostId,
        interface: HostInterface,
        (dpid, port): (u64, u32),
        rate_bps: u64,
        cable_ns: u64,
    ) -> Result<(), NetworkError> {
        if !self.now.switches.contains_key(&dpid) {
            return Err(NetworkError::NoSwitch(dpid));
        }
        if self.now.hosts.contains_key(&host) {
            return Err(NetworkError::Attached(host));
        }
        if self.now.hosts.len() >= HOSTS_MAX {
            return Err(NetworkError::Full("hosts"));
        }
        let own = Egress::Host(host);
        if !(1..=CLASSES_MAX).contains(&interface.queues.len()) {
            return Err(NetworkError::Invalid { port: own, what: "it has no classes, or more than 8" });
        }
        self.join(own, Egress::Switch(PortRef::new(dpid, port)), rate_bps, cable_ns)?;
        self.change(|now| drop(now.hosts.insert(host, interface)));
        Ok(())
    }

    fn join(&mut self, a: Egress, b: Egress, rate_bps: u64, cable_ns: u64) -> Result<(), NetworkError> {
        self.check_join(a, b, rate_bps)?;
        self.change(|now| {
            for (from, to) in [(a, b), (b, a)] {
                now.links.insert(from, Link { to: to.node(), back: to, rate_bps, cable_ns, is_up: true });
                now.ports.entry(from.node()).or_default().insert(from);
            }
        });
        Ok(())
    }

    fn check_join(&self, a: Egress, b: Egress, rate_bps: u64) -> Result<(), NetworkError> {
        if let Some(linked) = [a, b].into_iter().find(|port| self.now.links.contains_key(port)) {
            return Err(NetworkError::Linked(linked));
        }
        if a == b {
            return Err(NetworkError::Invalid { port: a, what: "it is linked to itself" });
        }
        if rate_bps == 0 {
            return Err(NetworkError::Invalid { port: a, what: "its rate is 0" });
        }
        if self.now.links.len() + 2 > EGRESSES_MAX {
            return Err(NetworkError::Full("ports"));
        }
        Ok(())
    }

    /// Sets both directions of a link up or down.
    ///
    /// # Errors
    /// The port has no link.
    pub fn set_up(&mut self, port: Egress, is_up: bool) -> Result<(), NetworkError> {
        let back = self.now.link(port).ok_or(NetworkError::NoLink(port))?.back;
        self.change(|now| {
            for end in [port, back] {
                if let Some(link) = now.links.get_mut(&end) {
                    link.is_up = is_up;
                }
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_BPS: u64 = 1_000_000_000;

    fn network() -> Network {
        let model = Arc::new(SwitchModel::built_in("generic-hardware").expect("the model is built in"));
        let mut network = Network::default();
        network.add_switch(1, Arc::clone(&model)).expect("the network accepts the switch");
        network.add_switch(2, model).expect("the network accepts the switch");
        network.link([(1, 1), (2, 1)], RATE_BPS, 50).expect("the ports are free");
        network
    }

    fn interface() -> HostInterface {
        HostInterface { queues: vec![Depth::UNLIMITED], foreign_frame_len: 1514 }
    }

    #[test]
    fn snapshot_is_immutable() {
        let mut network = network();
        let before = network.snapshot();
        let port = Egress::Switch(PortRef::new(2, 1));
        network.set_up(port, false).expect("the port has a link");
        let after = network.snapshot();
        assert!(after.version() > before.version());
        assert_eq!(before.neighbors(Node::Switch(1)).count(), 1);
        assert_eq!(after.neighbors(Node::Switch(1)).count(), 0, "both directions are down");
    }

    #[test]
    fn delay_of_a_port_is_cable_and_forwarding_of_the_next_switch() {
        let mut network = network();
        network.attach(HostId(7), interface(), (1, 2), RATE_BPS, 10).expect("the port is free");
        let snapshot = network.snapshot();
        let port = |egress| snapshot.port(egress).expect("the port has a link");
        let between = port(Egress::Switch(PortRef::new(1, 1)));
        assert_eq!((between.delay_ns_min, between.delay_ns), (550, 10_050));
        assert_eq!(port(Egress::Host(HostId(7))).delay_ns, 10_010);
        assert_eq!(port(Egress::Switch(PortRef::new(1, 2))).delay_ns, 10, "the host receives it");
    }

    #[test]
    fn invalid_changes_leave_the_network_unchanged() {
        let mut network = network();
        let before = network.snapshot();
        let free = (2, 9);
        assert_eq!(
            network.link([(1, 1), free], RATE_BPS, 0),
            Err(NetworkError::Linked(Egress::Switch(PortRef::new(1, 1))))
        );
        assert_eq!(network.link([(3, 1), free], RATE_BPS, 0), Err(NetworkError::NoSwitch(3)));
        assert!(matches!(network.link([free, (1, 9)], 0, 0), Err(NetworkError::Invalid { .. })));
        assert!(matches!(network.link([free, free], RATE_BPS, 0), Err(NetworkError::Invalid { .. })));
        let none = HostInterface { queues: vec![], ..interface() };
        assert!(matches!(network.attach(HostId(1), none, free, RATE_BPS, 0), Err(NetworkError::Invalid { .. })));
        assert!(network.set_up(Egress::Host(HostId(1)), false).is_err());
        assert_eq!(network.snapshot(), before);
    }
}
