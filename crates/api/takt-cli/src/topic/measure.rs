//! `takt hz`, `takt bw` and `takt delay`: rate, bandwidth and delay of the samples of a topic.
//!
//! The samples are not decoded, so the type need not be known. A line is printed for each period in
//! which a sample arrived. It covers the last [`WINDOW`] samples at most.

use super::learning::{find_writer, hint, spin_until};
use super::policies::reader_for;
use super::receive::{Limits, report_refusals};
use crate::completion::topics;
use crate::domain::{Domain, seconds};
use crate::output::{note, outln};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::json;
use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};
use takt::dynamic::DynamicTypeSupport;
use takt::qos::History;
use takt_bench::{Error, Result};

/// Maximum number of samples that a line covers.
const WINDOW: usize = 10_000;

const EXAMPLES: &str = "\
Examples:
  takt hz Square                  samples per second, and the intervals between them
  takt bw /points --ros2          bytes per second of a ROS 2 topic
  takt delay Square --every 5     time from source timestamp to reception, a line every 5 s
  takt hz Square --count 100 --json

The delay includes the difference between the clocks of the two hosts. It is measured when the sample arrives in this
process, before an application takes it.";

/// `takt hz`, `takt bw`, `takt delay`
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Measure {
    /// Topic name
    #[arg(add = ArgValueCompleter::new(topics))]
    topic: String,
    #[command(flatten)]
    domain: Domain,
    #[command(flatten)]
    limits: Limits,
    /// Use the topic name of ROS 2: /chatter for rt/chatter
    #[arg(long)]
    ros2: bool,
    /// Time between two lines
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    every: Duration,
    /// Print one JSON object per line instead of text
    #[arg(long)]
    json: bool,
}

/// Quantity that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Samples a second.
    Rate,
    /// Payload bytes a second.
    Bandwidth,
    /// Time from source timestamp to reception.
    Delay,
}

/// Received sample.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// Reception timestamp in nanoseconds since 1970.
    received_ns: i64,
    /// Source timestamp in nanoseconds since 1970. `None` if the writer sends none.
    source_ns: Option<i64>,
    /// Serialized payload length in bytes.
    bytes: usize,
}

/// Statistics of one line.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    samples: usize,
    /// Samples a second, bytes a second, or the mean delay in microseconds.
    value: Value,
    /// Minimum of the intervals (us), sizes (B) or delays (us).
    min: f64,
    mean: f64,
    max: f64,
    stdev: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    RateHz(f64),
    BytesPerSecond(f64),
    DelayUs(f64),
}

impl Measure {
    /// Prints a line for each period until a limit is reached or a signal arrives.
    ///
    /// # Errors
    /// The topic has no writer in time, no sample arrives in time, or the domain cannot be joined.
    pub fn run(&self, quantity: Quantity) -> Result<()> {
        let participant = if self.ros2 { self.domain.join_ros2("takt hz")? } else { self.domain.join("takt hz")? };
        let topic = if self.ros2 { takt_idl::ros2::topic_name(&self.topic) } else { self.topic.clone() };
        let endpoints = find_writer(&participant, &topic, self.limits.deadline())?;
        let Some(writer) = endpoints.writers.first() else {
            return Err(Error::NoAnswer {
                what: format!("topic {topic} has no writer{}", hint(&participant, &topic)?),
            });
        };
        let type_ = DynamicTypeSupport::opaque(&writer.type_name, writer.guid.entity_id.has_key());
        let (mut qos, subscriber) = reader_for(&endpoints);
        qos.history = History::KeepAll;
        let subscriber = participant.create_subscriber(subscriber)?;
        let reader = subscriber.create_dynamic_datareader(&topic, &type_, qos)?;
        note!("takt: measuring {topic}, {}", writer.type_name);
        let mut arrivals = VecDeque::new();
        let (mut received, mut reported) = (0, 0);
        let mut next = Instant::now() + self.every;
        let mut deadline = self.limits.deadline();
        loop {
            let mut is_new = false;
            let until = deadline.map_or(next, |deadline| deadline.min(next));
            let spun = spin_until(&participant, Some(until), || {
                report_refusals(&participant.diagnostics().refusals()?, &mut reported);
                for sample in reader.take(256)?.iter().filter(|sample| sample.info.valid_data) {
                    received += 1;
                    is_new = true;
                    let source = sample.info.source_timestamp;
                    arrivals.push_back(Arrival {
                        received_ns: sample.info.reception_timestamp.to_nanos(),
                        source_ns: (!source.is_invalid()).then(|| source.to_nanos()),
                        bytes: sample.payload.len(),
                    });
                    if arrivals.len() > WINDOW {
                        arrivals.pop_front();
                    }
                }
                Ok(self.limits.count.is_some_and(|count| received >= count))
            });
            match spun {
                Err(Error::Stopped) if received > 0 && self.limits.count.is_none() => return Ok(()),
                result => result?,
            };
            if is_new {
                deadline = self.limits.deadline();
                self.print(quantity, arrivals.make_contiguous())?;
            }
            if self.limits.count.is_some_and(|count| received >= count) {
                return Ok(());
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                if received > 0 && self.limits.count.is_none() {
                    return Ok(());
                }
                let what = format!("{received} samples of topic {topic}; none within {} s", self.limits.seconds());
                return Err(Error::NoAnswer { what });
            }
            next = (next + self.every).max(Instant::now());
        }
    }

    fn print(&self, quantity: Quantity, arrivals: &[Arrival]) -> Result<()> {
        match Line::new(quantity, arrivals) {
            line if self.json => {
                let object = line.map_or_else(|| json!({ "samples": arrivals.len() }), |line| line.object());
                outln!("{object}")
            }
            Some(line) => outln!("{line}"),
            None if quantity == Quantity::Delay => outln!("{} samples without source timestamp", arrivals.len()),
            None => outln!("1 sample"),
        }
    }
}

