//! [`Tracer`]: a transport wrapper that reports all datagrams to an observer.

use std::net::{IpAddr, SocketAddr};

use takt_wire::{Locator, SharedPayload};

use crate::interface::nearest;
use crate::{Commit, Control, FlowId, Layer, Payload, Reach, Receive, RxFrame, RxMeta, Transport, TransportError};

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
        /// Loaned payload, of which the datagram has only the first octets.
        payload: Option<&'a SharedPayload>,
    },
    /// A datagram was received.
    Received {
        /// Source and receiving port.
        meta: RxMeta,
        /// Destination, guessed where `meta.local` is unspecified.
        destination: Locator,
        /// Bytes of the datagram.
        datagram: &'a [u8],
        /// Loaned payload, of which the datagram has only the first octets.
        payload: Option<&'a SharedPayload>,
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
        // tidy-allow(dropped-cause): without sources, the observer sees the datagrams alone.
        let _ = inner.control(Control::ReportSources);
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
    transport.status().interfaces.iter().flat_map(|interface| interface.addresses.clone()).collect()
}

/// Makes the event of a receive call.
fn found<'a>(received: &'a Option<RxFrame<'_>>, addresses: &[(IpAddr, u8)]) -> TraceEvent<'a> {
    match received {
        Some(frame) => {
            let destination = destination(&frame.meta, addresses);
            TraceEvent::Received { meta: frame.meta, destination, datagram: frame, payload: frame.loan() }
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
    fn observe_sent(&mut self, datagram: &Commit<'_>) -> Result<(), TransportError> {
        let &Commit { len, flow, destinations, payload, .. } = datagram;
        let payload = if let Payload::Loaned(payload) = payload { Some(payload) } else { None };
        if !self.loaned {
            return Ok(());
        }
        for destination in destinations {
            let source = self.inner.source_of(flow, destination);
            // The same frame again, with the written content.
            if let Some(datagram) = self.inner.loan()?.get(..len) {
                self.observer.observe(TraceEvent::Sent { source, destination: *destination, flow, datagram, payload });
            }
        }
        Ok(())
    }
}

impl<T: Transport, O: Observer> Layer for Tracer<T, O> {
    type Inner = T;

    fn inner(&self) -> &T {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// The observer would see only the first octets of an object.
    fn reach(&self, to: &Locator) -> Reach {
        self.inner.reach(to).is_served().into()
    }

    fn loan(&mut self) -> Result<&mut [u8], TransportError> {
        let frame = self.inner.loan()?;
        self.loaned = true;
        Ok(frame)
    }

    fn commit(&mut self, datagram: Commit<'_>) -> Result<(), TransportError> {
        let mut datagram = datagram;
        if self.loaned
            && let Payload::Gathered(_) = datagram.payload
        {
            // The observer sees the datagram in one piece.
            let len = datagram.assemble(self.inner.loan()?)?;
            datagram = Commit { len, payload: Payload::InFrame, ..datagram };
        }
        self.observe_sent(&datagram)?;
        self.inner.commit(datagram)?;
        self.loaned = false;
        Ok(())
    }

    fn recv(&mut self, request: Receive) -> Result<Option<RxFrame<'_>>, TransportError> {
        let received = self.inner.recv(request)?;
        // An empty queue of urgent datagrams is no occasion for deferred work.
        if received.is_some() || !matches!(request, Receive::Urgent { .. }) {
            self.observer.observe(found(&received, &self.addresses));
        }
        Ok(received)
    }

    fn control(&mut self, request: Control<'_>) -> Result<(), TransportError> {
        self.inner.control(request)?;
        if let Control::Refresh = request {
            self.addresses = addresses(&self.inner);
        }
        Ok(())
    }
}
