//! Outputs of a daemon: rings to applications, and sockets of each domain.

use std::collections::BTreeMap;
use std::time::Instant;

use takt_wire::Locator;

use super::frame::Inbound;
use super::router::{Deliver, Network};
use crate::shm::ShmTransport;
use crate::udp::UdpTransport;
use crate::{Commit, FlowId, FlowSpec, Payload, Transport, TransportError};

/// Maximum number of distinct priorities above 0 in a domain; further ones are sent as the default.
const PRIORITIES_MAX: usize = 16;
/// Minimum size in octets of a message that is sent from the ring without a copy.
const GATHERED_MIN: usize = 16 << 10;
/// Octets at the start of such a message that are copied.
const GATHERED_HEADER_LEN: usize = 64;

/// Sockets of a domain.
#[derive(Debug)]
pub(super) struct Sockets {
    pub(super) udp: UdpTransport,
    flows: Vec<(i32, FlowId)>,
    /// Its interfaces may have changed.
    pub(super) has_changes: bool,
    pub(super) refresh_due: Instant,
}

impl Sockets {
    pub(super) fn new(udp: UdpTransport) -> Self {
        Self { udp, flows: Vec::new(), has_changes: false, refresh_due: Instant::now() }
    }

    fn flow(&mut self, priority: i32) -> FlowId {
        if priority <= 0 {
            return FlowId::DEFAULT;
        }
        if let Some((_, flow)) = self.flows.iter().find(|(other, _)| *other == priority) {
            return *flow;
        }
        if self.flows.len() == PRIORITIES_MAX {
            return FlowId::DEFAULT;
        }
        let spec = FlowSpec { own_port: false, transport_priority: priority };
        // If the machine refuses another socket, the default flow carries the priority.
        let flow = self.udp.open_flow(&spec).map_or(FlowId::DEFAULT, |(flow, _)| flow);
        self.flows.push((priority, flow));
        flow
    }

    fn send(&mut self, priority: i32, to: &Locator, pieces: &[&[u8]]) -> Result<(), TransportError> {
        let flow = self.flow(priority);
        if let [whole] = pieces
            && let Some((head, rest)) = whole.split_at_checked(GATHERED_HEADER_LEN)
            && whole.len() >= GATHERED_MIN
        {
            self.udp.loan()?[..GATHERED_HEADER_LEN].copy_from_slice(head);
            return self.udp.commit(Commit::new(GATHERED_HEADER_LEN, flow, &[*to]).with(Payload::Gathered(rest)));
        }
        let len = write(self.udp.loan()?, pieces);
        self.udp.commit(Commit::new(len, flow, &[*to]))
    }
}

/// Writes pieces one after the other and returns their total length.
pub(super) fn write(frame: &mut [u8], pieces: &[&[u8]]) -> usize {
    let mut at = 0;
    for piece in pieces {
        if let Some(room) = frame.get_mut(at..at + piece.len()) {
            room.copy_from_slice(piece);
        }
        at += piece.len();
    }
    at
}

/// Rings to applications.
#[derive(Debug)]
pub(super) struct Outbox {
    pub(super) shm: ShmTransport,
    /// Length of the prepared frame.
    frame_len: usize,
}

impl Deliver for Outbox {
    fn prepare(&mut self, header: &Inbound, message: &[u8]) {
        // Shared memory always loans the same frame, which keeps its content.
        if let Ok(frame) = self.shm.loan() {
            self.frame_len = write(frame, &[&header.to_bytes(), message]);
        }
    }

    fn deliver(&mut self, application: &Locator) -> bool {
        let before = self.shm.datagrams_out();
        let len = self.frame_len;
        let is_committed =
            self.shm.loan().is_ok() && self.shm.commit(Commit::new(len, FlowId::DEFAULT, &[*application])).is_ok();
        is_committed && self.shm.datagrams_out() > before
    }
}

/// Outputs of the daemon.
#[derive(Debug)]
pub(super) struct Outputs {
    pub(super) outbox: Outbox,
    /// Sockets by domain.
    pub(super) sockets: BTreeMap<u32, Sockets>,
    /// Number of datagrams that the machine refused to send.
    pub(super) send_failures: u64,
}

impl Outputs {
    pub(super) fn new(shm: ShmTransport) -> Self {
        Self { outbox: Outbox { shm, frame_len: 0 }, sockets: BTreeMap::new(), send_failures: 0 }
    }

    /// Sends the queued messages.
    pub(super) fn flush(&mut self) -> Result<(), TransportError> {
        for sockets in self.sockets.values_mut() {
            sockets.udp.flush()?;
        }
        self.outbox.shm.flush()
    }
}

impl Deliver for Outputs {
    fn prepare(&mut self, header: &Inbound, message: &[u8]) {
        self.outbox.prepare(header, message);
    }

    fn deliver(&mut self, application: &Locator) -> bool {
        self.outbox.deliver(application)
    }
}

impl Network for Outputs {
    fn send(&mut self, domain: u32, priority: i32, to: &Locator, pieces: &[&[u8]]) {
        let sent = self.sockets.get_mut(&domain).map(|sockets| sockets.send(priority, to, pieces));
        self.send_failures += u64::from(!matches!(sent, Some(Ok(()))));
    }
}
