//! The loop: who writes, what has come, what is safe, what is over.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use takt::dynamic::{DynamicTypeSupport, TypeLearning};
use takt::qos::Durability;
use takt::{DomainParticipant, DomainParticipantBuilder, Guid, Limits, PublicationData, Runtime, StatusMask, WaitSet};

use crate::group::{Group, Key, is_of_a_service};
use crate::store::{Batch, Committed, Store};
use crate::{Options, Result};

/// Between two looks at who writes and what is over; also how long a wish to stop may go unnoticed.
const LOOK_PERIOD: Duration = Duration::from_millis(100);
/// How long to ask for the type of a topic with keys.
const TYPE_PATIENCE: takt::Duration = takt::Duration::from_secs(1);
/// Types that are asked for at a time. The topics that follow wait for their turn.
const LEARNING_MAX: usize = 16;
/// Between two attempts to write to a disk that is full.
const DISK_PATIENCE: Duration = Duration::from_secs(1);
/// Notes that are kept until somebody reads them.
const NOTES_MAX: usize = 256;

/// What a service has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Topics, by name, type, partition and kind of durability.
    pub topics: usize,
    /// Those of them that are served to late joiners.
    pub served: usize,
    /// Samples and other changes.
    pub samples: usize,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Changes that came again, by another way.
    pub repeated: u64,
    /// Topics that are full now: their writers are not acknowledged.
    pub full: usize,
    /// Topics that have writers and are not kept since there are too many, or their endpoints were refused.
    pub refused_topics: u64,
    /// Changes that other services passed on in the name of a living writer that has not come that far. They are not kept.
    pub doubted: u64,
    /// Changes that are kept, and that the writer which serves the topic does not have: they are beyond its limits, or wait for room, or
    /// for one that does.
    pub unserved: u64,
    /// Writers that are not acknowledged any more, since a change of theirs cannot be kept.
    pub held_back: usize,
    /// Transactions of the store.
    pub commits: u64,
}

/// A durability service. It works in the thread that calls [`run`](Self::run) or [`step`](Self::step), besides those of its
/// two participants: one that hears, and one that serves. They ignore each other.
#[derive(Debug)]
pub struct Service {
    options: Options,
    hearing: DomainParticipant,
    serving: DomainParticipant,
    store: Option<Store>,
    groups: BTreeMap<Key, Group>,
    refused: BTreeSet<Key>,
    /// Topics with keys whose types have been asked for, and that are not heard yet.
    learning: BTreeMap<Key, Learning>,
    /// How long to ask for the type of a topic with keys.
    type_patience: takt::Duration,
    wakeup: WaitSet,
    looked: Option<Instant>,
    /// What the next commit writes.
    batch: Batch,
    /// When the last commit found no space on the disk.
    disk_full: Option<Instant>,
    commits: u64,
    next_id: u32,
    notes: Vec<String>,
}

/// A topic whose type is being learned.
#[derive(Debug)]
struct Learning {
    /// The writer that was asked for it.
    data: PublicationData,
    type_: TypeLearning,
}

/// A participant of the service. Its limits are those of the options.
fn complete(builder: DomainParticipantBuilder, options: &Options, name: &str) -> DomainParticipantBuilder {
    let limits = Limits {
        endpoint_memory_bytes: usize::try_from(options.memory_bytes_max).unwrap_or(usize::MAX).saturating_mul(2),
        ..Limits::default()
    };
    builder.name(name).runtime(Runtime::Shared).limits(limits).lease_duration(options.lease_duration)
}

