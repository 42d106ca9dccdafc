//! State machine of a handshake with one remote participant.

use std::time::Duration;

use openssl::rand::rand_bytes;
use takt_wire::Guid;

use super::exchange::{Answer, Initiation};
use super::wire::{self, Challenge};
use super::{Authenticated, Credentials};
use crate::error::{ErrorKind, Result, SecurityError};
use crate::identity::UnixSeconds;
use crate::message::{CLASS_AUTH, CLASS_AUTH_REQUEST, GenericMessage, MessageIdentity};
use crate::token::Token;

/// Octets sent for each octet received until the remote participant is authenticated.
pub const AMPLIFICATION_MAX: usize = 3;

/// Minimum time between a Request and its repetition after an AuthRequest: the first Request may
/// still be in flight.
const REPLY_TIME: Duration = Duration::from_millis(20);

/// Role of a participant in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Participant with the lower GUID; it sends the Request.
    Initiator,
    /// Participant with the higher GUID; it sends the Reply.
    Replier,
}

/// Progress of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Messages are outstanding.
    Pending,
    /// The remote participant is authenticated.
    Authenticated,
    /// The timeout has expired.
    Failed,
}

/// Outcome of a handshake.
#[derive(Debug)]
pub enum Event {
    /// The remote participant proved its identity. Its permissions must be checked next.
    Authenticated(Box<Authenticated>),
    /// The timeout expired; contains the last refusal, if there was one.
    TimedOut(SecurityError),
}

enum State {
    Initiating(Box<Initiation>),
    AwaitingRequest,
    AwaitingFinal(Box<Answer>),
    /// An initiator keeps the signature of the Reply to recognize its repetitions.
    Authenticated(Option<Vec<u8>>),
    Failed,
}

/// Message with the time at which it is sent next.
struct Outgoing {
    payload: Vec<u8>,
    next: Option<Duration>,
    repeats: bool,
    was_sent: bool,
}

impl Outgoing {
    const fn new(payload: Vec<u8>, now: Duration, repeats: bool) -> Self {
        Self { payload, next: Some(now), repeats, was_sent: false }
    }

    /// Makes the message due at `at` or earlier.
    fn send_by(&mut self, at: Duration) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }
}

/// Handshake with one remote participant.
pub struct Handshake {
    remote: Guid,
    role: Role,
    state: State,
    own_challenge: Challenge,
    /// Last two challenges announced by the remote participant: a forged one does not displace the
    /// genuine one.
    remote_challenges: [Option<Challenge>; 2],
    /// AuthRequest, which is repeated until the handshake ends. The remote participant refuses a
    /// challenge that differs from announced ones. It may have received only those of an earlier
    /// handshake, or forged ones.
    announcement: Option<Outgoing>,
    outgoing: Option<Outgoing>,
    resend_period: Duration,
    deadline: Duration,
    /// Earliest time at which another or repeated Request is answered, and another AuthRequest is
    /// answered with a Request.
    next_answer: Duration,
    credit: usize,
    last_refusal: Option<SecurityError>,
}

impl Handshake {
    /// Creates a handshake with a participant that was discovered at `now`, a time with an
    /// arbitrary origin.
    ///
    /// # Errors
    /// The GUID is that of the local participant, or OpenSSL fails.
    pub fn new(local: &Credentials, remote: Guid, now: Duration) -> Result<Self> {
        let remote = remote.participant();
        if remote == local.guid {
            return Err(wire::malformed(format!("participant {remote} is the local one")));
        }
        let role = if local.guid < remote { Role::Initiator } else { Role::Replier };
        let mut own_challenge = [0; 32];
        rand_bytes(&mut own_challenge)?;
        let token = wire::auth_request(&own_challenge);
        let announcement = message(local, remote, MessageIdentity::default(), CLASS_AUTH_REQUEST, token);
        let announcement = Outgoing::new(announcement, now, true);
        let (state, outgoing) = match role {
            Role::Replier => (State::AwaitingRequest, None),
            Role::Initiator => {
                let initiation = Initiation::begin(local, own_challenge)?;
                let request = initiation.request(local)?;
                let payload = message(local, remote, MessageIdentity::default(), CLASS_AUTH, request);
                (State::Initiating(Box::new(initiation)), Some(Outgoing::new(payload, now, true)))
            }
        };
        Ok(Self {
            remote,
            role,
            state,
            own_challenge,
            remote_challenges: [None; 2],
            announcement: Some(announcement),
            outgoing,
            resend_period: local.options.resend_period,
            deadline: now + local.options.timeout,
            next_answer: now,
            credit: local.options.unsolicited_len_max,
            last_refusal: None,
        })
    }

    /// Returns the GUID of the remote participant.
    pub const fn remote(&self) -> Guid {
        self.remote
    }

    /// Returns the role of the local participant.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Returns the progress of the handshake.
    pub const fn progress(&self) -> Progress {
        match self.state {
            State::Authenticated(_) => Progress::Authenticated,
            State::Failed => Progress::Failed,
            _ => Progress::Pending,
        }
    }

