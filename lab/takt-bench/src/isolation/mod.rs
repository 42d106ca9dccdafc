//! Timing-isolation experiment: effect of interfering traffic on real-time traffic over a shared
//! link, with and without each countermeasure.
//!
//! | module | content |
//! |---|---|
//! | [`countermeasure`] | countermeasures, and configurations as sets of them |
//! | [`network`] | two hosts and a rate-limited link with traffic classes between them |
//! | [`interference`] | interfering traffic by iperf3 |
//! | [`side`], [`open_loop`], [`participant`] | the pinging and answering processes |
//! | [`load`], [`crowd`] | load inside the answering process |
//! | [`outcome`] | results, as they are written to a file |
//! | [`effect`], [`table`] | ratios with confidence intervals; tables |
//!
//! A **cell** is one measurement of one configuration and one payload size, with or without
//! interference. It has new processes, a histogram of one-way latencies and a histogram of round
//! trips. A **round** has each cell once, in an order derived from a seed that is printed.

pub mod countermeasure;
pub mod crowd;
pub mod effect;
pub mod interference;
pub mod load;
pub mod network;
pub mod open_loop;
pub mod outcome;
pub mod participant;
pub mod side;
pub mod table;

use crate::campaign::Column;
use crate::campaign::child::{Child, Placement};
use crate::campaign::lock_campaign;
use crate::error::{Error, Result};
use crate::machine::{available_cpus, monotonic_ns};
use crate::signal::stopped;
use countermeasure::{Configuration, Countermeasure, Countermeasures, UnavailableMeasure};
use effect::Random;
use interference::{Interference, InterferencePlan};
use load::{CrowdPlan, FloodPlan, LoadPlan};
use network::{LinkPlan, Network};
use open_loop::SidePlan;
use outcome::{Cell, Outcome};
use participant::ParticipantPlan;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

const READY_LIMIT: Duration = Duration::from_secs(25);
/// Time limit of a run in addition to the time of its pings.
const RUN_LIMIT: Duration = Duration::from_secs(30);
/// Number of domains in rotation. Consecutive cells use different domains, so that a late datagram
/// of one does not reach the next.
const DOMAINS: u32 = 16;
const DOMAIN_FIRST: u32 = 40;

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Payload sizes of the tables, octets.
    pub sizes: Vec<usize>,
    /// Payload size of the ablation, octets; `None`: there is no ablation.
    pub ablation: Option<usize>,
    /// Number of rounds.
    pub rounds: usize,
    /// Number of pings measured in each cell.
    pub count: u64,
    /// Number of pings before the measured ones.
    pub warmup: u64,
    /// Interval between two pings, ns.
    pub period_ns: u64,
    /// Cores of the pinging and of the answering process, where the measures bind them.
    pub cpus: [usize; 2],
    /// `SCHED_FIFO` priority of both, where the measures set one.
    pub fifo: u8,
    /// Whether both processes spin instead of blocking.
    pub spins: bool,
    /// Rate and queue of the link.
    pub link: LinkPlan,
    /// Interfering traffic.
    pub interference: InterferencePlan,
    /// Additional load of the answering process.
    pub load: LoadPlan,
    /// Seed of orders and resamples.
    pub seed: u64,
}

impl Plan {
    /// Returns the cells of a round, in no particular order.
    fn cells(&self, here: Countermeasures) -> Vec<Task> {
        let ends = [Configuration::baseline(), Configuration::isolated(here)];
        let mut tasks = Vec::new();
        for size in &self.sizes {
            for configuration in &ends {
                for interfered in [false, true] {
                    tasks.push(Task { configuration: configuration.clone(), size: *size, interfered });
                }
            }
        }
        let Some(size) = self.ablation else { return tasks };
        if !self.sizes.contains(&size) {
            tasks.extend(ends.map(|configuration| Task { configuration, size, interfered: true }));
        }
        let ablation = Configuration::ablation(here).into_iter();
        tasks.extend(ablation.map(|configuration| Task { configuration, size, interfered: true }));
        tasks
    }

    /// Returns the cores other than those of the two processes; none if there are no others.
    fn other_cpus(&self) -> Vec<usize> {
        (0..available_cpus()).filter(|cpu| !self.cpus.contains(cpu)).collect()
    }
}

