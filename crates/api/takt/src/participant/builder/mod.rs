//! Builder of domain participants: its settings.

mod build;
mod network;
mod protocol;

use takt_core::{Limits, StaticParticipant};
use takt_exec::{ProcessSettings, ThreadSettings};
use takt_transport::Transport;
use takt_transport::shm::ShmConfig;
use takt_transport::tcp::TcpConfig;
use takt_transport::udp::{ParticipantIndex, UdpConfig};

use super::config::NetworkConfig;
use crate::qos::{DomainParticipantQos, EntityName};
use crate::security::SecurityConfig;
use crate::{Duration, Executor, Idle, Runtime, TimingPlan};

type Wrapper = Box<dyn FnOnce(Box<dyn Transport>) -> Box<dyn Transport>>;
type UdpChange = Box<dyn FnOnce(&mut UdpConfig)>;
type TcpChange = Box<dyn FnOnce(&mut TcpConfig)>;
type ShmChange = Box<dyn FnOnce(&mut ShmConfig)>;

/// Configuration of a new participant. Created by
/// [`DomainParticipant::builder`](crate::DomainParticipant::builder).
///
/// Settings without a call are taken from the environment; otherwise they have their defaults:
///
/// | variable | meaning | default |
/// |---|---|---|
/// | `TAKT_INTERFACES` | network interfaces by name or address, separated by commas | all except loopback |
/// | `TAKT_PEERS` | hosts to announce to in addition to multicast, see [`peers`](Self::peers), separated by commas | none |
/// | `TAKT_DISCOVERY_SERVERS` | see [`discovery_servers`](Self::discovery_servers), separated by commas | none |
/// | `TAKT_MULTICAST` | `0` or `1` | `1`; `0` with discovery servers |
/// | `TAKT_MULTICAST_READERS_MIN` | see [`multicast_readers_min`](Self::multicast_readers_min) | `3` |
/// | `TAKT_CHECK_SOURCES` | `0` or `1`, see [`check_sources`](Self::check_sources) | `1` |
/// | `TAKT_IPV6` | `0` or `1`: UDPv6 in addition to UDPv4 | `0` |
/// | `TAKT_UDP` | `0` or `1`, see [`udp`](Self::udp) | `1` |
/// | `TAKT_SHARED_MEMORY` | `0` or `1`, see [`shared_memory`](Self::shared_memory) | `1` |
/// | `TAKT_DAEMON` | `0`, `1` or a name, see [`daemon`](Self::daemon) | `0` |
/// | `TAKT_CAPTURE` | see [`capture`](Self::capture) | none |
/// | `TAKT_CAPTURE_BYTES_MAX` | see [`capture_bytes_max`](Self::capture_bytes_max) | 1 GiB |
/// | `TAKT_SECURITY` | a directory of files for [`security`](Self::security); empty for none | none |
/// | `TAKT_SECURITY_CLEAR_DISCOVERY` | `0` or `1`: [`SecurityConfig::accepts_clear_discovery`] | `0` |
/// | `TAKT_SECURITY_LOG_TOPIC` | `0` or `1`: [`SecurityConfig::distributes_log`] | `0` |
/// | `TAKT_SECURITY_REPLAY_WINDOW` | `0` or `1`: [`SecurityConfig::has_replay_window`] | `1` |
/// | `TAKT_TRANSPORT_USER_DATA` | see [`user_data_transports`](Self::user_data_transports), separated by commas | UDP |
/// | `TAKT_TRANSPORT_DISCOVERY` | see [`discovery_transports`](Self::discovery_transports), separated by commas | as user data, else UDP |
/// | `TAKT_TRANSPORT_TOPICS` | `PATTERN=TRANSPORTS`, see [`topic_transports`](Self::topic_transports), separated by commas | as user data |
/// | `TAKT_TRANSPORT_EXTRA` | see [`extra_transports`](Self::extra_transports), separated by commas | none |
#[must_use]
pub struct DomainParticipantBuilder {
    domain_id: u32,
    is_enabled: bool,
    qos: DomainParticipantQos,
    network: NetworkConfig,
    participant_index: ParticipantIndex,
    static_endpoints: Option<Vec<StaticParticipant>>,
    is_server: bool,
    udp_changes: Vec<UdpChange>,
    tcp_changes: Vec<TcpChange>,
    shm_changes: Vec<ShmChange>,
    lease_duration: Option<Duration>,
    announcement_period: Option<Duration>,
    limits: Limits,
    runtime: Runtime,
    idle: Idle,
    thread_settings: ThreadSettings,
    executor: Option<Executor>,
    process_settings: ProcessSettings,
    timing_plan: Option<TimingPlan>,
    transports: Vec<Box<dyn Transport>>,
    wrappers: Vec<Wrapper>,
    security: Option<SecurityConfig>,
    is_from_settings: bool,
}

