//! Outcome of the SDN overload experiment: figures of all runs, as a table, as JSON and as CSV.

use super::category::Category;
use super::flood::Flooded;
use super::series::Series;
use super::transit::Transits;
use super::{Condition, Plan};
use crate::error::{Error, Result};
use crate::isolation::outcome::load_average;
use crate::stats::Summary;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Parameters of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Name of the program that ran the roles.
    pub program: String,
    /// RELIABILITY and HISTORY.
    pub category: Category,
    /// Octets of data in a sample.
    pub size: usize,
    /// Load and controller in addition to the pair.
    pub condition: Condition,
    /// Number of the reader, from 1.
    pub reader: usize,
    /// Rate of the links, Mbit/s.
    pub megabits: u32,
    /// Bound with which the controller admitted the pair, ns.
    pub bound_ns: Option<u64>,
    /// Amount of overload traffic.
    pub flooded: Option<Flooded>,
}

/// Results of one run at one reader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Parameters of the run.
    #[serde(flatten)]
    pub run: Run,
    /// Number of samples written.
    pub sent: u64,
    /// Number of samples received.
    pub received: u64,
    /// Normalized latency of received samples, us; early samples count as 0.
    pub normalised: Option<Summary>,
    /// Time from write to arrival, us.
    pub one_way: Option<Summary>,
    /// Time from the interface of the writer's host to that of the reader's, us. Repairs of a
    /// sample count.
    pub network: Option<Summary>,
    /// Number of samples whose transit exceeded the bound, and number of those whose excess is
    /// greater than the concurrent processor stalls.
    pub above_bound: Option<(u64, u64)>,
    /// Delay of writes after their due time, us.
    pub writer_late: Option<Summary>,
    /// Longest interval without an arrival, us.
    pub longest_gap_us: f64,
    /// Numbers of the first and of the last sample that did not arrive.
    pub lost_range: Option<(u64, u64)>,
    /// Time from the last arrival before all losses to the first one after them, us.
    pub outage_us: Option<f64>,
    /// Number of samples that had arrived at the end of each second.
    pub cumulative: Vec<u64>,
    /// Maximum, over all seconds, of the idle run's cumulative count minus that of this run.
    pub behind_idle: Option<u64>,
    /// All arrivals.
    pub series: Series,
}

/// Results of all runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Version of Takt.
    pub version: String,
    /// Build profile: optimized or not.
    pub build: String,
    /// Command line.
    pub command: String,
    /// Start of the first run, seconds since 1970.
    pub began: u64,
    /// Load average of the machine at that time.
    pub load_average: String,
    /// Kernel and processors of the machine.
    pub machine: String,
    /// Settings of the experiment.
    pub plan: Plan,
    /// Runs, in the order of measurement.
    pub cells: Vec<Cell>,
}

impl Cell {
    /// Creates the cell of a run from its arrivals and from its times in the network.
    #[must_use]
    pub fn new(run: Run, series: Series, transits: &Transits) -> Self {
        // The count covers the time in which samples were due, and two seconds for late ones.
        let seconds = series.span_seconds() + 2;
        let mut normalised: Vec<u64> = series.normalised().map(|(_, ns)| u64::try_from(ns).unwrap_or(0)).collect();
        let mut network_ns: Vec<u64> = transits.samples.iter().map(|transit| transit.len_ns).collect();
        Self {
            above_bound: run.bound_ns.map(|bound_ns| transits.above(bound_ns)),
            run,
            sent: series.sent,
            received: series.received(),
            normalised: Summary::of(&mut normalised),
            one_way: Summary::of(&mut series.one_way().collect::<Vec<_>>()),
            network: Summary::of(&mut network_ns),
            writer_late: Summary::of(&mut series.writer_late()),
            longest_gap_us: series.longest_gap_ns() as f64 / 1000.0,
            lost_range: series.lost_range(),
            outage_us: series.outage_ns().map(|ns| ns as f64 / 1000.0),
            cumulative: series.cumulative(1_000_000_000, seconds),
            behind_idle: None,
            series,
        }
    }

