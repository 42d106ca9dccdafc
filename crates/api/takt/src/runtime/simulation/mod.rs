//! Simulation of the executor in virtual time: the production scheduling loop drives real
//! participants, and jobs take specified times.
//!
//! Production code calls the functions of this module between jobs, at the end of each job, before
//! entering a participant, and instead of sleeping. These calls exist in test builds only. A world
//! belongs to the thread of its test, so each test has its own.
//!
//! A [network in memory](network) carries datagrams, and shared memory is used as in production.
//! Calls of other threads hold a participant's lock before the executor gets it, at most one call
//! for each entry, as a lock with priority inheritance permits.

mod end_to_end;
mod network;
mod report;
mod system;
mod test_bench;
mod tests;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use takt_core::{Instant, Priority};
use takt_schedule::JobKind;
use takt_testkit::Random;

use super::engine::Engine;

thread_local! {
    /// Virtual time of this thread in nanoseconds; `None` outside a world.
    static NOW: Cell<Option<u64>> = const { Cell::new(None) };
    static WORLD: RefCell<World> = RefCell::new(World::default());
}

/// Action of a planned event. Its argument is the planned time.
type Action = Box<dyn FnMut(u64)>;

/// Calls of other threads into a participant.
struct Calls {
    hold_ns: u64,
    /// Time from the end of one call until the next one requests the lock.
    gap_ns: u64,
    due_ns: u64,
    call: Box<dyn FnMut()>,
}

/// Environment of the executor.
#[derive(Default)]
struct World {
    /// The executor under test is running, and not a participant around it.
    is_driving: bool,
    /// Planned times, each with the index of its action.
    plan: BinaryHeap<Reverse<(u64, usize)>>,
    actions: Vec<Option<Action>>,
    /// Job whose start triggers the events of [`at_release`](Self::at_release).
    releases: Option<Releaser>,
    /// Delays after that start, each with the index of its action.
    at_release: Vec<(u64, usize)>,
    normal: NormalWait,
    /// Maximum execution times of the production jobs.
    costs: BTreeMap<(JobKindKey, Priority), u64>,
    /// Source of random execution times between half the maximum and the maximum. `None`: all jobs
    /// take the maximum.
    random: Option<Random>,
    /// Calls by the participant that they enter.
    calls: BTreeMap<EngineKey, Calls>,
    /// Latest time until which the executor sleeps.
    end_ns: u64,
    /// Completed events of the run: flow, arrival time and completion time.
    done: Vec<(usize, u64, u64)>,
    /// Recent jobs: start, end, name and priority.
    last_jobs: VecDeque<(u64, u64, &'static str, Priority)>,
}

impl World {
    /// Starts the calls of other threads at time `ns`.
    fn call_from(&mut self, ns: u64) {
        self.calls.values_mut().for_each(|calls| calls.due_ns = ns);
    }
}

type JobKindKey = &'static str;

/// Address of a participant's engine, which does not move.
type EngineKey = usize;

fn key_of(engine: &Engine) -> EngineKey {
    std::ptr::from_ref(engine).addr()
}

/// Job at whose start other events may arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Releaser {
    /// The application job below all others.
    Below,
    /// The listener or job of a flow.
    Flow(usize),
}

/// Waiting time of normal work while a datagram of normal priority is pending.
#[derive(Debug, Default)]
struct NormalWait {
    /// Send time of a datagram after which no job of normal priority has ended.
    since: Option<u64>,
    longest_ns: u64,
}

impl NormalWait {
    fn end(&mut self, now: u64) {
        if let Some(since) = self.since.take() {
            self.longest_ns = self.longest_ns.max(now - since);
        }
    }
}

/// Name of another thread's call in failure reports.
const LOCK: &str = "another thread holds the lock";

/// Number of jobs kept for failure reports.
const LAST_JOBS: usize = 10_000;

/// Guard during which this thread has a world.
pub(super) struct SimulationGuard(());

impl SimulationGuard {
    fn new() -> Self {
        NOW.set(Some(1_000_000_000));
        WORLD.take();
        Self(())
    }
}

impl Drop for SimulationGuard {
    fn drop(&mut self) {
        let world = WORLD.take();
        drop(world);
        NOW.set(None);
    }
}

