//! Readers whatever their type: statuses, conditions, policies, and what becomes of them.

use std::any::TypeId;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use takt_core::{FlowTag, ReaderHandle, ReaderSpec, Selector};
use takt_transport::FlowSpec;
use takt_wire::{Guid, Locator};

use super::DataReader;
use crate::builtin::PublicationBuiltinTopicData;
use crate::condition::{ReadCondition, StatusCondition};
use crate::qos::DataReaderQos;
use crate::runtime::clock;
use crate::runtime::driver::Driver;
use crate::runtime::engine::Engine;
use crate::runtime::event_count::EventCount;
use crate::runtime::listeners::{EndpointRef, Listener, Place};
use crate::runtime::pi_mutex::PiMutex;
use crate::runtime::state::{Endpoint, Identity, Target};
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LatencyExceededStatus,
    LivelinessChangedStatus, MatchedStatus, SampleLostStatus, SampleRejectedStatus, Signal, StatusMask,
};
use crate::subscriber::{Subscriber, SubscriberInner};
use crate::topic::{AnyTopic, TopicInner};
use crate::{Duration, Error, Executor, Flow, Readable, Result, TRANSPORT_PROPERTY};

/// A reader, whatever its type: what every [`DataReader`] is besides reading. Handles are clones of one another; the
/// reader is deleted with the last one, or by [`close`](Self::close).
#[derive(Clone)]
pub struct AnyDataReader {
    pub(crate) core: Arc<ReaderCore>,
}

pub(crate) struct ReaderCore {
    pub(crate) handle: ReaderHandle,
    guid: Guid,
    flow: FlowTag,
    pub(crate) signal: Arc<Signal>,
    pub(super) deserialize_failures: AtomicU64,
    pub(crate) engine: Arc<Engine>,
    qos: PiMutex<DataReaderQos>,
    pub(crate) topic: Arc<TopicInner>,
    /// Keeps the subscriber, and by it the participant.
    pub(crate) subscriber: Arc<SubscriberInner>,
    type_id: TypeId,
}

const UNDISTURBED: &str = "no code of others runs under this lock";

