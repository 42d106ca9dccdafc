//! The subscriber: takes what has arrived, for each topic, and prints it, until it is done.

use takt::{DataReader, InstanceState, Sample, Selector};

use crate::lines;
use crate::session::{Failure, Session, pause, reader_qos, subscriber_qos};
use crate::shape::ShapeType;

/// Runs to the end.
pub fn run(session: &Session) -> Result<(), Failure> {
    let readers = create_readers(session)?;
    let mut iteration = 0;
    while !session.is_done(iteration) {
        for reader in &readers {
            read_all(session, reader)?;
        }
        pause(session.options.read_period);
        iteration += 1;
    }
    Ok(())
}

fn create_readers(session: &Session) -> Result<Vec<DataReader<ShapeType>>, Failure> {
    let subscriber = session.participant.create_subscriber(subscriber_qos(&session.options));
    let subscriber = subscriber.map_err(Failure::initialise("create subscriber"))?;
    let mut readers = Vec::new();
    for topic in &session.topics {
        session.say(format!("Create reader for topic: {}", topic.name()));
        let reader = subscriber.create_datareader(topic, reader_qos(&session.options));
        readers.push(reader.map_err(Failure::initialise("create reader"))?);
    }
    Ok(readers)
}

fn read_all(session: &Session, reader: &DataReader<ShapeType>) -> Result<(), Failure> {
    let selector = Selector { take: !session.options.read_not_take, ..Selector::READ };
    let samples = reader.select(selector, usize::MAX).map_err(Failure::run("read"))?;
    print_all(session, reader, &samples)
}

fn print_all(session: &Session, reader: &DataReader<ShapeType>, samples: &[Sample<ShapeType>]) -> Result<(), Failure> {
    let topic = reader.topic();
    for sample in samples {
        if let Some(shape) = &sample.data {
            session.say(lines::sample(topic.name(), shape));
        }
        if sample.info.instance_state != InstanceState::Alive {
            let color = color(reader, sample)?;
            let line = lines::instance(topic.name(), &color, sample.info.instance_state);
            line.into_iter().for_each(|line| session.say(line));
        }
    }
    Ok(())
}

/// The key of the sample's instance: the sample has it, or else the reader.
fn color(reader: &DataReader<ShapeType>, sample: &Sample<ShapeType>) -> Result<String, Failure> {
    if let Some(known) = sample.data.as_ref().or(sample.key.as_ref()) {
        return Ok(known.color.clone());
    }
    let mut key = ShapeType::default();
    let found = reader.key_value(&mut key, sample.info.instance_handle);
    found.map_err(Failure::run("find out the key of an instance"))?;
    Ok(key.color)
}
