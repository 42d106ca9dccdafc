//! Roles that measure discovery at scale: `crowd`, `seek` and `mesh`.
//!
//! `crowd` creates many participants and reports their memory. `seek` is one participant that
//! discovers a crowd. `mesh` is one of many processes that discover one another.

use super::Lines;
use super::options::Options;
use super::roles::{DISCOVERY_STEP, IDLE_STEP};
use crate::error::{Error, Result};
use crate::machine::{Memory, monotonic_ns};
use crate::signal::stopped;
use crate::workload::crowd::{Crowd, Discoverer, Plan};
use serde_json::json;
use std::time::Duration;

/// Interval between checks for discovered writers in a mesh. Its many processes share the
/// processors.
const MESH_STEP: Duration = Duration::from_millis(5);
/// Maximum time until all writers of a crowd are discovered.
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
        crowd.step()?;
    }
    let (added, memory) = (crowd.added, Memory::now()?);
    lines.write(&json!({
        "ev": "result", "role": "crowd", "bare_kib": added.bare, "participants_kib": added.participants,
        "endpoints_kib": added.endpoints, "instances_kib": added.instances, "resident_kib": memory.resident_kib,
        "private_kib": memory.private_kib,
    }))?;
    while !stopped() {
        crowd.step()?;
    }
    Ok(())
}

pub(super) fn discover(options: &Options, lines: &mut Lines<'_>) -> Result<()> {
    let main_ns = monotonic_ns();
    find(options, lines, main_ns, DISCOVERY_STEP, &Discoverer::new(&options.link, &plan(options))?)
}

pub(super) fn mesh(options: &Options, lines: &mut Lines<'_>) -> Result<()> {
    let main_ns = monotonic_ns();
    find(options, lines, main_ns, MESH_STEP, &Discoverer::in_mesh(&options.link, &plan(options))?)
}

/// Reports when all writers are discovered, then keeps the participant alive until a signal
/// arrives.
fn find(options: &Options, lines: &mut Lines<'_>, main_ns: u64, step: Duration, seeker: &Discoverer) -> Result<()> {
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
        found = seeker.matched_writers()?;
    }
    let started_ns = options.started_at_ns.unwrap_or(main_ns);
    let since_start = |ns: u64| ns.saturating_sub(started_ns) as f64 * 1e-6;
    lines.write(&json!({
        "ev": "matched", "main_ms": since_start(main_ns), "init_ms": since_start(init_ns),
        "match_ms": since_start(monotonic_ns()),
    }))?;
    while !stopped() {
        seeker.drive(IDLE_STEP, options.link.runtime)?;
    }
    Ok(())
}
