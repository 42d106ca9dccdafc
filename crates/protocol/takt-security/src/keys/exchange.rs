//! Key exchange key of the builtin volatile endpoints (DDS-SEC 1.1 §9.5.2.1.2, table 67).

use std::fmt;

use openssl::sha::sha256;

use super::{Key, KeyMaterial, TransformKind, hmac};
use crate::error::Result;

const COOKIE_SALT: &[u8] = b"keyexchange salt";
const COOKIE_KEY: &[u8] = b"key exchange key";

/// Result of a handshake: SHA-256 of the shared secret, and both challenges.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedSecret {
    secret: Key,
    challenge1: [u8; 32],
    challenge2: [u8; 32],
}

impl SharedSecret {
    /// Creates the shared secret from its hash and the challenges of initiator and replier.
    pub fn new(secret: &[u8; 32], challenge1: [u8; 32], challenge2: [u8; 32]) -> Self {
        Self { secret: Key::new(secret), challenge1, challenge2 }
    }

    /// Returns the key material with which both participants protect the volatile endpoints. Its
    /// key id is zero, and both directions share the key: session ids and counters start at random
    /// values.
    ///
    /// # Errors
    /// OpenSSL fails.
    pub fn key_exchange_material(&self) -> Result<KeyMaterial> {
        let kind = TransformKind::Aes256Gcm;
        let derive = |first: &[u8], cookie: &[u8], second: &[u8]| {
            let key = sha256(&[first, cookie, second].concat());
            hmac(&key, &[self.secret.octets(kind)]).map(|code| Key::new(&code))
        };
        Ok(KeyMaterial {
            kind,
            salt: derive(&self.challenge1, COOKIE_SALT, &self.challenge2)?,
            sender_key_id: [0; 4],
            sender_key: derive(&self.challenge2, COOKIE_KEY, &self.challenge1)?,
            receiver_key_id: [0; 4],
            receiver_key: Key::new(&[]),
        })
    }
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSecret")
    }
}
