//! Execution of one job of a campaign: starts the agents, waits for their results, and converts
//! these to figures.

mod churn;
mod discovery;
mod filter;
mod idle;
mod late_join;
mod loss;
mod mix;
mod out_file;
mod partition;
mod round_trip;
mod stream;

use super::cell::{Cell, Measured};
use super::file::{Kind, Workload};
use super::parameter::{self, Value};
use super::plan::Job;
use super::protection::Enclaves;
use super::site::{CampaignSite, End};
use super::system::Agent;
use crate::campaign::Column;
use crate::campaign::child::{Child, Placement};
use crate::error::{Error, Result};
use crate::signal::stopped;
use out_file::OutFile;
use serde_json::Value as Line;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const READY_LIMIT: Duration = Duration::from_secs(20);
/// Time for matching, warm-up and repairs of a job, in addition to its measured time.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// Interval between checks whether this process must stop.
const WAIT_STEP: Duration = Duration::from_millis(5);
/// TCP port of brokers.
const BROKER_PORT: u16 = 17_400;

/// Waits for `time`, or returns an error when this process must stop.
fn wait(time: Duration) -> Result<()> {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        if stopped() {
            return Err(Error::Stopped);
        }
        std::thread::sleep(left.min(WAIT_STEP));
    }
    Ok(())
}

/// Figures of a cell, and all its latencies in sample order.
#[derive(Debug)]
pub struct CellResult {
    /// Measured cell.
    pub cell: Cell,
    /// Figures.
    pub measured: Measured,
    /// Latencies, ns.
    pub times_ns: Vec<u64>,
}

/// Results of a job.
#[derive(Debug)]
pub struct Report {
    /// Results of each cell.
    pub results: Vec<CellResult>,
    /// Command lines, the measuring process first.
    pub commands: Vec<String>,
}

/// Settings for starting agents.
#[derive(Debug)]
pub struct AgentLauncher<'a> {
    /// Hosts of the two ends.
    pub place: &'a CampaignSite,
    /// Processors of the two ends.
    pub cpus: [usize; 2],
    /// Whether both ends share one clock, so that one-way latencies are possible.
    pub has_one_clock: bool,
    /// Domain ID of this job.
    pub domain: u32,
    /// File for latencies.
    pub out: PathBuf,
}

/// Running process of a job.
struct Process<'a> {
    role: &'static str,
    side: usize,
    arguments: Vec<String>,
    child: Child<'a>,
}

impl AgentLauncher<'_> {
    /// Measures a job once.
    ///
    /// # Errors
    /// An agent is missing, cannot be started, fails, or violates the contract, or a signal
    /// requested a stop.
    pub fn measure(&self, job: &Job, workload: &Workload) -> Result<Report> {
        let column = column_of(&job.system.name, self.place.agent(&job.system))?;
        let columns = [0, 1].map(|side| self.place.column(side, &column));
        let broker_column = self.place.broker_agent(&job.system).map(|agent| column_of(&job.system.name, agent));
        let broker_column = broker_column.transpose()?.map(|column| self.place.column(1, &column));
        let broker = broker_column.as_ref().map(|column| self.broker(column, &job.system.arguments)).transpose()?;
        let enclaves = Enclaves::of(&job.cells[0].values)?;
        if enclaves.is_some() && self.place.ssh.is_some() {
            return Err(Error::Usage("protection: not supported on other machines, which lack the files".into()));
        }
        let measurement = Measurement { launcher: self, job, workload, columns, enclaves };
        let report = match workload.kind {
            Kind::RoundTrip => measurement.round_trip(),
            Kind::Stream => measurement.stream(),
            Kind::BothWays => measurement.both_ways(),
            Kind::Idle => measurement.idle(),
            Kind::OpenLoop => measurement.open_loop(),
            Kind::Discovery => measurement.discovery(),
            Kind::Mesh => measurement.mesh(),
            Kind::Memory => measurement.memory(),
            Kind::LateJoin => measurement.late_join(),
            Kind::Partition => measurement.partition(),
            Kind::Loss => measurement.loss(),
            Kind::Mix => measurement.mix(),
            Kind::Filter => measurement.filter(),
            Kind::Churn => measurement.churn(),
            Kind::Isolation | Kind::SdnOverload => Err(Error::Usage("an experiment has no agents".into())),
        };
        if let Some(mut broker) = broker {
            broker.stop()?;
        }
        report
    }

    fn broker<'a>(&self, column: &'a Column, of_system: &[String]) -> Result<Child<'a>> {
        let end = &self.place.ends[1];
        let mut arguments = vec![format!("broker={}:{BROKER_PORT}", end.address), format!("domain={}", self.domain)];
        arguments.extend(of_system.iter().cloned());
        let arguments = self.place.words(&arguments);
        let mut broker = Child::start(column, "broker", &arguments, self.placement(1))?;
        broker.wait_for("ready", RUN_LIMIT)?;
        Ok(broker)
    }

    fn placement(&self, side: usize) -> Placement {
        let End { namespace, .. } = &self.place.ends[side];
        // On another machine, that machine binds the agent to the processor.
        let cpu = self.place.ssh.is_none().then_some(self.cpus[side]);
        Placement { cpu, fifo: None, namespace: namespace.clone(), mounts: self.place.mounts(side) }
    }
}

