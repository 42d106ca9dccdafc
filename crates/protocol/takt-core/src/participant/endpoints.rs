//! Operations of the application on its writers and readers.

use super::{Participant, cache_limits, history_limits};
use crate::WriterFlows;
use crate::cache::{
    ChangeKind, InstanceHandle, KeyExtractor, KeyHash, OrderedSample, PayloadPool, PoolSize, ReadCursor, ReaderCache,
    SampleQuery, SampleRef, Selector,
};
use crate::config::REORDER_WINDOW;
use crate::content_filter::{FilterFactory, ReaderFilter};
use crate::context::Context;
use crate::discovery::Call;
use crate::endpoints::{Endpoints, live_reader, live_writer};
use crate::error::{Error, WriteError};
use crate::presentation::SetPosition;
use crate::reader::Reader;
use crate::slots::{PublisherHandle, ReaderHandle, SubscriberHandle, WriterHandle};
use crate::time::Instant;
use crate::writer::{Content, Directed, MAX_DIRECTED, Write, Writer, WriterHistory};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use takt_wire::discovery::{PublicationData, SubscriptionData};
use takt_wire::qos::{
    Contract, DataReaderQos, DataWriterQos, History, PublisherQos, ResourceLimits, SubscriberQos, TopicData,
    contradictions,
};
use takt_wire::{EntityId, Guid, Locator, SequenceNumber, SharedPayload, Timestamp};

/// Longest topic or type name in bytes.
const MAX_NAME_LEN: usize = 255;

/// Largest `RESOURCE_LIMITS.max_samples` and `max_instances`: tables of that size are reserved at
/// once.
const MAX_HISTORY_ENTRIES: u32 = 1 << 20;

/// Parameters of a new writer.
#[derive(Clone, Debug)]
pub struct WriterSpec {
    /// Topic name, at most 255 bytes.
    pub topic_name: String,
    /// Announced type name, at most 255 bytes.
    pub type_name: String,
    /// Whether the type has a key.
    pub keyed: bool,
    /// Policies of the writer.
    pub qos: DataWriterQos,
    /// Policies of its publisher.
    pub publisher: PublisherQos,
    /// Publisher of the writer, if one was created.
    pub group: Option<PublisherHandle>,
    /// `TOPIC_DATA` of the topic.
    pub topic_data: TopicData,
    /// Serialized `TypeInformation` of the type, if it is announced (XTypes 1.3 §7.6.3.2).
    pub type_information: Option<Vec<u8>>,
    /// Longest serialized sample in bytes, if the type has a bound.
    pub max_serialized_len: Option<usize>,
    /// Sockets that send the writer's datagrams.
    pub flows: WriterFlows,
    /// Own locators of the writer for acknowledgments; empty to use the participant's.
    pub unicast: Vec<Locator>,
    /// Compiler of the filters that readers request; `None` to send every sample.
    pub filters: Option<Arc<dyn FilterFactory>>,
}

/// Parameters of a new reader.
pub struct ReaderSpec {
    /// Topic name, at most 255 bytes.
    pub topic_name: String,
    /// Announced type name, at most 255 bytes.
    pub type_name: String,
    /// Extracts the key of serialized samples; `None` if the type has no key.
    pub key: Option<Box<dyn KeyExtractor>>,
    /// Policies of the reader.
    pub qos: DataReaderQos,
    /// Policies of its subscriber.
    pub subscriber: SubscriberQos,
    /// Subscriber of the reader, if one was created.
    pub group: Option<SubscriberHandle>,
    /// `TOPIC_DATA` of the topic.
    pub topic_data: TopicData,
    /// Serialized `TypeInformation` of the type, if it is announced (XTypes 1.3 §7.6.3.2).
    pub type_information: Option<Vec<u8>>,
    /// Longest serialized sample in bytes, if the type has a bound.
    pub max_serialized_len: Option<usize>,
    /// Own locators of the reader for samples; empty to use the participant's.
    pub unicast: Vec<Locator>,
    /// Content filter; `None` to get every sample.
    pub content_filter: Option<ReaderFilter>,
}

