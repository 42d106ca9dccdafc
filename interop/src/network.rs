//! Two hosts on one machine: network namespaces joined by a veth pair with an MTU of 1500 and multicast, or by two such
//! pairs and a switch between them.
//!
//! The link carries 1 Gbit/s where the kernel can shape it (HTB): a sender is then held back by its socket buffer, as by a
//! real network card, instead of flooding the receiver's at the speed of memory. Whoever sends past its kernel's stack (AF_XDP)
//! passes by that as well: for them there is the switch, which has a rate, a queue and faults of its own.
//!
//! The names carry the process id; what a killed run left behind is removed by the next one. Needs root.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::output_of;
use crate::{Error, Result};

/// The interface of a host.
pub const INTERFACE: &str = "veth0";
/// The band that passes 1500 B in 0.6 ms, so that what follows overtakes it.
pub(crate) const LATE_BAND: &str = "1:2";
/// The ports of a switch, named by the host that they lead to.
pub(crate) const PORTS: [&str; 2] = ["to-left", "to-right"];
/// Packets that wait at a port of the switch: more than the largest sample has.
const PORT_QUEUE: &str = "20000";
const PREFIX: &str = "takt-";

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

/// Two namespaces and what joins them; gone when dropped.
#[derive(Debug)]
pub struct Network {
    /// One host.
    pub left: Host,
    /// The other.
    pub right: Host,
    /// What stands between them, if it is not a mere link: a bridge with [`PORTS`].
    switch: Option<Host>,
}

impl Network {
    /// Two hosts at one link. [`Error::Unavailable`] if this machine or this user cannot.
    pub fn new() -> Result<Self> {
        Self::make(false)
    }

    /// Two hosts at a switch. [`Error::Unavailable`] if this machine or this user cannot.
    pub fn switched() -> Result<Self> {
        Self::make(true)
    }

    /// Takes the ports `to-left` and `to-right` out of the switch, for a program that forwards in its place; the name of the
    /// namespace that has them. The hosts compute checksums themselves, as a frame that a program reads has to have one.
    pub fn unplug_switch(&self) -> Result<String> {
        let Some(switch) = &self.switch else { return Err(Error::Unavailable("no switch".into())) };
        for port in PORTS {
            switch.run(&["ip", "link", "set", port, "nomaster"])?;
        }
        for host in [&self.left, &self.right] {
            host.run(&["ethtool", "-K", INTERFACE, "tx", "off"])?;
        }
        Ok(switch.namespace.clone().unwrap_or_default())
    }

    fn make(is_switched: bool) -> Result<Self> {
        static NETWORKS: AtomicU32 = AtomicU32::new(0);
        remove_stale();
        let number = NETWORKS.fetch_add(1, Ordering::Relaxed);
        let host = |side: &str, last| Host {
            namespace: Some(format!("{PREFIX}{}-{number}{side}", std::process::id())),
            address: Ipv4Addr::new(10, 77, 0, last),
        };
        let switch = is_switched.then(|| host("s", 254));
        let network = Self { left: host("l", 1), right: host("r", 2), switch };
        network.build().map_err(|error| {
            Error::Unavailable(format!("no network namespaces (they need root and iproute2): {error}"))
        })?;
        Ok(network)
    }

    /// The bridge between the hosts, if there is one.
    pub(crate) fn switch(&self) -> Option<&Host> {
        self.switch.as_ref()
    }

