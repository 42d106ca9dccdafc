//! Writers (DDS 1.4 §2.2.2.4.2): a sample is serialized once, into the history, and sent in the
//! caller's context.

mod any;
mod batch;
mod loan;
mod shared;

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};

use takt_core::{ChangeKind, InstanceHandle, Instant, NewChange, WriteError, WriterSpec};
use takt_wire::{Guid, SharedPayload, Timestamp};
use takt_xtypes::{EncodeError, Representation};

pub use any::AnyDataWriter;
pub(crate) use any::WriterCore;
pub use batch::BatchError;
pub use loan::LoanedPayload;

use crate::content_filter::Factory;
use crate::dynamic;
use crate::listener::{DataWriterListener, TypedWriter};
use crate::publisher::Publisher;
use crate::qos::{DataRepresentation, DataWriterQos};
use crate::runtime::clock;
use crate::runtime::driver::Driver;
use crate::runtime::engine::Wait;
use crate::runtime::listeners::Listener;
use crate::runtime::state::Target;
use crate::runtime::tasks::TaskKey;
use crate::status::StatusMask;
use crate::{Error, Flow, Result, Topic, TypeSupport};

/// Writer of samples of type `T`. Dereferences to [`AnyDataWriter`], which has the type-independent
/// methods. Clones refer to the same writer. It is deleted with the last of them, or by
/// [`close`](AnyDataWriter::close).
pub struct DataWriter<T> {
    any: AnyDataWriter,
    representation: Representation,
    type_: PhantomData<fn(&T)>,
}

/// Minimum length of a serialized key, in octets. Shorter keys are padded with zeros, which readers
/// skip.
///
/// INTEROP(Fast DDS 2.9.1): takes a serialized key of up to 16 bytes, including the encapsulation
/// header, for the key hash, even if the inline QoS contains the real one. Longer keys are not
/// affected.
pub(crate) const KEY_PAYLOAD_LEN_MIN: usize = 20;

impl<T: TypeSupport> DataWriter<T> {
    pub(crate) fn create(publisher: &Publisher, topic: &Topic<T>, qos: DataWriterQos, flow: Flow) -> Result<Self> {
        let representation = representation(&qos.data_representation)?;
        let topic = Arc::clone(&topic.inner);
        let (name, topic_qos) = (topic.name.clone(), topic.qos());
        let any =
            AnyDataWriter::create::<T>(publisher, topic, qos.clone(), flow, |driver, flows, unicast| WriterSpec {
                topic_name: name,
                type_name: T::TYPE_NAME.to_owned(),
                keyed: T::HAS_KEY,
                qos,
                publisher: publisher.qos(),
                group: Some(publisher.inner.group),
                topic_data: topic_qos.topic_data,
                type_information: dynamic::announce::<T>(&mut driver.core),
                max_serialized_len: T::max_serialized_len(representation),
                flows,
                unicast,
                filters: Some(Arc::new(Factory::of::<T>())),
            })?;
        Ok(Self::of_this_type(&any))
    }

    /// Adds the type to a writer that is known to have it.
    pub(crate) fn of_this_type(any: &AnyDataWriter) -> Self {
        Self { any: any.clone(), representation: any.core.representation, type_: PhantomData }
    }

    /// Returns the writer without its type.
    #[must_use]
    pub fn as_any(&self) -> &AnyDataWriter {
        &self.any
    }

    /// Returns the topic of the writer.
    #[must_use]
    pub fn topic(&self) -> Topic<T> {
        Topic::from_inner(Arc::clone(&self.core.topic))
    }

    /// Sets the listener of the writer, replacing a former one. It is called at once for statuses
    /// that have already changed.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](AnyDataWriter::close).
    pub fn set_listener(&self, listener: Box<dyn DataWriterListener<T>>) -> Result<()> {
        self.set_listener_with_mask(listener, StatusMask::ALL)
    }

    /// Sets the listener for the statuses in `mask` only. Other statuses go to the listener of the
    /// publisher or participant.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](AnyDataWriter::close).
    pub fn set_listener_with_mask(&self, listener: Box<dyn DataWriterListener<T>>, mask: StatusMask) -> Result<()> {
        self.any.replace_listener(Some(Listener::Writer(Box::new(TypedWriter::new(listener)))), mask)
    }

