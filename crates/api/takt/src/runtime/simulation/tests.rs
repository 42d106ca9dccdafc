//! Simulation tests: no response time of the executor exceeds its bound.

use takt_calculus::{Arrivals, analyze, verify};
use takt_testkit::Random;

use super::Releaser;
use super::report::{Report, median};
use super::system::{self, Kind, Plan, PlannedFlow};
use super::test_bench::{ArrivalPattern, Response, TestBench};

/// Duration of arrivals in one run.
const RUN_NS: u64 = 120_000_000;

/// Returns the longest response of each flow as a fraction of its bound; `None` if there is no
/// bound.
fn simulate(seed: u64, plan: &Plan) -> Option<Vec<f64>> {
    let mut test_bench = TestBench::new(plan.clone());
    let pieces = test_bench.pieces();
    let certificate = analyze(&plan.described(&pieces)).ok()?; // tidy-allow(dropped-cause): counted by the caller.
    verify(&certificate).unwrap_or_else(|reason| panic!("{} {seed}: {reason}", plan.class));
    let mut random = Random(seed);
    let bounds: Vec<u64> = certificate.flows.iter().filter_map(|claim| claim.bound_ns).collect();
    test_bench.begin(&bounds);
    // Each participant is the first among equals once.
    for _ in 0..plan.participants {
        for releaser in plan.releasers() {
            test_bench.run(ArrivalPattern::Critical(releaser), RUN_NS, &mut random);
        }
        test_bench.rotate();
    }
    for _ in 0..2 {
        test_bench.run(ArrivalPattern::Random, RUN_NS, &mut random);
    }
    test_bench.check_transport();
    let (waited_ns, limit_ns) = (test_bench.longest_normal_wait(), plan.normal_wait_ns());
    assert!(waited_ns <= limit_ns, "{} {seed}: normal work waits {waited_ns} > {limit_ns} ns: {plan:#?}", plan.class);
    let compare = |(at, (longest, bound_ns)): (usize, (Response, u64))| {
        let (class, Response { ns, jobs }) = (plan.class, longest);
        assert!(ns > 0, "{class} {seed}, flow {at} never came: {plan:#?}");
        assert!(ns <= bound_ns, "{class} {seed}, flow {at}: {ns} > {bound_ns} ns: {plan:#?}\n{jobs}");
        ns as f64 / bound_ns as f64
    };
    Some(test_bench.longest().into_iter().zip(bounds).enumerate().map(compare).collect())
}

fn simulate_all(any: u64, adversarial: impl Iterator<Item = u64>, locked: u64) {
    let mut report = Report::default();
    let plans = (0..any).map(|seed| (seed, system::any(seed)));
    let plans = plans.chain(adversarial.map(|seed| (seed, system::adversarial(seed))));
    for (seed, plan) in plans.chain((0..locked).map(|seed| (seed, system::locked(seed)))) {
        report.add(plan.class, simulate(seed, &plan));
    }
    println!("{report}");
    assert_eq!(report.unbounded(), 0, "{report}");
    assert!(median(&report.ratios(|class| class == system::ANY)) >= 0.5, "{report}");
    assert!(median(&report.ratios(|class| class != system::ANY)) >= 0.5, "{report}");
}

/// Case 33 is the large sample that finds a normal job after each 32 urgent ones.
#[test]
fn responses_stay_within_bounds_in_a_hundred_systems() {
    simulate_all(71, (0..24).chain([33]), 4);
}

/// Takes minutes; `docs/design/executor-simulation.md` contains the command.
#[cfg(feature = "long-tests")]
#[test]
fn responses_stay_within_bounds_in_thirteen_hundred_and_fifty_systems() {
    simulate_all(1000, 0..300, 50);
}

fn topic(priority: i32, period_ns: u64, cost_ns: u64) -> PlannedFlow {
    let kind = Kind::Topic { participant: 0, octets: 8 };
    PlannedFlow { kind, priority, arrivals: Arrivals::sporadic(period_ns), cost_ns }
}

fn plan(by_memory: bool, flow: PlannedFlow, normal_load: u64) -> Plan {
    Plan {
        class: "one flow",
        participants: 1,
        by_memory,
        receive_ns: vec![(flow.priority, flow.cost_ns)],
        flows: vec![flow],
        normal_ns: 50_000,
        below_ns: 100_000,
        normal_load,
        calls: None,
    }
}

/// A burst of urgent samples with more than full load leaves one job of normal priority every 10
/// ms, with either transport.
#[test]
fn normal_server_runs_during_urgent_overload() {
    for by_memory in [false, true] {
        let mut test_bench = TestBench::new(plan(by_memory, topic(46, 100_000, 60_000), 1));
        test_bench.begin(&[]);
        let received = test_bench.run(ArrivalPattern::Critical(Releaser::Below), 1_000_000_000, &mut Random(1));
        assert!((40..200).contains(&received), "{received} in a second of a flood, by memory: {by_memory}");
        test_bench.check_transport();
    }
}

/// A `write` whose datagrams no transport accepts returns, although the executor receives urgent
/// samples.
#[test]
fn write_returns_although_the_transport_loans_no_frame() {
    let mut test_bench = TestBench::new(plan(false, topic(46, 1_000_000, 1_000), 0));
    test_bench.write_through_a_broken_transport();
}
