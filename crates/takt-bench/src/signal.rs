//! The wish to stop: SIGTERM and SIGINT set a flag that every loop looks at.
//!
//! Handlers are installed with `sigaction` because a process started in the background by a
//! non-interactive shell inherits SIGINT ignored, and without `SA_RESTART` so that a blocking call
//! returns at once.

use std::sync::atomic::{AtomicI32, Ordering};

/// The number of the first signal; 0 for none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_signal(number: libc::c_int) {
    // A failure means that an earlier signal has asked already.
    let _ = SIGNAL.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
}

/// Lets SIGTERM and SIGINT end the workload instead of the process.
pub fn install() {
    // SAFETY: `sigaction` is plain data, for which all zeroes is an empty mask and no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: `action` is valid, and its handler only changes an atomic, which is async-signal-safe.
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
}

/// True once a signal has asked this process to stop.
#[must_use]
pub fn stopped() -> bool {
    SIGNAL.load(Ordering::Relaxed) != 0
}

/// The exit code of a process that a signal has asked to stop, as shells have it: 130 for SIGINT, 143 for SIGTERM. `None` if
/// none has.
#[must_use]
pub fn exit_code() -> Option<u8> {
    let number = u8::try_from(SIGNAL.load(Ordering::Relaxed)).unwrap_or_default();
    (number != 0).then_some(128 + number)
}
