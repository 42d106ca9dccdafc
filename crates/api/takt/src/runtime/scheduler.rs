//! Scheduler of an executor's thread: non-preemptive fixed priorities, with a server for work of
//! normal priority.
//!
//! 1. A job is never preempted by another job of the same thread. Between any two jobs the
//!    scheduler considers all pending work of all participants: datagrams at the ports of urgent
//!    flows, datagrams to send, listener calls, and application jobs.
//! 2. The job with the highest priority runs next. Among jobs of equal priority no order is
//!    guaranteed, but samples of one flow keep their order.
//! 3. *Normal server*: after jobs above [`Priority::NORMAL`] have occupied the thread for
//!    [`Priority::NORMAL_SERVER_PERIOD`] without a pause, one job that receives, sends or runs
//!    timers at normal priority runs first. Another one follows after each further such period.
//!
//! The timing analysis (`takt-calculus`) uses exactly this rule; `docs/guide/executor.md` documents
//! it for users.

use std::ops::Deref;

use takt_core::{Instant, Priority};
use takt_schedule::PrioritySet;
use takt_transport::Scan;

use super::clock;
use super::engine::Engine;
use super::poll::Ready;
use super::state::Rank;
use crate::executor::JobQueue;
use crate::{Error, Idle, Result};

/// Maximum number of urgent jobs in one pass, after which the caller of
/// [`Drive::pass`](super::drive::Drive::pass) evaluates its end condition.
const JOBS_PER_PASS: usize = 32;

/// Participants and jobs that one thread drives.
pub(crate) struct Scheduler<'a, E> {
    pub(crate) engines: &'a [E],
    /// Application jobs.
    pub(crate) job_queue: Option<&'a JobQueue>,
}

/// State of the normal server, and the round-robin position at normal priority.
#[derive(Debug, Default)]
pub(crate) struct NormalServer {
    /// Time since which jobs above normal priority have occupied the thread without a pause, or
    /// time of the last job of this server.
    busy_since: Option<Instant>,
    /// Index of the next participant to serve; the index after the last participant stands for the
    /// application jobs.
    next: usize,
}

impl NormalServer {
    /// Records that a job above normal priority begins.
    fn note_urgent(&mut self, now: Instant) {
        self.busy_since.get_or_insert(now);
    }

    /// Reports whether a job of the server is due.
    fn is_due(&self, now: Instant) -> bool {
        self.busy_since.is_some_and(|since| now.since(since) >= Priority::NORMAL_SERVER_PERIOD)
    }
}

