//! `takt transport`: the available transports and what this machine supports of them.

mod list;
mod probe;

use clap::{Args, Subcommand};
use takt_bench::Result;

const EXAMPLES: &str = "\
Examples:
  takt transport ls                    what this program has, and what it takes
  takt transport probe eth0            what interface, kernel and permissions are good for
  takt transport probe eth0 --json
  takt echo Square --transport xdp:eth0 --transport udp    the first that opens";

/// `takt transport`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Transport {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List the transports that this program has, and what they take
    Ls(list::List),
    /// Say what an interface, this kernel and these permissions are good for, and what is missing. Changes nothing
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