/// Conditions of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Configuration of countermeasures.
    pub configuration: Configuration,
    /// Payload size in octets.
    pub size: usize,
    /// Whether iperf3 interferes.
    pub interfered: bool,
}

/// Runs the experiment. `program`, followed by `words`, a role and a plan, must run that role
/// ([`side::run`]). `progress` is called before every cell. Waits until no other campaign runs on
/// the machine.
///
/// # Errors
/// The machine cannot run the experiment, a process failed, or a signal requested a stop. The
/// network is removed in any case.
pub fn run(
    plan: &Plan,
    program: PathBuf,
    words: &[&str],
    command: String,
    progress: &mut dyn FnMut(&str),
) -> Result<Outcome> {
    let _lock = lock_campaign()?;
    let mut bench = Bench::new(plan.clone(), program, words)?;
    let unavailable = bench.unavailable.clone();
    for UnavailableMeasure { measure, why } in &unavailable {
        progress(&format!("{measure} is not available: {why}"));
    }
    let here = bench.available();
    let mut outcome = Outcome::new(plan.clone(), command, unavailable);
    let mut random = Random::new(plan.seed);
    for round in 0..plan.rounds {
        let mut tasks = plan.cells(here);
        random.shuffle(&mut tasks);
        for (index, task) in tasks.iter().enumerate() {
            if stopped() {
                return Err(Error::Stopped);
            }
            let interference = if task.interfered { "interference" } else { "quiet" };
            progress(&format!(
                "round {} of {}, {} of {}: {}, {} B, {interference}",
                round + 1,
                plan.rounds,
                index + 1,
                tasks.len(),
                task.configuration.name,
                task.size,
            ));
            // An interrupt from the keyboard also reaches the children; their ends are no failures
            // then.
            let measured = bench.measure(task, round, index);
            outcome.cells.push(measured.map_err(|why| if stopped() { Error::Stopped } else { why })?);
        }
    }
    outcome.load_average[1] = outcome::load_average();
    Ok(outcome)
}

/// Network and programs with which cells are measured. Dropping it removes the network.
#[derive(Debug)]
pub struct Bench {
    plan: Plan,
    column: Column,
    network: Network,
    unavailable: Vec<UnavailableMeasure>,
    is_reserved: bool,
    domain: u32,
}

impl Bench {
    /// Creates the network and probes which measures are available. `program`, followed by `words`,
    /// a role and a plan, must run that role.
    ///
    /// # Errors
    /// The machine cannot create the network, or the program does not support the roles.
    pub fn new(plan: Plan, program: PathBuf, words: &[&str]) -> Result<Self> {
        let prefix = words.iter().map(ToString::to_string).collect();
        let column = Column { name: "isolation".into(), program, prefix, ..Column::default() };
        let network = Network::new(&plan.link)?;
        let mut bench = Self { plan, column, network, unavailable: Vec::new(), is_reserved: false, domain: 0 };
        bench.unavailable = bench.missing()?;
        Ok(bench)
    }

    /// Returns the measures that are unavailable.
    #[must_use]
    pub fn unavailable(&self) -> &[UnavailableMeasure] {
        &self.unavailable
    }

    /// Returns the measures that are available.
    #[must_use]
    pub fn available(&self) -> Countermeasures {
        let is_available =
            |measure: &Countermeasure| self.unavailable.iter().all(|missing| missing.measure != *measure);
        Countermeasure::ALL.into_iter().filter(is_available).collect()
    }

    fn side(&self, task: &Task, side: usize) -> SidePlan {
        let plan = &self.plan;
        let participant = ParticipantPlan {
            domain: DOMAIN_FIRST + self.domain,
            peer: self.network.ends()[1 - side].address,
            measures: task.configuration.measures,
            spins: plan.spins,
        };
        SidePlan {
            participant,
            cpu: plan.cpus[side],
            fifo: plan.fifo,
            size: task.size,
            period_ns: plan.period_ns,
            warmup: plan.warmup,
            count: plan.count,
            callback_ns: plan.load.callback_us * 1000,
        }
    }

