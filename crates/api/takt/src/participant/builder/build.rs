//! Creation of a participant from its settings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread::JoinHandle;

use takt_core::security::Security;
use takt_core::{Config, Participant};
use takt_exec::ThreadSettings;
use takt_transport::udp::UdpConfig;
use takt_transport::{Control, Transport, TransportError, Warning};
use takt_wire::Locator;

use super::super::config::NetworkConfig;
use super::super::transports::Assembly;
use super::super::{Defaults, DomainParticipant, Entities, ParticipantInner, environment};
use super::DomainParticipantBuilder;
use super::protocol::hostname;
use crate::builtin::BuiltinReaders;
use crate::log::{self, Level};
use crate::runtime::clock;
use crate::runtime::diagnosis::Diagnosis;
use crate::runtime::driver::Driver;
use crate::runtime::engine::Engine;
use crate::runtime::pi_mutex::PiMutex;
use crate::runtime::poll::Waker;
use crate::security::SecurityConfig;
use crate::security::log_topic::{LogTopic, Origin};
use crate::security::plugin::{self, Renewal};
use crate::security::watch::{Source, Watch};
use crate::{Error, Executor, Idle, Result, Runtime};

/// The parts that DDS Security adds to a participant: none without it.
#[derive(Default)]
struct Protection {
    plugin: Option<Box<dyn Security>>,
    renewal: Option<Arc<Renewal>>,
    /// Files of the documents, if they are watched.
    source: Option<Source>,
    /// Identity in distributed log entries.
    log_origin: Option<Origin>,
}

impl DomainParticipantBuilder {
    /// Opens the sockets, joins the domain and, under [`Runtime::Shared`], starts the thread
    /// `takt-rx`.
    ///
    /// # Errors
    /// [`Error::Transport`](crate::Error::Transport) if the machine refuses sockets, interfaces or
    /// threads, [`Error::RealTime`](crate::Error::RealTime) if it refuses scheduling or memory
    /// settings, [`Error::BadParameter`](crate::Error::BadParameter) for malformed settings and for
    /// a transport with datagrams below [`MESSAGE_LEN_MIN`](crate::transport::MESSAGE_LEN_MIN),
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
        let udp = self.udp_config(&network);
        let Assembly { mut transports, roles, report, mut warnings } = self.open_network(&network, &udp)?;
        let mut config = self.configure(&network, &transports, &roles)?;
        let Protection { plugin, renewal, source, log_origin } = self.protection(&network, &mut config)?;
        if config.checks_sources {
            // Without source addresses the core accepts all datagrams at a user port.
            transports.iter_mut().try_for_each(|transport| transport.control(Control::ReportSources))?;
        }
        self.log_warnings(&transports, &mut warnings);
        let has_tcp = config.has_tcp;
        let core = open_core(config, plugin)?;
        let (guid, built) = (core.guid(), clock::now());
        let mut driver = Driver::new(core, transports, roles);
        driver.diagnosis = Diagnosis::new(self.label(), network.named(self.domain_id), built);
        let log_topic = log_origin.map(|origin| LogTopic::create(&mut driver.core, built, origin));
        driver.diagnosis.log_topic = log_topic.transpose()?;
        let (engine, thread) = self.start(driver)?;
        let watch = match (source, &renewal) {
            (Some(source), Some(renewal)) => Some(Watch::begin(self.label(), source, Arc::clone(renewal), &engine)?),
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

    /// Returns the configuration of UDP, with the changes of the application.
    fn udp_config(&mut self, network: &NetworkConfig) -> UdpConfig {
        let mut udp = UdpConfig { participant_index: self.participant_index, ..network.udp(self.domain_id) };
        std::mem::take(&mut self.udp_changes).into_iter().for_each(|change| change(&mut udp));
        udp
    }

    /// Logs the warnings of the network, and adds those of transports and environment.
    fn log_warnings(&self, transports: &[Box<dyn Transport>], warnings: &mut Vec<Warning>) {
        warnings.extend(transports.iter().flat_map(|transport| transport.status().warnings.to_vec()));
        let label = self.label();
        warnings.iter().for_each(|warning| log::record(Level::Warn, format!("{label}: {warning}")));
        warnings.extend(environment::warnings(self.is_from_settings));
    }

    /// Starts what drives the participant: the executor, `takt-rx`, or neither under
    /// [`Runtime::Inline`].
    fn start(&self, driver: Driver) -> Result<(Arc<Engine>, Option<JoinHandle<()>>)> {
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
            (Runtime::Shared, None) => Some(start_thread(&engine, self.thread_settings.clone())?),
        };
        Ok((engine, thread))
    }

    /// Opens the plugin of DDS Security, which sets the GUID prefix of the participant.
    fn protection(&mut self, network: &NetworkConfig, config: &mut Config) -> Result<Protection> {
        let Some((security, source)) = self.security_config(network)? else { return Ok(Protection::default()) };
        let (plugin, renewal) = plugin::open(&security, config)?;
        let log_origin = security.distributes_log.then(|| self.log_origin(config));
        Ok(Protection { plugin: Some(plugin), renewal: Some(Arc::new(renewal)), source, log_origin })
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
    pub(super) fn label(&self) -> String {
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
}

/// Opens the protocol engine, and sets its clocks.
fn open_core(config: Config, plugin: Option<Box<dyn Security>>) -> Result<Participant> {
    let mut core = match plugin {
        None => Participant::new(config, clock::now())?,
        Some(plugin) => Participant::with_security(config, plugin, clock::now())?,
    };
    core.check_types();
    let (now, wall) = clock::both();
    core.set_wall_clock(now, wall);
    Ok(core)
}

/// Starts `takt-rx`. The thread drives the participant once its settings are applied. If they
/// cannot be applied, the thread has ended when this returns.
fn start_thread(engine: &Arc<Engine>, settings: ThreadSettings) -> Result<JoinHandle<()>> {
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
