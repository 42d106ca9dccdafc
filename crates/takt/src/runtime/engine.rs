//! One participant at run time: its state behind the lock, and everything that drives it.
//!
//! Under `Runtime::Inline` the application's thread drives it in whatever waits ([`drive`]); under
//! `Runtime::Shared` a thread of its own does. Calls of the application take the same way in both: enter, call the
//! core, send what it wants to send, leave.
//!
//! Invariant: listeners are called with the lock released and one at a time.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker as TaskWaker;

use takt_core::Instant;
use takt_transport::Scan;

use super::clock;
use super::driver::Driver;
use super::event_count::EventCount;
use super::guarded::{Guard, Guarded};
use super::listeners::{Call, Listener};
use super::poll::{PollSet, Ready, Waker};
use super::state::{ParticipantEvent, State, Target};
use super::tasks::TaskKey;
use super::thread_cell::ThreadToken;
use crate::{Error, Idle, Result, Runtime};

/// How long the receiving thread sleeps at most after something happened. No longer than it takes until the
/// first heartbeat, so that a `write` rarely has to wake the thread for a new timer.
pub(crate) const LINGER: std::time::Duration = std::time::Duration::from_millis(5);

/// Spinning turns between two looks at the clock for the caller's deadline.
const TURNS_PER_DEADLINE_CHECK: u32 = 4;

/// A participant at run time.
pub(crate) struct Engine {
    state: Guarded<State>,
    pub(crate) runtime: Runtime,
    pub(crate) idle: Idle,
    /// Wakes who drives.
    pub(crate) waker: Waker,
    /// The thread that drives: the one that built it, or the receiving thread once it runs.
    pump_thread: AtomicU64,
}

impl Engine {
    pub(crate) fn new(runtime: Runtime, idle: Idle, driver: Driver) -> Result<Self> {
        let pump_thread = match runtime {
            Runtime::Inline => ThreadToken::current(),
            Runtime::Shared => ThreadToken::NONE,
        };
        Ok(Self {
            state: Guarded::new(runtime, State::new(runtime, driver)),
            runtime,
            idle,
            waker: Waker::new()?,
            pump_thread: AtomicU64::new(pump_thread.to_bits()),
        })
    }

