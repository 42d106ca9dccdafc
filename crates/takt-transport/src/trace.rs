//! [`Tracer`]: a transport wrapper that reports all datagrams to an observer.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;

use takt_wire::{Locator, SharedPayload};

use crate::interface::nearest;
use crate::shm::Loan;
use crate::{
    FlowId, FlowSpec, Interface, Locators, RxFrame, RxMeta, Scan, Transport, TransportError, TransportStats, Warning,
};

/// Event at a transport.
#[derive(Debug, Clone, Copy)]
pub enum TraceEvent<'a> {
    /// A datagram was committed; once per destination, before it is sent.
    Sent {
        /// Source, as far as it is known.
        source: Option<Locator>,
        /// Destination.
        destination: Locator,
        /// Flow that carries it.
        flow: FlowId,
        /// Bytes of the datagram.
        datagram: &'a [u8],
    },
    /// A datagram was received.
    Received {
        /// Source and receiving port.
        meta: RxMeta,
        /// Destination, guessed where `meta.local` is unspecified.
        destination: Locator,
        /// Bytes of the datagram.
        datagram: &'a [u8],
    },
    /// A receive call found no datagram: an occasion for deferred work.
    Idle,
}

/// Observer of the events of a [`Tracer`], in the thread that uses the transport.
///
/// Every `FnMut(TraceEvent<'_>)` is an observer.
pub trait Observer: Send {
    /// Observes an event. Runs on the data path, so it must be short and must not block.
    fn observe(&mut self, event: TraceEvent<'_>);
}

impl<F: FnMut(TraceEvent<'_>) + Send> Observer for F {
    fn observe(&mut self, event: TraceEvent<'_>) {
        self(event);
    }
}

/// Transport wrapper that reports all datagrams to an [`Observer`]. Copies nothing, changes
/// nothing.
#[derive(Debug)]
pub struct Tracer<T, O> {
    inner: T,
    observer: O,
    loaned: bool,
    /// Own addresses, to guess the destination of a datagram.
    addresses: Vec<(IpAddr, u8)>,
}

impl<T: Transport, O: Observer> Tracer<T, O> {
    /// Reports the datagrams of `inner` to `observer`.
    pub fn new(mut inner: T, observer: O) -> Self {
        inner.report_sources();
        Self { addresses: addresses(&inner), inner, observer, loaned: false }
    }

    /// Returns the observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Returns the transport and the observer.
    pub fn into_parts(self) -> (T, O) {
        (self.inner, self.observer)
    }
}

fn addresses(transport: &impl Transport) -> Vec<(IpAddr, u8)> {
    transport.interfaces().iter().flat_map(|interface| interface.addresses.clone()).collect()
}

/// Makes the event of a receive call.
fn found<'a>(received: &'a Option<RxFrame<'_>>, addresses: &[(IpAddr, u8)]) -> TraceEvent<'a> {
    match received {
        Some(frame) => {
            let destination = destination(&frame.meta, addresses);
            TraceEvent::Received { meta: frame.meta, destination, datagram: frame }
        }
        None => TraceEvent::Idle,
    }
}

/// Returns the destination of a received datagram; guesses an unspecified address.
fn destination(meta: &RxMeta, addresses: &[(IpAddr, u8)]) -> Locator {
    let (Some(local), Some(source)) = (meta.local.ip(), meta.source.ip()) else {
        return meta.local;
    };
    match nearest(addresses, source) {
        Some(ip) if local.is_unspecified() => SocketAddr::new(ip, meta.local.port as u16).into(),
        _ => meta.local,
    }
}

impl<T: Transport, O: Observer> Tracer<T, O> {
    /// Of a loaned payload, the observer sees only the octets in the datagram.
    fn observe_sent(&mut self, len: usize, flow: FlowId, destinations: &[Locator]) -> Result<(), TransportError> {
        if !self.loaned {
            return Ok(());
        }
        for destination in destinations {
            let source = self.inner.source_of(flow, destination);
            // The same frame again, with the written content.
            if let Some(datagram) = self.inner.loan()?.get(..len) {
                self.observer.observe(TraceEvent::Sent { source, destination: *destination, flow, datagram });
            }
        }
        Ok(())
    }
}

impl<T: Transport, O: Observer> Transport for Tracer<T, O> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn serves(&self, locator: &Locator) -> bool {
        self.inner.serves(locator)
    }

    fn reach(&mut self, locator: &Locator) -> bool {
        self.inner.reach(locator)
    }

    fn poll_lost(&mut self) -> Option<crate::Lost> {
        self.inner.poll_lost()
    }

    fn interfaces(&self) -> &[Interface] {
        self.inner.interfaces()
    }

    fn locators(&self) -> &Locators {
        self.inner.locators()
    }

    fn may_have_moved(&self) -> bool {
        self.inner.may_have_moved()
    }

    fn refresh(&mut self) -> Result<(), TransportError> {
        self.inner.refresh()?;
        self.addresses = addresses(&self.inner);
        Ok(())
    }

    fn open_flow(&mut self, spec: &FlowSpec) -> Result<(FlowId, Vec<Locator>), TransportError> {
        self.inner.open_flow(spec)
    }

    fn close_flow(&mut self, flow: FlowId) -> Result<(), TransportError> {
        self.inner.close_flow(flow)
    }

    fn scans_memory(&self) -> bool {
        self.inner.scans_memory()
    }

    fn max_message_len(&self) -> usize {
        self.inner.max_message_len()
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        let frame = self.inner.loan()?;
        self.loaned = true;
        Ok(frame)
    }

    fn commit(&mut self, len: usize, flow: FlowId, destinations: &[Locator]) -> Result<(), TransportError> {
        self.observe_sent(len, flow, destinations)?;
        self.inner.commit(len, flow, destinations)?;
        self.loaned = false;
        Ok(())
    }

    fn loan_payload(&mut self, len: usize) -> Option<Loan> {
        self.inner.loan_payload(len)
    }

    fn commit_loaned(
        &mut self,
        len: usize,
        flow: FlowId,
        destinations: &[Locator],
        payload: &SharedPayload,
    ) -> Result<(), TransportError> {
        self.observe_sent(len, flow, destinations)?;
        self.inner.commit_loaned(len, flow, destinations, payload)?;
        self.loaned = false;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TransportError> {
        self.inner.flush()
    }

    fn recv_urgent(&mut self, above: i32) -> Result<Option<RxFrame<'_>>, TransportError> {
        let received = self.inner.recv_urgent(above)?;
        if let Some(datagram) = &received {
            let (meta, destination) = (datagram.meta, destination(&datagram.meta, &self.addresses));
            self.observer.observe(TraceEvent::Received { meta, destination, datagram });
        }
        Ok(received)
    }

    fn recv(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        let received = self.inner.recv(scan)?;
        self.observer.observe(found(&received, &self.addresses));
        Ok(received)
    }

    fn recv_not_urgent(&mut self, scan: Scan) -> Result<Option<RxFrame<'_>>, TransportError> {
        let received = self.inner.recv_not_urgent(scan)?;
        self.observer.observe(found(&received, &self.addresses));
        Ok(received)
    }

    fn descriptors(&self) -> &[RawFd] {
        self.inner.descriptors()
    }

    fn stats(&self) -> TransportStats {
        self.inner.stats()
    }

    fn report_sources(&mut self) {
        self.inner.report_sources();
    }

    fn warnings(&self) -> &[Warning] {
        self.inner.warnings()
    }

    fn source_of(&self, flow: FlowId, destination: &Locator) -> Option<Locator> {
        self.inner.source_of(flow, destination)
    }
}
