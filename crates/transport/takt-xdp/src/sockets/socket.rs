//! AF_XDP socket: four rings, bound to one queue of an interface. The frames belong to a
//! [umem](crate::sockets::umem), which the sockets of one participant share.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use libc::xdp_desc;

use crate::assembly::Assembly;
use crate::capabilities::name_missing;
use crate::sockets::mapping::Mapping;
use crate::sockets::ring::{Consumer, Entry, Layout, Producer};
use crate::sockets::umem::{Frame, Sent, Umem};
use crate::syscall;

/// Flags of `linux/if_xdp.h`: at binding, frames may have several parts (Linux 6.6); in an entry,
/// the next one belongs to the same frame.
const XDP_USE_SG: u16 = 1 << 4;
const XDP_PKT_CONTD: u32 = 1;

/// Parameters of a socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Ring sizes, powers of two.
    pub(crate) rx_frames: u32,
    pub(crate) tx_frames: u32,
    /// Frames are copied even if the driver supports zero copy.
    pub(crate) copy: bool,
}

/// Received frame.
#[derive(Debug)]
pub(crate) enum Received {
    /// Frame of one part: its chunk, which must be [returned](Socket::give_to_receive), and the
    /// range of its octets.
    InPlace(Frame, Range<usize>),
    /// Frame of several parts, which is [copied](Socket::assembled): its length.
    Assembled(usize),
}

/// Binding parameters of a socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binding {
    /// Whether to copy; see [`Wanted::copy`].
    pub(crate) copy: bool,
    /// Whether frames may have several parts.
    pub(crate) several_parts: bool,
}

/// AF_XDP socket. Dropping it frees the queue.
#[derive(Debug)]
pub(crate) struct Socket {
    /// Declared first, so that it is closed before its memory is unmapped.
    fd: OwnedFd,
    fill: Producer<u64>,
    completion: Consumer<u64>,
    rx: Consumer<xdp_desc>,
    tx: Producer<xdp_desc>,
    /// Number of chunks in the transmit ring or in transmission.
    tx_pending: u32,
    /// Buffer for frames of several parts.
    assembly: Assembly,
    /// Number of invalid ring entries.
    invalid_entries: u64,
}

impl Socket {
    /// Opens a socket without binding it, and gives the kernel its receive frames. The first socket
    /// of the umem registers it. Needs CAP_NET_RAW.
    pub(crate) fn open(wanted: &Wanted, umem: &mut Umem, registers: bool) -> io::Result<Self> {
        let fd = syscall::xdp_socket().map_err(name_missing("CAP_NET_RAW"))?;
        if registers {
            let registered = syscall::set_xdp_option(fd.as_fd(), libc::XDP_UMEM_REG, &umem.registration());
            registered.map_err(|e| match e.raw_os_error() {
                Some(libc::ENOBUFS) => {
                    let why = "the frames exceed the limit of locked memory: raise it (`ulimit -l`), grant CAP_IPC_LOCK, \
                               or configure fewer frames";
                    io::Error::new(io::ErrorKind::OutOfMemory, why)
                }
                _ => e,
            })?;
        }
        let (rx_frames, tx_frames, shape) = (wanted.rx_frames, wanted.tx_frames, umem.shape());
        // The kernel may publish received frames before their slots in this ring are free.
        let fill_size = 2 * rx_frames;
        for (name, size) in [
            (libc::XDP_UMEM_FILL_RING, fill_size),
            (libc::XDP_UMEM_COMPLETION_RING, tx_frames),
            (libc::XDP_RX_RING, rx_frames),
            (libc::XDP_TX_RING, tx_frames),
        ] {
            syscall::set_xdp_option(fd.as_fd(), name, &(size as libc::c_int))?;
        }
        let at: libc::xdp_mmap_offsets = syscall::xdp_option(fd.as_fd(), libc::XDP_MMAP_OFFSETS)?;
        let fill = map::<u64>(&fd, libc::XDP_UMEM_PGOFF_FILL_RING, &at.fr, fill_size)?;
        let completion = map::<u64>(&fd, libc::XDP_UMEM_PGOFF_COMPLETION_RING, &at.cr, tx_frames)?;
        let rx = map::<xdp_desc>(&fd, libc::XDP_PGOFF_RX_RING as u64, &at.rx, rx_frames)?;
        let tx = map::<xdp_desc>(&fd, libc::XDP_PGOFF_TX_RING as u64, &at.tx, tx_frames)?;
        let mut socket = Self {
            fd,
            fill: Producer::new(fill.0, fill.1),
            completion: Consumer::new(completion.0, completion.1),
            rx: Consumer::new(rx.0, rx.1),
            tx: Producer::new(tx.0, tx.1),
            tx_pending: 0,
            assembly: Assembly::new(if shape.parts > 1 { shape.received_max(shape.parts) } else { 0 }),
            invalid_entries: 0,
        };
        for _ in 0..rx_frames {
            let frame = umem.take_unused().expect("the umem has the receive frames of every socket");
            socket.give_to_receive(umem, frame);
        }
        Ok(socket)
    }

