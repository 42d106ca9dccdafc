//! What a durability service needs of the core, and what its writers can ask (DDS 1.4 §2.2.3.4, RTPS 2.5 §8.7.9): samples that
//! are passed on under the name of their original writer, and acknowledgements that wait until they are safe.
//!
//! Endpoints of services say so in USER_DATA: [`DURABILITY_SERVICE`]. That is a claim, as all of discovery is.

use super::Participant;
use super::endpoints::{NewChange, live_reader, live_writer};
use crate::cache::InstanceHandle;
use crate::error::{Error, WriteError};
use crate::presentation::Place;
use crate::slots::{ReaderHandle, WriterHandle};
use crate::time::Instant;
use crate::writer::{Directed, Write};
use alloc::vec::Vec;
use takt_wire::inline_qos::SampleIdentity;
use takt_wire::qos::UserData;
use takt_wire::{Guid, SequenceNumber};

/// What the USER_DATA of endpoints of a durability service begins with.
pub const DURABILITY_SERVICE: &[u8] = b"takt.durability=service;";

/// Whether an endpoint says that it is a durability service's.
pub(crate) fn is_durability_service(user_data: &UserData) -> bool {
    user_data.0.starts_with(DURABILITY_SERVICE)
}

impl Participant {
    /// A writer that is not enabled yet will pass on what others wrote ([`Self::relay`]). Readers that are matched get
    /// what it has; what is passed on afterwards goes only to readers that know what they had already, and ask for history:
    /// others hear the original writer, and would show it twice.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn make_relay(&mut self, handle: WriterHandle) -> Result<(), Error> {
        self.writer(handle)?.make_relay();
        Ok(())
    }

    /// Writes a change of another writer, with that writer's number and source time stamp, whatever DESTINATION_ORDER.
    /// Otherwise as [`Self::write`].
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
        let Self { writers, ctx, .. } = self;
        ctx.work.unit();
        let write = Write {
            kind: change.kind,
            key_hash: change.key_hash,
            source_timestamp: change.source_timestamp.unwrap_or(ctx.wall_clock(now)),
            payload_len: payload.len(),
            directed: Directed::default(),
            place: Place::default(),
            in_set: false,
            origin: Some(origin),
        };
        live_writer(writers, handle)?.write(now, ctx, &write, |slot| {
            slot.copy_from_slice(payload);
            Some(payload.len())
        })
    }

    /// A relay forgets an instance with its changes, each of them as soon as all matched reliable readers have acknowledged it. Readers
    /// that are matched after that do not hear of it.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn forget_instance(&mut self, handle: WriterHandle, instance: InstanceHandle) -> Result<(), Error> {
        let Self { writers, ctx, .. } = self;
        live_writer(writers, handle)?.forget_instance(ctx, instance);
        Ok(())
    }

    /// A relay forgets the changes of an original writer above a number, each of them as soon as all matched reliable readers have
    /// acknowledged it. Readers that are matched after that do not hear of them.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn forget_relayed(&mut self, handle: WriterHandle, origin: Guid, above: SequenceNumber) -> Result<(), Error> {
        let Self { writers, ctx, .. } = self;
        live_writer(writers, handle)?.forget_relayed(ctx, origin, above);
        Ok(())
    }

    /// Up to which change a writer has announced that it has written, by its own heartbeats and samples. `None` if it is not
    /// matched with the reader.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn announced_by(&mut self, handle: ReaderHandle, writer: Guid) -> Result<Option<SequenceNumber>, Error> {
        Ok(self.reader(handle)?.announced_by(writer))
    }

    /// The number of a writer's last change; 0 before the first.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn last_written(&mut self, handle: WriterHandle) -> Result<SequenceNumber, Error> {
        Ok(self.writer(handle)?.history.last_sn())
    }

    /// From now on the reader acknowledges when [`Self::acknowledge_taken`] says so. To be called before it is enabled.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn acknowledge_explicitly(&mut self, handle: ReaderHandle) -> Result<(), Error> {
        self.reader(handle)?.acknowledge_explicitly();
        Ok(())
    }

    /// Acknowledges all that was taken up to the last pass that left nothing. Looks at each matched writer once.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn acknowledge_taken(&mut self, handle: ReaderHandle) -> Result<(), Error> {
        let Self { readers, ctx, .. } = self;
        ctx.work.unit();
        live_reader(readers, handle)?.acknowledge_taken(ctx);
        Ok(())
    }

    /// Of each writer that is matched with a reader that acknowledges explicitly: the first sample that came and could not be kept, since it
    /// is larger than the reader's memory, or its key cannot be read. Nothing from it on is acknowledged.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn unkept(&mut self, handle: ReaderHandle) -> Result<Vec<SampleIdentity>, Error> {
        Ok(self.reader(handle)?.unkept().collect())
    }

    /// The readers of durability services that are matched with a writer, and up to where each has acknowledged.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn durability_services(&mut self, handle: WriterHandle) -> Result<Vec<(Guid, SequenceNumber)>, Error> {
        let matched: Vec<_> = self.writer(handle)?.acknowledged_by().collect();
        let is_service = |reader: &Guid| {
            self.subscriptions.get(reader).is_some_and(|data| is_durability_service(&data.qos.user_data))
        };
        Ok(matched.into_iter().filter(|(reader, _)| is_service(reader)).collect())
    }
}
