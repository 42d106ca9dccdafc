//! Soundness tests: no simulated event exceeds its bound, and the bounds are tight.

use takt_calculus::{System, analyze, verify};

use super::random::{Random, system};
use super::simulation::{ArrivalPattern, longest};

const SYSTEMS: u64 = 1000;

/// Returns the maximum times of all flows over all choices of times.
fn worst(system: &System, random: &mut Random) -> Vec<u64> {
    let victims = (0..system.flows.len()).map(ArrivalPattern::WorstFor);
    let patterns = victims.chain([ArrivalPattern::Random; 3]);
    let mut worst = vec![0; system.flows.len()];
    for pattern in patterns {
        for (worst, time) in worst.iter_mut().zip(longest(system, 30_000, pattern, random)) {
            *worst = time.max(*worst);
        }
    }
    worst
}

#[test]
fn no_event_exceeds_its_bound_in_a_thousand_systems() {
    let (mut bounded, mut ratios) = (0, Vec::new());
    for seed in 0..SYSTEMS {
        let mut random = Random(seed);
        let system = system(&mut random);
        let Ok(certificate) = analyze(&system) else { continue };
        bounded += 1;
        verify(&certificate).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        for (flow, (seen, claim)) in worst(&system, &mut random).into_iter().zip(&certificate.flows).enumerate() {
            let bound = claim.bound_ns.expect("the flow has arrivals");
            assert!(seen <= bound, "seed {seed}, flow {flow}: {seen} > {bound}\n{system:#?}");
            ratios.push(seen as f64 / bound as f64);
        }
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    println!(
        "{bounded} of {SYSTEMS} systems bounded; longest seen / bound: median {median:.3}, lowest {:.3}",
        ratios[0]
    );
    assert!(bounded > SYSTEMS * 9 / 10, "{bounded}");
    assert!(median > 0.5, "{median}");
}

/// Without lower-priority work, the simultaneous arrival of all events is the worst case: the
/// simulated time equals the bound.
#[test]
fn bound_of_one_resource_without_blocking_is_tight_for_every_flow() {
    let mut compared = 0;
    for seed in 0..300 {
        let mut random = Random(seed ^ 0x5eed);
        let mut system: System = system(&mut random);
        system.resources.truncate(1);
        system.resources[0].server = None;
        for flow in &mut system.flows {
            flow.stages.truncate(1);
            flow.stages[0].resource = 0;
            flow.stages[0].priority = 1;
        }
        let Ok(certificate) = analyze(&system) else { continue };
        for (flow, claim) in certificate.flows.iter().enumerate() {
            let seen = longest(&system, 30_000, ArrivalPattern::WorstFor(flow), &mut random)[flow];
            assert_eq!(Some(seen), claim.bound_ns, "seed {seed}, flow {flow}: {system:#?}");
            compared += 1;
        }
    }
    println!("{compared} bounds reached");
    assert!(compared > 500, "{compared}");
}
