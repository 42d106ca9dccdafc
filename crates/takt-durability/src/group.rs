//! One topic: what hears it, what is kept of it, what serves it.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use takt::dynamic::DynamicTypeSupport;
use takt::qos::{
    DataReaderQos, DataRepresentation, DataWriterQos, Durability, History, Liveliness, OwnershipStrength, PublisherQos,
    Reliability, ReliabilityKind, ResourceLimits, SubscriberQos, UserData,
};
use takt::relay::{DURABILITY_SERVICE, RelayReader, RelayTopic, RelayWriter, SampleIdentity};
use takt::{DomainParticipant, Guid, InstanceHandle, PublicationData, SequenceNumber};

use crate::index::{Admission, Index, Policy};
use crate::record::Record;
use crate::store::Batch;
use crate::{Options, Result};

/// How far a change that another service passes on may be ahead of what its original writer has announced, if that is matched. It
/// is as much as a reliable writer sends ahead of acknowledgements.
const LEAD_MAX: i64 = 512;
/// Between two attempts to pass on what found no room at the serving writer.
const ROOM_PAUSE: Duration = Duration::from_millis(100);
/// Refusals that end a repeated attempt. The next one begins behind them.
const REFUSALS_MAX: usize = 16;
/// Between two attempts to create the writer that serves a topic.
const SERVING_PAUSE: Duration = Duration::from_secs(5);

/// Whether a writer is one of a durability service.
pub(crate) fn is_of_a_service(data: &PublicationData) -> bool {
    data.qos.user_data.0.starts_with(DURABILITY_SERVICE)
}

/// What a refusal says that concerns one topic.
///
/// # Errors
/// A participant that was closed concerns the whole service.
fn of_one_topic(error: takt::Error) -> Result<String> {
    match error {
        takt::Error::AlreadyDeleted => Err(error.into()),
        error => Ok(error.to_string()),
    }
}

/// What writers must have in common to be kept together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    topic: String,
    type_name: String,
    has_key: bool,
    is_persistent: bool,
    is_reliable: bool,
    partition: Vec<String>,
}

impl Key {
    /// `None` if a service has nothing to do with the writer.
    pub(crate) fn of(data: &PublicationData) -> Option<Self> {
        (data.qos.durability >= Durability::Transient).then(|| Self {
            topic: data.topic_name.clone(),
            type_name: data.type_name.clone(),
            has_key: data.guid.entity_id.has_key(),
            is_persistent: data.qos.durability == Durability::Persistent,
            is_reliable: data.qos.reliability.kind == ReliabilityKind::Reliable,
            partition: data.partition.names.clone(),
        })
    }
}

#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) id: u32,
    /// Of the writer that it was first heard of from.
    pub(crate) announcement: PublicationData,
    pub(crate) index: Index,
    pub(crate) reader: Option<RelayReader>,
    writer: Option<RelayWriter>,
    /// Kept, by number, and not passed on: there is no writer yet, it has no room, or they are not committed.
    kept: BTreeMap<u64, Record>,
    /// Changes below this number have been offered to the writer. Those of them that are still in `kept` wait for room.
    offered: u64,
    roomless: Roomless,
    /// Changes below this number are committed.
    committed: u64,
    /// Taken, and not kept yet.
    waiting: VecDeque<Record>,
    /// Why what waits does.
    full: Option<&'static str>,
    pub(crate) repeated: u64,
    /// Refused for good by the writer that serves.
    refused: u64,
    /// Writers, a change of which could not be kept.
    pub(crate) held_back: usize,
    /// What has to be said of the topic, once.
    remark: Option<String>,
    /// A change was refused, and that has been said.
    is_unserved_said: bool,
    /// No writer could be created that serves.
    unservable: Option<Unservable>,
    /// Passed on by other services in the name of a writer that has not come that far.
    pub(crate) doubted: u64,
    /// Whether writers other than those of services are there.
    pub(crate) is_written: bool,
    /// Whether it gets a reader once its type is known. What other services have comes by that.
    pub(crate) is_to_be_heard: bool,
    born: Instant,
    /// Since when it is of no use.
    idle_since: Option<Instant>,
}

/// Original writers and instances whose changes wait for room at the writer that serves, so that later ones do not overtake them.
#[derive(Debug, Default)]
struct Roomless {
    writers: HashSet<Guid>,
    instances: HashSet<InstanceHandle>,
    /// Number from which on the next repeated attempt asks for room.
    next: u64,
    /// When the writer was last asked for room for all of them.
    since: Option<Instant>,
}

