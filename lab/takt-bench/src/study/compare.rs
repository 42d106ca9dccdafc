//! Comparison of two results directories, cell by cell: ratios with their intervals, and
//! regressions.

use super::cell::Better;
use super::directory::Results;
use super::report::pool::{Pool, pools};
use super::report::value::{Value, number};
use crate::error::{Error, Result};
use crate::statistics::Interval;
use serde::Serialize;

/// Compared values, where a cell has them.
const VALUES: [&str; 12] = [
    "p50",
    "p99",
    "p99.9",
    "received_hz",
    "megabits_per_second",
    "delivered_percent",
    "cpu_us",
    "writer_cpu_us",
    "reader_cpu_us",
    "idle_cpu_percent",
    "private_kib",
    "match_ms",
];

/// Change of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Worse by more than the threshold at both ends of the interval.
    Worse,
    /// Better by more than the threshold at both ends of the interval.
    Better,
    /// Within the threshold at both ends of the interval.
    Equal,
    /// The interval extends across a threshold.
    Undecided,
    /// One side has only one round, so there is no interval.
    OneRound,
}

/// Value of a cell in both results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Name of the cell.
    pub cell: String,
    /// Name of the value.
    pub value: String,
    /// Value in the first results.
    pub before: f64,
    /// Value in the second results.
    pub after: f64,
    /// Second value divided by the first.
    pub ratio: f64,
    /// Interval of 95 % of the ratio, by bootstrap over rounds.
    pub interval: Option<Interval>,
    /// Number of rounds of the first and of the second results.
    pub rounds: [usize; 2],
    /// Whether at least one round of either was disturbed.
    pub disturbed: bool,
    /// Classification of the change.
    pub verdict: Verdict,
}

/// Differences between two results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Threshold, as a share.
    pub threshold: f64,
    /// Builds of the first and of the second results.
    pub builds: [String; 2],
    /// All values that both results have.
    pub changes: Vec<Change>,
    /// Cells of which only the first results have figures.
    pub only_before: Vec<String>,
    /// Cells of which only the second results have figures.
    pub only_after: Vec<String>,
}

/// Compares two results. The threshold is a share: 0.05 is 5 %.
///
/// # Errors
/// The threshold is not from 0 to 10, or no cell is in both.
pub fn compare(before: &Results, after: &Results, threshold: f64) -> Result<Comparison> {
    if !(0.0..=10.0).contains(&threshold) {
        return Err(Error::Usage("expected a threshold from 0 to 1000 percent".into()));
    }
    let [first, second] = [before, after].map(|results| {
        let all = results.header.campaign.workloads.iter().flat_map(|workload| pools(results, workload));
        all.filter(|pool| !pool.rounds.is_empty()).collect::<Vec<Pool>>()
    });
    let builds = [before.header.build.clone(), after.header.build.clone()];
    let mut comparison =
        Comparison { threshold, builds, changes: Vec::new(), only_before: Vec::new(), only_after: Vec::new() };
    for pool in &first {
        match second.iter().find(|other| other.cell == pool.cell) {
            Some(other) => comparison.changes.extend(changes(pool, other, threshold)),
            None => comparison.only_before.push(pool.cell.to_string()),
        }
    }
    let is_new = |pool: &&Pool<'_>| !first.iter().any(|other| other.cell == pool.cell);
    comparison.only_after = second.iter().filter(is_new).map(|pool| pool.cell.to_string()).collect();
    if comparison.changes.is_empty() {
        return Err(Error::Usage("no cell has results in both directories".into()));
    }
    Ok(comparison)
}

fn changes(before: &Pool<'_>, after: &Pool<'_>, threshold: f64) -> Vec<Change> {
    let change = |name: &&str| {
        let value = Value::named(name);
        let (ratio, interval) = after.ratio_to(before, &value)?;
        Some(Change {
            cell: before.cell.to_string(),
            value: (*name).to_owned(),
            before: before.estimate(&value)?.value,
            after: after.estimate(&value)?.value,
            ratio,
            interval,
            rounds: [before.rounds.len(), after.rounds.len()],
            disturbed: before.disturbed() + after.disturbed() > 0,
            verdict: verdict(interval, threshold, value.better()),
        })
    };
    VALUES.iter().filter_map(change).collect()
}

fn verdict(interval: Option<Interval>, threshold: f64, better: Better) -> Verdict {
    let Some(Interval { low, high }) = interval else { return Verdict::OneRound };
    let (above, below) = match better {
        Better::Lower => (Verdict::Worse, Verdict::Better),
        Better::Higher => (Verdict::Better, Verdict::Worse),
    };
    // A rate that falls to 1 / (1 + threshold) has changed as much as a latency that grows by the
    // threshold.
    let (most, least) = (1.0 + threshold, 1.0 / (1.0 + threshold));
    match (low, high) {
        _ if low > most => above,
        _ if high < least => below,
        _ if low >= least && high <= most => Verdict::Equal,
        _ => Verdict::Undecided,
    }
}

impl Comparison {
    /// Returns the number of values that became worse.
    #[must_use]
    pub fn regressions(&self) -> usize {
        self.count(Verdict::Worse)
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.changes.iter().filter(|change| change.verdict == verdict).count()
    }

