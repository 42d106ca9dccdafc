//! Plans: the requested properties, the necessary changes, and the missing features.
//!
//! | module | content |
//! |---|---|
//! | [`processors`] | processors and the kernel |
//! | [`network`] | sockets and the interface |
//! | [`traffic`] | queues and classes of the interface for marked traffic |
//! | [`schedule`] | transmission times of marked traffic |
//! | [`trees`] | the queueing disciplines for it |

mod network;
mod processors;
pub mod schedule;
mod traffic;
mod trees;

use std::io;

use serde::{Deserialize, Serialize};

use crate::facts::{Facts, list};
use crate::machine::Machine;
use crate::route::Groups;
use crate::setting::Setting;
use schedule::{Gate, LaunchTime};

/// Supported line rates, in bits per second. Beyond the maximum, the kernel's 32-bit numbers of
/// octets per second overflow.
const LINE_RATES: std::ops::RangeInclusive<u64> = 64_000..=34_000_000_000;

/// Maximum number of entries of a gate schedule, which the kernel receives in one message.
const GATES_MAX: usize = 256;

/// Maximum launch lead time, in nanoseconds. A longer one exceeds any cycle.
const LAUNCH_DELTA_MAX_NS: u32 = 1_000_000_000;

/// Requested properties of real-time traffic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// Processors for real-time threads only. Empty if no processor is reserved.
    pub cpus: Vec<usize>,
    /// Whether to create an isolated control group of these processors. Programs have to be started
    /// in it.
    pub has_control_group: bool,
    /// Interface of the real-time traffic. The following properties refer to this interface.
    pub interface: Option<String>,
    /// Queue for real-time traffic only.
    pub queue: Option<u32>,
    /// DSCPs of marked traffic, 0 to 63. Without marks, traffic sent by `cpus` uses the queue.
    pub dscp: Vec<u8>,
    /// PCPs of 802.1Q tags of marked traffic, 0 to 7.
    pub pcp: Vec<u8>,
    /// Rate of the link, in bits per second. Marked frames take precedence when it is saturated.
    pub line_rate_bits: Option<u64>,
    /// Whether the network card implements queues, gate schedule and launch times as far as it can.
    pub has_offload: bool,
    /// Cyclic gate schedule of outgoing frames. Empty if frames may leave at any time.
    pub gates: Vec<Gate>,
    /// Start of the first entry of the gate schedule, possibly in the past: TAI, in nanoseconds.
    pub base_time_ns: i64,
    /// Launch times of marked frames.
    pub launch_time: Option<LaunchTime>,
    /// Multicast groups that are routed over the interface.
    pub groups: Vec<Groups>,
    /// Time for which sockets poll the driver before they sleep, in microseconds.
    pub busy_poll_us: Option<u32>,
}

impl Request {
    fn has_marks(&self) -> bool {
        !self.dscp.is_empty() || !self.pcp.is_empty()
    }

    /// Returns a contradiction that does not depend on the machine.
    fn contradiction(&self) -> Option<&'static str> {
        let of_interface = self.queue.is_some() || self.has_marks() || self.line_rate_bits.is_some();
        if self.interface.is_none() && (of_interface || !self.groups.is_empty()) {
            return Some("queue, marks, line rate and groups require --interface");
        }
        if self.has_control_group && self.cpus.is_empty() {
            return Some("a control group requires processors: add --cpus");
        }
        if self.dscp.iter().any(|dscp| *dscp > 63) || self.pcp.iter().any(|pcp| *pcp > 7) {
            return Some("the maximum DSCP is 63, the maximum PCP 7");
        }
        if self.has_marks() && self.queue.is_none() && self.line_rate_bits.is_none() {
            return Some("marks require a queue or a line rate: add --queue or --line-rate");
        }
        if self.queue.is_some() && !self.has_marks() && self.cpus.is_empty() {
            return Some("a queue requires marks or processors: add --dscp, --pcp or --cpus");
        }
        self.schedule_contradiction().or_else(|| self.rate_contradiction())
    }

    fn schedule_contradiction(&self) -> Option<&'static str> {
        let has_times = !self.gates.is_empty() || self.launch_time.is_some();
        if (has_times || self.has_offload) && (self.queue.is_none() || !self.has_marks()) {
            return Some(
                "gates, launch times and offload require a queue for marked frames: add --queue with --dscp or --pcp",
            );
        }
        if (has_times || self.has_offload) && self.line_rate_bits.is_some() {
            return Some("a line rate excludes gates, launch times and offload");
        }
        if self.gates.len() > GATES_MAX {
            return Some("a gate schedule has at most 256 entries");
        }
        match self.launch_time {
            Some(launch) if launch.is_assigned_by_schedule && self.gates.is_empty() => {
                Some("launch times from the gate schedule require gates: add --gates")
            }
            Some(launch) if launch.delta_ns > LAUNCH_DELTA_MAX_NS => Some("the launch time lead is at most one second"),
            _ => None,
        }
    }

    fn rate_contradiction(&self) -> Option<&'static str> {
        match self.line_rate_bits {
            Some(_) if !self.has_marks() => Some("a line rate requires marks: add --dscp or --pcp"),
            Some(rate) if !LINE_RATES.contains(&rate) => Some("expected a line rate from 64 kbit/s to 34 Gbit/s"),
            _ => None,
        }
    }
}