impl fmt::Debug for ReaderSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderSpec").field("topic_name", &self.topic_name).finish_non_exhaustive()
    }
}

/// Change to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewChange<'a> {
    /// Data, dispose or unregister.
    pub kind: ChangeKind,
    /// Key hash of the instance; all zero without keys.
    pub key_hash: KeyHash,
    /// Source timestamp; `None` for the present time. If the wall clock was set back and the writer
    /// offers DESTINATION_ORDER BY_SOURCE_TIMESTAMP, `None` repeats the timestamp of the previous
    /// change.
    pub source_timestamp: Option<Timestamp>,
    /// Readers that get the change; empty for all. At most 4.
    pub destinations: &'a [Guid],
    /// Upper bound of the length that `fill` writes, encapsulation header included.
    pub payload_len: usize,
}

fn check_names(topic_name: &str, type_name: &str) -> Result<(), Error> {
    for (what, name) in [("topic", topic_name), ("type", type_name)] {
        if name.is_empty() || name.len() > MAX_NAME_LEN {
            let what = alloc::format!("the {what} name must have 1 to {MAX_NAME_LEN} bytes, not {}", name.len());
            return Err(Error::BadParameter { what });
        }
    }
    Ok(())
}

/// Checks that history depth and resource limits agree (DDS 1.4 §2.2.3.19).
pub(super) fn check_history(history: History, resources: &ResourceLimits) -> Result<(), Error> {
    for (limit, value) in [("max_samples", resources.max_samples), ("max_instances", resources.max_instances)] {
        if value.is_some_and(|value| value > MAX_HISTORY_ENTRIES) {
            return Err(Error::OutOfResources { limit, value: u64::from(MAX_HISTORY_ENTRIES) });
        }
    }
    let inconsistent = |what: &str| Err(Error::InconsistentPolicy { what: what.to_string() });
    let per_instance = resources.max_samples_per_instance.unwrap_or(u32::MAX);
    match history {
        History::KeepLast(0) => return inconsistent("HISTORY depth must be at least 1"),
        History::KeepLast(depth) if depth > per_instance => {
            return inconsistent("HISTORY depth exceeds RESOURCE_LIMITS max_samples_per_instance");
        }
        History::KeepLast(depth) if depth > resources.max_samples.unwrap_or(u32::MAX) => {
            return inconsistent("HISTORY depth exceeds RESOURCE_LIMITS max_samples");
        }
        _ => {}
    }
    match (resources.max_samples, resources.max_samples_per_instance) {
        (Some(0), _) | (_, Some(0)) => inconsistent("RESOURCE_LIMITS must be at least 1"),
        (Some(all), Some(per_instance)) if all < per_instance => {
            inconsistent("RESOURCE_LIMITS max_samples is less than max_samples_per_instance")
        }
        _ => Ok(()),
    }
}

/// Checks the writer's policies. A writer that offers a DEADLINE must not have a longer minimum
/// separation of samples.
pub(super) fn check_writer(qos: &DataWriterQos) -> Result<(), Error> {
    check_history(qos.history, &qos.resource_limits)?;
    let separation = Contract::of(&qos.user_data, &qos.property).minimum_separation;
    if separation.is_some_and(|separation| qos.deadline.period < separation) {
        return Err(Error::InconsistentPolicy { what: "DEADLINE period is less than rt.min_sep_ns".to_string() });
    }
    Ok(())
}

/// Checks that TIME_BASED_FILTER is not longer than DEADLINE (DDS 1.4 §2.2.3.12).
pub(super) fn check_reader(qos: &DataReaderQos) -> Result<(), Error> {
    check_history(qos.history, &qos.resource_limits)?;
    if qos.deadline.period < qos.time_based_filter.minimum_separation {
        let what = "DEADLINE period is less than TIME_BASED_FILTER minimum_separation".to_string();
        return Err(Error::InconsistentPolicy { what });
    }
    Ok(())
}

