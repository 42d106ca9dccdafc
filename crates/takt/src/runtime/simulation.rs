//! The executor in virtual time: the scheduling loop of the product drives real participants, and jobs take what they are said to take.
//!
//! The product calls the functions of this module between jobs, at the end of each job, before it enters a participant, and instead of a
//! sleep; in a product build none of these calls exists. Each test has a world of its own, since a world belongs to its thread.
//!
//! Datagrams are carried by a [network in memory](network) and by shared memory as in the product. Calls of other threads hold a
//! participant's lock before the executor gets it, one call at each visit at most, as a lock with priority inheritance lets them.

mod end_to_end;
mod network;
mod report;
mod stand;
mod system;
mod tests;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use takt_core::{Instant, Priority};
use takt_exec::JobKind;
use takt_testkit::Random;

use super::engine::Engine;

thread_local! {
    /// The virtual time of this thread, in nanoseconds; `None` outside a world.
    static NOW: Cell<Option<u64>> = const { Cell::new(None) };
    static WORLD: RefCell<World> = RefCell::new(World::default());
}

/// What happens at a moment that was planned, and is told that moment.
type Action = Box<dyn FnMut(u64)>;

/// Calls of other threads into a participant.
struct Calls {
    hold_ns: u64,
    /// From the end of one call until the next one wants the lock.
    gap_ns: u64,
    due_ns: u64,
    call: Box<dyn FnMut()>,
}

/// What surrounds the executor.
#[derive(Default)]
struct World {
    /// Whether the executor under test runs, and not a participant around it.
    is_driving: bool,
    /// Planned moments, and which action each is for.
    plan: BinaryHeap<Reverse<(u64, usize)>>,
    actions: Vec<Option<Action>>,
    /// The job with whose begin the events of [`at_release`](Self::at_release) come.
    releases: Option<Releaser>,
    /// How long after that, and which action.
    at_release: Vec<(u64, usize)>,
    normal: NormalWait,
    /// How long jobs of the product take.
    costs: BTreeMap<(JobKindKey, Priority), u64>,
    /// Of these what a job takes is drawn, down to a half; `None`: all take longest.
    random: Option<Random>,
    /// By the participant that they are made into.
    calls: BTreeMap<EngineKey, Calls>,
    /// The executor sleeps no longer than until then.
    end_ns: u64,
    /// Events of the run that are done: of which flow, when they came, and when they were done.
    done: Vec<(usize, u64, u64)>,
    /// From when to when, what, of which priority.
    last_jobs: VecDeque<(u64, u64, &'static str, Priority)>,
}

impl World {
    /// Calls of other threads come from then on.
    fn call_from(&mut self, ns: u64) {
        self.calls.values_mut().for_each(|calls| calls.due_ns = ns);
    }
}

type JobKindKey = &'static str;

/// The address of a participant's engine, which stays where it is.
type EngineKey = usize;

fn key_of(engine: &Engine) -> EngineKey {
    std::ptr::from_ref(engine).addr()
}

/// A job at whose begin others may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Releaser {
    /// The job of the application below all others.
    Below,
    /// The listener or job of a flow.
    Flow(usize),
}

/// How long normal work waits while a datagram of normal priority is there.
#[derive(Debug, Default)]
struct NormalWait {
    /// A datagram was sent then, and no job of normal priority has ended since.
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

/// What another thread's call is called.
const LOCK: &str = "another thread holds the lock";

/// Jobs that are kept for a failure's text.
const LAST_JOBS: usize = 10_000;

/// A world on this thread, for as long as it lives.
pub(super) struct Here(());

impl Here {
    fn new() -> Self {
        NOW.set(Some(1_000_000_000));
        WORLD.take();
        Self(())
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        let world = WORLD.take();
        drop(world);
        NOW.set(None);
    }
}

/// The virtual time, in a world.
#[inline]
pub(crate) fn now() -> Option<Instant> {
    NOW.get().map(Instant)
}

fn now_ns() -> u64 {
    NOW.get().expect("in a world")
}

/// A job, or a wait for the lock, takes so long.
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

/// What ran between two moments, for a failure's text.
fn jobs_between(from: u64, to: u64) -> String {
    let meets = |(began, ended, ..): &&(u64, u64, &'static str, Priority)| *began < to && *ended > from;
    WORLD.with_borrow(|world| {
        let jobs = world.last_jobs.iter().filter(meets);
        jobs.map(|(began, ended, what, priority)| {
            format!("{} to {}: {what} {priority}\n", i128::from(*began) - i128::from(from), ended - from)
        })
        .collect()
    })
}

/// What something takes that takes `ns` at most.
fn cost(ns: u64) -> u64 {
    WORLD.with_borrow_mut(|world| world.random.as_mut().map_or(ns, |random| random.between(ns / 2, ns)))
}

/// A job of the executor has been done and is to be counted now.
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

/// A job begins: what waits for that comes just now.
fn release(by: Releaser) {
    WORLD.with_borrow_mut(|world| {
        if world.releases.take_if(|releaser| *releaser == by).is_some() {
            let from = now_ns() + 1;
            if !world.at_release.is_empty() {
                world.call_from(from);
            }
            world.plan.extend(world.at_release.drain(..).map(|(after, place)| Reverse((from + after, place))));
        }
    });
}

/// The executor looks for its next job: all that was planned until now has happened.
#[inline]
pub(crate) fn between_jobs() {
    let Some(now) = NOW.get() else { return };
    let next = || {
        WORLD.with_borrow_mut(|world| {
            let Reverse((at, place)) = world.plan.peek().copied().filter(|Reverse((at, _))| *at <= now)?;
            world.plan.pop();
            Some((at, place, world.actions[place].take()?))
        })
    };
    while let Some((at, place, mut action)) = next() {
        action(at);
        WORLD.with_borrow_mut(|world| world.actions[place] = Some(action));
    }
}

/// The executor enters a participant: a call of another thread that waits for the lock comes first.
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

/// The executor has nothing to do until then: time passes, at least until the next moment that was planned.
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
