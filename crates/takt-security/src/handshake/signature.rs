//! Signatures of handshakes: RSASSA-PSS and ECDSA, both with SHA-256 (DDS-SEC 1.1 §9.3.2.5).

use openssl::hash::MessageDigest;
use openssl::rsa::Padding;
use openssl::sign::{RsaPssSaltlen, Signer, Verifier};

use crate::error::{ErrorKind, Result, SecurityError, failed};
use crate::identity::{Certificate, KeyAlgorithm, PrivateKey};

/// All values of `c.dsign_algo`.
pub(super) const NAMES: [&str; 2] = [name(KeyAlgorithm::Rsa2048), name(KeyAlgorithm::EcP256)];

/// The value of `c.dsign_algo`.
pub(super) const fn name(algorithm: KeyAlgorithm) -> &'static str {
    match algorithm {
        KeyAlgorithm::Rsa2048 => "RSASSA-PSS-SHA256",
        KeyAlgorithm::EcP256 => "ECDSA-SHA256",
    }
}

pub(super) fn sign(key: &PrivateKey, octets: &[u8]) -> Result<Vec<u8>> {
    let mut signer = Signer::new(MessageDigest::sha256(), key.inner())?;
    if key.algorithm() == KeyAlgorithm::Rsa2048 {
        signer.set_rsa_padding(Padding::PKCS1_PSS)?;
        signer.set_rsa_pss_saltlen(RsaPssSaltlen::DIGEST_LENGTH)?;
    }
    Ok(signer.sign_oneshot_to_vec(octets)?)
}

/// Salts of every length are accepted: for OpenSSL the maximum means that when it verifies.
pub(super) fn verify(certificate: &Certificate, octets: &[u8], signature: &[u8]) -> Result<()> {
    let refused = failed(ErrorKind::Signature, "signature of the handshake");
    let key = certificate.leaf().public_key()?;
    let mut verifier = Verifier::new(MessageDigest::sha256(), &key)?;
    if certificate.algorithm() == KeyAlgorithm::Rsa2048 {
        verifier.set_rsa_padding(Padding::PKCS1_PSS)?;
        verifier.set_rsa_pss_saltlen(RsaPssSaltlen::MAXIMUM_LENGTH)?;
    }
    if !verifier.verify_oneshot(signature, octets).map_err(refused)? {
        let reason = format!("signature of the handshake is not of \"{}\"", certificate.subject());
        return Err(SecurityError::new(ErrorKind::Signature, reason));
    }
    Ok(())
}
