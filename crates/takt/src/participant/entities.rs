//! A participant's publishers, subscribers and topics: creating, enabling, finding and deleting them
//! (DDS 1.4 §2.2.2.2.1).

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use takt_core::InstanceHandle;
use takt_wire::{Guid, Timestamp};

use super::{DomainParticipant, ParticipantInner, UNDISTURBED};
use crate::condition::StatusCondition;
use crate::publisher::PublisherInner;
use crate::qos::{DomainParticipantQos, PublisherQos, SubscriberQos, TopicQos};
use crate::reader::AnyDataReader;
use crate::runtime::clock;
use crate::runtime::listeners::{Listener, ParentId};
use crate::runtime::pi_mutex::PiMutex;
use crate::status::StatusMask;
use crate::subscriber::SubscriberInner;
use crate::topic::{AnyTopic, TopicInner};
use crate::writer::AnyDataWriter;
use crate::{ContentFilteredTopic, Error, Publisher, Result, Subscriber, Topic, TypeSupport};

/// What entities are created with that take the participant's defaults.
#[derive(Default)]
pub(crate) struct Defaults {
    publisher: PublisherQos,
    subscriber: SubscriberQos,
    topic: TopicQos,
}

/// What was made of this participant and lives.
#[derive(Default)]
pub(crate) struct Entities {
    publishers: Vec<Weak<PublisherInner>>,
    subscribers: Vec<Weak<SubscriberInner>>,
    topics: Vec<Weak<TopicInner>>,
}

fn living<T>(entities: &[Weak<T>]) -> Vec<Arc<T>> {
    entities.iter().filter_map(Weak::upgrade).collect()
}

fn adopt<T>(entities: &mut Vec<Weak<T>>, entity: &Arc<T>) {
    entities.retain(|known| known.strong_count() > 0);
    entities.push(Arc::downgrade(entity));
}

impl DomainParticipant {
    /// Creates a topic. Nothing is announced before a writer or reader uses it.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if there is a topic of this name with another type.
    pub fn create_topic<T: TypeSupport>(&self, name: &str, qos: TopicQos) -> Result<Topic<T>> {
        Ok(Topic::from_inner(self.inner.register_topic(name, T::TYPE_NAME, qos)?))
    }

    /// Creates a topic of the samples of another one that pass a filter, written in the SQL of DDS 1.4 annex B, in which
    /// `%0` to `%99` stand for parameters.
    ///
    /// # Errors
    /// [`Error::BadParameter`] if the expression is none, or does not fit the type or the parameters.
    pub fn create_contentfilteredtopic<T: TypeSupport>(
        &self,
        name: &str,
        related_topic: &Topic<T>,
        expression: &str,
        parameters: &[&str],
    ) -> Result<ContentFilteredTopic<T>> {
        if !Arc::ptr_eq(&self.inner, &related_topic.inner.participant) {
            return Err(Error::BadParameter { what: "the topic belongs to another participant".into() });
        }
        ContentFilteredTopic::new(name, related_topic, expression, parameters)
    }

