//! Takt as a benchmark link: one participant with a writer, a reader, or both.
//!
//! Under the Inline runtime the calling thread does everything, and waiting for a sample drives the
//! participant. Under the Shared runtime the participant has its receive thread, and the calling
//! thread only waits.

pub(crate) mod setup;

use crate::complex::Complex;
use crate::error::{Error, Result};
use crate::link::{Handler, Link, Matched, Notify};
use crate::machine::monotonic_ns;
use crate::numbered::EXPRESSION;
use crate::payload::{Blob, Form, MARKS_LEN};
use crate::signal::stopped;
use crate::spec::{LinkSpec, Runtime, Touch};
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use takt::qos::{PublisherQos, SubscriberQos, TopicQos};
use takt::status::LatencyExceededStatus;
use takt::{
    BatchError, DataReader, DataReaderListener, DataWriter, DomainParticipant, Sample, Selector, TypeSupport, WaitSet,
};

/// Minimum number of samples that a listener takes at once.
const SAMPLES_PER_TAKE: usize = 64;
/// Length of the count that precedes the octets of a serialized sample.
const COUNT_LEN: usize = 4;
const CACHE_LINE_LEN: usize = 64;
/// Octets of a loaned sample that are read at once.
const READ_LEN: usize = 4096;
/// Number of reader polls between two reads of the clock.
const POLLS_PER_CLOCK: u32 = 64;

/// Data type that carries a payload.
pub trait Carrier: TypeSupport + Clone {
    /// Converts a payload into a value of the type. `kept` is the value of the last call, whose
    /// payload has the same size.
    fn carry<'a>(payload: &'a Blob, kept: &'a mut Self) -> &'a Self;

    /// Returns the size of the payload that arrives for one of `len` octets.
    fn carried_len(len: usize) -> usize {
        len
    }

    /// Writes payloads in one batch. Returns the number that there was room for.
    ///
    /// # Errors
    /// Any failure other than a lack of room.
    fn write_batch(writer: &DataWriter<Self>, payloads: &[Blob], kept: &mut Self) -> Result<usize>;

    /// Returns the payload of a received value; `room` is storage for a conversion.
    fn payload<'a>(&'a self, room: &'a mut Blob) -> &'a Blob;

    /// Takes a value and moves its payload into `payload`. Returns whether it has valid data;
    /// `None` if there is no sample.
    ///
    /// # Errors
    /// The reader failed.
    fn take(reader: &DataReader<Self>, room: &mut Self, payload: &mut Blob) -> Result<Option<bool>>;
}

impl Carrier for Blob {
    fn carry<'a>(payload: &'a Blob, _kept: &'a mut Self) -> &'a Self {
        payload
    }

    fn write_batch(writer: &DataWriter<Self>, payloads: &[Blob], _kept: &mut Self) -> Result<usize> {
        match writer.write_batch(payloads) {
            Ok(written) => Ok(written),
            Err(BatchError { written, error: takt::Error::Timeout { .. } | takt::Error::OutOfResources { .. } }) => {
                Ok(written)
            }
            Err(stopped) => Err(stopped.error.into()),
        }
    }

    fn payload<'a>(&'a self, _room: &'a mut Blob) -> &'a Blob {
        self
    }

    fn take(reader: &DataReader<Self>, _room: &mut Self, payload: &mut Blob) -> Result<Option<bool>> {
        Ok(reader.take_next_sample(payload)?.map(|info| info.valid_data))
    }
}

impl Carrier for Complex {
    fn carry<'a>(payload: &'a Blob, kept: &'a mut Self) -> &'a Self {
        if kept.size() != Self::size_for(payload.data.len()) {
            *kept = Self::filled(payload.data.len());
        }
        kept.set_sequence(payload.marks().map_or(0, |(sequence, _)| sequence));
        kept
    }

    fn carried_len(len: usize) -> usize {
        Self::size_for(len)
    }

    fn write_batch(writer: &DataWriter<Self>, payloads: &[Blob], kept: &mut Self) -> Result<usize> {
        write_each(writer, payloads, kept)
    }

    fn payload<'a>(&'a self, room: &'a mut Blob) -> &'a Blob {
        if room.data.len() != self.size() {
            *room = Blob::filled(self.size());
        }
        room.mark(self.sequence(), 0);
        room
    }

    fn take(reader: &DataReader<Self>, room: &mut Self, payload: &mut Blob) -> Result<Option<bool>> {
        let info = reader.take_next_sample(room)?;
        room.payload(payload);
        Ok(info.map(|info| info.valid_data))
    }
}

