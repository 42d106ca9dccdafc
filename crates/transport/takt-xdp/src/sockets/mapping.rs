//! Memory shared with the kernel: mapped here, unmapped on drop.
//!
//! The mapping of a ring keeps its socket alive, so a socket is only released when its rings are
//! unmapped too.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

/// Mapped memory: readable, writable, shared, page-aligned. Other code may write to it.
#[derive(Debug)]
pub(crate) struct Mapping {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; users of the pointer are responsible
// for their accesses.
unsafe impl Send for Mapping {}
// SAFETY: as above; `&Mapping` provides only the pointer and the length.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps new memory, all zeros.
    pub(crate) fn anonymous(len: usize) -> io::Result<Self> {
        // Miri supports only private memory; it has no kernel to share it with.
        let shared = if cfg!(miri) { libc::MAP_PRIVATE } else { libc::MAP_SHARED | libc::MAP_POPULATE };
        Self::map(len, shared | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// Maps the memory that a descriptor provides at `offset`.
    pub(crate) fn of(fd: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        Self::map(len, libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_raw_fd(), offset)
    }

    fn map(len: usize, flags: libc::c_int, fd: libc::c_int, offset: libc::off_t) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses an address that nothing else occupies.
        let at = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, fd, offset) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        match NonNull::new(at.cast()) {
            Some(at) => Ok(Self { at, len }),
            None => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    /// Returns the start of the memory. Valid while this lives.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.at.as_ptr()
    }

    /// Returns the length in octets.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, and no pointer is used after this is dropped. The call
        // cannot fail then.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.len) };
    }
}
