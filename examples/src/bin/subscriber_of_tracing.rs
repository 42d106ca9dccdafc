//! Log records of Takt in a program with its own `tracing` subscriber, which prints them to
//! standard output. Programs normally use `tracing-subscriber`; this one shows what any subscriber
//! receives.

use std::fmt;
use std::time::Duration;

use takt::{DdsType, DomainParticipant, qos::*};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

#[derive(DdsType, Clone, Debug, Default)]
struct Reading {
    celsius: f64,
}

struct Print;

impl Subscriber for Print {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "takt"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Message(event.metadata()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Message(&'static Metadata<'static>);

impl Visit for Message {
    fn record_debug(&mut self, _: &Field, value: &dyn fmt::Debug) {
        println!("{} {}: {value:?}", self.0.level(), self.0.target());
    }
}

fn main() -> takt::Result<()> {
    tracing::subscriber::set_global_default(Print).expect("the first subscriber of this program");
    let participant = DomainParticipant::builder(0).name("traced").build()?;
    let topic = participant.create_topic::<Reading>("Temperature", TopicQos::default())?;
    let publisher = participant.create_publisher(PublisherQos::default())?;
    let writer = publisher.create_datawriter(&topic, DataWriterQos::default())?;
    let subscriber = participant.create_subscriber(SubscriberQos::default())?;
    let qos = DataReaderQos { reliability: Reliability::RELIABLE, ..DataReaderQos::default() };
    let reader = subscriber.create_datareader(&topic, qos)?;
    writer.wait_for_readers(1, Duration::from_secs(10))?;
    for step in 0..1_000 {
        writer.write(&Reading { celsius: f64::from(step) })?;
        reader.recv_timeout(Duration::from_secs(10))?;
    }
    Ok(())
}