impl Participant {
    /// Creates a writer and announces it.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for a bad name, [`Error::InconsistentPolicy`] for contradicting
    /// policies.
    pub fn create_writer(&mut self, now: Instant, spec: WriterSpec) -> Result<WriterHandle, Error> {
        let handle = self.prepare_writer(now, spec)?;
        self.enable_writer(now, handle)?;
        Ok(handle)
    }

    /// Creates a writer that is not enabled: it is not announced and cannot write
    /// (DDS 1.4 §2.2.2.1.1.7).
    ///
    /// # Errors
    /// As [`Self::create_writer`].
    ///
    /// # Security
    /// [`Error::NotAllowedBySecurity`] if governance or permissions do not allow it.
    pub fn prepare_writer(&mut self, now: Instant, spec: WriterSpec) -> Result<WriterHandle, Error> {
        check_names(&spec.topic_name, &spec.type_name)?;
        check_writer(&spec.qos)?;
        if let Some(group) = spec.group {
            self.endpoints.publisher(group)?;
        }
        let entity_id = EntityId::user_writer(self.endpoints.next_entity_key()?, spec.keyed);
        let mut data = Box::new(PublicationData {
            guid: Guid { prefix: self.ctx.header.prefix, entity_id },
            participant: self.guid(),
            topic_name: spec.topic_name,
            type_name: spec.type_name,
            unicast: spec.unicast,
            presentation: spec.publisher.presentation,
            partition: spec.publisher.partition,
            group_data: spec.publisher.group_data,
            topic_data: spec.topic_data,
            type_information: spec.type_information,
            max_sample_serialized: spec.max_serialized_len.and_then(|len| u32::try_from(len).ok()),
            qos: spec.qos,
            ..PublicationData::default()
        });
        self.discovery.assign_static_writer_id(&mut data, spec.keyed)?;
        let entity_id = data.guid.entity_id;
        let protection = self.ctx.admit_writer(&mut data)?;
        let limits = history_limits(data.qos.history, &data.qos.resource_limits, &self.ctx.limits);
        let history =
            WriterHistory::new(limits, self.ctx.writer_memory(limits.max_samples + 1, spec.max_serialized_len));
        let next = self.endpoints.writers.vacant();
        let handle = WriterHandle { index: next, generation: self.endpoints.writers.generation(next) };
        let mut writer = Writer::new(handle, data, spec.keyed, spec.flows, history, now, &mut self.ctx);
        writer.group = spec.group.map(|group| group.index);
        writer.set_protection(protection, &self.ctx);
        // Writer-side filtering would disclose properties of protected payloads.
        writer.filters.factory = spec.filters.filter(|_| !protection.payload);
        self.endpoints.writers.insert(writer);
        self.endpoints.writer_ids.insert(entity_id, handle.index);
        Ok(handle)
    }

    /// Creates a reader and announces it.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for a bad name, [`Error::InconsistentPolicy`] for contradicting
    /// policies.
    pub fn create_reader(&mut self, now: Instant, spec: ReaderSpec) -> Result<ReaderHandle, Error> {
        let handle = self.prepare_reader(spec)?;
        self.enable_reader(now, handle)?;
        Ok(handle)
    }

