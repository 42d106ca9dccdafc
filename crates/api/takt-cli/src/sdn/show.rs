//! `takt sdn status`, `topology`, `flows`, `explain`, `admit` and `export`: queries over the
//! control socket of a running controller.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use takt_bench::report::to_json;
use takt_bench::{Error, Result};
use takt_calculus::Certificate;
use takt_calculus::composition::check;
use takt_calculus::network::NetworkCertificate;
use takt_sdn::api::control::{Client, ControlError};
use takt_sdn::api::service::Status;
use takt_sdn::api::what_if::{Verdict, WhatIf};
use takt_sdn::contract::parse_span;
use takt_sdn::schedule::compose;
use takt_sdn::view::{Pair, View};

use super::text;
use crate::output::outln;

/// Control socket of the queried controller, and output format.
#[derive(Args)]
pub struct QueryOptions {
    /// Control socket of the controller; may be omitted if exactly one runs on this host
    #[arg(long, value_name = "PATH")]
    pub(super) control: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(super) json: bool,
}

/// `takt sdn explain`
#[derive(Args)]
pub struct Explain {
    /// Topic, or part of the GUID of a writer or reader
    flow: String,
    #[command(flatten)]
    query: QueryOptions,
}

/// `takt sdn admit`
#[derive(Args)]
pub struct Admit {
    /// Decide on a copy of the network; only discovery admits pairs
    #[arg(long, required = true)]
    what_if: bool,
    /// Address of the host of the writer
    #[arg(long, value_name = "ADDRESS")]
    from: IpAddr,
    /// Address of the host of the reader
    #[arg(long, value_name = "ADDRESS")]
    to: IpAddr,
    /// Multicast group and UDP port to which the writer may also send samples
    #[arg(long, value_name = "ADDRESS:PORT")]
    group: Option<SocketAddr>,
    /// Address of the host of another reader of the group; may be repeated
    #[arg(long = "other", value_name = "ADDRESS", requires = "group")]
    others: Vec<IpAddr>,
    /// Minimum separation of two samples, such as 5ms
    #[arg(long, value_name = "TIME", value_parser = span)]
    separation: Duration,
    /// Maximum delay of a sample before the interface of its host [default: one separation]
    #[arg(long, value_name = "TIME", value_parser = span)]
    jitter: Option<Duration>,
    /// Maximum size of a serialized sample, in octets
    #[arg(long, value_name = "OCTETS")]
    size: u32,
    /// Maximum latency from write to delivery, such as 2ms
    #[arg(long, value_name = "TIME", value_parser = span)]
    limit: Duration,
    /// Assume a reliable reader
    #[arg(long)]
    reliable: bool,
    /// Flows of higher importance stay admitted if not all are possible
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
    importance: i32,
    #[command(flatten)]
    query: QueryOptions,
}

/// `takt sdn export`
#[derive(Args)]
pub struct Export {
    /// Print the certificate, all admitted flows with the proofs of their bounds, instead of the state
    #[arg(long)]
    certificate: bool,
    /// Certificates of `takt analyze` for the hosts: prints the verified end-to-end bound of each pair with host stages
    #[arg(long, value_name = "FILE", requires = "certificate", num_args = 1..)]
    hosts: Vec<PathBuf>,
    /// Control socket of the controller; may be omitted if exactly one runs on this host
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// No effect: the export is always JSON
    #[arg(long, hide = true)]
    json: bool,
}

pub(super) fn span(text: &str) -> std::result::Result<Duration, String> {
    parse_span(text).ok_or_else(|| "expected a whole number above 0 with ns, us, ms or s, such as 5ms".to_owned())
}

pub(super) fn failure(error: ControlError) -> Error {
    match error {
        ControlError::Several(_) => Error::Usage(error.to_string()),
        ControlError::Refused(what) => Error::NotKept { what },
        error => Error::NoAnswer { what: error.to_string() },
    }
}

pub(super) fn parsed<T: DeserializeOwned>(content: &[u8]) -> Result<T> {
    let of_other_version =
        |why| Error::NotKept { what: format!("the controller has a different version of Takt: {why}") };
    serde_json::from_slice(content).map_err(of_other_version)
}

pub(super) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn get<T: DeserializeOwned>(control: Option<&PathBuf>, path: &str) -> Result<T> {
    let client = Client::find(control.map(PathBuf::as_path)).map_err(failure)?;
    parsed(&client.get(path).map_err(failure)?)
}

/// Prints `takt sdn status`.
pub fn status(options: &QueryOptions) -> Result<()> {
    let status: Status = get(options.control.as_ref(), "/v1/status")?;
    if options.json { outln!("{}", to_json(&status)?) } else { text::status(&status) }
}

