//! Application jobs of one executor: ready jobs, release times of periodic jobs, and statistics.
//!
//! Invariant: the work of a job is either in its entry or taken out for one run. It is called and
//! dropped without holding the lock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicUsize, Ordering};

use takt_core::Instant;
use takt_schedule::{Histogram, Priority, PriorityQueue};

use crate::runtime::clock;
use crate::runtime::pi_mutex::PiMutex;
use crate::{Error, Idle, Result};

/// Maximum number of jobs of one executor.
pub const JOBS_MAX: usize = 1024;

const UNDISTURBED: &str = "the lock is not poisoned: no user code runs under it";

pub(super) type Work = Box<dyn FnMut() + Send>;

/// Identifies a job of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobId {
    slot: usize,
    generation: u64,
}

/// Release pattern of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recurrence {
    /// Periodic, with the period in nanoseconds.
    Every(u64),
    OnEvent,
}

/// Job to be added.
pub(super) struct NewJob {
    pub(super) name: String,
    pub(super) priority: Priority,
    pub(super) recurrence: Recurrence,
    pub(super) work: Work,
}

/// Statistics of a job of the application.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct JobStatistics {
    /// Name of the job.
    pub name: String,
    /// Priority of the job.
    pub priority: Priority,
    /// Execution times of its runs.
    pub durations: Histogram,
    /// Response times: from the release or trigger of a run to its end.
    pub responses: Histogram,
    /// Releases of a periodic job that were skipped because the previous one was still pending.
    pub skipped: u64,
    /// Runs that exceeded the budget.
    pub overruns: u64,
    /// The job is suspended because a run exceeded its budget.
    pub is_suspended: bool,
}

struct Entry {
    generation: u64,
    recurrence: Recurrence,
    /// `None` while the job runs.
    work: Option<Work>,
    /// Release time of the pending run; `None` if none is pending.
    released: Option<Instant>,
    /// The job is in the ready queue. It is queued at most once, even if it is released, suspended
    /// and resumed repeatedly.
    is_waiting: bool,
    budget: Option<(u64, bool)>,
    statistics: JobStatistics,
}

struct Jobs {
    entries: Vec<Option<Entry>>,
    generations: u64,
    /// Ready jobs, by slot and generation.
    waiting: PriorityQueue<(usize, u64)>,
    /// Release times of periodic jobs, the earliest first.
    due: BinaryHeap<Reverse<(Instant, usize, u64)>>,
}

/// Application jobs of an executor.
pub(crate) struct JobQueue {
    idle: Idle,
    /// Number of jobs. Executors without jobs, the majority, need not take the lock.
    count: AtomicUsize,
    jobs: PiMutex<Jobs>,
}

impl Jobs {
    fn get(&mut self, id: JobId) -> Option<&mut Entry> {
        self.entries.get_mut(id.slot)?.as_mut().filter(|entry| entry.generation == id.generation)
    }

    /// Releases a run. Returns true if no run was pending.
    fn release(&mut self, id: JobId, at: Instant) -> bool {
        let Some(entry) = self.get(id) else { return false };
        if entry.released.is_some() {
            return false;
        }
        entry.released = Some(at);
        self.queue(id);
        true
    }

    /// Queues a job with a pending run, unless it is queued already or suspended.
    fn queue(&mut self, id: JobId) {
        let Some(entry) = self.get(id) else { return };
        if entry.released.is_none() || entry.is_waiting || entry.statistics.is_suspended {
            return;
        }
        entry.is_waiting = true;
        let priority = entry.statistics.priority;
        self.waiting.push(priority, (id.slot, id.generation));
    }

    /// Removes a job from the ready queue if it is there.
    fn unqueue(&mut self, id: JobId) {
        let Some(entry) = self.get(id) else { return };
        if std::mem::take(&mut entry.is_waiting) {
            let priority = entry.statistics.priority;
            self.waiting.remove(priority, |waiting| *waiting == (id.slot, id.generation));
        }
    }

    /// Takes the highest-priority ready job out for a run.
    fn take_first(&mut self) -> Option<(JobId, Work, Instant)> {
        loop {
            let (_, (slot, generation)) = self.waiting.pop()?;
            let id = JobId { slot, generation };
            let Some(entry) = self.get(id) else { continue };
            entry.is_waiting = false;
            // A job that is running is queued again when its run ends.
            if let Some(work) = entry.work.take()
                && let Some(released) = entry.released.take()
            {
                return Some((id, work, released));
            }
        }
    }

    /// Releases the periodic jobs that are due and schedules their next releases.
    fn release_due(&mut self, now: Instant) {
        while let Some(Reverse((at, slot, generation))) = self.due.peek().copied()
            && at <= now
        {
            self.due.pop();
            let id = JobId { slot, generation };
            let Some(Recurrence::Every(period_ns)) = self.get(id).map(|entry| entry.recurrence) else { continue };
            // Missed periods are skipped and counted, not run later.
            let over = now.0.saturating_sub(at.0) / period_ns;
            let latest = Instant(at.0.saturating_add(over * period_ns));
            let skipped = over + u64::from(!self.release(id, at));
            if let Some(entry) = self.get(id) {
                entry.statistics.skipped += skipped;
            }
            self.due.push(Reverse((Instant(latest.0.saturating_add(period_ns)), slot, generation)));
        }
    }
}

