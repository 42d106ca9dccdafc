//! Builder of domain participants.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use takt_core::{Config, Limits, Participant, StaticParticipant};
use takt_exec::{ProcessSettings, ThreadSettings};
use takt_transport::shm::{ShmConfig, ShmTransport};
use takt_transport::tcp::{TcpConfig, TcpTransport};
use takt_transport::udp::{ParticipantIndex, UdpConfig, UdpTransport};
use takt_transport::{
    Capabilities, Capture, CaptureSummary, Control, MESSAGE_LEN_MIN, Transport, TransportError, Warning,
};
use takt_wire::Locator;
use takt_wire::discovery::{HOST_PROPERTY, PROCESS_PROPERTY};

use super::config::NetworkConfig;
use super::transports::{AdditionalTransports, Assembly, Configs, assemble};
use super::{Defaults, DomainParticipant, Entities, ParticipantInner, TransportReport, environment, guid_prefix};
use crate::builtin::BuiltinReaders;
use crate::log::{self, Level};
use crate::qos::{DomainParticipantQos, EntityName, Property};
use crate::runtime::clock;
use crate::runtime::diagnosis::Diagnosis;
use crate::runtime::driver::{Driver, interfaces};
use crate::runtime::engine::Engine;
use crate::runtime::pi_mutex::PiMutex;
use crate::runtime::poll::Waker;
use crate::runtime::roles::Roles;
use crate::security::log_topic::{LogTopic, Origin};
use crate::security::watch::{Source, Watch};
use crate::security::{SecurityConfig, plugin};
use crate::{Duration, Error, Executor, Idle, Result, Runtime, TimingPlan};

/// Minimum lease duration. Remote Takt participants raise a shorter lease to this value.
const LEASE_MIN: std::time::Duration = std::time::Duration::from_millis(100);
/// Minimum time between two announcements.
const ANNOUNCEMENT_PERIOD_MIN: std::time::Duration = std::time::Duration::from_millis(1);
/// Default of [`DomainParticipantBuilder::capture_bytes_max`].
const CAPTURE_BYTES_MAX: usize = 1 << 30;

type Wrapper = Box<dyn FnOnce(Box<dyn Transport>) -> Box<dyn Transport>>;
type UdpChange = Box<dyn FnOnce(&mut UdpConfig)>;
type TcpChange = Box<dyn FnOnce(&mut TcpConfig)>;
type ShmChange = Box<dyn FnOnce(&mut ShmConfig)>;

