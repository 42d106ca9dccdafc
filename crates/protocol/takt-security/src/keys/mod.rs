//! Key material: master keys, session keys, the key exchange key, and key tokens
//! (DDS-SEC 1.1 §9.5.2, §9.5.3.3).
//!
//! A master key belongs to one participant or endpoint and is sent to each authenticated peer in a
//! key token. Session keys are derived from it. Keys are overwritten on drop, and no debug form
//! reveals them.

mod exchange;
mod material;
mod session;
mod tokens;

pub use exchange::SharedSecret;
pub use material::{KEY_LEN_MAX, KeyId, KeyMaterial, TransformKind};
pub use tokens::{key_materials, key_tokens};

pub(crate) use material::Key;
pub(crate) use session::{session_key, session_receiver_key};

use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::sign::Signer;

use crate::error::Result;

/// Computes HMAC-SHA256 of the concatenation of `parts`.
fn hmac(key: &[u8], parts: &[&[u8]]) -> Result<[u8; 32]> {
    let key = PKey::hmac(key)?;
    let mut signer = Signer::new(MessageDigest::sha256(), &key)?;
    for part in parts {
        signer.update(part)?;
    }
    let mut code = [0; 32];
    signer.sign(&mut code)?;
    Ok(code)
}

#[cfg(test)]
mod tests;