impl AnyDataReader {
    /// A reader of values of type `T`. `spec` says what it is to be, given its own locators.
    pub(crate) fn create<T: 'static>(
        subscriber: &Subscriber,
        topic: Arc<TopicInner>,
        qos: DataReaderQos,
        flow: Flow,
        spec: impl FnOnce(&mut Driver, Vec<Locator>) -> ReaderSpec,
    ) -> Result<Self> {
        let participant = &subscriber.inner.participant;
        if !Arc::ptr_eq(participant, &topic.participant) {
            return Err(Error::BadParameter { what: "the topic belongs to another participant".into() });
        }
        let timing = participant.reader_timing(&topic.name, &qos)?;
        let latency_terms = participant.latency_terms(&topic.name, &qos)?;
        let stages = participant.reader_stages(&topic.name);
        let own_port = flow.own_port || timing.own_port;
        let flow_spec = FlowSpec { own_port, transport_priority: timing.transport_priority() };
        let is_enabled = subscriber.inner.enables_entities();
        let (name, property) = (topic.name.clone(), qos.property.get(TRANSPORT_PROPERTY).map(str::to_owned));
        Self::register::<T>(&subscriber.inner, topic, qos, |driver, now| {
            let by = driver.carriers_of(&name, property.as_deref())?;
            let (flow, unicast) = driver.open_flow(&flow_spec, by)?;
            let spec = spec(driver, unicast);
            let (kinds, core) = (driver.kinds_of(by), &mut driver.core);
            let created = core.prepare_reader(spec).and_then(|handle| {
                core.confine_reader(handle, flow, kinds)?;
                core.set_reader_priority(handle, timing.priority)?;
                core.set_reader_latency_terms(handle, latency_terms)?;
                core.set_reader_host_stages(handle, stages)?;
                if is_enabled {
                    core.enable_reader(now, handle)?;
                }
                Ok(handle)
            });
            Ok((created.inspect_err(|_| driver.close_flow(flow))?, flow))
        })
    }

    /// A reader that `create` makes in the core.
    pub(crate) fn register<T: 'static>(
        subscriber: &Arc<SubscriberInner>,
        topic: Arc<TopicInner>,
        qos: DataReaderQos,
        create: impl FnOnce(&mut Driver, takt_core::Instant) -> Result<(ReaderHandle, FlowTag)>,
    ) -> Result<Self> {
        let timing = subscriber.participant.reader_timing(&topic.name, &qos)?;
        let engine = Arc::clone(&subscriber.participant.engine);
        let signal = Arc::new(Signal::new());
        let place = Place { group: subscriber.parent, topic: topic.parent };
        let (handle, guid, flow) = engine.call_state(|state, now| {
            let driver = state.driver()?;
            let (handle, flow) = create(driver, now)?;
            let guid = driver.core.reader_guid(handle)?;
            let identity = Identity { target: Target::Reader(handle), guid, topic: topic.name.clone() };
            let progress = Arc::new(EventCount::new());
            state.add_endpoint(Endpoint::new(identity, Arc::clone(&signal), progress, place, timing));
            Ok((handle, guid, flow))
        })?;
        let core = Arc::new(ReaderCore {
            handle,
            guid,
            flow,
            signal,
            deserialize_failures: AtomicU64::new(0),
            engine,
            qos: PiMutex::new(qos),
            topic,
            subscriber: Arc::clone(subscriber),
            type_id: TypeId::of::<T>(),
        });
        let endpoint = EndpointRef::Reader(Arc::downgrade(&core));
        core.engine.call_state(|state, _| {
            state.complete(Target::Reader(handle), endpoint);
            Ok(())
        })?;
        subscriber.adopt(&core);
        Ok(Self { core })
    }

    pub(crate) fn from_core(core: Arc<ReaderCore>) -> Self {
        Self { core }
    }

    pub(crate) fn downgrade(&self) -> Weak<ReaderCore> {
        Arc::downgrade(&self.core)
    }

    /// The reader with its type, if that is `T`.
    #[must_use]
    pub fn downcast<T: Readable>(&self) -> Option<DataReader<T>> {
        (self.core.type_id == TypeId::of::<T>()).then(|| DataReader::of_this_type(self))
    }

    /// Whether it can be used; false once it was closed.
    pub(crate) fn is_open(&self) -> Result<bool> {
        match self.core.engine.look(|driver| Ok(driver.core.reader_guid(self.core.handle)?)) {
            Err(Error::AlreadyDeleted) => Ok(false),
            result => result.map(|_| true),
        }
    }

    /// Announces a reader that was created disabled, and begins to receive (DDS 1.4 §2.2.2.1.1.7). Does nothing if it is
    /// enabled.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if its subscriber is not enabled.
    pub fn enable(&self) -> Result<()> {
        self.core.subscriber.check_enabled()?;
        self.core.engine.call(|driver, now| Ok(driver.core.enable_reader(now, self.core.handle)?))
    }

    /// Changes the reader's policies: before it is enabled any, afterwards those that DDS 1.4 §2.2.3 calls changeable.
    /// Others are told, and writers that no longer fit, or fit now, are parted or matched. Whether it has a port of its own stays as it
    /// was when it was created.
    ///
    /// # Errors
    /// [`Error::ImmutablePolicy`], [`Error::InconsistentPolicy`]: then all stay as they were.
    pub fn set_qos(&self, qos: DataReaderQos) -> Result<()> {
        let core = &*self.core;
        let (handle, timing) = (core.handle, core.subscriber.participant.reader_timing(&core.topic.name, &qos)?);
        self.core.engine.call_state(|state, now| {
            let core = &mut state.driver()?.core;
            core.set_reader_qos(now, handle, qos.clone())?;
            core.set_reader_priority(handle, timing.priority)?;
            state.set_timing(Target::Reader(handle), timing)
        })?;
        *self.core.qos.lock().expect(UNDISTURBED) = qos;
        Ok(())
    }

    /// Has this executor call the reader's own listener from now on, instead of the participant's; `None`: the participant's again. It is as urgent as the
    /// system file says of the topic on that executor, else as the reader is. Listeners of the levels above stay with the participant.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] if the executor has no room for a job, [`Error::PreconditionNotMet`] if it has ended,
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close), [`Error::IllegalOperation`] under `Runtime::Inline`, whose participants have one thread.
    pub fn run_listener_on(&self, executor: Option<&Executor>) -> Result<()> {
        let core = &*self.core;
        let (participant, qos) = (&core.subscriber.participant, self.qos());
        let planned =
            executor.and_then(|executor| participant.listener_priority(executor, &core.topic.name, &qos.property));
        core.engine.run_listener_on(executor, Target::Reader(core.handle), planned)
    }

    /// Has the listener called again that was suspended since it took longer than its [budget](crate::BUDGET_PROPERTY). Does
    /// nothing if it was not.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn resume_listener(&self) -> Result<()> {
        self.core.engine.call_state(|state, _| state.resume(Target::Reader(self.core.handle)))
    }

    /// The reader's policies.
    #[must_use]
    pub fn qos(&self) -> DataReaderQos {
        self.core.qos.lock().expect(UNDISTURBED).clone()
    }

    /// The name of the topic read from.
    #[must_use]
    pub fn topic_name(&self) -> &str {
        &self.core.topic.name
    }

    /// The name of its type.
    #[must_use]
    pub fn type_name(&self) -> &str {
        &self.core.topic.type_name
    }

    /// The topic read from, its type forgotten.
    #[must_use]
    pub fn any_topic(&self) -> AnyTopic {
        AnyTopic::from_inner(Arc::clone(&self.core.topic))
    }

    /// Whether all has arrived that its TRANSIENT_LOCAL writers had when they were matched; waits for it
    /// (`wait_for_historical_data`, DDS 1.4 §2.2.2.5.3). With a VOLATILE reader there is nothing to wait for.
    ///
    /// # Errors
    /// [`Error::Timeout`] if it did not in time, [`Error::BadParameter`] for a negative time.
    pub fn wait_for_historical_data(&self, max_wait: impl Into<Duration>) -> Result<()> {
        let max_wait = clock::timeout(max_wait)?;
        if self.qos().durability == crate::qos::Durability::Volatile {
            return Ok(());
        }
        let core = &*self.core;
        let progress = core.engine.enter()?.progress_of(Target::Reader(core.handle)).ok_or(Error::AlreadyDeleted)?;
        core.engine.block_on(
            &progress,
            || clock::deadline(clock::now(), max_wait),
            |driver, _| Ok(driver.core.has_history(core.handle)?.then_some(())),
        )
    }

    /// Payloads that were dropped since they are no value of the reader's type.
    #[must_use]
    pub fn deserialize_failures(&self) -> u64 {
        self.core.deserialize_failures.load(Ordering::Relaxed)
    }

    /// How many writers are matched, and what changed since this was last asked.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn subscription_matched_status(&self) -> Result<MatchedStatus> {
        self.status(StatusMask::SUBSCRIPTION_MATCHED, |driver, reader| driver.core.subscription_matched_status(reader))
    }

    /// How many writers offer less than this reader asks for, and for which policy the last one did.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn requested_incompatible_qos_status(&self) -> Result<IncompatibleQosStatus> {
        self.status(StatusMask::REQUESTED_INCOMPATIBLE_QOS, |driver, reader| {
            driver.core.requested_incompatible_qos_status(reader)
        })
    }

    /// How many matched writers show that they live, and how many do not (DDS 1.4 §2.2.3.11).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn liveliness_changed_status(&self) -> Result<LivelinessChangedStatus> {
        self.status(StatusMask::LIVELINESS_CHANGED, |driver, reader| driver.core.liveliness_changed_status(reader))
    }

    /// In how many periods of DEADLINE an instance got no sample, and which one did not last (DDS 1.4 §2.2.3.7).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn requested_deadline_missed_status(&self) -> Result<DeadlineMissedStatus> {
        self.status(StatusMask::REQUESTED_DEADLINE_MISSED, |driver, reader| {
            driver.core.requested_deadline_missed_status(reader)
        })
    }

    /// How many samples were lost.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn sample_lost_status(&self) -> Result<SampleLostStatus> {
        self.status(StatusMask::SAMPLE_LOST, |driver, reader| driver.core.sample_lost_status(reader))
    }

    /// How old samples were when they could be read here, by both ends' wall clocks, and how many were older than the reader's
    /// E2E_LATENCY (`rt.e2e_ns` in its properties or USER_DATA when it was enabled), and than the bound of the
    /// [system file](crate::DomainParticipantBuilder::timing_plan). `None` if there is neither.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn latency_exceeded_status(&self) -> Result<Option<LatencyExceededStatus>> {
        self.status(StatusMask::LATENCY_EXCEEDED, |driver, reader| driver.core.latency_exceeded_status(reader))
    }

    /// How many samples found no room, and why the last one did not.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn sample_rejected_status(&self) -> Result<SampleRejectedStatus> {
        self.status(StatusMask::SAMPLE_REJECTED, |driver, reader| driver.core.sample_rejected_status(reader))
    }

    /// How many writers of the topic have another type.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn inconsistent_topic_status(&self) -> Result<InconsistentTopicStatus> {
        self.status(StatusMask::INCONSISTENT_TOPIC, |driver, reader| {
            driver.core.reader_inconsistent_topic_status(reader)
        })
    }

    fn status<S>(
        &self,
        status: StatusMask,
        read: impl FnOnce(&mut Driver, ReaderHandle) -> std::result::Result<S, takt_core::Error>,
    ) -> Result<S> {
        self.core.engine.look(|driver| {
            self.core.signal.clear(status);
            Ok(read(driver, self.core.handle)?)
        })
    }

    /// The writers that are matched.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn matched_publications(&self) -> Result<Vec<Guid>> {
        self.core.engine.look(|driver| Ok(driver.core.matched_publications(self.core.handle)?))
    }

    /// What is known of a matched writer (`get_matched_publication_data`).
    ///
    /// # Errors
    /// [`Error::BadParameter`] if it is not matched, [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn matched_publication_data(&self, writer: Guid) -> Result<PublicationBuiltinTopicData> {
        self.core.engine.look(|driver| {
            let is_matched = driver.core.matched_publications(self.core.handle)?.contains(&writer);
            let data = is_matched.then(|| driver.core.publication_data(writer)).flatten();
            let unknown = || Error::BadParameter { what: format!("writer {writer} is not matched") };
            data.map(PublicationBuiltinTopicData::from).ok_or_else(unknown)
        })
    }

    /// The condition that is true while a status has changed.
    #[must_use]
    pub fn status_condition(&self) -> StatusCondition {
        StatusCondition { signal: Arc::clone(&self.core.signal), engine: Arc::clone(&self.core.engine) }
    }

    /// A condition that is true while the reader holds samples that the selector wants.
    #[must_use]
    pub fn read_condition(&self, selector: Selector) -> ReadCondition {
        let (signal, engine) = (Arc::clone(&self.core.signal), Arc::clone(&self.core.engine));
        ReadCondition { signal, engine, reader: self.core.handle, selector, query: None }
    }

    /// The statuses that have changed since they were last read.
    #[must_use]
    pub fn status_changes(&self) -> StatusMask {
        self.core.signal.changes()
    }

    /// Has status changes told to nobody.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn clear_listener(&self) -> Result<()> {
        self.replace_listener(None, StatusMask::NONE)
    }

    pub(super) fn replace_listener(&self, listener: Option<Listener>, mask: StatusMask) -> Result<()> {
        let target = Target::Reader(self.core.handle);
        let former = self.core.engine.call_state(|state, _| state.set_listener(target, listener, mask))?;
        drop(former);
        Ok(())
    }

    /// The reader's identity in the domain.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.core.guid
    }

    /// The subscriber that the reader belongs to.
    #[must_use]
    pub fn subscriber(&self) -> Subscriber {
        Subscriber { inner: Arc::clone(&self.core.subscriber) }
    }

    /// Deletes the reader, whatever handles there are; they answer [`Error::AlreadyDeleted`] then.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if it was.
    pub fn close(&self) -> Result<()> {
        self.core.delete()
    }
}

impl ReaderCore {
    fn delete(&self) -> Result<()> {
        let listener = self.engine.call_state(|state, now| {
            let driver = state.driver()?;
            driver.core.delete_reader(now, self.handle)?;
            driver.transmit(now);
            driver.close_flow(self.flow);
            Ok(state.remove_endpoint(Target::Reader(self.handle)))
        })?;
        drop(listener);
        Ok(())
    }
}

impl Drop for ReaderCore {
    fn drop(&mut self) {
        match self.delete() {
            // Another thread than the owner's of an inline participant cannot delete; the participant's end will.
            Ok(()) | Err(Error::AlreadyDeleted | Error::IllegalOperation { .. }) => {}
            Err(error) => debug_assert!(false, "deleting a reader failed: {error}"),
        }
    }
}

impl fmt::Debug for AnyDataReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataReader")
            .field("guid", &self.guid())
            .field("topic_name", &self.topic_name())
            .finish_non_exhaustive()
    }
}
