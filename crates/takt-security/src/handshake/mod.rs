//! The handshake between two participants (DDS-SEC 1.1 §9.3.2.3, §9.3.4): `PKI-DH`.
//!
//! The participant with the lower GUID is the initiator. Messages, all on the stateless channel:
//!
//! | message | from | what it proves |
//! |---|---|---|
//! | AuthRequest | both | nothing; announces a challenge |
//! | Request | initiator | nothing; certificate, permissions, public key, challenge |
//! | Reply | replier | the replier signs both challenges and both keys |
//! | Final | initiator | the initiator signs the same |
//!
//! A [`Handshake`] is one state machine. It takes messages by [`Handshake::handle`], gives messages
//! by [`Handshake::poll_transmit`], and both take the time. A message that does not fit is refused
//! and changes nothing, since everybody can send on that channel; the handshake goes on until its
//! time-out, which reports the last refusal.
//!
//! # Limits
//!
//! - The machine sends at most [`AMPLIFICATION_MAX`] times the octets that it got until the remote
//!   participant is authenticated. Announcements count ([`Handshake::credit`]).
//! - A Request that replaces another one is accepted once in [`Options::resend_period`], so a
//!   handshake costs at most one key pair and one signature a period.
//! - Values: [`CERTIFICATE_PEM_LEN_MAX`](crate::identity::CERTIFICATE_PEM_LEN_MAX) for the
//!   certificate, [`PERMISSIONS_LEN_MAX`], [`PARTICIPANT_DATA_LEN_MAX`], [`SIGNATURE_LEN_MAX`].
//!   What a handshake keeps is below [`HANDSHAKE_MEMORY_MAX`] octets.
//! - [`Handshakes`] has a limited number of them.

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

/// Octets that a handshake keeps at most: its last message, the certificate and permissions of the
/// remote participant, keys and challenges.
pub const HANDSHAKE_MEMORY_MAX: usize = 192 * 1_024;

/// A remote participant that proved its identity.
#[derive(Debug)]
pub struct Authenticated {
    /// Its certificate, checked at the time of the handshake.
    pub certificate: Certificate,
    /// Its signed permissions document, not checked yet.
    pub permissions: Vec<u8>,
    /// Its ParticipantBuiltinTopicData, whose GUID was checked.
    pub participant_data: Vec<u8>,
    /// What keys derive from.
    pub secret: SharedSecret,
}

#[cfg(test)]
mod tests;
