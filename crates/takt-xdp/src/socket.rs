//! An AF_XDP socket: its umem, its four rings, bound to one queue of an interface.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use libc::xdp_desc;

use crate::mapping::Mapping;
use crate::patience::while_busy;
use crate::ring::{Consumer, Entry, Layout, Producer};
use crate::syscall;
use crate::umem::{Frame, Umem};

/// What a socket is asked to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) ifindex: u32,
    pub(crate) queue: u32,
    pub(crate) frame_len: usize,
    /// Powers of two.
    pub(crate) rx_frames: u32,
    pub(crate) tx_frames: u32,
    /// Frames are copied even if the driver could do without.
    pub(crate) copy: bool,
}

/// A bound socket. Dropped, it lets go of the queue.
#[derive(Debug)]
pub(crate) struct Socket {
    /// First, so that it is closed before its memory goes.
    fd: OwnedFd,
    fill: Producer<u64>,
    completion: Consumer<u64>,
    rx: Consumer<xdp_desc>,
    tx: Producer<xdp_desc>,
    umem: Umem,
    /// Frames in the transmit ring or on their way out.
    tx_pending: u32,
    strange: u64,
}

impl Socket {
    /// Opens and binds a socket, and gives the kernel all receive frames.
    pub(crate) fn open(wanted: &Wanted) -> io::Result<Self> {
        let fd = syscall::xdp_socket()?;
        let umem = Umem::new(wanted.frame_len, wanted.rx_frames + wanted.tx_frames)?;
        syscall::set_xdp_option(fd.as_fd(), libc::XDP_UMEM_REG, &umem.registration())?;
        for (name, size) in [
            (libc::XDP_UMEM_FILL_RING, wanted.rx_frames),
            (libc::XDP_UMEM_COMPLETION_RING, wanted.tx_frames),
            (libc::XDP_RX_RING, wanted.rx_frames),
            (libc::XDP_TX_RING, wanted.tx_frames),
        ] {
            syscall::set_xdp_option(fd.as_fd(), name, &(size as libc::c_int))?;
        }
        let at: libc::xdp_mmap_offsets = syscall::xdp_option(fd.as_fd(), libc::XDP_MMAP_OFFSETS)?;
        let (rx_frames, tx_frames) = (wanted.rx_frames, wanted.tx_frames);
        let fill = map::<u64>(&fd, libc::XDP_UMEM_PGOFF_FILL_RING, &at.fr, rx_frames)?;
        let completion = map::<u64>(&fd, libc::XDP_UMEM_PGOFF_COMPLETION_RING, &at.cr, tx_frames)?;
        let rx = map::<xdp_desc>(&fd, libc::XDP_PGOFF_RX_RING as u64, &at.rx, rx_frames)?;
        let tx = map::<xdp_desc>(&fd, libc::XDP_PGOFF_TX_RING as u64, &at.tx, tx_frames)?;
        let mut socket = Self {
            fd,
            fill: Producer::new(fill.0, fill.1),
            completion: Consumer::new(completion.0, completion.1),
            rx: Consumer::new(rx.0, rx.1),
            tx: Producer::new(tx.0, tx.1),
            umem,
            tx_pending: 0,
            strange: 0,
        };
        for _ in 0..rx_frames {
            let frame = socket.umem.take().expect("there are more frames than receive frames");
            socket.lend_to_receive(frame);
        }
        let flags = libc::XDP_USE_NEED_WAKEUP | if wanted.copy { libc::XDP_COPY } else { 0 };
        bind(socket.fd.as_fd(), wanted, flags)?;
        Ok(socket)
    }

    /// Does the driver read and write the frames themselves?
    pub(crate) fn is_zero_copy(&self) -> io::Result<bool> {
        let options: libc::xdp_options = syscall::xdp_option(self.fd.as_fd(), libc::XDP_OPTIONS)?;
        Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }

    /// Frames that the kernel dropped since none was free, the receive ring was full, or a descriptor was bad.
    pub(crate) fn kernel_drops(&self) -> io::Result<u64> {
        let counts: libc::xdp_statistics = syscall::xdp_option(self.fd.as_fd(), libc::XDP_STATISTICS)?;
        // A fill ring that was found empty counts in `rx_dropped` as well.
        Ok(counts.rx_dropped + counts.rx_ring_full + counts.rx_invalid_descs + counts.tx_invalid_descs)
    }

    /// Entries of rings that the kernel cannot have meant.
    pub(crate) fn strange_entries(&self) -> u64 {
        self.strange
    }

    /// The frames' memory.
    pub(crate) fn umem(&self) -> &Umem {
        &self.umem
    }

    /// The same to be written to.
    pub(crate) fn umem_mut(&mut self) -> &mut Umem {
        &mut self.umem
    }

