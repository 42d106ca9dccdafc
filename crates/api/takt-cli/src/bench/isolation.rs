//! `takt bench isolation`: real-time traffic that shares one link with iperf3, in interleaved
//! rounds.

use super::{command_line, two_cpus};
use crate::output::{note, out, outln};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use takt_bench::isolation::interference::InterferencePlan;
use takt_bench::isolation::load::LoadPlan;
use takt_bench::isolation::network::LinkPlan;
use takt_bench::isolation::outcome::Outcome;
use takt_bench::isolation::table::{Style, tables};
use takt_bench::isolation::{Plan, run};
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Creates three network namespaces: two hosts and the link between them; needs root and iperf3. It removes them at
its end. Each round measures each configuration once, in a random order from the seed, which is printed.

Examples:
  takt bench isolation --quick                                  one minute
  takt bench isolation --out isolation.json                     up to one hour; writes the result to a file
  takt bench isolation --from isolation.json --format markdown  prints its tables again
  takt bench isolation --only tables --load samples,callback,storm";

/// Length of the warm-up before the first measured ping.
const WARMUP: Duration = Duration::from_millis(250);

/// Parts of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Baseline and isolated, each payload, with and without interference
    Tables,
    /// Each measure alone and each left out, under interference
    Ablation,
}

/// Load inside the process that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Load {
    /// 50,000 best-effort samples per second of another topic
    Samples,
    /// A callback of 5 ms, ten times per second
    Callback,
    /// 500 participants that join and leave every two seconds
    Storm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Markdown,
    /// All measurements with histograms
    Json,
}

/// `takt bench isolation`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Isolation {
    /// Three short rounds of one payload
    #[arg(long)]
    quick: bool,
    /// Parts to measure
    #[arg(long, value_enum, value_name = "PART", value_delimiter = ',', default_value = "tables,ablation")]
    only: Vec<Part>,
    /// Rounds [default: 7, or 3 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
    /// Pings measured in each cell [default: 10000, or 1000 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    samples: Option<u64>,
    /// Payloads in bytes [default: 64,512,1024, or 1024 with --quick]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(16..=1200))]
    sizes: Vec<u64>,
    /// Pings per second
    #[arg(long, default_value = "2000", value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    rate: u32,
    /// Line rate in Mbit/s, in each direction
    #[arg(long, default_value = "100", value_name = "MBIT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    line_rate: u32,
    /// Queue length of the link in best-effort frames
    #[arg(long, default_value = "256", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    queue: u32,
    /// Flows of iperf3 in each direction
    #[arg(long, default_value = "50", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    flows: u32,
    /// Payload of the iperf3 datagrams in bytes; 0: that of the pings
    #[arg(long, default_value = "1024", value_name = "BYTES", value_parser = clap::value_parser!(u64).range(0..=1400))]
    flow_size: u64,
    /// Cores of the two processes: the one that sends pings, the one that answers
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    cpu: Vec<usize>,
    /// SCHED_FIFO priority of both processes
    #[arg(long, default_value = "80", value_name = "PRIO", value_parser = clap::value_parser!(u8).range(1..=99))]
    fifo: u8,
    /// Both processes spin, with a pause of 100 ms every 800 ms
    #[arg(long)]
    spin: bool,
    /// Load inside the process that answers
    #[arg(long, value_enum, value_name = "LOAD", value_delimiter = ',')]
    load: Vec<Load>,
    /// Seed of the random orders and of the resampling [default: from the clock]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Format of the result
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    format: Format,
    /// Also write the result as JSON to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the result of this file without a measurement
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

impl Isolation {
    /// Measures the isolation and prints the result.
    ///
    /// # Errors
    /// The process lacks permissions, iperf3 is missing, a process failed, or the options
    /// contradict each other.
    pub fn run(&self) -> Result<()> {
        let outcome = match &self.from {
            Some(path) => {
                let failure = |e| Error::Os { op: path.display().to_string(), source: e };
                Outcome::parse(&std::fs::read_to_string(path).map_err(failure)?)?
            }
            None => self.measure()?,
        };
        match self.format {
            Format::Text => out!("{}", tables(&outcome, Style::Text))?,
            Format::Markdown => out!("{}", tables(&outcome, Style::Markdown))?,
            Format::Json => outln!("{}", outcome.to_json()?)?,
        }
        Ok(())
    }

    fn measure(&self) -> Result<Outcome> {
        let plan = self.plan()?;
        let program = std::env::current_exe()
            .map_err(|e| Error::Os { op: "get the path of this executable".into(), source: e })?;
        note!("seed {}", plan.seed);
        let outcome = run(&plan, program, &["bench", "side"], command_line(), &mut |what| note!("{what}"))?;
        if let Some(path) = &self.out {
            let failure = |e| Error::Os { op: path.display().to_string(), source: e };
            std::fs::write(path, outcome.to_json()?).map_err(failure)?;
        }
        Ok(outcome)
    }

    fn plan(&self) -> Result<Plan> {
        let sizes: Vec<usize> = match (self.sizes.as_slice(), self.quick) {
            ([], true) => vec![1024],
            ([], false) => vec![64, 512, 1024],
            (sizes, _) => sizes.iter().map(|size| *size as usize).collect(),
        };
        let has = |part| self.only.contains(&part);
        let loaded = |load| self.load.contains(&load);
        let period = Duration::from_secs(1) / self.rate;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Ok(Plan {
            ablation: sizes.iter().max().copied().filter(|_| has(Part::Ablation)),
            sizes: if has(Part::Tables) { sizes } else { Vec::new() },
            rounds: self.rounds.unwrap_or(if self.quick { 3 } else { 7 }) as usize,
            count: self.samples.unwrap_or(if self.quick { 1_000 } else { 10_000 }),
            warmup: (WARMUP.as_nanos() / period.as_nanos().max(1)) as u64,
            period_ns: period.as_nanos() as u64,
            cpus: two_cpus(&self.cpu)?,
            fifo: self.fifo,
            spins: self.spin,
            link: LinkPlan { megabits: self.line_rate, frames: self.queue },
            interference: InterferencePlan {
                flows: self.flows,
                payload: self.flow_size as usize,
                megabits: self.line_rate,
            },
            load: LoadPlan {
                samples_hz: if loaded(Load::Samples) { 50_000 } else { 0 },
                callback_us: if loaded(Load::Callback) { 5_000 } else { 0 },
                callback_hz: if loaded(Load::Callback) { 10 } else { 0 },
                participants: if loaded(Load::Storm) { 500 } else { 0 },
            },
            seed: self.seed.unwrap_or(now),
        })
    }
}
