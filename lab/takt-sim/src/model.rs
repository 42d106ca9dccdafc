//! Model of the guarantees of DDS, as simple as possible and independent of the implementation.
//!
//! # Matching
//! A writer and a reader of one topic match if they have a partition in common and the writer
//! offers at least what the reader requests. They have one in common if a name of one side equals a
//! name of the other or matches a pattern of the other (DDS 1.4 §2.2.3.13). RELIABLE is more than
//! BEST_EFFORT, TRANSIENT_LOCAL is more than VOLATILE (DDS 1.4 §2.2.3).
//!
//! # Delivery
//! Guarantees about samples begin when both sides know of the match. The match ends when either
//! side considers the other as gone. A later match is a new one. Within a match:
//! - no sample arrives twice, and samples arrive in the order in which they were written;
//! - RELIABLE and KEEP_ALL on both sides: every sample written since the match arrives. If an older
//!   sample arrives, every sample since that one arrives;
//! - RELIABLE otherwise: the newest samples of each instance arrive, as many as both histories
//!   hold;
//! - TRANSIENT_LOCAL on both sides: the same holds for earlier samples, as far as the writer's
//!   history holds them; it need not hold instances that were disposed and unregistered;
//! - BEST_EFFORT: no further guarantees.
//!
//! # Liveliness
//! A writer with a lease is alive for a reader as long as it asserts its liveliness within each
//! lease. For an AUTOMATIC writer, its living participant does so. A manual writer does so by
//! writing, so that it is not alive in the end, after all writes (DDS 1.4 §2.2.3.11). Without
//! faults, no writer loses its liveliness before its lease ends.
//!
//! # Deadline
//! While an instance is alive, a writer that does not write it for one period is notified, and so
//! is a reader that receives no sample of it for one period. Each such period gives one
//! notification, and nothing else does (DDS 1.4 §2.2.3.7).
//!
//! # Lifespan
//! No reader takes a sample whose lifespan has expired by the reader's wall clock, counted from the
//! source timestamp. Samples that were written before a match are then not guaranteed. Without
//! faults and with synchronized clocks, every other sample arrives if its lifespan exceeds the time
//! to repair a loss (DDS 1.4 §2.2.3.16).
//!
//! # Order of several writers
//! BY_SOURCE_TIMESTAMP: no sample of an instance follows one with a later source timestamp. The
//! timestamps of one writer never decrease. Of two samples with equal timestamps, that of the lower
//! GUID is the later one. In the end the last sample of an instance has arrived, whichever writer
//! wrote it. Late samples are dropped, so there are no further guarantees for several writers. None
//! of this holds for an instance with an owner (DDS 1.4 §2.2.3.17).
//! # Content filters
//! A reader with a filter receives only samples that pass it, and of these the same as without a
//! filter. Changes of the instance state are not filtered (DDS 1.4 §2.2.2.3.3). New parameters
//! apply to the samples that arrive from then on. Writers that filter use the former parameters
//! until they receive the new ones.
//!
//! # Latency budget
//! A sample leaves its writer at the latest one latency budget after the write (DDS 1.4 §2.2.3.8).
//!
//! # Filter by time
//! No sample of an alive instance is shown less than the minimum separation after the previous one.
//! With RELIABLE, only the newest sample of each instance is then guaranteed, at most one
//! separation late (DDS 1.4 §2.2.3.12).
//!
//! # Instances that are not alive
//! Their samples stay for the delay that the reader requests, and no longer. A reader that takes
//! more often loses none (DDS 1.4 §2.2.3.22).
//!
//! # Ownership
//! With EXCLUSIVE, a reader takes the samples of an instance only from its owner. The owner is the
//! strongest of the writers that have written the instance; of equal ones it is the one with the
//! lowest GUID. A writer that has ended, is not alive, has unregistered the instance or has missed
//! its deadline owns nothing until it writes again (DDS 1.4 §2.2.3.9.2).
//!
//! # Presentation
//! The changes that a writer, or with scope GROUP all writers of a publisher, makes between the
//! beginning and the end of coherent changes appear in one take, or one access, or never, and not
//! before the end. If all of them were written within the match, and both sides keep all, they
//! appear. With GROUP and ordered access, the changes of a publisher appear in the order of
//! writing, over all readers (DDS 1.4 §2.2.3.6).
//!
//! # Instances
//! The last change of its only writer determines the state of an instance: a sample makes it ALIVE,
//! a disposal NOT_ALIVE_DISPOSED, which lasts until the next sample. It is NOT_ALIVE_NO_WRITERS if
//! it was ALIVE and its writer unregistered it, ended, or is not alive (DDS 1.4 §2.2.2.5.1.3). A
//! reader that does not know an instance, or for which it had ended for good, is not notified that
//! it has no writers.

