//! A thread that runs participants and jobs of the application by priority, one at a time.
//!
//! Each job is bounded by what it does, and is never interrupted by another one of the same executor: an urgent job waits for at most
//! the one that is running. What must not wait for a long job goes to an executor of its own: whole participants
//! ([`DomainParticipantBuilder::executor`](crate::DomainParticipantBuilder::executor)), or the listener of one reader
//! ([`AnyDataReader::run_listener_on`](crate::AnyDataReader::run_listener_on)).

mod agenda;
mod task;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak, mpsc};
use std::thread::JoinHandle;

use takt_exec::report::{self, JobAccount};
use takt_exec::{JobClass, JobKind, Priority, ThreadSettings};
use takt_transport::TransportError;

pub(crate) use agenda::Agenda;
pub use agenda::{JOBS_MAX, JobStatistics};
use agenda::{JobId, NewJob, Recurrence};
use task::TaskWork;

use crate::participant::VERSION;
use crate::runtime::clock;
use crate::runtime::drive::{Driving, drive};
use crate::runtime::engine::Engine;
use crate::runtime::event_count::EventCount;
use crate::runtime::pi_mutex::PiMutex;
use crate::runtime::poll::Waker;
use crate::runtime::scheduler::Scheduler;
use crate::runtime::state::Target;
use crate::runtime::thread_cell::ThreadToken;
use crate::{Duration, Error, Idle, Result, Runtime};

const UNDISTURBED: &str = "no code of others runs under this lock";

/// What an executor is to be.
#[derive(Clone, Debug, Default)]
pub struct ExecutorBuilder {
    name: String,
    idle: Idle,
    thread_settings: ThreadSettings,
}

impl ExecutorBuilder {
    /// What its thread does while there is nothing to do; a participant that is to spin makes it spin too.
    #[must_use]
    pub fn idle(mut self, idle: Idle) -> Self {
        self.idle = idle;
        self
    }

    /// How its thread is scheduled, and where.
    #[must_use]
    pub fn thread_settings(mut self, settings: ThreadSettings) -> Self {
        self.thread_settings = settings;
        self
    }

    /// Starts its thread, which has the executor's name. It ends with the last handle, the last [`Job`] and the last participant.
    ///
    /// # Errors
    /// [`Error::Transport`] for a thread and [`Error::RealTime`] for settings that the machine refuses, [`Error::BadParameter`] for a
    /// name with a zero octet.
    pub fn start(self) -> Result<Executor> {
        if self.name.contains('\0') {
            return Err(Error::BadParameter {
                what: format!("name of an executor {:?}: it has a zero octet", self.name),
            });
        }
        let name = if self.name.is_empty() { "takt-exec".to_owned() } else { self.name };
        let shared = Arc::new(Shared::new(name.clone(), self.idle)?);
        let (tell, told) = mpsc::sync_channel(1);
        let (settings, running) = (self.thread_settings, Arc::clone(&shared));
        let run = move || {
            let applied = settings.apply();
            let is_ready = applied.is_ok();
            running.thread.store(ThreadToken::of_driving_thread().to_bits(), Ordering::Relaxed);
            if tell.send(applied).is_ok() && is_ready {
                running.run();
            }
        };
        // The kernel keeps 15 octets of a name.
        let thread = std::thread::Builder::new().name(name.chars().take(15).collect()).spawn(run);
        let thread = thread.map_err(|source| TransportError::new("start", format!("thread {name}"), source))?;
        told.recv().expect("the thread tells before it ends")?;
        let life = Some(Arc::new(Life(Arc::clone(&shared))));
        Ok(Executor { inner: Arc::new(Inner { shared, life, thread: Some(thread) }) })
    }
}

/// A thread that runs participants and jobs of the application by priority. Handles are clones of one another.
///
/// ```no_run
/// # use std::time::Duration;
/// # use takt::real_time::{Priority, Scheduling, ThreadSettings};
/// let settings = ThreadSettings { scheduling: Some(Scheduling::Fifo(80)), cpus: vec![1], ..ThreadSettings::default() };
/// let executor = takt::Executor::builder("control").thread_settings(settings).start()?;
/// let participant = takt::DomainParticipant::builder(0).executor(&executor).build()?;
/// let loop_job = executor.every(Duration::from_millis(1), Priority::new(50), "control loop", || { /* ... */ })?;
/// # Ok::<(), takt::Error>(())
/// ```
#[derive(Clone)]
pub struct Executor {
    inner: Arc<Inner>,
}