    /// Returns the reason for which the last message was refused.
    pub const fn last_refusal(&self) -> Option<&SecurityError> {
        self.last_refusal.as_ref()
    }

    /// Counts octets that the remote participant sent outside of the handshake, in its
    /// announcements.
    pub fn credit(&mut self, len: usize) {
        self.credit = self.credit.saturating_add(len.saturating_mul(AMPLIFICATION_MAX));
    }

    /// Lifts the amplification limit: the address of the remote participant was validated, for
    /// instance by a reliable exchange.
    pub const fn handle_validated_address(&mut self) {
        self.credit = usize::MAX;
    }

    /// Handles a message of the stateless endpoints whose payload had `len` octets. `clock` has the
    /// origin of [`Handshake::new`], `now` is the time at which certificates are checked.
    ///
    /// # Errors
    /// The message is refused; the handshake continues.
    pub fn handle(
        &mut self,
        local: &Credentials,
        message: &GenericMessage<'_>,
        len: usize,
        clock: Duration,
        now: UnixSeconds,
    ) -> Result<Option<Event>> {
        self.credit(len);
        let handled = self.handle_message(local, message, clock, now);
        if let Err(error) = &handled {
            self.last_refusal = Some(error.clone());
        }
        handled
    }

    fn handle_message(
        &mut self,
        local: &Credentials,
        message: &GenericMessage<'_>,
        clock: Duration,
        now: UnixSeconds,
    ) -> Result<Option<Event>> {
        let destination = message.destination_participant;
        if message.identity.source.prefix != self.remote.prefix {
            return Err(wire::malformed(format!("message of {}, expected {}", message.identity.source, self.remote)));
        }
        if destination != local.guid && destination != Guid::UNKNOWN {
            return Err(wire::malformed(format!("message for {destination}, the participant is {}", local.guid)));
        }
        let [token] = message.tokens.as_slice() else {
            return Err(wire::malformed(format!("{} tokens in a message, expected 1", message.tokens.len())));
        };
        match (message.class_id, token.class_id.as_ref(), self.role) {
            (CLASS_AUTH_REQUEST, wire::AUTH_REQUEST, _) => self.handle_auth_request(token, clock).map(|()| None),
            (CLASS_AUTH, wire::REQUEST, Role::Replier) => {
                self.handle_request(local, message.identity, token, clock, now).map(|()| None)
            }
            (CLASS_AUTH, wire::REPLY, Role::Initiator) => self.handle_reply(local, message.identity, token, clock, now),
            (CLASS_AUTH, wire::FINAL, Role::Replier) => self.handle_final(token),
            (class, token, role) => Err(wire::malformed(format!("{class} with {token} for the {role:?}"))),
        }
    }

    fn handle_auth_request(&mut self, token: &Token<'_>, clock: Duration) -> Result<()> {
        let challenge = wire::challenge(token, "future_challenge")?;
        let is_new = !self.remote_challenges.contains(&Some(challenge));
        if is_new {
            self.remote_challenges.swap(0, 1);
            self.remote_challenges[0] = Some(challenge);
        }
        // Messages sent before the remote participant had discovered this one were lost.
        if is_new && clock >= self.next_answer && matches!(self.state, State::Initiating(_)) {
            self.send_by(clock, clock + REPLY_TIME);
        }
        Ok(())
    }

    fn handle_request(
        &mut self,
        local: &Credentials,
        identity: MessageIdentity,
        token: &Token<'_>,
        clock: Duration,
        now: UnixSeconds,
    ) -> Result<()> {
        match &self.state {
            State::AwaitingRequest => {}
            State::AwaitingFinal(_) if clock < self.next_answer => return Ok(()),
            State::AwaitingFinal(answer) => {
                if answer.answers(token) {
                    self.send_again(clock);
                    return Ok(());
                }
            }
            _ => return Ok(()),
        }
        self.check_announced(token, "challenge1")?;
        let remote = self.remote;
        let (answer, payload) = Answer::to_request(local, remote, token, self.own_challenge, now, |reply| {
            message(local, remote, identity, CLASS_AUTH, reply)
        })?;
        self.state = State::AwaitingFinal(Box::new(answer));
        if let Some(announcement) = &mut self.announcement {
            announcement.next = Some(clock + self.resend_period);
        }
        self.outgoing = Some(Outgoing::new(payload, clock, true));
        self.next_answer = clock + self.resend_period;
        Ok(())
    }

    fn handle_reply(
        &mut self,
        local: &Credentials,
        identity: MessageIdentity,
        token: &Token<'_>,
        clock: Duration,
        now: UnixSeconds,
    ) -> Result<Option<Event>> {
        let initiation = match &self.state {
            State::Initiating(initiation) => initiation,
            State::Authenticated(Some(signature)) => {
                let is_same = token.octets("signature") == Some(signature);
                // The Final was lost.
                if is_same && clock >= self.next_answer {
                    self.send_again(clock);
                }
                return Ok(None);
            }
            _ => return Ok(None),
        };
        self.check_announced(token, "challenge2")?;
        let remote = self.remote;
        let (authenticated, payload) =
            initiation.finish(local, remote, token, now, |last| message(local, remote, identity, CLASS_AUTH, last))?;
        self.state = State::Authenticated(Some(wire::signature_of(token)?.to_vec()));
        self.announcement = None;
        self.outgoing = Some(Outgoing::new(payload, clock, false));
        self.next_answer = clock + self.resend_period / 2;
        Ok(Some(Event::Authenticated(Box::new(authenticated))))
    }

