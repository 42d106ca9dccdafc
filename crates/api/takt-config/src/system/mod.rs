//! System files: executors, links and flows in TOML, converted to the system that [`takt_calculus`]
//! analyzes and to the timing plan of a participant.
//!
//! `takt analyze` prints the bounds. A participant receives the priorities and bounds of its topics
//! ([`takt::TimingPlan`]) if all limits are kept. Execution times may come from job statistics
//! ([`JobStatistics`]). See `docs/guide/analysis.md`.

mod description;
mod job_statistics;
mod protection;
mod quantity;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use takt::real_time::Priority;
use takt::{HostStage, HostStages, TimingPlan, TopicStages, TopicTiming};
use takt_calculus::system::Infeasible;
use takt_calculus::{Certificate, MeasuredTime, Stage, System, advice};

pub use job_statistics::{JobStatistics, MARGIN, MEASURED_JOBS_MIN, Measurements};
pub use protection::{Cost, Layer, Operation, ProtectionCosts};

use crate::error::{ConfigError, Origin, Result};
use crate::provider::read_file;
use crate::tree::FILE_BYTES_MAX;
use description::{Described, File};

/// System read from a file.
#[derive(Clone, Debug)]
pub struct SystemFile {
    source: String,
    system: System,
    measured: Vec<MeasuredTime>,
    /// Topic of each flow, if it has one.
    topics: Vec<Option<String>>,
    /// Index of the network stage of each flow.
    networks: Vec<Option<usize>>,
    executors: usize,
}

/// Reads a system file with the job statistics that it names and those of `statistics`. `margin`
/// takes precedence over that of the file.
///
/// # Errors
/// [`ConfigError`] if a file cannot be read or its content is invalid.
pub fn read_system(path: impl AsRef<Path>, statistics: &[PathBuf], margin: Option<f64>) -> Result<SystemFile> {
    let path = path.as_ref();
    let (source, text, _) = read_file(path)?;
    let file = parse(&source, &text)?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let named = file.measured.iter().map(|name| directory.join(name));
    let statistics =
        named.chain(statistics.iter().cloned()).map(|path| JobStatistics::read(&path)).collect::<Result<_>>()?;
    let protection = file.protection().map(|(executor, name)| {
        let costs = ProtectionCosts::read(&directory.join(name))?;
        Ok((executor.to_owned(), costs))
    });
    let protection = protection.collect::<Result<_>>()?;
    SystemFile::of(&source, file, statistics, protection, margin)
}

/// Reads a system file and returns the timing plan of participants:
/// [`takt::DomainParticipantBuilder::timing_plan`].
///
/// # Errors
/// Same as [`read_system`]. It is also an error if the system has no bounds, or does not keep its
/// limits.
pub fn read_timing_plan(path: impl AsRef<Path>) -> Result<TimingPlan> {
    read_system(path, &[], None)?.timing_plan()
}

/// Returns name and text of a file.
fn read_text(path: &Path) -> Result<(String, String)> {
    use std::io::Read;

    let source = path.display().to_string();
    let refuse = |what: String| config_error(&source, what);
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| refuse(error.to_string()))?;
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_string(&mut text).map_err(|error| refuse(error.to_string()))?;
    if text.len() > FILE_BYTES_MAX {
        return Err(refuse(format!("it is longer than {FILE_BYTES_MAX} octets")));
    }
    Ok((source, text))
}

fn parse(source: &str, text: &str) -> Result<File> {
    toml::from_str(text).map_err(|error| config_error(source, error.to_string()))
}

fn config_error(source: &str, what: String) -> ConfigError {
    ConfigError::new(Origin { source: source.to_owned(), line: 0 }, "", what)
}

impl SystemFile {
    /// Parses a text with these job statistics. Files of job statistics and of protection costs
    /// that the text names are not read. `source` is its name in errors.
    ///
    /// # Errors
    /// Same as [`read_system`].
    pub fn parse(source: &str, text: &str, statistics: Vec<JobStatistics>, margin: Option<f64>) -> Result<Self> {
        Self::of(source, parse(source, text)?, statistics, BTreeMap::new(), margin)
    }

