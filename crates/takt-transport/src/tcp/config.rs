//! What a TCP transport is asked to be.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::udp::InterfaceSelection;

/// Configuration of a [`TcpTransport`](super::TcpTransport). The default one connects to others and listens nowhere.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpConfig {
    /// Where to accept connections; port 0 takes a free one. Empty: nowhere, others are connected to.
    pub listen: Vec<SocketAddr>,
    /// Addresses to announce instead of those listened at: the outside of a port that a router forwards.
    pub announce: Vec<SocketAddr>,
    /// Whose addresses are announced when listening at all of them.
    pub interfaces: InterfaceSelection,
    /// Connections at a time, those that are still being opened included; at least 2.
    pub connections_max: usize,
    /// Connections with one address at a time, so that one host cannot take all.
    pub connections_per_address_max: usize,
    /// Accepted connections by which nothing came yet; the oldest gives way to a new one.
    pub unproven_max: usize,
    /// Bytes that wait for one connection, at most; what does not fit is lost and counted. At least 128 KiB.
    pub send_queue_bytes: usize,
    /// How long an accepted connection has until its first message is there, and one's own until it is open.
    pub patience: Duration,
    /// How long sent bytes may stay unacknowledged, or a connection without any answer, until it counts as dead.
    pub silence_max: Duration,
    /// Encryption and authentication. None: plain TCP.
    pub tls: Option<TlsConfig>,
    /// The names of hosts that are connected to, which their certificates must show; others' show their address.
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
            unproven_max: 16,
            send_queue_bytes: 1 << 20,
            patience: Duration::from_secs(5),
            silence_max: Duration::from_secs(10),
            tls: None,
            names: BTreeMap::new(),
        }
    }
}

/// Files of certificates and keys, in PEM. Both ends show a certificate, and each checks the other's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// The certificates of those who are trusted to sign others.
    pub ca: PathBuf,
    /// The own certificate, followed by those that lead to the signer.
    pub certificate: PathBuf,
    /// The key of the own certificate.
    pub key: PathBuf,
}

/// Least room for outgoing bytes: two of the largest messages.
pub(super) const SEND_QUEUE_MIN: usize = 128 << 10;

/// Addresses to announce for a socket bound to `bound`.
pub(super) fn announced(bound: SocketAddr, own: impl Iterator<Item = IpAddr>) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    let same_family = own.filter(|ip| ip.is_ipv4() == bound.is_ipv4());
    same_family.map(|ip| SocketAddr::new(ip, bound.port())).collect()
}
