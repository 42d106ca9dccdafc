//! Samples as `read` and `take` return them.

use takt_core::ranks::Informed;
use takt_core::{InstanceHandle, InstanceState, SampleInfo, SampleState, ViewState};
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{Guid, SequenceNumber, Timestamp};

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

impl<T> Informed for Sample<T> {
    fn info(&self) -> &SampleInfo {
        &self.info
    }

    fn info_mut(&mut self) -> &mut SampleInfo {
        &mut self.info
    }
}

/// A place for a sample, without one yet.
impl<T> Default for Sample<T> {
    fn default() -> Self {
        let info = SampleInfo {
            sample_state: SampleState::NotRead,
            view_state: ViewState::New,
            instance_state: InstanceState::NotAliveNoWriters,
            instance_handle: InstanceHandle::default(),
            publication: Guid::UNKNOWN,
            sequence_number: SequenceNumber::ZERO,
            origin: SampleIdentity { writer: Guid::UNKNOWN, sn: SequenceNumber::ZERO },
            source_timestamp: Timestamp::INVALID,
            reception_timestamp: Timestamp::INVALID,
            disposed_generation_count: 0,
            no_writers_generation_count: 0,
            sample_rank: 0,
            generation_rank: 0,
            absolute_generation_rank: 0,
            valid_data: false,
        };
        Self { data: None, key: None, info }
    }
}
