//! Main loop of the service: discovery of writers, intake, commits, relaying and cleanup.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use takt::dynamic::{DynamicTypeSupport, TypeLearning};
use takt::qos::Durability;
use takt::{DomainParticipant, DomainParticipantBuilder, Guid, Limits, PublicationData, Runtime, StatusMask, WaitSet};

use crate::group::{Group, Key, is_from_service};
use crate::store::{Batch, Committed, Store};
use crate::{Options, Result};

/// Period of checks for new writers and ended topics; also the maximum delay of a stop request.
const CHECK_PERIOD: Duration = Duration::from_millis(100);
/// Timeout of the type lookup of a keyed topic.
const TYPE_TIMEOUT: takt::Duration = takt::Duration::from_secs(1);
/// Maximum number of concurrent type lookups. Further topics wait.
const LEARNING_MAX: usize = 16;
/// Pause between two attempts to write to a full disk.
const DISK_RETRY_PERIOD: Duration = Duration::from_secs(1);
/// Maximum number of notes that are kept until they are taken.
const NOTES_MAX: usize = 256;

/// Statistics of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Topics, by name, type, partition and durability kind.
    pub topics: usize,
    /// Topics that are served to late joiners.
    pub served: usize,
    /// Samples and other changes.
    pub samples: usize,
    /// Bytes of payloads.
    pub bytes: u64,
    /// Changes that arrived again by another path.
    pub repeated: u64,
    /// Topics that are currently full: their writers are not acknowledged.
    pub full: usize,
    /// Topics that have writers and are not stored, since there are too many or their endpoints
    /// were refused.
    pub refused_topics: u64,
    /// Changes that other services relayed in the name of a live writer that has not reached their
    /// sequence number. They are not stored.
    pub unconfirmed: u64,
    /// Stored changes that the serving writer does not have: they exceed its limits, or wait for
    /// room, or wait for a change that does.
    pub unserved: u64,
    /// Writers that are no longer acknowledged, since one of their changes cannot be stored.
    pub blocked_writers: usize,
    /// Committed transactions of the store.
    pub commits: u64,
}

/// Durability service. It works in the thread that calls [`run`](Self::run) or
/// [`step`](Self::step), and in the threads of its two participants. One participant subscribes and
/// one serves. They ignore each other.
#[derive(Debug)]
pub struct Service {
    options: Options,
    receiving: DomainParticipant,
    serving: DomainParticipant,
    store: Option<Store>,
    groups: BTreeMap<Key, Group>,
    refused: BTreeSet<Key>,
    /// Keyed topics whose type lookups are pending, and that have no reader yet.
    learning: BTreeMap<Key, Learning>,
    /// Timeout of the type lookup of a keyed topic.
    type_timeout: takt::Duration,
    wakeup: WaitSet,
    last_check: Option<Instant>,
    /// Changes for the next commit.
    batch: Batch,
    /// Time of the last commit that found the disk full.
    disk_full: Option<Instant>,
    commits: u64,
    next_id: u32,
    notes: Vec<String>,
}

/// Topic whose type is being looked up.
#[derive(Debug)]
struct Learning {
    /// Writer from which the type is requested.
    data: PublicationData,
    type_: TypeLearning,
}

/// Applies the name and limits of the service to a participant builder.
fn complete(builder: DomainParticipantBuilder, options: &Options, name: &str) -> DomainParticipantBuilder {
    let limits = Limits {
        endpoint_memory_bytes: usize::try_from(options.memory_bytes_max).unwrap_or(usize::MAX).saturating_mul(2),
        ..Limits::default()
    };
    builder.name(name).runtime(Runtime::Shared).limits(limits).lease_duration(options.lease_duration)
}

/// Returns a participant builder with the domain, interfaces and peers of the options.
fn builder(options: &Options) -> DomainParticipantBuilder {
    let mut builder = DomainParticipant::builder(options.domain);
    if !options.interfaces.is_empty() {
        builder = builder.interfaces(&options.interfaces);
    }
    if !options.peers.is_empty() {
        builder = builder.peers(&options.peers);
    }
    builder
}

