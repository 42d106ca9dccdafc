//! A directory with the files of a participant, as SROS2 lays them out.

use std::path::Path;

use super::{SecurityConfig, read_file};
use crate::Result;

/// The PKCS#11 URI of a private key.
const KEY_URI: &str = "key.p11";
/// A list of revoked certificates, which SROS2 does not have.
const REVOCATION_LIST: &str = "crl.pem";

pub(super) fn read(directory: &Path) -> Result<SecurityConfig> {
    let file = |name: &str| read_file("security", &directory.join(name));
    let revocation_list = directory.join(REVOCATION_LIST);
    let revocation_lists = match revocation_list.exists() {
        true => vec![read_file("security", &revocation_list)?],
        false => Vec::new(),
    };
    // A key that stays in a token has a file with its URI in place of its own.
    let key = if directory.join(KEY_URI).exists() { KEY_URI } else { "key.pem" };
    Ok(SecurityConfig {
        identity_ca: file("identity_ca.cert.pem")?,
        certificate: file("cert.pem")?,
        private_key: file(key)?,
        password: None,
        permissions_ca: file("permissions_ca.cert.pem")?,
        governance: file("governance.p7s")?,
        permissions: file("permissions.p7s")?,
        revocation_lists,
        accepts_clear_discovery: false,
        has_replay_window: true,
        distributes_log: false,
    })
}
