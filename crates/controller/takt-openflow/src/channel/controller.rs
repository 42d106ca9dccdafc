//! Controller end of a channel: handshake, requests, transactions, bundles.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::link::{Link, Received};
use super::operation::{Failure, Kind, Operation, OperationId, Outcome, Part, Stage, reply_to};
use super::{CloseReason, Counters, Instant, Limits, SendError};
use crate::bundle::{BundleAdd, BundleControl, BundleControlType, Properties};
use crate::cause::ErrorMessage;
use crate::error::Malformed;
use crate::message::{Enclosed, Message, Xid};
use crate::multipart::{MORE, MultipartReply, MultipartRequest};
use crate::switch::{AsyncConfig, Features, SwitchConfig};
use crate::value::NO_BUFFER_LEN;
use crate::version::{Version, Versions};

/// Configuration of a controller's channel.
#[derive(Clone, Debug)]
pub struct ControllerConfig {
    /// Supported versions.
    pub versions: Versions,
    /// Configuration of the switch. By default, the switch sends whole packets.
    pub switch_config: SwitchConfig,
    /// Asynchronous messages to receive. `None` keeps the default of the switch. Since 1.3; omitted
    /// in 1.0.
    pub asynchronous: Option<AsyncConfig>,
    /// Limits of the channel.
    pub limits: Limits,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        Self {
            versions: Versions::ALL,
            switch_config: SwitchConfig { flags: 0, miss_send_len: NO_BUFFER_LEN },
            asynchronous: None,
            limits: Limits::default(),
        }
    }
}

/// Events of a controller's channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The switch is configured and accepts messages.
    Up {
        /// The version of the channel.
        version: Version,
        /// Features of the switch.
        features: Box<Features>,
    },
    /// Asynchronous message such as PACKET_IN, PORT_STATUS or FLOW_REMOVED. It may precede
    /// [`Event::Up`].
    Message {
        /// Transaction ID.
        xid: Xid,
        /// The message.
        message: Box<Message>,
    },
    /// ERROR for a message of [`Controller::send`], or without a matching message.
    Error {
        /// Transaction ID of the message.
        xid: Xid,
        /// Content of the ERROR.
        error: ErrorMessage,
    },
    /// An operation ended.
    Completed {
        /// Operation that ended.
        operation: OperationId,
        /// Outcome of the operation.
        outcome: Outcome,
    },
    /// Malformed message that is no reply to a request.
    Malformed {
        /// Type in the header.
        kind: u8,
        /// Transaction ID.
        xid: Xid,
        /// Violated rule.
        error: Malformed,
    },
    /// The connection ended. This is the last event.
    Down(CloseReason),
}

/// State of the handshake: the transaction IDs of FEATURES_REQUEST and of the last message, and the
/// replies so far.
struct Handshake {
    deadline: Instant,
    first: Xid,
    last: Xid,
    features: Option<Features>,
    is_configured: bool,
}

/// Connection of a controller to a switch.
pub struct Controller {
    config: ControllerConfig,
    link: Link,
    /// State of the handshake. `None` after the switch is configured.
    handshake: Option<Handshake>,
    events: VecDeque<Event>,
    operations: BTreeMap<OperationId, Operation>,
    deadlines: BTreeSet<(Instant, OperationId)>,
    /// Operation and part of each transaction ID in flight.
    in_flight: BTreeMap<Xid, (OperationId, Part)>,
    next_operation: u64,
    next_bundle: u32,
    is_down: bool,
    /// Reason of the end. It is reported after all other events.
    down: Option<CloseReason>,
}

impl Controller {
    /// Creates the channel of a new connection. HELLO waits for transmission.
    pub fn new(now: Instant, config: ControllerConfig) -> Self {
        let link = Link::new(now, config.versions, &config.limits, false);
        let deadline = now.after(config.limits.handshake);
        let handshake = Handshake { deadline, first: 0, last: 0, features: None, is_configured: false };
        Self {
            config,
            link,
            handshake: Some(handshake),
            events: VecDeque::new(),
            operations: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            in_flight: BTreeMap::new(),
            next_operation: 0,
            next_bundle: 0,
            is_down: false,
            down: None,
        }
    }

    /// Returns the version, once it is negotiated.
    pub fn version(&self) -> Option<Version> {
        self.link.version()
    }

    /// Reports whether the switch is configured and accepts messages.
    pub fn is_up(&self) -> bool {
        self.handshake.is_none() && !self.link.is_closed()
    }

