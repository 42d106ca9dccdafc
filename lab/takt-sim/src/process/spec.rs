//! Writer and reader specifications of a scenario for the core.

use std::sync::Arc;

use takt_core::{FilterFactory, FlowTag, Priority, ReaderFilter, ReaderSpec, WriterFlows, WriterSpec};
use takt_wire::qos::{
    DataReaderQos, DataWriterQos, Deadline, DestinationOrder, Durability, History, LatencyBudget, Lifespan, Liveliness,
    Ownership, OwnershipStrength, Partition, PublisherQos, ReaderDataLifecycle, Reliability, ReliabilityKind,
    ResourceLimits, SubscriberQos, TimeBasedFilter, TopicData, TransportPriority, UserData,
};

use crate::partitions;
use crate::sample::{self, InstanceKey, NumberFilters};
use crate::scenario::{EndpointPlan, FilterPlan, QosPlan, TopicPlan};
use crate::sql::{self, SqlFilters};

/// Offset above the least urgency, so that no urgency in a flow tag is zero.
const URGENCY_ZERO: i16 = 65;

/// Returns the name of a topic.
#[must_use]
pub fn topic_name(topic: usize) -> String {
    format!("topic{topic}")
}

/// Returns USER_DATA.
pub fn user_data(plan: &QosPlan) -> UserData {
    UserData(vec![plan.user_data; usize::from(plan.user_data)])
}

fn liveliness(plan: &QosPlan) -> Liveliness {
    plan.liveliness.map_or_else(Liveliness::default, |plan| Liveliness {
        kind: plan.kind,
        lease_duration: takt_wire::Duration::from_nanos(plan.lease),
    })
}

fn deadline(plan: &QosPlan) -> Deadline {
    plan.deadline.map_or_else(Deadline::default, |period| Deadline { period: takt_wire::Duration::from_nanos(period) })
}

fn lifespan(plan: &QosPlan) -> Lifespan {
    plan.lifespan
        .map_or_else(Lifespan::default, |lifespan| Lifespan { duration: takt_wire::Duration::from_nanos(lifespan) })
}

fn reader_data_lifecycle(plan: &QosPlan) -> ReaderDataLifecycle {
    let delay = plan.purge.map_or(takt_wire::Duration::INFINITE, takt_wire::Duration::from_nanos);
    ReaderDataLifecycle { autopurge_nowriter_samples_delay: delay, autopurge_disposed_samples_delay: delay }
}

fn time_based_filter(plan: &QosPlan) -> TimeBasedFilter {
    TimeBasedFilter { minimum_separation: takt_wire::Duration::from_nanos(plan.separation.unwrap_or(0)) }
}

fn latency_budget(plan: &QosPlan) -> LatencyBudget {
    LatencyBudget { duration: takt_wire::Duration::from_nanos(plan.budget) }
}

fn destination_order(plan: &QosPlan) -> DestinationOrder {
    if plan.by_source { DestinationOrder::BySourceTimestamp } else { DestinationOrder::ByReceptionTimestamp }
}

fn ownership(plan: &QosPlan) -> Ownership {
    if plan.strength.is_some() { Ownership::Exclusive } else { Ownership::Shared }
}

fn history(plan: &QosPlan) -> (Reliability, Durability, History, ResourceLimits, Partition) {
    let kind = if plan.reliable { ReliabilityKind::Reliable } else { ReliabilityKind::BestEffort };
    let names = partitions::names(plan.partition);
    (
        Reliability { kind, max_blocking_time: takt_wire::Duration::ZERO },
        if plan.transient_local { Durability::TransientLocal } else { Durability::Volatile },
        plan.keep_last.map_or(History::KeepAll, History::KeepLast),
        ResourceLimits { max_samples: plan.max_samples, ..ResourceLimits::default() },
        Partition { names },
    )
}

/// Returns the flow tags of a writer, which contain the traffic class and the urgency of all that
/// it sends.
fn flows_of(plan: &QosPlan) -> WriterFlows {
    let urgency = (i16::from(plan.urgency) + URGENCY_ZERO).cast_unsigned() << 8;
    WriterFlows { live: FlowTag(u16::from(plan.priority) | urgency), history: FlowTag(urgency) }
}

/// Returns the urgency in a flow tag. The tags of discovery and of acknowledgments contain none.
#[must_use]
pub fn urgency_of(flow: FlowTag) -> Option<Priority> {
    let urgency = (flow.0 >> 8).cast_signed();
    (urgency > 0).then(|| Priority::new(i32::from(urgency - URGENCY_ZERO)))
}

/// Returns the factory of filters for the readers of a writer.
fn filter_factory(filter: FilterPlan) -> Arc<dyn FilterFactory> {
    match filter {
        FilterPlan::Multiples(_) => Arc::new(NumberFilters),
        FilterPlan::Sql(..) => Arc::new(SqlFilters),
    }
}

pub(super) fn reader_filter(filter: FilterPlan) -> ReaderFilter {
    match filter {
        FilterPlan::Multiples(of) => sample::multiples_of(of),
        FilterPlan::Sql(expression, parameters) => sql::reader_filter(expression, parameters),
    }
}

pub(super) fn writer_spec(plan: &EndpointPlan, topic: &TopicPlan) -> WriterSpec {
    let (reliability, durability, history, resource_limits, partition) = history(&plan.qos);
    let transport_priority = TransportPriority(i32::from(plan.qos.priority));
    WriterSpec {
        topic_name: topic_name(plan.topic),
        type_name: "Sample".into(),
        keyed: topic.instances > 0,
        qos: DataWriterQos {
            reliability,
            durability,
            history,
            resource_limits,
            transport_priority,
            liveliness: liveliness(&plan.qos),
            deadline: deadline(&plan.qos),
            lifespan: lifespan(&plan.qos),
            destination_order: destination_order(&plan.qos),
            latency_budget: latency_budget(&plan.qos),
            ownership: ownership(&plan.qos),
            user_data: user_data(&plan.qos),
            ownership_strength: OwnershipStrength(plan.qos.strength.unwrap_or(0)),
            ..DataWriterQos::default()
        },
        publisher: PublisherQos { partition, ..PublisherQos::default() },
        group: None,
        topic_data: TopicData::default(),
        max_serialized_len: None,
        flows: flows_of(&plan.qos),
        type_information: None,
        unicast: Vec::new(),
        filters: plan.qos.filter.map(filter_factory),
    }
}

pub(super) fn reader_spec(plan: &EndpointPlan, topic: &TopicPlan) -> ReaderSpec {
    let (reliability, durability, history, resource_limits, partition) = history(&plan.qos);
    ReaderSpec {
        topic_name: topic_name(plan.topic),
        type_name: "Sample".into(),
        key: (topic.instances > 0).then(|| Box::new(InstanceKey) as Box<dyn takt_core::KeyExtractor>),
        qos: DataReaderQos {
            reliability,
            durability,
            history,
            resource_limits,
            liveliness: liveliness(&plan.qos),
            deadline: deadline(&plan.qos),
            destination_order: destination_order(&plan.qos),
            latency_budget: latency_budget(&plan.qos),
            ownership: ownership(&plan.qos),
            user_data: user_data(&plan.qos),
            time_based_filter: time_based_filter(&plan.qos),
            reader_data_lifecycle: reader_data_lifecycle(&plan.qos),
            ..DataReaderQos::default()
        },
        subscriber: SubscriberQos { partition, ..SubscriberQos::default() },
        group: None,
        topic_data: TopicData::default(),
        max_serialized_len: None,
        type_information: None,
        unicast: Vec::new(),
        content_filter: plan.qos.filter.map(reader_filter),
    }
}
