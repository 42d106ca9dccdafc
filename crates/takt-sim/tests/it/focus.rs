//! Worlds that exercise one mechanism each.

use takt_sim::scenario::{Focus, Scenario};
use takt_sim::swarm;
use takt_sim::timeline::Quiet;

/// Seeds of each mechanism that every run looks at.
const SEEDS: u64 = 10;

#[test]
fn promises_are_kept_in_worlds_of_one_mechanism() {
    for focus in Focus::ALL {
        let mut taken = 0;
        for seed in 0..SEEDS {
            let report = swarm::run(&Scenario::focused_on(focus, seed), &mut Quiet);
            assert_eq!(report.violation, None, "{focus:?}, seed {seed}");
            taken += report.taken;
        }
        assert!(taken > SEEDS, "{focus:?}: only {taken} samples are taken");
    }
}

#[test]
fn worlds_of_suspensions_endings_and_owners_are_exact() {
    for focus in [Focus::Suspensions, Focus::Endings, Focus::Owners] {
        assert!((0..SEEDS).all(|seed| Scenario::focused_on(focus, seed).is_exact()), "{focus:?}");
    }
}

#[test]
fn swarm_has_worlds_of_each_mechanism() {
    let mut kinds: Vec<_> = (0..2_000).filter_map(Scenario::focus_of).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, Focus::ALL);
}

#[test]
fn worlds_of_batches_are_exact_where_writers_keep_the_last_samples() {
    let keeps_last = |world: &Scenario| world.processes[0].endpoints.iter().all(|plan| plan.qos.max_samples.is_none());
    let worlds: Vec<_> = (0..SEEDS).map(|seed| Scenario::focused_on(Focus::Batches, seed)).collect();
    assert!(worlds.iter().all(|world| world.is_exact() == keeps_last(world)));
    assert!(worlds.iter().any(keeps_last) && !worlds.iter().all(keeps_last), "both are there");
}
