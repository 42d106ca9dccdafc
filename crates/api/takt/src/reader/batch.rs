//! Batch reads into memory of the caller. They allocate only if a sample needs more memory than all
//! previous ones in its slot.

use takt_core::{ReadCursor, SampleInfo, Selector, ranks};

use super::DataReader;
use super::reading::Destination;
use crate::sample::Sample;
use crate::{Readable, Result};

impl<T: Readable> DataReader<T> {
    /// Takes as many samples as are available and fit into `samples`, in the order of
    /// [`take`](Self::take). Returns the filled slots. The memory of all slots is reused by every
    /// call. Acquires the lock once for all samples. Does not allocate, unless `T` needs more
    /// memory.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) after
    /// [`close`](crate::AnyDataReader::close).
    ///
    /// # Examples
    /// ```no_run
    /// # use takt::{DataReader, Sample, TypeSupport};
    /// # fn f<T: TypeSupport>(reader: &DataReader<T>, process: impl Fn(&T)) -> takt::Result<()> {
    /// // Once, 64 slots:
    /// let mut slots: [Sample<T>; 64] = std::array::from_fn(|_| Sample::default());
    /// // Again and again:
    /// for sample in reader.take_batch(&mut slots)? {
    ///     if let Some(data) = &sample.data {
    ///         process(data);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn take_batch<'a>(&self, samples: &'a mut [Sample<T>]) -> Result<&'a mut [Sample<T>]> {
        self.fill_batch(Selector::TAKE, samples)
    }

    /// Reads samples without removing them, otherwise as [`take_batch`](Self::take_batch).
    ///
    /// # Errors
    /// As [`take_batch`](Self::take_batch).
    pub fn read_batch<'a>(&self, samples: &'a mut [Sample<T>]) -> Result<&'a mut [Sample<T>]> {
        self.fill_batch(Selector::READ, samples)
    }

    fn fill_batch<'a>(&self, selector: Selector, samples: &'a mut [Sample<T>]) -> Result<&'a mut [Sample<T>]> {
        let (mut count, max) = (0, samples.len());
        self.fill(selector, None, Destination::Fixed(samples), max, &mut count)?;
        let filled = &mut samples[..count];
        ranks::compute_ranks(filled);
        Ok(filled)
    }

    /// Takes up to `max` samples, one after the other into `sample`, and passes each to `visit`, in
    /// the order of [`take`](Self::take). Returns the number of samples. Acquires the lock once for
    /// all samples. Does not allocate, unless `T` needs more memory.
    ///
    /// [`take_next_sample`](Self::take_next_sample) describes the value of `sample` where
    /// [`SampleInfo::valid_data`] is false. The ranks in the infos are zero, since the samples that
    /// follow are not known yet.
    ///
    /// `visit` runs inside the call, so it must not call methods of this participant's entities.
    /// They fail with [`Error::IllegalOperation`](crate::Error::IllegalOperation).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`](crate::Error::AlreadyDeleted) after
    /// [`close`](crate::AnyDataReader::close).
    ///
    /// # Examples
    /// ```no_run
    /// # use takt::{DataReader, DdsType};
    /// # #[derive(DdsType, Default)] struct Tick { number: u64 }
    /// # fn f(reader: &DataReader<Tick>) -> takt::Result<()> {
    /// let (mut tick, mut sum) = (Tick::default(), 0);
    /// let count = reader.take_each(1_000, &mut tick, |tick, info| {
    ///     if info.valid_data {
    ///         sum += tick.number;
    ///     }
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn take_each(&self, max: usize, sample: &mut T, visit: impl FnMut(&T, &SampleInfo)) -> Result<usize> {
        self.visit_selected(Selector::TAKE, max, sample, visit)
    }

    /// Reads samples without removing them, otherwise as [`take_each`](Self::take_each).
    ///
    /// # Errors
    /// As [`take_each`](Self::take_each).
    pub fn read_each(&self, max: usize, sample: &mut T, visit: impl FnMut(&T, &SampleInfo)) -> Result<usize> {
        self.visit_selected(Selector::READ, max, sample, visit)
    }

    pub(super) fn visit_selected(
        &self,
        selector: Selector,
        max: usize,
        sample: &mut T,
        mut visit: impl FnMut(&T, &SampleInfo),
    ) -> Result<usize> {
        let Some(mut call) = self.core.begin_selected(selector)? else { return Ok(0) };
        let (now, core, reader) = (call.now, call.core()?, self.core.handle);
        let max = max.min(core.samples_per_read_max(reader)?);
        let (mut cursor, mut count) = (ReadCursor::default(), 0);
        while count < max {
            let Some(found) = core.read_next(now, reader, selector, &mut cursor)? else { break };
            if self.decode(&found.info, found.payload, sample) {
                visit(sample, &found.info);
                count += 1;
            } else {
                cursor.reject_last();
            }
        }
        self.core.end_selected(call, selector, count > 0 || max == 0)?;
        Ok(count)
    }
}
