//! Durability state of one topic: its reader, its stored changes, and the writer that serves them.

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

/// Maximum distance by which the sequence number of a relayed change may exceed the last number
/// that its matched original writer has announced. A reliable writer sends as many samples ahead of
/// acknowledgments.
const LEAD_MAX: i64 = 512;
/// Pause between two attempts to write changes for which the serving writer had no room.
const ROOM_PAUSE: Duration = Duration::from_millis(100);
/// Number of refusals that end a repeated attempt. The next attempt continues after them.
const REFUSALS_MAX: usize = 16;
/// Pause between two attempts to create the writer that serves a topic.
const SERVING_PAUSE: Duration = Duration::from_secs(5);

/// Reports whether a writer belongs to a durability service.
pub(crate) fn is_from_service(data: &PublicationData) -> bool {
    data.qos.user_data.0.starts_with(DURABILITY_SERVICE)
}

/// Returns the text of an error that concerns only one topic.
///
/// # Errors
/// A closed participant concerns the whole service.
fn of_one_topic(error: takt::Error) -> Result<String> {
    match error {
        takt::Error::AlreadyDeleted => Err(error.into()),
        error => Ok(error.to_string()),
    }
}

/// Properties that all writers of a group share.
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
    /// Returns the key of a writer; `None` if its DURABILITY needs no service.
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
    /// Announcement of the first writer that was discovered.
    pub(crate) announcement: PublicationData,
    pub(crate) index: Index,
    pub(crate) reader: Option<RelayReader>,
    writer: Option<RelayWriter>,
    /// Stored changes by number that are not yet relayed: there is no writer, it has no room, or
    /// they are not committed.
    stored: BTreeMap<u64, Record>,
    /// Changes below this number have been offered to the writer. Those that remain in `stored`
    /// wait for room.
    offered: u64,
    waiting_for_room: WaitingForRoom,
    /// Changes below this number are committed.
    committed: u64,
    /// Received changes that are not stored yet.
    waiting: VecDeque<Record>,
    /// Limit that keeps changes in `waiting`.
    full: Option<&'static str>,
    pub(crate) repeated: u64,
    /// Number of changes that the serving writer refused permanently.
    refused: u64,
    /// Number of writers of which a change could not be stored.
    pub(crate) blocked_writers: usize,
    /// Message about the topic that is reported once.
    remark: Option<String>,
    /// Whether the refusal of a change has been reported.
    is_unserved_reported: bool,
    /// Failure to create the serving writer.
    unservable: Option<Unservable>,
    /// Number of relayed changes whose original writer has not reached their sequence number.
    pub(crate) unconfirmed: u64,
    /// Whether writers other than those of services exist.
    pub(crate) is_written: bool,
    /// Whether the topic gets a reader once its type is known. The reader also receives the changes
    /// of other services.
    pub(crate) needs_reader: bool,
    created: Instant,
    /// Time since which the topic is idle.
    idle_since: Option<Instant>,
}

/// Original writers and instances whose changes wait for room at the serving writer, so that later
/// changes do not overtake them.
#[derive(Debug, Default)]
struct WaitingForRoom {
    writers: HashSet<Guid>,
    instances: HashSet<InstanceHandle>,
    /// Number from which the next repeated attempt starts.
    next: u64,
    /// Time of the last attempt to write all of them.
    since: Option<Instant>,
}

impl WaitingForRoom {
    fn precedes(&self, record: &Record) -> bool {
        self.writers.contains(&record.origin.writer) || self.instances.contains(&record.instance)
    }

    fn add(&mut self, record: &Record) {
        self.writers.insert(record.origin.writer);
        self.instances.insert(record.instance);
    }
}

/// Reason for which no writer could be created, and the time of the attempt.
#[derive(Debug)]
struct Unservable {
    reason: String,
    tried: Instant,
    /// Whether the attempt is repeated without a pause.
    is_due: bool,
}

impl Unservable {
    fn pauses(&self) -> bool {
        !self.is_due && self.tried.elapsed() < SERVING_PAUSE
    }
}

