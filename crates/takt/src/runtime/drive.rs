//! The loop of an executor's thread: one job after the other as the [scheduler](super::scheduler) says, and sleep when there is
//! nothing to do.

use std::ops::Deref;

use takt_core::Instant;
use takt_transport::Scan;

use super::clock;
use super::engine::{Engine, LINGER};
use super::poll::{PollSet, Ready, Waker};
use super::scheduler::{NormalServer, Scheduler};
use crate::executor::Agenda;
use crate::{Result, Runtime};

/// Spinning turns between two looks at the clock for the caller's deadline.
const TURNS_PER_DEADLINE_CHECK: u32 = 4;

/// Passes in a row with something to do that do not ask the kernel, but look at what was taken from it: then one asks.
const TAKEN_IN_ROW_MAX: u32 = 8;

/// What a thread that drives keeps from one call of [`drive`] to the next.
#[derive(Debug, Default)]
pub(crate) struct Driving {
    set: PollSet,
    server: NormalServer,
}

/// Drives until `done` says so or the deadline has come (then `false`). `done` is asked after each
/// pass, with whether anything happened in it. `waker` ends a sleep early; resetting it is up to the caller.
///
/// Sleeps on all their descriptors when there is nothing to do, unless one of them is to spin, or still is. What was taken
/// from the kernel is looked at before each sleep; the sockets only if they were found busy, since the sleep looks at them too.
pub(crate) fn drive<E: Deref<Target = Engine>>(
    scheduler: &Scheduler<'_, E>,
    waker: &Waker,
    driving: &mut Driving,
    mut now: Instant,
    deadline: Option<Instant>,
    mut done: impl FnMut(bool) -> bool,
) -> Result<bool> {
    let Driving { set, server } = driving;
    let idle = scheduler.idle();
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
        let happened = scheduler.pass(server, scan, ready, now)?;
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
            now = sleep(scheduler, waker, set, now, deadline)?;
            (scan, ready) = (Scan::All, set.ready());
        } else if now >= spins_until {
            scan = first_scan(set, false);
        }
    }
}

/// Sleeps until a participant or job has something to do, the waker is woken, or the deadline has come. Returns the
/// time.
fn sleep<E: Deref<Target = Engine>>(
    scheduler: &Scheduler<'_, E>,
    waker: &Waker,
    set: &mut PollSet,
    now: Instant,
    deadline: Option<Instant>,
) -> Result<Instant> {
    set.clear();
    let mut until = [deadline, scheduler.agenda.and_then(Agenda::due)].into_iter().flatten().min();
    for engine in scheduler.engines {
        let linger = (engine.runtime == Runtime::Shared).then(|| now.after(LINGER));
        let due = engine.enter()?.prepare_sleep(set, now, linger)?;
        until = [until, due].into_iter().flatten().min();
    }
    #[cfg(test)]
    if let Some(woken_at) = super::simulation::sleep(until) {
        return Ok(woken_at);
    }
    waker.sleep(set, now, until)?;
    let woken_at = clock::now();
    set.slept(woken_at.since(now));
    Ok(woken_at)
}
