//! S/MIME signatures of governance and permissions documents.

use openssl::pkcs7::{Pkcs7, Pkcs7Flags};
use openssl::stack::Stack;

use super::Issuer;
use crate::error::Result;

/// Signs a document as `openssl smime -sign -text -noattr` does: a detached signature, SHA-256.
///
/// The signature has no signing time, since no participant reads it.
///
/// # Errors
/// OpenSSL fails.
pub fn sign_document(issuer: &Issuer, xml: &str) -> Result<Vec<u8>> {
    let (certificate, key) = issuer.parts();
    let flags = Pkcs7Flags::TEXT | Pkcs7Flags::DETACHED | Pkcs7Flags::NOATTR;
    let signed = Pkcs7::sign(certificate, key, &*Stack::new()?, xml.as_bytes(), flags)?;
    Ok(signed.to_smime(xml.as_bytes(), flags)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::KeyAlgorithm;
    use crate::tools::Validity;

    #[test]
    fn signature_contains_no_signing_time() {
        /// Prefix of the PKCS #9 object identifiers (RFC 2985 §5.3.3) of signature attributes.
        const ATTRIBUTES: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09];
        let validity = Validity { not_before: 0, not_after: 1_000 };
        let issuer = Issuer::create("CA", KeyAlgorithm::EcP256, validity).expect("an authority");
        let document = sign_document(&issuer, "<dds/>").expect("a signature");
        let (signed, _) = Pkcs7::from_smime(&document).expect("a signed document");
        let der = signed.to_der().expect("DER");
        assert!(!der.windows(ATTRIBUTES.len()).any(|part| part == ATTRIBUTES));
    }
}
