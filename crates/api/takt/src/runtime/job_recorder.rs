//! Job statistics of a participant's executor: execution times by class, a trace of recent jobs,
//! and budget overruns.

use std::collections::VecDeque;

use takt_core::Instant;
use takt_schedule::{JobKind, JobStatistics, Priority, Run};

use super::clock;
use crate::BudgetOverrun;

/// Maximum number of overruns that are kept. Older ones are only counted.
const OVERRUNS_KEPT: usize = 64;

/// Job statistics of one participant.
pub(crate) struct JobRecorder {
    pub(crate) statistics: JobStatistics,
    /// Time that the executor's thread has waited for the lock since the last job.
    waited_ns: u64,
    /// Start time of the current job: the end of the previous one, since jobs run back to back.
    began: Instant,
    /// Most recent overruns.
    overruns: VecDeque<BudgetOverrun>,
    overrun_count: u64,
    /// Number of overruns reported to the participant's listener.
    reported_count: u64,
    /// An overrun is to be reported.
    has_unreported: bool,
}

impl JobRecorder {
    pub(crate) fn new() -> Self {
        Self {
            statistics: JobStatistics::new(),
            waited_ns: 0,
            began: Instant(0),
            overruns: VecDeque::with_capacity(OVERRUNS_KEPT),
            overrun_count: 0,
            reported_count: 0,
            has_unreported: false,
        }
    }

    /// Starts a job at `now`, or at the end of the previous job if that is later.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.began = self.began.max(now);
    }

    /// Records that the executor's thread has waited for the lock, before the current or the next
    /// job.
    #[cold]
    pub(crate) fn waited(&mut self, waited_ns: u64) {
        self.waited_ns += waited_ns;
    }

    /// Records how long a call of the application has held the lock.
    pub(crate) fn held(&mut self, held_ns: u64) {
        self.statistics.class_mut(JobKind::LockHold, Priority::NORMAL).durations.record(held_ns);
    }

    /// Records the time that the executor's thread has waited for the lock before this job.
    #[cold]
    fn count_wait(&mut self, run: &Run) {
        let waited_ns = std::mem::take(&mut self.waited_ns);
        let began_ns = run.began_ns.saturating_sub(waited_ns);
        let wait = Run { kind: JobKind::LockWait, owner: 0, began_ns, ended_ns: run.began_ns, ..*run };
        self.statistics.record(&wait);
    }

    /// Records a job. Returns the budget of its class if the job exceeded it.
    #[inline]
    pub(crate) fn record(&mut self, run: &Run) -> Option<u64> {
        if self.waited_ns > 0 {
            self.count_wait(run);
        }
        self.statistics.record(run)
    }

    /// Returns the start time of the current job.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// Ends the current job and starts the next one.
    #[inline]
    pub(crate) fn end(&mut self, kind: JobKind, priority: Priority) {
        #[cfg(test)]
        super::simulation::spend(kind, priority);
        let now = clock::now();
        let run = Run { kind, priority, owner: 0, began_ns: self.began.0, ended_ns: now.0 };
        self.began = now;
        if let Some(budget_ns) = self.record(&run) {
            self.record_overrun(BudgetOverrun::of(&run, budget_ns));
        }
    }

    /// As [`end`](Self::end), for a call that reported overruns. An overrun of this call itself is
    /// counted but reported only with the next one; otherwise it would be reported endlessly.
    pub(crate) fn end_reporting(&mut self) {
        let had_unreported = self.has_unreported;
        self.end(JobKind::Callback, Priority::NORMAL);
        self.has_unreported = had_unreported;
    }

    /// Records a budget overrun.
    #[cold]
    pub(crate) fn record_overrun(&mut self, overrun: BudgetOverrun) {
        self.has_unreported = true;
        self.overrun_count += 1;
        if self.overruns.len() == OVERRUNS_KEPT {
            self.overruns.pop_front();
        }
        self.overruns.push_back(overrun);
    }

    /// Returns the most recent overruns and the total number.
    pub(crate) fn overruns(&self) -> (impl Iterator<Item = &BudgetOverrun>, u64) {
        (self.overruns.iter(), self.overrun_count)
    }

    /// Reports whether an overrun must be reported to the participant's listener.
    pub(crate) fn has_unreported(&self) -> bool {
        self.has_unreported
    }

    /// Takes the report of the pending overruns: the last one, their number, and the total number.
    pub(crate) fn take_report(&mut self) -> Option<(BudgetOverrun, u64, u64)> {
        let last = self.overruns.back().filter(|_| self.has_unreported)?.clone();
        self.has_unreported = false;
        let before = std::mem::replace(&mut self.reported_count, self.overrun_count);
        Some((last, self.overrun_count - before, self.overrun_count))
    }
}
