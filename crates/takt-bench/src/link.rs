//! What a workload needs of the thing it measures: one writer, one reader, and a way to wait.
//!
//! Takt and plain UDP sockets implement the same trait, so a baseline runs the very loop that it is
//! the baseline of.

use crate::error::{Error, Result};
use crate::payload::Blob;
use serde::Serialize;
use std::io;
use std::time::Duration;
use takt::status::LatencyExceededStatus;

/// Endpoints found on the other side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Matched {
    /// Readers matched with our writer.
    pub readers: usize,
    /// Writers matched with our reader.
    pub writers: usize,
}

impl Matched {
    /// At least as many of both as `wanted`.
    #[must_use]
    pub fn covers(&self, wanted: &Self) -> bool {
        self.readers >= wanted.readers && self.writers >= wanted.writers
    }
}

/// Called with each sample that arrives, and with a way to write one in the same context.
pub type Handler = Box<dyn FnMut(&Blob, &mut dyn FnMut(&Blob) -> Result<bool>) + Send>;

/// One writer, one reader, or both. Which topics they have is decided when the link is made.
pub trait Link {
    /// Writes one sample. `false`: it was refused because there is no room, and may be tried again.
    ///
    /// # Errors
    /// Anything but a lack of room.
    fn write(&mut self, sample: &Blob) -> Result<bool>;

    /// Octets of the sample that arrives for one of `len` octets. Others than `len` if the type cannot carry each length.
    fn carried_len(&self, len: usize) -> usize {
        len
    }

    /// Writes samples in their order, at once if the link can. Returns how many there was room for.
    ///
    /// # Errors
    /// Anything but a lack of room.
    fn write_batch(&mut self, samples: &[Blob]) -> Result<usize> {
        for (written, sample) in samples.iter().enumerate() {
            if !self.write(sample)? {
                return Ok(written);
            }
        }
        Ok(samples.len())
    }

    /// Waits up to `timeout` for one sample and moves it into `sample`. `false`: none came.
    ///
    /// Returns early, without a sample, when a signal interrupts the wait.
    ///
    /// # Errors
    /// The reader failed.
    fn receive(&mut self, sample: &mut Blob, timeout: Duration) -> Result<bool>;

    /// Lets background work happen for up to `timeout`, and runs the handler for what arrives. It may
    /// return early.
    ///
    /// # Errors
    /// The middleware failed.
    fn drive(&mut self, timeout: Duration) -> Result<()>;

    /// Endpoints found so far.
    ///
    /// # Errors
    /// The middleware failed.
    fn matched(&mut self) -> Result<Matched>;

    /// From now on samples go to `handler` instead of [`Link::receive`]. `false`: not offered.
    ///
    /// # Errors
    /// The middleware failed.
    fn listen(&mut self, handler: Handler) -> Result<bool>;

    /// Waits up to `timeout` until all that was written has arrived, if the link can know that.
    ///
    /// # Errors
    /// The middleware failed.
    fn flush(&mut self, timeout: Duration) -> Result<()>;

    /// Waits up to `timeout` until a durability service has made safe what was written.
    ///
    /// # Errors
    /// It has not, or the middleware failed.
    fn make_durable(&mut self, _timeout: Duration) -> Result<()> {
        Err(Error::Usage("without middleware there is no durability service".into()))
    }

    /// Writes what the jobs of its participant took, as JSON.
    ///
    /// # Errors
    /// There is no participant, or `out` fails.
    fn write_job_accounts(&self, _out: &mut dyn io::Write) -> Result<()> {
        Err(Error::Usage("without middleware there are no accounts of jobs".into()))
    }

    /// How old samples were, beside what is known of that beforehand.
    ///
    /// # Errors
    /// The middleware failed.
    fn latency_status(&self) -> Result<Option<LatencyExceededStatus>> {
        Ok(None)
    }
}

/// How a program learns of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Notify {
    /// A listener is called.
    #[default]
    Listener,
    /// It waits in a WaitSet, then takes.
    WaitSet,
    /// It takes until there is something.
    Poll,
}

/// What a thread does while there is nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Idle {
    /// Sleeps in the kernel.
    #[default]
    Block,
    /// Looks again at once, and burns its core.
    Spin,
}
