//! Common parts of publisher and subscriber: participant, policies, listeners and stop requests.

use std::time::{Duration, Instant};

use takt::qos::{
    AccessScope, DataReaderQos, DataRepresentation, DataWriterQos, Deadline, Durability as DurabilityPolicy,
    History as HistoryPolicy, Lifespan, Ownership, OwnershipStrength, Partition, Presentation, PublisherQos,
    Reliability, SubscriberQos, TimeBasedFilter, TopicQos,
};
use takt::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LivelinessChangedStatus,
    LivelinessLostStatus, MatchedStatus,
};
use takt::{
    AnyDataReader, AnyDataWriter, AnyTopic, DomainParticipant, DomainParticipantListener, PublisherListener,
    SubscriberListener, Topic, TopicListener,
};
use takt_bench::signal;

use crate::lines::Subject;
use crate::options::{Durability, FinalState, History, Options, Scope};
use crate::output::Output;
use crate::shape::{ShapeType, numbered};

/// Maximum interval between two checks for a stop request.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Failure that ends the application early, with its exit code and message.
#[derive(Debug)]
pub struct Failure {
    pub exit_code: u8,
    pub what: String,
}

impl Failure {
    /// Creates the failure of an entity that cannot be created.
    pub fn initialize(what: &str) -> impl Fn(takt::Error) -> Self {
        move |error| Self { exit_code: 2, what: format!("failed to {what}: {error}") }
    }

    /// Creates the failure of a later operation.
    pub fn run(what: &str) -> impl Fn(takt::Error) -> Self {
        move |error| Self { exit_code: 3, what: format!("failed to {what}: {error}") }
    }
}

/// A participant and its topics.
pub struct Session {
    pub options: Options,
    pub output: Output,
    pub participant: DomainParticipant,
    pub topics: Vec<Topic<ShapeType>>,
}

impl Session {
    /// Joins the domain and creates the topics.
    pub fn open(options: Options, output: Output) -> Result<Self, Failure> {
        let mut builder = DomainParticipant::builder(options.domain_id).name("takt-shape-main");
        if !options.announcement_period.is_zero() {
            builder = builder.announcement_period(options.announcement_period);
        }
        let participant = builder.build().map_err(Failure::initialize("create participant"))?;
        if options.verbose {
            for warning in participant.diagnostics().warnings() {
                output.report(format!("warning: {}", warning.what.replace(['[', ']'], "")));
            }
        }
        let reporter = Box::new(Reporter { output: output.clone() });
        participant.set_listener(reporter).map_err(Failure::initialize("create participant"))?;
        let mut session = Self { options, output, participant, topics: Vec::new() };
        for index in 0..session.options.topics {
            let name = numbered(&session.options.topic, index);
            session.print(format!("Create topic: {name}"));
            let topic = session.participant.create_topic::<ShapeType>(&name, TopicQos::default());
            session.topics.push(topic.map_err(Failure::initialize("create topic"))?);
        }
        Ok(session)
    }

    /// Prints a line of the main loop.
    pub fn print(&self, line: String) {
        self.output.print(line, signal::stopped);
    }

    /// Reports whether the main loop ends after this number of iterations.
    pub fn is_done(&self, iteration: u64) -> bool {
        signal::stopped() || self.options.iterations.is_some_and(|last| iteration >= last)
    }
}

/// Sleeps for `period`, or until a signal requests a stop.
pub fn pause(period: Duration) {
    let end = Instant::now() + period;
    while !signal::stopped() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(STOP_CHECK_INTERVAL));
    }
}

/// Returns the policies of the publisher.
pub fn publisher_qos(options: &Options) -> PublisherQos {
    let (presentation, partition) = (presentation(options), partition(options));
    PublisherQos { presentation, partition, ..PublisherQos::default() }
}

/// Returns the policies of the subscriber.
pub fn subscriber_qos(options: &Options) -> SubscriberQos {
    let (presentation, partition) = (presentation(options), partition(options));
    SubscriberQos { presentation, partition, ..SubscriberQos::default() }
}

/// Returns PRESENTATION, which keeps its default unless coherent or ordered access is requested.
fn presentation(options: &Options) -> Presentation {
    if !options.coherent && !options.ordered {
        return Presentation::default();
    }
    let access_scope = match options.scope {
        Scope::Instance => AccessScope::Instance,
        Scope::Topic => AccessScope::Topic,
        Scope::Group => AccessScope::Group,
    };
    Presentation { access_scope, coherent_access: options.coherent, ordered_access: options.ordered }
}

fn partition(options: &Options) -> Partition {
    Partition { names: options.partition.iter().cloned().collect() }
}

/// Returns the policies of the writers. Unregistering disposes only if the final state is `d`. The
/// instances of a writer that exits otherwise become NOT_ALIVE_NO_WRITERS.
pub fn writer_qos(options: &Options) -> DataWriterQos {
    let mut qos = DataWriterQos {
        durability: durability(options),
        deadline: deadline(options),
        lifespan: lifespan(options),
        reliability: reliability(options),
        history: history(options),
        ownership: ownership(options),
        ownership_strength: OwnershipStrength(options.ownership_strength.unwrap_or(0)),
        data_representation: representation(options),
        ..DataWriterQos::default()
    };
    qos.writer_data_lifecycle.autodispose_unregistered_instances = options.final_state == Some(FinalState::Dispose);
    qos
}

