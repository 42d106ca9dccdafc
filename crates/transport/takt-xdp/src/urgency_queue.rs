//! Queue of datagrams taken from a ring, most urgent first.

use std::ops::Range;

use takt_transport::{FlowId, RxMeta, urgency_buffer};

use crate::sockets::socket_set::Received;

/// Received datagram.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// Frame of the datagram.
    pub(crate) received: Received,
    /// Range of the datagram in the frame.
    pub(crate) range: Range<usize>,
    pub(crate) meta: RxMeta,
}

/// Queue of received datagrams. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct UrgencyQueue {
    queue: Option<urgency_buffer::UrgencyQueue<Arrival>>,
    /// A waiting datagram occupies the single buffer for frames of several parts, so nothing more
    /// is received until it is returned.
    is_blocked: bool,
}

impl UrgencyQueue {
    /// Enables sorting, with capacity for all frames and this urgency. Allocates.
    pub(crate) fn enable_sorting(&mut self, urgency: i32, frames: usize) {
        self.queue.get_or_insert_default().reserve(urgency, frames);
    }

    /// Reports whether datagrams are sorted, instead of returned in arrival order.
    pub(crate) fn is_sorting(&self) -> bool {
        self.queue.is_some()
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    pub(crate) fn push(&mut self, urgency: i32, arrival: Arrival) {
        self.is_blocked = !arrival.received.is_in_place();
        if let Some(queue) = &mut self.queue {
            queue.push(urgency.max(0), arrival);
        }
    }

    /// Takes the first of the most urgent datagrams, if its urgency exceeds `above`.
    pub(crate) fn pop_above(&mut self, above: i32) -> Option<Arrival> {
        let arrival = self.queue.as_mut()?.pop_above(above)?;
        self.is_blocked &= arrival.received.is_in_place();
        Some(arrival)
    }

    /// Takes the first datagram that is not urgent.
    pub(crate) fn pop_not_urgent(&mut self) -> Option<Arrival> {
        let arrival = self.queue.as_mut()?.pop_not_urgent()?;
        self.is_blocked &= arrival.received.is_in_place();
        Some(arrival)
    }

    /// Removes the datagrams of a closed flow. Allocates.
    pub(crate) fn remove_flow(&mut self, flow: FlowId) -> Vec<Arrival> {
        let Some(queue) = &mut self.queue else { return Vec::new() };
        let removed = queue.remove(|arrival| arrival.meta.flow == flow);
        self.is_blocked &= removed.iter().all(|arrival| arrival.received.is_in_place());
        removed
    }
}
