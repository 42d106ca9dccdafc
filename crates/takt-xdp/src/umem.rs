//! The memory that frames lie in, shared with the kernel chunk by chunk.
//!
//! The kernel knows chunks of 2 or 4 KiB. Into each chunk of the first part of the memory is received by itself; in the rest so many
//! in a row as the longest frame takes are one frame to be sent, which is written without regard to their bounds.
//!
//! At any moment a chunk is either ours or with the kernel: in the fill or transmit ring, or taken from there and not yet
//! given back. A [`Frame`] stands for one whose chunks are ours. The umem remembers which ones are with the kernel and makes no
//! reference to their bytes, whatever a ring says: an address that the kernel cannot have been given is refused.
//!
//! A received chunk may be held by others besides ([`held`](crate::held)): it is ours then, and is not given to the kernel.

#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use takt_wire::{LentFrame, LentMemory, Piece};

use crate::held::{Chunks, GENERATION};
use crate::mapping::Mapping;

/// A frame that is ours, by its first chunk. Not to be copied: who hands it over has it no more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame(u32);

/// Of how many chunks of which length frames are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Octets, 2048 or 4096.
    pub(crate) chunk_len: usize,
    /// Chunks of one frame at most.
    pub(crate) parts: u32,
}

impl Shape {
    /// Chunks of one frame at most: what the kernel's own frames are made of, less one.
    pub(crate) const PARTS_MAX: u32 = 16;

    /// For received frames of this length, and outgoing ones of that one, as far as there are such.
    pub(crate) fn for_frames(received: usize, sent: usize) -> Self {
        if received <= 2048 - Umem::RX_RESERVE && sent <= 2048 {
            return Self { chunk_len: 2048, parts: 1 };
        }
        let chunk_len = 4096;
        let parts = received.div_ceil(chunk_len - Umem::RX_RESERVE).max(sent.div_ceil(chunk_len));
        Self { chunk_len, parts: (parts.max(1) as u32).min(Self::PARTS_MAX) }
    }

    /// Octets of the longest frame that can be received in so many parts.
    pub(crate) fn received_max(&self, parts: u32) -> usize {
        parts as usize * (self.chunk_len - Umem::RX_RESERVE)
    }
}

/// All frames of a participant's sockets.
pub(crate) struct Umem {
    chunks: Arc<Chunks>,
    /// The same, as others hold parts of it.
    memory: Arc<dyn LentMemory>,
    shape: Shape,
    /// Of each chunk, whether it is with the kernel.
    lent: Vec<bool>,
    /// Chunks below this one are received into.
    received: u32,
    /// Of those the next one that was never taken.
    unused: u32,
    /// Frames to be sent that are ours and not in use; room for all.
    free: Vec<Frame>,
}

/// A chunk that the kernel has sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The whole frame is ours again.
    Frame(Frame),
    /// Other chunks of its frame are on their way.
    Part,
}

impl Umem {
    /// Octets at the start of a received chunk that the kernel keeps for itself.
    pub(crate) const RX_RESERVE: usize = 256;

    /// Memory for `received` chunks to be received into, and so many frames to be sent.
    pub(crate) fn new(shape: Shape, received: u32, sent: u32) -> io::Result<Self> {
        assert!(matches!(shape.chunk_len, 2048 | 4096), "the kernel knows chunks of these sizes alone");
        let count = (received + sent * shape.parts) as usize;
        let chunks = Arc::new(Chunks::new(Mapping::anonymous(shape.chunk_len * count)?, shape.chunk_len, received));
        let memory: Arc<dyn LentMemory> = chunks.clone();
        // The lowest ones are taken first.
        let free = (0..sent).rev().map(|nth| Frame(received + nth * shape.parts)).collect();
        Ok(Self { chunks, memory, shape, lent: vec![false; count], received, unused: 0, free })
    }

