//! `takt perf transports`: comparison of transports between two network namespaces.
//!
//! Each transport is measured with Takt and with plain datagrams, next to other middleware.

use super::transports_columns::{batched, plain};
use super::transports_table::{ratios_of_trips, rounds_table, trips_table};
use crate::output::{note, outln, progress};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::time::Duration;
use takt_bench::campaign::{
    self, ALONE, Cell, Column, Failure, Figure, Outcome, Plan, Ratio, Site, StreamCell, TcpCell, ratio,
};
use takt_bench::machine::available_cpus;
use takt_bench::report::to_json_line;
use takt_bench::spec::History;
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Creates two network namespaces with a veth pair; needs root, and iperf3 for tcp. Round trips are RELIABLE, KEEP_ALL, on
two topics, one ping per period; spinning readers pause 100 ms every 800 ms. A failed column is omitted from later
rounds, with exit code 1. Agents implement the contract of `takt perf agent`; `peer=` is the address of the other end.

Examples:
  takt perf transports                                        all parts, several minutes
  takt perf transports --only trips --samples 300000 --rounds 1 --columns takt-udp-spin,takt-xdp-spin
  takt perf transports --peer cyclone=./cyclone,notify=waitset --peer cyclone-spin=./cyclone,notify=poll";

/// Parts of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Round trips
    Trips,
    /// Samples per second, one way
    Rate,
    /// MB per second, one way
    Bandwidth,
    /// Throughput that remains for a TCP stream on the same interface
    Tcp,
}

/// `takt perf transports`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Transports {
    /// Parts to measure
    #[arg(long, value_enum, value_name = "PART", value_delimiter = ',', default_value = "trips,rate,bandwidth,tcp")]
    only: Vec<Part>,
    /// Columns to measure, by name [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    columns: Vec<String>,
    /// Rounds; every column is measured once in each
    #[arg(long, default_value = "5", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Round trips to measure in each round
    #[arg(long, default_value = "3000", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
    /// Round trips of the warm-up in each round
    #[arg(long, default_value = "300", value_name = "N")]
    warmup: u64,
    /// Pings per second
    #[arg(long, default_value = "1000", value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// Payload of pings in bytes, and of samples in the part that counts samples
    #[arg(long, default_value = "32", value_name = "BYTES", value_parser = super::options::size)]
    size: usize,
    /// Payload in bytes in the part that counts MB
    #[arg(long, default_value = "1024", value_name = "BYTES", value_parser = super::options::size)]
    bulk: usize,
    /// Length of a stream in seconds
    #[arg(long, default_value = "1", value_name = "S", value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Cores of the two processes
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    cpu: Vec<usize>,
    /// SCHED_FIFO priority of both processes, for round trips; 0: none
    #[arg(long, default_value = "50", value_name = "PRIO", value_parser = clap::value_parser!(u8).range(0..=99))]
    fifo: u8,
    /// Agent of other middleware with its arguments; may be repeated
    #[arg(long, value_name = "NAME=PROGRAM[,KEY=VALUE]...")]
    peer: Vec<String>,
    /// Print JSON lines instead of tables
    #[arg(long)]
    json: bool,
}

impl Transports {
    /// Measures the parts and prints the tables.
    ///
    /// # Errors
    /// The process lacks permissions, a column failed, or the options contradict each other. If
    /// columns failed, the results of the others are printed nevertheless.
    pub fn run(&self) -> Result<()> {
        let site = Site::new()?;
        // An open /dev/cpu_dma_latency shortens wake-ups of sleeping processes. The measurement
        // works without it.
        let _awake = File::options().write(true).open("/dev/cpu_dma_latency").and_then(|mut file| {
            file.write_all(&0_i32.to_ne_bytes())?;
            Ok(file)
        });
        let peers = self.peer.iter().map(|text| Column::parse(text)).collect::<Result<Vec<_>>>()?;
        let window = Duration::from_secs(self.seconds);
        let mut failed = BTreeSet::new();
        for part in &self.only {
            let mut columns = match part {
                Part::Trips => plain()?,
                Part::Rate | Part::Bandwidth => batched()?,
                Part::Tcp => {
                    plain()?.into_iter().filter(|c| ["takt-xdp", "takt-xdp-generic"].contains(&&*c.name)).collect()
                }
            };
            if *part != Part::Tcp {
                columns.extend(peers.iter().cloned());
            }
            columns.retain(|column| self.columns.is_empty() || self.columns.contains(&column.name));
            if columns.is_empty() {
                note!(
                    "no column supports the part {}; select other parts or columns",
                    part.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
                );
                continue;
            }
            let plan = self.plan(*part, &site)?;
            let mut progress = progress(plan.rounds);
            let failures = match part {
                Part::Trips => self.trips(campaign::run(&plan, &columns, &mut progress)?, &columns, &peers)?,
                Part::Rate | Part::Bandwidth => {
                    let outcome = campaign::streams(&plan, window, &columns, &mut progress)?;
                    self.streams(*part, outcome, &columns, &peers)?
                }
                Part::Tcp => self.tcp(campaign::tcp(&plan, &site, window, &columns, &mut progress)?, &columns)?,
            };
            failed.extend(failures.into_iter().map(|failure| failure.column));
        }
        if failed.is_empty() {
            return Ok(());
        }
        Err(Error::NotMeasured { columns: Vec::from_iter(failed).join(", ") })
    }

