//! The memory of a lane: an anonymous file (`memfd`), mapped by the two processes that it joins.
//!
//! It has no name, so nobody can take it and nothing is left of it when both are gone, however they went. It is sealed
//! against shrinking before it is mapped, so no access to it can fail. `unsafe` is here and in [`super::syscall`] alone;
//! what is built on it sees a slice of atomic words.

#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use super::ring;

/// Neither the size nor the seals themselves may change.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Most words of a lane of another process: 64 MiB and its first words.
const ADOPTED_WORDS_MAX: usize = (64 << 20) / 8 + ring::RECORDS;

/// The mapped words of a lane.
pub(super) struct Mapping {
    words: NonNull<AtomicU64>,
    len: usize,
}

// SAFETY: the memory is reached through atomics alone, and stays mapped until this is dropped, by whatever thread.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// New memory of so many words, all 0, and the file to pass on.
    pub(super) fn create(words: usize) -> io::Result<(Self, OwnedFd)> {
        let file = anonymous_file()?;
        let bytes = libc::off_t::try_from(words * 8).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: no pointers.
        check(unsafe { libc::ftruncate(file.as_raw_fd(), bytes) })?;
        // SAFETY: no pointers.
        check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) })?;
        Ok((Self::map(file.as_fd(), words)?, file))
    }

    /// The memory that another process has created for a lane of so many words. Refused if it is anything that could fail
    /// us later: it must be of that size, of ordinary pages, and sealed.
    pub(super) fn adopt(file: BorrowedFd<'_>, words: usize) -> io::Result<Self> {
        let refused = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        if !ring::is_lane(words) || words > ADOPTED_WORDS_MAX {
            return refused("no size of a lane");
        }
        // SAFETY: no pointers.
        let seals = check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) })?;
        if seals & SEALS != SEALS || seals & libc::F_SEAL_WRITE != 0 {
            return refused("not sealed as a lane is");
        }
        // SAFETY: all-zero is a valid value of this C structure.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: `status` is alive and written by the call.
        check(unsafe { libc::fstat(file.as_raw_fd(), &mut status) })?;
        if usize::try_from(status.st_size) != Ok(words * 8) {
            return refused("not of the size of the lane");
        }
        // Huge pages may not be there when they are touched.
        // SAFETY: no pointers.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        if i128::from(status.st_blksize) != i128::from(page) {
            return refused("not of ordinary pages");
        }
        Self::map(file, words)
    }

    fn map(file: BorrowedFd<'_>, words: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let at = unsafe { libc::mmap(ptr::null_mut(), words * 8, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let words_at = NonNull::new(at.cast()).expect("the kernel maps nothing at 0 unasked");
        Ok(Self { words: words_at, len: words })
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: `len` words are mapped there, page-aligned, until `self` is dropped; the file is sealed at that size, so
        // each access finds a page. Any bits are a valid word. Nobody has a reference to them but as atomics.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and no reference outlives `self`.
        let unmapped = unsafe { libc::munmap(self.words.as_ptr().cast(), self.len * 8) };
        debug_assert_eq!(unmapped, 0, "a mapping of ours");
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping").field("len", &self.len).finish_non_exhaustive()
    }
}

/// A new file without a name that can be sealed.
fn anonymous_file() -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Kernels since 6.3 want to be told that nobody will execute it; those before refuse what they do not know.
    // SAFETY: the name is a C string.
    let mut fd = unsafe { libc::memfd_create(c"takt-shm".as_ptr(), flags | libc::MFD_NOEXEC_SEAL) };
    if fd < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        // SAFETY: as above.
        fd = unsafe { libc::memfd_create(c"takt-shm".as_ptr(), flags) };
    }
    check(fd)?;
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::atomic::Ordering;

    use super::*;

    const WORDS: usize = ring::RECORDS + 1024;

    #[test]
    fn two_mappings_are_one_memory() {
        let (ours, file) = Mapping::create(WORDS).expect("memory");
        let theirs = Mapping::adopt(file.as_fd(), WORDS).expect("a lane");
        drop(file);
        assert!(ours.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
        ours.words()[WORDS - 1].store(5, Ordering::Relaxed);
        drop(ours);
        assert_eq!((theirs.words().len(), theirs.words()[WORDS - 1].load(Ordering::Relaxed)), (WORDS, 5));
    }

    #[test]
    fn a_lane_cannot_be_made_smaller() {
        let (_ours, file) = Mapping::create(WORDS).expect("memory");
        let file = File::from(file);
        assert!(file.set_len(0).is_err() && file.set_len(1 << 20).is_err());
    }

    #[test]
    fn what_could_fail_later_is_refused() {
        let (_ours, sound) = Mapping::create(WORDS).expect("memory");
        for words in [WORDS - 1, WORDS + 1, ring::RECORDS + 2048, ring::RECORDS + 512, 0] {
            assert!(Mapping::adopt(sound.as_fd(), words).is_err(), "{words}");
        }
        let unsealed = File::from(anonymous_file().expect("memory"));
        unsealed.set_len(WORDS as u64 * 8).expect("not sealed");
        assert!(Mapping::adopt(unsealed.as_fd(), WORDS).is_err());
        let other = File::open("/dev/zero").expect("it is there");
        assert!(Mapping::adopt(other.as_fd(), WORDS).is_err());
    }
}
