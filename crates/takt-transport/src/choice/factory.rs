//! Who opens transports, and where those who do are found.

use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use crate::shm::ShmConfig;
use crate::tcp::TcpConfig;
use crate::udp::{InterfaceSelection, UdpConfig};
use crate::{Transport, TransportError};

use super::builtin;
use super::probe::Finding;
use super::spec::TransportSpec;

/// What a transport is opened with.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What was asked for.
    pub spec: &'a TransportSpec,
    /// The domain, and how this participant uses UDP.
    pub udp: &'a UdpConfig,
    /// How it uses TCP.
    pub tcp: &'a TcpConfig,
    /// How it uses shared memory.
    pub shm: &'a ShmConfig,
}

impl Request<'_> {
    /// The interface or device that was named.
    ///
    /// # Errors
    /// None was.
    pub fn target(&self) -> Result<&str, TransportError> {
        self.spec
            .target
            .as_deref()
            .ok_or_else(|| self.refused(&format!("an interface is missing: {}:eth0", self.spec.name)))
    }

    /// The options; each of them one of `known`.
    ///
    /// # Errors
    /// The first that is not.
    pub fn options(&self, known: &[&str]) -> Result<&[(String, String)], TransportError> {
        match self.spec.options.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            None => Ok(&self.spec.options),
            Some((key, _)) if known.is_empty() => Err(self.refused(&format!("it has no options, and so no {key}"))),
            Some((key, _)) => Err(self.refused(&format!("it has no option {key}, but {}", known.join(", ")))),
        }
    }

    /// How UDP is used, at the named interface alone if there is one.
    pub fn udp_there(&self) -> UdpConfig {
        match &self.spec.target {
            None => self.udp.clone(),
            Some(name) => UdpConfig { interfaces: InterfaceSelection::Named(vec![name.clone()]), ..self.udp.clone() },
        }
    }

    /// An error about what was asked for.
    pub fn refused(&self, why: &str) -> TransportError {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, why);
        TransportError::new("open", self.spec, source)
    }
}

/// A transport that was opened.
pub struct Opened {
    /// The transport.
    pub transport: Box<dyn Transport>,
    /// How: the mode, the queue, whatever a person wants to know; may be empty.
    pub detail: String,
}

impl Opened {
    /// Without anything to say about it.
    pub fn plain(transport: impl Transport + 'static) -> Self {
        Self { transport: Box::new(transport), detail: String::new() }
    }
}

/// Opens the transports of one name.
pub trait TransportFactory: Send + Sync {
    /// The name, one of [`KNOWN_NAMES`](super::KNOWN_NAMES).
    fn name(&self) -> &'static str;

    /// What it is, in a few words.
    fn summary(&self) -> &'static str;

    /// What it takes of the machine: permissions, kernel, device.
    fn needs(&self) -> &'static str;

    /// How it is written in a configuration: `xdp:IFACE`.
    fn form(&self) -> &'static str;

    /// How it is written for an interface: `xdp:eth0`.
    fn at(&self, interface: &str) -> String {
        format!("{}:{interface}", self.name())
    }

    /// What this interface, kernel and process have for it, and what is missing. Changes nothing. Empty for one that has
    /// nothing to do with interfaces.
    fn probe(&self, interface: &str) -> Vec<Finding> {
        let _ = interface;
        Vec::new()
    }

    /// Opens one.
    ///
    /// # Errors
    /// Why it cannot be, with the cause.
    fn open(&self, request: &Request<'_>) -> Result<Opened, TransportError>;
}

type Registry = RwLock<Vec<Arc<dyn TransportFactory>>>;

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| RwLock::new(builtin::all()));

/// Makes a transport known to all participants of this process that are built from now on. One of the same name that is there
/// already stays, so that it may be called by everybody who needs it.
pub fn register(factory: impl TransportFactory + 'static) {
    let mut known = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    if !known.iter().any(|it| it.name() == factory.name()) {
        known.push(Arc::new(factory));
    }
}

/// Those that are known, the ones of this crate first.
pub fn factories() -> Vec<Arc<dyn TransportFactory>> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner).clone()
}
