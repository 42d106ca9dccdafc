//! Selection of samples: a builder for reads and takes of some of a reader's samples.

use std::sync::Arc;

use takt_core::{InstanceHandle, InstanceStates, SampleInfo, SampleStates, Selector, ViewStates};

use super::DataReader;
use crate::condition::ReadCondition;
use crate::sample::Sample;
use crate::{Error, Readable, Result};

/// Samples of a reader to be read or taken; see [`DataReader::select`].
///
/// Without restrictions it selects all samples. The order is that of
/// [`DataReader::take`]. A later restriction replaces an earlier one of the same kind.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is read before `read` or `take`"]
pub struct Select<'a, T> {
    reader: &'a DataReader<T>,
    selector: Selector,
    condition: Option<&'a ReadCondition>,
    max: usize,
}

impl<T: Readable> DataReader<T> {
    /// Selects samples by instance, state or condition, to read or take them.
    ///
    /// # Examples
    /// ```no_run
    /// # use takt::{DataReader, InstanceHandle, TypeSupport};
    /// # fn f<T: TypeSupport>(reader: &DataReader<T>, instance: InstanceHandle) -> takt::Result<()> {
    /// let new = reader.select().not_read().max(10).read()?;
    /// let of_one = reader.select().instance(instance).take()?;
    /// # Ok(()) }
    /// ```
    pub fn select(&self) -> Select<'_, T> {
        Select { reader: self, selector: Selector::READ, condition: None, max: usize::MAX }
    }
}

impl<'a, T: Readable> Select<'a, T> {
    /// Only samples of this instance.
    pub fn instance(mut self, instance: InstanceHandle) -> Self {
        self.selector = self.selector.of(instance);
        self
    }

    /// Only samples of the first instance after `previous` that has any; with `None`, of the first
    /// instance. Handles are totally ordered, so `previous` need not be a known instance. A loop
    /// that passes the handle of the last result visits each instance once, even if instances are
    /// created or removed meanwhile.
    pub fn next_instance(mut self, previous: Option<InstanceHandle>) -> Self {
        self.selector = self.selector.after(previous);
        self
    }

    /// Only samples that were not read before.
    pub fn not_read(mut self) -> Self {
        self.selector.sample_states = SampleStates::NOT_READ;
        self
    }

    /// Only samples of instances that are alive.
    pub fn alive(mut self) -> Self {
        self.selector.instance_states = InstanceStates::ALIVE;
        self
    }

    /// Only samples in these states.
    pub fn states(mut self, samples: SampleStates, views: ViewStates, instances: InstanceStates) -> Self {
        self.selector = self.selector.in_states(samples, views, instances);
        self
    }

    /// Only samples that match the condition: its states, in place of those set here, and its
    /// query.
    pub fn condition(mut self, condition: &'a ReadCondition) -> Self {
        self.condition = Some(condition);
        self
    }

    /// At most this many samples.
    pub fn max(mut self, max: usize) -> Self {
        self.max = max;
        self
    }

    /// Takes the samples.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] if the condition belongs to another reader,
    /// [`Error::AlreadyDeleted`] after [`close`](crate::AnyDataReader::close).
    pub fn take(self) -> Result<Vec<Sample<T>>> {
        let mut samples = Vec::new();
        self.take_into(&mut samples)?;
        Ok(samples)
    }

    /// Reads the samples without removing them.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn read(self) -> Result<Vec<Sample<T>>> {
        let mut samples = Vec::new();
        self.read_into(&mut samples)?;
        Ok(samples)
    }

    /// Replaces the content of `samples` by the taken samples, reusing its memory.
    ///
    /// # Errors
    /// As [`take`](Self::take); `samples` is then empty.
    pub fn take_into(self, samples: &mut Vec<Sample<T>>) -> Result<()> {
        self.fill(true, samples)
    }

    /// Replaces the content of `samples` by the read samples, reusing its memory.
    ///
    /// # Errors
    /// As [`take_into`](Self::take_into).
    pub fn read_into(self, samples: &mut Vec<Sample<T>>) -> Result<()> {
        self.fill(false, samples)
    }

    /// Takes the samples, one after the other into `sample`, and passes each to `visit`, as
    /// [`DataReader::take_each`]. Returns the number of samples.
    ///
    /// # Errors
    /// As [`take`](Self::take); [`Error::Unsupported`] with a condition that has a query.
    pub fn take_each(self, sample: &mut T, visit: impl FnMut(&T, &SampleInfo)) -> Result<usize> {
        self.visit(true, sample, visit)
    }

    /// Reads the samples without removing them, otherwise as [`take_each`](Self::take_each).
    ///
    /// # Errors
    /// As [`take_each`](Self::take_each).
    pub fn read_each(self, sample: &mut T, visit: impl FnMut(&T, &SampleInfo)) -> Result<usize> {
        self.visit(false, sample, visit)
    }

    /// Returns the selector with the states of the condition.
    fn selector(&self, take: bool) -> Result<Selector> {
        let Some(condition) = self.condition else { return Ok(Selector { take, ..self.selector }) };
        if !Arc::ptr_eq(&condition.signal, &self.reader.core.signal) {
            return Err(Error::PreconditionNotMet { what: "the condition belongs to another reader".into() });
        }
        Ok(Selector { take, instance: self.selector.instance, ..condition.selector })
    }

    /// The selector checks the states of a sample; the query, if there is one, checks its content.
    fn fill(self, take: bool, samples: &mut Vec<Sample<T>>) -> Result<()> {
        let query = self.condition.and_then(|condition| condition.query.as_ref()).map(|query| query.snapshot());
        let selector = self.selector(take).inspect_err(|_| samples.clear())?;
        self.reader.select_where(selector, query.as_deref(), samples, self.max)
    }

    fn visit(self, take: bool, sample: &mut T, visit: impl FnMut(&T, &SampleInfo)) -> Result<usize> {
        if self.condition.is_some_and(|condition| condition.query.is_some()) {
            return Err(Error::Unsupported { what: "visiting the samples of a query; use take or read" });
        }
        self.reader.visit_selected(self.selector(take)?, self.max, sample, visit)
    }
}
