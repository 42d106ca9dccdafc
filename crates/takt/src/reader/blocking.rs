//! Receiving in a thread that waits: [`DataReader::recv_timeout`], and [`DataReader::iter`] for a loop. Not part of DDS 1.4.
//!
//! Under [`Runtime::Inline`](crate::Runtime::Inline) the waiting thread drives the participant meanwhile, if it owns it.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};

use super::DataReader;
use crate::runtime::clock;
use crate::runtime::event_count::EventCount;
use crate::runtime::tasks::TaskKey;
use crate::{Duration, Error, Readable, Result, Sample};

/// Wakes a thread that waits for a sample.
struct Alarm(EventCount);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify();
    }
}

/// A thread that waits for a sample of a reader.
struct Waiting<'a, T: Readable> {
    reader: &'a DataReader<T>,
    task: Option<TaskKey>,
}

impl<T: Readable> Waiting<'_, T> {
    fn wait(&mut self, timeout: Duration) -> Result<Sample<T>> {
        let alarm = Arc::new(Alarm(EventCount::new()));
        let waker = Waker::from(Arc::clone(&alarm));
        let engine = &self.reader.core.engine;
        let deadline = clock::deadline(clock::now(), timeout);
        loop {
            let ticket = alarm.0.ticket();
            if let Poll::Ready(result) = self.reader.poll_sample(&mut self.task, &waker) {
                return result;
            }
            let now = clock::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Err(Error::TIMEOUT);
            }
            if engine.is_pump_thread() {
                engine.pump(now, deadline)?;
            } else {
                alarm.0.wait(ticket, now, deadline);
            }
        }
    }
}

impl<T: Readable> Drop for Waiting<'_, T> {
    fn drop(&mut self) {
        if let Some(task) = self.task {
            self.reader.remove_task(task);
        }
    }
}

impl<T: Readable> DataReader<T> {
    /// Takes the oldest sample; waits for one, at most `timeout`. Several threads may wait on one reader: each sample goes to one
    /// of them. Allocates if it has to wait, and for the sample.
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
    /// [`Error::Timeout`] if none came in time; [`Error::BadParameter`] for a negative timeout; [`Error::AlreadyDeleted`] when the
    /// reader or its participant is closed;
    /// [`Error::IllegalOperation`] from another thread than the owner under [`Runtime::Inline`](crate::Runtime::Inline).
    pub fn recv_timeout(&self, timeout: impl Into<Duration>) -> Result<Sample<T>> {
        Waiting { reader: self, task: None }.wait(clock::timeout(timeout)?)
    }

    /// The samples of this reader, each taken; waits for the next one without end. The iteration ends when the reader or its
    /// participant is closed, and after an error.
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

/// A reader's samples, one by one as they come. Made by [`DataReader::iter`].
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
