//! [`FramePort`]: sending and receiving Ethernet frames at one interface.

use std::io;
use std::os::fd::RawFd;

use takt_packet::MacAddress;
use takt_wire::SharedFrame;

use crate::{Interface, Scan, Warning};

/// Interface to the Ethernet frames of [`EtherType::TAKT`](takt_packet::EtherType::TAKT) at one
/// network interface. Non-blocking, single-threaded, and free of allocation in
/// [`loan`](Self::loan), [`send`](Self::send), [`send_copy`](Self::send_copy),
/// [`flush`](Self::flush), [`recv`](Self::recv) and [`received`](Self::received).
///
/// A frame begins with its Ethernet header, which the caller writes, and has no check sequence. A
/// frame to a group is also received once by each member on this host, including the sender. A
/// frame to [`mac`](Self::mac) is received by this host. No network interface does either.
pub trait FramePort: Send {
    /// Returns a short name for people: `"packet"`, `"xdp"`, `"dpdk"`.
    fn name(&self) -> &'static str;

    /// Returns the current state of the interface, or the last known one if it is gone.
    fn interface(&self) -> &Interface;

    /// Returns the hardware address of the interface.
    fn mac(&self) -> MacAddress;

    /// Returns the maximum size of a frame after its Ethernet header and tag, in octets.
    fn mtu(&self) -> usize;

    /// Returns the VLAN ID of the frames, 0 for a priority tag, or `None` for frames without a tag.
    fn vlan(&self) -> Option<u16> {
        None
    }

    /// Returns the outgoing frame, from its Ethernet header on: room for the header, a tag and
    /// [`mtu`](Self::mtu) octets. It stays the same, with its content, until [`send`](Self::send).
    fn loan(&mut self) -> &mut [u8];

    /// Queues the first `len` octets of the loaned frame, which need not be padded, and loans
    /// another frame. Returns false if no frame is free even after a flush; then nothing was queued
    /// and the loaned frame stays.
    fn send(&mut self, len: usize) -> bool;

    /// Queues a copy like [`send`](Self::send). The frame that is loaned afterwards has the same
    /// content, but possibly another address.
    fn send_copy(&mut self, len: usize) -> bool;

    /// Sends the queued frames with as few system calls as possible. An error concerns the whole
    /// interface; the queued frames are then lost and counted.
    fn flush(&mut self) -> io::Result<()>;

    /// Finds the next frame, which [`received`](Self::received) then returns. False if there is
    /// none; see [`Scan`]. The next call gives the frame back to the kernel or driver.
    fn recv(&mut self, scan: Scan) -> io::Result<bool>;

    /// Returns the frame that the last [`recv`](Self::recv) found, with its tag if it has one;
    /// empty if there was none. The content is not validated, and the frame may be for others.
    fn received(&self) -> &[u8];

    /// Returns the same frame as a loan that can outlast the next call, if that is supported.
    fn loaned_frame(&self) -> Option<SharedFrame<'_>> {
        None
    }

    /// Accepts frames to this destination port from now on. Ports that can drop other frames early
    /// do so; the rest deliver all. Allocates.
    fn listen_at(&mut self, port: u16) -> io::Result<()>;

    /// Stops accepting frames to this destination port.
    fn close(&mut self, port: u16);

    /// Accepts frames to this group from now on. Allocates.
    fn join(&mut self, group: MacAddress) -> io::Result<()>;

    /// Stops accepting frames to this group.
    fn leave(&mut self, group: MacAddress);

    /// Returns descriptors that are readable when [`recv`](Self::recv) can find a frame. Empty if
    /// the port must be polled.
    fn descriptors(&self) -> &[RawFd];

    /// Reports whether a [hot](Scan::Hot) scan that finds nothing only reads memory.
    fn scans_memory(&self) -> bool;

    /// Reports whether the interface may have changed since the last [`refresh`](Self::refresh).
    /// Cheap; detected by [`recv`](Self::recv).
    fn may_have_changed(&self) -> bool {
        false
    }

    /// Applies changes of the interface. Afterwards [`interface`](Self::interface),
    /// [`mac`](Self::mac) and [`descriptors`](Self::descriptors) may differ. Allocates.
    fn refresh(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns counters since opening. May be a system call.
    fn stats(&self) -> FramePortStats;

    /// Returns the warnings since opening.
    fn warnings(&self) -> &[Warning] {
        &[]
    }
}

/// Frames that a [`FramePort`] lost since it was opened, by reason, and those sent in place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FramePortStats {
    /// Received frames that the kernel, driver or hardware dropped for lack of room.
    pub dropped_in: u64,
    /// Received frames that were too long.
    pub truncated: u64,
    /// Received frames with inconsistent descriptors.
    pub malformed: u64,
    /// Queued frames that were refused because the interface is down or gone.
    pub refused_out: u64,
    /// Sent frames that were not copied.
    pub in_place_out: u64,
}
