//! Jobs of an executor: kinds, and statistics of execution times by kind and priority.

use alloc::vec::Vec;
use core::fmt;

use crate::histogram::Histogram;
use crate::priority::{LEVELS, Priority};
use crate::trace::{Trace, TraceRecord};

/// Kind of a job. Each job is bounded, and no other job of the same executor preempts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobKind {
    /// Processing of one received datagram: parsing, ordering, and acknowledgment if required.
    Receive,
    /// Transmission of some datagrams: data, retransmissions, heartbeats, acknowledgments,
    /// announcements.
    Transmit,
    /// One listener call.
    Callback,
    /// One batch of timers: heartbeats, leases, deadlines, retransmissions, maintenance.
    Timers,
    /// One run of an application job.
    Application,
    /// Time that the executor's thread waits for the lock of a participant before a job, while a
    /// call of another thread holds it. It has the priority of that job. Not a job.
    LockWait,
    /// Time that a call of another thread holds the lock of a participant. Not a job.
    LockHold,
}

impl JobKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Receive,
        Self::Transmit,
        Self::Callback,
        Self::Timers,
        Self::Application,
        Self::LockWait,
        Self::LockHold,
    ];

    /// Returns the name of the kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Transmit => "transmit",
            Self::Callback => "callback",
            Self::Timers => "timers",
            Self::Application => "application",
            Self::LockWait => "lock-wait",
            Self::LockHold => "lock-hold",
        }
    }
}

impl fmt::Display for JobKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Completed run of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Kind of the job.
    pub kind: JobKind,
    /// Priority of the job.
    pub priority: Priority,
    /// Owner of the job: a number that the executor's user defines; 0 for none.
    pub owner: u32,
    /// Start time in nanoseconds of CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// End time in nanoseconds of CLOCK_MONOTONIC.
    pub ended_ns: u64,
}

impl Run {
    /// Returns the execution time in nanoseconds.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.began_ns)
    }
}

/// Statistics of the jobs of one kind and priority.
#[derive(Clone, Debug)]
pub struct JobClass {
    /// Kind of the jobs.
    pub kind: JobKind,
    /// Priority of the jobs.
    pub priority: Priority,
    /// Execution time budget of a job in nanoseconds; `None` for no budget.
    pub budget_ns: Option<u64>,
    /// Number of jobs that exceeded the budget.
    pub overruns: u64,
    /// Execution times.
    pub durations: Histogram,
}

/// Execution time statistics of all jobs of an executor.
#[derive(Debug)]
pub struct JobStatistics {
    classes: Vec<JobClass>,
    /// Index of the class of each kind and priority level.
    class_indexes: [[u8; LEVELS]; JobKind::ALL.len()],
    trace: Option<Trace>,
}

/// Maximum number of classes. Jobs of further classes count as [`Priority::NORMAL`].
const CLASSES_MAX: usize = u8::MAX as usize;

impl Default for JobStatistics {
    fn default() -> Self {
        Self::new()
    }
}

impl JobStatistics {
    /// Returns empty statistics, with a class of [`Priority::NORMAL`] for each kind.
    #[must_use]
    pub fn new() -> Self {
        let class = |kind| JobClass {
            kind,
            priority: Priority::NORMAL,
            budget_ns: None,
            overruns: 0,
            durations: Histogram::new(),
        };
        let mut indexes = [[0; LEVELS]; JobKind::ALL.len()];
        for (index, levels) in indexes.iter_mut().enumerate() {
            levels.fill(index as u8);
        }
        Self { classes: JobKind::ALL.map(class).into(), class_indexes: indexes, trace: None }
    }

    /// Returns the class of this kind and priority. Creates it, which allocates, if there is none.
    pub fn class_mut(&mut self, kind: JobKind, priority: Priority) -> &mut JobClass {
        let index = usize::from(self.class_indexes[kind as usize][priority.level()]);
        if self.classes[index].priority == priority || self.classes.len() >= CLASSES_MAX {
            return &mut self.classes[index];
        }
        self.class_indexes[kind as usize][priority.level()] = self.classes.len() as u8;
        self.classes.push(JobClass { kind, priority, budget_ns: None, overruns: 0, durations: Histogram::new() });
        self.classes.last_mut().expect("one was added")
    }

    /// Records a job. If it exceeded the budget of its class, returns the excess in nanoseconds.
    #[inline]
    pub fn record(&mut self, run: &Run) -> Option<u64> {
        let index = self.class_indexes[run.kind as usize][run.priority.level()];
        let class = &mut self.classes[usize::from(index)];
        let duration_ns = run.duration_ns();
        class.durations.record(duration_ns);
        if let Some(trace) = &mut self.trace {
            trace.push(TraceRecord::of(run));
        }
        let budget_ns = class.budget_ns.filter(|budget_ns| duration_ns > *budget_ns)?;
        class.overruns += 1;
        Some(budget_ns)
    }

    /// Returns all classes.
    #[must_use]
    pub fn classes(&self) -> &[JobClass] {
        &self.classes
    }

    /// Keeps a trace of the last `jobs` jobs; 0 disables the trace. Allocates.
    pub fn keep_trace(&mut self, jobs: usize) {
        self.trace = (jobs > 0).then(|| Trace::new(jobs));
    }

    /// Returns the trace of the last jobs, if enabled.
    #[must_use]
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kind: JobKind, priority: i32, duration_ns: u64) -> Run {
        Run { kind, priority: Priority::new(priority), owner: 7, began_ns: 100, ended_ns: 100 + duration_ns }
    }

    #[test]
    fn jobs_without_a_class_count_as_normal_priority() {
        let mut statistics = JobStatistics::new();
        statistics.class_mut(JobKind::Callback, Priority::new(5));
        statistics.class_mut(JobKind::Callback, Priority::new(5));
        for (priority, duration_ns) in [(5, 10), (0, 20), (7, 30)] {
            assert_eq!(statistics.record(&run(JobKind::Callback, priority, duration_ns)), None);
        }
        let recorded: Vec<_> = statistics.classes().iter().filter(|class| class.durations.count() > 0).collect();
        let recorded: Vec<_> = recorded.iter().map(|c| (c.kind, c.priority.get(), c.durations.sum_ns())).collect();
        assert_eq!(recorded, [(JobKind::Callback, 0, 50), (JobKind::Callback, 5, 10)]);
    }

    #[test]
    fn budget_overrun_is_reported() {
        let mut statistics = JobStatistics::new();
        statistics.class_mut(JobKind::Timers, Priority::NORMAL).budget_ns = Some(50);
        let recorded = [50, 51, 10].map(|duration_ns| statistics.record(&run(JobKind::Timers, 0, duration_ns)));
        assert_eq!(recorded, [None, Some(50), None]);
        assert_eq!(statistics.class_mut(JobKind::Timers, Priority::NORMAL).overruns, 1);
    }

    #[test]
    fn number_of_classes_is_limited() {
        let mut statistics = JobStatistics::new();
        for kind in JobKind::ALL {
            for priority in -64..64 {
                statistics.class_mut(kind, Priority::new(priority)).budget_ns = None;
            }
        }
        assert_eq!(statistics.classes().len(), CLASSES_MAX);
        assert_eq!(statistics.record(&run(JobKind::Application, 63, 1)), None);
    }
}
