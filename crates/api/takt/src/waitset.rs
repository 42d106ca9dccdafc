//! Wait sets, which wait for any of several conditions (DDS 1.4 §2.2.2.1.6).

use std::sync::Arc;

use takt_core::Instant;

use crate::runtime::clock;
use crate::runtime::drive::{Drive, Driving};
use crate::runtime::engine::Engine;
use crate::runtime::leading::LeaderState;
use crate::runtime::pi_mutex::PiMutex;
use crate::runtime::poll::Waker;
use crate::runtime::scheduler::Scheduler;
use crate::{Condition, Duration, Error, Idle, Result, Runtime};

/// Spin iterations between two deadline checks.
const SPINS_PER_DEADLINE_CHECK: u32 = 64;

/// Blocks one thread until any of the attached conditions is true.
///
/// Conditions may belong to several participants.
///
/// - Participants under [`Runtime::Inline`] are driven by the wait, so they must belong to the
///   waiting thread. If one of them idles by spinning, the wait spins as well.
/// - Participants under [`Runtime::Shared`] receive on the waiting thread during the wait, unless
///   they have an [`Executor`](crate::Executor) or thread settings. Their listeners are called on
///   another thread.
///
/// # Examples
/// ```no_run
/// # fn f<T: takt::TypeSupport>(reader: &takt::DataReader<T>) -> takt::Result<()> {
/// let condition = reader.status_condition();
/// condition.set_enabled_statuses(takt::StatusMask::DATA_AVAILABLE);
/// let waitset = takt::WaitSet::new()?;
/// waitset.attach(condition)?;
/// while waitset.wait_any(std::time::Duration::from_millis(100))? {
///     for sample in reader.take(usize::MAX)? {
///         println!("written at {}", sample.info.source_timestamp);
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct WaitSet {
    waker: Arc<Waker>,
    attached: PiMutex<Attached>,
    /// Taken during a wait, so that only one thread waits at a time.
    wait: PiMutex<Option<Wait>>,
}

/// Attached conditions and the number of their changes.
#[derive(Debug, Default)]
struct Attached {
    conditions: Vec<Condition>,
    version: u64,
}

impl Attached {
    fn any_true(&self) -> Result<bool> {
        for condition in &self.conditions {
            if condition.is_true()? {
                return Ok(true);
            }
        }
        match self.conditions.iter().any(Condition::is_deleted) {
            true => Err(Error::AlreadyDeleted),
            false => Ok(false),
        }
    }
}

/// State of a wait. It is kept, so that another wait for the same conditions is fast and does not
/// allocate.
#[derive(Default)]
struct Wait {
    /// Version of the conditions from which the other fields were derived.
    version: u64,
    /// Participants that the waiting thread drives.
    inline: Vec<Arc<Engine>>,
    /// Participants that have threads of their own.
    shared: Vec<Arc<Engine>>,
    idle: Idle,
    /// Driving state for the participants in `inline`.
    driving: Driving,
    /// Leader state for the participants in `shared`.
    leader_state: LeaderState,
}

impl std::fmt::Debug for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wait").finish_non_exhaustive()
    }
}

const UNDISTURBED: &str = "the lock is not poisoned: no user code runs under it";

impl WaitSet {
    /// Creates a wait set without conditions.
    ///
    /// # Errors
    /// [`Error::Transport`] if no file descriptor is available.
    pub fn new() -> Result<Self> {
        Ok(Self {
            waker: Arc::new(Waker::new()?),
            attached: PiMutex::new(Attached::default()),
            wait: PiMutex::new(Some(Wait::default())),
        })
    }

    /// Attaches a condition. Attaching it again has no effect. A wait in progress includes the new
    /// condition.
    ///
    /// # Errors
    /// None at present.
    pub fn attach(&self, condition: impl Into<Condition>) -> Result<()> {
        let condition = condition.into();
        let mut attached = self.attached.lock().expect(UNDISTURBED);
        if !attached.conditions.contains(&condition) {
            condition.waiters().add(&self.waker);
            attached.conditions.push(condition);
            attached.version += 1;
            self.waker.wake();
        }
        Ok(())
    }

    /// Detaches a condition.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if it is not attached.
    pub fn detach(&self, condition: impl Into<Condition>) -> Result<()> {
        let condition = condition.into();
        let mut attached = self.attached.lock().expect(UNDISTURBED);
        let Some(index) = attached.conditions.iter().position(|known| *known == condition) else {
            return Err(Error::PreconditionNotMet { what: "the condition is not attached".into() });
        };
        let removed = attached.conditions.remove(index);
        attached.version += 1;
        drop(attached);
        removed.waiters().remove(&self.waker);
        Ok(())
    }

    /// Returns the attached conditions, in the order of attachment.
    #[must_use]
    pub fn conditions(&self) -> Vec<Condition> {
        self.attached.lock().expect(UNDISTURBED).conditions.clone()
    }

