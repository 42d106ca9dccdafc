//! Type-independent part of readers: statuses, conditions, QoS and deletion. See also `endpoint`.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use takt_core::{FlowTag, ReaderHandle, ReaderSpec, Selector};
use takt_transport::FlowSpec;
use takt_wire::{Guid, Locator};

use super::DataReader;
use crate::builtin::PublicationBuiltinTopicData;
use crate::condition::ReadCondition;
use crate::endpoint::AnyEndpoint;
use crate::group::check_dropped;
use crate::qos::DataReaderQos;
use crate::runtime::clock;
use crate::runtime::driver::Driver;
use crate::runtime::engine::ReadCall;
use crate::runtime::event_count::EventCount;
use crate::runtime::listeners::EndpointRef;
use crate::runtime::pi_mutex::PiMutex;
use crate::runtime::state::Target;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LatencyExceededStatus,
    LivelinessChangedStatus, MatchedStatus, SampleLostStatus, SampleRejectedStatus, StatusMask,
};
use crate::subscriber::{Subscriber, SubscriberInner};
use crate::topic::TopicInner;
use crate::{Duration, Error, Executor, Flow, Readable, Result, Runtime, TRANSPORT_PROPERTY};

/// Reader without its type: the methods of a [`DataReader`] that do not depend on the sample type.
/// Clones refer to the same reader. It is deleted with the last of them, or by
/// [`close`](Self::close).
#[derive(Clone)]
pub struct AnyDataReader {
    pub(crate) core: Arc<ReaderCore>,
}

pub(crate) struct ReaderCore {
    pub(crate) handle: ReaderHandle,
    endpoint: AnyEndpoint,
    flow: FlowTag,
    pub(super) deserialize_failures: AtomicU64,
    qos: PiMutex<DataReaderQos>,
    /// Keeps the subscriber, and thereby the participant, from being deleted.
    pub(crate) subscriber: Arc<SubscriberInner>,
}

const UNDISTURBED: &str = "the lock is not poisoned: no user code runs under it";

