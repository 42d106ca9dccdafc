//! Execution of a campaign: every job once in each round, repeated when the machine was disturbed.
//! The results of each job are written to disk at once.

use super::agent_survey::Survey;
use super::agents::{AgentLauncher, Report};
use super::cell::{Disturbance, Measurement, Outcome};
use super::directory::{Directory, Header, Missing, Results};
use super::environment;
use super::experiments::Experiments;
use super::file::{Campaign, Form, Length};
use super::plan::{self, Job, Refused};
use super::site::CampaignSite;
use super::system::{self, System};
use crate::campaign::lock_campaign;
use crate::error::{Error, Result};
use crate::machine::{Times, Usage, available_cpus, monotonic_ns};
use crate::signal::stopped;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// First DDS domain ID of jobs, and the number of domains in rotation, so that a late datagram of
/// one job does not reach the next ones. A job uses as many as its kind needs; the last jobs use
/// domains beyond that range.
const DOMAINS: (u32, u32) = (60, 32);
/// Number of failures of a job after which further rounds leave it out.
const FAILURES_MAX: usize = 2;
/// Pause after a job that failed, so that its processes can end.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(200);

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct Request {
    /// Campaign to run.
    pub campaign: Campaign,
    /// Length of the campaign.
    pub length: Length,
    /// Results directory.
    pub directory: PathBuf,
    /// Whether to resume from existing results.
    pub resumes: bool,
    /// Whether all latencies are kept below `raw/`.
    pub keeps_raw: bool,
    /// Names of the systems to measure; empty: all.
    pub only: Vec<String>,
    /// Further files of systems.
    pub systems: Vec<PathBuf>,
    /// Words of the command line.
    pub command: Vec<String>,
}

