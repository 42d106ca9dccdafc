//! Domain participants (DDS 1.4 §2.2.2.2.1).

mod builder;
mod config;
mod diagnostics;
mod endpoints;
mod entities;
mod environment;
mod guid_prefix;
mod jobs;
mod peers;
mod report;
mod security;
mod server;
mod transports;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use takt_transport::Warning;
use takt_wire::Guid;
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};

pub use builder::DomainParticipantBuilder;
pub use diagnostics::{Contradiction, Diagnostics, RefusedParticipant, TransportTraffic};
#[doc(hidden)]
pub use environment::{variable_warnings, variables_of_settings};
pub(crate) use jobs::VERSION;
pub use jobs::{BudgetOverrun, BudgetOverrunStatus, BudgetOverruns, OverrunEndpoint, TRACE_JOBS_MAX};
pub use report::{Attempt, Decision, TransportReport};
pub use server::{DiscoveryServer, DiscoveryServerBuilder};

use crate::builtin::{BuiltinReaders, BuiltinSubscriber};
use crate::listener::{ALL_BUT_ON_READERS, DomainParticipantListener};
use crate::qos::DomainParticipantQos;
use crate::runtime::clock;
use crate::runtime::engine::Engine;
use crate::runtime::listeners::Listener;
use crate::runtime::pi_mutex::PiMutex;
use crate::runtime::thread_cell::ThreadToken;
use crate::security::plugin::Renewal;
use crate::security::watch::Watch;
use crate::status::StatusMask;
use crate::timing_plan::ExecutorPlan;
use crate::{Duration, Error, Executor, Result, Runtime};
use entities::{Defaults, Entities};

/// Participant of a domain: creates topics, publishers and subscribers. Handles are clones that
/// refer to the same participant. It leaves the domain when the last handle and entity is dropped,
/// or by [`close`](Self::close).
#[derive(Clone)]
pub struct DomainParticipant {
    inner: Arc<ParticipantInner>,
}

pub(crate) struct ParticipantInner {
    pub(crate) engine: Arc<Engine>,
    guid: Guid,
    domain_id: u32,
    is_enabled: AtomicBool,
    qos: PiMutex<DomainParticipantQos>,
    /// Whether UDPv6 is in use.
    ipv6: bool,
    has_tcp: bool,
    /// Degradations relative to the requested configuration when the participant was built.
    warnings: Vec<Warning>,
    built: takt_core::Instant,
    transport_report: TransportReport,
    /// Type and number of topics by topic name.
    topics: PiMutex<BTreeMap<String, (String, usize)>>,
    entities: PiMutex<Entities>,
    defaults: PiMutex<Defaults>,
    pub(crate) builtin_readers: BuiltinReaders,
    /// Thread `takt-rx`, until it is joined.
    thread: PiMutex<Option<JoinHandle<()>>>,
    /// Executor that drives the participant for as long as this lives.
    executor: Option<Executor>,
    /// Name of the executor in the system file and in job statistics.
    executor_name: String,
    /// Plan of its executor from the system file.
    timing_plan: Option<ExecutorPlan>,
    /// Renewal handle, if the participant is protected by DDS Security.
    renewal: Option<Arc<Renewal>>,
    _watch: Option<Arc<Watch>>,
    /// Process-wide settings that last for as long as this lives.
    _process_settings: takt_exec::LatencyRequest,
}

const UNDISTURBED: &str = "the lock is not poisoned: no user code runs under it";

impl DomainParticipant {
    /// Returns a builder of a participant in a domain.
    ///
    /// # Examples
    /// ```no_run
    /// let participant = takt::DomainParticipant::builder(0).name("camera").build()?;
    /// # Ok::<(), takt::Error>(())
    /// ```
    pub fn builder(domain_id: u32) -> DomainParticipantBuilder {
        DomainParticipantBuilder::new(domain_id)
    }

    /// Creates a participant in a domain with all defaults.
    ///
    /// # Errors
    /// As [`DomainParticipantBuilder::build`].
    pub fn new(domain_id: u32) -> Result<Self> {
        Self::builder(domain_id).build()
    }

    /// Returns the subscriber of the [builtin topics](crate::builtin): discovered participants,
    /// topics, writers and readers.
    #[must_use]
    pub fn builtin_subscriber(&self) -> BuiltinSubscriber {
        BuiltinSubscriber::new(Arc::clone(&self.inner))
    }

    /// Drives the participant once under [`Runtime::Inline`]: receives, runs timers, sends and
    /// calls listeners. Waits up to `timeout` for an event, and returns whether there was one. Does
    /// not allocate once endpoints exist and are matched.
    ///
    /// # Errors
    /// [`Error::IllegalOperation`] under [`Runtime::Shared`], whose thread does this, and from
    /// another thread than the owner; [`Error::BadParameter`] for a negative timeout.
    pub fn spin_once(&self, timeout: impl Into<Duration>) -> Result<bool> {
        let timeout = clock::timeout(timeout)?;
        if self.inner.engine.runtime == Runtime::Shared {
            return Err(Error::IllegalOperation { what: "under Runtime::Shared the participant's own thread spins" });
        }
        let engine = &self.inner.engine;
        if engine.poll_once()? {
            engine.waker.reset();
            return Ok(true);
        }
        let now = clock::now();
        engine.drive(now, clock::deadline(now, timeout))
    }

