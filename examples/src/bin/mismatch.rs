//! Program of `docs/guide/logging.md`: a writer whose offered QoS is incompatible with that of the
//! reader, so that they do not match.

use std::time::Duration;

use takt::{DdsType, DomainParticipant, qos::*};

#[derive(DdsType, Clone, Debug, Default)]
struct Reading {
    #[dds(key)]
    sensor: u32,
    celsius: f64,
}

fn main() -> takt::Result<()> {
    let participant = DomainParticipant::builder(0).name("mismatch").build()?;
    let topic = participant.create_topic::<Reading>("Temperature", TopicQos::default())?;
    let offered = DataWriterQos { reliability: Reliability::BEST_EFFORT, ..DataWriterQos::default() };
    let requested = DataReaderQos { reliability: Reliability::RELIABLE, ..DataReaderQos::default() };
    let writer = participant.create_publisher(PublisherQos::default())?.create_datawriter(&topic, offered)?;
    let _reader = participant.create_subscriber(SubscriberQos::default())?.create_datareader(&topic, requested)?;
    match writer.wait_for_readers(1, Duration::from_millis(100)) {
        Ok(()) => println!("matched"),
        Err(error) => println!("no match: {error}"),
    }
    Ok(())
}
