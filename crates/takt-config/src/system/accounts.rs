//! What jobs took, as executors wrote it (`DomainParticipant::write_job_accounts`), and which times follow from it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use takt::real_time::report::Machine as ThisMachine;
use takt::real_time::{JobKind, Priority, lock_waits};
use takt_calculus::{Flow, MeasuredJobs, MeasuredTime, Stage, System};

use super::protection::{Protected, ProtectionCosts};
use super::read_text;
use crate::error::{ConfigError, Origin};

/// So many jobs of a kind there are at least, or their longest time says too little.
pub const MEASURED_JOBS_MIN: u64 = 100;

/// What times that were measured are multiplied with, unless something else is said.
pub const MARGIN: f64 = 1.5;

/// The largest margin.
const MARGIN_MAX: f64 = 1000.0;

/// The accounts of one executor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accounts {
    /// What the file is called.
    #[serde(skip)]
    source: String,
    executor: String,
    /// How many it drives.
    #[serde(default = "one")]
    participants: u64,
    version: String,
    machine: Machine,
    jobs: Vec<Jobs>,
}

const fn one() -> u64 {
    1
}

/// The machine that something was measured on.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Machine {
    host: String,
    kernel: String,
    processor: String,
}

impl Machine {
    /// This one.
    pub(super) fn this() -> Self {
        let ThisMachine { host, kernel, processor } = ThisMachine::now();
        Self { host, kernel, processor }
    }

    /// Where figures come from, for certificates.
    pub(super) fn origin(&self, source: &str, version: &str) -> String {
        let Self { host, kernel, processor } = self;
        format!("{source}: takt {version} on {host}, Linux {kernel}, {processor}")
    }
}

/// The jobs of one kind and priority, or of one name.
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
    /// They are no jobs, but what jobs wait for.
    fn is_of_lock(&self) -> bool {
        [JobKind::LockWait, JobKind::LockHold].iter().any(|kind| kind.name() == self.kind)
    }

    /// What a description calls them.
    fn called(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.kind)
    }
}

