//! Step budget for evaluating a condition: visited values and compared characters.

use core::cell::Cell;

/// Remaining steps.
#[derive(Debug)]
pub(crate) struct Budget {
    left: Cell<u64>,
    is_exceeded: Cell<bool>,
}

impl Budget {
    pub(crate) const fn new(steps: u64) -> Self {
        Self { left: Cell::new(steps), is_exceeded: Cell::new(false) }
    }

    pub(crate) const fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Spends steps. Returns false, also in all later calls, if too few are left.
    pub(crate) fn spend(&self, steps: u64) -> bool {
        match self.left.get().checked_sub(steps) {
            Some(left) if !self.is_exceeded.get() => {
                self.left.set(left);
                true
            }
            _ => {
                self.is_exceeded.set(true);
                false
            }
        }
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }

    pub(crate) fn left(&self) -> u64 {
        self.left.get()
    }
}
