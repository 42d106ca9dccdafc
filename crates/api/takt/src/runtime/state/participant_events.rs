//! Discovered and lost participants, queued for the participant's listener.
//!
//! Invariant: for each participant the queue contains at most one loss, followed by at most one
//! discovery. Its length is therefore at most twice the maximum number of known participants, even
//! if the listener cannot be called.

use std::collections::VecDeque;

use takt_wire::Guid;

use super::ParticipantEvent;

/// Queue of discovered and lost participants; see the [module](self).
#[derive(Debug, Default)]
pub(super) struct ParticipantEvents(VecDeque<ParticipantEvent>);

impl ParticipantEvents {
    pub(super) fn push_discovered(&mut self, guid: Guid) {
        self.0.push_back(ParticipantEvent::Discovered(guid));
    }

    /// Queues a loss. If the discovery is still queued, removes it instead.
    pub(super) fn push_lost(&mut self, guid: Guid) {
        match self.0.iter().rposition(|event| *event == ParticipantEvent::Discovered(guid)) {
            Some(index) => drop(self.0.remove(index)),
            None => self.0.push_back(ParticipantEvent::Lost(guid)),
        }
    }

    pub(super) fn pop(&mut self) -> Option<ParticipantEvent> {
        self.0.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_wire::{EntityId, GuidPrefix};

    fn guid(number: u8) -> Guid {
        Guid { prefix: GuidPrefix([number; 12]), entity_id: EntityId::PARTICIPANT }
    }

    #[test]
    fn discovery_and_loss_before_delivery_cancel_out() {
        let mut events = ParticipantEvents::default();
        events.push_discovered(guid(1));
        for number in 2..200 {
            events.push_discovered(guid(number));
            events.push_lost(guid(number));
        }
        for _ in 0..100 {
            events.push_lost(guid(1));
            events.push_discovered(guid(1));
        }
        // As if an earlier discovery had been reported.
        events.push_lost(guid(0));
        for _ in 0..100 {
            events.push_discovered(guid(0));
            events.push_lost(guid(0));
        }
        events.push_discovered(guid(0));
        let reported: Vec<_> = std::iter::from_fn(|| events.pop()).collect();
        use ParticipantEvent::{Discovered, Lost};
        assert_eq!(reported, [Discovered(guid(1)), Lost(guid(0)), Discovered(guid(0))]);
    }
}