    /// Returns the number of samples that did not arrive.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// Reports whether program, category, size and reader are those of another run.
    #[must_use]
    pub fn is_same_pair(&self, other: &Self) -> bool {
        let key = |run: &Run| (run.program.clone(), run.category, run.size, run.reader);
        key(&self.run) == key(&other.run)
    }
}

impl Outcome {
    /// Creates an outcome without runs.
    #[must_use]
    pub fn new(plan: Plan, command: String) -> Self {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cpus = crate::machine::available_cpus();
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
            command,
            began: since.map_or(0, |since| since.as_secs()),
            load_average: load_average(),
            machine: format!("Linux {}, {cpus} processors", kernel.trim()),
            plan,
            cells: Vec::new(),
        }
    }

    /// Adds a run, compared with the idle run of the same pair.
    pub fn push(&mut self, mut cell: Cell) {
        let idle = self.cells.iter().find(|other| other.run.condition == Condition::Idle && other.is_same_pair(&cell));
        cell.behind_idle = idle.map(|idle| {
            let each = idle.cumulative.iter().zip(&cell.cumulative);
            each.map(|(idle, own)| idle.saturating_sub(*own)).max().unwrap_or(0)
        });
        self.cells.push(cell);
    }

    /// Returns the measured products, in their order.
    #[must_use]
    pub fn programs(&self) -> Vec<&str> {
        let mut programs: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !programs.contains(&cell.run.program.as_str()) {
                programs.push(&cell.run.program);
            }
        }
        programs
    }

    /// Formats the outcome as JSON, with all arrivals.
    ///
    /// # Errors
    /// A value cannot be represented in JSON.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|why| Error::os("JSON", why.into()))
    }

    /// Parses the output of [`to_json`](Self::to_json).
    ///
    /// # Errors
    /// The text has another form.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|why| Error::Usage(format!("not an outcome of bench sdn-overload: {why}")))
    }

    /// Formats all arrivals as CSV, one line each.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut text = "program,category,bytes,condition,reader,sample,written_ns,arrived_ns\n".to_owned();
        for Cell { run, series, .. } in &self.cells {
            let Run { program, category, size, condition, reader, .. } = run;
            for arrival in &series.arrivals {
                // Writing to a String cannot fail.
                let _ = writeln!(
                    text,
                    "{program},{category},{size},\"{condition}\",{reader},{},{},{}",
                    arrival.0, arrival.1, arrival.2
                );
            }
        }
        text
    }

    /// Formats one line of text for each run.
    #[must_use]
    pub fn to_text(&self) -> String {
        let Plan { period_ns, seconds, .. } = &self.plan;
        let mut text = format!(
            "{}\nTakt {}, {} build; {}; load average before {}; a sample each {} ms for {seconds} s\n\n",
            self.command,
            self.version,
            self.build,
            self.machine,
            self.load_average,
            *period_ns as f64 / 1e6,
        );
        let rows: Vec<[String; COLUMNS]> =
            std::iter::once(HEAD.map(str::to_owned)).chain(self.cells.iter().map(row)).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        for row in &rows {
            let fields = row.iter().enumerate().map(|(column, field)| format!("{field:<0$}", width(column)));
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}", fields.collect::<Vec<_>>().join("  ").trim_end());
        }
        text.push_str(
            "\nlost: of all samples; p50, p99, max: normalized latency; one-way: from write to arrival; late: lateness of the writer;\n\
             network: from the interface of the writer's host to that of the reader's; bound: of that time, by the controller;\n\
             above: samples above the bound; unexplained: of these, not explained by stalled processors; behind: samples behind the idle run, in the worst second;\n\
             overload: datagrams sent of those planned\n",
        );
        text
    }
}

/// Number of columns of the tables.
pub const COLUMNS: usize = 16;

/// Column heads of the tables.
pub const HEAD: [&str; COLUMNS] = [
    "program",
    "category",
    "bytes",
    "condition",
    "Mbit/s",
    "lost",
    "p50 us",
    "p99 us",
    "max us",
    "one-way p99",
    "late p99",
    "network max",
    "bound us",
    "above / unexplained",
    "gap ms / behind",
    "overload",
];

