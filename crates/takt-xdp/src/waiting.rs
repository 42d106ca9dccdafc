//! Datagrams that were taken from a ring and wait to be handed out: the most urgent first.

use std::ops::Range;

use takt_exec::{Priority, PriorityQueue};
use takt_transport::RxMeta;

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
    queue: Option<PriorityQueue<Arrival>>,
    /// One of them was copied to where the next one of its kind would be: until it is handed out nothing more is received.
    is_blocked: bool,
}

impl Waiting {
    /// Datagrams wait from now on, at most as many as there are frames, those of this urgency before others. Allocates.
    pub(crate) fn sort_from_now(&mut self, urgency: i32, frames: usize) {
        let queue = self.queue.get_or_insert_default();
        for priority in [Priority::NORMAL, Priority::new(urgency)] {
            queue.reserve(priority, frames);
        }
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
            queue.push(Priority::new(urgency.max(0)), arrival);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Arrival> {
        let (_, arrival) = self.queue.as_mut()?.pop()?;
        self.is_blocked &= arrival.received.is_in_place();
        Some(arrival)
    }

    pub(crate) fn pop_above(&mut self, above: i32) -> Option<Arrival> {
        self.queue.as_ref()?.first_priority().filter(|priority| priority.get() > above)?;
        self.pop()
    }
}
