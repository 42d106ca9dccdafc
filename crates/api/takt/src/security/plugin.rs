//! Creation and renewal of the `takt-security` plugins of a participant.

#[cfg(feature = "security")]
pub(crate) use with::{Renewal, open};
#[cfg(not(feature = "security"))]
pub(crate) use without::{Renewal, open};

#[cfg(feature = "security")]
mod with {
    use takt_core::Config;
    use takt_core::security::Security;
    use takt_security::SecurityError;
    use takt_security::identity::{Certificate, secure_guid_prefix};
    use takt_security::plugin::{Plugin, Renewer, Settings};

    use crate::security::SecurityConfig;
    use crate::{Error, Result};

    /// Handle that passes new documents to the plugins of a participant, from any thread.
    pub(crate) struct Renewal(Renewer);

    /// Creates the plugins, and sets the GUID prefix of the participant that its certificate
    /// requires.
    pub(crate) fn open(security: &SecurityConfig, config: &mut Config) -> Result<(Box<dyn Security>, Renewal)> {
        let certificate = Certificate::from_pem(&security.certificate).map_err(refused)?;
        config.guid_prefix = secure_guid_prefix(&certificate, config.guid_prefix).map_err(refused)?;
        let settings = Settings { prefix: config.guid_prefix, domain_id: config.domain_id, ..settings(security) };
        let plugin = Plugin::new(settings, wall_seconds()).map_err(refused)?;
        let renewal = Renewal(plugin.renewer());
        Ok((Box::new(plugin), renewal))
    }

    impl Renewal {
        /// Reads and checks the new documents, and stores them for the plugins.
        pub(crate) fn offer(&self, security: &SecurityConfig) -> Result<()> {
            self.0.offer(&settings(security), wall_seconds()).map_err(refused)
        }
    }

    fn settings(security: &SecurityConfig) -> Settings {
        Settings {
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
        }
    }

    fn wall_seconds() -> i64 {
        i64::from(crate::runtime::clock::both().1.seconds)
    }

    fn refused(error: SecurityError) -> Error {
        Error::NotAllowedBySecurity { what: error.to_string(), source: Some(error.into()) }
    }
}

#[cfg(not(feature = "security"))]
mod without {
    use takt_core::Config;
    use takt_core::security::Security;

    use crate::security::SecurityConfig;
    use crate::{Error, Result};

    /// Uninhabited: without the plugins there is no renewal.
    pub(crate) enum Renewal {}

    impl Renewal {
        pub(crate) fn offer(&self, _: &SecurityConfig) -> Result<()> {
            match *self {}
        }
    }

    /// Fails: a program without the plugins must not run unprotected where protection is requested.
    pub(crate) fn open(_: &SecurityConfig, _: &mut Config) -> Result<(Box<dyn Security>, Renewal)> {
        Err(Error::Unsupported { what: "DDS Security: the program was built without the feature \"security\" of takt" })
    }
}
