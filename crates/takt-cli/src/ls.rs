//! `takt ls`: who is in a domain, what they write and read, and which of them match, or why they do not.
//!
//! It joins the domain as a participant without endpoints, listens to discovery for a while, and leaves. That two
//! endpoints of others match is concluded from what they announce, by the check that they are to make themselves.

mod catalogue;

use catalogue::Catalogue;
use clap::Args;
use std::time::{Duration, Instant};
use takt::{DomainParticipant, Runtime};
use takt_bench::report::to_json;
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Examples:
  takt ls                              what is in domain 0, on all interfaces
  takt ls --domain 7 --wait 5          look for longer
  takt ls --interface lo --json
  takt ls --peer 192.0.2.7             ask a host that multicast does not reach";

/// Longest sleep before a signal is noticed.
const STEP: Duration = Duration::from_millis(100);

/// `takt ls`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Ls {
    /// DDS domain
    #[arg(long, default_value = "0", value_parser = clap::value_parser!(u32).range(0..=232))]
    domain: u32,
    /// Network interface to look on; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    interface: Vec<String>,
    /// Host to ask directly; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    peer: Vec<String>,
    /// How long to listen
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    wait: Duration,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|e| format!("{e}"))?;
    Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())
}

impl Ls {
    /// Looks and prints.
    ///
    /// # Errors
    /// The domain cannot be joined.
    pub fn run(&self) -> Result<()> {
        let mut builder = DomainParticipant::builder(self.domain).name("takt ls").runtime(Runtime::Inline);
        if !self.interface.is_empty() {
            builder = builder.interfaces(&self.interface);
        }
        if !self.peer.is_empty() {
            builder = builder.peers(&self.peer);
        }
        let participant = builder.build()?;
        let deadline = Instant::now() + self.wait;
        while !stopped() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            participant.spin_once(left.min(STEP).into())?;
        }
        let catalogue = Catalogue::new(
            self.domain,
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
