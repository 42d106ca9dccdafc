//! Slots of the packet rings that an AF_PACKET socket shares with the kernel. All have equal size
//! and begin with `struct tpacket2_hdr` (`packet(7)`, the kernel's `packet_mmap`). The receive
//! slots precede the transmit slots.
//!
//! Either the kernel or the process owns a slot, as its status states; the owner passes it on by
//! writing the status. The octets of a slot are accessible only while the process owns it.

#![allow(unsafe_code)]

use std::io;
use std::mem::offset_of;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::tpacket2_hdr as Header;
use takt_packet::EtherType;

use crate::udp::syscall::set_option;

/// Size of the kernel's header at the start of each slot, in octets.
const HEADER: usize = size_of::<Header>();

/// Offset of an outgoing frame: its message begins 22 octets later, at a cache line.
pub(super) const FRAME_AT: usize = 42;

/// Maximum overhead in a slot in addition to the MTU: header, address, alignment, and frame
/// headers.
const SLOT_OVERHEAD: usize = 128;

/// Location of a received frame in its slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Octets of the slot that hold the frame.
    pub(super) range: Range<usize>,
    /// The frame was truncated.
    pub(super) is_cut_off: bool,
    /// Tag that the kernel stripped: protocol and contents.
    pub(super) tag: Option<(u16, u16)>,
}

/// Mapped slots of a socket. See the [module](self).
#[derive(Debug)]
pub(super) struct Slots {
    at: NonNull<u8>,
    slot_len: usize,
    received: usize,
    sent: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and no one else has the pointer.
unsafe impl Send for Slots {}

impl Slots {
    /// Returns the size of a slot for frames of this MTU, in octets.
    pub(super) fn len_for(mtu: usize) -> usize {
        (mtu + SLOT_OVERHEAD).next_power_of_two().max(2048)
    }

    /// Creates and maps the rings of a socket. Both counts are powers of two; `sent` may be 0.
    pub(super) fn map(fd: BorrowedFd<'_>, slot_len: usize, received: usize, sent: usize) -> io::Result<Self> {
        debug_assert!(slot_len.is_power_of_two() && slot_len >= 2048);
        set_option(fd, libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as libc::c_int))?;
        // Must precede the rings: afterwards the kernel silently ignores it.
        set_option(fd, libc::SOL_PACKET, libc::PACKET_TX_HAS_OFF, &1)?;
        for (option, slots) in [(libc::PACKET_RX_RING, received), (libc::PACKET_TX_RING, sent)] {
            if slots == 0 {
                continue;
            }
            // A block is a run of whole pages; no slot crosses its end.
            let block_len = slot_len.max(page_len());
            let request = libc::tpacket_req {
                tp_block_size: block_len as u32,
                tp_block_nr: (slots * slot_len).div_ceil(block_len) as u32,
                tp_frame_size: slot_len as u32,
                tp_frame_nr: slots as u32,
            };
            set_option(fd, libc::SOL_PACKET, option, &request)?;
        }
        let (len, protection) = ((received + sent) * slot_len, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: the kernel chooses an address that nothing else occupies.
        let at = unsafe { libc::mmap(ptr::null_mut(), len, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast()).expect("mmap without a hint never returns address 0");
        Ok(Self { at, slot_len, received, sent })
    }

    /// Returns the number of receive slots.
    pub(super) fn received(&self) -> usize {
        self.received
    }

    /// Returns the number of transmit slots.
    pub(super) fn sent(&self) -> usize {
        self.sent
    }

    fn address_of(&self, slot: usize, range: &Range<usize>) -> *mut u8 {
        assert!(slot < self.received + self.sent, "the slot exists");
        assert!(range.start <= range.end && range.end <= self.slot_len, "octets of one slot");
        // SAFETY: so many slots of this length are mapped, and the range begins within one of them
        // or ends it.
        unsafe { self.at.as_ptr().add(slot * self.slot_len + range.start) }
    }

    fn status(&self, slot: usize) -> &AtomicU32 {
        let at = offset_of!(Header, tp_status);
        // SAFETY: four mapped octets, aligned as slots are to 2,048, which kernel and process
        // access as one atomic word.
        unsafe { AtomicU32::from_ptr(self.address_of(slot, &(at..at + 4)).cast()) }
    }

    /// Reads a field of a slot's header.
    fn word<const N: usize>(&self, slot: usize, at: usize) -> [u8; N] {
        let mut word = [0; N];
        word.copy_from_slice(self.octets(slot, at..at + N));
        word
    }

    /// Reports whether the process owns the slot.
    fn is_owned(&self, slot: usize) -> bool {
        let status = self.status(slot).load(Ordering::Acquire);
        match slot < self.received {
            true => status & libc::TP_STATUS_USER != 0,
            false => status & (libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_SENDING) == 0,
        }
    }

    /// Returns octets of an owned slot. Panics if the process does not own it, or if the range
    /// exceeds it.
    pub(super) fn octets(&self, slot: usize, range: Range<usize>) -> &[u8] {
        assert!(self.is_owned(slot), "the kernel owns the slot");
        // SAFETY: `address_of` checks that the range is mapped. The kernel does not write to a slot
        // that the process owns; the process passes it on and writes to it with `&mut self` alone.
        unsafe { std::slice::from_raw_parts(self.address_of(slot, &range), range.len()) }
    }

    /// Returns the same octets for writing.
    pub(super) fn octets_mut(&mut self, slot: usize, range: Range<usize>) -> &mut [u8] {
        assert!(self.is_owned(slot), "the kernel owns the slot");
        // SAFETY: as for `octets`; and `&mut self` excludes other references to any slot.
        unsafe { std::slice::from_raw_parts_mut(self.address_of(slot, &range), range.len()) }
    }

    /// Returns the location of a frame that the kernel wrote into a slot; `None` if it wrote none.
    /// An error if the header is inconsistent.
    pub(super) fn arrival(&self, slot: usize) -> Option<Result<Arrival, ()>> {
        let status = self.status(slot).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let half = |at| u16::from_ne_bytes(self.word(slot, at));
        let size = |at| u32::from_ne_bytes(self.word(slot, at)) as usize;
        let (whole, len) = (size(offset_of!(Header, tp_len)), size(offset_of!(Header, tp_snaplen)));
        let from = usize::from(half(offset_of!(Header, tp_mac)));
        let range = from..from.saturating_add(len);
        if from < HEADER + 4 || range.end > self.slot_len {
            return Some(Err(()));
        }
        let protocol = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
            half(offset_of!(Header, tp_vlan_tpid))
        } else {
            EtherType::VLAN.0
        };
        let has_tag = status & libc::TP_STATUS_VLAN_VALID != 0;
        let tag = has_tag.then(|| (protocol, half(offset_of!(Header, tp_vlan_tci))));
        Some(Ok(Arrival { range, is_cut_off: whole > len, tag }))
    }

