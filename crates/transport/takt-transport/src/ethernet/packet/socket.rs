//! AF_PACKET socket with its mapped rings.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use takt_packet::MacAddress;

use super::slots::Slots;
use super::syscall;
use crate::udp::syscall::{int_option, set_option};

/// Octets of the two hardware addresses, which precede a tag.
const ADDRESSES: usize = 12;

/// AF_PACKET socket with its rings. See the [module](self).
#[derive(Debug)]
pub(super) struct PacketSocket {
    fd: OwnedFd,
    slots: Slots,
    /// Receive slot to examine next.
    next: usize,
    /// Slot of the current frame, and its octets.
    current: Option<(usize, Range<usize>)>,
    /// Transmit slot of the loaned frame.
    loaned: usize,
    /// Number of slots before it that were queued and not yet seen as sent.
    queued: usize,
    pub(super) truncated: u64,
    pub(super) malformed: u64,
    pub(super) refused: u64,
    pub(super) in_place: u64,
}

impl PacketSocket {
    /// Opens a socket that receives nothing until it is [bound](Self::bind).
    pub(super) fn open(slot_len: usize, received: usize, sent: usize) -> io::Result<Self> {
        let fd = syscall::socket()?;
        let slots = Slots::map(fd.as_fd(), slot_len, received, sent)?;
        if sent > 0 {
            // The kernel accounts more than the octets of a frame in transmission.
            let wanted = libc::c_int::try_from(2 * sent * slot_len).unwrap_or(libc::c_int::MAX);
            set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, &wanted)?;
        }
        Ok(Self {
            fd,
            slots,
            next: 0,
            current: None,
            loaned: 0,
            queued: 0,
            truncated: 0,
            malformed: 0,
            refused: 0,
            in_place: 0,
        })
    }

    /// Bypasses the queueing discipline of the interface.
    pub(super) fn bypass_qdisc(&self) -> io::Result<()> {
        set_option(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1)
    }

    /// Starts to receive from this interface; see [`syscall::bind`].
    pub(super) fn bind(&self, ifindex: u32, ether_type: Option<u16>) -> io::Result<()> {
        syscall::bind(self.fd.as_fd(), ifindex, ether_type)
    }

    /// Reads and clears the pending error of the socket, such as that of an interface that went
    /// down.
    pub(super) fn take_error(&self) -> io::Result<libc::c_int> {
        int_option(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR)
    }

    pub(super) fn set_membership(&self, ifindex: u32, group: MacAddress, is_member: bool) -> io::Result<()> {
        syscall::set_membership(self.fd.as_fd(), ifindex, group, is_member)
    }

    /// Returns the room for an outgoing frame, in octets.
    pub(super) fn room(&self) -> usize {
        self.slots.room()
    }

    /// Finds the next frame; see [`received`](Self::received). Makes no system call. Examines each
    /// slot at most once.
    pub(super) fn recv(&mut self) -> bool {
        self.release_current();
        for _ in 0..self.slots.received() {
            let slot = self.next;
            let Some(described) = self.slots.arrival(slot) else { return false };
            self.next = (slot + 1) & (self.slots.received() - 1);
            match described {
                Ok(arrival) if !arrival.is_cut_off => {
                    let mut range = arrival.range;
                    if let Some((protocol, contents)) = arrival.tag
                        && range.len() >= ADDRESSES
                    {
                        range = self.put_tag(slot, range, protocol, contents);
                    }
                    self.current = Some((slot, range));
                    return true;
                }
                Ok(_) => self.truncated += 1,
                Err(()) => self.malformed += 1,
            }
            self.slots.return_to_kernel(slot);
        }
        false
    }

    /// Inserts the tag that the kernel stripped: the addresses move to make room.
    fn put_tag(&mut self, slot: usize, range: Range<usize>, protocol: u16, contents: u16) -> Range<usize> {
        let grown = range.start - 4..range.end;
        let frame = self.slots.octets_mut(slot, grown.clone());
        frame.copy_within(4..4 + ADDRESSES, 0);
        frame[ADDRESSES..ADDRESSES + 2].copy_from_slice(&protocol.to_be_bytes());
        frame[ADDRESSES + 2..ADDRESSES + 4].copy_from_slice(&contents.to_be_bytes());
        grown
    }

    /// Returns the current frame.
    pub(super) fn received(&self) -> &[u8] {
        match &self.current {
            Some((slot, range)) => self.slots.octets(*slot, range.clone()),
            None => &[],
        }
    }

    /// Returns the current frame for modification.
    pub(super) fn received_mut(&mut self) -> &mut [u8] {
        match &self.current {
            Some((slot, range)) => self.slots.octets_mut(*slot, range.clone()),
            None => &mut [],
        }
    }

    /// Returns the slot of the current frame to the kernel.
    pub(super) fn release_current(&mut self) {
        if let Some((slot, _)) = self.current.take() {
            self.slots.return_to_kernel(slot);
        }
    }

    /// Returns the outgoing frame.
    pub(super) fn loan(&mut self) -> &mut [u8] {
        self.slots.frame_mut(self.loaned)
    }

    /// Queues the loaned frame; with `keep`, the next loaned frame has the same content. Returns
    /// false if there is no room.
    pub(super) fn queue(&mut self, len: usize, keep: bool) -> bool {
        if !self.slots.is_free(self.after(self.loaned, 1)) {
            // Lost frames are counted.
            drop(self.flush());
        }
        let (loaned, next) = (self.loaned, self.after(self.loaned, 1));
        if !self.slots.is_free(next) {
            return false;
        }
        if keep {
            self.slots.copy_frame(loaned, next, len);
        } else {
            self.in_place += 1;
        }
        self.slots.request_transmission(loaned, len);
        self.loaned = next;
        self.queued += 1;
        true
    }

    fn after(&self, slot: usize, count: usize) -> usize {
        (slot + count) & (self.slots.sent() - 1)
    }

    /// Sends the queued frames. Frames that the kernel has no memory for stay queued; frames that
    /// the interface refuses are lost.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.queued == 0 {
            return Ok(());
        }
        let result = syscall::kick(self.fd.as_fd());
        while self.queued > 0 {
            let first = self.after(self.loaned, self.slots.sent() - self.queued);
            if self.slots.is_unsent(first) {
                break;
            }
            self.queued -= 1;
        }
        match result {
            Ok(()) => Ok(()),
            Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR)) => Ok(()),
            Err(e) => {
                self.cancel_queued();
                Err(e)
            }
        }
    }

    /// Drops the queued frames. The kernel continues at the slot that it refused, so the loaned
    /// frame moves there.
    fn cancel_queued(&mut self) {
        if self.queued == 0 {
            return;
        }
        let (loaned, sent) = (self.loaned, self.slots.sent());
        let first = self.after(loaned, sent - self.queued);
        (0..self.queued).for_each(|n| self.slots.cancel_transmission(self.after(first, n)));
        self.slots.copy_frame(loaned, first, self.slots.room());
        self.refused += self.queued as u64;
        (self.loaned, self.queued) = (first, 0);
    }

    /// Returns the number of frames dropped at a full ring since the last call.
    pub(super) fn take_drops(&self) -> u64 {
        // A socket with a ring always answers this query.
        syscall::take_drops(self.fd.as_fd()).unwrap_or(0).into()
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for PacketSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
