//! Writers whatever their type: statuses, conditions, policies, and what becomes of them.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use takt_core::{Instant, WriterFlows, WriterHandle, WriterSpec};
use takt_transport::FlowSpec;
use takt_wire::{Guid, Locator, SequenceNumber};
use takt_xtypes::Representation;

use super::{DataWriter, representation};
use crate::builtin::SubscriptionBuiltinTopicData;
use crate::condition::StatusCondition;
use crate::publisher::{Publisher, PublisherInner};
use crate::qos::{DataWriterQos, History, LivelinessKind};
use crate::runtime::clock;
use crate::runtime::driver::Driver;
use crate::runtime::engine::Engine;
use crate::runtime::event_count::EventCount;
use crate::runtime::listeners::{EndpointRef, Listener, Place};
use crate::runtime::pi_mutex::PiMutex;
use crate::runtime::roles::Set;
use crate::runtime::state::{Endpoint, Identity, Target};
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LivelinessLostStatus, MatchedStatus, Signal,
    StatusMask,
};
use crate::topic::{AnyTopic, TopicInner};
use crate::{Duration, Error, Executor, Flow, Result, TRANSPORT_PROPERTY, TypeSupport};

/// A writer, whatever its type: what every [`DataWriter`] is besides writing. Handles are clones of one another; the
/// writer is deleted with the last one, or by [`close`](Self::close).
#[derive(Clone)]
pub struct AnyDataWriter {
    pub(crate) core: Arc<WriterCore>,
}

pub(crate) struct WriterCore {
    pub(crate) handle: WriterHandle,
    guid: Guid,
    pub(crate) signal: Arc<Signal>,
    pub(crate) progress: Arc<EventCount>,
    pub(crate) engine: Arc<Engine>,
    /// `Limits::endpoint_memory_bytes`: what a sample can have at most.
    sample_len_max: usize,
    /// `RELIABILITY.max_blocking_time`.
    pub(crate) patience: Duration,
    liveliness: LivelinessKind,
    /// `WRITER_DATA_LIFECYCLE.autodispose_unregistered_instances`.
    pub(crate) autodispose: AtomicBool,
    settings: PiMutex<Settings>,
    own_port: bool,
    /// The transports that carry its data.
    by: Set,
    pub(crate) representation: Representation,
    pub(crate) topic: Arc<TopicInner>,
    /// Keeps the publisher, and by it the participant.
    /// Of a writer whose host has stages; calls of others are not timed.
    pub(crate) write_times: Option<WriteTimes>,
    pub(crate) publisher: Arc<PublisherInner>,
    type_id: TypeId,
}

/// The longest call of `write` so far, in nanoseconds.
#[derive(Default)]
pub(crate) struct WriteTimes(AtomicU64);

/// What may change of a writer.
struct Settings {
    qos: DataWriterQos,
    flows: WriterFlows,
}

const UNDISTURBED: &str = "no code of others runs under this lock";
/// Readers that an error names.
const NAMED_MAX: usize = 4;
const ENDPOINT_MEMORY: &str = "endpoint_memory_bytes";

impl WriterCore {
    /// When a call of `write` begins, if it is timed.
    #[inline]
    pub(crate) fn begin_write(&self) -> Option<(&WriteTimes, Instant)> {
        self.write_times.as_ref().map(|times| (times, clock::now()))
    }

    /// A call of `write` that is timed has ended: the participant is told if none took longer.
    #[inline]
    pub(crate) fn end_write(&self, begun: Option<(&WriteTimes, Instant)>) {
        let Some((times, begun)) = begun else { return };
        let ns = u64::try_from(clock::now().since(begun).as_nanos()).unwrap_or(u64::MAX);
        if times.0.fetch_max(ns, Ordering::Relaxed) < ns {
            // A closed participant reports nothing.
            let _ = self.engine.look(|driver| Ok(driver.core.note_write_time(self.handle, ns)?));
        }
    }

    /// Refuses a sample of which the limits have no room, whatever transport would carry it.
    #[inline]
    pub(crate) fn check_len(&self, len: usize) -> Result<()> {
        if len <= self.sample_len_max { Ok(()) } else { Err(self.too_large(len)) }
    }

    /// Why the core refuses a sample of so many octets.
    #[cold]
    pub(crate) fn refusal(&self, error: takt_core::Error, len: usize) -> Error {
        match error {
            // Of less the memory is in use by other samples.
            takt_core::Error::OutOfResources { limit: ENDPOINT_MEMORY, value } if len as u64 > value => {
                self.too_large(len)
            }
            other => other.into(),
        }
    }

