//! DDS Security configuration of a participant: in code, by the properties of the specification
//! (DDS-SEC 1.1 §9.3.1, §9.4.1), or by a directory in the layout of an SROS2 enclave.
//!
//! Documents and certificates are read when the participant is built, and again when their files
//! change ([`watch`]). Private keys are not copied elsewhere.

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

/// DDS Security configuration of a participant. Each value is the content of a file: PEM, or S/MIME
/// for the two documents.
///
/// `takt security` creates all of these files. See `docs/guide/security.md`.
#[derive(Clone, PartialEq, Eq)]
pub struct SecurityConfig {
    /// Certificates of the identity CA of the domain.
    pub identity_ca: Vec<u8>,
    /// Identity certificate of this participant.
    pub certificate: Vec<u8>,
    /// Private key of the certificate; for a key in a token, its PKCS#11 URI (RFC 7512).
    pub private_key: Vec<u8>,
    /// Password of an encrypted private key; for a key in a token, its PIN.
    pub password: Option<String>,
    /// Certificates of the permissions CA, which signs governance and permissions.
    pub permissions_ca: Vec<u8>,
    /// Signed governance document, which specifies the protection of the domain.
    pub governance: Vec<u8>,
    /// Signed permissions document of this participant.
    pub permissions: Vec<u8>,
    /// Revocation lists of the identity CA, if any.
    pub revocation_lists: Vec<Vec<u8>>,
    /// Whether unprotected discovery and liveliness messages are accepted although the governance
    /// requires message protection: CycloneDDS sends them unprotected. Any host on the network can
    /// then announce and remove endpoints, but neither read nor write samples.
    pub accepts_clear_discovery: bool,
    /// Whether replayed messages are refused, and messages that arrive more than 1,024 messages of
    /// their key late. Disable it if the network may reorder by more, for instance between traffic
    /// classes.
    pub has_replay_window: bool,
    /// Whether the log of the plugins is also written to the topic
    /// [`LOG_TOPIC_NAME`](crate::LOG_TOPIC_NAME) (DDS-SEC 1.1 §8.6). The permissions must allow it.
    pub distributes_log: bool,
}

impl SecurityConfig {
    /// Reads the files of a directory with the names of an SROS2 enclave: `identity_ca.cert.pem`,
    /// `cert.pem`, `key.pem` (or `key.p11`, with a PKCS#11 URI), `permissions_ca.cert.pem`,
    /// `governance.p7s`, `permissions.p7s`, and optionally `crl.pem`.
    ///
    /// # Errors
    /// [`Error::BadParameter`] names the file that cannot be read.
    pub fn from_enclave(directory: impl AsRef<Path>) -> Result<Self> {
        enclave::read(directory.as_ref())
    }

    /// Reads the configuration from the properties `dds.sec.*` of a participant; `None` if there
    /// are none.
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

/// Reads a security file.
fn read_file(what: &str, path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        Error::bad_parameter_from(format!("{what}: {} cannot be read: {error}", path.display()), error)
    })
}
