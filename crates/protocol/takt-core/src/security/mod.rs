//! DDS Security interface of the protocol engine (DDS-SEC 1.1 §7, §8).
//!
//! The plugins are behind one trait, [`Security`]: the protocol knows neither certificates nor
//! ciphers. `discovery::channels` carries the messages of the plugins, and `discovery::admission`
//! queries them about matches. `participant::protection` seals sent messages and opens received
//! ones.
//!
//! Order of events with a remote participant:
//!
//! 1. The participant is discovered. If it can authenticate, it gets a stateless writer, and stays
//!    on probation.
//! 2. The plugins exchange handshake messages over the stateless endpoints. These messages count
//!    toward the limit for participants with unvalidated addresses ([`crate::AMPLIFICATION_MAX`]).
//! 3. The participant is authenticated, and gets a volatile writer.
//! 4. The participant uses the volatile endpoints itself. Builtin endpoints are matched.
//! 5. The plugins send key tokens over the volatile endpoints, for each match.
//!
//! Invariants:
//! - a submessage for a protected endpoint reaches it only if the key of its sender opened it;
//! - a message of a participant reaches endpoints only if it was protected as the governance
//!   requires;
//! - each message of a plugin is handled by a separate timer, never by the call that received it.

use crate::time::{Clocks, Instant};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use takt_wire::discovery::{EncodedToken, ParticipantData, PublicationData, SecurityInfo, SubscriptionData};
use takt_wire::{EntityId, Guid, GuidPrefix, Timestamp};

/// Security data of a participant in its discovery announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announced {
    /// Identity token.
    pub identity_token: EncodedToken,
    /// Permissions token.
    pub permissions_token: EncodedToken,
    /// Protection masks.
    pub security_info: SecurityInfo,
}

/// Protection of a local endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// Masks as announced in discovery.
    pub info: SecurityInfo,
    /// Whether only the secure SEDP endpoints announce the endpoint.
    pub discovery: bool,
    /// Whether only secure messages assert its liveliness.
    pub liveliness: bool,
    /// Whether its submessages are signed or encrypted.
    pub submessage: bool,
    /// Whether its payloads are signed or encrypted, those with keys included.
    pub payload: bool,
    /// Whether its payloads are encrypted, so that key hashes would reveal keys.
    pub key: bool,
}

/// Message from a plugin to the plugin of another participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityMessage {
    /// Destination participant.
    pub to: GuidPrefix,
    /// Builtin endpoints that carry the message.
    pub channel: SecurityChannel,
    /// Serialized `ParticipantGenericMessage`.
    pub payload: Vec<u8>,
}

/// Builtin topics of the plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurityChannel {
    /// `DCPSParticipantStatelessMessage`, for handshakes: best effort, never protected.
    Stateless,
    /// `DCPSParticipantVolatileMessageSecure`, for keys: reliable, always encrypted.
    Volatile,
}

/// Admission state of a discovered participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionState {
    /// The participant cannot authenticate, and may use unprotected topics.
    Open,
    /// The participant must authenticate.
    Authenticating,
    /// The participant is refused; contains the reason.
    Refused(String),
}

/// Event that a plugin reports about a participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecurityEvent {
    /// The participant was authenticated and is admitted.
    Authenticated(GuidPrefix),
    /// The handshake has proved this announcement of the participant, without tokens. Reported
    /// before [`Self::Authenticated`].
    AnnouncementAuthenticated(Box<ParticipantData>),
    /// The participant failed to authenticate or is not permitted.
    Refused {
        /// GUID prefix of the participant.
        participant: GuidPrefix,
        /// Whether the participant may still use unprotected topics.
        stays_open: bool,
        /// Reason of the refusal.
        reason: String,
    },
    /// The participant is no longer admitted: its certificate or its permissions have expired, or
    /// were revoked.
    Expelled {
        /// GUID prefix of the participant.
        participant: GuidPrefix,
        /// Reason of the expulsion.
        reason: String,
    },
    /// The permissions of the participant, or of the local one, have changed. Matches must be
    /// checked again.
    PermissionsChanged(GuidPrefix),
    /// The local participant has ended its session with the participant, or was refused by it, and
    /// begins another handshake.
    Restarted(GuidPrefix),
}

/// Severity of a log entry; the numbers are those of the specification (DDS-SEC 1.1 §9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecuritySeverity {
    /// The local participant cannot perform its function.
    Error = 3,
    /// A remote participant, or a message of it, was refused.
    Warning = 4,
    /// A remote participant was authenticated, or its authentication has expired.
    Notice = 5,
}

/// Log entry of a refusal or decision of the plugins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityLogEntry {
    /// Wall clock time of the event.
    pub at: Timestamp,
    /// Severity of the event.
    pub severity: SecuritySeverity,
    /// Description of the event.
    pub text: String,
}

/// Protected submessages that were opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedSubmessages<'a> {
    /// Plain submessages.
    pub plain: &'a [u8],
    /// Endpoint of the sender whose key opened them; for the volatile endpoints, which share a key,
    /// the writer.
    pub sender: EntityId,
}

