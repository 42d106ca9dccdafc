//! Private keys and the algorithms that they stand for (DDS-SEC 1.1 §9.3.1.3).

use std::fmt;

use openssl::nid::Nid;
use openssl::pkey::{HasParams, HasPublic, Id, PKey, PKeyRef, Private};

use super::Certificate;
use crate::error::{ErrorKind, Result, SecurityError, failed};

/// Bits of an RSA key.
const RSA_BITS: std::ops::RangeInclusive<u32> = 2_048..=4_096;
/// Octets of a PEM file with a private key.
const KEY_PEM_LEN_MAX: usize = 16_384;

/// The kind of key in a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAlgorithm {
    /// RSA, 2,048 bits in the specification.
    Rsa2048,
    /// Elliptic curve P-256.
    EcP256,
}

impl KeyAlgorithm {
    /// The name in identity and permissions tokens.
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

/// A private key. Its debug form does not show it.
pub struct PrivateKey {
    key: PKey<Private>,
    algorithm: KeyAlgorithm,
}

impl PrivateKey {
    /// Reads a PEM private key, encrypted or not. Without a password an encrypted key is refused.
    ///
    /// # Errors
    /// It is no PEM key, the password does not fit, or its algorithm is not accepted.
    pub fn from_pem(pem: &[u8], password: Option<&str>) -> Result<Self> {
        if pem.len() > KEY_PEM_LEN_MAX {
            let reason = format!("private key of {} octets, at most {KEY_PEM_LEN_MAX}", pem.len());
            return Err(SecurityError::new(ErrorKind::Limit, reason));
        }
        // OpenSSL would ask on the terminal for a password that it is not given.
        let password = password.unwrap_or_default().as_bytes();
        let key = PKey::private_key_from_pem_passphrase(pem, password)
            .map_err(failed(ErrorKind::Certificate, "private key"))?;
        Self::new(key)
    }

    pub(crate) fn new(key: PKey<Private>) -> Result<Self> {
        let algorithm = KeyAlgorithm::of(&key)?;
        Ok(Self { key, algorithm })
    }

    /// The algorithm.
    pub const fn algorithm(&self) -> KeyAlgorithm {
        self.algorithm
    }

    pub(crate) fn inner(&self) -> &PKeyRef<Private> {
        &self.key
    }

    pub(super) fn belongs_to(&self, certificate: &Certificate) -> Result<bool> {
        Ok(certificate.leaf().public_key()?.public_eq(&self.key))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({})", self.algorithm.name())
    }
}
