//! Subscribers: what their readers have in common (DDS 1.4 §2.2.2.5.2).

use std::fmt;
use std::sync::Arc;

use crate::participant::ParticipantInner;
use crate::qos::{DataReaderQos, SubscriberQos};
use crate::{DataReader, Flow, Result, TopicDescription};

/// Creates readers, which share its presentation and partitions. Handles are clones of one another; it goes with the
/// last handle and reader.
#[derive(Clone)]
pub struct Subscriber {
    pub(crate) inner: Arc<SubscriberInner>,
}

pub(crate) struct SubscriberInner {
    pub(crate) participant: Arc<ParticipantInner>,
    pub(crate) qos: SubscriberQos,
}

impl Subscriber {
    pub(crate) fn new(participant: Arc<ParticipantInner>, qos: SubscriberQos) -> Self {
        Self { inner: Arc::new(SubscriberInner { participant, qos }) }
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
