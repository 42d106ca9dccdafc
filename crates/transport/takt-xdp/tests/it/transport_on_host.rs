//! Transport bound to a host of the test network.
//!
//! A transport opens sockets throughout its life: for flows, for frequent destinations, when
//! addresses change. A socket belongs to the network namespace of the thread that opens it, so each
//! call that may open one is made from the host's namespace.

use takt_transport::{Commit, Control, FlowId, FlowSpec, Layer, Transport, TransportError};
use takt_wire::Locator;

use super::network::Host;

/// Transport with its host.
pub struct TransportOnHost<T: Transport> {
    transport: T,
    host: Host,
    on_drop: Box<dyn FnMut(&T) + Send>,
}

impl<T: Transport> TransportOnHost<T> {
    /// Wraps a transport that was opened on this host.
    pub fn new(transport: T, host: Host) -> Self {
        Self::with_on_drop(transport, host, |_| {})
    }

    /// Wraps a transport; `on_drop` is called with it before it is dropped.
    pub fn with_on_drop(transport: T, host: Host, on_drop: impl FnMut(&T) + Send + 'static) -> Self {
        Self { transport, host, on_drop: Box::new(on_drop) }
    }
}

impl<T: Transport> std::ops::Deref for TransportOnHost<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.transport
    }
}

impl<T: Transport> Layer for TransportOnHost<T> {
    type Inner = T;

    fn inner(&self) -> &T {
        &self.transport
    }

    fn inner_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        let _inside = self.host.enter();
        self.transport.open_flow(spec)
    }

    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError> {
        let _inside = self.host.enter();
        self.transport.commit(datagram)
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        let _inside = self.host.enter();
        self.transport.flush()
    }

    fn control(&mut self, request: Control<'_>) -> Result<(), TransportError> {
        let _inside = self.host.enter();
        self.transport.control(request)
    }
}

impl<T: Transport> Drop for TransportOnHost<T> {
    fn drop(&mut self) {
        (self.on_drop)(&self.transport);
    }
}
