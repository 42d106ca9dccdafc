//! `takt bench executor`: response times of an executor under load, compared with a bound computed
//! beforehand.

use super::{command_line, two_cpus};
use crate::output::{note, out, outln};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use takt_bench::executor_bound::{Plan, run};
use takt_bench::isolation::load::LoadPlan;
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Runs on loopback, in a separate network namespace and with real-time priorities if this user has the privileges. A note
reports missing privileges.

Examples:
  takt bench executor
  takt bench executor --aside            the long callback on a second executor
  takt bench executor --secure           encrypted, while participants authenticate
  takt bench executor --out bound        then: takt analyze bound/system.toml, takt analyze --verify bound/certificate.json
  takt bench executor --trace late.json  ends at the first late sample; trace for Perfetto
docs/results/executor-bound.md explains the figures.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// `takt bench executor`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Executor {
    /// Phases of 2 s with a tenth of the load
    #[arg(long)]
    quick: bool,
    /// Length of the measurement [default: 30, or 2 with --quick]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,
    /// Length of each of the two preceding phases [default: 5, or 2 with --quick]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    calibration: Option<u64>,
    /// Factor for the execution times of the preceding phases, at least 1
    #[arg(long, default_value = "1.5", value_name = "FACTOR")]
    margin: f64,
    /// Period of the critical samples, us
    #[arg(long, default_value = "1000", value_name = "US", value_parser = clap::value_parser!(u64).range(50..=1_000_000))]
    period: u64,
    /// Background samples per second [default: 50000, or 5000 with --quick]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    samples: Option<u32>,
    /// Participants that join and leave every two seconds [default: 500, or 50 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=1000))]
    participants: Option<u64>,
    /// Execution time of the long callback, us; 0: no long callback
    #[arg(long, default_value = "5000", value_name = "US", value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    callback: u64,
    /// Long callbacks per second
    #[arg(long, default_value = "10", value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=1000))]
    callback_rate: u32,
    /// Encrypt all messages; of three participants one is permitted, one fails authentication, one has no permission
    #[arg(long)]
    secure: bool,
    /// Run the long callback on a second executor
    #[arg(long)]
    aside: bool,
    /// Cores of the writers and of the executor [default: 0,1]
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    cpu: Vec<usize>,
    /// Stop at the first late sample, and write the executor's last jobs to this file
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write system.toml, certificate.json and report.json to this directory
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Format of the report
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    format: Format,
}

impl Executor {
    /// Measures the response times and prints the report.
    ///
    /// # Errors
    /// The bound is not kept, or the measurement failed.
    pub fn run(&self) -> Result<()> {
        let outcome = run(&self.plan()?, command_line(), &mut |what| note!("{what}"))?;
        if let Some(directory) = &self.out {
            outcome.write_to(directory)?;
        }
        match self.format {
            Format::Text => out!("{}", outcome.to_text())?,
            Format::Json => outln!("{}", outcome.to_json()?)?,
        }
        match outcome.measurement.late {
            0 => Ok(()),
            late => Err(Error::NotKept { what: format!("{late} critical samples exceeded the bound") }),
        }
    }

    fn plan(&self) -> Result<Plan> {
        let either = |whole, quick| if self.quick { quick } else { whole };
        Ok(Plan {
            calibration: Duration::from_secs(self.calibration.unwrap_or(either(5, 2))),
            measurement: Duration::from_secs(self.seconds.unwrap_or(either(30, 2))),
            load: LoadPlan {
                samples_hz: self.samples.unwrap_or(if self.quick { 5_000 } else { 50_000 }),
                callback_us: self.callback,
                callback_hz: self.callback_rate,
                participants: self.participants.unwrap_or(either(500, 50)) as usize,
            },
            period_ns: self.period * 1000,
            margin: self.margin,
            secured: self.secure,
            separate_executor: self.aside,
            cpus: two_cpus(&self.cpu)?,
            trace: self.trace.clone(),
        })
    }
}
