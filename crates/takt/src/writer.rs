//! Writers (DDS 1.4 §2.2.2.4.2): serialise once, into the history, and send in the caller's context.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use takt_core::{ChangeKind, FlowTag, InstanceHandle, Instant, NewChange, WriteError, WriterHandle, WriterSpec};
use takt_transport::FlowSpec;
use takt_wire::{Guid, Timestamp};
use takt_xtypes::{EncodeError, Representation};

use crate::builtin::SubscriptionBuiltinTopicData;
use crate::condition::StatusCondition;
use crate::dynamic;
use crate::listener::{DataWriterListener, WriterCallback};
use crate::publisher::{Publisher, PublisherInner};
use crate::qos::{DataRepresentation, DataWriterQos, LivelinessKind};
use crate::runtime::clock;
use crate::runtime::driver::Driver;
use crate::runtime::engine::Engine;
use crate::runtime::event_count::EventCount;
use crate::runtime::state::{Callback, Target};
use crate::runtime::tasks::TaskKey;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LivelinessLostStatus, MatchedStatus, Signal,
    StatusMask,
};
use crate::{Duration, Error, Flow, Result, Topic, TypeSupport};

/// Publishes samples of `T`. Handles are clones of one another; the writer is deleted with the last one, or by
/// [`close`](Self::close).
pub struct DataWriter<T: TypeSupport> {
    inner: Arc<WriterInner<T>>,
}

pub(crate) struct WriterInner<T: TypeSupport> {
    handle: WriterHandle,
    guid: Guid,
    representation: Representation,
    flow: FlowTag,
    signal: Arc<Signal>,
    progress: Arc<EventCount>,
    engine: Arc<Engine>,
    qos: DataWriterQos,
    topic: Topic<T>,
    /// Keeps the publisher, and by it the participant.
    publisher: Arc<PublisherInner>,
}

/// Shorter serialised keys are followed by zeros, which readers skip.
///
/// INTEROP(Fast DDS 2.9.1): takes a serialised key of up to 16 bytes, encapsulation header and all, for the key hash,
/// even where the real one is in the inline QoS; longer ones it leaves alone.
pub(crate) const KEY_PAYLOAD_LEN_MIN: usize = 20;

impl<T: TypeSupport> DataWriter<T> {
    pub(crate) fn create(publisher: &Publisher, topic: &Topic<T>, qos: DataWriterQos, flow: Flow) -> Result<Self> {
        let participant = &publisher.inner.participant;
        if !Arc::ptr_eq(participant, &topic.inner.participant) {
            return Err(Error::BadParameter { what: "the topic belongs to another participant".into() });
        }
        let representation = representation(&qos.data_representation)?;
        let engine = Arc::clone(&participant.engine);
        let signal = Arc::new(Signal::new());
        let progress = Arc::new(EventCount::new());
        let spec = FlowSpec { own_port: flow.own_port, transport_priority: qos.transport_priority.0 };
        let (handle, guid, flow) = engine.call_state(|state, now| {
            let driver = state.driver()?;
            let (flow, unicast) = driver.open_flow(&spec)?;
            let spec = WriterSpec {
                topic_name: topic.name().to_owned(),
                type_name: T::TYPE_NAME.to_owned(),
                keyed: T::HAS_KEY,
                qos: qos.clone(),
                publisher: publisher.qos().clone(),
                group: Some(publisher.inner.group),
                topic_data: topic.qos().topic_data.clone(),
                type_information: dynamic::announce::<T>(&mut driver.core),
                max_serialized_len: T::max_serialized_len(representation),
                flow,
                unicast,
            };
            let created = driver.core.create_writer(now, spec);
            let handle = created.inspect_err(|_| driver.close_flow(flow))?;
            let guid = driver.core.writer_guid(handle)?;
            state.add_endpoint(Target::Writer(handle), Arc::clone(&signal), Arc::clone(&progress));
            Ok((handle, guid, flow))
        })?;
        let (topic, publisher) = (topic.clone(), Arc::clone(&publisher.inner));
        let inner = WriterInner { handle, guid, representation, flow, signal, progress, engine, qos, topic, publisher };
        Ok(Self::from_inner(Arc::new(inner)))
    }

    pub(crate) fn from_inner(inner: Arc<WriterInner<T>>) -> Self {
        Self { inner }
    }

