//! Many participants in one process, for discovery and memory measurements; and a participant that
//! discovers many.
//!
//! Each participant has writers of the topics `Data0`, `Data1` and so on. Inline participants are
//! driven one after the other until none has work; then the thread sleeps for a [`STEP`].

use crate::dds::setup;
use crate::error::Result;
use crate::machine::Memory;
use crate::payload::Blob;
use crate::signal::stopped;
use crate::spec::{LinkSpec, Runtime};
use std::time::Duration;
use takt::qos::{DataReaderQos, DataWriterQos, Durability, History, PublisherQos, SubscriberQos, TopicQos};
use takt::{DataReader, DataWriter, DdsType, DomainParticipant, Limits};

/// Sleep of the thread when all inline participants are idle.
const STEP: Duration = Duration::from_millis(1);
/// Maximum number of steps of an inline participant before the next one is driven.
const STEPS_PER_CALL: usize = 64;
/// Octets per instance that the limits allow in addition to its data.
const INSTANCE_ROOM: usize = 1024;
/// Topic of the instances.
const INSTANCES: &str = "Instances";

/// Sample of an instance.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(name = "Keyed", extensibility = "final")]
struct Keyed {
    #[dds(key)]
    id: u32,
    data: Vec<u8>,
}

/// Size of a crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Number of participants.
    pub participants: usize,
    /// Number of writers of each participant.
    pub endpoints: usize,
    /// Number of instances of the first participant, one sample each.
    pub instances: usize,
    /// Octets of data of each instance.
    pub size: usize,
}

/// Resident memory added by each part, KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Resident memory before the first participant.
    pub bare: u64,
    /// Added by participants.
    pub participants: u64,
    /// Added by endpoints.
    pub endpoints: u64,
    /// Added by instances.
    pub instances: u64,
}

/// Participants with their endpoints and instances.
pub struct Crowd {
    participants: Vec<DomainParticipant>,
    _writers: Vec<DataWriter<Blob>>,
    _instances: Option<DataWriter<Keyed>>,
    /// Memory added by its parts.
    pub added: Added,
    is_inline: bool,
}

/// Returns the name of a topic.
fn topic_of(endpoint: usize) -> String {
    format!("Data{endpoint}")
}

impl Crowd {
    /// Creates the crowd.
    ///
    /// # Errors
    /// Takt refused.
    pub fn new(spec: &LinkSpec, plan: &Plan) -> Result<Self> {
        let resident = || -> Result<u64> { Ok(Memory::now()?.resident_kib) };
        let bare = resident()?;
        let defaults = Limits::default();
        let room = plan.instances * (plan.size + INSTANCE_ROOM);
        let limits = Limits {
            endpoint_memory_bytes: defaults.endpoint_memory_bytes.max(room),
            max_participants: defaults.max_participants.max(2 * plan.participants + 16),
            max_participants_per_address: defaults.max_participants_per_address.max(2 * plan.participants + 16),
            max_endpoints_per_participant: defaults.max_endpoints_per_participant.max(2 * plan.endpoints + 16),
            ..defaults
        };
        let mut participants = Vec::new();
        for _ in 0..plan.participants {
            participants.push(setup::builder(spec)?.limits(limits).build()?);
        }
        let with_participants = resident()?;
        let mut writers = Vec::new();
        for participant in &participants {
            writers.extend(self::writers(spec, plan, participant)?);
        }
        let with_endpoints = resident()?;
        let instances = match plan.instances {
            0 => None,
            count => Some(hold_instances(&participants[0], count, plan.size)?),
        };
        let added = Added {
            bare,
            participants: with_participants.saturating_sub(bare),
            endpoints: with_endpoints.saturating_sub(with_participants),
            instances: resident()?.saturating_sub(with_endpoints),
        };
        let is_inline = spec.runtime == Runtime::Inline;
        Ok(Self { participants, _writers: writers, _instances: instances, added, is_inline })
    }

    /// Drives inline participants for one pass, and sleeps if none had work.
    ///
    /// # Errors
    /// Takt failed.
    pub fn step(&self) -> Result<()> {
        let mut is_idle = true;
        if self.is_inline {
            for participant in &self.participants {
                for _ in 0..STEPS_PER_CALL {
                    if !participant.spin_once(Duration::ZERO)? {
                        break;
                    }
                    is_idle = false;
                }
            }
        }
        if is_idle {
            std::thread::sleep(STEP);
        }
        Ok(())
    }
}

