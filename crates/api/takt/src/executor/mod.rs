//! Executor: a thread that runs participants and application jobs by priority, one at a time.
//!
//! Scheduling is non-preemptive: an urgent job waits for at most one running job of the same
//! executor. Work that must not wait for a long job needs its own executor. An executor runs whole
//! participants ([`DomainParticipantBuilder::executor`](crate::DomainParticipantBuilder::executor))
//! or the listener of one reader
//! ([`AnyDataReader::run_listener_on`](crate::AnyDataReader::run_listener_on)).

mod job_queue;
mod task;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak, mpsc};
use std::thread::JoinHandle;

use takt_exec::ThreadSettings;
use takt_exec::report::{self, JobStatisticsRow};
use takt_schedule::{JobClass, JobKind, Priority};
use takt_transport::TransportError;

pub(crate) use job_queue::JobQueue;
pub use job_queue::{JOBS_MAX, JobStatistics};
use job_queue::{JobId, NewJob, Recurrence};
use task::TaskWork;

use crate::participant::VERSION;
use crate::runtime::clock;
use crate::runtime::drive::{Drive, Driving};
use crate::runtime::engine::Engine;
use crate::runtime::event_count::EventCount;
use crate::runtime::pi_mutex::PiMutex;
use crate::runtime::poll::Waker;
use crate::runtime::scheduler::Scheduler;
use crate::runtime::state::Target;
use crate::runtime::thread_cell::ThreadToken;
use crate::{Duration, Error, Idle, Result, Runtime};

const UNDISTURBED: &str = "the lock is not poisoned: no user code runs under it";

/// Configuration of an [`Executor`].
#[derive(Clone, Debug, Default)]
pub struct ExecutorBuilder {
    name: String,
    idle: Idle,
    thread_settings: ThreadSettings,
}

impl ExecutorBuilder {
    /// Sets how the thread waits while no job is ready. If a participant of the executor is to
    /// spin, the thread spins in any case.
    #[must_use]
    pub fn idle(mut self, idle: Idle) -> Self {
        self.idle = idle;
        self
    }

    /// Sets scheduling policy, CPUs and further settings of the thread.
    #[must_use]
    pub fn thread_settings(mut self, settings: ThreadSettings) -> Self {
        self.thread_settings = settings;
        self
    }

    /// Starts the thread, which has the executor's name. It ends when the last handle, the last
    /// [`Job`] and the last participant are dropped.
    ///
    /// # Errors
    /// [`Error::Transport`] if the thread cannot be started, [`Error::RealTime`] if the operating
    /// system refuses a thread setting, [`Error::BadParameter`] if the name contains a zero octet.
    pub fn start(self) -> Result<Executor> {
        if self.name.contains('\0') {
            return Err(Error::bad_parameter(format!("executor name {:?} contains a NUL byte", self.name)));
        }
        let name = if self.name.is_empty() { "takt-exec".to_owned() } else { self.name };
        let shared = Arc::new(Shared::new(name.clone(), self.idle)?);
        let (start_sender, start_receiver) = mpsc::sync_channel(1);
        let (settings, running) = (self.thread_settings, Arc::clone(&shared));
        let run = move || {
            let applied = settings.apply();
            let is_ready = applied.is_ok();
            running.thread.store(ThreadToken::of_driving_thread().to_bits(), Ordering::Relaxed);
            if start_sender.send(applied).is_ok() && is_ready {
                running.run();
            }
        };
        // The kernel limits thread names to 15 octets.
        let thread = std::thread::Builder::new().name(name.chars().take(15).collect()).spawn(run);
        let thread = thread.map_err(|source| TransportError::new("start", format!("thread {name}"), source))?;
        start_receiver.recv().expect("the thread reports its result before it ends")?;
        let lifetime = Some(Arc::new(Lifetime(Arc::clone(&shared))));
        Ok(Executor { inner: Arc::new(Inner { shared, lifetime, thread: Some(thread) }) })
    }
}

/// Thread that runs participants and application jobs by priority. Clones refer to the same
/// executor.
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

