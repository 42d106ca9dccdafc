//! Cells that failed, were refused, are missing or were disturbed, with the reason.

use super::pool::pools;
use super::rendered_figure::Table;
use crate::study::cell::Cell;
use crate::study::directory::Results;
use crate::study::file::Workload;
use crate::study::support::{Refusal, refusal};
use crate::study::system::{System, selected};
use std::collections::BTreeMap;

/// Maximum number of cells that a row names; it counts the others.
const NAMED_MAX: usize = 12;

/// Returns the table of a workload. It is empty if each cell was measured in each round without
/// disturbance.
#[must_use]
pub fn table(results: &Results, workload: &Workload) -> Table {
    let mut reasons: BTreeMap<(usize, String, String), Vec<String>> = BTreeMap::new();
    let mut add = |order: usize, state: &str, why: String, cell: &Cell, rounds: &str| {
        let name = format!("{cell}{rounds}");
        reasons.entry((order, state.to_owned(), why)).or_default().push(name);
    };
    let pools = pools(results, workload);
    for pool in &pools {
        for (measurement, why) in &pool.failures {
            add(0, "failed", (*why).to_owned(), pool.cell, &format!(" (round {})", measurement.round + 1));
        }
    }
    for system in systems(results, workload) {
        for values in workload.combinations() {
            let cell = Cell { workload: workload.name.clone(), system: system.name.clone(), values };
            if pools.iter().any(|pool| *pool.cell == cell) {
                continue;
            }
            let header = &results.header;
            match refusal(&header.campaign.site, workload, system, &cell.values, &header.roles) {
                Some(Refusal::Excluded(why)) => add(1, "refused", why, &cell, ""),
                Some(Refusal::Unsupported(why)) => add(1, "unsupported", why, &cell, ""),
                None => add(2, "not measured", why_missing(results, &system.name), &cell, ""),
            }
        }
    }
    for pool in &pools {
        let disturbed: Vec<_> = pool.rounds.iter().filter(|round| round.disturbance.disturbed).collect();
        let most = |share: fn(&crate::study::cell::Disturbance) -> f64| {
            disturbed.iter().map(|round| share(&round.disturbance)).fold(0.0, f64::max) * 100.0
        };
        if !disturbed.is_empty() {
            let limit = results.header.campaign.foreign_max * 100.0;
            let why = format!(
                "more than {limit:.0} % of the machine was used by foreign processes or the hypervisor in each try"
            );
            let rounds: Vec<String> = disturbed.iter().map(|round| (round.round + 1).to_string()).collect();
            let (foreign, steal) = (most(|d| d.foreign), most(|d| d.steal));
            let rounds = format!(" (round {}: foreign {foreign:.0} %, steal {steal:.0} %)", rounds.join(", "));
            add(3, "disturbed", why, pool.cell, &rounds);
        }
    }
    let mut table = Table::new(&["state", "reason", "number", "cells"]);
    for ((_, state, why), cells) in reasons {
        let mut names = cells.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join("; ");
        if cells.len() > NAMED_MAX {
            names.push_str(&format!("; and {} more", cells.len() - NAMED_MAX));
        }
        table.rows.push(vec![state, why, cells.len().to_string(), names]);
    }
    table
}

fn why_missing(results: &Results, system: &str) -> String {
    let missing = results.header.missing.iter().find(|missing| missing.system == system);
    missing.map_or_else(|| "the campaign has not measured it yet, or was stopped before".into(), |one| one.why.clone())
}

/// Returns the systems that a workload names and that the results contain.
fn systems<'a>(results: &'a Results, workload: &Workload) -> Vec<&'a System> {
    let mut found: Vec<&System> = Vec::new();
    for name in &workload.systems {
        // A class without any available system is not in the results.
        let named = selected(std::slice::from_ref(name), &results.header.systems).unwrap_or_default();
        for system in named {
            if !found.iter().any(|one| one.name == system.name) {
                found.push(system);
            }
        }
    }
    found
}
