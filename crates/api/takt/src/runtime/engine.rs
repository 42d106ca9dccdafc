//! Engine: one participant at run time, with its state behind a lock and the code that drives it.
//!
//! Under `Runtime::Inline`, blocking calls of the application drive the participant ([`Drive`]).
//! Under `Runtime::Shared`, a thread of its own does. In both cases a call of the application
//! enters the state, calls the core, sends what is due, and exits.
//!
//! Invariant: listeners are called one at a time and without holding the lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker as TaskWaker;

use takt_core::{Instant, Participant, Priority, ReaderHandle};
use takt_schedule::{JobKind, PrioritySet, Run};
use takt_transport::Scan;

use super::clock;
use super::drive::{Drive, Driving};
use super::driver::Driver;
use super::event_count::{EventCount, Ticket};
use super::guarded::{Guard, Guarded};
use super::leading::Leadership;
use super::listeners::{Call, Entity, Listener};
use super::poll::{PollSet, Ready, Waker};
use super::scheduler::Scheduler;
use super::state::{Led, ListenerJob, ParticipantEvent, Rank, State, Step, Target};
use super::tasks::TaskKey;
use super::thread_cell::ThreadToken;
use crate::{Error, Executor, Idle, Result, Runtime};

/// Maximum sleep of the receiving thread after activity. It does not exceed the time to the first
/// heartbeat, so that a `write` rarely has to wake the thread for a new timer.
pub(crate) const ACTIVE_SLEEP_MAX: std::time::Duration = std::time::Duration::from_millis(5);

/// Maximum number of listener calls that one pass makes after [`State::run_pass`], so that
/// deadlines are checked.
const CALLS_PER_PASS: usize = 32;

/// Participant at run time.
pub(crate) struct Engine {
    state: Guarded<State>,
    pub(crate) runtime: Runtime,
    pub(crate) idle: Idle,
    /// Wakes the driving thread.
    pub(crate) waker: Arc<Waker>,
    /// Token of the driving thread: the thread that built the participant, or the receiving thread
    /// once it runs.
    driving_thread: AtomicU64,
    /// Fragments of large samples waited for the queue of a network interface at the end of the
    /// last call.
    has_blocked_flows: AtomicBool,
    pub(crate) leadership: Leadership,
}

/// Call of the application that holds the lock of the state. [`finish`](Self::finish) sends the
/// resulting datagrams.
pub(crate) struct CoreCall<'a> {
    engine: &'a Engine,
    state: Guard<'a, State>,
    /// Time at which the call began.
    pub(crate) now: Instant,
}

impl CoreCall<'_> {
    /// Returns the protocol engine and its transports.
    #[inline]
    pub(crate) fn driver(&mut self) -> Result<&mut Driver> {
        self.state.driver()
    }

    /// Sends the datagrams of the call, then wakes tasks and the driving thread as required.
    pub(crate) fn finish(self) -> Result<()> {
        let Self { engine, mut state, now } = self;
        let mut built = state.built_datagrams();
        let (mut wake, mut since) = (state.send_pending(now), now);
        // Between iterations a thread of higher priority can take the lock. If the transports
        // accept nothing, the executor sends the rest.
        while state.has_pending_datagrams() {
            let before = std::mem::replace(&mut built, state.built_datagrams());
            if before == built {
                wake = true;
                break;
            }
            engine.end_hold(&mut state, since);
            drop(state);
            state = engine.enter()?;
            since = clock::now();
            wake |= state.send_pending(since);
        }
        engine.has_blocked_flows.store(state.has_blocked_flows(), Ordering::Relaxed);
        engine.end_hold(&mut state, since);
        engine.exit(state, wake)
    }
}

/// Read or take of the application that holds the lock of the state. [`finish`](Self::finish) ends
/// it. Dropped without it if the reader refuses the read, which then has changed nothing.
pub(crate) struct ReadCall<'a> {
    engine: &'a Engine,
    state: Guard<'a, State>,
    reader: ReaderHandle,
    /// Time of the last input: a read does not read the clock.
    pub(crate) now: Instant,
    /// Time at which the call began, if urgent datagrams may have to wait for the lock.
    since: Option<Instant>,
}