/// State shared by the handles.
struct Inner {
    shared: Arc<Shared>,
    /// `None` only during drop.
    lifetime: Option<Arc<Lifetime>>,
    thread: Option<JoinHandle<()>>,
}

/// State shared by handles and jobs. Dropping it ends the thread.
struct Lifetime(Arc<Shared>);

/// State shared by the thread and the handles.
struct Shared {
    name: String,
    waker: Arc<Waker>,
    job_queue: JobQueue,
    engines: PiMutex<Vec<Weak<Engine>>>,
    /// Number of changes of `engines`.
    generation: AtomicU64,
    /// [`ThreadToken`] of the thread.
    thread: AtomicU64,
    /// Notified after each scheduling round.
    run_completed: EventCount,
    is_stopped: AtomicBool,
    /// The thread has ended.
    has_ended: AtomicBool,
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").finish_non_exhaustive()
    }
}

impl Executor {
    /// Configures an executor. Its thread has this name, of which the kernel keeps 15 octets.
    #[must_use]
    pub fn builder(name: &str) -> ExecutorBuilder {
        ExecutorBuilder { name: name.to_owned(), ..ExecutorBuilder::default() }
    }

    /// Returns the full name of the executor.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.shared.name
    }

    /// Writes execution time statistics as JSON, for `takt analyze --measured`. Jobs of the
    /// participants are grouped by kind and priority, application jobs by name. The longest
    /// [`LockHold`](JobKind::LockHold) is the sum of the longest ones of the participants. Blocks
    /// while a participant executes a job.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write_job_statistics(&self, out: impl io::Write) -> io::Result<()> {
        let engines = self.inner.shared.engines.lock().expect(UNDISTURBED).clone();
        let mut classes: Vec<JobClass> = Vec::new();
        let mut participants = 0;
        for engine in engines.iter().filter_map(Weak::upgrade) {
            participants += 1;
            // A closed participant has no statistics.
            let of_engine = engine.enter().map(|state| state.job_recorder.statistics.classes().to_vec());
            for class in of_engine.unwrap_or_default() {
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
        let of_application = self.inner.shared.job_queue.all_statistics();
        let named = of_application.iter().map(|job| JobStatisticsRow {
            kind: JobKind::Application,
            name: Some(&job.name),
            priority: job.priority,
            durations: &job.durations,
        });
        report::write_report(
            out,
            (self.name(), participants),
            VERSION,
            classes.iter().map(JobStatisticsRow::from).chain(named),
        )
    }

    /// Runs `work` periodically as long as the [`Job`] exists, the first time one period from now.
    /// A release is skipped and counted if the previous one is still pending.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for a period that is zero, negative or infinite,
    /// [`Error::OutOfResources`] beyond [`JOBS_MAX`] jobs, [`Error::PreconditionNotMet`] once the
    /// executor [has ended](Self::has_ended).
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
        let period_ns = period_ns.ok_or_else(|| Error::bad_parameter(what()))?;
        self.add(priority, name, Recurrence::Every(period_ns), Box::new(work))
    }

    /// Runs `work` when the job is [triggered](Job::trigger), as long as the [`Job`] exists.
    /// Several triggers before a run cause a single run.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] beyond [`JOBS_MAX`] jobs, [`Error::PreconditionNotMet`] once the
    /// executor has ended.
    pub fn on_event(&self, priority: Priority, name: &str, work: impl FnMut() + Send + 'static) -> Result<Job> {
        self.add(priority, name, Recurrence::OnEvent, Box::new(work))
    }

    /// Runs a future. Each poll is one run of the job; the first is pending immediately. Polling
    /// ends when the future is ready or the [`Job`] is dropped.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] beyond [`JOBS_MAX`] jobs, [`Error::PreconditionNotMet`] once the
    /// executor has ended.
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

    /// Adds a job that calls the listener of an endpoint.
    pub(crate) fn call_listener(
        &self,
        engine: &Arc<Engine>,
        target: Target,
        priority: Priority,
        topic: &str,
    ) -> Result<Job> {
        if engine.runtime == Runtime::Inline {
            return Err(Error::IllegalOperation { what: "Runtime::Inline supports no listeners on an executor" });
        }
        let engine = Arc::downgrade(engine);
        self.on_event(priority, topic, move || {
            let Some(engine) = engine.upgrade() else { return };
            let _closing = engine.close_on_panic();
            let called = engine.call_listener_of(target);
            debug_assert!(matches!(called, Ok(()) | Err(Error::AlreadyDeleted)), "the lock is released: {called:?}");
        })
    }

    fn add(&self, priority: Priority, name: &str, recurrence: Recurrence, work: job_queue::Work) -> Result<Job> {
        self.check_running()?;
        let lifetime = self.inner.lifetime.as_ref().expect("only drop takes it");
        let new = NewJob { name: name.to_owned(), priority, recurrence, work };
        let id = lifetime.0.job_queue.add(new, clock::now())?;
        lifetime.0.waker.wake();
        Ok(Job { lifetime: Arc::clone(lifetime), id })
    }

    /// Reports whether the thread has ended because a job or listener panicked. The executor's
    /// participants are then closed, and its jobs no longer run.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.inner.shared.has_ended.load(Ordering::Acquire)
    }

    fn check_running(&self) -> Result<()> {
        match self.has_ended() {
            true => Err(Error::PreconditionNotMet {
                what: "the executor has ended: one of its jobs or listeners panicked".into(),
            }),
            false => Ok(()),
        }
    }

    /// Returns the waker of the thread, which the engines of its participants use as well.
    pub(crate) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.inner.shared.waker)
    }

    /// Waits until the current scheduling round has ended. Returns immediately on a driving thread:
    /// two such threads that wait for each other would deadlock.
    pub(crate) fn wait_for_run(&self) {
        let shared = &self.inner.shared;
        let ticket = shared.run_completed.ticket();
        shared.waker.wake();
        while !ThreadToken::drives() && shared.run_completed.ticket() == ticket && !self.has_ended() {
            shared.run_completed.wait(ticket, clock::now(), None);
        }
    }

    /// Drives a participant from now on, until it is closed.
    pub(crate) fn drive(&self, engine: &Arc<Engine>) -> Result<()> {
        let shared = &self.inner.shared;
        let mut engines = shared.engines.lock().expect(UNDISTURBED);
        self.check_running()?;
        engine.set_driving_thread(ThreadToken::of_bits(shared.thread.load(Ordering::Relaxed)));
        engines.retain(|known| known.strong_count() > 0);
        engines.push(Arc::downgrade(engine));
        drop(engines);
        shared.generation.fetch_add(1, Ordering::Release);
        shared.waker.wake();
        Ok(())
    }
}

