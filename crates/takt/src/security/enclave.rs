//! A directory with the files of a participant, as SROS2 lays them out.

use std::path::Path;

use super::{SecurityConfig, read_file};
use crate::Result;

/// The PKCS#11 URI of a private key.
const KEY_URI: &str = "key.p11";
/// A list of revoked certificates, which SROS2 does not have.
const REVOCATION_LIST: &str = "crl.pem";

const IDENTITY_CA: &str = "identity_ca.cert.pem";
const CERTIFICATE: &str = "cert.pem";
const KEY: &str = "key.pem";
const PERMISSIONS_CA: &str = "permissions_ca.cert.pem";
const GOVERNANCE: &str = "governance.p7s";
const PERMISSIONS: &str = "permissions.p7s";

/// All that a directory may have.
pub(super) const FILES: [&str; 8] =
    [IDENTITY_CA, CERTIFICATE, KEY, KEY_URI, PERMISSIONS_CA, GOVERNANCE, PERMISSIONS, REVOCATION_LIST];

pub(super) fn read(directory: &Path) -> Result<SecurityConfig> {
    let file = |name: &str| read_file("security", &directory.join(name));
    let revocation_list = directory.join(REVOCATION_LIST);
    let revocation_lists = match revocation_list.exists() {
        true => vec![read_file("security", &revocation_list)?],
        false => Vec::new(),
    };
    // A key that stays in a token has a file with its URI in place of its own.
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
