//! Measurement of the egress queues: marks that select them, order of service, and depths.
//!
//! Streams that together exceed the egress show which one is served first. The depth of a queue is
//! the number of frames that arrive after the last one was sent, when a stream of twice the rate
//! has filled the queue.

use std::fmt;
use std::time::Duration;

use super::probes::{Record, Stream, wire_bits};
use super::{Bench, EntryOutput, LONG, MeasureError, PLAIN, SHORT, entry};
use crate::model::{Queue, QueueSelection};

/// Duration for which streams compete.
const CONTEST: Duration = Duration::from_secs(1);
/// Duration of the measurement of the egress.
const EGRESS_TIME: Duration = Duration::from_millis(600);
/// Share of frames that a stream served first may lose: its first frames arrive before the egress
/// is full.
const LOSS_SERVED_MAX: f64 = 0.01;
/// Minimum share of frames that a stream served last loses; alternatively, the factor by which it
/// waits longer.
const LOSS_STARVED_MIN: f64 = 0.1;
const LATER: u64 = 4;
/// Lost share of a burst of twice the rate from which the queue must have been full long before its
/// end.
const OVERFULL: f64 = 0.3;
/// Minimum and maximum number of frames of a burst.
const BURST_MIN: u32 = 400;
const BURST_MAX: u32 = 25_600;
/// Number of valid bursts per depth, and maximum number of bursts sent.
const REPEATS: usize = 7;
const REPEATS_MAX: usize = 21;
/// Factor in percent by which the last quarter of a burst may take longer than planned; a slower
/// burst is invalid.
const PACE: u64 = 125;
/// Number of attempts, of which the best counts. A processor taken by another program delays frames
/// of every class, which adds losses and never removes any.
const ATTEMPTS: usize = 3;

/// Effect of a mark: whether it selects a queue that is served before the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The mark selects such a queue.
    First,
    /// The mark has no effect.
    None,
    /// The switch refuses the action.
    Refused,
    /// The candidate has no such mark.
    Untried,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::First => "has an effect",
            Self::None => "has no effect",
            Self::Refused => "is refused",
            Self::Untried => "was not tried",
        })
    }
}

/// Returns the marks of a queue as text.
fn words(selection: QueueSelection) -> String {
    let queue = selection.set_queue.map(|queue| format!("queue {queue}"));
    let dscp = selection.dscp.map(|dscp| format!("DSCP {dscp}"));
    queue.into_iter().chain(dscp).collect::<Vec<_>>().join(", ")
}

/// Range of several measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Minimum.
    pub min: u32,
    /// Lower quartile, which is used in the model.
    pub lower_quartile: u32,
    /// Maximum.
    pub max: u32,
    /// Whether nothing was lost, so that the true value may be higher.
    pub is_at_least: bool,
}

/// Number of frames that a queue holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depths {
    /// Depth in frames of [`LONG`] octets.
    pub long: Range,
    /// Depth in frames of [`SHORT`] octets.
    pub short: Range,
}

/// A queue that a mark reaches.
#[derive(Debug, Clone)]
pub struct Class {
    /// Marks of the candidate that have an effect.
    pub selection: QueueSelection,
    /// Effect of SET_QUEUE.
    pub by_set_queue: Effect,
    /// Effect of DSCP.
    pub by_dscp: Effect,
    /// Whether it is the queue of control traffic.
    pub is_control: bool,
    /// Measured depths.
    pub depths: Option<Depths>,
}

/// Order of service of two adjacent queues.
#[derive(Debug, Clone)]
pub struct Order {
    /// Lost share of the stream in the more urgent queue, at 95 % of the egress.
    pub urgent_lost: f64,
    /// Lost share of the stream in the other queue, at 50 %.
    pub other_lost: f64,
}

impl Order {
    /// Reports whether the more urgent queue is served with strict priority.
    pub fn is_strict(&self) -> bool {
        self.urgent_lost <= LOSS_SERVED_MAX && self.other_lost >= LOSS_STARVED_MIN
    }
}

