//! Options that `ping`, `pong`, `pub` and `sub` share.

use crate::completion::interfaces;
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use takt::transport::choice::TransportChoice;
use takt_bench::agent::options::BATCH_MAX;
use takt_bench::link::{Idle, Notify};
use takt_bench::machine::Scheduling;
use takt_bench::payload::MARKS_LEN;
use takt_bench::report::Configuration;
use takt_bench::spec::{History, LinkSpec, NAME, Preparation, Runtime, Transport};
use takt_bench::{Error, Result};
use takt_config::{Settings, Value};

use crate::domain::{DomainConfig, prepare};

/// Thread that drives the participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RuntimeName {
    /// The calling thread: no other thread, no lock
    Inline,
    /// A separate receive thread
    Shared,
}

/// QoS policies of a workload.
#[derive(Args, Clone, Debug)]
pub struct Qos {
    /// RELIABLE (default)
    #[arg(long, overrides_with = "best_effort")]
    reliable: bool,
    /// BEST_EFFORT
    #[arg(long)]
    best_effort: bool,
    /// KEEP_ALL history (default)
    #[arg(long, overrides_with = "keep_last")]
    keep_all: bool,
    /// KEEP_LAST history of N samples
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep_last: Option<u32>,
}

impl Qos {
    /// Reports whether RELIABILITY is RELIABLE.
    pub fn is_reliable(&self) -> bool {
        !self.best_effort
    }

    /// Returns the HISTORY policy.
    pub fn history(&self) -> History {
        self.keep_last.map_or(History::KeepAll, History::KeepLast)
    }
}

/// How the program is notified of data.
#[derive(Args, Clone, Debug)]
#[group(multiple = false)]
pub struct Notification {
    /// A listener is called (default)
    #[arg(long)]
    listener: bool,
    /// Wait in a WaitSet, then take
    #[arg(long)]
    waitset: bool,
    /// Call take until it returns a sample
    #[arg(long)]
    poll: bool,
}

impl Notification {
    /// Returns the selected notification, or `None` if there is no option.
    pub fn chosen(&self) -> Option<Notify> {
        match (self.listener, self.waitset, self.poll) {
            (_, true, _) => Some(Notify::WaitSet),
            (_, _, true) => Some(Notify::Poll),
            (true, ..) => Some(Notify::Listener),
            _ => None,
        }
    }
}

/// `takt perf ping|pong|pub|sub`
#[derive(Args, Clone, Debug)]
pub struct Run {
    /// Transport of the samples: udp, shm (discovery uses UDP), one of takt transport ls, such as xdp:eth0, or the
    /// first of several that opens, as in 'xdp:eth0|udp'; raw-udp and raw-shm are baselines without middleware
    #[arg(long, default_value = "udp", value_name = "NAME", value_parser = transport)]
    transport: Transport,
    /// Thread that drives the participant
    #[arg(long, value_enum, default_value = "inline")]
    runtime: RuntimeName,
    /// Payload in bytes, at least 16 for sequence number and timestamp
    #[arg(long, default_value = "64", value_name = "BYTES", value_parser = size)]
    size: usize,
    #[command(flatten)]
    qos: Qos,
    /// Samples per write call of pub; sub takes as many per call, or 64
    #[arg(long, value_name = "N", default_value = "1", value_parser = batch)]
    batch: usize,
    /// Samples per second; for ping one ping per period, independent of the answers
    #[arg(long, value_name = "HZ", value_parser = rate)]
    rate: Option<f64>,
    /// Maximum rate; for ping, the next ping follows the previous answer (default)
    #[arg(long, conflicts_with = "rate")]
    max: bool,
    /// Samples to measure [default: ping 10000, pub 100000, pong and sub unlimited]
    #[arg(long, value_name = "N")]
    samples: Option<u64>,
    /// Samples of the warm-up
    #[arg(long, value_name = "N", default_value = "1000")]
    warmup: u64,
    #[command(flatten)]
    notification: Notification,
    /// Spin: poll for input without sleeping; occupies a core
    #[arg(long)]
    spin: bool,
    /// Sleep without input (default)
    #[arg(long, conflicts_with = "spin")]
    block: bool,
    /// Run on this core only
    #[arg(long, value_name = "CORE")]
    cpu: Option<usize>,
    /// Run with this SCHED_FIFO priority
    #[arg(long, value_name = "PRIO", value_parser = clap::value_parser!(u8).range(1..=99))]
    fifo: Option<u8>,
    /// Lock all memory into RAM
    #[arg(long)]
    mlock: bool,
    #[command(flatten)]
    domain: DomainConfig,
    /// Network interface of all traffic [default: that of the transport or of the configuration, or lo]
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(interfaces))]
    interface: Option<String>,
    /// Number of readers that pub waits for
    #[arg(long, value_name = "N", default_value = "1")]
    pub readers: usize,
    /// Write into loaned samples; readers access only sequence number and timestamp
    #[arg(long)]
    loan: bool,
    /// pub: answer clock echoes at this address, for the latencies of a sub on another host
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub answer_clock: Option<SocketAddr>,
    /// sub: measure the clock offset to the pub that answers at this address; latencies have an uncertainty
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub clock: Option<SocketAddr>,
    /// Name of this side's executor in job statistics and system file [default: takt-bench]
    #[arg(long, value_name = "NAME")]
    executor: Option<String>,
    /// System file of takt analyze: priorities of the topics Data, Ping and Pong, and the bound that sub checks
    #[arg(long, value_name = "FILE")]
    system: Option<PathBuf>,
    /// Write the job statistics of this side to this file, for takt analyze --measured
    #[arg(long, value_name = "FILE")]
    pub job_accounts: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

