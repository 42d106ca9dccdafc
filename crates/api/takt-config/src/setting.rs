//! Table of a participant's settings: each with its TOML key, its environment variable, its kind,
//! its default and its effect on the builder.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration as StdDuration;

use takt::real_time::{ProcessSettings, Scheduling, ThreadSettings};
use takt::transport::choice::TransportChoice;
use takt::transport::shm::ShmConfig;
use takt::transport::tcp::{TcpConfig, TlsConfig};
use takt::transport::udp::{ParticipantIndex, UdpConfig};
use takt::{DomainParticipant, DomainParticipantBuilder as Builder, Idle, Limits, Runtime};

use crate::value::{Kind, Value, std_duration};

/// Setting of a participant.
pub struct Setting {
    /// Table in TOML.
    pub table: &'static str,
    /// Key within the table.
    pub key: &'static str,
    /// Environment variable.
    pub variable: &'static str,
    /// Kind of the values.
    pub kind: Kind,
    /// Default value, as text.
    pub default: fn() -> String,
    /// Description for users.
    pub help: &'static str,
    pub(crate) apply: fn(&mut Plan, &Value),
}

impl Setting {
    /// Returns the path `table.key`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}.{}", self.table, self.key)
    }
}

/// Participant in preparation: the effects of settings until it is built.
#[derive(Default)]
pub(crate) struct Plan {
    domain_id: u32,
    changes: Vec<Change>,
    limits: Limits,
    thread: ThreadSettings,
    process: ProcessSettings,
    tls: TlsFiles,
    /// First setting whose value is invalid although it has the form of its kind, with the error.
    first_error: Option<(&'static str, String)>,
}

/// TLS files. Either all or none must be set.
#[derive(Default)]
struct TlsFiles {
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

type Change = Box<dyn FnOnce(Builder) -> Builder>;

impl Plan {
    fn build(&mut self, change: impl FnOnce(Builder) -> Builder + 'static) {
        self.changes.push(Box::new(change));
    }

    /// Sets a property of the builder.
    fn set<T: 'static>(&mut self, set: fn(Builder, T) -> Builder, value: T) {
        self.build(move |builder| set(builder, value));
    }

    fn udp(&mut self, change: impl FnOnce(&mut UdpConfig) + 'static) {
        self.build(|builder| builder.configure_udp(change));
    }

    fn shared_memory(&mut self, change: impl FnOnce(&mut ShmConfig) + 'static) {
        self.build(|builder| builder.configure_shared_memory(change));
    }

    fn tcp(&mut self, change: impl FnOnce(&mut TcpConfig) + 'static) {
        self.build(|builder| builder.configure_tcp(change));
    }

    fn tcp_addresses(&mut self, setting: &'static str, texts: &[String], set: fn(&mut TcpConfig, Vec<SocketAddr>)) {
        match texts.iter().map(|text| text.parse().map_err(|_| text.clone())).collect::<Result<Vec<SocketAddr>, _>>() {
            Ok(addresses) => self.tcp(move |tcp| set(tcp, addresses)),
            Err(text) => {
                let what = format!("found \"{text}\"; expected ADDRESS:PORT, such as 0.0.0.0:7400 or [::]:7400");
                self.first_error.get_or_insert((setting, what));
            }
        }
    }

    /// Analyzes the system file at this point, so that exceeded limits are reported before anything
    /// is built.
    fn system(&mut self, setting: &'static str, path: &str) {
        match crate::system::read_timing_plan(path) {
            Ok(plan) => self.set(Builder::timing_plan, plan),
            Err(error) => _ = self.first_error.get_or_insert((setting, error.to_string())),
        }
    }

    /// Checks and adds hosts, which are names or addresses. Four numbers that are no address are
    /// neither.
    fn hosts(&mut self, setting: &'static str, hosts: &[String], set: fn(Builder, Vec<String>) -> Builder) {
        match hosts.iter().find(|host| !may_be_host(host)) {
            Some(host) => {
                let what =
                    format!("found {host:?}; expected a host: a name or an address, with or without :PORT or #INDEX");
                self.first_error.get_or_insert((setting, what));
            }
            None => self.set(set, hosts.to_vec()),
        }
    }

