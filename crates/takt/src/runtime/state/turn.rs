//! One pass over a participant: what is sent, received and due, the most urgent first.

use takt_core::{Instant, Priority};
use takt_exec::JobKind;
use takt_transport::Scan;

use super::State;
use crate::runtime::clock;
use crate::runtime::poll::{PollSet, Ready};
use crate::{Error, Result};

/// Futile attempts to receive between two looks at the timers while spinning. One is a system call of some 300 ns, so
/// timers are some 5 us late at most.
pub(super) const ATTEMPTS_PER_TIMER_CHECK: u32 = 16;

/// Futile attempts of one turn while spinning under [`Runtime::Shared`], which keeps others waiting for the lock.
pub(super) const SHARED_ATTEMPTS_PER_TURN: u32 = 2;

/// Datagrams that one turn takes at most, which bounds how long it keeps the lock.
const DATAGRAMS_PER_TURN: usize = 32;

/// Urgent jobs of one visit, after which others get the lock.
const JOBS_PER_VISIT: usize = 32;

impl State {
    /// One pass: sends what is due, takes datagrams until one means something to the application (or there are none, or
    /// it was [`DATAGRAMS_PER_TURN`]), runs one batch of timers. Says whether there may be more to do at once.
    ///
    /// What the datagrams made the core want to send leaves with the next pass, so that the application sees the data
    /// first, and its answer and our acknowledgement can share a system call.
    ///
    /// What is urgent comes first in all of that: before each datagram, and before what is sent. Once it has done so for
    /// [`Priority::REST_WAITS_MAX`] without a pause, its listeners wait for one pass.
    ///
    /// `now` is a moment ago; while spinning nobody looks at it, but at the clock where the time matters. `ready` says which of
    /// the descriptors that were slept on are readable; only those are asked. `is_shared`: others share the thread, so each pass
    /// takes one datagram, and sends as much as one job may.
    pub(crate) fn turn(&mut self, scan: Scan, ready: Ready, now: Instant, is_shared: bool) -> Result<bool> {
        self.sleeps_until = Instant(0);
        let driver = self.driver()?;
        if scan != Scan::Hot {
            driver.advance(now);
        }
        self.ledger.begin(now);
        // Who has to wait for the kernel to be asked before a sleep may wait for ever.
        let scan = if scan == Scan::Taken && self.is_rest_owed() { Scan::All } else { scan };
        if self.is_preempted()? {
            return Ok(true);
        }
        let mut more = false;
        if self.driver()?.core.has_transmit() {
            more = self.transmit(if scan == Scan::Hot { clock::now() } else { now }, is_shared)?;
            if self.is_preempted()? {
                return Ok(true);
            }
        }
        let most = if is_shared && !self.is_rest_owed() { 1 } else { DATAGRAMS_PER_TURN };
        let received = self.receive(scan, ready.behind(self.first_descriptor), most)?;
        self.active |= received;
        more |= received;
        // What has arrived comes first, but not for ever.
        let patience = if received { 4 * ATTEMPTS_PER_TIMER_CHECK } else { ATTEMPTS_PER_TIMER_CHECK };
        if scan != Scan::Hot || self.attempts >= patience || self.is_rest_owed() {
            self.attempts = 0;
            if self.is_preempted()? {
                return Ok(true);
            }
            let now = if scan == Scan::Hot { clock::now() } else { now };
            more |= self.run_timers(now)?;
            if !received && self.driver()?.core.has_transmit() {
                if self.is_preempted()? {
                    return Ok(true);
                }
                more |= self.transmit(now, is_shared)?;
            }
            self.route_events();
            self.held_up_since = None;
        }
        Ok(more)
    }

    /// What is urgent, or a call of a listener, comes before normal datagrams and timers.
    pub(crate) fn hold_up_rest(&mut self) {
        self.held_up_since.get_or_insert(self.ledger.began());
    }

    /// Whether normal datagrams and timers have waited for so long that they come next.
    pub(crate) fn is_rest_owed(&self) -> bool {
        self.held_up_since.is_some_and(|since| self.ledger.began().since(since) >= Priority::REST_WAITS_MAX)
    }

    /// Between two jobs: does what is urgent. Says whether that brought a call of a listener, which comes before the next job.
    #[inline]
    fn is_preempted(&mut self) -> Result<bool> {
        if !self.driver()?.hears_above(Priority::NORMAL) {
            return Ok(false);
        }
        self.attend(Priority::NORMAL)?;
        if !self.has_calls() || self.due.calls.first_priority() <= Some(Priority::NORMAL) {
            return Ok(false);
        }
        self.hold_up_rest();
        Ok(!self.is_rest_owed())
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

    /// Sends what there is; while something urgent may arrive or `is_shared`, as much as one job may. Says whether there is more.
    fn transmit(&mut self, now: Instant, is_shared: bool) -> Result<bool> {
        self.ledger.begin(now);
        let driver = self.driver()?;
        let priority = driver.core.transmit_priority().unwrap_or_default();
        let more = if is_shared || driver.hears_above(Priority::NORMAL) {
            driver.transmit_some(now)
        } else {
            driver.transmit(now);
            false
        };
        self.ledger.end(JobKind::Transmit, priority);
        Ok(more)
    }

    /// Does what is more urgent than `than`, one job after the other: sends it, and receives it. Says whether all of it is done,
    /// or brought a call of a listener that is as urgent.
    pub(crate) fn attend(&mut self, than: Priority) -> Result<bool> {
        for _ in 0..JOBS_PER_VISIT {
            let now = clock::now();
            let driver = self.driver()?;
            if driver.core.transmit_priority() > Some(than) {
                self.ledger.begin(now);
                let driver = self.driver()?;
                let priority = driver.core.transmit_priority().unwrap_or_default();
                driver.transmit_some(now);
                self.ledger.end(JobKind::Transmit, priority);
                continue;
            }
            if !driver.receive_above(than) {
                self.ledger.begin(now);
                return Ok(true);
            }
            let priority = driver.heard_priority();
            self.active = true;
            self.route_events();
            self.ledger.begin(now);
            self.ledger.end(JobKind::Receive, priority);
            if self.due.calls.first_priority() > Some(than) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether something more urgent than `than` waits or may have arrived, so that one had better [attend](Self::attend) to it.
    #[inline]
    pub(crate) fn is_wanted_above(&self, than: Priority) -> bool {
        self.driver
            .as_ref()
            .is_some_and(|driver| driver.hears_above(than) || driver.core.transmit_priority() > Some(than))
    }

    /// Takes datagrams until one is news to the application, or it was so many. Says whether there was any datagram.
    fn receive(&mut self, scan: Scan, ready: Ready, most: usize) -> Result<bool> {
        if !self.receive_first(scan, ready)? {
            return Ok(false);
        }
        for _ in 1..most {
            let is_news = self.end_receive()?;
            if is_news && !self.is_rest_owed() || !self.driver()?.receive(scan, ready) {
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
        driver.is_some_and(|driver| driver.hears_above(Priority::NORMAL) && driver.core.has_transmit())
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
        if driver.core.has_transmit() || has_calls {
            until = Some(Instant(0));
        } else if self.active {
            until = [until, linger].into_iter().flatten().min();
        }
        self.active = false;
        self.sleeps_until = until.unwrap_or(Instant(u64::MAX));
        Ok(until)
    }
}
