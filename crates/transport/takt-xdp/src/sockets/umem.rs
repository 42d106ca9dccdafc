//! Umem: memory of the frames, shared with the kernel by chunks.
//!
//! The kernel uses chunks of 2 or 4 KiB. The first part of the memory holds receive chunks. The
//! rest holds transmit frames. Each consists of as many consecutive chunks as the longest frame
//! takes, and is written regardless of their bounds.
//!
//! At any moment, a chunk belongs either to the process or to the kernel; the kernel owns it while
//! it is in the fill or transmit ring, or until it is returned. A [`Frame`] stands for chunks that
//! the process owns. The umem records the chunks that the kernel owns, and makes no reference to
//! their bytes, regardless of the rings: an address that the kernel does not own is refused.
//!
//! A received chunk may also be held ([`holds`](crate::sockets::holds)): the process owns it then,
//! and does not return it to the kernel.

#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use takt_wire::{Piece, SharedFrame, SharedPayloadMemory};

use crate::sockets::holds::{Chunks, GENERATION};
use crate::sockets::mapping::Mapping;

/// Frame that the process owns, identified by its first chunk. Not `Copy`: handing it over ends the
/// ownership.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame(u32);

/// Size and number of the chunks of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Size of a chunk in octets, 2048 or 4096.
    pub(crate) chunk_len: usize,
    /// Maximum number of chunks of a frame.
    pub(crate) parts: u32,
}

impl Shape {
    /// Maximum number of chunks of a frame: that of the kernel's own frames, less one.
    pub(crate) const PARTS_MAX: u32 = 16;

    /// Returns the layout for received and sent frames of these lengths, within the limits.
    pub(crate) fn for_frames(received: usize, sent: usize) -> Self {
        if received <= 2048 - Umem::RX_RESERVE && sent <= 2048 {
            return Self { chunk_len: 2048, parts: 1 };
        }
        let chunk_len = 4096;
        let parts = received.div_ceil(chunk_len - Umem::RX_RESERVE).max(sent.div_ceil(chunk_len));
        Self { chunk_len, parts: (parts.max(1) as u32).min(Self::PARTS_MAX) }
    }

    /// Returns the maximum length of a frame received in `parts` parts, in octets.
    pub(crate) fn received_max(&self, parts: u32) -> usize {
        parts as usize * (self.chunk_len - Umem::RX_RESERVE)
    }
}

/// Frames of a participant's sockets.
pub(crate) struct Umem {
    chunks: Arc<Chunks>,
    /// The same memory, as loans refer to it.
    memory: Arc<dyn SharedPayloadMemory>,
    shape: Shape,
    /// Whether the kernel owns each chunk.
    kernel_owned: Vec<bool>,
    /// Number of receive chunks, which come first.
    received: u32,
    /// Next receive chunk that was never taken.
    unused: u32,
    /// Free transmit frames; has capacity for all.
    free: Vec<Frame>,
}

/// Chunk that the kernel has sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The process owns the whole frame again.
    Frame(Frame),
    /// Other chunks of the frame are still in transmission.
    Part,
}

impl Umem {
    /// Octets at the start of a received chunk that the kernel reserves.
    pub(crate) const RX_RESERVE: usize = 256;

    /// Allocates memory for `received` receive chunks and `sent` transmit frames.
    pub(crate) fn new(shape: Shape, received: u32, sent: u32) -> io::Result<Self> {
        assert!(matches!(shape.chunk_len, 2048 | 4096), "the kernel supports only chunks of these sizes");
        let count = (received + sent * shape.parts) as usize;
        let chunks = Arc::new(Chunks::new(Mapping::anonymous(shape.chunk_len * count)?, shape.chunk_len, received));
        let memory: Arc<dyn SharedPayloadMemory> = chunks.clone();
        // The lowest ones are taken first.
        let free = (0..sent).rev().map(|nth| Frame(received + nth * shape.parts)).collect();
        Ok(Self { chunks, memory, shape, kernel_owned: vec![false; count], received, unused: 0, free })
    }

    /// Returns the registration for the kernel. Valid as long as this lives.
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

    /// Returns the size of a transmit frame in octets.
    pub(crate) fn frame_len(&self) -> usize {
        self.shape.chunk_len * self.shape.parts as usize
    }

    /// Takes a free transmit frame, if there is one.
    pub(crate) fn take(&mut self) -> Option<Frame> {
        self.free.pop()
    }

    /// Returns a frame to the free ones.
    pub(crate) fn put(&mut self, frame: Frame) {
        debug_assert!(self.free.len() < self.free.capacity(), "no frame is put back twice");
        self.free.push(frame);
    }

    /// Takes a receive chunk that was not in use yet, if there is one.
    pub(crate) fn take_unused(&mut self) -> Option<Frame> {
        let next = (self.unused < self.received).then_some(Frame(self.unused))?;
        self.unused += 1;
        Some(next)
    }

