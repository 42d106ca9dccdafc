//! Which of two changes of an instance is the later one (DESTINATION_ORDER, DDS 1.4 §2.2.3.17).
//!
//! By source time stamp the one that was written later is, of two written at the same time that of the writer with the lower
//! GUID. A change that arrives behind a later one is dropped, so that the last value of an instance is the same at all
//! readers, whatever the network does. That a writer leaves an instance counts whenever it arrives.
//!
//! INTEROP(CycloneDDS 0.10.2): drops what is older too, and takes the lower GUID of two equals.

use super::Incoming;
use super::instance::Instance;
use crate::cache::sample::{ChangeKind, InstanceState};
use core::cmp::Reverse;
use takt_wire::{Guid, Timestamp};

/// Orders changes by when they were written; without a time stamp, by when they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SourceOrder(Timestamp, Reverse<Guid>);

impl SourceOrder {
    fn of(incoming: &Incoming, now: Timestamp) -> Self {
        let written = incoming.source_timestamp;
        Self(if written.is_invalid() { now } else { written }, Reverse(incoming.writer))
    }
}

/// Whether a change says what the instance is from then on.
fn is_value(kind: ChangeKind) -> bool {
    matches!(kind, ChangeKind::Alive | ChangeKind::Disposed | ChangeKind::DisposedUnregistered)
}

impl Instance {
    /// Whether a later change than this one has come, so that it is to be dropped. Its writer is one of the instance's all the
    /// same; one that leaves does no more than that.
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
            // Somebody writes the instance again, if not the last word on it.
            ChangeKind::Alive if self.state == InstanceState::NotAliveNoWriters => _ = self.update(incoming),
            _ => self.note_writer(incoming),
        }
        true
    }

    /// The change is the latest one.
    pub(super) fn is_as_of(&mut self, incoming: &Incoming, now: Timestamp) {
        if is_value(incoming.kind) {
            self.latest = Some(SourceOrder::of(incoming, now));
        }
    }
}