impl Roomless {
    fn precedes(&self, record: &Record) -> bool {
        self.writers.contains(&record.origin.writer) || self.instances.contains(&record.instance)
    }

    fn add(&mut self, record: &Record) {
        self.writers.insert(record.origin.writer);
        self.instances.insert(record.instance);
    }
}

/// Why no writer could be created, and when that was tried.
#[derive(Debug)]
struct Unservable {
    why: String,
    tried: Instant,
    /// It is tried again without a pause.
    is_due: bool,
}

impl Unservable {
    fn pauses(&self) -> bool {
        !self.is_due && self.tried.elapsed() < SERVING_PAUSE
    }
}

/// The limits and history of a topic.
fn policy(data: &PublicationData, options: &Options) -> Policy {
    let service = data.qos.durability_service;
    let samples_max = service.resource_limits.max_samples.unwrap_or(u32::MAX).min(options.samples_max);
    let or_all = |limit: Option<u32>| limit.map_or(samples_max, |limit| limit.min(samples_max)) as usize;
    let delay = service.service_cleanup_delay;
    Policy {
        history: match service.history {
            History::KeepLast(depth) => History::KeepLast(depth.min(samples_max)),
            History::KeepAll => History::KeepAll,
        },
        samples_max: samples_max as usize,
        instances_max: or_all(service.resource_limits.max_instances),
        samples_per_instance_max: or_all(service.resource_limits.max_samples_per_instance),
        bytes_max: options.memory_bytes_max,
        cleanup_delay: delay.as_nanos().map(Duration::from_nanos),
    }
}

/// The policies of the writer that serves a topic.
fn serving_qos(data: &PublicationData, options: &Options) -> DataWriterQos {
    let Policy { history, samples_max, instances_max, .. } = policy(data, options);
    // They come from limits of 32 bits.
    let limit = |limit: usize| Some(u32::try_from(limit).unwrap_or(u32::MAX));
    // A contract binds its own writer. The service sends what it keeps at once, and knows neither transports nor priorities of others.
    let is_local = |key: &str| ["rt.", "takt."].iter().any(|prefix| key.trim_start().starts_with(prefix));
    let mut property = data.qos.property.clone();
    property.0.retain(|(key, ..)| !is_local(key));
    let fields = data.qos.user_data.0.split(|octet| *octet == b';');
    let fields = fields.filter(|field| std::str::from_utf8(field).map_or(true, |field| !is_local(field)));
    DataWriterQos {
        history,
        resource_limits: ResourceLimits {
            max_samples: limit(samples_max),
            max_instances: limit(instances_max),
            max_samples_per_instance: None,
        },
        reliability: Reliability { kind: ReliabilityKind::Reliable, ..data.qos.reliability },
        // The service is no owner: the weakest of living writers outranks it.
        ownership_strength: OwnershipStrength(i32::MIN),
        liveliness: Liveliness { lease_duration: takt::Duration::INFINITE, ..Liveliness::default() },
        user_data: UserData(fields.collect::<Vec<_>>().join(&b';')),
        property,
        ..data.qos.clone()
    }
}

impl Group {
    pub(crate) fn new(id: u32, announcement: PublicationData, options: &Options) -> Self {
        Self {
            id,
            index: Index::new(policy(&announcement, options)),
            announcement,
            reader: None,
            writer: None,
            kept: BTreeMap::new(),
            offered: 0,
            roomless: Roomless::default(),
            committed: 0,
            waiting: VecDeque::new(),
            full: None,
            repeated: 0,
            refused: 0,
            held_back: 0,
            remark: None,
            is_unserved_said: false,
            unservable: None,
            doubted: 0,
            is_written: false,
            is_to_be_heard: false,
            born: Instant::now(),
            idle_since: None,
        }
    }

    pub(crate) fn is_persistent(&self) -> bool {
        self.announcement.qos.durability == Durability::Persistent
    }

    /// What the store had of it.
    pub(crate) fn restore(&mut self, changes: Vec<(u64, Record)>, origins: &[(Guid, i64)]) {
        for (number, record) in changes {
            self.index.restore(number, &record);
            self.kept.insert(number, record);
        }
        for (writer, last) in origins {
            self.index.restore_origin(*writer, *last);
        }
        self.committed = self.index.next();
    }

