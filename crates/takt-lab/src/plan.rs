//! Namespaces, interfaces, OpenFlow ports and disciplines that follow from a file. Nothing here touches the machine.

use std::collections::{BTreeMap, BTreeSet};

use takt_ovsdb::open_vswitch::FailMode;

use crate::error::{Error, Result};
use crate::file::{self, Address, End, LabFile, SWITCHES};

/// Octets that the kernel charges for a frame of 1,514 octets or less that waits in a discipline: `truesize` of its buffer.
const FRAME_MEMORY: u64 = 2304;

/// Octets that all queues hold at most. The send buffer of Open vSwitch is twice as large, and the kernel has 31 bits for it.
const QUEUE_MEMORY_MAX: u64 = 1_000_000_000;

/// Where an interface is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The host's name, or [`SWITCHES`].
    pub place: String,
    /// The interface's name within its namespace.
    pub name: String,
    /// Its hardware address.
    pub mac: [u8; 6],
    /// Its addresses; a port of a switch has none.
    pub addresses: Vec<Address>,
    /// The switch and its OpenFlow port, of a port of a switch.
    pub port: Option<(String, u32)>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cable {
    /// Its two interfaces.
    pub ends: [Interface; 2],
    /// Its rate, bit/s; `None`: there are no classes.
    pub rate: Option<u64>,
    /// Its MTU, octets.
    pub mtu: u32,
    /// It closes a ring of switches. It is down until the switches have their controllers: an Ethernet switch without one would
    /// circulate frames.
    pub closes_ring: bool,
}

/// A bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// The switch's name.
    pub name: String,
    /// Its OpenFlow datapath identifier.
    pub datapath_id: u64,
    /// Its controller.
    pub controller: Option<String>,
    /// Without a controller.
    pub fail_mode: FailMode,
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Links, in the order of the file.
    pub cables: Vec<Cable>,
    /// Switches.
    pub bridges: Vec<Bridge>,
}

impl Plan {
    /// The plan of a file.
    ///
    /// # Errors
    /// Switches without a controller form a ring; two switches have one datapath identifier; the queues hold more than a socket can.
    pub fn of(file: &LabFile) -> Result<Self> {
        let bridges: Vec<_> =
            file.switches.iter().zip(1..).map(|((name, of), place)| bridge(name, of, place)).collect();
        for (place, one) in bridges.iter().enumerate() {
            if let Some(other) = bridges[..place].iter().find(|other| other.datapath_id == one.datapath_id) {
                let what = format!("switches {} and {} have the datapath_id {}", other.name, one.name, one.datapath_id);
                return Err(Error::File(what));
            }
        }
        let mut ports = BTreeMap::new();
        let mut groups = Groups::default();
        let mut cables = Vec::new();
        for (number, link) in (1_u16..).zip(&file.links) {
            let closes_ring = match &link.ends {
                [End::Switch(one), End::Switch(other)] => !groups.join(one, other),
                _ => false,
            };
            let ends = [0, 1].map(|side| interface(file, &link.ends[side], number, side, &mut ports));
            cables.push(Cable { ends, rate: link.rate.map(|rate| rate.0), mtu: link.mtu, closes_ring });
        }
        let plan = Self { cables, bridges };
        plan.check_rings()?;
        plan.check_queues(file)?;
        Ok(plan)
    }

    fn check_queues(&self, file: &LabFile) -> Result<()> {
        let memory = self.queue_memory(file);
        if memory > QUEUE_MEMORY_MAX {
            return Err(Error::File(format!(
                "the queues of all ports hold {memory} octets, and Open vSwitch sends for all by one socket: {QUEUE_MEMORY_MAX} at most; \
                 give the classes fewer frames, or fewer links a rate"
            )));
        }
        Ok(())
    }

