//! Job of kind `round-trip`, with the roles `ping` and `pong`.

use super::{CellResult, Measurement, READY_LIMIT, RUN_LIMIT, Report, number, whole};
use crate::error::Result;
use crate::study::cell::{Latency, Measured};
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum average round-trip time that a job waits for.
const ROUND_TRIP_LIMIT: Duration = Duration::from_millis(10);

impl Measurement<'_> {
    pub(super) fn round_trip(&self) -> Result<Report> {
        let cells = &self.job.cells;
        let sizes: Vec<String> =
            cells.iter().filter_map(|cell| cell.values.get("size")).map(ToString::to_string).collect();
        let mut of_both = Vec::new();
        if cells.len() > 1 {
            of_both.push(format!("sizes={}", sizes.join(",")));
        }
        let out = self.out_file(0);
        let mut pong = self.start("pong", 1, &of_both)?;
        pong.child.wait_for("ready", READY_LIMIT)?;
        let of_ping = [of_both, vec![out.argument()]].concat();
        let mut ping = self.start("ping", 0, &of_ping)?;
        let commands = vec![self.command(&ping), self.command(&pong)];
        let (warmup, count) = (self.number("warmup", 1000), self.number("count", 10_000));
        let period = Duration::from_micros(self.number("period-us", 0)).max(ROUND_TRIP_LIMIT);
        let trips = u32::try_from((warmup + count) * cells.len() as u64).unwrap_or(u32::MAX);
        let results = ping.child.results_until("done", RUN_LIMIT + period.saturating_mul(trips))?;
        ping.child.stop()?;
        pong.child.stop()?;
        if results.len() != cells.len() {
            return Err(self.failure(format!("ping returned {} results for {} cells", results.len(), cells.len())));
        }
        let mut times = out.read()?.into_iter();
        let mut found = Vec::new();
        for (cell, result) in cells.iter().zip(&results) {
            let got = whole(result, "got");
            let times_ns: Vec<u64> = times.by_ref().take(usize::try_from(got).unwrap_or(usize::MAX)).collect();
            if times_ns.len() as u64 != got {
                let text = format!("ping reports {got} round trips and recorded {}", times_ns.len());
                return Err(self.failure(text));
            }
            let trips = got.max(1) as f64;
            let figures = BTreeMap::from([
                ("lost".to_owned(), whole(result, "lost") as f64),
                ("cpu_us".to_owned(), number(result, "cpu_s") * 1e6 / trips),
                ("switches".to_owned(), (whole(result, "nvcsw") + whole(result, "nivcsw")) as f64 / trips),
            ]);
            let latency = Latency::of(times_ns.clone());
            if latency.is_none() {
                return Err(self.failure(format!("no round trip of {cell} completed")));
            }
            found.push(CellResult {
                cell: cell.clone(),
                measured: Measured { figures, latency, ..Measured::default() },
                times_ns,
            });
        }
        Ok(Report { results: found, commands })
    }
}
