//! Questions of the API to the thread of the controller.
//!
//! The runtime answers between two rounds of its loop: with a snapshot, or with a copy of the admitted flows. Both are judged and
//! serialised in the threads of the API. A snapshot is shared by all questions of [`VIEW_INTERVAL`].

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use mio::{Poll, Token, Waker};

use crate::admission::Trial;
use crate::registration::{Owner, Registration, RegistrationError, RegistrationId};
use crate::view::{Pair, View};

/// A snapshot is at most this old.
pub const VIEW_INTERVAL: Duration = Duration::from_millis(250);
/// Questions that wait at most; further ones are refused.
const WAITING_MAX: usize = 64;
/// How long a registration may wait for its entries before it is answered as it is.
pub const DECISION_TIME: Duration = Duration::from_secs(4);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A question with the way back of its answer.
#[derive(Debug)]
pub(crate) enum Question {
    View(SyncSender<Arc<View>>),
    /// Without a description of the network there is none.
    Trial(SyncSender<Option<Trial>>),
    Register(Owner, Box<Registration>, SyncSender<Result<Registered, RegistrationError>>),
    Unregister(Owner, RegistrationId, SyncSender<Result<Pair, RegistrationError>>),
}

/// A registration that was taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Registered {
    /// The pair, with what is decided.
    pub pair: Pair,
    /// Whether it is new; the lease of a known one is renewed.
    pub is_new: bool,
}

/// No answer: the controller is overloaded, or has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoAnswer;

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the controller does not answer")
    }
}

impl std::error::Error for NoAnswer {}

/// Where the API has its state from.
pub trait Source: fmt::Debug + Send + Sync {
    /// The state as it is, or was a moment ago.
    ///
    /// # Errors
    /// There is no answer.
    fn view(&self) -> Result<Arc<View>, NoAnswer>;

    /// A copy of the admitted flows; `None` without a description of the network.
    ///
    /// # Errors
    /// There is no answer.
    fn trial(&self) -> Result<Option<Trial>, NoAnswer>;

    /// Takes or renews a registration, and waits until it is decided, for [`DECISION_TIME`] at most.
    ///
    /// # Errors
    /// There is no answer, or the registration is not taken.
    fn register(
        &self,
        owner: &Owner,
        registration: Registration,
    ) -> Result<Result<Registered, RegistrationError>, NoAnswer>;

    /// Removes a registration, and gives it back.
    ///
    /// # Errors
    /// There is no answer, or the registration stays.
    fn unregister(&self, owner: &Owner, id: RegistrationId) -> Result<Result<Pair, RegistrationError>, NoAnswer>;
}

/// Asks the controller of a [`Runtime`](crate::runtime::Runtime); may be cloned.
#[derive(Clone, Debug)]
pub struct Questions {
    sender: SyncSender<Question>,
    waker: Arc<Waker>,
}

impl Questions {
    /// The two ends. `token` wakes the runtime.
    pub(crate) fn new(poll: &Poll, token: Token) -> io::Result<(Self, Receiver<Question>)> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let waker = Arc::new(Waker::new(poll.registry(), token)?);
        Ok((Self { sender, waker }, receiver))
    }

    fn ask<T>(&self, question: impl FnOnce(SyncSender<T>) -> Question) -> Result<T, NoAnswer> {
        let (sender, answer) = sync_channel(1);
        self.sender.try_send(question(sender)).map_err(|_: TrySendError<Question>| NoAnswer)?;
        self.waker.wake().map_err(|_| NoAnswer)?;
        answer.recv_timeout(PATIENCE).map_err(|_| NoAnswer)
    }
}

impl Source for Questions {
    /// At most [`VIEW_INTERVAL`] old.
    fn view(&self) -> Result<Arc<View>, NoAnswer> {
        self.ask(Question::View)
    }

    fn trial(&self) -> Result<Option<Trial>, NoAnswer> {
        self.ask(Question::Trial)
    }

    fn register(
        &self,
        owner: &Owner,
        registration: Registration,
    ) -> Result<Result<Registered, RegistrationError>, NoAnswer> {
        self.ask(|asker| Question::Register(owner.clone(), Box::new(registration), asker))
    }

    fn unregister(&self, owner: &Owner, id: RegistrationId) -> Result<Result<Pair, RegistrationError>, NoAnswer> {
        self.ask(|asker| Question::Unregister(owner.clone(), id, asker))
    }
}