impl Run {
    /// Returns the configuration of one role with these options, as its report shows it.
    ///
    /// # Errors
    /// The system file is not suitable.
    pub fn configuration(&self, role: &'static str) -> Result<Configuration> {
        let plan = self.system.as_ref().map(takt_config::read_timing_plan).transpose();
        let timing_plan = plan.map_err(|error| Error::Usage(error.to_string()))?;
        let samples = match role {
            "ping" => Some(self.samples.unwrap_or(10_000)),
            "pub" => Some(self.samples.unwrap_or(100_000)),
            _ => self.samples,
        };
        Ok(Configuration {
            role,
            size: matches!(role, "ping" | "pub").then_some(self.size),
            samples,
            warmup: self.warmup,
            rate_hz: self.rate,
            link: LinkSpec { timing_plan, ..self.link()? },
            scheduling: Scheduling { cpu: self.cpu, fifo: self.fifo, lock_memory: self.mlock },
        })
    }

    fn link(&self) -> Result<LinkSpec> {
        let settings = self.domain.settings()?;
        let configured = match settings.value("network.interfaces") {
            Some(Value::Texts(names)) => names.first().cloned(),
            _ => None,
        };
        let interface = self.interface.clone().or_else(|| interface_of(&self.transport)).or(configured);
        Ok(LinkSpec {
            name: self.executor.clone().unwrap_or_else(|| NAME.into()),
            transport: self.transport.clone(),
            runtime: self.runtime.into(),
            idle: if self.spin { Idle::Spin } else { Idle::Block },
            notify: self.notification.chosen().unwrap_or_default(),
            domain: domain_of(&settings),
            interface: interface.unwrap_or_else(|| "lo".into()),
            preparation: preparation(settings),
            reliable: self.qos.is_reliable(),
            history: self.qos.history(),
            size_max: self.size,
            batch: self.batch,
            loan: self.loan,
            ..LinkSpec::default()
        })
    }
}

fn domain_of(settings: &Settings) -> u32 {
    match settings.value("participant.domain") {
        Some(Value::Int(domain)) => u32::try_from(*domain).unwrap_or_default(),
        _ => 0,
    }
}

/// Returns how settings other than the domain prepare the participant. `None` if there are none.
fn preparation(settings: Settings) -> Option<Preparation> {
    let is_set = |path: &str| settings.value(path).is_some();
    let has_more = settings.explain().any(|one| one.value.is_some() && one.setting.path() != "participant.domain");
    let has_peers = is_set("network.peers") || is_set("network.discovery_servers");
    (has_more || settings.profiles().default_profile().is_some())
        .then(|| Preparation { builder: Arc::new(move || prepare(&settings)), has_peers })
}

impl From<RuntimeName> for Runtime {
    fn from(name: RuntimeName) -> Self {
        match name {
            RuntimeName::Inline => Self::Inline,
            RuntimeName::Shared => Self::Shared,
        }
    }
}

/// Parses the transport of the samples.
fn transport(text: &str) -> std::result::Result<Transport, String> {
    match text {
        "udp" => Ok(Transport::Udp),
        "shm" => Ok(Transport::Shm),
        "raw-udp" => Ok(Transport::RawUdp),
        "raw-shm" => Ok(Transport::RawShm),
        named => match named.parse::<TransportChoice>() {
            Ok(_) => Ok(Transport::Named(named.into())),
            Err(error) => Err(error.what),
        },
    }
}

