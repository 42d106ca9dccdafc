//! Cell of a campaign, and one measurement of it.

use super::parameter::Values;
use crate::sdn_overload::series::Series;
use crate::stats::Summary;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Workload with one system and one value of each parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Cell {
    /// Name of the workload.
    pub workload: String,
    /// Name of the system.
    pub system: String,
    /// Values of the parameters.
    pub values: Values,
}

impl fmt::Display for Cell {
    /// Formats as `workload/system/size=16,type=octets`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.workload, self.system)?;
        for (index, (name, value)) in self.values.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { '/' } else { ',' })?;
        }
        Ok(())
    }
}

/// Measurement of a cell in one round.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Measurement {
    /// Measured cell.
    pub cell: Cell,
    /// Index of the round, from 0.
    pub round: u32,
    /// Position in the order of the round, from 0.
    pub turn: u32,
    /// Start time, seconds since 1970.
    pub at: u64,
    /// Disturbance by other load of the machine.
    pub disturbance: Disturbance,
    /// Command lines of the processes, the measuring one first.
    pub commands: Vec<String>,
    /// Outcome of the measurement.
    pub outcome: Outcome,
}

/// Outcome of a measurement.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Measured figures.
    Measured(Box<Measured>),
    /// Failure without figures.
    Failed {
        /// Reason of the failure.
        why: String,
    },
}

/// Figures of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Measured {
    /// Figures by name; [`UNITS`] has their units.
    pub figures: BTreeMap<String, f64>,
    /// Latencies, if the workload measures any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Arrivals of single samples, for workloads that show them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Series>,
}

/// Latencies of a measurement. Round trips are not halved.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Latency {
    /// Exact statistics, us.
    pub summary: Summary,
    /// Histogram: latency in ns to three digits, and count; ascending.
    pub buckets: Vec<(u64, u64)>,
    /// Samples in their order, in at most [`SPANS_MAX`] spans of equal length; empty if no figure
    /// of the workload shows them.
    pub series: Vec<Span>,
    /// File with all latencies, ns, u64, little endian, relative to the results directory; `None`
    /// if it was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// Maximum number of spans of a series.
pub const SPANS_MAX: usize = 500;

/// Consecutive samples of a series, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Span {
    /// Number of samples.
    pub count: u64,
    /// Minimum.
    pub min: u64,
    /// Arithmetic mean, rounded.
    pub mean: u64,
    /// Maximum.
    pub max: u64,
}

/// Other load of the machine during a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Disturbance {
    /// Share of all processors that foreign processes used.
    pub foreign: f64,
    /// Share of all processors that the hypervisor took.
    pub steal: f64,
    /// Load average of one minute at the end.
    pub load: f64,
    /// Number of tries; this is the last of them.
    pub tries: u32,
    /// Whether `foreign` or `steal` was above the campaign's limit in each try.
    pub disturbed: bool,
}

/// Direction in which a value improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Lower is better, as for a latency.
    Lower,
    /// Higher is better, as for a rate.
    Higher,
}

/// Description of a figure of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Key in [`Measured::figures`].
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// Unit of measure.
    pub unit: &'static str,
    /// Direction of improvement.
    pub better: Better,
}

const fn unit(name: &'static str, title: &'static str, unit: &'static str, better: Better) -> Unit {
    Unit { name, title, unit, better }
}