    /// Creates a publisher; it is enabled if the participant is, and its `ENTITY_FACTORY` says so.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn create_publisher(&self, qos: PublisherQos) -> Result<Publisher> {
        Publisher::new(&self.inner, qos, self.inner.enables_entities())
    }

    /// Creates a subscriber; it is enabled if the participant is, and its `ENTITY_FACTORY` says so.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn create_subscriber(&self, qos: SubscriberQos) -> Result<Subscriber> {
        Subscriber::new(&self.inner, qos, self.inner.enables_entities())
    }

    /// What publishers are created with that take the participant's default.
    #[must_use]
    pub fn default_publisher_qos(&self) -> PublisherQos {
        self.inner.defaults.lock().expect(UNDISTURBED).publisher.clone()
    }

    /// Changes it.
    pub fn set_default_publisher_qos(&self, qos: PublisherQos) {
        self.inner.defaults.lock().expect(UNDISTURBED).publisher = qos;
    }

    /// What subscribers are created with that take the participant's default.
    #[must_use]
    pub fn default_subscriber_qos(&self) -> SubscriberQos {
        self.inner.defaults.lock().expect(UNDISTURBED).subscriber.clone()
    }

    /// Changes it.
    pub fn set_default_subscriber_qos(&self, qos: SubscriberQos) {
        self.inner.defaults.lock().expect(UNDISTURBED).subscriber = qos;
    }

    /// What topics are created with that take the participant's default.
    #[must_use]
    pub fn default_topic_qos(&self) -> TopicQos {
        self.inner.defaults.lock().expect(UNDISTURBED).topic.clone()
    }

    /// Changes it.
    pub fn set_default_topic_qos(&self, qos: TopicQos) {
        self.inner.defaults.lock().expect(UNDISTURBED).topic = qos;
    }

    /// Enables a participant that was built disabled: it announces itself, and its publishers, subscribers and their
    /// endpoints are enabled if the `ENTITY_FACTORY` of each says so (DDS 1.4 §2.2.2.1.1.7). Does nothing if it is enabled.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn enable(&self) -> Result<()> {
        self.inner.engine.call(|driver, now| {
            driver.core.enable(now);
            Ok(())
        })?;
        self.inner.is_enabled.store(true, Ordering::Relaxed);
        if self.inner.enables_entities() {
            self.publishers().iter().try_for_each(Publisher::enable)?;
            self.subscribers().iter().try_for_each(Subscriber::enable)?;
        }
        Ok(())
    }

    /// Changes the participant's policies: USER_DATA, which others are told, and ENTITY_FACTORY.
    ///
    /// # Errors
    /// [`Error::ImmutablePolicy`] if its name or a property differs.
    pub fn set_qos(&self, qos: DomainParticipantQos) -> Result<()> {
        let mut current = self.inner.qos.lock().expect(UNDISTURBED);
        if current.entity_name != qos.entity_name {
            return Err(Error::ImmutablePolicy { policy: "ENTITY_NAME" });
        }
        if current.property != qos.property {
            return Err(Error::ImmutablePolicy { policy: "PROPERTY" });
        }
        self.inner.engine.call(|driver, _| {
            driver.core.set_qos(&qos);
            Ok(())
        })?;
        *current = qos;
        Ok(())
    }

    /// The participant's publishers that live.
    #[must_use]
    pub fn publishers(&self) -> Vec<Publisher> {
        let entities = self.inner.entities.lock().expect(UNDISTURBED);
        living(&entities.publishers).into_iter().map(|inner| Publisher { inner }).collect()
    }

    /// The participant's subscribers that live.
    #[must_use]
    pub fn subscribers(&self) -> Vec<Subscriber> {
        let entities = self.inner.entities.lock().expect(UNDISTURBED);
        living(&entities.subscribers).into_iter().map(|inner| Subscriber { inner }).collect()
    }

    /// A topic of this name that was created here (`lookup_topicdescription`).
    #[must_use]
    pub fn lookup_topic(&self, name: &str) -> Option<AnyTopic> {
        let entities = self.inner.entities.lock().expect(UNDISTURBED);
        living(&entities.topics).into_iter().find(|topic| topic.name == name).map(AnyTopic::from_inner)
    }

    /// Whether an endpoint of this handle, its GUID, belongs to the participant.
    #[must_use]
    pub fn contains_entity(&self, handle: InstanceHandle) -> bool {
        let (writers, readers) = self.inner.endpoints();
        let is_it = |guid: Guid| InstanceHandle::from(guid) == handle;
        writers.iter().any(|writer| is_it(writer.guid())) || readers.iter().any(|reader| is_it(reader.guid()))
    }

    /// Deletes all writers and readers of the participant, whatever handles there are. Publishers, subscribers and topics,
    /// which are nothing to others, go with their last handle.
    ///
    /// # Errors
    /// [`Error::IllegalOperation`] from another thread than the owner under `Runtime::Inline`.
    pub fn delete_contained_entities(&self) -> Result<()> {
        self.publishers().iter().try_for_each(Publisher::delete_contained_entities)?;
        self.subscribers().iter().try_for_each(Subscriber::delete_contained_entities)
    }

    /// Ignores another participant and all that it has from now on: as if it were not there. There is no way back.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] when 65,536 entities are ignored.
    pub fn ignore_participant(&self, participant: Guid) -> Result<()> {
        self.inner.engine.call(|driver, now| Ok(driver.core.ignore_participant(now, participant.prefix)?))
    }

    /// Ignores the writers and readers that others have of a topic.
    ///
    /// # Errors
    /// As [`ignore_participant`](Self::ignore_participant).
    pub fn ignore_topic(&self, name: &str) -> Result<()> {
        self.inner.engine.call(|driver, now| Ok(driver.core.ignore_topic(now, name)?))
    }

    /// Ignores a writer of another participant.
    ///
    /// # Errors
    /// As [`ignore_participant`](Self::ignore_participant).
    pub fn ignore_publication(&self, writer: Guid) -> Result<()> {
        self.inner.engine.call(|driver, now| Ok(driver.core.ignore_publication(now, writer)?))
    }

    /// Ignores a reader of another participant.
    ///
    /// # Errors
    /// As [`ignore_participant`](Self::ignore_participant).
    pub fn ignore_subscription(&self, reader: Guid) -> Result<()> {
        self.inner.engine.call(|driver, now| Ok(driver.core.ignore_subscription(now, reader)?))
    }

    /// The time of day that source and reception time stamps are made of.
    #[must_use]
    pub fn current_time(&self) -> Timestamp {
        clock::both().1
    }
}