    /// Publishes a sample: serialised into the history and sent before this returns. Does not allocate.
    ///
    /// If the history is full of samples that reliable readers have not acknowledged, waits up to
    /// `RELIABILITY.max_blocking_time` (DDS 1.4 §2.2.2.4.2.11).
    ///
    /// # Errors
    /// [`Error::Timeout`] if there was no room in time; [`Error::Encode`] if the sample exceeds a bound of its type;
    /// [`Error::OutOfResources`] if it can never fit.
    pub fn write(&self, sample: &T) -> Result<()> {
        self.publish(sample, &Publication::default())
    }

    /// As [`write`](Self::write), with a source time stamp of the caller's.
    ///
    /// # Errors
    /// As [`write`](Self::write), and [`Error::BadParameter`] for a time stamp that is none or, with DESTINATION_ORDER
    /// BY_SOURCE_TIMESTAMP, older than that of the change before.
    pub fn write_w_timestamp(&self, sample: &T, timestamp: Timestamp) -> Result<()> {
        self.publish(sample, &Publication { timestamp: Some(timestamp), ..Publication::default() })
    }

    /// As [`write`](Self::write), to these readers alone (RTPS 2.5 §8.7.7). Others see that it is none of theirs.
    ///
    /// # Errors
    /// As [`write`](Self::write), and [`Error::BadParameter`] for no or too many readers.
    pub fn write_to(&self, sample: &T, readers: &[Guid]) -> Result<()> {
        if readers.is_empty() {
            return Err(Error::BadParameter { what: "a directed write needs a reader".into() });
        }
        self.publish(sample, &Publication { readers, ..Publication::default() })
    }

    /// The handle of the sample's instance. Nothing is sent: an instance is known to others by its first sample.
    ///
    /// # Errors
    /// [`Error::Encode`] if the key exceeds a bound of its type.
    pub fn register_instance(&self, sample: &T) -> Result<InstanceHandle> {
        Ok(InstanceHandle(takt_xtypes::key_hash_with(sample, self.inner.representation)?))
    }

    /// As [`register_instance`](Self::register_instance): since nothing is sent, nothing bears the time stamp.
    ///
    /// # Errors
    /// As [`register_instance`](Self::register_instance).
    pub fn register_instance_w_timestamp(&self, sample: &T, _timestamp: Timestamp) -> Result<InstanceHandle> {
        self.register_instance(sample)
    }

    /// Says that the sample's instance exists no more (DDS 1.4 §2.2.2.4.2.13). Only the key members matter.
    ///
    /// # Errors
    /// As [`write`](Self::write), and [`Error::IllegalOperation`] if the type has no key.
    pub fn dispose(&self, sample: &T) -> Result<()> {
        self.publish(sample, &Publication { kind: ChangeKind::Disposed, ..Publication::default() })
    }

    /// As [`dispose`](Self::dispose), with a source time stamp of the caller's.
    ///
    /// # Errors
    /// As [`write_w_timestamp`](Self::write_w_timestamp) and [`dispose`](Self::dispose).
    pub fn dispose_w_timestamp(&self, sample: &T, timestamp: Timestamp) -> Result<()> {
        let (kind, timestamp) = (ChangeKind::Disposed, Some(timestamp));
        self.publish(sample, &Publication { kind, timestamp, ..Publication::default() })
    }

    /// Says that this writer will not update the sample's instance any more (DDS 1.4 §2.2.2.4.2.7), and disposes it if
    /// `WRITER_DATA_LIFECYCLE.autodispose_unregistered_instances`.
    ///
    /// # Errors
    /// As [`dispose`](Self::dispose).
    pub fn unregister_instance(&self, sample: &T) -> Result<()> {
        self.publish(sample, &Publication { kind: self.unregistration(), ..Publication::default() })
    }

    /// As [`unregister_instance`](Self::unregister_instance), with a source time stamp of the caller's.
    ///
    /// # Errors
    /// As [`write_w_timestamp`](Self::write_w_timestamp) and [`dispose`](Self::dispose).
    pub fn unregister_instance_w_timestamp(&self, sample: &T, timestamp: Timestamp) -> Result<()> {
        let (kind, timestamp) = (self.unregistration(), Some(timestamp));
        self.publish(sample, &Publication { kind, timestamp, ..Publication::default() })
    }

    fn unregistration(&self) -> ChangeKind {
        match self.inner.qos.writer_data_lifecycle.autodispose_unregistered_instances {
            true => ChangeKind::DisposedUnregistered,
            false => ChangeKind::Unregistered,
        }
    }

    /// As [`write`](Self::write), but waits for room without blocking the thread, and for as long as it is polled:
    /// `max_blocking_time` does not apply. Nothing is written if the future is dropped before it is ready.
    ///
    /// # Errors
    /// As [`write`](Self::write), without the timeout.
    pub async fn write_async(&self, sample: &T) -> Result<()> {
        let publication = Publication::default();
        let mut attempt = self.attempt(sample, &publication)?;
        let mut task = WaitingTask { writer: self, key: None };
        poll_fn(|cx| task.poll(cx.waker(), &mut attempt)).await
    }

