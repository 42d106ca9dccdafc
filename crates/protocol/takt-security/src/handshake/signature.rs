//! Names of the signature algorithms of handshakes (DDS-SEC 1.1 §9.3.2.5).

use crate::identity::KeyAlgorithm;

/// All values of `c.dsign_algo`.
pub(super) const NAMES: [&str; 2] = [name(KeyAlgorithm::Rsa2048), name(KeyAlgorithm::EcP256)];

/// Returns the value of `c.dsign_algo`.
pub(super) const fn name(algorithm: KeyAlgorithm) -> &'static str {
    match algorithm {
        KeyAlgorithm::Rsa2048 => "RSASSA-PSS-SHA256",
        KeyAlgorithm::EcP256 => "ECDSA-SHA256",
    }
}
