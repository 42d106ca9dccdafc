//! Samples as `read` and `take` return them.

use takt_core::SampleInfo;

use crate::Readable;

/// A sample and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<T> {
    /// The data; `None` if there is only news of the instance (`info.valid_data` is false).
    pub data: Option<T>,
    /// Where there are no data: a value of which only the key members mean something, if the key is known.
    pub key: Option<T>,
    /// About the sample.
    pub info: SampleInfo,
}

impl<T: Readable> Sample<T> {
    pub(crate) fn new(info: SampleInfo) -> Self {
        Self { data: None, key: None, info }
    }

    /// A value to decode into, with the memory that is already here.
    pub(crate) fn take_value(&mut self) -> T {
        self.data.take().or_else(|| self.key.take()).unwrap_or_default()
    }
}
