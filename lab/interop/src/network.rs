//! Network of two hosts on one machine, created with `takt-lab`. The hosts are network namespaces
//! joined by a veth pair with an MTU of 1500 and multicast, or by two such pairs and a switch
//! between them.
//!
//! The link carries 1 Gbit/s (HTB). The socket buffer blocks a fast sender, as with a real network
//! card. Without the limit, the sender would overflow the buffer of the receiver at the speed of
//! memory. AF_XDP bypasses this limit. Tests of AF_XDP use the switch, which has its own rate,
//! queue and faults.
//!
//! The names of labs contain the process id. A lab removes what a killed run left behind. Needs
//! root.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use takt_lab::file::SWITCHES;
use takt_lab::{Lab, LabFile};

use crate::Result;
use crate::error::output_of;

/// Name of the interface of a host.
pub const INTERFACE: &str = "veth0";
/// Traffic class of delayed datagrams, the first class of the lab. It takes 0.6 ms for 1500 B, so
/// that later datagrams overtake.
pub(crate) const LATE_CLASS: &str = "544b:1";
/// Ports of a switch. The first one leads to the left host.
pub(crate) const PORTS: [&str; 2] = ["switch-1", "switch-2"];
/// Name of the host between the others on which a program forwards frames, if there is one.
const FORWARDER: &str = "forwarder";
/// Names and addresses of the hosts.
const LEFT: (&str, Ipv4Addr) = ("left", Ipv4Addr::new(10, 77, 0, 1));
const RIGHT: (&str, Ipv4Addr) = ("right", Ipv4Addr::new(10, 77, 0, 2));
/// Traffic classes of the lab. The queue holds more frames than the largest sample has. Sending
/// beyond that fails at the sender.
const CLASSES: &str = r#"
[[classes]]
name = "late"
by_priority = true
frames = 1000
drop_from = "tail"
ceiling = "20 Mbit/s"
[[classes]]
name = "other"
frames = 20000
drop_from = "tail"
"#;

/// One end of a [`Network`], or this machine itself.
#[derive(Clone, Debug)]
pub struct Host {
    /// Namespace, or `None` for this machine with its loopback interface alone.
    namespace: Option<String>,
    address: Ipv4Addr,
}

impl Host {
    /// Returns this machine, on which peers communicate by unicast over loopback. Needs no
    /// privilege.
    pub fn loopback() -> Self {
        Self { namespace: None, address: Ipv4Addr::LOCALHOST }
    }

    /// Returns the IPv4 address of the only interface.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Returns the name of the only interface.
    pub fn interface(&self) -> &'static str {
        if self.namespace.is_some() { INTERFACE } else { "lo" }
    }

    /// Reports whether discovery must use unicast.
    pub fn is_loopback(&self) -> bool {
        self.namespace.is_none()
    }

    /// Returns a command that runs on this host. In a namespace the command has its own `/dev/shm`,
    /// so that shared memory cannot bypass the network.
    pub fn command(&self, program: &Path) -> Command {
        let Some(namespace) = &self.namespace else { return Command::new(program) };
        let mut command = Command::new("ip");
        let private_memory = "mount -t tmpfs tmpfs /dev/shm && exec \"$@\"";
        command.args(["netns", "exec", namespace, "sh", "-c", private_memory, "sh"]).arg(program);
        command
    }

    /// Returns the UDP counters of the host's kernel and the statistics of the queueing disciplines
    /// of the interface.
    pub fn counters(&self) -> Result<String> {
        let udp = self.run(&["grep", "^Udp:", "/proc/net/snmp"])?;
        let queues = self.run(&["tc", "-s", "qdisc", "show", "dev", self.interface()])?;
        Ok(udp + &queues)
    }

    /// Returns the drop counters of the host's kernel, by name, for datagrams, IP packets and
    /// frames.
    pub fn drops(&self) -> Result<Drops> {
        Ok(Drops::of(&self.run(&["cat", "/proc/net/snmp", "/proc/net/dev"])?, self.interface()))
    }

    /// Assigns the reception of all frames to one processor. By default the kernel receives on the
    /// processor of the sender. Frames are then reordered when a sender migrates, and a best-effort
    /// reader drops the late ones.
    fn receive_on_one_processor(&self) -> Result<()> {
        const SCRIPT: &str = "for queue in /sys/class/net/*/queues/rx-*; do echo 1 > $queue/rps_cpus; done";
        self.run(&["sh", "-c", SCRIPT]).map(drop)
    }

    /// Runs a command on this host to completion and returns its output.
    pub(crate) fn run(&self, words: &[&str]) -> Result<String> {
        let mut command = self.command(Path::new(words[0]));
        output_of(command.args(&words[1..]))
    }
}

