//! DDS Security of a participant that runs.

use super::DomainParticipant;
use crate::{Error, Result, SecurityConfig};

impl DomainParticipant {
    /// Goes on with another certificate, private key, permissions, authorities or revocation lists, of the same subject. Participants
    /// whose security comes from files do this by themselves when the files change.
    ///
    /// Matches with participants of Takt stay, as far as the new permissions allow them. Participants of other vendors go by the former
    /// certificate until they discover this one again. Returns when the documents have been checked; what follows is in the log. See
    /// `docs/security.md`.
    ///
    /// # Errors
    /// [`Error::NotAllowedBySecurity`] if the documents would not allow the participant, or change the governance: it goes on with the
    /// former ones. [`Error::IllegalOperation`] if it is not protected.
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
