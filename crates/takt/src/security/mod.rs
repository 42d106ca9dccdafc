//! DDS Security of a participant: what it is configured with, in code, by the properties of the specification
//! (DDS-SEC 1.1 §9.3.1, §9.4.1), or by a directory as SROS2 calls an enclave.
//!
//! Documents and certificates are read when the participant is built, and again when their files change ([`watch`]). Private
//! keys are not copied anywhere else.

mod enclave;
pub(crate) mod log_topic;
pub(crate) mod plugin;
mod properties;
mod uri;
pub(crate) mod watch;

use std::fmt;
use std::path::Path;

use crate::qos::Property;
use crate::{Error, Result};

/// What a participant with DDS Security needs. Each value is the content of a file: PEM, or S/MIME for the two documents.
///
/// `takt security` makes all of them. See `docs/security.md`.
#[derive(Clone, PartialEq, Eq)]
pub struct SecurityConfig {
    /// The certificates that identities of the domain are issued by.
    pub identity_ca: Vec<u8>,
    /// Who this participant is.
    pub certificate: Vec<u8>,
    /// The private key of the certificate; in a token, its PKCS#11 URI (RFC 7512).
    pub private_key: Vec<u8>,
    /// What the private key is encrypted with, if it is; for a key in a token its PIN.
    pub password: Option<String>,
    /// The certificates that governance and permissions are signed by.
    pub permissions_ca: Vec<u8>,
    /// How the domain is protected, signed.
    pub governance: Vec<u8>,
    /// What this participant may do, signed.
    pub permissions: Vec<u8>,
    /// Certificates that are revoked, if any: lists of the identity authority.
    pub revocation_lists: Vec<Vec<u8>>,
    /// Unprotected discovery and liveliness may come outside of protected messages, though the governance asks for protection of
    /// messages: CycloneDDS sends them so. Whoever can send on the network can then announce and end endpoints, but neither
    /// read nor write samples.
    pub accepts_clear_discovery: bool,
    /// What was received before is refused, and what comes more than 1,024 messages of its key late. Not if the network may
    /// reorder by more, for instance between traffic classes.
    pub has_replay_window: bool,
    /// The log of the plugins is written to the topic [`LOG_TOPIC_NAME`](crate::LOG_TOPIC_NAME) too (DDS-SEC 1.1 §8.6). Permissions have to
    /// allow it.
    pub distributes_log: bool,
}

impl SecurityConfig {
    /// What a directory holds, under the names that SROS2 gives to the files of an enclave: `identity_ca.cert.pem`, `cert.pem`,
    /// `key.pem` (or `key.p11`, with a PKCS#11 URI), `permissions_ca.cert.pem`, `governance.p7s`, `permissions.p7s`, and `crl.pem` if
    /// there is one.
    ///
    /// # Errors
    /// [`Error::BadParameter`] names the file that cannot be read.
    pub fn from_enclave(directory: impl AsRef<Path>) -> Result<Self> {
        enclave::read(directory.as_ref())
    }

    /// What the properties `dds.sec.*` of a participant name; `None` if there are none.
    ///
    /// # Errors
    /// [`Error::BadParameter`] names the property that is missing, or whose file cannot be read.
    pub fn from_properties(properties: &Property) -> Result<Option<Self>> {
        properties::read(properties)
    }
}

impl fmt::Debug for SecurityConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lens = [&self.identity_ca, &self.certificate, &self.permissions_ca, &self.governance, &self.permissions];
        f.debug_struct("SecurityConfig").field("octets", &lens.map(Vec::len)).finish_non_exhaustive()
    }
}

/// Reads a file that a participant's security needs.
fn read_file(what: &str, path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path)
        .map_err(|error| Error::BadParameter { what: format!("{what}: {} cannot be read: {error}", path.display()) })
}