    /// Publishes a sample: serializes it into the history and sends it before returning. Does not
    /// allocate.
    ///
    /// If the history is full of samples that reliable readers have not acknowledged, blocks for at
    /// most `RELIABILITY.max_blocking_time` (DDS 1.4 §2.2.2.4.2.11). A large sample also blocks, at
    /// most for that time, until the queues of the network interfaces have taken all its fragments
    /// ([`UdpConfig::fragment_queue_bytes`](crate::UdpConfig::fragment_queue_bytes)). What remains
    /// then is sent later.
    ///
    /// # Errors
    /// [`Error::Timeout`] if the history remains full for that time; [`Error::Encode`] if the
    /// sample exceeds a bound of its type; [`Error::OutOfResources`] if the sample exceeds the
    /// capacity of the history.
    pub fn write(&self, sample: &T) -> Result<()> {
        self.publish(sample, &Publication::default())
    }

    /// As [`write`](Self::write), with a source timestamp chosen by the caller.
    ///
    /// # Errors
    /// As [`write`](Self::write), and [`Error::BadParameter`] for an invalid timestamp or, with
    /// DESTINATION_ORDER BY_SOURCE_TIMESTAMP, one older than that of the previous change.
    pub fn write_w_timestamp(&self, sample: &T, timestamp: Timestamp) -> Result<()> {
        self.publish(sample, &Publication { timestamp: Some(timestamp), ..Publication::default() })
    }

    /// As [`write`](Self::write), but only for these readers (RTPS 2.5 §8.7.7). Other readers
    /// ignore the sample.
    ///
    /// # Errors
    /// As [`write`](Self::write), and [`Error::BadParameter`] if `readers` is empty or too long.
    pub fn write_to(&self, sample: &T, readers: &[Guid]) -> Result<()> {
        if readers.is_empty() {
            return Err(Error::bad_parameter("a directed write needs a reader"));
        }
        self.publish(sample, &Publication { readers, ..Publication::default() })
    }

    /// Returns the handle of the sample's instance. Sends nothing: readers learn of an instance
    /// from its first sample.
    ///
    /// # Errors
    /// [`Error::Encode`] if the key exceeds a bound of its type.
    pub fn register_instance(&self, sample: &T) -> Result<InstanceHandle> {
        Ok(InstanceHandle(takt_xtypes::key_hash(sample)?))
    }

    /// As [`register_instance`](Self::register_instance). The timestamp is ignored, since nothing
    /// is sent.
    ///
    /// # Errors
    /// As [`register_instance`](Self::register_instance).
    pub fn register_instance_w_timestamp(&self, sample: &T, _timestamp: Timestamp) -> Result<InstanceHandle> {
        self.register_instance(sample)
    }

    /// Disposes the instance of the sample (DDS 1.4 §2.2.2.4.2.13). Only the key members of
    /// `sample` are used.
    ///
    /// # Errors
    /// As [`write`](Self::write), and [`Error::IllegalOperation`] if the type has no key.
    pub fn dispose(&self, sample: &T) -> Result<()> {
        self.publish(sample, &Publication { kind: ChangeKind::Disposed, ..Publication::default() })
    }

    /// As [`dispose`](Self::dispose), with a source timestamp chosen by the caller.
    ///
    /// # Errors
    /// As [`write_w_timestamp`](Self::write_w_timestamp) and [`dispose`](Self::dispose).
    pub fn dispose_w_timestamp(&self, sample: &T, timestamp: Timestamp) -> Result<()> {
        let (kind, timestamp) = (ChangeKind::Disposed, Some(timestamp));
        self.publish(sample, &Publication { kind, timestamp, ..Publication::default() })
    }

    /// Unregisters this writer from the instance of the sample (DDS 1.4 §2.2.2.4.2.7). Also
    /// disposes the instance if `WRITER_DATA_LIFECYCLE.autodispose_unregistered_instances` is set.
    ///
    /// # Errors
    /// As [`dispose`](Self::dispose).
    pub fn unregister_instance(&self, sample: &T) -> Result<()> {
        self.publish(sample, &Publication { kind: self.unregistration(), ..Publication::default() })
    }

