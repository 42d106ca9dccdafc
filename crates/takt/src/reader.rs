//! Readers (DDS 1.4 §2.2.2.5.3): deserialise from the history into the caller's memory.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

use takt_core::{
    BuiltinTopic, FlowTag, InstanceHandle, Instant, ReadCursor, ReaderHandle, ReaderSpec, SampleInfo, SampleRef,
    SampleStates, Selector,
};
use takt_transport::FlowSpec;
use takt_wire::Guid;
use takt_xtypes::Representation;

use crate::builtin::PublicationBuiltinTopicData;
use crate::condition::{ReadCondition, StatusCondition};
use crate::dynamic;
use crate::key::TypeKey;
use crate::listener::{DataReaderListener, ReaderCallback};
use crate::qos::DataReaderQos;
use crate::runtime::clock;
use crate::runtime::driver::Driver;
use crate::runtime::engine::Engine;
use crate::runtime::event_count::EventCount;
use crate::runtime::state::{Callback, State, Target};
use crate::runtime::tasks::TaskKey;
use crate::sample::Sample;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LivelinessChangedStatus, MatchedStatus,
    SampleLostStatus, SampleRejectedStatus, Signal, StatusMask,
};
use crate::subscriber::{Subscriber, SubscriberInner};
use crate::topic::TopicInner;
use crate::{Error, Flow, Readable, Result, Topic, TopicDescription, TypeSupport};

/// Receives samples of `T`. Handles are clones of one another; the reader is deleted with the last one, or by
/// [`close`](Self::close).
pub struct DataReader<T: Readable> {
    inner: Arc<ReaderInner<T>>,
}

pub(crate) struct ReaderInner<T: Readable> {
    handle: ReaderHandle,
    guid: Guid,
    flow: FlowTag,
    signal: Arc<Signal>,
    deserialize_failures: AtomicU64,
    engine: Arc<Engine>,
    qos: DataReaderQos,
    topic: Topic<T>,
    /// Keeps the subscriber, and by it the participant.
    subscriber: Arc<SubscriberInner>,
}

impl<T: TypeSupport> DataReader<T> {
    pub(crate) fn create(
        subscriber: &Subscriber,
        description: &impl TopicDescription<Data = T>,
        qos: DataReaderQos,
        flow: Flow,
    ) -> Result<Self> {
        let topic = description.topic();
        let participant = &subscriber.inner.participant;
        if !Arc::ptr_eq(participant, &topic.inner.participant) {
            return Err(Error::BadParameter { what: "the topic belongs to another participant".into() });
        }
        let engine = Arc::clone(&participant.engine);
        let signal = Arc::new(Signal::new());
        let spec = FlowSpec { own_port: flow.own_port, transport_priority: 0 };
        let create = |content_filter| {
            engine.call_state(|state, now| {
                let driver = state.driver()?;
                let (flow, unicast) = driver.open_flow(&spec)?;
                let spec = ReaderSpec {
                    topic_name: topic.name().to_owned(),
                    type_name: T::TYPE_NAME.to_owned(),
                    qos: qos.clone(),
                    subscriber: subscriber.qos().clone(),
                    topic_data: topic.qos().topic_data.clone(),
                    key: T::HAS_KEY.then(|| Box::new(TypeKey::<T>::default()) as _),
                    type_information: dynamic::announce::<T>(&mut driver.core),
                    max_serialized_len: max_serialized_len::<T>(),
                    unicast,
                    content_filter,
                };
                let created = driver.core.create_reader(now, spec);
                let handle = created.inspect_err(|_| driver.close_flow(flow))?;
                let guid = driver.core.reader_guid(handle)?;
                state.add_endpoint(Target::Reader(handle), Arc::clone(&signal), Arc::new(EventCount::new()));
                Ok((handle, (guid, flow)))
            })
        };
        let (handle, (guid, flow)) = match description.filtered() {
            Some(filtered) => filtered.attach(|filter| create(Some(filter)))?,
            None => create(None)?,
        };
        let (topic, subscriber) = (topic.clone(), Arc::clone(&subscriber.inner));
        let deserialize_failures = AtomicU64::new(0);
        let inner = ReaderInner { handle, guid, flow, signal, deserialize_failures, engine, qos, topic, subscriber };
        Ok(Self::from_inner(Arc::new(inner)))
    }
}

