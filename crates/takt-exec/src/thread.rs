//! What one thread is given.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::refusal::Refusal;
use crate::syscall;

/// Processors that can be named, 0 to 1023.
pub const CPUS_MAX: usize = 1024;

/// How the kernel chooses when a thread runs; sched(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// SCHED_FIFO: before all that is less urgent, until it waits. 1 to 99.
    Fifo(u8),
    /// SCHED_RR: as FIFO, by turns with those of the same priority.
    RoundRobin(u8),
    /// SCHED_DEADLINE: `runtime` in each `period`, done by `deadline` after its beginning; admitted by the kernel or refused.
    /// Such a thread can have no children, and no processors of its own.
    Deadline {
        /// At least 1024 ns.
        runtime: Duration,
        /// At least the runtime.
        deadline: Duration,
        /// At least the deadline.
        period: Duration,
    },
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
            Self::RoundRobin(priority) => write!(f, "SCHED_RR {priority}"),
            Self::Deadline { runtime, deadline, period } => {
                write!(f, "SCHED_DEADLINE {runtime:?} in {deadline:?} of {period:?}")
            }
        }
    }
}

/// What a thread is to have. The default asks for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadSettings {
    /// How it is scheduled.
    pub scheduling: Option<Scheduling>,
    /// Processors that it may run on; empty: those that it has.
    pub cpus: Vec<usize>,
    /// How much later than asked it may be woken, at least a nanosecond. 50 us unless set; the kernel ignores it for SCHED_FIFO,
    /// SCHED_RR and SCHED_DEADLINE, whose threads are woken in time.
    pub timer_slack: Option<Duration>,
}

impl ThreadSettings {
    /// Gives them to the calling thread, and looks whether it has them. Threads that it starts later inherit them.
    ///
    /// # Errors
    /// What is not as asked; what comes after it in the order of the fields' names `cpus`, `timer_slack`, `scheduling` is not tried.
    pub fn apply(&self) -> Result<(), Refusal> {
        if !self.cpus.is_empty() {
            bind(&self.cpus)?;
        }
        if let Some(slack) = self.timer_slack {
            set_timer_slack(slack)?;
        }
        self.scheduling.map_or(Ok(()), schedule)
    }
}

fn bind(cpus: &[usize]) -> Result<(), Refusal> {
    let what = format!("run on the processors {cpus:?}");
    let mut wanted = cpus.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    if wanted.last().is_some_and(|cpu| *cpu >= CPUS_MAX) {
        let why = io::Error::new(io::ErrorKind::InvalidInput, format!("there are at most {CPUS_MAX}"));
        return Err(Refusal::new(what, why, "see lscpu"));
    }
    let remedy = "name processors that are online and in this process's cpuset; see taskset -p $$";
    syscall::set_affinity(&wanted).map_err(|why| Refusal::new(&what, why, remedy))?;
    match syscall::affinity() {
        // The kernel leaves out those that are not there, as long as one is.
        Ok(found) if found == wanted => Ok(()),
        Ok(found) => Err(Refusal::new(what, io::Error::other(format!("afterwards they are {found:?}")), remedy)),
        Err(why) => Err(Refusal::new(what, why, remedy)),
    }
}

fn set_timer_slack(slack: Duration) -> Result<(), Refusal> {
    let what = format!("a timer slack of {slack:?}");
    let wanted = u64::try_from(slack.as_nanos()).unwrap_or(u64::MAX);
    if wanted == 0 {
        let why = io::Error::new(io::ErrorKind::InvalidInput, "0 stands for the default");
        return Err(Refusal::new(what, why, "ask for 1 ns or more"));
    }
    let found = syscall::set_timer_slack(wanted).and_then(|()| syscall::timer_slack());
    match found.map_err(|why| Refusal::new(&what, why, "ask for less than two seconds"))? {
        // A thread under SCHED_FIFO, SCHED_RR or SCHED_DEADLINE has none.
        found if found == wanted || found == 0 => Ok(()),
        found => Err(Refusal::unlike(what, format_args!("{found} ns"))),
    }
}

fn schedule(wanted: Scheduling) -> Result<(), Refusal> {
    let refused = |why: io::Error| {
        let remedy = match (wanted, why.kind()) {
            (Scheduling::Fifo(priority) | Scheduling::RoundRobin(priority), io::ErrorKind::PermissionDenied) => {
                format!("it takes CAP_SYS_NICE, or a limit of real-time priorities (ulimit -r) of {priority} or more")
            }
            (Scheduling::Deadline { .. }, io::ErrorKind::PermissionDenied) => {
                "it takes CAP_SYS_NICE, and all processors of the thread's root domain".to_owned()
            }
            (Scheduling::Deadline { .. }, io::ErrorKind::ResourceBusy) => {
                "with what was admitted before there is no time left: ask for less runtime, or a longer period".to_owned()
            }
            (Scheduling::Deadline { .. }, _) => {
                "1.024 us <= runtime <= deadline <= period is possible, up to /proc/sys/kernel/sched_deadline_period_max_us".to_owned()
            }
            _ => "priorities are 1 to 99".to_owned(),
        };
        Refusal::new(wanted, why, remedy)
    };
    syscall::set_scheduling(wanted).map_err(refused)?;
    match syscall::scheduling().map_err(refused)? {
        Some(found) if found == wanted => Ok(()),
        Some(found) => Err(Refusal::unlike(wanted, found)),
        None => Err(Refusal::unlike(wanted, "as before")),
    }
}