    /// Begins to listen.
    pub(crate) fn hear(&mut self, participant: &DomainParticipant, type_: &DynamicTypeSupport) -> Result<()> {
        let offered = &self.announcement.qos;
        let qos = DataReaderQos {
            durability: offered.durability,
            reliability: offered.reliability,
            history: History::KeepAll,
            latency_budget: offered.latency_budget,
            ownership: offered.ownership,
            data_representation: DataRepresentation::any_xcdr(),
            ..DataReaderQos::default()
        };
        let partition = self.announcement.partition.clone();
        let subscriber = SubscriberQos { partition, ..SubscriberQos::default() };
        let reader = participant.create_relay_reader(&self.announcement.topic_name, type_, &qos, &subscriber)?;
        self.reader = Some(reader);
        self.born = Instant::now();
        Ok(())
    }

    // DEVIATION(DDS 1.4 §2.2.3.6): the service keeps the samples of a coherent set one by one, and passes them on without the set.
    /// Takes what has come, unless something still waits for room. Writers that have gone leave what they wrote.
    pub(crate) fn take(&mut self) -> Result<()> {
        let (Some(reader), true) = (&self.reader, self.waiting.is_empty()) else { return Ok(()) };
        Ok(reader.take(|info, kind, payload| {
            if info.sequence_number.0 > 0 {
                self.waiting.push_back(Record {
                    kind,
                    instance: info.instance_handle,
                    origin: info.origin,
                    source_timestamp: info.source_timestamp,
                    is_relayed: info.publication != info.origin.writer,
                    payload: payload.to_vec(),
                });
            }
        })?)
    }

