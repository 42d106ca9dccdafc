//! Shared code of the examples: writes or reads samples of `Greeting`.

use std::error::Error;

use takt::qos::{DataReaderQos, DataWriterQos, PublisherQos, Reliability, SubscriberQos, TopicQos};
use takt::{DdsType, DomainParticipant, Duration, StatusMask, WaitSet};

#[derive(DdsType, Clone, Debug, Default)]
struct Greeting {
    number: u32,
    text: String,
}

/// Runs the role of the command line: `read`, or `write` with a number.
pub fn run(participant: &DomainParticipant, role: &str, rest: &[String]) -> Result<(), Box<dyn Error>> {
    match rest.first() {
        Some(count) if role == "write" => write(participant, count.parse()?),
        None if role == "read" => read(participant),
        _ => Err("expected read, or write COUNT".into()),
    }
}

fn write(participant: &DomainParticipant, count: u32) -> Result<(), Box<dyn Error>> {
    let topic = participant.create_topic::<Greeting>("Greeting", TopicQos::default())?;
    let qos = DataWriterQos { reliability: Reliability::RELIABLE, ..DataWriterQos::default() };
    let writer = participant.create_publisher(PublisherQos::default())?.create_datawriter(&topic, qos)?;
    let condition = writer.status_condition();
    condition.set_enabled_statuses(StatusMask::PUBLICATION_MATCHED);
    let waitset = WaitSet::new()?;
    waitset.attach(condition)?;
    if !waitset.wait_any(Duration::from_secs(30))? {
        return Err("no reader matched within 30 s".into());
    }
    for number in 1..=count {
        writer.write(&Greeting { number, text: "hello from beside the kernel".into() })?;
    }
    writer.wait_for_acknowledgments(Duration::from_secs(5))?;
    Ok(())
}

fn read(participant: &DomainParticipant) -> Result<(), Box<dyn Error>> {
    let topic = participant.create_topic::<Greeting>("Greeting", TopicQos::default())?;
    let qos = DataReaderQos {
        reliability: Reliability::RELIABLE,
        history: takt::qos::History::KeepAll,
        ..DataReaderQos::default()
    };
    let reader = participant.create_subscriber(SubscriberQos::default())?.create_datareader(&topic, qos)?;
    let waitset = WaitSet::new()?;
    waitset.attach(reader.read_condition(takt::Selector::READ))?;
    let mut greeting = Greeting::default();
    while waitset.wait_any(Duration::INFINITE)? {
        while let Some(info) = reader.take_next_sample(&mut greeting)? {
            if info.valid_data {
                println!("{}: {}", greeting.number, greeting.text);
            }
        }
    }
    Ok(())
}
