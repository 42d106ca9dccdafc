//! Analysis of flows over several resources.
//!
//! Events leave a stage with more jitter than they arrive with. The additional jitter may increase
//! delays at other stages, so all stages are computed again until a fixed point is reached.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::Arrivals;
use crate::certificate::{Certificate, FlowClaim, StageClaim};
use crate::server::{self, Job, Response, Unbounded};

/// Maximum number of iterations over all stages.
const ROUNDS_MAX: usize = 1000;

/// Resource that serves one piece of work at a time: an executor's thread, or a network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// Name for display.
    pub name: String,
    /// Maximum lock wait of each piece, in nanoseconds; 0 for a link.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lock_ns: u64,
    /// Server whose lower-priority work periodically precedes more urgent work; none on a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
}

/// Server of one priority: the normal server of an executor. One piece of its work precedes more
/// urgent work after that has kept the resource busy for a period, and another one after each
/// further period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Priority of the server. Jobs above it are delayed.
    pub priority: i32,
    /// Minimum time between the starts of two pieces, in nanoseconds. At least 1.
    pub period_ns: u64,
    /// Maximum execution time of one piece, in nanoseconds.
    pub piece_ns: u64,
}

const fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Resource {
    /// Returns a resource without lock waits and server.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), lock_ns: 0, server: None }
    }

    /// Returns the server with the lock wait of its pieces included.
    fn server_with_lock(&self) -> Option<Server> {
        self.server.map(|server| Server { piece_ns: server.piece_ns.saturating_add(self.lock_ns), ..server })
    }
}

/// Resource on the route of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Index into [`System::resources`].
    pub resource: usize,
    /// Priority; a larger number is more urgent.
    pub priority: i32,
    /// Maximum execution time of one piece, in nanoseconds.
    pub piece_ns: u64,
    /// Minimum execution time of one piece, in nanoseconds.
    #[serde(default)]
    pub piece_ns_min: u64,
    /// Number of pieces of an event. Other work may be served between them.
    #[serde(default = "one")]
    pub pieces: u64,
    /// Maximum delay up to the next stage or the end that uses no resource, in nanoseconds: cables,
    /// interrupts, wake-up latency.
    #[serde(default)]
    pub delay_ns: u64,
    /// Minimum delay, in nanoseconds.
    #[serde(default)]
    pub delay_ns_min: u64,
}

const fn one() -> u64 {
    1
}

/// Events that pass some stages in sequence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Name for display.
    pub name: String,
    /// Arrival bound at the first stage; `None` for events that arrive as fast as they are served.
    pub arrivals: Option<Arrivals>,
    /// Stages, at least one.
    pub stages: Vec<Stage>,
    /// Required limit in nanoseconds, from the arrival at the first stage to the end of the delay
    /// of the last one.
    #[serde(default)]
    pub limit_ns: Option<u64>,
}

/// Flows and the resources that they share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Resources that the flows share.
    pub resources: Vec<Resource>,
    /// Flows in the order of importance: earlier flows are admitted first.
    pub flows: Vec<Flow>,
}

/// Reason why a system has no certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Infeasible {
    /// The description is invalid.
    InvalidDescription {
        /// Index of the flow.
        flow: usize,
        /// Description of the error.
        what: &'static str,
    },
    /// A stage of a flow has no bound.
    Unbounded {
        /// Index of the flow.
        flow: usize,
        /// Index of the stage.
        stage: usize,
        /// Reason.
        why: Unbounded,
    },
    /// The bounds of mutually dependent stages grow without limit.
    Diverges,
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidDescription { flow, what } => write!(f, "flow {flow}: {what}"),
            Self::Unbounded { flow, stage, why } => write!(f, "flow {flow}, stage {stage}: {why}"),
            Self::Diverges => f.write_str("stages that delay each other have no common bound"),
        }
    }
}

impl System {
    /// Checks the description.
    pub fn check(&self) -> Result<(), Infeasible> {
        if self.resources.iter().any(|resource| resource.server.is_some_and(|server| server.period_ns == 0)) {
            return Err(Infeasible::InvalidDescription { flow: 0, what: "the server of a resource has a period of 0" });
        }
        for (at, flow) in self.flows.iter().enumerate() {
            let what = if flow.stages.is_empty() {
                "it has no stage"
            } else if flow.arrivals.is_some_and(|arrivals| arrivals.period_ns == 0) {
                "its period is 0"
            } else if flow.arrivals.is_none() && flow.limit_ns.is_some() {
                "it has a limit, but its arrivals are unbounded"
            } else if flow.stages.iter().any(|stage| stage.resource >= self.resources.len()) {
                "it uses a resource that does not exist"
            } else if flow.stages.iter().any(|stage| stage.pieces == 0) {
                "it has no pieces"
            } else if flow.stages.iter().any(|s| s.piece_ns_min > s.piece_ns || s.delay_ns_min > s.delay_ns) {
                "its longest time is shorter than its shortest"
            } else {
                continue;
            };
            return Err(Infeasible::InvalidDescription { flow: at, what });
        }
        Ok(())
    }
}

