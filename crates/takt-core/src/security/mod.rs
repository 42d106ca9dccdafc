//! DDS Security as the protocol needs it (DDS-SEC 1.1 §7, §8).
//!
//! The plugins are behind one trait, [`Security`]: the protocol knows neither certificates nor
//! ciphers. `channels` carries the messages of the plugins. `admission` asks them who may match.
//! `protection` seals what is sent and opens what is received.
//!
//! The order of events with a remote participant:
//!
//! 1. It is discovered. If it can authenticate, it gets a stateless writer, and stays on probation.
//! 2. The plugins exchange handshake messages on the stateless channel. All of them count as what an
//!    unproven participant may be sent ([`crate::AMPLIFICATION_MAX`]).
//! 3. It is authenticated, and gets a volatile writer.
//! 4. It uses the volatile channel itself. Builtin endpoints are matched.
//! 5. The plugins send key tokens on the volatile channel, for each match.
//!
//! Invariants:
//! - a submessage for a protected endpoint reaches it only if the key of its sender opened it;
//! - a message of a participant reaches endpoints only if it was protected as the governance says;
//! - each message of a plugin is handled by a timer of its own, never by the call that received it.

mod admission;
mod channels;
mod protection;

pub(crate) use admission::RemoteSecurity;
pub(crate) use protection::{Received, Scratch};

use crate::time::{Clocks, Instant};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use takt_wire::discovery::{EncodedToken, ParticipantData, PublicationData, SecurityInfo, SubscriptionData};
use takt_wire::{EntityId, Guid, GuidPrefix, Timestamp};

/// What a participant with security says of itself in discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announced {
    /// Who it is.
    pub identity_token: EncodedToken,
    /// What it may do.
    pub permissions_token: EncodedToken,
    /// What it protects.
    pub security_info: SecurityInfo,
}

/// How an endpoint of this participant is protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// As discovery announces it.
    pub info: SecurityInfo,
    /// It is announced by the secure endpoints of SEDP alone.
    pub discovery: bool,
    /// Its liveliness is asserted by secure messages alone.
    pub liveliness: bool,
    /// Its submessages are signed or encrypted.
    pub submessage: bool,
    /// Its payloads are signed or encrypted, keys among them.
    pub payload: bool,
    /// They are encrypted: key hashes would tell of them.
    pub key: bool,
}

/// What a plugin sends to the plugin of another participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityMessage {
    /// The participant that it is for.
    pub to: GuidPrefix,
    /// By which of the two channels.
    pub channel: SecurityChannel,
    /// The serialized `ParticipantGenericMessage`.
    pub payload: Vec<u8>,
}

/// The builtin topics of the plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurityChannel {
    /// `DCPSParticipantStatelessMessage`, for handshakes: best effort, never protected.
    Stateless,
    /// `DCPSParticipantVolatileMessageSecure`, for keys: reliable, always encrypted.
    Volatile,
}

/// How a participant that was discovered stands to this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It cannot authenticate, and may take part in what is not protected.
    Open,
    /// It is to authenticate.
    Authenticating,
    /// It may not take part, and why.
    Refused(String),
}

/// What a plugin has found out about a participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecurityEvent {
    /// The participant has proven who it is, and may take part.
    Authenticated(GuidPrefix),
    /// The participant has not, or may not.
    Refused {
        /// The participant.
        participant: GuidPrefix,
        /// It may take part in what is not protected.
        stays_open: bool,
        /// Why.
        why: String,
    },
    /// The participant may take part no more: its certificate or its permissions have expired, or were revoked.
    Expelled {
        /// The participant.
        participant: GuidPrefix,
        /// Why.
        why: String,
    },
    /// The participant, or this one, has other permissions than before. Matches are to be checked again.
    PermissionsChanged(GuidPrefix),
}

/// How much an entry of the log matters; the numbers are those of the specification (DDS-SEC 1.1 §9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecuritySeverity {
    /// This participant cannot do what it has to.
    Error = 3,
    /// A remote participant was refused, or a message of it.
    Warning = 4,
    /// A remote participant was authenticated or has expired.
    Notice = 5,
}

/// What the plugins have refused or decided, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityLogEntry {
    /// When, by the wall clock.
    pub at: Timestamp,
    /// How much it matters.
    pub severity: SecuritySeverity,
    /// What happened.
    pub text: String,
}

/// Protected submessages that were opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedSubmessages<'a> {
    /// The plain ones.
    pub plain: &'a [u8],
    /// The endpoint of the sender whose key opened them; of the volatile channel, whose two endpoints share a key, its writer.
    pub sender: EntityId,
}

