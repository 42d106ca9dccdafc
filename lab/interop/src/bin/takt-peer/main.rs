//! Peer program for Takt, with the line protocol of `lab/interop/peers/peer.c`, which
//! `lab/interop/README.md` describes.

mod endpoint;
mod report;
mod types;

use std::collections::HashMap;
use std::io::{BufRead, stdin};
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::Duration;

use takt::qos::{PublisherQos, SubscriberQos};
use takt::transport::TransportStats;
use takt::{DomainParticipant, SecurityConfig};
use takt_xdp::{Mode, XdpConfig, XdpTransport};

use crate::endpoint::{Batch, Entities, ReaderEndpoint, Spec, WriterEndpoint};
use crate::types::{
    KeyAppendable, KeyFinal, NameKeyAppendable, NameKeyFinal, OctetKeyFinal, SequenceKeyFinal, UnkeyedAppendable,
    UnkeyedFinal, WideKeyFinal,
};

/// A command line of the form `word key=value key=value`.
struct Words<'a> {
    command: &'a str,
    values: HashMap<&'a str, &'a str>,
}

impl<'a> Words<'a> {
    fn of_line(line: &'a str) -> Self {
        let mut words = line.split_whitespace();
        Self {
            command: words.next().unwrap_or_default(),
            values: words.filter_map(|word| word.split_once('=')).collect(),
        }
    }

    fn text(&self, key: &str, otherwise: &'a str) -> &'a str {
        self.values.get(key).copied().unwrap_or(otherwise)
    }

    fn number<N: std::str::FromStr>(&self, key: &str, otherwise: N) -> Result<N, String> {
        self.values
            .get(key)
            .map_or(Ok(otherwise), |value| value.parse().map_err(|_| format!("{key}={value} is no number")))
    }

    fn spec(&self) -> Result<Spec, String> {
        Ok(Spec {
            id: self.text("id", "?").to_owned(),
            topic: self.text("topic", "Topic").to_owned(),
            representation: self.text("repr", "xcdr1").to_owned(),
            reliable: self.text("reliability", "reliable") == "reliable",
            durability: self.text("durability", "volatile").to_owned(),
            keep_last: if self.text("history", "all") == "all" { 0 } else { self.number("history", 1)? },
            autodispose: self.number("autodispose", 0)? != 0,
            max_blocking_time: Duration::from_millis(self.number("block_ms", 30_000)?),
            lifespan: self.time("lifespan_ms")?,
            deadline: self.time("deadline_ms")?,
            lease: self.time("lease_ms")?,
            strength: self.values.get("strength").map(|_| self.number("strength", 0)).transpose()?,
            filter_below: self.values.get("filter_below").map(ToString::to_string),
            on_demand: self.number("on_demand", 0)? != 0,
            by_source: self.text("order", "reception") == "source",
        })
    }

    /// Returns a time in milliseconds; 0 or a missing key is infinite.
    fn time(&self, key: &str) -> Result<Option<Duration>, String> {
        let milliseconds = self.number(key, 0)?;
        Ok((milliseconds > 0).then(|| Duration::from_millis(milliseconds)))
    }

    fn batch(&self) -> Result<Batch, String> {
        Ok(Batch {
            first: self.number("first", 0)?,
            count: self.number("count", 1)?,
            key: self.number("key", 0)?,
            keys: self.number("keys", 1)?.max(1),
            size: self.number("size", 16)?,
            period: Duration::from_micros(self.number("period_us", 0)?),
        })
    }
}

/// The entities that the commands have created.
struct Peer {
    entities: Entities,
    writers: HashMap<String, Box<dyn WriterEndpoint>>,
    readers: HashMap<String, Box<dyn ReaderEndpoint>>,
}

impl Peer {
    fn open(words: &Words<'_>) -> takt::Result<Self> {
        let mut builder = DomainParticipant::builder(words.number("domain", 0).unwrap_or(0)).name("takt-interop");
        let (interface, peer) = (words.text("interface", ""), words.text("peer", ""));
        if !interface.is_empty() {
            builder = builder.interfaces([interface]);
        }
        if !peer.is_empty() {
            builder = builder.peers([peer]).multicast(false);
        }
        if let Some(port) = words.number("tcp_listen", 0_u16).ok().filter(|port| *port != 0) {
            builder =
                builder.udp(false).configure_tcp(move |tcp| tcp.listen = vec![(Ipv4Addr::UNSPECIFIED, port).into()]);
        }
        let listener = words.text("tcp_connect", "");
        if !listener.is_empty() {
            builder = builder.udp(false).peers([format!("tcp/{listener}")]);
        }
        if let Some(mode) = words.values.get("xdp") {
            let mode = if *mode == "generic" { Mode::Generic } else { Mode::Native };
            let domain_id = words.number("domain", 0).unwrap_or(0);
            let config = XdpConfig { mode: Some(mode), ..XdpConfig::new(domain_id, interface) };
            builder = builder.transport(Box::new(XdpTransport::open(&config)?));
        }
        let enclave = words.text("enclave", "");
        if !enclave.is_empty() {
            builder = builder.security(SecurityConfig::from_enclave(enclave)?);
        }
        let participant = builder.build()?;
        for warning in participant.diagnostics().warnings() {
            eprintln!("{warning:?}");
        }
        let publisher = participant.create_publisher(PublisherQos::default())?;
        let subscriber = participant.create_subscriber(SubscriberQos::default())?;
        Ok(Self {
            entities: Entities { participant, publisher, subscriber },
            writers: HashMap::new(),
            readers: HashMap::new(),
        })
    }

