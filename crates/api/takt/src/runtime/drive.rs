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

/// State that a driving thread keeps between its [loops](Drive).
#[derive(Debug, Default)]
pub(crate) struct Driving {
    set: PollSet,
    server: NormalServer,
}

/// Loop of a driving thread. Each [`pass`](Self::pass) runs jobs; it first sleeps if the previous
/// pass has found none.
///
/// Without progress the thread sleeps on the descriptors of all participants, unless one of them
/// spins. Before each sleep, datagrams that were already taken from the kernel are handled. The
/// sockets are polled only if the last sleep found them busy, since the sleep polls them as well.
pub(crate) struct Drive<'a, E> {
    scheduler: Scheduler<'a, E>,
    /// Ends a sleep early; the caller resets it.
    waker: &'a Waker,
    driving: &'a mut Driving,
    now: Instant,
    deadline: Option<Instant>,
    spins_until: Instant,
    scan: Scan,
    /// Descriptors that may be readable.
    ready: Ready,
    passes: u32,
    taken_in_row: u32,
    /// Progress since the clock was last read.
    progress: bool,
}

impl<'a, E: Deref<Target = Engine>> Drive<'a, E> {
    pub(crate) fn new(
        scheduler: Scheduler<'a, E>,
        waker: &'a Waker,
        driving: &'a mut Driving,
        now: Instant,
        deadline: Option<Instant>,
    ) -> Self {
        let spins_until = scheduler.idle().spins_until(now);
        let scan = first_scan(&driving.set, now < spins_until);
        let (ready, passes, taken_in_row, progress) = (Ready::ALL, 0, 0, false);
        Self { scheduler, waker, driving, now, deadline, spins_until, scan, ready, passes, taken_in_row, progress }
    }

    /// Runs one pass. Returns whether it made progress; `None` once the deadline has passed.
    #[inline(always)]
    pub(crate) fn pass(&mut self) -> Result<Option<bool>> {
        if self.passes > 0 && !self.prepare()? {
            return Ok(None);
        }
        self.passes = self.passes.wrapping_add(1);
        let has_progress = self.scheduler.pass(&mut self.driving.server, self.scan, self.ready, self.now)?;
        self.progress |= has_progress;
        Ok(Some(has_progress))
    }

    /// Determines how the next pass receives, and sleeps if there was no progress. Returns false
    /// once the deadline has passed.
    fn prepare(&mut self) -> Result<bool> {
        self.ready = Ready::ALL;
        let spins = self.scan == Scan::Hot;
        if spins && self.passes % PASSES_PER_DEADLINE_CHECK != 1 {
            return Ok(true);
        }
        if self.progress || spins {
            self.now = clock::now();
        }
        if std::mem::take(&mut self.progress) {
            self.spins_until = self.scheduler.idle().spins_until(self.now);
            self.scan = first_scan(&self.driving.set, self.now < self.spins_until);
            self.taken_in_row = if self.scan == Scan::Taken { self.taken_in_row + 1 } else { 0 };
            if self.taken_in_row > TAKEN_IN_ROW_MAX {
                (self.scan, self.taken_in_row) = (Scan::All, 0);
            }
            return Ok(true);
        }
        if self.deadline.is_some_and(|deadline| self.now >= deadline) {
            // The deadline leaves no time to sleep, but pending datagrams must be received.
            let is_over = self.scan != Scan::Taken;
            self.scan = Scan::All;
            return Ok(!is_over);
        }
        self.taken_in_row = 0;
        if !spins {
            self.sleep()?;
            (self.scan, self.ready) = (Scan::All, self.driving.set.ready());
        } else if self.now >= self.spins_until {
            self.scan = first_scan(&self.driving.set, false);
        }
        Ok(true)
    }

    /// Sleeps until a participant or job is ready, the waker is signaled, or the deadline passes.
    fn sleep(&mut self) -> Result<()> {
        let Self { scheduler, waker, driving: Driving { set, .. }, now, deadline, .. } = self;
        set.clear();
        let mut until = [*deadline, scheduler.job_queue.and_then(JobQueue::due)].into_iter().flatten().min();
        for engine in scheduler.engines {
            let sleep_limit = (engine.runtime == Runtime::Shared).then(|| now.after(ACTIVE_SLEEP_MAX));
            let due = engine.enter()?.prepare_sleep(set, *now, sleep_limit)?;
            until = [until, due].into_iter().flatten().min();
        }
        #[cfg(test)]
        if let Some(woken_at) = super::simulation::sleep(until) {
            *now = woken_at;
            return Ok(());
        }
        waker.sleep(set, *now, until)?;
        let woken_at = clock::now();
        set.record_sleep(woken_at.since(*now));
        *now = woken_at;
        Ok(())
    }
}

/// Returns how the first pass after progress receives.
fn first_scan(set: &PollSet, spins: bool) -> Scan {
    match (spins, set.is_busy()) {
        (true, _) => Scan::Hot,
        (false, true) => Scan::All,
        (false, false) => Scan::Taken,
    }
}
