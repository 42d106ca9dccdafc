//! Participants: one application's presence in a domain (DDS 1.4 §2.2.2.2.1).

mod builder;
mod config;
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

use takt_core::{Caution, Counters, Refusal, SilentParticipant};
use takt_transport::{TransportStats, Warning};
use takt_wire::Guid;
use takt_wire::discovery::{ParticipantData, PublicationData, SubscriptionData};

pub use builder::DomainParticipantBuilder;
#[doc(hidden)]
pub use environment::{variable_warnings, variables_of_settings};
pub(crate) use jobs::VERSION;
pub use jobs::{BudgetOverrun, BudgetOverrunStatus, BudgetOverruns, TRACE_JOBS_MAX};
pub use report::{Attempt, Decision, TransportReport};
pub use server::{DiscoveryServer, DiscoveryServerBuilder};

use crate::builtin::{BuiltinReaders, BuiltinSubscriber};
use crate::listener::{ALL_BUT_ON_READERS, DomainParticipantListener};
use crate::qos::DomainParticipantQos;
use crate::runtime::clock;
use crate::runtime::diagnosis::ANSWER_TIME;
use crate::runtime::driver::DriverCounters;
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

/// A participant in a domain: creates topics, publishers and subscribers. Handles are clones of one another; it leaves
/// the domain with the last handle and entity, or by [`close`](Self::close).
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
    /// UDPv6 is in use.
    ipv6: bool,
    has_tcp: bool,
    /// What was worse than asked when it was built.
    warnings: Vec<Warning>,
    built: takt_core::Instant,
    transport_report: TransportReport,
    /// Per topic name its type and how many topics there are.
    topics: PiMutex<BTreeMap<String, (String, usize)>>,
    entities: PiMutex<Entities>,
    defaults: PiMutex<Defaults>,
    pub(crate) builtin_readers: BuiltinReaders,
    /// `takt-rx`, until it is joined.
    thread: PiMutex<Option<JoinHandle<()>>>,
    /// Drives it for as long as this lives.
    executor: Option<Executor>,
    /// What the system file and accounts know its executor by.
    executor_name: String,
    /// What the system file says of its topics.
    timing_plan: Option<ExecutorPlan>,
    /// If it is protected by DDS Security.
    renewal: Option<Arc<Renewal>>,
    _watch: Option<Arc<Watch>>,
    /// What the process was given for as long as this lives.
    _held: takt_exec::Held,
}

const UNDISTURBED: &str = "no code of others runs under this lock";

impl DomainParticipant {
    /// Prepares a participant of a domain.
    ///
    /// # Examples
    /// ```no_run
    /// let participant = takt::DomainParticipant::builder(0).name("camera").build()?;
    /// # Ok::<(), takt::Error>(())
    /// ```
    pub fn builder(domain_id: u32) -> DomainParticipantBuilder {
        DomainParticipantBuilder::new(domain_id)
    }

    /// A participant of a domain with all defaults.
    ///
    /// # Errors
    /// As [`DomainParticipantBuilder::build`].
    pub fn new(domain_id: u32) -> Result<Self> {
        Self::builder(domain_id).build()
    }

    /// Has the readers of the [builtin topics](crate::builtin): what is known of other participants, their topics,
    /// writers and readers.
    #[must_use]
    pub fn builtin_subscriber(&self) -> BuiltinSubscriber {
        BuiltinSubscriber::new(Arc::clone(&self.inner))
    }

    /// Under [`Runtime::Inline`]: receives, runs timers, sends and calls listeners. Waits up to `timeout` for something
    /// to happen, and says whether anything did. Does not allocate once endpoints exist and are matched.
    ///
    /// # Errors
    /// [`Error::IllegalOperation`] under [`Runtime::Shared`], whose thread does this, and from another thread than
    /// the owner; [`Error::BadParameter`] for a negative timeout.
    pub fn spin_once(&self, timeout: impl Into<Duration>) -> Result<bool> {
        let timeout = clock::timeout(timeout)?;
        if self.inner.engine.runtime == Runtime::Shared {
            return Err(Error::IllegalOperation { what: "under Runtime::Shared the participant's own thread spins" });
        }
        let engine = &self.inner.engine;
        if engine.glance()? {
            engine.waker.reset();
            return Ok(true);
        }
        let now = clock::now();
        engine.pump(now, clock::deadline(now, timeout))
    }

