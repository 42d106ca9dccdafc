//! A coherent set: samples of two topics that become visible at once, or not at all.

use takt::prelude::*;
use takt::qos::{AccessScope, Presentation, PublisherQos, SubscriberQos, TopicQos};

#[derive(DdsType, Clone, Debug, Default)]
struct Joint {
    #[dds(key)]
    id: u32,
    angle: f64,
}

fn main() -> takt::Result<()> {
    let presentation = Presentation { access_scope: AccessScope::Group, coherent_access: true, ordered_access: false };
    let participant = DomainParticipant::new(0)?;
    let topics = ["Arm", "Hand"].map(|name| participant.create_topic::<Joint>(name, TopicQos::default()));
    let [arm, hand] = topics;
    let (arm, hand) = (arm?, hand?);
    let publisher = participant.create_publisher(PublisherQos { presentation, ..PublisherQos::default() })?;
    let subscriber = participant.create_subscriber(SubscriberQos { presentation, ..SubscriberQos::default() })?;
    let arms = subscriber.create_datareader(&arm, DataReaderQos::reliable().keep_all())?;
    let hands = subscriber.create_datareader(&hand, DataReaderQos::reliable().keep_all())?;
    let arm = publisher.create_datawriter(&arm, DataWriterQos::reliable().keep_all())?;
    let hand = publisher.create_datawriter(&hand, DataWriterQos::reliable().keep_all())?;

    publisher.begin_coherent_changes()?;
    arm.write(&Joint { id: 1, angle: 0.5 })?;
    hand.write(&Joint { id: 1, angle: 0.1 })?;
    let arrival = WaitSet::new()?;
    arrival.attach(hands.read_condition(takt::Selector::READ))?;
    println!("visible before the end of the set: {}", arrival.wait_any(ms(100))?);
    publisher.end_coherent_changes()?;
    println!("visible after it: {}", arrival.wait_any(secs(10))?);

    subscriber.begin_access()?;
    println!("{} sample of the arm, {} of the hand", arms.take(usize::MAX)?.len(), hands.take(usize::MAX)?.len());
    subscriber.end_access()
}
