//! Two hosts on one machine, made by `takt-lab`: network namespaces joined by a veth pair with an MTU of 1500 and multicast, or by two
//! such pairs and a switch between them.
//!
//! The link carries 1 Gbit/s (HTB): a sender is held back by its socket buffer, as by a real network card, instead of flooding the
//! receiver's at the speed of memory. Whoever sends past its kernel's stack (AF_XDP) passes by that as well: for them there is the switch,
//! which has a rate, a queue and faults of its own.
//!
//! Labs carry the process id in their names; what a killed run left behind is removed by the next lab. Needs root.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use takt_lab::file::SWITCHES;
use takt_lab::{Lab, LabFile};

use crate::Result;
use crate::error::output_of;

/// The interface of a host.
pub const INTERFACE: &str = "veth0";
/// The class, the first one of the lab, that passes 1500 B in 0.6 ms, so that what follows overtakes it.
pub(crate) const LATE_CLASS: &str = "544b:1";
/// The ports of a switch, that to the left host first.
pub(crate) const PORTS: [&str; 2] = ["switch-1", "switch-2"];
/// The host whose program forwards, if there is one.
const FORWARDER: &str = "forwarder";
/// Hosts and their addresses.
const LEFT: (&str, Ipv4Addr) = ("left", Ipv4Addr::new(10, 77, 0, 1));
const RIGHT: (&str, Ipv4Addr) = ("right", Ipv4Addr::new(10, 77, 0, 2));
/// More frames wait than the largest sample has. What does not fit is refused to its sender.
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
    /// `None`: this machine, and nothing but its loopback interface.
    namespace: Option<String>,
    address: Ipv4Addr,
}

impl Host {
    /// This machine, on which peers talk by unicast over loopback. Needs no privilege.
    pub fn loopback() -> Self {
        Self { namespace: None, address: Ipv4Addr::LOCALHOST }
    }

    /// IPv4 address of its only interface.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Name of its only interface.
    pub fn interface(&self) -> &'static str {
        if self.namespace.is_some() { INTERFACE } else { "lo" }
    }

    /// Whether discovery has to go by unicast.
    pub fn is_loopback(&self) -> bool {
        self.namespace.is_none()
    }

    /// A command that runs on this host. In a namespace it has a `/dev/shm` of its own: shared memory must not be a way
    /// around the network.
    pub fn command(&self, program: &Path) -> Command {
        let Some(namespace) = &self.namespace else { return Command::new(program) };
        let mut command = Command::new("ip");
        let private_memory = "mount -t tmpfs tmpfs /dev/shm && exec \"$@\"";
        command.args(["netns", "exec", namespace, "sh", "-c", private_memory, "sh"]).arg(program);
        command
    }

    /// What this host's kernel has received, sent and dropped: UDP counters, and the queueing disciplines of the interface.
    pub fn counters(&self) -> Result<String> {
        let udp = self.run(&["grep", "^Udp:", "/proc/net/snmp"])?;
        let queues = self.run(&["tc", "-s", "qdisc", "show", "dev", self.interface()])?;
        Ok(udp + &queues)
    }

    /// What this host's kernel has dropped so far, by the names of its counters: datagrams, IP packets, frames.
    pub fn drops(&self) -> Result<Drops> {
        Ok(Drops::of(&self.run(&["cat", "/proc/net/snmp", "/proc/net/dev"])?, self.interface()))
    }

    /// Has one processor receive all frames. The kernel receives on the processor of the sender, so that frames overtake one another
    /// when a sender moves to another one, and a best-effort reader drops those that come late.
    fn keep_order(&self) -> Result<()> {
        const SCRIPT: &str = "for queue in /sys/class/net/*/queues/rx-*; do echo 1 > $queue/rps_cpus; done";
        self.run(&["sh", "-c", SCRIPT]).map(drop)
    }

    /// Runs a command on this host to its end; what it printed.
    pub(crate) fn run(&self, words: &[&str]) -> Result<String> {
        let mut command = self.command(Path::new(words[0]));
        output_of(command.args(&words[1..]))
    }
}

/// The counters of a kernel that say what it has dropped.
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
    /// Columns of `/proc/net/dev` behind the name.
    const OF_INTERFACE: [(usize, &str); 2] = [(3, "rx_dropped"), (11, "tx_dropped")];

    /// From the text of `/proc/net/snmp` and `/proc/net/dev`.
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

    /// The counters that have grown since `before`, and by how much.
    pub fn since(&self, before: &Self) -> Vec<(String, u64)> {
        let grown = |(name, now): (&String, &u64)| {
            let more = now - before.0.get(name).copied().unwrap_or(0).min(*now);
            (more > 0).then(|| (name.clone(), more))
        };
        self.0.iter().filter_map(grown).collect()
    }
}

