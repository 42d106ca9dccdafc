//! Worlds without violations in which a checker once reported one.

use takt_sim::clock::{MILLISECOND, SECOND};
use takt_sim::scenario::{Alteration, AlterationPlan, EndpointPlan, Fault, FaultKind, QosPlan, Role, TopicPlan};
use takt_wire::qos::{AccessScope, Presentation};

use crate::found::{RELIABLE, reader, scenario, writer};
use crate::run;

/// A history of large samples whose memory is used up cannot hold another large sample, although a
/// small one would fit.
#[test]
fn history_with_space_for_a_small_sample_only_refuses_a_large_one() {
    let history = QosPlan { transient_local: true, ..RELIABLE };
    let report = run(&scenario(200_000, vec![vec![writer(history, MILLISECOND, 200)]]));
    assert!(report.written < 200, "there was room for all {}", report.written);
    assert_eq!(report.violation, None);
}

fn seldom(qos: QosPlan) -> EndpointPlan {
    EndpointPlan { role: Role::Reader { period: 400 * MILLISECOND }, ..reader(qos) }
}

/// Seed 2142.
#[test]
fn reader_with_small_history_and_rare_takes_gets_all_samples() {
    let few = QosPlan { max_samples: Some(20), ..RELIABLE };
    let mut scenario = scenario(100, vec![vec![writer(RELIABLE, MILLISECOND, 2_000)], vec![seldom(few)]]);
    let access_scope = AccessScope::Instance;
    scenario.presentation = Some(Presentation { access_scope, coherent_access: true, ordered_access: true });
    let report = run(&scenario);
    assert_eq!(report.violation, None);
    assert!(report.taken > 1_800, "sets that do not fit are lost, the others come: {}", report.taken);
}

/// Seeds 385 and 607.
#[test]
fn takes_by_instance_are_not_reported_as_gaps() {
    let mut scenario = scenario(100, vec![vec![writer(RELIABLE, 10 * MILLISECOND, 200)], vec![seldom(RELIABLE)]]);
    scenario.topics = vec![TopicPlan { instances: 4, sizes: (100, 100) }];
    let access_scope = AccessScope::Instance;
    scenario.presentation = Some(Presentation { access_scope, coherent_access: false, ordered_access: true });
    let report = run(&scenario);
    assert_eq!(report.violation, None);
    assert_eq!((report.written, report.taken), (200, 200));
}

/// Seed 30310. The reader keeps receiving from the writer, so it need not receive again what it
/// has.
#[test]
fn reader_unmatched_by_its_writer_gets_only_missing_samples() {
    let history = QosPlan { transient_local: true, ..RELIABLE };
    let endpoints = vec![vec![writer(history, 3 * MILLISECOND, 300)], vec![reader(history)]];
    let mut scenario = scenario(100, endpoints);
    scenario.active = 5 * SECOND;
    let kind = FaultKind::Partition { group: 2, one_way: true, flapping: 0 };
    scenario.faults = vec![Fault { from: SECOND / 2, until: scenario.active, kind }];
    let report = run(&scenario);
    assert_eq!(report.violation, None);
    assert_eq!((report.written, report.taken), (300, 300));
}

/// Seed 80061.
#[test]
fn reader_created_after_last_sample_misses_deadlines_from_creation() {
    let history = QosPlan { transient_local: true, deadline: Some(SECOND / 2), ..RELIABLE };
    let late = EndpointPlan { create: 9 * SECOND, ..reader(history) };
    let report = run(&scenario(100, vec![vec![writer(history, MILLISECOND, 10)], vec![late]]));
    assert_eq!(report.violation, None);
    assert_eq!((report.written, report.taken), (10, 10));
}

/// Seed 231042. The participant of one writer ignores the reader, and the other writer is deleted.
/// The reader does not know that it is ignored, so a writer of its instance is alive for it.
#[test]
fn instance_of_ignored_reader_is_alive_while_reader_has_a_writer() {
    let leaves = EndpointPlan { delete: Some(2 * SECOND), ..writer(RELIABLE, 10 * MILLISECOND, 100) };
    let endpoints = vec![vec![writer(RELIABLE, 10 * MILLISECOND, 100)], vec![leaves], vec![reader(RELIABLE)]];
    let mut scenario = scenario(100, endpoints);
    let what = Alteration::IgnoreReaders;
    scenario.alterations = vec![AlterationPlan { at: SECOND / 2, process: 0, endpoint: 0, what, time: 0 }];
    let report = run(&scenario);
    assert_eq!(report.violation, None);
    assert_eq!(report.written, 200);
    assert!(report.taken < 200, "the reader is ignored: {}", report.taken);
}
