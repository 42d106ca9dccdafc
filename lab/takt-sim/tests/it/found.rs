//! Regression tests of errors that the simulation has found in the core. Each is a small separate
//! world, so that it stays the same when seeds change their meaning. Each violates a rule with the
//! code before the fix.

use takt_sim::clock::{MILLISECOND, SECOND};
use takt_sim::scenario::{
    Direction, Discipline, EndpointPlan, Fault, FaultKind, HostPlan, Impairment, LivelinessPlan, NetworkPlan,
    ProcessPlan, QosPlan, Role, Scenario, TopicPlan,
};
use takt_wire::qos::LivelinessKind;

use crate::run;

pub(crate) const RELIABLE: QosPlan = QosPlan {
    reliable: true,
    transient_local: false,
    keep_last: None,
    max_samples: None,
    priority: 0,
    urgency: 0,
    partition: 0,
    liveliness: None,
    user_data: 0,
    deadline: None,
    strength: None,
    by_source: false,
    budget: 0,
    separation: None,
    purge: None,
    lifespan: None,
    directed: false,
    filter: None,
};

pub(crate) fn writer(qos: QosPlan, period: u64, samples: u32) -> EndpointPlan {
    let role = Role::Writer { period, burst: 1, samples, endings: 0 };
    EndpointPlan { topic: 0, qos, create: 0, delete: None, role }
}

pub(crate) fn reader(qos: QosPlan) -> EndpointPlan {
    EndpointPlan { topic: 0, qos, create: 0, delete: None, role: Role::Reader { period: 0 } }
}

/// Returns a world with one process per host, and one topic with samples of `sample` octets.
pub(crate) fn scenario(sample: usize, processes: Vec<Vec<EndpointPlan>>) -> Scenario {
    let host = HostPlan { drift_ppb: 0, wall_jumps: vec![], hears_multicast: true, switch: 0 };
    let process = |(host, endpoints)| ProcessPlan { host, start: 0, ends: vec![], stalls: vec![], cost: 0, endpoints };
    Scenario {
        seed: 0,
        active: 3 * SECOND,
        hosts: vec![host; processes.len()],
        network: NetworkPlan {
            switches: 1,
            bits_per_second: 100_000_000,
            propagation: 1_000,
            queue_bytes: 64_000,
            discipline: Discipline::Fifo,
            mtu: 1_500,
            ..NetworkPlan::PLAIN
        },
        topics: vec![TopicPlan { instances: 0, sizes: (sample, sample) }],
        processes: processes.into_iter().enumerate().map(process).collect(),
        ..Scenario::default()
    }
}

/// A volatile reader of a writer with history lost the first heartbeat in a partition. It treated
/// the samples written meanwhile as history, which it had not requested, and never received them.
#[test]
fn volatile_reader_gets_samples_written_after_a_lost_first_heartbeat() {
    let history = QosPlan { transient_local: true, ..RELIABLE };
    let endpoints = vec![vec![writer(history, MILLISECOND, 1_000)], vec![reader(RELIABLE)]];
    let mut scenario = scenario(100, endpoints);
    for at in 0..40 {
        let from = at * MILLISECOND / 2;
        let until = from + 300 * MILLISECOND;
        let impairment = Impairment::Blockage;
        let kind = FaultKind::Link { host: 1, direction: Direction::Down, impairment };
        scenario.faults = vec![
            Fault { from, until, kind },
            Fault { from, until, kind: FaultKind::Partition { group: 1, one_way: true, flapping: 0 } },
        ];
        let report = run(&scenario);
        assert_eq!(report.violation, None, "{at}");
        assert!(report.taken > 500, "{at}: {}", report.taken);
    }
}

/// Three readers request large samples from one writer that exceed the queue of a slow link.
/// Repairs displaced each other in the queue: hundreds of datagrams were sent for each that
/// arrived.
#[test]
fn repairs_do_not_displace_each_other_in_a_queue() {
    let readers = || vec![reader(RELIABLE)];
    let endpoints = vec![vec![writer(RELIABLE, 20 * MILLISECOND, 60)], readers(), readers(), readers()];
    let scenario = scenario(200_000, endpoints);
    let report = run(&scenario);
    assert_eq!(report.violation, None);
    assert_eq!(report.taken, 180);
    let needed = 180 * 200_000 / 1_400;
    assert!(report.network.sent < 4 * needed, "{:?} for {needed}", report.network);
}

/// Each answer to an earlier request made the reader request repairs again that were in transit.
/// Samples requested as a whole counted as one fragment each, so that the loss rate appeared low
/// although 17 of 18 datagrams were lost. Two late joiners fetch the history of a writer over a
/// slow link.
#[test]
fn late_joiners_fetch_fragmented_samples_at_link_speed() {
    let durable = QosPlan { transient_local: true, ..RELIABLE };
    let late = || vec![EndpointPlan { create: 2 * SECOND, ..reader(durable) }];
    let scenario = scenario(20_000, vec![vec![writer(durable, 2 * MILLISECOND, 800)], late(), late()]);
    let report = run(&scenario);
    assert_eq!(report.violation, None);
    assert_eq!(report.taken, 1_600);
    let needed = 1_600 * 20_000 / 1_400;
    assert!(report.network.sent < 4 * needed, "{:?} for {needed}", report.network);
}

/// The readers of a participant were not notified of the liveliness of its own writers.
#[test]
fn automatic_writer_is_alive_for_readers_of_its_own_process() {
    let liveliness = LivelinessPlan { kind: LivelinessKind::Automatic, lease: 300 * MILLISECOND };
    let qos = QosPlan { liveliness: Some(liveliness), ..RELIABLE };
    let report = run(&scenario(100, vec![vec![writer(qos, 10 * MILLISECOND, 10), reader(RELIABLE)]]));
    assert_eq!(report.violation, None);
    assert_eq!(report.taken, 10);
}
