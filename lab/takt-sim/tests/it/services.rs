//! Worlds with a recorded participant of another vendor, a discovery server, or a durability
//! service.

use takt_sim::recorded::RecordedPlan;
use takt_sim::recording::Product;
use takt_sim::scenario::{QosPlan, Scenario, Service, Services};
use takt_sim::world::Report;

use crate::found::{RELIABLE, reader, scenario, writer};
use crate::run;
use takt_sim::clock::MILLISECOND;

/// Number of seeds per kind of service in each run.
const SEEDS: u64 = 12;

/// Number of changes in each recording.
const RECORDED: u64 = 24;

#[test]
fn worlds_with_services_keep_all_rules() {
    for service in Service::ALL {
        let mut taken = 0;
        for seed in 0..SEEDS {
            let report = run(&Scenario::served(service, seed));
            assert_eq!(report.violation, None, "{service:?}, seed {seed}");
            taken += report.taken;
        }
        assert!(taken > 10 * SEEDS, "{service:?}: only {taken} samples are taken");
    }
}

#[test]
fn world_with_a_service_is_deterministic() {
    for service in Service::ALL {
        let scenario = Scenario::served(service, 1);
        assert_eq!(run(&scenario), run(&scenario), "{service:?}");
    }
}

/// Runs a world of two processes that exchange 20 samples, and a recorded participant.
fn can_match(product: Product, matching_processes: usize) -> Report {
    let endpoints = vec![vec![writer(RELIABLE, 10 * MILLISECOND, 20)], vec![reader(QosPlan { ..RELIABLE })]];
    let mut world = scenario(64, endpoints);
    world.services.recorded = Some(RecordedPlan { product, host: 1, start: 0, matching_processes });
    run(&world)
}

#[test]
fn each_reading_process_takes_all_recorded_changes() {
    for product in Product::ALL {
        for matching_processes in 0..=2 {
            let report = can_match(product, matching_processes);
            assert_eq!(report.violation, None, "{product:?}, {matching_processes}");
            // The end of the recorded participant may end instances again.
            let of_recording = report.taken - 20;
            assert!(
                of_recording >= matching_processes as u64 * RECORDED,
                "{product:?}, {matching_processes}: {of_recording}"
            );
        }
    }
}

#[test]
fn swarm_contains_worlds_with_each_service() {
    let mut kinds: Vec<_> = (0..500).filter_map(Scenario::service_of).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, Service::ALL);
    let services = Services::default();
    assert!(services.recorded.is_none() && services.discovery_server.is_none() && services.durability.is_none());
}
