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
use crate::durability::{DurabilityModel, DurabilityRole, StoredChange, payload_of};

/// Topic name.
const TOPIC: &str = "kept";
/// Type name.
const TYPE_NAME: &str = "Kept";

/// Endpoint of a process on the topic.
#[derive(Clone, Debug)]
pub enum DurableEndpoint {
    /// Writer with its GUID.
    Writer(WriterHandle, Guid),
    /// Reader of this service.
    ServiceReader(ReaderHandle, usize),
    /// Writer of this service, with the number of changes of its store that it has relayed.
    ServiceWriter(WriterHandle, usize, usize),
    /// Writer of a forger, with the number of forged changes so far.
    Forger(WriterHandle, i64),
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
    pub fn create_durable_endpoint(&mut self, model: &mut DurabilityModel, clock: Moment<'_>, checker: &mut Checker) {
        let (Some(core), Some(part)) = (&mut self.core, model.plan.role_of(self.index)) else { return };
        let created = match part {
            DurabilityRole::Writer => core.create_writer(clock.local(), writer_spec(&[])).and_then(|writer| {
                let guid = core.writer_guid(writer)?;
                model.writer_started(self.index, guid);
                Ok(DurableEndpoint::Writer(writer, guid))
            }),
            DurabilityRole::Receiver(service) => {
                create_service_reader(core, (model.plan.relaying_process(service), self.incarnation), clock)
                    .map(|reader| DurableEndpoint::ServiceReader(reader, service))
            }
            DurabilityRole::Relay(service) => {
                let store = model.store(service);
                relay_writer(core, store, clock)
                    .map(|writer| DurableEndpoint::ServiceWriter(writer, service, store.len()))
            }
            DurabilityRole::Reader => core
                .create_reader(clock.local(), reader_spec(&[]))
                .map(|reader| DurableEndpoint::Reader(reader, BTreeMap::new())),
            DurabilityRole::Forger => relay_writer(core, &[], clock).map(|writer| DurableEndpoint::Forger(writer, 0)),
        };
        match created {
            Ok(kept) => self.durable = Some(kept),
            Err(error) => checker.report(clock.now, Rule::CallFailed, format!("{part:?} cannot be created: {error}")),
        }
    }

    /// Writes the next sample. Waits if the history is full.
    pub fn write_durable(&mut self, model: &mut DurabilityModel, clock: Moment<'_>) {
        let (Some(core), Some(DurableEndpoint::Writer(writer, guid))) = (&mut self.core, &self.durable) else { return };
        let payload = payload_of(*guid, model.next_number(*guid));
        let written = core.write(clock.local(), *writer, &change_of(&payload, None), |slot| {
            slot.copy_from_slice(&payload);
            Some(payload.len())
        });
        if written.is_ok() {
            model.wrote(*guid);
        }
    }

    /// Takes the received changes, and handles the notifications of safe changes.
    pub fn take_durable(&mut self, model: &mut DurabilityModel, clock: Moment<'_>, checker: &mut Checker) {
        let (Some(core), Some(kept)) = (&mut self.core, &mut self.durable) else { return };
        match kept {
            DurableEndpoint::Writer(writer, guid) => {
                let services = core.durability_services(*writer).unwrap_or_default();
                for (reader, acknowledged) in &services {
                    if let Err(text) = model.check_stored(process_of(reader.prefix), *guid, acknowledged.0) {
                        checker.report(clock.now, Rule::Missing, text);
                    }
                }
                if let Some(safe) = services.iter().map(|(_, acknowledged)| acknowledged.0).min() {
                    model.record_stored(*guid, safe);
                }
            }
            // A service also keeps changes that another service relays, in worlds without a forger.
            DurableEndpoint::ServiceReader(reader, service) => take(core, *reader, clock, |found| {
                let is_true = found.info.publication == found.info.origin.writer || !model.plan.has_forger;
                if found.info.valid_data && is_true {
                    let change = StoredChange {
                        origin: found.info.origin,
                        source_timestamp: found.info.source_timestamp,
                        payload: found.payload.to_vec(),
                    };
                    model.received(*service, change);
                }
            }),
            DurableEndpoint::ServiceWriter(..) | DurableEndpoint::Forger(..) => {}
            DurableEndpoint::Reader(reader, taken) => take(core, *reader, clock, |found| {
                checker.taken += 1;
                if let Err((rule, text)) = model.check_taken(taken, found) {
                    checker.report(clock.now, rule, format!("process {} took {text}", self.index));
                }
            }),
        }
    }

    /// Relays changes that no writer has written.
    pub fn relay_forged(&mut self, model: &DurabilityModel, clock: Moment<'_>, checker: &mut Checker) {
        let (Some(core), Some(DurableEndpoint::Forger(writer, count))) = (&mut self.core, &mut self.durable) else {
            return;
        };
        if let Err(text) = relay(core, *writer, &model.forgery(*count), clock) {
            checker.report(clock.now, Rule::CallFailed, text);
        }
        *count += 1;
    }

    /// Acknowledges the stored changes to their writers.
    pub fn acknowledge_durable(&mut self) {
        if let (Some(core), Some(DurableEndpoint::ServiceReader(reader, _))) = (&mut self.core, &self.durable) {
            core.acknowledge_taken(*reader).expect("the reader lives as long as its process");
        }
    }

    /// Relays the changes that were added to the store.
    pub fn relay_durable(&mut self, model: &DurabilityModel, clock: Moment<'_>, checker: &mut Checker) {
        let (Some(core), Some(DurableEndpoint::ServiceWriter(writer, service, served))) =
            (&mut self.core, &mut self.durable)
        else {
            return;
        };
        let store = model.store(*service);
        if let Err(text) = relay(core, *writer, &store[*served..], clock) {
            checker.report(clock.now, Rule::CallFailed, text);
        }
        *served = store.len();
    }

    /// Checks at rest that a reader has received all changes that it must.
    pub fn check_durable(&self, now: crate::clock::Nanos, model: &DurabilityModel, checker: &mut Checker) {
        if let Some(DurableEndpoint::Reader(_, taken)) = &self.durable
            && let Some(missing) = model.missing(taken)
        {
            checker.report(now, Rule::Missing, format!("process {} has {missing}", self.index));
        }
        if let Some(DurableEndpoint::ServiceReader(_, service)) = &self.durable
            && let Some(lost) = model.missing_at_service(*service)
        {
            checker.report(now, Rule::Missing, format!("service {service} has heard {lost}"));
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