impl<T: Readable> DataReader<T> {
    pub(crate) fn create_builtin(subscriber: &Subscriber, topic: TopicInner, kind: BuiltinTopic) -> Result<Self> {
        let engine = Arc::clone(&subscriber.inner.participant.engine);
        let signal = Arc::new(Signal::new());
        let (handle, guid) = engine.call_state(|state, now| {
            let core = &mut state.driver()?.core;
            let handle = core.create_builtin_reader(now, kind);
            let guid = core.reader_guid(handle)?;
            state.add_endpoint(Target::Reader(handle), Arc::clone(&signal), Arc::new(EventCount::new()));
            Ok((handle, guid))
        })?;
        Ok(Self::from_inner(Arc::new(ReaderInner {
            handle,
            guid,
            flow: FlowTag::default(),
            signal,
            deserialize_failures: AtomicU64::new(0),
            engine,
            qos: BuiltinTopic::reader_qos(),
            topic: Topic::new(topic),
            subscriber: Arc::clone(&subscriber.inner),
        })))
    }

    pub(crate) fn downgrade(&self) -> Weak<ReaderInner<T>> {
        Arc::downgrade(&self.inner)
    }

    /// Whether it can be used; false once it was closed.
    pub(crate) fn is_open(&self) -> Result<bool> {
        match self.inner.engine.look(|driver| Ok(driver.core.reader_guid(self.inner.handle)?)) {
            Err(Error::AlreadyDeleted) => Ok(false),
            result => result.map(|_| true),
        }
    }

    pub(crate) fn from_inner(inner: Arc<ReaderInner<T>>) -> Self {
        Self { inner }
    }