/// Configuration of a new participant. Created by [`DomainParticipant::builder`].
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
    /// [`DomainParticipant::enable`].
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
    /// [`DomainParticipant::add_peer`].
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

    /// Opens the sockets, joins the domain and, under [`Runtime::Shared`], starts the thread
    /// `takt-rx`.
    ///
    /// # Errors
    /// [`Error::Transport`](crate::Error::Transport) if the machine refuses sockets, interfaces or
    /// threads, [`Error::RealTime`](crate::Error::RealTime) if it refuses scheduling or memory
    /// settings, [`Error::BadParameter`](crate::Error::BadParameter) for malformed settings and for
    /// a transport with datagrams below [`MESSAGE_LEN_MIN`],
    /// [`Error::PreconditionNotMet`](crate::Error::PreconditionNotMet) for an executor that has
    /// ended.
    pub fn build(mut self) -> Result<DomainParticipant> {
        if self.executor.is_some() && self.runtime == Runtime::Inline {
            return Err(Error::bad_parameter("Runtime::Inline supports no executor"));
        }
        let executor_name = self.executor_name();
        let timing_plan = self.timing_plan.take().map(|plan| plan.for_executor(&executor_name)).transpose()?;
        let mut network = std::mem::take(&mut self.network).or_environment(|name| std::env::var(name).ok())?;
        network.choose_daemon();
        let process_settings = self.process_settings.apply()?;
        let mut udp = UdpConfig { participant_index: self.participant_index, ..network.udp(self.domain_id) };
        for change in std::mem::take(&mut self.udp_changes) {
            change(&mut udp);
        }
        let Assembly { mut transports, roles, report, mut warnings } = self.open_transports(&network, &udp)?;
        for wrap in std::mem::take(&mut self.wrappers) {
            transports = wrap_first(transports, wrap);
        }
        transports.iter().try_for_each(|transport| check_message_len(transport.capabilities()))?;
        if let Some(path) = &network.capture {
            let bytes_max = network.capture_bytes_max.unwrap_or(CAPTURE_BYTES_MAX);
            transports = capture(transports, path, bytes_max as u64, &self.label())?;
        }
        let mut config = self.configure(&network, &transports, &roles)?;
        let (security, security_source) = self.security_config(&network)?.unzip();
        let distributes_log = security.as_ref().is_some_and(|security| security.distributes_log);
        let plugin = security.map(|security| plugin::open(&security, &mut config)).transpose()?;
        let (plugin, renewal) = plugin.unzip();
        let renewal = renewal.map(Arc::new);
        let log_origin = distributes_log.then(|| self.log_origin(&config));
        let has_tcp = config.has_tcp;
        if config.checks_sources {
            // Without source addresses the core accepts all datagrams at a user port.
            for transport in &mut transports {
                transport.control(Control::ReportSources)?;
            }
        }
        warnings.extend(transports.iter().flat_map(|transport| transport.status().warnings.to_vec()));
        let label = self.label();
        warnings.iter().for_each(|warning| log::record(Level::Warn, format!("{label}: {warning}")));
        warnings.extend(environment::warnings(self.is_from_settings));

        let mut core = match plugin {
            None => Participant::new(config, clock::now())?,
            Some(plugin) => Participant::with_security(config, plugin, clock::now())?,
        };
        core.check_types();
        let (moment, wall) = clock::both();
        core.set_wall_clock(moment, wall);
        let guid = core.guid();
        let mut driver = Driver::new(core, transports, roles);
        let (built, named) = (clock::now(), network.named(self.domain_id));
        driver.diagnosis = Diagnosis::new(label.clone(), named, built);
        let log_topic = log_origin.map(|origin| LogTopic::create(&mut driver.core, built, origin));
        driver.diagnosis.log_topic = log_topic.transpose()?;
        let waker = match &self.executor {
            Some(executor) => executor.waker(),
            None => Arc::new(Waker::new()?),
        };
        let engine = Arc::new(Engine::new(self.runtime, self.idle, driver, waker));
        let thread = match (self.runtime, &self.executor) {
            (Runtime::Inline, _) => {
                self.thread_settings.apply()?;
                None
            }
            (Runtime::Shared, Some(executor)) => {
                executor.drive(&engine)?;
                None
            }
            (Runtime::Shared, None) => Some(start_thread(&engine, self.thread_settings)?),
        };
        let watch = match (security_source.flatten(), &renewal) {
            (Some(source), Some(renewal)) => Some(Watch::begin(label, source, Arc::clone(renewal), &engine)?),
            _ => None,
        };
        let inner = ParticipantInner {
            engine,
            guid,
            domain_id: self.domain_id,
            is_enabled: AtomicBool::new(self.is_enabled),
            qos: PiMutex::new(self.qos),
            ipv6: udp.ipv6,
            has_tcp,
            warnings,
            built,
            transport_report: report,
            topics: PiMutex::new(BTreeMap::new()),
            entities: PiMutex::new(Entities::default()),
            defaults: PiMutex::new(Defaults::default()),
            builtin_readers: BuiltinReaders::new(),
            thread: PiMutex::new(thread),
            executor: self.executor,
            executor_name,
            timing_plan,
            renewal,
            _watch: watch,
            _process_settings: process_settings,
        };
        Ok(DomainParticipant { inner: Arc::new(inner) })
    }

    /// Returns the security configuration, from the application, the policies or the environment,
    /// and its source if it comes from files. `None` without security.
    fn security_config(&mut self, network: &NetworkConfig) -> Result<Option<(SecurityConfig, Option<Source>)>> {
        let (config, source) = if let Some(config) = self.security.take() {
            (config, None)
        } else if let Some(config) = SecurityConfig::from_properties(&self.qos.property)? {
            (config, Source::of_properties(&self.qos.property))
        } else if let Some(directory) = &network.security {
            (SecurityConfig::from_enclave(directory)?, Some(Source::Directory(directory.into())))
        } else {
            return Ok(None);
        };
        let config = SecurityConfig {
            accepts_clear_discovery: network.accepts_clear_discovery.unwrap_or(config.accepts_clear_discovery),
            has_replay_window: network.has_replay_window.unwrap_or(config.has_replay_window),
            distributes_log: network.distributes_log.unwrap_or(config.distributes_log),
            ..config
        };
        Ok(Some((config, source)))
    }

    /// Returns the identity of the participant in its security log entries.
    fn log_origin(&self, config: &Config) -> Origin {
        let address = config.locators.default_unicast.iter().find_map(Locator::ip);
        Origin {
            hostname: hostname(),
            hostip: address.map_or_else(String::new, |address| address.to_string()),
            name: self.qos.entity_name.0.clone(),
            domain_id: self.domain_id,
        }
    }

    /// Returns a readable label of the participant.
    fn label(&self) -> String {
        match self.qos.entity_name.0.as_str() {
            "" => format!("participant in domain {}", self.domain_id),
            name => format!("\"{name}\" in domain {}", self.domain_id),
        }
    }

    /// Returns the name of the executor; without one, that of the participant.
    fn executor_name(&self) -> String {
        let name = self.executor.as_ref().map_or(self.qos.entity_name.0.as_str(), Executor::name);
        if name.is_empty() { "takt-rx".to_owned() } else { name.to_owned() }
    }

    /// Returns the protocol configuration for these transports.
    fn configure(
        &mut self,
        network: &NetworkConfig,
        transports: &[Box<dyn Transport>],
        roles: &Roles,
    ) -> Result<Config> {
        let mut config = Config::new(self.domain_id, guid_prefix::generate()?);
        config.secret = guid_prefix::secret()?;
        config.qos = self.qos.clone();
        announce_process(&mut config.qos.property);
        config.limits = self.limits;
        config.is_enabled = self.is_enabled;
        if let Some(lease) = self.lease_duration {
            config.lease_duration = at_least(LEASE_MIN, "lease_duration", lease)?;
        }
        if let Some(period) = self.announcement_period {
            config.announcement_period = at_least(ANNOUNCEMENT_PERIOD_MIN, "announcement_period", period)?;
        }
        config.announcement_period = config.announcement_period.min(config.lease_duration / 4);
        config.interfaces = interfaces(transports);
        config.has_tcp = transports.iter().any(|transport| carries_tcp(transport.as_ref()));
        config.has_udp = !transports.iter().all(|transport| carries_tcp(transport.as_ref()));
        config.udp_message_max = longest_udp_message(transports).unwrap_or(usize::MAX);
        config.locators = roles.locators(transports);
        config.initial_peers = config.locators.metatraffic_multicast.clone();
        config.initial_peers.extend(network.peer_locators(self.domain_id)?);
        config.servers = network.server_locators(self.domain_id)?;
        config.initial_peers.extend(&config.servers);
        config.is_server = self.is_server;
        config.multicast_readers_min = network.multicast_readers_min.unwrap_or(config.multicast_readers_min);
        config.checks_sources = network.check_sources.unwrap_or(config.checks_sources);
        config.static_endpoints = std::mem::take(&mut self.static_endpoints);
        Ok(config)
    }

    /// Opens the transports: those of the caller, those requested by name, or UDP with its
    /// companions.
    fn open_transports(&mut self, network: &NetworkConfig, udp: &UdpConfig) -> Result<Assembly> {
        let mut shm = ShmConfig::default();
        std::mem::take(&mut self.shm_changes).into_iter().for_each(|change| change(&mut shm));
        let has_tcp = !self.tcp_changes.is_empty() || network.has_tcp_peers();
        let mut tcp =
            TcpConfig { interfaces: udp.interfaces.clone(), names: network.tcp_names()?, ..TcpConfig::default() };
        std::mem::take(&mut self.tcp_changes).into_iter().for_each(|change| change(&mut tcp));
        // A discovery server, and a participant whose caller provides transports, choose none by
        // name.
        let is_chosen = network.transports.is_set() && self.transports.is_empty() && !self.is_server;
        let is_plain = self.transports.is_empty() && self.wrappers.is_empty() && network.udp != Some(false);
        let has_daemon = is_chosen && network.has_daemon();
        let additional =
            AdditionalTransports { tcp: has_tcp, shm: network.shared_memory.unwrap_or(is_plain && !has_daemon) };
        if additional.shm || is_chosen {
            shm.check().map_err(Error::bad_parameter)?;
        }
        if is_chosen {
            let configs = Configs { udp, tcp: &tcp, shm: &shm };
            return assemble(&network.transports, &configs, additional);
        }
        let mut transports = std::mem::take(&mut self.transports);
        if transports.is_empty() && network.udp != Some(false) {
            transports.push(Box::new(UdpTransport::open(udp)?));
        }
        if has_tcp {
            transports.push(Box::new(TcpTransport::open(&tcp)?));
        }
        if transports.is_empty() {
            let what = "no UDP and no TCP: add a peer tcp/HOST:PORT or a TCP listen address, or enable UDP".to_owned();
            return Err(Error::bad_parameter(what));
        }
        let mut warnings = Vec::new();
        if network.transports.is_set() {
            warnings.push(no_choice());
        }
        if additional.shm {
            match ShmTransport::open(&shm) {
                Ok(shared_memory) => transports.push(Box::new(shared_memory)),
                Err(error) => warnings.push(no_shared_memory(&error)),
            }
        }
        Ok(Assembly { transports, roles: Roles::all(), report: TransportReport::default(), warnings })
    }
}

