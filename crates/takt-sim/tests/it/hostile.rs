//! Worlds with a hostile host.

use takt_core::AMPLIFICATION_MAX;
use takt_sim::scenario::{Scenario, Size};

use crate::run;

const SEEDS: u64 = 16;

#[test]
fn worlds_with_a_hostile_host_keep_their_rules() {
    let (mut taken, mut heard, mut aimed, mut impostors) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let scenario = Scenario::within(seed, &Size::SMALL).with_hostile();
        impostors += u64::from(scenario.hostile.is_some_and(|plan| plan.impostor));
        let report = run(&scenario);
        assert_eq!(report.violation, None, "cargo xtask sim --hostile --seed {seed}");
        taken += report.taken;
        heard += report.hostile_octets.0;
        aimed += report.hostile_octets.1;
    }
    assert!(impostors > 0 && impostors < SEEDS, "{impostors} of {SEEDS} speak in the names of others");
    assert!(taken > 1_000, "only {taken} samples arrived");
    assert!(heard > 1_000_000, "the hostile host was heard for {heard} octets only");
    assert!(aimed > 10_000 && aimed < AMPLIFICATION_MAX as u64 * heard, "{aimed} octets went to the victim");
}

#[test]
fn world_with_a_hostile_host_is_deterministic() {
    let scenario = Scenario::within(3, &Size::SMALL).with_hostile();
    assert_eq!(run(&scenario), run(&scenario));
}
