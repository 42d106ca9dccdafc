//! Counter of a thread's system calls. By seccomp notifications the kernel notifies a second thread
//! before each call, which records the call and lets it continue. Requires Linux 5.5, and root or
//! `no_new_privs`, which it sets.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicUsize, Ordering};

use crate::not_run;

/// Constants of `linux/seccomp.h`.
const SET_MODE_FILTER: libc::c_long = 1;
const FLAG_NEW_LISTENER: libc::c_long = 1 << 3;
const RET_USER_NOTIF: u32 = 0x7fc0_0000;
const NOTIF_RECV: libc::c_ulong = 0xc050_2100;
const NOTIF_SEND: libc::c_ulong = 0xc018_2101;
const FLAG_CONTINUE: u32 = 1;

/// Maximum number of recorded calls; further ones are only counted.
const NUMBERS: usize = 1 << 16;

/// System calls of the watched thread.
pub struct Calls {
    numbers: Vec<AtomicI64>,
    count: AtomicUsize,
    /// Descriptor of the seccomp listener; -1 until it is known, -2 if it is unavailable.
    listener: AtomicI32,
}

impl Calls {
    /// Returns the numbers of the system calls that `work` makes.
    pub fn during(&self, work: impl FnOnce()) -> Vec<i64> {
        let before = self.count.load(Ordering::Acquire);
        work();
        let after = self.count.load(Ordering::Acquire);
        self.read(before..after)
    }

    fn read(&self, range: Range<usize>) -> Vec<i64> {
        assert!(range.end <= NUMBERS, "{} system calls", range.end);
        self.numbers[range].iter().map(|number| number.load(Ordering::Relaxed)).collect()
    }

    /// Installs the filter: from here on the second thread is notified of the calling thread's
    /// system calls.
    fn begin(&self) {
        let mut filter = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: RET_USER_NOTIF };
        let program = libc::sock_fprog { len: 1, filter: &mut filter };
        // SAFETY: both calls affect this thread only; the filter program is one instruction that
        // outlives the call.
        let listener = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, FLAG_NEW_LISTENER, &program)
        };
        self.listener.store(if listener < 0 { -2 } else { listener as i32 }, Ordering::Release);
    }

    /// Records all calls until the watched thread has ended.
    fn note(&self) {
        let listener = loop {
            match self.listener.load(Ordering::Acquire) {
                -1 => std::thread::yield_now(),
                -2 => return,
                listener => break listener,
            }
        };
        let mut poll = libc::pollfd { fd: listener, events: libc::POLLIN, revents: 0 };
        loop {
            // SAFETY: the pointer refers to one valid poll descriptor.
            unsafe { libc::poll(&mut poll, 1, -1) };
            if poll.revents & libc::POLLIN != 0 {
                self.note_one(listener);
            } else if poll.revents != 0 {
                // SAFETY: the descriptor has no other owner.
                unsafe { libc::close(listener) };
                return;
            }
        }
    }

    fn note_one(&self, listener: i32) {
        // SAFETY: all-zero is a valid value of these C structures, and required by the kernel,
        // which accesses only them.
        unsafe {
            let mut notification: libc::seccomp_notif = std::mem::zeroed();
            if libc::ioctl(listener, NOTIF_RECV, &mut notification) != 0 {
                return;
            }
            let at = self.count.load(Ordering::Relaxed);
            if let Some(number) = self.numbers.get(at) {
                number.store(notification.data.nr.into(), Ordering::Relaxed);
            }
            self.count.store(at + 1, Ordering::Release);
            let mut response: libc::seccomp_notif_resp = std::mem::zeroed();
            (response.id, response.flags) = (notification.id, FLAG_CONTINUE);
            // The call fails if the thread was killed meanwhile.
            libc::ioctl(listener, NOTIF_SEND, &mut response);
        }
    }
}

/// Runs a closure on a thread whose system calls are counted. If the kernel refuses notifications
/// it reports that the test cannot run, and returns `None`.
pub fn with_counted_calls<R: Send>(function: impl FnOnce(&Calls) -> R + Send) -> Option<R> {
    let calls = Calls {
        numbers: (0..NUMBERS).map(|_| AtomicI64::new(0)).collect(),
        count: AtomicUsize::new(0),
        listener: AtomicI32::new(-1),
    };
    let result = std::thread::scope(|scope| {
        scope.spawn(|| calls.note());
        let watched = scope.spawn(|| {
            calls.begin();
            if calls.listener.load(Ordering::Relaxed) == -2 {
                return Err(format!("system calls cannot be counted: {}", io::Error::last_os_error()));
            }
            Ok(function(&calls))
        });
        watched.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    result.map_err(not_run).ok()
}

#[cfg(test)]
mod tests {
    use super::with_counted_calls;

    #[test]
    fn watched_calls_are_counted_and_executed() {
        let counted = with_counted_calls(|calls| {
            let mut pid = 0;
            // SAFETY: both calls take no argument and cannot fail.
            let both = || unsafe { libc::syscall(libc::SYS_getpid) + libc::syscall(libc::SYS_getppid) };
            let of_both = calls.during(|| pid = both());
            assert!(pid > i64::from(std::process::id()));
            (of_both, calls.during(|| {}))
        });
        if let Some(counted) = counted {
            assert_eq!(counted, (vec![libc::SYS_getpid, libc::SYS_getppid], vec![]));
        }
    }
}