    pub(crate) fn enter(&self) -> Result<Guard<'_, State>> {
        self.state.enter()
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
        let wake = state.settle(now);
        self.leave(state, wake)?;
        result
    }

    /// Ends a visit: wakes whom it concerns, with the lock released.
    fn leave<'a>(&'a self, mut state: Guard<'a, State>, wake: bool) -> Result<()> {
        if !state.woken.is_empty() {
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
        while let Some(task) = state.woken.pop() {
            drop(state);
            task.wake();
            state = self.enter()?;
        }
        Ok(state)
    }

    /// Reads or takes samples, and passes on what that causes. Sending is up to `read`.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&mut State) -> Result<R>) -> Result<R> {
        let mut state = self.enter()?;
        let result = read(&mut state);
        let wake = state.settle_read();
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
                return Err(Error::Timeout);
            }
            if self.is_pump_thread() {
                self.pump(now, deadline)?;
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
        Ok(self.idle != Idle::Block && self.turn(Scan::Hot, Ready::ALL, Instant(0))?)
    }

    /// One pass of [`State::turn`], then the listeners. Says whether there may be more to do at once.
    fn turn(&self, scan: Scan, ready: Ready, now: Instant) -> Result<bool> {
        let mut state = self.enter()?;
        let more = state.turn(scan, ready, now)?;
        if !state.woken.is_empty() {
            state = self.wake_tasks(state)?;
        }
        let calls = state.has_calls();
        if calls {
            state.dispatching = true;
            let first = state.next_call();
            drop(state);
            self.dispatch(first)?;
        }
        Ok(more || calls)
    }

    /// Drives until something was received or a listener called, or the deadline has come. Says which.
    pub(crate) fn pump(&self, now: Instant, deadline: Option<Instant>) -> Result<bool> {
        let mut set = std::mem::take(&mut self.enter()?.poll_set);
        let result = drive(&[self], &self.waker, &mut set, now, deadline, |progress| {
            self.waker.reset();
            progress
        });
        self.enter()?.poll_set = set;
        result
    }

    /// Calls the listeners of everything that has changed, beginning with `next`. The state is marked as dispatching.
    fn dispatch(&self, mut next: Option<Call>) -> Result<()> {
        let _dispatching = Dispatching(self);
        while let Some(mut call) = next {
            call.listener.call(&call.entity, call.statuses);
            let Call { target, level, listener, version, entity, .. } = call;
            let mut state = self.enter()?;
            let left = state.end_call(target, level, listener, version);
            next = state.next_call();
            drop(state);
            drop((left, entity));
        }
        self.dispatch_participant_events()
    }

    fn dispatch_participant_events(&self) -> Result<()> {
        loop {
            let mut state = self.enter()?;
            let Some(event) = state.participant_events.pop_front() else { return Ok(()) };
            let Some((mut listener, version)) = state.participant.take() else { continue };
            drop(state);
            if let Listener::Participant(listener) = &mut listener {
                match event {
                    ParticipantEvent::Discovered(guid) => listener.on_participant_discovered(guid),
                    ParticipantEvent::Lost(guid) => listener.on_participant_lost(guid),
                }
            }
            let left = self.enter()?.participant.put_back(listener, version);
            drop(left);
        }
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

    /// The receiving thread under `Runtime::Shared`: drives until the participant is closed.
    pub(crate) fn run(&self) {
        self.pump_thread.store(ThreadToken::current().to_bits(), Ordering::Relaxed);
        let _closing = CloseOnPanic(self);
        let mut set = PollSet::default();
        loop {
            // Resetting the waker here misses nothing: what it was woken for is seen before the next sleep.
            let result = drive(&[self], &self.waker, &mut set, clock::now(), None, |_| {
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
struct CloseOnPanic<'a>(&'a Engine);

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

/// Drives the participants until `done` says so or the deadline has come (then `false`). `done` is asked after each
/// pass, with whether anything happened in it. `waker` ends a sleep early; resetting it is up to the caller.
///
/// Sleeps on all their descriptors when there is nothing to do, unless one of them is to spin, or still is. What was taken
/// from the kernel is looked at before each sleep; the sockets only if they were found busy, since the sleep looks at them too.
pub(crate) fn drive<E: Deref<Target = Engine>>(
    engines: &[E],
    waker: &Waker,
    set: &mut PollSet,
    mut now: Instant,
    deadline: Option<Instant>,
    mut done: impl FnMut(bool) -> bool,
) -> Result<bool> {
    let idle = engines.iter().fold(Idle::Block, |idle, engine| idle.and(engine.idle));
    let first_scan = |set: &PollSet, spins: bool| match (spins, set.is_busy()) {
        (true, _) => Scan::Hot,
        (false, true) => Scan::All,
        (false, false) => Scan::Taken,
    };
    let mut spins_until = idle.spins_until(now);
    let mut scan = first_scan(set, now < spins_until);
    // Which descriptors may be readable.
    let mut ready = Ready::ALL;
    let mut turns = 0_u32;
    // Since the last look at the clock.
    let mut progress = false;
    loop {
        let mut happened = false;
        for engine in engines {
            happened |= engine.turn(scan, ready, now)?;
        }
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
        if !spins {
            now = sleep(engines, waker, set, now, deadline)?;
            (scan, ready) = (Scan::All, set.ready());
        } else if now >= spins_until {
            scan = first_scan(set, false);
        }
    }
}

/// Sleeps until one of the participants has something to do, the waker is woken, or the deadline has come. Returns the
/// time.
fn sleep<E: Deref<Target = Engine>>(
    engines: &[E],
    waker: &Waker,
    set: &mut PollSet,
    now: Instant,
    deadline: Option<Instant>,
) -> Result<Instant> {
    set.clear();
    let mut until = deadline;
    for engine in engines {
        let linger = (engine.runtime == Runtime::Shared).then(|| now.after(LINGER));
        let due = engine.enter()?.prepare_sleep(set, now, linger)?;
        until = [until, due].into_iter().flatten().min();
    }
    waker.sleep(set, now, until)?;
    let woken_at = clock::now();
    set.slept(woken_at.since(now));
    Ok(woken_at)
}
