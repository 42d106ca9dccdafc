//! `takt ls`: who is in a domain, what they write and read, and which of them match, or why they do not.
//!
//! It joins the domain as a participant without endpoints, listens to discovery for a while, and leaves. That two
//! endpoints of others match is concluded from what they announce, by the check that they are to make themselves.

mod catalogue;

use crate::domain::{Domain, STEP, seconds};
use catalogue::Catalogue;
use clap::Args;
use std::time::{Duration, Instant};
use takt_bench::report::to_json;
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Examples:
  takt ls                              what is in domain 0, on all interfaces
  takt ls --domain 7 --wait 5          look for longer
  takt ls --interface lo --json
  takt ls --peer 192.0.2.7             ask a host that multicast does not reach";

/// `takt ls`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Ls {
    #[command(flatten)]
    domain: Domain,
    /// How long to listen
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    wait: Duration,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl Ls {
    /// Looks and prints.
    ///
    /// # Errors
    /// The domain cannot be joined.
    pub fn run(&self) -> Result<()> {
        let participant = self.domain.join("takt ls")?;
        let deadline = Instant::now() + self.wait;
        while !stopped() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            participant.spin_once(left.min(STEP).into())?;
        }
        let catalogue = Catalogue::new(
            self.domain.domain,
            &participant.discovered_participants()?,
            &participant.discovered_publications()?,
            &participant.discovered_subscriptions()?,
        );
        participant.close().map_err(Error::Dds)?;
        if self.json {
            println!("{}", to_json(&catalogue)?);
        } else {
            print!("{catalogue}");
        }
        Ok(())
    }
}