    fn of(
        source: &str,
        file: File,
        statistics: Vec<JobStatistics>,
        protection: BTreeMap<String, ProtectionCosts>,
        margin: Option<f64>,
    ) -> Result<Self> {
        let refuse = |what| config_error(source, what);
        let margin = margin.or(file.margin).unwrap_or(MARGIN);
        let measurements = Measurements::new(statistics, margin).map_err(refuse)?.with_protection(protection);
        let described = description::describe(file, &measurements).map_err(refuse)?;
        let Described { mut system, mut measured, topics, networks, executors } = described;
        measurements.add_background_jobs(&mut system, &mut measured).map_err(refuse)?;
        Ok(Self { source: source.to_owned(), system, measured, topics, networks, executors })
    }

    /// Returns the system to analyze.
    #[must_use]
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Computes the bounds. [`not_kept`](Self::not_kept) reports whether limits are kept.
    ///
    /// # Errors
    /// A resource is overloaded, the system is invalid, or other jobs may run between the jobs of a
    /// stage.
    pub fn analyze(&self) -> Result<Certificate> {
        let refuse = |what| config_error(&self.source, what);
        let certificate = takt_calculus::analyze(&self.system).map_err(|why| refuse(infeasible(&self.system, &why)))?;
        let certificate = Certificate { measured: self.measured.clone(), ..certificate };
        match certificate.measured.iter().find(|time| !is_one_piece(&certificate, time)) {
            None => Ok(certificate),
            Some(time) => {
                let flow = &self.system.flows[time.flow];
                let on = &self.system.resources[flow.stages[time.stage].resource].name;
                Err(refuse(format!(
                    "flow {}: others may come between the jobs of its stage on {on}; give each of them a stage of its own",
                    flow.name
                )))
            }
        }
    }

    /// Names the flows that exceed their limits, and the first flow that does not fit. `None` if
    /// all limits are kept.
    #[must_use]
    pub fn not_kept(&self, certificate: &Certificate) -> Option<String> {
        let flows = &self.system.flows;
        let late: Vec<_> = certificate.violations().map(|at| flows[at].name.as_str()).collect();
        let infeasible = match advice::first_infeasible_flow(&self.system) {
            Ok(Some(at)) => format!("; {} is the first that is infeasible with those before it", flows[at].name),
            Ok(None) | Err(_) => String::new(),
        };
        (!late.is_empty()).then(|| format!("flows that exceed their limits: {}{infeasible}", late.join(", ")))
    }

    /// Returns the stages that endpoints on an executor announce: for a writer those before the
    /// network, for a reader those after it.
    fn topic_stages(
        &self,
        certificate: &Certificate,
        flow: usize,
        network: usize,
        executor: usize,
    ) -> std::result::Result<TopicStages, String> {
        let own = &self.system.flows[flow];
        let claims = &certificate.flows[flow].stages;
        let stages_of = |part: std::ops::Range<usize>, jitter_ns| {
            let stage = |at: usize| {
                let stage = &own.stages[at];
                let name = match part.start == at && self.is_network(stage) {
                    true => "interface",
                    false => &self.system.resources[stage.resource].name,
                };
                HostStage::new(name, claims[at].response_ns.saturating_add(stage.delay_ns))
            };
            let runs_on_executor = own.stages[part.clone()].iter().any(|stage| stage.resource == executor);
            let period_ns = own.arrivals.map_or(0, |arrivals| arrivals.period_ns);
            runs_on_executor.then(|| HostStages {
                period_ns,
                jitter_ns,
                flow: own.name.clone(),
                stages: part.clone().map(stage).collect(),
            })
        };
        let behind = claims.get(network + 1).map(|claim| claim.arrivals);
        if behind.is_some_and(|arrivals| arrivals.distance_ns > 0) {
            return Err(format!(
                "flow {}: the network time is shorter than the separation of samples by the stages before it",
                own.name
            ));
        }
        let writer = stages_of(0..network, claims[network].arrivals.jitter_ns);
        let reader = behind.and_then(|arrivals| stages_of(network + 1..own.stages.len(), arrivals.jitter_ns));
        Ok(TopicStages { writer, reader })
    }

