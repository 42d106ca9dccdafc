//! Receive loop of `takt echo 'PATTERN'`: the samples of all topics whose names match.

use super::learning::{Endpoints, endpoints, learn};
use super::output::{Format, Printer};
use super::policies::reader_for;
use super::receive::Limits;
use crate::domain::STEP;
use crate::output::note;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use takt::DomainParticipant;
use takt::dynamic::{DynamicDataReader, DynamicTypeSupport};
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};
use takt_wire::compat::fnmatch;

/// Maximum number of topics at once.
const TOPICS_MAX: usize = 256;
/// Time in which the type of a topic must be learned. Otherwise its samples are printed as bytes.
const TYPE_TIMEOUT: Duration = Duration::from_secs(3);

/// Reports whether a topic argument is a pattern.
pub fn is_pattern(topic: &str) -> bool {
    topic.contains(['*', '?'])
}

/// Topics that are read.
struct Topics<'a> {
    participant: &'a DomainParticipant,
    pattern: &'a str,
    format: &'a Format,
    /// Readers by topic; `None` for topics that cannot be read.
    readers: BTreeMap<String, Option<(Printer, DynamicDataReader)>>,
}

/// Prints the samples of all matching topics until a limit is reached or a signal arrives. Topics
/// that appear later are read, too.
///
/// # Errors
/// [`Error::NoAnswer`] if no sample, or fewer than requested, arrived in time.
pub fn receive_all(participant: &DomainParticipant, pattern: &str, limits: &Limits, format: &Format) -> Result<()> {
    note!("takt: reading topics that match {pattern}");
    let mut topics = Topics { participant, pattern, format, readers: BTreeMap::new() };
    let mut printed = 0;
    let mut deadline = limits.deadline();
    loop {
        topics.open()?;
        let before = printed;
        for (printer, reader) in topics.readers.values().flatten() {
            for sample in reader.take(64)? {
                printer.print(&sample)?;
                printed += 1;
                if limits.count.is_some_and(|count| printed >= count) {
                    return Ok(());
                }
            }
        }
        if printed > before {
            deadline = limits.deadline();
        }
        let is_done = printed > 0 && limits.count.is_none();
        if stopped() {
            return if is_done { Ok(()) } else { Err(Error::Stopped) };
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            let what = format!("{printed} samples of topics that match {pattern}, none for {} s", limits.seconds());
            return if is_done { Ok(()) } else { Err(Error::NoAnswer { what }) };
        }
        participant.spin_once(STEP)?;
    }
}

impl Topics<'_> {
    /// Creates readers of topics that have appeared.
    fn open(&mut self) -> Result<()> {
        for writer in self.participant.discovered_publications()? {
            let topic = writer.topic_name;
            if !fnmatch(self.pattern, &topic) || self.readers.contains_key(&topic) || self.readers.len() >= TOPICS_MAX {
                continue;
            }
            let found = endpoints(self.participant, &topic)?;
            let reader = self.reader(&topic, &found);
            let reader = reader.inspect_err(|error| note!("takt: warning: topic {topic} is not read: {error}"));
            self.readers.insert(topic, reader.ok());
        }
        Ok(())
    }

    fn reader(&self, topic: &str, found: &Endpoints) -> Result<(Printer, DynamicDataReader)> {
        let Some(writer) = found.writers.first() else {
            return Err(Error::NoAnswer { what: "its writer has ended".to_owned() });
        };
        let type_ = match learn(self.participant, topic, Some(Instant::now() + TYPE_TIMEOUT)) {
            Err(Error::Dds(takt::Error::TypeUnavailable(reason))) => {
                note!("takt: warning: {topic} is printed as bytes: {reason}");
                DynamicTypeSupport::opaque(&writer.type_name, writer.guid.entity_id.has_key())
            }
            result => result?,
        };
        let (qos, subscriber) = reader_for(found);
        let subscriber = self.participant.create_subscriber(subscriber)?;
        let reader = subscriber.create_dynamic_datareader(topic, &type_, qos)?;
        note!("takt: reading {topic}, {}", type_.type_name());
        let printer = Printer { topic: topic.to_owned(), type_, format: self.format.clone(), names_topic: true };
        Ok((printer, reader))
    }
}
