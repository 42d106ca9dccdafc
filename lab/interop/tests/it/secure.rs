//! Test fixture: DDS Security files for two participants, under a given governance.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use takt_security::documents::{BasicProtectionKind, DomainRule, DomainSet, Governance, ProtectionKind, TopicRule};
use takt_security::identity::KeyAlgorithm;
use takt_security::tools::enclave::{CERTIFICATE, KEY, PERMISSIONS, Realm};
use takt_security::tools::{Issuer, Validity};

const DAY: i64 = 86_400;

/// A governance with one rule for all topics.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    pub discovery: ProtectionKind,
    pub liveliness: ProtectionKind,
    pub rtps: ProtectionKind,
    pub metadata: ProtectionKind,
    pub data: BasicProtectionKind,
    /// Whether joining, reading and writing need a grant.
    pub is_controlled: bool,
    pub allows_unauthenticated: bool,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { discovery, liveliness, rtps, metadata, data, .. } = self;
        let kinds = [discovery, liveliness, rtps, metadata].map(|kind| kind.name());
        write!(f, "discovery {}, liveliness {}, rtps {}, metadata {}", kinds[0], kinds[1], kinds[2], kinds[3])?;
        write!(f, ", data {}, access {}", data.name(), if self.is_controlled { "controlled" } else { "free" })
    }
}

impl Variant {
    fn governance(&self) -> Governance {
        let is_protected = self.discovery.is_protected();
        let topic = TopicRule {
            topic_expression: "*".to_owned(),
            enable_discovery_protection: is_protected,
            enable_liveliness_protection: self.liveliness.is_protected(),
            enable_read_access_control: self.is_controlled,
            enable_write_access_control: self.is_controlled,
            metadata_protection_kind: self.metadata,
            data_protection_kind: self.data,
        };
        let rule = DomainRule {
            domains: DomainSet(vec![(0, 200)]),
            allow_unauthenticated_participants: self.allows_unauthenticated,
            enable_join_access_control: self.is_controlled,
            discovery_protection_kind: self.discovery,
            liveliness_protection_kind: self.liveliness,
            rtps_protection_kind: self.rtps,
            topic_rules: vec![topic],
        };
        Governance { domain_rules: vec![rule] }
    }
}

/// Reason for which the two participants refuse each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incompatibility {
    /// Each participant has an identity of a different authority, and trusts only its own.
    ForeignAuthority,
    /// The right participant has a different governance for message protection.
    OtherGovernance,
}

/// Two directories, which are removed on drop.
pub struct EnclaveDirectories {
    directory: PathBuf,
}

/// Document of a participant that expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiring {
    Certificate,
    Permissions,
}

/// Authorities and governance of two enclaves whose documents are issued again.
pub struct Authorities {
    identity: Issuer,
    permissions: Issuer,
    governance: Governance,
    /// Time of creation, in seconds since 1970.
    now: i64,
}

impl Authorities {
    pub fn new(variant: &Variant) -> Self {
        let now = seconds_since_1970();
        let [identity, permissions] = ["Identity CA", "Permissions CA"]
            .map(|name| Issuer::create(name, KeyAlgorithm::EcP256, year_of(now)).expect("an authority"));
        Self { identity, permissions, governance: variant.governance(), now }
    }

    /// Writes the files of a participant. If `expiring` is given, that document is valid until this
    /// time only; all others are valid for a year.
    pub fn write(&self, enclave: &Path, name: &str, expiring: Option<(Expiring, i64)>) {
        let issue = |validity| {
            let Self { identity, permissions, governance, .. } = self;
            let realm = Realm { identity, permissions, governance, validity };
            realm.enclave(name, KeyAlgorithm::EcP256).expect("an identity")
        };
        let year = year_of(self.now);
        let mut files = BTreeMap::from(issue(year));
        if let Some((document, not_after)) = expiring {
            let names: &[&str] = match document {
                Expiring::Certificate => &[CERTIFICATE, KEY],
                Expiring::Permissions => &[PERMISSIONS],
            };
            let short = issue(Validity { not_after, ..year });
            files.extend(short.into_iter().filter(|(name, _)| names.contains(name)));
        }
        fs::create_dir_all(enclave).expect("a directory");
        files.into_iter().for_each(|(file, octets)| fs::write(enclave.join(file), octets).expect("a file"));
    }
}

fn seconds_since_1970() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    i64::try_from(now).expect("before the end of time")
}

fn year_of(now: i64) -> Validity {
    Validity { not_before: now - DAY, not_after: now + 365 * DAY }
}

impl EnclaveDirectories {
    /// Creates two identities, each with a key of the given algorithm.
    pub fn new(name: &str, variant: &Variant, algorithms: [KeyAlgorithm; 2]) -> Self {
        Self::with(name, variant, algorithms, None)
    }

    /// Creates two identities that differ by `incompatibility`.
    pub fn with(
        name: &str,
        variant: &Variant,
        algorithms: [KeyAlgorithm; 2],
        incompatibility: Option<Incompatibility>,
    ) -> Self {
        let enclaves = Self::empty(name);
        let validity = year_of(seconds_since_1970());
        let [left_ca, other_ca, permissions_ca] = ["Identity CA", "Identity CA", "Permissions CA"]
            .map(|name| Issuer::create(name, KeyAlgorithm::EcP256, validity).expect("an authority"));
        let right_ca = if incompatibility == Some(Incompatibility::ForeignAuthority) { &other_ca } else { &left_ca };
        let other = Variant { rtps: ProtectionKind::Sign, ..*variant };
        let right = if incompatibility == Some(Incompatibility::OtherGovernance) { &other } else { variant };
        let sides = [("left", &left_ca, variant), ("right", right_ca, right)];
        for ((name, identity_ca, variant), algorithm) in sides.into_iter().zip(algorithms) {
            let governance = variant.governance();
            let realm =
                Realm { identity: identity_ca, permissions: &permissions_ca, governance: &governance, validity };
            let enclave = enclaves.enclave(name);
            fs::create_dir_all(&enclave).expect("a directory");
            for (file, octets) in realm.enclave(name, algorithm).expect("an identity") {
                fs::write(enclave.join(file), octets).expect("a file");
            }
        }
        enclaves
    }

    /// Returns directories that have no files yet.
    pub fn empty(name: &str) -> Self {
        Self { directory: std::env::temp_dir().join(format!("takt-enclaves-{}-{name}", std::process::id())) }
    }

    fn enclave(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub fn left(&self) -> PathBuf {
        self.enclave("left")
    }

    pub fn right(&self) -> PathBuf {
        self.enclave("right")
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for EnclaveDirectories {
    fn drop(&mut self) {
        if std::env::var_os("TAKT_KEEP_CAPTURES").is_none() {
            // tidy-allow(dropped-cause): what is left is in the temporary directory
            fs::remove_dir_all(self.directory()).ok();
        }
    }
}
