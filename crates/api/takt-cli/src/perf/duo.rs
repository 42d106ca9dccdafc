//! `takt perf topics` and `takt perf within`: measurements between two participants of this
//! process.

use super::options::size;
use crate::completion::interfaces;
use crate::output::outln;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;
use takt_bench::machine::{Scheduling, interface_ipv4};
use takt_bench::participant_pair::{self, PairSettings};
use takt_bench::report::to_json;
use takt_bench::{Error, Result};

/// Domain, interface and core of the two participants.
#[derive(Args, Clone, Debug)]
struct PairOptions {
    /// DDS domain
    #[arg(long, default_value = "59", value_parser = clap::value_parser!(u32).range(0..=232))]
    domain: u32,
    /// Network interface
    #[arg(long, value_name = "NAME", default_value = "lo", add = ArgValueCompleter::new(interfaces))]
    interface: String,
    /// Bind this process to a core
    #[arg(long, value_name = "CORE")]
    cpu: Option<usize>,
    /// Print one JSON object per line instead of the table
    #[arg(long)]
    json: bool,
}

impl PairOptions {
    fn settings(&self, shared_memory: bool) -> Result<PairSettings> {
        Scheduling { cpu: self.cpu, ..Scheduling::default() }.apply()?;
        let no_address =
            || Error::Usage(format!("--interface {}: no interface of this name has an IPv4 address", self.interface));
        let address = interface_ipv4(&self.interface).ok_or_else(no_address)?.to_string();
        Ok(PairSettings { domain: self.domain, interface: self.interface.clone(), address, shared_memory })
    }

    /// Prints a row, with the headline above it if it is the first row.
    fn print(&self, is_first: bool, headline: &str, row: &str, json: &impl Serialize) -> Result<()> {
        if self.json {
            outln!("{}", to_json(json)?)?;
            return Ok(());
        }
        if is_first {
            outln!("{headline}")?;
        }
        outln!("{row}")?;
        Ok(())
    }
}

/// `takt perf topics`
#[derive(Args, Clone, Debug)]
pub struct Topics {
    /// Numbers of topics, separated by commas
    #[arg(long, default_value = "1,10,100,1000", value_name = "N", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    topics: Vec<u32>,
    /// Total number of samples
    #[arg(long, default_value = "100000", value_name = "N")]
    samples: usize,
    /// Payload in bytes
    #[arg(long, default_value = "64", value_name = "BYTES", value_parser = size)]
    size: usize,
    /// Use shared memory
    #[arg(long)]
    shm: bool,
    #[command(flatten)]
    pair: PairOptions,
}

impl Topics {
    /// Measures the topics and prints a row for each number of topics.
    ///
    /// # Errors
    /// Takt returned an error, or an expected event did not occur.
    pub fn run(&self) -> Result<()> {
        let place = self.pair.settings(self.shm)?;
        for (at, topics) in self.topics.iter().enumerate() {
            let found = participant_pair::topics(&place, *topics as usize, self.samples, self.size)?;
            let headline = format!("{:>8} {:>12} {:>14} {:>14}", "topics", "matched, s", "bytes/topic", "ns/sample");
            let row = format!(
                "{:>8} {:>12.3} {:>14} {:>14.0}",
                found.topics, found.matched_seconds, found.bytes_per_topic, found.ns_per_sample
            );
            self.pair.print(at == 0, &headline, &row, &found)?;
        }
        Ok(())
    }
}

/// `takt perf within`
#[derive(Args, Clone, Debug)]
pub struct Within {
    /// Payloads in bytes, separated by commas
    #[arg(long, default_value = "64,4096,65536,1048576", value_name = "BYTES", value_delimiter = ',', value_parser = size)]
    size: Vec<usize>,
    /// Samples of each kind
    #[arg(long, default_value = "10000", value_name = "N")]
    samples: usize,
    #[command(flatten)]
    pair: PairOptions,
}

impl Within {
    /// Measures the samples and prints a row for each payload.
    ///
    /// # Errors
    /// Takt returned an error, or an expected event did not occur.
    pub fn run(&self) -> Result<()> {
        let place = self.pair.settings(true)?;
        for (at, size) in self.size.iter().enumerate() {
            let found = participant_pair::within(&place, *size, self.samples)?;
            let headline = format!("{:>10} {:>20} {:>20}", "bytes", "serialized, us", "unserialized, us");
            let (serialized, shared) = (&found.serialized, &found.shared);
            let figures = |of: &takt_bench::stats::Summary| format!("{:.2} (p99 {:.2})", of.p50, of.p99);
            let row = format!("{:>10} {:>20} {:>20}", found.size, figures(serialized), figures(shared));
            self.pair.print(at == 0, &headline, &row, &found)?;
        }
        Ok(())
    }
}
