//! Publishers: what their writers have in common (DDS 1.4 §2.2.2.4.1).

use std::fmt;
use std::sync::Arc;

use takt_core::PublisherHandle;

use crate::participant::ParticipantInner;
use crate::qos::{DataWriterQos, PublisherQos};
use crate::{DataWriter, Error, Flow, Result, Topic, TypeSupport};

/// Creates writers, which share its presentation and partitions. Handles are clones of one another; it goes with the
/// last handle and writer.
#[derive(Clone)]
pub struct Publisher {
    pub(crate) inner: Arc<PublisherInner>,
}

pub(crate) struct PublisherInner {
    pub(crate) participant: Arc<ParticipantInner>,
    pub(crate) qos: PublisherQos,
    pub(crate) group: PublisherHandle,
}

impl Drop for PublisherInner {
    fn drop(&mut self) {
        match self.participant.engine.call(|driver, _| Ok(driver.core.delete_publisher(self.group)?)) {
            // Another thread than the owner's of an inline participant cannot delete; the participant's end will.
            Ok(()) | Err(Error::AlreadyDeleted | Error::IllegalOperation { .. }) => {}
            Err(error) => debug_assert!(false, "deleting a publisher failed: {error}"),
        }
    }
}

impl Publisher {
    pub(crate) fn new(participant: Arc<ParticipantInner>, qos: PublisherQos) -> Result<Self> {
        let group = participant.engine.call(|driver, _| Ok(driver.core.create_publisher(qos.presentation)?))?;
        Ok(Self { inner: Arc::new(PublisherInner { participant, qos, group }) })
    }

    /// What the publisher's writers write from now on belongs together: readers whose subscriber asks for coherent access see
    /// all of it at once or nothing (PRESENTATION, DDS 1.4 §2.2.3.6). With scope INSTANCE or TOPIC what each writer writes is a
    /// set of its own, with scope GROUP what all of them write is one. Calls may be nested; the set ends with as many calls of
    /// [`end_coherent_changes`](Self::end_coherent_changes). Without `coherent_access` in the publisher's PRESENTATION it makes
    /// no difference.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn begin_coherent_changes(&self) -> Result<()> {
        let Self { inner } = self;
        inner.participant.engine.call(|driver, _| Ok(driver.core.begin_coherent_changes(inner.group)?))
    }

    /// Ends the coherent set, which readers may see now.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if none has begun, [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn end_coherent_changes(&self) -> Result<()> {
        let Self { inner } = self;
        inner.participant.engine.call(|driver, now| {
            driver.core.end_coherent_changes(now, inner.group)?;
            driver.transmit(now);
            Ok(())
        })
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
