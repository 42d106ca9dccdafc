//! One job: starts the agents, waits for their results, and turns these into figures.

use super::cell::{Cell, Latency, Measured};
use super::file::{Kind, Workload};
use super::parameter::{self, Value};
use super::plan::Job;
use super::site::{End, Place};
use super::system::Agent;
use crate::campaign::Column;
use crate::campaign::child::{Child, Placement};
use crate::error::{Error, Result};
use serde_json::Value as Line;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const READY_LIMIT: Duration = Duration::from_secs(20);
/// Time for matching, warm-up and repairs of a job, in addition to what it measures.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// Slowest round trip that is waited for, on average.
const ROUND_TRIP_LIMIT: Duration = Duration::from_millis(10);
/// Port of brokers.
const BROKER_PORT: u16 = 17_400;
/// Longest list of latencies that is read from an agent.
const TIMES_LEN_MAX: u64 = 1 << 30;

/// The figures of a cell, and all its latencies in their order.
#[derive(Debug)]
pub struct Found {
    /// The cell.
    pub cell: Cell,
    /// Its figures.
    pub measured: Measured,
    /// Its latencies, ns.
    pub times_ns: Vec<u64>,
}

/// What a job gave.
#[derive(Debug)]
pub struct Report {
    /// One for each cell.
    pub found: Vec<Found>,
    /// Command lines, the measuring process first.
    pub commands: Vec<String>,
}

/// How agents are started.
#[derive(Debug)]
pub struct Starter<'a> {
    /// Where.
    pub place: &'a Place,
    /// Processors of the two ends.
    pub cpus: [usize; 2],
    /// Domain of this job.
    pub domain: u32,
    /// File for latencies.
    pub out: PathBuf,
}

/// A process of a job.
struct Process<'a> {
    role: &'static str,
    arguments: Vec<String>,
    child: Child<'a>,
}

impl Starter<'_> {
    /// Measures a job once.
    ///
    /// # Errors
    /// An agent is missing, cannot be started, fails, or does not follow the contract; a signal asked to stop.
    pub fn measure(&self, job: &Job, workload: &Workload) -> Result<Report> {
        let column = column_of(&job.system.name, job.system.agent())?;
        let broker_column = job.system.broker_agent().map(|agent| column_of(&job.system.name, agent)).transpose()?;
        let broker = broker_column.as_ref().map(|column| self.broker(column)).transpose()?;
        let measurement = Measurement { starter: self, job, workload, column: &column };
        let report = match workload.kind {
            Kind::RoundTrip => measurement.round_trip(),
            Kind::Stream => measurement.stream(),
            Kind::BothWays => measurement.both_ways(),
            Kind::Idle => measurement.idle(),
        };
        if let Some(mut broker) = broker {
            broker.stop()?;
        }
        report
    }

    fn broker<'a>(&self, column: &'a Column) -> Result<Child<'a>> {
        let end = &self.place.ends[1];
        let arguments = [format!("broker={}:{BROKER_PORT}", end.address), format!("domain={}", self.domain)];
        let mut broker = Child::start(column, "broker", &arguments, self.placement(1))?;
        broker.wait_for("ready", RUN_LIMIT)?;
        Ok(broker)
    }

    fn placement(&self, side: usize) -> Placement {
        let End { namespace, .. } = &self.place.ends[side];
        Placement { cpu: Some(self.cpus[side]), fifo: None, namespace: namespace.clone() }
    }
}

fn column_of(name: &str, agent: Agent) -> Result<Column> {
    match agent {
        Agent::Program { path, prefix } => Ok(Column { name: name.into(), program: path, prefix, ..Column::default() }),
        Agent::Missing(why) => Err(Error::Agent { column: name.into(), what: why }),
    }
}

/// One job while it is measured.
struct Measurement<'a> {
    starter: &'a Starter<'a>,
    job: &'a Job,
    workload: &'a Workload,
    column: &'a Column,
}