    /// What the kernel is to be told of it. Valid as long as this lives.
    pub(crate) fn registration(&self) -> libc::xdp_umem_reg {
        libc::xdp_umem_reg {
            addr: self.chunks.memory().as_ptr() as u64,
            len: self.chunks.memory().len() as u64,
            chunk_size: self.shape.chunk_len as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// Octets of a frame to be sent.
    pub(crate) fn frame_len(&self) -> usize {
        self.shape.chunk_len * self.shape.parts as usize
    }

    /// A frame to be sent that is not in use, if there is one.
    pub(crate) fn take(&mut self) -> Option<Frame> {
        self.free.pop()
    }

    /// The frame is not in use any more.
    pub(crate) fn put(&mut self, frame: Frame) {
        debug_assert!(self.free.len() < self.free.capacity(), "no frame is put back twice");
        self.free.push(frame);
    }

    /// A chunk to be received into that was not in use yet, if there is one.
    pub(crate) fn take_unused(&mut self) -> Option<Frame> {
        let next = (self.unused < self.received).then_some(Frame(self.unused))?;
        self.unused += 1;
        Some(next)
    }

    /// Gives the kernel a chunk to receive into; the address by which a ring names it.
    pub(crate) fn lend(&mut self, frame: Frame) -> u64 {
        assert!(frame.0 < self.received, "a chunk to be received into");
        assert!(!self.chunks.is_held(frame.0), "nobody holds it");
        self.lent[frame.0 as usize] = true;
        u64::from(frame.0) * self.shape.chunk_len as u64
    }

    /// Gives the kernel the chunks of a frame that these octets lie in; the address and length of each part, in order. Panics if
    /// they are not within it, or none.
    pub(crate) fn lend_to_send(
        &mut self,
        frame: Frame,
        range: Range<usize>,
    ) -> impl Iterator<Item = (u64, u32)> + use<> {
        assert!(frame.0 >= self.received, "a frame to be sent");
        assert!(range.start < range.end && range.end <= self.frame_len(), "octets of one frame");
        let chunk_len = self.shape.chunk_len;
        let parts = range.start / chunk_len..range.end.div_ceil(chunk_len);
        for part in parts.clone() {
            self.lent[frame.0 as usize + part] = true;
        }
        let first = frame.0 as usize * chunk_len;
        parts.map(move |part| {
            let start = range.start.max(part * chunk_len);
            let end = range.end.min((part + 1) * chunk_len);
            ((first + start) as u64, (end - start) as u32)
        })
    }

    /// Takes a received chunk back that a ring names by an address within it; also which octet of it the address is. `None` for an
    /// address that is not with the kernel to be received into: it is not to be believed.
    pub(crate) fn regain(&mut self, address: u64) -> Option<(Frame, usize)> {
        let index = self.end_loan(address, 0..self.received as usize)?;
        Some((Frame(index as u32), (address % self.shape.chunk_len as u64) as usize))
    }

    /// Takes a chunk back that was sent; `None` as of [`regain`](Self::regain).
    pub(crate) fn regain_sent(&mut self, address: u64) -> Option<Sent> {
        let (begin, parts) = (self.received as usize, self.shape.parts as usize);
        let index = self.end_loan(address, begin..self.lent.len())?;
        let first = begin + (index - begin) / parts * parts;
        let is_whole = !self.lent[first..first + parts].contains(&true);
        Some(if is_whole { Sent::Frame(Frame(first as u32)) } else { Sent::Part })
    }

    /// Which chunk of these it is, which is ours from now on.
    fn end_loan(&mut self, address: u64, among: Range<usize>) -> Option<usize> {
        // tidy-allow(dropped-cause): no chunk is so far away.
        let index = usize::try_from(address / self.shape.chunk_len as u64).ok()?;
        if !among.contains(&index) {
            return None;
        }
        let lent = self.lent.get_mut(index).filter(|lent| **lent)?;
        *lent = false;
        Some(index)
    }

    /// Octets of a frame that is ours. Panics if they are not within it.
    pub(crate) fn bytes(&self, frame: &Frame, range: Range<usize>) -> &[u8] {
        let at = self.place(frame, &range);
        // SAFETY: `place` saw that the range lies within the mapped memory, all of which is initialised, and that none of its chunks is
        // with the kernel, which therefore does not write there. `bytes_mut` needs `&mut self`.
        unsafe { std::slice::from_raw_parts(at, range.len()) }
    }

    /// The same to be written to.
    pub(crate) fn bytes_mut(&mut self, frame: &Frame, range: Range<usize>) -> &mut [u8] {
        let at = self.place(frame, &range);
        // SAFETY: as of `bytes`; and `&mut self` says that there is no other reference to any frame.
        unsafe { std::slice::from_raw_parts_mut(at, range.len()) }
    }

    /// Octets of a received chunk, as they can be held.
    pub(crate) fn lent_frame(&self, chunk: &Frame, range: Range<usize>) -> LentFrame<'_> {
        let (grain, len) = (range.start as u32, range.len() as u32);
        let piece = Piece { slot: chunk.0, generation: GENERATION, grain, len };
        LentFrame::new(&self.memory, piece, self.bytes(chunk, range))
    }

    /// Whether anybody holds octets of a received chunk.
    pub(crate) fn is_held(&self, chunk: &Frame) -> bool {
        self.chunks.is_held(chunk.0)
    }

    /// Differs from what it was whenever a chunk has lost its last hold.
    pub(crate) fn freed(&self) -> u32 {
        self.chunks.freed()
    }

    /// Copies octets of one frame to the same place of another.
    pub(crate) fn copy(&mut self, from: &Frame, to: &Frame, range: Range<usize>) {
        let (source, target) = (self.place(from, &range), self.place(to, &range));
        // SAFETY: both ranges are valid and not with the kernel, see `bytes`; if they are one and the same, a copy may overlap.
        unsafe { std::ptr::copy(source, target, range.len()) };
    }

    fn place(&self, frame: &Frame, range: &Range<usize>) -> *mut u8 {
        let (first, chunk_len) = (frame.0 as usize, self.shape.chunk_len);
        let parts = if frame.0 < self.received { 1 } else { self.shape.parts as usize };
        assert!(range.start <= range.end && range.end <= parts * chunk_len, "octets of one frame");
        assert!(!self.lent[first..first + parts].contains(&true), "the frame is with the kernel");
        // SAFETY: there are as many chunks as `lent` has entries, `parts` of them from this one on, and the range begins within those.
        unsafe { self.chunks.memory().as_ptr().add(first * chunk_len + range.start) }
    }
}

impl fmt::Debug for Umem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (of, free) = (self.lent.len(), self.free.len());
        f.debug_struct("Umem").field("shape", &self.shape).field("of", &of).field("free", &free).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Shape = Shape { chunk_len: 2048, parts: 1 };
    const LARGE: Shape = Shape { chunk_len: 4096, parts: 3 };

