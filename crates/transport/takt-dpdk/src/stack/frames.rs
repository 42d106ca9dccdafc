//! Queue of frames that wait for the hardware address of a neighbor, or for the loaned frame to be
//! free.
//!
//! Fixed number of frames, allocated once. FIFO, as far as the neighbors' replies allow.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Waiting frame.
#[derive(Debug)]
pub(super) struct WaitingFrame {
    bytes: Box<[u8]>,
    len: usize,
    /// Neighbor whose hardware address it waits for, if any.
    pub(super) to: Option<Ipv4Addr>,
    pub(super) since: Duration,
}

impl WaitingFrame {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Queue of waiting frames. See the [module](self).
#[derive(Debug)]
pub(super) struct WaitingFrames {
    queue: VecDeque<WaitingFrame>,
    free: Vec<WaitingFrame>,
    per_neighbor: usize,
}

impl WaitingFrames {
    /// Allocates `count` frames of `frame_len` octets, of which one neighbor can have
    /// `per_neighbor`.
    pub(super) fn new(count: usize, per_neighbor: usize, frame_len: usize) -> Self {
        let new_frame = || WaitingFrame { bytes: vec![0; frame_len].into(), len: 0, to: None, since: Duration::ZERO };
        Self {
            queue: VecDeque::with_capacity(count),
            free: std::iter::repeat_with(new_frame).take(count).collect(),
            per_neighbor,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Reports whether a frame waits for this neighbor.
    pub(super) fn has_frame_to(&self, to: Ipv4Addr) -> bool {
        self.queue.iter().any(|frame| frame.to == Some(to))
    }

    /// Adds a frame that `write` fills; it returns the length, or `None` to drop the frame. Returns
    /// false if there is no room.
    pub(super) fn push(
        &mut self,
        to: Option<Ipv4Addr>,
        since: Duration,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> bool {
        let of_same = self.queue.iter().filter(|frame| to.is_some() && frame.to == to).count();
        if of_same >= self.per_neighbor {
            return false;
        }
        let Some(mut frame) = self.free.pop() else {
            return false;
        };
        let len = write(&mut frame.bytes);
        (frame.len, frame.to, frame.since) = (len.unwrap_or(0), to, since);
        match len {
            Some(_) => self.queue.push_back(frame),
            None => self.free.push(frame),
        }
        true
    }

    /// Calls `is_done` for each frame, oldest first, and removes those for which it returns true.
    pub(super) fn remove_if(&mut self, mut is_done: impl FnMut(&mut WaitingFrame) -> bool) {
        for _ in 0..self.queue.len() {
            let Some(mut frame) = self.queue.pop_front() else {
                return;
            };
            if is_done(&mut frame) {
                self.free.push(frame);
            } else {
                self.queue.push_back(frame);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const B: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

    fn push(frames: &mut WaitingFrames, to: Ipv4Addr, n: u8) -> bool {
        frames.push(Some(to), Duration::ZERO, |bytes| {
            bytes[0] = n;
            Some(1)
        })
    }

    fn all(frames: &mut WaitingFrames) -> Vec<u8> {
        let mut all = Vec::new();
        frames.remove_if(|frame| {
            all.extend_from_slice(frame.bytes());
            false
        });
        all
    }

    #[test]
    fn one_neighbor_cannot_take_all_the_room() {
        let mut frames = WaitingFrames::new(5, 3, 8);
        let pushed: Vec<bool> = (0..5).map(|n| push(&mut frames, A, n)).collect();
        assert_eq!(pushed, [true, true, true, false, false]);
        let pushed: Vec<bool> = (5..8).map(|n| push(&mut frames, B, n)).collect();
        assert_eq!(pushed, [true, true, false], "the room for all is up");
        assert_eq!(all(&mut frames), [0, 1, 2, 5, 6]);
    }

    #[test]
    fn finished_frames_make_room_and_the_others_keep_their_order() {
        let mut frames = WaitingFrames::new(4, 2, 8);
        for (to, n) in [(A, 0), (B, 1), (A, 2), (B, 3)] {
            assert!(push(&mut frames, to, n));
        }
        let mut done = Vec::new();
        frames.remove_if(|frame| {
            let is_done = frame.to == Some(A);
            done.extend(is_done.then(|| frame.bytes()[0]));
            is_done
        });
        assert_eq!((done, frames.has_frame_to(A), frames.has_frame_to(B)), (vec![0, 2], false, true));
        assert!(push(&mut frames, A, 4) && push(&mut frames, A, 5));
        assert_eq!(all(&mut frames), [1, 3, 4, 5]);
        assert!(!frames.push(None, Duration::ZERO, |_| None), "full");
        frames.remove_if(|_| true);
        assert!(frames.push(None, Duration::ZERO, |_| None) && frames.is_empty(), "no frame was queued");
    }
}
