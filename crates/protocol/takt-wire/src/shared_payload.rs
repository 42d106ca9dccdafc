//! Loaned payloads in memory that the processes of one host share, outside of the RTPS message.
//!
//! This is specific to Takt and never appears on a network. If a datagram travels through shared
//! memory, the payload of its DATA may stay where it is. The submessage then carries the first four
//! octets of the payload, the encapsulation header. A [`Piece`] next to the datagram locates the
//! whole payload. A [`SharedPayload`] is one counted reference to such a payload. The memory is
//! reused when the last reference of any process is dropped.
//!
//! Only the owner of the memory may write. The receiver copies the payload
//! ([`SharedPayloadMemory::copy_to`]), since a broken or hostile owner may write at the wrong time.
//! It checks afterwards that the copy is that payload ([`SharedPayload::is_intact`]). Within a
//! process, the loan may be the sample itself, an *object*, which is serialized on demand.
//!
//! A datagram from a network may also lie in memory that can be referenced: where a device or the
//! kernel has put it. Each [`SharedPayload`] of such a [`SharedFrame`] references one part. Parts
//! without a reference are reused when the next datagram is received.
//!
//! This module does not define the owner of the memory or how it is shared.

use alloc::sync::Arc;
use core::any::Any;
use core::fmt;

/// Octets of a loaned payload that its DATA carries nevertheless: the encapsulation header.
pub const PAYLOAD_PREFIX_LEN: usize = 4;

/// Location of a loaned payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Slot of the owner's memory.
    pub slot: u32,
    /// Number of loans of the slot so far; never 0.
    pub generation: u32,
    /// Offset in units of 64 octets. For a part of a [`SharedFrame`], which is never transmitted,
    /// the offset in octets.
    pub grain: u32,
    /// Length in octets.
    pub len: u32,
}

impl Piece {
    /// Length of a serialized piece in octets.
    pub const LEN: usize = 16;
    /// Octets of a grain, the unit of offsets.
    pub const GRAIN: usize = 64;

    /// Serializes the piece.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let parts = [self.slot, self.generation, self.grain, self.len];
        for (to, part) in bytes.chunks_exact_mut(4).zip(parts) {
            to.copy_from_slice(&part.to_le_bytes());
        }
        bytes
    }

    /// Parses the result of [`to_bytes`](Self::to_bytes). Any octets are valid, but may locate no
    /// payload.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        let part = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self { slot: part(0), generation: part(4), grain: part(8), len: part(12) }
    }
}

/// Memory that holds loaned payloads, as one of the sharing processes sees it. No call blocks or
/// allocates.
pub trait SharedPayloadMemory: fmt::Debug + Send + Sync {
    /// Returns the payload if it cannot be written while it is on loan, that is, to its owner. An
    /// object is serialized once, which allocates.
    fn bytes(&self, piece: &Piece) -> Option<&[u8]>;

    /// Returns the first octets of the payload if [`bytes`](Self::bytes) has any, without
    /// serializing the rest of it.
    fn prefix(&self, piece: &Piece) -> Option<[u8; PAYLOAD_PREFIX_LEN]> {
        self.bytes(piece)?.first_chunk().copied()
    }

    /// Returns the sample if the loan is an object.
    fn object(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        None
    }

    /// Copies octets of the payload, starting at offset `from`. Octets of `to` beyond the end of
    /// the payload stay unchanged.
    fn copy_to(&self, piece: &Piece, from: usize, to: &mut [u8]);

    /// Reports whether the slot still holds the payload of this loan.
    fn is_intact(&self, piece: &Piece) -> bool;

    /// Adds a reference to the piece.
    fn retain(&self, piece: &Piece);

    /// Drops a reference to the piece.
    fn release(&self, piece: &Piece);
}

/// Counted reference to a loaned payload.
pub struct SharedPayload {
    memory: Arc<dyn SharedPayloadMemory>,
    piece: Piece,
}

impl SharedPayload {
    /// Takes over a reference that is already counted.
    #[must_use]
    pub fn new(memory: Arc<dyn SharedPayloadMemory>, piece: Piece) -> Self {
        Self { memory, piece }
    }

    /// Returns the location of the payload.
    #[must_use]
    pub fn piece(&self) -> Piece {
        self.piece
    }

    /// Reports whether the payload lies in this memory.
    #[must_use]
    pub fn lies_in<M: SharedPayloadMemory>(&self, memory: &Arc<M>) -> bool {
        core::ptr::addr_eq(Arc::as_ptr(&self.memory), Arc::as_ptr(memory))
    }

    /// Returns the length of the payload in octets, encapsulation header included.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a payload is never empty")]
    pub fn len(&self) -> usize {
        self.piece.len as usize
    }

    /// Returns the payload; see [`SharedPayloadMemory::bytes`].
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        self.memory.bytes(&self.piece)
    }

    /// Returns the first octets of the payload; see [`SharedPayloadMemory::prefix`].
    #[must_use]
    pub fn prefix(&self) -> Option<[u8; PAYLOAD_PREFIX_LEN]> {
        self.memory.prefix(&self.piece)
    }

    /// Returns the sample; see [`SharedPayloadMemory::object`].
    #[must_use]
    pub fn object(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.memory.object()
    }

    /// Copies octets of the payload; see [`SharedPayloadMemory::copy_to`].
    pub fn copy_to(&self, from: usize, to: &mut [u8]) {
        self.memory.copy_to(&self.piece, from, to);
    }

    /// Reports whether octets copied before this call are the payload, provided that the owner
    /// obeys the protocol.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.memory.is_intact(&self.piece)
    }
}

