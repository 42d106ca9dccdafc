//! Identities of participants: certificates, private keys, authorities, subject names and GUID
//! prefixes (DDS-SEC 1.1 §9.3.1, §9.3.2.1, §9.3.3).
//!
//! RSA keys of 2,048 to 4,096 bits and EC keys on P-256 are accepted. Time is an argument in
//! seconds since 1970-01-01 UTC. A certificate is parsed once. Every check may be repeated at a
//! later time, so that expiry and revocation end a running session.

mod authority;
mod certificate;
mod guid;
mod hardware;
mod key;
mod subject;
mod uri;

pub use authority::{AUTHORITY_CERTIFICATES_MAX, Authority, REVOCATION_LISTS_MAX};
pub use certificate::{CERTIFICATE_PEM_LEN_MAX, CHAIN_LEN_MAX, Certificate};
pub use guid::{check_guid_prefix, secure_guid_prefix};
pub use key::{KeyAlgorithm, PrivateKey};
pub use subject::SubjectName;

/// Seconds since 1970-01-01 00:00:00 UTC, the unit of validity in certificates and permissions.
pub type UnixSeconds = i64;

use takt_wire::Cursor;
use takt_wire::discovery::EncodedToken;

use crate::error::{ErrorKind, Result, SecurityError};
use crate::token::Token;

/// Class id of identity tokens.
pub const IDENTITY_TOKEN_CLASS: &str = "DDS:Auth:PKI-DH:1.0";

/// Certificate with its private key.
#[derive(Debug)]
pub struct Identity {
    certificate: Certificate,
    key: PrivateKey,
}

impl Identity {
    /// Combines a certificate with its key.
    ///
    /// # Errors
    /// The key belongs to another certificate.
    pub fn new(certificate: Certificate, key: PrivateKey) -> Result<Self> {
        if !key.belongs_to(&certificate)? {
            let reason = format!("the private key does not belong to the certificate of \"{}\"", certificate.subject());
            return Err(SecurityError::new(ErrorKind::Certificate, reason));
        }
        Ok(Self { certificate, key })
    }

    /// Returns the certificate.
    pub const fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Returns the private key.
    pub const fn key(&self) -> &PrivateKey {
        &self.key
    }

    /// Returns the identity token that SPDP announces (PID 0x1001).
    ///
    /// INTEROP(CycloneDDS 0.10, Fast DDS 2.9): CycloneDDS sends no properties, Fast DDS sends other
    /// algorithm names. Receivers treat the properties as hints.
    pub fn token(&self, authority: &Authority) -> Token<'static> {
        let mut token = Token::new(IDENTITY_TOKEN_CLASS)
            .with("dds.cert.sn", self.certificate.subject().to_string())
            .with("dds.cert.algo", self.certificate.algorithm().name());
        if let Some(first) = authority.certificates().first() {
            token = token.with("dds.ca.sn", first.subject().to_string()).with("dds.ca.algo", first.algorithm().name());
        }
        token
    }
}

/// Returns the subject of the identity CA that an announced token names; `None` if the token names
/// none or is unreadable. The subject is an unauthenticated hint.
pub fn announced_authority(token: &EncodedToken) -> Option<SubjectName> {
    let mut cursor = Cursor::new(&token.octets, token.endianness);
    let token = Token::parse(&mut cursor).ok()?; // tidy-allow(dropped-cause): a token without the hint is as good
    SubjectName::parse(token.property("dds.ca.sn")?).ok() // tidy-allow(dropped-cause): likewise
}

#[cfg(test)]
mod tests;