    /// Binds the socket to a queue, with the frames that it or another socket has registered.
    /// "Busy" if another socket has the queue, or had it until some 15 ms ago; "invalid" if there
    /// is no such queue. Can be repeated.
    pub(crate) fn bind(&self, ifindex: u32, queue: u32, how: Binding, frames_of: Option<&Self>) -> io::Result<()> {
        let copy = if how.copy { libc::XDP_COPY } else { 0 };
        let parts = if how.several_parts { XDP_USE_SG } else { 0 };
        let flags = libc::XDP_USE_NEED_WAKEUP | copy | parts;
        syscall::bind_xdp(self.as_fd(), ifindex, queue, flags, frames_of.map(AsFd::as_fd))
    }

    /// Reports whether the driver accesses the frames directly.
    pub(crate) fn is_zero_copy(&self) -> io::Result<bool> {
        let options: libc::xdp_options = syscall::xdp_option(self.fd.as_fd(), libc::XDP_OPTIONS)?;
        Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }

    /// Returns the number of frames that the kernel dropped because none was free, the receive ring
    /// was full, or a descriptor was invalid.
    pub(crate) fn kernel_drops(&self) -> io::Result<u64> {
        let counts: libc::xdp_statistics = syscall::xdp_option(self.fd.as_fd(), libc::XDP_STATISTICS)?;
        // An empty fill ring is counted in `rx_dropped` too.
        Ok(counts.rx_dropped + counts.rx_ring_full + counts.rx_invalid_descs + counts.tx_invalid_descs)
    }

    /// Returns the number of invalid ring entries.
    pub(crate) fn invalid_entries(&self) -> u64 {
        self.invalid_entries
    }

    /// Receives the next frame.
    pub(crate) fn receive(&mut self, umem: &mut Umem) -> Option<Received> {
        loop {
            let entry = self.rx.pop()?;
            self.rx.release();
            let more = entry.options & XDP_PKT_CONTD != 0;
            let (chunk, range) = match umem.take_received(entry.addr) {
                Some((chunk, at)) => (Some(chunk), at..at + entry.len as usize),
                None => (None, usize::MAX..usize::MAX),
            };
            let added = match &chunk {
                Some(chunk) if range.end <= umem.shape().chunk_len && (more || self.assembly.is_open()) => {
                    self.assembly.add(Some(umem.bytes(chunk, range)), more)
                }
                Some(_) if range.end <= umem.shape().chunk_len => {
                    return chunk.map(|chunk| Received::InPlace(chunk, range));
                }
                _ => self.assembly.add(None, more),
            };
            if let Some(chunk) = chunk {
                self.give_to_receive(umem, chunk);
            }
            match added {
                Ok(None) => {}
                Ok(Some(len)) => return Some(Received::Assembled(len)),
                Err(_) => self.invalid_entries += 1,
            }
        }
    }

    /// Returns the last received frame of several parts, which had this length.
    pub(crate) fn assembled(&self, len: usize) -> &[u8] {
        self.assembly.octets(len)
    }

    /// Returns a chunk that was received here to the kernel, for receiving.
    pub(crate) fn give_to_receive(&mut self, umem: &mut Umem, chunk: Frame) {
        let address = umem.give_to_receive(chunk);
        // The ring has twice as many slots as there are receive frames.
        let pushed = self.fill.push(address);
        debug_assert!(pushed, "the fill ring has room for every receive frame");
        self.fill.publish();
    }

