//! Publishers: what their writers have in common (DDS 1.4 §2.2.2.4.1).

use std::fmt;
use std::sync::Arc;

use crate::participant::ParticipantInner;
use crate::qos::{DataWriterQos, PublisherQos};
use crate::{DataWriter, Flow, Result, Topic, TypeSupport};

/// Creates writers, which share its presentation and partitions. Handles are clones of one another; it goes with the
/// last handle and writer.
#[derive(Clone)]
pub struct Publisher {
    pub(crate) inner: Arc<PublisherInner>,
}

pub(crate) struct PublisherInner {
    pub(crate) participant: Arc<ParticipantInner>,
    pub(crate) qos: PublisherQos,
}

impl Publisher {
    pub(crate) fn new(participant: Arc<ParticipantInner>, qos: PublisherQos) -> Self {
        Self { inner: Arc::new(PublisherInner { participant, qos }) }
    }

    /// The publisher's policies.
    #[must_use]
    pub fn qos(&self) -> &PublisherQos {
        &self.inner.qos
    }

    /// Creates a writer, enabled and announced to the domain. Its memory is reserved here, after its
    /// `RESOURCE_LIMITS` and history.
    ///
    /// # Errors
    /// [`Error::InconsistentPolicy`](crate::Error::InconsistentPolicy) if policies contradict each other,
    /// [`Error::Unsupported`](crate::Error::Unsupported) if no offered data representation is XCDR1 or XCDR2,
    /// [`Error::BadParameter`](crate::Error::BadParameter) if the topic is another participant's.
    pub fn create_datawriter<T: TypeSupport>(&self, topic: &Topic<T>, qos: DataWriterQos) -> Result<DataWriter<T>> {
        self.create_datawriter_with_flow(topic, qos, Flow::default())
    }

    /// As [`create_datawriter`](Self::create_datawriter), with a say in what the network sees of the writer.
    ///
    /// # Errors
    /// As there, and [`Error::Transport`](crate::Error::Transport) if the flow cannot be opened.
    pub fn create_datawriter_with_flow<T: TypeSupport>(
        &self,
        topic: &Topic<T>,
        qos: DataWriterQos,
        flow: Flow,
    ) -> Result<DataWriter<T>> {
        DataWriter::create(self, topic, qos, flow)
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("qos", &self.inner.qos).finish_non_exhaustive()
    }
}
