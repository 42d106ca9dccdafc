//! Flows over resources. What leaves one stage comes to the next with more jitter; that may delay what comes back, so all stages are
//! computed again until nothing changes.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::Arrivals;
use crate::certificate::{Certificate, FlowClaim, StageClaim};
use crate::server::{self, Job, Response, Unbounded};

/// How often all stages are computed at most.
const ROUNDS_MAX: usize = 1000;

/// What serves one piece of work at a time: an executor's thread, or an interface that sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// For people.
    pub name: String,
    /// How long each piece may have to wait, once, for a lock that others hold; 0 for a link.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lock_ns: u64,
    /// Work that goes before what is more urgent, now and then; none on a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
}

/// Work of one priority of which one piece goes before what is more urgent, once that has kept the resource for a period, and another one after
/// each further period: the normal server of an executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// What is above this priority is delayed by it.
    pub priority: i32,
    /// From the begin of one piece to that of the next, at least. At least 1.
    pub period_ns: u64,
    /// How long one piece takes at most.
    pub piece_ns: u64,
}

const fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Resource {
    /// A resource without lock and server.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), lock_ns: 0, server: None }
    }

    /// The server, whose pieces wait for the lock as others do.
    fn server_with_lock(&self) -> Option<Server> {
        self.server.map(|server| Server { piece_ns: server.piece_ns.saturating_add(self.lock_ns), ..server })
    }
}

/// One resource on a flow's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Index into [`System::resources`].
    pub resource: usize,
    /// The larger, the more urgent.
    pub priority: i32,
    /// How long one piece takes at most.
    pub piece_ns: u64,
    /// How long one piece takes at least.
    #[serde(default)]
    pub piece_ns_min: u64,
    /// Pieces of one event, between which others may be served.
    #[serde(default = "one")]
    pub pieces: u64,
    /// What passes until the next stage, or the end, without anybody's doing: cables, interrupts, a wait to be woken. At most.
    #[serde(default)]
    pub delay_ns: u64,
    /// The same, at least.
    #[serde(default)]
    pub delay_ns_min: u64,
}

const fn one() -> u64 {
    1
}

/// Events that pass some stages one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// For people.
    pub name: String,
    /// At the first stage; `None`: as often as can be.
    pub arrivals: Option<Arrivals>,
    /// The way, at least one stage.
    pub stages: Vec<Stage>,
    /// From the arrival at the first stage to the end of the last one's delay: what is asked for.
    #[serde(default)]
    pub limit_ns: Option<u64>,
}

/// All that shares some resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// What the flows share.
    pub resources: Vec<Resource>,
    /// In the order of their importance: who comes first is admitted first.
    pub flows: Vec<Flow>,
}

/// Why a system has no certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Infeasible {
    /// The description makes no sense.
    Nonsense {
        /// Index of the flow.
        flow: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A flow's stage has no bound.
    Unbounded {
        /// Index of the flow.
        flow: usize,
        /// Index of the stage.
        stage: usize,
        /// Why.
        why: Unbounded,
    },
    /// The bounds of stages that depend on each other grow and grow.
    Diverges,
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nonsense { flow, what } => write!(f, "flow {flow}: {what}"),
            Self::Unbounded { flow, stage, why } => write!(f, "flow {flow}, stage {stage}: {why}"),
            Self::Diverges => f.write_str("stages that delay each other have no common bound"),
        }
    }
}

impl System {
    /// Says what is wrong with the description.
    pub fn check(&self) -> Result<(), Infeasible> {
        if self.resources.iter().any(|resource| resource.server.is_some_and(|server| server.period_ns == 0)) {
            return Err(Infeasible::Nonsense { flow: 0, what: "the server of a resource has a period of 0" });
        }
        for (at, flow) in self.flows.iter().enumerate() {
            let what = if flow.stages.is_empty() {
                "it has no stage"
            } else if flow.arrivals.is_some_and(|arrivals| arrivals.period_ns == 0) {
                "its period is 0"
            } else if flow.arrivals.is_none() && flow.limit_ns.is_some() {
                "it has a limit, but comes without one"
            } else if flow.stages.iter().any(|stage| stage.resource >= self.resources.len()) {
                "it passes a resource that is not there"
            } else if flow.stages.iter().any(|stage| stage.pieces == 0) {
                "it has no pieces"
            } else if flow.stages.iter().any(|s| s.piece_ns_min > s.piece_ns || s.delay_ns_min > s.delay_ns) {
                "what takes longest takes less than what takes shortest"
            } else {
                continue;
            };
            return Err(Infeasible::Nonsense { flow: at, what });
        }
        Ok(())
    }
}

