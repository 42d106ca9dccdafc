//! Communication statuses of endpoints (DDS 1.4 §2.2.4.1).

use super::Participant;
use crate::cache::LatencyExceededStatus;
use crate::error::Error;
use crate::slots::{ReaderHandle, WriterHandle};
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LivelinessChangedStatus,
    LivelinessLostStatus, MatchedStatus, SampleLostStatus, SampleRejectedStatus,
};
use crate::work::RemoteStateSize;
use alloc::string::String;
use alloc::vec::Vec;
use takt_wire::Guid;

impl Participant {
    /// Reads and resets `PUBLICATION_MATCHED`.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn publication_matched_status(&mut self, handle: WriterHandle) -> Result<MatchedStatus, Error> {
        Ok(self.endpoints.writer(handle)?.statuses.matched.read())
    }

    /// Returns the number of readers that `PUBLICATION_MATCHED` counts now. Resets nothing.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn publication_match_count(&mut self, handle: WriterHandle) -> Result<usize, Error> {
        Ok(self.endpoints.writer(handle)?.statuses.matched.current_count as usize)
    }

    /// Returns the number of writers that `SUBSCRIPTION_MATCHED` counts now. Resets nothing.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn subscription_match_count(&mut self, handle: ReaderHandle) -> Result<usize, Error> {
        Ok(self.endpoints.reader(handle)?.statuses.matched.current_count as usize)
    }

    /// Reports whether any matched reader of a writer is RELIABLE.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn has_reliable_readers(&mut self, handle: WriterHandle) -> Result<bool, Error> {
        Ok(self.endpoints.writer(handle)?.acknowledged_by().next().is_some())
    }

    /// Returns at most `max` matched reliable readers that have not acknowledged all changes of a
    /// writer, with a readable name of their participant, and the total number of such readers.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn lagging_readers(&mut self, handle: WriterHandle, max: usize) -> Result<(Vec<(Guid, String)>, usize), Error> {
        let writer = self.endpoints.writer(handle)?;
        let last = writer.history.last_sn();
        let lagging: Vec<Guid> =
            writer.acknowledged_by().filter(|(_, acked)| *acked < last).map(|(reader, _)| reader).collect();
        let count = lagging.len();
        let named =
            lagging.into_iter().take(max).map(|reader| (reader, self.discovery.label_of(&self.ctx, reader.prefix)));
        Ok((named.collect(), count))
    }

    /// Returns the number of samples that a reader has lost so far. Resets nothing.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn samples_lost_total(&mut self, handle: ReaderHandle) -> Result<u64, Error> {
        Ok(self.endpoints.reader(handle)?.statuses.lost.total_count)
    }

    /// Reads and resets `SUBSCRIPTION_MATCHED`.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn subscription_matched_status(&mut self, handle: ReaderHandle) -> Result<MatchedStatus, Error> {
        Ok(self.endpoints.reader(handle)?.statuses.matched.read())
    }

    /// Reads and resets `OFFERED_INCOMPATIBLE_QOS`.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn offered_incompatible_qos_status(&mut self, handle: WriterHandle) -> Result<IncompatibleQosStatus, Error> {
        Ok(self.endpoints.writer(handle)?.statuses.incompatible.read())
    }

    /// Reads and resets `REQUESTED_INCOMPATIBLE_QOS`.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn requested_incompatible_qos_status(&mut self, handle: ReaderHandle) -> Result<IncompatibleQosStatus, Error> {
        Ok(self.endpoints.reader(handle)?.statuses.incompatible.read())
    }

    /// Reads and resets `INCONSISTENT_TOPIC` of a writer's topic.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn writer_inconsistent_topic_status(&mut self, handle: WriterHandle) -> Result<InconsistentTopicStatus, Error> {
        Ok(self.endpoints.writer(handle)?.statuses.inconsistent_topic.read())
    }

    /// Reads and resets `INCONSISTENT_TOPIC` of a reader's topic.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn reader_inconsistent_topic_status(&mut self, handle: ReaderHandle) -> Result<InconsistentTopicStatus, Error> {
        Ok(self.endpoints.reader(handle)?.statuses.inconsistent_topic.read())
    }

    /// Reads and resets `SAMPLE_LOST`.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn sample_lost_status(&mut self, handle: ReaderHandle) -> Result<SampleLostStatus, Error> {
        Ok(self.endpoints.reader(handle)?.statuses.lost.read())
    }

    /// Reads and resets `LIVELINESS_CHANGED`.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn liveliness_changed_status(&mut self, handle: ReaderHandle) -> Result<LivelinessChangedStatus, Error> {
        Ok(self.endpoints.reader(handle)?.statuses.liveliness.read())
    }

    /// Reads and resets `OFFERED_DEADLINE_MISSED`.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn offered_deadline_missed_status(&mut self, handle: WriterHandle) -> Result<DeadlineMissedStatus, Error> {
        Ok(self.endpoints.writer(handle)?.statuses.deadline_missed.read())
    }

    /// Reads and resets `REQUESTED_DEADLINE_MISSED`.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn requested_deadline_missed_status(&mut self, handle: ReaderHandle) -> Result<DeadlineMissedStatus, Error> {
        Ok(self.endpoints.reader(handle)?.statuses.deadline_missed.read())
    }

    /// Reads and resets `LIVELINESS_LOST`.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn liveliness_lost_status(&mut self, handle: WriterHandle) -> Result<LivelinessLostStatus, Error> {
        Ok(self.endpoints.writer(handle)?.statuses.liveliness_lost.read())
    }

    /// Reads and resets the status of a reader's E2E_LATENCY and computed bound. `None` if the
    /// reader has neither, or is not enabled.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn latency_exceeded_status(&mut self, handle: ReaderHandle) -> Result<Option<LatencyExceededStatus>, Error> {
        Ok(self.endpoints.reader(handle)?.cache.latency.as_mut().map(|latency| latency.read()))
    }

    /// Reads and resets `SAMPLE_REJECTED`.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn sample_rejected_status(&mut self, handle: ReaderHandle) -> Result<SampleRejectedStatus, Error> {
        Ok(self.endpoints.reader(handle)?.statuses.rejected.read())
    }

    /// Returns the state kept for remote participants; visits each of them.
    #[must_use]
    pub fn remote_state_size(&self) -> RemoteStateSize {
        let remotes = || self.discovery.remotes.iter().map(|(_, remote)| remote);
        RemoteStateSize {
            participants: self.discovery.remotes.len(),
            on_probation: remotes().filter(|remote| remote.is_on_probation()).count(),
            endpoints: self.discovery.publications.len() + self.discovery.subscriptions.len(),
            endpoints_of_one_max: remotes().map(|remote| remote.endpoints).max().unwrap_or(0),
            octets: self.discovery.discovery_bytes,
            octets_of_one_max: remotes().map(|remote| remote.footprint).max().unwrap_or(0),
            queued: self.ctx.jobs.len() + self.ctx.events.len(),
            refusals: self.discovery.refusals.len(),
        }
    }
}
