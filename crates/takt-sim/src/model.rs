//! What DDS promises, said as simply as possible and without a look at the implementation.
//!
//! # Matching
//! A writer and a reader of one topic match if they have a partition in common, by name or by a pattern of one that the name of the
//! other matches (DDS 1.4 §2.2.3.13), and the writer offers at least what the
//! reader asks for: RELIABLE is more than BEST_EFFORT, TRANSIENT_LOCAL is more than VOLATILE (DDS 1.4 §2.2.3).
//!
//! # Delivery
//! Both sides have to know of the match before anything is promised about their samples; the match ends when either side
//! believes that the other has gone, and a later one is a new match. Within a match:
//! - nothing arrives twice, and what arrives is in the order in which it was written;
//! - RELIABLE and KEEP_ALL on both sides: everything that was written since arrives, and if something older does, everything
//!   that was written since that;
//! - RELIABLE otherwise: of each instance the newest samples arrive, as many as both histories hold;
//! - TRANSIENT_LOCAL on both sides: the same holds for what was written before, as far as the writer's history holds it;
//!   it need not hold instances that were disposed and unregistered;
//! - BEST_EFFORT: nothing more.
//!
//! # Liveliness
//! A writer with a lease is alive for a reader as long as it shows itself within each lease. An AUTOMATIC one does so while
//! its participant lives. A manual one does by what it writes, so it is not alive in the end, when nobody writes any more
//! (DDS 1.4 §2.2.3.11). Where nothing goes wrong no writer is taken for dead before its lease is over.
//!
//! # Deadline
//! While an instance is alive, a writer that does not write it for a period, and a reader that gets no sample of it for one,
//! are told, once for each such period; and not otherwise (DDS 1.4 §2.2.3.7).
//!
//! # Lifespan
//! No reader gets a sample whose lifespan is over by its own wall clock, counted from the source time stamp; nothing that was
//! written before a match is promised then. Every other sample arrives where nothing goes wrong and clocks agree, if its
//! lifespan is longer than it takes to repair a loss (DDS 1.4 §2.2.3.16).
//!
//! # Order of several writers
//! By source time stamp, which never runs back for one writer, no sample of an instance follows one that was written later; of
//! two written at once the one of the lower GUID is the later. In the end the last sample of an instance has arrived, of
//! whichever writer it is. What is late is dropped, so nothing else is promised of several writers, nor is any of this where an
//! instance has an owner (DDS 1.4 §2.2.3.17).
//! # Content filters
//! A reader with a filter gets no sample that does not pass, and of the others what it would get without; what happens to an
//! instance is not filtered (DDS 1.4 §2.2.2.3.3). When its parameters change, what arrives from then on is judged by the new ones, and
//! writers that filter go by the former ones until they hear of it.
//!
//! # Latency budget
//! A sample leaves its writer no later than the writer's budget after it was written (DDS 1.4 §2.2.3.8).
//!
//! # Filter by time
//! Of an instance that lives no sample is shown less than the separation after the last one. Of RELIABLE only the newest sample
//! of each instance is promised then, a separation late at most (DDS 1.4 §2.2.3.12).
//!
//! # Instances that are not alive
//! Their samples stay for the delay that the reader asks for, and no longer; so it has lost nothing if it takes more often
//! (DDS 1.4 §2.2.3.22).
//!
//! # Ownership
//! With EXCLUSIVE a reader takes an instance from its owner only: from the strongest of the writers that have written it, of
//! equal ones the one with the lowest GUID. A writer that has gone, is not alive, has unregistered the instance or has missed
//! its deadline owns nothing until it writes again (DDS 1.4 §2.2.3.9.2).
//!
//! # Presentation
//! What a writer, or with scope GROUP all writers of a publisher, write between the beginning and the end of coherent changes
//! is seen in one take, or one access, or never; and not before the end. Where all of it was written within the match, and both
//! sides keep all, it is seen. With GROUP and ordered access what is seen of a publisher is in the order of writing, over all
//! readers (DDS 1.4 §2.2.3.6).
//!
//! # Instances
//! The last change of its only writer decides the state of an instance: a sample makes it ALIVE, a disposal
//! NOT_ALIVE_DISPOSED, which lasts until the next sample; it is NOT_ALIVE_NO_WRITERS if it was ALIVE and its writer
//! unregistered it, is gone, or is not alive (DDS 1.4 §2.2.2.5.1.3). Nobody is told that an instance has no writers who does
//! not know it, or for whom it had ended for good.

use takt_core::{ChangeKind, InstanceState};
use takt_wire::Guid;
use takt_wire::qos::{LivelinessKind, Presentation};

use crate::partitions;
use crate::scenario::QosPlan;

/// What the core takes for an unlimited `RESOURCE_LIMITS.max_samples`.
const DEFAULT_MAX_SAMPLES: u32 = 4096;

/// Whether they match, being on the same topic.
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
    let near = partitions::meet(writer.partition, reader.partition);
    reliable && durable && ordered && quick && lively && timely && owned && near
}

/// Whether a sample passes the reader's filter.
#[must_use]
pub fn wants(reader: &QosPlan, number: u32, instance: u8) -> bool {
    reader.filter.is_none_or(|filter| filter.passes(number, instance))
}

/// Whether the first of two writers, each with its GUID, owns an instance that both write.
#[must_use]
pub fn outranks(first: (&QosPlan, Guid), second: (&QosPlan, Guid)) -> bool {
    let (strong, weak) = (first.0.strength, second.0.strength);
    strong > weak || (strong == weak && first.1 < second.1)
}

/// Whether a writer is alive when it has written nothing for longer than any lease.
#[must_use]
pub fn is_alive_at_rest(writer: &QosPlan) -> bool {
    writer.liveliness.is_none_or(|liveliness| liveliness.kind == LivelinessKind::Automatic)
}

/// Whether an instance may be in `state`, which only one writer ever wrote by these changes. `is_alive`: that writer is
/// alive. `is_complete`: every change of it arrives, else the last one.
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

/// Whether PRESENTATION makes a difference.
#[must_use]
pub fn is_presented(presentation: &Presentation) -> bool {
    presentation.coherent_access || presentation.ordered_access
}

/// Whether samples are repeated until they arrive.
#[must_use]
pub fn is_reliable(writer: &QosPlan, reader: &QosPlan) -> bool {
    writer.reliable && reader.reliable
}

/// Whether every single sample arrives.
#[must_use]
pub fn is_complete(writer: &QosPlan, reader: &QosPlan) -> bool {
    is_reliable(writer, reader) && writer.keep_last.is_none() && reader.keep_last.is_none()
}

/// How many of an instance's newest samples arrive at least; `None` for all.
#[must_use]
pub fn depth(writer: &QosPlan, reader: &QosPlan) -> Option<u32> {
    [writer.keep_last, reader.keep_last, reader.separation.map(|_| 1)].into_iter().flatten().min()
}

/// Samples up to this number need not arrive, if the writer had written `written` of them when the match was made.
#[must_use]
pub fn floor(writer: &QosPlan, reader: &QosPlan, written: u32) -> u32 {
    if writer.transient_local && reader.transient_local && writer.lifespan.is_none() {
        written.saturating_sub(writer.max_samples.unwrap_or(DEFAULT_MAX_SAMPLES))
    } else {
        written
    }
}
