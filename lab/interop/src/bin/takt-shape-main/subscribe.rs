//! Subscriber of the application: takes and prints the samples of each topic.

use takt::{ContentFilteredTopic, DataReader, InstanceHandle, InstanceState, Sample, Select, Subscriber, Topic};

use crate::lines;
use crate::options::Options;
use crate::session::{Failure, Session, pause, reader_qos, subscriber_qos};
use crate::shape::ShapeType;

/// Suffix of the name of a content-filtered topic.
const FILTERED: &str = "_filtered";

/// A reader with the name of its topic, or of its content-filtered topic if there is one.
struct Source {
    name: String,
    reader: DataReader<ShapeType>,
}

/// Runs the subscriber until it is done or stopped.
pub fn run(session: &Session) -> Result<(), Failure> {
    let subscriber = session.participant.create_subscriber(subscriber_qos(&session.options));
    let subscriber = subscriber.map_err(Failure::initialize("create subscriber"))?;
    let sources: Vec<Source> =
        session.topics.iter().map(|topic| create_reader(session, &subscriber, topic)).collect::<Result<_, _>>()?;
    let mut iteration = 0;
    while !session.is_done(iteration) {
        read_all(session, &subscriber, &sources, iteration)?;
        pause(session.options.read_period);
        iteration += 1;
    }
    Ok(())
}

fn create_reader(session: &Session, subscriber: &Subscriber, topic: &Topic<ShapeType>) -> Result<Source, Failure> {
    let qos = reader_qos(&session.options);
    let filtered = create_filter(session, topic)?;
    let name = filtered.as_ref().map_or(topic.name(), ContentFilteredTopic::name).to_owned();
    session.print(format!("Create reader for topic: {name}"));
    let reader = match &filtered {
        Some(filtered) => subscriber.create_datareader(filtered, qos),
        None => subscriber.create_datareader(topic, qos),
    };
    let reader = reader.map_err(Failure::initialize("create reader"))?;
    Ok(Source { name, reader })
}

fn create_filter(
    session: &Session,
    topic: &Topic<ShapeType>,
) -> Result<Option<ContentFilteredTopic<ShapeType>>, Failure> {
    let Some((expression, parameters)) = filter(&session.options) else { return Ok(None) };
    let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
    let name = format!("{}{FILTERED}", topic.name());
    let created = session.participant.create_contentfilteredtopic(&name, topic, expression, &parameters);
    created.map(Some).map_err(Failure::initialize("create content filtered topic"))
}

/// Returns the filter expression of the options and its parameters.
fn filter(options: &Options) -> Option<(&str, Vec<String>)> {
    if let Some(expression) = &options.filter {
        return Some((expression, Vec::new()));
    }
    options.color.as_ref().map(|color| ("color = %0", vec![format!("'{color}'")]))
}

/// Runs one iteration: takes all samples of each reader, within one access if coherent sets or
/// order matter.
fn read_all(session: &Session, subscriber: &Subscriber, sources: &[Source], iteration: u64) -> Result<(), Failure> {
    let options = &session.options;
    if options.coherent {
        session.print(format!("Reading coherent sets, iteration {iteration}"));
    }
    if options.ordered {
        session.print(format!("Reading with ordered access, iteration {iteration}"));
    }
    let is_access = options.coherent || options.ordered;
    if is_access {
        subscriber.begin_access().map_err(Failure::run("begin access"))?;
    }
    for source in sources {
        if options.take_all_instances {
            source.read_together(session)?;
        } else {
            source.read_by_instance(session)?;
        }
    }
    if is_access {
        subscriber.end_access().map_err(Failure::run("end access"))?;
    }
    Ok(())
}

impl Source {
    /// Takes or reads the samples of one instance after the other.
    fn read_by_instance(&self, session: &Session) -> Result<(), Failure> {
        let mut previous: Option<InstanceHandle> = None;
        loop {
            let samples = self.access(session, self.reader.select().next_instance(previous))?;
            let Some(first) = samples.first() else { return Ok(()) };
            previous = Some(first.info.instance_handle);
            self.print(session, &samples)?;
        }
    }

    /// Takes or reads the samples of all instances in one call, until there are no more. A read
    /// leaves its samples in the cache and therefore runs once.
    fn read_together(&self, session: &Session) -> Result<(), Failure> {
        loop {
            let samples = self.access(session, self.reader.select())?;
            self.print(session, &samples)?;
            if samples.is_empty() || session.options.read_not_take {
                return Ok(());
            }
        }
    }

    /// Takes or reads the selected samples, as the options say.
    fn access(&self, session: &Session, selected: Select<'_, ShapeType>) -> Result<Vec<Sample<ShapeType>>, Failure> {
        if session.options.read_not_take {
            selected.read().map_err(Failure::run("read"))
        } else {
            selected.take().map_err(Failure::run("take"))
        }
    }

    fn print(&self, session: &Session, samples: &[Sample<ShapeType>]) -> Result<(), Failure> {
        for sample in samples {
            if let Some(shape) = &sample.data {
                session.print(lines::sample(&self.name, shape));
            }
            if sample.info.instance_state != InstanceState::Alive {
                let color = self.color(sample)?;
                let line = lines::instance(&self.name, &color, sample.info.instance_state);
                line.into_iter().for_each(|line| session.print(line));
            }
        }
        Ok(())
    }

    /// Returns the key of the sample's instance, from the sample or else from the reader.
    fn color(&self, sample: &Sample<ShapeType>) -> Result<String, Failure> {
        if let Some(known) = sample.data.as_ref().or(sample.key.as_ref()) {
            return Ok(known.color.clone());
        }
        let mut key = ShapeType::default();
        let found = self.reader.key_value(&mut key, sample.info.instance_handle);
        found.map_err(Failure::run("find out the key of an instance"))?;
        Ok(key.color)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Command, parse};

    fn options(line: &str) -> Options {
        match parse(line.split_whitespace().map(str::to_owned)) {
            Ok(Command::Run(options, _)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn color_filter_has_a_parameter_and_expression_is_unchanged() {
        assert_eq!(filter(&options("-S -t T")), None);
        assert_eq!(filter(&options("-S -t T -c RED")), Some(("color = %0", vec!["'RED'".to_owned()])));
        assert_eq!(filter(&options("-S -t T --cft x<3")), Some(("x<3", vec![])));
    }

    #[test]
    fn option_r_reads_samples_in_place_of_taking_them() {
        assert!(!options("-S -t T").read_not_take);
        assert!(options("-S -t T -R").read_not_take);
    }
}
