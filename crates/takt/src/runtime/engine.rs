//! One participant at run time: its state behind the lock, and everything that drives it.
//!
//! Under `Runtime::Inline` the application's thread drives it in whatever waits ([`drive`]); under
//! `Runtime::Shared` a thread of its own does. Calls of the application take the same way in both: enter, call the
//! core, send what it wants to send, leave.
//!
//! Invariant: listeners are called with the lock released and one at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker as TaskWaker;

use takt_core::{Instant, Priority};
use takt_exec::{JobKind, PrioritySet, Run};
use takt_transport::Scan;

use super::clock;
use super::drive::{Driving, drive};
use super::driver::Driver;
use super::event_count::EventCount;
use super::guarded::{Guard, Guarded};
use super::leading::Leadership;
use super::listeners::{Call, Entity, Listener};
use super::poll::{PollSet, Ready, Waker};
use super::scheduler::Scheduler;
use super::state::{Elsewhere, Led, ParticipantEvent, Rank, State, Step, Target};
use super::tasks::TaskKey;
use super::thread_cell::ThreadToken;
use crate::{Error, Executor, Idle, Result, Runtime};

/// How long the receiving thread sleeps at most after something happened. No longer than it takes until the
/// first heartbeat, so that a `write` rarely has to wake the thread for a new timer.
pub(crate) const LINGER: std::time::Duration = std::time::Duration::from_millis(5);

/// Jobs beyond [`State::turn`] that one pass does at most, so that a deadline is looked at.
const CALLS_PER_TURN: usize = 32;

/// A participant at run time.
pub(crate) struct Engine {
    state: Guarded<State>,
    pub(crate) runtime: Runtime,
    pub(crate) idle: Idle,
    /// Wakes who drives.
    pub(crate) waker: Arc<Waker>,
    /// The thread that drives: the one that built it, or the receiving thread once it runs.
    pump_thread: AtomicU64,
    pub(crate) leadership: Leadership,
}

impl Engine {
    /// `waker` wakes who is to drive it.
    pub(crate) fn new(runtime: Runtime, idle: Idle, driver: Driver, waker: Arc<Waker>) -> Self {
        let pump_thread = match runtime {
            Runtime::Inline => ThreadToken::current(),
            Runtime::Shared => ThreadToken::NONE,
        };
        Self {
            state: Guarded::new(runtime, State::new(runtime, driver)),
            runtime,
            idle,
            waker,
            pump_thread: AtomicU64::new(pump_thread.to_bits()),
            leadership: Leadership::new(),
        }
    }

