//! `takt perf compare`: round trips over Takt, plain UDP and other middleware, in interleaved
//! rounds.

use super::options::{Notification, Qos, RuntimeName, size};
use super::run::refuse_starvation;
use crate::completion::interfaces;
use crate::output::{note, out, outln, progress};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;
use std::path::PathBuf;
use takt_bench::campaign::{self, Cell, Column, Plan, Row, columns_in};
use takt_bench::link::{Idle, Notify};
use takt_bench::machine::{available_cpus, interface_ipv4};
use takt_bench::report::{Host, to_json};
use takt_bench::{Error, Result};

/// Environment variable with the directory of the agents of other middleware.
const AGENTS_VARIABLE: &str = "TAKT_AGENTS";
const RAW: &str = "raw-udp";
const RAW_SPIN: &str = "raw-udp-spin";
const RAW_SHM: &str = "raw-shm";
const RAW_SHM_SPIN: &str = "raw-shm-spin";

const EXAMPLES: &str = "\
The ratio of a round is the median of a column divided by the median of plain UDP in the same round. The table shows
the median of the ratios and, in brackets, the minimum and the maximum. Columns of other middleware sleep when idle
and are compared with plain UDP that sleeps.

Examples:
  takt perf compare                                      sleeping and spinning, 64 bytes
  takt perf compare --size 16,64,1024,8192 --spin
  takt perf compare --shm                                also shared memory
  takt perf compare --block --peer cyclone=./cyclone --peer fastdds=./fastdds,transport=udp
  takt perf compare --rounds 21 --quiet 5 --json         repeats measurements disturbed by more than 5 %";

/// `takt perf compare`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Compare {
    /// Payloads in bytes, separated by commas
    #[arg(long, default_value = "64", value_name = "BYTES", value_delimiter = ',', value_parser = size)]
    size: Vec<usize>,
    /// Rounds; every column is measured once in each
    #[arg(long, default_value = "11", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Round trips to measure in each round
    #[arg(long, default_value = "10000", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
    /// Round trips of the warm-up in each round
    #[arg(long, default_value = "1000", value_name = "N")]
    warmup: u64,
    /// Measure columns that spin: poll for input without sleeping
    #[arg(long)]
    spin: bool,
    /// Measure columns that sleep without input (without --spin and --block: both)
    #[arg(long)]
    block: bool,
    /// Also measure shared memory, and plain shared memory as its baseline
    #[arg(long)]
    shm: bool,
    #[command(flatten)]
    qos: Qos,
    #[command(flatten)]
    notification: Notification,
    /// Thread that drives Takt's participant
    #[arg(long, value_enum, default_value = "inline")]
    runtime: RuntimeName,
    /// Cores of the process that sends pings and of the process that answers
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    cpu: Vec<usize>,
    /// SCHED_FIFO priority of both processes, in every column
    #[arg(long, value_name = "PRIO", value_parser = clap::value_parser!(u8).range(1..=99))]
    fifo: Option<u8>,
    /// First DDS domain ID; 16 domains are used in turn
    #[arg(long, default_value = "60", value_parser = clap::value_parser!(u32).range(0..=216))]
    domain: u32,
    /// Network interface of all traffic
    #[arg(long, value_name = "NAME", default_value = "lo", add = ArgValueCompleter::new(interfaces))]
    interface: String,
    /// Directory of agents of other middleware, one column each [default: $TAKT_AGENTS]
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// Agent of other middleware with its arguments; may be repeated
    #[arg(long, value_name = "NAME=PROGRAM[,KEY=VALUE]...")]
    peer: Vec<String>,
    /// Repeat measurements that other processes disturbed by more than this share of the machine, at most 5 times
    #[arg(long, value_name = "PERCENT")]
    quiet: Option<f64>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

/// Output of `--json`.
#[derive(Serialize)]
struct Comparison {
    version: &'static str,
    host: Host,
    plan: Plan,
    columns: Vec<Column>,
    rows: Vec<Row>,
    cells: Vec<Cell>,
}

