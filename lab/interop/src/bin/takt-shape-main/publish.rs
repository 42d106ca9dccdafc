//! Publisher of the application: moves and writes the shapes of each topic and color.

use takt::xtypes::Uint8;
use takt::{DataWriter, Error, Publisher};
use takt_bench::signal;

use crate::lines;
use crate::options::{FinalState, Options};
use crate::session::{Failure, Session, pause, publisher_qos, writer_qos};
use crate::shape::{Motion, ShapeType, next_size, numbered};

/// Maximum time that the publisher waits for acknowledgments before it ends.
const ACKNOWLEDGMENTS_MAX: takt::Duration = takt::Duration::from_secs(1);

/// Runs the publisher until it is done or stopped.
pub fn run(session: &Session) -> Result<(), Failure> {
    let publisher = session.participant.create_publisher(publisher_qos(&session.options));
    let publisher = publisher.map_err(Failure::initialize("create publisher"))?;
    let writers = create_writers(session, &publisher)?;
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
        if is_first_of_set(&session.options, iteration) {
            session.print("Started Coherent Set".to_owned());
            publisher.begin_coherent_changes().map_err(Failure::run("begin coherent changes"))?;
        }
        for writer in &writers {
            write_all(session, writer, &instances)?;
        }
        if is_last_of_set(&session.options, iteration) {
            session.print("Finished Coherent Set".to_owned());
            publisher.end_coherent_changes().map_err(Failure::run("end coherent changes"))?;
        }
        pause(session.options.write_period);
        iteration += 1;
    }
    for writer in &writers {
        finish(session, writer, &instances)?;
    }
    Ok(())
}

/// Reports whether a coherent set begins before this iteration. Without a number of samples there
/// are no sets.
fn is_first_of_set(options: &Options, iteration: u64) -> bool {
    has_sets(options) && iteration.is_multiple_of(options.coherent_samples)
}

/// Reports whether a coherent set ends after this iteration.
fn is_last_of_set(options: &Options, iteration: u64) -> bool {
    has_sets(options) && iteration % options.coherent_samples == options.coherent_samples - 1
}

fn has_sets(options: &Options) -> bool {
    (options.coherent || options.ordered) && options.coherent_samples > 0
}

fn create_writers(session: &Session, publisher: &Publisher) -> Result<Vec<DataWriter<ShapeType>>, Failure> {
    let options = &session.options;
    let mut writers = Vec::new();
    for topic in &session.topics {
        let color = options.color.as_deref().unwrap_or_default();
        session.print(format!("Create writer for topic: {} color: {color}", topic.name()));
        let writer = publisher.create_datawriter(topic, writer_qos(options));
        writers.push(writer.map_err(Failure::initialize("create writer"))?);
    }
    Ok(writers)
}

/// Returns one shape per color.
fn instances(options: &Options) -> Vec<ShapeType> {
    let color = options.color.as_deref().unwrap_or_default();
    let shape = |index| ShapeType {
        color: numbered(color, index),
        additional_payload_size: vec![Uint8(u8::MAX); options.payload_size],
        ..ShapeType::default()
    };
    (0..options.instances).map(shape).collect()
}

fn write_all(session: &Session, writer: &DataWriter<ShapeType>, shapes: &[ShapeType]) -> Result<(), Failure> {
    for shape in shapes {
        // A full history of unacknowledged samples is no failure: the write is repeated.
        while let Err(error) = writer.write(shape) {
            match error {
                Error::Timeout { .. } if signal::stopped() => return Ok(()),
                Error::Timeout { .. } => {}
                error => return Err(Failure::run("write")(error)),
            }
        }
        if session.options.print_samples {
            session.print(lines::sample(writer.topic().name(), shape));
        }
    }
    Ok(())
}

/// Applies the final instance state and waits for acknowledgments.
fn finish(session: &Session, writer: &DataWriter<ShapeType>, shapes: &[ShapeType]) -> Result<(), Failure> {
    for shape in shapes {
        let ended = match session.options.final_state {
            None => Ok(()),
            Some(FinalState::Unregister) => writer.unregister_instance(shape),
            Some(FinalState::Dispose) => writer.dispose(shape),
        };
        match ended {
            Ok(()) | Err(Error::Timeout { .. }) => {}
            Err(error) => return Err(Failure::run("end an instance")(error)),
        }
    }
    match writer.wait_for_acknowledgments(ACKNOWLEDGMENTS_MAX) {
        Ok(()) | Err(Error::Timeout { .. }) => Ok(()),
        Err(error) => Err(Failure::run("wait for acknowledgments")(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Command, parse};

    /// Returns the iterations, with `(` before the first and `)` after the last one of a set.
    fn sets(line: &str) -> String {
        let Ok(Command::Run(options, _)) = parse(line.split_whitespace().map(str::to_owned)) else { panic!("{line}") };
        let mark = |iteration: u64| {
            let (first, last) = (is_first_of_set(&options, iteration), is_last_of_set(&options, iteration));
            format!("{}{iteration}{}", if first { "(" } else { "" }, if last { ")" } else { "" })
        };
        (0..7).map(mark).collect()
    }

    #[test]
    fn sets_have_the_requested_number_of_iterations() {
        assert_eq!(sets("-P -t T --coherent --coherent-sample-count 3"), "(012)(345)(6");
        assert_eq!(sets("-P -t T --ordered --coherent-sample-count 2"), "(01)(23)(45)(6");
        assert_eq!(sets("-P -t T --coherent"), "0123456");
        assert_eq!(sets("-P -t T --coherent-sample-count 3"), "0123456");
    }
}