/// The plugins of DDS Security of one participant. Calls take bounded time; those that handle a message or a timer may verify
/// and make signatures.
///
/// What opens octets leaves those that are only signed where they came, and decrypts others into `memory`, which is at least as
/// long.
pub trait Security: fmt::Debug + Send {
    /// What discovery tells of this participant.
    fn announced(&self) -> Announced;

    /// What handshakes tell of this participant from now on: its announcement as a big-endian parameter list without encapsulation header.
    fn set_participant_data(&mut self, octets: Vec<u8>);

    /// Whether messages have to be protected as a whole, but for those of discovery and handshakes.
    fn protects_messages(&self) -> bool;

    /// Whether plain discovery and liveliness may come in the clear nevertheless.
    fn accepts_clear_discovery(&self) -> bool;

    /// Octets that protection adds to a message at most, without those of its submessages ([`Self::submessage_overhead`]).
    fn message_overhead(&self) -> usize;

    /// Octets that protection adds to each submessage at most, without that of its payload ([`Self::payload_overhead`]).
    fn submessage_overhead(&self) -> usize;

    /// Octets that protection adds to each payload of a writer of this participant: of each fragment, if there are several.
    fn payload_overhead(&self, writer: EntityId) -> usize;

    /// Whether endpoints of the topic are announced by the secure endpoints of SEDP alone.
    fn protects_discovery(&self, topic_name: &str) -> bool;

    /// How a builtin endpoint is protected.
    fn builtin_protection(&self, endpoint: EntityId) -> Protection;

    /// Whether this participant may have the writer, and how that is protected. One that is known may have changed its partitions.
    ///
    /// # Errors
    /// It may not, and why.
    fn admit_writer(&mut self, now: Clocks, data: &PublicationData) -> Result<Protection, String>;

    /// The same of a reader.
    ///
    /// # Errors
    /// It may not, and why.
    fn admit_reader(&mut self, now: Clocks, data: &SubscriptionData) -> Result<Protection, String>;

    /// An endpoint of this participant is gone.
    fn forget_endpoint(&mut self, endpoint: EntityId);

    /// A participant was discovered, or announces other things than before.
    fn participant_discovered(&mut self, now: Clocks, data: &ParticipantData) -> Standing;

    /// A participant is gone.
    fn participant_lost(&mut self, participant: GuidPrefix);

    /// A message of a participant arrived.
    fn handle_message(&mut self, now: Clocks, channel: SecurityChannel, from: GuidPrefix, payload: &[u8]);

    /// The next message to be sent.
    fn poll_message(&mut self, now: Clocks) -> Option<SecurityMessage>;

    /// What has happened.
    fn poll_event(&mut self) -> Option<SecurityEvent>;

    /// Whether [`Self::poll_log`] has an entry.
    fn has_log(&self) -> bool;

    /// The next entry of the log.
    fn poll_log(&mut self) -> Option<SecurityLogEntry>;

    /// When [`Self::handle_timeout`] wants to be called.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Repeats messages, ends handshakes, changes keys and checks what may have expired.
    fn handle_timeout(&mut self, now: Clocks);

    /// Whether a reader of this participant may be matched with a writer of another one.
    ///
    /// # Errors
    /// It may not, and why.
    fn check_remote_writer(&mut self, now: Clocks, reader: EntityId, data: &PublicationData) -> Result<(), String>;

    /// Whether a writer of this participant may be matched with a reader of another one.
    ///
    /// # Errors
    /// It may not, and why.
    fn check_remote_reader(&mut self, now: Clocks, writer: EntityId, data: &SubscriptionData) -> Result<(), String>;

    /// An endpoint of this participant was matched with one of another: keys are to be sent. Builtin endpoints are, too.
    fn pair_matched(&mut self, local: EntityId, remote: Guid);

    /// The match has ended.
    fn pair_parted(&mut self, local: EntityId, remote: Guid);

    /// Writes a message of this participant into `frame`, protected as it has to be, payloads included. Its length; `None` if it
    /// must not be sent.
    fn protect(&mut self, message: &[u8], frame: &mut [u8]) -> Option<usize>;

    /// Opens a message that is protected as a whole: its plain submessages. `None` if it is not authentic.
    fn open_message<'a>(&mut self, message: &'a [u8], memory: &'a mut [u8]) -> Option<&'a [u8]>;

    /// Opens the protected submessages that `octets` consist of, from prefix to postfix. `None` if they are not authentic.
    fn open_submessages<'a>(
        &mut self,
        sender: GuidPrefix,
        octets: &'a [u8],
        memory: &'a mut [u8],
    ) -> Option<OpenedSubmessages<'a>>;

    /// Opens the protected payload of one submessage. `None` if it is not authentic.
    fn open_payload<'a>(&mut self, writer: Guid, octets: &'a [u8], memory: &'a mut [u8]) -> Option<&'a [u8]>;
}
