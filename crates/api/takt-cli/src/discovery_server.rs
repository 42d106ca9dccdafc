//! `takt discovery-server`: discovery server for participants on a network without multicast.
//!
//! The log names the listening address, the participants that come and go with their names and
//! addresses, and the other servers that do not answer. User data never pass through the server.

use crate::domain::{DomainConfig, STEP, address_and_port, prepare};
use crate::output::{EventLog, note};
use clap::Args;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use takt::{DomainParticipant, DomainParticipantListener, Guid, PublisherListener, SubscriberListener, TopicListener};
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};

/// Time within which another server has to answer after the start.
const ANSWER_TIME: Duration = Duration::from_secs(3);

/// Names of the events in the log.
const DISCOVERED: &str = "discovered";
const LOST: &str = "lost";

const EXAMPLES: &str = "\
Examples:
  takt discovery-server                                      on all addresses, port 7400, domain 0
  takt discovery-server --listen 192.0.2.1:7400 --other 192.0.2.2:7400
                                                             two redundant servers, on two hosts
  TAKT_DISCOVERY_SERVERS=192.0.2.1:7400,192.0.2.2:7400 ...   run a program as their client
  takt ls --server 192.0.2.1:7400                            list the participants";

/// `takt discovery-server`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct DiscoveryServer {
    #[command(flatten)]
    configuration: DomainConfig,
    /// Address for clients
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:7400", value_parser = address_and_port)]
    listen: SocketAddr,
    /// Other server to exchange participants with; may be repeated
    #[arg(long, value_name = "ADDRESS:PORT")]
    other: Vec<String>,
    /// Print one JSON object per line instead of text
    #[arg(long)]
    json: bool,
}

/// Forwards the participants that come and go to the log.
struct Events(Sender<(Guid, bool)>);

impl Events {
    fn send(&self, participant: Guid, is_there: bool) {
        // The log ends with the command, shortly before its participant does.
        if self.0.send((participant, is_there)).is_err() {
            let event = if is_there { DISCOVERED } else { LOST };
            note!("{event} {participant} after the end of the log");
        }
    }
}

impl TopicListener for Events {}
impl PublisherListener for Events {}
impl SubscriberListener for Events {}

impl DomainParticipantListener for Events {
    fn on_participant_discovered(&mut self, participant: Guid) {
        self.send(participant, true);
    }

    fn on_participant_lost(&mut self, participant: Guid) {
        self.send(participant, false);
    }
}

/// Name and addresses of a participant in the log.
#[derive(Clone, Default)]
struct Named {
    name: String,
    addresses: Vec<String>,
}

/// Log of the participants that come and go, and of the other servers that do not answer.
struct Log<'a> {
    json: bool,
    participant: &'a DomainParticipant,
    known: BTreeMap<Guid, Named>,
    unresponsive: Vec<String>,
    output: EventLog,
}

impl Log<'_> {
    fn report_participant(&mut self, guid: Guid, is_there: bool) -> Result<()> {
        let event = if is_there { DISCOVERED } else { LOST };
        let named = if is_there { self.look_up(guid)? } else { self.known.remove(&guid).unwrap_or_default() };
        if is_there {
            self.known.insert(guid, named.clone());
        }
        let Named { name, addresses } = named;
        if self.json {
            let participant = guid.to_string();
            let line = json!({ "ev": event, "participant": participant, "name": name, "addresses": addresses });
            self.output.line(format_args!("{line}"));
        } else {
            self.output.line(format_args!("{event} {guid} {name:?} at {}", addresses.join(", ")));
        }
        Ok(())
    }

    fn look_up(&self, guid: Guid) -> Result<Named> {
        let all = self.participant.discovered_participants()?;
        let found = all.into_iter().find(|data| data.guid == guid);
        Ok(found.map_or_else(Named::default, |data| Named {
            name: data.entity_name.0,
            addresses: data.metatraffic_unicast.iter().map(ToString::to_string).collect(),
        }))
    }

    fn report_unresponsive_servers(&mut self) -> Result<()> {
        let silent = self.participant.diagnostics().silent_discovery_servers()?;
        for server in silent.iter().filter(|server| !self.unresponsive.contains(server)) {
            if self.json {
                self.output.line(format_args!("{}", json!({ "ev": "silent", "server": server })));
            } else {
                self.output.line(format_args!("silent {server}: no discovery server answers at this address"));
            }
        }
        self.unresponsive = silent;
        Ok(())
    }
}

impl DiscoveryServer {
    /// Serves until a signal arrives.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn run(&self) -> Result<()> {
        let participant = prepare(&self.configuration.settings()?)?;
        let server =
            takt::DiscoveryServer::from_participant(participant, self.listen).other_servers(&self.other).build()?;
        let domain = server.participant().domain_id();
        let addresses: Vec<String> = server.addresses()?.iter().map(ToString::to_string).collect();
        let (sender, events) = channel();
        server.participant().set_listener(Box::new(Events(sender)))?;
        let mut output = EventLog::default();
        if self.json {
            let line = json!({ "ev": "listening", "domain": domain, "addresses": addresses });
            output.line(format_args!("{line}"));
        } else {
            output.line(format_args!("listening domain {domain} at {}", addresses.join(" ")));
        }
        let participant = server.participant();
        let mut log = Log { json: self.json, participant, known: BTreeMap::new(), unresponsive: Vec::new(), output };
        let start = Instant::now();
        while !stopped() {
            match events.recv_timeout(STEP) {
                Ok((guid, is_there)) => log.report_participant(guid, is_there)?,
                Err(_) if start.elapsed() >= ANSWER_TIME => log.report_unresponsive_servers()?,
                Err(_) => {}
            }
        }
        server.close().map_err(Error::Dds)
    }
}
