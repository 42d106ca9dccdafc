//! Subscribers: groups of readers with common policies (DDS 1.4 §2.2.2.5.2).

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use takt_core::{Selector, SubscriberHandle};

#[cfg(doc)]
use crate::Error;
use crate::condition::StatusCondition;
use crate::group::{Group, check_dropped, delete_each};
use crate::listener::{ALL_BUT_ON_READERS, SubscriberListener};
use crate::participant::ParticipantInner;
use crate::qos::{AccessScope, DataReaderQos, SubscriberQos};
use crate::reader::{AnyDataReader, ReaderCore};
use crate::runtime::listeners::Listener;
use crate::status::{Signal, StatusMask};
use crate::{DataReader, DomainParticipant, Flow, Result, TopicDescription};

/// Factory of readers, which share its PRESENTATION and PARTITION. Clones refer to the same
/// subscriber, which is deleted with its last handle and reader.
#[derive(Clone)]
pub struct Subscriber {
    pub(crate) inner: Arc<SubscriberInner>,
}

pub(crate) struct SubscriberInner {
    entities: Group<SubscriberQos, DataReaderQos, ReaderCore>,
    pub(crate) group: SubscriberHandle,
    /// PRESENTATION has the scope GROUP: reads fail outside `begin_access`.
    pub(crate) has_group_access: bool,
    /// Signal of `DATA_ON_READERS`, created when its condition is first requested.
    signal: OnceLock<Arc<Signal>>,
}

impl Deref for SubscriberInner {
    type Target = Group<SubscriberQos, DataReaderQos, ReaderCore>;

    fn deref(&self) -> &Self::Target {
        &self.entities
    }
}

impl SubscriberInner {
    /// Resets `DATA_ON_READERS` because the application reads from one of the readers.
    #[inline]
    pub(crate) fn reset_data_on_readers(&self) {
        if let Some(signal) = self.signal.get() {
            signal.clear(StatusMask::DATA_ON_READERS);
        }
    }
}

impl Subscriber {
    pub(crate) fn new(participant: &Arc<ParticipantInner>, qos: SubscriberQos, is_enabled: bool) -> Result<Self> {
        let group = participant.engine.call(|driver, _| Ok(driver.core.create_subscriber(qos.presentation)?))?;
        let has_group_access = qos.presentation.access_scope == AccessScope::Group;
        let inner = Arc::new(SubscriberInner {
            has_group_access,
            entities: Group::new(participant, qos, is_enabled)?,
            signal: OnceLock::new(),
            group,
        });
        participant.register_subscriber(&inner);
        Ok(Self { inner })
    }

    /// Returns the policies of the subscriber.
    #[must_use]
    pub fn qos(&self) -> SubscriberQos {
        self.inner.qos()
    }

    /// Changes the mutable policies of the subscriber: PARTITION, GROUP_DATA and ENTITY_FACTORY,
    /// and PRESENTATION as long as no reader is enabled. The change is announced. Writers that
    /// became incompatible are unmatched, and writers that became compatible are matched.
    ///
    /// # Errors
    /// [`Error::ImmutablePolicy`] if a reader is enabled and PRESENTATION differs.
    pub fn set_qos(&self, qos: SubscriberQos) -> Result<()> {
        let readers = self.datareaders();
        self.inner.participant.engine.call(|driver, now| {
            for reader in &readers {
                driver.core.set_subscriber_qos(now, reader.core.handle, &qos)?;
            }
            Ok(())
        })?;
        self.inner.set_qos(qos);
        Ok(())
    }

    /// Enables a subscriber that was created disabled. Its readers are enabled too if its
    /// ENTITY_FACTORY says so (DDS 1.4 §2.2.2.1.1.7).
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if the participant is not enabled.
    pub fn enable(&self) -> Result<()> {
        if self.inner.enable()? {
            self.datareaders().iter().try_for_each(AnyDataReader::enable)?;
        }
        Ok(())
    }

    /// Returns the default QoS of readers (`get_default_datareader_qos`).
    #[must_use]
    pub fn default_datareader_qos(&self) -> DataReaderQos {
        self.inner.default_qos()
    }

    /// Sets the default QoS of readers.
    pub fn set_default_datareader_qos(&self, qos: DataReaderQos) {
        self.inner.set_default_qos(qos);
    }

    /// Creates a reader of a [`Topic`](crate::Topic) or
    /// [`ContentFilteredTopic`](crate::ContentFilteredTopic) and announces it to the domain. If the
    /// subscriber is not enabled or its ENTITY_FACTORY says so, the reader remains disabled until
    /// [`enable`](AnyDataReader::enable). The reader's memory is reserved here, according to
    /// RESOURCE_LIMITS and HISTORY.
    ///
    /// # Errors
    /// [`Error::InconsistentPolicy`] if policies contradict each other, [`Error::BadParameter`] if
    /// the topic belongs to another participant.
    pub fn create_datareader<D: TopicDescription>(&self, topic: &D, qos: DataReaderQos) -> Result<DataReader<D::Data>> {
        self.create_datareader_with_flow(topic, qos, Flow::default())
    }