    /// Why `write` found no room in time.
    #[cold]
    pub(crate) fn no_room(&self) -> String {
        let limit = match self.settings.lock().expect(UNDISTURBED).qos.resource_limits.max_samples {
            Some(max) => format!("max_samples {max}"),
            None => "Limits::default_max_samples".to_owned(),
        };
        let patience =
            self.patience.as_nanos().map_or_else(String::new, |nanos| format!(" for {} ms", nanos / 1_000_000));
        let topic = &self.topic.name;
        format!("no room in the history of the writer of \"{topic}\" ({limit}){patience}; {}", self.lagging())
    }

    /// The readers that have not acknowledged, for people.
    #[cold]
    pub(crate) fn lagging(&self) -> String {
        let found = self.engine.look(|driver| Ok(driver.core.lagging_readers(self.handle, NAMED_MAX)?));
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
    /// A writer of values of type `T`. `spec` says what it is to be, given its flows and its own locators.
    pub(crate) fn create<T: 'static>(
        publisher: &Publisher,
        topic: Arc<TopicInner>,
        qos: DataWriterQos,
        flow: Flow,
        spec: impl FnOnce(&mut Driver, WriterFlows, Vec<Locator>) -> WriterSpec,
    ) -> Result<Self> {
        let participant = &publisher.inner.participant;
        if !Arc::ptr_eq(participant, &topic.participant) {
            return Err(Error::BadParameter { what: "the topic belongs to another participant".into() });
        }
        let representation = representation(&qos.data_representation)?;
        let engine = Arc::clone(&participant.engine);
        let (signal, progress) = (Arc::new(Signal::new()), Arc::new(EventCount::new()));
        let place = Place { group: publisher.inner.parent, topic: topic.parent };
        let timing = participant.writer_timing(&topic.name, &qos)?;
        let stages = participant.writer_stages(&topic.name);
        let write_times = stages.is_some().then(WriteTimes::default);
        let own_port = flow.own_port || timing.own_port;
        let flow_spec = FlowSpec { own_port, transport_priority: timing.transport_priority() };
        let is_enabled = publisher.inner.enables_entities();
        let (handle, guid, flows, by, sample_len_max) = engine.call_state(|state, now| {
            let driver = state.driver()?;
            let by = driver.carriers_of(&topic.name, qos.property.get(TRANSPORT_PROPERTY))?;
            let (flows, unicast) = driver.open_writer_flows(&flow_spec, by)?;
            let spec = spec(driver, flows, unicast);
            let (kinds, core) = (driver.kinds_of(by), &mut driver.core);
            let created = core.prepare_writer(now, spec).and_then(|handle| {
                core.confine_writer(handle, kinds)?;
                core.set_writer_priority(handle, timing.priority)?;
                core.set_writer_host_stages(handle, stages)?;
                if is_enabled {
                    core.enable_writer(now, handle)?;
                }
                Ok(handle)
            });
            let handle = created.inspect_err(|_| driver.close_writer_flows(flows))?;
            let guid = driver.core.writer_guid(handle)?;
            let sample_len_max = driver.core.limits().endpoint_memory_bytes;
            let identity = Identity { target: Target::Writer(handle), guid, topic: topic.name.clone() };
            state.add_endpoint(Endpoint::new(identity, Arc::clone(&signal), Arc::clone(&progress), place, timing));
            Ok((handle, guid, flows, by, sample_len_max))
        })?;
        let core = Arc::new(WriterCore {
            handle,
            guid,
            signal,
            progress,
            engine,
            liveliness: qos.liveliness.kind,
            sample_len_max,
            patience: qos.reliability.max_blocking_time,
            autodispose: AtomicBool::new(qos.writer_data_lifecycle.autodispose_unregistered_instances),
            settings: PiMutex::new(Settings { qos, flows }),
            own_port,
            by,
            representation,
            topic,
            write_times,
            publisher: Arc::clone(&publisher.inner),
            type_id: TypeId::of::<T>(),
        });
        let endpoint = EndpointRef::Writer(Arc::downgrade(&core));
        core.engine.call_state(|state, _| {
            state.complete(Target::Writer(handle), endpoint);
            Ok(())
        })?;
        publisher.inner.adopt(&core);
        Ok(Self { core })
    }

    pub(crate) fn from_core(core: Arc<WriterCore>) -> Self {
        Self { core }
    }

    /// The writer with its type, if that is `T`.
    #[must_use]
    pub fn downcast<T: TypeSupport>(&self) -> Option<DataWriter<T>> {
        (self.core.type_id == TypeId::of::<T>()).then(|| DataWriter::of_this_type(self))
    }

