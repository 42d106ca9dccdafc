//! Documents and limits of a participant, and the checks before its creation.

use std::collections::{BTreeMap, HashSet, VecDeque};

use takt_core::security::Announced;
use takt_core::{Clocks, Instant};
use takt_wire::{GuidPrefix, Timestamp};

use super::counters::Counters;
use super::expiry::Validity;
use super::keyring::Keyring;
use super::log::Log;
use super::renewal::Renewals;
use super::{Plugin, participant_guid};
use crate::attributes::ParticipantAttributes;
use crate::documents::{AccessControl, Permissions, permissions_token};
use crate::error::Result;
use crate::handshake::{Credentials, Options};
use crate::identity::{Authority, Certificate, Identity, PrivateKey, UnixSeconds};
use crate::transform::BLOCKS_PER_SESSION;

/// Settings of a secured participant. Documents are octets: the caller reads the files.
#[derive(Clone)]
pub struct Settings {
    /// GUID prefix of the participant, as returned by [`crate::identity::secure_guid_prefix`].
    pub prefix: GuidPrefix,
    /// Domain id of the participant.
    pub domain_id: u32,
    /// Certificate in PEM, followed by the chain to the authority.
    pub identity_certificate: Vec<u8>,
    /// Private key in PEM, or its PKCS#11 URI (RFC 7512).
    pub private_key: Vec<u8>,
    /// Password of an encrypted private key, or PIN of the token.
    pub password: Option<String>,
    /// Certificates of the identity CA in PEM.
    pub identity_authority: Vec<u8>,
    /// Revocation lists of the identity CA in PEM.
    pub revocation_lists: Vec<Vec<u8>>,
    /// Certificates of the permissions CA in PEM.
    pub permissions_authority: Vec<u8>,
    /// Governance document, signed by the permissions CA.
    pub governance: Vec<u8>,
    /// Permissions document of the participant, signed by the permissions CA.
    pub permissions: Vec<u8>,
    /// Options of handshakes. [`Options::unsolicited_len_max`] has no effect: the caller limits the
    /// octets sent to participants whose address is not validated.
    pub handshake: Options,
    /// Maximum number of unfinished handshakes; at least one.
    pub handshakes_max: usize,
    /// Whether messages are refused that were received before, or that arrive more than 1,024
    /// messages of their key late. Disable it where the network reorders by more, for instance
    /// between traffic classes of different priority.
    pub has_replay_windows: bool,
    /// Whether plain discovery and liveliness messages are accepted although whole messages must be
    /// protected.
    ///
    /// INTEROP(CycloneDDS 0.10): sends them in plain. It protects only whole messages of user
    /// endpoints and of the secure builtin endpoints.
    pub accepts_clear_discovery: bool,
    /// Number of 16-octet blocks that one session key protects.
    pub blocks_per_session: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefix: GuidPrefix::UNKNOWN,
            domain_id: 0,
            identity_certificate: Vec::new(),
            private_key: Vec::new(),
            password: None,
            identity_authority: Vec::new(),
            revocation_lists: Vec::new(),
            permissions_authority: Vec::new(),
            governance: Vec::new(),
            permissions: Vec::new(),
            handshake: Options::default(),
            handshakes_max: 64,
            has_replay_windows: true,
            accepts_clear_discovery: false,
            blocks_per_session: BLOCKS_PER_SESSION,
        }
    }
}

impl Plugin {
    /// Creates the plugins of a participant, if its documents are valid at `now`.
    ///
    /// # Errors
    /// A document is malformed, the certificate or the permissions are not valid at this time or
    /// not of their authorities, the GUID prefix does not belong to the certificate, or the
    /// participant may not join its domain.
    pub fn new(settings: Settings, now: UnixSeconds) -> Result<Self> {
        let Documents { local, access, permissions, validity } = Documents::read(&settings, now)?;
        let attributes = ParticipantAttributes::of(access.domain_rule());
        let announced = Announced {
            identity_token: local.identity().token(local.authority()).into(),
            permissions_token: permissions_token().into(),
            security_info: attributes.info().into(),
        };
        let wall = Timestamp { seconds: u32::try_from(now).unwrap_or_default(), fraction: 0 };
        let mut plugin = Self {
            prefix: settings.prefix,
            local,
            access,
            permissions,
            attributes,
            announced,
            handshakes_max: settings.handshakes_max.max(1),
            has_replay_windows: settings.has_replay_windows,
            accepts_clear_discovery: settings.accepts_clear_discovery,
            blocks_per_session: settings.blocks_per_session,
            message: None,
            endpoints: BTreeMap::new(),
            remotes: BTreeMap::new(),
            waiting: VecDeque::new(),
            keyring: Keyring::default(),
            pairs: BTreeMap::new(),
            events: VecDeque::new(),
            outgoing: VecDeque::new(),
            sequence_number: 0,
            now: Clocks { at: Instant(0), wall },
            handshake_due: None,
            check_due: Instant(0),
            own_validity: validity,
            renewals: Renewals::default(),
            is_rollover_due: false,
            refused: HashSet::new(),
            receivers_max: 0,
            log: Log::default(),
            counters: Counters::default(),
        };
        plugin.make_message_key()?;
        plugin.make_builtin_endpoints()?;
        Ok(plugin)
    }
}

/// Documents of a participant, parsed and checked.
pub(super) struct Documents {
    pub(super) local: Credentials,
    pub(super) access: AccessControl,
    pub(super) permissions: Permissions,
    pub(super) validity: Validity,
}

impl Documents {
    /// Reads and checks all documents of [`Settings`].
    pub(super) fn read(settings: &Settings, now: UnixSeconds) -> Result<Self> {
        let identity = identity(settings)?;
        let authority = identity_authority(settings)?;
        authority.check(identity.certificate(), now)?;
        let permissions_authority = Authority::from_pem(&settings.permissions_authority)
            .map_err(|error| error.context("permissions authority"))?;
        let access = AccessControl::new(permissions_authority, &settings.governance, settings.domain_id, now)?;
        let permissions = access.permissions(&settings.permissions, now)?;
        access.check_participant(&permissions, identity.certificate().subject(), now)?;
        let validity = Validity::of(identity.certificate(), &permissions, &authority, &access, now);
        let (guid, document) = (participant_guid(settings.prefix), settings.permissions.clone());
        let local = Credentials::new(guid, identity, authority, document, Vec::new(), settings.handshake)?;
        Ok(Self { local, access, permissions, validity })
    }
}

fn identity(settings: &Settings) -> Result<Identity> {
    let context = |error: crate::SecurityError| error.context("identity of the participant");
    let certificate = Certificate::from_pem(&settings.identity_certificate).map_err(context)?;
    let key = PrivateKey::read(&settings.private_key, settings.password.as_deref()).map_err(context)?;
    Identity::new(certificate, key).map_err(context)
}

fn identity_authority(settings: &Settings) -> Result<Authority> {
    let context = |error: crate::SecurityError| error.context("identity authority");
    let mut authority = Authority::from_pem(&settings.identity_authority).map_err(context)?;
    for list in &settings.revocation_lists {
        authority.add_revocation_list(list).map_err(context)?;
    }
    Ok(authority)
}
