//! Machine state for measurements: clock, CPU time, memory, and the scheduling of this process.
//!
//! Times are nanoseconds of `CLOCK_MONOTONIC`, which all processes of one host share. A process can
//! thus compare its time with one that another process put into a payload. Linux only.

use crate::error::{Error, Result};
use serde::Serialize;
use std::mem;
use std::net::Ipv4Addr;

/// Returns the current time in ns of `CLOCK_MONOTONIC`.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes; CLOCK_MONOTONIC exists on every Linux, so the call cannot
    // fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time and context switches of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// User and system time of all threads, seconds.
    pub cpu_seconds: f64,
    /// Context switches because the process blocked.
    pub voluntary_switches: i64,
    /// Context switches because the kernel preempted the process.
    pub involuntary_switches: i64,
}

impl Usage {
    /// Returns the usage of this process up to now.
    #[must_use]
    pub fn now() -> Self {
        Self::of(libc::RUSAGE_SELF)
    }

    /// Returns the usage of all children that have ended and were waited for.
    #[must_use]
    pub fn of_children() -> Self {
        Self::of(libc::RUSAGE_CHILDREN)
    }

    fn of(who: libc::c_int) -> Self {
        // SAFETY: `rusage` is plain data, for which all zeroes is a valid value.
        let mut usage: libc::rusage = unsafe { mem::zeroed() };
        // SAFETY: `usage` is valid for writes and `who` is one of the kernel's constants.
        unsafe { libc::getrusage(who, &mut usage) };
        let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
        Self {
            cpu_seconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
            voluntary_switches: usage.ru_nvcsw,
            involuntary_switches: usage.ru_nivcsw,
        }
    }

    /// Returns the usage between `earlier` and `self`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu_seconds: self.cpu_seconds - earlier.cpu_seconds,
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
        }
    }
}

/// Memory of this process, from `/proc/self/status`, in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Resident memory (`VmRSS`).
    pub resident_kib: u64,
    /// Peak resident memory (`VmHWM`).
    pub peak_kib: u64,
    /// Resident memory of this process alone (`Private_Clean` and `Private_Dirty` of
    /// `/proc/self/smaps_rollup`).
    pub private_kib: u64,
}

impl Memory {
    /// Reads the memory of this process.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn now() -> Result<Self> {
        let path = "/proc/self/status";
        let status = std::fs::read_to_string(path).map_err(|e| Error::os(path, e))?;
        let path = "/proc/self/smaps_rollup";
        let maps = std::fs::read_to_string(path).map_err(|e| Error::os(path, e))?;
        Ok(Self {
            resident_kib: status_field(&status, "VmRSS:"),
            peak_kib: status_field(&status, "VmHWM:"),
            private_kib: status_field(&maps, "Private_Clean:") + status_field(&maps, "Private_Dirty:"),
        })
    }
}

/// Makes the C library return freed memory to the kernel instead of keeping it, so that memory of
/// one measurement is not reused by the next.
pub fn return_freed_memory() {
    /// Threshold in bytes above which an allocation is a mapping of its own; the minimum of the C
    /// library's adaptive value.
    const MAPPED_FROM: libc::c_int = 128 << 10;
    // SAFETY: takes no pointer. It fails only for values that are too large.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM) };
}

/// Returns the number after `name` in the text of a file of `/proc/self`; 0 if there is none.
fn status_field(status: &str, name: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Scheduling settings of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Scheduling {
    /// Core that the process is bound to.
    pub cpu: Option<usize>,
    /// `SCHED_FIFO` priority, 1 to 99.
    pub fifo: Option<u8>,
    /// Whether all memory, current and future, is locked into RAM.
    pub lock_memory: bool,
}

impl Scheduling {
    /// Applies the settings to the calling thread and to threads created from now on.
    ///
    /// # Errors
    /// The kernel refuses: the core does not exist, or the process lacks the right to real-time
    /// priorities or locked memory.
    pub fn apply(&self) -> Result<()> {
        if let Some(cpu) = self.cpu {
            bind_to_cpu(cpu).map_err(|e| Error::os(format!("bind to core {cpu}"), e))?;
        }
        if let Some(priority) = self.fifo {
            let needed = "needs root, CAP_SYS_NICE, or RLIMIT_RTPRIO (ulimit -r) of at least the priority";
            set_fifo(priority).map_err(|e| Error::os(format!("SCHED_FIFO priority {priority}, which {needed}"), e))?;
        }
        if self.lock_memory {
            // SAFETY: takes no pointer.
            if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } != 0 {
                return Err(Error::last_os("mlockall"));
            }
        }
        Ok(())
    }
}