/// Creates a writer that keeps the last sample of each instance for late joiners.
fn hold_instances(participant: &DomainParticipant, count: usize, size: usize) -> Result<DataWriter<Keyed>> {
    let topic = participant.create_topic::<Keyed>(INSTANCES, TopicQos::default())?;
    let qos = DataWriterQos {
        durability: Durability::TransientLocal,
        history: History::KeepLast(1),
        resource_limits: takt::qos::ResourceLimits {
            max_samples: u32::try_from(count).ok(), // tidy-allow(dropped-cause): the options limit it
            max_instances: u32::try_from(count).ok(), // tidy-allow(dropped-cause): as above
            max_samples_per_instance: Some(1),
        },
        ..DataWriterQos::default()
    };
    let writer = participant.create_publisher(PublisherQos::default())?.create_datawriter(&topic, qos)?;
    let mut sample = Keyed { id: 0, data: Blob::filled(size).data };
    while (sample.id as usize) < count && !stopped() {
        writer.write(&sample)?;
        sample.id += 1;
    }
    Ok(writer)
}

/// Creates the writers of a participant, one of each topic.
fn writers(spec: &LinkSpec, plan: &Plan, participant: &DomainParticipant) -> Result<Vec<DataWriter<Blob>>> {
    let publisher = participant.create_publisher(PublisherQos::default())?;
    let writer = |endpoint| {
        let topic = participant.create_topic::<Blob>(&topic_of(endpoint), TopicQos::default())?;
        Ok(publisher.create_datawriter(&topic, setup::writer_qos(spec))?)
    };
    (0..plan.endpoints).map(writer).collect()
}

/// Creates the readers of a participant, one of each topic.
fn readers(spec: &LinkSpec, plan: &Plan, participant: &DomainParticipant) -> Result<Vec<DataReader<Blob>>> {
    let subscriber = participant.create_subscriber(SubscriberQos::default())?;
    let reader = |endpoint| {
        let topic = participant.create_topic::<Blob>(&topic_of(endpoint), TopicQos::default())?;
        let qos = DataReaderQos { history: History::KeepLast(1), ..setup::reader_qos(spec) };
        Ok(subscriber.create_datareader(&topic, qos)?)
    };
    (0..plan.endpoints).map(reader).collect()
}

/// Participant that discovers others: it has a reader of each topic.
pub struct Discoverer {
    participant: DomainParticipant,
    readers: Vec<DataReader<Blob>>,
    _writers: Vec<DataWriter<Blob>>,
}

impl Discoverer {
    /// Creates a seeker.
    ///
    /// # Errors
    /// Takt refused.
    pub fn new(spec: &LinkSpec, plan: &Plan) -> Result<Self> {
        let participant = setup::participant(spec)?;
        let readers = readers(spec, plan, &participant)?;
        Ok(Self { participant, readers, _writers: Vec::new() })
    }

    /// Creates a seeker that others discover as well: it also has a writer of each topic, which its
    /// own reader matches.
    ///
    /// # Errors
    /// Takt refused.
    pub fn in_mesh(spec: &LinkSpec, plan: &Plan) -> Result<Self> {
        let seeker = Self::new(spec, plan)?;
        let writers = writers(spec, plan, &seeker.participant)?;
        Ok(Self { _writers: writers, ..seeker })
    }

    /// Returns the number of writers matched over all topics.
    ///
    /// # Errors
    /// Takt failed.
    pub fn matched_writers(&self) -> Result<usize> {
        let mut found = 0;
        for reader in &self.readers {
            found += usize::try_from(reader.subscription_matched_status()?.current_count).unwrap_or(0);
        }
        Ok(found)
    }

    /// Drives the participant for a time.
    ///
    /// # Errors
    /// Takt failed.
    pub fn drive(&self, time: Duration, runtime: Runtime) -> Result<()> {
        match runtime {
            Runtime::Inline => drop(self.participant.spin_once(time)?),
            Runtime::Shared => std::thread::sleep(time),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeker_finds_each_writer_of_each_participant() {
        let domain = 229;
        let spec = LinkSpec { domain, runtime: Runtime::Shared, ..LinkSpec::default() };
        let plan = Plan { participants: 3, endpoints: 2, instances: 10, size: 16 };
        let crowd = Crowd::new(&spec, &plan).unwrap();
        let seeker = Discoverer::new(&spec, &plan).unwrap();
        takt_testkit::waiting::until("six writers", || {
            crowd.step().unwrap();
            seeker.matched_writers().unwrap() == 6
        });
        assert!(crowd.added.bare > 0);
    }

    #[test]
    fn members_of_a_mesh_discover_one_another() {
        let domain = 230;
        let spec = LinkSpec { domain, runtime: Runtime::Shared, ..LinkSpec::default() };
        let plan = Plan { participants: 3, endpoints: 2, instances: 0, size: 16 };
        let members: Vec<Discoverer> = (0..3).map(|_| Discoverer::in_mesh(&spec, &plan).unwrap()).collect();
        takt_testkit::waiting::until("six writers each", || {
            members.iter().all(|member| member.matched_writers().unwrap() == 6)
        });
    }
}