impl Stage {
    /// Returns the arrival bound after the stage, for these arrivals and the maximum response time
    /// `response_ns`. `None` beyond `u64`.
    pub(crate) fn pass_on(&self, arrivals: Arrivals, response_ns: u64) -> Option<Arrivals> {
        // The first piece of one event may be earliest while the last piece of another is latest.
        let spread = (response_ns - self.piece_ns_min).checked_add(self.delay_ns - self.delay_ns_min)?;
        let apart = arrivals.distance_ns.saturating_sub(spread);
        // No other work is served in between.
        let served =
            if self.pieces == 1 { self.piece_ns_min.saturating_sub(self.delay_ns - self.delay_ns_min) } else { 0 };
        Some(Arrivals {
            period_ns: arrivals.period_ns,
            jitter_ns: arrivals.jitter_ns.checked_add(spread)?,
            distance_ns: apart.max(served),
        })
    }

    /// Returns the load on the resource, with the lock wait of each piece included.
    pub(crate) fn job(&self, resource: &Resource, arrivals: Option<Arrivals>) -> Job {
        let piece_ns = self.piece_ns.saturating_add(resource.lock_ns);
        Job { priority: self.priority, arrivals, piece_ns, pieces: self.pieces }
    }
}

/// State of the iteration: arrival bounds of each flow at each stage.
type State = Vec<Vec<Option<Arrivals>>>;

/// Bounds all flows that have an arrival bound. [`Certificate::violations`] reports which of them
/// exceed their limits. The work is that of [`server::respond`] for each stage, at most a thousand
/// times.
pub fn analyze(system: &System) -> Result<Certificate, Infeasible> {
    system.check()?;
    let mut state: State =
        system.flows.iter().map(|flow| flow.stages.iter().map(|_| flow.arrivals).collect()).collect();
    for _ in 0..ROUNDS_MAX {
        let responses = respond_all(system, &state)?;
        let next = pass_on_all(system, &responses)?;
        if next == state {
            return Ok(certify(system, &state, responses));
        }
        state = next;
    }
    Err(Infeasible::Diverges)
}

/// Computes the response times of each stage of all flows that have an arrival bound.
fn respond_all(system: &System, state: &State) -> Result<Vec<Vec<Response>>, Infeasible> {
    // Jobs of each resource, and for each flow and stage the index of its job.
    let mut jobs: BTreeMap<usize, Vec<Job>> = BTreeMap::new();
    let mut indexes: Vec<Vec<usize>> = Vec::new();
    for (flow, arrivals) in system.flows.iter().zip(state) {
        let index = |(stage, arrivals): (&Stage, &Option<Arrivals>)| {
            let there = jobs.entry(stage.resource).or_default();
            there.push(stage.job(&system.resources[stage.resource], *arrivals));
            there.len() - 1
        };
        indexes.push(flow.stages.iter().zip(arrivals).map(index).collect());
    }
    let bounded = system.flows.iter().zip(&indexes).enumerate();
    let respond_flow = |(at, (flow, indexes)): (usize, (&Flow, &Vec<usize>))| {
        let stages = flow.stages.iter().zip(indexes).enumerate().filter(|_| flow.arrivals.is_some());
        let respond = |(n, (stage, index)): (usize, (&Stage, &usize))| {
            let server = system.resources[stage.resource].server_with_lock();
            let response = server::respond(&jobs[&stage.resource], *index, server);
            response.map_err(|why| Infeasible::Unbounded { flow: at, stage: n, why })
        };
        stages.map(respond).collect()
    };
    bounded.map(respond_flow).collect()
}

/// Returns the arrival bounds at each stage that follow from the responses of the previous stages.
fn pass_on_all(system: &System, responses: &[Vec<Response>]) -> Result<State, Infeasible> {
    let mut state = State::new();
    for (at, (flow, responses)) in system.flows.iter().zip(responses).enumerate() {
        let mut arrivals_at = flow.arrivals;
        let mut stages = Vec::new();
        for (n, stage) in flow.stages.iter().enumerate() {
            stages.push(arrivals_at);
            if let Some(arrivals) = arrivals_at {
                let left = stage.pass_on(arrivals, responses[n].response_ns);
                let why = Unbounded::Overload;
                arrivals_at = Some(left.ok_or(Infeasible::Unbounded { flow: at, stage: n, why })?);
            }
        }
        state.push(stages);
    }
    Ok(state)
}

fn certify(system: &System, state: &State, responses: Vec<Vec<Response>>) -> Certificate {
    let claim = |((flow, arrivals), responses): ((&Flow, &Vec<Option<Arrivals>>), Vec<Response>)| {
        let stages: Vec<StageClaim> = arrivals
            .iter()
            .zip(responses)
            .filter_map(|(arrivals, response)| {
                let Response { response_ns, busy_ns, points } = response;
                Some(StageClaim { arrivals: (*arrivals)?, response_ns, busy_ns, points })
            })
            .collect();
        let sum = |sum: u64, (claim, stage): (&StageClaim, &Stage)| {
            sum.saturating_add(claim.response_ns).saturating_add(stage.delay_ns)
        };
        let bound_ns = flow.arrivals.map(|_| stages.iter().zip(&flow.stages).fold(0, sum));
        FlowClaim { stages, bound_ns }
    };
    let flows = system.flows.iter().zip(state).zip(responses).map(claim).collect();
    Certificate { system: system.clone(), flows, measured: Vec::new() }
}
