//! Waiting for matched endpoints: blocking calls and futures.
//!
//! A writer counts a reader as matched once the reader's participant has discovered the writer. A
//! sample written after [`wait_for_readers`](AnyDataWriter::wait_for_readers) arrives at
//! best-effort readers too.

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
    /// Waits at most `timeout` until at least `count` readers are matched. Samples written
    /// afterwards are sent to each of these readers, and each of them has matched the writer.
    ///
    /// # Examples
    /// ```no_run
    /// # fn f(writer: &takt::DataWriter<takt::builtin::ParticipantBuiltinTopicData>) -> takt::Result<()> {
    /// writer.wait_for_readers(1, takt::Duration::from_secs(5))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Timeout`] if fewer than `count` readers are matched when `timeout` expires,
    /// [`Error::BadParameter`] for a negative timeout, [`Error::AlreadyDeleted`] after
    /// [`close`](Self::close).
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

    /// Resolves when at least `count` readers are matched, like
    /// [`wait_for_readers`](Self::wait_for_readers) without a timeout.
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

    /// Reports whether a matched reader is RELIABLE. Without one, no sample is ever acknowledged,
    /// and [`wait_for_acknowledgments`](Self::wait_for_acknowledgments) returns at once.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn has_reliable_readers(&self) -> Result<bool> {
        self.core.engine.inspect(|driver| Ok(driver.core.has_reliable_readers(self.core.handle)?))
    }
}

impl AnyDataWriter {
    /// Returns the matched reliable readers that left at least 8 heartbeats of the writer
    /// unanswered for one of these times:
    ///
    /// - For a reader that never answered: the lease of its participant, at least 2 s and at most
    ///   10 s. The remote side may have refused the match.
    /// - For any other reader: the lease of this participant plus 2 s. The remote side may ignore
    ///   the match.
    ///
    /// The writer does not wait for these readers until they answer.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn silent_readers(&self) -> Result<Vec<Guid>> {
        self.core.engine.inspect(|driver| Ok(driver.core.silent_readers(self.core.handle)?))
    }
}

impl AnyDataReader {
    /// Waits at most `timeout` until at least `count` writers are matched. A writer that is matched
    /// here may not have matched the reader yet. A VOLATILE reader does not receive the samples
    /// that the writer wrote before it matched the reader.
    ///
    /// # Errors
    /// [`Error::Timeout`] if fewer than `count` writers are matched when `timeout` expires,
    /// [`Error::BadParameter`] for a negative timeout, [`Error::AlreadyDeleted`] after
    /// [`close`](Self::close).
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

    /// Resolves when at least `count` writers are matched, like
    /// [`wait_for_writers`](Self::wait_for_writers) without a timeout.
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

/// Describes a timeout: the number of endpoints matched and the number expected.
fn too_few(topic: &str, count: usize, role: &str, matched: Result<Vec<Guid>>) -> String {
    let found = matched.map_or(0, |matched| matched.len());
    format!(
        "topic \"{topic}\" has {found} matched {role} of {count}; Diagnostics::refusals names those that do not match"
    )
}

/// Wait of a future for matched endpoints.
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
