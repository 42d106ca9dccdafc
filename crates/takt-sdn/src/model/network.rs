//! Switches, ports, links and hosts, in versions.
//!
//! Each change makes a new version. A [`Snapshot`] is one version; it is shared, and does not change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use takt_calculus::network::{CLASSES_MAX, Depth, Port};

use super::switch::SwitchModel;
use crate::PortRef;

/// Switches at most.
pub const SWITCHES_MAX: usize = 1024;

/// Hosts at most.
pub const HOSTS_MAX: usize = 65_536;

/// Ports that send, of switches and hosts together, at most.
pub const EGRESSES_MAX: usize = 4 * HOSTS_MAX;

/// A host: the MAC address of its interface, as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u64);

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let octets = self.0.to_be_bytes();
        let octets: Vec<String> = octets[2..].iter().map(|octet| format!("{octet:02x}")).collect();
        write!(f, "host {}", octets.join(":"))
    }
}

/// What links join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A switch, by its datapath id.
    Switch(u64),
    /// A host.
    Host(HostId),
}

/// A port that sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Egress {
    /// Of a switch.
    Switch(PortRef),
    /// The interface of a host.
    Host(HostId),
}

impl Egress {
    /// Whose port it is.
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

/// How a host sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostInterface {
    /// The queues with contracts, the most urgent first, served by strict priority. One for an interface that knows no classes.
    pub queues: Vec<Depth>,
    /// Longest frame without a contract, without FCS.
    pub foreign_frame_len: u64,
}

/// One direction of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where it ends.
    pub to: Node,
    /// The port that sends in the other direction.
    pub back: Egress,
    /// Rate of both directions.
    pub rate_bps: u64,
    /// Time of a bit on the cable.
    pub cable_ns: u64,
    /// Whether frames pass.
    pub is_up: bool,
}

/// One version of a network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    version: u64,
    switches: BTreeMap<u64, Arc<SwitchModel>>,
    hosts: BTreeMap<HostId, HostInterface>,
    links: BTreeMap<Egress, Link>,
    /// The ports of each node.
    ports: BTreeMap<Node, BTreeSet<Egress>>,
}

/// What is wrong with a change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkError {
    /// There are as many as there may be.
    Full(&'static str),
    /// There is no such switch.
    NoSwitch(u64),
    /// There is no such link.
    NoLink(Egress),
    /// The port has a link already.
    Linked(Egress),
    /// The host is attached already.
    Attached(HostId),
    /// The port makes no sense.
    Nonsense {
        /// Which.
        port: Egress,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(what) => write!(f, "the network has as many {what} as it may have"),
            Self::NoSwitch(dpid) => write!(f, "switch {dpid:016x} is not known"),
            Self::NoLink(port) => write!(f, "{port} has no link"),
            Self::Linked(port) => write!(f, "{port} has a link already"),
            Self::Attached(host) => write!(f, "{host} is attached already"),
            Self::Nonsense { port, what } => write!(f, "{port}: {what}"),
        }
    }
}

impl std::error::Error for NetworkError {}

impl Snapshot {
    /// Which version it is. Later ones have larger numbers.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The model of a switch.
    pub fn switch(&self, dpid: u64) -> Option<&SwitchModel> {
        self.switches.get(&dpid).map(AsRef::as_ref)
    }

    /// The switches.
    pub fn switches(&self) -> impl Iterator<Item = (u64, &SwitchModel)> {
        self.switches.iter().map(|(dpid, model)| (*dpid, model.as_ref()))
    }

    /// The hosts.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> {
        self.hosts.keys().copied()
    }

    /// The link that a port sends by.
    pub fn link(&self, port: Egress) -> Option<&Link> {
        self.links.get(&port)
    }

    /// The ports of a node whose links are up, and where these end.
    pub fn neighbours(&self, node: Node) -> impl Iterator<Item = (Egress, Node)> {
        let ports = self.ports.get(&node).into_iter().flatten();
        ports.filter_map(|port| Some((*port, self.links.get(port).filter(|link| link.is_up)?.to)))
    }

    /// The port as the analysis has it: its queues, that of control traffic last, and the delay until the next queue or the receiving host.
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