    /// Reports whether the driver requests a wake-up for new receive frames.
    pub(crate) fn receive_needs_wakeup(&self) -> bool {
        self.fill.needs_wakeup()
    }

    /// Queues octets of a frame; they are sent at [`flush`](Self::flush).
    pub(crate) fn send(&mut self, umem: &mut Umem, frame: Frame, range: Range<usize>) {
        let mut parts = umem.give_to_send(frame, range).peekable();
        while let Some((addr, len)) = parts.next() {
            let options = if parts.peek().is_some() { XDP_PKT_CONTD } else { 0 };
            // The ring has a slot for every transmit chunk of the umem.
            let pushed = self.tx.push(xdp_desc { addr, len, options });
            debug_assert!(pushed, "the transmit ring has room for every transmit frame");
            self.tx_pending += 1;
        }
    }

    /// Makes the kernel send the queued frames, and takes back those already sent. An error
    /// concerns the interface; the frames stay queued.
    pub(crate) fn flush(&mut self, umem: &mut Umem) -> io::Result<()> {
        if self.tx_pending == 0 {
            return Ok(());
        }
        self.tx.publish();
        let result = self.kick(umem);
        self.reap(umem);
        result
    }

    /// In copy mode, one system call sends up to 32 frames, and returns `EAGAIN` if there are more.
    fn kick(&mut self, umem: &mut Umem) -> io::Result<()> {
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
            // Every sent frame makes room for the remaining ones.
            self.reap(umem);
        }
        Ok(())
    }

    /// Wakes a driver that waits for free frames.
    pub(crate) fn wake_receiver(&self) {
        let mut nothing = [0; 0];
        // The result does not matter: the receive ring shows what arrived.
        drop(syscall::receive(self.fd.as_fd(), &mut nothing));
    }

    /// Takes back the frames that were sent.
    pub(crate) fn reap(&mut self, umem: &mut Umem) {
        let mut any = false;
        while let Some(address) = self.completion.pop() {
            any = true;
            let Some(sent) = umem.take_sent(address) else {
                self.invalid_entries += 1;
                continue;
            };
            self.tx_pending = self.tx_pending.saturating_sub(1);
            if let Sent::Frame(frame) = sent {
                umem.put(frame);
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

/// Maps the memory of one ring, and computes its layout.
fn map<T: Entry>(
    fd: &OwnedFd,
    offset: u64,
    offsets: &libc::xdp_ring_offset,
    size: u32,
) -> io::Result<(Arc<Mapping>, Layout)> {
    let layout = Layout::from_offsets(offsets, size).and_then(|layout| Some((layout.memory_len::<T>()?, layout)));
    let (len, layout) = layout.ok_or(io::ErrorKind::InvalidData)?;
    Ok((Arc::new(Mapping::of(fd.as_fd(), offset, len)?), layout))
}

#[cfg(test)]
mod tests {
    use takt_testkit::{not_run, require};

    use super::*;
    use crate::sockets::umem::Shape;

    /// The kernel publishes received frames before it frees their slots in the fill ring. A fast
    /// receiver returns frames in between, in the worst case all of them.
    #[test]
    fn frames_returned_early_fit_into_the_fill_ring() {
        if let Err(why) = require::root().and_then(|()| require::af_xdp()) {
            return not_run(why);
        }
        const FRAMES: u32 = 64;
        let wanted = Wanted { rx_frames: FRAMES, tx_frames: FRAMES, copy: true };
        let mut umem = Umem::new(Shape { chunk_len: 2048, parts: 1 }, FRAMES, FRAMES).expect("memory");
        let mut socket = Socket::open(&wanted, &mut umem, true).expect("root has the permission");
        // The socket is not bound, so the kernel does not consume the frames that opening has put
        // there.
        for n in 0..FRAMES {
            assert!(socket.fill.push(u64::from(n) * 2048), "frame {n}");
        }
        assert!(!socket.fill.push(0), "at most twice the frames complete");
    }
}