/// Returns the policies of the readers.
pub fn reader_qos(options: &Options) -> DataReaderQos {
    DataReaderQos {
        durability: durability(options),
        deadline: deadline(options),
        time_based_filter: TimeBasedFilter { minimum_separation: options.time_filter.into() },
        reliability: reliability(options),
        history: history(options),
        ownership: ownership(options),
        data_representation: representation(options),
        ..DataReaderQos::default()
    }
}

fn durability(options: &Options) -> DurabilityPolicy {
    match options.durability {
        Durability::Volatile => DurabilityPolicy::Volatile,
        Durability::TransientLocal => DurabilityPolicy::TransientLocal,
        Durability::Transient => DurabilityPolicy::Transient,
        Durability::Persistent => DurabilityPolicy::Persistent,
    }
}

fn deadline(options: &Options) -> Deadline {
    let period = Some(options.deadline).filter(|period| !period.is_zero());
    period.map_or_else(Deadline::default, |period| Deadline { period: period.into() })
}

fn lifespan(options: &Options) -> Lifespan {
    let duration = Some(options.lifespan).filter(|duration| !duration.is_zero());
    duration.map_or_else(Lifespan::default, |duration| Lifespan { duration: duration.into() })
}

fn reliability(options: &Options) -> Reliability {
    if options.reliable { Reliability::RELIABLE } else { Reliability::BEST_EFFORT }
}

fn history(options: &Options) -> HistoryPolicy {
    match options.history {
        None => HistoryPolicy::default(),
        Some(History::KeepAll) => HistoryPolicy::KeepAll,
        Some(History::KeepLast(depth)) => HistoryPolicy::KeepLast(depth),
    }
}

fn ownership(options: &Options) -> Ownership {
    options.ownership_strength.map_or(Ownership::Shared, |_| Ownership::Exclusive)
}

fn representation(options: &Options) -> DataRepresentation {
    if options.xcdr_version == 2 { DataRepresentation::xcdr2() } else { DataRepresentation::xcdr1() }
}

/// Listener that prints every status change. It runs on the receiving thread and therefore only
/// queues lines.
pub struct Reporter {
    output: Output,
}

impl Reporter {
    fn writer(&self, writer: &AnyDataWriter, line: impl FnOnce(Subject<'_>) -> String) {
        self.topic(writer.topic_name(), writer.type_name(), line);
    }

    fn reader(&self, reader: &AnyDataReader, line: impl FnOnce(Subject<'_>) -> String) {
        self.topic(reader.topic_name(), reader.type_name(), line);
    }

    fn topic(&self, topic: &str, type_name: &str, line: impl FnOnce(Subject<'_>) -> String) {
        self.output.report(line(Subject { topic, type_name }));
    }
}

impl PublisherListener for Reporter {
    fn on_publication_matched(&mut self, writer: &AnyDataWriter, status: MatchedStatus) {
        self.writer(writer, |subject| subject.publication_matched(&status));
    }

    fn on_offered_incompatible_qos(&mut self, writer: &AnyDataWriter, status: IncompatibleQosStatus) {
        self.writer(writer, |subject| subject.offered_incompatible_qos(&status));
    }

    fn on_offered_deadline_missed(&mut self, writer: &AnyDataWriter, status: DeadlineMissedStatus) {
        self.writer(writer, |subject| subject.offered_deadline_missed(&status));
    }

    fn on_liveliness_lost(&mut self, writer: &AnyDataWriter, status: LivelinessLostStatus) {
        self.writer(writer, |subject| subject.liveliness_lost(&status));
    }
}

impl SubscriberListener for Reporter {
    fn on_subscription_matched(&mut self, reader: &AnyDataReader, status: MatchedStatus) {
        self.reader(reader, |subject| subject.subscription_matched(&status));
    }

    fn on_requested_incompatible_qos(&mut self, reader: &AnyDataReader, status: IncompatibleQosStatus) {
        self.reader(reader, |subject| subject.requested_incompatible_qos(&status));
    }

    fn on_requested_deadline_missed(&mut self, reader: &AnyDataReader, status: DeadlineMissedStatus) {
        self.reader(reader, |subject| subject.requested_deadline_missed(&status));
    }

    fn on_liveliness_changed(&mut self, reader: &AnyDataReader, status: LivelinessChangedStatus) {
        self.reader(reader, |subject| subject.liveliness_changed(&status));
    }
}

impl TopicListener for Reporter {
    fn on_inconsistent_topic(&mut self, topic: &AnyTopic, _: InconsistentTopicStatus) {
        self.topic(topic.name(), topic.type_name(), |subject| subject.inconsistent_topic());
    }
}

impl DomainParticipantListener for Reporter {}
