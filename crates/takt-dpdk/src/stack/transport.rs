//! The stack as a [`Transport`].

use std::io;
use std::os::fd::RawFd;

use takt_transport::ethernet::FramePort;
use takt_transport::{
    FlowId, FlowSpec, Interface, Locators, RxFrame, Scan, Transport, TransportError, TransportStats, Warning,
};
use takt_wire::Locator;

use super::{LOOKS, Place, UdpStack};

/// Calls that find nothing between two looks at the clock.
const CLOCK_INTERVAL: u32 = 64;

fn misuse(why: &'static str) -> TransportError {
    TransportError::new("commit", "a datagram", io::Error::new(io::ErrorKind::InvalidInput, why))
}

impl<P: FramePort> Transport for UdpStack<P> {
    fn name(&self) -> &'static str {
        self.port.name()
    }

    fn serves(&self, locator: &Locator) -> bool {
        self.address(locator).is_some()
    }

    fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    fn locators(&self) -> &Locators {
        &self.locators
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        let none_left = || TransportError::new("open a flow at", self.own.1, io::ErrorKind::AddrInUse.into());
        let (flow, port) = self.flows.open(spec).ok_or_else(none_left)?;
        Ok((flow, port.map(|port| Locator::udp_v4(self.own.1, port)).into_iter().collect()))
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.flush()?;
        match self.flows.close(flow) {
            true => Ok(()),
            false => Err(TransportError::new("close flow", flow.0, io::ErrorKind::NotFound.into())),
        }
    }

    fn scans_memory(&self) -> bool {
        self.port.scans_memory()
    }

    fn max_message_len(&self) -> usize {
        self.max_message_len
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        self.loaned = true;
        let (at, len) = (self.headers_len, self.max_message_len);
        Ok(&mut self.port.loan()[at..at + len])
    }

    fn commit(&mut self, len: usize, flow: FlowId, destinations: &[Locator]) -> Result<(), TransportError> {
        if !self.loaned {
            return Err(misuse("commit without a loaned frame"));
        }
        if len > self.max_message_len {
            return Err(misuse("longer than the frame"));
        }
        let exit = self.flows.exit(flow).ok_or_else(|| misuse("of a flow that is not open"))?;
        self.distribute(len, exit, destinations);
        self.loaned = false;
        self.serve();
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        self.serve();
        self.port.flush().map_err(|e| TransportError::new("send at", self.own.1, e))
    }

    fn recv(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        self.calls = self.calls.wrapping_add(1);
        if scan == Scan::All || self.calls.is_multiple_of(CLOCK_INTERVAL) {
            self.look_at_clock();
        }
        let mut found = None;
        for _ in 0..LOOKS {
            if !self.port.recv(scan).map_err(|e| TransportError::new("receive at", self.own.1, e))? {
                break;
            }
            found = self.handle();
            if found.is_some() {
                break;
            }
        }
        self.serve();
        Ok(found.map(|(place, meta)| {
            let bytes = match place {
                Place::Frame(range) => &self.port.received()[range],
                Place::Reassembled(at, len, range) => &self.reassembly.payload(at, len)[range],
            };
            RxFrame::new(bytes, meta)
        }))
    }

    fn descriptors(&self) -> &[RawFd] {
        self.port.descriptors()
    }

    fn stats(&self) -> TransportStats {
        let (mut stats, port) = (self.stats, self.port.stats());
        stats.kernel_drops += port.dropped_in;
        stats.truncated += port.truncated;
        stats.receive_errors += port.malformed;
        stats.send_errors.would_block += port.refused_out;
        stats
    }

    fn warnings(&self) -> &[Warning] {
        self.port.warnings()
    }

    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        let exit = self.flows.exit(flow).filter(|_| destination.kind == Locator::KIND_UDP_V4)?;
        Some(Locator::udp_v4(self.own.1, exit.port))
    }
}