/// Returns the limits and history of a topic.
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

/// Returns the QoS of the writer that serves a topic.
fn serving_qos(data: &PublicationData, options: &Options) -> DataWriterQos {
    let Policy { history, samples_max, instances_max, .. } = policy(data, options);
    // The values come from 32-bit limits.
    let limit = |limit: usize| Some(u32::try_from(limit).unwrap_or(u32::MAX));
    // A timing contract applies only to its own writer. The service sends stored samples at once,
    // and knows neither transports nor priorities of others.
    let is_local = |key: &str| ["rt.", "takt."].iter().any(|prefix| key.trim_start().starts_with(prefix));
    let mut property = data.qos.property.clone();
    property.entries.retain(|entry| !is_local(&entry.name));
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
        // The service must not own instances: the weakest live writer outranks it.
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
            stored: BTreeMap::new(),
            offered: 0,
            waiting_for_room: WaitingForRoom::default(),
            committed: 0,
            waiting: VecDeque::new(),
            full: None,
            repeated: 0,
            refused: 0,
            blocked_writers: 0,
            remark: None,
            is_unserved_reported: false,
            unservable: None,
            unconfirmed: 0,
            is_written: false,
            needs_reader: false,
            created: Instant::now(),
            idle_since: None,
        }
    }

    pub(crate) fn is_persistent(&self) -> bool {
        self.announcement.qos.durability == Durability::Persistent
    }

    /// Restores the changes and origins that the store contains.
    pub(crate) fn restore(&mut self, changes: Vec<(u64, Record)>, origins: &[(Guid, i64)]) {
        for (number, record) in changes {
            self.index.restore(number, &record);
            self.stored.insert(number, record);
        }
        for (writer, last) in origins {
            self.index.restore_origin(*writer, *last);
        }
        self.committed = self.index.next();
    }

    /// Creates the reader.
    pub(crate) fn create_reader(&mut self, participant: &DomainParticipant, type_: &DynamicTypeSupport) -> Result<()> {
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
        self.created = Instant::now();
        Ok(())
    }

    // DEVIATION(DDS 1.4 §2.2.3.6): the service stores the samples of a coherent set one by one, and
    // relays them without the set.
    /// Takes received changes, unless earlier ones still wait for room. Samples of departed writers
    /// remain.
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

    /// Stores waiting changes while there is room, at most `disk_bytes` of them on disk. Returns
    /// the limit that prevents it, if it did not do so before.
    pub(crate) fn store_waiting(&mut self, disk_bytes: &mut u64, batch: &mut Batch) -> Result<Option<&'static str>> {
        let reader = self.reader.clone();
        let announced = |writer| match &reader {
            Some(reader) => Ok(reader.last_announced(writer)?.map(|sn| sn.0)),
            None => Ok(None),
        };
        self.store_credible(disk_bytes, batch, announced)
    }

    /// As [`store_waiting`](Self::store_waiting); `announced` returns the last sequence number of a
    /// matched writer.
    fn store_credible(
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
                    self.unconfirmed += 1;
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
                Admission::Stored { number, evicted } => {
                    let Some(record) = self.waiting.pop_front() else { break };
                    for number in &evicted {
                        self.stored.remove(number);
                    }
                    if self.is_persistent() {
                        *disk_bytes = (*disk_bytes + before).saturating_sub(self.index.bytes());
                        batch.removed.extend(evicted.into_iter().map(|number| (self.id, number)));
                        batch.set_origin(self.id, origin.writer, origin.sn.0);
                        batch.stored.push((self.id, number, record.clone()));
                    }
                    self.stored.insert(number, record);
                }
            }
        }
        Ok(None)
    }

    /// Corrects the state of a writer, whose change `next` arrived, when other services claimed
    /// higher sequence numbers in its name. Relayed changes above `credible` are removed. The
    /// writer's own changes stay known, so that its history, which arrives again, is stored once.
    fn correct(&mut self, next: SampleIdentity, credible: i64, batch: &mut Batch) -> Result<()> {
        let writer = next.writer;
        let forged = self.index.correct_origin(writer, next.sn.0 - 1, credible);
        self.unconfirmed += forged.len() as u64;
        for number in &forged {
            self.stored.remove(number);
        }
        if let Some(serving) = &self.writer {
            serving.discard_relayed(writer, SequenceNumber(credible))?;
        }
        if self.is_persistent() {
            batch.set_origin(self.id, writer, self.index.last_of(writer));
            batch.removed.extend(forged.into_iter().map(|number| (self.id, number)));
        }
        Ok(())
    }

    /// Stops taking changes until the store can be written again.
    pub(crate) fn wait_for_disk(&mut self) {
        self.full = Some("no space left on the disk");
    }

    /// Takes changes again after the store became writable.
    pub(crate) fn resume(&mut self) {
        self.full = None;
    }

    /// Marks all stored changes as committed.
    pub(crate) fn mark_committed(&mut self) {
        self.committed = self.index.next();
    }

    /// Acknowledges committed changes to their writers and relays them.
    pub(crate) fn acknowledge_committed(&mut self) -> Result<()> {
        let is_stored = self.waiting.is_empty() && self.committed == self.index.next();
        if let Some(reader) = self.reader.as_ref().filter(|_| is_stored) {
            reader.acknowledge_taken()?;
        }
        match self.writer.clone() {
            Some(writer) => self.relay(|record| writer.write(&record.as_relayed())),
            None => Ok(()),
        }
    }

    /// Relays committed changes. A change without room stays, and is tried again after a pause,
    /// together with later changes of its original writer and of its instance. A new change is
    /// tried immediately, so that only these changes wait. A repeated attempt ends after
    /// [`REFUSALS_MAX`] refusals, and the next one continues after them.
    fn relay(&mut self, mut write: impl FnMut(&Record) -> takt::Result<bool>) -> Result<()> {
        let is_repeated = self.waiting_for_room.since.is_some_and(|since| since.elapsed() >= ROOM_PAUSE);
        // New changes are always tried.
        let (before, tried_from) = (self.offered, self.waiting_for_room.next);
        if is_repeated {
            (self.waiting_for_room, self.offered) = (WaitingForRoom::default(), 0);
        }
        let mut refusals = 0;
        let numbers: Vec<u64> = self.stored.range(self.offered..self.committed).map(|(number, _)| *number).collect();
        self.offered = self.committed;
        for number in numbers {
            let Some(record) = self.stored.remove(&number) else { continue };
            let is_tried = number >= before || (number >= tried_from && refusals < REFUSALS_MAX);
            let written =
                if self.waiting_for_room.precedes(&record) || !is_tried { None } else { Some(write(&record)) };
            match written.transpose() {
                Ok(Some(true)) => {}
                Ok(tried) => {
                    self.waiting_for_room.add(&record);
                    self.waiting_for_room.since.get_or_insert_with(Instant::now);
                    if tried.is_some() {
                        refusals += 1;
                        if refusals == REFUSALS_MAX && number < before {
                            self.waiting_for_room.next = number + 1;
                        }
                        self.record_unserved(
                            &record,
                            "the history of the serving writer is full; retried when it has room",
                        );
                    }
                    self.stored.insert(number, record);
                }
                Err(error) => {
                    self.refused += 1;
                    self.record_unserved(&record, &of_one_topic(error)?);
                }
            }
        }
        Ok(())
    }

    /// Returns the number of stored and committed changes that the serving writer does not have: it
    /// refuses them or has no room.
    pub(crate) fn unserved(&self) -> u64 {
        self.refused + self.stored.range(..self.offered).count() as u64
    }

    /// Records a stored change that cannot be relayed. The first one is reported.
    fn record_unserved(&mut self, record: &Record, refusal: &str) {
        if !std::mem::replace(&mut self.is_unserved_reported, true) {
            let len = record.payload.len();
            self.remark = Some(format!("stored but not served: a change of {len} octets: {refusal}"));
        }
    }

    /// Takes the message about the topic that was recorded since the last call.
    pub(crate) fn take_remark(&mut self) -> Option<String> {
        self.remark.take()
    }

    /// Counts writers that are no longer acknowledged, since a change could not be stored. The
    /// first one is reported.
    pub(crate) fn count_unacknowledged(&mut self) -> Result<()> {
        let unstored = self.reader.as_ref().map_or(Ok(Vec::new()), RelayReader::first_unstored)?;
        if let Some(first) = unstored.first().filter(|_| self.blocked_writers == 0) {
            let (sn, writer) = (first.sn.0, first.writer);
            self.remark = Some(format!(
                "change {sn} of {writer} cannot be stored (larger than twice the memory of a topic, or its key cannot be read); its \
                 writer is no longer acknowledged"
            ));
        }
        self.blocked_writers = unstored.len();
        Ok(())
    }

    /// Reports whether the topic has been idle for `duration`: it has only writers of services, and
    /// none of its changes are stored.
    pub(crate) fn is_idle_for(&mut self, duration: Duration) -> bool {
        if self.is_written || self.index.len() > 0 || !self.waiting.is_empty() {
            self.idle_since = None;
            return false;
        }
        self.idle_since.get_or_insert_with(Instant::now).elapsed() >= duration
    }

    /// Creates the serving writer once discovery of other services has had time, and their changes
    /// have arrived. Changes of a topic for which no writer can be created are stored nevertheless,
    /// and creation is repeated after a pause.
    pub(crate) fn serve(&mut self, participant: &DomainParticipant, options: &Options) -> Result<bool> {
        let pauses = self.unservable.as_ref().is_some_and(Unservable::pauses);
        if self.writer.is_some() || pauses || self.created.elapsed() < options.settling_time {
            return Ok(false);
        }
        let has_caught_up = self.reader.as_ref().map_or(Ok(!self.needs_reader), RelayReader::has_history)?;
        // Two services without changes would otherwise keep the topic alive for each other.
        let is_of_use = self.is_written || self.index.len() > 0;
        if !has_caught_up || !self.waiting.is_empty() || !is_of_use {
            return Ok(false);
        }
        match self.create_writer(participant, options) {
            Ok(writer) => {
                (self.writer, self.unservable) = (Some(writer.clone()), None);
                self.acknowledge_committed()?;
                writer.enable()?;
                Ok(true)
            }
            Err(error) => {
                let reason = of_one_topic(error)?;
                if self.unservable.as_ref().is_none_or(|unservable| unservable.reason != reason) {
                    self.remark = Some(format!("stored but not served: {reason}"));
                }
                self.unservable = Some(Unservable { reason, tried: Instant::now(), is_due: false });
                Ok(false)
            }
        }
    }

    /// Schedules another attempt to create the serving writer. Called when a topic has ended, since
    /// its resources may suffice for this one.
    pub(crate) fn retry_serving(&mut self) {
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
        // Stored changes are XCDR: the reader matches only XCDR writers.
        let first = self.stored.values().next().filter(|_| !is_xcdr(qos.data_representation.offered()));
        if let Some(representation) = first.and_then(Record::representation) {
            qos.data_representation = representation;
        }
        participant.create_relay_writer(&topic, &qos, &publisher)
    }

    /// Removes instances whose cleanup delay has passed. Returns their number.
    pub(crate) fn clean_up(&mut self, is_alive: impl Fn(Guid) -> bool, batch: &mut Batch) -> Result<usize> {
        let over = self.index.clean_up(Instant::now(), &is_alive);
        let removed = self.index.remove_origins(&is_alive);
        if self.is_persistent() {
            removed.into_iter().for_each(|writer| batch.remove_origin(self.id, writer));
        }
        for (instance, numbers) in &over {
            for number in numbers {
                self.stored.remove(number);
            }
            if let Some(writer) = &self.writer {
                writer.discard_instance(*instance)?;
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