    #[test]
    fn frames_are_taken_written_and_put_back() {
        for shape in [SMALL, LARGE] {
            let mut umem = Umem::new(shape, 2, 3).expect("some memory");
            let len = umem.frame_len();
            assert_eq!(len, shape.chunk_len * shape.parts as usize);
            let frames: Vec<Frame> = std::iter::from_fn(|| umem.take()).collect();
            assert_eq!(frames.len(), 3);
            for (n, frame) in (1..).zip(&frames) {
                umem.bytes_mut(frame, 0..len).fill(n);
            }
            for (n, frame) in (1..).zip(&frames) {
                assert!(umem.bytes(frame, 0..len).iter().all(|byte| *byte == n), "frames do not overlap");
            }
            for chunk in std::iter::from_fn(|| umem.take_unused()).collect::<Vec<_>>() {
                assert!(umem.bytes(&chunk, 0..shape.chunk_len).iter().all(|byte| *byte == 0), "nor with these");
            }
            frames.into_iter().for_each(|frame| umem.put(frame));
            assert!((0..3).all(|_| umem.take().is_some()) && umem.take().is_none());
        }
    }

    #[test]
    fn frames_have_room_for_what_they_are_made_for() {
        assert_eq!(Shape::for_frames(1518, 1646), SMALL);
        assert_eq!(Shape::for_frames(1793, 100), Shape { chunk_len: 4096, parts: 1 });
        assert_eq!(Shape::for_frames(100, 2049), Shape { chunk_len: 4096, parts: 1 });
        assert_eq!(Shape::for_frames(3841, 100), Shape { chunk_len: 4096, parts: 2 });
        assert_eq!(Shape::for_frames(9018, 9146), LARGE);
        assert_eq!(Shape::for_frames(70_000, 70_000).parts, Shape::PARTS_MAX);
        assert_eq!(LARGE.received_max(3), 11_520);
    }