    fn check_rings(&self) -> Result<()> {
        let is_standalone = |name: &str| {
            self.bridges.iter().any(|bridge| bridge.name == name && bridge.fail_mode == FailMode::Standalone)
        };
        for cable in self.cables.iter().filter(|cable| cable.closes_ring) {
            let switches: Vec<_> = cable.ends.iter().filter_map(|end| Some(end.port.as_ref()?.0.as_str())).collect();
            if switches.iter().any(|switch| is_standalone(switch)) {
                return Err(Error::File(format!(
                    "the link {} closes a ring, in which a switch with fail_mode standalone circulates frames: give both \
                     switches fail_mode = \"secure\"",
                    switches.join(" to ")
                )));
            }
        }
        Ok(())
    }

    /// Namespaces by place.
    pub fn namespaces(file: &LabFile) -> BTreeMap<String, String> {
        let places = file.hosts.keys().map(String::as_str).chain([SWITCHES]);
        places.map(|place| (place.to_owned(), format!("takt.{}.{place}", file.name))).collect()
    }

    /// Ports of switches, with their cables.
    pub fn ports(&self) -> impl Iterator<Item = (&Interface, &Cable)> {
        self.cables
            .iter()
            .flat_map(|cable| cable.ends.iter().filter(|end| end.port.is_some()).map(move |end| (end, cable)))
    }

    /// Whether frames from one host to another leave by this port, while links that close rings are down.
    pub fn is_between(&self, port: &Interface, from: &Interface, to: &Interface) -> bool {
        let open = self.cables.iter().filter(|cable| !cable.closes_ring);
        let (of_port, others): (Vec<_>, Vec<_>) = open.partition(|cable| cable.ends.contains(port));
        let Some(far) = of_port.first().and_then(|cable| cable.ends.iter().find(|end| *end != port)) else {
            return false;
        };
        reached(&others, node(port)).contains(&node(from)) && reached(&others, node(far)).contains(&node(to))
    }

    /// Octets that all frames take which wait in the disciplines of the switches, at most. Open vSwitch sends them by one socket.
    pub fn queue_memory(&self, file: &LabFile) -> u64 {
        let frames: u64 = file.classes.iter().map(|class| u64::from(class.frames)).sum();
        let of_port = |cable: &Cable| frames * FRAME_MEMORY.max(2 * u64::from(cable.mtu));
        self.ports().filter(|(_, cable)| cable.rate.is_some()).map(|(_, cable)| of_port(cable)).sum()
    }
}

/// A switch, or an interface of a host: hosts do not forward.
type Node<'a> = (&'a str, Option<&'a str>);

fn node(end: &Interface) -> Node<'_> {
    end.port.as_ref().map_or((end.place.as_str(), Some(end.name.as_str())), |(switch, _)| (switch.as_str(), None))
}

/// What is reached by these cables.
fn reached<'a>(cables: &[&'a Cable], from: Node<'a>) -> BTreeSet<Node<'a>> {
    let mut nodes = BTreeSet::from([from]);
    let mut count = 0;
    while nodes.len() > count {
        count = nodes.len();
        for [one, other] in cables.iter().map(|cable| cable.ends.each_ref().map(node)) {
            if nodes.contains(&one) || nodes.contains(&other) {
                nodes.extend([one, other]);
            }
        }
    }
    nodes
}

fn bridge(name: &str, of: &file::Switch, place: u64) -> Bridge {
    let fail_mode = match of.fail_mode {
        Some(file::FailMode::Standalone) => FailMode::Standalone,
        Some(file::FailMode::Secure) => FailMode::Secure,
        None if of.controller.is_some() => FailMode::Secure,
        None => FailMode::Standalone,
    };
    let datapath_id = of.datapath_id.unwrap_or(place);
    Bridge { name: name.to_owned(), datapath_id, controller: of.controller.clone(), fail_mode }
}

fn interface(file: &LabFile, end: &End, number: u16, side: usize, ports: &mut BTreeMap<String, u32>) -> Interface {
    let [high, low] = number.to_be_bytes();
    match end {
        End::Host { host, interface } => Interface {
            place: host.clone(),
            name: interface.clone(),
            mac: [2, 0, 0, side as u8, high, low],
            addresses: file.hosts[host][interface].clone(),
            port: None,
        },
        End::Switch(switch) => {
            let port = ports.entry(switch.clone()).or_default();
            *port += 1;
            Interface {
                place: SWITCHES.to_owned(),
                name: format!("{switch}-{port}"),
                mac: [2, 1, 0, side as u8, high, low],
                addresses: Vec::new(),
                port: Some((switch.clone(), *port)),
            }
        }
    }
}

