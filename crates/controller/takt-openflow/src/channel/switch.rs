//! Switch end of a channel: its own replies, and requests for the switch behind it.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::bundles::{Bundles, StoredBundle};
use super::link::{Link, Received};
use super::{CloseReason, Counters, Instant, Limits, SendError};
use crate::bundle::{BundleControl, BundleControlType};
use crate::cause::{BadRequest, BundleFailed, Cause, RoleRequestFailed};
use crate::error::{EncodeError, Malformed};
use crate::message::{Message, Xid};
use crate::multipart::{MORE, MultipartReply, ReplyBody};
use crate::packet::PacketInReason;
use crate::switch::{AsyncConfig, AsyncKind, AsyncProperty, ControllerRole, Features, SwitchConfig};
use crate::version::{Version, Versions};

/// Configuration of a switch's channel.
#[derive(Clone, Debug)]
pub struct SwitchChannelConfig {
    /// Supported versions.
    pub versions: Versions,
    /// Features of the switch. Ports are sent in 1.0 only.
    pub features: Features,
    /// Limits of the channel.
    pub limits: Limits,
}

/// Message of the controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Transaction ID.
    pub xid: Xid,
    /// Content of the message.
    pub message: Message,
}

/// Events of a switch's channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SwitchEvent {
    /// The version is negotiated.
    Up {
        /// The version.
        version: Version,
    },
    /// The switch executes the request, and answers it with [`Switch::reply`] or [`Switch::refuse`]
    /// if it has a reply. Requests are in the order of the controller. A barrier is answered after
    /// everything before it is done.
    Request(Request),
    /// The switch applies these messages, and answers with [`Switch::committed`] or
    /// [`Switch::commit_failed`].
    Commit {
        /// Transaction ID of the commit.
        xid: Xid,
        /// Committed bundle.
        bundle: StoredBundle,
    },
    /// The controller configured the switch.
    Configured(SwitchConfig),
    /// Malformed message. It has been answered with an ERROR.
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

/// Connection of a switch to a controller.
///
/// The channel answers HELLO, ECHO, FEATURES, GET_CONFIG, SET_CONFIG, GET_ASYNC and SET_ASYNC, and
/// fills bundles. All other messages become a [`SwitchEvent::Request`].
pub struct Switch {
    config: SwitchChannelConfig,
    link: Link,
    events: VecDeque<SwitchEvent>,
    switch_config: SwitchConfig,
    asynchronous: AsyncConfig,
    role: ControllerRole,
    bundles: Bundles,
    is_down: bool,
    down: Option<CloseReason>,
}

impl Switch {
    /// Creates the channel of a new connection. HELLO waits for transmission.
    pub fn new(now: Instant, config: SwitchChannelConfig) -> Self {
        Self {
            link: Link::new(now, config.versions, &config.limits, true),
            events: VecDeque::new(),
            // The defaults of OF 1.3.5 §6.3, §7.3.2.
            switch_config: SwitchConfig { flags: 0, miss_send_len: 128 },
            asynchronous: AsyncConfig::new([u32::MAX, 0], [u32::MAX, u32::MAX], [u32::MAX, 0]),
            role: ControllerRole::Equal,
            bundles: Bundles::new(&config.limits),
            is_down: false,
            down: None,
            config,
        }
    }

    /// Returns the version, once it is negotiated.
    pub fn version(&self) -> Option<Version> {
        self.link.version()
    }

    /// Returns the counters of the channel.
    pub fn counters(&self) -> Counters {
        self.link.counters
    }

    /// Returns the configuration that the controller set.
    pub fn switch_config(&self) -> SwitchConfig {
        self.switch_config
    }

    /// Handles octets of the peer. Returns the number of octets consumed; see
    /// [`super::Controller::handle_bytes`].
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while self.events.len() < self.config.limits.events {
            match self.link.receive(now, &mut rest) {
                None => break,
                Some(Received::Open(version)) => self.events.push_back(SwitchEvent::Up { version }),
                Some(Received::Message { xid, message, .. }) => self.handle_message(xid, message),
                Some(Received::Malformed(header, error)) => {
                    self.events.push_back(SwitchEvent::Malformed { kind: header.kind, xid: header.xid, error });
                }
                Some(Received::Down(down)) => self.go_down(down),
            }
        }
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

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<SwitchEvent> {
        self.events.pop_front().or_else(|| self.down.take().map(SwitchEvent::Down))
    }

