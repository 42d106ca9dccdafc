//! Subscribers: access to several readers at once (DDS 1.4 §2.2.2.5.2.8, §2.2.3.6).
//!
//! While access is open, no held change of coherent sets or group order is presented. The samples
//! that the subscriber's readers return are therefore consistent.

use super::groups::Group;
use crate::context::Context;
use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::presentation::{is_of_group, uses_positions};
use crate::slots::{ReaderHandle, SubscriberHandle};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;
use takt_wire::discovery::PublicationData;
use takt_wire::qos::{AccessScope, Presentation};
use takt_wire::{EntityId, Guid};

/// Subscriber whose readers share more than policies.
#[derive(Debug)]
pub(crate) struct Subscriber {
    pub(crate) handle: SubscriberHandle,
    entity_id: EntityId,
    pub(crate) presentation: Presentation,
    /// Nesting depth of `begin_access`.
    depth: u32,
    pub(crate) readers: Vec<u32>,
    /// Publishers whose changes the subscriber presents in group order.
    groups: BTreeMap<Guid, Group>,
}

impl Subscriber {
    /// Reports whether its readers may be read only while access is open.
    ///
    /// DEVIATION(DDS 1.4 §2.2.2.5.2.8): with scope GROUP alone, neither coherent nor ordered,
    /// access need not be open, because there is no order or set to preserve.
    pub(crate) fn wants_access(&self) -> bool {
        is_of_group(&self.presentation) && (self.presentation.coherent_access || self.presentation.ordered_access)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.depth > 0
    }
}

impl Endpoints {
    /// Creates a subscriber, in which readers can be created.
    pub(crate) fn create_subscriber(&mut self, presentation: Presentation) -> Result<SubscriberHandle, Error> {
        let entity_id = EntityId::user_subscriber(self.next_entity_key()?);
        let index = self.subscribers.vacant();
        let handle = SubscriberHandle { index, generation: self.subscribers.generation(index) };
        self.subscribers.insert(Subscriber {
            handle,
            entity_id,
            presentation,
            depth: 0,
            readers: Vec::new(),
            groups: BTreeMap::new(),
        });
        Ok(handle)
    }

    /// Deletes a subscriber.
    pub(crate) fn delete_subscriber(&mut self, handle: SubscriberHandle) -> Result<(), Error> {
        let members = core::mem::take(&mut self.subscriber(handle)?.readers);
        for index in members {
            if let Some(reader) = self.readers.get_mut(index) {
                reader.group = None;
            }
        }
        self.subscribers.remove(handle.index);
        Ok(())
    }

    /// Opens access to the subscriber's readers.
    pub(crate) fn begin_access(&mut self, ctx: &mut Context, handle: SubscriberHandle) -> Result<(), Error> {
        let subscriber = self.subscriber(handle)?;
        subscriber.depth += 1;
        self.freeze(ctx, handle.index, true);
        Ok(())
    }

    /// Closes access to the subscriber's readers.
    pub(crate) fn end_access(
        &mut self,
        now: Instant,
        ctx: &mut Context,
        handle: SubscriberHandle,
    ) -> Result<(), Error> {
        ctx.work.unit();
        let subscriber = self.subscriber(handle)?;
        if subscriber.depth == 0 {
            return Err(Error::PreconditionNotMet { what: "begin_access was not called".to_string() });
        }
        subscriber.depth -= 1;
        if subscriber.depth > 0 || !uses_positions(&subscriber.presentation) {
            return Ok(());
        }
        self.freeze(ctx, handle.index, false);
        let Self { subscribers, readers, .. } = self;
        let Some(subscriber) = subscribers.get(handle.index) else { return Ok(()) };
        for &index in &subscriber.readers {
            if let Some(reader) = readers.get_mut(index) {
                reader.present_all_independent(ctx, now);
            }
        }
        ctx.groups_changed = true;
        self.present_due_groups(now, ctx);
        Ok(())
    }

    /// Returns how many samples a read or take of the reader may return: all, or one if the next
    /// sample may belong to another reader (DDS 1.4 §2.2.2.5.3.8).
    pub(crate) fn samples_per_read_max(&mut self, handle: ReaderHandle) -> Result<usize, Error> {
        let presentation = self.reader(handle)?.data.presentation;
        Ok(if is_of_group(&presentation) && presentation.ordered_access { 1 } else { usize::MAX })
    }

