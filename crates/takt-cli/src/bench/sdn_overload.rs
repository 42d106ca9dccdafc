//! `takt bench sdn-overload`: a pair under an overload of its link, with and without the OpenFlow controller.

use super::command_line;
use crate::output::{note, out, outln};
use clap::Args;
use std::path::PathBuf;
use takt_bench::sdn_overload::category::Category;
use takt_bench::sdn_overload::{Plan, run};
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Three hosts at a switch of Open vSwitch, made by takt lab; needs root and Open vSwitch. Everything it makes is gone when it ends. Each pair
runs idle, with an overload of twice the link, and with the overload and the controller.

Examples:
  takt bench sdn-overload --quick                       a minute
  takt bench sdn-overload --json > overload.json        all categories and sizes, some 30 minutes
  takt bench sdn-overload --categories best-effort --sizes 1400 --backgrounds 100,500,1000,1500
  takt bench sdn-overload --cyclone venv/bin/python3    CycloneDDS, too, from the module cyclonedds
docs/sdn.md explains the figures.";

/// `takt bench sdn-overload`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct SdnOverload {
    /// Best effort and reliable-1, one size, runs of 5 s
    #[arg(long)]
    quick: bool,
    /// best-effort, reliable-DEPTH, reliable-all [default: best-effort and reliable with 1, 50, 100 and all]
    #[arg(long, value_name = "CATEGORY", value_delimiter = ',')]
    categories: Vec<Category>,
    /// Octets of data in a sample [default: 100,500,1000,1400, or 1400 with --quick]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(16..=1400))]
    sizes: Vec<u64>,
    /// Octets of a frame of the overload
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "1400", value_parser = clap::value_parser!(u64).range(60..=1514))]
    backgrounds: Vec<u64>,
    /// Length of each run [default: 25, or 5 with --quick]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,
    /// Time from one sample to the next, us
    #[arg(long, default_value = "5000", value_name = "US", value_parser = clap::value_parser!(u64).range(500..=1_000_000))]
    period: u64,
    /// Rate of the link in Mbit/s, each way
    #[arg(long, default_value = "20", value_name = "MBIT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    line_rate: u32,
    /// Frames of other traffic that wait at the link
    #[arg(long, default_value = "256", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    queue: u32,
    /// A Python with the module cyclonedds: measures CycloneDDS, too
    #[arg(long, value_name = "PYTHON")]
    cyclone: Option<PathBuf>,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

impl SdnOverload {
    /// Measures and prints.
    ///
    /// # Errors
    /// No permission, no Open vSwitch, a pair was not admitted, or a process failed.
    pub fn run(&self) -> Result<()> {
        let program = std::env::current_exe().map_err(|e| Error::Os { op: "find this program".into(), source: e })?;
        let outcome = run(&self.plan(), program, &["bench", "side"], command_line(), &mut |what| note!("{what}"))?;
        if self.json { outln!("{}", outcome.to_json()?) } else { out!("{}", outcome.to_text()) }
    }

    fn plan(&self) -> Plan {
        let lens = |given: &[u64]| given.iter().map(|len| *len as usize).collect::<Vec<_>>();
        let either = |given: &[u64], whole: &[usize], quick: &[usize]| match (given, self.quick) {
            ([], true) => quick.to_vec(),
            ([], false) => whole.to_vec(),
            (given, _) => lens(given),
        };
        let categories = match (self.categories.as_slice(), self.quick) {
            ([], true) => vec![Category::BestEffort, Category::Reliable(1)],
            ([], false) => Category::ALL.to_vec(),
            (given, _) => given.to_vec(),
        };
        Plan {
            cyclone: self.cyclone.clone(),
            categories,
            sizes: either(&self.sizes, &[100, 500, 1000, 1400], &[1400]),
            backgrounds: lens(&self.backgrounds),
            seconds: self.seconds.unwrap_or(if self.quick { 5 } else { 25 }),
            period_ns: self.period * 1000,
            megabits: self.line_rate,
            frames: self.queue,
        }
    }
}
