//! Analysis of flows through switches: ports with strict priority without preemption, FIFO within a
//! class.
//!
//! Every queue (a class at a port) has a delay budget. The arrivals of a flow at a hop follow from
//! its arrivals at the first hop and the budgets of the previous hops. A network is feasible if
//! three conditions hold: every queue keeps its budget under the arrivals that follow from the
//! budgets, no queue exceeds its depth, and every flow's end-to-end bound is within its limit. The
//! proof is an induction over time: as long as no frame was late, arrivals are as assumed, so the
//! next frame is not late. It also holds for routes with cycles.
//!
//! | module | content |
//! |---|---|
//! | [`queue`] | delay and backlog of one queue: total-flow analysis with the rates of the input links |
//! | [`separated`] | end-to-end bound that counts a flow's burst once: separated-flow analysis |
//! | [`admission`] | admission and removal of flows; examines only the ports on the route |
//! | `simulation` (a feature, for tests) | frame-by-frame simulation of flows |
//! | [`check`] | the checker of a [`NetworkCertificate`], with arithmetic of its own |
//!
//! Methods: Le Boudec, Thiran, "Network Calculus" (2001), chapters 1 and 6 (FIFO and strict
//! priority servers, packetizers); Thomas, Le Boudec, Mifdaoui, "On Cyclic Dependencies and
//! Regulators in Time-Sensitive Networks" (RTSS 2019) for the induction; Grieu (2004) for the rate
//! of the input link as an arrival bound.
//!
//! Units: nanoseconds, octets and bits per second, in `u64`. A frame's length counts from its
//! destination address to the end of its payload, without FCS;
//! [`frame_time_ns`](crate::link::frame_time_ns) adds FCS, preamble and gap.

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

/// Maximum number of classes of a port.
pub const CLASSES_MAX: usize = 8;

/// Maximum number of hops of a flow.
pub const HOPS_MAX: usize = 64;

/// Output port of a switch, or the interface of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Name for display.
    pub name: String,
    /// Rate of the link in bits per second.
    pub rate_bps: u64,
    /// Maximum length of a frame without contract, in octets. Such frames are served after all
    /// classes.
    pub foreign_frame_len: u64,
    /// Depths of the queues, the most urgent one first. At least 1, at most [`CLASSES_MAX`].
    pub classes: Vec<Depth>,
    /// Maximum delay from the end of a frame on the link to its arrival in the next queue or at the
    /// receiver, in nanoseconds: cable and forwarding.
    #[serde(default)]
    pub delay_ns: u64,
    /// Minimum delay, in nanoseconds.
    #[serde(default)]
    pub delay_ns_min: u64,
}

/// Depth of a queue, including the frame on the link. Frames that exceed either limit are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Depth {
    /// Octets of frames, without FCS.
    #[serde(default = "no_limit")]
    pub octets: u64,
    /// Number of frames.
    #[serde(default = "no_limit")]
    pub frames: u64,
}

const fn no_limit() -> u64 {
    u64::MAX
}

impl Depth {
    /// Depth of a queue that never overflows.
    pub const UNLIMITED: Self = Self { octets: u64::MAX, frames: u64::MAX };
}

/// Frames of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frames {
    /// Length of each frame in octets, without FCS.
    pub len: u64,
    /// Number of frames, at least 1.
    pub count: u64,
}

/// Queue on the route of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// Index of the port.
    pub port: usize,
    /// Index of the class at that port.
    pub class: usize,
}

/// Flow of events (samples) whose frames pass the same queues in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Name for display.
    pub name: String,
    /// Arrival bound at the first queue.
    pub arrivals: Arrivals,
    /// Frames of one event. All arrive at the time of the event, or within the jitter.
    pub frames: Vec<Frames>,
    /// Route: at least one hop, no port twice. Each hop follows the previous one, unless `branches`
    /// says otherwise.
    pub hops: Vec<Hop>,
    /// Hops at which frames are copied for several receivers; empty for one receiver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<Branch>,
    /// Limit in nanoseconds, from the arrival of the event at the first queue to the arrival of its
    /// last frame at the last receiver.
    pub limit_ns: u64,
}

/// Hop that does not follow the previous one in the list: a copy of each frame goes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// Index of the hop.
    pub at: usize,
    /// Index of the hop that it follows, which is earlier in the list.
    pub after: usize,
}

impl Flow {
    /// Returns the index of the hop before hop `n`; `None` for the source.
    pub fn before(&self, n: usize) -> Option<usize> {
        let branch = self.branches.iter().find(|branch| branch.at == n);
        branch.map(|branch| branch.after).or(n.checked_sub(1))
    }

    /// Returns the indexes of the hops that send to a receiver.
    pub fn receiver_hops(&self) -> impl Iterator<Item = usize> {
        let is_leaf = |n: &usize| (n + 1..self.hops.len()).all(|next| self.before(next) != Some(*n));
        (0..self.hops.len()).filter(is_leaf)
    }

    /// Returns the length of the longest path from the source to a receiver, given the time of each
    /// hop.
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

    /// Checks the description against the ports.
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
    /// Checks the description.
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

/// Flows in a network with the proof of their bounds; see [`check`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkCertificate {
    /// The ports.
    pub ports: Vec<Port>,
    /// The admitted flows.
    pub flows: Vec<Flow>,
    /// Claims about the queues by port and class.
    pub queues: Vec<Vec<QueueClaim>>,
    /// Claims about the flows.
    pub bounds: Vec<FlowBound>,
}

/// Claim about one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueClaim {
    /// Budget in nanoseconds: the maximum time from the arrival of a frame to its last bit on the
    /// link.
    pub delay_ns: u64,
    /// Maximum busy period of this class and above, in nanoseconds.
    pub busy_ns: u64,
    /// Intervals of the busy period, each with the latest start of a frame that arrives in it.
    pub intervals: Vec<Interval>,
}

/// Frames that arrive in a part of a busy period. The interval ends where the next one begins; the
/// last one ends with the busy period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Start of the interval, from the start of the busy period, in nanoseconds.
    pub from_ns: u64,
    /// Latest start of transmission of the last of these frames, in nanoseconds.
    pub start_ns: u64,
}

/// Claim about one flow, from its arrival at the first queue to its arrival at the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowBound {
    /// Sum of budgets and delays, in nanoseconds.
    pub total_ns: u64,
    /// Bound of separated-flow analysis in nanoseconds, if there is one.
    pub separated_ns: Option<u64>,
}

impl FlowBound {
    /// Returns the smaller of both bounds.
    pub fn bound_ns(&self) -> u64 {
        self.separated_ns.map_or(self.total_ns, |separated_ns| separated_ns.min(self.total_ns))
    }
}

/// Reason why a queue has no bound or overflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueFault {
    /// The queue has no bound.
    Unbounded(Unbounded),
    /// The queue may exceed its depth.
    Overflow {
        /// Maximum backlog in octets.
        octets: u64,
        /// Maximum backlog in frames.
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
