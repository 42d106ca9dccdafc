//! Identities of DDS Security for an experiment with encrypted messages.

use crate::error::Result;
use crate::isolation::crowd::ParticipantConstructor;
use takt::SecurityConfig;

#[cfg(not(feature = "security"))]
pub use absent::Keys;
#[cfg(feature = "security")]
pub use present::Keys;

#[cfg(not(feature = "security"))]
mod absent {
    use super::{ParticipantConstructor, Result, SecurityConfig};
    use crate::error::Error;

    /// Uninhabited placeholder: without security nothing can be encrypted.
    pub enum Keys {}

    impl Keys {
        pub fn new() -> Result<Self> {
            Err(Error::Usage("this build has no DDS Security (feature security)".into()))
        }

        pub fn of(&self, _name: &str) -> Result<SecurityConfig> {
            match *self {}
        }

        pub fn crowd(&self) -> Result<ParticipantConstructor> {
            match *self {}
        }
    }
}

#[cfg(feature = "security")]
mod present {
    use super::{ParticipantConstructor, Result, SecurityConfig};
    use crate::error::Error;
    use crate::keys::{Authorities, Protections};
    use takt_core::Participant;
    use takt_security::documents::ProtectionKind;
    use takt_security::identity::{Certificate, secure_guid_prefix};
    use takt_security::plugin::{Plugin, Settings};
    use takt_security::tools::enclave as file;
    use takt_wire::Timestamp;

    /// The authorities of the experiment, and a second set that no participant of the experiment
    /// trusts.
    pub struct Keys {
        own: Authorities,
        foreign: Authorities,
    }

    impl Keys {
        /// # Errors
        /// The security library fails.
        pub fn new() -> Result<Self> {
            let protections = Protections { rtps: Some(ProtectionKind::Encrypt), ..Protections::default() };
            Ok(Self { own: Authorities::new(protections)?, foreign: Authorities::new(protections)? })
        }

        /// Issues an identity.
        ///
        /// # Errors
        /// The security library fails.
        pub fn of(&self, name: &str) -> Result<SecurityConfig> {
            issue(self.own.enclave(name)?)
        }

        /// Returns a constructor of secured participants. Of three, one is admitted, one has an
        /// identity of a foreign authority, and one has permissions of a foreign authority. All
        /// participants of a kind share an identity.
        ///
        /// # Errors
        /// The security library fails.
        pub fn crowd(&self) -> Result<ParticipantConstructor> {
            let permitted = issue(self.own.enclave("crowd")?)?;
            let unknown = issue(self.foreign.enclave("unknown crowd")?)?;
            let refused = issue(self.own.enclave_permitted_by(&self.foreign, "refused crowd")?)?;
            let identities = [permitted, unknown, refused];
            Ok(Box::new(move |index, mut config, now| {
                let identity = &identities[index % identities.len()];
                let refused = |why: takt_security::SecurityError| Error::Usage(why.to_string());
                let certificate = Certificate::from_pem(&identity.certificate).map_err(refused)?;
                config.guid_prefix = secure_guid_prefix(&certificate, config.guid_prefix).map_err(refused)?;
                let settings = Settings {
                    prefix: config.guid_prefix,
                    domain_id: config.domain_id,
                    identity_certificate: identity.certificate.clone(),
                    private_key: identity.private_key.clone(),
                    identity_authority: identity.identity_ca.clone(),
                    permissions_authority: identity.permissions_ca.clone(),
                    governance: identity.governance.clone(),
                    permissions: identity.permissions.clone(),
                    ..Settings::default()
                };
                let wall = crate::keys::now();
                let plugin = Plugin::new(settings, wall).map_err(refused)?;
                let made = Participant::with_security(config, Box::new(plugin), now);
                let mut participant = made.map_err(takt::Error::from)?;
                let seconds = u32::try_from(wall).unwrap_or(u32::MAX);
                participant.set_wall_clock(now, Timestamp { seconds, fraction: 0 });
                Ok(participant)
            }))
        }
    }

    fn issue(enclave: [(&'static str, Vec<u8>); 6]) -> Result<SecurityConfig> {
        let mut config = SecurityConfig {
            identity_ca: Vec::new(),
            certificate: Vec::new(),
            private_key: Vec::new(),
            password: None,
            permissions_ca: Vec::new(),
            governance: Vec::new(),
            permissions: Vec::new(),
            revocation_lists: Vec::new(),
            accepts_clear_discovery: false,
            has_replay_window: true,
            distributes_log: false,
        };
        for (name, octets) in enclave {
            let place = match name {
                file::IDENTITY_CA => &mut config.identity_ca,
                file::CERTIFICATE => &mut config.certificate,
                file::KEY => &mut config.private_key,
                file::PERMISSIONS_CA => &mut config.permissions_ca,
                file::GOVERNANCE => &mut config.governance,
                file::PERMISSIONS => &mut config.permissions,
                other => return Err(Error::Usage(format!("an enclave has no {other}"))),
            };
            *place = octets;
        }
        Ok(config)
    }
}