/// Reports whether a stream is served before another one.
fn is_first(one: &Record, other: &Record) -> bool {
    let median = |record: &Record| record.delays().get(record.arrived_count() / 2).copied().unwrap_or(u64::MAX);
    one.lost() <= LOSS_SERVED_MAX && (other.lost() >= LOSS_STARVED_MIN || median(other) / LATER > median(one))
}

/// Returns the rate of the egress in bit/s.
pub(super) fn egress_rate(bench: &mut Bench<'_>) -> Result<u64, MeasureError> {
    bench.require(entry::PLAIN, EntryOutput::Out(PLAIN))?;
    // More frames than any sender can send in this time.
    let period_ns = 20_000;
    let count = (EGRESS_TIME.as_nanos() as u64 / period_ns) as u32;
    let record = bench.run_one(Stream { entry: entry::PLAIN, len: LONG, period_ns, count })?;
    let Some(rate_bps) = rate_of(&record) else {
        return Err(MeasureError::Switch("no frames arrive at the second probe".to_owned()));
    };
    bench.report(&format!(
        "the egress forwards {rate_bps} bit/s, {:.1} % of {count} frames are lost",
        100.0 * record.lost()
    ));
    if record.lost() < LOSS_STARVED_MIN {
        let what = format!(
            "the egress forwards all that the first probe sends, {rate_bps} bit/s: connect the second probe to a slower port"
        );
        return Err(MeasureError::Switch(what));
    }
    Ok(rate_bps)
}

/// Returns the rate between the first and the last arrival of the second half.
fn rate_of(record: &Record) -> Option<u64> {
    let mut times: Vec<u64> = record.arrived.iter().copied().filter(|time| *time > 0).collect();
    times.sort_unstable();
    let half = &times[times.len() / 2..];
    let span = half.last()?.checked_sub(*half.first()?).filter(|span| *span > 0)?;
    Some((half.len() as u64 - 1) * wire_bits(LONG) * 1_000_000_000 / span)
}

/// Tries each mark of each candidate against unmarked frames.
pub(super) fn reached(bench: &mut Bench<'_>, rate_bps: u64) -> Result<Vec<Class>, MeasureError> {
    let model = bench.settings.candidates.clone();
    let control = model.control.iter().map(|queue| (queue, true));
    let candidates: Vec<(&Queue, bool)> = model.queues.iter().map(|queue| (queue, false)).chain(control).collect();
    let mut classes = Vec::new();
    for (Queue { selection, .. }, is_control) in candidates {
        let set_queue = QueueSelection { dscp: None, ..*selection };
        let dscp = QueueSelection { set_queue: None, ..*selection };
        let by_set_queue =
            if selection.set_queue.is_some() { contest(bench, rate_bps, set_queue)? } else { Effect::Untried };
        let by_dscp = if selection.dscp.is_some() { contest(bench, rate_bps, dscp)? } else { Effect::Untried };
        let found = QueueSelection {
            set_queue: selection.set_queue.filter(|_| by_set_queue == Effect::First),
            dscp: selection.dscp.filter(|_| by_dscp == Effect::First),
        };
        bench.report(&format!("{}: SET_QUEUE {by_set_queue}, DSCP {by_dscp}", words(*selection)));
        if found != PLAIN {
            classes.push(Class { selection: found, by_set_queue, by_dscp, is_control, depths: None });
        }
    }
    if classes.iter().all(|class| class.is_control) {
        let what = "neither SET_QUEUE nor DSCP gets a frame into a queue that is served first: make queues before (takt sdn queues apply)";
        return Err(MeasureError::Switch(what.to_owned()));
    }
    Ok(classes)
}

