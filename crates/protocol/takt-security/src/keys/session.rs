//! Derivation of session keys (DDS-SEC 1.1 §9.5.3.3.3).

use super::{Key, KeyMaterial, hmac};
use crate::error::Result;

/// Derives a session key from the master key of the sender.
pub(crate) fn session_key(material: &KeyMaterial, session_id: [u8; 4]) -> Result<Key> {
    derive(material, &material.sender_key, b"SessionKey", session_id)
}

/// Derives the session key of the receiver-specific MAC.
pub(crate) fn session_receiver_key(material: &KeyMaterial, session_id: [u8; 4]) -> Result<Key> {
    derive(material, &material.receiver_key, b"SessionReceiverKey", session_id)
}

fn derive(material: &KeyMaterial, master: &Key, label: &[u8], session_id: [u8; 4]) -> Result<Key> {
    let kind = material.kind;
    let code = hmac(master.octets(kind), &[label, material.salt.octets(kind), &session_id])?;
    Ok(Key::new(&code[..kind.key_len()]))
}
