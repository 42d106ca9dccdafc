//! The wish to stop: SIGTERM and SIGINT set a flag that every loop looks at, or end a process that has nothing to leave in order.
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

extern "C" fn exit_at_once(number: libc::c_int) {
    // SAFETY: takes no pointer, returns never, and is async-signal-safe.
    unsafe { libc::_exit(128 + number) }
}

/// Lets SIGTERM and SIGINT end the workload instead of the process.
pub fn install() {
    handle_by(on_signal);
}

/// Lets SIGTERM and SIGINT end the process at once, with [`exit_code`]: for what blocks, and has nothing to leave in order.
pub fn install_exit() {
    handle_by(exit_at_once);
}

fn handle_by(handler: extern "C" fn(libc::c_int)) {
    // SAFETY: `sigaction` is plain data, for which all zeroes is an empty mask and no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: `action` is valid, and what its handlers do is async-signal-safe.
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
