//! Outcome of the isolation experiment: complete results, from which every table can be made.

use super::countermeasure::{BASELINE, Configuration, Countermeasure, Countermeasures, ISOLATED, UnavailableMeasure};
use super::effect::{Effect, effect};
use super::{Plan, interference, number};
use crate::error::{Error, Result};
use crate::report::Host;
use crate::stats::{Histogram, Summary, median};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Histogram: latencies in ns and their counts.
pub type Buckets = Vec<(u64, u64)>;

/// Results of one measurement of one configuration and one payload size, with or without
/// interference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the configuration.
    pub configuration: String,
    /// Payload size in octets.
    pub size: usize,
    /// Whether iperf3 interfered.
    pub interfered: bool,
    /// Index of the round, from 0.
    pub round: usize,
    /// Position within the round, from 0.
    pub place: usize,
    /// Latencies from the due time of a ping to its callback.
    pub one_way: Buckets,
    /// Latencies from the due time of a ping to the callback of its answer.
    pub round_trip: Buckets,
    /// Delays from the due time of a ping to its write.
    pub lateness: Buckets,
    /// Number of pings measured.
    pub sent: u64,
    /// Number of pings that did not arrive.
    pub lost_one_way: u64,
    /// Number of pings whose answer did not arrive.
    pub lost_round_trip: u64,
    /// Rates over the link during the measurement, to the first and to the second host, Mbit/s.
    pub link_megabits: [f64; 2],
    /// Load average of one minute before the measurement.
    pub load_average: String,
    /// Numbers of background samples received, background samples lost, slow callbacks, and
    /// participants known at the end.
    pub load: [u64; 4],
}

impl Cell {
    /// Builds a cell from the lines of the two processes.
    pub(super) fn of(ping: &Value, pong: &Value) -> Result<Self> {
        let buckets = |line: &Value, key: &str| -> Result<Buckets> {
            let found = serde_json::from_value(line[key].clone());
            found.map_err(|why| Error::Usage(format!("a process reported no {key}: {why}")))
        };
        let sent = number(ping, "sent")?;
        let lost = |line| -> Result<u64> { Ok(sent.saturating_sub(number(line, "received")?)) };
        Ok(Self {
            one_way: buckets(pong, "latencies")?,
            round_trip: buckets(ping, "latencies")?,
            lateness: buckets(ping, "lateness")?,
            sent,
            lost_one_way: lost(pong)?,
            lost_round_trip: lost(ping)?,
            load: [
                number(pong, "background")?,
                number(pong, "background_lost")?,
                number(pong, "callbacks")?,
                number(pong, "discovered")?,
            ],
            ..Self::default()
        })
    }
}

/// Kind of latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From the pinging to the answering process.
    OneWay,
    /// From the pinging to the answering process and back.
    RoundTrip,
    /// Lateness of the write: the sender's own share of both latencies.
    Lateness,
}

/// Machine of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Kernel release.
    pub kernel: String,
    /// Processor model.
    pub processor: String,
    /// Number of cores.
    pub cpus: usize,
    /// Version of iperf3.
    pub iperf3: String,
}

/// Summary of all rounds of a configuration.
#[derive(Serialize)]
struct Summarized<'a> {
    configuration: &'a str,
    size: usize,
    interfered: bool,
    way: Way,
    latency_us: Summary,
}

/// Comparison of one configuration with another, in one figure of round trips.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Payload size in octets.
    pub size: usize,
    /// Name of the figure.
    pub figure: &'static str,
    /// Name of the first configuration, and whether iperf3 interfered.
    pub own: (String, bool),
    /// The same for the second configuration.
    pub to: (String, bool),
    /// Ratio of the first to the second.
    pub effect: Effect,
}

/// Results of a complete experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Version of Takt.
    pub version: String,
    /// Command line.
    pub command: String,
    /// Machine on which it ran.
    pub machine: Machine,
    /// Load average of the machine at the beginning and at the end, from /proc/loadavg.
    pub load_average: [String; 2],
    /// Settings.
    pub plan: Plan,
    /// Measures that are unavailable on the machine.
    #[serde(rename = "not_here")]
    pub unavailable: Vec<UnavailableMeasure>,
    /// All cells, in the order of measurement.
    pub cells: Vec<Cell>,
}

