//! Two hosts, and between them a link with a rate and two classes, made by `takt-lab`.
//!
//! ```text
//! host A  eth0 ==== link-1  bridge, HTB on both sides  link-2 ==== eth0  host B
//! ```
//!
//! The link is what a network card and a wire are elsewhere: whatever leaves a host, also past its kernel's network stack, waits here for
//! its turn at the line rate. Both leaves of the HTB borrow all they send from the root, so that the first class goes before the second
//! whenever it has something; frames count with preamble, checksum and gap (24 octets). Each leaf is a FIFO of some hundred frames, as many
//! as a network card has descriptors, which drops the frame that comes to it when it is full. A frame arrives when its transmission begins
//! and not when it ends.
//!
//! Each interface has [`QUEUES`] queues, and what leaves by queue k arrives by queue k. Needs root. The lab carries the process id in its
//! name and goes with the [`Network`]; after a kill, with the next lab.

use super::measure::{Measure, NotHere};
use crate::campaign::End;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::Ipv4Addr;
use takt_host::{Knob, Machine};
use takt_lab::file::SWITCHES;
use takt_lab::{Lab, LabFile};

/// The interface of a host.
pub const INTERFACE: &str = "eth0";
/// Queues of each interface. Real-time traffic alone has queue 0, if one is reserved.
pub const QUEUES: usize = 4;
/// The TRANSPORT_PRIORITY, and so the DSCP (Expedited Forwarding), of real-time traffic.
pub const PRIORITY: i32 = 46;
/// The hosts in the file of the lab, and their addresses.
const HOSTS: [(&str, Ipv4Addr); 2] = [("a", Ipv4Addr::new(10, 80, 0, 1)), ("b", Ipv4Addr::new(10, 80, 0, 2))];
/// The ports of the link, in the order of the hosts.
const PORTS: [&str; 2] = ["link-1", "link-2"];
/// Frames that the first class of the link holds.
const REALTIME_FRAMES: u32 = 256;
/// Further addresses of the first host, for a crowd of participants.
pub const CROWD_ADDRESSES: [Ipv4Addr; 3] =
    [Ipv4Addr::new(10, 80, 0, 11), Ipv4Addr::new(10, 80, 0, 12), Ipv4Addr::new(10, 80, 0, 13)];
/// A number of the driver that cards have which raise interrupts.
const COALESCING: &str = "ethtool/eth0/rx-usecs";

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
    lab: Lab,
    ends: [End; 2],
}

impl LinkPlan {
    /// The file of the lab.
    fn file(&self, name: &str) -> String {
        let addresses = |side: usize| {
            let crowd = if side == 0 { &CROWD_ADDRESSES[..] } else { &[] };
            let all = std::iter::once(&HOSTS[side].1).chain(crowd);
            all.map(|address| format!("{address}/24")).collect::<Vec<_>>()
        };
        // A host that asked for a hardware address would wait behind the interference.
        let mut text = format!(
            "name = \"{name}\"\nstatic_neighbours = true\n\
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
    /// Makes them.
    ///
    /// # Errors
    /// This user, or this machine, cannot.
    pub fn new(plan: &LinkPlan) -> Result<Self> {
        let file: LabFile = plan.file(&format!("isolation-{}", std::process::id())).parse()?;
        let lab = Lab::up(&file)?;
        lab.set_filters(false)?;
        let [a, b] = HOSTS;
        let ends = [End::of(&lab, a)?, End::of(&lab, b)?];
        Ok(Self { lab, ends })
    }

    /// Reserves the first class of the link for what is marked, and queue 0 of the hosts for who asks for it; or gives both free.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn reserve(&self, is_reserved: bool) -> Result<()> {
        self.lab.set_filters(is_reserved)?;
        // Of a queue that no processor is said to use the kernel makes no use, as long as there are others.
        let others = format!("{:x}", (1_u128 << crate::machine::available_cpus().min(31)) - 1);
        for queue in 0..QUEUES {
            let mask = if is_reserved && queue > 0 { &others } else { "0" };
            let path = format!("/sys/class/net/{INTERFACE}/queues/tx-{queue}/xps_cpus");
            let set = || std::fs::write(&path, mask).and_then(|()| std::fs::read_to_string(&path));
            for (host, _) in HOSTS {
                let found = self.on(host, set).map_err(|why| Error::os(format!("write {mask} to {path}"), why))?;
                if found.trim().trim_start_matches(['0', ',']) != mask.trim_start_matches('0') {
                    return Err(Error::Usage(format!("{path}: {mask} was written, and it is {found}")));
                }
            }
        }
        Ok(())
    }

    /// Runs `f` on a host, with the `/sys` of that.
    fn on<R: Send>(&self, host: &str, f: impl FnOnce() -> io::Result<R> + Send) -> io::Result<R> {
        self.lab.namespace(host).map_err(io::Error::other)?.run_with_sys(f)?
    }

    /// Measures that the hosts' interfaces cannot have.
    #[must_use]
    pub fn not_here(&self) -> Vec<NotHere> {
        let read = || Machine::below("/").read(&COALESCING.parse::<Knob>().map_err(io::Error::other)?);
        let coalescing = match self.on(HOSTS[0].0, read) {
            Ok(_) => "the links of this experiment are virtual, and what theirs would do was never tried".to_owned(),
            Err(why) => format!("virtual interfaces raise no interrupts: {COALESCING}: {why}"),
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
        for (octets, port) in passed.octets.iter_mut().zip(PORTS) {
            let counters = self.lab.counters(SWITCHES, port)?;
            *octets = counters.sent_octets + 24 * counters.sent_frames;
        }
        Ok(passed)
    }

    /// The hosts.
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
    fn link_is_a_lab_with_its_rate_at_the_ports_of_the_bridge() {
        let link = LinkPlan { megabits: 100, frames: 300 };
        let file: LabFile = link.file("isolation-1").parse().expect("it is one");
        let plan = Plan::of(&file).expect("it can be made");
        let shaped: Vec<_> = plan.shaped().map(|end| (end.name.as_str(), end.rate)).collect();
        assert_eq!(shaped, PORTS.map(|port| (port, Some(100_000_000))));
        assert_eq!(plan.neighbours().len(), 2 + CROWD_ADDRESSES.len());
        assert_eq!(file.classes[1].frames, 300);
    }

    #[test]
    fn rates_are_of_what_passed_meanwhile() {
        let earlier = Passed { octets: [1_000, 5_000] };
        let later = Passed { octets: [1_001_000, 5_000] };
        assert_eq!(later.megabits_since(&earlier, 2.0), [4.0, 0.0]);
    }
}
