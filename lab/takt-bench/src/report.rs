//! Report of one process on its run: as JSON for programs, as text for people.

use crate::clock::ClockUncertainty;
use crate::error::{Error, Result};
use crate::machine::{Memory, Scheduling, Usage, available_cpus};
use crate::sequence::Counts;
use crate::spec::{History, LinkSpec, Transport};
use crate::stats::Summary;
use serde::Serialize;
use std::fmt::{self, Display};

/// Kind of the measured latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// From the send of a ping to the arrival of its pong.
    RoundTrip,
    /// From the send of a sample to its arrival.
    OneWay,
    /// No latency: this side only sends, or only answers.
    Nothing,
}

/// Settings of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Configuration {
    /// Role: `ping`, `pong`, `pub` or `sub`.
    pub role: &'static str,
    /// Payload size in bytes; `None` for a side that accepts any size.
    pub size: Option<usize>,
    /// Number of samples to measure; `None`: until the end.
    pub samples: Option<u64>,
    /// Number of samples before the measured ones.
    pub warmup: u64,
    /// Samples per second; `None`: as many as possible, or, for round trips, the next ping after
    /// each pong.
    pub rate_hz: Option<f64>,
    /// Link that carries the samples.
    #[serde(flatten)]
    pub link: LinkSpec,
    /// Scheduling of the process.
    #[serde(flatten)]
    pub scheduling: Scheduling,
}

/// Machine of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Kernel release.
    pub kernel: String,
    /// Processor model.
    pub processor: String,
    /// Number of cores that the process could use.
    pub cpus: usize,
}

impl Host {
    /// Describes this machine. Fields that the kernel does not report are empty.
    #[must_use]
    pub fn this() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Self {
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            processor: model_name(&read("/proc/cpuinfo")).into(),
            cpus: available_cpus(),
        }
    }
}

fn model_name(cpuinfo: &str) -> &str {
    cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))
        .and_then(|line| line.split_once(':'))
        .map_or("", |(_, name)| name.trim())
}

/// Results of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Version of Takt.
    pub version: &'static str,
    /// Kind of the latencies in `latency_us`.
    pub measured: Measured,
    /// Latencies in us; `None` if nothing was measured or nothing arrived.
    pub latency_us: Option<Summary>,
    /// Offset and uncertainty of the sender's clock, if it is another host's.
    pub clock: Option<ClockUncertainty>,
    /// Numbers of samples by outcome, within the measured part.
    pub samples: Counts,
    /// Number of samples that the writer had no room for, and that were tried again or dropped.
    pub refused: u64,
    /// Samples per second of the measured part.
    pub samples_per_second: f64,
    /// Bytes of payload per second of the measured part.
    pub bytes_per_second: f64,
    /// Length of the measured part, seconds.
    pub wall_seconds: f64,
    /// CPU time of the process in the measured part, all threads, seconds.
    pub cpu_seconds: f64,
    /// Peak resident memory of the process.
    pub peak_memory_kib: u64,
    /// Settings of the run.
    pub configuration: Configuration,
    /// Machine on which it ran.
    pub host: Host,
}

/// Measured values from which a report is made.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Kind of the latencies in `latency`.
    pub measured: Measured,
    /// Latencies.
    pub latency: Option<Summary>,
    /// Offset and uncertainty of the sender's clock; `None` if both sides have one clock.
    pub clock: Option<ClockUncertainty>,
    /// Numbers of samples by outcome.
    pub samples: Counts,
    /// Number of samples that the writer had no room for.
    pub refused: u64,
    /// Numbers of samples and of bytes from which the rates are computed.
    pub moved: (u64, u64),
    /// Length of the measured part, seconds.
    pub wall_seconds: f64,
    /// CPU time used in it.
    pub usage: Usage,
}