    fn publish(&self, sample: &T, publication: &Publication<'_>) -> Result<()> {
        let inner = &*self.inner;
        let patience = inner.qos.reliability.max_blocking_time;
        let attempt = self.attempt(sample, publication)?;
        inner.engine.block_on(&inner.progress, || clock::deadline(clock::now(), patience), attempt)
    }

    /// What writes, or finds that there is no room: then `None`, and it may be called again.
    #[inline]
    fn attempt<'a>(
        &'a self,
        sample: &'a T,
        publication: &Publication<'a>,
    ) -> Result<impl FnMut(&mut Driver, Instant) -> Result<Option<()>> + use<'a, T>> {
        let handle = self.inner.handle;
        let alive = publication.kind == ChangeKind::Alive;
        if !alive && !T::HAS_KEY {
            return Err(Error::IllegalOperation { what: "the type has no key, so the topic has no instances" });
        }
        let representation = self.inner.representation;
        let key_hash = takt_xtypes::key_hash_with(sample, representation)?;
        let payload_len = if alive {
            takt_xtypes::serialized_len(sample, representation)
        } else {
            takt_xtypes::serialized_key_len(sample, representation).max(KEY_PAYLOAD_LEN_MIN)
        };
        let change = NewChange {
            kind: publication.kind,
            key_hash,
            source_timestamp: publication.timestamp,
            destinations: publication.readers,
            payload_len,
        };
        let serialize = move |out: &mut [u8]| {
            if alive {
                takt_xtypes::serialize(sample, representation, out)
            } else {
                let len = takt_xtypes::serialize_key(sample, representation, out)?;
                out[len..].fill(0);
                Ok(out.len())
            }
        };
        Ok(move |driver: &mut Driver, now: Instant| {
            let mut failure: Option<EncodeError> = None;
            let written = driver
                .core
                .write(now, handle, &change, |out| serialize(out).map_err(|error| failure = Some(error)).ok());
            match (written, failure) {
                (Ok(_), _) => Ok(Some(())),
                (Err(WriteError::WouldBlock), _) => Ok(None),
                (Err(WriteError::Refused(error)), _) => Err(error.into()),
                (Err(WriteError::Serialize), Some(error)) => Err(error.into()),
                (Err(WriteError::Serialize), None) => unreachable!("the serialiser failed without a reason"),
            }
        })
    }

    /// Shows that a writer whose `LIVELINESS` is manual lives, without writing (DDS 1.4 §2.2.2.4.2.22). Takes effect for
    /// the participant's other writers of that kind too if it is `MANUAL_BY_PARTICIPANT`.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn assert_liveliness(&self) -> Result<()> {
        let inner = &*self.inner;
        inner.engine.call(|driver, now| {
            driver.core.assert_writer_liveliness(now, inner.handle)?;
            if inner.qos.liveliness.kind == LivelinessKind::ManualByParticipant {
                driver.core.assert_liveliness(now);
            }
            Ok(())
        })
    }

    /// Waits until all reliable readers that are matched now have acknowledged everything written.
    ///
    /// # Errors
    /// [`Error::Timeout`] if some did not in time.
    pub fn wait_for_acknowledgments(&self, max_wait: Duration) -> Result<()> {
        let inner = &*self.inner;
        inner.engine.block_on(
            &inner.progress,
            || clock::deadline(clock::now(), max_wait),
            |driver, _| Ok(driver.core.is_acknowledged(inner.handle, None)?.then_some(())),
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
        self.inner.engine.look(|driver| {
            self.inner.signal.clear(status);
            Ok(read(driver, self.inner.handle)?)
        })
    }

    /// The readers that are matched.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn matched_subscriptions(&self) -> Result<Vec<Guid>> {
        self.inner.engine.look(|driver| Ok(driver.core.matched_subscriptions(self.inner.handle)?))
    }

    /// What is known of a matched reader (`get_matched_subscription_data`).
    ///
    /// # Errors
    /// [`Error::BadParameter`] if it is not matched, [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn matched_subscription_data(&self, reader: Guid) -> Result<SubscriptionBuiltinTopicData> {
        self.inner.engine.look(|driver| {
            let is_matched = driver.core.matched_subscriptions(self.inner.handle)?.contains(&reader);
            let data = is_matched.then(|| driver.core.subscription_data(reader)).flatten();
            let unknown = || Error::BadParameter { what: format!("reader {reader} is not matched") };
            data.map(SubscriptionBuiltinTopicData::from).ok_or_else(unknown)
        })
    }

    /// The condition that is true while a status has changed.
    #[must_use]
    pub fn status_condition(&self) -> StatusCondition {
        StatusCondition { signal: Arc::clone(&self.inner.signal), engine: Arc::clone(&self.inner.engine) }
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
    pub fn set_listener(&self, listener: Box<dyn DataWriterListener<T>>) -> Result<()> {
        let callback = WriterCallback { writer: Arc::downgrade(&self.inner), listener };
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
        let target = Target::Writer(self.inner.handle);
        let former = self.inner.engine.call_state(|state, _| state.set_listener(target, listener))?;
        drop(former);
        Ok(())
    }

    /// The writer's identity in the domain.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.inner.guid
    }

    /// The writer's policies.
    #[must_use]
    pub fn qos(&self) -> &DataWriterQos {
        &self.inner.qos
    }

    /// The topic written to.
    #[must_use]
    pub fn topic(&self) -> &Topic<T> {
        &self.inner.topic
    }

    /// The publisher that the writer belongs to.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        Publisher { inner: Arc::clone(&self.inner.publisher) }
    }

    /// Deletes the writer, whatever handles there are; they answer [`Error::AlreadyDeleted`] then. Readers learn that
    /// it has gone; its instances are not disposed.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if it was.
    pub fn close(&self) -> Result<()> {
        self.inner.delete()
    }
}

