//! Calls of the application on its subscribers (DDS 1.4 §2.2.2.5.2).

use super::Participant;
use crate::error::Error;
use crate::slots::{ReaderHandle, SubscriberHandle};
use crate::time::Instant;
use alloc::vec::Vec;
use takt_wire::qos::Presentation;

impl Participant {
    /// Creates a subscriber, in which readers can be created.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] if the participant has had too many entities.
    pub fn create_subscriber(&mut self, presentation: Presentation) -> Result<SubscriberHandle, Error> {
        self.endpoints.create_subscriber(presentation)
    }

    /// Deletes a subscriber. Its readers should be deleted before.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn delete_subscriber(&mut self, handle: SubscriberHandle) -> Result<(), Error> {
        self.endpoints.delete_subscriber(handle)
    }

    /// Opens access to the subscriber's readers. Calls may be nested.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn begin_access(&mut self, handle: SubscriberHandle) -> Result<(), Error> {
        self.endpoints.begin_access(&mut self.ctx, handle)
    }

    /// Closes access to the subscriber's readers.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] without a [`Self::begin_access`], [`Error::AlreadyDeleted`].
    pub fn end_access(&mut self, now: Instant, handle: SubscriberHandle) -> Result<(), Error> {
        self.endpoints.end_access(now, &mut self.ctx, handle)
    }

    /// Returns how many samples a read or take of the reader may return: all, or one if the next
    /// sample may belong to another reader (PRESENTATION with scope GROUP and ordered access,
    /// DDS 1.4 §2.2.2.5.3.8).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn samples_per_read_max(&mut self, handle: ReaderHandle) -> Result<usize, Error> {
        self.endpoints.samples_per_read_max(handle)
    }

    /// Returns the readers of a subscriber with samples that the selector matches. With
    /// PRESENTATION scope GROUP and ordered access there is one entry for each such sample, in
    /// reading order: take one sample from each entry.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] with scope GROUP outside [`Self::begin_access`],
    /// [`Error::AlreadyDeleted`].
    pub fn readers_with(
        &mut self,
        handle: SubscriberHandle,
        selector: &crate::Selector,
    ) -> Result<Vec<ReaderHandle>, Error> {
        self.endpoints.readers_with(&mut self.ctx, handle, selector)
    }
}
