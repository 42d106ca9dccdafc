//! Roles `hold` and `join`: a durable writer that keeps samples for late joiners, and a reader that
//! joins late.

use super::Lines;
use super::options::Options;
use super::roles::{IDLE_STEP, MATCH_LIMIT};
use crate::error::{Error, Result};
use crate::machine::monotonic_ns;
use crate::payload::Blob;
use crate::signal::stopped;
use crate::spec::{Durability, History};
use crate::workload::TOPIC_DATA;
use serde_json::json;
use std::time::Duration;

const STEP: Duration = Duration::from_millis(10);

/// Sets a HISTORY depth of all `count` samples, RELIABLE, and a DURABILITY of at least
/// TRANSIENT_LOCAL.
fn durable(mut options: Options) -> Result<Options> {
    let depth =
        u32::try_from(options.count.max(1)).map_err(|e| Error::Usage(format!("count={}: {e}", options.count)))?;
    (options.link.history, options.link.reliable) = (History::KeepLast(depth), true);
    if options.link.durability == Durability::Volatile {
        options.link.durability = Durability::TransientLocal;
    }
    Ok(options)
}

pub(super) fn hold(options: Options, lines: &mut Lines<'_>) -> Result<()> {
    let options = durable(options)?;
    let mut link = options.link.open(Some(TOPIC_DATA), None)?;
    let mut sample = Blob::filled(options.sizes[0]);
    let mut written = 0;
    while written < options.count && !stopped() {
        sample.mark(written + 1, monotonic_ns());
        match link.write(&sample)? {
            true => written += 1,
            false => link.drive(STEP)?,
        }
    }
    if matches!(options.link.durability, Durability::Transient | Durability::Persistent) {
        link.make_durable(MATCH_LIMIT)?;
    }
    lines.ready()?;
    while !stopped() {
        link.drive(IDLE_STEP)?;
    }
    Ok(())
}

pub(super) fn join(options: Options, lines: &mut Lines<'_>) -> Result<()> {
    let main_ns = monotonic_ns();
    let options = durable(options)?;
    let mut link = options.link.open(None, Some(TOPIC_DATA))?;
    lines.ready()?;
    let deadline_ns = main_ns + MATCH_LIMIT.as_nanos() as u64;
    let (mut sample, mut count, mut first_ns, mut last_ns) = (Blob::default(), 0, None, main_ns);
    while count < options.count && !stopped() && monotonic_ns() < deadline_ns {
        if link.receive(&mut sample, STEP)? {
            count += 1;
            last_ns = monotonic_ns();
            first_ns.get_or_insert(last_ns);
        }
    }
    let Some(first_ns) = first_ns else {
        return Err(Error::NoAnswer { what: format!("no sample arrived within {} s", MATCH_LIMIT.as_secs()) });
    };
    let started_ns = options.started_at_ns.unwrap_or(main_ns);
    let since_start = |ns: u64| ns.saturating_sub(started_ns) as f64 * 1e-6;
    lines.write(&json!({
        "ev": "result", "role": "join", "n": count, "first_ms": since_start(first_ns), "last_ms": since_start(last_ns),
    }))?;
    while !stopped() {
        link.drive(IDLE_STEP)?;
    }
    Ok(())
}
