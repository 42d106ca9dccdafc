//! `takt bench`: experiments that make their own network.

mod executor;
mod isolation;

use clap::{Args, Subcommand};
use takt_bench::Result;
use takt_bench::isolation::side;

/// `takt bench`
#[derive(Args)]
pub struct Bench {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    /// Measure what other traffic does to real-time traffic, with and without each measure against it (root, iperf3)
    Isolation(Box<isolation::Isolation>),
    /// Measure response times under load within a process, beside the bound that is computed beforehand
    Executor(Box<executor::Executor>),
    /// Play a role of an experiment, for the process that measures
    #[command(hide = true)]
    Side {
        /// Which
        role: String,
        /// What it is to do, as JSON
        plan: String,
    },
}

impl Bench {
    /// Does it.
    ///
    /// # Errors
    /// It cannot be done; the error says why.
    pub fn run(&self) -> Result<()> {
        match &self.experiment {
            Experiment::Isolation(isolation) => isolation.run(),
            Experiment::Executor(executor) => executor.run(),
            Experiment::Side { role, plan } => side::run(role, plan, &mut std::io::stdout()),
        }
    }
}
