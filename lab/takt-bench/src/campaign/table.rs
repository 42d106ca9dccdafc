//! Table of a campaign's cells: medians over rounds, and ratios within rounds.

use super::{Cell, Column};
use crate::stats::{Summary, median, spread};
use serde::Serialize;
use std::fmt::Write;

/// Results of one column over all rounds, for one size. Latencies are in us.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Payload size in bytes.
    pub size: usize,
    /// Name of the column.
    pub column: String,
    /// Name of the column that this one is compared with.
    pub baseline: String,
    /// Number of rounds with a result.
    pub rounds: usize,
    /// Median over rounds of the medians.
    pub p50: f64,
    /// Smallest and biggest median of a round.
    pub p50_spread: (f64, f64),
    /// Median over rounds of the ratio to the baseline's median in the same round.
    pub ratio: f64,
    /// Smallest and biggest of those ratios.
    pub ratio_spread: (f64, f64),
    /// Median over rounds of the 99th percentile.
    pub p99: f64,
    /// Median over rounds of the 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p999: f64,
    /// Maximum over all rounds.
    pub max: f64,
    /// Median over rounds of the pinging process's CPU time per round trip.
    pub cpu_us: f64,
    /// Median over rounds of its context switches per round trip.
    pub switches: f64,
    /// Number of pings without a pong, over all rounds.
    pub lost: u64,
    /// Median over rounds of the share of the machine that other processes took.
    pub foreign: f64,
}

/// Returns a row for each size and column, in the order of the columns.
#[must_use]
pub fn tabulate(sizes: &[usize], columns: &[Column], cells: &[Cell]) -> Vec<Row> {
    let rows = sizes.iter().flat_map(|&size| columns.iter().map(move |column| row(size, column, cells)));
    rows.collect()
}

fn row(size: usize, column: &Column, cells: &[Cell]) -> Row {
    let own: Vec<(&Cell, &Summary)> = measured(size, &column.name, cells).collect();
    let over_rounds = |figure: &dyn Fn(&Cell, &Summary) -> f64| -> Vec<f64> {
        own.iter().map(|(cell, summary)| figure(cell, summary)).collect()
    };
    let medians = over_rounds(&|_, summary| summary.p50);
    let ratios: Vec<f64> = own
        .iter()
        .filter_map(|(cell, summary)| {
            measured(size, &column.baseline, cells)
                .find(|(base, _)| base.round == cell.round)
                .map(|(_, base)| summary.p50 / base.p50)
        })
        .collect();
    Row {
        size,
        column: column.name.clone(),
        baseline: column.baseline.clone(),
        rounds: own.len(),
        p50: median(&medians),
        p50_spread: spread(&medians),
        ratio: median(&ratios),
        ratio_spread: spread(&ratios),
        p99: median(&over_rounds(&|_, summary| summary.p99)),
        p999: median(&over_rounds(&|_, summary| summary.p999)),
        max: spread(&over_rounds(&|_, summary| summary.max)).1,
        cpu_us: median(&over_rounds(&|cell, _| cell.cpu_us)),
        switches: median(&over_rounds(&|cell, _| cell.switches)),
        lost: own.iter().map(|(cell, _)| cell.lost).sum(),
        foreign: median(&over_rounds(&|cell, _| cell.foreign)),
    }
}

fn measured<'a>(size: usize, column: &'a str, cells: &'a [Cell]) -> impl Iterator<Item = (&'a Cell, &'a Summary)> {
    cells
        .iter()
        .filter(move |cell| cell.size == size && cell.column == column)
        .filter_map(|cell| cell.latency_us.as_ref().map(|summary| (cell, summary)))
}

