//! Flows through switches: ports that serve classes by strict priority without preemption, FIFO within a class.
//!
//! Every queue (a class at a port) has a delay budget. The arrivals of a flow at a hop follow from its arrivals at the first hop and the
//! budgets of the hops before. A network is feasible if every queue keeps its budget under the arrivals that follow from the budgets, no
//! queue holds more than its depth, and every flow's end-to-end bound is within its limit. That is an induction over time: as long as no
//! frame was late, arrivals are as assumed, so the next frame is not late. It holds for routes with cycles too.
//!
//! | module | what it is |
//! |---|---|
//! | [`queue`] | delay and backlog of one queue: total-flow analysis with the input links' rates |
//! | [`separated`] | end-to-end bound that pays a flow's burst once: separated-flow analysis |
//! | [`admission`] | admits and removes flows one by one; touches the ports on the way alone |
//! | `simulation` (a feature, for tests) | flows frame by frame |
//! | [`check`] | the checker of a [`NetworkCertificate`], with arithmetic of its own |
//!
//! Methods: Le Boudec, Thiran, "Network Calculus" (2001), chapters 1 and 6 (FIFO and strict priority servers, packetisers); Thomas,
//! Le Boudec, Mifdaoui, "On Cyclic Dependencies and Regulators in Time-Sensitive Networks" (RTSS 2019) for the induction; Grieu (2004)
//! for the rate of the input link as a bound of what comes by it.
//!
//! Units: nanoseconds, octets and bits per second, in `u64`. A frame's length counts from its destination address to the end of its
//! payload, without FCS; [`frame_time_ns`](crate::link::frame_time_ns) adds FCS, preamble and gap.

pub mod admission;
pub mod check;
mod journal;
mod load;
pub mod queue;
pub mod separated;
#[cfg(feature = "simulation")]
pub mod simulation;
mod sweep;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::Arrivals;
use crate::server::Unbounded;

pub use admission::{Admission, FlowId, Refused};
pub use check::check;

/// Classes of a port at most.
pub const CLASSES_MAX: usize = 8;

/// Hops of a flow at most.
pub const HOPS_MAX: usize = 64;

/// A port that sends: of a switch, or the interface of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// For people.
    pub name: String,
    /// Rate of the link.
    pub rate_bps: u64,
    /// Longest frame without a contract: such frames are served after all classes.
    pub foreign_frame_len: u64,
    /// The queues, the most urgent first. At least 1, at most [`CLASSES_MAX`].
    pub classes: Vec<Depth>,
    /// From the end of a frame on the link until it is in the next queue, or at the receiver: cable and forwarding. At most.
    #[serde(default)]
    pub delay_ns: u64,
    /// The same, at least.
    #[serde(default)]
    pub delay_ns_min: u64,
}

/// What a queue holds, the frame on the link included. What exceeds either is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Depth {
    /// Octets of frames, without FCS.
    #[serde(default = "no_limit")]
    pub octets: u64,
    /// Frames.
    #[serde(default = "no_limit")]
    pub frames: u64,
}

const fn no_limit() -> u64 {
    u64::MAX
}

impl Depth {
    /// A queue that is never full.
    pub const UNLIMITED: Self = Self { octets: u64::MAX, frames: u64::MAX };
}

/// Frames of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frames {
    /// Octets of each, without FCS.
    pub len: u64,
    /// How many, at least 1.
    pub count: u64,
}

/// A queue on a flow's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// Index of the port.
    pub port: usize,
    /// Index of the class at that port.
    pub class: usize,
}

/// Events (samples) that become frames, which pass the same queues in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// For people.
    pub name: String,
    /// How often events come to the first queue.
    pub arrivals: Arrivals,
    /// The frames of one event. All come at the event's time, or within the jitter.
    pub frames: Vec<Frames>,
    /// The way, at least one hop. No port twice. Each hop follows the one before it, or what `branches` says.
    pub hops: Vec<Hop>,
    /// Where frames are copied for several receivers; none for one receiver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<Branch>,
    /// From the event's arrival at the first queue until its last frame is at the last receiver.
    pub limit_ns: u64,
}

/// A hop of a flow that follows another one than that before it in the list: a copy of each frame goes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// Index of the hop.
    pub at: usize,
    /// Index of the hop that it follows, which stands before it in the list.
    pub after: usize,
}

impl Flow {
    /// Index of the hop that frames come from to hop `n`; `None` for the source.
    pub fn before(&self, n: usize) -> Option<usize> {
        let branch = self.branches.iter().find(|branch| branch.at == n);
        branch.map(|branch| branch.after).or(n.checked_sub(1))
    }

