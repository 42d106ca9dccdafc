//! Command-line keys of the agent contract (docs/reference/bench-agents.md).

use crate::error::{Error, Result};
use crate::link::{Idle, Notify};
use crate::machine::interface_ipv4;
use crate::payload::{Form, MARKS_LEN, SEQUENCE_LEN};
use crate::spec::{Durability, History, LinkSpec, Runtime, Touch, Transport};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use takt::transport::choice::TransportChoice;

/// Values of the key `transport`. `default` is `udp`: an Inline participant that blocks when idle.
/// `shm` is shared memory, with the same two idle modes.
pub const TRANSPORTS: [&str; 11] = [
    "default",
    "udp",
    "spin",
    "shared",
    "shared-spin",
    "raw",
    "raw-spin",
    "shm",
    "shm-spin",
    "raw-shm",
    "raw-shm-spin",
];

/// Maximum number of samples written in one batch.
pub const BATCH_MAX: usize = 4096;

/// Limits of a crowd: participants, endpoints of each participant, and instances.
const PARTICIPANTS_MAX: usize = 200;
const ENDPOINTS_MAX: usize = 10_000;
const INSTANCES_MAX: usize = 1_000_000;

/// Interface that drivers of the contract set up for their agents.
const INTERFACE_OF_DRIVERS: &str = "v0";

/// Command line of an agent.
#[derive(Clone, Debug)]
pub struct Options {
    /// Link that carries the samples.
    pub link: LinkSpec,
    /// Payload sizes in bytes; never empty.
    pub sizes: Vec<usize>,
    /// Number of round trips before the measurement.
    pub warmup: u64,
    /// Number of round trips measured.
    pub count: u64,
    /// Period of an open loop.
    pub period: Option<Duration>,
    /// Time before the measurement window of a stream.
    pub warm: Duration,
    /// Length of the measurement window of a stream.
    pub window: Duration,
    /// Samples per second; `None`: as many as possible.
    pub rate_hz: Option<f64>,
    /// Number of subscribers to wait for.
    pub peers: usize,
    /// Index of this agent among those of its role.
    pub id: usize,
    /// Whether a pong carries only the sequence number.
    pub short_reply: bool,
    /// Time at which the driver started this process, ns of `CLOCK_MONOTONIC`.
    pub started_at_ns: Option<u64>,
    /// File to which the round-trip times are appended.
    pub out: Option<PathBuf>,
    /// Whether the agent ensures that a daemon runs, and communicates through it.
    pub starts_daemon: bool,
    /// Address of the discovery server of a centralized system.
    pub broker: Option<SocketAddr>,
    /// Whether participants discover each other through that server.
    pub has_server: bool,
    /// Number of participants of a crowd.
    pub participants: usize,
    /// Number of endpoints of each participant.
    pub endpoints: usize,
    /// Number of instances of a crowd.
    pub instances: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            link: LinkSpec { domain: 7, interface: default_interface(), ..LinkSpec::default() },
            sizes: vec![32],
            warmup: 1000,
            count: 10_000,
            period: None,
            warm: Duration::from_millis(500),
            window: Duration::from_secs(2),
            rate_hz: None,
            peers: 1,
            id: 0,
            short_reply: false,
            started_at_ns: None,
            out: None,
            starts_daemon: false,
            broker: None,
            has_server: false,
            participants: 1,
            endpoints: 1,
            instances: 0,
        }
    }
}

/// Returns the drivers' interface, or loopback if it does not exist.
fn default_interface() -> String {
    match interface_ipv4(INTERFACE_OF_DRIVERS) {
        Some(_) => INTERFACE_OF_DRIVERS.into(),
        None => "lo".into(),
    }
}

