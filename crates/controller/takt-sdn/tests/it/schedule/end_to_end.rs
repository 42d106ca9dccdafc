//! Tests of the end-to-end bound from `write` to callback.

use takt_calculus::composition::{DivisionError, HostFlow, Unproven, check};
use takt_calculus::{Arrivals, Flow, Resource, Stage, System};
use takt_sdn::model::HostId;
use takt_sdn::schedule::{HostStages, Plan, Scheduler};

use super::networks::{MILLISECOND, model, network, reliable, request};

/// Returns an executor with one stage of this duration in microseconds.
fn host(piece_us: u64) -> HostFlow {
    let piece_ns = piece_us * 1_000;
    let stage = Stage { resource: 0, priority: 0, piece_ns, piece_ns_min: 0, pieces: 1, delay_ns: 0, delay_ns_min: 0 };
    let arrivals = Some(Arrivals::sporadic(5 * MILLISECOND));
    let flow = Flow { name: "samples".into(), arrivals, stages: vec![stage], limit_ns: None };
    HostFlow { system: System { resources: vec![Resource::new("executor")], flows: vec![flow] }, flow: 0 }
}

#[test]
fn admitted_plan_has_a_proof_for_each_reader() {
    let snapshot = network(2, model(3, 100)).snapshot();
    let mut scheduler = Scheduler::default();
    let sinks = [(HostId(2), host(300)), (HostId(3), host(50))].into();
    let stages = HostStages { source: Some(host(100)), sinks };
    let limit_ns = 3 * MILLISECOND;
    let plan = Plan::new(&reliable(request(0, &[2, 3, 1], limit_ns)), &stages).expect("hosts leave enough");
    assert_eq!(plan.request.contract.jitter_ns, 100_000, "that of the source's stage");
    assert_eq!(plan.request.contract.limit_ns, limit_ns - 400_000, "the rest that the slowest reader leaves");

    // Other requests are admitted before and after it.
    scheduler.admit(&snapshot, request(1, &[3], 100 * MILLISECOND)).expect("the flow is admitted");
    let admitted = scheduler.admit(&snapshot, plan.request.clone()).expect("the flow is admitted");
    scheduler.admit(&snapshot, request(3, &[0], 2 * MILLISECOND)).expect("the flow is admitted");
    let claims = plan.certificates(&scheduler, &snapshot, admitted.id).expect("the flow is admitted");
    assert_eq!(claims.keys().copied().collect::<Vec<_>>(), [HostId(1), HostId(2), HostId(3)]);
    for claim in claims.values() {
        assert_eq!(check(claim), Ok(()));
        assert!(claim.bound_ns <= limit_ns);
    }
    let mut lie = claims[&HostId(2)].clone();
    lie.bound_ns -= 1;
    assert_eq!(check(&lie), Err(Unproven::Sum));
    scheduler.remove(admitted.id).expect("the flow was admitted");
    assert_eq!(plan.certificates(&scheduler, &snapshot, admitted.id), None);
}

#[test]
fn hosts_that_take_the_whole_limit_have_no_plan() {
    let stages = HostStages { source: Some(host(600)), sinks: [(HostId(2), host(600))].into() };
    let late = Plan::new(&request(0, &[2], MILLISECOND), &stages).expect_err("both hosts exceed the limit");
    assert_eq!(late, DivisionError::ExceedsLimit { source_ns: 600_000, sink_ns: 600_000, limit_ns: MILLISECOND });
}