/// Converts a duration of the builder to the core's type; an infinite one becomes the longest
/// possible.
fn at_least(minimum: std::time::Duration, name: &str, given: Duration) -> Result<std::time::Duration> {
    let duration = given.as_nanos().map_or(std::time::Duration::MAX, std::time::Duration::from_nanos);
    match duration < minimum {
        true => Err(Error::bad_parameter(format!("{name} is {given}: it must be at least {minimum:?}"))),
        false => Ok(duration),
    }
}

/// Returns the name of the host; empty if it cannot be read.
fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Sets the properties that announce host and process to tools and logs, unless the application has
/// set them.
fn announce_process(property: &mut Property) {
    let values = [(HOST_PROPERTY, hostname()), (PROCESS_PROPERTY, std::process::id().to_string())];
    for (name, value) in values {
        if !value.is_empty() && property.get(name).is_none() {
            property.set(name, value, true);
        }
    }
}

/// Reports whether a transport is TCP.
fn carries_tcp(transport: &dyn Transport) -> bool {
    let somewhere = Locator::udp_v4(Ipv4Addr::LOCALHOST, 1);
    transport.reach(&Locator { kind: Locator::KIND_TCP_V4, ..somewhere }).is_served()
}

/// Returns the largest message in octets that every UDP transport can carry; `None` if there is
/// none.
fn longest_udp_message(transports: &[Box<dyn Transport>]) -> Option<usize> {
    let sample = Locator::udp_v4(Ipv4Addr::LOCALHOST, 1);
    let those = transports.iter().filter(|transport| transport.reach(&sample).is_served());
    those.map(|transport| transport.capabilities().max_message_len).min()
}

