//! Worlds with a hostile host.

use takt_core::AMPLIFICATION_MAX;
use takt_sim::scenario::{Scenario, Size};

use crate::run;

const SEEDS: u64 = 16;

#[test]
fn worlds_with_a_hostile_host_keep_their_rules() {
    let (mut taken, mut hostile, mut to_victim, mut impostors) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let scenario = Scenario::within(seed, &Size::SMALL).with_hostile();
        impostors += u64::from(scenario.hostile.is_some_and(|plan| plan.impostor));
        let report = run(&scenario);
        assert_eq!(report.violation, None, "cargo xtask sim --hostile --seed {seed}");
        taken += report.taken;
        hostile += report.hostile_octets.0;
        to_victim += report.hostile_octets.1;
    }
    assert!(impostors > 0 && impostors < SEEDS, "{impostors} of {SEEDS} speak in the names of others");
    assert!(taken > 1_000, "only {taken} samples arrived");
    assert!(hostile > 1_000_000, "the hostile host was heard for {hostile} octets only");
    assert!(
        to_victim > 10_000 && to_victim < AMPLIFICATION_MAX as u64 * hostile,
        "{to_victim} octets went to the victim"
    );
}

#[test]
fn world_with_a_hostile_host_is_deterministic() {
    let scenario = Scenario::within(3, &Size::SMALL).with_hostile();
    assert_eq!(run(&scenario), run(&scenario));
}