impl<E: Deref<Target = Engine>> Scheduler<'_, E> {
    /// Ignores errors of a closed or failed participant on an executor, so that its other
    /// participants continue.
    fn ignore_closed<R>(&self, result: Result<R>) -> Result<Option<R>> {
        match result {
            Err(Error::AlreadyDeleted | Error::Transport(_)) if self.job_queue.is_some() => Ok(None),
            result => result.map(Some),
        }
    }

    pub(crate) fn idle(&self) -> Idle {
        let own = self.job_queue.map_or(Idle::Block, JobQueue::idle);
        self.engines.iter().fold(own, |idle, engine| idle.and(engine.idle))
    }

    /// Runs several jobs above normal priority and, if none is left, one of normal or lower
    /// priority. Returns true if more work may be pending.
    pub(crate) fn pass(&self, server: &mut NormalServer, scan: Scan, ready: Ready, now: Instant) -> Result<bool> {
        if let ([engine], None) = (self.engines, self.job_queue)
            && let Some(more) = engine.run_pass(scan, ready, now)?
        {
            server.busy_since = None;
            return Ok(more);
        }
        for done in 0..JOBS_PER_PASS {
            #[cfg(test)]
            super::simulation::between_jobs();
            let now = clock::now();
            if server.is_due(now) {
                self.run_normal(server, Scan::All, Ready::ALL, false)?;
                server.busy_since = Some(clock::now());
                return Ok(true);
            }
            let level = match self.engines {
                [engine] => self.run_next(engine, server, scan, ready, now)?,
                _ if self.run_above(Some(Priority::NORMAL), now)? => Some(Rank::Above),
                _ => {
                    let is_done = self.run_normal(server, scan, ready, true)? || self.run_below(server, scan)?;
                    is_done.then_some(Rank::Normal)
                }
            };
            if level != Some(Rank::Above) {
                server.busy_since = None;
                return Ok(level.is_some() || done > 0);
            }
            server.note_urgent(now);
        }
        Ok(true)
    }

    /// Runs the next job of the only participant or of the application. Enters the participant
    /// once, so that a concurrent call delays the job at most once.
    fn run_next(
        &self,
        engine: &E,
        server: &mut NormalServer,
        scan: Scan,
        ready: Ready,
        now: Instant,
    ) -> Result<Option<Rank>> {
        let job = self.job_queue.and_then(|job_queue| Some((job_queue, job_queue.first_priority(now)?)));
        let Some((job_queue, priority)) = job else {
            return Ok(self.ignore_closed(engine.run_next(None, scan, ready))?.flatten());
        };
        // At normal priority, participant and application alternate.
        let is_engine_first = priority == Priority::NORMAL && server.next == 0;
        let than = if is_engine_first { priority.below() } else { Some(priority) };
        server.next = usize::from(is_engine_first);
        if let Some(level) = self.ignore_closed(engine.run_next(than, scan, ready))?.flatten() {
            return Ok(Some(level));
        }
        job_queue.run_first();
        Ok(Some(if priority > Priority::NORMAL { Rank::Above } else { Rank::Normal }))
    }

    /// Runs the highest-priority job above `than`. Returns true if there was one.
    fn run_above(&self, than: Option<Priority>, now: Instant) -> Result<bool> {
        let job = self
            .job_queue
            .and_then(|job_queue| job_queue.first_priority(now))
            .filter(|priority| Some(*priority) > than);
        let floor = job.max(than);
        for priority in self.priorities()?.above(floor) {
            for engine in self.engines {
                if self.ignore_closed(engine.run_above(priority.below()))? == Some(true) {
                    return Ok(true);
                }
            }
        }
        if let Some(job_queue) = self.job_queue.filter(|_| job.is_some()) {
            job_queue.run_first();
        }
        Ok(job.is_some())
    }

    /// Returns the priorities that a job of any participant may have.
    fn priorities(&self) -> Result<PrioritySet> {
        let mut priorities = PrioritySet::default();
        for engine in self.engines {
            priorities.add(self.ignore_closed(engine.priorities())?.unwrap_or_default());
        }
        Ok(priorities)
    }

    /// Runs one job of normal priority, round-robin over the participants and, if `calls` is true,
    /// the application. Returns true if there was one.
    fn run_normal(&self, server: &mut NormalServer, scan: Scan, ready: Ready, calls: bool) -> Result<bool> {
        let count = self.engines.len() + 1;
        for offset in 0..count {
            let index = (server.next + offset) % count;
            let is_done = match self.engines.get(index) {
                Some(engine) => self.ignore_closed(engine.run_normal(scan, ready, calls))? == Some(true),
                None => calls && self.run_normal_of_job_queue(),
            };
            if is_done {
                server.next = (index + 1) % count;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn run_normal_of_job_queue(&self) -> bool {
        let is_normal = |job_queue: &&JobQueue| job_queue.first_priority(clock::now()) == Some(Priority::NORMAL);
        let job_queue = self.job_queue.filter(is_normal);
        job_queue.inspect(|job_queue| job_queue.run_first()).is_some()
    }

    /// Runs the highest-priority job of any level, after polling the kernel for normal datagrams.
    /// Returns true if there was one.
    #[inline]
    fn run_below(&self, server: &mut NormalServer, scan: Scan) -> Result<bool> {
        let has_job = self.job_queue.is_some_and(|job_queue| job_queue.first_priority(clock::now()).is_some());
        if !has_job && !self.has_waiting()? {
            return Ok(false);
        }
        if scan != Scan::All && self.run_normal(server, Scan::All, Ready::ALL, true)? {
            return Ok(true);
        }
        self.run_above(None, clock::now())
    }

    /// Reports whether a participant has datagrams to send or a listener to call.
    fn has_waiting(&self) -> Result<bool> {
        for engine in self.engines {
            if self.ignore_closed(engine.has_waiting())? == Some(true) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
