//! The wish to stop: SIGTERM and SIGINT set a flag that every loop looks at.
//!
//! Handlers are installed with `sigaction` because a process started in the background by a
//! non-interactive shell inherits SIGINT ignored, and without `SA_RESTART` so that a blocking call
//! returns at once.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// Lets SIGTERM and SIGINT end the workload instead of the process.
pub fn install() {
    // SAFETY: `sigaction` is plain data, for which all zeroes is an empty mask and no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: `action` is valid, and its handler only stores to an atomic, which is async-signal-safe.
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
}

/// True once a signal has asked this process to stop.
#[must_use]
pub fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}
