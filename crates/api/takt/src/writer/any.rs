//! Type-independent part of writers: statuses, conditions, QoS and deletion. See also `endpoint`.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use takt_core::{Instant, WriterFlows, WriterHandle, WriterSpec};
use takt_transport::FlowSpec;
use takt_wire::{Guid, Locator, SequenceNumber};
use takt_xtypes::Representation;

use super::{DataWriter, representation};
use crate::builtin::SubscriptionBuiltinTopicData;
use crate::endpoint::AnyEndpoint;
use crate::group::check_dropped;
use crate::publisher::{Publisher, PublisherInner};
use crate::qos::{DataWriterQos, History, LivelinessKind};
use crate::runtime::clock;
use crate::runtime::driver::Driver;
use crate::runtime::engine::Wait;
use crate::runtime::event_count::EventCount;
use crate::runtime::listeners::EndpointRef;
use crate::runtime::pi_mutex::PiMutex;
use crate::runtime::roles::TransportSet;
use crate::runtime::state::Target;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LivelinessLostStatus, MatchedStatus,
    StatusMask,
};
use crate::topic::TopicInner;
use crate::{Duration, Error, Executor, Flow, Result, TRANSPORT_PROPERTY, TypeSupport};

/// Writer without its type: the methods of a [`DataWriter`] that do not depend on the sample type.
/// Clones refer to the same writer. It is deleted with the last of them, or by
/// [`close`](Self::close).
#[derive(Clone)]
pub struct AnyDataWriter {
    pub(crate) core: Arc<WriterCore>,
}

pub(crate) struct WriterCore {
    pub(crate) handle: WriterHandle,
    endpoint: AnyEndpoint,
    pub(crate) progress: Arc<EventCount>,
    /// Maximum length of a sample: `Limits::endpoint_memory_bytes`.
    sample_len_max: usize,
    /// `RELIABILITY.max_blocking_time`.
    pub(crate) max_blocking_time: Duration,
    liveliness: LivelinessKind,
    /// `WRITER_DATA_LIFECYCLE.autodispose_unregistered_instances`.
    pub(crate) autodispose: AtomicBool,
    settings: PiMutex<Settings>,
    own_port: bool,
    /// Transports that carry the writer's data.
    transports: TransportSet,
    pub(crate) representation: Representation,
    /// Present if the writer's host has stages in the timing plan; otherwise calls of `write` are
    /// not timed.
    pub(crate) write_times: Option<WriteTimes>,
    /// Keeps the publisher, and thereby the participant, from being deleted.
    pub(crate) publisher: Arc<PublisherInner>,
}

/// Longest execution time of a `write` so far, in nanoseconds.
#[derive(Default)]
pub(crate) struct WriteTimes(AtomicU64);

/// Mutable settings of a writer.
struct Settings {
    qos: DataWriterQos,
    flows: WriterFlows,
}

const UNDISTURBED: &str = "the lock is not poisoned: no user code runs under it";
/// Maximum number of readers that an error names.
const NAMED_READERS_MAX: usize = 4;
const ENDPOINT_MEMORY: &str = "endpoint_memory_bytes";

impl WriterCore {
    /// Returns the start time of a call of `write`, if calls are timed.
    #[inline]
    pub(crate) fn begin_write(&self) -> Option<(&WriteTimes, Instant)> {
        self.write_times.as_ref().map(|times| (times, clock::now()))
    }

    /// Ends a timed call of `write`. Reports its execution time to the core if it is the longest so
    /// far.
    #[inline]
    pub(crate) fn end_write(&self, begun: Option<(&WriteTimes, Instant)>) {
        let Some((times, begun)) = begun else { return };
        let ns = u64::try_from(clock::now().since(begun).as_nanos()).unwrap_or(u64::MAX);
        if times.0.fetch_max(ns, Ordering::Relaxed) < ns {
            // A closed participant reports nothing.
            let _ = self.engine.inspect(|driver| Ok(driver.core.record_write_time(self.handle, ns)?));
        }
    }

    /// Repeats `attempt` until it returns a value, at most for `max_blocking_time`, then waits for
    /// the network.
    pub(crate) fn write_with<R>(&self, attempt: impl FnMut(&mut Driver, Instant) -> Result<Option<R>>) -> Result<R> {
        let deadline = || clock::deadline(clock::now(), self.max_blocking_time);
        let result = self.engine.block_on(&self.progress, deadline, attempt)?;
        self.await_network()?;
        Ok(result)
    }

