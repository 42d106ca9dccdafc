//! The controller's end of a channel: handshake, requests, transactions, bundles.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::link::{Link, Received};
use super::operation::{Failure, Kind, Operation, OperationId, Outcome, Part, Stage, reply_to};
use super::{Counters, Down, Instant, Limits, SendError};
use crate::bundle::{BundleAdd, BundleControl, BundleControlType, Properties};
use crate::cause::ErrorMessage;
use crate::error::Malformed;
use crate::message::{Enclosed, Message, Xid};
use crate::multipart::{MORE, MultipartReply, MultipartRequest};
use crate::switch::{AsyncConfig, Features, SwitchConfig};
use crate::value::NO_BUFFER_LEN;
use crate::version::{Version, Versions};

/// How a controller begins.
#[derive(Clone, Debug)]
pub struct ControllerConfig {
    /// The versions that it speaks.
    pub versions: Versions,
    /// What it sets of the switch; by default, packets come whole.
    pub switch_config: SwitchConfig,
    /// Which asynchronous messages it wants, if not those of the switch's default; since 1.3, left out in 1.0.
    pub asynchronous: Option<AsyncConfig>,
    /// What the channel may hold.
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

/// What happened on a controller's channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The switch is configured, and takes messages.
    Up {
        /// The version of the channel.
        version: Version,
        /// What the switch is.
        features: Box<Features>,
    },
    /// A message that answers nothing: PACKET_IN, PORT_STATUS, FLOW_REMOVED and others. They may come before [`Event::Up`].
    Message {
        /// Its transaction id.
        xid: Xid,
        /// The message.
        message: Box<Message>,
    },
    /// An ERROR about a message of [`Controller::send`], or about nothing.
    Error {
        /// The transaction id of the message.
        xid: Xid,
        /// Why.
        error: ErrorMessage,
    },
    /// An operation ended.
    Completed {
        /// Which.
        operation: OperationId,
        /// How.
        outcome: Outcome,
    },
    /// A message that cannot be read and that answers nothing.
    Malformed {
        /// The type of its header.
        kind: u8,
        /// Its transaction id.
        xid: Xid,
        /// What is wrong.
        error: Malformed,
    },
    /// The connection ended. It is the last event.
    Down(Down),
}

/// Where the handshake stands: the transaction ids of FEATURES_REQUEST, of the last message, and what came.
struct Handshake {
    deadline: Instant,
    first: Xid,
    last: Xid,
    features: Option<Features>,
    is_configured: bool,
}

/// One connection of a controller to a switch.
pub struct Controller {
    config: ControllerConfig,
    link: Link,
    /// `None` once the switch is configured.
    handshake: Option<Handshake>,
    events: VecDeque<Event>,
    operations: BTreeMap<OperationId, Operation>,
    deadlines: BTreeSet<(Instant, OperationId)>,
    /// What each transaction id in flight stands for.
    in_flight: BTreeMap<Xid, (OperationId, Part)>,
    next_operation: u64,
    next_bundle: u32,
    is_down: bool,
    /// Reported once everything else is.
    down: Option<Down>,
}

impl Controller {
    /// A new connection; HELLO waits for transmission.
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

    /// The version, once it is chosen.
    pub fn version(&self) -> Option<Version> {
        self.link.version()
    }

    /// Whether the switch is configured, and takes messages.
    pub fn is_up(&self) -> bool {
        self.handshake.is_none() && !self.link.is_closed()
    }

    /// What the channel counted.
    pub fn counters(&self) -> Counters {
        self.link.counters
    }

