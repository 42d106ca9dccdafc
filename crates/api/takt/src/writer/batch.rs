//! Batch writes: `write` for many samples, with one lock and one reading of the clock for up to 256
//! samples.
//!
//! Samples are written in runs. All samples of a run enter the history before the first of them is
//! sent, so that they share datagrams. A run is one access to the participant, and its length
//! bounds how long other threads wait.

use std::borrow::Borrow;
use std::fmt;

use takt_core::Instant;

use super::{DataWriter, Publication, SampleChange};
use crate::runtime::driver::Driver;
use crate::{Error, Result, TypeSupport};

/// Maximum number of samples of one run.
const SAMPLES_PER_RUN: usize = 256;

/// Error of a batch that ended early. The samples before the failed one are published.
#[derive(Debug)]
pub struct BatchError {
    /// Number of samples written, which is the index of the sample that failed.
    pub written: usize,
    /// Reason of the failure.
    pub error: Error,
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} samples: {}", self.written, self.error)
    }
}

impl std::error::Error for BatchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<BatchError> for Error {
    fn from(batch: BatchError) -> Self {
        batch.error
    }
}

/// Result of a run.
enum Run {
    /// No samples are left.
    Finished,
    /// Samples are left, to be written at once or when there is space.
    Continues,
}

impl<T: TypeSupport> DataWriter<T> {
    /// Publishes samples in order, like [`write`](Self::write) for each of them but at lower cost.
    /// Up to 256 samples cost one lock and one reading of the clock, have the same source timestamp
    /// and share datagrams. Returns the number of samples. Does not allocate.
    ///
    /// All policies apply to each sample. Where `write` would block, the samples written so far are
    /// sent first, and `max_blocking_time` applies to each blocked sample separately. With
    /// KEEP_LAST, a sample never displaces one that could have been sent.
    ///
    /// The samples come from a slice or from any iterator over samples or references. The iterator
    /// runs inside the call, so it must not call methods of this participant's entities. They fail
    /// with [`Error::IllegalOperation`].
    ///
    /// # Errors
    /// The error of [`write`](Self::write), and the number of samples written before it.
    ///
    /// # Examples
    /// ```
    /// use takt::{DdsType, DomainParticipant, qos::*};
    ///
    /// #[derive(DdsType, Clone, Debug, Default)]
    /// struct Tick {
    ///     number: u32,
    /// }
    ///
    /// # fn main() -> takt::Result<()> {
    /// # let name = format!("Ticks{}", std::process::id());
    /// let participant = DomainParticipant::builder(231).interfaces(["lo"]).build()?;
    /// let topic = participant.create_topic::<Tick>(&name, TopicQos::default())?;
    /// let writer = participant.create_publisher(PublisherQos::default())?.create_datawriter(&topic, DataWriterQos::default())?;
    ///
    /// let ticks = [Tick { number: 1 }, Tick { number: 2 }];
    /// assert_eq!(writer.write_batch(&ticks)?, 2);
    /// writer.write_batch((3..1_000).map(|number| Tick { number }))?;
    ///
    /// if let Err(stopped) = writer.write_batch(&ticks) {
    ///     println!("{} of them are written: {}", stopped.written, stopped.error);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn write_batch<S: Borrow<T>>(
        &self,
        samples: impl IntoIterator<Item = S>,
    ) -> std::result::Result<usize, BatchError> {
        let core = &*self.core;
        let mut samples = samples.into_iter();
        let publication = Publication { replaces_unsent: !self.keeps_last(), ..Publication::default() };
        let (mut next, mut written) = (None, 0);
        loop {
            let run = core.write_with(|driver, now| {
                self.write_run(driver, now, &publication, (&mut samples, &mut next), &mut written)
            });
            match run {
                Ok(Run::Finished) => return Ok(written),
                Ok(Run::Continues) => {}
                Err(error) => return Err(BatchError { written, error }),
            }
        }
    }

    /// Writes a run that begins with `next`. Returns `None` if the history has no space for the
    /// first sample. A sample without space is returned to `next`.
    fn write_run<S: Borrow<T>>(
        &self,
        driver: &mut Driver,
        now: Instant,
        publication: &Publication<'_>,
        (samples, next): (&mut impl Iterator<Item = S>, &mut Option<S>),
        written: &mut usize,
    ) -> Result<Option<Run>> {
        let before = *written;
        while *written - before < SAMPLES_PER_RUN {
            let Some(sample) = next.take().or_else(|| samples.next()) else { return Ok(Some(Run::Finished)) };
            if !SampleChange::new(self, sample.borrow(), publication)?.write(driver, now)? {
                *next = Some(sample);
                return Ok((*written > before).then_some(Run::Continues));
            }
            *written += 1;
        }
        Ok(Some(Run::Continues))
    }
}
