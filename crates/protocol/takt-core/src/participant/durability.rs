//! Support for durability services and for their clients (DDS 1.4 §2.2.3.4, RTPS 2.5 §8.7.9).
//!
//! A service relays samples under the identity of their original writer, and acknowledges them only
//! once they are stored.
//!
//! Endpoints of services announce themselves in USER_DATA by [`DURABILITY_SERVICE`]. Like all of
//! discovery, this claim is not verified.

use super::Participant;
use super::endpoints::NewChange;
use crate::cache::InstanceHandle;
use crate::endpoints::{Endpoints, live_reader, live_writer};
use crate::error::{Error, WriteError};
use crate::presentation::SetPosition;
use crate::slots::{ReaderHandle, WriterHandle};
use crate::time::Instant;
use crate::writer::{Directed, Write};
use alloc::vec::Vec;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::qos::UserData;
use takt_wire::{Guid, SequenceNumber};

/// Prefix of the USER_DATA of a durability service's endpoints.
pub const DURABILITY_SERVICE: &[u8] = b"takt.durability=service;";

/// Reports whether an endpoint announces that it belongs to a durability service.
pub(crate) fn is_durability_service(user_data: &UserData) -> bool {
    user_data.0.starts_with(DURABILITY_SERVICE)
}

impl Participant {
    /// Makes a writer that is not enabled yet a relay of other writers' samples ([`Self::relay`]).
    /// Readers get the relay's history when they are matched. Samples that are relayed later go
    /// only to readers that report which samples they have and request history. Other readers
    /// receive the original writer, and would present these samples twice.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn make_relay(&mut self, handle: WriterHandle) -> Result<(), Error> {
        self.endpoints.writer(handle)?.make_relay();
        Ok(())
    }

    /// Writes a change of another writer with that writer's sequence number and source timestamp,
    /// regardless of DESTINATION_ORDER. Otherwise as [`Self::write`].
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn relay(
        &mut self,
        now: Instant,
        handle: WriterHandle,
        change: &NewChange<'_>,
        origin: SampleIdentity,
        payload: &[u8],
    ) -> Result<SequenceNumber, WriteError> {
        let Self { endpoints: Endpoints { writers, .. }, ctx, .. } = self;
        ctx.work.unit();
        let write = Write {
            kind: change.kind,
            key_hash: change.key_hash,
            source_timestamp: change.source_timestamp.unwrap_or(ctx.wall_clock(now)),
            payload_len: payload.len(),
            directed: Directed::default(),
            position: SetPosition::default(),
            in_set: false,
            origin: Some(origin),
        };
        live_writer(writers, handle)?.write(now, ctx, &write, |slot| {
            slot.copy_from_slice(payload);
            Some(payload.len())
        })
    }

    /// Removes an instance and its changes from a relay. Each change is removed once all matched
    /// reliable readers have acknowledged it. Readers that are matched later do not get them.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn discard_instance(&mut self, handle: WriterHandle, instance: InstanceHandle) -> Result<(), Error> {
        let Self { endpoints: Endpoints { writers, .. }, ctx, .. } = self;
        live_writer(writers, handle)?.discard_instance(ctx, instance);
        Ok(())
    }

    /// Removes the changes of an original writer above a sequence number from a relay. Each change
    /// is removed once all matched reliable readers have acknowledged it. Readers that are matched
    /// later do not get them.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn discard_relayed(&mut self, handle: WriterHandle, origin: Guid, above: SequenceNumber) -> Result<(), Error> {
        let Self { endpoints: Endpoints { writers, .. }, ctx, .. } = self;
        live_writer(writers, handle)?.discard_relayed(ctx, origin, above);
        Ok(())
    }

    /// Returns the last sequence number that a writer has announced by its own heartbeats and
    /// samples; `None` if the writer is not matched with the reader.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn last_announced(&mut self, handle: ReaderHandle, writer: Guid) -> Result<Option<SequenceNumber>, Error> {
        Ok(self.endpoints.reader(handle)?.last_announced(writer))
    }

    /// Returns the sequence number of a writer's last change; 0 before the first.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn last_written(&mut self, handle: WriterHandle) -> Result<SequenceNumber, Error> {
        Ok(self.endpoints.writer(handle)?.history.last_sn())
    }

    /// Makes a reader acknowledge samples only by [`Self::acknowledge_taken`]. Must be called
    /// before the reader is enabled.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn acknowledge_explicitly(&mut self, handle: ReaderHandle) -> Result<(), Error> {
        self.endpoints.reader(handle)?.acknowledge_explicitly();
        Ok(())
    }

    /// Acknowledges all samples that were taken up to the last pass that left none. Visits each
    /// matched writer once.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn acknowledge_taken(&mut self, handle: ReaderHandle) -> Result<(), Error> {
        let Self { endpoints: Endpoints { readers, .. }, ctx, .. } = self;
        ctx.work.unit();
        live_reader(readers, handle)?.acknowledge_taken(ctx);
        Ok(())
    }

    /// Returns, for each writer matched with an explicitly acknowledging reader, the first sample
    /// that could not be kept. Such a sample is larger than the reader's memory, or its key cannot
    /// be decoded. This sample and later ones are not acknowledged.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn first_unstored(&mut self, handle: ReaderHandle) -> Result<Vec<SampleIdentity>, Error> {
        Ok(self.endpoints.reader(handle)?.first_unstored().collect())
    }

    /// Returns the readers of durability services that are matched with a writer, and the last
    /// sequence number that each has acknowledged.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn durability_services(&mut self, handle: WriterHandle) -> Result<Vec<(Guid, SequenceNumber)>, Error> {
        let matched: Vec<_> = self.endpoints.writer(handle)?.acknowledged_by().collect();
        let is_service = |reader: &Guid| {
            self.discovery.subscriptions.get(reader).is_some_and(|data| is_durability_service(&data.qos.user_data))
        };
        Ok(matched.into_iter().filter(|(reader, _)| is_service(reader)).collect())
    }
}
