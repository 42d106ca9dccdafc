//! Measurement of the forwarding time from the first probe to the second, idle and under load.
//!
//! The load is sent back out of its ingress port, so that no egress queue holds it.

use std::time::Duration;

use super::probes::{Record, Stream, wire_bits};
use super::{Bench, EntryOutput, LONG, MeasureError, entry};
use crate::model::QueueSelection;

/// Interval between two measured frames in ns.
const PERIOD_NS: u64 = 1_000_000;
/// Length of the shortest frame with a mark.
const SHORTEST: usize = super::probes::LEN_MIN;

/// Distribution of forwarding times in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spread {
    /// Number of frames that arrived.
    pub count: usize,
    /// Number of lost frames.
    pub lost: usize,
    /// Minimum.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Maximum.
    pub max: u64,
}

impl Spread {
    /// Computes the distribution of a record, less a time that does not belong to the switch.
    pub fn of(record: &Record, less_ns: u64) -> Self {
        let delays = record.delays();
        let at = |per_mille: usize| {
            let index = (delays.len() * per_mille).div_ceil(1000).saturating_sub(1);
            delays.get(index).map_or(0, |delay| delay.saturating_sub(less_ns))
        };
        let lost = record.sent_count() - delays.len();
        Self { count: delays.len(), lost, min: at(0), p50: at(500), p999: at(999), max: at(1000) }
    }
}

/// One measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Length of the measured frames in octets.
    pub len: usize,
    /// Length of the load's frames in octets, and their rate in frames per second; `None`: idle.
    pub load: Option<(usize, u32)>,
    /// Distribution of the times.
    pub spread: Spread,
}

/// Measures idle and under load, each with short and long frames.
pub(super) fn cells(bench: &mut Bench<'_>) -> Result<Vec<Cell>, MeasureError> {
    let most_urgent = bench.settings.candidates.queues.first().map(|queue| queue.selection);
    let dscp = most_urgent.and_then(|selection| selection.dscp);
    bench.require(entry::MARKED, EntryOutput::Out(QueueSelection { set_queue: None, dscp }))?;
    bench.require(entry::BACK, EntryOutput::Back)?;
    let (samples, load_fps) = (bench.settings.samples, bench.settings.load_fps);
    let mut cells = Vec::new();
    for load in [None, Some((SHORTEST, load_fps)), Some((LONG, load_fps))] {
        for len in [SHORTEST, LONG] {
            let probe = Stream { entry: entry::MARKED, len, period_ns: PERIOD_NS, count: samples };
            let mut streams = vec![probe];
            if let Some((len, fps)) = load {
                let time = Duration::from_nanos(PERIOD_NS * u64::from(samples));
                let count = u64::from(fps) * time.as_millis() as u64 / 1000;
                let period_ns = 1_000_000_000 / u64::from(fps.max(1));
                streams.push(Stream { entry: entry::BACK, len, period_ns, count: count as u32 });
            }
            let records = bench.run(&streams)?;
            let cable_ns = bench.settings.cable_bps.map_or(0, |bps| 2 * wire_bits(len) * 1_000_000_000 / bps.max(1));
            let spread = Spread::of(&records[0], cable_ns);
            if spread.count == 0 {
                return Err(MeasureError::Switch("no frame arrives at the second probe".to_owned()));
            }
            let under =
                load.map_or("at rest".to_owned(), |(len, fps)| format!("under {fps} frames of {len} octets a second"));
            let Spread { min, p50, p999, max, lost, .. } = spread;
            bench.report(&format!(
                "{len} octets {under}: min {min} ns, median {p50} ns, p99.9 {p999} ns, max {max} ns, {lost} lost"
            ));
            cells.push(Cell { len, load, spread });
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_has_the_order_statistics_and_counts_losses() {
        let mut record = Record { sent: vec![1_000; 2001], arrived: (1..=2000).map(|ns| 1_000 + ns).collect() };
        record.arrived.push(0);
        let spread = Spread::of(&record, 0);
        assert_eq!(spread, Spread { count: 2000, lost: 1, min: 1, p50: 1000, p999: 1998, max: 2000 });
        assert_eq!(Spread::of(&record, 1500).max, 500, "cables are not the switch");
        assert_eq!(Spread::of(&Record::default(), 0), Spread::default());
    }
}
