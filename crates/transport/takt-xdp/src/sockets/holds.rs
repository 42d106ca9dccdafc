//! Holds on received chunks: samples on loan to a reader stay where the kernel put them.
//!
//! A held chunk is not returned to the kernel, so it is not overwritten. Any thread can release a
//! hold; a counter notifies the receiving thread, which then returns the chunk to the kernel. The
//! memory stays mapped while any of it is held, even after the transport is dropped.
//!
//! Safety does not depend on correct counting: held octets are read by atomic loads of words within
//! their chunk.

#![allow(unsafe_code)]

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use takt_wire::{Piece, SharedPayloadMemory};

use crate::sockets::mapping::Mapping;

/// Generation of all pieces: a chunk is not reused while it is held.
pub(crate) const GENERATION: u32 = 1;

/// Memory of all chunks, and hold counters of the receive chunks, which come first.
pub(crate) struct Chunks {
    memory: Mapping,
    chunk_len: usize,
    holds: Box<[AtomicU32]>,
    /// Number of last holds that were released.
    released: AtomicU32,
}

impl Chunks {
    /// Makes hold counters for `received` chunks. The length of a chunk is a multiple of eight.
    pub(crate) fn new(memory: Mapping, chunk_len: usize, received: u32) -> Self {
        let holds = (0..received).map(|_| AtomicU32::new(0)).collect();
        Self { memory, chunk_len, holds, released: AtomicU32::new(0) }
    }

    pub(crate) fn memory(&self) -> &Mapping {
        &self.memory
    }

    /// Reports whether any part of this chunk is held.
    pub(crate) fn is_held(&self, chunk: u32) -> bool {
        // Acquire: earlier reads of the holders happen before writes of the kernel.
        self.holds.get(chunk as usize).is_some_and(|holds| holds.load(Ordering::Acquire) != 0)
    }

    /// Returns the number of last holds that were released, modulo 2^32.
    pub(crate) fn released(&self) -> u32 {
        self.released.load(Ordering::Acquire)
    }

    /// Returns the word of a chunk that contains octet `at`. Panics beyond its end.
    fn word(&self, chunk: usize, at: usize) -> &AtomicU64 {
        assert!(chunk < self.holds.len() && at < self.chunk_len, "an octet of a received chunk");
        // SAFETY: the memory has at least as many chunks as there are counters, each a multiple of
        // eight octets and aligned so, and is mapped and initialized until `self` is dropped. The
        // only writer is the kernel: there are no references to it except as atomics.
        unsafe { AtomicU64::from_ptr(self.memory.as_ptr().add(chunk * self.chunk_len + at / 8 * 8).cast()) }
    }
}

impl SharedPayloadMemory for Chunks {
    fn bytes(&self, _: &Piece) -> Option<&[u8]> {
        None
    }

    fn copy_to(&self, piece: &Piece, from: usize, to: &mut [u8]) {
        let chunk = piece.slot as usize;
        let len = (piece.len as usize).saturating_sub(from).min(to.len());
        let first = (piece.grain as usize).saturating_add(from);
        if chunk >= self.holds.len() || first.checked_add(len).is_none_or(|end| end > self.chunk_len) {
            return;
        }
        let octets = |at: usize| self.word(chunk, at).load(Ordering::Relaxed).to_ne_bytes();
        let (skip, to) = (first % 8, &mut to[..len]);
        let (begin, rest) = to.split_at_mut(if skip == 0 { 0 } else { len.min(8 - skip) });
        if !begin.is_empty() {
            begin.copy_from_slice(&octets(first)[skip..][..begin.len()]);
        }
        let mut at = first + begin.len();
        let mut words = rest.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&octets(at));
            at += 8;
        }
        let end = words.into_remainder();
        if !end.is_empty() {
            end.copy_from_slice(&octets(at)[..end.len()]);
        }
    }

    fn is_intact(&self, piece: &Piece) -> bool {
        self.is_held(piece.slot)
    }

    fn retain(&self, piece: &Piece) {
        if let Some(holds) = self.holds.get(piece.slot as usize) {
            holds.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn release(&self, piece: &Piece) {
        if let Some(holds) = self.holds.get(piece.slot as usize)
            && holds.fetch_sub(1, Ordering::Release) == 1
        {
            self.released.fetch_add(1, Ordering::Release);
        }
    }
}

impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = (0..self.holds.len() as u32).filter(|chunk| self.is_held(*chunk)).count();
        f.debug_struct("Chunks").field("chunk_len", &self.chunk_len).field("held", &held).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks() -> Chunks {
        let memory = Mapping::anonymous(3 * 2048).expect("memory is available");
        // SAFETY: there is no other reference to the memory yet.
        let octets = unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), 3 * 2048) };
        octets.iter_mut().enumerate().for_each(|(at, octet)| *octet = (at * 7 + at / 2048) as u8);
        Chunks::new(memory, 2048, 2)
    }

    #[test]
    fn any_octets_of_a_chunk_are_copied() {
        let chunks = chunks();
        for (first, len) in [(0, 8), (3, 2), (3, 5), (3, 6), (1, 100), (256, 1500), (2047, 1), (2040, 8), (5, 0)] {
            let piece = Piece { slot: 1, generation: GENERATION, grain: first, len };
            let expected: Vec<u8> = (0..len).map(|at| ((2048 + first + at) * 7 + 1) as u8).collect();
            let mut copied = vec![0; len as usize];
            chunks.copy_to(&piece, 0, &mut copied);
            assert_eq!(copied, expected, "{len} octets from {first}");
            let mut rest = [0xee; 4000];
            chunks.copy_to(&piece, 3, &mut rest);
            let behind = expected.get(3..).unwrap_or_default();
            assert_eq!((&rest[..behind.len()], rest[behind.len()]), (behind, 0xee), "and no more");
        }
    }

    #[test]
    fn piece_outside_the_received_chunks_is_not_read() {
        let chunks = chunks();
        for (slot, grain, len) in [(2, 0, 8), (u32::MAX, 0, 8), (0, 2041, 8), (0, u32::MAX, 8), (1, 2048, 1)] {
            let piece = Piece { slot, generation: GENERATION, grain, len };
            let mut copied = [0xee; 8];
            chunks.copy_to(&piece, 0, &mut copied);
            chunks.copy_to(&piece, usize::MAX, &mut copied);
            assert_eq!(copied, [0xee; 8]);
            if slot >= 2 {
                chunks.retain(&piece);
                assert!(!chunks.is_intact(&piece) && !chunks.is_held(slot));
                chunks.release(&piece);
            }
        }
        assert_eq!(chunks.released(), 0);
    }

    #[test]
    fn chunk_is_free_when_its_last_hold_is_released() {
        let chunks = chunks();
        let parts = [8, 600].map(|grain| Piece { slot: 1, generation: GENERATION, grain, len: 100 });
        parts.iter().for_each(|part| chunks.retain(part));
        chunks.release(&parts[0]);
        assert!(chunks.is_held(1) && chunks.is_intact(&parts[1]) && !chunks.is_held(0));
        assert_eq!(chunks.released(), 0);
        chunks.release(&parts[1]);
        assert!(!chunks.is_held(1));
        assert_eq!(chunks.released(), 1);
    }
}