    /// Gives the kernel a chunk for receiving, and returns its address in the ring.
    pub(crate) fn give_to_receive(&mut self, frame: Frame) -> u64 {
        assert!(frame.0 < self.received, "a chunk to be received into");
        assert!(!self.chunks.is_held(frame.0), "the chunk is not held");
        self.kernel_owned[frame.0 as usize] = true;
        u64::from(frame.0) * self.shape.chunk_len as u64
    }

    /// Gives the kernel the chunks of a frame that contain these octets, and returns the address
    /// and length of each part, in order. Panics if the range exceeds the frame or is empty.
    pub(crate) fn give_to_send(
        &mut self,
        frame: Frame,
        range: Range<usize>,
    ) -> impl Iterator<Item = (u64, u32)> + use<> {
        assert!(frame.0 >= self.received, "a frame to be sent");
        assert!(range.start < range.end && range.end <= self.frame_len(), "octets of one frame");
        let chunk_len = self.shape.chunk_len;
        let parts = range.start / chunk_len..range.end.div_ceil(chunk_len);
        for part in parts.clone() {
            self.kernel_owned[frame.0 as usize + part] = true;
        }
        let first = frame.0 as usize * chunk_len;
        parts.map(move |part| {
            let start = range.start.max(part * chunk_len);
            let end = range.end.min((part + 1) * chunk_len);
            ((first + start) as u64, (end - start) as u32)
        })
    }

    /// Takes back a received chunk by an address within it, and returns the chunk and the offset of
    /// the address. `None` if the kernel does not own that chunk for receiving: the address is
    /// invalid.
    pub(crate) fn take_received(&mut self, address: u64) -> Option<(Frame, usize)> {
        let index = self.end_ownership(address, 0..self.received as usize)?;
        Some((Frame(index as u32), (address % self.shape.chunk_len as u64) as usize))
    }

    /// Takes back a sent chunk; `None` as in [`take_received`](Self::take_received).
    pub(crate) fn take_sent(&mut self, address: u64) -> Option<Sent> {
        let (begin, parts) = (self.received as usize, self.shape.parts as usize);
        let index = self.end_ownership(address, begin..self.kernel_owned.len())?;
        let first = begin + (index - begin) / parts * parts;
        let is_whole = !self.kernel_owned[first..first + parts].contains(&true);
        Some(if is_whole { Sent::Frame(Frame(first as u32)) } else { Sent::Part })
    }

    /// Returns the index of the chunk at this address, if it is among these, and ends the kernel's
    /// ownership.
    fn end_ownership(&mut self, address: u64, among: Range<usize>) -> Option<usize> {
        // tidy-allow(dropped-cause): no chunk has such an address.
        let index = usize::try_from(address / self.shape.chunk_len as u64).ok()?;
        if !among.contains(&index) {
            return None;
        }
        let owned = self.kernel_owned.get_mut(index).filter(|owned| **owned)?;
        *owned = false;
        Some(index)
    }

    /// Returns octets of an owned frame. Panics if the range exceeds it.
    pub(crate) fn bytes(&self, frame: &Frame, range: Range<usize>) -> &[u8] {
        let at = self.place(frame, &range);
        // SAFETY: `place` checked that the range lies within the mapped memory, all of which is
        // initialized, and that the kernel owns none of its chunks and so does not write there.
        // `bytes_mut` needs `&mut self`.
        unsafe { std::slice::from_raw_parts(at, range.len()) }
    }

    /// Returns the same octets for writing.
    pub(crate) fn bytes_mut(&mut self, frame: &Frame, range: Range<usize>) -> &mut [u8] {
        let at = self.place(frame, &range);
        // SAFETY: as for `bytes`; and `&mut self` excludes other references to any frame.
        unsafe { std::slice::from_raw_parts_mut(at, range.len()) }
    }

