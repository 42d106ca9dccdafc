//! Workloads with a network and processes of their own: isolation and sdn-overload.

use super::agents::{CellResult, Report};
use super::cell::{Cell, Latency, Measured};
use super::file::{Kind, Workload};
use super::parameter::Value;
use super::plan::Job;
use super::system::{Agent, System};
use crate::error::{Error, Result};
use crate::isolation::countermeasure::Configuration;
use crate::isolation::{self, interference::InterferencePlan, load::LoadPlan, network::LinkPlan};
use crate::machine::available_cpus;
use crate::sdn_overload::category::Category;
use crate::sdn_overload::flood::Flooded;
use crate::sdn_overload::outcome::Cell as Overloaded;
use crate::sdn_overload::pair::Program;
use crate::sdn_overload::site::{SWITCHES_MAX, Topology};
use crate::sdn_overload::{self, Condition};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Words between this program and the roles of an experiment.
const SIDE: [&str; 2] = ["bench", "side"];

/// Networks that experiments have created so far; each serves further jobs of its workload.
#[derive(Debug, Default)]
pub struct Experiments {
    isolation: Option<(Key, isolation::Bench)>,
    overload: Option<(Key, sdn_overload::Bench)>,
}

/// Workload index and system name.
type Key = (usize, String);

impl Experiments {
    /// Measures a job once.
    ///
    /// # Errors
    /// The machine cannot create the network, a process failed, or a signal requested a stop.
    pub fn measure(&mut self, job: &Job, workload: &Workload, place: (u32, u32)) -> Result<Report> {
        match workload.kind {
            Kind::Isolation => self.isolation(job, workload, place),
            Kind::SdnOverload => self.overload(job, workload),
            _ => Err(Error::Usage("this workload is measured by agents".into())),
        }
    }

    fn isolation(&mut self, job: &Job, workload: &Workload, (round, turn): (u32, u32)) -> Result<Report> {
        let key = (job.workload, job.system.name.clone());
        let bench = match self.isolation.take().filter(|(made_for, _)| *made_for == key) {
            Some((_, bench)) => bench,
            None => {
                let (program, words) = program(&job.system)?;
                isolation::Bench::new(isolation_plan(workload)?, program, &words)?
            }
        };
        let (_, bench) = self.isolation.insert((key, bench));
        let values = &job.cells[0].values;
        let name = values.get("configuration").map_or_else(|| "isolated".into(), ToString::to_string);
        let configuration = Configuration::named(&name, bench.available());
        let configuration = configuration.ok_or_else(|| Error::Usage(format!("unknown configuration {name}")))?;
        let interfered = values.get("interference").is_some_and(|value| value.to_string() == "on");
        let command = format!(
            "takt bench isolation: {name}: {}",
            configuration.measures.iter().map(|measure| measure.to_string()).collect::<Vec<_>>().join(", ")
        );
        let task = isolation::Task { configuration, size: whole(values.get("size"), 64) as usize, interfered };
        let cell = bench.measure(&task, round as usize, turn as usize)?;
        let lacks =
            bench.unavailable().iter().map(|missing| format!("{} unavailable: {}", missing.measure, missing.why));
        let commands = std::iter::once(command).chain(lacks).collect();
        let found = job.cells.iter().map(|one| isolated(one, &cell)).collect::<Result<_>>()?;
        Ok(Report { results: found, commands })
    }

    fn overload(&mut self, job: &Job, workload: &Workload) -> Result<Report> {
        let values = &job.cells[0].values;
        let text = |name: &str, default: &str| values.get(name).map_or_else(|| default.into(), ToString::to_string);
        let category: Category = text("category", "best-effort").parse().map_err(Error::Usage)?;
        let condition: Condition = text("condition", "idle").parse().map_err(Error::Usage)?;
        let size = whole(values.get("size"), 1400) as usize;
        let plan = overload_plan(workload)?;
        plan.check_possible()?;
        let key = (job.workload, job.system.name.clone());
        let bench = match self.overload.take().filter(|(made_for, _)| *made_for == key) {
            Some((_, bench)) => bench,
            None => sdn_overload::Bench::new(plan),
        };
        let (_, bench) = self.overload.insert((key, bench));
        let (path, words) = program(&job.system)?;
        let program = match words.is_empty() {
            true => Program::peer(&job.system.name, path),
            false => Program::takt(path, &words),
        };
        let mut cells = bench.measure(&program, category, size, condition)?;
        let command = format!("takt bench sdn-overload: {category}, {size} B, {condition}");
        let found = cells.drain(..1).map(|cell| overloaded(&job.cells[0], cell)).collect();
        Ok(Report { results: found, commands: vec![command] })
    }
}

/// Returns the program that runs the roles of an experiment, and the words before the role. Without
/// words, it is a program of lab/interop/peers.
fn program(system: &System) -> Result<(PathBuf, Vec<&'static str>)> {
    match system.agent() {
        Agent::Missing(why) => Err(Error::Agent { column: system.name.clone(), what: why }),
        Agent::Program { path, .. } if system.program == System::TAKT => Ok((path, SIDE.to_vec())),
        Agent::Program { path, .. } => Ok((path, Vec::new())),
    }
}

fn whole(value: Option<&Value>, default: u64) -> u64 {
    match value {
        Some(Value::Number(number)) => *number,
        Some(Value::Text(text)) => text.parse().unwrap_or(default),
        None => default,
    }
}

