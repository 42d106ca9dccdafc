//! `takt bench`: campaigns, and experiments that create their own network.

mod compare;
mod environment;
mod executor;
mod explain;
mod isolation;
mod report;
mod run;
mod sdn_overload;
mod systems;

use clap::{Args, Subcommand};
use takt_bench::isolation::side;
use takt_bench::machine::available_cpus;
use takt_bench::{Error, Result};

/// `takt bench`
#[derive(Args)]
pub struct Bench {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    /// Measure the workloads of campaign files on all their systems
    Run(Box<run::Run>),
    /// List the systems that campaigns can measure, and what is missing
    Systems(systems::Systems),
    /// Print the properties of this machine that campaigns record
    Environment(environment::Environment),
    /// Measure the effect of other traffic on real-time traffic (root, iperf3)
    Isolation(Box<isolation::Isolation>),
    /// Measure response times within a loaded process, and compare with the bound
    Executor(Box<executor::Executor>),
    /// Measure the effect of an overload, with and without the controller (root)
    SdnOverload(Box<sdn_overload::SdnOverload>),
    /// Write the results of a campaign as HTML with plots, Markdown, CSV or JSON
    Report(report::Report),
    /// Compare two results of a campaign, and find the values that became worse
    Compare(compare::Compare),
    /// Show how a cell of a campaign was measured, and how to repeat the measurement
    Explain(explain::Explain),
    /// Run one role of an experiment; started by the measuring process
    #[command(hide = true)]
    Side {
        /// Role
        role: String,
        /// Plan of the role, as JSON
        plan: String,
        /// Further arguments, for other programs in the same role
        #[arg(trailing_var_arg = true)]
        more: Vec<String>,
    },
}

impl Bench {
    /// Reports whether the command is started by another process of an experiment.
    pub fn is_side(&self) -> bool {
        matches!(self.experiment, Experiment::Side { .. })
    }

    /// Runs the command.
    ///
    /// # Errors
    /// The command failed; the error names the cause.
    pub fn run(&self) -> Result<()> {
        match &self.experiment {
            Experiment::Run(run) => run.run(),
            Experiment::Systems(systems) => systems.run(),
            Experiment::Environment(environment) => environment.run(),
            Experiment::Isolation(isolation) => isolation.run(),
            Experiment::Executor(executor) => executor.run(),
            Experiment::SdnOverload(overload) => overload.run(),
            Experiment::Report(report) => report.run(),
            Experiment::Compare(compare) => compare.run(),
            Experiment::Explain(explain) => explain.run(),
            Experiment::Side { role, plan, .. } => {
                let out = &mut std::io::stdout();
                takt_bench::sdn_overload::side::run(role, plan, out).unwrap_or_else(|| side::run(role, plan, out))
            }
        }
    }
}

/// Returns the command line of this process, for reports.
fn command_line() -> String {
    std::iter::once("takt".to_owned()).chain(std::env::args().skip(1)).collect::<Vec<_>>().join(" ")
}

/// Writes a file of a report and prints its path.
fn write_file(path: &std::path::Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|e| Error::os(format!("write {}", path.display()), e))?;
    crate::output::note!("{}", path.display());
    Ok(())
}

/// Returns the two cores of `--cpu`. Without the option, these are the first two cores, or the only
/// core twice.
fn two_cpus(given: &[usize]) -> Result<[usize; 2]> {
    match (given, available_cpus()) {
        ([], 1) => Ok([0, 0]),
        ([], _) => Ok([0, 1]),
        ([a, b], _) => Ok([*a, *b]),
        _ => Err(Error::Usage("--cpu requires two cores, such as --cpu 0,1".into())),
    }
}
