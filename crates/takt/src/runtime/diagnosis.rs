//! What of a participant's events is recorded for people ([`crate::log`]): refused pairs, participants that do not answer, lost
//! samples; and which named peers and servers have not answered.
//!
//! Each pair and each participant is recorded once, lost samples of a reader at most once in [`LOST_PERIOD`], with their number so
//! far. Bounds: [`TOLD_MAX`] pairs and participants are remembered, and nothing is recorded of further ones.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use takt_core::security::SecuritySeverity;
use takt_core::{Event, Instant, Participant, ReaderHandle};
use takt_transport::Warning;
use takt_wire::{Guid, Locator};

use crate::log::{self, Level};
use crate::security::log_topic::{LOG_TOPIC_NAME, LogTopic};

/// Pairs and participants of which it is remembered that they were recorded.
const TOLD_MAX: usize = 1024;
/// Between two records of samples that one reader has lost.
const LOST_PERIOD: Duration = Duration::from_secs(10);
/// A peer or server that was named answers within this time, if it is there.
pub(crate) const ANSWER_TIME: Duration = Duration::from_secs(3);

/// A peer or a discovery server that the user named.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) text: String,
    pub(crate) locators: Vec<Locator>,
    pub(crate) is_server: bool,
}

/// What was recorded of one participant.
#[derive(Default)]
pub(crate) struct Diagnosis {
    /// The participant for people.
    label: String,
    refusals: u64,
    told: BTreeSet<(Guid, Guid)>,
    /// Of readers, by index: when lost samples were recorded.
    lost: BTreeMap<usize, Instant>,
    /// Where the log of security is written to as well.
    pub(crate) log_topic: Option<LogTopic>,
    pub(crate) named: Vec<Named>,
    /// When those are looked for; `None` once they were.
    due: Option<Instant>,
}

impl Diagnosis {
    pub(crate) fn new(label: String, named: Vec<Named>, now: Instant) -> Self {
        let due = (!named.is_empty()).then(|| now.after(ANSWER_TIME));
        Self { label, named, due, ..Self::default() }
    }

    fn record(&self, level: Level, text: &str) {
        log::record(level, format!("{}: {text}", self.label));
    }

    /// Whether this is the first record of a pair, or of a participant, which is a pair with itself.
    fn is_first(&mut self, pair: (Guid, Guid)) -> bool {
        self.told.len() < TOLD_MAX && self.told.insert(pair)
    }

    /// Whether there may be something to record of an event. Does not allocate.
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

    /// Records what an event says. `topic` is that of the endpoint of the event.
    #[cold]
    pub(crate) fn handle_event(&mut self, core: &mut Participant, now: Instant, event: Event, topic: Option<&str>) {
        match event {
            Event::PairsRefused => self.handle_refusals(core),
            Event::PairsCautioned if self.told.len() < TOLD_MAX => {
                let cautions: Vec<_> = core.cautions().collect();
                for caution in cautions {
                    if self.is_first((caution.writer(), caution.reader())) {
                        self.record(Level::Warn, &caution.to_string());
                    }
                }
            }
            Event::ParticipantRefused(guid) => {
                let refused = core.refused_participants().find(|(refused, _)| *refused == guid);
                if let Some((_, why)) = refused
                    && self.is_first((guid, guid))
                {
                    let label = core.participant_data(guid).map_or_else(String::new, |data| data.label());
                    self.record(Level::Warn, &format!("{label} may not take part: {why}"));
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
                let what = "long datagrams do not arrive at a reader that answers short ones, so the writer sends short ones from now on";
                self.record(
                    Level::Warn,
                    &format!("topic '{topic}': {what}: see to one MTU on all interfaces of the network"),
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
                self.record(Level::Debug, &format!("writer of {}: {count} readers", topic.unwrap_or_default()));
            }
            Event::SubscriptionMatched(reader) => {
                let count = core.subscription_match_count(reader).unwrap_or_default();
                self.record(Level::Debug, &format!("reader of {}: {count} writers", topic.unwrap_or_default()));
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

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Records which of the named peers and servers have not answered.
    #[cold]
    pub(crate) fn handle_timeout(&mut self, core: &Participant) {
        self.due = None;
        for warning in self.unanswered(core) {
            self.record(Level::Warn, &warning.to_string());
        }
    }

    /// The named peers and servers of which nothing was heard.
    pub(crate) fn unanswered(&self, core: &Participant) -> Vec<Warning> {
        let silent = self.named.iter().filter(|named| !named.locators.iter().any(|at| core.knows_participant_at(at)));
        silent.map(unanswered).collect()
    }
}

/// A matched reader that answers nothing, for people.
fn silent_reader(core: &Participant, reader: Guid) -> String {
    let label = core.participant_data(reader).map_or_else(|| "this participant".to_owned(), |data| data.label());
    format!(
        "reliable reader {reader} of {label} is matched and answers no heartbeat: its side may have refused the match or ignore this \
         participant, or a firewall drops what is sent to it; the writer does not wait for it"
    )
}

fn unanswered(named: &Named) -> Warning {
    let role = if named.is_server { "discovery server" } else { "peer" };
    Warning {
        what: format!("{role} {} does not answer", named.text),
        remedy: "see whether it runs in this domain, and whether a firewall or a missing route is in between".into(),
    }
}
