//! Configuration of the TCP transport.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::udp::InterfaceSelection;

/// Configuration of a [`TcpTransport`](super::TcpTransport). The default connects to others and
/// does not listen.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpConfig {
    /// Addresses to listen at; port 0 takes a free one. If empty, the transport only connects to
    /// others.
    pub listen: Vec<SocketAddr>,
    /// Addresses to announce instead of the listening ones: the public side of a port that a router
    /// forwards.
    pub announce: Vec<SocketAddr>,
    /// Interfaces whose addresses are announced when listening at the unspecified address.
    pub interfaces: InterfaceSelection,
    /// Maximum number of connections, including those being opened; at least 2.
    pub connections_max: usize,
    /// Maximum number of connections with one address, so that one host cannot take all.
    pub connections_per_address_max: usize,
    /// Maximum number of accepted connections without a message; a new one replaces the oldest.
    pub unidentified_max: usize,
    /// Maximum number of queued bytes of one connection; messages that do not fit are lost and
    /// counted. At least 128 KiB.
    pub send_queue_bytes: usize,
    /// Time limit for the first message of an accepted connection, and for the opening of an own
    /// one.
    pub open_timeout: Duration,
    /// Time after which a connection counts as dead, if sent bytes are not acknowledged or
    /// keepalive probes are not answered.
    pub peer_timeout: Duration,
    /// Encryption and authentication; `None` is plain TCP.
    pub tls: Option<TlsConfig>,
    /// Host names of addresses that are connected to, which the certificate of the host must
    /// contain. Other certificates must contain the address.
    pub names: BTreeMap<SocketAddr, String>,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            announce: Vec::new(),
            interfaces: InterfaceSelection::All,
            connections_max: 64,
            connections_per_address_max: 32,
            unidentified_max: 16,
            send_queue_bytes: 1 << 20,
            open_timeout: Duration::from_secs(5),
            peer_timeout: Duration::from_secs(10),
            tls: None,
            names: BTreeMap::new(),
        }
    }
}

/// Certificate and key files, in PEM. Both ends show a certificate, and each verifies that of the
/// peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// Certificates of the trusted authorities.
    pub ca: PathBuf,
    /// Own certificate, followed by the chain to its authority.
    pub certificate: PathBuf,
    /// Private key of the own certificate.
    pub key: PathBuf,
}

/// Minimum size of a send queue: two messages of the maximum length.
pub(super) const SEND_QUEUE_MIN: usize = 128 << 10;

/// Returns the addresses to announce for a socket bound to `bound`.
pub(super) fn announced(bound: SocketAddr, own: impl Iterator<Item = IpAddr>) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    let same_family = own.filter(|ip| ip.is_ipv4() == bound.is_ipv4());
    same_family.map(|ip| SocketAddr::new(ip, bound.port())).collect()
}