/// Returns a key of `measure`, checked against its limits.
fn key(workload: &Workload, name: &str, default: u64, limits: std::ops::RangeInclusive<u64>) -> Result<u64> {
    let value = whole(workload.measure.get(name), default);
    match limits.contains(&value) {
        true => Ok(value),
        false => Err(Error::Usage(format!("{name} = {value}: expected {} to {}", limits.start(), limits.end()))),
    }
}

fn isolation_plan(workload: &Workload) -> Result<isolation::Plan> {
    let key = |name, default, limits| key(workload, name, default, limits);
    let megabits = key("link-megabits", 100, 1..=10_000)? as u32;
    let rate = key("rate", 2000, 1..=20_000)?;
    Ok(isolation::Plan {
        sizes: Vec::new(),
        ablation: None,
        rounds: 0,
        count: key("count", 10_000, 1..=10_000_000)?,
        warmup: key("warmup", 500, 0..=10_000_000)?,
        period_ns: 1_000_000_000 / rate,
        cpus: [0, available_cpus().saturating_sub(1).min(1)],
        fifo: key("fifo", 99, 1..=99)? as u8,
        spins: false,
        link: LinkPlan { megabits, frames: key("queue", 256, 1..=100_000)? as u32 },
        interference: InterferencePlan {
            flows: key("flows", 50, 1..=100)? as u32,
            payload: key("flow-size", 0, 0..=1400)? as usize,
            megabits,
        },
        load: LoadPlan::default(),
        seed: 0,
    })
}

fn isolated(cell: &Cell, measured: &isolation::outcome::Cell) -> Result<CellResult> {
    let is_one_way = cell.values.get("way").is_some_and(|way| way.to_string() == "one-way");
    let (buckets, lost) = match is_one_way {
        true => (&measured.one_way, measured.lost_one_way),
        false => (&measured.round_trip, measured.lost_round_trip),
    };
    let latency = Latency::of_buckets(buckets);
    if latency.is_none() {
        return Err(Error::NoAnswer { what: format!("no sample of {cell} arrived") });
    }
    let late = measured.lateness.last().map_or(0, |(ns, _)| *ns);
    let [one, other] = measured.link_megabits;
    let figures = BTreeMap::from([
        ("lost".to_owned(), lost as f64),
        ("link_megabits".to_owned(), one.min(other)),
        ("late_max_us".to_owned(), late as f64 / 1e3),
    ]);
    let measured = Measured { figures, latency, arrivals: None };
    Ok(CellResult { cell: cell.clone(), measured, times_ns: Vec::new() })
}

fn overload_plan(workload: &Workload) -> Result<sdn_overload::Plan> {
    let key = |name, default, limits| key(workload, name, default, limits);
    let sizes = workload.parameters.0.get("size").into_iter().flatten();
    let conditions = workload.parameters.0.get("condition").into_iter().flatten();
    // A link can fail only in a ring.
    let is_ring = conditions.map(ToString::to_string).any(|condition| condition.starts_with("failed-link"));
    let switches = key("switches", 1, 1..=u64::from(SWITCHES_MAX))? as u8;
    Ok(sdn_overload::Plan {
        peers: Vec::new(),
        without_takt: false,
        topology: if is_ring { Topology::Ring } else { Topology::Row(switches) },
        readers: 1,
        categories: Vec::new(),
        sizes: sizes.map(|size| whole(Some(size), 1400) as usize).collect(),
        backgrounds: Vec::new(),
        seconds: key("secs", 25, 1..=3600)?,
        period_ns: 1000 * key("period-us", 5000, 500..=1_000_000)?,
        megabits: key("link-megabits", 100, 1..=1000)? as u32,
        frames_per_second: key("frame-rate", 40_000, 1_000..=10_000_000)? as u32,
        frames: key("queue", 256, 1..=10_000)? as u32,
    })
}

fn overloaded(cell: &Cell, run: Overloaded) -> CellResult {
    let mut figures = BTreeMap::from([
        ("lost".to_owned(), run.lost() as f64),
        ("delivered_percent".to_owned(), 100.0 * run.received as f64 / run.sent.max(1) as f64),
        ("longest_gap_ms".to_owned(), run.longest_gap_us / 1e3),
    ]);
    let mut add = |name: &str, value: Option<f64>| figures.extend(value.map(|value| (name.to_owned(), value)));
    add("bound_us", run.run.bound_ns.map(|ns| ns as f64 / 1e3));
    add("network_max_us", run.network.as_ref().map(|summary| summary.max));
    add("above_bound", run.above_bound.map(|(above, _)| above as f64));
    add("outage_ms", run.outage_us.map(|us| us / 1e3));
    let share = |Flooded { datagrams, planned }: Flooded| 100.0 * datagrams as f64 / planned.max(1) as f64;
    add("overload_percent", run.run.flooded.map(share));
    // A sample that arrived early counts as on time.
    let times_ns: Vec<u64> = run.series.normalised().map(|(_, ns)| u64::try_from(ns).unwrap_or(0)).collect();
    let measured = Measured { figures, latency: Latency::of(times_ns.clone()), arrivals: Some(run.series) };
    CellResult { cell: cell.clone(), measured, times_ns }
}
