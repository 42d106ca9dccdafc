//! `takt durability`: the durability service as a process (DDS 1.4 §2.2.3.4).

use crate::output::note;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};
use takt_durability::{Options, Service};

use crate::domain::{Domain, prepare_observer, seconds};

const EXAMPLES: &str = "\
Examples:
  takt durability --store /var/lib/takt                   serves all TRANSIENT and PERSISTENT topics of domain 0
  takt durability --topic 'Map*' --topic Calibration      only these topics, in memory; PERSISTENT ones need --store

DURABILITY_SERVICE of the writers limits the kept samples of a topic: by default the last sample of each instance.";

/// `takt durability`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Durability {
    #[command(flatten)]
    domain: Domain,
    /// Directory for PERSISTENT samples, created if missing [default: none, PERSISTENT topics are not served]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Topic to serve, * matches any part of a name; may be repeated [default: all]
    #[arg(long, value_name = "PATTERN")]
    topic: Vec<String>,
    /// Maximum payload on disk, in MiB
    #[arg(long, value_name = "MIB", default_value = "1024", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    max_disk: u64,
    /// Maximum payload of each topic in memory, in MiB
    #[arg(long, value_name = "MIB", default_value = "64", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    max_memory: u64,
    /// Maximum samples of each topic, even if its DURABILITY_SERVICE allows more
    #[arg(long, value_name = "N", default_value = "65536", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    max_samples: u32,
    /// Time to search for another service before a topic is served
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    settle: Duration,
    /// Time that writers wait for this service after it terminated
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    lease: Duration,
}

impl Durability {
    /// Serves until a signal arrives.
    ///
    /// # Errors
    /// The store cannot be used, or the domain cannot be joined.
    pub fn run(&self) -> Result<()> {
        let options = Options {
            store: self.store.clone(),
            topics: self.topic.clone(),
            disk_bytes_max: self.max_disk << 20,
            memory_bytes_max: self.max_memory << 20,
            samples_max: self.max_samples,
            settling_time: self.settle,
            lease_duration: self.lease,
            ..Options::default()
        };
        let settings = self.domain.settings()?;
        let mut service =
            Service::with_participants(prepare_observer(&settings)?, prepare_observer(&settings)?, options)
                .map_err(failure)?;
        note!("takt: durability service of domain {}", service.domain_id());
        while !stopped() {
            service.step().map_err(failure)?;
            for note in service.take_notes() {
                note!("takt: {note}");
            }
        }
        let totals = service.totals();
        note!(
            "takt: {} topics, {} changes, {} bytes, {} repeated, {} commits, {} topics full, {} refused, {} not served, {} doubted, {} writers held back",
            totals.topics,
            totals.samples,
            totals.bytes,
            totals.repeated,
            totals.commits,
            totals.full,
            totals.refused_topics,
            totals.unserved,
            totals.unconfirmed,
            totals.blocked_writers
        );
        Ok(())
    }
}

fn failure(error: takt_durability::Error) -> Error {
    match error {
        takt_durability::Error::Dds(error) => Error::Dds(error),
        error => Error::Os { op: "durability".to_owned(), source: std::io::Error::other(error) },
    }
}