    /// Has other participants' coming and going told to `listener`, in place of a former one, and all statuses of the
    /// participant's entities, but `DATA_ON_READERS`, that no listener of these has an ear for.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn set_listener(&self, listener: Box<dyn DomainParticipantListener>) -> Result<()> {
        self.set_listener_with_mask(listener, ALL_BUT_ON_READERS)
    }

    /// As [`set_listener`](Self::set_listener), of these statuses alone. Coming and going are told in any case, unless
    /// there are none.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn set_listener_with_mask(&self, listener: Box<dyn DomainParticipantListener>, mask: StatusMask) -> Result<()> {
        self.replace_listener(Some(Listener::Participant(listener)), mask)
    }

    /// Has them told to nobody.
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

    /// Shows that the writers whose `LIVELINESS` is `MANUAL_BY_PARTICIPANT` live (DDS 1.4 §2.2.2.2.1).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn assert_liveliness(&self) -> Result<()> {
        self.inner.engine.call(|driver, now| {
            driver.core.assert_liveliness(now);
            Ok(())
        })
    }

    /// Announces itself to one more peer from now on; the forms are those of [`DomainParticipantBuilder::peers`]. A name is
    /// resolved now, which may take as long as the machine's resolver does.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for what cannot be understood or resolved, [`Error::OutOfResources`] beyond
    /// [`takt_core::MAX_PEERS`] ports, [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn add_peer(&self, peer: &str) -> Result<()> {
        let locators = self.locate(peer)?;
        self.inner.engine.call(|driver, now| Ok(driver.core.add_peers(now, &locators)?))
    }

    /// Announces itself to a peer no more. Participants there that are known stay known until they leave or fall silent.
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
            return Err(Error::BadParameter { what });
        }
        peers::locate(peer, self.inner.domain_id, self.inner.ipv6)
    }

    /// The participant's identity in the domain.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.inner.guid
    }

    /// The domain.
    #[must_use]
    pub fn domain_id(&self) -> u32 {
        self.inner.domain_id
    }

    /// The participant's policies.
    #[must_use]
    pub fn qos(&self) -> DomainParticipantQos {
        self.inner.qos.lock().expect(UNDISTURBED).clone()
    }

    /// What works worse than asked, and what to do about it: socket buffers that the kernel limits, variables of the environment
    /// that are not heeded, participants that announce themselves and do not answer, and, three seconds after the participant was
    /// built, peers and discovery servers that it was built with and that do not answer.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.inner.warnings.clone();
        let is_time = clock::now().since(self.inner.built) >= ANSWER_TIME;
        // A participant that is closed knows none.
        let known = self.inner.engine.look(|driver| {
            let silent = driver.core.silent_participants().map(|silent| Warning {
                what: silent.to_string(),
                remedy: "let UDP pass to and from its ports, or see to a route".into(),
            });
            let unanswered = if is_time { driver.diagnosis.unanswered(&driver.core) } else { Vec::new() };
            Ok(silent.chain(unanswered).collect::<Vec<_>>())
        });
        warnings.extend(known.unwrap_or_default());
        warnings
    }

    /// Which transports were asked for, by name, and what came of it. Empty if none were.
    #[must_use]
    pub fn transport_report(&self) -> &TransportReport {
        &self.inner.transport_report
    }

    /// The other participants that are known.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn discovered_participants(&self) -> Result<Vec<ParticipantData>> {
        self.look(|core| core.discovered_participants())
    }

    /// The writers of others that are known.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn discovered_publications(&self) -> Result<Vec<PublicationData>> {
        self.look(|core| core.discovered_publications().cloned().collect())
    }

    /// The readers of others that are known.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn discovered_subscriptions(&self) -> Result<Vec<SubscriptionData>> {
        self.look(|core| core.discovered_subscriptions().cloned().collect())
    }

    /// The discovery servers that were named ([`discovery_servers`](DomainParticipantBuilder::discovery_servers)) and do not
    /// answer, as `udp/ADDRESS:PORT`. A participant that has just started names all of them; one that runs answers within a second.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn silent_discovery_servers(&self) -> Result<Vec<String>> {
        self.look(|core| core.silent_servers().iter().map(ToString::to_string).collect())
    }

    /// Writers and readers of one topic that were lately not matched, and why not.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn refusals(&self) -> Result<Vec<Refusal>> {
        self.look(|core| core.refusals().cloned().collect())
    }

    /// Participants that may not take part, or not in what is protected, and why (DDS Security).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn refused_participants(&self) -> Result<Vec<(Guid, String)>> {
        self.look(|core| core.refused_participants().map(|(guid, why)| (guid, why.to_owned())).collect())
    }

    /// Writers and readers of one topic that match here, and that another implementation may refuse: the members in which
    /// their types differ. CycloneDDS is known to refuse all of these, so such pairs with it are [refusals](Self::refusals).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn cautions(&self) -> Result<Vec<Caution>> {
        self.look(|core| core.cautions().collect())
    }

    /// Participants that announce themselves and have not answered for two seconds at the address that they announce. Their
    /// endpoints are unknown, and none of them is matched.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn silent_participants(&self) -> Result<Vec<SilentParticipant>> {
        self.look(|core| core.silent_participants().collect())
    }

    /// Matches in which the numbers of one side contradict those of the other ([`qos::Contract`](crate::qos::Contract)): writer,
    /// reader, and the contradictions in words. They match all the same.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn contradictions(&self) -> Result<Vec<(Guid, Guid, Vec<String>)>> {
        self.look(|core| core.contradictions())
    }

    /// What the protocol engine has sent, received and dropped.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn counters(&self) -> Result<Counters> {
        self.look(|core| *core.counters())
    }

    /// What went wrong between protocol engine and transports.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn driver_counters(&self) -> Result<DriverCounters> {
        self.inner.engine.look(|driver| Ok(driver.counters()))
    }

    /// What each transport has carried, by its name.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn transport_stats(&self) -> Result<Vec<(&'static str, TransportStats)>> {
        self.inner.engine.look(|driver| Ok(driver.transport_stats().collect()))
    }

    pub(crate) fn from_inner(inner: Arc<ParticipantInner>) -> Self {
        Self { inner }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    pub(crate) fn look<R>(&self, look: impl FnOnce(&takt_core::Participant) -> R) -> Result<R> {
        self.inner.engine.look(|driver| Ok(look(&driver.core)))
    }

    /// Leaves the domain now, whatever handles and entities there are: others are told, sockets are closed, calls that
    /// wait end, and every later call on an entity of this participant is [`Error::AlreadyDeleted`]. The participant's own thread or
    /// executor calls no listener any more when this returns, unless it is called within a listener or a job: then one that is being
    /// called by another thread may still be at it, as may one that [another executor](crate::AnyDataReader::run_listener_on) calls.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if it was closed, [`Error::IllegalOperation`] from another thread than the owner under
    /// [`Runtime::Inline`].
    pub fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

impl ParticipantInner {
    fn close(&self) -> Result<()> {
        let result = self.engine.close();
        let thread = self.thread.lock().expect(UNDISTURBED).take();
        // Who drives does not wait for another who may wait for it.
        if let Some(thread) = thread.filter(|_| !ThreadToken::drives()) {
            // A panic in a listener has already been reported by its thread.
            drop(thread.join());
        }
        if let Some(executor) = &self.executor {
            executor.wait_for_pass();
        }
        crate::log::flush();
        result
    }
}

impl Drop for ParticipantInner {
    fn drop(&mut self) {
        match self.close() {
            // Another thread than the owner's of an inline participant: the engine closes when it is dropped.
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
