//! Summary of a campaign: a few rows at the beginning of the report.

use super::pool::{Pool, pools};
use super::rendered_figure::Table;
use super::value::{Value, number};
use crate::statistics::Interval;
use crate::study::cell::Better;
use crate::study::directory::Results;
use crate::study::file::SummaryRow;

/// Returns the rows of the summary; `None` if the campaign has none.
#[must_use]
pub fn table(results: &Results) -> Option<Table> {
    let campaign = &results.header.campaign;
    if campaign.summary.is_empty() {
        return None;
    }
    let mut table = Table::new(&["what", "value", "measured", "best of the others", "ratio to it", "limit"]);
    for row in &campaign.summary {
        let workload = campaign.workloads.iter().find(|workload| workload.name == row.workload);
        let pools = workload.map(|workload| pools(results, workload)).unwrap_or_default();
        table.rows.push(fields(row, &pools));
    }
    Some(table)
}

fn fields(row: &SummaryRow, pools: &[Pool<'_>]) -> Vec<String> {
    let value = Value::named(&row.value);
    let of_system = |name: &str| pools.iter().find(|pool| pool.cell.system == name && is_meant(row, pool));
    let measured = of_system(&row.system);
    let others = row.others.iter().filter_map(|name| of_system(name));
    let best = others.filter(|pool| pool.estimate(&value).is_some()).reduce(|best, pool| {
        let at = |pool: &Pool<'_>| pool.estimate(&value).map_or(f64::NAN, |estimate| estimate.value);
        let is_better = match value.better() {
            Better::Higher => at(pool) > at(best),
            Better::Lower => at(pool) < at(best),
        };
        if is_better { pool } else { best }
    });
    let ratio = measured.zip(best).and_then(|(measured, best)| measured.ratio(best, &value));
    let text = |pool: Option<&Pool<'_>>, value: &Value| pool.map_or_else(|| NONE.into(), |pool| estimate(pool, value));
    vec![
        row.title.clone(),
        value.title(false),
        text(measured, &value),
        text(best, &value),
        ratio.map_or_else(|| NONE.into(), |(ratio, interval)| spread(ratio, interval)),
        match &row.limit {
            Some(limit) => text(of_system(limit), &value),
            None => String::new(),
        },
    ]
}

/// Text in place of missing values.
const NONE: &str = "not measured";

fn is_meant(row: &SummaryRow, pool: &Pool<'_>) -> bool {
    row.filter.iter().all(|(name, value)| pool.cell.values.get(name) == Some(value))
}

/// Formats a value with its interval, its system and the mark of a disturbed cell.
fn estimate(pool: &Pool<'_>, value: &Value) -> String {
    let Some(estimate) = pool.estimate(value) else { return NONE.into() };
    let mark = if pool.disturbed() > 0 { " *" } else { "" };
    format!("{}, {}{mark}", spread(estimate.value, estimate.interval), pool.title())
}

fn spread(value: f64, interval: Option<Interval>) -> String {
    match interval {
        Some(interval) => format!("{} ({} to {})", number(value), number(interval.low), number(interval.high)),
        None => number(value),
    }
}