impl Outcome {
    /// Creates an outcome without cells, for this machine.
    pub(super) fn new(plan: Plan, command: String, unavailable: Vec<UnavailableMeasure>) -> Self {
        let Host { kernel, processor, cpus } = Host::this();
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            command,
            machine: Machine { kernel, processor, cpus, iperf3: interference::version() },
            load_average: [load_average(), String::new()],
            plan,
            unavailable,
            cells: Vec::new(),
        }
    }

    /// Returns the outcome as JSON, with summaries and comparisons for programs that need only
    /// those.
    ///
    /// # Errors
    /// A figure is not representable.
    pub fn to_json(&self) -> Result<String> {
        #[derive(Serialize)]
        struct Whole<'a> {
            #[serde(flatten)]
            outcome: &'a Outcome,
            summaries: Vec<Summarized<'a>>,
            comparisons: Vec<Comparison>,
        }
        // On one line: indented histograms would be mostly white space.
        let whole = Whole { outcome: self, summaries: self.summaries(), comparisons: self.comparisons() };
        serde_json::to_string(&whole).map_err(|e| Error::os("JSON", e.into()))
    }

    fn summaries(&self) -> Vec<Summarized<'_>> {
        let mut kinds: Vec<(&str, usize, bool)> =
            self.cells.iter().map(|cell| (cell.configuration.as_str(), cell.size, cell.interfered)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let ways = [Way::OneWay, Way::RoundTrip, Way::Lateness];
        let all = kinds.iter().flat_map(|kind| ways.map(|way| (*kind, way)));
        all.filter_map(|((configuration, size, interfered), way)| {
            let latency_us = self.summary(configuration, size, interfered, way)?;
            Some(Summarized { configuration, size, interfered, way, latency_us })
        })
        .collect()
    }

    /// Returns the measures that are available.
    #[must_use]
    pub fn available(&self) -> Countermeasures {
        let missing = |measure: &Countermeasure| self.unavailable.iter().any(|missing| missing.measure == *measure);
        Countermeasure::ALL.into_iter().filter(|measure| !missing(measure)).collect()
    }

    /// Returns every comparison that the tables make, for each figure.
    #[must_use]
    pub fn comparisons(&self) -> Vec<Comparison> {
        let mut pairs = Vec::new();
        for size in &self.plan.sizes {
            pairs.push((*size, (ISOLATED.to_owned(), true), (ISOLATED, false)));
            pairs.push((*size, (ISOLATED.to_owned(), true), (BASELINE, true)));
        }
        let here = self.available();
        if let Some(size) = self.plan.ablation {
            for measure in here.iter() {
                pairs.push((size, (Configuration::alone(measure).name, true), (BASELINE, true)));
                pairs.push((size, (Configuration::without(here, measure).name, true), (ISOLATED, true)));
            }
        }
        let each = pairs.iter().flat_map(|pair| Figure::ALL.map(|figure| (pair, figure)));
        each.filter_map(|((size, own, to), figure)| {
            let effect = self.effect((&own.0, own.1), *to, *size, figure)?;
            let (own, to) = (own.clone(), (to.0.to_owned(), to.1));
            Some(Comparison { size: *size, figure: figure.name(), own, to, effect })
        })
        .collect()
    }

    /// Parses the output of [`Self::to_json`].
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|why| Error::Usage(format!("not a result of this experiment: {why}")))
    }

    /// Iterates over the cells of one configuration, by rounds.
    pub fn of<'a>(&'a self, configuration: &'a str, size: usize, interfered: bool) -> impl Iterator<Item = &'a Cell> {
        self.cells.iter().filter(move |cell| {
            cell.configuration == configuration && cell.size == size && cell.interfered == interfered
        })
    }

    /// Returns the summary of all rounds of one configuration; `None` if nothing arrived.
    #[must_use]
    pub fn summary(&self, configuration: &str, size: usize, interfered: bool, way: Way) -> Option<Summary> {
        let mut histogram = Histogram::new();
        self.of(configuration, size, interfered).for_each(|cell| histogram.add(cell.buckets(way)));
        histogram.summary()
    }

    /// Returns one figure of the round trips of one configuration, per round.
    #[must_use]
    pub fn figures(&self, whose: (&str, bool), size: usize, figure: Figure) -> Vec<(usize, f64)> {
        let cells = self.of(whose.0, size, whose.1);
        cells.filter_map(|cell| Some((cell.round, figure.of(&summarized(&cell.round_trip)?)))).collect()
    }

    /// Compares the round trips of one configuration with those of another: `(name, interfered)`.
    #[must_use]
    pub fn effect(&self, own: (&str, bool), to: (&str, bool), size: usize, figure: Figure) -> Option<Effect> {
        let others = self.figures(to, size, figure);
        let pairs: Vec<(f64, f64)> = self
            .figures(own, size, figure)
            .into_iter()
            .filter_map(|(round, value)| Some((value, others.iter().find(|other| other.0 == round)?.1)))
            .collect();
        effect(&pairs, self.plan.seed)
    }

    /// Returns the median over rounds of one figure of round trips.
    #[must_use]
    pub fn median(&self, whose: (&str, bool), size: usize, figure: Figure) -> f64 {
        median(&self.figures(whose, size, figure).iter().map(|(_, value)| *value).collect::<Vec<_>>())
    }
}

impl Cell {
    /// Returns the latencies of one kind.
    #[must_use]
    pub fn buckets(&self, way: Way) -> &Buckets {
        match way {
            Way::OneWay => &self.one_way,
            Way::RoundTrip => &self.round_trip,
            Way::Lateness => &self.lateness,
        }
    }
}

fn summarized(buckets: &Buckets) -> Option<Summary> {
    let mut histogram = Histogram::new();
    histogram.add(buckets);
    histogram.summary()
}

/// Figure of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Median.
    Median,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// Maximum.
    Max,
}

impl Figure {
    /// All figures.
    pub const ALL: [Self; 4] = [Self::Median, Self::P99, Self::P999, Self::Max];

    /// Returns the name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
        }
    }

    fn of(self, summary: &Summary) -> f64 {
        match self {
            Self::Median => summary.p50,
            Self::P99 => summary.p99,
            Self::P999 => summary.p999,
            Self::Max => summary.max,
        }
    }
}

/// Returns the load average of the machine from /proc/loadavg; empty where there is none.
#[must_use]
pub fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}
