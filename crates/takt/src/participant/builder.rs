//! Putting a participant together.

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
use takt_transport::{Transport, TransportError, Warning};
use takt_wire::Locator;
use takt_wire::discovery::{HOST_PROPERTY, PROCESS_PROPERTY};

use super::config::NetworkConfig;
use super::transports::{Assembly, Beside, Configs, assemble};
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

/// The shortest lease, which others of Takt take a shorter one for.
const LEASE_MIN: std::time::Duration = std::time::Duration::from_millis(100);
/// The shortest time between two announcements.
const ANNOUNCEMENT_PERIOD_MIN: std::time::Duration = std::time::Duration::from_millis(1);

type Wrapper = Box<dyn FnOnce(Box<dyn Transport>) -> Box<dyn Transport>>;
type UdpChange = Box<dyn FnOnce(&mut UdpConfig)>;
type TcpChange = Box<dyn FnOnce(&mut TcpConfig)>;
type ShmChange = Box<dyn FnOnce(&mut ShmConfig)>;

/// What a participant shall be. Made by [`DomainParticipant::builder`].
///
/// What is not said here is taken from the environment, else it is the default:
///
/// | variable | meaning | default |
/// |---|---|---|
/// | `TAKT_INTERFACES` | network interfaces by name or address, separated by commas | all but loopback |
/// | `TAKT_PEERS` | hosts to announce to besides multicast, see [`peers`](Self::peers), separated by commas | none |
/// | `TAKT_DISCOVERY_SERVERS` | see [`discovery_servers`](Self::discovery_servers), separated by commas | none |
/// | `TAKT_MULTICAST` | `0` or `1` | `1`; `0` with discovery servers |
/// | `TAKT_MULTICAST_READERS_MIN` | see [`multicast_readers_min`](Self::multicast_readers_min) | `3` |
/// | `TAKT_CHECK_SOURCES` | `0` or `1`, see [`check_sources`](Self::check_sources) | `1` |
/// | `TAKT_IPV6` | `0` or `1`: UDPv6 beside UDPv4 | `0` |
/// | `TAKT_UDP` | `0` or `1`, see [`udp`](Self::udp) | `1` |
/// | `TAKT_SHARED_MEMORY` | `0` or `1`, see [`shared_memory`](Self::shared_memory) | `1` |
/// | `TAKT_DAEMON` | `0`, `1` or a name, see [`daemon`](Self::daemon) | `0` |
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

    /// The participant's policies. Set the name after it.
    pub fn qos(mut self, qos: DomainParticipantQos) -> Self {
        self.qos = qos;
        self
    }

    /// Whether it takes part at once, as it does by default, or waits for [`DomainParticipant::enable`].
    pub fn enabled(mut self, is_enabled: bool) -> Self {
        self.is_enabled = is_enabled;
        self
    }

    /// The caller has read all variables of the environment that `docs/settings.md` lists: none of them is a warning.
    #[doc(hidden)]
    pub fn from_settings(mut self) -> Self {
        self.is_from_settings = true;
        self
    }

    /// The name that tools show.
    pub fn name(mut self, name: impl AsRef<str>) -> Self {
        self.qos.entity_name = EntityName(name.as_ref().to_owned());
        self
    }

    /// The network interfaces to use, by name or address. None: all but loopback.
    pub fn interfaces<S: Into<String>>(mut self, interfaces: impl IntoIterator<Item = S>) -> Self {
        self.network.interfaces = Some(interfaces.into_iter().map(Into::into).collect());
        self
    }

    /// Whom to announce to besides multicast: `HOST` for the first ten participants there by their well-known ports,
    /// `HOST#4` or `HOST#0-29` for those with these participant indices, `HOST:7410` for a port, `tcp/HOST:7410` for one that
    /// is connected to by TCP. A host is an address or a name, which is resolved by [`build`](Self::build). See
    /// [`DomainParticipant::add_peer`] too.
    pub fn peers<S: Into<String>>(mut self, peers: impl IntoIterator<Item = S>) -> Self {
        self.network.peers = Some(peers.into_iter().map(Into::into).collect());
        self
    }

    /// Servers that introduce this participant to others, in the forms of [`peers`](Self::peers). All of them are used, so
    /// each can do without the others. Multicast is off, unless [`multicast`](Self::multicast) says otherwise.
    pub fn discovery_servers<S: Into<String>>(mut self, servers: impl IntoIterator<Item = S>) -> Self {
        self.network.servers = Some(servers.into_iter().map(Into::into).collect());
        self
    }

    /// The endpoints of all participants of the domain, in place of endpoint discovery; this participant's own are those of
    /// its name. `takt_config::read_static_endpoints` reads them from a file. See `docs/discovery.md`.
    pub fn static_endpoints(mut self, participants: Vec<StaticParticipant>) -> Self {
        self.static_endpoints = Some(participants);
        self
    }

    pub(super) fn serve_discovery(mut self) -> Self {
        self.is_server = true;
        self
    }

    /// Whether to announce and to receive by multicast.
    pub fn multicast(mut self, multicast: bool) -> Self {
        self.network.multicast = Some(multicast);
        self
    }

    /// From how many readers of a writer on, counted by the places that data go to, user data go to their multicast group
    /// instead of to each: 3 by default, 0 for never. They do only where more than half of the participants that listen to
    /// the group, this one included, are to have them, and once these have answered questions that were sent there; a
    /// network that does not carry multicast gets unicast. Without [`multicast`](Self::multicast) there is no group.
    pub fn multicast_readers_min(mut self, readers: usize) -> Self {
        self.network.multicast_readers_min = Some(readers);
        self
    }

    /// Whether what is said in the name of a participant counts only from addresses that it has proven or announces; true by
    /// default. Without it relays and address translation may change the source addresses of datagrams, and whoever reaches this
    /// participant can speak for any other one.
    pub fn check_sources(mut self, check_sources: bool) -> Self {
        self.network.check_sources = Some(check_sources);
        self
    }

    /// Whether to use UDPv6 beside UDPv4.
    pub fn ipv6(mut self, ipv6: bool) -> Self {
        self.network.ipv6 = Some(ipv6);
        self
    }

    /// Whether to exchange data with participants of the same user on this host through shared memory. Discovery goes by UDP as
    /// ever, and so does what is for others, or for those that are out of reach: other containers, other users, other
    /// implementations. Where the machine has no such memory it is a [warning](DomainParticipant::warnings), and UDP carries all.
    ///
    /// On by default beside the UDP that the builder opens. Off by default, since it would go past what was asked for, without
    /// [`udp`](Self::udp), with a [`transport`](Self::transport) of the caller's, and where a transport is
    /// [wrapped](Self::wrap_transport).
    pub fn shared_memory(mut self, shared_memory: bool) -> Self {
        self.network.shared_memory = Some(shared_memory);
        self
    }

    /// Which well-known unicast ports to take; the first free ones by default.
    pub fn participant_index(mut self, index: ParticipantIndex) -> Self {
        self.participant_index = index;
        self
    }

    /// Changes what the UDP transport is opened with, after all other calls had their say: ports, groups, buffers.
    pub fn configure_udp(mut self, change: impl FnOnce(&mut UdpConfig) + 'static) -> Self {
        self.udp_changes.push(Box::new(change));
        self
    }

    /// Whether to use UDP, as is the default. Without it the participant has TCP alone.
    pub fn udp(mut self, udp: bool) -> Self {
        self.network.udp = Some(udp);
        self
    }

    /// Has the daemon of this host carry all: `"1"` for the one without a name of its own, else its name; `"0"` for none, as is
    /// the default. The participant is reached at the daemon's addresses, has no socket of the network and no shared memory
    /// with others unless [`shared_memory`](Self::shared_memory) is asked for. It lives on when the daemon dies, and finds the next
    /// one. [`user_data_transports`](Self::user_data_transports) go before it: `["daemon", "udp"]` is a daemon, or UDP where none
    /// runs. See `docs/daemon.md`.
    ///
    /// [`build`](Self::build) fails with [`Error::Transport`](crate::Error::Transport) if no such daemon runs.
    pub fn daemon(mut self, daemon: impl Into<String>) -> Self {
        self.network.daemon = Some(daemon.into());
        self
    }

    /// Uses TCP too, and changes what it is opened with: where to listen, the certificates of TLS, bounds. A peer of the form
    /// `tcp/HOST:PORT` is enough to connect to others. See `docs/tcp.md`.
    pub fn configure_tcp(mut self, change: impl FnOnce(&mut TcpConfig) + 'static) -> Self {
        self.tcp_changes.push(Box::new(change));
        self
    }

    /// Changes what shared memory is opened with, if it is: how much is lent at once, and how far a neighbour may be behind.
    /// [`build`](Self::build) refuses what is out of its bounds.
    pub fn configure_shared_memory(mut self, change: impl FnOnce(&mut ShmConfig) + 'static) -> Self {
        self.shm_changes.push(Box::new(change));
        self
    }

    /// How long others believe in this participant without hearing of it: 20 s by default, at least 100 ms. With
    /// [`Duration::INFINITE`] they do for as long as they run; those of Takt for one day.
    pub fn lease_duration(mut self, lease: impl Into<Duration>) -> Self {
        self.lease_duration = Some(lease.into());
        self
    }

    /// The time between two announcements of the participant: 3 s by default, at least 1 ms. A quarter of the lease, if that is
    /// shorter.
    pub fn announcement_period(mut self, period: impl Into<Duration>) -> Self {
        self.announcement_period = Some(period.into());
        self
    }

    /// Bounds on what is kept for others, and the sizes of histories without `RESOURCE_LIMITS`.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Who drives the participant.
    pub fn runtime(mut self, runtime: Runtime) -> Self {
        self.runtime = runtime;
        self
    }

    /// What the driving thread does while there is nothing to do: sleep, spin, or spin for a while and then sleep.
    pub fn idle(mut self, idle: Idle) -> Self {
        self.idle = idle;
        self
    }

    /// How the driving thread is scheduled, and where: `takt-rx`, or under [`Runtime::Inline`] the one that builds the participant.
    pub fn thread_settings(mut self, settings: ThreadSettings) -> Self {
        self.thread_settings = settings;
        self
    }

    /// Has this executor drive the participant, beside others and jobs of the application, instead of a thread of its own: under
    /// [`Runtime::Shared`]. How the thread is scheduled is up to the executor.
    pub fn executor(mut self, executor: &Executor) -> Self {
        self.executor = Some(executor.clone());
        self
    }

    /// Protects the participant by DDS Security. Without this call the properties `dds.sec.*` of its policies say how, else the
    /// directory that `TAKT_SECURITY` names. See `docs/security.md`.
    ///
    /// [`build`](Self::build) fails with [`Error::NotAllowedBySecurity`](crate::Error::NotAllowedBySecurity) if the documents do not
    /// allow the participant, and with [`Error::Unsupported`](crate::Error::Unsupported) if the program was built without the feature
    /// `security`.
    pub fn security(mut self, config: SecurityConfig) -> Self {
        self.security = Some(config);
        self
    }

    /// As [`security`](Self::security), with what [`SecurityConfig::from_enclave`] finds in this directory when the participant is
    /// built; empty for no security by the environment either.
    pub fn security_directory(mut self, directory: impl Into<String>) -> Self {
        self.network.security = Some(directory.into());
        self
    }

    /// Sets [`SecurityConfig::accepts_clear_discovery`], wherever the rest of the security comes from.
    pub fn accepts_clear_discovery(mut self, accepts: bool) -> Self {
        self.network.accepts_clear_discovery = Some(accepts);
        self
    }

    /// Sets [`SecurityConfig::has_replay_window`], wherever the rest of the security comes from.
    pub fn replay_window(mut self, is_there: bool) -> Self {
        self.network.has_replay_window = Some(is_there);
        self
    }

    /// Sets [`SecurityConfig::distributes_log`], wherever the rest of the security comes from.
    pub fn security_log_topic(mut self, distributes: bool) -> Self {
        self.network.distributes_log = Some(distributes);
        self
    }

    /// What the process is given when the participant is built. Sleep states are short until the participant is dropped;
    /// memory stays locked.
    pub fn process_settings(mut self, settings: ProcessSettings) -> Self {
        self.process_settings = settings;
        self
    }

    /// What the analysis of the whole system says of topics, as `takt_config::read_timing_plan` reads it from a system file. Endpoints of a
    /// topic in it have the priority of its flow on the executor of this participant, unless their `rt.priority` says otherwise, and
    /// readers compare each sample with the computed bound. The executor is that of [`executor`](Self::executor); a participant without
    /// one is its own, by its [`name`](Self::name). [`build`](Self::build) refuses a plan without that executor; an endpoint whose
    /// topic is analysed on others alone is refused, unless it has an `rt.priority`.
    pub fn timing_plan(mut self, plan: TimingPlan) -> Self {
        self.timing_plan = Some(plan);
        self
    }

    /// Uses this transport instead of UDP. Several times: all of them; a destination is served by the first that can.
    pub fn transport(mut self, transport: Box<dyn Transport>) -> Self {
        self.transports.push(transport);
        self
    }

    /// What carries user data, by name, in the order of preference: the first that opens is used, and why others did not is in
    /// the [report](DomainParticipant::transport_report) and the [warnings](DomainParticipant::warnings). Forms:
    /// [`choice`](crate::transport::choice). Transports of other crates are there once they are registered, as by
    /// `takt_xdp::register()`. Shared memory with participants of this host stays beside it, unless it is
    /// [off](Self::shared_memory), and so does TCP that is configured. See `docs/transports.md`.
    pub fn user_data_transports<S: Into<String>>(mut self, transports: impl IntoIterator<Item = S>) -> Self {
        self.network.transports.user_data = Some(transports.into_iter().map(Into::into).collect());
        self
    }

    /// What carries discovery, likewise: UDP or TCP. By default that is what carries user data, if it is one of these, else UDP.
    pub fn discovery_transports<S: Into<String>>(mut self, transports: impl IntoIterator<Item = S>) -> Self {
        self.network.transports.discovery = Some(transports.into_iter().map(Into::into).collect());
        self
    }

    /// What carries the data of topics whose names fit a pattern, in which `*` stands for any characters and `?` for one: these
    /// transports and no others, `"shm+xdp:eth0|udp"`. Several times: the first pattern that fits holds. The property
    /// `takt.transport` of an endpoint comes before it.
    pub fn topic_transports(mut self, pattern: &str, transports: &str) -> Self {
        let rule = format!("{pattern}={transports}");
        self.network.transports.topics.get_or_insert_default().push(rule);
        self
    }

    /// What is opened besides, if it can be, for endpoints whose property `takt.transport` asks for it.
    pub fn extra_transports<S: Into<String>>(mut self, transports: impl IntoIterator<Item = S>) -> Self {
        self.network.transports.extra = Some(transports.into_iter().map(Into::into).collect());
        self
    }

    /// Puts something around the transport that is opened first, such as a tap or a fault injector: the caller's first, else UDP.
    /// What goes through shared memory does not come by there, so there is none unless
    /// [`shared_memory`](Self::shared_memory) is asked for.
    pub fn wrap_transport(mut self, wrap: impl FnOnce(Box<dyn Transport>) -> Box<dyn Transport> + 'static) -> Self {
        self.wrappers.push(Box::new(wrap));
        self
    }

    /// Opens the sockets, joins the domain and, under [`Runtime::Shared`], starts the thread `takt-rx`.
    ///
    /// # Errors
    /// [`Error::Transport`](crate::Error::Transport) for sockets, interfaces and threads that the machine refuses,
    /// [`Error::RealTime`](crate::Error::RealTime) for scheduling and memory that it refuses,
    /// [`Error::BadParameter`](crate::Error::BadParameter) for what cannot be understood,
    /// [`Error::PreconditionNotMet`](crate::Error::PreconditionNotMet) for an executor that has ended.
    pub fn build(mut self) -> Result<DomainParticipant> {
        if self.executor.is_some() && self.runtime == Runtime::Inline {
            return Err(Error::BadParameter { what: "under Runtime::Inline there is no executor".into() });
        }
        let executor_name = self.executor_name();
        let timing_plan = self.timing_plan.take().map(|plan| plan.on(&executor_name)).transpose()?;
        let mut network = std::mem::take(&mut self.network).or_environment(|name| std::env::var(name).ok())?;
        network.choose_daemon();
        let held = self.process_settings.apply()?;
        let mut udp = UdpConfig { participant_index: self.participant_index, ..network.udp(self.domain_id) };
        for change in std::mem::take(&mut self.udp_changes) {
            change(&mut udp);
        }
        let Assembly { mut transports, roles, report, mut warnings } = self.open_transports(&network, &udp)?;
        for wrap in std::mem::take(&mut self.wrappers) {
            transports = wrap_first(transports, wrap);
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
            // Without them the core believes whatever arrives at a user port.
            transports.iter_mut().for_each(|transport| transport.name_sources());
        }
        warnings.extend(transports.iter().flat_map(|transport| transport.warnings().to_vec()));
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
            _held: held,
        };
        Ok(DomainParticipant { inner: Arc::new(inner) })
    }

    /// How the participant is to be protected, if it is: by the application, by its policies, or by the environment; and the files
    /// that say so, if they do.
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

    /// The participant as its security log entries name it.
    fn log_origin(&self, config: &Config) -> Origin {
        let address = config.locators.default_unicast.iter().find_map(Locator::ip);
        Origin {
            hostname: hostname(),
            hostip: address.map_or_else(String::new, |address| address.to_string()),
            name: self.qos.entity_name.0.clone(),
            domain_id: self.domain_id,
        }
    }

    /// The participant for people.
    fn label(&self) -> String {
        match self.qos.entity_name.0.as_str() {
            "" => format!("participant in domain {}", self.domain_id),
            name => format!("\"{name}\" in domain {}", self.domain_id),
        }
    }

    /// What the executor of the participant is called: itself, where it has none.
    fn executor_name(&self) -> String {
        let name = self.executor.as_ref().map_or(self.qos.entity_name.0.as_str(), Executor::name);
        if name.is_empty() { "takt-rx".to_owned() } else { name.to_owned() }
    }

    /// What the protocol is to be, over these transports.
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

    /// What was brought, what was asked for by name, or UDP and what goes with it.
    fn open_transports(&mut self, network: &NetworkConfig, udp: &UdpConfig) -> Result<Assembly> {
        let mut shm = ShmConfig::default();
        std::mem::take(&mut self.shm_changes).into_iter().for_each(|change| change(&mut shm));
        let has_tcp = !self.tcp_changes.is_empty() || network.has_tcp_peers();
        let mut tcp =
            TcpConfig { interfaces: udp.interfaces.clone(), names: network.tcp_names()?, ..TcpConfig::default() };
        std::mem::take(&mut self.tcp_changes).into_iter().for_each(|change| change(&mut tcp));
        // Who is to introduce others, and who has transports already, chooses none.
        let is_chosen = network.transports.is_set() && self.transports.is_empty() && !self.is_server;
        let is_plain = self.transports.is_empty() && self.wrappers.is_empty() && network.udp != Some(false);
        let has_daemon = is_chosen && network.has_daemon();
        let beside = Beside { tcp: has_tcp, shm: network.shared_memory.unwrap_or(is_plain && !has_daemon) };
        if beside.shm || is_chosen {
            shm.check().map_err(|what| Error::BadParameter { what })?;
        }
        if is_chosen {
            let configs = Configs { udp, tcp: &tcp, shm: &shm };
            return assemble(&network.transports, &configs, beside);
        }
        let mut transports = std::mem::take(&mut self.transports);
        if transports.is_empty() && network.udp != Some(false) {
            transports.push(Box::new(UdpTransport::open(udp)?));
        }
        if has_tcp {
            transports.push(Box::new(TcpTransport::open(&tcp)?));
        }
        if transports.is_empty() {
            let what = "without UDP there must be TCP: a peer of the form tcp/HOST:PORT, or where to listen".to_owned();
            return Err(Error::BadParameter { what });
        }
        let mut warnings = Vec::new();
        if network.transports.is_set() {
            warnings.push(no_choice());
        }
        if beside.shm {
            match ShmTransport::open(&shm) {
                Ok(shared_memory) => transports.push(Box::new(shared_memory)),
                Err(error) => warnings.push(no_shared_memory(&error)),
            }
        }
        Ok(Assembly { transports, roles: Roles::all(), report: TransportReport::default(), warnings })
    }
}

