//! Participants of the isolation experiment: their settings and endpoints for each measure.
//!
//! The critical topics are `RTTPing` and `RTTPong`, best effort. The same participants and the same
//! thread may also serve a topic of background samples and one with a long callback
//! ([`load`](super::load)).

use super::countermeasure::{Countermeasure, Countermeasures};
use super::network::{INTERFACE, PRIORITY};
use crate::error::Result;
use crate::payload::Blob;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use takt::qos::{
    DataReaderQos, DataWriterQos, History, Property, PropertyEntry, PublisherQos, Reliability, SubscriberQos, TopicQos,
    TransportPriority,
};
use takt::{DataReader, DataWriter, DomainParticipant, Idle, Limits, PRIORITY_PROPERTY, Runtime};

/// Topic of the pings.
pub const PING: &str = "RTTPing";
/// Topic of the answers.
pub const PONG: &str = "RTTPong";
/// Topic of the background samples.
pub const BACKGROUND: &str = "Background";
/// Topic with a long callback.
pub const SLOW: &str = "Slow";

/// Priority of the long callback, if the executor has priorities: discovery has precedence.
const SLOW_PRIORITY: i32 = -10;

/// HISTORY depth of readers and writers: more than the samples that arrive at once after a queue
/// has been stopped for long.
const DEPTH: u32 = 1024;

/// Settings of a participant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParticipantPlan {
    /// DDS domain ID.
    pub domain: u32,
    /// Address of the other host.
    pub peer: Ipv4Addr,
    /// Measures that are applied.
    pub measures: Countermeasures,
    /// Whether the thread spins instead of blocking.
    pub spins: bool,
}

/// Creates a participant with all measures that concern it. Only this function turns a measure into
/// a setting of Takt. AF_XDP and the queue belong to its transport; FIFO, affinity and sleep states
/// belong to the process ([`side`](super::side)).
///
/// # Errors
/// Takt, or the machine, refuses a setting.
pub fn participant(plan: &ParticipantPlan) -> Result<DomainParticipant> {
    let mut builder = DomainParticipant::builder(plan.domain);
    if plan.measures.has(Countermeasure::AfXdp) {
        let transport = if plan.measures.has(Countermeasure::ReservedQueue) {
            format!("xdp:{INTERFACE}/queue=0")
        } else {
            format!("xdp:{INTERFACE}")
        };
        builder = builder.user_data_transports([transport]);
    }
    // A crowd of participants may join at once: none of them may wait for room.
    let limits = Limits { max_unvalidated_participants: 1024, ..Limits::default() };
    let participant = builder
        .name("takt-isolation")
        .interfaces([INTERFACE])
        .peers([plan.peer.to_string()])
        .shared_memory(false)
        .limits(limits)
        .runtime(Runtime::Inline)
        .idle(if plan.spins { Idle::Spin } else { Idle::Block })
        .build()?;
    Ok(participant)
}

/// Returns the TRANSPORT_PRIORITY of the critical topics, by which a reserved queue identifies
/// them.
fn critical_priority(measures: Countermeasures) -> TransportPriority {
    let is_known = measures.has(Countermeasure::ReservedQueue);
    TransportPriority(if is_known { PRIORITY } else { 0 })
}

/// Creates the writer of a critical topic.
///
/// # Errors
/// Takt refuses.
pub fn critical_writer(
    participant: &DomainParticipant,
    measures: Countermeasures,
    topic: &str,
) -> Result<DataWriter<Blob>> {
    writer(participant, topic, critical_priority(measures), executor_priority(measures, PRIORITY))
}

/// Creates the reader of a critical topic.
///
/// # Errors
/// Takt refuses.
pub fn critical_reader(
    participant: &DomainParticipant,
    measures: Countermeasures,
    topic: &str,
) -> Result<DataReader<Blob>> {
    reader(participant, topic, executor_priority(measures, PRIORITY))
}

/// Creates the writer of a non-critical topic.
///
/// # Errors
/// Takt refuses.
pub fn background_writer(participant: &DomainParticipant, topic: &str) -> Result<DataWriter<Blob>> {
    writer(participant, topic, TransportPriority(0), None)
}

/// Creates the reader of a non-critical topic.
///
/// # Errors
/// Takt refuses.
pub fn background_reader(
    participant: &DomainParticipant,
    measures: Countermeasures,
    topic: &str,
) -> Result<DataReader<Blob>> {
    let priority = if topic == SLOW { SLOW_PRIORITY } else { 0 };
    reader(participant, topic, executor_priority(measures, priority))
}

/// Returns the priority of an endpoint within the executor, if executors have priorities.
fn executor_priority(measures: Countermeasures, priority: i32) -> Option<i32> {
    measures.has(Countermeasure::ExecutorPriorities).then_some(priority)
}

fn with_priority(mut property: Property, priority: Option<i32>) -> Property {
    property.entries.extend(priority.map(|priority| PropertyEntry::local(PRIORITY_PROPERTY, priority.to_string())));
    property
}

fn writer(
    participant: &DomainParticipant,
    topic: &str,
    priority: TransportPriority,
    executor_priority: Option<i32>,
) -> Result<DataWriter<Blob>> {
    let topic = participant.create_topic::<Blob>(topic, TopicQos::default())?;
    let qos = DataWriterQos {
        reliability: Reliability::BEST_EFFORT,
        history: History::KeepLast(DEPTH),
        transport_priority: priority,
        property: with_priority(Property::default(), executor_priority),
        ..DataWriterQos::default()
    };
    Ok(participant.create_publisher(PublisherQos::default())?.create_datawriter(&topic, qos)?)
}

fn reader(participant: &DomainParticipant, topic: &str, executor_priority: Option<i32>) -> Result<DataReader<Blob>> {
    let topic = participant.create_topic::<Blob>(topic, TopicQos::default())?;
    let property = with_priority(Property::default(), executor_priority);
    let qos = DataReaderQos { history: History::KeepLast(DEPTH), property, ..DataReaderQos::default() };
    Ok(participant.create_subscriber(SubscriberQos::default())?.create_datareader(&topic, qos)?)
}
