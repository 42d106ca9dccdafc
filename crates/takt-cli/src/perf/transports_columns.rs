//! The columns of `takt perf transports`.

use super::compare::own;
#[cfg(feature = "dpdk")]
use super::transports_dpdk::columns as by_dpdk;
use takt_bench::Result;
use takt_bench::campaign::Column;
use takt_bench::link::Notify;

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

/// Without DPDK there are none.
#[cfg(not(feature = "dpdk"))]
fn by_dpdk() -> Result<Vec<Column>> {
    Ok(Vec::new())
}

/// All technologies.
fn all() -> Result<Vec<Column>> {
    let column = |(name, transport, floor): &(&str, &str, &str)| {
        let notify = name.starts_with("raw-").then_some(Notify::Poll);
        Ok(own(name, transport, notify)?.compared_with(floor))
    };
    TECHNOLOGIES.iter().map(column).chain(by_dpdk()?.into_iter().map(Ok)).collect()
}

/// All technologies; who spins rests.
pub fn plain() -> Result<Vec<Column>> {
    let mut columns = all()?;
    for column in columns.iter_mut().filter(|column| spins(column)) {
        column.arguments.push("rest=1".into());
    }
    Ok(columns)
}

/// Its readers spin.
fn spins(column: &Column) -> bool {
    column.name.ends_with("spin")
}

/// Takt's technologies with readers that spin, as they are and batched; for streams.
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
}
