//! Link interface of workloads: one writer, one reader, and a method to wait.
//!
//! Takt and plain UDP sockets implement the same trait, so a baseline runs the same loop as the
//! measurement.

use crate::error::{Error, Result};
use crate::payload::Blob;
use serde::Serialize;
use std::io;
use std::time::Duration;
use takt::status::LatencyExceededStatus;

/// Numbers of matched remote endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Matched {
    /// Number of readers matched with the local writer.
    pub readers: usize,
    /// Number of writers matched with the local reader.
    pub writers: usize,
}

impl Matched {
    /// Reports whether both numbers are at least those of `wanted`.
    #[must_use]
    pub fn covers(&self, wanted: &Self) -> bool {
        self.readers >= wanted.readers && self.writers >= wanted.writers
    }
}

/// Callback for each sample that arrives, with a function that writes a sample in the same context.
pub type Handler = Box<dyn FnMut(&Blob, &mut dyn FnMut(&Blob) -> Result<bool>) + Send>;

/// One writer, one reader, or both. Their topics are set when the link is created.
pub trait Link {
    /// Writes one sample. Returns `false` if there is no room; the write may be tried again.
    ///
    /// # Errors
    /// Any failure other than a lack of room.
    fn write(&mut self, sample: &Blob) -> Result<bool>;

    /// Returns the size of the sample that arrives for one of `len` octets. It differs from `len`
    /// if the type does not support every length.
    fn carried_len(&self, len: usize) -> usize {
        len
    }

    /// Writes samples in their order, in one batch if the link supports that. Returns the number
    /// that there was room for.
    ///
    /// # Errors
    /// Any failure other than a lack of room.
    fn write_batch(&mut self, samples: &[Blob]) -> Result<usize> {
        for (written, sample) in samples.iter().enumerate() {
            if !self.write(sample)? {
                return Ok(written);
            }
        }
        Ok(samples.len())
    }

    /// Waits up to `timeout` for one sample and moves it into `sample`. Returns `false` if none
    /// arrived.
    ///
    /// Returns early, without a sample, when a signal interrupts the wait.
    ///
    /// # Errors
    /// The reader failed.
    fn receive(&mut self, sample: &mut Blob, timeout: Duration) -> Result<bool>;

    /// Runs background work for up to `timeout`, and calls the handler for samples that arrive. It
    /// may return early. A plain transport has no such work: the thread sleeps.
    ///
    /// # Errors
    /// The middleware failed.
    fn drive(&mut self, timeout: Duration) -> Result<()> {
        std::thread::park_timeout(timeout);
        Ok(())
    }

    /// Returns the numbers of endpoints matched so far.
    ///
    /// # Errors
    /// The middleware failed.
    fn matched(&mut self) -> Result<Matched>;

    /// Passes samples to `handler` from now on, instead of [`Link::receive`]. Returns `false` if
    /// the link does not support handlers.
    ///
    /// # Errors
    /// The middleware failed.
    fn listen(&mut self, _handler: Handler) -> Result<bool> {
        Ok(false)
    }

    /// Waits up to `timeout` until all written samples have arrived, if the link can detect that.
    ///
    /// # Errors
    /// The middleware failed.
    fn flush(&mut self, _timeout: Duration) -> Result<()> {
        Ok(())
    }

    /// Waits up to `timeout` until a durability service has stored the written samples.
    ///
    /// # Errors
    /// The service has not stored them in time, or the middleware failed.
    fn make_durable(&mut self, _timeout: Duration) -> Result<()> {
        Err(Error::Usage("plain transports have no durability service".into()))
    }

    /// Writes the job statistics of the participant, as JSON.
    ///
    /// # Errors
    /// There is no participant, or `out` fails.
    fn write_job_statistics(&self, _out: &mut dyn io::Write) -> Result<()> {
        Err(Error::Usage("plain transports have no job statistics".into()))
    }

    /// Returns the ages of received samples and the bound that is known beforehand.
    ///
    /// # Errors
    /// The middleware failed.
    fn latency_status(&self) -> Result<Option<LatencyExceededStatus>> {
        Ok(None)
    }
}

/// Method by which a program is notified of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Notify {
    /// Middleware calls a listener.
    #[default]
    Listener,
    /// Program waits in a WaitSet, then takes.
    WaitSet,
    /// Program calls take repeatedly until there is a sample.
    Poll,
}

/// Behavior of a thread without work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Idle {
    /// Blocks in the kernel.
    #[default]
    Block,
    /// Polls at once, and keeps its core busy.
    Spin,
}