    fn run(&mut self, words: &Words<'_>) -> Result<(), String> {
        let id = words.text("id", "");
        match words.command {
            "writer" => self.create_writer(words),
            "reader" => self.create_reader(words),
            "carried" => {
                let stats =
                    self.entities.participant.diagnostics().transport_stats().map_err(|error| error.to_string())?;
                let of = |count: fn(&TransportStats) -> u64| stats.iter().map(|traffic| count(&traffic.stats)).sum();
                report::bypass_counters(of(|stats| stats.bypassed_in), of(|stats| stats.bypassed_out));
                Ok(())
            }
            "refused" => {
                let refused = self
                    .entities
                    .participant
                    .diagnostics()
                    .refused_participants()
                    .map_err(|error| error.to_string())?;
                report::refused_participants(&refused.into_iter().map(|refused| refused.reason).collect::<Vec<_>>());
                Ok(())
            }
            "renew" => {
                let config =
                    SecurityConfig::from_enclave(words.text("enclave", "")).map_err(|error| error.to_string())?;
                self.entities.participant.renew_security(&config).map_err(|error| error.to_string())
            }
            "delete" => {
                let known = self.writers.remove(id).is_some() | self.readers.remove(id).is_some();
                if known { Ok(()) } else { Err("no such endpoint".to_owned()) }
            }
            "take" => {
                self.readers.get(id).ok_or("no such reader")?.take();
                Ok(())
            }
            "lookup" => {
                let reader = self.readers.get(id).ok_or("no such reader")?;
                reader.lookup(words.number("key", 0)?).map_err(|error| error.to_string())
            }
            command => {
                let writer = self.writers.get(id).ok_or("no such writer")?;
                match command {
                    "write" => writer.write(&words.batch()?),
                    "dispose" => writer.dispose(words.number("key", 0)?),
                    "unregister" => writer.unregister(words.number("key", 0)?),
                    "acks" => writer.wait_acknowledged(Duration::from_millis(words.number("timeout_ms", 10_000)?)),
                    _ => return Err("unknown command".to_owned()),
                }
                .map_err(|error| error.to_string())
            }
        }
    }

    fn create_writer(&mut self, words: &Words<'_>) -> Result<(), String> {
        let (spec, entities) = (words.spec()?, &self.entities);
        let created: takt::Result<Box<dyn WriterEndpoint>> =
            match (words.text("type", "unkeyed"), words.text("ext", "final")) {
                ("unkeyed", "final") => entities.writer::<UnkeyedFinal>(&spec),
                ("unkeyed", _) => entities.writer::<UnkeyedAppendable>(&spec),
                ("key", "final") => entities.writer::<KeyFinal>(&spec),
                ("key", _) => entities.writer::<KeyAppendable>(&spec),
                ("wide_key", _) => entities.writer::<WideKeyFinal>(&spec),
                ("octet_key", _) => entities.writer::<OctetKeyFinal>(&spec),
                ("sequence_key", _) => entities.writer::<SequenceKeyFinal>(&spec),
                (_, "final") => entities.writer::<NameKeyFinal>(&spec),
                (..) => entities.writer::<NameKeyAppendable>(&spec),
            };
        self.writers.insert(spec.id, created.map_err(|error| error.to_string())?);
        Ok(())
    }

    fn create_reader(&mut self, words: &Words<'_>) -> Result<(), String> {
        let (spec, entities) = (words.spec()?, &self.entities);
        let created: takt::Result<Box<dyn ReaderEndpoint>> =
            match (words.text("type", "unkeyed"), words.text("ext", "final")) {
                ("unkeyed", "final") => entities.reader::<UnkeyedFinal>(&spec),
                ("unkeyed", _) => entities.reader::<UnkeyedAppendable>(&spec),
                ("key", "final") => entities.reader::<KeyFinal>(&spec),
                ("key", _) => entities.reader::<KeyAppendable>(&spec),
                ("wide_key", _) => entities.reader::<WideKeyFinal>(&spec),
                ("octet_key", _) => entities.reader::<OctetKeyFinal>(&spec),
                ("sequence_key", _) => entities.reader::<SequenceKeyFinal>(&spec),
                (_, "final") => entities.reader::<NameKeyFinal>(&spec),
                (..) => entities.reader::<NameKeyAppendable>(&spec),
            };
        self.readers.insert(spec.id, created.map_err(|error| error.to_string())?);
        Ok(())
    }
}

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    let arguments = format!("open {arguments}");
    let mut peer = match Peer::open(&Words::of_line(&arguments)) {
        Ok(peer) => peer,
        Err(error) => {
            report::error("", "open", &error.to_string());
            return ExitCode::FAILURE;
        }
    };
    report::ready(env!("CARGO_PKG_VERSION"));
    for line in stdin().lock().lines().map_while(Result::ok) {
        let words = Words::of_line(&line);
        let id = words.text("id", "");
        if words.command == "quit" {
            break;
        }
        match peer.run(&words) {
            Ok(()) => report::done(id, words.command),
            Err(why) => report::error(id, words.command, &why),
        }
    }
    drop(peer);
    report::done("", "quit");
    ExitCode::SUCCESS
}