impl<T: TypeSupport> WriterInner<T> {
    fn delete(&self) -> Result<()> {
        let listener = self.engine.call_state(|state, now| {
            let driver = state.driver()?;
            driver.core.delete_writer(now, self.handle)?;
            driver.transmit(now);
            driver.close_flow(self.flow);
            Ok(state.remove_endpoint(Target::Writer(self.handle)))
        })?;
        drop(listener);
        Ok(())
    }
}

impl<T: TypeSupport> Drop for WriterInner<T> {
    fn drop(&mut self) {
        match self.delete() {
            // Another thread than the owner's of an inline participant cannot delete; the participant's end will.
            Ok(()) | Err(Error::AlreadyDeleted | Error::IllegalOperation { .. }) => {}
            Err(error) => debug_assert!(false, "deleting a writer failed: {error}"),
        }
    }
}

impl<T: TypeSupport> Clone for DataWriter<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T: TypeSupport> fmt::Debug for DataWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataWriter").field("guid", &self.guid()).field("topic", self.topic()).finish_non_exhaustive()
    }
}

/// A `write_async` in progress.
struct WaitingTask<'a, T: TypeSupport> {
    writer: &'a DataWriter<T>,
    key: Option<TaskKey>,
}

impl<T: TypeSupport> WaitingTask<'_, T> {
    /// Attempts to write, or has `waker` woken when there is room.
    fn poll(
        &mut self,
        waker: &Waker,
        attempt: impl FnOnce(&mut Driver, Instant) -> Result<Option<()>>,
    ) -> Poll<Result<()>> {
        let inner = &*self.writer.inner;
        let mut former = None;
        let result = inner.engine.call_state(|state, now| {
            let written = attempt(state.driver()?, now)?;
            if written.is_none() {
                former = state.add_task(Target::Writer(inner.handle), &mut self.key, waker)?;
            }
            Ok(written)
        });
        drop(former);
        result.transpose().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T: TypeSupport> Drop for WaitingTask<'_, T> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.writer.inner.engine.remove_task(Target::Writer(self.writer.inner.handle), key);
        }
    }
}

/// What is published, besides the sample.
#[derive(Clone, Copy)]
struct Publication<'a> {
    kind: ChangeKind,
    /// `None` takes the wall clock.
    timestamp: Option<Timestamp>,
    /// None: everybody.
    readers: &'a [Guid],
}

impl Default for Publication<'_> {
    fn default() -> Self {
        Self { kind: ChangeKind::Alive, timestamp: None, readers: &[] }
    }
}

/// The encoding of a writer with this policy: the first that it offers (XTypes 1.3 §7.6.3.1.1).
pub(crate) fn representation(policy: &DataRepresentation) -> Result<Representation> {
    match policy.offered() {
        DataRepresentation::XCDR1 => Ok(Representation::Xcdr1),
        DataRepresentation::XCDR2 => Ok(Representation::Xcdr2),
        _ => Err(Error::Unsupported { what: "a writer's first data representation must be XCDR1 or XCDR2" }),
    }
}