/// A participant of the domain, interfaces and peers of the options.
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
    /// Opens the store and joins the domain. What the store has is served when other services have been looked for.
    ///
    /// # Errors
    /// [`Error::Store`](crate::Error::Store) if there is something wrong with the store, [`Error::Dds`](crate::Error::Dds) if
    /// the domain cannot be joined.
    pub fn new(options: Options) -> Result<Self> {
        Self::on(builder(&options), builder(&options), options)
    }

    /// The same with prepared participants: their domain, interfaces and peers count, not those of the options. Name, runtime,
    /// limits and lease are the service's own.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn on(serving: DomainParticipantBuilder, hearing: DomainParticipantBuilder, options: Options) -> Result<Self> {
        let store = options.store.as_deref().map(Store::open).transpose()?;
        let serving = complete(serving, &options, "takt durability, serving").build()?;
        let hearing = complete(hearing, &options, "takt durability, hearing").build()?;
        hearing.ignore_participant(serving.guid())?;
        // It would never be answered, and report a firewall.
        serving.ignore_participant(hearing.guid())?;
        let mut service = Self {
            options,
            hearing,
            serving,
            store,
            groups: BTreeMap::new(),
            refused: BTreeSet::new(),
            learning: BTreeMap::new(),
            type_patience: TYPE_PATIENCE,
            wakeup: WaitSet::new()?,
            looked: None,
            batch: Batch::default(),
            disk_full: None,
            commits: 0,
            next_id: 0,
            notes: Vec::new(),
        };
        service.restore()?;
        Ok(service)
    }

    /// The domain that is served.
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

    /// Works until `stop` is set.
    ///
    /// # Errors
    /// [`Error::Store`](crate::Error::Store) if the disk refuses: then nothing more is acknowledged, and the service is over. A
    /// disk that is full is no error: PERSISTENT topics are full until it has room.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            self.step()?;
        }
        Ok(())
    }

    /// Waits for something to do, up to 100 ms, and does it: takes what has come, makes it safe in one transaction, passes it
    /// on and acknowledges it.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn step(&mut self) -> Result<()> {
        self.wakeup.wait_any(LOOK_PERIOD)?;
        if self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_PERIOD) {
            self.looked = Some(Instant::now());
            self.look()?;
        }
        self.learn_types()?;
        self.keep()?;
        for group in self.groups.values_mut() {
            group.settle()?;
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

    /// Takes what has come and makes it safe.
    fn keep(&mut self) -> Result<()> {
        let was_stuck: Vec<bool> = self.groups.values().map(Group::is_stuck).collect();
        let on_disk: u64 = self.groups.values().filter(|group| group.is_persistent()).map(|g| g.index.bytes()).sum();
        let mut disk_bytes = self.options.disk_bytes_max.saturating_sub(on_disk);
        for group in self.groups.values_mut() {
            if self.disk_full.is_some() && group.is_persistent() {
                group.wait_for_disk();
                continue;
            }
            group.take()?;
            if let Some(limit) = group.keep(&mut disk_bytes, &mut self.batch)? {
                let topic = &group.announcement.topic_name;
                note(&mut self.notes, format!("{topic}: full ({limit}); its writers are not acknowledged any more"));
            }
        }
        self.commit()?;
        for (group, was_stuck) in self.groups.values().zip(was_stuck) {
            // What waits for room must not wake us.
            let Some(reader) = group.reader.as_ref().filter(|_| was_stuck != group.is_stuck()) else { continue };
            match group.is_stuck() {
                true => self.wakeup.detach(reader.as_any().status_condition())?,
                false => self.wakeup.attach(reader.as_any().status_condition())?,
            }
        }
        Ok(())
    }

    /// Writes the batch, which stays for another attempt if the disk is full.
    fn commit(&mut self) -> Result<()> {
        self.groups.values_mut().filter(|group| !group.is_persistent()).for_each(Group::mark_committed);
        if self.disk_full.is_some_and(|since| since.elapsed() < DISK_PATIENCE) {
            return Ok(());
        }
        if let Some(store) = self.store.as_mut().filter(|_| !self.batch.is_empty()) {
            if let Committed::NoSpace = store.commit(&self.batch)? {
                if self.disk_full.is_none() {
                    let text = format!("{store}: no space left on the disk; PERSISTENT topics are full until there is");
                    note(&mut self.notes, text);
                }
                self.disk_full = Some(Instant::now());
                self.groups.values_mut().filter(|group| group.is_persistent()).for_each(Group::wait_for_disk);
                return Ok(());
            }
            self.commits += 1;
            if self.disk_full.take().is_some() {
                note(&mut self.notes, format!("{store}: there is space on the disk again"));
                self.groups.values_mut().filter(|group| group.is_persistent()).for_each(Group::go_on);
            }
        }
        self.batch = Batch::default();
        self.groups.values_mut().for_each(Group::mark_committed);
        Ok(())
    }

    /// Who writes, and what is over.
    fn look(&mut self) -> Result<()> {
        let publications = self.hearing.discovered_publications()?;
        let (mut announced, mut written, mut to_hear) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for data in &publications {
            let Some(key) = Key::of(data) else { continue };
            announced.insert(key.clone());
            if !is_of_a_service(data) {
                written.insert(key.clone());
            }
            let is_kept = data.qos.durability != Durability::Persistent || self.store.is_some();
            let is_asked = self.learning.contains_key(&key);
            if is_asked {
                to_hear.insert(key.clone());
            }
            let is_heard = is_asked || self.groups.get(&key).is_some_and(|group| group.reader.is_some());
            if is_kept && !is_heard && !self.refused.contains(&key) && self.options.serves(&data.topic_name) {
                to_hear.insert(key.clone());
                self.begin(key, data)?;
            }
        }
        self.refused.retain(|key| announced.contains(key));
        self.learning.retain(|key, _| announced.contains(key));
        let living: HashSet<Guid> = publications.iter().map(|data| data.guid).collect();
        for (key, group) in &mut self.groups {
            group.is_written = written.contains(key);
            group.is_to_be_heard = to_hear.contains(key) && !self.refused.contains(key);
            group.look_for_unkept()?;
            let count = group.clean_up(|writer| living.contains(&writer), &mut self.batch)?;
            if count > 0 {
                let topic = &group.announcement.topic_name;
                note(&mut self.notes, format!("{topic}: {count} instances are over"));
            }
        }
        self.end_idle_topics()
    }

    /// Ends topics that have no writers and of which nothing is kept. Topics that were refused are tried again then.
    fn end_idle_topics(&mut self) -> Result<()> {
        let patience = self.options.lease_duration;
        let over = self.groups.iter_mut().filter_map(|(key, group)| group.is_over(patience).then(|| key.clone()));
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
                format!("{}: ended, it has no writers and nothing is kept", group.announcement.topic_name),
            );
            self.refused.clear();
            self.groups.values_mut().for_each(Group::try_to_serve_again);
        }
        Ok(())
    }

    /// Begins to hear a topic, or asks for its type if it has keys.
    fn begin(&mut self, key: Key, data: &PublicationData) -> Result<()> {
        let topic = &data.topic_name;
        let unborn = self.learning.keys().filter(|key| !self.groups.contains_key(key)).count();
        if !self.groups.contains_key(&key) && self.groups.len() + unborn >= self.options.topics_max {
            note(&mut self.notes, format!("{topic}: refused, there are {} topics", self.options.topics_max));
            self.refused.insert(key);
            return Ok(());
        }
        let has_key = data.guid.entity_id.has_key();
        // Without keys, or with their hashes on the wire, the type is of no interest.
        if !has_key || data.type_information.is_none() {
            return self.hear(key, data, &DynamicTypeSupport::opaque(&data.type_name, has_key));
        }
        if self.learning.len() >= LEARNING_MAX {
            return Ok(());
        }
        match self.hearing.begin_to_learn_type_of_writer(data, self.type_patience) {
            Ok(type_) => {
                self.learning.insert(key, Learning { data: data.clone(), type_ });
                Ok(())
            }
            Err(error) => self.hear_without_type(key, data, &error),
        }
    }

    /// Hears the topics whose types have come, and those whose types are not to be had. Does not wait.
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
                Ok(type_) => self.hear(key, &data, &type_)?,
                Err(error) => self.hear_without_type(key, &data, &error)?,
            }
        }
        Ok(())
    }

    fn hear_without_type(&mut self, key: Key, data: &PublicationData, error: &takt::Error) -> Result<()> {
        let topic = &data.topic_name;
        note(&mut self.notes, format!("{topic}: keys are known by their hashes alone: {error}"));
        let type_ = DynamicTypeSupport::opaque(&data.type_name, data.guid.entity_id.has_key());
        self.hear(key, data, &type_)
    }

    /// Begins to hear a topic whose type is known, or of no interest.
    fn hear(&mut self, key: Key, data: &PublicationData, type_: &DynamicTypeSupport) -> Result<()> {
        let topic = data.topic_name.clone();
        let is_new = !self.groups.contains_key(&key);
        let id = self.next_id;
        let group = self.groups.entry(key.clone()).or_insert_with(|| Group::new(id, data.clone(), &self.options));
        if let Err(error) = group.hear(&self.hearing, type_) {
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
            // What waits for room must not wake us.
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
        note(&mut self.notes, format!("{topic}: heard, {}, {}", data.type_name, data.qos.durability));
        Ok(())
    }

    /// What the service has.
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
            doubted: groups().map(|group| group.doubted).sum(),
            unserved: groups().map(Group::unserved).sum(),
            held_back: groups().map(|group| group.held_back).sum(),
            commits: self.commits,
        }
    }

    /// What has happened since this was last called, a line each.
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
    fn participants_of_a_service_neither_meet_nor_take_each_other_for_unreachable() {
        let interfaces = vec!["lo".to_owned()];
        let domain = takt_testkit::domain::domain();
        let options = Options { domain, interfaces, peers: vec!["127.0.0.1".to_owned()], ..Options::default() };
        let mut service = Service::new(options).expect("a service");
        let until = Instant::now() + Duration::from_secs(4);
        while Instant::now() < until {
            service.step().expect("there is nothing to do");
        }
        for participant in [&service.serving, &service.hearing] {
            assert_eq!(participant.silent_participants().expect("open"), []);
            assert_eq!(participant.discovered_participants().expect("open").len(), 0, "nobody else is there");
        }
    }

    #[test]
    fn topic_whose_type_is_not_answered_keeps_no_other_topic_waiting() {
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
        let mut service = Service::on(builder(), builder(), options).expect("a service");
        service.type_patience = takt::Duration::from_secs(20);
        // It answers only while it is driven.
        let lease = Duration::from_secs(600);
        let silent = builder().runtime(Runtime::Inline).lease_duration(lease).build().expect("participant");
        let _unanswered = writer::<Number>(&silent, "Numbers");
        until("the topic without an answer", || {
            silent.spin_once(takt::Duration::from_millis(5)).expect("open");
            let publications = service.hearing.discovered_publications().expect("open");
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
        assert!(
            notes.iter().any(|note| note.starts_with("Numbers: keys are known by their hashes alone")),
            "{notes:?}"
        );
    }
}