    /// As [`unregister_instance`](Self::unregister_instance), with a source timestamp chosen by the
    /// caller.
    ///
    /// # Errors
    /// As [`write_w_timestamp`](Self::write_w_timestamp) and [`dispose`](Self::dispose).
    pub fn unregister_instance_w_timestamp(&self, sample: &T, timestamp: Timestamp) -> Result<()> {
        let (kind, timestamp) = (self.unregistration(), Some(timestamp));
        self.publish(sample, &Publication { kind, timestamp, ..Publication::default() })
    }

    fn unregistration(&self) -> ChangeKind {
        match self.core.autodispose.load(Ordering::Relaxed) {
            true => ChangeKind::DisposedUnregistered,
            false => ChangeKind::Unregistered,
        }
    }

    /// As [`write`](Self::write), but waits for space asynchronously and without a time limit:
    /// `max_blocking_time` does not apply. Dropping the future before it is ready writes nothing.
    ///
    /// # Errors
    /// As [`write`](Self::write), without the timeout.
    pub async fn write_async(&self, sample: &T) -> Result<()> {
        let mut change = SampleChange::new(self, sample, &Publication::default())?;
        let mut task = WaitingTask { writer: self, key: None };
        poll_fn(|cx| task.poll(cx.waker(), &mut change)).await
    }

    fn publish(&self, sample: &T, publication: &Publication<'_>) -> Result<()> {
        let core = &*self.core;
        let mut change = SampleChange::new(self, sample, publication)?;
        let begun = core.begin_write();
        let written = self.write_or_wait(&mut change).and_then(|()| core.await_network());
        core.end_write(begun);
        written.map_err(|error| error.explained(|| core.timeout_text()))
    }

    /// Writes a change, and waits for room if the history is full.
    #[inline]
    fn write_or_wait(&self, change: &mut SampleChange<'_, T>) -> Result<()> {
        let engine = &self.core.engine;
        let mut wait = Wait::new(engine, &self.core.progress);
        let mut deadline = None;
        loop {
            let mut call = engine.begin()?;
            let now = call.now;
            let written = call.driver().and_then(|driver| change.write(driver, now));
            call.finish()?;
            if written? {
                return Ok(());
            }
            wait.for_progress(*deadline.get_or_insert_with(|| clock::deadline(now, self.core.max_blocking_time)))?;
        }
    }
}

/// Change of the application on its way into the history.
struct SampleChange<'a, T> {
    core: &'a WriterCore,
    sample: &'a T,
    representation: Representation,
    change: NewChange<'a>,
    replaces_unsent: bool,
    /// The serialized sample, if its payload is loaned to readers on this host.
    loaned: Option<SharedPayload>,
}

impl<'a, T: TypeSupport> SampleChange<'a, T> {
    /// Determines key and length of the change.
    ///
    /// # Errors
    /// As [`DataWriter::write`] and [`DataWriter::dispose`].
    #[inline]
    fn new(writer: &'a DataWriter<T>, sample: &'a T, publication: &Publication<'a>) -> Result<Self> {
        let (core, representation) = (&*writer.core, writer.representation);
        let is_alive = publication.kind == ChangeKind::Alive;
        if !is_alive && !T::HAS_KEY {
            return Err(Error::IllegalOperation { what: "the type has no key, so the topic has no instances" });
        }
        let key_hash = takt_xtypes::key_hash(sample)?;
        let payload_len = if is_alive {
            takt_xtypes::serialized_len(sample, representation)
        } else {
            takt_xtypes::serialized_key_len(sample, representation).max(KEY_PAYLOAD_LEN_MIN)
        };
        core.check_len(payload_len)?;
        let change = NewChange {
            kind: publication.kind,
            key_hash,
            source_timestamp: publication.timestamp,
            destinations: publication.readers,
            payload_len,
        };
        let replaces_unsent = publication.replaces_unsent;
        Ok(Self { core, sample, representation, change, replaces_unsent, loaned: None })
    }