impl AnyDataReader {
    /// Creates a reader of values of type `T`. `spec` returns its configuration, given its own
    /// locators.
    pub(crate) fn create<T: 'static>(
        subscriber: &Subscriber,
        topic: Arc<TopicInner>,
        qos: DataReaderQos,
        flow: Flow,
        spec: impl FnOnce(&mut Driver, Vec<Locator>) -> ReaderSpec,
    ) -> Result<Self> {
        let participant = &subscriber.inner.participant;
        if !Arc::ptr_eq(participant, &topic.participant) {
            return Err(Error::bad_parameter("the topic belongs to another participant"));
        }
        let timing = participant.reader_timing(&topic.name, &qos)?;
        let latency_terms = participant.latency_terms(&topic.name, &qos)?;
        let stages = participant.reader_stages(&topic.name);
        let own_port = flow.own_port || timing.own_port;
        let flow_spec = FlowSpec { own_port, transport_priority: timing.transport_priority() };
        let is_enabled = subscriber.inner.enables_entities();
        let (name, property) = (topic.name.clone(), qos.property.get(TRANSPORT_PROPERTY).map(str::to_owned));
        Self::register::<T>(&subscriber.inner, topic, qos, |driver, now| {
            let by = driver.transports_of(&name, property.as_deref())?;
            let (flow, unicast) = driver.open_flow(&flow_spec, by)?;
            let spec = spec(driver, unicast);
            let (kinds, core) = (driver.kinds_of(by), &mut driver.core);
            let created = core.prepare_reader(spec).and_then(|handle| {
                core.restrict_reader_locators(handle, flow, kinds)?;
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

    /// Registers a reader that `create` creates in the core.
    pub(crate) fn register<T: 'static>(
        subscriber: &Arc<SubscriberInner>,
        topic: Arc<TopicInner>,
        qos: DataReaderQos,
        create: impl FnOnce(&mut Driver, takt_core::Instant) -> Result<(ReaderHandle, FlowTag)>,
    ) -> Result<Self> {
        let timing = subscriber.participant.reader_timing(&topic.name, &qos)?;
        let (handle, endpoint, flow) = subscriber.participant.engine.call_state(|state, now| {
            let driver = state.driver()?;
            let (handle, flow) = create(driver, now)?;
            let identity = (Target::Reader(handle), driver.core.reader_guid(handle)?);
            let (position, progress) = ((subscriber.parent, &topic), Arc::new(EventCount::new()));
            Ok((handle, AnyEndpoint::register::<T>(state, identity, position, progress, timing), flow))
        })?;
        let core = Arc::new(ReaderCore {
            handle,
            endpoint,
            flow,
            deserialize_failures: AtomicU64::new(0),
            qos: PiMutex::new(qos),
            subscriber: Arc::clone(subscriber),
        });
        core.complete(EndpointRef::Reader(Arc::downgrade(&core)))?;
        subscriber.register(&core);
        Ok(Self { core })
    }

    pub(crate) fn from_core(core: Arc<ReaderCore>) -> Self {
        Self { core }
    }

    pub(crate) fn downgrade(&self) -> Weak<ReaderCore> {
        Arc::downgrade(&self.core)
    }

    /// Returns the reader with its type if that is `T`.
    #[must_use]
    pub fn downcast<T: Readable>(&self) -> Option<DataReader<T>> {
        self.core.is_of_type::<T>().then(|| DataReader::of_this_type(self))
    }

    /// Reports whether the reader is open; false once it was closed.
    pub(crate) fn is_open(&self) -> Result<bool> {
        match self.core.engine.inspect(|driver| Ok(driver.core.reader_guid(self.core.handle)?)) {
            Err(Error::AlreadyDeleted) => Ok(false),
            result => result.map(|_| true),
        }
    }

    /// Enables a reader that was created disabled: it is announced and begins to receive
    /// (DDS 1.4 §2.2.2.1.1.7). Has no effect if the reader is already enabled.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if the subscriber is not enabled.
    pub fn enable(&self) -> Result<()> {
        self.core.subscriber.check_enabled("subscriber")?;
        self.core.engine.call(|driver, now| Ok(driver.core.enable_reader(now, self.core.handle)?))
    }

    /// Changes the policies of the reader: any of them before it is enabled, afterwards those that
    /// are changeable according to DDS 1.4 §2.2.3. The change is announced. Writers that became
    /// incompatible are unmatched, and writers that became compatible are matched. Whether the
    /// reader has a port of its own is decided at creation only.
    ///
    /// # Errors
    /// [`Error::ImmutablePolicy`], [`Error::InconsistentPolicy`]. All policies are then unchanged.
    pub fn set_qos(&self, qos: DataReaderQos) -> Result<()> {
        let core = &*self.core;
        let (handle, timing) = (core.handle, core.subscriber.participant.reader_timing(&core.topic.name, &qos)?);
        core.engine.call_state(|state, now| {
            let driver = state.driver()?;
            driver.core.set_reader_qos(now, handle, qos.clone())?;
            driver.core.set_reader_priority(handle, timing.priority)?;
            state.set_timing(core.target, timing)
        })?;
        *core.qos.lock().expect(UNDISTURBED) = qos;
        Ok(())
    }

    /// Moves calls of the reader's own listener to another executor, or with `None` back to that of
    /// the participant. The priority on that executor is the one that the system file states for
    /// the topic there, else that of the reader. Listeners of subscriber and participant are not
    /// moved.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] if the executor has reached its limit of jobs,
    /// [`Error::PreconditionNotMet`] if it has ended, [`Error::AlreadyDeleted`] after
    /// [`close`](Self::close), [`Error::IllegalOperation`] under `Runtime::Inline`, whose
    /// participants have one thread.
    pub fn run_listener_on(&self, executor: Option<&Executor>) -> Result<()> {
        let core = &*self.core;
        let (participant, qos) = (&core.subscriber.participant, self.qos());
        let planned =
            executor.and_then(|executor| participant.listener_priority(executor, &core.topic.name, &qos.property));
        core.engine.run_listener_on(executor, core.target, planned)
    }

    /// Returns the policies of the reader.
    #[must_use]
    pub fn qos(&self) -> DataReaderQos {
        self.core.qos.lock().expect(UNDISTURBED).clone()
    }

    /// Waits until the reader has received all samples that its TRANSIENT_LOCAL writers held when
    /// they were matched (`wait_for_historical_data`, DDS 1.4 §2.2.2.5.3). Returns at once for a
    /// VOLATILE reader.
    ///
    /// # Errors
    /// [`Error::Timeout`] if samples are missing when `max_wait` expires, [`Error::BadParameter`]
    /// for a negative duration.
    pub fn wait_for_historical_data(&self, max_wait: impl Into<Duration>) -> Result<()> {
        let max_wait = clock::timeout(max_wait)?;
        if self.qos().durability == crate::qos::Durability::Volatile {
            return Ok(());
        }
        let core = &*self.core;
        let progress = core.engine.enter()?.progress_of(core.target).ok_or(Error::AlreadyDeleted)?;
        core.engine.block_on(
            &progress,
            || clock::deadline(clock::now(), max_wait),
            |driver, _| Ok(driver.core.has_history(core.handle)?.then_some(())),
        )
    }

    /// Returns the number of payloads that were dropped because they are not valid values of the
    /// reader's type.
    #[must_use]
    pub fn deserialize_failures(&self) -> u64 {
        self.core.deserialize_failures.load(Ordering::Relaxed)
    }

    /// Returns the number of matched writers and its change since the last call.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn subscription_matched_status(&self) -> Result<MatchedStatus> {
        self.status(StatusMask::SUBSCRIPTION_MATCHED, |driver| {
            driver.core.subscription_matched_status(self.core.handle)
        })
    }

    /// Returns the number of writers whose offered QoS is incompatible, and the policy of the last
    /// one.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn requested_incompatible_qos_status(&self) -> Result<IncompatibleQosStatus> {
        self.status(StatusMask::REQUESTED_INCOMPATIBLE_QOS, |driver| {
            driver.core.requested_incompatible_qos_status(self.core.handle)
        })
    }

    /// Returns the numbers of matched writers that are alive and not alive (DDS 1.4 §2.2.3.11).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn liveliness_changed_status(&self) -> Result<LivelinessChangedStatus> {
        self.status(StatusMask::LIVELINESS_CHANGED, |driver| driver.core.liveliness_changed_status(self.core.handle))
    }

    /// Returns the number of DEADLINE periods in which an instance received no sample, and the last
    /// such instance (DDS 1.4 §2.2.3.7).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn requested_deadline_missed_status(&self) -> Result<DeadlineMissedStatus> {
        self.status(StatusMask::REQUESTED_DEADLINE_MISSED, |driver| {
            driver.core.requested_deadline_missed_status(self.core.handle)
        })
    }

    /// Returns the number of lost samples.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn sample_lost_status(&self) -> Result<SampleLostStatus> {
        self.status(StatusMask::SAMPLE_LOST, |driver| driver.core.sample_lost_status(self.core.handle))
    }

    /// Returns the ages of samples when they became readable, measured by the wall clocks of both
    /// hosts. Counts samples older than the reader's E2E_LATENCY, and samples older than the bound
    /// of the [system file](crate::DomainParticipantBuilder::timing_plan). E2E_LATENCY is
    /// `rt.e2e_ns` in the properties or USER_DATA of the reader when it was enabled. `None` if the
    /// reader has neither limit.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn latency_exceeded_status(&self) -> Result<Option<LatencyExceededStatus>> {
        self.status(StatusMask::LATENCY_EXCEEDED, |driver| driver.core.latency_exceeded_status(self.core.handle))
    }

    /// Returns the number of rejected samples and the reason of the last rejection.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn sample_rejected_status(&self) -> Result<SampleRejectedStatus> {
        self.status(StatusMask::SAMPLE_REJECTED, |driver| driver.core.sample_rejected_status(self.core.handle))
    }

    /// Returns the number of writers of the topic that have another type.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn inconsistent_topic_status(&self) -> Result<InconsistentTopicStatus> {
        self.status(StatusMask::INCONSISTENT_TOPIC, |driver| {
            driver.core.reader_inconsistent_topic_status(self.core.handle)
        })
    }

    /// Returns the matched writers.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn matched_publications(&self) -> Result<Vec<Guid>> {
        self.core.engine.inspect(|driver| Ok(driver.core.matched_publications(self.core.handle)?))
    }

    /// Returns the discovery data of a matched writer (`get_matched_publication_data`).
    ///
    /// # Errors
    /// [`Error::BadParameter`] if the writer is not matched, [`Error::AlreadyDeleted`] after
    /// [`close`](Self::close).
    pub fn matched_publication_data(&self, writer: Guid) -> Result<PublicationBuiltinTopicData> {
        self.core.engine.inspect(|driver| {
            let is_matched = driver.core.matched_publications(self.core.handle)?.contains(&writer);
            let data = is_matched.then(|| driver.core.publication_data(writer)).flatten();
            let unknown = || Error::bad_parameter(format!("writer {writer} is not matched"));
            data.map(PublicationBuiltinTopicData::from).ok_or_else(unknown)
        })
    }

    /// Returns a condition that is true while the reader holds samples that match the selector.
    #[must_use]
    pub fn read_condition(&self, selector: Selector) -> ReadCondition {
        let (signal, engine) = (Arc::clone(&self.core.signal), Arc::clone(&self.core.engine));
        ReadCondition { signal, engine, reader: self.core.handle, selector, query: None }
    }

    /// Returns the subscriber of the reader.
    #[must_use]
    pub fn subscriber(&self) -> Subscriber {
        Subscriber { inner: Arc::clone(&self.core.subscriber) }
    }

    /// Deletes the reader. Other handles of it return [`Error::AlreadyDeleted`] from then on.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if it was already closed.
    pub fn close(&self) -> Result<()> {
        self.core.delete()
    }
}

