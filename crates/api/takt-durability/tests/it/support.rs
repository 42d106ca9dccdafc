//! Test support: separate domains and directories, services in threads, writers and late joiners.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use takt::qos::*;
use takt::{DataReader, DataWriter, DdsType, DomainParticipant, Sample};
use takt_durability::{Options, Service, Totals};
pub use takt_testkit::directory::Directory;
pub use takt_testkit::domain::domain;
pub use takt_testkit::waiting::until;

/// Maximum wait for a condition. Exceeding it is a failure, not a slow machine.
pub const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
pub struct Number {
    #[dds(key)]
    pub key: u32,
    pub value: u32,
}

/// Returns a participant on loopback with a lease of one second.
pub fn participant(domain: u32) -> DomainParticipant {
    let builder = DomainParticipant::builder(domain).interfaces(["lo"]).peers(["127.0.0.1"]);
    builder.lease_duration(Duration::from_secs(2)).build().expect("participant")
}

pub fn options(domain: u32, store: Option<&Directory>) -> Options {
    Options {
        domain,
        interfaces: vec!["lo".to_owned()],
        peers: vec!["127.0.0.1".to_owned()],
        store: store.map(|directory| directory.path().to_owned()),
        settling_time: Duration::from_millis(500),
        lease_duration: Duration::from_secs(1),
        ..Options::default()
    }
}

/// Service that runs until it is dropped.
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Totals>>,
}

impl Running {
    pub fn start(options: Options) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let mut service = Service::new(options).expect("a service");
        let thread = std::thread::spawn(move || {
            service.run(&seen).expect("the store takes everything");
            service.totals()
        });
        Self { stop, thread: Some(thread) }
    }

    /// Stops the service and returns its statistics.
    pub fn stop(mut self) -> Totals {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("it is stopped once").join().expect("it did not fail")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok() || std::thread::panicking(), "the service failed");
        }
    }
}

pub fn keep_all() -> DurabilityService {
    DurabilityService { history: History::KeepAll, ..DurabilityService::default() }
}

pub fn writer_qos(durability: Durability, service: DurabilityService) -> DataWriterQos {
    DataWriterQos {
        durability,
        durability_service: service,
        history: History::KeepLast(10_000),
        reliability: Reliability::RELIABLE,
        writer_data_lifecycle: WriterDataLifecycle { autodispose_unregistered_instances: false },
        ..DataWriterQos::default()
    }
}

pub fn writer(participant: &DomainParticipant, qos: DataWriterQos) -> DataWriter<Number> {
    let topic = participant.create_topic("Numbers", TopicQos::default()).expect("topic");
    participant
        .create_publisher(PublisherQos::default())
        .and_then(|p| p.create_datawriter(&topic, qos))
        .expect("writer")
}

pub fn reader(participant: &DomainParticipant, durability: Durability) -> DataReader<Number> {
    let qos = DataReaderQos {
        durability,
        history: History::KeepAll,
        reliability: Reliability::RELIABLE,
        ..DataReaderQos::default()
    };
    let topic = participant.create_topic("Numbers", TopicQos::default()).expect("topic");
    let subscriber = participant.create_subscriber(SubscriberQos::default()).expect("subscriber");
    subscriber.create_datareader(&topic, qos).expect("reader")
}

pub fn write(writer: &DataWriter<Number>, values: std::ops::Range<u32>) {
    for value in values {
        writer.write(&Number { key: value % 7, value }).expect("room");
    }
}

/// Waits until services have acknowledged everything.
pub fn await_durability(writer: &DataWriter<Number>) {
    writer.wait_for_durability(TIMEOUT).expect("a service keeps it");
}

/// Takes until `count` values have arrived, then waits briefly to check that no more arrive.
pub fn take(reader: &DataReader<Number>, count: usize) -> Vec<Sample<Number>> {
    let mut samples = Vec::new();
    let deadline = Instant::now() + TIMEOUT;
    until("samples", || {
        assert!(Instant::now() < deadline, "{count} samples, not {}: {:?}", samples.len(), values(&samples));
        samples.extend(reader.take(usize::MAX).expect("open").into_iter().filter(|sample| sample.data.is_some()));
        samples.len() >= count
    });
    let quiet = Instant::now() + Duration::from_millis(300);
    until("a quiet moment", || Instant::now() > quiet);
    samples.extend(reader.take(usize::MAX).expect("open").into_iter().filter(|sample| sample.data.is_some()));
    samples
}

pub fn values(samples: &[Sample<Number>]) -> Vec<u32> {
    samples.iter().filter_map(|sample| sample.data.as_ref()).map(|number| number.value).collect()
}
