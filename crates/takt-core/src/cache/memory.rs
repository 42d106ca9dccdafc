//! Memory of a fixed capacity that is written only as far as it is used.
//!
//! Zeroed memory (`alloc_zeroed`) costs no pages if it is new from the operating system, and all of them if an allocator takes it
//! from what was freed before. Memory that is merely reserved costs none either way. It is zeroed piece by piece, when it is first
//! reached: that writes each octet once more over the life of a pool.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut, Range};

#[derive(Debug)]
pub(super) struct Memory {
    /// Zeroed so far; its allocation holds `capacity`.
    reached: Vec<u8>,
    capacity: usize,
}

impl Memory {
    pub(super) fn new(capacity: usize) -> Self {
        Self { reached: Vec::with_capacity(capacity), capacity }
    }

    /// Octets that it holds, reached or not.
    pub(super) fn len(&self) -> usize {
        self.capacity
    }

    /// Makes the octets before `end`, which is at most [`len`](Self::len), ready for use. Does not allocate.
    pub(super) fn reach(&mut self, end: usize) {
        if self.reached.len() < end {
            self.reached.resize(end.min(self.capacity), 0);
        }
    }
}

/// Only octets that were reached can be had.
impl Index<Range<usize>> for Memory {
    type Output = [u8];

    fn index(&self, range: Range<usize>) -> &[u8] {
        &self.reached[range]
    }
}

impl IndexMut<Range<usize>> for Memory {
    fn index_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.reached[range]
    }
}
