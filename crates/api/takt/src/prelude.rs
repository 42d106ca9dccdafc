//! Prelude: the names that most programs use, for `use takt::prelude::*`.
//!
//! `Result` is not included, since the standard library has the same name. `Duration` is that of
//! the standard library, which every call accepts.

pub use crate::qos::{DataReaderQos, DataWriterQos, Overrun};
pub use crate::{DataReader, DataWriter, DdsType, DomainParticipant, Executor, Sample, WaitSet};

pub use std::time::Duration;

/// Returns a duration of whole seconds.
#[must_use]
pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns a duration of milliseconds.
#[must_use]
pub const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Returns a duration of microseconds.
#[must_use]
pub const fn us(microseconds: u64) -> Duration {
    Duration::from_micros(microseconds)
}
