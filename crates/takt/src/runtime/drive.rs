//! The loop of an executor's thread: one pass after the other over participants and jobs of the application, and sleep when there
//! is nothing to do.
//!
//! Invariant: a job is never interrupted by another one of the same thread, and none begins while a more urgent one is known to wait.

use std::ops::Deref;

use takt_core::{Instant, Priority};
use takt_transport::Scan;

use super::clock;
use super::engine::{Engine, LINGER, Served};
use super::poll::{PollSet, Ready, Waker};
use crate::executor::Agenda;
use crate::{Error, Idle, Result, Runtime};

/// Spinning turns between two looks at the clock for the caller's deadline.
const TURNS_PER_DEADLINE_CHECK: u32 = 4;

/// Passes in a row with something to do that do not ask the kernel, but look at what was taken from it: then one asks.
const TAKEN_IN_ROW_MAX: u32 = 8;

/// What shares the thread with a participant.
pub(crate) trait Rivals {
    /// Whether there is anything at all.
    fn exist(&self) -> bool;

    /// Whether something of them is more urgent than `than`.
    fn are_more_urgent(&mut self, than: Priority) -> Result<bool>;
}

/// Nothing else is on the thread.
pub(crate) struct Alone;

impl Rivals for Alone {
    #[inline]
    fn exist(&self) -> bool {
        false
    }

    #[inline]
    fn are_more_urgent(&mut self, _: Priority) -> Result<bool> {
        Ok(false)
    }
}

/// What one thread drives.
pub(crate) struct Crew<'a, E> {
    pub(crate) engines: &'a [E],
    /// The application's jobs.
    pub(crate) agenda: Option<&'a Agenda>,
}

/// The crew, but one participant.
struct Others<'a, E> {
    crew: &'a Crew<'a, E>,
    but: usize,
}

