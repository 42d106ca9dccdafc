//! Diagnostic records ([`crate::log`]) of a participant's events: refused matches, silent
//! endpoints, lost samples, and configured peers and servers that do not answer.
//!
//! Each pair and each participant is recorded once. Lost samples of a reader are recorded at most
//! once in [`LOST_PERIOD`], with their total number. Bounds: [`RECORDED_MAX`] pairs and
//! participants are remembered; further ones are not recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use takt_core::security::SecuritySeverity;
use takt_core::{Event, Instant, Participant, ReaderHandle};
use takt_transport::Warning;
use takt_wire::{Guid, Locator};

use crate::log::{self, Level};
use crate::security::log_topic::{LOG_TOPIC_NAME, LogTopic};

/// Maximum number of recorded pairs and participants that are remembered.
const RECORDED_MAX: usize = 1024;
/// Minimum time between two records of lost samples of one reader.
const LOST_PERIOD: Duration = Duration::from_secs(10);
/// Time within which a configured peer or server must answer to avoid a warning.
pub(crate) const ANSWER_TIME: Duration = Duration::from_secs(3);

/// Peer or discovery server from the configuration.
#[derive(Clone, Debug)]
pub(crate) struct ConfiguredPeer {
    pub(crate) text: String,
    pub(crate) locators: Vec<Locator>,
    pub(crate) is_server: bool,
}

/// Diagnostic state of one participant.
#[derive(Default)]
pub(crate) struct Diagnosis {
    /// Name of the participant in records.
    label: String,
    refusals: u64,
    recorded: BTreeSet<(Guid, Guid)>,
    /// Time of the last record of lost samples, by reader index.
    lost: BTreeMap<usize, Instant>,
    /// Builtin logging topic, to which the security log is written as well.
    pub(crate) log_topic: Option<LogTopic>,
    pub(crate) configured: Vec<ConfiguredPeer>,
    /// Time at which unanswered peers are recorded; `None` once that is done.
    check_at: Option<Instant>,
}

impl Diagnosis {
    pub(crate) fn new(label: String, named: Vec<ConfiguredPeer>, now: Instant) -> Self {
        let due = (!named.is_empty()).then(|| now.after(ANSWER_TIME));
        Self { label, configured: named, check_at: due, ..Self::default() }
    }

    fn record(&self, level: Level, text: &str) {
        log::record(level, format!("{}: {text}", self.label));
    }

    /// Reports whether this is the first record of a pair. A participant is represented by a pair
    /// with itself.
    fn is_first(&mut self, pair: (Guid, Guid)) -> bool {
        self.recorded.len() < RECORDED_MAX && self.recorded.insert(pair)
    }

    /// Reports whether an event may have to be recorded. Does not allocate.
    pub(crate) fn wants(&self, now: Instant, event: &Event) -> bool {
        match event {
            Event::SampleLost(reader) => log::is_on(Level::Warn) && self.is_loss_due(now, *reader),
            Event::PublicationMatched(_) | Event::SubscriptionMatched(_) => log::is_on(Level::Debug),
            Event::ParticipantDiscovered(_) | Event::ParticipantLost(_) => log::is_on(Level::Info),
            Event::SecurityLogged if self.log_topic.is_some() => true,
            _ => log::is_on(Level::Warn),
        }
    }

    fn is_loss_due(&self, now: Instant, reader: ReaderHandle) -> bool {
        self.lost.get(&reader.index()).is_none_or(|last| now.since(*last) >= LOST_PERIOD)
    }