    /// Waits while fragments of the writer's samples wait for the queue of a network interface, at
    /// most `max_blocking_time`. The rest is sent later.
    #[inline]
    pub(crate) fn await_network(&self) -> Result<()> {
        if self.engine.has_blocked_flows() { self.wait_while_blocked() } else { Ok(()) }
    }

    #[cold]
    fn wait_while_blocked(&self) -> Result<()> {
        let mut wait = Wait::new(&self.engine, &self.progress);
        let deadline = clock::deadline(clock::now(), self.max_blocking_time);
        while self.engine.inspect(|driver| Ok(driver.core.is_writer_blocked(self.handle)))? {
            match wait.for_progress(deadline) {
                Err(Error::Timeout { .. }) => break,
                progress => progress?,
            }
        }
        Ok(())
    }

    /// Rejects a sample that exceeds the limits, regardless of the transport.
    #[inline]
    pub(crate) fn check_len(&self, len: usize) -> Result<()> {
        if len <= self.sample_len_max { Ok(()) } else { Err(self.too_large(len)) }
    }

    /// Converts the core's error for a sample of `len` octets.
    #[cold]
    pub(crate) fn length_error(&self, error: takt_core::Error, len: usize) -> Error {
        match error {
            // A shorter sample was rejected because other samples occupy the memory.
            takt_core::Error::OutOfResources { limit: ENDPOINT_MEMORY, value } if len as u64 > value => {
                self.too_large(len)
            }
            other => other.into(),
        }
    }

    /// Describes why `write` timed out.
    #[cold]
    pub(crate) fn timeout_text(&self) -> String {
        let limit = match self.settings.lock().expect(UNDISTURBED).qos.resource_limits.max_samples {
            Some(max) => format!("max_samples {max}"),
            None => "Limits::default_max_samples".to_owned(),
        };
        let blocked_for = self
            .max_blocking_time
            .as_nanos()
            .map_or_else(String::new, |nanos| format!(" for {} ms", nanos / 1_000_000));
        let topic = &self.topic.name;
        format!(
            "no room in the history of the writer of \"{topic}\" ({limit}){blocked_for}; {}",
            self.unacknowledged_text()
        )
    }

    /// Describes the readers that have not acknowledged, for error texts.
    #[cold]
    pub(crate) fn unacknowledged_text(&self) -> String {
        let found = self.engine.inspect(|driver| Ok(driver.core.lagging_readers(self.handle, NAMED_READERS_MAX)?));
        let Ok((named, count)) = found else { return "its participant is closed".to_owned() };
        let named: Vec<String> = named.into_iter().map(|(reader, label)| format!("{reader} of {label}")).collect();
        let more = if count > named.len() { ", .." } else { "" };
        match count {
            0 => "all reliable readers have acknowledged".to_owned(),
            1 => format!("1 reader has not acknowledged: {}", named.join(", ")),
            _ => format!("{count} readers have not acknowledged: {}{more}", named.join(", ")),
        }
    }

    #[cold]
    fn too_large(&self, len: usize) -> Error {
        let (len, max) = (len as u64, self.sample_len_max as u64);
        Error::SampleTooLarge { len, limit: ENDPOINT_MEMORY, max, topic: self.topic.name.clone() }
    }
}

