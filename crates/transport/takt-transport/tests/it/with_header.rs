//! Wrapper for transports that carry only RTPS messages, for suites that send arbitrary octets:
//! these become a submessage.

use std::hash::{BuildHasher, RandomState};

use takt_transport::shm::Loan;
use takt_transport::{
    Capabilities, Commit, Layer, Receive, RxFrame, Status, Transport, TransportError, TransportStats,
};

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

impl<T: Transport> Layer for WithHeader<T> {
    type Inner = T;

    fn inner(&self) -> &T {
        &self.transport
    }

    fn inner_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    fn capabilities(&self) -> Capabilities {
        let inner = self.transport.capabilities();
        Capabilities { max_message_len: inner.max_message_len - HEADER, ..inner }
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        let frame = self.transport.loan()?;
        frame[..HEADER].copy_from_slice(&self.header);
        Ok(&mut frame[HEADER..])
    }

    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError> {
        self.transport.commit(Commit { len: datagram.len + HEADER, ..datagram })
    }

    fn loan_payload(&mut self, _: usize) -> Option<Loan> {
        None
    }
    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>, TransportError> {
        let frame = self.transport.recv(request)?;
        Ok(frame.map(|frame| RxFrame::new(frame.bytes().get(HEADER..).unwrap_or_default(), frame.meta)))
    }

    fn status(&self) -> Status<'_> {
        let status = self.transport.status();
        let headers = |datagrams: u64| datagrams * HEADER as u64;
        let stats = TransportStats {
            bytes_in: status.stats.bytes_in - headers(status.stats.datagrams_in),
            bytes_out: status.stats.bytes_out - headers(status.stats.datagrams_out),
            ..status.stats
        };
        Status { stats, ..status }
    }
}