/// A network that changes.
#[derive(Debug, Clone, Default)]
pub struct Network {
    now: Arc<Snapshot>,
}

impl Network {
    /// The version that holds now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.now)
    }

    fn change(&mut self, change: impl FnOnce(&mut Snapshot)) {
        let now = Arc::make_mut(&mut self.now);
        change(now);
        now.version += 1;
    }

    /// Takes the place of this network with one that was filled otherwise; whether they differ. Versions go on.
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
    /// There are [`SWITCHES_MAX`] already.
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
    /// A switch is not known, a port has a link, or makes no sense.
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
    /// The switch is not known, the port has a link, the host is attached already, or its interface makes no sense.
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
            return Err(NetworkError::Nonsense { port: own, what: "it has no classes, or more than 8" });
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
            return Err(NetworkError::Nonsense { port: a, what: "it is linked to itself" });
        }
        if rate_bps == 0 {
            return Err(NetworkError::Nonsense { port: a, what: "its rate is 0" });
        }
        if self.now.links.len() + 2 > EGRESSES_MAX {
            return Err(NetworkError::Full("ports"));
        }
        Ok(())
    }

    /// Says that both directions of a link pass frames, or do not.
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
        let model = Arc::new(SwitchModel::built_in("generic-hardware").expect("it is built in"));
        let mut network = Network::default();
        network.add_switch(1, Arc::clone(&model)).expect("there is room");
        network.add_switch(2, model).expect("there is room");
        network.link([(1, 1), (2, 1)], RATE_BPS, 50).expect("they are free");
        network
    }

    fn interface() -> HostInterface {
        HostInterface { queues: vec![Depth::UNLIMITED], foreign_frame_len: 1514 }
    }

    #[test]
    fn snapshot_stays_as_it_was() {
        let mut network = network();
        let before = network.snapshot();
        let port = Egress::Switch(PortRef::new(2, 1));
        network.set_up(port, false).expect("it has a link");
        let after = network.snapshot();
        assert!(after.version() > before.version());
        assert_eq!(before.neighbours(Node::Switch(1)).count(), 1);
        assert_eq!(after.neighbours(Node::Switch(1)).count(), 0, "both directions are down");
    }

    #[test]
    fn delay_of_a_port_is_cable_and_forwarding_of_the_next_switch() {
        let mut network = network();
        network.attach(HostId(7), interface(), (1, 2), RATE_BPS, 10).expect("it is free");
        let snapshot = network.snapshot();
        let port = |egress| snapshot.port(egress).expect("it has a link");
        let between = port(Egress::Switch(PortRef::new(1, 1)));
        assert_eq!((between.delay_ns_min, between.delay_ns), (550, 10_050));
        assert_eq!(port(Egress::Host(HostId(7))).delay_ns, 10_010);
        assert_eq!(port(Egress::Switch(PortRef::new(1, 2))).delay_ns, 10, "the host receives it");
    }

    #[test]
    fn changes_that_make_no_sense_change_nothing() {
        let mut network = network();
        let before = network.snapshot();
        let free = (2, 9);
        assert_eq!(
            network.link([(1, 1), free], RATE_BPS, 0),
            Err(NetworkError::Linked(Egress::Switch(PortRef::new(1, 1))))
        );
        assert_eq!(network.link([(3, 1), free], RATE_BPS, 0), Err(NetworkError::NoSwitch(3)));
        assert!(matches!(network.link([free, (1, 9)], 0, 0), Err(NetworkError::Nonsense { .. })));
        assert!(matches!(network.link([free, free], RATE_BPS, 0), Err(NetworkError::Nonsense { .. })));
        let none = HostInterface { queues: vec![], ..interface() };
        assert!(matches!(network.attach(HostId(1), none, free, RATE_BPS, 0), Err(NetworkError::Nonsense { .. })));
        assert!(network.set_up(Egress::Host(HostId(1)), false).is_err());
        assert_eq!(network.snapshot(), before);
    }
}