/// Drop counters of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drops(BTreeMap<String, u64>);

impl Drops {
    const OF_PROTOCOLS: [(&str, &str); 5] = [
        ("Ip:", "InDiscards"),
        ("Ip:", "OutDiscards"),
        ("Ip:", "ReasmFails"),
        ("Udp:", "RcvbufErrors"),
        ("Udp:", "SndbufErrors"),
    ];
    /// Columns of `/proc/net/dev` after the interface name.
    const OF_INTERFACE: [(usize, &str); 2] = [(3, "rx_dropped"), (11, "tx_dropped")];

    /// Parses the text of `/proc/net/snmp` and `/proc/net/dev`.
    fn of(text: &str, interface: &str) -> Self {
        let mut counters = BTreeMap::new();
        for (protocol, name) in Self::OF_PROTOCOLS {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol));
            let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
            let mut pairs = names.split_whitespace().zip(values.split_whitespace());
            let value = pairs.find(|(known, _)| *known == name).and_then(|(_, value)| value.parse().ok());
            counters.insert(name.to_owned(), value.unwrap_or(0));
        }
        let device = format!("{interface}:");
        let columns = text.lines().find_map(|line| line.trim_start().strip_prefix(&device)).unwrap_or_default();
        for (column, name) in Self::OF_INTERFACE {
            let value = columns.split_whitespace().nth(column).and_then(|value| value.parse().ok());
            counters.insert(name.to_owned(), value.unwrap_or(0));
        }
        Self(counters)
    }

    /// Returns the counters that have increased since `before`, with their increments.
    pub fn since(&self, before: &Self) -> Vec<(String, u64)> {
        let grown = |(name, now): (&String, &u64)| {
            let more = now - before.0.get(name).copied().unwrap_or(0).min(*now);
            (more > 0).then(|| (name.clone(), more))
        };
        self.0.iter().filter_map(grown).collect()
    }
}

/// Two hosts and the link or switch between them. Dropping it removes them.
#[derive(Debug)]
pub struct Network {
    /// Left host.
    pub left: Host,
    /// Right host.
    pub right: Host,
    /// Namespace of the switch or the forwarder, which has [`PORTS`]. `None` for a plain link.
    switch: Option<Host>,
    _lab: Lab,
}

/// Connection between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topology {
    Link,
    /// A bridge of the kernel.
    Switch,
    /// A host without addresses.
    Forwarder,
}

impl Network {
    /// Creates two hosts on one link. Returns [`Unavailable`](crate::Error::Unavailable) if the
    /// machine or the user lacks a prerequisite.
    pub fn new() -> Result<Self> {
        Self::make(Topology::Link)
    }

    /// Creates two hosts on a switch. Returns [`Unavailable`](crate::Error::Unavailable) if the
    /// machine or the user lacks a prerequisite.
    pub fn switched() -> Result<Self> {
        Self::make(Topology::Switch)
    }

    /// Creates two hosts between which a program of the caller forwards frames. The program runs in
    /// [`forwarder`](Self::forwarder), which has the interface `switch-1` to the left host and
    /// `switch-2` to the right host. The hosts compute checksums in software, since the program
    /// reads the frames. Returns [`Unavailable`](crate::Error::Unavailable) if the machine or the
    /// user lacks a prerequisite.
    pub fn forwarded() -> Result<Self> {
        Self::make(Topology::Forwarder)
    }

