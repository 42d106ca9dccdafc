//! Takt as a link: one participant with a writer, a reader, or both.
//!
//! Under the Inline runtime the calling thread does everything, and waiting for a sample is driving the
//! participant. Under the Shared runtime the participant has its receive thread, and this one only waits.

use crate::error::{Error, Result};
use crate::link::{Handler, Idle, Link, Matched, Notify};
use crate::machine::monotonic_ns;
use crate::payload::{Blob, MARKS_LEN};
use crate::signal::stopped;
use crate::spec::{History, LinkSpec, Runtime, Transport};
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use takt::qos::{self, DataReaderQos, DataWriterQos, PublisherQos, SubscriberQos, TopicQos};
use takt::status::LatencyExceededStatus;
use takt::{BatchError, DataReader, DataReaderListener, DataWriter, DomainParticipant, Sample, Selector, WaitSet};

/// Longest time that a reliable `write` waits for room.
const BLOCKING_TIME_MAX: Duration = Duration::from_secs(10);
/// Memory for the samples that a KEEP_ALL history holds.
const HISTORY_BYTES_MAX: usize = 16 << 20;
/// Fewest and most samples in a KEEP_ALL history.
const HISTORY_SAMPLES: (usize, usize) = (8, 4096);
/// Samples that a listener takes at once, at least.
const SAMPLES_PER_TAKE: usize = 64;
/// Length of the count before the octets of a serialised sample.
const COUNT_LEN: usize = 4;
/// Looks at the reader between two looks at the clock.
const POLLS_PER_CLOCK: u32 = 64;

/// One Takt participant.
pub struct DdsLink {
    participant: DomainParticipant,
    writer: Option<DataWriter<Blob>>,
    reader: Option<DataReader<Blob>>,
    waitset: Option<WaitSet>,
    runtime: Runtime,
    batch: usize,
    loan: bool,
    failure: Failure,
}

/// The first failure inside a listener, which has nobody to return it to.
type Failure = Arc<Mutex<Option<Error>>>;

impl DdsLink {
    /// Makes the participant and its endpoints.
    ///
    /// # Errors
    /// No such interface, or Takt refused.
    pub fn new(spec: &LinkSpec, write_topic: Option<&str>, read_topic: Option<&str>) -> Result<Self> {
        let peer = spec.peer.map_or_else(|| spec.address(), Ok)?;
        let mut builder = match &spec.preparation {
            Some(preparation) => (preparation.builder)()?,
            None => DomainParticipant::builder(spec.domain),
        };
        if !spec.preparation.as_ref().is_some_and(|preparation| preparation.has_peers) {
            builder = builder.peers([peer.to_string()]);
        }
        if let Transport::Named(transports) = &spec.transport {
            builder = builder.user_data_transports([transports.as_str()]);
        }
        if let Some(plan) = &spec.timing_plan {
            builder = builder.timing_plan(plan.clone());
        }
        let participant = builder
            .name(&spec.name)
            .interfaces([spec.interface.as_str()])
            .shared_memory(spec.transport == Transport::Shm)
            .runtime(match spec.runtime {
                Runtime::Inline => takt::Runtime::Inline,
                Runtime::Shared => takt::Runtime::Shared,
            })
            .idle(match spec.idle {
                Idle::Block => takt::Idle::Block,
                Idle::Spin => takt::Idle::Spin,
            })
            .build()?;
        // A closed standard error is no reason not to measure.
        let _ = write!(io::stderr(), "{}", participant.transport_report());
        let writer = match write_topic {
            Some(name) => {
                let topic = participant.create_topic::<Blob>(name, TopicQos::default())?;
                let publisher = participant.create_publisher(PublisherQos::default())?;
                Some(publisher.create_datawriter(&topic, writer_qos(spec))?)
            }
            None => None,
        };
        let reader = match read_topic {
            Some(name) => {
                let topic = participant.create_topic::<Blob>(name, TopicQos::default())?;
                let subscriber = participant.create_subscriber(SubscriberQos::default())?;
                Some(subscriber.create_datareader(&topic, reader_qos(spec))?)
            }
            None => None,
        };
        let waitset = match (&reader, spec.notify) {
            (Some(reader), Notify::WaitSet) => {
                let waitset = WaitSet::new()?;
                waitset.attach(reader.read_condition(Selector::READ))?;
                Some(waitset)
            }
            _ => None,
        };
        if let Some(reader) = reader.as_ref().filter(|_| spec.loan) {
            reader.borrow_samples(true)?;
        }
        let (runtime, loan, batch) = (spec.runtime, spec.loan, spec.batch.max(1));
        Ok(Self { participant, writer, reader, waitset, runtime, loan, batch, failure: Failure::default() })
    }