/// Switches that are connected with each other.
#[derive(Default)]
struct Groups(BTreeMap<String, usize>);

impl Groups {
    /// Connects two; false if they were.
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
mod tests {
    use super::*;

    const RING: &str = r#"
        name = "ring"
        [switches]
        a = { fail_mode = "secure" }
        b = { fail_mode = "secure" }
        c = { fail_mode = "secure" }
        [[links]]
        ends = ["a", "b"]
        [[links]]
        ends = ["b", "c"]
        [[links]]
        ends = ["c", "a"]
    "#;

    #[test]
    fn ports_are_numbered_in_the_order_of_links() {
        let plan = Plan::of(&RING.parse().expect("a network")).expect("it can be made");
        let ports: Vec<_> = plan.ports().map(|(end, _)| end.name.as_str()).collect();
        assert_eq!(ports, ["a-1", "b-1", "b-2", "c-1", "c-2", "a-2"]);
        assert_eq!(plan.bridges.iter().map(|bridge| bridge.datapath_id).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn last_link_of_a_ring_closes_it_and_needs_secure_switches() {
        let plan = Plan::of(&RING.parse().expect("a network")).expect("it can be made");
        assert_eq!(plan.cables.iter().map(|cable| cable.closes_ring).collect::<Vec<_>>(), [false, false, true]);
        let loose = RING.replace("c = { fail_mode = \"secure\" }", "c = {}");
        let error = Plan::of(&loose.parse().expect("a network")).expect_err("frames would circulate");
        assert!(error.to_string().contains("c to a closes a ring"), "{error}");
    }

    #[test]
    fn port_is_between_hosts_that_only_it_connects() {
        let text = r#"
            name = "ring"
            [hosts]
            left = { eth0 = ["10.7.0.1/24"] }
            right = { eth0 = ["10.7.0.2/24"] }
            [switches]
            s1 = { fail_mode = "secure" }
            s2 = { fail_mode = "secure" }
            s3 = { fail_mode = "secure" }
            [[links]]
            ends = ["s1", "s3"]
            [[links]]
            ends = ["s1", "s2"]
            [[links]]
            ends = ["s2", "s3"]
            [[links]]
            ends = ["left:eth0", "s1"]
            [[links]]
            ends = ["s3", "right:eth0"]
        "#;
        let plan = Plan::of(&text.parse().expect("a network")).expect("it can be made");
        let [left, right] = [&plan.cables[3].ends[0], &plan.cables[4].ends[1]];
        let between = |from, to| {
            let ports = plan.ports().map(|(port, _)| port).filter(|port| plan.is_between(port, from, to));
            ports.map(|port| port.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(between(left, right), ["s1-1", "s3-3"]);
        assert_eq!(between(right, left), ["s3-1", "s1-3"]);
    }

    #[test]
    fn queues_beyond_the_largest_socket_are_refused() {
        let classes = "\n[[classes]]\nname = \"all\"\nframes = 200000\n";
        let limited = RING.replace("ends = [\"a\", \"b\"]", "ends = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"") + classes;
        let error = Plan::of(&limited.parse().expect("a network")).expect_err("1.2 GB");
        assert!(error.to_string().contains("hold 1200000000 octets"), "{error}");
        assert!(Plan::of(&limited.replace("200000", "100000").parse().expect("a network")).is_ok());
    }

    #[test]
    fn equal_datapath_identifiers_are_refused() {
        let twice = RING.replace("a = {", "a = { datapath_id = 2,");
        let error = Plan::of(&twice.parse().expect("a network")).expect_err("b has it");
        assert!(error.to_string().contains("switches a and b have the datapath_id 2"), "{error}");
    }
}
