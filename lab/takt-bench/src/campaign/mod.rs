//! Round-trip campaign: compares several columns in interleaved rounds.
//!
//! The speed of a machine drifts, so every round measures each column once, in an order that
//! rotates, and a ratio is that of two medians of the same round. Each measurement starts two new
//! processes, one on each of two cores. During a measurement, the CPU time that other processes
//! take is recorded. A measurement that was disturbed too much can be repeated; the remaining
//! disturbance is reported. Two campaigns on one machine would disturb each other, so the second
//! waits for the first.

pub(crate) mod child;
mod column;
mod ratio;
mod rounds;
mod site;
mod stream;
mod table;
mod tcp_interference;

pub use column::{Column, columns_in};
pub use ratio::{Figure, Ratio, ratio};
pub use rounds::{Failure, Outcome};
pub use site::{End, Site};
pub use stream::{StreamCell, streams};
pub use table::{Row, table, tabulate};
pub use tcp_interference::{ALONE, TcpCell, tcp};

use crate::error::{Error, Result};
use crate::machine::{Usage, available_cpus, busy_seconds, monotonic_ns};
use crate::signal::stopped;
use crate::spec::History;
use crate::stats::Summary;
use child::{Child, Placement};
use rounds::run_rounds;
use serde::Serialize;
use serde_json::Value;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

const READY_LIMIT: Duration = Duration::from_secs(15);
/// Time limit of a run in addition to the limit of its round trips.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// Maximum average round-trip time that a run waits for.
const ROUND_TRIP_LIMIT: Duration = Duration::from_millis(10);
/// Number of domains in rotation. Consecutive cells use different domains, so that a late datagram
/// of one does not reach the next.
const DOMAINS: u32 = 16;

/// Settings that apply to every column.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Payload sizes, bytes.
    pub sizes: Vec<usize>,
    /// Number of rounds.
    pub rounds: usize,
    /// Number of round trips measured in each round, for each size.
    pub count: u64,
    /// Number of round trips before the measured ones.
    pub warmup: u64,
    /// Whether RELIABILITY is RELIABLE; otherwise BEST_EFFORT.
    pub reliable: bool,
    /// HISTORY of writers and readers.
    pub history: History,
    /// Interface that carries all traffic.
    pub interface: String,
    /// Address of the interface.
    pub address: String,
    /// First domain ID; cells use this one and the next few.
    pub domain: u32,
    /// Cores of the pinging and of the answering process.
    pub cpus: (usize, usize),
    /// `SCHED_FIFO` priority of both processes, of every column.
    pub fifo: Option<u8>,
    /// Share of the machine that other processes may take; a measurement above it is repeated.
    pub foreign_max: Option<f64>,
    /// Maximum number of tries of a measurement.
    pub tries: usize,
    /// Interval between two pings; `None`: the next ping follows the pong of the last.
    pub period: Option<Duration>,
    /// Hosts of the pinging and of the answering process; `None`: both processes run on this host.
    pub ends: Option<[End; 2]>,
    /// Whether a column that fails is left out; otherwise it ends the campaign.
    #[serde(rename = "goes_on")]
    pub continue_on_failure: bool,
}

/// Result of one column in one round, for one size.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Name of the column.
    pub column: String,
    /// Index of the round, from 0.
    pub round: usize,
    /// Payload size in bytes.
    pub size: usize,
    /// Round-trip times in us; `None` if there was no round trip at all.
    pub latency_us: Option<Summary>,
    /// Number of pings without a pong.
    pub lost: u64,
    /// CPU time of the pinging process per round trip, us.
    pub cpu_us: f64,
    /// Context switches of the pinging process per round trip.
    pub switches: f64,
    /// Whether a listener received the pongs.
    pub listening: bool,
    /// Share of the machine that other processes took during the measurement.
    pub foreign: f64,
    /// Number of measurements made; this is the last of them.
    pub tries: usize,
}

/// Measures `columns` in interleaved rounds. `progress` is called before every measurement.
///
/// Waits until no other campaign runs on the machine.
///
/// # Errors
/// A signal requested a stop. If the plan does not continue after a failure: an agent cannot be
/// started, violates the contract, or does not find its peer.
pub fn run(plan: &Plan, columns: &[Column], progress: &mut dyn FnMut(usize, &str)) -> Result<Outcome<Cell>> {
    let mut domains = Domains::of(plan);
    run_rounds(plan, &names(columns), progress, |at, round| {
        let mut tries = 1;
        loop {
            let mut measured = measure(plan, &columns[at], domains.next())?;
            let is_quiet = plan.foreign_max.is_none_or(|max| measured.iter().all(|cell| cell.foreign <= max));
            if is_quiet || tries >= plan.tries {
                for cell in &mut measured {
                    (cell.round, cell.tries) = (round, tries);
                }
                return Ok(measured);
            }
            if stopped() {
                return Err(Error::Stopped);
            }
            tries += 1;
        }
    })
}

fn names(columns: &[Column]) -> Vec<&str> {
    columns.iter().map(|column| column.name.as_str()).collect()
}

