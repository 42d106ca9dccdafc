//! `takt sdn run`: the controller. It logs its addresses, the switches, ports, links and hosts that
//! come and go, and what it refuses.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};
use takt_sdn::api::server::Server;
use takt_sdn::api::service::{Access, Service};
use takt_sdn::api::token::Token;
use takt_sdn::api::{ApiCounters, control};
use takt_sdn::cluster::{self, Cluster};
use takt_sdn::contract::ContractFile;
use takt_sdn::controller::{Config, Controller, Event};
use takt_sdn::forwarding::parse_domains;
use takt_sdn::isolation::Isolation;
use takt_sdn::model::NetworkFile;
use takt_sdn::runtime::{Identity, IdentityFiles, Runtime};

use super::event_fields;
use crate::domain::address_and_port;
use crate::output::{EventLog, note};

/// Longest time until a signal is noticed.
const PAUSE: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "\
Examples:
  takt sdn run                                               on all addresses, port 6653, without TLS
  takt sdn run --listen 192.0.2.1:6653 --certificate own.pem --key own.key --authorities switches.pem
                                                             mutual TLS 1.3
  takt sdn run --network network.toml --contracts contracts.toml
                                                             admits pairs with contracts if their bounds are proven
  takt sdn run --isolation isolation.toml                    drops traffic that the policy forbids
  takt sdn run --cluster etcd:http://10.0.0.1:2379,http://10.0.0.2:2379,http://10.0.0.3:2379
                                                             one of several controllers: a leader, or a standby that takes over
  takt sdn run --api 127.0.0.1:8080 --api-token token        REST, metrics and a web page (openssl rand -hex 32 > token)
  takt sdn run --api 127.0.0.1:8080 --api-token token --api-write-token gateway
                                                             clients with the second token may register pairs
  ovs-vsctl set bridge s1 protocols=OpenFlow13,OpenFlow14 fail_mode=secure -- set-controller s1 tcp:192.0.2.1:6653
                                                             connects a bridge of Open vSwitch to the controller";

/// `takt sdn run`
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    /// Address to which switches connect
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:6653", value_parser = address_and_port)]
    listen: SocketAddr,
    /// Certificate of the controller, in PEM; enables TLS instead of plain TCP
    #[arg(long, value_name = "FILE", requires_all = ["key", "authorities"])]
    certificate: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// Certificate authorities of the switches, in PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    authorities: Option<PathBuf>,
    /// DDS domains whose discovery is intercepted, such as 0-9,42; pairs of other domains match without admission
    #[arg(long, value_name = "DOMAINS", default_value = "0-9", value_parser = parse_domains)]
    domains: BTreeSet<u16>,
    /// Forward UDP fragments, although discovery in fragments bypasses the controller
    #[arg(long)]
    allow_udp_fragments: bool,
    /// Network file with switch models and rates, in TOML; enables admission (docs/guide/sdn.md)
    #[arg(long, value_name = "FILE")]
    network: Option<PathBuf>,
    /// Contracts of topics, in TOML, for applications that declare none
    #[arg(long, value_name = "FILE")]
    contracts: Option<PathBuf>,
    /// Isolation policy, in TOML: labels of participants and permitted flows [default: all flows permitted]
    #[arg(long, value_name = "FILE")]
    isolation: Option<PathBuf>,
    /// Store hosts, participants, verdicts and admitted pairs in this file, and restore them at the start
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Run as one of several controllers that elect a leader through etcd: etcd:http://HOST:PORT,http://HOST:PORT...
    #[arg(long, value_name = "etcd:URLS", conflicts_with = "store")]
    cluster: Option<Cluster>,
    /// Control socket for takt sdn status and other queries [default: /run/takt/sdn/PID.sock]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Serve REST, metrics and the web page over HTTP at this loopback address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address_and_port)]
    api: Option<SocketAddr>,
    /// File with the read token of --api; only its owner may have access
    #[arg(long, value_name = "FILE", requires = "api")]
    api_token: Option<PathBuf>,
    /// File with a token of --api that may register pairs; the file name is their owner; may be repeated
    #[arg(long, value_name = "FILE", requires = "api")]
    api_write_token: Vec<PathBuf>,
    /// Permit reads of --api without a token
    #[arg(long, requires = "api")]
    api_open_read: bool,
    /// Print one JSON object per line instead of text
    #[arg(long)]
    json: bool,
}

impl Run {
    fn identity(&self) -> Result<Option<Identity>> {
        let (Some(certificate), Some(key), Some(authorities)) = (&self.certificate, &self.key, &self.authorities)
        else {
            return Ok(None);
        };
        let files =
            IdentityFiles { certificate: certificate.clone(), key: key.clone(), authorities: authorities.clone() };
        Identity::load(&files).map(Some).map_err(|error| Error::Usage(error.to_string()))
    }

    /// Opens the control socket. If opening the default socket fails, the controller runs without
    /// one.
    fn control(&self, service: Service) -> Result<Option<Server>> {
        let at =
            |path: &Path, source| Error::Os { op: format!("create the control socket {}", path.display()), source };
        if let Some(path) = &self.control {
            return Server::unix(path, service).map(Some).map_err(|source| at(path, source));
        }
        let made = control::own_path().and_then(|path| Server::unix(&path, service));
        Ok(made.map_err(|error| note!("no control socket: {error}; use --control PATH")).ok()) // tidy-allow(dropped-cause): the note says it.
    }

    fn token(&self) -> Result<Option<Token>> {
        let Some(path) = &self.api_token else { return Ok(None) };
        let token = Token::load(path);
        token.map(Some).map_err(|why| Error::Usage(format!("--api-token {}: {why}", path.display())))
    }

