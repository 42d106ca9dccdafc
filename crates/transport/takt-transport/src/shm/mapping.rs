//! Memory shared between processes: anonymous files (`memfd`), mapped by every process that
//! receives the descriptor.
//!
//! The memory of a *connection* holds its rings and is written by both processes. A
//! *segment* is written by its creator alone; others can only map it read-only
//! (`F_SEAL_FUTURE_WRITE`). Neither has a name, so no other process can open it. The kernel frees
//! it after the last process has ended. Both are sealed against shrinking before another process
//! maps them, so no access can fault. Only this module, [`super::segment`] and [`super::syscall`]
//! contain `unsafe`; code above sees a slice of atomic words.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use super::ports::Band;
use super::ring;
use super::segment;
use super::syscall;
use crate::udp::syscall::check;

/// Prevents changes of the size and of the seals.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Maximum number of words in a ring of another process: 64 MiB and its first words.
const REMOTE_WORDS_MAX: usize = (64 << 20) / 8 + ring::RECORDS;

/// Also prevents new writable mappings and writes to the file.
const SEGMENT_SEALS: libc::c_int = SEALS | libc::F_SEAL_FUTURE_WRITE;

/// Mapped words.
pub(super) struct Mapping {
    words: NonNull<AtomicU64>,
    len: usize,
    /// Number of hold counters at the end of the memory of a connection, and of words of the urgent
    /// ring before them.
    holds: usize,
    urgent: usize,
}

// SAFETY: the memory is accessed through atomics alone, and stays mapped until this is dropped, by
// any thread.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Creates the memory of a connection: rings of these word counts, by [bands](Band), and hold
    /// counters for so many slots, all 0. Also returns the file to pass on.
    pub(super) fn create(rings: [usize; 2], slots: usize) -> io::Result<(Self, OwnedFd)> {
        let file = anonymous_file(c"takt-shm", mapping_words(rings, slots))?;
        seal(file.as_fd(), SEALS)?;
        Ok((Self::map_rings(file.as_fd(), rings, slots)?, file))
    }

    /// Creates a segment of so many words, all 0, and returns it with the file to pass on. No other
    /// process can write to it.
    pub(super) fn create_segment(words: usize) -> io::Result<(Self, OwnedFd)> {
        let file = anonymous_file(c"takt-segment", words)?;
        let memory = Self::map(file.as_fd(), words, READ_WRITE)?;
        seal(file.as_fd(), SEGMENT_SEALS)?;
        Ok((memory, file))
    }

    /// Checks that the machine supports such files now.
    pub(super) fn probe() -> io::Result<()> {
        seal(anonymous_file(c"takt-probe", 1)?.as_fd(), SEGMENT_SEALS)
    }

    /// Checks that so many bytes of address space are free now.
    pub(super) fn probe_address_space(bytes: usize) -> io::Result<()> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let at = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            let why = io::Error::last_os_error();
            return Err(io::Error::new(why.kind(), format!("{bytes} B of address space (ulimit -v): {why}")));
        }
        // SAFETY: mapped above with this length; there is no reference to it.
        check(unsafe { libc::munmap(at, bytes) }).map(drop)
    }

    /// Maps the memory that another process created for a connection with such rings and hold
    /// counters. Refuses memory that could fault later: it must have this size, ordinary pages, and
    /// the seals.
    pub(super) fn map_remote(file: BorrowedFd<'_>, rings: [usize; 2], slots: usize) -> io::Result<Self> {
        let are_rings = rings.iter().all(|words| ring::is_ring(*words) && *words <= REMOTE_WORDS_MAX);
        if !are_rings || !segment::are_slots(slots) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "invalid size of a ring"));
        }
        check_file(file, mapping_words(rings, slots), SEALS)?;
        Self::map_rings(file, rings, slots)
    }

    /// Maps the segment of another process with so many words and slots, read-only. Refuses it
    /// under the same conditions as the memory of a connection.
    pub(super) fn map_remote_segment(file: BorrowedFd<'_>, words: usize, slots: usize) -> io::Result<Self> {
        if !segment::is_segment(words, slots) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "invalid size of a segment"));
        }
        check_file(file, words, SEGMENT_SEALS)?;
        Self::map(file, words, libc::PROT_READ)
    }

    fn map(file: BorrowedFd<'_>, words: usize, protection: libc::c_int) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let at = unsafe { libc::mmap(ptr::null_mut(), words * 8, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let words_at = NonNull::new(at.cast()).expect("mmap without a hint never returns address 0");
        Ok(Self { words: words_at, len: words, holds: 0, urgent: 0 })
    }

    fn map_rings(file: BorrowedFd<'_>, rings: [usize; 2], slots: usize) -> io::Result<Self> {
        let mut mapping = Self::map(file, mapping_words(rings, slots), READ_WRITE)?;
        (mapping.holds, mapping.urgent) = (slots, rings[1]);
        Ok(mapping)
    }

    /// Returns the words of a ring.
    pub(super) fn ring(&self, band: Band) -> &[AtomicU64] {
        let end = self.len - self.holds;
        match band {
            Band::NotUrgent => self.words(0..end - self.urgent),
            Band::Urgent => self.words(end - self.urgent..end),
        }
    }

    /// Returns the hold counters after the rings. Each counts how often the reader holds a slot of
    /// the writer's segment. The writer increments it before it loans a slot, and the reader
    /// decrements it on release.
    pub(super) fn holds(&self) -> &[AtomicU64] {
        self.words(self.len - self.holds..self.len)
    }

    /// Returns words of a segment that others write, or that are accessed through atomics alone.
    pub(super) fn words(&self, range: Range<usize>) -> &[AtomicU64] {
        assert!(range.start <= range.end && range.end <= self.len, "within the mapping");
        // SAFETY: `len` words are mapped there, page-aligned, until `self` is dropped; the file is
        // sealed at that size, so each access finds a page. Any bits are a valid word. All
        // references to them are atomics: the code that makes slices of other words of a segment
        // ([`super::segment`]) does not request those words here.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().add(range.start), range.len()) }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the address of an octet.
    pub(super) fn octet(&self, at: usize) -> *mut u8 {
        assert!(at < self.len * 8, "within the mapping");
        self.words.as_ptr().cast::<u8>().wrapping_add(at)
    }
}