impl JobQueue {
    pub(super) fn new(idle: Idle) -> Self {
        let jobs = Jobs {
            entries: Vec::new(),
            generations: 0,
            waiting: PriorityQueue::new(),
            due: BinaryHeap::with_capacity(JOBS_MAX),
        };
        Self { idle, count: AtomicUsize::new(0), jobs: PiMutex::new(jobs) }
    }

    pub(crate) fn idle(&self) -> Idle {
        self.idle
    }

    pub(super) fn add(&self, new: NewJob, now: Instant) -> Result<JobId> {
        let mut jobs = self.jobs.lock().expect(UNDISTURBED);
        let free = jobs.entries.iter().position(Option::is_none);
        let slot = free.unwrap_or(jobs.entries.len());
        if slot >= JOBS_MAX {
            return Err(Error::OutOfResources { limit: "jobs per executor", value: JOBS_MAX as u64 });
        }
        jobs.generations += 1;
        let generation = jobs.generations;
        let NewJob { name, priority, recurrence, work } = new;
        let statistics = JobStatistics { name, priority, ..JobStatistics::default() };
        let entry = Entry {
            generation,
            recurrence,
            work: Some(work),
            released: None,
            is_waiting: false,
            budget: None,
            statistics,
        };
        if free.is_none() {
            jobs.entries.push(None);
        }
        jobs.entries[slot] = Some(entry);
        let room = jobs.entries.len();
        jobs.waiting.reserve(priority, room);
        if let Recurrence::Every(period_ns) = recurrence {
            jobs.due.push(Reverse((Instant(now.0.saturating_add(period_ns)), slot, generation)));
        }
        self.count.fetch_add(1, Ordering::Release);
        Ok(JobId { slot, generation })
    }

    /// Removes a job. Returns its work unless it is running; the caller drops it without holding
    /// the lock.
    #[must_use]
    pub(super) fn remove(&self, id: JobId) -> Option<Work> {
        let mut jobs = self.jobs.lock().expect(UNDISTURBED);
        jobs.get(id)?;
        jobs.unqueue(id);
        let entry = jobs.entries[id.slot].take()?;
        jobs.due.retain(|Reverse((_, slot, generation))| (*slot, *generation) != (id.slot, id.generation));
        drop(jobs);
        self.count.fetch_sub(1, Ordering::Release);
        entry.work
    }

    /// Releases a run of the job. Returns true if the executor must be woken.
    pub(super) fn trigger(&self, id: JobId, now: Instant) -> bool {
        self.jobs.lock().expect(UNDISTURBED).release(id, now)
    }

    pub(super) fn set_budget(&self, id: JobId, budget_ns: Option<u64>, suspends: bool) {
        if let Some(entry) = self.jobs.lock().expect(UNDISTURBED).get(id) {
            entry.budget = budget_ns.map(|budget_ns| (budget_ns, suspends));
        }
    }

    pub(super) fn resume(&self, id: JobId) {
        let mut jobs = self.jobs.lock().expect(UNDISTURBED);
        if let Some(entry) = jobs.get(id) {
            entry.statistics.is_suspended = false;
        }
        jobs.queue(id);
    }

    pub(super) fn statistics(&self, id: JobId) -> JobStatistics {
        let mut jobs = self.jobs.lock().expect(UNDISTURBED);
        jobs.get(id).map(|entry| entry.statistics.clone()).unwrap_or_default()
    }

    /// Returns the statistics of all jobs.
    pub(super) fn all_statistics(&self) -> Vec<JobStatistics> {
        let jobs = self.jobs.lock().expect(UNDISTURBED);
        jobs.entries.iter().flatten().map(|entry| entry.statistics.clone()).collect()
    }

    /// Returns the time at which the next job is due; [`Instant`] 0 if a job is ready.
    pub(crate) fn due(&self) -> Option<Instant> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let jobs = self.jobs.lock().expect(UNDISTURBED);
        if !jobs.waiting.is_empty() {
            return Some(Instant(0));
        }
        jobs.due.peek().map(|Reverse((at, ..))| *at)
    }

    /// Returns the priority of the highest-priority ready job.
    pub(crate) fn first_priority(&self, now: Instant) -> Option<Priority> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut jobs = self.jobs.lock().expect(UNDISTURBED);
        jobs.release_due(now);
        jobs.waiting.first_priority()
    }

    /// Runs the highest-priority ready job, if there is one.
    pub(crate) fn run_first(&self) {
        let first = self.jobs.lock().expect(UNDISTURBED).take_first();
        let Some((id, mut work, released)) = first else { return };
        let began = clock::now();
        work();
        let ended = clock::now();
        let left = self.end(id, work, released, (began, ended));
        drop(left);
    }

    /// Records a run and returns the work to its entry. Hands the work back if the job was removed
    /// meanwhile.
    fn end(&self, id: JobId, work: Work, released: Instant, (began, ended): (Instant, Instant)) -> Option<Work> {
        let mut jobs = self.jobs.lock().expect(UNDISTURBED);
        let Some(entry) = jobs.get(id) else { return Some(work) };
        entry.work = Some(work);
        let took_ns = ended.0.saturating_sub(began.0);
        entry.statistics.durations.record(took_ns);
        entry.statistics.responses.record(ended.0.saturating_sub(released.0));
        if let Some((_, suspends)) = entry.budget.filter(|(budget_ns, _)| took_ns > *budget_ns) {
            entry.statistics.overruns += 1;
            entry.statistics.is_suspended |= suspends;
        }
        match entry.statistics.is_suspended {
            true => jobs.unqueue(id),
            false => jobs.queue(id),
        }
        None
    }
}