/// What handles share.
struct Inner {
    shared: Arc<Shared>,
    /// `None` while this is dropped.
    life: Option<Arc<Life>>,
    thread: Option<JoinHandle<()>>,
}

/// What handles and jobs share; the thread ends with it.
struct Life(Arc<Shared>);

/// What the thread shares with handles.
struct Shared {
    name: String,
    waker: Arc<Waker>,
    agenda: Agenda,
    engines: PiMutex<Vec<Weak<Engine>>>,
    /// Counts the changes of `engines`.
    edition: AtomicU64,
    /// The thread's [`ThreadToken`].
    thread: AtomicU64,
    /// Notified after each pass.
    passed: EventCount,
    is_stopped: AtomicBool,
    /// The thread runs no more.
    has_ended: AtomicBool,
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").finish_non_exhaustive()
    }
}

impl Executor {
    /// Prepares an executor whose thread has this name, of which the kernel keeps 15 octets.
    #[must_use]
    pub fn builder(name: &str) -> ExecutorBuilder {
        ExecutorBuilder { name: name.to_owned(), ..ExecutorBuilder::default() }
    }

    /// Its name, whole.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.shared.name
    }

    /// Writes what the jobs of all its participants took by kind and priority, and those of the application by name, as JSON, for
    /// `takt analyze --measured`. The longest [`LockHold`](JobKind::LockHold) is the sum of those of its participants. Waits for the job that a participant is at.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_job_accounts(&self, out: impl io::Write) -> io::Result<()> {
        let engines = self.inner.shared.engines.lock().expect(UNDISTURBED).clone();
        let mut classes: Vec<JobClass> = Vec::new();
        let mut participants = 0;
        for engine in engines.iter().filter_map(Weak::upgrade) {
            participants += 1;
            // Whoever is closed has no jobs any more.
            let told = engine.look_at_state(|state| Ok(state.ledger.accounts.classes().to_vec()));
            for class in told.unwrap_or_default() {
                match classes.iter_mut().find(|known| (known.kind, known.priority) == (class.kind, class.priority)) {
                    // A job may have to wait for the locks of all participants.
                    Some(known) if class.kind == JobKind::LockHold => {
                        let sum_ns = known.durations.max_ns().saturating_add(class.durations.max_ns());
                        known.durations.merge(&class.durations);
                        known.durations.record(sum_ns);
                    }
                    Some(known) => known.durations.merge(&class.durations),
                    None => classes.push(class),
                }
            }
        }
        let of_application = self.inner.shared.agenda.all_statistics();
        let named = of_application.iter().map(|job| JobAccount {
            kind: JobKind::Application,
            name: Some(&job.name),
            priority: job.priority,
            durations: &job.durations,
        });
        report::write_accounts(
            out,
            (self.name(), participants),
            VERSION,
            classes.iter().map(JobAccount::from).chain(named),
        )
    }

    /// Runs `work` every `period`, the first time one period from now, as long as the [`Job`] lives. A release that finds the one
    /// before it still waiting is left out and counted.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for a period that is zero, negative or infinite, [`Error::OutOfResources`] beyond [`JOBS_MAX`] jobs, [`Error::PreconditionNotMet`]
    /// once the executor [has ended](Self::has_ended).
    pub fn every(
        &self,
        period: impl Into<Duration>,
        priority: Priority,
        name: &str,
        work: impl FnMut() + Send + 'static,
    ) -> Result<Job> {
        let period = clock::not_negative("a period", period)?;
        let what = || format!("a period of {period}: a job needs one that is finite and longer than zero");
        let period_ns = period.as_nanos().filter(|period_ns| *period_ns > 0);
        let period_ns = period_ns.ok_or_else(|| Error::BadParameter { what: what() })?;
        self.add(priority, name, Recurrence::Every(period_ns), Box::new(work))
    }

    /// Runs `work` once for each time, or several, that the job is [triggered](Job::trigger), as long as it lives.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] beyond [`JOBS_MAX`] jobs, [`Error::PreconditionNotMet`] once the executor has ended.
    pub fn on_event(&self, priority: Priority, name: &str, work: impl FnMut() + Send + 'static) -> Result<Job> {
        self.add(priority, name, Recurrence::OnEvent, Box::new(work))
    }

    /// Runs a future: each poll is a job, the first one at once, as long as the [`Job`] lives or until it is ready.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] beyond [`JOBS_MAX`] jobs, [`Error::PreconditionNotMet`] once the executor has ended.
    pub fn spawn(
        &self,
        priority: Priority,
        name: &str,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Job> {
        let work = TaskWork::new(future);
        let waker = work.waker_slot();
        let job = self.add(priority, name, Recurrence::OnEvent, work.into_work())?;
        waker.set(job.waker());
        job.trigger();
        Ok(job)
    }

    /// A job that calls an endpoint's listener.
    pub(crate) fn call_listener(
        &self,
        engine: &Arc<Engine>,
        target: Target,
        priority: Priority,
        topic: &str,
    ) -> Result<Job> {
        if engine.runtime == Runtime::Inline {
            return Err(Error::IllegalOperation { what: "under Runtime::Inline the participant has one thread" });
        }
        let engine = Arc::downgrade(engine);
        self.on_event(priority, topic, move || {
            let Some(engine) = engine.upgrade() else { return };
            let _closing = engine.close_on_panic();
            let called = engine.call_listener_of(target);
            debug_assert!(matches!(called, Ok(()) | Err(Error::AlreadyDeleted)), "the lock is free: {called:?}");
        })
    }

    fn add(&self, priority: Priority, name: &str, recurrence: Recurrence, work: agenda::Work) -> Result<Job> {
        self.check_lives()?;
        let life = self.inner.life.as_ref().expect("it is taken when this is dropped");
        let new = NewJob { name: name.to_owned(), priority, recurrence, work };
        let id = life.0.agenda.add(new, clock::now())?;
        life.0.waker.wake();
        Ok(Job { life: Arc::clone(life), id })
    }

    /// Whether its thread has ended since a job or a listener panicked: then its participants are closed, and its jobs run no more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.inner.shared.has_ended.load(Ordering::Acquire)
    }

    fn check_lives(&self) -> Result<()> {
        match self.has_ended() {
            true => Err(Error::PreconditionNotMet {
                what: "a job or listener of the executor panicked: it has ended".into(),
            }),
            false => Ok(()),
        }
    }

    /// What runs participants beside jobs: an engine's waker is the executor's.
    pub(crate) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.inner.shared.waker)
    }

    /// Waits until what runs now has ended, unless the calling thread is one that drives: two that wait for each other would do so
    /// for ever.
    pub(crate) fn wait_for_pass(&self) {
        let shared = &self.inner.shared;
        let ticket = shared.passed.ticket();
        shared.waker.wake();
        while !ThreadToken::drives() && shared.passed.ticket() == ticket && !self.has_ended() {
            shared.passed.wait(ticket, clock::now(), None);
        }
    }

    /// Drives a participant from now on, as long as it lives.
    pub(crate) fn drive(&self, engine: &Arc<Engine>) -> Result<()> {
        let shared = &self.inner.shared;
        let mut engines = shared.engines.lock().expect(UNDISTURBED);
        self.check_lives()?;
        engine.belong_to(ThreadToken::of_bits(shared.thread.load(Ordering::Relaxed)));
        engines.retain(|known| known.strong_count() > 0);
        engines.push(Arc::downgrade(engine));
        drop(engines);
        shared.edition.fetch_add(1, Ordering::Release);
        shared.waker.wake();
        Ok(())
    }
}

