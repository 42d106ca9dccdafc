//! What a bound is made of, and what would change it.

use alloc::vec::Vec;

use crate::server::{self, Job};
use crate::system::{Infeasible, analyse};
use crate::{Certificate, System};

/// The stage that a flow spends most of its bound at, and how much of it, its delay included. `None` for a flow without bound.
pub fn binding_stage(certificate: &Certificate, flow: usize) -> Option<(usize, u64)> {
    let stages = certificate.flows.get(flow)?.stages.iter().zip(&certificate.system.flows.get(flow)?.stages);
    let times = stages.map(|(claim, stage)| claim.response_ns.saturating_add(stage.delay_ns)).enumerate();
    times.max_by_key(|(at, time_ns)| (*time_ns, usize::MAX - at))
}

/// How much of a resource all flows use together, in parts of a million, rounded up; `None` if one comes without limit.
pub fn utilisation_ppm(system: &System, resource: usize) -> Option<u64> {
    let stages = system.flows.iter().flat_map(|flow| flow.stages.iter().map(|stage| (flow.arrivals, stage)));
    let Some(here) = system.resources.get(resource) else { return Some(0) };
    let jobs =
        stages.filter(|(_, stage)| stage.resource == resource).map(|(arrivals, stage)| stage.job(here, arrivals));
    server::utilisation_ppm(&jobs.collect::<Vec<Job>>())
}

/// The first flow, in the system's order, that cannot be admitted to those before it: with it one of them, or it, has no bound or
/// a limit that is not kept. One analysis for each flow.
pub fn first_misfit(system: &System) -> Result<Option<usize>, Infeasible> {
    system.check()?;
    let resources = system.resources.clone();
    let fits = |count: usize| fits(&System { resources: resources.clone(), flows: system.flows[..count].to_vec() });
    Ok((1..=system.flows.len()).find(|count| !fits(*count)).map(|count| count - 1))
}

/// How much slower every stage of every flow may become, in thousandths, with all limits kept; 1000 is as it is. `None` if they are not
/// kept as it is. At most 1,000,000. Some twenty analyses.
pub fn headroom_permille(system: &System) -> Option<u64> {
    largest(1000, 1_000_000, |permille| {
        let mut slower = system.clone();
        for stage in slower.flows.iter_mut().flat_map(|flow| &mut flow.stages) {
            let time = u128::from(stage.piece_ns) * u128::from(permille) / 1000;
            stage.piece_ns = u64::try_from(time).unwrap_or(u64::MAX);
        }
        fits(&slower)
    })
}

/// The shortest period that a flow may have with all limits kept; `None` if they are not kept as it is, or it has no period. Some sixty
/// analyses at most.
pub fn shortest_period_ns(system: &System, flow: usize) -> Option<u64> {
    let period_ns = system.flows.get(flow)?.arrivals?.period_ns;
    let faster_by = largest(0, period_ns.saturating_sub(1), |less| {
        let mut faster = system.clone();
        if let Some(arrivals) = &mut faster.flows[flow].arrivals {
            arrivals.period_ns = period_ns - less;
        }
        fits(&faster)
    })?;
    Some(period_ns - faster_by)
}

fn fits(system: &System) -> bool {
    analyse(system).is_ok_and(|certificate| certificate.is_kept())
}

/// The largest value between two that `holds`, which is so below any for which it is so.
fn largest(from: u64, to: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if !holds(from) {
        return None;
    }
    let (mut good, mut bad) = (from, to.saturating_add(1));
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if holds(middle) { good = middle } else { bad = middle }
    }
    Some(good)
}