/// A duration of the builder as the core takes it: infinite is the longest there is.
fn at_least(least: std::time::Duration, name: &str, given: Duration) -> Result<std::time::Duration> {
    let duration = given.as_nanos().map_or(std::time::Duration::MAX, std::time::Duration::from_nanos);
    match duration < least {
        true => Err(Error::BadParameter { what: format!("{name} is {given}: it must be at least {least:?}") }),
        false => Ok(duration),
    }
}

/// The name of the host; empty if it cannot be read.
fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Announces host and process, so that tools and logs of others can name them, unless the application has set these properties.
fn announce_process(property: &mut Property) {
    let values = [(HOST_PROPERTY, hostname()), (PROCESS_PROPERTY, std::process::id().to_string())];
    for (name, value) in values {
        if !value.is_empty() && property.get(name).is_none() {
            property.0.push((name.to_owned(), value, true));
        }
    }
}

/// Whether a transport is one of TCP.
fn carries_tcp(transport: &dyn Transport) -> bool {
    let somewhere = Locator::udp_v4(Ipv4Addr::LOCALHOST, 1);
    transport.serves(&Locator { kind: Locator::KIND_TCP_V4, ..somewhere })
}

/// What every transport of UDP can carry, in octets; `None` if there is none.
fn longest_udp_message(transports: &[Box<dyn Transport>]) -> Option<usize> {
    let sample = Locator::udp_v4(Ipv4Addr::LOCALHOST, 1);
    let those = transports.iter().filter(|transport| transport.serves(&sample));
    those.map(|transport| transport.max_message_len()).min()
}

