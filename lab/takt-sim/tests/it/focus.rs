//! Worlds that exercise one mechanism each.

use takt_sim::scenario::{Focus, Scenario};
use takt_sim::swarm;
use takt_sim::timeline::Quiet;

/// Number of seeds per mechanism in each run.
const SEEDS: u64 = 10;

#[test]
fn focused_worlds_keep_all_rules() {
    for focus in Focus::ALL {
        let mut taken = 0;
        // A world of several hours takes one second.
        let seeds = if focus == Focus::Hours { 1 } else { SEEDS };
        for seed in 0..seeds {
            let report = swarm::run(&Scenario::focused_on(focus, seed), &mut Quiet);
            assert_eq!(report.violation, None, "{focus:?}, seed {seed}");
            taken += report.taken;
        }
        assert!(taken > seeds, "{focus:?}: only {taken} samples are taken");
    }
}

#[test]
fn focused_world_is_deterministic() {
    for focus in [Focus::Patterns, Focus::Reading, Focus::Counts, Focus::Services, Focus::Lookups, Focus::Filters] {
        let runs = [(); 2].map(|()| swarm::run(&Scenario::focused_on(focus, 1), &mut Quiet));
        assert_eq!(runs[0], runs[1], "{focus:?}");
    }
}

#[test]
fn suspension_ending_owner_hour_and_filter_worlds_are_exact() {
    for focus in [Focus::Suspensions, Focus::Endings, Focus::Owners, Focus::Hours, Focus::Filters] {
        assert!((0..SEEDS).all(|seed| Scenario::focused_on(focus, seed).is_exact()), "{focus:?}");
    }
}

#[test]
fn swarm_contains_worlds_of_each_mechanism() {
    let mut kinds: Vec<_> = (0..2_000).filter_map(Scenario::focus_of).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, Focus::ALL);
}

#[test]
fn batch_worlds_are_exact_with_keep_last_writers() {
    let keeps_last = |world: &Scenario| world.processes[0].endpoints.iter().all(|plan| plan.qos.max_samples.is_none());
    let worlds: Vec<_> = (0..SEEDS).map(|seed| Scenario::focused_on(Focus::Batches, seed)).collect();
    assert!(worlds.iter().all(|world| world.is_exact() == keeps_last(world)));
    assert!(worlds.iter().any(keeps_last) && !worlds.iter().all(keeps_last), "both are there");
}