    /// Replaces the listener. It is notified when remote participants are discovered or lost, and
    /// of all statuses of the participant's entities except `DATA_ON_READERS` that are outside the
    /// listener masks of these entities.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn set_listener(&self, listener: Box<dyn DomainParticipantListener>) -> Result<()> {
        self.set_listener_with_mask(listener, ALL_BUT_ON_READERS)
    }

    /// As [`set_listener`](Self::set_listener), limited to these statuses. Discovery and loss of
    /// participants are notified regardless of the mask, unless it is empty.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn set_listener_with_mask(&self, listener: Box<dyn DomainParticipantListener>, mask: StatusMask) -> Result<()> {
        self.replace_listener(Some(Listener::Participant(listener)), mask)
    }

    /// Removes the listener.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn clear_listener(&self) -> Result<()> {
        self.replace_listener(None, StatusMask::NONE)
    }

    fn replace_listener(&self, listener: Option<Listener>, mask: StatusMask) -> Result<()> {
        let former = self.inner.engine.call_state(|state, _| Ok(state.set_participant_listener(listener, mask)))?;
        drop(former);
        Ok(())
    }

    /// Asserts the liveliness of the writers whose `LIVELINESS` is `MANUAL_BY_PARTICIPANT`
    /// (DDS 1.4 §2.2.2.2.1).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn assert_liveliness(&self) -> Result<()> {
        self.inner.engine.call(|driver, now| {
            driver.core.assert_liveliness(now);
            Ok(())
        })
    }

    /// Adds a peer to which the participant announces itself; the forms are those of
    /// [`DomainParticipantBuilder::peers`]. A name is resolved immediately, which takes as long as
    /// the machine's resolver does.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for a peer that cannot be parsed or resolved,
    /// [`Error::OutOfResources`] beyond [`takt_core::MAX_PEERS`] ports, [`Error::AlreadyDeleted`]
    /// after [`close`](Self::close).
    pub fn add_peer(&self, peer: &str) -> Result<()> {
        let locators = self.locate(peer)?;
        self.inner.engine.call(|driver, now| Ok(driver.core.add_peers(now, &locators)?))
    }

    /// Removes a peer from the announcements. Participants already discovered there stay known
    /// until they leave or their lease expires.
    ///
    /// # Errors
    /// As [`add_peer`](Self::add_peer).
    pub fn remove_peer(&self, peer: &str) -> Result<()> {
        let locators = self.locate(peer)?;
        self.inner.engine.call(|driver, _| {
            driver.core.remove_peers(&locators);
            Ok(())
        })
    }

    fn locate(&self, peer: &str) -> Result<Vec<takt_wire::Locator>> {
        if peers::is_tcp(peer) && !self.inner.has_tcp {
            let what = format!("peer {peer:?}: the participant was built without TCP");
            return Err(Error::bad_parameter(what));
        }
        peers::locate(peer, self.inner.domain_id, self.inner.ipv6)
    }

    /// Returns the GUID of the participant.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.inner.guid
    }

    /// Returns the domain id.
    #[must_use]
    pub fn domain_id(&self) -> u32 {
        self.inner.domain_id
    }

    /// Returns the policies of the participant.
    #[must_use]
    pub fn qos(&self) -> DomainParticipantQos {
        self.inner.qos.lock().expect(UNDISTURBED).clone()
    }

    /// Returns the discovered remote participants.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn discovered_participants(&self) -> Result<Vec<ParticipantData>> {
        self.inspect(|core| core.discovered_participants())
    }

    /// Returns the discovered remote writers.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn discovered_publications(&self) -> Result<Vec<PublicationData>> {
        self.inspect(|core| core.discovered_publications().cloned().collect())
    }

    /// Returns the discovered remote readers.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn discovered_subscriptions(&self) -> Result<Vec<SubscriptionData>> {
        self.inspect(|core| core.discovered_subscriptions().cloned().collect())
    }

    pub(crate) fn from_inner(inner: Arc<ParticipantInner>) -> Self {
        Self { inner }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    pub(crate) fn inspect<R>(&self, access: impl FnOnce(&takt_core::Participant) -> R) -> Result<R> {
        self.inner.engine.inspect(|driver| Ok(access(&driver.core)))
    }

    /// Leaves the domain, regardless of remaining handles and entities. Remote participants are
    /// notified, sockets are closed, and blocking calls end. Every later call on an entity of this
    /// participant fails with [`Error::AlreadyDeleted`].
    ///
    /// When this returns, the participant's thread or executor calls no more listeners. If it is
    /// called within a listener or a job, a listener that another thread is calling may still run.
    /// So may a listener that [another executor](crate::AnyDataReader::run_listener_on) calls.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if it was already closed, [`Error::IllegalOperation`] from another
    /// thread than the owner under [`Runtime::Inline`].
    pub fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

impl ParticipantInner {
    fn close(&self) -> Result<()> {
        let result = self.engine.close();
        let thread = self.thread.lock().expect(UNDISTURBED).take();
        // A driving thread does not join another thread that may wait for it.
        if let Some(thread) = thread.filter(|_| !ThreadToken::drives()) {
            // A panic in a listener has already been reported by its thread.
            drop(thread.join());
        }
        if let Some(executor) = &self.executor {
            executor.wait_for_run();
        }
        crate::log::flush();
        result
    }
}

impl Drop for ParticipantInner {
    fn drop(&mut self) {
        match self.close() {
            // On another thread than the owner of an inline participant: the engine closes when it
            // is dropped.
            Ok(()) | Err(Error::AlreadyDeleted | Error::IllegalOperation { .. }) => {}
            Err(error) => debug_assert!(false, "closing a participant failed: {error}"),
        }
    }
}

impl fmt::Debug for DomainParticipant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DomainParticipant")
            .field("guid", &self.guid())
            .field("domain_id", &self.domain_id())
            .finish_non_exhaustive()
    }
}