    /// Starts a role on one of the hosts.
    fn start(&self, role: &'static str, side: usize, plan: &impl Serialize, cpu: Option<usize>) -> Result<Child<'_>> {
        let text = serde_json::to_string(plan).map_err(|e| Error::os("JSON", e.into()))?;
        let namespace = Some(self.network.ends()[side].namespace.clone());
        Child::start(&self.column, role, &[text], Placement { cpu, fifo: None, namespace, ..Placement::default() })
    }

    /// Probes the measures and returns the unavailable ones.
    fn missing(&self) -> Result<Vec<UnavailableMeasure>> {
        let task = Task { configuration: Configuration::baseline(), size: 64, interfered: false };
        let mut child = self.start("probe", 0, &self.side(&task, 0), None)?;
        let mut missing = self.network.unavailable();
        for line in child.results_until("done", READY_LIMIT)? {
            let found = serde_json::from_value(line["missing"].clone());
            missing.push(found.map_err(|why| Error::Usage(format!("unexpected line of a probe: {line}: {why}")))?);
        }
        child.stop()?;
        missing.sort_by_key(|missing| missing.measure);
        Ok(missing)
    }

    /// Measures a cell.
    ///
    /// # Errors
    /// A process failed, or a signal requested a stop.
    pub fn measure(&mut self, task: &Task, round: usize, place: usize) -> Result<Cell> {
        let has = |measure| task.configuration.measures.has(measure);
        if self.is_reserved != has(Countermeasure::ReservedQueue) {
            self.is_reserved = has(Countermeasure::ReservedQueue);
            self.network.reserve(self.is_reserved)?;
        }
        self.domain = (self.domain + 1) % DOMAINS;
        let plan = &self.plan;
        let others = if has(Countermeasure::Affinity) { plan.other_cpus() } else { Vec::new() };
        let load_average = outcome::load_average();

        let mut pong = self.start("pong", 1, &self.side(task, 1), None)?;
        pong.wait_for("ready", READY_LIMIT)?;
        let mut ping = self.start("ping", 0, &self.side(task, 0), None)?;
        ping.wait_for("matched", READY_LIMIT)?;
        let mut load = self.load(others.first().copied())?;
        let full = f64::from(plan.link.megabits);
        let start = || Interference::start(&self.network, &plan.interference, task.size, &others, full);
        let mut interference = task.interfered.then(start).transpose()?;

        let (before, begin_ns) = (self.network.link_counters()?, monotonic_ns());
        ping.write_line("go")?;
        let length = Duration::from_nanos(plan.period_ns) * u32::try_from(plan.count + plan.warmup).unwrap_or(u32::MAX);
        let pinged = ping.wait_for("result", RUN_LIMIT + 4 * length)?;
        let seconds = (monotonic_ns() - begin_ns) as f64 * 1e-9;
        let link_megabits = self.network.link_counters()?.megabits_since(&before, seconds);
        if let Some(interference) = &mut interference {
            interference.check_processes()?;
        }
        drop(interference);
        pong.write_line("report")?;
        let answered = pong.wait_for("result", RUN_LIMIT)?;
        for child in load.iter_mut().chain([&mut ping, &mut pong]) {
            child.stop()?;
        }
        let mut cell = Cell::of(&pinged, &answered)?;
        (cell.configuration, cell.size, cell.interfered) =
            (task.configuration.name.clone(), task.size, task.interfered);
        (cell.round, cell.place, cell.link_megabits, cell.load_average) = (round, place, link_megabits, load_average);
        Ok(cell)
    }

    /// Starts the processes that load the answering process.
    fn load(&self, cpu: Option<usize>) -> Result<Vec<Child<'_>>> {
        let (load, domain) = (&self.plan.load, DOMAIN_FIRST + self.domain);
        let peer = self.network.ends()[1].address;
        let mut children = Vec::new();
        if load.floods() {
            let participant = ParticipantPlan { domain, peer, measures: Countermeasures::default(), spins: false };
            let mut flood = self.start("flood", 0, &FloodPlan { participant, load: load.clone() }, cpu)?;
            flood.wait_for("matched", READY_LIMIT)?;
            children.push(flood);
        }
        if load.participants > 0 {
            let plan = CrowdPlan { domain, peer, participants: load.participants };
            let mut crowd = self.start("crowd", 0, &plan, cpu)?;
            crowd.wait_for("ready", READY_LIMIT)?;
            children.push(crowd);
        }
        Ok(children)
    }
}

/// Returns a number of a line that a child wrote.
fn number(line: &Value, key: &str) -> Result<u64> {
    line[key].as_u64().ok_or_else(|| Error::Usage(format!("a process reported no {key}: {line}")))
}
