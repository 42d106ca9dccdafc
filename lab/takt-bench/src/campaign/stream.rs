//! One-way streams of several columns, in interleaved rounds; samples are counted at the receiver.

use super::child::Child;
use super::column::Column;
use super::rounds::{Outcome, run_rounds};
use super::{Domains, Plan, READY_LIMIT, RUN_LIMIT, arguments, names, placement};
use crate::error::Result;
use serde::Serialize;
use std::time::Duration;

/// Time before the window, so that queues and caches reach their steady state.
const WARM: Duration = Duration::from_millis(300);

/// Result of one column in one round, for one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamCell {
    /// Name of the column.
    pub column: String,
    /// Index of the round, from 0.
    pub round: usize,
    /// Payload size in bytes.
    pub size: usize,
    /// Samples written per second of the writer's window.
    pub written_hz: f64,
    /// Samples received per second of the reader's window.
    pub received_hz: f64,
    /// Received payload in MB per second of the reader's window.
    pub megabytes_per_second: f64,
    /// Samples missing between the first and the last sample of the reader's window.
    pub lost: u64,
}

/// Measures `columns` for each size of the plan, in windows of length `window`. Waits until no
/// other campaign runs on the machine.
///
/// # Errors
/// Those of [`run`](super::run).
pub fn streams(
    plan: &Plan,
    window: Duration,
    columns: &[Column],
    progress: &mut dyn FnMut(usize, &str),
) -> Result<Outcome<StreamCell>> {
    let mut domains = Domains::of(plan);
    run_rounds(plan, &names(columns), progress, |at, round| {
        let of_size = |size: &usize| {
            let one = Plan { sizes: vec![*size], ..plan.clone() };
            measure(&one, window, &columns[at], domains.next(), round)
        };
        plan.sizes.iter().map(of_size).collect()
    })
}

fn measure(plan: &Plan, window: Duration, column: &Column, domain: u32, round: usize) -> Result<StreamCell> {
    let times = [format!("warm_s={}", WARM.as_secs_f64()), format!("secs={}", window.as_secs_f64())];
    let of = |side| [arguments(plan, column, domain, side), times.to_vec()].concat();
    let mut reader = Child::start(column, "sub", &of(1), placement(plan, column, 1))?;
    reader.wait_for("ready", READY_LIMIT)?;
    let mut writer = Child::start(column, "pub", &of(0), placement(plan, column, 0))?;
    let limit = RUN_LIMIT + 4 * window;
    let written = writer.wait_for("result", limit)?;
    let received = reader.wait_for("result", limit)?;
    writer.stop()?;
    reader.stop()?;
    let whole = |value: &serde_json::Value, key: &str| value[key].as_u64().unwrap_or(0);
    let rate = |value: &serde_json::Value, key: &str| {
        let seconds = value["wall_s"].as_f64().unwrap_or(0.0);
        if seconds > 0.0 { whole(value, key) as f64 / seconds } else { 0.0 }
    };
    Ok(StreamCell {
        column: column.name.clone(),
        round,
        size: plan.sizes[0],
        written_hz: rate(&written, "n"),
        received_hz: rate(&received, "n"),
        megabytes_per_second: rate(&received, "bytes") * 1e-6,
        lost: whole(&received, "span").saturating_sub(whole(&received, "n")),
    })
}
