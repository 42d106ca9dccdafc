//! Identity certificates in PEM, with the chain to their authority.

use openssl::asn1::{Asn1Time, Asn1TimeRef};
use openssl::hash::MessageDigest;
use openssl::rsa::Padding;
use openssl::sign::{RsaPssSaltlen, Verifier};
use openssl::x509::{X509, X509Ref};

use super::{KeyAlgorithm, SubjectName, UnixSeconds};
use crate::error::{ErrorKind, Result, SecurityError, failed};

/// Maximum length in octets of the PEM text of a certificate and its chain.
pub const CERTIFICATE_PEM_LEN_MAX: usize = 16_384;
/// Maximum number of certificates in that text. The first is the identity certificate.
pub const CHAIN_LEN_MAX: usize = 8;

/// Parsed certificate. It is trusted only after the check of an [`super::Authority`].
#[derive(Clone, Debug)]
pub struct Certificate {
    pem: Vec<u8>,
    leaf: X509,
    intermediates: Vec<X509>,
    subject: SubjectName,
    algorithm: KeyAlgorithm,
}

impl Certificate {
    /// Reads a PEM text: the certificate itself, then the chain to the authority.
    ///
    /// # Errors
    /// The text is too long, has no or too many certificates, or a key that is not accepted.
    pub fn from_pem(pem: &[u8]) -> Result<Self> {
        let mut all = parse_stack(pem, CERTIFICATE_PEM_LEN_MAX, CHAIN_LEN_MAX)?.into_iter();
        let none = || SecurityError::new(ErrorKind::Certificate, "PEM text without a certificate");
        let leaf = all.next().ok_or_else(none)?;
        let subject = SubjectName::of(leaf.subject_name())?;
        let key = leaf.public_key().map_err(failed(ErrorKind::Certificate, "public key"))?;
        let algorithm = KeyAlgorithm::of(&key).map_err(|error| error.context(&subject.to_string()))?;
        Ok(Self { pem: pem.to_vec(), leaf, intermediates: all.collect(), subject, algorithm })
    }

    /// Verifies a signature with the key of the certificate: RSASSA-PSS with a salt of any length,
    /// or ECDSA, both with SHA-256 (DDS-SEC 1.1 §9.3.2.5).
    pub(crate) fn verify(&self, octets: &[u8], signature: &[u8]) -> Result<()> {
        let refused = failed(ErrorKind::Signature, "signature of the handshake");
        let key = self.leaf.public_key()?;
        let mut verifier = Verifier::new(MessageDigest::sha256(), &key)?;
        if self.algorithm == KeyAlgorithm::Rsa2048 {
            verifier.set_rsa_padding(Padding::PKCS1_PSS)?;
            // OpenSSL accepts any salt length at verification if the maximum is set.
            verifier.set_rsa_pss_saltlen(RsaPssSaltlen::MAXIMUM_LENGTH)?;
        }
        if !verifier.verify_oneshot(signature, octets).map_err(refused)? {
            let reason = format!("signature of the handshake is not by \"{}\"", self.subject);
            return Err(SecurityError::new(ErrorKind::Signature, reason));
        }
        Ok(())
    }

    /// Returns the PEM text as it was read; handshakes send it unchanged.
    pub fn pem(&self) -> &[u8] {
        &self.pem
    }

    /// Returns the subject name.
    pub const fn subject(&self) -> &SubjectName {
        &self.subject
    }

    /// Returns the algorithm of the key.
    pub const fn algorithm(&self) -> KeyAlgorithm {
        self.algorithm
    }

    /// Returns the second at which the certificate expires.
    pub fn not_after(&self) -> UnixSeconds {
        unix_seconds(self.leaf.not_after()).unwrap_or(UnixSeconds::MIN)
    }

    /// Returns the second at which the certificate becomes valid.
    pub fn not_before(&self) -> UnixSeconds {
        unix_seconds(self.leaf.not_before()).unwrap_or(UnixSeconds::MAX)
    }

    /// Returns the SHA-256 hash of the DER form, which identifies the certificate.
    ///
    /// # Errors
    /// OpenSSL fails.
    pub fn fingerprint(&self) -> Result<[u8; 32]> {
        let digest = self.leaf.digest(MessageDigest::sha256())?;
        Ok(<[u8; 32]>::try_from(&*digest).expect("SHA-256 has 32 octets"))
    }

    pub(crate) fn leaf(&self) -> &X509Ref {
        &self.leaf
    }

    pub(super) fn intermediates(&self) -> &[X509] {
        &self.intermediates
    }
}

/// Reads up to `count_max` certificates.
pub(super) fn parse_stack(pem: &[u8], len_max: usize, count_max: usize) -> Result<Vec<X509>> {
    if pem.len() > len_max {
        let reason = format!("certificates of {} octets, at most {len_max}", pem.len());
        return Err(SecurityError::new(ErrorKind::Limit, reason));
    }
    let all = X509::stack_from_pem(pem).map_err(failed(ErrorKind::Certificate, "certificate"))?;
    if all.len() > count_max {
        let reason = format!("{} certificates in one PEM text, at most {count_max}", all.len());
        return Err(SecurityError::new(ErrorKind::Limit, reason));
    }
    Ok(all)
}

/// Converts a certificate time; `None` if the certificate has no valid time in that field. Such a
/// certificate is never valid.
pub(super) fn unix_seconds(time: &Asn1TimeRef) -> Option<UnixSeconds> {
    // tidy-allow(dropped-cause): there is one way to be no time
    let since = Asn1Time::from_unix(0).and_then(|epoch| epoch.diff(time)).ok()?;
    Some(i64::from(since.days) * 86_400 + i64::from(since.secs))
}
