//! Memory of a fixed capacity whose pages are committed only as far as it is used.
//!
//! Zeroed memory (`alloc_zeroed`) commits no pages if it is new from the operating system, but all
//! of them if the allocator reuses freed memory. Reserved memory commits none in either case. It is
//! zeroed step by step when it is first used, which writes each octet once more over the lifetime
//! of a pool.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut, Range};

#[derive(Debug)]
pub(super) struct Memory {
    /// Part that was zeroed so far; its allocation holds `capacity`.
    initialized: Vec<u8>,
    capacity: usize,
}

impl Memory {
    pub(super) fn new(capacity: usize) -> Self {
        Self { initialized: Vec::with_capacity(capacity), capacity }
    }

    /// Returns the capacity in octets, used or not.
    pub(super) fn len(&self) -> usize {
        self.capacity
    }

    /// Makes the octets before `end`, which is at most [`len`](Self::len), ready for use. Does not
    /// allocate.
    pub(super) fn initialize_up_to(&mut self, end: usize) {
        if self.initialized.len() < end {
            self.initialized.resize(end.min(self.capacity), 0);
        }
    }
}

/// Only octets that were made ready can be accessed.
impl Index<Range<usize>> for Memory {
    type Output = [u8];

    fn index(&self, range: Range<usize>) -> &[u8] {
        &self.initialized[range]
    }
}

impl IndexMut<Range<usize>> for Memory {
    fn index_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.initialized[range]
    }
}
