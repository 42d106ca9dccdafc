//! Waiting until endpoints are matched: blocking, and as futures.
//!
//! A writer counts a reader once the reader's participant knows the writer, so that what is written after
//! [`wait_for_readers`](AnyDataWriter::wait_for_readers) arrives at best-effort readers too.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use takt_core::Instant;
use takt_wire::Guid;

use crate::runtime::clock;
use crate::runtime::driver::Driver;
use crate::runtime::engine::Engine;
use crate::runtime::state::Target;
use crate::runtime::tasks::TaskKey;
use crate::{AnyDataReader, AnyDataWriter, Duration, Error, Result};

impl AnyDataWriter {
    /// Waits until at least `count` readers are matched, at most `timeout`. What is written afterwards is sent to each of them,
    /// and each of them knows the writer.
    ///
    /// # Examples
    /// ```no_run
    /// # fn f(writer: &takt::DataWriter<takt::builtin::ParticipantBuiltinTopicData>) -> takt::Result<()> {
    /// writer.wait_for_readers(1, takt::Duration::from_secs(5))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Timeout`] if there were not so many in time, [`Error::BadParameter`] for a negative timeout,
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn wait_for_readers(&self, count: usize, timeout: impl Into<Duration>) -> Result<()> {
        let (core, timeout) = (&*self.core, clock::timeout(timeout)?);
        core.engine
            .block_on(
                &core.progress,
                || clock::deadline(clock::now(), timeout),
                |driver, _| Ok((driver.core.publication_match_count(core.handle)? >= count).then_some(())),
            )
            .map_err(|error| {
                error.explained(|| too_few(self.topic_name(), count, "readers", self.matched_subscriptions()))
            })
    }

    /// As [`wait_for_readers`](Self::wait_for_readers), for as long as it is polled.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub async fn readers_matched(&self, count: usize) -> Result<()> {
        let handle = self.core.handle;
        let mut task = Task { engine: &self.core.engine, target: Target::Writer(handle), key: None };
        poll_fn(|cx| {
            task.poll(cx.waker(), |driver, _| Ok((driver.core.publication_match_count(handle)? >= count).then_some(())))
        })
        .await
    }

    /// Whether a matched reader is RELIABLE. Without one nothing acknowledges what is written, and
    /// [`wait_for_acknowledgments`](Self::wait_for_acknowledgments) returns at once.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn has_reliable_readers(&self) -> Result<bool> {
        self.core.engine.look(|driver| Ok(driver.core.has_reliable_readers(self.core.handle)?))
    }
}

impl AnyDataWriter {
    /// The matched reliable readers that have left 8 heartbeats of the writer and more unanswered. Of readers that never answered, within
    /// the lease of their participant (2 s to 10 s): their side may have refused the match. Of others, within the lease of this participant
    /// and 2 s: their side may ignore it. The writer does not wait for them until they answer.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn silent_readers(&self) -> Result<Vec<Guid>> {
        self.core.engine.look(|driver| Ok(driver.core.silent_readers(self.core.handle)?))
    }
}

impl AnyDataReader {
    /// Waits until at least `count` writers are matched, at most `timeout`. A writer that is matched here may not know the reader
    /// yet; what it wrote before it does is not for a VOLATILE reader.
    ///
    /// # Errors
    /// [`Error::Timeout`] if there were not so many in time, [`Error::BadParameter`] for a negative timeout,
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn wait_for_writers(&self, count: usize, timeout: impl Into<Duration>) -> Result<()> {
        let (core, timeout) = (&*self.core, clock::timeout(timeout)?);
        let progress = core.engine.enter()?.progress_of(Target::Reader(core.handle)).ok_or(Error::AlreadyDeleted)?;
        core.engine
            .block_on(
                &progress,
                || clock::deadline(clock::now(), timeout),
                |driver, _| Ok((driver.core.subscription_match_count(core.handle)? >= count).then_some(())),
            )
            .map_err(|error| {
                error.explained(|| too_few(self.topic_name(), count, "writers", self.matched_publications()))
            })
    }

    /// As [`wait_for_writers`](Self::wait_for_writers), for as long as it is polled.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub async fn writers_matched(&self, count: usize) -> Result<()> {
        let handle = self.core.handle;
        let mut task = Task { engine: &self.core.engine, target: Target::Reader(handle), key: None };
        poll_fn(|cx| {
            task.poll(
                cx.waker(),
                |driver, _| Ok((driver.core.subscription_match_count(handle)? >= count).then_some(())),
            )
        })
        .await
    }
}

/// What a wait for matches has found instead.
fn too_few(topic: &str, count: usize, role: &str, matched: Result<Vec<Guid>>) -> String {
    let found = matched.map_or(0, |matched| matched.len());
    format!(
        "topic \"{topic}\" has {found} matched {role} of {count}; DomainParticipant::refusals names those that do not match"
    )
}

/// A future that waits for an endpoint to be matched.
struct Task<'a> {
    engine: &'a Arc<Engine>,
    target: Target,
    key: Option<TaskKey>,
}

impl Task<'_> {
    fn poll(
        &mut self,
        waker: &Waker,
        attempt: impl FnOnce(&mut Driver, Instant) -> Result<Option<()>>,
    ) -> Poll<Result<()>> {
        let mut former = None;
        let result = self.engine.call_state(|state, now| {
            let done = attempt(state.driver()?, now)?;
            if done.is_none() {
                former = state.add_task(self.target, &mut self.key, waker)?;
            }
            Ok(done)
        });
        drop(former);
        result.transpose().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.engine.remove_task(self.target, key);
        }
    }
}
