//! Data readers (DDS 1.4 §2.2.2.5.3). `mod.rs` has the typed reader, `any` the reader without its
//! type, `reading` reads samples, and `batch` reads many samples into reused memory.

mod any;
mod batch;
mod blocking;
mod loan;
mod reading;
mod select;
mod shared;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use takt_core::{BuiltinTopic, FlowTag, ReaderSpec};
use takt_xtypes::Representation;

pub use any::AnyDataReader;
pub(crate) use any::ReaderCore;
pub use blocking::SampleIter;
pub use loan::LoanedSample;
pub use select::Select;
pub use shared::SharedSample;

use crate::dynamic;
use crate::key::TypeKey;
use crate::listener::{DataReaderListener, TypedReader};
use crate::qos::DataReaderQos;
use crate::runtime::listeners::Listener;
use crate::status::StatusMask;
use crate::subscriber::Subscriber;
use crate::topic::TopicInner;
use crate::{Flow, Readable, Result, Topic, TopicDescription, TypeSupport};

/// Receives samples of `T`. The methods of [`AnyDataReader`] are available as well. Handles are
/// clones that refer to the same reader. It is deleted with the last one, or by
/// [`close`](AnyDataReader::close).
pub struct DataReader<T> {
    any: AnyDataReader,
    type_: PhantomData<fn() -> T>,
}

impl<T: TypeSupport> DataReader<T> {
    pub(crate) fn create(
        subscriber: &Subscriber,
        description: &impl TopicDescription<Data = T>,
        qos: DataReaderQos,
        flow: Flow,
    ) -> Result<Self> {
        let topic = description.topic();
        let create = |content_filter| {
            let inner = Arc::clone(&topic.inner);
            let any = AnyDataReader::create::<T>(subscriber, inner, qos.clone(), flow, |driver, unicast| ReaderSpec {
                topic_name: topic.name().to_owned(),
                type_name: T::TYPE_NAME.to_owned(),
                qos: qos.clone(),
                subscriber: subscriber.qos(),
                group: Some(subscriber.inner.group),
                topic_data: topic.qos().topic_data,
                key: T::HAS_KEY.then(|| Box::new(TypeKey::<T>::default()) as _),
                type_information: dynamic::announce::<T>(&mut driver.core),
                max_serialized_len: max_serialized_len::<T>(),
                unicast,
                content_filter,
            })?;
            Ok((any.core.handle, any))
        };
        let (_, any) = match description.filtered() {
            Some(filtered) => filtered.attach(|filter| create(Some(filter)))?,
            None => create(None)?,
        };
        Ok(Self::of_this_type(&any))
    }
}

impl<T: Readable> DataReader<T> {
    pub(crate) fn create_builtin(subscriber: &Subscriber, topic: Arc<TopicInner>, kind: BuiltinTopic) -> Result<Self> {
        let qos = BuiltinTopic::reader_qos();
        let any = AnyDataReader::register::<T>(&subscriber.inner, topic, qos, |driver, now| {
            Ok((driver.core.create_builtin_reader(now, kind), FlowTag::default()))
        })?;
        Ok(Self::of_this_type(&any))
    }

    /// Returns the typed reader of an untyped one, whose type must be `T`.
    pub(crate) fn of_this_type(any: &AnyDataReader) -> Self {
        Self { any: any.clone(), type_: PhantomData }
    }

    /// Returns the reader without its type.
    #[must_use]
    pub fn as_any(&self) -> &AnyDataReader {
        &self.any
    }

    /// Returns the topic of the reader.
    #[must_use]
    pub fn topic(&self) -> Topic<T> {
        Topic::from_inner(Arc::clone(&self.core.topic))
    }

    /// Calls `handle` whenever samples have arrived, in place of a previous listener. `handle` must
    /// take samples until there are none: the next call follows the next arrival. Other statuses
    /// are delivered to the listener of the subscriber or participant.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) after
    /// [`close`](AnyDataReader::close).
    ///
    /// # Examples
    /// ```no_run
    /// # fn f<T: takt::DdsType + std::fmt::Debug>(reader: &takt::DataReader<T>) -> takt::Result<()> {
    /// reader.on_data_available(|reader| {
    ///     for sample in reader.take(usize::MAX).unwrap_or_default() {
    ///         println!("{:?}", sample.data);
    ///     }
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn on_data_available(&self, handle: impl FnMut(&Self) + Send + 'static) -> Result<()> {
        self.set_listener_with_mask(Box::new(OnData(handle)), StatusMask::DATA_AVAILABLE)
    }

    /// Replaces the listener, which is notified of status changes. Changes that have already
    /// occurred are notified immediately.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) after
    /// [`close`](AnyDataReader::close).
    pub fn set_listener(&self, listener: Box<dyn DataReaderListener<T>>) -> Result<()> {
        self.set_listener_with_mask(listener, StatusMask::ALL)
    }

    /// As [`set_listener`](Self::set_listener), limited to these statuses: others are delivered to
    /// the listener of the subscriber or the participant.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) after
    /// [`close`](AnyDataReader::close).
    pub fn set_listener_with_mask(&self, listener: Box<dyn DataReaderListener<T>>, mask: StatusMask) -> Result<()> {
        self.any.replace_listener(Some(Listener::Reader(Box::new(TypedReader::new(listener)))), mask)
    }
}

/// Listener that calls a closure when samples arrive.
struct OnData<F>(F);

impl<T: Readable, F: FnMut(&DataReader<T>) + Send + 'static> DataReaderListener<T> for OnData<F> {
    fn on_data_available(&mut self, reader: &DataReader<T>) {
        (self.0)(reader);
    }
}

impl<T> Deref for DataReader<T> {
    type Target = AnyDataReader;

    fn deref(&self) -> &AnyDataReader {
        &self.any
    }
}

impl<T> Clone for DataReader<T> {
    fn clone(&self) -> Self {
        Self { any: self.any.clone(), type_: PhantomData }
    }
}

impl<T> fmt::Debug for DataReader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.any.fmt(f)
    }
}

/// Returns the maximum payload length of `T` in any encoding that a reader accepts, if it is
/// bounded.
fn max_serialized_len<T: TypeSupport>() -> Option<usize> {
    Some(T::max_serialized_len(Representation::Xcdr1)?.max(T::max_serialized_len(Representation::Xcdr2)?))
}
