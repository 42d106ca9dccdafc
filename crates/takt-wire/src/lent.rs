//! Payloads that lie beside the message, in memory that processes of one host share.
//!
//! Takt's own, and never on a network: where a datagram travels through shared memory, the payload of its DATA may stay where
//! it is. The submessage then carries the payload's first four octets, the encapsulation header, and a [`Piece`] beside the
//! datagram says where all of it lies. A [`Lent`] is one hold on such a payload: its memory is used again only when the last
//! one is gone, in whatever process.
//!
//! Who lends alone may write. Who borrows reads by copying ([`LentMemory::copy_to`]), since a broken or hostile lender may
//! write at the wrong time, and asks afterwards whether what it got was still that payload ([`Lent::is_intact`]).
//! Within a process not even the payload need be there: what is lent is then the sample itself, an *object*, and its bytes are
//! made when somebody asks for them.
//!
//! A datagram that came over a network may lie in memory that can be held too: where a device or the kernel has put it. Of such a
//! [`LentFrame`] parts can be held, each by its own [`Lent`]; what nobody holds by the time when the next datagram is received is used again.
//!
//! Deliberately not here: whose memory it is and how it is shared.

use alloc::sync::Arc;
use core::any::Any;
use core::fmt;

/// Octets of a payload that travel in its DATA though all of it is lent: the encapsulation header.
pub const LENT_PREFIX_LEN: usize = 4;

/// Where a lent payload lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which slot of the lender's memory.
    pub slot: u32,
    /// How often the slot had been lent; never 0.
    pub generation: u32,
    /// Its place, in units of 64 octets; of a part of a [`LentFrame`], which never travels, in octets.
    pub grain: u32,
    /// Its length in octets.
    pub len: u32,
}

impl Piece {
    /// Octets of a piece as it travels.
    pub const LEN: usize = 16;
    /// Octets of a grain.
    pub const GRAIN: usize = 64;

    /// As it travels.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let parts = [self.slot, self.generation, self.grain, self.len];
        for (to, part) in bytes.chunks_exact_mut(4).zip(parts) {
            to.copy_from_slice(&part.to_le_bytes());
        }
        bytes
    }

    /// What [`to_bytes`](Self::to_bytes) wrote. Any octets are some piece, maybe of nothing.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        let part = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self { slot: part(0), generation: part(4), grain: part(8), len: part(12) }
    }
}

/// Memory with lent payloads, as one of those sees it who share it. No call waits or allocates.
pub trait LentMemory: fmt::Debug + Send + Sync {
    /// The payload itself, if nobody can write to it while it is lent: for the lender. Of an object it is made, once, which
    /// allocates.
    fn bytes(&self, piece: &Piece) -> Option<&[u8]>;

    /// The payload's first octets, where [`bytes`](Self::bytes) has any: no reason to make the others.
    fn prefix(&self, piece: &Piece) -> Option<[u8; LENT_PREFIX_LEN]> {
        self.bytes(piece)?.first_chunk().copied()
    }

    /// The sample, if it is that which is lent.
    fn object(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        None
    }

    /// Copies what lies `from` octets behind the payload's beginning. What is beyond its end is left as it was.
    fn copy_to(&self, piece: &Piece, from: usize, to: &mut [u8]);

    /// Whether the slot still has the payload that was lent.
    fn is_intact(&self, piece: &Piece) -> bool;

    /// There is one more hold on the piece.
    fn retain(&self, piece: &Piece);

    /// There is one hold less.
    fn release(&self, piece: &Piece);
}

/// A hold on a lent payload.
pub struct Lent {
    memory: Arc<dyn LentMemory>,
    piece: Piece,
}

impl Lent {
    /// Takes over a hold that was counted already.
    #[must_use]
    pub fn new(memory: Arc<dyn LentMemory>, piece: Piece) -> Self {
        Self { memory, piece }
    }

    /// Where it lies.
    #[must_use]
    pub fn piece(&self) -> Piece {
        self.piece
    }

    /// Whether it lies in this memory.
    #[must_use]
    pub fn lies_in<M: LentMemory>(&self, memory: &Arc<M>) -> bool {
        core::ptr::addr_eq(Arc::as_ptr(&self.memory), Arc::as_ptr(memory))
    }

    /// Its length in octets, encapsulation header included.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a payload is never empty")]
    pub fn len(&self) -> usize {
        self.piece.len as usize
    }