    fn plan(&self, part: Part, site: &Site) -> Result<Plan> {
        let cpus = match (self.cpu.as_slice(), available_cpus()) {
            ([], 1) => (0, 0),
            ([], _) => (0, 1),
            ([a, b], _) => (*a, *b),
            _ => return Err(Error::Usage("--cpu requires two cores, such as --cpu 0,1".into())),
        };
        let ends = site.ends();
        Ok(Plan {
            sizes: vec![if part == Part::Bandwidth { self.bulk } else { self.size }],
            rounds: self.rounds as usize,
            count: self.samples,
            warmup: self.warmup,
            reliable: true,
            history: History::KeepAll,
            interface: site.interface().into(),
            address: ends[0].address.to_string(),
            domain: 20,
            cpus,
            // Of two processes on one core that spin with a real-time priority, one would never
            // run.
            fifo: (part == Part::Trips && self.fifo > 0 && cpus.0 != cpus.1).then_some(self.fifo),
            foreign_max: None,
            tries: 1,
            period: Some(Duration::from_secs(1) / self.rate),
            ends: Some(ends),
            continue_on_failure: true,
        })
    }

    fn trips(&self, outcome: Outcome<Cell>, columns: &[Column], peers: &[Column]) -> Result<Vec<Failure>> {
        let ratios = ratios_of_trips(&outcome.cells, columns, peers);
        let table = trips_table(&outcome.cells, columns, &outcome.failures);
        self.print("trip", &table, outcome, &ratios)
    }

    fn streams(
        &self,
        part: Part,
        outcome: Outcome<StreamCell>,
        columns: &[Column],
        peers: &[Column],
    ) -> Result<Vec<Failure>> {
        let (name, unit) = if part == Part::Rate { ("rate", "thousand/s") } else { ("bandwidth", "MB/s") };
        let value = |cell: &StreamCell| match part {
            Part::Rate => cell.received_hz * 1e-3,
            _ => cell.megabytes_per_second,
        };
        let of = |cell: &StreamCell| Figure { column: cell.column.clone(), round: cell.round, value: value(cell) };
        let figures: Vec<Figure> = outcome.cells.iter().map(of).collect();
        let lost = |column: &str| {
            let own = outcome.cells.iter().filter(|cell| cell.column == column);
            own.map(|cell| cell.lost).sum::<u64>().to_string()
        };
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let table = rounds_table([name, unit, "lost"], &names, &figures, &outcome.failures, lost);
        let others = peers.iter().map(|peer| peer.name.as_str()).chain(["takt-udp-spin"]);
        let ratios: Vec<Ratio> = others
            .flat_map(|to| columns.iter().map(move |column| (column, to)))
            .filter(|(column, to)| column.name.starts_with("takt-") && column.name != *to)
            .filter_map(|(column, to)| ratio(name, &figures, &column.name, to))
            .collect();
        self.print(name, &table, outcome, &ratios)
    }

    fn tcp(&self, outcome: Outcome<TcpCell>, columns: &[Column]) -> Result<Vec<Failure>> {
        let of =
            |cell: &TcpCell| Figure { column: cell.column.clone(), round: cell.round, value: cell.gigabits_per_second };
        let figures: Vec<Figure> = outcome.cells.iter().map(of).collect();
        let names: Vec<&str> = [ALONE].into_iter().chain(columns.iter().map(|column| column.name.as_str())).collect();
        let head = ["tcp with load", "Gbit/s", ""];
        let table = rounds_table(head, &names, &figures, &outcome.failures, |_| String::new());
        let ratios: Vec<Ratio> = columns.iter().filter_map(|c| ratio("tcp", &figures, &c.name, ALONE)).collect();
        self.print("tcp", &table, outcome, &ratios)
    }

    /// Prints the table, or the cells and failures as JSON, and the ratios in either form.
    fn print<C: Serialize>(
        &self,
        part: &str,
        table: &str,
        Outcome { cells, failures }: Outcome<C>,
        ratios: &[Ratio],
    ) -> Result<Vec<Failure>> {
        note!("");
        if self.json {
            for cell in &cells {
                outln!("{}", to_json_line(part, cell)?)?;
            }
            for failure in &failures {
                outln!("{}", to_json_line("failed", failure)?)?;
            }
            for ratio in ratios {
                outln!("{}", to_json_line("ratio", ratio)?)?;
            }
            return Ok(failures);
        }
        outln!("{table}")?;
        outln!(
            "{:<12} {:<26} {:<22} {:>8} {:>16} {:>12}",
            "ratio of",
            "column",
            "to",
            "ratio",
            "(rounds)",
            "difference"
        )?;
        for Ratio { figure, column, to, ratio, ratio_spread: (low, high), difference, .. } in ratios {
            let range = format!("{low:.2}..{high:.2}");
            outln!("{figure:<12} {column:<26} {to:<22} {ratio:>8.3} {range:>16} {difference:>12.2}")?;
        }
        outln!()?;
        Ok(failures)
    }
}

/// Returns a callback that reports on standard error what is measured.
fn progress(rounds: usize) -> impl FnMut(usize, &str) {
    let mut started = None;
    move |round, column| {
        if started != Some(round) {
            started = Some(round);
            progress!("\nround {} of {rounds}:", round + 1);
        }
        progress!(" {column}");
    }
}