    /// Takes one valid sample if there is one.
    fn take(&self, sample: &mut Blob) -> Result<bool> {
        let reader = self.reader.as_ref().ok_or_else(no_reader)?;
        while let Some(valid_data) = take_next(reader, sample, self.loan)? {
            if valid_data {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits until there may be something to take, at most until `deadline_ns`.
    fn wait(&self, deadline_ns: u64) -> Result<()> {
        let left = Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns()));
        if let Some(waitset) = &self.waitset {
            waitset.wait_any(left)?;
        } else if self.runtime == Runtime::Inline {
            self.participant.spin_once(left)?;
        }
        Ok(())
    }
}

impl Link for DdsLink {
    fn write(&mut self, sample: &Blob) -> Result<bool> {
        let writer = self.writer.as_ref().ok_or_else(no_writer)?;
        write(writer, sample, self.loan)
    }

    fn write_batch(&mut self, samples: &[Blob]) -> Result<usize> {
        let writer = self.writer.as_ref().ok_or_else(no_writer)?;
        match writer.write_batch(samples) {
            Ok(written) => Ok(written),
            Err(BatchError { written, error: takt::Error::Timeout { .. } | takt::Error::OutOfResources { .. } }) => {
                Ok(written)
            }
            Err(stopped) => Err(stopped.error.into()),
        }
    }

    fn receive(&mut self, sample: &mut Blob, timeout: Duration) -> Result<bool> {
        let mut deadline_ns = None;
        loop {
            let polls = match (&self.waitset, self.runtime) {
                (None, Runtime::Shared) => POLLS_PER_CLOCK,
                _ => 1,
            };
            for _ in 0..polls {
                if self.take(sample)? {
                    return Ok(true);
                }
            }
            let now = monotonic_ns();
            let deadline = *deadline_ns.get_or_insert(now + timeout.as_nanos() as u64);
            if stopped() || now >= deadline {
                return Ok(false);
            }
            self.wait(deadline)?;
        }
    }