/// Formats the rows as a Markdown table.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let head = [
        "bytes", "column", "p50 us", "(rounds)", "to raw", "(rounds)", "p99", "p99.9", "max", "cpu us", "switches",
        "lost", "others",
    ];
    let mut lines: Vec<Vec<String>> = vec![head.map(String::from).to_vec()];
    lines.extend(rows.iter().map(fields));
    let widths: Vec<usize> =
        (0..head.len()).map(|i| lines.iter().map(|line| line[i].len()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        text.push('|');
        for (index, (field, width)) in line.iter().zip(&widths).enumerate() {
            // Names are left-aligned, figures right-aligned. Writing to a String cannot fail.
            let _ = match index {
                1 => write!(text, " {field:<width$} |"),
                _ => write!(text, " {field:>width$} |"),
            };
        }
        text.push('\n');
        if number == 0 {
            text.push('|');
            for (index, width) in widths.iter().enumerate() {
                let _ = match index {
                    1 => write!(text, ":{}|", "-".repeat(width + 1)),
                    _ => write!(text, "{}:|", "-".repeat(width + 1)),
                };
            }
            text.push('\n');
        }
    }
    text
}

fn fields(row: &Row) -> Vec<String> {
    if row.rounds == 0 {
        let dashes = std::iter::repeat_n("-".to_string(), 11);
        return [row.size.to_string(), row.column.clone()].into_iter().chain(dashes).collect();
    }
    let range = |(lo, hi): (f64, f64)| format!("{lo:.2}..{hi:.2}");
    vec![
        row.size.to_string(),
        row.column.clone(),
        format!("{:.2}", row.p50),
        range(row.p50_spread),
        format!("{:.3}", row.ratio),
        range(row.ratio_spread),
        format!("{:.1}", row.p99),
        format!("{:.1}", row.p999),
        format!("{:.1}", row.max),
        format!("{:.1}", row.cpu_us),
        format!("{:.2}", row.switches),
        row.lost.to_string(),
        format!("{:.0} %", row.foreign * 100.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(column: &str, round: usize, p50: f64) -> Cell {
        Cell {
            column: column.into(),
            round,
            size: 64,
            latency_us: Some(Summary { p50, p99: 2.0 * p50, p999: 3.0 * p50, max: 10.0 * p50, ..Summary::default() }),
            lost: 1,
            cpu_us: p50 / 2.0,
            switches: 1.0,
            listening: false,
            foreign: 0.1,
            tries: 1,
        }
    }

    fn columns() -> Vec<Column> {
        ["raw=/r", "takt=/t"].iter().map(|text| Column::parse(text).unwrap().compared_with("raw")).collect()
    }

    #[test]
    fn ratios_are_within_rounds_and_then_over_rounds() {
        // The machine is twice as slow in round 1. Ratio of medians over all: 12 / 10; within
        // rounds 1.1, 1.3, 1.2.
        let cells = [
            cell("raw", 0, 10.0),
            cell("takt", 0, 11.0),
            cell("raw", 1, 20.0),
            cell("takt", 1, 26.0),
            cell("raw", 2, 10.0),
            cell("takt", 2, 12.0),
        ];
        let rows = tabulate(&[64], &columns(), &cells);
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].ratio, rows[0].ratio_spread), (1.0, (1.0, 1.0)));
        assert_eq!((rows[1].p50, rows[1].p50_spread), (12.0, (11.0, 26.0)));
        assert!((rows[1].ratio - 1.2).abs() < 1e-9);
        assert!((rows[1].ratio_spread.0 - 1.1).abs() < 1e-9);
        assert!((rows[1].ratio_spread.1 - 1.3).abs() < 1e-9);
        assert_eq!((rows[1].p99, rows[1].p999, rows[1].max), (24.0, 36.0, 260.0));
        assert_eq!((rows[1].cpu_us, rows[1].lost, rows[1].rounds), (6.0, 3, 3));
    }

    #[test]
    fn column_without_a_result_shows_dashes() {
        let mut silent = cell("takt", 0, 1.0);
        silent.latency_us = None;
        let rows = tabulate(&[64], &columns(), &[cell("raw", 0, 10.0), silent]);
        let text = table(&rows);
        let last = text.lines().last().unwrap();
        assert!(last.contains("takt") && last.contains(" - |"), "{text}");
    }

    #[test]
    fn the_table_is_aligned() {
        let rows = tabulate(&[64], &columns(), &[cell("raw", 0, 10.0), cell("takt", 0, 12_345.6)]);
        let text = table(&rows);
        let widths: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(widths.len(), 4);
        assert!(widths.iter().all(|w| *w == widths[0]), "{text}");
        assert!(text.contains("1234.560"), "{text}");
    }
}