impl Service {
    /// Opens the store and joins the domain. Stored samples are served once discovery of other
    /// services has had time.
    ///
    /// # Errors
    /// [`Error::Store`](crate::Error::Store) if the store is unusable,
    /// [`Error::Dds`](crate::Error::Dds) if the domain cannot be joined.
    pub fn new(options: Options) -> Result<Self> {
        Self::with_participants(builder(&options), builder(&options), options)
    }

    /// Creates a service with prepared participants. Their domain, interfaces and peers apply
    /// instead of those of the options. Name, runtime, limits and lease are those of the service.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_participants(
        serving: DomainParticipantBuilder,
        receiving: DomainParticipantBuilder,
        options: Options,
    ) -> Result<Self> {
        let store = options.store.as_deref().map(Store::open).transpose()?;
        let serving = complete(serving, &options, "takt durability, serving").build()?;
        let receiving = complete(receiving, &options, "takt durability, hearing").build()?;
        receiving.ignore_participant(serving.guid())?;
        // Its messages would never be answered, and it would be reported as blocked by a firewall.
        serving.ignore_participant(receiving.guid())?;
        let mut service = Self {
            options,
            receiving,
            serving,
            store,
            groups: BTreeMap::new(),
            refused: BTreeSet::new(),
            learning: BTreeMap::new(),
            type_timeout: TYPE_TIMEOUT,
            wakeup: WaitSet::new()?,
            last_check: None,
            batch: Batch::default(),
            disk_full: None,
            commits: 0,
            next_id: 0,
            notes: Vec::new(),
        };
        service.restore()?;
        Ok(service)
    }

    /// Returns the domain id.
    #[must_use]
    pub fn domain_id(&self) -> u32 {
        self.serving.domain_id()
    }

    fn restore(&mut self) -> Result<()> {
        let Some(store) = &mut self.store else { return Ok(()) };
        let topics = store.load()?;
        for remark in store.take_remarks() {
            note(&mut self.notes, remark);
        }
        for topic in topics {
            self.next_id = self.next_id.max(topic.id + 1);
            let Some(key) = Key::of(&topic.announcement) else { continue };
            let mut group = Group::new(topic.id, topic.announcement, &self.options);
            let count = topic.changes.len();
            group.restore(topic.changes, &topic.origins);
            note(&mut self.notes, format!("{}: {count} changes restored", group.announcement.topic_name));
            self.groups.insert(key, group);
        }
        Ok(())
    }

    /// Runs the service until `stop` is set.
    ///
    /// # Errors
    /// [`Error::Store`](crate::Error::Store) if writing to the disk fails: nothing more is
    /// acknowledged, and the service ends. A full disk is no error: PERSISTENT topics are full
    /// until it has space.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            self.step()?;
        }
        Ok(())
    }

    /// Waits for work, up to 100 ms, and performs it: takes received changes, commits them in one
    /// transaction, relays and acknowledges them.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn step(&mut self) -> Result<()> {
        self.wakeup.wait_any(CHECK_PERIOD)?;
        if self.last_check.is_none_or(|last| last.elapsed() >= CHECK_PERIOD) {
            self.last_check = Some(Instant::now());
            self.check_topics()?;
        }
        self.learn_types()?;
        self.store_received()?;
        for group in self.groups.values_mut() {
            group.acknowledge_committed()?;
            if group.serve(&self.serving, &self.options)? {
                let text = format!("{}: served, {} changes", group.announcement.topic_name, group.index.len());
                note(&mut self.notes, text);
            }
            if let Some(remark) = group.take_remark() {
                note(&mut self.notes, format!("{}: {remark}", group.announcement.topic_name));
            }
        }
        Ok(())
    }

    /// Takes received changes and commits them.
    fn store_received(&mut self) -> Result<()> {
        let was_stuck: Vec<bool> = self.groups.values().map(Group::is_stuck).collect();
        let on_disk: u64 = self.groups.values().filter(|group| group.is_persistent()).map(|g| g.index.bytes()).sum();
        let mut disk_bytes = self.options.disk_bytes_max.saturating_sub(on_disk);
        for group in self.groups.values_mut() {
            if self.disk_full.is_some() && group.is_persistent() {
                group.wait_for_disk();
                continue;
            }
            group.take()?;
            if let Some(limit) = group.store_waiting(&mut disk_bytes, &mut self.batch)? {
                let topic = &group.announcement.topic_name;
                note(&mut self.notes, format!("{topic}: full ({limit}); its writers are no longer acknowledged"));
            }
        }
        self.commit()?;
        for (group, was_stuck) in self.groups.values().zip(was_stuck) {
            // Changes that wait for room must not wake the loop.
            let Some(reader) = group.reader.as_ref().filter(|_| was_stuck != group.is_stuck()) else { continue };
            match group.is_stuck() {
                true => self.wakeup.detach(reader.as_any().status_condition())?,
                false => self.wakeup.attach(reader.as_any().status_condition())?,
            }
        }
        Ok(())
    }

    /// Commits the batch, which remains for another attempt if the disk is full.
    fn commit(&mut self) -> Result<()> {
        self.groups.values_mut().filter(|group| !group.is_persistent()).for_each(Group::mark_committed);
        if self.disk_full.is_some_and(|since| since.elapsed() < DISK_RETRY_PERIOD) {
            return Ok(());
        }
        if let Some(store) = self.store.as_mut().filter(|_| !self.batch.is_empty()) {
            if let Committed::NoSpace = store.commit(&self.batch)? {
                if self.disk_full.is_none() {
                    let text = format!("{store}: no space left on the disk; PERSISTENT topics are full meanwhile");
                    note(&mut self.notes, text);
                }
                self.disk_full = Some(Instant::now());
                self.groups.values_mut().filter(|group| group.is_persistent()).for_each(Group::wait_for_disk);
                return Ok(());
            }
            self.commits += 1;
            if self.disk_full.take().is_some() {
                note(&mut self.notes, format!("{store}: disk space is available again"));
                self.groups.values_mut().filter(|group| group.is_persistent()).for_each(Group::resume);
            }
        }
        self.batch = Batch::default();
        self.groups.values_mut().for_each(Group::mark_committed);
        Ok(())
    }

    /// Looks for new writers and ended topics.
    fn check_topics(&mut self) -> Result<()> {
        let publications = self.receiving.discovered_publications()?;
        let (mut announced, mut written, mut need_reader) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for data in &publications {
            let Some(key) = Key::of(data) else { continue };
            announced.insert(key.clone());
            if !is_from_service(data) {
                written.insert(key.clone());
            }
            let is_storable = data.qos.durability != Durability::Persistent || self.store.is_some();
            let is_requested = self.learning.contains_key(&key);
            if is_requested {
                need_reader.insert(key.clone());
            }
            let has_reader = is_requested || self.groups.get(&key).is_some_and(|group| group.reader.is_some());
            if is_storable && !has_reader && !self.refused.contains(&key) && self.options.serves(&data.topic_name) {
                need_reader.insert(key.clone());
                self.begin(key, data)?;
            }
        }
        self.refused.retain(|key| announced.contains(key));
        self.learning.retain(|key, _| announced.contains(key));
        let existing: HashSet<Guid> = publications.iter().map(|data| data.guid).collect();
        for (key, group) in &mut self.groups {
            group.is_written = written.contains(key);
            group.needs_reader = need_reader.contains(key) && !self.refused.contains(key);
            group.count_unacknowledged()?;
            let count = group.clean_up(|writer| existing.contains(&writer), &mut self.batch)?;
            if count > 0 {
                let topic = &group.announcement.topic_name;
                note(&mut self.notes, format!("{topic}: {count} instances purged"));
            }
        }
        self.end_idle_topics()
    }

    /// Ends topics that have no writers and no stored changes. Refused topics are then tried again.
    fn end_idle_topics(&mut self) -> Result<()> {
        let idle_time = self.options.lease_duration;
        let over = self.groups.iter_mut().filter_map(|(key, group)| group.is_idle_for(idle_time).then(|| key.clone()));
        for key in over.collect::<Vec<_>>() {
            let Some(group) = self.groups.remove(&key) else { continue };
            if let Some(reader) = group.reader.as_ref().filter(|_| !group.is_stuck()) {
                self.wakeup.detach(reader.as_any().status_condition())?;
            }
            if group.is_persistent() {
                self.batch.ended.push(group.id);
            }
            note(
                &mut self.notes,
                format!("{}: no longer served: it has no writers and no stored changes", group.announcement.topic_name),
            );
            self.refused.clear();
            self.groups.values_mut().for_each(Group::retry_serving);
        }
        Ok(())
    }

    /// Begins with a topic: creates its reader, or requests its type if it is keyed.
    fn begin(&mut self, key: Key, data: &PublicationData) -> Result<()> {
        let topic = &data.topic_name;
        let unborn = self.learning.keys().filter(|key| !self.groups.contains_key(key)).count();
        if !self.groups.contains_key(&key) && self.groups.len() + unborn >= self.options.topics_max {
            note(&mut self.notes, format!("{topic}: refused, topic limit {} is reached", self.options.topics_max));
            self.refused.insert(key);
            return Ok(());
        }
        let has_key = data.guid.entity_id.has_key();
        // The type is not needed without keys, or when key hashes are sent.
        if !has_key || data.type_information.is_none() {
            return self.create_reader(key, data, &DynamicTypeSupport::opaque(&data.type_name, has_key));
        }
        if self.learning.len() >= LEARNING_MAX {
            return Ok(());
        }
        match self.receiving.start_learning_type_of_writer(data, self.type_timeout) {
            Ok(type_) => {
                self.learning.insert(key, Learning { data: data.clone(), type_ });
                Ok(())
            }
            Err(error) => self.create_reader_without_type(key, data, &error),
        }
    }

    /// Creates readers of the topics whose types have arrived or are unavailable. Does not wait.
    fn learn_types(&mut self) -> Result<()> {
        let polled = self.learning.iter_mut().map(|(key, learning)| (key.clone(), learning.type_.poll()));
        for (key, learned) in polled.collect::<Vec<_>>() {
            let learned = learned.transpose();
            let Some((Learning { data, .. }, learned)) =
                learned.and_then(|learned| Some((self.learning.remove(&key)?, learned)))
            else {
                continue;
            };
            match learned {
                Ok(type_) => self.create_reader(key, &data, &type_)?,
                Err(error) => self.create_reader_without_type(key, &data, &error)?,
            }
        }
        Ok(())
    }

    fn create_reader_without_type(&mut self, key: Key, data: &PublicationData, error: &takt::Error) -> Result<()> {
        let topic = &data.topic_name;
        note(&mut self.notes, format!("{topic}: keys are known only by their hashes: {error}"));
        let type_ = DynamicTypeSupport::opaque(&data.type_name, data.guid.entity_id.has_key());
        self.create_reader(key, data, &type_)
    }

    /// Creates the reader of a topic whose type is known or not needed.
    fn create_reader(&mut self, key: Key, data: &PublicationData, type_: &DynamicTypeSupport) -> Result<()> {
        let topic = data.topic_name.clone();
        let is_new = !self.groups.contains_key(&key);
        let id = self.next_id;
        let group = self.groups.entry(key.clone()).or_insert_with(|| Group::new(id, data.clone(), &self.options));
        if let Err(error) = group.create_reader(&self.receiving, type_) {
            note(&mut self.notes, format!("{topic}: refused: {error}"));
            self.refused.insert(key.clone());
            if is_new {
                self.groups.remove(&key);
            }
            return Ok(());
        }
        if let Some(reader) = &group.reader {
            let condition = reader.as_any().status_condition();
            condition.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
            // Changes that wait for room must not wake the loop.
            if !group.is_stuck() {
                self.wakeup.attach(condition)?;
            }
        }
        if is_new {
            self.next_id += 1;
            if group.is_persistent() {
                self.batch.topics.push((id, data.clone()));
            }
        }
        note(&mut self.notes, format!("{topic}: discovered, {}, {}", data.type_name, data.qos.durability));
        Ok(())
    }

    /// Returns the statistics of the service.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let groups = || self.groups.values();
        Totals {
            topics: self.groups.len(),
            served: groups().filter(|group| group.is_served()).count(),
            samples: groups().map(|group| group.index.len()).sum(),
            bytes: groups().map(|group| group.index.bytes()).sum(),
            repeated: groups().map(|group| group.repeated).sum(),
            full: groups().filter(|group| group.is_stuck()).count(),
            refused_topics: self.refused.len() as u64,
            unconfirmed: groups().map(|group| group.unconfirmed).sum(),
            unserved: groups().map(Group::unserved).sum(),
            blocked_writers: groups().map(|group| group.blocked_writers).sum(),
            commits: self.commits,
        }
    }

    /// Takes the notes since the last call, one line each.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