impl Line {
    /// Returns the statistics of the arrivals. `None` if there are too few: a rate needs two
    /// samples, a delay a source timestamp.
    fn new(quantity: Quantity, arrivals: &[Arrival]) -> Option<Self> {
        let first = arrivals.first()?;
        let last = arrivals.last()?;
        #[allow(clippy::cast_precision_loss, reason = "durations and sizes are below 2^53")]
        let seconds = (last.received_ns - first.received_ns) as f64 / 1e9;
        #[allow(clippy::cast_precision_loss, reason = "durations and sizes are below 2^53")]
        let values: Vec<f64> = match quantity {
            Quantity::Rate => {
                arrivals.windows(2).map(|pair| (pair[1].received_ns - pair[0].received_ns) as f64 / 1e3).collect()
            }
            Quantity::Bandwidth => arrivals.iter().map(|arrival| arrival.bytes as f64).collect(),
            Quantity::Delay => {
                let delay = |arrival: &Arrival| Some((arrival.received_ns - arrival.source_ns?) as f64 / 1e3);
                arrivals.iter().filter_map(delay).collect()
            }
        };
        let (min, mean, max, stdev) = statistics(&values)?;
        #[allow(clippy::cast_precision_loss, reason = "durations and sizes are below 2^53")]
        let value = match quantity {
            // The first sample begins the time that is measured.
            Quantity::Rate => Value::RateHz(values.len() as f64 / seconds),
            Quantity::Bandwidth if arrivals.len() < 2 => return None,
            Quantity::Bandwidth => Value::BytesPerSecond(values[1..].iter().sum::<f64>() / seconds),
            Quantity::Delay => Value::DelayUs(mean),
        };
        Some(Self { samples: arrivals.len(), value, min, mean, max, stdev })
    }
}

impl Line {
    /// Returns the line for `--json`. The statistics have their unit in the name of their object;
    /// `min`, `mean`, `max` and `stdev` repeat them for readers of earlier versions.
    fn object(&self) -> serde_json::Value {
        let Self { samples, value, min, mean, max, stdev } = self;
        let (name, value, of) = match value {
            Value::RateHz(rate) => ("rate_hz", rate, "interval_us"),
            Value::BytesPerSecond(rate) => ("bytes_per_second", rate, "payload_bytes"),
            Value::DelayUs(delay) => ("delay_us", delay, "delays_us"),
        };
        let statistics = json!({ "min": min, "mean": mean, "max": max, "stdev": stdev });
        json!({ "samples": samples, name: value, of: statistics, "min": min, "mean": mean, "max": max, "stdev": stdev })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, unit) = match self.value {
            Value::RateHz(rate) => {
                write!(f, "{rate:.3} Hz")?;
                ("interval", "us")
            }
            Value::BytesPerSecond(rate) => {
                write!(f, "{rate:.0} B/s")?;
                ("size", "B")
            }
            Value::DelayUs(delay) => {
                write!(f, "{delay:.1} us")?;
                ("delay", "us")
            }
        };
        let Self { samples, min, mean, max, stdev, .. } = self;
        write!(f, ", {samples} samples, {what} min {min:.1}, mean {mean:.1}, max {max:.1}, stdev {stdev:.1} {unit}")
    }
}

/// Returns minimum, mean, maximum and standard deviation. `None` without values.
fn statistics(values: &[f64]) -> Option<(f64, f64, f64, f64)> {
    if values.is_empty() {
        return None;
    }
    #[allow(clippy::cast_precision_loss, reason = "at most as many values as the window has")]
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some((min, mean, max, variance.sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(times_ms: &[i64]) -> Vec<Arrival> {
        let arrival =
            |ms: &i64| Arrival { received_ns: ms * 1_000_000, source_ns: Some(ms * 1_000_000 - 2_000), bytes: 100 };
        times_ms.iter().map(arrival).collect()
    }

    #[test]
    fn rate_counts_the_intervals_between_the_samples() {
        let line = Line::new(Quantity::Rate, &arrivals(&[0, 10, 20, 40])).expect("four samples");
        assert_eq!((line.samples, line.value), (4, Value::RateHz(75.0)));
        assert_eq!((line.min, line.max), (10_000.0, 20_000.0));
        let object = line.object();
        assert_eq!((&object["rate_hz"], &object["interval_us"]["max"]), (&json!(75.0), &json!(20_000.0)));
        assert_eq!(Line::new(Quantity::Rate, &arrivals(&[5])), None);
    }

    #[test]
    fn bandwidth_leaves_out_the_sample_that_begins_the_time() {
        let line = Line::new(Quantity::Bandwidth, &arrivals(&[0, 500, 1000])).expect("three samples");
        assert_eq!(line.value, Value::BytesPerSecond(200.0));
        assert_eq!((line.min, line.mean, line.stdev), (100.0, 100.0, 0.0));
        assert_eq!(Line::new(Quantity::Bandwidth, &arrivals(&[5])), None);
    }

    #[test]
    fn delay_ignores_samples_without_source_timestamp() {
        let mut samples = arrivals(&[0, 1, 2]);
        samples[1].source_ns = None;
        let line = Line::new(Quantity::Delay, &samples).expect("two delays");
        assert_eq!(line.value, Value::DelayUs(2.0));
        assert_eq!(line.to_string(), "2.0 us, 3 samples, delay min 2.0, mean 2.0, max 2.0, stdev 0.0 us");
        samples.iter_mut().for_each(|sample| sample.source_ns = None);
        assert_eq!(Line::new(Quantity::Delay, &samples), None);
    }
}
