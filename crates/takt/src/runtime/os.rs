//! What the operating system gives to threads that share memory: words to sleep on, flags, a wake-up event, thread ids.
//!
//! The lock, the event count and the waker are written against [`Os`], so that tests can run the same code on a model
//! of it that tries every order of events. [`Linux`] is the real one; all of it is inlined.

use std::cell::Cell;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use takt_transport::readiness;

use super::poll::PollSet;

/// The operating system as far as threads need it to wait for each other.
pub(crate) trait Os: 'static {
    type Word: Word;
    type Flag: Flag;
    type Event: Event;

    /// The kernel's id of the calling thread: what a priority-inheriting futex is owned by. Never zero.
    fn thread_id() -> u32;
}

/// Has the calling thread scheduled as any other: a thread inherits the real-time scheduling of the one that starts it. Where the
/// kernel refuses, it stays as it is.
pub(crate) fn be_ordinary() {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter is valid for the call, which keeps no reference to it.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameter) };
}

/// How the kernel schedules a thread among others: the greater one goes first, or gets more of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Urgency {
    /// SCHED_DEADLINE 100, SCHED_FIFO and SCHED_RR their priority, SCHED_OTHER and SCHED_BATCH 0, SCHED_IDLE -1.
    class: i32,
    /// The nice value, negated.
    weight: i32,
}

impl Urgency {
    /// That of the calling thread. Three system calls at most.
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

/// A futex: an atomic word, and threads that sleep until somebody says that it has changed.
pub(crate) trait Word: Send + Sync {
    /// What is set besides the owner's id while others wait for it.
    const WAITERS: u32;

    fn new(value: u32) -> Self;
    fn load(&self, order: Ordering) -> u32;
    fn fetch_add(&self, value: u32, order: Ordering) -> u32;
    fn fetch_sub(&self, value: u32, order: Ordering) -> u32;
    fn compare_exchange(&self, current: u32, new: u32, success: Ordering, failure: Ordering) -> Result<u32, u32>;
    /// Sleeps until woken or until the timeout, if the word still has this value; may return for no reason.
    fn wait(&self, value: u32, timeout: Option<Duration>);
    /// Wakes all that sleep.
    fn wake_all(&self);
    /// Takes the word for the calling thread, and lends its priority to the owner meanwhile. An error ends the attempt.
    fn lock_pi(&self) -> io::Result<()>;
    /// Gives the word, which the calling thread owns, to the waiter of highest priority, or to nobody.
    fn unlock_pi(&self) -> io::Result<()>;
}

/// An atomic boolean, sequentially consistent.
pub(crate) trait Flag: Default + Send + Sync {
    fn load(&self) -> bool;
    fn store(&self, value: bool);
}

/// Something that can be waited for together with descriptors, and stays set until it is reset.
pub(crate) trait Event: Send + Sync + Sized {
    fn new() -> io::Result<Self>;
    fn set(&self) -> io::Result<()>;
    fn reset(&self) -> io::Result<()>;
    /// Sleeps until it is set, a descriptor of the set is readable, or the timeout is over; whether it is set, and which of
    /// them are readable, a bit for each.
    fn wait(&self, set: &mut PollSet, timeout: Option<Duration>) -> io::Result<(bool, u64)>;
}

thread_local! {
    static ID: Cell<u32> = const { Cell::new(0) };
}

/// The real one.
#[derive(Debug)]
pub(crate) struct Linux;

impl Os for Linux {
    type Word = AtomicU32;
    type Flag = AtomicBool;
    type Event = readiness::Waker;

    #[inline]
    fn thread_id() -> u32 {
        /// The thread that a `fork` leaves has another id.
        extern "C" fn forget() {
            ID.set(0);
        }
        #[cold]
        fn learn() -> u32 {
            static FORGETS: Once = Once::new();
            // SAFETY: the function lives as long as the process, and touches one thread-local value.
            FORGETS.call_once(|| unsafe {
                let registered = libc::pthread_atfork(None, None, Some(forget));
                debug_assert!(registered == 0, "there is memory for one more handler");
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
        // SAFETY: the futex word is a live, aligned `u32` and `timeout` is null or a live timespec. Whatever
        // the result (woken, changed, timed out, interrupted), the caller looks at the state again.
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

/// Neither operation has a value or a timeout.
fn futex_pi(word: &AtomicU32, operation: libc::c_int) -> io::Result<()> {
    let no_timeout = std::ptr::null::<libc::timespec>();
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the futex word is a live, aligned `u32`.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 0, no_timeout) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A span as the kernel wants it.
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
        // Beyond the last bit it is shared.
        let (own, is_shared) = (1_u64 << set.len().min(63), set.len() > 63);
        set.add(self.as_raw_fd());
        let ready = set.wait(timeout)?;
        Ok((ready & own != 0, if is_shared { ready } else { ready & !own }))
    }
}
