//! `takt bench compare`: values that became slower between two results directories.

use crate::output::{out, outln};
use clap::Args;
use std::path::PathBuf;
use takt_bench::study::compare::compare;
use takt_bench::study::directory::Results;
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
A value is worse if the whole 95 % interval of its ratio, by bootstrap over rounds, exceeds the threshold. A cell with
one round has no interval and no verdict.

Examples:
  takt bench compare results/before results/after
  takt bench compare results/before results/after --threshold 10 --json";

/// `takt bench compare`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Compare {
    /// Results directory of the first campaign
    #[arg(value_name = "A")]
    before: PathBuf,
    /// Results directory of the second campaign
    #[arg(value_name = "B")]
    after: PathBuf,
    /// Change above which a value counts as worse or better, in percent
    #[arg(long, default_value = "5", value_name = "PERCENT")]
    threshold: f64,
    /// Print all values as one JSON object
    #[arg(long)]
    json: bool,
}

impl Compare {
    /// Compares the results and prints the comparison.
    ///
    /// # Errors
    /// A directory has no results, the directories have no cell in common, or a value is worse.
    pub fn run(&self) -> Result<()> {
        let (before, after) = (Results::read(&self.before)?, Results::read(&self.after)?);
        let comparison = compare(&before, &after, self.threshold / 100.0)?;
        if self.json {
            let text =
                serde_json::to_string_pretty(&comparison).map_err(|e| Error::os("comparison as JSON", e.into()))?;
            outln!("{text}")?;
        } else {
            out!("{}", comparison.text())?;
        }
        match comparison.regressions() {
            0 => Ok(()),
            count => {
                Err(Error::NotKept { what: format!("{count} values are worse by more than {} %", self.threshold) })
            }
        }
    }
}