/// Descriptions of all figures other than latencies.
pub const UNITS: &[Unit] = &[
    unit("lost", "samples lost", "samples", Better::Lower),
    unit("cpu_us", "CPU time of the pinging process per round trip", "us", Better::Lower),
    unit("switches", "context switches of the pinging process per round trip", "", Better::Lower),
    unit("received_hz", "samples taken by the slowest reader", "1/s", Better::Higher),
    unit("written_hz", "samples written", "1/s", Better::Higher),
    unit("megabytes_per_second", "payload taken by the slowest reader", "MB/s", Better::Higher),
    unit("megabits_per_second", "payload taken, both directions", "Mbit/s", Better::Higher),
    unit("delivered_percent", "samples taken of those written", "%", Better::Higher),
    unit("writer_cpu_us", "CPU time of the writer per sample", "us", Better::Lower),
    unit("reader_cpu_us", "CPU time of a reader per sample", "us", Better::Lower),
    unit("writer_cpu_percent", "CPU time of the writer", "% of a processor", Better::Lower),
    unit("reader_cpu_percent", "CPU time of a reader", "% of a processor", Better::Lower),
    unit("idle_cpu_percent", "CPU time of an idle process", "% of a processor", Better::Lower),
    unit("idle_switches_hz", "voluntary context switches of an idle process", "1/s", Better::Lower),
    unit("resident_kib", "resident memory of an idle process", "KiB", Better::Lower),
    unit("private_kib", "private memory of an idle process", "KiB", Better::Lower),
    unit("participant_kib", "resident memory that participant and endpoints add", "KiB", Better::Lower),
    unit("match_ms", "from the start of the process until both endpoints are matched", "ms", Better::Lower),
    unit("link_megabits", "traffic on the link, slower direction", "Mbit/s", Better::Higher),
    unit("late_max_us", "largest delay of a ping after its due time", "us", Better::Lower),
    unit("bound_us", "latency bound that the controller proves", "us", Better::Lower),
    unit("network_max_us", "longest time of a sample in the network", "us", Better::Lower),
    unit("above_bound", "samples longer in the network than the bound", "samples", Better::Lower),
    unit("longest_gap_ms", "longest time without a sample", "ms", Better::Lower),
    unit("outage_ms", "from the last sample before the first loss to the first after the last", "ms", Better::Lower),
    unit("overload_percent", "datagrams of the overload of those planned", "%", Better::Higher),
    unit("newcomer_datagrams", "frames on the interface while a participant joins", "frames", Better::Lower),
    unit("newcomer_kib", "traffic on the interface while a participant joins", "KiB", Better::Lower),
    unit("all_datagrams", "frames on the interface from the first participant on", "frames", Better::Lower),
    unit("all_kib", "traffic on the interface from the first participant on", "KiB", Better::Lower),
    unit("each_participant_kib", "resident memory of a participant", "KiB", Better::Lower),
    unit("each_endpoint_kib", "resident memory of an endpoint", "KiB", Better::Lower),
    unit("each_instance_octets", "resident memory of an instance with one sample", "octets", Better::Lower),
    unit("first_sample_ms", "from the start of the process until the first sample", "ms", Better::Lower),
    unit("last_sample_ms", "from the start of the process until the last sample", "ms", Better::Lower),
    unit("recovery_ms", "longest latency minus the outage of the link", "ms", Better::Lower),
    unit("caught_up_ms", "from the end of the outage until samples are as fast as before", "ms", Better::Lower),
    unit("dropped_percent", "frames that the link dropped on the way to the reader", "%", Better::Lower),
    unit("repaired_percent", "dropped samples that were repaired, if each has a frame of its own", "%", Better::Higher),
    unit("late_percent", "samples that took more than ten times the median", "%", Better::Lower),
    unit("wire_octets", "octets on the interface of the writer for each sample written", "octets", Better::Lower),
    unit("comings", "participants that joined and left", "participants", Better::Higher),
    unit("init_ms", "from the start of the process until its endpoints exist", "ms", Better::Lower),
];

/// Returns the description of a figure.
#[must_use]
pub fn unit_of(name: &str) -> Option<&'static Unit> {
    UNITS.iter().find(|unit| unit.name == name)
}

impl Latency {
    /// Creates latencies from pairs of ns and count. Returns `None` if there are none.
    #[must_use]
    pub fn of_buckets(buckets: &[(u64, u64)]) -> Option<Self> {
        let mut histogram = crate::stats::Histogram::new();
        histogram.add(buckets);
        let summary = histogram.summary()?;
        Some(Self { summary, buckets: histogram.buckets(), series: Vec::new(), raw: None })
    }

    /// Creates latencies in sample order. Returns `None` if there are none.
    #[must_use]
    pub fn of(mut values_ns: Vec<u64>) -> Option<Self> {
        let series = spans(&values_ns);
        let mut histogram = crate::stats::Histogram::new();
        values_ns.iter().for_each(|value| histogram.record(*value));
        let summary = Summary::of(&mut values_ns)?;
        Some(Self { summary, buckets: histogram.buckets(), series, raw: None })
    }
}

fn spans(values_ns: &[u64]) -> Vec<Span> {
    let len = values_ns.len().div_ceil(SPANS_MAX).max(1);
    let span = |values: &[u64]| Span {
        count: values.len() as u64,
        min: values.iter().copied().min().unwrap_or(0),
        mean: values.iter().sum::<u64>() / values.len().max(1) as u64,
        max: values.iter().copied().max().unwrap_or(0),
    };
    values_ns.chunks(len).map(span).collect()
}

#[cfg(test)]
mod tests {
    use super::super::parameter::Value;
    use super::*;

    #[test]
    fn cell_is_named_by_workload_system_and_values() {
        let values = Values::from([("type".into(), Value::Text("octets".into())), ("size".into(), Value::Number(16))]);
        let mut cell = Cell { workload: "latency-rtt".into(), system: "takt-udp".into(), values };
        assert_eq!(cell.to_string(), "latency-rtt/takt-udp/size=16,type=octets");
        cell.values.clear();
        assert_eq!(cell.to_string(), "latency-rtt/takt-udp");
    }

    #[test]
    fn series_covers_all_samples_in_few_spans() {
        let values: Vec<u64> = (0..1234).collect();
        let latency = Latency::of(values).unwrap();
        assert!(latency.series.len() <= SPANS_MAX);
        assert_eq!(latency.series.iter().map(|span| span.count).sum::<u64>(), 1234);
        assert_eq!(latency.series[0], Span { count: 3, min: 0, mean: 1, max: 2 });
        assert_eq!(latency.summary.max, 1.233);
        assert_eq!(Latency::of(Vec::new()), None);
    }
}
