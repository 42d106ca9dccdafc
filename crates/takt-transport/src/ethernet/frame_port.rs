//! [`FramePort`]: what moves Ethernet frames in and out at one interface.

use std::io;
use std::os::fd::RawFd;

use takt_packet::MacAddress;
use takt_wire::LentFrame;

use crate::{Interface, Scan, Warning};

/// Moves the frames of one Ethernet interface that are of [`EtherType::TAKT`](takt_packet::EtherType::TAKT). Non-blocking,
/// single-threaded, and free of allocation in [`loan`](Self::loan), [`send`](Self::send), [`send_copy`](Self::send_copy),
/// [`flush`](Self::flush), [`recv`](Self::recv) and [`received`](Self::received).
///
/// A frame begins with its Ethernet header, which the caller writes, and has no check sequence. What is sent to a group is
/// received by the members on this host too, oneself included, once; and so is what is sent to [`mac`](Self::mac): no
/// interface does that by itself.
pub trait FramePort: Send {
    /// A short name for people: `"packet"`, `"xdp"`, `"dpdk"`.
    fn name(&self) -> &'static str;

    /// The interface, as it is now. Without one (it is gone) the last that was known.
    fn interface(&self) -> &Interface;

    /// Its hardware address.
    fn mac(&self) -> MacAddress;

    /// Octets that a frame carries behind its Ethernet header, a tag not counted.
    fn mtu(&self) -> usize;

    /// The VLAN whose tag the frames have, 0 for a priority alone; `None`: frames have no tag.
    fn vlan(&self) -> Option<u16> {
        None
    }

    /// The outgoing frame, from its Ethernet header on: room for the header, a tag and [`mtu`](Self::mtu) octets. The same one, its
    /// content kept, until [`send`](Self::send).
    fn loan(&mut self) -> &mut [u8];

    /// Queues the first `len` octets of the loaned frame, which need not be padded. Another is loaned from now on. False: no frame is free even after
    /// what was queued has been sent, so nothing was queued and the loaned one stays.
    fn send(&mut self, len: usize) -> bool;

    /// As [`send`](Self::send), of a copy: what is loaned afterwards has the same content, though not at the same place.
    fn send_copy(&mut self, len: usize) -> bool;

    /// Sends what is queued, with as few system calls as can be. An error is one of the whole interface: what was queued is
    /// counted and lost.
    fn flush(&mut self) -> io::Result<()>;

    /// Finds the next frame, which [`received`](Self::received) shows from then on. False: there is none; see [`Scan`].
    /// It is given back to the kernel or the driver by the next call.
    fn recv(&mut self, scan: Scan) -> io::Result<bool>;

    /// What the last [`recv`](Self::recv) found; empty if that was nothing. With its tag, if it has one. May be anything: nobody has
    /// looked at it, and it may be meant for others.
    fn received(&self) -> &[u8];

    /// The same, if it can be held longer than until the next call.
    fn lent_frame(&self) -> Option<LentFrame<'_>> {
        None
    }

    /// Frames to this destination port are wanted from now on. For ports that can leave out the others early; those that
    /// cannot deliver all. Allocates.
    fn listen_at(&mut self, port: u16) -> io::Result<()>;

    /// They are not wanted any more.
    fn close(&mut self, port: u16);

    /// Frames to this group are wanted from now on. Allocates.
    fn join(&mut self, group: MacAddress) -> io::Result<()>;

    /// They are not wanted any more.
    fn leave(&mut self, group: MacAddress);

    /// Readable when [`recv`](Self::recv) has something to find. Empty: poll me.
    fn descriptors(&self) -> &[RawFd];

    /// Whether a [hot](Scan::Hot) scan that finds nothing is a look at memory.
    fn scans_memory(&self) -> bool;

    /// Whether the interface may have changed since the last [`refresh`](Self::refresh). Cheap; noticed by [`recv`](Self::recv).
    fn may_have_changed(&self) -> bool {
        false
    }

    /// Follows the interface: afterwards [`interface`](Self::interface), [`mac`](Self::mac) and [`descriptors`](Self::descriptors)
    /// may be others. Allocates.
    fn refresh(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Counters since opening. May be a system call.
    fn stats(&self) -> FramePortStats;

    /// What works worse than asked, collected since opening.
    fn warnings(&self) -> &[Warning] {
        &[]
    }
}

/// What a [`FramePort`] has lost, and why. Cumulative since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FramePortStats {
    /// Received frames that the kernel, driver or hardware dropped, since there was no room for them.
    pub dropped_in: u64,
    /// Received frames that did not fit.
    pub truncated: u64,
    /// Descriptions of received frames that contradict themselves.
    pub malformed: u64,
    /// Frames that were queued and then refused: the interface is down or gone.
    pub refused_out: u64,
    /// Of the frames sent, those that were sent from where they had been written.
    pub in_place_out: u64,
}
