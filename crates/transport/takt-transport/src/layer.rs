//! [`Layer`]: transport wrappers that forward by default.

use takt_wire::Locator;

use crate::shm::Loan;
use crate::{
    Capabilities, Commit, Control, FlowId, FlowSpec, Reach, Receive, RxFrame, Status, Transport, TransportError,
    TransportEvent,
};

/// Transport that wraps another one. Every method forwards to the wrapped transport unless the
/// wrapper overrides it, and every layer is a [`Transport`].
///
/// A wrapper that changes sent datagrams overrides [`commit`](Self::commit) and
/// [`loan_payload`](Self::loan_payload), since loaned payloads bypass the frame.
pub trait Layer: Send {
    /// Type of the wrapped transport.
    type Inner: Transport + ?Sized;

    /// Returns the wrapped transport.
    fn inner(&self) -> &Self::Inner;

    /// Returns the wrapped transport.
    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// See [`Transport::capabilities`].
    fn capabilities(&self) -> Capabilities {
        self.inner().capabilities()
    }

    /// See [`Transport::status`].
    fn status(&self) -> Status<'_> {
        self.inner().status()
    }

    /// See [`Transport::reach`].
    fn reach(&self, to: &Locator) -> Reach {
        self.inner().reach(to)
    }

    /// See [`Transport::loan`].
    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        self.inner_mut().loan()
    }

    /// See [`Transport::commit`].
    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError> {
        self.inner_mut().commit(datagram)
    }

    /// See [`Transport::flush`].
    fn flush(&mut self) -> Result<(), TransportError> {
        self.inner_mut().flush()
    }

    /// See [`Transport::recv`].
    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.inner_mut().recv(request)
    }

    /// See [`Transport::loan_payload`].
    fn loan_payload(&mut self, len: usize) -> Option<Loan> {
        self.inner_mut().loan_payload(len)
    }

    /// See [`Transport::open_flow`].
    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        self.inner_mut().open_flow(spec)
    }

    /// See [`Transport::close_flow`].
    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.inner_mut().close_flow(flow)
    }

    /// See [`Transport::poll_event`].
    fn poll_event(&mut self) -> Option<TransportEvent> {
        self.inner_mut().poll_event()
    }

    /// See [`Transport::control`].
    fn control(&mut self, request: Control<'_>) -> Result<(), TransportError> {
        self.inner_mut().control(request)
    }

    /// See [`Transport::source_of`].
    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        self.inner().source_of(flow, destination)
    }
}

impl<L: Layer> Transport for L {
    fn capabilities(&self) -> Capabilities {
        Layer::capabilities(self)
    }

    fn status(&self) -> Status<'_> {
        Layer::status(self)
    }

    fn reach(&self, to: &Locator) -> Reach {
        Layer::reach(self, to)
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        Layer::loan(self)
    }

    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError> {
        Layer::commit(self, datagram)
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        Layer::flush(self)
    }

    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>, TransportError> {
        Layer::recv(self, request)
    }

    fn loan_payload(&mut self, len: usize) -> Option<Loan> {
        Layer::loan_payload(self, len)
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        Layer::open_flow(self, spec)
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        Layer::close_flow(self, flow)
    }

    fn poll_event(&mut self) -> Option<TransportEvent> {
        Layer::poll_event(self)
    }

    fn control(&mut self, request: Control<'_>) -> Result<(), TransportError> {
        Layer::control(self, request)
    }

    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        Layer::source_of(self, flow, destination)
    }
}

impl<T: Transport + ?Sized> Layer for Box<T> {
    type Inner = T;

    fn inner(&self) -> &T {
        self
    }

    fn inner_mut(&mut self) -> &mut T {
        self
    }
}
