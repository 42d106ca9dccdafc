//! What a whole process is given, and the machine for as long as it lives.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::time::Duration;

use crate::refusal::Refusal;
use crate::syscall;

/// Where the kernel takes requests for short sleep states (its PM QoS interface).
const LATENCY_FILE: &str = "/dev/cpu_dma_latency";

/// What a process is to have. The default asks for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessSettings {
    /// All its memory stays in RAM, what it maps later included, and is there before it is touched: no page faults. Takes as much RAM
    /// as all its address space, stacks of threads (8 MiB each unless asked otherwise) and shared memory included.
    pub lock_memory: bool,
    /// Sleep states of the processors that take longer to leave than this are not entered, on the whole machine. Zero: none
    /// is, which makes idle processors as hot as busy ones.
    pub cpu_latency: Option<Duration>,
}

/// What a process was given that ends when this is dropped: the request for short sleep states. Locked memory stays.
#[derive(Debug)]
pub struct Held {
    _cpu_latency: Option<File>,
}

impl ProcessSettings {
    /// Gives them to this process, and looks whether it has them.
    ///
    /// # Errors
    /// What is not as asked.
    pub fn apply(&self) -> Result<Held, Refusal> {
        if self.lock_memory {
            lock_memory()?;
        }
        let cpu_latency = self.cpu_latency.map(request_cpu_latency).transpose()?;
        Ok(Held { _cpu_latency: cpu_latency })
    }
}

fn lock_memory() -> Result<(), Refusal> {
    let what = "lock all memory";
    let remedy =
        "it takes CAP_IPC_LOCK, or a limit of locked memory (ulimit -l) beyond all of the process's address space";
    syscall::lock_memory().map_err(|why| Refusal::new(what, why, remedy))?;
    let path = "/proc/self/status";
    let status = std::fs::read_to_string(path).map_err(|why| Refusal::new(what, why, "mount /proc"))?;
    if locked_kib(&status) == 0 {
        return Err(Refusal::unlike(what, "0 KiB that are locked"));
    }
    Ok(())
}

/// Memory that is locked, of the text of /proc/self/status.
fn locked_kib(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0) // tidy-allow(dropped-cause): no number, none locked.
}

fn request_cpu_latency(wanted: Duration) -> Result<File, Refusal> {
    let what = format!("leave sleep states within {wanted:?}");
    let refused = |why: io::Error| {
        let remedy = match why.kind() {
            io::ErrorKind::NotFound => format!("this machine has no {LATENCY_FILE}"),
            _ => format!("it takes the right to write {LATENCY_FILE}"),
        };
        Refusal::new(&what, why, remedy)
    };
    let wanted_us = i32::try_from(wanted.as_micros()).unwrap_or(i32::MAX);
    let mut file = File::options().read(true).write(true).open(LATENCY_FILE).map_err(refused)?;
    file.write_all(&wanted_us.to_ne_bytes()).map_err(refused)?;
    // Read back, it is the shortest of all requests.
    let mut found = [0; 4];
    file.rewind().and_then(|()| file.read_exact(&mut found)).map_err(refused)?;
    let found_us = i32::from_ne_bytes(found);
    if found_us > wanted_us {
        return Err(Refusal::unlike(what, format_args!("{found_us} us")));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locked_memory_is_read() {
        assert_eq!(locked_kib("Name:\ttakt\nVmLck:\t    1234 kB\nVmPin:\t 5 kB\n"), 1234);
        assert_eq!(locked_kib("VmLck:\t x kB\n"), 0);
        assert_eq!(locked_kib(""), 0);
    }
}
