//! System calls for scheduling and memory. Arguments come from Rust references that outlive the
//! call.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use crate::thread::{CPUS_MAX, Scheduling};

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn empty_set() -> libc::cpu_set_t {
    // SAFETY: all-zero is the empty set.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// Sets the calling thread's processors, each below [`CPUS_MAX`].
pub(crate) fn set_affinity(cpus: &[usize]) -> io::Result<()> {
    let mut set = empty_set();
    for cpu in cpus {
        // SAFETY: the set is initialized; `CPU_SET` checks its bounds.
        unsafe { libc::CPU_SET(*cpu, &mut set) };
    }
    // SAFETY: the given length is that of the set.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) }.into()).map(drop)
}

/// Returns the calling thread's processors in ascending order.
pub(crate) fn affinity() -> io::Result<Vec<usize>> {
    let mut set = empty_set();
    // SAFETY: the given length is that of the set.
    check(unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) }.into())?;
    // SAFETY: the set is initialized; `CPU_ISSET` checks its bounds.
    Ok((0..CPUS_MAX).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect())
}

pub(crate) fn set_timer_slack(slack_ns: u64) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns as libc::c_ulong) }.into()).map(drop)
}

pub(crate) fn timer_slack() -> io::Result<u64> {
    // SAFETY: no pointers.
    check(unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }.into()).map(|slack| slack.unsigned_abs())
}

pub(crate) fn lock_memory() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }.into()).map(drop)
}

fn no_attributes() -> libc::sched_attr {
    libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    }
}

pub(crate) fn set_scheduling(wanted: Scheduling) -> io::Result<()> {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let mut attributes = no_attributes();
    match wanted {
        Scheduling::Fifo(priority) => {
            attributes.sched_policy = libc::SCHED_FIFO as u32;
            attributes.sched_priority = priority.into();
        }
        Scheduling::RoundRobin(priority) => {
            attributes.sched_policy = libc::SCHED_RR as u32;
            attributes.sched_priority = priority.into();
        }
        Scheduling::Deadline { runtime, deadline, period } => {
            attributes.sched_policy = libc::SCHED_DEADLINE as u32;
            attributes.sched_runtime = nanoseconds(runtime);
            attributes.sched_deadline = nanoseconds(deadline);
            attributes.sched_period = nanoseconds(period);
        }
    }
    // SAFETY: the attributes contain their length; thread 0 is the calling thread.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) }).map(drop)
}

/// Returns the real-time policy of the calling thread; `None` for other policies.
pub(crate) fn scheduling() -> io::Result<Option<Scheduling>> {
    let mut attributes = no_attributes();
    let len = attributes.size;
    // SAFETY: the buffer has the given length, and any octets are valid in it.
    check(unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, len, 0) })?;
    let priority = u8::try_from(attributes.sched_priority).unwrap_or(u8::MAX);
    Ok(match attributes.sched_policy.cast_signed() {
        libc::SCHED_FIFO => Some(Scheduling::Fifo(priority)),
        libc::SCHED_RR => Some(Scheduling::RoundRobin(priority)),
        libc::SCHED_DEADLINE => Some(Scheduling::Deadline {
            runtime: Duration::from_nanos(attributes.sched_runtime),
            deadline: Duration::from_nanos(attributes.sched_deadline),
            period: Duration::from_nanos(attributes.sched_period),
        }),
        _ => None,
    })
}