impl<'a> Measurement<'a> {
    /// Arguments of a process: those of the place, of the workload, of the cell, and at last of the system.
    fn arguments(&self, side: usize, further: &[String]) -> Result<Vec<String>> {
        let ends = &self.starter.place.ends;
        let system = &self.job.system;
        let mut arguments = vec![
            format!("domain={}", self.starter.domain),
            format!("iface={}", ends[side].interface),
            format!("addr={}", ends[side].address),
        ];
        if self.starter.place.are_two {
            arguments.push(format!("peer={}", ends[1 - side].address));
        }
        if system.broker.is_some() {
            arguments.push(format!("broker={}:{BROKER_PORT}", ends[1].address));
        }
        arguments.extend(self.workload.measure.iter().map(|(key, value)| format!("{key}={value}")));
        let mut values = self.job.cells[0].values.clone();
        if self.job.cells.len() > 1 {
            values.remove(parameter::WITHIN_A_JOB);
        }
        arguments.extend(parameter::arguments(&values)?);
        arguments.extend(further.iter().cloned());
        arguments.extend(system.last_arguments().chain(system.sides[side].iter().cloned()));
        Ok(arguments)
    }

    fn start(&self, role: &'static str, side: usize, further: &[String]) -> Result<Process<'a>> {
        let arguments = self.arguments(side, further)?;
        let child = Child::start(self.column, role, &arguments, self.starter.placement(side))?;
        Ok(Process { role, arguments, child })
    }

    fn command(&self, process: &Process<'_>) -> String {
        let program = self.column.program.display().to_string();
        let words = std::iter::once(program.as_str()).chain(self.column.prefix.iter().map(String::as_str));
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
        Error::Agent { column: self.column.name.clone(), what: what.into() }
    }

    fn round_trip(&self) -> Result<Report> {
        let cells = &self.job.cells;
        let sizes: Vec<String> =
            cells.iter().filter_map(|cell| cell.values.get("size")).map(ToString::to_string).collect();
        let mut of_both = Vec::new();
        if cells.len() > 1 {
            of_both.push(format!("sizes={}", sizes.join(",")));
        }
        let out = OutFile::new(&self.starter.out);
        let mut pong = self.start("pong", 1, &of_both)?;
        pong.child.wait_for("ready", READY_LIMIT)?;
        let of_ping = [of_both, vec![format!("out={}", out.0.display())]].concat();
        let mut ping = self.start("ping", 0, &of_ping)?;
        let commands = vec![self.command(&ping), self.command(&pong)];
        let (warmup, count) = (self.number("warmup", 1000), self.number("count", 10_000));
        let period = Duration::from_micros(self.number("period-us", 0)).max(ROUND_TRIP_LIMIT);
        let trips = u32::try_from((warmup + count) * cells.len() as u64).unwrap_or(u32::MAX);
        let results = ping.child.results_until("done", RUN_LIMIT + period.saturating_mul(trips))?;
        ping.child.stop()?;
        pong.child.stop()?;
        if results.len() != cells.len() {
            return Err(self.failure(format!("ping gave {} results for {} cells", results.len(), cells.len())));
        }
        let mut times = self.read_times(&out)?.into_iter();
        let mut found = Vec::new();
        for (cell, result) in cells.iter().zip(&results) {
            let got = whole(result, "got");
            let times_ns: Vec<u64> = times.by_ref().take(usize::try_from(got).unwrap_or(usize::MAX)).collect();
            if times_ns.len() as u64 != got {
                let text = format!("ping reports {got} round trips and recorded {}", times_ns.len());
                return Err(self.failure(text));
            }
            let trips = got.max(1) as f64;
            let figures = BTreeMap::from([
                ("lost".to_owned(), whole(result, "lost") as f64),
                ("cpu_us".to_owned(), number(result, "cpu_s") * 1e6 / trips),
                ("switches".to_owned(), (whole(result, "nvcsw") + whole(result, "nivcsw")) as f64 / trips),
            ]);
            let latency = Latency::of(times_ns.clone());
            if latency.is_none() {
                return Err(self.failure(format!("no round trip of {cell} came back")));
            }
            found.push(Found { cell: cell.clone(), measured: Measured { figures, latency }, times_ns });
        }
        Ok(Report { found, commands })
    }

    fn read_times(&self, out: &OutFile) -> Result<Vec<u64>> {
        let name = || out.0.display().to_string();
        let len = std::fs::metadata(&out.0).map_err(|e| Error::os(name(), e))?.len();
        if len > TIMES_LEN_MAX {
            return Err(self.failure(format!("recorded {len} octets of times; at most {TIMES_LEN_MAX} are read")));
        }
        let bytes = std::fs::read(&out.0).map_err(|e| Error::os(name(), e))?;
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        Ok(bytes.chunks_exact(8).map(number).collect())
    }

    fn stream_limit(&self) -> Duration {
        RUN_LIMIT + 4 * (self.seconds("secs", 2.0) + self.seconds("warm_s", 0.5))
    }

    fn stream(&self) -> Result<Report> {
        let readers = self.number("readers", 1).max(1);
        let out = OutFile::new(&self.starter.out);
        let mut subscribers = Vec::new();
        for id in 0..readers {
            // Of a stream as fast as possible, latencies say how long its queues are, and keeping them costs.
            let has_times = id == 0 && self.number("rate", 0) > 0;
            let further = if has_times { vec![format!("out={}", out.0.display())] } else { Vec::new() };
            let mut process = self.start("sub", 1, &[further, vec![format!("id={id}")]].concat())?;
            process.child.wait_for("ready", READY_LIMIT)?;
            subscribers.push(process);
        }
        let mut publisher = self.start("pub", 0, &[format!("n={readers}")])?;
        let mut commands = vec![self.command(&publisher)];
        commands.extend(subscribers.iter().map(|process| self.command(process)));
        let limit = self.stream_limit();
        let written = publisher.child.wait_for("result", limit)?;
        let mut received = Vec::new();
        for process in &mut subscribers {
            received.push(process.child.wait_for("result", limit)?);
        }
        publisher.child.stop()?;
        for process in &mut subscribers {
            process.child.stop()?;
        }
        let times_ns = if out.0.exists() { self.read_times(&out)? } else { Vec::new() };
        let figures = stream_figures(&written, &received);
        let measured = Measured { figures, latency: Latency::of(times_ns.clone()) };
        Ok(Report { found: vec![Found { cell: self.job.cells[0].clone(), measured, times_ns }], commands })
    }

    /// A stream each way, in domains of their own.
    fn both_ways(&self) -> Result<Report> {
        let other = format!("domain={}", self.starter.domain + 1);
        let limit = self.stream_limit();
        let (mut readers, mut commands) = (Vec::new(), Vec::new());
        for (side, further) in [(1, Vec::new()), (0, vec![other.clone()])] {
            let mut process = self.start("sub", side, &further)?;
            process.child.wait_for("ready", READY_LIMIT)?;
            readers.push(process);
        }
        let mut writers = [self.start("pub", 0, &[])?, self.start("pub", 1, &[other])?];
        commands.extend(writers.iter().chain(&readers).map(|process| self.command(process)));
        let mut figures: BTreeMap<String, f64> = BTreeMap::new();
        for (writer, reader) in writers.iter_mut().zip(&mut readers) {
            let written = writer.child.wait_for("result", limit)?;
            let received = reader.child.wait_for("result", limit)?;
            for (name, value) in stream_figures(&written, &[received]) {
                *figures.entry(name).or_default() += value;
            }
        }
        for process in writers.iter_mut().chain(&mut readers) {
            process.child.stop()?;
        }
        let megabytes = figures.get("megabytes_per_second").copied().unwrap_or(0.0);
        figures.insert("megabits_per_second".into(), megabytes * 8.0);
        figures.remove("delivered_percent");
        let measured = Measured { figures, latency: None };
        Ok(Report { found: vec![Found { cell: self.job.cells[0].clone(), measured, times_ns: Vec::new() }], commands })
    }

    fn idle(&self) -> Result<Report> {
        let started = crate::machine::monotonic_ns();
        let mut first = self.start("idle", 1, &["id=1".into(), format!("t0={started}")])?;
        first.child.wait_for("ready", READY_LIMIT)?;
        let started = crate::machine::monotonic_ns();
        let mut second = self.start("idle", 0, &["id=0".into(), format!("t0={started}")])?;
        let commands = vec![self.command(&second), self.command(&first)];
        let matched = second.child.wait_for("matched", RUN_LIMIT)?;
        let result = second.child.wait_for("result", self.stream_limit())?;
        second.child.stop()?;
        first.child.stop()?;
        let wall = number(&result, "wall_s").max(1e-9);
        let mut figures = BTreeMap::from([
            ("match_ms".to_owned(), number(&matched, "match_ms")),
            ("init_ms".to_owned(), number(&matched, "init_ms") - number(&matched, "main_ms")),
            ("idle_cpu_percent".to_owned(), 100.0 * number(&result, "cpu_s") / wall),
            ("idle_switches_hz".to_owned(), number(&result, "nvcsw") / wall),
        ]);
        for key in ["resident_kib", "private_kib"] {
            figures.extend(result[key].as_f64().map(|value| (key.to_owned(), value)));
        }
        if let (Some(bare), Some(resident)) = (result["bare_kib"].as_f64(), result["resident_kib"].as_f64()) {
            figures.insert("participant_kib".into(), resident - bare);
        }
        let measured = Measured { figures, latency: None };
        Ok(Report { found: vec![Found { cell: self.job.cells[0].clone(), measured, times_ns: Vec::new() }], commands })
    }
}

fn stream_figures(written: &Line, received: &[Line]) -> BTreeMap<String, f64> {
    let rate = |line: &Line, key: &str| {
        let seconds = number(line, "wall_s");
        if seconds > 0.0 { number(line, key) / seconds } else { 0.0 }
    };
    let slowest = |key: &str| received.iter().map(|line| rate(line, key)).fold(f64::INFINITY, f64::min);
    let worst = |line: &Line| whole(line, "span").saturating_sub(whole(line, "n"));
    let delivered = |line: &Line| 100.0 * whole(line, "n") as f64 / whole(line, "span").max(1) as f64;
    let per_sample = |line: &Line| number(line, "cpu_s") * 1e6 / whole(line, "n").max(1) as f64;
    let share = |line: &Line| 100.0 * number(line, "cpu_s") / number(line, "wall_s").max(1e-9);
    let mean = |of: &dyn Fn(&Line) -> f64| received.iter().map(of).sum::<f64>() / received.len().max(1) as f64;
    let figures = [
        ("written_hz", rate(written, "n")),
        ("received_hz", slowest("n")),
        ("megabytes_per_second", slowest("bytes") * 1e-6),
        ("lost", received.iter().map(worst).max().unwrap_or(0) as f64),
        ("delivered_percent", received.iter().map(delivered).fold(100.0, f64::min)),
        ("writer_cpu_us", per_sample(written)),
        ("reader_cpu_us", mean(&per_sample)),
        ("writer_cpu_percent", share(written)),
        ("reader_cpu_percent", mean(&share)),
    ];
    figures.map(|(name, value)| (name.to_owned(), value)).into()
}

fn whole(line: &Line, key: &str) -> u64 {
    line[key].as_u64().unwrap_or(0)
}

fn number(line: &Line, key: &str) -> f64 {
    line[key].as_f64().unwrap_or(0.0)
}

/// A file for latencies that is gone afterwards.
struct OutFile(PathBuf);

impl OutFile {
    fn new(path: &std::path::Path) -> Self {
        // An earlier process may have left it.
        let _ = std::fs::remove_file(path);
        Self(path.into())
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        // It is not there if the agent failed before it wrote.
        let _ = std::fs::remove_file(&self.0);
    }
}