/// DDS Security plugins of one participant. Calls take bounded time; those that handle a message or
/// a timer may create and verify signatures.
///
/// Calls that open octets leave signed octets in place, and decrypt encrypted ones into `memory`,
/// which is at least as long.
pub trait Security: fmt::Debug + Send {
    /// Returns the security data that discovery announces for this participant.
    fn announced(&self) -> Announced;

    /// Sets the announcement that handshakes send from now on, as a big-endian parameter list
    /// without encapsulation header.
    fn set_participant_data(&mut self, octets: Vec<u8>);

    /// Reports whether whole messages must be protected, except those of discovery and handshakes.
    fn protects_messages(&self) -> bool;

    /// Reports whether plain discovery and liveliness messages are accepted nevertheless.
    fn accepts_clear_discovery(&self) -> bool;

    /// Returns the maximum octets that protection adds to a message, without those of its
    /// submessages ([`Self::submessage_overhead`]).
    fn message_overhead(&self) -> usize;

    /// Returns the maximum octets that protection adds to each submessage, without that of its
    /// payload ([`Self::payload_overhead`]).
    fn submessage_overhead(&self) -> usize;

    /// Returns the octets that protection adds to each payload of a local writer: to each fragment,
    /// if there are several.
    fn payload_overhead(&self, writer: EntityId) -> usize;

    /// Reports whether only the secure SEDP endpoints announce endpoints of the topic.
    fn protects_discovery(&self, topic_name: &str) -> bool;

    /// Returns the protection of a builtin endpoint.
    fn builtin_protection(&self, endpoint: EntityId) -> Protection;

    /// Checks whether this participant may have the writer, and returns its protection. Called
    /// again when the partitions of a writer change.
    ///
    /// # Errors
    /// The writer is not permitted; contains the reason.
    fn admit_writer(&mut self, now: Clocks, data: &PublicationData) -> Result<Protection, String>;

    /// Checks whether this participant may have the reader, and returns its protection.
    ///
    /// # Errors
    /// The reader is not permitted; contains the reason.
    fn admit_reader(&mut self, now: Clocks, data: &SubscriptionData) -> Result<Protection, String>;

    /// Removes a local endpoint.
    fn endpoint_deleted(&mut self, endpoint: EntityId);

    /// Handles a participant that was discovered or changed its announcement.
    fn participant_discovered(&mut self, now: Clocks, data: &ParticipantData) -> AdmissionState;

    /// Removes a remote participant.
    fn participant_lost(&mut self, participant: GuidPrefix);

    /// Handles a message of a participant.
    fn handle_message(&mut self, now: Clocks, channel: SecurityChannel, from: GuidPrefix, payload: &[u8]);

    /// Returns the next message to be sent.
    fn poll_message(&mut self, now: Clocks) -> Option<SecurityMessage>;

    /// Returns the next event.
    fn poll_event(&mut self) -> Option<SecurityEvent>;

    /// Reports whether [`Self::poll_log`] has an entry.
    fn has_log(&self) -> bool;

    /// Returns the next entry of the log.
    fn poll_log(&mut self) -> Option<SecurityLogEntry>;

    /// Returns the time of the next call of [`Self::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;

    /// Repeats messages, ends handshakes, changes keys and checks expiry.
    fn handle_timeout(&mut self, now: Clocks);

    /// Checks whether a local reader may be matched with a remote writer.
    ///
    /// # Errors
    /// The match is not permitted; contains the reason.
    fn check_remote_writer(&mut self, now: Clocks, reader: EntityId, data: &PublicationData) -> Result<(), String>;

    /// Checks whether a local writer may be matched with a remote reader.
    ///
    /// # Errors
    /// The match is not permitted; contains the reason.
    fn check_remote_reader(&mut self, now: Clocks, writer: EntityId, data: &SubscriptionData) -> Result<(), String>;

    /// Handles the match of a local endpoint, builtin ones included, with a remote one: keys are
    /// sent.
    fn pair_matched(&mut self, local: EntityId, remote: Guid);

    /// Handles the end of a match.
    fn pair_unmatched(&mut self, local: EntityId, remote: Guid);

    /// Writes a message of this participant into `frame` with the required protection, payloads
    /// included. Returns its length; `None` if it must not be sent.
    fn protect(&mut self, message: &[u8], frame: &mut [u8]) -> Option<usize>;

    /// Opens a message that is protected as a whole, and returns its plain submessages. `None` if
    /// it is not authentic.
    fn open_message<'a>(&mut self, message: &'a [u8], memory: &'a mut [u8]) -> Option<&'a [u8]>;

    /// Opens `octets`, which consist of protected submessages from prefix to postfix. `None` if
    /// they are not authentic.
    fn open_submessages<'a>(
        &mut self,
        sender: GuidPrefix,
        octets: &'a [u8],
        memory: &'a mut [u8],
    ) -> Option<OpenedSubmessages<'a>>;

    /// Opens the protected payload of one submessage. `None` if it is not authentic.
    fn open_payload<'a>(&mut self, writer: Guid, octets: &'a [u8], memory: &'a mut [u8]) -> Option<&'a [u8]>;
}
