//! Authentication credentials of a local participant, shared by all of its handshakes.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use takt_wire::{EntityId, Guid};

use super::AgreementAlgorithm;
use super::wire::{PARTICIPANT_DATA_LEN_MAX, PERMISSIONS_LEN_MAX};
use crate::error::{ErrorKind, Result, SecurityError};
use crate::identity::{Authority, Identity, check_guid_prefix};
use crate::message::MessageIdentity;

/// Writer of the builtin stateless endpoints (DDS-SEC 1.1 §7.4.3).
const STATELESS_WRITER: EntityId = EntityId([0x00, 0x02, 0x01, 0xc3]);

/// Options of handshakes.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Algorithm that an initiator proposes; a replier uses the algorithm of the initiator.
    pub agreement: AgreementAlgorithm,
    /// Whether messages include hashes and keys that the peer already knows.
    ///
    /// INTEROP(Fast DDS 2.9): sends them, and refuses a Reply without `hash_c2`.
    /// INTEROP(CycloneDDS 0.10): does not send them, and accepts both forms.
    pub sends_optional_properties: bool,
    /// Time after which an unanswered message is sent again.
    pub resend_period: Duration,
    /// Time after which a handshake fails.
    pub timeout: Duration,
    /// Octets that may be sent to a participant beyond the amplification limit. With 0,
    /// [`super::AMPLIFICATION_MAX`] holds strictly, and the Request waits for some four
    /// announcements. With 8,192, the Request is sent after the first announcement.
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

/// Identity, permissions and announcement of a local participant.
#[derive(Debug)]
pub struct Credentials {
    pub(super) guid: Guid,
    pub(super) identity: Identity,
    pub(super) authority: Authority,
    pub(super) permissions: Vec<u8>,
    pub(super) participant_data: Vec<u8>,
    pub(super) options: Options,
    /// Sequence number of the last message of the stateless writer.
    sequence_number: AtomicI64,
}

impl Credentials {
    /// Returns the options of its handshakes.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Creates the credentials. `permissions` is the signed document; `participant_data` is the
    /// announcement as a big-endian parameter list without encapsulation header.
    ///
    /// # Errors
    /// A value is too long, or the GUID does not belong to the certificate.
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

    /// Replaces the announcement. Handshakes that have already begun keep the previous one.
    ///
    /// # Errors
    /// The announcement is too long; the previous one remains.
    pub fn set_participant_data(&mut self, octets: Vec<u8>) -> Result<()> {
        if octets.len() > PARTICIPANT_DATA_LEN_MAX {
            let reason = format!("participant data of {} octets, at most {PARTICIPANT_DATA_LEN_MAX}", octets.len());
            return Err(SecurityError::new(ErrorKind::Limit, reason));
        }
        self.participant_data = octets;
        Ok(())
    }

    /// Takes over the announcement and the message sequence number of the replaced credentials of
    /// the same participant.
    pub(crate) fn take_state_of(&mut self, replaced: &mut Self) {
        self.participant_data = std::mem::take(&mut replaced.participant_data);
        *self.sequence_number.get_mut() = *replaced.sequence_number.get_mut();
    }

    /// Returns the GUID of the participant.
    pub const fn guid(&self) -> Guid {
        self.guid
    }

    /// Returns the identity.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the identity authority.
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(super) fn next_message_identity(&self) -> MessageIdentity {
        let source = Guid::new(self.guid.prefix, STATELESS_WRITER);
        MessageIdentity { source, sequence_number: self.sequence_number.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}