    /// Creates a reader that is not enabled: it is not announced and receives nothing
    /// (DDS 1.4 §2.2.2.1.1.7).
    ///
    /// # Errors
    /// As [`Self::create_reader`].
    ///
    /// # Security
    /// [`Error::NotAllowedBySecurity`] if governance or permissions do not allow it.
    pub fn prepare_reader(&mut self, spec: ReaderSpec) -> Result<ReaderHandle, Error> {
        check_names(&spec.topic_name, &spec.type_name)?;
        check_reader(&spec.qos)?;
        if let Some(group) = spec.group {
            self.endpoints.subscriber(group)?;
        }
        let keyed = spec.key.is_some();
        let entity_id = EntityId::user_reader(self.endpoints.next_entity_key()?, keyed);
        let (content_filter, filter) = spec.content_filter.map(|filter| (filter.property, filter.filter)).unzip();
        let mut data = Box::new(SubscriptionData {
            guid: Guid { prefix: self.ctx.header.prefix, entity_id },
            participant: self.guid(),
            topic_name: spec.topic_name,
            type_name: spec.type_name,
            unicast: spec.unicast,
            presentation: spec.subscriber.presentation,
            partition: spec.subscriber.partition,
            group_data: spec.subscriber.group_data,
            topic_data: spec.topic_data,
            type_information: spec.type_information,
            content_filter,
            qos: spec.qos,
            ..SubscriptionData::default()
        });
        self.discovery.assign_static_reader_id(&mut data, keyed)?;
        let protection = self.ctx.admit_reader(&mut data)?;
        let limits = cache_limits(data.qos.history, &data.qos.resource_limits, &self.ctx.limits);
        let samples = limits.max_samples + REORDER_WINDOW as usize;
        let cache = ReaderCache::new(limits, self.ctx.memory_bytes(samples, spec.max_serialized_len));
        let next = self.endpoints.readers.vacant();
        let handle = ReaderHandle { index: next, generation: self.endpoints.readers.generation(next) };
        let mut reader = Reader::new(handle, data, keyed, spec.key, cache, &mut self.ctx);
        reader.group = spec.group.map(|group| group.index);
        reader.max_serialized_len = spec.max_serialized_len;
        reader.set_protection(protection);
        reader.filter = filter;
        self.endpoints.readers.insert(reader);
        Ok(handle)
    }

