//! Limit on the shared memory connections of a process: each takes a descriptor, and the
//! application needs some for itself.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::syscall;

/// Connections of this process, over all its participants.
static ENDS: AtomicUsize = AtomicUsize::new(0);

/// Reservation of the descriptor of one connection.
#[derive(Debug)]
pub(super) struct Descriptor(());

impl Descriptor {
    /// Reserves a descriptor. An error if a quarter of the descriptors that the process may have
    /// now (`RLIMIT_NOFILE`) are in use for connections.
    pub(super) fn reserve() -> io::Result<Self> {
        let most = syscall::descriptors_max()? / 4;
        let one_more = |ends: usize| (ends < most).then_some(ends + 1);
        match ENDS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(Self(())),
            Err(_) => Err(io::Error::new(
                io::ErrorKind::QuotaExceeded,
                "shared-memory connections already use a quarter of the file descriptors; raise ulimit -n",
            )),
        }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        ENDS.fetch_sub(1, Ordering::Relaxed);
    }
}
