//! DDS Security credentials with P-256 keys: authorities, governance and identities, for agents and
//! for participants of this process.

use crate::error::{Error, Result};
use std::time::{SystemTime, UNIX_EPOCH};
use takt_security::SecurityError;
use takt_security::documents::{BasicProtectionKind, DomainRule, DomainSet, Governance, ProtectionKind, TopicRule};
use takt_security::identity::KeyAlgorithm;
use takt_security::tools::enclave::Realm;
use takt_security::tools::{Issuer, Validity};

/// Highest domain ID that the governance schema allows.
const DOMAIN_MAX: u32 = 230;
const DAY_SECONDS: i64 = 86_400;
const ALGORITHM: KeyAlgorithm = KeyAlgorithm::EcP256;

/// Protection kinds of samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Protections {
    /// Protection of whole RTPS messages.
    pub rtps: Option<ProtectionKind>,
    /// Protection of submessages.
    pub metadata: Option<ProtectionKind>,
    /// Protection of payloads.
    pub data: Option<BasicProtectionKind>,
}

/// Identity authority, permissions authority and governance. The governance encrypts discovery.
pub(crate) struct Authorities {
    identity: Issuer,
    permissions: Issuer,
    governance: Governance,
    validity: Validity,
}

/// Returns the current time in seconds since 1970.
pub(crate) fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(now).unwrap_or(i64::MAX - DAY_SECONDS)
}

fn failed(why: SecurityError) -> Error {
    Error::Usage(why.to_string())
}

impl Authorities {
    /// Creates authorities that are valid for a day.
    ///
    /// # Errors
    /// The security library cannot create a key or sign a certificate.
    pub fn new(protections: Protections) -> Result<Self> {
        let now = now();
        let validity = Validity { not_before: now - DAY_SECONDS, not_after: now + DAY_SECONDS };
        let [identity, permissions] =
            ["Identity CA", "Permissions CA"].map(|name| Issuer::create(name, ALGORITHM, validity).map_err(failed));
        Ok(Self { identity: identity?, permissions: permissions?, governance: governance(protections), validity })
    }

    /// Issues an identity: file names and contents.
    ///
    /// # Errors
    /// The name cannot be the subject of a certificate, or the security library fails.
    pub fn enclave(&self, name: &str) -> Result<[(&'static str, Vec<u8>); 6]> {
        self.enclave_permitted_by(self, name)
    }

    /// Issues an identity whose documents other authorities have signed.
    ///
    /// # Errors
    /// Those of [`enclave`](Self::enclave).
    pub fn enclave_permitted_by(&self, others: &Self, name: &str) -> Result<[(&'static str, Vec<u8>); 6]> {
        let Self { identity, governance, validity, .. } = self;
        let realm = Realm { identity, permissions: &others.permissions, governance, validity: *validity };
        realm.enclave(name, ALGORITHM).map_err(failed)
    }
}

fn governance(protections: Protections) -> Governance {
    let topic = TopicRule {
        topic_expression: "*".to_owned(),
        enable_discovery_protection: true,
        enable_liveliness_protection: true,
        enable_read_access_control: true,
        enable_write_access_control: true,
        metadata_protection_kind: protections.metadata.unwrap_or(ProtectionKind::None),
        data_protection_kind: protections.data.unwrap_or(BasicProtectionKind::None),
    };
    let rule = DomainRule {
        domains: DomainSet(vec![(0, DOMAIN_MAX)]),
        allow_unauthenticated_participants: false,
        enable_join_access_control: true,
        discovery_protection_kind: ProtectionKind::Encrypt,
        liveliness_protection_kind: ProtectionKind::Encrypt,
        rtps_protection_kind: protections.rtps.unwrap_or(ProtectionKind::None),
        topic_rules: vec![topic],
    };
    Governance { domain_rules: vec![rule] }
}
