//! [`Layer`]: transport wrappers that forward by default.

use std::os::fd::RawFd;

use takt_wire::Locator;

use crate::shm::Loan;
use crate::{
    Commit, FlowId, FlowSpec, Interface, Locators, Lost, RxFrame, Scan, Transport, TransportError, TransportStats,
    Warning,
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

    /// See [`Transport::name`].
    fn name(&self) -> &'static str {
        self.inner().name()
    }

    /// See [`Transport::serves`].
    fn serves(&self, locator: &Locator) -> bool {
        self.inner().serves(locator)
    }

    /// See [`Transport::reach`].
    fn reach(&mut self, locator: &Locator) -> bool {
        self.inner_mut().reach(locator)
    }

    /// See [`Transport::poll_lost`].
    fn poll_lost(&mut self) -> Option<Lost> {
        self.inner_mut().poll_lost()
    }

    /// See [`Transport::interfaces`].
    fn interfaces(&self) -> &[Interface] {
        self.inner().interfaces()
    }

    /// See [`Transport::locators`].
    fn locators(&self) -> &Locators {
        self.inner().locators()
    }

    /// See [`Transport::may_have_moved`].
    fn may_have_moved(&self) -> bool {
        self.inner().may_have_moved()
    }

    /// See [`Transport::refresh`].
    fn refresh(&mut self) -> Result<(), TransportError> {
        self.inner_mut().refresh()
    }

    /// See [`Transport::open_flow`].
    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        self.inner_mut().open_flow(spec)
    }

    /// See [`Transport::close_flow`].
    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.inner_mut().close_flow(flow)
    }

    /// See [`Transport::scans_memory`].
    fn scans_memory(&self) -> bool {
        self.inner().scans_memory()
    }

    /// See [`Transport::max_message_len`].
    fn max_message_len(&self) -> usize {
        self.inner().max_message_len()
    }

    /// See [`Transport::loan`].
    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        self.inner_mut().loan()
    }

    /// See [`Transport::commit`].
    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError> {
        self.inner_mut().commit(datagram)
    }

    /// See [`Transport::stays_in_process`].
    fn stays_in_process(&self, locator: &Locator) -> bool {
        self.inner().stays_in_process(locator)
    }

    /// See [`Transport::loan_payload`].
    fn loan_payload(&mut self, len: usize) -> Option<Loan> {
        self.inner_mut().loan_payload(len)
    }

    /// See [`Transport::flush`].
    fn flush(&mut self) -> Result<(), TransportError> {
        self.inner_mut().flush()
    }

    /// See [`Transport::recv`].
    fn recv(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.inner_mut().recv(scan)
    }

    /// See [`Transport::recv_urgent`].
    fn recv_urgent(&mut self, above: i32) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.inner_mut().recv_urgent(above)
    }

    /// See [`Transport::recv_not_urgent`].
    fn recv_not_urgent(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.inner_mut().recv_not_urgent(scan)
    }

    /// See [`Transport::descriptors`].
    fn descriptors(&self) -> &[RawFd] {
        self.inner().descriptors()
    }

    /// See [`Transport::stats`].
    fn stats(&self) -> TransportStats {
        self.inner().stats()
    }

    /// See [`Transport::report_sources`].
    fn report_sources(&mut self) {
        self.inner_mut().report_sources()
    }

    /// See [`Transport::warnings`].
    fn warnings(&self) -> &[Warning] {
        self.inner().warnings()
    }

    /// See [`Transport::source_of`].
    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        self.inner().source_of(flow, destination)
    }
}

impl<L: Layer> Transport for L {
    fn name(&self) -> &'static str {
        Layer::name(self)
    }

    fn serves(&self, locator: &Locator) -> bool {
        Layer::serves(self, locator)
    }

    fn reach(&mut self, locator: &Locator) -> bool {
        Layer::reach(self, locator)
    }

    fn poll_lost(&mut self) -> Option<Lost> {
        Layer::poll_lost(self)
    }

    fn interfaces(&self) -> &[Interface] {
        Layer::interfaces(self)
    }

    fn locators(&self) -> &Locators {
        Layer::locators(self)
    }

    fn may_have_moved(&self) -> bool {
        Layer::may_have_moved(self)
    }

    fn refresh(&mut self) -> Result<(), TransportError> {
        Layer::refresh(self)
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        Layer::open_flow(self, spec)
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        Layer::close_flow(self, flow)
    }

    fn scans_memory(&self) -> bool {
        Layer::scans_memory(self)
    }

    fn max_message_len(&self) -> usize {
        Layer::max_message_len(self)
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        Layer::loan(self)
    }

    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError> {
        Layer::commit(self, datagram)
    }

    fn stays_in_process(&self, locator: &Locator) -> bool {
        Layer::stays_in_process(self, locator)
    }

    fn loan_payload(&mut self, len: usize) -> Option<Loan> {
        Layer::loan_payload(self, len)
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        Layer::flush(self)
    }

    fn recv(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        Layer::recv(self, scan)
    }

    fn recv_urgent(&mut self, above: i32) -> Result<Option<RxFrame<'_>>, TransportError> {
        Layer::recv_urgent(self, above)
    }

    fn recv_not_urgent(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        Layer::recv_not_urgent(self, scan)
    }

    fn descriptors(&self) -> &[RawFd] {
        Layer::descriptors(self)
    }

    fn stats(&self) -> TransportStats {
        Layer::stats(self)
    }

    fn report_sources(&mut self) {
        Layer::report_sources(self)
    }

    fn warnings(&self) -> &[Warning] {
        Layer::warnings(self)
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
