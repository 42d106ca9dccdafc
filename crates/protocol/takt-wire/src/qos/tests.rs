//! Tests of QoS policies: round trips and the octets of the specification.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Debug;

use super::*;
use crate::cursor::Endianness;
use crate::discovery::limits;
use crate::parameter::ParameterList;
use crate::time::Duration;

const ORDERS: [Endianness; 2] = [Endianness::Big, Endianness::Little];

fn encode<P: WirePolicy>(policy: &P, endianness: Endianness) -> Vec<u8> {
    let mut list = ParameterListBuilder::new(endianness);
    policy.put(&mut list);
    list.finish()
}

fn decode<P: WirePolicy>(bytes: &[u8], endianness: Endianness) -> Result<P, Malformed> {
    let (list, _) = ParameterList::parse(bytes, endianness).expect("the list is valid");
    P::from_parameter(&list.find(P::PID).expect("policy is there"))
}

/// Parses a policy from its octets in little endian.
fn value<P: WirePolicy>(octets: &[u8]) -> Result<P, Malformed> {
    P::parse(&mut Cursor::new(octets, Endianness::Little))
}

/// Checks that a policy round-trips and has the expected octets. A prefix of them must be malformed
/// or parse to the same policy.
fn survives<P: WirePolicy + Debug>(policy: &P, octets: &[u8]) {
    for endianness in ORDERS {
        let bytes = encode(policy, endianness);
        assert_eq!(decode::<P>(&bytes, endianness).as_ref(), Ok(policy), "{endianness:?}");
    }
    let little = encode(policy, Endianness::Little);
    let len = u16::from_le_bytes([little[2], little[3]]);
    assert_eq!(usize::from(len), octets.len());
    assert_eq!(u16::from_le_bytes([little[0], little[1]]), P::PID);
    assert_eq!(little[4..4 + octets.len()], *octets, "{policy:?}");
    for len in 0..octets.len() {
        if let Ok(cut) = value::<P>(&octets[..len]) {
            assert_eq!(cut, *policy, "only padding or defaults may be missing");
        }
    }
}

#[test]
fn kinds_and_integers_round_trip() {
    survives(&Durability::TransientLocal, &[1, 0, 0, 0]);
    survives(&Durability::Persistent, &[3, 0, 0, 0]);
    survives(&Ownership::Exclusive, &[1, 0, 0, 0]);
    survives(&DestinationOrder::BySourceTimestamp, &[1, 0, 0, 0]);
    survives(&OwnershipStrength(-2), &[0xfe, 0xff, 0xff, 0xff]);
    survives(&TransportPriority(5), &[5, 0, 0, 0]);
}

#[test]
fn reliability_counts_from_one() {
    survives(&Reliability::BEST_EFFORT, &[1, 0, 0, 0, 0, 0, 0, 0, 0x9a, 0x99, 0x99, 0x19]);
    survives(&Reliability::RELIABLE, &[2, 0, 0, 0, 0, 0, 0, 0, 0x9a, 0x99, 0x99, 0x19]);
    assert!(value::<Reliability>(&[0; 12]).is_err());
    assert!(Reliability::RELIABLE.is_reliable() && !Reliability::default().is_reliable());
}

#[test]
fn durations_round_trip() {
    let second = [1, 0, 0, 0, 0, 0, 0, 0];
    let infinite = [0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff];
    survives(&Deadline { period: Duration::from_secs(1) }, &second);
    survives(&Deadline::default(), &infinite);
    survives(&LatencyBudget { duration: Duration::from_secs(1) }, &second);
    survives(&Lifespan::default(), &infinite);
    survives(&TimeBasedFilter { minimum_separation: Duration::from_secs(1) }, &second);
}

#[test]
fn liveliness_round_trips() {
    let policy = Liveliness { kind: LivelinessKind::ManualByTopic, lease_duration: Duration::from_millis(500) };
    survives(&policy, &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80]);
}

#[test]
fn presentation_round_trips() {
    let policy = Presentation { access_scope: AccessScope::Group, coherent_access: false, ordered_access: true };
    survives(&policy, &[2, 0, 0, 0, 0, 1, 0, 0]);
}