impl<E: Deref<Target = Engine>> Rivals for Others<'_, E> {
    fn exist(&self) -> bool {
        true
    }

    fn are_more_urgent(&mut self, than: Priority) -> Result<bool> {
        if self.crew.agenda.is_some_and(|agenda| agenda.first_priority(clock::now()) > Some(than)) {
            return Ok(true);
        }
        let others = self.crew.engines.iter().enumerate().filter(|(place, _)| *place != self.but);
        for (_, engine) in others {
            if self.crew.lenient(engine.is_wanted_above(than))? == Some(true) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl<E: Deref<Target = Engine>> Crew<'_, E> {
    /// A participant of an executor that is closed, or fails, keeps nobody else from going on.
    fn lenient<R>(&self, result: Result<R>) -> Result<Option<R>> {
        match result {
            Err(Error::AlreadyDeleted | Error::Transport(_)) if self.agenda.is_some() => Ok(None),
            result => result.map(Some),
        }
    }

    fn idle(&self) -> Idle {
        let own = self.agenda.map_or(Idle::Block, Agenda::idle);
        self.engines.iter().fold(own, |idle, engine| idle.and(engine.idle))
    }

    /// One pass: what each participant has to do, and one job of the application. Says whether there may be more to do at once.
    fn pass(&self, scan: Scan, ready: Ready, now: Instant) -> Result<bool> {
        let first = self.agenda.and_then(|agenda| Some((agenda, agenda.first_priority(clock::now())?)));
        if let Some((agenda, priority)) = first
            && priority > Priority::NORMAL
        {
            match self.serve(priority)? {
                Served::All => {
                    agenda.run_first();
                    return Ok(true);
                }
                Served::Some => return Ok(true),
                Served::RestIsOwed => {}
            }
        }
        let mut happened = false;
        for (place, engine) in self.engines.iter().enumerate() {
            happened |= match (self.engines, self.agenda) {
                ([_], None) => engine.turn(scan, ready, now, &mut Alone)?,
                _ => {
                    let mut others = Others { crew: self, but: place };
                    self.lenient(engine.turn(scan, ready, now, &mut others))? == Some(true)
                }
            };
        }
        if let Some((agenda, priority)) = first {
            happened = true;
            let mut others = Others { crew: self, but: usize::MAX };
            if priority >= Priority::NORMAL || !others.are_more_urgent(priority)? {
                agenda.run_first();
            }
        }
        Ok(happened)
    }

    /// Does what participants have that is more urgent than a job of this priority.
    fn serve(&self, than: Priority) -> Result<Served> {
        let mut served = Served::All;
        for engine in self.engines {
            match self.lenient(engine.serve(than, clock::now()))? {
                Some(Served::RestIsOwed) => return Ok(Served::RestIsOwed),
                Some(Served::Some) => served = Served::Some,
                Some(Served::All) | None => {}
            }
        }
        Ok(served)
    }
}

/// Drives the crew until `done` says so or the deadline has come (then `false`). `done` is asked after each
/// pass, with whether anything happened in it. `waker` ends a sleep early; resetting it is up to the caller.
///
/// Sleeps on all their descriptors when there is nothing to do, unless one of them is to spin, or still is. What was taken
/// from the kernel is looked at before each sleep; the sockets only if they were found busy, since the sleep looks at them too.
pub(crate) fn drive<E: Deref<Target = Engine>>(
    crew: &Crew<'_, E>,
    waker: &Waker,
    set: &mut PollSet,
    mut now: Instant,
    deadline: Option<Instant>,
    mut done: impl FnMut(bool) -> bool,
) -> Result<bool> {
    let idle = crew.idle();
    let first_scan = |set: &PollSet, spins: bool| match (spins, set.is_busy()) {
        (true, _) => Scan::Hot,
        (false, true) => Scan::All,
        (false, false) => Scan::Taken,
    };
    let mut spins_until = idle.spins_until(now);
    let mut scan = first_scan(set, now < spins_until);
    // Which descriptors may be readable.
    let mut ready = Ready::ALL;
    let (mut turns, mut taken_in_row) = (0_u32, 0_u32);
    // Since the last look at the clock.
    let mut progress = false;
    loop {
        let happened = crew.pass(scan, ready, now)?;
        if done(happened) {
            return Ok(true);
        }
        progress |= happened;
        ready = Ready::ALL;
        let spins = scan == Scan::Hot;
        let looks_at_clock = !spins || turns.is_multiple_of(TURNS_PER_DEADLINE_CHECK);
        turns = turns.wrapping_add(1);
        if !looks_at_clock {
            continue;
        }
        if progress || spins {
            now = clock::now();
        }
        if std::mem::take(&mut progress) {
            spins_until = idle.spins_until(now);
            scan = first_scan(set, now < spins_until);
            taken_in_row = if scan == Scan::Taken { taken_in_row + 1 } else { 0 };
            if taken_in_row > TAKEN_IN_ROW_MAX {
                (scan, taken_in_row) = (Scan::All, 0);
            }
            continue;
        }
        if deadline.is_some_and(|deadline| now >= deadline) {
            if scan != Scan::Taken {
                return Ok(false);
            }
            // No time to sleep, but what has arrived is to be seen.
            scan = Scan::All;
            continue;
        }
        taken_in_row = 0;
        if !spins {
            now = sleep(crew, waker, set, now, deadline)?;
            (scan, ready) = (Scan::All, set.ready());
        } else if now >= spins_until {
            scan = first_scan(set, false);
        }
    }
}

/// Sleeps until one of the crew has something to do, the waker is woken, or the deadline has come. Returns the
/// time.
fn sleep<E: Deref<Target = Engine>>(
    crew: &Crew<'_, E>,
    waker: &Waker,
    set: &mut PollSet,
    now: Instant,
    deadline: Option<Instant>,
) -> Result<Instant> {
    set.clear();
    let mut until = [deadline, crew.agenda.and_then(Agenda::due)].into_iter().flatten().min();
    for engine in crew.engines {
        let linger = (engine.runtime == Runtime::Shared).then(|| now.after(LINGER));
        let due = engine.enter()?.prepare_sleep(set, now, linger)?;
        until = [until, due].into_iter().flatten().min();
    }
    waker.sleep(set, now, until)?;
    let woken_at = clock::now();
    set.slept(woken_at.since(now));
    Ok(woken_at)
}
