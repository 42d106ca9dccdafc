//! The participants of the experiment: what they are made of, for each measure that is in them.
//!
//! The critical topics are `RTTPing` and `RTTPong`, best effort. Beside them, in the same participants and the same thread, may be a
//! topic of background samples and one whose callback takes long ([`load`](super::load)).

use super::measure::{Measure, Measures};
use super::network::{INTERFACE, PRIORITY};
use crate::error::Result;
use crate::payload::Blob;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use takt::qos::{
    DataReaderQos, DataWriterQos, History, Property, PublisherQos, Reliability, SubscriberQos, TopicQos,
    TransportPriority,
};
use takt::{DataReader, DataWriter, DomainParticipant, Idle, Limits, PRIORITY_PROPERTY, Runtime};

/// Topic of the pings.
pub const PING: &str = "RTTPing";
/// Topic of the answers.
pub const PONG: &str = "RTTPong";
/// Topic of the background samples.
pub const BACKGROUND: &str = "Background";
/// Topic whose callback takes long.
pub const SLOW: &str = "Slow";

/// The priority of that callback, if executors have any: discovery comes before it.
const SLOW_PRIORITY: i32 = -10;

/// Samples that a reader or writer holds: more than come at once after a queue has been stopped for long.
const DEPTH: u32 = 1024;

/// What a participant is to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParticipantPlan {
    /// DDS domain.
    pub domain: u32,
    /// Address of the other host.
    pub peer: Ipv4Addr,
    /// The measures that are taken.
    pub measures: Measures,
    /// Never sleeps, and burns its core.
    pub spins: bool,
}

/// Makes a participant with all measures that concern it. This is the one place where a measure becomes a setting of Takt's:
/// AF_XDP and the queue are its transport; FIFO, affinity and sleep states are the process's ([`side`](super::side)).
///
/// # Errors
/// Takt, or the machine, refuses.
pub fn participant(plan: &ParticipantPlan) -> Result<DomainParticipant> {
    let mut builder = DomainParticipant::builder(plan.domain);
    if plan.measures.has(Measure::AfXdp) {
        let transport = if plan.measures.has(Measure::ReservedQueue) {
            format!("xdp:{INTERFACE}/queue=0")
        } else {
            format!("xdp:{INTERFACE}")
        };
        builder = builder.user_data_transports([transport]);
    }
    // A crowd of participants may come: none of it is to wait for room.
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

/// The TRANSPORT_PRIORITY of the critical topics: what a reserved queue knows them by.
fn critical_priority(measures: Measures) -> TransportPriority {
    let is_known = measures.has(Measure::ReservedQueue);
    TransportPriority(if is_known { PRIORITY } else { 0 })
}

/// The writer of a critical topic.
///
/// # Errors
/// Takt refuses.
pub fn critical_writer(participant: &DomainParticipant, measures: Measures, topic: &str) -> Result<DataWriter<Blob>> {
    writer(participant, topic, critical_priority(measures), executor_priority(measures, PRIORITY))
}

/// The reader of a critical topic.
///
/// # Errors
/// Takt refuses.
pub fn critical_reader(participant: &DomainParticipant, measures: Measures, topic: &str) -> Result<DataReader<Blob>> {
    reader(participant, topic, executor_priority(measures, PRIORITY))
}

/// The writer of a topic beside the critical ones.
///
/// # Errors
/// Takt refuses.
pub fn background_writer(participant: &DomainParticipant, topic: &str) -> Result<DataWriter<Blob>> {
    writer(participant, topic, TransportPriority(0), None)
}

/// The reader of a topic beside the critical ones.
///
/// # Errors
/// Takt refuses.
pub fn background_reader(participant: &DomainParticipant, measures: Measures, topic: &str) -> Result<DataReader<Blob>> {
    let priority = if topic == SLOW { SLOW_PRIORITY } else { 0 };
    reader(participant, topic, executor_priority(measures, priority))
}

/// What an endpoint is told of its priority within the executor, if executors have any.
fn executor_priority(measures: Measures, priority: i32) -> Option<i32> {
    measures.has(Measure::ExecutorPriorities).then_some(priority)
}

fn with_priority(mut property: Property, priority: Option<i32>) -> Property {
    property.0.extend(priority.map(|priority| (PRIORITY_PROPERTY.to_owned(), priority.to_string(), false)));
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