    /// As [`create_datareader`](Self::create_datareader), with control over the network flow of the
    /// reader.
    ///
    /// # Errors
    /// As [`create_datareader`](Self::create_datareader), and [`Error::Transport`] if the flow
    /// cannot be opened.
    pub fn create_datareader_with_flow<D: TopicDescription>(
        &self,
        topic: &D,
        qos: DataReaderQos,
        flow: Flow,
    ) -> Result<DataReader<D::Data>> {
        DataReader::create(self, topic, qos, flow)
    }

    /// Returns the existing readers of the subscriber.
    #[must_use]
    pub fn datareaders(&self) -> Vec<AnyDataReader> {
        self.inner.endpoints(AnyDataReader::from_core)
    }

    /// Returns the readers that hold samples which match the selector (`get_datareaders`). With
    /// PRESENTATION scope GROUP and ordered access, there is one entry for each such sample, in the
    /// order in which the samples were written. Take one sample from the reader of each entry.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] with scope GROUP and coherent or ordered access, without
    /// [`begin_access`](Self::begin_access); [`Error::AlreadyDeleted`] after the participant was
    /// closed.
    pub fn datareaders_with(&self, selector: &Selector) -> Result<Vec<AnyDataReader>> {
        let (readers, inner) = (self.datareaders(), &self.inner);
        let handles =
            inner.participant.engine.inspect(|driver| Ok(driver.core.readers_with(inner.group, selector)?))?;
        let find = |handle| readers.iter().find(|reader| reader.core.handle == handle).cloned();
        Ok(handles.into_iter().filter_map(find).collect())
    }

    /// Begins an access to the readers of this subscriber. Until [`end_access`](Self::end_access),
    /// no further coherent sets become visible, so the visible data are consistent. Calls may be
    /// nested. With PRESENTATION scope GROUP and coherent or ordered access, data can be read only
    /// within an access (DDS 1.4 §2.2.2.5.2.8).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after the participant was closed.
    pub fn begin_access(&self) -> Result<()> {
        let Self { inner } = self;
        inner.participant.engine.inspect(|driver| Ok(driver.core.begin_access(inner.group)?))
    }

    /// Ends an access. Data that arrived meanwhile become visible.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if no access has begun, [`Error::AlreadyDeleted`] after the
    /// participant was closed.
    pub fn end_access(&self) -> Result<()> {
        let Self { inner } = self;
        inner.participant.engine.call(|driver, now| Ok(driver.core.end_access(now, inner.group)?))
    }

    /// Returns a reader of the subscriber for the topic; any of them if there are several.
    #[must_use]
    pub fn lookup_datareader(&self, topic_name: &str) -> Option<AnyDataReader> {
        self.datareaders().into_iter().find(|reader| reader.topic_name() == topic_name)
    }

    /// Calls `on_data_available` of each reader that holds unread samples. Intended for use at the
    /// end of a listener's `on_data_on_readers` (`notify_datareaders`, DDS 1.4 §2.2.2.5.2).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if the participant was closed.
    pub fn notify_datareaders(&self) -> Result<()> {
        self.inner.participant.engine.call_state(|state, _| {
            state.notify_readers(self.inner.parent);
            Ok(())
        })
    }

    /// Deletes all readers of the subscriber, even if handles of them exist.
    ///
    /// # Errors
    /// [`Error::IllegalOperation`] from a thread other than the owner under `Runtime::Inline`.
    pub fn delete_contained_entities(&self) -> Result<()> {
        delete_each(&self.datareaders(), AnyDataReader::close)
    }

    /// Returns the condition that becomes true when samples arrive and false when the application
    /// reads from one of the readers (`DATA_ON_READERS`).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if the participant was closed.
    pub fn status_condition(&self) -> Result<StatusCondition> {
        let condition = self.inner.participant.parent_condition(self.inner.parent)?;
        self.inner.signal.get_or_init(|| Arc::clone(&condition.signal));
        Ok(condition)
    }

    /// Sets the listener of the subscriber, replacing a former one. It is called for all statuses
    /// except `DATA_ON_READERS` that the listeners of the readers do not handle.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if the participant was closed.
    pub fn set_listener(&self, listener: Box<dyn SubscriberListener>) -> Result<()> {
        self.set_listener_with_mask(listener, ALL_BUT_ON_READERS)
    }

    /// Sets the listener for the statuses in `mask` only. Other statuses go to the listener of the
    /// participant.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if the participant was closed.
    pub fn set_listener_with_mask(&self, listener: Box<dyn SubscriberListener>, mask: StatusMask) -> Result<()> {
        self.inner.set_listener(Some(Listener::Reader(listener)), mask)
    }

    /// Removes the listener. Its statuses go to the listener of the participant.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] if the participant was closed.
    pub fn clear_listener(&self) -> Result<()> {
        self.inner.set_listener(None, StatusMask::NONE)
    }

    /// Returns the participant of the subscriber.
    #[must_use]
    pub fn participant(&self) -> DomainParticipant {
        DomainParticipant::from_inner(Arc::clone(&self.inner.participant))
    }
}

impl Drop for SubscriberInner {
    fn drop(&mut self) {
        self.participant.remove_parent(self.parent);
        let result = self.participant.engine.call(|driver, _| Ok(driver.core.delete_subscriber(self.group)?));
        check_dropped("subscriber", result);
    }
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("qos", &self.qos()).finish_non_exhaustive()
    }
}
