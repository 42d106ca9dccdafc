//! Shared-memory baseline: one slot per topic, with one writing and one reading process.
//!
//! The slot is a file in `/dev/shm`: a sequence number with the length, followed by the payload. A
//! spinning reader polls the number until it changes. A blocking reader sleeps on it (`futex`); the
//! writer makes a system call only if a reader sleeps. There is no queue: a payload that is not
//! read before the next one is lost. The baseline is thus for round trips; it shows the limit of
//! the machine, not that of a middleware.

use crate::error::{Error, Result};
use crate::link::{Idle, Link, Matched};
use crate::machine::monotonic_ns;
use crate::payload::Blob;
use crate::signal::stopped;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

/// Maximum payload size of a slot, bytes.
pub const PAYLOAD_LEN_MAX: usize = 64 << 10;

/// Maximum sleep of a blocking `receive` before it checks the stop flag.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(100);
/// Number of polls between two reads of the clock.
const SPINS_PER_CLOCK: u32 = 1024;

/// Index of the word that says whether the reader sleeps.
const ASLEEP: usize = 0;
/// Index of the word with the length in its upper half and the sequence number in its lower half.
const NUMBER: usize = 16;
/// Index of the first word of the payload.
const PAYLOAD: usize = NUMBER + 1;
const WORDS: usize = PAYLOAD + PAYLOAD_LEN_MAX / 8;

/// Memory-mapped slot.
struct Slot {
    words: NonNull<AtomicU64>,
    path: PathBuf,
    /// Sequence number last written or read.
    last: u32,
}

// SAFETY: the memory is accessed only through atomics and stays mapped until the slot is dropped.
unsafe impl Send for Slot {}

impl Slot {
    fn open(domain: u32, topic: &str) -> Result<Self> {
        let path = PathBuf::from(format!("/dev/shm/takt-bench-{domain}-{topic}"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let named = |error| Error::os(format!("open {}", path.display()), error);
        let file = options.open(&path).map_err(named)?;
        file.set_len(WORDS as u64 * 8).map_err(named)?;
        let words = map(&file).map_err(|e| Error::os("mmap", e))?;
        let mut slot = Self { words, path, last: 0 };
        slot.last = slot.words()[NUMBER].load(Ordering::Acquire) as u32;
        Ok(slot)
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: `map` has mapped `WORDS` words, and they stay mapped until the slot is dropped.
        // Any bit pattern is a valid word.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), WORDS) }
    }

    fn write(&mut self, payload: &[u8], wakes: bool) {
        let words = self.words();
        for (word, bytes) in words[PAYLOAD..].iter().zip(payload.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
        }
        let number = self.last.wrapping_add(1);
        words[NUMBER].store((payload.len() as u64) << 32 | u64::from(number), Ordering::Release);
        if wakes {
            fence(Ordering::SeqCst);
            if words[ASLEEP].load(Ordering::Relaxed) != 0 {
                futex(&words[NUMBER], libc::FUTEX_WAKE, 1, None);
            }
        }
        self.last = number;
    }

    /// Reads the payload if the sequence number has changed. Returns whether it has.
    fn read(&mut self, sample: &mut Blob) -> bool {
        let number = self.words()[NUMBER].load(Ordering::Acquire);
        if number as u32 == self.last {
            return false;
        }
        let len = ((number >> 32) as usize).min(PAYLOAD_LEN_MAX);
        sample.data.resize(len, 0);
        for (bytes, word) in sample.data.chunks_mut(8).zip(&self.words()[PAYLOAD..]) {
            let whole = word.load(Ordering::Relaxed).to_ne_bytes();
            bytes.copy_from_slice(&whole[..bytes.len()]);
        }
        self.last = number as u32;
        true
    }

    /// Sleeps until the sequence number changes, or until the timeout.
    fn sleep(&self, timeout: Duration) {
        let words = self.words();
        words[ASLEEP].store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if words[NUMBER].load(Ordering::Relaxed) as u32 == self.last {
            futex(&words[NUMBER], libc::FUTEX_WAIT, self.last, Some(timeout));
        }
        words[ASLEEP].store(0, Ordering::Relaxed);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and no reference outlives the slot.
        unsafe { libc::munmap(self.words.as_ptr().cast(), WORDS * 8) };
        // The process on the other side may have removed the file already.
        drop(std::fs::remove_file(&self.path));
    }
}

fn map(file: &File) -> io::Result<NonNull<AtomicU64>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice overlaps no memory in use.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), WORDS * 8, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(at.cast()).expect("mmap without a hint never returns address 0"))
}

