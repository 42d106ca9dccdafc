//! Operating system primitives for threads that share memory: futexes, flags, a wakeup event,
//! thread ids.
//!
//! The lock, the event count and the waker use [`Os`], so that tests can run the same code on a
//! model that tries every interleaving. [`Linux`] is the production implementation, all of which is
//! inlined.

use std::cell::Cell;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use takt_transport::readiness;

use super::poll::PollSet;

/// Operating system primitives on which threads wait for each other.
pub(crate) trait Os: 'static {
    type Word: Word;
    type Flag: Flag;
    type Event: Event;

    /// Returns the kernel's id of the calling thread, which identifies the owner of a
    /// priority-inheriting futex. Never zero.
    fn thread_id() -> u32;
}

/// Sets the calling thread to SCHED_OTHER, since a thread inherits the real-time scheduling of its
/// creator. Has no effect if the kernel refuses.
pub(crate) fn reset_scheduling() {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is valid for the call, which keeps no reference to it.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameter) };
}

/// Scheduling urgency of a thread. A thread with the greater value runs first or gets a greater
/// share of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Urgency {
    /// SCHED_DEADLINE is 100, SCHED_FIFO and SCHED_RR are their priority, SCHED_OTHER and
    /// SCHED_BATCH are 0, SCHED_IDLE is -1.
    class: i32,
    /// The nice value, negated.
    weight: i32,
}

impl Urgency {
    /// Returns the urgency of the calling thread. Makes at most three system calls.
    pub(crate) fn of_this_thread() -> Self {
        let mut parameter = libc::sched_param { sched_priority: 0 };
        // SAFETY: 0 is the calling thread, and the parameter is live and writable.
        let policy = unsafe {
            libc::sched_getparam(0, &raw mut parameter);
            libc::sched_getscheduler(0)
        };
        let ordinary = |class| Self {
            class,
            // SAFETY: takes no memory of ours; 0 is the calling thread.
            weight: -unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) },
        };
        match policy {
            libc::SCHED_DEADLINE => Self { class: 100, weight: 0 },
            libc::SCHED_FIFO | libc::SCHED_RR => Self { class: parameter.sched_priority, weight: 0 },
            libc::SCHED_IDLE => ordinary(-1),
            _ => ordinary(0),
        }
    }
}

/// Futex: an atomic word on which threads sleep until another thread wakes them.
pub(crate) trait Word: Send + Sync {
    /// Bit set in addition to the owner's id while other threads wait.
    const WAITERS: u32;

    fn new(value: u32) -> Self;
    fn load(&self, order: Ordering) -> u32;
    fn fetch_add(&self, value: u32, order: Ordering) -> u32;
    fn fetch_sub(&self, value: u32, order: Ordering) -> u32;
    fn compare_exchange(&self, current: u32, new: u32, success: Ordering, failure: Ordering) -> Result<u32, u32>;
    /// Sleeps until woken or until the timeout, provided that the word equals `value`. May wake
    /// spuriously.
    fn wait(&self, value: u32, timeout: Option<Duration>);
    /// Wakes all sleeping threads.
    fn wake_all(&self);
    /// Acquires the word for the calling thread. While it waits, the owner inherits its priority.
    /// An error ends the attempt.
    fn lock_pi(&self) -> io::Result<()>;
    /// Releases the word, which the calling thread owns, to the waiter of highest priority, if
    /// there is one.
    fn unlock_pi(&self) -> io::Result<()>;
}

/// An atomic boolean, sequentially consistent.
pub(crate) trait Flag: Default + Send + Sync {
    fn load(&self) -> bool;
    fn store(&self, value: bool);
}

/// Event that can be waited for together with descriptors. It remains set until it is reset.
pub(crate) trait Event: Send + Sync + Sized {
    fn new() -> io::Result<Self>;
    fn set(&self) -> io::Result<()>;
    fn reset(&self) -> io::Result<()>;
    /// Sleeps until the event is set, a descriptor of the set is readable, or the timeout expires.
    /// Returns whether the event is set, and a bit mask of the readable descriptors.
    fn wait(&self, set: &mut PollSet, timeout: Option<Duration>) -> io::Result<(bool, u64)>;
}

