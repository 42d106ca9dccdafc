//! GUID prefixes derived from the subject of a certificate (DDS-SEC 1.1 §9.3.3, table 52).

use openssl::sha::sha256;
use takt_wire::GuidPrefix;

use super::Certificate;
use crate::error::{ErrorKind, Result, SecurityError, failed};

/// Returns the first six octets: a set bit, then the first 47 bits of SHA-256 of the subject name
/// in DER.
fn subject_octets(certificate: &Certificate) -> Result<[u8; 6]> {
    let der = certificate.leaf().subject_name().to_der().map_err(failed(ErrorKind::Certificate, "subject name"))?;
    let hash = sha256(&der);
    let mut octets = [0; 6];
    let mut carry = 1;
    for (octet, from) in octets.iter_mut().zip(hash) {
        *octet = (carry << 7) | (from >> 1);
        carry = from & 1;
    }
    Ok(octets)
}

/// Returns the GUID prefix of a participant with this certificate. `candidate` is the prefix that
/// the participant would have without security.
///
/// # Errors
/// The subject name has no DER form.
pub fn secure_guid_prefix(certificate: &Certificate, candidate: GuidPrefix) -> Result<GuidPrefix> {
    let mut prefix = [0; 12];
    prefix[..6].copy_from_slice(&subject_octets(certificate)?);
    prefix[6..].copy_from_slice(&sha256(&candidate.0)[..6]);
    Ok(GuidPrefix(prefix))
}

/// Checks that a prefix belongs to the subject of the certificate.
///
/// # Errors
/// The first 48 bits differ.
pub fn check_guid_prefix(certificate: &Certificate, prefix: GuidPrefix) -> Result<()> {
    let expected = subject_octets(certificate)?;
    if prefix.0[..6] != expected {
        let reason = format!(
            "GUID prefix {prefix} does not belong to the certificate of \"{}\"; its first octets would be {expected:02x?}",
            certificate.subject()
        );
        return Err(SecurityError::new(ErrorKind::Certificate, reason));
    }
    Ok(())
}