/// Link over one Takt participant.
pub struct DdsLink<T: Carrier> {
    participant: DomainParticipant,
    writer: Option<DataWriter<T>>,
    reader: Option<DataReader<T>>,
    /// Value written last, and value received last.
    kept: [T; 2],
    touch: Touch,
    waitset: Option<WaitSet>,
    runtime: Runtime,
    batch: usize,
    loan: bool,
    failure: Failure,
}

/// First failure inside a listener, which cannot return it.
type Failure = Arc<Mutex<Option<Error>>>;

impl<T: Carrier> DdsLink<T> {
    /// Creates the participant and its endpoints.
    ///
    /// # Errors
    /// The interface does not exist, or Takt refused the settings.
    pub fn new(spec: &LinkSpec, write_topic: Option<&str>, read_topic: Option<&str>) -> Result<Self> {
        let participant = setup::participant(spec)?;
        // A closed standard error does not prevent the measurement.
        let _ = write!(io::stderr(), "{}", participant.diagnostics().transport_report());
        let writer = match write_topic {
            Some(name) => {
                let topic = participant.create_topic::<T>(name, TopicQos::default())?;
                let publisher = participant.create_publisher(PublisherQos::default())?;
                Some(publisher.create_datawriter(&topic, setup::writer_qos(spec))?)
            }
            None => None,
        };
        let reader = match read_topic {
            Some(name) => {
                let topic = participant.create_topic::<T>(name, TopicQos::default())?;
                let subscriber = participant.create_subscriber(SubscriberQos::default())?;
                let qos = setup::reader_qos(spec);
                Some(match spec.pass_percent {
                    None => subscriber.create_datareader(&topic, qos)?,
                    Some(percent) => {
                        let (name, percent) = (format!("{name}Passing"), percent.to_string());
                        let passing =
                            participant.create_contentfilteredtopic(&name, &topic, EXPRESSION, &[percent.as_str()])?;
                        subscriber.create_datareader(&passing, qos)?
                    }
                })
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
        if spec.loan && spec.form != Form::Octets {
            return Err(Error::Usage("only samples of octets can be loaned; set loan=0".into()));
        }
        let (runtime, loan, batch) = (spec.runtime, spec.loan, spec.batch.max(1));
        let kept = [T::default(), T::default()];
        let (touch, failure) = (spec.touch, Failure::default());
        Ok(Self { participant, writer, reader, kept, touch, waitset, runtime, loan, batch, failure })
    }

    /// Takes one valid sample, if there is one.
    fn take(&mut self, sample: &mut Blob) -> Result<bool> {
        let reader = self.reader.as_ref().ok_or_else(no_reader)?;
        let room = &mut self.kept[1];
        let mut next = || match self.loan {
            true => take_loaned(reader, sample, self.touch),
            false => T::take(reader, room, sample),
        };
        while let Some(valid_data) = next()? {
            if valid_data {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits until a sample may be available, at most until `deadline_ns`.
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

impl<T: Carrier> Link for DdsLink<T> {
    fn carried_len(&self, len: usize) -> usize {
        T::carried_len(len)
    }

    fn write(&mut self, sample: &Blob) -> Result<bool> {
        let writer = self.writer.as_ref().ok_or_else(no_writer)?;
        write(writer, sample, &mut self.kept[0], self.loan.then_some(self.touch))
    }

    fn write_batch(&mut self, samples: &[Blob]) -> Result<usize> {
        let writer = self.writer.as_ref().ok_or_else(no_writer)?;
        T::write_batch(writer, samples, &mut self.kept[0])
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
            kept: T::default(),
            room: Blob::default(),
            loan: self.loan.then_some(self.touch),
            handler,
            failure: Arc::clone(&self.failure),
        }))?;
        Ok(true)
    }

    fn make_durable(&mut self, timeout: Duration) -> Result<()> {
        let writer = self.writer.as_ref().ok_or_else(no_writer)?;
        Ok(writer.wait_for_durability(timeout)?)
    }

    fn write_job_statistics(&self, out: &mut dyn io::Write) -> Result<()> {
        self.participant.write_job_statistics(out).map_err(|error| Error::os("write the job statistics", error))
    }

    fn latency_status(&self) -> Result<Option<LatencyExceededStatus>> {
        Ok(self.reader.as_ref().map(|reader| reader.latency_exceeded_status()).transpose()?.flatten())
    }

    fn flush(&mut self, timeout: Duration) -> Result<()> {
        let Some(writer) = &self.writer else {
            return Ok(());
        };
        match writer.wait_for_acknowledgments(timeout) {
            // A timeout is no failure: the caller chose the time.
            Ok(()) | Err(takt::Error::Timeout { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Listener that passes every sample to the workload.
struct Listener<T: Carrier> {
    writer: Option<DataWriter<T>>,
    /// Buffer for the samples that are taken at once.
    places: Vec<Sample<T>>,
    /// Value written last.
    kept: T,
    /// Payload received last.
    room: Blob,
    /// With loans, samples are taken one by one, and the value says how much of each is read and
    /// written.
    loan: Option<Touch>,
    handler: Handler,
    failure: Failure,
}

impl<T: Carrier> DataReaderListener<T> for Listener<T> {
    fn on_data_available(&mut self, reader: &DataReader<T>) {
        let result = match self.loan {
            Some(touch) => self.borrow(reader, touch),
            None => self.take(reader),
        };
        if let Err(error) = result {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(error);
        }
    }
}

impl<T: Carrier> Listener<T> {
    fn take(&mut self, reader: &DataReader<T>) -> Result<()> {
        let Self { writer, places, kept, room, handler, .. } = self;
        loop {
            let samples = reader.take_batch(places)?;
            let count = samples.len();
            for value in samples.iter().filter_map(|sample| sample.data.as_ref()) {
                let payload = value.payload(room);
                handler(payload, &mut |answer| write(writer.as_ref().ok_or_else(no_writer)?, answer, kept, None));
            }
            if count < places.len() {
                return Ok(());
            }
        }
    }

    fn borrow(&mut self, reader: &DataReader<T>, touch: Touch) -> Result<()> {
        let Self { writer, kept, room, handler, .. } = self;
        while let Some(has_data) = take_loaned(reader, room, touch)? {
            if has_data {
                let writer = || writer.as_ref().ok_or_else(no_writer);
                handler(room, &mut |answer| write(writer()?, answer, kept, Some(touch)));
            }
        }
        Ok(())
    }
}

/// Takes a loaned sample and returns whether it has valid data. Copies its marks and reads as much
/// of it as `touch` says.
fn take_loaned<T: Carrier>(reader: &DataReader<T>, payload: &mut Blob, touch: Touch) -> Result<Option<bool>> {
    let Some(loaned) = reader.take_loaned()? else { return Ok(None) };
    let mut count = [0; COUNT_LEN];
    let has_count = loaned.info.valid_data && loaned.read_at(0, &mut count) == COUNT_LEN;
    let len = u32::from_le_bytes(count) as usize;
    if !has_count || len > loaned.len() - COUNT_LEN {
        return Ok(Some(false));
    }
    payload.data.resize(len, 0);
    let marks = len.min(MARKS_LEN);
    loaned.read_at(COUNT_LEN, &mut payload.data[..marks]);
    match touch {
        Touch::Marks => {}
        Touch::Lines => {
            let mut octet = [0];
            for offset in (0..len).step_by(CACHE_LINE_LEN) {
                loaned.read_at(COUNT_LEN + offset, &mut octet);
                std::hint::black_box(octet);
            }
        }
        Touch::All => {
            let mut octets = [0; READ_LEN];
            for offset in (0..len).step_by(READ_LEN) {
                let part = &mut octets[..READ_LEN.min(len - offset)];
                loaned.read_at(COUNT_LEN + offset, part);
                std::hint::black_box(part);
            }
        }
    }
    Ok(Some(loaned.is_intact()))
}

/// Writes the count, the marks and as much of a payload as `touch` says into a loan.
fn write_loaned<T: Carrier>(writer: &DataWriter<T>, payload: &Blob, touch: Touch) -> takt::Result<()> {
    let len = payload.data.len();
    let mut loan = writer.loan(COUNT_LEN + len)?;
    loan[..COUNT_LEN].copy_from_slice(&(len as u32).to_le_bytes());
    let written = if touch == Touch::All { len } else { len.min(MARKS_LEN) };
    loan[COUNT_LEN..][..written].copy_from_slice(&payload.data[..written]);
    if touch == Touch::Lines {
        for offset in (0..len).step_by(CACHE_LINE_LEN) {
            loan[COUNT_LEN + offset] = payload.data[offset];
        }
    }
    writer.write_loaned(loan)
}

/// Writes payloads one by one. Returns the number that there was room for.
pub(crate) fn write_each<T: Carrier>(writer: &DataWriter<T>, payloads: &[Blob], kept: &mut T) -> Result<usize> {
    for (written, payload) in payloads.iter().enumerate() {
        if !write(writer, payload, kept, None)? {
            return Ok(written);
        }
    }
    Ok(payloads.len())
}

/// Writes a payload, with `loan` into loaned memory.
fn write<T: Carrier>(writer: &DataWriter<T>, payload: &Blob, kept: &mut T, loan: Option<Touch>) -> Result<bool> {
    let written = match loan {
        Some(touch) => write_loaned(writer, payload, touch),
        None => writer.write(T::carry(payload, kept)),
    };
    match written {
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
