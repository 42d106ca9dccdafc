//! Measured execution times of jobs, as written by executors
//! (`DomainParticipant::write_job_statistics`), and the times derived from them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use takt::real_time::{JobKind, Priority};
use takt_calculus::{Flow, MeasuredJobs, MeasuredTime, Stage, System};
use takt_exec::report::Machine as ThisMachine;
use takt_schedule::lock_waits;

use super::protection::{Protected, ProtectionCosts};
use super::read_text;
use crate::error::{ConfigError, Origin};

/// Minimum number of measured jobs of a kind; with fewer the maximum time is not significant.
pub const MEASURED_JOBS_MIN: u64 = 100;

/// Default factor by which measured times are multiplied.
pub const MARGIN: f64 = 1.5;

/// Maximum margin.
const MARGIN_MAX: f64 = 1000.0;

/// Job statistics of one executor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobStatistics {
    /// Name of the file.
    #[serde(skip)]
    source: String,
    executor: String,
    /// Number of participants that the executor drives.
    #[serde(default = "one")]
    participants: u64,
    version: String,
    machine: Machine,
    jobs: Vec<Jobs>,
}

const fn one() -> u64 {
    1
}

/// Machine of a measurement.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Machine {
    host: String,
    kernel: String,
    processor: String,
}

impl Machine {
    /// Returns the local machine.
    pub(super) fn this() -> Self {
        let ThisMachine { host, kernel, processor } = ThisMachine::now();
        Self { host, kernel, processor }
    }

    /// Describes the origin of figures, for certificates.
    pub(super) fn origin(&self, source: &str, version: &str) -> String {
        let Self { host, kernel, processor } = self;
        format!("{source}: takt {version} on {host}, Linux {kernel}, {processor}")
    }
}

/// Statistics of the jobs of one kind and priority, or of one name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Jobs {
    kind: String,
    #[serde(default)]
    name: Option<String>,
    priority: i32,
    count: u64,
    #[serde(rename = "p999_ns")]
    _p999_ns: u64,
    max_ns: u64,
}

impl Jobs {
    /// Reports whether the entry describes lock waits or holds instead of jobs.
    fn is_of_lock(&self) -> bool {
        [JobKind::LockWait, JobKind::LockHold].iter().any(|kind| kind.name() == self.kind)
    }

    /// Returns the name of the jobs in a system description.
    fn name_in_description(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.kind)
    }
}

impl JobStatistics {
    /// Reads job statistics from a file.
    ///
    /// # Errors
    /// [`ConfigError`] for a file that cannot be read or is malformed.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let (source, text) = read_text(path)?;
        Self::parse(&source, &text)
    }

    /// Parses job statistics from a text; `source` names it in errors and certificates.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(source: &str, text: &str) -> Result<Self, ConfigError> {
        let refuse = |what: String| ConfigError::new(Origin { source: source.to_owned(), line: 0 }, "", what);
        let mut statistics: Self =
            serde_json::from_str(text).map_err(|error| refuse(format!("not a job statistics file: {error}")))?;
        statistics.source = source.to_owned();
        let is_kind = |jobs: &&Jobs| JobKind::ALL.iter().any(|kind| kind.name() == jobs.kind);
        if let Some(unknown) = statistics.jobs.iter().find(|jobs| !is_kind(jobs)) {
            return Err(refuse(format!("not a job statistics file: unknown kind {:?}", unknown.kind)));
        }
        Ok(statistics)
    }

    /// Describes the origin of the statistics, for certificates.
    fn origin(&self) -> String {
        self.machine.origin(&self.source, &self.version)
    }
}

/// Job statistics of all executors of a system, and the margin of their times.
#[derive(Clone, Debug)]
pub struct Measurements {
    statistics: Vec<JobStatistics>,
    /// Costs of protection by executor.
    protection: BTreeMap<String, ProtectionCosts>,
    margin_permille: u64,
}

impl Measurements {
    /// Creates measurements. Of several statistics of one executor the longest times apply.
    ///
    /// # Errors
    /// The margin is below 1, above 1000, or no number.
    pub fn new(statistics: Vec<JobStatistics>, margin: f64) -> Result<Self, String> {
        if !(1.0..=MARGIN_MAX).contains(&margin) {
            return Err(format!("margin {margin} is out of range: expected 1 to {MARGIN_MAX}"));
        }
        let margin_permille = (margin * 1000.0).round() as u64;
        Ok(Self { statistics, protection: BTreeMap::new(), margin_permille })
    }

