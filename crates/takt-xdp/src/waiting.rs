//! Datagrams that were taken from a ring and wait to be handed out: the most urgent first.

use std::ops::Range;

use takt_transport::{FlowId, RxMeta, ahead};

use crate::bank::Received;

/// A datagram as it came.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// The frame.
    pub(crate) received: Received,
    /// Where in it the datagram is.
    pub(crate) range: Range<usize>,
    pub(crate) meta: RxMeta,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    queue: Option<ahead::Waiting<Arrival>>,
    /// One of them was copied to where the next one of its kind would be: until it is handed out nothing more is received.
    is_blocked: bool,
}

impl Waiting {
    /// Datagrams wait from now on, at most as many as there are frames, those of this urgency before others. Allocates.
    pub(crate) fn sort_from_now(&mut self, urgency: i32, frames: usize) {
        self.queue.get_or_insert_default().reserve(urgency, frames);
    }

    /// Whether datagrams wait at all, and are not handed out as they come.
    pub(crate) fn sorts(&self) -> bool {
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

    /// The first of the most urgent, if it is more so than `above`.
    pub(crate) fn pop_above(&mut self, above: i32) -> Option<Arrival> {
        let arrival = self.queue.as_mut()?.pop_above(above)?;
        self.is_blocked &= arrival.received.is_in_place();
        Some(arrival)
    }

    /// The first that is not urgent.
    pub(crate) fn pop_common(&mut self) -> Option<Arrival> {
        let arrival = self.queue.as_mut()?.pop_common()?;
        self.is_blocked &= arrival.received.is_in_place();
        Some(arrival)
    }

    /// Takes out what waits for a flow that is closed. Allocates.
    pub(crate) fn forget(&mut self, flow: FlowId) -> Vec<Arrival> {
        let Some(queue) = &mut self.queue else { return Vec::new() };
        let gone = queue.remove(|arrival| arrival.meta.flow == flow);
        self.is_blocked &= gone.iter().all(|arrival| arrival.received.is_in_place());
        gone
    }
}
