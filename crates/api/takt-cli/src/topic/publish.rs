//! `takt pub`: writes JSON values to a topic whose type is learned, built in or read from a file.

use super::json::from_serde;
use super::learning::{Endpoints, endpoints, find, hint, learn, spin_until};
use super::policies::{PolicyOptions, writer_for};
use super::receive::report_refusals;
use super::type_source::TypeSource;
use crate::completion::topics;
use crate::domain::{Domain, MAX_TIME, STEP, seconds};
use crate::finding::count;
use crate::output::{note, outln};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;
use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::{Duration, Instant};
use takt::dynamic::{DynamicDataWriter, DynamicTypeSupport};
use takt::qos::{DataWriterQos, PublisherQos};
use takt::xtypes::dynamic::DynamicData;
use takt::{DomainParticipant, Error as DdsError};
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};

const EXAMPLES: &str = r#"Examples:
  takt pub Square '{"color":"RED","x":10,"y":20,"shapesize":30}' --type ShapeType
  takt pub Square '{"color":"RED"}' --rate 10 --count 100    the type of a reader or writer of Square
  takt pub Square < values.jsonl                             one JSON value per line
  takt pub State '{"robot":3}' --idl robots.idl --type robots::State
  takt pub /chatter '{"data":"hello"}' --msg std_msgs/msg/String --reliable
  takt pub Square '{"color":"RED"}' --dispose                disposes the instance

Omitted members have their default values. The policies are those that the first reader requests, unless an option sets
them. With --type or --idl the writer is created at once, and is replaced if it does not match the first reader; its
OWNERSHIP is SHARED without --exclusive. It waits for a reader at the start and for acknowledgments at the end."#;

/// Time that readers have to acknowledge the last samples.
const ACK_TIMEOUT: Duration = Duration::from_secs(10);
/// The same time after a signal.
const ACK_TIMEOUT_STOPPED: Duration = Duration::from_millis(500);

/// `takt pub`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Pub {
    /// Topic name
    #[arg(add = ArgValueCompleter::new(topics))]
    topic: String,
    /// Value as JSON [default: values from standard input, one per line]
    value: Option<String>,
    #[command(flatten)]
    source: TypeSource,
    /// Samples per second [default: 1 for a repeated value, unlimited from standard input]
    #[arg(long = "rate", value_name = "HZ", value_parser = period)]
    period: Option<Duration>,
    /// Number of times to write the value; 0: until a signal arrives [default: 1]
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Dispose the instance instead of writing the value
    #[arg(long)]
    dispose: bool,
    /// Write at once, without waiting for a reader
    #[arg(long)]
    no_wait: bool,
    /// Time to wait for a reader and for the type, in seconds [default: unlimited]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    #[command(flatten)]
    policies: PolicyOptions,
    #[command(flatten)]
    domain: Domain,
    /// Print one JSON object with the result
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    topic: &'a str,
    #[serde(rename = "type")]
    type_name: &'a str,
    written: u64,
    readers: u32,
    /// Whether all readers acknowledged the samples. `None` for a best-effort writer, whose readers
    /// do not acknowledge.
    acknowledged: Option<bool>,
}

/// Parses a rate and returns its period.
fn period(text: &str) -> std::result::Result<Duration, String> {
    let wrong = || "expected a rate in samples per second, at least 1e-9".to_owned();
    let rate: f64 = text.parse().map_err(|_| wrong())?;
    let period = Duration::try_from_secs_f64(1.0 / rate).map_err(|_| wrong())?;
    if rate.is_finite() && period <= MAX_TIME { Ok(period) } else { Err(wrong()) }
}

/// Line of standard input with its number, from 1.
type Line = (usize, io::Result<String>);

/// Source of the values.
enum Values<'a> {
    /// One value, written once or repeatedly.
    Repeated(&'a str),
    /// One value for each line of standard input.
    Lines(Lines),
}

/// Non-blank lines of standard input. A thread reads them, since the participant has to be driven
/// meanwhile. The thread ends with the input or with the process.
struct Lines {
    first: Option<Line>,
    rest: Receiver<Line>,
}