/// Returns the number of words in the memory of a connection.
fn mapping_words(rings: [usize; 2], slots: usize) -> usize {
    rings[0] + rings[1] + slots
}

const READ_WRITE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

fn seal(file: BorrowedFd<'_>, seals: libc::c_int) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }).map(drop)
}

/// Checks that a file of another process has so many words, ordinary pages, and the seals.
fn check_file(file: BorrowedFd<'_>, words: usize, sealed: libc::c_int) -> io::Result<()> {
    let refused = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    // SAFETY: no pointers.
    let seals = check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) })?;
    if seals & sealed != sealed || seals & libc::F_SEAL_WRITE != 0 {
        return refused("the memory file lacks the required seals");
    }
    // SAFETY: all-zero is a valid value of this C structure.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `status` is alive and written by the call.
    check(unsafe { libc::fstat(file.as_raw_fd(), &mut status) })?;
    if usize::try_from(status.st_size) != Ok(words * 8) {
        return refused("the memory file does not have the announced size");
    }
    // Huge pages may be unavailable when they are touched.
    // SAFETY: no pointers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    if i128::from(status.st_blksize) != i128::from(page) {
        return refused("the memory file does not use ordinary pages");
    }
    Ok(())
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

/// Creates a file of so many words without a name, to be sealed.
fn anonymous_file(label: &CStr, words: usize) -> io::Result<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Since 6.3, kernels expect this flag for files that are not executed; earlier ones refuse
    // unknown flags.
    // SAFETY: the label is a C string.
    let mut fd = unsafe { libc::memfd_create(label.as_ptr(), flags | libc::MFD_NOEXEC_SEAL) };
    if fd < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        // SAFETY: as above.
        fd = unsafe { libc::memfd_create(label.as_ptr(), flags) };
    }
    check(fd)?;
    // SAFETY: a new descriptor without another owner.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    let bytes = libc::off_t::try_from(words * 8).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    if words * 8 > syscall::file_size_max()? {
        // The kernel would end the process with SIGXFSZ.
        let why = format!("a file of {bytes} B is above RLIMIT_FSIZE (ulimit -f)");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    // SAFETY: no pointers.
    check(unsafe { libc::ftruncate(file.as_raw_fd(), bytes) })?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::sync::atomic::Ordering;

    use super::*;

    const WORDS: usize = ring::RECORDS + 1024;
    const RINGS: [usize; 2] = [WORDS, ring::RECORDS + 256];
    const SLOTS: usize = 1024;

    #[test]
    fn two_mappings_share_one_memory() {
        let (ours, file) = Mapping::create(RINGS, SLOTS).expect("memory");
        let theirs = Mapping::map_remote(file.as_fd(), RINGS, SLOTS).expect("the rings can be mapped");
        drop(file);
        let is_zero = |words: &[AtomicU64]| words.iter().all(|word| word.load(Ordering::Relaxed) == 0);
        let parts = |mapping: &Mapping| {
            [mapping.ring(Band::NotUrgent).len(), mapping.ring(Band::Urgent).len(), mapping.holds().len()]
        };
        assert!(is_zero(ours.ring(Band::NotUrgent)) && is_zero(ours.ring(Band::Urgent)) && is_zero(ours.holds()));
        ours.ring(Band::NotUrgent)[WORDS - 1].store(5, Ordering::Relaxed);
        ours.ring(Band::Urgent)[0].store(6, Ordering::Relaxed);
        ours.ring(Band::Urgent)[RINGS[1] - 1].store(7, Ordering::Relaxed);
        ours.holds()[0].store(8, Ordering::Relaxed);
        drop(ours);
        assert_eq!(parts(&theirs), [WORDS, RINGS[1], SLOTS]);
        let word = |words: &[AtomicU64], at: usize| words[at].load(Ordering::Relaxed);
        let (not_urgent, urgent) = (theirs.ring(Band::NotUrgent), theirs.ring(Band::Urgent));
        assert_eq!((word(not_urgent, WORDS - 1), word(urgent, 0), word(urgent, RINGS[1] - 1)), (5, 6, 7));
        assert_eq!(word(theirs.holds(), 0), 8);
    }

    #[test]
    fn rings_cannot_be_shrunk() {
        let (_ours, file) = Mapping::create(RINGS, SLOTS).expect("memory");
        let file = File::from(file);
        assert!(file.set_len(0).is_err() && file.set_len(1 << 20).is_err());
    }

    #[test]
    fn file_that_could_fault_later_is_refused() {
        let (_ours, valid) = Mapping::create(RINGS, SLOTS).expect("memory");
        for words in [WORDS - 1, WORDS + 1, ring::RECORDS + 2048, ring::RECORDS + 512, 0] {
            assert!(Mapping::map_remote(valid.as_fd(), [words, RINGS[1]], SLOTS).is_err(), "{words}");
            assert!(Mapping::map_remote(valid.as_fd(), [WORDS, words], SLOTS).is_err(), "{words}");
        }
        assert!(Mapping::map_remote(valid.as_fd(), [usize::MAX; 2], SLOTS).is_err());
        for slots in [0, 1, SLOTS - 1, SLOTS + 512, usize::MAX] {
            assert!(Mapping::map_remote(valid.as_fd(), RINGS, slots).is_err(), "{slots} slots");
        }
        let unsealed = anonymous_file(c"takt-shm", mapping_words(RINGS, SLOTS)).expect("memory");
        assert!(Mapping::map_remote(unsealed.as_fd(), RINGS, SLOTS).is_err());
        let other = File::open("/dev/zero").expect("the file exists");
        assert!(Mapping::map_remote(other.as_fd(), RINGS, SLOTS).is_err());
    }

    const SEGMENT: usize = SLOTS + 512;

    #[test]
    fn segment_is_writable_by_its_creator_alone() {
        let (ours, file) = Mapping::create_segment(SEGMENT).expect("memory");
        let theirs = Mapping::map_remote_segment(file.as_fd(), SEGMENT, SLOTS).expect("a segment");
        assert!(Mapping::map(file.as_fd(), SEGMENT, READ_WRITE).is_err(), "a second writable mapping is refused");
        ours.words(0..1)[0].store(7, Ordering::Relaxed);
        let file = File::from(file);
        assert!((&file).write_all(b"x").is_err() && file.set_len(0).is_err());
        drop((ours, file));
        assert_eq!(theirs.words(0..1)[0].load(Ordering::Relaxed), 7, "the mapping outlives its creator");
    }

    #[test]
    fn segment_without_the_seals_is_refused() {
        let (_ours, valid) = Mapping::create_segment(SEGMENT).expect("memory");
        for words in [0, SLOTS, SEGMENT - 1, SEGMENT + 512, usize::MAX] {
            assert!(Mapping::map_remote_segment(valid.as_fd(), words, SLOTS).is_err(), "{words}");
        }
        for slots in [0, SLOTS - 1, SLOTS + 512, usize::MAX] {
            assert!(Mapping::map_remote_segment(valid.as_fd(), SEGMENT, slots).is_err(), "{slots} slots");
        }
        let writable = anonymous_file(c"takt-segment", SEGMENT).expect("memory");
        assert!(Mapping::map_remote_segment(writable.as_fd(), SEGMENT, SLOTS).is_err());
        seal(writable.as_fd(), SEALS).expect("the file can be sealed");
        assert!(Mapping::map_remote_segment(writable.as_fd(), SEGMENT, SLOTS).is_err());
    }
}
