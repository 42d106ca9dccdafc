//! Transport factories and their process-wide registry.

use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use crate::shm::ShmConfig;
use crate::tcp::TcpConfig;
use crate::udp::{InterfaceSelection, UdpConfig};
use crate::{Transport, TransportError};

use super::builtin;
use super::probe::Finding;
use super::spec::{TransportOption, TransportSpec};

/// Arguments with which a transport is opened.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Requested transport.
    pub spec: &'a TransportSpec,
    /// Domain, and UDP settings of the participant.
    pub udp: &'a UdpConfig,
    /// TCP settings of the participant.
    pub tcp: &'a TcpConfig,
    /// Shared memory settings of the participant.
    pub shm: &'a ShmConfig,
}

impl Request<'_> {
    /// Returns the requested interface or device.
    ///
    /// # Errors
    /// The specification names none.
    pub fn target(&self) -> Result<&str, TransportError> {
        self.spec
            .target
            .as_deref()
            .ok_or_else(|| self.error(&format!("an interface is missing: {}:eth0", self.spec.name)))
    }

    /// Returns the options, all of which must be in `known`.
    ///
    /// # Errors
    /// Names the first unknown option.
    pub fn options(&self, known: &[&str]) -> Result<&[TransportOption], TransportError> {
        let unknown = self.spec.options.iter().map(|option| &option.key).find(|key| !known.contains(&key.as_str()));
        match unknown {
            None => Ok(&self.spec.options),
            Some(key) if known.is_empty() => Err(self.error(&format!("unknown option {key}; it takes none"))),
            Some(key) => Err(self.error(&format!("unknown option {key}; expected one of {}", known.join(", ")))),
        }
    }

    /// Returns the UDP settings, restricted to the requested interface if there is one.
    pub fn udp_config(&self) -> UdpConfig {
        match &self.spec.target {
            None => self.udp.clone(),
            Some(name) => UdpConfig { interfaces: InterfaceSelection::Named(vec![name.clone()]), ..self.udp.clone() },
        }
    }

    /// Makes an error about the requested transport.
    pub fn error(&self, why: &str) -> TransportError {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, why);
        TransportError::new("open", self.spec, source)
    }
}

/// Result of opening a transport.
pub struct Opened {
    /// Opened transport.
    pub transport: Box<dyn Transport>,
    /// Human-readable description, such as mode and queue; may be empty.
    pub detail: String,
}

impl Opened {
    /// Wraps a transport without a description.
    pub fn plain(transport: impl Transport + 'static) -> Self {
        Self { transport: Box::new(transport), detail: String::new() }
    }
}

/// Description of the transports of one name.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// Name, one of [`KNOWN_NAMES`](super::KNOWN_NAMES).
    pub name: &'static str,
    /// Short description of the transport.
    pub summary: &'static str,
    /// Requirements of the transport: permissions, kernel, device.
    pub needs: &'static str,
    /// Form in a configuration, such as `xdp:IFACE`.
    pub form: &'static str,
}

/// Factory of the transports of one name.
pub trait TransportFactory: Send + Sync {
    /// Returns the description, which includes the name.
    fn description(&self) -> Description;

    /// Returns the name.
    fn name(&self) -> &'static str {
        self.description().name
    }

    /// Returns the form for an interface, such as `xdp:eth0`.
    fn at(&self, interface: &str) -> String {
        format!("{}:{interface}", self.name())
    }

    /// Checks what this interface, kernel and process provide for the transport, and what is
    /// missing. Changes nothing. Empty for transports that do not depend on an interface.
    fn probe(&self, interface: &str) -> Vec<Finding> {
        let _ = interface;
        Vec::new()
    }

    /// Opens a transport.
    ///
    /// # Errors
    /// States why the transport cannot be opened, with the cause.
    fn open(&self, request: &Request<'_>) -> Result<Opened, TransportError>;
}

type Registry = RwLock<Vec<Arc<dyn TransportFactory>>>;

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| RwLock::new(builtin::all()));

/// Registers a transport for all participants that are built in this process from now on. If a
/// factory of the same name is registered already, it stays; repeated calls are harmless.
pub fn register(factory: impl TransportFactory + 'static) {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    if !registry.iter().any(|it| it.name() == factory.name()) {
        registry.push(Arc::new(factory));
    }
}

/// Returns the registered factories, those of this crate first.
pub fn factories() -> Vec<Arc<dyn TransportFactory>> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner).clone()
}