/// Refuses a transport whose datagrams are shorter than the smallest fragments.
fn check_message_len(transport: Capabilities) -> Result<()> {
    let Capabilities { name, max_message_len, .. } = transport;
    match max_message_len < MESSAGE_LEN_MIN {
        true => {
            let what =
                format!("transport \"{name}\" sends at most {max_message_len} octets: {MESSAGE_LEN_MIN} are required");
            Err(Error::bad_parameter(what))
        }
        false => Ok(()),
    }
}

fn no_shared_memory(error: &TransportError) -> Warning {
    Warning {
        what: format!("shared memory is unavailable, UDP carries all traffic: {error}"),
        remedy: "use Linux 5.14 or later, permit Unix sockets and memfd_create, and run as a user other than 65534"
            .into(),
    }
}

fn no_choice() -> Warning {
    Warning {
        what: "transports are selected by name, but this participant is a server or has custom transports".into(),
        remedy: "remove the transport settings of this participant".into(),
    }
}

/// Wraps the first transport, which carries most of the traffic.
fn wrap_first(transports: Vec<Box<dyn Transport>>, wrap: Wrapper) -> Vec<Box<dyn Transport>> {
    let mut transports = transports.into_iter();
    transports.next().map(wrap).into_iter().chain(transports).collect()
}