/// Returns the virtual time; `None` outside a world.
#[inline]
pub(crate) fn now() -> Option<Instant> {
    NOW.get().map(Instant)
}

fn now_ns() -> u64 {
    NOW.get().expect("in a world")
}

/// Advances the virtual time by the duration of a job or of a wait for the lock.
fn take_time(what: &'static str, priority: Priority, ns: u64) {
    let began = now_ns();
    NOW.set(Some(began + ns));
    WORLD.with_borrow_mut(|world| {
        if world.last_jobs.len() == LAST_JOBS {
            world.last_jobs.pop_front();
        }
        world.last_jobs.push_back((began, began + ns, what, priority));
        if priority == Priority::NORMAL && what != LOCK {
            world.normal.end(began + ns);
        }
    });
}

/// Lists the jobs that ran between two times, for failure reports.
fn jobs_between(from: u64, to: u64) -> String {
    let overlaps = |(began, ended, ..): &&(u64, u64, &'static str, Priority)| *began < to && *ended > from;
    WORLD.with_borrow(|world| {
        let jobs = world.last_jobs.iter().filter(overlaps);
        jobs.map(|(began, ended, what, priority)| {
            format!("{} to {}: {what} {priority}\n", i128::from(*began) - i128::from(from), ended - from)
        })
        .collect()
    })
}

/// Returns the execution time of a job that takes at most `ns`.
fn cost(ns: u64) -> u64 {
    WORLD.with_borrow_mut(|world| world.random.as_mut().map_or(ns, |random| random.between(ns / 2, ns)))
}

/// Advances the time at the end of a job of the executor, before the job is recorded.
#[inline]
pub(crate) fn spend(kind: JobKind, priority: Priority) {
    if NOW.get().is_some() {
        let known =
            WORLD.with_borrow(|world| world.costs.get(&(kind.name(), priority)).copied().filter(|_| world.is_driving));
        if let Some(ns) = known {
            take_time(kind.name(), priority, cost(ns));
        }
    }
}

/// Starts a job: events that wait for its start arrive now.
fn release(by: Releaser) {
    WORLD.with_borrow_mut(|world| {
        if world.releases.take_if(|releaser| *releaser == by).is_some() {
            let from = now_ns() + 1;
            if !world.at_release.is_empty() {
                world.call_from(from);
            }
            world.plan.extend(world.at_release.drain(..).map(|(after, index)| Reverse((from + after, index))));
        }
    });
}

/// Runs the actions planned until now, before the executor selects its next job.
#[inline]
pub(crate) fn between_jobs() {
    let Some(now) = NOW.get() else { return };
    let next = || {
        WORLD.with_borrow_mut(|world| {
            let Reverse((at, index)) = world.plan.peek().copied().filter(|Reverse((at, _))| *at <= now)?;
            world.plan.pop();
            Some((at, index, world.actions[index].take()?))
        })
    };
    while let Some((at, index, mut action)) = next() {
        action(at);
        WORLD.with_borrow_mut(|world| world.actions[index] = Some(action));
    }
}

/// Lets a pending call of another thread hold the lock before the executor enters a participant.
#[inline]
pub(crate) fn before_lock(engine: &Engine) {
    let Some(now) = NOW.get() else { return };
    let key = key_of(engine);
    let due = WORLD.with_borrow_mut(|world| {
        let is_due = world.is_driving && world.calls.get(&key).is_some_and(|calls| calls.due_ns <= now);
        if is_due { world.calls.remove(&key) } else { None }
    });
    if let Some(mut calls) = due {
        take_time(LOCK, Priority::NORMAL, cost(calls.hold_ns));
        (calls.call)();
        calls.due_ns = now_ns() + calls.gap_ns;
        WORLD.with_borrow_mut(|world| world.calls.insert(key, calls));
    }
}

/// Advances the time of an idle executor to `until`, or to the next planned event if that is
/// earlier.
#[inline]
pub(crate) fn sleep(until: Option<Instant>) -> Option<Instant> {
    let now = NOW.get()?;
    let woken_at = WORLD.with_borrow_mut(|world| {
        let next = world.plan.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        until.map_or(u64::MAX, |until| until.0).min(next).min(world.end_ns).max(now)
    });
    NOW.set(Some(woken_at));
    Some(Instant(woken_at))
}