impl Accounts {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`] for a file that cannot be read, and for what are no accounts.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let (source, text) = read_text(path)?;
        Self::parse(&source, &text)
    }

    /// Reads a text; `source` names it in errors and certificates.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(source: &str, text: &str) -> Result<Self, ConfigError> {
        let refuse = |what: String| ConfigError::new(Origin { source: source.to_owned(), line: 0 }, "", what);
        let mut accounts: Self =
            serde_json::from_str(text).map_err(|error| refuse(format!("no accounts of jobs: {error}")))?;
        accounts.source = source.to_owned();
        let is_kind = |jobs: &&Jobs| JobKind::ALL.iter().any(|kind| kind.name() == jobs.kind);
        if let Some(unknown) = accounts.jobs.iter().find(|jobs| !is_kind(jobs)) {
            return Err(refuse(format!("no accounts of jobs: there is no kind {:?}", unknown.kind)));
        }
        Ok(accounts)
    }

    /// For certificates.
    fn origin(&self) -> String {
        self.machine.origin(&self.source, &self.version)
    }
}

/// All accounts of a system, and what their times are multiplied with.
#[derive(Clone, Debug)]
pub struct Measurements {
    accounts: Vec<Accounts>,
    /// By executors.
    protection: BTreeMap<String, ProtectionCosts>,
    margin_permille: u64,
}

impl Measurements {
    /// Of several accounts of one executor the longest times hold.
    ///
    /// # Errors
    /// The margin is below 1, above 1000, or no number.
    pub fn new(accounts: Vec<Accounts>, margin: f64) -> Result<Self, String> {
        if !(1.0..=MARGIN_MAX).contains(&margin) {
            return Err(format!("a margin of {margin}: it is from 1 to {MARGIN_MAX}"));
        }
        let margin_permille = (margin * 1000.0).round() as u64;
        Ok(Self { accounts, protection: BTreeMap::new(), margin_permille })
    }

    /// Adds what protection takes on the machines of these executors.
    #[must_use]
    pub(super) fn with_protection(self, protection: BTreeMap<String, ProtectionCosts>) -> Self {
        Self { protection, ..self }
    }

    /// There are no accounts of others than these.
    pub(super) fn check_executors<'a>(&self, executors: impl Iterator<Item = &'a str> + Clone) -> Result<(), String> {
        match self.accounts.iter().find(|accounts| !executors.clone().any(|name| name == accounts.executor)) {
            None => Ok(()),
            Some(Accounts { source, executor, .. }) => {
                Err(format!("{source}: accounts of an executor {executor:?}, which the system has not"))
            }
        }
    }

    /// The time of a stage, which does these jobs.
    pub(super) fn of_stage(
        &self,
        executor: &str,
        priority: i32,
        names: &[String],
        (flow, stage): (usize, usize),
    ) -> Result<MeasuredTime, String> {
        if names.is_empty() {
            return Err(format!("on executor {executor:?}: measured, but no jobs are named"));
        }
        if self.of_executor(executor).next().is_none() {
            return Err(format!("there are no accounts of the executor {executor:?}, whose time is to be measured"));
        }
        let jobs = names.iter().map(|name| self.enough(executor, priority, name)).collect::<Result<_, String>>()?;
        Ok(self.time(executor, jobs, (flow, stage)))
    }

    /// What a stage takes for what it seals and opens in one job.
    pub(super) fn of_protection(
        &self,
        executor: &str,
        protected: &[Protected<'_>],
        (flow, stage): (usize, usize),
    ) -> Result<MeasuredTime, String> {
        let Some(costs) = self.protection.get(executor) else {
            return Err(format!(
                "on executor {executor:?}, which has no protection: give it `protection = FILE`, made by `takt security measure --output FILE`"
            ));
        };
        let (jobs, from) = (vec![costs.together(protected)?], vec![costs.origin()]);
        Ok(MeasuredTime { flow, stage, jobs, margin_permille: self.margin_permille, from })
    }

    fn time(&self, executor: &str, jobs: Vec<MeasuredJobs>, (flow, stage): (usize, usize)) -> MeasuredTime {
        let from = self.of_executor(executor).map(Accounts::origin).collect();
        MeasuredTime { flow, stage, jobs, margin_permille: self.margin_permille, from }
    }

    fn of_executor(&self, executor: &str) -> impl Iterator<Item = &Accounts> {
        self.accounts.iter().filter(move |accounts| accounts.executor == executor)
    }

    /// The jobs of a class in all accounts of the executor.
    fn longest(&self, executor: &str, priority: i32, name: &str) -> MeasuredJobs {
        let jobs = self.of_executor(executor).flat_map(|accounts| &accounts.jobs);
        let class = jobs.filter(|jobs| jobs.called() == name && jobs.priority == priority);
        class.fold(MeasuredJobs { name: name.to_owned(), count: 0, max_ns: 0 }, |sum, jobs| MeasuredJobs {
            count: sum.count.saturating_add(jobs.count),
            max_ns: sum.max_ns.max(jobs.max_ns),
            ..sum
        })
    }

    /// How long a job may have to wait for locks that calls of other threads hold: what was waited, or the longest hold as
    /// [often](lock_waits) as it may find the lock taken. `planned` are priorities of the executor's flows.
    pub(super) fn lock_ns(&self, executor: &str, planned: impl Iterator<Item = i32>) -> u64 {
        let of = |kind: JobKind| self.longest_of_kinds(executor, &[kind], |_| true);
        let jobs = self.of_executor(executor).flat_map(|accounts| &accounts.jobs);
        let seen = jobs.filter(|jobs| !jobs.is_of_lock()).map(|jobs| jobs.priority);
        let priorities: BTreeSet<i32> = seen.chain(planned).collect();
        let participants = self.of_executor(executor).map(|accounts| accounts.participants).max().unwrap_or(1);
        let waits = lock_waits(participants, priorities.len() as u64);
        self.with_margin(of(JobKind::LockWait).max(of(JobKind::LockHold).saturating_mul(waits)))
    }

    /// The longest job that receives, sends or runs timers at normal priority.
    pub(super) fn normal_ns(&self, executor: &str) -> u64 {
        let kinds = [JobKind::Receive, JobKind::Transmit, JobKind::Timers];
        self.with_margin(self.longest_of_kinds(executor, &kinds, |priority| priority == Priority::NORMAL.get()))
    }

    fn longest_of_kinds(&self, executor: &str, kinds: &[JobKind], meant: fn(i32) -> bool) -> u64 {
        let jobs = self.of_executor(executor).flat_map(|accounts| &accounts.jobs);
        let jobs = jobs.filter(|jobs| meant(jobs.priority) && kinds.iter().any(|kind| kind.name() == jobs.kind));
        jobs.map(|jobs| jobs.max_ns).max().unwrap_or(0)
    }

    fn with_margin(&self, time_ns: u64) -> u64 {
        let with_margin = (u128::from(time_ns) * u128::from(self.margin_permille)).div_ceil(1000);
        u64::try_from(with_margin).unwrap_or(u64::MAX)
    }

    /// Those of a class, of which there are enough.
    fn enough(&self, executor: &str, priority: i32, name: &str) -> Result<MeasuredJobs, String> {
        let longest = self.longest(executor, priority, name);
        let what = format!("jobs {name:?} of priority {priority}");
        match longest.count {
            0 => {
                let known = self.of_executor(executor).flat_map(|accounts| &accounts.jobs);
                let known: Vec<String> = known.map(|jobs| format!("{} {}", jobs.called(), jobs.priority)).collect();
                Err(format!("the executor {executor:?} had no {what}; it had {}", known.join(", ")))
            }
            MEASURED_JOBS_MIN.. => Ok(longest),
            few => Err(format!("the executor {executor:?} had {few} {what}, at least {MEASURED_JOBS_MIN} are needed")),
        }
    }

    /// Adds to a system what its executors did besides what its flows do there: each class of jobs as often as it can come, so that it
    /// delays what is more urgent by one job.
    ///
    /// # Errors
    /// Such a class is as urgent as a flow that shall have a bound.
    pub(super) fn add_the_rest(&self, system: &mut System, measured: &mut Vec<MeasuredTime>) -> Result<(), String> {
        for accounts in &self.accounts {
            let executor = &accounts.executor;
            let Some(resource) = system.resources.iter().position(|resource| resource.name == *executor) else {
                continue;
            };
            for jobs in &accounts.jobs {
                let (name, priority) = (jobs.called(), jobs.priority);
                if jobs.is_of_lock() || has_jobs(system, measured, (resource, priority), name) {
                    continue;
                }
                let longest = self.longest(executor, priority, name);
                if let Some(flow) = system.flows.iter().find(|flow| waits_for(flow, resource, priority)) {
                    return Err(format!(
                        "the executor {executor:?} had {} jobs {name:?} of priority {priority}, which no flow has, and for which \
                         flow {:?} would wait without limit",
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

/// Whether a stage there has measured these jobs.
fn has_jobs(system: &System, measured: &[MeasuredTime], place: (usize, i32), name: &str) -> bool {
    measured.iter().any(|time| {
        let stage = system.flows[time.flow].stages[time.stage];
        (stage.resource, stage.priority) == place && time.jobs.iter().any(|job| job.name == name)
    })
}

/// Whether a flow that shall have a bound waits for all jobs of this priority there.
fn waits_for(flow: &Flow, resource: usize, priority: i32) -> bool {
    let mut here = flow.stages.iter().filter(|stage| stage.resource == resource);
    flow.arrivals.is_some() && here.any(|stage| stage.priority <= priority)
}