    fn drive(&mut self, timeout: Duration) -> Result<()> {
        match self.runtime {
            Runtime::Inline => {
                self.participant.spin_once(timeout)?;
            }
            Runtime::Shared if !timeout.is_zero() => std::thread::park_timeout(timeout),
            Runtime::Shared => {}
        }
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), Err)
    }

    fn matched(&mut self) -> Result<Matched> {
        let mut matched = Matched::default();
        if let Some(writer) = &self.writer {
            matched.readers = writer.publication_matched_status()?.current_count as usize;
        }
        if let Some(reader) = &self.reader {
            matched.writers = reader.subscription_matched_status()?.current_count as usize;
        }
        Ok(matched)
    }

    fn listen(&mut self, handler: Handler) -> Result<bool> {
        let reader = self.reader.as_ref().ok_or_else(no_reader)?;
        reader.set_listener(Box::new(Listener {
            writer: self.writer.clone(),
            places: (0..self.batch.max(SAMPLES_PER_TAKE)).map(|_| Sample::default()).collect(),
            lent: self.loan.then(Blob::default),
            handler,
            failure: Arc::clone(&self.failure),
        }))?;
        Ok(true)
    }

    fn write_job_accounts(&self, out: &mut dyn io::Write) -> Result<()> {
        self.participant.write_job_accounts(out).map_err(|error| Error::os("write accounts of jobs", error))
    }

    fn latency_status(&self) -> Result<Option<LatencyExceededStatus>> {
        Ok(self.reader.as_ref().map(|reader| reader.latency_exceeded_status()).transpose()?.flatten())
    }

    fn flush(&mut self, timeout: Duration) -> Result<()> {
        let Some(writer) = &self.writer else {
            return Ok(());
        };
        match writer.wait_for_acknowledgments(timeout) {
            // Late is not wrong: the caller gave the time that it had.
            Ok(()) | Err(takt::Error::Timeout { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Hands every sample to the workload.
struct Listener {
    writer: Option<DataWriter<Blob>>,
    /// Room for the samples that are taken at once.
    places: Vec<Sample<Blob>>,
    /// What is lent, one by one; `None`: nothing is.
    lent: Option<Blob>,
    handler: Handler,
    failure: Failure,
}

impl DataReaderListener<Blob> for Listener {
    fn on_data_available(&mut self, reader: &DataReader<Blob>) {
        let result = if self.lent.is_some() { self.borrow(reader) } else { self.take(reader) };
        if let Err(error) = result {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(error);
        }
    }
}

impl Listener {
    fn take(&mut self, reader: &DataReader<Blob>) -> Result<()> {
        loop {
            let room = self.places.len();
            let samples = reader.take_batch(&mut self.places)?;
            let writer = self.writer.as_ref();
            for sample in samples.iter().filter_map(|sample| sample.data.as_ref()) {
                (self.handler)(sample, &mut |sample| write(writer.ok_or_else(no_writer)?, sample, false));
            }
            if samples.len() < room {
                return Ok(());
            }
        }
    }

    fn borrow(&mut self, reader: &DataReader<Blob>) -> Result<()> {
        let Some(lent) = &mut self.lent else { return Ok(()) };
        let writer = self.writer.as_ref();
        while let Some(has_data) = take_next(reader, lent, true)? {
            if has_data {
                (self.handler)(lent, &mut |sample| write(writer.ok_or_else(no_writer)?, sample, true));
            }
        }
        Ok(())
    }
}

/// Takes a sample, and says whether it has data. Of one that is lent only the marks are copied.
fn take_next(reader: &DataReader<Blob>, sample: &mut Blob, loan: bool) -> Result<Option<bool>> {
    if !loan {
        return Ok(reader.take_next_sample(sample)?.map(|info| info.valid_data));
    }
    let Some(loaned) = reader.take_loaned()? else { return Ok(None) };
    let mut count = [0; COUNT_LEN];
    let has_count = loaned.info.valid_data && loaned.read_at(0, &mut count) == COUNT_LEN;
    let len = u32::from_le_bytes(count) as usize;
    if !has_count || len > loaned.len() - COUNT_LEN {
        return Ok(Some(false));
    }
    sample.data.resize(len, 0);
    let marks = len.min(MARKS_LEN);
    loaned.read_at(COUNT_LEN, &mut sample.data[..marks]);
    Ok(Some(loaned.is_intact()))
}

/// Writes the count and the marks of a sample where they are lent from.
fn write_loaned(writer: &DataWriter<Blob>, sample: &Blob) -> takt::Result<()> {
    let mut loan = writer.loan(COUNT_LEN + sample.data.len())?;
    let marks = sample.data.len().min(MARKS_LEN);
    loan[..COUNT_LEN].copy_from_slice(&(sample.data.len() as u32).to_le_bytes());
    loan[COUNT_LEN..][..marks].copy_from_slice(&sample.data[..marks]);
    writer.write_loaned(loan)
}

fn write(writer: &DataWriter<Blob>, sample: &Blob, loan: bool) -> Result<bool> {
    match if loan { write_loaned(writer, sample) } else { writer.write(sample) } {
        Ok(()) => Ok(true),
        Err(takt::Error::Timeout { .. } | takt::Error::OutOfResources { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn no_writer() -> Error {
    Error::Usage("this link has no writer".into())
}

fn no_reader() -> Error {
    Error::Usage("this link has no reader".into())
}

fn reliability(spec: &LinkSpec) -> qos::Reliability {
    qos::Reliability {
        kind: if spec.reliable { qos::ReliabilityKind::Reliable } else { qos::ReliabilityKind::BestEffort },
        max_blocking_time: BLOCKING_TIME_MAX.into(),
    }
}

fn history(spec: &LinkSpec) -> qos::History {
    match spec.history {
        History::KeepAll => qos::History::KeepAll,
        History::KeepLast(depth) => qos::History::KeepLast(depth),
    }
}

fn latency_budget(spec: &LinkSpec) -> qos::LatencyBudget {
    qos::LatencyBudget { duration: spec.latency_budget.into() }
}

/// Limits of a KEEP_ALL history: as many samples as a fixed amount of memory holds.
fn resource_limits(spec: &LinkSpec) -> qos::ResourceLimits {
    let limit = match spec.history {
        History::KeepAll => {
            let samples = HISTORY_BYTES_MAX / spec.size_max.max(1);
            Some(samples.clamp(HISTORY_SAMPLES.0, HISTORY_SAMPLES.1) as u32)
        }
        History::KeepLast(_) => None,
    };
    qos::ResourceLimits { max_samples: limit, max_instances: None, max_samples_per_instance: limit }
}

fn writer_qos(spec: &LinkSpec) -> DataWriterQos {
    DataWriterQos {
        latency_budget: latency_budget(spec),
        reliability: reliability(spec),
        history: history(spec),
        resource_limits: resource_limits(spec),
        ..DataWriterQos::default()
    }
}

fn reader_qos(spec: &LinkSpec) -> DataReaderQos {
    DataReaderQos {
        latency_budget: latency_budget(spec),
        reliability: reliability(spec),
        history: history(spec),
        resource_limits: resource_limits(spec),
        ..DataReaderQos::default()
    }
}
