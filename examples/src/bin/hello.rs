//! The program of the README: one sample from a writer to a reader. `hello publish` writes it, `hello` prints what arrives.

use takt::{DdsType, DomainParticipant, Duration, qos::*};

#[derive(DdsType, Clone, Debug, Default)]
struct Reading {
    #[dds(key)]
    sensor: u32,
    celsius: f64,
}

fn main() -> takt::Result<()> {
    let participant = DomainParticipant::builder(0).name("hello").build()?;
    let topic = participant.create_topic::<Reading>("Temperature", TopicQos::default())?;
    match std::env::args().nth(1).as_deref() {
        Some("publish") => publish(&participant, &topic),
        _ => subscribe(&participant, &topic),
    }
}

fn publish(participant: &DomainParticipant, topic: &takt::Topic<Reading>) -> takt::Result<()> {
    let publisher = participant.create_publisher(PublisherQos::default())?;
    let writer = publisher.create_datawriter(topic, DataWriterQos::default())?;
    writer.wait_for_readers(1, Duration::from_secs(10))?;
    writer.write(&Reading { sensor: 7, celsius: 21.5 })?;
    writer.wait_for_acknowledgments(Duration::from_secs(10))
}

fn subscribe(participant: &DomainParticipant, topic: &takt::Topic<Reading>) -> takt::Result<()> {
    let subscriber = participant.create_subscriber(SubscriberQos::default())?;
    // A reader is BEST_EFFORT by default (DDS 1.4); this one asks for lost samples again.
    let qos = DataReaderQos { reliability: Reliability::RELIABLE, ..DataReaderQos::default() };
    let reader = subscriber.create_datareader(topic, qos)?;
    for sample in &reader {
        if let Some(reading) = sample?.data {
            println!("{reading:?}");
        }
    }
    Ok(())
}
