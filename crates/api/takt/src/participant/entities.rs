//! Creation, enabling, lookup and deletion of a participant's publishers, subscribers and topics
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

/// Default QoS of entities that the participant creates.
#[derive(Default)]
pub(crate) struct Defaults {
    publisher: PublisherQos,
    subscriber: SubscriberQos,
    topic: TopicQos,
}

/// Existing entities of the participant.
#[derive(Default)]
pub(crate) struct Entities {
    publishers: Vec<Weak<PublisherInner>>,
    subscribers: Vec<Weak<SubscriberInner>>,
    topics: Vec<Weak<TopicInner>>,
}

fn existing<T>(entities: &[Weak<T>]) -> Vec<Arc<T>> {
    entities.iter().filter_map(Weak::upgrade).collect()
}

fn register<T>(entities: &mut Vec<Weak<T>>, entity: &Arc<T>) {
    entities.retain(|known| known.strong_count() > 0);
    entities.push(Arc::downgrade(entity));
}

impl DomainParticipant {
    /// Creates a topic. It is announced only when a writer or reader uses it.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if a topic of this name exists with another type.
    pub fn create_topic<T: TypeSupport>(&self, name: &str, qos: TopicQos) -> Result<Topic<T>> {
        Ok(Topic::from_inner(self.inner.register_topic(name, T::TYPE_NAME, qos)?))
    }

    /// Creates a content-filtered topic: the samples of `topic` that pass a filter. The filter is
    /// an SQL expression of DDS 1.4 annex B with parameters `%0` to `%99`.
    ///
    /// # Errors
    /// [`Error::BadParameter`] if the expression is invalid, does not match the type or the
    /// parameters, or `related_topic` belongs to another participant.
    pub fn create_contentfilteredtopic<T: TypeSupport>(
        &self,
        name: &str,
        related_topic: &Topic<T>,
        expression: &str,
        parameters: &[&str],
    ) -> Result<ContentFilteredTopic<T>> {
        if !Arc::ptr_eq(&self.inner, &related_topic.inner.participant) {
            return Err(Error::bad_parameter("the topic belongs to another participant"));
        }
        ContentFilteredTopic::new(name, related_topic, expression, parameters)
    }

    /// Creates a publisher. It is enabled at once if the participant is enabled and its
    /// ENTITY_FACTORY says so.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn create_publisher(&self, qos: PublisherQos) -> Result<Publisher> {
        Publisher::new(&self.inner, qos, self.inner.enables_entities())
    }

    /// Creates a subscriber. It is enabled at once if the participant is enabled and its
    /// ENTITY_FACTORY says so.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn create_subscriber(&self, qos: SubscriberQos) -> Result<Subscriber> {
        Subscriber::new(&self.inner, qos, self.inner.enables_entities())
    }

    /// Returns the default QoS of publishers.
    #[must_use]
    pub fn default_publisher_qos(&self) -> PublisherQos {
        self.inner.defaults.lock().expect(UNDISTURBED).publisher.clone()
    }

    /// Sets the default QoS of publishers.
    pub fn set_default_publisher_qos(&self, qos: PublisherQos) {
        self.inner.defaults.lock().expect(UNDISTURBED).publisher = qos;
    }

    /// Returns the default QoS of subscribers.
    #[must_use]
    pub fn default_subscriber_qos(&self) -> SubscriberQos {
        self.inner.defaults.lock().expect(UNDISTURBED).subscriber.clone()
    }

    /// Sets the default QoS of subscribers.
    pub fn set_default_subscriber_qos(&self, qos: SubscriberQos) {
        self.inner.defaults.lock().expect(UNDISTURBED).subscriber = qos;
    }

    /// Returns the default QoS of topics.
    #[must_use]
    pub fn default_topic_qos(&self) -> TopicQos {
        self.inner.defaults.lock().expect(UNDISTURBED).topic.clone()
    }

    /// Sets the default QoS of topics.
    pub fn set_default_topic_qos(&self, qos: TopicQos) {
        self.inner.defaults.lock().expect(UNDISTURBED).topic = qos;
    }

    /// Enables a participant that was built disabled. It announces itself. Its publishers, its
    /// subscribers and their endpoints are enabled as far as the ENTITY_FACTORY of each allows
    /// (DDS 1.4 §2.2.2.1.1.7). Has no effect if the participant is already enabled.
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

    /// Changes the mutable policies of the participant: USER_DATA, which is announced, and
    /// ENTITY_FACTORY.
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

    /// Returns the existing publishers of the participant.
    #[must_use]
    pub fn publishers(&self) -> Vec<Publisher> {
        let entities = self.inner.entities.lock().expect(UNDISTURBED);
        existing(&entities.publishers).into_iter().map(|inner| Publisher { inner }).collect()
    }

    /// Returns the existing subscribers of the participant.
    #[must_use]
    pub fn subscribers(&self) -> Vec<Subscriber> {
        let entities = self.inner.entities.lock().expect(UNDISTURBED);
        existing(&entities.subscribers).into_iter().map(|inner| Subscriber { inner }).collect()
    }

    /// Returns the topic of this name if the participant has created one
    /// (`lookup_topicdescription`).
    #[must_use]
    pub fn lookup_topic(&self, name: &str) -> Option<AnyTopic> {
        let entities = self.inner.entities.lock().expect(UNDISTURBED);
        existing(&entities.topics).into_iter().find(|topic| topic.name == name).map(AnyTopic::from_inner)
    }

    /// Reports whether `handle`, the GUID of an endpoint, belongs to this participant.
    #[must_use]
    pub fn contains_entity(&self, handle: InstanceHandle) -> bool {
        let (writers, readers) = self.inner.endpoints();
        let is_it = |guid: Guid| InstanceHandle::from(guid) == handle;
        writers.iter().any(|writer| is_it(writer.guid())) || readers.iter().any(|reader| is_it(reader.guid()))
    }

    /// Deletes all writers and readers of the participant, even if handles of them exist.
    /// Publishers, subscribers and topics are not visible to remote participants; they are deleted
    /// with their last handle.
    ///
    /// # Errors
    /// [`Error::IllegalOperation`] from a thread other than the owner under `Runtime::Inline`.
    pub fn delete_contained_entities(&self) -> Result<()> {
        self.publishers().iter().try_for_each(Publisher::delete_contained_entities)?;
        self.subscribers().iter().try_for_each(Subscriber::delete_contained_entities)
    }

    /// Ignores a remote participant and all its entities permanently.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] when 65,536 entities are already ignored.
    pub fn ignore_participant(&self, participant: Guid) -> Result<()> {
        self.inner.engine.call(|driver, now| Ok(driver.core.ignore_participant(now, participant.prefix)?))
    }

    /// Ignores all remote writers and readers of a topic.
    ///
    /// # Errors
    /// As [`ignore_participant`](Self::ignore_participant).
    pub fn ignore_topic(&self, name: &str) -> Result<()> {
        self.inner.engine.call(|driver, now| Ok(driver.core.ignore_topic(now, name)?))
    }

    /// Ignores a remote writer.
    ///
    /// # Errors
    /// As [`ignore_participant`](Self::ignore_participant).
    pub fn ignore_publication(&self, writer: Guid) -> Result<()> {
        self.inner.engine.call(|driver, now| Ok(driver.core.ignore_publication(now, writer)?))
    }

    /// Ignores a remote reader.
    ///
    /// # Errors
    /// As [`ignore_participant`](Self::ignore_participant).
    pub fn ignore_subscription(&self, reader: Guid) -> Result<()> {
        self.inner.engine.call(|driver, now| Ok(driver.core.ignore_subscription(now, reader)?))
    }

    /// Returns the current time of the clock from which source and reception timestamps are taken.
    #[must_use]
    pub fn current_time(&self) -> Timestamp {
        clock::both().1
    }
}