impl ReaderCore {
    /// Begins a read or take, which resets the statuses of available data.
    #[inline]
    pub(crate) fn begin_read(&self) -> Result<ReadCall<'_>> {
        let call = self.engine.begin_read(self.handle)?;
        self.signal.set_drained(false);
        self.signal.clear(StatusMask::DATA_AVAILABLE);
        self.subscriber.reset_data_on_readers();
        Ok(call)
    }

    /// Begins a read or take of selected samples. Returns `None`, without acquiring the lock of the
    /// state, for a take of any sample if the reader is known to have none: a thread that polls
    /// must not delay the receiving thread.
    #[inline]
    pub(crate) fn begin_selected(&self, selector: Selector) -> Result<Option<ReadCall<'_>>> {
        if selector == Selector::TAKE && self.is_known_empty() {
            #[cfg(debug_assertions)]
            self.check_emptiness();
            self.subscriber.reset_data_on_readers();
            return Ok(None);
        }
        self.begin_read().map(Some)
    }

    fn is_known_empty(&self) -> bool {
        self.signal.is_drained() && !self.signal.is_deleted()
    }

    /// Checks that each sample raises `DATA_AVAILABLE`, unless another thread holds the lock of the
    /// state.
    #[cfg(debug_assertions)]
    fn check_emptiness(&self) {
        let has_samples = self.engine.inspect_if_free(|driver| {
            Ok(driver.core.has_samples(self.handle, &Selector::TAKE)? && self.is_known_empty())
        });
        assert!(!matches!(has_samples, Some(Ok(true))), "the reader has samples and counts as empty");
    }

    /// Ends a read or take of selected samples. `found` reports whether there were any.
    #[inline]
    pub(crate) fn end_selected(&self, call: ReadCall<'_>, selector: Selector, found: bool) -> Result<()> {
        if !found && selector == Selector::TAKE {
            // Other reads do more than to look for samples: they fail outside `begin_access`, or on
            // another thread than the owner of an inline participant.
            let is_only_lookup = self.engine.runtime == Runtime::Shared && !self.subscriber.has_group_access;
            self.signal.set_drained(is_only_lookup);
        }
        call.finish()
    }

    fn delete(&self) -> Result<()> {
        let listener = self.engine.call_state(|state, now| {
            let driver = state.driver()?;
            driver.core.delete_reader(now, self.handle)?;
            driver.transmit(now);
            driver.close_flow(self.flow);
            Ok(state.remove_endpoint(self.target))
        })?;
        drop(listener);
        Ok(())
    }
}

impl Deref for ReaderCore {
    type Target = AnyEndpoint;

    fn deref(&self) -> &AnyEndpoint {
        &self.endpoint
    }
}

impl Drop for ReaderCore {
    fn drop(&mut self) {
        check_dropped("reader", self.delete());
    }
}

impl Deref for AnyDataReader {
    type Target = AnyEndpoint;

    fn deref(&self) -> &AnyEndpoint {
        &self.core
    }
}

impl fmt::Debug for AnyDataReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as("DataReader", f)
    }
}