/// Change of one setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Changed setting.
    #[serde(rename = "knob")]
    pub setting: Setting,
    /// Present value, for readers of the plan.
    pub from: String,
    /// New value.
    pub to: String,
    /// Purpose of the change.
    pub why: String,
}

/// Feature that this machine lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MissingFeature {
    /// Missing feature.
    pub what: String,
    /// Reason given by the kernel or the driver.
    pub why: String,
    /// Alternative for the user.
    #[serde(rename = "instead")]
    pub alternative: String,
}

/// Changes in the order of their application. As JSON, a plan can be stored, compared and edited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Changes of the plan.
    pub changes: Vec<Change>,
    /// Missing features.
    #[serde(rename = "lacks", default)]
    pub missing_features: Vec<MissingFeature>,
}

/// Error of a request that this machine cannot fulfill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsatisfiable(pub String);

impl std::fmt::Display for Unsatisfiable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsatisfiable {}

impl Plan {
    /// Makes the plan for a request. Reads the machine and changes nothing.
    ///
    /// # Errors
    /// A processor or the interface does not exist, or no processor remains for other work.
    pub fn new(machine: &Machine, facts: &Facts, request: &Request) -> Result<Self, Unsatisfiable> {
        if let Some(why) = request.contradiction() {
            return Err(Unsatisfiable(why.into()));
        }
        if let Some(cpu) = request.cpus.iter().find(|cpu| !facts.cpus.contains(cpu)) {
            return Err(Unsatisfiable(format!(
                "processor {cpu} is not online; the online processors are {}",
                list(&facts.cpus)
            )));
        }
        let others: Vec<usize> = facts.cpus.iter().copied().filter(|cpu| !request.cpus.contains(cpu)).collect();
        if others.is_empty() {
            return Err(Unsatisfiable("at least one processor must remain for other threads".into()));
        }
        let interface = match &request.interface {
            Some(name) => {
                let found = facts.interface(name);
                Some(found.ok_or_else(|| Unsatisfiable(format!("interface {name:?} does not exist")))?)
            }
            None => None,
        };
        let mut planner = Planner { machine, plan: Self::default() };
        planner.sockets(request.busy_poll_us);
        if !request.cpus.is_empty() {
            planner.kernel(facts, request);
            request.cpus.iter().for_each(|cpu| planner.processor(*cpu));
            planner.keep_away(facts, request, &others, interface);
        }
        if let Some(interface) = interface {
            planner.interface(interface, facts, request, &others);
        }
        Ok(planner.plan)
    }
}

/// Builder of a plan.
struct Planner<'a> {
    machine: &'a Machine,
    plan: Plan,
}

impl Planner<'_> {
    /// Adds a change of a setting, unless it already has the value. Adds a missing feature if the
    /// setting does not exist or is read-only.
    fn set(&mut self, setting: Setting, to: &str, why: &str, alternative: &str) {
        match self.machine.read(&setting) {
            Ok(from) if from == to => {}
            Ok(_) if !self.machine.is_settable(&setting) => {
                self.add_missing_feature(&format!("{setting} as {to:?}"), "it is read-only here", alternative);
            }
            Ok(from) => self.change(setting, &from, to, why),
            Err(error) => self.add_missing_feature(&setting.to_string(), &absence(&error), alternative),
        }
    }

    /// Adds a change of a setting that exists, or will exist at that point.
    fn change(&mut self, setting: Setting, from: &str, to: &str, why: &str) {
        self.plan.changes.push(Change { setting, from: from.to_owned(), to: to.to_owned(), why: why.to_owned() });
    }

    fn add_missing_feature(&mut self, what: &str, why: &str, alternative: &str) {
        self.plan.missing_features.push(MissingFeature {
            what: what.into(),
            why: why.into(),
            alternative: alternative.into(),
        });
    }
}

/// Describes why a setting does not exist.
fn absence(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => "not supported by this kernel, driver or machine".into(),
        Some(libc::EOPNOTSUPP) => "not supported by the driver".into(),
        _ => error.to_string(),
    }
}
