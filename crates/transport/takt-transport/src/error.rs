//! Errors and warnings of transports: [`TransportError`] stops an operation, [`Warning`] reports
//! that it works worse than requested.

use std::fmt;
use std::io;

use takt_wire::ports::PortMapping;

/// Failed operation of the operating system, with its cause.
///
/// Only failures that the caller must handle are errors. A datagram that could not be sent is
/// *counted* (see [`SendErrors`](crate::SendErrors)), never an error: the network loses datagrams
/// anyway.
#[derive(Debug)]
pub struct TransportError {
    /// Attempted operation, in words: `"bind"`, `"join multicast group"`.
    pub op: &'static str,
    /// Object of the operation: an address, an interface, a file.
    pub target: String,
    /// Cause that the operating system reported.
    pub source: io::Error,
}

impl TransportError {
    /// Makes an error of operation `op` on `target`, caused by `source`.
    pub fn new(op: &'static str, target: impl fmt::Display, source: io::Error) -> Self {
        Self { op, target: target.to_string(), source }
    }

    /// Makes the error for a domain outside the port mapping.
    pub(crate) fn no_ports(domain_id: u32, ports: &PortMapping) -> Self {
        let why = match ports.domain_max() {
            Some(max) => format!("expected a domain id from 0 to {max}"),
            None => "no domain has valid ports with this port mapping".to_owned(),
        };
        Self::new("join domain", domain_id, io::Error::new(io::ErrorKind::InvalidInput, why))
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.op, self.target, self.source)
    }
}

impl std::error::Error for TransportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Deviation from what was requested, with a remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Description of the deviation, with numbers.
    pub what: String,
    /// Change that removes it; a command where there is one.
    pub remedy: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}
