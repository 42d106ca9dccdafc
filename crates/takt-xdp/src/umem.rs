//! The memory that frames lie in, shared with the kernel frame by frame.
//!
//! At any moment a frame is either ours or with the kernel: in the fill or transmit ring, or taken from there and not yet
//! given back. A [`Frame`] stands for one that is ours. The umem remembers which ones are with the kernel and makes no
//! reference to their bytes, whatever a ring says: an address that the kernel cannot have been given is refused.

#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::ops::Range;

use crate::mapping::Mapping;

/// A frame that is ours. Not to be copied: who hands it over has it no more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame(u32);

/// All frames of a socket.
pub(crate) struct Umem {
    memory: Mapping,
    frame_len: usize,
    /// Of each frame, whether it is with the kernel.
    lent: Vec<bool>,
    /// Frames that are ours and not in use; room for all.
    free: Vec<Frame>,
}

impl Umem {
    /// Octets at the start of a received frame that the kernel keeps for itself.
    pub(crate) const RX_RESERVE: usize = 256;

    /// Memory for `count` frames of `frame_len` octets, 2048 or 4096.
    pub(crate) fn new(frame_len: usize, count: u32) -> io::Result<Self> {
        assert!(matches!(frame_len, 2048 | 4096), "the kernel knows chunks of these sizes alone");
        let memory = Mapping::anonymous(frame_len * count as usize)?;
        // The lowest ones are taken first.
        let free = (0..count).rev().map(Frame).collect();
        Ok(Self { memory, frame_len, lent: vec![false; count as usize], free })
    }

    /// What the kernel is to be told of it. Valid as long as this lives.
    pub(crate) fn registration(&self) -> libc::xdp_umem_reg {
        libc::xdp_umem_reg {
            addr: self.memory.as_ptr() as u64,
            len: self.memory.len() as u64,
            chunk_size: self.frame_len as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        }
    }

    /// Octets of a frame.
    pub(crate) fn frame_len(&self) -> usize {
        self.frame_len
    }

    /// A frame that is not in use, if there is one.
    pub(crate) fn take(&mut self) -> Option<Frame> {
        self.free.pop()
    }

    /// The frame is not in use any more.
    pub(crate) fn put(&mut self, frame: Frame) {
        debug_assert!(self.free.len() < self.free.capacity(), "no frame is put back twice");
        self.free.push(frame);
    }

    /// Gives a frame to the kernel; the address by which a ring names octet `offset` of it.
    pub(crate) fn lend(&mut self, frame: Frame, offset: usize) -> u64 {
        assert!(offset < self.frame_len, "an address within the frame");
        self.lent[frame.0 as usize] = true;
        u64::from(frame.0) * self.frame_len as u64 + offset as u64
    }

    /// Takes a frame back that a ring names by an address within it; also which octet of it the address is. `None` for an address
    /// that is not with the kernel: it is not to be believed.
    pub(crate) fn regain(&mut self, address: u64) -> Option<(Frame, usize)> {
        let frame_len = self.frame_len as u64;
        let index = usize::try_from(address / frame_len).ok()?;
        let lent = self.lent.get_mut(index).filter(|lent| **lent)?;
        *lent = false;
        Some((Frame(index as u32), (address % frame_len) as usize))
    }

    /// Octets of a frame that is ours. Panics if they are not within it.
    pub(crate) fn bytes(&self, frame: &Frame, range: Range<usize>) -> &[u8] {
        let at = self.place(frame, &range);
        // SAFETY: `place` saw that the range lies within the mapped memory, all of which is initialised, and that the frame is not
        // with the kernel, which therefore does not write there. `bytes_mut` needs `&mut self`.
        unsafe { std::slice::from_raw_parts(at, range.len()) }
    }

    /// The same to be written to.
    pub(crate) fn bytes_mut(&mut self, frame: &Frame, range: Range<usize>) -> &mut [u8] {
        let at = self.place(frame, &range);
        // SAFETY: as of `bytes`; and `&mut self` says that there is no other reference to any frame.
        unsafe { std::slice::from_raw_parts_mut(at, range.len()) }
    }