    fn make(topology: Topology) -> Result<Self> {
        static NETWORKS: AtomicU32 = AtomicU32::new(0);
        let number = NETWORKS.fetch_add(1, Ordering::Relaxed);
        let text = lab_file(&format!("interop-{}-{number}", std::process::id()), topology);
        let lab = Lab::up(&text.parse::<LabFile>()?)?;
        let host = |(place, address): (&str, Ipv4Addr)| -> Result<Host> {
            Ok(Host { namespace: Some(lab.namespace_name(place)?.to_owned()), address })
        };
        let switch = match topology {
            Topology::Link => None,
            Topology::Switch => Some(host((SWITCHES, Ipv4Addr::UNSPECIFIED))?),
            Topology::Forwarder => Some(host((FORWARDER, Ipv4Addr::UNSPECIFIED))?),
        };
        let network = Self { left: host(LEFT)?, right: host(RIGHT)?, switch, _lab: lab };
        // A switch receives for both hosts. On one processor it would drop frames of large samples.
        if topology == Topology::Link {
            network.left.receive_on_one_processor()?;
            network.right.receive_on_one_processor()?;
        }
        Ok(network)
    }

    /// Returns the switch or the forwarder between the hosts; `None` for a plain link.
    pub(crate) fn switch(&self) -> Option<&Host> {
        self.switch.as_ref()
    }

    /// Returns the namespace of the switch or the forwarder; `None` without one.
    pub fn forwarder(&self) -> Option<&str> {
        let name = self.switch.as_ref()?.namespace.as_deref()?;
        name.ends_with(FORWARDER).then_some(name)
    }
}

/// Returns the text of the lab file.
fn lab_file(name: &str, topology: Topology) -> String {
    let mut text = format!("name = \"{name}\"\n{CLASSES}");
    let (ends, offloads) = match topology {
        Topology::Link => (vec![["left:veth0", "right:veth0"]], "\"checksum\""),
        Topology::Switch => {
            text += "[switches.switch]\nkind = \"bridge\"\n";
            (vec![["left:veth0", "switch"], ["right:veth0", "switch"]], "\"checksum\"")
        }
        Topology::Forwarder => {
            text += &format!("[hosts.{FORWARDER}]\n{} = []\n{} = []\n", PORTS[0], PORTS[1]);
            (vec![["left:veth0", "forwarder:switch-1"], ["right:veth0", "forwarder:switch-2"]], "")
        }
    };
    for (host, address) in [LEFT, RIGHT] {
        text += &format!("[hosts.{host}]\n{INTERFACE} = [\"{address}/24\"]\n");
    }
    for ends in ends {
        // Segmentation offload ends before the device, so that a capture shows separate datagrams
        // as on a wire.
        text += &format!("[[links]]\nends = {ends:?}\nrate = \"1 Gbit/s\"\noffloads = [{offloads}]\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_is_a_valid_lab_file() {
        for (topology, interfaces) in [(Topology::Link, 2), (Topology::Switch, 4), (Topology::Forwarder, 4)] {
            let file: LabFile = lab_file("interop-1-0", topology).parse().expect("it is one");
            let plan = takt_lab::plan::Plan::new(&file).expect("it can be made");
            assert_eq!(plan.shaped().count(), interfaces, "{topology:?}");
            let ports: Vec<_> = plan.kernel_ports().map(|(end, _)| end.name.as_str()).collect();
            assert!(ports.is_empty() || ports == PORTS, "{topology:?}: {ports:?}");
        }
    }

    #[test]
    fn drops_parse_by_name_and_give_increments() {
        let text = |dropped: u64| {
            format!(
                "Ip: Forwarding InDiscards OutDiscards ReasmFails\nIp: 1 0 2 0\nUdp: InDatagrams RcvbufErrors \
                 SndbufErrors\nUdp: 9 {dropped} 0\nInter-| Receive\n face |bytes\n    lo: 1 1 0 7 0 0 0 0 1 1 0 7 0 0 0 0\n \
                 veth0: 1 1 0 5 0 0 0 0 1 1 0 6 0 0 0 0\n"
            )
        };
        let [before, after] = [3, 10].map(|dropped| Drops::of(&text(dropped), "veth0"));
        assert_eq!(before.0["rx_dropped"], 5);
        assert_eq!(before.0["tx_dropped"], 6);
        assert_eq!(before.0["OutDiscards"], 2);
        assert_eq!(after.since(&before), [("RcvbufErrors".to_owned(), 7)]);
        assert_eq!(before.since(&before), []);
    }
}
