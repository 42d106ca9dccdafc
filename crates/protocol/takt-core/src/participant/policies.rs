//! Enabling of entities, and changes of policies (DDS 1.4 §2.2.2.1.1, and the column "changeable"
//! in DDS 1.4 §2.2.3).
//!
//! Before an entity is enabled, all its policies may change. Afterwards a changed policy is
//! announced. Matches that became incompatible end, matches that became compatible begin, and all
//! others are kept.

use super::{Participant, cache_limits, endpoints, history_limits};
use crate::cache::{LatencyMonitor, LatencyTerms, ReaderCache};
use crate::config::REORDER_WINDOW;
use crate::content_filter::ReaderFilter;
use crate::context::Context;
use crate::discovery::Call;
use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::locator_kinds::LocatorKinds;
use crate::reader::Reader;
use crate::slots::{ReaderHandle, WriterHandle};
use crate::time::Instant;
use crate::writer::{Writer, WriterHistory};
use crate::{FlowTag, WriterFlows};
use alloc::boxed::Box;
use alloc::vec::Vec;
use takt_schedule::Priority;
use takt_wire::Locator;
use takt_wire::discovery::{HostStages, PublicationData, SubscriptionData};
use takt_wire::qos::{
    Contract, DataReaderQos, DataWriterQos, DomainParticipantQos, Policy, PolicySet, Presentation, PublisherQos,
    SubscriberQos, Terms, TopicData,
};

/// Returns an error for the first immutable policy that differs.
fn check_change<Q: PolicySet>(from: &Q, to: &Q) -> Result<(), Error> {
    from.immutable_difference(to).map_or(Ok(()), |policy| Err(Error::ImmutablePolicy(policy.label)))
}

/// Checks a change of the policies of a publisher or subscriber of an endpoint.
fn check_presentation(is_enabled: bool, from: Presentation, to: Presentation) -> Result<(), Error> {
    if is_enabled && from != to { Err(Error::ImmutablePolicy(Presentation::INFO.label)) } else { Ok(()) }
}

/// Returns the changeable policies that decide about matches.
fn writer_terms(data: &PublicationData) -> impl PartialEq + '_ {
    (&data.partition, Terms::changeable(&data.qos))
}

fn reader_terms(data: &SubscriptionData) -> impl PartialEq + '_ {
    (&data.partition, Terms::changeable(&data.qos))
}

