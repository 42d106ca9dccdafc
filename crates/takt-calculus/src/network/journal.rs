//! What attempts at admission have changed, so that it can be undone.

use alloc::vec::Vec;

use super::load::Loads;
use super::{Flow, FlowId, Hop, QueueClaim};

/// A set of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    Departed,
    Free,
    BySeparated,
}

/// What was before a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// There was no such place for a flow.
    Place,
    Flow(FlowId, Option<Flow>),
    Loads(usize, Loads),
    Claim(Hop, QueueClaim),
    /// Whether the flow was in the set.
    Member(Set, FlowId, bool),
}

/// The changes of the attempts under way, the last one at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Journal {
    changes: Vec<Change>,
    /// How many attempts are under way, each within the one before.
    attempts: usize,
}

impl Journal {
    /// Begins an attempt, and gives the number of changes before it.
    pub(super) fn begin(&mut self) -> usize {
        self.attempts += 1;
        self.changes.len()
    }

    pub(super) fn end(&mut self) {
        self.attempts -= 1;
        if self.attempts == 0 {
            self.changes.clear();
        }
    }

    pub(super) fn note(&mut self, change: impl FnOnce() -> Change) {
        if self.attempts > 0 {
            self.changes.push(change());
        }
    }

    /// The last change, if it is not among the first so many.
    pub(super) fn take_after(&mut self, from: usize) -> Option<Change> {
        if self.changes.len() > from { self.changes.pop() } else { None }
    }
}