impl Options {
    /// Reads `key=value` arguments; ignores unknown keys and words without `=`.
    ///
    /// # Errors
    /// The value of a known key is invalid.
    pub fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        for argument in arguments {
            if let Some((key, value)) = argument.split_once('=') {
                options.set(key, value)?;
            }
        }
        options.link.size_max = options.size_max();
        if options.link.security.is_some() && options.link.is_plain() {
            return Err(Error::Usage("security=: plain datagrams have no DDS Security".into()));
        }
        if options.has_server {
            let broker =
                options.broker.ok_or_else(|| Error::Usage("discovery=server needs broker=ADDRESS:PORT".into()))?;
            options.link.discovery_server = Some(broker.to_string());
        }
        Ok(options)
    }

    /// Replaces the transport by the daemon of this name. The idle mode stays.
    pub(super) fn use_daemon(&mut self, name: &str) {
        self.link.transport = Transport::Named(format!("daemon:{name}"));
    }

    /// Returns the largest payload size in bytes.
    #[must_use]
    pub fn size_max(&self) -> usize {
        self.sizes.iter().copied().fold(MARKS_LEN, usize::max)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "size" | "sizes" => self.sizes = sizes(key, value)?,
            "warmup" => self.warmup = number(key, value)?,
            "count" => self.count = number(key, value)?,
            "period_ns" => self.period = positive(number(key, value)?).map(Duration::from_nanos),
            "warm_s" => self.warm = seconds(key, value)?,
            "secs" => self.window = seconds(key, value)?,
            "rate" => self.rate_hz = Some(number(key, value)?).filter(|hz| *hz > 0.0),
            "n" => self.peers = number(key, value)?,
            "id" => self.id = number(key, value)?,
            "reply" => self.short_reply = word(key, value, &[("whole", false), ("ack", true)])?,
            "daemon" => self.starts_daemon = word(key, value, &[("start", true)])?,
            "discovery" => self.has_server = word(key, value, &[("server", true)])?,
            "broker" => self.broker = Some(number(key, value)?),
            "t0" => self.started_at_ns = positive(number(key, value)?),
            "participants" => self.participants = limited(key, value, 1..=PARTICIPANTS_MAX)?,
            "endpoints" => self.endpoints = limited(key, value, 0..=ENDPOINTS_MAX)?,
            "instances" => self.instances = limited(key, value, 0..=INSTANCES_MAX)?,
            "out" => self.out = Some(value.into()),
            "transport" => self.set_transport(value)?,
            _ => set_link(&mut self.link, key, value)?,
        }
        Ok(())
    }

    fn set_transport(&mut self, value: &str) -> Result<()> {
        let (transport, runtime, idle) = match value {
            "default" | "udp" => (Transport::Udp, Runtime::Inline, Idle::Block),
            "spin" => (Transport::Udp, Runtime::Inline, Idle::Spin),
            "shared" => (Transport::Udp, Runtime::Shared, Idle::Block),
            "shared-spin" => (Transport::Udp, Runtime::Shared, Idle::Spin),
            "shm" => (Transport::Shm, Runtime::Inline, Idle::Block),
            "shm-spin" => (Transport::Shm, Runtime::Inline, Idle::Spin),
            "raw-shm" => (Transport::RawShm, Runtime::Inline, Idle::Block),
            "raw-shm-spin" => (Transport::RawShm, Runtime::Inline, Idle::Spin),
            "raw" => (Transport::RawUdp, Runtime::Inline, Idle::Block),
            "raw-spin" => (Transport::RawUdp, Runtime::Inline, Idle::Spin),
            named => self.named_transport(named)?,
        };
        self.link.transport = transport;
        self.link.runtime = runtime;
        self.link.idle = idle;
        Ok(())
    }

    /// Parses a transport given by name, such as `xdp:eth0`. The suffix `-spin` selects spinning,
    /// the prefix `raw=` plain datagrams.
    fn named_transport(&self, value: &str) -> Result<(Transport, Runtime, Idle)> {
        let (name, idle) = value.strip_suffix(SPIN).map_or((value, Idle::Block), |name| (name, Idle::Spin));
        let raw = name.strip_prefix(RAW);
        match raw.unwrap_or(name).parse::<TransportChoice>() {
            Ok(_) => {
                let transport =
                    raw.map_or_else(|| Transport::Named(name.to_owned()), |raw| Transport::RawNamed(raw.to_owned()));
                Ok((transport, Runtime::Inline, idle))
            }
            Err(_) => Err(unknown("transport", value, &format!("{}, or as in xdp:eth0", TRANSPORTS.join(", ")))),
        }
    }
}

