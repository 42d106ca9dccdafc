//! Security files of a participant in one directory, in the layout of an SROS2 enclave.

use std::path::Path;

use super::{SecurityConfig, read_file};
use crate::Result;

/// File with the PKCS#11 URI of a private key.
const KEY_URI: &str = "key.p11";
/// File with the revocation list; SROS2 has no such file.
const REVOCATION_LIST: &str = "crl.pem";

const IDENTITY_CA: &str = "identity_ca.cert.pem";
const CERTIFICATE: &str = "cert.pem";
const KEY: &str = "key.pem";
const PERMISSIONS_CA: &str = "permissions_ca.cert.pem";
const GOVERNANCE: &str = "governance.p7s";
const PERMISSIONS: &str = "permissions.p7s";

/// All files that a directory may contain.
pub(super) const FILES: [&str; 8] =
    [IDENTITY_CA, CERTIFICATE, KEY, KEY_URI, PERMISSIONS_CA, GOVERNANCE, PERMISSIONS, REVOCATION_LIST];

pub(super) fn read(directory: &Path) -> Result<SecurityConfig> {
    let file = |name: &str| read_file("security", &directory.join(name));
    let revocation_list = directory.join(REVOCATION_LIST);
    let revocation_lists = match revocation_list.exists() {
        true => vec![read_file("security", &revocation_list)?],
        false => Vec::new(),
    };
    // For a key in a token, a file with its URI replaces the key file.
    let key = if directory.join(KEY_URI).exists() { KEY_URI } else { KEY };
    Ok(SecurityConfig {
        identity_ca: file(IDENTITY_CA)?,
        certificate: file(CERTIFICATE)?,
        private_key: file(key)?,
        password: None,
        permissions_ca: file(PERMISSIONS_CA)?,
        governance: file(GOVERNANCE)?,
        permissions: file(PERMISSIONS)?,
        revocation_lists,
        accepts_clear_discovery: false,
        has_replay_window: true,
        distributes_log: false,
    })
}
