//! The application's jobs of one executor: which wait, which are due when, and what they took.
//!
//! Invariant: a job is with its place, or out for one run; its code is called and dropped with the lock released.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicUsize, Ordering};

use takt_core::Instant;
use takt_exec::{Histogram, Priority, PriorityQueue};

use crate::runtime::clock;
use crate::runtime::pi_mutex::PiMutex;
use crate::{Error, Idle, Result};

/// Jobs of one executor at most.
pub const JOBS_MAX: usize = 1024;

const UNDISTURBED: &str = "no code of others runs under this lock";

pub(super) type Work = Box<dyn FnMut() + Send>;

/// Names a job of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JobId {
    place: usize,
    generation: u64,
}

/// When a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recurrence {
    /// Every so many nanoseconds.
    Every(u64),
    OnEvent,
}

/// A job to be added.
pub(super) struct NewJob {
    pub(super) name: String,
    pub(super) priority: Priority,
    pub(super) recurrence: Recurrence,
    pub(super) work: Work,
}

/// What a job of the application took so far.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct JobStatistics {
    /// Its name.
    pub name: String,
    /// How urgent it is.
    pub priority: Priority,
    /// How long its runs took.
    pub durations: Histogram,
    /// From when a run was due, or triggered, to its end.
    pub responses: Histogram,
    /// Releases of a periodic job that were left out, since the one before still waited.
    pub skipped: u64,
    /// Runs that took longer than the budget.
    pub overruns: u64,
    /// It runs no more since it took too long.
    pub is_suspended: bool,
}

struct Entry {
    generation: u64,
    recurrence: Recurrence,
    /// `None` while it runs.
    work: Option<Work>,
    /// Since when a run is due; `None` if none is.
    released: Option<Instant>,
    /// It is among those that wait: once, however often it was released, suspended and resumed.
    is_waiting: bool,
    budget: Option<(u64, bool)>,
    statistics: JobStatistics,
}

struct Jobs {
    entries: Vec<Option<Entry>>,
    generations: u64,
    /// Those that wait, by their places.
    waiting: PriorityQueue<(usize, u64)>,
    /// When periodic ones are due, the earliest first.
    due: BinaryHeap<Reverse<(Instant, usize, u64)>>,
}

/// The jobs of an executor.
pub(crate) struct Agenda {
    idle: Idle,
    /// How many jobs there are: most executors have none, and then nobody needs the lock.
    count: AtomicUsize,
    jobs: PiMutex<Jobs>,
}

impl Jobs {
    fn get(&mut self, id: JobId) -> Option<&mut Entry> {
        self.entries.get_mut(id.place)?.as_mut().filter(|entry| entry.generation == id.generation)
    }

    /// A run is due. Says whether none was before.
    fn release(&mut self, id: JobId, at: Instant) -> bool {
        let Some(entry) = self.get(id) else { return false };
        if entry.released.is_some() {
            return false;
        }
        entry.released = Some(at);
        self.queue(id);
        true
    }

    /// Has a job wait whose run is due, unless it does or is suspended.
    fn queue(&mut self, id: JobId) {
        let Some(entry) = self.get(id) else { return };
        if entry.released.is_none() || entry.is_waiting || entry.statistics.is_suspended {
            return;
        }
        entry.is_waiting = true;
        let priority = entry.statistics.priority;
        self.waiting.push(priority, (id.place, id.generation));
    }

    /// Has a job wait no more, whether it did or not.
    fn unqueue(&mut self, id: JobId) {
        let Some(entry) = self.get(id) else { return };
        if std::mem::take(&mut entry.is_waiting) {
            let priority = entry.statistics.priority;
            self.waiting.remove(priority, |waiting| *waiting == (id.place, id.generation));
        }
    }

    /// Takes the most urgent job out for a run.
    fn take_first(&mut self) -> Option<(JobId, Work, Instant)> {
        loop {
            let (_, (place, generation)) = self.waiting.pop()?;
            let id = JobId { place, generation };
            let Some(entry) = self.get(id) else { continue };
            entry.is_waiting = false;
            // One that is out for a run waits again when it is back.
            if let Some(work) = entry.work.take()
                && let Some(released) = entry.released.take()
            {
                return Some((id, work, released));
            }
        }
    }

    /// Has those wait that are due by now, and says when the next one is.
    fn release_due(&mut self, now: Instant) {
        while let Some(Reverse((at, place, generation))) = self.due.peek().copied()
            && at <= now
        {
            self.due.pop();
            let id = JobId { place, generation };
            let Some(Recurrence::Every(period_ns)) = self.get(id).map(|entry| entry.recurrence) else { continue };
            // What is over by now will not be made up for.
            let over = now.0.saturating_sub(at.0) / period_ns;
            let latest = Instant(at.0.saturating_add(over * period_ns));
            let skipped = over + u64::from(!self.release(id, at));
            if let Some(entry) = self.get(id) {
                entry.statistics.skipped += skipped;
            }
            self.due.push(Reverse((Instant(latest.0.saturating_add(period_ns)), place, generation)));
        }
    }
}

impl Agenda {
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
        let place = free.unwrap_or(jobs.entries.len());
        if place >= JOBS_MAX {
            return Err(Error::OutOfResources { limit: "jobs of an executor", value: JOBS_MAX as u64 });
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
        jobs.entries[place] = Some(entry);
        let room = jobs.entries.len();
        jobs.waiting.reserve(priority, room);
        if let Recurrence::Every(period_ns) = recurrence {
            jobs.due.push(Reverse((Instant(now.0.saturating_add(period_ns)), place, generation)));
        }
        self.count.fetch_add(1, Ordering::Release);
        Ok(JobId { place, generation })
    }

    /// What the job did, if it is not running; to be dropped outside the lock.
    #[must_use]
    pub(super) fn remove(&self, id: JobId) -> Option<Work> {
        let mut jobs = self.jobs.lock().expect(UNDISTURBED);
        jobs.get(id)?;
        jobs.unqueue(id);
        let entry = jobs.entries[id.place].take()?;
        jobs.due.retain(|Reverse((_, place, generation))| (*place, *generation) != (id.place, id.generation));
        drop(jobs);
        self.count.fetch_sub(1, Ordering::Release);
        entry.work
    }

    /// Says whether the executor is to be woken.
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

    /// Those of all jobs that there are.
    pub(super) fn all_statistics(&self) -> Vec<JobStatistics> {
        let jobs = self.jobs.lock().expect(UNDISTURBED);
        jobs.entries.iter().flatten().map(|entry| entry.statistics.clone()).collect()
    }

    /// When the next job is due; [`Instant`] 0 if one waits.
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

    /// How urgent the most urgent job is that waits.
    pub(crate) fn first_priority(&self, now: Instant) -> Option<Priority> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut jobs = self.jobs.lock().expect(UNDISTURBED);
        jobs.release_due(now);
        jobs.waiting.first_priority()
    }

    /// Runs the most urgent job that waits, if there is one.
    pub(crate) fn run_first(&self) {
        let first = self.jobs.lock().expect(UNDISTURBED).take_first();
        let Some((id, mut work, released)) = first else { return };
        let began = clock::now();
        work();
        let ended = clock::now();
        let left = self.end(id, work, released, (began, ended));
        drop(left);
    }

    /// Counts a run, and puts the job back, or hands it back if it was removed meanwhile.
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
