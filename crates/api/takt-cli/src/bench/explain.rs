//! `takt bench explain`: how a cell of a campaign was measured, and the command that measures it
//! again.

use crate::output::out;
use clap::Args;
use std::path::PathBuf;
use takt_bench::Result;
use takt_bench::study::directory::Results;
use takt_bench::study::explain::explain;

const EXAMPLES: &str = "\
The name of a cell consists of workload, system and parameters. A unique prefix of the name suffices.

Examples:
  takt bench explain results/paper-b latency-rtt/takt-udp/reliability=reliable,size=16
  takt bench explain results/paper-b idle/takt";

/// `takt bench explain`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// Results directory of takt bench run
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Name of the cell, or a unique prefix
    #[arg(value_name = "CELL")]
    cell: String,
}

impl Explain {
    /// Prints how the cell was measured.
    ///
    /// # Errors
    /// The directory has no results, or not exactly one cell has this name.
    pub fn run(&self) -> Result<()> {
        out!("{}", explain(&Results::read(&self.directory)?, &self.cell)?)
    }
}
