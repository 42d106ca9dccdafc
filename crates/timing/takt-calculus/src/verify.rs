//! Checker of certificates. It shares the types with the analysis, but no arithmetic.
//!
//! It does not search for fixed points. A claimed time `w` is late enough if the work that may
//! arrive before `w` is completed by `w`. One evaluation of the demand, which is monotone in `w`,
//! proves that the true time is not later. Sums are in `u128`. The checker refuses sums beyond
//! that, more than 2^20 jobs, and claims with a period of 0.

use alloc::vec::Vec;
use core::fmt;

use crate::certificate::{MeasuredTime, StageClaim};
use crate::{Arrivals, Certificate, Resource, Stage};

/// Maximum number of jobs at all resources.
const JOBS_MAX: usize = 1 << 20;

/// Claim of a certificate that is not proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unproven {
    /// Index of the flow.
    pub flow: usize,
    /// Index of the stage, if the claim is about one.
    pub stage: Option<usize>,
    /// Description of the claim.
    pub what: &'static str,
}

impl fmt::Display for Unproven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stage {
            Some(stage) => write!(f, "flow {}, stage {stage}: {}", self.flow, self.what),
            None => write!(f, "flow {}: {}", self.flow, self.what),
        }
    }
}

/// Flow at one resource, with its claimed arrivals.
struct Load {
    flow: usize,
    stage: usize,
    resource: usize,
    priority: i32,
    piece: u128,
    pieces: u128,
    /// Claimed arrival bound; `None` if there is none.
    arrivals: Option<Arrivals>,
}

impl Load {
    /// Returns the work of the events in a closed interval of `window` from a first event. `None`
    /// if there is no arrival bound, or on overflow.
    fn within(&self, window: u128) -> Option<u128> {
        let arrivals = self.arrivals?;
        let mut events =
            window.checked_add(arrivals.jitter_ns.into())?.checked_div(arrivals.period_ns.into())?.checked_add(1)?;
        if arrivals.distance_ns > 0 {
            events = events.min(window / u128::from(arrivals.distance_ns) + 1);
        }
        events.checked_mul(self.pieces * self.piece)
    }
}

/// Checks that every bound of a certificate follows from its system, that every limit holds, and
/// that measured times are in the system with their margin. The work is one evaluation of each
/// claimed point, times the jobs at its resource.
pub fn verify(certificate: &Certificate) -> Result<(), Unproven> {
    let system = &certificate.system;
    let whole = |flow, what| Unproven { flow, stage: None, what };
    if system.check().is_err() || certificate.flows.len() != system.flows.len() {
        return Err(whole(0, "the system is invalid, or a flow is not claimed"));
    }
    let loads = loads(certificate)?;
    for (at, (flow, claim)) in system.flows.iter().zip(&certificate.flows).enumerate() {
        let Some(mut arrivals) = flow.arrivals else { continue };
        let mut total = 0_u128;
        for (n, (stage, stage_claim)) in flow.stages.iter().zip(&claim.stages).enumerate() {
            let unproven = |what| Unproven { flow: at, stage: Some(n), what };
            if stage_claim.arrivals.period_ns != arrivals.period_ns
                || stage_claim.arrivals.jitter_ns < arrivals.jitter_ns
                || stage_claim.arrivals.distance_ns > arrivals.distance_ns
            {
                return Err(unproven("its events may arrive more densely"));
            }
            check_stage(&loads, &system.resources[stage.resource], (at, n), stage_claim).map_err(unproven)?;
            arrivals = departures(stage, stage_claim).ok_or_else(|| unproven("its jitter overflows"))?;
            total += u128::from(stage_claim.response_ns) + u128::from(stage.delay_ns);
        }
        match claim.bound_ns.map(u128::from) {
            Some(bound) if bound >= total => {}
            _ => return Err(whole(at, "its stages take longer than the bound")),
        }
        if flow.limit_ns.is_some_and(|limit| claim.bound_ns.is_none_or(|bound| bound > limit)) {
            return Err(whole(at, "its limit is not kept"));
        }
    }
    certificate.measured.iter().try_for_each(|time| check_measured(certificate, time))
}

/// Checks that a stage takes at least the measured time of its jobs, times the margin.
fn check_measured(certificate: &Certificate, time: &MeasuredTime) -> Result<(), Unproven> {
    let unproven = |what| Unproven { flow: time.flow, stage: Some(time.stage), what };
    let flow = certificate.system.flows.get(time.flow);
    let stage = flow.and_then(|flow| flow.stages.get(time.stage)).ok_or_else(|| unproven("it does not exist"))?;
    let longest: u128 = time.jobs.iter().map(|job| u128::from(job.max_ns)).sum();
    let with_margin = longest.checked_mul(time.margin_permille.into());
    if time.margin_permille < 1000 || with_margin.is_none_or(|ns| ns > u128::from(stage.piece_ns) * 1000) {
        return Err(unproven("it takes less than was measured, with the margin"));
    }
    Ok(())
}

fn loads(certificate: &Certificate) -> Result<Vec<Load>, Unproven> {
    let mut loads = Vec::new();
    for (at, (flow, claim)) in certificate.system.flows.iter().zip(&certificate.flows).enumerate() {
        if claim.stages.iter().any(|stage| stage.arrivals.period_ns == 0) {
            return Err(Unproven { flow: at, stage: None, what: "a period of 0 is claimed" });
        }
        let expected = if flow.arrivals.is_some() { flow.stages.len() } else { 0 };
        if claim.stages.len() != expected || claim.bound_ns.is_some() != flow.arrivals.is_some() {
            return Err(Unproven { flow: at, stage: None, what: "not every stage is claimed" });
        }
        for (n, stage) in flow.stages.iter().enumerate() {
            let resource = &certificate.system.resources[stage.resource];
            loads.push(Load {
                flow: at,
                stage: n,
                resource: stage.resource,
                priority: stage.priority,
                piece: u128::from(stage.piece_ns) + u128::from(resource.lock_ns),
                pieces: stage.pieces.into(),
                arrivals: claim.stages.get(n).map(|stage| stage.arrivals),
            });
        }
        if loads.len() > JOBS_MAX {
            return Err(Unproven { flow: at, stage: None, what: "too many jobs" });
        }
    }
    Ok(loads)
}

