//! Network of the isolation experiment: two hosts and a rate-limited link with two traffic classes,
//! created by `takt-lab`.
//!
//! ```text
//! host A  eth0 ==== link-1  bridge, HTB on both sides  link-2 ==== eth0  host B
//! ```
//!
//! The link stands for a network card and a wire. Whatever leaves a host, also by bypassing its
//! kernel's network stack, is queued here at the line rate. Both leaves of the HTB borrow all their
//! bandwidth from the root, so that the first class is sent before the second whenever it has
//! frames. Frames count with preamble, checksum and gap (24 octets). Each leaf is a FIFO of some
//! hundred frames, as many as a network card has descriptors; when it is full, it drops the
//! arriving frame. A frame arrives at the beginning of its transmission, not at its end.
//!
//! Each interface has [`QUEUES`] queues; frames sent by queue k arrive by queue k. Needs root. The
//! lab has the process ID in its name. Dropping the [`Network`] removes it; after a kill, the next
//! lab does.

use super::countermeasure::{Countermeasure, UnavailableMeasure};
use crate::campaign::End;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::Ipv4Addr;
use takt_host::{Machine, Setting};
use takt_lab::file::SWITCHES;
use takt_lab::{Lab, LabFile};

/// Name of the interface of a host.
pub const INTERFACE: &str = "eth0";
/// Number of queues of each interface. Queue 0 carries only real-time traffic, if a queue is
/// reserved.
pub const QUEUES: usize = 4;
/// TRANSPORT_PRIORITY of real-time traffic, and so its DSCP (Expedited Forwarding).
pub const PRIORITY: i32 = 46;
/// Names of the hosts in the lab file, and their addresses.
const HOSTS: [(&str, Ipv4Addr); 2] = [("a", Ipv4Addr::new(10, 80, 0, 1)), ("b", Ipv4Addr::new(10, 80, 0, 2))];
/// Ports of the link, in the order of the hosts.
const PORTS: [&str; 2] = ["link-1", "link-2"];
/// Queue length of the first class of the link, frames.
const REALTIME_FRAMES: u32 = 256;
/// Further addresses of the first host, for a crowd of participants.
pub const CROWD_ADDRESSES: [Ipv4Addr; 3] =
    [Ipv4Addr::new(10, 80, 0, 11), Ipv4Addr::new(10, 80, 0, 12), Ipv4Addr::new(10, 80, 0, 13)];
/// Driver setting that exists at cards that raise interrupts.
const COALESCING: &str = "ethtool/eth0/rx-usecs";

/// Settings of the link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkPlan {
    /// Line rate in each direction, Mbit/s.
    pub megabits: u32,
    /// Queue length of the class for all other traffic, frames.
    pub frames: u32,
}

/// Traffic that passed the link, by destination host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Octets of frames, plus 24 octets per frame.
    pub octets: [u64; 2],
}

impl LinkCounters {
    /// Returns the rate to each host in Mbit/s since an earlier reading, taken `seconds` before.
    #[must_use]
    pub fn megabits_since(&self, earlier: &Self, seconds: f64) -> [f64; 2] {
        let rate = |side: usize| {
            let octets = self.octets[side].saturating_sub(earlier.octets[side]);
            octets as f64 * 8e-6 / seconds.max(1e-9)
        };
        [rate(0), rate(1)]
    }
}

/// Hosts and link; dropping it removes them.
#[derive(Debug)]
pub struct Network {
    lab: Lab,
    ends: [End; 2],
}

impl LinkPlan {
    /// Returns the lab file.
    fn file(&self, name: &str) -> String {
        let addresses = |side: usize| {
            let crowd = if side == 0 { &CROWD_ADDRESSES[..] } else { &[] };
            let all = std::iter::once(&HOSTS[side].1).chain(crowd);
            all.map(|address| format!("{address}/24")).collect::<Vec<_>>()
        };
        // With dynamic neighbors, address resolution would queue behind the interference.
        let mut text = format!(
            "name = \"{name}\"\nstatic_neighbors = true\n\
             [[classes]]\nname = \"real-time\"\ndscp = [{PRIORITY}]\nframes = {REALTIME_FRAMES}\ndrop_from = \"tail\"\n\
             [[classes]]\nname = \"other\"\nframes = {}\ndrop_from = \"tail\"\n\
             [switches.link]\nkind = \"bridge\"\n",
            self.frames
        );
        for (side, (host, _)) in HOSTS.iter().enumerate() {
            text += &format!(
                "[hosts.{host}]\n{INTERFACE} = {:?}\n\
                 [[links]]\nends = [\"{host}:{INTERFACE}\", \"link\"]\nrate = \"{} Mbit/s\"\nrate_at = \"link\"\n\
                 queues = {QUEUES}\noffloads = [\"checksum\", \"segmentation\"]\n",
                addresses(side),
                self.megabits
            );
        }
        text
    }
}

