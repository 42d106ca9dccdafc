//! What another participant lends: its segment, mapped to be read, and the holds in the lane that it came by.
//!
//! Nothing here trusts the lender. A piece is checked against the segment's bounds and generation before it is used
//! ([`Lender::borrow`]); bytes are copied out, word by word, by atomic loads; and a payload that the lender overwrote
//! meanwhile is told from one that it did not by its generation, if the lender keeps that right. If not, it spoils what it
//! lends, which it could have done before it lent it.
//!
//! The memory stays mapped for as long as anything of it is held, also when its lender is gone. When the borrowing transport
//! goes first, the connection stays too ([`Lender::keep`]): until the last hold is gone the lender has a lane with holds.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

use takt_wire::{LENT_PREFIX_LEN, Lent, LentMemory, Piece};

use super::mapping::Mapping;

/// A participant that writes to us, as far as what it lends goes.
#[derive(Debug)]
pub(super) struct Lender {
    /// The lane that the participant writes.
    pub(super) lane: Mapping,
    segment: Mapping,
    /// The connection, once nobody else has it.
    socket: OnceLock<OwnedFd>,
}

impl Lender {
    /// A segment of as many slots as the lane has holds.
    pub(super) fn new(lane: Mapping, segment: Mapping) -> Self {
        Self { lane, segment, socket: OnceLock::new() }
    }

    /// Keeps the connection open until the last hold is gone: the other end takes its end for the end of all holds.
    pub(super) fn keep(&self, socket: OwnedFd) {
        // There is one connection to a lane.
        drop(self.socket.set(socket));
    }

    /// Takes over the hold on a piece that came with a datagram. `None` if there is none, or the piece is none of the segment.
    pub(super) fn borrow(self: &Arc<Self>, piece: Piece) -> Option<Lent> {
        let hold = self.lane.holds().get(piece.slot as usize)?;
        let start = (piece.grain as usize).checked_mul(Piece::GRAIN)?;
        let end = start.checked_add(piece.len as usize)?;
        let is_inside = start >= self.slots() * 8 && end <= self.segment.len() * 8;
        let is_sound = is_inside && piece.len as usize >= LENT_PREFIX_LEN && self.is_intact(&piece);
        (is_sound && hold.load(Ordering::Relaxed) != 0).then(|| Lent::new(Arc::clone(self) as _, piece))
    }

    /// Of the segment, which the lane has holds on.
    fn slots(&self) -> usize {
        self.lane.holds().len()
    }

    fn hold(&self, piece: &Piece) -> &AtomicU64 {
        &self.lane.holds()[piece.slot as usize]
    }
}

impl LentMemory for Lender {
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

    /// What was copied before is copied before the lender sees that it may write again.
    fn release(&self, piece: &Piece) {
        self.hold(piece).fetch_sub(1, Ordering::Release);
    }
}