    /// Octets of the peer. Returns how many were taken: fewer than there are while events or answers wait for room. The rest is
    /// given again after [`Self::poll_event`] and [`Self::poll_transmit`]; an empty slice lets a message go on that waits inside.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        // A message causes at most one event; the close of a bundle none.
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
        // What comes on a connection that is closed is of no use.
        if self.link.is_closed() { bytes.len() } else { bytes.len() - rest.len() }
    }

    /// Octets for the peer. [`Self::transmitted`] says how many the connection took.
    pub fn poll_transmit(&self) -> &[u8] {
        self.link.untransmitted()
    }

    /// The connection took the first `len` octets of [`Self::poll_transmit`].
    pub fn transmitted(&mut self, len: usize) {
        self.link.transmitted(len);
    }

    /// What happened next. After the connection ended, each operation in flight is reported as lost, and then
    /// [`Event::Down`].
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

    /// When [`Self::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.link.is_closed() {
            return None;
        }
        let handshake = self.handshake.as_ref().map(|handshake| handshake.deadline);
        let operation = self.deadlines.first().map(|(deadline, _)| *deadline);
        [handshake, operation, self.link.deadline()].into_iter().flatten().min()
    }

    /// Ends what has passed its deadline: at most as many operations as events have room.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.link.is_closed() {
            return;
        }
        if self.handshake.as_ref().is_some_and(|handshake| now >= handshake.deadline) {
            return self.go_down(Down::HandshakeTimedOut);
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

    /// The connection ended at the peer's side, or by the network.
    pub fn handle_disconnect(&mut self) {
        self.go_down(Down::PeerClosed);
    }

    /// Ends the connection.
    pub fn close(&mut self) {
        self.go_down(Down::Closed);
    }

    /// Sends a message without waiting for anything. An ERROR about it is [`Event::Error`].
    pub fn send(&mut self, message: &Message) -> Result<Xid, SendError> {
        self.require_up()?;
        let xid = self.link.xid();
        self.link.send([(xid, message)].into_iter())?;
        Ok(xid)
    }

    /// Sends a request and waits for its reply: FEATURES, GET_CONFIG, BARRIER, ROLE, GET_ASYNC, QUEUE_GET_CONFIG, MULTIPART and
    /// experimenters' requests. Ends with [`Outcome::Reply`] or [`Outcome::Multipart`].
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

    /// Sends a multipart request in parts.
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

    /// Sends messages and then a barrier. Ends once: with [`Outcome::Done`], or with every ERROR by the message that caused it.
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

    /// Opens a bundle, fills it, closes it, and commits it once the closing is answered without an error before; otherwise discards
    /// it. `flags` are those of [`crate::bundle::bundle_flags`]. Not in 1.0.
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

    /// Forgets an operation and reports its outcome.
    fn complete(&mut self, id: OperationId, outcome: impl FnOnce(Vec<Failure>) -> Outcome) {
        let Some(operation) = self.operations.remove(&id) else { return };
        self.deadlines.remove(&(operation.deadline, id));
        for xid in &operation.xids {
            self.in_flight.remove(xid);
        }
        self.events.push_back(Event::Completed { operation: id, outcome: outcome(operation.failures) });
    }

    /// The deadline passed. A bundle that is not being committed is discarded.
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
            return self.go_down(Down::Handshake(error));
        }
        if let (Some(handshake), [first, .., last]) = (&mut self.handshake, xids.as_slice()) {
            (handshake.first, handshake.last) = (*first, *last);
        }
    }

    /// Takes a message of the handshake; gives back one that is not.
    fn handle_handshake(&mut self, xid: Xid, message: Message) -> Option<Message> {
        let Some(handshake) = &mut self.handshake else { return Some(message) };
        match message {
            Message::Error(error) if (handshake.first..=handshake.last).contains(&xid) => {
                self.go_down(Down::Refused(error));
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

    /// Ends the operation that `xid` belongs to, if `end` says how; whether there is one.
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
            // What failed is known; the barrier or the answer to the bundle's closing ends it.
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

    /// The closing of a bundle is answered: nothing but a bundle without errors is committed.
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

    fn go_down(&mut self, down: Down) {
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

/// A message about a bundle as a whole.
fn control(bundle: u32, kind: BundleControlType, flags: u16) -> Message {
    Message::BundleControl(BundleControl { bundle, kind, flags, properties: Properties::default() })
}
