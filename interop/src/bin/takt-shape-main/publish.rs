//! The publisher: moves a shape and writes it, for each topic and color, until it is done.

use takt::{DataWriter, Error};
use takt_bench::signal;

use crate::lines;
use crate::options::{FinalState, Options};
use crate::session::{Failure, Session, pause, publisher_qos, writer_qos};
use crate::shape::{Motion, ShapeType, next_size, numbered};

/// How long the end waits for acknowledgements.
const ACKNOWLEDGMENTS_MAX: takt::Duration = takt::Duration::from_secs(1);

/// Runs to the end.
pub fn run(session: &Session) -> Result<(), Failure> {
    let writers = create_writers(session)?;
    let mut instances = instances(&session.options);
    let mut motion = Motion::random();
    let mut size = session.options.shape_size;
    let mut iteration = 0;
    while !session.is_done(iteration) {
        motion.advance();
        if session.options.shape_size == 0 {
            size = next_size(size, session.options.size_modulo);
        }
        for shape in &mut instances {
            (shape.x, shape.y) = motion.position();
            shape.shapesize = size;
        }
        for writer in &writers {
            write_all(session, writer, &instances)?;
        }
        pause(session.options.write_period);
        iteration += 1;
    }
    for writer in &writers {
        finish(session, writer, &instances)?;
    }
    Ok(())
}

fn create_writers(session: &Session) -> Result<Vec<DataWriter<ShapeType>>, Failure> {
    let options = &session.options;
    let publisher = session.participant.create_publisher(publisher_qos(options));
    let publisher = publisher.map_err(Failure::initialise("create publisher"))?;
    let mut writers = Vec::new();
    for topic in &session.topics {
        let color = options.color.as_deref().unwrap_or_default();
        session.say(format!("Create writer for topic: {} color: {color}", topic.name()));
        let writer = publisher.create_datawriter(topic, writer_qos(options));
        writers.push(writer.map_err(Failure::initialise("create writer"))?);
    }
    Ok(writers)
}

/// One shape of each color.
fn instances(options: &Options) -> Vec<ShapeType> {
    let color = options.color.as_deref().unwrap_or_default();
    let shape = |index| ShapeType {
        color: numbered(color, index),
        additional_payload_size: vec![u8::MAX; options.payload_size],
        ..ShapeType::default()
    };
    (0..options.instances).map(shape).collect()
}

fn write_all(session: &Session, writer: &DataWriter<ShapeType>, shapes: &[ShapeType]) -> Result<(), Failure> {
    for shape in shapes {
        // A history full of what readers have not acknowledged is no failure: the sample is written when there is room.
        while let Err(error) = writer.write(shape) {
            match error {
                Error::Timeout if signal::stopped() => return Ok(()),
                Error::Timeout => {}
                error => return Err(Failure::run("write")(error)),
            }
        }
        if session.options.print_samples {
            session.say(lines::sample(writer.topic().name(), shape));
        }
    }
    Ok(())
}

/// What becomes of the instances, and the chance for readers to learn of it.
fn finish(session: &Session, writer: &DataWriter<ShapeType>, shapes: &[ShapeType]) -> Result<(), Failure> {
    for shape in shapes {
        let ended = match session.options.final_state {
            None => Ok(()),
            Some(FinalState::Unregister) => writer.unregister_instance(shape),
            Some(FinalState::Dispose) => writer.dispose(shape),
        };
        match ended {
            Ok(()) | Err(Error::Timeout) => {}
            Err(error) => return Err(Failure::run("end an instance")(error)),
        }
    }
    match writer.wait_for_acknowledgments(ACKNOWLEDGMENTS_MAX) {
        Ok(()) | Err(Error::Timeout) => Ok(()),
        Err(error) => Err(Failure::run("wait for acknowledgments")(error)),
    }
}