/// Received datagram in memory that can be referenced. It stays valid while the receiving transport
/// loans it; [`reference`](Self::reference) extends the lifetime of a part.
#[derive(Clone, Copy, Debug)]
pub struct SharedFrame<'a> {
    memory: &'a Arc<dyn SharedPayloadMemory>,
    piece: Piece,
    octets: &'a [u8],
}

impl<'a> SharedFrame<'a> {
    /// Returns the datagram `octets`, which is `piece` of the memory.
    #[must_use]
    pub fn new(memory: &'a Arc<dyn SharedPayloadMemory>, piece: Piece, octets: &'a [u8]) -> Self {
        Self { memory, piece, octets }
    }

    /// Returns a reference to a part of the datagram. `None` if the address range of `part` lies
    /// outside of the datagram, or if it is too short for a payload.
    #[must_use]
    pub fn reference(&self, part: &[u8]) -> Option<SharedPayload> {
        let offset = (part.as_ptr() as usize).checked_sub(self.octets.as_ptr() as usize)?;
        let is_inside = offset.checked_add(part.len()).is_some_and(|end| end <= self.octets.len());
        if !is_inside || part.len() < PAYLOAD_PREFIX_LEN {
            return None;
        }
        let piece = Piece { grain: self.piece.grain + offset as u32, len: part.len() as u32, ..self.piece };
        self.memory.retain(&piece);
        Some(SharedPayload::new(Arc::clone(self.memory), piece))
    }
}

/// Loan that accompanies a received datagram.
#[derive(Clone, Copy, Debug, Default)]
pub enum SharedBuffer<'a> {
    /// No loan.
    #[default]
    Nothing,
    /// Payload of the DATA in the datagram.
    Payload(&'a SharedPayload),
    /// The datagram.
    Frame(SharedFrame<'a>),
}

impl<'a> SharedBuffer<'a> {
    /// Returns the payload that accompanies the datagram, if any.
    #[must_use]
    pub fn payload(&self) -> Option<&'a SharedPayload> {
        if let Self::Payload(payload) = self { Some(payload) } else { None }
    }
}

impl Clone for SharedPayload {
    fn clone(&self) -> Self {
        self.memory.retain(&self.piece);
        Self { memory: Arc::clone(&self.memory), piece: self.piece }
    }
}

impl Drop for SharedPayload {
    fn drop(&mut self) {
        self.memory.release(&self.piece);
    }
}

impl PartialEq for SharedPayload {
    fn eq(&self, other: &Self) -> bool {
        self.piece == other.piece && core::ptr::addr_eq(Arc::as_ptr(&self.memory), Arc::as_ptr(&other.memory))
    }
}

impl Eq for SharedPayload {}

impl fmt::Debug for SharedPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.piece.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU32, Ordering};

    #[derive(Debug, Default)]
    struct Counted(AtomicU32);

    impl SharedPayloadMemory for Counted {
        fn bytes(&self, _: &Piece) -> Option<&[u8]> {
            None
        }

        fn copy_to(&self, _: &Piece, _: usize, _: &mut [u8]) {}

        fn is_intact(&self, piece: &Piece) -> bool {
            piece.generation == 1
        }

        fn retain(&self, _: &Piece) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn release(&self, _: &Piece) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn references_are_counted() {
        let memory = Arc::new(Counted(AtomicU32::new(1)));
        let piece = Piece { slot: 1, generation: 1, grain: 3, len: 9 };
        let payload = SharedPayload::new(memory.clone(), piece);
        let other = payload.clone();
        assert_eq!((memory.0.load(Ordering::Relaxed), &payload), (2, &other));
        assert!(payload.lies_in(&memory) && !payload.lies_in(&Arc::new(Counted::default())));
        drop((payload, other));
        assert_eq!(memory.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn parts_of_a_frame_are_referenced_individually() {
        let counted = Arc::new(Counted::default());
        let memory: Arc<dyn SharedPayloadMemory> = counted.clone();
        let octets = [[1_u8; 40], [2; 40]].concat();
        let frame = SharedFrame::new(&memory, Piece { slot: 3, generation: 1, grain: 300, len: 40 }, &octets[..40]);
        let held = frame.reference(&octets[8..40]).expect("the frame owns them");
        assert_eq!(held.piece(), Piece { slot: 3, generation: 1, grain: 308, len: 32 });
        let other = frame.reference(&octets[..4]).expect("these too");
        assert_eq!((other.piece().grain, counted.0.load(Ordering::Relaxed)), (300, 2));
        assert_eq!(
            [frame.reference(&octets[36..41]), frame.reference(&octets[8..11]), frame.reference(&[0; 8])],
            [None, None, None]
        );
        assert_eq!(SharedFrame::new(&memory, held.piece(), &octets[40..]).reference(&octets[..40]), None, "before it");
        drop((held, other));
        assert_eq!(counted.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn piece_round_trips() {
        let piece = Piece { slot: 1, generation: u32::MAX, grain: 0x0102_0304, len: 9 };
        assert_eq!(Piece::from_bytes(piece.to_bytes()), piece);
    }
}