    /// Waits until a condition is true and returns all conditions that are true.
    ///
    /// # Errors
    /// [`Error::Timeout`] if no condition becomes true within `timeout`; [`Error::BadParameter`]
    /// for a negative timeout; [`Error::PreconditionNotMet`] if another thread is waiting;
    /// [`Error::AlreadyDeleted`] if no condition is true and the entity of one was closed (detach
    /// it to wait for the others); [`Error::IllegalOperation`] if the participant of a condition
    /// belongs to another thread, and in a listener or another call on the receiving thread that
    /// would have to make the condition true.
    pub fn wait(&self, timeout: impl Into<Duration>) -> Result<Vec<Condition>> {
        if !self.wait_any(timeout)? {
            return Err(Error::TIMEOUT);
        }
        let mut active = self.conditions();
        let mut result = Ok(());
        active.retain(|condition| match condition.is_true() {
            Ok(is_true) => is_true,
            Err(error) => {
                result = Err(error);
                false
            }
        });
        result.map(|()| active)
    }

    /// Waits until a condition is true. Returns false if none becomes true within `timeout`. Does
    /// not allocate.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), except that an expired timeout is not an error.
    pub fn wait_any(&self, timeout: impl Into<Duration>) -> Result<bool> {
        self.wait_until_any(clock::timeout(timeout)?)
    }

    fn wait_until_any(&self, timeout: Duration) -> Result<bool> {
        let mut wait = Waiting::begin(self)?;
        let mut now = clock::now();
        let deadline = clock::deadline(now, timeout);
        loop {
            self.waker.reset();
            if wait.check()? {
                return Ok(true);
            }
            let Wait { inline, driving, .. } = &mut wait.state;
            let in_time = match inline.as_slice() {
                [] => self.sleep(&mut wait.state, now, deadline)?,
                engines => {
                    let scheduler = Scheduler { engines, job_queue: None };
                    let mut drive = Drive::new(scheduler, &self.waker, driving, now, deadline);
                    loop {
                        match drive.pass()? {
                            Some(_) if self.waker.is_signaled() => break true,
                            Some(_) => {}
                            None => break false,
                        }
                    }
                }
            };
            if wait.check()? {
                return Ok(true);
            }
            if !in_time {
                return Ok(false);
            }
            now = clock::now();
        }
    }

    /// Fails on the receiving thread, which must not wait for itself.
    fn check_thread(&self) -> Result<()> {
        let attached = self.attached.lock().expect(UNDISTURBED);
        let mut engines = attached.conditions.iter().filter_map(Condition::engine);
        if engines.any(|engine| engine.runtime == Runtime::Shared && engine.is_driving_thread()) {
            let what = "a listener under Runtime::Shared runs on its participant's thread and cannot wait for it";
            return Err(Error::IllegalOperation { what });
        }
        Ok(())
    }

    /// Waits for a wakeup by the participants' threads, or receives as leader. Returns false when
    /// the deadline has passed.
    fn sleep(&self, wait: &mut Wait, mut now: Instant, deadline: Option<Instant>) -> Result<bool> {
        let is_over = |now: Instant| deadline.is_some_and(|deadline| now >= deadline);
        if is_over(now) {
            return Ok(false);
        }
        self.check_thread()?;
        let spins_until = wait.idle.spins_until(now);
        while now < spins_until {
            for _ in 0..SPINS_PER_DEADLINE_CHECK {
                if self.waker.is_signaled() {
                    return Ok(true);
                }
                std::hint::spin_loop();
            }
            now = clock::now();
            if is_over(now) {
                return Ok(false);
            }
        }
        wait.leader_state.sleep(&wait.shared, &self.waker, now, deadline)?;
        Ok(true)
    }
}

impl Drop for WaitSet {
    fn drop(&mut self) {
        for condition in &self.attached.get_mut().conditions {
            condition.waiters().remove(&self.waker);
        }
    }
}

impl Wait {
    fn refresh(&mut self, attached: &Attached) {
        if self.version == attached.version {
            return;
        }
        self.version = attached.version;
        self.hand_over_polls();
        self.inline.clear();
        self.shared.clear();
        self.idle = Idle::Block;
        for engine in attached.conditions.iter().filter_map(Condition::engine) {
            self.idle = self.idle.and(engine.idle);
            let engines = match engine.runtime {
                Runtime::Inline => &mut self.inline,
                Runtime::Shared => &mut self.shared,
            };
            if !engines.iter().any(|known| Arc::ptr_eq(known, engine)) {
                engines.push(Arc::clone(engine));
            }
        }
    }
}

impl Wait {
    /// Makes the participants' own threads handle the datagrams that this thread has not handled.
    fn hand_over_polls(&mut self) {
        let handed_over = self.leader_state.hand_over(&self.shared);
        debug_assert!(handed_over.is_ok(), "this thread holds no lock: {handed_over:?}");
    }
}

/// Wait in progress. Dropping it returns the state that it took, even after a panic in a listener.
struct Waiting<'a> {
    waitset: &'a WaitSet,
    state: Wait,
}

impl<'a> Waiting<'a> {
    fn begin(waitset: &'a WaitSet) -> Result<Self> {
        let state = waitset.wait.lock().expect(UNDISTURBED).take();
        let busy = || Error::PreconditionNotMet { what: "another thread waits on this wait set".into() };
        Ok(Self { waitset, state: state.ok_or_else(busy)? })
    }

    /// Reports whether a condition is true, and updates the state from the attached conditions.
    fn check(&mut self) -> Result<bool> {
        let attached = self.waitset.attached.lock().expect(UNDISTURBED);
        self.state.refresh(&attached);
        attached.any_true()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.state.hand_over_polls();
        *self.waitset.wait.lock().expect(UNDISTURBED) = Some(std::mem::take(&mut self.state));
    }
}
