//! State and operations that writers and readers share: names, condition, listener, registration
//! with the runtime.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use takt_wire::Guid;

use crate::Result;
use crate::condition::StatusCondition;
use crate::runtime::driver::Driver;
use crate::runtime::engine::Engine;
use crate::runtime::event_count::EventCount;
use crate::runtime::listeners::{EndpointRef, Listener, ParentId, TreePosition};
use crate::runtime::state::{Endpoint, Identity, State, Target};
use crate::status::{Signal, StatusMask};
use crate::timing::SchedulingProperties;
use crate::topic::{AnyTopic, TopicInner};

/// Writer or reader: the methods that [`AnyDataWriter`](crate::AnyDataWriter) and
/// [`AnyDataReader`](crate::AnyDataReader) share. After `close` of the endpoint, those that return
/// a result fail with [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted).
pub struct AnyEndpoint {
    pub(crate) target: Target,
    guid: Guid,
    pub(crate) signal: Arc<Signal>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) topic: Arc<TopicInner>,
    type_id: TypeId,
}

impl AnyEndpoint {
    /// Registers an endpoint of values of type `T`, which the core has created, with the runtime.
    /// `group` is its publisher or subscriber. No listener is called before
    /// [`complete`](Self::complete).
    pub(crate) fn register<T: 'static>(
        state: &mut State,
        (target, guid): (Target, Guid),
        (group, topic): (ParentId, &Arc<TopicInner>),
        progress: Arc<EventCount>,
        timing: SchedulingProperties,
    ) -> Self {
        let signal = Arc::new(Signal::new());
        let position = TreePosition { group, topic: topic.parent };
        let identity = Identity { target, guid, topic: topic.name.clone() };
        state.add_endpoint(Endpoint::new(identity, Arc::clone(&signal), progress, position, timing));
        let engine = Arc::clone(&topic.participant.engine);
        Self { target, guid, signal, engine, topic: Arc::clone(topic), type_id: TypeId::of::<T>() }
    }

    /// Makes the entity known to the runtime, which calls its listeners from now on.
    pub(crate) fn complete(&self, entity: EndpointRef) -> Result<()> {
        self.engine.call_state(|state, _| {
            state.complete(self.target, entity);
            Ok(())
        })
    }

    /// Reports whether the endpoint was created for values of type `T`.
    pub(crate) fn is_of_type<T: 'static>(&self) -> bool {
        self.type_id == TypeId::of::<T>()
    }

    /// Returns the GUID.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.guid
    }

    /// Returns the name of the topic.
    #[must_use]
    pub fn topic_name(&self) -> &str {
        &self.topic.name
    }

    /// Returns the name of the topic's type.
    #[must_use]
    pub fn type_name(&self) -> &str {
        &self.topic.type_name
    }

    /// Returns the topic without its type.
    #[must_use]
    pub fn any_topic(&self) -> AnyTopic {
        AnyTopic::from_inner(Arc::clone(&self.topic))
    }

    /// Returns the condition that is true while an enabled status has changed.
    #[must_use]
    pub fn status_condition(&self) -> StatusCondition {
        StatusCondition { signal: Arc::clone(&self.signal), engine: Arc::clone(&self.engine) }
    }

    /// Returns the statuses that have changed since they were last read.
    #[must_use]
    pub fn status_changes(&self) -> StatusMask {
        self.signal.changes()
    }

    /// Resets a status and reads its value.
    pub(crate) fn status<S>(
        &self,
        status: StatusMask,
        read: impl FnOnce(&mut Driver) -> std::result::Result<S, takt_core::Error>,
    ) -> Result<S> {
        self.engine.inspect(|driver| {
            self.signal.clear(status);
            Ok(read(driver)?)
        })
    }

    /// Resumes a listener that was suspended because it exceeded its
    /// [budget](crate::BUDGET_PROPERTY). Has no effect if the listener is not suspended.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) if the endpoint was closed.
    pub fn resume_listener(&self) -> Result<()> {
        self.engine.call_state(|state, _| state.resume(self.target))
    }

    /// Removes the listener. Its statuses go to the listener of the publisher or subscriber, or of
    /// the participant.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) if the endpoint was closed.
    pub fn clear_listener(&self) -> Result<()> {
        self.replace_listener(None, StatusMask::NONE)
    }

    pub(crate) fn replace_listener(&self, listener: Option<Listener>, mask: StatusMask) -> Result<()> {
        let former = self.engine.call_state(|state, _| state.set_listener(self.target, listener, mask))?;
        drop(former);
        Ok(())
    }

    /// Formats the endpoint as a structure of this name.
    pub(crate) fn fmt_as(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name).field("guid", &self.guid()).field("topic_name", &self.topic_name()).finish_non_exhaustive()
    }
}

impl fmt::Debug for AnyEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as("AnyEndpoint", f)
    }
}