#[test]
fn history_round_trips_and_its_depth_is_at_least_one() {
    survives(&History::KeepLast(7), &[0, 0, 0, 0, 7, 0, 0, 0]);
    survives(&History::KeepAll, &[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    for depth in [[0, 0, 0, 0], [0xff, 0xff, 0xff, 0xff]] {
        let octets = [[0; 4], depth].concat();
        assert_eq!(value(&octets), Ok(History::KeepLast(1)), "a depth below one");
    }
    assert!(value::<History>(&[2, 0, 0, 0, 1, 0, 0, 0]).is_err());
}

#[test]
fn resource_limits_round_trip_and_zero_is_unlimited() {
    let policy = ResourceLimits { max_samples: Some(100), max_instances: None, max_samples_per_instance: Some(10) };
    survives(&policy, &[100, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 10, 0, 0, 0]);
    assert_eq!(value(&[0; 12]), Ok(ResourceLimits::default()), "zero means unlimited");
}

#[test]
fn durability_service_round_trips() {
    let mut octets = vec![0; 12];
    octets.extend_from_slice(&[1, 0, 0, 0]);
    octets.extend_from_slice(&[0xff; 12]);
    survives(&DurabilityService::default(), &octets);
    assert_eq!(value(&[0; 28]), Ok(DurabilityService::default()), "all zero");
}

#[test]
fn opaque_data_round_trips() {
    survives(&UserData(vec![1, 2, 3]), &[3, 0, 0, 0, 1, 2, 3, 0]);
    survives(&TopicData(vec![]), &[0, 0, 0, 0]);
    survives(&GroupData(vec![9; 4]), &[4, 0, 0, 0, 9, 9, 9, 9]);
    assert!(value::<UserData>(&[5, 0, 0, 0, 1, 2, 3, 4]).is_err(), "longer than the parameter");
    let most = UserData(vec![7; limits::OPAQUE_LEN_MAX]);
    assert_eq!(decode(&encode(&most, Endianness::Big), Endianness::Big), Ok(most));
}

#[test]
fn partition_round_trips() {
    let policy = Partition { names: vec![String::from("a"), String::new(), String::from("abcd")] };
    let octets = [
        3, 0, 0, 0, 2, 0, 0, 0, b'a', 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, //
        5, 0, 0, 0, b'a', b'b', b'c', b'd', 0, 0, 0, 0,
    ];
    survives(&policy, &octets);
    assert!(value::<Partition>(&[1, 0, 0, 0, 2, 0, 0, 0, b'a', b'b', 0, 0]).is_err(), "no NUL");
    assert!(value::<Partition>(&[0xff; 64]).is_err(), "more names than octets");
}

#[test]
fn partitions_and_names_have_limits() {
    let names = |count: usize, len: usize| Partition { names: vec!["p".repeat(len); count] };
    let read = |policy: &Partition| -> Result<Partition, Malformed> {
        decode(&encode(policy, Endianness::Little), Endianness::Little)
    };
    let most = names(limits::PARTITIONS_MAX, limits::NAME_LEN_MAX);
    assert_eq!(read(&most).as_ref(), Ok(&most));
    assert!(read(&names(limits::PARTITIONS_MAX + 1, 1)).is_err());
    assert!(read(&names(1, limits::NAME_LEN_MAX + 1)).is_err());
}

#[test]
fn long_entity_name_is_truncated_and_not_refused() {
    survives(&EntityName(String::from("abc")), &[4, 0, 0, 0, b'a', b'b', b'c', 0]);
    let long = EntityName("\u{e9}".repeat(200));
    let read: EntityName = decode(&encode(&long, Endianness::Little), Endianness::Little).expect("well formed");
    assert_eq!(read, EntityName("\u{e9}".repeat(128)));
}

#[test]
fn only_propagated_properties_are_serialized() {
    let entry = |name: &str, propagate| PropertyEntry { name: name.into(), value: "v".into(), propagate };
    let all = Property::from_iter([entry("a", true), entry("hidden", false), entry("b", true)]);
    let seen: Property = decode(&encode(&all, Endianness::Big), Endianness::Big).expect("well formed");
    assert_eq!(seen, Property::from_iter([entry("a", true), entry("b", true)]));
    assert_eq!((all.get("hidden"), seen.get("hidden")), (Some("v"), None));
    survives(
        &Property::from_iter([entry("n", true)]),
        &[1, 0, 0, 0, 2, 0, 0, 0, b'n', 0, 0, 0, 2, 0, 0, 0, b'v', 0, 0, 0],
    );
    let too_many = Property { entries: vec![entry("n", true); limits::PROPERTIES_MAX + 1] };
    let kept: Property = decode(&encode(&too_many, Endianness::Big), Endianness::Big).expect("well formed");
    assert_eq!(kept.entries.len(), limits::PROPERTIES_MAX);
}

#[test]
fn data_representation_round_trips() {
    survives(&DataRepresentation::xcdr1(), &[1, 0, 0, 0, 0, 0, 0, 0]);
    survives(&DataRepresentation::any_xcdr(), &[2, 0, 0, 0, 0, 0, 2, 0]);
    let empty = DataRepresentation::default();
    assert_eq!((empty.effective(), empty.offered()), (&[DataRepresentation::XCDR1][..], 0));
    assert!(empty.accepts(DataRepresentation::XCDR1) && !empty.accepts(DataRepresentation::XCDR2));
    assert!(value::<DataRepresentation>(&[0xff; 8]).is_err(), "more ids than octets");
    let many = DataRepresentation(vec![0; limits::REPRESENTATIONS_MAX + 1]);
    let bytes = encode(&many, Endianness::Little);
    assert!(decode::<DataRepresentation>(&bytes, Endianness::Little).is_err());
}

#[test]
fn type_consistency_round_trips() {
    survives(&TypeConsistency::default(), &[1, 0, 1, 1, 0, 0, 0, 0]);
    let strict = TypeConsistency::of(TypeConsistencyKind::DisallowTypeCoercion);
    survives(&strict, &[0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(value(&[1, 0]), Ok(TypeConsistency::default()), "the flags may be missing");
    assert_eq!(value(&[0, 0]), Ok(strict));
    assert!(value::<TypeConsistency>(&[2, 0, 0, 0, 0, 0, 0, 0]).is_err());
}

#[test]
fn unknown_kinds_are_malformed() {
    assert!(value::<Durability>(&[4, 0, 0, 0]).is_err());
    assert!(value::<Ownership>(&[2, 0, 0, 0]).is_err());
    assert!(value::<DestinationOrder>(&[2, 0, 0, 0]).is_err());
    assert!(value::<Liveliness>(&[3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    assert!(value::<Presentation>(&[3, 0, 0, 0, 0, 0, 0, 0]).is_err());
}

#[test]
fn entities_have_the_specified_defaults() {
    let writer = DataWriterQos::default();
    assert_eq!(writer.reliability, Reliability::RELIABLE);
    assert_eq!(writer.reliability.max_blocking_time, Duration::from_millis(100));
    assert_eq!(writer.history, History::KeepLast(1));
    assert_eq!(writer.data_representation, DataRepresentation::xcdr1());
    assert!(writer.writer_data_lifecycle.autodispose_unregistered_instances);
    let reader = DataReaderQos::default();
    assert_eq!(reader.reliability, Reliability::BEST_EFFORT);
    assert_eq!(reader.data_representation, DataRepresentation::any_xcdr());
    assert_eq!(reader.reader_data_lifecycle.autopurge_disposed_samples_delay, Duration::INFINITE);
    assert_eq!(TopicQos::default().reliability, Reliability::BEST_EFFORT);
    assert!(PublisherQos::default().entity_factory.autoenable_created_entities);
}

#[test]
fn ids_of_policies_ascend_and_name_their_rows() {
    assert!(PolicyId::ALL.is_sorted_by(|one, next| one.id() < next.id()));
    assert_eq!(PolicyId::ALL.map(PolicyId::id), core::array::from_fn(|at| at as u32 + 1), "the OMG left no gap");
    for policy in POLICIES {
        assert!(policy.id.is_none_or(|id| id.name() == policy.label), "{policy:?}");
        assert!(!policy.is_requested || policy.id.is_some(), "a report of {policy:?} needs an id");
        assert_eq!(policy.announcement.is_some(), policy.pid.is_some(), "{policy:?}");
    }
}

#[test]
fn topic_policies_are_copied_except_the_encodings_of_readers() {
    let mut topic = TopicQos {
        deadline: Deadline { period: Duration::from_secs(1) },
        lifespan: Lifespan { duration: Duration::from_secs(2) },
        reliability: Reliability::RELIABLE,
        data_representation: DataRepresentation::xcdr2(),
        ..TopicQos::default()
    };
    topic.topic_data.0.push(1);
    let (mut writer, mut reader) = (DataWriterQos::default(), DataReaderQos::default());
    writer.ownership_strength.0 = 5;
    writer.copy_from_topic(&topic);
    reader.copy_from_topic(&topic);
    let DataWriterQos { deadline, lifespan, data_representation, ownership_strength, .. } = writer;
    assert_eq!((deadline, lifespan, data_representation), (topic.deadline, topic.lifespan, topic.data_representation));
    assert_eq!(ownership_strength, OwnershipStrength(5));
    assert_eq!((reader.deadline, reader.reliability), (topic.deadline, topic.reliability));
    assert_eq!(reader.data_representation, DataRepresentation::any_xcdr());
}

#[test]
fn changes_of_policies_are_found_and_compared_by_their_terms() {
    let writer = DataWriterQos::default();
    let mut other = writer.clone();
    other.reliability.max_blocking_time = Duration::from_secs(1);
    other.deadline.period = Duration::from_secs(1);
    assert_eq!(writer.immutable_difference(&other), Some(Reliability::INFO));
    assert!(Terms::immutable(&writer) == Terms::immutable(&other), "the blocking time decides about no match");
    assert!(Terms::changeable(&writer) != Terms::changeable(&other));
    assert_eq!(writer.policy(), Some(&Reliability::RELIABLE));
    assert_eq!(writer.policy::<TimeBasedFilter>(), None);
    *other.policy_mut().expect("writers have a DEADLINE") = Deadline::default();
    assert_eq!(other.deadline, Deadline::default());
}