    fn cpus(&mut self, setting: &'static str, texts: &[String]) {
        match texts.iter().map(|text| text.parse().map_err(|_| text)).collect() {
            Ok(cpus) => self.thread.cpus = cpus,
            Err(text) => {
                self.first_error
                    .get_or_insert((setting, format!("found \"{text}\"; expected the number of a processor")));
            }
        }
    }

    /// Checks transports given by name, so that an error is reported with its position.
    fn transports(&mut self, setting: &'static str, list: &[String], set: fn(Builder, Vec<String>) -> Builder) {
        match TransportChoice::parse_list(list) {
            Ok(_) => self.set(set, list.to_vec()),
            Err(error) => _ = self.first_error.get_or_insert((setting, error.to_string())),
        }
    }

    fn topic_transports(&mut self, rules: &[String]) {
        for rule in rules {
            let parts = rule.split_once('=').map(|(pattern, list)| (pattern.trim().to_owned(), list.trim().to_owned()));
            let wrong = match &parts {
                Some((pattern, list)) if !pattern.is_empty() => {
                    list.parse::<TransportChoice>().err().map(|error| error.to_string())
                }
                _ => Some(format!("found {rule:?}; expected PATTERN=TRANSPORTS, such as Lidar*=xdp:eth0|udp")),
            };
            match (wrong, parts) {
                (Some(what), _) => _ = self.first_error.get_or_insert(("transport.topics", what)),
                (None, Some((pattern, list))) => self.build(move |builder| builder.topic_transports(&pattern, &list)),
                (None, None) => {}
            }
        }
    }

    /// Combines the TLS files. Returns the first error with the setting that it concerns.
    pub(crate) fn check(&mut self) -> Result<(), (&'static str, String)> {
        match std::mem::take(&mut self.tls) {
            TlsFiles { ca: None, certificate: None, key: None } => {}
            TlsFiles { ca: Some(ca), certificate: Some(certificate), key: Some(key) } => {
                self.tcp(move |tcp| tcp.tls = Some(TlsConfig { ca, certificate, key }));
            }
            TlsFiles { ca, certificate, .. } => {
                let all = "TLS needs ca, certificate and key".to_owned();
                let missing = if ca.is_none() {
                    "tcp.ca"
                } else if certificate.is_none() {
                    "tcp.certificate"
                } else {
                    "tcp.key"
                };
                self.first_error.get_or_insert((missing, all));
            }
        }
        self.first_error.take().map_or(Ok(()), Err)
    }

