//! S/MIME signatures of documents (DDS-SEC 1.1 §9.4.1.1).
//!
//! The signer must be a certificate of the permissions authority itself, valid at the time of the
//! check. Certificates inside the signature are ignored, as are certificates that the authority
//! issued: a participant whose identity has the same authority cannot sign permissions.

use openssl::pkcs7::{Pkcs7, Pkcs7Flags};
use openssl::stack::Stack;
use openssl::x509::store::X509StoreBuilder;

use super::mime::{Signed, parse};
use super::xml::DOCUMENT_LEN_MAX;
use crate::error::{ErrorKind, Result, SecurityError, failed};
use crate::identity::{Authority, UnixSeconds};

/// Verifies a signed document and returns the signed text without its MIME header.
///
/// # Errors
/// The document is no S/MIME document, or it is not signed by a certificate of the authority that
/// is valid at `now`.
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
    // OpenSSL 3 leaks the content of a detached signature if it does not know the digest algorithm.
    let der = signature.to_der()?;
    if digest_algorithm(&der).is_none_or(|algorithm| !DIGESTS.contains(&algorithm)) {
        let reason = "S/MIME document whose digest algorithm is not SHA-256, SHA-384 or SHA-512";
        return Err(SecurityError::new(ErrorKind::Malformed, reason));
    }
    let mut signers = Stack::new()?;
    for certificate in authority.certificates() {
        // Checks validity and path of the authority's own certificate.
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
        .map_err(failed(ErrorKind::Signature, "signature, expected one by the permissions authority"))?;
    let text = String::from_utf8(text)
        .map_err(|error| SecurityError::new(ErrorKind::Malformed, format!("signed document: {error}")))?;
    Ok(without_mime_header(text))
}

/// Object identifiers of SHA-256, SHA-384 and SHA-512 in DER.
const DIGESTS: [&[u8]; 3] = [
    &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01],
    &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02],
    &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03],
];

/// Returns the object identifier of the digest algorithm of a SignedData in DER (RFC 2315 §9.1);
/// `None` unless it has exactly one.
fn digest_algorithm(der: &[u8]) -> Option<&[u8]> {
    let (info, _) = element(der, 0x30)?;
    let (_, after_type) = element(info, 0x06)?;
    let (explicit, _) = element(after_type, 0xa0)?;
    let (signed, _) = element(explicit, 0x30)?;
    let (_, after_version) = element(signed, 0x02)?;
    let (algorithms, _) = element(after_version, 0x31)?;
    let (algorithm, others) = element(algorithms, 0x30)?;
    others.is_empty().then_some(element(algorithm, 0x06)?.0)
}

/// Returns the content of the element with this tag at the start of `der`, and the octets after it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = der.split_first_chunk::<2>()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (len, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (len.iter().fold(0, |len, octet| len << 8 | usize::from(*octet)), rest)
        }
        _ => return None,
    };
    let (content, after) = rest.split_at_checked(len)?;
    (found == tag).then_some((content, after))
}

/// Removes the MIME header of documents that `openssl smime -sign -text` signed; other documents
/// have none.
fn without_mime_header(text: String) -> String {
    let has_header = text.get(..13).is_some_and(|start| start.eq_ignore_ascii_case("content-type:"));
    match text.split_once("\r\n\r\n").or_else(|| text.split_once("\n\n")) {
        Some((_, body)) if has_header => body.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{verify, without_mime_header};
    use crate::identity::Authority;

    /// Regression found by fuzzing: OpenSSL 3 leaked memory for an unknown digest algorithm.
    #[test]
    fn unknown_digest_algorithm_is_refused() {
        const INPUT: &[u8] =
            include_bytes!("../../../../../lab/fuzz/corpus/security_documents/unknown-digest-algorithm");
        const AUTHORITY: &[u8] = include_bytes!("../../tests/data/authority.pem");
        let authority = Authority::from_pem(AUTHORITY).expect("a certificate");
        let error = verify(&INPUT[1..], &authority, 1_800_000_000).expect_err("no digest");
        assert!(error.to_string().contains("digest algorithm is not SHA-256"), "{error}");
    }

    #[test]
    fn only_a_mime_header_is_removed() {
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
