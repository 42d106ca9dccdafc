//! What jobs an executor runs, and how long each class of them took.

use alloc::vec::Vec;
use core::fmt;

use crate::histogram::Histogram;
use crate::priority::{LEVELS, Priority};
use crate::trace::{Trace, TraceRecord};

/// What a job does. Each is bounded: one at a time, never interrupted by another job of the same executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobKind {
    /// One datagram that has arrived: read, put in order, acknowledged if need be.
    Receive,
    /// Some datagrams that leave: data, repairs, heartbeats, acknowledgements, announcements.
    Transmit,
    /// One call of a listener.
    Callback,
    /// One batch of timers: heartbeats, leases, deadlines, repairs, housekeeping.
    Timers,
    /// One run of a job of the application.
    Application,
    /// The executor's thread waited for the lock of a participant before a job, since a call of another thread held it. Of the
    /// priority of that job. No job itself.
    LockWait,
    /// A call of another thread held the lock of a participant. No job itself.
    LockHold,
}

impl JobKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Receive,
        Self::Transmit,
        Self::Callback,
        Self::Timers,
        Self::Application,
        Self::LockWait,
        Self::LockHold,
    ];

    /// Its name.
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

/// A job that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// What it did.
    pub kind: JobKind,
    /// How urgent it was.
    pub priority: Priority,
    /// On whose behalf: a number that the executor's user gives a meaning; 0 for nobody's.
    pub owner: u32,
    /// When it began, in nanoseconds of CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
}

impl Run {
    /// How long it took.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.began_ns)
    }
}

/// The jobs of one kind and priority.
#[derive(Clone, Debug)]
pub struct JobClass {
    /// What they do.
    pub kind: JobKind,
    /// How urgent they are.
    pub priority: Priority,
    /// How long one may take; `None` for as long as it takes.
    pub budget_ns: Option<u64>,
    /// Those that took longer.
    pub overruns: u64,
    /// How long they took.
    pub durations: Histogram,
}

/// What all jobs of an executor took.
#[derive(Debug)]
pub struct Accounts {
    classes: Vec<JobClass>,
    /// Where the class of a kind and level stands.
    places: [[u8; LEVELS]; JobKind::ALL.len()],
    trace: Option<Trace>,
}

/// Classes at most; what would be further ones counts with those of [`Priority::NORMAL`].
const CLASSES_MAX: usize = u8::MAX as usize;

impl Default for Accounts {
    fn default() -> Self {
        Self::new()
    }
}

impl Accounts {
    /// One of nothing, with a class of [`Priority::NORMAL`] of each kind.
    #[must_use]
    pub fn new() -> Self {
        let class = |kind| JobClass {
            kind,
            priority: Priority::NORMAL,
            budget_ns: None,
            overruns: 0,
            durations: Histogram::new(),
        };
        let mut places = [[0; LEVELS]; JobKind::ALL.len()];
        for (place, levels) in places.iter_mut().enumerate() {
            levels.fill(place as u8);
        }
        Self { classes: JobKind::ALL.map(class).into(), places, trace: None }
    }

    /// From now on jobs of this kind and priority are a class of their own. Allocates for a new one.
    pub fn open(&mut self, kind: JobKind, priority: Priority) -> &mut JobClass {
        let place = usize::from(self.places[kind as usize][priority.level()]);
        if self.classes[place].priority == priority || self.classes.len() >= CLASSES_MAX {
            return &mut self.classes[place];
        }
        self.places[kind as usize][priority.level()] = self.classes.len() as u8;
        self.classes.push(JobClass { kind, priority, budget_ns: None, overruns: 0, durations: Histogram::new() });
        self.classes.last_mut().expect("one was added")
    }

    /// Counts a job. Says by how long a budget its class has, if it took longer than that.
    #[inline]
    pub fn record(&mut self, run: &Run) -> Option<u64> {
        let place = self.places[run.kind as usize][run.priority.level()];
        let class = &mut self.classes[usize::from(place)];
        let duration_ns = run.duration_ns();
        class.durations.record(duration_ns);
        if let Some(trace) = &mut self.trace {
            trace.push(TraceRecord::of(run));
        }
        let budget_ns = class.budget_ns.filter(|budget_ns| duration_ns > *budget_ns)?;
        class.overruns += 1;
        Some(budget_ns)
    }

    /// All classes.
    #[must_use]
    pub fn classes(&self) -> &[JobClass] {
        &self.classes
    }

    /// Keeps so many of the jobs that ran last; none with 0. Allocates.
    pub fn keep_trace(&mut self, jobs: usize) {
        self.trace = (jobs > 0).then(|| Trace::new(jobs));
    }

    /// The jobs that ran last, if they are kept.
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
    fn each_class_has_an_account_and_others_count_with_the_normal_ones() {
        let mut accounts = Accounts::new();
        accounts.open(JobKind::Callback, Priority::new(5));
        accounts.open(JobKind::Callback, Priority::new(5));
        for (priority, duration_ns) in [(5, 10), (0, 20), (7, 30)] {
            assert_eq!(accounts.record(&run(JobKind::Callback, priority, duration_ns)), None);
        }
        let told: Vec<_> = accounts.classes().iter().filter(|class| class.durations.count() > 0).collect();
        let told: Vec<_> = told.iter().map(|c| (c.kind, c.priority.get(), c.durations.sum_ns())).collect();
        assert_eq!(told, [(JobKind::Callback, 0, 50), (JobKind::Callback, 5, 10)]);
    }

    #[test]
    fn what_takes_longer_than_its_budget_is_told() {
        let mut accounts = Accounts::new();
        accounts.open(JobKind::Timers, Priority::NORMAL).budget_ns = Some(50);
        let told = [50, 51, 10].map(|duration_ns| accounts.record(&run(JobKind::Timers, 0, duration_ns)));
        assert_eq!(told, [None, Some(50), None]);
        assert_eq!(accounts.open(JobKind::Timers, Priority::NORMAL).overruns, 1);
    }

    #[test]
    fn there_is_an_end_to_classes() {
        let mut accounts = Accounts::new();
        for kind in JobKind::ALL {
            for priority in -64..64 {
                accounts.open(kind, Priority::new(priority)).budget_ns = None;
            }
        }
        assert_eq!(accounts.classes().len(), CLASSES_MAX);
        assert_eq!(accounts.record(&run(JobKind::Application, 63, 1)), None);
    }
}