    /// Reads the write tokens, named by their files. All tokens must differ, and so must the names.
    fn write_tokens(&self, reader: Option<&Token>) -> Result<Vec<(String, Token)>> {
        let mut tokens: Vec<(String, Token)> = Vec::new();
        for path in &self.api_write_token {
            let fail =
                |why: &dyn std::fmt::Display| Error::Usage(format!("--api-write-token {}: {why}", path.display()));
            let token = Token::load(path).map_err(|why| fail(&why))?;
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if reader.is_some_and(|reader| reader.is(&token)) {
                return Err(fail(&"the same token as --api-token, which only reads; create another one"));
            }
            if tokens.iter().any(|(other, known)| *other == name || known.is(&token)) {
                return Err(fail(
                    &"another --api-write-token has the same token or file name; each owner needs its own",
                ));
            }
            tokens.push((name, token));
        }
        Ok(tokens)
    }

    fn api(&self, service: Service) -> Result<Option<Server>> {
        let Some(address) = self.api else { return Ok(None) };
        let token = self.token()?;
        let writers = self.write_tokens(token.as_ref())?;
        if token.is_none() && !self.api_open_read {
            let what = "--api requires --api-token FILE, or --api-open-read for reads without a token";
            return Err(Error::Usage(what.to_owned()));
        }
        let service = Service { access: Access::Token { token, writers, is_open: self.api_open_read }, ..service };
        let server = Server::tcp(address, service);
        server.map(Some).map_err(|source| Error::Os { op: format!("serve the API at {address}"), source })
    }

    /// Runs until a signal arrives.
    pub fn run(self) -> Result<()> {
        let mut config = Config::default();
        config.forwarding.domains.clone_from(&self.domains);
        config.forwarding.drop_udp_fragments = !self.allow_udp_fragments;
        if let Some(path) = &self.network {
            let file = NetworkFile::load(path).map_err(|error| Error::Usage(error.to_string()))?;
            config.network = Some(file);
        }
        if let Some(path) = &self.contracts {
            let fail = |error: &dyn std::fmt::Display| Error::Usage(format!("{}: {error}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|error| fail(&error))?;
            config.discovery.contracts = ContractFile::parse(&text).map_err(|error| fail(&error))?;
        }
        if let Some(path) = &self.isolation {
            let fail = |error: &dyn std::fmt::Display| Error::Usage(format!("{}: {error}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|error| fail(&error))?;
            config.discovery.isolation = Isolation::parse(&text).map_err(|error| fail(&error))?;
        }
        let of_listener = |source| Error::Os { op: format!("listen at {}", self.listen), source };
        let mut runtime = Runtime::listen(self.listen, self.identity()?, config).map_err(of_listener)?;
        let address = runtime.address().map_err(of_listener)?;
        if let Some(path) = &self.store {
            runtime.use_store(path).map_err(|error| Error::NotKept { what: error.to_string() })?;
        }
        if let Some(cluster) = &self.cluster {
            let of_thread = |source| Error::Os { op: "start the thread of --cluster".to_owned(), source };
            runtime.join(cluster.clone(), member_name()).map_err(of_thread)?;
        }
        let kind = if self.certificate.is_some() { "TLS" } else { "TCP" };
        let mut output = EventLog::default();
        if self.json {
            let line = json!({ "event": "listening", "address": address.to_string(), "transport": kind });
            output.line(format_args!("{line}"));
        } else {
            output.line(format_args!("listening at {address}, {kind}"));
        }
        let counters = Arc::new(ApiCounters::default());
        let service = Service { source: Arc::new(runtime.client()), access: Access::Reachable, counters };
        let _control = self.control(service.clone())?;
        let api = self.api(service)?;
        if let Some(address) = api.as_ref().and_then(Server::address) {
            if self.json {
                output.line(format_args!("{}", json!({ "event": "api", "address": address.to_string() })));
            } else {
                output.line(format_args!("API and web page at http://{address}/"));
            }
        }
        while !stopped() {
            runtime.run_once(PAUSE).map_err(|source| Error::Os { op: "wait for switches".to_owned(), source })?;
            while let Some(event) = runtime.poll_election() {
                self.report_election(&event, &mut output);
            }
            while let Some(event) = runtime.poll_event() {
                self.report(&event, &mut output);
            }
            if let Some(why) = runtime.take_store_failure() {
                note!("takt: warning: the store no longer saves changes: {why}");
            }
        }
        note!("{}", summary(runtime.controller()));
        Ok(())
    }

    fn report_election(&self, event: &cluster::Event, output: &mut EventLog) {
        if self.json {
            output.line(format_args!("{}", event_fields::election(event)));
        } else {
            output.line(format_args!("{event}"));
        }
    }

    fn report(&self, event: &Event, output: &mut EventLog) {
        if self.json {
            output.line(format_args!("{}", event_fields::object(event)));
        } else {
            output.line(format_args!("{event}"));
        }
    }
}

/// Returns a readable name of this controller: its host and its process.
fn member_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", host.trim(), std::process::id())
}

fn summary(controller: &Controller) -> String {
    let counters = controller.counters();
    let [switches, links, hosts] = [
        controller.topology().switches().count(),
        controller.topology().links().count(),
        controller.devices().iter().count(),
    ];
    format!(
        "{switches} switches, {links} links, {hosts} hosts; {} packets, {} spoofed, {} of discovery",
        counters.packets, counters.spoofed, counters.discovery
    )
}