/// What a simulation drives: without a thread.
#[cfg(test)]
impl Executor {
    /// One that the calling thread drives by [`drive_until`](Self::drive_until).
    pub(crate) fn unthreaded(name: &str) -> Result<Self> {
        let shared = Arc::new(Shared::new(name.to_owned(), Idle::Block)?);
        shared.thread.store(ThreadToken::of_driving_thread().to_bits(), Ordering::Relaxed);
        let life = Some(Arc::new(Life(Arc::clone(&shared))));
        Ok(Self { inner: Arc::new(Inner { shared, life, thread: None }) })
    }

    /// The first participant becomes the last one.
    pub(crate) fn rotate(&self) {
        let shared = &self.inner.shared;
        let mut engines = shared.engines.lock().expect(UNDISTURBED);
        engines.rotate_left(1);
        shared.edition.fetch_add(1, Ordering::Release);
    }

    /// Drives until `is_done`, which is asked after each pass.
    pub(crate) fn drive_until(&self, driving: &mut Driving, mut is_done: impl FnMut() -> bool) {
        while !is_done() {
            let driven = self.inner.shared.round(driving, &mut is_done);
            assert!(driven.is_ok(), "{driven:?}");
        }
    }
}

impl Shared {
    fn new(name: String, idle: Idle) -> Result<Self> {
        Ok(Self {
            name,
            waker: Arc::new(Waker::new()?),
            agenda: Agenda::new(idle),
            engines: PiMutex::new(Vec::new()),
            edition: AtomicU64::new(0),
            thread: AtomicU64::new(ThreadToken::NONE.to_bits()),
            passed: EventCount::new(),
            is_stopped: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        })
    }