fn no_shared_memory(error: &TransportError) -> Warning {
    Warning {
        what: format!("no shared memory, UDP carries all: {error}"),
        remedy: "use Linux 5.14 or later, permit Unix sockets and memfd_create, and run as a user other than 65534"
            .into(),
    }
}

fn no_choice() -> Warning {
    Warning {
        what: "transports were chosen by name, but this participant is a server, or brings its own".into(),
        remedy: "leave out the settings of transports for it".into(),
    }
}

/// Wraps the transport that carries most: the first.
fn wrap_first(transports: Vec<Box<dyn Transport>>, wrap: Wrapper) -> Vec<Box<dyn Transport>> {
    let mut transports = transports.into_iter();
    transports.next().map(wrap).into_iter().chain(transports).collect()
}

/// Starts `takt-rx`. It drives once it has its settings. If it cannot have them, it has ended when this returns.
fn start_thread(engine: &Arc<Engine>, settings: ThreadSettings) -> Result<std::thread::JoinHandle<()>> {
    let engine = Arc::clone(engine);
    let (tell, told) = mpsc::sync_channel(1);
    let run = move || {
        let applied = settings.apply();
        let is_ready = applied.is_ok();
        // A thread with settings of its own is to do the work itself.
        if settings == ThreadSettings::default() && engine.idle == Idle::Block {
            engine.leadership.open();
        }
        if tell.send(applied).is_ok() && is_ready {
            engine.run();
        }
    };
    let thread = std::thread::Builder::new().name("takt-rx".to_owned()).spawn(run);
    let thread = thread.map_err(|source| TransportError::new("start", "thread takt-rx", source))?;
    match told.recv().expect("the thread tells before it ends") {
        Ok(()) => Ok(thread),
        Err(refused) => {
            thread.join().expect("it only tells what was refused");
            Err(refused.into())
        }
    }
}
