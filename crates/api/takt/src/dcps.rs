//! Read and take operations of DCPS by their names in the specification (DDS 1.4 §2.2.2.5.3), for
//! programs that are ported from another DDS. [`DataReader::select`] offers the same operations.
//!
//! # Examples
//! ```no_run
//! use takt::dcps::ReadOperations;
//! # use takt::{DataReader, TypeSupport};
//! # fn f<T: TypeSupport>(reader: &DataReader<T>) -> takt::Result<()> {
//! let mut previous = None;
//! loop {
//!     let samples = reader.take_next_instance(previous, 10)?;
//!     let Some(first) = samples.first() else { break };
//!     previous = Some(first.info.instance_handle);
//! }
//! # Ok(()) }
//! ```

use crate::condition::ReadCondition;
use crate::sample::Sample;
use crate::{DataReader, InstanceHandle, Readable, Result};

/// Operations of a DataReader on some of its samples.
///
/// `max` is the maximum number of samples. Without a matching sample the result is empty. The next
/// instance is the first one after `previous`, by the order of handles, that has such samples; with
/// `None` it is the first of all.
///
/// # Errors
/// - [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) after
///   [`close`](crate::AnyDataReader::close).
/// - [`Error::PreconditionNotMet`](crate::Error::PreconditionNotMet) if the condition belongs to
///   another reader.
pub trait ReadOperations {
    /// Type of the data.
    type Data: Readable;

    /// Takes samples of one instance.
    fn take_instance(&self, instance: InstanceHandle, max: usize) -> Result<Vec<Sample<Self::Data>>>;

    /// Reads samples of one instance without removing them.
    fn read_instance(&self, instance: InstanceHandle, max: usize) -> Result<Vec<Sample<Self::Data>>>;

    /// Takes samples of the next instance.
    fn take_next_instance(&self, previous: Option<InstanceHandle>, max: usize) -> Result<Vec<Sample<Self::Data>>>;

    /// Reads samples of the next instance without removing them.
    fn read_next_instance(&self, previous: Option<InstanceHandle>, max: usize) -> Result<Vec<Sample<Self::Data>>>;

    /// Takes samples that match the condition.
    fn take_w_condition(&self, condition: &ReadCondition, max: usize) -> Result<Vec<Sample<Self::Data>>>;

    /// Reads samples that match the condition without removing them.
    fn read_w_condition(&self, condition: &ReadCondition, max: usize) -> Result<Vec<Sample<Self::Data>>>;

    /// Takes samples of the next instance that match the condition.
    fn take_next_instance_w_condition(
        &self,
        previous: Option<InstanceHandle>,
        condition: &ReadCondition,
        max: usize,
    ) -> Result<Vec<Sample<Self::Data>>>;

    /// Reads samples of the next instance that match the condition, without removing them.
    fn read_next_instance_w_condition(
        &self,
        previous: Option<InstanceHandle>,
        condition: &ReadCondition,
        max: usize,
    ) -> Result<Vec<Sample<Self::Data>>>;
}

impl<T: Readable> ReadOperations for DataReader<T> {
    type Data = T;

    fn take_instance(&self, instance: InstanceHandle, max: usize) -> Result<Vec<Sample<T>>> {
        self.select().instance(instance).max(max).take()
    }

    fn read_instance(&self, instance: InstanceHandle, max: usize) -> Result<Vec<Sample<T>>> {
        self.select().instance(instance).max(max).read()
    }

    fn take_next_instance(&self, previous: Option<InstanceHandle>, max: usize) -> Result<Vec<Sample<T>>> {
        self.select().next_instance(previous).max(max).take()
    }

    fn read_next_instance(&self, previous: Option<InstanceHandle>, max: usize) -> Result<Vec<Sample<T>>> {
        self.select().next_instance(previous).max(max).read()
    }

    fn take_w_condition(&self, condition: &ReadCondition, max: usize) -> Result<Vec<Sample<T>>> {
        self.select().condition(condition).max(max).take()
    }

    fn read_w_condition(&self, condition: &ReadCondition, max: usize) -> Result<Vec<Sample<T>>> {
        self.select().condition(condition).max(max).read()
    }

    fn take_next_instance_w_condition(
        &self,
        previous: Option<InstanceHandle>,
        condition: &ReadCondition,
        max: usize,
    ) -> Result<Vec<Sample<T>>> {
        self.select().next_instance(previous).condition(condition).max(max).take()
    }

    fn read_next_instance_w_condition(
        &self,
        previous: Option<InstanceHandle>,
        condition: &ReadCondition,
        max: usize,
    ) -> Result<Vec<Sample<T>>> {
        self.select().next_instance(previous).condition(condition).max(max).read()
    }
}