    pub(crate) fn enter(&self) -> Result<Guard<'_, State>> {
        self.state.enter()
    }

    /// As [`enter`](Self::enter), for the thread that drives: how long it waits is in the accounts.
    fn enter_to_run(&self) -> Result<Guard<'_, State>> {
        #[cfg(test)]
        super::simulation::before_lock(self);
        let mut state = self.state.enter()?;
        let waited_ns = state.waited_ns();
        if waited_ns > 0 {
            state.ledger.waited(waited_ns);
        }
        Ok(state)
    }

    /// A call of another thread has held the lock since then. That is timed where something urgent may have to wait for it.
    fn end_hold(&self, state: &mut State, since: Instant) {
        if state.hears_urgent() && !self.is_pump_thread() {
            state.ledger.held(clock::now().0.saturating_sub(since.0));
        }
    }

    /// Whether the calling thread is the one that drives.
    pub(crate) fn is_pump_thread(&self) -> bool {
        self.pump_thread.load(Ordering::Relaxed) == ThreadToken::current().to_bits()
    }

    /// Calls the core and sends what that causes.
    pub(crate) fn call<R>(&self, call: impl FnOnce(&mut Driver, Instant) -> Result<R>) -> Result<R> {
        self.call_state(|state, now| call(state.driver()?, now))
    }

    /// As [`call`](Self::call), with the rest of the state at hand.
    pub(crate) fn call_state<R>(&self, call: impl FnOnce(&mut State, Instant) -> Result<R>) -> Result<R> {
        let mut state = self.enter()?;
        let now = clock::now();
        state.driver()?.refresh_wall_clock(now);
        let result = call(&mut state, now);
        let mut built = state.built_datagrams();
        let (mut wake, mut since) = (state.settle(now), now);
        // In between a thread with a higher priority gets the lock. If the transports take nothing the rest is up to the executor.
        while state.owes_datagrams() {
            let before = std::mem::replace(&mut built, state.built_datagrams());
            if before == built {
                wake = true;
                break;
            }
            self.end_hold(&mut state, since);
            drop(state);
            state = self.enter()?;
            since = clock::now();
            wake |= state.settle(since);
        }
        self.end_hold(&mut state, since);
        self.leave(state, wake)?;
        result
    }

    /// Ends a visit: wakes whom it concerns, with the lock released.
    fn leave<'a>(&'a self, mut state: Guard<'a, State>, wake: bool) -> Result<()> {
        if state.has_woken() {
            state = self.wake_tasks(state)?;
        }
        drop(state);
        if wake {
            self.waker.wake();
        }
        Ok(())
    }

    /// Leaves to wake the tasks that something has happened for, and comes back.
    #[cold]
    fn wake_tasks<'a>(&'a self, mut state: Guard<'a, State>) -> Result<Guard<'a, State>> {
        while let Some(task) = state.next_woken() {
            drop(state);
            task.wake();
            state = self.enter()?;
        }
        Ok(state)
    }

    /// Reads or takes samples, and passes on what that causes. Sending is up to `read`.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&mut State) -> Result<R>) -> Result<R> {
        let mut state = self.enter()?;
        let since = state.hears_urgent().then(clock::now);
        let result = read(&mut state);
        let wake = state.settle_read();
        if let Some(since) = since {
            self.end_hold(&mut state, since);
        }
        self.leave(state, wake)?;
        result
    }

    /// A future or stream was dropped.
    pub(crate) fn remove_task(&self, target: Target, task: TaskKey) {
        // From the wrong thread of an inline participant the task cannot be reached: it is woken once more for nothing.
        let Ok(mut state) = self.enter() else { return };
        let waker = state.remove_task(target, task);
        drop(state);
        drop(waker);
    }

    /// Looks at the state without sending.
    pub(crate) fn look_at_state<R>(&self, look: impl FnOnce(&mut State) -> Result<R>) -> Result<R> {
        look(&mut *self.enter()?)
    }

    /// Calls the core without sending: for looking.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut Driver) -> Result<R>) -> Result<R> {
        look(self.enter()?.driver()?)
    }

    /// Repeats `attempt` until it yields something, driving or sleeping in between. `progress` is notified when
    /// another attempt may succeed; `deadline` is asked for only if the first attempt fails.
    pub(crate) fn block_on<R>(
        &self,
        progress: &EventCount,
        deadline: impl FnOnce() -> Option<Instant>,
        mut attempt: impl FnMut(&mut Driver, Instant) -> Result<Option<R>>,
    ) -> Result<R> {
        let ticket = progress.ticket();
        if let Some(result) = self.call(&mut attempt)? {
            return Ok(result);
        }
        let deadline = deadline();
        let mut ticket = ticket;
        loop {
            let now = clock::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Err(Error::TIMEOUT);
            }
            if self.is_pump_thread() {
                // Timers that make progress leave nothing to do behind: the pass does not say that anything happened.
                self.pump_until(now, deadline, |happened| happened || progress.ticket() != ticket)?;
            } else {
                progress.wait(ticket, now, deadline);
            }
            ticket = progress.ticket();
            if let Some(result) = self.call(&mut attempt)? {
                return Ok(result);
            }
        }
    }

    /// A pass without waiting, if this participant spins at all: for a call that may find something before it has to ask for the
    /// time. Says whether anything happened.
    pub(crate) fn glance(&self) -> Result<bool> {
        Ok(self.idle != Idle::Block && self.turn(Scan::Hot, Ready::ALL, Instant(0))? == Some(true))
    }

    /// One pass of [`State::turn`] over a participant that has its thread to itself, then its listeners. Says whether there may be
    /// more to do at once; `None`, and nothing was done, if urgent datagrams are to be asked for between its jobs.
    pub(crate) fn turn(&self, scan: Scan, ready: Ready, now: Instant) -> Result<Option<bool>> {
        let mut state = self.enter_to_run()?;
        if state.hears_urgent() {
            return Ok(None);
        }
        let mut more = state.turn(scan, ready, now)?;
        if state.has_woken() {
            state = self.wake_tasks(state)?;
        }
        for _ in 0..CALLS_PER_TURN {
            let is_below = match state.due_call() {
                Some(priority) => priority < Priority::NORMAL,
                None => break,
            };
            // All that is more urgent than a call below the normal priority is looked for first.
            if is_below && (more || state.run_normal(Scan::All, Ready::ALL, false)? != Step::Idle) {
                more = true;
                break;
            }
            more = true;
            if state.run_above(None)? == Step::Call {
                self.call_first(state)?;
                state = self.enter_to_run()?;
            }
        }
        self.leave(state, false)?;
        Ok(Some(more))
    }

    /// Adds what a thread that leads sleeps on: nothing once the participant is closed.
    pub(crate) fn prepare_lead(&self, set: &mut PollSet) -> Result<()> {
        self.look_at_state(|state| {
            state.prepare_lead(set);
            Ok(())
        })
    }

    /// See [`State::begin_leader_list`].
    pub(crate) fn begin_leader_list(&self) -> Result<()> {
        self.look_at_state(|state| {
            state.begin_leader_list();
            Ok(())
        })
    }

    /// A pass of a thread that leads: see [`State::lead`]. Says whether there is more.
    pub(crate) fn lead(&self, ready: Ready, now: Instant) -> Result<bool> {
        let mut state = self.enter()?;
        let Led { more, wake } = state.lead(ready, now)?;
        self.leave(state, wake)?;
        Ok(more)
    }

    /// Has the receiving thread look at all transports, since a thread that led has not.
    pub(crate) fn leave_behind(&self) -> Result<()> {
        self.look_at_state(|state| {
            state.leave_behind();
            Ok(())
        })?;
        self.waker.wake();
        Ok(())
    }

    /// The priorities that a job of this participant may have, above the normal one or of what waits already.
    pub(crate) fn priorities(&self) -> Result<PrioritySet> {
        Ok(self.enter_to_run()?.priorities())
    }

    /// Whether there is something to send, or a listener to call.
    pub(crate) fn has_waiting(&self) -> Result<bool> {
        Ok(self.enter_to_run()?.has_waiting())
    }

    /// Does the job with the highest priority above `than`: see [`State::run_above`]. Says whether there was one.
    pub(crate) fn run_above(&self, than: Option<Priority>) -> Result<bool> {
        let mut state = self.enter_to_run()?;
        let step = state.run_above(than)?;
        self.end_step(state, step)
    }

    /// Does one job of normal priority: see [`State::run_normal`]. Says whether there was one.
    pub(crate) fn run_normal(&self, scan: Scan, ready: Ready, calls: bool) -> Result<bool> {
        let mut state = self.enter_to_run()?;
        let step = state.run_normal(scan, ready, calls)?;
        self.end_step(state, step)
    }

    /// Does the next job, if it has a priority above `than`: see [`State::run_next`]. Says of which priority it was. One visit: a thread
    /// that calls into the participant keeps it waiting once.
    pub(crate) fn run_next(&self, than: Option<Priority>, scan: Scan, ready: Ready) -> Result<Option<Rank>> {
        let mut state = self.enter_to_run()?;
        let (step, level) = state.run_next(than, scan, ready)?;
        Ok(self.end_step(state, step)?.then_some(level))
    }

    fn end_step<'a>(&'a self, state: Guard<'a, State>, step: Step) -> Result<bool> {
        match step {
            Step::Call => self.call_first(state)?,
            Step::Idle | Step::Done => self.leave(state, false)?,
        }
        Ok(step != Step::Idle)
    }

    /// Has this executor call an endpoint's own listener from now on; `None`: the participant's. It is as urgent as `planned`, else as
    /// the endpoint.
    pub(crate) fn run_listener_on(
        self: &Arc<Self>,
        executor: Option<&Executor>,
        target: Target,
        planned: Option<Priority>,
    ) -> Result<()> {
        let (own, topic) = self.look_at_state(|state| state.describe(target))?;
        let priority = planned.unwrap_or(own);
        let job = executor.map(|executor| executor.call_listener(self, target, priority, &topic)).transpose()?;
        let mut elsewhere = job.map(Elsewhere::from);
        // The former one ends outside the lock.
        self.call_state(|state, _| state.call_elsewhere(target, &mut elsewhere))
    }

    /// Calls what an endpoint's own listener is to be told; for the executor that it was given to.
    pub(crate) fn call_listener_of(&self, target: Target) -> Result<()> {
        loop {
            let mut state = self.enter()?;
            let Some(mut call) = state.take_call_elsewhere(target) else { return Ok(()) };
            drop(state);
            let began = clock::now();
            call.listener.call(&call.entity, call.statuses);
            let ended = clock::now();
            let (state, left) = self.end_call(call, began, ended)?;
            // Somebody else may have to call it by now, or to tell of an overrun.
            let wake = state.sleeps_on_calls();
            self.leave(state, wake)?;
            drop(left);
        }
    }

    /// Drives until something was received or a listener called, or the deadline has come. Says which.
    pub(crate) fn pump(&self, now: Instant, deadline: Option<Instant>) -> Result<bool> {
        self.pump_until(now, deadline, |happened| happened)
    }

    /// Drives until `is_over` says so, asked after each pass with whether anything happened in it, or the deadline has come (then `false`).
    fn pump_until(
        &self,
        now: Instant,
        deadline: Option<Instant>,
        mut is_over: impl FnMut(bool) -> bool,
    ) -> Result<bool> {
        let mut driving = std::mem::take(&mut self.enter()?.driving);
        let scheduler = Scheduler { engines: &[self], agenda: None };
        let result = drive(&scheduler, &self.waker, &mut driving, now, deadline, |happened| {
            self.waker.reset();
            is_over(happened)
        });
        self.enter()?.driving = driving;
        result
    }

    /// Calls the first listener that is to be called, the participant's among them.
    fn call_first<'a>(&'a self, mut state: Guard<'a, State>) -> Result<()> {
        state.dispatching = true;
        let dispatching = Dispatching(self);
        let (mut state, left) = match state.next_call_priority() >= state.next_told_priority() {
            true => self.call_next(state)?,
            false => self.tell_participant(state)?,
        };
        state.dispatching = false;
        std::mem::forget(dispatching);
        self.leave(state, false)?;
        drop(left);
        Ok(())
    }

    /// Calls the listener whose turn it is.
    fn call_next<'a>(&'a self, mut state: Guard<'a, State>) -> Result<(Guard<'a, State>, Left)> {
        let Some(mut call) = state.next_call() else { return Ok((state, Left::default())) };
        let began = state.ledger.began();
        drop(state);
        call.listener.call(&call.entity, call.statuses);
        let ended = clock::now();
        let (mut state, left) = self.end_call(call, began, ended)?;
        state.ledger.begin(ended);
        Ok((state, left))
    }

    /// Counts a call and puts the listener back. What is left of it is to be dropped outside the lock.
    fn end_call(&self, call: Call, began: Instant, ended: Instant) -> Result<(Guard<'_, State>, Left)> {
        let Call { target, priority, level, listener, version, entity, .. } = call;
        let owner = target.number();
        let run = Run { kind: JobKind::Callback, priority, owner, began_ns: began.0, ended_ns: ended.0 };
        let mut state = self.enter_to_run()?;
        state.count_call(target, &run);
        let left = state.end_call(target, level, listener, version);
        Ok((state, (left, Some(entity))))
    }

    /// Tells the participant's listener what is next.
    fn tell_participant<'a>(&'a self, mut state: Guard<'a, State>) -> Result<(Guard<'a, State>, Left)> {
        let Some(event) = state.next_participant_event() else { return Ok((state, Left::default())) };
        let Some((mut listener, version)) = state.participant.take() else { return Ok((state, Left::default())) };
        drop(state);
        let tells_of_overrun = matches!(event, ParticipantEvent::Overran(_));
        if let Listener::Participant(listener) = &mut listener {
            match event {
                ParticipantEvent::Discovered(guid) => listener.on_participant_discovered(guid),
                ParticipantEvent::Lost(guid) => listener.on_participant_lost(guid),
                ParticipantEvent::Overran(status) => listener.on_budget_overrun(status),
            }
        }
        let mut state = self.enter_to_run()?;
        match tells_of_overrun {
            true => state.ledger.end_telling(),
            false => state.ledger.end(JobKind::Callback, Priority::NORMAL),
        }
        let left = state.participant.put_back(listener, version);
        Ok((state, (left, None)))
    }

    /// Sends goodbye and closes. Waiting calls end with [`Error::AlreadyDeleted`].
    pub(crate) fn close(&self) -> Result<()> {
        let mut state = self.enter()?;
        if state.is_closed() {
            return Err(Error::AlreadyDeleted);
        }
        let mut closed = state.close(clock::now());
        drop(state);
        self.waker.wake();
        closed.tasks.drain(..).for_each(TaskWaker::wake);
        drop(closed);
        Ok(())
    }

    /// Closes it if the calling thread panics while the guard lives.
    pub(crate) fn close_on_panic(&self) -> CloseOnPanic<'_> {
        CloseOnPanic(self)
    }

    /// From now on this thread drives.
    pub(crate) fn belong_to(&self, thread: ThreadToken) {
        self.pump_thread.store(thread.to_bits(), Ordering::Relaxed);
    }

    /// The receiving thread under `Runtime::Shared`: drives until the participant is closed.
    pub(crate) fn run(&self) {
        self.belong_to(ThreadToken::of_driving_thread());
        let _closing = self.close_on_panic();
        let mut driving = Driving::default();
        loop {
            // Resetting the waker here misses nothing: what it was woken for is seen before the next sleep.
            let scheduler = Scheduler { engines: &[self], agenda: None };
            let result = drive(&scheduler, &self.waker, &mut driving, clock::now(), None, |_| {
                self.waker.reset();
                false
            });
            match result {
                Ok(_) | Err(Error::Transport(_)) => {}
                Err(_) => break,
            }
        }
    }
}

impl Drop for Engine {
    /// The last handle may have gone on a thread that may not enter; now nobody else can be inside.
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if !state.is_closed() {
            drop(state.close(clock::now()));
        }
    }
}

/// What is left of a call: the listener, if its entity has another one now, and the entity.
type Left = (Option<Listener>, Option<Entity>);

/// Listeners are being called: takes the mark from the state when they have been, even if one panics.
struct Dispatching<'a>(&'a Engine);

impl Drop for Dispatching<'_> {
    fn drop(&mut self) {
        if let Ok(mut state) = self.0.enter() {
            state.dispatching = false;
        }
    }
}

/// A listener that panics ends the receiving thread; without it the participant would only pretend to live.
pub(crate) struct CloseOnPanic<'a>(&'a Engine);

impl Drop for CloseOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let closed = self.0.close();
            debug_assert!(
                matches!(closed, Ok(()) | Err(Error::AlreadyDeleted)),
                "listeners run with the lock released: {closed:?}"
            );
        }
    }
}
