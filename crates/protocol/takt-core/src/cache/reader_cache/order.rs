//! Order of two changes of an instance (DESTINATION_ORDER, DDS 1.4 §2.2.3.17).
//!
//! By source timestamp, the change written later is the later one; of two written at the same time,
//! that of the writer with the lower GUID. A change that arrives after a later one is dropped, so
//! that the last value of an instance is the same at all readers, regardless of the network. A
//! writer's unregistration always counts.
//!
//! INTEROP(CycloneDDS 0.10.2): also drops older changes, and prefers the lower GUID of two equals.

use super::Incoming;
use super::instance::Instance;
use crate::cache::sample::{ChangeKind, InstanceState};
use core::cmp::Reverse;
use takt_wire::{Guid, Timestamp};

/// Orders changes by their source timestamp; without one, by their arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SourceOrder(Timestamp, Reverse<Guid>);

impl SourceOrder {
    fn of(incoming: &Incoming, now: Timestamp) -> Self {
        let written = incoming.source_timestamp;
        Self(if written.is_invalid() { now } else { written }, Reverse(incoming.writer))
    }
}

/// Reports whether a change determines the value of an instance.
fn is_value(kind: ChangeKind) -> bool {
    matches!(kind, ChangeKind::Alive | ChangeKind::Disposed | ChangeKind::DisposedUnregistered)
}

impl Instance {
    /// Reports whether a later change has arrived, so that this one is to be dropped. Its writer
    /// still becomes one of the instance's writers; one that unregisters only leaves them.
    pub(super) fn is_outdated(&mut self, incoming: &mut Incoming, now: Timestamp) -> bool {
        let late = is_value(incoming.kind) && Some(SourceOrder::of(incoming, now)) < self.latest;
        if !late {
            return false;
        }
        match incoming.kind {
            ChangeKind::DisposedUnregistered => {
                incoming.kind = ChangeKind::Unregistered;
                return false;
            }
            // The instance has a writer again, although this is not its latest value.
            ChangeKind::Alive if self.state == InstanceState::NotAliveNoWriters => _ = self.update(incoming),
            _ => self.note_writer(incoming),
        }
        true
    }

    /// Records the change as the latest one.
    pub(super) fn is_as_of(&mut self, incoming: &Incoming, now: Timestamp) {
        if is_value(incoming.kind) {
            self.latest = Some(SourceOrder::of(incoming, now));
        }
    }
}
