//! Generation of a participant's GUID prefix, unique without coordination, and of its secret.
//!
//! | octets | content |
//! |---|---|
//! | 0, 1 | vendor id (required by RTPS 2.5 §9.3.1) |
//! | 2 to 5 | host: hash of the machine id; random if there is none |
//! | 6, 7 | lower half of the process id |
//! | 8 to 11 | random |
//!
//! Containers may share machine id and process id; the random octets distinguish them.

use std::io;

use takt_transport::TransportError;
use takt_wire::{GuidPrefix, VendorId};

use crate::Result;

/// Generates a new prefix.
pub(super) fn generate() -> Result<GuidPrefix> {
    let mut prefix = [0; 12];
    prefix[..2].copy_from_slice(&VendorId::TAKT.0);
    prefix[2..6].copy_from_slice(&host_id()?);
    prefix[6..8].copy_from_slice(&(std::process::id() as u16).to_be_bytes());
    prefix[8..].copy_from_slice(&random::<4>()?);
    Ok(GuidPrefix(prefix))
}

fn host_id() -> Result<[u8; 4]> {
    match std::fs::read("/etc/machine-id") {
        Ok(id) if !id.is_empty() => Ok(fnv1a(&id).to_be_bytes()),
        _ => random(),
    }
}

/// Computes FNV-1a, which distributes similar ids well. Cryptographic strength is not needed here.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Generates a secret of 128 random bits.
pub(super) fn secret() -> Result<[u64; 2]> {
    Ok([u64::from_ne_bytes(random()?), u64::from_ne_bytes(random()?)])
}

fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0_u8; N];
    // SAFETY: the pointer and length describe a live array of ours.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if usize::try_from(count) == Ok(bytes.len()) {
        return Ok(bytes);
    }
    Err(TransportError::new("getrandom", "GUID prefix and secret", io::Error::last_os_error()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn prefixes_are_unique_and_begin_with_the_vendor_id() {
        let prefixes: BTreeSet<_> = (0..100).map(|_| generate().expect("randomness")).collect();
        assert!(prefixes.len() > 98, "32 random bits rarely collide");
        assert!(prefixes.iter().all(|prefix| prefix.0[..2] == VendorId::TAKT.0));
    }
}