    /// Returns octets of a received chunk as a loan.
    pub(crate) fn loaned_frame(&self, chunk: &Frame, range: Range<usize>) -> SharedFrame<'_> {
        let (grain, len) = (range.start as u32, range.len() as u32);
        let piece = Piece { slot: chunk.0, generation: GENERATION, grain, len };
        SharedFrame::new(&self.memory, piece, self.bytes(chunk, range))
    }

    /// Reports whether octets of a received chunk are held.
    pub(crate) fn is_held(&self, chunk: &Frame) -> bool {
        self.chunks.is_held(chunk.0)
    }

    /// Returns a counter that changes whenever the last hold on a chunk is released.
    pub(crate) fn released(&self) -> u32 {
        self.chunks.released()
    }

    /// Copies octets of one frame to the same offset in another.
    pub(crate) fn copy(&mut self, from: &Frame, to: &Frame, range: Range<usize>) {
        let (source, target) = (self.place(from, &range), self.place(to, &range));
        // SAFETY: both ranges are valid and not owned by the kernel, see `bytes`; `copy` allows the
        // same range for both.
        unsafe { std::ptr::copy(source, target, range.len()) };
    }

    fn place(&self, frame: &Frame, range: &Range<usize>) -> *mut u8 {
        let (first, chunk_len) = (frame.0 as usize, self.shape.chunk_len);
        let parts = if frame.0 < self.received { 1 } else { self.shape.parts as usize };
        assert!(range.start <= range.end && range.end <= parts * chunk_len, "octets of one frame");
        assert!(!self.kernel_owned[first..first + parts].contains(&true), "the kernel owns the frame");
        // SAFETY: there are as many chunks as `kernel_owned` has entries, `parts` of them from this
        // one on, and the range begins within those.
        unsafe { self.chunks.memory().as_ptr().add(first * chunk_len + range.start) }
    }
}

impl fmt::Debug for Umem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (of, free) = (self.kernel_owned.len(), self.free.len());
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
            let mut umem = Umem::new(shape, 2, 3).expect("memory is available");
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
    fn frames_have_room_for_the_requested_lengths() {
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
        let mut umem = Umem::new(SMALL, 0, 2).expect("memory is available");
        let (from, to) = (umem.take().expect("one of two"), umem.take().expect("one of two"));
        umem.bytes_mut(&from, 0..2048).fill(7);
        umem.copy(&from, &to, 64..100);
        assert!(umem.bytes(&to, 64..100).iter().all(|byte| *byte == 7));
        assert_eq!((umem.bytes(&to, 63..64), umem.bytes(&to, 100..101)), (&[0][..], &[0][..]));
    }

    #[test]
    fn only_kernel_owned_chunks_are_taken_back_and_only_once() {
        let mut umem = Umem::new(Shape { chunk_len: 4096, parts: 1 }, 3, 1).expect("memory is available");
        let (first, second) = (umem.take_unused().expect("one of three"), umem.take_unused().expect("one of three"));
        assert_eq!(umem.give_to_receive(first), 0);
        assert_eq!(umem.give_to_receive(second), 4096);
        for address in [2 * 4096, 3 * 4096, 4 * 4096, u64::MAX] {
            assert_eq!((umem.take_received(address), umem.take_sent(address)), (None, None), "{address}");
        }
        let (second, offset) = umem.take_received(4096 + 256).expect("the frame was loaned");
        assert_eq!(offset, 256);
        assert_eq!(umem.take_received(4096), None, "twice");
        assert_eq!(umem.bytes(&second, 0..8), [0; 8]);
        assert!(umem.take_received(0).is_some());
    }

    #[test]
    fn sent_frame_is_free_when_all_its_parts_are_sent() {
        let mut umem = Umem::new(LARGE, 1, 2).expect("memory is available");
        let (_, frame) = (umem.take(), umem.take().expect("one of two"));
        let first = 4 * 4096;
        let parts: Vec<_> = umem.give_to_send(frame, 100..9000).collect();
        assert_eq!(parts, [(first + 100, 3996), (first + 4096, 4096), (first + 8192, 808)]);
        assert_eq!(umem.take_sent(first + 4096), Some(Sent::Part));
        assert_eq!(umem.take_sent(first + 100), Some(Sent::Part));
        let Some(Sent::Frame(frame)) = umem.take_sent(first + 8192) else { panic!("expected the last part") };
        // A frame of one part, and one that ends with a chunk.
        assert_eq!(umem.give_to_send(frame, 62..200).collect::<Vec<_>>(), [(first + 62, 138)]);
        let Some(Sent::Frame(frame)) = umem.take_sent(first + 62) else { panic!("expected a single part") };
        assert_eq!(umem.give_to_send(frame, 96..4096).collect::<Vec<_>>(), [(first + 96, 4000)]);
        assert!(matches!(umem.take_sent(first + 96), Some(Sent::Frame(_))));
    }

    #[test]
    #[should_panic(expected = "the kernel owns the frame")]
    fn frame_owned_by_the_kernel_is_not_accessible() {
        let mut umem = Umem::new(SMALL, 1, 0).expect("memory is available");
        let frame = umem.take_unused().expect("a frame is unused");
        let copy = Frame(frame.0);
        umem.give_to_receive(frame);
        umem.bytes(&copy, 0..1);
    }

    #[test]
    #[should_panic(expected = "octets of one frame")]
    fn range_beyond_the_frame_is_refused() {
        let mut umem = Umem::new(SMALL, 0, 2).expect("memory is available");
        let frame = umem.take().expect("one of two");
        umem.bytes(&frame, 2040..2049);
    }
}