/// Prints `takt sdn topology`.
pub fn topology(options: &QueryOptions) -> Result<()> {
    let view: View = get(options.control.as_ref(), "/v1/state")?;
    if options.json {
        let parts = json!({ "switches": view.switches, "links": view.links, "hosts": view.hosts });
        outln!("{}", to_json(&parts)?)
    } else {
        text::topology(&view)
    }
}

/// Prints `takt sdn flows`.
pub fn flows(options: &QueryOptions) -> Result<()> {
    let view: View = get(options.control.as_ref(), "/v1/state")?;
    let flows: Vec<&Pair> = view.pairs.iter().filter(|pair| pair.contract.is_some()).collect();
    if options.json { outln!("{}", to_json(&json!({ "flows": flows }))?) } else { text::flows(&view, &flows) }
}

impl Explain {
    /// Prints all pairs that match the argument.
    pub fn run(self) -> Result<()> {
        let view: View = get(self.query.control.as_ref(), "/v1/state")?;
        let of_topic: Vec<&Pair> = view.pairs.iter().filter(|pair| pair.topic == self.flow).collect();
        let has_guid = |pair: &&Pair| pair.writer.contains(&self.flow) || pair.reader.contains(&self.flow);
        let meant = if of_topic.is_empty() { view.pairs.iter().filter(has_guid).collect() } else { of_topic };
        if meant.is_empty() {
            let mut topics: Vec<&str> = view.pairs.iter().map(|pair| pair.topic.as_str()).collect();
            topics.sort_unstable();
            topics.dedup();
            let known = if topics.is_empty() { "no pair matches".to_owned() } else { topics.join(", ") };
            return Err(Error::Usage(format!("no flow has the topic or GUID {:?}; topics: {known}", self.flow)));
        }
        if self.query.json {
            return outln!("{}", to_json(&json!({ "flows": meant }))?);
        }
        meant.into_iter().try_for_each(text::explain)
    }
}

impl Admit {
    /// Queries the decision. Fails if the pair would be refused.
    pub fn run(self) -> Result<()> {
        let request = WhatIf {
            from: self.from,
            to: self.to,
            group: self.group,
            others: self.others,
            separation_ns: nanos(self.separation),
            jitter_ns: self.jitter.map(nanos),
            size: self.size,
            limit_ns: nanos(self.limit),
            is_reliable: self.reliable,
            importance: self.importance,
        };
        let body = to_json(&request)?;
        let client = Client::find(self.query.control.as_deref()).map_err(failure)?;
        let verdict: Verdict = parsed(&client.post("/v1/what-if", body.as_bytes()).map_err(failure)?)?;
        if self.query.json {
            outln!("{}", to_json(&verdict)?)?;
        } else {
            text::verdict(&verdict, request.limit_ns)?;
        }
        if verdict.is_admitted { Ok(()) } else { Err(Error::NotKept { what: "the pair would be refused".to_owned() }) }
    }
}

impl Export {
    /// Writes the state, or the certificate.
    pub fn run(self) -> Result<()> {
        if !self.hosts.is_empty() {
            return self.compose();
        }
        let path = if self.certificate { "/v1/certificate" } else { "/v1/state" };
        let value: Value = get(self.control.as_ref(), path)?;
        outln!("{}", to_json(&value)?)
    }

    /// Writes the end-to-end bound, from `write` to callback, of each pair whose hosts have stages.
    fn compose(&self) -> Result<()> {
        let read = |path: &PathBuf| -> Result<Certificate> {
            let text = std::fs::read(path).map_err(|source| Error::os(format!("read {}", path.display()), source))?;
            serde_json::from_slice(&text).map_err(|why| Error::Usage(format!("{}: {why}", path.display())))
        };
        let hosts = self.hosts.iter().map(read).collect::<Result<Vec<_>>>()?;
        let view: View = get(self.control.as_ref(), "/v1/state")?;
        let network: NetworkCertificate = get(self.control.as_ref(), "/v1/certificate")?;
        let mut claims = Vec::new();
        for pair in view.pairs.iter().filter(|pair| !pair.hosts.is_empty()) {
            let name = format!("{} {} to {}", pair.topic.escape_debug(), pair.writer, pair.reader);
            let unproven = |why: &dyn std::fmt::Display| Error::NotKept { what: format!("{name}: {why}") };
            let flow = network.flows.iter().position(|flow| flow.name == name);
            let flow =
                flow.ok_or_else(|| unproven(&"its flow was removed between the two queries; repeat the command"))?;
            let separation_ns = pair.contract.as_ref().map_or(0, |contract| contract.separation_ns);
            let claim = compose(&pair.announced_stages(), separation_ns, (network.clone(), flow), &hosts);
            let claim = claim.map_err(|why| unproven(&why))?;
            check(&claim).map_err(|why| unproven(&why))?;
            claims.push(json!({ "writer": pair.writer, "reader": pair.reader, "topic": pair.topic, "claim": claim }));
        }
        outln!("{}", to_json(&claims)?)
    }
}