    /// Returns the time of the next call of [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.link.deadline()
    }

    /// Sends an ECHO_REQUEST to a silent controller, or ends the connection.
    pub fn handle_timeout(&mut self, now: Instant) {
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

    /// Replies to a request.
    pub fn reply(&mut self, xid: Xid, reply: &Message) -> Result<(), SendError> {
        self.link.send([(xid, reply)].into_iter())
    }

    /// Replies to a multipart request, in as many parts as its length requires. All parts are
    /// queued, or none.
    pub fn reply_multipart(&mut self, xid: Xid, body: ReplyBody) -> Result<(), SendError> {
        let version = self.link.version().ok_or(SendError::NotConnected)?;
        let mut rest = vec![body];
        let mut parts = Vec::new();
        while let Some(body) = rest.pop() {
            let part = Message::MultipartReply(MultipartReply { flags: MORE, body });
            match part.encode(version, xid) {
                Ok(_) => parts.push(part),
                Err(error @ EncodeError::TooLong { .. }) => {
                    let Message::MultipartReply(MultipartReply { body, .. }) = part else { break };
                    let [first, second] = body.halves().map_err(|_| SendError::Encode(error))?;
                    rest.extend([second, first]);
                }
                Err(error) => return Err(SendError::Encode(error)),
            }
        }
        if let Some(Message::MultipartReply(last)) = parts.last_mut() {
            last.flags = 0;
        }
        self.link.send(parts.iter().map(|part| (xid, part)))
    }

    /// Refuses a request with an ERROR that contains its beginning. A cause that the version lacks
    /// is sent as BAD_REQUEST, EPERM.
    pub fn refuse(&mut self, request: &Request, cause: Cause) {
        if let Some(version) = self.link.version() {
            let failed = request.message.encode(version, request.xid).unwrap_or_default();
            self.link.refuse(request.xid, cause, &failed);
        }
    }

    /// Confirms that the messages of a bundle are applied.
    pub fn committed(&mut self, xid: Xid, bundle: &StoredBundle) -> Result<(), SendError> {
        self.reply(xid, &control(bundle, BundleControlType::CommitReply))
    }

    /// Reports that a message of a bundle failed and none is applied: an ERROR for the message, and
    /// one for the commit.
    pub fn commit_failed(&mut self, xid: Xid, bundle: &StoredBundle, message: usize, cause: Cause) {
        if let Some(request) = bundle.messages.get(message) {
            self.refuse(request, cause);
        }
        let commit = Request { xid, message: control(bundle, BundleControlType::CommitRequest) };
        self.refuse(&commit, Cause::BundleFailed(BundleFailed::MsgFailed));
    }

    /// Sets the role of the controller, after its own ROLE_REQUEST or that of another controller.
    pub fn set_role(&mut self, role: ControllerRole) {
        if role != ControllerRole::NoChange {
            self.role = role;
        }
    }

    /// Sends an asynchronous message such as PACKET_IN, PORT_STATUS or FLOW_REMOVED if role and
    /// SET_ASYNC permit it. Returns whether they do.
    pub fn notify(&mut self, message: &Message) -> Result<bool, SendError> {
        if !self.wants(message) {
            return Ok(false);
        }
        self.reply(0, message).map(|()| true)
    }

    fn wants(&self, message: &Message) -> bool {
        let (master, slave, reason) = match message {
            Message::PacketIn(packet) => {
                let PacketInReason(reason) = packet.reason;
                (AsyncKind::PACKET_IN_MASTER, AsyncKind::PACKET_IN_SLAVE, reason)
            }
            Message::PortStatus(status) => {
                (AsyncKind::PORT_STATUS_MASTER, AsyncKind::PORT_STATUS_SLAVE, status.reason as u8)
            }
            Message::FlowRemoved(removed) => {
                (AsyncKind::FLOW_REMOVED_MASTER, AsyncKind::FLOW_REMOVED_SLAVE, removed.reason.0)
            }
            _ => return true,
        };
        let kind = if self.role == ControllerRole::Slave { slave } else { master };
        let mask = self.asynchronous.mask(kind).unwrap_or(u32::MAX);
        mask & 1u32.checked_shl(u32::from(reason)).unwrap_or(0) != 0
    }

    fn handle_message(&mut self, xid: Xid, message: Message) {
        if self.role == ControllerRole::Slave && changes_the_switch(&message) {
            let request = Request { xid, message };
            return self.refuse(&request, Cause::BadRequest(BadRequest::IsSlave));
        }
        match message {
            Message::FeaturesRequest => {
                let mut features = self.config.features.clone();
                if self.link.version() != Some(Version::V1_0) {
                    features.ports = Vec::new();
                }
                if let Err(error) = self.reply(xid, &Message::FeaturesReply(features)) {
                    self.go_down(CloseReason::Handshake(error));
                }
            }
            Message::GetConfigRequest => self.link.follow_up(xid, &Message::GetConfigReply(self.switch_config)),
            Message::SetConfig(config) => {
                self.switch_config = config;
                self.events.push_back(SwitchEvent::Configured(config));
            }
            Message::GetAsyncRequest => {
                let config = self.asynchronous.clone();
                self.link.follow_up(xid, &Message::GetAsyncReply(config));
            }
            Message::SetAsync(config) => self.set_async(config),
            Message::BundleControl(control) => self.handle_bundle(xid, control),
            Message::BundleAdd(add) => {
                let failed = Request { xid, message: Message::BundleAdd(add.clone()) };
                if let Err(failure) = self.bundles.add(xid, add) {
                    self.refuse(&failed, Cause::BundleFailed(failure));
                }
            }
            // An ERROR of the controller matches no request of the switch.
            Message::Error(_) => self.link.counters.unmatched += 1,
            message => self.events.push_back(SwitchEvent::Request(Request { xid, message })),
        }
    }

    /// Applies SET_ASYNC. Since 1.4, kinds that are not listed remain unchanged.
    fn set_async(&mut self, config: AsyncConfig) {
        for property in config.properties {
            let AsyncProperty::Mask { kind, mask } = property else { continue };
            let known = self.asynchronous.properties.iter_mut().find_map(|known| match known {
                AsyncProperty::Mask { kind: own, mask } if *own == kind => Some(mask),
                _ => None,
            });
            if let Some(known) = known {
                *known = mask;
            }
        }
    }

    fn handle_bundle(&mut self, xid: Xid, control: BundleControl) {
        match self.bundles.control(&control) {
            Ok(Some(bundle)) => self.events.push_back(SwitchEvent::Commit { xid, bundle }),
            Ok(None) => {
                let reply = BundleControl { kind: control.kind.reply(), ..control };
                self.link.follow_up(xid, &Message::BundleControl(reply));
            }
            Err(failure) => {
                let request = Request { xid, message: Message::BundleControl(control) };
                self.refuse(&request, Cause::BundleFailed(failure));
            }
        }
    }

    fn go_down(&mut self, down: CloseReason) {
        self.link.close();
        if !self.is_down {
            self.is_down = true;
            self.down = Some(down);
        }
    }
}