fn note(notes: &mut Vec<String>, text: String) {
    if notes.len() < NOTES_MAX {
        notes.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn participants_of_a_service_ignore_each_other_without_reporting_unreachability() {
        let interfaces = vec!["lo".to_owned()];
        let domain = takt_testkit::domain::domain();
        let options = Options { domain, interfaces, peers: vec!["127.0.0.1".to_owned()], ..Options::default() };
        let mut service = Service::new(options).expect("a service");
        let until = Instant::now() + Duration::from_secs(4);
        while Instant::now() < until {
            service.step().expect("there is nothing to do");
        }
        for participant in [&service.serving, &service.receiving] {
            assert_eq!(participant.diagnostics().silent_participants().expect("open"), []);
            assert_eq!(participant.discovered_participants().expect("open").len(), 0, "no other participant exists");
        }
    }

    #[test]
    fn topic_with_unanswered_type_lookup_does_not_delay_other_topics() {
        use takt::qos::{DataWriterQos, PublisherQos, Reliability, TopicQos};
        use takt_testkit::waiting::until;

        #[derive(takt::DdsType, Clone, Debug, Default)]
        struct Number {
            #[dds(key)]
            key: u32,
        }
        #[derive(takt::DdsType, Clone, Debug, Default)]
        struct Page {
            number: u32,
        }

        fn writer<T: takt::TypeSupport>(participant: &DomainParticipant, topic: &str) -> takt::DataWriter<T> {
            let topic = participant.create_topic(topic, TopicQos::default()).expect("topic");
            let publisher = participant.create_publisher(PublisherQos::default()).expect("publisher");
            let (durability, reliability) = (Durability::Transient, Reliability::RELIABLE);
            let qos = DataWriterQos { durability, reliability, ..DataWriterQos::default() };
            publisher.create_datawriter(&topic, qos).expect("writer")
        }

        let domain = takt_testkit::domain::domain();
        let builder = || DomainParticipant::builder(domain).interfaces(["lo"]).peers(["127.0.0.1"]);
        let options = Options { domain, ..Options::default() };
        let mut service = Service::with_participants(builder(), builder(), options).expect("a service");
        service.type_timeout = takt::Duration::from_secs(20);
        // The participant answers only while it is driven.
        let lease = Duration::from_secs(600);
        let silent = builder().runtime(Runtime::Inline).lease_duration(lease).build().expect("participant");
        let _unanswered = writer::<Number>(&silent, "Numbers");
        until("the topic without an answer", || {
            silent.spin_once(takt::Duration::from_millis(5)).expect("open");
            let publications = service.receiving.discovered_publications().expect("open");
            publications.iter().any(|data| data.topic_name == "Numbers")
        });
        let publisher = builder().build().expect("participant");
        let pages = writer::<Page>(&publisher, "Pages");
        pages.write(&Page { number: 7 }).expect("room");
        until("the other topic", || {
            service.step().expect("nothing is stored");
            pages.durable_upto().expect("open").is_some_and(|sn| sn.0 == 1)
        });
        assert_eq!(service.learning.len(), 1, "{:?}", service.take_notes());
        until("the topic without an answer", || {
            service.step().expect("nothing is stored");
            service.groups.len() == 2
        });
        let notes = service.take_notes();
        assert!(notes.iter().any(|note| note.starts_with("Numbers: keys are known only by their hashes")), "{notes:?}");
    }
}