    /// Copies octets of one frame to the same place of another.
    pub(crate) fn copy(&mut self, from: &Frame, to: &Frame, range: Range<usize>) {
        let (source, target) = (self.place(from, &range), self.place(to, &range));
        // SAFETY: both ranges are valid and not with the kernel, see `bytes`; if they are one and the same, a copy may overlap.
        unsafe { std::ptr::copy(source, target, range.len()) };
    }

    fn place(&self, frame: &Frame, range: &Range<usize>) -> *mut u8 {
        let index = frame.0 as usize;
        assert!(!self.lent[index], "the frame is with the kernel");
        assert!(range.start <= range.end && range.end <= self.frame_len, "octets of one frame");
        // SAFETY: there are as many frames as `lent` has entries, and the range begins within this one.
        unsafe { self.memory.as_ptr().add(index * self.frame_len + range.start) }
    }
}

impl fmt::Debug for Umem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (of, free) = (self.lent.len(), self.free.len());
        f.debug_struct("Umem").field("frame_len", &self.frame_len).field("of", &of).field("free", &free).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_written_and_put_back() {
        let mut umem = Umem::new(2048, 3).expect("some memory");
        let frames: Vec<Frame> = std::iter::from_fn(|| umem.take()).collect();
        assert_eq!(frames.len(), 3);
        for (n, frame) in (1..).zip(&frames) {
            umem.bytes_mut(frame, 0..2048).fill(n);
        }
        for (n, frame) in (1..).zip(&frames) {
            assert!(umem.bytes(frame, 0..2048).iter().all(|byte| *byte == n), "frames do not overlap");
        }
        frames.into_iter().for_each(|frame| umem.put(frame));
        assert!((0..3).all(|_| umem.take().is_some()) && umem.take().is_none());
    }

    #[test]
    fn octets_are_copied_from_frame_to_frame() {
        let mut umem = Umem::new(2048, 2).expect("some memory");
        let (from, to) = (umem.take().expect("one of two"), umem.take().expect("one of two"));
        umem.bytes_mut(&from, 0..2048).fill(7);
        umem.copy(&from, &to, 64..100);
        assert!(umem.bytes(&to, 64..100).iter().all(|byte| *byte == 7));
        assert_eq!((umem.bytes(&to, 63..64), umem.bytes(&to, 100..101)), (&[0][..], &[0][..]));
    }

    #[test]
    fn only_what_was_lent_is_regained_and_once() {
        let mut umem = Umem::new(4096, 4).expect("some memory");
        let (first, second) = (umem.take().expect("one of four"), umem.take().expect("one of four"));
        assert_eq!(umem.lend(first, 22), 22);
        assert_eq!(umem.lend(second, 64), 4096 + 64);
        for address in [2 * 4096, 3 * 4096, 4 * 4096, u64::MAX] {
            assert_eq!(umem.regain(address), None, "{address}");
        }
        let (second, offset) = umem.regain(4096 + 256).expect("it was lent");
        assert_eq!(offset, 256);
        assert_eq!(umem.regain(4096), None, "twice");
        assert_eq!(umem.bytes(&second, 0..8), [0; 8]);
        assert!(umem.regain(0).is_some());
    }

    #[test]
    #[should_panic(expected = "the frame is with the kernel")]
    fn what_is_with_the_kernel_is_not_looked_at() {
        let mut umem = Umem::new(2048, 1).expect("some memory");
        let frame = umem.take().expect("there is one");
        let copy = Frame(frame.0);
        umem.lend(frame, 0);
        umem.bytes(&copy, 0..1);
    }

    #[test]
    #[should_panic(expected = "octets of one frame")]
    fn a_range_beyond_the_frame_is_refused() {
        let mut umem = Umem::new(2048, 2).expect("some memory");
        let frame = umem.take().expect("one of two");
        umem.bytes(&frame, 2040..2049);
    }
}
