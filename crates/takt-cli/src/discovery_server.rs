//! `takt discovery-server`: introduces participants to each other on a network without multicast.
//!
//! It tells where it listens once it does, and then who comes and goes. User data never pass through it.

use crate::domain::{DomainConfig, STEP, prepare};
use crate::output::outln;
use clap::Args;
use serde_json::json;
use std::io::{Write, stdout};
use std::net::SocketAddr;
use std::thread::sleep;
use takt::{DomainParticipantListener, Guid, PublisherListener, SubscriberListener, TopicListener};
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};

const EXAMPLES: &str = "\
Examples:
  takt discovery-server                                      on all addresses, port 7400, domain 0
  takt discovery-server --listen 192.0.2.1:7400 --other 192.0.2.2:7400
                                                             two that back each other up, on two hosts
  TAKT_DISCOVERY_SERVERS=192.0.2.1:7400,192.0.2.2:7400 ...   how a program becomes their client
  takt ls --server 192.0.2.1:7400                            who is there";

/// `takt discovery-server`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct DiscoveryServer {
    #[command(flatten)]
    configuration: DomainConfig,
    /// Where clients find it
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:7400")]
    listen: SocketAddr,
    /// Another server, with which it exchanges what it knows; may be repeated
    #[arg(long, value_name = "ADDRESS:PORT")]
    other: Vec<String>,
    /// One JSON object a line instead of text
    #[arg(long)]
    json: bool,
}

/// Tells who comes and goes.
struct Log {
    json: bool,
}

impl Log {
    fn tell(&self, event: &str, what: &str) {
        // The server goes on without a reader of its log.
        let _ = if self.json {
            outln!("{}", json!({ "ev": event, "participant": what }))
        } else {
            outln!("{event} {what}")
        };
    }
}

impl TopicListener for Log {}
impl PublisherListener for Log {}
impl SubscriberListener for Log {}

impl DomainParticipantListener for Log {
    fn on_participant_discovered(&mut self, participant: Guid) {
        self.tell("discovered", &participant.to_string());
    }

    fn on_participant_lost(&mut self, participant: Guid) {
        self.tell("lost", &participant.to_string());
    }
}

impl DiscoveryServer {
    /// Serves until a signal comes.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub fn run(&self) -> Result<()> {
        let participant = prepare(&self.configuration.settings()?)?;
        let server = takt::DiscoveryServer::on(participant, self.listen).others(&self.other).build()?;
        let domain = server.participant().domain_id();
        let addresses: Vec<String> = server.addresses()?.iter().map(ToString::to_string).collect();
        // Who is told of meanwhile waits until this is told.
        let mut out = stdout().lock();
        server.participant().set_listener(Box::new(Log { json: self.json }))?;
        let told = if self.json {
            writeln!(out, "{}", json!({ "ev": "listening", "domain": domain, "addresses": addresses }))
        } else {
            writeln!(out, "listening domain {domain} at {}", addresses.join(" "))
        };
        // As in the log: a server without a reader of it serves.
        drop(told);
        drop(out);
        while !stopped() {
            sleep(STEP);
        }
        server.close().map_err(Error::Dds)
    }
}