thread_local! {
    static ID: Cell<u32> = const { Cell::new(0) };
}

/// Linux, the production implementation.
#[derive(Debug)]
pub(crate) struct Linux;

impl Os for Linux {
    type Word = AtomicU32;
    type Flag = AtomicBool;
    type Event = readiness::Waker;

    #[inline]
    fn thread_id() -> u32 {
        /// Clears the cached id in the child of a `fork`, whose thread has another id.
        extern "C" fn forget() {
            ID.set(0);
        }
        #[cold]
        fn learn() -> u32 {
            static FORGETS: Once = Once::new();
            // SAFETY: the function lives as long as the process, and touches one thread-local
            // value.
            FORGETS.call_once(|| unsafe {
                let registered = libc::pthread_atfork(None, None, Some(forget));
                debug_assert!(registered == 0, "memory suffices for one more handler");
            });
            // SAFETY: takes no arguments and cannot fail.
            ID.set(unsafe { libc::gettid() }.cast_unsigned());
            ID.get()
        }
        match ID.get() {
            0 => learn(),
            id => id,
        }
    }
}

impl Word for AtomicU32 {
    const WAITERS: u32 = libc::FUTEX_WAITERS;

    fn new(value: u32) -> Self {
        Self::new(value)
    }

    #[inline]
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }

    #[inline]
    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.fetch_add(value, order)
    }

    #[inline]
    fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
        self.fetch_sub(value, order)
    }

    #[inline]
    fn compare_exchange(&self, current: u32, new: u32, success: Ordering, failure: Ordering) -> Result<u32, u32> {
        self.compare_exchange(current, new, success, failure)
    }

    fn wait(&self, value: u32, timeout: Option<Duration>) {
        let timeout = timeout.map(timespec);
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let flags = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the futex word is a live, aligned `u32` and `timeout` is null or a live timespec.
        // The caller checks its condition again after any result (woken, changed, timed out,
        // interrupted).
        unsafe { libc::syscall(libc::SYS_futex, self.as_ptr(), flags, value, timeout) };
    }

    fn wake_all(&self) {
        let flags = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the futex word is a live, aligned `u32`; the kernel only reads its address.
        let woken = unsafe { libc::syscall(libc::SYS_futex, self.as_ptr(), flags, i32::MAX) };
        debug_assert!(woken >= 0, "waking a valid futex cannot fail");
    }

    fn lock_pi(&self) -> io::Result<()> {
        futex_pi(self, libc::FUTEX_LOCK_PI)
    }

    fn unlock_pi(&self) -> io::Result<()> {
        futex_pi(self, libc::FUTEX_UNLOCK_PI)
    }
}

/// Performs a priority-inheriting futex operation that has neither value nor timeout.
fn futex_pi(word: &AtomicU32, operation: libc::c_int) -> io::Result<()> {
    let no_timeout = std::ptr::null::<libc::timespec>();
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the futex word is a live, aligned `u32`.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 0, no_timeout) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Converts a duration to a `timespec`.
fn timespec(span: Duration) -> libc::timespec {
    let seconds = libc::time_t::try_from(span.as_secs()).unwrap_or(libc::time_t::MAX);
    libc::timespec { tv_sec: seconds, tv_nsec: libc::c_long::from(span.subsec_nanos().cast_signed()) }
}

impl Flag for AtomicBool {
    fn load(&self) -> bool {
        self.load(Ordering::SeqCst)
    }

    fn store(&self, value: bool) {
        self.store(value, Ordering::SeqCst);
    }
}

impl Event for readiness::Waker {
    fn new() -> io::Result<Self> {
        Self::new()
    }

    fn set(&self) -> io::Result<()> {
        self.wake()
    }

    fn reset(&self) -> io::Result<()> {
        self.reset().map(|_| ())
    }

    fn wait(&self, set: &mut PollSet, timeout: Option<Duration>) -> io::Result<(bool, u64)> {
        // All descriptors from index 63 on share the last bit.
        let (own, is_shared) = (1_u64 << set.len().min(63), set.len() > 63);
        set.add(self.as_raw_fd());
        let ready = set.wait(timeout)?;
        Ok((ready & own != 0, if is_shared { ready } else { ready & !own }))
    }
}
