//! Waiting for descriptors, and waking such a wait from another thread.
//!
//! A transport never waits. Who has nothing to do waits here for the
//! transports' [`descriptors`](crate::Transport::descriptors) and, where other
//! threads shall be able to end the wait, for a [`Waker`]'s.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use crate::udp::syscall;

/// Waits until one of `descriptors` is readable, the time is over, or a signal
/// arrives; whether one is readable. At most 64 descriptors. Does not allocate.
pub fn wait(descriptors: &[RawFd], timeout: Option<Duration>) -> io::Result<bool> {
    wait_each(descriptors, timeout).map(|ready| ready != 0)
}

/// As [`wait`]; says which are readable: a bit for each, the first one's is the lowest.
pub fn wait_each(descriptors: &[RawFd], timeout: Option<Duration>) -> io::Result<u64> {
    if descriptors.len() > syscall::BATCH {
        let why = "at most 64 descriptors can be waited for";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    match syscall::poll_readable(descriptors, timeout) {
        Ok(ready) => Ok(ready),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(e) => Err(e),
    }
}

/// Ends another thread's [`wait`] for its descriptor: an eventfd.
#[derive(Debug)]
pub struct Waker(File);

impl Waker {
    /// A new one, not woken.
    pub fn new() -> io::Result<Self> {
        Ok(Self(File::from(syscall::eventfd()?)))
    }

    /// Makes the descriptor readable until [`reset`](Self::reset). Does not block.
    pub fn wake(&self) -> io::Result<()> {
        match (&self.0).write(&1u64.to_ne_bytes()) {
            // The counter is at its end: it is readable, that is all it takes.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            result => result.map(|_| ()),
        }
    }

    /// Makes the descriptor unreadable again; whether it was readable.
    pub fn reset(&self) -> io::Result<bool> {
        match (&self.0).read(&mut [0; 8]) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
            result => result.map(|_| true),
        }
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Waker {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_says_which_are_readable() {
        let [first, second, third] = std::array::from_fn(|_| Waker::new().expect("an eventfd"));
        let fds = [first.as_raw_fd(), second.as_raw_fd(), third.as_raw_fd()];
        first.wake().expect("woken");
        third.wake().expect("woken");
        assert_eq!(wait_each(&fds, None).expect("poll works"), 0b101);
        assert!(first.reset().expect("reset") && third.reset().expect("reset"));
        assert_eq!(wait_each(&fds, Some(Duration::ZERO)).expect("poll works"), 0);
    }

    #[test]
    fn a_wait_ends_by_time() {
        let waker = Waker::new().expect("an eventfd");
        let fds = [waker.as_raw_fd()];
        assert!(!wait(&fds, Some(Duration::ZERO)).expect("poll works"));
        assert!(!wait(&fds, Some(Duration::from_millis(2))).expect("poll works"));
        assert!(!wait(&[], Some(Duration::ZERO)).expect("poll works"));
    }

    #[test]
    fn a_wait_ends_by_waking() {
        let waker = Waker::new().expect("an eventfd");
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake().expect("an eventfd can be written"));
            assert!(wait(&[waker.as_raw_fd()], None).expect("poll works"));
        });
        assert!(waker.reset().expect("an eventfd can be read"));
        assert!(!waker.reset().expect("an eventfd can be read"));
        assert!(!wait(&[waker.as_raw_fd()], Some(Duration::ZERO)).expect("poll works"));
    }

    #[test]
    fn too_many_descriptors_are_refused() {
        assert!(wait(&[0; 65], Some(Duration::ZERO)).is_err());
    }
}