    /// Returns the counters of the channel.
    pub fn counters(&self) -> Counters {
        self.link.counters
    }

    /// Handles octets of the peer. Returns the number of octets consumed.
    ///
    /// It consumes fewer while the queue of events or replies is full. The caller passes the rest
    /// again after [`Self::poll_event`] and [`Self::poll_transmit`]. An empty slice continues with
    /// a message that is buffered inside.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        // A message causes at most one event, the close of a bundle none.
        while self.events.len() < self.config.limits.events {
            match self.link.receive(now, &mut rest) {
                None => break,
                Some(Received::Open(version)) => self.begin_handshake(version),
                Some(Received::Message { xid, message, len }) => self.handle_message(xid, message, len),
                Some(Received::Malformed(header, error)) => {
                    let end = |_: &mut Operation| Some(Outcome::Malformed(error));
                    if !self.answer(header.xid, end) {
                        self.events.push_back(Event::Malformed { kind: header.kind, xid: header.xid, error });
                    }
                }
                Some(Received::Down(down)) => self.go_down(down),
            }
        }
        // Octets that arrive on a closed connection are discarded.
        if self.link.is_closed() { bytes.len() } else { bytes.len() - rest.len() }
    }

    /// Returns the octets for the peer. [`Self::transmitted`] reports how many the connection took.
    pub fn poll_transmit(&self) -> &[u8] {
        self.link.untransmitted()
    }

    /// Reports that the connection took the first `len` octets of [`Self::poll_transmit`].
    pub fn transmitted(&mut self, len: usize) {
        self.link.transmitted(len);
    }

    /// Returns the next event. After the connection ended, each operation in flight is reported as
    /// lost, followed by [`Event::Down`].
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if self.down.is_some()
            && let Some((operation, lost)) = self.operations.pop_first()
        {
            return Some(Event::Completed { operation, outcome: Outcome::Lost(lost.failures) });
        }
        self.down.take().map(Event::Down)
    }

    /// Returns the time of the next call of [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.link.is_closed() {
            return None;
        }
        let handshake = self.handshake.as_ref().map(|handshake| handshake.deadline);
        let operation = self.deadlines.first().map(|(deadline, _)| *deadline);
        [handshake, operation, self.link.deadline()].into_iter().flatten().min()
    }

    /// Ends operations whose deadline has passed, at most as many as the event queue can hold.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.link.is_closed() {
            return;
        }
        if self.handshake.as_ref().is_some_and(|handshake| now >= handshake.deadline) {
            return self.go_down(CloseReason::HandshakeTimedOut);
        }
        while self.events.len() < self.config.limits.events
            && let Some((deadline, operation)) = self.deadlines.first().copied()
            && deadline <= now
        {
            self.abandon(operation);
        }
        if let Some(down) = self.link.handle_timeout(now) {
            self.go_down(down);
        }
    }

    /// Reports that the peer or the network ended the connection.
    pub fn handle_disconnect(&mut self) {
        self.go_down(CloseReason::PeerClosed);
    }

    /// Ends the connection.
    pub fn close(&mut self) {
        self.go_down(CloseReason::Closed);
    }

    /// Sends a message without waiting for a reply. An ERROR for it becomes [`Event::Error`].
    pub fn send(&mut self, message: &Message) -> Result<Xid, SendError> {
        self.require_up()?;
        let xid = self.link.xid();
        self.link.send([(xid, message)].into_iter())?;
        Ok(xid)
    }

    /// Sends a request and waits for its reply. The operation ends with [`Outcome::Reply`] or
    /// [`Outcome::Multipart`].
    ///
    /// Requests are FEATURES, GET_CONFIG, BARRIER, ROLE, GET_ASYNC, QUEUE_GET_CONFIG, MULTIPART and
    /// experimenter requests.
    pub fn request(&mut self, now: Instant, timeout: Duration, request: &Message) -> Result<OperationId, SendError> {
        let kind = match request {
            Message::MultipartRequest(request) => Kind::Multipart { kind: request.body.kind(), body: None, octets: 0 },
            request => Kind::Request { is_reply: reply_to(request).ok_or(SendError::NoReply)? },
        };
        self.require_room(1)?;
        let xid = self.link.xid();
        self.link.send([(xid, request)].into_iter())?;
        Ok(self.begin(kind, now.after(timeout), vec![(xid, Part::Message(0))]))
    }

    /// Sends a multipart request in several parts.
    pub fn request_in_parts(
        &mut self,
        now: Instant,
        timeout: Duration,
        parts: Vec<MultipartRequest>,
    ) -> Result<OperationId, SendError> {
        let kind = parts.first().ok_or(SendError::NoReply)?.body.kind();
        self.require_room(1)?;
        let last = parts.len() - 1;
        let flagged = parts.into_iter().enumerate().map(|(index, mut part)| {
            part.flags = if index < last { part.flags | MORE } else { part.flags & !MORE };
            Message::MultipartRequest(part)
        });
        let messages: Vec<Message> = flagged.collect();
        let xid = self.link.xid();
        self.link.send(messages.iter().map(|message| (xid, message)))?;
        let kind = Kind::Multipart { kind, body: None, octets: 0 };
        Ok(self.begin(kind, now.after(timeout), vec![(xid, Part::Message(0))]))
    }

    /// Sends messages, followed by a barrier. The operation ends once: with [`Outcome::Done`], or
    /// with every ERROR and the message that caused it.
    pub fn transaction(
        &mut self,
        now: Instant,
        timeout: Duration,
        messages: &[Message],
    ) -> Result<OperationId, SendError> {
        self.require_room(messages.len() + 1)?;
        let mut xids: Vec<(Xid, Part)> =
            (0..messages.len()).map(|index| (self.link.xid(), Part::Message(index))).collect();
        xids.push((self.link.xid(), Part::First));
        let all = messages.iter().chain([&Message::BarrierRequest]);
        self.link.send(xids.iter().map(|(xid, _)| *xid).zip(all))?;
        Ok(self.begin(Kind::Transaction, now.after(timeout), xids))
    }

    /// Opens a bundle, fills it and closes it. The bundle is committed if the close is confirmed
    /// without an earlier error, otherwise discarded. `flags` are those of
    /// [`crate::bundle::bundle_flags`]. Not in 1.0.
    pub fn bundle(
        &mut self,
        now: Instant,
        timeout: Duration,
        flags: u16,
        messages: Vec<Message>,
    ) -> Result<OperationId, SendError> {
        self.require_room(messages.len() + 3)?;
        self.next_bundle = self.next_bundle.wrapping_add(1);
        let bundle = self.next_bundle;
        let mut xids = vec![(self.link.xid(), Part::First)];
        let mut all = vec![control(bundle, BundleControlType::OpenRequest, flags)];
        for (index, message) in messages.into_iter().enumerate() {
            let xid = self.link.xid();
            xids.push((xid, Part::Message(index)));
            let message = Enclosed { xid, message: Box::new(message) };
            all.push(Message::BundleAdd(BundleAdd { bundle, flags, message, properties: Vec::new() }));
        }
        xids.push((self.link.xid(), Part::Control));
        all.push(control(bundle, BundleControlType::CloseRequest, flags));
        self.link.send(xids.iter().map(|(xid, _)| *xid).zip(&all))?;
        let kind = Kind::Bundle { bundle, flags, stage: Stage::Filling, is_open: false };
        Ok(self.begin(kind, now.after(timeout), xids))
    }

    fn require_up(&self) -> Result<(), SendError> {
        if self.is_up() { Ok(()) } else { Err(SendError::NotConnected) }
    }

    fn require_room(&self, messages: usize) -> Result<(), SendError> {
        self.require_up()?;
        let limit = self.config.limits.in_flight;
        if self.in_flight.len() + messages > limit { Err(SendError::TooManyInFlight { limit }) } else { Ok(()) }
    }

    fn begin(&mut self, kind: Kind, deadline: Instant, parts: Vec<(Xid, Part)>) -> OperationId {
        let id = OperationId(self.next_operation);
        self.next_operation += 1;
        let xids = parts.iter().map(|(xid, _)| *xid).collect();
        self.in_flight.extend(parts.into_iter().map(|(xid, part)| (xid, (id, part))));
        self.deadlines.insert((deadline, id));
        self.operations.insert(id, Operation { kind, deadline, xids, failures: Vec::new() });
        id
    }

    /// Removes an operation and reports its outcome.
    fn complete(&mut self, id: OperationId, outcome: impl FnOnce(Vec<Failure>) -> Outcome) {
        let Some(operation) = self.operations.remove(&id) else { return };
        self.deadlines.remove(&(operation.deadline, id));
        for xid in &operation.xids {
            self.in_flight.remove(xid);
        }
        self.events.push_back(Event::Completed { operation: id, outcome: outcome(operation.failures) });
    }

    /// Ends an operation whose deadline has passed. A bundle without a commit is discarded.
    fn abandon(&mut self, id: OperationId) {
        if let Some(Operation { kind: Kind::Bundle { bundle, flags, stage: Stage::Filling, .. }, .. }) =
            self.operations.get(&id)
        {
            let discard = control(*bundle, BundleControlType::DiscardRequest, *flags);
            let xid = self.link.xid();
            self.link.follow_up(xid, &discard);
        }
        self.complete(id, Outcome::TimedOut);
    }

    fn begin_handshake(&mut self, version: Version) {
        let mut messages = vec![Message::FeaturesRequest, Message::SetConfig(self.config.switch_config)];
        if let Some(asynchronous) = self.config.asynchronous.clone()
            && version > Version::V1_0
        {
            messages.push(Message::SetAsync(asynchronous));
        }
        messages.push(Message::BarrierRequest);
        let xids: Vec<Xid> = messages.iter().map(|_| self.link.xid()).collect();
        if let Err(error) = self.link.send(xids.iter().copied().zip(&messages)) {
            return self.go_down(CloseReason::Handshake(error));
        }
        if let (Some(handshake), [first, .., last]) = (&mut self.handshake, xids.as_slice()) {
            (handshake.first, handshake.last) = (*first, *last);
        }
    }

    /// Handles a message of the handshake. Returns any other message.
    fn handle_handshake(&mut self, xid: Xid, message: Message) -> Option<Message> {
        let Some(handshake) = &mut self.handshake else { return Some(message) };
        match message {
            Message::Error(error) if (handshake.first..=handshake.last).contains(&xid) => {
                self.go_down(CloseReason::Refused(error));
                return None;
            }
            Message::FeaturesReply(features) if xid == handshake.first => handshake.features = Some(features),
            Message::BarrierReply if xid == handshake.last => handshake.is_configured = true,
            message => return Some(message),
        }
        if handshake.is_configured
            && let Some(features) = handshake.features.take()
            && let Some(version) = self.link.version()
        {
            self.handshake = None;
            self.events.push_back(Event::Up { version, features: Box::new(features) });
        }
        None
    }

    fn handle_message(&mut self, xid: Xid, message: Message, len: usize) {
        let Some(message) = self.handle_handshake(xid, message) else { return };
        match message {
            Message::Error(error) => self.handle_error(xid, error),
            Message::MultipartReply(reply) => self.handle_part(xid, reply, len),
            Message::BundleControl(reply) => self.handle_bundle_reply(xid, &reply),
            Message::BarrierReply if self.is_barrier_of_transaction(xid) => {
                let Some((id, _)) = self.in_flight.get(&xid).copied() else { return };
                self.complete(
                    id,
                    |failures| if failures.is_empty() { Outcome::Done } else { Outcome::Failed(failures) },
                );
            }
            message if self.in_flight.contains_key(&xid) => {
                self.answer(xid, |operation| match &operation.kind {
                    Kind::Request { is_reply } if is_reply(&message) => Some(Outcome::Reply(message)),
                    _ => Some(Outcome::Unexpected(message)),
                });
            }
            Message::FeaturesReply(_)
            | Message::GetConfigReply(_)
            | Message::BarrierReply
            | Message::RoleReply(_)
            | Message::GetAsyncReply(_)
            | Message::QueueGetConfigReply(_) => self.link.counters.unmatched += 1,
            message => self.events.push_back(Event::Message { xid, message: Box::new(message) }),
        }
    }

    fn is_barrier_of_transaction(&self, xid: Xid) -> bool {
        let Some((id, Part::First)) = self.in_flight.get(&xid) else { return false };
        matches!(self.operations.get(id), Some(Operation { kind: Kind::Transaction, .. }))
    }

    /// Ends the operation of `xid` if `end` returns an outcome. Returns whether the operation
    /// exists.
    fn answer(&mut self, xid: Xid, end: impl FnOnce(&mut Operation) -> Option<Outcome>) -> bool {
        let Some((id, _)) = self.in_flight.get(&xid).copied() else { return false };
        if let Some(outcome) = self.operations.get_mut(&id).and_then(end) {
            self.complete(id, |_| outcome);
        }
        true
    }

    fn handle_error(&mut self, xid: Xid, error: ErrorMessage) {
        let Some((id, part)) = self.in_flight.get(&xid).copied() else {
            self.events.push_back(Event::Error { xid, error });
            return;
        };
        let Some(operation) = self.operations.get_mut(&id) else { return };
        let message = match part {
            Part::Message(index) => Some(index),
            Part::First | Part::Control => None,
        };
        operation.failures.push(Failure { message, error });
        match (&mut operation.kind, part) {
            (Kind::Request { .. } | Kind::Multipart { .. }, _) | (Kind::Transaction, Part::First) => {
                self.complete(id, Outcome::Failed);
            }
            (Kind::Bundle { stage: Stage::Filling, is_open: true, .. }, Part::Control) => self.end_filling(id),
            (Kind::Bundle { .. }, Part::Control) => self.complete(id, Outcome::Failed),
            // The failure is recorded. The barrier, or the reply that closes the bundle, ends the
            // operation.
            (Kind::Transaction | Kind::Bundle { .. }, _) => {}
        }
    }

    fn handle_part(&mut self, xid: Xid, reply: MultipartReply, len: usize) {
        let limit = self.config.limits.multipart_bytes;
        let is_known = self.answer(xid, |operation| {
            let Kind::Multipart { kind, body, octets } = &mut operation.kind else {
                return Some(Outcome::Unexpected(Message::MultipartReply(reply)));
            };
            if reply.body.kind() != *kind {
                return Some(Outcome::Unexpected(Message::MultipartReply(reply)));
            }
            *octets += len;
            if *octets > limit {
                return Some(Outcome::TooLarge { limit });
            }
            let is_last = reply.flags & MORE == 0;
            match body {
                None => *body = Some(reply.body),
                Some(body) => {
                    if let Err(other) = body.append(reply.body) {
                        let reply = MultipartReply { flags: reply.flags, body: other };
                        return Some(Outcome::Unexpected(Message::MultipartReply(reply)));
                    }
                }
            }
            if is_last { body.take().map(Outcome::Multipart) } else { None }
        });
        if !is_known {
            self.link.counters.unmatched += 1;
        }
    }

    fn handle_bundle_reply(&mut self, xid: Xid, reply: &BundleControl) {
        let Some((id, _)) = self.in_flight.get(&xid).copied() else {
            self.link.counters.unmatched += 1;
            return;
        };
        let Some(operation) = self.operations.get_mut(&id) else { return };
        let Kind::Bundle { stage, is_open, .. } = &mut operation.kind else {
            let unexpected = Outcome::Unexpected(Message::BundleControl(reply.clone()));
            return self.complete(id, |_| unexpected);
        };
        match (reply.kind, *stage) {
            (BundleControlType::OpenReply, Stage::Filling) => *is_open = true,
            (BundleControlType::CloseReply, Stage::Filling) => self.end_filling(id),
            (BundleControlType::CommitReply, Stage::Committing) => {
                self.complete(
                    id,
                    |failures| if failures.is_empty() { Outcome::Done } else { Outcome::Failed(failures) },
                );
            }
            (BundleControlType::DiscardReply, Stage::Discarding) => self.complete(id, Outcome::Failed),
            _ => {
                let unexpected = Outcome::Unexpected(Message::BundleControl(reply.clone()));
                self.complete(id, |_| unexpected);
            }
        }
    }

    /// Handles the reply that closes a bundle: commits a bundle without errors, discards any other.
    fn end_filling(&mut self, id: OperationId) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        let Kind::Bundle { bundle, flags, stage, .. } = &mut operation.kind else { return };
        let is_good = operation.failures.is_empty();
        *stage = if is_good { Stage::Committing } else { Stage::Discarding };
        let kind = if is_good { BundleControlType::CommitRequest } else { BundleControlType::DiscardRequest };
        let message = control(*bundle, kind, *flags);
        let xid = self.link.xid();
        operation.xids.push(xid);
        self.in_flight.insert(xid, (id, Part::Control));
        self.link.follow_up(xid, &message);
    }

    fn go_down(&mut self, down: CloseReason) {
        self.link.close();
        self.handshake = None;
        self.deadlines.clear();
        self.in_flight.clear();
        if !self.is_down {
            self.is_down = true;
            self.down = Some(down);
        }
    }
}

/// Returns a message that concerns a bundle as a whole.
fn control(bundle: u32, kind: BundleControlType, flags: u16) -> Message {
    Message::BundleControl(BundleControl { bundle, kind, flags, properties: Properties::default() })
}
