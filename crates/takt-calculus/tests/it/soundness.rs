//! No simulated event takes longer than its bound, and the bounds are not far off.

use takt_calculus::{System, analyse, verify};

use super::random::{Random, system};
use super::simulation::{Manner, longest};

const SYSTEMS: u64 = 1000;

#[test]
fn no_event_takes_longer_than_its_bound_in_a_thousand_systems() {
    let (mut bounded, mut ratios) = (0, Vec::new());
    for seed in 0..SYSTEMS {
        let mut random = Random(seed);
        let system = system(&mut random);
        let Ok(certificate) = analyse(&system) else { continue };
        bounded += 1;
        verify(&certificate).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let mut observed = vec![0; system.flows.len()];
        for manner in [Manner::Worst, Manner::Random, Manner::Random, Manner::Random] {
            for (seen, time) in observed.iter_mut().zip(longest(&system, 30_000, manner, &mut random)) {
                *seen = time.max(*seen);
            }
        }
        for (flow, (seen, claim)) in observed.into_iter().zip(&certificate.flows).enumerate() {
            let bound = claim.bound_ns.expect("it has arrivals");
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

/// Of one resource where all pieces are single the simulated worst case is the bound, nearly always.
#[test]
fn the_bounds_of_one_resource_are_reached() {
    let (mut all, mut reached) = (0, 0);
    for seed in 0..300 {
        let mut random = Random(seed ^ 0x5eed);
        let mut system: System = system(&mut random);
        system.resources.truncate(1);
        for flow in &mut system.flows {
            flow.stages.truncate(1);
            flow.stages[0].resource = 0;
            flow.stages[0].delay_ns_min = flow.stages[0].delay_ns;
        }
        // Blocking is the one thing that beginning together does not show.
        for stage in system.flows.iter_mut().flat_map(|flow| &mut flow.stages) {
            stage.priority = 1;
        }
        let Ok(certificate) = analyse(&system) else { continue };
        let seen = longest(&system, 30_000, Manner::Worst, &mut random);
        all += seen.len();
        reached += seen.iter().zip(&certificate.flows).filter(|(seen, claim)| Some(**seen) == claim.bound_ns).count();
    }
    assert!(all > 500 && reached * 10 >= all * 2, "{reached} of {all}");
}
