//! Certificate renewal within a session (Takt-specific): one message over the volatile endpoints,
//! from the participant that has renewed its certificate.
//!
//! The sender signs the certificate and the permissions with the new key, together with the GUIDs
//! of both participants and the key of the volatile endpoints. Only these two participants know
//! that key. The message is therefore valid in no other session.

use openssl::sha::sha256;
use takt_wire::Guid;

use super::Credentials;
use super::wire::{self, Hash, PERMISSIONS_LEN_MAX};
use crate::error::{ErrorKind, Result, SecurityError};
use crate::identity::{CERTIFICATE_PEM_LEN_MAX, Certificate, UnixSeconds, check_guid_prefix};
use crate::keys::KeyMaterial;
use crate::token::Token;

const RENEWAL: &str = "Takt:Auth:PKI-DH:1.0+Renewal";

/// Renewed credentials of a remote participant.
pub(crate) struct Renewed {
    /// Certificate, checked.
    pub(crate) certificate: Certificate,
    /// Signed permissions document, not checked yet.
    pub(crate) permissions: Vec<u8>,
}

/// Creates the renewal token of `local` for `remote`. `volatile` is the key material of the
/// volatile endpoints between them.
pub(crate) fn renewal_token(local: &Credentials, remote: Guid, volatile: &KeyMaterial) -> Result<Token<'static>> {
    let (certificate, permissions) = (local.identity.certificate().pem(), &local.permissions[..]);
    let signed = signed_octets(local.guid, remote, volatile, certificate, permissions);
    let signature = local.identity.key().sign(&signed)?;
    let token = Token::new(RENEWAL).with_octets("c.id", certificate.to_vec());
    Ok(token.with_octets("c.perm", permissions.to_vec()).with_octets("signature", signature))
}

/// Checks the renewal token that `local` received from `remote`.
///
/// # Errors
/// The token is malformed, the certificate is not valid at `now` or not of this participant, or the
/// signature is not by its key.
pub(crate) fn check_renewal(
    local: &Credentials,
    remote: Guid,
    volatile: &KeyMaterial,
    token: &Token<'_>,
    now: UnixSeconds,
) -> Result<Renewed> {
    if token.class_id != RENEWAL {
        return Err(SecurityError::new(ErrorKind::Malformed, format!("token of class \"{}\"", token.class_id)));
    }
    let pem = wire::required(token, "c.id", CERTIFICATE_PEM_LEN_MAX)?;
    let permissions = wire::required(token, "c.perm", PERMISSIONS_LEN_MAX)?;
    let signature = wire::signature_of(token)?;
    let certificate = Certificate::from_pem(pem)?;
    local.authority.check(&certificate, now)?;
    check_guid_prefix(&certificate, remote.prefix)?;
    certificate.verify(&signed_octets(remote, local.guid, volatile, pem, permissions), signature)?;
    Ok(Renewed { certificate, permissions: permissions.to_vec() })
}

fn signed_octets(
    sender: Guid,
    receiver: Guid,
    volatile: &KeyMaterial,
    certificate: &[u8],
    permissions: &[u8],
) -> Vec<u8> {
    let session: Hash = sha256(&volatile.to_octets());
    wire::big_endian(&[
        ("renewal", &session),
        ("sender", &sender.to_bytes()),
        ("receiver", &receiver.to_bytes()),
        ("c.id", certificate),
        ("c.perm", permissions),
    ])
}
