//! Calls of the application on its publishers (DDS 1.4 §2.2.2.4.1).

use super::Participant;
use crate::error::Error;
use crate::slots::PublisherHandle;
use crate::time::Instant;
use takt_wire::qos::Presentation;

impl Participant {
    /// Creates a publisher, in which writers can be created. It tracks their PRESENTATION state.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] if the participant has had too many entities.
    pub fn create_publisher(&mut self, presentation: Presentation) -> Result<PublisherHandle, Error> {
        self.endpoints.create_publisher(presentation)
    }

    /// Deletes a publisher. Its writers should be deleted before; later changes of a remaining one
    /// belong to no publisher.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn delete_publisher(&mut self, handle: PublisherHandle) -> Result<(), Error> {
        self.endpoints.delete_publisher(handle)
    }

    /// Begins a coherent set of all changes of the publisher's writers, if its PRESENTATION has
    /// `coherent_access`. Calls may be nested: the set ends with as many calls of
    /// [`Self::end_coherent_changes`].
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn begin_coherent_changes(&mut self, handle: PublisherHandle) -> Result<(), Error> {
        self.endpoints.begin_coherent_changes(handle)
    }

    /// Ends the coherent set: readers that request coherent access may now present it. Visits
    /// each writer of the publisher.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] without a [`Self::begin_coherent_changes`],
    /// [`Error::AlreadyDeleted`].
    pub fn end_coherent_changes(&mut self, now: Instant, handle: PublisherHandle) -> Result<(), Error> {
        self.endpoints.end_coherent_changes(now, &mut self.ctx, handle)
    }
}
