//! Stop requests by signal: SIGTERM and SIGINT set a flag that every loop checks, or end a process
//! that needs no cleanup.
//!
//! Handlers are installed with `sigaction`: a process that a non-interactive shell starts in the
//! background inherits SIGINT ignored. They are installed without `SA_RESTART`, so that a blocking
//! call returns at once.

use std::sync::atomic::{AtomicI32, Ordering};

/// Number of the first signal; 0 for none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_signal(number: libc::c_int) {
    // A failure means that an earlier signal has requested a stop already.
    let _ = SIGNAL.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
}

extern "C" fn exit_at_once(number: libc::c_int) {
    // SAFETY: takes no pointer, never returns, and is async-signal-safe.
    unsafe { libc::_exit(128 + number) }
}

/// Makes SIGTERM and SIGINT end the workload instead of the process.
pub fn install() {
    handle_by(on_signal);
}

/// Makes SIGTERM and SIGINT end the process at once, with [`exit_code`]: for processes that block
/// and need no cleanup.
pub fn install_exit() {
    handle_by(exit_at_once);
}

fn handle_by(handler: extern "C" fn(libc::c_int)) {
    // SAFETY: `sigaction` is plain data, for which all zeroes is an empty mask and no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: `action` is valid, and its handlers are async-signal-safe.
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
}

/// Reports whether a signal has requested a stop.
#[must_use]
pub fn stopped() -> bool {
    SIGNAL.load(Ordering::Relaxed) != 0
}

/// Returns the exit code of a process stopped by a signal, by the convention of shells: 130 for
/// SIGINT, 143 for SIGTERM. Returns `None` without a signal.
#[must_use]
pub fn exit_code() -> Option<u8> {
    let number = u8::try_from(SIGNAL.load(Ordering::Relaxed)).unwrap_or_default();
    (number != 0).then_some(128 + number)
}
