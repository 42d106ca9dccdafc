//! Advice about bounds: the dominating stage of a flow, and changes that would make a system
//! feasible.

use alloc::vec::Vec;

use crate::server::{self, Job};
use crate::system::{Infeasible, analyze};
use crate::{Certificate, System};

/// Returns the stage with the largest share of a flow's bound, and that share with the delay of the
/// stage. `None` for a flow without bound.
pub fn binding_stage(certificate: &Certificate, flow: usize) -> Option<(usize, u64)> {
    let stages = certificate.flows.get(flow)?.stages.iter().zip(&certificate.system.flows.get(flow)?.stages);
    let times = stages.map(|(claim, stage)| claim.response_ns.saturating_add(stage.delay_ns)).enumerate();
    times.max_by_key(|(at, time_ns)| (*time_ns, usize::MAX - at))
}

/// Returns the utilization of a resource by all flows in parts of a million, rounded up; `None` if
/// a flow has no arrival bound.
pub fn utilization_ppm(system: &System, resource: usize) -> Option<u64> {
    let stages = system.flows.iter().flat_map(|flow| flow.stages.iter().map(|stage| (flow.arrivals, stage)));
    let Some(here) = system.resources.get(resource) else { return Some(0) };
    let jobs =
        stages.filter(|(_, stage)| stage.resource == resource).map(|(arrivals, stage)| stage.job(here, arrivals));
    server::utilization_ppm(&jobs.collect::<Vec<Job>>())
}

/// Returns the first flow, in the order of the system, that cannot be admitted after the previous
/// ones. With it, one of these flows has no bound or exceeds its limit. Takes one analysis per
/// flow.
pub fn first_infeasible_flow(system: &System) -> Result<Option<usize>, Infeasible> {
    system.check()?;
    let resources = system.resources.clone();
    let fits =
        |count: usize| is_feasible(&System { resources: resources.clone(), flows: system.flows[..count].to_vec() });
    Ok((1..=system.flows.len()).find(|count| !fits(*count)).map(|count| count - 1))
}

/// Returns the largest factor by which every stage of every flow may slow down while all limits
/// hold, in thousandths; 1000 is the current speed, 1,000,000 the maximum. `None` if the limits do
/// not hold now. Takes some twenty analyses.
pub fn headroom_permille(system: &System) -> Option<u64> {
    largest(1000, 1_000_000, |permille| {
        let mut slower = system.clone();
        for stage in slower.flows.iter_mut().flat_map(|flow| &mut flow.stages) {
            let time = u128::from(stage.piece_ns) * u128::from(permille) / 1000;
            stage.piece_ns = u64::try_from(time).unwrap_or(u64::MAX);
        }
        is_feasible(&slower)
    })
}

/// Returns the shortest period of a flow for which all limits hold. `None` if they do not hold now,
/// or if the flow has no period. Takes at most some sixty analyses.
pub fn shortest_period_ns(system: &System, flow: usize) -> Option<u64> {
    let period_ns = system.flows.get(flow)?.arrivals?.period_ns;
    let faster_by = largest(0, period_ns.saturating_sub(1), |less| {
        let mut faster = system.clone();
        if let Some(arrivals) = &mut faster.flows[flow].arrivals {
            arrivals.period_ns = period_ns - less;
        }
        is_feasible(&faster)
    })?;
    Some(period_ns - faster_by)
}

fn is_feasible(system: &System) -> bool {
    analyze(system).is_ok_and(|certificate| certificate.is_kept())
}

/// Returns the largest value in the range for which `holds` is true. `holds` must be monotone: true
/// up to some value, false above.
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
