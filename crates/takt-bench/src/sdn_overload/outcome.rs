//! The figures of all runs, as a table and as JSON.

use super::category::Category;
use super::flood::Flooded;
use super::series::Series;
use super::{Condition, Plan};
use crate::error::{Error, Result};
use crate::isolation::outcome::load_average;
use crate::stats::Summary;
use serde::Serialize;
use std::fmt::Write;

/// The figures of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// What was measured.
    pub program: String,
    /// RELIABILITY and HISTORY.
    pub category: Category,
    /// Octets of data in a sample.
    pub size: usize,
    /// What the link carried besides.
    pub condition: Condition,
    /// Samples that were written.
    pub sent: u64,
    /// Samples that arrived.
    pub received: u64,
    /// How late the writer was at most, us.
    pub writer_late_us: f64,
    /// Normalised latency of those that arrived, us.
    pub normalised: Option<Summary>,
    /// The longest time without an arrival, us.
    pub longest_gap_us: f64,
    /// Samples that had arrived at the end of each second.
    pub cumulative: Vec<u64>,
    /// How many samples the cumulative count is behind that of the idle run, at the worst second.
    pub behind_idle: Option<u64>,
    /// Datagrams of the overload, sent and planned.
    pub flooded: Option<[u64; 2]>,
}

/// All runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Of Takt.
    pub version: String,
    /// The command line.
    pub command: String,
    /// The load average before.
    pub load_average: String,
    /// The experiment.
    pub plan: Plan,
    /// The runs, in their order.
    pub cells: Vec<Cell>,
}

impl Cell {
    /// The figures of a run.
    #[must_use]
    pub fn new(
        program: String,
        (category, size, condition): (Category, usize, Condition),
        series: &Series,
        flooded: Option<Flooded>,
    ) -> Self {
        // The count of the whole time that samples were due in, and two seconds for those that are late.
        let seconds = series.span_seconds() + 2;
        Self {
            program,
            category,
            size,
            condition,
            sent: series.sent,
            received: series.received(),
            writer_late_us: series.late_ns as f64 / 1000.0,
            normalised: Summary::of(&mut series.normalised_ns()),
            longest_gap_us: series.longest_gap_ns() as f64 / 1000.0,
            cumulative: series.cumulative(seconds),
            behind_idle: None,
            flooded: flooded.map(|flooded| [flooded.datagrams, flooded.planned]),
        }
    }

    /// Samples that did not arrive.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    fn is_same_pair(&self, other: &Self) -> bool {
        (&self.program, self.category, self.size) == (&other.program, other.category, other.size)
    }
}

impl Outcome {
    /// An outcome without runs.
    #[must_use]
    pub fn new(plan: Plan, command: String) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { version, command, load_average: load_average(), plan, cells: Vec::new() }
    }

    /// Adds a run, compared with the idle one of the same pair.
    pub fn push(&mut self, mut cell: Cell) {
        let idle = self.cells.iter().find(|other| other.condition == Condition::Idle && other.is_same_pair(&cell));
        cell.behind_idle = idle.map(|idle| {
            let each = idle.cumulative.iter().zip(&cell.cumulative);
            each.map(|(idle, own)| idle.saturating_sub(*own)).max().unwrap_or(0)
        });
        self.cells.push(cell);
    }

    /// As JSON.
    ///
    /// # Errors
    /// It cannot be written so.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(|why| Error::os("JSON", why.into()))
    }

    /// A line for each run.
    #[must_use]
    pub fn to_text(&self) -> String {
        let Plan { megabits, period_ns, seconds, .. } = &self.plan;
        let mut text = format!(
            "{}\nTakt {}; {megabits} Mbit/s; a sample each {} ms for {seconds} s; load average before {}\n\n",
            self.command,
            self.version,
            *period_ns as f64 / 1e6,
            self.load_average,
        );
        let head = [
            "program",
            "category",
            "bytes",
            "condition",
            "lost",
            "p50 us",
            "p99 us",
            "max us",
            "gap ms",
            "behind",
            "flood",
        ];
        let rows: Vec<[String; 11]> =
            std::iter::once(head.map(str::to_owned)).chain(self.cells.iter().map(row)).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        for row in &rows {
            let fields = row.iter().enumerate().map(|(column, field)| format!("{field:<0$}", width(column)));
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}", fields.collect::<Vec<_>>().join("  ").trim_end());
        }
        text.push_str(
            "\nlost: of all samples; latencies are normalised; behind: of the idle run's cumulative count, at the worst second;\n\
             flood: datagrams sent of those planned\n",
        );
        text
    }
}

fn row(cell: &Cell) -> [String; 11] {
    let of =
        |figure: fn(&Summary) -> f64| cell.normalised.as_ref().map_or("-".to_owned(), |s| format!("{:.0}", figure(s)));
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        cell.program.clone(),
        cell.category.to_string(),
        cell.size.to_string(),
        cell.condition.to_string(),
        format!("{} of {}", cell.lost(), cell.sent),
        of(|s| s.p50),
        of(|s| s.p99),
        of(|s| s.max),
        format!("{:.1}", cell.longest_gap_us / 1000.0),
        dash(cell.behind_idle.map(|behind| behind.to_string())),
        dash(cell.flooded.map(|[sent, planned]| format!("{sent} of {planned}"))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PERIOD_NS: u64 = 5_000_000;

    fn cell(condition: Condition, lost: u64) -> Cell {
        let arrivals: Vec<[u64; 2]> = (0..400 - lost).map(|n| [n, 1_000 + n * PERIOD_NS]).collect();
        let published = json!({ "sent": 400, "late_ns": 1000 });
        let series = Series::parse(&published, &json!({ "arrivals": arrivals }), PERIOD_NS).expect("good lines");
        let flooded = (condition != Condition::Idle).then_some(Flooded { datagrams: 9, planned: 10 });
        Cell::new("takt".into(), (Category::BestEffort, 100, condition), &series, flooded)
    }

    #[test]
    fn runs_are_compared_with_the_idle_one_of_their_pair() {
        let plan = Plan {
            cyclone: None,
            categories: vec![Category::BestEffort],
            sizes: vec![100],
            backgrounds: vec![1400],
            seconds: 2,
            period_ns: PERIOD_NS,
            megabits: 20,
            frames: 256,
        };
        let mut outcome = Outcome::new(plan, "takt bench sdn-overload".into());
        outcome.push(cell(Condition::Idle, 0));
        outcome.push(cell(Condition::Overload(1400), 30));
        outcome.push(cell(Condition::Controlled(1400), 0));
        let behind: Vec<_> = outcome.cells.iter().map(|cell| cell.behind_idle).collect();
        assert_eq!(behind, [None, Some(30), Some(0)]);
        let text = outcome.to_text();
        assert!(text.contains("30 of 400") && text.contains("overload of 1400 B, controller"), "{text}");
        assert!(outcome.to_json().expect("it is JSON").contains("\"behind_idle\": 30"));
    }
}
