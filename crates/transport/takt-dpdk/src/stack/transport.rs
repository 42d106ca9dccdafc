//! Implementation of [`Transport`] for the stack.

use std::io;

use takt_transport::ethernet::FramePort;
use takt_transport::urgency_buffer::{BELOW_ALL, Wanted};
use takt_transport::{
    Capabilities, Commit, FlowId, FlowSpec, Reach, Receive, RxFrame, Scan, Status, Transport, TransportError,
};
use takt_wire::Locator;

use super::{DATAGRAM_MAX, UdpStack};

/// Number of empty calls between two reads of the clock.
const CLOCK_INTERVAL: u32 = 64;

fn misuse(why: &'static str) -> TransportError {
    TransportError::new("commit", "a datagram", io::Error::new(io::ErrorKind::InvalidInput, why))
}

impl<P: FramePort> UdpStack<P> {
    /// Returns the next wanted datagram, and handles timers.
    fn recv_wanted(&mut self, scan: Scan, wanted: Wanted) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.calls = self.calls.wrapping_add(1);
        if scan == Scan::All || self.calls.is_multiple_of(CLOCK_INTERVAL) {
            self.update_clock();
        }
        let found = self.receive_wanted(scan, wanted)?;
        self.send_waiting();
        Ok(found.map(|(location, meta)| RxFrame::new(self.bytes(location), meta)))
    }

    /// Returns the next urgent datagram above this priority.
    fn recv_urgent(&mut self, above: i32) -> Result<Option<RxFrame<'_>>, TransportError> {
        if !self.urgency_buffer.awaits() {
            return Ok(None);
        }
        let found = self.receive_wanted(Scan::Hot, Wanted::Above(above))?;
        self.send_waiting();
        Ok(found.map(|(location, meta)| RxFrame::new(self.bytes(location), meta)))
    }
}

impl<P: FramePort> Transport for UdpStack<P> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: self.port.name(),
            max_message_len: self.max_message_len,
            scans_memory: self.port.scans_memory(),
        }
    }

    fn status(&self) -> Status<'_> {
        let (mut stats, port) = (self.stats, self.port.stats());
        stats.kernel_drops += port.dropped_in;
        stats.truncated += port.truncated;
        stats.receive_errors += port.malformed;
        stats.send_errors.would_block += port.refused_out;
        Status {
            interfaces: &self.interfaces,
            descriptors: self.port.descriptors(),
            warnings: self.port.warnings(),
            ..Status::new(&self.locators, stats)
        }
    }

    fn reach(&self, locator: &Locator) -> Reach {
        self.address(locator).is_some().into()
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        let none_left = || TransportError::new("open a flow at", self.own.1, io::ErrorKind::AddrInUse.into());
        let (flow, port) = self.flows.open(spec).ok_or_else(none_left)?;
        self.urgency_buffer.await_urgency(self.flows.most_urgent(), DATAGRAM_MAX);
        Ok((flow, port.map(|port| Locator::udp_v4(self.own.1, port)).into_iter().collect()))
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.flush()?;
        if !self.flows.close(flow) {
            return Err(TransportError::new("close flow", flow.0, io::ErrorKind::NotFound.into()));
        }
        if self.flows.header(flow).is_none() {
            self.urgency_buffer.remove_flow(flow);
            self.urgency_buffer.await_urgency(self.flows.most_urgent(), DATAGRAM_MAX);
        }
        Ok(())
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        self.loaned = true;
        let (at, len) = (self.headers_len, self.max_message_len);
        Ok(&mut self.port.loan()[at..at + len])
    }

    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError> {
        if !self.loaned {
            return Err(misuse("commit without a loaned frame"));
        }
        let (from, room) = (self.headers_len, self.max_message_len);
        let len = datagram.assemble(&mut self.port.loan()[from..from + room])?;
        let flow_header = self.flows.header(datagram.flow).ok_or_else(|| misuse("the flow is not open"))?;
        self.distribute(len, flow_header, datagram.destinations);
        self.loaned = false;
        self.send_waiting();
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        self.send_waiting();
        self.port.flush().map_err(|e| TransportError::new("send at", self.own.1, e))
    }

    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>, TransportError> {
        match request {
            Receive::Any(scan) => self.recv_wanted(scan, Wanted::Above(BELOW_ALL)),
            Receive::NotUrgent(scan) => self.recv_wanted(scan, Wanted::NotUrgent),
            Receive::Urgent { above } => self.recv_urgent(above),
        }
    }

    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        let flow_header = self.flows.header(flow).filter(|_| destination.kind == Locator::KIND_UDP_V4)?;
        Some(Locator::udp_v4(self.own.1, flow_header.port))
    }
}