    /// Returns a receive slot to the kernel.
    pub(super) fn return_to_kernel(&mut self, slot: usize) {
        self.status(slot).store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }

    /// Returns the room for an outgoing frame, in octets.
    pub(super) fn room(&self) -> usize {
        self.slot_len - FRAME_AT
    }

    /// Reports whether the `n`-th transmit slot is free.
    pub(super) fn is_free(&self, n: usize) -> bool {
        self.is_owned(self.received + n)
    }

    /// Reports whether the kernel has not processed the slot yet, or has refused it.
    pub(super) fn is_unsent(&self, n: usize) -> bool {
        let status = self.status(self.received + n).load(Ordering::Acquire);
        status & (libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_WRONG_FORMAT) != 0
    }

    /// Returns the outgoing frame in a free slot.
    pub(super) fn frame_mut(&mut self, n: usize) -> &mut [u8] {
        self.octets_mut(self.received + n, FRAME_AT..self.slot_len)
    }

    /// Copies `len` octets of a frame from one free slot to another.
    pub(super) fn copy_frame(&mut self, from: usize, to: usize, len: usize) {
        let range = FRAME_AT..FRAME_AT + len;
        let [source, target] = [from, to].map(|n| {
            assert!(self.is_free(n), "the kernel owns the slot");
            self.address_of(self.received + n, &range)
        });
        // SAFETY: both are mapped and owned, see `octets_mut`; `ptr::copy` allows the same slot for
        // both.
        unsafe { ptr::copy(source, target, len) };
    }

    /// Requests the transmission of `len` octets of the frame in a free slot, at the next kick.
    pub(super) fn request_transmission(&mut self, n: usize, len: usize) {
        assert!(len <= self.room(), "the frame is in the slot");
        let slot = self.received + n;
        let (at_len, at_mac) = (offset_of!(Header, tp_len), offset_of!(Header, tp_mac));
        self.octets_mut(slot, at_len..at_len + 4).copy_from_slice(&(len as u32).to_ne_bytes());
        self.octets_mut(slot, at_mac..at_mac + 2).copy_from_slice(&(FRAME_AT as u16).to_ne_bytes());
        self.status(slot).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
    }

