//! The scheduling rule of an executor's thread: fixed priorities without preemption, and a server for normal work.
//!
//! 1. A job is never interrupted by another one of the same thread. Between any two jobs the scheduler looks at all that waits: datagrams
//!    at the ports of urgent flows, datagrams to be sent, calls of listeners, jobs of the application, of all participants.
//! 2. The job with the highest priority is next. Among equals no order is promised, but one flow's own samples keep theirs.
//! 3. The *normal server*: where jobs above [`Priority::NORMAL`] have kept the thread for [`Priority::REST_PERIOD`] without a pause, one
//!    job that receives, sends or runs timers at normal priority goes first, and another one after as long again.
//!
//! The timing analysis (`takt-calculus`) computes with exactly that; `docs/executor.md` states it for users.

use std::ops::Deref;

use takt_core::{Instant, Priority};
use takt_exec::PrioritySet;
use takt_transport::Scan;

use super::clock;
use super::engine::Engine;
use super::poll::Ready;
use super::state::Rank;
use crate::executor::Agenda;
use crate::{Error, Idle, Result};

/// Urgent jobs of one pass at most, after which the caller of [`drive`](super::drive::drive) is asked whether it is done.
const JOBS_PER_PASS: usize = 32;

/// What one thread drives.
pub(crate) struct Scheduler<'a, E> {
    pub(crate) engines: &'a [E],
    /// The application's jobs.
    pub(crate) agenda: Option<&'a Agenda>,
}

/// When a job of normal priority goes before those above; and whose turn it is at normal priority.
#[derive(Debug, Default)]
pub(crate) struct NormalServer {
    /// Since when jobs above the normal priority have kept the thread without a pause, or since the last job of this server.
    held_up_since: Option<Instant>,
    /// The participant whose turn it is, or behind the last one the application's jobs.
    next: usize,
}

impl NormalServer {
    /// A job above the normal priority begins.
    fn hold_up(&mut self, now: Instant) {
        self.held_up_since.get_or_insert(now);
    }

    /// Whether one of its jobs is next.
    fn is_due(&self, now: Instant) -> bool {
        self.held_up_since.is_some_and(|since| now.since(since) >= Priority::REST_PERIOD)
    }
}

impl<E: Deref<Target = Engine>> Scheduler<'_, E> {
    /// Another participant's end or failure does not keep the others of an executor from going on.
    fn lenient<R>(&self, result: Result<R>) -> Result<Option<R>> {
        match result {
            Err(Error::AlreadyDeleted | Error::Transport(_)) if self.agenda.is_some() => Ok(None),
            result => result.map(Some),
        }
    }

    pub(crate) fn idle(&self) -> Idle {
        let own = self.agenda.map_or(Idle::Block, Agenda::idle);
        self.engines.iter().fold(own, |idle, engine| idle.and(engine.idle))
    }

    /// Some jobs above the normal priority, and if none is left one of normal or lower priority. Says whether there may be more to do at
    /// once.
    pub(crate) fn pass(&self, server: &mut NormalServer, scan: Scan, ready: Ready, now: Instant) -> Result<bool> {
        if let ([engine], None) = (self.engines, self.agenda)
            && let Some(more) = engine.turn(scan, ready, now)?
        {
            server.held_up_since = None;
            return Ok(more);
        }
        for done in 0..JOBS_PER_PASS {
            #[cfg(test)]
            super::simulation::between_jobs();
            let now = clock::now();
            if server.is_due(now) {
                self.run_normal(server, Scan::All, Ready::ALL, false)?;
                server.held_up_since = Some(clock::now());
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
                server.held_up_since = None;
                return Ok(level.is_some() || done > 0);
            }
            server.hold_up(now);
        }
        Ok(true)
    }

    /// Does the next job of the only participant or of the application. Enters the participant once, so that a thread that calls into it
    /// keeps the job waiting once.
    fn run_next(
        &self,
        engine: &E,
        server: &mut NormalServer,
        scan: Scan,
        ready: Ready,
        now: Instant,
    ) -> Result<Option<Rank>> {
        let job = self.agenda.and_then(|agenda| Some((agenda, agenda.first_priority(now)?)));
        let Some((agenda, priority)) = job else {
            return Ok(self.lenient(engine.run_next(None, scan, ready))?.flatten());
        };
        // At normal priority both take turns.
        let is_engines_turn = priority == Priority::NORMAL && server.next == 0;
        let than = if is_engines_turn { priority.below() } else { Some(priority) };
        server.next = usize::from(is_engines_turn);
        if let Some(level) = self.lenient(engine.run_next(than, scan, ready))?.flatten() {
            return Ok(Some(level));
        }
        agenda.run_first();
        Ok(Some(if priority > Priority::NORMAL { Rank::Above } else { Rank::Normal }))
    }

    /// Does the job with the highest priority above `than`. Says whether there was one.
    fn run_above(&self, than: Option<Priority>, now: Instant) -> Result<bool> {
        let job = self.agenda.and_then(|agenda| agenda.first_priority(now)).filter(|priority| Some(*priority) > than);
        let floor = job.max(than);
        for priority in self.priorities()?.above(floor) {
            for engine in self.engines {
                if self.lenient(engine.run_above(priority.below()))? == Some(true) {
                    return Ok(true);
                }
            }
        }
        if let Some(agenda) = self.agenda.filter(|_| job.is_some()) {
            agenda.run_first();
        }
        Ok(job.is_some())
    }

    /// The priorities that a job of some participant may have.
    fn priorities(&self) -> Result<PrioritySet> {
        let mut priorities = PrioritySet::default();
        for engine in self.engines {
            priorities.add(self.lenient(engine.priorities())?.unwrap_or_default());
        }
        Ok(priorities)
    }

    /// Does one job of normal priority: participants and, if `calls`, the application take turns. Says whether there was one.
    fn run_normal(&self, server: &mut NormalServer, scan: Scan, ready: Ready, calls: bool) -> Result<bool> {
        let seats = self.engines.len() + 1;
        for turn in 0..seats {
            let seat = (server.next + turn) % seats;
            let is_done = match self.engines.get(seat) {
                Some(engine) => self.lenient(engine.run_normal(scan, ready, calls))? == Some(true),
                None => calls && self.run_normal_of_agenda(),
            };
            if is_done {
                server.next = (seat + 1) % seats;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn run_normal_of_agenda(&self) -> bool {
        let is_normal = |agenda: &&Agenda| agenda.first_priority(clock::now()) == Some(Priority::NORMAL);
        let agenda = self.agenda.filter(is_normal);
        agenda.inspect(|agenda| agenda.run_first()).is_some()
    }

    /// Does the job with the highest priority of all, once the kernel was asked for normal datagrams too. Says whether there was one.
    #[inline]
    fn run_below(&self, server: &mut NormalServer, scan: Scan) -> Result<bool> {
        let has_job = self.agenda.is_some_and(|agenda| agenda.first_priority(clock::now()).is_some());
        if !has_job && !self.has_waiting()? {
            return Ok(false);
        }
        if scan != Scan::All && self.run_normal(server, Scan::All, Ready::ALL, true)? {
            return Ok(true);
        }
        self.run_above(None, clock::now())
    }

    /// Whether a participant has something to send or to call.
    fn has_waiting(&self) -> Result<bool> {
        for engine in self.engines {
            if self.lenient(engine.has_waiting())? == Some(true) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