impl ReadCall<'_> {
    /// Returns the protocol engine.
    #[inline]
    pub(crate) fn core(&mut self) -> Result<&mut Participant> {
        Ok(&mut self.state.driver()?.core)
    }

    /// Registers a task to be woken when the reader has samples. The caller drops the returned
    /// former waker after [`finish`](Self::finish).
    pub(crate) fn add_task(&mut self, task: &mut Option<TaskKey>, waker: &TaskWaker) -> Result<Option<TaskWaker>> {
        self.state.add_task(Target::Reader(self.reader), task, waker)
    }

    /// Frees the taken samples, which may make room for others and cause datagrams. Then wakes
    /// tasks and the driving thread as required.
    pub(crate) fn finish(self) -> Result<()> {
        let Self { engine, mut state, reader, now, since } = self;
        let wake = state.end_read(now, reader)?;
        if let Some(since) = since {
            engine.end_hold(&mut state, since);
        }
        engine.exit(state, wake)
    }
}

/// Wait of a call that found no room or no data. Created before the first attempt, so that no
/// progress is missed.
pub(crate) struct Wait<'a> {
    engine: &'a Engine,
    progress: &'a EventCount,
    ticket: Ticket,
}

impl<'a> Wait<'a> {
    /// `progress` is notified when another attempt may succeed.
    #[inline]
    pub(crate) fn new(engine: &'a Engine, progress: &'a EventCount) -> Self {
        Self { engine, progress, ticket: progress.ticket() }
    }

    /// Drives the participant or sleeps until there may have been progress.
    ///
    /// # Errors
    /// [`Error::Timeout`] after the deadline.
    pub(crate) fn for_progress(&mut self, deadline: Option<Instant>) -> Result<()> {
        let Self { engine, progress, ticket } = *self;
        let now = clock::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Err(Error::TIMEOUT);
        }
        if engine.is_driving_thread() {
            engine.drive_until(now, deadline, Some((progress, ticket)))?;
        } else {
            progress.wait(ticket, now, deadline);
        }
        self.ticket = progress.ticket();
        Ok(())
    }
}

impl Engine {
    /// Creates an engine. `waker` wakes the thread that drives it.
    pub(crate) fn new(runtime: Runtime, idle: Idle, driver: Driver, waker: Arc<Waker>) -> Self {
        let driving_thread = match runtime {
            Runtime::Inline => ThreadToken::current(),
            Runtime::Shared => ThreadToken::NONE,
        };
        Self {
            state: Guarded::new(runtime, State::new(runtime, driver)),
            runtime,
            idle,
            waker,
            driving_thread: AtomicU64::new(driving_thread.to_bits()),
            has_blocked_flows: AtomicBool::new(false),
            leadership: Leadership::new(),
        }
    }

