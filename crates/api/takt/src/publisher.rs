//! Publishers: groups of writers with common policies (DDS 1.4 §2.2.2.4.1).

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use takt_core::PublisherHandle;

#[cfg(doc)]
use crate::Error;
use crate::group::{Group, check_dropped, delete_each};
use crate::listener::PublisherListener;
use crate::participant::ParticipantInner;
use crate::qos::{DataWriterQos, PublisherQos};
use crate::runtime::clock;
use crate::runtime::listeners::Listener;
use crate::status::StatusMask;
use crate::writer::{AnyDataWriter, WriterCore};
use crate::{DataWriter, DomainParticipant, Duration, Flow, Result, Topic, TypeSupport};

/// Factory of writers, which share its PRESENTATION and PARTITION. Clones refer to the same
/// publisher, which is deleted with its last handle and writer.
#[derive(Clone)]
pub struct Publisher {
    pub(crate) inner: Arc<PublisherInner>,
}

pub(crate) struct PublisherInner {
    entities: Group<PublisherQos, DataWriterQos, WriterCore>,
    pub(crate) group: PublisherHandle,
}

impl Deref for PublisherInner {
    type Target = Group<PublisherQos, DataWriterQos, WriterCore>;

    fn deref(&self) -> &Self::Target {
        &self.entities
    }
}

impl Publisher {
    pub(crate) fn new(participant: &Arc<ParticipantInner>, qos: PublisherQos, is_enabled: bool) -> Result<Self> {
        let group = participant.engine.call(|driver, _| Ok(driver.core.create_publisher(qos.presentation)?))?;
        let inner = Arc::new(PublisherInner { entities: Group::new(participant, qos, is_enabled)?, group });
        participant.register_publisher(&inner);
        Ok(Self { inner })
    }

    /// Returns the policies of the publisher.
    #[must_use]
    pub fn qos(&self) -> PublisherQos {
        self.inner.qos()
    }

    /// Changes the mutable policies of the publisher: PARTITION, GROUP_DATA and ENTITY_FACTORY, and
    /// PRESENTATION as long as no writer is enabled. The change is announced. Readers that became
    /// incompatible are unmatched, and readers that became compatible are matched.
    ///
    /// # Errors
    /// [`Error::ImmutablePolicy`] if a writer is enabled and PRESENTATION differs.
    pub fn set_qos(&self, qos: PublisherQos) -> Result<()> {
        let writers = self.datawriters();
        self.inner.participant.engine.call(|driver, now| {
            for writer in &writers {
                driver.core.set_publisher_qos(now, writer.core.handle, &qos)?;
            }
            Ok(())
        })?;
        self.inner.set_qos(qos);
        Ok(())
    }

    /// Enables a publisher that was created disabled. Its writers are enabled too if its
    /// ENTITY_FACTORY says so (DDS 1.4 §2.2.2.1.1.7).
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if the participant is not enabled.
    pub fn enable(&self) -> Result<()> {
        if self.inner.enable()? {
            self.datawriters().iter().try_for_each(AnyDataWriter::enable)?;
        }
        Ok(())
    }

    /// Returns the default QoS of writers (`get_default_datawriter_qos`).
    #[must_use]
    pub fn default_datawriter_qos(&self) -> DataWriterQos {
        self.inner.default_qos()
    }

    /// Sets the default QoS of writers.
    pub fn set_default_datawriter_qos(&self, qos: DataWriterQos) {
        self.inner.set_default_qos(qos);
    }

    /// Creates a writer and announces it to the domain. If the publisher is not enabled or its
    /// ENTITY_FACTORY says so, the writer remains disabled until [`enable`](AnyDataWriter::enable).
    /// The writer's memory is reserved here, according to RESOURCE_LIMITS and HISTORY.
    ///
    /// # Errors
    /// [`Error::InconsistentPolicy`] if policies contradict each other, [`Error::Unsupported`] if
    /// no offered data representation is XCDR1 or XCDR2, [`Error::BadParameter`] if the topic
    /// belongs to another participant.
    pub fn create_datawriter<T: TypeSupport>(&self, topic: &Topic<T>, qos: DataWriterQos) -> Result<DataWriter<T>> {
        self.create_datawriter_with_flow(topic, qos, Flow::default())
    }

    /// As [`create_datawriter`](Self::create_datawriter), with control over the network flow of the
    /// writer.
    ///
    /// # Errors
    /// As [`create_datawriter`](Self::create_datawriter), and [`Error::Transport`] if the flow
    /// cannot be opened.
    pub fn create_datawriter_with_flow<T: TypeSupport>(
        &self,
        topic: &Topic<T>,
        qos: DataWriterQos,
        flow: Flow,
    ) -> Result<DataWriter<T>> {
        DataWriter::create(self, topic, qos, flow)
    }

    /// Returns the existing writers of the publisher.
    #[must_use]
    pub fn datawriters(&self) -> Vec<AnyDataWriter> {
        self.inner.endpoints(AnyDataWriter::from_core)
    }

