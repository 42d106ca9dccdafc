//! Two hosts, and between them a link with a rate and two classes, as three network namespaces.
//!
//! ```text
//! host A  eth0 ==== l0  link: bridge, HTB on both sides  l1 ==== eth0  host B
//! ```
//!
//! The link is what a network card and a wire are elsewhere: whatever leaves a host, also past its kernel's network stack, waits here for
//! its turn at the line rate. Both leaves of the HTB borrow all they send from the root, so that the first class goes before the second
//! whenever it has something; frames count with preamble, checksum and gap (24 octets). Each leaf is a FIFO of some hundred frames, as many
//! as a network card has descriptors. A frame arrives when its transmission begins and not when it ends.
//!
//! Each interface has [`QUEUES`] queues, and what leaves by queue k arrives by queue k. Needs root, iproute2 and ethtool. The namespaces
//! carry the process id in their names and go with the [`Network`].

use super::measure::{Measure, NotHere};
use crate::campaign::End;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ffi::CString;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The interface of a host.
pub const INTERFACE: &str = "eth0";
/// Queues of each interface. Real-time traffic alone has queue 0, if one is reserved.
pub const QUEUES: usize = 4;
/// The TRANSPORT_PRIORITY, and so the DSCP (Expedited Forwarding), of real-time traffic.
pub const PRIORITY: i32 = 46;
/// The octet of the IP header with that DSCP.
const TOS: &str = "0xb8";
/// The ports of the link, and the host at each.
const PORTS: [&str; 2] = ["l0", "l1"];
/// Frames that the first class of the link holds.
const REALTIME_FRAMES: u32 = 256;
/// Further addresses of the first host, for a crowd of participants.
pub const CROWD_ADDRESSES: [Ipv4Addr; 3] =
    [Ipv4Addr::new(10, 80, 0, 11), Ipv4Addr::new(10, 80, 0, 12), Ipv4Addr::new(10, 80, 0, 13)];

/// What the namespaces' names begin with; the process follows, and which it is.
const NAME: &str = "takt-isolation-";
/// Where iproute2 keeps namespaces.
const NAMESPACES: &str = "/run/netns";

/// What the link is like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkPlan {
    /// Line rate in each direction, Mbit/s.
    pub megabits: u32,
    /// Frames that the class of all other traffic holds.
    pub frames: u32,
}

/// What has passed the link, by the host it came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Octets of frames, with 24 more for each.
    pub octets: [u64; 2],
}

impl Passed {
    /// Mbit/s to each host since an earlier look, which was so many seconds ago.
    #[must_use]
    pub fn megabits_since(&self, earlier: &Self, seconds: f64) -> [f64; 2] {
        let rate = |side: usize| {
            let octets = self.octets[side].saturating_sub(earlier.octets[side]);
            octets as f64 * 8e-6 / seconds.max(1e-9)
        };
        [rate(0), rate(1)]
    }
}

/// Hosts and link; gone when dropped.
#[derive(Debug)]
pub struct Network {
    hosts: [String; 2],
    link: String,
    ends: [End; 2],
}

impl Network {
    /// Makes them.
    ///
    /// # Errors
    /// This user, or this machine, cannot.
    pub fn new(plan: &LinkPlan) -> Result<Self> {
        sweep();
        let name = |what: &str| format!("{NAME}{}{what}", std::process::id());
        let hosts = [name("a"), name("b")];
        let end = |last: u8| End {
            address: Ipv4Addr::new(10, 80, 0, last),
            namespace: CString::new(format!("{NAMESPACES}/{}", hosts[usize::from(last - 1)])).unwrap_or_default(),
        };
        let network = Self { ends: [end(1), end(2)], link: name("l"), hosts };
        let made = network.build(plan);
        made.map(|()| network).map_err(|why| {
            Error::Usage(format!("three network namespaces are needed, and they need root and iproute2: {why}"))
        })
    }