    /// Announces a writer that was created disabled (DDS 1.4 §2.2.2.1.1.7). Does nothing if it is enabled.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if its publisher is not enabled.
    pub fn enable(&self) -> Result<()> {
        self.core.publisher.check_enabled()?;
        self.core.engine.call(|driver, now| Ok(driver.core.enable_writer(now, self.core.handle)?))
    }

    /// Changes the writer's policies: before it is enabled any, afterwards those that DDS 1.4 §2.2.3 calls changeable.
    /// Others are told, and readers that no longer fit, or fit now, are parted or matched. Samples that are on their way
    /// are not affected.
    ///
    /// # Errors
    /// [`Error::ImmutablePolicy`], [`Error::InconsistentPolicy`]: then all stay as they were. [`Error::Transport`] if the
    /// machine refuses a socket of another TRANSPORT_PRIORITY.
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
                let (flows, unicast) = driver.open_writer_flows(&spec, core.by)?;
                driver.core.set_writer_flows(now, core.handle, flows, unicast)?;
                driver.transmit(now);
                driver.close_writer_flows(std::mem::replace(&mut settings.flows, flows));
            }
            driver.core.set_writer_priority(core.handle, timing.priority)?;
            state.set_timing(Target::Writer(core.handle), timing)
        })?;
        let autodispose = qos.writer_data_lifecycle.autodispose_unregistered_instances;
        core.autodispose.store(autodispose, Ordering::Relaxed);
        settings.qos = qos;
        Ok(())
    }

    /// Whether a sample may take the place of an older one (HISTORY KEEP_LAST).
    pub(super) fn keeps_last(&self) -> bool {
        matches!(self.core.settings.lock().expect(UNDISTURBED).qos.history, History::KeepLast(_))
    }

    /// Has this executor call the writer's own listener from now on, as urgent as the writer is, instead of the participant's; `None`: the
    /// participant's again. Listeners of the levels above stay with the participant.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] if the executor has no room for a job, [`Error::PreconditionNotMet`] if it has ended,
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close), [`Error::IllegalOperation`] under `Runtime::Inline`, whose participants have one thread.
    pub fn run_listener_on(&self, executor: Option<&Executor>) -> Result<()> {
        self.core.engine.run_listener_on(executor, Target::Writer(self.core.handle), None)
    }

    /// Has the listener called again that was suspended since it took longer than its [budget](crate::BUDGET_PROPERTY). Does
    /// nothing if it was not.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn resume_listener(&self) -> Result<()> {
        self.core.engine.call_state(|state, _| state.resume(Target::Writer(self.core.handle)))
    }

    /// The writer's policies.
    #[must_use]
    pub fn qos(&self) -> DataWriterQos {
        self.core.settings.lock().expect(UNDISTURBED).qos.clone()
    }

    /// The name of the topic written to.
    #[must_use]
    pub fn topic_name(&self) -> &str {
        &self.core.topic.name
    }

    /// The name of its type.
    #[must_use]
    pub fn type_name(&self) -> &str {
        &self.core.topic.type_name
    }

    /// The topic written to, its type forgotten.
    #[must_use]
    pub fn any_topic(&self) -> AnyTopic {
        AnyTopic::from_inner(Arc::clone(&self.core.topic))
    }

    /// Shows that a writer whose `LIVELINESS` is manual lives, without writing (DDS 1.4 §2.2.2.4.2.22). Takes effect for
    /// the participant's other writers of that kind too if it is `MANUAL_BY_PARTICIPANT`.
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

    /// Waits until all reliable readers that are matched now have acknowledged everything written.
    ///
    /// # Errors
    /// [`Error::Timeout`] if some did not in time, [`Error::BadParameter`] for a negative time.
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
            .map_err(|error| error.explained(|| format!("topic \"{}\": {}", core.topic.name, core.lagging())))
    }

    /// Sends what LATENCY_BUDGET keeps back at present, so that it may share datagrams with what is written next.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn flush(&self) -> Result<()> {
        self.core.engine.call(|driver, now| Ok(driver.core.flush_writer(now, self.core.handle)?))
    }

    /// The readers of durability services that are matched. Such a service keeps what a TRANSIENT or PERSISTENT writer writes,
    /// and acknowledges what it has made safe: [`durable_upto`](Self::durable_upto).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn durability_services(&self) -> Result<Vec<Guid>> {
        let services = self.core.engine.look(|driver| Ok(driver.core.durability_services(self.core.handle)?))?;
        Ok(services.into_iter().map(|(reader, _)| reader).collect())
    }

    /// Up to which change (numbers begin at 1) all durability services that are matched now have made safe what was written:
    /// of a PERSISTENT writer it is on their disks. `None` if there is no service; then the writer alone keeps its samples, as
    /// a TRANSIENT_LOCAL one.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn durable_upto(&self) -> Result<Option<SequenceNumber>> {
        let services = self.core.engine.look(|driver| Ok(driver.core.durability_services(self.core.handle)?))?;
        Ok(services.into_iter().map(|(_, upto)| upto).min())
    }

    /// Waits until a durability service is matched, and those that are have made all safe that was written.
    ///
    /// # Errors
    /// [`Error::Timeout`] if they did not in time, [`Error::BadParameter`] for a negative time.
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

    /// How many readers are matched, and what changed since this was last asked.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn publication_matched_status(&self) -> Result<MatchedStatus> {
        self.status(StatusMask::PUBLICATION_MATCHED, |driver, writer| driver.core.publication_matched_status(writer))
    }

    /// How many readers ask for more than this writer offers, and for which policy the last one did.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn offered_incompatible_qos_status(&self) -> Result<IncompatibleQosStatus> {
        self.status(StatusMask::OFFERED_INCOMPATIBLE_QOS, |driver, writer| {
            driver.core.offered_incompatible_qos_status(writer)
        })
    }

    /// In how many periods of DEADLINE an instance was not written, and which one was not last (DDS 1.4 §2.2.3.7).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn offered_deadline_missed_status(&self) -> Result<DeadlineMissedStatus> {
        self.status(StatusMask::OFFERED_DEADLINE_MISSED, |driver, writer| {
            driver.core.offered_deadline_missed_status(writer)
        })
    }

    /// How often the writer was not asserted within its lease (DDS 1.4 §2.2.3.11).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn liveliness_lost_status(&self) -> Result<LivelinessLostStatus> {
        self.status(StatusMask::LIVELINESS_LOST, |driver, writer| driver.core.liveliness_lost_status(writer))
    }

    /// How many readers of the topic have another type.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn inconsistent_topic_status(&self) -> Result<InconsistentTopicStatus> {
        self.status(StatusMask::INCONSISTENT_TOPIC, |driver, writer| {
            driver.core.writer_inconsistent_topic_status(writer)
        })
    }

    fn status<S>(
        &self,
        status: StatusMask,
        read: impl FnOnce(&mut Driver, WriterHandle) -> std::result::Result<S, takt_core::Error>,
    ) -> Result<S> {
        self.core.engine.look(|driver| {
            self.core.signal.clear(status);
            Ok(read(driver, self.core.handle)?)
        })
    }

    /// The readers that are matched.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn matched_subscriptions(&self) -> Result<Vec<Guid>> {
        self.core.engine.look(|driver| Ok(driver.core.matched_subscriptions(self.core.handle)?))
    }

    /// What is known of a matched reader (`get_matched_subscription_data`).
    ///
    /// # Errors
    /// [`Error::BadParameter`] if it is not matched, [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn matched_subscription_data(&self, reader: Guid) -> Result<SubscriptionBuiltinTopicData> {
        self.core.engine.look(|driver| {
            let is_matched = driver.core.matched_subscriptions(self.core.handle)?.contains(&reader);
            let data = is_matched.then(|| driver.core.subscription_data(reader)).flatten();
            let unknown = || Error::BadParameter { what: format!("reader {reader} is not matched") };
            data.map(SubscriptionBuiltinTopicData::from).ok_or_else(unknown)
        })
    }

    /// The condition that is true while a status has changed.
    #[must_use]
    pub fn status_condition(&self) -> StatusCondition {
        StatusCondition { signal: Arc::clone(&self.core.signal), engine: Arc::clone(&self.core.engine) }
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
        let target = Target::Writer(self.core.handle);
        let former = self.core.engine.call_state(|state, _| state.set_listener(target, listener, mask))?;
        drop(former);
        Ok(())
    }

    /// The writer's identity in the domain.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.core.guid
    }

    /// The publisher that the writer belongs to.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        Publisher { inner: Arc::clone(&self.core.publisher) }
    }

    /// Deletes the writer, whatever handles there are; they answer [`Error::AlreadyDeleted`] then. Readers learn that
    /// it has gone; its instances are not disposed.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if it was.
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
            Ok(state.remove_endpoint(Target::Writer(self.handle)))
        })?;
        drop(listener);
        Ok(())
    }
}

impl Drop for WriterCore {
    fn drop(&mut self) {
        match self.delete() {
            // Another thread than the owner's of an inline participant cannot delete; the participant's end will.
            Ok(()) | Err(Error::AlreadyDeleted | Error::IllegalOperation { .. }) => {}
            Err(error) => debug_assert!(false, "deleting a writer failed: {error}"),
        }
    }
}

impl fmt::Debug for AnyDataWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataWriter")
            .field("guid", &self.guid())
            .field("topic_name", &self.topic_name())
            .finish_non_exhaustive()
    }
}
