//! Requests of the API to the controller's thread.
//!
//! The runtime replies between two rounds of its loop with a snapshot of the state, or with a copy
//! of the admitted flows. The threads of the API evaluate and serialize both. All requests within
//! [`VIEW_INTERVAL`] share one snapshot.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use mio::{Poll, Token, Waker};

use crate::admission::Trial;
use crate::registration::{Owner, Registration, RegistrationError, RegistrationId};
use crate::view::{Pair, View};

/// Maximum age of a snapshot.
pub const VIEW_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of waiting requests; further ones are refused.
const WAITING_MAX: usize = 64;
/// Time for which a registration may wait for its entries before the reply has its present
/// state.
pub const DECISION_TIME: Duration = Duration::from_secs(4);
/// Timeout of a reply.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A request with the channel for its reply.
#[derive(Debug)]
pub(crate) enum ControllerRequest {
    View(SyncSender<Arc<View>>),
    /// The reply is `None` without a description of the network.
    Trial(SyncSender<Option<Trial>>),
    Register(Owner, Box<Registration>, SyncSender<Result<Registered, RegistrationError>>),
    Unregister(Owner, RegistrationId, SyncSender<Result<Pair, RegistrationError>>),
}

/// An accepted registration.
#[derive(Debug, Clone, PartialEq)]
pub struct Registered {
    /// The pair with its decision.
    pub pair: Pair,
    /// Whether the registration is new; otherwise a lease was renewed.
    pub is_new: bool,
}

/// Error of a request without a reply: the controller is overloaded or has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoAnswer;

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the controller does not answer")
    }
}

impl std::error::Error for NoAnswer {}

/// Source of the state that the API serves.
pub trait Source: fmt::Debug + Send + Sync {
    /// Returns the state; it may be slightly older than the call.
    ///
    /// # Errors
    /// The controller does not answer.
    fn view(&self) -> Result<Arc<View>, NoAnswer>;

    /// Returns a copy of the admitted flows; `None` without a description of the network.
    ///
    /// # Errors
    /// The controller does not answer.
    fn trial(&self) -> Result<Option<Trial>, NoAnswer>;

    /// Accepts or renews a registration and waits for its decision, for at most [`DECISION_TIME`].
    ///
    /// # Errors
    /// The controller does not answer, or the registration is not accepted.
    fn register(
        &self,
        owner: &Owner,
        registration: Registration,
    ) -> Result<Result<Registered, RegistrationError>, NoAnswer>;

    /// Removes a registration and returns it.
    ///
    /// # Errors
    /// The controller does not answer, or the registration stays.
    fn unregister(&self, owner: &Owner, id: RegistrationId) -> Result<Result<Pair, RegistrationError>, NoAnswer>;
}

/// Client of the controller of a [`Runtime`](crate::runtime::Runtime); may be cloned.
#[derive(Clone, Debug)]
pub struct ControllerClient {
    sender: SyncSender<ControllerRequest>,
    waker: Arc<Waker>,
}

impl ControllerClient {
    /// Creates both ends of the channel. `token` wakes the runtime.
    pub(crate) fn new(poll: &Poll, token: Token) -> io::Result<(Self, Receiver<ControllerRequest>)> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let waker = Arc::new(Waker::new(poll.registry(), token)?);
        Ok((Self { sender, waker }, receiver))
    }

    fn request<T>(&self, make_request: impl FnOnce(SyncSender<T>) -> ControllerRequest) -> Result<T, NoAnswer> {
        let (sender, reply) = sync_channel(1);
        self.sender.try_send(make_request(sender)).map_err(|_: TrySendError<ControllerRequest>| NoAnswer)?;
        self.waker.wake().map_err(|_| NoAnswer)?;
        reply.recv_timeout(TIMEOUT).map_err(|_| NoAnswer)
    }
}

impl Source for ControllerClient {
    /// Returns a state that is at most [`VIEW_INTERVAL`] old.
    fn view(&self) -> Result<Arc<View>, NoAnswer> {
        self.request(ControllerRequest::View)
    }

    fn trial(&self) -> Result<Option<Trial>, NoAnswer> {
        self.request(ControllerRequest::Trial)
    }

    fn register(
        &self,
        owner: &Owner,
        registration: Registration,
    ) -> Result<Result<Registered, RegistrationError>, NoAnswer> {
        self.request(|reply| ControllerRequest::Register(owner.clone(), Box::new(registration), reply))
    }

    fn unregister(&self, owner: &Owner, id: RegistrationId) -> Result<Result<Pair, RegistrationError>, NoAnswer> {
        self.request(|reply| ControllerRequest::Unregister(owner.clone(), id, reply))
    }
}
