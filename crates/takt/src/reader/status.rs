//! What a reader tells of itself and of its writers (DDS 1.4 §2.2.4.1).

use takt_core::ReaderHandle;
use takt_wire::Guid;

use super::DataReader;
use crate::builtin::PublicationBuiltinTopicData;
use crate::runtime::driver::Driver;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LivelinessChangedStatus, MatchedStatus,
    SampleLostStatus, SampleRejectedStatus, StatusMask,
};
use crate::{Error, Readable, Result};

impl<T: Readable> DataReader<T> {
    /// How many writers are matched, and what changed since this was last asked.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn subscription_matched_status(&self) -> Result<MatchedStatus> {
        self.status(StatusMask::SUBSCRIPTION_MATCHED, |driver, reader| driver.core.subscription_matched_status(reader))
    }

    /// How many writers offer less than this reader asks for, and for which policy the last one did.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn requested_incompatible_qos_status(&self) -> Result<IncompatibleQosStatus> {
        self.status(StatusMask::REQUESTED_INCOMPATIBLE_QOS, |driver, reader| {
            driver.core.requested_incompatible_qos_status(reader)
        })
    }

    /// How many matched writers show that they live, and how many do not (DDS 1.4 §2.2.3.11).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn liveliness_changed_status(&self) -> Result<LivelinessChangedStatus> {
        self.status(StatusMask::LIVELINESS_CHANGED, |driver, reader| driver.core.liveliness_changed_status(reader))
    }

    /// In how many periods of DEADLINE an instance got no sample, and which one did not last (DDS 1.4 §2.2.3.7).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn requested_deadline_missed_status(&self) -> Result<DeadlineMissedStatus> {
        self.status(StatusMask::REQUESTED_DEADLINE_MISSED, |driver, reader| {
            driver.core.requested_deadline_missed_status(reader)
        })
    }

    /// How many samples were lost.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn sample_lost_status(&self) -> Result<SampleLostStatus> {
        self.status(StatusMask::SAMPLE_LOST, |driver, reader| driver.core.sample_lost_status(reader))
    }

    /// How many samples found no room, and why the last one did not.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn sample_rejected_status(&self) -> Result<SampleRejectedStatus> {
        self.status(StatusMask::SAMPLE_REJECTED, |driver, reader| driver.core.sample_rejected_status(reader))
    }

    /// How many writers of the topic have another type.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn inconsistent_topic_status(&self) -> Result<InconsistentTopicStatus> {
        self.status(StatusMask::INCONSISTENT_TOPIC, |driver, reader| {
            driver.core.reader_inconsistent_topic_status(reader)
        })
    }

    fn status<S>(
        &self,
        status: StatusMask,
        read: impl FnOnce(&mut Driver, ReaderHandle) -> std::result::Result<S, takt_core::Error>,
    ) -> Result<S> {
        self.inner.engine.look(|driver| {
            self.inner.signal.clear(status);
            Ok(read(driver, self.inner.handle)?)
        })
    }

    /// The writers that are matched.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn matched_publications(&self) -> Result<Vec<Guid>> {
        self.inner.engine.look(|driver| Ok(driver.core.matched_publications(self.inner.handle)?))
    }

    /// What is known of a matched writer (`get_matched_publication_data`).
    ///
    /// # Errors
    /// [`Error::BadParameter`] if it is not matched, [`Error::AlreadyDeleted`] after [`close`](Self::close).
    pub fn matched_publication_data(&self, writer: Guid) -> Result<PublicationBuiltinTopicData> {
        self.inner.engine.look(|driver| {
            let is_matched = driver.core.matched_publications(self.inner.handle)?.contains(&writer);
            let data = is_matched.then(|| driver.core.publication_data(writer)).flatten();
            let unknown = || Error::BadParameter { what: format!("writer {writer} is not matched") };
            data.map(PublicationBuiltinTopicData::from).ok_or_else(unknown)
        })
    }
}