impl Report {
    /// Creates a report: adds the machine, the memory and the rates.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn new(configuration: Configuration, figures: Figures) -> Result<Self> {
        let per_second = |amount: u64| {
            if figures.wall_seconds > 0.0 { amount as f64 / figures.wall_seconds } else { 0.0 }
        };
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            measured: figures.measured,
            latency_us: figures.latency,
            clock: figures.clock,
            samples: figures.samples,
            refused: figures.refused,
            samples_per_second: per_second(figures.moved.0),
            bytes_per_second: per_second(figures.moved.1),
            wall_seconds: figures.wall_seconds,
            cpu_seconds: figures.usage.cpu_seconds,
            peak_memory_kib: Memory::now()?.peak_kib,
            configuration,
            host: Host::this(),
        })
    }

    /// Formats the report as one JSON object.
    ///
    /// # Errors
    /// A figure is not representable.
    pub fn to_json(&self) -> Result<String> {
        to_json(self)
    }
}

/// Formats a value on one line of JSON, with `ev`.
///
/// # Errors
/// The value cannot be represented in JSON.
pub fn to_json_line(event: &str, value: &impl Serialize) -> Result<String> {
    #[derive(Serialize)]
    struct Line<'a, T> {
        ev: &'a str,
        #[serde(flatten)]
        value: &'a T,
    }
    serde_json::to_string(&Line { ev: event, value }).map_err(|e| Error::os("JSON", e.into()))
}

/// Formats a value of this crate as indented JSON.
///
/// # Errors
/// A figure is not representable.
pub fn to_json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string_pretty(value).map_err(|e| Error::os("JSON", e.into()))
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.configuration)?;
        if let Some(latency) = &self.latency_us {
            let what = match self.measured {
                Measured::OneWay => "one way",
                _ => "round trip",
            };
            match &self.clock {
                Some(uncertainty) => {
                    writeln!(
                        f,
                        "{what}, us, each ± {:.2} by echoes with {}:",
                        uncertainty.uncertainty_us, uncertainty.server
                    )?;
                }
                None => writeln!(f, "{what}, us:")?,
            }
            let Summary { min, mean, p50, p90, p99, p999, p9999, max, stdev, .. } = latency;
            let names = ["min", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max", "stdev"];
            let figures = [min, mean, p50, p90, p99, p999, p9999, max, stdev];
            names.iter().try_for_each(|name| write!(f, "{name:>10}"))?;
            writeln!(f)?;
            figures.iter().try_for_each(|figure| write!(f, "{figure:>10.2}"))?;
            writeln!(f)?;
        }
        let Counts { sent, received, lost, duplicated, out_of_order } = self.samples;
        writeln!(
            f,
            "samples: {sent} sent, {received} received, {lost} lost, {duplicated} duplicated, {out_of_order} out of order"
        )?;
        writeln!(
            f,
            "rate: {:.0} samples/s, {:.2} MB/s, over {:.3} s",
            self.samples_per_second,
            self.bytes_per_second / 1e6,
            self.wall_seconds
        )?;
        write!(
            f,
            "used: {:.3} s of CPU, {:.1} MiB of memory at most",
            self.cpu_seconds,
            self.peak_memory_kib as f64 / 1024.0
        )
    }
}