    /// The next received frame, and where in it its octets are.
    pub(crate) fn receive(&mut self) -> Option<(Frame, std::ops::Range<usize>)> {
        loop {
            let entry = self.rx.pop()?;
            self.rx.release();
            match self.umem.regain(entry.addr) {
                Some((frame, at)) if at + entry.len as usize <= self.umem.frame_len() => {
                    return Some((frame, at..at + entry.len as usize));
                }
                Some((frame, _)) => {
                    self.strange += 1;
                    self.lend_to_receive(frame);
                }
                None => self.strange += 1,
            }
        }
    }

    /// The frame may be received into again.
    pub(crate) fn lend_to_receive(&mut self, frame: Frame) {
        let address = self.umem.lend(frame, 0);
        // There are exactly as many receive frames as the ring has places.
        let pushed = self.fill.push(address);
        debug_assert!(pushed, "the fill ring has room for every receive frame");
        self.fill.publish();
    }

    /// Has the driver asked to be told of frames that may be received into?
    pub(crate) fn receive_needs_wakeup(&self) -> bool {
        self.fill.needs_wakeup()
    }

    /// A frame to be sent, if one is free.
    pub(crate) fn take(&mut self) -> Option<Frame> {
        if let Some(frame) = self.umem.take() {
            return Some(frame);
        }
        self.reap();
        self.umem.take()
    }

    /// Queues octets of a frame to be sent; they leave at [`flush`](Self::flush).
    pub(crate) fn send(&mut self, frame: Frame, range: std::ops::Range<usize>) {
        let addr = self.umem.lend(frame, range.start);
        // There are exactly as many transmit frames as the ring has places.
        let pushed = self.tx.push(xdp_desc { addr, len: range.len() as u32, options: 0 });
        debug_assert!(pushed, "the transmit ring has room for every transmit frame");
        self.tx_pending += 1;
    }

    /// Has the kernel send what is queued, and takes back what was sent. An error is about the interface; what is
    /// queued stays so.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.tx_pending == 0 {
            return Ok(());
        }
        self.tx.publish();
        let kicked = self.kick();
        self.reap();
        kicked
    }

    /// One system call sends up to 32 frames where they are copied, and says `EAGAIN` if there are more.
    fn kick(&mut self) -> io::Result<()> {
        for _ in 0..=self.tx_pending / 16 + 1 {
            if !self.tx.needs_wakeup() {
                return Ok(());
            }
            match syscall::kick(self.fd.as_fd()) {
                Ok(()) => {}
                Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS)) => {}
                Err(e) => return Err(e),
            }
            if self.tx.is_drained() {
                return Ok(());
            }
            // Whatever was sent makes room for what is left.
            self.reap();
        }
        Ok(())
    }

    /// Has a driver that waits for frames to receive into look again.
    pub(crate) fn wake_receiver(&self) {
        let mut nothing = [0; 0];
        // What it says does not matter: the receive ring tells.
        drop(syscall::receive(self.fd.as_fd(), &mut nothing));
    }

    /// Takes back the frames that were sent.
    fn reap(&mut self) {
        let mut any = false;
        while let Some(address) = self.completion.pop() {
            any = true;
            match self.umem.regain(address) {
                Some((frame, _)) => {
                    self.umem.put(frame);
                    self.tx_pending = self.tx_pending.saturating_sub(1);
                }
                None => self.strange += 1,
            }
        }
        if any {
            self.completion.release();
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The memory and layout of one ring.
fn map<T: Entry>(
    fd: &OwnedFd,
    offset: u64,
    told: &libc::xdp_ring_offset,
    size: u32,
) -> io::Result<(Arc<Mapping>, Layout)> {
    let layout = Layout::told(told, size).and_then(|layout| Some((layout.memory_len::<T>()?, layout)));
    let (len, layout) = layout.ok_or(io::ErrorKind::InvalidData)?;
    Ok((Arc::new(Mapping::of(fd.as_fd(), offset, len)?), layout))
}

/// Binds to a queue; waits for one that was let go a moment ago.
fn bind(fd: BorrowedFd<'_>, wanted: &Wanted, flags: u16) -> io::Result<()> {
    while_busy(|| syscall::bind_xdp(fd, wanted.ifindex, wanted.queue, flags)).map_err(|e| match e.kind() {
        io::ErrorKind::ResourceBusy => {
            let why = "another AF_XDP socket has this queue: one participant can have it at a time";
            io::Error::new(io::ErrorKind::ResourceBusy, why)
        }
        io::ErrorKind::InvalidInput => {
            let why = format!("{e}: is there a queue {}?", wanted.queue);
            io::Error::new(io::ErrorKind::InvalidInput, why)
        }
        _ => e,
    })
}