    fn serialize(&self, out: &mut [u8]) -> std::result::Result<usize, EncodeError> {
        if self.change.kind == ChangeKind::Alive {
            return takt_xtypes::serialize(self.sample, self.representation, out);
        }
        let len = takt_xtypes::serialize_key(self.sample, self.representation, out)?;
        out[len..].fill(0);
        Ok(out.len())
    }

    /// Writes the change. Returns false if the history is full; may then be called again.
    #[inline]
    fn write(&mut self, driver: &mut Driver, now: Instant) -> Result<bool> {
        let (handle, payload_len) = (self.core.handle, self.change.payload_len);
        if !self.replaces_unsent && driver.core.would_replace_unsent(handle, self.change.key_hash)? {
            driver.transmit(now);
            if driver.core.is_writer_blocked(handle) {
                return Ok(false);
            }
        }
        if self.change.kind == ChangeKind::Alive && payload_len >= loan::LOAN_LEN_MIN {
            if self.loaned.is_none() {
                self.loaned = loan::serialize_to_loan(driver, handle, payload_len, |out| self.serialize(out))?;
            }
            if let Some(loaned) = &self.loaned {
                return loan::write(driver, now, handle, &self.change, loaned);
            }
        }
        let mut failure: Option<EncodeError> = None;
        let written = driver
            .core
            .write(now, handle, &self.change, |out| self.serialize(out).map_err(|error| failure = Some(error)).ok());
        match (written, failure) {
            (Ok(_), _) => Ok(true),
            (Err(WriteError::WouldBlock), _) => Ok(false),
            (Err(WriteError::Refused(error)), _) => Err(self.core.length_error(error, payload_len)),
            (Err(WriteError::Serialize), Some(error)) => Err(error.into()),
            (Err(WriteError::Serialize), None) => unreachable!("the serializer failed without an error"),
        }
    }
}

impl<T> Deref for DataWriter<T> {
    type Target = AnyDataWriter;

    fn deref(&self) -> &AnyDataWriter {
        &self.any
    }
}

impl<T> Clone for DataWriter<T> {
    fn clone(&self) -> Self {
        Self { any: self.any.clone(), representation: self.representation, type_: PhantomData }
    }
}

impl<T> fmt::Debug for DataWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.any.fmt(f)
    }
}

/// Pending `write_async`.
struct WaitingTask<'a, T: TypeSupport> {
    writer: &'a DataWriter<T>,
    key: Option<TaskKey>,
}

impl<T: TypeSupport> WaitingTask<'_, T> {
    /// Attempts to write, or registers `waker` to be woken when there is space.
    fn poll(&mut self, waker: &Waker, change: &mut SampleChange<'_, T>) -> Poll<Result<()>> {
        let core = &*self.writer.core;
        let mut former = None;
        let result = core.engine.call_state(|state, now| {
            let is_written = change.write(state.driver()?, now)?;
            if !is_written {
                former = state.add_task(Target::Writer(core.handle), &mut self.key, waker)?;
            }
            Ok(is_written)
        });
        drop(former);
        match result {
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl<T: TypeSupport> Drop for WaitingTask<'_, T> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.writer.core.engine.remove_task(Target::Writer(self.writer.core.handle), key);
        }
    }
}

/// Attributes of a change other than the sample.
#[derive(Clone, Copy)]
struct Publication<'a> {
    kind: ChangeKind,
    /// Source timestamp; `None` for the current wall clock.
    timestamp: Option<Timestamp>,
    /// Readers of a directed write; empty for all readers.
    readers: &'a [Guid],
    /// The sample may displace one that waits to be sent. Otherwise that one is sent first.
    replaces_unsent: bool,
}

impl Default for Publication<'_> {
    fn default() -> Self {
        Self { kind: ChangeKind::Alive, timestamp: None, readers: &[], replaces_unsent: true }
    }
}

/// Returns the encoding of a writer with this policy: the first one that it offers
/// (XTypes 1.3 §7.6.3.1.1).
pub(crate) fn representation(policy: &DataRepresentation) -> Result<Representation> {
    match policy.offered() {
        DataRepresentation::XCDR1 => Ok(Representation::Xcdr1),
        DataRepresentation::XCDR2 => Ok(Representation::Xcdr2),
        _ => Err(Error::Unsupported { what: "a writer's first data representation must be XCDR1 or XCDR2" }),
    }
}