/// Returns the interface that the transport names. If there are several transports, the first one
/// counts.
fn interface_of(transport: &Transport) -> Option<String> {
    let Transport::Named(name) = transport else { return None };
    // tidy-allow(dropped-cause): it was parsed before.
    let choice: TransportChoice = name.parse().ok()?;
    choice.alternatives.into_iter().flatten().find_map(|spec| spec.target)
}

/// Parses a payload size.
pub fn size(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(size) if size >= MARKS_LEN => Ok(size),
        Ok(_) => Err(format!("expected a payload of at least {MARKS_LEN} bytes")),
        Err(error) => Err(format!("{error}")),
    }
}

fn batch(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=BATCH_MAX).contains(&count) => Ok(count),
        Ok(_) => Err(format!("expected a batch of 1 to {BATCH_MAX} samples")),
        Err(error) => Err(format!("{error}")),
    }
}

fn rate(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(hz) if (1e-9..=1e9).contains(&hz) => Ok(hz),
        Ok(_) => Err("expected a rate from 1e-9 to 1e9 samples per second".into()),
        Err(error) => Err(format!("{error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: Run,
    }

    fn parse(line: &str) -> std::result::Result<Run, clap::Error> {
        let words = std::iter::once("perf").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.run)
    }

    #[test]
    fn defaults_are_reliable_keep_all_inline_blocking_on_loopback() {
        let configuration = parse("").unwrap().configuration("ping").unwrap();
        assert_eq!(configuration.link, LinkSpec::default());
        assert_eq!((configuration.samples, configuration.warmup), (Some(10_000), 1000));
        assert_eq!((configuration.size, configuration.rate_hz), (Some(64), None));
        assert_eq!(configuration.scheduling, Scheduling::default());
    }

    #[test]
    fn every_option_of_the_agent_contract_takes_effect() {
        let line = "--transport raw-udp --runtime shared --size 100 --best-effort --keep-last 3 --rate 50 --samples 7 \
                    --warmup 2 --waitset --spin --cpu 1 --fifo 80 --mlock --domain 9 --interface v0 --batch 32 --loan --executor e --json";
        let run = parse(line).unwrap();
        assert!(run.json);
        let configuration = run.configuration("pub").unwrap();
        let expected = LinkSpec {
            name: "e".into(),
            transport: Transport::RawUdp,
            runtime: Runtime::Shared,
            idle: Idle::Spin,
            notify: Notify::WaitSet,
            domain: 9,
            interface: "v0".into(),
            reliable: false,
            history: History::KeepLast(3),
            size_max: 100,
            batch: 32,
            loan: true,
            ..LinkSpec::default()
        };
        assert_eq!(configuration.link, expected);
        assert_eq!((configuration.samples, configuration.warmup), (Some(7), 2));
        assert_eq!(configuration.rate_hz, Some(50.0));
        let scheduling = Scheduling { cpu: Some(1), fifo: Some(80), lock_memory: true };
        assert_eq!(configuration.scheduling, scheduling);
    }

    #[test]
    fn defaults_can_be_given_explicitly() {
        let link = parse("--reliable --keep-all --max --listener --block").unwrap().link().unwrap();
        assert_eq!(link, LinkSpec::default());
        assert_eq!(parse("--poll").unwrap().link().unwrap().notify, Notify::Poll);
    }

    #[test]
    fn transport_can_be_given_by_name() {
        let link = parse("--transport xdp:eth7 --spin").unwrap().link().unwrap();
        assert_eq!((link.transport, link.interface.as_str()), (Transport::Named("xdp:eth7".into()), "eth7"));
        let link = parse("--transport xdp:eth7|udp --interface eth1").unwrap().link().unwrap();
        assert_eq!((link.transport, link.interface.as_str()), (Transport::Named("xdp:eth7|udp".into()), "eth1"));
        assert_eq!(parse("--transport raw-shm").unwrap().link().unwrap().transport, Transport::RawShm);
    }

    #[test]
    fn contradictory_and_invalid_options_are_refused() {
        for wrong in [
            "--spin --block",
            "--max --rate 5",
            "--poll --waitset",
            "--size 15",
            "--size x",
            "--batch 0",
            "--batch 5000",
            "--rate 0",
            "--rate 1e-20",
            "--fifo 0",
            "--fifo 100",
            "--keep-last 0",
            "--domain 233",
            "--transport pigeon",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn receiving_side_has_no_size_and_no_end() {
        let configuration = parse("").unwrap().configuration("sub").unwrap();
        assert_eq!((configuration.size, configuration.samples), (None, None));
    }
}
