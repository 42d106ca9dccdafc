//! Simulated worlds of a few seeds, and regression tests of earlier findings.

mod capture;
mod checkers;
mod exact;
mod fault_matrix;
mod focus;
mod found;
mod hostile;
mod secured;
mod services;

use takt_sim::clock::SECOND;
use takt_sim::scenario::{Scenario, Size};
use takt_sim::swarm;
use takt_sim::timeline::Quiet;
use takt_sim::world::Report;

/// Number of seeds in a default run. `make test-long` runs many more with `cargo xtask sim
/// --swarm`.
const SMOKE_SEEDS: u64 = 40;

fn run(scenario: &Scenario) -> Report {
    swarm::run(scenario, &mut Quiet)
}

#[test]
fn smoke_seeds_keep_all_rules() {
    let mut taken = 0;
    for seed in 0..SMOKE_SEEDS {
        let report = run(&Scenario::within(seed, &Size::SMALL));
        assert_eq!(report.violation, None, "cargo xtask sim --seed {seed}");
        taken += report.taken;
    }
    assert!(taken > 10_000, "only {taken} samples arrived");
}

/// A world with at least 20 hosts and 50 topics.
#[test]
fn large_world_keeps_all_rules() {
    let scenario = Scenario::within(13, &Size::LARGE);
    assert!(scenario.hosts.len() >= 20 && scenario.topics.len() >= 50);
    let report = run(&scenario);
    assert_eq!(report.violation, None, "cargo xtask sim --large --seed 13");
    assert!(report.taken > 1_000);
}

#[test]
fn run_of_a_seed_is_deterministic() {
    for seed in [0, 3, 7] {
        let scenario = Scenario::within(seed, &Size::SMALL);
        let (first, second) = (run(&scenario), run(&scenario));
        assert_eq!(first, second, "seed {seed}");
        assert!(first.simulated > SECOND);
    }
    let digests: Vec<_> = [1, 2].map(|seed| run(&Scenario::within(seed, &Size::SMALL)).digest).into();
    assert_ne!(digests[0], digests[1], "the digest tells worlds apart");
}
