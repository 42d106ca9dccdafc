//! Readers (DDS 1.4 §2.2.2.5.3). `mod.rs` makes and deletes them, `reading` reads samples, `status` tells of statuses.

pub(crate) mod ranks;
mod reading;
mod status;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use takt_core::{BuiltinTopic, FlowTag, ReaderHandle, ReaderSpec, Selector};
use takt_transport::FlowSpec;
use takt_wire::Guid;
use takt_xtypes::Representation;

use crate::condition::{ReadCondition, StatusCondition};
use crate::dynamic;
use crate::key::TypeKey;
use crate::listener::{DataReaderListener, ReaderCallback};
use crate::qos::DataReaderQos;
use crate::runtime::engine::Engine;
use crate::runtime::event_count::EventCount;
use crate::runtime::state::{Callback, Target};
use crate::status::{Signal, StatusMask};
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
                    group: Some(subscriber.inner.group),
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

    /// Payloads that were dropped since they are no `T`.
    #[must_use]
    pub fn deserialize_failures(&self) -> u64 {
        self.inner.deserialize_failures.load(Ordering::Relaxed)
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
