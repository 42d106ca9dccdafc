//! Builtin subscriber and its readers.

use std::fmt;
use std::sync::{Arc, Weak};

use takt_core::BuiltinTopic;

use super::{
    ParticipantBuiltinTopicData, PublicationBuiltinTopicData, SubscriptionBuiltinTopicData, TopicBuiltinTopicData,
};
use crate::participant::ParticipantInner;
use crate::qos::SubscriberQos;
use crate::readable::{Readable, sealed::Decode};
use crate::reader::{AnyDataReader, ReaderCore};
use crate::runtime::pi_mutex::PiMutex;
use crate::{DataReader, Result, Subscriber};

/// Data type of one of the four builtin topics.
pub trait BuiltinTopicData: Readable + sealed::Topic {}

mod sealed {
    pub trait Topic {
        const TOPIC: takt_core::BuiltinTopic;
    }
}

macro_rules! builtin_topics {
    ($($type:ident => $topic:ident;)*) => {$(
        impl sealed::Topic for $type {
            const TOPIC: BuiltinTopic = BuiltinTopic::$topic;
        }

        impl BuiltinTopicData for $type {}
    )*};
}

builtin_topics! {
    ParticipantBuiltinTopicData => Participant;
    TopicBuiltinTopicData => Topic;
    PublicationBuiltinTopicData => Publication;
    SubscriptionBuiltinTopicData => Subscription;
}

/// Type-erased builtin readers that currently exist, one slot for each builtin topic.
pub(crate) struct BuiltinReaders(PiMutex<[Option<Weak<ReaderCore>>; 4]>);

impl BuiltinReaders {
    pub(crate) fn new() -> Self {
        Self(PiMutex::new([const { None }; 4]))
    }
}

/// Subscriber of the builtin topics, returned by
/// [`DomainParticipant::builtin_subscriber`](crate::DomainParticipant::builtin_subscriber).
#[derive(Clone)]
pub struct BuiltinSubscriber {
    participant: Arc<ParticipantInner>,
}

impl BuiltinSubscriber {
    pub(crate) fn new(participant: Arc<ParticipantInner>) -> Self {
        Self { participant }
    }

    /// Returns the reader of the builtin topic whose data type is `T`. All callers share one
    /// reader, which exists while a handle of it exists: a sample taken through one handle is not
    /// returned by another. A reader created after that starts with the entities known at that
    /// time.
    ///
    /// # Examples
    /// ```no_run
    /// use takt::builtin::PublicationBuiltinTopicData;
    ///
    /// # fn f(participant: &takt::DomainParticipant) -> takt::Result<()> {
    /// let publications = participant.builtin_subscriber().lookup_datareader::<PublicationBuiltinTopicData>()?;
    /// for sample in publications.read(usize::MAX)? {
    ///     if let Some(writer) = sample.data {
    ///         println!("{} writes {}", writer.key.guid(), writer.topic_name);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) if the participant was closed,
    /// [`Error::PreconditionNotMet`](crate::Error::PreconditionNotMet) if the application has a
    /// topic of that name.
    pub fn lookup_datareader<T: BuiltinTopicData>(&self) -> Result<DataReader<T>> {
        let mut readers = self.participant.builtin_readers.0.lock().expect("no user code runs here");
        let known = &mut readers[T::TOPIC as usize];
        let existing = known.as_ref().and_then(Weak::upgrade).map(AnyDataReader::from_core);
        if let Some(reader) = existing.filter(|reader| matches!(reader.is_open(), Ok(true)))
            && let Some(reader) = reader.downcast()
        {
            return Ok(reader);
        }
        let topic = self.participant.register_topic(T::TOPIC.name(), <T as Decode>::TYPE_NAME, Default::default())?;
        let subscriber = Subscriber::new(&self.participant, SubscriberQos::default(), true)?;
        let reader = DataReader::<T>::create_builtin(&subscriber, topic, T::TOPIC)?;
        *known = Some(reader.as_any().downgrade());
        Ok(reader)
    }
}

impl fmt::Debug for BuiltinSubscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuiltinSubscriber").finish_non_exhaustive()
    }
}