    /// Records an event. `topic` is the topic of the event's endpoint.
    #[cold]
    pub(crate) fn handle_event(&mut self, core: &mut Participant, now: Instant, event: Event, topic: Option<&str>) {
        match event {
            Event::PairsRefused => self.handle_refusals(core),
            Event::PairsCautioned if self.recorded.len() < RECORDED_MAX => {
                let cautions: Vec<_> = core.cautions().collect();
                for caution in cautions {
                    if self.is_first((caution.writer(), caution.reader())) {
                        self.record(Level::Warn, &caution.to_string());
                    }
                }
            }
            Event::ParticipantRefused(guid) => {
                let refused = core.refused_participants().find(|(refused, _)| *refused == guid);
                if let Some((_, reason)) = refused
                    && self.is_first((guid, guid))
                {
                    let label = core.participant_data(guid).map_or_else(String::new, |data| data.label());
                    self.record(Level::Warn, &format!("{label} is refused by security: {reason}"));
                }
            }
            Event::SecurityLogged => self.handle_security_log(core, now),
            Event::ParticipantSilent(guid) => {
                let silent = core.silent_participants().find(|silent| silent.guid == guid);
                if let Some(silent) = silent
                    && self.is_first((guid, guid))
                {
                    self.record(Level::Warn, &silent.to_string());
                }
            }
            Event::ReaderSilent(writer) => {
                for reader in core.silent_readers(writer).unwrap_or_default() {
                    if let Ok(own) = core.writer_guid(writer)
                        && self.is_first((own, reader))
                    {
                        let (topic, text) = (topic.unwrap_or_default(), silent_reader(core, reader));
                        self.record(Level::Warn, &format!("topic '{topic}': {text}"));
                    }
                }
            }
            Event::PathNarrowed(_) => {
                let topic = topic.unwrap_or_default();
                let what = "long datagrams do not reach a reader; the writer sends only short ones from now on";
                self.record(
                    Level::Warn,
                    &format!("topic '{topic}': {what}: configure one MTU on all interfaces of the network"),
                );
            }
            Event::SampleLost(reader) => self.handle_loss(core, now, reader, topic),
            Event::ParticipantDiscovered(guid) => {
                let label = core.participant_data(guid).map_or_else(|| guid.to_string(), |data| data.label());
                self.record(Level::Info, &format!("{label} has joined"));
            }
            Event::ParticipantLost(guid) => self.record(Level::Info, &format!("participant {guid} has left")),
            Event::PublicationMatched(writer) => {
                let count = core.publication_match_count(writer).unwrap_or_default();
                self.record(Level::Debug, &format!("writer of {} matches {count} readers", topic.unwrap_or_default()));
            }
            Event::SubscriptionMatched(reader) => {
                let count = core.subscription_match_count(reader).unwrap_or_default();
                self.record(Level::Debug, &format!("reader of {} matches {count} writers", topic.unwrap_or_default()));
            }
            _ => {}
        }
    }

    fn handle_security_log(&mut self, core: &mut Participant, now: Instant) {
        while let Some(entry) = core.poll_security_log() {
            let level = match entry.severity {
                SecuritySeverity::Error | SecuritySeverity::Warning => Level::Warn,
                SecuritySeverity::Notice => Level::Info,
            };
            self.record(level, &format!("security: {}", entry.text));
            if let Some(Err(error)) = self.log_topic.as_mut().map(|topic| topic.publish(core, now, &entry)) {
                self.record(Level::Warn, &format!("security: topic {LOG_TOPIC_NAME}: {error}"));
            }
        }
    }

    fn handle_refusals(&mut self, core: &Participant) {
        let new = core.refusals_total() - std::mem::replace(&mut self.refusals, core.refusals_total());
        let known = core.refusals().count();
        let skipped = known.saturating_sub(usize::try_from(new).unwrap_or(usize::MAX));
        for refusal in core.refusals().skip(skipped) {
            if self.is_first((refusal.writer(), refusal.reader())) {
                self.record(Level::Warn, &refusal.to_string());
            }
        }
    }

    fn handle_loss(&mut self, core: &mut Participant, now: Instant, reader: ReaderHandle, topic: Option<&str>) {
        let (Some(topic), Ok(total)) = (topic, core.samples_lost_total(reader)) else { return };
        self.lost.insert(reader.index(), now);
        self.record(Level::Warn, &format!("a reader of {topic} has lost samples: {total} so far"));
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) must be called.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.check_at
    }

    /// Records the configured peers and servers that have not answered.
    #[cold]
    pub(crate) fn handle_timeout(&mut self, core: &Participant) {
        self.check_at = None;
        for warning in self.unanswered(core) {
            self.record(Level::Warn, &warning.to_string());
        }
    }

    /// Returns a warning for each configured peer or server from which nothing was received.
    pub(crate) fn unanswered(&self, core: &Participant) -> Vec<Warning> {
        let silent =
            self.configured.iter().filter(|named| !named.locators.iter().any(|at| core.knows_participant_at(at)));
        silent.map(unanswered).collect()
    }
}

/// Describes a matched reader that does not answer.
fn silent_reader(core: &Participant, reader: Guid) -> String {
    let label = core.participant_data(reader).map_or_else(|| "this participant".to_owned(), |data| data.label());
    format!(
        "matched reliable reader {reader} of {label} does not answer heartbeats: its participant may have refused the match or \
         ignore this participant, or a firewall may drop the datagrams to it; the writer does not wait for it"
    )
}

fn unanswered(named: &ConfiguredPeer) -> Warning {
    let role = if named.is_server { "discovery server" } else { "peer" };
    Warning {
        what: format!("{role} {} does not answer", named.text),
        remedy: "check that it runs in this domain and that no firewall or missing route blocks UDP".into(),
    }
}
