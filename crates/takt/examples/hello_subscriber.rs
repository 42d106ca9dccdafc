//! Prints greetings as they arrive: `cargo run -p takt --example hello_subscriber`.

use takt::qos::{DataReaderQos, Reliability, SubscriberQos, TopicQos};
use takt::{DdsType, DomainParticipant, Duration, StatusMask, WaitSet};

#[derive(DdsType, Clone, Debug, Default)]
struct Greeting {
    #[dds(key)]
    from: String,
    count: u32,
    text: String,
}

fn main() -> takt::Result<()> {
    let participant = DomainParticipant::builder(0).name("hello_subscriber").build()?;
    let topic = participant.create_topic::<Greeting>("Greetings", TopicQos::default())?;
    let subscriber = participant.create_subscriber(SubscriberQos::default())?;
    let qos = DataReaderQos { reliability: Reliability::RELIABLE, ..DataReaderQos::default() };
    let reader = subscriber.create_datareader(&topic, qos)?;
    let condition = reader.status_condition();
    condition.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
    let waitset = WaitSet::new()?;
    waitset.attach(condition)?;
    loop {
        waitset.wait(Duration::INFINITE)?;
        for sample in reader.take(usize::MAX)? {
            match sample.data {
                Some(greeting) => println!("{}: {} {}", greeting.from, greeting.text, greeting.count),
                None => println!("instance is {:?}", sample.info.instance_state),
            }
        }
    }
}
