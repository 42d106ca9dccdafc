//! Replies of the runtime to requests of other threads.
//!
//! Requests for a view or a copy of the admitted flows are answered at once. A registration is
//! answered when it is decided and its entries are in force, or after [`DECISION_TIME`] in its
//! present state.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Instant as Clock;

use super::Runtime;
use crate::api::controller_client::{ControllerRequest, DECISION_TIME, Registered, VIEW_INTERVAL};
use crate::registration::{RegistrationError, RegistrationId};
use crate::view::View;

/// A client that waits for the decision on its registration.
pub(super) struct PendingRegistration {
    id: RegistrationId,
    is_new: bool,
    reply: SyncSender<Result<Registered, RegistrationError>>,
    until: Clock,
}

impl Runtime {
    /// Replies to pending requests.
    pub(super) fn answer(&mut self) {
        while let Ok(request) = self.requests.1.try_recv() {
            let now = self.now();
            // A client that has timed out needs no reply.
            match request {
                ControllerRequest::View(asker) => drop(asker.try_send(self.recent_view())),
                ControllerRequest::Trial(asker) => {
                    let trial = self.controller.admission().map(|admission| admission.trial());
                    drop(asker.try_send(trial));
                }
                ControllerRequest::Register(owner, registration, asker) => {
                    match self.controller.register(now, &owner, *registration) {
                        Ok((id, is_new)) => {
                            self.waiting.push(PendingRegistration {
                                id,
                                is_new,
                                reply: asker,
                                until: Clock::now() + DECISION_TIME,
                            });
                        }
                        Err(why) => drop(asker.try_send(Err(why))),
                    }
                    self.invalidate_view();
                }
                ControllerRequest::Unregister(owner, id, asker) => {
                    let pair = self.controller.registration_view(id).ok_or(RegistrationError::Unknown);
                    let ended = pair.and_then(|pair| self.controller.unregister(now, &owner, id).map(|()| pair));
                    drop(asker.try_send(ended));
                    self.invalidate_view();
                }
            }
        }
        self.answer_registrations();
    }

    /// Invalidates the cached view, so that the next request sees the change, and writes pending
    /// octets to the switches.
    fn invalidate_view(&mut self) {
        self.view = None;
        self.write_all();
    }

    fn answer_registrations(&mut self) {
        let now = Clock::now();
        for waiting in std::mem::take(&mut self.waiting) {
            match self.controller.registration(waiting.id) {
                Some(state) if !state.is_decided() && now < waiting.until => self.waiting.push(waiting),
                Some(_) => {
                    let pair = self.controller.registration_view(waiting.id).ok_or(RegistrationError::Unknown);
                    drop(waiting.reply.try_send(pair.map(|pair| Registered { pair, is_new: waiting.is_new })));
                    self.view = None;
                }
                // The lease has expired, or this controller is no longer the leader.
                None => drop(waiting.reply.try_send(Err(RegistrationError::Unknown))),
            }
        }
    }

    fn recent_view(&mut self) -> Arc<View> {
        let now = self.now();
        let oldest = now.0.saturating_sub(u64::try_from(VIEW_INTERVAL.as_nanos()).unwrap_or(u64::MAX));
        if let Some(view) = self.view.as_ref().filter(|view| view.time_ns > oldest) {
            return Arc::clone(view);
        }
        let view = Arc::new(self.controller.view(now));
        self.view = Some(Arc::clone(&view));
        view
    }
}
