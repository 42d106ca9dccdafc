//! Tests of a typical system: a publisher, two links and a subscriber.

use takt_calculus::link::{UDP_HEADERS, frame_time_ns};
use takt_calculus::system::Infeasible;
use takt_calculus::{Arrivals, Flow, Resource, Stage, System, Unbounded, advice, analyze, verify};

const GIGABIT: u64 = 1_000_000_000;

fn stage(resource: usize, priority: i32, piece_ns: u64) -> Stage {
    Stage { resource, priority, piece_ns, piece_ns_min: piece_ns / 2, pieces: 1, delay_ns: 0, delay_ns_min: 0 }
}

/// Returns a system with a flow of 64 octets at 2 kHz and a flood that fills the link with large
/// frames.
fn system(limit_ns: u64) -> System {
    let resources = ["publisher", "eth0", "subscriber"].map(Resource::new).to_vec();
    let frame = |payload| frame_time_ns(UDP_HEADERS + payload, GIGABIT).expect("a rate");
    let stages = vec![stage(0, 9, 10_000), Stage { delay_ns: 1000, ..stage(1, 7, frame(64)) }, stage(2, 9, 15_000)];
    let critical =
        Flow { name: "ping".into(), arrivals: Some(Arrivals::sporadic(500_000)), stages, limit_ns: Some(limit_ns) };
    let flood = Flow { name: "flood".into(), arrivals: None, stages: vec![stage(1, 0, frame(1472))], limit_ns: None };
    let logger = Flow {
        name: "logger".into(),
        arrivals: Some(Arrivals::bursts(1_000_000, 3)),
        stages: vec![stage(0, 1, 40_000), stage(1, 1, frame(1000)), stage(2, 1, 200_000)],
        limit_ns: None,
    };
    System { resources, flows: vec![critical, flood, logger] }
}

#[test]
fn bound_is_the_sum_of_execution_and_blocking_times() {
    let certificate = analyze(&system(300_000)).expect("bounded");
    assert_eq!(verify(&certificate), Ok(()));
    let times: Vec<_> = certificate.flows[0].stages.iter().map(|stage| stage.response_ns).collect();
    // Each stage: its own time, and one blocking callback or frame, or the callbacks of the logger
    // or the flood.
    assert_eq!(times, [50_000, 12_336 + 1_072, 215_000]);
    assert_eq!(certificate.flows[0].bound_ns, Some(50_000 + 13_408 + 1000 + 215_000));
    assert!(certificate.is_kept());
    assert_eq!(certificate.flows[1].bound_ns, None);
    assert_eq!(advice::binding_stage(&certificate, 0), Some((2, 215_000)));
}

#[test]
fn flow_that_makes_the_system_infeasible_is_named() {
    let tight = system(200_000);
    let certificate = analyze(&tight).expect("bounded");
    assert_eq!(certificate.violations().collect::<Vec<_>>(), [0]);
    assert!(verify(&certificate).is_err(), "the limit is not kept");
    assert_eq!(advice::first_infeasible_flow(&tight), Ok(Some(2)), "alone with the flood it would fit");
    assert_eq!(advice::first_infeasible_flow(&system(300_000)), Ok(None));
}

#[test]
fn headroom_and_shortest_period_are_reported() {
    let loose = system(300_000);
    let permille = advice::headroom_permille(&loose).expect("the advice exists");
    assert!((1050..1100).contains(&permille), "{permille}");
    assert_eq!(advice::headroom_permille(&system(200_000)), None);
    // The execution time permits one event of the logger in between, and no more.
    let period_ns = advice::shortest_period_ns(&loose, 0).expect("the advice exists");
    assert!(period_ns > 15_000 && period_ns < 500_000, "{period_ns}");
    let mut faster = loose.clone();
    faster.flows[0].arrivals = Some(Arrivals::sporadic(period_ns));
    assert!(analyze(&faster).expect("bounded").is_kept());
    faster.flows[0].arrivals = Some(Arrivals::sporadic(period_ns - 1));
    assert!(analyze(&faster).is_ok_and(|certificate| !certificate.is_kept()) || analyze(&faster).is_err());
}

#[test]
fn flood_of_equal_priority_leaves_no_bound() {
    let mut system = system(300_000);
    system.flows[1].stages[0].priority = 7;
    let why = Infeasible::Unbounded { flow: 0, stage: 1, why: Unbounded::Overload };
    assert_eq!(analyze(&system), Err(why));
    assert_eq!(advice::first_infeasible_flow(&system), Ok(Some(1)));
}

#[test]
fn invalid_description_is_refused() {
    let refused = |change: fn(&mut System)| {
        let mut system = system(300_000);
        change(&mut system);
        matches!(analyze(&system), Err(Infeasible::InvalidDescription { flow: 0, .. }))
    };
    assert!(refused(|system| system.flows[0].stages.clear()));
    assert!(refused(|system| system.flows[0].arrivals = Some(Arrivals::sporadic(0))));
    assert!(refused(|system| system.flows[0].arrivals = None));
    assert!(refused(|system| system.flows[0].stages[1].resource = 3));
    assert!(refused(|system| system.flows[0].stages[1].pieces = 0));
    assert!(refused(|system| system.flows[0].stages[1].piece_ns_min = u64::MAX));
    assert!(refused(|system| system.flows[0].stages[1].delay_ns_min = 1001));
}
