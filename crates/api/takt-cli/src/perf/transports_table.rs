//! The tables of `takt perf transports`.

use takt_bench::campaign::{Cell, Column, Failure, Figure, Ratio, ratio};
use takt_bench::stats::{Summary, median, spread};

/// Returns ratios of mean, median and 99.99th percentile.
///
/// They relate each column of Takt to Takt over sockets, to other middleware and to its baseline,
/// and plain datagrams to plain sockets.
pub fn ratios_of_trips(cells: &[Cell], columns: &[Column], peers: &[Column]) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    /// Selects a figure of a summary.
    type Of = fn(&Summary) -> f64;
    let figures: [(&str, Of); 3] = [("mean", |s| s.mean), ("p50", |s| s.p50), ("p99.99", |s| s.p9999)];
    for (name, of) in figures {
        let figure = |cell: &Cell| {
            let value = of(cell.latency_us.as_ref()?);
            Some(Figure { column: cell.column.clone(), round: cell.round, value })
        };
        let values: Vec<Figure> = cells.iter().filter_map(figure).collect();
        for column in columns {
            let others: Vec<&str> = match column.name.split_once('-') {
                Some(("takt", _)) => {
                    let peers = peers.iter().map(|peer| peer.name.as_str());
                    ["takt-udp-spin", column.baseline.as_str()].into_iter().chain(peers).collect()
                }
                Some(("raw", _)) => vec!["raw-udp-spin"],
                _ => Vec::new(),
            };
            let others = others.into_iter().filter(|to| *to != column.name);
            ratios.extend(others.filter_map(|to| ratio(name, &values, &column.name, to)));
        }
    }
    ratios
}

/// Returns the row for a failed column, which replaces its figures or follows them.
fn failure_row(column: &str, failures: &[Failure]) -> String {
    let own = failures.iter().find(|failure| failure.column == column);
    own.map_or_else(String::new, |Failure { round, why, .. }| {
        format!("{column:<26} failed in round {}: {}\n", round + 1, why.replace('\n', " "))
    })
}

/// Formats a line for each column: the median, minimum and maximum over its rounds, and the text of
/// `more`.
pub fn rounds_table(
    head: [&str; 3],
    columns: &[&str],
    figures: &[Figure],
    failures: &[Failure],
    more: impl Fn(&str) -> String,
) -> String {
    let [what, unit, last] = head;
    let mut text = format!("{what:<26} {unit:>12} {:>24} {last:>10}\n", "(rounds)");
    for column in columns {
        let own: Vec<f64> = figures.iter().filter(|f| f.column == *column).map(|f| f.value).collect();
        if !own.is_empty() {
            let (low, high) = spread(&own);
            let range = format!("{low:.2}..{high:.2}");
            text += &format!("{column:<26} {:>12.2} {range:>24} {:>10}\n", median(&own), more(column));
        }
        text += &failure_row(column, failures);
    }
    text
}

/// Formats the round-trip times in us: medians over the rounds, and the maximum of all rounds.
pub fn trips_table(cells: &[Cell], columns: &[Column], failures: &[Failure]) -> String {
    let mut text = format!(
        "{:<26} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>6} {:>7}\n",
        "round trips, us", "mean", "p50", "p99", "p99.9", "p99.99", "max", "lost", "others"
    );
    for column in columns {
        let own: Vec<&Cell> = cells.iter().filter(|cell| cell.column == column.name).collect();
        if own.is_empty() {
            text += &failure_row(&column.name, failures);
            continue;
        }
        let of = |figure: fn(&Summary) -> f64| -> Vec<f64> {
            own.iter().filter_map(|cell| cell.latency_us.as_ref().map(figure)).collect()
        };
        let medians = [of(|s| s.mean), of(|s| s.p50), of(|s| s.p99), of(|s| s.p999), of(|s| s.p9999)];
        let [mean, p50, p99, p999, p9999] = medians.map(|values| median(&values));
        let max = spread(&of(|s| s.max)).1;
        let lost: u64 = own.iter().map(|cell| cell.lost).sum();
        let others = median(&own.iter().map(|cell| cell.foreign * 100.0).collect::<Vec<f64>>());
        text += &format!(
            "{:<26} {mean:>8.2} {p50:>8.2} {p99:>8.2} {p999:>8.2} {p9999:>8.2} {max:>9.2} {lost:>6} {others:>5.0} %\n",
            column.name
        );
        text += &failure_row(&column.name, failures);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::transports_columns::plain;
    use super::*;

    #[test]
    fn table_has_a_line_for_each_column_and_ratios_name_their_baseline() {
        let cell = |column: &str, mean: f64| Cell {
            column: column.into(),
            round: 0,
            size: 32,
            latency_us: Some(Summary { mean, p50: mean, p9999: 2.0 * mean, max: 90.0, ..Summary::default() }),
            lost: 0,
            cpu_us: 0.0,
            switches: 0.0,
            listening: true,
            foreign: 0.0,
            tries: 1,
        };
        let cells = [cell("raw-xdp-spin", 4.0), cell("takt-xdp-spin", 5.0), cell("takt-udp-spin", 10.0)];
        let columns: Vec<Column> =
            plain().unwrap().into_iter().filter(|c| cells.iter().any(|cell| cell.column == c.name)).collect();
        let text = trips_table(&cells, &columns, &[]);
        assert_eq!(text.lines().count(), 4, "{text}");
        let ratios = ratios_of_trips(&cells, &columns, &[]);
        let found = |to: &str| ratios.iter().find(|r| r.column == "takt-xdp-spin" && r.to == to && r.figure == "mean");
        assert_eq!(found("takt-udp-spin").unwrap().ratio, 0.5);
        assert_eq!(found("raw-xdp-spin").unwrap().difference, 1.0);
    }

    #[test]
    fn failed_column_has_a_row_with_the_reason() {
        let failures = [Failure { column: "b".into(), round: 1, why: "pong: ended without \"ready\"".into() }];
        let figure = |column: &str, value| Figure { column: column.into(), round: 0, value };
        let figures = [figure("a", 1.0), figure("b", 2.0)];
        let text = rounds_table(["rate", "MB/s", "lost"], &["a", "b"], &figures, &failures, |_| "7".into());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("a  ") && lines[1].ends_with(" 7"), "{text}");
        assert!(lines[2].starts_with("b  ") && lines[2].contains(" 2.00 "), "what it has measured: {text}");
        assert_eq!(lines[3].split_once(' ').unwrap().1.trim(), "failed in round 2: pong: ended without \"ready\"");
        let column = Column::parse("b=/bin/b").unwrap();
        assert!(trips_table(&[], &[column], &failures).lines().nth(1).unwrap().contains("failed in round 2"));
    }
}
