//! S/MIME signatures of governance and permissions documents.

use openssl::pkcs7::{Pkcs7, Pkcs7Flags};
use openssl::stack::Stack;

use super::Issuer;
use crate::error::Result;

/// Signs a document as `openssl smime -sign -text` does: a detached signature, SHA-256.
///
/// # Errors
/// The library fails.
pub fn sign_document(issuer: &Issuer, xml: &str) -> Result<Vec<u8>> {
    let (certificate, key) = issuer.parts();
    let flags = Pkcs7Flags::TEXT | Pkcs7Flags::DETACHED;
    let signed = Pkcs7::sign(certificate, key, &*Stack::new()?, xml.as_bytes(), flags)?;
    Ok(signed.to_smime(xml.as_bytes(), flags)?)
}
