//! Jobs of a participant: selection of the next one and execution.

use takt_core::{Instant, Priority, ReaderHandle};
use takt_schedule::{JobKind, PrioritySet};
use takt_transport::Scan;

use super::State;
use crate::runtime::clock;
use crate::runtime::driver::Driver;
use crate::runtime::poll::{PollSet, Ready};
use crate::{Error, Result};

/// Receive attempts without a datagram between two timer checks while spinning. One attempt is a
/// system call of some 300 ns, so timers are late by at most some 5 us.
pub(super) const ATTEMPTS_PER_TIMER_CHECK: u32 = 16;

/// Receive attempts without a datagram in one pass while spinning under
/// [`Runtime::Shared`](crate::Runtime::Shared), during which other threads wait for the lock.
pub(super) const SHARED_ATTEMPTS_PER_PASS: u32 = 2;

/// Maximum number of datagrams received in one pass, which bounds how long it holds the lock.
const DATAGRAMS_PER_PASS: usize = 32;

/// Result of looking for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// No job is ready.
    Idle,
    /// A job was executed.
    Done,
    /// The next job is a listener call, which the caller executes without holding the lock.
    Call,
}

/// Rank of a job relative to the normal priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    Above,
    Normal,
    Below,
}

/// Kinds of jobs of a participant at normal priority, executed in rotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NormalJob {
    #[default]
    Call,
    Transmit,
    Receive,
    Timers,
}

impl NormalJob {
    const COUNT: usize = 4;

    fn next(self) -> Self {
        match self {
            Self::Call => Self::Transmit,
            Self::Transmit => Self::Receive,
            Self::Receive => Self::Timers,
            Self::Timers => Self::Call,
        }
    }
}

