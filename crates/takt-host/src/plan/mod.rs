//! What is wished for, the changes that make it so, and what cannot be had.
//!
//! | module | what it is |
//! |---|---|
//! | [`processors`] | processors and the kernel |
//! | [`network`] | the interface |
//! | [`traffic`] | queues and classes of the interface for marked traffic |
//! | [`schedule`] | when that may leave |
//! | [`trees`] | the queueing disciplines for it |

mod network;
mod processors;
pub mod schedule;
mod traffic;
mod trees;

use std::io;

use serde::{Deserialize, Serialize};

use crate::facts::{Facts, list};
use crate::knob::Knob;
use crate::machine::Machine;
use crate::route::Groups;
use schedule::{Gate, LaunchTime};

/// In bits per second. Above, the kernel's numbers of 32 bits for octets per second end.
const LINE_RATES: std::ops::RangeInclusive<u64> = 64_000..=34_000_000_000;

/// Parts of a time table at most: they go to the kernel in one message.
const GATES_MAX: usize = 256;

/// A frame that is handed on earlier would wait for longer than any cycle, in nanoseconds.
const LAUNCH_DELTA_MAX_NS: u32 = 1_000_000_000;

/// What real-time traffic is to have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// Processors that nothing else is to use; empty: nothing is kept away from any.
    pub cpus: Vec<usize>,
    /// A control group of these processors, isolated from all others; programs have to be started in it.
    pub has_control_group: bool,
    /// The interface that it comes and goes by. What follows is of this interface.
    pub interface: Option<String>,
    /// The queue that is for it alone.
    pub queue: Option<u32>,
    /// What it is marked by: DSCPs, 0 to 63. Without marks, what is sent on `cpus` has the queue.
    pub dscp: Vec<u8>,
    /// PCPs of 802.1Q tags likewise, 0 to 7.
    pub pcp: Vec<u8>,
    /// What the link carries, in bits per second: marked frames go first where it is full.
    pub line_rate_bits: Option<u64>,
    /// The network card is to do what it can of queues, time table and times to leave.
    pub has_offload: bool,
    /// When what leaves may leave, again and again; empty: at any time.
    pub gates: Vec<Gate>,
    /// When the first part of the time table begins, or would have begun: TAI, in nanoseconds.
    pub base_time_ns: i64,
    /// Marked frames have a time to leave.
    pub launch_time: Option<LaunchTime>,
    /// Multicast groups that go by the interface.
    pub groups: Vec<Groups>,
    /// For how long sockets poll the driver before they sleep, in microseconds.
    pub busy_poll_us: Option<u32>,
}

impl Wish {
    fn has_marks(&self) -> bool {
        !self.dscp.is_empty() || !self.pcp.is_empty()
    }

    /// What makes no sense whatever the machine is.
    fn contradiction(&self) -> Option<&'static str> {
        let of_interface = self.queue.is_some() || self.has_marks() || self.line_rate_bits.is_some();
        if self.interface.is_none() && (of_interface || !self.groups.is_empty()) {
            return Some("queue, marks, line rate and groups are of an interface");
        }
        if self.has_control_group && self.cpus.is_empty() {
            return Some("a control group is of processors");
        }
        if self.dscp.iter().any(|dscp| *dscp > 63) || self.pcp.iter().any(|pcp| *pcp > 7) {
            return Some("a DSCP is at most 63, a PCP at most 7");
        }
        if self.has_marks() && self.queue.is_none() && self.line_rate_bits.is_none() {
            return Some("marked traffic is to have a queue, or to go first on a link of a given rate");
        }
        if self.queue.is_some() && !self.has_marks() && self.cpus.is_empty() {
            return Some("a queue is for marked traffic, or for what certain processors send");
        }
        self.contradiction_of_times().or_else(|| self.contradiction_of_rate())
    }

    fn contradiction_of_times(&self) -> Option<&'static str> {
        let has_times = !self.gates.is_empty() || self.launch_time.is_some();
        if (has_times || self.has_offload) && (self.queue.is_none() || !self.has_marks()) {
            return Some("time table, times to leave and offload are of a queue for marked frames");
        }
        if (has_times || self.has_offload) && self.line_rate_bits.is_some() {
            return Some("with a line rate, the kernel decides by rates, and neither times nor the card");
        }
        if self.gates.len() > GATES_MAX {
            return Some("a time table has at most 256 parts");
        }
        match self.launch_time {
            Some(launch) if launch.is_by_time_table && self.gates.is_empty() => {
                Some("without a time table there are no times by it")
            }
            Some(launch) if launch.delta_ns > LAUNCH_DELTA_MAX_NS => {
                Some("frames are handed on at most a second before their time")
            }
            _ => None,
        }
    }

    fn contradiction_of_rate(&self) -> Option<&'static str> {
        match self.line_rate_bits {
            Some(_) if !self.has_marks() => Some("of what is not marked, nothing goes first"),
            Some(rate) if !LINE_RATES.contains(&rate) => Some("a line rate is from 64 kbit/s to 34 Gbit/s"),
            _ => None,
        }
    }
}

