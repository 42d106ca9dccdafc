//! Real-time settings of a thread: scheduling policy, processor affinity, timer slack.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::refusal::Refusal;
use crate::syscall;

/// Number of processors that can be selected, 0 to 1023.
pub const CPUS_MAX: usize = 1024;

/// Scheduling policy of a thread; see sched(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// SCHED_FIFO: runs until it blocks or a thread of higher priority preempts it. 1 to 99.
    Fifo(u8),
    /// SCHED_RR: like SCHED_FIFO, with time slices among threads of the same priority.
    RoundRobin(u8),
    /// SCHED_DEADLINE: `runtime` in each `period`, within `deadline` from its start. The kernel
    /// performs admission control. Such a thread cannot fork, and cannot have its own processor
    /// affinity.
    Deadline {
        /// Runtime, at least 1024 ns.
        runtime: Duration,
        /// Relative deadline, at least the runtime.
        deadline: Duration,
        /// Period, at least the deadline.
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

/// Settings of a thread. The default changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadSettings {
    /// Scheduling policy.
    pub scheduling: Option<Scheduling>,
    /// Processors on which the thread may run. Empty keeps the current affinity.
    pub cpus: Vec<usize>,
    /// Maximum delay of timer expirations, at least a nanosecond. The default is 50 us. The kernel
    /// ignores it for SCHED_FIFO, SCHED_RR and SCHED_DEADLINE, whose threads wake without slack.
    pub timer_slack: Option<Duration>,
}

impl ThreadSettings {
    /// Applies the settings to the calling thread and verifies them. Threads that it starts later
    /// inherit them.
    ///
    /// # Errors
    /// Fails with the first setting that could not be applied. The order is `cpus`, `timer_slack`,
    /// `scheduling`; later settings are not tried.
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
        let why = io::Error::new(io::ErrorKind::InvalidInput, format!("the highest number is below {CPUS_MAX}"));
        return Err(Refusal::new(what, why, "see lscpu"));
    }
    let remedy = "choose processors that are online and in the cpuset of the process; see taskset -p $$";
    syscall::set_affinity(&wanted).map_err(|why| Refusal::new(&what, why, remedy))?;
    match syscall::affinity() {
        // The kernel ignores nonexistent processors, as long as one exists.
        Ok(found) if found == wanted => Ok(()),
        Ok(found) => Err(Refusal::new(what, io::Error::other(format!("the kernel reports {found:?}")), remedy)),
        Err(why) => Err(Refusal::new(what, why, remedy)),
    }
}

fn set_timer_slack(slack: Duration) -> Result<(), Refusal> {
    let what = format!("a timer slack of {slack:?}");
    let wanted = u64::try_from(slack.as_nanos()).unwrap_or(u64::MAX);
    if wanted == 0 {
        let why = io::Error::new(io::ErrorKind::InvalidInput, "0 means the default");
        return Err(Refusal::new(what, why, "request 1 ns or more"));
    }
    let found = syscall::set_timer_slack(wanted).and_then(|()| syscall::timer_slack());
    match found.map_err(|why| Refusal::new(&what, why, "request less than two seconds"))? {
        // A thread under SCHED_FIFO, SCHED_RR or SCHED_DEADLINE has no slack.
        found if found == wanted || found == 0 => Ok(()),
        found => Err(Refusal::not_applied(what, format_args!("{found} ns"))),
    }
}

fn schedule(wanted: Scheduling) -> Result<(), Refusal> {
    let refused = |why: io::Error| {
        let remedy = match (wanted, why.kind()) {
            (Scheduling::Fifo(priority) | Scheduling::RoundRobin(priority), io::ErrorKind::PermissionDenied) => {
                format!("needs CAP_SYS_NICE, or a real-time priority limit (ulimit -r) of at least {priority}")
            }
            (Scheduling::Deadline { .. }, io::ErrorKind::PermissionDenied) => {
                "needs CAP_SYS_NICE and an affinity to all processors of the thread's root domain".to_owned()
            }
            (Scheduling::Deadline { .. }, io::ErrorKind::ResourceBusy) => {
                "the admitted bandwidth leaves too little: request less runtime or a longer period".to_owned()
            }
            (Scheduling::Deadline { .. }, _) => {
                "expected 1.024 us <= runtime <= deadline <= period <= /proc/sys/kernel/sched_deadline_period_max_us"
                    .to_owned()
            }
            _ => "expected a priority from 1 to 99".to_owned(),
        };
        Refusal::new(wanted, why, remedy)
    };
    syscall::set_scheduling(wanted).map_err(refused)?;
    match syscall::scheduling().map_err(refused)? {
        Some(found) if found == wanted => Ok(()),
        Some(found) => Err(Refusal::not_applied(wanted, found)),
        None => Err(Refusal::not_applied(wanted, "as before")),
    }
}
