//! Content-filtered topic: the reader receives the samples that match an SQL expression, and
//! changes the parameter of the expression.

use takt::prelude::*;
use takt::qos::{SubscriberQos, TopicQos};

#[derive(DdsType, Clone, Debug, Default)]
struct Reading {
    sensor: u32,
    celsius: f64,
}

fn main() -> takt::Result<()> {
    let participant = DomainParticipant::new(0)?;
    let topic = participant.create_topic::<Reading>("Temperature", TopicQos::default())?;
    let hot = participant.create_contentfilteredtopic("Hot", &topic, "celsius > %0", &["25.0"])?;
    let subscriber = participant.create_subscriber(SubscriberQos::default())?;
    let reader = subscriber.create_datareader(&hot, DataReaderQos::reliable().keep_all())?;
    let writer = participant.writer_with::<Reading>("Temperature", DataWriterQos::reliable().keep_all())?;

    writer.write(&Reading { sensor: 1, celsius: 20.0 })?;
    writer.write(&Reading { sensor: 2, celsius: 30.0 })?;
    println!("{:?}", reader.recv_timeout(secs(10))?.data.unwrap_or_default());

    hot.set_expression_parameters(&["10.0"])?;
    writer.write(&Reading { sensor: 3, celsius: 20.0 })?;
    println!("{:?}", reader.recv_timeout(secs(10))?.data.unwrap_or_default());
    Ok(())
}