    fn is_network(&self, stage: &Stage) -> bool {
        self.networks.iter().any(Option::is_some) && stage.resource + 1 == self.system.resources.len()
    }

    /// Returns the priorities and bounds of all topics, by executor.
    ///
    /// # Errors
    /// There are no bounds, limits are not kept, or flows of a topic contradict each other.
    pub fn timing_plan(&self) -> Result<TimingPlan> {
        let refuse = |what| config_error(&self.source, what);
        let certificate = self.analyze()?;
        if let Some(what) = self.not_kept(&certificate) {
            return Err(refuse(what));
        }
        let executors = self.system.resources[..self.executors].iter().map(|resource| resource.name.as_str());
        let mut plan = TimingPlan::new(&self.source, executors);
        for (at, topic) in self.topics.iter().enumerate() {
            let (Some(topic), flow) = (topic, &self.system.flows[at]) else { continue };
            for (resource, executor) in self.system.resources[..self.executors].iter().enumerate() {
                let mut here = flow.stages.iter().filter(|stage| stage.resource == resource);
                let Some(first) = here.next() else { continue };
                let timing = TopicTiming {
                    writer: Priority::new(first.priority),
                    reader: Priority::new(here.next_back().unwrap_or(first).priority),
                    limit: flow.limit_ns.map(Duration::from_nanos),
                    bound: certificate.flows[at].bound_ns.map(Duration::from_nanos),
                };
                plan.add(&executor.name, topic, timing).map_err(|error| refuse(error.to_string()))?;
                if let Some(network) = self.networks.get(at).copied().flatten() {
                    let stages = self.topic_stages(&certificate, at, network, resource).map_err(refuse)?;
                    plan.add_stages(&executor.name, topic, stages).map_err(|error| refuse(error.to_string()))?;
                }
            }
        }
        Ok(plan)
    }
}

/// Reports whether the jobs of a stage count as one piece. That holds for a single job.
///
/// Several jobs count as one piece if all of these conditions hold:
/// - No other stage on the resource has the same or a higher priority.
/// - The next event arrives after all jobs are done.
/// - The server of normal work runs at most one piece meanwhile.
/// - No job waits for a lock.
///
/// A flow without a bound delays others by at most all of its jobs.
fn is_one_piece(certificate: &Certificate, time: &MeasuredTime) -> bool {
    let own = certificate.system.flows[time.flow].stages[time.stage];
    let Some(claim) = certificate.flows[time.flow].stages.get(time.stage) else { return true };
    let here =
        certificate.system.flows.iter().flat_map(|flow| &flow.stages).filter(|stage| stage.resource == own.resource);
    let is_alone = || here.filter(|stage| stage.priority >= own.priority).count() == 1;
    let resource = &certificate.system.resources[own.resource];
    let is_served_once = resource.server.is_none_or(|server| claim.busy_ns < server.period_ns) && resource.lock_ns == 0;
    time.jobs.len() == 1 || (claim.response_ns <= claim.arrivals.span(1) && is_served_once && is_alone())
}

/// Says why there are no bounds, with names.
fn infeasible(system: &System, why: &Infeasible) -> String {
    match why {
        Infeasible::InvalidDescription { flow, what } => format!("flow {}: {what}", system.flows[*flow].name),
        Infeasible::Unbounded { flow, stage, why } => {
            let flow = &system.flows[*flow];
            let resource = flow.stages[*stage].resource;
            let name = &system.resources[resource].name;
            let used = advice::utilization_ppm(system, resource).map_or("without limit".to_owned(), percent);
            format!("no bound for {} on {name}: {why} (utilization of {name}: {used})", flow.name)
        }
        other => other.to_string(),
    }
}

/// Formats a share in millionths as percent.
#[must_use]
pub fn percent(ppm: u64) -> String {
    format!("{}.{:02} %", ppm / 10_000, ppm % 10_000 / 100)
}