    /// Keeps what waits, as far as there is room, `disk_bytes` of it on disk. Returns the limit that stands in the way if
    /// it did not before.
    pub(crate) fn keep(&mut self, disk_bytes: &mut u64, batch: &mut Batch) -> Result<Option<&'static str>> {
        let reader = self.reader.clone();
        let announced = |writer| match &reader {
            Some(reader) => Ok(reader.announced_by(writer)?.map(|sn| sn.0)),
            None => Ok(None),
        };
        self.keep_what_is_credible(disk_bytes, batch, announced)
    }

    /// As [`keep`](Self::keep); `announced` says how far a writer that is matched has come.
    fn keep_what_is_credible(
        &mut self,
        disk_bytes: &mut u64,
        batch: &mut Batch,
        announced: impl Fn(Guid) -> Result<Option<i64>>,
    ) -> Result<Option<&'static str>> {
        let was_full = self.full.take();
        while let Some(record) = self.waiting.front() {
            let (origin, is_relayed) = (record.origin, record.is_relayed);
            let last = self.index.last_of(origin.writer);
            if (is_relayed || origin.sn.0 <= last)
                && let Some(announced) = announced(origin.writer)?
            {
                let credible = announced.saturating_add(LEAD_MAX);
                if is_relayed && origin.sn.0 > credible {
                    self.waiting.pop_front();
                    self.doubted += 1;
                    continue;
                }
                if !is_relayed && last > credible {
                    self.correct(origin, credible, batch)?;
                }
            }
            let Some(record) = self.waiting.front() else { break };
            let before = self.index.bytes();
            match self.index.admit(record, self.is_persistent().then_some(*disk_bytes)) {
                Admission::Repeated => {
                    self.waiting.pop_front();
                    self.repeated += 1;
                }
                Admission::Full(limit) => {
                    self.full = Some(limit);
                    return Ok(self.full.filter(|_| was_full != self.full));
                }
                Admission::Kept { number, evicted } => {
                    let Some(record) = self.waiting.pop_front() else { break };
                    for number in &evicted {
                        self.kept.remove(number);
                    }
                    if self.is_persistent() {
                        *disk_bytes = (*disk_bytes + before).saturating_sub(self.index.bytes());
                        batch.removed.extend(evicted.into_iter().map(|number| (self.id, number)));
                        batch.set_origin(self.id, origin.writer, origin.sn.0);
                        batch.kept.push((self.id, number, record.clone()));
                    }
                    self.kept.insert(number, record);
                }
            }
        }
        Ok(None)
    }

    /// A writer, whose change `next` has come, has not come as far as others said in its name: what they said above
    /// `credible` is given up. What it said itself stays known, so that its history, which comes again, is kept once.
    fn correct(&mut self, next: SampleIdentity, credible: i64, batch: &mut Batch) -> Result<()> {
        let writer = next.writer;
        let forged = self.index.correct_origin(writer, next.sn.0 - 1, credible);
        self.doubted += forged.len() as u64;
        for number in &forged {
            self.kept.remove(number);
        }
        if let Some(serving) = &self.writer {
            serving.forget_relayed(writer, SequenceNumber(credible))?;
        }
        if self.is_persistent() {
            batch.set_origin(self.id, writer, self.index.last_of(writer));
            batch.removed.extend(forged.into_iter().map(|number| (self.id, number)));
        }
        Ok(())
    }

    /// Nothing is taken until the store can be written again.
    pub(crate) fn wait_for_disk(&mut self) {
        self.full = Some("no space left on the disk");
    }

    /// The store can be written again.
    pub(crate) fn go_on(&mut self) {
        self.full = None;
    }

    /// All that was kept is committed.
    pub(crate) fn mark_committed(&mut self) {
        self.committed = self.index.next();
    }

    /// Tells writers that what is committed is safe, and passes it on.
    pub(crate) fn settle(&mut self) -> Result<()> {
        let is_safe = self.waiting.is_empty() && self.committed == self.index.next();
        if let Some(reader) = self.reader.as_ref().filter(|_| is_safe) {
            reader.acknowledge_taken()?;
        }
        match self.writer.clone() {
            Some(writer) => self.pass_on(|record| writer.write(&record.as_relayed())),
            None => Ok(()),
        }
    }

    /// Passes on what is committed. What finds no room stays, and is tried again after a pause, with what its original writer wrote
    /// later and what came of its instance later. A change is tried when it comes, so that only those wait for others. A repeated attempt
    /// ends after [`REFUSALS_MAX`] refusals, and the next one goes on behind it.
    fn pass_on(&mut self, mut write: impl FnMut(&Record) -> takt::Result<bool>) -> Result<()> {
        let is_repeated = self.roomless.since.is_some_and(|since| since.elapsed() >= ROOM_PAUSE);
        // What comes for the first time is always tried.
        let (before, tried_from) = (self.offered, self.roomless.next);
        if is_repeated {
            (self.roomless, self.offered) = (Roomless::default(), 0);
        }
        let mut refusals = 0;
        let numbers: Vec<u64> = self.kept.range(self.offered..self.committed).map(|(number, _)| *number).collect();
        self.offered = self.committed;
        for number in numbers {
            let Some(record) = self.kept.remove(&number) else { continue };
            let is_tried = number >= before || (number >= tried_from && refusals < REFUSALS_MAX);
            let written = if self.roomless.precedes(&record) || !is_tried { None } else { Some(write(&record)) };
            match written.transpose() {
                Ok(Some(true)) => {}
                Ok(tried) => {
                    self.roomless.add(&record);
                    self.roomless.since.get_or_insert_with(Instant::now);
                    if tried.is_some() {
                        refusals += 1;
                        if refusals == REFUSALS_MAX && number < before {
                            self.roomless.next = number + 1;
                        }
                        self.note_unserved(
                            &record,
                            "the history of the serving writer is full; served when it has room",
                        );
                    }
                    self.kept.insert(number, record);
                }
                Err(error) => {
                    self.refused += 1;
                    self.note_unserved(&record, &of_one_topic(error)?);
                }
            }
        }
        Ok(())
    }

    /// Changes that are kept and committed, and that the writer which serves has not taken: it refuses them, or has no room.
    pub(crate) fn unserved(&self) -> u64 {
        self.refused + self.kept.range(..self.offered).count() as u64
    }

    /// A change that is kept cannot be passed on. The first one is said.
    fn note_unserved(&mut self, record: &Record, refusal: &str) {
        if !std::mem::replace(&mut self.is_unserved_said, true) {
            let len = record.payload.len();
            self.remark = Some(format!("kept, and not served: a change of {len} octets: {refusal}"));
        }
    }

    /// What has to be said of the topic since this was last called.
    pub(crate) fn take_remark(&mut self) -> Option<String> {
        self.remark.take()
    }

    /// Looks for writers that are not acknowledged any more, since a change could not be kept. The first one is said.
    pub(crate) fn look_for_unkept(&mut self) -> Result<()> {
        let unkept = self.reader.as_ref().map_or(Ok(Vec::new()), RelayReader::unkept)?;
        if let Some(first) = unkept.first().filter(|_| self.held_back == 0) {
            let (sn, writer) = (first.sn.0, first.writer);
            self.remark = Some(format!(
                "change {sn} of {writer} cannot be kept (larger than twice the memory of a topic, or its key cannot be read); its writer \
                 is not acknowledged any more"
            ));
        }
        self.held_back = unkept.len();
        Ok(())
    }

    /// Whether the topic has been of no use for `patience`: it has no writers but those of services, and nothing of it is kept.
    pub(crate) fn is_over(&mut self, patience: Duration) -> bool {
        if self.is_written || self.index.len() > 0 || !self.waiting.is_empty() {
            self.idle_since = None;
            return false;
        }
        self.idle_since.get_or_insert_with(Instant::now).elapsed() >= patience
    }

    /// Begins to serve when other services have been looked for, and what they have has come. A topic that no writer can serve is
    /// kept all the same, and tried again after a pause.
    pub(crate) fn serve(&mut self, participant: &DomainParticipant, options: &Options) -> Result<bool> {
        let pauses = self.unservable.as_ref().is_some_and(Unservable::pauses);
        if self.writer.is_some() || pauses || self.born.elapsed() < options.settling_time {
            return Ok(false);
        }
        let has_caught_up = self.reader.as_ref().map_or(Ok(!self.is_to_be_heard), RelayReader::has_history)?;
        // Two services with nothing to serve would keep each other's topic alive.
        let is_of_use = self.is_written || self.index.len() > 0;
        if !has_caught_up || !self.waiting.is_empty() || !is_of_use {
            return Ok(false);
        }
        match self.create_writer(participant, options) {
            Ok(writer) => {
                (self.writer, self.unservable) = (Some(writer.clone()), None);
                self.settle()?;
                writer.enable()?;
                Ok(true)
            }
            Err(error) => {
                let why = of_one_topic(error)?;
                if self.unservable.as_ref().is_none_or(|unservable| unservable.why != why) {
                    self.remark = Some(format!("kept, and not served: {why}"));
                }
                self.unservable = Some(Unservable { why, tried: Instant::now(), is_due: false });
                Ok(false)
            }
        }
    }

    /// A topic has ended. What it held may let the writer be created that serves this one.
    pub(crate) fn try_to_serve_again(&mut self) {
        if let Some(unservable) = &mut self.unservable {
            unservable.is_due = true;
        }
    }

    fn create_writer(&self, participant: &DomainParticipant, options: &Options) -> takt::Result<RelayWriter> {
        let data = &self.announcement;
        let topic = RelayTopic {
            name: data.topic_name.clone(),
            type_name: data.type_name.clone(),
            has_key: data.guid.entity_id.has_key(),
            type_information: data.type_information.clone(),
            topic_data: data.topic_data.clone(),
        };
        let publisher = PublisherQos {
            presentation: data.presentation,
            partition: data.partition.clone(),
            group_data: data.group_data.clone(),
            ..PublisherQos::default()
        };
        let mut qos = serving_qos(data, options);
        let is_xcdr = |id| [DataRepresentation::XCDR1, DataRepresentation::XCDR2].contains(&id);
        // What has come is XCDR: the reader matches no other writers than those.
        let first = self.kept.values().next().filter(|_| !is_xcdr(qos.data_representation.offered()));
        if let Some(representation) = first.and_then(Record::representation) {
            qos.data_representation = representation;
        }
        participant.create_relay_writer(&topic, &qos, &publisher)
    }

    /// Gives up instances that have ended for long enough. Returns how many.
    pub(crate) fn clean_up(&mut self, lives: impl Fn(Guid) -> bool, batch: &mut Batch) -> Result<usize> {
        let over = self.index.clean_up(Instant::now(), &lives);
        let forgotten = self.index.forget_origins(&lives);
        if self.is_persistent() {
            forgotten.into_iter().for_each(|writer| batch.forget_origin(self.id, writer));
        }
        for (instance, numbers) in &over {
            for number in numbers {
                self.kept.remove(number);
            }
            if let Some(writer) = &self.writer {
                writer.forget(*instance)?;
            }
            if self.is_persistent() {
                batch.removed.extend(numbers.iter().map(|number| (self.id, *number)));
            }
        }
        Ok(over.len())
    }

    pub(crate) fn is_stuck(&self) -> bool {
        self.full.is_some()
    }

    pub(crate) fn is_served(&self) -> bool {
        self.writer.is_some()
    }
}

#[cfg(test)]
mod tests;