/// Binds the calling thread to one core. Only system calls: may run between `fork` and `exec`.
pub(crate) fn bind_to_cpu(cpu: usize) -> std::io::Result<()> {
    // SAFETY: `cpu_set_t` is plain data, for which all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: `cpu` is within the set, as checked above.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: `set` is valid and its true size is given.
    match unsafe { libc::sched_setaffinity(0, mem::size_of_val(&set), &set) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Gives the calling thread a real-time priority. Only system calls: may run between `fork` and
/// `exec`.
pub(crate) fn set_fifo(priority: u8) -> std::io::Result<()> {
    let parameters = libc::sched_param { sched_priority: libc::c_int::from(priority) };
    // SAFETY: `parameters` is valid for reads; 0 means the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Returns the CPU time that all processes of the machine have used since boot, seconds (user,
/// nice, system).
///
/// # Errors
/// `/proc/stat` cannot be read.
pub fn busy_seconds() -> Result<f64> {
    let path = "/proc/stat";
    let stat = std::fs::read_to_string(path).map_err(|e| Error::os(path, e))?;
    // SAFETY: takes no pointer.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1);
    Ok(busy_ticks(&stat) as f64 / ticks as f64)
}

fn busy_ticks(stat: &str) -> u64 {
    stat.lines().next().unwrap_or("").split_whitespace().skip(1).take(3).filter_map(|n| n.parse::<u64>().ok()).sum()
}

/// Times of all processors since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Time of the reading, seconds of `CLOCK_MONOTONIC`.
    pub at_seconds: f64,
    /// User, nice and system time, seconds.
    pub busy_seconds: f64,
    /// Steal time of the hypervisor, seconds.
    pub stolen_seconds: f64,
}

impl Times {
    /// Reads the current times.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub fn now() -> Result<Self> {
        let path = "/proc/stat";
        let stat = std::fs::read_to_string(path).map_err(|e| Error::os(path, e))?;
        // SAFETY: takes no pointer.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
        Ok(Self {
            at_seconds: monotonic_ns() as f64 * 1e-9,
            busy_seconds: busy_ticks(&stat) as f64 / ticks,
            stolen_seconds: stolen_ticks(&stat) as f64 / ticks,
        })
    }

    /// Returns the times between `earlier` and `self`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            at_seconds: self.at_seconds - earlier.at_seconds,
            busy_seconds: self.busy_seconds - earlier.busy_seconds,
            stolen_seconds: self.stolen_seconds - earlier.stolen_seconds,
        }
    }

    /// Returns a time as a share of all processors, for a difference of two readings. The share is
    /// at most 1, although a time of a few ticks may be longer than the span it was counted in.
    #[must_use]
    pub fn share(&self, seconds: f64) -> f64 {
        let all = self.at_seconds * available_cpus() as f64;
        if all > 0.0 { (seconds / all).min(1.0) } else { 0.0 }
    }
}

fn stolen_ticks(stat: &str) -> u64 {
    stat.lines().next().unwrap_or("").split_whitespace().nth(8).and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Returns the number of cores that this process may run on.
#[must_use]
pub fn available_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Returns the first IPv4 address of the network interface `name`; `None` if there is no such
/// interface.
#[must_use]
pub fn interface_ipv4(name: &str) -> Option<Ipv4Addr> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `list` is valid for writes; the list is freed below.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return None;
    }
    let mut found = None;
    let mut entry = list;
    while !entry.is_null() && found.is_none() {
        // SAFETY: `entry` is an element of the list that getifaddrs created and that is not freed
        // yet.
        let item = unsafe { &*entry };
        // SAFETY: `ifa_name` is a NUL-terminated string that lives as long as the list.
        let is_named = unsafe { std::ffi::CStr::from_ptr(item.ifa_name) }.to_bytes() == name.as_bytes();
        if is_named && !item.ifa_addr.is_null() {
            // SAFETY: a non-null `ifa_addr` points to a sockaddr, whose family gives its type.
            let family = libc::c_int::from(unsafe { (*item.ifa_addr).sa_family });
            if family == libc::AF_INET {
                // SAFETY: AF_INET means that it is a sockaddr_in.
                let address = unsafe { (*item.ifa_addr.cast::<libc::sockaddr_in>()).sin_addr };
                found = Some(Ipv4Addr::from(u32::from_be(address.s_addr)));
            }
        }
        entry = item.ifa_next;
    }
    // SAFETY: the list was created by getifaddrs, is freed once, and no reference into it is left.
    unsafe { libc::freeifaddrs(list) };
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_fields_are_read_in_kib() {
        let text = "Name:\tx\nVmHWM:\t    5120 kB\nVmRSS:\t    4096 kB\n";
        assert_eq!(status_field(text, "VmHWM:"), 5120);
        assert_eq!(status_field(text, "VmRSS:"), 4096);
        assert_eq!(status_field(text, "VmSwap:"), 0);
    }

    #[test]
    fn busy_time_is_user_nice_and_system() {
        let stat = "cpu  10 20 30 4000 5 6 7 8\ncpu0 1 2 3";
        assert_eq!((busy_ticks(stat), stolen_ticks(stat)), (60, 8));
        assert_eq!((busy_ticks(""), stolen_ticks("")), (0, 0));
    }

    #[test]
    fn share_of_a_time_longer_than_its_span_is_the_whole() {
        let span = Times { at_seconds: 0.01, ..Times::default() };
        assert_eq!((span.share(100.0), span.share(0.0), Times::default().share(1.0)), (1.0, 0.0, 0.0));
    }

    #[test]
    fn memory_is_positive_and_clock_is_monotonic() {
        let memory = Memory::now().unwrap();
        assert!(memory.resident_kib > 0 && memory.peak_kib >= memory.resident_kib);
        assert!(memory.private_kib > 0 && memory.private_kib <= memory.peak_kib);
        let first = monotonic_ns();
        assert!(monotonic_ns() >= first && first > 0);
    }

    #[test]
    fn loopback_has_its_address() {
        assert_eq!(interface_ipv4("lo"), Some(Ipv4Addr::LOCALHOST));
        assert_eq!(interface_ipv4("no-such-interface"), None);
    }

    #[test]
    fn nonexistent_core_is_refused() {
        assert!(bind_to_cpu(1 << 20).is_err());
    }
}
