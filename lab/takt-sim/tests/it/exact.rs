//! Exact worlds: without faults, so that rules about time are exact.

use takt_sim::check::Rule;
use takt_sim::clock::MILLISECOND;
use takt_sim::scenario::{QosPlan, Role, Scenario};
use takt_sim::swarm;
use takt_sim::timeline::Quiet;

use crate::found::{RELIABLE, reader, scenario, writer};

/// Number of seeds per run.
const SEEDS: u64 = 20;

#[test]
fn exact_worlds_keep_rules_about_time() {
    let mut exact = 0;
    for seed in 0..SEEDS {
        let scenario = Scenario::exact(seed);
        exact += u64::from(scenario.is_exact());
        let report = swarm::run(&scenario, &mut Quiet);
        assert_eq!(report.violation, None, "cargo xtask sim --exact --seed {seed}");
    }
    assert!(exact > SEEDS / 2, "only {exact} worlds are exact");
}

/// Returns a world of one writer and one reader on fast links.
fn plain(qos: QosPlan) -> Scenario {
    let mut world = scenario(64, vec![vec![writer(qos, 100 * MILLISECOND, 20)], vec![reader(qos)]]);
    world.network.bits_per_second = 1_000_000_000;
    world
}

#[test]
fn worlds_with_faults_limits_or_bursts_are_not_exact() {
    assert!(plain(RELIABLE).is_exact());
    assert!(!plain(QosPlan { max_samples: Some(9), ..RELIABLE }).is_exact());
    let mut bursts = plain(RELIABLE);
    bursts.processes[0].endpoints[0].role =
        Role::Writer { period: 100 * MILLISECOND, burst: 2, samples: 9, endings: 0 };
    assert!(!bursts.is_exact());
    bursts.batches = Some(8);
    assert!(bursts.is_exact(), "no sample of a batch displaces one that could be sent");
    let mut stalls = plain(RELIABLE);
    stalls.processes[1].stalls.push((MILLISECOND, MILLISECOND));
    assert!(!stalls.is_exact());
}

#[test]
fn late_sample_violates_its_latency_budget() {
    // Links of this length take longer than the latency budget allows.
    let mut world = plain(RELIABLE);
    world.network.propagation = 6 * MILLISECOND;
    let violation = swarm::run(&world, &mut Quiet).violation.expect("6 ms are too long");
    assert_eq!(violation.rule, Rule::Latency, "{violation}");
}
