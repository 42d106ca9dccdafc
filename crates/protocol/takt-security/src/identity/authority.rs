//! Certificate authorities: path checks at a given time, and revocation lists.

use std::fmt;

use openssl::asn1::Asn1Time;
use openssl::stack::Stack;
use openssl::x509::store::{X509Store, X509StoreBuilder};
use openssl::x509::verify::{X509VerifyFlags, X509VerifyParam};
use openssl::x509::{CrlStatus, X509, X509Crl, X509Ref, X509StoreContext};

use super::certificate::{CERTIFICATE_PEM_LEN_MAX, parse_stack, unix_seconds};
use super::{CHAIN_LEN_MAX, Certificate, UnixSeconds};
use crate::error::{ErrorKind, Result, SecurityError, failed};

/// Maximum number of certificates of one authority. It may renew its own, and may be an
/// intermediate authority.
pub const AUTHORITY_CERTIFICATES_MAX: usize = 8;
/// Maximum number of revocation lists of one authority.
pub const REVOCATION_LISTS_MAX: usize = 8;
/// Maximum length in octets of the PEM text of a revocation list.
const REVOCATION_LIST_LEN_MAX: usize = 1 << 20;

/// Identity CA or permissions CA: trusted certificates and revocation lists.
pub struct Authority {
    certificates: Vec<Certificate>,
    revocation_lists: Vec<X509Crl>,
}

impl Authority {
    /// Reads the PEM text of the trusted certificates.
    ///
    /// # Errors
    /// The text has no certificate or too many, or a certificate has a key that is not accepted.
    pub fn from_pem(pem: &[u8]) -> Result<Self> {
        let all = parse_stack(pem, CERTIFICATE_PEM_LEN_MAX, AUTHORITY_CERTIFICATES_MAX)?;
        if all.is_empty() {
            return Err(SecurityError::new(ErrorKind::Certificate, "PEM text of an authority without a certificate"));
        }
        let certificates = all.iter().map(|one| Certificate::from_pem(&one.to_pem()?)).collect::<Result<_>>()?;
        Ok(Self { certificates, revocation_lists: Vec::new() })
    }

    /// Adds a revocation list in PEM. A new list does not replace an earlier one of the same
    /// issuer: a certificate is refused if any list contains it.
    ///
    /// # Errors
    /// The text is no revocation list, no trusted certificate signed it, or there are too many
    /// lists.
    pub fn add_revocation_list(&mut self, pem: &[u8]) -> Result<()> {
        if pem.len() > REVOCATION_LIST_LEN_MAX || self.revocation_lists.len() == REVOCATION_LISTS_MAX {
            let reason = format!(
                "revocation list of {} octets after {} others, at most {REVOCATION_LIST_LEN_MAX} octets and {REVOCATION_LISTS_MAX} lists",
                pem.len(),
                self.revocation_lists.len()
            );
            return Err(SecurityError::new(ErrorKind::Limit, reason));
        }
        let list = X509Crl::from_pem(pem).map_err(failed(ErrorKind::Certificate, "revocation list"))?;
        let is_signed = self.certificates.iter().any(|certificate| {
            let key = certificate.leaf().public_key();
            is_same_name(list.issuer_name(), certificate.leaf().subject_name())
                && key.is_ok_and(|key| list.verify(&key).unwrap_or(false))
        });
        if !is_signed {
            return Err(SecurityError::new(ErrorKind::Signature, "revocation list that no trusted authority signed"));
        }
        self.revocation_lists.push(list);
        Ok(())
    }

    /// Returns the last second at which all revocation lists are valid. After it, all certificates
    /// of the issuers of expired lists are refused. `None` if no list expires.
    pub fn revocation_expiry(&self) -> Option<UnixSeconds> {
        let ends = self.revocation_lists.iter().filter_map(|list| list.next_update());
        ends.map(|end| unix_seconds(end).unwrap_or(UnixSeconds::MIN)).min()
    }

    /// Returns the trusted certificates.
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// Checks that the certificate chains to a trusted one, that all certificates of the chain are
    /// valid at `now`, and that none is revoked.
    ///
    /// # Errors
    /// One of these conditions does not hold; the reason names the condition and the subject.
    pub fn check(&self, certificate: &Certificate, now: UnixSeconds) -> Result<()> {
        let chain = self.chain(certificate, now)?;
        for one in &chain {
            self.check_revocation(one, now)?;
        }
        Ok(())
    }

    /// Returns the path from the certificate to a trusted one.
    fn chain(&self, certificate: &Certificate, now: UnixSeconds) -> Result<Vec<X509>> {
        let store = self.store(now)?;
        let mut intermediates = Stack::new()?;
        for one in certificate.intermediates() {
            intermediates.push(one.clone())?;
        }
        let mut context = X509StoreContext::new()?;
        let checked = context.init(&store, certificate.leaf(), &intermediates, |context| {
            let is_valid = context.verify_cert()?;
            let chain = context.chain().map(|chain| chain.iter().map(ToOwned::to_owned).collect());
            Ok((is_valid, context.error(), context.error_depth(), chain))
        })?;
        match checked {
            (true, _, _, Some(chain)) => Ok(chain),
            (_, error, depth, _) => {
                let position = if depth == 0 { String::new() } else { format!(" at depth {depth} of its chain") };
                let reason =
                    format!("certificate of \"{}\": {}{position}", certificate.subject(), error.error_string());
                Err(SecurityError::new(ErrorKind::Certificate, reason))
            }
        }
    }

    fn store(&self, now: UnixSeconds) -> Result<X509Store> {
        let mut store = X509StoreBuilder::new()?;
        for certificate in &self.certificates {
            store.add_cert(certificate.leaf().to_owned())?;
        }
        let mut parameters = X509VerifyParam::new()?;
        parameters.set_time(now);
        parameters.set_depth(i32::try_from(CHAIN_LEN_MAX).expect("a small number"));
        // An identity CA may be an intermediate one whose root is not configured.
        parameters.set_flags(X509VerifyFlags::PARTIAL_CHAIN)?;
        store.set_param(&parameters)?;
        Ok(store.build())
    }

    fn check_revocation(&self, certificate: &X509Ref, now: UnixSeconds) -> Result<()> {
        let refused = |what: &str| {
            let subject = super::SubjectName::of(certificate.subject_name())?;
            let reason = format!("certificate of \"{subject}\": {what}");
            Err(SecurityError::new(ErrorKind::Certificate, reason))
        };
        let now = Asn1Time::from_unix(now)?;
        let lists = self.revocation_lists.iter();
        for list in lists.filter(|list| is_same_name(list.issuer_name(), certificate.issuer_name())) {
            let is_current = *list.last_update() <= *now && list.next_update().is_none_or(|next| *next >= *now);
            if !is_current {
                return refused("the revocation list of its issuer is not valid at this time");
            }
            if matches!(list.get_by_cert(&certificate.to_owned()), CrlStatus::Revoked(_)) {
                return refused("revoked");
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = self.revocation_lists.len();
        f.debug_struct("Authority").field("certificates", &self.certificates).field("revocation_lists", &lists).finish()
    }
}

fn is_same_name(one: &openssl::x509::X509NameRef, other: &openssl::x509::X509NameRef) -> bool {
    one.try_cmp(other).is_ok_and(std::cmp::Ordering::is_eq)
}