    fn build(&self, plan: &LinkPlan) -> Result<()> {
        let link = self.link.as_str();
        for name in [link, &self.hosts[0], &self.hosts[1]] {
            ip(&["netns", "add", name])?;
        }
        ip(&["-n", link, "link", "add", "br0", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0"])?;
        let queues = QUEUES.to_string();
        let queues = ["numtxqueues", &queues, "numrxqueues", &queues];
        for (host, port) in self.hosts.iter().zip(PORTS) {
            let own = ["link", "add", INTERFACE, "netns", host];
            let peer = ["type", "veth", "peer", "name", port, "netns", link];
            ip(&[&own[..], &queues, &peer, &queues].concat())?;
            ip(&["-n", link, "link", "set", port, "master", "br0"])?;
            ip(&["-n", link, "link", "set", port, "up"])?;
        }
        ip(&["-n", link, "link", "set", "br0", "up"])?;
        for (side, host) in self.hosts.iter().enumerate() {
            ip(&["-n", host, "addr", "add", &format!("{}/24", self.ends[side].address), "dev", INTERFACE])?;
            ip(&["-n", host, "link", "set", "lo", "up"])?;
            ip(&["-n", host, "link", "set", INTERFACE, "up"])?;
        }
        for address in CROWD_ADDRESSES {
            ip(&["-n", &self.hosts[0], "addr", "add", &format!("{address}/24"), "dev", INTERFACE])?;
        }
        self.introduce()?;
        PORTS.iter().try_for_each(|port| self.limit(port, plan))
    }

    /// Tells each host the other's hardware address: asking for it would have to wait behind the interference.
    fn introduce(&self) -> Result<()> {
        for (side, host) in self.hosts.iter().enumerate() {
            let text = ip(&["-n", &self.hosts[1 - side], "-j", "link", "show", "dev", INTERFACE])?;
            let shown: Value = serde_json::from_str(&text).unwrap_or_default();
            let mac = shown[0]["address"].as_str().unwrap_or_default().to_owned();
            let crowd = if side == 1 { &CROWD_ADDRESSES[..] } else { &[] };
            for address in std::iter::once(&self.ends[1 - side].address).chain(crowd) {
                let address = address.to_string();
                let words = ["neigh", "replace", &address, "lladdr", &mac, "nud", "permanent", "dev", INTERFACE];
                ip(&[&["-n", host][..], &words].concat())?;
            }
        }
        Ok(())
    }

    /// The rate and the classes of one direction.
    fn limit(&self, port: &str, plan: &LinkPlan) -> Result<()> {
        let rate = format!("{}mbit", plan.megabits);
        let frames = [REALTIME_FRAMES, plan.frames].map(|frames| frames.to_string());
        let shape = ["ceil", &rate, "burst", "1600", "cburst", "1600", "quantum", "1514", "overhead", "24"];
        let class = |id: &str, parent: &str, rate: &str, priority: &str| {
            let words = ["class", "add", "dev", port, "parent", parent, "classid", id, "htb", "rate", rate];
            let words = [&words[..], &["prio", priority], &shape].concat();
            self.tc(&words)
        };
        self.tc(&["qdisc", "add", "dev", port, "root", "handle", "1:", "htb", "default", "2"])?;
        class("1:ff", "1:", &rate, "0")?;
        class("1:1", "1:ff", "8kbit", "0")?;
        class("1:2", "1:ff", "8kbit", "1")?;
        for (id, frames) in [("1:1", &frames[0]), ("1:2", &frames[1])] {
            self.tc(&["qdisc", "add", "dev", port, "parent", id, "pfifo", "limit", frames])?;
        }
        Ok(())
    }

    fn tc(&self, words: &[&str]) -> Result<()> {
        run("tc", &[&["-n", &self.link][..], words].concat()).map(drop)
    }

    /// Reserves the first class of the link for what is marked, and queue 0 of the hosts for who asks for it; or gives both free.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn reserve(&self, is_reserved: bool) -> Result<()> {
        for port in PORTS {
            if is_reserved {
                let at = ["filter", "replace", "dev", port, "parent", "1:", "handle", "800::1", "protocol", "ip"];
                let what = ["prio", "1", "u32", "match", "ip", "dsfield", TOS, "0xfc", "flowid", "1:1"];
                self.tc(&[&at[..], &what].concat())?;
            } else {
                self.tc(&["filter", "del", "dev", port, "parent", "1:"])?;
            }
        }
        // Of a queue that no processor is said to use the kernel makes no use, as long as there are others.
        let others = format!("{:x}", (1_u128 << crate::machine::available_cpus().min(31)) - 1);
        for side in 0..2 {
            for queue in 0..QUEUES {
                let mask = if is_reserved && queue > 0 { &others } else { "0" };
                let path = format!("/sys/class/net/{INTERFACE}/queues/tx-{queue}/xps_cpus");
                // The shell, because /sys is that of the namespace for programs that are started in it.
                let script = format!("echo {mask} > {path} && cat {path}");
                let found = self.inside(side, "sh", &["-c", &script])?;
                if found.trim().trim_start_matches(['0', ',']) != mask.trim_start_matches('0') {
                    return Err(Error::Usage(format!("{path}: {mask} was written, and it is {found}")));
                }
            }
        }
        Ok(())
    }

    /// Measures that the hosts' interfaces cannot have.
    #[must_use]
    pub fn not_here(&self) -> Vec<NotHere> {
        let coalescing = match self.inside(0, "ethtool", &["-c", INTERFACE]) {
            Ok(_) => "the links of this experiment are virtual, and what theirs would do was never tried".to_owned(),
            Err(why) => {
                let said = why.to_string();
                format!(
                    "virtual interfaces raise no interrupts: ethtool -c: {}",
                    said.rsplit(": ").next().unwrap_or("")
                )
            }
        };
        let mut missing = vec![NotHere { measure: Measure::Coalescing, why: coalescing }];
        if let Err(why) = self.reserve(true).and_then(|()| self.reserve(false)) {
            missing.push(NotHere { measure: Measure::ReservedQueue, why: why.to_string() });
        }
        missing
    }

    /// What has passed the link up to now.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn passed(&self) -> Result<Passed> {
        let mut passed = Passed::default();
        for (side, port) in PORTS.iter().enumerate() {
            let text = ip(&["-n", &self.link, "-s", "-j", "link", "show", "dev", port])?;
            let shown: Value = serde_json::from_str(&text).unwrap_or_default();
            let sent = &shown[0]["stats64"]["tx"];
            let count = |key: &str| sent[key].as_u64().unwrap_or(0);
            passed.octets[side] = count("bytes") + 24 * count("packets");
        }
        Ok(passed)
    }