impl DomainParticipantBuilder {
    pub(super) fn new(domain_id: u32) -> Self {
        Self {
            domain_id,
            is_enabled: true,
            qos: DomainParticipantQos::default(),
            network: NetworkConfig::default(),
            participant_index: ParticipantIndex::default(),
            static_endpoints: None,
            is_server: false,
            udp_changes: Vec::new(),
            tcp_changes: Vec::new(),
            shm_changes: Vec::new(),
            lease_duration: None,
            announcement_period: None,
            limits: Limits::default(),
            runtime: Runtime::default(),
            idle: Idle::default(),
            thread_settings: ThreadSettings::default(),
            executor: None,
            process_settings: ProcessSettings::default(),
            timing_plan: None,
            transports: Vec::new(),
            wrappers: Vec::new(),
            security: None,
            is_from_settings: false,
        }
    }

    /// Sets the policies of the participant. Call it before [`name`](Self::name).
    pub fn qos(mut self, qos: DomainParticipantQos) -> Self {
        self.qos = qos;
        self
    }

    /// Sets whether the participant is enabled on creation (the default), or by
    /// [`DomainParticipant::enable`](crate::DomainParticipant::enable).
    pub fn enabled(mut self, is_enabled: bool) -> Self {
        self.is_enabled = is_enabled;
        self
    }

    /// Declares that the caller has read all environment variables listed in
    /// `docs/reference/settings.md`, so that none of them causes a warning.
    #[doc(hidden)]
    pub fn from_settings(mut self) -> Self {
        self.is_from_settings = true;
        self
    }

    /// Sets the name that tools show.
    pub fn name(mut self, name: impl AsRef<str>) -> Self {
        self.qos.entity_name = EntityName(name.as_ref().to_owned());
        self
    }

    /// Sets the network interfaces to use, by name or address. If empty: all except loopback.
    pub fn interfaces<S: Into<String>>(mut self, interfaces: impl IntoIterator<Item = S>) -> Self {
        self.network.interfaces = Some(interfaces.into_iter().map(Into::into).collect());
        self
    }

    /// Sets peers to announce to in addition to multicast. `HOST` addresses the first ten
    /// participants on a host by their well-known ports, `HOST#4` or `HOST#0-29` those with these
    /// participant indices, `HOST:7410` a port, and `tcp/HOST:7410` a port that is connected to by
    /// TCP. A host is an address or a name, which is resolved by [`build`](Self::build). See also
    /// [`DomainParticipant::add_peer`](crate::DomainParticipant::add_peer).
    pub fn peers<S: Into<String>>(mut self, peers: impl IntoIterator<Item = S>) -> Self {
        self.network.peers = Some(peers.into_iter().map(Into::into).collect());
        self
    }

