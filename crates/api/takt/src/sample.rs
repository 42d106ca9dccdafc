//! Samples as returned by `read` and `take`.

use takt_core::ranks::HasSampleInfo;
use takt_core::{InstanceHandle, InstanceState, SampleInfo, SampleState, ViewState};
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::{Guid, SequenceNumber, Timestamp};

use crate::Readable;

/// Sample: data or key, with its SampleInfo.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<T> {
    /// Data of the sample; `None` if `info.valid_data` is false.
    pub data: Option<T>,
    /// Key of a sample without data, if the key is known. Only the key members of the value are
    /// meaningful.
    pub key: Option<T>,
    /// SampleInfo.
    pub info: SampleInfo,
}

impl<T: Readable> Sample<T> {
    pub(crate) fn new(info: SampleInfo) -> Self {
        Self { data: None, key: None, info }
    }

    /// Returns a value to decode into, which reuses the memory of the former data or key.
    pub(crate) fn take_value(&mut self) -> T {
        self.data.take().or_else(|| self.key.take()).unwrap_or_default()
    }
}

impl<T> HasSampleInfo for Sample<T> {
    fn info(&self) -> &SampleInfo {
        &self.info
    }

    fn info_mut(&mut self) -> &mut SampleInfo {
        &mut self.info
    }
}

/// Empty slot for a sample.
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
