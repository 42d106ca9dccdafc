//! Limit on the fragments of large samples that wait in the queues of network interfaces.
//!
//! A queueing discipline or a NIC sends datagrams of one class in order. Fragments of a large
//! sample that fill its queue would delay the samples of all other topics and processes. The
//! fragments of a flow therefore have sockets of their own, one per address family, whose small
//! send buffer counts what is queued. When such a socket is not writable, its flow is
//! [blocked](TransportEvent::Blocked) until it is.
//!
//! Datagrams that stay on this host pass no queue, and use the sockets of all other datagrams.
//! Flows with their own port have no sockets for fragments, because the port identifies their
//! datagrams.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::flows::Flows;
use super::priority::Priority;
use super::receiver::Receiver;
use super::socket::{Socket, Warnings, socket_error};
use super::{UdpConfig, syscall};
use crate::{FlowId, TransportError, TransportEvent};

/// Flows whose fragments are limited, and the events of those that are blocked.
#[derive(Debug, Default)]
pub(super) struct FragmentLimits {
    /// Flows that sent fragments since the last check.
    unchecked: Vec<FlowId>,
    /// Blocked flows, with the number of sockets that have no room.
    blocked: Vec<(FlowId, usize)>,
    events: VecDeque<TransportEvent>,
}

impl FragmentLimits {
    /// Records that a flow has sent a fragment.
    #[inline]
    pub(super) fn record(&mut self, flow: FlowId) {
        if !self.unchecked.contains(&flow) {
            self.unchecked.push(flow);
        }
    }

    /// Blocks the flows that have sent fragments if a socket of theirs has no room. One system call
    /// per socket.
    #[inline]
    pub(super) fn check(&mut self, flows: &Flows, receiver: &Receiver) {
        while let Some(flow) = self.unchecked.pop() {
            self.check_flow(flow, flows, receiver);
        }
    }

    fn check_flow(&mut self, flow: FlowId, flows: &Flows, receiver: &Receiver) {
        if self.blocked.iter().any(|(blocked, _)| *blocked == flow) {
            return self.report_blocked(flow);
        }
        let is_full = |socket: &_| syscall::is_writable(*socket).is_ok_and(|is_writable| !is_writable);
        // A socket that cannot be watched is not waited for.
        let watched =
            flows.fragment_sockets(flow).filter(is_full).filter(|socket| receiver.await_room(*socket, flow).is_ok());
        let count = watched.count();
        if count > 0 {
            self.blocked.push((flow, count));
            self.report_blocked(flow);
        }
    }

    fn report_blocked(&mut self, flow: FlowId) {
        let event = TransportEvent::Blocked(flow);
        if !self.events.contains(&event) {
            self.events.push_back(event);
        }
    }

    /// Returns the next event.
    #[inline]
    pub(super) fn poll_event(&mut self, receiver: &mut Receiver) -> Option<TransportEvent> {
        if !self.blocked.is_empty() {
            while let Some(flow) = receiver.next_with_room() {
                self.record_room(flow);
            }
        }
        self.events.pop_front()
    }

    fn record_room(&mut self, flow: FlowId) {
        let Some(at) = self.blocked.iter().position(|(blocked, _)| *blocked == flow) else { return };
        self.blocked[at].1 -= 1;
        if self.blocked[at].1 == 0 {
            self.blocked.swap_remove(at);
            self.events.push_back(TransportEvent::Unblocked(flow));
        }
    }

    /// Unblocks all flows, because their sockets have been replaced.
    pub(super) fn unblock_all(&mut self) {
        self.events.extend(self.blocked.drain(..).map(|(flow, _)| TransportEvent::Unblocked(flow)));
    }

    /// Forgets a closed flow.
    pub(super) fn close(&mut self, flow: FlowId) {
        self.unchecked.retain(|unchecked| *unchecked != flow);
        self.blocked.retain(|(blocked, _)| *blocked != flow);
    }
}

/// Opens a socket for fragments of this priority.
pub(super) fn open_socket(
    address: IpAddr,
    priority: Priority,
    config: &UdpConfig,
    warnings: &mut Warnings,
) -> Result<Socket, TransportError> {
    let failed = socket_error("open a socket for fragments at", address, 0);
    let socket = Socket::unicast(address, 0, config).map_err(&failed)?;
    socket.limit_queue(config.fragment_queue_bytes, warnings);
    socket.set_priority(priority, warnings).map_err(&failed)?;
    Ok(socket)
}