    pub(crate) fn enter(&self) -> Result<Guard<'_, State>> {
        self.state.enter()
    }

    /// As [`enter`](Self::enter), for the driving thread, whose waiting time is recorded in the job
    /// statistics.
    fn enter_to_run(&self) -> Result<Guard<'_, State>> {
        #[cfg(test)]
        super::simulation::before_lock(self);
        let mut state = self.state.enter()?;
        let waited_ns = state.waited_ns();
        if waited_ns > 0 {
            state.job_recorder.waited(waited_ns);
        }
        Ok(state)
    }

    /// Records the time since `since` for which a call of another thread has held the lock.
    /// Recorded only if urgent datagrams may have to wait for the lock.
    fn end_hold(&self, state: &mut State, since: Instant) {
        if state.distinguishes_urgent() && !self.is_driving_thread() {
            state.job_recorder.held(clock::now().0.saturating_sub(since.0));
        }
    }

    /// Reports whether the calling thread is the driving thread.
    pub(crate) fn is_driving_thread(&self) -> bool {
        self.driving_thread.load(Ordering::Relaxed) == ThreadToken::current().to_bits()
    }

    /// Reports whether fragments of large samples waited for the queue of a network interface at
    /// the end of the last call.
    #[inline]
    pub(crate) fn has_blocked_flows(&self) -> bool {
        self.has_blocked_flows.load(Ordering::Relaxed)
    }

    /// Begins a call of the application.
    #[inline]
    pub(crate) fn begin(&self) -> Result<CoreCall<'_>> {
        let mut state = self.enter()?;
        let now = clock::now();
        state.driver()?.refresh_wall_clock(now);
        Ok(CoreCall { engine: self, state, now })
    }

    /// Begins a read or take of the application.
    #[inline]
    pub(crate) fn begin_read(&self, reader: ReaderHandle) -> Result<ReadCall<'_>> {
        let mut state = self.enter()?;
        let since = state.distinguishes_urgent().then(clock::now);
        let now = state.driver()?.now();
        Ok(ReadCall { engine: self, state, reader, now, since })
    }

    /// Calls the core and sends the resulting datagrams.
    pub(crate) fn call<R>(&self, call: impl FnOnce(&mut Driver, Instant) -> Result<R>) -> Result<R> {
        self.call_state(|state, now| call(state.driver()?, now))
    }

    /// As [`call`](Self::call), with access to the whole state.
    pub(crate) fn call_state<R>(&self, call: impl FnOnce(&mut State, Instant) -> Result<R>) -> Result<R> {
        let mut begun = self.begin()?;
        let result = call(&mut begun.state, begun.now);
        begun.finish()?;
        result
    }

    /// Releases the lock, then wakes tasks and the driving thread as required.
    fn exit<'a>(&'a self, mut state: Guard<'a, State>, wake: bool) -> Result<()> {
        if state.has_woken() {
            state = self.wake_tasks(state)?;
        }
        drop(state);
        if wake {
            self.waker.wake();
        }
        Ok(())
    }

    /// Wakes the tasks that have become ready without holding the lock, and enters again.
    #[cold]
    fn wake_tasks<'a>(&'a self, mut state: Guard<'a, State>) -> Result<Guard<'a, State>> {
        while let Some(task) = state.next_woken() {
            drop(state);
            task.wake();
            state = self.enter()?;
        }
        Ok(state)
    }

    /// Unregisters the task of a dropped future or stream.
    pub(crate) fn remove_task(&self, target: Target, task: TaskKey) {
        // A thread that does not own an inline participant cannot remove the task. It remains and
        // is woken once more without effect.
        let Ok(mut state) = self.enter() else { return };
        let waker = state.remove_task(target, task);
        drop(state);
        drop(waker);
    }

    /// Accesses the core without sending.
    pub(crate) fn inspect<R>(&self, access: impl FnOnce(&mut Driver) -> Result<R>) -> Result<R> {
        access(self.enter()?.driver()?)
    }

    /// As [`inspect`](Self::inspect), unless the lock is held.
    #[cfg(debug_assertions)]
    pub(crate) fn inspect_if_free<R>(&self, access: impl FnOnce(&mut Driver) -> Result<R>) -> Option<Result<R>> {
        self.state.try_enter().map(|mut state| access(state.driver()?))
    }

    /// Repeats `attempt` until it returns a value, and drives or sleeps in between. `progress` is
    /// notified when another attempt may succeed. `deadline` is evaluated only if the first attempt
    /// fails.
    pub(crate) fn block_on<R>(
        &self,
        progress: &EventCount,
        deadline: impl FnOnce() -> Option<Instant>,
        mut attempt: impl FnMut(&mut Driver, Instant) -> Result<Option<R>>,
    ) -> Result<R> {
        let mut wait = Wait::new(self, progress);
        if let Some(result) = self.call(&mut attempt)? {
            return Ok(result);
        }
        let deadline = deadline();
        loop {
            wait.for_progress(deadline)?;
            if let Some(result) = self.call(&mut attempt)? {
                return Ok(result);
            }
        }
    }

    /// Runs one pass without blocking, if this participant spins. Allows a call to find data before
    /// it reads the clock. Returns true if the pass made progress.
    pub(crate) fn poll_once(&self) -> Result<bool> {
        Ok(self.idle != Idle::Block && self.run_pass(Scan::Hot, Ready::ALL, Instant(0))? == Some(true))
    }

    /// Runs one pass of [`State::run_pass`] for a participant that is alone on its thread, then its
    /// listeners. Returns true if more may be ready. Returns `None` without any effect if urgent
    /// datagrams must be polled between jobs.
    pub(crate) fn run_pass(&self, scan: Scan, ready: Ready, now: Instant) -> Result<Option<bool>> {
        let mut state = self.enter_to_run()?;
        if state.distinguishes_urgent() {
            return Ok(None);
        }
        let mut more = state.run_pass(scan, ready, now)?;
        if state.has_woken() {
            state = self.wake_tasks(state)?;
        }
        for _ in 0..CALLS_PER_PASS {
            let is_below = match state.due_call() {
                Some(priority) => priority < Priority::NORMAL,
                None => break,
            };
            // Before a call below normal priority, look for work that is more urgent.
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
        self.exit(state, false)?;
        Ok(Some(more))
    }

    /// Adds the descriptors that a leader sleeps on; none once the participant is closed.
    pub(crate) fn prepare_lead(&self, set: &mut PollSet) -> Result<()> {
        self.enter()?.prepare_lead(set);
        Ok(())
    }

    /// Calls [`State::begin_leader_list`].
    pub(crate) fn begin_leader_list(&self) -> Result<()> {
        self.enter()?.begin_leader_list();
        Ok(())
    }

    /// Runs a pass as leader: see [`State::lead`]. Returns true if more may be ready.
    pub(crate) fn lead(&self, ready: Ready, now: Instant) -> Result<bool> {
        let mut state = self.enter()?;
        let Led { more, wake } = state.lead(ready, now)?;
        self.exit(state, wake)?;
        Ok(more)
    }

    /// Makes the receiving thread poll all transports, because a leader has not emptied them.
    pub(crate) fn request_poll(&self) -> Result<()> {
        self.enter()?.request_poll();
        self.waker.wake();
        Ok(())
    }

    /// Returns the priorities above normal that a job may have, and those of pending jobs.
    pub(crate) fn priorities(&self) -> Result<PrioritySet> {
        Ok(self.enter_to_run()?.priorities())
    }

    /// Reports whether datagrams are due or a listener must be called.
    pub(crate) fn has_waiting(&self) -> Result<bool> {
        Ok(self.enter_to_run()?.has_waiting())
    }

    /// Runs the highest-priority job above `than`: see [`State::run_above`]. Returns true if there
    /// was one.
    pub(crate) fn run_above(&self, than: Option<Priority>) -> Result<bool> {
        let mut state = self.enter_to_run()?;
        let step = state.run_above(than)?;
        self.end_step(state, step)
    }

    /// Runs one job of normal priority: see [`State::run_normal`]. Returns true if there was one.
    pub(crate) fn run_normal(&self, scan: Scan, ready: Ready, calls: bool) -> Result<bool> {
        let mut state = self.enter_to_run()?;
        let step = state.run_normal(scan, ready, calls)?;
        self.end_step(state, step)
    }

    /// Runs the next job if its priority is above `than`: see [`State::run_next`]. Returns its
    /// rank. Enters once, so that a concurrent call of the application delays it at most once.
    pub(crate) fn run_next(&self, than: Option<Priority>, scan: Scan, ready: Ready) -> Result<Option<Rank>> {
        let mut state = self.enter_to_run()?;
        let (step, level) = state.run_next(than, scan, ready)?;
        Ok(self.end_step(state, step)?.then_some(level))
    }

    fn end_step<'a>(&'a self, state: Guard<'a, State>, step: Step) -> Result<bool> {
        match step {
            Step::Call => self.call_first(state)?,
            Step::Idle | Step::Done => self.exit(state, false)?,
        }
        Ok(step != Step::Idle)
    }

    /// Moves calls of an endpoint's own listener to another executor, or with `None` back to that
    /// of the participant. The priority is `planned`, else that of the endpoint.
    pub(crate) fn run_listener_on(
        self: &Arc<Self>,
        executor: Option<&Executor>,
        target: Target,
        planned: Option<Priority>,
    ) -> Result<()> {
        let (own, topic) = self.enter()?.describe(target)?;
        let priority = planned.unwrap_or(own);
        let job = executor.map(|executor| executor.call_listener(self, target, priority, &topic)).transpose()?;
        let mut listener_job = job.map(ListenerJob::from);
        // Drops the former job without holding the lock.
        self.call_state(|state, _| state.set_listener_job(target, &mut listener_job))
    }

    /// Calls an endpoint's own listener for its pending statuses, on the executor to which it was
    /// moved.
    pub(crate) fn call_listener_of(&self, target: Target) -> Result<()> {
        loop {
            let mut state = self.enter()?;
            let Some(mut call) = state.take_call_for_other_executor(target) else { return Ok(()) };
            drop(state);
            let began = clock::now();
            call.listener.call(&call.entity, call.statuses);
            let ended = clock::now();
            let (state, left) = self.end_call(call, began, ended)?;
            // The driving thread may now have to call the listener, or to report an overrun.
            let wake = state.must_wake_for_calls();
            self.exit(state, wake)?;
            drop(left);
        }
    }

    /// Drives until a datagram is received or a listener called (returns true), or the deadline
    /// passes (returns false).
    pub(crate) fn drive(&self, now: Instant, deadline: Option<Instant>) -> Result<bool> {
        self.drive_until(now, deadline, None)
    }

    /// As [`drive`](Self::drive), but also returns true once the event count has left the ticket: a
    /// pass does not report progress made by timers.
    fn drive_until(
        &self,
        now: Instant,
        deadline: Option<Instant>,
        progress: Option<(&EventCount, Ticket)>,
    ) -> Result<bool> {
        let mut driving = self.enter()?.driving.take().unwrap_or_default();
        let scheduler = Scheduler { engines: &[self], job_queue: None };
        let mut drive = Drive::new(scheduler, &self.waker, &mut driving, now, deadline);
        let result = loop {
            match drive.pass() {
                Ok(Some(has_progress)) => {
                    self.waker.reset();
                    if has_progress || progress.is_some_and(|(count, ticket)| count.ticket() != ticket) {
                        break Ok(true);
                    }
                }
                Ok(None) => break Ok(false),
                Err(error) => break Err(error),
            }
        };
        self.enter()?.driving = Some(driving);
        result
    }

    /// Calls the most urgent pending listener, which may be that of the participant.
    fn call_first<'a>(&'a self, mut state: Guard<'a, State>) -> Result<()> {
        state.dispatching = true;
        let dispatching = Dispatching(self);
        let (mut state, left) = match state.next_call_priority() >= state.next_notification_priority() {
            true => self.call_next(state)?,
            false => self.notify_participant(state)?,
        };
        state.dispatching = false;
        std::mem::forget(dispatching);
        self.exit(state, false)?;
        drop(left);
        Ok(())
    }

    /// Calls the listener of the next pending call.
    fn call_next<'a>(&'a self, mut state: Guard<'a, State>) -> Result<(Guard<'a, State>, Dropped)> {
        let Some(mut call) = state.next_call() else { return Ok((state, Dropped::default())) };
        let began = state.job_recorder.began();
        drop(state);
        call.listener.call(&call.entity, call.statuses);
        let ended = clock::now();
        let (mut state, left) = self.end_call(call, began, ended)?;
        state.job_recorder.begin(ended);
        Ok((state, left))
    }

    /// Records a call and returns the listener to its slot. The caller drops the returned parts
    /// without holding the lock.
    fn end_call(&self, call: Call, began: Instant, ended: Instant) -> Result<(Guard<'_, State>, Dropped)> {
        let Call { target, priority, level, listener, version, entity, .. } = call;
        let owner = target.number();
        let run = Run { kind: JobKind::Callback, priority, owner, began_ns: began.0, ended_ns: ended.0 };
        let mut state = self.enter_to_run()?;
        state.count_call(target, &run);
        let left = state.end_call(target, level, listener, version);
        Ok((state, (left, Some(entity))))
    }

    /// Calls the participant's listener for the next pending event.
    fn notify_participant<'a>(&'a self, mut state: Guard<'a, State>) -> Result<(Guard<'a, State>, Dropped)> {
        let Some(event) = state.next_participant_event() else { return Ok((state, Dropped::default())) };
        let Some((mut listener, version)) = state.participant.take() else { return Ok((state, Dropped::default())) };
        drop(state);
        let reports_overrun = matches!(event, ParticipantEvent::BudgetOverrun(_));
        if let Listener::Participant(listener) = &mut listener {
            match event {
                ParticipantEvent::Discovered(guid) => listener.on_participant_discovered(guid),
                ParticipantEvent::Lost(guid) => listener.on_participant_lost(guid),
                ParticipantEvent::BudgetOverrun(status) => listener.on_budget_overrun(status),
            }
        }
        let mut state = self.enter_to_run()?;
        match reports_overrun {
            true => state.job_recorder.end_reporting(),
            false => state.job_recorder.end(JobKind::Callback, Priority::NORMAL),
        }
        let left = state.participant.put_back(listener, version);
        Ok((state, (left, None)))
    }

    /// Announces that the participant leaves, and closes it. Blocked calls end with
    /// [`Error::AlreadyDeleted`].
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

    /// Returns a guard that closes the participant if the calling thread panics.
    pub(crate) fn close_on_panic(&self) -> CloseOnPanic<'_> {
        CloseOnPanic(self)
    }

    /// Makes `thread` the driving thread.
    pub(crate) fn set_driving_thread(&self, thread: ThreadToken) {
        self.driving_thread.store(thread.to_bits(), Ordering::Relaxed);
    }

    /// Entry point of the receiving thread under `Runtime::Shared`: drives until the participant is
    /// closed.
    pub(crate) fn run(&self) {
        self.set_driving_thread(ThreadToken::of_driving_thread());
        let _closing = self.close_on_panic();
        let mut driving = Driving::default();
        loop {
            let scheduler = Scheduler { engines: &[self], job_queue: None };
            let mut drive = Drive::new(scheduler, &self.waker, &mut driving, clock::now(), None);
            let error = loop {
                match drive.pass() {
                    // This loses no wakeup: the cause of an earlier wakeup is seen before the next
                    // sleep.
                    Ok(_) => self.waker.reset(),
                    Err(error) => break error,
                }
            };
            if !matches!(error, Error::Transport(_)) {
                break;
            }
        }
    }
}

impl Drop for Engine {
    /// The last handle may have been dropped on a thread that may not enter. No other thread can
    /// access the state now.
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if !state.is_closed() {
            drop(state.close(clock::now()));
        }
    }
}

/// Parts of a call to be dropped without the lock: the listener if it was replaced meanwhile, and
/// the entity.
type Dropped = (Option<Listener>, Option<Entity>);

/// Guard of a listener call: resets the mark in the state afterwards, even if the listener panics.
struct Dispatching<'a>(&'a Engine);

impl Drop for Dispatching<'_> {
    fn drop(&mut self) {
        if let Ok(mut state) = self.0.enter() {
            state.dispatching = false;
        }
    }
}

/// Closes the participant if a listener panics, which ends the receiving thread. Otherwise the
/// participant would remain open without being driven.
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