    /// Returns a builder with every setting applied.
    pub(crate) fn builder(self) -> Builder {
        let builder = DomainParticipant::builder(self.domain_id)
            .from_settings()
            .limits(self.limits)
            .thread_settings(self.thread)
            .process_settings(self.process);
        self.changes.into_iter().fold(builder, |builder, change| change(builder))
    }
}

/// Builds rows: `table.key, variable, kind, default, what the value does, help`.
macro_rules! settings {
    ($($table:ident . $key:ident, $variable:literal: $kind:expr, $default:expr, ($plan:ident, $pattern:pat) => $apply:expr, $help:literal;)*) => {
        &[$(Setting {
            table: stringify!($table),
            key: stringify!($key),
            variable: $variable,
            kind: $kind,
            default: || $default.to_string(),
            help: $help,
            apply: |$plan, value| if let $pattern = value { $apply },
        },)*]
    };
}

/// Builds the row of a limit of [`Limits`].
macro_rules! limits {
    ($($field:ident, $variable:literal, $help:literal;)*) => {
        &[$(Setting {
            table: "limits",
            key: stringify!($field),
            variable: $variable,
            kind: COUNT,
            default: || Limits::default().$field.to_string(),
            help: $help,
            apply: |plan, value| if let Value::Int(value) = value { plan.limits.$field = number(*value) },
        },)*]
    };
}

/// Counts and bytes. The maximum of 1 GiB exceeds any useful value.
const COUNT: Kind = Kind::Int { min: 1, max: 1 << 30 };
/// Length of a captured file: up to 1 TiB.
const CAPTURE_BYTES: Kind = Kind::Int { min: 1, max: 1 << 40 };
const RUNTIME: Kind = Kind::Word { words: &["shared", "inline"], suffix: "" };
const IDLE: Kind = Kind::Word { words: &["block", "spin"], suffix: "" };
/// Domain IDs. The well-known ports end at the maximum (RTPS 2.5 §9.6.2).
const DOMAIN: Kind = Kind::Int { min: 0, max: 232 };
const INDEX: Kind = Kind::Int { min: 0, max: 119 };
const PORT: Kind = Kind::Int { min: 1, max: 65_535 };
const OFFSET: Kind = Kind::Int { min: 0, max: 65_535 };
const CONNECTIONS: Kind = Kind::Int { min: 2, max: 65_535 };
const COUNT_OR_NONE: Kind = Kind::Int { min: 0, max: 1 << 30 };
const PRIORITY: Kind = Kind::Int { min: 1, max: 99 };
const TTL: Kind = Kind::Int { min: 0, max: 255 };

/// How a participant joins its domain.
const PARTICIPANT: &[Setting] = settings! {
    participant.domain, "TAKT_DOMAIN": DOMAIN, 0,
        (plan, Value::Int(value)) => plan.domain_id = number(*value),
        "DDS domain";
    participant.name, "TAKT_NAME": Kind::Text, "none",
        (_plan, Value::Text(_)) => (), "the name that tools show";
    participant.qos_profile, "TAKT_QOS_PROFILE": Kind::Text, "the profile that sets is_default_qos, if any",
        (_plan, Value::Text(_)) => (),
        "QoS profile of the participant, as library::profile";
    participant.index, "TAKT_PARTICIPANT_INDEX": INDEX, "the first free one",
        (plan, Value::Int(value)) => plan.set(Builder::participant_index, ParticipantIndex::Fixed(number(*value))),
        "participant index, which selects the well-known unicast ports";
    participant.lease_duration, "TAKT_LEASE_DURATION": Kind::Duration, "20 s",
        (plan, Value::Duration(value)) => plan.set(Builder::lease_duration, within_a_day(*value)),
        "time without announcements after which other participants consider this one lost; 100 ms to a day";
    participant.announcement_period, "TAKT_ANNOUNCEMENT_PERIOD": Kind::Duration, "3 s",
        (plan, Value::Duration(value)) => plan.set(Builder::announcement_period, within_a_day(*value)),
        "period of the participant's announcements; 1 ms to a quarter of the lease duration";
    participant.security, "TAKT_SECURITY": Kind::Text, "none",
        (plan, Value::Text(value)) => plan.set(Builder::security_directory, value.clone()),
        "directory with the certificates and documents of DDS Security; empty for none; see docs/guide/security.md";
    participant.security_clear_discovery, "TAKT_SECURITY_CLEAR_DISCOVERY": Kind::Bool, false,
        (plan, Value::Bool(value)) => plan.set(Builder::accepts_clear_discovery, *value),
        "with RTPS message protection, accept unprotected discovery in cleartext, as CycloneDDS sends it";
    participant.security_log_topic, "TAKT_SECURITY_LOG_TOPIC": Kind::Bool, false,
        (plan, Value::Bool(value)) => plan.set(Builder::security_log_topic, *value),
        "with security, also write the log to the topic DDS:Security:LogTopicV2";
    participant.security_replay_window, "TAKT_SECURITY_REPLAY_WINDOW": Kind::Bool, true,
        (plan, Value::Bool(value)) => plan.set(Builder::replay_window, *value),
        "with security, reject replayed messages and those more than 1,024 messages late";
    participant.runtime, "TAKT_RUNTIME": RUNTIME, "shared",
        (plan, Value::Word(word)) => {
            plan.set(Builder::runtime, if *word == "inline" { Runtime::Inline } else { Runtime::Shared });
        },
        "thread that runs the participant: shared is its own thread, inline the thread that built it";
    participant.idle, "TAKT_IDLE": IDLE, "block",
        (plan, Value::Word(word)) => plan.set(Builder::idle, if *word == "spin" { Idle::Spin } else { Idle::Block }),
        "what the driving thread does while it is idle";
    participant.spin_time, "TAKT_SPIN_TIME": Kind::Duration, "none",
        (plan, Value::Duration(value)) => plan.set(Builder::idle, Idle::SpinThenBlock(within_a_day(*value))),
        "instead of idle: spin for this time after the last event, then block";
};

/// Network interfaces, peers and servers of a participant.
const NETWORK: &[Setting] = settings! {
    network.interfaces, "TAKT_INTERFACES": Kind::Texts, "all except loopback",
        (plan, Value::Texts(names)) => plan.set(Builder::interfaces, names.clone()),
        "network interfaces by name or address";
    network.peers, "TAKT_PEERS": Kind::Texts, "none",
        (plan, Value::Texts(peers)) => plan.hosts("network.peers", peers, Builder::peers),
        "hosts to announce to besides multicast: name or address, optional port; tcp/HOST:PORT for TCP";
    network.discovery_servers, "TAKT_DISCOVERY_SERVERS": Kind::Texts, "none",
        (plan, Value::Texts(servers)) => plan.hosts("network.discovery_servers", servers, Builder::discovery_servers),
        "discovery servers, in the form of peers; all of them are used";
    network.multicast, "TAKT_MULTICAST": Kind::Bool, "true; false with discovery servers",
        (plan, Value::Bool(value)) => plan.set(Builder::multicast, *value),
        "use multicast for announcements and data";
    network.multicast_readers_min, "TAKT_MULTICAST_READERS_MIN": COUNT_OR_NONE, 3,
        (plan, Value::Int(value)) => plan.set(Builder::multicast_readers_min, number(*value)),
        "minimum readers of a writer to send user data to their multicast group, if that is cheaper; 0 for never";
    network.check_sources, "TAKT_CHECK_SOURCES": Kind::Bool, true,
        (plan, Value::Bool(value)) => plan.set(Builder::check_sources, *value),
        "accept messages of a participant only from its own addresses; false behind relays and address translation";
    network.ipv6, "TAKT_IPV6": Kind::Bool, false,
        (plan, Value::Bool(value)) => plan.set(Builder::ipv6, *value), "UDPv6 in addition to UDPv4";
    network.udp, "TAKT_UDP": Kind::Bool, true,
        (plan, Value::Bool(value)) => plan.set(Builder::udp, *value), "UDP; TCP is required without it";
    network.shared_memory, "TAKT_SHARED_MEMORY": Kind::Bool, true,
        (plan, Value::Bool(value)) => plan.set(Builder::shared_memory, *value),
        "shared memory with participants of the same user on this host";
    network.daemon, "TAKT_DAEMON": Kind::Text, "0",
        (plan, Value::Text(value)) => plan.set(Builder::daemon, value.clone()),
        "daemon that owns the network: 1 for the default one, or its name; 0 for none; see docs/guide/daemon.md";
};

/// Transports by name, and the data that each carries.
const TRANSPORT: &[Setting] = settings! {
    transport.user_data, "TAKT_TRANSPORT_USER_DATA": Kind::Texts, "udp",
        (plan, Value::Texts(list)) => plan.transports("transport.user_data", list, Builder::user_data_transports),
        "transports of user data: the first alternative that opens; see docs/guide/transports.md";
    transport.discovery, "TAKT_TRANSPORT_DISCOVERY": Kind::Texts, "as user data if that is UDP or TCP, else udp",
        (plan, Value::Texts(list)) => plan.transports("transport.discovery", list, Builder::discovery_transports),
        "transports of discovery: the first alternative that opens";
    transport.topics, "TAKT_TRANSPORT_TOPICS": Kind::Texts, "those of user data",
        (plan, Value::Texts(rules)) => plan.topic_transports(rules),
        "the only transports of topics whose names match: PATTERN=TRANSPORTS, such as Lidar*=xdp:eth0";
    transport.extra, "TAKT_TRANSPORT_EXTRA": Kind::Texts, "none",
        (plan, Value::Texts(list)) => plan.transports("transport.extra", list, Builder::extra_transports),
        "further transports, for writers and readers that select them in the property takt.transport";
};

/// Capture of the datagrams of all transports.
const CAPTURE: &[Setting] = settings! {
    capture.file, "TAKT_CAPTURE": Kind::Text, "none",
        (plan, Value::Text(file)) => plan.set(Builder::capture, file.clone()),
        "pcapng file of all datagrams, shared memory and AF_XDP included; {pid} is the process ID; see docs/guide/capture.md";
    capture.bytes_max, "TAKT_CAPTURE_BYTES_MAX": CAPTURE_BYTES, 1 << 30,
        (plan, Value::Int(value)) => plan.set(Builder::capture_bytes_max, number(*value)),
        "maximum length of the captured file in bytes; further datagrams are dropped and counted";
};

/// Builds rows for numbers of the UDP configuration: `key, variable, kind, path in UdpConfig,
/// help`.
macro_rules! udp {
    ($($key:ident, $variable:literal: $kind:expr, $($field:ident).+, $help:literal;)*) => {
        &[$(Setting {
            table: "udp",
            key: stringify!($key),
            variable: $variable,
            kind: $kind,
            default: || UdpConfig::new(0).$($field).+.to_string(),
            help: $help,
            apply: |plan, value| if let Value::Int(value) = value {
                let value = number(*value);
                plan.udp(move |udp| udp.$($field).+ = value);
            },
        },)*]
    };
}

/// Use of UDP: the port mapping of RTPS 2.5 §9.6.2, and sockets.
const UDP: &[Setting] = udp! {
    port_base, "TAKT_UDP_PORT_BASE": PORT, ports.port_base, "PB: first port of domain 0";
    domain_gain, "TAKT_UDP_DOMAIN_GAIN": PORT, ports.domain_gain, "DG: ports of one domain";
    participant_gain, "TAKT_UDP_PARTICIPANT_GAIN": PORT, ports.participant_gain, "PG: ports of one participant";
    d0, "TAKT_UDP_D0": OFFSET, ports.d0, "offset of the multicast port of discovery";
    d1, "TAKT_UDP_D1": OFFSET, ports.d1, "offset of the unicast ports of discovery";
    d2, "TAKT_UDP_D2": OFFSET, ports.d2, "offset of the multicast port of user data";
    d3, "TAKT_UDP_D3": OFFSET, ports.d3, "offset of the unicast ports of user data";
    multicast_ttl, "TAKT_UDP_MULTICAST_TTL": TTL, multicast_ttl, "TTL of multicast datagrams";
    receive_buffer_bytes, "TAKT_UDP_RECEIVE_BUFFER_BYTES": COUNT, receive_buffer_bytes,
        "receive buffer to request from the kernel for each socket";
    send_buffer_bytes, "TAKT_UDP_SEND_BUFFER_BYTES": COUNT, send_buffer_bytes,
        "send buffer to request from the kernel for each socket";
    fragment_queue_bytes, "TAKT_UDP_FRAGMENT_QUEUE_BYTES": COUNT_OR_NONE, fragment_queue_bytes,
        "octets of fragments of large samples in the queues of network interfaces; 0 for no limit";
};

/// Builds rows for numbers of the shared-memory configuration: `key, variable, bounds, help`.
macro_rules! shared_memory {
    ($($key:ident, $variable:literal: $bounds:ident, $help:literal;)*) => {
        &[$(Setting {
            table: "shared_memory",
            key: stringify!($key),
            variable: $variable,
            kind: Kind::Int { min: *ShmConfig::$bounds.start() as i64, max: *ShmConfig::$bounds.end() as i64 },
            default: || ShmConfig::default().$key.to_string(),
            help: $help,
            apply: |plan, value| if let Value::Int(value) = value {
                let value = number(*value);
                plan.shared_memory(move |shm| shm.$key = value);
            },
        },)*]
    };
}

/// Use of shared memory, where it is enabled.
const SHARED_MEMORY: &[Setting] = shared_memory! {
    segment_bytes, "TAKT_SHARED_MEMORY_SEGMENT_BYTES": SEGMENT_BYTES,
        "memory for payloads loaned to local participants; payloads that do not fit are copied";
    segment_slots, "TAKT_SHARED_MEMORY_SEGMENT_SLOTS": SEGMENT_SLOTS, "payloads on loan to local participants";
    ring_bytes, "TAKT_SHARED_MEMORY_LANE_BYTES": RING_BYTES, "ring per local participant, rounded up to a power of two";
    connections_max, "TAKT_SHARED_MEMORY_LANES_MAX": CONNECTIONS_MAX, "local participants reached by shared memory";
};

/// Use of TCP. Any of these settings enables TCP.
const TCP: &[Setting] = settings! {
    tcp.listen, "TAKT_TCP_LISTEN": Kind::Texts, "nowhere",
        (plan, Value::Texts(addresses)) => plan.tcp_addresses("tcp.listen", addresses, |tcp, found| tcp.listen = found),
        "where to accept connections, ADDRESS:PORT; 0.0.0.0 and [::] mean all addresses";
    tcp.announce, "TAKT_TCP_ANNOUNCE": Kind::Texts, "the listen addresses",
        (plan, Value::Texts(addresses)) => plan.tcp_addresses("tcp.announce", addresses, |tcp, found| tcp.announce = found),
        "addresses to announce instead, ADDRESS:PORT, such as those of a router that forwards connections";
    tcp.ca, "TAKT_TCP_CA": Kind::Text, "none: no TLS",
        (plan, Value::Text(file)) => plan.tls.ca = Some(file.into()),
        "PEM file of trusted CA certificates; TLS needs this and the next two";
    tcp.certificate, "TAKT_TCP_CERTIFICATE": Kind::Text, "none",
        (plan, Value::Text(file)) => plan.tls.certificate = Some(file.into()), "PEM file of the certificate";
    tcp.key, "TAKT_TCP_KEY": Kind::Text, "none",
        (plan, Value::Text(file)) => plan.tls.key = Some(file.into()), "PEM file of the private key";
    tcp.connections_max, "TAKT_TCP_CONNECTIONS_MAX": CONNECTIONS, TcpConfig::default().connections_max,
        (plan, Value::Int(value)) => {
            let value = number(*value);
            plan.tcp(move |tcp| tcp.connections_max = value);
        }, "maximum number of connections";
    tcp.connections_per_address_max, "TAKT_TCP_CONNECTIONS_PER_ADDRESS_MAX": CONNECTIONS,
        TcpConfig::default().connections_per_address_max,
        (plan, Value::Int(value)) => {
            let value = number(*value);
            plan.tcp(move |tcp| tcp.connections_per_address_max = value);
        }, "maximum number of connections with one address";
    tcp.send_queue_bytes, "TAKT_TCP_SEND_QUEUE_BYTES": COUNT, TcpConfig::default().send_queue_bytes,
        (plan, Value::Int(value)) => {
            let value = number(*value);
            plan.tcp(move |tcp| tcp.send_queue_bytes = value);
        }, "maximum number of bytes in the send queue of a connection";
};

/// Real-time properties of the driving thread and of the process. It is an error if the machine
/// refuses one.
const REAL_TIME: &[Setting] = settings! {
    real_time.fifo, "TAKT_REAL_TIME_FIFO": PRIORITY, "not set",
        (plan, Value::Int(value)) => plan.thread.scheduling = Some(Scheduling::Fifo(number(*value))),
        "SCHED_FIFO of this priority for the driving thread";
    real_time.round_robin, "TAKT_REAL_TIME_ROUND_ROBIN": PRIORITY, "not set",
        (plan, Value::Int(value)) => plan.thread.scheduling = Some(Scheduling::RoundRobin(number(*value))),
        "instead of fifo: SCHED_RR of this priority";
    real_time.cpus, "TAKT_REAL_TIME_CPUS": Kind::Texts, "those of the process",
        (plan, Value::Texts(cpus)) => plan.cpus("real_time.cpus", cpus),
        "processors that the driving thread may run on";
    real_time.timer_slack, "TAKT_REAL_TIME_TIMER_SLACK": Kind::Duration, "50 us",
        (plan, Value::Duration(value)) => plan.thread.timer_slack = Some(within_a_day(*value)),
        "maximum delay of the driving thread's timers";
    real_time.lock_memory, "TAKT_REAL_TIME_LOCK_MEMORY": Kind::Bool, false,
        (plan, Value::Bool(value)) => plan.process.lock_memory = *value,
        "lock all memory of the process in RAM and map it before the first access";
    real_time.cpu_latency, "TAKT_REAL_TIME_CPU_LATENCY": Kind::Duration, "not set",
        (plan, Value::Duration(value)) => plan.process.cpu_latency = Some(within_a_day(*value)),
        "maximum exit latency of CPU sleep states; 0 s disables them";
    real_time.system, "TAKT_REAL_TIME_SYSTEM": Kind::Text, "none",
        (plan, Value::Text(file)) => plan.system("real_time.system", file),
        "system file of the timing analysis: sets priorities of topics, checks bounds; infeasible systems are refused";
};

/// Memory and entity limits of a participant.
const LIMITS: &[Setting] = limits! {
    max_participants, "TAKT_MAX_PARTICIPANTS", "remote participants";
    max_unvalidated_participants, "TAKT_MAX_UNVALIDATED_PARTICIPANTS",
        "remote participants without a validated address";
    max_participants_per_address, "TAKT_MAX_PARTICIPANTS_PER_ADDRESS", "remote participants at one address";
    max_endpoints_per_participant, "TAKT_MAX_ENDPOINTS_PER_PARTICIPANT", "endpoints of one remote participant";
    max_discovery_bytes_per_participant, "TAKT_MAX_DISCOVERY_BYTES_PER_PARTICIPANT",
        "bytes of discovery data of one remote participant";
    max_discovery_bytes, "TAKT_MAX_DISCOVERY_BYTES", "bytes of discovery data of all remote participants";
    default_max_samples, "TAKT_DEFAULT_MAX_SAMPLES", "replaces an unlimited RESOURCE_LIMITS max_samples";
    default_max_instances, "TAKT_DEFAULT_MAX_INSTANCES", "replaces an unlimited RESOURCE_LIMITS max_instances";
    endpoint_memory_bytes, "TAKT_ENDPOINT_MEMORY_BYTES", "payload bytes of one endpoint";
    reassembly_bytes, "TAKT_REASSEMBLY_BYTES", "bytes of incomplete samples of one reader";
    send_window_bytes, "TAKT_SEND_WINDOW_BYTES", "unacknowledged bytes that a reliable writer may have in flight";
    max_refusals, "TAKT_MAX_REFUSALS", "refused matches that are kept with their reason";
};

/// Returns every setting, in the order of the reference.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    let transports = NETWORK.iter().chain(TRANSPORT).chain(UDP).chain(SHARED_MEMORY).chain(TCP).chain(CAPTURE);
    PARTICIPANT.iter().chain(transports).chain(REAL_TIME).chain(LIMITS)
}

