//! Benchmarks between two participants of one process, driven by one thread.
//!
//! [`topics`] measures the cost of many topics, [`within`] the cost of serialization between
//! entities of one process.

use crate::error::{Error, Result};
use crate::machine::{Memory, monotonic_ns, return_freed_memory};
use crate::payload::Blob;
use crate::signal::stopped;
use crate::stats::Summary;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use takt::qos::{DataReaderQos, DataWriterQos, History, PublisherQos, Reliability, SubscriberQos, TopicQos};
use takt::{DataReader, DataWriter, DomainParticipant, Limits, Runtime};

/// Maximum wait for an event.
const EVENT_TIMEOUT: Duration = Duration::from_secs(120);
/// Number of samples in transit at once when many topics are measured.
const BURST: usize = 16;

/// Domain, interface and transport of both participants.
#[derive(Clone, Debug)]
pub struct PairSettings {
    /// DDS domain ID.
    pub domain: u32,
    /// Network interface.
    pub interface: String,
    /// Address of the interface.
    pub address: String,
    /// Whether the participants use shared memory.
    pub shared_memory: bool,
}

struct ParticipantPair {
    publisher: DomainParticipant,
    subscriber: DomainParticipant,
    writers: Vec<DataWriter<Blob>>,
    readers: Vec<DataReader<Blob>>,
}

impl ParticipantPair {
    /// Creates participants with `topics` topics, each with a writer and a reader. Also returns the
    /// time until all endpoints were matched.
    fn new(settings: &PairSettings, topics: usize) -> Result<(Self, Duration)> {
        let begin = Instant::now();
        let (publisher, subscriber) = (participant(settings, topics)?, participant(settings, topics)?);
        let writing = publisher.create_publisher(PublisherQos::default())?;
        let reading = subscriber.create_subscriber(SubscriberQos::default())?;
        let history = History::KeepLast(BURST as u32);
        let (mut writers, mut readers) = (Vec::with_capacity(topics), Vec::with_capacity(topics));
        for number in 0..topics {
            if stopped() {
                return Err(Error::Stopped);
            }
            let name = format!("Topic{number}");
            let qos = DataWriterQos { reliability: Reliability::RELIABLE, history, ..DataWriterQos::default() };
            let topic = publisher.create_topic::<Blob>(&name, TopicQos::default())?;
            writers.push(writing.create_datawriter(&topic, qos)?);
            let qos = DataReaderQos { reliability: Reliability::RELIABLE, history, ..DataReaderQos::default() };
            let topic = subscriber.create_topic::<Blob>(&name, TopicQos::default())?;
            readers.push(reading.create_datareader(&topic, qos)?);
        }
        let pair = Self { publisher, subscriber, writers, readers };
        let (mut writing, mut reading) = (0, 0);
        pair.drive_until("all endpoints to be matched", || {
            while writing < topics && !pair.writers[writing].matched_subscriptions()?.is_empty() {
                writing += 1;
            }
            while reading < topics && !pair.readers[reading].matched_publications()?.is_empty() {
                reading += 1;
            }
            Ok(writing + reading == 2 * topics)
        })?;
        Ok((pair, begin.elapsed()))
    }

    fn drive_until(&self, what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
        let begin = Instant::now();
        while !is_so()? {
            if stopped() {
                return Err(Error::Stopped);
            }
            self.subscriber.spin_once(Duration::ZERO)?;
            self.publisher.spin_once(Duration::ZERO)?;
            if begin.elapsed() > EVENT_TIMEOUT {
                return Err(Error::NoAnswer {
                    what: format!("waited for {what}, without success within {EVENT_TIMEOUT:?}"),
                });
            }
        }
        Ok(())
    }

    /// Writes to each topic in turn, several samples at once, and takes what arrives. Returns the
    /// time per sample in ns.
    fn rounds(&self, samples: usize, size: usize) -> Result<f64> {
        let (sample, mut taken) = (Blob::filled(size), Blob::default());
        let topics = self.writers.len();
        let begin = monotonic_ns();
        for burst in 0..samples.div_ceil(BURST) {
            let mut in_transit: Vec<usize> = (0..BURST).map(|n| (burst * BURST + n) % topics).collect();
            for &topic in &in_transit {
                self.writers[topic].write(&sample)?;
            }
            self.drive_until("samples", || {
                while let Some(&topic) = in_transit.last()
                    && self.readers[topic].take_next_sample(&mut taken)?.is_some()
                {
                    in_transit.pop();
                }
                Ok(in_transit.is_empty())
            })?;
        }
        Ok((monotonic_ns() - begin) as f64 / (samples.div_ceil(BURST) * BURST) as f64)
    }
}

