//! What DDS promises, said as simply as possible and without a look at the implementation.
//!
//! # Matching
//! A writer and a reader of one topic match if they are in the same partition and the writer offers at least what the
//! reader asks for: RELIABLE is more than BEST_EFFORT, TRANSIENT_LOCAL is more than VOLATILE (DDS 1.4 §2.2.3).
//!
//! # Delivery
//! Both sides have to know of the match before anything is promised about their samples; the match ends when either side
//! believes that the other has gone, and a later one is a new match. Within a match:
//! - nothing arrives twice, and what arrives is in the order in which it was written;
//! - RELIABLE and KEEP_ALL on both sides: everything that was written since arrives;
//! - RELIABLE otherwise: of each instance the newest samples arrive, as many as both histories hold;
//! - TRANSIENT_LOCAL on both sides: the same holds for what was written before, as far as the writer's history holds it;
//! - BEST_EFFORT: nothing more.

use crate::scenario::QosPlan;

/// What the core takes for an unlimited `RESOURCE_LIMITS.max_samples`.
const DEFAULT_MAX_SAMPLES: u32 = 4096;

/// Whether they match, being on the same topic.
#[must_use]
pub fn matches(writer: &QosPlan, reader: &QosPlan) -> bool {
    let reliable = writer.reliable || !reader.reliable;
    let durable = writer.transient_local || !reader.transient_local;
    reliable && durable && writer.partition == reader.partition
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
    [writer.keep_last, reader.keep_last].into_iter().flatten().min()
}

/// Samples up to this number need not arrive, if the writer had written `written` of them when the match was made.
#[must_use]
pub fn floor(writer: &QosPlan, reader: &QosPlan, written: u32) -> u32 {
    if writer.transient_local && reader.transient_local {
        written.saturating_sub(writer.max_samples.unwrap_or(DEFAULT_MAX_SAMPLES))
    } else {
        written
    }
}
