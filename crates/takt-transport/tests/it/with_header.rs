//! Wrapper for transports that carry only RTPS messages, for suites that send arbitrary octets:
//! these become a submessage.

use std::hash::{BuildHasher, RandomState};
use std::os::fd::RawFd;

use takt_transport::{FlowId, FlowSpec, Interface, Locators, RxFrame, Scan, Transport, TransportError, TransportStats};
use takt_wire::Locator;

/// Length of the RTPS header and the header of a vendor-specific submessage that extends to the
/// end.
const HEADER: usize = 24;

/// Transport that inserts headers before each datagram.
pub(super) struct WithHeader<T> {
    transport: T,
    header: [u8; HEADER],
}

impl<T: Transport> WithHeader<T> {
    /// Wraps a transport, with a random GUID prefix.
    pub(super) fn new(transport: T) -> Self {
        let mut header = *b"RTPS\x02\x05\x00\x00............\x9a\x00\x00\x00";
        header[8..16].copy_from_slice(&RandomState::new().hash_one(1).to_ne_bytes());
        header[6..8].copy_from_slice(&takt_wire::VendorId::TAKT.0);
        Self { transport, header }
    }
}

impl<T: Transport> Transport for WithHeader<T> {
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
    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        self.transport.open_flow(spec)
    }
    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.transport.close_flow(flow)
    }
    fn max_message_len(&self) -> usize {
        self.transport.max_message_len() - HEADER
    }
    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        let frame = self.transport.loan()?;
        frame[..HEADER].copy_from_slice(&self.header);
        Ok(&mut frame[HEADER..])
    }
    fn commit(&mut self, len: usize, flow: FlowId, destinations: &[Locator]) -> Result<(), TransportError> {
        self.transport.commit(len + HEADER, flow, destinations)
    }
    fn flush(&mut self) -> Result<(), TransportError> {
        self.transport.flush()
    }
    fn recv(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        let frame = self.transport.recv(scan)?;
        Ok(frame.map(|frame| RxFrame::new(frame.bytes().get(HEADER..).unwrap_or_default(), frame.meta)))
    }
    fn descriptors(&self) -> &[RawFd] {
        self.transport.descriptors()
    }
    fn stats(&self) -> TransportStats {
        let stats = self.transport.stats();
        let headers = |datagrams: u64| datagrams * HEADER as u64;
        TransportStats {
            bytes_in: stats.bytes_in - headers(stats.datagrams_in),
            bytes_out: stats.bytes_out - headers(stats.datagrams_out),
            ..stats
        }
    }
}
