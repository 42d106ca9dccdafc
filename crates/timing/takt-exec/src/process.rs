//! Real-time settings of a process, and of the machine while it runs: locked memory, CPU sleep
//! states.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::time::Duration;

use crate::refusal::Refusal;
use crate::syscall;

/// Device file of the kernel's PM QoS interface, which takes requests for short sleep states.
const LATENCY_FILE: &str = "/dev/cpu_dma_latency";

/// Settings of a process. The default changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessSettings {
    /// Locks all memory in RAM, including later mappings, and populates it in advance: no page
    /// faults occur. It takes as much RAM as the whole address space, including thread stacks (8
    /// MiB each by default) and shared memory.
    pub lock_memory: bool,
    /// Maximum exit latency of CPU sleep states on the whole machine. States with a longer exit
    /// latency are not entered. Zero disables all of them, which makes idle processors as hot as
    /// busy ones.
    pub cpu_latency: Option<Duration>,
}

/// Settings that end when this is dropped: the request for short sleep states. Memory stays locked.
#[derive(Debug)]
pub struct LatencyRequest {
    _cpu_latency: Option<File>,
}

impl ProcessSettings {
    /// Applies the settings to this process and verifies them.
    ///
    /// # Errors
    /// Fails with the setting that could not be applied.
    pub fn apply(&self) -> Result<LatencyRequest, Refusal> {
        if self.lock_memory {
            lock_memory()?;
        }
        let cpu_latency = self.cpu_latency.map(request_cpu_latency).transpose()?;
        Ok(LatencyRequest { _cpu_latency: cpu_latency })
    }
}

fn lock_memory() -> Result<(), Refusal> {
    let what = "lock all memory";
    let remedy = "needs CAP_IPC_LOCK, or a locked-memory limit (ulimit -l) above the address space of the process";
    syscall::lock_memory().map_err(|why| Refusal::new(what, why, remedy))?;
    let path = "/proc/self/status";
    let status = std::fs::read_to_string(path).map_err(|why| Refusal::new(what, why, "mount /proc"))?;
    if locked_kib(&status) == 0 {
        return Err(Refusal::not_applied(what, "0 KiB of locked memory"));
    }
    Ok(())
}

/// Returns the locked memory in KiB from the text of /proc/self/status.
fn locked_kib(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0) // tidy-allow(dropped-cause): no number, no locked memory.
}

fn request_cpu_latency(wanted: Duration) -> Result<File, Refusal> {
    let what = format!("limit the exit latency of sleep states to {wanted:?}");
    let refused = |why: io::Error| {
        let remedy = match why.kind() {
            io::ErrorKind::NotFound => format!("this machine has no {LATENCY_FILE}"),
            _ => format!("needs write access to {LATENCY_FILE}"),
        };
        Refusal::new(&what, why, remedy)
    };
    let wanted_us = i32::try_from(wanted.as_micros()).unwrap_or(i32::MAX);
    let mut file = File::options().read(true).write(true).open(LATENCY_FILE).map_err(refused)?;
    file.write_all(&wanted_us.to_ne_bytes()).map_err(refused)?;
    // The value read back is the minimum of all requests.
    let mut found = [0; 4];
    file.rewind().and_then(|()| file.read_exact(&mut found)).map_err(refused)?;
    let found_us = i32::from_ne_bytes(found);
    if found_us > wanted_us {
        return Err(Refusal::not_applied(what, format_args!("{found_us} us")));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locked_memory_is_parsed() {
        assert_eq!(locked_kib("Name:\ttakt\nVmLck:\t    1234 kB\nVmPin:\t 5 kB\n"), 1234);
        assert_eq!(locked_kib("VmLck:\t x kB\n"), 0);
        assert_eq!(locked_kib(""), 0);
    }
}
