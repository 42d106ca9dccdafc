//! The jobs of a participant: which one is next, and what each does.

use takt_core::{Instant, Priority};
use takt_exec::{JobKind, PrioritySet};
use takt_transport::Scan;

use super::State;
use crate::runtime::clock;
use crate::runtime::driver::Driver;
use crate::runtime::poll::{PollSet, Ready};
use crate::{Error, Result};

/// Futile attempts to receive between two looks at the timers while spinning. One is a system call of some 300 ns, so
/// timers are some 5 us late at most.
pub(super) const ATTEMPTS_PER_TIMER_CHECK: u32 = 16;

/// Futile attempts of one turn while spinning under [`Runtime::Shared`], which keeps others waiting for the lock.
pub(super) const SHARED_ATTEMPTS_PER_TURN: u32 = 2;

/// Datagrams that one turn takes at most, which bounds how long it keeps the lock.
const DATAGRAMS_PER_TURN: usize = 32;

/// What came of a look for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is none.
    Idle,
    /// One was done.
    Done,
    /// It is the call of a listener, which the caller does with the lock released.
    Call,
}

/// Where a job stands to the normal priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    Above,
    Normal,
    Below,
}

/// What a participant does at normal priority, each in its turn.
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
    /// Whether urgent datagrams are told from others before they are received.
    pub(crate) fn hears_urgent(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.hears_above(None))
    }

    /// The priorities that a job may have, above the normal one or of what waits already.
    pub(crate) fn priorities(&self) -> PrioritySet {
        let Some(driver) = &self.driver else { return PrioritySet::default() };
        let mut priorities = driver.urgent();
        let waiting = [driver.core.transmit_priority(), self.due_call()];
        waiting.into_iter().flatten().for_each(|priority| priorities.insert(priority));
        priorities
    }

    /// Whether there is something to send, or a listener to call.
    pub(crate) fn has_waiting(&self) -> bool {
        self.has_calls() || self.driver.as_ref().is_some_and(|driver| driver.core.has_transmit())
    }

    /// Does the job with the highest priority above `than`, of what waits to be sent, the calls of listeners, and what arrives at
    /// ports of urgent flows. Normal datagrams and timers are up to [`run_normal`](Self::run_normal).
    pub(crate) fn run_above(&mut self, than: Option<Priority>) -> Result<Step> {
        self.sleeps_until = Instant(0);
        let call = self.due_call();
        let driver = self.driver()?;
        let transmit = driver.core.transmit_priority();
        let floor = than.max(call).max(transmit);
        if driver.hears_above(floor) {
            self.ledger.begin(clock::now());
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
        // Transports that take nothing keep no listener from being called.
        match self.transmit_job(clock::now())? {
            Step::Idle if call > than => Ok(Step::Call),
            step => Ok(step),
        }
    }

    /// Does the next job of the participant, if it has a priority above `than`.
    pub(crate) fn run_next(&mut self, than: Option<Priority>, scan: Scan, ready: Ready) -> Result<(Step, Rank)> {
        let step = self.run_above(than.max(Some(Priority::NORMAL)))?;
        if step != Step::Idle || than >= Some(Priority::NORMAL) {
            return Ok((step, Rank::Above));
        }
        let mut step = self.run_normal(scan, ready, true)?;
        // What has a lower priority is done when the kernel was asked too.
        if step == Step::Idle && scan != Scan::All && (self.has_waiting() || than.is_some()) {
            step = self.run_normal(Scan::All, Ready::ALL, true)?;
        }
        if step != Step::Idle {
            return Ok((step, Rank::Normal));
        }
        Ok((self.run_above(than)?, Rank::Below))
    }

    /// Does one job of normal priority: calls a listener if `calls`, sends, receives or runs timers, each in its turn. Without `calls` it
    /// is a job of the normal server, which leaves urgent datagrams alone.
    pub(crate) fn run_normal(&mut self, mut scan: Scan, mut ready: Ready, calls: bool) -> Result<Step> {
        self.sleeps_until = Instant(0);
        let has_left_behind = self.has_left_behind;
        if has_left_behind {
            (scan, ready) = (Scan::All, Ready::ALL);
        }
        let now = self.driver()?.advance(clock::now());
        self.ledger.begin(now);
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
        self.has_left_behind &= !has_left_behind;
        Ok(Step::Idle)
    }

    /// A job that sends as much as one may. [`Step::Idle`] if the transports take nothing.
    fn transmit_job(&mut self, now: Instant) -> Result<Step> {
        self.ledger.begin(now);
        let driver = self.driver()?;
        let (priority, before) = (driver.core.transmit_priority().unwrap_or_default(), driver.built());
        driver.transmit_some(now);
        if driver.built() == before {
            return Ok(Step::Idle);
        }
        self.ledger.end(JobKind::Transmit, priority);
        Ok(Step::Done)
    }

    /// A job that receives one datagram of normal priority. Without one, and if `any`, an urgent one that was found on the way.
    fn receive_job(&mut self, scan: Scan, ready: Ready, any: bool) -> Result<Step> {
        let ready = ready.behind(self.first_descriptor);
        let driver = self.driver()?;
        let has_received = driver.receive_common(scan, ready) || (any && driver.receive_above(None));
        if !has_received {
            return Ok(Step::Idle);
        }
        if scan == Scan::Hot {
            let now = driver.now();
            self.ledger.begin(now);
        }
        self.active = true;
        self.end_receive()?;
        Ok(Step::Done)
    }

    /// A job that runs one batch of timers, if one is due.
    fn timers_job(&mut self, now: Instant) -> Result<Step> {
        let is_due = self.driver()?.is_due(now);
        self.run_timers(now)?;
        self.route_events();
        Ok(if is_due { Step::Done } else { Step::Idle })
    }

    /// One pass over a participant that has its thread to itself and cannot tell urgent datagrams before it has received them: sends
    /// what is due, takes datagrams until one means something to the application (or there are none, or it was
    /// [`DATAGRAMS_PER_TURN`]), runs one batch of timers. Says whether there may be more to do at once.
    ///
    /// What the datagrams made the core want to send leaves with the next pass, so that the application sees the data
    /// first, and its answer and our acknowledgement can share a system call.
    ///
    /// `now` is a moment ago; while spinning nobody looks at it, but at the clock where the time matters. `ready` says which of
    /// the descriptors that were slept on are readable; only those are asked.
    pub(crate) fn turn(&mut self, mut scan: Scan, mut ready: Ready, now: Instant) -> Result<bool> {
        self.sleeps_until = Instant(0);
        if std::mem::take(&mut self.has_left_behind) {
            (scan, ready) = (Scan::All, Ready::ALL);
        }
        let driver = self.driver()?;
        if scan != Scan::Hot {
            driver.advance(now);
        }
        self.ledger.begin(now);
        if self.driver()?.core.has_transmit() {
            self.transmit_all(if scan == Scan::Hot { clock::now() } else { now })?;
        }
        let received = self.receive(scan, ready.behind(self.first_descriptor))?;
        self.active |= received;
        let mut more = received;
        // What has arrived comes first, but not for ever.
        let patience = if received { 4 * ATTEMPTS_PER_TIMER_CHECK } else { ATTEMPTS_PER_TIMER_CHECK };
        if scan != Scan::Hot || self.attempts >= patience {
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
            self.ledger.begin(now);
            self.ledger.end(JobKind::Timers, Priority::NORMAL);
        }
        Ok(more)
    }

    /// Sends all that there is, as one job.
    fn transmit_all(&mut self, now: Instant) -> Result<()> {
        self.ledger.begin(now);
        let driver = self.driver()?;
        let priority = driver.core.transmit_priority().unwrap_or_default();
        driver.transmit(now);
        self.ledger.end(JobKind::Transmit, priority);
        Ok(())
    }

    /// Takes datagrams until one is news to the application, or something urgent is to be sent, or it was [`DATAGRAMS_PER_TURN`]. Says
    /// whether there was any datagram.
    pub(super) fn receive(&mut self, scan: Scan, ready: Ready) -> Result<bool> {
        if !self.receive_first(scan, ready)? {
            return Ok(false);
        }
        for _ in 1..DATAGRAMS_PER_TURN {
            let is_news = self.end_receive()?;
            let driver = self.driver()?;
            let is_next_urgent = driver.core.transmit_priority() > Some(Priority::NORMAL);
            if is_news || is_next_urgent || !driver.receive(scan, ready) {
                return Ok(true);
            }
        }
        self.end_receive()?;
        Ok(true)
    }

    /// A datagram was received, or one of each transport: says whether that is news to the application.
    #[inline]
    fn end_receive(&mut self) -> Result<bool> {
        let is_news = self.route_events();
        let priority = self.driver()?.heard_priority();
        self.ledger.end(JobKind::Receive, priority);
        Ok(is_news)
    }

    /// Tries to receive; while spinning, as often as may be done in one turn.
    fn receive_first(&mut self, scan: Scan, ready: Ready) -> Result<bool> {
        let Some(driver) = &mut self.driver else { return Err(Error::AlreadyDeleted) };
        let attempts = if scan == Scan::Hot { self.attempts_per_turn } else { 1 };
        for _ in 0..attempts {
            self.attempts += 1;
            if driver.receive(scan, ready) {
                if scan == Scan::Hot {
                    self.ledger.begin(driver.now());
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Ends a call of the application: sends what it caused. Says whether the receiving thread must wake.
    pub(crate) fn settle(&mut self, now: Instant) -> bool {
        let Some(driver) = self.driver.as_mut() else { return true };
        driver.send(now);
        self.active = true;
        self.route_events();
        let Some(driver) = self.driver.as_mut() else { return true };
        // What events caused: requests for types.
        driver.send(now);
        let due = driver.poll_timeout();
        let earlier = due.is_some_and(|due| due < self.sleeps_until);
        earlier || self.sleeps_on_calls()
    }

    /// A call of the application has sent as much as one job may, and there is more.
    pub(crate) fn owes_datagrams(&self) -> bool {
        let driver = self.driver.as_ref();
        driver.is_some_and(|driver| driver.hears_above(None) && driver.core.has_transmit())
    }

    /// How many datagrams were built to be sent.
    pub(crate) fn built_datagrams(&self) -> u64 {
        self.driver.as_ref().map_or(0, Driver::built)
    }

    /// Ends a call that read samples: what made room may have let others in. Says whether the receiving thread must wake.
    pub(crate) fn settle_read(&mut self) -> bool {
        let Some(driver) = &self.driver else { return false };
        if !driver.core.has_events() {
            return false;
        }
        self.active = true;
        self.route_events();
        self.sleeps_on_calls()
    }

    /// Listeners are to be called by a thread that sleeps: it must wake.
    pub(crate) fn sleeps_on_calls(&self) -> bool {
        self.has_calls() && self.sleeps_until != Instant(0)
    }

    /// Adds what to sleep on and decides until when. `linger` bounds the sleep after activity, so that calls
    /// which follow each other do not each have to wake the thread for an earlier timer.
    pub(crate) fn prepare_sleep(
        &mut self,
        set: &mut PollSet,
        now: Instant,
        linger: Option<Instant>,
    ) -> Result<Option<Instant>> {
        let has_calls = self.has_calls();
        let Some(driver) = &mut self.driver else { return Err(Error::AlreadyDeleted) };
        self.first_descriptor = set.len();
        let mut until = driver.prepare_sleep(set, now);
        set.add_edition(self.leader_list);
        if driver.core.has_transmit() || has_calls || self.has_left_behind {
            until = Some(Instant(0));
        } else if self.active {
            until = [until, linger].into_iter().flatten().min();
        }
        self.active = false;
        self.sleeps_until = until.unwrap_or(Instant(u64::MAX));
        Ok(until)
    }
}