    /// Sets discovery servers, in the forms of [`peers`](Self::peers). All of them are used, so
    /// each is redundant to the others. Multicast is off, unless [`multicast`](Self::multicast)
    /// enables it.
    pub fn discovery_servers<S: Into<String>>(mut self, servers: impl IntoIterator<Item = S>) -> Self {
        self.network.servers = Some(servers.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the endpoints of all participants of the domain statically, in place of endpoint
    /// discovery. The endpoints of this participant are those listed under its name.
    /// `takt_config::read_static_endpoints` reads them from a file. See `docs/guide/discovery.md`.
    pub fn static_endpoints(mut self, participants: Vec<StaticParticipant>) -> Self {
        self.static_endpoints = Some(participants);
        self
    }

    pub(super) fn serve_discovery(mut self) -> Self {
        self.is_server = true;
        self
    }

    /// Sets whether to announce and to receive by multicast.
    pub fn multicast(mut self, multicast: bool) -> Self {
        self.network.multicast = Some(multicast);
        self
    }

    /// Sets the number of readers of a writer, counted by destinations, from which on user data are
    /// sent to the multicast group instead of to each reader: 3 by default, 0 for never. Multicast
    /// is used only if more than half of the participants that listen to the group, this one
    /// included, need the data, and once these have answered probes sent to the group. A network
    /// that does not carry multicast gets unicast. Without [`multicast`](Self::multicast) there is
    /// no group.
    pub fn multicast_readers_min(mut self, readers: usize) -> Self {
        self.network.multicast_readers_min = Some(readers);
        self
    }

    /// Sets whether messages in the name of a participant are accepted only from addresses that it
    /// has validated or announces; true by default. If disabled, relays and address translation may
    /// change the source addresses of datagrams. Then any host that reaches this participant can
    /// impersonate any other participant.
    pub fn check_sources(mut self, check_sources: bool) -> Self {
        self.network.check_sources = Some(check_sources);
        self
    }

    /// Sets whether to use UDPv6 in addition to UDPv4.
    pub fn ipv6(mut self, ipv6: bool) -> Self {
        self.network.ipv6 = Some(ipv6);
        self
    }

    /// Sets whether to exchange data with participants of the same user on this host through shared
    /// memory. Discovery still uses UDP, as do data for other participants: those in other
    /// containers, of other users, or of other implementations. On a machine without support for
    /// such memory there is a [warning](crate::Diagnostics::warnings), and UDP carries everything.
    ///
    /// On by default together with the UDP transport of the builder. Off by default without
    /// [`udp`](Self::udp), with a [`transport`](Self::transport) of the caller, and if a transport
    /// is [wrapped](Self::wrap_transport), since shared memory would bypass these.
    pub fn shared_memory(mut self, shared_memory: bool) -> Self {
        self.network.shared_memory = Some(shared_memory);
        self
    }

    /// Sets the well-known unicast ports to use; the first free ones by default.
    pub fn participant_index(mut self, index: ParticipantIndex) -> Self {
        self.participant_index = index;
        self
    }

    /// Changes the configuration of the UDP transport (ports, groups, buffers) after all other
    /// calls.
    pub fn configure_udp(mut self, change: impl FnOnce(&mut UdpConfig) + 'static) -> Self {
        self.udp_changes.push(Box::new(change));
        self
    }

    /// Sets whether to use UDP (the default). Without it the participant uses TCP only.
    pub fn udp(mut self, udp: bool) -> Self {
        self.network.udp = Some(udp);
        self
    }

    /// Sets the daemon of this host that carries all traffic: `"1"` for the unnamed one, otherwise
    /// its name; `"0"` for none, the default. The participant is reached at the daemon's addresses,
    /// and has no network socket. It has no shared memory with others unless
    /// [`shared_memory`](Self::shared_memory) enables it. It survives the end of the daemon, and
    /// connects to the next one. [`user_data_transports`](Self::user_data_transports) take
    /// precedence: `["daemon", "udp"]` is a daemon, or UDP if none runs. See
    /// `docs/guide/daemon.md`.
    ///
    /// [`build`](Self::build) fails with [`Error::Transport`](crate::Error::Transport) if no such
    /// daemon runs.
    pub fn daemon(mut self, daemon: impl Into<String>) -> Self {
        self.network.daemon = Some(daemon.into());
        self
    }

    /// Enables TCP, and changes its configuration: listening addresses, TLS certificates, limits. A
    /// peer of the form `tcp/HOST:PORT` suffices to connect to others. See `docs/guide/tcp.md`.
    pub fn configure_tcp(mut self, change: impl FnOnce(&mut TcpConfig) + 'static) -> Self {
        self.tcp_changes.push(Box::new(change));
        self
    }

    /// Changes the configuration of shared memory, if it is used: the size of loans, and how far a
    /// local peer may fall behind. [`build`](Self::build) refuses values out of bounds.
    pub fn configure_shared_memory(mut self, change: impl FnOnce(&mut ShmConfig) + 'static) -> Self {
        self.shm_changes.push(Box::new(change));
        self
    }

    /// Sets the lease duration, after which others remove this participant when they receive
    /// nothing from it: 20 s by default, at least 100 ms. With [`Duration::INFINITE`] they keep it
    /// for as long as they run; remote Takt participants for one day.
    pub fn lease_duration(mut self, lease: impl Into<Duration>) -> Self {
        self.lease_duration = Some(lease.into());
        self
    }

    /// Sets the time between two announcements of the participant: 3 s by default, at least 1 ms,
    /// at most a quarter of the lease.
    pub fn announcement_period(mut self, period: impl Into<Duration>) -> Self {
        self.announcement_period = Some(period.into());
        self
    }

    /// Sets limits on the state kept for remote entities, and the sizes of histories without
    /// `RESOURCE_LIMITS`.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the runtime, which determines the thread that drives the participant.
    pub fn runtime(mut self, runtime: Runtime) -> Self {
        self.runtime = runtime;
        self
    }

    /// Sets the behavior of the driving thread while it is idle: sleep, spin, or spin for a while
    /// and then sleep.
    pub fn idle(mut self, idle: Idle) -> Self {
        self.idle = idle;
        self
    }

    /// Sets scheduling and processor affinity of the driving thread: `takt-rx`, or under
    /// [`Runtime::Inline`] the thread that builds the participant.
    pub fn thread_settings(mut self, settings: ThreadSettings) -> Self {
        self.thread_settings = settings;
        self
    }

    /// Sets the executor that drives the participant, together with other participants and jobs of
    /// the application, instead of a separate thread. Requires [`Runtime::Shared`]. The executor
    /// determines the scheduling of the thread.
    pub fn executor(mut self, executor: &Executor) -> Self {
        self.executor = Some(executor.clone());
        self
    }

    /// Protects the participant by DDS Security. Without this call the configuration comes from the
    /// properties `dds.sec.*` of its policies, otherwise from the directory that `TAKT_SECURITY`
    /// names. See `docs/guide/security.md`.
    ///
    /// [`build`](Self::build) fails with
    /// [`Error::NotAllowedBySecurity`](crate::Error::NotAllowedBySecurity) if the documents do not
    /// allow the participant, and with [`Error::Unsupported`](crate::Error::Unsupported) if the
    /// program was built without the feature `security`.
    pub fn security(mut self, config: SecurityConfig) -> Self {
        self.security = Some(config);
        self
    }

    /// As [`security`](Self::security), with the files that [`SecurityConfig::from_enclave`] finds
    /// in this directory when the participant is built. An empty path disables the security that
    /// the environment configures, too.
    pub fn security_directory(mut self, directory: impl Into<String>) -> Self {
        self.network.security = Some(directory.into());
        self
    }

    /// Sets [`SecurityConfig::accepts_clear_discovery`], regardless of the source of the other
    /// security settings.
    pub fn accepts_clear_discovery(mut self, accepts: bool) -> Self {
        self.network.accepts_clear_discovery = Some(accepts);
        self
    }

    /// Sets [`SecurityConfig::has_replay_window`], regardless of the source of the other security
    /// settings.
    pub fn replay_window(mut self, is_there: bool) -> Self {
        self.network.has_replay_window = Some(is_there);
        self
    }

    /// Sets [`SecurityConfig::distributes_log`], regardless of the source of the other security
    /// settings.
    pub fn security_log_topic(mut self, distributes: bool) -> Self {
        self.network.distributes_log = Some(distributes);
        self
    }

    /// Sets process-wide settings that are applied when the participant is built. Processor sleep
    /// states are limited until the participant is dropped; memory stays locked.
    pub fn process_settings(mut self, settings: ProcessSettings) -> Self {
        self.process_settings = settings;
        self
    }

    /// Sets the results of the timing analysis of the system, as `takt_config::read_timing_plan`
    /// reads them from a system file. Endpoints of an analyzed topic get the priority of its flow
    /// on the executor of this participant, unless their `rt.priority` overrides it. Readers
    /// compare each sample with the computed bound. The executor is that of
    /// [`executor`](Self::executor); a participant without one counts as its own executor under its
    /// [`name`](Self::name). [`build`](Self::build) refuses a plan without that executor. An
    /// endpoint whose topic is analyzed only on other executors is refused, unless it has an
    /// `rt.priority`.
    pub fn timing_plan(mut self, plan: TimingPlan) -> Self {
        self.timing_plan = Some(plan);
        self
    }

    /// Uses this transport instead of UDP. May be called several times: a destination is served by
    /// the first transport that supports it.
    pub fn transport(mut self, transport: Box<dyn Transport>) -> Self {
        self.transports.push(transport);
        self
    }

    /// Sets the transports of user data by name, in order of preference. The first that opens is
    /// used. The [report](crate::Diagnostics::transport_report) and the
    /// [warnings](crate::Diagnostics::warnings) contain the reasons for which others did not open.
    /// For the forms see [`choice`](crate::transport::choice). Transports of other crates are
    /// available once they are registered, for instance by `takt_xdp::register()`. Shared memory
    /// with participants of this host is used in addition, unless it is [off](Self::shared_memory),
    /// and so is TCP if it is configured. See `docs/guide/transports.md`.
    pub fn user_data_transports<S: Into<String>>(mut self, transports: impl IntoIterator<Item = S>) -> Self {
        self.network.transports.user_data = Some(transports.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the transports of discovery, likewise: UDP or TCP. The default is the transport of user
    /// data, if it is one of these, otherwise UDP.
    pub fn discovery_transports<S: Into<String>>(mut self, transports: impl IntoIterator<Item = S>) -> Self {
        self.network.transports.discovery = Some(transports.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the transports of topics whose names match a pattern, in which `*` stands for any
    /// characters and `?` for one. These topics use no other transports, for instance
    /// `"shm+xdp:eth0|udp"`. May be called several times: the first matching pattern applies. The
    /// property `takt.transport` of an endpoint takes precedence.
    pub fn topic_transports(mut self, pattern: &str, transports: &str) -> Self {
        let rule = format!("{pattern}={transports}");
        self.network.transports.topics.get_or_insert_default().push(rule);
        self
    }

    /// Sets transports that are additionally opened, if possible, for endpoints that request them
    /// by the property `takt.transport`.
    pub fn extra_transports<S: Into<String>>(mut self, transports: impl IntoIterator<Item = S>) -> Self {
        self.network.transports.extra = Some(transports.into_iter().map(Into::into).collect());
        self
    }

    /// Sets a pcapng file that captures the datagrams of all transports of the participant, shared
    /// memory and AF_XDP included. `{pid}` in the path is replaced by the process ID; participants
    /// of a process share a file. Capturing copies each datagram and takes a lock for that, and
    /// loans no samples within the process. Datagrams beyond the bounds of memory and file are
    /// dropped; the log and the file have their number. See `docs/guide/capture.md`.
    ///
    /// [`build`](Self::build) fails with [`Error::Transport`](crate::Error::Transport) if the file
    /// cannot be written.
    pub fn capture(mut self, path: impl Into<String>) -> Self {
        self.network.capture = Some(path.into());
        self
    }

    /// Sets the maximum length of the captured file in octets: 1 GiB by default.
    pub fn capture_bytes_max(mut self, bytes: usize) -> Self {
        self.network.capture_bytes_max = Some(bytes);
        self
    }

    /// Wraps the transport that is opened first (the caller's first, otherwise UDP), for instance
    /// in a tap or a fault injector. Shared memory would bypass the wrapper, so it is off unless
    /// [`shared_memory`](Self::shared_memory) enables it.
    pub fn wrap_transport(mut self, wrap: impl FnOnce(Box<dyn Transport>) -> Box<dyn Transport> + 'static) -> Self {
        self.wrappers.push(Box::new(wrap));
        self
    }
}