/// Creates a participant that accepts `endpoints` endpoints of a peer.
fn participant(settings: &PairSettings, endpoints: usize) -> Result<DomainParticipant> {
    let limits = Limits::default();
    let max_endpoints_per_participant = limits.max_endpoints_per_participant.max(endpoints);
    let builder =
        DomainParticipant::builder(settings.domain).name("takt-bench").interfaces([settings.interface.as_str()]);
    let builder =
        builder.peers([settings.address.as_str()]).shared_memory(settings.shared_memory).runtime(Runtime::Inline);
    let builder = builder.limits(Limits { max_endpoints_per_participant, ..limits });
    Ok(builder.build()?)
}

/// Cost of a number of topics.
#[derive(Clone, Debug, Serialize)]
pub struct Topics {
    /// Number of topics, each with a writer and a reader.
    pub topics: usize,
    /// Time from the creation of the participants until all endpoints are matched.
    pub matched_seconds: f64,
    /// Resident memory of both participants per topic, in bytes.
    pub bytes_per_topic: u64,
    /// Time from `write` to `take` per sample, with several samples in transit at once, each on the
    /// next topic.
    pub ns_per_sample: f64,
}

/// Measures the cost of `topics` topics with `samples` samples in all.
///
/// # Errors
/// Takt refused a setting, an expected event did not occur, or a signal requested a stop.
pub fn topics(settings: &PairSettings, topics: usize, samples: usize, size: usize) -> Result<Topics> {
    return_freed_memory();
    let before = Memory::now()?.resident_kib;
    let (pair, matched) = ParticipantPair::new(settings, topics.max(1))?;
    pair.rounds((samples / 10).max(topics), size)?;
    let bytes = Memory::now()?.resident_kib.saturating_sub(before) * 1024;
    let ns_per_sample = pair.rounds(samples, size)?;
    let bytes_per_topic = bytes / topics.max(1) as u64;
    Ok(Topics { topics, matched_seconds: matched.as_secs_f64(), bytes_per_topic, ns_per_sample })
}

/// Times from `write` to `take` between two participants of one process, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Within {
    /// Payload size in bytes.
    pub size: usize,
    /// Serialized by `write` and deserialized by `take_next_sample`.
    #[serde(rename = "serialised")]
    pub serialized: Summary,
    /// Passed without serialization by `write_shared` and `take_shared`.
    pub shared: Summary,
}

/// Measures both cases alternately, several samples each, so that the cache footprint of one case
/// is not charged to the other.
///
/// # Errors
/// Takt refused a setting, an expected event did not occur, or a signal requested a stop.
pub fn within(settings: &PairSettings, size: usize, samples: usize) -> Result<Within> {
    let (pair, _) = ParticipantPair::new(settings, 1)?;
    let (writer, reader) = (&pair.writers[0], &pair.readers[0]);
    let sample = Arc::new(Blob::filled(size));
    let (mut serialized, mut shared) = (Vec::with_capacity(samples), Vec::with_capacity(samples));
    let mut copy = Blob::default();
    let measure = |into: &mut Vec<u64>, exchange: &mut dyn FnMut() -> Result<()>| {
        for number in 0..2 * BURST {
            let begin = monotonic_ns();
            exchange()?;
            if number >= BURST && into.len() < samples {
                into.push(monotonic_ns() - begin);
            }
        }
        Ok::<_, Error>(())
    };
    while shared.len() < samples {
        measure(&mut serialized, &mut || {
            writer.write(&sample)?;
            pair.drive_until("a sample", || Ok(reader.take_next_sample(&mut copy)?.is_some()))
        })?;
        measure(&mut shared, &mut || {
            writer.write_shared(Arc::clone(&sample))?;
            pair.drive_until("a sample", || Ok(reader.take_shared()?.is_some()))
        })?;
    }
    let none = || Error::Usage("no samples to measure".into());
    let summary = |values: &mut Vec<u64>| Summary::of(values).ok_or_else(none);
    Ok(Within { size, serialized: summary(&mut serialized)?, shared: summary(&mut shared)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(domain: u32, shared_memory: bool) -> PairSettings {
        PairSettings { domain, interface: "lo".into(), address: "127.0.0.1".into(), shared_memory }
    }

    #[test]
    fn every_topic_carries_samples() {
        let found = topics(&place(211, false), 30, 100, 32).expect("loopback");
        assert_eq!(found.topics, 30);
        assert!(found.ns_per_sample > 0.0 && found.matched_seconds > 0.0, "{found:?}");
    }

    #[test]
    fn serialized_and_shared_samples_arrive() {
        let found = within(&place(212, true), 10_000, 50).expect("loopback");
        assert_eq!((found.size, found.serialized.count, found.shared.count), (10_000, 50, 50));
        assert!(within(&place(213, true), 16, 0).is_err(), "nothing to measure");
    }
}
