//! Tests of the compatibility check: every offered and requested value of every policy, and the
//! reported reason.

use alloc::string::ToString;

use super::*;
use crate::qos::{
    AccessScope, DataRepresentation, Deadline, DestinationOrder, Durability, LatencyBudget, LivelinessKind, Ownership,
    Reliability,
};
use crate::time::Duration;

/// Returns the incompatible policies after `change` has modified both endpoints.
fn refused(change: impl Fn(&mut PublicationData, &mut SubscriptionData)) -> Vec<PolicyId> {
    let (mut offered, mut requested) = (PublicationData::default(), SubscriptionData::default());
    change(&mut offered, &mut requested);
    check(&offered, &requested).iter().map(|found| found.policy).collect()
}

/// Checks that exactly the pairs for which `offers` returns true are compatible.
fn check_table<K: Copy>(
    policy: PolicyId,
    kinds: &[K],
    apply: impl Fn(K, K, &mut PublicationData, &mut SubscriptionData),
    is_enough: impl Fn(usize, usize) -> bool,
) {
    for (o, offered) in kinds.iter().enumerate() {
        for (r, requested) in kinds.iter().enumerate() {
            let found = refused(|writer, reader| apply(*offered, *requested, writer, reader));
            let expected = if is_enough(o, r) { Vec::new() } else { Vec::from([policy]) };
            assert_eq!(found, expected, "{policy}: kind {o} offered, kind {r} requested");
        }
    }
}

#[test]
fn defaults_are_compatible() {
    assert_eq!(refused(|_, _| ()), []);
}

#[test]
fn durability_must_be_at_least_the_requested_kind() {
    use Durability::{Persistent, Transient, TransientLocal, Volatile};
    check_table(
        PolicyId::Durability,
        &[Volatile, TransientLocal, Transient, Persistent],
        |o, r, writer, reader| {
            writer.qos.durability = o;
            reader.qos.durability = r;
        },
        |o, r| o >= r,
    );
}

#[test]
fn reliability_must_be_at_least_the_requested_kind() {
    check_table(
        PolicyId::Reliability,
        &[Reliability::BEST_EFFORT, Reliability::RELIABLE],
        |o, r, writer, reader| {
            writer.qos.reliability = o;
            reader.qos.reliability = r;
        },
        |o, r| o >= r,
    );
}

#[test]
fn reliability_check_ignores_the_blocking_time() {
    let found = refused(|writer, reader| {
        writer.qos.reliability.max_blocking_time = Duration::INFINITE;
        reader.qos.reliability.max_blocking_time = Duration::ZERO;
    });
    assert_eq!(found, []);
}

#[test]
fn destination_order_must_be_at_least_the_requested_kind() {
    check_table(
        PolicyId::DestinationOrder,
        &[DestinationOrder::ByReceptionTimestamp, DestinationOrder::BySourceTimestamp],
        |o, r, writer, reader| {
            writer.qos.destination_order = o;
            reader.qos.destination_order = r;
        },
        |o, r| o >= r,
    );
}

#[test]
fn ownership_kinds_must_be_equal() {
    check_table(
        PolicyId::Ownership,
        &[Ownership::Shared, Ownership::Exclusive],
        |o, r, writer, reader| {
            writer.qos.ownership = o;
            reader.qos.ownership = r;
        },
        |o, r| o == r,
    );
}

const SPANS: [Duration; 4] = [Duration::ZERO, Duration::from_millis(1), Duration::from_secs(1), Duration::INFINITE];

#[test]
fn deadline_must_be_at_most_the_requested_period() {
    check_table(
        PolicyId::Deadline,
        &SPANS,
        |o, r, writer, reader| {
            writer.qos.deadline = Deadline { period: o };
            reader.qos.deadline = Deadline { period: r };
        },
        |o, r| o <= r,
    );
}

#[test]
fn latency_budget_must_be_at_most_the_requested_duration() {
    check_table(
        PolicyId::LatencyBudget,
        &SPANS,
        |o, r, writer, reader| {
            writer.qos.latency_budget = LatencyBudget { duration: o };
            reader.qos.latency_budget = LatencyBudget { duration: r };
        },
        |o, r| o <= r,
    );
}

#[test]
fn liveliness_must_be_at_least_the_requested_kind() {
    use LivelinessKind::{Automatic, ManualByParticipant, ManualByTopic};
    check_table(
        PolicyId::Liveliness,
        &[Automatic, ManualByParticipant, ManualByTopic],
        |o, r, writer, reader| {
            writer.qos.liveliness.kind = o;
            reader.qos.liveliness.kind = r;
        },
        |o, r| o >= r,
    );
}

#[test]
fn liveliness_lease_must_be_at_most_the_requested_duration() {
    check_table(
        PolicyId::Liveliness,
        &SPANS,
        |o, r, writer, reader| {
            writer.qos.liveliness.lease_duration = o;
            reader.qos.liveliness.lease_duration = r;
        },
        |o, r| o <= r,
    );
}

