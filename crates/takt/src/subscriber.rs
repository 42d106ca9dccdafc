//! Subscribers: what their readers have in common (DDS 1.4 §2.2.2.5.2).

use std::fmt;
use std::sync::Arc;

use takt_core::{Selector, SubscriberHandle};
use takt_wire::Guid;

use crate::participant::ParticipantInner;
use crate::qos::{DataReaderQos, SubscriberQos};
use crate::{DataReader, Error, Flow, Result, TopicDescription};

/// Creates readers, which share its presentation and partitions. Handles are clones of one another; it goes with the
/// last handle and reader.
#[derive(Clone)]
pub struct Subscriber {
    pub(crate) inner: Arc<SubscriberInner>,
}

pub(crate) struct SubscriberInner {
    pub(crate) participant: Arc<ParticipantInner>,
    pub(crate) qos: SubscriberQos,
    pub(crate) group: SubscriberHandle,
}

impl Drop for SubscriberInner {
    fn drop(&mut self) {
        match self.participant.engine.call(|driver, _| Ok(driver.core.delete_subscriber(self.group)?)) {
            // Another thread than the owner's of an inline participant cannot delete; the participant's end will.
            Ok(()) | Err(Error::AlreadyDeleted | Error::IllegalOperation { .. }) => {}
            Err(error) => debug_assert!(false, "deleting a subscriber failed: {error}"),
        }
    }
}

impl Subscriber {
    pub(crate) fn new(participant: Arc<ParticipantInner>, qos: SubscriberQos) -> Result<Self> {
        let group = participant.engine.call(|driver, _| Ok(driver.core.create_subscriber(qos.presentation)?))?;
        Ok(Self { inner: Arc::new(SubscriberInner { participant, qos, group }) })
    }

    /// The application is about to read from the readers of this subscriber. Until [`end_access`](Self::end_access) they show
    /// no further coherent sets, so what they show fits together. Calls may be nested. With PRESENTATION scope GROUP, coherent
    /// or ordered, nothing can be read otherwise (DDS 1.4 §2.2.2.5.2.8).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn begin_access(&self) -> Result<()> {
        let Self { inner } = self;
        inner.participant.engine.look(|driver| Ok(driver.core.begin_access(inner.group)?))
    }

    /// The application has done reading for now: what has arrived meanwhile becomes visible.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if no access has begun, [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn end_access(&self) -> Result<()> {
        let Self { inner } = self;
        inner.participant.engine.call(|driver, now| Ok(driver.core.end_access(now, inner.group)?))
    }

    /// The readers that have samples which the selector wants, by their GUIDs (`get_datareaders`). With PRESENTATION scope
    /// GROUP and ordered access there is one entry for each such sample, in the order in which they were written: take one
    /// sample from each reader that it names.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] with scope GROUP, coherent or ordered, without [`begin_access`](Self::begin_access);
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn datareaders(&self, selector: Selector) -> Result<Vec<Guid>> {
        let Self { inner } = self;
        inner.participant.engine.look(|driver| {
            let readers = driver.core.readers_with(inner.group, &selector)?;
            readers.into_iter().map(|reader| Ok(driver.core.reader_guid(reader)?)).collect()
        })
    }

    /// The subscriber's policies.
    #[must_use]
    pub fn qos(&self) -> &SubscriberQos {
        &self.inner.qos
    }

    /// Creates a reader of a [`Topic`](crate::Topic) or [`ContentFilteredTopic`](crate::ContentFilteredTopic), enabled and announced to the domain. Its memory is reserved here, after its
    /// `RESOURCE_LIMITS` and history.
    ///
    /// # Errors
    /// [`Error::InconsistentPolicy`](crate::Error::InconsistentPolicy) if policies contradict each other,
    /// [`Error::BadParameter`](crate::Error::BadParameter) if the topic is another participant's.
    pub fn create_datareader<D: TopicDescription>(&self, topic: &D, qos: DataReaderQos) -> Result<DataReader<D::Data>> {
        self.create_datareader_with_flow(topic, qos, Flow::default())
    }

    /// As [`create_datareader`](Self::create_datareader), with a say in what the network sees of the reader.
    ///
    /// # Errors
    /// As there, and [`Error::Transport`](crate::Error::Transport) if the flow cannot be opened.
    pub fn create_datareader_with_flow<D: TopicDescription>(
        &self,
        topic: &D,
        qos: DataReaderQos,
        flow: Flow,
    ) -> Result<DataReader<D::Data>> {
        DataReader::create(self, topic, qos, flow)
    }
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("qos", &self.inner.qos).finish_non_exhaustive()
    }
}