impl Participant {
    /// Sets or removes the content filter of a reader and announces the change. Samples in the
    /// reader's history stay; matches are kept.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn set_content_filter(
        &mut self,
        now: Instant,
        handle: ReaderHandle,
        filter: Option<ReaderFilter>,
    ) -> Result<(), Error> {
        let reader = self.endpoints.reader(handle)?;
        let mut data = reader.data.clone();
        let (property, filter) = filter.map(|filter| (filter.property, filter.filter)).unzip();
        reader.filter = filter;
        data.content_filter = property;
        self.change_reader(now, handle, data.clone())?;
        self.endpoints.refilter(&mut self.ctx, &data);
        Ok(())
    }

    /// Enables a participant that was created disabled: it announces itself and listens. Its
    /// endpoints are enabled separately.
    pub fn enable(&mut self, now: Instant) {
        if !core::mem::replace(&mut self.discovery.is_enabled, true) {
            self.discovery.announcer.start(now, &mut self.ctx);
        }
    }

    /// Enables a writer: it is announced and matched. Has no effect if it is enabled.
    ///
    /// # Errors
    /// [`Error::NotEnabled`] if the participant is not.
    pub fn enable_writer(&mut self, now: Instant, handle: WriterHandle) -> Result<(), Error> {
        if !self.discovery.is_enabled {
            return Err(Error::NotEnabled);
        }
        if self.endpoints.writer(handle)?.is_enabled {
            return Ok(());
        }
        let Self { endpoints: Endpoints { writers, .. }, ctx, .. } = self;
        let Some(writer) = writers.get_mut(handle.index) else { return Err(Error::AlreadyDeleted) };
        writer.enable(now, ctx);
        self.endpoints.join_publisher(&mut self.ctx, handle.index);
        let data = self.endpoints.writer(handle)?.data.clone();
        self.discovery.announce_publication(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), &data);
        self.discovery.match_local_writer(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), handle.index);
        self.discovery.schedule_assertions(&mut Call::new(now, &mut self.ctx, &mut self.endpoints));
        Ok(())
    }

    /// Enables a reader: it is announced and matched. Has no effect if it is enabled.
    ///
    /// # Errors
    /// [`Error::NotEnabled`] if the participant is not.
    pub fn enable_reader(&mut self, now: Instant, handle: ReaderHandle) -> Result<(), Error> {
        if !self.discovery.is_enabled {
            return Err(Error::NotEnabled);
        }
        let since = self.ctx.wall_clock(now);
        let reader = self.endpoints.reader(handle)?;
        if !core::mem::replace(&mut reader.is_enabled, true) {
            let contract = Contract::of(&reader.data.qos.user_data, &reader.data.qos.property);
            let requested_ns = contract.e2e_latency.and_then(|latency| latency.as_nanos());
            let terms =
                LatencyTerms { limit_ns: requested_ns.or(reader.latency_terms.limit_ns), ..reader.latency_terms };
            reader.cache.latency = LatencyMonitor::new(terms, since).map(Box::new);
            self.endpoints.join_subscriber(handle.index);
            let data = self.endpoints.reader(handle)?.data.clone();
            self.discovery.announce_subscription(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), &data);
            self.discovery.match_local_reader(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), handle.index);
        }
        Ok(())
    }

    /// Changes the participant's policies. USER_DATA is announced. The name and the properties stay
    /// as first announced.
    pub fn set_qos(&mut self, qos: &DomainParticipantQos) {
        self.discovery.announcer.edit(&mut self.ctx, |data| data.user_data = qos.user_data.clone());
    }

    /// Changes a writer's policies.
    ///
    /// # Errors
    /// [`Error::ImmutablePolicy`] if the writer is enabled and an immutable policy differs,
    /// [`Error::InconsistentPolicy`] if the policies contradict each other. On an error the
    /// policies stay unchanged.
    pub fn set_writer_qos(&mut self, now: Instant, handle: WriterHandle, qos: DataWriterQos) -> Result<(), Error> {
        endpoints::check_writer(&qos)?;
        let writer = self.endpoints.writer(handle)?;
        if !writer.is_enabled {
            return self.endpoints.recreate_writer(now, &mut self.ctx, handle, qos);
        }
        check_change(&writer.data.qos, &qos)?;
        let mut data = writer.data.clone();
        data.qos = qos;
        self.change_writer(now, handle, data)
    }

    /// Changes a reader's policies.
    ///
    /// # Errors
    /// As [`Self::set_writer_qos`].
    pub fn set_reader_qos(&mut self, now: Instant, handle: ReaderHandle, qos: DataReaderQos) -> Result<(), Error> {
        endpoints::check_reader(&qos)?;
        let reader = self.endpoints.reader(handle)?;
        if !reader.is_enabled {
            return self.endpoints.recreate_reader(&mut self.ctx, handle, qos);
        }
        check_change(&reader.data.qos, &qos)?;
        let mut data = reader.data.clone();
        data.qos = qos;
        self.change_reader(now, handle, data)
    }

    /// Applies the changed policies of its publisher to a writer.
    ///
    /// # Errors
    /// [`Error::ImmutablePolicy`] if the writer is enabled and PRESENTATION differs.
    pub fn set_publisher_qos(&mut self, now: Instant, handle: WriterHandle, qos: &PublisherQos) -> Result<(), Error> {
        let writer = self.endpoints.writer(handle)?;
        check_presentation(writer.is_enabled, writer.data.presentation, qos.presentation)?;
        let mut data = writer.data.clone();
        data.presentation = qos.presentation;
        data.partition = qos.partition.clone();
        data.group_data = qos.group_data.clone();
        self.change_writer(now, handle, data)
    }

    /// Applies the changed policies of its subscriber to a reader.
    ///
    /// # Errors
    /// As [`Self::set_publisher_qos`].
    pub fn set_subscriber_qos(&mut self, now: Instant, handle: ReaderHandle, qos: &SubscriberQos) -> Result<(), Error> {
        let reader = self.endpoints.reader(handle)?;
        check_presentation(reader.is_enabled, reader.data.presentation, qos.presentation)?;
        let mut data = reader.data.clone();
        data.presentation = qos.presentation;
        data.partition = qos.partition.clone();
        data.group_data = qos.group_data.clone();
        self.change_reader(now, handle, data)
    }

    /// Applies the changed TOPIC_DATA of its topic to a writer.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn set_writer_topic_data(
        &mut self,
        now: Instant,
        handle: WriterHandle,
        value: &TopicData,
    ) -> Result<(), Error> {
        let mut data = self.endpoints.writer(handle)?.data.clone();
        data.topic_data = value.clone();
        self.change_writer(now, handle, data)
    }

    /// Applies the changed TOPIC_DATA of its topic to a reader.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn set_reader_topic_data(
        &mut self,
        now: Instant,
        handle: ReaderHandle,
        value: &TopicData,
    ) -> Result<(), Error> {
        let mut data = self.endpoints.reader(handle)?.data.clone();
        data.topic_data = value.clone();
        self.change_reader(now, handle, data)
    }

    /// Suspends or resumes the publications of a writer: samples written while suspended are held
    /// back, a hint that more follow (DDS 1.4 §2.2.2.4.1).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn suspend_writer(&mut self, handle: WriterHandle, is_suspended: bool) -> Result<(), Error> {
        self.endpoints.writer(handle)?;
        if let Some(writer) = self.endpoints.writers.get_mut(handle.index) {
            writer.suspend(is_suspended, &mut self.ctx);
        }
        Ok(())
    }

    /// Sets the flows of a writer, and its own locators; empty to use the participant's.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn set_writer_flows(
        &mut self,
        now: Instant,
        handle: WriterHandle,
        flows: WriterFlows,
        unicast: Vec<Locator>,
    ) -> Result<(), Error> {
        let writer = self.endpoints.writer(handle)?;
        writer.flows = flows;
        let mut data = writer.data.clone();
        data.unicast = unicast;
        self.change_writer(now, handle, data)
    }

    /// Restricts the locator kinds of a writer's data. The writer matches only readers reachable by
    /// these kinds. To be called before the writer is enabled.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn restrict_writer_locators(&mut self, handle: WriterHandle, kinds: LocatorKinds) -> Result<(), Error> {
        self.endpoints.writer(handle)?.kinds = kinds;
        Ok(())
    }

    /// Sets the flow of a reader's acknowledgments, and restricts their locator kinds. The reader
    /// matches only writers reachable by these kinds. To be called before the reader is enabled.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn restrict_reader_locators(
        &mut self,
        handle: ReaderHandle,
        flow: FlowTag,
        kinds: LocatorKinds,
    ) -> Result<(), Error> {
        let reader = self.endpoints.reader(handle)?;
        (reader.flow, reader.kinds) = (flow, kinds);
        Ok(())
    }

    /// Sets the limits for the ages of a reader's samples, in addition to its E2E_LATENCY. Takes
    /// effect when the reader is enabled.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn set_reader_latency_terms(&mut self, handle: ReaderHandle, terms: LatencyTerms) -> Result<(), Error> {
        self.endpoints.reader(handle)?.latency_terms = terms;
        Ok(())
    }

    /// Sets the host stages that a writer announces. Takes effect when the writer is enabled.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn set_writer_host_stages(&mut self, handle: WriterHandle, stages: Option<HostStages>) -> Result<(), Error> {
        self.endpoints.writer(handle)?.data.host_stages = stages;
        Ok(())
    }

    /// Records the duration of a `write` call in nanoseconds. The announcement of the participant
    /// reports the longest.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn record_write_time(&mut self, handle: WriterHandle, ns: u64) -> Result<(), Error> {
        let writer = self.endpoints.writer(handle)?;
        writer.statuses.longest_write_ns = writer.statuses.longest_write_ns.max(ns);
        Ok(())
    }

    /// Sets the host stages that a reader announces. Takes effect when the reader is enabled.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn set_reader_host_stages(&mut self, handle: ReaderHandle, stages: Option<HostStages>) -> Result<(), Error> {
        self.endpoints.reader(handle)?.data.host_stages = stages;
        Ok(())
    }

    /// Returns how many remote endpoints of a topic name have another type.
    #[must_use]
    pub fn inconsistent_topics(&self, topic_name: &str) -> u32 {
        let writers = self.endpoints.writers.iter().filter(|(_, writer)| writer.data.topic_name == topic_name);
        let readers = self.endpoints.readers.iter().filter(|(_, reader)| reader.data.topic_name == topic_name);
        let of_writers: u32 = writers.map(|(_, writer)| writer.statuses.inconsistent_topic.total_count).sum();
        of_writers + readers.map(|(_, reader)| reader.statuses.inconsistent_topic.total_count).sum::<u32>()
    }

    /// Reports whether a reader has all samples that its writers had when they were matched
    /// (DDS 1.4 §2.2.2.5.3).
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn has_history(&mut self, handle: ReaderHandle) -> Result<bool, Error> {
        Ok(self.endpoints.reader(handle)?.has_history())
    }

    fn change_writer(&mut self, now: Instant, handle: WriterHandle, data: Box<PublicationData>) -> Result<(), Error> {
        let Self { endpoints: Endpoints { writers, .. }, ctx, .. } = self;
        let Some(writer) = writers.get_mut(handle.index) else { return Err(Error::AlreadyDeleted) };
        let has_same_terms = writer_terms(&writer.data) == writer_terms(&data);
        writer.adopt(now, ctx, &data.qos);
        writer.data = data.clone();
        writer.flush(now, ctx);
        if !has_same_terms {
            writer.commit_waiting(ctx);
        }
        if writer.is_enabled {
            self.discovery.announce_publication(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), &data);
            if has_same_terms {
                self.discovery.refresh_publication(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), &data);
            } else {
                self.discovery
                    .match_local_writer(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), handle.index);
            }
        }
        Ok(())
    }

    pub(crate) fn change_reader(
        &mut self,
        now: Instant,
        handle: ReaderHandle,
        data: Box<SubscriptionData>,
    ) -> Result<(), Error> {
        let Self { endpoints: Endpoints { readers, .. }, ctx, .. } = self;
        let Some(reader) = readers.get_mut(handle.index) else { return Err(Error::AlreadyDeleted) };
        let has_same_terms = reader_terms(&reader.data) == reader_terms(&data);
        reader.adopt(now, ctx, &data.qos);
        reader.data = data.clone();
        if reader.is_enabled {
            self.discovery.announce_subscription(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), &data);
            if !has_same_terms {
                self.discovery
                    .match_local_reader(&mut Call::new(now, &mut self.ctx, &mut self.endpoints), handle.index);
            }
        }
        Ok(())
    }

    /// Sets the priority of a reader's acknowledgments; [`Priority::NORMAL`] by default.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn set_reader_priority(&mut self, handle: ReaderHandle, priority: Priority) -> Result<(), Error> {
        self.endpoints.set_reader_priority(&mut self.ctx, handle, priority)
    }

    /// Sets the priority of a writer's datagrams; [`Priority::NORMAL`] by default. Jobs in the
    /// queue keep their priority.
    ///
    /// # Errors
    /// [`Error::AlreadyDeleted`].
    pub fn set_writer_priority(&mut self, handle: WriterHandle, priority: Priority) -> Result<(), Error> {
        self.endpoints.set_writer_priority(&mut self.ctx, handle, priority)
    }
}