impl Compare {
    /// Measures the columns and prints the comparison.
    ///
    /// # Errors
    /// A column failed, or the options contradict each other.
    pub fn run(&self) -> Result<()> {
        let plan = self.plan()?;
        if plan.fifo.is_some() && (self.spin || !self.block) {
            refuse_starvation(self.runtime.into(), Idle::Spin)?;
        }
        let columns = self.columns()?;
        let mut started = None;
        let cells = campaign::run(&plan, &columns, &mut |round, column| {
            if started != Some(round) {
                started = Some(round);
                progress!("\nround {} of {}:", round + 1, plan.rounds);
            }
            progress!(" {column}");
        });
        note!("");
        let cells = cells?.cells;
        let rows = campaign::tabulate(&plan.sizes, &columns, &cells);
        if self.json {
            let version = env!("CARGO_PKG_VERSION");
            let host = Host::this();
            outln!("{}", to_json(&Comparison { version, host, plan, columns, rows, cells })?)?;
        } else {
            out!("{}", campaign::table(&rows))?;
        }
        Ok(())
    }

    fn plan(&self) -> Result<Plan> {
        let no_address =
            || Error::Usage(format!("--interface {}: no interface of this name has an IPv4 address", self.interface));
        let address = interface_ipv4(&self.interface).ok_or_else(no_address)?;
        Ok(Plan {
            sizes: self.size.clone(),
            rounds: self.rounds as usize,
            count: self.samples,
            warmup: self.warmup,
            reliable: self.qos.is_reliable(),
            history: self.qos.history(),
            interface: self.interface.clone(),
            address: address.to_string(),
            domain: self.domain,
            cpus: self.cpus()?,
            fifo: self.fifo,
            foreign_max: self.quiet.map(|percent| percent / 100.0),
            tries: 5,
            period: None,
            ends: None,
            continue_on_failure: false,
        })
    }

    /// Returns the two cores. Without `--cpu`, these are the first two cores, or the only core
    /// twice.
    fn cpus(&self) -> Result<(usize, usize)> {
        match (self.cpu.as_slice(), available_cpus()) {
            ([], 1) => Ok((0, 0)),
            ([], _) => Ok((0, 1)),
            ([both], _) => Ok((*both, *both)),
            ([ping, pong], _) => Ok((*ping, *pong)),
            _ => Err(Error::Usage("--cpu requires one or two cores, such as --cpu 0,1".into())),
        }
    }

    fn columns(&self) -> Result<Vec<Column>> {
        let both = self.spin == self.block;
        let mut columns = Vec::new();
        if self.block || both {
            columns.push(own(RAW, "raw", Some(Notify::Poll))?.compared_with(RAW));
            columns.push(self.takt("takt", RAW, "")?);
        }
        if self.spin || both {
            columns.push(own(RAW_SPIN, "raw-spin", Some(Notify::Poll))?.compared_with(RAW_SPIN));
            columns.push(self.takt("takt-spin", RAW_SPIN, "spin")?);
        }
        if self.shm && (self.block || both) {
            columns.push(own(RAW_SHM, RAW_SHM, Some(Notify::Poll))?.compared_with(RAW_SHM));
            columns.push(own("takt-shm", "shm", self.notification.chosen())?.compared_with(RAW_SHM));
        }
        if self.shm && (self.spin || both) {
            columns.push(own(RAW_SHM_SPIN, RAW_SHM_SPIN, Some(Notify::Poll))?.compared_with(RAW_SHM_SPIN));
            columns.push(own("takt-shm-spin", "shm-spin", self.notification.chosen())?.compared_with(RAW_SHM_SPIN));
        }
        let baseline = if self.block || both { RAW } else { RAW_SPIN };
        let directory = self.peers.clone().or_else(|| std::env::var_os(AGENTS_VARIABLE).map(PathBuf::from));
        let mut peers = directory.map_or_else(|| Ok(Vec::new()), |directory| columns_in(&directory))?;
        for text in &self.peer {
            peers.push(Column::parse(text)?);
        }
        columns.extend(peers.into_iter().map(|peer| peer.compared_with(baseline)));
        Ok(columns)
    }