impl State {
    /// Reports whether urgent datagrams are distinguished before they are received, by their port.
    pub(crate) fn distinguishes_urgent(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.receives_above(None))
    }

    /// Returns the priorities above normal that a job may have, and those of pending jobs.
    pub(crate) fn priorities(&self) -> PrioritySet {
        let Some(driver) = &self.driver else { return PrioritySet::default() };
        let mut priorities = driver.urgent();
        let waiting = [driver.core.transmit_priority(), self.due_call()];
        waiting.into_iter().flatten().for_each(|priority| priorities.insert(priority));
        priorities
    }

    /// Reports whether datagrams are due or a listener must be called.
    pub(crate) fn has_waiting(&self) -> bool {
        self.has_calls() || self.driver.as_ref().is_some_and(|driver| driver.core.has_transmit())
    }

    /// Runs the highest-priority job above `than`, among pending datagrams to send, listener calls,
    /// and datagrams at ports of urgent flows. Normal datagrams and timers are left to
    /// [`run_normal`](Self::run_normal).
    pub(crate) fn run_above(&mut self, than: Option<Priority>) -> Result<Step> {
        self.sleeps_until = Instant(0);
        let call = self.due_call();
        let driver = self.driver()?;
        let transmit = driver.core.transmit_priority();
        let floor = than.max(call).max(transmit);
        if driver.receives_above(floor) {
            self.job_recorder.begin(clock::now());
            if self.driver()?.receive_above(floor) {
                self.active = true;
                self.end_receive()?;
                return Ok(Step::Done);
            }
        }
        if floor <= than {
            return Ok(Step::Idle);
        }
        if call == floor {
            return Ok(Step::Call);
        }
        // Transports that accept nothing must not delay listener calls.
        match self.transmit_job(clock::now())? {
            Step::Idle if call > than => Ok(Step::Call),
            step => Ok(step),
        }
    }

    /// Runs the next job of the participant if its priority is above `than`.
    pub(crate) fn run_next(&mut self, than: Option<Priority>, scan: Scan, ready: Ready) -> Result<(Step, Rank)> {
        let step = self.run_above(than.max(Some(Priority::NORMAL)))?;
        if step != Step::Idle || than >= Some(Priority::NORMAL) {
            return Ok((step, Rank::Above));
        }
        let mut step = self.run_normal(scan, ready, true)?;
        // Poll the kernel before running work of lower priority.
        if step == Step::Idle && scan != Scan::All && (self.has_waiting() || than.is_some()) {
            step = self.run_normal(Scan::All, Ready::ALL, true)?;
        }
        if step != Step::Idle {
            return Ok((step, Rank::Normal));
        }
        Ok((self.run_above(than)?, Rank::Below))
    }

    /// Runs one job of normal priority: receives, sends, runs timers or, if `calls` is true, calls
    /// a listener, in rotation. Without `calls` it is a job of the normal server, which does not
    /// receive urgent datagrams.
    pub(crate) fn run_normal(&mut self, mut scan: Scan, mut ready: Ready, calls: bool) -> Result<Step> {
        self.sleeps_until = Instant(0);
        let poll_requested = self.poll_requested;
        if poll_requested {
            (scan, ready) = (Scan::All, Ready::ALL);
        }
        let now = self.driver()?.advance(clock::now());
        self.job_recorder.begin(now);
        for _ in 0..NormalJob::COUNT {
            let job = self.next_normal;
            self.next_normal = job.next();
            let step = match job {
                NormalJob::Call if calls && self.due_call() == Some(Priority::NORMAL) => Step::Call,
                NormalJob::Transmit if self.driver()?.core.transmit_priority() == Some(Priority::NORMAL) => {
                    self.transmit_job(now)?
                }
                NormalJob::Receive => self.receive_job(scan, ready, calls)?,
                NormalJob::Timers => self.timers_job(now)?,
                NormalJob::Call | NormalJob::Transmit => Step::Idle,
            };
            if step != Step::Idle {
                return Ok(step);
            }
        }
        self.poll_requested &= !poll_requested;
        Ok(Step::Idle)
    }

    /// Runs a job that sends as much as one job may. Returns [`Step::Idle`] if the transports
    /// accept nothing.
    fn transmit_job(&mut self, now: Instant) -> Result<Step> {
        self.job_recorder.begin(now);
        let driver = self.driver()?;
        let (priority, before) = (driver.core.transmit_priority().unwrap_or_default(), driver.built());
        driver.transmit_some(now);
        if driver.built() == before {
            return Ok(Step::Idle);
        }
        self.job_recorder.end(JobKind::Transmit, priority);
        Ok(Step::Done)
    }

    /// Runs a job that receives one datagram of normal priority or, if `any` is true, an urgent one
    /// that was found instead.
    fn receive_job(&mut self, scan: Scan, ready: Ready, any: bool) -> Result<Step> {
        let ready = ready.without_first(self.first_descriptor);
        let driver = self.driver()?;
        let has_received = driver.receive_not_urgent(scan, ready) || (any && driver.receive_above(None));
        if !has_received {
            return Ok(Step::Idle);
        }
        if scan == Scan::Hot {
            let now = driver.now();
            self.job_recorder.begin(now);
        }
        self.active = true;
        self.end_receive()?;
        Ok(Step::Done)
    }

    /// Runs a job that handles one batch of timers, if any is due.
    fn timers_job(&mut self, now: Instant) -> Result<Step> {
        let is_due = self.driver()?.is_due(now);
        self.run_timers(now)?;
        self.route_events();
        Ok(if is_due { Step::Done } else { Step::Idle })
    }

    /// Runs one pass over a participant that is alone on its thread and cannot distinguish urgent
    /// datagrams before receiving them. The pass sends what is due, receives datagrams until one
    /// concerns the application, none is left or [`DATAGRAMS_PER_PASS`] is reached, and runs one
    /// batch of timers. Returns true if more work may be pending.
    ///
    /// Datagrams that the core creates in response leave with the next pass. The application thus
    /// sees the data first, and its response and our acknowledgment can share a system call.
    ///
    /// `now` is a recent time. While spinning it is not used; the clock is read where the time
    /// matters. `ready` contains the readable descriptors of the last sleep; only those are polled.
    pub(crate) fn run_pass(&mut self, mut scan: Scan, mut ready: Ready, now: Instant) -> Result<bool> {
        self.sleeps_until = Instant(0);
        if std::mem::take(&mut self.poll_requested) {
            (scan, ready) = (Scan::All, Ready::ALL);
        }
        let driver = self.driver()?;
        if scan != Scan::Hot {
            driver.advance(now);
        }
        self.job_recorder.begin(now);
        if self.driver()?.core.has_transmit() {
            self.transmit_all(if scan == Scan::Hot { clock::now() } else { now })?;
        }
        let received = self.receive(scan, ready.without_first(self.first_descriptor))?;
        self.active |= received;
        let mut more = received;
        // Received datagrams delay timers, but not indefinitely.
        let attempts_max = if received { 4 * ATTEMPTS_PER_TIMER_CHECK } else { ATTEMPTS_PER_TIMER_CHECK };
        if scan != Scan::Hot || self.attempts >= attempts_max {
            self.attempts = 0;
            let now = if scan == Scan::Hot { clock::now() } else { now };
            more |= self.run_timers(now)?;
            if !received && self.driver()?.core.has_transmit() {
                self.transmit_all(now)?;
            }
            self.route_events();
        }
        Ok(more)
    }

    fn run_timers(&mut self, now: Instant) -> Result<bool> {
        let driver = self.driver()?;
        let is_due = driver.is_due(now);
        let more = driver.run_timers(now);
        if is_due {
            self.job_recorder.begin(now);
            self.job_recorder.end(JobKind::Timers, Priority::NORMAL);
        }
        Ok(more)
    }

    /// Sends all pending datagrams as one job.
    fn transmit_all(&mut self, now: Instant) -> Result<()> {
        self.job_recorder.begin(now);
        let driver = self.driver()?;
        let priority = driver.core.transmit_priority().unwrap_or_default();
        driver.transmit(now);
        self.job_recorder.end(JobKind::Transmit, priority);
        Ok(())
    }

    /// Receives datagrams until one concerns the application, an urgent datagram must be sent, or
    /// [`DATAGRAMS_PER_PASS`] is reached. Returns true if any datagram was received.
    pub(super) fn receive(&mut self, scan: Scan, ready: Ready) -> Result<bool> {
        if !self.receive_first(scan, ready)? {
            return Ok(false);
        }
        for _ in 1..DATAGRAMS_PER_PASS {
            let is_relevant = self.end_receive()?;
            let driver = self.driver()?;
            let is_next_urgent = driver.core.transmit_priority() > Some(Priority::NORMAL);
            if is_relevant || is_next_urgent || !driver.receive(scan, ready) {
                return Ok(true);
            }
        }
        self.end_receive()?;
        Ok(true)
    }

    /// Ends a receive job. Returns true if the received datagrams concern the application.
    #[inline]
    fn end_receive(&mut self) -> Result<bool> {
        let is_relevant = self.route_events();
        let priority = self.driver()?.last_priority();
        self.job_recorder.end(JobKind::Receive, priority);
        Ok(is_relevant)
    }

    /// Tries to receive a datagram; while spinning, as often as one pass permits.
    fn receive_first(&mut self, scan: Scan, ready: Ready) -> Result<bool> {
        let Some(driver) = &mut self.driver else { return Err(Error::AlreadyDeleted) };
        let attempts = if scan == Scan::Hot { self.attempts_per_pass } else { 1 };
        for _ in 0..attempts {
            self.attempts += 1;
            if driver.receive(scan, ready) {
                if scan == Scan::Hot {
                    self.job_recorder.begin(driver.now());
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Ends a call of the application by sending the resulting datagrams. Returns true if the
    /// receiving thread must wake.
    pub(crate) fn send_pending(&mut self, now: Instant) -> bool {
        let Some(driver) = self.driver.as_mut() else { return true };
        driver.send(now);
        self.active = true;
        self.route_events();
        let Some(driver) = self.driver.as_mut() else { return true };
        // Events may have caused type requests.
        driver.send(now);
        let due = driver.poll_timeout();
        let earlier = due.is_some_and(|due| due < self.sleeps_until);
        earlier || self.must_wake_for_calls()
    }

    /// Reports whether a call of the application has sent as much as one job may, and more is
    /// pending.
    pub(crate) fn has_pending_datagrams(&self) -> bool {
        let driver = self.driver.as_ref();
        driver.is_some_and(|driver| driver.receives_above(None) && driver.core.has_transmit())
    }

    /// Reports whether fragments of large samples wait for the queue of a network interface.
    pub(crate) fn has_blocked_flows(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.core.has_blocked_flows())
    }

    /// Returns the number of datagrams built.
    pub(crate) fn built_datagrams(&self) -> u64 {
        self.driver.as_ref().map_or(0, Driver::built)
    }

    /// Ends a call that read samples; the freed space may have admitted others, and caused
    /// datagrams. Returns true if the receiving thread must wake.
    pub(crate) fn end_read(&mut self, now: Instant, reader: ReaderHandle) -> Result<bool> {
        let driver = self.driver()?;
        let sends_soon = driver.core.has_transmit();
        driver.core.end_read(now, reader)?;
        if !sends_soon && driver.core.has_transmit() {
            driver.transmit(clock::now());
        }
        if !driver.core.has_events() {
            return Ok(false);
        }
        self.active = true;
        self.route_events();
        Ok(self.must_wake_for_calls())
    }

    /// Reports whether the sleeping thread must be woken to call listeners.
    pub(crate) fn must_wake_for_calls(&self) -> bool {
        self.has_calls() && self.sleeps_until != Instant(0)
    }

    /// Adds the descriptors to sleep on and returns the time until which to sleep. `sleep_limit`
    /// bounds the sleep after activity, so that consecutive calls need not each wake the thread for
    /// an earlier timer.
    pub(crate) fn prepare_sleep(
        &mut self,
        set: &mut PollSet,
        now: Instant,
        sleep_limit: Option<Instant>,
    ) -> Result<Option<Instant>> {
        let has_calls = self.has_calls();
        let Some(driver) = &mut self.driver else { return Err(Error::AlreadyDeleted) };
        self.first_descriptor = set.len();
        let mut until = driver.prepare_sleep(set, now);
        set.add_generation(self.leader_list);
        if driver.core.has_transmit() || has_calls || self.poll_requested {
            until = Some(Instant(0));
        } else if self.active {
            until = [until, sleep_limit].into_iter().flatten().min();
        }
        self.active = false;
        self.sleeps_until = until.unwrap_or(Instant(u64::MAX));
        Ok(until)
    }
}
