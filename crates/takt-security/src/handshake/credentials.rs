//! What one local participant authenticates with, shared by all of its handshakes.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use takt_wire::{EntityId, Guid};

use super::AgreementAlgorithm;
use super::wire::{PARTICIPANT_DATA_LEN_MAX, PERMISSIONS_LEN_MAX};
use crate::error::{ErrorKind, Result, SecurityError};
use crate::identity::{Authority, Identity, check_guid_prefix};
use crate::message::MessageIdentity;

/// Writer of the stateless channel (DDS-SEC 1.1 §7.4.3).
const STATELESS_WRITER: EntityId = EntityId([0x00, 0x02, 0x01, 0xc3]);

/// How handshakes behave.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The algorithm that an initiator proposes; a replier takes that of the initiator.
    pub agreement: AgreementAlgorithm,
    /// Are hashes and keys sent that the other side knows already?
    ///
    /// INTEROP(Fast DDS 2.9): sends them, and refuses a Reply without `hash_c2`.
    /// INTEROP(CycloneDDS 0.10): does not send them, and accepts both.
    pub sends_optional_properties: bool,
    /// Time after which a message that was not answered is sent again.
    pub resend_period: Duration,
    /// Time after which a handshake fails.
    pub timeout: Duration,
    /// Octets that may be sent to a participant before it has sent enough. 0 keeps the promise of
    /// [`super::AMPLIFICATION_MAX`], and the Request waits for some four announcements; 8,192 lets
    /// it leave on the first one.
    pub unsolicited_len_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            agreement: AgreementAlgorithm::EcdhP256,
            sends_optional_properties: true,
            resend_period: Duration::from_secs(1),
            timeout: Duration::from_secs(60),
            unsolicited_len_max: 0,
        }
    }
}

/// The identity, the permissions and the announcement of a local participant.
#[derive(Debug)]
pub struct Credentials {
    pub(super) guid: Guid,
    pub(super) identity: Identity,
    pub(super) authority: Authority,
    pub(super) permissions: Vec<u8>,
    pub(super) participant_data: Vec<u8>,
    pub(super) options: Options,
    /// Of the last message on the stateless channel.
    sequence_number: AtomicI64,
}

impl Credentials {
    /// How its handshakes behave.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Joins them. `permissions` is the signed document; `participant_data` is the announcement as a
    /// big-endian parameter list without encapsulation header.
    ///
    /// # Errors
    /// One is too long, or the GUID does not belong to the certificate.
    pub fn new(
        guid: Guid,
        identity: Identity,
        authority: Authority,
        permissions: Vec<u8>,
        participant_data: Vec<u8>,
        options: Options,
    ) -> Result<Self> {
        check_guid_prefix(identity.certificate(), guid.prefix)?;
        for (what, len, limit) in [
            ("permissions", permissions.len(), PERMISSIONS_LEN_MAX),
            ("participant data", participant_data.len(), PARTICIPANT_DATA_LEN_MAX),
        ] {
            if len > limit {
                return Err(SecurityError::new(ErrorKind::Limit, format!("{what} of {len} octets, at most {limit}")));
            }
        }
        Ok(Self {
            guid: guid.participant(),
            identity,
            authority,
            permissions,
            participant_data,
            options,
            sequence_number: AtomicI64::new(0),
        })
    }

    /// Replaces the announcement. Handshakes that began before keep the one that they began with.
    ///
    /// # Errors
    /// It is too long; the one before stays.
    pub fn set_participant_data(&mut self, octets: Vec<u8>) -> Result<()> {
        if octets.len() > PARTICIPANT_DATA_LEN_MAX {
            let reason = format!("participant data of {} octets, at most {PARTICIPANT_DATA_LEN_MAX}", octets.len());
            return Err(SecurityError::new(ErrorKind::Limit, reason));
        }
        self.participant_data = octets;
        Ok(())
    }

    /// Takes the place of others of the same participant: announcement and message numbers go on.
    pub(crate) fn succeed(&mut self, before: &mut Self) {
        self.participant_data = std::mem::take(&mut before.participant_data);
        *self.sequence_number.get_mut() = *before.sequence_number.get_mut();
    }

    /// The participant.
    pub const fn guid(&self) -> Guid {
        self.guid
    }

    /// The identity.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The identity authority.
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(super) fn next_message_identity(&self) -> MessageIdentity {
        let source = Guid::new(self.guid.prefix, STATELESS_WRITER);
        MessageIdentity { source, sequence_number: self.sequence_number.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}