/// Captures the datagrams of all transports in a file.
fn capture(
    transports: Vec<Box<dyn Transport>>,
    path: &str,
    bytes_max: u64,
    label: &str,
) -> Result<Vec<Box<dyn Transport>>> {
    let capture = Arc::new(Capture::open(path, bytes_max, report_capture)?);
    Ok(transports.into_iter().map(|transport| capture.tap(transport, label)).collect())
}

/// Logs the result of a capture.
fn report_capture(summary: &CaptureSummary) {
    let CaptureSummary { path, packets, dropped_by_buffer, dropped_by_file, truncated, failure } = summary;
    let is_whole = dropped_by_buffer + dropped_by_file == 0 && failure.is_none();
    let mut text = format!("capture {}: {packets} datagrams", path.display());
    if !is_whole {
        let drops =
            format!(", {dropped_by_buffer} dropped for lack of buffer space, {dropped_by_file} beyond the file");
        text.push_str(&drops);
    }
    if *truncated > 0 {
        text.push_str(&format!(", {truncated} truncated"));
    }
    if let Some(failure) = failure {
        text.push_str(&format!(": {failure}"));
    }
    log::record(if is_whole { Level::Info } else { Level::Warn }, text);
    // The process may end right after its last participant.
    log::flush();
}

/// Starts `takt-rx`. The thread drives the participant once its settings are applied. If they
/// cannot be applied, the thread has ended when this returns.
fn start_thread(engine: &Arc<Engine>, settings: ThreadSettings) -> Result<std::thread::JoinHandle<()>> {
    let engine = Arc::clone(engine);
    let (applied_sender, applied_receiver) = mpsc::sync_channel(1);
    let run = move || {
        let applied = settings.apply();
        let is_ready = applied.is_ok();
        // A thread with custom settings must do the work itself.
        if settings == ThreadSettings::default() && engine.idle == Idle::Block {
            engine.leadership.open();
        }
        if applied_sender.send(applied).is_ok() && is_ready {
            engine.run();
        }
    };
    let thread = std::thread::Builder::new().name("takt-rx".to_owned()).spawn(run);
    let thread = thread.map_err(|source| TransportError::new("start", "thread takt-rx", source))?;
    match applied_receiver.recv().expect("the thread reports its result before it ends") {
        Ok(()) => Ok(thread),
        Err(refused) => {
            thread.join().expect("the thread only reports the refused setting");
            Err(refused.into())
        }
    }
}
