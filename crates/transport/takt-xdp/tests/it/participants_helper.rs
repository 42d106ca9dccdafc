//! Test participants that write small and large samples, and read those of the peer.

use std::time::{Duration, Instant};

use takt::qos::{DataReaderQos, DataWriterQos, History, PublisherQos, Reliability, SubscriberQos, TopicQos};
use takt::{DataReader, DataWriter, DdsType, DomainParticipant, DomainParticipantBuilder, Runtime};
use takt_transport::Transport;

pub const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
pub struct Blob {
    pub number: u32,
    pub octets: Vec<u8>,
}

impl Blob {
    fn new(number: u32) -> Self {
        // Most samples fit into one datagram, some take many.
        let len = if number % 10 == 9 { 300_000 } else { 100 };
        Self { number, octets: (0..len).map(|at: u32| (at ^ number) as u8).collect() }
    }
}

pub struct TestParticipant {
    pub participant: DomainParticipant,
    pub writer: DataWriter<Blob>,
    pub reader: DataReader<Blob>,
}

impl TestParticipant {
    /// Returns discovery and transport counters, for the message of a failed test.
    fn counters(&self) -> impl std::fmt::Debug {
        let participant = &self.participant;
        let discovered = participant.discovered_participants().expect("open").len();
        let found = (participant.discovered_publications(), participant.discovered_subscriptions());
        let matched = (self.writer.publication_matched_status(), self.reader.subscription_matched_status());
        let statistics = (
            participant.diagnostics().transport_stats(),
            participant.diagnostics().counters(),
            participant.diagnostics().driver_counters(),
        );
        (discovered, found, matched, statistics, participant.diagnostics().refusals())
    }
}

/// Makes a participant over one transport that writes one topic and reads the other.
pub fn new_participant(transport: Box<dyn Transport>, writes: &str, reads: &str) -> takt::Result<TestParticipant> {
    participant_from(DomainParticipant::builder(0).transport(transport), writes, reads)
}

/// Makes such a participant from a builder.
pub fn participant_from(builder: DomainParticipantBuilder, writes: &str, reads: &str) -> takt::Result<TestParticipant> {
    let participant = builder.runtime(Runtime::Inline).build()?;
    let reliability = Reliability { max_blocking_time: takt::Duration::from_secs(10), ..Reliability::RELIABLE };
    let (written, read) = (
        participant.create_topic::<Blob>(writes, TopicQos::default())?,
        participant.create_topic::<Blob>(reads, TopicQos::default())?,
    );
    let qos = DataWriterQos { history: History::KeepAll, reliability, ..DataWriterQos::default() };
    let writer = participant.create_publisher(PublisherQos::default())?.create_datawriter(&written, qos)?;
    let qos = DataReaderQos { history: History::KeepAll, reliability, ..DataReaderQos::default() };
    let reader = participant.create_subscriber(SubscriberQos::default())?.create_datareader(&read, qos)?;
    Ok(TestParticipant { participant, writer, reader })
}

/// Makes both write `count` samples and read those of the other.
pub fn exchange(participants: &[TestParticipant; 2], count: u32) {
    let since = Instant::now();
    let spin = || {
        assert!(
            since.elapsed() < TIMEOUT,
            "nothing arrives: {:#?}",
            participants.each_ref().map(TestParticipant::counters)
        );
        for one in participants {
            one.participant.spin_once(Duration::from_millis(1)).expect("open");
        }
    };
    let matched = |one: &TestParticipant| one.writer.publication_matched_status().expect("open").current_count;
    while participants.iter().any(|one| matched(one) == 0) {
        spin();
    }
    let mut expected = [0; 2];
    for number in 0..count {
        for one in participants {
            one.writer.write(&Blob::new(number)).expect("the writer accepts the sample");
        }
        spin();
        take(participants, &mut expected);
    }
    while expected != [count; 2] {
        spin();
        take(participants, &mut expected);
    }
}

fn take(participants: &[TestParticipant; 2], expected: &mut [u32; 2]) {
    for (one, expected) in participants.iter().zip(expected) {
        for sample in one.reader.take(usize::MAX).expect("open") {
            if let Some(blob) = sample.data {
                assert_eq!(blob, Blob::new(*expected));
                *expected += 1;
            }
        }
    }
}
