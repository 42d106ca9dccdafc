//! Blocking receive: [`DataReader::recv_timeout`], and [`DataReader::iter`] for loops. Not part of
//! DDS 1.4.
//!
//! Under [`Runtime::Inline`](crate::Runtime::Inline) the waiting thread drives the participant if
//! it owns it. Under [`Runtime::Shared`](crate::Runtime::Shared) it becomes the
//! [leader](crate::runtime::leading).

use std::cell::Cell;
use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;
use std::task::{Wake, Waker};

use super::DataReader;
use crate::runtime::clock;
use crate::runtime::leading::LeaderState;
use crate::runtime::poll;
use crate::runtime::tasks::TaskKey;
use crate::{Duration, Error, Readable, Result, Sample};

/// Waker of a thread that waits for a sample.
struct ThreadWaker(poll::Waker);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake();
    }
}

/// Resources of a waiting thread. Each thread keeps one for later waits.
struct WaitResources {
    waker: Arc<ThreadWaker>,
    leader_state: LeaderState,
}

thread_local! {
    static WAIT_RESOURCES: Cell<Option<WaitResources>> = const { Cell::new(None) };
}

impl WaitResources {
    /// Takes the resources of the thread, or creates new ones for a nested wait.
    fn take() -> Result<Self> {
        match WAIT_RESOURCES.try_with(Cell::take).ok().flatten() {
            Some(sleeper) => Ok(sleeper),
            None => {
                Ok(Self { waker: Arc::new(ThreadWaker(poll::Waker::new()?)), leader_state: LeaderState::default() })
            }
        }
    }
}

/// Wait of a thread for a sample of a reader.
struct Waiting<'a, T: Readable> {
    reader: &'a DataReader<T>,
    task: Option<TaskKey>,
    /// `None` until the thread has to wait.
    resources: Option<WaitResources>,
}

impl<T: Readable> Waiting<'_, T> {
    fn wait(&mut self, timeout: Duration) -> Result<Sample<T>> {
        let engine = &self.reader.core.engine;
        let deadline = clock::deadline(clock::now(), timeout);
        let WaitResources { waker: alarm, leader_state: leading } = self.resources.insert(WaitResources::take()?);
        let waker = Waker::from(Arc::clone(alarm));
        loop {
            alarm.0.reset();
            if let Some(sample) = self.reader.take_or_register(&mut self.task, &waker)? {
                return Ok(sample);
            }
            let now = clock::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Err(Error::TIMEOUT);
            }
            if engine.is_driving_thread() {
                engine.drive(now, deadline)?;
            } else {
                leading.sleep(std::slice::from_ref(engine), &alarm.0, now, deadline)?;
            }
        }
    }
}

impl<T: Readable> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        if let Some(task) = self.task {
            self.reader.remove_task(task);
        }
        if let Some(mut sleeper) = self.resources.take() {
            let settled = sleeper.leader_state.hand_over(std::slice::from_ref(&self.reader.core.engine));
            debug_assert!(settled.is_ok(), "this thread holds no lock: {settled:?}");
            // A thread that is ending keeps no resources.
            let _ = WAIT_RESOURCES.try_with(|kept| kept.set(Some(sleeper)));
        }
    }
}

impl<T: Readable> DataReader<T> {
    /// Takes the oldest sample; waits at most `timeout` for one. Several threads may wait on one
    /// reader: each sample goes to one of them. Allocates for the sample. The first wait of a
    /// thread also allocates, and opens two file descriptors that the thread keeps.
    ///
    /// # Examples
    /// ```no_run
    /// # fn f<T: takt::DdsType + std::fmt::Debug>(reader: &takt::DataReader<T>) -> takt::Result<()> {
    /// let sample = reader.recv_timeout(std::time::Duration::from_secs(1))?;
    /// if let Some(data) = sample.data {
    ///     println!("{data:?}, written at {}", sample.info.source_timestamp);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Timeout`] if no sample arrives within `timeout`; [`Error::BadParameter`] for a
    /// negative timeout; [`Error::AlreadyDeleted`] when the reader or its participant is closed;
    /// [`Error::Transport`] if no file descriptor is available; [`Error::IllegalOperation`] from a
    /// thread other than the owner under [`Runtime::Inline`](crate::Runtime::Inline).
    pub fn recv_timeout(&self, timeout: impl Into<Duration>) -> Result<Sample<T>> {
        Waiting { reader: self, task: None, resources: None }.wait(clock::timeout(timeout)?)
    }

    /// Returns an iterator that takes samples and waits for the next one without a timeout. The
    /// iteration ends when the reader or its participant is closed, and after an error.
    ///
    /// # Examples
    /// ```no_run
    /// # fn f<T: takt::DdsType + std::fmt::Debug>(reader: &takt::DataReader<T>) -> takt::Result<()> {
    /// for sample in reader.iter() {
    ///     println!("{:?}", sample?.data);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn iter(&self) -> SampleIter<'_, T> {
        SampleIter { reader: self, ended: false }
    }
}

/// Blocking iterator over the samples of a reader. Created by [`DataReader::iter`].
#[must_use = "an iterator does nothing unless it is iterated"]
pub struct SampleIter<'a, T: Readable> {
    reader: &'a DataReader<T>,
    ended: bool,
}

impl<T: Readable> Iterator for SampleIter<'_, T> {
    type Item = Result<Sample<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let result = self.reader.recv_timeout(Duration::INFINITE);
        self.ended = result.is_err();
        match result {
            Err(Error::AlreadyDeleted) => None,
            result => Some(result),
        }
    }
}

impl<T: Readable> FusedIterator for SampleIter<'_, T> {}

impl<'a, T: Readable> IntoIterator for &'a DataReader<T> {
    type Item = Result<Sample<T>>;
    type IntoIter = SampleIter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Readable> fmt::Debug for SampleIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampleIter").field("reader", &self.reader).field("ended", &self.ended).finish()
    }
}
