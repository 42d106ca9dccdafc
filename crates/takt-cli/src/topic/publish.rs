//! `takt pub`: writes JSON to a topic whose type it learns, or has.

use super::json::from_serde;
use super::learning::{Endpoints, endpoints, find, hint, learn, spin_until};
use super::library;
use super::policies::{PolicyOptions, writer_for};
use super::receive::report_refusals;
use crate::domain::{Domain, seconds};
use crate::finding::count;
use crate::output::{note, outln};
use clap::Args;
use serde::Serialize;
use std::io::BufRead;
use std::time::{Duration, Instant};
use takt::dynamic::{DynamicDataWriter, DynamicTypeSupport};
use takt::xtypes::dynamic::DynamicData;
use takt::{DomainParticipant, Error as DdsError};
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};

const EXAMPLES: &str = r#"Examples:
  takt pub Square '{"color":"RED","x":10,"y":20,"shapesize":30}' --type ShapeType
  takt pub Square '{"color":"RED"}' --rate 10 --count 100    the type is learned from a reader or writer of Square
  takt pub Square < values.jsonl                             one JSON value a line
  takt pub Square '{"color":"RED"}' --dispose                the instance exists no more

Members that are left out have their defaults. Policies are those that the first reader requests, unless options say
otherwise. It waits for a reader before it writes, and for acknowledgements before it ends."#;

/// How long readers may take to acknowledge what was written last.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// `takt pub`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Pub {
    /// The topic
    topic: String,
    /// The value as JSON [default: values from standard input, one a line]
    value: Option<String>,
    /// A type that takt has: ShapeType, takt::Text [default: learned]
    #[arg(long = "type", value_name = "NAME")]
    type_name: Option<String>,
    /// Samples a second [default: 1 for a value that is repeated, as they come from standard input]
    #[arg(long, value_name = "HZ", value_parser = rate)]
    rate: Option<f64>,
    /// How often to write the value; 0 is until a signal [default: once]
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End the instance instead of writing the value
    #[arg(long)]
    dispose: bool,
    /// Write at once, whether or not anybody reads
    #[arg(long)]
    no_wait: bool,
    /// How long to wait for a reader, and for a type [default: for ever]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    #[command(flatten)]
    policies: PolicyOptions,
    #[command(flatten)]
    domain: Domain,
    /// Print one JSON object about what was done
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
    /// Unknown of a best-effort writer, whose readers do not acknowledge.
    acknowledged: Option<bool>,
}

fn rate(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate),
        _ => Err("a rate is a number of samples a second, more than 0".to_owned()),
    }
}

impl Pub {
    /// Writes all values.
    ///
    /// # Errors
    /// There is no type or no reader in time, a value is none of the type, or the domain cannot be joined.
    pub fn run(&self) -> Result<()> {
        let own = self.type_name.as_deref().map(library::find).transpose()?;
        // What is wrong with the value is told before anybody is waited for.
        if let (Some(type_), Some(value)) = (&own, &self.value) {
            parse(type_, value)?;
        }
        let participant = self.domain.join("takt pub")?;
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        let found = if own.is_some() && self.no_wait {
            Endpoints { writers: Vec::new(), readers: Vec::new() }
        } else {
            find(&participant, &self.topic, deadline)?
        };
        let type_ = match own {
            Some(type_) => type_,
            None => learn(&participant, &self.topic, deadline).map_err(with_hint)?,
        };
        let (mut qos, mut publisher) = writer_for(&found);
        self.policies.apply_to_writer(&mut qos, &mut publisher);
        let publisher = participant.create_publisher(publisher)?;
        let writer = publisher.create_dynamic_datawriter(&self.topic, &type_, qos)?;
        self.await_reader(&participant, &writer, deadline)?;
        let written = match &self.value {
            Some(value) => self.repeat(&participant, &writer, &parse(&type_, value)?)?,
            None => self.write_lines(&participant, &writer, &type_)?,
        };
        self.finish(&participant, &writer, written)
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
            report_refusals(&participant.refusals()?, &mut reported);
            Ok(writer.publication_matched_status()?.current_count > 0)
        })?;
        if matched {
            // The reader learns of the match a moment later than we do.
            spin_until(participant, Some(Instant::now() + crate::domain::STEP), || Ok(false))?;
            return Ok(());
        }
        let there = endpoints(participant, &self.topic)?.readers.len();
        let what = match there {
            0 => format!("nobody reads {}{}", self.topic, hint(participant, &self.topic)?),
            _ => format!("{} of {}, and none matches", count(there, "reader"), self.topic),
        };
        Err(Error::NoAnswer { what })
    }

    fn repeat(&self, participant: &DomainParticipant, writer: &DynamicDataWriter, data: &DynamicData) -> Result<u64> {
        let period = Duration::from_secs_f64(1.0 / self.rate.unwrap_or(1.0));
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
    ) -> Result<u64> {
        let (sender, lines) = std::sync::mpsc::sync_channel(16);
        // Reading blocks, and the participant has to be driven meanwhile. The thread ends with the input or the process.
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut written = 0;
        let mut due = Instant::now();
        loop {
            let mut next = None;
            let result = spin_until(participant, None, || {
                next = match lines.try_recv() {
                    Ok(line) => Some(Some(line)),
                    Err(std::sync::mpsc::TryRecvError::Empty) => None,
                    Err(std::sync::mpsc::TryRecvError::Disconnected) => Some(None),
                };
                Ok(next.is_some())
            });
            match result {
                Err(Error::Stopped) => return Ok(written),
                result => result?,
            };
            let Some(Some(line)) = next else { return Ok(written) };
            let line = line.map_err(|source| Error::Os { op: "read standard input".into(), source })?;
            if line.trim().is_empty() {
                continue;
            }
            let data = parse(type_, &line).map_err(|error| Error::Usage(format!("line {}: {error}", written + 1)))?;
            if let Some(rate) = self.rate {
                spin_until(participant, Some(due), || Ok(false))?;
                due = Instant::now().max(due) + Duration::from_secs_f64(1.0 / rate);
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
                // Readers that are slow hold up a reliable writer.
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
            // A best-effort reader drops samples that its host hands it after the writer's end.
            spin_until(participant, Some(Instant::now() + crate::domain::STEP), || Ok(false))?;
        }
        let acknowledged = match writer.wait_for_acknowledgments(LAST_WORDS) {
            Ok(()) => has_reliable_readers.then_some(true),
            Err(DdsError::Timeout { .. }) => Some(false),
            Err(error) => return Err(error.into()),
        };
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
                None => "; no reliable reader, arrival is not known",
            };
            note!("takt: wrote {samples} of {type_name} to {to} of {}{fate}", self.topic);
        }
        if acknowledged != Some(false) {
            return Ok(());
        }
        Err(Error::NoAnswer { what: format!("some readers of {} have not acknowledged everything", self.topic) })
    }
}

fn parse(type_: &DynamicTypeSupport, text: &str) -> Result<DynamicData> {
    let value = serde_json::from_str(text).map_err(|error| Error::Usage(format!("the value is no JSON: {error}")))?;
    let known = type_.dynamic_type().ok_or_else(|| Error::Usage("the type is not known".to_owned()))?;
    known
        .from_json(&from_serde(value))
        .map_err(|error| Error::Usage(format!("the value is no {}: {error}", type_.type_name())))
}

fn with_hint(error: Error) -> Error {
    match error {
        Error::Dds(DdsError::TypeUnavailable(reason)) => {
            Error::NoType { what: reason.to_string(), hint: "--type NAME uses a type that takt has" }
        }
        error => error,
    }
}
