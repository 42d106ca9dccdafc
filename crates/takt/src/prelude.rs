//! Prelude: the names that most programs use, for `use takt::prelude::*`.
//!
//! `Duration` and `Result` are not included, since the standard library has the same names.

pub use crate::qos::{DataReaderQos, DataWriterQos, Overrun};
pub use crate::{DataReader, DataWriter, DdsType, DomainParticipant, Executor, Sample, WaitSet};

use crate::Duration;

/// Returns a duration of whole seconds.
#[must_use]
pub const fn secs(seconds: i32) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns a duration of milliseconds.
#[must_use]
pub const fn ms(milliseconds: u64) -> Duration {
    Duration::from_nanos(milliseconds.saturating_mul(1_000_000))
}

/// Returns a duration of microseconds.
#[must_use]
pub const fn us(microseconds: u64) -> Duration {
    Duration::from_nanos(microseconds.saturating_mul(1_000))
}