/// Support for simulations, which drive an executor without a thread.
#[cfg(test)]
impl Executor {
    /// Creates an executor that the calling thread drives by [`drive_until`](Self::drive_until).
    pub(crate) fn without_thread(name: &str) -> Result<Self> {
        let shared = Arc::new(Shared::new(name.to_owned(), Idle::Block)?);
        shared.thread.store(ThreadToken::of_driving_thread().to_bits(), Ordering::Relaxed);
        let lifetime = Some(Arc::new(Lifetime(Arc::clone(&shared))));
        Ok(Self { inner: Arc::new(Inner { shared, lifetime, thread: None }) })
    }

    /// Moves the first participant to the end of the list.
    pub(crate) fn rotate(&self) {
        let shared = &self.inner.shared;
        let mut engines = shared.engines.lock().expect(UNDISTURBED);
        engines.rotate_left(1);
        shared.generation.fetch_add(1, Ordering::Release);
    }

    /// Drives until `is_done` returns true; it is evaluated after each round.
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
            job_queue: JobQueue::new(idle),
            engines: PiMutex::new(Vec::new()),
            generation: AtomicU64::new(0),
            thread: AtomicU64::new(ThreadToken::NONE.to_bits()),
            run_completed: EventCount::new(),
            is_stopped: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        })
    }

    /// Entry point of the thread.
    fn run(&self) {
        let mut driving = Driving::default();
        let _ending = CloseOnExit(self);
        while !self.is_stopped.load(Ordering::Acquire) {
            if self.round(&mut driving, || false).is_err() {
                break;
            }
        }
    }

    /// Drives until the set of participants changes, `is_done` returns true, or the executor is
    /// stopped.
    fn round(&self, driving: &mut Driving, mut is_done: impl FnMut() -> bool) -> Result<()> {
        let generation = self.generation.load(Ordering::Acquire);
        let engines = self.engines.lock().expect(UNDISTURBED).clone();
        let mut open: Vec<Arc<Engine>> = engines.iter().filter_map(Weak::upgrade).collect();
        open.retain(|engine| engine.enter().is_ok_and(|state| !state.is_closed()));
        let scheduler = Scheduler { engines: &open, job_queue: Some(&self.job_queue) };
        let mut drive = Drive::new(scheduler, &self.waker, driving, clock::now(), None);
        loop {
            match drive.pass() {
                Ok(_) => {}
                Err(Error::AlreadyDeleted | Error::Transport(_)) => return Ok(()),
                Err(error) => return Err(error),
            }
            // Resetting the waker here loses no wakeup: the cause of an earlier wakeup is seen
            // before the next sleep.
            self.waker.reset();
            self.run_completed.notify();
            if is_done()
                || self.is_stopped.load(Ordering::Acquire)
                || self.generation.load(Ordering::Acquire) != generation
                || open.iter().any(|engine| Arc::strong_count(engine) == 1)
            {
                return Ok(());
            }
        }
    }
}