impl Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let link = &self.link;
        write!(f, "{}", self.role)?;
        if let Some(size) = self.size {
            write!(f, ", {size} B")?;
        }
        let reliability = if link.reliable { "reliable" } else { "best effort" };
        write!(f, ", {reliability}, ")?;
        match link.history {
            History::KeepAll => write!(f, "keep all")?,
            History::KeepLast(depth) => write!(f, "keep last {depth}")?,
        }
        if let Some(hz) = self.rate_hz {
            write!(f, ", {hz} Hz")?;
        }
        let transport = match &link.transport {
            Transport::Udp => "udp",
            Transport::Shm => "shared memory",
            Transport::RawShm => "raw shared memory",
            Transport::RawUdp => "raw udp",
            Transport::RawNamed(name) => return write!(f, ", raw {name} on {}", link.interface),
            Transport::Named(name) => name,
        };
        let words = format!("{:?} runtime, {:?}, {:?}", link.runtime, link.notify, link.idle);
        write!(f, ", {transport} on {}, {}", link.interface, words.to_lowercase())?;
        if let Some(cpu) = self.scheduling.cpu {
            write!(f, ", core {cpu}")?;
        }
        if let Some(priority) = self.scheduling.fifo {
            write!(f, ", SCHED_FIFO {priority}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn report() -> Report {
        let configuration = Configuration {
            role: "ping",
            size: Some(64),
            samples: Some(4),
            warmup: 1,
            rate_hz: None,
            link: LinkSpec::default(),
            scheduling: Scheduling { cpu: Some(1), ..Scheduling::default() },
        };
        let figures = Figures {
            measured: Measured::RoundTrip,
            latency: Summary::of(&mut [1000, 2000, 3000, 4000]),
            clock: None,
            samples: Counts { sent: 5, received: 4, lost: 1, ..Counts::default() },
            refused: 0,
            moved: (4, 256),
            wall_seconds: 2.0,
            usage: Usage { cpu_seconds: 0.5, ..Usage::default() },
        };
        Report::new(configuration, figures).unwrap()
    }

    #[test]
    fn the_json_has_every_figure_of_the_contract() {
        let json: Value = serde_json::from_str(&report().to_json().unwrap()).unwrap();
        for key in ["min", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max", "stdev"] {
            assert!(json["latency_us"][key].is_number(), "latency_us.{key}");
        }
        for key in ["sent", "received", "lost", "duplicated", "out_of_order"] {
            assert!(json["samples"][key].is_u64(), "samples.{key}");
        }
        for key in ["bytes_per_second", "samples_per_second", "cpu_seconds", "peak_memory_kib", "wall_seconds"] {
            assert!(json[key].is_number(), "{key}");
        }
        assert_eq!((&json["bytes_per_second"], &json["samples_per_second"]), (&128.0.into(), &2.0.into()));
        assert_eq!(json["measured"], "round_trip");
    }

    #[test]
    fn the_json_has_the_whole_configuration() {
        let json: Value = serde_json::from_str(&report().to_json().unwrap()).unwrap();
        let configuration = json["configuration"].as_object().unwrap();
        for key in [
            "role",
            "size",
            "samples",
            "warmup",
            "rate_hz",
            "transport",
            "runtime",
            "idle",
            "notify",
            "domain",
            "interface",
            "reliable",
            "history",
            "cpu",
            "fifo",
            "lock_memory",
        ] {
            assert!(configuration.contains_key(key), "configuration.{key}");
        }
        assert_eq!(configuration["history"], "keep-all");
        assert_eq!(configuration["cpu"], 1);
    }

    #[test]
    fn the_text_has_the_configuration_and_the_figures() {
        let text = report().to_string();
        assert!(text.starts_with("ping, 64 B, reliable, keep all, udp on lo, inline runtime, listener, block, core 1"));
        assert!(text.contains("5 sent, 4 received, 1 lost, 0 duplicated, 0 out of order"), "{text}");
        assert!(text.contains("p99.99"), "{text}");
    }

    #[test]
    fn latencies_by_another_clock_are_shown_with_their_uncertainty() {
        let mut report = report();
        report.measured = Measured::OneWay;
        report.clock = Some(ClockUncertainty {
            server: "10.0.0.1:7399".into(),
            offset_us: -5.0,
            uncertainty_us: 3.125,
            echoes: 200,
            restarts: 0,
        });
        assert!(report.to_string().contains("one way, us, each ± 3.12 by echoes with 10.0.0.1:7399:"), "{report}");
        let json: Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
        assert_eq!(json["clock"]["uncertainty_us"], 3.125);
    }

    #[test]
    fn processor_model_is_read_from_cpuinfo() {
        assert_eq!(model_name("processor : 0\nmodel name\t: A 1\nmodel name\t: B\n"), "A 1");
        assert_eq!(model_name(""), "");
    }
}
