//! Participants that came and went, until the participant's listener is told.
//!
//! Invariant: of each participant there is at most one going, and behind it one coming. So there are no more than twice as many as
//! participants may be known, whatever comes and goes while the listener cannot be told.

use std::collections::VecDeque;

use takt_wire::Guid;

use super::ParticipantEvent;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Comings(VecDeque<ParticipantEvent>);

impl Comings {
    pub(super) fn come(&mut self, guid: Guid) {
        self.0.push_back(ParticipantEvent::Discovered(guid));
    }

    /// Who has gone before its coming was told is not told of.
    pub(super) fn go(&mut self, guid: Guid) {
        match self.0.iter().rposition(|event| *event == ParticipantEvent::Discovered(guid)) {
            Some(place) => drop(self.0.remove(place)),
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
    fn who_comes_and_goes_untold_leaves_nothing() {
        let mut comings = Comings::default();
        comings.come(guid(1));
        for number in 2..200 {
            comings.come(guid(number));
            comings.go(guid(number));
        }
        for _ in 0..100 {
            comings.go(guid(1));
            comings.come(guid(1));
        }
        // As if it had been told of before.
        comings.go(guid(0));
        for _ in 0..100 {
            comings.come(guid(0));
            comings.go(guid(0));
        }
        comings.come(guid(0));
        let told: Vec<_> = std::iter::from_fn(|| comings.pop()).collect();
        use ParticipantEvent::{Discovered, Lost};
        assert_eq!(told, [Discovered(guid(1)), Lost(guid(0)), Discovered(guid(0))]);
    }
}