/// Two hosts and what joins them; gone when dropped.
#[derive(Debug)]
pub struct Network {
    /// One host.
    pub left: Host,
    /// The other.
    pub right: Host,
    /// What stands between them, if it is not a mere link. It has [`PORTS`].
    switch: Option<Host>,
    _lab: Lab,
}

/// What joins the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    Link,
    /// A bridge of the kernel.
    Switch,
    /// A host without addresses.
    Forwarder,
}

impl Network {
    /// Two hosts at one link. [`Unavailable`](crate::Error::Unavailable) if this machine or this user cannot.
    pub fn new() -> Result<Self> {
        Self::make(Between::Link)
    }

    /// Two hosts at a switch. [`Unavailable`](crate::Error::Unavailable) if this machine or this user cannot.
    pub fn switched() -> Result<Self> {
        Self::make(Between::Switch)
    }

    /// Two hosts between which a program of the caller forwards: it runs in [`forwarder`](Self::forwarder), which has an interface to
    /// the left host, `switch-1`, and one to the right host, `switch-2`. The hosts compute checksums themselves, as a frame that a program
    /// reads has to have one. [`Unavailable`](crate::Error::Unavailable) if this machine or this user cannot.
    pub fn forwarded() -> Result<Self> {
        Self::make(Between::Forwarder)
    }

    fn make(between: Between) -> Result<Self> {
        static NETWORKS: AtomicU32 = AtomicU32::new(0);
        let number = NETWORKS.fetch_add(1, Ordering::Relaxed);
        let text = file(&format!("interop-{}-{number}", std::process::id()), between);
        let lab = Lab::up(&text.parse::<LabFile>()?)?;
        let host = |(place, address): (&str, Ipv4Addr)| -> Result<Host> {
            Ok(Host { namespace: Some(lab.namespace_name(place)?.to_owned()), address })
        };
        let switch = match between {
            Between::Link => None,
            Between::Switch => Some(host((SWITCHES, Ipv4Addr::UNSPECIFIED))?),
            Between::Forwarder => Some(host((FORWARDER, Ipv4Addr::UNSPECIFIED))?),
        };
        let network = Self { left: host(LEFT)?, right: host(RIGHT)?, switch, _lab: lab };
        // A switch receives for both hosts: one processor would drop frames of large samples there.
        if between == Between::Link {
            network.left.keep_order()?;
            network.right.keep_order()?;
        }
        Ok(network)
    }

    /// What stands between the hosts, if it is not a mere link.
    pub(crate) fn switch(&self) -> Option<&Host> {
        self.switch.as_ref()
    }

    /// The name of the namespace for the program that forwards; `None` without one.
    pub fn forwarder(&self) -> Option<&str> {
        let name = self.switch.as_ref()?.namespace.as_deref()?;
        name.ends_with(FORWARDER).then_some(name)
    }
}

/// The file of the lab.
fn file(name: &str, between: Between) -> String {
    let mut text = format!("name = \"{name}\"\n{CLASSES}");
    let (ends, offloads) = match between {
        Between::Link => (vec![["left:veth0", "right:veth0"]], "\"checksum\""),
        Between::Switch => {
            text += "[switches.switch]\nkind = \"bridge\"\n";
            (vec![["left:veth0", "switch"], ["right:veth0", "switch"]], "\"checksum\"")
        }
        Between::Forwarder => {
            text += &format!("[hosts.{FORWARDER}]\n{} = []\n{} = []\n", PORTS[0], PORTS[1]);
            (vec![["left:veth0", "forwarder:switch-1"], ["right:veth0", "forwarder:switch-2"]], "")
        }
    };
    for (host, address) in [LEFT, RIGHT] {
        text += &format!("[hosts.{host}]\n{INTERFACE} = [\"{address}/24\"]\n");
    }
    for ends in ends {
        // Trains of datagrams are cut apart before the device, as on a wire, so that a recording shows what they are.
        text += &format!("[[links]]\nends = {ends:?}\nrate = \"1 Gbit/s\"\noffloads = [{offloads}]\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_files_of_labs() {
        for (between, interfaces) in [(Between::Link, 2), (Between::Switch, 4), (Between::Forwarder, 4)] {
            let file: LabFile = file("interop-1-0", between).parse().expect("it is one");
            let plan = takt_lab::plan::Plan::of(&file).expect("it can be made");
            assert_eq!(plan.shaped().count(), interfaces, "{between:?}");
            let ports: Vec<_> = plan.kernel_ports().map(|(end, _)| end.name.as_str()).collect();
            assert!(ports.is_empty() || ports == PORTS, "{between:?}: {ports:?}");
        }
    }

    #[test]
    fn drops_are_read_by_name_and_compared() {
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