    /// Deletes a writer. Its matched readers unregister it from its instances.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn delete_writer(&mut self, now: Instant, handle: WriterHandle) -> Result<(), Error> {
        let writer = self.endpoints.writer(handle)?;
        let (guid, is_enabled) = (writer.data.guid, writer.is_enabled);
        let topic_name = writer.data.topic_name.clone();
        if let Some(mut writer) = self.endpoints.writers.remove(handle.index) {
            writer.close(&mut self.ctx);
            if let Some(publisher) = writer.group.and_then(|index| self.endpoints.publishers.get_mut(index)) {
                publisher.remove_writer(handle.index);
            }
        }
        self.endpoints.writer_ids.remove(&guid.entity_id);
        self.discovery.release_static_id(guid.entity_id);
        self.ctx.remove_protection(guid.entity_id);
        if !is_enabled {
            return Ok(());
        }
        self.endpoints.unmatch_writer(now, &mut self.ctx, guid);
        self.discovery.type_checks.remove_endpoint(&mut self.ctx, guid);
        let sedp = self.ctx.sedp_of_publications(&topic_name);
        self.discovery.retract_endpoint(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), sedp, guid);
        self.discovery.schedule_assertions(&mut Call::new(now, &mut self.ctx, &mut self.endpoints));
        Ok(())
    }

    /// Deletes a reader and its samples.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn delete_reader(&mut self, now: Instant, handle: ReaderHandle) -> Result<(), Error> {
        let reader = self.endpoints.reader(handle)?;
        let (guid, is_enabled) = (reader.data.guid, reader.is_enabled);
        let topic_name = reader.data.topic_name.clone();
        if let Some(mut reader) = self.endpoints.readers.remove(handle.index) {
            reader.close(&mut self.ctx);
            if let Some(subscriber) = reader.group.and_then(|index| self.endpoints.subscribers.get_mut(index)) {
                subscriber.readers.retain(|index| *index != handle.index);
            }
        }
        self.discovery.release_static_id(guid.entity_id);
        self.ctx.remove_protection(guid.entity_id);
        if self.discovery.remove_builtin_reader(handle.index) || !is_enabled {
            return Ok(());
        }
        self.endpoints.sources.retain(|_, listeners| {
            listeners.retain(|(reader, _)| *reader != handle.index);
            !listeners.is_empty()
        });
        self.endpoints.unmatch_reader(&mut self.ctx, guid);
        self.discovery.type_checks.remove_endpoint(&mut self.ctx, guid);
        let sedp = self.ctx.sedp_of_subscriptions(&topic_name);
        self.discovery.retract_endpoint(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), sedp, guid);
        Ok(())
    }

    /// Writes a change: `fill` serializes it into the history and returns the length used, or
    /// `None` on failure. The following calls of [`Self::poll_transmit`] send the change.
    ///
    /// # Errors
    /// [`WriteError::WouldBlock`] if the history is full of unacknowledged samples.
    /// [`Error::BadParameter`] for an invalid source timestamp, or, with DESTINATION_ORDER
    /// BY_SOURCE_TIMESTAMP, for one older than the previous.
    pub fn write(
        &mut self,
        now: Instant,
        handle: WriterHandle,
        change: &NewChange<'_>,
        fill: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<SequenceNumber, WriteError> {
        self.write_content(now, handle, change, Content::Serialize(fill))
    }

    /// Writes a sample whose payload lies in memory shared with readers of this host. Those readers
    /// get it by reference, other readers get a copy. The payload is loaned for as long as the
    /// sample is in the history. `change.payload_len` is ignored.
    ///
    /// # Errors
    /// As [`Self::write`]; [`Error::BadParameter`] if the change is a dispose or unregister.
    pub fn write_loan(
        &mut self,
        now: Instant,
        handle: WriterHandle,
        change: &NewChange<'_>,
        loan: &SharedPayload,
    ) -> Result<SequenceNumber, WriteError> {
        if change.kind != ChangeKind::Alive || loan.prefix().is_none() {
            return Err(
                Error::BadParameter { what: "only the payload of a local sample can be loaned".to_string() }.into()
            );
        }
        let content = Content::<fn(&mut [u8]) -> Option<usize>>::Loan(loan);
        self.write_content(now, handle, &NewChange { payload_len: 0, ..*change }, content)
    }

    /// Reports whether any matched reader of a writer can get payloads by reference.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn has_loan_readers(&mut self, handle: WriterHandle) -> Result<bool, Error> {
        Ok(self.endpoints.writer(handle)?.has_loan_readers())
    }

    /// Returns the destinations of a writer's new samples.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn destinations(&mut self, handle: WriterHandle) -> Result<&[Locator], Error> {
        Ok(self.endpoints.writer(handle)?.destinations())
    }

    /// Sets whether loaned samples stay in the writer's shared memory until they are read. This
    /// applies to a reader without keys and without a content filter. Otherwise, as by default,
    /// samples are copied on arrival. Payloads of objects always stay by reference.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn set_keeps_loans(&mut self, handle: ReaderHandle, keeps_loans: bool) -> Result<(), Error> {
        self.endpoints.reader(handle)?.keeps_loans = keeps_loans;
        Ok(())
    }

    fn write_content(
        &mut self,
        now: Instant,
        handle: WriterHandle,
        change: &NewChange<'_>,
        content: Content<'_, impl FnOnce(&mut [u8]) -> Option<usize>>,
    ) -> Result<SequenceNumber, WriteError> {
        if change.destinations.len() > MAX_DIRECTED {
            return Err(
                Error::OutOfResources { limit: "readers per directed write", value: MAX_DIRECTED as u64 }.into()
            );
        }
        let Self { endpoints: Endpoints { writers, publishers, .. }, ctx, .. } = self;
        ctx.work.unit();
        let writer = live_writer(writers, handle)?;
        let write = Write {
            kind: change.kind,
            key_hash: change.key_hash,
            source_timestamp: writer.stamp(change.source_timestamp, ctx.wall_clock(now))?,
            payload_len: change.payload_len,
            directed: Directed::new(change.destinations),
            position: SetPosition::default(),
            in_set: false,
            origin: None,
        };
        let sn = match writer.publisher().and_then(|index| publishers.get_mut(index)) {
            None => writer.put(now, ctx, &write, content)?,
            Some(publisher) => {
                let write = publisher.assign_position(write)?;
                let sn = writer.put(now, ctx, &write, content)?;
                publisher.commit_position(&write.position);
                publisher.notify_others(handle.index, writers, ctx);
                sn
            }
        };
        self.discovery.manually_asserted(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), handle.index);
        Ok(sn)
    }

    /// Reports whether the next change of an instance would replace one that is not sent yet
    /// (KEEP_LAST) and that [`Self::poll_transmit`] may still send.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn would_replace_unsent(&mut self, handle: WriterHandle, key_hash: KeyHash) -> Result<bool, Error> {
        Ok(self.endpoints.writer(handle)?.would_replace_unsent(key_hash))
    }

    /// Returns the matches whose writer and reader state contradicting numbers
    /// (`takt_wire::qos::Contract`): writer, reader, and the contradictions in words. Visits each
    /// match of each local endpoint.
    #[must_use]
    pub fn contradictions(&self) -> Vec<(Guid, Guid, Vec<String>)> {
        let mut all = Vec::new();
        for (_, writer) in self.endpoints.writers.iter() {
            for (_, proxy) in writer.proxies.iter() {
                let reader = self.subscription_data(proxy.guid);
                let found = reader.map(|reader| contradictions(&writer.data.qos, &reader.qos)).unwrap_or_default();
                all.push((writer.data.guid, proxy.guid, found));
            }
        }
        for (_, reader) in self.endpoints.readers.iter() {
            for (_, proxy) in reader.proxies.iter().filter(|(_, proxy)| proxy.guid.prefix != self.ctx.header.prefix) {
                let writer = self.publication_data(proxy.guid);
                let found = writer.map(|writer| contradictions(&writer.qos, &reader.data.qos)).unwrap_or_default();
                all.push((proxy.guid, reader.data.guid, found));
            }
        }
        all.retain(|(_, _, found)| !found.is_empty());
        all
    }

    /// Sends the samples that LATENCY_BUDGET holds back at present.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn flush_writer(&mut self, now: Instant, handle: WriterHandle) -> Result<(), Error> {
        let Self { endpoints: Endpoints { writers, .. }, ctx, .. } = self;
        live_writer(writers, handle)?.flush(now, ctx);
        Ok(())
    }

    /// Reports whether all matched reliable readers have acknowledged all changes up to `upto`, or
    /// all changes.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn is_acknowledged(&mut self, handle: WriterHandle, upto: Option<SequenceNumber>) -> Result<bool, Error> {
        let writer = self.endpoints.writer(handle)?;
        Ok(writer.is_acknowledged(upto.unwrap_or(writer.history.last_sn())))
    }

    /// Reads or takes the next sample that the selector matches. The sample is borrowed until the
    /// next call, which removes the samples that a take returned.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn read_next(
        &mut self,
        now: Instant,
        handle: ReaderHandle,
        selector: Selector,
        cursor: &mut ReadCursor,
    ) -> Result<Option<SampleRef<'_>>, Error> {
        Ok(self.endpoints.history_for_reading(now, &mut self.ctx, handle, cursor)?.next(selector, None, cursor))
    }

    /// As [`Self::read_next`], restricted to samples that match a query, but not in the query's
    /// order.
    ///
    /// # Errors
    /// As [`Self::read_next`].
    pub fn read_next_where(
        &mut self,
        now: Instant,
        handle: ReaderHandle,
        selector: Selector,
        query: &dyn SampleQuery,
        cursor: &mut ReadCursor,
    ) -> Result<Option<SampleRef<'_>>, Error> {
        Ok(self.endpoints.history_for_reading(now, &mut self.ctx, handle, cursor)?.next(selector, Some(query), cursor))
    }

    /// Returns the samples that match the selector and a query, in the query's order, for
    /// [`Self::read_next_of`]. Allocates.
    ///
    /// # Errors
    /// As [`Self::read_next`].
    pub fn ordered_samples(
        &mut self,
        now: Instant,
        handle: ReaderHandle,
        selector: Selector,
        query: &dyn SampleQuery,
    ) -> Result<Vec<OrderedSample>, Error> {
        Ok(self
            .endpoints
            .history_for_reading(now, &mut self.ctx, handle, &ReadCursor::default())?
            .sorted(selector, query))
    }

    /// Reads or takes one of [`Self::ordered_samples`]; `None` if the sample is gone.
    ///
    /// # Errors
    /// As [`Self::read_next`].
    pub fn read_next_of(
        &mut self,
        handle: ReaderHandle,
        sample: OrderedSample,
        selector: Selector,
        cursor: &mut ReadCursor,
    ) -> Result<Option<SampleRef<'_>>, Error> {
        self.ctx.work.unit();
        Ok(self.endpoints.reader(handle)?.cache.next_of(sample, selector, cursor))
    }

    /// Reports whether the reader has a sample that the selector matches. Marks no sample as read.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn has_samples(&mut self, handle: ReaderHandle, selector: &Selector) -> Result<bool, Error> {
        Ok(self.endpoints.reader(handle)?.cache.has(selector))
    }

    /// Reports whether the reader has a sample that both the selector and a query match.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn has_samples_where(
        &mut self,
        handle: ReaderHandle,
        selector: &Selector,
        query: &dyn SampleQuery,
    ) -> Result<bool, Error> {
        Ok(self.endpoints.reader(handle)?.cache.has_where(selector, Some(query)))
    }

    /// Ends a pass of takes: frees the samples that the last take returned, and delivers waiting
    /// samples.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn end_read(&mut self, now: Instant, handle: ReaderHandle) -> Result<(), Error> {
        let Self { endpoints: Endpoints { readers, .. }, ctx, .. } = self;
        ctx.work.unit();
        let reader = live_reader(readers, handle)?;
        reader.cache.release_taken();
        reader.mark_taken(ctx);
        reader.unblock(now, ctx);
        self.endpoints.present_due_groups(now, &mut self.ctx);
        Ok(())
    }

    /// Returns the serialized key of an instance that the reader knows; empty if it could not be
    /// decoded.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn key_of(&mut self, handle: ReaderHandle, instance: InstanceHandle) -> Result<Option<&[u8]>, Error> {
        Ok(self.endpoints.reader(handle)?.cache.key_of(instance))
    }

    /// Returns the GUID of the writer.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn writer_guid(&mut self, handle: WriterHandle) -> Result<Guid, Error> {
        Ok(self.endpoints.writer(handle)?.data.guid)
    }

    /// Returns the GUID of the reader.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn reader_guid(&mut self, handle: ReaderHandle) -> Result<Guid, Error> {
        Ok(self.endpoints.reader(handle)?.data.guid)
    }

    /// Returns the readers that PUBLICATION_MATCHED counts: those matched with the writer whose
    /// participants know the writer.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn matched_subscriptions(&mut self, handle: WriterHandle) -> Result<Vec<Guid>, Error> {
        let proxies = self.endpoints.writer(handle)?.proxies.iter();
        Ok(proxies.filter(|(_, proxy)| proxy.is_counted).map(|(_, proxy)| proxy.guid).collect())
    }

    /// Returns the matched reliable readers that left at least 8 heartbeats of a writer unanswered.
    /// Readers that never answered are reported within the lease of their participant (2 s to 10
    /// s): their side may have refused the match. Others are reported within the lease of this
    /// participant and 2 s: their side may ignore the writer. Until such a reader answers, the
    /// writer does not wait for it when it sends or frees history.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn silent_readers(&mut self, handle: WriterHandle) -> Result<Vec<Guid>, Error> {
        Ok(self.endpoints.writer(handle)?.silent_readers())
    }

    /// Returns the writers matched with a reader.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn matched_publications(&mut self, handle: ReaderHandle) -> Result<Vec<Guid>, Error> {
        Ok(self.endpoints.reader(handle)?.proxies.iter().map(|(_, proxy)| proxy.guid).collect())
    }

    /// Returns the discovery data of a local or remote reader.
    #[must_use]
    pub fn subscription_data(&self, guid: Guid) -> Option<SubscriptionData> {
        let local = || {
            self.endpoints.readers.iter().find(|(_, reader)| reader.data.guid == guid).map(|(_, reader)| &reader.data)
        };
        self.discovery.subscriptions.get(&guid).or_else(local).map(|data| (**data).clone())
    }

    /// Returns the discovery data of a local or remote writer.
    #[must_use]
    pub fn publication_data(&self, guid: Guid) -> Option<PublicationData> {
        let local = || {
            self.endpoints.writers.iter().find(|(_, writer)| writer.data.guid == guid).map(|(_, writer)| &writer.data)
        };
        self.discovery.publications.get(&guid).or_else(local).map(|data| (**data).clone())
    }

    /// Returns all known remote writers.
    pub fn discovered_publications(&self) -> impl Iterator<Item = &PublicationData> {
        self.discovery.publications.values().map(|data| &**data)
    }

    /// Returns all known remote readers.
    pub fn discovered_subscriptions(&self) -> impl Iterator<Item = &SubscriptionData> {
        self.discovery.subscriptions.values().map(|data| &**data)
    }

    /// Asserts a writer whose liveliness is `MANUAL_BY_TOPIC` (DDS 1.4 §2.2.2.4.2.22), by a
    /// heartbeat with the liveliness flag.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn assert_writer_liveliness(&mut self, now: Instant, handle: WriterHandle) -> Result<(), Error> {
        let Self { endpoints: Endpoints { writers, .. }, ctx, .. } = self;
        live_writer(writers, handle)?.assert_liveliness(now, ctx);
        Ok(())
    }
}