    /// Returns a writer of the publisher for the topic; any of them if there are several.
    #[must_use]
    pub fn lookup_datawriter(&self, topic_name: &str) -> Option<AnyDataWriter> {
        self.datawriters().into_iter().find(|writer| writer.topic_name() == topic_name)
    }

    /// Deletes all writers of the publisher, even if handles of them exist.
    ///
    /// # Errors
    /// [`Error::IllegalOperation`] from a thread other than the owner under `Runtime::Inline`.
    pub fn delete_contained_entities(&self) -> Result<()> {
        delete_each(&self.datawriters(), AnyDataWriter::close)
    }

    /// Suspends sending: samples written from now on are queued until
    /// [`resume_publications`](Self::resume_publications) sends them in as few datagrams as
    /// possible (DDS 1.4 §2.2.2.4.1). A `write` that finds its history full of queued samples
    /// blocks until its timeout expires.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if the participant was closed.
    pub fn suspend_publications(&self) -> Result<()> {
        self.suspend(true)
    }

    /// Sends the queued samples and ends the suspension.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if the participant was closed.
    pub fn resume_publications(&self) -> Result<()> {
        self.suspend(false)
    }

    fn suspend(&self, is_suspended: bool) -> Result<()> {
        let writers = self.datawriters();
        self.inner.participant.engine.call(|driver, _| {
            for writer in &writers {
                match driver.core.suspend_writer(writer.core.handle, is_suspended) {
                    Ok(()) | Err(takt_core::Error::AlreadyDeleted) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(())
        })
    }

    /// Begins a coherent set (PRESENTATION, DDS 1.4 §2.2.3.6). Readers whose subscriber requests
    /// coherent access receive all samples of the set at once or none of them.
    ///
    /// With scope INSTANCE or TOPIC, the samples of each writer form a set of their own. With scope
    /// GROUP, the samples of all writers form one set. Calls may be nested; the set ends with the
    /// matching call of [`end_coherent_changes`](Self::end_coherent_changes). Has no effect unless
    /// the publisher's PRESENTATION sets `coherent_access`.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn begin_coherent_changes(&self) -> Result<()> {
        let Self { inner } = self;
        inner.participant.engine.call(|driver, _| Ok(driver.core.begin_coherent_changes(inner.group)?))
    }

    /// Ends the coherent set, which makes it available to readers.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if no set has begun, [`Error::AlreadyDeleted`] after the
    /// participant was closed.
    pub fn end_coherent_changes(&self) -> Result<()> {
        let Self { inner } = self;
        inner.participant.engine.call(|driver, now| {
            driver.core.end_coherent_changes(now, inner.group)?;
            driver.transmit(now);
            Ok(())
        })
    }

    /// Waits until all matched reliable readers of the publisher's writers have acknowledged all
    /// samples.
    ///
    /// # Errors
    /// [`Error::Timeout`] if some did not before `max_wait` expired, [`Error::BadParameter`] for a
    /// negative duration.
    pub fn wait_for_acknowledgments(&self, max_wait: impl Into<Duration>) -> Result<()> {
        let max_wait = clock::timeout(max_wait)?;
        let start = clock::now();
        for writer in self.datawriters() {
            let left = match clock::deadline(start, max_wait) {
                Some(end) => end.since(clock::now()).into(),
                None => Duration::INFINITE,
            };
            writer.wait_for_acknowledgments(left)?;
        }
        Ok(())
    }

    /// Sets the listener of the publisher, replacing a former one. It is called for statuses of the
    /// writers that the listeners of the writers do not handle.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if the participant was closed.
    pub fn set_listener(&self, listener: Box<dyn PublisherListener>) -> Result<()> {
        self.set_listener_with_mask(listener, StatusMask::ALL)
    }

    /// Sets the listener for the statuses in `mask` only. Other statuses go to the listener of the
    /// participant.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if the participant was closed.
    pub fn set_listener_with_mask(&self, listener: Box<dyn PublisherListener>, mask: StatusMask) -> Result<()> {
        self.inner.set_listener(Some(Listener::Writer(listener)), mask)
    }

    /// Removes the listener. Its statuses go to the listener of the participant.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if the participant was closed.
    pub fn clear_listener(&self) -> Result<()> {
        self.inner.set_listener(None, StatusMask::NONE)
    }

    /// Returns the participant of the publisher.
    #[must_use]
    pub fn participant(&self) -> DomainParticipant {
        DomainParticipant::from_inner(Arc::clone(&self.inner.participant))
    }
}

impl Drop for PublisherInner {
    fn drop(&mut self) {
        self.participant.remove_parent(self.parent);
        let result = self.participant.engine.call(|driver, _| Ok(driver.core.delete_publisher(self.group)?));
        check_dropped("publisher", result);
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("qos", &self.qos()).finish_non_exhaustive()
    }
}