    /// Takes the oldest sample into `sample`, whose memory is reused. `None` if there is no sample.
    ///
    /// If [`SampleInfo::valid_data`] is false there are no data but only news of the instance; then the key members
    /// are set, if the key is known, and the others are as they were. A payload that is no `T` is dropped and counted
    /// ([`deserialize_failures`](Self::deserialize_failures)). Does not allocate, unless `T` needs more memory.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn take_next_sample(&self, sample: &mut T) -> Result<Option<SampleInfo>> {
        self.next(Selector::TAKE, &mut ReadCursor::default(), sample)
    }

    /// Reads the oldest sample that was not read before into `sample`, and leaves it. Otherwise as
    /// [`take_next_sample`](Self::take_next_sample).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn read_next_sample(&self, sample: &mut T) -> Result<Option<SampleInfo>> {
        self.next(
            Selector { sample_states: SampleStates::NOT_READ, ..Selector::READ },
            &mut ReadCursor::default(),
            sample,
        )
    }

    fn next(&self, selector: Selector, cursor: &mut ReadCursor, sample: &mut T) -> Result<Option<SampleInfo>> {
        self.pass(|driver, now| {
            while let Some(found) = driver.core.read_next(now, self.inner.handle, selector, cursor)? {
                if self.decode(&found.info, found.payload, sample) {
                    return Ok(Some(found.info));
                }
            }
            Ok(None)
        })
    }

    /// Reads or takes: the application has seen that there are data, and what was taken makes room.
    fn pass<R>(&self, read: impl FnOnce(&mut Driver, Instant) -> Result<R>) -> Result<R> {
        self.inner.engine.read(|state| self.pass_in(state, read))
    }

    fn pass_in<R>(&self, state: &mut State, read: impl FnOnce(&mut Driver, Instant) -> Result<R>) -> Result<R> {
        let driver = state.driver()?;
        let now = driver.now();
        self.inner.signal.clear(StatusMask::DATA_AVAILABLE);
        let result = read(driver, now)?;
        let sends_soon = driver.core.has_transmit();
        driver.core.end_read(now, self.inner.handle)?;
        if !sends_soon && driver.core.has_transmit() {
            driver.transmit(clock::now());
        }
        Ok(result)
    }

    /// Takes the oldest sample, or has `waker` woken when there is one.
    pub(crate) fn poll_sample(&self, task: &mut Option<TaskKey>, waker: &Waker) -> Poll<Result<Sample<T>>> {
        let mut former = None;
        let result = self.inner.engine.read(|state| {
            let found = self.pass_in(state, |driver, now| self.take_one(driver, now))?;
            if found.is_none() {
                former = state.add_task(self.target(), task, waker)?;
            }
            Ok(found)
        });
        drop(former);
        result.transpose().map_or(Poll::Pending, Poll::Ready)
    }

    fn take_one(&self, driver: &mut Driver, now: Instant) -> Result<Option<Sample<T>>> {
        let mut cursor = ReadCursor::default();
        while let Some(found) = driver.core.read_next(now, self.inner.handle, Selector::TAKE, &mut cursor)? {
            let mut sample = Sample::new(found.info);
            if self.decode_into(&found, &mut sample) {
                return Ok(Some(sample));
            }
        }
        Ok(None)
    }

    /// A future or stream of this reader waits no more.
    pub(crate) fn remove_task(&self, task: TaskKey) {
        self.inner.engine.remove_task(self.target(), task);
    }

    fn target(&self) -> Target {
        Target::Reader(self.inner.handle)
    }

    /// Decodes a payload into `sample`; false, and counted, if it is no `T`.
    fn decode(&self, info: &SampleInfo, payload: &[u8], sample: &mut T) -> bool {
        let is_decoded = sample.decode(info, payload);
        if !is_decoded {
            self.inner.deserialize_failures.fetch_add(1, Ordering::Relaxed);
        }
        is_decoded
    }

    /// As [`decode`](Self::decode), with the memory that `sample` has.
    fn decode_into(&self, found: &SampleRef<'_>, sample: &mut Sample<T>) -> bool {
        sample.info = found.info;
        let mut value = sample.take_value();
        let decoded = self.decode(&found.info, found.payload, &mut value);
        if found.info.valid_data {
            sample.data = Some(value);
        } else if !found.payload.is_empty() {
            sample.key = Some(value);
        }
        decoded
    }

    /// Takes up to `max` samples, in order of arrival.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn take(&self, max: usize) -> Result<Vec<Sample<T>>> {
        self.select(Selector::TAKE, max)
    }

    /// Reads up to `max` samples, in order of arrival, and leaves them.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn read(&self, max: usize) -> Result<Vec<Sample<T>>> {
        self.select(Selector::READ, max)
    }

    /// Reads or takes up to `max` of the samples that the selector wants, in order of arrival.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn select(&self, selector: Selector, max: usize) -> Result<Vec<Sample<T>>> {
        let mut samples = Vec::new();
        self.select_into(selector, &mut samples, max)?;
        Ok(samples)
    }

    /// Takes up to `max` samples in place of what `samples` holds, whose memory is reused.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close); then `samples` is empty.
    pub fn take_into(&self, samples: &mut Vec<Sample<T>>, max: usize) -> Result<()> {
        self.select_into(Selector::TAKE, samples, max)
    }

    fn select_into(&self, selector: Selector, samples: &mut Vec<Sample<T>>, max: usize) -> Result<()> {
        let mut count = 0;
        let result = self.pass(|driver, now| {
            let mut cursor = ReadCursor::default();
            while count < max {
                let Some(found) = driver.core.read_next(now, self.inner.handle, selector, &mut cursor)? else { break };
                if count == samples.len() {
                    samples.push(Sample::new(found.info));
                }
                let sample = &mut samples[count];
                count += usize::from(self.decode_into(&found, sample));
            }
            Ok(())
        });
        samples.truncate(count);
        result
    }

    /// Takes up to `max` samples as they came off the wire: `visit` sees each payload with its encapsulation header
    /// (the key's if [`SampleInfo::valid_data`] is false, empty if that is unknown). Returns how many there were.
    ///
    /// `visit` runs inside the call, so it must not call anything on this participant's entities: that is
    /// [`Error::IllegalOperation`].
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn take_payloads(&self, max: usize, mut visit: impl FnMut(&[u8], &SampleInfo)) -> Result<usize> {
        self.pass(|driver, now| {
            let mut cursor = ReadCursor::default();
            let mut count = 0;
            while count < max {
                let found = driver.core.read_next(now, self.inner.handle, Selector::TAKE, &mut cursor)?;
                let Some(found) = found else { break };
                visit(found.payload, &found.info);
                count += 1;
            }
            Ok(count)
        })
    }

    /// Sets the key members of `sample` to the key of an instance; false if the instance is unknown
    /// (`get_key_value`, DDS 1.4 §2.2.2.5.3).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn key_value(&self, sample: &mut T, instance: InstanceHandle) -> Result<bool> {
        self.inner.engine.look(|driver| {
            let key = driver.core.key_of(self.inner.handle, instance)?;
            Ok(key.is_some_and(|key| sample.decode_key(instance, key)))
        })
    }

    /// The handle of the sample's instance (`lookup_instance`). Says nothing about whether it has samples.
    ///
    /// # Errors
    /// [`Error::Encode`] if the key exceeds a bound of its type.
    pub fn lookup_instance(&self, sample: &T) -> Result<InstanceHandle> {
        sample.instance_handle()
    }

    /// Payloads that were dropped since they are no `T`.
    #[must_use]
    pub fn deserialize_failures(&self) -> u64 {
        self.inner.deserialize_failures.load(Ordering::Relaxed)
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
        self.inner.engine.look(|driver| {
            self.inner.signal.clear(status);
            Ok(read(driver, self.inner.handle)?)
        })
    }

    /// The writers that are matched.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn matched_publications(&self) -> Result<Vec<Guid>> {
        self.inner.engine.look(|driver| Ok(driver.core.matched_publications(self.inner.handle)?))
    }

    /// What is known of a matched writer (`get_matched_publication_data`).
    ///
    /// # Errors
    /// [`Error::BadParameter`] if it is not matched, [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn matched_publication_data(&self, writer: Guid) -> Result<PublicationBuiltinTopicData> {
        self.inner.engine.look(|driver| {
            let is_matched = driver.core.matched_publications(self.inner.handle)?.contains(&writer);
            let data = is_matched.then(|| driver.core.publication_data(writer)).flatten();
            let unknown = || Error::BadParameter { what: format!("writer {writer} is not matched") };
            data.map(PublicationBuiltinTopicData::from).ok_or_else(unknown)
        })
    }

    /// The condition that is true while a status has changed.
    #[must_use]
    pub fn status_condition(&self) -> StatusCondition {
        StatusCondition { signal: Arc::clone(&self.inner.signal), engine: Arc::clone(&self.inner.engine) }
    }

    /// A condition that is true while the reader holds samples that the selector wants.
    #[must_use]
    pub fn read_condition(&self, selector: Selector) -> ReadCondition {
        let (signal, engine) = (Arc::clone(&self.inner.signal), Arc::clone(&self.inner.engine));
        ReadCondition { signal, engine, reader: self.inner.handle, selector }
    }

    /// The statuses that have changed since they were last read.
    #[must_use]
    pub fn status_changes(&self) -> StatusMask {
        self.inner.signal.changes()
    }

    /// Has status changes told to `listener`, in place of a former one. What has changed already is told at once.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn set_listener(&self, listener: Box<dyn DataReaderListener<T>>) -> Result<()> {
        let callback = ReaderCallback { reader: Arc::downgrade(&self.inner), listener };
        self.replace_listener(Some(Box::new(callback)))
    }

    /// Has status changes told to nobody.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn clear_listener(&self) -> Result<()> {
        self.replace_listener(None)
    }

    fn replace_listener(&self, listener: Option<Box<dyn Callback>>) -> Result<()> {
        let target = Target::Reader(self.inner.handle);
        let former = self.inner.engine.call_state(|state, _| state.set_listener(target, listener))?;
        drop(former);
        Ok(())
    }

    /// The reader's identity in the domain.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.inner.guid
    }

    /// The reader's policies.
    #[must_use]
    pub fn qos(&self) -> &DataReaderQos {
        &self.inner.qos
    }

    /// The topic read from.
    #[must_use]
    pub fn topic(&self) -> &Topic<T> {
        &self.inner.topic
    }

    /// The subscriber that the reader belongs to.
    #[must_use]
    pub fn subscriber(&self) -> Subscriber {
        Subscriber { inner: Arc::clone(&self.inner.subscriber) }
    }

    /// Deletes the reader, whatever handles there are; they answer [`Error::AlreadyDeleted`] then.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if it was.
    pub fn close(&self) -> Result<()> {
        self.inner.delete()
    }
}

impl<T: Readable> ReaderInner<T> {
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

impl<T: Readable> Drop for ReaderInner<T> {
    fn drop(&mut self) {
        match self.delete() {
            // Another thread than the owner's of an inline participant cannot delete; the participant's end will.
            Ok(()) | Err(Error::AlreadyDeleted | Error::IllegalOperation { .. }) => {}
            Err(error) => debug_assert!(false, "deleting a reader failed: {error}"),
        }
    }
}

impl<T: Readable> Clone for DataReader<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T: Readable> fmt::Debug for DataReader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataReader").field("guid", &self.guid()).field("topic", self.topic()).finish_non_exhaustive()
    }
}

/// The longest payload of `T` in any encoding that a reader accepts, if it has a bound.
fn max_serialized_len<T: TypeSupport>() -> Option<usize> {
    Some(T::max_serialized_len(Representation::Xcdr1)?.max(T::max_serialized_len(Representation::Xcdr2)?))
}
