//! Local endpoints, and the publishers and subscribers that contain them.

mod groups;
mod publishers;
mod subscribers;

pub(crate) use publishers::Publisher;
pub(crate) use subscribers::Subscriber;

use crate::context::Context;
use crate::error::Error;
use crate::reader::Reader;
use crate::slots::{PublisherHandle, ReaderHandle, Slots, SubscriberHandle, WriterHandle};
use crate::writer::Writer;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use takt_wire::discovery::SubscriptionData;
use takt_wire::{EntityId, Guid};

/// Endpoints of the participant, builtin ones included, in tables by index.
#[derive(Debug)]
pub(crate) struct Endpoints {
    pub(crate) writers: Slots<Writer>,
    pub(crate) readers: Slots<Reader>,
    pub(crate) publishers: Slots<Publisher>,
    pub(crate) subscribers: Slots<Subscriber>,
    pub(crate) writer_ids: BTreeMap<EntityId, u32>,
    /// Readers matched with each remote or local writer, by reader index and proxy.
    pub(crate) sources: BTreeMap<Guid, Vec<(u32, u32)>>,
    next_entity_key: u32,
}

impl Endpoints {
    pub(crate) fn new() -> Self {
        Self {
            writers: Slots::new(),
            readers: Slots::new(),
            publishers: Slots::new(),
            subscribers: Slots::new(),
            writer_ids: BTreeMap::new(),
            sources: BTreeMap::new(),
            next_entity_key: 1,
        }
    }

    /// Assigns the key of a new entity.
    pub(crate) fn next_entity_key(&mut self) -> Result<u32, Error> {
        let key = self.next_entity_key;
        if key > 0x00ff_ffff {
            return Err(Error::OutOfResources { limit: "entity keys", value: u64::from(key) });
        }
        self.next_entity_key += 1;
        Ok(key)
    }

    pub(crate) fn writer(&mut self, handle: WriterHandle) -> Result<&mut Writer, Error> {
        live_writer(&mut self.writers, handle)
    }

    pub(crate) fn reader(&mut self, handle: ReaderHandle) -> Result<&mut Reader, Error> {
        live_reader(&mut self.readers, handle)
    }

    /// Calls `handle` for the writer of a timer, unless it was deleted.
    pub(crate) fn with_writer(&mut self, index: u32, handle: impl FnOnce(&mut Writer)) {
        if let Some(writer) = self.writers.get_mut(index) {
            handle(writer);
        }
    }

    /// Calls `handle` for the reader of a timer, unless it was deleted.
    pub(crate) fn with_reader(&mut self, index: u32, handle: impl FnOnce(&mut Reader)) {
        if let Some(reader) = self.readers.get_mut(index) {
            handle(reader);
        }
    }

    pub(crate) fn publisher(&mut self, handle: PublisherHandle) -> Result<&mut Publisher, Error> {
        match self.publishers.get_mut(handle.index) {
            Some(publisher) if publisher.handle == handle => Ok(publisher),
            _ => Err(Error::AlreadyDeleted),
        }
    }

    pub(crate) fn subscriber(&mut self, handle: SubscriberHandle) -> Result<&mut Subscriber, Error> {
        match self.subscribers.get_mut(handle.index) {
            Some(subscriber) if subscriber.handle == handle => Ok(subscriber),
            _ => Err(Error::AlreadyDeleted),
        }
    }

    /// Passes the changed filter of a remote reader to all local writers.
    pub(crate) fn refilter(&mut self, ctx: &mut Context, subscription: &SubscriptionData) {
        for (_, writer) in self.writers.iter_mut() {
            ctx.work.steps(1);
            writer.set_filter(subscription.guid, subscription.content_filter.as_ref());
        }
    }
}

/// Returns the writer of a handle. Without `ok_or`, which would construct and drop an error on each
/// call.
pub(crate) fn live_writer(writers: &mut Slots<Writer>, handle: WriterHandle) -> Result<&mut Writer, Error> {
    match writers.get_mut(handle.index) {
        Some(writer) if writer.handle == handle => Ok(writer),
        _ => Err(Error::AlreadyDeleted),
    }
}

/// Returns the reader of a handle.
pub(crate) fn live_reader(readers: &mut Slots<Reader>, handle: ReaderHandle) -> Result<&mut Reader, Error> {
    match readers.get_mut(handle.index) {
        Some(reader) if reader.handle == handle => Ok(reader),
        _ => Err(Error::AlreadyDeleted),
    }
}
