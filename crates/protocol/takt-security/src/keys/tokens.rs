//! Key tokens (DDS-SEC 1.1 §9.5.2.1), each with one key material.

use super::KeyMaterial;
use crate::error::{ErrorKind, Result, SecurityError};
use crate::token::Token;

const CLASS: &str = "DDS:Crypto:AES_GCM_GMAC";
const PROPERTY: &str = "dds.cryp.keymat";

/// Returns the key tokens of a participant or endpoint: one for messages or submessages, and for a
/// writer a second one if its payloads have a separate key.
pub fn key_tokens(materials: &[&KeyMaterial]) -> Vec<Token<'static>> {
    materials.iter().map(|material| Token::new(CLASS).with_octets(PROPERTY, material.to_octets())).collect()
}

/// Returns the key materials in the tokens of a message.
///
/// # Errors
/// A token has another class, no key material, or malformed key material.
pub fn key_materials(tokens: &[Token<'_>]) -> Result<Vec<KeyMaterial>> {
    tokens.iter().map(key_material).collect()
}

fn key_material(token: &Token<'_>) -> Result<KeyMaterial> {
    if token.class_id != CLASS {
        let reason = format!("key token of class \"{}\", expected \"{CLASS}\"", token.class_id);
        return Err(SecurityError::new(ErrorKind::Malformed, reason));
    }
    let Some(octets) = token.octets(PROPERTY) else {
        return Err(SecurityError::new(ErrorKind::Malformed, format!("key token without \"{PROPERTY}\"")));
    };
    KeyMaterial::parse(octets)
}