    #[test]
    fn octets_are_copied_from_frame_to_frame() {
        let mut umem = Umem::new(SMALL, 0, 2).expect("some memory");
        let (from, to) = (umem.take().expect("one of two"), umem.take().expect("one of two"));
        umem.bytes_mut(&from, 0..2048).fill(7);
        umem.copy(&from, &to, 64..100);
        assert!(umem.bytes(&to, 64..100).iter().all(|byte| *byte == 7));
        assert_eq!((umem.bytes(&to, 63..64), umem.bytes(&to, 100..101)), (&[0][..], &[0][..]));
    }

    #[test]
    fn only_what_was_lent_is_regained_and_once() {
        let mut umem = Umem::new(Shape { chunk_len: 4096, parts: 1 }, 3, 1).expect("some memory");
        let (first, second) = (umem.take_unused().expect("one of three"), umem.take_unused().expect("one of three"));
        assert_eq!(umem.lend(first), 0);
        assert_eq!(umem.lend(second), 4096);
        for address in [2 * 4096, 3 * 4096, 4 * 4096, u64::MAX] {
            assert_eq!((umem.regain(address), umem.regain_sent(address)), (None, None), "{address}");
        }
        let (second, offset) = umem.regain(4096 + 256).expect("it was lent");
        assert_eq!(offset, 256);
        assert_eq!(umem.regain(4096), None, "twice");
        assert_eq!(umem.bytes(&second, 0..8), [0; 8]);
        assert!(umem.regain(0).is_some());
    }

    #[test]
    fn a_frame_that_is_sent_is_ours_again_when_all_its_parts_are() {
        let mut umem = Umem::new(LARGE, 1, 2).expect("some memory");
        let (_, frame) = (umem.take(), umem.take().expect("one of two"));
        let first = 4 * 4096;
        let parts: Vec<_> = umem.lend_to_send(frame, 100..9000).collect();
        assert_eq!(parts, [(first + 100, 3996), (first + 4096, 4096), (first + 8192, 808)]);
        assert_eq!(umem.regain_sent(first + 4096), Some(Sent::Part));
        assert_eq!(umem.regain_sent(first + 100), Some(Sent::Part));
        let Some(Sent::Frame(frame)) = umem.regain_sent(first + 8192) else { panic!("it was the last one") };
        // One that is short, and one that ends with a chunk.
        assert_eq!(umem.lend_to_send(frame, 62..200).collect::<Vec<_>>(), [(first + 62, 138)]);
        let Some(Sent::Frame(frame)) = umem.regain_sent(first + 62) else { panic!("it had one part") };
        assert_eq!(umem.lend_to_send(frame, 96..4096).collect::<Vec<_>>(), [(first + 96, 4000)]);
        assert!(matches!(umem.regain_sent(first + 96), Some(Sent::Frame(_))));
    }

    #[test]
    #[should_panic(expected = "the frame is with the kernel")]
    fn what_is_with_the_kernel_is_not_looked_at() {
        let mut umem = Umem::new(SMALL, 1, 0).expect("some memory");
        let frame = umem.take_unused().expect("there is one");
        let copy = Frame(frame.0);
        umem.lend(frame);
        umem.bytes(&copy, 0..1);
    }

    #[test]
    #[should_panic(expected = "octets of one frame")]
    fn a_range_beyond_the_frame_is_refused() {
        let mut umem = Umem::new(SMALL, 0, 2).expect("some memory");
        let frame = umem.take().expect("one of two");
        umem.bytes(&frame, 2040..2049);
    }
}
