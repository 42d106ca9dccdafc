//! The plugins of `takt-security` for a participant.

use takt_core::Config;
use takt_core::security::Security;

use super::SecurityConfig;
use crate::{Error, Result};

/// Opens the plugins, and gives the participant the GUID prefix that its certificate vouches for.
#[cfg(feature = "security")]
pub(crate) fn open(security: &SecurityConfig, config: &mut Config) -> Result<Box<dyn Security>> {
    use takt_security::identity::{Certificate, secure_guid_prefix};
    use takt_security::plugin::{Plugin, Settings};

    let refused = |error: takt_security::SecurityError| Error::NotAllowedBySecurity { what: error.to_string() };
    let certificate = Certificate::from_pem(&security.certificate).map_err(refused)?;
    config.guid_prefix = secure_guid_prefix(&certificate, config.guid_prefix).map_err(refused)?;
    let settings = Settings {
        prefix: config.guid_prefix,
        domain_id: config.domain_id,
        identity_certificate: security.certificate.clone(),
        private_key: security.private_key.clone(),
        password: security.password.clone(),
        identity_authority: security.identity_ca.clone(),
        revocation_lists: security.revocation_lists.clone(),
        permissions_authority: security.permissions_ca.clone(),
        governance: security.governance.clone(),
        permissions: security.permissions.clone(),
        accepts_clear_discovery: security.accepts_clear_discovery,
        has_replay_windows: security.has_replay_window,
        ..Settings::default()
    };
    let (_, wall) = crate::runtime::clock::both();
    Ok(Box::new(Plugin::new(settings, i64::from(wall.seconds)).map_err(refused)?))
}

/// A program without the plugins must not run unprotected where protection is asked for.
#[cfg(not(feature = "security"))]
pub(crate) fn open(_: &SecurityConfig, _: &mut Config) -> Result<Box<dyn Security>> {
    Err(Error::Unsupported { what: "DDS Security: the program was built without the feature \"security\" of takt" })
}
