//! Sockets of one participant at an interface, one for each of its queues, over a shared umem: a
//! frame can be sent by any of them.
//!
//! Frames are received from all queues round-robin. Received frames are limited per queue to the
//! configured number; all queues share the frames for sending.

use std::ffi::CStr;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use takt_wire::SharedFrame;

use crate::config::Queues;
use crate::program::filter::QUEUES_MAX;
use crate::retry::retry_while_busy;
use crate::sockets::socket::{self, Binding, Socket, Wanted};
use crate::sockets::umem::{Frame, Shape, Umem};
use crate::syscall;

/// Maximum number of queues of one participant: each has a descriptor to wait for.
pub(crate) const QUEUES_PER_PARTICIPANT_MAX: usize = 32;

/// Fraction of the received chunks that can be held at a time: one in this many.
const HELD_DIVISOR: usize = 4;

/// Interface and frame layout for the queues of a participant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueLocation<'a> {
    pub(crate) ifindex: u32,
    pub(crate) name: &'a CStr,
    pub(crate) queues: &'a Queues,
    /// MTU of the interface.
    pub(crate) mtu: usize,
    /// Layout of the frames.
    pub(crate) shape: Shape,
}

/// Queue of the participant.
#[derive(Debug)]
struct Queue {
    number: u32,
    socket: Socket,
}

/// Received frame, to be [returned](SocketSet::return_to_kernel) before the next one is received.
#[derive(Debug)]
pub(crate) struct Received {
    what: socket::Received,
    /// Index of its queue.
    queue: usize,
}

impl Received {
    /// Reports whether the frame was not copied.
    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self.what, socket::Received::InPlace(..))
    }
}

/// Sockets of one participant. See the [module](self).
#[derive(Debug)]
pub(crate) struct SocketSet {
    /// Declared first, so that the sockets are closed before their memory is unmapped.
    queues: Vec<Queue>,
    umem: Umem,
    /// Maximum number of parts of a frame: one if the kernel does not support more.
    parts: u32,
    /// Index of the queue that is polled first.
    next_queue: usize,
    /// Received chunks that are held, with the queues that they return to; its capacity limits the
    /// number.
    held: Vec<(Frame, usize)>,
    /// Value of [`Umem::released`] at the last check of the held chunks.
    released: u32,
    /// Total number of held frames.
    held_total: u64,
}