/// Runs a marked and a plain stream, each with nine tenths of the egress rate.
fn contest(bench: &mut Bench<'_>, rate_bps: u64, selection: QueueSelection) -> Result<Effect, MeasureError> {
    bench.require(entry::PLAIN, EntryOutput::Out(PLAIN))?;
    if !bench.set(entry::MARKED, EntryOutput::Out(selection))? {
        return Ok(Effect::Refused);
    }
    let of = |entry| Stream::of_rate(entry, LONG, rate_bps / 10 * 9, CONTEST);
    for _ in 0..ATTEMPTS {
        let records = bench.run(&[of(entry::MARKED), of(entry::PLAIN)])?;
        if is_first(&records[0], &records[1]) {
            return Ok(Effect::First);
        }
    }
    Ok(Effect::None)
}

/// Measures the order of service of adjacent queues.
pub(super) fn order(bench: &mut Bench<'_>, rate_bps: u64, classes: &[Class]) -> Result<Vec<Order>, MeasureError> {
    let mut orders = Vec::new();
    for pair in classes.windows(2) {
        bench.require(entry::MARKED, EntryOutput::Out(pair[0].selection))?;
        bench.require(entry::OTHER, EntryOutput::Out(pair[1].selection))?;
        let of = |entry, percent| Stream::of_rate(entry, LONG, rate_bps / 100 * percent, CONTEST);
        let streams = [of(entry::MARKED, 95), of(entry::OTHER, 50)];
        let mut order = Order { urgent_lost: 1.0, other_lost: 0.0 };
        for _ in 0..ATTEMPTS {
            let records = bench.run(&streams)?;
            let found = Order { urgent_lost: records[0].lost(), other_lost: records[1].lost() };
            if found.urgent_lost < order.urgent_lost {
                order = found;
            }
            if order.is_strict() {
                break;
            }
        }
        let discipline = if order.is_strict() { "strict priority" } else { "no strict priority" };
        bench.report(&format!(
            "{} before {}: {discipline}, {:.1} % and {:.1} % lost",
            words(pair[0].selection),
            words(pair[1].selection),
            100.0 * order.urgent_lost,
            100.0 * order.other_lost
        ));
        orders.push(order);
    }
    Ok(orders)
}

/// Measures the depth of each queue.
pub(super) fn depths(bench: &mut Bench<'_>, rate_bps: u64, classes: &mut [Class]) -> Result<(), MeasureError> {
    for class in classes {
        bench.require(entry::MARKED, EntryOutput::Out(class.selection))?;
        let (long, short) = (depth(bench, rate_bps, LONG)?, depth(bench, rate_bps, SHORT)?);
        bench.report(&format!(
            "{} holds {} to {} frames of {LONG} octets, {} to {} of {SHORT}",
            words(class.selection),
            long.min,
            long.max,
            short.min,
            short.max
        ));
        class.depths = Some(Depths { long, short });
    }
    Ok(())
}

/// Sends bursts of twice the rate; the first length that suffices is repeated.
fn depth(bench: &mut Bench<'_>, rate_bps: u64, len: usize) -> Result<Range, MeasureError> {
    let burst = |count| {
        let period_ns = wire_bits(len) * 1_000_000_000 / (2 * rate_bps).max(1);
        Stream { entry: entry::MARKED, len, period_ns, count }
    };
    let mut count = BURST_MIN;
    loop {
        let record = bench.run_one(burst(count))?;
        if record.lost() >= OVERFULL {
            break;
        }
        if count == BURST_MAX {
            let depth = waiting(&record);
            return Ok(Range { min: depth, lower_quartile: depth, max: depth, is_at_least: true });
        }
        count *= 2;
    }
    let mut found = Vec::new();
    for _ in 0..REPEATS_MAX {
        let stream = burst(count);
        let record = bench.run_one(stream)?;
        if is_paced(&record, stream.period_ns) {
            found.push(waiting(&record));
        }
        if found.len() == REPEATS {
            break;
        }
    }
    found.sort_unstable();
    let [Some(min), Some(max)] = [found.first(), found.last()].map(Option::<&u32>::copied) else {
        return Err(MeasureError::Switch("no burst can be sent fast enough: use a slower egress".to_owned()));
    };
    Ok(Range { min, lower_quartile: found[found.len() / 4], max, is_at_least: false })
}