/// Prefix of a transport name that selects plain datagrams.
const RAW: &str = "raw=";
/// Suffix of a transport name that selects spinning.
const SPIN: &str = "-spin";

/// Sets a key of the link; an unknown key is ignored.
fn set_link(link: &mut LinkSpec, key: &str, value: &str) -> Result<()> {
    match key {
        "notify" => {
            let kinds = [
                ("auto", Notify::Listener),
                ("listener", Notify::Listener),
                ("waitset", Notify::WaitSet),
                ("poll", Notify::Poll),
            ];
            link.notify = word(key, value, &kinds)?;
        }
        "rel" => link.reliable = word(key, value, &[("reliable", true), ("besteffort", false)])?,
        "hist" => {
            link.history = match value {
                "all" => History::KeepAll,
                depth => History::KeepLast(number(key, depth)?),
            }
        }
        "budget_us" => link.latency_budget = Duration::from_micros(number(key, value)?),
        "loan" => link.loan = value != "0",
        "peer" => {
            let address = value.parse().map_err(|e| Error::Usage(format!("{key}={value}: {e}")))?;
            link.peer = Some(address);
        }
        "rest" => link.pauses = value != "0",
        "security" => link.security = Some(value.to_owned()),
        "iface" => link.interface = value.into(),
        "domain" => link.domain = number(key, value)?,
        "batch" => link.batch = number::<usize>(key, value)?.clamp(1, BATCH_MAX),
        "touch" => link.touch = word(key, value, &[("0", Touch::Marks), ("1", Touch::Lines), ("all", Touch::All)])?,
        "type" => {
            let forms = [("octets", Form::Octets), ("complex", Form::Complex), ("numbered", Form::Numbered)];
            link.form = word(key, value, &forms)?;
        }
        "pass_percent" => link.pass_percent = Some(limited(key, value, 1..=100)? as u8),
        "durability" => {
            let kinds = [
                ("transient-local", Durability::TransientLocal),
                ("transient", Durability::Transient),
                ("persistent", Durability::Persistent),
            ];
            link.durability = word(key, value, &kinds)?;
        }
        "delivery" => {
            link.multicast_readers_min = match value {
                "unicast" => Some(0),
                "multicast" => Some(1),
                _ => return Err(unknown(key, value, "unicast or multicast; RTPS has no broadcast")),
            }
        }
        _ => {}
    }
    Ok(())
}

/// Returns the value that a word stands for.
fn word<T: Copy>(key: &str, value: &str, words: &[(&str, T)]) -> Result<T> {
    let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    let found = words.iter().find(|(word, _)| *word == value);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| unknown(key, value, &known()))
}

fn unknown(key: &str, value: &str, known: &str) -> Error {
    Error::Usage(format!("{key}={value}: expected {known}"))
}

fn number<T: FromStr>(key: &str, value: &str) -> Result<T> {
    value.parse().map_err(|_| Error::Usage(format!("{key}={value}: not a number in range")))
}

fn limited(key: &str, value: &str, limits: std::ops::RangeInclusive<usize>) -> Result<usize> {
    let found = number(key, value)?;
    match limits.contains(&found) {
        true => Ok(found),
        false => Err(Error::Usage(format!("{key}={value}: expected {} to {}", limits.start(), limits.end()))),
    }
}

fn positive(value: u64) -> Option<u64> {
    (value > 0).then_some(value)
}

fn seconds(key: &str, value: &str) -> Result<Duration> {
    Duration::try_from_secs_f64(number(key, value)?).map_err(|e| Error::Usage(format!("{key}={value}: {e}")))
}