impl Stage {
    /// How events leave that came so and took `response_ns` at most, `None` beyond `u64`.
    pub(crate) fn pass_on(&self, came: Arrivals, response_ns: u64) -> Option<Arrivals> {
        // The first piece of one may be as early as another's last is late.
        let spread = (response_ns - self.piece_ns_min).checked_add(self.delay_ns - self.delay_ns_min)?;
        let apart = came.distance_ns.saturating_sub(spread);
        // Nothing else is served meanwhile.
        let served =
            if self.pieces == 1 { self.piece_ns_min.saturating_sub(self.delay_ns - self.delay_ns_min) } else { 0 };
        Some(Arrivals {
            period_ns: came.period_ns,
            jitter_ns: came.jitter_ns.checked_add(spread)?,
            distance_ns: apart.max(served),
        })
    }

    /// What it asks of its resource, the wait of each piece for the lock included.
    pub(crate) fn job(&self, resource: &Resource, arrivals: Option<Arrivals>) -> Job {
        let piece_ns = self.piece_ns.saturating_add(resource.lock_ns);
        Job { priority: self.priority, arrivals, piece_ns, pieces: self.pieces }
    }
}

/// The state of the search: how events come to each stage of each flow.
type Guess = Vec<Vec<Option<Arrivals>>>;

/// Bounds all flows that have arrivals. Whether they keep their limits is [`Certificate::violations`]. The work is that of
/// [`server::respond`] for each stage, a thousand times at most.
pub fn analyse(system: &System) -> Result<Certificate, Infeasible> {
    system.check()?;
    let mut guess: Guess =
        system.flows.iter().map(|flow| flow.stages.iter().map(|_| flow.arrivals).collect()).collect();
    for _ in 0..ROUNDS_MAX {
        let responses = respond_all(system, &guess)?;
        let next = pass_on_all(system, &responses)?;
        if next == guess {
            return Ok(certify(system, &guess, responses));
        }
        guess = next;
    }
    Err(Infeasible::Diverges)
}

/// The responses of each stage of each flow that has arrivals.
fn respond_all(system: &System, guess: &Guess) -> Result<Vec<Vec<Response>>, Infeasible> {
    // Who meets at each resource: its jobs, and for each flow and stage which job is its.
    let mut jobs: BTreeMap<usize, Vec<Job>> = BTreeMap::new();
    let mut places: Vec<Vec<usize>> = Vec::new();
    for (flow, arrivals) in system.flows.iter().zip(guess) {
        let place = |(stage, arrivals): (&Stage, &Option<Arrivals>)| {
            let there = jobs.entry(stage.resource).or_default();
            there.push(stage.job(&system.resources[stage.resource], *arrivals));
            there.len() - 1
        };
        places.push(flow.stages.iter().zip(arrivals).map(place).collect());
    }
    let bounded = system.flows.iter().zip(&places).enumerate();
    let respond_flow = |(at, (flow, places)): (usize, (&Flow, &Vec<usize>))| {
        let stages = flow.stages.iter().zip(places).enumerate().filter(|_| flow.arrivals.is_some());
        let respond = |(n, (stage, place)): (usize, (&Stage, &usize))| {
            let server = system.resources[stage.resource].server_with_lock();
            let response = server::respond(&jobs[&stage.resource], *place, server);
            response.map_err(|why| Infeasible::Unbounded { flow: at, stage: n, why })
        };
        stages.map(respond).collect()
    };
    bounded.map(respond_flow).collect()
}

/// How events come to each stage, if they take so long at the one before.
fn pass_on_all(system: &System, responses: &[Vec<Response>]) -> Result<Guess, Infeasible> {
    let mut guess = Guess::new();
    for (at, (flow, responses)) in system.flows.iter().zip(responses).enumerate() {
        let mut came = flow.arrivals;
        let mut stages = Vec::new();
        for (n, stage) in flow.stages.iter().enumerate() {
            stages.push(came);
            if let Some(arrivals) = came {
                let left = stage.pass_on(arrivals, responses[n].response_ns);
                let why = Unbounded::Overload;
                came = Some(left.ok_or(Infeasible::Unbounded { flow: at, stage: n, why })?);
            }
        }
        guess.push(stages);
    }
    Ok(guess)
}

fn certify(system: &System, guess: &Guess, responses: Vec<Vec<Response>>) -> Certificate {
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
    let flows = system.flows.iter().zip(guess).zip(responses).map(claim).collect();
    Certificate { system: system.clone(), flows, measured: Vec::new() }
}
