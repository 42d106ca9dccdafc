//! The sockets of one participant at an interface, one for each of its queues, over one memory of frames: what is written
//! to a frame can leave by any of them.
//!
//! Received is from all queues in turn, one frame from each. Of a queue come and leave at most as many frames as were asked for; the
//! frames to be sent are common to all queues.

use std::ffi::CStr;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use crate::config::Queues;
use crate::filter::QUEUES_MAX;
use crate::patience::while_busy;
use crate::socket::{Socket, Wanted};
use crate::syscall;
use crate::umem::{Frame, Umem};

/// Queues of one participant at most: each has a descriptor to be waited for.
pub(crate) const QUEUES_OF_ONE: usize = 32;

/// Where a participant is to have queues.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) ifindex: u32,
    pub(crate) name: &'a CStr,
    pub(crate) queues: &'a Queues,
    /// Octets, 2048 or 4096.
    pub(crate) frame_len: usize,
}

/// One of its queues.
#[derive(Debug)]
struct Queue {
    number: u32,
    socket: Socket,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Bank {
    /// First: the sockets are closed before their memory goes.
    queues: Vec<Queue>,
    umem: Umem,
    /// Which queue is looked at first.
    turn: usize,
}

impl Bank {
    /// Opens sockets and binds them to queues. `route` is any socket of the interface's network namespace.
    ///
    /// Errors: no queue that is free, or one of those that were asked for is not or is not there; no permission; no memory.
    pub(crate) fn open(place: Place<'_>, wanted: &Wanted, route: BorrowedFd<'_>) -> io::Result<Self> {
        let there = syscall::receive_queues(route, place.name)?.min(QUEUES_MAX);
        let (candidates, count): (Vec<u32>, _) = match place.queues {
            Queues::Free(count) => ((0..there).collect(), *count as usize),
            Queues::These(these) => (these.clone(), these.len()),
            Queues::All => ((0..there).collect(), there as usize),
        };
        check(&candidates, count, there)?;
        let frames = wanted.rx_frames * count as u32 + wanted.tx_frames;
        let mut bank = Self { queues: Vec::new(), umem: Umem::new(place.frame_len, frames)?, turn: 0 };
        for nth in 0..count {
            let socket = Socket::open(wanted, &mut bank.umem, nth == 0)?;
            let number = while_busy(|| bank.bind(&socket, place.ifindex, &candidates, wanted.copy))?;
            bank.queues.push(Queue { number, socket });
        }
        Ok(bank)
    }

    /// Binds the socket to the first queue that nobody has.
    fn bind(&self, socket: &Socket, ifindex: u32, candidates: &[u32], copy: bool) -> io::Result<u32> {
        let first = self.queues.first().map(|queue| &queue.socket);
        let own = |number: &&u32| self.queues.iter().all(|queue| queue.number != **number);
        for number in candidates.iter().filter(own) {
            match socket.bind(ifindex, *number, copy, first) {
                Ok(()) => return Ok(*number),
                Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {}
                Err(e) => return Err(io::Error::new(e.kind(), format!("queue {number}: {e}"))),
            }
        }
        let which = match candidates {
            [only] => format!("its queue {only} is"),
            several => format!("{} of its queues {several:?} are", several.len() - self.queues.len()),
        };
        let why = format!("{which} taken: other participants, or other programs with AF_XDP, have them");
        Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
    }

    /// The numbers of the queues, in the order of their indices here.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.queues.iter().map(|queue| queue.number)
    }

    /// How many.
    pub(crate) fn count(&self) -> usize {
        self.queues.len()
    }

    /// Their sockets.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.queues.iter().map(|queue| &queue.socket)
    }

    /// The number and socket of each.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u32, BorrowedFd<'_>)> {
        self.queues.iter().map(|queue| (queue.number, queue.socket.as_fd()))
    }

    /// The frames' memory.
    pub(crate) fn umem(&self) -> &Umem {
        &self.umem
    }

    /// The same to be written to.
    pub(crate) fn umem_mut(&mut self) -> &mut Umem {
        &mut self.umem
    }

    /// The next received frame, where in it its octets are, and the index of the queue that it is to be [given
    /// back](Self::lend_to_receive) to.
    pub(crate) fn receive(&mut self) -> Option<(Frame, Range<usize>, usize)> {
        for _ in 0..self.queues.len() {
            let at = self.turn;
            self.turn = if at + 1 < self.queues.len() { at + 1 } else { 0 };
            if let Some((frame, range)) = self.queues[at].socket.receive(&mut self.umem) {
                return Some((frame, range, at));
            }
        }
        None
    }

    /// A received frame may be received into again.
    pub(crate) fn lend_to_receive(&mut self, frame: Frame, at: usize) {
        self.queues[at].socket.lend_to_receive(&mut self.umem, frame);
    }

    /// A frame to be sent, if one is free.
    pub(crate) fn take(&mut self) -> Option<Frame> {
        if let Some(frame) = self.umem.take() {
            return Some(frame);
        }
        self.queues.iter_mut().for_each(|queue| queue.socket.reap(&mut self.umem));
        self.umem.take()
    }

    /// Queues octets of a frame to be sent by the queue with this index; they leave at [`flush`](Self::flush).
    pub(crate) fn send(&mut self, frame: Frame, range: Range<usize>, at: usize) {
        self.queues[at].socket.send(&mut self.umem, frame, range);
    }

    /// Has the kernel send what is queued, and takes back what was sent. An error is about the interface; what is queued stays
    /// so.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Self { queues, umem, .. } = self;
        let mut refused = None;
        for queue in queues {
            refused = queue.socket.flush(umem).err().or(refused);
        }
        refused.map_or(Ok(()), Err)
    }

    /// Has drivers that wait for frames to receive into look again.
    pub(crate) fn wake_receivers(&self) {
        self.sockets().filter(|socket| socket.receive_needs_wakeup()).for_each(Socket::wake_receiver);
    }
}

/// Can so many of these queues be had?
fn check(candidates: &[u32], count: usize, there: u32) -> io::Result<()> {
    let distinct = candidates.iter().enumerate().all(|(at, queue)| !candidates[..at].contains(queue));
    let why = match candidates.iter().find(|queue| **queue >= there) {
        Some(none) => format!("there is no queue {none}: it has {there}"),
        None if count > QUEUES_OF_ONE => format!("{count} queues are asked for; {QUEUES_OF_ONE} is the most"),
        None if count == 0 => "no queue is asked for".into(),
        None if count > candidates.len() => format!("{count} queues are asked for, and it has {there}"),
        None if !distinct => "a queue is asked for twice".into(),
        None => return Ok(()),
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}
