//! Renewal of the DDS Security documents of a running participant.

use super::DomainParticipant;
use crate::{Error, Result, SecurityConfig};

impl DomainParticipant {
    /// Renews the certificate, private key, permissions, authorities or revocation lists, for the
    /// same subject. Participants whose security comes from files do this automatically when the
    /// files change.
    ///
    /// Matches with Takt participants remain as far as the new permissions allow them. Participants
    /// of other vendors use the previous certificate until they discover this one again. Returns
    /// when the documents have been checked; later results are logged. See
    /// `docs/guide/security.md`.
    ///
    /// # Errors
    /// [`Error::NotAllowedBySecurity`] if the documents do not allow the participant, or change the
    /// governance: the previous ones stay in use. [`Error::IllegalOperation`] if the participant is
    /// not protected.
    ///
    /// # Examples
    /// ```no_run
    /// use takt::{DomainParticipant, SecurityConfig};
    ///
    /// let participant = DomainParticipant::builder(0).security(SecurityConfig::from_enclave("keys/talker")?).build()?;
    /// participant.renew_security(&SecurityConfig::from_enclave("keys-of-next-year/talker")?)?;
    /// # Ok::<(), takt::Error>(())
    /// ```
    pub fn renew_security(&self, config: &SecurityConfig) -> Result<()> {
        let Some(renewal) = &self.inner.renewal else {
            return Err(Error::IllegalOperation { what: "the participant is not protected by DDS Security" });
        };
        renewal.offer(config)?;
        self.inner.engine.call(|driver, now| {
            driver.core.renew_security(now);
            Ok(())
        })
    }
}
