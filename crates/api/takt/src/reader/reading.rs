//! Read and take operations (DDS 1.4 §2.2.2.5.3), which deserialize from the history into memory of
//! the caller.
//!
//! *Read* leaves samples in the history and marks them as read; *take* removes them.
//! [`select`](DataReader::select) restricts both to some of the samples. [`dcps`](crate::dcps) has
//! the operations that DDS names for that.
//!
//! With PRESENTATION scope GROUP and coherent or ordered access, all of them require
//! [`begin_access`](crate::Subscriber::begin_access) and fail with [`Error::PreconditionNotMet`]
//! without it. With ordered access, each call returns at most one sample, since the next one may
//! belong to another reader.

use std::sync::atomic::Ordering;
use std::task::Waker;

use takt_core::{InstanceHandle, ReadCursor, SampleInfo, SampleRef, SampleStates, Selector, ranks};

use super::DataReader;
#[cfg(doc)]
use crate::Error;
use crate::query::Snapshot;
use crate::runtime::state::Target;
use crate::runtime::tasks::TaskKey;
use crate::sample::Sample;
use crate::{Readable, Result};

impl<T: Readable> DataReader<T> {
    /// Takes the oldest sample into `sample`, whose memory is reused. Returns `None` if there is no
    /// sample.
    ///
    /// If [`SampleInfo::valid_data`] is false, the sample has no data and only reports a change of
    /// its instance. The key members are then set if the key is known, and all other members are
    /// unchanged. A payload that is not a valid `T` is dropped and counted
    /// ([`deserialize_failures`](crate::AnyDataReader::deserialize_failures)). Does not allocate,
    /// unless `T` needs more memory.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn take_next_sample(&self, sample: &mut T) -> Result<Option<SampleInfo>> {
        self.next(Selector::TAKE, sample)
    }

    /// Reads the oldest sample that was not read before into `sample`, without removing it.
    /// Otherwise as [`take_next_sample`](Self::take_next_sample).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn read_next_sample(&self, sample: &mut T) -> Result<Option<SampleInfo>> {
        self.next(Selector { sample_states: SampleStates::NOT_READ, ..Selector::READ }, sample)
    }

    fn next(&self, selector: Selector, sample: &mut T) -> Result<Option<SampleInfo>> {
        let Some(mut call) = self.core.begin_selected(selector)? else { return Ok(None) };
        let (now, core) = (call.now, call.core()?);
        let (mut cursor, mut info) = (ReadCursor::default(), None);
        while let Some(found) = core.read_next(now, self.core.handle, selector, &mut cursor)? {
            if self.decode(&found.info, found.payload, sample) {
                info = Some(found.info);
                break;
            }
        }
        self.core.end_selected(call, selector, info.is_some())?;
        Ok(info)
    }

    /// Takes the oldest sample. If there is none, registers `waker` to be woken when there is one.
    pub(crate) fn take_or_register(&self, task: &mut Option<TaskKey>, waker: &Waker) -> Result<Option<Sample<T>>> {
        let mut call = self.core.begin_read()?;
        let (now, core) = (call.now, call.core()?);
        let (mut cursor, mut taken) = (ReadCursor::default(), None);
        while let Some(found) = core.read_next(now, self.core.handle, Selector::TAKE, &mut cursor)? {
            let mut sample = Sample::new(found.info);
            if self.decode_into(&found, &mut sample) {
                taken = Some(sample);
                break;
            }
        }
        let former = if taken.is_none() { call.add_task(task, waker)? } else { None };
        call.finish()?;
        drop(former);
        Ok(taken)
    }

    /// Unregisters a future or stream of this reader.
    pub(crate) fn remove_task(&self, task: TaskKey) {
        self.core.engine.remove_task(Target::Reader(self.core.handle), task);
    }

    /// Decodes a payload into `sample`. Counts a payload that is not a valid `T` and returns false.
    pub(super) fn decode(&self, info: &SampleInfo, payload: &[u8], sample: &mut T) -> bool {
        let is_decoded = sample.decode(info, payload);
        if !is_decoded {
            self.core.deserialize_failures.fetch_add(1, Ordering::Relaxed);
        }
        is_decoded
    }

    /// As [`decode`](Self::decode), reusing the memory of `sample`.
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

    /// Takes up to `max` samples in the order of arrival. With PRESENTATION scope INSTANCE and
    /// ordered access, samples are ordered by instance.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn take(&self, max: usize) -> Result<Vec<Sample<T>>> {
        self.select().max(max).take()
    }

    /// Reads up to `max` samples without removing them, in the order of [`take`](Self::take).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn read(&self, max: usize) -> Result<Vec<Sample<T>>> {
        self.select().max(max).read()
    }

    /// Replaces the content of `samples` by up to `max` taken samples, reusing its memory.
    ///
    /// Truncates `samples` to the number of samples taken, which frees the memory of the others;
    /// [`take_batch`](Self::take_batch) keeps it.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close); `samples` is then
    /// empty.
    pub fn take_into(&self, samples: &mut Vec<Sample<T>>, max: usize) -> Result<()> {
        self.select_where(Selector::TAKE, None, samples, max)
    }

    /// Reads up to `max` samples without removing them, otherwise as
    /// [`take_into`](Self::take_into).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close); `samples` is then
    /// empty.
    pub fn read_into(&self, samples: &mut Vec<Sample<T>>, max: usize) -> Result<()> {
        self.select_where(Selector::READ, None, samples, max)
    }

    /// Replaces the content of `samples` by up to `max` samples that match the selector and the
    /// query.
    pub(super) fn select_where(
        &self,
        selector: Selector,
        query: Option<&Snapshot>,
        samples: &mut Vec<Sample<T>>,
        max: usize,
    ) -> Result<()> {
        let mut count = 0;
        let result = self.fill(selector, query, Destination::Growing(samples), max, &mut count);
        samples.truncate(count);
        ranks::compute_ranks(samples);
        result
    }

    /// Fills up to `max` slots with samples. `count` is the number of filled slots, also on
    /// failure.
    pub(super) fn fill(
        &self,
        selector: Selector,
        query: Option<&Snapshot>,
        mut destination: Destination<'_, T>,
        max: usize,
        count: &mut usize,
    ) -> Result<()> {
        let Some(mut call) = self.core.begin_selected(selector)? else { return Ok(()) };
        let (now, core, reader) = (call.now, call.core()?, self.core.handle);
        let max = max.min(core.samples_per_read_max(reader)?);
        let mut cursor = ReadCursor::default();
        let mut ordered = match query.filter(|query| query.is_ordered()) {
            Some(query) => Some(core.ordered_samples(now, reader, selector, query)?.into_iter()),
            None => None,
        };
        while *count < max {
            let found = match (&mut ordered, query) {
                (Some(samples), _) => match samples.next() {
                    Some(sample) => core.read_next_of(reader, sample, selector, &mut cursor)?,
                    None => None,
                },
                (None, Some(query)) => core.read_next_where(now, reader, selector, query, &mut cursor)?,
                (None, None) => core.read_next(now, reader, selector, &mut cursor)?,
            };
            let Some(found) = found else { break };
            let samples = destination.up_to(*count, &found.info);
            if self.decode_into(&found, &mut samples[*count]) {
                ranks::link(samples, *count, found.previous);
                *count += 1;
            } else {
                cursor.reject_last();
            }
        }
        self.core.end_selected(call, selector, *count > 0 || max == 0 || query.is_some())
    }

    /// Takes up to `max` samples without decoding them. `visit` receives each serialized payload
    /// with its encapsulation header. If [`SampleInfo::valid_data`] is false, the payload is the
    /// serialized key, or empty if the key is unknown. Returns the number of samples.
    ///
    /// `visit` runs inside the call, so it must not call methods of this participant's entities.
    /// They fail with [`Error::IllegalOperation`].
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn take_payloads(&self, max: usize, mut visit: impl FnMut(&[u8], &SampleInfo)) -> Result<usize> {
        let Some(mut call) = self.core.begin_selected(Selector::TAKE)? else { return Ok(0) };
        let (now, core) = (call.now, call.core()?);
        let (mut cursor, mut count) = (ReadCursor::default(), 0);
        while count < max {
            let found = core.read_next(now, self.core.handle, Selector::TAKE, &mut cursor)?;
            let Some(found) = found else { break };
            visit(found.payload, &found.info);
            count += 1;
        }
        self.core.end_selected(call, Selector::TAKE, count > 0 || max == 0)?;
        Ok(count)
    }

    /// Sets the key members of `sample` to the key of an instance. Returns false if the instance is
    /// unknown (`get_key_value`, DDS 1.4 §2.2.2.5.3).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn key_value(&self, sample: &mut T, instance: InstanceHandle) -> Result<bool> {
        self.core.engine.inspect(|driver| {
            let key = driver.core.key_of(self.core.handle, instance)?;
            Ok(key.is_some_and(|key| sample.decode_key(instance, key)))
        })
    }

    /// Returns the handle of the sample's instance (`lookup_instance`), whether or not the reader
    /// has samples of it.
    ///
    /// # Errors
    /// [`Error::Encode`] if the key exceeds a bound of its type.
    pub fn lookup_instance(&self, sample: &T) -> Result<InstanceHandle> {
        sample.instance_handle()
    }
}

/// Destination of samples: a collection that grows, or one of fixed size.
pub(super) enum Destination<'a, T> {
    Growing(&'a mut Vec<Sample<T>>),
    /// Slice of at least as many slots as samples are requested.
    Fixed(&'a mut [Sample<T>]),
}

impl<T: Readable> Destination<'_, T> {
    /// Returns at least the slots up to `index`.
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
