//! Error messages of a process without privileges. The test runs itself again as the user `nobody`.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use takt_exec::{ProcessSettings, Scheduling, ThreadSettings};
use takt_testkit::{not_run, require};

const NOBODY: u32 = 65_534;

/// Returns the error of each setting in an unprivileged process, and the text that the error must
/// contain.
fn refusals() -> [(String, &'static str); 3] {
    let fifo = ThreadSettings { scheduling: Some(Scheduling::Fifo(80)), ..ThreadSettings::default() };
    let locked = ProcessSettings { lock_memory: true, ..ProcessSettings::default() };
    let latency = ProcessSettings { cpu_latency: Some(Duration::ZERO), ..ProcessSettings::default() };
    let message =
        |refusal: Option<takt_exec::Refusal>| refusal.map_or("granted".to_owned(), |refusal| refusal.to_string());
    [
        (message(fifo.apply().err()), "CAP_SYS_NICE"),
        (message(locked.apply().err()), "CAP_IPC_LOCK"),
        (message(latency.apply().err()), "/dev/cpu_dma_latency"),
    ]
}

#[test]
fn refusal_names_the_missing_capability_or_limit() {
    if std::env::var_os("TAKT_TEST_AS_NOBODY").is_some() {
        for (message, missing) in refusals() {
            assert!(message.contains(missing), "{message}");
        }
        return;
    }
    if let Err(why) = require::root() {
        return not_run(why);
    }
    let mut again = Command::new("/proc/self/exe");
    again
        .args(["--exact", "unprivileged::refusal_names_the_missing_capability_or_limit"])
        .env("TAKT_TEST_AS_NOBODY", "1")
        .uid(NOBODY)
        .gid(NOBODY);
    let limits = [libc::RLIMIT_MEMLOCK, libc::RLIMIT_RTPRIO];
    // SAFETY: setrlimit may be called between fork and exec; its argument is on the stack.
    unsafe {
        again.pre_exec(move || {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            let lowered = limits.iter().all(|limit| libc::setrlimit(*limit, &none) == 0);
            if lowered { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        })
    };
    let output = again.output().expect("root may become nobody");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
