//! Program of `docs/tutorial/getting-started.md`: publishes a sensor for two seconds, and
//! subscribes as a possibly late joiner.

use std::time::Duration;

use takt::{DdsType, DomainParticipant, qos::*};

/// In IDL: @appendable struct Reading { @key unsigned long sensor; double celsius; };
#[derive(DdsType, Clone, Debug, Default)]
struct Reading {
    #[dds(key)]
    sensor: u32,
    celsius: f64,
}

fn main() -> takt::Result<()> {
    let participant = DomainParticipant::builder(0).name("temperature").build()?;
    let topic = participant.create_topic::<Reading>("Temperature", TopicQos::default())?;
    match std::env::args().nth(1).as_deref() {
        Some("publish") => publish(&participant, &topic),
        _ => subscribe(&participant, &topic),
    }
}

fn publish(participant: &DomainParticipant, topic: &takt::Topic<Reading>) -> takt::Result<()> {
    let publisher = participant.create_publisher(PublisherQos::default())?;
    let qos = DataWriterQos { durability: Durability::TransientLocal, ..DataWriterQos::default() };
    let writer = publisher.create_datawriter(topic, qos)?;
    writer.wait_for_readers(1, Duration::from_secs(30))?;
    for step in 0..20 {
        writer.write(&Reading { sensor: 7, celsius: 20.0 + f64::from(step) / 10.0 })?;
        std::thread::sleep(Duration::from_millis(100));
    }
    writer.wait_for_acknowledgments(Duration::from_secs(1))
}

fn subscribe(participant: &DomainParticipant, topic: &takt::Topic<Reading>) -> takt::Result<()> {
    let subscriber = participant.create_subscriber(SubscriberQos::default())?;
    let qos = DataReaderQos {
        reliability: Reliability { kind: ReliabilityKind::Reliable, ..Reliability::default() },
        durability: Durability::TransientLocal,
        ..DataReaderQos::default()
    };
    let reader = subscriber.create_datareader(topic, qos)?;
    for sample in &reader {
        let sample = sample?;
        match (sample.data, sample.key) {
            (Some(reading), _) => println!("{reading:?}"),
            (None, key) => {
                println!("sensor {}: {:?}", key.unwrap_or_default().sensor, sample.info.instance_state);
                break;
            }
        }
    }
    Ok(())
}
