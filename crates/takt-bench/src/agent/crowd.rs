//! `crowd`: participants to be found and weighed. `seek`: one that finds them. `mesh`: one of many processes that find one another.

use super::Lines;
use super::options::Options;
use super::roles::{DISCOVERY_STEP, IDLE_STEP};
use crate::error::{Error, Result};
use crate::machine::{Memory, monotonic_ns};
use crate::signal::stopped;
use crate::workload::crowd::{Crowd, Plan, Seeker};
use serde_json::json;
use std::time::Duration;

/// Between two looks at what was found, where many processes look: they take the processor from one another.
const MESH_STEP: Duration = Duration::from_millis(5);
/// Longest search for the writers of a crowd.
const SEEK_LIMIT: Duration = Duration::from_secs(50);

fn plan(options: &Options) -> Plan {
    let Options { participants, endpoints, instances, .. } = *options;
    Plan { participants, endpoints, instances, size: options.sizes[0] }
}

pub(super) fn crowd(options: &Options, lines: &mut Lines<'_>) -> Result<()> {
    let crowd = Crowd::new(&options.link, &plan(options))?;
    lines.ready()?;
    let until_ns = monotonic_ns() + options.warm.as_nanos() as u64;
    while monotonic_ns() < until_ns && !stopped() {
        crowd.turn()?;
    }
    let (added, memory) = (crowd.added, Memory::now()?);
    lines.say(&json!({
        "ev": "result", "role": "crowd", "bare_kib": added.bare, "participants_kib": added.participants,
        "endpoints_kib": added.endpoints, "instances_kib": added.instances, "resident_kib": memory.resident_kib,
        "private_kib": memory.private_kib,
    }))?;
    while !stopped() {
        crowd.turn()?;
    }
    Ok(())
}

pub(super) fn seek(options: &Options, lines: &mut Lines<'_>) -> Result<()> {
    let main_ns = monotonic_ns();
    find(options, lines, main_ns, DISCOVERY_STEP, &Seeker::new(&options.link, &plan(options))?)
}

pub(super) fn mesh(options: &Options, lines: &mut Lines<'_>) -> Result<()> {
    let main_ns = monotonic_ns();
    find(options, lines, main_ns, MESH_STEP, &Seeker::in_mesh(&options.link, &plan(options))?)
}

/// Says when all writers are found, and lives on.
fn find(options: &Options, lines: &mut Lines<'_>, main_ns: u64, step: Duration, seeker: &Seeker) -> Result<()> {
    let init_ns = monotonic_ns();
    lines.ready()?;
    let wanted = options.participants * options.endpoints;
    let deadline_ns = main_ns + SEEK_LIMIT.as_nanos() as u64;
    let mut found = 0;
    while found < wanted && !stopped() {
        if monotonic_ns() > deadline_ns {
            let what = format!("{found} of {wanted} writers were found within {} s", SEEK_LIMIT.as_secs());
            return Err(Error::NoAnswer { what });
        }
        seeker.drive(step, options.link.runtime)?;
        found = seeker.found()?;
    }
    let started_ns = options.started_at_ns.unwrap_or(main_ns);
    let since_start = |ns: u64| ns.saturating_sub(started_ns) as f64 * 1e-6;
    lines.say(&json!({
        "ev": "matched", "main_ms": since_start(main_ns), "init_ms": since_start(init_ns),
        "match_ms": since_start(monotonic_ns()),
    }))?;
    while !stopped() {
        seeker.drive(IDLE_STEP, options.link.runtime)?;
    }
    Ok(())
}