impl Network {
    /// Creates the network.
    ///
    /// # Errors
    /// The user lacks the privileges, or the machine lacks a kernel feature.
    pub fn new(plan: &LinkPlan) -> Result<Self> {
        let file: LabFile = plan.file(&format!("isolation-{}", std::process::id())).parse()?;
        let lab = Lab::up(&file)?;
        lab.set_filters(false)?;
        let [a, b] = HOSTS;
        let ends = [End::of(&lab, a)?, End::of(&lab, b)?];
        Ok(Self { lab, ends })
    }

    /// Reserves the first class of the link for marked frames, and queue 0 of the hosts for sockets
    /// that select it; or releases both.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn reserve(&self, is_reserved: bool) -> Result<()> {
        self.lab.set_filters(is_reserved)?;
        // The kernel does not select a queue without processors (XPS), as long as other queues have
        // some.
        let others = format!("{:x}", (1_u128 << crate::machine::available_cpus().min(31)) - 1);
        for queue in 0..QUEUES {
            let mask = if is_reserved && queue > 0 { &others } else { "0" };
            let path = format!("/sys/class/net/{INTERFACE}/queues/tx-{queue}/xps_cpus");
            let set = || std::fs::write(&path, mask).and_then(|()| std::fs::read_to_string(&path));
            for (host, _) in HOSTS {
                let found = self.on(host, set).map_err(|why| Error::os(format!("write {mask} to {path}"), why))?;
                if found.trim().trim_start_matches(['0', ',']) != mask.trim_start_matches('0') {
                    return Err(Error::Usage(format!("{path}: expected {mask}, found {found}")));
                }
            }
        }
        Ok(())
    }

    /// Runs `f` on a host, with that host's `/sys`.
    fn on<R: Send>(&self, host: &str, f: impl FnOnce() -> io::Result<R> + Send) -> io::Result<R> {
        self.lab.namespace(host).map_err(io::Error::other)?.run_with_sys(f)?
    }

    /// Returns the measures that the hosts' interfaces do not support.
    #[must_use]
    pub fn unavailable(&self) -> Vec<UnavailableMeasure> {
        let read = || Machine::below("/").read(&COALESCING.parse::<Setting>().map_err(io::Error::other)?);
        let coalescing = match self.on(HOSTS[0].0, read) {
            Ok(_) => "the links of this experiment are virtual, and their coalescing was not tested".to_owned(),
            Err(why) => format!("virtual interfaces raise no interrupts: {COALESCING}: {why}"),
        };
        let mut missing = vec![UnavailableMeasure { measure: Countermeasure::Coalescing, why: coalescing }];
        if let Err(why) = self.reserve(true).and_then(|()| self.reserve(false)) {
            missing.push(UnavailableMeasure { measure: Countermeasure::ReservedQueue, why: why.to_string() });
        }
        missing
    }

    /// Returns the traffic that has passed the link up to now.
    ///
    /// # Errors
    /// The kernel does not report the counters.
    pub fn link_counters(&self) -> Result<LinkCounters> {
        let mut passed = LinkCounters::default();
        for (octets, port) in passed.octets.iter_mut().zip(PORTS) {
            let counters = self.lab.counters(SWITCHES, port)?;
            *octets = counters.sent_octets + 24 * counters.sent_frames;
        }
        Ok(passed)
    }

    /// Returns the hosts.
    #[must_use]
    pub fn ends(&self) -> &[End; 2] {
        &self.ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_lab::plan::Plan;

    #[test]
    fn lab_limits_the_rate_at_the_ports_of_the_bridge() {
        let link = LinkPlan { megabits: 100, frames: 300 };
        let file: LabFile = link.file("isolation-1").parse().expect("the lab file is valid");
        let plan = Plan::new(&file).expect("the plan is valid");
        let shaped: Vec<_> = plan.shaped().map(|end| (end.name.as_str(), end.rate)).collect();
        assert_eq!(shaped, PORTS.map(|port| (port, Some(100_000_000))));
        assert_eq!(plan.neighbors().len(), 2 + CROWD_ADDRESSES.len());
        assert_eq!(file.classes[1].frames, 300);
    }

    #[test]
    fn rates_count_the_octets_between_two_readings() {
        let earlier = LinkCounters { octets: [1_000, 5_000] };
        let later = LinkCounters { octets: [1_001_000, 5_000] };
        assert_eq!(later.megabits_since(&earlier, 2.0), [4.0, 0.0]);
    }
}