    /// Formats the comparison as text: changed values, undecided values, and counts.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("before: {}\nafter:  {}\n", self.builds[0], self.builds[1]);
        for (verdict, name) in [
            (Verdict::Worse, "worse"),
            (Verdict::Better, "better"),
            (Verdict::Undecided, "undecided"),
            (Verdict::OneRound, "one round, not decided"),
        ] {
            for change in self.changes.iter().filter(|change| change.verdict == verdict) {
                text.push_str(&line(name, change));
            }
        }
        for (name, cells) in [("only before", &self.only_before), ("only after", &self.only_after)] {
            text.extend(cells.iter().map(|cell| format!("{name}: {cell}\n")));
        }
        text.push_str(&format!(
            "{} values: {} worse, {} better, {} equal within {} %, {} undecided, {} with one round\n",
            self.changes.len(),
            self.count(Verdict::Worse),
            self.count(Verdict::Better),
            self.count(Verdict::Equal),
            number(self.threshold * 100.0),
            self.count(Verdict::Undecided),
            self.count(Verdict::OneRound)
        ));
        text
    }
}

fn line(name: &str, change: &Change) -> String {
    let interval = change.interval.map(|one| format!(" [{:.3}, {:.3}]", one.low, one.high)).unwrap_or_default();
    format!(
        "{name}: {} {}: {} -> {}, ratio {:.3}{interval}, rounds {} and {}{}\n",
        change.cell,
        change.value,
        number(change.before),
        number(change.after),
        change.ratio,
        change.rounds[0],
        change.rounds[1],
        if change.disturbed { ", disturbed" } else { "" }
    )
}

#[cfg(test)]
mod tests {
    use super::super::cell::{Measured, Outcome};
    use super::super::report::sample::{empty, results};
    use super::*;

    /// Returns the results with all values of a system multiplied.
    fn slower(system: &str, factor: u64) -> Results {
        let mut results = results();
        for one in results.measurements.iter_mut().filter(|one| one.cell.system == system) {
            if let Outcome::Measured(measured) = &mut one.outcome {
                let figures = measured.figures.iter().map(|(name, value)| (name.clone(), value / factor as f64));
                let scaled = |latency: &crate::study::cell::Latency| {
                    let values = latency.buckets.iter().flat_map(|(ns, count)| (0..*count).map(move |_| ns * factor));
                    crate::study::cell::Latency::of(values.collect())
                };
                **measured = Measured {
                    figures: figures.collect(),
                    latency: measured.latency.as_ref().and_then(scaled),
                    ..Measured::default()
                };
            }
        }
        results
    }

    #[test]
    fn unchanged_results_are_equal() {
        let comparison = compare(&results(), &results(), 0.2).unwrap();
        assert_eq!(comparison.regressions(), 0);
        assert!(comparison.changes.iter().filter(|one| one.value == "p50").all(|one| one.verdict == Verdict::Equal));
    }

    #[test]
    fn slower_latencies_and_lower_rates_are_worse_and_the_reverse_is_better() {
        let comparison = compare(&results(), &slower("one", 2), 0.05).unwrap();
        let of = |cell: &str, value: &str| {
            let found = comparison.changes.iter().find(|one| one.cell == cell && one.value == value);
            found.map(|one| one.verdict)
        };
        assert_eq!(of("rtt/one/reliability=reliable,size=16", "p50"), Some(Verdict::Worse));
        assert_eq!(of("rtt/one/reliability=reliable,size=16", "cpu_us"), Some(Verdict::Better));
        assert_eq!(of("rate/one/size=32", "received_hz"), Some(Verdict::Worse));
        assert_eq!(of("rate/two/size=32", "received_hz"), Some(Verdict::Equal));
        assert!(comparison.text().contains("worse: rate/one/size=32 received_hz: 101,000 -> 50,500, ratio 0.500"));
        let reverse = compare(&slower("one", 2), &results(), 0.05).unwrap();
        assert_eq!(reverse.regressions(), comparison.changes.iter().filter(|c| c.verdict == Verdict::Better).count());
    }

    #[test]
    fn one_round_is_never_a_regression() {
        let mut after = slower("one", 2);
        after.measurements.retain(|one| one.round == 0);
        let comparison = compare(&results(), &after, 0.05).unwrap();
        assert_eq!(comparison.regressions(), 0);
        assert!(comparison.changes.iter().all(|one| one.verdict == Verdict::OneRound && one.interval.is_none()));
    }

    #[test]
    fn cells_of_one_side_are_named_and_nothing_in_common_is_an_error() {
        let mut after = results();
        after.measurements.retain(|one| one.cell.system != "three");
        let comparison = compare(&results(), &after, 0.05).unwrap();
        assert_eq!((comparison.only_before.len(), comparison.only_after.len()), (7, 0));
        let error = compare(&results(), &empty(&[]), 0.05).unwrap_err().to_string();
        assert!(error.contains("no cell has results in both"), "{error}");
        assert!(compare(&results(), &results(), f64::NAN).is_err());
    }

    #[test]
    fn verdicts_need_the_whole_interval() {
        let of = |low, high, better| verdict(Some(Interval { low, high }), 0.05, better);
        assert_eq!(of(1.06, 1.2, Better::Lower), Verdict::Worse);
        assert_eq!(of(1.04, 1.2, Better::Lower), Verdict::Undecided);
        assert_eq!(of(0.96, 1.05, Better::Lower), Verdict::Equal);
        assert_eq!(of(0.5, 0.9, Better::Lower), Verdict::Better);
        assert_eq!(of(0.5, 0.9, Better::Higher), Verdict::Worse);
    }
}
