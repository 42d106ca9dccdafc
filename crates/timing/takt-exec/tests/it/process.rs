//! Tests of process settings, verified from outside of the process.

use std::io::Read;
use std::process::Command;
use std::time::{Duration, Instant};

use takt_exec::ProcessSettings;
use takt_testkit::{not_run, require};

const LATENCY: &str = "/dev/cpu_dma_latency";
const TIMEOUT: Duration = Duration::from_secs(10);

fn shortest_latency_us() -> i32 {
    let mut latency = [0; 4];
    std::fs::File::open(LATENCY).expect("it was there").read_exact(&mut latency).expect("four octets");
    i32::from_ne_bytes(latency)
}

#[test]
fn sleep_state_request_lasts_until_it_is_dropped() {
    if let Err(why) = require::root().and_then(|()| require::file(LATENCY)) {
        return not_run(why);
    }
    let before = shortest_latency_us();
    // Opening the file to read it adds a request of its own, with the default value.
    assert!(before > 7, "another process holds it at {before} us");
    let wanted = Duration::from_micros(7);
    let request = ProcessSettings { cpu_latency: Some(wanted), ..ProcessSettings::default() }.apply().expect("it may");
    assert_eq!(shortest_latency_us(), 7);
    drop(request);
    // Between `fork` and `exec`, a child of another test has a copy of the descriptor.
    let since = Instant::now();
    while shortest_latency_us() != before {
        assert!(since.elapsed() < TIMEOUT, "the request is still in force: {} us", shortest_latency_us());
        std::thread::yield_now();
    }
}

/// Runs in a separate process, since memory cannot be unlocked.
#[test]
fn locked_memory_is_resident_before_it_is_touched() {
    if let Err(why) = require::root() {
        return not_run(why);
    }
    if std::env::var_os("TAKT_TEST_LOCKED").is_none() {
        let mut again = Command::new("/proc/self/exe");
        again.args(["--exact", "process::locked_memory_is_resident_before_it_is_touched"]).env("TAKT_TEST_LOCKED", "1");
        let output = again.output().expect("this program can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let locked = ProcessSettings { lock_memory: true, ..ProcessSettings::default() };
    let _locked = locked.apply().expect("root may");
    let before = resident_kib();
    let untouched: Vec<u8> = Vec::with_capacity(64 << 20);
    let grown_kib = resident_kib() - before;
    assert!(grown_kib >= 64 << 10, "{grown_kib} KiB for {} octets", untouched.capacity());
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    line.split_whitespace().next().expect("a number").parse().expect("a number")
}
