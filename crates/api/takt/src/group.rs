//! State that publishers and subscribers share: policies, enabling, and the endpoints that they
//! contain (DDS 1.4 §2.2.2.4.1, §2.2.2.5.2).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use crate::participant::ParticipantInner;
use crate::qos::{EntityFactory, PolicySet};
use crate::runtime::listeners::{Listener, ParentId};
use crate::runtime::pi_mutex::PiMutex;
use crate::status::StatusMask;
use crate::{Error, Result};

const UNDISTURBED: &str = "the lock is not poisoned: no user code runs under it";

/// State of a publisher or subscriber with policies `Q`. Its endpoints have policies `D` and cores
/// `E`.
pub(crate) struct Group<Q, D, E> {
    pub(crate) participant: Arc<ParticipantInner>,
    pub(crate) parent: ParentId,
    is_enabled: AtomicBool,
    qos: PiMutex<Q>,
    default_qos: PiMutex<D>,
    endpoints: PiMutex<Vec<Weak<E>>>,
}

impl<Q: PolicySet + Clone, D: Clone + Default, E> Group<Q, D, E> {
    pub(crate) fn new(participant: &Arc<ParticipantInner>, qos: Q, is_enabled: bool) -> Result<Self> {
        Ok(Self {
            participant: Arc::clone(participant),
            parent: participant.add_parent()?,
            is_enabled: AtomicBool::new(is_enabled),
            qos: PiMutex::new(qos),
            default_qos: PiMutex::new(D::default()),
            endpoints: PiMutex::new(Vec::new()),
        })
    }

    pub(crate) fn qos(&self) -> Q {
        self.qos.lock().expect(UNDISTURBED).clone()
    }

    pub(crate) fn set_qos(&self, qos: Q) {
        *self.qos.lock().expect(UNDISTURBED) = qos;
    }

    pub(crate) fn default_qos(&self) -> D {
        self.default_qos.lock().expect(UNDISTURBED).clone()
    }

    pub(crate) fn set_default_qos(&self, qos: D) {
        *self.default_qos.lock().expect(UNDISTURBED) = qos;
    }

    /// Reports whether new endpoints are enabled at creation.
    pub(crate) fn enables_entities(&self) -> bool {
        let autoenables = |factory: &EntityFactory| factory.autoenable_created_entities;
        self.is_enabled.load(Ordering::Relaxed) && self.qos.lock().expect(UNDISTURBED).policy().is_some_and(autoenables)
    }

    /// Fails if the group is not enabled; `what` names it.
    pub(crate) fn check_enabled(&self, what: &str) -> Result<()> {
        if self.is_enabled.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(Error::PreconditionNotMet { what: format!("the {what} is not enabled") })
    }

    /// Enables the group. Returns whether its endpoints are to be enabled too.
    pub(crate) fn enable(&self) -> Result<bool> {
        self.participant.check_enabled()?;
        self.is_enabled.store(true, Ordering::Relaxed);
        Ok(self.enables_entities())
    }

    pub(crate) fn register(&self, endpoint: &Arc<E>) {
        let mut endpoints = self.endpoints.lock().expect(UNDISTURBED);
        endpoints.retain(|known| known.strong_count() > 0);
        endpoints.push(Arc::downgrade(endpoint));
    }

    /// Returns the existing endpoints.
    pub(crate) fn endpoints<A>(&self, handle: impl Fn(Arc<E>) -> A) -> Vec<A> {
        self.endpoints.lock().expect(UNDISTURBED).iter().filter_map(Weak::upgrade).map(handle).collect()
    }

    /// Sets or removes the listener.
    pub(crate) fn set_listener(&self, listener: Option<Listener>, mask: StatusMask) -> Result<()> {
        self.participant.set_parent_listener(self.parent, listener, mask)
    }
}

/// Passes each entity to `delete`. An entity that was deleted before is no error.
pub(crate) fn delete_each<A>(entities: &[A], delete: impl Fn(&A) -> Result<()>) -> Result<()> {
    entities.iter().try_for_each(|entity| match delete(entity) {
        Err(Error::AlreadyDeleted) => Ok(()),
        result => result,
    })
}

/// Checks the result of deleting an entity in its `drop`; `what` names it. Only the owner thread of
/// an inline participant can delete the entity. Otherwise it is deleted with the participant.
pub(crate) fn check_dropped(what: &str, result: Result<()>) {
    match result {
        Ok(()) | Err(Error::AlreadyDeleted | Error::IllegalOperation { .. }) => {}
        Err(error) => debug_assert!(false, "deleting a {what} failed: {error}"),
    }
}