impl Endpoints {
    /// Sets the priority of a writer's datagrams; [`Priority::NORMAL`] by default.
    pub(crate) fn set_writer_priority(
        &mut self,
        ctx: &mut Context,
        handle: WriterHandle,
        priority: Priority,
    ) -> Result<(), Error> {
        self.writer(handle)?.priority = priority;
        ctx.make_room(priority);
        Ok(())
    }

    /// Sets the priority of a reader's acknowledgments; [`Priority::NORMAL`] by default.
    pub(crate) fn set_reader_priority(
        &mut self,
        ctx: &mut Context,
        handle: ReaderHandle,
        priority: Priority,
    ) -> Result<(), Error> {
        self.reader(handle)?.priority = priority;
        ctx.make_room(priority);
        Ok(())
    }

    /// Rebuilds a writer with other policies before it is enabled.
    fn recreate_writer(
        &mut self,
        now: Instant,
        ctx: &mut Context,
        handle: WriterHandle,
        qos: DataWriterQos,
    ) -> Result<(), Error> {
        let limits = history_limits(qos.history, &qos.resource_limits, &ctx.limits);
        let writer = self.writer(handle)?;
        let max_len = writer.data.max_sample_serialized.map(|len| len as usize);
        let (mut data, keyed, flows, group) = (writer.data.clone(), writer.keyed, writer.flows, writer.group);
        let (kinds, priority) = (writer.kinds, writer.priority);
        data.qos = qos;
        let history = WriterHistory::new(limits, ctx.writer_memory(limits.max_samples + 1, max_len));
        let Self { writers, .. } = self;
        if let Some(writer) = writers.get_mut(handle.index) {
            writer.close(ctx);
            let factory = writer.filters.factory.take();
            *writer = Writer::new(handle, data, keyed, flows, history, now, ctx);
            (writer.group, writer.kinds) = (group, kinds);
            writer.filters.factory = factory;
        }
        self.set_writer_priority(ctx, handle, priority)
    }

