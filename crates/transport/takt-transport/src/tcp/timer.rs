//! Timer descriptor that becomes readable at a given time.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use crate::udp::syscall;

/// Timer of the kernel.
#[derive(Debug)]
pub(super) struct Timer {
    timer: File,
    due: Option<Instant>,
}

impl Timer {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { timer: File::from(syscall::timer()?), due: None })
    }

    /// Sets the timer to this time, unless it expires earlier.
    pub(super) fn set_by(&mut self, due: Instant, now: Instant) {
        if self.due.is_some_and(|current| current <= due) {
            return;
        }
        let delay = due.saturating_duration_since(now).max(Duration::from_micros(1));
        if syscall::set_timer(self.timer.as_fd(), delay).is_ok() {
            self.due = Some(due);
        }
    }

    /// Disarms the timer and clears its expiration.
    pub(super) fn reset(&mut self) {
        self.due = None;
        // Nothing to read: it has not expired.
        let _ = self.timer.read(&mut [0; 8]);
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