    fn takt(&self, name: &str, baseline: &str, spin: &str) -> Result<Column> {
        let transport = match (self.runtime, spin) {
            (RuntimeName::Inline, "") => "udp",
            (RuntimeName::Inline, _) => "spin",
            (RuntimeName::Shared, "") => "shared",
            (RuntimeName::Shared, _) => "shared-spin",
        };
        Ok(own(name, transport, self.notification.chosen())?.compared_with(baseline))
    }
}

/// Creates a column that runs this program.
pub(super) fn own(name: &str, transport: &str, notify: Option<Notify>) -> Result<Column> {
    let program =
        std::env::current_exe().map_err(|source| Error::Os { op: "get the path of this executable".into(), source })?;
    let notify = match notify {
        None => "auto",
        Some(Notify::Listener) => "listener",
        Some(Notify::WaitSet) => "waitset",
        Some(Notify::Poll) => "poll",
    };
    Ok(Column {
        name: name.into(),
        program,
        prefix: vec!["perf".into(), "agent".into()],
        arguments: vec![format!("transport={transport}"), format!("notify={notify}")],
        ..Column::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        compare: Compare,
    }

    fn parse(line: &str) -> Compare {
        let words = std::iter::once("compare").chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().compare
    }

    fn names(line: &str) -> Vec<(String, String)> {
        let columns = parse(line).columns().unwrap();
        columns.into_iter().map(|c| (c.name, c.baseline)).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect()
    }

    #[test]
    fn each_mode_has_its_own_baseline() {
        let block = [("raw-udp", "raw-udp"), ("takt", "raw-udp")];
        let spin = [("raw-udp-spin", "raw-udp-spin"), ("takt-spin", "raw-udp-spin")];
        assert_eq!(names("--block"), pairs(&block));
        assert_eq!(names("--spin"), pairs(&spin));
        assert_eq!(names(""), pairs(&[block, spin].concat()));
        let shm = [("raw-shm", "raw-shm"), ("takt-shm", "raw-shm")];
        let shm_spin = [("raw-shm-spin", "raw-shm-spin"), ("takt-shm-spin", "raw-shm-spin")];
        assert_eq!(names("--shm"), pairs(&[block, spin, shm, shm_spin].concat()));
        assert_eq!(names("--shm --spin"), pairs(&[spin, shm_spin].concat()));
    }

    #[test]
    fn peers_are_compared_with_blocking_sockets_if_there_are_any() {
        let line = "--peer a=/bin/a,transport=udp --peer b=/bin/b";
        assert_eq!(names(&format!("--block {line}"))[2..], pairs(&[("a", "raw-udp"), ("b", "raw-udp")]));
        assert_eq!(names(&format!("--spin {line}"))[2].1, "raw-udp-spin");
    }

    #[test]
    fn runtime_and_notification_are_passed_to_the_agent() {
        let columns = parse("--spin --runtime shared --poll").columns().unwrap();
        assert_eq!(columns[0].arguments, ["transport=raw-spin", "notify=poll"]);
        assert_eq!(columns[1].arguments, ["transport=shared-spin", "notify=poll"]);
        assert_eq!(columns[1].prefix, ["perf", "agent"]);
    }

    #[test]
    fn options_become_the_plan() {
        let plan =
            parse("--size 16,64 --rounds 3 --cpu 1,0 --best-effort --keep-last 2 --quiet 5 --fifo 9").plan().unwrap();
        assert_eq!((plan.sizes, plan.rounds, plan.cpus), (vec![16, 64], 3, (1, 0)));
        assert!(!plan.reliable);
        assert_eq!((plan.foreign_max, plan.fifo), (Some(0.05), Some(9)));
        assert_eq!((plan.interface.as_str(), plan.address.as_str()), ("lo", "127.0.0.1"));
        assert!(parse("--cpu 1,2,3").plan().is_err());
        assert!(parse("--interface nowhere0").plan().is_err());
    }
}