/// Cyclic sequence of the domain IDs of a plan.
struct Domains {
    first: u32,
    used: u32,
}

impl Domains {
    fn of(plan: &Plan) -> Self {
        Self { first: plan.domain, used: 0 }
    }

    fn next(&mut self) -> u32 {
        self.used = (self.used + 1) % DOMAINS;
        self.first + self.used
    }
}

/// Takes the lock of a running campaign. Dropping the file releases it.
pub(crate) fn lock_campaign() -> Result<File> {
    wait_for(&std::env::temp_dir().join("takt-perf.lock"))
}

/// Takes the lock on a file. Another user may have created the file, so it is opened for reading
/// and never written.
fn wait_for(path: &Path) -> Result<File> {
    let failure = |e| Error::os(path.display().to_string(), e);
    let file = match File::open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => File::options().create(true).append(true).open(path),
        opened => opened,
    };
    let file = file.map_err(failure)?;
    loop {
        match file.lock() {
            Ok(()) => return Ok(file),
            Err(e) if e.kind() == ErrorKind::Interrupted && stopped() => return Err(Error::Stopped),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(failure(e)),
        }
    }
}

/// Measures one column once, for all sizes.
fn measure(plan: &Plan, column: &Column, domain: u32) -> Result<Vec<Cell>> {
    let file = OutFile::new();
    let (busy, own, started_ns) = (busy_seconds()?, own_cpu_seconds(), monotonic_ns());

    let mut pong = Child::start(column, "pong", &arguments(plan, column, domain, 1), placement(plan, column, 1))?;
    pong.wait_for("ready", READY_LIMIT)?;
    let mut ping_arguments = arguments(plan, column, domain, 0);
    ping_arguments.push(format!("warmup={}", plan.warmup));
    ping_arguments.push(format!("count={}", plan.count));
    ping_arguments.push(format!("out={}", file.0.display()));
    if let Some(period) = plan.period {
        ping_arguments.push(format!("period_ns={}", period.as_nanos()));
    }
    let mut ping = Child::start(column, "ping", &ping_arguments, placement(plan, column, 0))?;
    let trips = (plan.count + plan.warmup) * plan.sizes.len() as u64;
    let limit = RUN_LIMIT + ROUND_TRIP_LIMIT * u32::try_from(trips).unwrap_or(u32::MAX);
    let results = ping.results_until("done", limit)?;
    ping.stop()?;
    pong.stop()?;

    let wall = (monotonic_ns() - started_ns) as f64 * 1e-9;
    let others = (busy_seconds()? - busy) - (own_cpu_seconds() - own);
    let foreign = (others / (wall * available_cpus() as f64)).max(0.0);
    let recorded = std::fs::read(&file.0).map_err(|e| Error::os("round-trip times", e))?;
    cells(plan, column, &results, &recorded, foreign)
}

/// Returns the placement of the first or the second process of a pair.
fn placement(plan: &Plan, column: &Column, side: usize) -> Placement {
    let cpu = Some([plan.cpus.0, plan.cpus.1][side]);
    let host = if column.on_one_host { 0 } else { side };
    let namespace = plan.ends.as_ref().map(|ends| ends[host].namespace.clone());
    Placement { cpu, fifo: plan.fifo, namespace, ..Placement::default() }
}

/// Returns the CPU time of this process and of its children that have ended.
fn own_cpu_seconds() -> f64 {
    Usage::now().cpu_seconds + Usage::of_children().cpu_seconds
}

/// Returns the arguments of the first or the second process of a pair. Those of the column come
/// last and take precedence.
fn arguments(plan: &Plan, column: &Column, domain: u32, side: usize) -> Vec<String> {
    let sizes: Vec<String> = plan.sizes.iter().map(ToString::to_string).collect();
    let history = match plan.history {
        History::KeepAll => "all".to_string(),
        History::KeepLast(depth) => depth.to_string(),
    };
    let reliability = if plan.reliable { "reliable" } else { "besteffort" };
    let mut arguments = vec![
        format!("domain={domain}"),
        format!("sizes={}", sizes.join(",")),
        format!("rel={reliability}"),
        format!("hist={history}"),
        format!("iface={}", plan.interface),
    ];
    match &plan.ends {
        None => arguments.push(format!("addr={}", plan.address)),
        Some(ends) => {
            arguments.push(format!("addr={}", ends[side].address));
            arguments.push(format!("peer={}", ends[1 - side].address));
        }
    }
    arguments.extend(column.arguments.iter().chain(&column.arguments_by_side[side]).cloned());
    arguments
}

