//! Reads and takes (DDS 1.4 §2.2.2.5.3): deserialise from the history into the caller's memory.
//!
//! [`select_into`](DataReader::select_into) is the general form; the others are what DDS has names for. What is *read* stays
//! and is marked as read, what is *taken* is gone. With PRESENTATION scope GROUP, coherent or ordered, all of them need
//! [`begin_access`](crate::Subscriber::begin_access), else they are [`Error::PreconditionNotMet`]; ordered, each returns at most one sample, since the next one may be another
//! reader's.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};

use takt_core::{InstanceHandle, Instant, ReadCursor, SampleInfo, SampleRef, SampleStates, Selector, ranks};

use super::DataReader;
use crate::condition::ReadCondition;
use crate::query::Snapshot;
use crate::runtime::clock;
use crate::runtime::driver::Driver;
use crate::runtime::state::{State, Target};
use crate::runtime::tasks::TaskKey;
use crate::sample::Sample;
use crate::status::StatusMask;
use crate::{Error, Readable, Result};

impl<T: Readable> DataReader<T> {
    /// Takes the oldest sample into `sample`, whose memory is reused. `None` if there is no sample.
    ///
    /// If [`SampleInfo::valid_data`] is false there are no data but only news of the instance; then the key members
    /// are set, if the key is known, and the others are as they were. A payload that is no `T` is dropped and counted
    /// ([`deserialize_failures`](crate::AnyDataReader::deserialize_failures)). Does not allocate, unless `T` needs more memory.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn take_next_sample(&self, sample: &mut T) -> Result<Option<SampleInfo>> {
        self.next(Selector::TAKE, &mut ReadCursor::default(), sample)
    }

    /// Reads the oldest sample that was not read before into `sample`, and leaves it. Otherwise as
    /// [`take_next_sample`](Self::take_next_sample).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn read_next_sample(&self, sample: &mut T) -> Result<Option<SampleInfo>> {
        self.next(
            Selector { sample_states: SampleStates::NOT_READ, ..Selector::READ },
            &mut ReadCursor::default(),
            sample,
        )
    }

    fn next(&self, selector: Selector, cursor: &mut ReadCursor, sample: &mut T) -> Result<Option<SampleInfo>> {
        // Not by the results of closures, each of which would move it.
        let mut info = None;
        self.pass(|driver, now| {
            while let Some(found) = driver.core.read_next(now, self.core.handle, selector, cursor)? {
                if self.decode(&found.info, found.payload, sample) {
                    info = Some(found.info);
                    break;
                }
            }
            Ok(())
        })?;
        Ok(info)
    }

    /// Reads or takes: the application has seen that there are data, and what was taken makes room.
    pub(super) fn pass<R>(&self, read: impl FnOnce(&mut Driver, Instant) -> Result<R>) -> Result<R> {
        self.core.engine.read(|state| self.pass_in(state, read))
    }

    fn pass_in<R>(&self, state: &mut State, read: impl FnOnce(&mut Driver, Instant) -> Result<R>) -> Result<R> {
        let driver = state.driver()?;
        let now = driver.now();
        self.core.signal.clear(StatusMask::DATA_AVAILABLE);
        self.core.subscriber.samples_seen();
        let result = read(driver, now)?;
        let sends_soon = driver.core.has_transmit();
        driver.core.end_read(now, self.core.handle)?;
        if !sends_soon && driver.core.has_transmit() {
            driver.transmit(clock::now());
        }
        Ok(result)
    }

    /// Takes the oldest sample, or has `waker` woken when there is one.
    pub(crate) fn poll_sample(&self, task: &mut Option<TaskKey>, waker: &Waker) -> Poll<Result<Sample<T>>> {
        let mut former = None;
        let result = self.core.engine.read(|state| {
            let found = self.pass_in(state, |driver, now| self.take_one(driver, now))?;
            if found.is_none() {
                former = state.add_task(self.target(), task, waker)?;
            }
            Ok(found)
        });
        drop(former);
        result.transpose().map_or(Poll::Pending, Poll::Ready)
    }

    fn take_one(&self, driver: &mut Driver, now: Instant) -> Result<Option<Sample<T>>> {
        let mut cursor = ReadCursor::default();
        while let Some(found) = driver.core.read_next(now, self.core.handle, Selector::TAKE, &mut cursor)? {
            let mut sample = Sample::new(found.info);
            if self.decode_into(&found, &mut sample) {
                return Ok(Some(sample));
            }
        }
        Ok(None)
    }

    /// A future or stream of this reader waits no more.
    pub(crate) fn remove_task(&self, task: TaskKey) {
        self.core.engine.remove_task(self.target(), task);
    }

    fn target(&self) -> Target {
        Target::Reader(self.core.handle)
    }

    /// Decodes a payload into `sample`; false, and counted, if it is no `T`.
    pub(super) fn decode(&self, info: &SampleInfo, payload: &[u8], sample: &mut T) -> bool {
        let is_decoded = sample.decode(info, payload);
        if !is_decoded {
            self.core.deserialize_failures.fetch_add(1, Ordering::Relaxed);
        }
        is_decoded
    }

    /// As [`decode`](Self::decode), with the memory that `sample` has.
    fn decode_into(&self, found: &SampleRef<'_>, sample: &mut Sample<T>) -> bool {
        sample.info = found.info;
        let mut value = sample.take_value();
        let decoded = self.decode(&found.info, found.payload, &mut value);
        if found.info.valid_data {
            sample.data = Some(value);
        } else if !found.payload.is_empty() {
            sample.key = Some(value);
        }
        decoded
    }

    /// Takes up to `max` samples. They come in order of arrival; with PRESENTATION scope INSTANCE and ordered access, instance
    /// by instance.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn take(&self, max: usize) -> Result<Vec<Sample<T>>> {
        self.select(Selector::TAKE, max)
    }

    /// Reads up to `max` samples and leaves them, in the order of [`take`](Self::take).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn read(&self, max: usize) -> Result<Vec<Sample<T>>> {
        self.select(Selector::READ, max)
    }

    /// Takes up to `max` samples of one instance.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn take_instance(&self, instance: InstanceHandle, max: usize) -> Result<Vec<Sample<T>>> {
        self.select(Selector::TAKE.of(instance), max)
    }

    /// Reads up to `max` samples of one instance, and leaves them.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn read_instance(&self, instance: InstanceHandle, max: usize) -> Result<Vec<Sample<T>>> {
        self.select(Selector::READ.of(instance), max)
    }

    /// Takes up to `max` samples of the first instance behind `previous` that has any, or of the first one of all. Handles are
    /// in a total order: `previous` need not be known (any more), so a loop that goes on from the last handle it was given
    /// visits each instance once, whatever comes and goes meanwhile.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn take_next_instance(&self, previous: Option<InstanceHandle>, max: usize) -> Result<Vec<Sample<T>>> {
        self.select(Selector::TAKE.after(previous), max)
    }

    /// Reads up to `max` samples of the next instance, as [`take_next_instance`](Self::take_next_instance), and leaves them.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn read_next_instance(&self, previous: Option<InstanceHandle>, max: usize) -> Result<Vec<Sample<T>>> {
        self.select(Selector::READ.after(previous), max)
    }

    /// Takes up to `max` of the samples that the condition is about.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if it is another reader's, [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn take_w_condition(&self, condition: &ReadCondition, max: usize) -> Result<Vec<Sample<T>>> {
        self.select_w(condition, Selector { take: true, ..self.selector_of(condition)? }, max)
    }

    /// Reads up to `max` of the samples that the condition is about, and leaves them.
    ///
    /// # Errors
    /// As [`take_w_condition`](Self::take_w_condition).
    pub fn read_w_condition(&self, condition: &ReadCondition, max: usize) -> Result<Vec<Sample<T>>> {
        self.select_w(condition, Selector { take: false, ..self.selector_of(condition)? }, max)
    }

    /// Takes up to `max` samples that the condition is about, of the next instance that has any.
    ///
    /// # Errors
    /// As [`take_w_condition`](Self::take_w_condition).
    pub fn take_next_instance_w_condition(
        &self,
        previous: Option<InstanceHandle>,
        condition: &ReadCondition,
        max: usize,
    ) -> Result<Vec<Sample<T>>> {
        self.select_w(condition, Selector { take: true, ..self.selector_of(condition)? }.after(previous), max)
    }

    /// Reads up to `max` samples that the condition is about, of the next instance that has any, and leaves them.
    ///
    /// # Errors
    /// As [`take_w_condition`](Self::take_w_condition).
    pub fn read_next_instance_w_condition(
        &self,
        previous: Option<InstanceHandle>,
        condition: &ReadCondition,
        max: usize,
    ) -> Result<Vec<Sample<T>>> {
        self.select_w(condition, Selector { take: false, ..self.selector_of(condition)? }.after(previous), max)
    }

    fn selector_of(&self, condition: &ReadCondition) -> Result<Selector> {
        if Arc::ptr_eq(&condition.signal, &self.core.signal) {
            return Ok(condition.selector);
        }
        Err(Error::PreconditionNotMet { what: "the condition is another reader's".into() })
    }

    /// What the condition asks of states is in the selector, what it asks of the content is asked here.
    fn select_w(&self, condition: &ReadCondition, selector: Selector, max: usize) -> Result<Vec<Sample<T>>> {
        let mut samples = Vec::new();
        let query = condition.query.as_ref().map(|query| query.snapshot());
        self.select_where(selector, query.as_deref(), &mut samples, max)?;
        Ok(samples)
    }

    /// Reads or takes up to `max` of the samples that the selector wants, in the order of [`take`](Self::take).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn select(&self, selector: Selector, max: usize) -> Result<Vec<Sample<T>>> {
        let mut samples = Vec::new();
        self.select_into(selector, &mut samples, max)?;
        Ok(samples)
    }

    /// Takes up to `max` samples in place of what `samples` holds, whose memory is reused.
    ///
    /// Ends with as many samples as there were, so the memory of others is freed; [`take_batch`](Self::take_batch) keeps it.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close); then `samples` is empty.
    pub fn take_into(&self, samples: &mut Vec<Sample<T>>, max: usize) -> Result<()> {
        self.select_into(Selector::TAKE, samples, max)
    }

    /// Reads up to `max` samples and leaves them, otherwise as [`take_into`](Self::take_into).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close); then `samples` is empty.
    pub fn read_into(&self, samples: &mut Vec<Sample<T>>, max: usize) -> Result<()> {
        self.select_into(Selector::READ, samples, max)
    }

    /// Reads or takes up to `max` of the samples that the selector wants in place of what `samples` holds, whose memory is
    /// reused.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close); then `samples` is empty.
    pub fn select_into(&self, selector: Selector, samples: &mut Vec<Sample<T>>, max: usize) -> Result<()> {
        self.select_where(selector, None, samples, max)
    }

    fn select_where(
        &self,
        selector: Selector,
        query: Option<&Snapshot>,
        samples: &mut Vec<Sample<T>>,
        max: usize,
    ) -> Result<()> {
        let mut count = 0;
        let result = self.fill(selector, query, Places::Growing(samples), max, &mut count);
        samples.truncate(count);
        ranks::settle(samples);
        result
    }

    /// Puts up to `max` samples where there are places, and counts them, also on failure.
    pub(super) fn fill(
        &self,
        selector: Selector,
        query: Option<&Snapshot>,
        mut places: Places<'_, T>,
        max: usize,
        count: &mut usize,
    ) -> Result<()> {
        self.pass(|driver, now| {
            let max = max.min(driver.core.samples_per_read_max(self.core.handle)?);
            let (mut cursor, reader) = (ReadCursor::default(), self.core.handle);
            let mut ordered = match query.filter(|query| query.is_ordered()) {
                Some(query) => driver.core.ordered_samples(now, reader, selector, query)?.into_iter(),
                None => Vec::new().into_iter(),
            };
            while *count < max {
                let found = match query {
                    None => driver.core.read_next(now, reader, selector, &mut cursor)?,
                    Some(query) if !query.is_ordered() => {
                        driver.core.read_next_where(now, reader, selector, query, &mut cursor)?
                    }
                    Some(_) => match ordered.next() {
                        Some(sample) => driver.core.read_next_of(reader, sample, selector, &mut cursor)?,
                        None => None,
                    },
                };
                let Some(found) = found else { break };
                let samples = places.up_to(*count, &found.info);
                if self.decode_into(&found, &mut samples[*count]) {
                    ranks::link(samples, *count, found.previous);
                    *count += 1;
                } else {
                    cursor.reject_last();
                }
            }
            Ok(())
        })
    }

    /// Takes up to `max` samples as they came off the wire: `visit` sees each payload with its encapsulation header
    /// (the key's if [`SampleInfo::valid_data`] is false, empty if that is unknown). Returns how many there were.
    ///
    /// `visit` runs inside the call, so it must not call anything on this participant's entities: that is
    /// [`Error::IllegalOperation`].
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn take_payloads(&self, max: usize, mut visit: impl FnMut(&[u8], &SampleInfo)) -> Result<usize> {
        self.pass(|driver, now| {
            let mut cursor = ReadCursor::default();
            let mut count = 0;
            while count < max {
                let found = driver.core.read_next(now, self.core.handle, Selector::TAKE, &mut cursor)?;
                let Some(found) = found else { break };
                visit(found.payload, &found.info);
                count += 1;
            }
            Ok(count)
        })
    }

    /// Sets the key members of `sample` to the key of an instance; false if the instance is unknown
    /// (`get_key_value`, DDS 1.4 §2.2.2.5.3).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn key_value(&self, sample: &mut T, instance: InstanceHandle) -> Result<bool> {
        self.core.engine.look(|driver| {
            let key = driver.core.key_of(self.core.handle, instance)?;
            Ok(key.is_some_and(|key| sample.decode_key(instance, key)))
        })
    }

    /// The handle of the sample's instance (`lookup_instance`). Says nothing about whether it has samples.
    ///
    /// # Errors
    /// [`Error::Encode`] if the key exceeds a bound of its type.
    pub fn lookup_instance(&self, sample: &T) -> Result<InstanceHandle> {
        sample.instance_handle()
    }
}

/// Where samples go: into a collection that grows, or into one of fixed size.
pub(super) enum Places<'a, T> {
    Growing(&'a mut Vec<Sample<T>>),
    /// At least as long as samples are asked for.
    Fixed(&'a mut [Sample<T>]),
}

impl<T: Readable> Places<'_, T> {
    /// The places up to this one, at least.
    fn up_to(&mut self, index: usize, info: &SampleInfo) -> &mut [Sample<T>] {
        match self {
            Self::Fixed(samples) => samples,
            Self::Growing(samples) => {
                if index == samples.len() {
                    samples.push(Sample::new(*info));
                }
                samples
            }
        }
    }
}
