//! `takt bench environment`: the description of the machine that campaigns record.

use crate::output::outln;
use clap::Args;
use takt_bench::Result;
use takt_bench::study::environment::capture;

const EXAMPLES: &str = "\
Examples:
  takt bench environment
  takt bench environment --json";

/// `takt bench environment`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Environment {
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

impl Environment {
    /// Prints the environment.
    ///
    /// # Errors
    /// Standard output is closed.
    pub fn run(&self) -> Result<()> {
        let environment = capture();
        if self.json {
            return outln!("{environment}");
        }
        outln!("{environment:#}")
    }
}
