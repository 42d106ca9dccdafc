//! The columns of `takt perf transports`, and its table of round trips.

use super::compare::own;
use takt_bench::Result;
use takt_bench::campaign::{Cell, Column, Figure, Ratio, ratio};
use takt_bench::link::Notify;
use takt_bench::stats::{Summary, median, spread};

/// With what a stream of small samples is batched.
const BATCHED: &str = "budget_us=100";

/// Name, what the agent calls it, and the raw column that is its floor.
const TECHNOLOGIES: &[(&str, &str, &str)] = &[
    ("raw-udp", "raw", ""),
    ("raw-udp-spin", "raw-spin", ""),
    ("raw-xdp-spin", "raw=xdp:eth0/mode=native-spin", ""),
    ("raw-xdp-generic-spin", "raw=xdp:eth0/mode=generic-spin", ""),
    ("takt-udp", "udp", "raw-udp"),
    ("takt-udp-spin", "spin", "raw-udp-spin"),
    ("takt-xdp", "xdp:eth0/mode=native", ""),
    ("takt-xdp-spin", "xdp:eth0/mode=native-spin", "raw-xdp-spin"),
    ("takt-xdp-generic", "xdp:eth0/mode=generic", ""),
    ("takt-packet-spin", "packet:eth0-spin", ""),
    ("takt-xdp-ethernet-spin", "xdp-ethernet:eth0/mode=native-spin", "raw-xdp-spin"),
    ("takt-xdp-generic-spin", "xdp:eth0/mode=generic-spin", "raw-xdp-generic-spin"),
];

/// All technologies; who spins rests.
pub fn plain() -> Result<Vec<Column>> {
    let column = |(name, transport, floor): &(&str, &str, &str)| {
        let notify = name.starts_with("raw-").then_some(Notify::Poll);
        let mut column = own(name, transport, notify)?.compared_with(floor);
        if transport.ends_with("spin") {
            column.arguments.push("rest=1".into());
        }
        Ok(column)
    };
    TECHNOLOGIES.iter().map(column).collect()
}

/// Takt's technologies with readers that spin, as they are and batched; for streams.
pub fn batched() -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    for (name, transport, _) in TECHNOLOGIES {
        if name.starts_with("takt-") && name.ends_with("spin") {
            let column = own(name, transport, None)?;
            let mut batched = Column { name: format!("{name}-batch"), ..column.clone() };
            batched.arguments.push(BATCHED.into());
            columns.extend([column, batched]);
        }
    }
    Ok(columns)
}

/// Mean and 99.99th percentile of each of Takt's columns: to Takt by sockets, to others, and to what is below it.
pub fn ratios_of_trips(cells: &[Cell], columns: &[Column], peers: &[Column]) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    /// A figure of a summary.
    type Of = fn(&Summary) -> f64;
    let figures: [(&str, Of); 3] = [("mean", |s| s.mean), ("p50", |s| s.p50), ("p99.99", |s| s.p9999)];
    for (name, of) in figures {
        let figure = |cell: &Cell| {
            let value = of(cell.latency_us.as_ref()?);
            Some(Figure { column: cell.column.clone(), round: cell.round, value })
        };
        let values: Vec<Figure> = cells.iter().filter_map(figure).collect();
        for column in columns.iter().filter(|column| column.name.starts_with("takt-")) {
            let others = peers.iter().map(|peer| peer.name.as_str());
            let others = ["takt-udp-spin", column.baseline.as_str()].into_iter().chain(others);
            ratios
                .extend(others.filter(|to| *to != column.name).filter_map(|to| ratio(name, &values, &column.name, to)));
        }
    }
    ratios
}

/// Round-trip times, us: medians over the rounds, and the longest of all.
pub fn trips_table(cells: &[Cell], columns: &[Column]) -> String {
    let mut text = format!(
        "{:<26} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>6} {:>7}\n",
        "round trips, us", "mean", "p50", "p99", "p99.9", "p99.99", "max", "lost", "others"
    );
    for column in columns {
        let own: Vec<&Cell> = cells.iter().filter(|cell| cell.column == column.name).collect();
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
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_floor_is_a_column() {
        let columns = plain().unwrap();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        for column in columns.iter().filter(|column| !column.baseline.is_empty()) {
            assert!(names.contains(&column.baseline.as_str()), "{}", column.baseline);
        }
    }

    #[test]
    fn who_spins_rests_but_not_in_streams() {
        let rests = |column: &Column| column.arguments.iter().any(|argument| argument == "rest=1");
        assert!(plain().unwrap().iter().all(|column| rests(column) == column.name.ends_with("spin")));
        let streams = batched().unwrap();
        assert!(streams.len() >= 4 && !streams.iter().any(rests));
    }

    #[test]
    fn the_table_has_a_line_for_each_column_and_ratios_name_their_floor() {
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
        let text = trips_table(&cells, &columns);
        assert_eq!(text.lines().count(), 4, "{text}");
        let ratios = ratios_of_trips(&cells, &columns, &[]);
        let found = |to: &str| ratios.iter().find(|r| r.column == "takt-xdp-spin" && r.to == to && r.figure == "mean");
        assert_eq!(found("takt-udp-spin").unwrap().ratio, 0.5);
        assert_eq!(found("raw-xdp-spin").unwrap().difference, 1.0);
    }
}
