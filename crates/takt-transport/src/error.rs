//! What can go wrong with the machine: [`TransportError`] for what stops an
//! operation, [`Warning`] for what merely makes it worse than asked.

use std::fmt;
use std::io;

use takt_wire::ports::PortMapping;

/// An operation of the operating system failed, with its cause kept.
///
/// Only what the caller must know about ends here. A datagram that could not
/// be sent is *counted* (see [`SendErrors`](crate::SendErrors)), never an error:
/// the network loses datagrams anyway.
#[derive(Debug)]
pub struct TransportError {
    /// What was tried, in words: `"bind"`, `"join multicast group"`.
    pub op: &'static str,
    /// On what: an address, an interface, a file.
    pub target: String,
    /// The reason the operating system gave.
    pub source: io::Error,
}

impl TransportError {
    /// An error of operation `op` on `target`, caused by `source`.
    pub fn new(op: &'static str, target: impl fmt::Display, source: io::Error) -> Self {
        Self { op, target: target.to_string(), source }
    }

    /// A domain whose ports do not exist.
    pub(crate) fn no_ports(domain_id: u32, ports: &PortMapping) -> Self {
        let why = match ports.domain_max() {
            Some(max) => format!("domain ids are 0 to {max}"),
            None => "no domain has ports with this port mapping".to_owned(),
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

/// Something that works, but worse than asked, and what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What is worse than asked, with numbers.
    pub what: String,
    /// What to change; a command where there is one.
    pub remedy: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}
