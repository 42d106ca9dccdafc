//! Publishes a greeting every half second: `cargo run -p takt --example hello_publisher`.

use std::time::Duration;

use takt::qos::{DataWriterQos, PublisherQos, TopicQos};
use takt::{DdsType, DomainParticipant};

#[derive(DdsType, Clone, Debug, Default)]
struct Greeting {
    #[dds(key)]
    from: String,
    count: u32,
    text: String,
}

fn main() -> takt::Result<()> {
    let participant = DomainParticipant::builder(0).name("hello_publisher").build()?;
    let topic = participant.create_topic::<Greeting>("Greetings", TopicQos::default())?;
    let publisher = participant.create_publisher(PublisherQos::default())?;
    let writer = publisher.create_datawriter(&topic, DataWriterQos::default())?;
    let mut greeting = Greeting { from: "Takt".into(), text: "hello".into(), count: 0 };
    loop {
        greeting.count += 1;
        writer.write(&greeting)?;
        println!("{} to {} readers", greeting.count, writer.matched_subscriptions()?.len());
        std::thread::sleep(Duration::from_millis(500));
    }
}
