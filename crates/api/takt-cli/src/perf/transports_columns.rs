//! The columns of `takt perf transports`.

use super::compare::own;
#[cfg(feature = "dpdk")]
use super::transports_dpdk::columns as by_dpdk;
use takt_bench::Result;
use takt_bench::campaign::Column;
use takt_bench::link::Notify;

/// Agent argument that batches a stream of small samples.
const BATCHED: &str = "budget_us=100";

/// Name of the column, its transport as the agent calls it, and the raw column that is its
/// baseline.
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

/// Returns no columns, since DPDK is not compiled in.
#[cfg(not(feature = "dpdk"))]
fn by_dpdk() -> Result<Vec<Column>> {
    Ok(Vec::new())
}

/// Returns the columns of all technologies.
fn all() -> Result<Vec<Column>> {
    let column = |(name, transport, floor): &(&str, &str, &str)| {
        let notify = name.starts_with("raw-").then_some(Notify::Poll);
        Ok(own(name, transport, notify)?.compared_with(floor))
    };
    TECHNOLOGIES.iter().map(column).chain(by_dpdk()?.into_iter().map(Ok)).collect()
}

/// Returns the columns of all technologies. Columns that spin pause periodically.
pub fn plain() -> Result<Vec<Column>> {
    let mut columns = all()?;
    for column in columns.iter_mut().filter(|column| spins(column)) {
        column.arguments.push("rest=1".into());
    }
    Ok(columns)
}

/// Reports whether the readers of the column spin.
fn spins(column: &Column) -> bool {
    column.name.ends_with("spin")
}

/// Returns the columns of Takt's spinning readers for streams, each with and without batching.
pub fn batched() -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    for column in all()?.into_iter().filter(|column| column.name.starts_with("takt-") && spins(column)) {
        let mut batched = Column { name: format!("{}-batch", column.name), ..column.clone() };
        batched.arguments.push(BATCHED.into());
        columns.extend([column, batched]);
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_baseline_is_a_column() {
        let columns = plain().unwrap();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        for column in columns.iter().filter(|column| !column.baseline.is_empty()) {
            assert!(names.contains(&column.baseline.as_str()), "{}", column.baseline);
        }
    }

    #[test]
    fn spinning_columns_pause_except_in_streams() {
        let pauses = |column: &Column| column.arguments.iter().any(|argument| argument == "rest=1");
        assert!(plain().unwrap().iter().all(|column| pauses(column) == column.name.ends_with("spin")));
        let streams = batched().unwrap();
        assert!(streams.len() >= 4 && !streams.iter().any(pauses));
    }
}