/// Returns the fields of a run.
#[must_use]
pub fn row(cell: &Cell) -> [String; COLUMNS] {
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let of = |summary: &Option<Summary>, figure: fn(&Summary) -> f64| {
        dash(summary.as_ref().map(|summary| format!("{:.0}", figure(summary))))
    };
    let Run { program, category, size, condition, reader, megabits, bound_ns, flooded } = &cell.run;
    let behind = dash(cell.behind_idle.map(|behind| behind.to_string()));
    [
        if *reader > 1 { format!("{program}, reader {reader}") } else { program.clone() },
        category.to_string(),
        size.to_string(),
        condition.to_string(),
        megabits.to_string(),
        format!("{} of {}", cell.lost(), cell.sent),
        of(&cell.normalised, |s| s.p50),
        of(&cell.normalised, |s| s.p99),
        of(&cell.normalised, |s| s.max),
        of(&cell.one_way, |s| s.p99),
        of(&cell.writer_late, |s| s.p99),
        of(&cell.network, |s| s.max),
        dash(bound_ns.map(|bound_ns| bound_ns.div_ceil(1000).to_string())),
        dash(cell.above_bound.map(|(above, unexplained)| format!("{above} / {unexplained}"))),
        format!("{:.1} / {behind}", cell.longest_gap_us / 1000.0),
        dash(flooded.map(|Flooded { datagrams, planned }| format!("{datagrams} of {planned}"))),
    ]
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::series::Arrival;
    use super::*;

    const PERIOD_NS: u64 = 5_000_000;

    /// Returns a run of 400 samples that loses some of the last ones.
    fn cell(condition: Condition, lost: u64) -> Cell {
        let arrival = |n: u64| Arrival(n, (n * PERIOD_NS) as i64, (n * PERIOD_NS + 300_000) as i64);
        let arrivals: Vec<_> = (0..400 - lost).map(arrival).collect();
        let flooded = (condition != Condition::Idle).then_some(Flooded { datagrams: 9, planned: 10 });
        let bound_ns = matches!(condition, Condition::Controlled(_)).then_some(1_234_567);
        let program = "takt".to_owned();
        let (category, size, megabits) = (Category::BestEffort, 1400, 100);
        let run = Run { program, category, size, condition, reader: 1, megabits, bound_ns, flooded };
        Cell::new(run, Series::new(400, PERIOD_NS, &arrivals), &Transits::default())
    }

    /// Returns an outcome of three runs.
    pub fn outcome() -> Outcome {
        let mut outcome = Outcome::new(super::super::tests::plan(), "takt bench sdn-overload".into());
        outcome.push(cell(Condition::Idle, 0));
        outcome.push(cell(Condition::Overload(1400), 30));
        outcome.push(cell(Condition::Controlled(1400), 0));
        outcome
    }

    #[test]
    fn runs_are_compared_with_the_idle_one_of_their_pair() {
        let outcome = outcome();
        let behind: Vec<_> = outcome.cells.iter().map(|cell| cell.behind_idle).collect();
        assert_eq!(behind, [None, Some(30), Some(0)]);
        let text = outcome.to_text();
        assert!(text.contains("30 of 400") && text.contains("overload of 1400 B, controller"), "{text}");
        assert!(text.contains("1235"), "the bound, rounded up: {text}");
        assert_eq!(outcome.cells[1].lost_range, Some((370, 399)));
    }

    #[test]
    fn outcome_round_trips_as_json_and_has_a_line_of_csv_for_each_arrival() {
        let outcome = outcome();
        let json = outcome.to_json().expect("the value can be serialized");
        assert_eq!(Outcome::from_json(&json).expect("the JSON is valid"), outcome);
        Outcome::from_json("{}").expect_err("the JSON is refused");
        assert_eq!(outcome.to_csv().lines().count(), 1 + 400 + 370 + 400);
        assert!(outcome.to_csv().contains("takt,best-effort,1400,\"overload of 1400 B\",1,7,"), "{}", outcome.to_csv());
    }
}
