//! Main loop of an executor's thread: runs jobs in the order of the [scheduler](super::scheduler),
//! and sleeps when no job is ready.

use std::ops::Deref;

use takt_core::Instant;
use takt_transport::Scan;

use super::clock;
use super::engine::{ACTIVE_SLEEP_MAX, Engine};
use super::poll::{PollSet, Ready, Waker};
use super::scheduler::{NormalServer, Scheduler};
use crate::executor::JobQueue;
use crate::{Result, Runtime};

/// Spin iterations between two deadline checks.
const PASSES_PER_DEADLINE_CHECK: u32 = 4;

/// Maximum number of consecutive passes that make progress from buffered datagrams only. The next
/// pass polls the kernel.
const TAKEN_IN_ROW_MAX: u32 = 8;

/// State that a driving thread keeps between calls of [`drive`].
#[derive(Debug, Default)]
pub(crate) struct Driving {
    set: PollSet,
    server: NormalServer,
}

/// Drives until `done` returns true or the deadline passes (then returns `false`). `done` is
/// evaluated after each pass; its argument reports whether the pass made progress. `waker` ends a
/// sleep early; the caller resets it.
///
/// Without progress the thread sleeps on the descriptors of all participants, unless one of them
/// spins. Before each sleep, datagrams that were already taken from the kernel are handled. The
/// sockets are polled only if the last sleep found them busy, since the sleep polls them as well.
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
    // Descriptors that may be readable.
    let mut ready = Ready::ALL;
    let (mut passes, mut taken_in_row) = (0_u32, 0_u32);
    // Progress since the clock was last read.
    let mut progress = false;
    loop {
        let happened = scheduler.pass(server, scan, ready, now)?;
        if done(happened) {
            return Ok(true);
        }
        progress |= happened;
        ready = Ready::ALL;
        let spins = scan == Scan::Hot;
        let reads_clock = !spins || passes.is_multiple_of(PASSES_PER_DEADLINE_CHECK);
        passes = passes.wrapping_add(1);
        if !reads_clock {
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
            // The deadline leaves no time to sleep, but pending datagrams must be received.
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

/// Sleeps until a participant or job is ready, the waker is signaled, or the deadline passes.
/// Returns the current time.
fn sleep<E: Deref<Target = Engine>>(
    scheduler: &Scheduler<'_, E>,
    waker: &Waker,
    set: &mut PollSet,
    now: Instant,
    deadline: Option<Instant>,
) -> Result<Instant> {
    set.clear();
    let mut until = [deadline, scheduler.job_queue.and_then(JobQueue::due)].into_iter().flatten().min();
    for engine in scheduler.engines {
        let sleep_limit = (engine.runtime == Runtime::Shared).then(|| now.after(ACTIVE_SLEEP_MAX));
        let due = engine.enter()?.prepare_sleep(set, now, sleep_limit)?;
        until = [until, due].into_iter().flatten().min();
    }
    #[cfg(test)]
    if let Some(woken_at) = super::simulation::sleep(until) {
        return Ok(woken_at);
    }
    waker.sleep(set, now, until)?;
    let woken_at = clock::now();
    set.record_sleep(woken_at.since(now));
    Ok(woken_at)
}
