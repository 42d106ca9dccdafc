//! The sockets of one participant at an interface, one for each of its queues, over one memory of frames: what is written
//! to a frame can leave by any of them.
//!
//! Received is from all queues in turn, one frame from each. Of a queue come and leave at most as many frames as were asked for; the
//! frames to be sent are common to all queues.

use std::ffi::CStr;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use takt_wire::LentFrame;

use crate::config::Queues;
use crate::filter::QUEUES_MAX;
use crate::patience::while_busy;
use crate::socket::{self, Binding, Socket, Wanted};
use crate::syscall;
use crate::umem::{Frame, Shape, Umem};

/// Queues of one participant at most: each has a descriptor to be waited for.
pub(crate) const QUEUES_OF_ONE: usize = 32;

/// Of so many received chunks one may be held by others at a time; what comes beyond cannot be held.
const HELD: usize = 4;

/// Where a participant is to have queues.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) ifindex: u32,
    pub(crate) name: &'a CStr,
    pub(crate) queues: &'a Queues,
    /// Its MTU.
    pub(crate) mtu: usize,
    /// Of the frames.
    pub(crate) shape: Shape,
}

/// One of its queues.
#[derive(Debug)]
struct Queue {
    number: u32,
    socket: Socket,
}

/// A received frame, to be [given back](Bank::give_back) before the next one is received.
#[derive(Debug)]
pub(crate) struct Received {
    what: socket::Received,
    /// The index of its queue.
    queue: usize,
}

impl Received {
    /// It was not copied.
    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self.what, socket::Received::InPlace(..))
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Bank {
    /// First: the sockets are closed before their memory goes.
    queues: Vec<Queue>,
    umem: Umem,
    /// Parts of a frame at most: one where the kernel knows no more.
    parts: u32,
    /// Which queue is looked at first.
    turn: usize,
    /// Received chunks that others hold, and the queues that they go back to; room for as many as may be held.
    held: Vec<(Frame, usize)>,
    /// What [`Umem::freed`] was when they were last looked at.
    freed: u32,
    /// How many were held so far.
    held_ever: u64,
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
        let parts = place.shape.parts;
        let umem = Umem::new(place.shape, wanted.rx_frames * count as u32, wanted.tx_frames / parts)?;
        let mut bank = Self { queues: Vec::new(), umem, parts, turn: 0, held: Vec::new(), freed: 0, held_ever: 0 };
        bank.held.reserve_exact((wanted.rx_frames as usize * count) / HELD);
        for nth in 0..count {
            let socket = Socket::open(wanted, &mut bank.umem, nth == 0)?;
            let number = match while_busy(|| bank.bind(&socket, place.ifindex, &candidates, wanted.copy)) {
                // Before Linux 6.6, or of the driver.
                Err(e) if bank.parts > 1 && matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
                    bank.parts = 1;
                    while_busy(|| bank.bind(&socket, place.ifindex, &candidates, wanted.copy))?
                }
                bound => bound?,
            };
            bank.queues.push(Queue { number, socket });
        }
        Ok(bank)
    }

    /// Binds the socket to the first queue that nobody has.
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

    /// Octets of the longest frame that can be received and sent.
    pub(crate) fn frame_len_max(&self) -> usize {
        self.umem.shape().received_max(self.parts)
    }

    /// Parts of a frame at most.
    pub(crate) fn parts(&self) -> u32 {
        self.parts
    }

    /// The next received frame.
    pub(crate) fn receive(&mut self) -> Option<Received> {
        if !self.held.is_empty() {
            self.take_back();
        }
        for _ in 0..self.queues.len() {
            let queue = self.turn;
            self.turn = if queue + 1 < self.queues.len() { queue + 1 } else { 0 };
            if let Some(what) = self.queues[queue].socket.receive(&mut self.umem) {
                return Some(Received { what, queue });
            }
        }
        None
    }

    /// Its octets.
    pub(crate) fn bytes(&self, received: &Received) -> &[u8] {
        match &received.what {
            socket::Received::InPlace(frame, range) => self.umem.bytes(frame, range.clone()),
            socket::Received::Assembled(len) => self.queues[received.queue].socket.assembled(*len),
        }
    }

    /// It as it can be held; `None` if it cannot, or too many are held.
    pub(crate) fn lent_frame(&self, received: &Received) -> Option<LentFrame<'_>> {
        match &received.what {
            socket::Received::InPlace(frame, range) if self.held.len() < self.held.capacity() => {
                Some(self.umem.lent_frame(frame, range.clone()))
            }
            _ => None,
        }
    }

    /// It may be received into again, when nobody holds it any more.
    pub(crate) fn give_back(&mut self, received: Received) {
        let socket::Received::InPlace(frame, _) = received.what else { return };
        if self.umem.is_held(&frame) {
            self.held_ever += 1;
            self.held.push((frame, received.queue));
        } else {
            self.queues[received.queue].socket.lend_to_receive(&mut self.umem, frame);
        }
    }

    /// Lets the kernel have the chunks that were held.
    fn take_back(&mut self) {
        let freed = self.umem.freed();
        if freed == std::mem::replace(&mut self.freed, freed) {
            return;
        }
        let mut at = 0;
        while at < self.held.len() {
            if self.umem.is_held(&self.held[at].0) {
                at += 1;
                continue;
            }
            let (frame, queue) = self.held.swap_remove(at);
            self.queues[queue].socket.lend_to_receive(&mut self.umem, frame);
        }
    }

    /// How many received frames were held so far when the next one was received.
    pub(crate) fn held_ever(&self) -> u64 {
        self.held_ever
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
