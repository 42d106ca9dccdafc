//! Numbers of the paper, for comparison. Its figures are drawings; these numbers are from its text
//! (section 5).

use super::category::Category;
use super::outcome::{Cell, Outcome};
use super::{Condition, Plan, flood};

/// Statement of the paper and the value measured here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Subject of the statement.
    pub what: &'static str,
    /// Statement of the paper.
    pub paper: &'static str,
    /// Measured value; `None` if there is none.
    pub here: Option<String>,
}

/// Frame lengths of the paper, octets.
const LARGE: usize = 1400;
const SMALL: usize = 100;

/// Returns the time in which a full queue passes the link, ms.
fn queue_ms(outcome: &Outcome, cell: &Cell) -> f64 {
    let bits = u64::from(outcome.plan.frames) * 8 * flood::wire_octets(LARGE);
    bits as f64 / f64::from(cell.run.megabits) / 1000.0
}

/// Returns the comparisons for one product.
#[must_use]
pub fn compare(outcome: &Outcome, program: &str) -> Vec<Comparison> {
    let Plan { megabits, seconds, .. } = outcome.plan;
    let cells: Vec<&Cell> = outcome.cells.iter().filter(|cell| cell.run.program == program).collect();
    let of = |condition: Condition| cells.iter().copied().filter(move |cell| cell.run.condition == condition);
    let best_effort = |condition| of(condition).filter(|cell| !cell.run.category.is_reliable());
    let controlled = |octets| of(Condition::Controlled(octets));
    let lost = |cells: &[&Cell]| {
        let [lost, sent] =
            [Cell::lost, |cell: &Cell| cell.sent].map(|of| cells.iter().map(|cell| of(cell)).sum::<u64>());
        (!cells.is_empty()).then(|| format!("{lost} of {sent} lost"))
    };
    let worst = |figure: fn(&Cell) -> Option<f64>, cells: &[&Cell]| {
        cells.iter().filter_map(|cell| figure(cell)).max_by(f64::total_cmp)
    };
    let p99 = |cell: &Cell| cell.normalised.as_ref().map(|summary| summary.p99 / 1000.0);
    let max = |cell: &Cell| cell.normalised.as_ref().map(|summary| summary.max / 1000.0);
    let protected: Vec<_> = controlled(LARGE).collect();
    let harmed: Vec<_> = best_effort(Condition::Overload(LARGE)).collect();
    let kept: Vec<_> =
        of(Condition::Overload(LARGE)).filter(|cell| cell.run.category == Category::ReliableAll).collect();
    let behind = protected.iter().filter_map(|cell| cell.behind_idle).max();
    vec![
        Comparison {
            what: "link and overload",
            paper: "one switch, 1,000 Mbit/s and 2,000 Mbit/s, 25 s",
            here: Some(format!("{megabits} Mbit/s and twice as much, {seconds} s")),
        },
        Comparison {
            what: "idle, updates a second",
            paper: "200",
            here: best_effort(Condition::Idle).next().map(|cell| {
                format!("{:.1}", cell.received as f64 / (cell.sent as f64 * cell.series.period_ns as f64 / 1e9))
            }),
        },
        Comparison {
            what: "best effort, overload in frames of 1,400 B",
            paper: "updates are lost in each second of overload, for every sample size",
            here: lost(&harmed),
        },
        Comparison {
            what: "its normalized latency, largest",
            paper: "a plateau at the delay of the switch queue",
            here: worst(max, &harmed)
                .zip(harmed.first())
                .map(|(most, cell)| format!("{most:.1} ms; the queue takes {:.1} ms", queue_ms(outcome, cell))),
        },
        Comparison {
            what: "reliable, all kept, overload: longest time without an update",
            paper: "some 7 s (from 1 s to 8 s); \"over 8 seconds\"",
            here: worst(|cell| Some(cell.longest_gap_us / 1e6), &kept).map(|gap| format!("{gap:.2} s")),
        },
        Comparison {
            what: "controller, frames of 1,400 B",
            paper: "the cumulative line tracks the idle one",
            here: lost(&protected).zip(behind).map(|(lost, behind)| format!("{lost}, {behind} behind idle at most")),
        },
        Comparison {
            what: "its normalized latency, p99",
            paper: "close to the idle run; the contract asks for 1 ms",
            here: worst(p99, &protected).map(|p99| format!("{p99:.2} ms in the worst run")),
        },
        Comparison {
            what: "controller, frames of 100 B",
            paper: "updates are lost: the subscriber's interface cannot keep up",
            here: lost(&controlled(SMALL).collect::<Vec<_>>()),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::outcome;
    use super::*;

    #[test]
    fn comparisons_contain_measured_values_and_none_for_missing_runs() {
        let found = compare(&outcome(), "takt");
        let here = |what: &str| found.iter().find(|one| one.what == what).and_then(|one| one.here.clone());
        assert_eq!(here("idle, updates a second").as_deref(), Some("200.0"));
        assert_eq!(here("best effort, overload in frames of 1,400 B").as_deref(), Some("30 of 400 lost"));
        assert_eq!(here("controller, frames of 1,400 B").as_deref(), Some("0 of 400 lost, 0 behind idle at most"));
        assert_eq!(here("its normalized latency, largest").as_deref(), Some("0.0 ms; the queue takes 29.2 ms"));
        assert_eq!(here("controller, frames of 100 B"), None);
        assert!(compare(&outcome(), "other").iter().skip(1).all(|one| one.here.is_none()));
    }
}