    /// Returns the readers of a subscriber with samples that the selector matches.
    pub(crate) fn readers_with(
        &mut self,
        ctx: &mut Context,
        handle: SubscriberHandle,
        selector: &crate::Selector,
    ) -> Result<Vec<ReaderHandle>, Error> {
        ctx.work.unit();
        self.subscriber(handle)?;
        self.check_access(handle.index)?;
        let Some(subscriber) = self.subscribers.get(handle.index) else { return Err(Error::AlreadyDeleted) };
        let is_ordered = is_of_group(&subscriber.presentation) && subscriber.presentation.ordered_access;
        let mut readers = Vec::new();
        let mut samples = Vec::new();
        for reader in subscriber.readers.iter().filter_map(|&index| self.readers.get(index)) {
            if is_ordered {
                ctx.work.steps(reader.cache.len());
                reader.cache.for_each(selector, |arrival| samples.push((arrival, reader.handle)));
            } else if reader.cache.has(selector) {
                readers.push(reader.handle);
            }
        }
        samples.sort_unstable_by_key(|(arrival, _)| *arrival);
        readers.extend(samples.into_iter().map(|(_, reader)| reader));
        Ok(readers)
    }

    /// Adds a newly enabled reader to its subscriber.
    pub(crate) fn join_subscriber(&mut self, index: u32) {
        let Some(reader) = self.readers.get_mut(index) else { return };
        let presentation = reader.data.presentation;
        if uses_positions(&presentation) {
            reader.cache.reserve_held();
            reader.presentation.shares_order = is_of_group(&presentation) && presentation.ordered_access;
        }
        // DEVIATION(DDS 1.4 §2.2.2.5.3.8): without ordered access samples come in the order of
        // their arrival, not instance by instance. That costs nothing. Applications that need
        // samples grouped by instance request INSTANCE and ordered access, or use
        // `take_next_instance`.
        reader.cache.by_instance = presentation.ordered_access && presentation.access_scope == AccessScope::Instance;
        if let Some(subscriber) = reader.group.and_then(|group| self.subscribers.get_mut(group)) {
            subscriber.presentation = presentation;
            subscriber.readers.push(index);
            if is_of_group(&presentation) {
                reader.data.group_entity_id = subscriber.entity_id;
            }
        }
    }

    /// Suspends or resumes the presentation of held changes at all readers of a subscriber.
    fn freeze(&mut self, ctx: &mut Context, subscriber: u32, is_frozen: bool) {
        let Self { subscribers, readers, .. } = self;
        let Some(subscriber) =
            subscribers.get(subscriber).filter(|subscriber| uses_positions(&subscriber.presentation))
        else {
            return;
        };
        ctx.work.steps(subscriber.readers.len());
        for &index in &subscriber.readers {
            if let Some(reader) = readers.get_mut(index) {
                reader.presentation.is_frozen = is_frozen;
            }
        }
    }

    /// Returns the publisher of a writer, if the reader's subscriber presents changes in group
    /// order.
    pub(crate) fn publisher_of(&self, reader: u32, publication: &PublicationData) -> Option<Guid> {
        let subscriber = self.subscribers.get(self.readers.get(reader)?.group?)?;
        let counts = is_of_group(&publication.presentation) && publication.group_entity_id != EntityId::UNKNOWN;
        let publisher = Guid { prefix: publication.guid.prefix, entity_id: publication.group_entity_id };
        (subscriber.wants_access() && counts).then_some(publisher)
    }

    /// Adds a matched writer of a publisher to the group.
    pub(crate) fn join_group(&mut self, index: u32, proxy: u32, writer: Guid, publisher: Option<Guid>) {
        let (Some(publisher), Some(reader)) = (publisher, self.readers.get(index)) else { return };
        let handle = reader.handle;
        if let Some(subscriber) = reader.group.and_then(|group| self.subscribers.get_mut(group)) {
            subscriber.groups.entry(publisher).or_default().join(handle, proxy, writer);
        }
    }

    /// Presents the changes of groups that have become due, if any may have. Visits the members
    /// of all groups. If a call may not present all, a timer that is due at once continues.
    pub(crate) fn present_due_groups(&mut self, now: Instant, ctx: &mut Context) {
        if !core::mem::take(&mut ctx.groups_changed) {
            return;
        }
        let Self { subscribers, readers, .. } = self;
        let mut is_done = true;
        for (_, subscriber) in subscribers.iter_mut().filter(|(_, subscriber)| !subscriber.is_open()) {
            let Subscriber { groups, presentation, .. } = subscriber;
            for group in groups.values_mut() {
                is_done &= group.present_due(presentation, readers, ctx, now);
            }
            groups.retain(|_, group| !group.is_empty());
        }
        // Presented changes may have set the flag, which changes nothing for the groups just
        // visited.
        ctx.groups_changed = false;
        if !is_done {
            ctx.timers.arm(ctx.groups_timer, now);
        }
    }

    /// Checks that a reader may be read now.
    pub(crate) fn check_access(&self, subscriber: u32) -> Result<(), Error> {
        match self.subscribers.get(subscriber) {
            Some(subscriber) if subscriber.wants_access() && !subscriber.is_open() => {
                let what = "PRESENTATION access_scope GROUP requires begin_access before reading";
                Err(Error::PreconditionNotMet { what: what.to_string() })
            }
            _ => Ok(()),
        }
    }
}