#[test]
fn presentation_scope_must_be_at_least_the_requested_scope() {
    use AccessScope::{Group, Instance, Topic};
    check_table(
        PolicyId::Presentation,
        &[Instance, Topic, Group],
        |o, r, writer, reader| {
            writer.presentation.access_scope = o;
            reader.presentation.access_scope = r;
        },
        |o, r| o >= r,
    );
}

#[test]
fn presentation_flags_must_include_the_requested_flags() {
    for (offered, requested, enough) in
        [(false, false, true), (true, false, true), (true, true, true), (false, true, false)]
    {
        let expected = if enough { Vec::new() } else { Vec::from([PolicyId::Presentation]) };
        let coherent = refused(|writer, reader| {
            writer.presentation.coherent_access = offered;
            reader.presentation.coherent_access = requested;
        });
        assert_eq!(coherent, expected);
        let ordered = refused(|writer, reader| {
            writer.presentation.ordered_access = offered;
            reader.presentation.ordered_access = requested;
        });
        assert_eq!(ordered, expected);
    }
}

#[test]
fn offered_data_representation_must_be_accepted() {
    const XCDR1: i16 = DataRepresentation::XCDR1;
    const XML: i16 = DataRepresentation::XML;
    const XCDR2: i16 = DataRepresentation::XCDR2;
    for (offered, requested, enough) in [
        (&[XCDR1][..], &[XCDR1, XCDR2][..], true),
        (&[XCDR2], &[XCDR1, XCDR2], true),
        (&[XCDR2], &[XCDR1], false),
        (&[XCDR1], &[XCDR2], false),
        (&[], &[XCDR1], true),
        (&[XCDR1], &[], true),
        (&[], &[], true),
        (&[XCDR2], &[], false),
        (&[], &[XCDR2], false),
        (&[XCDR2, XCDR1], &[XCDR1], false),
        (&[XCDR1, XCDR2], &[XCDR1], true),
        (&[XML], &[XCDR1, XCDR2], false),
    ] {
        let expected = if enough { Vec::new() } else { Vec::from([PolicyId::DataRepresentation]) };
        let found = refused(|writer, reader| {
            writer.qos.data_representation.0 = offered.to_vec();
            reader.qos.data_representation.0 = requested.to_vec();
        });
        assert_eq!(found, expected, "{offered:?} offered, {requested:?} requested");
    }
}

#[test]
fn partitions_are_not_part_of_the_check() {
    let found = refused(|writer, _| writer.partition.names.push(String::from("elsewhere")));
    assert_eq!(found, []);
}

#[test]
fn all_incompatible_policies_are_reported_by_ascending_id() {
    let found = refused(|writer, reader| {
        reader.qos.durability = Durability::Persistent;
        reader.presentation.ordered_access = true;
        reader.qos.deadline.period = Duration::from_secs(1);
        writer.qos.latency_budget.duration = Duration::from_secs(1);
        reader.qos.ownership = Ownership::Exclusive;
        reader.qos.liveliness.lease_duration = Duration::from_secs(1);
        writer.qos.reliability = Reliability::BEST_EFFORT;
        reader.qos.reliability = Reliability::RELIABLE;
        reader.qos.destination_order = DestinationOrder::BySourceTimestamp;
        writer.qos.data_representation = DataRepresentation::xcdr2();
        reader.qos.data_representation = DataRepresentation::xcdr1();
    });
    let ids: Vec<u32> = found.iter().map(|policy| policy.id()).collect();
    assert_eq!(ids, [2, 3, 4, 5, 6, 8, 11, 12, 23]);
}

#[test]
fn incompatibility_displays_offered_and_requested_values() {
    let (mut offered, mut requested) = (PublicationData::default(), SubscriptionData::default());
    offered.qos.reliability = Reliability::BEST_EFFORT;
    requested.qos.reliability = Reliability::RELIABLE;
    requested.presentation.coherent_access = true;
    requested.qos.liveliness.lease_duration = Duration::from_millis(1_500);
    offered.qos.data_representation.0 = alloc::vec![DataRepresentation::XCDR2];
    requested.qos.data_representation.0 = alloc::vec![DataRepresentation::XCDR1, 77];
    let texts: Vec<String> = check(&offered, &requested).iter().map(|found| found.to_string()).collect();
    assert_eq!(
        texts,
        [
            "PRESENTATION: the writer offers INSTANCE, the reader requests INSTANCE coherent",
            "LIVELINESS: the writer offers AUTOMATIC with lease infinite, \
             the reader requests AUTOMATIC with lease 1.5s",
            "RELIABILITY: the writer offers BEST_EFFORT, the reader requests RELIABLE",
            "DATAREPRESENTATION: the writer offers XCDR2, the reader requests XCDR1 or 77",
        ]
    );
}
