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

/// Urgent datagrams that are handed out one after the other by [`Waiting::pop`]; behind them comes one of the others, so that a flood
/// of what is urgent does not keep them, and their frames, for ever.
const URGENT_IN_ROW_MAX: u32 = 8;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    queue: Option<PriorityQueue<Arrival>>,
    /// How many urgent ones were since the last one of the others.
    urgent_in_row: u32,
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

    /// The next one: the most urgent, or one of the others if it is their turn.
    pub(crate) fn pop(&mut self) -> Option<Arrival> {
        let queue = self.queue.as_mut()?;
        let is_others_turn = self.urgent_in_row >= URGENT_IN_ROW_MAX;
        let other = if is_others_turn { queue.remove(Priority::NORMAL, |_| true) } else { None };
        match other {
            Some(other) => Some(self.hand_out(Priority::NORMAL, other)),
            None => self.pop_first(),
        }
    }

    pub(crate) fn pop_above(&mut self, above: i32) -> Option<Arrival> {
        self.queue.as_ref()?.first_priority().filter(|priority| priority.get() > above)?;
        self.pop_first()
    }

    fn pop_first(&mut self) -> Option<Arrival> {
        let (priority, arrival) = self.queue.as_mut()?.pop()?;
        Some(self.hand_out(priority, arrival))
    }

    fn hand_out(&mut self, priority: Priority, arrival: Arrival) -> Arrival {
        self.urgent_in_row = if priority > Priority::NORMAL { self.urgent_in_row.saturating_add(1) } else { 0 };
        self.is_blocked &= arrival.received.is_in_place();
        arrival
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_transport::FlowId;
    use takt_wire::Locator;

    fn arrival(number: usize) -> Arrival {
        let somewhere = Locator::udp_v4(std::net::Ipv4Addr::LOCALHOST, 1);
        let meta = RxMeta { source: somewhere, local: somewhere, flow: FlowId::DEFAULT, multicast: false };
        Arrival { received: Received::copied(number), range: number..number, meta }
    }

    #[test]
    fn one_that_is_not_urgent_passes_behind_eight_that_are() {
        let mut waiting = Waiting::default();
        waiting.sort_from_now(40, 32);
        (0..2).for_each(|number| waiting.push(0, arrival(number)));
        (10..30).for_each(|number| waiting.push(40, arrival(number)));
        let order: Vec<_> = std::iter::from_fn(|| waiting.pop()).map(|arrival| arrival.range.start).collect();
        let expected: Vec<_> = (10..18).chain([0]).chain(18..26).chain([1]).chain(26..30).collect();
        assert_eq!(order, expected);
        (0..2).for_each(|number| waiting.push(0, arrival(number)));
        (10..30).for_each(|number| waiting.push(40, arrival(number)));
        let order: Vec<_> = std::iter::from_fn(|| waiting.pop_above(0)).map(|arrival| arrival.range.start).collect();
        assert_eq!(order, (10..30).collect::<Vec<_>>(), "who asks for urgent ones alone has no other");
        assert!(waiting.is_blocked() || waiting.pop().is_some());
    }
}
