//! What the jobs of a participant's executor took: accounts by class, the last ones as a trace, and who took too long.

use std::collections::VecDeque;

use takt_core::Instant;
use takt_exec::{Accounts, JobKind, Priority, Run};

use super::clock;
use crate::BudgetOverrun;

/// Overruns that are kept; older ones are counted only.
const OVERRUNS_KEPT: usize = 64;

/// The account of one participant.
pub(crate) struct Ledger {
    pub(crate) accounts: Accounts,
    /// What the executor's thread has waited for the lock since the last job.
    waited_ns: u64,
    /// When the job at hand began: when the one before it ended, since nothing else is done in between.
    began: Instant,
    /// The last ones.
    overruns: VecDeque<BudgetOverrun>,
    overrun_count: u64,
    /// Those of them that the participant's listener was told of.
    told_count: u64,
    /// It is to be told of more.
    has_news: bool,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            accounts: Accounts::new(),
            waited_ns: 0,
            began: Instant(0),
            overruns: VecDeque::with_capacity(OVERRUNS_KEPT),
            overrun_count: 0,
            told_count: 0,
            has_news: false,
        }
    }

    /// A job begins now, or when the one before it ended, if that was later than the reading of the clock.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.began = self.began.max(now);
    }

    /// The executor's thread has waited for the lock, before the job at hand or the next one.
    #[cold]
    pub(crate) fn waited(&mut self, waited_ns: u64) {
        self.waited_ns += waited_ns;
    }

    /// A call of the application has held the lock for so long.
    pub(crate) fn held(&mut self, held_ns: u64) {
        self.accounts.open(JobKind::LockHold, Priority::NORMAL).durations.record(held_ns);
    }

    /// Counts what the executor's thread has waited for the lock before this job.
    #[cold]
    fn count_wait(&mut self, run: &Run) {
        let waited_ns = std::mem::take(&mut self.waited_ns);
        let began_ns = run.began_ns.saturating_sub(waited_ns);
        let wait = Run { kind: JobKind::LockWait, owner: 0, began_ns, ended_ns: run.began_ns, ..*run };
        self.accounts.record(&wait);
    }

    /// Counts a job. Says by how long a budget its class has, if it took longer than that.
    #[inline]
    pub(crate) fn record(&mut self, run: &Run) -> Option<u64> {
        if self.waited_ns > 0 {
            self.count_wait(run);
        }
        self.accounts.record(run)
    }

    /// When the job at hand began.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// The job at hand has ended, and the next one begins.
    #[inline]
    pub(crate) fn end(&mut self, kind: JobKind, priority: Priority) {
        #[cfg(test)]
        super::simulation::spend(kind, priority);
        let now = clock::now();
        let run = Run { kind, priority, owner: 0, began_ns: self.began.0, ended_ns: now.0 };
        self.began = now;
        if let Some(budget_ns) = self.record(&run) {
            self.overran(BudgetOverrun::of(&run, budget_ns));
        }
    }

    /// As [`end`](Self::end), of a call that told of overruns. If it took too long itself that is counted, and told with the
    /// next one: else it would be told for ever.
    pub(crate) fn end_telling(&mut self) {
        let had_news = self.has_news;
        self.end(JobKind::Callback, Priority::NORMAL);
        self.has_news = had_news;
    }

    /// A job took longer than it may.
    #[cold]
    pub(crate) fn overran(&mut self, overrun: BudgetOverrun) {
        self.has_news = true;
        self.overrun_count += 1;
        if self.overruns.len() == OVERRUNS_KEPT {
            self.overruns.pop_front();
        }
        self.overruns.push_back(overrun);
    }

    /// The last ones, and how many there were at all.
    pub(crate) fn overruns(&self) -> (impl Iterator<Item = &BudgetOverrun>, u64) {
        (self.overruns.iter(), self.overrun_count)
    }

    /// Whether the participant's listener is to be told of some.
    pub(crate) fn has_news(&self) -> bool {
        self.has_news
    }

    /// The last one, how many are told with it, and how many there were.
    pub(crate) fn take_news(&mut self) -> Option<(BudgetOverrun, u64, u64)> {
        let last = self.overruns.back().filter(|_| self.has_news)?.clone();
        self.has_news = false;
        let before = std::mem::replace(&mut self.told_count, self.overrun_count);
        Some((last, self.overrun_count - before, self.overrun_count))
    }
}