    /// Indices of the hops that send to a receiver.
    pub fn leaves(&self) -> impl Iterator<Item = usize> {
        let is_leaf = |n: &usize| (n + 1..self.hops.len()).all(|next| self.before(next) != Some(*n));
        (0..self.hops.len()).filter(is_leaf)
    }

    /// The longest way from the source to a receiver, if each hop takes so long.
    fn longest_way(&self, time: impl Fn(&Hop) -> u64) -> u64 {
        if self.branches.is_empty() {
            return self.hops.iter().map(time).fold(0, u64::saturating_add);
        }
        let mut until = [0_u64; HOPS_MAX];
        for (n, hop) in self.hops.iter().enumerate() {
            until[n] = self.before(n).map_or(0, |before| until[before]).saturating_add(time(hop));
        }
        until[..self.hops.len()].iter().copied().max().unwrap_or_default()
    }

    /// What is wrong with the description, given the ports.
    pub fn check(&self, ports: &[Port]) -> Result<(), &'static str> {
        let is_hop = |hop: &Hop| ports.get(hop.port).is_some_and(|port| hop.class < port.classes.len());
        let twice = |(n, hop): (usize, &Hop)| self.hops[..n].iter().any(|before| before.port == hop.port);
        if self.arrivals.period_ns == 0 {
            Err("its period is 0")
        } else if self.frames.is_empty() || self.frames.iter().any(|frames| frames.count == 0) {
            Err("it has no frames")
        } else if self.hops.is_empty() || self.hops.len() > HOPS_MAX {
            Err("it has no hops, or more than 64")
        } else if !self.hops.iter().all(is_hop) {
            Err("it passes a port or class that does not exist")
        } else if self.hops.iter().enumerate().any(twice) {
            Err("it passes a port twice")
        } else if !self.branches.iter().all(|branch| branch.after < branch.at && branch.at < self.hops.len()) {
            Err("a branch follows no hop before it")
        } else {
            Ok(())
        }
    }
}

impl Port {
    /// What is wrong with the description.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.rate_bps == 0 {
            Err("its rate is 0")
        } else if self.classes.is_empty() || self.classes.len() > CLASSES_MAX {
            Err("it has no classes, or more than 8")
        } else if self.delay_ns_min > self.delay_ns {
            Err("its longest delay is shorter than its shortest")
        } else {
            Ok(())
        }
    }
}

/// Flows in a network, with what proves their bounds: [`check`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkCertificate {
    /// The ports.
    pub ports: Vec<Port>,
    /// The admitted flows.
    pub flows: Vec<Flow>,
    /// For each port and class what is claimed of the queue.
    pub queues: Vec<Vec<QueueClaim>>,
    /// For each flow what is claimed of it.
    pub bounds: Vec<FlowBound>,
}

/// What is claimed of one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueClaim {
    /// The budget: from a frame's arrival until its last bit is on the link, at most.
    pub delay_ns: u64,
    /// How long frames of this class and above are never absent, at most.
    pub busy_ns: u64,
    /// The busy period in intervals, each with the latest start of a frame that arrives within.
    pub intervals: Vec<Interval>,
}

/// Frames that arrive in a part of a busy period, which ends where the next interval begins, the last one with the busy period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Begin, from the begin of the busy period.
    pub from_ns: u64,
    /// When the last of them begins to be sent, at the latest.
    pub start_ns: u64,
}

/// What is claimed of one flow, from its arrival at the first queue to its arrival at the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowBound {
    /// The sum of budgets and delays.
    pub total_ns: u64,
    /// By separated-flow analysis, if it has a bound.
    pub separated_ns: Option<u64>,
}

impl FlowBound {
    /// The smaller of the two.
    pub fn bound_ns(&self) -> u64 {
        self.separated_ns.map_or(self.total_ns, |separated_ns| separated_ns.min(self.total_ns))
    }
}

/// Why a queue gives no bound, or not the one that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueFault {
    /// It has no bound.
    Unbounded(Unbounded),
    /// It may hold more than its depth.
    Overflow {
        /// Octets that it may have to hold.
        octets: u64,
        /// Frames that it may have to hold.
        frames: u64,
    },
}

impl fmt::Display for QueueFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unbounded(why) => why.fmt(f),
            Self::Overflow { octets, frames } => {
                write!(f, "the queue may have to hold {octets} octets in {frames} frames")
            }
        }
    }
}
