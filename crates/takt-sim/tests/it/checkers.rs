//! Worlds in which all promises are kept, though a checker once thought otherwise.

use takt_sim::clock::{MILLISECOND, SECOND};
use takt_sim::scenario::{Alteration, AlterationPlan, EndpointPlan, Fault, FaultKind, QosPlan, Role, TopicPlan};
use takt_wire::qos::{AccessScope, Presentation};

use crate::found::{RELIABLE, reader, scenario, writer};
use crate::run;

/// A history of large samples whose memory is used up cannot take the next one, though a small one would still fit.
#[test]
fn room_for_a_small_sample_is_none_for_a_large_one() {
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
fn a_reader_that_holds_little_and_reads_seldom_gets_all_in_its_own_time() {
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
fn instances_that_are_read_one_after_another_leave_no_gaps() {
    let mut scenario = scenario(100, vec![vec![writer(RELIABLE, 10 * MILLISECOND, 200)], vec![seldom(RELIABLE)]]);
    scenario.topics = vec![TopicPlan { instances: 4, sizes: (100, 100) }];
    let access_scope = AccessScope::Instance;
    scenario.presentation = Some(Presentation { access_scope, coherent_access: false, ordered_access: true });
    let report = run(&scenario);
    assert_eq!(report.violation, None);
    assert_eq!((report.written, report.taken), (200, 200));
}

/// Seed 30310. The reader hears the writer all the time, so it need not get again what it has.
#[test]
fn a_reader_that_its_writer_took_for_gone_gets_only_what_it_lacks() {
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
fn reader_that_is_created_after_the_last_sample_misses_deadlines_from_then_on() {
    let history = QosPlan { transient_local: true, deadline: Some(SECOND / 2), ..RELIABLE };
    let late = EndpointPlan { create: 9 * SECOND, ..reader(history) };
    let report = run(&scenario(100, vec![vec![writer(history, MILLISECOND, 10)], vec![late]]));
    assert_eq!(report.violation, None);
    assert_eq!((report.written, report.taken), (10, 10));
}

/// Seed 231042. The participant of one writer ignores the reader, and the other writer is deleted. The reader knows nothing of
/// being ignored, so a writer of its instance lives.
#[test]
fn instance_of_an_ignored_reader_lives_as_long_as_the_reader_believes_in_a_writer() {
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