    /// Rebuilds a reader with other policies before it is enabled.
    fn recreate_reader(&mut self, ctx: &mut Context, handle: ReaderHandle, qos: DataReaderQos) -> Result<(), Error> {
        let limits = cache_limits(qos.history, &qos.resource_limits, &ctx.limits);
        let reader = self.reader(handle)?;
        let (mut data, key, max_len) = (reader.data.clone(), reader.take_key(), reader.max_serialized_len);
        let filter = reader.filter.take();
        let (group, flow, kinds) = (reader.group, reader.flow, reader.kinds);
        let (priority, latency_terms) = (reader.priority, reader.latency_terms);
        data.qos = qos;
        let memory_bytes = ctx.memory_bytes(limits.max_samples + REORDER_WINDOW as usize, max_len);
        let cache = ReaderCache::new(limits, memory_bytes);
        let Self { readers, .. } = self;
        if let Some(reader) = readers.get_mut(handle.index) {
            reader.close(ctx);
            let keyed = key.is_some();
            *reader = Reader::new(handle, data, keyed, key, cache, ctx);
            reader.max_serialized_len = max_len;
            reader.filter = filter;
            (reader.group, reader.flow, reader.kinds) = (group, flow, kinds);
            reader.latency_terms = latency_terms;
        }
        self.set_reader_priority(ctx, handle, priority)
    }
}