/// Closes the participants of the thread when it ends, even by a panic of a job or listener.
/// Otherwise they would remain open without being driven.
struct CloseOnExit<'a>(&'a Shared);

impl Drop for CloseOnExit<'_> {
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
        self.0.run_completed.notify();
    }
}

impl Drop for Lifetime {
    fn drop(&mut self) {
        self.0.is_stopped.store(true, Ordering::Release);
        self.0.waker.wake();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A driving thread does not join, since the other thread may in turn wait for it. The
        // thread continues while jobs exist.
        let is_last = self.lifetime.take().and_then(Arc::into_inner).is_some();
        if let Some(thread) = self.thread.take().filter(|_| is_last && !ThreadToken::drives()) {
            // The panic hook has already reported the panic of a job.
            drop(thread.join());
        }
    }
}

/// Application job of an executor, which it keeps running. Dropping the `Job` ends it; a run in
/// progress is completed.
pub struct Job {
    lifetime: Arc<Lifetime>,
    id: JobId,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Job {
    /// Requests one run of the job. If a run is already pending, no second one is added. May be
    /// called from any thread.
    pub fn trigger(&self) {
        if self.lifetime.0.job_queue.trigger(self.id, clock::now()) {
            self.lifetime.0.waker.wake();
        }
    }

    /// Sets the budget of one run. The default is [`Duration::INFINITE`], no budget. With
    /// `suspends`, a job that exceeds its budget is suspended until it is [resumed](Self::resume).
    ///
    /// # Errors
    /// [`Error::BadParameter`] for a negative budget.
    pub fn set_budget(&self, budget: impl Into<Duration>, suspends: bool) -> Result<()> {
        let budget_ns = clock::not_negative("a budget", budget)?.as_nanos();
        self.lifetime.0.job_queue.set_budget(self.id, budget_ns, suspends);
        Ok(())
    }

    /// Ends a suspension of the job.
    pub fn resume(&self) {
        self.lifetime.0.job_queue.resume(self.id);
        self.lifetime.0.waker.wake();
    }

    /// Returns the number of runs, their execution times and their response times.
    #[must_use]
    pub fn statistics(&self) -> JobStatistics {
        self.lifetime.0.job_queue.statistics(self.id)
    }

    /// Returns a waker that triggers the job as long as it exists.
    pub(crate) fn waker(&self) -> std::task::Waker {
        task::waker(Arc::downgrade(&self.lifetime.0), self.id)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let work = self.lifetime.0.job_queue.remove(self.id);
        drop(work);
    }
}