/// Reports whether a slave controller must not send the message (OF 1.3.5 §6.3).
fn changes_the_switch(message: &Message) -> bool {
    matches!(
        message,
        Message::PacketOut(_)
            | Message::FlowMod(_)
            | Message::GroupMod(_)
            | Message::PortMod(_)
            | Message::TableMod(_)
            | Message::MeterMod(_)
            | Message::BundleControl(_)
            | Message::BundleAdd(_)
    )
}

fn control(bundle: &StoredBundle, kind: BundleControlType) -> Message {
    let StoredBundle { bundle, flags, .. } = *bundle;
    Message::BundleControl(BundleControl { bundle, kind, flags, properties: Default::default() })
}

/// Greatest generation of a master election that a switch has seen, over all its controllers
/// (OF 1.3.5 §6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Generation {
    greatest: Option<u64>,
}

impl Generation {
    /// Accepts the generation of a request for the role master or slave. A generation before the
    /// greatest is stale; numbers wrap around.
    pub fn accept(&mut self, generation: u64) -> Result<(), Cause> {
        let is_stale = self.greatest.is_some_and(|greatest| generation.wrapping_sub(greatest).cast_signed() < 0);
        if is_stale {
            return Err(Cause::RoleRequestFailed(RoleRequestFailed::Stale));
        }
        self.greatest = Some(generation);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generation_before_the_greatest_is_stale() {
        let mut generation = Generation::default();
        for (number, is_good) in [(u64::MAX - 1, true), (u64::MAX - 2, false), (3, true), (u64::MAX, false), (3, true)]
        {
            assert_eq!(generation.accept(number).is_ok(), is_good, "{number}");
        }
    }
}