    /// See [`LentMemory::bytes`].
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        self.memory.bytes(&self.piece)
    }

    /// See [`LentMemory::prefix`].
    #[must_use]
    pub fn prefix(&self) -> Option<[u8; LENT_PREFIX_LEN]> {
        self.memory.prefix(&self.piece)
    }

    /// See [`LentMemory::object`].
    #[must_use]
    pub fn object(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.memory.object()
    }

    /// See [`LentMemory::copy_to`].
    pub fn copy_to(&self, from: usize, to: &mut [u8]) {
        self.memory.copy_to(&self.piece, from, to);
    }

    /// Whether what was copied before this call was the payload, as far as its lender keeps to the rules.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.memory.is_intact(&self.piece)
    }
}

/// A received datagram in memory that can be held. It is held as long as whoever received it lends it; [`hold`](Self::hold) is for
/// longer.
#[derive(Clone, Copy, Debug)]
pub struct LentFrame<'a> {
    memory: &'a Arc<dyn LentMemory>,
    piece: Piece,
    octets: &'a [u8],
}

impl<'a> LentFrame<'a> {
    /// The datagram `octets`, which are `piece` of the memory.
    #[must_use]
    pub fn new(memory: &'a Arc<dyn LentMemory>, piece: Piece, octets: &'a [u8]) -> Self {
        Self { memory, piece, octets }
    }

    /// A hold on octets of it. `None` if these are none of its own, by where they lie, or too few for a payload.
    #[must_use]
    pub fn hold(&self, part: &[u8]) -> Option<Lent> {
        let offset = (part.as_ptr() as usize).checked_sub(self.octets.as_ptr() as usize)?;
        let is_inside = offset.checked_add(part.len()).is_some_and(|end| end <= self.octets.len());
        if !is_inside || part.len() < LENT_PREFIX_LEN {
            return None;
        }
        let piece = Piece { grain: self.piece.grain + offset as u32, len: part.len() as u32, ..self.piece };
        self.memory.retain(&piece);
        Some(Lent::new(Arc::clone(self.memory), piece))
    }
}

/// What there is to hold beside a received datagram.
#[derive(Clone, Copy, Debug, Default)]
pub enum Beside<'a> {
    /// Nothing.
    #[default]
    Nothing,
    /// The payload that its DATA stands for.
    Payload(&'a Lent),
    /// The datagram itself.
    Frame(LentFrame<'a>),
}

impl<'a> Beside<'a> {
    /// The payload that goes with the datagram, if one does.
    #[must_use]
    pub fn payload(&self) -> Option<&'a Lent> {
        if let Self::Payload(lent) = self { Some(lent) } else { None }
    }
}

impl Clone for Lent {
    fn clone(&self) -> Self {
        self.memory.retain(&self.piece);
        Self { memory: Arc::clone(&self.memory), piece: self.piece }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.memory.release(&self.piece);
    }
}

impl PartialEq for Lent {
    fn eq(&self, other: &Self) -> bool {
        self.piece == other.piece && core::ptr::addr_eq(Arc::as_ptr(&self.memory), Arc::as_ptr(&other.memory))
    }
}

impl Eq for Lent {}

impl fmt::Debug for Lent {
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

    impl LentMemory for Counted {
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
    fn holds_are_counted() {
        let memory = Arc::new(Counted(AtomicU32::new(1)));
        let piece = Piece { slot: 1, generation: 1, grain: 3, len: 9 };
        let lent = Lent::new(memory.clone(), piece);
        let other = lent.clone();
        assert_eq!((memory.0.load(Ordering::Relaxed), &lent), (2, &other));
        assert!(lent.lies_in(&memory) && !lent.lies_in(&Arc::new(Counted::default())));
        drop((lent, other));
        assert_eq!(memory.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn parts_of_a_frame_are_held_one_by_one() {
        let counted = Arc::new(Counted::default());
        let memory: Arc<dyn LentMemory> = counted.clone();
        let octets = [[1_u8; 40], [2; 40]].concat();
        let frame = LentFrame::new(&memory, Piece { slot: 3, generation: 1, grain: 300, len: 40 }, &octets[..40]);
        let held = frame.hold(&octets[8..40]).expect("they are the frame's");
        assert_eq!(held.piece(), Piece { slot: 3, generation: 1, grain: 308, len: 32 });
        let other = frame.hold(&octets[..4]).expect("these too");
        assert_eq!((other.piece().grain, counted.0.load(Ordering::Relaxed)), (300, 2));
        assert_eq!([frame.hold(&octets[36..41]), frame.hold(&octets[8..11]), frame.hold(&[0; 8])], [None, None, None]);
        assert_eq!(LentFrame::new(&memory, held.piece(), &octets[40..]).hold(&octets[..40]), None, "before it");
        drop((held, other));
        assert_eq!(counted.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_piece_travels() {
        let piece = Piece { slot: 1, generation: u32::MAX, grain: 0x0102_0304, len: 9 };
        assert_eq!(Piece::from_bytes(piece.to_bytes()), piece);
    }
}