/// Progress event of a running campaign.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress<'a> {
    /// A system is not measured.
    Missing(&'a Missing),
    /// A cell is not measured, since its system does not support it.
    Refused(&'a Refused),
    /// The site lacks something that was requested.
    Place(&'a str),
    /// A job begins.
    Job {
        /// The job.
        job: &'a Job,
        /// Round, from 0.
        round: u32,
        /// Number of completed jobs, and of all jobs in all rounds.
        done: (usize, usize),
        /// Estimate of the remaining time; `None` before the first job is complete.
        remaining: Option<Duration>,
    },
    /// A job was disturbed and is repeated.
    Disturbed(Disturbance),
    /// A job failed.
    Failed(&'a str),
}

/// Runs a campaign. Waits until no other campaign runs on the machine.
///
/// # Errors
/// The campaign is incompatible with the systems or the machine, results cannot be written, or a
/// signal requested a stop. A failed job is a result, not an error.
pub fn run(request: &Request, progress: &mut dyn FnMut(Progress<'_>)) -> Result<()> {
    let _lock = lock_campaign()?;
    let all = system::systems(&request.systems)?;
    let campaign = only(&request.campaign, &request.only, &all)?;
    let wanted = plan::wanted(&campaign, &all)?;
    let place = match campaign.workloads.iter().all(|workload| workload.kind.is_experiment()) {
        // Experiments create networks of their own.
        true => CampaignSite::none(),
        false => CampaignSite::make(&campaign.site)?,
    };
    if let Some(why) = &place.missing {
        progress(Progress::Place(why));
    }
    let survey = Survey::of(&wanted, &place);
    let (jobs, refused) = plan::jobs(&campaign, &all, &survey.roles)?;
    let mut directory = open(request, &campaign, &survey, &place)?;
    let done = if request.resumes { Results::read(&request.directory)?.done() } else { BTreeSet::new() };
    survey.missing.iter().for_each(|missing| progress(Progress::Missing(missing)));
    refused.iter().for_each(|refused| progress(Progress::Refused(refused)));
    let is_there = |job: &Job| survey.missing.iter().all(|missing| missing.system != job.system.name);
    let jobs = jobs.into_iter().filter(is_there).collect();
    let mut driver = Driver {
        campaign: &campaign,
        jobs,
        place,
        cpus: cpus(),
        keeps_raw: request.keeps_raw,
        durations: BTreeMap::new(),
        failures: BTreeMap::new(),
        experiments: Experiments::default(),
        domain: 0,
        remaining: 0,
    };
    driver.rounds(&done, &mut directory, progress)
}

/// Returns the campaign with only the requested systems.
fn only(campaign: &Campaign, names: &[String], systems: &[System]) -> Result<Campaign> {
    let mut campaign = campaign.clone();
    if names.is_empty() {
        return Ok(campaign);
    }
    let wanted: Vec<&str> = system::selected(names, systems)?.iter().map(|system| system.name.as_str()).collect();
    for workload in &mut campaign.workloads {
        let selected = system::selected(&workload.systems, systems)?;
        let kept = selected.iter().map(|system| system.name.as_str()).filter(|name| wanted.contains(name));
        workload.systems = kept.map(ToOwned::to_owned).collect();
    }
    campaign.workloads.retain(|workload| !workload.systems.is_empty());
    if campaign.workloads.is_empty() {
        return Err(Error::Usage(format!("no workload has {}", names.join(", "))));
    }
    Ok(campaign)
}

fn open(request: &Request, campaign: &Campaign, survey: &Survey, place: &CampaignSite) -> Result<Directory> {
    let header = Header {
        campaign: campaign.clone(),
        length: request.length,
        systems: survey.systems.clone(),
        missing: survey.missing.clone(),
        roles: survey.roles.clone(),
        build: environment::build(),
        command: request.command.clone(),
    };
    if !request.resumes {
        let mut environment = environment::capture();
        environment["versions"] = survey.versions.clone().into();
        if let Some(ssh) = &place.ssh {
            environment["hosts"] = ssh.environments();
        }
        return Directory::create(&request.directory, &header, &environment);
    }
    let before = Results::read(&request.directory)?.header;
    if before.build != header.build {
        let text = format!("the results are from {}, this build is {}", before.build, header.build);
        return Err(Error::Usage(format!("{}: {text}; one build measures a campaign", request.directory.display())));
    }
    if before.campaign != header.campaign {
        let text = "the results are of another campaign, length or choice of systems";
        return Err(Error::Usage(format!("{}: {text}", request.directory.display())));
    }
    Directory::open(&request.directory)
}

/// Returns the first two processors, or the only one twice.
fn cpus() -> [usize; 2] {
    [0, available_cpus().saturating_sub(1).min(1)]
}

struct Driver<'a> {
    campaign: &'a Campaign,
    jobs: Vec<Job>,
    place: CampaignSite,
    cpus: [usize; 2],
    keeps_raw: bool,
    /// Duration of the last run of each job.
    durations: BTreeMap<usize, Duration>,
    failures: BTreeMap<usize, Vec<String>>,
    experiments: Experiments,
    domain: u32,
    remaining: usize,
}

impl Driver<'_> {
    fn rounds(
        &mut self,
        done: &BTreeSet<(super::cell::Cell, u32)>,
        directory: &mut Directory,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<()> {
        let is_done = |job: &Job, round: u32| job.cells.iter().all(|cell| done.contains(&(cell.clone(), round)));
        let total = self.jobs.len() * self.campaign.rounds as usize;
        self.remaining =
            (0..self.campaign.rounds).map(|round| self.jobs.iter().filter(|job| !is_done(job, round)).count()).sum();
        for round in 0..self.campaign.rounds {
            let order = plan::order(self.jobs.len(), self.campaign.seed, round);
            for (turn, at) in (0..).zip(order) {
                let job = self.jobs[at].clone();
                if is_done(&job, round) {
                    continue;
                }
                if stopped() {
                    return Err(Error::Stopped);
                }
                let left = self.time_left();
                progress(Progress::Job { job: &job, round, done: (total - self.remaining, total), remaining: left });
                let started = monotonic_ns();
                let measurements = self.job(&job, at, (round, turn), directory, progress)?;
                directory.append(&measurements)?;
                self.durations.insert(at, Duration::from_nanos(monotonic_ns() - started));
                self.remaining -= 1;
            }
        }
        Ok(())
    }

    /// Estimates the remaining time from the average duration of jobs.
    fn time_left(&self) -> Option<Duration> {
        let count = u32::try_from(self.durations.len()).ok().filter(|count| *count > 0)?; // tidy-allow(dropped-cause): never so many
        let mean = self.durations.values().sum::<Duration>() / count;
        Some(mean * u32::try_from(self.remaining).unwrap_or(u32::MAX))
    }

    /// Runs one job in one round, with its repetitions.
    fn job(
        &mut self,
        job: &Job,
        at: usize,
        (round, turn): (u32, u32),
        directory: &Directory,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Vec<Measurement>> {
        let started_at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let last_tried = self.failures.get(&at).and_then(|failures| failures.get(FAILURES_MAX - 1));
        let mut disturbance = Disturbance::default();
        let report = match last_tried {
            Some(why) => Err(format!("skipped after {FAILURES_MAX} failures: {why}")),
            None => self.tries(job, (round, turn), &mut disturbance, progress)?,
        };
        let measurement =
            |cell, commands, outcome| Measurement { cell, round, turn, at: started_at, disturbance, commands, outcome };
        let report = match report {
            Ok(report) => report,
            Err(why) => {
                progress(Progress::Failed(&why));
                self.failures.entry(at).or_default().push(why.clone());
                let failed = |cell: &super::cell::Cell| {
                    measurement(cell.clone(), Vec::new(), Outcome::Failed { why: why.clone() })
                };
                return Ok(job.cells.iter().map(failed).collect());
            }
        };
        let mut measurements = Vec::new();
        let shows_series =
            self.campaign.workloads[job.workload].figures.iter().any(|figure| figure.form == Form::Series);
        for mut found in report.results {
            let keeps_raw = self.keeps_raw && !found.times_ns.is_empty();
            if let (true, Some(latency)) = (keeps_raw, &mut found.measured.latency) {
                latency.raw = Some(directory.write_raw(&found.cell, round, &found.times_ns)?);
            }
            if let (false, Some(latency)) = (shows_series, &mut found.measured.latency) {
                latency.series = Vec::new();
            }
            let outcome = Outcome::Measured(Box::new(found.measured));
            measurements.push(measurement(found.cell, report.commands.clone(), outcome));
        }
        Ok(measurements)
    }

    /// Measures until the machine was quiet, or as often as the campaign allows. The inner error is
    /// a result: the job failed.
    fn tries(
        &mut self,
        job: &Job,
        (round, turn): (u32, u32),
        disturbance: &mut Disturbance,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<std::result::Result<Report, String>> {
        loop {
            let before = Times::now()?;
            let own = own_cpu_seconds();
            let measured = self.once(job, (round, turn));
            let after = Times::now()?;
            disturbance.tries += 1;
            // With ssh, the processes run on other machines.
            if self.place.ssh.is_none() {
                let span = after.since(&before);
                disturbance.foreign = span.share((span.busy_seconds - (own_cpu_seconds() - own)).max(0.0));
                disturbance.steal = span.share(span.stolen_seconds);
                disturbance.load = load();
                disturbance.disturbed = disturbance.foreign.max(disturbance.steal) > self.campaign.foreign_max;
            }
            match measured {
                Err(Error::Stopped) => return Err(Error::Stopped),
                _ if stopped() => return Err(Error::Stopped),
                Err(why) => {
                    std::thread::sleep(PAUSE_AFTER_FAILURE);
                    let why = if let Error::Agent { what, .. } = why { what } else { why.to_string() };
                    return Ok(Err(why));
                }
                Ok(report) if !disturbance.disturbed || disturbance.tries >= self.campaign.tries => {
                    return Ok(Ok(report));
                }
                Ok(_) => progress(Progress::Disturbed(*disturbance)),
            }
        }
    }

    fn once(&mut self, job: &Job, place: (u32, u32)) -> Result<Report> {
        let workload = &self.campaign.workloads[job.workload];
        if workload.kind.is_experiment() {
            return self.experiments.measure(job, workload, place);
        }
        let first = self.domain;
        self.domain = (first + workload.kind.domains()) % DOMAINS.1;
        let starter = AgentLauncher {
            place: &self.place,
            cpus: self.cpus,
            has_one_clock: self.campaign.site.has_one_clock(),
            domain: DOMAINS.0 + first,
            out: std::env::temp_dir().join(format!("takt-bench-{}.bin", std::process::id())),
        };
        starter.measure(job, workload)
    }
}

/// Returns the CPU time of this process and of its children that have ended.
fn own_cpu_seconds() -> f64 {
    Usage::now().cpu_seconds + Usage::of_children().cpu_seconds
}

/// Returns the load average of one minute; 0 if the kernel does not report it.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// Returns the name of a results directory below `parent`: the campaign, and the time as seconds
/// since 1970.
#[must_use]
pub fn directory_name(parent: &Path, campaign: &Campaign) -> PathBuf {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    parent.join(format!("{}-{seconds}", campaign.name))
}
