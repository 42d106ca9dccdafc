//! A transport that opens its sockets on a host of the test's network, wherever it is used.

use std::os::fd::RawFd;
use std::sync::mpsc::Sender;

use takt_transport::{FlowId, FlowSpec, Interface, Locators, RxFrame, Scan, Transport, TransportError, TransportStats};
use takt_wire::Locator;
use takt_xdp::{XdpCounters, XdpReport, XdpTransport};

use super::network::Host;

/// A transport, and the host that it lives on: sockets are opened there.
pub struct Resident {
    xdp: XdpTransport,
    host: Host,
    /// Who wants the counters at the end.
    tell: Option<Sender<XdpCounters>>,
}

impl Resident {
    pub fn new(xdp: XdpTransport, host: Host, tell: Option<Sender<XdpCounters>>) -> Self {
        Self { xdp, host, tell }
    }

    pub fn report(&self) -> &XdpReport {
        self.xdp.report()
    }
}

impl Transport for Resident {
    fn name(&self) -> &'static str {
        self.xdp.name()
    }

    fn serves(&self, locator: &Locator) -> bool {
        self.xdp.serves(locator)
    }

    fn interfaces(&self) -> &[Interface] {
        self.xdp.interfaces()
    }

    fn locators(&self) -> &Locators {
        self.xdp.locators()
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        self.host.run(|| self.xdp.open_flow(spec))
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.xdp.close_flow(flow)
    }

    fn max_message_len(&self) -> usize {
        self.xdp.max_message_len()
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        self.xdp.loan()
    }

    fn commit(&mut self, len: usize, flow: FlowId, destinations: &[Locator]) -> Result<(), TransportError> {
        self.xdp.commit(len, flow, destinations)
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        self.xdp.flush()
    }

    fn recv(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.xdp.recv(scan)
    }

    fn recv_urgent(&mut self, above: i32) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.xdp.recv_urgent(above)
    }

    fn recv_common(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.xdp.recv_common(scan)
    }

    fn descriptors(&self) -> &[RawFd] {
        self.xdp.descriptors()
    }

    fn stats(&self) -> TransportStats {
        self.xdp.stats()
    }

    fn name_sources(&mut self) {
        self.xdp.name_sources();
    }

    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        self.xdp.source_of(flow, destination)
    }
}

impl Drop for Resident {
    /// Whatever was carried, nothing of it was strange.
    fn drop(&mut self) {
        let counters = self.xdp.counters();
        let refused = [counters.malformed, counters.damaged, counters.strange_entries, counters.refused_flushes];
        if !std::thread::panicking() {
            assert_eq!((refused, counters.no_frame_out), ([0; 4], 0), "{counters:?}");
        }
        if let Some(tell) = self.tell.take() {
            tell.send(counters).expect("who asked waits");
        }
    }
}
