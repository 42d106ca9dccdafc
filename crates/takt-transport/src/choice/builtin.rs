//! The transports of this crate.

use std::sync::Arc;

use super::factory::{Opened, Request, TransportFactory};
use crate::TransportError;
use crate::shm::ShmTransport;
use crate::tcp::{TcpConfig, TcpTransport};
use crate::udp::UdpTransport;

/// All of them.
pub(super) fn all() -> Vec<Arc<dyn TransportFactory>> {
    vec![Arc::new(Udp), Arc::new(Tcp), Arc::new(Shm)]
}

struct Udp;

impl TransportFactory for Udp {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn summary(&self) -> &'static str {
        "UDP by the kernel's sockets, as every other DDS"
    }

    fn needs(&self) -> &'static str {
        "nothing"
    }

    fn form(&self) -> &'static str {
        "udp or udp:IFACE"
    }

    fn open(&self, request: &Request<'_>) -> Result<Opened, TransportError> {
        request.options(&[])?;
        UdpTransport::open(&request.udp_there()).map(Opened::plain)
    }
}

struct Tcp;

impl TransportFactory for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn summary(&self) -> &'static str {
        "TCP to peers that are named, with or without TLS"
    }

    fn needs(&self) -> &'static str {
        "a peer of the form tcp/HOST:PORT, or where to listen"
    }

    fn form(&self) -> &'static str {
        "tcp or tcp:IFACE"
    }

    fn open(&self, request: &Request<'_>) -> Result<Opened, TransportError> {
        request.options(&[])?;
        let config = TcpConfig { interfaces: request.udp_there().interfaces, ..request.tcp.clone() };
        TcpTransport::open(&config).map(Opened::plain)
    }
}

struct Shm;

impl TransportFactory for Shm {
    fn name(&self) -> &'static str {
        "shm"
    }

    fn summary(&self) -> &'static str {
        "shared memory between processes of one user on one host"
    }

    fn needs(&self) -> &'static str {
        "Linux 5.14, Unix sockets and memfd_create"
    }

    fn form(&self) -> &'static str {
        "shm, together with another one"
    }

    fn open(&self, request: &Request<'_>) -> Result<Opened, TransportError> {
        request.options(&[])?;
        if let Some(target) = &request.spec.target {
            return Err(request.refused(&format!("shared memory has no interface, and so no {target}")));
        }
        ShmTransport::open(request.shm).map(Opened::plain)
    }
}
