//! Publishers: coherent changes of several writers (DDS 1.4 §2.2.2.4.1.10), and their group
//! sequence numbers (RTPS 2.5 §8.7.5).

use crate::context::Context;
use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::presentation::{SetPosition, is_of_group};
use crate::slots::{PublisherHandle, Slots};
use crate::time::Instant;
use crate::writer::{Write, Writer};
use alloc::string::ToString;
use alloc::vec::Vec;
use takt_wire::qos::Presentation;
use takt_wire::{EntityId, SequenceNumber};

/// Publisher whose writers share more than policies.
#[derive(Debug)]
pub(crate) struct Publisher {
    pub(crate) handle: PublisherHandle,
    entity_id: EntityId,
    presentation: Presentation,
    /// Nesting depth of `begin_coherent_changes`.
    depth: u32,
    /// Last assigned group sequence number, if the publisher assigns them.
    gsn: SequenceNumber,
    /// Group sequence number of the first change of the open set; zero if there is none yet.
    group_set: SequenceNumber,
    pub(crate) writers: Vec<u32>,
}

impl Publisher {
    /// Reports whether new changes belong to a coherent set.
    fn is_open(&self) -> bool {
        self.depth > 0 && self.presentation.coherent_access
    }

    /// Returns the position of the next change as far as the publisher determines it.
    fn next_position(&self) -> SetPosition {
        if !is_of_group(&self.presentation) {
            return SetPosition::default();
        }
        let gsn = self.gsn.next();
        let first = if self.group_set.is_valid() { self.group_set } else { gsn };
        let group_set = if self.is_open() { first } else { SequenceNumber::ZERO };
        SetPosition { gsn, group_set, ..SetPosition::default() }
    }

    /// Assigns the position of a change.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] for a directed change in a coherent set, because the set would
    /// be incomplete for all other readers.
    pub(crate) fn assign_position(&self, write: Write) -> Result<Write, Error> {
        if self.is_open() && !write.directed.readers().is_empty() {
            return Err(Error::PreconditionNotMet { what: "a coherent set allows no directed writes".to_string() });
        }
        Ok(Write { position: self.next_position(), in_set: self.is_open(), ..write })
    }

    pub(crate) fn remove_writer(&mut self, writer: u32) {
        self.writers.retain(|index| *index != writer);
    }

    /// Commits the position that [`Self::assign_position`] assigned, after the change was made.
    pub(crate) fn commit_position(&mut self, position: &SetPosition) {
        self.gsn = self.gsn.max(position.gsn);
        self.group_set = self.group_set.max(position.group_set);
    }

    /// Notifies all its writers except `but` of the last group sequence number. Visits each of
    /// them.
    pub(crate) fn notify_others(&self, but: u32, writers: &mut Slots<Writer>, ctx: &mut Context) {
        if !is_of_group(&self.presentation) {
            return;
        }
        ctx.work.steps(self.writers.len());
        for &index in &self.writers {
            if let Some(writer) = writers.get_mut(index) {
                writer.advance_gsn(self.gsn, index != but && self.presentation.ordered_access, ctx);
            }
        }
    }
}

impl Endpoints {
    /// Creates a publisher, in which writers can be created.
    pub(crate) fn create_publisher(&mut self, presentation: Presentation) -> Result<PublisherHandle, Error> {
        let entity_id = EntityId::user_publisher(self.next_entity_key()?);
        let index = self.publishers.vacant();
        let handle = PublisherHandle { index, generation: self.publishers.generation(index) };
        self.publishers.insert(Publisher {
            handle,
            entity_id,
            presentation,
            depth: 0,
            gsn: SequenceNumber::ZERO,
            group_set: SequenceNumber::ZERO,
            writers: Vec::new(),
        });
        Ok(handle)
    }

    /// Deletes a publisher.
    pub(crate) fn delete_publisher(&mut self, handle: PublisherHandle) -> Result<(), Error> {
        let members = core::mem::take(&mut self.publisher(handle)?.writers);
        for index in members {
            if let Some(writer) = self.writers.get_mut(index) {
                writer.leave();
            }
        }
        self.publishers.remove(handle.index);
        Ok(())
    }

    /// Begins a coherent set of all changes of the publisher's writers, if its PRESENTATION has
    /// `coherent_access`.
    pub(crate) fn begin_coherent_changes(&mut self, handle: PublisherHandle) -> Result<(), Error> {
        self.publisher(handle)?.depth += 1;
        Ok(())
    }

    /// Ends the coherent set: readers that request coherent access may now present it.
    pub(crate) fn end_coherent_changes(
        &mut self,
        now: Instant,
        ctx: &mut Context,
        handle: PublisherHandle,
    ) -> Result<(), Error> {
        ctx.work.unit();
        let publisher = self.publisher(handle)?;
        if publisher.depth == 0 {
            return Err(Error::PreconditionNotMet { what: "begin_coherent_changes was not called".to_string() });
        }
        publisher.depth -= 1;
        if publisher.depth > 0 || !publisher.presentation.coherent_access {
            return Ok(());
        }
        let group_set = core::mem::take(&mut publisher.group_set);
        if is_of_group(&publisher.presentation) && !group_set.is_valid() {
            // The set is empty.
            return Ok(());
        }
        if group_set.is_valid() {
            publisher.gsn = publisher.gsn.next();
        }
        let end = SetPosition { group_set, gsn: publisher.gsn, ends: true, ..SetPosition::default() };
        let members = core::mem::take(&mut publisher.writers);
        ctx.work.steps(members.len());
        for &index in &members {
            if let Some(writer) = self.writers.get_mut(index) {
                writer.end_set(now, ctx, end);
            }
        }
        if let Ok(publisher) = self.publisher(handle) {
            publisher.writers = members;
        }
        Ok(())
    }

    /// Adds a newly enabled writer to its publisher. The writer announces the publisher only if
    /// that one assigns group sequence numbers.
    pub(crate) fn join_publisher(&mut self, ctx: &mut Context, index: u32) {
        let Some(writer) = self.writers.get_mut(index) else { return };
        if !writer.join() {
            return;
        }
        if let Some(publisher) = writer.group.and_then(|group| self.publishers.get_mut(group)) {
            publisher.presentation = writer.data.presentation;
            publisher.writers.push(index);
            // Readers wait for this writer's group information, and the publisher may never advance
            // again.
            writer.advance_gsn(publisher.gsn, false, ctx);
            if is_of_group(&publisher.presentation) {
                writer.data.group_entity_id = publisher.entity_id;
            }
        }
    }
}