    /// Takes back a slot that the kernel has not sent. The caller must not kick the kernel
    /// meanwhile.
    pub(super) fn cancel_transmission(&mut self, n: usize) {
        self.status(self.received + n).store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
    }
}

fn page_len() -> usize {
    // SAFETY: no pointers.
    let len = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(len).unwrap_or(4096)
}

impl Drop for Slots {
    fn drop(&mut self) {
        let len = (self.received + self.sent) * self.slot_len;
        // SAFETY: exactly what was mapped, and no reference outlives `self`. The call cannot fail
        // then.
        unsafe { libc::munmap(self.at.as_ptr().cast(), len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 2048;

    /// Makes two receive and two transmit slots without a kernel.
    fn slots() -> Slots {
        let (kind, protection) = (libc::MAP_SHARED | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: as in `map`.
        let at = unsafe { libc::mmap(ptr::null_mut(), 4 * LEN, protection, kind, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        Slots { at: NonNull::new(at.cast()).expect("mapped"), slot_len: LEN, received: 2, sent: 2 }
    }

    /// Simulates the kernel: puts a frame with this header into slot 0.
    fn describe(slots: &mut Slots, status: u32, whole: u32, len: u32, from: u16) {
        slots.status(0).store(libc::TP_STATUS_USER, Ordering::Relaxed);
        slots.octets_mut(0, 4..8).copy_from_slice(&whole.to_ne_bytes());
        slots.octets_mut(0, 8..12).copy_from_slice(&len.to_ne_bytes());
        slots.octets_mut(0, 12..14).copy_from_slice(&from.to_ne_bytes());
        slots.octets_mut(0, 24..26).copy_from_slice(&0xa02a_u16.to_ne_bytes());
        slots.octets_mut(0, 26..28).copy_from_slice(&0x88a8_u16.to_ne_bytes());
        slots.status(0).store(status, Ordering::Release);
    }

    #[test]
    fn frame_location_comes_from_a_consistent_header() {
        let mut slots = slots();
        assert_eq!(slots.arrival(0), None);
        describe(&mut slots, libc::TP_STATUS_USER, 100, 60, 66);
        let arrival = Arrival { range: 66..126, is_cut_off: true, tag: None };
        assert_eq!(slots.arrival(0), Some(Ok(arrival)));
        for (len, from) in [(1983, 66), (u32::MAX, 66), (60, 0), (60, 35), (60, u16::MAX), (0, 2049)] {
            describe(&mut slots, libc::TP_STATUS_USER, len, len, from);
            assert_eq!(slots.arrival(0), Some(Err(())), "{len} octets at {from}");
        }
        describe(&mut slots, libc::TP_STATUS_USER, 1982, 1982, 66);
        assert!(matches!(slots.arrival(0), Some(Ok(_))));
        slots.return_to_kernel(0);
        assert_eq!(slots.arrival(0), None);
    }

    #[test]
    fn stripped_tag_is_reported() {
        let mut slots = slots();
        for (status, tag) in [
            (libc::TP_STATUS_VLAN_VALID, (0x8100, 0xa02a)),
            (libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID, (0x88a8, 0xa02a)),
        ] {
            describe(&mut slots, libc::TP_STATUS_USER | status, 60, 60, 66);
            assert_eq!(slots.arrival(0).and_then(Result::ok).and_then(|arrival| arrival.tag), Some(tag));
        }
    }

    #[test]
    fn transmit_slot_is_owned_by_the_kernel_until_sent() {
        let mut slots = slots();
        assert!(slots.is_free(0) && !slots.is_unsent(0));
        slots.frame_mut(0)[..4].copy_from_slice(b"abcd");
        slots.copy_frame(0, 1, 4);
        assert_eq!(slots.frame_mut(1)[..4], *b"abcd");
        slots.request_transmission(0, 4);
        assert!(!slots.is_free(0) && slots.is_unsent(0));
        slots.status(2).store(libc::TP_STATUS_SENDING, Ordering::Relaxed);
        assert!(!slots.is_free(0) && !slots.is_unsent(0));
        slots.status(2).store(libc::TP_STATUS_WRONG_FORMAT, Ordering::Relaxed);
        assert!(slots.is_unsent(0));
        slots.cancel_transmission(0);
        assert!(slots.is_free(0) && !slots.is_unsent(0));
    }

    #[test]
    #[should_panic(expected = "the kernel owns the slot")]
    fn slot_owned_by_the_kernel_is_not_accessible() {
        let mut slots = slots();
        slots.request_transmission(1, 60);
        slots.frame_mut(1);
    }

    #[test]
    #[should_panic(expected = "octets of one slot")]
    fn range_beyond_the_slot_is_refused() {
        slots().octets_mut(2, 2040..2049);
    }
}