use takt_core::{ChangeKind, InstanceState};
use takt_wire::Guid;
use takt_wire::qos::{LivelinessKind, Presentation};

use crate::partitions;
use crate::scenario::QosPlan;

/// Unlimited `RESOURCE_LIMITS.max_samples` in the core.
const DEFAULT_MAX_SAMPLES: u32 = 4096;

/// Reports whether a writer and a reader of the same topic match.
#[must_use]
pub fn matches(writer: &QosPlan, reader: &QosPlan) -> bool {
    let reliable = writer.reliable || !reader.reliable;
    let durable = writer.transient_local || !reader.transient_local;
    let lively = match (&writer.liveliness, &reader.liveliness) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(offered), Some(requested)) => offered.kind >= requested.kind && offered.lease <= requested.lease,
    };
    let timely = reader.deadline.is_none_or(|period| writer.deadline.is_some_and(|offered| offered <= period));
    let owned = writer.strength.is_some() == reader.strength.is_some();
    let quick = writer.budget <= reader.budget;
    let ordered = writer.by_source || !reader.by_source;
    let near = partitions::have_common(writer.partition, reader.partition);
    reliable && durable && ordered && quick && lively && timely && owned && near
}

/// Reports whether a sample passes the reader's filter.
#[must_use]
pub fn wants(reader: &QosPlan, number: u32, instance: u8) -> bool {
    reader.filter.is_none_or(|filter| filter.passes(number, instance))
}

/// Reports whether the first of two writers, each with its GUID, owns an instance that both write.
#[must_use]
pub fn outranks(first: (&QosPlan, Guid), second: (&QosPlan, Guid)) -> bool {
    let (strong, weak) = (first.0.strength, second.0.strength);
    strong > weak || (strong == weak && first.1 < second.1)
}

/// Reports whether a writer is alive after it has written nothing for longer than any lease.
#[must_use]
pub fn is_alive_at_rest(writer: &QosPlan) -> bool {
    writer.liveliness.is_none_or(|liveliness| liveliness.kind == LivelinessKind::Automatic)
}

/// Reports whether an instance may be in `state` after these changes of its only writer.
/// `is_alive`: the writer is alive. `is_complete`: every change arrives, otherwise only the last
/// one must.
#[must_use]
pub fn may_be(state: InstanceState, changes: &[ChangeKind], is_alive: bool, is_complete: bool) -> bool {
    let Some(last) = changes.last() else { return false };
    match last {
        ChangeKind::Alive if is_alive => state == InstanceState::Alive,
        ChangeKind::Alive => state == InstanceState::NotAliveNoWriters,
        ChangeKind::Disposed | ChangeKind::DisposedUnregistered => state == InstanceState::NotAliveDisposed,
        ChangeKind::Unregistered if !is_complete => state != InstanceState::Alive,
        ChangeKind::Unregistered => {
            let before = changes.iter().rev().find(|kind| **kind != ChangeKind::Unregistered);
            let disposed = before.is_some_and(|kind| *kind != ChangeKind::Alive);
            state == if disposed { InstanceState::NotAliveDisposed } else { InstanceState::NotAliveNoWriters }
        }
    }
}

/// Reports whether PRESENTATION requests coherent or ordered access.
#[must_use]
pub fn is_coherent_or_ordered(presentation: &Presentation) -> bool {
    presentation.coherent_access || presentation.ordered_access
}

/// Reports whether samples are retransmitted until they arrive.
#[must_use]
pub fn is_reliable(writer: &QosPlan, reader: &QosPlan) -> bool {
    writer.reliable && reader.reliable
}

/// Reports whether every single sample arrives.
#[must_use]
pub fn is_complete(writer: &QosPlan, reader: &QosPlan) -> bool {
    is_reliable(writer, reader) && writer.keep_last.is_none() && reader.keep_last.is_none()
}

/// Returns how many of an instance's newest samples arrive at least; `None` for all.
#[must_use]
pub fn depth(writer: &QosPlan, reader: &QosPlan) -> Option<u32> {
    [writer.keep_last, reader.keep_last, reader.separation.map(|_| 1)].into_iter().flatten().min()
}

/// Returns the number up to which samples need not arrive, if the writer had written `written`
/// samples at the match.
#[must_use]
pub fn floor(writer: &QosPlan, reader: &QosPlan, written: u32) -> u32 {
    if writer.transient_local && reader.transient_local && writer.lifespan.is_none() {
        written.saturating_sub(writer.max_samples.unwrap_or(DEFAULT_MAX_SAMPLES))
    } else {
        written
    }
}
