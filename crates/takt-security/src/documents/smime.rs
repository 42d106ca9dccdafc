//! S/MIME signatures of documents (DDS-SEC 1.1 §9.4.1.1).
//!
//! The signer must be a certificate of the permissions authority itself, valid at the time of the
//! check. Certificates inside the signature are ignored, and so are certificates that the authority
//! issued: a participant whose identity comes from the same authority cannot sign permissions.

use openssl::pkcs7::{Pkcs7, Pkcs7Flags};
use openssl::stack::Stack;
use openssl::x509::store::X509StoreBuilder;

use super::mime::{Signed, parse};
use super::xml::DOCUMENT_LEN_MAX;
use crate::error::{ErrorKind, Result, SecurityError, failed};
use crate::identity::{Authority, UnixSeconds};

/// Verifies a signed document and returns the text that was signed, without its MIME header.
///
/// # Errors
/// It is no S/MIME document, or no certificate of the authority that is valid at `now` signed it.
pub fn verify(document: &[u8], authority: &Authority, now: UnixSeconds) -> Result<String> {
    if document.len() > DOCUMENT_LEN_MAX {
        let reason = format!("signed document of {} octets, at most {DOCUMENT_LEN_MAX}", document.len());
        return Err(SecurityError::new(ErrorKind::Limit, reason));
    }
    // INTEROP(CycloneDDS 0.10): sends a trailing NUL with its permissions.
    let document = document.strip_suffix(&[0]).unwrap_or(document);
    let Signed { signature, content } = parse(document)?;
    let signature = Pkcs7::from_der(&signature).map_err(failed(ErrorKind::Malformed, "S/MIME"))?;
    if signature.signed().is_none() {
        return Err(SecurityError::new(ErrorKind::Malformed, "S/MIME document without signature"));
    }
    let mut signers = Stack::new()?;
    for certificate in authority.certificates() {
        // Validity and path of the authority's own certificate.
        if authority.check(certificate, now).is_ok() {
            signers.push(certificate.leaf().to_owned())?;
        }
    }
    if signers.is_empty() {
        return Err(SecurityError::new(
            ErrorKind::Certificate,
            "no certificate of the permissions authority is valid now",
        ));
    }
    // The path is checked above; the store is not used.
    let store = X509StoreBuilder::new()?.build();
    let flags = Pkcs7Flags::NOINTERN | Pkcs7Flags::NOVERIFY;
    let mut text = Vec::new();
    signature
        .verify(&signers, &store, content.as_deref(), Some(&mut text), flags)
        .map_err(failed(ErrorKind::Signature, "signature, expected one of the permissions authority"))?;
    let text = String::from_utf8(text)
        .map_err(|error| SecurityError::new(ErrorKind::Malformed, format!("signed document: {error}")))?;
    Ok(without_mime_header(text))
}

/// Documents that `openssl smime -sign -text` signed begin with a MIME header, others do not.
fn without_mime_header(text: String) -> String {
    let has_header = text.get(..13).is_some_and(|start| start.eq_ignore_ascii_case("content-type:"));
    match text.split_once("\r\n\r\n").or_else(|| text.split_once("\n\n")) {
        Some((_, body)) if has_header => body.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::without_mime_header;

    #[test]
    fn only_a_mime_header_is_taken_away() {
        for (text, expected) in [
            ("Content-Type: text/plain\r\n\r\n<dds/>\r\n", "<dds/>\r\n"),
            ("content-type: text/plain\n\n<dds/>", "<dds/>"),
            ("<dds>\n\n</dds>", "<dds>\n\n</dds>"),
            ("Content-Type: text/plain", "Content-Type: text/plain"),
        ] {
            assert_eq!(without_mime_header(text.to_owned()), expected);
        }
    }
}