    /// Adds the costs of protection on the machines of these executors.
    #[must_use]
    pub(super) fn with_protection(self, protection: BTreeMap<String, ProtectionCosts>) -> Self {
        Self { protection, ..self }
    }

    /// Checks that all statistics belong to these executors.
    pub(super) fn check_executors<'a>(&self, executors: impl Iterator<Item = &'a str> + Clone) -> Result<(), String> {
        match self.statistics.iter().find(|statistics| !executors.clone().any(|name| name == statistics.executor)) {
            None => Ok(()),
            Some(JobStatistics { source, executor, .. }) => {
                Err(format!("{source}: statistics of executor {executor:?}, which is not in the system"))
            }
        }
    }

    /// Returns the time of a stage that executes these jobs.
    pub(super) fn stage_time(
        &self,
        executor: &str,
        priority: i32,
        names: &[String],
        (flow, stage): (usize, usize),
    ) -> Result<MeasuredTime, String> {
        if names.is_empty() {
            return Err(format!("on executor {executor:?}: measured names no jobs"));
        }
        if self.of_executor(executor).next().is_none() {
            return Err(format!("no job statistics of executor {executor:?}, which has measured times"));
        }
        let jobs =
            names.iter().map(|name| self.significant_jobs(executor, priority, name)).collect::<Result<_, String>>()?;
        Ok(self.time(executor, jobs, (flow, stage)))
    }

    /// Returns the time of a stage for sealing and opening in one job.
    pub(super) fn protection_time(
        &self,
        executor: &str,
        protected: &[Protected<'_>],
        (flow, stage): (usize, usize),
    ) -> Result<MeasuredTime, String> {
        let Some(costs) = self.protection.get(executor) else {
            return Err(format!(
                "executor {executor:?} has no `protection = FILE`; make one by `takt security measure --output FILE`"
            ));
        };
        let (jobs, from) = (vec![costs.together(protected)?], vec![costs.origin()]);
        Ok(MeasuredTime { flow, stage, jobs, margin_permille: self.margin_permille, from })
    }

    fn time(&self, executor: &str, jobs: Vec<MeasuredJobs>, (flow, stage): (usize, usize)) -> MeasuredTime {
        let from = self.of_executor(executor).map(JobStatistics::origin).collect();
        MeasuredTime { flow, stage, jobs, margin_permille: self.margin_permille, from }
    }

    fn of_executor(&self, executor: &str) -> impl Iterator<Item = &JobStatistics> {
        self.statistics.iter().filter(move |statistics| statistics.executor == executor)
    }

    /// Returns the jobs of a class in all statistics of the executor.
    fn longest(&self, executor: &str, priority: i32, name: &str) -> MeasuredJobs {
        let jobs = self.of_executor(executor).flat_map(|statistics| &statistics.jobs);
        let class = jobs.filter(|jobs| jobs.name_in_description() == name && jobs.priority == priority);
        class.fold(MeasuredJobs { name: name.to_owned(), count: 0, max_ns: 0 }, |sum, jobs| MeasuredJobs {
            count: sum.count.saturating_add(jobs.count),
            max_ns: sum.max_ns.max(jobs.max_ns),
            ..sum
        })
    }

    /// Returns the maximum time for which a job waits for locks held by calls of other threads: the
    /// longest measured wait, or the longest hold multiplied by the [number of waits](lock_waits),
    /// whichever is longer. `planned` are the priorities of the executor's flows.
    pub(super) fn lock_ns(&self, executor: &str, planned: impl Iterator<Item = i32>) -> u64 {
        let of = |kind: JobKind| self.longest_of_kinds(executor, &[kind], |_| true);
        let jobs = self.of_executor(executor).flat_map(|statistics| &statistics.jobs);
        let seen = jobs.filter(|jobs| !jobs.is_of_lock()).map(|jobs| jobs.priority);
        let priorities: BTreeSet<i32> = seen.chain(planned).collect();
        let participants = self.of_executor(executor).map(|statistics| statistics.participants).max().unwrap_or(1);
        let waits = lock_waits(participants, priorities.len() as u64);
        self.with_margin(of(JobKind::LockWait).max(of(JobKind::LockHold).saturating_mul(waits)))
    }

    /// Returns the time of the longest job that receives, sends or runs timers at normal priority.
    pub(super) fn normal_ns(&self, executor: &str) -> u64 {
        let kinds = [JobKind::Receive, JobKind::Transmit, JobKind::Timers];
        self.with_margin(self.longest_of_kinds(executor, &kinds, |priority| priority == Priority::NORMAL.get()))
    }

    fn longest_of_kinds(&self, executor: &str, kinds: &[JobKind], meant: fn(i32) -> bool) -> u64 {
        let jobs = self.of_executor(executor).flat_map(|statistics| &statistics.jobs);
        let jobs = jobs.filter(|jobs| meant(jobs.priority) && kinds.iter().any(|kind| kind.name() == jobs.kind));
        jobs.map(|jobs| jobs.max_ns).max().unwrap_or(0)
    }

    fn with_margin(&self, time_ns: u64) -> u64 {
        let with_margin = (u128::from(time_ns) * u128::from(self.margin_permille)).div_ceil(1000);
        u64::try_from(with_margin).unwrap_or(u64::MAX)
    }

    /// Returns the jobs of a class, if enough of them were measured.
    fn significant_jobs(&self, executor: &str, priority: i32, name: &str) -> Result<MeasuredJobs, String> {
        let longest = self.longest(executor, priority, name);
        let what = format!("jobs {name:?} of priority {priority}");
        match longest.count {
            0 => {
                let known = self.of_executor(executor).flat_map(|statistics| &statistics.jobs);
                let known: Vec<String> =
                    known.map(|jobs| format!("{} {}", jobs.name_in_description(), jobs.priority)).collect();
                Err(format!("executor {executor:?} had no {what}; it had {}", known.join(", ")))
            }
            MEASURED_JOBS_MIN.. => Ok(longest),
            few => Err(format!("executor {executor:?} had {few} {what}, at least {MEASURED_JOBS_MIN} are needed")),
        }
    }

    /// Adds to a system the jobs of its executors that belong to no flow. Each class is added once
    /// with unlimited arrivals, so that it delays more urgent jobs by one job.
    ///
    /// # Errors
    /// Such a class has a priority for which a flow with a bound would wait.
    pub(super) fn add_background_jobs(
        &self,
        system: &mut System,
        measured: &mut Vec<MeasuredTime>,
    ) -> Result<(), String> {
        for statistics in &self.statistics {
            let executor = &statistics.executor;
            let Some(resource) = system.resources.iter().position(|resource| resource.name == *executor) else {
                continue;
            };
            for jobs in &statistics.jobs {
                let (name, priority) = (jobs.name_in_description(), jobs.priority);
                if jobs.is_of_lock() || has_jobs(system, measured, (resource, priority), name) {
                    continue;
                }
                let longest = self.longest(executor, priority, name);
                if let Some(flow) = system.flows.iter().find(|flow| waits_for(flow, resource, priority)) {
                    return Err(format!(
                        "executor {executor:?} had {} jobs {name:?} of priority {priority}, which no flow has: they would delay \
                         flow {:?} without limit",
                        longest.count, flow.name
                    ));
                }
                let time = self.time(executor, vec![longest], (system.flows.len(), 0));
                let stage = Stage {
                    resource,
                    priority,
                    piece_ns: time.time_ns(),
                    piece_ns_min: 0,
                    pieces: 1,
                    delay_ns: 0,
                    delay_ns_min: 0,
                };
                let name = format!("{name} {priority} on {executor}");
                system.flows.push(Flow { name, arrivals: None, stages: vec![stage], limit_ns: None });
                measured.push(time);
            }
        }
        Ok(())
    }
}

/// Reports whether a stage on this resource and priority has measured these jobs.
fn has_jobs(system: &System, measured: &[MeasuredTime], place: (usize, i32), name: &str) -> bool {
    measured.iter().any(|time| {
        let stage = system.flows[time.flow].stages[time.stage];
        (stage.resource, stage.priority) == place && time.jobs.iter().any(|job| job.name == name)
    })
}

/// Reports whether a flow with a bound waits for all jobs of this priority on this resource.
fn waits_for(flow: &Flow, resource: usize, priority: i32) -> bool {
    let mut here = flow.stages.iter().filter(|stage| stage.resource == resource);
    flow.arrivals.is_some() && here.any(|stage| stage.priority <= priority)
}
