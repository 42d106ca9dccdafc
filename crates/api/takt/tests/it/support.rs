//! Shared test support: types, participants on loopback, and waiting for conditions.

use std::time::{Duration, Instant};

use takt::qos::*;
use takt::*;
pub use takt_testkit::domain::domain;

/// Maximum time that a test waits for a condition. Exceeding it means a failure, not a slow
/// machine.
pub const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "Shape")]
pub struct Shape {
    #[dds(key)]
    pub color: String,
    pub x: i32,
    pub y: i32,
}

impl Shape {
    pub fn new(color: &str, x: i32) -> Self {
        Self { color: color.to_owned(), x, y: -x }
    }
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(name = "Blob")]
pub struct Blob {
    pub number: u32,
    pub bytes: Vec<u8>,
}

impl Blob {
    /// Creates a blob whose bytes are derived from its number, so that mixed-up samples are
    /// detected.
    pub fn new(number: u32, len: usize) -> Self {
        Self { number, bytes: (0..len).map(|index| (index as u32).wrapping_add(number) as u8).collect() }
    }
}

/// Returns the builder of a participant on loopback.
pub fn on_loopback(domain: u32, runtime: Runtime) -> DomainParticipantBuilder {
    DomainParticipant::builder(domain).interfaces(["lo"]).peers(["127.0.0.1"]).runtime(runtime)
}

/// Both runtimes. Most behavior is tested under each.
pub const RUNTIMES: [Runtime; 2] = [Runtime::Inline, Runtime::Shared];

pub fn reliable() -> Reliability {
    Reliability { max_blocking_time: takt::Duration::from_secs(10), ..Reliability::RELIABLE }
}

pub fn reliable_writer(history: History) -> DataWriterQos {
    DataWriterQos { reliability: reliable(), history, ..DataWriterQos::default() }
}

pub fn reliable_reader(history: History) -> DataReaderQos {
    DataReaderQos { reliability: reliable(), history, ..DataReaderQos::default() }
}

/// Drives the inline participants among `participants` until `condition` holds. The others have
/// their own threads.
pub fn wait_until(participants: &[&DomainParticipant], what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "timeout waiting for: {what}");
        let mut inline = 0;
        for participant in participants {
            match participant.spin_once(Duration::ZERO) {
                Ok(_) => inline += 1,
                Err(Error::IllegalOperation { .. }) => {}
                Err(error) => panic!("{what}: {error}"),
            }
        }
        if inline == 0 {
            std::thread::yield_now();
        }
    }
}

/// Writer and reader of one topic, each with its own participant.
pub struct Pair<T: TypeSupport> {
    pub publisher: DomainParticipant,
    pub subscriber: DomainParticipant,
    pub writer: DataWriter<T>,
    pub reader: DataReader<T>,
}

impl<T: TypeSupport> Pair<T> {
    /// Creates a pair and waits until its endpoints match.
    pub fn new(runtime: Runtime, writer: DataWriterQos, reader: DataReaderQos) -> Self {
        let domain = domain();
        let publisher = on_loopback(domain, runtime).build().expect("participant");
        let subscriber = on_loopback(domain, runtime).build().expect("participant");
        Self::between(publisher, subscriber, writer, reader)
    }

    pub fn between(
        publisher: DomainParticipant,
        subscriber: DomainParticipant,
        writer: DataWriterQos,
        reader: DataReaderQos,
    ) -> Self {
        let (writer, reader) = connect(&publisher, &subscriber, "Topic", writer, reader);
        Self { publisher, subscriber, writer, reader }
    }

    pub fn wait_until(&self, what: &str, condition: impl FnMut() -> bool) {
        wait_until(&[&self.publisher, &self.subscriber], what, condition);
    }

    /// Drives both participants for one pass, as far as they are inline.
    pub fn drive(&self) {
        let mut passes = 0;
        self.wait_until("one pass", || {
            passes += 1;
            passes > 1
        });
    }

    /// Waits for `count` samples and takes them.
    pub fn take(&self, count: usize) -> Vec<Sample<T>> {
        let mut samples = Vec::new();
        self.wait_until("samples", || {
            samples.extend(self.reader.take(count - samples.len()).expect("open"));
            samples.len() == count
        });
        samples
    }
}

pub fn create_writer<T: TypeSupport>(
    participant: &DomainParticipant,
    topic: &str,
    qos: DataWriterQos,
) -> DataWriter<T> {
    let topic = participant.create_topic::<T>(topic, TopicQos::default()).expect("topic");
    let publisher = participant.create_publisher(PublisherQos::default()).expect("publisher");
    publisher.create_datawriter(&topic, qos).expect("writer")
}

pub fn create_reader<T: TypeSupport>(
    participant: &DomainParticipant,
    topic: &str,
    qos: DataReaderQos,
) -> DataReader<T> {
    let topic = participant.create_topic::<T>(topic, TopicQos::default()).expect("topic");
    let subscriber = participant.create_subscriber(SubscriberQos::default()).expect("subscriber");
    subscriber.create_datareader(&topic, qos).expect("reader")
}

/// Creates a writer of one participant and a reader of another, and waits until they match.
pub fn connect<T: TypeSupport>(
    from: &DomainParticipant,
    to: &DomainParticipant,
    topic: &str,
    writer: DataWriterQos,
    reader: DataReaderQos,
) -> (DataWriter<T>, DataReader<T>) {
    let (writer, reader) = (create_writer(from, topic, writer), create_reader(to, topic, reader));
    wait_until(&[from, to], "match", || {
        writer.matched_subscriptions().expect("open").contains(&reader.guid())
            && reader.matched_publications().expect("open").contains(&writer.guid())
    });
    (writer, reader)
}

/// Returns QoS of a reliable KEEP_ALL reader with these properties.
pub fn reader_with(properties: &[(&str, &str)]) -> DataReaderQos {
    let property = properties.iter().map(|(name, value)| PropertyEntry::local(*name, *value)).collect();
    DataReaderQos { property, ..reliable_reader(History::KeepAll) }
}

/// Listener that calls a closure when samples have arrived.
pub struct Calling<F>(pub F);

impl<F: FnMut(&DataReader<Shape>) + Send + 'static> DataReaderListener<Shape> for Calling<F> {
    fn on_data_available(&mut self, reader: &DataReader<Shape>) {
        self.0(reader);
    }
}

/// Calls the closure when samples have arrived for the reader. Other statuses do not call the
/// listener, since that would count against its budget.
pub fn listen(reader: &DataReader<Shape>, call: impl FnMut(&DataReader<Shape>) + Send + 'static) {
    reader.set_listener_with_mask(Box::new(Calling(call)), StatusMask::DATA_AVAILABLE).expect("open");
}

impl Pair<Blob> {
    /// Writes and takes `count` samples, one after the other.
    pub fn exchange(&self, count: u32, len: usize) {
        for number in 0..count {
            self.writer.write(&Blob::new(number, len)).expect("room");
            assert_eq!(self.take(1)[0].data, Some(Blob::new(number, len)));
        }
    }
}
