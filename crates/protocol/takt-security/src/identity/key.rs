//! Private keys and their algorithms (DDS-SEC 1.1 §9.3.1.3).

use std::fmt;

use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{HasParams, HasPublic, Id, PKey, PKeyRef, Private};
use openssl::rsa::Padding;
use openssl::sign::{RsaPssSaltlen, Signer};

use super::hardware::HardwareKey;
use super::{Certificate, uri};
use crate::error::{ErrorKind, Result, SecurityError, failed};

/// Accepted lengths of an RSA key in bits.
const RSA_BITS: std::ops::RangeInclusive<u32> = 2_048..=4_096;
/// Maximum length in octets of a PEM file with a private key.
const KEY_PEM_LEN_MAX: usize = 16_384;

/// Algorithm of the key in a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAlgorithm {
    /// RSA; the specification requires 2,048 bits.
    Rsa2048,
    /// Elliptic curve P-256.
    EcP256,
}

impl KeyAlgorithm {
    /// Returns the algorithm name used in identity and permissions tokens.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rsa2048 => "RSA-2048",
            Self::EcP256 => "EC-prime256v1",
        }
    }

    pub(super) fn of<T: HasParams + HasPublic>(key: &PKeyRef<T>) -> Result<Self> {
        let refused = |found: String| {
            let reason = format!("{found}, expected RSA of {RSA_BITS:?} bits or EC on P-256");
            Err(SecurityError::new(ErrorKind::Certificate, reason))
        };
        match key.id() {
            Id::RSA if RSA_BITS.contains(&key.bits()) => Ok(Self::Rsa2048),
            Id::RSA => refused(format!("RSA key of {} bits", key.bits())),
            Id::EC => match key.ec_key()?.group().curve_name() {
                Some(Nid::X9_62_PRIME256V1) => Ok(Self::EcP256),
                other => refused(format!("EC key on curve {other:?}")),
            },
            other => refused(format!("key of kind {other:?}")),
        }
    }
}

/// Private key in memory or in a token. Its debug form does not reveal it.
pub struct PrivateKey(KeyStorage);

enum KeyStorage {
    Memory { key: PKey<Private>, algorithm: KeyAlgorithm },
    Token(HardwareKey),
}

impl PrivateKey {
    /// Reads a PEM private key, encrypted or not, or opens the key that a PKCS#11 URI names
    /// (RFC 7512). An encrypted key without a password is refused. For a URI the password is the
    /// PIN, unless the URI specifies one.
    ///
    /// # Errors
    /// The input is neither, the password is wrong, the algorithm is not accepted, or the token
    /// does not provide the key.
    pub fn read(octets: &[u8], password: Option<&str>) -> Result<Self> {
        match std::str::from_utf8(octets) {
            Ok(text) if text.trim_start().starts_with(uri::SCHEME) => {
                HardwareKey::open(text, password).map(|key| Self(KeyStorage::Token(key)))
            }
            _ => Self::from_pem(octets, password),
        }
    }

    /// Reads a PEM private key, encrypted or not. An encrypted key without a password is refused.
    ///
    /// # Errors
    /// The input is no PEM key, the password is wrong, or the algorithm is not accepted.
    pub fn from_pem(pem: &[u8], password: Option<&str>) -> Result<Self> {
        if pem.len() > KEY_PEM_LEN_MAX {
            let reason = format!("private key of {} octets, at most {KEY_PEM_LEN_MAX}", pem.len());
            return Err(SecurityError::new(ErrorKind::Limit, reason));
        }
        // OpenSSL prompts on the terminal if it is given no password.
        let password = password.unwrap_or_default().as_bytes();
        let key = PKey::private_key_from_pem_passphrase(pem, password)
            .map_err(failed(ErrorKind::Certificate, "private key"))?;
        let algorithm = KeyAlgorithm::of(&key)?;
        Ok(Self(KeyStorage::Memory { key, algorithm }))
    }

    /// Returns the algorithm.
    pub const fn algorithm(&self) -> KeyAlgorithm {
        match &self.0 {
            KeyStorage::Memory { algorithm, .. } => *algorithm,
            KeyStorage::Token(key) => key.algorithm(),
        }
    }

    /// Returns the key, unless it is in a token.
    pub(crate) fn in_memory(&self) -> Option<&PKeyRef<Private>> {
        match &self.0 {
            KeyStorage::Memory { key, .. } => Some(key),
            KeyStorage::Token(_) => None,
        }
    }

    /// Signs with RSASSA-PSS or ECDSA, both with SHA-256 (DDS-SEC 1.1 §9.3.2.5).
    pub(crate) fn sign(&self, octets: &[u8]) -> Result<Vec<u8>> {
        let (key, algorithm) = match &self.0 {
            KeyStorage::Memory { key, algorithm } => (key, *algorithm),
            KeyStorage::Token(key) => return key.sign(octets),
        };
        let mut signer = Signer::new(MessageDigest::sha256(), key)?;
        if algorithm == KeyAlgorithm::Rsa2048 {
            signer.set_rsa_padding(Padding::PKCS1_PSS)?;
            signer.set_rsa_pss_saltlen(RsaPssSaltlen::DIGEST_LENGTH)?;
        }
        Ok(signer.sign_oneshot_to_vec(octets)?)
    }

    /// Reports whether the key belongs to the certificate. A key in a token signs a test message
    /// for this.
    pub(super) fn belongs_to(&self, certificate: &Certificate) -> Result<bool> {
        const SAMPLE: &[u8] = b"takt: is this the key of the certificate?";
        match self.in_memory() {
            Some(key) => Ok(certificate.leaf().public_key()?.public_eq(key)),
            None if self.algorithm() != certificate.algorithm() => Ok(false),
            None => Ok(certificate.verify(SAMPLE, &self.sign(SAMPLE)?).is_ok()),
        }
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({})", self.algorithm().name())
    }
}
