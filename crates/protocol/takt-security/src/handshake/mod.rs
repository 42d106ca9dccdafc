//! Authentication handshake of two participants, `PKI-DH` (DDS-SEC 1.1 §9.3.2.3, §9.3.4).
//!
//! The participant with the lower GUID is the initiator. All messages use the builtin stateless
//! endpoints:
//!
//! | message | from | content and proof |
//! |---|---|---|
//! | AuthRequest | both | challenge; proves nothing |
//! | Request | initiator | certificate, permissions, public key, challenge; proves nothing |
//! | Reply | replier | signature of the replier over both challenges and both keys |
//! | Final | initiator | signature of the initiator over the same values |
//!
//! A [`Handshake`] is one state machine. [`Handshake::handle`] takes messages,
//! [`Handshake::poll_transmit`] returns messages, and both take the time. An invalid message is
//! refused and changes nothing, since any host can send to the stateless endpoints. The handshake
//! continues until its timeout, which reports the last refusal.
//!
//! # Limits
//!
//! - Until the remote participant is authenticated, the machine sends at most [`AMPLIFICATION_MAX`]
//!   times the octets that it received. Announcements count ([`Handshake::credit`]).
//! - A Request that replaces another one is accepted once in [`Options::resend_period`], so a
//!   handshake costs at most one key pair and one signature per period.
//! - Lengths of values: [`CERTIFICATE_PEM_LEN_MAX`](crate::identity::CERTIFICATE_PEM_LEN_MAX) for
//!   the certificate, [`PERMISSIONS_LEN_MAX`], [`PARTICIPANT_DATA_LEN_MAX`], [`SIGNATURE_LEN_MAX`].
//!   A handshake stores fewer than [`HANDSHAKE_MEMORY_MAX`] octets.
//! - [`Handshakes`] limits the number of handshakes.

mod agreement;
mod credentials;
mod exchange;
mod machine;
mod renewal;
mod set;
mod signature;
mod wire;

pub use agreement::AgreementAlgorithm;
pub use credentials::{Credentials, Options};
pub use machine::{AMPLIFICATION_MAX, Event, Handshake, Progress, Role};
pub(crate) use renewal::{Renewed, check_renewal, renewal_token};
pub use set::Handshakes;
pub(crate) use wire::{Challenge, closing_challenge, opening_challenge};
pub use wire::{PARTICIPANT_DATA_LEN_MAX, PERMISSIONS_LEN_MAX, SIGNATURE_LEN_MAX};

use crate::identity::Certificate;
use crate::keys::SharedSecret;

/// Maximum number of octets that a handshake stores: its last message, the certificate and
/// permissions of the remote participant, keys and challenges.
pub const HANDSHAKE_MEMORY_MAX: usize = 192 * 1_024;

/// Remote participant that proved its identity.
#[derive(Debug)]
pub struct Authenticated {
    /// Certificate, checked at the time of the handshake.
    pub certificate: Certificate,
    /// Signed permissions document, not checked yet.
    pub permissions: Vec<u8>,
    /// ParticipantBuiltinTopicData, whose GUID was checked.
    pub participant_data: Vec<u8>,
    /// Shared secret from which keys are derived.
    pub secret: SharedSecret,
}

#[cfg(test)]
mod tests;
