//! The endpoints of a process that have to do with a topic that a durability service keeps.

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
use crate::keeping::{Keeping, KeptChange, Part, payload_of};

/// The topic that is kept.
const TOPIC: &str = "kept";
/// Its type.
const TYPE_NAME: &str = "Kept";

/// What a process has of it.
#[derive(Clone, Debug)]
pub enum Kept {
    /// A writer, and its GUID.
    Writer(WriterHandle, Guid),
    /// The reader of a service.
    Hearing(ReaderHandle, usize),
    /// The writer of a service, and how much of its store it has.
    Serving(WriterHandle, usize, usize),
    /// The writer of a forger, and how often it has lied.
    Forging(WriterHandle, i64),
    /// A reader, and the number of the last change that it has shown of each writer.
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

fn change_of(payload: &[u8], kept: Option<&KeptChange>) -> NewChange<'static> {
    NewChange {
        kind: ChangeKind::Alive,
        key_hash: [0; 16],
        source_timestamp: kept.map(|change| change.source_timestamp),
        destinations: &[],
        payload_len: payload.len(),
    }
}

impl Process {
    /// Creates what it has of the topic that is kept. The service begins with what the store has.
    pub fn begin_keeping(&mut self, keeping: &mut Keeping, clock: Moment<'_>, checker: &mut Checker) {
        let (Some(core), Some(part)) = (&mut self.core, keeping.plan.part_of(self.index)) else { return };
        let created = match part {
            Part::Writes => core.create_writer(clock.local(), writer_spec(&[])).and_then(|writer| {
                let guid = core.writer_guid(writer)?;
                keeping.lives(self.index, guid);
                Ok(Kept::Writer(writer, guid))
            }),
            Part::Hears(service) => begin_hearing(core, (keeping.plan.serving(service), self.incarnation), clock)
                .map(|reader| Kept::Hearing(reader, service)),
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

    /// Writes the next sample of the topic that is kept. A full history waits.
    pub fn write_kept(&mut self, keeping: &mut Keeping, clock: Moment<'_>) {
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

    /// Takes what has come, and looks at what is said to be safe.
    pub fn keep(&mut self, keeping: &mut Keeping, clock: Moment<'_>, checker: &mut Checker) {
        let (Some(core), Some(kept)) = (&mut self.core, &mut self.kept) else { return };
        match kept {
            Kept::Writer(writer, guid) => {
                let services = core.durability_services(*writer).unwrap_or_default();
                for (reader, acknowledged) in &services {
                    if let Err(text) = keeping.judge_safe(process_of(reader.prefix), *guid, acknowledged.0) {
                        checker.report(clock.now, Rule::Missing, text);
                    }
                }
                if let Some(safe) = services.iter().map(|(_, acknowledged)| acknowledged.0).min() {
                    keeping.is_safe(*guid, safe);
                }
            }
            // What another service passes on is kept too, where none lies.
            Kept::Hearing(reader, service) => take(core, *reader, clock, |found| {
                let is_true = found.info.publication == found.info.origin.writer || !keeping.plan.forges;
                if found.info.valid_data && is_true {
                    let change = KeptChange {
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

    /// Passes on what no writer has written.
    pub fn forge(&mut self, keeping: &Keeping, clock: Moment<'_>, checker: &mut Checker) {
        let (Some(core), Some(Kept::Forging(writer, count))) = (&mut self.core, &mut self.kept) else { return };
        if let Err(text) = relay(core, *writer, &keeping.forgery(*count), clock) {
            checker.report(clock.now, Rule::Refused, text);
        }
        *count += 1;
    }

    /// What was taken is in the store: its writers are told.
    pub fn acknowledge_kept(&mut self) {
        if let (Some(core), Some(Kept::Hearing(reader, _))) = (&mut self.core, &self.kept) {
            core.acknowledge_taken(*reader).expect("the reader lives as long as its process");
        }
    }

    /// Passes on what has come to the store.
    pub fn serve_kept(&mut self, keeping: &Keeping, clock: Moment<'_>, checker: &mut Checker) {
        let (Some(core), Some(Kept::Serving(writer, service, served))) = (&mut self.core, &mut self.kept) else {
            return;
        };
        let store = keeping.store(*service);
        if let Err(text) = relay(core, *writer, &store[*served..], clock) {
            checker.report(clock.now, Rule::Refused, text);
        }
        *served = store.len();
    }

    /// The world has come to rest: has a reader all that it was to get?
    pub fn finish_keeping(&self, now: crate::clock::Nanos, keeping: &Keeping, checker: &mut Checker) {
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

/// The reader of the service, which does not hear what the service itself serves.
fn begin_hearing(
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

/// A writer of a service, with all that the store has.
fn relay_writer(
    core: &mut Participant,
    store: &[KeptChange],
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
    changes: &[KeptChange],
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