    /// The thread.
    fn run(&self) {
        let mut driving = Driving::default();
        let _ending = Ending(self);
        while !self.is_stopped.load(Ordering::Acquire) {
            if self.round(&mut driving, || false).is_err() {
                break;
            }
        }
    }

    /// Drives until participants have come or gone, or `is_done`, or it is stopped.
    fn round(&self, driving: &mut Driving, mut is_done: impl FnMut() -> bool) -> Result<()> {
        let edition = self.edition.load(Ordering::Acquire);
        let engines = self.engines.lock().expect(UNDISTURBED).clone();
        let mut living: Vec<Arc<Engine>> = engines.iter().filter_map(Weak::upgrade).collect();
        living.retain(|engine| engine.enter().is_ok_and(|state| !state.is_closed()));
        let scheduler = Scheduler { engines: &living, agenda: Some(&self.agenda) };
        // Resetting the waker here misses nothing: what it was woken for is seen before the next sleep.
        let ended = drive(&scheduler, &self.waker, driving, clock::now(), None, |_| {
            self.waker.reset();
            self.passed.notify();
            is_done()
                || self.is_stopped.load(Ordering::Acquire)
                || self.edition.load(Ordering::Acquire) != edition
                || living.iter().any(|engine| Arc::strong_count(engine) == 1)
        });
        match ended {
            Ok(_) | Err(Error::AlreadyDeleted | Error::Transport(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Ends what the thread has driven when it ends, even by a panic of a job or listener: without it the participants would only pretend
/// to live.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut engines = self.0.engines.lock().expect(UNDISTURBED);
        self.0.has_ended.store(true, Ordering::Release);
        let engines = std::mem::take(&mut *engines);
        for engine in engines.iter().filter_map(Weak::upgrade) {
            let closed = engine.close();
            debug_assert!(
                matches!(closed, Ok(()) | Err(Error::AlreadyDeleted)),
                "jobs run with the lock released: {closed:?}"
            );
        }
        self.0.passed.notify();
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.0.is_stopped.store(true, Ordering::Release);
        self.0.waker.wake();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Who drives does not wait for another who may wait for it; and while there are jobs the thread goes on.
        let is_last = self.life.take().and_then(Arc::into_inner).is_some();
        if let Some(thread) = self.thread.take().filter(|_| is_last && !ThreadToken::drives()) {
            // A job that panicked has told so.
            drop(thread.join());
        }
    }
}

/// A job of the application, which keeps its executor. It ends when this is dropped; a run that has begun is completed.
pub struct Job {
    life: Arc<Life>,
    id: JobId,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Job {
    /// Has it run once more. If it waits already, one run serves both. Any thread may call this.
    pub fn trigger(&self) {
        if self.life.0.agenda.trigger(self.id, clock::now()) {
            self.life.0.waker.wake();
        }
    }

    /// Sets how long one run may take; [`Duration::INFINITE`], as is the default: as long as it takes. `suspends`: a job that takes
    /// longer runs no more, until it is [resumed](Self::resume).
    ///
    /// # Errors
    /// [`Error::BadParameter`] for a negative budget.
    pub fn set_budget(&self, budget: impl Into<Duration>, suspends: bool) -> Result<()> {
        let budget_ns = clock::not_negative("a budget", budget)?.as_nanos();
        self.life.0.agenda.set_budget(self.id, budget_ns, suspends);
        Ok(())
    }

    /// Lets it run again.
    pub fn resume(&self) {
        self.life.0.agenda.resume(self.id);
        self.life.0.waker.wake();
    }

    /// How often it ran, how long that took, and how late it was.
    #[must_use]
    pub fn statistics(&self) -> JobStatistics {
        self.life.0.agenda.statistics(self.id)
    }

    /// Something that triggers it, for as long as it lives.
    pub(crate) fn waker(&self) -> std::task::Waker {
        task::waker(Arc::downgrade(&self.life.0), self.id)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let work = self.life.0.agenda.remove(self.id);
        drop(work);
    }
}
