//! Loans of another participant: its segment, mapped read-only, and the hold counters in its ring
//! memory.
//!
//! The lender is not trusted. A piece is checked against the bounds and generation of the segment
//! before use ([`Lender::borrow`]). Bytes are copied out word by word with atomic loads. The
//! generation reveals a payload that the lender overwrote meanwhile, if the lender maintains it
//! correctly. A lender that does not only corrupts its own payloads, which it could have done
//! before the loan.
//!
//! The memory stays mapped while any of it is on loan, even after the lender is gone. If the
//! borrowing transport is dropped first, the connection stays open too
//! ([`Lender::keep_connection`]), so that the lender keeps the hold counters until the last hold is
//! released.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

use takt_wire::{PAYLOAD_PREFIX_LEN, Piece, SharedPayload, SharedPayloadMemory};

use super::mapping::Mapping;

/// Memory of a participant that writes to this one: its rings and its segment.
#[derive(Debug)]
pub(super) struct Lender {
    /// Rings that the participant writes.
    pub(super) rings: Mapping,
    segment: Mapping,
    /// Connection, once the borrowing transport is dropped.
    socket: OnceLock<OwnedFd>,
}

impl Lender {
    /// Makes a lender whose segment has as many slots as the rings have hold counters.
    pub(super) fn new(rings: Mapping, segment: Mapping) -> Self {
        Self { rings, segment, socket: OnceLock::new() }
    }

    /// Keeps the connection open until the last hold is released: the lender takes its end for the
    /// end of all holds.
    pub(super) fn keep_connection(&self, socket: OwnedFd) {
        // There is one connection per lender.
        drop(self.socket.set(socket));
    }

    /// Takes over the hold on a piece that arrived with a datagram. Returns `None` if there is no
    /// such hold, or if the piece is outside the segment.
    pub(super) fn borrow(self: &Arc<Self>, piece: Piece) -> Option<SharedPayload> {
        let hold = self.rings.holds().get(piece.slot as usize)?;
        let start = (piece.grain as usize).checked_mul(Piece::GRAIN)?;
        let end = start.checked_add(piece.len as usize)?;
        let is_inside = start >= self.slots() * 8 && end <= self.segment.len() * 8;
        let is_valid = is_inside && piece.len as usize >= PAYLOAD_PREFIX_LEN && self.is_intact(&piece);
        (is_valid && hold.load(Ordering::Relaxed) != 0).then(|| SharedPayload::new(Arc::clone(self) as _, piece))
    }

    /// Returns the number of slots of the segment.
    fn slots(&self) -> usize {
        self.rings.holds().len()
    }

    fn hold(&self, piece: &Piece) -> &AtomicU64 {
        &self.rings.holds()[piece.slot as usize]
    }
}

impl SharedPayloadMemory for Lender {
    fn bytes(&self, _: &Piece) -> Option<&[u8]> {
        None
    }

    fn copy_to(&self, piece: &Piece, from: usize, to: &mut [u8]) {
        let len = (piece.len as usize).saturating_sub(from).min(to.len());
        let first = piece.grain as usize * Piece::GRAIN + from;
        let words = self.segment.words(first / 8..(first + len).div_ceil(8));
        let bytes = |word: &AtomicU64| word.load(Ordering::Relaxed).to_ne_bytes();
        let (skip, to) = (first % 8, &mut to[..len]);
        let (begin, rest) = to.split_at_mut(if skip == 0 { 0 } else { len.min(8 - skip) });
        if let [word, ..] = words {
            begin.copy_from_slice(&bytes(word)[skip..][..begin.len()]);
        }
        let words = &words[usize::from(!begin.is_empty())..];
        let mut chunks = rest.chunks_exact_mut(8);
        for (chunk, word) in (&mut chunks).zip(words) {
            chunk.copy_from_slice(&bytes(word));
        }
        let end = chunks.into_remainder();
        if let Some(word) = words.last().filter(|_| !end.is_empty()) {
            end.copy_from_slice(&bytes(word)[..end.len()]);
        }
    }

    fn is_intact(&self, piece: &Piece) -> bool {
        fence(Ordering::Acquire);
        let generation = self.segment.words(0..self.slots()).get(piece.slot as usize);
        piece.generation != 0
            && generation.is_some_and(|word| word.load(Ordering::Relaxed) == u64::from(piece.generation))
    }

    fn retain(&self, piece: &Piece) {
        self.hold(piece).fetch_add(1, Ordering::Relaxed);
    }

    /// Orders earlier copies before the release, so that the lender cannot overwrite the payload
    /// too early.
    fn release(&self, piece: &Piece) {
        self.hold(piece).fetch_sub(1, Ordering::Release);
    }
}