impl ParticipantInner {
    /// Whether publishers and subscribers are enabled when they are created.
    pub(crate) fn enables_entities(&self) -> bool {
        self.is_enabled.load(Ordering::Relaxed)
            && self.qos.lock().expect(UNDISTURBED).entity_factory.autoenable_created_entities
    }

    pub(crate) fn check_enabled(&self) -> Result<()> {
        if self.is_enabled.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(Error::PreconditionNotMet { what: "the participant is not enabled".into() })
    }

    pub(crate) fn adopt_publisher(&self, publisher: &Arc<PublisherInner>) {
        adopt(&mut self.entities.lock().expect(UNDISTURBED).publishers, publisher);
    }

    pub(crate) fn adopt_subscriber(&self, subscriber: &Arc<SubscriberInner>) {
        adopt(&mut self.entities.lock().expect(UNDISTURBED).subscribers, subscriber);
    }

    /// All writers and readers that live.
    pub(crate) fn endpoints(&self) -> (Vec<AnyDataWriter>, Vec<AnyDataReader>) {
        let entities = self.entities.lock().expect(UNDISTURBED);
        let (publishers, subscribers) = (living(&entities.publishers), living(&entities.subscribers));
        drop(entities);
        let writers = publishers.into_iter().flat_map(|inner| Publisher { inner }.datawriters());
        let readers = subscribers.into_iter().flat_map(|inner| Subscriber { inner }.datareaders());
        (writers.collect(), readers.collect())
    }

    /// One more topic handle of that name; all have one type.
    pub(crate) fn register_topic(
        self: &Arc<Self>,
        name: &str,
        type_name: &str,
        qos: TopicQos,
    ) -> Result<Arc<TopicInner>> {
        let mut topics = self.topics.lock().expect(UNDISTURBED);
        let (known, count) = topics.entry(name.to_owned()).or_insert_with(|| (type_name.to_owned(), 0));
        if known != type_name {
            let what = format!("topic {name} exists with type {known}, not {type_name}");
            return Err(Error::PreconditionNotMet { what });
        }
        *count += 1;
        drop(topics);
        let topic = self.make_topic(name, type_name, qos, true);
        if topic.is_err() {
            self.forget_topic(name);
        }
        topic
    }

    /// A topic that may have the name of others and another type: for endpoints whose type is known at run time.
    pub(crate) fn make_topic(
        self: &Arc<Self>,
        name: &str,
        type_name: &str,
        qos: TopicQos,
        is_registered: bool,
    ) -> Result<Arc<TopicInner>> {
        let topic = Arc::new(TopicInner {
            participant: Arc::clone(self),
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            parent: self.add_parent()?,
            is_registered,
            qos: PiMutex::new(qos),
            told: 0.into(),
        });
        if is_registered {
            adopt(&mut self.entities.lock().expect(UNDISTURBED).topics, &topic);
        }
        Ok(topic)
    }

    /// A topic handle's last clone has gone.
    pub(crate) fn forget_topic(&self, name: &str) {
        let mut topics = self.topics.lock().expect(UNDISTURBED);
        if let Some((_, count)) = topics.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                topics.remove(name);
            }
        }
    }

    /// A place for the listener of a publisher, subscriber or topic.
    pub(crate) fn add_parent(&self) -> Result<ParentId> {
        self.engine.call_state(|state, _| Ok(state.parents.add()))
    }

    /// From the wrong thread of an inline participant it stays, without harm, until the participant goes.
    pub(crate) fn remove_parent(&self, id: ParentId) {
        let removed = self.engine.call_state(|state, _| Ok(state.parents.remove(id)));
        drop(removed);
    }

    pub(crate) fn set_parent_listener(&self, id: ParentId, listener: Option<Listener>, mask: StatusMask) -> Result<()> {
        let former = self.engine.call_state(|state, _| state.set_parent_listener(id, listener, mask))?;
        drop(former);
        Ok(())
    }

    /// The condition of a publisher, subscriber or topic.
    pub(crate) fn parent_condition(self: &Arc<Self>, id: ParentId) -> Result<StatusCondition> {
        let signal = self.engine.call_state(|state, _| state.parent_signal(id))?;
        Ok(StatusCondition { signal, engine: Arc::clone(&self.engine) })
    }
}