    fn handle_final(&mut self, token: &Token<'_>) -> Result<Option<Event>> {
        let State::AwaitingFinal(answer) = &self.state else { return Ok(None) };
        answer.check(token)?;
        self.announcement = None;
        self.outgoing = None;
        match std::mem::replace(&mut self.state, State::Authenticated(None)) {
            State::AwaitingFinal(answer) => Ok(Some(Event::Authenticated(Box::new(answer.into_authenticated())))),
            _ => Ok(None),
        }
    }

    /// Checks that a challenge was announced, if the remote participant announced any.
    fn check_announced(&self, token: &Token<'_>, name: &str) -> Result<()> {
        let challenge = wire::challenge(token, name)?;
        let has_announced = self.remote_challenges.iter().any(Option::is_some);
        if has_announced && !self.remote_challenges.contains(&Some(challenge)) {
            return Err(wire::malformed(format!("{name} of {} is not the one announced", token.class_id)));
        }
        Ok(())
    }

    fn send_again(&mut self, clock: Duration) {
        self.send_by(clock, clock);
    }

    /// Schedules the AuthRequest and the last message for repetition at `at` or earlier.
    fn send_by(&mut self, clock: Duration, at: Duration) {
        self.next_answer = clock + self.resend_period / 2;
        let all = [&mut self.announcement, &mut self.outgoing];
        all.into_iter().flatten().for_each(|outgoing| outgoing.send_by(at));
    }

    /// Reports whether the AuthRequest and the last message may be sent. A repeated AuthRequest
    /// leaves enough octets for the message that follows it.
    fn may_send(&self) -> [bool; 2] {
        let credit = if matches!(self.state, State::Authenticated(_)) { usize::MAX } else { self.credit };
        let following = self.outgoing.as_ref().map_or(0, |outgoing| outgoing.payload.len());
        let is_affordable = self.announcement.as_ref().is_some_and(|announcement| {
            let reserved = if announcement.was_sent { following } else { 0 };
            announcement.payload.len() + reserved <= credit
        });
        [is_affordable, following <= credit]
    }

    /// Returns a payload for the stateless endpoints that is due, if the remote participant has
    /// sent enough.
    pub fn poll_transmit(&mut self, clock: Duration) -> Option<&[u8]> {
        let all = self.may_send().into_iter().zip([&mut self.announcement, &mut self.outgoing]);
        let due = all
            .filter_map(|(may_send, outgoing)| outgoing.as_mut().filter(|_| may_send))
            .find(|outgoing| outgoing.next.is_some_and(|next| next <= clock))?;
        self.credit = self.credit.saturating_sub(due.payload.len());
        due.next = due.repeats.then(|| clock + self.resend_period);
        due.was_sent = true;
        Some(&due.payload)
    }

    /// Returns the time of the next call of [`Handshake::poll_transmit`] or
    /// [`Handshake::handle_timeout`] if no message arrives earlier.
    pub fn next_timeout(&self) -> Option<Duration> {
        let all = self.may_send().into_iter().zip([&self.announcement, &self.outgoing]);
        let sendable = all.filter_map(|(may_send, outgoing)| outgoing.as_ref().filter(|_| may_send));
        let deadline = (self.progress() == Progress::Pending).then_some(self.deadline);
        sendable.filter_map(|outgoing| outgoing.next).chain(deadline).min()
    }

    /// Fails the handshake if its timeout has expired.
    pub fn handle_timeout(&mut self, clock: Duration) -> Option<Event> {
        if self.progress() != Progress::Pending || clock < self.deadline {
            return None;
        }
        let waits_for = match self.state {
            State::Initiating(_) => "Reply",
            State::AwaitingRequest => "Request",
            _ => "Final",
        };
        self.state = State::Failed;
        self.announcement = None;
        self.outgoing = None;
        let context = format!("participant {} sent no valid {waits_for} in time", self.remote);
        Some(Event::TimedOut(match self.last_refusal.take() {
            Some(refusal) => refusal.context(&context),
            None => SecurityError::new(ErrorKind::Handshake, context),
        }))
    }
}

/// Serializes a payload for the stateless endpoints.
fn message(local: &Credentials, remote: Guid, related: MessageIdentity, class_id: &str, token: Token<'_>) -> Vec<u8> {
    let message = GenericMessage {
        identity: local.next_message_identity(),
        related,
        destination_participant: remote,
        class_id,
        tokens: vec![token],
        ..GenericMessage::default()
    };
    message.to_payload()
}