impl SocketSet {
    /// Opens sockets and binds them to queues. `route` is any socket of the interface's network
    /// namespace.
    ///
    /// # Errors
    /// No queue is free, a requested queue is in use or does not exist, a permission is missing, or
    /// there is not enough memory.
    pub(crate) fn open(location: QueueLocation<'_>, wanted: &Wanted, route: BorrowedFd<'_>) -> io::Result<Self> {
        let there = syscall::receive_queues(route, location.name)?.min(QUEUES_MAX);
        let (candidates, count): (Vec<u32>, _) = match location.queues {
            Queues::Free(count) => ((0..there).collect(), *count as usize),
            Queues::These(these) => (these.clone(), these.len()),
            Queues::All => ((0..there).collect(), there as usize),
        };
        check(&candidates, count, there)?;
        let parts = location.shape.parts;
        let umem = Umem::new(location.shape, wanted.rx_frames * count as u32, wanted.tx_frames / parts)?;
        let mut set =
            Self { queues: Vec::new(), umem, parts, next_queue: 0, held: Vec::new(), released: 0, held_total: 0 };
        set.held.reserve_exact((wanted.rx_frames as usize * count) / HELD_DIVISOR);
        for nth in 0..count {
            let socket = Socket::open(wanted, &mut set.umem, nth == 0)?;
            let number = match retry_while_busy(|| set.bind(&socket, location.ifindex, &candidates, wanted.copy)) {
                // Not supported before Linux 6.6, or by the driver.
                Err(e) if set.parts > 1 && matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
                    set.parts = 1;
                    retry_while_busy(|| set.bind(&socket, location.ifindex, &candidates, wanted.copy))?
                }
                bound => bound?,
            };
            set.queues.push(Queue { number, socket });
        }
        Ok(set)
    }

    /// Binds the socket to the first free queue.
    fn bind(&self, socket: &Socket, ifindex: u32, candidates: &[u32], copy: bool) -> io::Result<u32> {
        let first = self.queues.first().map(|queue| &queue.socket);
        let own = |number: &&u32| self.queues.iter().all(|queue| queue.number != **number);
        for number in candidates.iter().filter(own) {
            match socket.bind(ifindex, *number, Binding { copy, several_parts: self.parts > 1 }, first) {
                Ok(()) => return Ok(*number),
                Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {}
                Err(e) => return Err(io::Error::new(e.kind(), format!("queue {number}: {e}"))),
            }
        }
        let which = match candidates {
            [only] => format!("its queue {only} is"),
            several => format!("{} of its queues {several:?} are", several.len() - self.queues.len()),
        };
        let why = format!("{which} taken by other participants or by other programs with AF_XDP");
        Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
    }

    /// Returns the queue numbers, in the order of their indices.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.queues.iter().map(|queue| queue.number)
    }

    /// Returns the number of queues.
    pub(crate) fn count(&self) -> usize {
        self.queues.len()
    }

    /// Returns the sockets.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.queues.iter().map(|queue| &queue.socket)
    }

    /// Returns the number and socket of each queue.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u32, BorrowedFd<'_>)> {
        self.queues.iter().map(|queue| (queue.number, queue.socket.as_fd()))
    }

    /// Returns the umem.
    pub(crate) fn umem(&self) -> &Umem {
        &self.umem
    }

    /// Returns the umem for writing.
    pub(crate) fn umem_mut(&mut self) -> &mut Umem {
        &mut self.umem
    }

    /// Returns the maximum length of received and sent frames, in octets.
    pub(crate) fn frame_len_max(&self) -> usize {
        self.umem.shape().received_max(self.parts)
    }

    /// Returns the maximum number of parts of a frame.
    pub(crate) fn parts(&self) -> u32 {
        self.parts
    }

    /// Receives the next frame.
    pub(crate) fn receive(&mut self) -> Option<Received> {
        if !self.held.is_empty() {
            self.return_released();
        }
        for _ in 0..self.queues.len() {
            let queue = self.next_queue;
            self.next_queue = if queue + 1 < self.queues.len() { queue + 1 } else { 0 };
            if let Some(what) = self.queues[queue].socket.receive(&mut self.umem) {
                return Some(Received { what, queue });
            }
        }
        None
    }

    /// Returns the octets of a received frame.
    pub(crate) fn bytes(&self, received: &Received) -> &[u8] {
        match &received.what {
            socket::Received::InPlace(frame, range) => self.umem.bytes(frame, range.clone()),
            socket::Received::Assembled(len) => self.queues[received.queue].socket.assembled(*len),
        }
    }

    /// Returns the frame as a loan; `None` if it cannot be held, or too many are held.
    pub(crate) fn loaned_frame(&self, received: &Received) -> Option<SharedFrame<'_>> {
        match &received.what {
            socket::Received::InPlace(frame, range) if self.held.len() < self.held.capacity() => {
                Some(self.umem.loaned_frame(frame, range.clone()))
            }
            _ => None,
        }
    }

    /// Returns the frame to the kernel, once it is not held any more.
    pub(crate) fn return_to_kernel(&mut self, received: Received) {
        let socket::Received::InPlace(frame, _) = received.what else { return };
        if self.umem.is_held(&frame) {
            self.held_total += 1;
            self.held.push((frame, received.queue));
        } else {
            self.queues[received.queue].socket.give_to_receive(&mut self.umem, frame);
        }
    }

    /// Returns the released chunks to the kernel.
    fn return_released(&mut self) {
        let released = self.umem.released();
        if released == std::mem::replace(&mut self.released, released) {
            return;
        }
        let mut at = 0;
        while at < self.held.len() {
            if self.umem.is_held(&self.held[at].0) {
                at += 1;
                continue;
            }
            let (frame, queue) = self.held.swap_remove(at);
            self.queues[queue].socket.give_to_receive(&mut self.umem, frame);
        }
    }

    /// Returns the total number of held frames at the last receive.
    pub(crate) fn held_total(&self) -> u64 {
        self.held_total
    }

    /// Takes a frame for sending, if one is free.
    pub(crate) fn take(&mut self) -> Option<Frame> {
        if let Some(frame) = self.umem.take() {
            return Some(frame);
        }
        self.queues.iter_mut().for_each(|queue| queue.socket.reap(&mut self.umem));
        self.umem.take()
    }

    /// Queues octets of a frame on the queue with this index; they are sent at
    /// [`flush`](Self::flush).
    pub(crate) fn send(&mut self, frame: Frame, range: Range<usize>, at: usize) {
        self.queues[at].socket.send(&mut self.umem, frame, range);
    }

    /// Makes the kernel send the queued frames, and takes back those already sent. An error
    /// concerns the interface; the frames stay queued.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Self { queues, umem, .. } = self;
        let mut refused = None;
        for queue in queues {
            refused = queue.socket.flush(umem).err().or(refused);
        }
        refused.map_or(Ok(()), Err)
    }

    /// Wakes drivers that wait for free frames.
    pub(crate) fn wake_receivers(&self) {
        self.sockets().filter(|socket| socket.receive_needs_wakeup()).for_each(Socket::wake_receiver);
    }
}

/// Checks that this number of queues is available among the candidates.
fn check(candidates: &[u32], count: usize, there: u32) -> io::Result<()> {
    let distinct = candidates.iter().enumerate().all(|(at, queue)| !candidates[..at].contains(queue));
    let why = match candidates.iter().find(|queue| **queue >= there) {
        Some(none) => format!("the interface has no queue {none}: it has {there}"),
        None if count > QUEUES_PER_PARTICIPANT_MAX => {
            format!("{count} queues requested; the maximum is {QUEUES_PER_PARTICIPANT_MAX}")
        }
        None if count == 0 => "no queue requested".into(),
        None if count > candidates.len() => format!("{count} queues requested; it has {there}"),
        None if !distinct => "a queue is requested twice".into(),
        None => return Ok(()),
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}