impl ParticipantInner {
    /// Reports whether new publishers and subscribers are enabled at creation.
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

    pub(crate) fn register_publisher(&self, publisher: &Arc<PublisherInner>) {
        register(&mut self.entities.lock().expect(UNDISTURBED).publishers, publisher);
    }

    pub(crate) fn register_subscriber(&self, subscriber: &Arc<SubscriberInner>) {
        register(&mut self.entities.lock().expect(UNDISTURBED).subscribers, subscriber);
    }

    /// Returns all existing writers and readers.
    pub(crate) fn endpoints(&self) -> (Vec<AnyDataWriter>, Vec<AnyDataReader>) {
        let entities = self.entities.lock().expect(UNDISTURBED);
        let (publishers, subscribers) = (existing(&entities.publishers), existing(&entities.subscribers));
        drop(entities);
        let writers = publishers.into_iter().flat_map(|inner| Publisher { inner }.datawriters());
        let readers = subscribers.into_iter().flat_map(|inner| Subscriber { inner }.datareaders());
        (writers.collect(), readers.collect())
    }

    /// Registers one more handle of the named topic. All handles of a name have the same type.
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
            self.unregister_topic(name);
        }
        topic
    }

    /// Creates a topic that may share its name with topics of other types, for endpoints whose type
    /// is known only at run time.
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
            reported_count: 0.into(),
        });
        if is_registered {
            register(&mut self.entities.lock().expect(UNDISTURBED).topics, &topic);
        }
        Ok(topic)
    }

    /// Unregisters a topic handle whose last clone was dropped.
    pub(crate) fn unregister_topic(&self, name: &str) {
        let mut topics = self.topics.lock().expect(UNDISTURBED);
        if let Some((_, count)) = topics.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                topics.remove(name);
            }
        }
    }

    /// Reserves a slot for the listener of a publisher, subscriber or topic.
    pub(crate) fn add_parent(&self) -> Result<ParentId> {
        self.engine.call_state(|state, _| Ok(state.parents.add()))
    }

    /// Releases the slot. On a thread that does not own an inline participant, the slot remains
    /// until the participant is deleted.
    pub(crate) fn remove_parent(&self, id: ParentId) {
        let removed = self.engine.call_state(|state, _| Ok(state.parents.remove(id)));
        drop(removed);
    }

    pub(crate) fn set_parent_listener(&self, id: ParentId, listener: Option<Listener>, mask: StatusMask) -> Result<()> {
        let former = self.engine.call_state(|state, _| state.set_parent_listener(id, listener, mask))?;
        drop(former);
        Ok(())
    }

    /// Returns the status condition of a publisher, subscriber or topic.
    pub(crate) fn parent_condition(self: &Arc<Self>, id: ParentId) -> Result<StatusCondition> {
        let signal = self.engine.call_state(|state, _| state.parent_signal(id))?;
        Ok(StatusCondition { signal, engine: Arc::clone(&self.engine) })
    }
}
