//! Measured cases: samples from `write` to `take` between two participants of one thread.

use std::time::{Duration, Instant};

use takt::qos::{DataReaderQos, DataWriterQos, History, PublisherQos, Reliability, SubscriberQos, TopicQos};
use takt::{DataReader, DataWriter, DdsType, DomainParticipant, Runtime};

/// Range of domain IDs, from which a case chooses by its process ID, so that traffic of other
/// processes on this host is not counted.
const DOMAINS: std::ops::Range<u32> = 100..230;

/// Maximum time for endpoints to match. Under callgrind, execution is some fifty times slower.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Transport of the samples.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    Udp,
    SharedMemory,
}

/// Path of samples from `write` to `take`.
pub struct Case {
    /// Name in the record.
    pub name: &'static str,
    path: Path,
    is_reliable: bool,
    /// Octets of the sequence in the sample.
    len: usize,
    /// Number of counted samples; as many before them fill the histories.
    pub samples: u64,
}

/// All cases.
pub const CASES: [Case; 7] = [
    Case { name: "udp-best-effort-64", path: Path::Udp, is_reliable: false, len: 64, samples: 500 },
    Case { name: "udp-reliable-64", path: Path::Udp, is_reliable: true, len: 64, samples: 500 },
    Case { name: "udp-reliable-1024", path: Path::Udp, is_reliable: true, len: 1024, samples: 500 },
    Case { name: "udp-reliable-16384", path: Path::Udp, is_reliable: true, len: 16_384, samples: 100 },
    Case { name: "udp-reliable-200000", path: Path::Udp, is_reliable: true, len: 200_000, samples: 20 },
    Case { name: "shm-reliable-64", path: Path::SharedMemory, is_reliable: true, len: 64, samples: 500 },
    Case { name: "shm-reliable-16384", path: Path::SharedMemory, is_reliable: true, len: 16_384, samples: 100 },
];

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Octets {
    number: u64,
    octets: Vec<u8>,
}

/// Runs the counted part. callgrind identifies this function by its name.
#[inline(never)]
pub fn measured(trips: &mut dyn FnMut()) {
    trips();
}

/// Runs one case: uncounted samples, then the counted ones.
pub fn run(name: &str) -> Result<(), String> {
    let case = CASES.iter().find(|case| case.name == name).ok_or_else(|| format!("unknown case `{name}`"))?;
    let mut pair = Pair::new(case).map_err(|error| format!("{name}: {error}"))?;
    pair.exchange();
    measured(&mut || pair.exchange());
    Ok(())
}

/// Writer and reader, each with a participant, both driven by this thread.
struct Pair {
    from: DomainParticipant,
    to: DomainParticipant,
    writer: DataWriter<Octets>,
    reader: DataReader<Octets>,
    sent: Octets,
    received: Octets,
    samples: u64,
}

impl Pair {
    fn new(case: &Case) -> takt::Result<Self> {
        let process = std::process::id();
        let domain = DOMAINS.start + process % (DOMAINS.end - DOMAINS.start);
        let name = format!("Data{process}");
        let participant = || {
            DomainParticipant::builder(domain)
                .interfaces(["lo"])
                .peers(["127.0.0.1"])
                .runtime(Runtime::Inline)
                .shared_memory(case.path == Path::SharedMemory)
                .build()
        };
        let (from, to) = (participant()?, participant()?);
        let reliability = if case.is_reliable { Reliability::RELIABLE } else { Reliability::BEST_EFFORT };
        let history = History::KeepLast(16);
        let topic = from.create_topic::<Octets>(&name, TopicQos::default())?;
        let qos = DataWriterQos { reliability, history, ..DataWriterQos::default() };
        let writer = from.create_publisher(PublisherQos::default())?.create_datawriter(&topic, qos)?;
        let topic = to.create_topic::<Octets>(&name, TopicQos::default())?;
        let qos = DataReaderQos { reliability, history, ..DataReaderQos::default() };
        let reader = to.create_subscriber(SubscriberQos::default())?.create_datareader(&topic, qos)?;
        let sent = Octets { number: 0, octets: vec![1; case.len] };
        let mut pair = Self { from, to, writer, reader, sent, received: Octets::default(), samples: case.samples };
        pair.await_match()?;
        Ok(pair)
    }

    fn await_match(&mut self) -> takt::Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        while self.writer.matched_subscriptions()?.is_empty() || self.reader.matched_publications()?.is_empty() {
            assert!(Instant::now() < deadline, "the endpoints do not match");
            self.from.spin_once(takt::Duration::ZERO)?;
            self.to.spin_once(takt::Duration::ZERO)?;
        }
        Ok(())
    }

    /// Writes samples one by one; each is taken before the next is written.
    fn exchange(&mut self) {
        for _ in 0..self.samples {
            self.sent.number += 1;
            self.writer.write(&self.sent).expect("KEEP_LAST accepts every sample");
            while !self.take() {
                self.to.spin_once(takt::Duration::ZERO).expect("the participant is open");
                self.from.spin_once(takt::Duration::ZERO).expect("the participant is open");
            }
        }
    }

    /// Takes the sample that was sent last, if it has arrived.
    fn take(&mut self) -> bool {
        let taken = self.reader.take_next_sample(&mut self.received).expect("the reader is open");
        taken.is_some() && self.received.number == self.sent.number
    }
}
