//! Welch's t-test for each pair of systems, over samples and over rounds.

use super::super::pool::Pool;
use super::super::rendered_figure::{FigureContext, RenderedFigure, Table};
use super::super::value::number;
use super::bars::groups;
use crate::statistics::welch::{Welch, welch};

/// Smallest p that R and the publication report.
const P_MIN: f64 = 2.2e-16;

pub fn render(scene: &FigureContext<'_>) -> RenderedFigure {
    let mut table = Table::new(&[
        "at",
        "first",
        "second",
        "unit of observation",
        "n",
        "difference of means",
        "95 % interval",
        "t",
        "df",
        "p",
        "Hedges' g",
        "95 % interval of g",
        "remarks",
    ]);
    for (group, pools) in groups(scene) {
        for (first, second) in pairs(scene, &pools) {
            table.rows.extend(rows(scene, group.as_deref(), first, second));
        }
    }
    let mut notes = vec![
        "Difference: first minus second. Samples of a round depend on each other, so the test over samples overstates the evidence. Rounds are \
         independent restarts: the test over their means is the one to go by. With thousands of samples any difference has a small p; look at \
         the interval and at g (0.2 small, 0.5 medium, 0.8 large). p is not corrected for the number of pairs."
            .to_owned(),
    ];
    if table.rows.iter().any(|row| row.last().is_some_and(|remarks| remarks.contains('†'))) {
        notes.push("† Only one of the two batches: the test does not compare like with like.".into());
    }
    RenderedFigure { table, notes, ..RenderedFigure::default() }
}

/// Returns each pair of systems, or with a baseline each pair that contains it.
fn pairs<'a>(scene: &FigureContext<'_>, pools: &[&'a Pool<'a>]) -> Vec<(&'a Pool<'a>, &'a Pool<'a>)> {
    let baseline = scene.figure.baseline.as_deref();
    let is_first = |pool: &Pool<'_>| baseline.is_none_or(|name| pool.cell.system == name);
    let mut pairs = Vec::new();
    for (index, first) in pools.iter().enumerate().filter(|(_, pool)| is_first(pool)) {
        let others = if baseline.is_some() { pools } else { &pools[index + 1..] };
        let is_second =
            |other: &&&Pool<'_>| other.cell.system != first.cell.system && scene.rest(other) == scene.rest(first);
        pairs.extend(others.iter().filter(is_second).map(|second| (*first, *second)));
    }
    pairs
}

/// Reports whether exactly one of two systems batches samples.
pub fn differs_in_batching(first: &Pool<'_>, second: &Pool<'_>) -> bool {
    first.batches() != second.batches()
}

fn rows(scene: &FigureContext<'_>, group: Option<&str>, first: &Pool<'_>, second: &Pool<'_>) -> Vec<Vec<String>> {
    let factor = scene.factor(&scene.value);
    let mut remarks: Vec<String> = Vec::new();
    if differs_in_batching(first, second) {
        remarks.push("† batching differs".into());
    }
    for pool in [first, second].into_iter().filter(|pool| pool.disturbed() > 0) {
        remarks.push(format!("* {} disturbed", pool.title()));
    }
    let remarks = remarks.join("; ");
    let name = |pool: &Pool<'_>| format!("{}{}", scene.name(pool), if pool.disturbed() > 0 { " *" } else { "" });
    let row = |unit: &str, n: [f64; 2], test: Option<Welch>| {
        let mut row = vec![
            group.unwrap_or_default().to_owned(),
            name(first),
            name(second),
            unit.to_owned(),
            format!("{} / {}", n[0], n[1]),
        ];
        match test {
            Some(test) => row.extend(fields(&test, factor)),
            None => row.extend(
                ["n/a", if n[0] < 2.0 || n[1] < 2.0 { "one round" } else { "no variance" }, "", "", "", "", ""]
                    .map(str::to_owned),
            ),
        }
        row.push(remarks.clone());
        row
    };
    let mut rows = Vec::new();
    if scene.value.is_latency()
        && let (Some(one), Some(other)) = (first.moments(), second.moments())
    {
        rows.push(row("samples (means)", [one.count, other.count], welch(&one, &other)));
    }
    if first.rounds.len().max(second.rounds.len()) > 1
        && let (Some(one), Some(other)) =
            (first.moments_of_rounds(&scene.value), second.moments_of_rounds(&scene.value))
    {
        rows.push(row("rounds", [one.count, other.count], welch(&one, &other)));
    }
    rows
}

fn fields(test: &Welch, factor: f64) -> [String; 7] {
    let interval = test.interval.scaled(factor);
    [
        number(test.difference * factor),
        format!("{} to {}", number(interval.low), number(interval.high)),
        number(test.t),
        number(test.df),
        p(test.p),
        format!("{:.2}", test.g),
        format!("{:.2} to {:.2}", test.g_interval.low, test.g_interval.high),
    ]
}

/// Formats a probability as statistics programs print it.
fn p(p: f64) -> String {
    match p {
        small if small < P_MIN => "< 2.2e-16".into(),
        small if small < 1e-3 => format!("{p:.1e}"),
        _ => format!("{p:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::p;

    #[test]
    fn small_probabilities_are_shown_as_a_bound() {
        assert_eq!([p(0.0), p(1e-15), p(0.0499), p(1.0)], ["< 2.2e-16", "1.0e-15", "0.050", "1.000"]);
    }
}