/// Returns the arrival bound after a stage that follows from the claim.
fn departures(stage: &Stage, claim: &StageClaim) -> Option<Arrivals> {
    let latest = u128::from(claim.response_ns) + u128::from(stage.delay_ns);
    let earliest = u128::from(stage.piece_ns_min) + u128::from(stage.delay_ns_min);
    let spread = latest.checked_sub(earliest)?;
    let wobble = stage.delay_ns - stage.delay_ns_min;
    let gap = if stage.pieces == 1 && stage.piece_ns_min > wobble { stage.piece_ns_min - wobble } else { 0 };
    let jitter = u64::try_from(u128::from(claim.arrivals.jitter_ns) + spread).ok()?; // tidy-allow(dropped-cause): the caller reports it.
    let kept = u128::from(claim.arrivals.distance_ns).saturating_sub(spread) as u64;
    Some(Arrivals { period_ns: claim.arrivals.period_ns, jitter_ns: jitter, distance_ns: kept.max(gap) })
}

/// Returns the work of a resource's server that may precede work above its priority in a closed
/// interval of `window`, without a piece at its start.
fn served_within(resource: &Resource, priority: i32, window: u128) -> Option<u128> {
    let Some(server) = resource.server.filter(|server| priority > server.priority) else { return Some(0) };
    let pieces = window.checked_div(server.period_ns.into())?;
    pieces.checked_mul(u128::from(server.piece_ns) + u128::from(resource.lock_ns))
}

/// Returns the maximum blocking at the start of a busy period of this priority: a piece of lower
/// priority that has started, a piece of the server, or both if the server's priority is below that
/// of the piece.
fn begun_before(here: &[&Load], resource: &Resource, priority: i32) -> u128 {
    let server = resource.server.filter(|server| priority > server.priority);
    let server_piece = server.map_or(0, |server| u128::from(server.piece_ns) + u128::from(resource.lock_ns));
    let mut longest = server_piece;
    for load in here.iter().filter(|load| load.priority < priority) {
        let is_above_server = server.is_some_and(|server| load.priority > server.priority);
        longest = longest.max(if is_above_server { load.piece + server_piece } else { load.piece });
    }
    longest
}

fn check_stage(
    loads: &[Load],
    resource: &Resource,
    (flow, stage): (usize, usize),
    claim: &StageClaim,
) -> Result<(), &'static str> {
    let own = loads.iter().find(|load| load.flow == flow && load.stage == stage).ok_or("it does not exist")?;
    let here: Vec<&Load> = loads.iter().filter(|load| load.resource == own.resource).collect();
    let blocking = begun_before(&here, resource, own.priority);
    // Any other work of the same priority may be served first, regardless of its arrival.
    let others = |window: u128| {
        let others = here
            .iter()
            .filter(|load| load.priority >= own.priority && (load.flow, load.stage) != (own.flow, own.stage));
        let served = served_within(resource, own.priority, window)?;
        others.map(|load| load.within(window)).try_fold(served, |sum, work| sum.checked_add(work?))
    };
    let no_limit = "unbounded work has at least its priority";
    let busy = u128::from(claim.busy_ns);
    let before_end = busy.saturating_sub(1);
    let level = own.within(before_end).zip(others(before_end)).and_then(|(own, others)| own.checked_add(others));
    let level = level.ok_or(no_limit)?;
    if busy == 0 && level + blocking > 0 || blocking.checked_add(level).is_none_or(|work| work > busy) {
        return Err("its busy period may be longer");
    }
    check_points(own, busy, claim)?;
    for point in &claim.points {
        let (arrival, start) = (u128::from(point.arrival_ns), u128::from(point.start_ns));
        let own_before = own.within(arrival).and_then(|work| work.checked_sub(own.piece)).ok_or(no_limit)?;
        let others = others(start).ok_or(no_limit)?;
        let work = blocking.checked_add(own_before).and_then(|work| work.checked_add(others));
        if work.is_none_or(|work| work > start) {
            return Err("an event may start later");
        }
        if start + own.piece > arrival + u128::from(claim.response_ns) {
            return Err("an event may take longer");
        }
    }
    Ok(())
}

/// Checks that every event that may have the maximum response time has a point.
fn check_points(own: &Load, busy: u128, claim: &StageClaim) -> Result<(), &'static str> {
    let arrivals = own.arrivals.ok_or("unbounded work has no points")?;
    // Simultaneous events are one point.
    let at_once =
        if arrivals.distance_ns > 0 { 0 } else { arrivals.jitter_ns.checked_div(arrivals.period_ns).unwrap_or(0) };
    for n in u128::from(at_once).. {
        let by_period = (n * u128::from(arrivals.period_ns)).saturating_sub(arrivals.jitter_ns.into());
        let arrival = by_period.max(n * u128::from(arrivals.distance_ns));
        if arrival > 0 && arrival >= busy {
            return Ok(());
        }
        if claim.points.binary_search_by_key(&arrival, |point| point.arrival_ns.into()).is_err() {
            return Err("an event that may be the latest has no point, or they are not in order");
        }
    }
    Ok(())
}