impl AnyDataWriter {
    /// Creates a writer of values of type `T`. `spec` returns its configuration, given its flows
    /// and its own locators.
    pub(crate) fn create<T: 'static>(
        publisher: &Publisher,
        topic: Arc<TopicInner>,
        qos: DataWriterQos,
        flow: Flow,
        spec: impl FnOnce(&mut Driver, WriterFlows, Vec<Locator>) -> WriterSpec,
    ) -> Result<Self> {
        let participant = &publisher.inner.participant;
        if !Arc::ptr_eq(participant, &topic.participant) {
            return Err(Error::bad_parameter("the topic belongs to another participant"));
        }
        let representation = representation(&qos.data_representation)?;
        let progress = Arc::new(EventCount::new());
        let timing = participant.writer_timing(&topic.name, &qos)?;
        let stages = participant.writer_stages(&topic.name);
        let write_times = stages.is_some().then(WriteTimes::default);
        let own_port = flow.own_port || timing.own_port;
        let flow_spec = FlowSpec { own_port, transport_priority: timing.transport_priority() };
        let is_enabled = publisher.inner.enables_entities();
        let (handle, endpoint, flows, transports, sample_len_max) = participant.engine.call_state(|state, now| {
            let driver = state.driver()?;
            let transports = driver.transports_of(&topic.name, qos.property.get(TRANSPORT_PROPERTY))?;
            let (flows, unicast) = driver.open_writer_flows(&flow_spec, transports)?;
            let spec = spec(driver, flows, unicast);
            let (kinds, core) = (driver.kinds_of(transports), &mut driver.core);
            let created = core.prepare_writer(now, spec).and_then(|handle| {
                core.restrict_writer_locators(handle, kinds)?;
                core.set_writer_priority(handle, timing.priority)?;
                core.set_writer_host_stages(handle, stages)?;
                if is_enabled {
                    core.enable_writer(now, handle)?;
                }
                Ok(handle)
            });
            let handle = created.inspect_err(|_| driver.close_writer_flows(flows))?;
            let identity = (Target::Writer(handle), driver.core.writer_guid(handle)?);
            let sample_len_max = driver.core.limits().endpoint_memory_bytes;
            let position = (publisher.inner.parent, &topic);
            let endpoint = AnyEndpoint::register::<T>(state, identity, position, Arc::clone(&progress), timing);
            Ok((handle, endpoint, flows, transports, sample_len_max))
        })?;
        let core = Arc::new(WriterCore {
            handle,
            endpoint,
            progress,
            liveliness: qos.liveliness.kind,
            sample_len_max,
            max_blocking_time: qos.reliability.max_blocking_time,
            autodispose: AtomicBool::new(qos.writer_data_lifecycle.autodispose_unregistered_instances),
            settings: PiMutex::new(Settings { qos, flows }),
            own_port,
            transports,
            representation,
            write_times,
            publisher: Arc::clone(&publisher.inner),
        });
        core.complete(EndpointRef::Writer(Arc::downgrade(&core)))?;
        publisher.inner.register(&core);
        Ok(Self { core })
    }

    pub(crate) fn from_core(core: Arc<WriterCore>) -> Self {
        Self { core }
    }

    /// Returns the writer with its type if that is `T`.
    #[must_use]
    pub fn downcast<T: TypeSupport>(&self) -> Option<DataWriter<T>> {
        self.core.is_of_type::<T>().then(|| DataWriter::of_this_type(self))
    }

    /// Enables a writer that was created disabled, and announces it (DDS 1.4 §2.2.2.1.1.7). Has no
    /// effect if the writer is already enabled.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if the publisher is not enabled.
    pub fn enable(&self) -> Result<()> {
        self.core.publisher.check_enabled("publisher")?;
        self.core.engine.call(|driver, now| Ok(driver.core.enable_writer(now, self.core.handle)?))
    }

    /// Changes the policies of the writer: any of them before it is enabled, afterwards those that
    /// are changeable according to DDS 1.4 §2.2.3. The change is announced. Readers that became
    /// incompatible are unmatched, and readers that became compatible are matched. Samples in
    /// transit are not affected.
    ///
    /// # Errors
    /// [`Error::ImmutablePolicy`], [`Error::InconsistentPolicy`]. All policies are then unchanged.
    /// [`Error::Transport`] if the operating system refuses a socket for a new TRANSPORT_PRIORITY.
    pub fn set_qos(&self, qos: DataWriterQos) -> Result<()> {
        let core = &*self.core;
        let mut settings = core.settings.lock().expect(UNDISTURBED);
        let (participant, topic) = (&core.publisher.participant, &core.topic.name);
        let (former, timing) =
            (participant.writer_timing(topic, &settings.qos)?, participant.writer_timing(topic, &qos)?);
        core.engine.call_state(|state, now| {
            let driver = state.driver()?;
            driver.core.set_writer_qos(now, core.handle, qos.clone())?;
            if former.transport_priority() != timing.transport_priority() {
                let spec = FlowSpec { own_port: core.own_port, transport_priority: timing.transport_priority() };
                let (flows, unicast) = driver.open_writer_flows(&spec, core.transports)?;
                driver.core.set_writer_flows(now, core.handle, flows, unicast)?;
                driver.transmit(now);
                driver.close_writer_flows(std::mem::replace(&mut settings.flows, flows));
            }
            driver.core.set_writer_priority(core.handle, timing.priority)?;
            state.set_timing(core.target, timing)
        })?;
        let autodispose = qos.writer_data_lifecycle.autodispose_unregistered_instances;
        core.autodispose.store(autodispose, Ordering::Relaxed);
        settings.qos = qos;
        Ok(())
    }

    /// Reports whether a sample may displace an older one (HISTORY KEEP_LAST).
    pub(super) fn keeps_last(&self) -> bool {
        matches!(self.core.settings.lock().expect(UNDISTURBED).qos.history, History::KeepLast(_))
    }

    /// Moves calls of the writer's own listener to another executor, at the priority of the writer,
    /// or with `None` back to that of the participant. Listeners of publisher and participant are
    /// not moved.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] if the executor has reached its limit of jobs,
    /// [`Error::PreconditionNotMet`] if it has ended, [`Error::AlreadyDeleted`] after
    /// [`close`](Self::close), [`Error::IllegalOperation`] under `Runtime::Inline`, whose
    /// participants have one thread.
    pub fn run_listener_on(&self, executor: Option<&Executor>) -> Result<()> {
        self.core.engine.run_listener_on(executor, self.core.target, None)
    }

    /// Returns the policies of the writer.
    #[must_use]
    pub fn qos(&self) -> DataWriterQos {
        self.core.settings.lock().expect(UNDISTURBED).qos.clone()
    }

    /// Asserts the liveliness of a writer with manual LIVELINESS without writing a sample
    /// (DDS 1.4 §2.2.2.4.2.22). With `MANUAL_BY_PARTICIPANT` it also asserts the participant's
    /// other writers of that kind.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn assert_liveliness(&self) -> Result<()> {
        let core = &*self.core;
        core.engine.call(|driver, now| {
            driver.core.assert_writer_liveliness(now, core.handle)?;
            if core.liveliness == LivelinessKind::ManualByParticipant {
                driver.core.assert_liveliness(now);
            }
            Ok(())
        })
    }

    /// Waits until all reliable readers that are matched now have acknowledged all samples written.
    ///
    /// # Errors
    /// [`Error::Timeout`] if some did not before `max_wait` expired, [`Error::BadParameter`] for a
    /// negative duration.
    pub fn wait_for_acknowledgments(&self, max_wait: impl Into<Duration>) -> Result<()> {
        let (core, max_wait) = (&*self.core, clock::timeout(max_wait)?);
        core.engine
            .block_on(
                &core.progress,
                || clock::deadline(clock::now(), max_wait),
                |driver, now| {
                    driver.core.flush_writer(now, core.handle)?;
                    driver.transmit(now);
                    Ok(driver.core.is_acknowledged(core.handle, None)?.then_some(()))
                },
            )
            .map_err(|error| {
                error.explained(|| format!("topic \"{}\": {}", core.topic.name, core.unacknowledged_text()))
            })
    }

    /// Sends at once the samples that LATENCY_BUDGET delays for sharing datagrams with later
    /// samples.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn flush(&self) -> Result<()> {
        self.core.engine.call(|driver, now| Ok(driver.core.flush_writer(now, self.core.handle)?))
    }

    /// Returns the matched readers of durability services. A durability service stores the samples
    /// of TRANSIENT and PERSISTENT writers and acknowledges them once they are stored:
    /// [`durable_upto`](Self::durable_upto).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn durability_services(&self) -> Result<Vec<Guid>> {
        let services = self.core.engine.inspect(|driver| Ok(driver.core.durability_services(self.core.handle)?))?;
        Ok(services.into_iter().map(|(reader, _)| reader).collect())
    }

    /// Returns the last sequence number up to which all matched durability services have stored the
    /// samples. Numbers begin at 1. Samples of a PERSISTENT writer are then on disk. Returns `None`
    /// if no service is matched; only the writer then keeps its samples, like a TRANSIENT_LOCAL
    /// one.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn durable_upto(&self) -> Result<Option<SequenceNumber>> {
        let services = self.core.engine.inspect(|driver| Ok(driver.core.durability_services(self.core.handle)?))?;
        Ok(services.into_iter().map(|(_, upto)| upto).min())
    }

    /// Waits until at least one durability service is matched and all matched services have stored
    /// all samples written.
    ///
    /// # Errors
    /// [`Error::Timeout`] if they did not before `max_wait` expired, [`Error::BadParameter`] for a
    /// negative duration.
    pub fn wait_for_durability(&self, max_wait: impl Into<Duration>) -> Result<()> {
        let (core, max_wait) = (&*self.core, clock::timeout(max_wait)?);
        core.engine.block_on(
            &core.progress,
            || clock::deadline(clock::now(), max_wait),
            |driver, _| {
                let services = driver.core.durability_services(core.handle)?;
                let last = driver.core.last_written(core.handle)?;
                Ok((!services.is_empty() && services.iter().all(|(_, upto)| *upto >= last)).then_some(()))
            },
        )
    }

    /// Returns the number of matched readers and its change since the last call.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn publication_matched_status(&self) -> Result<MatchedStatus> {
        self.status(StatusMask::PUBLICATION_MATCHED, |driver| driver.core.publication_matched_status(self.core.handle))
    }

    /// Returns the number of readers whose requested QoS is incompatible, and the policy of the
    /// last one.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn offered_incompatible_qos_status(&self) -> Result<IncompatibleQosStatus> {
        self.status(StatusMask::OFFERED_INCOMPATIBLE_QOS, |driver| {
            driver.core.offered_incompatible_qos_status(self.core.handle)
        })
    }

    /// Returns the number of DEADLINE periods in which an instance was not written, and the last
    /// such instance (DDS 1.4 §2.2.3.7).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn offered_deadline_missed_status(&self) -> Result<DeadlineMissedStatus> {
        self.status(StatusMask::OFFERED_DEADLINE_MISSED, |driver| {
            driver.core.offered_deadline_missed_status(self.core.handle)
        })
    }

    /// Returns how often the writer was not asserted within its lease (DDS 1.4 §2.2.3.11).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn liveliness_lost_status(&self) -> Result<LivelinessLostStatus> {
        self.status(StatusMask::LIVELINESS_LOST, |driver| driver.core.liveliness_lost_status(self.core.handle))
    }

    /// Returns the number of readers of the topic that have another type.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn inconsistent_topic_status(&self) -> Result<InconsistentTopicStatus> {
        self.status(StatusMask::INCONSISTENT_TOPIC, |driver| {
            driver.core.writer_inconsistent_topic_status(self.core.handle)
        })
    }

    /// Returns the matched readers.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn matched_subscriptions(&self) -> Result<Vec<Guid>> {
        self.core.engine.inspect(|driver| Ok(driver.core.matched_subscriptions(self.core.handle)?))
    }

    /// Returns the discovery data of a matched reader (`get_matched_subscription_data`).
    ///
    /// # Errors
    /// [`Error::BadParameter`] if the reader is not matched, [`Error::AlreadyDeleted`] after
    /// [`close`](Self::close).
    pub fn matched_subscription_data(&self, reader: Guid) -> Result<SubscriptionBuiltinTopicData> {
        self.core.engine.inspect(|driver| {
            let is_matched = driver.core.matched_subscriptions(self.core.handle)?.contains(&reader);
            let data = is_matched.then(|| driver.core.subscription_data(reader)).flatten();
            let unknown = || Error::bad_parameter(format!("reader {reader} is not matched"));
            data.map(SubscriptionBuiltinTopicData::from).ok_or_else(unknown)
        })
    }

    /// Returns the publisher of the writer.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        Publisher { inner: Arc::clone(&self.core.publisher) }
    }

    /// Deletes the writer and unmatches its readers. Its instances are not disposed. Other handles
    /// of the writer return [`Error::AlreadyDeleted`] from then on.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if it was already closed.
    pub fn close(&self) -> Result<()> {
        self.core.delete()
    }
}

impl WriterCore {
    fn delete(&self) -> Result<()> {
        let flows = self.settings.lock().expect(UNDISTURBED).flows;
        let listener = self.engine.call_state(|state, now| {
            let driver = state.driver()?;
            driver.core.flush_writer(now, self.handle)?;
            driver.transmit(now);
            driver.core.delete_writer(now, self.handle)?;
            driver.transmit(now);
            driver.close_writer_flows(flows);
            Ok(state.remove_endpoint(self.target))
        })?;
        drop(listener);
        Ok(())
    }
}

impl Deref for WriterCore {
    type Target = AnyEndpoint;

    fn deref(&self) -> &AnyEndpoint {
        &self.endpoint
    }
}

impl Drop for WriterCore {
    fn drop(&mut self) {
        check_dropped("writer", self.delete());
    }
}

impl Deref for AnyDataWriter {
    type Target = AnyEndpoint;

    fn deref(&self) -> &AnyEndpoint {
        &self.core
    }
}

impl fmt::Debug for AnyDataWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as("DataWriter", f)
    }
}
