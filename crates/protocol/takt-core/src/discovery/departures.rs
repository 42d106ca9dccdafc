//! Deferred departures, which wait until datagrams that were sent before them have been received.
//!
//! Discovery and user data use separate sockets and transports, which do not preserve the order. A
//! farewell (RTPS 2.5 §8.5.3), or the deletion of a writer (RTPS 2.5 §8.5.4), that is received
//! first would unmatch writers whose last samples wait in another socket. Samples of best-effort
//! writers would be lost. A caller with sockets calls [`crate::Participant::defer_departures`],
//! receives what has arrived, and then calls [`crate::Participant::conclude_departure`].
//!
//! Invariant: at most [`WAITING_MAX`] departures wait, each endpoint or participant once, the
//! oldest first.

use super::Departure;
use crate::cache::InstanceHandle;
use crate::discovery::{Call, Discovery};
use alloc::collections::VecDeque;
use takt_wire::{EntityId, Guid};

/// Maximum number of departures that wait; one more concludes the oldest.
const WAITING_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Departures {
    pub(crate) is_deferred: bool,
    /// Departed participants and writers.
    waiting: VecDeque<(Guid, Departure)>,
}

impl Discovery {
    /// Reports whether a departure waits.
    #[must_use]
    pub(crate) fn has_departures(&self) -> bool {
        !self.departures.waiting.is_empty()
    }

    /// Makes the oldest waiting departure take effect.
    pub(crate) fn conclude_departure(&mut self, call: &mut Call<'_>) {
        if let Some((guid, departure)) = self.departures.waiting.pop_front() {
            self.conclude(call, guid, departure);
        }
    }

    /// Handles the departure of a remote participant or writer, at once or deferred.
    pub(super) fn depart(&mut self, call: &mut Call<'_>, guid: Guid, departure: Departure) {
        let is_known = match guid.entity_id {
            EntityId::PARTICIPANT => self.remote_by_prefix.contains_key(&guid.prefix),
            _ => self.publications.contains_key(&guid),
        };
        if !self.departures.is_deferred || !is_known {
            return self.conclude(call, guid, departure);
        }
        if self.departures.waiting.iter().any(|(waiting, _)| *waiting == guid) {
            return;
        }
        if self.departures.waiting.len() == WAITING_MAX {
            self.conclude_departure(call);
        }
        self.departures.waiting.push_back((guid, departure));
    }

    /// Concludes the waiting departure of a participant or writer, because it is announced again.
    pub(super) fn conclude_departure_of(&mut self, call: &mut Call<'_>, guid: Guid) {
        if let Some(at) = self.departures.waiting.iter().position(|(waiting, _)| *waiting == guid)
            && let Some((_, departure)) = self.departures.waiting.remove(at)
        {
            self.conclude(call, guid, departure);
        }
    }

    fn conclude(&mut self, call: &mut Call<'_>, guid: Guid, departure: Departure) {
        if guid.entity_id == EntityId::PARTICIPANT {
            return self.remove_participant(call, guid.prefix, departure);
        }
        let topic_name = self.publications.get(&guid).map(|data| data.topic_name.clone());
        self.handle_deleted_publication(call, guid);
        let sedp = call.ctx.sedp_of_publications(topic_name.as_deref().unwrap_or_default());
        call.endpoints.abandon(sedp, InstanceHandle(guid.to_bytes()));
    }
}