impl Lines {
    /// Starts reading. An input that has already ended is an error before the search for readers
    /// begins.
    fn start() -> Result<Self> {
        let (sender, rest) = sync_channel(16);
        std::thread::spawn(move || {
            let lines = (1..).zip(io::stdin().lock().lines());
            for line in lines.filter(|(_, line)| !line.as_ref().is_ok_and(|line| line.trim().is_empty())) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        match rest.recv_timeout(STEP) {
            Ok(line) => Ok(Self { first: Some(line), rest }),
            Err(RecvTimeoutError::Timeout) => Ok(Self { first: None, rest }),
            Err(RecvTimeoutError::Disconnected) => Err(no_value()),
        }
    }

    /// Returns the next line if it has arrived, and `Some(None)` at the end.
    fn next(&mut self) -> Option<Option<Line>> {
        if let Some(line) = self.first.take() {
            return Some(Some(line));
        }
        match self.rest.try_recv() {
            Ok(line) => Some(Some(line)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(None),
        }
    }
}

fn no_value() -> Error {
    Error::Usage("standard input has no value; expected one JSON value per line, or VALUE as an argument".into())
}

impl Pub {
    /// Writes all values.
    ///
    /// # Errors
    /// - No type or no reader is found in time.
    /// - Standard input has no value, or a value does not belong to the type.
    /// - The domain cannot be joined.
    pub fn run(&self) -> Result<()> {
        // From here on, `topic` is the DDS topic.
        Self { topic: self.source.file.topic(&self.topic), ..self.clone() }.write_all()
    }

    fn write_all(&self) -> Result<()> {
        let own = self.source.load()?;
        // An invalid value is reported before the command waits for a reader.
        if let (Some(type_), Some(value)) = (&own, &self.value) {
            parse(type_, value)?;
        }
        let values = match &self.value {
            Some(value) => Values::Repeated(value),
            None => Values::Lines(Lines::start()?),
        };
        let participant = self.source.file.join(&self.domain, "takt pub")?;
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        let (type_, writer) = self.writer(&participant, own, deadline)?;
        self.await_reader(&participant, &writer, deadline)?;
        let written = match values {
            Values::Repeated(value) => self.repeat(&participant, &writer, &parse(&type_, value)?)?,
            Values::Lines(lines) => self.write_lines(&participant, &writer, &type_, lines)?,
        };
        self.finish(&participant, &writer, written)
    }

    /// Creates the writer. The type is learned unless it is built in or read from a file.
    fn writer(
        &self,
        participant: &DomainParticipant,
        own: Option<DynamicTypeSupport>,
        deadline: Option<Instant>,
    ) -> Result<(DynamicTypeSupport, DynamicDataWriter)> {
        let Some(type_) = own else {
            let found = find(participant, &self.topic, deadline)?;
            let type_ = learn(participant, &self.topic, deadline).map_err(with_hint)?;
            let writer = self.create(participant, &type_, self.policies_for(&found))?;
            return Ok((type_, writer));
        };
        // A reader that learns the type from a writer, as `takt echo` does, finds one from the
        // start.
        let at_start = self.policies_for(&endpoints(participant, &self.topic)?);
        let writer = self.create(participant, &type_, at_start.clone())?;
        if self.no_wait {
            return Ok((type_, writer));
        }
        let (qos, publisher) = self.policies_for(&find(participant, &self.topic, deadline)?);
        // An OpenFlow controller announces another OWNERSHIP for a reader whose pair it does not,
        // or does not yet, admit.
        let policies = (DataWriterQos { ownership: at_start.0.ownership, ..qos }, publisher);
        if policies == at_start || writer.publication_matched_status()?.current_count > 0 {
            return Ok((type_, writer));
        }
        // The second writer exists before the first is deleted, so that the topic always has its
        // type.
        let fitting = self.create(participant, &type_, policies)?;
        Ok((type_, fitting))
    }

    /// Returns policies that suit the discovered endpoints, overridden by options.
    fn policies_for(&self, found: &Endpoints) -> (DataWriterQos, PublisherQos) {
        let (mut qos, mut publisher) = writer_for(found);
        self.policies.apply(&mut qos, &mut publisher);
        (qos, publisher)
    }

    fn create(
        &self,
        participant: &DomainParticipant,
        type_: &DynamicTypeSupport,
        (qos, publisher): (DataWriterQos, PublisherQos),
    ) -> Result<DynamicDataWriter> {
        let publisher = participant.create_publisher(publisher)?;
        Ok(publisher.create_dynamic_datawriter(&self.topic, type_, qos)?)
    }

    fn await_reader(
        &self,
        participant: &DomainParticipant,
        writer: &DynamicDataWriter,
        deadline: Option<Instant>,
    ) -> Result<()> {
        if self.no_wait {
            return Ok(());
        }
        note!("takt: waiting for a reader of {}", self.topic);
        let mut reported = 0;
        let matched = spin_until(participant, deadline, || {
            report_refusals(&participant.diagnostics().refusals()?, &mut reported);
            Ok(writer.publication_matched_status()?.current_count > 0)
        })?;
        if matched {
            // The reader matches slightly later than this writer.
            spin_until(participant, Some(Instant::now() + STEP), || Ok(false))?;
            return Ok(());
        }
        let there = endpoints(participant, &self.topic)?.readers.len();
        let what = match there {
            0 => format!("topic {} has no reader{}", self.topic, hint(participant, &self.topic)?),
            _ => format!("{} of topic {} found, but none matches", count(there, "reader"), self.topic),
        };
        Err(Error::NoAnswer { what })
    }

    fn repeat(&self, participant: &DomainParticipant, writer: &DynamicDataWriter, data: &DynamicData) -> Result<u64> {
        let period = self.period.unwrap_or(Duration::from_secs(1));
        let count = self.count.unwrap_or(1);
        let mut written = 0;
        let mut due = Instant::now();
        while count == 0 || written < count {
            match spin_until(participant, Some(due), || Ok(false)) {
                Err(Error::Stopped) => break,
                result => result?,
            };
            self.write(writer, data)?;
            written += 1;
            due += period;
        }
        Ok(written)
    }

    fn write_lines(
        &self,
        participant: &DomainParticipant,
        writer: &DynamicDataWriter,
        type_: &DynamicTypeSupport,
        mut lines: Lines,
    ) -> Result<u64> {
        let mut written = 0;
        let mut due = Instant::now();
        loop {
            let mut next = None;
            let result = spin_until(participant, None, || {
                next = lines.next();
                Ok(next.is_some())
            });
            match result {
                Err(Error::Stopped) => return Ok(written),
                result => result?,
            };
            let Some(Some((number, line))) = next else {
                return if written == 0 { Err(no_value()) } else { Ok(written) };
            };
            let line = line.map_err(|source| Error::Os { op: "read standard input".into(), source })?;
            let data = parse(type_, &line).map_err(|error| Error::Usage(format!("line {number}: {error}")))?;
            if let Some(period) = self.period {
                spin_until(participant, Some(due), || Ok(false))?;
                due = Instant::now().max(due) + period;
            }
            self.write(writer, &data)?;
            written += 1;
            if self.count.is_some_and(|count| count > 0 && written >= count) {
                return Ok(written);
            }
        }
    }

    fn write(&self, writer: &DynamicDataWriter, data: &DynamicData) -> Result<()> {
        loop {
            let result = if self.dispose { writer.dispose(data) } else { writer.write(data) };
            match result {
                // Slow readers block a reliable writer.
                Err(DdsError::Timeout { .. }) if !stopped() => {}
                Err(DdsError::Timeout { .. }) => return Err(Error::Stopped),
                result => return Ok(result?),
            }
        }
    }

    fn finish(&self, participant: &DomainParticipant, writer: &DynamicDataWriter, written: u64) -> Result<()> {
        let readers = writer.publication_matched_status()?.current_count;
        let has_reliable_readers = writer.has_reliable_readers()?;
        if readers > 0 && !has_reliable_readers {
            // A best-effort reader drops samples that its host delivers after the end of the
            // writer.
            match spin_until(participant, Some(Instant::now() + STEP), || Ok(false)) {
                Err(Error::Stopped) => {}
                result => drop(result?),
            }
        }
        let is_acknowledged = await_acknowledgments(writer)?;
        let acknowledged = (has_reliable_readers || !is_acknowledged).then_some(is_acknowledged);
        let type_name = writer.type_support().type_name();
        if self.json {
            let report = Report { topic: &self.topic, type_name, written, readers, acknowledged };
            let line = serde_json::to_string(&report).map_err(|e| Error::Os { op: "JSON".into(), source: e.into() })?;
            outln!("{line}")?;
        } else {
            let (samples, to) =
                (count(usize::try_from(written).unwrap_or(usize::MAX), "sample"), count(readers as usize, "reader"));
            let fate = match acknowledged {
                Some(true) => "; all acknowledged",
                Some(false) => "",
                None => "; no reliable reader, delivery is not confirmed",
            };
            note!("takt: wrote {samples} of {type_name} to {to} of {}{fate}", self.topic);
        }
        if acknowledged != Some(false) {
            return Ok(());
        }
        if stopped() {
            return Err(Error::Stopped);
        }
        Err(Error::NoAnswer { what: format!("not all readers of topic {} have acknowledged all samples", self.topic) })
    }
}

/// Waits until all reliable readers have acknowledged all samples, for a shorter time after a
/// signal. Returns whether they have.
fn await_acknowledgments(writer: &DynamicDataWriter) -> Result<bool> {
    let begin = Instant::now();
    loop {
        match writer.wait_for_acknowledgments(crate::domain::STEP) {
            Ok(()) => return Ok(true),
            Err(DdsError::Timeout { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let limit = if stopped() { ACK_TIMEOUT_STOPPED } else { ACK_TIMEOUT };
        if begin.elapsed() >= limit {
            return Ok(false);
        }
    }
}

fn parse(type_: &DynamicTypeSupport, text: &str) -> Result<DynamicData> {
    let value = serde_json::from_str(text).map_err(|error| Error::Usage(format!("the value is not JSON: {error}")))?;
    let known = type_.dynamic_type().ok_or_else(|| {
        Error::Usage("the definition of the type is not available; use --idl FILE or --type NAME".to_owned())
    })?;
    known
        .from_json(&from_serde(value))
        .map_err(|error| Error::Usage(format!("the value is not a valid {}: {error}", type_.type_name())))
}

fn with_hint(error: Error) -> Error {
    match error {
        Error::Dds(DdsError::TypeUnavailable(reason)) => Error::NoType {
            what: reason.to_string(),
            hint: "use --idl FILE for a type in IDL, or --type NAME for a built-in type",
        },
        error => error,
    }
}