/// One knob that is to be another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Which one.
    pub knob: Knob,
    /// What it is now, for who reads the plan.
    pub from: String,
    /// What it is to be.
    pub to: String,
    /// What for.
    pub why: String,
}

/// Something that this machine does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lack {
    /// What it is.
    pub what: String,
    /// What the kernel or the driver said.
    pub why: String,
    /// What can be done instead.
    pub instead: String,
}

/// Changes in the order in which they are made. As JSON it can be kept, compared and edited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What is to be another.
    pub changes: Vec<Change>,
    /// What cannot be had.
    #[serde(default)]
    pub lacks: Vec<Lack>,
}

/// A wish that no machine like this can fulfil.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impossible(pub String);

impl std::fmt::Display for Impossible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Impossible {}

impl Plan {
    /// The changes that a wish takes. Looks at the machine and changes nothing.
    ///
    /// # Errors
    /// Processors or an interface that are not there, or no processor left for all else.
    pub fn new(machine: &Machine, facts: &Facts, wish: &Wish) -> Result<Self, Impossible> {
        if let Some(why) = wish.contradiction() {
            return Err(Impossible(why.into()));
        }
        if let Some(cpu) = wish.cpus.iter().find(|cpu| !facts.cpus.contains(cpu)) {
            return Err(Impossible(format!("processor {cpu} is not online; there are {}", list(&facts.cpus))));
        }
        let others: Vec<usize> = facts.cpus.iter().copied().filter(|cpu| !wish.cpus.contains(cpu)).collect();
        if others.is_empty() {
            return Err(Impossible("one processor at least must be left for all else".into()));
        }
        let interface = match &wish.interface {
            Some(name) => {
                let found = facts.interface(name);
                Some(found.ok_or_else(|| Impossible(format!("there is no interface {name:?}")))?)
            }
            None => None,
        };
        let mut planner = Planner { machine, plan: Self::default() };
        planner.sockets(wish.busy_poll_us);
        if !wish.cpus.is_empty() {
            planner.kernel(facts, wish);
            wish.cpus.iter().for_each(|cpu| planner.processor(*cpu));
            planner.keep_away(facts, wish, &others, interface);
        }
        if let Some(interface) = interface {
            planner.interface(interface, facts, wish, &others);
        }
        Ok(planner.plan)
    }
}

/// Gathers what a plan has.
struct Planner<'a> {
    machine: &'a Machine,
    plan: Plan,
}

impl Planner<'_> {
    /// Has a knob set, if it is there and is not so already.
    fn set(&mut self, knob: Knob, to: &str, why: &str, instead: &str) {
        match self.machine.read(&knob) {
            Ok(from) if from == to => {}
            Ok(_) if !self.machine.is_settable(&knob) => {
                self.lack(&format!("{knob} as {to:?}"), "it cannot be set here", instead);
            }
            Ok(from) => self.change(knob, &from, to, why),
            Err(error) => self.lack(&knob.to_string(), &absence(&error), instead),
        }
    }

    /// Has a knob set that is there, or will be by then.
    fn change(&mut self, knob: Knob, from: &str, to: &str, why: &str) {
        self.plan.changes.push(Change { knob, from: from.to_owned(), to: to.to_owned(), why: why.to_owned() });
    }

    fn lack(&mut self, what: &str, why: &str, instead: &str) {
        self.plan.lacks.push(Lack { what: what.into(), why: why.into(), instead: instead.into() });
    }
}

/// Why a knob is not there, for people.
fn absence(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => "this kernel, driver or machine has it not".into(),
        Some(libc::EOPNOTSUPP) => "the driver has it not".into(),
        _ => error.to_string(),
    }
}