    /// The hosts.
    #[must_use]
    pub fn ends(&self) -> &[End; 2] {
        &self.ends
    }

    /// Runs a program on one of the hosts, to its end; what it printed.
    fn inside(&self, side: usize, program: &str, words: &[&str]) -> Result<String> {
        ip(&[&["netns", "exec", &self.hosts[side], program][..], words].concat())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in self.hosts.iter().chain([&self.link]) {
            // It may never have been made.
            drop(ip(&["netns", "del", name]));
        }
    }
}

/// Removes the namespaces of processes that were killed before they could.
fn sweep() {
    // Where there is no such directory there are no namespaces.
    let entries = std::fs::read_dir(NAMESPACES).into_iter().flatten().flatten();
    for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        // tidy-allow(dropped-cause): not one of ours.
        let is_left = owner(&name).is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists());
        if is_left {
            drop(ip(&["netns", "del", &name]));
        }
    }
}

/// The process that a namespace of this name belongs to.
fn owner(name: &str) -> Option<u32> {
    let process = name.strip_prefix(NAME)?.trim_end_matches(char::is_alphabetic);
    process.parse().ok() // tidy-allow(dropped-cause): not one of ours.
}

fn ip(words: &[&str]) -> Result<String> {
    run("ip", words)
}

/// Runs a program to its end. What is asked for from the keyboard is for the process that measures alone.
fn run(program: &str, words: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(words).process_group(0);
    let output = command.output().map_err(|e| Error::os(format!("run {program}"), e))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::Usage(format!("{program} {}: {}", words.join(" "), said.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_namespace_is_in_its_name() {
        assert_eq!(owner("takt-isolation-123a"), Some(123));
        assert_eq!(owner("takt-isolation-x"), None);
        assert_eq!(owner("other-123a"), None);
    }

    #[test]
    fn rates_are_of_what_passed_meanwhile() {
        let earlier = Passed { octets: [1_000, 5_000] };
        let later = Passed { octets: [1_001_000, 5_000] };
        assert_eq!(later.megabits_since(&earlier, 2.0), [4.0, 0.0]);
    }
}
