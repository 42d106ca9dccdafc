//! Discovery of a topic and of its type, interruptible by a signal.

use crate::domain::STEP;
use crate::output::note;
use std::time::{Duration, Instant};
use takt::dynamic::{DynamicTypeSupport, TypeUnavailable};
use takt::{DomainParticipant, PublicationData, SubscriptionData};
use takt_bench::signal::stopped;
use takt_bench::{Error, Result};
use takt_config::similar;

use crate::finding::count;

/// Time to wait for further endpoints after the first one, since their policies count too.
const ENDPOINT_SETTLE_TIME: Duration = Duration::from_millis(300);
/// Length of one attempt to learn a type. It suffices to query a server in every known way.
const ATTEMPT: Duration = Duration::from_millis(1_500);
/// Time that a server has to answer if the caller sets no limit.
const TYPE_TIMEOUT: Duration = Duration::from_secs(10);

/// Writers and readers of a topic.
pub struct Endpoints {
    pub writers: Vec<PublicationData>,
    pub readers: Vec<SubscriptionData>,
}

impl Endpoints {
    fn is_empty(&self) -> bool {
        self.writers.is_empty() && self.readers.is_empty()
    }
}

/// Returns the endpoints of the topic that are known now.
pub fn endpoints(participant: &DomainParticipant, topic: &str) -> Result<Endpoints> {
    let mut writers = participant.discovered_publications()?;
    let mut readers = participant.discovered_subscriptions()?;
    writers.retain(|data| data.topic_name == topic);
    readers.retain(|data| data.topic_name == topic);
    Ok(Endpoints { writers, readers })
}

/// Returns a hint at a topic of a similar name, for a topic without endpoints: `; did you mean
/// Temperature (1 writer, 0 readers)?`.
pub fn hint(participant: &DomainParticipant, topic: &str) -> Result<String> {
    let publications = participant.discovered_publications()?;
    let subscriptions = participant.discovered_subscriptions()?;
    let of_writers = publications.iter().map(|data| data.topic_name.as_str());
    let names = of_writers.chain(subscriptions.iter().map(|data| data.topic_name.as_str()));
    let Some(found) = similar(topic, names.filter(|name| *name != topic)) else { return Ok(String::new()) };
    let writers = publications.iter().filter(|data| data.topic_name == found).count();
    let readers = subscriptions.iter().filter(|data| data.topic_name == found).count();
    Ok(format!("; did you mean {found} ({}, {})?", count(writers, "writer"), count(readers, "reader")))
}

/// Drives the participant until `done`, a signal or the deadline. Returns whether `done` returned
/// `true`.
pub fn spin_until(
    participant: &DomainParticipant,
    deadline: Option<Instant>,
    mut done: impl FnMut() -> Result<bool>,
) -> Result<bool> {
    loop {
        if done()? {
            return Ok(true);
        }
        if stopped() {
            return Err(Error::Stopped);
        }
        let left = deadline.map_or(STEP, |deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Ok(false);
        }
        participant.spin_once(left.min(STEP))?;
    }
}

/// Waits until the topic has an endpoint, and shortly for further ones. Returns no endpoint after
/// the deadline.
pub fn find(participant: &DomainParticipant, topic: &str, deadline: Option<Instant>) -> Result<Endpoints> {
    note!("takt: looking for topic {topic}");
    find_until(participant, topic, deadline, |found| !found.is_empty())
}

/// Like [`find`], but waits for a writer. Returns no writer after the deadline.
pub fn find_writer(participant: &DomainParticipant, topic: &str, deadline: Option<Instant>) -> Result<Endpoints> {
    let mut found = find(participant, topic, deadline)?;
    // Endpoints of processes that end may disappear shortly after their discovery.
    while found.writers.is_empty() && deadline.is_none_or(|deadline| Instant::now() < deadline) {
        if !found.readers.is_empty() {
            note!("takt: topic {topic} has {}, waiting for a writer", count(found.readers.len(), "reader"));
        }
        found = find_until(participant, topic, deadline, |found| !found.writers.is_empty())?;
    }
    Ok(found)
}

fn find_until(
    participant: &DomainParticipant,
    topic: &str,
    deadline: Option<Instant>,
    is_enough: impl Fn(&Endpoints) -> bool,
) -> Result<Endpoints> {
    if spin_until(participant, deadline, || Ok(is_enough(&endpoints(participant, topic)?)))? {
        spin_until(participant, Some(Instant::now() + ENDPOINT_SETTLE_TIME), || Ok(false))?;
    }
    endpoints(participant, topic)
}

/// Learns the type of a topic that has endpoints.
pub fn learn(participant: &DomainParticipant, topic: &str, deadline: Option<Instant>) -> Result<DynamicTypeSupport> {
    let deadline = deadline.unwrap_or_else(|| Instant::now() + TYPE_TIMEOUT);
    loop {
        if stopped() {
            return Err(Error::Stopped);
        }
        match participant.learn_type(topic, ATTEMPT) {
            Err(takt::Error::TypeUnavailable(TypeUnavailable::NoAnswer { .. })) if Instant::now() < deadline => {}
            result => return Ok(result?),
        }
    }
}