/// Calls `futex(2)` on the lower half of a word: on little-endian machines, its first half. The
/// result is ignored, since callers check the word again.
fn futex(word: &AtomicU64, operation: libc::c_int, value: u32, timeout: Option<Duration>) {
    let at = word.as_ptr().cast::<u32>().wrapping_add(usize::from(cfg!(target_endian = "big")));
    let time = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word is alive and aligned, and so is the time, if there is one; both are only
    // read.
    unsafe { libc::syscall(libc::SYS_futex, at, operation, value, time) };
}

/// Link that writes the slot of one topic and reads that of another.
pub struct RawShm {
    writes: Option<Slot>,
    reads: Option<Slot>,
    idle: Idle,
}

impl RawShm {
    /// Opens the slots.
    ///
    /// # Errors
    /// The topic is a stream, or the memory cannot be mapped.
    pub fn new(domain: u32, idle: Idle, write_topic: Option<&str>, read_topic: Option<&str>) -> Result<Self> {
        let open = |topic: Option<&str>| match topic {
            Some("Data") => Err(Error::Usage("a slot of shared memory is for round trips, not for streams".into())),
            Some(topic) => Slot::open(domain, topic).map(Some),
            None => Ok(None),
        };
        Ok(Self { writes: open(write_topic)?, reads: open(read_topic)?, idle })
    }
}

impl Link for RawShm {
    fn write(&mut self, sample: &Blob) -> Result<bool> {
        let wakes = self.idle == Idle::Block;
        let Some(slot) = &mut self.writes else { return Err(Error::Usage("this link has no writer".into())) };
        if sample.data.len() > PAYLOAD_LEN_MAX {
            return Err(Error::Usage(format!("a slot holds at most {PAYLOAD_LEN_MAX} bytes")));
        }
        slot.write(&sample.data, wakes);
        Ok(true)
    }

    fn receive(&mut self, sample: &mut Blob, timeout: Duration) -> Result<bool> {
        let Some(slot) = &mut self.reads else { return Err(Error::Usage("this link has no reader".into())) };
        let deadline = monotonic_ns() + timeout.as_nanos() as u64;
        loop {
            for _ in 0..if self.idle == Idle::Spin { SPINS_PER_CLOCK } else { 1 } {
                if slot.read(sample) {
                    return Ok(true);
                }
                std::hint::spin_loop();
            }
            let left = deadline.saturating_sub(monotonic_ns());
            if stopped() || left == 0 {
                return Ok(false);
            }
            if self.idle == Idle::Block {
                slot.sleep(Duration::from_nanos(left).min(RECEIVE_TIMEOUT));
            }
        }
    }

    fn matched(&mut self) -> Result<Matched> {
        Ok(Matched { readers: usize::from(self.writes.is_some()), writers: usize::from(self.reads.is_some()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exchanges round trips between two threads.
    fn round_trips(domain: u32, idle: Idle) {
        let mut ping = RawShm::new(domain, idle, Some("Ping"), Some("Pong")).expect("plain shared memory");
        let mut pong = RawShm::new(domain, idle, Some("Pong"), Some("Ping")).expect("plain shared memory");
        let long = Duration::from_secs(60);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut sample = Blob::default();
                for _ in 0..50 {
                    assert!(pong.receive(&mut sample, long).expect("the other side is alive"));
                    assert!(pong.write(&sample).expect("the other side is alive"));
                }
            });
            let mut answer = Blob::default();
            for n in 0..50 {
                let mut sample = Blob::filled(16 + 37 * n as usize);
                sample.mark(n, 4);
                assert!(ping.write(&sample).expect("the other side is alive"));
                assert!(ping.receive(&mut answer, long).expect("the other side is alive"));
                assert_eq!(answer, sample);
            }
            assert!(!ping.receive(&mut answer, Duration::from_millis(1)).expect("the other side is alive"));
        });
    }

    #[test]
    fn payload_round_trips_with_a_blocking_reader() {
        round_trips(230, Idle::Block);
    }

    #[test]
    fn payload_round_trips_with_a_spinning_reader() {
        round_trips(231, Idle::Spin);
    }

    #[test]
    fn streams_and_oversized_payloads_are_refused() {
        assert!(RawShm::new(229, Idle::Spin, Some("Data"), None).is_err());
        let mut link = RawShm::new(229, Idle::Spin, Some("Ping"), None).expect("plain shared memory");
        assert!(link.write(&Blob::filled(PAYLOAD_LEN_MAX + 1)).is_err());
    }
}