fn sizes(key: &str, value: &str) -> Result<Vec<usize>> {
    value.split(',').map(|size| number(key, size).map(|size: usize| size.max(SEQUENCE_LEN))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Result<Options> {
        let arguments: Vec<String> = arguments.split(' ').map(ToString::to_string).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let options = parse("").unwrap();
        assert_eq!(options.sizes, [32]);
        assert_eq!((options.warmup, options.count), (1000, 10_000));
        assert_eq!(options.warm, Duration::from_millis(500));
        assert_eq!(options.window, Duration::from_secs(2));
        assert_eq!((options.peers, options.id, options.link.domain), (1, 0, 7));
        assert_eq!((options.period, options.rate_hz), (None, None));
        assert!(options.link.reliable && !options.short_reply);
        assert_eq!((options.link.touch, options.link.form), (Touch::Marks, Form::Octets));
        assert_eq!((options.link.history, options.link.batch), (History::KeepAll, 1));
        assert_eq!(options.link.notify, Notify::Listener);
        assert_eq!(options.link.transport, Transport::Udp);
        assert_eq!(options.link.idle, Idle::Block);
    }

    #[test]
    fn every_key_is_read() {
        let options = parse(
            "transport=spin rel=besteffort hist=16 notify=poll sizes=16,1024 warmup=5 count=6 period_ns=1000 \
             warm_s=0.25 secs=3 rate=100 n=4 id=2 domain=11 iface=lo touch=all type=complex reply=ack delivery=multicast batch=32 t0=99 out=/x budget_us=250 \
             addr=10.0.0.1 peer=10.0.0.2 rest=1 security=/keys participants=3 endpoints=4 instances=5",
        )
        .unwrap();
        assert_eq!(options.link.idle, Idle::Spin);
        assert!(!options.link.reliable && options.short_reply);
        assert_eq!((options.link.touch, options.link.form), (Touch::All, Form::Complex));
        assert_eq!(options.link.multicast_readers_min, Some(1));
        assert_eq!(options.link.history, History::KeepLast(16));
        assert_eq!(options.link.latency_budget, Duration::from_micros(250));
        assert_eq!(options.link.notify, Notify::Poll);
        assert_eq!((options.sizes.as_slice(), options.link.size_max), (&[16, 1024][..], 1024));
        assert_eq!((options.warmup, options.count), (5, 6));
        assert_eq!(options.period, Some(Duration::from_micros(1)));
        assert_eq!(options.warm, Duration::from_millis(250));
        assert_eq!(options.window, Duration::from_secs(3));
        assert_eq!(options.rate_hz, Some(100.0));
        assert_eq!((options.peers, options.id), (4, 2));
        assert_eq!((options.link.domain, options.link.interface.as_str()), (11, "lo"));
        assert_eq!(options.link.batch, 32);
        assert_eq!((options.link.peer, options.link.pauses), (Some([10, 0, 0, 2].into()), true));
        assert_eq!(options.link.security.as_deref(), Some("/keys"));
        assert_eq!(options.started_at_ns, Some(99));
        assert_eq!((options.participants, options.endpoints, options.instances), (3, 4, 5));
        assert_eq!(options.out, Some(PathBuf::from("/x")));
    }

    #[test]
    fn unknown_keys_are_ignored() {
        let options = parse("colour=red size=64 nonsense").unwrap();
        assert_eq!(options.sizes, [64]);
    }

    #[test]
    fn zero_means_no_rate_and_no_period() {
        let options = parse("rate=0 period_ns=0 t0=0").unwrap();
        assert_eq!((options.rate_hz, options.period, options.started_at_ns), (None, None, None));
    }

    #[test]
    fn payloads_have_room_for_a_sequence_number() {
        assert_eq!(parse("size=1").unwrap().sizes, [4]);
    }

    #[test]
    fn wrong_values_are_refused_with_their_key() {
        for wrong in [
            "size=",
            "size=16,x",
            "count=-1",
            "transport=pigeon",
            "notify=maybe",
            "rel=yes",
            "hist=some",
            "touch=2",
            "reply=no",
            "type=json",
            "delivery=broadcast",
            "secs=-1",
            "secs=nan",
            "domain=1.5",
            "peer=nobody",
            "participants=0",
            "instances=1000001",
            "security=/keys transport=raw",
        ] {
            let error = parse(wrong).unwrap_err().to_string();
            let key = wrong.split('=').next().unwrap();
            assert!(error.starts_with(&format!("{key}=")), "{wrong}: {error}");
        }
    }

    #[test]
    fn every_listed_transport_is_parsed() {
        for transport in TRANSPORTS {
            parse(&format!("transport={transport}")).unwrap();
        }
    }
}
