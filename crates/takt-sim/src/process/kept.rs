//! Endpoints of a process on a topic that a durability service keeps.

use std::collections::BTreeMap;

use takt_core::{
    ChangeKind, DURABILITY_SERVICE, NewChange, Participant, ReadCursor, ReaderHandle, ReaderSpec, SampleRef, Selector,
    WriterFlows, WriterHandle, WriterSpec,
};
use takt_wire::Guid;
use takt_wire::qos::{
    DataReaderQos, DataWriterQos, Durability, History, PublisherQos, Reliability, ReliabilityKind, SubscriberQos,
    TopicData, UserData,
};

use super::{Moment, Process, prefix_of, process_of};
use crate::check::{Checker, Rule};
use crate::keeping::{Keeping, Part, StoredChange, payload_of};

/// Topic name.
const TOPIC: &str = "kept";
/// Type name.
const TYPE_NAME: &str = "Kept";

/// Endpoint of a process on the topic.
#[derive(Clone, Debug)]
pub enum Kept {
    /// Writer with its GUID.
    Writer(WriterHandle, Guid),
    /// Reader of this service.
    Hearing(ReaderHandle, usize),
    /// Writer of this service, with the number of changes of its store that it has relayed.
    Serving(WriterHandle, usize, usize),
    /// Writer of a forger, with the number of forged changes so far.
    Forging(WriterHandle, i64),
    /// Reader, with the number of the last change shown of each writer.
    Reader(ReaderHandle, BTreeMap<Guid, i64>),
}

fn reliable() -> Reliability {
    Reliability { kind: ReliabilityKind::Reliable, max_blocking_time: takt_wire::Duration::ZERO }
}

fn reader_spec(user_data: &[u8]) -> ReaderSpec {
    ReaderSpec {
        topic_name: TOPIC.into(),
        type_name: TYPE_NAME.into(),
        key: None,
        qos: DataReaderQos {
            reliability: reliable(),
            durability: Durability::Transient,
            history: History::KeepAll,
            user_data: UserData(user_data.to_vec()),
            ..DataReaderQos::default()
        },
        subscriber: SubscriberQos::default(),
        group: None,
        topic_data: TopicData::default(),
        max_serialized_len: None,
        type_information: None,
        unicast: Vec::new(),
        content_filter: None,
    }
}

fn writer_spec(user_data: &[u8]) -> WriterSpec {
    WriterSpec {
        topic_name: TOPIC.into(),
        type_name: TYPE_NAME.into(),
        keyed: false,
        qos: DataWriterQos {
            reliability: reliable(),
            durability: Durability::Transient,
            history: History::KeepAll,
            user_data: UserData(user_data.to_vec()),
            ..DataWriterQos::default()
        },
        publisher: PublisherQos::default(),
        group: None,
        topic_data: TopicData::default(),
        max_serialized_len: None,
        flows: WriterFlows::default(),
        type_information: None,
        unicast: Vec::new(),
        filters: None,
    }
}

fn change_of(payload: &[u8], kept: Option<&StoredChange>) -> NewChange<'static> {
    NewChange {
        kind: ChangeKind::Alive,
        key_hash: [0; 16],
        source_timestamp: kept.map(|change| change.source_timestamp),
        destinations: &[],
        payload_len: payload.len(),
    }
}

impl Process {
    /// Creates the endpoint on the topic. A service starts with the content of its store.
    pub fn begin_keeping(&mut self, keeping: &mut Keeping, clock: Moment<'_>, checker: &mut Checker) {
        let (Some(core), Some(part)) = (&mut self.core, keeping.plan.role_of(self.index)) else { return };
        let created = match part {
            Part::Writes => core.create_writer(clock.local(), writer_spec(&[])).and_then(|writer| {
                let guid = core.writer_guid(writer)?;
                keeping.lives(self.index, guid);
                Ok(Kept::Writer(writer, guid))
            }),
            Part::Hears(service) => {
                create_service_reader(core, (keeping.plan.serving(service), self.incarnation), clock)
                    .map(|reader| Kept::Hearing(reader, service))
            }
            Part::Serves(service) => {
                let store = keeping.store(service);
                relay_writer(core, store, clock).map(|writer| Kept::Serving(writer, service, store.len()))
            }
            Part::Reads => {
                core.create_reader(clock.local(), reader_spec(&[])).map(|reader| Kept::Reader(reader, BTreeMap::new()))
            }
            Part::Forges => relay_writer(core, &[], clock).map(|writer| Kept::Forging(writer, 0)),
        };
        match created {
            Ok(kept) => self.kept = Some(kept),
            Err(error) => checker.report(clock.now, Rule::Refused, format!("{part:?} cannot be created: {error}")),
        }
    }

    /// Writes the next sample. Waits if the history is full.
    pub fn write_durable(&mut self, keeping: &mut Keeping, clock: Moment<'_>) {
        let (Some(core), Some(Kept::Writer(writer, guid))) = (&mut self.core, &self.kept) else { return };
        let payload = payload_of(*guid, keeping.next_number(*guid));
        let written = core.write(clock.local(), *writer, &change_of(&payload, None), |slot| {
            slot.copy_from_slice(&payload);
            Some(payload.len())
        });
        if written.is_ok() {
            keeping.wrote(*guid);
        }
    }