    fn build(&self) -> Result<()> {
        let (Some(left), Some(right)) = (&self.left.namespace, &self.right.namespace) else { return Ok(()) };
        ip(&["netns", "add", left])?;
        ip(&["netns", "add", right])?;
        match self.switch.as_ref().and_then(|switch| switch.namespace.as_ref()) {
            None => join((left, INTERFACE), (right, INTERFACE))?,
            Some(switch) => {
                ip(&["netns", "add", switch])?;
                // Groups are flooded: nobody asks who is a member.
                ip(&["-n", switch, "link", "add", "switch", "type", "bridge", "mcast_snooping", "0"])?;
                ip(&["-n", switch, "link", "set", "switch", "up"])?;
                for (host, port) in [left, right].into_iter().zip(PORTS) {
                    join((host, INTERFACE), (switch, port))?;
                    ip(&["-n", switch, "link", "set", port, "master", "switch", "up"])?;
                }
            }
        }
        for (host, namespace) in [(&self.left, left), (&self.right, right)] {
            let address = format!("{}/24", host.address);
            ip(&["-n", namespace, "addr", "add", &address, "dev", INTERFACE])?;
            ip(&["-n", namespace, "link", "set", "lo", "up"])?;
            // Trains of datagrams are cut apart before the device, as on a wire, so that a recording shows what they are.
            ip(&["-n", namespace, "link", "set", INTERFACE, "gso_max_segs", "1"])?;
            ip(&["-n", namespace, "link", "set", INTERFACE, "up"])?;
            ip(&["-n", namespace, "route", "add", "224.0.0.0/4", "dev", INTERFACE])?;
            // Without it the tests still hold, but a large best-effort sample may find no receiver fast enough.
            if let Err(error) = shape(host, INTERFACE) {
                eprintln!("the link is not shaped: {error}");
            }
        }
        self.activate()?;
        for port in self.switch.iter().flat_map(|_| PORTS) {
            let switch = self.switch.as_ref().expect("it has ports");
            let queued = shape(switch, port).and_then(|()| {
                let queue = ["tc", "qdisc", "add", "dev", port, "parent", "1:1", "pfifo", "limit", PORT_QUEUE];
                switch.run(&queue).map(drop)
            });
            if let Err(error) = queued {
                eprintln!("the switch is not shaped: {error}");
            }
        }
        Ok(())
    }

    /// Makes all interfaces transmit now. The end of a link that came up first drops what it sends until the kernel has handled
    /// the change of its carrier, once a second for all interfaces; a query of one handles that one's at once (from Linux 6.8).
    fn activate(&self) -> Result<()> {
        let of_hosts = [&self.left, &self.right].map(|host| (host, INTERFACE));
        let of_switch =
            self.switch.iter().flat_map(|switch| PORTS.into_iter().chain(["switch"]).map(move |port| (switch, port)));
        for (host, interface) in of_hosts.into_iter().chain(of_switch) {
            if let Some(namespace) = &host.namespace {
                ip(&["-n", namespace, "link", "show", "dev", interface])?;
            }
        }
        Ok(())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in [&self.left, &self.right].into_iter().chain(&self.switch) {
            if let Some(namespace) = &host.namespace {
                remove(namespace);
            }
        }
    }
}

/// A veth pair between two namespaces.
fn join((here, one): (&str, &str), (there, other): (&str, &str)) -> Result<()> {
    ip(&[
        "link", "add", one, "mtu", "1500", "netns", here, "type", "veth", "peer", "name", other, "mtu", "1500",
        "netns", there,
    ])
    .map(drop)
}

/// Gives what leaves by an interface two bands: the usual one, and a slow one for datagrams that shall be late.
fn shape(host: &Host, interface: &str) -> Result<()> {
    let htb = |words: &[&str]| host.run(&[&["tc"], words].concat()).map(drop);
    htb(&["qdisc", "add", "dev", interface, "root", "handle", "1:", "htb", "default", "1"])?;
    let class = ["class", "add", "dev", interface, "parent", "1:", "classid"];
    htb(&[&class[..], &["1:1", "htb", "rate", "1gbit", "quantum", "60000"]].concat())?;
    htb(&[&class[..], &[LATE_BAND, "htb", "rate", "20mbit", "quantum", "1500"]].concat())
}

fn ip(arguments: &[&str]) -> Result<String> {
    output_of(Command::new("ip").args(arguments))
}

/// Best effort: it may not exist, or another process may be doing the same.
fn remove(namespace: &str) {
    let result = ip(&["netns", "del", namespace]);
    drop(result);
}

/// Removes namespaces of processes that are no more.
fn remove_stale() {
    let Ok(list) = ip(&["netns", "list"]) else { return };
    for name in list.lines().filter_map(|line| line.split_whitespace().next()) {
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|id| id.parse::<u32>().is_ok() && !Path::new("/proc").join(id).exists()) {
            remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