fn column_of(name: &str, agent: Agent) -> Result<Column> {
    match agent {
        Agent::Program { path, prefix } => Ok(Column { name: name.into(), program: path, prefix, ..Column::default() }),
        Agent::Missing(why) => Err(Error::Agent { column: name.into(), what: why }),
    }
}

/// Job in progress.
struct Measurement<'a> {
    launcher: &'a AgentLauncher<'a>,
    job: &'a Job,
    workload: &'a Workload,
    /// Column of the agent at each end.
    columns: [Column; 2],
    /// Identities, if samples are protected.
    enclaves: Option<Enclaves>,
}

impl Measurement<'_> {
    /// Returns the arguments of a process: those of the site, of the workload, of the cell, and
    /// finally of the system.
    fn arguments(&self, side: usize, further: &[String]) -> Result<Vec<String>> {
        let ends = &self.launcher.place.ends;
        let system = &self.job.system;
        let mut arguments = vec![
            format!("domain={}", self.launcher.domain),
            format!("iface={}", ends[side].interface),
            format!("addr={}", ends[side].address),
        ];
        if self.launcher.place.are_two {
            arguments.push(format!("peer={}", ends[1 - side].address));
        }
        if system.broker.is_some() {
            arguments.push(format!("broker={}:{BROKER_PORT}", ends[1].address));
        }
        arguments.extend(self.workload.measure.iter().map(|(key, value)| format!("{key}={value}")));
        let mut values = self.job.cells[0].values.clone();
        if self.job.cells.len() > 1 {
            values.remove(self.workload.kind.within_a_job().unwrap_or_default());
        }
        arguments.extend(parameter::arguments(&values)?);
        arguments.extend(self.enclaves.as_ref().map(|enclaves| enclaves.argument(side)));
        arguments.extend(further.iter().cloned());
        arguments.extend(system.last_arguments().chain(system.sides[side].iter().cloned()));
        Ok(arguments)
    }

    fn start(&self, role: &'static str, side: usize, further: &[String]) -> Result<Process<'_>> {
        let arguments = self.launcher.place.words(&self.arguments(side, further)?);
        let child = Child::start(&self.columns[side], role, &arguments, self.launcher.placement(side))?;
        Ok(Process { role, side, arguments, child })
    }

    fn command(&self, process: &Process<'_>) -> String {
        let column = &self.columns[process.side];
        let program = super::system::portable(&column.program);
        let words = std::iter::once(program.as_str()).chain(column.prefix.iter().map(String::as_str));
        let words = words.chain([process.role]).chain(process.arguments.iter().map(String::as_str));
        words.collect::<Vec<_>>().join(" ")
    }

    fn number(&self, key: &str, default: u64) -> u64 {
        let of_cell = self.job.cells[0].values.get(key);
        match of_cell.or_else(|| self.workload.measure.get(key)) {
            Some(Value::Number(number)) => *number,
            Some(Value::Text(text)) => text.parse().unwrap_or(default),
            None => default,
        }
    }

    fn seconds(&self, key: &str, default: f64) -> Duration {
        let text = self.workload.measure.get(key).map(ToString::to_string);
        let seconds = text.and_then(|text| text.parse().ok()).unwrap_or(default);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    fn failure(&self, what: impl Into<String>) -> Error {
        Error::Agent { column: self.columns[0].name.clone(), what: what.into() }
    }

    fn stream_limit(&self) -> Duration {
        RUN_LIMIT + 4 * (self.seconds("secs", 2.0) + self.seconds("warm_s", 0.5))
    }

    /// Returns the key with the current time. A process on another machine counts from its own
    /// start.
    fn started(&self) -> String {
        let is_on_this_host = self.launcher.place.ssh.is_none();
        format!("t0={}", if is_on_this_host { crate::machine::monotonic_ns() } else { 0 })
    }

    /// Returns a file for latencies at one of the ends.
    fn out_file(&self, side: usize) -> OutFile<'_> {
        OutFile::new(&self.launcher.out, self.launcher.place.ssh.as_ref().map(|ssh| (ssh, side)))
    }

    /// Returns a file for the latencies of one of several processes.
    fn numbered_out_file(&self, side: usize, number: u32) -> OutFile<'_> {
        let path = self.launcher.out.with_extension(format!("{number}.bin"));
        OutFile::new(&path, self.launcher.place.ssh.as_ref().map(|ssh| (ssh, side)))
    }

    /// Returns the report of a job with one cell and without latencies.
    fn report(&self, figures: BTreeMap<String, f64>, commands: Vec<String>) -> Report {
        let measured = Measured { figures, latency: None, ..Measured::default() };
        Report {
            results: vec![CellResult { cell: self.job.cells[0].clone(), measured, times_ns: Vec::new() }],
            commands,
        }
    }
}

fn whole(line: &Line, key: &str) -> u64 {
    line[key].as_u64().unwrap_or(0)
}

fn number(line: &Line, key: &str) -> f64 {
    line[key].as_f64().unwrap_or(0.0)
}
