//! Many samples at once: what `write` does for each of them, under one lock and with one reading of the clock.
//!
//! Samples are written in runs. All of a run are in the history before the first of them is sent, so that they share
//! datagrams; a run is what one visit to the participant does, and bounds for how long others wait for it.

use std::borrow::Borrow;
use std::fmt;

use takt_core::Instant;

use super::{DataWriter, Publication};
use crate::runtime::clock;
use crate::runtime::driver::Driver;
use crate::{Error, Result, TypeSupport};

/// Samples of one run.
const SAMPLES_PER_RUN: usize = 256;

/// A batch stopped early: the samples before were published as if there had been no others.
#[derive(Debug)]
pub struct BatchError {
    /// Samples that were written. The next one, counted from zero, is the one that failed.
    pub written: usize,
    /// Why the next one was not.
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

/// Why a run ended.
enum Run {
    /// There are no more samples.
    Over,
    /// There is more to write, at once or when there is room.
    Goes,
}

impl<T: TypeSupport> DataWriter<T> {
    /// Publishes samples in their order, as [`write`](Self::write) does each of them, but cheaper: up to 256 of them cost one
    /// lock and one reading of the clock, bear one source time stamp, and leave in datagrams that they share. Returns
    /// how many there were. Does not allocate.
    ///
    /// All policies hold for each sample. Where `write` would wait, what was written is sent first; the wait begins anew with
    /// each sample that finds no room. With KEEP_LAST no sample takes the place of one that could have been sent.
    ///
    /// The samples come from a slice, or any iterator over samples or references to them. It runs inside the
    /// call, so it must not call anything on this participant's entities: that is [`Error::IllegalOperation`].
    ///
    /// # Errors
    /// As [`write`](Self::write), and how many samples were written before.
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
            let deadline = || clock::deadline(clock::now(), core.patience);
            let run = core.engine.block_on(&core.progress, deadline, |driver, now| {
                self.write_run(driver, now, &publication, (&mut samples, &mut next), &mut written)
            });
            match run {
                Ok(Run::Over) => return Ok(written),
                Ok(Run::Goes) => {}
                Err(error) => return Err(BatchError { written, error }),
            }
        }
    }

    /// Writes a run, beginning with `next`. `None` if the first sample finds no room; a sample that finds none is put back.
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
            let Some(sample) = next.take().or_else(|| samples.next()) else { return Ok(Some(Run::Over)) };
            let mut attempt = self.attempt(sample.borrow(), publication)?;
            if attempt(driver, now)?.is_none() {
                drop(attempt);
                *next = Some(sample);
                return Ok((*written > before).then_some(Run::Goes));
            }
            *written += 1;
        }
        Ok(Some(Run::Goes))
    }
}