/// Reports whether the sender kept its pace to the end, so that the queue was full then.
fn is_paced(record: &Record, period_ns: u64) -> bool {
    let last_quarter = &record.sent[record.sent.len() / 4 * 3..];
    let span = last_quarter.iter().max().zip(last_quarter.iter().min());
    span.is_some_and(|(last, first)| (last - first) * 100 <= last_quarter.len() as u64 * period_ns * PACE)
}

/// Returns the number of frames that arrived after the last one was sent and forwarded, without the
/// frame in transmission.
fn waiting(record: &Record) -> u32 {
    let Some(last) = record.sent.iter().max() else { return 0 };
    let forwarding = record.delays().first().copied().unwrap_or(0);
    let behind = record.arrived.iter().filter(|time| **time > last + forwarding).count();
    u32::try_from(behind).unwrap_or(u32::MAX).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a queue of `capacity` frames with head drop, served once per two ticks of 10 ns.
    /// One frame arrives per tick.
    fn overloaded(capacity: usize, count: usize) -> Record {
        let mut record = Record { sent: (1..=count as u64).map(|n| n * 10).collect(), arrived: vec![0; count] };
        let mut queue = std::collections::VecDeque::new();
        for tick in 0.. {
            if tick < count {
                queue.push_back(tick);
                if queue.len() > capacity {
                    queue.pop_front();
                }
            }
            if tick % 2 == 0 {
                match queue.pop_front() {
                    Some(frame) => record.arrived[frame] = (tick as u64 + 1) * 10 + 1,
                    None => break,
                }
            }
        }
        record
    }

    #[test]
    fn depth_of_a_full_queue_is_at_most_its_capacity() {
        for capacity in [1_usize, 10, 64, 100] {
            let found = waiting(&overloaded(capacity, 401)) as usize;
            assert!((capacity.saturating_sub(2)..=capacity).contains(&found), "{found} of {capacity}");
        }
    }

    #[test]
    fn burst_that_slows_down_at_its_end_is_invalid() {
        let sent = |factor: u64| {
            (0..100_u64).map(|n| 1 + if n < 80 { n * 10 } else { 800 + (n - 80) * 10 * factor }).collect()
        };
        assert!(is_paced(&Record { sent: sent(1), arrived: Vec::new() }, 10));
        assert!(!is_paced(&Record { sent: sent(3), arrived: Vec::new() }, 10));
        assert!(!is_paced(&Record::default(), 10));
    }

    #[test]
    fn stream_without_losses_is_first_only_if_the_other_one_loses_frames() {
        let record = |lost: usize, delay: u64| Record {
            sent: vec![1; 100],
            arrived: (0..100).map(|n| if n < lost { 0 } else { 1 + delay }).collect(),
        };
        assert!(is_first(&record(0, 10), &record(40, 10)), "the other one loses");
        assert!(is_first(&record(0, 10), &record(0, 1000)), "a deep queue loses nothing");
        assert!(!is_first(&record(0, 10), &record(0, 12)), "both share a queue without loss");
        assert!(!is_first(&record(40, 10), &record(40, 10)), "both share a queue");
        assert!(!is_first(&record(100, 0), &record(0, 0)), "nothing arrives");
    }

    #[test]
    fn rate_is_that_of_the_second_half() {
        let arrived = (0..100).map(|n| 1_000_000 + n * if n < 50 { 1_000 } else { 615_200 }).collect();
        let rate_bps = rate_of(&Record { sent: vec![1; 100], arrived }).expect("frames arrive");
        assert!((19_900_000..=20_100_000).contains(&rate_bps), "{rate_bps}");
        assert_eq!(rate_of(&Record::default()), None);
    }
}