    /// Takes the received changes, and handles the notifications of safe changes.
    pub fn keep(&mut self, keeping: &mut Keeping, clock: Moment<'_>, checker: &mut Checker) {
        let (Some(core), Some(kept)) = (&mut self.core, &mut self.kept) else { return };
        match kept {
            Kept::Writer(writer, guid) => {
                let services = core.durability_services(*writer).unwrap_or_default();
                for (reader, acknowledged) in &services {
                    if let Err(text) = keeping.check_stored(process_of(reader.prefix), *guid, acknowledged.0) {
                        checker.report(clock.now, Rule::Missing, text);
                    }
                }
                if let Some(safe) = services.iter().map(|(_, acknowledged)| acknowledged.0).min() {
                    keeping.is_stored(*guid, safe);
                }
            }
            // A service also keeps changes that another service relays, in worlds without a forger.
            Kept::Hearing(reader, service) => take(core, *reader, clock, |found| {
                let is_true = found.info.publication == found.info.origin.writer || !keeping.plan.forges;
                if found.info.valid_data && is_true {
                    let change = StoredChange {
                        origin: found.info.origin,
                        source_timestamp: found.info.source_timestamp,
                        payload: found.payload.to_vec(),
                    };
                    keeping.heard(*service, change);
                }
            }),
            Kept::Serving(..) | Kept::Forging(..) => {}
            Kept::Reader(reader, taken) => take(core, *reader, clock, |found| {
                checker.taken += 1;
                if let Err((rule, text)) = keeping.judge(taken, found) {
                    checker.report(clock.now, rule, format!("process {} took {text}", self.index));
                }
            }),
        }
    }

    /// Relays changes that no writer has written.
    pub fn forge(&mut self, keeping: &Keeping, clock: Moment<'_>, checker: &mut Checker) {
        let (Some(core), Some(Kept::Forging(writer, count))) = (&mut self.core, &mut self.kept) else { return };
        if let Err(text) = relay(core, *writer, &keeping.forgery(*count), clock) {
            checker.report(clock.now, Rule::Refused, text);
        }
        *count += 1;
    }

    /// Acknowledges the stored changes to their writers.
    pub fn acknowledge_durable(&mut self) {
        if let (Some(core), Some(Kept::Hearing(reader, _))) = (&mut self.core, &self.kept) {
            core.acknowledge_taken(*reader).expect("the reader lives as long as its process");
        }
    }

    /// Relays the changes that were added to the store.
    pub fn relay_durable(&mut self, keeping: &Keeping, clock: Moment<'_>, checker: &mut Checker) {
        let (Some(core), Some(Kept::Serving(writer, service, served))) = (&mut self.core, &mut self.kept) else {
            return;
        };
        let store = keeping.store(*service);
        if let Err(text) = relay(core, *writer, &store[*served..], clock) {
            checker.report(clock.now, Rule::Refused, text);
        }
        *served = store.len();
    }

    /// Checks at rest that a reader has received all changes that it must.
    pub fn check_durable(&self, now: crate::clock::Nanos, keeping: &Keeping, checker: &mut Checker) {
        if let Some(Kept::Reader(_, taken)) = &self.kept
            && let Some(missing) = keeping.missing(taken)
        {
            checker.report(now, Rule::Missing, format!("process {} has {missing}", self.index));
        }
        if let Some(Kept::Hearing(_, service)) = &self.kept
            && let Some(unheard) = keeping.unheard(*service)
        {
            checker.report(now, Rule::Missing, format!("service {service} has heard {unheard}"));
        }
    }
}

/// Creates the reader of the service, which ignores the service's own writer.
fn create_service_reader(
    core: &mut Participant,
    (serving, incarnation): (usize, u32),
    clock: Moment<'_>,
) -> Result<ReaderHandle, takt_core::Error> {
    core.ignore_participant(clock.local(), prefix_of(serving, incarnation))?;
    let reader = core.prepare_reader(reader_spec(DURABILITY_SERVICE))?;
    core.acknowledge_explicitly(reader)?;
    core.enable_reader(clock.local(), reader)?;
    Ok(reader)
}

/// Creates a writer of a service, with all changes in the store.
fn relay_writer(
    core: &mut Participant,
    store: &[StoredChange],
    clock: Moment<'_>,
) -> Result<WriterHandle, takt_core::Error> {
    let writer = core.prepare_writer(clock.local(), writer_spec(DURABILITY_SERVICE))?;
    core.make_relay(writer)?;
    relay(core, writer, store, clock).expect("the history of a relay has room for a small store");
    core.enable_writer(clock.local(), writer)?;
    Ok(writer)
}

fn relay(
    core: &mut Participant,
    writer: WriterHandle,
    changes: &[StoredChange],
    clock: Moment<'_>,
) -> Result<(), String> {
    for change in changes {
        let new = change_of(&change.payload, Some(change));
        let relayed = core.relay(clock.local(), writer, &new, change.origin, &change.payload);
        relayed.map_err(|error| format!("the service cannot pass on {:?}: {error:?}", change.origin))?;
    }
    Ok(())
}

fn take(core: &mut Participant, reader: ReaderHandle, clock: Moment<'_>, mut call: impl FnMut(&SampleRef<'_>)) {
    let mut cursor = ReadCursor::default();
    while let Ok(Some(found)) = core.read_next(clock.local(), reader, Selector::TAKE, &mut cursor) {
        call(&found);
    }
    core.end_read(clock.local(), reader).expect("the reader lives as long as its process");
}