impl Endpoints {
    /// Returns a reader's history after the removal of expired and taken samples, and after the
    /// delivery of samples that waited for room. The delivery is suspended while a pass iterates
    /// over instances. Otherwise the pass would see only a part of a coherent set: the instances
    /// that it has yet to visit.
    fn history_for_reading(
        &mut self,
        now: Instant,
        ctx: &mut Context,
        handle: ReaderHandle,
        cursor: &ReadCursor,
    ) -> Result<&mut ReaderCache, Error> {
        if let Some(subscriber) = self.reader(handle)?.group {
            self.check_access(subscriber)?;
        }
        let Self { readers, .. } = self;
        ctx.work.unit();
        let reader = live_reader(readers, handle)?;
        reader.cache.release_taken();
        reader.expire(now, ctx);
        if !(reader.cache.by_instance && cursor.has_begun()) {
            reader.unblock(now, ctx);
        }
        Ok(&mut reader.cache)
    }
}

impl Context {
    /// Returns the payload memory for a writer of at most `samples` samples.
    pub(super) fn writer_memory(&self, samples: usize, max_serialized_len: Option<usize>) -> PoolSize {
        let limit = self.limits.endpoint_memory_bytes;
        max_serialized_len.map_or(limit.into(), |len| PoolSize::of_payloads(samples, len, limit))
    }

    /// Returns the payload memory in bytes for a reader of at most `samples` samples.
    pub(super) fn memory_bytes(&self, samples: usize, max_serialized_len: Option<usize>) -> usize {
        let limit = self.limits.endpoint_memory_bytes;
        max_serialized_len.map_or(limit, |len| PayloadPool::capacity_for(samples, len).min(limit))
    }
}
