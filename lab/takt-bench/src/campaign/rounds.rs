//! Rotation of the columns of a campaign; a column that fails is left out of the following rounds.

use super::site::clear;
use super::{Plan, lock_campaign};
use crate::error::{Error, Result};
use crate::signal::stopped;
use serde::Serialize;

/// Results and failures of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Outcome<C> {
    /// Measured cells.
    pub cells: Vec<C>,
    /// Columns that failed, each measured only before the round of its failure. Empty if a failure
    /// ends the campaign.
    pub failures: Vec<Failure>,
}

/// Failure of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Name of the column.
    pub column: String,
    /// Index of the round, from 0.
    pub round: usize,
    /// Reason of the failure.
    pub why: String,
}

/// Measures each of `columns` once in each round, in an order that rotates. `measure` receives the
/// index of the column and the round. `progress` is called before every measurement. Waits until no
/// other campaign runs on the machine.
///
/// # Errors
/// A signal requested a stop, or a column failed and the plan does not continue after a failure.
pub(super) fn run_rounds<C>(
    plan: &Plan,
    columns: &[&str],
    progress: &mut dyn FnMut(usize, &str),
    mut measure: impl FnMut(usize, usize) -> Result<Vec<C>>,
) -> Result<Outcome<C>> {
    let _lock = lock_campaign()?;
    let (mut cells, mut failures): (Vec<C>, Vec<Failure>) = (Vec::new(), Vec::new());
    for round in 0..plan.rounds {
        for position in 0..columns.len() {
            let at = (position + round) % columns.len();
            if failures.iter().any(|failure| failure.column == columns[at]) {
                continue;
            }
            if stopped() {
                return Err(Error::Stopped);
            }
            progress(round, columns[at]);
            match measure(at, round) {
                Ok(measured) => cells.extend(measured),
                Err(why) if matches!(why, Error::Stopped) || stopped() || !plan.continue_on_failure => return Err(why),
                Err(why) => {
                    plan.ends.iter().flatten().for_each(clear);
                    let why = if let Error::Agent { what, .. } = why { what } else { why.to_string() };
                    failures.push(Failure { column: columns[at].into(), round, why });
                }
            }
        }
    }
    Ok(Outcome { cells, failures })
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;

    fn failing(plan: &Plan, from: usize) -> Result<Outcome<(usize, usize)>> {
        let bad = || Error::Agent { column: "b".into(), what: "pong: no \"ready\" in time".into() };
        run_rounds(plan, &["a", "b", "c"], &mut |_, _| {}, |at, round| match (at, round) {
            (1, round) if round >= from => Err(bad()),
            _ => Ok(vec![(at, round)]),
        })
    }

    #[test]
    fn failed_column_is_left_out_and_the_others_continue() {
        let plan = Plan { rounds: 3, continue_on_failure: true, ..plan(&[16]) };
        let Outcome { cells, failures } = failing(&plan, 1).unwrap();
        assert_eq!(cells, [(0, 0), (1, 0), (2, 0), (2, 1), (0, 1), (2, 2), (0, 2)]);
        let why = "pong: no \"ready\" in time".to_owned();
        assert_eq!(failures, [Failure { column: "b".into(), round: 1, why }]);
    }

    #[test]
    fn first_failure_ends_a_campaign_that_does_not_continue() {
        let error = failing(&Plan { rounds: 3, ..plan(&[16]) }, 0).unwrap_err().to_string();
        assert_eq!(error, "column b: pong: no \"ready\" in time");
    }
}