/// Combines the results of a ping with its recorded times into one cell for each size.
fn cells(plan: &Plan, column: &Column, results: &[Value], recorded: &[u8], foreign: f64) -> Result<Vec<Cell>> {
    let mut times =
        recorded.chunks_exact(8).map(|bytes| bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)));
    let mut cells = Vec::new();
    for result in results {
        let whole = |key: &str| result[key].as_u64().unwrap_or(0);
        let got = whole("got");
        let mut values: Vec<u64> = times.by_ref().take(got as usize).collect();
        if values.len() as u64 != got {
            return Err(column.failure(format!("recorded {} of the {got} round trips that it reports", values.len())));
        }
        let trips = got.max(1) as f64;
        cells.push(Cell {
            column: column.name.clone(),
            round: 0,
            size: whole("size") as usize,
            latency_us: Summary::of(&mut values),
            lost: whole("lost"),
            cpu_us: result["cpu_s"].as_f64().unwrap_or(0.0) * 1e6 / trips,
            switches: (whole("nvcsw") + whole("nivcsw")) as f64 / trips,
            listening: whole("listening") != 0,
            foreign,
            tries: 1,
        });
    }
    if cells.len() != plan.sizes.len() {
        return Err(column.failure(format!("returned {} results for {} sizes", cells.len(), plan.sizes.len())));
    }
    Ok(cells)
}

/// Temporary file for round-trip times; dropping the value removes it.
struct OutFile(PathBuf);

impl OutFile {
    fn new() -> Self {
        let name = format!("takt-perf-{}.bin", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        // The file is missing if the agent failed before it wrote; there is nothing to clean up
        // then.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lock_file_created_by_another_user_can_be_locked() {
        let path = std::env::temp_dir().join(format!("takt-perf-lock-{}", std::process::id()));
        drop(wait_for(&path).expect("the file is created"));
        let read_only = std::os::unix::fs::PermissionsExt::from_mode(0o444);
        std::fs::set_permissions(&path, read_only).expect("the test owns the file");
        let held = wait_for(&path).expect("the file is readable");
        assert!(File::open(&path).expect("the file exists").try_lock().is_err(), "the lock is held");
        drop(held);
        std::fs::remove_file(&path).expect("the file exists");
    }

    pub(super) fn plan(sizes: &[usize]) -> Plan {
        Plan {
            sizes: sizes.to_vec(),
            rounds: 1,
            count: 2,
            warmup: 2,
            reliable: true,
            history: History::KeepAll,
            interface: "lo".into(),
            address: "127.0.0.1".into(),
            domain: 40,
            cpus: (0, 1),
            fifo: None,
            foreign_max: None,
            tries: 1,
            period: None,
            ends: None,
            continue_on_failure: false,
        }
    }

    fn column() -> Column {
        Column::parse("x=/bin/true,transport=udp").unwrap()
    }

    #[test]
    fn arguments_follow_the_contract_and_those_of_the_column_come_last() {
        let column = Column { arguments_by_side: [vec!["id=0".into()], vec!["id=1".into()]], ..column() };
        for side in [0, 1] {
            let known = ["domain=41", "sizes=16,64", "rel=reliable", "hist=all", "iface=lo", "addr=127.0.0.1"];
            let own = ["transport=udp".to_owned(), format!("id={side}")];
            assert_eq!(
                arguments(&plan(&[16, 64]), &column, 41, side),
                [known.map(String::from).as_slice(), &own].concat()
            );
        }
    }

    fn result(size: usize, got: u64) -> Value {
        json!({"ev": "result", "role": "ping", "size": size, "got": got, "lost": 1, "cpu_s": 0.0004, "wall_s": 1.0,
               "nvcsw": 6, "nivcsw": 2, "listening": 1})
    }

    fn recorded(times: &[u64]) -> Vec<u8> {
        times.iter().flat_map(|t| t.to_le_bytes()).collect()
    }

    #[test]
    fn recorded_times_are_assigned_to_their_sizes() {
        let results = [result(16, 2), result(64, 2)];
        let times = recorded(&[1000, 3000, 70_000, 50_000]);
        let cells = cells(&plan(&[16, 64]), &column(), &results, &times, 0.25).unwrap();
        assert_eq!(cells.len(), 2);
        let first = cells[0].latency_us.as_ref().unwrap();
        assert_eq!((first.min, first.max, first.p50), (1.0, 3.0, 1.0));
        assert_eq!(cells[1].latency_us.as_ref().unwrap().p50, 50.0);
        assert_eq!((cells[1].size, cells[1].lost), (64, 1));
        assert_eq!((cells[0].cpu_us, cells[0].switches), (200.0, 4.0));
        assert_eq!(cells[0].foreign, 0.25);
    }

    #[test]
    fn missing_times_and_missing_sizes_are_failures() {
        let few = cells(&plan(&[16]), &column(), &[result(16, 2)], &recorded(&[1]), 0.0);
        assert!(few.unwrap_err().to_string().contains("recorded 1 of the 2"));
        let none = cells(&plan(&[16, 64]), &column(), &[result(16, 0)], &[], 0.0);
        assert!(none.unwrap_err().to_string().contains("1 results for 2 sizes"));
    }

    #[test]
    fn cell_without_round_trips_has_no_latency() {
        let cells = cells(&plan(&[16]), &column(), &[result(16, 0)], &[], 0.0).unwrap();
        assert_eq!(cells[0].latency_us, None);
    }
}
