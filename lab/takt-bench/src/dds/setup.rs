//! Participant settings and QoS for a [`LinkSpec`].

use crate::error::Result;
use crate::link::Idle;
use crate::spec::{Durability, History, LinkSpec, Runtime, Transport};
use std::time::Duration;
use takt::qos::{self, DataReaderQos, DataWriterQos};
use takt::{DomainParticipant, DomainParticipantBuilder};

/// Maximum blocking time of a reliable `write`.
const BLOCKING_TIME_MAX: Duration = Duration::from_secs(10);
/// Memory for the samples of a KEEP_ALL history.
const HISTORY_BYTES_MAX: usize = 16 << 20;
/// Minimum and maximum number of samples in a KEEP_ALL history.
const HISTORY_SAMPLES: (usize, usize) = (8, 4096);

/// Creates the participant.
///
/// # Errors
/// The interface does not exist, or Takt refused the settings.
pub(crate) fn participant(spec: &LinkSpec) -> Result<DomainParticipant> {
    Ok(builder(spec)?.build()?)
}

/// Returns the configured builder of the participant.
///
/// # Errors
/// The interface does not exist, or the settings are invalid.
pub(crate) fn builder(spec: &LinkSpec) -> Result<DomainParticipantBuilder> {
    let peer = spec.peer.map_or_else(|| spec.address(), Ok)?;
    let mut builder = match &spec.preparation {
        Some(preparation) => (preparation.builder)()?,
        None => DomainParticipant::builder(spec.domain),
    };
    if let Some(server) = &spec.discovery_server {
        builder = builder.discovery_servers([server.as_str()]);
    } else if !spec.preparation.as_ref().is_some_and(|preparation| preparation.has_peers) {
        builder = builder.peers([peer.to_string()]);
    }
    if let Transport::Named(transports) = &spec.transport {
        builder = builder.user_data_transports([transports.as_str()]);
    }
    if let Some(readers) = spec.multicast_readers_min {
        builder = builder.multicast_readers_min(readers);
    }
    if let Some(directory) = &spec.security {
        builder = builder.security_directory(directory.as_str());
    }
    if let Some(plan) = &spec.timing_plan {
        builder = builder.timing_plan(plan.clone());
    }
    Ok(builder
        .name(&spec.name)
        .interfaces([spec.interface.as_str()])
        .shared_memory(spec.transport == Transport::Shm)
        .runtime(match spec.runtime {
            Runtime::Inline => takt::Runtime::Inline,
            Runtime::Shared => takt::Runtime::Shared,
        })
        .idle(match spec.idle {
            Idle::Block => takt::Idle::Block,
            Idle::Spin => takt::Idle::Spin,
        }))
}

fn durability(spec: &LinkSpec) -> qos::Durability {
    match spec.durability {
        Durability::Volatile => qos::Durability::Volatile,
        Durability::TransientLocal => qos::Durability::TransientLocal,
        Durability::Transient => qos::Durability::Transient,
        Durability::Persistent => qos::Durability::Persistent,
    }
}

/// Returns the DURABILITY_SERVICE policy: the service keeps as many samples as the writer.
fn durability_service(spec: &LinkSpec) -> qos::DurabilityService {
    match spec.durability {
        Durability::Volatile | Durability::TransientLocal => qos::DurabilityService::default(),
        Durability::Transient | Durability::Persistent => {
            qos::DurabilityService { history: history(spec), ..qos::DurabilityService::default() }
        }
    }
}

fn reliability(spec: &LinkSpec) -> qos::Reliability {
    qos::Reliability {
        kind: if spec.reliable { qos::ReliabilityKind::Reliable } else { qos::ReliabilityKind::BestEffort },
        max_blocking_time: BLOCKING_TIME_MAX.into(),
    }
}

fn history(spec: &LinkSpec) -> qos::History {
    match spec.history {
        History::KeepAll => qos::History::KeepAll,
        History::KeepLast(depth) => qos::History::KeepLast(depth),
    }
}

fn latency_budget(spec: &LinkSpec) -> qos::LatencyBudget {
    qos::LatencyBudget { duration: spec.latency_budget.into() }
}

/// Returns the limits of a KEEP_ALL history: as many samples as a fixed amount of memory holds.
fn resource_limits(spec: &LinkSpec) -> qos::ResourceLimits {
    let limit = match spec.history {
        History::KeepAll => {
            let samples = HISTORY_BYTES_MAX / spec.size_max.max(1);
            Some(samples.clamp(HISTORY_SAMPLES.0, HISTORY_SAMPLES.1) as u32)
        }
        History::KeepLast(_) => None,
    };
    qos::ResourceLimits { max_samples: limit, max_instances: None, max_samples_per_instance: limit }
}

pub(crate) fn writer_qos(spec: &LinkSpec) -> DataWriterQos {
    DataWriterQos {
        latency_budget: latency_budget(spec),
        reliability: reliability(spec),
        history: history(spec),
        resource_limits: resource_limits(spec),
        durability: durability(spec),
        durability_service: durability_service(spec),
        ..DataWriterQos::default()
    }
}

pub(crate) fn reader_qos(spec: &LinkSpec) -> DataReaderQos {
    DataReaderQos {
        latency_budget: latency_budget(spec),
        reliability: reliability(spec),
        history: history(spec),
        resource_limits: resource_limits(spec),
        durability: durability(spec),
        ..DataReaderQos::default()
    }
}
