//! Transport bound to a host of the test network.
//!
//! A transport opens sockets throughout its life: for flows, for frequent destinations, when
//! addresses change. A socket belongs to the network namespace of the thread that opens it, so each
//! call that may open one is made from the host's namespace.

use std::os::fd::RawFd;

use takt_transport::{
    FlowId, FlowSpec, Interface, Locators, RxFrame, Scan, Transport, TransportError, TransportStats, Warning,
};
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

impl<T: Transport> Transport for TransportOnHost<T> {
    fn name(&self) -> &'static str {
        self.transport.name()
    }

    fn serves(&self, locator: &Locator) -> bool {
        self.transport.serves(locator)
    }

    fn interfaces(&self) -> &[Interface] {
        self.transport.interfaces()
    }

    fn locators(&self) -> &Locators {
        self.transport.locators()
    }

    fn may_have_moved(&self) -> bool {
        self.transport.may_have_moved()
    }

    fn refresh(&mut self) -> Result<(), TransportError> {
        let _inside = self.host.enter();
        self.transport.refresh()
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        let _inside = self.host.enter();
        self.transport.open_flow(spec)
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.transport.close_flow(flow)
    }

    fn scans_memory(&self) -> bool {
        self.transport.scans_memory()
    }

    fn max_message_len(&self) -> usize {
        self.transport.max_message_len()
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        self.transport.loan()
    }

    fn commit(&mut self, len: usize, flow: FlowId, destinations: &[Locator]) -> Result<(), TransportError> {
        let _inside = self.host.enter();
        self.transport.commit(len, flow, destinations)
    }

    fn commit_gathered(
        &mut self,
        len: usize,
        rest: &[u8],
        flow: FlowId,
        destinations: &[Locator],
    ) -> Result<(), TransportError> {
        let _inside = self.host.enter();
        self.transport.commit_gathered(len, rest, flow, destinations)
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        let _inside = self.host.enter();
        self.transport.flush()
    }

    fn recv(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.transport.recv(scan)
    }

    fn recv_urgent(&mut self, above: i32) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.transport.recv_urgent(above)
    }

    fn recv_not_urgent(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.transport.recv_not_urgent(scan)
    }

    fn descriptors(&self) -> &[RawFd] {
        self.transport.descriptors()
    }

    fn stats(&self) -> TransportStats {
        self.transport.stats()
    }

    fn report_sources(&mut self) {
        self.transport.report_sources();
    }

    fn warnings(&self) -> &[Warning] {
        self.transport.warnings()
    }

    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        self.transport.source_of(flow, destination)
    }
}

impl<T: Transport> Drop for TransportOnHost<T> {
    fn drop(&mut self) {
        (self.on_drop)(&self.transport);
    }
}
