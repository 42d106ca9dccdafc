//! `takt transport`: the available transports and what this machine supports of them.

mod list;
mod probe;

use clap::{Args, Subcommand};
use takt_bench::Result;

const EXAMPLES: &str = "\
Examples:
  takt transport ls                    transports of this build, and their requirements
  takt transport probe eth0            transports that interface, kernel and permissions allow
  takt transport probe eth0 --json
  takt echo Square --transport xdp:eth0 --transport udp    uses the first transport that opens";

/// `takt transport`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Transport {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List the transports of this build and their requirements
    Ls(list::List),
    /// Check which transports an interface supports, and what is missing
    Probe(probe::Probe),
}

impl Transport {
    /// Runs the command.
    ///
    /// # Errors
    /// The command failed; the error names the cause.
    pub fn run(&self) -> Result<()> {
        match &self.what {
            What::Ls(list) => list.run(),
            What::Probe(probe) => probe.run(),
        }
    }
}