/// Reports whether a text may be a host in the forms of `DomainParticipantBuilder::peers`.
fn may_be_host(text: &str) -> bool {
    let host = text.strip_prefix("tcp/").unwrap_or(text);
    let host = host.split('#').next().unwrap_or(host);
    let host = if host.matches(':').count() == 1 { host.split(':').next().unwrap_or(host) } else { host };
    let has_numbers_alone = host.chars().all(|c| c.is_ascii_digit() || c == '.');
    !host.is_empty() && (!has_numbers_alone || host.parse::<std::net::Ipv4Addr>().is_ok())
}

/// Limits a period to a day. Remote participants replace longer leases by a day.
fn within_a_day(duration: takt::Duration) -> StdDuration {
    std_duration(duration).min(StdDuration::from_secs(86_400))
}

/// Converts a number whose kind has the bounds of its type.
fn number<N: TryFrom<i64>>(value: i64) -> N {
    N::try_from(value).unwrap_or_else(|_| unreachable!("the kind has the bounds of the type"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_setting_has_a_unique_key_and_variable() {
        let paths: BTreeSet<String> = all().map(Setting::path).collect();
        let variables: BTreeSet<&str> = all().map(|setting| setting.variable).collect();
        assert_eq!((paths.len(), variables.len()), (all().count(), all().count()));
        assert!(variables.iter().all(|variable| variable.starts_with("TAKT_")));
    }
}
