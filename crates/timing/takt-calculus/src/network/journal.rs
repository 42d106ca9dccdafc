//! Undo journal of admission attempts.

use alloc::vec::Vec;

use super::load::Loads;
use super::{Flow, FlowId, Hop, QueueClaim};

/// Set of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    Removed,
    Free,
    BySeparated,
}

/// State before a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// The entry for a flow did not exist.
    Place,
    Flow(FlowId, Option<Flow>),
    Loads(usize, Loads),
    Claim(Hop, QueueClaim),
    /// Whether the flow was in the set.
    Member(Set, FlowId, bool),
}

/// Changes of the attempts in progress, the latest one last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Journal {
    changes: Vec<Change>,
    /// Number of nested attempts in progress.
    attempts: usize,
}

impl Journal {
    /// Begins an attempt. Returns the number of earlier changes.
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

    pub(super) fn record(&mut self, change: impl FnOnce() -> Change) {
        if self.attempts > 0 {
            self.changes.push(change());
        }
    }

    /// Removes and returns the last change, unless it is among the first `from`.
    pub(super) fn take_after(&mut self, from: usize) -> Option<Change> {
        if self.changes.len() > from { self.changes.pop() } else { None }
    }
}
